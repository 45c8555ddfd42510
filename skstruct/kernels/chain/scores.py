"""Scores of every label at every token, and of every transition.

By default all tokens share one matrix of transition scores. Where tokens have features of the
transition into them, every token has its own matrix. Kernels that only read transition scores
accept both shapes, ``(n_labels, n_labels)`` and ``(length, n_labels, n_labels)``, and get the
matrix of a token from `into_token`. Conditions on the ``ndim`` of an argument or on the number of
its fields are decided at compile time, so the code for shared transitions contains none of the
other.
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.vector.lanes import LANES
from skstruct.kernels.vector.prefetch import AHEAD, LINE, prefetch
from skstruct.kernels.vector.rows import sum_rows


class Rows(NamedTuple):
    """The tokens of a batch as the three arrays of a CSR matrix."""

    indptr: np.ndarray  # (n_rows + 1,) int64
    indices: np.ndarray  # (nnz,) int32
    data: np.ndarray  # (nnz,) values, or (0,) when all are one


class TransitionRows(NamedTuple):
    """Rows with features of the transition into each token."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    transitions: Rows  # rows of first tokens are never read


class Chain(NamedTuple):
    """Weights of a linear chain."""

    weights: np.ndarray  # (n_features, n_labels)
    transition: np.ndarray  # (n_labels, n_labels), from row to column
    intercept: np.ndarray  # (n_labels,)
    start: np.ndarray  # (n_labels,), added at the first token
    end: np.ndarray  # (n_labels,), added at the last token


class TransitionChain(NamedTuple):
    """Weights of a linear chain with features of transitions."""

    weights: np.ndarray
    transition: np.ndarray
    intercept: np.ndarray
    start: np.ndarray
    end: np.ndarray
    transition_weights: np.ndarray  # (n_transition_features, n_labels ** 2), transitions row by row


# Number of fields of a chain without features of transitions.
N_PLAIN = len(Chain._fields)


@jit
def into_token(transition, t):
    """Matrix of the scores or differences of transitions into token ``t``."""
    if transition.ndim == 2:
        return transition
    return transition[t]


@lean_jit
def transition_score(transition, t, i, j):
    """Score of the transition from label ``i`` to label ``j`` of token ``t``."""
    if transition.ndim == 2:
        return transition[i, j]
    return transition[t, i, j]


@lean_jit
def add_transition(difference, t, i, j, weight):
    """Add to the difference of the transition from label ``i`` to label ``j`` of token ``t``."""
    if difference.ndim == 2:
        difference[i, j] += weight
    else:
        difference[t, i, j] += weight


@jit
def zero_transitions(chain, length):
    """Zero matrix of transitions; one for each token where tokens have their own transitions."""
    if len(chain) == N_PLAIN:
        return np.zeros(chain.transition.shape)
    return np.zeros((length, *chain.transition.shape))


@jit
def transition_buffer(chain, length):
    """Array for the transition scores of a sequence: the weights if all tokens share them."""
    if len(chain) == N_PLAIN:
        return chain.transition
    return zero_transitions(chain, length)


@jit
def copy_transitions(chain, length):
    """Another such array, which is writable for all models.

    So kernels that decode are compiled once, for fitted models and for those that learn.
    """
    if len(chain) == N_PLAIN:
        return chain.transition.copy()
    return zero_transitions(chain, length)


@lean_jit
def longest(offsets, first, last):
    """Length of the longest of the sequences ``first:last``."""
    length = 0
    for i in range(first, last):
        length = max(length, offsets[i + 1] - offsets[i])
    return length


@lean_jit
def value_of(data, k):
    """Value of the ``k``-th occurrence of a feature; all are one where ``data`` is empty."""
    return 1.0 if data.shape[0] == 0 else data[k]


@lean_jit
def emission_scores(rows, first, last, chain, out):
    """Write the scores of the rows ``first:last`` into ``out``, without start and end."""
    linear_scores(rows, first, last, chain.weights, chain.intercept, out)


@lean_jit
def linear_scores(rows, first, last, weights, bias, out):
    """Write ``rows[first:last] @ weights + bias`` into ``out``."""
    n_labels = weights.shape[1]
    end = rows.indptr[last]
    for t in range(first, last):
        score = out[t - first]
        a, b = rows.indptr[t], rows.indptr[t + 1]
        for k in range(a + AHEAD, min(b + AHEAD, end)):
            coming = rows.indices[k]
            for j in range(0, min(n_labels, 4 * LINE), LINE):
                prefetch(weights, coming * n_labels + j)
            # A row of weights that is not aligned to a cache line ends in one more.
            prefetch(weights, coming * n_labels + n_labels - 1)
        if n_labels < LANES:
            narrow_scores(rows, a, b, weights, bias, score)
        elif rows.data.shape[0] == 0:
            sum_rows(bias, weights, rows.indices, None, a, b, score)
        else:
            sum_rows(bias, weights, rows.indices, rows.data, a, b, score)


@lean_jit
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


@lean_jit
def transition_scores(rows, first, last, chain, out):
    """Write the transition scores of one sequence into its `transition_buffer`.

    These are linear scores with transitions for labels and the transition matrix for biases.
    """
    bias = chain.transition.reshape(chain.transition.size)
    scores = out.reshape(out.shape[0], bias.shape[0])
    linear_scores(rows.transitions, first + 1, last, chain.transition_weights, bias, scores[1:])


@lean_jit
def add_boundary(start, end, out, length):
    """Add the biases of the first and the last token to the scores of one sequence."""
    if length > 0:
        for j in range(start.shape[0]):
            out[0, j] += start[j]
            out[length - 1, j] += end[j]


@lean_jit
def path_score(scores, length, transition, labels):
    """Score of one label sequence."""
    score = 0.0
    for t in range(length):
        score += scores[t, labels[t]]
        if t > 0:
            score += transition_score(transition, t, labels[t - 1], labels[t])
    return score
