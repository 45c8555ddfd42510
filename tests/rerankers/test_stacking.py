"""A reranker on a tagger: no sequence is seen before it is decoded, and it helps where it can."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from skstruct import SequenceVectorizer
from skstruct.metrics import chunk_f1_score
from skstruct.model_selection import StratifiedSequenceKFold
from skstruct.rerankers.descent import PerceptronReranker
from skstruct.rerankers.stacking import (
    NBestReranker,
    chunk_cost,
    chunk_features,
    hamming_cost,
    label_features,
)
from skstruct.rerankers.vrda import VRDAReranker
from skstruct.taggers.crf import CRFTagger
from skstruct.taggers.perceptron import PerceptronTagger


def parity_task(seed, n_sequences=80):
    """Labels of which an even number is "b", which no chain of first order can know.

    The words say what a label is, but for one word that is ambiguous.
    """
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        length = int(rng.integers(3, 7))
        labels = rng.choice(["a", "b"], size=length)
        doubtful = int(rng.integers(length))
        n_others = np.sum(np.delete(labels, doubtful) == "b")
        labels[doubtful] = "b" if n_others % 2 else "a"
        words = [f"w{label}" for label in labels]
        words[doubtful] = "either"
        X.append([{"word": word} for word in words])
        y.append(labels.tolist())
    return X, y


def parity(x, labels):
    return {"odd": labels.count("b") % 2, "words": len(x)}


def test_a_global_feature_finds_what_no_chain_can():
    X, y = parity_task(0)
    X_test, y_test = parity_task(1)
    tagger = CRFTagger(l2=0.1)
    alone = clone(tagger).fit(X, y).score(X_test, y_test)
    model = NBestReranker(tagger, VRDAReranker(random_state=0), features=parity, n_best=4)
    assert alone < 0.95
    assert model.fit(X, y).score(X_test, y_test) == 1.0


def test_ready_made_features_count_what_labels_have_together():
    labels = ["B-A", "I-A", "O", "B-B", "B-A"]
    assert chunk_features(None, labels) == {
        "A repeated": 1,
        "A and B": 1,
        "start, A": 1,
        "A, B": 1,
        "B, A": 1,
        "A, end": 1,
        "start, A, B": 1,
        "A, B, A": 1,
        "B, A, end": 1,
        "A of length 2": 1,
        "B of length 1": 1,
        "A of length 1": 1,
    }
    assert label_features(None, [0, 0, 0]) == {
        "0 repeated": 1,
        "start, 0": 1,
        "0, 0": 2,
        "0, end": 1,
        "start, 0, 0": 1,
        "0, 0, 0": 1,
        "0, 0, end": 1,
    }
    assert label_features(None, []) == chunk_features(None, []) == {"start, end": 1}


@pytest.mark.parametrize("scheme", ["chunks", "labels", "numbers"])
def test_ready_made_features_find_what_no_chain_can(scheme):
    # One "c" or none: whether a doubtful word is "c" depends on a word of any distance.
    names = {"chunks": ("O", "B-C"), "labels": ("a", "c"), "numbers": (0, 1)}[scheme]
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(160):
        length = int(rng.integers(5, 9))
        first, last = sorted(rng.choice(length, 2, replace=False).tolist())
        words, labels = ["plain"] * length, [names[0]] * length
        words[last] = "doubtful"
        if rng.random() < 0.5:
            words[first], labels[first] = "sure", names[1]
        else:
            labels[last] = names[1]
        X.append([{"word": word} for word in words])
        y.append(labels)
    train, test = (X[:80], y[:80]), (X[80:], y[80:])
    given = {"tagger": CRFTagger(l2=0.1), "reranker": VRDAReranker(random_state=0), "n_best": 4}
    alone, with_features = (
        NBestReranker(**given, features=features).fit(*train).score(*test)
        for features in (None, "labels")
    )
    assert with_features == 1.0 > alone


class SpyTagger(BaseEstimator):
    """Remembers which sequences each fit saw, and looks whether it decodes one of them."""

    decoded = []

    def fit(self, X, y):
        self.seen_ = {x[0]["id"] for x in X}
        self.tagger_ = PerceptronTagger(random_state=0, max_iter=2, tol=None).fit(X, y)
        self.classes_ = self.tagger_.classes_
        return self

    def predict_nbest(self, X, n_best):
        SpyTagger.decoded += [(x[0]["id"], x[0]["id"] in self.seen_) for x in X]
        return self.tagger_.predict_nbest(X, n_best=n_best)


@pytest.mark.parametrize("cv", [2, 5, KFold(4, shuffle=True, random_state=0)])
def test_no_sequence_is_decoded_by_a_tagger_that_saw_it(cv):
    X, y = parity_task(2, n_sequences=30)
    X = [[{**token, "id": i} for token in x] for i, x in enumerate(X)]
    SpyTagger.decoded.clear()
    NBestReranker(SpyTagger(), features=parity, cv=cv).fit(X, y)
    assert sorted(SpyTagger.decoded) == [(i, False) for i in range(30)]


def test_the_reranker_gets_the_costs_and_features_of_the_lists():
    calls = []

    class Recorder(BaseEstimator):
        def fit(self, X, y):
            calls.append((X, y))
            return self

        def predict(self, X):
            return np.zeros(len(X), int)

    X, y = parity_task(3, n_sequences=20)
    folds = list(KFold(2).split(X))
    model = NBestReranker(CRFTagger(), Recorder(), n_best=3, features=parity, cv=folds).fit(X, y)
    ((groups, costs),) = calls
    expected = []
    for train, held in folds:
        tagger = CRFTagger().fit([X[i] for i in train], [y[i] for i in train])
        lists = tagger.predict_nbest([X[i] for i in held], n_best=3)
        for i, found in zip(held, lists, strict=True):
            c = [np.mean(np.array(y[i]) != np.array(f.labels)) for f in found]
            if max(c) > min(c):
                expected.append((found, c))
    assert len(groups) == len(expected) == model.n_groups_ > 0
    for group, cost, (found, c) in zip(groups, costs, expected, strict=True):
        assert cost == pytest.approx(c)
        for candidate, labelling in zip(group, found, strict=True):
            assert candidate["base_score"] == pytest.approx(labelling.score - found[0].score)
            assert candidate["odd"] == labelling.labels.count("b") % 2
        assert [candidate["first"] for candidate in group] == [True, False, False]
    # A reranker that always takes the first is the tagger itself.
    assert model.predict(X).tolist() == model.tagger_.predict(X).tolist()


def test_costs():
    assert hamming_cost(["a", "b", "a"], ["a", "a", "b"]) == pytest.approx(2 / 3)
    assert hamming_cost([], []) == 0
    assert chunk_cost(["O", "O"], ["O", "O"]) == 0
    assert chunk_cost(["B-X", "O"], ["O", "O"]) == 1
    pairs = [
        (["B-X", "I-X", "B-Y"], ["B-X", "I-X", "B-X"]),
        (["B-X", "O", "B-Y"], ["B-X", "B-X", "B-Y"]),
    ]
    for true, found in pairs:
        assert chunk_cost(true, found) == pytest.approx(1 - chunk_f1_score([true], [found]))


def test_a_cost_of_the_user():
    X, y = parity_task(4)
    asked = []

    def cost(y_true, y_pred):
        asked.append(len(y_true) == len(y_pred))
        return float(y_true != y_pred)

    model = NBestReranker(CRFTagger(l2=0.1), features=parity, cost=cost, n_best=3).fit(X, y)
    assert len(asked) == 3 * len(X)
    assert all(asked)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("container", ["batch", "matrices", "grid", "rows"])
def test_formats(container):
    X, y = parity_task(5, n_sequences=60)
    batch = SequenceVectorizer().fit_transform(X)
    if container == "batch":
        X = batch
    elif container == "matrices":
        X = [x.toarray() for x in batch]
    elif container == "grid":
        X, y = np.stack([x.toarray()[:3] for x in batch]), np.array([labels[:3] for labels in y])
    else:
        X, y = batch.X.toarray(), np.concatenate(y)
    model = NBestReranker(CRFTagger(), cv=3, n_best=2).fit(X, y)
    tagged = model.tagger_.predict(X)
    predicted = model.predict(X)
    assert predicted.shape == tagged.shape
    assert predicted.dtype == tagged.dtype
    assert type(predicted[0]) is type(tagged[0])
    assert model.score(X, y) > 0.8


def test_the_score_of_the_tagger_as_baseline():
    X, y = parity_task(12)
    # With a threshold that no gradient passes, the baseline is all that is left.
    reranker = VRDAReranker(baseline="base_score", l1=1e6, random_state=0)
    model = NBestReranker(CRFTagger(l2=0.1), reranker, features=parity, n_best=4).fit(X, y)
    assert np.count_nonzero(model.reranker_.coef_) == 0
    assert model.predict(X).tolist() == model.tagger_.predict(X).tolist()
    free = clone(model).set_params(reranker__l1=0.0).fit(X, y)
    base = free.reranker_.feature_names_in_.tolist().index("base_score")
    assert free.reranker_.coef_[base] == 0.0
    assert free.score(X, y) > model.score(X, y)


def test_not_fitted():
    X, y = parity_task(12, n_sequences=3)
    with pytest.raises(NotFittedError):
        NBestReranker(CRFTagger()).predict(X)
    with pytest.raises(NotFittedError):
        NBestReranker(CRFTagger()).score(X, y)


def test_attribute_strings_count():
    X, y = parity_task(6)

    def names(x, labels):
        return ["b" for label in labels if label == "b"]

    model = NBestReranker(CRFTagger(), PerceptronReranker(random_state=0), features=names, n_best=2)
    model.fit(X, y)
    names_in = model.reranker_.feature_names_in_.tolist()
    assert names_in == ["b", "base_score", "first"]
    group = model._groups(X[:1], model.tagger_.predict_nbest(X[:1], n_best=1), [0])[0]
    assert group[0]["b"] == y[0].count("b") or group[0]["b"] == y[0].count("b") + 1


def test_empty_sequences_stay_empty():
    X, y = parity_task(7)
    model = NBestReranker(CRFTagger(), features=parity).fit([*X, []], [*y, []])
    assert model.predict([[], X[0]])[0] == []


def test_nothing_to_rerank_is_an_error():
    X, _ = parity_task(8)
    y = [["a"] * len(x) for x in X]
    model = NBestReranker(CRFTagger())
    with pytest.raises(ValueError, match="nothing to rerank"):
        model.fit(X, y)
    assert not hasattr(model, "tagger_")


@pytest.mark.parametrize("bad", [{"n_best": 1}, {"cost": "bleu"}, {"tagger": 3}, {"features": 1}])
def test_bad_parameters(bad):
    X, y = parity_task(9, n_sequences=10)
    with pytest.raises(ValueError, match=next(iter(bad))):
        NBestReranker(**{"tagger": CRFTagger(), **bad}).fit(X, y)


@pytest.mark.parametrize(
    ("cv", "fold"),
    [
        ((1, 2), "fold 0 is 1"),
        ([(1, 2)], r"fold 0 is \(1, 2\)"),
        ([([0, 1], [2]), ([0], [1], [2])], "fold 1 is"),
        ([([0, 1], [99])], "fold 0 .* from 0 to 9"),
        ([([True] * 10, [False] * 10)], "fold 0"),
        (["ab"], "fold 0 is 'ab'"),
        ([([], [0, 1])], r"fold 0 is \(\[\], \[0, 1\]\)"),
        ([([0, 1], [2]), ([0, 1], [])], r"fold 1 is \(\[0, 1\], \[\]\)"),
    ],
)
def test_folds_that_are_no_pairs_of_numbers(cv, fold):
    X, y = parity_task(9, n_sequences=10)
    with pytest.raises(ValueError, match=f"^cv: {fold}"):
        NBestReranker(CRFTagger(), cv=cv).fit(X, y)
    with pytest.raises(ValueError, match=r"^cv=11 does not fit 10 sequences: .*n_splits=11"):
        NBestReranker(CRFTagger(), cv=11).fit(X, y)


class NotFitted(BaseEstimator):
    def fit(self, X, y):
        pytest.fail("it was fitted")

    predict_nbest = fit


def test_what_does_not_fit_is_told_before_the_tagger_is_fitted():
    X, y = parity_task(9, n_sequences=10)
    chunks = [[None if i == 7 else "B-X"] * len(x) for i, x in enumerate(X)]
    for given, message in (
        ((X, y, {"cv": []}), "cv has no fold"),
        ((X, y, {"cv": 11}), "cv=11 does not fit 10 sequences"),
        ((X, None, {}), "requires y"),
        ((X, y[:3], {}), "X has 10 sequences, but y has labels for 3"),
        ((X, y, {"cost": "chunk_f1"}), "Sequence 0: .* the labels of scheme='conlleval' are"),
        ((X, chunks, {"cost": "chunk_f1"}), "Sequence 7, token 0 has no label"),
    ):
        X, labels, parameters = given
        with pytest.raises(ValueError, match=message):
            NBestReranker(NotFitted(), **parameters).fit(X, labels)


def test_splitters_may_look_at_the_labels():
    X, y = parity_task(9, n_sequences=20)
    cv = StratifiedSequenceKFold(2)
    pairs = NBestReranker(CRFTagger(), features=parity, cv=list(cv.split(X, y))).fit(X, y)
    found = NBestReranker(CRFTagger(), features=parity, cv=cv).fit(X, y)
    assert_array_equal(found.reranker_.coef_, pairs.reranker_.coef_)


def fitting(features=parity, **parameters):
    """A reranker whose functions are those of a user, and its training set."""
    X, y = parity_task(4)
    for i, x in enumerate(X):
        x[0]["number"] = f"n{i}"
    tagger = CRFTagger(l2=0.1)
    return NBestReranker(tagger, features=features, n_best=3, **parameters).fit(X, y), X


@pytest.mark.parametrize("value", [None, np.nan, np.inf, "1", np.ones(2)])
def test_costs_that_are_no_numbers(value):
    with pytest.raises(ValueError, match=r"Sequence 0: cost returned .*; expected a finite number"):
        fitting(cost=lambda y_true, y_pred: value)


@pytest.mark.parametrize("value", ["text", 3])
def test_features_that_are_none(value):
    with pytest.raises(ValueError, match=r"Sequence 0: features returned .*; expected a dict or"):
        fitting(lambda x, labels: value)


def test_errors_of_functions_and_of_the_reranker_name_the_sequence():
    def features(x, labels):
        return {"a": np.nan if x[0]["number"] == bad else len(x), "b": labels.count("b")}

    def cost(y_true, y_pred):
        raise KeyError("of the user")

    bad = "n17"
    # The reranker gets the lists without those in which all label sequences cost the same.
    with pytest.raises(ValueError, match=r"^Sequence 17, candidate 0: feature 'a' is nan"):
        fitting(features)
    bad = None
    model, X = fitting(features)
    bad = "n2"
    with pytest.raises(ValueError, match=r"^Sequence 2, candidate 0: feature 'a' is nan"):
        model.predict(X)
    with pytest.raises(KeyError) as raised:
        fitting(cost=cost)
    assert raised.value.__notes__ == ["This happened in sequence 0."]


def test_functions_may_change_the_labels_they_get():
    def sorting(x, labels):
        labels.sort()
        return parity(x, labels)

    model, X = fitting()
    changing, _ = fitting(sorting)
    assert changing.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("make", [sp.coo_matrix, sp.bsr_matrix])
def test_rows_of_any_sparse_format(make):
    X, y = parity_task(5, n_sequences=60)
    rows, labels = SequenceVectorizer().fit_transform(X).X, np.concatenate(y)
    model, expected = (
        NBestReranker(CRFTagger(), cv=3, n_best=2, features="labels").fit(of, labels)
        for of in (make(rows), rows)
    )
    assert_array_equal(model.reranker_.coef_, expected.reranker_.coef_)
    assert_array_equal(model.predict(make(rows)), expected.predict(rows))


def test_sequences_may_be_iterators():
    X, y = parity_task(9, n_sequences=20)
    model = NBestReranker(CRFTagger(), features=parity).fit(map(iter, X), [iter(of) for of in y])
    expected = NBestReranker(CRFTagger(), features=parity).fit(X, y)
    assert_array_equal(model.reranker_.coef_, expected.reranker_.coef_)


def test_folds_as_pairs():
    X, y = parity_task(9, n_sequences=20)
    pairs = list(KFold(3).split(X))
    reranker = VRDAReranker(random_state=0)
    found = [
        NBestReranker(CRFTagger(), reranker, features=parity, cv=cv).fit(X, y).reranker_.coef_
        for cv in (3, pairs, [(train.tolist(), held.tolist()) for train, held in pairs])
    ]
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


def test_pipeline_grid_search_and_cross_validation():
    X, y = parity_task(10, n_sequences=60)

    def odd(x, labels):
        return {"odd": labels.count("b") % 2}

    model = NBestReranker(
        CRFTagger(l2=0.1), VRDAReranker(random_state=0), features=odd, n_best=3, cv=3
    )
    pipeline = make_pipeline(SequenceVectorizer(), model)
    grid = {"nbestreranker__reranker__l1": [0.0, 1e6]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    # With a threshold that no gradient passes, only the tagger is left.
    alone = GridSearchCV(make_pipeline(SequenceVectorizer(), CRFTagger(l2=0.1)), {}, cv=3).fit(X, y)
    with_reranker, without = search.cv_results_["mean_test_score"]
    assert without == pytest.approx(alone.best_score_)
    assert with_reranker > without
    predicted = cross_val_predict(pipeline, X, y, cv=3)
    assert [len(labels) for labels in predicted] == [len(labels) for labels in y]


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_pickles_and_repeats(n_jobs):
    X, y = parity_task(11)
    model = NBestReranker(CRFTagger(), features=parity).fit(X, y)
    again = clone(model).set_params(n_jobs=n_jobs).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(model.reranker_.coef_, again.reranker_.coef_)
    assert copy.predict(X).tolist() == model.predict(X).tolist()
