"""Marginals of the labellings that agree with known labels.

Scores of minus infinity rule out all other labellings. Unknown labels are negative.
"""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.chain.forward_backward import forward_backward
from skstruct.kernels.chain.transitions import N_SHARED, TokenTransitions, Transitions
from skstruct.kernels.vector.rows import add_matrix


@jit
def forbidding(transitions):
    """Transitions for emission scores with minus infinity."""
    log, shift, linear, linear_t = transitions[:4]
    if len(transitions) == N_SHARED:
        return Transitions(log, shift, linear, linear_t, transitions.scaled, True)
    return TokenTransitions(log, shift, linear, linear_t, True)


@jit
def subtract_agreeing(scores, labels, transitions, weight, node, slabs):
    """Subtract the marginals of agreeing labellings from those of all; return their log-partition.

    Parameters
    ----------
    scores : ndarray of shape (length, n_labels)
        Emission scores; overwritten.
    labels : ndarray of shape (length,)
        Labels, negative where unknown.
    transitions : Transitions or TokenTransitions
        From `prepare_transitions`.
    weight : float
        Factor of the result.
    node : ndarray of shape (>= length, n_labels)
        Node marginals of all labellings; becomes the difference, times the weight.
    slabs : ndarray of shape (n_slabs, n_labels, n_labels)
        Transition marginals of all labellings, already times the weight, as `forward_backward`
        leaves them; becomes the difference.

    Returns
    -------
    log_z : float
        Logarithm of the partition function of the agreeing labellings.
    """
    length, n_labels = scores.shape
    for t in range(length):
        for j in range(n_labels):
            if labels[t] >= 0 and j != labels[t]:
                scores[t, j] = -np.inf
    agreeing, scale = np.empty((length, n_labels)), np.empty(length)
    transitions = forbidding(transitions)
    if len(transitions) == N_SHARED:
        log_z = forward_backward(scores, length, transitions, agreeing, scale, -weight, slabs)
    else:
        # Transition marginals of tokens with their own transitions are final on both sides.
        each = np.zeros((max(length - 1, 1), n_labels, n_labels))
        log_z = forward_backward(scores, length, transitions, agreeing, scale, -weight, each)
        for t in range(length - 1):
            add_matrix(each[t], slabs[t])
    for t in range(length):
        for j in range(n_labels):
            node[t, j] = weight * (node[t, j] - agreeing[t, j])
    return log_z
