"""Losses of a group of candidates, and what all passes over groups need.

The candidates of a group are consecutive rows. The gradient of every loss is ``sum_y d[y] phi(y)``
with ``sum_y d[y] = 0``, so a learner is a short loop over the features that differ between
candidates. Equation numbers are from Gao, Xiao, Xu and He (2013).
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import Rows, value_of
from skstruct.compiled.jit import inner_jit, jit

# Codes of the losses, as the kernels see them.
HINGE, LOGISTIC, LOG, BAYES_RISK = range(4)
LOSSES = {"hinge": HINGE, "logistic": LOGISTIC, "log": LOG, "bayes_risk": BAYES_RISK}


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


@inner_jit
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


@inner_jit
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


@inner_jit
def dual_weight(gradient_sum, threshold, scale):
    """One weight by equation (10): ``-sqrt(k) / eta * shrink(g, l1)``, with sums for means.

    ``threshold = k * l1`` and ``scale = 1 / (eta * sqrt(k))``. The comparison makes the weight
    exactly zero where the sum equals the threshold, which a fused difference might not. There is
    no branch, because zero weights are too irregular to predict.
    """
    size = np.abs(gradient_sum)
    rest = size - threshold if size > threshold else 0.0
    return -scale * np.copysign(rest, gradient_sum)
