"""CRFsuite's model files: read and written beside python-crfsuite, and torn apart."""

import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skstruct import (
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronReranker,
    PerceptronTagger,
    SequenceBatch,
    TemplateVectorizer,
)
from skstruct.crfsuite import CRF, Tagger, read_model, write_model
from skstruct.crfsuite.file import (
    CRFsuiteModel,
    decode_model,
    describe_header,
    encode_model,
    hash_names,
)
from skstruct.datasets import read_conll

HEADER = struct.Struct("<4sI4s9I")


def train(X, y, path, algorithm="lbfgs", **params):
    """What python-crfsuite learns, as a file and as a tagger."""
    pycrfsuite = pytest.importorskip("pycrfsuite")
    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    trainer.set_params(params)
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    trainer.train(str(path))
    return opened(path)


def opened(path):
    tagger = pytest.importorskip("pycrfsuite").Tagger()
    tagger.open(str(path))
    return tagger


def assert_agrees(theirs, tagger, X, **tolerance):
    """Labels, marginals and probabilities are python-crfsuite's, to rounding."""
    classes = tagger.classes_.tolist()
    assert sorted(theirs.labels()) == classes
    tolerance = {"rtol": 1e-9, "atol": 1e-12, **tolerance}
    labellings = tagger.predict_nbest(X, n_best=1)
    results = zip(X, tagger.predict(X), tagger.predict_proba(X), labellings, strict=True)
    for x, labels, proba, (best,) in results:
        found = theirs.tag(x)
        if found != labels:
            # A tie, such as a perceptron may learn in some of the orders that CRFsuite draws.
            assert_allclose(theirs.probability(labels), theirs.probability(found), **tolerance)
        expected = [[theirs.marginal(label, t) for label in classes] for t in range(len(x))]
        assert_allclose(proba, expected, **tolerance)
        assert_allclose(best.probability, theirs.probability(labels), **tolerance)


@pytest.fixture(scope="module")
def trained(addresses, tmp_path_factory):
    """A model of python-crfsuite of real text, its file, and some of the text."""
    X, y = addresses
    path = tmp_path_factory.mktemp("models") / "addresses.crfsuite"
    theirs = train(X[:300], y[:300], path, c2=0.1)
    return theirs, path, X[300:360]


@pytest.fixture(scope="module")
def tiny():
    """Content of a small model."""
    names = [
        "a",
        "",
        "longer than twelve bytes",
        "é",
        "eleven b...",
        "w:\U0001f600",
        "0123456789ab",
    ]
    rng = np.random.default_rng(0)
    present = rng.random((len(names), 3)) < 0.7
    present[:, 0] = True
    states = np.argwhere(present)
    pairs = np.argwhere(np.ones((3, 3)))
    model = CRFsuiteModel(
        ["O", "B-é", "I"], names, states, rng.normal(size=len(states)), pairs, rng.normal(size=9)
    )
    return model, encode_model(model)


# ---------------------------------------------------------------------------------------- reading


def test_reads_what_crfsuite_learnt(trained):
    theirs, path, X = trained
    tagger = read_model(path)
    assert_agrees(theirs, tagger, X)
    info = theirs.info()
    assert set(tagger.feature_names_in_) == set(info.attributes)
    assert tagger.n_weights_ == len(info.state_features) + len(info.transitions)
    columns = tagger.vectorizer_.vocabulary_
    rows = {label: row for row, label in enumerate(tagger.classes_.tolist())}
    found = [tagger.coef_[rows[label], columns[name]] for name, label in info.state_features]
    assert_allclose(found, list(info.state_features.values()), atol=1e-6)
    found = [tagger.transition_[rows[a], rows[b]] for a, b in info.transitions]
    assert_allclose(found, list(info.transitions.values()), atol=1e-6)


@pytest.mark.parametrize(
    ("algorithm", "params"),
    [
        ("lbfgs", {"c1": 1.0, "c2": 0.01}),
        ("lbfgs", {"feature.possible_states": True, "feature.possible_transitions": True}),
        ("lbfgs", {"feature.minfreq": 3, "max_iterations": 5}),
        ("l2sgd", {"max_iterations": 3}),
        ("ap", {"max_iterations": 3}),
        ("pa", {"max_iterations": 3}),
        ("arow", {"max_iterations": 3}),
    ],
)
def test_reads_every_algorithm(addresses, tmp_path, algorithm, params):
    X, y = addresses
    theirs = train(X[:60], y[:60], tmp_path / "model", algorithm, **params)
    tagger = read_model(str(tmp_path / "model"))
    assert tagger.classes_.tolist() == sorted(theirs.labels())
    assert_agrees(theirs, tagger, X[60:90])


def test_reads_all_forms_of_features(tmp_path):
    x = [
        {"w": "Straße", "n": 2.5, "title": True, "no": False, "s": ["a", "b"], "in": {"c": "d"}},
        ["w:a", "w:a", "plain"],
        {"w": "\U0001f600", "n": -1},
        {},
    ]
    X, y = [x, x[::-1], x[1:]], [list("ABCD"), list("DCBA"), list("BCA")]
    theirs = train(X, y, tmp_path / "model")
    # A token's repeated attributes count twice to both.
    assert_agrees(theirs, read_model(tmp_path / "model"), [*X, [x[1]], [{"unseen": "q"}]])


def test_reads_bytes_and_paths(trained):
    _, path, X = trained
    expected = read_model(path).predict(X).tolist()
    for source in (str(path), path.read_bytes(), bytearray(path.read_bytes())):
        assert read_model(source).predict(X).tolist() == expected
    with pytest.raises(TypeError, match="Expected the path of a file or bytes, got int"):
        read_model(3)
    with pytest.raises(FileNotFoundError):
        read_model(path.with_name("missing"))


@pytest.mark.slow
@pytest.mark.skipif("SKSTRUCT_DATA" not in os.environ, reason="needs the CoNLL-2000 corpus")
def test_real_text(tmp_path):
    folder = Path(os.environ["SKSTRUCT_DATA"]) / "conll2000"
    parts = []
    for name, n in (("train", 500), ("test", 200)):
        tokens, labels = read_conll(folder / f"{name}.txt.gz")
        vectorizer = TemplateVectorizer()
        X = vectorizer.inverse_transform(vectorizer.fit_transform(tokens[:n]))
        parts += [X, labels[:n]]
    X, y, X_test, _ = parts
    theirs = train(X, y, tmp_path / "theirs", c2=1.0, max_iterations=60)
    ours = read_model(tmp_path / "theirs")
    assert_agrees(theirs, ours, X_test)
    write_model(ours, tmp_path / "again")
    assert_agrees(opened(tmp_path / "again"), ours, X_test)
    assert (tmp_path / "again").stat().st_size == (tmp_path / "theirs").stat().st_size
    fitted = CRFTagger(fit_intercept=False, max_iter=30, tol=0.1).fit(X, y)
    write_model(fitted, tmp_path / "fitted")
    assert_agrees(opened(tmp_path / "fitted"), fitted, X_test)


def test_taggers_that_were_read_go_on_learning(trained, addresses):
    _, path, _ = trained
    X, y = addresses
    tagger = read_model(path).set_params(warm_start=True, l2=0.2)
    tagger.fit(X[:300], y[:300])
    assert tagger.n_iter_ <= 30
    assert tagger.score(X[:300], y[:300]) > 0.95


# ---------------------------------------------------------------------------------------- writing


def test_writes_crfsuites_own_bytes(trained):
    _, path, _ = trained
    data = path.read_bytes()
    assert encode_model(decode_model(data)) == data


@pytest.mark.parametrize(
    "tagger",
    [
        CRFTagger(fit_intercept=False, l2=0.5),
        CRFTagger(fit_intercept=False, all_possible_states=True, all_possible_transitions=True),
        PerceptronTagger(fit_intercept=False, max_iter=5, random_state=0, tol=None),
        MIRATagger(fit_intercept=False, max_iter=5, random_state=0, tol=None),
        AROWTagger(fit_intercept=False, max_iter=5, random_state=0, tol=None),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_crfsuite_reads_what_we_write(addresses, tmp_path, tagger):
    X, y = addresses
    tagger.fit(X[:150], y[:150])
    write_model(tagger, tmp_path / "model")
    theirs = opened(tmp_path / "model")
    assert_agrees(theirs, tagger, X[150:220])
    info = theirs.info()
    columns = tagger.vectorizer_.vocabulary_
    rows = {label: row for row, label in enumerate(tagger.classes_.tolist())}
    assert len(info.state_features) == np.count_nonzero(tagger.coef_)
    for (name, label), weight in info.state_features.items():
        assert tagger.coef_[rows[label], columns[name]] == pytest.approx(weight, abs=1e-6)
    assert len(info.transitions) == np.count_nonzero(tagger.transition_)
    again = read_model(tmp_path / "model")
    assert_array_equal(again.transition_, tagger.transition_)
    shared = [columns[name] for name in again.feature_names_in_]
    assert_array_equal(again.coef_, tagger.coef_[:, shared])


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa", "arow"])
def test_the_drop_in_is_written(addresses, tmp_path, algorithm):
    X, y = addresses
    crf = CRF(algorithm=algorithm, max_iterations=5).fit(X[:60], y[:60])
    write_model(crf, tmp_path / "model")
    expected = crf.predict(X[60:90]).tolist()
    ours = Tagger()
    with ours.open(tmp_path / "model"):
        assert [ours.tag(x) for x in X[60:90]] == expected
        assert ours.labels() == crf.classes_
    theirs = opened(tmp_path / "model")
    assert [theirs.tag(x) for x in X[60:90]] == expected
    # As is the file of the drop-in itself, to the byte.
    assert (tmp_path / "model").read_bytes() == Path(crf.modelfile.name).read_bytes()
    again = CRF(model_filename=str(tmp_path / "model"))
    write_model(again, tmp_path / "again")
    assert [opened(tmp_path / "again").tag(x) for x in X[60:90]] == expected


def test_what_is_no_tagger_is_not_written(tmp_path):
    y = [["A", "B"]]
    with pytest.raises(NotFittedError):
        write_model(CRF(), tmp_path / "model")
    words = make_pipeline(TemplateVectorizer("U0:%x[0,0]"), CRFTagger(fit_intercept=False))
    words.fit([["a", "b"]], y)
    with pytest.raises(
        ValueError, match=r"Pipeline is not a tagger .* pass the tagger, and feature_"
    ):
        write_model(words, tmp_path / "model")
    write_model(words[1], tmp_path / "model", feature_names=words[0].get_feature_names_out())
    assert read_model(tmp_path / "model").predict([[["U0:b"]]]).tolist() == [["B"]]
    reranker = PerceptronReranker(random_state=0).fit([np.eye(2)], [[0.0, 1.0]])
    with pytest.raises(ValueError, match="PerceptronReranker is not a tagger"):
        write_model(reranker, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_names_of_features(tmp_path):
    tokens, y = [["a", "b"], ["b"]], [["A", "B"], ["B"]]
    vectorizer = TemplateVectorizer("U0:%x[0,0]\nU1:%x[-1,0]")
    batch = vectorizer.fit_transform(tokens)
    tagger = CRFTagger(fit_intercept=False).fit(batch, y)
    with pytest.raises(ValueError, match="fitted on features without names"):
        write_model(tagger, tmp_path / "model")
    write_model(tagger, tmp_path / "model", feature_names=vectorizer.get_feature_names_out())
    X = vectorizer.inverse_transform(batch)
    assert_agrees(opened(tmp_path / "model"), read_model(tmp_path / "model"), X)
    assert read_model(tmp_path / "model").predict(X).tolist() == tagger.predict(batch).tolist()
    for names, message in (
        (["a"], "1 feature_names for a tagger with 4 features"),
        (["a"] * 4, "All feature_names must be distinct"),
        (range(4), "feature_names must be strings"),
        (["a", "b", "c", "d\0"], r"'d\\x00' contains a NUL character"),
        (["a", "b", "c", "\ud800"], "cannot be encoded as UTF-8"),
    ):
        with pytest.raises(ValueError, match=message):
            write_model(tagger, tmp_path / "other", feature_names=names)
    assert not (tmp_path / "other").exists()


def test_what_has_no_place_in_a_file(tmp_path):
    X, y = [[["a"], ["b"]]], [["A", "B"]]
    with pytest.raises(ValueError, match=r"has biases \(intercept_ is not zero\)"):
        write_model(CRFTagger().fit(X, y), tmp_path / "model")
    with pytest.raises(ValueError, match="Labels must be strings for CRFsuite, but one is 1"):
        write_model(CRFTagger(fit_intercept=False).fit(X, [[1, 2]]), tmp_path / "model")
    tagger = CRFTagger(fit_intercept=False).fit(X, y)
    tagger.transition_ = np.full((2, 2), -np.inf)
    with pytest.raises(ValueError, match="A weight is infinite"):
        write_model(tagger, tmp_path / "model")
    tagger.transition_coef_ = np.ones((2, 2, 1))
    with pytest.raises(ValueError, match="weights of transition features"):
        write_model(tagger, tmp_path / "model")


def test_biases_by_an_attribute(addresses, tmp_path):
    """What the error about biases advises to do."""
    X, y = addresses
    X = [[[*token, "bias"] for token in x] for x in X]
    tagger = CRFTagger(fit_intercept=False, l2=0.5).fit(X[:100], y[:100])
    write_model(tagger, tmp_path / "model")
    assert_agrees(opened(tmp_path / "model"), tagger, X[100:130])


def test_zero_weights_are_left_out(tmp_path):
    X, y = [[["a", "b"], ["b"]]] * 3, [["A", "B"]] * 3
    tagger = CRFTagger(fit_intercept=False).fit(X, y)
    tagger.coef_[:, tagger.vectorizer_.vocabulary_["b"]] = 0.0
    tagger.transition_[:] = 0.0
    write_model(tagger, tmp_path / "model")
    info = opened(tmp_path / "model").info()
    assert list(info.attributes) == ["a"]
    assert info.transitions == {}
    assert_agrees(opened(tmp_path / "model"), tagger, X)


def test_model_without_weights(tmp_path):
    X, y = [[["a"], ["b"]]], [["A", "B"]]
    tagger = CRFTagger(fit_intercept=False).fit(X, y)
    tagger.coef_[:] = 0.0
    tagger.transition_[:] = 0.0
    write_model(tagger, tmp_path / "model")
    read = read_model(tmp_path / "model")
    assert read.n_features_in_ == 0
    assert_allclose(read.predict_proba(X)[0], 0.5)
    assert opened(tmp_path / "model").labels() == ["A", "B"]


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8))
def test_hash_does_not_depend_on_the_company(names):
    together = hash_names(names)
    assert together.tolist() == [int(hash_names([name])[0]) for name in names]


def test_names_are_found_by_crfsuite(tmp_path):
    """Of all lengths, for CRFsuite reads the hash in blocks of twelve bytes."""
    rng = np.random.default_rng(0)
    names = ["".join(chr(c) for c in rng.integers(33, 900, n)) for n in range(1, 60)]
    X, y = [[[name] for name in names]], [[f"L{i % 7}" for i in range(len(names))]]
    tagger = CRFTagger(fit_intercept=False, l2=0.01).fit(X, y)
    write_model(tagger, tmp_path / "model")
    assert_agrees(opened(tmp_path / "model"), tagger, [[[name]] for name in names])


def test_names_and_weights_come_back(tiny):
    model, data = tiny
    again = decode_model(data)
    assert again.labels == model.labels
    assert again.attributes == model.attributes
    for name in ("states", "state_weights", "pairs", "pair_weights"):
        assert_array_equal(getattr(again, name), getattr(model, name))
    header = describe_header(data)
    assert header["size"] == str(len(data))
    assert header["num_attrs"] == "7"


# ---------------------------------------------------------------------- damaged and hostile files


def read_or_refuse(data):
    """The tagger, or None after a clear error; never anything else, and never much memory."""
    tracemalloc.start()
    try:
        tagger = read_model(data, max_bytes=2**20)
    except ValueError:
        return None
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**20 + 200 * len(data) + 2**17
    return tagger


def test_any_cut_is_refused(tiny):
    _, data = tiny
    assert read_or_refuse(data) is not None
    for size in range(0, len(data), 3):
        assert read_or_refuse(data[:size]) is None
    assert read_or_refuse(data + b"\0") is None


@given(st.data())
def test_flipped_bits(tiny, data):
    _, content = tiny
    content = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        # The tables that are looked up by name, empty in most places, are not read.
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    tagger = read_or_refuse(bytes(content))
    if tagger is not None:
        assert np.isfinite(tagger.coef_).all()
        assert len(tagger.predict([[["a"], ["é"]]])[0]) == 2


@given(st.data())
def test_absurd_numbers(tiny, data):
    _, content = tiny
    header = HEADER.unpack_from(content)
    starts = [0, *header[7:12]]
    content = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.sampled_from(starts))
        place = min(start + 4 * data.draw(st.integers(0, 40)), len(content) - 4)
        number = data.draw(
            st.sampled_from([0, 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1, len(content)])
            | st.integers(0, 2**32 - 1)
            | st.integers(0, len(content))
        )
        struct.pack_into("<I", content, place, number)
    tagger = read_or_refuse(bytes(content))
    if tagger is not None:
        assert len(tagger.predict([[["a"], ["é"]]])[0]) == 2


@given(st.binary(max_size=300))
def test_noise(noise):
    assert read_or_refuse(noise) is None
    assert read_or_refuse(b"lCRF" + noise) is None


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, 0, "it starts with"),
        (4, 3, "the header says 3"),
        (8, 0, "the model type"),
        (12, 99, "version 99 is not supported"),
        (20, 2**32 - 1, "too small for 4294967295 names"),
        (24, 2**31, "too small for 2147483648 names"),
        (28, 2**32 - 1, "starts after the end"),
        (32, 2**32 - 1, "the table of labels starts after the end"),
        (36, 48, "expected the table of attributes"),
        (40, 0, "expected the chunk b'LFRF'"),
        (44, 2**32 - 4, "the chunk b'AFRF' starts after the end"),
        (48 + 8, 2**32 - 1, "4294967295 weights do not fit"),
    ],
)
def test_messages(tiny, place, value, message):
    content = bytearray(tiny[1])
    struct.pack_into("<I", content, place, value)
    with pytest.raises(ValueError, match=f"Not a valid CRFsuite model: .*{message}"):
        read_model(bytes(content))


def test_overlapping_names_are_refused():
    """Many names that are one and the same long one would take the square of the file's size."""
    n = 200
    names = [f"{i:03d}{'x' * 50}" for i in range(n)]
    states = np.stack([np.arange(n), np.zeros(n, np.int64)], axis=1)
    nothing = np.zeros((0, 2), np.int64)
    model = CRFsuiteModel(["A"], names, states, np.ones(n), nothing, np.zeros(0))
    content = bytearray(encode_model(model))
    start = HEADER.unpack_from(content)[9]
    backward = start + struct.unpack_from("<I", content, start + 20)[0]
    first = start + struct.unpack_from("<I", content, backward)[0]
    second = start + struct.unpack_from("<I", content, backward + 4)[0]
    struct.pack_into("<I", content, first + 4, second - first - 8 + 62 - 8)
    with pytest.raises(ValueError, match="one of the attribute names has the wrong length"):
        read_model(bytes(content))
    struct.pack_into("<I", content, first + 4, 2**20)
    with pytest.raises(ValueError, match="one of the attribute names is truncated"):
        read_model(bytes(content))


def test_large_models_need_leave(tiny):
    _, data = tiny
    with pytest.raises(ValueError, match="need 240 bytes, more than max_bytes=100"):
        read_model(data, max_bytes=100)


def test_infinite_weights_are_refused(tiny):
    content = bytearray(tiny[1])
    struct.pack_into("<d", content, 48 + 12 + 12, np.inf)
    with pytest.raises(ValueError, match="a weight is infinite or NaN"):
        read_model(bytes(content))


def test_damaged_files_and_the_drop_in(tiny, tmp_path):
    path = tmp_path / "model.crfsuite"
    path.write_bytes(tiny[1][:-10])
    with pytest.raises(ValueError, match="Not a valid CRFsuite model"):
        Tagger().open(path)
    with pytest.raises(ValueError, match="Not a valid CRFsuite model"):
        CRF(model_filename=str(path)).predict([[["a"]]])


def test_attributes_that_are_no_text(tmp_path):
    """Attributes are bytes to CRFsuite, and files of its own frontend may be in any encoding."""
    pycrfsuite = pytest.importorskip("pycrfsuite")
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append([[b"caf\xe9"], [b"tea"]], ["A", "B"])
    trainer.train(str(tmp_path / "model"))
    tagger = read_model(tmp_path / "model")
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert set(tagger.feature_names_in_) == {name, "tea"}
    write_model(tagger, tmp_path / "again")
    theirs = opened(tmp_path / "again")
    theirs.set([[b"caf\xe9"]])
    assert tagger.predict_proba([[[name]]])[0][0, 0] == pytest.approx(theirs.marginal("A", 0))


def test_batches_of_a_read_model(trained):
    _, path, X = trained
    tagger = read_model(path)
    batch = tagger.vectorizer_.transform(X)
    assert isinstance(batch, SequenceBatch)
    assert tagger.predict(batch).tolist() == tagger.predict(X).tolist()
