"""Before and after an epoch: features in order of appearance, pieces, mixed weights."""

import numpy as np

from skstruct.chain.scores import Rows, value_of
from skstruct.kernels._jit import jit

# Gaps of Ciura (2001), continued by a factor of 2.25.
GAPS = (8861, 3938, 1750, 701, 301, 132, 57, 23, 10, 4, 1)


def by_appearance(rows, n_features):
    """Rank features by first appearance; return the ranks, and the rows with ranks for features.

    The ranks of a row are sorted. Features that do not appear come last.
    """
    rank, indices, data = rank_by_appearance(rows, n_features)
    return rank, Rows(rows.indptr, indices, data)


@jit
def rank_by_appearance(rows, n_features):
    """Ranks of the features, and indices and values of the rows, as of `by_appearance`."""
    rank = np.full(n_features, -1, np.int32)
    n = 0
    for f in rows.indices:
        if rank[f] < 0:
            rank[f] = n
            n += 1
    for f in range(n_features):
        if rank[f] < 0:
            rank[f] = n
            n += 1
    indices = np.empty(rows.indices.shape[0], np.int32)
    data = rows.data.copy()
    for k in range(indices.shape[0]):
        indices[k] = rank[rows.indices[k]]
    for t in range(rows.indptr.shape[0] - 1):
        sort_row(rows.indptr[t], rows.indptr[t + 1], indices, data)
    return rank, indices, data


@jit
def sort_row(first, last, indices, data):
    """Sort one row by its indices (Shellsort)."""
    unit = data.shape[0] == 0
    for gap in GAPS:
        for k in range(first + gap, last):
            index, m = indices[k], k
            value = value_of(data, k)
            while m >= first + gap and indices[m - gap] > index:
                indices[m] = indices[m - gap]
                if not unit:
                    data[m] = data[m - gap]
                m -= gap
            indices[m] = index
            if not unit:
                data[m] = value


@jit
def reorder(weights, source):
    """Permute rows in place: row ``f`` becomes the old row ``source[f]``."""
    n_features, n_labels = weights.shape
    placed = np.zeros(n_features, np.bool_)
    kept = np.empty(n_labels)
    for start in range(n_features):
        if placed[start]:
            continue
        for j in range(n_labels):
            kept[j] = weights[start, j]
        f = start
        while source[f] != start:
            for j in range(n_labels):
                weights[f, j] = weights[source[f], j]
            placed[f] = True
            f = source[f]
        for j in range(n_labels):
            weights[f, j] = kept[j]
        placed[f] = True


@jit
def cut(offsets, target, draws):
    """Cut sequences into pieces of a given length (see `cut_sequences`).

    Parameters
    ----------
    offsets : ndarray of shape (n_sequences + 1,)
        First row of each sequence.
    target : float
        Mean length of the pieces, the rests of sequences left out.
    draws : ndarray
        Random numbers between 0 and 1: one for each sequence and one for each of its pieces.
    """
    samples = np.empty((draws.shape[0], 4), np.int64)
    owner = np.empty(draws.shape[0], np.int64)
    n, drawn, shorter = 0, 0, np.int64(target)
    for i in range(offsets.shape[0] - 1):
        a, b = offsets[i], offsets[i + 1]
        from_end = draws[drawn] < 0.5
        drawn += 1
        left, right = a, b
        while left < right:
            length = shorter + (draws[drawn] < target - shorter)
            drawn += 1
            length = min(length, right - left)
            start = right - length if from_end else left
            samples[n, 0], samples[n, 1] = start, start + length
            samples[n, 2], samples[n, 3] = start == a, start + length == b
            owner[n] = i
            n += 1
            if from_end:
                right -= length
            else:
                left += length
    return samples[:n], owner[:n]


@jit
def cut_evenly(offsets, n_pieces, draws):
    """Cut each sequence into a number of pieces whose lengths differ by one at most.

    The longer pieces stand anywhere, all orders being equally likely.

    Parameters
    ----------
    offsets : ndarray of shape (n_sequences + 1,)
        First row of each sequence.
    n_pieces : ndarray of shape (n_sequences,)
        Number of pieces of each sequence, at most its length.
    draws : ndarray of shape (sum of n_pieces,)
        Random numbers between 0 and 1.
    """
    samples = np.empty((draws.shape[0], 4), np.int64)
    owner = np.empty(draws.shape[0], np.int64)
    n = 0
    for i in range(n_pieces.shape[0]):
        start, end = offsets[i], offsets[i + 1]
        for left in range(n_pieces[i], 0, -1):
            rows = end - start
            length = rows // left + (draws[n] * left < rows % left)
            samples[n, 0], samples[n, 1] = start, start + length
            samples[n, 2], samples[n, 3] = start == offsets[i], start + length == end
            owner[n] = i
            start += length
            n += 1
    return samples, owner


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
