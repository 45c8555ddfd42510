"""What VRDA is compared with: the averaged perceptron, SGD and truncated gradient."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.kernels.rerank.learn import DescentRule, DescentState, descent_epoch, pay_all
from skstruct.rerankers.base import LOSSES, BaseReranker, loss_constraint

__all__ = ["PerceptronReranker", "SGDReranker", "TruncatedGradientReranker"]


class _DescentReranker(BaseReranker):
    """Base of the rerankers that step from weights to weights; a subclass sets ``_rule()``."""

    def _start(self, n_features, n_groups):
        rule = self._rule()

        def vector(wanted):
            return np.zeros(n_features if wanted else 0)

        return DescentState(
            vector(True), vector(rule.gravity > 0), vector(self._averages()), np.zeros(3)
        )

    def _averages(self):
        return False

    def _epoch(self, groups, order, state):
        loss = LOSSES[getattr(self, "loss", "hinge")]
        tally = descent_epoch(groups, order, loss, self._rule(), state)
        pay_all(state)
        return tally, np.count_nonzero(state.weights)

    def _finish(self, groups, state):
        self.coef_ = state.weights
        if self._averages():
            self.coef_ = state.weights - state.lag / state.progress[0]


class PerceptronReranker(_DescentReranker):
    """Averaged perceptron over candidates (Collins, 2002).

    Where it chooses wrongly, adds the features of the oracle to the weights and subtracts those
    of its choice.

    Parameters
    ----------
    average : bool, default=True
        Whether to predict with the average of the weights after every group, or with the last.
    baseline : str, int or None, default=None
        Name or column of a feature that is a baseline's score. It has the fixed weight
        `baseline_weight` and not a learnt one.
    baseline_weight : float, default=1.0
        Factor of the baseline's score, whether a feature or given to `fit`.
    max_iter : int, default=10
        Epochs, passes over the groups.
    shuffle : bool, default=True
        Whether to visit the groups in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Source of the order.
    verbose : int, default=0
        Whether to print the mistakes of every epoch.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        As of `VRDAReranker`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has them.

    See Also
    --------
    VRDAReranker : As good with fewer weights.

    References
    ----------
    Michael Collins: Discriminative training methods for hidden Markov models: theory and
    experiments with perceptron algorithms. EMNLP 2002.

    Examples
    --------
    >>> from skstruct import PerceptronReranker
    >>> X = [[["short"], ["long"]], [["long", "odd"], ["short", "odd"]]]
    >>> PerceptronReranker(random_state=0).fit(X, [0, 1]).predict([[["long"], ["short"]]])
    array([1])
    """

    _parameter_constraints: dict = {
        **BaseReranker._parameter_constraints,
        "average": ["boolean"],
    }

    def __init__(
        self,
        *,
        average=True,
        baseline=None,
        baseline_weight=1.0,
        max_iter=10,
        shuffle=True,
        random_state=None,
        verbose=0,
    ):
        self.average = average
        self.baseline = baseline
        self.baseline_weight = baseline_weight
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _rule(self):
        return DescentRule(1.0, False, True, 0.0, 1)

    def _averages(self):
        return self.average


class SGDReranker(_DescentReranker):
    """Stochastic gradient descent over candidates.

    Takes a step against the gradient of the loss at every group.

    Parameters
    ----------
    loss : {"hinge", "logistic", "log", "bayes_risk"}, default="log"
        As in `VRDAReranker`.
    learning_rate : float, default=0.1
        Length of the steps; of the first one with ``schedule="invsqrt"``.
    schedule : {"invsqrt", "constant"}, default="invsqrt"
        Whether the k-th step is `learning_rate` divided by the square root of k.
    baseline : str, int or None, default=None
        Name or column of a feature that is a baseline's score. It has the fixed weight
        `baseline_weight` and not a learnt one.
    baseline_weight : float, default=1.0
        Factor of the baseline's score, whether a feature or given to `fit`.
    max_iter : int, default=10
        Epochs, passes over the groups.
    shuffle : bool, default=True
        Whether to visit the groups in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Source of the order.
    verbose : int, default=0
        Whether to print the mistakes of every epoch.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        As of `VRDAReranker`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has them.

    See Also
    --------
    TruncatedGradientReranker : The same with a pull to zero.

    Examples
    --------
    >>> from skstruct import SGDReranker
    >>> X = [[["short"], ["long"]], [["long", "odd"], ["short", "odd"]]]
    >>> SGDReranker(random_state=0).fit(X, [0, 1]).predict([[["long"], ["short"]]])
    array([1])
    """

    _parameter_constraints: dict = {
        **BaseReranker._parameter_constraints,
        "loss": loss_constraint(),
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"invsqrt", "constant"})],
    }

    def __init__(
        self,
        *,
        loss="log",
        learning_rate=0.1,
        schedule="invsqrt",
        baseline=None,
        baseline_weight=1.0,
        max_iter=10,
        shuffle=True,
        random_state=None,
        verbose=0,
    ):
        self.loss = loss
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.baseline = baseline
        self.baseline_weight = baseline_weight
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _rule(self):
        return DescentRule(float(self.learning_rate), self.schedule == "invsqrt", False, 0.0, 1)


class TruncatedGradientReranker(_DescentReranker):
    """Truncated gradient over candidates (Langford, Li and Zhang, 2009).

    Stochastic gradient descent that, after every `period` groups, moves all weights towards zero
    by ``learning_rate * period * gravity``, and to zero those that are closer.

    Parameters
    ----------
    loss : {"hinge", "logistic", "log", "bayes_risk"}, default="log"
        As in `VRDAReranker`.
    gravity : float, default=1e-4
        Strength of the pull to zero, 0 for none.
    period : int, default=10
        Groups from one truncation to the next.
    learning_rate : float, default=0.1
        Length of the steps; of the first one with ``schedule="invsqrt"``.
    schedule : {"invsqrt", "constant"}, default="invsqrt"
        Whether the k-th step is `learning_rate` divided by the square root of k.
    baseline : str, int or None, default=None
        Name or column of a feature that is a baseline's score. It has the fixed weight
        `baseline_weight` and not a learnt one.
    baseline_weight : float, default=1.0
        Factor of the baseline's score, whether a feature or given to `fit`.
    max_iter : int, default=10
        Epochs, passes over the groups.
    shuffle : bool, default=True
        Whether to visit the groups in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Source of the order.
    verbose : int, default=0
        Whether to print the mistakes of every epoch.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        As of `VRDAReranker`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has them.

    See Also
    --------
    VRDAReranker : Sparser at the same quality.

    References
    ----------
    John Langford, Lihong Li and Tong Zhang: Sparse online learning via truncated gradient.
    Journal of Machine Learning Research 10, 2009.

    Examples
    --------
    >>> from skstruct import TruncatedGradientReranker
    >>> X = [[["short"], ["long"]], [["long", "odd"], ["short", "odd"]]]
    >>> reranker = TruncatedGradientReranker(random_state=0).fit(X, [0, 1])
    >>> reranker.predict([[["long"], ["short"]]])
    array([1])
    """

    _parameter_constraints: dict = {
        **SGDReranker._parameter_constraints,
        "gravity": [Interval(Real, 0, None, closed="left")],
        "period": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        loss="log",
        gravity=1e-4,
        period=10,
        learning_rate=0.1,
        schedule="invsqrt",
        baseline=None,
        baseline_weight=1.0,
        max_iter=10,
        shuffle=True,
        random_state=None,
        verbose=0,
    ):
        self.loss = loss
        self.gravity = gravity
        self.period = period
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.baseline = baseline
        self.baseline_weight = baseline_weight
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _rule(self):
        return DescentRule(
            float(self.learning_rate),
            self.schedule == "invsqrt",
            False,
            float(self.gravity),
            int(self.period),
        )
