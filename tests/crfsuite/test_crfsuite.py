"""The drop-in beside sklearn-crfsuite, and what libraries call on a CRF object."""

import base64
import copy
import io
import os
import pickle
import shutil
from collections import Counter, UserDict
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV, cross_val_predict, cross_val_score

from skstruct import CRFTagger, SequenceBatch, crfsuite
from skstruct.crfsuite.algorithms import stopping_rule
from skstruct.datasets import load_addresses, read_conll
from skstruct.utils import parallel

pycrfsuite = pytest.importorskip("pycrfsuite")
sklearn_crfsuite = pytest.importorskip("sklearn_crfsuite")
from sklearn_crfsuite import metrics  # noqa: E402

OURS = SimpleNamespace(
    name="ours", CRF=crfsuite.CRF, Tagger=crfsuite.Tagger, Trainer=crfsuite.Trainer
)
THEIRS = SimpleNamespace(
    name="theirs", CRF=sklearn_crfsuite.CRF, Tagger=pycrfsuite.Tagger, Trainer=pycrfsuite.Trainer
)
# Both come so near to the minimum that what is left cannot be seen in probabilities.
TIGHT = {"delta": 1e-9, "epsilon": 1e-8, "max_iterations": 3000}


@pytest.fixture(params=[OURS, THEIRS], ids=lambda api: api.name)
def api(request):
    """What is called stands in sklearn-crfsuite's and python-crfsuite's documentation."""
    return request.param


def word_features(sentence, i):
    """What the tutorial of sklearn-crfsuite makes of a token, and its neighbours."""
    word, pos = sentence[i]
    features = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
        "postag": pos,
        "postag[:2]": pos[:2],
    }
    for shift, name in ((-1, "BOS"), (1, "EOS")):
        if not 0 <= i + shift < len(sentence):
            features[name] = True
            continue
        word, pos = sentence[i + shift]
        features[f"{shift:+d}:word.lower()"] = word.lower()
        features[f"{shift:+d}:word.istitle()"] = word.istitle()
        features[f"{shift:+d}:postag"] = pos
    return features


def featurise(sentences):
    return [[word_features(s, i) for i in range(len(s))] for s in sentences]


@pytest.fixture(scope="module")
def data():
    tokens, labels = load_addresses(return_X_y=True)
    sentences = [[(token, token[:1]) for token in sequence] for sequence in tokens]
    return featurise(sentences), [list(sequence) for sequence in labels]


@pytest.fixture(scope="module")
def both(data):
    X, y = data
    params = {"c2": 0.5, "all_possible_transitions": True, **TIGHT}
    return tuple(kind.CRF(**params).fit(X[:150], y[:150]) for kind in (OURS, THEIRS))


# --------------------------------------------------------------------------------- side by side


def test_parameters_are_the_same():
    ours, theirs = crfsuite.CRF().get_params(), sklearn_crfsuite.CRF().get_params()
    assert ours == theirs
    assert list(ours) == list(theirs)


def test_attributes_are_the_same(both):
    ours, theirs = both
    assert ours.classes_ == theirs.classes_
    assert sorted(ours.attributes_) == sorted(theirs.attributes_)
    assert ours.num_attributes_ == theirs.num_attributes_ == len(ours.attributes_)
    assert ours.size_ == theirs.size_
    for name in ("state_features_", "transition_features_"):
        a, b = getattr(ours, name), getattr(theirs, name)
        assert a.keys() == b.keys()
        assert_allclose([a[key] for key in b], list(b.values()), atol=5e-3)
    for name in ("classes_", "attributes_", "num_attributes_", "size_", "state_features_"):
        assert type(getattr(ours, name)) is type(getattr(theirs, name))


def test_predictions_are_the_same(both, data):
    ours, theirs = both
    X, y = data
    X, y = X[150:220], y[150:220]
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    assert ours.predict_single(X[0]) == theirs.predict_single(X[0])
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-12)
    a, b = ours.predict_marginals(X), theirs.predict_marginals(X)
    assert a.shape == b.shape
    assert a.dtype == b.dtype == object
    assert [list(t) for x in a for t in x] == [list(t) for x in b for t in x]
    flat = [[p for x in m for t in x for p in t.values()] for m in (a, b)]
    assert_allclose(*flat, atol=1e-3)
    one = ours.predict_marginals_single(X[0])
    assert type(one) is type(theirs.predict_marginals_single(X[0])) is list
    assert_allclose([list(t.values()) for t in one], [list(t.values()) for t in a[0]])


def test_taggers_are_the_same(both, data):
    ours, theirs = both[0].tagger_, both[1].tagger_
    X, y = data
    assert ours.labels() == theirs.labels()
    for x, labels in zip(X[:20], y[:20], strict=True):
        assert ours.tag(x) == theirs.tag(x)
        assert ours.tag() == theirs.tag()
        assert ours.probability(labels) == pytest.approx(theirs.probability(labels), rel=0.05)
        for label in ours.labels():
            expected = pytest.approx(theirs.marginal(label, 0), abs=1e-3)
            assert ours.marginal(label, 0) == expected
    info, expected = ours.info(), theirs.info()
    assert info.header.keys() == expected.header.keys()
    assert info.header["size"] == expected.header["size"]
    assert info.labels == expected.labels
    assert info.attributes.keys() == expected.attributes.keys()
    assert type(info.attributes["BOS"]) is type(expected.attributes["BOS"])


def test_answers_without_tokens_are_the_same(both):
    ours, theirs = both
    for crf in both:
        assert crf.predict([]).tolist() == []
        assert crf.predict_marginals([]).tolist() == []
        assert crf.predict_single([]) == []
        assert crf.predict_marginals_single([]) == []
        assert crf.tagger_.tag([]) == []
    assert ours.predict([]).shape == theirs.predict([]).shape


def test_unknown_attributes_count_nothing(both):
    ours, theirs = both
    x = [{"never seen": 1.0}, ["nor this"], {"bias": 2.5, "nested": {"a": ["b"]}}]
    for label in ours.classes_:
        for t in range(3):
            ours.tagger_.set(x)
            theirs.tagger_.set(x)
            assert_allclose(
                ours.tagger_.marginal(label, t), theirs.tagger_.marginal(label, t), atol=1e-3
            )


def test_log_is_the_same(data):
    X, y = data
    logs = [
        kind.CRF(**TIGHT).fit(X[:60], y[:60], X_dev=X[60:90], y_dev=y[60:90]).training_log_
        for kind in (OURS, THEIRS)
    ]
    ours, theirs = logs
    assert ours.featgen_num_features == theirs.featgen_num_features
    a, b = ours.last_iteration, theirs.last_iteration
    assert b.keys() - a.keys() == {"linesearch_trials", "linesearch_step"}
    assert a["loss"] == pytest.approx(b["loss"], rel=1e-6)
    assert a["feature_norm"] == pytest.approx(b["feature_norm"], rel=1e-3)
    assert a["active_features"] == b["active_features"]
    assert a["item_accuracy"] == b["item_accuracy"]
    assert a["instance_accuracy_float"] == pytest.approx(b["instance_accuracy_float"])
    for label, score in b["scores"].items():
        if score.ref or score.model:
            assert a["scores"][label][:3] == score[:3]
            assert_allclose(a["scores"][label].f1 or 0, score.f1 or 0, atol=1e-4)
    for name in ("avg_precision", "avg_recall", "avg_f1"):
        assert a[name] == pytest.approx(b[name], abs=1e-4)
    assert [entry["num"] for entry in ours.iterations] == list(range(1, len(ours.iterations) + 1))
    assert ours.training_seconds > 0


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"period": 3, "delta": 1e-3},
        {"period": 25, "delta": 1e-2},
        {"period": 0, "epsilon": 0.01},
        {"epsilon": 1e-3, "delta": 1e-6, "c1": 0.1},
    ],
)
def test_stops_where_crfsuite_stops(data, params):
    """By the numbers that CRFsuite prints of its iterations; before them are those at zero."""
    X, y = data
    log = THEIRS.CRF(c2=0.5, **params).fit(X[:100], y[:100]).training_log_
    n_labels = len({label for labels in y[:100] for label in labels})
    history = {
        "objective": [sum(map(len, y[:100])) * np.log(n_labels)],
        "gradient_norm": [np.inf],
        "weight_norm": [0.0],
    }
    is_over = stopping_rule(params)
    for iteration in log.iterations:
        assert not is_over(history)
        history["objective"].append(iteration["loss"])
        history["gradient_norm"].append(iteration["error_norm"])
        history["weight_norm"].append(iteration["feature_norm"])
    assert is_over(history)


@pytest.mark.parametrize("params", [{}, {"delta": 1e-3}, {"c1": 0.1}])
def test_comes_as_near_to_the_minimum(data, params):
    X, y = data
    losses = [
        kind.CRF(**params).fit(X, y).training_log_.last_iteration["loss"] for kind in (OURS, THEIRS)
    ]
    assert losses[0] <= losses[1] * (1 + params.get("delta", 1e-5))


def test_threads(data, monkeypatch):
    """Two, which one processor may run, unless joblib is told another number."""
    pools = []
    pool = parallel._thread_pool
    monkeypatch.setattr(parallel, "_thread_pool", lambda n: pools.append(n) or pool(n))
    crf = crfsuite.CRF(max_iterations=3).fit(*data)
    assert pools == [2]
    assert crf.estimator_.n_jobs is None
    monkeypatch.setattr(parallel, "cpu_count", lambda: 1)
    again = crfsuite.CRF(max_iterations=3).fit(*data)
    assert again.state_features_ == crf.state_features_
    pools.clear()
    with joblib.parallel_config(n_jobs=1):
        crfsuite.CRF(max_iterations=3).fit(*data)
    with joblib.parallel_config(n_jobs=3):
        crfsuite.CRF(max_iterations=3).fit(*data)
    assert pools == [3]


@pytest.mark.parametrize(
    "params",
    [
        {"min_freq": 3},
        {"all_possible_states": True},
        {"c2": 0.05, "all_possible_transitions": True},
        {"algorithm": "LBFGS", "c1": 0, "num_memories": 3, "linesearch": "Backtracking"},
    ],
)
def test_choices_of_weights_are_the_same(data, params):
    X, y = data
    ours, theirs = (kind.CRF(**TIGHT, **params).fit(X[:60], y[:60]) for kind in (OURS, THEIRS))
    assert ours.training_log_.featgen_num_features == theirs.training_log_.featgen_num_features
    assert ours.state_features_.keys() == theirs.state_features_.keys()
    loss = [crf.training_log_.last_iteration["loss"] for crf in (ours, theirs)]
    assert loss[0] == pytest.approx(loss[1], rel=1e-6)


def test_absolute_penalty_is_the_same(data):
    X, y = data
    params = {"c1": 0.3, "c2": 0.1, **TIGHT}
    ours, theirs = (kind.CRF(**params).fit(X[:80], y[:80]) for kind in (OURS, THEIRS))
    assert ours.score(X[80:], y[80:]) == pytest.approx(theirs.score(X[80:], y[80:]), abs=0.01)
    assert len(ours.state_features_) == pytest.approx(len(theirs.state_features_), rel=0.1)


def test_stochastic_gradient_descent_is_as_good(data):
    X, y = data
    params = {"algorithm": "l2sgd", "c2": 0.1, "max_iterations": 100, "calibration_eta": 0.1}
    ours, theirs = (kind.CRF(**params).fit(X[:150], y[:150]) for kind in (OURS, THEIRS))
    assert ours.score(X[150:], y[150:]) > theirs.score(X[150:], y[150:]) - 0.02


@pytest.mark.parametrize(
    "params",
    [
        {"algorithm": "ap"},
        {"algorithm": "averaged-perceptron"},
        {"algorithm": "pa"},
        {"algorithm": "pa", "pa_type": 0, "error_sensitive": False},
        {"algorithm": "pa", "c": 0.1, "averaging": False},
    ],
)
def test_online_algorithms_are_as_good(data, params):
    X, y = data
    params = {"max_iterations": 20, **params}
    ours, theirs = (kind.CRF(**params).fit(X[:200], y[:200]) for kind in (OURS, THEIRS))
    assert ours.classes_ == theirs.classes_
    assert ours.score(X[200:], y[200:]) > theirs.score(X[200:], y[200:]) - 0.03
    assert ours.training_log_.last_iteration["num"] <= 20


def test_estimators_behind():
    X, y = [[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]]
    kinds = dict.fromkeys(("ap", "pa", "arow"), crfsuite.OnlineCRF) | {"lbfgs": CRFTagger}
    for algorithm, kind in kinds.items():
        assert type(crfsuite.CRF(algorithm=algorithm).fit(X, y).estimator_) is kind
    tagger = crfsuite.CRF(c2=0.3, min_freq=0, all_possible_states=True).fit(X, y).estimator_
    assert tagger.l2 == pytest.approx(0.6)
    assert tagger.all_possible_states
    assert not tagger.fit_intercept
    tagger = crfsuite.CRF(algorithm="pa", c=0.25, error_sensitive=False).fit(X, y).estimator_
    assert (tagger.c, tagger.error_sensitive, tagger.average) == (0.25, False, True)


# --------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"algorithm": "magic"}, "algorithm='magic' is unknown; use one of 'lbfgs'"),
        ({"algorithm": "ap", "c2": 1.0}, "algorithm='ap' has no parameter 'c2'"),
        ({"algorithm": "lbfgs", "gamma": 1.0}, "algorithm='lbfgs' has no parameter 'gamma'"),
    ],
)
def test_both_refuse(params, message):
    X, y = [[["a"]]], [["A"]]
    with pytest.raises(ValueError, match=message):
        crfsuite.CRF(**params).fit(X, y)
    with pytest.raises(ValueError, match=r"Bad arguments|Parameter not found"):
        sklearn_crfsuite.CRF(**params).fit(X, y)


def set_in_trainer(algorithm=None, **params):
    trainer = crfsuite.Trainer(algorithm)
    theirs = {parameter.ours: name for name, parameter in trainer._parameters().items()}
    trainer.set_params({theirs[name]: value for name, value in params.items()})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"algorithm": "pa", "pa_type": 3}, "pa_type"),
        ({"c2": "abc"}, "c2='abc' is not a number"),
        ({"c2": float("nan")}, "c2=nan is not a number"),
        ({"max_iterations": 2.5}, r"max_iterations=2.5 is not a whole number"),
        ({"max_iterations": -1}, "max_iterations=-1 must be at least 0"),
        ({"c2": -1}, "c2=-1 must be at least 0"),
        ({"c1": float("inf")}, "c1=inf must be at least 0 and below 1e300"),
        ({"delta": -1}, "delta=-1 must be at least 0"),
        ({"all_possible_states": "yes"}, "all_possible_states='yes' is not True or False"),
        ({"algorithm": "l2sgd", "min_freq": 2}, "min_freq=2 must be 0 or less with"),
        ({"algorithm": "pa", "c": 0}, "c=0 must be above 0"),
        ({"algorithm": "arow", "gamma": 0}, "gamma=0 must be above 0"),
        ({"algorithm": ""}, "algorithm='' is unknown"),
        ({"algorithm": 5}, "algorithm=5 is unknown"),
    ],
)
def test_values_that_must_be_mistakes(params, message):
    with pytest.raises(ValueError, match=message):
        crfsuite.CRF(**params).fit([[["a"]]], [["A"]])
    with pytest.raises(ValueError, match=message):
        set_in_trainer(**params)


@pytest.mark.parametrize(
    ("params", "same"),
    [
        ({"c2": "0.1"}, {"c2": 0.1}),
        ({"c2": np.float32(0.5), "max_iterations": np.int64(7)}, {"c2": 0.5, "max_iterations": 7}),
        ({"max_iterations": 10.0}, {"max_iterations": 10}),
        ({"max_iterations": "10"}, {"max_iterations": 10}),
        ({"max_iterations": 0}, {}),
        ({"all_possible_states": "1"}, {"all_possible_states": True}),
        ({"all_possible_states": np.True_}, {"all_possible_states": True}),
        (
            {"algorithm": "pa", "pa_type": "2", "c": "2"},
            {"algorithm": "pa", "pa_type": 2, "c": 2.0},
        ),
        ({"algorithm": "AROW", "gamma": "3"}, {"algorithm": "arow", "gamma": 3.0}),
        ({"algorithm": "pa", "averaging": 0}, {"algorithm": "pa", "averaging": False}),
    ],
)
def test_ways_to_give_a_value(params, same):
    X, y = [[["a"], ["b"]], [["b"], ["a", "c"]], [["c"]]], [["A", "B"], ["B", "B"], ["A"]]
    found, expected = (crfsuite.CRF(**given).fit(X, y) for given in (params, same))
    assert found.state_features_ == expected.state_features_
    assert found.transition_features_ == expected.transition_features_


@pytest.mark.parametrize("algorithm", ["l2sgd", "ap", "pa", "arow"])
def test_no_iterations_leave_no_weights(algorithm):
    crf = crfsuite.CRF(algorithm=algorithm, max_iterations=0).fit([[["a"], ["b"]]], [["A", "B"]])
    assert crf.state_features_ == crf.transition_features_ == {}
    assert crf.training_log_.last_iteration is None
    assert crf.classes_ == ["A", "B"]


def test_bytes_are_text_in_utf8(api):
    text = [[{"wört": "grün", "list": ["é", "b"]}, ["ü"]], [{"c": {"ß": 2.0}}]]
    encoded = [
        [{"wört".encode(): "grün".encode(), b"list": ["é".encode(), "b"]}, ["ü".encode()]],
        [{b"c": {"ß".encode(): 2.0}}],
    ]
    y, labels = [["Ä", "B"], ["B"]], [["Ä".encode(), b"B"], [b"B"]]
    one, other = api.CRF().fit(text, y), api.CRF().fit(encoded, labels)
    assert one.state_features_ == other.state_features_
    assert ("wört:grün", "Ä") in one.state_features_
    assert other.classes_ == ["Ä", "B"]
    tagger = other.tagger_
    assert tagger.tag(encoded[0]) == tagger.tag(text[0])
    assert tagger.marginal("Ä".encode(), 0) == tagger.marginal("Ä", 0)
    assert tagger.probability(labels[0]) == tagger.probability(y[0])


def test_paths_in_bytes(tmp_path):
    path = os.fsencode(tmp_path / "model")
    crfsuite.CRF(model_filename=path).fit([[["a"]]], [["A"]])
    with closing(crfsuite.Tagger()) as tagger, tagger.open(path):
        assert tagger.labels() == ["A"]
    assert pickle.loads(pickle.dumps(crfsuite.CRF(model_filename=path))).classes_ == ["A"]


def test_names_that_no_file_can_hold():
    crf = crfsuite.CRF().fit([[["x\0y"], ["b"]]], [["A", "B"]])
    assert crf.attributes_ == ["b", "x\0y"]
    assert crf.transition_features_.keys() == {("A", "B")}
    with pytest.raises(ValueError, match="contains a NUL character"):
        crf.size_  # noqa: B018


def test_an_empty_path():
    with pytest.raises(FileNotFoundError, match=r"''$"):
        crfsuite.read_model("")
    with pytest.raises(FileNotFoundError, match="the path of the file is empty"):
        crfsuite.CRF(model_filename="").fit([[["a"]]], [["A"]])


def test_labels_that_are_not_utf8():
    with pytest.raises(ValueError, match=r"The label b'\\xff' is not valid UTF-8"):
        crfsuite.CRF().fit([[["a"]]], [[b"\xff"]])


def test_features_that_are_not_utf8_come_back_as_they_were(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X, y = [[[b"\xff"], [b"b"]], [[b"b"], [b"\xff"]]], [["A", "B"], ["B", "A"]]
    models = []
    for kind in (crfsuite.Trainer, pycrfsuite.Trainer):
        trainer = kind("lbfgs", verbose=False)
        for tokens, labels in zip(X, y, strict=True):
            trainer.append(tokens, labels)
        trainer.train(str(tmp_path / "model"))
        models.append((tmp_path / "model").read_bytes())
    assert b"\xff\0" in models[0]
    assert len(models[0]) == len(models[1])


def test_half_of_a_held_out_set(api):
    with pytest.raises(ValueError, match="Pass both X_dev and y_dev"):
        api.CRF().fit([[["a"]]], [["A"]], X_dev=[[["a"]]])


def test_labels_that_are_no_strings(api):
    with pytest.raises((ValueError, TypeError)):
        api.CRF().fit([[["a"]]], [[1]])


def test_before_fitting(api):
    crf = api.CRF()
    names = "tagger_ classes_ size_ num_attributes_ attributes_ state_features_ training_log_"
    for name in [*names.split(), "transition_features_"]:
        assert getattr(crf, name) is None
    assert crf.modelfile.name is None
    with pytest.raises(AttributeError):
        crf.predict([[["a"]]])


def test_not_fitted_error():
    with pytest.raises(NotFittedError, match="as model_filename"):
        crfsuite.CRF().predict_marginals([[["a"]]])


def test_tagger_that_is_not_opened(api):
    tagger = api.Tagger()
    for call in (tagger.labels, lambda: tagger.tag([["a"]]), lambda: tagger.marginal("A", 0)):
        with pytest.raises(ValueError, match="The tagger is not opened"):
            call()


def test_bad_calls_of_a_tagger(both, tmp_path):
    tagger = both[0].tagger_
    tagger.set([["a"], ["b"]])
    with pytest.raises(ValueError, match="'nonsense' is not a label of this model"):
        tagger.marginal("nonsense", 0)
    with pytest.raises(ValueError, match=r"\['A'\] is not a label of this model"):
        tagger.marginal(["A"], 0)
    for position in (-1, 2):
        with pytest.raises(ValueError, match=r"out of range of 2"):
            tagger.marginal("O", position)
    with pytest.raises(ValueError, match="Got 1 labels for 2 tokens"):
        tagger.probability(["O"])
    for call in (tagger.set, tagger.tag):
        with pytest.raises(ValueError, match=r"Sequence 0, token 1"):
            call([["a"], "b"])
    # The sequence of before stays.
    assert len(tagger.tag()) == 2
    assert tagger.marginal("O", 1.0) == tagger.marginal("O", True) == tagger.marginal("O", 1)
    with pytest.raises(TypeError, match=r"Position 1\.5 is not a whole number"):
        tagger.marginal("O", 1.5)
    with pytest.raises(TypeError, match="bytes-like"):
        tagger.open_inmemory(5)
    with pytest.raises(FileNotFoundError):
        tagger.open(tmp_path / "nothing.crfsuite")


def test_failed_fit_changes_nothing(data):
    X, y = data
    crf = crfsuite.CRF(max_iterations=5).fit(X[:20], y[:20])
    weights = crf.state_features_
    with pytest.raises(ValueError, match="token 0"):
        crf.fit([["bare string"]], [["A"]])
    assert crf.state_features_ is weights


# ----------------------------------------------------------------------------------- scikit-learn


def test_limit_of_iterations_is_no_warning(data, recwarn):
    X, y = data
    crfsuite.CRF(c2=0.01, max_iterations=3).fit(X[:50], y[:50])
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]


def test_clone_and_copies(data):
    X, y = data
    crf = crfsuite.CRF(c2=0.3, max_iterations=20).fit(X[:50], y[:50])
    crf.tagger_.set(X[0])
    expected = crf.predict_marginals(X[:5])
    for other in (pickle.loads(pickle.dumps(crf)), copy.deepcopy(crf)):
        assert other.predict_marginals(X[:5]).tolist() == expected.tolist()
        assert other.classes_ == crf.classes_
        assert Path(other.modelfile.name).read_bytes() == Path(crf.modelfile.name).read_bytes()
    assert clone(crf).tagger_ is None
    assert clone(crf).get_params() == crf.get_params()
    assert repr(crfsuite.CRF(c2=0.3)) == repr(sklearn_crfsuite.CRF(c2=0.3)) == "CRF(c2=0.3)"


def test_fitting_again_forgets(data):
    X, y = data
    crf = crfsuite.CRF(max_iterations=5).fit(X[:20], y[:20])
    name, attributes = crf.modelfile.name, crf.attributes_
    crf.fit(X[20:60], y[20:60])
    assert crf.attributes_ != attributes
    assert crf.modelfile.name != name
    assert not Path(name).exists()


def test_cross_validation(data):
    X, y = data
    crf = crfsuite.CRF(max_iterations=20)
    scores = cross_val_score(crf, X[:120], y[:120], cv=3)
    assert len(scores) == 3
    assert min(scores) > 0.5
    assert len(cross_val_predict(crf, X[:30], y[:30], cv=3)) == 30


def test_item_sequences(both, data):
    X, _ = data
    items = [pycrfsuite.ItemSequence(x) for x in X[:10]]
    ours = both[0]
    assert ours.predict(items).tolist() == ours.predict(X[:10]).tolist()
    assert ours.predict_single(items[0]) == ours.predict_single(X[0])


def test_repeated_attributes_of_item_sequences_add_up():
    X = [[["a", "a"], {"b": ["p", "p"], "b:p": 0.5}], [["b"], ["a", "b", "b"]]]
    y = [["A", "B"], ["B", "A"]]
    plain, items = crfsuite.CRF(c2=0.1), crfsuite.CRF(c2=0.1)
    plain.fit(X, y)
    items.fit(list(map(crfsuite.ItemSequence, X)), y)
    assert items.state_features_ == plain.state_features_
    theirs, ours = pycrfsuite.Tagger(), crfsuite.Tagger()
    theirs.open(plain.modelfile.name)
    ours.open(plain.modelfile.name)
    for x in X:
        theirs.set(pycrfsuite.ItemSequence(x))
        ours.set(crfsuite.ItemSequence(x))
        for t in range(2):
            assert ours.marginal("A", t) == pytest.approx(theirs.marginal("A", t), abs=1e-9)


def test_series_and_frames(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = [pd.Series([{"w": "a"}, {"w": "b"}]), pd.Series([["a"], ["c"]])], [["A", "B"]] * 2
    crf = crfsuite.CRF().fit(X, y)
    assert crf.predict(X).tolist() == y
    assert crf.predict_single(X[0]) == y[0]
    assert crf.predict_marginals_single(X[0]) == crf.predict_marginals(X)[0]
    trainer = crfsuite.Trainer(verbose=False)
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    trainer.train(str(tmp_path / "model"))
    tagger = crfsuite.Tagger()
    with tagger.open(tmp_path / "model"):
        assert tagger.tag(X[0]) == y[0]
    frame = pd.DataFrame({"up": [1.0, 0.0], "down": [0.0, 1.0]})
    crf = crfsuite.CRF().fit([frame, frame], y)
    assert crf.attributes_ == ["up", "down"]
    assert crf.predict_single(frame) == y[0]


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap"])
@pytest.mark.parametrize(
    ("y_dev", "message"),
    [
        ([["A", None]], r"Sequence 0, token 1: labels must be strings; got None\. Leave"),
        ([["A"]], "Sequence 0 has 2 tokens, but 1 labels"),
        ([["Q", "Q"]], r"none of the labels \['Q'\] occurs in training"),
    ],
)
def test_held_out_labels_that_are_wrong(algorithm, y_dev, message):
    X = [[["a"], ["b"]]]
    with pytest.raises(ValueError, match=f"^X_dev, y_dev: {message}"):
        crfsuite.CRF(algorithm).fit(X, [["A", "B"]], X, y_dev)


def test_what_is_no_batch():
    crf = crfsuite.CRF().fit([[["a"]]], [["A"]])
    for call in (lambda: crf.predict(None), lambda: crf.fit(5, [["A"]])):
        with pytest.raises(ValueError, match=r"X is (None|5); expected a list of sequences"):
            call()
    with pytest.raises(ValueError, match="The sequence is None; expected a list of tokens"):
        crf.predict_single(None)
    with pytest.raises(ValueError, match=r"Sequence 0, token 0: labels must be strings"):
        crf.fit([[["a"]]], [[["A"]]])


def test_labels_are_plain_strings():
    crf = crfsuite.CRF().fit([[["a"]]], [[np.str_("A")]])
    assert {type(label) for label in (*crf.classes_, *crf.predict_marginals([[["a"]]])[0][0])} == {
        str
    }


def test_item_sequences_name_the_token_once():
    with pytest.raises(ValueError, match=r"^Sequence 0, token 0: feature 'v' is an array"):
        crfsuite.ItemSequence([{"v": np.ones(2)}])
    with pytest.raises(ValueError, match="feature 'n' is inf"):
        crfsuite.ItemSequence([{"n": 10**400}])


def test_a_trainer_names_sequences_by_their_calls(tmp_path):
    trainer = crfsuite.Trainer(verbose=False)
    trainer.append([["a"]], ["A"], group=1)
    with pytest.raises(ValueError, match="Sequence 1, token 0: labels must be strings; got 3"):
        trainer.append([["a"]], [3])
    with pytest.raises(ValueError, match="Sequence 1 is a matrix, whose features have no names"):
        trainer.append(np.ones((1, 2)), ["A"])
    with pytest.raises(TypeError, match="holdout is None; expected the number of a group"):
        trainer.train("", holdout=None)
    trainer.append([{"w": None}], ["A"])
    with pytest.raises(ValueError, match="Sequence 1, token 0: feature 'w' is None"):
        trainer.train(str(tmp_path / "model"), holdout=1)


def test_batches(data):
    X, y = data
    vectorizer = crfsuite.CRF(max_iterations=9).fit(X[:30], y[:30]).estimator_.vectorizer_
    batch = vectorizer.transform(X[:30])
    assert isinstance(batch, SequenceBatch)
    crf = crfsuite.CRF(max_iterations=9).fit(batch, y[:30])
    assert crf.predict(batch).tolist() == [crf.predict_single(rows) for rows in batch]
    assert set(crf.attributes_) <= set(vectorizer.feature_names_)
    observed = SequenceBatch(batch.X, batch.offsets, transition_X=np.ones((batch.n_rows, 1)))
    with pytest.raises(ValueError, match="X has features of transitions"):
        crfsuite.CRF(max_iterations=9).fit(observed, y[:30])


def test_rows_of_a_matrix_are_sequences_of_length_one():
    X = np.random.default_rng(0).random((6, 3))
    y = [["A"], ["B"], ["B"]] * 2
    rows = SequenceBatch(X, np.arange(7))
    crf = crfsuite.CRF(max_iterations=9).fit(rows, y)
    expected = crf.predict_marginals(rows).tolist()
    assert [len(tokens) for tokens in expected] == [1] * 6
    assert expected[0][0].keys() == {"A", "B"}
    assert crf.predict_marginals(X).tolist() == expected
    three = crf.predict_marginals(X[:, None]).tolist()
    assert three == expected


# --------------------------------------------------------------- sklearn-crfsuite's tutorial


def spanish():
    if "SKSTRUCT_DATA" not in os.environ:
        pytest.skip("needs the CoNLL-2002 corpus")
    folder = Path(os.environ["SKSTRUCT_DATA"]) / "conll2002-esp"
    parts = []
    for name, n in (("train", 300), ("testb", 150)):
        tokens, labels = read_conll(folder / f"{name}.txt.gz")
        parts += [featurise(tokens[:n]), labels[:n]]
    return parts


def postal():
    tokens, labels = load_addresses(return_X_y=True)
    X = featurise([[(token, token[:1]) for token in sequence] for sequence in tokens])
    y = [list(sequence) for sequence in labels]
    return X[:150], y[:150], X[150:250], y[150:250]


@pytest.mark.parametrize("corpus", [postal, spanish])
def test_tutorial(api, corpus):
    """Training, evaluation, search and inspection, as the tutorial goes about it."""
    X_train, y_train, X_test, y_test = corpus()
    penalties = {"c1": 0.1, "c2": 0.1}
    crf = api.CRF(algorithm="lbfgs", **penalties, max_iterations=100, all_possible_transitions=True)
    crf.fit(X_train, y_train)

    labels = list(crf.classes_)
    labels.remove("O")
    y_pred = crf.predict(X_test)
    f1 = metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels, zero_division=0)
    assert 0.3 < f1 < 1.0
    sorted_labels = sorted(labels, key=lambda name: (name[1:], name[0]))
    report = metrics.flat_classification_report(
        y_test, y_pred, labels=sorted_labels, digits=3, zero_division=0
    )
    assert sorted_labels[0] in report

    crf = api.CRF(algorithm="lbfgs", max_iterations=30, all_possible_transitions=True)
    space = {name: scipy.stats.expon(scale=0.5) for name in penalties}
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels, zero_division=0)
    search = RandomizedSearchCV(
        crf, space, cv=3, n_iter=2, scoring=scorer, random_state=0, error_score="raise"
    )
    search.fit(X_train[:90], y_train[:90])
    assert search.best_params_.keys() == penalties.keys()
    assert 0 < search.best_score_ < 1
    best = search.best_estimator_
    assert best.size_ / 1_000_000 > 0.01
    assert len(best.predict(X_test)) == len(X_test)

    (label_from, label_to), weight = Counter(best.transition_features_).most_common(1)[0]
    assert {label_from, label_to} <= set(best.classes_)
    assert weight > 0
    (attribute, label), weight = Counter(best.state_features_).most_common()[-1]
    assert attribute in best.attributes_
    assert label in best.classes_
    assert weight < 0


# --------------------------------------------------------- what libraries call, one after the other


@pytest.fixture
def small(data):
    X, y = data
    return X[:60], y[:60]


def test_calls_of_usaddress(api, small, tmp_path):
    """Trains with its parserator, opens the model file, and tags one address at a time."""
    X, y = small
    path = tmp_path / "usaddr.crfsuite"
    params = {"c1": 0.1, "c2": 0.01, "feature.minfreq": 0}
    trainer = api.Trainer(verbose=False, params=params)
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, tuple(labels))
    trainer.train(str(path))
    tagger = api.Tagger()
    tagger.open(str(path))
    right = sum(tagger.tag(x) == labels for x, labels in zip(X, y, strict=True))
    assert right > 0.9 * len(X)
    with pytest.raises(OSError, match="No such file"):
        tagger.open(str(tmp_path / "missing.crfsuite"))


def test_calls_of_ingredient_parser(api, small, tmp_path):
    """It opens the model where `labels` raises, and asks for the marginals of what it tagged."""
    X, y = small
    path = tmp_path / "model.en.crfsuite"
    trainer = api.Trainer(verbose=False)
    trainer.set_params(
        {
            "feature.possible_states": True,
            "feature.possible_transitions": True,
            "c1": 0.2,
            "c2": 1,
        }
    )
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    trainer.train(str(path))
    tagger = api.Tagger()
    with pytest.raises(ValueError, match="not opened"):
        tagger.labels()
    tagger.open(str(path))
    labels = tagger.tag(X[0])
    scores = [tagger.marginal(label, i) for i, label in enumerate(labels)]
    assert all(1 / len(tagger.labels()) < score <= 1 for score in scores)
    others = [tagger.marginal(tagger.labels()[0], i) for i, _ in enumerate(labels)]
    assert all(0 <= score <= 1 for score in others)
    tagger.dump(str(tmp_path / "dump.txt"))
    lines = (tmp_path / "dump.txt").read_text("utf-8").splitlines()
    assert lines[0] == "FILEHEADER = {"
    assert f"      0: {tagger.labels()[0]}" in lines
    info = tagger.info()
    assert set(info.labels) == set(tagger.labels())
    assert {label for _, label in info.state_features} <= set(info.labels)
    assert all(isinstance(weight, float) for weight in info.transitions.values())


def test_calls_of_rasa(api, small, tmp_path):
    """Trains with both penalties, keeps the object with joblib, and reads marginals as dicts."""
    joblib = pytest.importorskip("joblib")
    X, y = small
    tagger = api.CRF(
        algorithm="lbfgs",
        c1=0.1,
        c2=0.1,
        max_iterations=50,
        all_possible_transitions=True,
    )
    tagger.fit(X, y)
    joblib.dump(tagger, tmp_path / "crf.pkl")
    tagger = joblib.load(tmp_path / "crf.pkl")
    predictions = tagger.predict_marginals_single(X[0])
    labels = [max(token, key=lambda label: token[label]) for token in predictions]
    confidence = [token[label] for token, label in zip(predictions, labels, strict=True)]
    assert set(labels) <= set(tagger.classes_)
    assert all(0 < value <= 1 for value in confidence)
    assert sum(predictions[0].values()) == pytest.approx(1)


def test_calls_of_snips_nlu(api, small, tmp_path):
    """Keeps the model file as base64, and makes a tagger of it by ``model_filename``."""
    X, y = small
    args = {"c2": 0.1, "algorithm": "lbfgs", "max_iterations": 50}
    model = api.CRF(model_filename=None, **args)
    assert model.tagger_ is None
    model.fit(X, y)
    assert model.tagger_ is not None
    assert set(model.tagger_.labels()) == {label for labels in y for label in labels}
    tags = model.predict_single(X[0])
    model.tagger_.set(X[0])
    best = model.tagger_.probability(tags)
    other = model.tagger_.probability([tags[0]] * len(tags))
    assert 0 <= other < best <= 1
    by_weight = sorted(model.transition_features_.items(), key=lambda item: -abs(item[1]))
    assert isinstance(by_weight[0][1], float)
    assert all(len(key) == 2 for key in model.state_features_)

    with io.open(model.modelfile.name, mode="rb") as file:  # noqa: UP020
        content = base64.b64encode(file.read()).decode("ascii")
    copied = tmp_path / "model.crfsuite"
    shutil.copy(model.modelfile.name, str(copied))
    assert copied.read_bytes() == base64.b64decode(content)
    restored = api.CRF(model_filename=str(copied))
    assert restored.predict_single(X[0]) == tags
    assert restored.classes_ == model.classes_
    assert restored.modelfile.name == str(copied)
    os.remove(model.modelfile.name)


def test_calls_of_spacy_crfsuite(api, small):
    """Trains from a configuration, evaluates, searches, and reads entities off the marginals."""
    X, y = small
    crf = api.CRF(algorithm="lbfgs", c1=0, c2=0.1, max_iterations=50, all_possible_transitions=True)
    crf.fit(X, y)
    labels = list(crf.classes_)
    labels.remove("O")
    y_pred = crf.predict(X)
    assert metrics.flat_f1_score(y, y_pred, average="weighted", labels=labels) > 0.9
    assert len(crf.predict_marginals_single(X[0])) == len(X[0])
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels, zero_division=0)
    search = RandomizedSearchCV(
        api.CRF(algorithm="lbfgs", max_iterations=10, all_possible_transitions=True),
        {"c2": scipy.stats.expon(scale=0.05)},
        cv=2,
        n_iter=2,
        scoring=scorer,
        random_state=0,
    )
    search.fit(X, y)
    assert search.best_params_["c2"] > 0


def test_calls_of_eli5(api, small):
    """Matrices of all weights, by the numbers of attributes and classes."""
    X, y = small
    crf = api.CRF(max_iterations=50).fit(X, y)
    attributes = np.array(crf.attributes_)
    number_of = {name: number for number, name in enumerate(crf.attributes_)}
    class_of = {name: number for number, name in enumerate(crf.classes_)}
    coef = np.zeros((len(crf.classes_), len(attributes)))
    for (attribute, label), weight in crf.state_features_.items():
        coef[class_of[label], number_of[attribute]] = weight
    assert np.count_nonzero(coef) <= len(crf.state_features_)
    assert np.all(np.any(coef != 0, axis=0))
    transition = np.array(
        [[crf.transition_features_.get((a, b), 0) for b in crf.classes_] for a in crf.classes_]
    )
    assert np.count_nonzero(transition) > 0
    assert repr(crf) == "CRF(max_iterations=50)"


def test_trainers_are_the_same(small, tmp_path):
    X, y = small
    trainers = [kind.Trainer("lbfgs", verbose=False) for kind in (OURS, THEIRS)]
    ours, theirs = trainers
    assert set(ours.params()) == set(theirs.params())
    for trainer in trainers:
        trainer.set("c2", "0.5")
        trainer.set_params({"feature.minfreq": 2, "delta": 1e-9, "epsilon": 1e-8})
        trainer.set("max_iterations", 3000)
        assert trainer.get("c2") == 0.5
        assert trainer.get_params()["max_iterations"] == 3000
        for group, n in ((0, 60), (1, 20)):
            for x, labels in zip(X[:n], y[:n], strict=True):
                trainer.append(x, labels, group)
        trainer.train(str(tmp_path / "model"), holdout=1)
        with pytest.raises(ValueError, match="Parameter not found: gamma"):
            trainer.set("gamma", 1)
        with pytest.raises(ValueError, match=r"The numbers of items and labels differ"):
            trainer.append(X[0], y[0][:1])
    assert ours.logparser.featgen_num_features == theirs.logparser.featgen_num_features
    a, b = ours.logparser.last_iteration, theirs.logparser.last_iteration
    assert a["loss"] == pytest.approx(b["loss"], rel=1e-6)
    assert a["item_accuracy"] == b["item_accuracy"]
    for trainer in trainers:
        trainer.clear()
        trainer.append([["a"], ["b"]], ["A", "B"])
        trainer.select("ap")
        trainer.train("")
    assert set(ours.params()) == set(theirs.params())
    for trainer in trainers:
        # The last call, because python-crfsuite's crashes at any other after this one.
        with pytest.raises(ValueError, match=r"Bad arguments|is unknown"):
            trainer.select("magic")
    assert ours.logparser.last_iteration["num"] >= 1


def test_a_trainer_keeps_what_it_was_given(api, tmp_path):
    """What the caller changes after `append` is of no account."""

    def train(name, change):
        trainer = api.Trainer("lbfgs", {"max_iterations": 20}, verbose=False)
        nested, texts, plain = {"y": 3.0}, ["t"], ["a"]
        for labels in (["A", "B"], ["B", "A"]):
            trainer.append([{"w": "v", "n": nested, "l": texts}, plain], labels)
            if change:
                nested["y"], nested["z"] = 9.0, "new"
                texts.append("u")
                plain[0] = "b"
            nested, texts, plain = {"y": 1.0}, ["t"], ["a", "c"]
        trainer.train(str(tmp_path / name))
        return (tmp_path / name).read_bytes()

    assert train("changed", change=True) == train("same", change=False)


def test_arrays_and_other_mappings_are_copied_at_append(tmp_path):
    def train(change):
        trainer = crfsuite.Trainer("lbfgs", {"max_iterations": 20}, verbose=False)
        vector, texts, own = np.ones(3), {"a"}, UserDict(n=1.0)
        x = [{"v": vector, "s": texts}, own]
        trainer.append(x, ["A", "B"])
        if change:
            vector[:] = 5.0
            texts.add("b")
            own["n"] = 7.0
            x[0] = own
        trainer.train(str(tmp_path / "model"))
        return (tmp_path / "model").read_bytes()

    assert train(change=True) == train(change=False)
    endless = {}
    endless["again"] = endless
    with pytest.raises(ValueError, match="nested too deeply"):
        crfsuite.Trainer().append([endless], ["A"])


def test_tokens_are_any_iterables(tmp_path):
    """They are read when they are given, and marginals are those of the tokens of then."""

    def tokens():
        yield {"a": 1, "b": 1}.keys()
        yield iter(["c"])

    trainer = crfsuite.Trainer("lbfgs", {"max_iterations": 20}, verbose=False)
    trainer.append(tokens(), ["A", "B"])
    trainer.train(str(tmp_path / "model"))
    tagger, given = crfsuite.Tagger(), [{"a": 1.0, "b": 1.0}, ["c"]]
    with tagger.open(tmp_path / "model"):
        assert tagger.tag(given) == ["A", "B"]
        expected = tagger.marginal("A", 0), tagger.probability(["A", "B"])
        assert tagger.tag(tokens()) == ["A", "B"]
        assert (tagger.marginal("A", 0), tagger.probability(["A", "B"])) == expected
        assert tagger.tag(given) == ["A", "B"]
        given[0].clear()
        given[1][0] = "d"
        assert (tagger.marginal("A", 0), tagger.probability(["A", "B"])) == expected


def test_events_of_a_training(api, small, tmp_path):
    """Methods of a subclass, and what the log knows when they are called."""

    class Watched(api.Trainer):
        def __init__(self):
            super().__init__("ap", {"max_iterations": 3})
            self.found = []

        def on_featgen_progress(self, log, percent):
            self.found.append(percent)

        def on_iteration(self, log, info):
            assert log.startswith(f"***** Iteration #{info['num']} *****\nLoss: ")
            assert self.logparser.last_iteration is info
            assert len(self.logparser.iterations) == info["num"]
            self.found.append(info["num"])

        def on_optimization_end(self, log):
            assert log.startswith("Total seconds required for training: ")
            self.found.append("optimised")

        def on_end(self, log):
            assert log.startswith("Storing the model\n")
            self.found.append("stored")

        def on_start(self, log):
            assert log == "Holdout group: 2\n"

        on_prepared = on_featgen_end = lambda self, log: self.found.append(log.count("\n"))

    trainer = Watched()
    for i, (x, labels) in enumerate(zip(*small, strict=True)):
        trainer.append(x, labels, i % 2)
    trainer.train(str(tmp_path / "model"), holdout=1)
    assert trainer.found[:51] == list(range(0, 101, 2))
    assert trainer.found[51:] == [3, 5, 1, 2, 3, "optimised", "stored"]
    assert trainer.logparser.training_seconds >= 0


def test_what_is_stored_is_counted(api, tmp_path, capsys):
    for algorithm, attributes in (("lbfgs", 3), ("ap", 2)):
        trainer = api.Trainer(algorithm, {"max_iterations": 2})
        for word, label in (("b", "B"), ("c", "C")):
            trainer.append([{"w": "a"}, {"w": word}], ["A", label])
        trainer.train(str(tmp_path / "model"))
        told = capsys.readouterr().out
        weights = 5 if algorithm == "lbfgs" else 4
        assert f"\nNumber of active features: {weights} (5)\n" in told
        assert f"\nNumber of active attributes: {attributes} (3)\n" in told
        assert "\nNumber of active labels: 3 (3)\n" in told


def test_stochastic_gradient_descent_counts_all_its_weights():
    crf = crfsuite.CRF("l2sgd", max_iterations=1).fit([[["a"], ["b"]]], [["A", "B"]])
    assert crf.training_log_.featgen_num_features == 8


def test_scores_of_held_out_labels(api):
    """P: one that is true, but not predicted; C: neither."""
    X, y = [[["a"], ["b"]], [["a"], ["c"]]], [["A", "B"], ["A", "C"]]
    log = api.CRF(max_iterations=5).fit(X, y, X[:1], [["P", "B"]]).training_log_
    scores = log.last_iteration["scores"]
    assert tuple(scores["P"]) == (0, 0, 1, 0.0, 0.0, 0.0)
    assert tuple(scores["C"]) == (0, 0, 0, None, None, None)


def test_no_iterations_are_no_events(api, tmp_path):
    class Watched(api.Trainer):
        def on_optimization_end(self, log):
            raise AssertionError(self.logparser.last_iteration)

        on_prepared = on_iteration = on_end = on_optimization_end

    trainer = Watched("ap", {"max_iterations": 0})
    trainer.append([["a"], ["b"]], ["A", "B"])
    trainer.train(str(tmp_path / "model"))
    assert trainer.logparser.last_iteration is None


def test_messages_taken_by_a_subclass_are_not_printed(api, small, tmp_path, capsys):
    class Taking(api.Trainer):
        def message(self, message):
            messages.append(message)

    messages, trainer = [], Taking("ap", {"max_iterations": 2})
    for x, labels in zip(*small, strict=True):
        trainer.append(x, labels)
    trainer.train(str(tmp_path / "model"))
    assert "type: CRF1d\n" in messages
    assert not capsys.readouterr().out


def test_tagger_as_a_context(api, small):
    X, y = small
    crf = OURS.CRF(max_iterations=5).fit(X, y)
    tagger = api.Tagger()
    with tagger.open(crf.modelfile.name):
        assert len(tagger.tag(X[0])) == len(X[0])
    with pytest.raises(ValueError, match="not opened"):
        tagger.labels()
    with tagger.open_inmemory(Path(crf.modelfile.name).read_bytes()) as opened:
        assert opened.labels() == crf.classes_
    assert isinstance(tagger.open(crf.modelfile.name), closing)


def test_dump_is_crfsuites(small, tmp_path, capsys):
    X, y = small
    crf = OURS.CRF(max_iterations=20).fit(X, y)
    theirs = pycrfsuite.Tagger()
    theirs.open(crf.modelfile.name)
    theirs.dump(str(tmp_path / "theirs.txt"))
    crf.tagger_.dump(tmp_path / "ours.txt")
    expected = (tmp_path / "theirs.txt").read_text("utf-8")
    assert (tmp_path / "ours.txt").read_text("utf-8") == expected
    crf.tagger_.dump()
    assert capsys.readouterr().out == expected


def test_kept_files(small, tmp_path):
    X, y = small
    crf = crfsuite.CRF(max_iterations=3, keep_tempfiles=True).fit(X, y)
    name = crf.modelfile.name
    del crf
    assert Path(name).exists()
    Path(name).unlink()
    path = tmp_path / "mine.crfsuite"
    crf = crfsuite.CRF(max_iterations=3, model_filename=str(path)).fit(X, y)
    assert crf.modelfile.name == str(path)
    del crf
    assert path.exists()


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa", "arow"])
def test_a_negative_min_freq_keeps_features_of_negative_sums(algorithm):
    X, y = [[{"a": -2.0, "b": 1.0}, {"a": 1.0}]] * 3, [["x", "y"]] * 3
    crf = crfsuite.CRF(algorithm=algorithm, min_freq=-1e9, max_iterations=5).fit(X, y)
    assert crf.state_features_["a", "x"] < 0
    # A pair that does not occur has no weight.
    assert (("b", "y") in crf.state_features_) == (algorithm == "l2sgd")
    if algorithm in ("ap", "pa", "arow"):
        default = crfsuite.CRF(algorithm=algorithm, max_iterations=5).fit(X, y)
        assert ("a", "x") not in default.state_features_


def test_arrays_in_feature_dicts():
    rng = np.random.default_rng(0)
    X = [[{"word": w, "vector": rng.normal(size=3)} for w in rng.choice(["a", "b"], 4)]
         for _ in range(20)]  # fmt: skip
    y = [[("+" if t["vector"][0] > 0 else "-") + t["word"] for t in tokens] for tokens in X]
    crf = crfsuite.CRF().fit(X, y)
    opened = crfsuite.Tagger()
    with opened.open(crf.modelfile.name):
        for tagger in (crf.tagger_, opened):
            for tokens, marginals in zip(X, crf.predict_marginals(X), strict=True):
                assert tagger.tag(tokens) == crf.predict_single(tokens)
                found = [tagger.marginal(label, 2) for label in crf.classes_]
                np.testing.assert_allclose(found, [marginals[2][k] for k in crf.classes_])
