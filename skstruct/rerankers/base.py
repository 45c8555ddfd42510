"""What all rerankers share: reading groups of candidates, and choosing among them."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from skstruct.features.mixin import FeatureInput
from skstruct.input.formats import Format, read_format
from skstruct.input.training_set import as_rows
from skstruct.kernels.rerank.learn import (
    BAYES_RISK,
    HINGE,
    LOG,
    LOGISTIC,
    Groups,
    group_softmax,
    without_shared,
)
from skstruct.rerankers.groups import (
    read_baseline_score,
    read_costs,
    speaking_of_groups,
    split_groups,
    take_out,
)
from skstruct.utils.history import History
from skstruct.utils.persistence import Persistent, check_array_shape
from skstruct.utils.transaction import unchanged_on_error

__all__ = ["LOSSES", "BaseReranker"]

LOSSES = {"hinge": HINGE, "logistic": LOGISTIC, "log": LOG, "bayes_risk": BAYES_RISK}


class BaseReranker(Persistent, FeatureInput, BaseEstimator):
    """Base of the rerankers: one weight vector that scores candidates.

    A subclass defines ``_start(n_features, n_groups)``, which returns its state, ``_epoch(groups,
    order, state)``, which makes a pass over the groups and returns a tally and the number of
    non-zero weights, and ``_finish(groups, state)``, which sets ``coef_``.

    Notes
    -----
    Rerankers are no classifiers to scikit-learn: what they choose from differs from group to
    group.
    """

    _parameter_constraints: dict = {
        "baseline": [str, Interval(Integral, 0, None, closed="left"), None],
        "baseline_weight": [Interval(Real, None, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, baseline_score=None):
        """Learn the weights.

        Parameters
        ----------
        X : groups of candidates
            A list of groups, each a list of feature dicts or of lists of attribute strings; a
            `SequenceBatch` whose sequences are the groups; a list of matrices
            ``(n_candidates_i, n_features)``; or a 3-D array.
        y : array-like
            For each group, the number of its oracle candidate; or for each group an array with
            the cost of each candidate, also as a 2-D array. The oracle is then the candidate of
            least cost, and of several the one that the current weights score highest.
        sample_weight : array-like of shape (n_groups,), default=None
            Factor of the gradient of each group. Groups of weight 0 are passed over.
        baseline_score : list of array-like of shape (n_candidates_i,), default=None
            Scores that are added to those of the weights with the factor `baseline_weight`, in
            learning as in prediction, where they must be given again. Pipelines and searches pass
            them on where metadata routing is enabled and requested (``set_fit_request`` and so
            on).

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X, y or a parameter is invalid, if a group is empty or has a single candidate,
            which leaves nothing to learn: the message names the group. The estimator is then as
            it was before.
        """
        with unchanged_on_error(self):
            groups, by_cost = self._read_training_set(X, y, sample_weight, baseline_score)
            self._fit(groups, by_cost)
        return self

    def predict(self, X, baseline_score=None):
        """Number of the best candidate of each group.

        Parameters
        ----------
        X : groups of candidates
            In any format that `fit` takes, with the same features. Groups of one are welcome.
        baseline_score : list of array-like of shape (n_candidates_i,), default=None
            As in `fit`, if given there.

        Returns
        -------
        chosen : ndarray of shape (n_groups,), dtype int64
        """
        _, batch, base = self._read_X(X, baseline_score)
        return self._choose(batch, base)

    def rank(self, X, baseline_score=None):
        """Order of the candidates of each group, best first.

        Parameters
        ----------
        X : groups of candidates
            As in `predict`.
        baseline_score : list of array-like of shape (n_candidates_i,), default=None
            As in `predict`.

        Returns
        -------
        order : ndarray
            Object array of arrays of candidate numbers, one for each group; 2-D for a 3-D X.
            Candidates that score the same stay in their order.
        """
        format, batch, base = self._read_X(X, baseline_score)
        return split_groups(np.concatenate(list(self._orders(batch, base))), batch.offsets, format)

    def decision_function(self, X, baseline_score=None):
        """Score of each candidate.

        Parameters
        ----------
        X : groups of candidates
            As in `predict`.
        baseline_score : list of array-like of shape (n_candidates_i,), default=None
            As in `predict`.

        Returns
        -------
        scores : ndarray
            Object array of arrays of shape ``(n_candidates_i,)``, one for each group; 2-D for a
            3-D X.
        """
        format, batch, base = self._read_X(X, baseline_score)
        return split_groups(self._decide(batch, base), batch.offsets, format)

    def predict_proba(self, X, baseline_score=None):
        """Probability of each candidate, by the log-linear model with the weights ``coef_``.

        Parameters
        ----------
        X : groups of candidates
            As in `predict`.
        baseline_score : list of array-like of shape (n_candidates_i,), default=None
            As in `predict`.

        Returns
        -------
        proba : ndarray
            Object array of arrays of shape ``(n_candidates_i,)`` that sum to one, one for each
            group; 2-D for a 3-D X.
        """
        format, batch, base = self._read_X(X, baseline_score)
        proba = np.empty(batch.n_rows)
        group_softmax(self._linear(batch, base), batch.offsets, proba)
        return split_groups(proba, batch.offsets, format)

    def score(self, X, y, sample_weight=None, baseline_score=None):
        """Mean negative cost of the candidates chosen, or accuracy.

        Parameters
        ----------
        X : groups of candidates
            As in `predict`.
        y : array-like
            As in `fit`. With costs the score is the mean negative cost, with the numbers of the
            oracles the share of groups in which the oracle is chosen.
        sample_weight : array-like of shape (n_groups,), default=None
            Weights of the groups in the mean.
        baseline_score : list of array-like of shape (n_candidates_i,), default=None
            As in `predict`.

        Returns
        -------
        score : float
            Greater is better.
        """
        _, batch, base = self._read_X(X, baseline_score)
        costs, by_cost = read_costs(y, batch.offsets)
        sample_weight = self._read_sample_weight(sample_weight, batch)
        chosen = self._choose(batch, base)
        mean_cost = np.average(costs[batch.offsets[:-1] + chosen], weights=sample_weight)
        return float(-mean_cost if by_cost else 1.0 - mean_cost)

    def _check_state(self):
        if hasattr(self, "coef_"):
            check_array_shape(self.coef_, (self.n_features_in_,), "coef_")

    def _fit(self, groups, by_cost):
        random_state = check_random_state(self.random_state)
        history = History(self.verbose)
        state = self._start(self.n_features_in_, len(groups.sample_weight))
        order = np.flatnonzero(groups.sample_weight)
        for epoch in range(1, self.max_iter + 1):
            if self.shuffle:
                random_state.shuffle(order)
            tally, n_nonzero = self._epoch(groups, order, state)
            total = groups.sample_weight.sum()
            history.add(
                epoch=epoch,
                mistakes=tally.mistakes,
                nnz=n_nonzero,
                loss=tally.loss / total,
                **({"cost": tally.cost / total} if by_cost else {}),
            )
        self.n_iter_ = epoch
        self.history_ = history.arrays()
        self._finish(groups, state)

    def _decide(self, batch, base):
        """Scores of all candidates, by which the best is chosen."""
        return self._linear(batch, base)

    def _linear(self, batch, base):
        return batch.X @ self.coef_ + base

    def _choose(self, batch, base):
        """Number of the best candidate of each group."""
        return np.array([order[0] for order in self._orders(batch, base)], dtype=np.int64)

    def _orders(self, batch, base):
        """Candidate numbers of one group after the other, best first."""
        scores, weighted = self._decide(batch, base), self._linear(batch, base)
        for a, b in pairwise(batch.offsets):
            # Votes are often equal, and then the weights tell more than the order of candidates.
            yield np.lexsort((-weighted[a:b], -scores[a:b]))

    def _read_training_set(self, X, y, sample_weight, baseline_score):
        """The groups as kernels see them, and whether `y` holds costs."""
        _, batch, base = self._read_X(X, baseline_score, reset=True)
        lone = np.flatnonzero(batch.lengths == 1)
        if lone.size:
            raise ValueError(
                f"Group {lone[0]} has a single candidate: there is nothing to learn from it. "
                f"Leave such groups out of the training set (here, {lone.size})."
            )
        costs, by_cost = read_costs(y, batch.offsets)
        sample_weight = self._read_sample_weight(sample_weight, batch)
        rows = without_shared(as_rows(batch.X), batch.offsets, batch.n_features)
        return Groups(rows, batch.offsets, costs, base, sample_weight), by_cost

    def _read_sample_weight(self, sample_weight, batch):
        """One finite weight a group that is not negative, not all zero."""
        sample_weight = _check_sample_weight(
            sample_weight, batch, dtype=np.float64, ensure_non_negative=True
        )
        if not np.any(sample_weight):
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return sample_weight

    def _read_X(self, X, baseline_score, *, reset=False):
        """Format, the batch without its baseline feature, and the baseline's score (n_rows,)."""
        if reset:
            self.__dict__.pop("vectorizer_", None)
            self._needs_baseline_score = baseline_score is not None
        else:
            check_is_fitted(self)
            if self._needs_baseline_score and baseline_score is None:
                raise ValueError(
                    f"This {type(self).__name__} was fitted with baseline scores, and corrects "
                    f"these: give it those of X as baseline_score."
                )
        with speaking_of_groups():
            format, X = read_format(X)
            if format is Format.ROWS:
                raise ValueError(
                    "X is a table whose rows would be groups of one candidate; expected a list "
                    "of groups, each a list of candidates, or a SequenceBatch."
                )
            batch = self._vectorize(X, reset=reset) if format is Format.TOKENS else X
        empty = np.flatnonzero(batch.lengths == 0)
        if empty.size:
            raise ValueError(f"Group {empty[0]} is empty: it has no candidate to choose.")
        self._check_features(batch, reset=reset)
        self._check_transition_features(batch, reset=reset)
        base = read_baseline_score(baseline_score, batch.offsets)
        if self.baseline is not None:
            column = self._baseline_column()
            batch, values = take_out(batch, column)
            base += values
        return format, batch, self.baseline_weight * base

    def _baseline_column(self):
        if isinstance(self.baseline, Integral):
            if self.baseline >= self.n_features_in_:
                raise ValueError(
                    f"baseline={self.baseline} is no column of {self.n_features_in_} features."
                )
            return int(self.baseline)
        names = getattr(self, "feature_names_in_", None)
        found = [] if names is None else np.flatnonzero(names == self.baseline)
        if len(found) == 0:
            raise ValueError(f"baseline={self.baseline!r} is not among the feature names of X.")
        return int(found[0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.dict = True
        return tags


def loss_constraint():
    """What the parameter ``loss`` may be."""
    return [StrOptions(set(LOSSES))]
