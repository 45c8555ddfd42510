"""Base of the rerankers: reading groups of candidates, and choosing among them."""

from collections.abc import Iterator, Mapping, Set
from copy import copy, deepcopy
from itertools import pairwise
from numbers import Integral, Number, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from skstruct.chain.scores import Rows, value_of
from skstruct.compiled.jit import jit
from skstruct.features.mixin import FeatureInput
from skstruct.input.formats import Format, read_format, split_sequences
from skstruct.input.scale import check_sample_weight, check_weights, warn_of_scale
from skstruct.input.training_set import batch_rows, read_sample_weight, require_weight
from skstruct.learning.monitor import Monitor
from skstruct.matrices import read_only
from skstruct.rerankers.losses import Groups, Tally, group_softmax
from skstruct.sequences import SequenceBatch
from skstruct.utils.declared import REAL, Array, Choice, Columns, Count
from skstruct.utils.messages import (
    HOW_TO_SCALE,
    DataError,
    compiling_announced,
    errors_in,
    position,
    short_repr,
)
from skstruct.utils.parallel import portions
from skstruct.utils.persistence import Persistent
from skstruct.utils.progress import CallbackSupport, fit_context
from skstruct.utils.transaction import draft_of


class BaseReranker(CallbackSupport, Persistent, FeatureInput, BaseEstimator):
    """Base of the rerankers: one weight vector that scores candidates.

    A subclass defines ``_epoch``. `fit` calls these methods, in this order:

    ``_start(n_features)``
        Return the state of the learner, any object. By default, weights of zero.
    ``_epoch(groups, order, state)``
        Learn from the groups whose numbers are in `order`, in that order, and change the state in
        place. Return a `Tally` and the number of non-zero weights. Called `max_iter` times.
    ``_finish(groups, state)``
        Set ``coef_`` and all other fitted attributes. By default, keep the state as ``coef_``.

    All methods that choose among candidates call another one:

    ``_decide(batch, base)``
        Return the scores of all candidates, from which the best is chosen. By default as given by
        ``coef_``, plus `base`, the weighted scores of the baseline.

    It has the parameters of the base and its own, with their ``_parameter_constraints``.

    Notes
    -----
    Rerankers are not classifiers in scikit-learn's sense: the candidates differ from group to
    group.

    Examples
    --------
    A perceptron without an average:

    >>> import numpy as np
    >>> from skstruct.rerankers.base import BaseReranker
    >>> from skstruct.rerankers.losses import Tally, candidate_scores, judge, scatter
    >>> class PlainPerceptron(BaseReranker):
    ...     def _epoch(self, groups, order, weights):
    ...         mistakes = 0
    ...         for first, last in zip(groups.offsets[order], groups.offsets[order + 1]):
    ...             scores, change = np.zeros((2, last - first))
    ...             candidate_scores(groups.rows, first, last, groups.base, weights, scores)
    ...             predicted, oracle, _ = judge(scores, groups.costs[first:last])
    ...             change[oracle], change[predicted] = 1.0, -1.0
    ...             if predicted != oracle:
    ...                 scatter(groups.rows, first, change, 1.0, weights)
    ...                 mistakes += 1
    ...         return Tally(mistakes, loss=mistakes, cost=mistakes), np.count_nonzero(weights)
    >>> X = [[["short"], ["long"]], [["long", "odd"], ["short", "odd"]]]
    >>> PlainPerceptron(random_state=0).fit(X, [0, 1]).predict([[["long"], ["short"]]])
    array([1])
    """

    _parameter_constraints: dict = {
        "baseline": [str, Interval(Integral, 0, None, closed="left"), None],
        "baseline_weight": [Interval(Real, None, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _stored = {
        "coef_": Array(REAL, ("n_features_in_",)),
        "n_iter_": Count(),
        "history_": Columns(),
        "_needs_baseline_score": Choice(False, True),
    }
    _complete = ("n_features_in_", "coef_", "_needs_baseline_score")
    # What to do about weights that overflow, apart from scaling.
    _remedy = "smaller sample weights or costs"

    def __init__(
        self,
        *,
        baseline=None,
        baseline_weight=1.0,
        max_iter=10,
        shuffle=True,
        random_state=None,
        verbose=0,
    ) -> None:
        self.baseline = baseline
        self.baseline_weight = baseline_weight
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y, sample_weight=None, baseline_score=None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : groups of candidates
            A list of groups, each a list of feature dicts or of lists of attribute strings; a
            `SequenceBatch` whose sequences are the groups; a list of matrices
            ``(n_candidates_i, n_features)``; or a 3-D array.
        y : array-like
            For each group, the number of its oracle candidate, or an array with the cost of each
            of its candidates (also as a 2-D array). With costs, the oracle is the candidate of
            least cost; of several, the one that scores highest under the current weights.
        sample_weight : float or array-like of shape (n_groups,), default=None
            Factors of the gradients of the groups. A group of weight 0 is as if it were not there,
            to the last bit: features of dicts that only such groups have are not learnt, either.
        baseline_score : list of array-like of shape (n_candidates_i,), default=None
            Scores of a baseline. Multiplied by `baseline_weight`, they are added to the scores of
            the weights, in learning and in prediction, where they have to be given again.
            Pipelines and searches pass them on if metadata routing is enabled and requested
            (``set_fit_request`` and so on).

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X, y or a parameter is invalid, or if a group is empty or has a single candidate.
            The message names the group. The estimator is left unchanged.
        """
        with draft_of(self) as draft:
            draft._fit_draft(X, y, sample_weight=sample_weight, baseline_score=baseline_score)
        return self

    def predict(self, X, baseline_score=None) -> Any:
        """Choose the best candidate of each group.

        Parameters
        ----------
        X : groups of candidates
            In any format that `fit` takes, with the same features. Groups may have a single
            candidate.
        baseline_score : list of array-like of shape (n_candidates_i,), default=None
            As in `fit`, required if given there.

        Returns
        -------
        chosen : ndarray of shape (n_groups,), dtype int64
            Number of the candidate within its group.
        """
        _, batch, base = self._read_X(X, baseline_score)
        return self._choose(batch, base)

    def rank(self, X, baseline_score=None) -> Any:
        """Sort the candidates of each group, best first.

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
            Candidates with equal scores keep their order.
        """
        format, batch, base = self._read_X(X, baseline_score)
        return split_groups(np.concatenate(list(self._orders(batch, base))), batch.offsets, format)

    def decision_function(self, X, baseline_score=None):
        """Compute the score of each candidate.

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

    def predict_proba(self, X, baseline_score=None) -> Any:
        """Compute the probability of each candidate in the log-linear model of ``coef_``.

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

    def score(self, X, y, sample_weight=None, baseline_score=None) -> float:
        """Compute the mean negative cost of the candidates chosen, or the accuracy.

        Parameters
        ----------
        X : groups of candidates
            As in `predict`.
        y : array-like
            As in `fit`. With costs, the score is the mean negative cost; with the numbers of the
            oracles, it is the share of groups whose oracle is chosen.
        sample_weight : array-like of shape (n_groups,), default=None
            Weights of the groups in the mean or share.
        baseline_score : list of array-like of shape (n_candidates_i,), default=None
            As in `predict`.

        Returns
        -------
        score : float
            Higher is better.
        """
        _, batch, base = self._read_X(X, baseline_score)
        costs, by_cost = read_costs(y, batch.offsets)
        sample_weight = _read_weight(sample_weight, batch)
        chosen = self._choose(batch, base)
        mean_cost = np.average(costs[batch.offsets[:-1] + chosen], weights=sample_weight)
        return float(-mean_cost if by_cost else 1.0 - mean_cost)

    @fit_context(prefer_skip_nested_validation=True)
    def _fit_draft(self, X, y, **metadata):
        monitor = Monitor.of_fit(self, X, y, **metadata)
        with compiling_announced(self.verbose):
            groups, by_cost = self._read_training_set(X, y, **metadata)
            self._fit(groups, by_cost, monitor)
            warn_of_scale(groups.rows, getattr(self, "feature_names_in_", None))
            monitor.close()

    def _fit(self, groups, by_cost, monitor):
        random_state = check_random_state(self.random_state)
        monitor.start_clock()
        state = self._start(self.n_features_in_)
        order = np.arange(len(groups.sample_weight))
        for epoch in range(1, self.max_iter + 1):
            if self.shuffle:
                random_state.shuffle(order)
            tally, n_nonzero = self._epoch(groups, order, state)
            total = groups.sample_weight.sum()
            monitor.add(
                epoch=epoch,
                mistakes=tally.mistakes,
                nnz=n_nonzero,
                loss=tally.loss / total,
                **({"cost": tally.cost / total} if by_cost else {}),
            )
            if monitor.visit(lambda: self._finished_now(groups, state)):
                break
        self.n_iter_ = epoch
        self.history_ = monitor.arrays()
        self._finish(groups, state)
        check_weights([self.coef_], epoch, self._remedy)

    def _finished_now(self, groups, state):
        """Attributes that ``_finish`` would set now, while learning goes on."""
        finished = copy(self)
        finished._finish(groups, deepcopy(state))
        return vars(finished)

    def _start(self, n_features):
        return np.zeros(n_features)

    def _finish(self, groups, state):
        self.coef_ = state

    def _decide(self, batch, base):
        """Scores of all candidates, from which the best is chosen."""
        return self._linear(batch, base)

    def _linear(self, batch, base):
        coef = np.asarray(self.coef_)
        if coef.shape != (self.n_features_in_,) or coef.dtype.kind not in "biuf":
            raise ValueError(
                f"coef_ has the shape {coef.shape} and the type {coef.dtype}; expected "
                f"{self.n_features_in_} real numbers."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            scores = batch.X @ coef + base
        check_finite(scores, batch.offsets, "score", HOW_TO_SCALE)
        return scores

    def _choose(self, batch, base):
        """Number of the best candidate of each group, (n_groups,)."""
        return np.array([order[0] for order in self._orders(batch, base)], dtype=np.int64)

    def _orders(self, batch, base):
        """Candidate numbers of each group in turn, best first."""
        scores, weighted = self._decide(batch, base), self._linear(batch, base)
        for a, b in pairwise(batch.offsets):
            # Numbers of votes are often equal. The weights are then a better guide than the order.
            yield np.lexsort((-weighted[a:b], -scores[a:b]))

    def _read_training_set(self, X, y, sample_weight, baseline_score):
        """Groups in the layout of the kernels, and True if `y` has costs."""
        self._needs_baseline_score = baseline_score is not None
        self._forget("vectorizer_")
        _, batch = self._read_candidates(X, reset=True)
        weight = _read_weight(sample_weight, batch)
        refuse_single_candidates(batch.lengths, weight)
        base = read_baseline_score(baseline_score, batch.offsets)
        costs, by_cost = read_costs(y, batch.offsets)
        with errors_in(units=_UNITS):
            check_sample_weight(weight)
        kept = np.flatnonzero(weight)
        if len(kept) < len(batch):
            candidates = np.repeat(weight > 0, batch.lengths)
            costs, base, weight = costs[candidates], base[candidates], weight[kept]
            batch = self._keep_features_of(batch[kept])
        batch, base = self._add_baseline(batch, base)
        costs, base, weight = map(read_only, (costs, base, weight))
        return Groups(without_shared(batch), batch.offsets, costs, base, weight), by_cost

    def _read_X(self, X, baseline_score):
        """Format, the batch without its baseline feature, and weighted baseline scores."""
        check_is_fitted(self)
        if self._needs_baseline_score and baseline_score is None:
            raise ValueError(
                f"This {type(self).__name__} was fitted with baseline scores. Pass the "
                f"scores of the candidates in X as baseline_score."
            )
        format, batch = self._read_candidates(X, reset=False)
        base = read_baseline_score(baseline_score, batch.offsets)
        return format, *self._add_baseline(batch, base)

    def _read_candidates(self, X, *, reset):
        """Format and batch of groups that have candidates."""
        with errors_in(units=_UNITS):
            format, X = read_format(X)
            if format is Format.ROWS:
                raise ValueError(
                    "X is a single table. Expected a list of groups, each a list of candidates, "
                    "or a SequenceBatch."
                )
            batch = self._vectorize(X, reset=reset) if format is Format.TOKENS else X
        empty = np.flatnonzero(batch.lengths == 0)
        if empty.size:
            raise _group_error(
                "{place} is empty. Each group needs at least one candidate.", empty[0]
            )
        self._check_features(batch, reset=reset)
        self._check_transition_features(batch, reset=reset)
        return format, batch

    def _add_baseline(self, batch, base):
        """Batch without the feature of the baseline, and all scores of the baseline, weighted."""
        if self.baseline is not None:
            names = getattr(self, "feature_names_in_", None)
            column = baseline_column(self.baseline, self.n_features_in_, names)
            batch, values = split_column(batch, column)
            base += values
        with np.errstate(over="ignore"):
            return batch, self.baseline_weight * base

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.dict = True
        return tags


# Input, group by group: costs, oracles and baselines


_UNITS = "group", "candidate"


def _group_error(fact, group, candidate=None, **values):
    """Error that names a group, and a candidate."""
    error = DataError(fact, group, candidate, **values)
    error.units = _UNITS
    return error


def _read_weight(sample_weight, batch):
    """Weights of the groups of a batch, of which some count."""
    with errors_in(units=_UNITS):
        weight = read_sample_weight(sample_weight, len(batch))
        require_weight(weight, batch.lengths)
    return weight


def learn_in_portions(learn, groups, order):
    """Visit the groups in an order, and handle interrupts in between.

    Parameters
    ----------
    learn : callable
        ``learn(order)`` visits groups, and returns the fields of a `Tally`.
    groups : Groups
        The training set.
    order : ndarray of int
        Numbers of the groups.

    Returns
    -------
    tally : Tally
        Sum of the tallies.
    """
    n_rows, nnz = len(groups.rows.indptr) - 1, len(groups.rows.indices)
    # Reading a feature's weight takes as long as some pairs of labels.
    work_per_row = 100.0 + 10.0 * nnz / n_rows
    n_candidates = np.diff(groups.offsets)[order]
    tallies = [learn(order[part]) for part in portions(n_candidates, work_per_row)]
    return Tally(*map(sum, zip(*tallies, strict=True)))


def split_groups(values, offsets, format):
    """Values of candidates, group by group: 2-D if X was, else an object array of arrays."""
    if format is Format.GRID:
        return values.reshape(len(offsets) - 1, -1)
    return split_sequences(values, offsets)


def split_column(batch, column):
    """Set a column to zero in a copy of a batch; return it, and the values of the column."""
    X = batch.X.copy()
    if isinstance(X, np.ndarray):
        values = X[:, column].astype(np.float64)
        X[:, column] = 0.0
    else:
        values = X[:, [column]].toarray().ravel().astype(np.float64)
        X.data[X.indices == column] = 0.0
        X.eliminate_zeros()
    return SequenceBatch(X, batch.offsets, feature_names=batch.feature_names), values


def refuse_single_candidates(n_candidates, weight):
    """Raise a ValueError if a group with a weight has a single candidate."""
    lone = np.flatnonzero((n_candidates == 1) & (weight > 0))
    if lone.size:
        raise _group_error(
            "{place} has a single candidate, and nothing can be learnt from it. "
            f"Remove such groups from the training set ({lone.size} of {len(n_candidates)}), or "
            "give them the weight 0.",
            lone[0],
        )


def baseline_column(baseline, n_features, names):
    """Column of a baseline that is given by its number or name."""
    if isinstance(baseline, Integral):
        if baseline >= n_features:
            raise ValueError(
                f"baseline={baseline} is out of range: X has {n_features} features, and columns "
                "are numbered from 0."
            )
        return int(baseline)
    found = [] if names is None else np.flatnonzero(names == baseline)
    if len(found) == 0:
        raise ValueError(f"baseline={baseline!r} is not among the feature names of X.")
    return int(found[0])


def read_baseline_score(baseline_score, offsets):
    """Baseline scores of all candidates, (n_rows,); zeros if none are given."""
    if baseline_score is None:
        return np.zeros(offsets[-1])
    return _read_per_candidate(baseline_score, offsets, "baseline score", "baseline scores")


def read_costs(y, offsets):
    """Costs of all candidates, (n_rows,), and True if `y` has costs, False if oracles."""
    if y is None:
        raise ValueError("This reranker requires y to be passed, but the target y is None.")
    y = _by_position(y, "y")
    if len(y) != len(offsets) - 1:
        raise ValueError(f"X has {len(offsets) - 1} groups, but y has {len(y)} entries.")
    by_cost = not (y[0] is None or isinstance(y[0], (str, Number, np.generic)))
    for i, one in enumerate(y):
        if isinstance(one, Integral) == by_cost:
            raise _group_error(
                "{place}: {value} is not "
                f"{'an array of costs' if by_cost else 'a candidate number'}. Give every group the "
                "number of its oracle, or every group an array of costs.",
                i,
                value=short_repr(one),
            )
    if by_cost:
        return _read_per_candidate(y, offsets, "cost", "costs"), True
    costs = np.ones(offsets[-1])
    for i, oracle in enumerate(y):
        n_candidates = offsets[i + 1] - offsets[i]
        if not 0 <= oracle < n_candidates:
            raise _group_error(
                f"{{place}}: oracle {oracle} is out of range for {n_candidates} candidates, which "
                "are numbered from 0.",
                i,
            )
        costs[offsets[i] + oracle] = 0.0
    return costs, False


def _by_position(values, name):
    """Make the values of groups indexable by position, also if they are a pandas series."""
    if hasattr(values, "iloc"):
        return values.to_numpy()
    if isinstance(values, Iterator):
        return list(values)
    if isinstance(values, (str, Mapping, Set)) or not hasattr(values, "__len__"):
        raise ValueError(
            f"{name} must be a list or array of one entry for each group; got {short_repr(values)}."
        )
    return values


def _read_per_candidate(values, offsets, name, names):
    """Finite numbers, one for each candidate, as an array of shape (n_rows,)."""
    values = _by_position(values, names)
    if len(values) != len(offsets) - 1:
        raise ValueError(
            f"X has {len(offsets) - 1} groups, but {names} are given for {len(values)}."
        )
    parts = []
    for i, part in enumerate(values):
        try:
            part = np.asarray(part, dtype=np.float64)
        except (TypeError, ValueError):
            fact = f"{{place}}: {names} must be numbers; got {{value}}."
            raise _group_error(fact, i, value=short_repr(part)) from None
        if part.shape != (offsets[i + 1] - offsets[i],):
            raise _group_error(
                f"{{place}} has {offsets[i + 1] - offsets[i]} candidates, but its {names} have "
                f"shape {part.shape}.",
                i,
            )
        parts.append(part)
    values = np.concatenate(parts)
    check_finite(values, offsets, name, "it must be finite")
    return values


def check_finite(values, offsets, name, advice):
    """Raise a ValueError unless the numbers of all candidates, (n_rows,), are finite."""
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values))[0]
        fact = f"{{place}}: the {name} is {values[bad]}; {advice}."
        raise _group_error(fact, *position(offsets, bad))


def without_shared(batch):
    """Rows of the candidates, without the features that have the same value in a whole group.

    These cancel in every comparison and, as the derivatives of a loss sum to zero, in every
    gradient. Rounding would otherwise leave them tiny weights.
    """
    with errors_in(units=_UNITS):
        rows = batch_rows(batch)
    kept = find_varying(rows, batch.offsets, batch.n_features)
    indptr = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    # Values that are all one are not stored.
    return Rows(indptr, rows.indices[kept], rows.data[kept[: rows.data.size]])


@jit
def find_varying(rows, offsets, n_features):
    """For each entry, False if the feature has the same value in the whole group."""
    seen_in = np.full(n_features, -1, np.int64)
    n_same = np.zeros(n_features, np.int64)
    value = np.zeros(n_features)
    varying = np.empty(rows.indices.shape[0], np.bool_)
    for i in range(offsets.shape[0] - 1):
        first, last = rows.indptr[offsets[i]], rows.indptr[offsets[i + 1]]
        for e in range(first, last):
            j, x = rows.indices[e], value_of(rows.data, e)
            if seen_in[j] != i:
                seen_in[j], n_same[j], value[j] = i, 0, x
            n_same[j] += x == value[j]
        for e in range(first, last):
            varying[e] = n_same[rows.indices[e]] < offsets[i + 1] - offsets[i]
    return varying
