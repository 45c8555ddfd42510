"""Good label sequences by beam search, which may miss the best."""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.nbest import n_possible
from skstruct.kernels.chain.scores import into_token


@jit
def beam_nbest(scores, length, transition, beam_width, n_best, labels, path_scores):
    """Write the best label sequences that a beam search finds, best first; return their number.

    At every token the `beam_width` best prefixes are kept, whatever label they end with. A sequence
    is missed if one of its prefixes is not among them, so the search is exact only if no more
    prefixes are possible. Ties are broken as in `viterbi`, in the beam and at the end: the sequence
    with the smaller label at the last token where two differ comes first. Sequences with a score of
    minus infinity are left out, unless every prefix in the beam has reached a dead end.

    Parameters
    ----------
    scores : ndarray of shape (>= length, n_labels)
        Emission scores.
    transition : ndarray of shape (n_labels, n_labels) or (>= length, n_labels, n_labels)
        Transition scores.
    beam_width : int
        Number of prefixes kept.
    n_best : int
        Largest number of sequences, at most `beam_width`.
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
    # Rank of the prefix that is extended, and label, for every token and rank in the beam.
    parent = np.zeros((length, width), np.int32)
    label = np.zeros((length, width), np.int32)
    # A literal zero would compile the callee again.
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
                # Summed in the order of `best_prefixes`, for the same rounding.
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
    """Make labels impossible that no possible labelling can continue to the end."""
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
    """Lower bound of the scores in the next beam.

    The best successors of all prefixes in a full beam would fill the next one.
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
    # The margin covers the rounding of sums.
    return limit - 1e-9 * (1.0 + abs(limit))


@lean_jit
def insert_prefix(score, p, j, before, n, scores, parent, label):
    """Insert prefix ``p``, extended by label ``j``, into a beam of ``n``; return the new ``n``.

    Prefixes are inserted in order of rank: among equal ones with the same last two labels, the one
    that extends the better prefix stays first. ``before`` are the last labels of the prefixes.
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
