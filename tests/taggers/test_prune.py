"""Features without a weight are dropped: the model is smaller, and predicts the same."""

import pickle
from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceVectorizer,
)
from skstruct.datasets import load_addresses
from skstruct.export import write_json
from skstruct.inspection import feature_weights

TAGGERS = [
    CRFTagger(l1=0.5),
    CRFTagger(),
    CRFTagger(solver="sgd", max_iter=2, tol=None, random_state=0),
    SDCACRF(random_state=0),
    PerceptronTagger(max_iter=1, tol=None, random_state=0),
    MIRATagger(max_iter=1, tol=None, random_state=0),
    AROWTagger(max_iter=1, tol=None, random_state=0),
    SAPOTagger(max_iter=1, tol=None, random_state=0),
]


@pytest.fixture(scope="module")
def dicts():
    X, y = load_addresses(return_X_y=True)
    return [
        [{"word": t, "ends": t[-2:], "size": len(t), "v": np.array([0.0, t.isdigit()])} for t in s]
        for s in X
    ], y


def unnamed(tagger):
    """Weights by feature, without those that have none."""
    return {
        name: tuple(weights)
        for name, weights in zip(tagger.feature_names_in_, tagger.coef_.T, strict=True)
        if np.any(weights)
    }


@pytest.mark.parametrize("tagger", TAGGERS, ids=lambda tagger: type(tagger).__name__)
def test_predictions_stay_the_same(tagger, dicts):
    X, y = dicts[0][:60], dicts[1][:60]
    tagger.fit(X, y)
    n_before, before, weights = tagger.n_features_in_, tagger.predict(X), unnamed(tagger)
    nbest = tagger.predict_nbest(X[:5], 3)
    pruned = tagger.prune()
    assert pruned is tagger
    assert unnamed(tagger) == weights
    assert tagger.n_features_in_ == len(weights) == tagger.coef_.shape[1]
    assert n_before > tagger.n_features_in_
    assert tagger.predict(X).tolist() == before.tolist()
    assert [
        [found.labels for found in sequence] for sequence in tagger.predict_nbest(X[:5], 3)
    ] == [[found.labels for found in sequence] for sequence in nbest]
    if hasattr(tagger, "predict_proba"):
        assert_allclose(tagger.predict_proba(X)[0].sum(axis=1), 1.0)


def test_files_are_as_small_as_the_weights(dicts):
    X, y = dicts
    tagger = CRFTagger(l1=0.5, tol=1e-2).fit(X, y)
    expected = tagger.predict_proba(X[:20])
    before = len(pickle.dumps(tagger))
    share = len(unnamed(tagger)) / tagger.n_features_in_
    stored = pickle.dumps(tagger.prune())
    assert share < 0.5
    assert len(stored) < before * (share + 0.3)
    types = skops.io.get_untrusted_types(data=skops.io.dumps(tagger))
    for loaded in (pickle.loads(stored), skops.io.loads(skops.io.dumps(tagger), trusted=types)):
        for found, wanted in zip(loaded.predict_proba(X[:20]), expected, strict=True):
            assert_array_equal(found, wanted)


def test_it_goes_on_learning(dicts):
    X, y = dicts[0][:60], dicts[1][:60]
    for kind in (PerceptronTagger, MIRATagger, AROWTagger, SAPOTagger):
        tagger = kind(random_state=0)
        tagger.partial_fit(X[:30], y[:30], classes=sorted({label for s in y for label in s}))
        tagger.prune().partial_fit(X, y)
        assert tagger.coef_.shape[1] == tagger.n_features_in_
        assert tagger.score(X, y) > 0.3
    crf = CRFTagger(l1=0.5, warm_start=True).fit(X, y)
    objective = crf.history_["objective"][-1]
    assert crf.prune().fit(X, y).history_["objective"][0] <= objective * (1 + 1e-9)


def test_copies_stay_as_they_are(dicts):
    X, y = dicts[0][:60], dicts[1][:60]
    tagger = CRFTagger(l1=0.5).fit(X, y)
    other, n_features = copy(tagger), tagger.n_features_in_
    tagger.prune()
    assert other.n_features_in_ == n_features > tagger.n_features_in_
    assert other.predict(X).tolist() == tagger.predict(X).tolist()


def test_sparse_weights_stay_sparse(dicts):
    X, y = dicts[0][:60], dicts[1][:60]
    tagger = CRFTagger(l1=0.5).fit(X, y)
    dense = copy(tagger).prune()
    tagger.coef_ = sp.csr_array(tagger.coef_)
    assert sp.issparse(tagger.prune().coef_)
    assert_array_equal(tagger.coef_.toarray(), dense.coef_)
    assert tagger.predict(X).tolist() == dense.predict(X).tolist()


def test_all_weights_may_be_zero(dicts):
    X, y = dicts[0][:20], dicts[1][:20]
    tagger = CRFTagger(l1=1e4).fit(X, y)
    expected = tagger.predict(X).tolist()
    assert tagger.prune().n_features_in_ == 0
    assert tagger.predict(X).tolist() == expected


def test_numbers_cannot_be_dropped():
    tagger = CRFTagger().fit([np.eye(2)], [["A", "B"]])
    with pytest.raises(ValueError, match="this CRFTagger was fitted on numbers"):
        tagger.prune()
    with pytest.raises(NotFittedError):
        CRFTagger().prune()


def test_restrict_like_dict_vectorizer():
    X = [[{"a": "x", "b": 1.5}, {"a": "y"}, {"c": "z", "b": 2.0}]]
    theirs = DictVectorizer(separator=":").fit(X[0])
    ours = SequenceVectorizer().fit(X)
    for support, indices in (([True, False, True, False], False), ([0, 3], True)):
        restricted, other = copy(ours).restrict(support, indices), DictVectorizer(separator=":")
        other.fit(X[0]).restrict(support, indices)
        names = other.get_feature_names_out().tolist()
        assert restricted.get_feature_names_out().tolist() == names
        assert_array_equal(restricted.transform(X).X.toarray(), other.transform(X[0]).toarray())
        assert restricted.vocabulary_ == other.vocabulary_
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="there are 4 attributes"):
        ours.restrict([True, False])
    assert copy(ours).restrict([3, 0, 3], indices=True).get_feature_names_out().tolist() == names
    with pytest.raises(IndexError):
        ours.restrict([4], indices=True)


def point_beyond(coef):
    coef.indices[0] = 10**8


def point_before(coef):
    coef.indices[1] = -1


def end_beyond(coef):
    coef.indptr[1] = 10**7


def cut_values(coef):
    coef.data = coef.data[:1]


@pytest.mark.parametrize("change", [point_beyond, point_before, end_beyond, cut_values])
def test_sparse_weights_that_were_changed_are_refused(change):
    X = [[{"w": "a"}, {"w": "b"}, {"w": "c"}], [{"w": "b"}, {"w": "a"}]] * 3
    tagger = CRFTagger().fit(X, [["x", "y", "z"], ["y", "x"]] * 3)
    tagger.coef_ = sp.csr_matrix(tagger.coef_)
    change(tagger.coef_)
    warm = copy(tagger).set_params(warm_start=True)
    calls = [
        lambda: tagger.predict(X[:1]),
        lambda: tagger.predict_proba(X * 20),
        tagger.prune,
        lambda: warm.fit(X, [["x", "y", "z"], ["y", "x"]] * 3),
        lambda: feature_weights(tagger),
        lambda: write_json(tagger, "unused"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="The arrays of the matrix do not fit together"):
            call()


@pytest.mark.parametrize("value", [None, 5.0, [[1.0]], np.ones(3)])
@pytest.mark.parametrize("name", ["coef_", "transition_", "intercept_", "start_", "end_"])
def test_weights_of_another_shape_are_refused(name, value):
    if np.shape(value) == (3,) and name not in ("coef_", "transition_"):
        value = value[:2]
    X = [[{"w": "a"}, {"w": "b"}, {"w": "c"}], [{"w": "b"}, {"w": "a"}]] * 3
    tagger = CRFTagger(max_iter=3).fit(X, [["x", "y", "z"], ["y", "x"]] * 3)
    setattr(tagger, name, value)
    with pytest.raises(ValueError, match=f"{name} has the shape"):
        tagger.predict(X)
