"""Rerankers that learn by steps of (sub)gradient descent: perceptron, SGD, truncated gradient."""

from functools import partial
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.chain.scores import longest
from skstruct.compiled.jit import inner_jit, jit
from skstruct.rerankers.base import BaseReranker, learn_in_portions
from skstruct.rerankers.losses import (
    HINGE,
    LOSSES,
    candidate_scores,
    dual_weight,
    judge,
    loss_gradient,
    scatter,
)
from skstruct.utils.persistence import set_module


class DescentReranker(BaseReranker):
    """Base of the rerankers that learn by steps of (sub)gradient descent.

    A subclass defines ``_rule()``, which returns its `DescentRule`.
    """

    def _start(self, n_features):
        rule = self._rule()
        return DescentState(
            weights=np.zeros(n_features),
            shrunk=np.zeros(n_features if rule.gravity > 0 else 0),
            lag=np.zeros(n_features if rule.average else 0),
            progress=np.zeros(3),
        )

    def _epoch(self, groups, order, state):
        learn = partial(descent_epoch, self._rule(), groups, state)
        tally = learn_in_portions(learn, groups, order)
        pay_penalty(np.arange(len(state.shrunk)), state)
        return tally, np.count_nonzero(state.weights)

    def _finish(self, groups, state):
        self.coef_ = state.weights
        if state.lag.size:
            self.coef_ = state.weights - state.lag / state.progress[0]


@set_module("skstruct")
class PerceptronReranker(DescentReranker):
    r"""Averaged perceptron over candidates (Collins, 2002).

    Wherever it chooses wrongly, it adds the features of the oracle :math:`x^*` to the weights and
    subtracts the features of the candidate chosen, :math:`\hat x`:

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
        self.baseline = baseline
        self.baseline_weight = baseline_weight
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _rule(self):
        # On a mistake, the gradient of the hinge loss is the difference of the two candidates.
        return DescentRule(HINGE, 1.0, decay=False, on_mistakes=True, average=self.average)


@set_module("skstruct")
class SGDReranker(DescentReranker):
    r"""Stochastic gradient descent over candidates.

    At every group it takes a step against the gradient of the loss :math:`L`. The step size
    :math:`\gamma_k` of the k-th step is `learning_rate`, or that divided by :math:`\sqrt k`. Groups
    where the derivatives by the scores are zero, such as those that the oracle wins by the margin
    of the hinge loss, are passed over and not counted as steps:

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

    _remedy = f"{DescentReranker._remedy}, or a smaller learning rate"

    _parameter_constraints: dict = {
        **DescentReranker._parameter_constraints,
        "loss": [StrOptions(set(LOSSES))],
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
        self.baseline = baseline
        self.baseline_weight = baseline_weight
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _rule(self):
        loss, decay = LOSSES[self.loss], self.schedule == "invsqrt"
        return DescentRule(loss, float(self.learning_rate), decay)


@set_module("skstruct")
class TruncatedGradientReranker(SGDReranker):
    r"""Truncated gradient over candidates (Langford, Li and Zhang, 2009).

    Stochastic gradient descent that moves all weights towards zero after every `period` groups.
    With the step size :math:`\gamma_k` at the last of these, `period` :math:`K` and `gravity`
    :math:`g`,

    .. math::

       w \leftarrow \operatorname{sign}(w) \, \max(0, \lvert w \rvert - \gamma_k K g)

    If no step is taken at that group, :math:`\gamma_k` is the size of the next one.

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
        # Kernels count in 64 bits.
        period = min(int(self.period), 2**62)
        return super()._rule()._replace(gravity=float(self.gravity), period=period)


class DescentState(NamedTuple):
    """State of stochastic gradient descent and its variants."""

    weights: np.ndarray  # (n_features,)
    shrunk: np.ndarray  # (n_features,) penalty applied to each weight so far; (0,) without
    lag: np.ndarray  # (n_features,) lag of the average; (0,) without
    progress: np.ndarray  # (3,) groups seen, updates made, penalty due in total


class DescentRule(NamedTuple):
    """Parameters in which the perceptron, SGD and truncated gradient differ."""

    loss: int  # its code
    learning_rate: float
    decay: bool  # the k-th step is learning_rate / sqrt(k)
    on_mistakes: bool = False  # update only at mistakes
    average: bool = False  # predict with the average of the weights after every group
    gravity: float = 0.0
    period: int = 1


@jit
def descent_epoch(rule, groups, state, order):
    """One pass of (truncated) gradient descent or the perceptron; return the fields of `Tally`."""
    scores = np.empty(longest(groups.offsets, 0, groups.offsets.shape[0] - 1))
    change = np.empty(scores.shape[0])
    rows, progress = groups.rows, state.progress
    n_mistakes, total_loss, total_cost = 0, 0.0, 0.0
    for i in order:
        a, b = groups.offsets[i], groups.offsets[i + 1]
        s, d, costs = scores[: b - a], change[: b - a], groups.costs[a:b]
        pay_penalty(rows.indices[rows.indptr[a] : rows.indptr[b]], state)
        candidate_scores(rows, a, b, groups.base, state.weights, s)
        predicted, oracle, rival = judge(s, costs)
        total_cost += groups.sample_weight[i] * costs[predicted]
        step = rule.learning_rate / np.sqrt(progress[1] + 1.0 if rule.decay else 1.0)
        if rival >= 0:
            mistaken = costs[predicted] > costs[oracle]
            n_mistakes += mistaken
            loss = loss_gradient(rule.loss, s, costs, oracle, rival, d)
            total_loss += groups.sample_weight[i] * loss
            if (mistaken or not rule.on_mistakes) and d.any():
                step_down(rows, a, d, step * groups.sample_weight[i], state)
                progress[1] += 1.0
        progress[0] += 1.0
        if rule.gravity > 0.0 and progress[0] % rule.period == 0.0:
            progress[2] += step * rule.period * rule.gravity
    return n_mistakes, total_loss, total_cost


@inner_jit
def step_down(rows, first, d, step, state):
    """Take a step against the gradient; add it to the lag of the average."""
    scatter(rows, first, d, -step, state.weights)
    if state.lag.shape[0] > 0:
        scatter(rows, first, d, -step * state.progress[0], state.lag)


@jit
def pay_penalty(features, state):
    """Bring the weights of some features up to date with the truncation (12).

    Shrinking twice equals shrinking once by the sum, so it can wait until a weight is read.
    """
    if state.shrunk.shape[0] == 0:
        return
    due = state.progress[2]
    for j in features:
        if state.shrunk[j] != due:
            state.weights[j] = dual_weight(-state.weights[j], due - state.shrunk[j], 1.0)
            state.shrunk[j] = due
