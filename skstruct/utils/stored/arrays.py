"""Declarations of stored arrays: numbers, labels, names and columns."""

from __future__ import annotations

from numbers import Real

import numpy as np
import scipy.sparse as sp

from skstruct.utils.memory import require_memory
from skstruct.utils.stored.declared import Declaration
from skstruct.utils.stored.packing import (
    fits_shape,
    pack_strings,
    pack_zeros,
    unpack_strings,
    unpack_zeros,
)

__all__ = ["MOST_LABELS", "REAL", "Array", "Columns", "Labels", "Objects", "check_matrix"]

# Real numbers of any type that is no wider than 64 bits.
REAL = "real"
# What numbers of labels have room for in the layout of weights.
MOST_LABELS = (1 << 15) - 1
_LAST_CODE_POINT = 0x10FFFF


class Array(Declaration):
    """Array of numbers, none of which is NaN.

    Parameters
    ----------
    dtype : dtype or REAL
        Kernels are compiled for one type of each array, in the order of C, and arrays come in this
        order. With `REAL`, any real numbers will do, in any order: whoever reads them converts
        them, and users may assign others.
    shape : tuple
        Of sizes.
    least, below : int or size, default=None
        Least number, and the size that all are less than. By default, any finite number.
    forbids : bool, default=False
        Minus infinity is a weight as well.
    sparse : bool, default=False
        It may be a sparse matrix, which fits into memory as an array.
    """

    def __init__(self, dtype, shape, *, least=None, below=None, forbids=False, sparse=False):
        self._dtype, self._shape = dtype, shape
        self._least, self._below, self._forbids, self._sparse = least, below, forbids, sparse

    def write(self, value):
        """Array without its zeros, or sparse matrix in a form that can be checked."""
        return value.tocsr() if sp.issparse(value) else pack_zeros(value)

    def read(self, value, what, size):
        """Array of the right type, shape and range."""
        expected = tuple(map(size, self._shape))
        array = unpack_zeros(value, expected)
        if self._sparse and sp.issparse(array):
            numbers = check_matrix(array).data
            needs = 8.0 * np.prod(expected, dtype=float)
            require_memory(needs, f"The weights of {what}", "Load it where there is more.")
        elif isinstance(array, np.ndarray):
            # Not a subclass, whose arithmetic may be another one.
            array = numbers = np.asarray(array)
        else:
            raise ValueError(f"{what} is not an array of numbers.")
        self._check_dtype(numbers.dtype, what)
        if not fits_shape(array.shape, expected):
            raise ValueError(f"{what} has the shape {array.shape} and not {expected}.")
        self._check_values(numbers, what, size)
        return array if self._dtype is REAL else np.ascontiguousarray(array)

    def _check_dtype(self, dtype, what):
        if self._dtype is REAL:
            fits = dtype.kind in "fiu" and dtype.itemsize <= 8
        else:
            fits = dtype == self._dtype
        if not fits:
            wanted = "real numbers" if self._dtype is REAL else np.dtype(self._dtype)
            raise ValueError(f"{what} is an array of {dtype} and not of {wanted}.")

    def _check_values(self, numbers, what, size):
        with np.errstate(over="ignore", invalid="ignore"):
            # If this is finite, all are, which takes no room to find out.
            total = numbers.sum(dtype=np.float64)
        if not np.isfinite(total) and np.isnan(numbers).any():
            raise ValueError(f"a number of {what} is NaN.")
        if not np.isfinite(total) and (np.isposinf if self._forbids else np.isinf)(numbers).any():
            raise ValueError(f"a number of {what} is infinite.")
        least, below = self._least, size(self._below)
        if numbers.size and least is not None and numbers.min() < least:
            raise ValueError(f"{what} has the number {numbers.min()}, which is less than {least}.")
        if numbers.size and below is not None and numbers.max() >= below:
            raise ValueError(f"{what} has the number {numbers.max()}, but {below} are the most.")


class Objects(Declaration):
    """One-dimensional array of any objects, such as the names of columns.

    Parameters
    ----------
    length : size
    """

    def __init__(self, length):
        self._length = length

    write = staticmethod(pack_strings)

    def read(self, value, what, size):
        """Array of the right length."""
        array, expected = unpack_strings(value), (size(self._length),)
        if not isinstance(array, np.ndarray) or array.dtype != object or array.shape != expected:
            raise ValueError(f"{what} is not an array of {expected[0]} names.")
        return np.asarray(array)


class Labels(Declaration):
    """Distinct labels, all strings or all numbers."""

    write = staticmethod(pack_strings)

    def read(self, value, what, size):
        """Array of labels."""
        labels = unpack_strings(value)
        if not isinstance(labels, np.ndarray) or labels.ndim != 1:
            raise ValueError(f"{what} is not an array of labels.")
        if not 1 <= len(labels) <= MOST_LABELS:
            raise ValueError(f"{what} has {len(labels)} labels.")
        if labels.dtype.kind == "U":
            # numpy makes strings of them without a check.
            points = np.ascontiguousarray(labels).view(np.uint32)
            if not labels.dtype.isnative or points.max() > _LAST_CODE_POINT:
                raise ValueError(f"{what} has characters that do not exist.")
        each = labels.tolist()
        kind = str if isinstance(each[0], str) else Real
        if not all(isinstance(label, kind) and label == label for label in each):
            raise ValueError(f"{what} has labels that are neither all strings nor all numbers.")
        if len(set(each)) < len(each):
            raise ValueError(f"two labels of {what} are the same.")
        return np.asarray(labels)


class Columns(Declaration):
    """Dict of equally long columns of numbers, such as a history.

    Parameters
    ----------
    names : sequence of str, default=()
        Columns that there are in any case.
    """

    def __init__(self, *names):
        self._names = names

    def read(self, value, what, size):
        """Columns of numbers."""
        if not isinstance(value, dict) or not set(self._names) <= value.keys():
            raise ValueError(f"{what} lacks columns.")
        for name, column in value.items():
            is_column = isinstance(column, np.ndarray) and column.ndim == 1
            if not is_column or column.dtype.kind not in "biuf" or not isinstance(name, str):
                raise ValueError(f"the column {name!r} of {what} is not an array of numbers.")
        if len(set(map(len, value.values()))) > 1:
            raise ValueError(f"the columns of {what} differ in length.")
        return value


def check_matrix(X):
    """Check that the indices of a sparse matrix are those of columns that there are."""
    if sp.issparse(X):
        X.check_format(full_check=True)
    return X
