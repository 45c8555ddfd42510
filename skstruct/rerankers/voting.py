"""Voting of all predictors of VRDA, without storing any of them.

The predictor after ``m`` mistakes has the weights ``-shrink(G, m l1) / (eta sqrt(m))`` (Gao, Xiao,
Xu and He, 2013, equation 10). The gradient sum ``G`` of a feature changes only at mistakes in which
the feature occurs, so a short history of each gradient sum represents all predictors.
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import value_of
from skstruct.compiled.jit import jit
from skstruct.input.training_set import batch_rows
from skstruct.rerankers.groups import errors_name_groups, without_shared
from skstruct.utils.declared import Array, Declaration, Record
from skstruct.utils.parallel import range_runner

# Generous bound of the relative error of a product and a sum.
ROUNDING = 8.0 * np.finfo(np.float64).eps


class Histories(NamedTuple):
    """Mistakes that changed the gradient sum of each feature, and the sum after each."""

    indptr: np.ndarray  # (n_features + 1,)
    mistake: np.ndarray  # (n_events,) numbers of mistakes from 1, ascending within a feature
    gradient_sum: np.ndarray  # (n_events,)


class Electorate(NamedTuple):
    """All predictors, as histories of gradient sums, and their votes."""

    histories: Histories
    votes: np.ndarray  # (n_mistakes + 1,) of the predictor after each number of mistakes
    l1: float
    eta: float


class VoteHistories(Declaration):
    """`Histories` of a reranker, in which the mistakes of every feature ascend."""

    def write(self, value):
        """Dict of the fields."""
        return self._record().write(value)

    def read(self, value, what, size):
        """Histories that voting can replay."""
        found = self._record().read(value, "the history of votes", size)
        indptr, mistake = found.indptr, found.mistake
        if indptr[0] != 0 or np.any(np.diff(indptr) < 0) or indptr[-1] != len(mistake):
            raise ValueError("the history of votes does not belong to the features.")
        later = np.ones(len(mistake), bool)
        later[indptr[:-1][np.diff(indptr) > 0]] = False
        if len(found.gradient_sum) != len(mistake) or np.any(np.diff(mistake)[later[1:]] <= 0):
            raise ValueError("the mistakes in the history of votes are not in order.")
        return found

    def _record(self):
        return Record(
            Histories,
            indptr=Array(np.int64, (("n_features_in_", 1),), least=0),
            mistake=Array(np.int32, (None,), least=1, below=("n_mistakes_", 1)),
            gradient_sum=Array(np.float64, (None,)),
        )


def count_all_votes(batch, base, electorate, n_jobs):
    """Votes of each candidate of a batch, (n_rows,)."""
    with errors_name_groups():
        rows = batch_rows(batch)
    rows = without_shared(rows, batch.offsets, batch.n_features)
    votes = np.empty(batch.n_rows, np.int64)

    def count(_, first, last):
        count_votes(rows, batch.offsets, first, last, base, electorate, votes)

    # Each predictor compares all candidates.
    work_per_row = 10.0 * len(electorate.votes)
    with range_runner(batch.offsets, n_jobs, work_per_row) as run:
        run(count)
    return votes


@jit
def build_histories(rows, indptr, mistaken_rows, change, n_features):
    """Fields of `Histories`, from the candidates in the gradient of each mistake.

    Parameters
    ----------
    rows : Rows
        The candidates of the training set.
    indptr : ndarray of shape (n_mistakes + 1,)
        Start of each mistake in the next two arrays.
    mistaken_rows : ndarray of int
        Candidates.
    change : ndarray
        Factors of these candidates in the gradient.
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
    for m in range(indptr.shape[0] - 1):
        for r in range(indptr[m], indptr[m + 1]):
            for e in range(rows.indptr[mistaken_rows[r]], rows.indptr[mistaken_rows[r] + 1]):
                j = rows.indices[e]
                if ends[j] == starts[j] or mistake[ends[j] - 1] != m + 1:
                    mistake[ends[j]] = m + 1
                    ends[j] += 1
                current[j] += change[r] * value_of(rows.data, e)
                sums[ends[j] - 1] = current[j]
    return starts, mistake, sums


class Columns(NamedTuple):
    """Candidates of a group in compressed columns, one for each feature."""

    features: np.ndarray  # (n_local,) the distinct features of the group
    starts: np.ndarray  # (n_local + 1,)
    members: np.ndarray  # (n_entries,) candidates, from 0
    x: np.ndarray  # (n_entries,)
    largest: np.ndarray  # (n_local,) absolute value


class Lines(NamedTuple):
    """Scores of a group's candidates, times ``eta sqrt(m)``, as lines ``fixed + m l1 slope``.

    They are updated when a feature changes. The rounding error that accumulates is bounded for both
    parts; the bound is zero after the lines have been summed from scratch.
    """

    values: np.ndarray  # (n_local,) gradient sums of the features that have a weight, else 0
    fixed: np.ndarray  # (n_candidates,)
    slope: np.ndarray  # (n_candidates,)
    reach: np.ndarray  # (2,) bound of the absolute values of both parts, which only grows
    error: np.ndarray  # (2,) bound of the rounding errors of both parts


class Calendar(NamedTuple):
    """Changes of the weights of a group's features, by the mistake at which they are due."""

    head: np.ndarray  # (n_mistakes + 2,) first feature that changes at a mistake, or -1
    chained: np.ndarray  # (n_local,) the next one that changes at the same mistake, or -1
    position: np.ndarray  # (n_local,) current position of the features in their histories
    ends: np.ndarray  # (n_local,) of their histories


@jit
def count_votes(rows, offsets, first, last, base, electorate, out):
    """Count the votes that each candidate of the groups ``first:last`` gets.

    A predictor votes for its best-scoring candidate, the first in a tie. This takes one comparison
    for each candidate and predictor, and an update for each candidate that has a feature whose
    weight changes or vanishes. Only scores too close for rounding errors are summed from scratch.
    """
    n_features = electorate.histories.indptr.shape[0] - 1
    local = np.full(n_features, -1, np.int32)
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        votes_of_group(rows, a, b, base[a:b], electorate, local, out[a:b])


@jit
def votes_of_group(rows, a, b, base, electorate, local, out):
    """Count the votes for the candidates ``a:b``; ``local`` is -1 throughout, before and after."""
    columns = group_columns(rows, a, b, local)
    n_local = columns.features.shape[0]
    n_mistakes = electorate.votes.shape[0] - 1
    lines = Lines(np.zeros(n_local), np.zeros(b - a), np.zeros(b - a), np.zeros(2), np.zeros(2))
    calendar = first_changes(columns.features, electorate)
    standing = without_twins(rows, a, b, base)
    out[:] = 0
    for m in range(n_mistakes + 1):
        change_weights(m, columns, calendar, electorate, lines)
        best, is_sure = vote(m, lines, base, standing, electorate)
        if not is_sure:
            sum_lines(columns, lines)
            best, _ = vote(m, lines, base, standing, electorate)
        out[best] += electorate.votes[m]


@jit
def vote(m, lines, base, standing, electorate):
    """Best candidate of the predictor after ``m`` mistakes; False if rounding may have decided."""
    threshold = m * electorate.l1
    pull = electorate.eta * np.sqrt(m) if m > 0 else 1.0
    best, highest, second = -1, -np.inf, -np.inf
    for y in standing:
        score = lines.fixed[y] + threshold * lines.slope[y] + pull * base[y]
        if score > highest:
            best, highest, second = y, score, highest
        elif score > second:
            second = score
    if lines.error[0] == 0.0:
        return best, True
    # Sums from scratch have rounding errors as well.
    again = ROUNDING * lines.values.shape[0]
    error = lines.error[0] + again * lines.reach[0]
    error += threshold * (lines.error[1] + again * lines.reach[1])
    return best, highest - second > error


@jit
def without_twins(rows, a, b, base):
    """Candidates, from 0, without those that equal an earlier one and so never win."""
    standing = np.empty(b - a, np.int64)
    n = 0
    for t in range(a, b):
        is_twin = False
        for u in standing[:n]:
            start, length = rows.indptr[a + u], rows.indptr[a + u + 1] - rows.indptr[a + u]
            if base[u] != base[t - a] or rows.indptr[t + 1] - rows.indptr[t] != length:
                continue
            shift = rows.indptr[t] - start
            is_twin = True
            for e in range(start, start + length):
                same = rows.indices[e] == rows.indices[e + shift]
                if not same or value_of(rows.data, e) != value_of(rows.data, e + shift):
                    is_twin = False
                    break
            if is_twin:
                break
        if not is_twin:
            standing[n] = t - a
            n += 1
    return standing[:n]


@jit
def group_columns(rows, a, b, local):
    """Compressed columns of the candidates ``a:b``."""
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
    largest = np.zeros(n_local)
    for f in range(n_local):
        local[features[f]] = -1
        for r in range(starts[f], starts[f + 1]):
            largest[f] = max(largest[f], np.abs(x[r]))
    return Columns(features[:n_local], starts, members, x, largest)


@jit
def sum_lines(columns, lines):
    """Sum the lines from scratch.

    Candidates that have the same features with nonzero weights get identical sums: features are
    added in one order, and those of weight zero are skipped.
    """
    for part in (lines.fixed, lines.slope, lines.reach, lines.error):
        part[:] = 0.0
    for f in range(lines.values.shape[0]):
        g = lines.values[f]
        if g != 0.0:
            sign = np.sign(g)
            for r in range(columns.starts[f], columns.starts[f + 1]):
                lines.fixed[columns.members[r]] -= columns.x[r] * g
                lines.slope[columns.members[r]] += columns.x[r] * sign
            lines.reach[0] += columns.largest[f] * np.abs(g)
            lines.reach[1] += columns.largest[f]


@jit
def first_changes(features, electorate):
    """Calendar before the first mistake."""
    indptr, n_mistakes = electorate.histories.indptr, electorate.votes.shape[0] - 1
    head = np.full(n_mistakes + 2, -1, np.int32)
    chained = np.empty(features.shape[0], np.int32)
    position, ends = np.empty(features.shape[0], np.int64), np.empty(features.shape[0], np.int64)
    for f in range(features.shape[0]):
        position[f], ends[f] = indptr[features[f]] - 1, indptr[features[f] + 1]
        due = n_mistakes + 1
        if position[f] + 1 < ends[f]:
            due = np.int64(electorate.histories.mistake[position[f] + 1])
        chained[f] = head[due]
        head[due] = f
    return Calendar(head, chained, position, ends)


@jit
def change_weights(m, columns, calendar, electorate, lines):
    """Make the changes of weights that are due at mistake ``m``.

    Records are unpacked first, as passing one on costs more than a change.
    """
    f = calendar.head[m]
    if f < 0:
        return
    starts, members, x, largest = columns.starts, columns.members, columns.x, columns.largest
    head, chained = calendar.head, calendar.chained
    position, ends = calendar.position, calendar.ends
    mistake, gradient_sum = electorate.histories.mistake, electorate.histories.gradient_sum
    values, fixed, slope = lines.values, lines.fixed, lines.slope
    l1, n_mistakes = electorate.l1, electorate.votes.shape[0] - 1
    reach, error = lines.reach, lines.error
    while f >= 0:
        coming, h = chained[f], position[f]
        if h + 1 < ends[f] and mistake[h + 1] == m:
            h += 1
            position[f] = h
        g = gradient_sum[h]
        old, size = values[f], np.abs(g)
        value = g if size > m * l1 else 0.0
        turn = np.sign(value) - np.sign(old)
        for r in range(starts[f], starts[f + 1]):
            fixed[members[r]] -= x[r] * (value - old)
        if turn != 0.0:
            for r in range(starts[f], starts[f + 1]):
                slope[members[r]] += x[r] * turn
            reach[1] += largest[f]
            error[1] += ROUNDING * (reach[1] + largest[f])
        values[f] = value
        reach[0] += largest[f] * max(0.0, np.abs(value) - np.abs(old))
        error[0] += ROUNDING * (reach[0] + largest[f] * (np.abs(value) + np.abs(old)))
        due = np.int64(mistake[h + 1]) if h + 1 < ends[f] else n_mistakes + 1
        if value != 0.0:
            due = min(due, vanishes(g, l1, n_mistakes))
        chained[f] = head[due]
        head[due] = f
        f = coming


@jit
def vanishes(gradient_sum, l1, n_mistakes):
    """First number of mistakes at which the weight of a constant gradient sum is zero."""
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
