"""Compiled kernels: arrays in, arrays out, no Python objects."""

from skstruct.chain.kinds import KINDS
from skstruct.kernels.online.arow import ConfidentState
from skstruct.kernels.online.loop import (
    N_PROGRESS,
    RATE,
    SCALE,
    SEEN,
    TOTAL,
    OnlineState,
    online_epoch,
)
from skstruct.kernels.online.mira import MAX_PASSES, Margin
from skstruct.kernels.online.perceptron import Mistakes

__all__ = [
    "KINDS",
    "MAX_PASSES",
    "N_PROGRESS",
    "RATE",
    "SCALE",
    "SEEN",
    "TOTAL",
    "ConfidentState",
    "Margin",
    "Mistakes",
    "OnlineState",
    "online_epoch",
]
