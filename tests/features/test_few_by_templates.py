"""Few sequences by templates, and what vectorisers keep from call to call to be fast for them."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import clone

from skstruct import HashingTemplateVectorizer, SequenceBatch, TemplateVectorizer, WordVectorizer
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
    assert vars(batch).keys() == vars(again).keys()
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
