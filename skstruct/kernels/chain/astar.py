"""The n best label sequences, one by one, best first (A* search with a Viterbi heuristic).

The best score of any prefix that ends with a label at a token, from one Viterbi pass, is a perfect
heuristic for a search that grows suffixes from the last token to the first: every expanded suffix
is part of a result (Soong and Huang, 1991; Sun et al., 2018, section 2.1, with the directions
exchanged).
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.sparse_viterbi import extend_listed
from skstruct.kernels.chain.viterbi import best_prefixes
from skstruct.kernels.vector.rows import add_rows


class Workspace(NamedTuple):
    """Lists and tables of the search."""

    waiting: np.ndarray  # (n_best, 3), parent, token and label of each deviation
    waiting_scores: np.ndarray  # (n_best,)
    lead: np.ndarray  # (n_best, length), lead of each label over the second best
    # Transition scores into each label, matrix by matrix, filled in when first needed; then a row
    # of zeros for the end of the sequence.
    step_back: np.ndarray
    ready: np.ndarray
    alternatives: np.ndarray  # (n_labels,)
    smallest: np.ndarray  # (n_best,)
    into: object  # `IntoLabels`, or None where transitions are not listed


@jit
def astar_nbest(scores, length, transition, n_best, labels, path_scores, into=None):
    """Write the best label sequences of one sequence, best first; return their number.

    Every sequence found gives rise to *deviations*, at each token before the one where it deviated
    from its own parent: another label there, the same labels after it, and the best prefix before
    it. These sets of sequences are disjoint, and the best score of each is known. The `n_best` best
    deviations are kept in a sorted list. Ties are broken as in `viterbi`: the sequence with the
    smaller label at the last token where two differ comes first. Sequences with a score of minus
    infinity are impossible and left out, unless all are.

    Parameters
    ----------
    scores : ndarray of shape (>= length, n_labels)
        Emission scores; overwritten with the best scores of prefixes.
    transition : ndarray of shape (n_labels, n_labels) or (>= length, n_labels, n_labels)
        Transition scores.
    n_best : int
        Largest number of sequences.
    labels : ndarray of shape (n_best, length), integer
        Receives the label sequences.
    path_scores : ndarray of shape (n_best,)
        Receives their scores.
    into : IntoLabels, default=None
        The transitions as a list, which all tokens share. Without it, numba leaves out what reads
        it.
    """
    if length == 0:
        path_scores[0] = 0.0
        return 1
    if into is None:
        best_prefixes(scores, length, transition)
    else:
        extend_listed(scores, length, into)
    n_labels = transition.shape[-1]
    matrices = transition.reshape((-1, n_labels, n_labels))
    n_rows = matrices.shape[0] * n_labels + 1
    workspace = Workspace(
        np.empty((n_best, 3), np.int64),
        np.empty(n_best),
        np.empty((n_best, length)),
        np.empty((n_rows, n_labels)),
        np.zeros(n_rows, np.bool_),
        np.empty(n_labels),
        np.empty(n_best),
        into,
    )
    return deviate(scores, matrices, labels, path_scores, workspace)


@lean_jit
def deviate(scores, matrices, labels, path_scores, workspace):
    """Search, given the best scores of prefixes."""
    waiting, waiting_scores, lead, step_back, _, alternatives, smallest, _ = workspace
    n_best, length = labels.shape
    n_labels = matrices.shape[1]
    path_scores[0] = find_best(scores, matrices, labels[0], workspace)
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
            n_waiting = take_first(waiting, waiting_scores, n_waiting, found, labels)
        capacity = n_best - found - 1
        n_waiting = min(n_waiting, capacity)
        path = labels[found]
        for t in range(token - 1, -1, -1):
            if n_waiting == capacity:
                worst = waiting_scores[capacity - 1] if capacity > 0 else np.inf
                limit = max(limit, worst - slack)
            # Before the token where it meets its parent again, both have the same labels and
            # leads. The first sequence is its own parent.
            met = found == 0 or (t + 1 < token and path[t + 1] == labels[parent, t + 1])
            if met:
                path[t], lead[found, t] = labels[parent, t], lead[parent, t]
                if path_scores[found] - lead[found, t] < limit:
                    continue
            step = step_after(path, t, matrices, workspace)
            highest, second, top = add_rows(scores, t, step_back, step, alternatives)
            if not met:
                path[t], lead[found, t] = top, highest - second
                if path_scores[found] - lead[found, t] < limit:
                    continue
            rest = path_scores[found] - alternatives[path[t]]
            for label in range(n_labels):
                score = rest + alternatives[label]
                if label == path[t] or score < limit or not score > -np.inf:
                    continue
                if n_waiting == capacity and score < waiting_scores[capacity - 1]:
                    continue
                deviation = (found, t, label)
                n_waiting = insert(
                    waiting, waiting_scores, n_waiting, capacity, deviation, score, labels
                )
    return n_best


@lean_jit
def find_best(scores, matrices, path, workspace):
    """Write the best label sequence, and the lead of its labels; return its score."""
    step_back, lead = workspace.step_back, workspace.lead
    length, n_labels = path.shape[0], matrices.shape[1]
    for i in range(n_labels):
        step_back[step_back.shape[0] - 1, i] = 0.0
    best = 0.0
    for t in range(length - 1, -1, -1):
        step = step_after(path, t, matrices, workspace)
        highest, second, path[t] = add_rows(scores, t, step_back, step, workspace.alternatives)
        lead[0, t] = highest - second
        if t == length - 1:
            best = highest
    return best


@lean_jit
def take_first(waiting, waiting_scores, n_waiting, found, labels):
    """Take the best deviation from the list; write the labels from there on; return the rest."""
    parent, token = waiting[0, 0], waiting[0, 1]
    labels[found, token] = waiting[0, 2]
    for t in range(token + 1, labels.shape[1]):
        labels[found, t] = labels[parent, t]
    for m in range(n_waiting - 1):
        waiting_scores[m] = waiting_scores[m + 1]
        for i in range(3):
            waiting[m, i] = waiting[m + 1, i]
    return n_waiting - 1


@lean_jit
def step_after(path, t, matrices, workspace):
    """Row of ``step_back`` for the step after token ``t`` of a path; filled in at first use."""
    n_labels = matrices.shape[1]
    if t == path.shape[0] - 1:
        return workspace.step_back.shape[0] - 1
    step = path[t + 1] + ((t + 1) * n_labels if matrices.shape[0] > 1 else 0)
    if not workspace.ready[step]:
        workspace.ready[step] = True
        fill_step(matrices, workspace.into, step, workspace.step_back[step])
    return step


@lean_jit
def fill_step(matrices, into, step, out):
    """Write the scores of the transitions into a label, of the matrix of a token."""
    n_labels = matrices.shape[1]
    if into is None:
        for i in range(n_labels):
            out[i] = matrices[step // n_labels, i, step % n_labels]
    else:
        for i in range(n_labels):
            out[i] = into.default[step]
        for m in range(into.indptr[step], into.indptr[step + 1]):
            out[into.origin[m]] = into.score[m]


@lean_jit
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
def insert(waiting, waiting_scores, n_waiting, capacity, deviation, score, labels):
    """Insert a deviation into the sorted list; return the new length of the list."""
    place = n_waiting
    while place > 0 and (
        waiting_scores[place - 1] < score
        or (waiting_scores[place - 1] == score and precedes(deviation, waiting[place - 1], labels))
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


@lean_jit
def precedes(a, b, labels):
    """Return True if ``a`` has the smaller label at the last token where the deviations differ."""
    first = max(a[1], b[1])
    # Deviations from the same parent agree after both tokens.
    last = first if a[0] == b[0] else labels.shape[1] - 1
    for t in range(last, first - 1, -1):
        label_a = a[2] if t == a[1] else labels[a[0], t]
        label_b = b[2] if t == b[1] else labels[b[0], t]
        if label_a != label_b:
            return label_a < label_b
    return False
