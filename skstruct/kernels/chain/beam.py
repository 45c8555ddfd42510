"""Good label sequences by beam search, which may miss better ones."""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.nbest import n_possible
from skstruct.kernels.chain.scores import into_token


@jit
def beam_nbest(scores, length, transition, beam_width, n_best, labels, path_scores):
    """Best label sequences that a beam search finds, best first; return how many there are.

    From token to token the `beam_width` best prefixes are kept, whatever label they end with. A
    sequence is missed if one of its prefixes is not among them, so the search is exact only where
    no more prefixes are possible. Ties are broken as in `viterbi`, in the beam and at the end: the
    sequence with the smaller label at the last token where two differ comes first. Sequences with a
    score of minus infinity are not listed, unless the beam has nothing else: all prefixes that it
    kept have then come to a dead end.

    Parameters
    ----------
    scores : ndarray of shape (>= length, n_labels)
        Emission scores.
    transition : ndarray of shape (n_labels, n_labels) or (>= length, n_labels, n_labels)
        Transition scores.
    beam_width : int
        How many prefixes are kept.
    n_best : int
        How many sequences are wanted, at most `beam_width`.
    labels : ndarray of shape (n_best, length), integer
        Receives the label sequences.
    path_scores : ndarray of shape (n_best,)
        Receives their scores.
    """
    n_labels = transition.shape[-1]
    if length == 0:
        path_scores[0] = 0.0
        return 1
    width = n_possible(length, n_labels, beam_width)
    current, previous = np.empty(width), np.empty(width)
    # For every token and rank in the beam, the rank of the prefix that is extended and the label.
    parent = np.zeros((length, width), np.int32)
    label = np.zeros((length, width), np.int32)
    # For a literal zero, the callee would be compiled anew.
    n_current = none = np.int64(0)
    for j in range(n_labels):
        n_current = insert_prefix(
            scores[0, j], none, j, label[0], n_current, current, parent[0], label[0]
        )
    for t in range(1, length):
        previous, current = current, previous
        n_previous, n_current = n_current, none
        added = into_token(transition, t)
        limit = safe_limit(scores[t], added, previous[:n_previous], label[t - 1], width)
        for p in range(n_previous):
            before = label[t - 1, p]
            for j in range(n_labels):
                # The order of the sums of `best_prefixes`, for the same rounding.
                score = scores[t, j] + (previous[p] + added[before, j])
                if score < limit or (n_current == width and score < current[width - 1]):
                    continue
                n_current = insert_prefix(
                    score, p, j, label[t - 1], n_current, current, parent[t], label[t]
                )
    n_found = min(n_best, n_current)
    while n_found > 1 and current[n_found - 1] == -np.inf:
        n_found -= 1
    for m in range(n_found):
        path_scores[m] = current[m]
        rank = m
        for t in range(length - 1, -1, -1):
            labels[m, t] = label[t, rank]
            rank = parent[t, rank]
    return n_found


@jit
def forbid_dead_ends(scores, length, transition):
    """Make the labels impossible from which no possible labelling goes on to the end."""
    n_labels = transition.shape[-1]
    for t in range(length - 2, -1, -1):
        added = into_token(transition, t + 1)
        for i in range(n_labels):
            goes_on = False
            for j in range(n_labels):
                goes_on |= added[i, j] + scores[t + 1, j] > -np.inf
            if not goes_on:
                scores[t, i] = -np.inf


@jit
def safe_limit(emission, added, previous, before, width):
    """Score that no prefix of the next beam falls short of.

    In a full beam each prefix has a best successor, and these alone would fill the next one.
    """
    if previous.shape[0] < width:
        return -np.inf
    n_labels = emission.shape[0]
    gain = np.full(n_labels, -np.inf)
    for i in range(n_labels):
        for j in range(n_labels):
            gain[i] = max(gain[i], emission[j] + added[i, j])
    limit = np.inf
    for p in range(width):
        limit = min(limit, previous[p] + gain[before[p]])
    # A little less than exact, as sums are rounded.
    return limit - 1e-9 * (1.0 + abs(limit))


@lean_jit
def insert_prefix(score, p, j, before, n, scores, parent, label):
    """Put prefix ``p`` extended by label ``j`` into its place in a beam of ``n``; return the new n.

    Prefixes come in order of rank, so that of equal ones with the same two last labels the
    better ranked stays first. ``before`` are the last labels of the prefixes that are extended.
    """
    place = n
    while place > 0 and scores[place - 1] <= score:
        m = place - 1
        first = label[m] < j or (label[m] == j and before[parent[m]] <= before[p])
        if first and scores[m] == score:
            break
        place = m
    width = scores.shape[0]
    if place == width:
        return n
    for m in range(min(n, width - 1), place, -1):
        scores[m] = scores[m - 1]
        parent[m] = parent[m - 1]
        label[m] = label[m - 1]
    scores[place], parent[place], label[place] = score, p, j
    return min(n + 1, width)
