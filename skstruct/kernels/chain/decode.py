"""Viterbi decoding of a range of sequences.

Ranges may run in parallel: a call writes only the rows and sequences of its range.
"""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.chain.scores import (
    N_PLAIN,
    copy_transitions,
    longest,
    sequence_scores,
    transition_scores,
)
from skstruct.kernels.chain.sparse_viterbi import sparse_viterbi
from skstruct.kernels.chain.viterbi import viterbi


@jit
def decode_best(rows, offsets, first, last, chain, labels):
    """Write the best labels of the sequences ``first:last`` into ``labels`` (n_rows,)."""
    length, n_labels = longest(offsets, first, last), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    transition = copy_transitions(chain, length)
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, scores)
        if len(chain) > N_PLAIN:
            transition_scores(rows, a, b, chain, transition)
        viterbi(scores, b - a, transition, labels[a:b])


@jit
def decode_best_sparse(rows, offsets, first, last, chain, into, labels):
    """Do the same with listed transitions of the chain, `IntoLabels`, which all tokens share."""
    length, n_labels = longest(offsets, first, last), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, scores)
        sparse_viterbi(scores, b - a, into, labels[a:b])
