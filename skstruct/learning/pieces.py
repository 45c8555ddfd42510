"""Pieces of sequences, for structure regularisation (Sun, 2014)."""

import numpy as np

from skstruct.compiled.jit import jit


def cut_sequences(offsets, random_state, *, mini_length=None, structure_alpha=1.0):
    """Cut every sequence at random into mini-samples (structure-regularization-2014, Algorithm 1).

    Parameters
    ----------
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    random_state : RandomState
        Source of the cuts. Nothing is drawn where nothing is cut.
    mini_length : float, default=None
        Length of the pieces. If it is not an integer, lengths are a mixture of the two nearest
        integers: 5.5 is as often 5 as 6. The rest of a sequence is a shorter piece at either end,
        so that the mean length of all pieces is below `mini_length`.
    structure_alpha : float, default=1.0
        Mean number of pieces of each sequence, if `mini_length` is None; 1 cuts nothing. Numbers
        are a mixture of the two nearest integers. A sequence of fewer tokens is cut between all of
        them.

    Returns
    -------
    samples : ndarray of shape (n_samples, 4)
        First row and end of each piece, and flags that are 1 if it has the first and the last token
        of its sequence.
    owner : ndarray of shape (n_samples,)
        Number of the sequence that each piece belongs to.
    """
    lengths = np.diff(offsets)
    if mini_length is None and structure_alpha == 1:
        whole = np.ones_like(lengths)
        return np.column_stack([offsets[:-1], offsets[1:], whole, whole]), np.arange(len(lengths))
    longest = lengths.max(initial=1)
    if mini_length is None:
        structure_alpha = min(structure_alpha, longest)
        fewest = int(structure_alpha)
        one_more = random_state.uniform(size=len(lengths)) < structure_alpha - fewest
        n_pieces = np.minimum(fewest + one_more, lengths)
        return cut_evenly(offsets, n_pieces, random_state.uniform(size=n_pieces.sum()))
    mini_length = min(mini_length, longest)
    most = -(-lengths // int(mini_length))
    # One number for the end at which the short rest is left, and one for each length.
    n_draws = int(most.sum()) + len(lengths)
    return cut(offsets, float(mini_length), random_state.uniform(size=n_draws))


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
