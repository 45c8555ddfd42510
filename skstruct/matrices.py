"""Matrices and their arrays: checked, brought to one form, selected from, stacked and stored.

Index arrays are attributes that anybody can change, and neither scipy nor a kernel looks where they
point: they are checked at every call, before compiled code follows them.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import scipy.sparse as sp

from skstruct.utils.messages import DataError


def read_offsets(offsets, n_rows, part=slice(None)):
    """Copy the offsets of sequences, or of consecutive ones among them.

    Parameters
    ----------
    offsets : array-like of shape (n_sequences + 1,)
        Row number at which each sequence starts, and the number of rows at the end.
    n_rows : int
        Number of rows that there are.
    part : slice, default=slice(None)
        The offsets to copy. Of the others, only the first and the last are checked.

    Returns
    -------
    offsets : ndarray of shape (n_sequences + 1,), dtype int64
        Read-only.

    Raises
    ------
    ValueError
        If the offsets are invalid; the message names the first wrong sequence.
    """
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or offsets.size == 0 or not np.issubdtype(offsets.dtype, np.integer):
        raise ValueError("offsets must be a 1-D array of integers that starts with 0.")
    if offsets[0] != 0 or offsets[-1] != n_rows:
        raise ValueError(
            f"offsets must start at 0 and end at the number of rows, {n_rows}; "
            f"got offsets from {offsets[0]} to {offsets[-1]}."
        )
    offsets = np.array(offsets[part], dtype=np.int64, order="C")
    if not 0 <= offsets[0] <= offsets[-1] <= n_rows:
        raise ValueError(f"offsets go from {offsets[0]} to {offsets[-1]}, but X has {n_rows} rows.")
    falls = offsets[1:] < offsets[:-1]
    if falls.any():
        raise ValueError(f"offsets decrease at sequence {falls.argmax()}.")
    offsets.flags.writeable = False
    return offsets


def to_offsets(lengths):
    """Offsets of sequences of these lengths; a ValueError unless they are integers from 0."""
    lengths = np.asarray(lengths)
    if lengths.ndim != 1 or not (lengths.size == 0 or np.issubdtype(lengths.dtype, np.integer)):
        raise ValueError("lengths must be a 1-D array of integers.")
    if lengths.size and lengths.min() < 0:
        raise ValueError(f"lengths[{int(np.argmin(lengths))}] is negative.")
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def offsets_of(lengths):
    """Offsets of sequences of lengths that `len` gave, in a fifth of the time for a few."""
    return np.array([*accumulate(lengths, initial=0)], np.int64)


def ranges(starts, lengths):
    """Numbers of some ranges, one range after the other, and the offsets of the ranges."""
    offsets = to_offsets(lengths)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths), offsets


def to_csr(X, name="X", place="row {}".format):
    """Convert a sparse matrix to CSR, if its arrays fit each other and its shape.

    Parameters
    ----------
    X : sparse matrix or sparse array with two dimensions
        Not changed.
    name : str, default="X"
        For messages.
    place : callable, default="row {}".format
        Turns the number of a row into words for messages, or into sequence and token.

    Returns
    -------
    X : sparse matrix or sparse array
        In the format CSR: the same object if it had it before.

    Raises
    ------
    ValueError
        If they do not fit; the message names the row.
    """
    if X.format in _CHECKS:
        _CHECKS[X.format](X, name, place)
    if X.format != "csr":
        X = X.tocsr()
        _check_csr(X, name, place)
    return X


def as_dense(weights, name):
    """Array of weights, which may be sparse; the arrays of a sparse matrix are checked."""
    if not sp.issparse(weights):
        return weights
    return to_csr(weights, name, "row {} of the weights".format).toarray()


def _check_csr(X, name, place):
    _check_compressed(X, X.shape, "column", name, place)


def _check_csc(X, name, place):
    _check_compressed(X, X.shape[::-1], "row", name, f"column {{}} of {name}".format)


def _check_bsr(X, name, place):
    height, width = X.blocksize
    if X.data.shape[1:] != (height, width):
        raise _misfit(f"{name}.data has the shape {X.data.shape}")
    shape = X.shape[0] // height, X.shape[1] // width
    _check_compressed(X, shape, "block", name, lambda row: place(row * height))


def _check_compressed(X, shape, unit, name, place):
    """Check CSR, or a format that is CSR of something else: `unit` is what indices number."""
    n_major, n_minor = shape
    check_lengths(X, n_major, name)
    indptr = X.indptr
    _check_bounds(indptr[:-1], indptr[1:], X, name, place)

    def place_of(entry):
        return place(int(np.searchsorted(indptr, entry, side="right") - 1))

    _check_inside(X.indices[: indptr[-1]], n_minor, unit, place_of)


def _check_bounds(starts, ends, X, name, place):
    """Raise a ValueError for the first of some rows that is no range of the entries of X."""
    n = len(X.indices)
    wrong = (starts < 0) | (ends < starts) | (ends > n)
    if wrong.any():
        i = int(wrong.argmax())
        goes = f"{name}.indptr goes from {starts[i]} to {ends[i]}, but there are {n} entries"
        raise _misfit(goes, place(i))  # DataError, which is a ValueError


def _check_inside(numbers, size, unit, place):
    """Raise a ValueError for the first of some integers that is not in ``range(size)``."""
    signed = numbers.dtype
    # Negative numbers are large when viewed as unsigned, so one pass finds both kinds.
    unsigned = numbers.view(np.dtype(f"{signed.byteorder}u{signed.itemsize}"))
    least = min(size, int(np.iinfo(signed).max) + 1)
    if len(numbers) and int(unsigned.max()) >= least:
        i = int((unsigned >= least).argmax())
        wrong = f"{unit} {numbers[i]} is not one of the {size}, which are numbered from 0"
        raise _misfit(wrong, place(i))  # DataError, which is a ValueError


def check_lengths(X, n_major, name):
    """Raise a ValueError unless lengths and start of the arrays of a compressed matrix fit."""
    _check_integers(X.indptr, f"{name}.indptr")
    _check_integers(X.indices, f"{name}.indices")
    if len(X.indptr) != n_major + 1:
        raise _misfit(f"{name}.indptr has {len(X.indptr)} numbers; expected {n_major + 1}")
    if X.indptr[0] != 0:
        raise _misfit(f"{name}.indptr starts at {X.indptr[0]}, not at 0")
    if np.shape(X.data)[:1] != X.indices.shape:
        raise _misfit(
            f"{name}.data has the shape {np.shape(X.data)}, but there are {len(X.indices)} indices"
        )


def _check_integers(array, name):
    if not (isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iu"):
        raise _misfit(f"{name} is not a 1-D array of integers")


def _check_coo(X, name, place):
    _check_integers(X.row, f"{name}.row")
    _check_integers(X.col, f"{name}.col")
    if not len(X.row) == len(X.col) == len(X.data):
        raise _misfit(
            f"{name} has {len(X.data)} values, but {len(X.row)} rows and {len(X.col)} columns"
        )
    _check_inside(X.row, X.shape[0], "row", f"entry {{}} of {name}".format)
    _check_inside(X.col, X.shape[1], "column", lambda entry: place(X.row[entry]))


def _check_lil(X, name, place):
    if not len(X.rows) == len(X.data) == X.shape[0]:
        raise _misfit(f"{name} has {len(X.rows)} lists for {X.shape[0]} rows")
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(columns) != len(values):
            counts = f"{len(values)} values, but {len(columns)} columns for them"
            raise _misfit(f"{name} has {counts}", place(i))


def _check_dia(X, name, place):
    if X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1]:
        raise _misfit(
            f"{name}.data has the shape {X.data.shape}, but there are {len(X.offsets)} diagonals"
        )


def _misfit(complaint, place=""):
    """Error for the arrays of a sparse matrix, at a place: its name, or sequence and token."""
    fact = f"{complaint}. The arrays of the matrix do not fit together: make it again."
    if isinstance(place, str):
        return ValueError(f"{place[:1].upper()}{place[1:]}: {fact}" if place else fact)
    return DataError.of(fact, *place)


_CHECKS = {
    "csr": _check_csr,
    "csc": _check_csc,
    "bsr": _check_bsr,
    "coo": _check_coo,
    "lil": _check_lil,
    "dia": _check_dia,
}


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
    """Return True if all values are one; at once for `shared_ones`."""
    if values.strides == (0,) or len(values) == 0:
        return bool((values[:1] == 1).all())
    # Most other arrays differ among the first values, and are not compared in full.
    return bool((values[:100] == 1).all()) and bool((values == 1).all())


def matrix_of_tokens(tokens, n_columns, dtype):
    """CSR matrix of tokens that were read, `LooseRows`, with arrays of its own."""
    ends, columns, values, _ = tokens.copy()
    if are_ones(values):
        values = shared_ones(len(columns), dtype)
    values = values.astype(dtype, copy=False)
    matrix = sp.csr_matrix((values, columns, ends), shape=(len(ends) - 1, n_columns))
    matrix.has_canonical_format = True
    return matrix


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
    # The columns of a block come after all blocks before it.
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


def copied_arrays(value):
    """Copy an array, or a record with all of its arrays."""
    if isinstance(value, tuple):
        return type(value)(*map(copied_arrays, value))
    return value.copy()


def count_bytes(value):
    """Bytes of an array, or of all arrays of a record."""
    if isinstance(value, tuple):
        return sum(map(count_bytes, value))
    return value.nbytes if isinstance(value, np.ndarray) else 0


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
    refuse_times(X, name)
    return X


def refuse_times(X, name):
    """Raise a ValueError for points in time and durations, which numpy would take for numbers.

    The error has the name of X, or the number of a sequence.
    """
    if X.dtype.kind not in "mM":
        return
    fact = (
        f" has values of the type {X.dtype}: make numbers of dates and durations, such as days "
        "since a day."
    )
    raise ValueError(name + fact) if isinstance(name, str) else DataError("{place}" + fact, name)


def as_rows(sequence, i):
    """Rows of sequence i as a sparse matrix or an array of numbers; a ValueError otherwise."""
    if type(sequence) is np.ndarray and sequence.dtype.kind in "biuf":
        return sequence
    if sp.issparse(sequence):
        return sequence
    try:
        if isinstance(sequence, np.ndarray) and sequence.dtype == object:
            sequence = sequence.tolist()
        matrix = np.asarray(sequence)
        if matrix.dtype.kind not in "biufcmM":
            matrix = matrix.astype(np.float64)
    except (OverflowError, TypeError, ValueError):
        raise DataError(
            "{place} is not a matrix of numbers: its {token}s differ in length or type.", i
        ) from None
    refuse_times(matrix, i)
    return matrix


def canonical(X, name="X", place="row {}".format, *, keep_zeros=False):
    """Convert a matrix to the form of batches: floats, C-ordered or CSR in canonical format.

    Parameters
    ----------
    X : {ndarray, sparse matrix}
        From `as_matrix`; not changed.
    name, place : object
        As in `skstruct.matrices.to_csr`.
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
        Numbers of existing rows, or a slice from the first row to the end.
    name, place : object
        As in `to_csr`.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_selected, n_features)
        With the column indices of `X`, unchecked.

    Raises
    ------
    ValueError
        If the bounds of a row of a sparse matrix are invalid; the message names it.
    """
    if not sp.issparse(X):
        return X[rows]
    if isinstance(rows, slice):
        rows = np.arange(rows.start, rows.stop)
    check_lengths(X, X.shape[0], name)
    starts, ends = X.indptr[rows], X.indptr[rows + 1]
    _check_bounds(starts, ends, X, name, lambda i: place(rows[i]))
    source, indptr = ranges(starts, ends - starts)
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
    sequences = [as_rows(s, i) for i, s in enumerate(sequences)]
    if not sequences:
        raise DataError("Found an empty batch: at least one {sequence} is required.")
    for i, s in enumerate(sequences):
        if s.ndim != 2:
            raise DataError(f"{{place}} has {s.ndim} dimension(s), expected 2.", i)
        if s.shape[1] != sequences[0].shape[1]:
            raise DataError(
                f"{{place}} has {s.shape[1]} features, but {{sequence}} 0 has "
                f"{sequences[0].shape[1]}.",
                i,
            )
    sparse = [sp.issparse(s) for s in sequences]
    if any(sparse) and not all(sparse):
        raise DataError(
            f"{{place}} is {'dense' if sparse[0] else 'sparse'}, but {{sequence}} 0 is not: a "
            "batch is all dense or all sparse.",
            sparse.index(not sparse[0]),
        )
    lengths = [s.shape[0] for s in sequences]
    if not sparse[0]:
        return np.concatenate(sequences), lengths
    plain = [
        s if _is_plain(s) else sp.csr_matrix(to_csr(s, place=lambda token, i=i: (i, token)))
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
    starts = to_offsets([len(X.indices) for X in matrices])[:-1]
    ends = np.concatenate([X.indptr[1:] for X in matrices]) + np.repeat(starts, lengths)
    data, indices = (
        np.concatenate([getattr(X, name) for X in matrices]) for name in ("data", "indices")
    )
    arrays = data, indices, np.concatenate([[0], ends])
    return sp.csr_matrix(arrays, shape=(len(ends), matrices[0].shape[1]))
