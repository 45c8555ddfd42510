"""`WordClusters`: classes of planted kinds of words, naive counts, paths, storing, bad input."""

import pickle
from collections import Counter

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skstruct import EmbeddingVectorizer, WordClusters, WordVectorizer
from skstruct.features import clusters as module

KINDS = {
    kind: [f"{kind}{i}" for i in range(12)] for kind in ("name", "verb", "place", "day", "thing")
}


def sentences(n, seed=0):
    """Text in which kinds of words have fixed places."""
    rng = np.random.default_rng(seed)
    orders = [("name", "verb", "place"), ("day", "name", "verb"), ("thing", "verb", "day")]
    return [
        [str(rng.choice(KINDS[kind])) for kind in orders[rng.integers(len(orders))]]
        for _ in range(n)
    ]


@pytest.fixture(scope="module")
def fitted():
    return WordClusters(5, n_components=8, random_state=0).fit(sentences(3000))


def test_words_with_the_same_neighbours_are_one_class(fitted):
    paths = fitted.clusters_
    assert set(paths) == {word for words in KINDS.values() for word in words}
    classes = [{paths[word] for word in words} for words in KINDS.values()]
    assert all(len(found) == 1 for found in classes)
    assert len(set.union(*classes)) == len(KINDS)


@given(
    vectors=st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=1, max_size=12),
    n_clusters=st.integers(1, 14),
)
@settings(max_examples=60, deadline=None)
def test_paths_are_those_of_a_binary_tree(vectors, n_clusters):
    given_vectors = {f"w{i}": vector for i, vector in enumerate(vectors)}
    model = WordClusters(n_clusters, random_state=0).fit_vectors(given_vectors)
    leaves = set(model.clusters_.values())
    assert len(leaves) <= n_clusters
    # Every leaf has a sister, or the sister is divided further; none is inside of another one.
    for leaf in leaves:
        assert not any(other != leaf and other.startswith(leaf) for other in leaves)
        for n in range(len(leaf)):
            sister = leaf[:n] + ("1" if leaf[n] == "0" else "0")
            assert any(other.startswith(sister) for other in leaves)
    directions = {tuple(np.round(vector, 9)) for vector in model.vectors_.values()}
    if n_clusters >= len(directions):
        assert len(leaves) == len(directions)


@given(
    texts=st.lists(st.lists(st.integers(-1, 4), max_size=7), min_size=1, max_size=5),
    window=st.integers(1, 3),
    portion=st.integers(1, 5),
)
@settings(max_examples=100, deadline=None)
def test_neighbours_are_counted_within_sentences(texts, window, portion):
    numbers = np.array([word for text in texts for word in text], np.int32)
    ends = np.cumsum([0, *map(len, texts)])
    before, module._TOKENS = module._TOKENS, portion
    try:
        found = module._count_neighbours(numbers, ends, 5, window).toarray()
    finally:
        module._TOKENS = before
    expected = Counter()
    for text in texts:
        for t, word in enumerate(text):
            for distance in range(1, window + 1):
                if t >= distance and min(word, text[t - distance]) >= 0:
                    expected[word, text[t - distance]] += 1
                    expected[text[t - distance], 5 + word] += 1
    naive = np.zeros((5, 10))
    for place, n in expected.items():
        naive[place] = n
    assert found.tolist() == naive.tolist()


def test_the_same_text_and_seed_make_the_same_classes(fitted):
    again = clone(fitted).fit(iter(map(tuple, sentences(3000))))
    assert again.clusters_ == fitted.clusters_
    assert all(np.array_equal(again.vectors_[w], v) for w, v in fitted.vectors_.items())


def test_rare_words_and_large_vocabularies():
    raw = [["A", "b"], ["a", "b"], ["a", "c"], ["a", "b"]]
    assert set(WordClusters(min_count=3, random_state=0).fit(raw).clusters_) == {"a", "b"}
    model = WordClusters(min_count=1, max_vocabulary=2, normalize=None, random_state=0).fit(raw)
    assert model.words_ == ["b", "a"]


def test_vectorisers_take_them(fitted):
    X = [["name1", "verb2"], ["Name3", "unknown"]]
    words = WordVectorizer(clusters=fitted.clusters_, cluster_prefixes=(2,)).fit(X)
    names = words.get_feature_names_out().tolist()
    assert f"Ucluster2+0:{fitted.clusters_['name1'][:2]}" in names
    vectors = EmbeddingVectorizer(fitted.vectors_, normalize=str.lower, scale=1).fit_transform(X)
    assert vectors.X.shape == (4, 8)
    assert np.allclose(vectors.X[0], fitted.vectors_["name1"])


def test_storing(fitted):
    data = skops.io.dumps(fitted)
    trusted = skops.io.get_untrusted_types(data=data)
    assert trusted == ["skstruct.WordClusters"]
    for other in (skops.io.loads(data, trusted=trusted), pickle.loads(pickle.dumps(fitted))):
        assert other.clusters_ == fitted.clusters_
        assert other.normalize is str.lower


@pytest.mark.parametrize(
    ("parameters", "raw", "message"),
    [
        ({}, [["a", "b"], ["a", None]], "Sequence 1, token 1: None is not a string"),
        ({}, "text", "expected a list of sequences of words"),
        ({}, ["text"], "expected a list of words"),
        ({}, [["a", "b"]], "No word occurs 3 times"),
        ({}, [], "No word occurs 3 times"),
        ({"n_clusters": 0}, [["a"]], "'n_clusters' parameter"),
        ({"normalize": len}, [["a", "b"]], "normalize must return strings"),
    ],
)
def test_bad_input(parameters, raw, message):
    model = WordClusters(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(raw)
    with pytest.raises(NotFittedError):
        _ = model.clusters_


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ({}, "vectors must be a mapping of words"),
        ([1], "vectors must be a mapping of words"),
        ({1: [0.5]}, "The words of vectors must be strings"),
        ({"a": [1, 2], "b": [1]}, "The vector of 'b' has 1 numbers, but others have 2"),
        ({"a": [np.nan]}, "The vector of 'a' has NaN or infinite values"),
        ({"a": "x"}, "The vector of 'a' is not a 1-D array of numbers"),
        ({"a": [1j, 2]}, "The vector of 'a' is not a 1-D array of numbers"),
        ({"a": [[1, 2], [3]]}, "The vector of 'a' is no array of numbers"),
    ],
)
def test_bad_vectors(vectors, message):
    with pytest.raises(ValueError, match=message):
        WordClusters().fit_vectors(vectors)
