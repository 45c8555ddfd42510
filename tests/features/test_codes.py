"""Features found by key and value: the same as by the names of their attributes."""

import pickle
import re
from collections import OrderedDict
from decimal import Decimal
from enum import StrEnum
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skstruct import CRFTagger, SequenceVectorizer, crfsuite
from skstruct.features import tokens as stream
from skstruct.features.tokens import KnownCodes, NewCodes


class Colour(StrEnum):
    RED = "a"


keys = st.sampled_from(["a", "b", "a:b", "b:a", ""])
texts = st.sampled_from(["", "a", "b:a", "é"])
numbers = st.one_of(
    st.sampled_from([0, 1, -1, 2.5, 1e300, np.inf, np.nan, 1.0, 0.0, -0.0, 10**400]),
    st.floats(-1e3, 1e3),
)
others = st.one_of(
    st.sampled_from([None, b"a", np.str_("a"), Colour.RED, np.True_, Decimal("0.5")]),
    st.sampled_from([["a", "b"], {"a": "b"}, {"a": True}, np.ones(2), 1j, (), {"a", "b"}]),
)
plain = st.dictionaries(keys, st.one_of(texts, st.booleans()), max_size=4)
with_numbers = st.dictionaries(keys, st.one_of(texts, st.booleans(), numbers), max_size=4)
strange_keys = st.dictionaries(st.one_of(keys, st.sampled_from([b"a", 3, Colour.RED])), texts)
tokens = st.one_of(
    plain,
    plain,
    with_numbers,
    st.dictionaries(keys, st.one_of(texts, others), max_size=3),
    strange_keys,
    st.lists(texts),
    others,
)
sequences = st.lists(st.one_of(st.lists(plain), st.lists(with_numbers), st.lists(tokens)))


@cache
def fitted():
    """A tagger of feature dicts, learnt at the first use: all processes that test import this."""
    return CRFTagger(l2=0.1).fit(
        [
            [{"a": "a", "b": True}, {"a": "b:a", "": ""}, {"a:b": "é", "b": 2.5}],
            [{"b": "a", "a:b": False}, {"b:a": "a", "a": -1}],
        ],
        [["A", "B", "C"], ["B", "C"]],
    )


def outcome(function):
    """Names, matrix and offsets, or the message of an error."""
    try:
        vectorizer, batch = function()
    except ValueError as error:
        return str(error)
    names = vectorizer.get_feature_names_out().tolist()
    return names, batch.X.toarray().tolist(), batch.X.indices.tolist(), batch.offsets.tolist()


def by_names(function):
    """The outcome without look-up by key and value."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (NewCodes, KnownCodes):
            patch.setattr(kind, "read", lambda self, tokens, limit: None)
        return outcome(function)


@given(sequences, sequences, st.sampled_from([np.float64, np.float32]))
def test_the_same_as_by_names(X, X_new, dtype):
    def fit():
        vectorizer = SequenceVectorizer(dtype=dtype)
        return vectorizer, vectorizer.fit_transform(X)

    assert outcome(fit) == by_names(fit)
    try:
        vectorizer = SequenceVectorizer(dtype=dtype).fit(X)
    except ValueError:
        return
    for _ in range(2):
        for data in (X, X_new):
            found = outcome(lambda data=data: (vectorizer, vectorizer.transform(data)))
            fresh = pickle.loads(pickle.dumps(vectorizer))
            assert found == by_names(lambda data=data, v=fresh: (v, v.transform(data)))


def test_what_is_remembered_is_bounded_and_not_stored(monkeypatch):
    vectorizer = SequenceVectorizer().fit([[{"w": "a", "t": True}]])
    size = len(pickle.dumps(vectorizer))
    monkeypatch.setattr("skstruct.features.dicts._MOST_VALUES", 50)
    for i in range(300):
        X = vectorizer.transform([[{"w": f"{i}", "t": bool(i % 2)}, {"w": "a"}]]).X
        assert_array_equal(X.toarray(), [[i % 2, 0], [0, 1]])
        assert sum(map(len, vectorizer._last_codes.values())) <= 60
    assert len(pickle.dumps(vectorizer)) == size
    vectorizer.fit([[{"w": "b"}]])
    assert_array_equal(vectorizer.transform([[{"w": "b"}, {"w": "a"}]]).X.toarray(), [[1], [0]])


def test_ones_take_no_memory_and_stay_ones():
    X = [[{"w": str(t % 7), "bias": True} for t in range(50)] for _ in range(20)]
    vectorizer = SequenceVectorizer()
    batch = vectorizer.fit_transform(X)
    for part in (batch, batch[3:7], batch[[5, 1]], vectorizer.transform(X[:4])):
        assert part.X.data.strides == (0,)
        assert not part.X.data.flags.writeable
        assert_array_equal(part.X.data, 1.0)
        assert part.X.data.dtype == np.float64
    n_entries = batch.X.nnz
    assert len(pickle.dumps(batch)) < 4 * n_entries + 4 * batch.n_rows + 4_000
    restored = pickle.loads(pickle.dumps(batch))
    assert restored.X.data.strides == (0,)
    assert (restored.X != batch.X).nnz == 0
    assert_array_equal((batch * 2).X.data, 2.0)
    tagger = CRFTagger().fit(batch, [["A", "B"] * 25] * 20)
    other = CRFTagger().fit(X, [["A", "B"] * 25] * 20)
    assert_array_equal(tagger.coef_, other.coef_)


@given(st.lists(st.lists(st.one_of(plain, with_numbers), min_size=1, max_size=4), max_size=9))
def test_a_few_sequences_are_predicted_as_batches_are(X):
    """Without a batch, and with the same bits."""
    tagger, message, batch = fitted(), "", None
    try:
        batch = tagger.vectorizer_.transform(X)
        tagger.predict(batch)
    except ValueError as error:
        message = str(error)
    if message:
        with pytest.raises(ValueError, match=re.escape(message)):
            tagger.predict(X)
        return
    assert tagger.predict(X).tolist() == tagger.predict(batch).tolist()
    for found, expected in zip(tagger.predict_proba(X), tagger.predict_proba(batch), strict=True):
        assert_array_equal(found, expected)
    known = [["A"] + [None] * (len(tokens) - 1) for tokens in X]
    assert tagger.predict(X, known).tolist() == tagger.predict(batch, known).tolist()
    for found, expected in zip(tagger.predict_nbest(X), tagger.predict_nbest(batch), strict=True):
        assert found == expected
    tag = crfsuite.Tagger()
    tag._set_model(tagger, tagger.classes_.tolist())
    assert [tag.tag(tokens) for tokens in X] == tagger.predict(batch).tolist()


@pytest.mark.parametrize("X", [[[[]]], [[{}]], [[[], ["unknown"]]], [[{}, {"unknown": 1}]]])
def test_tokens_without_known_attributes_have_labels(X):
    tagger = fitted()
    assert [len(labels) for labels in tagger.predict(X)] == [len(X[0])]
    assert tagger.predict(X).tolist() == tagger.predict(tagger.vectorizer_.transform(X)).tolist()


def test_a_sentence_makes_no_matrix(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a matrix was made")

    tagger = fitted()
    with monkeypatch.context() as patch:
        patch.setattr("scipy.sparse.csr_matrix.__init__", refuse)
        assert len(tagger.predict([[{"a": "a"}, {"b": True}]])[0]) == 2
        assert len(tagger.predict([[["a:a"], ["b"]]])[0]) == 2
        repeated = [[{"a": "b:a", "a:b": "a"}]]
        with pytest.raises(AssertionError, match="a matrix was made"):
            tagger.predict(repeated)
    assert len(tagger.predict(repeated)[0]) == 1


def read(sequences, codes=None, limit=1e9):
    """Names and values of the features of sequences, read by key and value; None where refused."""
    codes = NewCodes() if codes is None else codes
    found = [codes.read(tokens, limit) for tokens in sequences]
    if None in found:
        return None
    name_of = {number: name for name, number in zip(*codes.take_names(), strict=True)}
    features = []
    for tokens, (numbers, lengths, positions, values) in zip(sequences, found, strict=True):
        assert lengths == list(map(len, tokens))
        data = np.ones(len(numbers))
        data[positions] = values
        names = [name_of[number] for number in numbers.tolist()]
        features += zip(names, map(repr, data.tolist()), strict=True)
    return features


def attributes(sequences):
    """The same of dicts, written down one by one."""
    return [
        # Zero has no sign.
        (f"{key}:{value}", "1.0") if type(value) is str else (key, repr(float(value) + 0.0))
        for tokens in sequences
        for token in tokens
        for key, value in token.items()
    ]


@given(st.lists(st.lists(with_numbers)))
def test_features_are_read_by_key_and_value(sequences):
    values = [value for tokens in sequences for token in tokens for value in token.values()]
    if all(type(value) is str or abs(value) <= 1e9 for value in values):
        assert read(sequences) == attributes(sequences)
    else:
        assert read(sequences) is None


def test_strings_are_read_as_they_are():
    sequences = [[["a", "b:c"], ("a",), []], [{"a"}, frozenset({"d"})], []]
    names = [name for tokens in sequences for token in tokens for name in token]
    assert read(sequences) == [(name, "1.0") for name in names]


def test_numbers_that_equal_a_bool_are_read_as_that():
    token = {"a": -0.0, "b": 0, "c": False, "d": 1, "e": True, "f": 1.0, "g": 2**53 + 1}
    features = dict(read([[token, {key: "x" for key in token}]], limit=1e18))
    expected = ["0.0", "0.0", "0.0", "1.0", "1.0", "1.0", repr(float(2**53 + 1))]
    assert [features[key] for key in token] == expected


@pytest.mark.parametrize(
    "tokens",
    [
        [{"a:b": "a", "word[-3:]": "b", "-1:word": "b", "-1:tag[:2]": "c", "n": 2}],
        [{"a": True}, {"a": False}, {"b": False}, {"a": 2.0}, {"a": "b"}],
        [{"a": "b"}, {"a.b": "a"}, {"a.b": True}, {"a": ""}, {"": "a"}, {"": True}],
        [{"a": "b:c"}, {"a:b": "c"}],
        [{"a": "b"}, {"a:b": 2}],
        [{"a": "b\0c"}, {"a": "b"}, {"a\0c": "b"}, {"a": "True"}, {"a": True}],
        [{"é": "\ud800"}, {"\ud800": "\U0001f600"}, {"z": "\uffff"}],
        [{}],
    ],
)
def test_features_of_the_same_name_are_one(tokens):
    """And columns have the order of Python's strings."""
    features = attributes([tokens])
    expected = sorted({name for name, _ in features})
    vectorizer = SequenceVectorizer()
    X = vectorizer.fit_transform([[*tokens, {"~": "~"}]]).X.toarray()
    assert vectorizer.feature_names_.tolist() == sorted([*expected, "~:~"])
    table = np.zeros_like(X[:-1])
    owners = [t for t, token in enumerate(tokens) for _ in token]
    for t, (name, value) in zip(owners, features, strict=True):
        table[t, vectorizer.vocabulary_[name]] += float(value)
    assert_array_equal(X[:-1], table)


class Name(str):
    __slots__ = ()

    def __hash__(self):
        raise AssertionError("Python code ran while a dict was read.")


@pytest.mark.parametrize(
    "token",
    [
        {"a": 1e10}, {"a": 10**400}, {"a": np.nan}, {"a": -np.inf}, {"a": None}, {b"a": "b"},
        {("a",): "b"}, {"a": np.float64(1)}, {"a": np.True_}, {"a": Colour.RED}, {"a": [1]},
        {"a": 1 + 0j}, {"a": Decimal(1)}, {"a": Name("b")}, ["a"], "a", None,
        OrderedDict(a="b"), 3,
    ],
)  # fmt: skip
def test_what_is_not_read_by_key_and_value(token):
    """Also where it equals something that is, such as True."""
    codes, usual = NewCodes(), {"a": "b", "b": True, "n": 2.5}
    assert codes.read([usual, token], 1e9) is None
    assert read([[usual]], codes) == attributes([[usual]])


@given(sequences, st.integers(1, 5))
def test_sequences_are_read_several_at_once(X, n_tokens):
    def fit(X):
        vectorizer = SequenceVectorizer()
        return vectorizer, vectorizer.fit_transform(X)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skstruct.features.tokens._TOKENS_AT_ONCE", n_tokens)
        found = outcome(lambda: fit(X))
        assert found == outcome(lambda: fit(iter(X)))
        assert found == outcome(lambda: fit(list(map(tuple, X))))
        assert found == outcome(lambda: fit([s if i % 3 else tuple(s) for i, s in enumerate(X)]))
    assert found == by_names(lambda: fit(X))


def test_a_list_that_is_filled_again():
    def generate():
        tokens = []
        yield tokens
        for i in range(5):
            tokens[:] = [{"i": str(i)}] * i
            yield tokens

    vectorizer = SequenceVectorizer()
    batch = vectorizer.fit_transform(generate())
    names = vectorizer.get_feature_names_out()[batch.X.indices].tolist()
    assert names == [f"i:{i}" for i in range(5) for _ in range(i)]
    assert_array_equal(np.diff(batch.offsets), [0, *range(5)])


def test_a_few_sequences_of_other_types_cost_the_rest_nothing(monkeypatch):
    """Only they are read by names, and the message for a token names its sequence."""
    X = [[{"a": str(i)}] for i in range(100)]
    X[30], X[70] = [{"a": ["x", "y"]}], [{"b": ["z"]}]
    read = []
    read_tokens = stream.read_tokens
    monkeypatch.setattr(
        stream, "read_tokens", lambda *args: read.append(args) or read_tokens(*args)
    )
    SequenceVectorizer().fit(X)
    assert [(tokens, i) for tokens, _, i, _ in read] == [(X[30], 30), (X[70], 70)]
    X[80] = [{"a": "b"}, {"a": None}]
    with pytest.raises(ValueError, match="Sequence 80, token 1"):
        SequenceVectorizer().fit(X)


@given(sequences, st.integers(2, 3))
def test_rare_features_are_counted_by_token(X, min_freq):
    """Repeated attributes of a token, as in ``["a", "a"]``, count once."""
    try:
        frequent = SequenceVectorizer(min_freq=min_freq).fit_transform(X)
    except ValueError:
        return
    batch = SequenceVectorizer().fit_transform(X)
    kept = np.bincount(batch.X.indices, minlength=batch.n_features) >= min_freq
    assert_array_equal(frequent.feature_names, batch.feature_names[kept])
    assert_array_equal(frequent.X.toarray(), batch.X.toarray()[:, kept])
