"""Tokens of a batch with blocks: sparse columns and blocks side by side."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from skstruct.blocks.dense import DenseBlock
from skstruct.blocks.looked_up import LookedUpBlock, stack_looked_up
from skstruct.blocks.protocol import are_row_numbers, are_values
from skstruct.chain.scores import Rows, TransitionRows, linear_scores
from skstruct.compiled.jit import lean_jit
from skstruct.matrices import as_csr, merge_rows, read_only

# Dense matrices with fewer columns, or a smaller share of numbers that are not zero, are learnt
# from as sparse ones.
LEAST_COLUMNS, LEAST_DENSE = 32, 0.5


class Placed(NamedTuple):
    """A block, and the number of its first column in the batch."""

    start: int
    block: object

    @property
    def columns(self):
        """Columns of the batch that the block has."""
        return slice(self.start, self.start + self.block.n_columns)

    def check(self, n_rows, n_columns):
        """Raise a ValueError unless the block fits a batch of this shape.

        Its arrays may have been changed since the batch was made.
        """
        self.block.check()
        fits = 0 <= self.start <= self.columns.stop <= n_columns
        if self.block.n_rows != n_rows or not fits:
            raise ValueError(
                f"a block of {self.block.n_rows} x {self.block.n_columns} numbers that starts at "
                f"column {self.start} does not fit a batch of {n_rows} x {n_columns}. Make the "
                "batch again."
            )


class BlockRows(NamedTuple):
    """The tokens of a batch with blocks."""

    tokens: object  # Rows or TransitionRows of the other columns, numbered as in the batch
    placed: tuple  # of Placed

    def sets(self):
        """Rows of each set of sparse features."""
        return self.tokens.sets()

    def take(self, kept, take_rows):
        """Select rows by their numbers; ``take_rows(rows, kept)`` does so for sparse ones."""
        placed = tuple(Placed(start, block.take(kept)) for start, block in self.placed)
        return BlockRows(take_rows(self.tokens, kept), placed)


def moved(placed, rank):
    """Blocks whose columns have new numbers, ``rank[f]`` for ``f``; they stay side by side."""
    return tuple(
        Placed(int(rank[start]) if block.n_columns else 0, block) for start, block in placed
    )


def without_blocks(rows):
    """Rows, with the columns of blocks as sparse ones."""
    if not rows.placed:
        return rows
    first, *more = rows.tokens.sets()
    data = first.data if first.data.size else np.ones(len(first.indices))
    parts = [(data, first.indices, first.indptr, 0)]
    n_columns = 1 + max(int(first.indices.max(initial=0)), *(p.columns.stop for p in rows.placed))
    for start, block in rows.placed:
        X = as_csr(block.toarray())
        parts.append((X.data, X.indices, X.indptr, start))
    data, indices, indptr = merge_rows(parts, np.float64, n_columns)
    X = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_columns))
    X.sort_indices()
    merged = Rows(X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32), X.data)
    return read_only(TransitionRows(*merged, *more) if more else merged)


def scored(rows, chain):
    """Rows and weights for decoding, with the scores of labels in place of blocks.

    The features of a token are then its scores, and their weights the identity. So all programmes
    on chains run as on sparse columns.

    Parameters
    ----------
    rows : Rows, TransitionRows or BlockRows
    chain : Chain or any other
        The weights.

    Returns
    -------
    rows : Rows or TransitionRows
    chain : Chain or any other
    """
    if not rows.placed:
        return rows, chain
    first, *more = rows.tokens.sets()
    found = rows_of_scores(label_scores(first, rows.placed, chain.weights))
    rows = TransitionRows(*found, *more) if more else found
    return read_only(rows), chain._replace(weights=read_only(np.eye(len(chain.intercept))))


def label_scores(first, placed, weights):
    """Scores of the labels of each token by sparse columns and blocks, in a fixed order.

    The blocks have been checked by `skstruct.input.scale.check_blocks`.
    """
    n_labels = weights.shape[1]
    scores = np.empty((len(first.indptr) - 1, n_labels))
    write_scores(first, weights, np.zeros(n_labels), scores)
    for start, block in placed:
        block.add_fixed_scores(weights[start : start + block.n_columns], scores)
    return scores


def rows_of_scores(scores):
    """Rows whose features are the labels, and their values scores."""
    n_rows, n_labels = scores.shape
    labels = np.empty((n_rows, n_labels), np.int32)
    labels[:] = np.arange(n_labels)
    return Rows(np.arange(n_rows + 1) * n_labels, labels.ravel(), scores.ravel())


@lean_jit
def write_scores(rows, weights, bias, out):
    """Write ``rows @ weights + bias`` for all tokens."""
    linear_scores(rows, 0, rows.indptr.shape[0] - 1, weights, bias, out)


# Blocks of batches


def stack_columns(batches):
    """Parts of the columns of batches side by side.

    Parameters
    ----------
    batches : list of (ndarray or csr_matrix or None, tuple of Placed, int)
        Matrix of the columns that are in no block, blocks and number of columns.

    Returns
    -------
    sparse : csr_matrix or None
        All other columns, numbered as in the result.
    placed : tuple of Placed
    """
    placed, parts, width = [], [], 0
    for matrix, blocks, n_columns in batches:
        placed += [Placed(width + start, block) for start, block in blocks]
        if sp.issparse(matrix):
            parts.append((matrix.data, matrix.indices, matrix.indptr, width, matrix))
        width += n_columns
    if not parts:
        return None, tuple(placed)
    if len(parts) == 1:
        data, indices, indptr, shift, _ = parts[0]
        indices = indices if not shift else indices + indices.dtype.type(shift)
        arrays = data, indices, indptr
    else:
        arrays = merge_rows(
            [part[:4] for part in parts], np.result_type(*(p[0] for p in parts)), width
        )
    return sp.csr_matrix(arrays, shape=(len(parts[0][2]) - 1, width)), tuple(placed)


def to_matrix(sparse, placed, n_columns):
    """Matrix of all columns: dense if all belong to blocks, else CSR."""
    try:
        dtype = np.result_type(
            *(p.block.dtype for p in placed), *([] if sparse is None else [sparse])
        )
        if sparse is None:
            if len(placed) == 1:
                return placed[0].block.toarray()
            return np.concatenate([p.block.toarray() for p in placed], axis=1)
        parts = [(sparse.data, sparse.indices, sparse.indptr, 0)]
        for start, block in placed:
            X = as_csr(block.toarray())
            parts.append((X.data, X.indices, X.indptr, start))
        n_rows = sparse.shape[0]
        merged = sp.csr_matrix(merge_rows(parts, dtype, n_columns), shape=(n_rows, n_columns))
        merged.sort_indices()
        return merged
    except MemoryError:
        raise MemoryError(
            f"X as one matrix needs about {bytes_of_matrix(sparse, placed):,} bytes, more than is "
            "available. Taggers take the batch itself, and its attribute blocks has the vectors."
        ) from None


def bytes_of_matrix(sparse, placed):
    """Bytes that `to_matrix` takes."""
    if sparse is None:
        return sum(p.block.n_rows * p.block.n_columns * p.block.dtype.itemsize for p in placed)
    itemsize = np.result_type(sparse, *(p.block.dtype for p in placed)).itemsize + 4
    return (sparse.nnz + sum(p.block.count() for p in placed)) * itemsize


def stack_blocks(all_placed):
    """Stack the blocks of batches vertically; None if they differ in kind, columns or factor."""
    first = all_placed[0]
    if any(len(placed) != len(first) for placed in all_placed):
        return None
    stacked = []
    for parts in zip(*all_placed, strict=True):
        starts, blocks = zip(*parts, strict=True)
        keys = {
            (
                start,
                type(b),
                b.n_columns,
                b.factor,
                b.dtype,
                getattr(b, "numbers", b.values()[:0]).shape[1],
            )
            for start, b in parts
        }
        if len(keys) > 1:
            return None
        if isinstance(blocks[0], DenseBlock):
            matrix = np.concatenate([block.matrix for block in blocks])
            block = DenseBlock(matrix, blocks[0].factor)
        else:
            block = stack_looked_up(blocks)
        stacked.append(Placed(starts[0], block))
    return tuple(stacked)


def is_dense(matrix):
    """Return True for a matrix with many columns, most of whose numbers are not zero."""
    wide = matrix.shape[1] >= LEAST_COLUMNS
    return wide and np.count_nonzero(matrix) >= LEAST_DENSE * matrix.size


def pack_blocks(placed):
    """Numbers and arrays of blocks."""
    return tuple((start, *block.pack()) for start, block in placed)


def unpack_blocks(packed):
    """Blocks from what `pack_blocks` returned; a ValueError if it is something else."""
    placed = []
    for start, kind, factor, *arrays in packed:
        if kind == "dense":
            (matrix,) = map(_floats, arrays)
            block = DenseBlock(matrix, factor)
        else:
            table, numbers = arrays
            block = LookedUpBlock(_floats(table), _numbers(numbers), factor)
            block.check()
        placed.append(Placed(int(start), block))
    return tuple(placed)


def _floats(array):
    if not are_values(array):
        raise ValueError("a block is no matrix of floats.")
    return np.ascontiguousarray(array)


def _numbers(array):
    if not are_row_numbers(array):
        raise ValueError("numbers of rows are no matrix of integers.")
    return array
