"""Structure regularisation: learning from pieces of the sequences.

Pieces have less label structure, to which the weights of transitions overfit (Sun, 2014). The cuts
are between feature vectors, not in the text: features of neighbouring tokens stay as they are, and
nothing is copied.
"""

from __future__ import annotations

import numpy as np

from skstruct import kernels

__all__ = ["cut_sequences"]


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
        return kernels.cut_evenly(offsets, n_pieces, random_state.uniform(size=n_pieces.sum()))
    mini_length = min(mini_length, longest)
    most = -(-lengths // int(mini_length))
    # One number for the end at which the short rest is left, and one for each length.
    n_draws = int(most.sum()) + len(lengths)
    return kernels.cut(offsets, float(mini_length), random_state.uniform(size=n_draws))
