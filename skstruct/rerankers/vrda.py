"""Voted regularised dual averaging over n-best candidates (Gao, Xiao, Xu and He, 2013).

The predictor after ``m`` mistakes has the weights ``-shrink(G, m l1) / (eta sqrt(m))`` (equation
10). The gradient sum ``G`` of a feature changes only at mistakes in which the feature occurs, so a
short history of each gradient sum represents all predictors, and none of them is stored.
"""

from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.chain.scores import longest, value_of
from skstruct.compiled.jit import inner_jit, jit, lean_jit
from skstruct.input.training_set import take_rows
from skstruct.matrices import ranges
from skstruct.rerankers.base import BaseReranker, learn_in_portions, without_shared
from skstruct.rerankers.losses import (
    LOSSES,
    dual_weight,
    judge,
    loss_gradient,
    scatter,
)
from skstruct.utils.declared import Array, Count, Record, sizes_of
from skstruct.utils.parallel import range_runner
from skstruct.utils.persistence import set_module

# Generous bound of the relative error of a product and a sum.
ROUNDING = 8.0 * np.finfo(np.float64).eps


class Histories(NamedTuple):
    """Mistakes that changed the gradient sum of each feature, and the sum after each."""

    indptr: np.ndarray  # (n_features + 1,)
    mistake: np.ndarray  # (n_events,) numbers of mistakes from 1, ascending within a feature
    gradient_sum: np.ndarray  # (n_events,)


class Electorate(NamedTuple):
    """All predictors, as histories of gradient sums, and their votes."""

    histories: Histories
    votes: np.ndarray  # (n_mistakes + 1,) of the predictor after each number of mistakes
    l1: float
    eta: float


class VoteHistories(Record):
    """`Histories` of a reranker, in which the mistakes of every feature ascend."""

    def __init__(self):
        super().__init__(
            Histories,
            indptr=Array(np.int64, (("n_features_in_", 1),), least=0),
            mistake=Array(np.int32, (None,), least=1, below=("n_mistakes_", 1)),
            gradient_sum=Array(np.float64, (None,)),
        )

    def read(self, value, what, size):
        """Histories that voting can replay."""
        found = super().read(value, "the history of votes", size)
        indptr, mistake = found.indptr, found.mistake
        if indptr[0] != 0 or np.any(np.diff(indptr) < 0) or indptr[-1] != len(mistake):
            raise ValueError("the history of votes does not belong to the features.")
        later = np.ones(len(mistake), bool)
        later[indptr[:-1][np.diff(indptr) > 0]] = False
        if len(found.gradient_sum) != len(mistake) or np.any(np.diff(mistake)[later[1:]] <= 0):
            raise ValueError("the mistakes in the history of votes are not in order.")
        return found


class DualAverage(NamedTuple):
    """State of VRDA: the sum of all gradients, which determines the weights, and their mean.

    The mean of the predictors, weighted by votes, is summed up as far as it is final. Entry ``m``
    of the two running sums is the sum over the predictors before predictor ``m``.
    """

    gradient_sum: np.ndarray  # (n_features,)
    n_updates: np.ndarray  # (1,) number of mistakes so far
    l1: float
    eta: float
    since: np.ndarray  # (n_features,) mistake that last changed a gradient sum; (0,) without mean
    total: np.ndarray  # (n_features,) eta times the sum of votes times weights up to that mistake
    votes: np.ndarray  # (max_mistakes + 2,) of the predictor after each number of mistakes
    by_root: np.ndarray  # (max_mistakes + 2,) of votes / sqrt(m)
    times_root: np.ndarray  # (max_mistakes + 2,) of votes * sqrt(m)


@set_module("skstruct")
class VRDAReranker(BaseReranker):
    r"""Voted regularised dual averaging (Gao, Xiao, Xu and He, 2013).

    It learns only from groups where it chooses wrongly. After :math:`k` mistakes with the gradients
    :math:`g_1, \ldots, g_k`, the weight of each feature is

    .. math::

       w = -\frac{\sqrt k}{\eta} \, \operatorname{sign}(\bar g) \,
       \max(0, \lvert \bar g \rvert - l_1)

       \bar g = \frac{1}{k} \sum_{m=1}^{k} g_m

    A feature has a weight only if its mean gradient exceeds `l1`, which keeps models small.

    Parameters
    ----------
    loss : {"hinge", "logistic", "log", "bayes_risk"}, default="log"
        Loss of a group. "hinge": :math:`\max(0, 1 - m)`; "logistic": :math:`\log(1 + e^{-m})`;
        here the margin :math:`m` is the score of the oracle less the score of the best candidate of
        higher cost.
        "log": negative log-probability of the oracle; "bayes_risk": expected cost, which is not
        convex.
    l1 : float, default=0.0
        Threshold of the mean gradient, independent of the number of groups. With counts as
        features, 1e-3 keeps about a tenth of the weights of the last predictor.
    eta : float, default=1.0
        Strength of the proximal term: the weights are proportional to ``1 / eta``. With the hinge
        loss and no baseline it has no effect on the choice.
    prediction : {"vote", "average", "last"}, default="average"
        Predictor to use. "vote": all predictors of the training vote for their best candidates,
        each with as many votes as it had groups without a mistake; "average": the mean of their
        weights, with the same votes; "last": the last predictor, which has the fewest weights.
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
    n_jobs : int, default=None
        Number of threads for voting. None means 1 unless in a `joblib.parallel_config` context;
        -1 means all processors.
    verbose : int, default=0
        1 prints a line for each epoch with the time left, 2 the numbers of ``history_``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights: of the last predictor for ``prediction="last"``, otherwise the mean of all
        predictors. The weight of the baseline is 0, as it is not learnt.
    n_mistakes_ : int
        Number of mistakes in all epochs; there were ``n_mistakes_ + 1`` predictors.
    votes_ : ndarray of shape (n_predictors,)
        Votes of each predictor: one for each group without a mistake, plus one, except for the
        first.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        For each epoch ``"epoch"``, ``"time"`` (seconds), ``"mistakes"``, ``"nnz"`` (non-zero
        weights of the last predictor), ``"loss"`` (mean over the groups, each under the weights at
        its visit), and with costs ``"cost"`` (mean of the candidates chosen at each visit).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has them.
    vectorizer_ : SequenceVectorizer
        Vectoriser of the feature dicts or attribute strings, if X was given as such.

    See Also
    --------
    PerceptronReranker : No regularisation.
    TruncatedGradientReranker : Sparse weights by truncation.
    NBestReranker : A tagger whose n best label sequences are reranked.

    Notes
    -----
    The predictors are not stored as vectors. For voting, each feature has a history of its gradient
    sum, with an entry for every mistake that involved it. Voting replays these histories: the time
    of a group is proportional to its candidates times the mistakes, plus a correction of each
    candidate with a feature whenever the weight of this feature changes or vanishes. A history
    takes twelve bytes an entry, in total at most twelve for each epoch and non-zero of X. For
    "average" the mean is updated during training, which takes sixteen bytes a feature; "last" needs
    neither.

    As in the published algorithm, the votes of a new predictor start at 1, and of the first,
    zero, predictor at 0. A choice is correct if it costs as little as the oracle. Groups whose
    candidates all have the same cost neither teach nor vote.

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

    _remedy = f"{BaseReranker._remedy}, or a larger eta"

    _parameter_constraints: dict = {
        **BaseReranker._parameter_constraints,
        "loss": [StrOptions(set(LOSSES))],
        "l1": [Interval(Real, 0, None, closed="left")],
        "eta": [Interval(Real, 0, None, closed="neither")],
        "prediction": [StrOptions({"vote", "average", "last"})],
        "n_jobs": [Integral, None],
    }

    _stored = {
        "n_mistakes_": Count(),
        # Their sum is an integer of 64 bits as well.
        "votes_": Array(np.int64, (("n_mistakes_", 1),), least=0, below=2**31),
        "_histories": VoteHistories(),
    }
    _complete = (*BaseReranker._complete, "n_mistakes_", "votes_")

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
    ) -> None:
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

    def _start(self, n_features):
        n_averaged = 0 if self.prediction == "last" else n_features
        average = DualAverage(
            gradient_sum=np.zeros(n_features),
            n_updates=np.zeros(1, np.int64),
            l1=float(self.l1),
            eta=float(self.eta),
            since=np.zeros(n_averaged, np.int64),
            total=np.zeros(n_averaged),
            # Arrays over mistakes grow with each epoch.
            votes=np.zeros(2, np.int64),
            by_root=np.zeros(2),
            times_root=np.zeros(2),
        )
        return _Training(average, [])

    def _epoch(self, groups, order, state):
        state.average = _enlarged(state.average, len(order))
        change, mistaken = np.zeros(len(groups.costs)), np.zeros(len(order), bool)
        learn = partial(vrda_epoch, LOSSES[self.loss], groups, state.average, change, mistaken)
        tally = learn_in_portions(learn, groups, order)
        if self.prediction == "vote":
            # Only voting rebuilds the single predictors, from the changes made at each mistake.
            visited = order[mistaken[order]]
            state.epochs.append(_moving_candidates(groups.offsets, visited, change))
        return tally, np.count_nonzero(dual_weights(state.average))

    def _finish(self, groups, state):
        self.n_mistakes_ = int(state.average.n_updates[0])
        self.votes_ = state.average.votes[: self.n_mistakes_ + 1].copy()
        weights_of = dual_weights if self.prediction == "last" else mean_weights
        self.coef_ = weights_of(state.average)
        self._forget("_histories")
        if self.prediction == "vote":
            # Of the gradient of each mistake: number of candidates, their rows, and their factors.
            counts, rows, factors = map(np.concatenate, zip(*state.epochs, strict=True))
            moves = counts, rows, factors
            self._histories = build_histories(groups.rows, *moves, self.n_features_in_)

    def _decide(self, batch, base):
        if self.prediction != "vote":
            return self._linear(batch, base)
        if "_histories" not in vars(self):
            raise ValueError(
                "prediction='vote' needs the changes of all weights, which fit keeps only if it is "
                "set before: call fit again."
            )
        # Kernels read two parameters, which may have changed since.
        self._validate_params()
        size, declared = sizes_of(self), self._stored
        histories, votes = (
            declared[name].read(vars(self)[name], name, size) for name in ("_histories", "votes_")
        )
        electorate = Electorate(histories, votes, float(self.l1), float(self.eta))
        votes = count_all_votes(batch, base, electorate, self.n_jobs)
        return votes / max(electorate.votes.sum(), 1)


@dataclass
class _Training:
    """State of VRDA during training."""

    average: DualAverage
    epochs: list  # of the candidates in the gradients, epoch by epoch; empty without voting


def _enlarged(average, n_groups):
    """Enlarge the state of VRDA for a mistake in each of `n_groups` groups."""
    more = average.n_updates[0] + n_groups + 2 - len(average.votes)
    over_mistakes = ("votes", "by_root", "times_root")
    return average._replace(
        **{name: np.pad(getattr(average, name), (0, more)) for name in over_mistakes}
    )


def _moving_candidates(offsets, mistaken, change):
    """Candidates in the gradient of each mistake: number per mistake, rows and factors."""
    rows, ends = ranges(offsets[mistaken], np.diff(offsets)[mistaken])
    moving = change[rows] != 0.0
    counts = np.diff(np.concatenate([[0], np.cumsum(moving)])[ends])
    rows = rows[moving]
    return counts, rows, change[rows]


@jit
def vrda_epoch(loss, groups, state, change, mistaken, order):
    """One pass of voted regularised dual averaging over the groups; return the fields of `Tally`.

    It records which groups have mistakes, and the derivatives ``d`` of their candidates. Weights
    are not stored: each is computed from its gradient sum when it is read, so shrinking costs
    nothing for features that do not occur.
    """
    scores = np.empty(longest(groups.offsets, 0, groups.offsets.shape[0] - 1))
    n_mistakes, total_loss, total_cost = 0, 0.0, 0.0
    for i in order:
        a, b = groups.offsets[i], groups.offsets[i + 1]
        s, d, costs = scores[: b - a], change[a:b], groups.costs[a:b]
        dual_scores(groups.rows, a, b, groups.base, state, s)
        predicted, oracle, rival = judge(s, costs)
        total_cost += groups.sample_weight[i] * costs[predicted]
        if rival < 0:
            # All candidates cost the same, so no predictor can err: no vote.
            continue
        total_loss += groups.sample_weight[i] * loss_gradient(loss, s, costs, oracle, rival, d)
        if costs[predicted] == costs[oracle]:
            state.votes[state.n_updates[0]] += 1
            continue
        for y in range(b - a):
            d[y] *= groups.sample_weight[i]
        end_stretches(groups.rows, a, d, state)
        scatter(groups.rows, a, d, 1.0, state.gradient_sum)
        state.n_updates[0] += 1
        state.votes[state.n_updates[0]] = 1
        mistaken[i] = True
        n_mistakes += 1
    return n_mistakes, total_loss, total_cost


@inner_jit
def dual_scores(rows, first, last, base, state, out):
    """Scores of the candidates ``first:last`` by the current predictor of VRDA."""
    k = state.n_updates[0]
    threshold = k * state.l1
    scale = 1.0 / (state.eta * np.sqrt(max(k, 1)))
    for t in range(first, last):
        total = base[t]
        for e in range(rows.indptr[t], rows.indptr[t + 1]):
            weight = dual_weight(state.gradient_sum[rows.indices[e]], threshold, scale)
            total += value_of(rows.data, e) * weight
        out[t - first] = total


@jit
def dual_weights(state):
    k = state.n_updates[0]
    scale = 1.0 / (state.eta * np.sqrt(max(k, 1)))
    weights = np.empty(state.gradient_sum.shape[0])
    for j in range(weights.shape[0]):
        weights[j] = dual_weight(state.gradient_sum[j], k * state.l1, scale)
    return weights


@inner_jit
def end_stretches(rows, first, d, state):
    """Add to the mean the weights of the gradient sums that the next mistake changes."""
    since, k = state.since, state.n_updates[0]
    if since.shape[0] == 0:
        return
    count_votes_of_last(state)
    for y in range(d.shape[0]):
        if d[y] != 0.0:
            for e in range(rows.indptr[first + y], rows.indptr[first + y + 1]):
                j = rows.indices[e]
                if since[j] <= k:
                    end_stretch(j, state)
                    since[j] = k + 1


@inner_jit
def end_stretch(j, state):
    """Add to the mean the weights of one gradient sum since it last changed.

    While the sum is ``G``, the weight after ``m`` mistakes is
    ``-sign(G) max(|G| - m l1, 0) / (eta sqrt(m))`` (equation 10). The running sums of
    ``votes / sqrt(m)`` and ``votes * sqrt(m)`` give their total for any number of predictors.
    """
    start, g = state.since[j], state.gradient_sum[j]
    stop = vanishes(g, state.l1, state.n_updates[0])
    if stop > start:
        size = np.abs(g) * (state.by_root[stop] - state.by_root[start])
        size -= state.l1 * (state.times_root[stop] - state.times_root[start])
        state.total[j] -= np.copysign(size, g)


@inner_jit
def count_votes_of_last(state):
    """Add the last predictor, whose votes are final, to the running sums."""
    by_root, times_root, k = state.by_root, state.times_root, state.n_updates[0]
    root = np.sqrt(k)
    by_root[k + 1] = by_root[k] + (state.votes[k] / root if k > 0 else 0.0)
    times_root[k + 1] = times_root[k] + state.votes[k] * root


@jit
def mean_weights(state):
    """Mean of the weights of all predictors, weighted by their votes."""
    count_votes_of_last(state)
    n_votes = np.sum(state.votes[: state.n_updates[0] + 1])
    mean = np.empty(state.total.shape[0])
    for j in range(mean.shape[0]):
        end_stretch(j, state)
        mean[j] = state.total[j] / (state.eta * max(n_votes, 1))
    return mean


# Voting of all predictors, without storing any of them


def count_all_votes(batch, base, electorate, n_jobs):
    """Votes of each candidate of a batch, (n_rows,)."""
    rows = without_shared(batch)
    votes = np.empty(batch.n_rows, np.int64)

    def count(_, first, last):
        count_votes(rows, batch.offsets, first, last, base, electorate, votes)

    # Each predictor compares all candidates.
    work_per_row = 10.0 * len(electorate.votes)
    with range_runner(batch.offsets, n_jobs, work_per_row) as run:
        run(count)
    return votes


def build_histories(rows, counts, mistaken_rows, change, n_features):
    """Histories of the gradient sums, from the candidates in the gradient of each mistake.

    Parameters
    ----------
    rows : Rows
        The candidates of the training set.
    counts : ndarray of shape (n_mistakes,)
        Number of candidates of each mistake in the next two arrays.
    mistaken_rows : ndarray of int
        Candidates.
    change : ndarray
        Factors of these candidates in the gradient.
    n_features : int
        Number of features.

    Returns
    -------
    histories : Histories
    """
    rows = take_rows(rows, mistaken_rows)
    gradients = np.repeat(change, np.diff(rows.indptr))
    if rows.data.size:
        gradients *= rows.data
    # The mistakes of each feature stay in order.
    events = sp.csr_array((gradients, rows.indices, rows.indptr), (len(change), n_features)).tocsc()
    mistake = np.repeat(np.arange(1, len(counts) + 1, dtype=np.int32), counts)[events.indices]
    sum_within(events.indptr, events.data)
    # Of the candidates of a mistake that have the feature, the last has the sum after it.
    is_last = np.diff(mistake, append=0) != 0
    ends = events.indptr[1:]
    is_last[ends[ends > 0] - 1] = True
    indptr = np.concatenate([[0], np.cumsum(is_last)])[events.indptr]
    return Histories(indptr, mistake[is_last], events.data[is_last])


@lean_jit
def sum_within(indptr, values):
    """Turn the values of each feature into running sums."""
    for j in range(indptr.shape[0] - 1):
        total = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            total += values[e]
            values[e] = total


class Columns(NamedTuple):
    """Candidates of a group in compressed columns, one for each feature."""

    features: np.ndarray  # (n_local,) the distinct features of the group
    starts: np.ndarray  # (n_local + 1,)
    members: np.ndarray  # (n_entries,) candidates, from 0
    x: np.ndarray  # (n_entries,)
    largest: np.ndarray  # (n_local,) absolute value


class Lines(NamedTuple):
    """Scores of a group's candidates, times ``eta sqrt(m)``, as lines ``fixed + m l1 slope``.

    They are updated when a feature changes. The rounding error that accumulates is bounded for both
    parts; the bound is zero after the lines have been summed from scratch.
    """

    values: np.ndarray  # (n_local,) gradient sums of the features that have a weight, else 0
    fixed: np.ndarray  # (n_candidates,)
    slope: np.ndarray  # (n_candidates,)
    reach: np.ndarray  # (2,) bound of the absolute values of both parts, which only grows
    error: np.ndarray  # (2,) bound of the rounding errors of both parts


class Calendar(NamedTuple):
    """Changes of the weights of a group's features, by the mistake at which they are due."""

    head: np.ndarray  # (n_mistakes + 2,) first feature that changes at a mistake, or -1
    chained: np.ndarray  # (n_local,) the next one that changes at the same mistake, or -1
    position: np.ndarray  # (n_local,) current position of the features in their histories
    ends: np.ndarray  # (n_local,) of their histories


@jit
def count_votes(rows, offsets, first, last, base, electorate, out):
    """Count the votes that each candidate of the groups ``first:last`` gets.

    A predictor votes for its best-scoring candidate, the first in a tie. This takes one comparison
    for each candidate and predictor, and an update for each candidate that has a feature whose
    weight changes or vanishes. Only scores too close for rounding errors are summed from scratch.
    """
    n_features = electorate.histories.indptr.shape[0] - 1
    local = np.full(n_features, -1, np.int32)
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        votes_of_group(rows, a, b, base[a:b], electorate, local, out[a:b])


@inner_jit
def votes_of_group(rows, a, b, base, electorate, local, out):
    """Count the votes for the candidates ``a:b``; ``local`` is -1 throughout, before and after."""
    columns = group_columns(rows, a, b, local)
    n_local = columns.features.shape[0]
    n_mistakes = electorate.votes.shape[0] - 1
    lines = Lines(np.zeros(n_local), np.zeros(b - a), np.zeros(b - a), np.zeros(2), np.zeros(2))
    calendar = first_changes(columns.features, electorate)
    standing = without_twins(rows, a, b, base)
    out[:] = 0
    for m in range(n_mistakes + 1):
        change_weights(m, columns, calendar, electorate, lines)
        best, is_sure = vote(m, lines, base, standing, electorate)
        if not is_sure:
            sum_lines(columns, lines)
            best, _ = vote(m, lines, base, standing, electorate)
        out[best] += electorate.votes[m]


@inner_jit
def vote(m, lines, base, standing, electorate):
    """Best candidate of the predictor after ``m`` mistakes; False if rounding may have decided."""
    threshold = m * electorate.l1
    pull = electorate.eta * np.sqrt(m) if m > 0 else 1.0
    best, highest, second = -1, -np.inf, -np.inf
    for y in standing:
        score = lines.fixed[y] + threshold * lines.slope[y] + pull * base[y]
        if score > highest:
            best, highest, second = y, score, highest
        elif score > second:
            second = score
    if lines.error[0] == 0.0:
        return best, True
    # Sums from scratch have rounding errors as well.
    again = ROUNDING * lines.values.shape[0]
    error = lines.error[0] + again * lines.reach[0]
    error += threshold * (lines.error[1] + again * lines.reach[1])
    return best, highest - second > error


@inner_jit
def without_twins(rows, a, b, base):
    """Candidates, from 0, without those that equal an earlier one and so never win."""
    standing = np.empty(b - a, np.int64)
    n = 0
    for t in range(a, b):
        is_twin = False
        for u in standing[:n]:
            start, length = rows.indptr[a + u], rows.indptr[a + u + 1] - rows.indptr[a + u]
            if base[u] != base[t - a] or rows.indptr[t + 1] - rows.indptr[t] != length:
                continue
            shift = rows.indptr[t] - start
            is_twin = True
            for e in range(start, start + length):
                same = rows.indices[e] == rows.indices[e + shift]
                if not same or value_of(rows.data, e) != value_of(rows.data, e + shift):
                    is_twin = False
                    break
            if is_twin:
                break
        if not is_twin:
            standing[n] = t - a
            n += 1
    return standing[:n]


@inner_jit
def group_columns(rows, a, b, local):
    """Compressed columns of the candidates ``a:b``."""
    first, last = rows.indptr[a], rows.indptr[b]
    features = np.empty(last - first, np.int32)
    counts = np.zeros(last - first + 1, np.int64)
    n_local = 0
    for e in range(first, last):
        j = rows.indices[e]
        if local[j] < 0:
            local[j] = n_local
            features[n_local] = j
            n_local += 1
        counts[local[j] + 1] += 1
    starts = np.cumsum(counts[: n_local + 1])
    filled = starts[:-1].copy()
    members = np.empty(last - first, np.int32)
    x = np.empty(last - first)
    for t in range(a, b):
        for e in range(rows.indptr[t], rows.indptr[t + 1]):
            f = local[rows.indices[e]]
            members[filled[f]] = t - a
            x[filled[f]] = value_of(rows.data, e)
            filled[f] += 1
    largest = np.zeros(n_local)
    for f in range(n_local):
        local[features[f]] = -1
        for r in range(starts[f], starts[f + 1]):
            largest[f] = max(largest[f], np.abs(x[r]))
    return Columns(features[:n_local], starts, members, x, largest)


@inner_jit
def sum_lines(columns, lines):
    """Sum the lines from scratch.

    Candidates that have the same features with nonzero weights get identical sums: features are
    added in one order, and those of weight zero are skipped.
    """
    for part in (lines.fixed, lines.slope, lines.reach, lines.error):
        part[:] = 0.0
    for f in range(lines.values.shape[0]):
        g = lines.values[f]
        if g != 0.0:
            sign = np.sign(g)
            for r in range(columns.starts[f], columns.starts[f + 1]):
                lines.fixed[columns.members[r]] -= columns.x[r] * g
                lines.slope[columns.members[r]] += columns.x[r] * sign
            lines.reach[0] += columns.largest[f] * np.abs(g)
            lines.reach[1] += columns.largest[f]


@inner_jit
def first_changes(features, electorate):
    """Calendar before the first mistake."""
    indptr, n_mistakes = electorate.histories.indptr, electorate.votes.shape[0] - 1
    head = np.full(n_mistakes + 2, -1, np.int32)
    chained = np.empty(features.shape[0], np.int32)
    position, ends = np.empty(features.shape[0], np.int64), np.empty(features.shape[0], np.int64)
    for f in range(features.shape[0]):
        position[f], ends[f] = indptr[features[f]] - 1, indptr[features[f] + 1]
        due = n_mistakes + 1
        if position[f] + 1 < ends[f]:
            due = np.int64(electorate.histories.mistake[position[f] + 1])
        chained[f] = head[due]
        head[due] = f
    return Calendar(head, chained, position, ends)


@inner_jit
def change_weights(m, columns, calendar, electorate, lines):
    """Make the changes of weights that are due at mistake ``m``.

    Records are unpacked first, as passing one on costs more than a change.
    """
    f = calendar.head[m]
    if f < 0:
        return
    starts, members, x, largest = columns.starts, columns.members, columns.x, columns.largest
    head, chained = calendar.head, calendar.chained
    position, ends = calendar.position, calendar.ends
    mistake, gradient_sum = electorate.histories.mistake, electorate.histories.gradient_sum
    values, fixed, slope = lines.values, lines.fixed, lines.slope
    l1, n_mistakes = electorate.l1, electorate.votes.shape[0] - 1
    reach, error = lines.reach, lines.error
    while f >= 0:
        coming, h = chained[f], position[f]
        if h + 1 < ends[f] and mistake[h + 1] == m:
            h += 1
            position[f] = h
        g = gradient_sum[h]
        old, size = values[f], np.abs(g)
        value = g if size > m * l1 else 0.0
        turn = np.sign(value) - np.sign(old)
        for r in range(starts[f], starts[f + 1]):
            fixed[members[r]] -= x[r] * (value - old)
        if turn != 0.0:
            for r in range(starts[f], starts[f + 1]):
                slope[members[r]] += x[r] * turn
            reach[1] += largest[f]
            error[1] += ROUNDING * (reach[1] + largest[f])
        values[f] = value
        reach[0] += largest[f] * max(0.0, np.abs(value) - np.abs(old))
        error[0] += ROUNDING * (reach[0] + largest[f] * (np.abs(value) + np.abs(old)))
        due = np.int64(mistake[h + 1]) if h + 1 < ends[f] else n_mistakes + 1
        if value != 0.0:
            due = min(due, vanishes(g, l1, n_mistakes))
        chained[f] = head[due]
        head[due] = f
        f = coming


@jit
def vanishes(gradient_sum, l1, n_mistakes):
    """First number of mistakes at which the weight of a constant gradient sum is zero."""
    size = np.abs(gradient_sum)
    if size == 0.0 or size <= l1:
        return 1
    if size > n_mistakes * l1:
        return n_mistakes + 1
    m = np.int64(size / l1)
    while size <= m * l1:
        m -= 1
    while size > m * l1:
        m += 1
    return m
