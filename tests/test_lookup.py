"""Features found by key and value: the same as by the names of their attributes."""

import os
import pickle
import re
import subprocess
import sys
from collections import OrderedDict
from decimal import Decimal
from enum import StrEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skstruct import CRFTagger, SequenceVectorizer, crfsuite, kernels
from skstruct.features import stream
from skstruct.features.lookup import FeatureCounter, FeatureLookup
from skstruct.features.ordering import EncodedTexts, sort_names


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

TAGGER = CRFTagger(l2=0.1).fit(
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
        for kind in (FeatureCounter, FeatureLookup):
            patch.setattr(kind, "look_up", lambda self, tokens, limit: None)
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
        rows = vectorizer.pack([[{"w": f"{i}", "t": bool(i % 2)}, {"w": "a"}]]).rows
        assert_array_equal(rows.indices, [0, 1])
        assert_array_equal(rows.data, [] if i % 2 else [0, 1])
        assert vectorizer._last_lookup._tables.n_values <= 60
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
    message, batch = "", None
    try:
        batch = TAGGER.vectorizer_.transform(X)
    except ValueError as error:
        message = str(error)
    if batch is None:
        with pytest.raises(ValueError, match=re.escape(message)):
            TAGGER.predict(X)
        return
    assert TAGGER.predict(X).tolist() == TAGGER.predict(batch).tolist()
    for found, expected in zip(TAGGER.predict_proba(X), TAGGER.predict_proba(batch), strict=True):
        assert_array_equal(found, expected)
    known = [["A"] + [None] * (len(tokens) - 1) for tokens in X]
    assert TAGGER.predict(X, known).tolist() == TAGGER.predict(batch, known).tolist()
    for found, expected in zip(TAGGER.predict_nbest(X), TAGGER.predict_nbest(batch), strict=True):
        assert found == expected
    tag = crfsuite.Tagger()
    tag._use(TAGGER, TAGGER.classes_.tolist())
    assert [tag.tag(tokens) for tokens in X] == TAGGER.predict(batch).tolist()


def test_a_sentence_makes_no_matrix(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a matrix was made")

    with monkeypatch.context() as patch:
        patch.setattr("scipy.sparse.csr_matrix.__init__", refuse)
        assert len(TAGGER.predict([[{"a": "a"}, {"b": True}]])[0]) == 2
        repeated = [[{"a": "b:a", "a:b": "a"}]]
        with pytest.raises(AssertionError, match="a matrix was made"):
            TAGGER.predict(repeated)
    assert len(TAGGER.predict(repeated)[0]) == 1


def number(sequences, counter=None):
    """Names and values of the features of sequences, as a counter finds them."""
    counter = FeatureCounter() if counter is None else counter
    found = [counter.look_up(tokens, 1e9) for tokens in sequences]
    names, zero = counter.take_names()
    features = []
    for codes, positions, values in found:
        numbers = np.where(zero[codes], 0.0, 1.0)
        numbers[positions] = values
        features += zip([names[code] for code in codes], numbers.tolist(), strict=True)
    return features


@given(st.lists(st.lists(with_numbers)))
def test_dicts_are_read_where_they_are(sequences):
    expected = []
    for tokens in sequences:
        pairs = [pair for token in tokens for pair in token.items()]
        if not all(type(v) is str or abs(v) <= 1e9 for _, v in pairs):
            assert FeatureCounter().look_up(tokens, 1e9) is None
            return
        expected += [(f"{k}:{v}", 1.0) if type(v) is str else (k, float(v)) for k, v in pairs]
    assert number(sequences) == expected


def sorted_names(counter, sequences):
    """Names in order, and names and values of the features of sequences; None where refused."""
    numbers = [counter.look_up(tokens, 1e9) for tokens in sequences]
    found = counter.take_sorted_names()
    if found is None:
        return None
    names, columns, zero = found
    features = []
    for codes, positions, values in numbers:
        data = np.where(zero[codes], 0.0, 1.0)
        data[positions] = values
        features += zip([names[c] for c in columns[codes]], data.tolist(), strict=True)
    return names, features


@given(st.lists(with_numbers))
def test_sorted_names(tokens):
    tokens = [token for token in tokens if FeatureCounter().look_up([token], 1e9) is not None]
    features = number([tokens])
    found = sorted_names(FeatureCounter(), [tokens])
    if found is not None:
        assert found == (sorted({name for name, _ in features}), features)


@pytest.mark.parametrize(
    ("tokens", "are_apart"),
    [
        ([{"word": "a:b", "word[-3:]": "b", "-1:word": "b", "-1:tag[:2]": "c", "n": 2}], True),
        ([{"a": True}, {"a": False}, {"b": False}, {"a": 2.0}, {"a": "b"}], True),
        ([{"a": "b"}, {"a.b": "a"}, {"a.b": True}, {"a": ""}, {"": "a"}, {"": True}], True),
        ([{"a": "b:c"}, {"a:b": "c"}], False),
        ([{"a": "b"}, {"a:b": 2}], False),
        ([{"a": "b\0c"}, {"a": "b"}], False),
        ([{"a\0c": "b"}, {"a": "b"}], False),
        ([{}], True),
    ],
)
def test_features_of_the_same_name_are_one(tokens, are_apart):
    features = number([tokens])
    expected = sorted({name for name, _ in features})
    found = sorted_names(FeatureCounter(), [tokens])
    assert found == ((expected, features) if are_apart else None)
    vectorizer = SequenceVectorizer().fit([[*tokens, {"z": "z"}]])
    assert vectorizer.feature_names_.tolist() == [*expected, "z:z"]


def test_a_counter_that_refuses_to_sort_keeps_its_names():
    counter = FeatureCounter()
    counter.look_up([{"a": "b:c"}, {"a:b": "c"}], 1e9)
    assert counter.take_sorted_names() is None
    assert counter.take_names()[0] == ["a:b:c", "a:b:c"]


# Texts with long common beginnings, and characters of one to four bytes and surrogates.
syllables = st.sampled_from(["aaaaaaa", "b", "\x01", "\x7f", "é", "\u4e00", "\ud800", "\U0001f600"])
similar = st.lists(syllables, max_size=12).map("".join)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), similar | st.text(st.characters(exclude_characters="\0"))),
        unique=True,
    )
)
def test_names_are_sorted_as_python_sorts(pairs):
    prefixes = ["b:", "a:", "a.é:", "aaaaaaaaab:"]
    expected = sorted(prefixes[k] + text for k, text in pairs)
    texts = [text for _, text in pairs]
    names, order = sort_names(
        prefixes, np.array([k for k, _ in pairs], np.int64), EncodedTexts(texts)
    )
    assert names == expected
    assert [prefixes[pairs[i][0]] + pairs[i][1] for i in order.tolist()] == expected


@pytest.mark.parametrize("n_prefixes", [1, 40, 70_000])
def test_many_names_are_sorted_as_python_sorts(n_prefixes):
    rng = np.random.default_rng(n_prefixes)
    texts = [f"{'é' * (i % 5)}{'x' * (i % 40)}{i:x}" for i in range(40_000)]
    which = rng.integers(n_prefixes, size=len(texts))
    prefixes = [f"{k:x}:" for k in rng.permutation(n_prefixes)]
    names, order = sort_names(prefixes, which, EncodedTexts(texts))
    assert names == sorted(prefixes[k] + text for k, text in zip(which, texts, strict=True))
    assert names == [prefixes[which[i]] + texts[i] for i in order]


def test_many_features_of_objects_that_are_gone():
    """Equal keys and values are other objects each time, and addresses are used again."""
    n_values = 20_000
    counter = FeatureCounter()
    numbers = [
        counter.look_up([{f"key {i % 7}": f"value {i % n_values}", "n": i + 0.5}], 1e9)[0].tolist()
        for i in range(3 * n_values)
    ]
    names = counter.take_names()[0]
    assert len(names) == len(set(names))
    assert [names[a] for a, _ in numbers] == [
        f"key {i % 7}:value {i % n_values}" for i in range(3 * n_values)
    ]
    assert {names[b] for _, b in numbers} == {"n"}


def test_no_object_is_kept_or_lost():
    key, value, amount = "key"[:] + str(id(number)), "value" + str(id(number)), 1234.5
    before = [sys.getrefcount(x) for x in (key, value, amount, str, dict, float)]
    tokens = [{key: value}, {key: amount}, {key: value}]
    counter = FeatureCounter()
    for _ in range(1000):
        counter.look_up(tokens, 1e9)
    del counter, tokens
    after = [sys.getrefcount(x) for x in (key, value, amount, str, dict, float)]
    assert all(abs(a - b) < 100 for a, b in zip(before, after, strict=True))


class Name(str):
    __slots__ = ()

    def __hash__(self):
        raise AssertionError("Python code ran while a dict was read.")


@pytest.mark.parametrize(
    "token",
    [
        {"a": 2**63}, {"a": -(2**80)}, {"a": 1e10}, {"a": np.nan}, {"a": None}, {b"a": "b"},
        {("a",): "b"}, {"a": np.float64(1)}, {"a": np.True_}, {"a": Colour.RED}, {"a": [1]},
        {"a": Name("b")}, {Colour.RED: "b"}, ["a"], "a", None, OrderedDict(a="b"), 3,
    ],
)  # fmt: skip
def test_what_is_not_read_in_place(token):
    counter = FeatureCounter()
    assert counter.look_up([{"a": "b"}, token], 1e9) is None
    codes, *_ = counter.look_up([{"a": "b", "c": 2**53 + 1}], 1e18)
    names, _ = counter.take_names()
    assert [names[code] for code in codes] == ["a:b", "c"]


def test_without_compilation():
    code = (
        "import skstruct; v = skstruct.SequenceVectorizer()\n"
        "print(v.fit_transform([[{'a': 'b', 'n': 2.0, 'f': False}]]).X.toarray().tolist())"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert result.stdout.decode().strip() == "[[1.0, 0.0, 2.0]]", result.stderr.decode()


def test_dicts_that_grow_before_they_are_read(monkeypatch):
    counter, token = FeatureCounter(), {"a": "b"}
    grow = counter._pairs._grow

    def grow_both(capacity):
        token.update({f"key {i}": "value" for i in range(10_000)})
        grow(capacity)

    # The room is made after the features were counted.
    monkeypatch.setattr(counter._pairs, "_grow", grow_both)
    counter._pairs._entries = counter._pairs._entries[:0]
    assert counter.look_up([token], 1e9) is None
    assert len(counter.look_up([token], 1e9)[0]) == 10_001


@pytest.mark.parametrize("n", [kernels.BLOCK + i for i in (-1, 0, 1)] + [3 * kernels.BLOCK + 5])
def test_borders_of_blocks(n):
    """Within a dict, between dicts, and with a pair that is new twice in a block."""
    one = {f"key {i}": f"value {i % 10}" if i % 3 else i / 2 for i in range(n)}
    few = [{f"k{i % 2}": f"v{i // 4}", "bias": True} for i in range(n)]
    for tokens in ([one], [one, dict(one)], few, [{}, *few, {}, one], [{"a": "b"}] * n):
        expected = [
            (f"{k}:{v}", 1.0) if type(v) is str else (k, float(v))
            for token in tokens
            for k, v in token.items()
        ]
        for sequences in ([tokens], [tokens, tokens]):
            assert number(sequences) == expected * len(sequences)


@pytest.mark.parametrize("position", [0, kernels.BLOCK - 1, kernels.BLOCK, 2 * kernels.BLOCK])
def test_another_type_behind_the_border_of_a_block(position):
    token = {f"key {i}": f"value {i}" for i in range(2 * kernels.BLOCK + 1)}
    for value in (None, np.nan, Name("b")):
        changed = {**token, f"key {position}": value}
        counter = FeatureCounter()
        assert counter.look_up([changed], 1e9) is None
        assert number([[token]], counter) == [(f"{k}:{v}", 1.0) for k, v in token.items()]


@given(sequences, st.integers(1, 5))
def test_sequences_are_read_several_at_once(X, n_tokens):
    def fit(X):
        vectorizer = SequenceVectorizer()
        return vectorizer, vectorizer.fit_transform(X)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skstruct.features.stream._TOKENS_AT_ONCE", n_tokens)
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
