"""Negative log-likelihood of a CRF, its gradient, and the diagonal of its Hessian.

Where some labels are unknown, the likelihood is that of all labellings that agree with the others.
"""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.forward_backward import (
    finish_transition_marginals,
    forward_backward,
)
from skstruct.kernels.chain.partial import subtract_agreeing
from skstruct.kernels.chain.scores import (
    N_PLAIN,
    add_boundary,
    add_transition,
    longest,
    path_score,
    transition_buffer,
)
from skstruct.kernels.chain.transitions import prepare_transitions
from skstruct.kernels.likelihood.parameters import add_state_gradient, state_scores
from skstruct.kernels.vector.rows import add_matrix


@jit
def chain_scores(features, chain, scale, first, last, out):
    """Write the scores of the rows ``first:last``, one sequence, with weights times `scale`."""
    n_labels = chain.transition.shape[0]
    state_scores(features, chain.weights, n_labels, first, last, out)
    for t in range(last - first):
        for j in range(n_labels):
            out[t, j] = scale * out[t, j] + chain.intercept[j]
    add_boundary(chain.start, chain.end, out, last - first)


@jit
def chain_transition_scores(features, chain, scale, first, last, out):
    """Write the transition scores of one sequence into its `transition_buffer`."""
    n_transitions = chain.transition.size
    scores = out.reshape(out.shape[0], n_transitions)
    bias = chain.transition.reshape(n_transitions)
    state_scores(
        features.transitions, chain.transition_weights, n_transitions, first + 1, last, scores[1:]
    )
    for t in range(1, last - first):
        for p in range(n_transitions):
            scores[t, p] = scale * scores[t, p] + bias[p]


@lean_jit
def add_transition_gradient(features, first, last, scale, differences, out):
    """Add the differences of each token's transitions to the gradient; reset them to zero.

    The gradient of the weights of features is divided by the scale.
    """
    n_transitions = out.transition.size
    flat = differences.reshape(differences.shape[0], n_transitions)
    for t in range(1, last - first):
        add_matrix(differences[t], out.transition)
        for p in range(n_transitions):
            flat[t, p] /= scale
    add_state_gradient(
        features.transitions, flat[1:], n_transitions, first + 1, last, out.transition_weights
    )
    for t in range(last - first):
        for p in range(n_transitions):
            flat[t, p] = 0.0


@jit
def nll_gradient(
    features, counted, offsets, first, last, labels, partial, sequence_weight, chain, curved, out
):
    """Weighted sum of the negative log-likelihoods of the sequences ``first:last``.

    Parameters
    ----------
    features : StateFeatures
        The tokens.
    counted : StateFeatures
        The same, or with squared values for the Hessian: the factors of the gradient's rows.
    chain : Chain
        The weights; ``chain.weights`` is the vector of state weights.
    labels : ndarray of shape (n_rows,)
        Gold labels; where they are unknown, as `subtract_agreeing` takes them.
    partial : True or None
        True if some labels may be unknown. None if all are known: numba then leaves the other
        branches out, so each kind of data compiles only what it needs.
    curved : bool
        Estimate the diagonal of the Hessian instead of the gradient. For state weights it is exact
        but for the correlation of a feature's tokens; counts of transitions are taken for Poisson.
    out : Chain
        The gradient or the diagonal is added here.
    """
    length, n_labels = longest(offsets, first, last), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    marginals = np.empty((length, n_labels))
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
        weight, gold = sequence_weight[i], labels[a:b]
        chain_scores(features, chain, 1.0, a, b, scores)
        if len(chain) > N_PLAIN:
            chain_transition_scores(features, chain, 1.0, a, b, transitions.log)
        gold_score = 0.0
        if partial is not None:
            kept = scores[: b - a].copy()
        elif not curved:
            gold_score = path_score(scores, b - a, transitions.log, gold)
        log_z = forward_backward(scores, b - a, transitions, marginals, scale, weight, slabs)
        if partial is not None:
            gold_score = subtract_agreeing(kept, gold, transitions, weight, marginals, slabs)
        elif curved:
            to_variances(marginals, b - a, weight)
        else:
            subtract_gold(marginals, gold, weight, differences)
        nll += weight * (log_z - gold_score)
        add_biases(marginals, b - a, out)
        add_state_gradient(counted, marginals, n_labels, a, b, out.weights)
        if len(chain) > N_PLAIN:
            add_transition_gradient(counted, a, b, 1.0, differences, out)
    if len(chain) == N_PLAIN:
        finish_transition_marginals(slabs, transitions)
        add_matrix(slabs[0], out.transition)
    return nll


@lean_jit
def to_variances(marginals, length, weight):
    """Turn marginals into the variances of the labels, times `weight`."""
    for t in range(length):
        for j in range(marginals.shape[1]):
            p = marginals[t, j]
            marginals[t, j] = weight * max(p * (1.0 - p), 0.0)


@lean_jit
def subtract_gold(marginals, gold, weight, difference):
    """Turn marginals into ``weight * (marginals - gold)``, and subtract the gold transitions."""
    for t in range(gold.shape[0]):
        marginals[t, gold[t]] -= 1.0
        for j in range(marginals.shape[1]):
            marginals[t, j] *= weight
        if t > 0:
            add_transition(difference, t, gold[t - 1], gold[t], -weight)


@lean_jit
def add_biases(difference, length, out):
    """Add the contribution of one sequence to the biases."""
    for t in range(length):
        for j in range(difference.shape[1]):
            out.intercept[j] += difference[t, j]
    for j in range(difference.shape[1]):
        out.start[j] += difference[0, j]
        out.end[j] += difference[length - 1, j]
