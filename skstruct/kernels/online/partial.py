"""The rule of a conditional random field where some tokens have no label.

The loss is the negative logarithm of the marginal likelihood, the probability of all labellings
that agree with the known labels. It is the difference of two log-partitions, and its gradient that
of two means.
"""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.chain.forward_backward import (
    as_slabs,
    finish_transition_marginals,
    forward_backward,
)
from skstruct.kernels.chain.partial import subtract_agreeing
from skstruct.kernels.chain.transitions import prepare_transitions
from skstruct.kernels.chain.viterbi import argmax
from skstruct.kernels.online.loop import online_epoch


@jit
def partial_crf_rule(
    rows, sample, scores, transition, labels, settings, difference, transition_difference
):
    """Expectation over the labellings that agree with the known labels, less that over all.

    This is minus the gradient of the loss.
    """
    length = labels.shape[0]
    kept, scale = scores[:length].copy(), np.empty(length)
    transitions = prepare_transitions(transition)
    expected = as_slabs(transition_difference)
    loss = forward_backward(scores, length, transitions, difference, scale, -1.0, expected)
    wrong = 0
    for t in range(length):
        wrong += labels[t] >= 0 and argmax(difference[t]) != labels[t]
    loss -= subtract_agreeing(kept, labels, transitions, -1.0, difference, expected)
    if transition.ndim == 2:
        finish_transition_marginals(expected, transitions)
    return wrong, 0.0 if loss < 0.0 else loss


@jit
def partial_crf_epoch(rows, labels, samples, sample_weight, schedule, settings, state):
    """One pass of stochastic gradient descent (see `online_epoch`)."""
    return online_epoch(
        partial_crf_rule, rows, labels, samples, sample_weight, schedule, settings, state
    )
