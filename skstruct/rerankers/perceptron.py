"""Averaged perceptron over n-best candidates."""

from __future__ import annotations

from skstruct import kernels
from skstruct.rerankers.descent import Descent, DescentReranker
from skstruct.utils.public_paths import set_module

__all__ = ["PerceptronReranker"]


@set_module("skstruct")
class PerceptronReranker(DescentReranker):
    """Averaged perceptron over candidates (Collins, 2002).

    Wherever it chooses wrongly, it adds the features of the oracle to the weights and subtracts
    those of the candidate chosen.

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
        return Descent(kernels.HINGE, rule, self.average)
