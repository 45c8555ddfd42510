"""The best label sequence, in time that grows with the number of listed transitions.

The best previous label of ``j`` is a listed one, or the best of all labels that is not listed for
``j``. Results are those of `viterbi`, to the last bit.
"""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.viterbi import argmax

# So many of the best labels are tried before all are compared.
MOST_TRIED = 4


@lean_jit
def sparse_best_prefixes(scores, length, into, mark, best):
    """Turn ``scores[t, j]`` into the score of the best prefix that ends with ``j``, in place.

    ``mark`` and ``best`` are workspace of ``n_labels`` integers.
    """
    n_labels = into.default.shape[0]
    for t in range(1, length):
        previous = scores[t - 1]
        n_best = 1
        best[0] = argmax(previous)
        for j in range(n_labels):
            mark[j] = -1
        for j in range(n_labels):
            high = -np.inf
            for m in range(into.indptr[j], into.indptr[j + 1]):
                i = into.origin[m]
                mark[i] = j
                x = previous[i] + into.score[m]
                high = x if x > high else high
            if into.default[j] == 0.0 and (into.indptr[j + 1] - into.indptr[j] < n_labels):
                # The best label that is not listed for j.
                m = 0
                while m < MOST_TRIED and mark[best[m]] == j:
                    m += 1
                    if m == n_best and m < MOST_TRIED:
                        best[m] = next_best(previous, best[m - 1])
                        n_best += 1
                if m < MOST_TRIED:
                    high = max(high, previous[best[m]])
                else:
                    first, last = into.indptr[j], into.indptr[j + 1]
                    high = max(high, best_unlisted(previous, into.origin, first, last))
            scores[t, j] += high


@lean_jit
def best_unlisted(x, listed, first, last):
    """Maximum of the items at positions that are not in ``listed[first:last]``, in order."""
    high, start = -np.inf, 0
    for m in range(first, last + 1):
        end = listed[m] if m < last else x.shape[0]
        for i in range(start, end):
            high = x[i] if x[i] > high else high
        start = end + 1
    return high


@lean_jit
def next_best(x, last):
    """Position of the item that follows the item ``last``, largest first, smallest position."""
    found = -1
    for i in range(x.shape[0]):
        later = x[i] < x[last] or (x[i] == x[last] and i > last)
        if later and (found < 0 or x[i] > x[found]):
            found = i
    return found


@jit
def extend_listed(scores, length, into):
    """Do the same with workspace of its own."""
    n_labels = into.default.shape[0]
    mark, best = np.empty(n_labels, np.int64), np.empty(n_labels + 1, np.int64)
    sparse_best_prefixes(scores, length, into, mark, best)


@jit
def sparse_viterbi(scores, length, into, labels):
    """Write the best label sequence of one sequence, as `viterbi` does; return its score.

    Parameters are those of `viterbi`, with `IntoLabels` for the transitions.
    """
    if length == 0:
        return 0.0
    extend_listed(scores, length, into)
    label = argmax(scores[length - 1])
    score = scores[length - 1, label]
    labels[length - 1] = label
    for t in range(length - 2, -1, -1):
        label = best_previous(scores[t], into, label)
        labels[t] = label
    return score


@lean_jit
def best_previous(prefix, into, j):
    """First label from which the transition into label ``j`` gives the largest score."""
    label, top, start = 0, -np.inf, 0
    for m in range(into.indptr[j], into.indptr[j + 1] + 1):
        listed = m < into.indptr[j + 1]
        end = into.origin[m] if listed else prefix.shape[0]
        if into.default[j] == 0.0:
            for i in range(start, end):
                if prefix[i] > top:
                    top, label = prefix[i], i
        if listed:
            x = prefix[end] + into.score[m]
            if x > top:
                top, label = x, end
        start = end + 1
    return label
