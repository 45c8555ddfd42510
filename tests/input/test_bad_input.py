"""What taggers refuse, what they say then, and that they are none the worse for it."""

import tempfile
import threading
from contextlib import contextmanager
from time import perf_counter, sleep

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
)
from skstruct.crfsuite import CRF
from skstruct.learning.monitor import Monitor

TAGGERS = [
    CRFTagger(l2=0.5),
    PerceptronTagger(max_iter=8, tol=None, random_state=0),
    MIRATagger(max_iter=8, tol=None, n_best=2, random_state=0),
    AROWTagger(max_iter=8, tol=None, random_state=0),
    SAPOTagger(max_iter=8, tol=None, random_state=0),
    CRFTagger(solver="sgd", max_iter=8, tol=None, random_state=0),
    CRFTagger(solver="sag", random_state=0),
    CRFTagger(solver="oeg", random_state=0),
    SDCACRF(random_state=0),
]
TAGGER_IDS = [f"{type(t).__name__}-{getattr(t, 'solver', '')}".rstrip("-") for t in TAGGERS]
# One list of what learns: all methods have to refuse the same.
LEARNERS = [
    (tagger, method)
    for tagger in TAGGERS
    for method in ("fit", "partial_fit")
    if hasattr(tagger, method)
]
LEARNER_IDS = [f"{TAGGER_IDS[TAGGERS.index(tagger)]}.{method}" for tagger, method in LEARNERS]
PREDICTORS = ["predict", "predict_proba", "predict_nbest"]

X = [[{"w": "a"}, {"w": "b"}], [{"w": "a"}], [{"w": "c"}, {"w": "b"}, {"w": "a"}]]
Y = [["A", "B"], ["A"], ["C", "B", "A"]]
MATRICES = [
    np.array([[0.0, 1], [1, 0]]),
    np.array([[2.0, 1]]),
    np.array([[0.0, 3], [1, 1], [2, 0]]),
]
TABLE = MATRICES[2]
GRID = np.arange(12.0).reshape(3, 2, 2)
GRID_Y = [["A", "B"], ["B", "A"], ["A", "A"]]


@pytest.fixture(params=LEARNERS, ids=LEARNER_IDS)
def learner(request):
    """An unfitted tagger, and the name of the method to train it with."""
    tagger, method = request.param
    return clone(tagger), method


@pytest.fixture(params=["CRFTagger-lbfgs.fit", "PerceptronTagger.partial_fit"])
def reader(request):
    """As `learner`, for one of each way to read data: all learners share the code."""
    tagger, method = LEARNERS[LEARNER_IDS.index(request.param)]
    return clone(tagger), method


@pytest.fixture(params=TAGGERS, ids=TAGGER_IDS)
def tagger(request):
    """An unfitted tagger."""
    return clone(request.param)


def state(tagger):
    """Everything that a tagger knows, down to the last bit, but for what it derives from that."""
    return joblib.hash({k: v for k, v in vars(tagger).items() if k not in tagger._derived_state})


def assert_refuses(learner, message, X, y, **params):
    """Refused with a message, by the new and by the fitted tagger, which stay as they were."""
    tagger, method = clone(learner[0]), learner[1]
    # It is refused twice, and a generator can be read once.
    make_X = X if callable(X) else lambda: X
    before = state(tagger)
    with pytest.raises(ValueError, match=message):
        getattr(tagger, method)(make_X(), y, **params)
    assert state(tagger) == before
    getattr(tagger, method)([[{"w": "a"}, {"w": "b"}, {"w": "c"}]], [["A", "B", "C"]])
    before = state(tagger)
    with pytest.raises(ValueError, match=message):
        tagger.fit(make_X(), y, **params)
    assert state(tagger) == before


# X


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "X is None; expected a batch"),
        ("the cat", "X is 'the cat'; expected a batch"),
        (7, "X is 7; expected a batch"),
        ({"w": "a"}, "X is {'w': 'a'}; expected a batch"),
        ([], "Found an empty batch: at least one sequence is required"),
        (lambda: iter([]), "Found an empty batch"),
        (np.empty((0, 2)), r"Found array with 0 sample\(s\)"),
        (np.empty((0, 2, 2)), r"Found array with 0 sample\(s\)"),
        (SequenceBatch.from_sequences(MATRICES)[:0], "Found an empty batch"),
        ([[], [], []], "Found no token: every sequence is empty"),
        (lambda: iter([[], [], []]), "Found no token: every sequence is empty"),
        ([np.empty((0, 2))] * 3, "Sequence 0 has 0 tokens, but 2 labels"),
        (X[2], "Sequence 0 is {'w': 'c'}; expected a list of tokens"),
        (["the", "cat", "sat"], "Sequence 0 is 'the'; expected a list of tokens"),
        ([["the", "cat"], ["sat"]], "Sequence 0, token 0: 'the' is not a valid token"),
        ([X[0], ["a"], X[2]], "Sequence 1, token 0: 'a' is not a valid token"),
        ([X[0], None, X[2]], "Sequence 1 is None; expected a list of tokens"),
        ([X[0], [None], X[2]], "Sequence 1, token 0: None is not a valid token"),
        ([X[0], [5], X[2]], "Sequence 1, token 0: 5 is not a valid token"),
        (lambda: iter("abc"), "Sequence 0 is 'a'; expected a list of tokens"),
        (lambda: (matrix[0] for matrix in MATRICES), "y has labels|y should be a 1d array|shape"),
        (lambda: iter([X[0], 3]), "Sequence 1 is 3; expected a list of tokens"),
        ([X[0], [{1: "a"}], X[2]], "Sequence 1, token 0: feature name 1 is not a string"),
        ([X[0], [{"w": None}], X[2]], "Sequence 1, token 0: feature 'w' is None"),
        ([X[0], [{"w": float("nan")}], X[2]], "Sequence 1, token 0: feature 'w' is nan"),
        ([X[0], X[1], [{"w": 1}, {"w": -np.inf}]], "Sequence 2, token 1: feature 'w' is -inf"),
        ([X, X, X], "Sequence 0, token 0: .* is not a valid token"),
        (np.ones(3), "Expected 2D array, got 1D array instead"),
        (np.ones((3, 1, 1, 1)), "X has 4 dimensions"),
        ([[1.0, 2.0], [3.0]], r"X\[0\] has 2 numbers, but X\[1\] is \[3.0\]"),
        ([MATRICES[0], MATRICES[1][:, :1], MATRICES[2]], "Sequence 1 has 1 features"),
        ([MATRICES[0], MATRICES[1], X[2]], "Sequence 2 is not a matrix of numbers"),
        ([*MATRICES[:2], sp.csr_array(MATRICES[2])], "Sequence 2 is sparse, but sequence 0 is not"),
        ([np.empty((n, 0)) for n in (2, 1, 3)], r"0 feature\(s\)"),
        (np.empty((3, 0)), r"0 feature\(s\)"),
        (np.array([["a", "b"]] * 3), "could not convert string to float"),
        *((bad, "X is .*; expected a batch: a list") for bad in (b"text", {"a"}, object())),
        ((), "Found an empty batch"),
        (np.array([], dtype=object), "Found an empty batch"),
        ([1, 2], "Expected 2D array, got 1D array instead.*Reshape your data"),
        (lambda: iter([1, 2]), "Expected 2D array, got 1D array instead"),
        ([[[[1]]]], "X has 4 dimensions"),
        ([np.ones(2), np.ones(2), np.ones(3)], r"X\[0\] has 2 numbers, but X\[2\]"),
        ([[1, 2], 3], r"X\[0\] has 2 numbers, but X\[1\] is 3"),
        ([TABLE, TABLE[0]], r"Sequence 1 has 1 dimension\(s\), expected 2"),
        ([TABLE, "text"], "Sequence 1 is not a matrix of numbers"),
        ([TABLE, None], "Sequence 1 is not a matrix of numbers|Sequence 1 has 0 dimension"),
        ([[[1, 2], [3]]], "Sequence 0 is not a matrix of numbers"),
        ([[[1, 2]], [[1, "a"]]], "Sequence 1 is not a matrix of numbers"),
        ([pd.DataFrame([["a", 1]])], "Sequence 0 is a data frame whose column 0 has strings"),
        ([TABLE + 1j, TABLE], "Complex data not supported"),
        (np.full((2, 1, 1), 1j), "Complex data not supported"),
        (TABLE.astype("m8[D]"), "X has values of the type timedelta64"),
        (np.zeros((2, 1, 1), "M8[D]"), "X has values of the type datetime64"),
        ([TABLE, TABLE.astype("M8[D]")], "Sequence 1 has values of the type datetime64"),
    ],
)
def test_bad_X(reader, bad, message):
    assert_refuses(reader, message, bad, Y)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "make",
    [
        list,
        lambda m: [sp.csr_matrix(x) for x in m],
        SequenceBatch.from_sequences,
        lambda m: SequenceBatch.from_sequences(map(sp.csr_array, m)),
        lambda m: [x.tolist() for x in m],
        iter,
    ],
)
def test_values_of_matrices_must_be_finite(reader, make, bad):
    matrices = [matrix.copy() for matrix in MATRICES]
    matrices[2][1, 0] = bad
    message = f"Sequence 2, token 1: feature 0 is {bad}; input contains NaN or infinity"
    assert_refuses(reader, message, lambda: make(matrices), Y)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_of_grids_and_rows_must_be_finite(reader, bad):
    grid = GRID.copy()
    grid[1, 0, 1] = bad
    assert_refuses(reader, f"Sequence 1, token 0: feature 1 is {bad}", grid, GRID_Y)
    for make in (np.array, sp.csr_matrix):
        assert_refuses(reader, "contains (NaN|infinity)", make(grid[:, 0]), ["A", "B", "A"])


def test_every_learner_refuses_X_y_and_weights(learner):
    grid = GRID.copy()
    grid[1, 0, 1] = np.nan
    assert_refuses(learner, "Sequence 1, token 0: feature 1 is nan", grid, GRID_Y)
    assert_refuses(learner, "Sequence 0 is {'w': 'c'}; expected a list of tokens", X[2], Y)
    assert_refuses(learner, "Sequence 1, token 0: label 1 is not a string", X, [Y[0], [1], Y[2]])
    assert_refuses(learner, "Sequence 2 has 3 tokens, but 2 labels", X, [*Y[:2], ["C", "B"]])
    message = r"sample_weight\[1\] is -1.0; weights must be finite and not negative"
    assert_refuses(learner, message, MATRICES, Y, sample_weight=[1, -1, 1])


def test_X_is_refused_at_prediction_as_well(tagger):
    fitted = tagger.fit(X, Y)
    before = state(fitted)
    for method in PREDICTORS:
        predict = getattr(fitted, method)
        for bad, message in [
            (None, "X is None"),
            ("text", "X is 'text'"),
            ([], "Found an empty batch"),
            (X[0], "Sequence 0 is {'w': 'a'}; expected a list of tokens"),
            ([["a"]], "Sequence 0, token 0: 'a' is not a valid token"),
            ([[{"w": np.nan}]], "Sequence 0, token 0: feature 'w' is nan"),
            ([[{2: 1}]], "Sequence 0, token 0: feature name 2 is not a string"),
            (MATRICES, r"X has 2 features, but \w+ is expecting 3 features as input"),
            (GRID, r"X has 2 features, but \w+ is expecting 3 features as input"),
            (GRID[0], r"X has 2 features, but \w+ is expecting 3 features as input"),
            (SequenceBatch.from_sequences(MATRICES), r"X has 2 features, but \w+ is expecting 3"),
            ([GRID[0], np.array([[np.nan, 0]])], "Sequence 1, token 0: feature 0 is nan"),
        ]:
            with pytest.raises(ValueError, match=message):
                predict(bad)
    assert state(fitted) == before


def test_other_feature_names(tagger):
    batch = SequenceBatch.from_sequences(MATRICES, feature_names=["p", "q"])
    renamed = SequenceBatch.from_sequences(MATRICES, feature_names=["q", "p"])
    tagger.fit(batch, Y)
    with pytest.raises(ValueError, match=r"feature names of X differ from those that this \w+ was"):
        tagger.predict(renamed)
    assert tagger.predict(MATRICES).tolist() == tagger.predict(batch).tolist()


def test_unknown_features_are_ignored(tagger):
    tagger.fit(X, Y)
    more = [[{**token, "new": "x", "length": 3} for token in sequence] for sequence in X]
    assert tagger.predict(more).tolist() == tagger.predict(X).tolist()
    assert_array_equal(tagger.predict_proba([[{"new": 1}]])[0], tagger.predict_proba([[{}]])[0])


def test_feature_dicts_for_a_tagger_fitted_on_numbers(tagger):
    tagger.fit(MATRICES, Y)
    message = "X has feature dicts or attribute strings, but this .* was fitted on numbers"
    with pytest.raises(ValueError, match=message):
        tagger.predict(X)


# y


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ("ABC", "y is 'ABC'; expected a list of label sequences"),
        (3, "y is 3; expected a list of label sequences"),
        (Y[:2], "X has 3 sequences, but y has labels for 2"),
        ([*Y, ["A"]], "X has 3 sequences, but y has labels for 4"),
        ([], "X has 3 sequences, but y has labels for 0"),
        ([["A", "B"], ["A"], ["C", "B"]], "Sequence 2 has 3 tokens, but 2 labels"),
        ([["A", "B"], [], ["C", "B", "A"]], "Sequence 1 has 1 tokens, but 0 labels"),
        (["AB", "A", "CBA"], "Sequence 0: its labels must be a list with one label for each token"),
        (["A", "B", "C"], "Sequence 0: its labels must be a list with one label for each token"),
        ([1, 2, 3], "Sequence 0: its labels must be a list with one label for each token"),
        ([Y[0], None, Y[2]], "Sequence 1: its labels must be a list with one label for each token"),
        ([Y[0], [1], Y[2]], "Sequence 1, token 0: label 1 is not a string like the first label"),
        ([[0, 1], [1], [0, "B", 1]], "Sequence 2, token 1: label 'B' is not an integer like the"),
        ([[0.0, 1.0], [1.0], [0.0, 1.0, 0.0]], "Sequence 0, token 0: label 0.0 is neither a str"),
        ([Y[0], Y[1], ["C", 1.5, "A"]], "Sequence 2, token 1: label 1.5 is neither a string"),
        ([Y[0], Y[1], ["C", np.nan, "A"]], "Sequence 2, token 1: label nan is neither a string"),
        ([Y[0], [["A"]], Y[2]], r"Sequence 1, token 0: label \['A'\] is neither a string nor"),
        ([[b"A", b"B"], [b"A"], [b"C", b"B", b"A"]], "Sequence 0, token 0: label b'A' is neither"),
    ],
)
def test_bad_y(reader, bad, message):
    assert_refuses(reader, message, X, bad)
    assert_refuses(reader, message, lambda: iter(X), bad)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (GRID_Y[:2], "X has 3 sequences, but y has labels for 2"),
        (np.array(GRID_Y).ravel(), "X has 3 sequences, but y has labels for 6"),
        (np.zeros((3, 3), int), "Sequence 0 has 2 tokens, but 3 labels"),
        (np.zeros((3, 2)), "Sequence 0, token 0: label 0.0 is neither a string nor an integer"),
        (np.zeros((3, 2, 1), int), r"Sequence 0, token 0: label \[0\] is neither"),
    ],
)
def test_bad_y_for_a_grid(reader, bad, message):
    assert_refuses(reader, message, GRID, bad)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "requires y to be passed"),
        (["A", "B"], "X has 3 sequences, but y has labels for 2"),
        ([0.5, 1.5, 1.0], "Unknown label type"),
        (["A", 1.5, "B"], "Sequence 1, token 0: label 1.5 is neither"),
        (["A", 1, "B"], "Sequence 1, token 0: label 1 is not a string"),
        (GRID_Y, "y should be a 1d array"),
    ],
)
def test_bad_y_for_rows(reader, bad, message):
    assert_refuses(reader, message, GRID[:, 0], bad)


def test_unseen_labels():
    known = PerceptronTagger(random_state=0).partial_fit(X[:2], Y[:2])
    before = state(known)
    with pytest.raises(ValueError, match="Sequence 2, token 0: label 'C' is not among the classes"):
        known.partial_fit(X, Y)
    with pytest.raises(ValueError, match="Sequence 0, token 0: label 1 is not among the classes"):
        known.partial_fit(X[1:2], [[1]])
    with pytest.raises(ValueError, match="not the same as in the first call of partial_fit"):
        known.partial_fit(X[:2], Y[:2], classes=["A", "B", "C"])
    assert state(known) == before
    with pytest.raises(ValueError, match="Sequence 2, token 0: label 'C' is not among the classes"):
        PerceptronTagger().partial_fit(X, Y, classes=["A", "B"])


def test_unseen_labels_at_a_warm_start(tagger):
    if getattr(tagger, "solver", "") == "oeg":
        pytest.skip("The exponentiated gradient has no warm start.")
    tagger.set_params(warm_start=True).fit(X[:2], Y[:2])
    before = state(tagger)
    with pytest.raises(ValueError, match="Sequence 2, token 0: label 'C' is not among the classes"):
        tagger.fit(X, Y)
    assert state(tagger) == before


def test_one_class_is_learnt(learner):
    tagger, method = learner
    getattr(tagger, method)(X, [["A"] * len(sequence) for sequence in X])
    assert_array_equal(tagger.classes_, ["A"])
    assert tagger.predict(X).tolist() == [["A"] * len(sequence) for sequence in X]
    assert_allclose(np.concatenate(tagger.predict_proba(X)), 1)


def test_some_empty_sequences_are_fine(learner):
    tagger, method = learner
    getattr(tagger, method)([[], *X, []], [[], *Y, []])
    assert [len(labels) for labels in tagger.predict([[], *X, []])] == [0, 2, 1, 3, 0]


@pytest.mark.parametrize("tagger", TAGGERS[:2], ids=TAGGER_IDS[:2])
def test_a_very_long_sequence(tagger):
    tagger = clone(tagger)
    n_tokens = 20_000
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, n_tokens)
    long = [[{"v": str(value)} for value in values.tolist()]]
    labels = [np.where(values % 2 == 0, "even", "odd").tolist()]
    assert len(tagger.fit(long, labels).predict(long)[0]) == n_tokens
    starts = range(0, n_tokens, 10)
    tagger.fit(
        [long[0][start : start + 10] for start in starts],
        [labels[0][start : start + 10] for start in starts],
    )
    assert tagger.score(long, labels) > 0.8
    assert_allclose(tagger.predict_proba(long)[0].sum(axis=1), 1)
    best, second = tagger.predict_nbest(long, 2)[0]
    assert best.labels == tagger.predict(long)[0]
    assert second.score <= best.score + 1e-6
    assert second.labels != best.labels


# The drop-in for sklearn-crfsuite


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap"])
@pytest.mark.parametrize("make", [np.array, sp.csr_matrix, list, SequenceBatch.from_sequences])
def test_one_label_a_row_is_refused_with_what_is_taken(algorithm, make):
    rows = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    X = make([[row] for row in rows] if make == SequenceBatch.from_sequences else rows)
    takes = "X is a list of sequences of tokens, and y has a list for each, .* CRFTagger takes a"
    crf = CRF(algorithm=algorithm, max_iterations=2)
    for y in (["NOUN", "VERB", "NOUN"], np.array(["NOUN", "VERB", "NOUN"]), [*"ABA"], [1, 2, 1]):
        with pytest.raises(ValueError, match=rf"y\[0\] is .*; expected a list of labels. {takes}"):
            crf.fit(X, y)
    for y in (None, 5, "ABA"):
        with pytest.raises(
            ValueError, match=rf"y is .*; expected a list of lists of labels. {takes}"
        ):
            crf.fit(X, y)
    with pytest.raises(ValueError, match=rf"y_dev\[0\] is 'A'; expected a list of labels. {takes}"):
        crf.fit([[["a"]]], [["A"]], [[["a"]]], ["A"])
    # What is said is right.
    assert crf.fit(X, [["NOUN"], ["VERB"], ["NOUN"]]).classes_ == ["NOUN", "VERB"]


# Weights and parameters


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1], r"sample_weight must have shape \(3,\), .* got \(2,\)"),
        (np.ones((3, 1)), r"sample_weight must have shape \(3,\), .* got \(3, 1\)"),
        ([1, -1, 1], r"sample_weight\[1\] is -1.0; weights must be finite and not negative"),
        ([0, 0, 0], "Sample weights must contain at least one non-zero number"),
        ([1, np.nan, 1], r"sample_weight\[1\] is nan; weights must be finite"),
        ([1, np.inf, 1], r"sample_weight\[1\] is inf; weights must be finite"),
        (np.nan, "sample_weight is nan; weights must be finite and not negative"),
        (-np.inf, "sample_weight is -inf; weights must be finite"),
        (np.float32(np.inf), "sample_weight is inf; weights must be finite"),
        (-1, "sample_weight is -1.0; weights must be finite and not negative"),
        (0, "Sample weights must contain at least one non-zero number"),
        ([1e308, 1e308, 1], "sample_weight adds up to infinity"),
        (10**400, "sample_weight must be numbers"),
        (["a", "b", "c"], "sample_weight must be numbers"),
        (["1", "2", "3"], "sample_weight must be numbers"),
        ([1, None, 1], "sample_weight must be numbers|sample_weight.1. is nan"),
        ([1j, 1, 1], "sample_weight must be numbers"),
    ],
)
def test_bad_sample_weight(reader, weight, message):
    assert_refuses(reader, message, X, Y, sample_weight=weight)
    assert_refuses(reader, message, MATRICES, Y, sample_weight=weight)


def test_weights_only_on_empty_sequences(learner):
    message = "Sample weights must contain at least one non-zero number"
    assert_refuses(learner, message, [[], *X], [[], *Y], sample_weight=[1, 0, 0, 0])


INVALID = {
    "both": [
        ("fit_intercept", "yes"),
        ("max_iter", 0),
        ("max_iter", 1.5),
        ("tol", -1),
        ("n_jobs", "two"),
        ("warm_start", None),
        ("verbose", -1),
    ],
    CRFTagger: [
        ("solver", "newton"),
        ("l2", -0.1),
        ("l2", "1"),
        ("min_freq", -1),
        ("all_possible_states", 2),
        ("all_possible_transitions", "no"),
        ("learning_rate", 0.0),
        ("decay", 1.5),
        ("structure_alpha", 0.5),
        ("mini_length", 0.9),
    ],
    PerceptronTagger: [
        ("average", None),
        ("shuffle", 3),
        ("random_state", -1),
        ("random_state", "seed"),
        ("early_stopping", "auto"),
        ("validation_fraction", 0.0),
        ("validation_fraction", 1.0),
        ("n_iter_no_change", 0),
    ],
}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (kind, name, value)
        for kind in (CRFTagger, PerceptronTagger)
        for name, value in INVALID["both"] + INVALID[kind]
    ],
)
def test_invalid_parameters(kind, name, value):
    tagger = kind(**{name: value})
    before = state(tagger)
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of {kind.__name__}"):
        tagger.fit(X, Y)
    if hasattr(tagger, "partial_fit"):
        with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter"):
            tagger.partial_fit(X, Y)
    assert state(tagger) == before


@pytest.mark.parametrize("n_best", [0, -3, 1.5, "two", None])
def test_invalid_n_best(tagger, n_best):
    with pytest.raises(ValueError, match="n_best must be a positive integer, got"):
        tagger.fit(X, Y).predict_nbest(X, n_best)


@pytest.mark.parametrize("method", PREDICTORS)
def test_not_fitted(tagger, method):
    for data in (X, MATRICES, GRID, GRID[0]):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(tagger, method)(data)
    with pytest.raises(NotFittedError):
        tagger.score(X, Y)


def test_early_stopping_needs_two_sequences():
    tagger = PerceptronTagger(early_stopping=True)
    for data, labels, weight in [
        (X[:1], Y[:1], None),
        ([*X[:1], []], [*Y[:1], []], None),
        (X, Y, [0, 1, 0]),
    ]:
        with pytest.raises(ValueError, match="leaves no sequence to learn from"):
            tagger.fit(data, labels, sample_weight=weight)
    assert vars(tagger) == vars(PerceptronTagger(early_stopping=True))


@pytest.mark.parametrize("seed", range(5))
def test_early_stopping_holds_out_what_counts(seed):
    """Neither an empty sequence nor one without weight tells when to stop."""
    data, labels = [X[0], [], X[1], [], X[2], []], [Y[0], [], Y[1], [], Y[2], []]
    tagger = PerceptronTagger(early_stopping=True, validation_fraction=0.4, random_state=seed)
    tagger.fit(data, labels, sample_weight=[1, 1, 1, 1, 0, 1])
    assert np.isfinite(tagger.history_["validation_score"]).all()


# Nothing is lost


@pytest.fixture
def interrupted(monkeypatch):
    """A context in which training is interrupted at an epoch."""

    @contextmanager
    def context(at, error):
        def add(self, *, epoch, **values):
            if epoch == at:
                raise error("in the middle")
            original(self, epoch=epoch, **values)

        original = Monitor.add
        with monkeypatch.context() as patch:
            patch.setattr(Monitor, "add", add)
            yield

    return context


@pytest.mark.parametrize("fit_before", [False, True], ids=["unfitted", "fitted"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_an_error_in_the_middle_of_training_changes_nothing(
    learner, interrupted, error, fit_before
):
    tagger, method = learner
    if fit_before:
        getattr(tagger, method)(MATRICES, Y)
    before = state(tagger)
    epoch = 2 if method == "fit" else 1 + fit_before
    with interrupted(epoch, error), pytest.raises(error, match="in the middle"):
        getattr(tagger, method)(MATRICES, [["B", "A"], ["C"], ["A", "A", "B"]])
    assert state(tagger) == before


def test_no_files_are_written(learner, tmp_path, monkeypatch):
    temporary, here = tmp_path / "temporary", tmp_path / "here"
    temporary.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    tagger, method = learner
    learn = getattr(tagger, method)
    learn(X, Y)
    for predict in PREDICTORS:
        getattr(tagger, predict)(X)
    with pytest.raises(ValueError, match="label"):
        learn(X, [*Y[:2], [1] * 3])
    tagger.set_params(n_jobs=2).fit(X, Y).predict(X)
    assert list(here.iterdir()) == []
    assert list(temporary.iterdir()) == []


# Threads and processes


def heavy(n_tokens, n_classes):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n_tokens)
    X = sp.csr_array((np.ones(n_tokens), (np.arange(n_tokens), labels)))
    lengths = np.full(n_tokens // 50, 50)
    return SequenceBatch.from_lengths(X, lengths), labels.reshape(-1, 50)


class Ticker(threading.Thread):
    """A Python thread that notes when it ran."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ticks = [perf_counter()]
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.is_set():
            self.ticks.append(perf_counter())
            sleep(0.001)

    def longest_silence(self, start, end):
        ticks = np.array([start, *(tick for tick in self.ticks if start < tick < end), end])
        return np.diff(ticks).max()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["fit", "predict", "predict_proba"])
@pytest.mark.parametrize("tagger", TAGGERS[:2], ids=TAGGER_IDS[:2])
def test_other_threads_run_while_a_kernel_does(tagger, method):
    tagger = clone(tagger)
    slow = isinstance(tagger, CRFTagger) and method == "fit"
    batch, labels = heavy(50_000 if slow else 250_000, 60)
    tagger.set_params(max_iter=1).fit(batch[:200], labels[:200])
    arguments = (batch, labels) if method == "fit" else (batch,)
    silences = []
    for _ in range(3):
        ticker = Ticker()
        ticker.start()
        start = perf_counter()
        getattr(tagger, method)(*arguments)
        end = perf_counter()
        ticker.stopped.set()
        ticker.join()
        silences.append(ticker.longest_silence(start, end) / (end - start))
    # With the lock kept, the longest kernel would silence others for most of the time, or in
    # the many calls of a CRF's optimiser for a fifth of it.
    assert min(silences) < (0.1 if slow else 0.4)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_joblib_backends(tagger, backend):
    alone = clone(tagger).fit(X, Y)
    parallel = joblib.Parallel(n_jobs=2, backend=backend)
    results = parallel(joblib.delayed(clone(tagger).fit)(X, Y) for _ in range(4))
    for result in results:
        assert_array_equal(result.coef_, alone.coef_)
        assert result.predict(X).tolist() == alone.predict(X).tolist()
    for predicted in parallel(joblib.delayed(alone.predict)(X) for _ in range(4)):
        assert predicted.tolist() == alone.predict(X).tolist()
