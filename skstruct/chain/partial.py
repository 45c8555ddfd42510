"""Marginals of the labellings that agree with known labels.

Scores of minus infinity rule out all other labellings. Unknown labels are negative.
"""

import numpy as np

from skstruct.chain.forward_backward import forward_backward
from skstruct.chain.protocol import forbidding
from skstruct.kernels._jit import jit


@jit
def subtract_agreeing(scores, labels, factors, weight, node, counts):
    """Subtract the marginals of agreeing labellings from those of all; return their log-partition.

    Parameters
    ----------
    scores : ndarray of shape (length, n_labels)
        Emission scores; overwritten.
    labels : ndarray of shape (length,)
        Labels, negative where unknown.
    factors : NamedTuple
        As of `forward_backward`.
    weight : float
        Factor of the result.
    node : ndarray of shape (>= length, n_labels)
        Node marginals of all labellings; becomes the difference, times the weight.
    counts : ndarray or NamedTuple
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
    impossible = forbidding(factors)
    log_z = forward_backward(scores, length, impossible, agreeing, scale, -weight, counts)
    for t in range(length):
        for j in range(n_labels):
            node[t, j] = weight * (node[t, j] - agreeing[t, j])
    return log_z
