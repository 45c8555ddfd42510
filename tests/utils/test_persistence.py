"""Estimators through skops.io and pickle: the same afterwards, and damaged ones refused."""

import copy
import inspect
import io
import json
import pickle
import zipfile

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import skstruct
from skstruct import (
    AnnotatorCRF,
    ConformalTagger,
    CRFTagger,
    CRFTaggerCV,
    EmbeddingVectorizer,
    HashingTemplateVectorizer,
    LabelStatistics,
    NBestReranker,
    PerceptronTagger,
    SequenceBatch,
    SequenceUnion,
    SequenceVectorizer,
    SpanTaggerCV,
    TemplateVectorizer,
    TokenTransformer,
    VectorScaler,
    WordClusters,
    WordVectorizer,
    crfsuite,
)
from skstruct.chain.per_token import TransitionChain
from skstruct.taggers.base import BaseTagger
from skstruct.utils import persistence
from skstruct.utils.declared import (
    pack_strings,
    pack_zeros,
    unpack_strings,
    unpack_zeros,
)
from skstruct.utils.persistence import Persistent

sio = pytest.importorskip("skops.io")

needs_checks = pytest.mark.skipif(
    not issubclass(BaseTagger, Persistent), reason="states are not checked yet"
)

X = [[{"word": "time"}, {"word": "fliés"}], [{"word": "fruit", "n": 2.5}, {"word": "fliés"}]] * 6
Y = [["NOUN", "VERB"], ["NOUN", "NOUN"]] * 6
TOKENS = [[("time", "N"), ("fliés", "V")], [("fruit", "N"), ("fliés", "N")]] * 6
GROUPS = [[{"a": 1.0}, {"b": 2.0}], [{"a": 0.5}, {"b": 1.0}, {"c": 1}]] * 3
ORACLES = [0, 1] * 3
ROWS = np.random.default_rng(0).normal(size=(30, 4))


# What stored models may name.
PUBLIC = {
    f"{package.__name__}.{name}"
    for package in (skstruct, crfsuite)
    for name in package.__all__
    if isinstance(getattr(package, name), type)
}


def predict(estimator):
    return estimator.predict(X)


def fitted_estimators():
    """Every public estimator, fitted, with something that it answers."""
    cases = {}
    for name in skstruct.__all__:
        kind = getattr(skstruct, name)
        if not hasattr(kind, "fit"):
            continue
        if issubclass(kind, (TemplateVectorizer, HashingTemplateVectorizer, WordVectorizer)):
            cases[name] = kind().fit(TOKENS), lambda e: e.transform(TOKENS).X.toarray()
        elif kind is SequenceVectorizer:
            cases[name] = kind().fit(X), lambda e: e.transform(X).X.toarray()
        elif kind is LabelStatistics:
            cases[name] = kind().fit(TOKENS, Y), lambda e: e.transform(TOKENS)
        elif kind is WordClusters:
            words = [[word for word, _ in tokens] for tokens in TOKENS]
            cases[name] = kind(2, random_state=0).fit(words), lambda e: sorted(e.clusters_.items())
        elif kind in (EmbeddingVectorizer, SequenceUnion):
            vectorizer = EmbeddingVectorizer({"time": [0.5, 1.0], "fliés": np.ones(2)})
            if kind is SequenceUnion:
                vectorizer = kind([("words", TemplateVectorizer()), ("vectors", vectorizer)])
            cases[name] = vectorizer.fit(TOKENS), lambda e: [*map(str, e.transform(TOKENS).X)]
        elif kind is VectorScaler:
            states = [np.eye(3), np.ones((2, 3))]
            cases[name] = kind().fit(states), lambda e, states=states: e.transform(states).X
        elif kind is TokenTransformer:
            batch = SequenceVectorizer().fit_transform(X)
            step = kind(MaxAbsScaler()).fit(batch)
            cases[name] = step, lambda e, batch=batch: e.transform(batch).X.toarray()
        elif kind is SpanTaggerCV:
            cases[name] = kind(CRFTagger(), cv=2).fit(X, Y), lambda e: [*e.predict_spans(X)]
        elif kind is ConformalTagger:
            tagger = kind(CRFTagger(), alpha=0.5, max_chunks=2, random_state=0).fit(X, Y)
            cases[name] = tagger, lambda e: [*e.predict_candidates(X)]
        elif kind is AnnotatorCRF:
            tagger = kind().fit(X, [{"ann": one, "bob": one} for one in Y])
            cases[name] = tagger, lambda e: e.confusion_
        elif kind is CRFTaggerCV:
            tagger = kind([1.0, 0.1], cv=2).fit(X, Y)
            cases[name] = tagger, lambda e: e.predict_proba(X)
        elif kind is NBestReranker:
            cases[name] = kind(CRFTagger(), cv=2).fit(X, Y), predict
        elif name.endswith("Reranker"):
            cases[name] = (
                kind(max_iter=3, random_state=0).fit(GROUPS, ORACLES),
                lambda e: e.decision_function(GROUPS),
            )
        else:
            cases[name] = kind(random_state=0).fit(X, Y), lambda e: e.predict_proba(X)
    labels = np.arange(30) % 3
    batch = SequenceVectorizer().fit_transform(X)
    cases |= {
        "integer labels": (CRFTagger().fit(X, [[1, 2], [1, 1]] * 6), predict),
        "rows": (CRFTagger().fit(ROWS, labels), lambda e: e.predict_proba(ROWS)),
        "a batch": (CRFTagger().fit(batch, Y), lambda e: e.predict_proba(batch)),
        "solver sag": (
            CRFTagger(solver="sag", random_state=0).fit(X, Y),
            lambda e: e.predict_proba(X),
        ),
        "solver oeg": (
            CRFTagger(solver="oeg", random_state=0).fit(X, Y),
            lambda e: e.predict_proba(X),
        ),
        "partly learnt": (
            PerceptronTagger(random_state=0).partial_fit(X, Y),
            lambda e: e.predict_proba(X),
        ),
        "a random state": (
            PerceptronTagger(random_state=np.random.RandomState(0)).fit(X, Y),
            predict,
        ),
        "a pipeline": (
            make_pipeline(TemplateVectorizer(), CRFTagger()).fit(TOKENS, Y),
            lambda e: e.predict_proba(TOKENS),
        ),
        "the drop-in": (
            crfsuite.CRF().fit(X, Y, X_dev=X[:2], y_dev=Y[:2]),
            lambda e: e.predict_marginals(X),
        ),
        "a model file": (
            crfsuite.read_model(crfsuite.CRF().fit(X, Y)._bytes()),
            lambda e: e.predict_proba(X),
        ),
        "not fitted": (CRFTagger(l2=0.3), repr),
        "the container": (batch, lambda b: b.X.toarray()),
    }
    return cases


@pytest.fixture(scope="module")
def cases():
    return fitted_estimators()


def names_of_cases():
    kinds = [name for name in skstruct.__all__ if hasattr(getattr(skstruct, name), "fit")]
    return [
        *kinds,
        *("integer labels", "rows", "a batch", "partly learnt", "a random state", "a pipeline"),
        *("solver sag", "solver oeg"),
        *("the drop-in", "a model file", "not fitted", "the container"),
    ]


def assert_same(a, b):
    if isinstance(a, np.ndarray) and a.dtype == object:
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    else:
        assert np.array_equal(a, b)


def trusted_types(data):
    """The types that are not trusted by themselves: all must be public classes of ours."""
    types = sio.get_untrusted_types(data=data)
    assert set(types) <= PUBLIC
    return types


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", names_of_cases())
@pytest.mark.parametrize("store", ["skops", "pickle", "joblib", "copy"])
def test_estimators_come_back(cases, name, store, tmp_path):
    estimator, answer = cases[name]
    if store == "skops":
        data = sio.dumps(estimator)
        again = sio.loads(data, trusted=trusted_types(data))
    elif store == "pickle":
        again = pickle.loads(pickle.dumps(estimator))
    elif store == "joblib":
        joblib.dump(estimator, tmp_path / "estimator")
        again = joblib.load(tmp_path / "estimator")
    else:
        again = copy.deepcopy(estimator)
    assert type(again) is type(estimator)
    assert_same(answer(estimator), answer(again))


def test_parameters_and_attributes_come_back(cases):
    tagger, _ = cases["CRFTagger"]
    data = sio.dumps(tagger)
    again = sio.loads(data, trusted=trusted_types(data))
    assert again.get_params() == tagger.get_params()
    kept = [name for name in tagger.__dict__ if name not in tagger._derived_state]
    assert list(again.__dict__) == kept
    assert again.feature_names_in_.tolist() == tagger.feature_names_in_.tolist()
    assert again.vectorizer_.vocabulary_ == tagger.vectorizer_.vocabulary_
    for name, column in tagger.history_.items():
        assert np.array_equal(again.history_[name], column)


def test_public_paths():
    """Each public class and function names a package that exports it."""
    for package in (skstruct, crfsuite, skstruct.datasets, skstruct.metrics):
        for name in package.__all__:
            public = getattr(package, name)
            if inspect.isclass(public) or inspect.isfunction(public):
                # A class may have a second name.
                assert getattr(package, public.__qualname__) is public
                assert public.__module__ == package.__name__
                assert pickle.loads(pickle.dumps(public)) is public


def test_training_log_comes_back(cases):
    crf, _ = cases["the drop-in"]
    data = sio.dumps(crf)
    again = sio.loads(data, trusted=trusted_types(data))
    log, expected = again.training_log_, crf.training_log_
    assert log.last_iteration == expected.last_iteration
    assert log.last_iteration is log.iterations[-1]
    assert log.last_iteration["item_accuracy"].denominator > 0


def test_without_trust_nothing_is_loaded(cases):
    data = sio.dumps(cases["CRFTagger"][0])
    with pytest.raises(sio.exceptions.UntrustedTypesFoundException, match="CRFTagger"):
        sio.loads(data, trusted=[])


# ---------------------------------------------------------------------------------- damaged files


def test_any_cut_is_refused(cases):
    data = sio.dumps(cases["CRFTagger"][0])
    types = trusted_types(data)
    for size in range(0, len(data), max(len(data) // 150, 1)):
        with pytest.raises((zipfile.BadZipFile, ValueError, KeyError, EOFError)):
            sio.loads(data[:size], trusted=types)


@given(st.data())
def test_flipped_bits(cases, data):
    """They are refused, or were in a part of the file that holds nothing."""
    tagger, answer = cases["PerceptronTagger"]
    content = bytearray(sio.dumps(tagger))
    types = trusted_types(bytes(content))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        again = sio.loads(bytes(content), trusted=types)
    except Exception:  # whatever zipfile, zlib, json and numpy raise
        return
    assert_same(answer(tagger), answer(again))


def damaged(estimator, **changes):
    """An estimator as a file says that someone has edited with care."""
    state = estimator.__getstate__()
    for name, change in changes.items():
        state[name] = change(state[name])
    again = type(estimator).__new__(type(estimator))
    again.__setstate__(state)
    return again


@needs_checks
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coef_": lambda a: a[:, :-1]}, "coef_ has the shape"),
        ({"coef_": lambda a: a[:1]}, "coef_ has the shape"),
        ({"coef_": lambda a: a * np.nan}, "a number of coef_ is NaN"),
        ({"coef_": lambda a: "text"}, "coef_ is not an array of numbers"),
        ({"transition_": lambda a: a[:1]}, "transition_ has the shape"),
        ({"intercept_": lambda a: a[:0]}, "intercept_ has the shape"),
        ({"classes_": lambda a: a[:1]}, "has the shape"),
        (
            {"n_features_in_": lambda n: n + 1},
            "feature_names_ of vectorizer_ has the length 4, not 5",
        ),
        ({"vectorizer_": lambda v: "text"}, "This stored CRFTagger is damaged"),
        (
            {"vectorizer_": lambda v: SequenceVectorizer().fit(X[:1])},
            "feature_names_ of vectorizer_ has the length 2, not 4",
        ),
    ],
)
def test_arrays_that_do_not_fit_together(cases, changes, message):
    tagger, _ = cases["CRFTagger"]
    assert_same(damaged(tagger).predict(X), tagger.predict(X))
    with pytest.raises(ValueError, match=message):
        damaged(tagger, **changes)


def observed_learner(average):
    """A tagger on its way whose transitions have features."""
    batch = SequenceVectorizer().fit_transform(X)
    edges = np.arange(2.0 * batch.n_rows).reshape(-1, 2)
    batch = SequenceBatch(batch.X, batch.offsets, transition_X=edges)
    return PerceptronTagger(average=average, random_state=0).partial_fit(batch, Y)


@needs_checks
@pytest.mark.parametrize("made", [False, True], ids=["weights not made", "weights made"])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("record", ["chain", "lag"])
@pytest.mark.parametrize("name", [*TransitionChain._fields, "progress"])
def test_states_of_learners_are_checked(name, record, average, made):
    tagger = observed_learner(average)
    if made:
        _ = tagger.coef_
    assert_same(damaged(tagger).coef_, tagger.coef_)

    def cut(state):
        fields = state["_record"]
        if name == "progress":
            return {"_record": {**fields, "progress": fields["progress"][:4]}}
        part = fields[record]["_record"][name]
        # Where there is no average, the record of it has no row that could be lacking.
        part = part[:-1] if len(part) else np.zeros((1, *part.shape[1:]))
        return changed(state, {name: part})

    def changed(state, change):
        fields = state["_record"]
        return {"_record": {**fields, record: {"_record": fields[record]["_record"] | change}}}

    with pytest.raises(ValueError, match="the state of the learner"):
        damaged(tagger, _state=cut)

    def without_transition_weights(state):
        state = changed(state, {})
        del state["_record"][record]["_record"]["transition_weights"]
        return state

    def not_a_number(state):
        return changed(state, {"transition": np.full_like(tagger.transition_, np.nan)})

    for damage in (without_transition_weights, not_a_number):
        with pytest.raises(ValueError, match="the state of the learner"):
            damaged(tagger, _state=damage)
    for damage in (lambda state: {"_record": {}}, lambda state: state["_record"]):
        with pytest.raises(ValueError, match="This stored PerceptronTagger is damaged"):
            damaged(tagger, _state=damage)


@needs_checks
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"_codes": lambda a: a + 1000}, "_codes has the number .*, but .* are the most"),
        ({"_codes": lambda a: a[:, :1]}, "_codes has the shape"),
        ({"_codes": lambda a: a * 0}, "more or fewer values than its template has macros"),
        ({"_groups": lambda a: a - 1}, "_groups has the number -1, which is less than 0"),
        ({"_hashes": lambda a: a[:-1]}, "_hashes has the shape"),
        ({"n_features_": lambda n: n - 1}, "_groups has the shape"),
        ({"template_": lambda lines: ["Q"]}, "damaged"),
    ],
)
def test_template_vectorizers_are_checked(cases, changes, message):
    vectorizer, answer = cases["TemplateVectorizer"]
    assert_same(answer(damaged(vectorizer)), answer(vectorizer))

    def changed(features):
        return features | {name: change(features[name]) for name, change in changes.items()}

    with pytest.raises(ValueError, match=message):
        damaged(vectorizer, _features=changed)


@needs_checks
def test_batches_are_checked(cases):
    batch, _ = cases["the container"]
    assert_same(damaged(batch).X.toarray(), batch.X.toarray())
    for changes in (
        {"offsets": lambda a: a + 1},
        {"matrix": lambda m: (m[0], m[1] + 100, m[2], m[3])},
        {"matrix": lambda m: (m[0], m[1], m[2][:-1], m[3])},
        {"feature_names": lambda a: None, "matrix": lambda m: "text"},
    ):
        with pytest.raises(ValueError, match="SequenceBatch is damaged"):
            damaged(batch, **changes)


@needs_checks
def test_rerankers_are_checked(cases):
    reranker, _ = cases["SGDReranker"]
    with pytest.raises(ValueError, match="coef_ has the shape"):
        damaged(reranker, coef_=lambda a: a[:-1])


@needs_checks
def test_later_formats_say_so(cases, monkeypatch):
    tagger, _ = cases["CRFTagger"]
    with monkeypatch.context() as context:
        context.setattr(persistence, "FORMAT", 7)
        data = sio.dumps(tagger)
        stored = pickle.dumps(tagger)
    assert sio.loads(sio.dumps(tagger), trusted=trusted_types(data)).classes_.tolist()
    known = rf"was stored by skstruct .* in the format 7; .* up to {persistence.FORMAT}\."
    with pytest.raises(ValueError, match=known):
        sio.loads(data, trusted=trusted_types(data))
    with pytest.raises(ValueError, match="Load it with the version that stored it"):
        pickle.loads(stored)


@needs_checks
def test_edited_archives_are_refused(cases):
    """Weights that were exchanged for shorter ones, in a file that is intact as a file."""
    tagger, _ = cases["CRFTagger"]
    data = sio.dumps(tagger)
    schema = json.loads(zipfile.ZipFile(io.BytesIO(data)).read("schema.json"))
    content = schema["content"]["content"]
    target = content["coef_"]["file"]
    edited = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(edited, "w") as new:
        for item in old.namelist():
            body = old.read(item)
            if item == target:
                stream = io.BytesIO()
                np.save(stream, tagger.coef_[:, :1])
                body = stream.getvalue()
            new.writestr(item, body)
    with pytest.raises(ValueError, match="coef_ has the shape"):
        sio.loads(edited.getvalue(), trusted=trusted_types(data))


@needs_checks
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_size_is_that_of_the_arrays():
    """Names are not stored one by one."""
    X = [[[f"w{i}", f"v{i // 2}"] for i in range(3000)]]
    tagger = CRFTagger(max_iter=1, tol=1.0).fit(X, [["A", "B"] * 1500])
    data = sio.dumps(tagger)
    assert len(data) < 2 * len(pickle.dumps(tagger))
    assert len(json.loads(zipfile.ZipFile(io.BytesIO(data)).read("schema.json"))) < 50


def sparse_weights(n_features=3000, n_labels=20, n_weights=200):
    """Random weights, few of which are not zero, as a tagger has them."""
    rng = np.random.default_rng(0)
    weights = np.zeros((n_features, n_labels))
    places = rng.choice(weights.size, n_weights, replace=False)
    weights.ravel()[places] = rng.normal(size=n_weights)
    return weights.T


def stored_ways(estimator):
    """What each way of storing writes, and a function that reads it."""
    data = sio.dumps(estimator)
    yield data, lambda: sio.loads(data, trusted=trusted_types(data))
    pickled = pickle.dumps(estimator)
    yield pickled, lambda: pickle.loads(pickled)


def test_weights_that_are_zero_take_no_space():
    tagger = CRFTagger()
    tagger.coef_ = sparse_weights()
    tagger.classes_ = np.array([f"label{i:02}" for i in range(20)])
    tagger.n_features_in_ = 3000
    for name in ("intercept_", "start_", "end_"):
        setattr(tagger, name, np.zeros(20))
    tagger.transition_ = np.zeros((20, 20))
    tagger.history_, tagger.n_iter_ = {}, 0
    for stored, load in stored_ways(tagger):
        assert len(stored) < tagger.coef_.nbytes / 10
        assert_array_bits(load().coef_, tagger.coef_)
    learner = PerceptronTagger().partial_fit(SequenceBatch(np.eye(3), [0, 3]), [[0, 1, 2]])
    states = [pickle.dumps(learner)]
    learner = PerceptronTagger().partial_fit(SequenceBatch(np.eye(3, 10_000), [0, 3]), [[0, 1, 2]])
    states.append(pickle.dumps(learner))
    assert len(states[1]) < len(states[0]) + 2000
    again = pickle.loads(states[1])
    for name in ("coef_", "transition_"):
        assert_array_bits(getattr(again, name), getattr(learner, name))


def assert_array_bits(found, expected):
    """The same bits, in the same order in memory."""
    assert found.shape == expected.shape
    # Where there is one entry, or none, strides mean nothing.
    assert found.flags.f_contiguous == expected.flags.f_contiguous
    assert found.flags.c_contiguous == expected.flags.c_contiguous
    assert found.flags.writeable
    assert found.tobytes() == expected.tobytes()


@given(st.data())
def test_any_array_comes_back(data):
    shape = data.draw(st.sampled_from([(5000,), (50, 100), (3, 40, 50), (4097, 1), (0, 7)]))
    n = int(np.prod(shape))
    places = data.draw(st.lists(st.integers(0, max(n - 1, 0)), max_size=20 * (n > 0)))
    kinds = st.sampled_from([1.5, -0.0, np.inf, -np.inf, 5e-324])
    array = np.zeros(n)
    for place in places:
        array[place] = data.draw(kinds)
    array = array.reshape(shape)
    if data.draw(st.booleans()):
        array = array.T
    packed = pack_zeros(array)
    assert isinstance(packed, dict) == (n >= 4096)
    assert_array_bits(unpack_zeros(packed), array)


def test_dense_and_short_arrays_are_stored_as_they_are():
    rng = np.random.default_rng(0)
    for value in (
        rng.normal(size=(100, 100)),
        np.zeros(100),
        np.zeros(10_000, np.int64),
        np.zeros(10_000, np.float32),
        "text",
    ):
        assert pack_zeros(value) is value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gaps": np.array([70_000], np.uint32)}, "weights"),
        ({"gaps": np.full(200, 2**63, np.uint64)}, "outside"),
        ({"gaps": np.full(200, 400, np.uint16)}, "outside"),
        ({"gaps": np.full(200, 4.0)}, "places of weights"),
        ({"shape": np.array([5, 5])}, "outside"),
        ({"_packed_zeros": np.ones(3)}, "weights"),
    ],
)
def test_damaged_places_are_refused(change, message):
    packed = pack_zeros(sparse_weights())
    with pytest.raises(ValueError, match=message):
        unpack_zeros(packed | change)


# -------------------------------------------------------------------------------------- strings


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=4)))
def test_strings_come_back(strings):
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    for value in (strings, array):
        again = unpack_strings(pack_strings(value))
        assert type(again) is type(value)
        assert list(again) == strings


@pytest.mark.parametrize("value", [None, 3, [1, "a"], ["a", None], np.arange(3), ("a", "b"), {}])
def test_what_is_no_list_of_strings_stays(value):
    assert pack_strings(value) is value
    assert unpack_strings(value) is value


@pytest.mark.parametrize(
    "change",
    [
        {"lengths": np.array([1, 1])},
        {"lengths": np.array([-1, 4])},
        {"lengths": np.array([0.5, 2.5])},
        {"_packed_strings": np.array(["abc"])},
        {"_packed_strings": np.array([97, 98, 99], np.uint16)},
        {"lengths": np.array([2**62] * 4 + [3])},
    ],
)
def test_packed_strings_that_do_not_add_up(change):
    with pytest.raises(ValueError, match=r"do not add up|of the right type"):
        unpack_strings({**pack_strings(["a", "bc"]), **change})
