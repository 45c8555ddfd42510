"""The solver "sgd": stochastic gradient descent on the negative log-likelihood."""

from __future__ import annotations

from functools import partial

from skstruct.kernels.online.sgd import Likelihood, MarginalLikelihood
from skstruct.learning.online import OnlineLearner, Settings, UpdateRule
from skstruct.matrices import read_only

__all__ = ["Settings", "learner", "solve"]

# Exponentials of all pairs of labels, forward and backward.
_WORK = 5.0


def _settings(model, training_set):
    known = training_set.labels.min(initial=0) >= 0
    kind = Likelihood if known else MarginalLikelihood
    return kind(read_only(model.cost))


def learner(model, settings):
    """Online learner of a conditional random field."""
    return OnlineLearner(UpdateRule(partial(_settings, model), work=_WORK), settings, model)


def solve(training_set, model, settings, start, watcher):
    """Learn as `skstruct.learning.solver` says."""
    return learner(model, settings).fit(training_set, start, watcher)
