"""Voted regularised dual averaging over n-best candidates."""

from __future__ import annotations

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.input.training_set import as_rows
from skstruct.kernels.rerank.learn import (
    DualAverage,
    Mean,
    Record,
    dual_weights,
    mean_weights,
    vrda_epoch,
    without_shared,
)
from skstruct.kernels.rerank.vote import Electorate, Histories, build_histories, count_votes
from skstruct.rerankers.base import LOSSES, BaseReranker, loss_constraint
from skstruct.utils.parallel import range_runner

__all__ = ["VRDAReranker"]


class VRDAReranker(BaseReranker):
    """Voted regularised dual averaging (Gao, Xiao, Xu and He, 2013).

    Learns only where it chooses wrongly. After ``k`` mistakes with the gradients ``g_1, ..., g_k``
    the weights are ``-sqrt(k) / eta * shrink((g_1 + ... + g_k) / k, l1)``: a feature has a weight
    only if its mean gradient exceeds `l1`, which keeps models small.

    Parameters
    ----------
    loss : {"hinge", "logistic", "log", "bayes_risk"}, default="log"
        What the gradients are of. "hinge": of ``max(0, 1 - margin)`` and "logistic": of
        ``log(1 + exp(-margin))``, where the margin is by how much the oracle scores more than
        the best of the worse candidates; "log": of the negative log-probability of the oracle;
        "bayes_risk": of the expected cost, which is not convex.
    l1 : float, default=0.0
        Threshold of the mean gradient, whatever the number of groups. Of features that are counts,
        1e-3 leaves about a tenth of the last predictor's weights.
    eta : float, default=1.0
        Strength of the proximal term: the weights are in proportion to ``1 / eta``. This is all
        the same to the hinge loss, unless there is a baseline.
    prediction : {"vote", "average", "last"}, default="average"
        Which predictor to use. "vote": every one that there was in training votes for its best
        candidate, as often as it came through a group without a mistake; "average": the mean of
        their weights, weighted likewise; "last": the last one, which has the fewest weights.
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
    n_jobs : int, default=None
        Number of threads in voting. None means 1 unless in a `joblib.parallel_config` context,
        -1 means all processors.
    verbose : int, default=0
        Whether to print the mistakes of every epoch.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights: of the last predictor for ``prediction="last"``, else the mean of all. The
        baseline's is 0, as it is not learnt.
    n_mistakes_ : int
        Mistakes in all epochs; there were ``n_mistakes_ + 1`` predictors.
    votes_ : ndarray of shape (n_predictors,)
        Votes of each predictor: groups that it got right, and one for being made by a mistake.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        For each epoch ``"epoch"``, ``"time"`` (seconds), ``"mistakes"``, ``"nnz"`` (non-zero
        weights of the last predictor), ``"loss"`` (mean over the groups, each seen by the weights
        of the time), and with costs ``"cost"`` (mean of the candidates chosen on the way).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has them.
    vectorizer_ : SequenceVectorizer
        Where X was given as feature dicts or attribute strings, what made numbers of them.

    See Also
    --------
    PerceptronReranker : Without regularisation.
    TruncatedGradientReranker : Another way to sparse weights.
    NBestReranker : Reranks what a tagger finds.

    Notes
    -----
    The predictors are not stored as vectors: each feature keeps a history of its gradient sum,
    with an entry for every mistake that it took part in. Voting replays these; a group costs time
    in proportion to its candidates times the mistakes, plus a correction for each candidate that
    has a feature whenever this changes or vanishes. The histories take twelve bytes an entry, so
    up to twelve for each epoch and non-zero of X. With "average" the mean is kept up to date on
    the way, which takes sixteen bytes a feature, and with "last" nothing of the kind.

    In the published algorithm the count of a new predictor starts with 1, that of the first, zero,
    predictor with 0. A prediction is right if it costs as little as the oracle, and groups of
    candidates that all cost the same neither teach nor vote.

    References
    ----------
    Jianfeng Gao, Lin Xiao, Tianbing Xu and Xiaodong He: A voted regularized dual averaging method
    for large-scale discriminative training in natural language processing. 2013.

    Examples
    --------
    >>> from skstruct import VRDAReranker
    >>> X = [
    ...     [{"words": 2, "verb": True}, {"words": 1}],
    ...     [{"words": 3}, {"words": 2, "verb": True}],
    ... ]
    >>> costs = [[0.0, 0.5], [0.8, 0.1]]
    >>> reranker = VRDAReranker(random_state=0).fit(X, costs)
    >>> reranker.predict([[{"words": 1}, {"words": 4}, {"words": 1, "verb": True}]])
    array([2])
    """

    _parameter_constraints: dict = {
        **BaseReranker._parameter_constraints,
        "loss": loss_constraint(),
        "l1": [Interval(Real, 0, None, closed="left")],
        "eta": [Interval(Real, 0, None, closed="neither")],
        "prediction": [StrOptions({"vote", "average", "last"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        loss="log",
        l1=0.0,
        eta=1.0,
        prediction="average",
        baseline=None,
        baseline_weight=1.0,
        max_iter=10,
        shuffle=True,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.loss = loss
        self.l1 = l1
        self.eta = eta
        self.prediction = prediction
        self.baseline = baseline
        self.baseline_weight = baseline_weight
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _start(self, n_features, n_groups):
        most = self.max_iter * n_groups  # mistakes that there can be
        n_averaged, n_sums = (0, 0) if self.prediction == "last" else (n_features, most + 2)
        mean = Mean(
            np.zeros(n_averaged, np.int64),
            np.zeros(n_averaged),
            np.zeros(n_sums),
            np.zeros(n_sums),
        )
        average = DualAverage(
            np.zeros(n_features),
            np.zeros(1, np.int64),
            np.zeros(most + 1, np.int64),
            mean,
            float(self.l1),
            float(self.eta),
        )
        return _Training(average, np.empty(n_features), [])

    def _epoch(self, groups, order, state):
        # Only a vote asks for the single predictors again.
        n_rows = len(groups.costs) if self.prediction == "vote" else 0
        record = Record(np.empty(len(order), np.int64), np.zeros(n_rows))
        tally = vrda_epoch(groups, order, LOSSES[self.loss], state.average, record)
        if self.prediction == "vote":
            state.mistakes.append(_Mistakes.of(record, groups.offsets, tally.mistakes))
        return tally, self._last_weights(state)

    def _last_weights(self, state):
        """Fill in the weights of the last predictor; return how many are not zero."""
        average = state.average
        return dual_weights(
            average.gradient_sum, average.n_updates[0], average.l1, average.eta, state.weights
        )

    def _finish(self, groups, state):
        self.n_mistakes_ = int(state.average.n_updates[0])
        self.votes_ = state.average.votes[: self.n_mistakes_ + 1].copy()
        self.coef_ = state.weights
        self.__dict__.pop("_histories", None)
        if self.prediction != "last":
            mean_weights(state.average, self.coef_)
        if self.prediction == "vote":
            mistakes = _Mistakes.joined(state.mistakes)
            self._histories = tuple(build_histories(groups.rows, *mistakes, self.n_features_in_))

    def _electorate(self, histories):
        return Electorate(Histories(*histories), self.votes_, float(self.l1), float(self.eta))

    def _decide(self, batch, base):
        if self.prediction != "vote":
            return self._linear(batch, base)
        electorate = self._electorate(self._histories)
        rows = without_shared(as_rows(batch.X), batch.offsets, batch.n_features)
        votes = np.empty(batch.n_rows, np.int64)
        with range_runner(batch.offsets, self.n_jobs) as run:
            run(
                lambda _, first, last: count_votes(
                    rows, batch.offsets, first, last, base, electorate, votes
                )
            )
        return votes / max(self.votes_.sum(), 1)


class _Training(NamedTuple):
    """What grows while VRDA learns."""

    average: DualAverage
    weights: np.ndarray  # (n_features,) room for the weights of the last predictor
    mistakes: list  # of _Mistakes, one an epoch; empty unless they are to vote


class _Mistakes(NamedTuple):
    """The candidates that moved the weights, mistake by mistake."""

    indptr: np.ndarray  # (n_mistakes + 1,)
    rows: np.ndarray  # (n_moving,)
    change: np.ndarray  # (n_moving,)

    @classmethod
    def of(cls, record, offsets, n_mistakes):
        """From the record of an epoch, without the candidates that had no part."""
        group = record.group[:n_mistakes]
        lengths = np.diff(offsets)[group]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(ends[-1]) + np.repeat(offsets[group] - ends[:-1], lengths)
        change = record.change[rows]
        moving = change != 0.0
        before = np.concatenate([[0], np.cumsum(moving)])
        return cls(before[ends], rows[moving], change[moving])

    @classmethod
    def joined(cls, parts):
        counts = np.concatenate([np.diff(part.indptr) for part in parts])
        indptr = np.concatenate([[0], np.cumsum(counts)])
        rows = np.concatenate([part.rows for part in parts])
        return cls(indptr, rows, np.concatenate([part.change for part in parts]))
