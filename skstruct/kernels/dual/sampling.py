"""Sampling of a sequence in proportion to its priority, or of the largest priority.

Priorities are the leaves of a binary tree in an array: node ``k`` has the children ``2 k`` and
``2 k + 1``, and stores their sum or their maximum. A change or a draw takes one path between leaf
and root. Parents are recomputed from their children, so rounding errors do not accumulate.
"""

import numpy as np

from skstruct.kernels._jit import jit


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
