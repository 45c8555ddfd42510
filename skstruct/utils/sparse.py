"""Matrices and arrays: conversion, stacking, read-only views, and packing for storage."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

__all__ = [
    "are_ones",
    "as_csr",
    "count_bytes",
    "hstack",
    "merge_rows",
    "pack_matrix",
    "pieces",
    "read_only",
    "shared_ones",
    "unpack_matrix",
    "vstack",
    "writable",
]

# Non-zeros that are copied at a time, which bounds the buffers for their positions.
_BLOCK = 1 << 20


def as_csr(X):
    """Convert a matrix to CSR, dropping the zeros of a dense one."""
    if sp.issparse(X):
        return X if isinstance(X, sp.csr_matrix) else sp.csr_matrix(X)
    n_rows, width = X.shape
    large = max(X.size, width) > np.iinfo(np.int32).max
    integer = np.int64 if large else np.int32
    flat, counts = np.ravel(X), np.count_nonzero(X, axis=1)
    # scipy converts by way of COO, which takes ten times as long if nothing is zero.
    if counts.sum() == X.size:
        indices = np.tile(np.arange(width, dtype=integer), n_rows)
    else:
        places = np.flatnonzero(flat)
        flat, indices = flat[places], (places % width).astype(integer)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(integer)
    return sp.csr_matrix((flat, indices, indptr), shape=X.shape)


def shared_ones(n, dtype):
    """Make a read-only array of ones that share the memory of one number."""
    return np.broadcast_to(np.ones((), dtype), n)


def are_ones(values):
    """Return True if all values are one; at once for those of `shared_ones`."""
    if values.strides == (0,) or len(values) == 0:
        return bool((values[:1] == 1).all())
    return values[0] == 1 and bool((values == 1).all())


def hstack(matrices):
    """Stack matrices horizontally; dense if all of them are, else CSR."""
    if not any(sp.issparse(X) for X in matrices):
        return np.concatenate(matrices, axis=1)
    matrices = [as_csr(X) for X in matrices]
    widths = [X.shape[1] for X in matrices]
    starts = np.cumsum([0, *widths[:-1]])
    blocks = [(X.data, X.indices, X.indptr, s) for X, s in zip(matrices, starts, strict=True)]
    shape = (matrices[0].shape[0], sum(widths))
    merged = sp.csr_matrix(merge_rows(blocks, np.result_type(*matrices), shape[1]), shape=shape)
    # The columns of a block come after those of all blocks before it.
    merged.has_sorted_indices = all(X.has_sorted_indices for X in matrices)
    return merged


def vstack(matrices):
    """Stack matrices vertically, which are all dense or all sparse and have the same columns."""
    sparse = [sp.issparse(X) for X in matrices]
    if any(sparse) and not all(sparse):
        raise ValueError("A batch is all dense or all sparse: convert the matrices to one kind.")
    if any(X.shape[1] != matrices[0].shape[1] for X in matrices):
        raise ValueError("Batches with different columns cannot be concatenated.")
    return sp.vstack(matrices, format="csr") if sparse[0] else np.concatenate(matrices)


def merge_rows(blocks, dtype, n_columns):
    """Arrays of a CSR matrix whose rows join the rows of several CSR matrices.

    scipy stacks columns by way of COO, which takes several times the memory and time.

    Parameters
    ----------
    blocks : list of (data, indices, indptr, shift)
        Arrays of CSR matrices with the same number of rows, and the number to add to their
        column indices.
    dtype : dtype
        Of the values.
    n_columns : int
        Number of columns of the result.

    Returns
    -------
    data, indices, indptr : ndarray
    """
    indptr = np.sum([block[2] for block in blocks], axis=0, dtype=np.int64)
    n_rows, n_entries = len(indptr) - 1, int(indptr[-1])
    large = max(n_entries, n_columns) > np.iinfo(np.int32).max
    data, indices = np.empty(n_entries, dtype), np.empty(n_entries, np.int64 if large else np.int32)
    step = max(1, _BLOCK * n_rows // max(n_entries, 1))
    for first in range(0, n_rows, step):
        last = min(first + step, n_rows)
        free = indptr[first:last].copy()
        for values, columns, ends, shift in blocks:
            a, b = ends[first], ends[last]
            counts = np.diff(ends[first : last + 1])
            places = np.arange(a, b) + np.repeat(free - ends[first:last], counts)
            data[places] = values[a:b]
            indices[places] = columns[a:b] + shift
            free += counts
    return data, indices, indptr


def pieces(sequence, size=1 << 16):
    """Yield consecutive parts of an array or range, so that copies of one part stay small."""
    for start in range(0, len(sequence), size):
        yield sequence[start : start + size]


def pack_matrix(X):
    """Arrays and shape of a CSR matrix as a tuple, of ones only the first; else `X` as it is.

    scipy's matrices also carry flags that depend on the methods called so far, which would change
    joblib's hash of an unchanged batch.
    """
    if not sp.issparse(X):
        return X
    return X.data[:1].copy() if are_ones(X.data) else X.data, X.indices, X.indptr, X.shape


def unpack_matrix(matrix):
    """Matrix from what `pack_matrix` returned; anything else as it is."""
    if not isinstance(matrix, tuple):
        return matrix
    data, indices, indptr, shape = matrix
    if len(data) == 1 and data[0] == 1:
        data = shared_ones(len(indices), data.dtype)
    return sp.csr_matrix((data, indices, indptr), shape=shape)


def read_only(value):
    """Make a read-only view of an array, or of every array of a record.

    Numba has one type for writable arrays and another for read-only ones, such as memory maps, and
    compiles a kernel for each. So what kernels only read is always read-only.

    Parameters
    ----------
    value : ndarray or NamedTuple of such values

    Returns
    -------
    value : ndarray or NamedTuple
    """
    if isinstance(value, tuple):
        return type(value)(*map(read_only, value))
    view = np.asarray(value).view()
    view.flags.writeable = False
    return view


def writable(value):
    """Copy an array that is read-only, or every such array of a record; all else as it is."""
    if isinstance(value, tuple):
        return type(value)(*map(writable, value))
    return np.require(value, requirements="W") if isinstance(value, np.ndarray) else value


def count_bytes(value):
    """Bytes of an array, or of all arrays of a record."""
    if isinstance(value, tuple):
        return sum(map(count_bytes, value))
    return value.nbytes if isinstance(value, np.ndarray) else 0
