"""Base of the rerankers that learn by steps of (sub)gradient descent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skstruct import kernels
from skstruct.rerankers.base import BaseReranker
from skstruct.rerankers.groups import learn_in_portions


class Descent(NamedTuple):
    """Settings that distinguish one descent learner from another."""

    loss: int  # code of the loss
    rule: kernels.DescentRule
    average: bool  # predict with the average of the weights after every group


class DescentReranker(BaseReranker):
    """Base of the rerankers that learn by steps of (sub)gradient descent.

    A subclass defines ``_descent()``, which returns its settings, a `Descent`.
    """

    def _start(self, n_features, n_groups):
        _, rule, average = self._descent()
        return kernels.DescentState(
            weights=np.zeros(n_features),
            shrunk=np.zeros(n_features if rule.gravity > 0 else 0),
            lag=np.zeros(n_features if average else 0),
            progress=np.zeros(3),
        )

    def _epoch(self, groups, order, state):
        loss, rule, _ = self._descent()
        tally = learn_in_portions(
            lambda part: kernels.descent_epoch(groups, part, loss, rule, state), groups, order
        )
        kernels.pay_all(state)
        return tally, np.count_nonzero(state.weights)

    def _finish(self, groups, state):
        self.coef_ = state.weights
        if state.lag.size:
            self.coef_ = state.weights - state.lag / state.progress[0]
