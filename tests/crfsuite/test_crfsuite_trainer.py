"""Weights that CRFsuite learnt for us, beside python-crfsuite's own and beside ours."""

import os
import sys
import tempfile

import numpy as np
import pytest
from helpers.objectives import packed_set
from numpy.testing import assert_allclose

from skstruct import CRFTagger, SequenceVectorizer
from skstruct.chain.scores import TransitionRows
from skstruct.crfsuite.solver import Settings, solve
from skstruct.input.training_set import as_rows
from skstruct.learning.solver import Model

pycrfsuite = pytest.importorskip("pycrfsuite")


def pack(X, y, sample_weight=None):
    """Training set, classes and number of features."""
    batch = SequenceVectorizer().fit_transform(X)
    classes = sorted({label for labels in y for label in labels})
    codes = np.array([classes.index(label) for labels in y for label in labels], np.int32)
    weight = np.ones(len(batch)) if sample_weight is None else np.asarray(sample_weight, float)
    return packed_set(as_rows(batch.X), batch.offsets, codes, weight), classes, batch.n_features


DEFAULTS = Settings(
    l1=0.0, l2=1.0, min_freq=0, all_possible_states=False, all_possible_transitions=False,
    fit_intercept=False, max_iter=1000, tol=1e-4, verbose=0,
)  # fmt: skip


def train_with_crfsuite(training_set, n_features, n_labels, **params):
    settings = DEFAULTS._replace(**params)
    return solve(training_set, Model(n_features, n_labels), settings, None, None)


@pytest.fixture(scope="module")
def data(addresses):
    X, y = addresses
    return X[:80], y[:80]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"l2": 0.2, "all_possible_transitions": True},
        {"min_freq": 2, "all_possible_states": True},
        {"fit_intercept": True, "all_possible_states": True, "all_possible_transitions": True},
    ],
)
def test_same_minimum_as_ours(data, params):
    X, y = data
    training_set, classes, n_features = pack(X, y)
    learnt = train_with_crfsuite(
        training_set, n_features, len(classes), **params, tol=1e-10, max_iter=3000
    )
    ours = CRFTagger(**{"fit_intercept": False, **params}, tol=1e-9, max_iter=3000).fit(X, y)
    objective = ours.history_["objective"][-1]
    assert learnt.history["objective"][-1] == pytest.approx(objective, rel=1e-6)
    assert_allclose(learnt.chain.weights.T, ours.coef_, atol=0.01)
    assert_allclose(learnt.chain.transition, ours.transition_, atol=0.01)
    for name in ("intercept", "start", "end"):
        assert_allclose(getattr(learnt.chain, name), getattr(ours, f"{name}_"), atol=0.01)
    assert learnt.n_weights == ours.n_weights_
    assert len(learnt.history["epoch"]) == learnt.history["epoch"][-1]


def test_absolute_penalty(data):
    X, y = data
    training_set, classes, n_features = pack(X, y)
    dense, sparse = (
        train_with_crfsuite(training_set, n_features, len(classes), l1=l1) for l1 in (0.0, 1.0)
    )
    assert np.count_nonzero(sparse.chain.weights) < 0.5 * np.count_nonzero(dense.chain.weights)


def test_exactly_what_python_crfsuite_learns(data, tmp_path):
    X, y = data
    training_set, classes, n_features = pack(X, y)
    learnt = train_with_crfsuite(training_set, n_features, len(classes), max_iter=20, l2=1.0)
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"c2": 0.5, "max_iterations": 20, "epsilon": 0.0, "delta": 1e-4 / 3})
    for x, labels in zip(X, y, strict=True):
        trainer.append([sorted(token) for token in x], labels)
    trainer.train(str(tmp_path / "model"))
    theirs = pycrfsuite.Tagger()
    theirs.open(str(tmp_path / "model"))
    tagger = CRFTagger(fit_intercept=False, tol=1.0).fit(X, y)
    tagger._set_chain(learnt.chain)
    for x, proba in zip(X[:10], tagger.predict_proba(X[:10]), strict=True):
        theirs.set(x)
        expected = [[theirs.marginal(c, t) for c in classes] for t in range(len(x))]
        assert_allclose(proba, expected, atol=1e-9)


def test_weights_of_sequences_repeat_them(data):
    X, y = data[0][:20], data[1][:20]
    twice, classes, n_features = pack(X, y, sample_weight=[2] * 10 + [1] * 9 + [0])
    repeated, _, _ = pack(X[:10] + X, y[:10] + y, sample_weight=[1] * 29 + [0])
    a, b = (
        train_with_crfsuite(part, n_features, len(classes), tol=1e-9, max_iter=2000)
        for part in (twice, repeated)
    )
    assert_allclose(a.chain.weights, b.chain.weights, atol=1e-3)
    half, _, _ = pack(X, y, sample_weight=[0.5] * 20)
    with pytest.raises(ValueError, match=r"the weight 0\.5; solver='crfsuite' supports only whole"):
        train_with_crfsuite(half, n_features, len(classes))


def test_features_of_transitions_are_refused(data):
    training_set, classes, n_features = pack(*data)
    rows = TransitionRows(*training_set.rows, transitions=training_set.rows)
    with pytest.raises(ValueError, match="does not support transition features"):
        train_with_crfsuite(training_set._replace(rows=rows), n_features, len(classes))


def test_values_and_empty_sequences():
    X = [[{"a": 2.5, "b": 0.5}, {"a": 0.0}], [], [{"b": 3.0}]]
    y = [["A", "B"], [], ["B"]]
    training_set, classes, n_features = pack(X, y)
    learnt = train_with_crfsuite(training_set, n_features, 2, tol=1e-10)
    ours = CRFTagger(fit_intercept=False, tol=1e-9).fit(X, y)
    assert_allclose(learnt.chain.weights.T, ours.coef_, atol=1e-3)
    assert classes == ["A", "B"]


def test_classes_that_do_not_occur(data):
    X, y = data
    training_set, classes, n_features = pack(X, y)
    learnt = train_with_crfsuite(training_set, n_features, len(classes) + 2, max_iter=3)
    assert learnt.chain.transition.shape == (len(classes) + 2,) * 2
    assert not learnt.chain.weights[:, -2:].any()


def test_leaves_no_file(data, monkeypatch, tmp_path):
    X, y = data
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    training_set, classes, n_features = pack(X, y)
    train_with_crfsuite(training_set, n_features, len(classes), max_iter=2)
    assert os.listdir(tmp_path) == []


def test_without_python_crfsuite(data, monkeypatch):
    training_set, classes, n_features = pack(*data)
    monkeypatch.setitem(sys.modules, "pycrfsuite", None)
    with pytest.raises(ImportError, match="needs python-crfsuite: pip install python-crfsuite"):
        train_with_crfsuite(training_set, n_features, len(classes))
