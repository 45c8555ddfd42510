"""The container: what it promises about counting, indexing, splitting, and being kept."""

import pickle
from fractions import Fraction

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.model_selection import (
    KFold,
    ShuffleSplit,
    cross_val_predict,
    cross_validate,
    train_test_split,
)
from sklearn.utils import _safe_indexing, indexable
from strategies import lengths

from skstruct import PerceptronTagger, SequenceBatch

LENGTHS = [2, 0, 3, 1, 4]
NAMES = ["a", "b", "c"]


def dense(values):
    return values.toarray() if sp.issparse(values) else np.asarray(values)


def make_batch(lengths, sparse=False, names=None):
    """Batch whose values tell where they stand."""
    X = np.arange(3.0 * sum(lengths)).reshape(-1, 3) + 1
    return SequenceBatch.from_lengths(
        sp.csr_matrix(X) if sparse else X, lengths, feature_names=names
    )


def assert_same_sequences(batch, sequences):
    assert len(batch) == len(sequences)
    assert batch.lengths.tolist() == [len(s) for s in sequences]
    for i, sequence in enumerate(sequences):
        assert_array_equal(dense(batch[i]), sequence)


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def batch(request):
    return make_batch(LENGTHS, request.param, NAMES)


@pytest.fixture
def sequences(batch):
    """The same as a plain list."""
    cuts = np.cumsum(LENGTHS)[:-1]
    return np.split(dense(batch.X), cuts)


# ------------------------------------------------------------------------------ construction


def test_counts(batch):
    assert len(batch) == 5
    assert batch.shape == (5,)
    assert (batch.n_rows, batch.n_features) == (10, 3)
    assert batch.lengths.tolist() == LENGTHS
    assert batch.offsets.tolist() == [0, 2, 2, 5, 6, 10]
    assert batch.offsets.dtype == np.int64
    assert batch.feature_names.tolist() == NAMES
    assert repr(batch) == "SequenceBatch(n_sequences=5, n_rows=10, n_features=3)"


def test_offsets_and_lengths_describe_the_same_batch(batch, sequences):
    assert_same_sequences(SequenceBatch(batch.X, [0, 2, 2, 5, 6, 10]), sequences)
    assert_same_sequences(SequenceBatch.from_lengths(batch.X, np.array(LENGTHS)), sequences)
    assert_same_sequences(SequenceBatch.from_sequences(iter(batch)), sequences)


@pytest.mark.parametrize(
    "make", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix]
)
def test_any_sparse_format_becomes_csr(make):
    X = np.array([[0.0, 1.0], [2.0, 0.0]])
    batch = SequenceBatch(make(X), [0, 2])
    assert isinstance(batch.X, sp.csr_matrix)
    assert_array_equal(batch.X.toarray(), X)


@pytest.mark.parametrize(
    ("given_dtype", "kept"),
    [("f4", "f4"), ("f8", "f8"), ("i8", "f8"), ("?", "f8"), ("f2", "f8"), ("O", "f8")],
)
def test_dtypes(given_dtype, kept):
    X = np.eye(2, dtype=given_dtype)
    assert SequenceBatch(X, [0, 2]).dtype == kept
    if given_dtype not in ("f2", "O"):
        assert SequenceBatch(sp.csr_matrix(X), [0, 2]).dtype == kept


def test_dense_rows_are_contiguous():
    X = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    batch = SequenceBatch(X, [0, 1, 2])
    assert batch.X.flags.c_contiguous
    assert_array_equal(batch.X, X)


def test_duplicate_entries_are_summed_without_touching_the_original():
    X = sp.csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 3])), (1, 2))
    batch = SequenceBatch(X, [0, 1])
    assert batch.X.nnz == 2
    assert_array_equal(batch.X.toarray(), [[5, 3]])
    assert X.nnz == 3
    assert X.indices.tolist() == [1, 1, 0]


@given(lengths(), st.booleans())
def test_sequences_survive_the_way_through_a_list(lengths, sparse):
    batch = make_batch(lengths, sparse)
    again = SequenceBatch.from_sequences(list(batch))
    assert again.lengths.tolist() == lengths
    assert_array_equal(dense(again.X), dense(batch.X))


@given(st.lists(lengths(), min_size=1, max_size=4), st.booleans())
def test_concatenate_joins(all_lengths, sparse):
    batches = [make_batch(lengths, sparse, NAMES) for lengths in all_lengths]
    joined = SequenceBatch.concatenate(iter(batches))
    assert_same_sequences(joined, [dense(s) for b in batches for s in b])
    assert joined.feature_names.tolist() == NAMES


TIMES = np.array([["NaT"], ["2021-01-01"]], "datetime64[D]")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SequenceBatch(np.zeros(3), [0, 3]), "X has 1 dimension"),
        (lambda: SequenceBatch(np.zeros((1, 1, 1)), [0, 1]), "X has 3 dimension"),
        (lambda: SequenceBatch(np.zeros((2, 1), complex), [0, 2]), "Complex data not supported"),
        (lambda: SequenceBatch(np.zeros((3, 1)), [0, 2]), "end at the number of rows, 3"),
        (lambda: SequenceBatch(np.zeros((3, 1)), [1, 3]), "start at 0"),
        (lambda: SequenceBatch(np.zeros((3, 1)), [0, 2, 1, 3]), "decrease at sequence 1"),
        (lambda: SequenceBatch(np.zeros((3, 1)), []), "1-D array of integers"),
        (lambda: SequenceBatch(np.zeros((3, 1)), [0.0, 3.0]), "1-D array of integers"),
        (lambda: SequenceBatch(np.zeros((3, 1)), [[0, 3]]), "1-D array of integers"),
        (
            lambda: SequenceBatch(np.zeros((3, 1)), [0, 3], feature_names=["a", "b"]),
            r"shape \(2,\), but X has 1 columns",
        ),
        (lambda: SequenceBatch.from_lengths(np.zeros((3, 1)), [1, 1]), "from 0 to 2"),
        (lambda: SequenceBatch.from_lengths(np.zeros((3, 1)), [4, -1]), r"lengths\[1\] is neg"),
        (lambda: SequenceBatch.from_lengths(np.zeros((3, 1)), [1.5, 1.5]), "array of integers"),
        (lambda: SequenceBatch.from_lengths(np.zeros((3, 1)), 3), "array of integers"),
        (
            lambda: SequenceBatch.from_lengths(np.zeros((3, 1)), [2**62] * 3),
            "lengths add up to more",
        ),
        (lambda: SequenceBatch(TIMES, [0, 2]), "X has values of the type datetime64"),
        (lambda: SequenceBatch(TIMES - TIMES, [0, 2]), "X has values of the type timedelta64"),
        (lambda: SequenceBatch.from_sequences([np.eye(1), TIMES]), "Sequence 1 has .* datetime64"),
        (
            lambda: SequenceBatch.from_sequences([[[1], [1, 2]]]),
            "Sequence 0 is not a matrix of num",
        ),
        (lambda: SequenceBatch.from_sequences([]), "empty batch"),
        (lambda: SequenceBatch.from_sequences([np.eye(2), np.eye(3)]), "Sequence 1 has 3 features"),
        (lambda: SequenceBatch.from_sequences([np.eye(2), np.ones(2)]), "Sequence 1 has 1 dim"),
        (
            lambda: SequenceBatch.from_sequences([np.eye(2), sp.csr_matrix(np.eye(2))]),
            "Sequence 1 is sparse, but sequence 0 is not",
        ),
        (
            lambda: SequenceBatch.from_sequences([sp.csr_matrix(np.eye(2)), np.eye(2)]),
            "Sequence 1 is dense, but sequence 0 is not",
        ),
        (lambda: SequenceBatch.concatenate([]), "Nothing to concatenate"),
        (
            lambda: SequenceBatch.concatenate([make_batch([1]), make_batch([1], sparse=True)]),
            "all dense or all sparse",
        ),
        (
            lambda: SequenceBatch.concatenate([make_batch([1]), SequenceBatch(np.eye(2), [0, 2])]),
            "different columns|dimensions",
        ),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ------------------------------------------------------------------------------------ products


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("factor", [2, 0.5, np.float64(2), np.float32(2), Fraction(1, 2)])
def test_a_number_may_stand_on_either_side(factor, sparse):
    # Sequences of equal length, which numpy could stack.
    batch = make_batch([2, 2], sparse=sparse)
    for product in (batch * factor, factor * batch):
        assert type(product) is SequenceBatch
        assert_array_equal(dense(product.X), dense(batch.X) * float(factor))


def test_arrays_are_no_factors():
    for multiply in (lambda a, b: a * b, lambda a, b: b * a):
        with pytest.raises(TypeError):
            multiply(make_batch([2, 2]), np.array(2.0))


# ---------------------------------------------------------------------------------- indexing


def test_integers_give_one_matrix(batch, sequences):
    for i in range(-5, 5):
        assert_array_equal(dense(batch[i]), sequences[i])
        assert_array_equal(dense(batch[np.int32(i)]), sequences[i])
    for i in (5, -6):
        with pytest.raises(IndexError, match=f"Sequence {i} is out of range for a batch of 5"):
            batch[i]


def test_iteration_gives_every_matrix(batch, sequences):
    assert all(
        np.array_equal(dense(found), expected)
        for found, expected in zip(batch, sequences, strict=True)
    )


@given(st.slices(5), st.booleans())
def test_slices_are_those_of_a_list(key, sparse):
    batch = make_batch(LENGTHS, sparse, NAMES)
    part = batch[key]
    assert isinstance(part, SequenceBatch)
    assert_same_sequences(part, [dense(s) for s in list(batch)[key]])
    assert part.feature_names.tolist() == NAMES


@given(st.lists(st.integers(-5, 4)), st.booleans())
def test_index_arrays_are_those_of_numpy(key, sparse):
    batch = make_batch(LENGTHS, sparse, NAMES)
    expected = [dense(batch[i]) for i in key]
    assert_same_sequences(batch[key], expected)
    assert_same_sequences(batch[np.array(key, np.int64)], expected)
    assert batch[key].feature_names.tolist() == NAMES


@given(st.lists(st.booleans(), min_size=5, max_size=5), st.booleans())
def test_masks_keep_what_is_true(mask, sparse):
    batch = make_batch(LENGTHS, sparse)
    expected = [dense(s) for s, keep in zip(batch, mask, strict=True) if keep]
    assert_same_sequences(batch[mask], expected)
    assert_same_sequences(batch[np.array(mask)], expected)


def test_scikit_learns_way_of_indexing(batch, sequences):
    assert_same_sequences(batch[[2, 0], ...], [sequences[2], sequences[0]])
    assert_same_sequences(_safe_indexing(batch, np.array([2, 0])), [sequences[2], sequences[0]])
    assert indexable(batch, [0] * 5)[0] is batch


@pytest.mark.parametrize(
    "key", [[5], [-6], [0.5], [[0, 1]], "a", None, [True, False], True, (0, 1), 1.0]
)
def test_other_indices_are_refused(batch, key):
    with pytest.raises(IndexError):
        batch[key]


# --------------------------------------------------------------------- scikit-learn and joblib


def labelled(sparse):
    batch = make_batch([2, 1, 3, 1, 2, 2, 1, 3], sparse)
    return batch, [["x" if row[0] % 2 else "y" for row in dense(s)] for s in batch]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("splitter", [KFold(3), ShuffleSplit(2, test_size=3, random_state=0)])
def test_splitters_divide_the_sequences(splitter, sparse):
    batch, y = labelled(sparse)
    for train, test in splitter.split(batch, y):
        assert sorted([*train, *test]) == list(range(8))
        assert_same_sequences(batch[test], [dense(batch[i]) for i in test])


@pytest.mark.parametrize("sparse", [False, True])
def test_train_test_split(sparse):
    batch, y = labelled(sparse)
    X_train, X_test, y_train, y_test = train_test_split(batch, y, test_size=3, random_state=1)
    assert (len(X_train), len(X_test)) == (5, 3)
    expected = train_test_split(list(range(8)), test_size=3, random_state=1)
    assert_same_sequences(X_train, [dense(batch[i]) for i in expected[0]])
    assert_same_sequences(X_test, [dense(batch[i]) for i in expected[1]])
    assert X_train.lengths.tolist() == [len(labels) for labels in y_train]
    assert X_test.lengths.tolist() == [len(labels) for labels in y_test]


@pytest.mark.parametrize("sparse", [False, True])
def test_cross_validation(sparse):
    batch, y = labelled(sparse)
    tagger = PerceptronTagger(max_iter=3, tol=None, random_state=0)
    result = cross_validate(tagger, batch, y, cv=4, return_train_score=True)
    for i, (train, test) in enumerate(KFold(4).split(batch)):
        fitted = tagger.fit(batch[train], [y[j] for j in train])
        assert result["test_score"][i] == fitted.score(batch[test], [y[j] for j in test])
        assert result["train_score"][i] == fitted.score(batch[train], [y[j] for j in train])
    predicted = cross_val_predict(tagger, batch, y, cv=4)
    assert [len(labels) for labels in predicted] == batch.lengths.tolist()


def test_pickle_keeps_everything(batch, sequences):
    again = pickle.loads(pickle.dumps(batch))
    assert_same_sequences(again, sequences)
    assert type(again.X) is type(batch.X)
    assert again.dtype == batch.dtype
    assert_array_equal(again.offsets, batch.offsets)
    assert_array_equal(again.feature_names, batch.feature_names)


def test_equal_content_has_an_equal_hash(batch):
    key = joblib.hash(batch)
    assert joblib.hash(pickle.loads(pickle.dumps(batch))) == key
    assert joblib.hash(batch[:]) == key
    assert joblib.hash(batch[np.arange(5)]) == key
    assert joblib.hash(SequenceBatch.from_sequences(batch, feature_names=NAMES)) == key
    assert joblib.hash(SequenceBatch.concatenate([batch[:2], batch[2:]])) == key
    # Asking questions changes no content.
    batch.X.sum()
    _ = batch.X.has_sorted_indices if sp.issparse(batch.X) else batch.X.max()
    assert joblib.hash(batch) == key


def test_hash_does_not_tell_how_the_same_content_was_given():
    X = np.arange(12.0).reshape(4, 3)
    row = SequenceBatch(X[:1].copy(), [0, 1])
    assert joblib.hash(SequenceBatch(X[::2][:1], [0, 1])) == joblib.hash(row)
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    narrow = SequenceBatch(sp.csr_matrix(X), [0, 4])
    assert joblib.hash(SequenceBatch(wide, [0, 4])) == joblib.hash(narrow)
    assert joblib.hash(SequenceBatch(sp.coo_array(X), [0, 4])) == joblib.hash(narrow)


def test_other_content_has_another_hash(batch):
    others = [
        batch[:4],
        batch[::-1],
        SequenceBatch(batch.X, [0, 1, 2, 5, 6, 10], feature_names=NAMES),
        SequenceBatch(batch.X, batch.offsets),
        SequenceBatch(batch.X, batch.offsets, feature_names=["a", "b", "d"]),
        SequenceBatch(2 * batch.X, batch.offsets, feature_names=NAMES),
    ]
    keys = [joblib.hash(other) for other in others]
    assert len({joblib.hash(batch), *keys}) == 7


def test_memory_recognises_a_batch(batch, tmp_path):
    calls = []

    def count(b):
        calls.append(b)
        return len(b)

    count = joblib.Memory(tmp_path, verbose=0).cache(count)
    assert count(batch) == count(pickle.loads(pickle.dumps(batch))) == 5
    assert len(calls) == 1


# ------------------------------------------------------------------- features of transitions


def with_transitions(batch, n_features=2, sparse=False):
    """The same batch with a second matrix, whose values are those of the first and more."""
    edges = 100 + dense(batch.X)[:, :n_features]
    edges = sp.csr_matrix(edges) if sparse else edges
    return SequenceBatch(
        batch.X, batch.offsets, feature_names=batch.feature_names, transition_X=edges
    )


@pytest.fixture(params=[False, True], ids=["dense-transitions", "sparse-transitions"])
def observed(batch, request):
    return with_transitions(batch, sparse=request.param)


def assert_goes_along(batch):
    """The second matrix is that of the rows that the first one has."""
    assert_array_equal(dense(batch.transition_X), 100 + dense(batch.X)[:, :2])


def test_without_transition_features(batch):
    assert batch.transition_X is None
    assert batch.n_transition_features == 0
    assert "transition" not in repr(batch)
    assert "transition_matrix" not in batch.__getstate__()


def test_transition_features_show(observed):
    assert observed.n_transition_features == 2
    assert repr(observed) == (
        "SequenceBatch(n_sequences=5, n_rows=10, n_features=3, n_transition_features=2)"
    )
    made = SequenceBatch.from_lengths(observed.X, LENGTHS, transition_X=observed.transition_X)
    assert_goes_along(made)


@pytest.mark.parametrize(
    "key",
    [slice(1, 4), slice(None, None, -2), [3, 0, 0], np.array([], int), np.arange(5) % 2 == 0],
    ids=["slice", "steps", "numbers", "none", "mask"],
)
def test_transition_features_are_selected_with_their_sequences(observed, key):
    selected = observed[key]
    assert selected.lengths.tolist() == np.array(LENGTHS)[key].tolist()
    assert selected.n_transition_features == 2
    assert_goes_along(selected)
    assert sp.issparse(selected.transition_X) == sp.issparse(observed.transition_X)


def test_a_single_sequence_is_its_first_matrix(observed):
    assert_array_equal(dense(observed[2]), dense(observed.X)[2:5])


def test_splitters_take_transition_features_along(observed):
    train, test = train_test_split(observed, test_size=2, random_state=0)
    assert_goes_along(train)
    assert_goes_along(test)


def test_concatenated_transition_features(observed):
    joined = SequenceBatch.concatenate([observed[3:], observed[:2]])
    assert_goes_along(joined)
    assert joined.lengths.tolist() == LENGTHS[3:] + LENGTHS[:2]


def test_what_cannot_be_concatenated_with_transition_features(observed, batch):
    with pytest.raises(ValueError, match="with and without transition_X"):
        SequenceBatch.concatenate([observed, batch])
    sparse = sp.issparse(observed.transition_X)
    with pytest.raises(ValueError, match="different columns"):
        SequenceBatch.concatenate([observed, with_transitions(batch, 1, sparse)])
    with pytest.raises(ValueError, match="all dense or all sparse"):
        SequenceBatch.concatenate([observed, with_transitions(batch, 2, not sparse)])


def test_pickles_and_hashes_tell_transition_features(observed, batch):
    again = pickle.loads(pickle.dumps(observed))
    assert_goes_along(again)
    assert joblib.hash(again) == joblib.hash(observed) != joblib.hash(batch)
    edges = observed.transition_X.copy()
    edges[1, 1] = 7.0
    changed = SequenceBatch(observed.X, observed.offsets, feature_names=NAMES, transition_X=edges)
    assert joblib.hash(changed) != joblib.hash(observed)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (np.ones((9, 2)), "transition_X has 9 rows, but X has 10"),
        (np.ones(10), r"transition_X has 1 dimension\(s\)"),
        (np.ones((10, 1)) * 1j, "Complex data not supported"),
    ],
)
def test_transition_features_must_be_a_matrix_of_the_rows(batch, edges, message):
    with pytest.raises(ValueError, match=message):
        SequenceBatch(batch.X, batch.offsets, transition_X=edges)
