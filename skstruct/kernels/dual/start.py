"""Initial dual variables: a mixture of the gold labels and the marginals of some weights.

``mu = eta nu + (1 - eta) gold``, with one ``eta`` for all sequences (Le Priol et al., 2018,
equation 21, with ``nu`` for the uniform distribution). It must be small where ``nu`` is far from
the optimum, as the conjugate weights would be large.
"""

import numpy as np

from skstruct.chain.dense import separate
from skstruct.chain.forward_backward import forward_backward
from skstruct.chain.scores import add_cost, longest, mean_cost, sequence_scores, value_of
from skstruct.kernels._jit import jit
from skstruct.kernels.dual.divergence import FLOOR, entropy, fused_jit, log_positive
from skstruct.kernels.dual.problem import node_sign
from skstruct.kernels.vector.rows import sum_in_lanes


@jit
def set_marginals(problem, first, last, chain, transitions, dual):
    """Set the dual variables of the sequences ``first:last`` to the marginals of a chain."""
    n_labels = chain.transition.shape[0]
    length = longest(problem.offsets, first, last)
    scores = np.empty((length, n_labels))
    scale = np.empty(length)
    factors, slabs = separate(transitions), np.empty((length - 1, n_labels, n_labels))
    for i in range(first, last):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        sequence_scores(problem.rows, a, b, chain, scores)
        add_cost(problem.cost, problem.labels[a:b], scores)
        used = slabs[: b - a - 1]
        for slab in used:
            for y in range(n_labels):
                for j in range(n_labels):
                    slab[y, j] = 0.0
        forward_backward(scores, b - a, factors, dual.node[a:b], scale, 1.0, used)
        for t in range(1, b - a):
            for y in range(n_labels):
                for j in range(n_labels):
                    dual.transition[a - i + t - 1, y * n_labels + j] = max(used[t - 1, y, j], FLOOR)


@fused_jit
def entropy_slope(nu, gold, eta, terms):
    """Derivative by `eta` of the entropy of ``eta nu + (1 - eta) gold`` on one clique."""
    size = nu.shape[0]
    for k in range(size):
        n = np.float64(nu[k])
        terms[k] = -n * log_positive(max(eta * n, FLOOR))
    slope = sum_in_lanes(terms[:size])
    n = np.float64(nu[gold])
    slope += n * log_positive(max(eta * n, FLOOR))
    return slope - (n - 1.0) * log_positive(max(eta * n + 1.0 - eta, FLOOR))


@jit
def start_slope(problem, first, last, dual, eta):
    """Derivative by `eta` of the weighted entropies of the sequences ``first:last``."""
    n_labels = dual.node.shape[1]
    terms = np.empty(n_labels * n_labels)
    total = 0.0
    for i in range(first, last):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        slope = mean_cost(problem.cost, problem.labels[a:b], dual.node[a:b])
        for t in range(a, b):
            gold = problem.labels[t]
            slope += node_sign(t - a, b - a) * entropy_slope(dual.node[t], gold, eta, terms)
            if t > a:
                gold += n_labels * problem.labels[t - 1]
                slope += entropy_slope(dual.transition[t - i - 1], gold, eta, terms)
        total += problem.sample_weight[i] * slope
    return total


@jit
def mix_with_gold(problem, first, last, dual, eta):
    """Replace ``nu`` by ``eta nu + (1 - eta) gold`` in the sequences ``first:last``.

    Their entropies are computed as well.
    """
    n_labels = dual.node.shape[1]
    terms = np.empty(n_labels * n_labels)
    for i in range(first, last):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        total = 0.0
        for t in range(a, b):
            gold = problem.labels[t]
            total += node_sign(t - a, b - a) * mix_clique(dual.node[t], gold, eta, terms)
            if t > a:
                gold += n_labels * problem.labels[t - 1]
                total += mix_clique(dual.transition[t - i - 1], gold, eta, terms)
        dual.entropy[i] = total + mean_cost(problem.cost, problem.labels[a:b], dual.node[a:b])


@jit
def mix_clique(mu, gold, eta, terms):
    """Do the same for one clique; return its entropy."""
    for k in range(mu.shape[0]):
        mu[k] = max(eta * mu[k], FLOOR)
    mu[gold] += 1.0 - eta
    return entropy(mu, terms)


@jit
def squared_radii(problem, distinct):
    """Bounds on the squared distance between the features of any two labellings.

    A token changes the weights' features by at most ``sqrt(2)`` times its own, and so do
    transitions and biases.
    """
    rows = problem.rows
    n_sequences = problem.offsets.shape[0] - 1
    radii = np.empty(n_sequences)
    total = np.empty(longest(distinct.start, 0, n_sequences))
    for i in range(n_sequences):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        n_distinct = distinct.start[i + 1] - distinct.start[i]
        for u in range(n_distinct):
            total[u] = 0.0
        for k in range(rows.indptr[a], rows.indptr[b]):
            total[distinct.position[k]] += abs(value_of(rows.data, k))
        radius = (b - a - 1.0) ** 2
        for u in range(n_distinct):
            radius += total[u] * total[u]
        if problem.fit_intercept:
            radius += (b - a) ** 2 + 2.0
        radii[i] = 2.0 * radius
    return radii
