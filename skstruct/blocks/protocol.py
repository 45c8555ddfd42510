"""What a block does, and the products that all of them are made of.

Products in fits are BLAS's, in panels of a fixed size that are added in a fixed order. Panels in
single precision are multiplied so, and added in double precision, unless a product has to be
precise. BLAS rounds a row alone otherwise than in a matrix, so predictions use a kernel of their
own, and one sentence has the scores that it has in a batch, to the last bit.
"""

from abc import ABC, abstractmethod
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise

import numpy as np
from threadpoolctl import ThreadpoolController

from skstruct.compiled.jit import lean_jit
from skstruct.compiled.lanes import LANES, TOGETHER, add_wide_terms
from skstruct.matrices import read_only

# Rows of a panel. In double precision with 512 numbers a row, they fit the outer caches.
PANEL = 512
# Values and factors whose products with usual weights are far from the limits of single precision.
_SMALL, _LARGE, _LARGEST_FACTOR = 1e-6, 1e6, 1e30
# Other subclasses of arrays have methods of their own, and kernels take native numbers.
_ARRAYS = np.ndarray, np.memmap
_FLOATS = np.dtype(np.float32), np.dtype(np.float64)


class Block(ABC):
    """Consecutive columns of a batch, with a number in each for every token.

    Attributes
    ----------
    factor : float
        Factor of all values.
    n_rows, n_columns : int
        Shape of the matrix that the block stands for.
    """

    @property
    @abstractmethod
    def dtype(self):
        """Type of the values, float32 or float64."""

    @property
    @abstractmethod
    def nbytes(self):
        """Bytes that the block takes."""

    @property
    def shape(self):
        """``(n_rows, n_columns)``."""
        return self.n_rows, self.n_columns

    @abstractmethod
    def take(self, rows):
        """Block of some rows, an index array or a slice, with no more than these need."""

    @abstractmethod
    def times(self, factor):
        """Block whose values are multiplied by a number; its arrays are shared."""

    @abstractmethod
    def toarray(self):
        """The matrix, of shape (n_rows, n_columns)."""

    @abstractmethod
    def values(self):
        """Array with all values without the factor, for checks."""

    @abstractmethod
    def row_numbers(self):
        """Rows of ``values()`` that each token has side by side, int32, -1 for zeros.

        Of shape (n_rows, n_places).
        """

    @abstractmethod
    def place_of(self, entry):
        """Row and column of an entry of ``values()``, of which a token has that value."""

    @abstractmethod
    def check(self):
        """Raise a ValueError if kernels could read out of bounds: its arrays may have changed."""

    def _misfit(self, shape):
        """Error for arrays of another shape."""
        return ValueError(
            f"the arrays of a block of {self.n_rows} x {self.n_columns} numbers have the shape "
            f"{shape}. Make the batch again."
        )

    def _other_type(self):
        """Error for an array of another type or number of dimensions."""
        return ValueError(
            f"an array of a block of {self.n_rows} x {self.n_columns} numbers has another type or "
            "number of dimensions than before. Make the batch again."
        )

    @abstractmethod
    def count(self):
        """Number of values that tokens have."""

    @property
    @abstractmethod
    def n_vectors(self):
        """Number of vectors that tokens have; zeros are none."""

    def squares(self):
        """Squared norm of the values of each token."""
        values = self.values()
        of_rows = np.einsum("ij,ij->i", values, values, dtype=np.float64)
        # The last place stands for -1.
        return self.factor**2 * np.append(of_rows, 0.0)[self.row_numbers()].sum(axis=1)

    def sum_of_squares(self):
        """Sum of the squares of the values of all tokens."""
        return float(self.squares().sum())

    def may_be_single(self):
        """True if products in single precision neither overflow nor vanish."""
        values = self.values()
        factor = abs(self.factor)
        largest = factor * float(max(values.max(initial=0.0), -values.min(initial=0.0)))
        return factor <= _LARGEST_FACTOR and _SMALL <= largest <= _LARGE

    @abstractmethod
    def add_scores(self, weights, out, run, *, precise=True):
        """Add ``block @ weights`` to `out`, of shape (n_rows, n_labels), by BLAS.

        ``run`` comes from `skstruct.utils.parallel.range_runner`. Unless the product has to be
        ``precise``, it takes the precision of the block.
        """

    @abstractmethod
    def add_fixed_scores(self, weights, out):
        """Add the same in a fixed order, whatever the number of rows."""

    @abstractmethod
    def add_gradient(self, residual, out, run, *, precise=True):
        """Add ``block.T @ residual`` to `out`, of shape (n_columns, n_labels), by BLAS."""

    @abstractmethod
    def add_curvature(self, variance, out, run, *, precise=True):
        """Add ``(block ** 2).T @ variance`` to `out`, of shape (n_columns, n_labels), by BLAS."""

    @abstractmethod
    def pack(self):
        """Numbers and arrays to store."""

    def __reduce__(self):
        # Made anew: arrays from another process may be writable, for which other kernels would be
        # compiled.
        _, factor, *arrays = self.pack()
        return type(self), (*arrays, factor)

    def __repr__(self):
        return f"{type(self).__name__}({self.n_rows} x {self.n_columns})"


def _groups(n, n_groups):
    """Slices of up to `PANEL` consecutive numbers, in a group for each thread."""
    panels = [slice(start, min(start + PANEL, n)) for start in range(0, n, PANEL)]
    cuts = np.linspace(0, len(panels), n_groups + 1).astype(int)
    return [panels[first:last] for first, last in pairwise(cuts)]


def add_product(matrix, weights, factor, out, run, precise):
    """Add ``factor * matrix @ weights`` to `out`, panel by panel."""
    dtype = _type_of_product(matrix, precise)
    weights = (factor * weights).astype(dtype, copy=False)

    def add(panels):
        buffer = np.empty((PANEL, matrix.shape[1]), dtype)
        for rows in panels:
            out[rows] += _as_type(matrix[rows], buffer) @ weights

    run.each(add, _groups(len(matrix), run.n_ranges))


def add_transposed(matrix, residual, factor, out, run, precise, *, square=False):
    """Add ``factor * matrix.T @ residual`` to `out`, or with the squares of the matrix."""
    dtype = _type_of_product(matrix, precise)

    def total(panels):
        buffer, found = np.empty((PANEL, matrix.shape[1]), dtype), np.zeros(out.shape)
        for rows in panels:
            panel = _as_type(matrix[rows], buffer)
            factors = np.square(panel) if square else panel
            found += factors.T @ residual[rows].astype(dtype, copy=False)
        return found

    out += factor * sum(run.each(total, _groups(len(matrix), run.n_ranges)))


def _type_of_product(matrix, precise):
    return np.dtype(np.float64) if precise else matrix.dtype


def _as_type(panel, buffer):
    """A panel in the type of the buffer, which it may be written into."""
    if panel.dtype == buffer.dtype:
        return panel
    buffer[: len(panel)] = panel
    return buffer[: len(panel)]


def are_values(array):
    """True for a matrix of the types that blocks have."""
    return type(array) in _ARRAYS and array.ndim == 2 and array.dtype in _FLOATS


def are_row_numbers(array):
    """True for a matrix of numbers of rows."""
    return type(array) in _ARRAYS and array.ndim == 2 and array.dtype == np.int32


# Rows that are multiplied while they are in the caches, and columns whose weights stay in the
# innermost one meanwhile.
_ROWS, _COLUMNS = 64, 128


def add_fixed_product(matrix, weights, factor, out):
    """Add ``factor * matrix @ weights`` to ``out``, each row in the order of the columns.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns), float32 or float64
    weights : ndarray of shape (n_places * n_columns, n_labels)
        One matrix of weights after the other.
    factor : float
    out : ndarray of shape (n_rows, n_places * n_labels)
        Products with all of them side by side.
    """
    n_labels, weights = weights.shape[1], np.ascontiguousarray(weights, np.float64)
    if n_labels < LANES:
        wide = np.zeros((len(weights), LANES))
        wide[:, :n_labels], weights = weights, wide
    size = min(len(matrix) + TOGETHER - 1, _ROWS)
    work = np.empty((size, matrix.shape[1])), np.empty((size, weights.shape[1]))
    add_rows_in_order(matrix, read_only(weights), n_labels, factor, *work, out)


@lean_jit
def add_rows_in_order(matrix, weights, n_labels, factor, panel, total, out):
    """Do the work of `add_fixed_product` with at least `LANES` columns of weights.

    ``panel`` and ``total`` are workspace for a multiple of `TOGETHER` rows, or for all of them.
    """
    n_columns, size = matrix.shape[1], panel.shape[0]
    for first in range(0, matrix.shape[0], size):
        n = min(size, matrix.shape[0] - first)
        for r in range(n):
            for f in range(n_columns):
                panel[r, f] = matrix[first + r, f]
        for place in range(out.shape[1] // n_labels):
            for r in range(size):
                for j in range(total.shape[1]):
                    total[r, j] = 0.0
            for f in range(0, n_columns, _COLUMNS):
                end = min(f + _COLUMNS, n_columns)
                for r in range(0, n, TOGETHER):
                    add_wide_terms(panel, r, weights, place * n_columns, f, end, total)
            for r in range(n):
                for j in range(n_labels):
                    out[first + r, place * n_labels + j] += factor * total[r, j]


@lru_cache
def _controller():
    return ThreadpoolController()


@contextmanager
def one_blas_thread():
    """Context in which BLAS runs one thread in each of ours, and so rounds alike in all of them."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
