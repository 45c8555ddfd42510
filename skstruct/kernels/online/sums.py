"""Sums of the differences of a sample by feature and label, and the change of their weights."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import value_of
from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.online.changes import NORM, TOTAL
from skstruct.kernels.online.products import claim_slot


class Sums(NamedTuple):
    """Differences of one sample, added up by feature and label (or transition)."""

    values: np.ndarray  # one after the other, feature by feature
    features: np.ndarray  # feature of each row
    labels: np.ndarray  # label of each column
    counts: np.ndarray  # (2,), numbers of rows and of columns


@jit
def room_for_sums(rows, samples, n_codes):
    """Workspace for the sums of any sample, where a token has one of `n_codes` labels."""
    n_features, n_sums, width = 0, 0, 0
    for s in range(samples.shape[0]):
        n = rows.indptr[samples[s, 1]] - rows.indptr[samples[s, 0]]
        columns = min(2 * (samples[s, 1] - samples[s, 0]), n_codes)
        n_features, width = max(n_features, n), max(width, columns)
        n_sums = max(n_sums, n * columns)
    return Sums(
        np.empty(n_sums),
        np.empty(n_features, np.int64),
        np.empty(width, np.int64),
        np.zeros(2, np.int64),
    )


@lean_jit
def add_up(rows, sample, difference, settings, sums):
    """Add up the differences of the features of a sample, by feature and label."""
    length = sample[1] - sample[0]
    n_rows, n_columns = 0, 0
    for t in range(length):
        for j in range(difference.shape[1]):
            if difference[t, j] != 0.0 and settings.columns[j] < 0:
                sums.labels[n_columns] = j
                n_columns = claim_slot(j, settings.columns, n_columns)
    for t in range(length):
        if not any_change(difference, t):
            continue
        for k in range(rows.indptr[sample[0] + t], rows.indptr[sample[0] + t + 1]):
            f = rows.indices[k]
            if settings.slots[f] < 0:
                sums.features[n_rows] = f
                for c in range(n_columns):
                    sums.values[n_rows * n_columns + c] = 0.0
                n_rows = claim_slot(f, settings.slots, n_rows)
            first, x = settings.slots[f] * n_columns, value_of(rows.data, k)
            for c in range(n_columns):
                sums.values[first + c] += x * difference[t, sums.labels[c]]
    for r in range(n_rows):
        settings.slots[sums.features[r]] = -1
    for c in range(n_columns):
        settings.columns[sums.labels[c]] = -1
    sums.counts[0], sums.counts[1] = n_rows, n_columns


@lean_jit
def any_change(difference, t):
    """Return True if the difference of a token is not zero."""
    found = False
    for j in range(difference.shape[1]):
        found |= difference[t, j] != 0.0
    return found


@lean_jit
def spread_of_sums(sums, variance):
    """Variance of the score of the sums."""
    n_columns, spread = sums.counts[1], 0.0
    for r in range(sums.counts[0]):
        f = sums.features[r]
        for c in range(n_columns):
            d = sums.values[r * n_columns + c]
            if d != 0.0:
                spread += d * d * variance[f, sums.labels[c]]
    return spread


@lean_jit
def change_sums(sums, step, weights, lag, variance, progress):
    """Change the weights of the features of a sample, and their variances."""
    n_columns, growth = sums.counts[1], 0.0
    multiplier, slack = step
    average, so_far = lag.shape[0] > 0, progress[TOTAL]
    for r in range(sums.counts[0]):
        f = sums.features[r]
        for c in range(n_columns):
            d, j = sums.values[r * n_columns + c], sums.labels[c]
            if d == 0.0:
                continue
            v, before = variance[f, j], weights[f, j]
            change = multiplier * v * d
            weights[f, j] = before + change
            growth += change * (before + weights[f, j])
            if average:
                lag[f, j] += so_far * change
            variance[f, j] = v / (1.0 + v * d * d / slack)
    progress[NORM] += growth
