"""Decomposition of sequences into pieces (structure regularisation; Sun, 2014)."""

import numpy as np

from skstruct.kernels._jit import jit


@jit
def cut(offsets, target, draws):
    """Cut sequences into pieces; return them and their sequences (see `cut_sequences`).

    Parameters
    ----------
    offsets : ndarray of shape (n_sequences + 1,)
        First row of each sequence.
    target : ndarray of shape (n_sequences,)
        Mean length of the pieces of each sequence.
    draws : ndarray
        Random numbers between 0 and 1: one for each sequence and one for each of its pieces.
    """
    samples = np.empty((draws.shape[0], 4), np.int64)
    owner = np.empty(draws.shape[0], np.int64)
    n, drawn = 0, 0
    for i in range(offsets.shape[0] - 1):
        a, b = offsets[i], offsets[i + 1]
        from_end = draws[drawn] < 0.5
        drawn += 1
        shorter = np.int64(target[i])
        left, right = a, b
        while left < right:
            length = shorter + (draws[drawn] < target[i] - shorter)
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
