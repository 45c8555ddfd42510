"""`AnnotatorCRF`: every step against enumeration and plain twins, what it recovers, bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import emission_scores, labellings, path_score, weights_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skstruct import (
    AnnotatorCRF,
    CRFTagger,
    SequenceBatch,
    WordVectorizer,
    predict_spans,
)
from skstruct.export import write_json
from skstruct.learning import crowd

RIGHT, ANY = 1.0, 1.0


def crowd_data(seed, n_sequences=4, k=2, n_annotators=3, longest=3, n_features=2):
    """Random sequences, and labels of annotators; some are missing, and some tokens left open."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, longest + 1), n_features)) for _ in range(n_sequences)]
    y = []
    for x in X:
        labels = [[int(c) for c in rng.integers(k, size=len(x))] for _ in range(n_annotators)]
        kept = rng.random(n_annotators) < 0.7
        if len(x) > 1:
            labels[0][1] = None
        y.append([one if here else None for one, here in zip(labels, kept, strict=True)])
    # All labels occur, and every annotator has labelled something.
    X.append(rng.normal(size=(k, n_features)))
    y.append([list(range(k))] * n_annotators)
    return X, y


def evidence_of(votes, log_confusion, length):
    """Log-likelihood of right labels, token by token."""
    k = log_confusion.shape[1]
    found = np.zeros((length, k))
    for annotator, labels in enumerate(votes):
        for t, label in enumerate(labels or []):
            if label is not None:
                found[t] += log_confusion[annotator][:, label]
    return found


def by_enumeration(tagger, X, y):
    """Objective, log-likelihood and marginals, over all labellings."""
    weights, log_confusion = weights_of(tagger), np.log(tagger.confusion_)
    k, log_likelihood, marginals = len(tagger.classes_), 0.0, []
    for x, votes in zip(X, y, strict=True):
        plain = emission_scores(x, weights)
        given = plain + evidence_of(votes, log_confusion, len(x))
        every = labellings(len(x), k)
        without, within = (
            np.array([path_score(scores, weights.transition, one) for one in every])
            for scores in (plain, given)
        )
        log_likelihood += logsumexp(within) - logsumexp(without)
        p, found = softmax(within), np.zeros((len(x), k))
        for one, share in zip(every, p, strict=True):
            found[np.arange(len(x)), one] += share
        marginals.append(found)
    squares = sum(np.square(part).sum() for part in weights)
    prior = RIGHT * np.eye(k) + ANY / k
    objective = tagger.l2 / 2 * squares - log_likelihood - np.sum(prior * log_confusion)
    return objective, log_likelihood, marginals


# ------------------------------------------------------------------------ expectation maximisation


@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(1, 3), st.integers(0, 3))
def test_expectations_and_the_bound(seed, k, n_annotators, max_iter):
    X, y = crowd_data(seed, k=k, n_annotators=n_annotators)
    tagger = AnnotatorCRF(l2=0.3, max_iter=max(max_iter, 1), tol=0.0)
    with pytest.warns(ConvergenceWarning, match=r"max_iter"):
        tagger.fit(X, y)
    objective, log_likelihood, marginals = by_enumeration(tagger, X, y)
    assert_allclose(tagger.history_["objective"][-1], objective, rtol=1e-9)
    assert_allclose(tagger.history_["log_likelihood"][-1], log_likelihood, rtol=1e-9)
    assert np.all(np.diff(tagger.history_["objective"]) <= 1e-10 * objective)
    labels, proba = tagger.consensus(X, y)
    for ours, theirs in zip(proba, marginals, strict=True):
        assert_allclose(ours, theirs, atol=1e-9)
    log_confusion = np.log(tagger.confusion_)
    weights = weights_of(tagger)
    for x, votes, found in zip(X, y, labels, strict=True):
        scores = emission_scores(x, weights) + evidence_of(votes, log_confusion, len(x))
        best = max(path_score(scores, weights.transition, o) for o in labellings(len(x), k))
        assert_allclose(path_score(scores, weights.transition, found), best, rtol=1e-9)


class PlainEM:
    """The learner, over all labellings of each sequence."""

    def __init__(self, X, y, k, l2):
        self.y, self.k, self.l2 = y, k, l2
        self.lengths, self.every = [len(x) for x in X], [labellings(len(x), k) for x in X]
        self.features = [
            np.array([self._features(x, one) for one in every])
            for x, every in zip(X, self.every, strict=True)
        ]
        self.prior = RIGHT * np.eye(k) + ANY / k

    def _features(self, x, labels):
        k = self.k
        coef, transition, biases = np.zeros((k, x.shape[1])), np.zeros((k, k)), np.zeros((3, k))
        for t, label in enumerate(labels):
            coef[label] += x[t]
            biases[0, label] += 1
            if t:
                transition[labels[t - 1], label] += 1
        biases[1, labels[0]] = biases[2, labels[-1]] = 1
        return np.concatenate([part.ravel() for part in (coef, transition, biases)])

    def minimize(self, shares, w):
        """M step of the CRF, by the probabilities of the labellings of each sequence."""

        def value(w):
            total, gradient = self.l2 / 2 * w @ w, self.l2 * w
            for phi, q in zip(self.features, shares, strict=True):
                scores = phi @ w
                total += logsumexp(scores) - q @ scores
                gradient = gradient + phi.T @ (softmax(scores) - q)
            return total, gradient

        return minimize(value, w, jac=True, method="BFGS", options={"gtol": 1e-9}).x

    def confusion(self, marginals):
        """M step of the annotators, by the probabilities of the labels of each token."""
        counts = np.tile(self.prior, (len(self.y[0]), 1, 1))
        for votes, found in zip(self.y, marginals, strict=True):
            for annotator, labels in enumerate(votes):
                for t, label in enumerate(labels or []):
                    if label is not None:
                        counts[annotator][:, label] += found[t]
        return counts / counts.sum(axis=2, keepdims=True)

    def start(self):
        """Dawid and Skene's model, from majority vote; the CRF of its labels."""
        votes = [np.zeros((n, self.k)) for n in self.lengths]
        for of_one, counts in zip(self.y, votes, strict=True):
            for labels in of_one:
                for t, label in enumerate(labels or []):
                    if label is not None:
                        counts[t, label] += 1
        p = [counts + 1e-3 * (sum(v.sum(axis=0) for v in votes) + 1) for counts in votes]
        p = [of_one / of_one.sum(axis=1, keepdims=True) for of_one in p]
        for _ in range(100):
            shares = sum(of_one.sum(axis=0) for of_one in p) + 1e-9
            log_confusion = np.log(self.confusion(p))
            pairs = zip(self.y, self.lengths, strict=True)
            scores = [
                np.log(shares / shares.sum()) + evidence_of(v, log_confusion, n) for v, n in pairs
            ]
            before, p = p, [softmax(s, axis=1) for s in scores]
            if max(np.abs(a - b).max() for a, b in zip(p, before, strict=True)) < 1e-4:
                break
        best = [tuple(s.argmax(axis=1).tolist()) for s in scores]
        hard = [np.array([one == b for one in e], float) for e, b in zip(self.every, best)]  # noqa: B905
        w = self.minimize(hard, np.zeros(self.features[0].shape[1]))
        return w, self.confusion(p)

    def run(self, n_iter):
        """Weights, confusions and objective after each iteration."""
        w, confusion = self.start()
        for iteration in range(n_iter + 1):
            log_confusion, shares, marginals, objective = np.log(confusion), [], [], 0.0
            for phi, every, votes, n in zip(
                self.features, self.every, self.y, self.lengths, strict=True
            ):
                evidence = evidence_of(votes, log_confusion, n)
                more = np.array([sum(evidence[t, j] for t, j in enumerate(one)) for one in every])
                objective += logsumexp(phi @ w) - logsumexp(phi @ w + more)
                shares.append(softmax(phi @ w + more))
                found = np.zeros((n, self.k))
                for one, q in zip(every, shares[-1], strict=True):
                    found[np.arange(n), one] += q
                marginals.append(found)
            objective += self.l2 / 2 * w @ w - np.sum(self.prior * log_confusion)
            yield w, confusion, objective
            if iteration < n_iter:
                w, confusion = self.minimize(shares, w), self.confusion(marginals)


@pytest.mark.parametrize("seed", range(3))
def test_every_iteration_is_that_of_a_plain_twin(seed):
    X, y = crowd_data(seed, n_sequences=6, k=3)
    twin = PlainEM(X, y, 3, 0.5)
    *_, (w, confusion, _) = found = list(twin.run(4))
    with pytest.warns(ConvergenceWarning):
        tagger = AnnotatorCRF(l2=0.5, max_iter=4, tol=1e-13).fit(X, y)
    assert_allclose(tagger.history_["objective"], [value for *_, value in found], rtol=1e-8)
    assert_allclose(tagger.confusion_, confusion, atol=1e-5)
    assert_allclose(np.concatenate([part.ravel() for part in weights_of(tagger)]), w, atol=1e-4)


def test_sequences_of_length_one_are_logistic_regression_with_annotators():
    """Raykar et al. 2010: softmax of the features, confusions, EM."""
    rng = np.random.default_rng(0)
    X, right = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    X[np.arange(60), right] += 1.5
    y = np.where(rng.random((60, 4)) < 0.7, right[:, None], rng.integers(3, size=(60, 4)))
    tagger = AnnotatorCRF(l2=1.0, fit_intercept=False, max_iter=500, tol=1e-12).fit(X, y)

    votes, prior = np.eye(3)[y], RIGHT * np.eye(3) + ANY / 3
    p, w = votes.mean(axis=1), np.zeros((3, 3))

    def loss(flat, p):
        scores = X @ flat.reshape(3, 3).T
        gradient = (softmax(scores, axis=1) - p).T @ X
        value = np.sum(logsumexp(scores, axis=1) - np.sum(p * scores, axis=1))
        return value + flat @ flat / 2, gradient.ravel() + flat

    for _ in range(500):
        w = minimize(loss, w.ravel(), (p,), jac=True, options={"gtol": 1e-10}).x.reshape(3, 3)
        confusion = np.einsum("nj,nak->ajk", p, votes) + prior
        confusion /= confusion.sum(axis=2, keepdims=True)
        before = p
        p = softmax(X @ w.T + np.einsum("nak,ajk->nj", votes, np.log(confusion)), axis=1)
        if np.abs(p - before).max() < 1e-9:
            break
    assert_allclose(tagger.predict_proba(X), softmax(X @ w.T, axis=1), atol=1e-4)
    assert_allclose(tagger.confusion_, confusion, atol=1e-4)
    labels, proba = tagger.consensus(X, y)
    assert_allclose(proba, p, atol=1e-4)
    assert_array_equal(labels, p.argmax(axis=1))


def test_a_single_step_for_each_m_step_is_enough(monkeypatch):
    X, y = crowd_data(5, n_sequences=20, k=3)
    monkeypatch.setattr(crowd, "_MOST_STEPS", 1)
    one = AnnotatorCRF(l2=0.1, max_iter=30, tol=1e-9)
    with pytest.warns(ConvergenceWarning):
        one.fit(X, y)
    assert len(one.history_["objective"]) == 31
    assert np.all(np.diff(one.history_["objective"]) < 0)


# ---------------------------------------------------------------------------- what is to be learnt


def words(n_sequences, seed=0):
    """Sentences of tags whose words tell them, mostly."""
    rng = np.random.default_rng(seed)
    y = [rng.choice(["A", "B", "C"], rng.integers(2, 9)).tolist() for _ in range(n_sequences)]
    told = [[b if rng.random() < 0.9 else str(rng.choice(["A", "B"])) for b in one] for one in y]
    return [[[f"{b}{rng.integers(20)}"] for b in one] for one in told], y


def annotated(y, confusions, seed=0):
    rng = np.random.default_rng(seed)
    names = ["A", "B", "C"]
    return [
        {
            f"annotator {a}": [str(rng.choice(names, p=c[names.index(label)])) for label in one]
            for a, c in enumerate(confusions)
        }
        for one in y
    ]


CONFUSIONS = np.array(
    [
        [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]],
        [[0.6, 0.4, 0.0], [0.0, 1.0, 0.0], [0.3, 0.1, 0.6]],
        [[1.0, 0.0, 0.0], [0.7, 0.3, 0.0], [0.1, 0.1, 0.8]],
    ]
)


def test_confusions_are_recovered():
    X, right = words(400)
    tagger = AnnotatorCRF().fit(X, annotated(right, CONFUSIONS))
    assert tagger.annotators_.tolist() == [f"annotator {a}" for a in range(3)]
    assert_allclose(tagger.confusion_.sum(axis=2), 1.0)
    assert np.abs(tagger.confusion_ - CONFUSIONS).max() < 0.06
    labels, _ = tagger.consensus(X, annotated(right, CONFUSIONS))
    stacked = np.concatenate([np.array(labels.tolist()[i]) for i in range(len(labels))])
    votes = [sorted(one.values(), key=str) for one in annotated(right, CONFUSIONS)]
    majority = [max(three, key=three.count) for one in votes for three in zip(*one, strict=True)]
    gold = np.concatenate([np.array(one) for one in right])
    assert np.mean(stacked == gold) > np.mean(np.array(majority) == gold) + 0.03


def test_perfect_annotators_are_labels():
    X, y = words(60)
    tagger = AnnotatorCRF(l2=0.5, tol=1e-8, max_iter=200).fit(X, [[one] * 6 for one in y])
    every = {"all_possible_states": True, "all_possible_transitions": True}
    crf = CRFTagger(l2=0.5, tol=1e-8, **every).fit(X, y)
    assert tagger.predict(X).tolist() == crf.predict(X).tolist()
    assert_allclose(tagger.coef_, crf.coef_, atol=2e-2)
    assert_allclose(tagger.transition_, crf.transition_, atol=2e-2)
    assert np.all(tagger.confusion_[:, range(3), range(3)] > 0.95)


def test_estimator_is_the_crf():
    X, right = words(30)
    tagger = AnnotatorCRF(l2=0.5).fit(X, annotated(right, CONFUSIONS))
    crf = tagger.estimator_
    assert type(crf) is CRFTagger
    assert crf.l2 == 0.5
    for ours, theirs in zip(tagger.predict_proba(X), crf.predict_proba(X), strict=True):
        assert_array_equal(ours, theirs)
    assert not hasattr(crf, "confusion_")
    with pytest.raises(AttributeError):
        AnnotatorCRF().estimator_  # noqa: B018


def test_stored():
    io = pytest.importorskip("skops.io")
    X, right = words(20)
    tagger = AnnotatorCRF().fit(X, annotated(right, CONFUSIONS))
    stored = io.dumps(tagger)
    assert same_model(tagger, io.loads(stored, io.get_untrusted_types(data=stored)))
    tagger.confusion_ = tagger.confusion_[:2]
    stored = io.dumps(tagger)
    with pytest.raises(ValueError, match="confusion_ has the shape"):
        io.loads(stored, io.get_untrusted_types(data=stored))


def test_exported_as_its_crf(tmp_path):
    X, right = words(20)
    X, y = [[token[0] for token in x] for x in X], annotated(right, CONFUSIONS)
    vectorizer, tagger = (
        make_pipeline(WordVectorizer(), AnnotatorCRF()).fit(X, y).named_steps.values()
    )
    paths = tmp_path / "annotators.json", tmp_path / "crf.json"
    for path, one in zip(paths, (tagger, tagger.estimator_), strict=True):
        write_json(make_pipeline(vectorizer, one), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_constraint():
    """Annotators may break it; answers do not."""
    X, y = words(30)
    broken = {"A": "O", "B": "B-X", "C": "I-X"}
    y = [[[broken[b] for b in one]] * 2 for one in y]
    tagger = AnnotatorCRF(constraint="IOB2").fit(X, y)
    found = [*tagger.predict(X), *tagger.consensus(X, y)[0]]
    assert all(a != "O" for one in found for a, b in zip(["O", *one], one) if b == "I-X")  # noqa: B905
    assert np.all(np.diff(tagger.history_["objective"]) <= 0)


def same_model(a, b):
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("coef_", "transition_", "start_", "confusion_", "annotators_", "classes_")
    )


def test_weights():
    X, right = words(20)
    y = annotated(right, CONFUSIONS)
    once = AnnotatorCRF(tol=1e-10, max_iter=500).fit(X, y, sample_weight=[2] * 10 + [1] * 10)
    twice = clone(once).fit(X[:10] + X, y[:10] + y)
    assert_allclose(once.history_["objective"][0], twice.history_["objective"][0], rtol=1e-4)
    assert_allclose(once.history_["objective"][-1], twice.history_["objective"][-1], rtol=1e-7)
    assert_allclose(once.confusion_, twice.confusion_, atol=1e-3)
    zero = AnnotatorCRF().fit(X, [*y[:19], {"annotator 9": 3}], sample_weight=[1] * 19 + [0])
    assert same_model(zero, AnnotatorCRF().fit(X[:19], y[:19]))


def test_nothing_is_learnt_from_what_nobody_has_labelled():
    X, right = words(20)
    y = annotated(right, CONFUSIONS)
    other = [[["unheard"], ["of"]]]
    for nobody in ({}, None, {"annotator 1": None}, {"annotator 1": [None, None]}):
        tagger = AnnotatorCRF().fit(other + X, [nobody, *y])
        assert same_model(tagger, AnnotatorCRF().fit(X, y))
        labels, proba = tagger.consensus(other, [nobody])
        assert labels.tolist() == tagger.predict(other).tolist()
        assert_allclose(proba[0], tagger.predict_proba(other)[0])


# ----------------------------------------------------------------------------------------- formats


def test_forms_of_y():
    X, right = words(20)
    y = annotated(right, CONFUSIONS)
    del y[3]["annotator 1"]
    listed = [[one.get(f"annotator {a}") for a in range(3)] for one in y]
    named, numbered = AnnotatorCRF().fit(X, y), AnnotatorCRF().fit(X, listed)
    assert_array_equal(named.confusion_, numbered.confusion_)
    assert numbered.annotators_.tolist() == [0, 1, 2]
    arrays = np.empty(20, object)
    arrays[:] = [[None if z is None else np.array(z) for z in one] for one in listed]
    assert same_model(AnnotatorCRF().fit(X, arrays), numbered)
    assert same_model(AnnotatorCRF().fit(X, (tuple(one) for one in listed)), numbered)
    reverse = [dict(reversed(one.items())) for one in y]
    assert same_model(AnnotatorCRF().fit(X, reverse), named)


def test_arrays():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 4, 3)), rng.integers(2, size=(12, 3, 4))
    grid = AnnotatorCRF().fit(X, y)
    lists = AnnotatorCRF().fit(list(X), y.tolist())
    assert same_model(grid, lists)
    assert grid.predict(X).shape == (12, 4)
    assert grid.consensus(X, y)[1].shape == (12, 4, 2)
    assert grid.score(X, y) == pytest.approx(lists.score(list(X), y.tolist()))
    rows = AnnotatorCRF().fit(X[:, 0], y[:, :, 0])
    frame = pd.DataFrame(y[:, :, 0], columns=list("abc"))
    assert same_model(AnnotatorCRF().fit(X[:, 0], frame), rows)
    missing = [[int(b) for b in one] for one in y[:, :, 0]]
    assert same_model(AnnotatorCRF().fit(X[:, 0], missing), rows)
    missing[0][2] = None
    holes = AnnotatorCRF().fit(X[:, 0], missing)
    named = AnnotatorCRF().fit(X[:, 0], [dict(zip("abc", one, strict=True)) for one in missing])
    assert_array_equal(holes.confusion_, named.confusion_)
    assert not same_model(holes, rows)
    assert rows.score(X[:, 0], y[:, :, 0]) == np.mean(rows.predict(X[:, 0])[:, None] == y[:, :, 0])
    assert rows.score(X[:, 0], y[:, 0, 0]) == np.mean(rows.predict(X[:, 0]) == y[:, 0, 0])


def test_plain_labels_are_those_of_one_annotator():
    X, y = words(20)
    assert same_model(AnnotatorCRF().fit(X, y), AnnotatorCRF().fit(X, [[one] for one in y]))


def test_one_class_and_an_annotator_without_labels():
    X, _ = words(5)
    tagger = AnnotatorCRF().fit(X, [[["A"] * len(x), None] for x in X])
    assert tagger.confusion_.tolist() == [[[1.0]], [[1.0]]]
    assert {label for one in tagger.predict(X) for label in one} == {"A"}
    X, y = words(5)
    tagger = AnnotatorCRF(prior_right=2.0).fit(X, [[one, None] for one in y])
    assert_allclose(tagger.confusion_[1], (2 * np.eye(3) + 1 / 3) / 3)


@pytest.mark.slow  # compiles kernels for it
def test_vectors_and_transition_features():
    X, y = crowd_data(1, n_sequences=8, k=2)
    batch = SequenceBatch.from_sequences(X)
    n = len(batch.X)
    dense = SequenceBatch(np.random.default_rng(0).normal(size=(n, 40)), batch.offsets)
    shifted = SequenceBatch(batch.X, batch.offsets, transition_X=np.abs(batch.X))
    for some in (dense, shifted):
        tagger = AnnotatorCRF(tol=1e-6, max_iter=200).fit(some, y)
        assert np.all(np.diff(tagger.history_["objective"]) <= 0)
        _, proba = tagger.consensus(some, [None] * len(some))
        for ours, plain in zip(proba, tagger.predict_proba(some), strict=True):
            assert_allclose(ours, plain, atol=1e-12)


# ------------------------------------------------------------------------------- in scikit-learn


def test_in_pipelines_and_searches():
    X, right = words(24)
    X, y = [[token[0] for token in x] for x in X], annotated(right, CONFUSIONS)
    pipeline = make_pipeline(WordVectorizer(), AnnotatorCRF())
    scores = cross_val_score(pipeline, X, y, cv=3)
    assert np.all((scores > 0.4) & (scores < 1))
    search = GridSearchCV(pipeline, {"annotatorcrf__l2": [0.1, 10.0]}, cv=2).fit(X, y)
    assert search.score(X, right) > 0.8
    assert len(predict_spans(search, X)) == 24
    tagger = search.best_estimator_[-1]
    labels, _ = tagger.consensus(search.best_estimator_[:-1].transform(X), y)
    assert len(labels) == 24


def test_copies_and_determinism():
    X, right = words(20)
    y = annotated(right, CONFUSIONS)
    tagger = AnnotatorCRF().fit(X, y)
    assert same_model(tagger, clone(tagger).fit(X, y))
    assert same_model(tagger, pickle.loads(pickle.dumps(tagger)))
    threads = [AnnotatorCRF(n_jobs=2).fit(X, y) for _ in range(2)]
    assert same_model(*threads)
    assert_allclose(threads[0].coef_, tagger.coef_, atol=1e-6)


# ------------------------------------------------------------------------------------- bad input

TWO = [[["a"], ["b"]], [["a"], ["b"]]]
BAD = {
    "wrong length": (
        [{"ann": ["A", "B"], "bob": ["A", "B"]}, {"bob": ["A"]}],
        "Annotator 'bob': Sequence 1 has 2 tokens, but 1 labels",
    ),
    "wrong number": ([[["A", "B"]]], "X has 2 sequences, but y has labels for 1"),
    "annotators": (
        [[["A", "B"], None], [["A", "B"]]],
        "Sequence 1 has labellings for 1 annotators, but others for 2",
    ),
    "a plain one": ([[["A", "B"]], ["A", "B"]], r"Sequence 1: expected a dict .* got \['A', 'B'\]"),
    "a label": ([{"ann": "A"}, {"ann": ["A", "B"]}], "Sequence 0: expected a dict of labellings"),
    "nobody": ([{}, {}], "y has no label"),
    "only None": ([[None], [[None, None]]], "y has no label"),
    "empty": ([[], []], "Sequence 0 has 2 tokens, but 0 labels"),
    "NaN": (
        [[["A", float("nan")]], [["A", "B"]]],
        "Annotator 0: Sequence 0, token 1: label nan is neither a string nor an integer",
    ),
    "NaN first": ([[[float("nan"), None]], [["A", "B"]]], "label nan is neither"),
    "types": ([{"ann": ["A", "B"]}, {"bob": [1, 2]}], "Labels of annotator 'bob', such as 1"),
    "names": ([{"ann": ["A", "B"], 1: ["A", "B"]}, {}], "Annotator 1 has a name of another type"),
    "both": ([{"ann": ["A", "B"]}, [["A", "B"]]], "y has both lists and dicts"),
    "None": (None, "requires y"),
}


@pytest.mark.parametrize(("y", "message"), BAD.values(), ids=BAD)
def test_bad_labels(y, message):
    tagger = AnnotatorCRF().fit(TWO, [["A", "B"]] * 2)
    before = dict(vars(tagger))
    with pytest.raises(ValueError, match=message):
        tagger.fit(TWO, y)
    assert vars(tagger) == before


@pytest.mark.parametrize(
    "params", [{"l2": -1}, {"prior_any": 0}, {"prior_right": -1}, {"max_iter": 0}, {"tol": -1}]
)
def test_bad_parameters(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        AnnotatorCRF(**params).fit(TWO, [["A", "B"]] * 2)


def test_consensus_refuses_what_fit_has_not_seen():
    tagger = AnnotatorCRF().fit(TWO, [{"ann": ["A", "B"]}] * 2)
    with pytest.raises(NotFittedError):
        AnnotatorCRF().consensus(TWO, [{"ann": ["A", "B"]}] * 2)
    with pytest.raises(ValueError, match="Annotator 'bob' has labelled nothing"):
        tagger.consensus(TWO, [{"bob": ["A", "B"]}] * 2)
    with pytest.raises(ValueError, match="Sequence 1, token 0: label 'C' of annotator 'ann'"):
        tagger.consensus(TWO, [{"ann": ["A", "B"]}, {"ann": ["C", "B"]}])


def test_labels_that_are_unknown_count_as_wrong():
    tagger = AnnotatorCRF().fit(TWO, [{"ann": ["A", "B"]}] * 2)
    assert tagger.score(TWO, [["A", "B"], ["A", "C"]]) == 0.75
    assert tagger.score(TWO, [{"eve": ["A", "C"]}, {"ann": ["A", None], "bob": ["A", "B"]}]) == 0.8
    assert tagger.score(TWO, [[["A", "B"]], [["C", "C"]]], sample_weight=[3, 1]) == 0.75


def test_an_interrupted_fit_changes_nothing(monkeypatch):
    X, right = words(10)
    y = annotated(right, CONFUSIONS)
    tagger = AnnotatorCRF().fit(X, y)
    before, calls = dict(vars(tagger)), []

    def interrupt(*arguments):
        calls.append(arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(crowd, "improve", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tagger.fit(X[:5], y[:5])
    assert len(calls) == 1
    assert vars(tagger) == before


def test_a_score_needs_labels_of_all_sequences():
    X = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}]] * 4
    y = [["A", "B"], ["B"]] * 4
    model = AnnotatorCRF(max_iter=5).fit(X, [{"a": s, "b": s} for s in y])
    for some in ([{"a": s} for s in y[:3]], [[s, s] for s in y[:3]]):
        with pytest.raises(ValueError, match="X has 8 sequences, but y has labels for 3"):
            model.score(X, some)
    with pytest.raises(ValueError, match="X has 7 sequences, but y has labels for 8"):
        model.score(X[:-1], [{"a": s} for s in y])
