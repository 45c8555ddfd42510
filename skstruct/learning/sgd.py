"""The solver "sgd": stochastic gradient descent on the negative log-likelihood."""

from __future__ import annotations

from skstruct import kernels
from skstruct.learning.online import OnlineLearner, Settings, UpdateRule

__all__ = ["Settings", "learner", "solve"]

# Exponentials of all pairs of labels, forward and backward.
_WORK = 5.0


def _settings(training_set):
    if training_set.labels.min(initial=0) >= 0:
        return kernels.Likelihood()
    return kernels.MarginalLikelihood()


def learner(model, settings):
    """Online learner of a conditional random field."""
    return OnlineLearner(UpdateRule(_settings, work=_WORK), settings, model)


def solve(training_set, model, settings, start, watcher):
    """Learn as `skstruct.learning.solver` says."""
    return learner(model, settings).fit(training_set, start, watcher)
