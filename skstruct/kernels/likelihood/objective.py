"""Negative log-likelihood of a CRF, its gradient, and the diagonal of its Hessian.

Where some labels are unknown, the likelihood is that of all labellings that agree with the others.
"""

import numpy as np

from skstruct.chain.forward_backward import forward_backward, subtract_agreeing
from skstruct.chain.protocol import edges_of, factors_of, finish, zero_counts
from skstruct.chain.scores import add_boundary, longest, path_score
from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.likelihood.parameters import add_state_gradient, state_scores
from skstruct.kernels.likelihood.transitions import (
    add_counts,
    add_gold,
    end_sequence,
    write_edges,
)


@jit
def chain_scores(features, chain, first, last, out):
    """Write the scores of the rows ``first:last``, one sequence."""
    n_labels = chain.transition.shape[0]
    state_scores(features, chain.weights, n_labels, first, last, out)
    for t in range(last - first):
        for j in range(n_labels):
            out[t, j] += chain.intercept[j]
    add_boundary(chain.start, chain.end, out, last - first)


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
    chain : Chain, TransitionChain, ListedChain or SecondOrderChain
        The weights; ``chain.weights`` is the vector of state weights. Transitions that are not
        listed get no gradient.
    labels : ndarray of shape (n_rows,)
        Gold labels; where they are unknown, as `subtract_agreeing` takes them.
    partial : True or None
        True if some labels may be unknown. None if all are known: numba then leaves the other
        branches out, so each kind of data compiles only what it needs.
    curved : bool
        Estimate the diagonal of the Hessian instead of the gradient. For state weights it is exact
        but for the correlation of a feature's tokens; counts of transitions are taken for Poisson.
    out : Chain, TransitionChain or SecondOrderChain
        The gradient or the diagonal is added here.
    """
    length, n_labels = longest(offsets, first, last), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    marginals = np.empty((length, n_labels))
    scale = np.empty(length)
    factors = factors_of(edges_of(chain, length), length)
    edges = factors.edges
    counts = zero_counts(edges, length)
    nll = 0.0
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        if a == b:
            continue
        weight, gold = sequence_weight[i], labels[a:b]
        chain_scores(features, chain, a, b, scores)
        write_edges(chain, features, a, b, edges)
        gold_score = 0.0
        if partial is not None:
            kept = scores[: b - a].copy()
        elif not curved:
            gold_score = path_score(scores, b - a, edges, gold)
        log_z = forward_backward(scores, b - a, factors, marginals, scale, weight, counts)
        if partial is not None:
            gold_score = subtract_agreeing(kept, gold, factors, weight, marginals, counts)
        elif curved:
            to_variances(marginals, b - a, weight)
        else:
            subtract_gold(marginals, gold, weight, counts, out)
        nll += weight * (log_z - gold_score)
        add_biases(marginals, b - a, out)
        add_state_gradient(counted, marginals, n_labels, a, b, out.weights)
        end_sequence(out, counted, a, b, counts)
    finish(factors, counts)
    add_counts(factors, counts, out)
    return nll


@lean_jit
def to_variances(marginals, length, weight):
    """Turn marginals into the variances of the labels, times `weight`."""
    for t in range(length):
        for j in range(marginals.shape[1]):
            p = marginals[t, j]
            marginals[t, j] = weight * max(p * (1.0 - p), 0.0)


@lean_jit
def subtract_gold(marginals, gold, weight, counts, out):
    """Turn marginals into ``weight * (marginals - gold)``, and subtract the gold transitions."""
    for t in range(gold.shape[0]):
        marginals[t, gold[t]] -= 1.0
        for j in range(marginals.shape[1]):
            marginals[t, j] *= weight
        if t > 0:
            add_gold(out, counts, t, gold, -weight)


@lean_jit
def add_biases(difference, length, out):
    """Add the contribution of one sequence to the biases."""
    for t in range(length):
        for j in range(difference.shape[1]):
            out.intercept[j] += difference[t, j]
    for j in range(difference.shape[1]):
        out.start[j] += difference[0, j]
        out.end[j] += difference[length - 1, j]
