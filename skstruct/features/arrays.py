"""Features whose values are arrays of numbers, such as embeddings: a column for each place."""

from __future__ import annotations

from array import array

import numpy as np

__all__ = ["ArrayValues", "is_vector"]


def is_vector(value):
    """Whether a feature's value is an array of numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.ndim > 0


class ArrayValues:
    """The arrays of the tokens of a batch, kept as bytes until all are read.

    Parameters
    ----------
    lengths : dict of str to int
        Length of the arrays of each feature, as far as it is known; new features are added.
    limit : float
        Largest absolute value that is accepted.
    """

    def __init__(self, lengths, limit):
        self.lengths = lengths
        self._limit = limit
        self._rows = {}
        self._values = {}

    def __bool__(self):
        return bool(self._rows)

    def add(self, row, name, vector):
        """Take the array of a token, which is number `row` of all."""
        if vector.ndim != 1:
            raise ValueError(
                f"feature {name!r} is an array of shape {vector.shape}; expected one axis."
            )
        length = self.lengths.setdefault(name, len(vector))
        if len(vector) != length:
            raise ValueError(
                f"feature {name!r} is an array of {len(vector)} numbers, and elsewhere one of "
                f"{length}."
            )
        self._rows.setdefault(name, array("q")).append(row)
        # Bytes, because only they grow in place.
        self._values.setdefault(name, bytearray()).extend(
            np.ascontiguousarray(vector, np.float64).data.cast("B")
        )

    def blocks(self, n_rows, find):
        """Arrays of CSR matrices, one for each feature.

        Parameters
        ----------
        n_rows : int
            Number of tokens.
        find : callable
            Iterates over the columns of names.

        Yields
        ------
        data, indices, indptr, shift
            As `skstruct.utils.sparse.merge_rows` takes them.
        """
        for name, rows in self._rows.items():
            length, rows = self.lengths[name], np.frombuffer(rows, np.int64)
            names = [f"{name}:{place}" for place in range(length)]
            columns = np.fromiter(find(names), np.int32, length)
            values = np.frombuffer(self._values[name], np.float64)
            counts = length * np.bincount(rows, minlength=n_rows)
            yield values, np.tile(columns, len(rows)), np.concatenate([[0], np.cumsum(counts)]), 0

    def first_too_large(self):
        """Row, name and value of the first one that is not finite or too large, or None."""
        for name, rows in self._rows.items():
            values = np.frombuffer(self._values[name], np.float64)
            wrong = np.flatnonzero(~(np.abs(values) <= self._limit))
            if len(wrong):
                return rows[wrong[0] // self.lengths[name]], name, values[wrong[0]]
        return None
