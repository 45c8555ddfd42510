"""Rollback of a portion that fails, for weights that change in place.

A portion has few of the features of the model. So learning from it must not touch all weights: it
can afford neither a copy, in case of an error, nor the average for prediction.
"""

from __future__ import annotations

import numpy as np

from skstruct import kernels

__all__ = ["Undo", "may_rescale"]


class Undo:
    """Restore the weights that a pass over some rows has changed.

    Parameters
    ----------
    state : OnlineState
        State before the pass. The pass must keep the scale of the weights (see `may_rescale`).
    rows : Rows
        Rows of the pass.
    """

    def __init__(self, state, rows):
        self._state = state
        self._progress = state.progress.copy()
        # Rows of features come first, and then those of features of transitions.
        of_tokens = (rows, getattr(rows, "transitions", None))
        self._features = {
            name: _distinct(part.indices, len(getattr(state.chain, name)))
            for name, part in zip(state.chain.of_features, of_tokens, strict=False)
        }
        self._kept = [self._take(chain) for chain in self._chains()]

    def __call__(self):
        """Restore the weights."""
        for chain, kept in zip(self._chains(), self._kept, strict=True):
            for part, saved, features in zip(chain, kept, self._places(chain), strict=True):
                part[features] = saved
        self._state.progress[:] = self._progress

    def _chains(self):
        averages = len(self._state.lag.weights) > 0
        chains = [self._state.chain, self._state.lag] if averages else [self._state.chain]
        return [*chains, *self._state[len(kernels.OnlineState._fields) :]]

    def _take(self, chain):
        return [
            np.array(part) if features is ... else np.take(part, features, axis=0)
            for part, features in zip(chain, self._places(chain), strict=True)
        ]

    def _places(self, chain):
        """Rows of each part of a chain that the pass can change."""
        return [self._features.get(name, ...) for name in chain._fields]


def may_rescale(state, l2, n_samples):
    """Return True if a pass over so many samples may multiply the scale into all weights."""
    shrinkage = state.progress[kernels.RATE] * l2 / max(n_samples, 1)
    if shrinkage >= 1:
        return True
    # Half of it, to allow for rounding.
    least = np.log(state.progress[kernels.SCALE] / 2) + n_samples * np.log1p(-shrinkage)
    return least <= np.log(kernels.SMALLEST_SCALE)


def _distinct(indices, n):
    occurs = np.zeros(n, bool)
    occurs[indices] = True
    return np.flatnonzero(occurs)
