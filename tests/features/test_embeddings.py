"""Dense vectors beside sparse features: in dicts, side by side, looked up, in a pipeline."""

import copy
import pickle
import re
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from skstruct import (
    CRFTagger,
    EmbeddingVectorizer,
    PerceptronTagger,
    SequenceBatch,
    SequenceUnion,
    SequenceVectorizer,
    TemplateVectorizer,
    VectorScaler,
)
from skstruct.features import align_subwords
from skstruct.features.embeddings import look_around
from skstruct.matrices import as_csr, hstack


class Unreadable:
    """As a tensor with a gradient."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no numpy")


VECTORS = {"the": [1.0, 0.5], "cat": [-1.0, 2.0], "sat": np.array([0.0, 3.0], np.float32)}
TOKENS = [["the", "cat", "sat"], [], ["The", "dog"]]


def dense(batch):
    return batch.X.toarray() if sp.issparse(batch.X) else batch.X


# ------------------------------------------------------------------------------ arrays in dicts


def test_an_array_is_a_column_for_each_place():
    X = [
        [{"word": "a", "v": np.array([0.5, 2.0, 0.0])}, {"word": "b"}],
        [{"v": np.array([1, -1, 3])}, {"nested": {"v": np.array([True, False])}}],
    ]
    vectorizer = SequenceVectorizer()
    batch = vectorizer.fit_transform(X)
    names = ["nested:v:0", "nested:v:1", "v:0", "v:1", "v:2", "word:a", "word:b"]
    assert vectorizer.get_feature_names_out().tolist() == names
    expected = [
        [0, 0, 0.5, 2, 0, 1, 0],
        [0, 0, 0, 0, 0, 0, 1],
        [0, 0, 1, -1, 3, 0, 0],
        [1, 0, 0, 0, 0, 0, 0],
    ]
    assert_array_equal(dense(batch), expected)
    assert_array_equal(dense(vectorizer.transform(X)), expected)
    # Zeros are stored, as those of other features are.
    assert batch.X.nnz == 3 + 3 + 2 + 2
    assert batch.X.has_canonical_format


@given(st.data())
def test_arrays_are_numbers_by_other_names(data):
    """The same batch as of dicts that spell every place out."""
    number = st.sampled_from([0.0, 1.0, -2.5, 7.0])
    lengths = {"a": data.draw(st.integers(1, 3)), "b": data.draw(st.integers(1, 12))}
    X = []
    for _ in range(data.draw(st.integers(1, 3))):
        sequence = []
        for _ in range(data.draw(st.integers(0, 3))):
            token = {"word": data.draw(st.sampled_from("xyz"))}
            for name, n in lengths.items():
                if data.draw(st.booleans()):
                    token[name] = np.array(data.draw(st.lists(number, min_size=n, max_size=n)))
            if data.draw(st.booleans()):
                token["a:0"] = data.draw(number)
            sequence.append(token)
        X.append(sequence)
    if not any(X):
        return

    def spelt_out(token):
        spelt = [{n: v for n, v in token.items() if not isinstance(v, np.ndarray)}]
        for name, vector in token.items():
            if isinstance(vector, np.ndarray):
                spelt.append({f"{name}:{k}": value for k, value in enumerate(vector.tolist())})
        total = {}
        for part in spelt:
            for name, value in part.items():
                repeated = name in total and not isinstance(value, str)
                total[name] = total[name] + value if repeated else value
        return total

    plain = [[spelt_out(token) for token in sequence] for sequence in X]
    min_freq = data.draw(st.integers(1, 2))
    ours, theirs = SequenceVectorizer(min_freq=min_freq), SequenceVectorizer(min_freq=min_freq)
    try:
        expected = theirs.fit_transform(plain)
    except ValueError:
        return
    found = ours.fit_transform(X)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert_array_equal(dense(found), dense(expected))
    assert_array_equal(found.X.indptr, expected.X.indptr)
    half = X[: len(X) // 2 + 1]
    assert_array_equal(dense(ours.transform(half)), dense(theirs.transform(plain[: len(half)])))


def test_unseen_arrays_are_ignored():
    vectorizer = SequenceVectorizer().fit([[{"v": np.ones(2), "word": "a"}]])
    found = vectorizer.transform([[{"other": np.ones(3), "v": np.array([2.0, 3.0])}]])
    assert_array_equal(dense(found), [[2, 3, 0]])
    assert vectorizer.transform([[{"other": np.ones(4)}]]).X.nnz == 0
    assert_array_equal(dense(vectorizer.transform([[{"v": np.array([])}]])), [[0, 0, 0]])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            np.ones(3),
            "Sequence 1, token 1: feature 'v' is an array of 3 numbers, but elsewhere of 2",
        ),
        (np.ones((1, 2)), r"Sequence 1, token 1: feature 'v' is an array of shape \(1, 2\)"),
        (np.array([1, np.nan]), "Sequence 1, token 1: feature 'v' has the value nan"),
        (np.array([np.inf, 1]), "Sequence 1, token 1: feature 'v' has the value inf"),
        (np.array(3.0), "Sequence 1, token 1: feature 'v' is array"),
        (np.array([1j, 2]), "Sequence 1, token 1: feature 'v' is array"),
        (np.ma.ones(2), "Sequence 1, token 1: feature 'v' is masked_array"),
        ([1.0, 2.0], "Sequence 1, token 1: feature 'v' is .*or an array of numbers"),
    ],
)
def test_bad_arrays(value, message):
    X = [[{"v": np.ones(2)}], [{"v": np.ones(2)}, {"v": value}]]
    with pytest.raises(ValueError, match=message):
        SequenceVectorizer().fit(X)
    vectorizer = SequenceVectorizer().fit(X[:1])
    with pytest.raises(ValueError, match=message):
        vectorizer.transform(X)
    with pytest.raises(ValueError, match=message):
        CRFTagger().fit(X, [["x"], ["x", "y"]])
    with pytest.raises(ValueError, match="has the value 1e"):
        SequenceVectorizer(dtype=np.float32).fit([[{"v": np.array([1e300])}]])


@pytest.mark.parametrize("tagger", [CRFTagger(l2=0.1, tol=1e-10), PerceptronTagger(random_state=0)])
def test_a_tagger_of_arrays_is_one_of_a_matrix(tagger):
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(n, 5)) for n in (3, 1, 4, 2)]
    y = [rng.integers(2, size=len(m)).tolist() for m in matrices]
    dicts = [[{"v": row} for row in matrix] for matrix in matrices]
    of_dicts, of_matrices = clone(tagger).fit(dicts, y), clone(tagger).fit(matrices, y)
    # Matrices are blocks, whose products are rounded otherwise.
    assert_allclose(of_dicts.coef_, of_matrices.coef_, atol=1e-6)
    for ours, theirs in zip(
        of_dicts.predict_proba(dicts), of_matrices.predict_proba(matrices), strict=True
    ):
        assert_allclose(ours, theirs, atol=1e-6)


# --------------------------------------------------------------------------------- side by side


@pytest.mark.parametrize("density", [1.0, 0.4, 0.0])
@pytest.mark.parametrize("shape", [(7, 5), (0, 3), (4, 1), (3, 0)])
def test_dense_matrices_as_sparse_ones(density, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * (rng.random(shape) < density)
    for matrix in (X, np.asfortranarray(X), X.astype(np.float32)):
        found = as_csr(matrix)
        assert found.has_canonical_format
        assert found.nnz == np.count_nonzero(matrix)
        assert found.dtype == matrix.dtype
        assert_array_equal(found.toarray(), matrix)


@pytest.mark.parametrize("seed", range(5))
def test_columns_side_by_side(seed, monkeypatch):
    monkeypatch.setattr("skstruct.matrices._BLOCK", 10)
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 9))
    matrices = [
        rng.normal(size=(n, width)) * (rng.random((n, width)) < 0.5)
        for width in rng.integers(0, 5, int(rng.integers(1, 5)))
    ]
    expected = np.concatenate(matrices, axis=1)
    assert_array_equal(hstack(matrices), expected)
    mixed = [sp.csr_matrix(m) if rng.random() < 0.5 else m for m in matrices]
    mixed[0] = sp.csr_array(matrices[0])
    found = hstack(mixed)
    assert sp.issparse(found)
    assert_array_equal(found.toarray(), expected)
    assert found.has_canonical_format
    assert sp.csr_matrix((found.data, found.indices, found.indptr), found.shape).has_sorted_indices


def test_hstack_keeps_names_and_transitions():
    a = SequenceBatch.from_lengths(np.eye(3), [2, 1], feature_names=["a", "b", "c"])
    edges = np.arange(3.0).reshape(3, 1)
    b = SequenceBatch.from_lengths(
        sp.csr_matrix(np.ones((3, 1))), [2, 1], feature_names=["d"], transition_X=edges
    )
    both = SequenceBatch.hstack([a, b])
    assert_array_equal(dense(both), np.column_stack([np.eye(3), np.ones(3)]))
    assert both.feature_names.tolist() == ["a", "b", "c", "d"]
    assert_array_equal(both.transition_X, edges)
    twice = SequenceBatch.hstack([b, a, b])
    assert_array_equal(twice.transition_X, np.column_stack([edges, edges]))
    assert SequenceBatch.hstack([a, SequenceBatch(a.X, a.offsets)]).feature_names is None
    assert not sp.issparse(SequenceBatch.hstack([a, a]).X)
    assert SequenceBatch.hstack(iter([a])).X.shape == (3, 3)


def test_hstack_refuses_other_sequences():
    a = SequenceBatch.from_lengths(np.eye(3), [2, 1])
    with pytest.raises(ValueError, match="Nothing to stack"):
        SequenceBatch.hstack([])
    with pytest.raises(ValueError, match="Batch 1 has 1 sequences, but batch 0 has 2"):
        SequenceBatch.hstack([a, a[:1]])
    for stack in (SequenceBatch.hstack, SequenceBatch.concatenate):
        with pytest.raises(ValueError, match="Batch 1 is ndarray and no SequenceBatch"):
            stack([a, np.eye(3)])
    with pytest.raises(ValueError, match="Sequence 0 has 1 rows in batch 2, but 2 in batch 0"):
        SequenceBatch.hstack([a, a, SequenceBatch.from_lengths(np.eye(3), [1, 2])])


def test_values_times_a_number():
    edges = np.ones((2, 1))
    batch = SequenceBatch(sp.eye(2), [0, 2], feature_names=["a", "b"], transition_X=edges) * 2
    assert_array_equal(dense(batch), 2 * np.eye(2))
    assert_array_equal(batch.transition_X, 2 * edges)
    assert batch.feature_names.tolist() == ["a", "b"]
    with pytest.raises(TypeError):
        batch * "2"


# ------------------------------------------------------------------------------------ looking up


def unscaled(vectors, **params):
    """Vectoriser that keeps the values of vectors."""
    return EmbeddingVectorizer(vectors, scale=1, **params)


def test_words_are_looked_up():
    vectorizer = unscaled(VECTORS)
    batch = vectorizer.fit_transform(TOKENS)
    expected = np.array([[1, 0.5], [-1, 2], [0, 3], [0, 0], [0, 0]])
    assert_array_equal(batch.X, expected)
    assert_array_equal(batch.offsets, [0, 3, 3, 5])
    assert batch.feature_names.tolist() == ["vector:0", "vector:1"]
    assert_array_equal(vectorizer.fit(TOKENS).transform(iter(TOKENS)).X, expected)
    lower = unscaled(VECTORS, normalize=str.lower, dtype=np.float32)
    expected[3] = [1, 0.5]
    assert_array_equal(lower.fit_transform(TOKENS).X, expected)
    assert lower.fit_transform(TOKENS).dtype == np.float32
    unknown = vectorizer.transform([["axolotl"], []])
    assert_array_equal(unknown.X, [[0, 0]])


@pytest.mark.parametrize("column", [1, -1, "word"])
def test_where_the_word_is(column):
    X = [[("x", word) for word in sequence] for sequence in TOKENS]
    if column == "word":
        X = [[{"word": word, "n": 3} for word in sequence] for sequence in TOKENS]
    found = unscaled(VECTORS, column=column).fit_transform(X)
    assert_array_equal(found.X, unscaled(VECTORS).fit_transform(TOKENS).X)


@pytest.mark.parametrize("offsets", [(0,), (-1, 0, 1), (2,), [-5, 1]])
def test_vectors_of_neighbours(offsets):
    vectorizer = unscaled(VECTORS, offsets=offsets)
    found = vectorizer.fit_transform(TOKENS)
    expected = []
    for sequence in TOKENS:
        for t in range(len(sequence)):
            row = []
            for offset in offsets:
                inside = 0 <= t + offset < len(sequence)
                word = sequence[t + offset] if inside else None
                row += list(VECTORS.get(word, [0, 0]))
            expected.append(row)
    assert_array_equal(found.X, expected)
    names = vectorizer.get_feature_names_out().tolist()
    assert len(set(names)) == 2 * len(offsets)
    assert [name == "vector:1" for name in names] == [o == 0 and k for o in offsets for k in (0, 1)]


class Vectors:
    """What has no more than a mapping needs to have, and counts its calls."""

    def __init__(self):
        self.calls = []

    def __contains__(self, word):
        return word in VECTORS

    def __getitem__(self, word):
        self.calls.append(word)
        return VECTORS[word]


def test_neighbours_are_those_of_the_sequence():
    rng = np.random.default_rng(0)
    for _ in range(50):
        offsets = rng.integers(-3, 4, size=rng.integers(1, 5))
        bounds = np.concatenate([[0], np.cumsum(rng.integers(0, 6, size=rng.integers(1, 5)))])
        numbers = rng.integers(-1, 9, size=4).astype(np.int32)
        codes = rng.integers(4, size=bounds[-1]).astype(np.int32)
        found = np.full((len(codes), len(offsets)), -7, np.int32)
        look_around(numbers, codes, bounds, offsets, found)
        expected = [
            [numbers[codes[t + n]] if first <= t + n < last else -1 for n in offsets]
            for first, last in pairwise(bounds)
            for t in range(first, last)
        ]
        assert found.tolist() == expected


def test_each_distinct_word_is_looked_up_once():
    vectors = Vectors()
    vectorizer = unscaled(vectors)
    vectorizer.fit_transform([["the", "cat"] * 50] * 3)
    assert sorted(vectors.calls) == ["cat", "the"]
    assert clone(vectorizer).vectors is vectors
    assert not hasattr(clone(vectorizer), "n_dimensions_")


@pytest.mark.parametrize(
    ("params", "X", "message"),
    [
        ({}, [["axolotl"]], "No word of X has a vector"),
        ({"vectors": {"the": [1.0], "cat": [1.0, 2.0]}}, TOKENS, "'cat' has 2 numbers, but others"),
        ({"vectors": {"the": [np.nan]}}, TOKENS, "'the' has NaN or infinite values"),
        ({"vectors": {"the": ["a"]}}, TOKENS, "'the' is not a 1-D array of numbers"),
        ({"vectors": {"the": 3.0}}, TOKENS, "'the' is not a 1-D array of numbers"),
        ({"vectors": {"the": []}}, TOKENS, "'the' is not a 1-D array of numbers"),
        ({"vectors": 3}, TOKENS, "The 'vectors' parameter"),
        ({"vectors": ["the"]}, TOKENS, r"vectors must be a mapping, got \['the'\]"),
        ({"vectors": "the"}, TOKENS, "vectors must be a mapping, got 'the'"),
        ({"vectors": {"the": [1e39]}, "dtype": np.float32}, TOKENS, "'the' has NaN or infinite"),
        ({"normalize": int}, TOKENS, "normalize raised ValueError: .*, for the word 'the'"),
        ({"column": 1}, TOKENS, r"column=1, but tokens have 1 column\(s\)"),
        (
            {"column": "word"},
            [[{"word": "a"}, {"word": 3}]],
            "Sequence 0, token 1: {'word': 3}",
        ),
        ({"column": "word"}, TOKENS, "Sequence 0, token 0: 'the' has no string for the key 'word'"),
        ({"column": "word"}, "the", "expected a list of sequences"),
        ({"offsets": []}, TOKENS, "offsets must be one or more integers"),
        ({"offsets": [0.5]}, TOKENS, "offsets must be one or more integers"),
        ({"normalize": "lower"}, TOKENS, "The 'normalize' parameter"),
        ({"dtype": int}, TOKENS, "dtype must be np.float64 or np.float32"),
        ({"scale": 0}, TOKENS, "The 'scale' parameter"),
        ({"scale": "unit"}, TOKENS, "The 'scale' parameter"),
        ({"unknown": "max"}, TOKENS, "The 'unknown' parameter"),
        ({"unknown": lambda word: [1.0]}, TOKENS, "'The' has 1 numbers, but others have 2"),
        ({"unknown": int}, TOKENS, "unknown raised ValueError: .*, for the word 'The'"),
        ({}, [], "Found an empty batch"),
    ],
)
def test_bad_input(params, X, message):
    vectorizer = EmbeddingVectorizer(**{"vectors": VECTORS, **params})
    with pytest.raises(ValueError, match=message):
        vectorizer.fit(X)
    assert not hasattr(vectorizer, "n_dimensions_")


@pytest.mark.parametrize(
    ("params", "X", "message"),
    [
        ({"column": "word"}, 5, "X is 5; expected a list of sequences"),
        ({"column": "word"}, [None], "Sequence 0 is None; expected a list of tokens"),
        ({}, [[{"word": "the"}]], r"Sequence 0, token 0: .*column='word'. one key"),
        ({"normalize": list}, TOKENS, "normalize must return strings, but returned .* for 'the'"),
        ({"vectors": {"the": [[1, 2], [3]]}}, TOKENS, "'the' is no array of numbers"),
        ({"vectors": {"the": Unreadable()}}, TOKENS, "'the' is no array of numbers .no numpy"),
        ({"vectors": "vectors.txt"}, TOKENS, "read by skstruct.datasets.read_vectors"),
    ],
)
def test_what_no_mapping_of_vectors_is(params, X, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingVectorizer(**{"vectors": VECTORS, **params}).fit(X)


def test_the_type_is_that_of_the_training_words():
    mixed = {"a": np.ones(2, np.float32), "b": np.ones(2)}
    vectorizer = unscaled(mixed, unknown="mean").fit([["a", "b"]])
    for X in ([["a"]], [["b"]], [["axolotl"]]):
        assert vectorizer.transform(X).dtype == np.float64
    assert unscaled(mixed).fit([["a"]]).transform([["b"]]).dtype == np.float32
    with pytest.raises(ValueError, match="was set after the fit"):
        unscaled(mixed).fit([["a"]]).set_params(unknown="mean").transform([["c"]])


def by_length(word):
    return [float(len(word)), 1.0]


class OneForAll(dict):
    """A mapping that has every word and lists none."""

    def __contains__(self, word):
        return True

    def __missing__(self, word):
        return np.ones(3)


@pytest.mark.parametrize(
    "params", [{"vectors": {}, "unknown": by_length}, {"vectors": OneForAll()}]
)
def test_mappings_that_list_no_word_are_stored(params):
    vectorizer = EmbeddingVectorizer(**params).fit([["a", "bb"]])
    expected = vectorizer.transform([["ccc", "a"]]).X
    for other in (pickle.loads(pickle.dumps(vectorizer)), copy.deepcopy(vectorizer)):
        assert_array_equal(other.transform([["ccc", "a"]]).X, expected)


def test_vectors_of_another_length_later():
    vectorizer = unscaled(VECTORS).fit(TOKENS).set_params(vectors={"the": [1.0]})
    with pytest.raises(ValueError, match="'the' has 1 numbers, but others have 2"):
        vectorizer.transform(TOKENS)


def test_words_without_a_vector():
    known = np.array([[1, 0.5], [-1, 2], [0, 3]])
    vectorizer = unscaled(VECTORS, unknown="mean").fit([["the", "the", "cat", "sat"]])
    assert_allclose(vectorizer.unknown_vector_, known.mean(axis=0))
    # The mean of the training words, whatever else is transformed.
    for X in ([["axolotl", "cat"]], [["axolotl", "the", "the"]], [["axolotl"]]):
        assert_allclose(vectorizer.transform(X).X[0], known.mean(axis=0))
    lengths = unscaled(VECTORS, unknown=lambda word: [len(word), 1], offsets=(-1, 0))
    found = lengths.fit_transform([["axolotl", "cat"]]).X
    # Beyond the ends there is no word.
    assert_array_equal(found, [[0, 0, 7, 1], [7, 1, -1, 2]])
    vectorizer.set_params(unknown="zeros").fit(TOKENS)
    assert vectorizer.unknown_vector_ is None


def test_the_scale_is_that_of_the_training_tokens():
    vectors = {"a": [3.0, 4.0], "b": [0.0, 1.0]}
    vectorizer = EmbeddingVectorizer(vectors, offsets=(-1, 0)).fit([["a", "a", "b", "new"]])
    # Three tokens have a, a and b, and as many neighbours do.
    assert_allclose(vectorizer.scale_, np.sqrt(2 / ((25 + 25 + 1) / 3)))
    (_, block), *_ = vectorizer.transform([["b"]]).blocks
    assert block.factor == vectorizer.scale_
    assert_array_equal(block.table, [[0, 1]])
    for scale in (1e-3, 1e3):
        scaled = {word: scale * np.array(vector) for word, vector in vectors.items()}
        found = EmbeddingVectorizer(scaled).fit_transform([["a", "a", "b"]])
        assert_allclose(np.square(found.X).sum(axis=1).mean(), 2)
    rng = np.random.default_rng(0)
    states = [rng.normal(3, 1, size=(n, 5)).astype(np.float32) for n in (3, 0, 9)]
    scaler = VectorScaler().fit(states)
    batch = scaler.transform(states)
    assert_allclose(np.square(batch.X).sum(axis=1).mean(), 2, rtol=1e-5)
    assert batch.blocks[0].block.values().dtype == np.float32
    both = SequenceBatch.hstack(
        [SequenceBatch.from_sequences(list(map(sp.csr_matrix, states))), batch]
    )
    assert_allclose(VectorScaler().fit(both).scale_, 1)
    assert_array_equal(
        VectorScaler().fit_transform(both).X.toarray()[:, :5], np.concatenate(states)
    )
    assert_array_equal(VectorScaler().fit([np.zeros((2, 3))]).scale_, [1])
    # Zeros are no vectors, wherever vectors come from.
    words = EmbeddingVectorizer(vectors).fit([["a", "axolotl", "b"]])
    matrix = [np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])]
    dicts = SequenceVectorizer().fit_transform(
        [[{"v": np.array([3.0, 4.0] * 20)}, {"w": "axolotl"}, {"v": np.array([0.0, 1.0] * 20)}]]
    )
    assert_allclose(VectorScaler().fit(matrix).scale_, words.scale_)
    assert_allclose(VectorScaler().fit(dicts).scale_, words.scale_ / np.sqrt(20))
    for size in (1e-170, 1e170):
        tiny = EmbeddingVectorizer({"a": [size, size]})
        with pytest.raises(ValueError, match=r"The mean squared length of the vectors is (0|inf)"):
            tiny.fit([["a"]])
    with pytest.raises(ValueError, match="X has 2 features, but VectorScaler is expecting 5"):
        scaler.transform([x[:, :2] for x in states])
    two = VectorScaler().fit(SequenceBatch.hstack([batch, batch]))
    halves = [x[:, :3] for x in states], [x[:, :7] for x in [np.tile(x, 2) for x in states]]
    halves = SequenceBatch.hstack(list(map(SequenceBatch.from_sequences, halves)))
    with pytest.raises(ValueError, match=r"vectors from the columns \[0, 3\] on, but in fit"):
        two.transform(halves)
    for X in ([["a"]], [sp.eye(3)], np.eye(3)):
        with pytest.raises(ValueError, match="X has no vectors"):
            scaler.fit(X)
    with pytest.raises(ValueError, match="Sequence 0, token 1: feature 0 is nan"):
        scaler.fit([np.array([[1.0], [np.nan]])])


def test_vectors_of_spacy():
    vectors, strings = pytest.importorskip("spacy.vectors"), pytest.importorskip("spacy.strings")
    data = np.array([[1, 0.5], [-1, 2]], np.float32)
    store = strings.StringStore(["the", "cat"])
    ours = unscaled(vectors.Vectors(strings=store, data=data, keys=["the", "cat"]))
    assert_array_equal(ours.fit_transform(TOKENS).X[:2], data)
    assert not ours.fit_transform(TOKENS).X[2:].any()
    table = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    floret = vectors.Vectors(
        strings=store, data=table, mode="floret", minn=2, maxn=3, hash_count=2, hash_seed=1
    )
    found = unscaled(floret).fit_transform([["axolotl", "cat"]]).X
    assert_allclose(found, floret.get_batch(["axolotl", "cat"]))
    assert found.all()


# -------------------------------------------------------------------------------------- pieces


def test_words_of_pieces():
    word_ids = [[None, 0, 1, 1, 1, 2, None], [0, 0], [None, None]]
    states = [
        rng.normal(size=(len(ids) + 2, 3)) for ids in word_ids for rng in [np.random.default_rng(0)]
    ]
    for how, pick in (
        ("first", lambda m: m[0]),
        ("last", lambda m: m[-1]),
        ("mean", lambda m: m.mean(axis=0)),
    ):
        found = align_subwords(word_ids, states, how)
        assert [len(matrix) for matrix in found] == [3, 1, 0]
        for ids, matrix, state in zip(word_ids, found, states, strict=True):
            for word, row in enumerate(matrix):
                assert_allclose(row, pick(state[[p for p, w in enumerate(ids) if w == word]]))
    half = align_subwords(word_ids, [s.astype(np.float16) for s in states], "mean")
    assert half[0].dtype == np.float32
    # A word may have no piece.
    padded = np.stack([np.pad(s, [(0, 9 - len(s)), (0, 0)]) for s in states])
    found = align_subwords([[0, 2], [], [None]], padded, sentences=["abc", "", ""])
    assert_array_equal(found[0], [padded[0, 0], np.zeros(3), padded[0, 1]])


@pytest.mark.parametrize(
    ("word_ids", "states", "params", "message"),
    [
        (
            [[0, 1]],
            np.ones((1, 2, 3)),
            {"sentences": ["abc"]},
            "Sentence 0 has no piece after word 2 of 3: it has been cut off",
        ),
        (
            [[], [0]],
            np.ones((2, 2, 3)),
            {"sentences": ["", ""]},
            "Sentence 1: word_ids has words that",
        ),
        ([[0, -1]], np.ones((1, 2, 3)), {}, "Sentence 0: word_ids has words that"),
        ([[0, 1]], np.ones((1, 1, 3)), {}, "Sentence 0 has 2 pieces, but states of 1 only"),
        ([[0, 1]], np.ones((2, 2, 3)), {}, "states has 2 sentences, but word_ids has 1"),
        ([[0]], [np.ones(3)], {}, "Sentence 0: its states are no matrix of floats"),
        ([[0.5]], np.ones((1, 1, 3)), {}, "Sentence 0: word_ids must be integers or None"),
        ([["0"]], np.ones((1, 1, 3)), {}, "Sentence 0: word_ids must be integers or None"),
        ([None], np.ones((1, 1, 3)), {}, "Sentence 0: word_ids must be integers or None"),
        ([[0]], [Unreadable()], {}, "Sentence 0: its states cannot be read as an array .no numpy"),
        ([[0]], [np.ones((1, 3))], {"how": "max"}, "how must be one of 'first', 'mean', 'last'"),
    ],
)
def test_pieces_that_do_not_fit(word_ids, states, params, message):
    with pytest.raises(ValueError, match=message):
        align_subwords(word_ids, states, **params)


# ---------------------------------------------------------------------------------- all together


def test_lists_of_matrices_are_no_batches():
    with pytest.raises(ValueError, match=r"Batch 1 is list .*SequenceBatch.from_sequences"):
        SequenceBatch.hstack([unscaled(VECTORS).fit_transform(TOKENS), [np.ones((3, 2))]])


def lengths_of(sequences):
    return [np.array([[float(len(word))] for word in s]).reshape(-1, 1) for s in sequences]


def make_union(**params):
    return SequenceUnion(
        [
            ("words", TemplateVectorizer(["U0:%x[0,0]", "B1:%x[0,0]"])),
            ("vectors", unscaled(VECTORS)),
            ("lengths", FunctionTransformer(lengths_of)),
        ],
        **params,
    )


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_union(n_jobs):
    union = make_union(n_jobs=n_jobs, transformer_weights={"vectors": 10.0})
    batch = union.fit_transform(TOKENS)
    words = TemplateVectorizer(["U0:%x[0,0]", "B1:%x[0,0]"]).fit_transform(TOKENS)
    vectors = unscaled(VECTORS).fit_transform(TOKENS)
    expected = np.column_stack([dense(words), 10 * vectors.X, [[3], [3], [3], [3], [3]]])
    assert_array_equal(dense(batch), expected)
    assert_array_equal(batch.offsets, words.offsets)
    assert_array_equal(batch.transition_X.toarray(), words.transition_X.toarray())
    again = union.transform(TOKENS[::-1])
    assert_array_equal(dense(again), expected[[3, 4, 0, 1, 2]])
    union.set_params(lengths="drop")
    names = union.fit(TOKENS).get_feature_names_out()
    assert len(names) == dense(union.transform(TOKENS)).shape[1]
    assert names[-1] == "vectors__vector:1"
    assert names[0].startswith("words__U0:")
    check_is_fitted(union)
    with pytest.raises(NotFittedError):
        check_is_fitted(make_union())


def test_union_reads_an_iterator_once():
    union, expected = make_union(), make_union().fit_transform(TOKENS)
    assert_array_equal(dense(union.fit_transform(iter(TOKENS))), dense(expected))
    assert_array_equal(dense(union.transform(iter(TOKENS))), dense(expected))
    assert_array_equal(dense(union.fit(iter(TOKENS)).transform(TOKENS)), dense(expected))


def test_union_of_nothing():
    union = make_union().fit(TOKENS).set_params(words="drop", vectors="drop", lengths="drop")
    for nothing in (union, SequenceUnion([])):
        for method in (nothing.fit, nothing.fit_transform, nothing.transform):
            with pytest.raises(ValueError, match="transformer_list is empty, or drops all"):
                method(TOKENS)


@pytest.mark.parametrize("weight", ["2", np.nan, [1.0]])
def test_weights_that_are_none(weight):
    with pytest.raises(ValueError, match="The weight of 'vectors' is not a finite number"):
        make_union(transformer_weights={"vectors": weight}).fit(TOKENS)


def test_union_of_what_is_no_batch():
    union = SequenceUnion([("vectors", unscaled(VECTORS)), ("same", "passthrough")])
    with pytest.raises(ValueError, match=re.escape("Transformer 'same' returned list; expected")):
        union.fit_transform(TOKENS)
    with pytest.raises(ValueError, match="Sequence 0 has 1 rows in batch 1, but 3 in batch 0"):
        SequenceUnion(
            [
                ("vectors", unscaled(VECTORS)),
                ("short", FunctionTransformer(lambda X: [np.ones((1, 1))] * 3)),
            ]
        ).fit_transform(TOKENS)


def test_union_of_a_batch_and_itself():
    batch = SequenceBatch.from_lengths(np.eye(3), [2, 1])
    union = SequenceUnion([("once", "passthrough"), ("twice", "passthrough")])
    assert_array_equal(union.fit_transform(batch).X, np.column_stack([np.eye(3), np.eye(3)]))


def test_vectors_help_where_words_are_new(addresses):
    """One vector for every word of a kind: the test words were never seen, but their kinds."""
    rng = np.random.default_rng(0)
    kinds = {kind: rng.normal(size=6) for kind in range(4)}

    def sentence(prefix):
        y = rng.integers(4, size=int(rng.integers(2, 6)))
        return [f"{prefix}{k}-{rng.integers(30)}" for k in y], [f"kind{k}" for k in y]

    train, test = (zip(*(sentence(p) for _ in range(60)), strict=True) for p in ("a", "b"))
    (X, y), (X_test, y_test) = map(list, train), map(list, test)
    words = {word for sequence in [*X, *X_test] for word in sequence}
    vectors = {word: kinds[int(word[1])] + 0.1 * rng.normal(size=6) for word in words}
    pipeline = Pipeline(
        [
            (
                "features",
                SequenceUnion(
                    [
                        ("words", TemplateVectorizer("U0:%x[0,0]")),
                        ("vectors", EmbeddingVectorizer(vectors)),
                    ]
                ),
            ),
            ("tagger", CRFTagger()),
        ]
    )
    grid = {
        "features__vectors": ["drop", EmbeddingVectorizer(vectors)],
        "tagger__l2": [0.1, 1.0],
    }
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2, error_score="raise").fit(X, y)
    assert search.best_params_["features__vectors"] != "drop"
    assert search.score(X_test, y_test) > 0.95
    without = clone(pipeline).set_params(features__vectors="drop").fit(X, y)
    assert without.score(X_test, y_test) < 0.6
    alone = EmbeddingVectorizer(vectors)
    tagger = CRFTagger().fit(alone.fit_transform(X), y)
    assert_allclose(tagger.score(alone.transform(X_test), y_test), 1.0, atol=0.05)
