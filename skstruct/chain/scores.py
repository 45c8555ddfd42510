"""Scores of every label at every token, from the weights of a model."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.protocol import score, state_of
from skstruct.compiled.jit import inline_lean_jit, inner_lean_jit, lean_jit
from skstruct.compiled.lanes import AHEAD, LANES, LINE, prefetch, sum_wide_rows


class Rows(NamedTuple):
    """The tokens of a batch as the three arrays of a CSR matrix."""

    indptr: np.ndarray  # (n_rows + 1,) int64
    indices: np.ndarray  # (nnz,) int32
    data: np.ndarray  # (nnz,) values, or (0,) when all are one

    # Blocks of vectors beside them (`skstruct.blocks`).
    placed = ()

    def sets(self):
        return (self,)

    def map(self, function):
        """Apply a function to the rows of each set of features."""
        return function(self)


class TransitionRows(NamedTuple):
    """Rows with features of the transition into each token."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    transitions: Rows  # rows of first tokens are never read

    placed = ()

    def sets(self):
        return Rows(*self[:-1]), self.transitions

    def map(self, function):
        """Apply a function to the rows of each set of features."""
        return TransitionRows(*function(Rows(*self[:-1])), function(self.transitions))


@lean_jit
def longest(offsets, first, last):
    """Length of the longest of the sequences ``first:last``."""
    length = 0
    for i in range(first, last):
        length = max(length, offsets[i + 1] - offsets[i])
    return length


@inner_lean_jit
def value_of(data, k):
    """Value of the ``k``-th occurrence of a feature; one if ``data`` is empty."""
    return 1.0 if data.shape[0] == 0 else data[k]


@inline_lean_jit
def emission_scores(rows, first, last, chain, out):
    """Write the scores of the rows ``first:last`` into ``out``, without start and end."""
    linear_scores(rows, first, last, chain.weights, chain.intercept, out)


@inner_lean_jit
def linear_scores(rows, first, last, weights, bias, out):
    """Write ``rows[first:last] @ weights + bias`` into ``out``."""
    n_labels = weights.shape[1]
    end = rows.indptr[last]
    for t in range(first, last):
        row = out[t - first]
        a, b = rows.indptr[t], rows.indptr[t + 1]
        for k in range(a + AHEAD, min(b + AHEAD, end)):
            coming = rows.indices[k]
            for j in range(0, min(n_labels, 4 * LINE), LINE):
                prefetch(weights, coming * n_labels + j)
            # A row of weights that is not aligned to a cache line ends in one more.
            prefetch(weights, coming * n_labels + n_labels - 1)
        if n_labels < LANES:
            narrow_scores(rows, a, b, weights, bias, row)
        elif rows.data.shape[0] == 0:
            sum_wide_rows(bias, weights, rows.indices, None, None, a, b, row)
        else:
            sum_wide_rows(bias, weights, rows.indices, rows.data, None, a, b, row)


@inline_lean_jit
def narrow_scores(rows, first, last, weights, bias, out):
    """Write the scores of one token with fewer than `LANES` labels."""
    for j in range(out.shape[0]):
        out[j] = bias[j]
    for k in range(first, last):
        x = value_of(rows.data, k)
        weight = weights[rows.indices[k]]
        for j in range(out.shape[0]):
            out[j] += x * weight[j]


@lean_jit
def sequence_scores(rows, first, last, chain, out):
    """Write the scores of the rows ``first:last``, one sequence, into ``out``."""
    emission_scores(rows, first, last, chain, out)
    add_boundary(chain.start, chain.end, out, last - first)


@inline_lean_jit
def add_boundary(start, end, out, length):
    """Add the biases of the first and the last token to the scores of one sequence."""
    if length > 0:
        for j in range(start.shape[0]):
            out[0, j] += start[j]
            out[length - 1, j] += end[j]


@inner_lean_jit
def add_cost(cost, gold, out):
    """Add what each label costs in place of the gold label to the scores of one sequence.

    Parameters
    ----------
    cost : ndarray of shape (n_labels, n_labels) or (0, 0)
        From gold label to predicted one; empty if there is none.
    gold : ndarray of shape (length,)
        Gold labels; where they are negative, nobody knows what is wrong, and nothing is added.
    out : ndarray of shape (>= length, n_labels)
        Scores, changed.
    """
    if cost.shape[0] == 0:
        return
    for t in range(gold.shape[0]):
        if gold[t] >= 0:
            for j in range(cost.shape[1]):
                out[t, j] += cost[gold[t], j]


@lean_jit
def mean_cost(cost, gold, node):
    """Expected cost of one sequence under node marginals."""
    total = 0.0
    if cost.shape[0] == 0:
        return total
    for t in range(gold.shape[0]):
        for j in range(cost.shape[1]):
            total += cost[gold[t], j] * node[t, j]
    return total


@lean_jit
def path_score(scores, length, edges, labels):
    total = 0.0
    for t in range(length):
        total += scores[t, labels[t]]
        if t > 0:
            total += score(edges, t, state_of(edges, labels, t - 1), state_of(edges, labels, t))
    return total
