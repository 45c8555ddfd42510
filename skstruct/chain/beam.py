"""Good label sequences by beam search, which may miss the best."""

import numpy as np

from skstruct.chain.protocol import (
    label_of,
    n_states,
    score,
    sources,
    width,
)
from skstruct.chain.ties import goes_first
from skstruct.compiled.jit import inner_lean_jit, jit, lean_jit


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
def beam_nbest(rows, length, edges, beam_width, n_best, labels, path_scores):
    """Write the best label sequences that a beam search finds, best first; return their number.

    At every token the `beam_width` best prefixes are kept, whatever state they end with. A sequence
    is missed if one of its prefixes is not among them, so the search is exact only if no more
    prefixes are possible. Sequences with a score of minus infinity are left out, unless every
    prefix in the beam has reached a dead end. Where no state can follow at all, none is found, and
    the best score is minus infinity.

    Parameters
    ----------
    rows : ndarray of shape (>= length, n_states)
        Scores of states, from `state_rows`.
    edges : NamedTuple
        Transition scores, as of `viterbi`.
    beam_width : int
        Number of prefixes kept.
    n_best : int
        Largest number of sequences, at most `beam_width`.
    labels : ndarray of shape (n_best, length), integer
        Receives the label sequences.
    path_scores : ndarray of shape (n_best,)
        Receives their scores.
    """
    if length == 0:
        path_scores[0] = 0.0
        return 1
    most = n_possible(length, rows.shape[1], beam_width)
    current, previous = np.empty(most), np.empty(most)
    # Rank of the prefix that is extended, and state, for every token and rank in the beam.
    parent = np.zeros((length, most), np.int32)
    state = np.zeros((length, most), np.int32)
    gain = np.empty(n_states(edges, length))
    # A literal zero would compile the callee again.
    n_current = none = np.int64(0)
    for s in range(width(edges, 0)):
        n_current = insert_prefix(
            rows[0, s], none, s, state[0], n_current, current, parent[0], state[0]
        )
    for t in range(1, length):
        previous, current = current, previous
        n_previous, n_current = n_current, none
        limit = -np.inf
        if n_previous == most:
            limit = safe_limit(rows[t], edges, t, previous, state[t - 1], gain)
        for p in range(n_previous):
            before = state[t - 1, p]
            for s in range(width(edges, t)):
                first, last = sources(edges, t, s)
                if before < first or before >= last:
                    continue
                # Summed in the order of `best_prefixes`, for the same rounding.
                total = rows[t, s] + (previous[p] + score(edges, t, before, s))
                if total < limit or (n_current == most and total < current[most - 1]):
                    continue
                n_current = insert_prefix(
                    total, p, s, state[t - 1], n_current, current, parent[t], state[t]
                )
    n_found = min(n_best, n_current)
    if n_found == 0:
        path_scores[0] = -np.inf
    while n_found > 1 and current[n_found - 1] == -np.inf:
        n_found -= 1
    for m in range(n_found):
        path_scores[m] = current[m]
        rank = m
        for t in range(length - 1, -1, -1):
            labels[m, t] = label_of(edges, t, state[t, rank])
            rank = parent[t, rank]
    return n_found


@jit
def forbid_dead_ends(rows, length, edges):
    """Make states impossible that no possible labelling can continue to the end."""
    goes_on = np.empty(rows.shape[1], np.bool_)
    for t in range(length - 1, 0, -1):
        for i in range(goes_on.shape[0]):
            goes_on[i] = False
        for s in range(width(edges, t)):
            first, last = sources(edges, t, s)
            for i in range(first, last):
                goes_on[i] |= score(edges, t, i, s) + rows[t, s] > -np.inf
        for i in range(width(edges, t - 1)):
            if not goes_on[i]:
                rows[t - 1, i] = -np.inf


@inner_lean_jit
def safe_limit(row, edges, t, previous, before, gain):
    """Lower bound of the scores in the next beam.

    The best successors of all prefixes in a full beam would fill the next one.
    """
    for i in range(width(edges, t - 1)):
        gain[i] = -np.inf
    for s in range(width(edges, t)):
        first, last = sources(edges, t, s)
        for i in range(first, last):
            gain[i] = max(gain[i], row[s] + score(edges, t, i, s))
    limit = np.inf
    for p in range(previous.shape[0]):
        limit = min(limit, previous[p] + gain[before[p]])
    # The margin covers the rounding of sums.
    return limit - 1e-9 * (1.0 + abs(limit))


@inner_lean_jit
def insert_prefix(score, p, s, before, n, scores, parent, state):
    """Insert prefix ``p``, extended by state ``s``, into a beam of ``n``; return the new ``n``.

    Prefixes are inserted in order of rank: among equal ones with the same last two states, the one
    that extends the better prefix stays first. ``before`` are the last states of the prefixes.
    """
    place = n
    while place > 0 and scores[place - 1] <= score:
        m = place - 1
        first = goes_first(state[m], before[parent[m]], s, before[p])
        if first and scores[m] == score:
            break
        place = m
    width = scores.shape[0]
    if place == width:
        return n
    for m in range(min(n, width - 1), place, -1):
        scores[m] = scores[m - 1]
        parent[m] = parent[m - 1]
        state[m] = state[m - 1]
    scores[place], parent[place], state[place] = score, p, s
    return min(n + 1, width)
