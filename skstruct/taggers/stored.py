"""Declaration of the state that a stored tagger goes on learning from."""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.utils.declared import Array, Declaration, Either, Record

__all__ = ["LearnerState"]


class LearnerState(Declaration):
    """State from which `partial_fit` goes on.

    Parameters
    ----------
    confident : bool, default=False
        A `ConfidentState`, with variances, and not an `OnlineState`.
    """

    def __init__(self, *, confident=False):
        self._confident = confident

    def write(self, value):
        """Dict of the fields."""
        return _state(0, None, confident=self._confident).write(value)

    def read(self, value, what, size):
        """State with arrays that fit the tagger."""
        what = "the state of the learner"
        n_features, n_edges = size("n_features_in_"), size("_n_edges")
        state = _state(n_features, n_edges, confident=self._confident).read(value, what, size)
        if len({type(chain) for chain in state if isinstance(chain, tuple)}) > 1:
            raise ValueError(f"{what} has weights of several orders.")
        if not len(state.lag.weights) and any(np.any(part) for part in state.lag):
            raise ValueError(f"{what} has averages without those of features.")
        progress = state.progress[[kernels.SEEN, kernels.TOTAL, kernels.RATE]]
        if progress.min() < 0 or state.progress[kernels.SCALE] <= 0:
            raise ValueError(f"{what} has a negative count, scale or rate.")
        return state


def _state(n_features, n_edges, *, confident):
    weights = _weights(n_features, n_edges)
    # Without an average, no feature has one.
    lags = (0, None if n_edges is None else 0), (n_features, n_edges)
    lag = Either(*(_weights(*sizes, forbids=False) for sizes in lags))
    parts = {"chain": weights, "lag": lag}
    parts["progress"] = Array(np.float64, (kernels.N_PROGRESS,))
    if not confident:
        return Record(kernels.OnlineState, **parts)
    return Record(kernels.ConfidentState, **parts, variance=_weights(n_features, n_edges, least=0))


def _weights(n_features, n_edges, least=None, *, forbids=True):
    """Weights of a chain, or as many other numbers."""
    biases = Array(np.float64, ("classes_",), least=least)
    pairs = Array(np.float64, ("classes_", "classes_"), least=least, forbids=forbids)
    ends = Array(np.float64, ("classes_",), least=least, forbids=forbids)
    parts = {
        "weights": Array(np.float64, (n_features, "classes_"), least=least),
        "transition": pairs,
        "intercept": biases,
        "start": ends,
        "end": ends,
    }
    if n_edges is None:
        triples = Array(np.float64, ("_n_pairs", "classes_"), least=least)
        return Either(
            Record(kernels.SecondOrderChain, **parts, triple=triples),
            Record(kernels.Chain, **parts),
        )
    of_pairs = Array(np.float64, (n_edges, "_n_pairs"), least=least)
    return Record(kernels.TransitionChain, **parts, transition_weights=of_pairs)
