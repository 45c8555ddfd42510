"""The rule of the structured perceptron (Collins, 2002)."""

import numpy as np

from skstruct.chain.scores import add_cost, path_score
from skstruct.chain.viterbi import viterbi
from skstruct.kernels._jit import jit
from skstruct.kernels.online.loop import add_contrast, clear_difference, count_wrong, online_epoch


@jit
def perceptron_rule(rows, sample, scores, edges, gold, cost, difference, counts):
    """Gold labelling less the predicted one; the loss is the difference of their scores.

    The scores include the `cost`, so that it is the margin.
    """
    add_cost(cost, gold, scores)
    length = gold.shape[0]
    predicted = np.empty(length, np.int32)
    gold_score = path_score(scores, length, edges, gold)
    best_score = viterbi(scores, length, edges, predicted)
    wrong = count_wrong(gold, predicted)
    if wrong == 0:
        return 0, 0.0
    clear_difference(length, difference)
    add_contrast(edges, gold, predicted, 1.0, difference, counts)
    loss = best_score - gold_score
    # Unlike max, this keeps NaN.
    return wrong, 0.0 if loss < 0.0 else loss


@jit
def perceptron_epoch(rows, labels, samples, sample_weight, schedule, cost, state):
    """One pass of the structured perceptron (see `online_epoch`)."""
    return online_epoch(
        perceptron_rule, rows, labels, samples, sample_weight, schedule, cost, state
    )
