"""The best label sequence (Viterbi)."""

import numpy as np

from skstruct.chain.protocol import (
    best_source,
    label_of,
    max_buffer,
    state_rows,
    step_max,
    width,
)
from skstruct.chain.ties import first_largest
from skstruct.compiled.jit import inner_jit, inner_lean_jit, jit


@inner_jit
def best_prefixes(rows, length, edges):
    """Turn ``rows[t, s]`` into the score of the best prefix that ends with ``s``, in place."""
    extend_prefixes(rows, length, edges, max_buffer(edges, length), np.empty(rows.shape[1]))


@inner_lean_jit
def extend_prefixes(rows, length, edges, buffer, best):
    """Replace each score by the best prefix's, given the workspace."""
    for t in range(1, length):
        step_max(edges, buffer, t, rows[t - 1], best)
        for s in range(width(edges, t)):
            rows[t, s] += best[s]


@jit
def viterbi(scores, length, edges, labels):
    """Write the best label sequence of one sequence; return its score.

    No back-pointers are stored: rows become the scores of the best prefixes, and the backward pass
    searches for the source that attains each, one pass over the sources per token.

    Parameters
    ----------
    scores : ndarray of shape (>= length, n_labels)
        Emission scores; overwritten.
    edges : Dense, PerToken, Listed or any other that `skstruct.chain.protocol` describes
        Transition scores.
    labels : ndarray of shape (length,), integer
        Receives the labels.
    """
    if length == 0:
        return 0.0
    rows = state_rows(edges, scores, length)
    row = np.empty(rows.shape[1])
    extend_prefixes(rows, length, edges, max_buffer(edges, length), row)
    return walk_back(rows, length, edges, labels, row)


@inner_lean_jit
def walk_back(rows, length, edges, labels, row):
    """Write the best label sequence, given the best scores of prefixes; return its score.

    ``row`` is workspace.
    """
    s = first_largest(rows[length - 1], width(edges, length - 1))
    score = rows[length - 1, s]
    labels[length - 1] = label_of(edges, length - 1, s)
    for t in range(length - 1, 0, -1):
        s = best_source(edges, t, rows[t - 1], s, row)
        labels[t - 1] = label_of(edges, t - 1, s)
    return score
