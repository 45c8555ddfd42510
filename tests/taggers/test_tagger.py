"""What all taggers do alike: read every format, predict in its shape, keep their promises."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.taggers import assert_same_weights, object_array
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from skstruct import (
    AROWTagger,
    CRFTagger,
    Labelling,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    SequenceVectorizer,
)
from skstruct.chain.scores import Rows
from skstruct.input.training_set import TrainingSet, as_rows

TAGGERS = {
    "CRFTagger": CRFTagger(l2=0.5),
    "PerceptronTagger": PerceptronTagger(max_iter=8, tol=None, random_state=0),
    "MIRATagger": MIRATagger(max_iter=8, tol=None, n_best=2, random_state=0),
    "AROWTagger": AROWTagger(max_iter=8, tol=None, random_state=0),
    "SAPOTagger": SAPOTagger(max_iter=8, tol=None, random_state=0),
}


@pytest.fixture(params=TAGGERS)
def tagger(request):
    """An unfitted tagger."""
    return TAGGERS[request.param].__class__(**TAGGERS[request.param].get_params())


def labelled_matrices(lengths, seed=0):
    """Sequences whose labels depend on the token and on the label before."""
    rng = np.random.default_rng(seed)
    X = [rng.integers(0, 3, (length, 4)).astype(float) for length in lengths]
    y = []
    for matrix in X:
        labels = []
        for token in matrix:
            before = labels[-1] if labels else "x"
            labels.append("x" if token[0] > token[1] else ("y" if before == "x" else "z"))
        y.append(labels)
    return X, y


def as_dicts(X):
    return [[{f"f{j}": value for j, value in enumerate(token)} for token in m] for m in X]


def assert_same_model(a, b):
    assert_array_equal(a.classes_, b.classes_)
    assert_same_weights(a, b)


def nested(y):
    return [list(sequence) for sequence in y]


# The same data in every format

X_FORMATS = {
    "tuple": tuple,
    "object array": object_array,
    "generator": iter,
    "nested lists": lambda X: [m.tolist() for m in X],
    "vectors": lambda X: [list(m) for m in X],
    "batch": SequenceBatch.from_sequences,
    "sparse batch": lambda X: SequenceBatch.from_sequences([sp.csr_array(m) for m in X]),
    "csr": lambda X: [sp.csr_matrix(m) for m in X],
    "csc arrays": lambda X: [sp.csc_array(m) for m in X],
    "frames": lambda X: [pd.DataFrame(m) for m in X],
}
Y_FORMATS = {
    "tuples": lambda y: tuple(map(tuple, y)),
    "arrays": lambda y: [np.array(s) for s in y],
    "object array of lists": object_array,
    "object array of arrays": lambda y: object_array([np.array(s) for s in y]),
    "series": pd.Series,
    "generator": iter,
}


@pytest.mark.parametrize("lengths", [(3, 1, 5, 2, 4, 6), (3,) * 6], ids=["ragged", "equal"])
@pytest.mark.parametrize("name", X_FORMATS)
def test_formats_of_X_make_the_same_model(tagger, name, lengths):
    X, y = labelled_matrices(lengths)
    expected = type(tagger)(**tagger.get_params()).fit(X, y)
    tagger.fit(X_FORMATS[name](X), y)
    assert_same_model(tagger, expected)
    for fitted, make in product((tagger, expected), (list, X_FORMATS[name])):
        predicted = fitted.predict(make(X))
        assert predicted.shape == (6,)
        assert list(map(type, predicted)) == [list] * 6
        assert predicted.tolist() == expected.predict(X).tolist()
    assert_array_equal(
        np.concatenate(tagger.predict_proba(X_FORMATS[name](X))),
        np.concatenate(expected.predict_proba(X)),
    )


@pytest.mark.parametrize("lengths", [(3, 1, 5, 2, 4, 6), (3,) * 6], ids=["ragged", "equal"])
@pytest.mark.parametrize("name", Y_FORMATS)
def test_formats_of_y_make_the_same_model(tagger, name, lengths):
    X, y = labelled_matrices(lengths)
    expected = type(tagger)(**tagger.get_params()).fit(X, y)
    assert_same_model(tagger.fit(X, Y_FORMATS[name](y)), expected)
    if name != "generator":
        assert tagger.score(X, Y_FORMATS[name](y)) == expected.score(X, y)


@pytest.mark.parametrize("make_y", [list, np.array, lambda y: np.array(y, dtype=object)])
@pytest.mark.parametrize("make_X", [np.stack, lambda X: np.stack(X).astype(object)])
def test_three_axes_make_the_same_model(tagger, make_X, make_y):
    X, y = labelled_matrices((3,) * 6)
    expected = type(tagger)(**tagger.get_params()).fit(X, y)
    assert_same_model(tagger.fit(make_X(X), make_y(y)), expected)
    predicted = tagger.predict(make_X(X))
    assert predicted.shape == (6, 3)
    assert predicted.tolist() == expected.predict(X).tolist()
    proba = tagger.predict_proba(make_X(X))
    assert proba.shape == (6, 3, len(tagger.classes_))
    assert_array_equal(proba, np.stack(list(expected.predict_proba(X))))
    assert tagger.score(make_X(X), make_y(y)) == expected.score(X, y)


@pytest.mark.parametrize("make_y", [list, tuple, np.array, object_array, pd.Series])
@pytest.mark.parametrize(
    "make_X", [np.array, np.ndarray.tolist, list, sp.csr_matrix, sp.coo_array, pd.DataFrame]
)
def test_rows_are_sequences_of_length_one(tagger, make_X, make_y):
    sequences, labels = labelled_matrices((1,) * 20)
    X, y = np.concatenate(sequences), [label for (label,) in labels]
    expected = type(tagger)(**tagger.get_params()).fit(sequences, labels)
    assert_same_model(tagger.fit(make_X(X), make_y(y)), expected)
    predicted = tagger.predict(make_X(X))
    assert predicted.shape == (20,)
    assert predicted.tolist() == [label for (label,) in expected.predict(sequences)]
    assert tagger.predict_proba(make_X(X)).shape == (20, len(tagger.classes_))
    assert tagger.score(make_X(X), make_y(y)) == expected.score(sequences, labels)


@pytest.mark.parametrize(
    "make",
    [
        tuple,
        object_array,
        iter,
        lambda X: (iter(sequence) for sequence in X),
        lambda X: pd.Series(X),
        lambda X: SequenceVectorizer().fit_transform(X),
    ],
)
def test_formats_of_tokens_make_the_same_model(tagger, make):
    X, y = labelled_matrices((3, 1, 5, 2, 4, 6))
    dicts = as_dicts(X)
    expected = type(tagger)(**tagger.get_params()).fit(dicts, y)
    assert_same_model(tagger.fit(make(dicts), y), expected)
    assert_array_equal(tagger.feature_names_in_, ["f0", "f1", "f2", "f3"])
    assert tagger.predict(make(dicts)).tolist() == expected.predict(dicts).tolist()


def test_an_array_of_dicts_is_equally_long_sequences(tagger):
    X, y = labelled_matrices((3,) * 6)
    dicts = as_dicts(X)
    expected = type(tagger)(**tagger.get_params()).fit(dicts, y)
    array = np.array(dicts)
    assert array.shape == (6, 3)
    assert_same_model(tagger.fit(array, np.array(y)), expected)
    assert tagger.predict(array).tolist() == expected.predict(dicts).tolist()


def test_attribute_strings_are_dicts_of_true(tagger):
    strings = [[["w=a", "b"], ["w=c"]], [["b"], []]]
    dicts = [[{"w=a": True, "b": True}, {"w=c": 1}], [{"b": True}, {}]]
    y = [["p", "q"], ["q", "p"]]
    other = type(tagger)(**tagger.get_params())
    assert_same_model(tagger.fit(strings, y), other.fit(dicts, y))
    assert tagger.predict(dicts).tolist() == other.predict(strings).tolist()


def test_data_frames_name_the_features(tagger):
    X, y = labelled_matrices((3, 1, 5, 2, 4, 6))
    names = ["p", "q", "r", "s"]
    frames = [pd.DataFrame(matrix, columns=names) for matrix in X]
    assert_array_equal(tagger.fit(frames, y).feature_names_in_, names)
    assert tagger.predict(frames).tolist() == tagger.predict(X).tolist()
    with pytest.raises(ValueError, match="feature names of X differ from those"):
        tagger.predict([frame[names[::-1]] for frame in frames])
    rows = pd.concat(frames)
    assert_array_equal(tagger.fit(rows, np.concatenate(y)).feature_names_in_, names)
    with pytest.raises(ValueError, match=r"feature names should match"):
        tagger.predict(rows[names[::-1]])


# Prediction


def test_empty_sequences_have_no_labels(tagger):
    X, y = labelled_matrices((2, 3))
    with_empty = [X[0], np.empty((0, 4)), X[1], []]
    tagger.fit(with_empty, [y[0], [], y[1], []])
    predicted = tagger.predict(with_empty)
    assert [len(labels) for labels in predicted] == [2, 0, 3, 0]
    assert predicted[[0, 2]].tolist() == tagger.predict(X).tolist()
    assert [p.shape for p in tagger.predict_proba(with_empty)] == [(2, 3), (0, 3), (3, 3), (0, 3)]
    for labellings in tagger.predict_nbest(with_empty, 3)[[1, 3]]:
        assert labellings == [Labelling([], 0.0, 1.0)]


def test_a_batch_of_nothing_but_empty_sequences(tagger):
    X, y = labelled_matrices((2, 3))
    assert tagger.fit(X, y).predict([[], []]).tolist() == [[], []]
    assert tagger.predict([np.empty((0, 4))]).tolist() == [[]]
    assert tagger.fit(as_dicts(X), y).predict([[]]).tolist() == [[]]
    assert tagger.predict(iter([[], []])).tolist() == [[], []]
    assert [p.shape for p in tagger.predict_proba([[], []])] == [(0, 3), (0, 3)]


def test_labels_come_back_as_they_were_given(tagger):
    X, y = labelled_matrices((3, 1, 5, 2))
    numbers = {"x": -1, "y": 5, "z": 2}
    for encode, kind in ((numbers.get, int), (str, str), (lambda label: label == "x", bool)):
        labels = [[encode(label) for label in sequence] for sequence in y]
        predicted = tagger.fit(X, labels).predict(X)
        assert {type(label) for sequence in predicted for label in sequence} == {kind}
        assert {label for s in predicted for label in s} <= {label for s in labels for label in s}


def test_integer_labels_are_as_good_as_strings(tagger):
    X, y = labelled_matrices((3, 1, 5, 2))
    codes = {"x": 0, "y": 1, "z": 2}
    other = type(tagger)(**tagger.get_params()).fit(X, [[codes[label] for label in s] for s in y])
    for strings, numbers in zip(tagger.fit(X, y).predict(X), other.predict(X), strict=True):
        assert [codes[label] for label in strings] == numbers


def test_marginals_are_those_of_all_label_sequences(tagger):
    X, y = labelled_matrices((3, 1, 4, 2))
    tagger.fit(X, y)
    n_classes = len(tagger.classes_)
    proba, everything = tagger.predict_proba(X), tagger.predict_nbest(X, n_classes**4)
    for i, matrix in enumerate(X):
        assert len(everything[i]) == n_classes ** len(matrix)
        assert_allclose(sum(labelling.probability for labelling in everything[i]), 1)
        summed = np.zeros((len(matrix), n_classes))
        for labelling in everything[i]:
            codes = np.searchsorted(tagger.classes_, labelling.labels)
            summed[np.arange(len(matrix)), codes] += labelling.probability
        assert_allclose(proba[i], summed, atol=1e-12)


def test_scores_are_sums_of_weights(tagger):
    X, y = labelled_matrices((3, 1, 4, 2))
    tagger.fit(X, y)
    for matrix, labellings in zip(X, tagger.predict_nbest(X, 4), strict=True):
        emission = matrix @ tagger.coef_.T + tagger.intercept_
        for labelling in labellings:
            c = np.searchsorted(tagger.classes_, labelling.labels)
            score = emission[np.arange(len(c)), c].sum() + tagger.transition_[c[:-1], c[1:]].sum()
            score += tagger.start_[c[0]] + tagger.end_[c[-1]]
            assert_allclose(labelling.score, score, atol=1e-10)


def test_the_best_of_the_n_best_is_the_prediction(tagger):
    X, y = labelled_matrices((3, 1, 5, 2, 4, 6))
    tagger.fit(X, y)
    for best, labellings in zip(tagger.predict(X), tagger.predict_nbest(X), strict=True):
        scores = [labelling.score for labelling in labellings]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(labelling.labels) for labelling in labellings}) == len(labellings) > 0
        # Two may score the same.
        assert best in [x.labels for x in labellings if np.isclose(x.score, scores[0])]


def test_fewer_label_sequences_than_wanted(tagger):
    X, y = labelled_matrices((3, 1, 5))
    labellings = tagger.fit(X, y).predict_nbest(X, 50)
    assert [len(found) for found in labellings] == [27, 3, 50]


def test_score_is_the_share_of_right_tokens(tagger):
    X, y = labelled_matrices((3, 1, 5, 2, 4, 6))
    predicted = tagger.fit(X, y).predict(X)
    wrong = [["x"] * len(sequence) for sequence in y]
    for truth in (y, wrong):
        hits = [np.mean(np.array(p) == np.array(t)) for p, t in zip(predicted, truth, strict=True)]
        lengths = list(map(len, truth))
        assert_allclose(tagger.score(X, truth), np.average(hits, weights=lengths))
        weight = np.arange(6.0)
        expected = np.average(hits, weights=weight * lengths)
        assert_allclose(tagger.score(X, truth, sample_weight=weight), expected)


@pytest.mark.parametrize("n_jobs", [2, 3, -1, 100])
def test_the_number_of_threads_does_not_change_predictions(tagger, n_jobs):
    X, y = labelled_matrices((3, 1, 5, 2, 4, 6))
    tagger.fit(X, y)
    serial = tagger.predict(X), tagger.predict_proba(X), tagger.predict_nbest(X, 3)
    tagger.set_params(n_jobs=n_jobs)
    assert tagger.predict(X).tolist() == serial[0].tolist()
    assert_array_equal(np.concatenate(tagger.predict_proba(X)), np.concatenate(serial[1]))
    assert tagger.predict_nbest(X, 3).tolist() == serial[2].tolist()


@pytest.mark.parametrize("n_jobs", [None, 3])
def test_fitting_twice_gives_the_same_bits(tagger, n_jobs):
    X, y = labelled_matrices((3, 1, 5, 2, 4, 6))
    tagger.set_params(n_jobs=n_jobs)
    other = type(tagger)(**tagger.get_params()).fit(X, y)
    assert_same_model(tagger.fit(X, y), other)
    assert_same_model(tagger.fit(X, y), other)


def test_weights_can_be_edited(tagger):
    """The fitted arrays are the model: what is changed there, or made sparse, counts."""
    X, y = labelled_matrices((3, 1, 5, 2))
    tagger.fit(X, y)
    before = tagger.predict(X).tolist()
    tagger.coef_ = sp.csr_matrix(tagger.coef_)
    assert tagger.predict(X).tolist() == before
    tagger.intercept_ = np.where(tagger.classes_ == "z", 1e6, 0.0)
    assert tagger.predict(X).tolist() == [["z"] * len(sequence) for sequence in y]


# Fitting again


def test_a_second_fit_forgets_the_first(tagger):
    X, y = labelled_matrices((3, 1, 5, 2))
    fresh = type(tagger)(**tagger.get_params()).fit(X, y)
    tagger.fit([[{"word": "a"}, {"word": "b"}]], [[1, 2]])
    assert hasattr(tagger, "vectorizer_")
    assert_same_model(tagger.fit(X, y), fresh)
    assert vars(tagger).keys() == vars(fresh).keys()
    tagger.fit(as_dicts(X), y)
    assert_array_equal(tagger.classes_, ["x", "y", "z"])
    assert tagger.n_features_in_ == 4


def test_warm_start_goes_on_with_the_same_classes_and_features(tagger):
    X, y = labelled_matrices((3, 1, 5, 2))
    tagger.set_params(warm_start=True).fit(as_dicts(X), y)
    vectorizer = tagger.vectorizer_
    tagger.fit([[{"f0": 1.0, "new": 1.0}]], [["x"]])
    assert tagger.vectorizer_ is vectorizer
    assert_array_equal(tagger.classes_, ["x", "y", "z"])
    assert tagger.coef_.shape == (3, 4)


def test_warm_start_starts_from_the_weights():
    X, y = labelled_matrices((3, 1, 5, 2, 4, 6))
    crf = CRFTagger(tol=1e-8, warm_start=True).fit(X, y)
    cold = crf.n_iter_
    assert crf.fit(X, y).n_iter_ < cold
    perceptron = PerceptronTagger(average=False, warm_start=True, random_state=0).fit(X, y)
    assert perceptron.score(X, y) == 1
    weights = perceptron.coef_.copy()
    assert perceptron.fit(X, y).n_iter_ == 1
    assert_array_equal(perceptron.coef_, weights)


def test_a_warm_start_without_biases_has_none(tagger):
    X, y = labelled_matrices((3, 1, 5, 2, 4, 6))
    tagger.set_params(warm_start=True).fit(X, y)
    assert tagger.intercept_.any()
    tagger.set_params(fit_intercept=False).fit(X, y)
    for weights in (tagger.intercept_, tagger.start_, tagger.end_):
        assert not weights.any()
    assert tagger.coef_.any()


def test_partial_fit_goes_over_the_data_like_fit():
    X, y = labelled_matrices((3, 1, 5, 2, 4, 6))
    settings = {"shuffle": False, "tol": None, "random_state": 0}
    whole = PerceptronTagger(max_iter=3, **settings)
    whole.fit(X, y)
    parts = PerceptronTagger(**settings)
    for _ in range(whole.n_iter_):
        parts.partial_fit(X[:2], y[:2], classes=["x", "y", "z"])
        parts.partial_fit(iter(X[2:]), y[2:])
    assert_same_model(parts, whole)
    assert parts.n_iter_ == 2 * whole.n_iter_


# Building blocks


def test_rows_of_ones_need_no_values():
    X = sp.csr_matrix(np.array([[0, 1.0], [1, 1], [0, 0]]))
    assert as_rows(X).data.size == 0
    assert_array_equal(as_rows(X).indptr, [0, 1, 3, 3])
    assert_array_equal(as_rows(2 * X).data, [2, 2, 2])
    assert as_rows(X.toarray()).indices.tolist() == [1, 0, 1]


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("chosen", [[0, 2], [3, 0], [1], [], [0, 1, 2, 3]])
def test_part_of_a_training_set(chosen, unit):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((9, 5)) * (rng.random((9, 5)) < 0.4))
    if unit:
        X.data[:] = 1
    offsets = np.array([0, 2, 2, 5, 9])
    labels = rng.integers(0, 3, 9).astype(np.int32)
    chosen = np.array(chosen, dtype=int)
    part = TrainingSet(as_rows(X), offsets, labels, np.arange(4.0)).take(chosen)
    kept = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in chosen] or [[]])
    kept = kept.astype(int)
    assert_array_equal(np.diff(part.offsets), np.diff(offsets)[chosen])
    assert_array_equal(part.labels, labels[kept])
    assert_array_equal(part.sample_weight, chosen)
    assert isinstance(part.rows, Rows)
    data = np.ones(len(part.rows.indices)) if unit else part.rows.data
    matrix = sp.csr_array((data, part.rows.indices, part.rows.indptr), shape=(len(kept), 5))
    assert_array_equal(matrix.toarray(), X.toarray()[kept])


def test_spans_need_a_fit():
    with pytest.raises(NotFittedError):
        CRFTagger().predict_spans([[["a"]]])


@pytest.mark.parametrize("name", ["label_cost", "constraint"])
def test_parameters_that_are_tables(name):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(np.zeros((2, 2), bool), index=["y", "x"], columns=["y", "x"])
    with pytest.raises(ValueError, match=rf"{name} is a data frame"):
        CRFTagger(**{name: table}).fit([[["a"], ["b"]]], [["x", "y"]])
