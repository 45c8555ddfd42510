"""Index arrays, of sequences and of sparse matrices: checked before compiled code follows them.

They are attributes that anybody can change, and neither scipy nor a kernel looks where they point.
"""

from __future__ import annotations

import numpy as np

__all__ = ["add_up", "check_lengths", "read_offsets", "to_csr", "wrong_bounds"]

_AGAIN = "The arrays of the matrix do not fit together: make it again."


def read_offsets(offsets, n_rows, part=slice(None)):
    """Copy offsets of sequences, or of some that follow each other.

    Parameters
    ----------
    offsets : array-like of shape (n_sequences + 1,)
        Row number at which each sequence starts, and the number of rows at the end.
    n_rows : int
        Number of rows that there are.
    part : slice, default=slice(None)
        The offsets to copy; others are not looked at, but for the first and the last.

    Returns
    -------
    offsets : ndarray of shape (n_sequences + 1,), dtype int64
        Read-only.

    Raises
    ------
    ValueError
        If there are no such sequences; it names the first.
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


def add_up(lengths):
    """Offsets of sequences of these lengths; a ValueError unless they are integers from 0."""
    lengths = np.asarray(lengths)
    if lengths.ndim != 1 or not (lengths.size == 0 or np.issubdtype(lengths.dtype, np.integer)):
        raise ValueError("lengths must be a 1-D array of integers.")
    if lengths.size and lengths.min() < 0:
        raise ValueError(f"lengths[{int(np.argmin(lengths))}] is negative.")
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def to_csr(X, name="X", place="row {}".format):
    """Convert a sparse matrix to CSR, if its arrays fit each other and its shape.

    Parameters
    ----------
    X : sparse matrix or sparse array with two dimensions
        Not changed.
    name : str, default="X"
        For messages.
    place : callable, default="row {}".format
        Turns the number of a row into words for messages.

    Returns
    -------
    X : sparse matrix or sparse array
        In the format CSR: the same object if it had it before.

    Raises
    ------
    ValueError
        If they do not; it names the row.
    """
    if X.format in _CHECKS:
        _CHECKS[X.format](X, name, place)
    if X.format != "csr":
        X = X.tocsr()
        _check_csr(X, name, place)
    return X


def _check_csr(X, name, place):
    _check_compressed(X, X.shape, "column", name, place)


def _check_csc(X, name, place):
    _check_compressed(X, X.shape[::-1], "row", name, f"column {{}} of {name}".format)


def _check_bsr(X, name, place):
    height, width = X.blocksize
    if X.data.shape[1:] != (height, width):
        raise ValueError(f"{name}.data has the shape {X.data.shape}. {_AGAIN}")
    shape = X.shape[0] // height, X.shape[1] // width
    _check_compressed(X, shape, "block", name, lambda row: place(row * height))


def _check_compressed(X, shape, unit, name, place):
    """Check CSR, or a format that is CSR of something else: `unit` is what indices number."""
    n_major, n_minor = shape
    check_lengths(X, n_major, name)
    indptr, n = X.indptr, len(X.indices)
    wrong = (indptr[1:] < indptr[:-1]) | (indptr[1:] > n)
    if wrong.any():
        i = int(wrong.argmax())
        raise wrong_bounds(place(i), name, indptr[i : i + 2], n)
    wrong = _first_outside(X.indices[: indptr[-1]], n_minor)
    if wrong is not None:
        where = _begin(place(int(np.searchsorted(indptr, wrong, side="right") - 1)))
        raise ValueError(f"{where}: {_outside(unit, X.indices[wrong], n_minor)}. {_AGAIN}")


def wrong_bounds(place, name, bounds, n):
    """Error for a row that has these entries of `n`."""
    goes = f"{name}.indptr goes from {bounds[0]} to {bounds[1]}, but there are {n} entries"
    return ValueError(f"{_begin(place)}: {goes}. {_AGAIN}")


def check_lengths(X, n_major, name):
    """Raise a ValueError unless lengths and start of the arrays of a compressed matrix fit."""
    _check_integers(X.indptr, f"{name}.indptr")
    _check_integers(X.indices, f"{name}.indices")
    if len(X.indptr) != n_major + 1:
        raise ValueError(
            f"{name}.indptr has {len(X.indptr)} numbers; expected {n_major + 1}. {_AGAIN}"
        )
    if X.indptr[0] != 0:
        raise ValueError(f"{name}.indptr starts at {X.indptr[0]}, not at 0. {_AGAIN}")
    if np.shape(X.data)[:1] != X.indices.shape:
        raise ValueError(
            f"{name}.data has the shape {np.shape(X.data)}, but there are {len(X.indices)} "
            f"indices. {_AGAIN}"
        )


def _check_integers(array, name):
    if not (isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iu"):
        raise ValueError(f"{name} is not a 1-D array of integers. {_AGAIN}")


def _check_coo(X, name, place):
    _check_integers(X.row, f"{name}.row")
    _check_integers(X.col, f"{name}.col")
    if not len(X.row) == len(X.col) == len(X.data):
        raise ValueError(
            f"{name} has {len(X.data)} values, but {len(X.row)} rows and {len(X.col)} columns "
            f"for them. {_AGAIN}"
        )
    n_rows, n_columns = X.shape
    wrong = _first_outside(X.row, n_rows)
    if wrong is not None:
        raise ValueError(
            f"Entry {wrong} of {name}: {_outside('row', X.row[wrong], n_rows)}. {_AGAIN}"
        )
    wrong = _first_outside(X.col, n_columns)
    if wrong is not None:
        where = _begin(place(X.row[wrong]))
        raise ValueError(f"{where}: {_outside('column', X.col[wrong], n_columns)}. {_AGAIN}")


def _check_lil(X, name, place):
    if not len(X.rows) == len(X.data) == X.shape[0]:
        raise ValueError(f"{name} has {len(X.rows)} lists for {X.shape[0]} rows. {_AGAIN}")
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(columns) != len(values):
            counts = f"{len(values)} values, but {len(columns)} columns for them"
            raise ValueError(f"{_begin(place(i))}: {name} has {counts}. {_AGAIN}")


def _check_dia(X, name, place):
    if X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1]:
        raise ValueError(
            f"{name}.data has the shape {X.data.shape}, but there are {len(X.offsets)} "
            f"diagonals. {_AGAIN}"
        )


def _first_outside(numbers, size):
    """Position of the first of some integers that is not in ``range(size)``; None if all are."""
    signed = numbers.dtype
    # A negative number is a large one without its sign, and one pass finds both kinds.
    numbers = numbers.view(np.dtype(f"{signed.byteorder}u{signed.itemsize}"))
    size = min(size, int(np.iinfo(signed).max) + 1)
    if len(numbers) == 0 or int(numbers.max()) < size:
        return None
    return int((numbers >= size).argmax())


def _outside(unit, number, size):
    return f"{unit} {number} is not one of the {size}, which are numbered from 0"


def _begin(place):
    return place[0].upper() + place[1:]


_CHECKS = {
    "csr": _check_csr,
    "csc": _check_csc,
    "bsr": _check_bsr,
    "coo": _check_coo,
    "lil": _check_lil,
    "dia": _check_dia,
}
