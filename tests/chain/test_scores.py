"""Emission and path scores against plain loops."""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import lengths

from skstruct.chain.dense import Chain, Dense
from skstruct.chain.scores import (
    add_boundary,
    emission_scores,
    longest,
    path_score,
    sequence_scores,
)
from skstruct.input.training_set import as_rows


def random_weights(rng, n_labels, n_features):
    return naive.Weights(
        rng.normal(size=(n_labels, n_features)),
        rng.normal(size=(n_labels, n_labels)),
        *rng.normal(size=(3, n_labels)),
    )


def as_chain(weights):
    return Chain(np.ascontiguousarray(weights.coef.T), *weights[1:])


@given(st.integers(0, 2**32 - 1), st.integers(0, 5), st.integers(1, 40), st.booleans())
def test_scores_are_the_plain_sums(seed, length, n_labels, unit):
    rng = np.random.default_rng(seed)
    n_features = rng.integers(1, 50)
    X = rng.normal(size=(length + 3, n_features)) * (rng.random((length + 3, n_features)) < 0.4)
    X = (X != 0).astype(float) if unit else X
    weights = random_weights(rng, n_labels, n_features)
    out = np.full((length + 2, n_labels), np.nan)
    # A sequence in the middle of a batch.
    piece = X[2 : 2 + length]
    emission_scores(as_rows(X), 2, 2 + length, as_chain(weights), out)
    inner = weights._replace(start=np.zeros(n_labels), end=np.zeros(n_labels))
    assert_allclose(out[:length], naive.emission_scores(piece, inner), atol=1e-12)
    sequence_scores(as_rows(X), 2, 2 + length, as_chain(weights), out)
    assert_allclose(out[:length], naive.emission_scores(piece, weights), atol=1e-12)
    assert np.all(np.isnan(out[length:]))


@given(lengths(max_sequences=8), st.data())
def test_longest(lengths, data):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(lengths))] * 2)))
    assert longest(offsets, first, last) == max(lengths[first:last], default=0)


def test_only_token_is_first_and_last():
    out = np.zeros((1, 2))
    add_boundary(np.array([1.0, 2.0]), np.array([10.0, 20.0]), out, 1)
    assert_array_equal(out, [[11, 22]])


def test_boundary_of_no_token_is_nothing():
    out = np.zeros((2, 2))
    add_boundary(np.ones(2), np.ones(2), out, 0)
    assert_array_equal(out, 0)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csr_array, sp.coo_matrix])
def test_rows_hold_the_matrix(make):
    values = np.array([[0.0, 2.0, -1.0], [0.0, 0.0, 0.0], [3.0, 0.0, 0.5]])
    rows = as_rows(make(values))
    assert_array_equal(sp.csr_matrix((rows.data, rows.indices, rows.indptr)).toarray(), values)
    assert (rows.indptr.dtype, rows.indices.dtype, rows.data.dtype) == ("int64", "int32", "float64")


def test_ones_are_not_stored():
    assert as_rows(np.eye(3)).data.size == 0
    assert as_rows(2 * np.eye(3)).data.size == 3


@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(1, 5))
def test_path_score_is_the_plain_sum(seed, length, n_labels):
    rng = np.random.default_rng(seed)
    scores, transition = rng.normal(size=(length + 1, n_labels)), rng.normal(size=(n_labels,) * 2)
    labels = rng.integers(n_labels, size=length).astype(np.int32)
    expected = naive.path_score(scores[:length], transition, labels.tolist())
    assert_allclose(path_score(scores, length, Dense(transition), labels), expected, atol=1e-13)
