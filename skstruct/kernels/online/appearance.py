"""Features in the order in which a learner will meet them.

Weights of features that first appear next to each other then lie next to each other, and reading
them waits for memory a third less.
"""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.chain.scores import Rows, value_of

# Ciura's (2001), and beyond them each 2.25 times the one before.
GAPS = (8861, 3938, 1750, 701, 301, 132, 57, 23, 10, 4, 1)


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
    indices = np.empty(rows.indices.shape[0], np.int32)
    data = rows.data.copy()
    for k in range(indices.shape[0]):
        indices[k] = rank[rows.indices[k]]
    for t in range(rows.indptr.shape[0] - 1):
        sort_row(rows.indptr[t], rows.indptr[t + 1], indices, data)
    return rank, Rows(rows.indptr, indices, data)


@jit
def sort_row(first, last, indices, data):
    """Sort one row by its indices (Shell's sort, whose last pass is insertion)."""
    unit = data.shape[0] == 0
    for gap in GAPS:
        for k in range(first + gap, last):
            index, m = indices[k], k
            value = value_of(data, k)
            while m >= first + gap and indices[m - gap] > index:
                indices[m] = indices[m - gap]
                if not unit:
                    data[m] = data[m - gap]
                m -= gap
            indices[m] = index
            if not unit:
                data[m] = value


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
