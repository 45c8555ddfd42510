"""Negative log-likelihood of a CRF and its gradient."""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.forward_backward import finish_pairs, forward_backward
from skstruct.kernels.parameters import add_state_gradient, state_scores
from skstruct.kernels.scores import add_boundary, longest, path_score


@jit
def add_matrix(matrix, out):
    """``out += matrix``."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            out[i, j] += matrix[i, j]


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
def nll_gradient(features, offsets, first, last, labels, sequence_weight, chain, transitions, out):
    """Weighted sum of the negative log-likelihoods of the sequences ``first:last``.

    Parameters
    ----------
    features : StateFeatures
        The tokens.
    chain : Chain
        The weights; ``chain.weights`` is the vector of state weights.
    transitions : Transitions
        ``chain.transition``, prepared.
    out : Chain
        The gradient is added here.
    """
    n_labels = chain.transition.shape[0]
    length = longest(offsets, first, last)
    scores = np.empty((length, n_labels))
    marginals = np.empty((length, n_labels))
    scale = np.empty(length)
    pairs = np.zeros((1, n_labels, n_labels))
    nll = 0.0
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        if a == b:
            continue
        weight = sequence_weight[i]
        gold = labels[a:b]
        chain_scores(features, chain, 1.0, a, b, scores)
        gold_score = path_score(scores, b - a, chain.transition, gold)
        log_z = forward_backward(scores, b - a, transitions, marginals, scale, weight, pairs)
        nll += weight * (log_z - gold_score)
        subtract_gold(marginals, gold, weight, out)
        add_biases(marginals, b - a, out)
        add_state_gradient(features, marginals, n_labels, a, b, out.weights)
    finish_pairs(pairs, transitions)
    add_matrix(pairs[0], out.transition)
    return nll


@jit
def subtract_gold(marginals, gold, weight, out):
    """Turn marginals into ``weight * (marginals - gold)``, and subtract the gold pairs."""
    for t in range(gold.shape[0]):
        marginals[t, gold[t]] -= 1.0
        for j in range(marginals.shape[1]):
            marginals[t, j] *= weight
        if t > 0:
            out.transition[gold[t - 1], gold[t]] -= weight


@jit
def add_biases(difference, length, out):
    """Add what the tokens of one sequence contribute to the biases."""
    for t in range(length):
        for j in range(difference.shape[1]):
            out.intercept[j] += difference[t, j]
    for j in range(difference.shape[1]):
        out.start[j] += difference[0, j]
        out.end[j] += difference[length - 1, j]


@jit
def nll_curvature(
    features, squares, offsets, first, last, sequence_weight, chain, transitions, out
):
    """Estimate the diagonal of the Hessian of the same sum, and add it to ``out``.

    Exact for state weights but for the correlation of a feature's tokens; of pairs, the counts
    are taken for Poisson. ``squares`` are the features with their values squared, the other
    parameters are those of `nll_gradient`.
    """
    n_labels = chain.transition.shape[0]
    length = longest(offsets, first, last)
    scores = np.empty((length, n_labels))
    marginals = np.empty((length, n_labels))
    scale = np.empty(length)
    pairs = np.zeros((1, n_labels, n_labels))
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        if a == b:
            continue
        weight = sequence_weight[i]
        chain_scores(features, chain, 1.0, a, b, scores)
        forward_backward(scores, b - a, transitions, marginals, scale, weight, pairs)
        for t in range(b - a):
            for j in range(n_labels):
                p = marginals[t, j]
                marginals[t, j] = weight * max(p * (1.0 - p), 0.0)
        add_biases(marginals, b - a, out)
        add_state_gradient(squares, marginals, n_labels, a, b, out.weights)
    finish_pairs(pairs, transitions)
    add_matrix(pairs[0], out.transition)
