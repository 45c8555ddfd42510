"""Kernels of rows against numpy, with and without blocks of columns."""

from itertools import chain

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skstruct.compiled.lanes import (
    LANES,
    TOGETHER,
    add_wide_outers,
    add_wide_products,
    add_wide_terms,
    scatter_wide_row,
    sum_wide_rows,
)
from skstruct.compiled.rows import add_outer, add_rows, max_plus, sort_rows, vector_matrix

SIZES = [1, 2, 3, 7, 8, 9, 13, 16, 17, 22, 24, 25, 32, 33, 40, 41, 48, 49]
sizes = pytest.mark.parametrize("n", SIZES)
wide = pytest.mark.parametrize("n", [n for n in SIZES if n >= LANES])


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


@numba.njit
def add_rows_up(initial, matrix, rows, values, threshold, out):
    sum_wide_rows(initial, matrix, rows, values, threshold, 1, len(rows), out)


@numba.njit
def scatter(x, values, rows, vector):
    scatter_wide_row(x, values, rows, 1, len(rows), vector)


@wide
@pytest.mark.parametrize("threshold", [None, 0.4])
@pytest.mark.parametrize("with_values", [False, True])
@pytest.mark.parametrize("with_initial", [False, True])
def test_sum_wide_rows_is_a_product(n, threshold, with_values, with_initial):
    x, matrix, out = operands(n)
    rows = np.array([0, n - 1, 1, 1, n // 2, 2], np.int32)
    values = np.linspace(-1, 2, len(rows)) if with_values else None
    initial = x if with_initial else None
    terms = matrix if threshold is None else matrix - np.clip(matrix, -threshold, threshold)
    weights = np.ones(len(rows)) if values is None else values
    expected = (0 if initial is None else initial) + weights[1:] @ terms[rows[1:]]
    for array, starts in ((matrix, rows), (matrix.ravel(), n * rows)):
        add_rows_up(initial, array, starts, values, threshold, out[:n])
        assert_allclose(out[:n], expected, rtol=1e-13, atol=1e-14)
        assert np.all(np.isnan(out[n:]))


@wide
@pytest.mark.parametrize("with_values", [False, True])
def test_scatter_wide_row_adds_to_every_column_once(n, with_values):
    x, matrix, _ = operands(n)
    rows = np.array([0, n - 1, 1, 1, n // 2, 2], np.int32)
    values = np.linspace(-1, 2, len(rows)) if with_values else None
    vector = np.append(matrix.ravel(), 7.0)
    for k in range(1, len(rows)):
        matrix[rows[k]] += x if values is None else values[k] * x
    scatter(x, values, n * rows, vector)
    assert_allclose(vector, np.append(matrix.ravel(), 7.0), rtol=1e-13, atol=1e-14)


@numba.njit
def multiply_together(values, t, matrix, rows, out):
    add_wide_products(values, t, matrix, rows, out)


@numba.njit
def add_together(x, y, places, out):
    add_wide_outers(x, y, places, out)


@wide
def test_products_of_rows_together_are_those_of_each(n):
    """To the last bit: how many rows there are must not change what a tagger learns."""
    rng = np.random.default_rng(n)
    values, matrix = rng.normal(size=(TOGETHER + 3, 5)), rng.normal(size=(7, n))
    rows, out = np.array([6, 0, 3, 3, 1], np.int32), rng.normal(size=(TOGETHER + 3, n))
    expected, total = out.copy(), np.empty(n)
    for t in range(2, 2 + TOGETHER):
        add_rows_up(
            None, matrix, np.append(0, rows).astype(np.int32), np.append(0, values[t]), None, total
        )
        expected[t] += total
        assert_allclose(total, values[t] @ matrix[rows], rtol=1e-13, atol=1e-14)
    multiply_together(values, 2, matrix, rows, out)
    assert_array_equal(out, expected)


@numba.njit
def add_terms(values, t, matrix, start, first, last, out):
    add_wide_terms(values, t, matrix, start, first, last, out)


@wide
def test_terms_are_added_one_after_the_other(n):
    """To the last bit, and as on processors that cannot fuse."""
    rng = np.random.default_rng(n)
    values, matrix = rng.normal(size=(TOGETHER + 3, 6)), rng.normal(size=(9, n))
    out = rng.normal(size=(TOGETHER + 3, n))
    expected = out.copy()
    for k in range(1, 5):
        for t in range(2, 2 + TOGETHER):
            expected[t] += values[t, k] * matrix[3 + k]
    add_terms(values, 2, matrix, 3, 1, 5, out)
    assert_array_equal(out, expected)


@wide
def test_outer_products_together_are_those_of_each(n):
    rng = np.random.default_rng(n)
    x, y, out = rng.normal(size=(9, 6)), rng.normal(size=(9, n)), rng.normal(size=(6, n))
    places, expected = np.array([7, 0, 4, 8]), out.copy()
    for place in places:
        add_outer(1.0, x[place], y[place], expected)
    add_together(x, y, places, out)
    assert_array_equal(out, expected)


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
