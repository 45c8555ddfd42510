"""Training of rerankers: voted regularised dual averaging, and stochastic gradient descent.

The candidates of a group are consecutive rows. The gradient of every loss is ``sum_y d[y] phi(y)``
with ``sum_y d[y] = 0`` (see `skstruct.kernels.rerank.learn`), so a learner is a short loop over
the features that differ between candidates. Equation numbers are those of Gao, Xiao, Xu and He
(2013).
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import Rows, value_of
from skstruct.kernels._jit import jit, lean_jit

# Codes of the losses, as the kernels see them.
HINGE, LOGISTIC, LOG, BAYES_RISK = range(4)
LOSSES = {"hinge": HINGE, "logistic": LOGISTIC, "log": LOG, "bayes_risk": BAYES_RISK}


@jit
def judge(scores, costs):
    """Prediction (1), oracle (2), and rival: the best-scoring candidates of three kinds.

    The prediction is the best of all, the oracle the best of the cheapest, and the rival, for the
    hinge and the logistic loss, the best of the others, or -1 if there are none. Ties go to the
    first candidate.
    """
    lowest = np.min(costs)
    predicted, oracle, rival = 0, -1, -1
    for y in range(scores.shape[0]):
        if scores[y] > scores[predicted]:
            predicted = y
        if costs[y] == lowest:
            if oracle < 0 or scores[y] > scores[oracle]:
                oracle = y
        elif rival < 0 or scores[y] > scores[rival]:
            rival = y
    return predicted, oracle, rival


@jit
def loss_gradient(loss, scores, costs, oracle, rival, d):
    """Fill in the derivative of a loss by each candidate's score; return the loss.

    Equation (5), its logistic counterpart, the negative logarithm of (6), and equation (7).
    """
    if loss in (LOG, BAYES_RISK):
        log_total = softmax(scores, d)
        if loss == LOG:
            d[oracle] -= 1.0
            return log_total - scores[oracle]
        risk = 0.0
        for y in range(d.shape[0]):
            risk += d[y] * costs[y]
        for y in range(d.shape[0]):
            d[y] *= costs[y] - risk
        return risk
    margin = scores[oracle] - scores[rival]
    if loss == HINGE:
        value = max(0.0, 1.0 - margin)
        pull = 1.0 if value > 0.0 else 0.0
    else:
        # One formula for both signs of the margin would overflow for one of them.
        small = np.exp(-np.abs(margin))
        value = np.log1p(small) + max(0.0, -margin)
        pull = (small if margin > 0.0 else 1.0) / (1.0 + small)
    d[:] = 0.0
    d[oracle] = -pull
    d[rival] = pull
    return value


@jit
def softmax(scores, out):
    """Write the probabilities (6) of a group's candidates; return the logarithm of their total."""
    highest = np.max(scores)
    total = 0.0
    for y in range(scores.shape[0]):
        out[y] = np.exp(scores[y] - highest)
        total += out[y]
    for y in range(scores.shape[0]):
        out[y] /= total
    return highest + np.log(total)


@jit
def group_softmax(scores, offsets, out):
    """Write the probabilities (6) of the candidates of every group."""
    for i in range(offsets.shape[0] - 1):
        softmax(scores[offsets[i] : offsets[i + 1]], out[offsets[i] : offsets[i + 1]])


class Groups(NamedTuple):
    """Training set of a reranker."""

    rows: Rows  # candidates
    offsets: np.ndarray  # (n_groups + 1,)
    costs: np.ndarray  # (n_rows,)
    base: np.ndarray  # (n_rows,) fixed part of the score
    sample_weight: np.ndarray  # (n_groups,)


class Tally(NamedTuple):
    """Totals of a pass over the groups."""

    mistakes: int
    loss: float
    cost: float  # of the predicted candidates


class Mean(NamedTuple):
    """Mean of the predictors of VRDA, weighted by votes, as far as it is summed up.

    Entry ``m`` of the two running sums is the sum over the predictors before predictor ``m``.
    """

    since: np.ndarray  # (n_features,) mistake that last changed a gradient sum; (0,) without mean
    total: np.ndarray  # (n_features,) eta times the sum of votes times weights up to that mistake
    by_root: np.ndarray  # (max_mistakes + 2,) of votes / sqrt(m)
    times_root: np.ndarray  # (max_mistakes + 2,) of votes * sqrt(m)


class DualAverage(NamedTuple):
    """State of VRDA: the sum of all gradients, which determines the weights."""

    gradient_sum: np.ndarray  # (n_features,)
    n_updates: np.ndarray  # (1,) number of mistakes so far
    votes: np.ndarray  # (max_mistakes + 1,) of the predictor after each number of mistakes
    mean: Mean
    l1: float
    eta: float


class EpochMistakes(NamedTuple):
    """The mistakes of one epoch, from which all its predictors can be rebuilt."""

    group: np.ndarray  # (n_groups,) groups with mistakes, in the order of visit
    change: np.ndarray  # (n_rows,) ``d`` of their candidates; (0,) to record nothing


class DescentState(NamedTuple):
    """State of stochastic gradient descent and its variants."""

    weights: np.ndarray  # (n_features,)
    shrunk: np.ndarray  # (n_features,) penalty applied to each weight so far; (0,) without
    lag: np.ndarray  # (n_features,) lag of the average; (0,) without
    progress: np.ndarray  # (3,) groups seen, updates made, penalty due in total


class DescentRule(NamedTuple):
    """Parameters in which the perceptron, SGD and truncated gradient differ."""

    learning_rate: float
    decay: bool  # the k-th step is learning_rate / sqrt(k)
    on_mistakes: bool  # update only at mistakes
    gravity: float
    period: int


@jit
def vrda_epoch(groups, order, loss, state, record):
    """One pass of voted regularised dual averaging over the groups; return the fields of `Tally`.

    Weights are not stored: each is computed from its gradient sum when it is read, so shrinking
    costs nothing for features that do not occur.
    """
    scores = np.empty(largest_group(groups.offsets))
    unrecorded = np.empty(scores.shape[0])
    n_mistakes, total_loss, total_cost = 0, 0.0, 0.0
    for i in order:
        a, b = groups.offsets[i], groups.offsets[i + 1]
        s, costs = scores[: b - a], groups.costs[a:b]
        dual_scores(groups.rows, a, b, groups.base, state, s)
        predicted, oracle, rival = judge(s, costs)
        total_cost += groups.sample_weight[i] * costs[predicted]
        if rival < 0:
            # All candidates cost the same, so no predictor can err: no vote.
            continue
        d = record.change[a:b] if record.change.shape[0] > 0 else unrecorded[: b - a]
        total_loss += groups.sample_weight[i] * loss_gradient(loss, s, costs, oracle, rival, d)
        if costs[predicted] == costs[oracle]:
            d[:] = 0.0
            state.votes[state.n_updates[0]] += 1
            continue
        for y in range(b - a):
            d[y] *= groups.sample_weight[i]
        end_stretches(groups.rows, a, d, state)
        scatter(groups.rows, a, d, 1.0, state.gradient_sum)
        state.n_updates[0] += 1
        state.votes[state.n_updates[0]] = 1
        record.group[n_mistakes] = i
        n_mistakes += 1
    return n_mistakes, total_loss, total_cost


@jit
def descent_epoch(groups, order, loss, rule, state):
    """One pass of (truncated) gradient descent or the perceptron; return the fields of `Tally`."""
    scores = np.empty(largest_group(groups.offsets))
    change = np.empty(scores.shape[0])
    progress = state.progress
    n_mistakes, total_loss, total_cost = 0, 0.0, 0.0
    for i in order:
        a, b = groups.offsets[i], groups.offsets[i + 1]
        s, d, costs = scores[: b - a], change[: b - a], groups.costs[a:b]
        pay_penalty(groups.rows, a, b, state)
        candidate_scores(groups.rows, a, b, groups.base, state.weights, s)
        predicted, oracle, rival = judge(s, costs)
        total_cost += groups.sample_weight[i] * costs[predicted]
        step = rule.learning_rate / np.sqrt(progress[1] + 1.0 if rule.decay else 1.0)
        if rival >= 0:
            mistaken = costs[predicted] > costs[oracle]
            n_mistakes += mistaken
            total_loss += groups.sample_weight[i] * loss_gradient(loss, s, costs, oracle, rival, d)
            if (mistaken or not rule.on_mistakes) and not is_zero(d):
                step_down(groups.rows, a, d, step * groups.sample_weight[i], state)
                progress[1] += 1.0
        progress[0] += 1.0
        if rule.gravity > 0.0 and progress[0] % rule.period == 0.0:
            progress[2] += step * rule.period * rule.gravity
    return n_mistakes, total_loss, total_cost


@lean_jit
def is_zero(values):
    """Return True if all values are zero."""
    for value in values:  # noqa: SIM110
        if value != 0.0:
            return False
    return True


@jit
def largest_group(offsets):
    """Number of candidates of the largest group."""
    largest = 0
    for i in range(offsets.shape[0] - 1):
        largest = max(largest, offsets[i + 1] - offsets[i])
    return largest


@jit
def dual_weight(gradient_sum, threshold, scale):
    """One weight by equation (10): ``-sqrt(k) / eta * shrink(g, l1)``, with sums for means.

    ``threshold = k * l1`` and ``scale = 1 / (eta * sqrt(k))``. The comparison makes the weight
    exactly zero where the sum equals the threshold, which a fused difference might not. There is
    no branch, because zero weights are too irregular to predict.
    """
    size = np.abs(gradient_sum)
    rest = size - threshold if size > threshold else 0.0
    return -scale * np.copysign(rest, gradient_sum)


@jit
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
def dual_weights(gradient_sum, k, l1, eta, out):
    """Write the weights of the predictor after ``k`` mistakes; return the number of nonzeros."""
    scale = 1.0 / (eta * np.sqrt(max(k, 1)))
    n_nonzero = 0
    for j in range(gradient_sum.shape[0]):
        out[j] = dual_weight(gradient_sum[j], k * l1, scale)
        n_nonzero += out[j] != 0.0
    return n_nonzero


@jit
def end_stretches(rows, first, d, state):
    """Add to the mean the weights of the gradient sums that the next mistake changes."""
    since, k = state.mean.since, state.n_updates[0]
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


@jit
def count_votes_of_last(state):
    """Add the last predictor, whose votes are final, to the running sums."""
    by_root, times_root, k = state.mean.by_root, state.mean.times_root, state.n_updates[0]
    root = np.sqrt(k)
    by_root[k + 1] = by_root[k] + (state.votes[k] / root if k > 0 else 0.0)
    times_root[k + 1] = times_root[k] + state.votes[k] * root


@jit
def end_stretch(j, state):
    """Add to the mean the weights of one gradient sum since it last changed.

    While the sum is ``G``, the weight after ``m`` mistakes is
    ``-sign(G) max(|G| - m l1, 0) / (eta sqrt(m))`` (equation 10). The running sums of
    ``votes / sqrt(m)`` and ``votes * sqrt(m)`` give their total for any number of predictors.
    """
    mean, g = state.mean, state.gradient_sum[j]
    start = mean.since[j]
    stop = vanishes(g, state.l1, state.n_updates[0])
    if stop > start:
        size = np.abs(g) * (mean.by_root[stop] - mean.by_root[start])
        size -= state.l1 * (mean.times_root[stop] - mean.times_root[start])
        mean.total[j] -= np.copysign(size, g)


@jit
def mean_weights(state, out):
    """Mean of the weights of all predictors, weighted by their votes."""
    count_votes_of_last(state)
    n_votes = np.sum(state.votes[: state.n_updates[0] + 1])
    for j in range(out.shape[0]):
        end_stretch(j, state)
        out[j] = state.mean.total[j] / (state.eta * max(n_votes, 1))


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


@jit
def candidate_scores(rows, first, last, base, weights, out):
    """Scores of the candidates ``first:last`` under a weight vector."""
    for t in range(first, last):
        total = base[t]
        for e in range(rows.indptr[t], rows.indptr[t + 1]):
            weight = weights[rows.indices[e]]
            total += value_of(rows.data, e) * weight
        out[t - first] = total


@jit
def scatter(rows, first, d, step, weights):
    """Add ``step * sum_y d[y] phi(y)`` to a vector, feature by feature."""
    for y in range(d.shape[0]):
        if d[y] != 0.0:
            for e in range(rows.indptr[first + y], rows.indptr[first + y + 1]):
                x = value_of(rows.data, e)
                weights[rows.indices[e]] += step * d[y] * x


@jit
def step_down(rows, first, d, step, state):
    """Take a step against the gradient; add it to the lag of the average."""
    scatter(rows, first, d, -step, state.weights)
    if state.lag.shape[0] > 0:
        scatter(rows, first, d, -step * state.progress[0], state.lag)


@jit
def pay_penalty(rows, first, last, state):
    """Bring the weights of the features of some candidates up to date with the truncation (12).

    Shrinking twice equals shrinking once by the sum, so it can wait until a weight is read.
    """
    if state.shrunk.shape[0] == 0:
        return
    due = state.progress[2]
    for e in range(rows.indptr[first], rows.indptr[last]):
        j = rows.indices[e]
        if state.shrunk[j] != due:
            state.weights[j] = dual_weight(-state.weights[j], due - state.shrunk[j], 1.0)
            state.shrunk[j] = due


@jit
def pay_all(state):
    """Bring all weights up to date with the truncation."""
    due = state.progress[2]
    for j in range(state.shrunk.shape[0]):
        state.weights[j] = dual_weight(-state.weights[j], due - state.shrunk[j], 1.0)
        state.shrunk[j] = due


def without_shared(rows, offsets, n_features):
    """Rows without the features that have the same value in all candidates of a group.

    These cancel in every comparison and, as the derivatives of a loss sum to zero, in every
    gradient. Rounding would otherwise leave them tiny weights.
    """
    return Rows(*drop_shared(rows, offsets, n_features))


@jit
def drop_shared(rows, offsets, n_features):
    """Arrays of the rows `without_shared` features."""
    seen_in = np.full(n_features, -1, np.int64)
    n_same = np.zeros(n_features, np.int64)
    value = np.zeros(n_features)
    unit = rows.data.shape[0] == 0
    indptr = np.zeros(rows.indptr.shape[0], np.int64)
    indices = np.empty(rows.indices.shape[0], np.int32)
    data = np.empty(rows.data.shape[0])
    end = 0
    for i in range(offsets.shape[0] - 1):
        a, b = offsets[i], offsets[i + 1]
        for e in range(rows.indptr[a], rows.indptr[b]):
            j, x = rows.indices[e], value_of(rows.data, e)
            if seen_in[j] != i:
                seen_in[j], n_same[j], value[j] = i, 0, x
            n_same[j] += x == value[j]
        for t in range(a, b):
            for e in range(rows.indptr[t], rows.indptr[t + 1]):
                if n_same[rows.indices[e]] < b - a:
                    indices[end] = rows.indices[e]
                    if not unit:
                        data[end] = rows.data[e]
                    end += 1
            indptr[t + 1] = end
    return indptr, indices[:end].copy(), data[: 0 if unit else end].copy()
