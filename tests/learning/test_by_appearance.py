"""Features in the order of their first appearance, against plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skstruct.chain.scores import Rows
from skstruct.learning.online import by_appearance, renumbered, reorder

N_FEATURES = 12


def as_rows(tokens, with_values):
    indptr = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
    indices = np.array([f for token in tokens for f in token], dtype=np.int32)
    return Rows(indptr, indices, 0.5 + indices if with_values else np.empty(0))


@given(st.lists(st.sets(st.integers(0, N_FEATURES - 1)).map(sorted)), st.booleans())
def test_ranks_are_those_of_first_appearance(tokens, with_values):
    rows = as_rows(tokens, with_values)
    met = list(dict.fromkeys(f for token in tokens for f in token))
    expected = [*met, *(f for f in range(N_FEATURES) if f not in met)]
    rank = by_appearance(rows, N_FEATURES)
    found = renumbered(rows, rank)
    assert_array_equal(np.argsort(rank), expected)
    for t, token in enumerate(tokens):
        row = slice(found.indptr[t], found.indptr[t + 1])
        assert_array_equal(found.indices[row], sorted(rank[token]))
        if with_values:
            assert_array_equal(found.data[row], 0.5 + np.array(expected)[found.indices[row]])


@given(st.permutations(range(N_FEATURES)), st.integers(1, 20))
def test_rows_are_permuted_in_place(source, n_labels):
    weights = np.arange(float(N_FEATURES * n_labels)).reshape(N_FEATURES, n_labels)
    expected = weights[source]
    reorder(weights, np.array(source))
    assert_array_equal(weights, expected)
