"""Pickles of sklearn-crfsuite, as programs ship them, load once `install` has been called."""

import importlib
import io
import os
import pickle
import sys
from fractions import Fraction
from pathlib import Path

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skstruct import crfsuite

peer = pytest.importorskip("sklearn_crfsuite")
SENTENCES = ("Ana sings", "we saw Bo", "Eva eats figs", "run Al run")
X = [[{"w": w, "t": w.istitle(), "n": len(w) / 3} for w in s.split()] for s in SENTENCES] * 4
y = [["P", "O"], ["O", "O", "P"], ["P", "O", "O"], ["O", "P", "O"]] * 4
PEERS = "pycrfsuite", "sklearn_crfsuite"


def peers_modules():
    return {n: m for n, m in sys.modules.items() if n.partition(".")[0] in PEERS}


@pytest.fixture
def served():
    """Function that loads with `install` in force, which is undone at the end."""
    importlib.import_module("sklearn_crfsuite.metrics")
    before = peers_modules()

    def load(stored, by=pickle.loads):
        crfsuite.install()
        return by(stored)

    yield load
    for name in peers_modules():
        del sys.modules[name]
    sys.modules.update(before)


def by_joblib(stored):
    return joblib.load(io.BytesIO(stored))


def dumped_by_joblib(content):
    file = io.BytesIO()
    joblib.dump(content, file, compress=3)
    return file.getvalue()


WAYS = {
    "pickle": (pickle.dumps, pickle.loads),
    "pickle 0": (lambda content: pickle.dumps(content, protocol=0), pickle.loads),
    "pickle 2": (lambda content: pickle.dumps(content, protocol=2), pickle.loads),
    "joblib": (dumped_by_joblib, by_joblib),
    "cloudpickle": (cloudpickle.dumps, cloudpickle.loads),
}
FITS = {
    "lbfgs": ({"c1": 0.01, "max_iterations": 30}, ()),
    "held out": ({"algorithm": "ap", "max_iterations": 5}, (X[:3], y[:3])),
    "options": ({"keep_tempfiles": False, "verbose": False, "epsilon": "0.01"}, ()),
}


def as_released_before_04(crf):
    """The estimator with the attributes of releases 0.3.x, which lack two parameters."""
    del crf.keep_tempfiles, crf.model_filename
    return crf


def check_equal(crf, theirs):
    """The loaded estimator says what the pickled one said."""
    labels, marginals = theirs
    assert isinstance(crf, crfsuite.CRF)
    assert crf.predict(X).tolist() == [list(map(str, sequence)) for sequence in labels]
    for ours, sequence in zip(crf.predict_marginals(X), marginals, strict=True):
        for a, b in zip(ours, sequence, strict=True):
            assert a == pytest.approx(b, abs=1e-9)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("change", [lambda crf: crf, as_released_before_04])
def test_fitted(served, way, fit, change):
    dump, load = WAYS[way]
    params, held_out = FITS[fit]
    theirs = peer.CRF(**params).fit(X, y, *held_out)
    expected, log = (theirs.predict(X), theirs.predict_marginals(X)), theirs.training_log_
    crf = served(dump(change(theirs)), load)
    check_equal(crf, expected)
    assert crf.get_params() == peer.CRF(**params).get_params()
    assert crf.classes_ == peer.CRF(**params).fit(X, y).classes_
    assert crf.training_log_.last_iteration == log.last_iteration
    assert crf.training_log_.iterations == log.iterations
    assert crf.training_log_.featgen_num_features == log.featgen_num_features
    # It is an estimator like any other: stored, loaded, fitted again.
    again = pickle.loads(pickle.dumps(crf))
    check_equal(again, expected)
    assert again.training_log_.iterations == log.iterations
    assert again.fit(X, y).classes_ == crf.classes_


def test_a_held_out_log_has_fractions(served):
    theirs = peer.CRF(max_iterations=3).fit(X, y, X[:3], y[:3])
    entry = served(pickle.dumps(theirs)).training_log_.last_iteration
    assert isinstance(entry["item_accuracy"], Fraction)
    assert entry["item_accuracy"] == entry["item_accuracy_float"]
    assert isinstance(entry["scores"]["P"], crfsuite.LabelScore)


@pytest.mark.parametrize("change", [lambda crf: crf, as_released_before_04])
def test_unfitted(served, change):
    crf = served(pickle.dumps(change(peer.CRF("pa", c=0.5))))
    assert (crf.algorithm, crf.c, crf.model_filename, crf.classes_) == ("pa", 0.5, None, None)
    with pytest.raises(NotFittedError):
        crf.predict(X)


@pytest.mark.parametrize("change", [lambda crf: crf, as_released_before_04])
def test_the_file_of_the_user(served, tmp_path, change):
    path = str(tmp_path / "model.crfsuite")
    theirs = peer.CRF(model_filename=path).fit(X, y)
    expected = theirs.predict(X), theirs.predict_marginals(X)
    stored = pickle.dumps(change(theirs))
    crf = served(stored)
    assert crf.model_filename == path
    check_equal(crf, expected)
    os.unlink(path)
    with pytest.raises(FileNotFoundError, match=r"model\.crfsuite"):
        served(stored).predict(X)


def test_inside_others(served):
    pipeline = make_pipeline(FunctionTransformer(), peer.CRF(max_iterations=20)).fit(X, y)
    metrics = importlib.import_module("sklearn_crfsuite.metrics")
    score = make_scorer(metrics.flat_f1_score, average="weighted", labels=["P"])
    grid = {"c2": [0.1, 1.0]}
    searches = [
        GridSearchCV(peer.CRF(max_iterations=9), grid, cv=2, scoring=score),
        RandomizedSearchCV(peer.CRF(max_iterations=9), grid, n_iter=1, cv=2, random_state=0),
    ]
    everything = [pipeline, *(search.fit(X, y) for search in searches)]
    expected = [estimator.predict(X).tolist() for estimator in everything]
    loaded = served(pickle.dumps(everything))
    assert isinstance(loaded[1].best_estimator_, crfsuite.CRF)
    for estimator, labels in zip(loaded, expected, strict=True):
        assert estimator.predict(X).tolist() == labels
    assert 0 <= loaded[1].score(X, y) <= 1
    # With the scores of the stand-in, too.
    again = served(pickle.dumps(loaded))
    assert again[1].fit(X, y).predict(X).tolist() == expected[1]


def test_a_subclass_of_theirs(served, monkeypatch):
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "Sub", type("Sub", (peer.CRF,), {"__module__": __name__}), False)
    theirs = module.Sub(max_iterations=9).fit(X, y)
    theirs.note = {"more": 1}
    expected, stored = (theirs.predict(X), theirs.predict_marginals(X)), pickle.dumps(theirs)
    # A program defines its class after `install`, and so as one of ours.
    ours = type("Sub", (crfsuite.CRF,), {"__module__": __name__})
    monkeypatch.setattr(module, "Sub", ours)
    crf = served(stored)
    assert crf.note == {"more": 1}
    check_equal(crf, expected)


def test_a_lost_model_is_named(served):
    theirs = peer.CRF(max_iterations=9).fit(X, y)
    os.unlink(theirs.modelfile.name)
    with pytest.warns(UserWarning, match="no model.*Call fit"):
        crf = served(pickle.dumps(theirs))
    assert crf.classes_ is None
    assert crf.fit(X, y).classes_ == ["P", "O"]


@pytest.mark.parametrize("damage", [lambda data: data[:100], lambda data: b"no model"])
def test_a_damaged_model_says_what_to_do(served, damage):
    theirs = peer.CRF(max_iterations=9).fit(X, y)
    path = Path(theirs.modelfile.name)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"cannot be read.*crfsuite\.read_model"):
        served(pickle.dumps(theirs))


def test_scores_of_the_stand_in_can_be_pickled(served):
    flat = served(b"", lambda _: importlib.import_module("sklearn_crfsuite.metrics"))
    for name in [name for name in vars(flat) if name.startswith("flat_")]:
        assert pickle.loads(pickle.dumps(getattr(flat, name))) is getattr(flat, name)
    assert np.isclose(flat.flat_accuracy_score([["a"], ["b", "a"]], [["a"], ["b", "b"]]), 2 / 3)
