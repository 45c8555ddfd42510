"""Voting of all predictors that VRDA went through, without any of them being stored.

The predictor after ``m`` mistakes has the weights ``-shrink(G, m l1) / (eta sqrt(m))`` of the
gradient sums ``G``, and a gradient sum changes only where its feature takes part in a mistake. So
the history of each feature, a few pairs of mistake number and gradient sum, holds all predictors.
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit


class Histories(NamedTuple):
    """For every feature, the mistakes that changed its gradient sum, and the sum after each."""

    indptr: np.ndarray  # (n_features + 1,)
    mistake: np.ndarray  # (n_events,) numbers of mistakes from 1, ascending within a feature
    gradient_sum: np.ndarray  # (n_events,)


class Electorate(NamedTuple):
    """All predictors: what they are made of, and how many votes each has."""

    histories: Histories
    votes: np.ndarray  # (n_mistakes + 1,) of the predictor after so many mistakes
    l1: float
    eta: float


@jit
def build_histories(rows, indptr, mistaken_rows, change, n_features):
    """Histories of all features, from the candidates that each mistake moved the weights by.

    Parameters
    ----------
    rows : Rows
        The candidates of the training set.
    indptr : ndarray of shape (n_mistakes + 1,)
        Where in the next two each mistake starts.
    mistaken_rows : ndarray of int
        Candidates.
    change : ndarray
        The factors of their features in the gradient.
    n_features : int
        Number of features.
    """
    latest = np.zeros(n_features, np.int64)
    starts = np.zeros(n_features + 1, np.int64)
    for m in range(indptr.shape[0] - 1):
        for r in range(indptr[m], indptr[m + 1]):
            for e in range(rows.indptr[mistaken_rows[r]], rows.indptr[mistaken_rows[r] + 1]):
                j = rows.indices[e]
                if latest[j] != m + 1:
                    latest[j] = m + 1
                    starts[j + 1] += 1
    for j in range(n_features):
        starts[j + 1] += starts[j]
    ends = starts[:-1].copy()
    mistake = np.empty(starts[-1], np.int32)
    sums = np.empty(starts[-1])
    current = np.zeros(n_features)
    unit = rows.data.shape[0] == 0
    for m in range(indptr.shape[0] - 1):
        for r in range(indptr[m], indptr[m + 1]):
            for e in range(rows.indptr[mistaken_rows[r]], rows.indptr[mistaken_rows[r] + 1]):
                j = rows.indices[e]
                if ends[j] == starts[j] or mistake[ends[j] - 1] != m + 1:
                    mistake[ends[j]] = m + 1
                    ends[j] += 1
                current[j] += change[r] * (1.0 if unit else rows.data[e])
                sums[ends[j] - 1] = current[j]
    return Histories(starts, mistake, sums)


@jit
def average_weights(electorate, out):
    """Mean of the predictors' weights, each as often as it has votes.

    While a gradient sum stands, its weights are ``-sign(G) (|G| - m l1) / (eta sqrt(m))`` until
    they vanish: two running sums over the predictors give the total of any stretch.
    """
    histories, votes, l1 = electorate.histories, electorate.votes, electorate.l1
    n_mistakes = votes.shape[0] - 1
    by_root = np.zeros(n_mistakes + 2)  # votes / sqrt(m) of all predictors before m
    times_root = np.zeros(n_mistakes + 2)  # votes * sqrt(m)
    total = votes[0]
    for m in range(1, n_mistakes + 1):
        by_root[m + 1] = by_root[m] + votes[m] / np.sqrt(m)
        times_root[m + 1] = times_root[m] + votes[m] * np.sqrt(m)
        total += votes[m]
    for j in range(histories.indptr.shape[0] - 1):
        out[j] = 0.0
        for h in range(histories.indptr[j], histories.indptr[j + 1]):
            g = histories.gradient_sum[h]
            start, stop = histories.mistake[h], n_mistakes + 1
            if h + 1 < histories.indptr[j + 1]:
                stop = histories.mistake[h + 1]
            stop = min(stop, vanishes(g, l1, n_mistakes))
            if stop > start:
                size = np.abs(g) * (by_root[stop] - by_root[start])
                size -= l1 * (times_root[stop] - times_root[start])
                out[j] -= np.sign(g) * size / (electorate.eta * max(total, 1))


@jit
def vanishes(gradient_sum, l1, n_mistakes):
    """Number of mistakes from which on the weight of a standing gradient sum is zero."""
    size = np.abs(gradient_sum)
    if size == 0.0 or size <= l1:
        return 1
    if size > n_mistakes * l1:
        return n_mistakes + 1
    m = np.int64(size / l1)
    while size <= m * l1:
        m -= 1
    while size > m * l1:
        m += 1
    return m


@jit
def count_votes(rows, offsets, first, last, base, electorate, out):
    """Count the votes that each candidate of the groups ``first:last`` gets.

    A predictor votes for its best-scoring candidate, the first of several. Costs one comparison
    a candidate and predictor and, wherever a feature changes or vanishes, new sums over all
    features that have a weight. These start afresh rather than being corrected, so that no
    rounding error piles up and candidates that score the same keep doing so.
    """
    n_features = electorate.histories.indptr.shape[0] - 1
    local = np.full(n_features, -1, np.int32)
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        votes_of_group(rows, a, b, base[a:b], electorate, local, out[a:b])


@jit
def votes_of_group(rows, a, b, base, electorate, local, out):
    """Count the votes for the candidates ``a:b``; ``local`` is -1 throughout, and is so again."""
    features, starts, members, x = group_features(rows, a, b, local)
    n_local = features.shape[0]
    n_mistakes = electorate.votes.shape[0] - 1
    # A calendar: the local features whose weight changes next at a given mistake, as a chain.
    head = np.full(n_mistakes + 2, -1, np.int32)
    chained = np.empty(n_local, np.int32)
    position = np.empty(n_local, np.int64)
    for f in range(n_local):
        position[f] = electorate.histories.indptr[features[f]] - 1
        schedule(f, 0, features, position, electorate, head, chained)
    values = np.zeros(n_local)
    fixed = np.zeros(b - a)
    slope = np.zeros(b - a)
    out[:] = 0
    for m in range(n_mistakes + 1):
        if change_features(m, features, position, electorate, head, chained, values):
            sum_lines(values, starts, members, x, fixed, slope)
        pull = electorate.eta * np.sqrt(m) if m > 0 else 1.0
        best = 0
        highest = fixed[0] + m * electorate.l1 * slope[0] + pull * base[0]
        for y in range(1, b - a):
            score = fixed[y] + m * electorate.l1 * slope[y] + pull * base[y]
            if score > highest:
                best, highest = y, score
        out[best] += electorate.votes[m]


@jit
def group_features(rows, a, b, local):
    """The candidates ``a:b`` by columns: their distinct features, who has each, and its values."""
    first, last = rows.indptr[a], rows.indptr[b]
    features = np.empty(last - first, np.int32)
    counts = np.zeros(last - first + 1, np.int64)
    n_local = 0
    for e in range(first, last):
        j = rows.indices[e]
        if local[j] < 0:
            local[j] = n_local
            features[n_local] = j
            n_local += 1
        counts[local[j] + 1] += 1
    starts = np.cumsum(counts[: n_local + 1])
    filled = starts[:-1].copy()
    members = np.empty(last - first, np.int32)
    x = np.ones(last - first)
    for t in range(a, b):
        for e in range(rows.indptr[t], rows.indptr[t + 1]):
            f = local[rows.indices[e]]
            members[filled[f]] = t - a
            if rows.data.shape[0] > 0:
                x[filled[f]] = rows.data[e]
            filled[f] += 1
    for f in range(n_local):
        local[features[f]] = -1
    return features[:n_local], starts, members, x


@jit
def sum_lines(values, starts, members, x, fixed, slope):
    """Scores of the candidates times ``eta sqrt(m)``, as the lines ``fixed + m l1 slope``.

    Candidates with the same features that have a weight get the same sums to the last bit, since
    features are added in one order and those without a weight not at all.
    """
    fixed[:] = 0.0
    slope[:] = 0.0
    for f in range(values.shape[0]):
        g = values[f]
        if g != 0.0:
            sign = np.sign(g)
            for r in range(starts[f], starts[f + 1]):
                fixed[members[r]] -= x[r] * g
                slope[members[r]] += x[r] * sign


@jit
def schedule(f, m, features, position, electorate, head, chained):
    """Enter in the calendar when the weight of a feature changes next after mistake ``m``."""
    histories = electorate.histories
    n_mistakes = electorate.votes.shape[0] - 1
    h = position[f]
    due = n_mistakes + 1
    if h + 1 < histories.indptr[features[f] + 1]:
        due = np.int64(histories.mistake[h + 1])
    if h >= histories.indptr[features[f]]:
        gone = vanishes(histories.gradient_sum[h], electorate.l1, n_mistakes)
        if m < gone < due:
            due = gone
    chained[f] = head[due]
    head[due] = f


@jit
def change_features(m, features, position, electorate, head, chained, values):
    """Make the changes of gradient sums that are due at mistake ``m``; say whether any were."""
    histories = electorate.histories
    f = head[m]
    if f < 0:
        return False
    while f >= 0:
        coming = chained[f]
        h = position[f]
        if h + 1 < histories.indptr[features[f] + 1] and histories.mistake[h + 1] == m:
            h += 1
            position[f] = h
        g = histories.gradient_sum[h]
        values[f] = g if np.abs(g) > m * electorate.l1 else 0.0
        schedule(f, m, features, position, electorate, head, chained)
        f = coming
    return True
