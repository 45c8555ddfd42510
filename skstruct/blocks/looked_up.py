"""A block of vectors that tokens share: a table of distinct ones, and the numbers of its rows."""

import numpy as np

from skstruct.blocks.protocol import (
    Block,
    add_fixed_product,
    add_product,
    add_transposed,
    are_row_numbers,
    are_values,
)
from skstruct.compiled.jit import lean_jit
from skstruct.matrices import read_only


class LookedUpBlock(Block):
    """A block whose tokens look up their vectors in a table.

    Parameters
    ----------
    table : ndarray of shape (n_vectors, n_dimensions), float32 or float64
        Distinct vectors, which are not copied.
    numbers : ndarray of shape (n_rows, n_places), int32
        For each token the rows of the table that its columns are, side by side; -1 for zeros.
    factor : float, default=1.0
        Factor of all values.
    """

    def __init__(self, table, numbers, factor=1.0):
        self.table, self.factor = read_only(table), float(factor)
        self.numbers = np.ascontiguousarray(numbers, np.int32)
        self.n_rows, self.n_columns = len(numbers), numbers.shape[1] * table.shape[1]

    @property
    def dtype(self):
        """Type of the values."""
        return self.table.dtype

    @property
    def nbytes(self):
        """Bytes of table and numbers."""
        return self.table.nbytes + self.numbers.nbytes

    def take(self, rows):
        """Block of some rows, with the vectors that they use."""
        self.check()
        numbers = self.numbers[rows]
        used = np.zeros(len(self.table) + 1, bool)
        used[numbers] = True
        # The last place stands for -1.
        used[-1] = False
        rank = np.append(np.cumsum(used[:-1]) - 1, -1).astype(np.int32)
        table = self.table if used[:-1].all() else self.table[used[:-1]]
        return LookedUpBlock(table, rank[numbers], self.factor)

    def times(self, factor):
        """Block of multiplied values."""
        return LookedUpBlock(self.table, self.numbers, self.factor * factor)

    def toarray(self):
        """The matrix."""
        self.check()
        scaled = self.table if self.factor == 1 else self.table * self.dtype.type(self.factor)
        table = np.concatenate([scaled, np.zeros((1, scaled.shape[1]), self.dtype)])
        return table[self.numbers].reshape(self.shape)

    def values(self):
        """The table."""
        return self.table

    def row_numbers(self):
        """The numbers."""
        return self.numbers

    def place_of(self, entry):
        """Row of the first token with a vector, and the column of its entry."""
        vector, dimension = divmod(int(entry), self.table.shape[1])
        found = np.argwhere(self.numbers == vector)
        row, place = found[0] if len(found) else (0, 0)
        return int(row), int(place) * self.table.shape[1] + dimension

    def check(self):
        """Raise a ValueError for other arrays, and numbers of rows that the table does not have."""
        if not (are_values(self.table) and are_row_numbers(self.numbers)):
            raise self._other_type()
        numbers, (n_vectors, width) = self.numbers, self.table.shape
        if (len(numbers), numbers.shape[1] * width) != self.shape:
            raise self._misfit((len(numbers), numbers.shape[1] * width))
        if numbers.min(initial=0) >= -1 and numbers.max(initial=-1) < n_vectors:
            return
        row, place = np.argwhere((numbers < -1) | (numbers >= n_vectors))[0]
        raise ValueError(
            f"row {row} of a looked-up block has the number {numbers[row, place]}, but its table "
            f"has {n_vectors} rows. Make the batch again."
        )

    @property
    def n_vectors(self):
        """Vectors of all tokens and places that have one."""
        return int(np.count_nonzero(self.numbers >= 0))

    def count(self):
        """Size of the matrix but for zeros."""
        return self.n_vectors * self.table.shape[1]

    def add_scores(self, weights, out, run, *, precise=True):
        """One product with the table, whose rows are gathered."""
        products = np.zeros((len(self.table), self.numbers.shape[1] * weights.shape[1]))
        add_product(self.table, self._by_dimension(weights), self.factor, products, run, precise)
        gather(products, read_only(self.numbers), out)

    def add_fixed_scores(self, weights, out):
        """The same in a fixed order."""
        products = np.zeros((len(self.table), self.numbers.shape[1] * weights.shape[1]))
        add_fixed_product(self.table, weights, self.factor, products)
        gather(products, read_only(self.numbers), out)

    def add_gradient(self, residual, out, run, *, precise=True):
        """Sums by number, then one product with the table."""
        self._add_transposed(residual, self.factor, out, run, precise, square=False)

    def add_curvature(self, variance, out, run, *, precise=True):
        """Sums by number, then one product with the squares."""
        self._add_transposed(variance, self.factor**2, out, run, precise, square=True)

    def _add_transposed(self, residual, factor, out, run, precise, *, square):
        n_places, n_labels = self.numbers.shape[1], residual.shape[1]
        sums = np.zeros((len(self.table), n_places * n_labels))
        sum_by_number(residual, read_only(self.numbers), sums)
        total = np.zeros((self.table.shape[1], n_places * n_labels))
        add_transposed(self.table, sums, factor, total, run, precise, square=square)
        by_place = total.reshape(-1, n_places, n_labels).transpose(1, 0, 2)
        out += by_place.reshape(out.shape)

    def _by_dimension(self, weights):
        """Weights of all places side by side, of shape (n_dimensions, n_places * n_labels)."""
        n_places, n_labels = self.numbers.shape[1], weights.shape[1]
        by_place = weights.reshape(n_places, -1, n_labels).transpose(1, 0, 2)
        return by_place.reshape(self.table.shape[1], n_places * n_labels)

    def __repr__(self):
        return f"{super().__repr__()[:-1]}, {len(self.table)} vectors)"

    def pack(self):
        """The arguments."""
        return "looked up", self.factor, self.table, self.numbers


def stack_looked_up(blocks):
    """Stack looked-up blocks of the same columns and factor; equal vectors are kept once."""
    table = np.ascontiguousarray(np.concatenate([block.table for block in blocks]))
    starts = np.cumsum([0, *(len(block.table) for block in blocks)])
    whole = table.view(np.dtype((np.void, table.strides[0]))).ravel()
    _, first, rank = np.unique(whole, return_index=True, return_inverse=True)
    # In the order of their first appearance.
    order = np.argsort(first)
    new = np.empty(len(order) + 1, np.int32)
    new[order], new[-1] = np.arange(len(order)), -1
    rank = np.append(rank.ravel(), len(order))
    numbers = [
        new[rank[np.where(block.numbers < 0, len(table), block.numbers + start)]]
        for block, start in zip(blocks, starts[:-1], strict=True)
    ]
    return LookedUpBlock(table[first[order]], np.concatenate(numbers), blocks[0].factor)


@lean_jit
def gather(products, numbers, out):
    """Add to each token the products of its vectors, which lie side by side by place."""
    n_labels = out.shape[1]
    for t in range(numbers.shape[0]):
        for place in range(numbers.shape[1]):
            n, start = numbers[t, place], place * n_labels
            if n >= 0:
                for j in range(n_labels):
                    out[t, j] += products[n, start + j]


@lean_jit
def sum_by_number(residual, numbers, sums):
    """Add the residuals of tokens to the sums of their vectors."""
    n_labels = residual.shape[1]
    for t in range(numbers.shape[0]):
        for place in range(numbers.shape[1]):
            n, start = numbers[t, place], place * n_labels
            if n >= 0:
                for j in range(n_labels):
                    sums[n, start + j] += residual[t, j]
