"""Kernels of rows against numpy, with and without blocks of columns."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skstruct.compiled.rows import add_outer, add_rows, max_plus, sort_rows, vector_matrix

sizes = pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 13, 16, 22, 33])


def operands(n):
    rng = np.random.default_rng(n)
    return rng.normal(size=n), rng.normal(size=(n, n)), np.full(n + 2, np.nan)


@sizes
def test_vector_matrix_is_numpys(n):
    x, matrix, out = operands(n)
    vector_matrix(x, matrix, out[:n])
    assert_allclose(out[:n], x @ matrix, rtol=1e-13, atol=1e-14)
    assert np.all(np.isnan(out[n:]))


@sizes
def test_max_plus_is_the_largest_sum(n):
    x, matrix, out = operands(n)
    x[n // 3] = -np.inf
    matrix[:, n // 2] = -np.inf
    matrix[n - 1] = -np.inf
    max_plus(x, matrix, out[:n])
    assert_array_equal(out[:n], np.max(x[:, None] + matrix, axis=0))
    assert np.all(np.isnan(out[n:]))


@sizes
def test_add_outer_adds_every_product_once(n):
    x, matrix, _ = operands(n)
    y = x[::-1].copy()
    expected = matrix + 0.3 * np.outer(x, y)
    add_outer(0.3, x, y, matrix)
    assert_allclose(matrix, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("values", ["different", "tied", "impossible", "no number"])
@sizes
def test_add_rows_finds_the_two_largest(n, values):
    rng = np.random.default_rng(n)
    for _ in range(20):
        x, y = rng.normal(size=(2, n)), rng.normal(size=(3, n))
        if values == "tied":
            x, y = np.round(x), np.round(y)
        elif values == "impossible":
            x[rng.random(x.shape) < 0.5] = -np.inf
        elif values == "no number":
            x[:, rng.integers(n)] = np.nan
        out = np.full(n + 2, np.nan)
        *found, where = add_rows(x, 1, y, 2, out[:n])
        numbers = np.nan_to_num(x[1] + y[2], nan=-np.inf, neginf=-np.inf)
        assert_array_equal(found, np.sort(np.append(numbers, -np.inf))[:-3:-1])
        assert where == np.argmax(numbers)
        assert_array_equal(out[:n], x[1] + y[2])
        assert np.all(np.isnan(out[n:]))


@given(st.lists(st.lists(st.integers(-1, 60), max_size=50), max_size=4), st.booleans())
def test_sort_rows_is_sorted(lists, with_values):
    indptr = np.cumsum([0, *map(len, lists)])
    columns = np.array([*chain.from_iterable(lists)], np.int32)
    values = columns / 4 if with_values else np.empty(0)
    kept = [sorted(c for c in row if c >= 0) for row in lists]
    n, repeats = sort_rows(indptr, columns, values)
    assert repeats == any(len(set(row)) < len(row) for row in kept)
    assert_array_equal(indptr, np.cumsum([0, *map(len, kept)]))
    assert_array_equal(columns[:n], [*chain.from_iterable(kept)])
    assert_array_equal(values[:n], columns[:n] / 4 if with_values else [])
