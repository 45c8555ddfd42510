"""Truncated gradient over n-best candidates."""

from __future__ import annotations

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

from skstruct import kernels
from skstruct.rerankers.base import LOSS_OPTIONS
from skstruct.rerankers.descent import Descent, DescentReranker
from skstruct.utils.public_paths import set_module

__all__ = ["TruncatedGradientReranker"]


@set_module("skstruct")
class TruncatedGradientReranker(DescentReranker):
    """Truncated gradient over candidates (Langford, Li and Zhang, 2009).

    Stochastic gradient descent that moves all weights towards zero after every `period` groups, by
    the step size times ``period * gravity``. Weights closer to zero than that become zero.

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
        **DescentReranker._parameter_constraints,
        "loss": [LOSS_OPTIONS],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "schedule": [StrOptions({"invsqrt", "constant"})],
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
        self.loss = loss
        self.gravity = gravity
        self.period = period
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

    def _descent(self):
        rule = kernels.DescentRule(
            learning_rate=float(self.learning_rate),
            decay=self.schedule == "invsqrt",
            on_mistakes=False,
            gravity=float(self.gravity),
            # Kernels count in 64 bits.
            period=min(int(self.period), 2**62),
        )
        return Descent(kernels.LOSSES[self.loss], rule, average=False)
