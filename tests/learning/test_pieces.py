"""Cutting sequences into mini-samples."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skstruct import AROWTagger, CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger, SequenceBatch
from skstruct.learning.online import cut_sequences

TAGGERS = [AROWTagger, PerceptronTagger, MIRATagger, SAPOTagger, partial(CRFTagger, solver="sgd")]


def offsets_of(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=8),
    st.one_of(st.none(), st.floats(1, 12)),
    st.floats(1, 6),
    st.integers(0, 2**31),
)
def test_pieces_tile_the_sequences(lengths, mini_length, alpha, seed):
    offsets = offsets_of(lengths)
    samples, owner = cut_sequences(
        offsets, np.random.RandomState(seed), mini_length=mini_length, structure_alpha=alpha
    )
    for i in range(len(lengths)):
        pieces = samples[owner == i]
        rows = np.concatenate([np.arange(a, b) for a, b, _, _ in pieces] or [[]])
        assert_array_equal(np.sort(rows), np.arange(offsets[i], offsets[i + 1]))
        for a, b, has_first, has_last in pieces:
            assert has_first == (a == offsets[i])
            assert has_last == (b == offsets[i + 1])
        sizes = pieces[:, 1] - pieces[:, 0]
        if mini_length:
            assert np.all(sizes <= np.ceil(mini_length))
            # At most one piece, a rest at either end, is shorter than the shorter of the two.
            assert np.sum(sizes < np.floor(mini_length)) <= 1
        elif alpha > 1 and lengths[i]:
            assert len(sizes) in np.minimum([np.floor(alpha), np.ceil(alpha)], lengths[i])
            assert np.ptp(sizes) <= 1


def test_lengths_are_a_mixture_with_the_mean_asked_for():
    offsets = offsets_of([600] * 50)
    samples, _ = cut_sequences(offsets, np.random.RandomState(0), mini_length=5.5)
    sizes = samples[:, 1] - samples[:, 0]
    whole = sizes[sizes >= 5]
    assert set(whole) == {5, 6}
    # Five standard errors.
    assert abs(whole.mean() - 5.5) < 5 * 0.5 / np.sqrt(len(whole))


@pytest.mark.parametrize("length", [1, 2, 3, 5, 10, 24, 60])
@pytest.mark.parametrize("alpha", [1.1, 1.5, 2, 2.5, 3, 4, 7.9])
def test_alpha_is_the_mean_number_of_pieces(length, alpha):
    n = 4000
    samples, _ = cut_sequences(
        offsets_of([length] * n), np.random.RandomState(0), structure_alpha=alpha
    )
    # A sequence has no more pieces than tokens. Five standard errors of a mixture of two numbers.
    share = alpha % 1
    allowed = 5 * np.sqrt(share * (1 - share) / n)
    assert abs(len(samples) / n - min(alpha, length)) <= allowed


def test_longer_pieces_stand_anywhere():
    n = 6000
    samples, _ = cut_sequences(offsets_of([5] * n), np.random.RandomState(0), structure_alpha=4)
    sizes = (samples[:, 1] - samples[:, 0]).reshape(n, 4)
    assert_array_equal(sizes.sum(axis=1), 5)
    # Each of the four places has the longer piece as often; five standard errors.
    assert np.all(abs((sizes == 2).mean(axis=0) - 1 / 4) < 5 * np.sqrt(3 / 16 / n))


def test_the_rest_is_left_at_either_end():
    offsets = offsets_of([7] * 100)
    samples, owner = cut_sequences(offsets, np.random.RandomState(0), mini_length=5)
    rest = samples[samples[:, 1] - samples[:, 0] == 2]
    assert len(rest) == len(np.unique(owner)) == 100
    assert 20 < rest[:, 2].sum() < 80
    assert_array_equal(rest[:, 2] + rest[:, 3], 1)


def test_nothing_is_drawn_where_nothing_is_cut():
    rng = np.random.RandomState(3)
    before = rng.get_state()[1].copy()
    samples, owner = cut_sequences(offsets_of([3, 0, 4]), rng)
    assert_array_equal(rng.get_state()[1], before)
    assert_array_equal(samples[:, :2], [[0, 3], [3, 3], [3, 7]])
    assert_array_equal(owner, [0, 1, 2])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 12, 40)
    X = rng.normal(size=(lengths.sum(), 6))
    y = np.split((X[:, 0] > 0) + 1 * (X[:, 1] > 0), np.cumsum(lengths)[:-1])
    return SequenceBatch.from_lengths(X, lengths), [labels.tolist() for labels in y]


@pytest.mark.parametrize("tagger", TAGGERS)
def test_alpha_one_is_bit_identical_to_none(tagger, data):
    plain = tagger(max_iter=3, tol=None, random_state=0).fit(*data)
    cut = tagger(max_iter=3, tol=None, random_state=0, structure_alpha=1.0).fit(*data)
    long = tagger(max_iter=3, tol=None, random_state=0, mini_length=3.5).fit(*data)
    assert_array_equal(plain.coef_, cut.coef_)
    assert_array_equal(plain.transition_, cut.transition_)
    assert not np.array_equal(plain.coef_, long.coef_)


@pytest.mark.parametrize("tagger", TAGGERS)
def test_pieces_of_one_token_learn_no_transitions(tagger, data):
    learnt = tagger(max_iter=3, tol=None, random_state=0, mini_length=1).fit(*data)
    assert_array_equal(learnt.transition_, 0)
    assert np.any(learnt.coef_ != 0)
