"""The n best label sequences against the list of all of them."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import score_arrays

from skstruct import PerceptronTagger, SequenceBatch
from skstruct.chain.astar import astar_nbest
from skstruct.chain.dense import Dense
from skstruct.chain.viterbi import viterbi


def run(scores, transition, n_best):
    length = len(scores)
    labels = np.full((n_best, length), -1, np.int32)
    path_scores = np.full(n_best, np.nan)
    n_found = astar_nbest(scores.copy(), length, Dense(transition), n_best, labels, path_scores)
    assert_array_equal(labels[n_found:], -1)
    assert not np.any(path_scores[n_found:] > -np.inf)
    return [tuple(row) for row in labels[:n_found].tolist()], path_scores[:n_found]


@given(case=score_arrays(kinds=("ties", "large")), n=st.integers(1, 30))
def test_order_is_that_of_all_sequences_sorted(case, n):
    labels, scores = run(*case, n)
    expected = naive.n_best(*case, n)
    assert labels == [labels for labels, _ in expected]
    assert_array_equal(scores, [score for _, score in expected])


@given(case=score_arrays(), n=st.integers(1, 1100))
def test_scores_descend_and_labels_differ(case, n):
    scores, transition = case
    labels, path_scores = run(scores, transition, n)
    best = naive.n_best(scores, transition, n)
    assert len(labels) == len(set(labels)) == len(best)
    assert np.all(path_scores[:-1] >= path_scores[1:] - 1e-12)
    expected = [naive.path_score(scores, transition, sequence) for sequence in labels]
    assert_allclose(path_scores, expected, rtol=1e-13, atol=1e-12)
    assert_allclose(path_scores, [score for _, score in best], rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("n", [1, 10])
def test_where_nothing_is_possible_one_is_listed(n):
    impossible = np.full((2, 2), -np.inf)
    labels, scores = run(np.zeros((3, 2)), impossible, n)
    assert len(labels) == 1
    assert_array_equal(scores, -np.inf)


@given(case=score_arrays(), n=st.integers(1, 5))
def test_first_is_viterbis(case, n):
    scores, transition = case
    labels = np.empty(len(scores), np.int32)
    score = viterbi(scores.copy(), len(scores), Dense(transition), labels)
    found, path_scores = run(scores, transition, n)
    assert found[0] == tuple(labels.tolist())
    assert path_scores[0] == score


@pytest.mark.parametrize(("length", "n_labels"), [(20_000, 4), (6, 200)])
def test_larger_n_only_adds(length, n_labels):
    rng = np.random.default_rng(length)
    scores, transition = rng.normal(size=(length, n_labels)), rng.normal(size=(n_labels, n_labels))
    few, few_scores = run(scores, transition, 3)
    many, many_scores = run(scores, transition, 8)
    assert few == many[:3]
    assert_array_equal(few_scores, many_scores[:3])
    for labels, score in zip(many, many_scores, strict=True):
        assert_allclose(score, naive.path_score(scores, transition, labels), rtol=1e-10)
    assert len(set(many)) == 8


def test_ties_of_a_long_sequence_count_up_from_its_first_token():
    labels, scores = run(np.zeros((20_000, 3)), np.zeros((3, 3)), 10)
    expected = [(m % 3, m // 3 % 3, m // 9) for m in range(10)]
    assert [found[:3] for found in labels] == expected
    assert not any(any(found[3:]) for found in labels)
    assert_array_equal(scores, 0)


@pytest.fixture(scope="module")
def tagger():
    """A tagger with arbitrary weights, and sequences of lengths 3, 0, 1 and 4."""
    rng = np.random.default_rng(3)
    batch = SequenceBatch.from_lengths(rng.normal(size=(8, 5)), [3, 0, 1, 4])
    y = [["a", "b", "c"], [], ["a"], ["b", "b", "c", "a"]]
    tagger = PerceptronTagger(average=False, max_iter=2, tol=None, random_state=0).fit(batch, y)
    for name in ("coef_", "transition_", "intercept_", "start_", "end_"):
        setattr(tagger, name, rng.normal(size=getattr(tagger, name).shape))
    return tagger, batch


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("n", [1, 4, 100])
def test_predict_nbest_gives_labels_scores_and_probabilities(tagger, n, n_jobs):
    tagger, batch = tagger
    weights = naive.weights_of(tagger)
    for found, x in zip(
        tagger.set_params(n_jobs=n_jobs).predict_nbest(batch, n), batch, strict=True
    ):
        scores = naive.emission_scores(x, weights)
        expected = naive.n_best(scores, weights.transition, n)
        assert [f.labels for f in found] == [
            tagger.classes_[list(labels)].tolist() for labels, _ in expected
        ]
        assert_allclose([f.score for f in found], [score for _, score in expected], atol=1e-12)
        log_z, _, _ = naive.listed_marginals(scores, weights.transition)
        assert_allclose(
            [f.probability for f in found], [np.exp(s - log_z) for _, s in expected], atol=1e-12
        )
        if n == 100:
            assert_allclose(sum(f.probability for f in found), 1, atol=1e-12)


def test_predict_nbest_starts_with_predict(tagger):
    tagger, batch = tagger
    best = [found[0].labels for found in tagger.predict_nbest(batch, 2)]
    assert best == tagger.predict(batch).tolist()


@pytest.mark.parametrize("n", [0, -1, 1.5, "3", None])
def test_predict_nbest_wants_a_positive_integer(tagger, n):
    with pytest.raises(ValueError, match="n_best must be a positive integer"):
        tagger[0].predict_nbest(tagger[1], n)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("n", [1, 4, 100])
def test_predict_nbest_finds_the_same_with_every_exact_search(tagger, n, n_jobs):
    tagger, batch = tagger
    tagger.set_params(n_jobs=n_jobs)
    expected = tagger.predict_nbest(batch, n)
    wide = tagger.predict_nbest(batch, n, search="beam", beam_width=3**4)
    for found, labellings in zip(wide, expected, strict=True):
        assert [x.labels for x in found] == [x.labels for x in labellings]
        for part in ("score", "probability"):
            values = [[getattr(x, part) for x in list_] for list_ in (found, labellings)]
            assert_allclose(*values, rtol=1e-10)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_predict_nbest_with_a_narrow_beam(tagger, width):
    tagger, batch = tagger
    weights = naive.weights_of(tagger)
    found = tagger.predict_nbest(batch, 3, search="beam", beam_width=width)
    for labellings, x in zip(found, batch, strict=True):
        scores = naive.emission_scores(x, weights)
        # A beam is at least as wide as what is wanted of it.
        expected = naive.beam(scores, weights.transition, max(width, 3), 3)
        expected = [tagger.classes_[list(labels)].tolist() for labels, _ in expected]
        assert [x.labels for x in labellings] == expected


@pytest.mark.parametrize("search", ["astar", "beam"])
@pytest.mark.parametrize("n", [1, 3, 100])
def test_predict_nbest_can_normalise_over_what_it_found(tagger, n, search):
    tagger, batch = tagger
    for found in tagger.predict_nbest(batch, n, search=search, normalize="n_best"):
        scores = np.array([x.score for x in found])
        expected = [1 / np.exp(scores - score).sum() for score in scores]
        assert_allclose([x.probability for x in found], expected, rtol=1e-12)


def test_predict_nbest_does_not_pay_for_more_than_there_are(tagger):
    tagger, batch = tagger
    expected = [len(list_) for list_ in tagger.predict_nbest(batch, 100)]
    assert expected == [27, 1, 3, 81]
    for search in ("astar", "beam"):
        found = tagger.predict_nbest(batch, 10**12, search=search, beam_width=10**12)
        assert [len(list_) for list_ in found] == expected


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"beam_width": 0}, "beam_width must be a positive integer"),
        ({"beam_width": 2.0}, "beam_width must be a positive integer"),
        ({"search": "viterbi"}, "search must be one of 'astar', 'beam', got 'viterbi'"),
        ({"search": None}, "search must be one of"),
        ({"normalize": True}, "normalize must be 'all' or 'n_best', got True"),
    ],
)
def test_predict_nbest_refuses_other_options(tagger, params, message):
    with pytest.raises(ValueError, match=message):
        tagger[0].predict_nbest(tagger[1], **params)
