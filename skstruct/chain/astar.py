"""The n best label sequences, one by one, best first (A* search with a Viterbi heuristic).

The best score of any prefix that ends with a label at a token, from one Viterbi pass, is a perfect
heuristic for a search that grows suffixes from the last token to the first: every expanded suffix
is part of a result (Soong and Huang, 1991; Sun et al., 2018, section 2.1, with the directions
exchanged).
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.family import inlined_jit
from skstruct.chain.protocol import (
    label_of,
    most_sources,
    n_steps,
    row_into,
    sources,
    state_rows,
    step_number,
    width,
)
from skstruct.chain.ties import precedes
from skstruct.chain.viterbi import best_prefixes
from skstruct.compiled.jit import inline_lean_jit, inner_lean_jit, jit, lean_jit
from skstruct.compiled.rows import add_rows


class Workspace(NamedTuple):
    """Lists and tables of the search."""

    waiting: np.ndarray  # (n_best, 3), parent, token and state of each deviation
    waiting_scores: np.ndarray  # (n_best,)
    lead: np.ndarray  # (n_best, length), lead of each state over the second best
    # Transition scores from the sources of each state, filled in when first needed; then a row of
    # zeros for the end of the sequence.
    step_back: np.ndarray
    ready: np.ndarray
    alternatives: np.ndarray  # (n_states,)
    smallest: np.ndarray  # (n_best,)


@jit
def astar_nbest(scores, length, edges, n_best, labels, path_scores):
    """Write the best label sequences of one sequence, best first; return their number.

    Every sequence found gives rise to *deviations*, at each token before the one where it deviated
    from its own parent: another state there, the same states after it, and the best prefix before
    it. These sets of sequences are disjoint, and the best score of each is known. The `n_best` best
    deviations are kept in a sorted list. Sequences with a score of minus infinity are impossible
    and left out, unless all are.

    Parameters
    ----------
    scores : ndarray of shape (>= length, n_labels)
        Emission scores; overwritten with the best scores of prefixes.
    edges : NamedTuple
        Transition scores, as of `viterbi`.
    n_best : int
        Largest number of sequences.
    labels : ndarray of shape (n_best, length), integer
        Receives the label sequences.
    path_scores : ndarray of shape (n_best,)
        Receives their scores.
    """
    if length == 0:
        path_scores[0] = 0.0
        return 1
    rows = state_rows(edges, scores, length)
    best_prefixes(rows, length, edges)
    n_rows, most = n_steps(edges, length) + 1, most_sources(edges, length)
    workspace = Workspace(
        np.empty((n_best, 3), np.int64),
        np.empty(n_best),
        np.empty((n_best, length)),
        np.empty((n_rows, most)),
        np.zeros(n_rows, np.bool_),
        np.empty(rows.shape[1]),
        np.empty(n_best),
    )
    n_found = deviate(rows, edges, labels, path_scores, workspace)
    to_labels(edges, labels[:n_found])
    return n_found


@inner_lean_jit
def deviate(rows, edges, paths, path_scores, workspace):
    """Search, given the best scores of prefixes."""
    waiting, waiting_scores, lead, step_back, _, all_alternatives, smallest = workspace
    n_best, length = paths.shape
    path_scores[0] = find_best(rows, edges, paths[0], workspace)
    # The slack covers the rounding of sums.
    slack = 1e-9 * (1.0 + abs(path_scores[0]))
    limit = path_scores[0] - nth_smallest(lead[0], n_best - 1, smallest) - slack
    n_waiting = parent = 0
    for found in range(n_best):
        token = length
        if found > 0:
            if n_waiting == 0:
                return found
            parent, token = waiting[0, 0], waiting[0, 1]
            path_scores[found] = waiting_scores[0]
            n_waiting = take_first(waiting, waiting_scores, n_waiting, found, paths)
        capacity = n_best - found - 1
        n_waiting = min(n_waiting, capacity)
        path = paths[found]
        for t in range(token - 1, -1, -1):
            if n_waiting == capacity:
                worst = waiting_scores[capacity - 1] if capacity > 0 else np.inf
                limit = max(limit, worst - slack)
            # Before the token where it meets its parent again, both have the same states and
            # leads. The first sequence is its own parent.
            met = found == 0 or (t + 1 < token and path[t + 1] == paths[parent, t + 1])
            if met:
                path[t], lead[found, t] = paths[parent, t], lead[parent, t]
                if path_scores[found] - lead[found, t] < limit:
                    continue
            step, first, n = step_after(path, t, edges, workspace)
            alternatives = all_alternatives[:n]
            highest, second, top = add_sources(rows, t, first, step_back, step, alternatives)
            if not met:
                path[t], lead[found, t] = first + top, highest - second
                if path_scores[found] - lead[found, t] < limit:
                    continue
            rest = path_scores[found] - alternatives[path[t] - first]
            for r in range(n):
                score = rest + alternatives[r]
                if first + r == path[t] or score < limit or not score > -np.inf:
                    continue
                if n_waiting == capacity and score < waiting_scores[capacity - 1]:
                    continue
                deviation = (found, t, first + r)
                n_waiting = insert(
                    waiting, waiting_scores, n_waiting, capacity, deviation, score, paths
                )
    return n_best


@inline_lean_jit
def find_best(rows, edges, path, workspace):
    """Write the best state sequence and each state's lead; return the score."""
    step_back, lead = workspace.step_back, workspace.lead
    for i in range(step_back.shape[1]):
        step_back[step_back.shape[0] - 1, i] = 0.0
    best = 0.0
    for t in range(path.shape[0] - 1, -1, -1):
        step, first, n = step_after(path, t, edges, workspace)
        alternatives = workspace.alternatives[:n]
        highest, second, top = add_sources(rows, t, first, step_back, step, alternatives)
        path[t], lead[0, t] = first + top, highest - second
        if t == path.shape[0] - 1:
            best = highest
    return best


@inlined_jit
def add_sources(rows, t, first, step_back, step, out):
    """``out = rows[t, first:] + step_back[step]``; return what `add_rows` does."""
    n = out.shape[0]
    if n == rows.shape[1] and n == step_back.shape[1]:
        return add_rows(rows, t, step_back, step, out)
    top = second = -np.inf
    where, end = 0, step_back.shape[0] - 1
    for r in range(n):
        x = out[r] = rows[t, first + r] + (step_back[step, r] if step < end else 0.0)
        if x > top:
            top, second, where = x, top, r
        elif x > second:
            second = x
    return top, second, where


@inlined_jit
def step_after(path, t, edges, workspace):
    """Row of ``step_back`` for the step after token ``t`` of a path, and the range of its sources.

    The row is filled in when it is first needed. The range is given by its first state and its
    length.
    """
    length = path.shape[0]
    if t == length - 1:
        return workspace.step_back.shape[0] - 1, 0, width(edges, t)
    first, last = sources(edges, t + 1, path[t + 1])
    step = step_number(edges, length, t + 1, path[t + 1])
    if not workspace.ready[step]:
        workspace.ready[step] = True
        row_into(edges, t + 1, path[t + 1], workspace.step_back[step])
    return step, first, last - first


@lean_jit
def to_labels(edges, paths):
    """Replace states by their labels."""
    for m in range(paths.shape[0]):
        for t in range(paths.shape[1]):
            paths[m, t] = label_of(edges, t, paths[m, t])


@inline_lean_jit
def take_first(waiting, waiting_scores, n_waiting, found, paths):
    """Take the best deviation from the list; write the states from there on; return the rest."""
    parent, token = waiting[0, 0], waiting[0, 1]
    paths[found, token] = waiting[0, 2]
    for t in range(token + 1, paths.shape[1]):
        paths[found, t] = paths[parent, t]
    for m in range(n_waiting - 1):
        waiting_scores[m] = waiting_scores[m + 1]
        for i in range(3):
            waiting[m, i] = waiting[m + 1, i]
    return n_waiting - 1


@inline_lean_jit
def nth_smallest(x, n, smallest):
    """The n-th smallest number; infinite if there are fewer than n, or n is zero."""
    if n == 0 or x.shape[0] < n:
        return np.inf
    for k in range(x.shape[0]):
        if k >= n and not x[k] < smallest[n - 1]:
            continue
        place = min(k, n - 1)
        while place > 0 and smallest[place - 1] > x[k]:
            smallest[place] = smallest[place - 1]
            place -= 1
        smallest[place] = x[k]
    return smallest[n - 1]


@lean_jit
def insert(waiting, waiting_scores, n_waiting, capacity, deviation, score, paths):
    """Insert a deviation into the sorted list; return the new length of the list."""
    place = n_waiting
    while place > 0 and (
        waiting_scores[place - 1] < score
        or (waiting_scores[place - 1] == score and precedes(deviation, waiting[place - 1], paths))
    ):
        place -= 1
    if place == capacity:
        return n_waiting
    for m in range(min(n_waiting, capacity - 1), place, -1):
        waiting_scores[m] = waiting_scores[m - 1]
        for i in range(3):
            waiting[m, i] = waiting[m - 1, i]
    waiting_scores[place] = score
    waiting[place, 0], waiting[place, 1], waiting[place, 2] = deviation
    return min(n_waiting + 1, capacity)
