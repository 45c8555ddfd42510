"""The rule of stochastic gradient descent on the likelihood of a conditional random field."""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.chain.forward_backward import (
    as_slabs,
    finish_transition_marginals,
    forward_backward,
)
from skstruct.kernels.chain.scores import add_transition, path_score
from skstruct.kernels.chain.transitions import prepare_transitions
from skstruct.kernels.chain.viterbi import argmax
from skstruct.kernels.online.loop import online_epoch


@jit
def crf_rule(rows, sample, scores, transition, gold, settings, difference, transition_difference):
    """Gold labelling less the expectation over all labellings.

    This is minus the gradient of the loss, the negative log-likelihood. A token counts as wrong if
    another label than the gold label has the largest marginal.
    """
    length, n_labels = gold.shape[0], scores.shape[1]
    gold_score = path_score(scores, length, transition, gold)
    transitions = prepare_transitions(transition)
    expected = as_slabs(transition_difference)
    scale = np.empty(length)
    log_z = forward_backward(scores, length, transitions, difference, scale, -1.0, expected)
    if transition.ndim == 2:
        finish_transition_marginals(expected, transitions)
    wrong = 0
    for t in range(length):
        wrong += argmax(difference[t]) != gold[t]
        for j in range(n_labels):
            difference[t, j] = -difference[t, j]
        difference[t, gold[t]] += 1.0
        if t > 0:
            add_transition(transition_difference, t, gold[t - 1], gold[t], 1.0)
    loss = log_z - gold_score
    return wrong, 0.0 if loss < 0.0 else loss


@jit
def crf_epoch(rows, labels, samples, sample_weight, schedule, settings, state):
    """One pass of stochastic gradient descent (see `online_epoch`)."""
    return online_epoch(crf_rule, rows, labels, samples, sample_weight, schedule, settings, state)
