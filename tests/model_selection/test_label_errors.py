"""`find_label_errors`: records against cross-validation by hand, and damage that is found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline

from skstruct import (
    CRFTagger,
    CRFTaggerCV,
    LabelStatistics,
    NBestReranker,
    SequenceVectorizer,
    SpanTaggerCV,
    WordVectorizer,
)
from skstruct.crfsuite import CRF
from skstruct.metrics import extract_chunks
from skstruct.model_selection import LabelError, find_label_errors

KINDS = {"n": "X", "m": "Y", "o": None}


def sentences(n_sequences=60, seed=0):
    """Sentences whose labels follow from their words."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        tokens, labels = [], []
        for _ in range(rng.integers(1, 4)):
            word = rng.choice(list("nmo"))
            for t in range(rng.integers(1, 3)):
                tokens.append({"w": f"{word}{t}"})
                labels.append("O" if word == "o" else f"{'I' if t else 'B'}-{KINDS[word]}")
        X.append(tokens)
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def damaged():
    """Sentences, labels, and labels with three kinds of damage."""
    X, y = sentences()
    wrong = [list(labels) for labels in y]
    long = [i for i, row in enumerate(y) if row[:2] == ["B-X", "I-X"]]
    wrong[long[0]][:2] = ["B-Y", "I-Y"]
    wrong[long[1]][1] = "O"
    wrong[long[2]][:2] = ["O", "O"]
    return X, y, wrong, long[:3]


def test_damage_is_found_and_mended(damaged):
    X, y, wrong, places = damaged
    errors = find_label_errors(CRFTagger(l2=0.1), X, wrong)
    # Others are doubted because of the damage.
    assert set(places) <= {error.sequence for error in errors[:5]}
    for error in (error for error in errors if error.sequence in places):
        assert error.given == wrong[error.sequence][error.start : error.end]
        assert error.suggested == y[error.sequence][error.start : error.end]
        assert (error.start, error.end) == (0, 2)
        assert error.given != error.suggested
    assert all(isinstance(error, LabelError) for error in errors)


@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=0)], ids=["3", "shuffled"])
def test_records_are_those_of_cross_validation_by_hand(cv):
    X, y = sentences(40)
    rng = np.random.default_rng(1)
    y = [[rng.choice(["O", "B-X"]) if rng.random() < 0.2 else a for a in row] for row in y]
    errors = find_label_errors(CRFTagger(), X, y, cv=cv)
    assert errors == sorted(errors, key=lambda error: (error.score, error[:3]))
    splitter = KFold(3) if cv == 3 else cv
    n_differing = 0
    for train, test in splitter.split(X):
        tagger = CRFTagger().fit([X[i] for i in train], [y[i] for i in train])
        for i in test:
            (predicted,), (proba,) = tagger.predict([X[i]]), tagger.predict_proba([X[i]])
            ours, theirs = set(extract_chunks(y[i])), set(extract_chunks(predicted))
            of_sequence = [error for error in errors if error.sequence == i]
            covered = {t for error in of_sequence for t in range(error.start, error.end)}
            assert covered == {t for a, b, _ in ours ^ theirs for t in range(a, b)}
            assert len(covered) == sum(error.end - error.start for error in of_sequence)
            for _, start, end, given, suggested, score in of_sequence:
                assert (given, suggested) == (y[i][start:end], predicted[start:end])
                column = tagger.classes_.tolist().index
                assert_allclose(score, min(proba[t, column(y[i][t])] for t in range(start, end)))
                # No chunk, given or suggested, is cut.
                for a, b, _ in ours ^ theirs:
                    assert (start <= a and b <= end) or b <= start or end <= a
            n_differing += bool(of_sequence)
    assert n_differing > 3


def test_labels_without_chunks_and_unknown_ones():
    X, y = sentences()
    y = [[{"O": "det", "B": "noun", "I": "verb"}[a[0]] for a in row] for row in y]
    wrong = [list(row) for row in y]
    i = next(i for i, row in enumerate(y) if "verb" in row)
    t = y[i].index("verb")
    wrong[i][t] = "det"
    (error, *_) = find_label_errors(CRFTagger(l2=0.1), X, wrong)
    assert error[:5] == (i, t, t + 1, ["det"], ["verb"])
    partly = [[None if (k + len(row)) % 3 == 0 else a for k, a in enumerate(row)] for row in wrong]
    partly[i][t] = "det"
    errors = find_label_errors(CRFTagger(l2=0.1), X, partly)
    assert errors[0].sequence == i
    assert all(label is not None for error in errors for label in error.given)


def test_labels_that_a_fold_has_not_learnt_come_last(damaged):
    X, _, wrong, _ = damaged
    wrong = [list(row) for row in wrong]
    wrong[7][0] = "B-RARE"
    errors = find_label_errors(CRFTagger(l2=0.1), X, wrong)
    assert errors[-1].sequence == 7
    assert np.isnan(errors[-1].score)
    assert not any(np.isnan(error.score) for error in errors[:-1])


def test_groups_are_in_one_fold(damaged):
    X, _, wrong, _ = damaged
    groups = np.arange(len(X)) // 5
    by_groups = find_label_errors(CRFTagger(), X, wrong, cv=4, groups=groups)
    splits = list(GroupKFold(4).split(X, wrong, groups))
    assert by_groups == find_label_errors(CRFTagger(), X, wrong, cv=splits)
    for cv in (GroupKFold(4), np.int64(4)):
        assert by_groups == find_label_errors(CRFTagger(), X, wrong, cv=cv, groups=groups)
    assert by_groups == find_label_errors(CRFTagger(), X, wrong, cv=splits, n_jobs=2)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(SequenceVectorizer(), CRFTagger(l2=0.1)),
        CRF(c2=0.05),
        SpanTaggerCV(CRFTagger(l2=0.1), cv=2, thresholds=3),
    ],
    ids=["pipeline", "drop-in", "threshold"],
)
def test_estimators(damaged, estimator):
    X, _, wrong, places = damaged
    errors = find_label_errors(estimator, X, wrong, cv=3)
    assert set(places) <= {error.sequence for error in errors[:5]}


def test_rows_of_numbers():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    X = np.eye(3)[y] + 0.1 * rng.normal(size=(60, 3))
    wrong = y.copy()
    wrong[11] = (y[11] + 1) % 3
    (error, *_) = find_label_errors(CRFTagger(l2=0.1), X, wrong)
    assert error[:5] == (11, 0, 1, [wrong[11]], [y[11]])


def test_statistics_of_labels_outside_are_told():
    X = [["in", "Rome"], ["in", "May"]] * 10
    y = [["O", "B-LOC"], ["O", "O"]] * 10
    batch = WordVectorizer(label_statistics=True).fit_transform(X, y)
    with pytest.warns(UserWarning, match=r"Put the steps that make them inside: find_label_errors"):
        find_label_errors(CRFTagger(), batch, y)


def test_bad_arguments(damaged):
    X, _, wrong, _ = damaged
    with pytest.raises(ValueError, match="cv tests sequence 0 more than once"):
        find_label_errors(CRFTagger(), X, wrong, cv=[([1, 2, 3], [0]), ([1, 2], [0])])
    with pytest.raises(ValueError, match="Sequence 0 has"):
        find_label_errors(CRFTagger(), X, [row[1:] for row in wrong])
    with pytest.raises(ValueError, match="greater than the number of samples"):
        find_label_errors(CRFTagger(), X[:3], wrong[:3], cv=5)


FOLDS = [
    [([0, 1], [2, 500])],
    [(["a"], ["b"])],
    [([0.0, 1.0], [2.0])],
    [([[0]], [1])],
    [(0, 1)],
    [([0, 1], [2], [3])],
]


@pytest.mark.parametrize("cv", FOLDS)
def test_folds_that_are_none(cv):
    X, y = [["Rome"], ["in", "Rome"]] * 4, [["B-LOC"], ["O", "B-LOC"]] * 4
    dicts = [[{"w": word} for word in words] for words in X]
    calls = [
        lambda: find_label_errors(CRFTagger(), dicts, y, cv=cv),
        lambda: SpanTaggerCV(CRFTagger(), cv=cv).fit(dicts, y),
        lambda: CRFTaggerCV(cv=cv).fit(dicts, y),
        lambda: LabelStatistics(cv=cv).fit_transform(X, y),
        lambda: NBestReranker(CRFTagger(), cv=cv).fit(dicts, y),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match=r"expected the numbers of the sequences|too many values"
        ):
            call()


def test_masks_and_numbers_from_the_end_are_folds():
    X, y = [["Rome"], ["in", "Rome"]] * 4, [["B-LOC"], ["O", "B-LOC"]] * 4
    dicts = [[{"w": word} for word in words] for words in X]
    half = np.arange(8) < 4
    same = [
        [(half, ~half), (~half, half)],
        [([0, 1, 2, 3], [-4, -3, -2, -1]), ([4, 5, 6, 7], [0, 1, 2, 3])],
    ]
    first, second = (SpanTaggerCV(CRFTagger(max_iter=5), cv=cv).fit(dicts, y) for cv in same)
    assert first.best_threshold_ == second.best_threshold_
    with pytest.raises(ValueError, match="cv has no split"):
        find_label_errors(CRFTagger(), dicts, y, cv=[])
    with pytest.raises(ValueError, match=r"groups has the shape \(\); expected \(8,\)"):
        LabelStatistics().fit_transform(X, y, groups=3)
