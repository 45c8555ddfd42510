"""Fits on shards that start from the weights of another fit."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.learners import labelled_sequences
from helpers.shards import OneProcess, cut
from helpers.taggers import assert_same_weights
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skstruct import (
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    TemplateVectorizer,
)
from skstruct.dask.learning import learn, start_from
from skstruct.learning.monitor import Monitor, Stopping
from skstruct.learning.solver import settings_of

X, Y = labelled_sequences(40)


def fit(tagger, X, y, before=None, *, vectorizer=None, n_shards=2):
    """What a `DaskTagger` has after a fit on shards in this process."""
    tagger, vectorizer = clone(tagger), None if vectorizer is None else clone(vectorizer)
    monitor = partial(Monitor, stopping=settings_of(Stopping, tagger))
    parts = cut(X, y, n_shards)
    tagger._keep(learn(tagger, OneProcess(), parts, vectorizer, None, monitor, "float64", before))
    return SimpleNamespace(estimator_=tagger, classes_=tagger.classes_, vectorizer_=vectorizer)


def by_name(weights, names, classes):
    """Weights of a tagger or of a chain, by feature and label, and by pair of labels."""
    found = {}
    for i, label in enumerate(classes.tolist()):
        found |= {(name, label): weights.coef_[i, f] for f, name in enumerate(names.tolist())}
        for j, other in enumerate(classes.tolist()):
            found["transition", label, other] = weights.transition_[i, j]
        for name in ("intercept_", "start_", "end_"):
            found[name, label] = getattr(weights, name)[i]
    return found


@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_minimising_goes_on_where_it_ended(l1):
    tagger = CRFTagger(l1=l1, tol=1e-6)
    before = fit(tagger, X, Y)
    found = fit(tagger, X, Y, before, n_shards=3).estimator_
    end = before.estimator_.history_["objective"][-1]
    assert_allclose(found.history_["objective"][0], end, rtol=1e-12)
    assert found.n_iter_ < before.estimator_.n_iter_


@pytest.mark.parametrize(
    "tagger",
    [
        PerceptronTagger(),
        MIRATagger(average=False),
        SAPOTagger(l2=2.0, n_best=3),
        CRFTagger(solver="sgd"),
    ],
    ids=str,
)
def test_one_shard_starts_as_one_process(tagger):
    rng = np.random.default_rng(0)
    x = [[{**token, "value": rng.normal()} for token in tokens] for tokens in X]
    tagger = clone(tagger).set_params(max_iter=3, tol=None, shuffle=False, warm_start=True)
    tagger.set_params(random_state=0)
    before = fit(tagger, x, Y, n_shards=1)
    found = fit(tagger, x, Y, before, n_shards=1)
    expected = clone(tagger).fit(x, Y).fit(x, Y)
    assert_same_weights(found.estimator_, expected, rtol=1e-9, atol=1e-12)


def test_features_and_labels_are_matched_by_name():
    before = fit(CRFTagger(), X[:20], [[label.replace("A", "Z") for label in y] for y in Y[:20]])
    x = [[{**token, "new": "yes", "word": token["word"][:2]} for token in tokens] for tokens in X]
    now = fit(PerceptronTagger(max_iter=1, tol=None, random_state=0), x, Y).estimator_
    chain = start_from(before, now, None, now._model())
    weights = SimpleNamespace(coef_=chain.weights.T, transition_=chain.transition)
    weights.intercept_, weights.start_, weights.end_ = chain.intercept, chain.start, chain.end
    found = by_name(weights, now.feature_names_in_, now.classes_)
    old = before.estimator_
    known = by_name(old, old.feature_names_in_, old.classes_)
    assert found.keys() & known.keys()
    assert found.keys() - known.keys()
    assert {name: known.get(name, 0.0) for name in found} == found


def test_features_of_templates_are_matched_by_name():
    words = [[token["word"] for token in tokens] for tokens in X]
    vectorizer = TemplateVectorizer(["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,0]"])
    before = fit(CRFTagger(), words[:10], Y[:10], vectorizer=vectorizer)
    now = fit(CRFTagger(), words, Y, vectorizer=vectorizer.set_params(min_freq=2))
    tagger = now.estimator_
    chain = start_from(before, tagger, now.vectorizer_, tagger._model())
    known = before.vectorizer_.get_feature_names_out()
    of = dict(zip(known, before.estimator_.coef_.T, strict=True))
    names = now.vectorizer_.get_feature_names_out()
    assert set(names) & set(of)
    for name, row in zip(names, chain.weights, strict=True):
        assert_array_equal(row, of.get(name, np.zeros(3)))


def test_weights_that_a_constraint_forbade():
    allowed = np.ones((3, 3), bool)
    allowed[2, 1] = False
    y = [["A" for _ in labels] for labels in Y]
    y[0], y[1] = ["B"] * len(y[0]), ["C"] * len(y[1])
    before = fit(CRFTagger(constraint=allowed), X, y)
    assert np.isneginf(before.estimator_.transition_).any()
    for tagger in (CRFTagger(), PerceptronTagger(max_iter=1, tol=None, random_state=0)):
        found = fit(tagger, X, Y, before).estimator_
        assert np.isfinite(found.transition_).all()


def test_columns_are_matched_by_name():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(len(y), 4)) for y in Y])
    names, lengths = np.array(["a", "b", "c", "d"]), list(map(len, Y))
    batch, other = (
        SequenceBatch.from_lengths(rows[:, order], lengths, feature_names=names[order])
        for order in ([0, 1, 2, 3], [3, 1, 0, 2])
    )
    before = fit(CRFTagger(), batch, Y)
    now = fit(CRFTagger(max_iter=1), other, Y).estimator_
    chain = start_from(before, now, None, now._model())
    assert_array_equal(chain.weights, before.estimator_.coef_.T[[3, 1, 0, 2]])


def test_features_without_names():
    rng = np.random.default_rng(0)
    batch = SequenceBatch.from_sequences([rng.normal(size=(len(y), 4)) for y in Y])
    before = fit(CRFTagger(), batch, Y)
    found = fit(CRFTagger(), batch, Y, before).estimator_
    end = before.estimator_.history_["objective"][-1]
    assert_allclose(found.history_["objective"][0], end, rtol=1e-12)
    narrow = SequenceBatch(batch.X[:, :3], batch.offsets)
    for x, sizes in ((narrow, "the 3 features of X cannot be compared with the 4"), (X, "the 9 ")):
        with pytest.raises(ValueError, match=f"warm_start=True: {sizes}"):
            fit(CRFTagger(), x, Y, before)
