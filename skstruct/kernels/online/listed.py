"""Transitions of the online learners as a list that grows with what they learn.

Most transitions of a large label set never get a weight. So the learners decode by way of those
that have one, or that tell a constraint apart, and change no others. A transition that gets its
first weight joins the list. The weights learned are those without a list, to the last bit.

This is for rules whose update is the difference between labellings. The gradient of a likelihood
changes every transition that is allowed.
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.listed import IntoLabels
from skstruct.kernels.chain.scores import Chain


class ListedState(NamedTuple):
    """An `OnlineState` with listed transitions."""

    chain: Chain
    lag: Chain
    progress: np.ndarray
    # The transitions that may differ from the default, with scores of the current weights, and room
    # for all others; and the scores of all transitions as a matrix.
    into: IntoLabels
    matrix: np.ndarray
    scale: np.ndarray  # (1,), scale of the weights in these scores; NaN at first


class ListedConfidentState(NamedTuple):
    """A `ConfidentState` with listed transitions."""

    chain: Chain
    lag: Chain
    progress: np.ndarray
    variance: Chain
    into: IntoLabels
    matrix: np.ndarray
    scale: np.ndarray


# States with more fields list their transitions.
MOST_DENSE = 4


@jit
def score_buffer(state, transition_difference):
    """Array for the scores of transitions, of the shape of their differences."""
    if len(state) > MOST_DENSE:
        return state.matrix
    return np.empty(transition_difference.shape)


@lean_jit
def most_changed(state, transition_difference):
    """Largest number of labels, or of transitions where they are listed, that change at once."""
    n_labels = transition_difference.shape[-1]
    if transition_difference.ndim == 3 or len(state) > MOST_DENSE:
        return n_labels * n_labels
    return n_labels


@lean_jit
def read_listed_scores(state, scale):
    """Update the scores of the listed transitions, in the list and in the matrix.

    At the same scale those that have changed are up to date (see `list_transition`).
    """
    into, weights, matrix = state.into, state.chain.transition, state.matrix
    if state.scale[0] == scale:
        return
    state.scale[0] = scale
    for j in range(into.default.shape[0]):
        for m in range(into.indptr[j], into.indptr[j + 1]):
            i = into.origin[m]
            matrix[i, j] = into.score[m] = scale * weights[i, j]


@lean_jit
def find_changed_transitions(difference, transition_difference, gold, codes):
    """Write codes ``j * n_labels + i`` of transitions that change; return their number.

    A transition changes between labels that are gold or that change themselves. The codes are in
    increasing order; ``codes`` has room for all transitions.
    """
    n_labels, n = difference.shape[1], 0
    for t in range(1, gold.shape[0]):
        for j in range(n_labels):
            if difference[t, j] == 0.0 and j != gold[t]:
                continue
            for i in range(n_labels):
                if difference[t - 1, i] == 0.0 and i != gold[t - 1]:
                    continue
                if transition_difference[i, j] != 0.0:
                    n = insert_code(j * n_labels + i, codes, n)
    return n


@lean_jit
def insert_code(code, codes, n):
    """Insert a code into the sorted list unless it is there; return the length of the list."""
    place = first_at_least(code, codes, 0, n)
    if place < n and codes[place] == code:
        return n
    for m in range(n, place, -1):
        codes[m] = codes[m - 1]
    codes[place] = code
    return n + 1


@lean_jit
def first_at_least(code, codes, first, last):
    """First position in ``codes[first:last]``, which are sorted, of a code that is not smaller."""
    while first < last:
        middle = (first + last) // 2
        if codes[middle] < code:
            first = middle + 1
        else:
            last = middle
    return first


@lean_jit
def list_transition(into, i, j, score):
    """Set the score of the transition from label ``i`` to label ``j``; list it unless it is."""
    n_labels = into.default.shape[0]
    place = first_at_least(i, into.origin, into.indptr[j], into.indptr[j + 1])
    if place == into.indptr[j + 1] or into.origin[place] != i:
        for m in range(into.indptr[n_labels], place, -1):
            into.origin[m], into.score[m] = into.origin[m - 1], into.score[m - 1]
        into.origin[place] = i
        for k in range(j + 1, n_labels + 1):
            into.indptr[k] += 1
    into.score[place] = score


@lean_jit
def score_changed(state, i, j):
    """Update the score of a transition whose weight has changed."""
    score = state.matrix[i, j] = state.scale[0] * state.chain.transition[i, j]
    list_transition(state.into, i, j, score)


@lean_jit
def change_listed(difference, transition_difference, gold, step, total, state, codes):
    """Add ``step`` times the differences of transitions to their weights; reset them to zero."""
    n_labels, average = difference.shape[1], state.lag.weights.shape[0] > 0
    n = find_changed_transitions(difference, transition_difference, gold, codes)
    for code in codes[:n]:
        i, j = code % n_labels, code // n_labels
        d = transition_difference[i, j]
        state.chain.transition[i, j] += step * d
        if average:
            state.lag.transition[i, j] += total * (step * d)
        transition_difference[i, j] = 0.0
        score_changed(state, i, j)
