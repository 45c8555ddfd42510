"""Decomposition of sequences into pieces (structure regularisation; Sun, 2014)."""

import numpy as np

from skstruct.kernels._jit import jit


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
