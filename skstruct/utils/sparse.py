"""Matrices side by side, and rows that are made of the rows of several matrices."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

__all__ = ["as_csr", "beside", "merge_rows"]

# Non-zeros that are moved at a time: the places they go to take twice as many bytes.
_AT_A_TIME = 1 << 20


def as_csr(X):
    """A matrix as CSR, without the zeros of a dense one."""
    if sp.issparse(X):
        return sp.csr_matrix(X)
    n_rows, width = X.shape
    large = max(X.size, width) > np.iinfo(np.int32).max
    integer = np.int64 if large else np.int32
    flat, counts = np.ravel(X), np.count_nonzero(X, axis=1)
    # scipy goes by way of coordinates, which takes ten times as long where nothing is zero.
    if counts.sum() == X.size:
        indices = np.tile(np.arange(width, dtype=integer), n_rows)
    else:
        places = np.flatnonzero(flat)
        flat, indices = flat[places], (places % width).astype(integer)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(integer)
    return sp.csr_matrix((flat, indices, indptr), shape=X.shape)


def beside(matrices):
    """The columns of matrices one after the other; dense if all are, else CSR."""
    if not any(sp.issparse(X) for X in matrices):
        return np.concatenate(matrices, axis=1)
    matrices = [as_csr(X) for X in matrices]
    widths = [X.shape[1] for X in matrices]
    starts = np.cumsum([0, *widths[:-1]])
    blocks = [(X.data, X.indices, X.indptr, s) for X, s in zip(matrices, starts, strict=True)]
    shape = (matrices[0].shape[0], sum(widths))
    merged = sp.csr_matrix(merge_rows(blocks, np.result_type(*matrices), shape[1]), shape=shape)
    # As those of all blocks are, and blocks follow each other.
    merged.has_sorted_indices = all(X.has_sorted_indices for X in matrices)
    return merged


def merge_rows(blocks, dtype, n_columns):
    """Arrays of a CSR matrix, each row of which has the entries of that row of all blocks.

    scipy stacks columns by way of coordinates, in several times the memory and time.

    Parameters
    ----------
    blocks : list of (data, indices, indptr, shift)
        Arrays of CSR matrices with the same number of rows, and what is to be added to the
        column numbers of each.
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
    step = max(1, _AT_A_TIME * n_rows // max(n_entries, 1))
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
