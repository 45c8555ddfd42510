"""Marginals of a range of sequences.

Ranges may run in parallel: a call writes only the rows and sequences of its range.
"""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.chain.forward_backward import forward_backward
from skstruct.kernels.chain.scores import (
    N_PLAIN,
    longest,
    sequence_scores,
    transition_buffer,
    transition_scores,
)
from skstruct.kernels.chain.sparse_forward_backward import sparse_forward_backward
from skstruct.kernels.chain.transitions import TokenTransitions, prepare_transitions


@jit
def decode_marginals(rows, offsets, first, last, chain, transitions, marginals, log_partition):
    """Write node marginals (n_rows, n_labels) and log-partitions (n_sequences,) of a range.

    ``transitions`` are those of the chain, from `prepare_transitions`.
    """
    length, n_labels = longest(offsets, first, last), chain.transition.shape[0]
    if len(chain) > N_PLAIN:
        room = prepare_transitions(transition_buffer(chain, length))
        transitions = TokenTransitions(
            room.log, room.shift, room.linear, room.linear_t, transitions.forbids
        )
    scores = np.empty((length, n_labels))
    scale = np.empty(length)
    no_slabs = np.empty((0, n_labels, n_labels))
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, scores)
        if len(chain) > N_PLAIN:
            transition_scores(rows, a, b, chain, transitions.log)
        log_partition[i] = forward_backward(
            scores, b - a, transitions, marginals[a:b], scale, 1.0, no_slabs
        )


@jit
def decode_marginals_sparse(
    rows, offsets, first, last, chain, sparse, tables, marginals, log_partition
):
    """Do the same with listed transitions of the chain, which all tokens share."""
    length, n_labels = longest(offsets, first, last), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    scale, nothing = np.empty(length), np.empty(0)
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, scores)
        log_partition[i] = sparse_forward_backward(
            scores, b - a, chain.transition, sparse, tables, marginals[a:b], scale, 1.0, nothing
        )
