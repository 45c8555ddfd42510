"""The best label sequence (Viterbi)."""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.scores import transition_score
from skstruct.kernels.vector.rows import max_plus
from skstruct.kernels.vector.sums import largest

# With at most so many labels, comparing all of them is faster than selecting some.
FEW_LABELS = 32


@lean_jit
def handicaps(transition, out):
    """Largest lag of each label behind the best one with which it can still win at the next token.

    ``out[i]`` is the most that label ``i`` can gain on another label by a transition: the maximum
    over ``j`` of ``transition[i, j] - min_k transition[k, j]``. It is infinite if a transition is
    minus infinity, which keeps every label.
    """
    n_labels = transition.shape[0]
    for i in range(n_labels):
        out[i] = -np.inf
    for j in range(n_labels):
        worst = transition[0, j]
        for i in range(1, n_labels):
            worst = min(worst, transition[i, j])
        for i in range(n_labels):
            if transition[i, j] > -np.inf:
                out[i] = max(out[i], transition[i, j] - worst)


@lean_jit
def keep_contenders(scores, handicap, out):
    """Write the labels that may precede a best one into ``out``; return their number."""
    n_labels = handicap.shape[0]
    top = largest(scores, n_labels)
    # The margin covers the rounding of sums.
    limit = top - 1e-9 * (1.0 + abs(top))
    n = 0
    for i in range(n_labels):
        out[n] = i
        n += not scores[i] + handicap[i] < limit
    return n


@lean_jit
def best_contenders(previous, transition, contenders, out):
    """``out[j] = max_i previous[i] + transition[i, j]`` over the contenders ``i``."""
    for j in range(transition.shape[0]):
        out[j] = -np.inf
    for i in contenders:
        x = previous[i]
        for j in range(transition.shape[0]):
            a = x + transition[i, j]
            out[j] = a if a > out[j] else out[j]


@jit
def best_prefixes(scores, length, transition):
    """Turn ``scores[t, j]`` into the score of the best prefix that ends with ``j``, in place.

    With many labels, only those that can be on a best path are extended.
    """
    n_labels = transition.shape[-1]
    contenders = np.empty(n_labels + 1, np.int64)
    extend_prefixes(scores, length, transition, np.empty((2, n_labels)), contenders)


@lean_jit
def extend_prefixes(scores, length, transition, workspace, contenders):
    """Do the same with preallocated workspace."""
    best, handicap = workspace[0], workspace[1]
    n_labels = transition.shape[-1]
    choose = n_labels > FEW_LABELS and length > 1
    # With a matrix for each token, selecting labels would cost as much as it saves.
    if transition.ndim == 2 and choose:
        handicaps(transition, handicap)
    for t in range(1, length):
        if transition.ndim == 3:
            max_plus(scores[t - 1], transition[t], best)
        elif choose:
            n = keep_contenders(scores[t - 1], handicap, contenders)
            best_contenders(scores[t - 1], transition, contenders[:n], best)
        else:
            max_plus(scores[t - 1], transition, best)
        for j in range(n_labels):
            scores[t, j] += best[j]


@jit
def viterbi(scores, length, transition, labels):
    """Write the best label sequence of one sequence; return its score.

    No back-pointers are stored: ``scores[t, j]`` becomes the score of the best prefix that ends
    with ``j``, and the backward pass searches for the predecessor that attains it, one pass over
    the labels per token. Ties go to the smaller label, decided from the last token on.

    Parameters
    ----------
    scores : ndarray of shape (>= length, n_labels)
        Emission scores; overwritten.
    transition : ndarray of shape (n_labels, n_labels) or (>= length, n_labels, n_labels)
        Transition scores.
    labels : ndarray of shape (length,), integer
        Receives the labels.
    """
    if length == 0:
        return 0.0
    best_prefixes(scores, length, transition)
    return walk_back(scores, length, transition, labels)


@lean_jit
def walk_back(scores, length, transition, labels):
    """Write the best label sequence, given the best scores of prefixes; return its score."""
    n_labels = transition.shape[-1]
    label = argmax(scores[length - 1])
    score = scores[length - 1, label]
    labels[length - 1] = label
    for t in range(length - 2, -1, -1):
        nxt = label
        label = 0
        top = scores[t, 0] + transition_score(transition, t + 1, 0, nxt)
        for i in range(1, n_labels):
            x = scores[t, i] + transition_score(transition, t + 1, i, nxt)
            if x > top:
                top = x
                label = i
        labels[t] = label
    return score


@lean_jit
def argmax(x):
    """First position of the maximum of `x`."""
    best = 0
    for j in range(1, x.shape[0]):
        if x[j] > x[best]:
            best = j
    return best
