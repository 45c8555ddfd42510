"""Learning from portions: weights that change in place, and go back if a portion fails.

A portion concerns few of the features there are, so nothing may be done to all weights each time:
neither a copy, in case of an error, nor the average that predicts.
"""

from __future__ import annotations

import numpy as np

from skstruct.kernels.chain.scores import Chain, TransitionChain
from skstruct.kernels.online.loop import RATE, SCALE, SMALLEST_SCALE

__all__ = ["Undo", "may_rescale"]


class Undo:
    """Puts back the weights that a pass over some rows has moved.

    Parameters
    ----------
    state : OnlineState
        Before the pass, in which all weights keep their scale (see `may_rescale`).
    rows : Rows
        Of the pass.
    """

    def __init__(self, state, rows):
        self._state = state
        self._progress = state.progress.copy()
        self._features = [_distinct(rows.indices, len(state.chain.weights))]
        if isinstance(state.chain, TransitionChain):
            self._features.append(
                _distinct(rows.transitions.indices, len(state.chain.transition_weights))
            )
        self._kept = [self._take(chain) for chain in self._chains()]

    def __call__(self):
        """Put them back."""
        for chain, kept in zip(self._chains(), self._kept, strict=True):
            for part, saved, features in zip(chain, kept, self._places(chain), strict=True):
                part[features] = saved
        self._state.progress[:] = self._progress

    def _chains(self):
        averages = len(self._state.lag.weights) > 0
        return [self._state.chain, self._state.lag] if averages else [self._state.chain]

    def _take(self, chain):
        return [
            np.array(part) if features is ... else np.take(part, features, axis=0)
            for part, features in zip(chain, self._places(chain), strict=True)
        ]

    def _places(self, chain):
        """Which rows of each part of a chain the pass can move."""
        everything = [...] * (len(Chain._fields) - 1)
        return [self._features[0], *everything, *self._features[1:]]


def may_rescale(state, l2, n_samples):
    """Whether a pass over at least so many samples may multiply the scale into all weights."""
    shrinkage = state.progress[RATE] * l2 / max(n_samples, 1)
    if shrinkage >= 1:
        return True
    # Twice as small, for rounding.
    least = np.log(state.progress[SCALE] / 2) + n_samples * np.log1p(-shrinkage)
    return least <= np.log(SMALLEST_SCALE)


def _distinct(indices, n):
    occurs = np.zeros(n, bool)
    occurs[indices] = True
    return np.flatnonzero(occurs)
