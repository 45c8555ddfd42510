"""Changes of weights, and of the lag of their average."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import value_of
from skstruct.kernels._jit import lean_jit
from skstruct.kernels.vector.lanes import LINE, prefetch

# Places in the array `OnlineState.progress`.
SEEN = 0  # number of samples seen
NORM = 1  # squared norm of the feature weights, without the scale
SCALE = 2  # factor of the stored weights
TOTAL = 3  # sum of the scales after each sample
RATE = 4  # learning rate of the next sample
N_PROGRESS = 5


class Scratch(NamedTuple):
    """Workspace: labels or transitions with a difference, and a sum for each."""

    changed: np.ndarray
    both: np.ndarray


@lean_jit
def change_feature_weights(rows, t, d, changed, step, weights, total, lag, both):
    """Change the weights of the features of a token; return the growth of their squared norm."""
    n_labels = d.shape[0]
    average = lag.shape[0] > 0
    first, last = rows.indptr[t], rows.indptr[t + 1]
    if 8 * changed.shape[0] >= n_labels:
        growth = change_rows(rows, first, last, d, step, weights, lag, both)
        if average:
            lag_rows(rows, first, last, d, step, total, lag)
        return growth
    # For a few labels of many, scalar code is faster than whole rows.
    growth = 0.0
    for j in changed:
        total_of_both = 0.0
        for k in range(first, last):
            x = value_of(rows.data, k) * step
            if average:
                prefetch(lag, rows.indices[k] * n_labels + j)
            before = weights[rows.indices[k], j]
            weights[rows.indices[k], j] = before + x * d[j]
            total_of_both += x * (before + weights[rows.indices[k], j])
        growth += d[j] * total_of_both
    if average:
        for j in changed:
            for k in range(first, last):
                lag[rows.indices[k], j] += total * (value_of(rows.data, k) * step * d[j])
    return growth


@lean_jit
def change_rows(rows, first, last, d, step, weights, lag, both):
    """Change some features' weights of all labels; return the growth of their squared norm."""
    n_labels = d.shape[0]
    for j in range(n_labels):
        both[j] = 0.0
    for k in range(first, last):
        x, w = value_of(rows.data, k) * step, weights[rows.indices[k]]
        for j in range(0, n_labels if lag.shape[0] > 0 else 0, LINE):
            prefetch(lag, rows.indices[k] * n_labels + j)
        for j in range(n_labels):
            before = w[j]
            w[j] = before + x * d[j]
            both[j] += x * (before + w[j])
    growth = 0.0
    for j in range(n_labels):
        growth += d[j] * both[j]
    return growth


@lean_jit
def lag_rows(rows, first, last, d, step, total, lag):
    """Add the same change, times the sum of the scales, to the lag of the average."""
    for k in range(first, last):
        x, u = value_of(rows.data, k) * step, lag[rows.indices[k]]
        for j in range(d.shape[0]):
            u[j] += total * (x * d[j])


@lean_jit
def add_lagged(d, step, total, weights, average, lag):
    """Change a vector of weights and the lag of its average."""
    for j in range(d.shape[0]):
        weights[j] += step * d[j]
        if average:
            lag[j] += total * (step * d[j])
