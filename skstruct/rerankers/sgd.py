"""Stochastic gradient descent over n-best candidates."""

from __future__ import annotations

from numbers import Real

from sklearn.utils._param_validation import Interval, StrOptions

from skstruct import kernels
from skstruct.rerankers.base import LOSS_OPTIONS
from skstruct.rerankers.descent import Descent, DescentReranker
from skstruct.utils.public_paths import set_module

__all__ = ["SGDReranker"]


@set_module("skstruct")
class SGDReranker(DescentReranker):
    """Stochastic gradient descent over candidates.

    At every group it takes a step against the gradient of the loss.

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

    def _descent(self):
        rule = kernels.DescentRule(
            learning_rate=float(self.learning_rate),
            decay=self.schedule == "invsqrt",
            on_mistakes=False,
            gravity=0.0,
            period=1,
        )
        return Descent(kernels.LOSSES[self.loss], rule, average=False)
