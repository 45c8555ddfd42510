"""Vectorisers by templates on shards: the features that one fitted to all sequences learns."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers.shards import OneProcess, cut
from helpers.taggers import assert_same_weights
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from skstruct import CRFTagger, PerceptronTagger, TemplateVectorizer, WordVectorizer
from skstruct.compiled.cache import loaded_kernels
from skstruct.dask.learning import learn, merge_columns
from skstruct.dask.shard import read
from skstruct.learning.monitor import Monitor

TEMPLATE = ["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,0]", "U2:%x[0,1]", "U3:%x[1,0|suffix2]", "B"]


def tokens_and_labels(n_sequences=40, seed=0):
    """Pairs of a word and a class, and labels that depend on them a little."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        words = rng.integers(0, 30, size=rng.integers(1, 6)).tolist()
        X.append([(f"w{word}", "xyz"[word % 3]) for word in words])
        y.append(["ABC"[(word + int(rng.random() < 0.3)) % 3] for word in words])
    return X, y


def two_digits(word):
    return word[1:] if len(word) == 3 else None


X, Y = tokens_and_labels()


def learn_from_shards(tagger, vectorizer, parts):
    """Tagger and vectoriser that have learnt from pairs of X and y."""
    tagger, vectorizer = clone(tagger), clone(vectorizer)
    tagger._keep(learn(tagger, OneProcess(), parts, vectorizer, None, Monitor, "float64"))
    return tagger, vectorizer


def merged(vectorizer, parts):
    """Shards, the numbers of their features, and the vectoriser that has merged them."""
    shards = [read(*part, (vectorizer, None, None)) for part in parts]
    vectorizer = clone(vectorizer)
    n_features, united, numbers = merge_columns([shard.summary for shard in shards], vectorizer)
    assert n_features == vectorizer.n_features_
    assert united is None
    return shards, numbers, vectorizer


@pytest.mark.parametrize("min_freq", [1, 2, 5])
@pytest.mark.parametrize(
    "vectorizer",
    [
        TemplateVectorizer(TEMPLATE),
        TemplateVectorizer(),
        TemplateVectorizer(["U:%x[0,0]", "U:%x[1,0]"]),
        TemplateVectorizer(
            "U0:%x[0,0|odd]", functions={"odd": lambda w: w[1:] if len(w) > 2 else None}
        ),
        WordVectorizer(gazetteers={"list": ["w1 w2", "w7"]}),
    ],
    ids=["lines", "default", "shared", "function", "words"],
)
def test_features_are_those_of_all_sequences(vectorizer, min_freq):
    vectorizer = clone(vectorizer).set_params(min_freq=min_freq)
    parts = cut(X, Y, 4)
    shards, of_shards, found = merged(vectorizer, parts)
    expected = clone(vectorizer).fit(X)
    names = expected.get_feature_names_out()
    assert_array_equal(found.get_feature_names_out(), names)
    assert found.n_columns_ == expected.n_columns_
    assert found.n_features_ == len(names)
    new = [[("w3", "x"), ("w999", "z"), ("w1", "y"), ("w2", "q")], *X]
    assert (found.transform(new).X != expected.transform(new).X).nnz == 0
    for shard, numbers, (x, _) in zip(shards, of_shards, parts, strict=True):
        batch = expected.transform(x)
        rows = np.repeat(np.arange(batch.n_rows), np.diff(shard.rows.indptr))
        numbers = numbers[shard.rows.indices]
        # Values that are all 1 are not stored.
        values = shard.rows.data if len(shard.rows.data) else np.ones(len(numbers))
        known, dense = numbers >= 0, np.zeros(batch.X.shape)
        dense[rows[known], numbers[known]] = values[known]
        assert_array_equal(dense, batch.X.toarray())


def test_names_that_different_values_make():
    template = "U0:%x[0,0]/%x[0,1]"
    whole = [[("a/b", "c")], [("a", "b/c")], [("a/b", "c"), ("a", "b")], [("a", "b/c"), ("z", "")]]
    vectorizer = TemplateVectorizer(template, min_freq=2)
    parts = [([x], [["A"] * len(x)]) for x in whole]
    _, numbers, found = merged(vectorizer, parts)
    assert found.get_feature_names_out().tolist() == ["U0:a/b/c"]
    assert [n.tolist() for n in numbers] == [[0], [0], [-1, 0], [0, -1]]
    batch = clone(vectorizer).fit_transform(whole)
    assert_array_equal(found.transform(whole).X.toarray(), batch.X.toarray())


@pytest.mark.parametrize("min_freq", [1, 3])
@pytest.mark.parametrize("n_shards", [1, 3])
def test_bits_are_those_of_threads(n_shards, min_freq):
    tagger = CRFTagger(n_jobs=n_shards, tol=1e-6)
    vectorizer = TemplateVectorizer(TEMPLATE, min_freq=min_freq)
    found, fitted = learn_from_shards(tagger, vectorizer, cut(X, Y, n_shards))
    batch = vectorizer.fit_transform(X)
    expected = tagger.fit(batch, Y)
    assert_array_equal(found.coef_, expected.coef_)
    assert_array_equal(found.transition_, expected.transition_)
    assert_array_equal(found.history_["objective"], expected.history_["objective"])
    assert not hasattr(found, "feature_names_in_")
    assert found.predict(fitted.transform(X)).tolist() == expected.predict(batch).tolist()


def test_other_cuts_learn_the_same_model():
    vectorizer, tagger = TemplateVectorizer(TEMPLATE), CRFTagger(tol=1e-8)
    expected = clone(tagger).fit(vectorizer.fit_transform(X), Y)
    for parts in (cut(X, Y, 5), [(X[:3], Y[:3]), ([], []), ([[]], [[]]), (X[3:], Y[3:])]):
        found, fitted = learn_from_shards(tagger, vectorizer, parts)
        names = vectorizer.get_feature_names_out()
        assert_array_equal(fitted.get_feature_names_out(), names)
        objective = expected.history_["objective"][-1]
        assert_allclose(found.history_["objective"][-1], objective, rtol=1e-7)
        assert_allclose(found.coef_, expected.coef_, atol=1e-3)


def test_an_online_learner():
    tagger = PerceptronTagger(max_iter=3, tol=None, shuffle=False, random_state=0)
    found, _ = learn_from_shards(tagger, TemplateVectorizer(TEMPLATE), cut(X, Y, 3))
    batch = TemplateVectorizer(TEMPLATE).fit_transform(X)
    expected = clone(tagger)
    parts = cut(batch, Y, 3)
    expected._keep(learn(expected, OneProcess(), parts, None, None, Monitor, "float64"))
    assert_same_weights(found, expected, rtol=0, atol=0)


def test_a_stored_vectorizer_needs_no_other_kernels():
    """Nor one that came from a network, whose arrays can only be read."""
    vectorizer, buffers = TemplateVectorizer(TEMPLATE).fit(X[:5]), []
    expected, n_loaded = vectorizer.transform(X), len(loaded_kernels)
    data = pickle.dumps(vectorizer, protocol=5, buffer_callback=buffers.append)
    stored = pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])
    assert_array_equal(stored.transform(X).X.toarray(), expected.X.toarray())
    assert len(buffers) > 0
    assert len(loaded_kernels) == n_loaded


def test_a_frozen_vectorizer_learns_nothing():
    vectorizer = TemplateVectorizer(TEMPLATE).fit(X[:5])
    parts = cut(X, Y, 2)
    found, _ = learn_from_shards(CRFTagger(n_jobs=2), FrozenEstimator(vectorizer), parts)
    expected = CRFTagger(n_jobs=2).fit(vectorizer.transform(X), Y)
    assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("vectorizer", "parts", "message"),
    [
        (
            TemplateVectorizer(TEMPLATE),
            [(X[:3], Y[:3]), ([[("a", "b", "c")]], [["A"]])],
            r"Tokens of partition 1 have 3 column\(s\), but in partition 0 they have 2",
        ),
        (
            TemplateVectorizer(TEMPLATE),
            [
                ([pd.DataFrame([["a", "b"]], columns=list(names))], [["A"]])
                for names in ("wp", "pw")
            ],
            "columns of partition 1 and of partition 0 differ in name or order",
        ),
        (
            TemplateVectorizer(TEMPLATE),
            [(X[:3], Y[:3]), ([[("a", "b"), ("a",)]], [["A", "A"]])],
            "Partition 1: Sequence 0, token 1",
        ),
        (
            TemplateVectorizer([*TEMPLATE, "B1:%x[0,0]"]),
            cut(X, Y, 2),
            "Partition 0: DaskTagger does not learn transition features",
        ),
        (
            TemplateVectorizer(TEMPLATE, min_freq=1000),
            cut(X, Y, 2),
            r"No feature occurs in at least 1000 token\(s\)",
        ),
        (TemplateVectorizer(TEMPLATE), [([[]], [[]]), ([], [])], "Found no token"),
        (TemplateVectorizer("U0:%x[0,5]"), cut(X, Y, 2), "Partition 0: .* there is no column 5"),
    ],
)
def test_errors_say_where(vectorizer, parts, message):
    with pytest.raises(ValueError, match=message):
        learn_from_shards(CRFTagger(), vectorizer, parts)
