"""Mixing of the weights of learners that were trained in parallel (McDonald et al., 2010)."""

import numpy as np

from skstruct.kernels._jit import jit


@jit
def mix(shards, lags, shares, totals, first, last, lag):
    """Replace the weights of all shards by their mixture, and collect their sums for the average.

    Only the rows ``first:last`` are mixed, so ranges may run in parallel.

    Parameters
    ----------
    shards : ndarray of shape (n_shards, n_rows, n_columns)
        Weights of each shard, divided by its scale; all become the mixture.
    lags : ndarray of shape (n_shards, n_rows, n_columns)
        Lags of the average of each shard (see `OnlineState`), which become zero. Without rows there
        is no average.
    shares : ndarray of shape (n_shards,)
        Scale of each shard times its share of the mixture.
    totals : ndarray of shape (n_shards,)
        Sum of the scales of each shard after each of its samples.
    lag : ndarray of shape (n_rows, n_columns)
        Sums of the weights after each sample are subtracted from here.

    Returns
    -------
    norm : float
        Squared norm of these rows of the mixture.
    """
    n_shards, _, n_columns = shards.shape
    average = lags.shape[1] > 0
    mixture = np.empty(n_columns)
    norm = 0.0
    for i in range(first, last):
        for j in range(n_columns):
            mixture[j] = 0.0
        for s in range(n_shards):
            row = shards[s, i]
            for j in range(n_columns):
                mixture[j] += shares[s] * row[j]
            if average:
                behind = lags[s, i]
                for j in range(n_columns):
                    lag[i, j] += behind[j] - totals[s] * row[j]
                    behind[j] = 0.0
        for j in range(n_columns):
            norm += mixture[j] * mixture[j]
        for s in range(n_shards):
            for j in range(n_columns):
                shards[s, i, j] = mixture[j]
    return norm
