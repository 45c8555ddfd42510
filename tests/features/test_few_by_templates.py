"""Few sequences by templates, and what vectorisers keep from call to call to be fast for them."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skstruct import (
    CRFTagger,
    EmbeddingVectorizer,
    HashingTemplateVectorizer,
    SequenceBatch,
    SequenceUnion,
    TemplateVectorizer,
    WordVectorizer,
)
from skstruct.features.dicts import FEW
from skstruct.features.tokens import LooseRows
from skstruct.sequences import tokens_of
from skstruct.templates import reader

WORDS = ["the", "The", "cat", "New", "York", "2026", "2027", "dog", "-", "catalogue"]
TEMPLATE = """U0:%x[-1,0]/%x[0,0]
U1:%x[0,0|shape]/%x[@2,1]/%x[@-1,0|lower]
U2:%x[1,1]
U3:%m[0,0,"^.."]
U4
B1:%x[0,0|suffix1]
B
"""
VECTORIZERS = {
    "template": TemplateVectorizer(TEMPLATE),
    "float32": TemplateVectorizer(dtype=np.float32, min_freq=2),
    "words": WordVectorizer(gazetteers={"place": ["New York"]}, clusters={"cat": "0110"}),
    "hashing": HashingTemplateVectorizer(TEMPLATE, n_features=50),
}


def sentences(n, seed):
    rng = np.random.default_rng(seed)
    words = [rng.choice(WORDS, rng.integers(0, 7)).tolist() for _ in range(n)]
    return [[(word, word[0]) for word in sentence] for sentence in words]


def assert_same(found, wanted):
    for a, b in ((found.X, wanted.X), (found.transition_X, wanted.transition_X)):
        assert type(a) is type(b)
        if a is not None:
            assert_array_equal(a.toarray(), b.toarray())
            assert_array_equal(a.indices, b.indices)
            assert a.dtype == b.dtype
    assert_array_equal(found.offsets, wanted.offsets)


@pytest.mark.parametrize("name", VECTORIZERS)
def test_few_are_as_in_a_large_batch(name):
    vectorizer = clone(VECTORIZERS[name]).fit(sentences(40, 0))
    X = sentences(2000, 1)
    # So many tokens that each line of the template is a task of its own.
    whole = vectorizer.transform(X)
    for first in range(0, 60, 3):
        assert_same(vectorizer.transform(X[first : first + 3]), whole[first : first + 3])


@pytest.mark.parametrize("name", VECTORIZERS)
def test_batches_are_as_their_checks_would_make_them(name):
    batch = clone(VECTORIZERS[name]).fit(sentences(40, 0)).transform(sentences(5, 1))
    again = SequenceBatch(batch.X, batch.offsets, transition_X=batch.transition_X)
    assert_same(batch, again)
    # The tokens stay where another thread may look for them.
    assert vars(batch).keys() - {"_loose"} == vars(again).keys()
    assert type(batch.X) is csr_matrix
    assert batch.keep_zeros == again.keep_zeros
    assert batch.offsets.dtype == np.int64
    assert not batch.offsets.flags.writeable
    for part in ("data", "indices", "indptr"):
        made, checked = getattr(batch.X, part), getattr(again.X, part)
        assert made.dtype == checked.dtype
        assert made.strides == checked.strides
    assert batch.X.has_canonical_format


def test_empty_sequences():
    for vectorizer in VECTORIZERS.values():
        batch = clone(vectorizer).fit(sentences(40, 0)).transform([[], []])
        assert batch.n_rows == 0
        assert len(batch) == 2
    batch = HashingTemplateVectorizer(n_features=7).transform([[], []])
    assert batch.X.shape == (0, 7)


def test_a_new_fit_counts():
    before, after = [[("a", "x")], [("b", "y")]], [[("c", "z")], [("a", "y")]]
    vectorizer = WordVectorizer().fit(before)
    vectorizer.transform([[("a", "x"), ("c", "y")]])
    X = [[("c", "y"), ("a", "z")]]
    wanted = WordVectorizer().fit(after).transform(X)
    assert_same(vectorizer.fit(after).transform(X), wanted)


def test_a_loaded_vectorizer_remembers_what_functions_made():
    called = []

    def initial(word):
        called.append(word)
        return word[:1] if word else None

    vectorizer = TemplateVectorizer("U:%x[0,0|initial]", functions={"initial": initial})
    vectorizer.fit([["ab", "cd", ""]])
    loaded = pickle.loads(pickle.dumps(vectorizer.set_params(functions=None)))
    loaded.set_params(functions={"initial": initial})
    called.clear()
    X = [["ab", "ax", "", "zz"]]
    batch = loaded.transform(X)
    assert sorted(called) == ["", "ab", "ax", "zz"]
    called.clear()
    assert_same(loaded.transform(X), batch)
    # The name of an unknown feature may be that of a known one, so its values are made again.
    assert called == ["zz"]
    loaded.functions["initial"] = lambda word: "c"
    assert_array_equal(loaded.transform(X).X.toarray(), [[0, 1]] * 4)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(reader, "_MOST_RESULTS", 5)
    vectorizer = TemplateVectorizer("U:%x[0,0|prefix1]").fit([["a", "b"]])
    for number in range(20):
        batch = vectorizer.transform([[f"a{number}", "b", "c"]])
        assert_array_equal(batch.X.toarray(), [[1, 0], [0, 1], [0, 0]])
    ((_, results),) = vectorizer._features.vocabulary._results.values()
    assert len(results) <= 5 + 3


def test_the_functions_of_one_vectorizer_are_not_those_of_another():
    lines = "U:%x[0,0|f]"
    upper, first = (
        TemplateVectorizer(lines, functions={"f": f}).fit([["ab", "b"]])
        for f in (str.upper, lambda word: word[0])
    )
    assert upper.get_feature_names_out().tolist() == ["U:AB", "U:B"]
    assert first.get_feature_names_out().tolist() == ["U:a", "U:b"]
    with pytest.raises(ValueError, match="unknown function 'f'"):
        TemplateVectorizer(lines).fit([["ab"]])


def test_threads_share_a_vectorizer():
    vectorizer = WordVectorizer().fit(sentences(40, 0))
    X = sentences(200, 1)
    wanted = [vectorizer.transform([sentence]) for sentence in X]
    shared = pickle.loads(pickle.dumps(vectorizer))
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda sentence: shared.transform([sentence]), X)
        for batch, expected in zip(found, wanted, strict=True):
            assert_same(batch, expected)


def test_functions_are_composed_again_only_where_they_were_replaced(monkeypatch):
    functions = {"first": lambda word: word[:1], "unused": len}
    vectorizer = TemplateVectorizer("U0:%x[0,0|first]", functions=functions).fit([["cat", "dog"]])
    calls, compose_all = [], reader.compose_all
    monkeypatch.setattr(
        reader, "compose_all", lambda *given: calls.append(1) or compose_all(*given)
    )
    for n_calls, columns in ((1, [0]), (1, [0])):
        assert_array_equal(vectorizer.transform([["cow"]]).X.indices, columns)
        assert len(calls) == n_calls
    vectorizer.functions["first"] = lambda word: "d"
    for _ in range(2):
        assert_array_equal(vectorizer.transform([["cow"]]).X.indices, [1])
        assert len(calls) == 2


# Tokens that are kept as they were read


def fitted_union(tagger, n_labels=3):
    """Pipeline of words, vectors and a tagger, and sentences."""
    X = [[word for word, _ in sentence] for sentence in sentences(60, 0)]
    y = [[f"L{len(word) % n_labels}" for word in sentence] for sentence in X]
    vectors = dict(zip(WORDS, np.random.default_rng(0).normal(size=(len(WORDS), 4)), strict=True))
    embeddings = EmbeddingVectorizer(vectors, offsets=(-1, 0, 1))
    union = SequenceUnion([("words", WordVectorizer()), ("vectors", embeddings)])
    return make_pipeline(union, tagger).fit(X, y), X


def test_few_are_kept_as_they_were_read():
    vectorizer = WordVectorizer().fit(sentences(40, 0))
    few, many = (vectorizer.transform(sentences(n, 1)) for n in (FEW, FEW + 1))
    assert tokens_of(few) is not None
    assert tokens_of(many) is None
    assert_same(few, many[:FEW])
    assert not few.keep_zeros
    assert tokens_of(few) is None


def test_few_by_words_are_tagged_in_one_compiled_call(monkeypatch):
    X = [[word for word, _ in sentence] for sentence in sentences(FEW + 9, 0)]
    y = [[f"L{len(word) % 3}" for word in sentence] for sentence in X]
    model = make_pipeline(WordVectorizer(), CRFTagger(max_iter=5, tol=1e9)).fit(X, y)
    labels, proba = model.predict(X), model.predict_proba(X)
    with monkeypatch.context() as patch:
        patch.setattr(CRFTagger, "_label_batch", None)
        patch.setattr(CRFTagger, "_weigh_batch", None)
        found = [(model.predict([s])[0], model.predict_proba([s])[0]) for s in X]
    assert [one for one, _ in found] == labels.tolist()
    assert_array_equal(np.concatenate([p for _, p in found]), np.concatenate(list(proba)))
    other = WordVectorizer(window=0).fit(X).transform(X[:3])
    with pytest.raises(ValueError, match="features"):
        model[-1].predict(other)


def test_tokens_beside_vectors_are_not_made_a_matrix():
    model, X = fitted_union(CRFTagger(max_iter=5, tol=1e9))
    union, tagger = model
    batch = union.transform(X[:5])
    wanted = SequenceBatch.hstack([part.transform(X)[:5] for _, part in union.transformer_list])
    labels, proba = tagger.predict(wanted), tagger.predict_proba(wanted)
    assert tagger.predict(batch).tolist() == labels.tolist()
    assert_array_equal(np.concatenate(tagger.predict_proba(batch)), np.concatenate(proba))
    assert isinstance(batch._columns(loose=True)[0], LooseRows)
    assert_same(batch, wanted)
    assert repr(batch) == repr(wanted)
    # Now everybody can change the arrays, and they are checked.
    sparse, _, _ = batch._columns()
    assert not isinstance(batch._columns(loose=True)[0], LooseRows)
    sparse.indices[0] = 10**6
    with pytest.raises(ValueError, match="column"):
        tagger.predict(batch)


def test_other_offsets_of_tokens_beside_vectors_are_checked():
    model, X = fitted_union(CRFTagger(max_iter=5, tol=1e9))
    batch = model[0].transform(X[:5])
    n_rows = batch.n_rows
    batch.offsets = np.array([0, n_rows + 1])
    with pytest.raises(ValueError, match="offsets"):
        model[-1].predict(batch)
    batch.offsets = np.array([0, n_rows])
    assert list(map(len, model[-1].predict(batch))) == [n_rows]


def test_arrays_of_a_batch_are_not_those_of_one_made_of_it():
    model, X = fitted_union(CRFTagger(max_iter=5, tol=1e9))
    words, vectors = (part.transform(X[:5]) for _, part in model[0].transformer_list)
    stacked = SequenceBatch._hstack([words, vectors])
    before = model[-1].predict(stacked).tolist()
    words.X.indices[:] = 10**6
    assert model[-1].predict(stacked).tolist() == before
