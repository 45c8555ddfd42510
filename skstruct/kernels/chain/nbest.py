"""The n best label sequences (k-best Viterbi)."""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.scores import into_token


@lean_jit
def n_possible(length, n_labels, most):
    """Number of label sequences of a length, capped at `most`."""
    n = 1
    for _ in range(length):
        if n >= most:
            break
        n *= n_labels
    return min(n, most)


@jit
def nbest(scores, length, transition, n_best, labels, path_scores):
    """Write the best label sequences of one sequence, best first; return their number.

    For every token and label the `n_best` best prefixes that end there are kept, each with the
    label and the rank of the prefix it extends. Ties are broken as in `viterbi`: the sequence
    with the smaller label at the last token where two differ comes first. Sequences with a score
    of minus infinity are impossible and left out, unless all are.

    Parameters
    ----------
    scores : ndarray of shape (>= length, >= n_labels)
        Emission scores.
    transition : ndarray of shape (n_labels, n_labels) or (>= length, n_labels, n_labels)
        Transition scores.
    n_best : int
        Largest number of sequences.
    labels : ndarray of shape (n_best, length), integer
        Receives the label sequences.
    path_scores : ndarray of shape (n_best,)
        Receives their scores.
    """
    n_labels = transition.shape[-1]
    if length == 0:
        path_scores[0] = 0.0
        return 1
    back = np.empty((length, n_labels, n_best), np.int32)
    current = np.empty((n_labels, n_best))
    previous = np.empty((n_labels, n_best))
    # A literal number, or an array of another layout, would compile the callee again.
    n_previous, nothing = np.int64(1), np.zeros((n_labels, 1))[:, 0]
    for j in range(n_labels):
        previous[j, 0] = scores[0, j]
    for t in range(1, length):
        n_current = min(n_best, n_previous * n_labels)
        added = into_token(transition, t)
        for j in range(n_labels):
            merge_prefixes(previous, n_previous, added[:, j], n_current, current[j], back[t, j])
            for r in range(n_current):
                current[j, r] += scores[t, j]
        previous, current = current, previous
        n_previous = n_current
    n_found = min(n_best, n_previous * n_labels)
    last = np.empty(n_found, np.int32)
    merge_prefixes(previous, n_previous, nothing, n_found, path_scores, last)
    while n_found > 1 and path_scores[n_found - 1] == -np.inf:
        n_found -= 1
    for m in range(n_found):
        code = last[m]
        for t in range(length - 1, -1, -1):
            label = code // n_best
            labels[m, t] = label
            if t > 0:
                code = back[t, label, code % n_best]
    return n_found


@jit
def merge_prefixes(prefixes, n_ranks, added, n_wanted, best, codes):
    """Merge the sorted lists of prefixes of all labels into the `n_wanted` best.

    ``codes`` receives ``label * n_best + rank`` of each.
    """
    n_labels, n_best = prefixes.shape
    rank = np.zeros(n_labels, np.int32)
    for m in range(n_wanted):
        top = -1
        top_score = -np.inf
        for i in range(n_labels):
            if rank[i] < n_ranks:
                x = prefixes[i, rank[i]] + added[i]
                if top < 0 or x > top_score:
                    top = i
                    top_score = x
        best[m] = top_score
        codes[m] = top * n_best + rank[top]
        rank[top] += 1
