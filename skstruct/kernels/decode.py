"""Loops over a range of sequences: score, decode, write at the sequence's own place.

Ranges may run in parallel: a call reads the whole batch and writes only the rows and
sequences of its range.
"""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.astar import astar_nbest
from skstruct.kernels.forward_backward import forward_backward
from skstruct.kernels.scores import longest, sequence_scores
from skstruct.kernels.viterbi import viterbi


@jit
def decode_best(rows, offsets, first, last, chain, labels):
    """Write the best labels of the sequences ``first:last`` into ``labels`` (n_rows,)."""
    n_labels = chain.transition.shape[0]
    scores = np.empty((longest(offsets, first, last), n_labels))
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, scores)
        viterbi(scores, b - a, chain.transition, labels[a:b])


@jit
def decode_marginals(rows, offsets, first, last, chain, transitions, marginals, log_partition):
    """Write node marginals (n_rows, n_labels) and log-partitions (n_sequences,) of a range."""
    n_labels = chain.transition.shape[0]
    length = longest(offsets, first, last)
    scores = np.empty((length, n_labels))
    alpha = np.empty((length, n_labels))
    scale = np.empty(length)
    no_pairs = np.empty((0, n_labels, n_labels))
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, scores)
        log_partition[i] = forward_backward(scores, b - a, transitions, alpha, scale, 1.0, no_pairs)
        for t in range(b - a):
            for j in range(n_labels):
                marginals[a + t, j] = alpha[t, j]


@jit
def decode_nbest(rows, offsets, first, last, chain, labels, scores, counts):
    """Write the best label sequences of a range.

    ``labels`` is (n_best, n_rows), ``scores`` (n_sequences, n_best), and ``counts``
    (n_sequences,) says how many label sequences there are where they are fewer than n_best.
    """
    n_labels = chain.transition.shape[0]
    emission = np.empty((longest(offsets, first, last), n_labels))
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, emission)
        counts[i] = astar_nbest(
            emission, b - a, chain.transition, scores.shape[1], labels[:, a:b], scores[i]
        )
