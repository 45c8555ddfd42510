"""The best label sequence (Viterbi)."""

import numpy as np

from skstruct.kernels._jit import jit


@jit
def best_predecessors(previous, transition, out):
    """``out[j] = max_i previous[i] + transition[i, j]``, two predecessors at a time."""
    n_labels = transition.shape[0]
    for j in range(n_labels):
        out[j] = -np.inf
    for i in range(0, n_labels - 1, 2):
        x = previous[i]
        y = previous[i + 1]
        for j in range(n_labels):
            a = x + transition[i, j]
            b = y + transition[i + 1, j]
            a = a if a > b else b
            out[j] = a if a > out[j] else out[j]
    if n_labels % 2:
        x = previous[n_labels - 1]
        for j in range(n_labels):
            a = x + transition[n_labels - 1, j]
            out[j] = a if a > out[j] else out[j]


@jit
def best_prefixes(scores, length, transition):
    """Turn ``scores[t, j]`` into the score of the best prefix that ends with ``j``, in place."""
    n_labels = transition.shape[0]
    best = np.empty(n_labels)
    for t in range(1, length):
        best_predecessors(scores[t - 1], transition, best)
        for j in range(n_labels):
            scores[t, j] += best[j]


@jit
def viterbi(scores, length, transition, labels):
    """Best label sequence of one sequence, and its score.

    No back-pointers are kept: ``scores[t, j]`` becomes the score of the best prefix that ends
    with ``j``, and the way back looks for the predecessor that attains it, which costs one
    pass over the labels a token. Ties go to the smaller label, the last token first.

    Parameters
    ----------
    scores : ndarray of shape (>= length, n_labels)
        Emission scores; overwritten.
    transition : ndarray of shape (n_labels, n_labels)
        Transition scores.
    labels : ndarray of shape (length,), integer
        Receives the labels.
    """
    if length == 0:
        return 0.0
    n_labels = transition.shape[0]
    best_prefixes(scores, length, transition)
    label = argmax(scores[length - 1])
    score = scores[length - 1, label]
    labels[length - 1] = label
    for t in range(length - 2, -1, -1):
        nxt = label
        label = 0
        top = scores[t, 0] + transition[0, nxt]
        for i in range(1, n_labels):
            x = scores[t, i] + transition[i, nxt]
            if x > top:
                top = x
                label = i
        labels[t] = label
    return score


@jit
def argmax(x):
    """First position of the largest of `x`."""
    best = 0
    for j in range(1, x.shape[0]):
        if x[j] > x[best]:
            best = j
    return best
