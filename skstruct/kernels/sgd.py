"""Stochastic gradient descent on the objective of a CRF."""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.forward_backward import (
    finish_pairs,
    forward_backward,
    prepare_transitions,
)
from skstruct.kernels.objective import (
    add_biases,
    add_edge_gradient,
    chain_edge_scores,
    chain_scores,
    subtract_gold,
)
from skstruct.kernels.parameters import add_state_gradient
from skstruct.kernels.scores import N_PLAIN, longest, transition_buffer


class Descent(NamedTuple):
    """How far to go at every step (Bottou, 2012)."""

    rate: float  # at the first step; rate / (1 + rate * penalty * steps) later
    penalty: float  # the share of l2 that falls to one sequence


@jit
def sgd_epoch(features, offsets, order, labels, sequence_weight, descent, chain, progress):
    """Visit the sequences in the given order and step against the gradient of each.

    The penalty shrinks all weights of features at every step. They are kept as
    ``scale * chain.weights``, so that it takes one multiplication.

    Parameters
    ----------
    features : StateFeatures
        The tokens.
    descent : Descent
        Step sizes.
    chain : Chain
        The weights, changed; ``chain.weights`` is the vector of state weights over ``scale``, and
        so are the weights of the features of transitions.
    progress : ndarray of shape (2,)
        Number of steps made, and ``scale``.
    """
    length, n_labels = longest(offsets, 0, offsets.shape[0] - 1), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    marginals = np.empty((length, n_labels))
    forward_scale = np.empty(length)
    transitions = prepare_transitions(transition_buffer(chain, length))
    differences = transition_buffer(chain, length)
    pairs = np.zeros((1, n_labels, n_labels))
    if len(chain) > N_PLAIN:
        pairs = differences[1:]
    for i in order:
        a, b = offsets[i], offsets[i + 1]
        if a == b:
            continue
        rate = descent.rate / (1.0 + descent.rate * descent.penalty * progress[0])
        step = -rate * sequence_weight[i]
        chain_scores(features, chain, progress[1], a, b, scores)
        if len(chain) == N_PLAIN:
            transitions = prepare_transitions(chain.transition)
        else:
            chain_edge_scores(features, chain, progress[1], a, b, transitions.log)
        forward_backward(scores, b - a, transitions, marginals, forward_scale, step, pairs)
        if len(chain) == N_PLAIN:
            finish_pairs(pairs, transitions)
        shrink = 1.0 - rate * descent.penalty
        progress[1] *= shrink
        for y in range(n_labels):
            chain.intercept[y] *= shrink
            chain.start[y] *= shrink
            chain.end[y] *= shrink
            for z in range(n_labels):
                if len(chain) == N_PLAIN:
                    chain.transition[y, z] = shrink * chain.transition[y, z] + pairs[0, y, z]
                    pairs[0, y, z] = 0.0
                else:
                    chain.transition[y, z] *= shrink
        subtract_gold(marginals[: b - a], labels[a:b], step, differences)
        add_biases(marginals, b - a, chain)
        for t in range(b - a):
            for j in range(n_labels):
                marginals[t, j] /= progress[1]
        add_state_gradient(features, marginals, n_labels, a, b, chain.weights)
        if len(chain) > N_PLAIN:
            add_edge_gradient(features, a, b, progress[1], differences, chain)
        progress[0] += 1.0
