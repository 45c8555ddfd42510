"""Models stored by 0.1.0.dev0, before its files moved, load and answer as they did.

``data/stored`` has each model as that version's ``skops.io.dump`` and ``pickle.dump`` wrote it,
and in ``answers.json`` what that version answered below. Between them they name every class that
moved (`skstruct.utils.public_paths.MOVED`).
"""

import json
import pickle
import zipfile
from importlib import import_module
from pathlib import Path
from pickletools import genops

import numpy as np
import pytest

import skstruct
from skstruct import SequenceBatch, SequenceVectorizer, crfsuite
from skstruct.utils.public_paths import MOVED

sio = pytest.importorskip("skops.io")

FOLDER = Path(__file__).parent / "data" / "stored"
NAMES = sorted(path.stem for path in FOLDER.glob("*.skops"))

X = [[{"word": "time"}, {"word": "fliés"}], [{"word": "fruit", "n": 2.5}, {"word": "fliés"}]] * 3
Y = [["NOUN", "VERB"], ["NOUN", "NOUN"]] * 3
TOKENS = [[("time", "N"), ("fliés", "V")], [("fruit", "N"), ("fliés", "N")]] * 3
GROUPS = [[{"a": 1.0}, {"b": 2.0}], [{"a": 0.5}, {"b": 1.0}, {"c": 1}]] * 3


def transition_batch():
    """X with features of transitions."""
    batch = SequenceVectorizer().fit_transform(X)
    transition_X = np.arange(2.0 * batch.n_rows).reshape(-1, 2) / 10
    return SequenceBatch(batch.X, batch.offsets, transition_X=transition_X)


def dense(batch):
    return [
        (rows.toarray() if hasattr(rows, "toarray") else rows).tolist()
        for rows in ([batch.X] if hasattr(batch.X, "toarray") else batch.X)
    ]


def marginals(model, X=X):
    return [rows.tolist() for rows in model.predict_proba(X)]


def learnt_further(tagger, X):
    tagger.partial_fit(X, Y)
    return [tagger.coef_.tolist(), tagger.transition_.tolist(), *marginals(tagger, X)]


def margins(model):
    return [scores.tolist() for scores in model.decision_function(GROUPS)]


def log_and_marginals(crf):
    last = crf.training_log_.last_iteration
    accuracy = str(last["item_accuracy"])
    return [last["num"], last["loss"], accuracy, list(crf.predict_marginals(X))]


# What a model is asked, by the name of its file.
ANSWERS = {
    "batch": dense,
    "crf": marginals,
    "drop_in": log_and_marginals,
    "embeddings": lambda model: dense(model.transform(TOKENS)),
    "hashing": lambda model: dense(model.transform(TOKENS)),
    "labellings": lambda labellings: [[list(y), score, p] for y, score, p in labellings],
    "mira": marginals,
    "nbest": lambda model: model.predict(X).tolist(),
    "perceptron": lambda model: learnt_further(model, X),
    "reranker_perceptron": margins,
    "reranker_sgd": margins,
    "reranker_truncated": margins,
    "reranker_vrda": margins,
    "sapo": lambda model: learnt_further(model, transition_batch()),
    "sdca": marginals,
    "templates": lambda model: dense(model.transform(TOKENS)),
    "union": lambda model: dense(model.transform(TOKENS)),
}


def load(name, way):
    if way == "pickle":
        return pickle.loads((FOLDER / f"{name}.pickle").read_bytes())
    data = (FOLDER / f"{name}.skops").read_bytes()
    return sio.loads(data, trusted=sio.get_untrusted_types(data=data))


def approximately(value):
    """The same for `pytest.approx`, which compares no nested lists."""
    if isinstance(value, dict):
        return {key: approximately(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [approximately(v) for v in value]
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


@pytest.mark.parametrize("way", ["pickle", "skops"])
@pytest.mark.parametrize("name", NAMES)
def test_old_models_answer_as_before(name, way):
    expected = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))[name]
    assert json.loads(json.dumps(ANSWERS[name](load(name, way)))) == approximately(expected)


@pytest.mark.parametrize("way", ["pickle", "skops"])
@pytest.mark.parametrize("name", NAMES)
def test_old_models_are_stored_with_public_paths(name, way):
    public = {
        f"{package.__name__}.{public}"
        for package in (skstruct, crfsuite)
        for public in package.__all__
    }
    types = sio.get_untrusted_types(data=sio.dumps(load(name, way)))
    assert types
    assert set(types) <= public


def test_every_class_that_moved_is_in_one_of_them():
    paths = set()
    for name in NAMES:
        with zipfile.ZipFile(FOLDER / f"{name}.skops") as archive:
            collect(json.loads(archive.read("schema.json")), paths)
    assert {f"{module}.{name}" for module, names in MOVED.items() for name in names} <= paths


def collect(node, paths):
    """Add the paths of all classes in a schema."""
    if isinstance(node, dict):
        paths.add(f"{node.get('__module__')}.{node.get('__class__')}")
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            collect(child, paths)


def test_pickles_name_the_same_classes():
    for name in NAMES:
        content = (FOLDER / f"{name}.pickle").read_bytes()
        strings = {argument for _, argument, _ in genops(content) if isinstance(argument, str)}
        types = sio.get_untrusted_types(file=FOLDER / f"{name}.skops")
        assert {path.rpartition(".")[0] for path in types} <= strings


def test_modules_that_moved_have_nothing_else():
    from skstruct import crf

    assert crf.CRFTagger is skstruct.CRFTagger
    with pytest.raises(AttributeError, match=r"'skstruct.crf' has no attribute 'LBFGS'"):
        _ = crf.LBFGS
    with pytest.raises(ModuleNotFoundError):
        import_module("skstruct.no_such_module")
