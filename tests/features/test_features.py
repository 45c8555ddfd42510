import enum
import math
import pickle
import tracemalloc
import weakref
from collections import Counter, OrderedDict, UserDict, UserList, deque
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import joblib
import numpy as np
import pycrfsuite
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline

from skstruct import SequenceBatch, SequenceVectorizer

X_SMALL = [
    [{"word": "the", "title": True}, {"word": "cat", "length": 3.5}, {"word": "sat"}],
    [],
    [["word:the", "bias"], ("bias",)],
    [{"word": "cat", "shape": ["X", "x"], "next": {"word": "sat", "title": False}}],
]


# The naive twin: what a token means, in plain Python.


def naive_pairs(token):
    if isinstance(token, dict):
        return [pair for key, value in token.items() for pair in naive_feature(key, value)]
    return [(name, 1.0) for name in token]


def naive_feature(name, value):
    if isinstance(value, str):
        return [(name + ":" + value, 1.0)]
    if isinstance(value, dict):
        inner = [pair for key, v in value.items() for pair in naive_feature(key, v)]
        return [(name + ":" + key, number) for key, number in inner]
    if isinstance(value, (list, set)):
        return [(name + ":" + text, 1.0) for text in value]
    return [(name, float(value))]


def naive_token(token):
    sums = {}
    for name, number in naive_pairs(token):
        sums[name] = sums.get(name, 0.0) + number
    return sums


def naive_batch(X):
    return [[naive_token(token) for token in sequence] for sequence in X]


def naive_names(X, min_freq=1):
    counts = Counter(name for sequence in naive_batch(X) for token in sequence for name in token)
    return sorted(name for name, n in counts.items() if n >= min_freq)


def restrict(tokens, names):
    return [[{k: v for k, v in t.items() if k in names} for t in s] for s in tokens]


def assert_same_batch(a, b):
    assert (a.X != b.X).nnz == 0
    assert a.X.dtype == b.X.dtype
    np.testing.assert_array_equal(a.offsets, b.offsets)
    np.testing.assert_array_equal(a.feature_names, b.feature_names)


# Few and short names, so that attributes repeat within a token and over tokens; quarters, so
# that their sums are exact in any order.
texts = st.text("abé:=|\U0001f600 ", max_size=2)
numbers = st.one_of(
    st.integers(-40, 40).map(lambda n: n / 4), st.integers(-3, 3), st.just(1.0), st.booleans()
)
leaves = st.one_of(
    texts, numbers, st.lists(texts, max_size=3), st.sets(texts, max_size=3), st.just({})
)
values = st.recursive(leaves, lambda inner: st.dictionaries(texts, inner, max_size=2), max_leaves=4)
dict_tokens = st.dictionaries(texts, values, max_size=4)
string_tokens = st.one_of(
    st.lists(texts, max_size=4), st.lists(texts, max_size=4).map(tuple), st.sets(texts, max_size=4)
)
# Sequences of one kind of token and mixed ones take different ways through the code.
sequences = st.one_of(
    st.lists(dict_tokens, max_size=4),
    st.lists(string_tokens, max_size=4),
    st.lists(st.one_of(dict_tokens, string_tokens), max_size=4),
)
batches = st.lists(sequences, min_size=1, max_size=4)
# Other work on the machine must not fail a test.
patient = settings(deadline=None)


@patient
@given(X=batches, min_freq=st.integers(1, 3), dtype=st.sampled_from([np.float32, np.float64]))
def test_matches_the_naive_twin(X, min_freq, dtype):
    names = naive_names(X, min_freq)
    assume(names)
    vectorizer = SequenceVectorizer(min_freq=min_freq, dtype=dtype)
    batch = vectorizer.fit_transform(X)

    assert list(batch.feature_names) == names
    assert list(vectorizer.get_feature_names_out()) == names
    assert list(vectorizer.vocabulary_.items()) == list(zip(names, range(len(names)), strict=True))
    assert batch.lengths.tolist() == [len(sequence) for sequence in X]
    assert vectorizer.inverse_transform(batch) == restrict(naive_batch(X), names)
    assert batch.X.dtype == dtype
    assert_same_batch(batch, vectorizer.transform(X))
    assert_same_batch(batch, clone(vectorizer).fit(X).transform(X))


@patient
@given(X_train=batches, X_test=batches)
def test_transform_ignores_unknown_attributes(X_train, X_test):
    names = naive_names(X_train)
    assume(names)
    vectorizer = SequenceVectorizer().fit(X_train)
    batch = vectorizer.transform(X_test)
    assert vectorizer.inverse_transform(batch) == restrict(naive_batch(X_test), names)
    assert batch.n_features == len(names)


@patient
@given(X=batches)
def test_matrix_is_canonical_csr_with_int32_indices(X):
    assume(naive_names(X))
    vectorizer = SequenceVectorizer()
    for matrix in (vectorizer.fit_transform(X).X, vectorizer.transform(X).X):
        assert isinstance(matrix, sp.csr_matrix)
        assert matrix.indices.dtype == np.int32
        # The flags could be stale: ask a matrix that has none yet.
        fresh = sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), matrix.shape)
        assert fresh.has_canonical_format


@patient
@given(X=st.lists(sequences, min_size=1, max_size=4))
def test_names_and_values_are_those_of_python_crfsuite(X):
    assume(naive_names(X))
    pairs = [naive_pairs(token) for sequence in X for token in sequence]
    # A dict of items shows only one of an attribute's values; CRFsuite sums them, see below.
    assume(all(len(p) == len(dict(p)) for p in pairs))
    vectorizer = SequenceVectorizer()
    ours = vectorizer.inverse_transform(vectorizer.fit_transform(X))
    theirs = [pycrfsuite.ItemSequence(sequence).items() for sequence in X]
    assert ours == theirs


def crfsuite_weights(X, tmp_path):
    trainer = pycrfsuite.Trainer("lbfgs", {"c2": 0.1, "max_iterations": 20}, verbose=False)
    for i, sequence in enumerate(X):
        trainer.append(sequence, ["ab"[(i + t) % 2] for t in range(len(sequence))])
    trainer.train(str(tmp_path / "model"))
    with pycrfsuite.Tagger().open(str(tmp_path / "model")) as tagger:
        return tagger.info().state_features


@pytest.mark.parametrize(
    "repeated",
    [
        ["w=a", "w=a", "bias"],
        {"w=a": 2, "bias": True},
        {"w=a": 1.5, "bias": 1, "": {}},
    ],
)
def test_repeated_attributes_sum_up_as_in_crfsuite(repeated, tmp_path):
    # CRFsuite does not show its sums, but it trains on them: on our sums it must learn the same.
    X = [[repeated, ["bias"]], [{"w=b": 1.0, "bias": 0.5}, repeated, repeated], [repeated]]
    vectorizer = SequenceVectorizer()
    summed = vectorizer.inverse_transform(vectorizer.fit_transform(X))
    weights = crfsuite_weights(X, tmp_path)
    assert crfsuite_weights(summed, tmp_path) == weights
    once = [[dict.fromkeys(token, 1.0) for token in sequence] for sequence in summed]
    assert crfsuite_weights(once, tmp_path) != weights


def test_a_nested_feature_and_a_plain_one_of_the_same_name_sum_up():
    X = [[{"a:b": 2, "a": {"b": 0.5}, "c": 1}, {"a": "b", "a:b": -1}]]
    vectorizer = SequenceVectorizer()
    assert vectorizer.inverse_transform(vectorizer.fit_transform(X)) == [
        [{"a:b": 2.5, "c": 1.0}, {"a:b": 0.0}]
    ]


def test_a_token_may_repeat_an_attribute_very_often():
    batch = SequenceVectorizer().fit_transform([[["a"] * 1000, ["a", "b"]]])
    np.testing.assert_array_equal(batch.X.toarray(), [[1000, 0], [1, 1]])


flat_values = st.one_of(texts, numbers, st.lists(texts, max_size=3))


@patient
@given(rows=st.lists(st.dictionaries(texts, flat_values, max_size=5), min_size=1, max_size=6))
def test_agrees_with_dict_vectorizer_on_flat_dicts(rows):
    assume(naive_names([rows]))
    ours = SequenceVectorizer().fit_transform([rows])
    reference = DictVectorizer(separator=":")
    theirs = reference.fit_transform(rows).toarray()
    np.testing.assert_array_equal(ours.feature_names, reference.get_feature_names_out())
    np.testing.assert_array_equal(ours.X.toarray(), theirs)


@patient
@given(X=batches)
def test_inverse_transform_can_be_vectorised_again(X):
    assume(naive_names(X))
    vectorizer = SequenceVectorizer()
    batch = vectorizer.fit_transform(X)
    back = vectorizer.inverse_transform(batch)
    assert_same_batch(batch, vectorizer.transform(back))
    assert_same_batch(batch, SequenceVectorizer().fit_transform(back))
    dense = SequenceBatch(batch.X.toarray(), batch.offsets)
    without_zeros = [[{k: v for k, v in t.items() if v} for t in s] for s in back]
    assert vectorizer.inverse_transform(dense) == without_zeros


@patient
@given(X=batches, data=st.data())
def test_does_not_depend_on_the_order_of_the_data(X, data):
    assume(naive_names(X))
    order = data.draw(st.permutations(range(len(X))))
    vectorizer, other = SequenceVectorizer(), SequenceVectorizer()
    batch = vectorizer.fit_transform(X)
    shuffled = other.fit_transform([X[i] for i in order])
    assert_same_batch(batch[np.array(order)], shuffled)
    assert joblib.hash(vectorizer) == joblib.hash(other)
    assert pickle.dumps(vectorizer.vocabulary_) == pickle.dumps(other.vocabulary_)


def test_min_freq_counts_tokens_and_not_repetitions():
    X = [[["often", "twice", "twice"], ["often"]], [{"often": 7, "zero": 0}], [{"zero": False}]]
    kept = [list(SequenceVectorizer(min_freq=n).fit(X).get_feature_names_out()) for n in (1, 2, 3)]
    assert kept == [["often", "twice", "zero"], ["often", "zero"], ["often"]]


def as_generators(X):
    return (iter(sequence) for sequence in X)


def as_object_array(X):
    array = np.empty(len(X), dtype=object)
    array[:] = X
    return array


@pytest.mark.parametrize("form", [tuple, iter, as_generators, as_object_array, deque])
def test_batches_and_sequences_of_all_kinds(form):
    expected = SequenceVectorizer().fit_transform(X_SMALL)
    assert_same_batch(SequenceVectorizer().fit_transform(form(X_SMALL)), expected)


def test_arrays_that_numpy_made_of_sequences_of_equal_length():
    X = [[["a", "b"], ["a", "c"]], [["b", "b"], ["d", "a"]]]
    expected = SequenceVectorizer().fit_transform(X)
    for dtype in (object, str):
        array = np.array(X, dtype=dtype)
        assert array.ndim == 3
        batch = SequenceVectorizer().fit_transform(array)
        assert_same_batch(batch, expected)
        assert {type(name) for name in batch.feature_names} == {str}


class Tag(str, enum.Enum):  # noqa: UP042 - the text of a StrEnum would be its value anyway
    NOUN = "noun"
    VERB = "verb"


@pytest.mark.parametrize(
    ("token", "attributes"),
    [
        ({"a": np.float32(0.5)}, {"a": 0.5}),
        ({"a": np.int64(3)}, {"a": 3.0}),
        ({"a": np.bool_(True)}, {"a": 1.0}),
        ({"a": np.str_("b"), np.str_("c"): "d"}, {"a:b": 1.0, "c:d": 1.0}),
        ({"a": Fraction(1, 4)}, {"a": 0.25}),
        ({"a": Decimal("1.5")}, {"a": 1.5}),
        ({"a": 10**30}, {"a": 1e30}),
        ({"a": Tag.NOUN}, {"a:noun": 1.0}),
        ({Tag.NOUN: True}, {"noun": 1.0}),
        ({Tag.NOUN: 2}, {"noun": 2.0}),
        ({Tag.NOUN: "a"}, {"noun:a": 1.0}),
        ({"a": [Tag.NOUN, "b"]}, {"a:noun": 1.0, "a:b": 1.0}),
        ([Tag.NOUN, np.str_("b")], {"noun": 1.0, "b": 1.0}),
        (OrderedDict(a=1), {"a": 1.0}),
        (frozenset(["a"]), {"a": 1.0}),
        ({"": "", "a": ""}, {":": 1.0, "a:": 1.0}),
        ([""], {"": 1.0}),
        ({"a": {"b": {"c": ["d"]}}}, {"a:b:c:d": 1.0}),
    ],
)
def test_less_common_types_mean_what_they_mean_to_python_crfsuite(token, attributes):
    vectorizer = SequenceVectorizer()
    tokens = vectorizer.inverse_transform(vectorizer.fit_transform([[token]]))
    assert tokens == [[attributes]] == [pycrfsuite.ItemSequence([token]).items()]
    assert {type(name) for name in vectorizer.vocabulary_} == {str}


@pytest.mark.parametrize(
    ("token", "attributes"),
    [
        ({"a": ("b", "c")}, {"a:b": 1.0, "a:c": 1.0}),
        ({"a": frozenset(["b"])}, {"a:b": 1.0}),
        ({"a": np.array(["b", "c"])}, {"a:b": 1.0, "a:c": 1.0}),
        ({"a": MappingProxyType({"b": 2})}, {"a:b": 2.0}),
        (UserDict(a=2, b="c"), {"a": 2.0, "b:c": 1.0}),
        (UserList(["a", "b"]), {"a": 1.0, "b": 1.0}),
        (["a\0b"], {"a\0b": 1.0}),
    ],
)
def test_what_is_accepted_beyond_python_crfsuite(token, attributes):
    vectorizer = SequenceVectorizer()
    assert vectorizer.inverse_transform(vectorizer.fit_transform([[token]])) == [[attributes]]


def test_empty_sequences_and_tokens_are_kept():
    vectorizer = SequenceVectorizer().fit(X_SMALL)
    batch = vectorizer.transform([[], [[], {}], []])
    assert batch.lengths.tolist() == [0, 2, 0]
    assert batch.X.nnz == 0
    assert vectorizer.inverse_transform(batch) == [[], [{}, {}], []]
    assert vectorizer.transform([[]]).n_rows == 0


# Streaming.


@pytest.mark.parametrize("method", ["fit", "fit_transform", "transform"])
@pytest.mark.parametrize("kind", ["strings", "dicts"])
def test_generators_are_not_retained(method, kind):
    class Features(dict):
        """Dicts take no weak reference, their subclasses do."""

    vectorizer = SequenceVectorizer().fit(X_SMALL)
    alive = []

    def generate():
        for i in range(50):
            text = str(i)
            token = {"w" + text} if kind == "strings" else Features(w=text, tags={text}, n=i / 7)
            reference = weakref.ref(token)
            yield [token]
            del token
            # The vectoriser may still hold the sequence that it asked for last.
            alive.append(reference)
            assert all(earlier() is None for earlier in alive[:-1])

    getattr(vectorizer, method)(generate())
    assert len(alive) == 50


def test_memory_is_proportional_to_the_result():
    n_attributes = 400_000

    def generate():
        for i in range(n_attributes // 200):
            yield [[f"feature-{j}-{(i + j) % 50}" for j in range(20)] for _ in range(10)]

    tracemalloc.start()
    try:
        batch = SequenceVectorizer().fit_transform(generate())
        size, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    result = batch.X.data.nbytes + batch.X.indices.nbytes + batch.X.indptr.nbytes
    assert batch.X.nnz == n_attributes
    assert size < 1.3 * result
    # The strings alone would take five times that.
    assert peak < 2 * result


# Bad input.

NUMBER = "values must be finite and at most"
SHAPE = "A batch is a list of sequences, a sequence a list of tokens."


class Thing:
    def __repr__(self):
        return "thing"


BAD_TOKENS = {
    "nan": ({"x": math.nan}, "feature 'x' is nan; " + NUMBER),
    "inf": ({"x": math.inf}, "feature 'x' is inf; " + NUMBER),
    "-inf": ({"x": -math.inf}, "feature 'x' is -inf; " + NUMBER),
    "numpy nan": ({"x": np.float64("nan")}, "feature 'x' is nan; " + NUMBER),
    "Decimal nan": ({"x": Decimal("NaN")}, "feature 'x' is nan; " + NUMBER),
    "signalling nan": ({"x": Decimal("sNaN")}, "feature 'x' is nan; " + NUMBER),
    "huge int": ({"x": 10**400}, "feature 'x' is inf; " + NUMBER),
    "nested nan": ({"x": {"y": math.nan}}, "feature 'x:y' is nan; " + NUMBER),
    "None": ({"x": None}, "feature 'x' is None; expected a string, bool or number"),
    "complex": ({"x": 1j}, "feature 'x' is 1j; expected"),
    "object": ({"x": Thing()}, "feature 'x' is thing; expected"),
    "list of numbers": ({"x": [1, 2]}, "feature 'x' is [1, 2]; expected"),
    "array of objects": ({"x": np.array([1, "a"], object)}, "feature 'x' is array([1, 'a'], dtyp"),
    "matrix": (
        {"x": np.ones((1, 2))},
        "feature 'x' is an array of shape (1, 2); expected a 1-D array",
    ),
    "array with nan": ({"x": np.array([1, math.nan])}, "feature 'x' has the value nan; " + NUMBER),
    "list of lists": ({"x": [["y"]]}, "feature 'x' is [['y']]; expected"),
    "int key": ({1: "x"}, "feature name 1 is not a string."),
    "int key of a bool": ({1: False}, "feature name 1 is not a string."),
    "int key of a number": ({1: 2.0}, "feature name 1 is not a string."),
    "deep None": ({"x": {"y": {"z": None}}}, "feature 'x:y:z' is None; expected"),
    "nested key": ({"x": {None: "y"}}, "feature name None is not a string."),
    "string": ("word=the", "'word=the' is not a valid token; expected a dict of features"),
    "number": (3.5, "3.5 is not a valid token; expected a dict of features"),
    "None token": (None, "None is not a valid token; expected a dict of features"),
    "numbers": ([0.5, 1.5], "[0.5, 1.5] is not a valid token; expected a dict of features"),
    "mixed strings": (["a", 1], "['a', 1] is not a valid token; expected a dict of features"),
    "pairs": ([("a", 1.0)], "[('a', 1.0)] is not a valid token; expected a dict of features"),
    "dicts": ([{"a": 1.0}], "[{'a': 1.0}] is not a valid token; expected a dict of features"),
    "bytes token": (b"abc", "b'abc' is not a valid token; expected a dict of features"),
    "generator": (iter("ab"), "is not a valid token; expected a dict of features"),
}


@pytest.mark.parametrize("good", [{"a": "b"}, ["a:b"]], ids=["dicts", "strings"])
@pytest.mark.parametrize("form", [list, as_generators], ids=["list", "generators"])
@pytest.mark.parametrize(("token", "message"), BAD_TOKENS.values(), ids=BAD_TOKENS)
def test_bad_tokens_are_named(token, message, form, good):
    X = [[good] * 2, [], [good], [good] * 7 + [token, good]]
    vectorizer = SequenceVectorizer().fit(X_SMALL)
    for method in (vectorizer.fit, vectorizer.fit_transform, vectorizer.transform):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            method(form(X))
        assert str(caught.value).startswith("Sequence 3, token 7: ")
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([{"a": "b"}, {"a": "c"}], "Sequence 0 is {'a': 'b'}; expected a list of tokens. " + SHAPE),
        ([["a", "b"], ["c"]], "Sequence 0, token 0: 'a' is not a valid token"),
        (["ab"], "Sequence 0 is 'ab'; expected a list of tokens. " + SHAPE),
        ([[["a"]], 3], "Sequence 1 is 3; expected a list of tokens. " + SHAPE),
        ([[["a"]], None], "Sequence 1 is None; expected a list of tokens. " + SHAPE),
        ("ab", "X is 'ab'; expected a list of sequences. " + SHAPE),
        ({"a": "b"}, "X is {'a': 'b'}; expected a list of sequences. " + SHAPE),
        (None, "X is None; expected a list of sequences. " + SHAPE),
        (np.ones((2, 3)), "Sequence 0, token 0: 1.0 is not a valid token"),
        (SequenceBatch(np.ones((2, 3)), [0, 2]), "Sequence 0, token 0: array([1., 1., 1.]) is not"),
        ([], "Found an empty batch: at least one sequence is required."),
        (iter([]), "Found an empty batch: at least one sequence is required."),
    ],
)
@pytest.mark.parametrize("method", ["fit", "fit_transform", "transform"])
def test_batches_that_are_none(X, message, method):
    vectorizer = SequenceVectorizer().fit(X_SMALL)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        getattr(vectorizer, method)(X if not hasattr(X, "__next__") else iter([]))
    assert message in str(caught.value)


@pytest.mark.parametrize(("X", "min_freq"), [([[{}, []]], 1), (X_SMALL, 5)])
def test_no_attribute_left(X, min_freq):
    with pytest.raises(ValueError, match=rf"No attribute occurs in at least {min_freq} token"):
        SequenceVectorizer(min_freq=min_freq).fit(X)


def test_values_must_fit_the_dtype():
    X = [[{"a": 1e300}]]
    assert SequenceVectorizer().fit_transform(X).X[0, 0] == 1e300
    message = r"Sequence 0, token 0: feature 'a' is 1e\+300; .* at most 3.4e\+38"
    with pytest.raises(ValueError, match=message):
        SequenceVectorizer(dtype=np.float32).fit(X)


@pytest.mark.parametrize(
    "params", [{"min_freq": 0}, {"min_freq": 1.5}, {"dtype": int}, {"dtype": "float16"}]
)
def test_bad_parameters(params):
    name = next(iter(params))
    with pytest.raises(ValueError, match=name):
        SequenceVectorizer(**params).fit(X_SMALL)


def test_an_error_of_the_users_generator_comes_through():
    def broken():
        yield [["a"]]
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError, match="disk on fire"):
        SequenceVectorizer().fit(broken())


@pytest.mark.parametrize("X", [[[["new"]], [[3]]], [], [[{}]]])
def test_a_failed_fit_changes_nothing(X):
    vectorizer = SequenceVectorizer().fit(X_SMALL)
    before = joblib.hash(vectorizer)
    with pytest.raises(ValueError, match=r"not a valid token|empty batch|No attribute"):
        vectorizer.fit(X)
    assert joblib.hash(vectorizer) == before


def test_inverse_transform_gives_stored_zeros():
    vectorizer = SequenceVectorizer().fit([[["a", "b"]]])
    matrix = sp.csr_matrix((np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 2])), (1, 2))
    batch = SequenceBatch(matrix, [0, 1], keep_zeros=True)
    assert batch.X.nnz == 2
    assert vectorizer.inverse_transform(batch) == [[{"a": 0.0, "b": 2.0}]]


def test_inverse_transform_of_something_else():
    vectorizer = SequenceVectorizer().fit(X_SMALL)
    n = len(vectorizer.vocabulary_)
    for batch in (SequenceBatch(np.ones((2, n + 1)), [0, 2]), np.ones((2, n))):
        with pytest.raises(ValueError, match=f"Expected a SequenceBatch of {n} features, got"):
            vectorizer.inverse_transform(batch)


@pytest.mark.parametrize("method", ["transform", "inverse_transform", "get_feature_names_out"])
def test_unfitted(method):
    with pytest.raises(NotFittedError):
        getattr(SequenceVectorizer(), method)([])


# Among scikit-learn's tools.


class TokenClassifier(BaseEstimator):
    """Logistic regression of single tokens: the least that learns from a batch."""

    def fit(self, X, y):
        assert isinstance(X, SequenceBatch)
        self.model_ = LogisticRegression().fit(X.X, np.concatenate(y))
        return self

    def score(self, X, y):
        return self.model_.score(X.X, np.concatenate(y))


class CountingVectorizer(SequenceVectorizer):
    calls = 0

    def fit_transform(self, X, y=None):
        type(self).calls += 1
        return super().fit_transform(X, y)


def make_sentences(n):
    rng = np.random.default_rng(0)
    words = [rng.zipf(1.5, size=rng.integers(1, 9)).clip(max=60) for _ in range(n)]
    X = [[{"word": str(w), "odd": bool(w % 2), "bias": 1.0} for w in s] for s in words]
    y = [["N" if w % 3 else "V" for w in s] for s in words]
    return X, y


def test_grid_search_over_min_freq():
    X, y = make_sentences(60)
    pipeline = Pipeline([("vectorizer", SequenceVectorizer()), ("model", TokenClassifier())])
    grid = {"vectorizer__min_freq": [1, 2, 10]}
    search = GridSearchCV(pipeline, grid, cv=KFold(3), error_score="raise").fit(X, y)

    for min_freq, mean in zip([1, 2, 10], search.cv_results_["mean_test_score"], strict=True):
        scores = []
        for train, test in KFold(3).split(X):
            reference = DictVectorizer(separator=":")
            X_train = reference.fit_transform([t for i in train for t in X[i]])
            X_test = reference.transform([t for i in test for t in X[i]])
            frequent = np.asarray((X_train != 0).sum(axis=0)).ravel() >= min_freq
            model = LogisticRegression().fit(
                X_train[:, frequent], np.concatenate([y[i] for i in train])
            )
            scores.append(model.score(X_test[:, frequent], np.concatenate([y[i] for i in test])))
        assert mean == pytest.approx(np.mean(scores))

    best = search.best_estimator_["vectorizer"]
    assert list(best.get_feature_names_out()) == naive_names(X, best.min_freq)


def test_pipeline_with_memory(tmp_path):
    X, y = make_sentences(20)
    CountingVectorizer.calls = 0
    scores = []
    for _ in range(2):
        pipeline = Pipeline(
            [("vectorizer", CountingVectorizer()), ("model", TokenClassifier())],
            memory=joblib.Memory(tmp_path, verbose=0),
        )
        scores.append(pipeline.fit(X, y).score(X, y))
    assert CountingVectorizer.calls == 1
    assert scores[0] == scores[1] > 0.5


def test_clone_and_parameters():
    vectorizer = SequenceVectorizer(min_freq=2, dtype=np.float32).fit(X_SMALL)
    copy = clone(vectorizer)
    assert copy.get_params() == {"min_freq": 2, "dtype": np.float32}
    assert not hasattr(copy, "vocabulary_")
    assert_same_batch(copy.fit_transform(X_SMALL), vectorizer.transform(X_SMALL))


def test_pickle_keeps_everything():
    vectorizer = SequenceVectorizer().fit(X_SMALL)
    copy = pickle.loads(pickle.dumps(vectorizer))
    assert joblib.hash(copy) == joblib.hash(vectorizer)
    assert_same_batch(copy.transform(X_SMALL), vectorizer.transform(X_SMALL))


def test_batch_of_a_vectorizer_pickles_and_hashes_the_same():
    first = SequenceVectorizer().fit_transform(X_SMALL)
    second = SequenceVectorizer().fit_transform(as_generators(X_SMALL))
    assert joblib.hash(first) == joblib.hash(second)
    assert joblib.hash(pickle.loads(pickle.dumps(first))) == joblib.hash(first)


def test_feature_names_out_is_a_copy():
    vectorizer = SequenceVectorizer().fit(X_SMALL)
    names = list(vectorizer.get_feature_names_out())
    vectorizer.get_feature_names_out()[0] = "changed"
    assert list(vectorizer.get_feature_names_out()) == names


def test_tags():
    tags = SequenceVectorizer().__sklearn_tags__()
    assert tags.input_tags.dict
    assert not tags.input_tags.two_d_array
    assert tags.requires_fit
    assert not tags.target_tags.required
