"""Vectors as learners read them that visit one sequence at a time.

The vectors of a sequence are written into a window or a panel, a matrix with all columns of blocks
side by side. Scores are products of its rows with weights, and a change of the weights is a product
of its transpose with the differences of labels. All blocks lie in the same few arrays, so that
kernels are compiled once, whatever blocks there are, also for none.
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import Rows, sequence_scores
from skstruct.compiled.jit import inner_jit, inner_lean_jit
from skstruct.compiled.lanes import (
    LANES,
    PANEL_ROWS,
    TOGETHER,
    add_panel_outers,
    add_wide_outers,
    add_wide_products,
    sum_wide_rows,
    write_panel_products,
)
from skstruct.compiled.rows import add_outer
from skstruct.matrices import read_only


class Vectors(NamedTuple):
    """The vectors of all tokens.

    A token has a vector in each place: one of a dense block, and of a looked-up block one for each
    number of a row.
    """

    single: np.ndarray  # tables in single precision, one after the other, flat
    double: np.ndarray  # and those in double precision
    numbers: np.ndarray  # (n_rows, n_places) int32, row of the place's table; -1 for zeros
    places: np.ndarray  # (n_places, 3): is in double precision, start of its table, n_dimensions
    factors: np.ndarray  # (n_places,), of the values
    columns: np.ndarray  # (n_columns,) int32, the features that the columns are, or their places


class Window(NamedTuple):
    """Workspace: the vectors of one sequence, and what is summed over it."""

    values: np.ndarray  # (length, n_columns)
    sums: np.ndarray  # (n_columns, n_labels)
    spare: np.ndarray  # (n_labels,)
    places: np.ndarray  # (TOGETHER,) int64, tokens
    every: np.ndarray  # (n_columns,) int32, numbers of the columns


class Panel(NamedTuple):
    """Workspace: the vectors of one sequence, and all weights of vectors, `LANES` labels at a time.

    For learners that leave the last digits to others, or need none: it takes half the time of a
    window.
    """

    values: np.ndarray  # (n_rows, n_columns), at least as many rows as tokens
    of_labels: np.ndarray  # (n_rows, width), numbers of their labels
    weights: np.ndarray  # (n_blocks, n_columns, LANES)
    sums: np.ndarray  # (n_blocks, n_columns, LANES), of a sequence, for the blocks that change
    exact: np.ndarray  # (n_blocks, n_columns, LANES) float64, the weights
    lag: np.ndarray  # (n_blocks, n_columns, LANES) float64, what averages lag behind
    places: np.ndarray  # (PANEL_ROWS,) int64, tokens
    changing: np.ndarray  # (n_blocks,) int64, blocks with a label that changes


class VisitRows(NamedTuple):
    """Rows with vectors beside them; a thread has a panel of its own."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    vectors: Vectors
    panel: Panel


class VisitTransitionRows(NamedTuple):
    """The same with features of the transition into each token."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    transitions: Rows
    vectors: Vectors
    panel: Panel


def vectors_of(rows):
    """Vectors of `Rows`, `TransitionRows` or `BlockRows`, as `vectors_of_blocks` makes them."""
    return vectors_of_blocks(rows.placed, len(rows.sets()[0].indptr) - 1)


def vectors_of_blocks(placed, n_rows, stride=1):
    """Vectors of some blocks, with tables that are shared if possible.

    Only where several blocks are of the same type, their tables are copied, one after the other.

    Parameters
    ----------
    placed : sequence of (int, Block)
        Place of the first column of each block, and the block.
    n_rows : int
        Number of tokens.
    stride : int, default=1
        Distance of the places of neighbouring columns.

    Returns
    -------
    vectors : Vectors
    """
    values = {np.dtype(np.float32): [], np.dtype(np.float64): []}
    sizes = dict.fromkeys(values, 0)
    numbers, columns, places, factors = [np.empty((n_rows, 0), np.int32)], [], [], []
    for start, block in placed:
        block.check()
        table, of_rows = np.ascontiguousarray(block.values()), block.row_numbers()
        place = (table.dtype == np.float64, sizes[table.dtype], table.shape[1])
        places += [place] * of_rows.shape[1]
        factors += [block.factor] * of_rows.shape[1]
        numbers.append(of_rows)
        columns.append(
            np.arange(block.n_columns, dtype=np.int32) * np.int32(stride) + np.int32(start)
        )
        values[table.dtype].append(table.reshape(-1))
        sizes[table.dtype] += table.size
    single, double = (
        found[0] if len(found) == 1 else np.concatenate([np.empty(0, dtype), *found])
        for dtype, found in values.items()
    )
    return read_only(
        Vectors(
            single,
            double,
            # A copy, which nobody else can change.
            np.hstack(numbers),
            np.array(places, np.int64).reshape(-1, 3),
            np.array(factors, np.float64),
            np.concatenate([np.empty(0, np.int32), *columns]),
        )
    )


def visit_rows(rows, vectors, length, n_labels):
    """Rows for one thread.

    Parameters
    ----------
    rows : Rows, TransitionRows or BlockRows
    vectors : Vectors
        From `vectors_of`.
    length : int
        Tokens of the longest sequence.
    n_labels : int

    Returns
    -------
    rows : VisitRows or VisitTransitionRows
    """
    first, *more = rows.sets()
    kind = VisitTransitionRows if more else VisitRows
    return kind(*first, *more, vectors, new_panel(len(vectors.columns), length, n_labels))


@inner_jit
def new_window(vectors, length, n_labels):
    """Window for sequences up to this length."""
    n_columns = vectors.columns.shape[0]
    return Window(
        np.empty((length, n_columns)),
        np.empty((n_columns, n_labels)),
        np.empty(n_labels),
        np.empty(TOGETHER, np.int64),
        np.arange(n_columns, dtype=np.int32),
    )


@inner_lean_jit
def load_vectors(vectors, first, last, values):
    """Write the vectors of the rows ``first:last`` into a matrix, in its precision."""
    for t in range(first, last):
        column = 0
        for p in range(vectors.numbers.shape[1]):
            number, size = vectors.numbers[t, p], vectors.places[p, 2]
            start = vectors.places[p, 1] + number * size
            factor = values.dtype.type(vectors.factors[p])
            part = values[t - first, column : column + size]
            if number < 0:
                for f in range(part.shape[0]):
                    part[f] = 0.0
            elif vectors.places[p, 0]:
                load_vector(vectors.double[start : start + size], factor, part)
            else:
                load_vector(vectors.single[start : start + size], factor, part)
            column += size


@inner_lean_jit
def load_vector(vector, factor, out):
    """Write a vector times a factor; rows of arrays in loops from zero are vectorised."""
    for f in range(out.shape[0]):
        out[f] = factor * vector[f]


@inner_lean_jit
def add_vector_scores(vectors, window, length, weights, out):
    """Add the scores of the vectors in the window to those of the first ``length`` tokens."""
    add_window_scores(window, length, weights, vectors.columns, out)


@inner_lean_jit
def add_window_scores(window, length, weights, columns, out):
    """Add the vectors in the window, times the weights of their columns, to scores of tokens."""
    n_labels, n_columns, first = weights.shape[1], window.values.shape[1], 0
    if n_labels >= LANES:
        first = length - length % TOGETHER
        for t in range(0, first, TOGETHER):
            add_wide_products(window.values, t, weights, columns, out)
    for t in range(first, length):
        row, values, spare = out[t], window.values[t], window.spare
        if n_labels >= LANES:
            sum_wide_rows(None, weights, columns, values, None, 0, n_columns, spare)
        else:
            for j in range(n_labels):
                spare[j] = 0.0
            for f in range(n_columns):
                weight = weights[columns[f]]
                for j in range(n_labels):
                    spare[j] += values[f] * weight[j]
        for j in range(n_labels):
            row[j] += spare[j]


@inner_lean_jit
def visit_scores(rows, vectors, first, last, chain, window, out):
    """Write the scores of the rows ``first:last``, one sequence, and its vectors to the window."""
    sequence_scores(rows, first, last, chain, out)
    if vectors.columns.shape[0] > 0:
        load_vectors(vectors, first, last, window.values)
        add_vector_scores(vectors, window, last - first, chain.weights, out)


@inner_lean_jit
def sum_vectors(window, length, difference):
    """Write the vectors in the window times the differences of labels into ``window.sums``."""
    sums, places, n = window.sums, window.places, 0
    for f in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            sums[f, j] = 0.0
    for t in range(length):
        changes = False
        for j in range(sums.shape[1]):
            changes |= difference[t, j] != 0.0
        if changes:
            places[n] = t
            n += 1
        if n == TOGETHER or t == length - 1:
            add_outers(window.values, difference, places, n, sums)
            n = 0


@inner_lean_jit
def add_outers(values, difference, places, n, sums):
    """Add the outer products of the rows at the first ``n`` places to the sums."""
    if n == TOGETHER and sums.shape[1] >= LANES:
        add_wide_outers(values, difference, places, sums)
        return
    for i in range(n):
        add_outer(1.0, values[places[i]], difference[places[i]], sums)


@inner_lean_jit
def add_sums(vectors, window, factor, weights):
    """Add the sums in the window, times a factor, to the weights of the columns."""
    for f in range(vectors.columns.shape[0]):
        row, sums = weights[vectors.columns[f]], window.sums[f]
        for j in range(row.shape[0]):
            row[j] += factor * sums[j]


# In single precision


def new_panel(n_columns, length, n_labels):
    """Panel for sequences up to this length."""
    n_rows, n_blocks = -(-length // PANEL_ROWS) * PANEL_ROWS, -(-n_labels // LANES)
    values, of_labels = (
        np.zeros((n_rows, width), np.float32) for width in (n_columns, n_blocks * LANES)
    )
    weights, sums = np.zeros((2, n_blocks, n_columns, LANES), np.float32)
    exact, lag = np.zeros((2, n_blocks, n_columns, LANES))
    places, changing = (np.zeros(n, np.int64) for n in (PANEL_ROWS, n_blocks))
    return Panel(values, of_labels, weights, sums, exact, lag, places, changing)


@inner_lean_jit
def add_panel_scores(panel, length, out):
    """Add the vectors in the panel, times its weights, to the scores of the first tokens."""
    n_rows = (length + PANEL_ROWS - 1) // PANEL_ROWS * PANEL_ROWS
    write_panel_products(panel.values, n_rows, panel.weights, panel.of_labels)
    for t in range(length):
        for j in range(out.shape[1]):
            out[t, j] += panel.of_labels[t, j]


@inner_lean_jit
def sum_panel(panel, length, difference):
    """Write the vectors in the panel times the differences of labels into its sums.

    Returns the number of the blocks of labels that change, ``panel.changing``, whose sums lie one
    after the other.
    """
    n_blocks, places, n = find_changing(panel, length, difference), panel.places, 0
    sums, width = panel.sums[:n_blocks], n_blocks * LANES
    factors = panel.of_labels.reshape(panel.of_labels.size)[: PANEL_ROWS * width]
    factors, flat = factors.reshape((PANEL_ROWS, width)), sums.reshape(sums.size)
    for p in range(flat.shape[0]):
        flat[p] = 0.0
    for t in range(length):
        changes = False
        for j in range(difference.shape[1]):
            changes |= difference[t, j] != 0.0
        if changes:
            places[n] = t
            write_changing(panel, difference[t], factors[n])
            n += 1
        if n == PANEL_ROWS or (t == length - 1 and n > 0):
            for i in range(n, PANEL_ROWS):
                places[i] = t
                for j in range(width):
                    factors[i, j] = 0.0
            add_panel_outers(panel.values, places, factors, sums)
            n = 0
    return n_blocks


@inner_lean_jit
def find_changing(panel, length, difference):
    """Write the numbers of the blocks with a label that changes; return how many there are."""
    n_labels, n = difference.shape[1], 0
    for b in range(panel.changing.shape[0]):
        changes = False
        for t in range(length):
            for j in range(b * LANES, min((b + 1) * LANES, n_labels)):
                changes |= difference[t, j] != 0.0
        if changes:
            panel.changing[n] = b
            n += 1
    return n


@inner_lean_jit
def write_changing(panel, difference, out):
    """Write the differences of the labels of one token in the blocks that change."""
    for i in range(out.shape[0] // LANES):
        first = panel.changing[i] * LANES
        for lane in range(LANES):
            j = first + lane
            out[i * LANES + lane] = difference[j] if j < difference.shape[0] else 0.0


@inner_lean_jit
def read_weights(columns, stride, weights, n_labels, panel):
    """Copy the weights of vectors into a panel."""
    read_blocks(columns, stride, weights, n_labels, panel.exact)
    exact, single = panel.exact.reshape(panel.exact.size), panel.weights.reshape(panel.exact.size)
    for p in range(exact.shape[0]):
        single[p] = exact[p]


@inner_lean_jit
def read_blocks(columns, stride, weights, n_labels, blocks):
    """Copy what each weight of vectors has into blocks like those of `Panel.exact`.

    ``weights`` is a vector, in which those of column ``f`` begin at ``stride * columns[f]``.
    """
    for b in range(blocks.shape[0]):
        first, width = np.uint64(b * LANES), np.uint64(min(n_labels - b * LANES, LANES))
        for f in range(columns.shape[0]):
            place = np.uint64(stride * columns[f]) + first
            for j in range(width):
                blocks[b, f, j] = weights[place + j]


@inner_lean_jit
def write_blocks(columns, stride, blocks, n_labels, weights):
    """Copy it back; return the growth of its squared norm."""
    growth = 0.0
    for b in range(blocks.shape[0]):
        first, width = np.uint64(b * LANES), np.uint64(min(n_labels - b * LANES, LANES))
        for f in range(columns.shape[0]):
            place = np.uint64(stride * columns[f]) + first
            for j in range(width):
                before, weight = weights[place + j], blocks[b, f, j]
                weights[place + j] = weight
                growth += (weight - before) * (weight + before)
    return growth
