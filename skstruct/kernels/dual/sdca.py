"""Stochastic dual coordinate ascent for CRFs (Le Priol et al., 2018, algorithm 2).

The dual variable of a sequence is a distribution over its labellings, stored as its node and
transition marginals ``mu``. The weights are conjugate to all of them,

    w = sum_i s_i (F_i(gold) - E_mu F_i) / l2.

A cost of wrong labels is a score that is not learnt: the marginals ``nu`` include it, and the term
of a sequence in the dual objective is its entropy plus its expected cost.

An update computes the marginals ``nu`` under the current weights and replaces ``mu`` by
``mu + gamma (nu - mu)``, where ``gamma`` in [0, 1] maximises the dual objective (equation 15).
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import prepare_transitions, separate
from skstruct.chain.forward_backward import log_forward_backward, scaled_forward
from skstruct.chain.protocol import room_sum
from skstruct.chain.scores import add_cost, longest, mean_cost, sequence_scores
from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.dual.divergence import FLOOR, compare_clique, entropy_slopes, move
from skstruct.kernels.dual.problem import (
    Difference,
    add_difference,
    collect_features,
    draw_sequence,
    new_difference,
    node_sign,
    set_priority,
)
from skstruct.kernels.vector.rows import vector_matrix

# So many bisections alone reach full precision.
MAX_TRIALS = 50


class Dual(NamedTuple):
    """The dual variables, and the entropy and duality gap of each sequence.

    Where there is a cost, the entropy is what the dual objective has in its place: entropy plus
    expected cost. The transition into token ``t`` of sequence ``i`` is at ``t - 1 - i``.
    """

    node: np.ndarray  # (n_rows, n_labels)
    transition: np.ndarray  # (n_rows - n_sequences, n_labels**2), in single or double precision
    entropy: np.ndarray  # (n_sequences,)
    gap: np.ndarray  # (n_sequences,), at the last visit


class Sampling(NamedTuple):
    """Sampling of the next sequence."""

    tree: np.ndarray  # priorities, see skstruct.kernels.dual.problem
    factor: np.ndarray  # (n_sequences,), priority divided by gap; empty if priorities are constant
    largest: bool  # take the largest priority instead of drawing in proportion
    nonuniformity: float  # probability of sampling by priority


class Oracle(NamedTuple):
    """Workspace: marginals of one sequence under the current weights.

    The transition marginals are ``left[t - 1, i] * middle[(t - 1) % n, i, j] * right[t, j]``, where
    ``middle`` has one slab that all transitions share, or one for each if the scores are extreme.
    """

    scores: np.ndarray  # (length, n_labels)
    left: np.ndarray
    right: np.ndarray
    node: np.ndarray
    scale: np.ndarray  # (length,)


class Step(NamedTuple):
    """Workspace: the direction ``nu - mu`` of an update."""

    nu: np.ndarray  # transition marginals of the weights, flat
    excess: np.ndarray  # ratios ``mu / nu - 1`` of transition marginals, flat
    node_excess: np.ndarray  # (length, n_labels), and of node marginals
    terms: np.ndarray  # (2, n_labels ** 2), terms of a sum over a clique
    difference: Difference


@jit
def oracle_marginals(problem, chain, transitions, a, b, oracle):
    """Compute the marginals of the rows ``a:b``; return the middle factors of transitions."""
    length = b - a
    n_labels = chain.transition.shape[0]
    sequence_scores(problem.rows, a, b, chain, oracle.scores)
    add_cost(problem.cost, problem.labels[a:b], oracle.scores)
    factors, exact = separate(transitions), False
    if transitions.safe:
        room, forbids = room_sum(factors, n_labels), transitions.forbids
        _, exact = scaled_forward(
            oracle.scores, length, factors, forbids, room, oracle.left, oracle.scale
        )
    if not exact:
        slabs = np.zeros((max(length - 1, 1), n_labels, n_labels))
        log_forward_backward(oracle.scores, length, factors, oracle.node, 1.0, slabs)
        for t in range(length):
            for j in range(n_labels):
                oracle.left[t, j] = oracle.right[t, j] = 1.0
        return slabs
    backward_factors(oracle, length, transitions.linear_t)
    return transitions.linear.reshape((1, n_labels, n_labels))


@lean_jit
def backward_factors(oracle, length, linear_t):
    """Compute node marginals and right factors of transitions from the forward vectors."""
    n_labels = linear_t.shape[0]
    # No transition leads into the first token, so its row serves as workspace.
    beta = oracle.right[0]
    for j in range(n_labels):
        beta[j] = 1.0
    for t in range(length - 1, -1, -1):
        a, f = oracle.left[t], oracle.scores[t]
        q, node = oracle.right[t], oracle.node[t]
        for j in range(n_labels):
            node[j] = a[j] * beta[j]
        if t > 0:
            for j in range(n_labels):
                q[j] = f[j] * beta[j] * oracle.scale[t]
            vector_matrix(q, linear_t, beta)


@lean_jit
def compare_sequence(mu_node, mu_transition, oracle, middle, step):
    """Fill in the step from ``mu`` to ``nu``; return the gap and the slope at ``gamma = 0``."""
    length, n_labels = mu_node.shape
    size = n_labels * n_labels
    node, transition = step.difference.node, step.difference.transition
    gap, slope = 0.0, 0.0
    for k in range(size):
        transition[k] = 0.0
    for t in range(length):
        for j in range(n_labels):
            oracle.node[t, j] = max(oracle.node[t, j], FLOOR)
            node[t, j] = 0.0
        g, s = compare_clique(mu_node[t], oracle.node[t], step.node_excess[t], node[t], step.terms)
        sign = node_sign(t, length)
        gap += sign * g
        slope += sign * s
        if t > 0:
            slab = middle[(t - 1) % middle.shape[0]]
            nu = step.nu[(t - 1) * size : t * size]
            for i in range(n_labels):
                x = oracle.left[t - 1, i]
                for j in range(n_labels):
                    nu[i * n_labels + j] = max(x * slab[i, j] * oracle.right[t, j], FLOOR)
            excess = step.excess[(t - 1) * size : t * size]
            g, s = compare_clique(mu_transition[t - 1], nu, excess, transition, step.terms)
            gap += g
            slope += s
    return max(gap, 0.0), slope


@lean_jit
def slopes(step, oracle, length, square, gamma):
    """First two derivatives of the dual objective, divided by the weight of the sequence."""
    size = step.difference.transition.shape[0]
    rest = 1.0 - gamma
    first, second = 0.0, 0.0
    for t in range(length):
        sign = node_sign(t, length)
        if sign != 0.0:
            f, s = entropy_slopes(oracle.node[t], step.node_excess[t], rest, step.terms)
            first += sign * f
            second += sign * s
        if t > 0:
            a, b = (t - 1) * size, t * size
            f, s = entropy_slopes(step.nu[a:b], step.excess[a:b], rest, step.terms)
            first += f
            second += s
    return first - gamma * square, second - square


@lean_jit
def line_search(step, oracle, length, slope, square, tol):
    """Step size that maximises the dual objective.

    Newton's method on the derivative, with bisection where it would leave the bracket. The
    derivative is ``slope`` at 0 and ``-square`` at 1; the first trial is the zero of the line
    through both.
    """
    if not slope > 0.0:
        return 0.0
    if not square > 0.0:
        return 1.0
    low, high = 0.0, 1.0
    gamma = slope / (slope + square)
    for _ in range(MAX_TRIALS):
        first, second = slopes(step, oracle, length, square, gamma)
        if first > 0.0:
            low = gamma
        else:
            high = gamma
        following = gamma - first / second
        if not low < following < high:
            following = 0.5 * (low + high)
        moved = abs(following - gamma)
        gamma = following
        if moved < tol:
            break
    return gamma


@jit(inline="always")
def update(problem, distinct, i, dual, chain, oracle, step, tol):
    """Ascend in the dual variables of sequence ``i``."""
    a, b = problem.offsets[i], problem.offsets[i + 1]
    length = b - a
    node, transition = dual.node[a:b], dual.transition[a - i : b - 1 - i]
    transitions = prepare_transitions(chain.transition)
    middle = oracle_marginals(problem, chain, transitions, a, b, oracle)
    gap, slope = compare_sequence(node, transition, oracle, middle, step)
    dual.gap[i] = gap
    scale = problem.sample_weight[i] / problem.l2
    square = scale * collect_features(problem, distinct, i, step.difference)
    gamma = line_search(step, oracle, length, slope, square, tol)
    if gamma == 0.0:
        return
    total = 0.0
    size = step.difference.transition.shape[0]
    for t in range(length):
        total += node_sign(t, length) * move(node[t], oracle.node[t], gamma, step.terms[0])
        if t > 0:
            nu = step.nu[(t - 1) * size : t * size]
            total += move(transition[t - 1], nu, gamma, step.terms[0])
    dual.entropy[i] = total + mean_cost(problem.cost, problem.labels[a:b], node)
    add_difference(problem, distinct, i, step.difference, -gamma * scale, chain)


@jit
def sdca_updates(problem, distinct, order, draws, dual, chain, sampling, tol):
    """Update the sequences in `order`, then one for each of the uniform numbers `draws`.

    Parameters
    ----------
    problem : Problem
        The training set.
    distinct : Distinct
        Distinct features of each sequence.
    order : ndarray of int
        Sequences.
    draws : ndarray
        Numbers below 1.
    dual : Dual
        The dual variables, changed.
    chain : Chain
        The weights conjugate to them, changed.
    sampling : Sampling
        Turns draws into sequences; its priorities follow the gaps.
    tol : float
        Precision of the line search.
    """
    n_labels = chain.transition.shape[0]
    n_sequences = dual.gap.shape[0]
    length = longest(problem.offsets, 0, n_sequences)
    size = n_labels * n_labels
    oracle = Oracle(
        np.empty((length, n_labels)),
        np.empty((length, n_labels)),
        np.empty((length, n_labels)),
        np.empty((length, n_labels)),
        np.empty(length),
    )
    step = Step(
        np.empty((length - 1) * size),
        np.empty((length - 1) * size),
        np.empty((length, n_labels)),
        np.empty((2, size)),
        new_difference(problem, distinct, n_labels),
    )
    for k in range(order.shape[0] + draws.shape[0]):
        if k < order.shape[0]:
            i = order[k]
        else:
            u = draws[k - order.shape[0]]
            i = draw_sequence(
                sampling.tree, n_sequences, sampling.nonuniformity, u, sampling.largest
            )
        update(problem, distinct, i, dual, chain, oracle, step, tol)
        if sampling.factor.shape[0] > 0:
            set_priority(sampling.tree, i, sampling.factor[i] * dual.gap[i], sampling.largest)
