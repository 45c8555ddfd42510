"""Losses of a group of candidates, and their derivatives by the scores of the candidates.

All four are functions of the scores alone, so the gradient by the weights is
``sum_y d[y] phi(y)``, where ``d`` are the derivatives and ``sum_y d[y] = 0``. Equation numbers are
those of Gao, Xiao, Xu and He (2013).
"""

import numpy as np

from skstruct.kernels._jit import jit

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
