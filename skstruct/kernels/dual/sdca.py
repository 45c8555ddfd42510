"""Stochastic dual coordinate ascent for CRFs: the update of one sequence, and a series of them.

The dual variable of a sequence is a distribution over its labellings, kept as its node and
transition marginals ``mu``. The weights are conjugate to all of them: ``w = sum_i s_i (F(gold) -
E_mu F) / l2``. An update asks for the marginals ``nu`` under the current weights, and goes from
``mu`` towards them as far as the dual objective grows; the weights are kept in step.
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.forward_backward import (
    log_forward_backward,
    prepare_transitions,
    scaled_forward,
)
from skstruct.kernels.chain.scores import Rows, longest, sequence_scores
from skstruct.kernels.dual.divergence import FLOOR, compare_clique, entropy_slopes, jit_sums, move
from skstruct.kernels.dual.sampling import draw_sequence, set_priority
from skstruct.kernels.vector.rows import vector_matrix

# Bisection alone gets to full precision with as many passes.
MAX_TRIALS = 50


class Problem(NamedTuple):
    """What is to be learnt from; every sequence has a token and a positive weight."""

    rows: Rows
    offsets: np.ndarray  # (n_sequences + 1,)
    labels: np.ndarray  # (n_rows,)
    sample_weight: np.ndarray  # (n_sequences,)
    l2: float
    fit_intercept: bool


class Distinct(NamedTuple):
    """The distinct features of each sequence."""

    start: np.ndarray  # (n_sequences + 1,)
    features: np.ndarray  # (start[-1],) int32
    position: np.ndarray  # (nnz,) int32, place of an occurrence's feature among its sequence's


class Dual(NamedTuple):
    """The dual variables, and what is known of each sequence's block.

    The transition into token ``t`` of sequence ``i`` is at ``t - 1 - i``.
    """

    node: np.ndarray  # (n_rows, n_labels)
    transition: np.ndarray  # (n_rows - n_sequences, n_labels**2), in single or double precision
    entropy: np.ndarray  # (n_sequences,)
    gap: np.ndarray  # (n_sequences,) as of the last visit


class Sampling(NamedTuple):
    """How the next sequence is chosen."""

    tree: np.ndarray  # priorities, see skstruct.kernels.dual.sampling
    factor: np.ndarray  # (n_sequences,) the priority is this times the gap; empty if it stays
    largest: bool  # whether the largest priority is taken, instead of drawing in proportion
    nonuniformity: float  # the chance that priorities are asked at all


class Oracle(NamedTuple):
    """Workspace: marginals of one sequence under the current weights.

    The transition marginals are ``left[t - 1, i] * middle[(t - 1) % n, i, j] * right[t, j]``, where
    ``middle`` has one slab for all transitions, or one for each where the scores are extreme.
    """

    scores: np.ndarray  # (length, n_labels)
    left: np.ndarray
    right: np.ndarray
    node: np.ndarray
    scale: np.ndarray  # (length,)


class Step(NamedTuple):
    """Workspace: what an update is to change, before its length is known."""

    nu: np.ndarray  # transition marginals of the weights, flat
    excess: np.ndarray  # transition marginals of the dual variable over these, less one
    node_excess: np.ndarray  # (length, n_labels)
    node: np.ndarray  # (length, n_labels), difference of node marginals
    transition: np.ndarray  # (n_labels**2,), of transition marginals, summed
    features: np.ndarray  # (n_distinct, n_labels), of expected features


@jit
def renumber_features(rows, offsets, n_features):
    """Number the features as they first appear, and find the distinct ones of each sequence.

    Weights of features that first appear next to each other then lie next to each other, and
    reading them waits less for memory.

    Returns
    -------
    rank : ndarray of shape (n_features,)
        Number of each feature; those that do not appear come last.
    rows : Rows
        The tokens, with numbers in place of features.
    distinct : Distinct
    """
    n_sequences = offsets.shape[0] - 1
    rank = np.full(n_features, -1, np.int32)
    seen_in = np.full(n_features, -1, np.int32)
    place = np.empty(n_features, np.int32)
    indices = np.empty(rows.indices.shape[0], np.int32)
    position = np.empty(rows.indices.shape[0], np.int32)
    features = np.empty(rows.indices.shape[0], np.int32)
    start = np.zeros(n_sequences + 1, np.int64)
    n, n_ranked = 0, 0
    for i in range(n_sequences):
        for k in range(rows.indptr[offsets[i]], rows.indptr[offsets[i + 1]]):
            f = rows.indices[k]
            if rank[f] < 0:
                rank[f] = n_ranked
                n_ranked += 1
            if seen_in[f] != i:
                seen_in[f] = i
                place[f] = n - start[i]
                features[n] = rank[f]
                n += 1
            indices[k] = rank[f]
            position[k] = place[f]
        start[i + 1] = n
    for f in range(n_features):
        if rank[f] < 0:
            rank[f] = n_ranked
            n_ranked += 1
    return rank, Rows(rows.indptr, indices, rows.data), Distinct(start, features, position)


@jit
def oracle_marginals(problem, chain, transitions, a, b, oracle):
    """Marginals of the sequence of rows ``a:b``; returns the middle factors of the transitions."""
    length = b - a
    n_labels = chain.transition.shape[0]
    sequence_scores(problem.rows, a, b, chain, oracle.scores)
    right = False
    if transitions.scaled:
        _, right = scaled_forward(
            oracle.scores, length, transitions, transitions.forbids, oracle.left, oracle.scale
        )
    if not right:
        slabs = np.zeros((max(length - 1, 1), n_labels, n_labels))
        no_factors = np.empty((0, 0))
        log_forward_backward(
            oracle.scores, length, transitions.log, oracle.node, 1.0, slabs, no_factors
        )
        for t in range(length):
            for j in range(n_labels):
                oracle.left[t, j] = oracle.right[t, j] = 1.0
        return slabs
    backward_factors(oracle, length, transitions.linear_t)
    return transitions.linear.reshape((1, n_labels, n_labels))


@lean_jit
def backward_factors(oracle, length, linear_t):
    """Node marginals and right factors of the transitions, from the forward vectors."""
    n_labels = linear_t.shape[0]
    # The first token has no transition into it, so this row is free.
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
    """Fill in the step from ``mu`` to ``nu``; return the gap, and the slope at its start."""
    length, n_labels = mu_node.shape
    size = n_labels * n_labels
    gap, slope = 0.0, 0.0
    for k in range(size):
        step.transition[k] = 0.0
    for t in range(length):
        for j in range(n_labels):
            oracle.node[t, j] = max(oracle.node[t, j], FLOOR)
            step.node[t, j] = 0.0
        g, s = compare_clique(mu_node[t], oracle.node[t], step.node_excess[t], step.node[t])
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
            g, s = compare_clique(mu_transition[t - 1], nu, excess, step.transition)
            gap += g
            slope += s
    return max(gap, 0.0), slope


@jit(inline="always")
def node_sign(t, length):
    """How often a token counts in sums over cliques and separators."""
    if length == 1:
        return 1.0
    return 0.0 if t == 0 or t == length - 1 else -1.0


@lean_jit
def collect_features(problem, distinct, i, step):
    """Differences of the expected features of sequence ``i``; returns their squared norm."""
    rows = problem.rows
    a, b = problem.offsets[i], problem.offsets[i + 1]
    n_distinct = distinct.start[i + 1] - distinct.start[i]
    n_labels = step.node.shape[1]
    for u in range(n_distinct):
        for j in range(n_labels):
            step.features[u, j] = 0.0
    unit = rows.data.shape[0] == 0
    for t in range(b - a):
        d = step.node[t]
        for k in range(rows.indptr[a + t], rows.indptr[a + t + 1]):
            x = 1.0 if unit else rows.data[k]
            row = step.features[distinct.position[k]]
            for j in range(n_labels):
                row[j] += x * d[j]
    total = squared_norm(step.transition)
    for u in range(n_distinct):
        total += squared_norm(step.features[u])
    if problem.fit_intercept:
        for j in range(n_labels):
            bias = 0.0
            for t in range(b - a):
                bias += step.node[t, j]
            total += bias * bias
        total += squared_norm(step.node[0]) + squared_norm(step.node[b - a - 1])
    return total


@jit_sums
def squared_norm(x):
    """Squared norm of a vector."""
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k] * x[k]
    return total


@lean_jit
def slopes(step, oracle, length, square, gamma):
    """Derivatives of the dual objective along the step, over the weight of the sequence."""
    size = step.transition.shape[0]
    rest = 1.0 - gamma
    n = (length - 1) * size
    first, second = entropy_slopes(step.nu[:n], step.excess[:n], rest)
    for t in range(length):
        sign = node_sign(t, length)
        if sign != 0.0:
            f, s = entropy_slopes(oracle.node[t], step.node_excess[t], rest)
            first += sign * f
            second += sign * s
    return first - gamma * square, second - square


@lean_jit
def line_search(step, oracle, length, slope, square, tol):
    """Length of the step at which the dual objective is largest.

    Newton's method on the derivative, kept within the bracket that the signs seen so far leave,
    by bisection where it would leave that. The derivative is ``slope`` at 0 and ``-square`` at 1;
    the first trial is where the line through these is zero.
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
    """Ascend in the block of sequence ``i``."""
    a, b = problem.offsets[i], problem.offsets[i + 1]
    length = b - a
    node, transition = dual.node[a:b], dual.transition[a - i : b - 1 - i]
    transitions = prepare_transitions(chain.transition)
    middle = oracle_marginals(problem, chain, transitions, a, b, oracle)
    gap, slope = compare_sequence(node, transition, oracle, middle, step)
    dual.gap[i] = gap
    scale = problem.sample_weight[i] / problem.l2
    square = scale * collect_features(problem, distinct, i, step)
    gamma = line_search(step, oracle, length, slope, square, tol)
    if gamma == 0.0:
        return
    total = 0.0
    size = step.transition.shape[0]
    for t in range(length):
        total += node_sign(t, length) * move(node[t], oracle.node[t], gamma)
        if t > 0:
            total += move(transition[t - 1], step.nu[(t - 1) * size : t * size], gamma)
    dual.entropy[i] = total
    move_weights(problem, distinct, i, step, -gamma * scale, chain)


@lean_jit
def move_weights(problem, distinct, i, step, factor, chain):
    """Add the differences of expected features, times `factor`, to the weights."""
    n_labels = chain.transition.shape[0]
    begin, end = distinct.start[i], distinct.start[i + 1]
    for u in range(begin, end):
        weights, difference = chain.weights[distinct.features[u]], step.features[u - begin]
        for j in range(n_labels):
            weights[j] += factor * difference[j]
    for y in range(n_labels):
        for z in range(n_labels):
            chain.transition[y, z] += factor * step.transition[y * n_labels + z]
    if problem.fit_intercept:
        length = problem.offsets[i + 1] - problem.offsets[i]
        for j in range(n_labels):
            for t in range(length):
                chain.intercept[j] += factor * step.node[t, j]
            chain.start[j] += factor * step.node[0, j]
            chain.end[j] += factor * step.node[length - 1, j]


@jit
def sdca_updates(problem, distinct, order, draws, dual, chain, sampling, tol):
    """Update the sequences in `order`, then one for each of the uniform numbers `draws`.

    Parameters
    ----------
    problem : Problem
        The training set.
    distinct : Distinct
        From `renumber_features`.
    order : ndarray of int
        Sequences.
    draws : ndarray
        Numbers below 1.
    dual : Dual
        The dual variables, changed.
    chain : Chain
        The weights that are conjugate to them, kept in step.
    sampling : Sampling
        What the draws are turned into sequences with; told of the gaps.
    tol : float
        Precision of the line search.
    """
    n_labels = chain.transition.shape[0]
    n_sequences = dual.gap.shape[0]
    length = longest(problem.offsets, 0, n_sequences)
    most = longest(distinct.start, 0, n_sequences)
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
        np.empty((length, n_labels)),
        np.empty(size),
        np.empty((most, n_labels)),
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
