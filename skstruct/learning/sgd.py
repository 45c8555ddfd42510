"""The solver "sgd": stochastic gradient descent on the negative log-likelihood.

Where some tokens have no label, the loss is the negative logarithm of the marginal likelihood, the
probability of all labellings that agree with the known labels. It is the difference of two
log-partitions, and its gradient that of two means.
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.forward_backward import forward_backward, subtract_agreeing
from skstruct.chain.protocol import add_edge, factors_of, finish, state_of
from skstruct.chain.scores import add_cost, path_score
from skstruct.chain.ties import first_largest
from skstruct.learning.epoch import rule
from skstruct.learning.online import OnlineLearner, Settings, UpdateRule
from skstruct.matrices import read_only

__all__ = ["Settings", "learner", "solve"]


class Likelihood(NamedTuple):
    """Parameters of descent on the likelihood."""

    label_cost: np.ndarray  # added to the scores (see `add_cost`)


class MarginalLikelihood(NamedTuple):
    """Parameters of descent on the marginal likelihood, where some tokens have no label."""

    label_cost: np.ndarray


class _Descent(UpdateRule):
    # Exponentials of all pairs of labels, forward and backward.
    _work = 5.0

    def __init__(self, model):
        self._cost = model.cost

    def _settings_for(self, training_set):
        known = training_set.labels.min(initial=0) >= 0
        kind = Likelihood if known else MarginalLikelihood
        return kind(read_only(self._cost))


def learner(model, settings):
    """Online learner of a conditional random field."""
    return OnlineLearner(_Descent(model), settings, model)


def solve(training_set, model, settings, start, watcher):
    """Learn as `skstruct.learning.solver` says."""
    return learner(model, settings).fit(training_set, start, watcher)


@rule.of(Likelihood)
def crf_rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Gold labelling less the expectation over all labellings.

    This is minus the gradient of the loss, the negative log-likelihood. A token counts as wrong if
    another label than the gold label has the largest marginal. The scores include costs of labels.
    """
    add_cost(settings.label_cost, gold, scores)
    length, n_labels = gold.shape[0], scores.shape[1]
    gold_score = path_score(scores, length, edges, gold)
    factors, scale = factors_of(edges, length), np.empty(length)
    log_z = forward_backward(scores, length, factors, difference, scale, -1.0, counts)
    finish(factors, counts)
    wrong = 0
    for t in range(length):
        wrong += first_largest(difference[t], n_labels) != gold[t]
        for j in range(n_labels):
            difference[t, j] = -difference[t, j]
        difference[t, gold[t]] += 1.0
        if t > 0:
            before, after = state_of(edges, gold, t - 1), state_of(edges, gold, t)
            add_edge(edges, counts, t, before, after, 1.0)
    loss = log_z - gold_score
    return wrong, 0.0 if loss < 0.0 else loss


@rule.of(MarginalLikelihood)
def partial_crf_rule(settings, rows, sample, scores, edges, labels, difference, counts):
    """Expectation over the labellings that agree with the known labels, less that over all.

    This is minus the gradient of the loss. The scores include the costs of labels.
    """
    add_cost(settings.label_cost, labels, scores)
    length, n_labels = labels.shape[0], scores.shape[1]
    kept, scale = scores[:length].copy(), np.empty(length)
    factors = factors_of(edges, length)
    loss = forward_backward(scores, length, factors, difference, scale, -1.0, counts)
    wrong = 0
    for t in range(length):
        wrong += labels[t] >= 0 and first_largest(difference[t], n_labels) != labels[t]
    loss -= subtract_agreeing(kept, labels, factors, -1.0, difference, counts)
    finish(factors, counts)
    return wrong, 0.0 if loss < 0.0 else loss
