"""State of an online learner: its start, and the average of its weights."""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.input.constraints import WEIGHTS, forbid

__all__ = ["averaged", "new_state", "without_features"]


def new_state(model, *, average, learning_rate, start=None):
    """State before the first sample.

    Parameters
    ----------
    model : Model
        Size of the model.
    average : bool
        Keep track of the average of the weights.
    learning_rate : float
        Step size of the first sample.
    start : Chain, default=None
        Weights to start from, copied; by default, zero.

    Returns
    -------
    state : OnlineState
    """
    if start is None:
        chain = model.zero_chain()
    else:
        chain = forbid(type(start)(*(part.copy() for part in start)), model.possible)
    averages = model._replace(possible=None)
    if not average:
        averages = averages.without_features()
    progress = np.zeros(kernels.N_PROGRESS)
    progress[kernels.NORM] = 0.0 if start is None else _squared_norm(chain)
    progress[kernels.SCALE], progress[kernels.RATE] = 1.0, learning_rate
    return kernels.OnlineState(chain, averages.zero_chain(), progress)


def averaged(state, *, overwrite=False):
    """Chain of the averaged weights, or of the current ones where there is no average.

    Parameters
    ----------
    state : OnlineState
        State after any number of samples.
    overwrite : bool, default=False
        Reuse the arrays of the state for the result.

    Returns
    -------
    chain : Chain
    """
    progress = state.progress
    factor, lag_factor = progress[kernels.SCALE], 0.0
    target = state.chain
    if state.lag.weights.shape[0] > 0 and progress[kernels.SEEN] > 0:
        factor, lag_factor = (
            progress[kernels.TOTAL] / progress[kernels.SEEN],
            1 / progress[kernels.SEEN],
        )
        target = state.lag
    forbidden = {name: np.isneginf(getattr(state.chain, name)) for name in WEIGHTS}
    parts = []
    for weights, lag, out in zip(state.chain, state.lag, target, strict=True):
        part = out if overwrite else np.empty_like(weights)
        kernels.subtract_lag(
            np.atleast_2d(weights), factor, np.atleast_2d(lag), lag_factor, np.atleast_2d(part)
        )
        parts.append(part)
    chain = type(state.chain)(*parts)
    for name, which in forbidden.items():
        # Mixing shards has multiplied these by zero.
        getattr(chain, name)[which] = -np.inf
    return chain


def without_features(chain):
    """The same weights without those of features."""
    return chain._replace(**{name: getattr(chain, name)[:0] for name in chain.of_features})


def _squared_norm(chain):
    """Squared norm of the weights of features."""
    return sum(np.square(getattr(chain, name)).sum() for name in chain.of_features)
