"""A block that is a matrix, such as hidden states of a transformer."""

import numpy as np

from skstruct.blocks.protocol import (
    Block,
    add_fixed_product,
    add_product,
    add_transposed,
    are_values,
)
from skstruct.matrices import read_only


class DenseBlock(Block):
    """A block with a row of its own for each token.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns), float32 or float64
        The values, which are not copied.
    factor : float, default=1.0
        Factor of all values.
    """

    def __init__(self, matrix, factor=1.0):
        self.matrix, self.factor = read_only(matrix), float(factor)
        self.n_rows, self.n_columns = matrix.shape

    @property
    def dtype(self):
        """Type of the values."""
        return self.matrix.dtype

    @property
    def nbytes(self):
        """Bytes of the matrix."""
        return self.matrix.nbytes

    def take(self, rows):
        """Block of some rows."""
        self.check()
        return DenseBlock(self.matrix[rows], self.factor)

    def times(self, factor):
        """Block of multiplied values."""
        return DenseBlock(self.matrix, self.factor * factor)

    def toarray(self):
        """The matrix."""
        return self.matrix if self.factor == 1 else self.matrix * self.dtype.type(self.factor)

    def values(self):
        """The matrix."""
        return self.matrix

    def row_numbers(self):
        """A row for each token."""
        return np.arange(self.n_rows, dtype=np.int32)[:, None]

    def place_of(self, entry):
        """Row and column of an entry."""
        return divmod(int(entry), self.n_columns)

    def check(self):
        """Raise a ValueError for a matrix of another shape or type."""
        if not are_values(self.matrix):
            raise self._other_type()
        if self.matrix.shape != self.shape:
            raise self._misfit(self.matrix.shape)

    @property
    def n_vectors(self):
        """Number of rows that are not zero."""
        return int(np.count_nonzero(self.matrix.any(axis=1)))

    def count(self):
        """Size of the matrix."""
        return self.matrix.size

    def add_scores(self, weights, out, run, *, precise=True):
        """A product."""
        add_product(self.matrix, weights, self.factor, out, run, precise)

    def add_fixed_scores(self, weights, out):
        """A product in a fixed order."""
        add_fixed_product(self.matrix, weights, self.factor, out)

    def add_gradient(self, residual, out, run, *, precise=True):
        """A product."""
        add_transposed(self.matrix, residual, self.factor, out, run, precise)

    def add_curvature(self, variance, out, run, *, precise=True):
        """A product of squares."""
        add_transposed(self.matrix, variance, self.factor**2, out, run, precise, square=True)

    def pack(self):
        """The arguments."""
        return "dense", self.factor, self.matrix
