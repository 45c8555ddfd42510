"""Negative log-likelihood of a CRF and its gradient."""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.decode import longest
from skstruct.kernels.forward_backward import finish_pairs, forward_backward
from skstruct.kernels.parameters import add_state_gradient, state_scores
from skstruct.kernels.scores import add_boundary, path_score


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
        s = sequence_weight[i]
        if s == 0.0 or a == b:
            continue
        gold = labels[a:b]
        state_scores(features, chain.weights, n_labels, a, b, scores)
        for t in range(b - a):
            for j in range(n_labels):
                scores[t, j] += chain.intercept[j]
        add_boundary(chain.start, chain.end, scores, b - a)
        gold_score = path_score(scores, b - a, chain.transition, gold)
        log_z = forward_backward(scores, b - a, transitions, marginals, scale, s, pairs)
        nll += s * (log_z - gold_score)
        subtract_gold(marginals, gold, s, out)
        add_state_gradient(features, marginals, n_labels, a, b, out.weights)
    finish_pairs(pairs, transitions)
    for i in range(n_labels):
        for j in range(n_labels):
            out.transition[i, j] += pairs[0, i, j]
    return nll


@jit
def subtract_gold(marginals, gold, weight, out):
    """Turn marginals into ``weight * (marginals - gold)``, and add what concerns no feature."""
    n_labels = out.transition.shape[0]
    length = gold.shape[0]
    for t in range(length):
        d = marginals[t]
        d[gold[t]] -= 1.0
        for j in range(n_labels):
            d[j] *= weight
            out.intercept[j] += d[j]
        if t > 0:
            out.transition[gold[t - 1], gold[t]] -= weight
    for j in range(n_labels):
        out.start[j] += marginals[0, j]
        out.end[j] += marginals[length - 1, j]
