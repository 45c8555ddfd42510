"""The best label sequence (Viterbi)."""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.scores import transition_score
from skstruct.kernels.vector.rows import max_plus

# Up to so many labels, looking at all of them is faster than choosing.
FEW_LABELS = 32


@lean_jit
def handicaps(transition, out):
    """How far behind the best label another one may be and still matter for the next token.

    ``out[i]`` is the most that label ``i`` can make up for by its transition into some label: what
    it scores there more than the worst label does. Transitions that are minus infinity make it
    infinite, and then no label is left out.
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
def largest(x, n):
    """Largest of the first ``n``; four at a time, so that it is not one chain of comparisons."""
    a = b = c = d = -np.inf
    for i in range(0, n - 3, 4):
        a = x[i] if x[i] > a else a
        b = x[i + 1] if x[i + 1] > b else b
        c = x[i + 2] if x[i + 2] > c else c
        d = x[i + 3] if x[i + 3] > d else d
    for i in range(n - n % 4, n):
        a = x[i] if x[i] > a else a
    return max(max(a, b), max(c, d))


@lean_jit
def keep_contenders(scores, handicap, out):
    """Write the labels that may precede a best one into ``out``; return how many there are."""
    n_labels = handicap.shape[0]
    top = largest(scores, n_labels)
    # A little more than exact, as sums are rounded.
    limit = top - 1e-9 * (1.0 + abs(top))
    n = 0
    for i in range(n_labels):
        out[n] = i
        n += not scores[i] + handicap[i] < limit
    return n


@lean_jit
def best_contenders(previous, transition, contenders, out):
    """``out[j] = max_i previous[i] + transition[i, j]`` with only some labels ``i``."""
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

    Where one of many labels is far ahead, few others can be on a best path; the rest is left out.
    """
    n_labels = transition.shape[-1]
    contenders = np.empty(n_labels + 1, np.int64)
    extend_prefixes(scores, length, transition, np.empty((2, n_labels)), contenders)


@lean_jit
def extend_prefixes(scores, length, transition, workspace, contenders):
    """The same with room for what it needs."""
    best, handicap = workspace[0], workspace[1]
    n_labels = transition.shape[-1]
    choose = n_labels > FEW_LABELS and length > 1
    # Where every token has transitions of its own, choosing would cost as much as it spares.
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
    """Best label sequence of one sequence, and its score.

    No back-pointers are kept: ``scores[t, j]`` becomes the score of the best prefix that ends
    with ``j``, and the way back looks for the predecessor that attains it, which costs one
    pass over the labels a token. Ties go to the smaller label, the last token first.

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
    """Best label sequence from the best scores of prefixes, and its score."""
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
    """First position of the largest of `x`."""
    best = 0
    for j in range(1, x.shape[0]):
        if x[j] > x[best]:
            best = j
    return best
