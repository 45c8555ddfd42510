"""Conditional random fields."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.history import History
from skstruct.kernels.lbfgs import dot
from skstruct.lbfgs import minimize_lbfgs
from skstruct.objective import CRFObjective
from skstruct.parallel import range_runner
from skstruct.tagger import BaseTagger

__all__ = ["CRFTagger"]

# With at least so many sequences, a few epochs of stochastic gradient descent come before L-BFGS;
# few sequences are done before that pays.
_MANY_SEQUENCES = 500
_START_EPOCHS = 6
# Steps of L-BFGS from zero before the curvature says anything.
_BLIND_STEPS = 15


class CRFTagger(BaseTagger):
    """Linear-chain conditional random field (Lafferty, McCallum and Pereira, 2001).

    Minimises ``sum_i s_i nll_i(w) + l2 / 2 |w|^2`` over the weights ``w`` of features, label
    pairs and biases, where ``nll_i`` is the negative log-likelihood of the labels of sequence
    ``i``. With the defaults of `min_freq`, `all_possible_states`, `all_possible_transitions` and
    ``fit_intercept=False`` the model is CRFsuite's, with ``c2 = l2 / 2``. On sequences of length
    one it is multinomial logistic regression, with ``C = 1 / l2``.

    Parameters
    ----------
    solver : {"lbfgs"}, default="lbfgs"
        How the minimum is found. "lbfgs": limited-memory BFGS on the whole objective, computed
        in `n_jobs` threads; sets of 500 sequences or more are started by six epochs of
        stochastic gradient descent.
    l2 : float, default=1.0
        Strength of the squared penalty, not negative. All weights are penalised, the biases too.
    min_freq : float, default=0
        Combinations of a feature or label with a label that are less frequent than this have no
        weight. The frequency of a feature is the sum of its absolute values.
    all_possible_states : bool, default=False
        Whether every feature has a weight for every label, and not only for those that it
        occurs with.
    all_possible_transitions : bool, default=False
        Whether every label pair has a weight, and not only those that occur.
    fit_intercept : bool, default=True
        Whether to learn a bias of each label, of first and of last tokens.
    max_iter : int, default=1000
        Most iterations.
    tol : float, default=1e-4
        Stop when the objective is certainly within this share of its minimum, by the bound
        ``|gradient|^2 / (2 l2)``; or, as that says nothing of a model without penalty, when ten
        iterations brought it down by less than a hundredth of this share.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a `joblib.parallel_config` context, -1 means
        all processors. Results are the same for the same number.
    warm_start : bool, default=False
        Whether `fit` starts from the weights of the previous call, whose classes and features
        then stand.
    verbose : int, default=0
        Whether to print the objective at every iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of features.
    transition_ : ndarray of shape (n_classes, n_classes)
        Weights of label pairs, from row to column.
    intercept_, start_, end_ : ndarray of shape (n_classes,)
        Biases of all, first and last tokens.
    n_iter_ : int
        Number of iterations.
    n_weights_ : int
        Number of weights of the model.
    suboptimality_bound_ : float
        The objective is at most this far above its minimum, in its own unit.
    history_ : dict of ndarray
        For each iteration, from 0 for the start: ``"epoch"``, ``"time"`` (seconds since the start
        of `fit`'s optimisation), ``"objective"``, ``"bound"`` (on the distance from the minimum),
        ``"gradient_norm"`` and ``"weight_norm"``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has them.
    vectorizer_ : SequenceVectorizer
        Where X was given as feature dicts or attribute strings, what made numbers of them.

    See Also
    --------
    PerceptronTagger : Learns much faster, without probabilities.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = CRFTagger(l2=0.1).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    """

    _parameter_constraints: dict = {
        **BaseTagger._parameter_constraints,
        "solver": [StrOptions({"lbfgs"})],
        "l2": [Interval(Real, 0, None, closed="left")],
        "min_freq": [Interval(Real, 0, None, closed="left")],
        "all_possible_states": ["boolean"],
        "all_possible_transitions": ["boolean"],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        solver="lbfgs",
        l2=1.0,
        min_freq=0,
        all_possible_states=False,
        all_possible_transitions=False,
        fit_intercept=True,
        max_iter=1000,
        tol=1e-4,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        self.solver = solver
        self.l2 = l2
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def _fit(self, training_set):
        counting = np.flatnonzero(training_set.sample_weight > 0)
        if len(counting) < len(training_set.sample_weight):
            training_set = training_set.take(counting)
        objective = CRFObjective(
            training_set,
            self.n_features_in_,
            len(self.classes_),
            l2=self.l2,
            min_freq=self.min_freq,
            all_possible_states=self.all_possible_states,
            all_possible_transitions=self.all_possible_transitions,
            fit_intercept=self.fit_intercept,
        )
        del training_set
        theta = self._minimize(objective)
        self.n_weights_ = objective.n_weights
        self._set_chain(objective.unpack(theta))

    def _start(self, objective, value_and_gradient):
        """Where to start from, and after how many steps to ask for the curvature."""
        if self.warm_start and hasattr(self, "coef_"):
            return objective.pack(self._chain()), 1
        zero = np.zeros(objective.size)
        if len(objective.sample_weight) >= _MANY_SEQUENCES:
            theta = objective.stochastic_start(_START_EPOCHS)
            gradient = np.empty_like(theta)
            # Not where features are of such different scale that the descent has diverged.
            if value_and_gradient(theta, gradient) < value_and_gradient(zero, gradient):
                return theta, 1
        return zero, _BLIND_STEPS

    def _minimize(self, objective):
        history = History(self.verbose)
        with range_runner(objective.offsets, self.n_jobs) as run:

            def value_and_gradient(x, out):
                return objective.value_and_gradient(x, out, run)

            def curvature(x, out):
                objective.curvature(x, out, run)

            theta, ask_at = self._start(objective, value_and_gradient)
            iterates = minimize_lbfgs(value_and_gradient, theta, curvature=curvature, ask_at=ask_at)
            for iteration, point in enumerate(iterates):
                bound = objective.suboptimality_bound(point.gradient)
                history.add(
                    epoch=iteration,
                    objective=point.value,
                    bound=bound,
                    gradient_norm=np.sqrt(dot(point.gradient, point.gradient)),
                    weight_norm=np.sqrt(dot(point.x, point.x)),
                )
                converged = bound <= self.tol * point.value or _stalled(history, self.tol)
                if converged or iteration == self.max_iter:
                    break
        if not converged:
            warnings.warn(
                f"The objective is not known to be within tol={self.tol} of its minimum after "
                f"{iteration} iterations, of max_iter={self.max_iter}.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.n_iter_ = iteration
        self.suboptimality_bound_ = bound
        self.history_ = history.arrays()
        return point.x


def _stalled(history, tol, period=10):
    """Whether the last ten iterations brought next to nothing."""
    objective = history["objective"]
    if len(objective) <= period:
        return False
    return objective[-1 - period] - objective[-1] <= 0.01 * tol * abs(objective[-1])
