"""Training set of SDCA, SAG and OEG, and the expected features of one sequence.

These solvers visit one sequence at a time. A visit changes the node and transition marginals of the
sequence; the change of its expected features is the product of its feature matrix and these
differences, with one row for each distinct feature.
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import Rows, longest, value_of
from skstruct.compiled.jit import jit, lean_jit
from skstruct.compiled.rows import dot
from skstruct.input.costs import NO_COST


class Problem(NamedTuple):
    """A training set and its regularisation; no sequence is empty or has weight zero."""

    rows: Rows
    offsets: np.ndarray  # (n_sequences + 1,)
    labels: np.ndarray  # (n_rows,)
    sample_weight: np.ndarray  # (n_sequences,)
    l2: float
    fit_intercept: bool
    cost: np.ndarray  # (n_labels, n_labels), or (0, 0) if there is none


class Distinct(NamedTuple):
    """The distinct features of each sequence."""

    start: np.ndarray  # (n_sequences + 1,)
    features: np.ndarray  # (start[-1],) int32
    position: np.ndarray  # (nnz,) int32, index of an occurrence's feature among its sequence's


class Difference(NamedTuple):
    """Workspace: a change of the marginals of one sequence, and of its expected features."""

    node: np.ndarray  # (length, n_labels)
    transition: np.ndarray  # (n_labels**2,), summed over the sequence
    features: np.ndarray  # (n_distinct, n_labels)


@jit
def new_difference(problem, distinct, n_labels):
    """Workspace that is large enough for every sequence."""
    n_sequences = problem.offsets.shape[0] - 1
    return Difference(
        np.empty((longest(problem.offsets, 0, n_sequences), n_labels)),
        np.empty(n_labels * n_labels),
        np.empty((longest(distinct.start, 0, n_sequences), n_labels)),
    )


def read_problem(training_set, n_features, l2, fit_intercept, cost=NO_COST):
    """Number the features as they first appear, and find the distinct ones of each sequence.

    Weights of features that first appear next to each other are then neighbours in memory, so
    reading them causes fewer cache misses.

    Returns
    -------
    rank : ndarray of shape (n_features,)
        Number of each feature; those that do not appear come last.
    problem : Problem
        The training set, with numbers in place of features.
    distinct : Distinct
    """
    rows, offsets, labels, weight, *_ = training_set
    rank, indices, *distinct = number_features(rows, offsets, n_features)
    rows = Rows(rows.indptr, indices, rows.data)
    problem = Problem(rows, offsets, labels, weight, float(l2), fit_intercept, cost)
    return rank, problem, Distinct(*distinct)


@jit
def number_features(rows, offsets, n_features):
    """Arrays of the result of `read_problem`."""
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
    return rank, indices, start, features, position


@lean_jit
def collect_features(problem, distinct, i, difference):
    """Fill in ``difference.features`` of sequence ``i``; return the squared norm of all features.

    Transitions and biases are features, too.
    """
    rows, node = problem.rows, difference.node
    a, b = problem.offsets[i], problem.offsets[i + 1]
    n_distinct = distinct.start[i + 1] - distinct.start[i]
    n_labels = node.shape[1]
    for u in range(n_distinct):
        for j in range(n_labels):
            difference.features[u, j] = 0.0
    for t in range(b - a):
        d = node[t]
        for k in range(rows.indptr[a + t], rows.indptr[a + t + 1]):
            x = value_of(rows.data, k)
            row = difference.features[distinct.position[k]]
            for j in range(n_labels):
                row[j] += x * d[j]
    total = dot(difference.transition, difference.transition)
    for u in range(n_distinct):
        total += dot(difference.features[u], difference.features[u])
    if problem.fit_intercept:
        for j in range(n_labels):
            bias = 0.0
            for t in range(b - a):
                bias += node[t, j]
            total += bias * bias
        total += dot(node[0], node[0]) + dot(node[b - a - 1], node[b - a - 1])
    return total


@lean_jit
def add_difference(problem, distinct, i, difference, factor, chain):
    """Add the difference of sequence ``i``, times a factor, to weights or to a gradient."""
    n_labels = chain.transition.shape[0]
    begin, end = distinct.start[i], distinct.start[i + 1]
    for u in range(begin, end):
        weights, change = chain.weights[distinct.features[u]], difference.features[u - begin]
        for j in range(n_labels):
            weights[j] += factor * change[j]
    for y in range(n_labels):
        for z in range(n_labels):
            chain.transition[y, z] += factor * difference.transition[y * n_labels + z]
    if problem.fit_intercept:
        node, length = difference.node, problem.offsets[i + 1] - problem.offsets[i]
        for j in range(n_labels):
            for t in range(length):
                chain.intercept[j] += factor * node[t, j]
            chain.start[j] += factor * node[0, j]
            chain.end[j] += factor * node[length - 1, j]


@jit
def build_tree(priority, largest):
    """Tree over the priorities: of maxima if `largest`, else of sums."""
    n_leaves = 1
    while n_leaves < priority.shape[0]:
        n_leaves *= 2
    tree = np.zeros(2 * n_leaves)
    for i in range(priority.shape[0]):
        tree[n_leaves + i] = priority[i]
    for k in range(n_leaves - 1, 0, -1):
        tree[k] = parent_priority(tree, k, largest)
    return tree


@jit(inline="always")
def parent_priority(tree, k, largest):
    """Sum or maximum of the children of node ``k``."""
    a, b = tree[2 * k], tree[2 * k + 1]
    return max(a, b) if largest else a + b


@jit
def set_priority(tree, i, priority, largest):
    """Change one priority."""
    k = tree.shape[0] // 2 + i
    tree[k] = priority
    while k > 1:
        k //= 2
        tree[k] = parent_priority(tree, k, largest)


@jit
def draw(tree, u, largest):
    """Leaf at the share ``u`` of the sum, or the first largest leaf.

    Leaves of priority zero are never drawn, unless all are zero.
    """
    n_leaves = tree.shape[0] // 2
    target = u * tree[1]
    k = 1
    while k < n_leaves:
        a, b = tree[2 * k], tree[2 * k + 1]
        if largest:
            k = 2 * k + (b > a)
        elif target < a or b == 0.0:
            k = 2 * k
        else:
            target -= a
            k = 2 * k + 1
    return k - n_leaves


@jit
def draw_sequence(tree, n_sequences, nonuniformity, u, largest):
    """Sequence at the uniform number ``u``: by priority with probability `nonuniformity`."""
    if u < nonuniformity and tree[1] > 0.0:
        return draw(tree, u / nonuniformity, largest)
    if nonuniformity < 1.0:
        u = (u - nonuniformity) / (1.0 - nonuniformity) if u >= nonuniformity else u
    return min(int(u * n_sequences), n_sequences - 1)
