"""The border: formats of X and y, and what is said of those that are none."""

import os
from collections import deque
from time import perf_counter

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.taggers import object_array
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from skstruct import SequenceBatch
from skstruct.input.formats import Format, encode_labels, read_format, shape_predictions

MATRICES = [np.array([[0.0, 1.5], [2.0, 0.0], [1.0, 1.0]]), np.array([[3.0, 0.0]])]
EQUAL = [MATRICES[0], MATRICES[0][::-1] + 1]
TABLE = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
DICTS = [[{"word": "a"}, {"word": "b"}], [{"word": "c"}]]


def frames(matrices):
    return [pd.DataFrame(matrix, columns=["p", "q"]) for matrix in matrices]


def array_like(X):
    class ArrayLike:
        def __array__(self, dtype=None, copy=None):
            return np.array(X, dtype=dtype)

    return ArrayLike()


def iterable(X):
    class Iterable:
        def __iter__(self):
            return iter(X)

    return Iterable()


BATCHES = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "object array": object_array,
    "series": lambda m: pd.Series(list(m)),
    "generator": iter,
    "iterable": iterable,
    "nested lists": lambda m: [x.tolist() for x in m],
    "nested tuples": lambda m: tuple(tuple(map(tuple, x)) for x in m),
    "vectors": lambda m: [list(x) for x in m],
    "object array of lists": lambda m: object_array([x.tolist() for x in m]),
    "object array of vectors": lambda m: object_array([list(x) for x in m]),
    "object matrices": lambda m: [x.astype(object) for x in m],
    "fortran": lambda m: [np.asfortranarray(x) for x in m],
    "frames": frames,
    "generator of frames": lambda m: iter(frames(m)),
    "array-likes": lambda m: [array_like(x) for x in m],
    "csr": lambda m: [sp.csr_matrix(x) for x in m],
    "coo arrays": lambda m: [sp.coo_array(x) for x in m],
    "generator of csc": lambda m: (sp.csc_array(x) for x in m),
}


@pytest.mark.parametrize("matrices", [MATRICES, EQUAL], ids=["ragged", "equal"])
@pytest.mark.parametrize("make", BATCHES.values(), ids=BATCHES)
def test_matrices_of_sequences_are_a_batch(make, matrices):
    format, batch = read_format(make(matrices))
    assert format is Format.BATCH
    assert_array_equal(batch.lengths, [len(matrix) for matrix in matrices])
    stacked = batch.X.toarray() if sp.issparse(batch.X) else batch.X
    assert_array_equal(stacked, np.concatenate(matrices))


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.coo_array, sp.lil_array])
def test_sparse_matrices_stay_sparse(make):
    assert sp.issparse(read_format([make(matrix) for matrix in MATRICES])[1].X)


def test_a_sequence_batch_is_taken_as_it_is():
    batch = SequenceBatch.from_sequences(MATRICES)
    format, same = read_format(batch)
    assert format is Format.BATCH
    assert joblib.hash(same) == joblib.hash(batch)
    # A copy of a matrix could be large.
    assert np.shares_memory(same.X, batch.X)


@pytest.mark.parametrize("make", [np.array, lambda x: np.array(x, dtype=object)])
def test_three_axes_are_a_grid(make):
    grid = np.stack(EQUAL)
    format, batch = read_format(make(grid))
    assert format is Format.GRID
    assert_array_equal(batch.lengths, [3, 3])
    assert_array_equal(batch.X, grid.reshape(6, 2))


@pytest.mark.parametrize("shape", [(2, 0, 3), (1, 0, 1)])
def test_a_grid_of_empty_sequences(shape):
    format, batch = read_format(np.empty(shape))
    assert format is Format.GRID
    assert_array_equal(batch.lengths, np.zeros(shape[0]))
    assert shape_predictions(np.empty(0, int), batch.offsets, format).shape == shape[:2]


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        lambda x: x.astype(object),
        lambda x: x.astype(str),
        list,
        tuple,
        iter,
        object_array,
        np.ndarray.tolist,
        lambda x: deque(x.tolist()),
        sp.csr_matrix,
        sp.coo_array,
        pd.DataFrame,
        array_like,
        lambda x: np.empty((0, 3)),
    ],
)
def test_two_axes_are_rows(make):
    assert read_format(make(TABLE))[0] is Format.ROWS


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        object_array,
        deque,
        iterable,
        lambda x: pd.Series(x),
        lambda x: [pd.Series(sequence) for sequence in x],
        lambda x: object_array([object_array(sequence) for sequence in x]),
        iter,
        lambda x: (iter(sequence) for sequence in x),
        lambda x: [[], *x],
        lambda x: iter([[], *x]),
        lambda x: np.array([[{"a": 1}, {"b": 1}], [{}, {"a": 2}]]),
        lambda x: [[["word=a"], ["word=b", "title"]]],
        lambda x: [[{"word=a"}]],
        lambda x: [[[], ["a"]]],
        lambda x: [np.array([["a", "b"], ["a", "c"]])],
        lambda x: np.array([[["a", "b"], ["a", "c"]]]),
    ],
)
def test_anything_but_numbers_is_for_the_vectoriser(make):
    assert read_format(make(DICTS))[0] is Format.TOKENS


def test_generators_of_tokens_are_not_read_ahead():
    def sequences():
        for sequence in DICTS:
            read.append(sequence)
            yield sequence

    read = []
    _, X = read_format(sequences())
    assert len(read) == 1
    assert list(X) == DICTS


@pytest.mark.parametrize("nothing", [[], ()], ids=repr)
def test_empty_lists_among_matrices(nothing):
    for sequences in ([nothing, *MATRICES], [*map(np.ndarray.tolist, MATRICES), nothing]):
        format, batch = read_format(sequences)
        assert format is Format.BATCH
        assert_array_equal(batch.lengths, [len(s) for s in sequences])
    assert_array_equal(read_format([nothing, sp.csr_array(TABLE)])[1].lengths, [0, 3])


def test_only_empty_lists():
    """They show no number of features, so a model has to tell."""
    format, batch = read_format([[], []], n_features=5)
    assert format is Format.BATCH
    assert batch.X.shape == (0, 5)
    assert_array_equal(batch.lengths, [0, 0])
    assert read_format([[], []]) == (Format.TOKENS, [[], []])


def test_names_of_columns_come_from_data_frames():
    assert_array_equal(read_format(frames(MATRICES))[1].feature_names, ["p", "q"])
    assert read_format(list(map(pd.DataFrame, MATRICES)))[1].feature_names is None
    swapped = [frames(MATRICES)[0], frames(MATRICES)[1][["q", "p"]]]
    with pytest.raises(ValueError, match="columns of sequence 1 differ from those of sequence 0"):
        read_format(swapped)


def test_polars():
    polars = pytest.importorskip("polars")
    format, batch = read_format([polars.DataFrame(m, schema=["p", "q"]) for m in MATRICES])
    assert format is Format.BATCH
    assert_array_equal(batch.X, np.concatenate(MATRICES))
    assert_array_equal(batch.feature_names, ["p", "q"])
    assert read_format(polars.DataFrame(TABLE))[0] is Format.ROWS
    for y in (
        [polars.Series(["b", "a"]), polars.Series(["a"])],
        polars.Series([["b", "a"], ["a"]]),
    ):
        classes, codes = encode_labels(y, batch_of([2, 1]), Format.BATCH)
        assert_array_equal(classes[codes], ["b", "a", "a"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_keep_their_width(dtype):
    assert read_format([matrix.astype(dtype) for matrix in MATRICES])[1].dtype == dtype
    assert read_format(np.stack(EQUAL).astype(dtype))[1].dtype == dtype
    assert read_format([matrix > 0 for matrix in MATRICES])[1].dtype == np.float64


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("huge", [[1e308, 1e308], [-1e308, -1e308]])
def test_a_sum_that_overflows_is_no_complaint(huge):
    assert_array_equal(read_format([[huge]])[1].X, [huge])


@pytest.mark.filterwarnings("error")
def test_infinities_that_cancel_out_are_found():
    with pytest.raises(ValueError, match="Sequence 0, token 0: feature 0 is inf"):
        read_format([[[np.inf, -np.inf]]])


# Labels


def batch_of(lengths):
    return SequenceBatch.from_lengths(np.zeros((sum(lengths), 1)), lengths)


LABELS = {
    "lists": list,
    "tuples": lambda y: tuple(map(tuple, y)),
    "arrays": lambda y: [np.array(s) for s in y],
    "object arrays": lambda y: [np.array(s, dtype=object) for s in y],
    "object array of lists": object_array,
    "object array of arrays": lambda y: object_array([np.array(s) for s in y]),
    "numpy scalars": lambda y: [list(np.array(s)) for s in y],
    "series": lambda y: pd.Series(y),
    "list of series": lambda y: [pd.Series(s) for s in y],
    "categoricals": lambda y: [pd.Categorical(s) for s in y],
    "generator": iter,
    "generator of generators": lambda y: (iter(s) for s in y),
    "deques": lambda y: deque(map(deque, y)),
}
IF_EQUAL = {
    "2-D array": np.array,
    "2-D object array": lambda y: np.array(y, dtype=object),
    "frame": pd.DataFrame,
}


@pytest.mark.parametrize("make", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize(
    "y",
    [[["b", "a"], ["a"]], [[3, 1], [-2]], [[True, False], [True]]],
    ids=["str", "int", "bool"],
)
def test_labels_in_any_container(make, y):
    classes, codes = encode_labels(make(y), batch_of([2, 1]), Format.BATCH)
    assert classes.tolist() == sorted({*y[0], *y[1]})
    assert codes.dtype == np.int32
    assert classes[codes].tolist() == [*y[0], *y[1]]
    known, same = encode_labels(make(y), batch_of([2, 1]), Format.TOKENS, classes)
    assert known is classes
    assert_array_equal(codes, same)


@pytest.mark.parametrize("make", [*LABELS.values(), *IF_EQUAL.values()], ids=[*LABELS, *IF_EQUAL])
@pytest.mark.parametrize("format", [Format.BATCH, Format.GRID, Format.TOKENS])
@pytest.mark.parametrize("y", [[["b", "a"], ["a", "c"]], [[3, 1], [-2, 3]]], ids=["str", "int"])
def test_labels_of_equally_long_sequences(make, format, y):
    classes, codes = encode_labels(make(y), batch_of([2, 2]), format)
    assert classes[codes].tolist() == [*y[0], *y[1]]


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        np.array,
        lambda y: np.array(y, dtype=object),
        pd.Series,
        lambda y: pd.Series(y, dtype="category"),
    ],
)
@pytest.mark.parametrize("y", [["b", "a", "b"], [3, -1, 3], [True, False, True]])
def test_labels_of_rows(make, y):
    classes, codes = encode_labels(make(y), batch_of([1, 1, 1]), Format.ROWS)
    assert classes.tolist() == sorted(set(y))
    assert classes[codes].tolist() == y
    known, same = encode_labels(make(y), batch_of([1, 1, 1]), Format.ROWS, classes)
    assert known is classes
    assert_array_equal(codes, same)


def test_classes_of_rows_keep_their_type():
    for dtype in (np.uint8, np.float64, "<U5", object):
        y = np.array(["1", "0", "1"]).astype(dtype)
        assert encode_labels(y, batch_of([1, 1, 1]), Format.ROWS)[0].dtype == dtype


label_types = st.sampled_from([st.text(max_size=3), st.integers()])
label_batches = label_types.flatmap(
    lambda label: st.lists(st.lists(label, max_size=4), min_size=1, max_size=5).filter(any)
)


@given(label_batches)
@example([["a\0", "a"]])
@example([[-1, 2**63], [2**70]])
def test_codes_stand_for_the_labels(y):
    lengths = list(map(len, y))
    flat = [label for sequence in y for label in sequence]
    batch = batch_of(lengths)
    classes, codes = encode_labels(y, batch, Format.BATCH)
    assert classes.tolist() == sorted(set(flat))
    assert [classes.tolist()[code] for code in codes] == flat
    back = shape_predictions(classes[codes], batch.offsets, Format.BATCH)
    assert back.shape == (len(y),)
    assert back.tolist() == y


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5).flatmap(
        lambda lengths: st.tuples(*(arrays(np.int8, (length, 2)) for length in lengths))
    )
)
def test_every_container_makes_the_same_batch(matrices):
    expected = SequenceBatch.from_sequences(matrices)
    for make in (list, object_array, iter, lambda m: [sp.csr_array(x) for x in m]):
        format, batch = read_format(make(matrices))
        assert format is Format.BATCH
        assert_array_equal(batch.offsets, expected.offsets)
        X = batch.X.toarray() if sp.issparse(batch.X) else batch.X
        assert_array_equal(X, expected.X)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ("ab", "y is 'ab'; expected a list of label sequences"),
        (5, "y is 5; expected a list of label sequences"),
        ({"a": 1, "b": 2}, "expected a list of label sequences"),
        ({"a", "b"}, "expected a list of label sequences"),
        ([["a", "b"]], "X has 2 sequences, but y has labels for 1"),
        (np.array(["a", "b", "a"]), "X has 2 sequences, but y has labels for 3"),
        ([["a", "b"], ["a", "b"]], "Sequence 1 has 1 tokens, but 2 labels"),
        ([["a"], ["a"]], "Sequence 0 has 2 tokens, but 1 labels"),
        ([[], ["a"]], "Sequence 0 has 2 tokens, but 0 labels"),
        (
            ["ab", "a"],
            "Sequence 0: its labels must be a list with one label for each token, got 'ab'",
        ),
        ([["a", "b"], "a"], "Sequence 1: its labels must be a list"),
        ([["a", "b"], None], "Sequence 1: its labels must be a list"),
        ([["a", "b"], 3], "Sequence 1: its labels must be a list"),
        ([{"a", "b"}, {"a"}], "Sequence 0: its labels must be a list"),
        (np.array([1, 2]), "Sequence 0: its labels must be a list"),
        ([["a", 1], ["a"]], "Sequence 0, token 1: label 1 is not a string like the first label"),
        ([[1, 2], ["a"]], "Sequence 1, token 0: label 'a' is not an integer like the first"),
        ([["a", "b"], [True]], "Sequence 1, token 0: label True is not a string"),
        ([[0, 1.0], [1]], "Sequence 0, token 1: label 1.0 is neither a string nor an integer"),
        ([[0.5, 1.5], [1.5]], "Sequence 0, token 0: label 0.5 is neither"),
        ([["a", None], ["a"]], "Sequence 0, token 1: label None stands for no label"),
        ([["a", np.nan], ["a"]], "Sequence 0, token 1: label nan is neither"),
        ([[b"a", b"b"], [b"a"]], "Sequence 0, token 0: label b'a' is neither"),
        ([["a", "b"], [["a"]]], r"Sequence 1, token 0: label \['a'\] is neither"),
        ([[("a",), "b"], ["a"]], r"Sequence 0, token 0: label \('a',\) is neither"),
        ([["a", {"b": 1}], ["a"]], "Sequence 0, token 1: label {'b': 1} is neither"),
        (np.zeros((2, 2)), "Sequence 1 has 1 tokens, but 2 labels"),
    ],
)
def test_messages_say_what_is_wrong_with_y(y, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(y, batch_of([2, 1]), Format.TOKENS)


@pytest.mark.parametrize("classes", [np.array(["a", "b"]), np.array([0, 1])])
@pytest.mark.parametrize("y", [[["a", 0], ["a"]], [["a", [0]], ["a"]], [["a", None], ["a"]]])
def test_types_are_checked_where_classes_are_known(y, classes):
    with pytest.raises(
        ValueError, match=r"Sequence 0, token 1: label .* (neither|like the first|no label)"
    ):
        encode_labels(y, batch_of([2, 1]), Format.BATCH, classes)


def test_labels_that_are_not_among_the_classes():
    classes = np.array(["a", "b"])
    with pytest.raises(ValueError, match="Sequence 1, token 0: label 'c' is not among the classes"):
        encode_labels([["a", "b"], ["c"]], batch_of([2, 1]), Format.BATCH, classes)
    with pytest.raises(ValueError, match="Sequence 0, token 0: label 7 is not among the classes"):
        encode_labels([[7, 7], [7]], batch_of([2, 1]), Format.BATCH, classes)
    with pytest.raises(ValueError, match="Sequence 2, token 0: label 'c' is not among the classes"):
        encode_labels(["a", "b", "c"], batch_of([1, 1, 1]), Format.ROWS, classes)


def test_numbers_that_read_like_classes_are_not_among_them():
    """numpy would compare 1 with "1" as strings."""
    with pytest.raises(ValueError, match="label '1' is not among the classes"):
        encode_labels(["1", "0"], batch_of([1, 1]), Format.ROWS, np.array([0, 1]))
    with pytest.raises(ValueError, match="label 1 is not among the classes"):
        encode_labels([1, 0], batch_of([1, 1]), Format.ROWS, np.array(["0", "1"]))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        (["a", "b"], "X has 3 sequences, but y has labels for 2"),
        ([1.5, 2.5, 1.0], "Unknown label type"),
        ([0, 1, np.nan], "Input y contains NaN"),
        (["a", 1, "b"], "Sequence 1, token 0: label 1 is not a string"),
        (np.array([1, "a", 2], dtype=object), "Sequence 1, token 0: label 'a' is not an integer"),
        (["a", None, "b"], "Sequence 1, token 0: label None stands for no label"),
        (pd.Series(["a", "b", None]), "Sequence 2, token 0: label (nan|None|<NA>) is neither"),
        ([["a", "b"], ["a", "b"], ["a", "b"]], "y should be a 1d array"),
        ("abc", "y should be a 1d array"),
    ],
)
def test_messages_say_what_is_wrong_with_the_labels_of_rows(y, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(y, batch_of([1, 1, 1]), Format.ROWS)


def test_no_token_is_no_training_set():
    with pytest.raises(ValueError, match="Found no token: every sequence is empty"):
        encode_labels([[], []], batch_of([0, 0]), Format.BATCH)


# Predictions


def test_predictions_of_equally_long_sequences_are_an_object_array_of_lists():
    """numpy would make them a 2-D array, which seqeval does not take."""
    shaped = shape_predictions(np.array(["a", "b", "c", "d"]), np.array([0, 2, 4]), Format.TOKENS)
    assert shaped.shape == (2,)
    assert list(map(type, shaped)) == [list, list]
    assert {type(label) for sequence in shaped for label in sequence} == {str}


def test_marginals_are_cut_by_sequence():
    values = np.arange(12.0).reshape(6, 2)
    offsets = np.array([0, 1, 1, 6])
    shaped = shape_predictions(values, offsets, Format.BATCH)
    assert [part.shape for part in shaped] == [(1, 2), (0, 2), (5, 2)]
    assert_array_equal(np.concatenate(shaped), values)
    assert shape_predictions(values, np.arange(7), Format.ROWS) is values
    grid = shape_predictions(values, np.array([0, 3, 6]), Format.GRID)
    assert_array_equal(grid, values.reshape(2, 3, 2))


# Speed


@pytest.mark.skipif("SKSTRUCT_DATA" not in os.environ, reason="needs the CoNLL-2000 corpus")
def test_labels_of_a_corpus_are_read_in_a_moment():
    from skstruct.datasets import fetch_conll2000

    _, y = fetch_conll2000(return_X_y=True)
    batch = batch_of(list(map(len, y)))
    times = []
    for _ in range(5):
        start = perf_counter()
        classes, codes = encode_labels(y, batch, Format.TOKENS)
        times.append(perf_counter() - start)
    expected = np.unique(np.concatenate(y), return_inverse=True)
    assert_array_equal(classes, expected[0])
    assert_array_equal(codes, expected[1])
    # 15 ms on an idle machine.
    assert min(times) < 0.15
