"""The n best label sequences, one by one, best first (A* search with a Viterbi heuristic).

The best score of any prefix that ends with a label at a token, from one Viterbi pass, is a
perfect heuristic for a search that grows suffixes from the last token to the first: nothing is
ever expanded that is not on the way to a result (Soong and Huang, 1991; sapo-2018, section 2.1,
with the directions exchanged).
"""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.rows import add_rows
from skstruct.kernels.viterbi import best_prefixes


@jit
def astar_nbest(scores, length, transition, n_best, labels, path_scores):
    """Best label sequences of one sequence, best first; return how many there are.

    Every sequence found is *deviated* from at each token before the one where it deviated from
    its own parent: another label there, what follows kept, and the best prefix before it. These
    sets have no sequence in common, and each knows its best score. The `n_best` best deviations
    wait in a sorted list. Ties are broken as in `viterbi`: the sequence with the smaller label at
    the last token where two differ comes first. Sequences with a score of minus infinity are
    impossible and not listed, unless all are.

    Parameters
    ----------
    scores : ndarray of shape (>= length, n_labels)
        Emission scores; overwritten with the best scores of prefixes.
    transition : ndarray of shape (n_labels, n_labels) or (>= length, n_labels, n_labels)
        Transition scores.
    n_best : int
        How many sequences are wanted.
    labels : ndarray of shape (n_best, length), integer
        Receives the label sequences.
    path_scores : ndarray of shape (n_best,)
        Receives their scores.
    """
    if length == 0:
        path_scores[0] = 0.0
        return 1
    best_prefixes(scores, length, transition)
    waiting = np.empty((n_best, 3), np.int64)  # parent, token and label of a deviation
    waiting_scores = np.empty(n_best)
    n_labels = transition.shape[-1]
    alternatives = np.empty(n_labels)
    lead = np.empty((n_best, length))  # of the label of a token before the second best one
    # For each label the transition scores into it, matrix by matrix, as far as they were needed;
    # and what comes after the last token, where all labels are the same.
    matrices = transition.reshape((-1, n_labels, n_labels))
    nothing = matrices.shape[0] * n_labels
    step_back, ready = np.empty((nothing + 1, n_labels)), np.zeros(nothing + 1, np.bool_)
    step_back[nothing], ready[nothing] = 0.0, True
    n_waiting = parent = 0
    path_scores[0] = -np.inf
    for found in range(n_best):
        token = length
        if found > 0:
            if n_waiting == 0:
                return found
            parent, token, label = waiting[0]
            path_scores[found] = waiting_scores[0]
            n_waiting -= 1
            for m in range(n_waiting):
                waiting_scores[m] = waiting_scores[m + 1]
                for i in range(3):
                    waiting[m, i] = waiting[m + 1, i]
            for t in range(token, length):
                labels[found, t] = labels[parent, t] if t > token else label
        capacity = n_best - found - 1
        n_waiting = min(n_waiting, capacity)
        path = labels[found]
        for t in range(token - 1, -1, -1):
            # From where it meets its parent again, the two agree, and so do their leads.
            met = found > 0 and t + 1 < token and path[t + 1] == labels[parent, t + 1]
            if met:
                path[t], lead[found, t] = labels[parent, t], lead[parent, t]
                if n_waiting == capacity and too_late(
                    path_scores[found], lead[found, t], waiting_scores, capacity
                ):
                    continue
            step = nothing
            if t < length - 1:
                step = path[t + 1] + ((t + 1) * n_labels if transition.ndim == 3 else 0)
            if not ready[step]:
                ready[step] = True
                for i in range(n_labels):
                    step_back[step, i] = matrices[step // n_labels, i, step % n_labels]
            highest, second = add_rows(scores, t, step_back, step, alternatives)
            if not met:
                top = 0
                while top < n_labels - 1 and alternatives[top] != highest:
                    top += 1
                path[t], lead[found, t] = top, highest - second
                if found == 0 and t == length - 1:
                    path_scores[0] = alternatives[top]
                if n_waiting == capacity and too_late(
                    path_scores[found], lead[found, t], waiting_scores, capacity
                ):
                    continue
            rest = path_scores[found] - alternatives[path[t]]
            for label in range(n_labels):
                score = rest + alternatives[label]
                full = n_waiting == capacity
                if label == path[t] or not score > -np.inf:
                    continue
                if full and score < waiting_scores[capacity - 1]:
                    continue
                deviation = (found, t, label)
                n_waiting = insert(
                    waiting, waiting_scores, n_waiting, capacity, deviation, score, labels
                )
    return n_best


@jit
def too_late(path_score, lead, waiting_scores, capacity):
    """Whether no deviation with this lead to make up for comes among those that wait."""
    if capacity == 0:
        return True
    # A little less than exact, as sums are rounded.
    slack = 1e-9 * (1.0 + abs(path_score))
    return path_score - lead < waiting_scores[capacity - 1] - slack


@jit
def insert(waiting, waiting_scores, n_waiting, capacity, deviation, score, labels):
    """Put a deviation into its place among the best so far; return how many there are then."""
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


@jit
def precedes(a, b, labels):
    """Whether deviation ``a`` has the smaller label at the last token where two differ."""
    first = max(a[1], b[1])
    # After the deviations, those of one parent agree.
    last = first if a[0] == b[0] else labels.shape[1] - 1
    for t in range(last, first - 1, -1):
        label_a = a[2] if t == a[1] else labels[a[0], t]
        label_b = b[2] if t == b[1] else labels[b[0], t]
        if label_a != label_b:
            return label_a < label_b
    return False
