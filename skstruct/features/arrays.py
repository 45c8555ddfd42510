"""Features whose values are arrays of numbers, such as embeddings: one column per position."""

from __future__ import annotations

from array import array

import numpy as np

__all__ = ["ArrayValues", "is_vector"]


def is_vector(value):
    """Return True if the value of a feature is an array of numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.ndim > 0


class ArrayValues:
    """Array-valued features of a batch, collected as bytes until all tokens are read.

    Parameters
    ----------
    lengths : dict of str to int
        Length of the arrays of each known feature; new features are added.
    limit : float
        Largest absolute value allowed.
    """

    def __init__(self, lengths, limit):
        self.lengths = lengths
        self._limit = limit
        self._rows = {}
        self._values = {}

    def __bool__(self):
        return bool(self._rows)

    def add(self, row, name, vector):
        """Add the array of a token; `row` is the number of the token in the batch."""
        vector = np.array(vector, np.float64, order="C")
        if vector.ndim != 1:
            raise ValueError(
                f"feature {name!r} is an array of shape {vector.shape}; expected a 1-D array."
            )
        length = self.lengths.setdefault(name, len(vector))
        if len(vector) != length:
            raise ValueError(
                f"feature {name!r} is an array of {len(vector)} numbers, but of {length} in the "
                "tokens before."
            )
        self._rows.setdefault(name, array("q")).append(row)
        # A bytearray grows in place.
        self._values.setdefault(name, bytearray()).extend(vector.data.cast("B"))

    def blocks(self, n_rows, find):
        """Yield the arrays of CSR matrices, one for each feature.

        Parameters
        ----------
        n_rows : int
            Number of tokens.
        find : callable
            Function from names to an iterator over their columns.

        Yields
        ------
        data, indices, indptr, shift
            In the format of `skstruct.utils.sparse.merge_rows`.
        """
        for name, rows in self._rows.items():
            length, rows = self.lengths[name], np.frombuffer(rows, np.int64)
            names = [f"{name}:{place}" for place in range(length)]
            columns = np.fromiter(find(names), np.int32, length)
            values = np.frombuffer(self._values[name], np.float64)
            counts = length * np.bincount(rows, minlength=n_rows)
            yield values, np.tile(columns, len(rows)), np.concatenate([[0], np.cumsum(counts)]), 0

    def first_too_large(self):
        """Row, feature and value of the first NaN or value above the limit; None without one."""
        for name, rows in self._rows.items():
            values = np.frombuffer(self._values[name], np.float64)
            wrong = np.flatnonzero(~(np.abs(values) <= self._limit))
            if len(wrong):
                return rows[wrong[0] // self.lengths[name]], name, values[wrong[0]]
        return None
