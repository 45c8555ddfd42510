"""Viterbi against the list of all label sequences, and against plain loops on long input."""

from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import score_arrays

from skstruct.chain.dense import Chain, Dense
from skstruct.chain.protocol import edges_of
from skstruct.chain.ranges import decode_best
from skstruct.chain.ties import first_largest
from skstruct.chain.viterbi import viterbi
from skstruct.compiled.rows import largest
from skstruct.input.training_set import as_rows


def best(scores, transition):
    labels = np.full(len(scores), -1, np.int32)
    score = viterbi(scores.copy(), len(scores), Dense(transition), labels)
    return labels.tolist(), score


@given(score_arrays(kinds=("ties", "large")))
def test_finds_the_first_of_the_best_of_all_sequences(case):
    labels, score = best(*case)
    [(expected_labels, expected_score)] = naive.n_best(*case, 1)
    assert labels == list(expected_labels)
    assert score == expected_score


@given(score_arrays())
def test_score_is_the_best_and_belongs_to_the_labels(case):
    labels, score = best(*case)
    [(_, expected)] = naive.n_best(*case, 1)
    assert_allclose(score, expected, rtol=1e-13, atol=1e-13)
    assert_allclose(naive.path_score(*case, labels), expected, rtol=1e-13, atol=1e-13)


def test_all_ties_go_to_the_smallest_label():
    for n_labels in (1, 2, 5):
        labels, score = best(np.zeros((4, n_labels)), np.zeros((n_labels, n_labels)))
        assert labels == [0, 0, 0, 0]
        assert score == 0


def test_ties_are_settled_at_the_last_token_first():
    # (1, 0) and (0, 1) are equally good; the last token prefers 0.
    transition = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert best(np.zeros((2, 2)), transition) == ([1, 0], 1.0)


def test_empty_sequence():
    assert best(np.empty((0, 3)), np.zeros((3, 3))) == ([], 0.0)


def test_reads_only_the_length_it_is_given():
    rng = np.random.default_rng(0)
    scores, transition = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))
    buffer = np.concatenate([scores[:4], np.full((2, 3), np.nan)])
    labels = np.full(4, -1, np.int32)
    score = viterbi(buffer, 4, Dense(transition), labels)
    assert (labels.tolist(), score) == best(scores[:4], transition)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(30, 50),
    st.sampled_from([0, 2, 40]),
    st.sampled_from([0, 2, 40]),
    st.sampled_from([0.0, 0.1, 0.9]),
)
def test_labels_that_are_passed_over_would_not_have_mattered(
    seed, n_labels, spread, transition_spread, forbidden
):
    """With many labels, some are far behind and never looked at; whole numbers make ties."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(-spread, spread + 1, (rng.integers(1, 8), n_labels)).astype(float)
    square = (n_labels, n_labels)
    transition = rng.integers(-transition_spread, transition_spread + 1, square).astype(float)
    transition[rng.random(square) < forbidden] = -np.inf
    expected_labels, expected_score = naive.viterbi(scores, transition)
    labels, score = best(scores, transition)
    assert score == expected_score
    if score > -np.inf:
        assert labels == expected_labels


@pytest.mark.parametrize(("length", "n_labels"), [(100_000, 4), (5, 500)])
def test_long_sequences_and_many_labels(length, n_labels):
    rng = np.random.default_rng(length)
    scores, transition = rng.normal(size=(length, n_labels)), rng.normal(size=(n_labels, n_labels))
    labels, score = best(scores, transition)
    expected_labels, expected_score = naive.viterbi(scores, transition)
    assert labels == expected_labels
    assert_allclose(score, expected_score, rtol=1e-12)


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=9))
def test_largest_values_are_numpys(values):
    assert first_largest(np.array(values, float), len(values)) == np.argmax(values)
    assert largest(np.array([*values, 3.0]), len(values)) == np.max(values)


def test_a_range_writes_its_own_rows_only():
    rng = np.random.default_rng(1)
    X, chain = rng.normal(size=(9, 4)), random_chain(rng, 4, 3)
    offsets = np.array([0, 2, 2, 5, 9])
    offsets.flags.writeable = False
    whole, part = np.full(9, -1, np.int32), np.full(9, -1, np.int32)
    decode_best(as_rows(X), offsets, 0, 4, chain, whole)
    decode_best(as_rows(X), offsets, 1, 3, chain, part)
    assert_array_equal(part[2:5], whole[2:5])
    assert_array_equal(np.delete(part, [2, 3, 4]), -1)
    weights = naive.Weights(chain.weights.T, *chain[1:])
    expected = [
        label
        for a, b in pairwise(offsets)
        for label in naive.viterbi(naive.emission_scores(X[a:b], weights), chain.transition)[0]
    ]
    assert whole.tolist() == expected


def random_chain(rng, n_features, n_labels):
    return Chain(
        rng.normal(size=(n_features, n_labels)),
        rng.normal(size=(n_labels, n_labels)),
        *rng.normal(size=(3, n_labels)),
    )


def test_transitions_of_a_model_in_read_only_memory_are_copied():
    """Decoding is compiled once for models that learn and for those that do not."""
    transition = np.arange(9.0).reshape(3, 3)
    transition.flags.writeable = False
    copied = edges_of(Chain(np.empty((0, 3)), transition, *np.zeros((3, 3))), 2).log
    assert copied.flags.writeable
    assert_array_equal(copied, transition)
