"""Stratified folds of sequences, and the scorers, in scikit-learn's model selection tools."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)

from skstruct import CRFTagger, PerceptronTagger, SequenceBatch, metrics
from skstruct.datasets import load_addresses, load_digit_sequences
from skstruct.model_selection import StratifiedSequenceKFold


@pytest.fixture(scope="module")
def addresses():
    X, y = load_addresses(return_X_y=True)
    return [[{"word": token, "end": token[-2:]} for token in row] for row in X], y


def folds(splitter, y):
    return [test for _, test in splitter.split(y, y)]


def token_counts(tests, y):
    """Number of tokens of each label in each fold."""
    labels = sorted({label for row in y for label in row})
    return np.array([[sum(y[i].count(label) for i in test) for label in labels] for test in tests])


@given(
    y=st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=4), min_size=3),
    n_splits=st.integers(2, 3),
    shuffle=st.booleans(),
)
def test_every_sequence_is_in_one_fold_and_none_is_empty(y, n_splits, shuffle):
    y = [*y, ["a"]]
    splitter = StratifiedSequenceKFold(n_splits, shuffle=shuffle, random_state=0)
    splits = list(splitter.split(y, y))
    assert len(splits) == splitter.get_n_splits() == n_splits
    for train, test in splits:
        assert len(test) > 0
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
    assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(len(y)))
    again = [test.tolist() for test in folds(splitter, y)]
    assert again == [test.tolist() for _, test in splits]


@given(
    y=st.lists(st.sampled_from("aaabbc"), min_size=5, max_size=60),
    n_splits=st.integers(2, 5),
)
def test_with_one_label_a_sequence_the_folds_are_those_of_scikit_learn(y, n_splits):
    found = token_counts(folds(StratifiedSequenceKFold(n_splits), [[label] for label in y]), y)
    assert np.ptp(found, axis=0).max() <= 1
    assert np.ptp(found.sum(axis=1)) <= 1 + len(set(y))
    if min(y.count(label) for label in set(y)) >= n_splits:
        expected = [test for _, test in StratifiedKFold(n_splits).split(y, y)]
        expected = token_counts(expected, y)
        assert_array_equal(np.sort(found, axis=0), np.sort(expected, axis=0))


@pytest.mark.parametrize("shuffle", [False, True])
def test_labels_are_spread_more_evenly_than_by_chance(addresses, shuffle):
    _, y = addresses
    even = token_counts(folds(StratifiedSequenceKFold(5, shuffle=shuffle, random_state=0), y), y)
    chance = token_counts(folds(KFold(5, shuffle=True, random_state=0), y), y)
    share = even.sum(axis=0) / 5
    assert np.all(np.abs(even - share).max(axis=0) <= 0.1 * share + 4)
    assert np.abs(even - share).sum() < 0.5 * np.abs(chance - share).sum()


def test_the_rarest_label_is_in_every_fold():
    y = [["O"] * 5 for _ in range(40)]
    for i in (3, 4, 5):
        y[i] = ["O", "rare"]
    counts = token_counts(folds(StratifiedSequenceKFold(3), y), y)
    assert_array_equal(counts[:, 1], 1)


def test_formats_of_labels_give_the_same_folds():
    y = [[0, 1, 1], [2, 0, 0], [1, 1, 0], [0, 0, 2], [0, 0, 0]]
    X = SequenceBatch.from_lengths(np.eye(15), [3] * 5)
    expected = [test.tolist() for test in folds(StratifiedSequenceKFold(2), y)]
    objects = np.empty(5, object)
    objects[:] = y
    for labels in (objects, np.array(y), [tuple(row) for row in y]):
        found = [test.tolist() for _, test in StratifiedSequenceKFold(2).split(X, labels)]
        assert found == expected


def test_shuffling_depends_on_the_random_state(addresses):
    _, y = addresses

    def tests(seed):
        splitter = StratifiedSequenceKFold(4, shuffle=True, random_state=seed)
        return [test.tolist() for test in folds(splitter, y)]

    assert tests(0) == tests(0)
    assert tests(0) != tests(1)


@pytest.mark.parametrize(
    ("n_splits", "y", "message"),
    [
        (1, [["a"]] * 3, "n_splits must be an integer of at least 2, got 1"),
        (2.5, [["a"]] * 3, "n_splits must be an integer of at least 2, got 2.5"),
        (4, [["a"]] * 3, "n_splits=4 is more than the number of sequences, 3"),
        (2, None, "pass y"),
        (2, [["a"], "b", ["a"]], "mixes labels and sequences"),
        (2, [["a"]] * 2, "inconsistent numbers of samples"),
    ],
)
def test_what_cannot_be_split_is_refused(n_splits, y, message):
    with pytest.raises(ValueError, match=message):
        list(StratifiedSequenceKFold(n_splits).split([0, 0, 0], y))


SCORERS = {name.removesuffix("_scorer"): name for name in metrics.__all__ if "_scorer" in name}


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_and_stratified_folds_in_scikit_learn(name, addresses):
    X, y = addresses
    cv, scorer = StratifiedSequenceKFold(3), getattr(metrics, SCORERS[name])
    tagger = PerceptronTagger(max_iter=3, tol=None, random_state=0)
    scores = cross_val_score(tagger, X, y, cv=cv, scoring=scorer, error_score="raise")
    score = getattr(metrics, f"{name}_score")
    by_hand = []
    for train, test in cv.split(X, y):
        tagger.fit([X[i] for i in train], [y[i] for i in train])
        predicted = tagger.predict([X[i] for i in test])
        by_hand.append(score([y[i] for i in test], predicted))
    assert_allclose(scores, by_hand)
    assert 0 < scores.min() <= scores.max() <= 1


def test_several_scores_at_once(addresses):
    X, y = addresses
    scoring = {name: getattr(metrics, scorer) for name, scorer in SCORERS.items()}
    cv = StratifiedSequenceKFold(2, shuffle=True, random_state=0)
    tagger = PerceptronTagger(max_iter=3, tol=None, random_state=0)
    found = cross_validate(tagger, X, y, cv=cv, scoring=scoring, error_score="raise")
    assert {f"test_{name}" for name in SCORERS} <= found.keys()
    search = GridSearchCV(
        tagger, {"max_iter": [1, 3]}, cv=cv, scoring=scoring, refit="chunk_f1", error_score="raise"
    ).fit(X, y)
    assert_allclose(search.cv_results_["mean_test_chunk_f1"][1], found["test_chunk_f1"].mean())
    assert len(cross_val_predict(tagger, X, y, cv=cv)) == len(y)


def test_batches_and_arrays_are_split():
    digits = load_digit_sequences(n_sequences=40)
    cv = StratifiedSequenceKFold(2)
    crf = CRFTagger(max_iter=3, tol=1e9)
    batch = SequenceBatch.from_lengths(np.concatenate(digits.data), [len(x) for x in digits.data])
    scores = cross_val_score(crf, batch, digits.target, cv=cv, error_score="raise")
    assert_allclose(cross_val_score(crf, digits.data, digits.target, cv=cv), scores)
