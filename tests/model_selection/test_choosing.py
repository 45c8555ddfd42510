"""`choose_sequences`: scores against enumeration, and what is like what is chosen already."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from skstruct import CRFTagger, PerceptronTagger, SequenceVectorizer, SpanTaggerCV, WordVectorizer
from skstruct.crfsuite import CRF
from skstruct.inspection.models import find_tagger
from skstruct.metrics import extract_chunks
from skstruct.model_selection import choose_sequences
from skstruct.model_selection.choosing import STRATEGIES, _diverse, _vectors


def sentences(n_sequences, seed=0):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        labels = []
        for _ in range(rng.integers(1, 4)):
            labels += [["B-X", "I-X"], ["B-X"], ["O"]][rng.integers(3)]
        told = [rng.choice(["O", "B-X", "I-X"]) if rng.random() < 0.4 else a for a in labels]
        X.append([{"w": f"{one}{rng.integers(4)}"} for one in told])
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def fitted():
    """A tagger, and a pool."""
    return CRFTagger(l2=0.3).fit(*sentences(30)), sentences(40, seed=1)[0]


def enumerated(tagger, x):
    """Labellings of a sequence with their probabilities."""
    n = len(tagger.classes_) ** len(x)
    (found,) = tagger.predict_nbest([x], n)
    assert len(found) == n
    assert {tuple(one.labels) for one in found} == set(product(tagger.classes_, repeat=len(x)))
    return found


def score_by_hand(tagger, x, strategy):
    found = enumerated(tagger, x)
    if strategy == "margin":
        return found[1].probability / found[0].probability
    if strategy == "spans":
        spans = {}
        for labels, _, p in found:
            for chunk in extract_chunks(labels):
                spans[tuple(chunk)] = spans.get(tuple(chunk), 0.0) + p
        return sum(min(p, 1 - p) for p in spans.values() if p > 0.02) / len(x)
    total = 0.0
    for t in range(len(x)):
        p = [sum(one.probability for one in found if one.labels[t] == c) for c in tagger.classes_]
        total -= sum(value * np.log(value) for value in p)
    return total / len(x)


@pytest.mark.parametrize("strategy", ["spans", "margin", "entropy"])
def test_scores_are_those_of_all_labellings(fitted, strategy):
    tagger, pool = fitted
    numbers, scores = choose_sequences(tagger, pool, len(pool), strategy=strategy, diverse=False)
    assert sorted(numbers) == list(range(len(pool)))
    expected = np.array([score_by_hand(tagger, x, strategy) for x in pool])
    assert_allclose(scores, expected[numbers], atol=1e-9)
    assert_array_equal(scores, np.sort(scores)[::-1])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_first_of_all_are_chosen(fitted, strategy):
    tagger, pool = fitted
    options = {"strategy": strategy, "diverse": False, "random_state": 0}
    numbers, scores = choose_sequences(tagger, pool, len(pool), **options)
    first, of_first = choose_sequences(tagger, pool, 7, **options)
    assert_array_equal(first, numbers[:7])
    assert_array_equal(of_first, scores[:7])
    again, _ = choose_sequences(tagger, pool, 7, **options)
    assert_array_equal(first, again)
    assert len(choose_sequences(tagger, pool, 100, **options)[0]) == len(pool)


def test_random_choice_has_a_seed(fitted):
    tagger, pool = fitted
    a, b = (
        choose_sequences(tagger, pool, 10, strategy="random", random_state=seed)[0].tolist()
        for seed in (0, 1)
    )
    assert a != b


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_copies_come_last(fitted, strategy):
    """Ten sequences, and each of them nine times more."""
    tagger, pool = fitted
    pool = [x for x in pool if len(x) > 2][:10]
    options = {"strategy": strategy, "random_state": 0}
    numbers, _ = choose_sequences(tagger, pool * 10, 10, **options)
    assert len({tuple(w["w"] for w in (pool * 10)[i]) for i in numbers}) == 10
    numbers, _ = choose_sequences(tagger, pool * 10, 10, diverse=False, **options)
    if strategy != "random":
        assert len({tuple(w["w"] for w in (pool * 10)[i]) for i in numbers}) == 1


@pytest.mark.parametrize("n_columns", [3, 40])
def test_diverse_rows_are_those_of_comparing_all(n_columns):
    """Also where rows are copies, and where scores are equal or zero."""
    rng = np.random.default_rng(n_columns)
    dense = rng.random((300, n_columns)) * (rng.random((300, n_columns)) < 0.3)
    dense[100:200] = dense[:100]
    vectors = normalize(sp.csr_array(dense))
    scores = rng.integers(0, 8, 300) / 8
    expected, left = [], scores.copy()
    for _ in range(120):
        similar = (vectors @ vectors[expected].T).toarray().max(axis=1, initial=0.0)
        left = scores * (1 - np.clip(similar, 0, 1))
        left[expected] = -1.0
        expected.append(int(np.argmax(left)))
    found = _diverse(scores, vectors, 120)
    assert len(set(found)) == 120
    # Sums are rounded, so that equal gains may come in another order.
    gains = []
    for order in (found, expected):
        similar = [
            (vectors[order[:k]] @ vectors[[i]].T).toarray().max(initial=0.0)
            for k, i in enumerate(order)
        ]
        gains.append(scores[order] * (1 - np.clip(similar, 0, 1)))
    assert_allclose(*gains, atol=1e-9)


def test_the_same_unsure_word_is_not_chosen_over_and_over():
    """Sentences that differ in what the tagger is sure of are alike."""
    X = [["in", "Rome"], ["on", "Monday"], ["at", "noon"]] * 10
    y = [["O", "B-LOC"], ["O", "O"], ["O", "O"]] * 10
    tagger = make_pipeline(WordVectorizer(), CRFTagger()).fit(X, y)
    pool = [["in", "Oslo"], ["on", "Oslo"], ["in", "Bergen"], ["at", "noon"]]
    vectors = _vectors(find_tagger(tagger), pool)
    alike = (vectors @ vectors.T).toarray()
    assert_allclose(np.diag(alike), 1.0)
    assert alike[0, 1] > alike[0, 2] > alike[0, 3]


def test_estimators(fitted):
    _, pool = fitted
    X, y = sentences(30)
    pipeline = make_pipeline(SequenceVectorizer(), CRFTagger(l2=0.3)).fit(X, y)
    search = GridSearchCV(CRFTagger(), {"l2": [0.3]}, cv=2).fit(X, y)
    spans = SpanTaggerCV(CRFTagger(l2=0.3), cv=2, thresholds=3).fit(X, y)
    expected = choose_sequences(fitted[0], pool, 5)
    for estimator in (pipeline, search, spans):
        numbers, scores = choose_sequences(estimator, pool, 5)
        assert_array_equal(numbers, expected[0])
        assert_allclose(scores, expected[1])
    for estimator in (CRF(c2=0.1).fit(X, y), PerceptronTagger(random_state=0).fit(X, y)):
        assert len(choose_sequences(estimator, pool, 5)[0]) == 5
    with pytest.raises(TypeError, match="Expected a fitted tagger"):
        choose_sequences(SequenceVectorizer().fit(X), pool, 5)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shape", [(30, 3), (30, 4, 3)], ids=["rows", "grid"])
def test_rows_and_grids(shape, strategy):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=shape), rng.integers(3, size=shape[:-1])
    tagger = CRFTagger().fit(X, y)
    numbers, scores = choose_sequences(tagger, X, 4, strategy=strategy, random_state=0)
    assert len(set(numbers.tolist())) == 4
    assert (scores >= 0).all()


def test_empty_sequences_come_last(fitted):
    tagger, pool = fitted
    for strategy in ("spans", "entropy"):
        numbers, scores = choose_sequences(tagger, [[], *pool[:3]], 4, strategy=strategy)
        assert numbers[-1] == 0
        assert scores[-1] == 0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n": 0}, "n must be a positive integer, got 0"),
        ({"strategy": "best"}, "strategy"),
        ({"diverse": "yes"}, "diverse must be True or False"),
        ({"X": []}, "empty|at least one|no sequence"),
    ],
)
def test_bad_arguments(fitted, params, message):
    tagger, pool = fitted
    with pytest.raises(ValueError, match=message):
        choose_sequences(tagger, **{"X": pool, "n": 3, **params})
