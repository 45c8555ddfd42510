"""Rows of batches: a matrix brought to one form, rows selected, and matrices stacked."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from skstruct.matrices.index_arrays import add_up, check_lengths, to_csr, wrong_bounds
from skstruct.utils.sparse import are_ones, shared_ones

__all__ = ["as_matrix", "canonical", "select_rows", "stack_sequences", "stores_zeros"]


def as_matrix(X, name="X"):
    """Dense or sparse matrix of real numbers; a ValueError for anything else."""
    if not sp.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"{name} has {X.ndim} dimension(s); expected a 2-D matrix of stacked rows."
        )
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError("Complex data not supported.")
    return X


def canonical(X, name="X", place="row {}".format, *, keep_zeros=False):
    """Convert a matrix to the form of batches: floats, C-ordered or CSR in canonical format.

    Parameters
    ----------
    X : {ndarray, sparse matrix}
        From `as_matrix`; not changed.
    name, place : object
        As in `skstruct.matrices.index_arrays.to_csr`.
    keep_zeros : bool, default=False
        Keep the zeros that a sparse matrix stores.

    Returns
    -------
    X : {ndarray, csr_matrix}, dtype float32 or float64

    Raises
    ------
    ValueError
        If the arrays of a sparse matrix do not fit each other and its shape.
    """
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    if not sp.issparse(X):
        X = np.ascontiguousarray(X, dtype=dtype)
        # A single row is contiguous with any stride, and joblib's hash would depend on the stride.
        return X.ravel().reshape(X.shape)
    X = to_csr(X, name, place)
    # scipy chooses the smallest index type here, whatever the type in the input.
    arrays = X.data.astype(dtype, copy=False), X.indices, X.indptr
    X = sp.csr_matrix(arrays, shape=X.shape)
    if not X.has_canonical_format:
        # A copy, as below: the arrays may be the caller's, and both methods work in place.
        X = X.copy()
        X.sum_duplicates()
    if not keep_zeros and stores_zeros(X):
        X = X.copy()
        X.eliminate_zeros()
    if X.data.strides != (0,) and are_ones(X.data):
        X.data = shared_ones(len(X.data), X.dtype)
    return X


def stores_zeros(X):
    """Return True if a matrix is sparse and stores a zero."""
    return sp.issparse(X) and not are_ones(X.data) and not X.data.all()


def select_rows(X, rows, name="X", place="row {}".format):
    """Copy some rows of a matrix, dense or CSR, whose arrays nobody has checked.

    Parameters
    ----------
    X : ndarray or csr_matrix
    rows : ndarray of int of shape (n_selected,) or slice
        Numbers of rows that there are, or the first row and the end.
    name, place : object
        As in `to_csr`.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_selected, n_features)
        With the column indices that there were, right or wrong.

    Raises
    ------
    ValueError
        If the arrays of a sparse matrix have no such rows.
    """
    if not sp.issparse(X):
        return X[rows]
    if isinstance(rows, slice):
        rows = np.arange(rows.start, rows.stop)
    check_lengths(X, X.shape[0], name)
    starts, ends = X.indptr[rows], X.indptr[rows + 1]
    wrong = (starts < 0) | (ends < starts) | (ends > len(X.indices))
    if wrong.any():
        i, n = rows[wrong.argmax()], len(X.indices)
        raise wrong_bounds(place(i), name, X.indptr[i : i + 2], n)
    counts = ends - starts
    indptr = add_up(counts)
    source = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
    arrays = X.data[source], X.indices[source], indptr
    return sp.csr_matrix(arrays, shape=(len(rows), X.shape[1]))


def stack_sequences(sequences):
    """Stack matrices, one for each sequence; see `skstruct.SequenceBatch.from_sequences`.

    Parameters
    ----------
    sequences : iterable of {array-like, sparse matrix} of shape (length_i, n_features)

    Returns
    -------
    X : {ndarray, csr_matrix} of shape (n_rows, n_features)
    lengths : list of int
        Rows of each sequence.
    """
    sequences = [s if sp.issparse(s) else np.asarray(s) for s in sequences]
    if not sequences:
        raise ValueError("Found an empty batch: at least one sequence is required.")
    for i, s in enumerate(sequences):
        if s.ndim != 2:
            raise ValueError(f"Sequence {i} has {s.ndim} dimension(s), expected 2.")
        if s.shape[1] != sequences[0].shape[1]:
            raise ValueError(
                f"Sequence {i} has {s.shape[1]} features, "
                f"but sequence 0 has {sequences[0].shape[1]}."
            )
    sparse = [sp.issparse(s) for s in sequences]
    if any(sparse) and not all(sparse):
        raise ValueError(
            f"Sequence {sparse.index(not sparse[0])} is {'dense' if sparse[0] else 'sparse'}, "
            f"but sequence 0 is not: a batch is all dense or all sparse."
        )
    lengths = [s.shape[0] for s in sequences]
    if not sparse[0]:
        return np.concatenate(sequences), lengths
    plain = [
        s if _is_plain(s) else sp.csr_matrix(to_csr(s, place=f"Sequence {i}, token {{}}".format))
        for i, s in enumerate(sequences)
    ]
    return _stack_plain(plain, lengths), lengths


def _is_plain(X):
    """Return True for CSR arrays whose lengths fit; bounds and columns are checked when stacked."""
    if X.format != "csr" or X.indptr.dtype.kind + X.indices.dtype.kind != "ii":
        return False
    fits = len(X.indptr) == X.shape[0] + 1 and len(X.indices) == len(X.data)
    return fits and X.indptr[0] == 0 and X.indptr[-1] == len(X.indices)


def _stack_plain(matrices, lengths):
    """Stack matrices in the format CSR.

    scipy would make large column indices fit a smaller type, and look right.
    """
    starts = add_up([len(X.indices) for X in matrices])[:-1]
    ends = np.concatenate([X.indptr[1:] for X in matrices]) + np.repeat(starts, lengths)
    data, indices = (
        np.concatenate([getattr(X, name) for X in matrices]) for name in ("data", "indices")
    )
    arrays = data, indices, np.concatenate([[0], ends])
    return sp.csr_matrix(arrays, shape=(len(ends), matrices[0].shape[1]))
