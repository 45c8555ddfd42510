"""Learning from sequences of which some tokens have no label.

What is maximised is the marginal likelihood: the probability of all labellings that agree with the
labels that are known. Its logarithm is the difference of two log-partitions, and its gradient that
of two means. The label of a token that is not known is negative.
"""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.chain.forward_backward import (
    N_SHARED,
    TokenTransitions,
    Transitions,
    as_slabs,
    finish_transition_marginals,
    forward_backward,
    prepare_transitions,
)
from skstruct.kernels.chain.scores import N_PLAIN, longest, transition_buffer
from skstruct.kernels.chain.viterbi import argmax
from skstruct.kernels.likelihood.objective import (
    add_biases,
    add_transition_gradient,
    chain_scores,
    chain_transition_scores,
)
from skstruct.kernels.likelihood.parameters import add_state_gradient
from skstruct.kernels.online.loop import online_epoch
from skstruct.kernels.vector.rows import add_matrix


@jit
def forbidding(transitions):
    """Transitions for scores of which some are minus infinity."""
    log, shift, linear, linear_t = transitions[:4]
    if len(transitions) == N_SHARED:
        return Transitions(log, shift, linear, linear_t, transitions.scaled, True)
    return TokenTransitions(log, shift, linear, linear_t, True)


@jit
def subtract_agreeing(scores, labels, transitions, weight, node, slabs):
    """Subtract the marginals of the labellings that agree with the known labels from those of all.

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
        Logarithm of the partition function of the labellings that agree.
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
        # These are finished at once, and so are those that they are subtracted from.
        each = np.zeros((max(length - 1, 1), n_labels, n_labels))
        log_z = forward_backward(scores, length, transitions, agreeing, scale, -weight, each)
        for t in range(length - 1):
            add_matrix(each[t], slabs[t])
    for t in range(length):
        for j in range(n_labels):
            node[t, j] = weight * (node[t, j] - agreeing[t, j])
    return log_z


@jit
def partial_nll_gradient(features, offsets, first, last, labels, sequence_weight, chain, out):
    """Weighted sum of the negative logarithms of the marginal likelihoods (see `nll_gradient`)."""
    length, n_labels = longest(offsets, first, last), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    node = np.empty((length, n_labels))
    scale = np.empty(length)
    transitions = prepare_transitions(transition_buffer(chain, length))
    differences = transition_buffer(out, length)
    slabs = np.zeros((1, n_labels, n_labels))
    if len(chain) > N_PLAIN:
        slabs = differences[1:]
    nll = 0.0
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        if a == b:
            continue
        weight = sequence_weight[i]
        chain_scores(features, chain, 1.0, a, b, scores)
        if len(chain) > N_PLAIN:
            chain_transition_scores(features, chain, 1.0, a, b, transitions.log)
        kept = scores[: b - a].copy()
        log_z = forward_backward(scores, b - a, transitions, node, scale, weight, slabs)
        log_z -= subtract_agreeing(kept, labels[a:b], transitions, weight, node, slabs)
        nll += weight * log_z
        add_biases(node, b - a, out)
        add_state_gradient(features, node, n_labels, a, b, out.weights)
        if len(chain) > N_PLAIN:
            add_transition_gradient(features, a, b, 1.0, differences, out)
    if len(chain) == N_PLAIN:
        finish_transition_marginals(slabs, transitions)
        add_matrix(slabs[0], out.transition)
    return nll


@jit
def partial_crf_rule(
    rows, sample, scores, transition, labels, settings, difference, transition_difference
):
    """Mean of the labellings that agree with the known labels, less the mean of all.

    Minus the gradient of the loss, which is the negative logarithm of the marginal likelihood.
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
