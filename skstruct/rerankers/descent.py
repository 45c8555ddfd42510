"""Rerankers that learn by steps of (sub)gradient descent: perceptron, SGD, truncated gradient."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct import kernels
from skstruct.rerankers.base import LOSS_OPTIONS, BaseReranker
from skstruct.rerankers.groups import learn_in_portions
from skstruct.utils.public_paths import set_module


class DescentReranker(BaseReranker):
    """Base of the rerankers that learn by steps of (sub)gradient descent.

    A subclass defines ``_descent()``, which returns the code of its loss, its `DescentRule`, and
    True if it predicts with the average of the weights after every group.
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


@set_module("skstruct")
class PerceptronReranker(DescentReranker):
    r"""Averaged perceptron over candidates (Collins, 2002).

    Wherever it chooses wrongly, it adds the features of the oracle :math:`x^*` to the weights and
    subtracts those of the candidate chosen, :math:`\hat x`:

    .. math::

       w \leftarrow w + x^* - \hat x

    Parameters
    ----------
    average : bool, default=True
        If True, predict with the average of the weights after every group; if False, with the
        last weights.
    baseline : str, int or None, default=None
        Name or column of the feature that is a baseline's score. Its weight is `baseline_weight`
        and is not learnt.
    baseline_weight : float, default=1.0
        Factor of the baseline's score, either the feature or the scores given to `fit`.
    max_iter : int, default=10
        Number of epochs, passes over the groups.
    shuffle : bool, default=True
        If True, visit the groups in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Seed of the order.
    verbose : int, default=0
        1 prints a line for each epoch with the time left, 2 the numbers of ``history_``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        As in `VRDAReranker`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has them.

    See Also
    --------
    VRDAReranker : Similar accuracy with fewer weights.

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
        **DescentReranker._parameter_constraints,
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
    ) -> None:
        self.average = average
        super().__init__(
            baseline=baseline,
            baseline_weight=baseline_weight,
            max_iter=max_iter,
            shuffle=shuffle,
            random_state=random_state,
            verbose=verbose,
        )

    def _descent(self):
        # On a mistake, the gradient of the hinge loss is the difference of the two candidates.
        rule = kernels.DescentRule(
            learning_rate=1.0, decay=False, on_mistakes=True, gravity=0.0, period=1
        )
        return kernels.HINGE, rule, self.average


@set_module("skstruct")
class SGDReranker(DescentReranker):
    r"""Stochastic gradient descent over candidates.

    At every group it takes a step against the gradient of the loss :math:`L`. The step size
    :math:`\gamma_k` of the k-th step is `learning_rate`, or that divided by :math:`\sqrt k`:

    .. math::

       w \leftarrow w - \gamma_k \, \nabla L(w)

    Parameters
    ----------
    loss : {"hinge", "logistic", "log", "bayes_risk"}, default="log"
        Loss, as in `VRDAReranker`.
    learning_rate : float, default=0.1
        Step size; with ``schedule="invsqrt"``, the size of the first step.
    schedule : {"invsqrt", "constant"}, default="invsqrt"
        Step size at the k-th step: `learning_rate` divided by the square root of k, or constant.
    baseline : str, int or None, default=None
        Name or column of the feature that is a baseline's score. Its weight is `baseline_weight`
        and is not learnt.
    baseline_weight : float, default=1.0
        Factor of the baseline's score, either the feature or the scores given to `fit`.
    max_iter : int, default=10
        Number of epochs, passes over the groups.
    shuffle : bool, default=True
        If True, visit the groups in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Seed of the order.
    verbose : int, default=0
        1 prints a line for each epoch with the time left, 2 the numbers of ``history_``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        As in `VRDAReranker`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has them.

    See Also
    --------
    TruncatedGradientReranker : Sparse weights by a pull to zero.

    Examples
    --------
    >>> from skstruct import SGDReranker
    >>> X = [[["short"], ["long"]], [["long", "odd"], ["short", "odd"]]]
    >>> SGDReranker(random_state=0).fit(X, [0, 1]).predict([[["long"], ["short"]]])
    array([1])
    """

    _parameter_constraints: dict = {
        **DescentReranker._parameter_constraints,
        "loss": [LOSS_OPTIONS],
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
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.schedule = schedule
        super().__init__(
            baseline=baseline,
            baseline_weight=baseline_weight,
            max_iter=max_iter,
            shuffle=shuffle,
            random_state=random_state,
            verbose=verbose,
        )

    def _descent(self, gravity=0.0, period=1):
        rule = kernels.DescentRule(
            learning_rate=float(self.learning_rate),
            decay=self.schedule == "invsqrt",
            on_mistakes=False,
            gravity=gravity,
            period=period,
        )
        return kernels.LOSSES[self.loss], rule, False


@set_module("skstruct")
class TruncatedGradientReranker(SGDReranker):
    r"""Truncated gradient over candidates (Langford, Li and Zhang, 2009).

    Stochastic gradient descent that moves all weights towards zero after every `period` groups.
    With the step size :math:`\gamma_k`, `period` :math:`K` and `gravity` :math:`g`,

    .. math::

       w \leftarrow \operatorname{sign}(w) \, \max(0, \lvert w \rvert - \gamma_k K g)

    Parameters
    ----------
    loss : {"hinge", "logistic", "log", "bayes_risk"}, default="log"
        Loss, as in `VRDAReranker`.
    gravity : float, default=1e-4
        Strength of the pull to zero; 0 turns it off.
    period : int, default=10
        Number of groups from one truncation to the next.
    learning_rate : float, default=0.1
        Step size; with ``schedule="invsqrt"``, the size of the first step.
    schedule : {"invsqrt", "constant"}, default="invsqrt"
        Step size at the k-th step: `learning_rate` divided by the square root of k, or constant.
    baseline : str, int or None, default=None
        Name or column of the feature that is a baseline's score. Its weight is `baseline_weight`
        and is not learnt.
    baseline_weight : float, default=1.0
        Factor of the baseline's score, either the feature or the scores given to `fit`.
    max_iter : int, default=10
        Number of epochs, passes over the groups.
    shuffle : bool, default=True
        If True, visit the groups in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Seed of the order.
    verbose : int, default=0
        1 prints a line for each epoch with the time left, 2 the numbers of ``history_``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        As in `VRDAReranker`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has them.

    See Also
    --------
    VRDAReranker : Sparser at the same accuracy.

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
    ) -> None:
        self.gravity = gravity
        self.period = period
        super().__init__(
            loss=loss,
            learning_rate=learning_rate,
            schedule=schedule,
            baseline=baseline,
            baseline_weight=baseline_weight,
            max_iter=max_iter,
            shuffle=shuffle,
            random_state=random_state,
            verbose=verbose,
        )

    def _descent(self):
        # Kernels count in 64 bits.
        return super()._descent(float(self.gravity), min(int(self.period), 2**62))
