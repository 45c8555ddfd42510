"""Beam search against its plain twin, and how often learners say that it misses."""

import naive
import numpy as np
import pytest
from helpers.marks import compiled
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import score_arrays

from skstruct import MIRATagger, SAPOTagger, SequenceBatch
from skstruct.chain.beam import beam_nbest
from skstruct.chain.dense import Dense

# The beam is compiled for each of them.
every_learner = pytest.mark.parametrize("kind", [SAPOTagger, compiled(MIRATagger)])
WEIGHTS = ("coef_", "transition_", "intercept_", "start_", "end_")


def run(scores, transition, width, n):
    length = len(scores)
    labels, path_scores = np.full((n, length), -1, np.int32), np.full(n, np.nan)
    before = scores.copy()
    n_found = beam_nbest(scores, length, Dense(transition), width, n, labels, path_scores)
    assert_array_equal(scores, before)
    assert_array_equal(labels[n_found:], -1)
    return [tuple(row) for row in labels[:n_found].tolist()], path_scores[:n_found]


@given(
    score_arrays(kinds=("ties", "large")),
    st.integers(1, 6) | st.integers(1, 300),
    st.integers(1, 30),
)
def test_finds_what_the_twin_finds(case, width, n):
    n = min(n, width)
    labels, scores = run(*case, width, n)
    expected = naive.beam(*case, width, n)
    assert labels == [labels for labels, _ in expected]
    assert_array_equal(scores, [score for _, score in expected])


@given(score_arrays(kinds=("ties", "large")), st.integers(1, 1024))
def test_wide_beams_are_exact(case, n):
    """Here no sequence has more than 4**5 labellings, so that nothing is ever left out."""
    labels, scores = run(*case, 4**5, n)
    expected = naive.n_best(*case, n)
    assert labels == [labels for labels, _ in expected]
    assert_array_equal(scores, [score for _, score in expected])


@given(score_arrays(), st.integers(1, 5))
def test_scores_are_those_of_the_labels_and_none_beats_the_best(case, width):
    labels, scores = run(*case, width, 1)
    _, best = naive.viterbi(*case)
    assert_allclose(scores[0], naive.path_score(*case, labels[0]), rtol=1e-13, atol=1e-12)
    assert scores[0] <= best


def test_a_narrow_beam_misses_what_starts_badly():
    scores = np.array([[1.0, 0.0], [0.0, 5.0]])
    transition = np.array([[0.0, -9.0], [0.0, 0.0]])
    assert run(scores, transition, 1, 1)[0] == [(0, 0)]
    assert run(scores, transition, 2, 1)[0] == [(1, 1)]


@pytest.mark.parametrize("n", [1, 3])
def test_where_the_beam_leads_nowhere_one_is_listed(n):
    labels, scores = run(np.zeros((3, 2)), np.full((2, 2), -np.inf), 4, n)
    assert len(labels) == 1
    assert_array_equal(scores, -np.inf)


# ------------------------------------------------------------------------------------- learners


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 6, 40)
    X = rng.normal(size=(lengths.sum(), 4))
    y = np.argmax(X[:, :3] + rng.normal(size=(len(X), 3)), axis=1)
    y = [part.tolist() for part in np.split(y, np.cumsum(lengths)[:-1])]
    return SequenceBatch.from_lengths(X, lengths), y


def nearly_still(kind, **params):
    """A learner that moves its weights by next to nothing."""
    slow = {"l2": 0, "learning_rate": 1e-12} if kind is SAPOTagger else {"C": 1e-12}
    return kind(
        average=False, warm_start=True, max_iter=1, tol=None, **slow, **params, random_state=0
    )


@pytest.mark.parametrize("width", [1, 2, 3, 9, 400])
@every_learner
def test_misses_are_counted(data, kind, width):
    X, y = data
    tagger = nearly_still(kind, n_best=1, search="beam", beam_width=width).fit(X, y)
    rng = np.random.default_rng(1)
    for name in WEIGHTS:
        setattr(tagger, name, 3 * rng.normal(size=getattr(tagger, name).shape))
    weights = naive.weights_of(tagger)
    sample_weight = rng.integers(0, 2, len(y)).astype(float)
    tagger.fit(X, y, sample_weight)
    missed = []
    for x, weight in zip(X, sample_weight, strict=True):
        if len(x) > 0 and weight > 0:
            scores = naive.emission_scores(x, weights)
            found = naive.beam(scores, weights.transition, width, 1)[0][1]
            missed.append(found < naive.viterbi(scores, weights.transition)[1] - 1e-9)
    assert_allclose(tagger.history_["search_misses"], [np.mean(missed)])
    assert (np.mean(missed) > 0) == (width < 9)


@pytest.mark.parametrize("params", [{}, {"mini_length": 2.5}, {"n_jobs": 2}])
@every_learner
def test_a_wide_beam_learns_the_same_as_the_exact_search(data, kind, params):
    X, y = data
    params = {"n_best": 4, "max_iter": 3, "tol": None, "random_state": 0, **params}
    exact = kind(**params).fit(X, y)
    beam = kind(search="beam", beam_width=3**5, **params).fit(X, y)
    for name in WEIGHTS:
        assert_allclose(getattr(beam, name), getattr(exact, name), rtol=1e-9, atol=1e-12)
    assert_array_equal(beam.history_["search_misses"], np.zeros(3))
    assert "search_misses" not in exact.history_


@every_learner
def test_learns_with_a_beam_that_misses(addresses, kind):
    X, y = addresses
    tagger = kind(n_best=3, search="beam", beam_width=4, max_iter=10, tol=None, random_state=0)
    tagger.fit(X[:150], y[:150])
    assert np.any(tagger.history_["search_misses"] > 0)
    assert tagger.score(X[150:], y[150:]) > 0.7
