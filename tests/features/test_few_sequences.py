"""Batches of a few sequences, whose matrix is made when somebody looks at it."""

import copy
import pickle
import threading
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skstruct import (
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SequenceBatch,
    SequenceVectorizer,
)
from skstruct.features.dicts import FEW
from skstruct.sequences import tokens_of

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran"]


def sentences(kind, n=12, seed=0):
    """Sentences of attribute strings, of dicts of strings, or of dicts with numbers."""
    rng = np.random.default_rng(seed)
    made = [rng.choice(WORDS, rng.integers(1, 7)).tolist() for _ in range(n)]
    token = {
        "strings": lambda w: [f"w={w}", f"s={w[-1]}"],
        "dicts": lambda w: {"w": w, "s": w[-1], "is a": w == "a"},
        "numbers": lambda w: {"w": w, "length": len(w) / 3, "bias": 1, "none": 0.0},
    }[kind]
    return [[token(w) for w in s] for s in made], [
        ["N" if len(w) > 2 else "O" for w in s] for s in made
    ]


TAGGERS = (
    CRFTagger(max_iter=3, tol=1e9),
    *(
        kind(max_iter=3, tol=None, random_state=0)
        for kind in (PerceptronTagger, AROWTagger, MIRATagger)
    ),
)
KINDS = ("strings", "dicts", "numbers")


def in_full(vectorizer, X):
    """The first sequences of a batch that is too large to be one of a few."""
    batch = vectorizer.transform([*X, *[X[0]] * FEW])
    assert tokens_of(batch) is None
    return batch[: len(X)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_those_of_a_large_batch(kind, dtype):
    X, _ = sentences(kind)
    vectorizer = SequenceVectorizer(dtype=dtype).fit(X[:6])
    found, wanted = vectorizer.transform(X), in_full(vectorizer, X)
    assert tokens_of(found) is not None
    assert found.feature_names is vectorizer.feature_names_
    assert_array_equal(found.X.toarray(), wanted.X.toarray())
    assert_array_equal(found.X.indices, wanted.X.indices)
    assert found.X.dtype == dtype
    assert found.keep_zeros == wanted.keep_zeros
    assert_array_equal(found.offsets, wanted.offsets)
    assert repr(found) == repr(wanted)
    assert tokens_of(found) is None


def test_a_repeated_attribute_is_summed():
    vectorizer = SequenceVectorizer().fit([[["a", "b"]]])
    batch = vectorizer.transform([[["a", "b", "a"], ["?", "b"]], []])
    assert_array_equal(batch.X.toarray(), [[2, 1], [0, 1]])
    assert_array_equal(batch.offsets, [0, 2, 2])


@pytest.mark.parametrize(
    "look", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))]
)
def test_copies(look):
    X, _ = sentences("dicts")
    vectorizer = SequenceVectorizer().fit(X)
    other, wanted = look(vectorizer.transform(X)), in_full(vectorizer, X)
    assert_array_equal(other.X.toarray(), wanted.X.toarray())
    assert_array_equal(other[2].toarray(), wanted[2].toarray())


def test_other_attributes_do_not_exist():
    batch = SequenceVectorizer().fit([[["a"]]]).transform([[["a"]]])
    with pytest.raises(AttributeError, match="'SequenceBatch' object has no attribute 'rows'"):
        _ = batch.rows
    assert tokens_of(batch) is not None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tagger", TAGGERS)
def test_pipelines_tag_as_with_a_large_batch(tagger, kind):
    X, y = sentences(kind)
    model = make_pipeline(SequenceVectorizer(), clone(tagger))
    model.fit(X, y)
    few, _ = sentences(kind, 5, seed=1)
    large = in_full(model[0], few)
    assert model.predict(few).tolist() == model[-1].predict(large).tolist()
    for found, wanted in zip(model.predict_proba(few), model[-1].predict_proba(large), strict=True):
        assert_array_equal(found, wanted)
    for n_best in (1, 3):
        found = [
            model[-1].predict_nbest(b, n_best=n_best) for b in (model[0].transform(few), large)
        ]
        assert found[0].tolist() == found[1].tolist()


def test_what_is_changed_counts():
    """Arrays that were looked at, features of transitions, names, weights."""
    X, y = sentences("strings")
    model = make_pipeline(SequenceVectorizer(), CRFTagger(max_iter=5, tol=1e9)).fit(X, y)
    vectorizer, tagger = model[0], model[-1]
    few = X[:2]
    batch = vectorizer.transform(few)
    batch.X = batch.X * 0.0
    assert (
        tagger.predict(batch).tolist() == tagger.predict(vectorizer.transform(few) * 0.0).tolist()
    )
    batch = vectorizer.transform(few)
    batch.transition_X = np.ones((batch.n_rows, 1))
    with pytest.raises(ValueError, match="X has 1 transition features"):
        tagger.predict(batch)
    batch = vectorizer.transform(few)
    batch.feature_names = batch.feature_names[::-1]
    with pytest.raises(ValueError, match="feature names of X differ"):
        tagger.predict(batch)
    batch = vectorizer.transform(few)
    assert tagger.predict(batch).tolist() == [*map(list, tagger.predict(in_full(vectorizer, few)))]
    tagger.coef_ = -tagger.coef_
    wanted = tagger.predict(in_full(vectorizer, few)).tolist()
    assert tagger.predict(vectorizer.transform(few)).tolist() == wanted


def test_the_number_of_columns_is_that_of_the_matrix():
    X, y = sentences("strings")
    model = make_pipeline(SequenceVectorizer(), CRFTagger(max_iter=3, tol=1e9)).fit(X, y)
    batch, n_columns = model[0].transform(X[:2]), len(model[0].vocabulary_)
    wanted = model[-1].predict(in_full(model[0], X[:2])).tolist()
    for names in (None, batch.feature_names[:1]):
        batch.feature_names = names
        assert batch.n_features == n_columns
    batch.feature_names = None
    assert model[-1].predict(batch).tolist() == wanted
    batch = model[0].transform(X[:2])
    batch.X = batch.X[:, :3]
    assert batch.n_features == 3
    batch = model[0].transform(X[:2])
    batch.X, batch.keep_zeros = np.ones((batch.offsets[-1], 2)), False
    assert batch.n_features == 2


def test_another_vectorizer_is_refused():
    X, y = sentences("strings")
    model = make_pipeline(SequenceVectorizer(), CRFTagger(max_iter=3, tol=1e9)).fit(X, y)
    other = SequenceVectorizer().fit([[["x"]]])
    with pytest.raises(ValueError, match="X has 1 features"):
        model[-1].predict(other.transform([[["x"]]]))
    renamed = SequenceVectorizer().fit([[[f"{name}?" for name in model[0].feature_names_]]])
    with pytest.raises(ValueError, match="feature names of X differ"):
        model[-1].predict(renamed.transform([[["x"]]]))


def test_a_tagger_of_strings_takes_batches_of_its_vectorizer():
    X, y = sentences("strings")
    tagger = CRFTagger(max_iter=3, tol=1e9).fit(X, y)
    assert (
        tagger.predict(tagger.vectorizer_.transform(X[:3])).tolist()
        == tagger.predict(X[:3]).tolist()
    )


def test_unfitted_and_invalid():
    with pytest.raises(NotFittedError):
        SequenceVectorizer().transform([[["a"]]])
    vectorizer = SequenceVectorizer().fit([[["a"]]])
    with pytest.raises(ValueError, match="Sequence 0, token 1"):
        vectorizer.transform([[["a"], [3]]])
    with pytest.raises(ValueError, match="empty batch"):
        vectorizer.transform([])
    with pytest.raises(ValueError, match="Sequence 0, token 0"):
        vectorizer.transform([[{"a": np.inf}]])


def test_unknown_attributes_are_told():
    vectorizer = SequenceVectorizer().fit([[["a"], ["b"]]])
    with pytest.warns(UserWarning, match="seen in training"):
        vectorizer.transform([[["?"]] * 30])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectorizer.transform([[["?"]] * 10])


def test_threads_look_at_the_same_batch():
    X, y = sentences("numbers", 40)
    model = make_pipeline(SequenceVectorizer(), CRFTagger(max_iter=3, tol=1e9)).fit(X, y)
    wanted = model.predict(X[:20]).tolist()
    for _ in range(20):
        batch, found = model[0].transform(X[:20]), []
        start = threading.Barrier(4)

        def look(number, batch=batch, found=found, start=start):
            start.wait()
            found.append(batch.X if number % 2 else model[-1].predict(batch).tolist())

        threads = [threading.Thread(target=look, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(part == wanted for part in found if isinstance(part, list)) == 2
        assert all(part is batch.X for part in found if not isinstance(part, list))


def test_a_clone_learns_from_few_sequences():
    X, y = sentences("dicts", 4)
    vectorizer = SequenceVectorizer().fit(X)
    tagger = CRFTagger(max_iter=5, tol=1e9)
    few = clone(tagger).fit(vectorizer.transform(X), y)
    large = clone(tagger).fit(in_full(vectorizer, X), y)
    assert_array_equal(few.coef_, large.coef_)
    assert isinstance(SequenceBatch.concatenate([vectorizer.transform(X)] * 2), SequenceBatch)
