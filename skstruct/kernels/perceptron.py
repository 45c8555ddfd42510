"""The rule of the structured perceptron."""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.online import (
    begin_difference,
    count_wrong,
    online_epoch,
    subtract_labelling,
)
from skstruct.kernels.scores import path_score
from skstruct.kernels.viterbi import viterbi


@jit
def perceptron_rule(rows, sample, scores, transition, gold, settings, difference, pairs):
    """Gold labelling less the best one; the loss is by how much the best one scores more."""
    length = gold.shape[0]
    predicted = np.empty(length, np.int32)
    gold_score = path_score(scores, length, transition, gold)
    best_score = viterbi(scores, length, transition, predicted)
    wrong = count_wrong(gold, predicted)
    if wrong == 0:
        return 0, 0.0
    begin_difference(gold, difference, pairs)
    subtract_labelling(predicted, 1.0, difference, pairs)
    return wrong, max(best_score - gold_score, 0.0)


@jit
def perceptron_epoch(rows, labels, samples, sample_weight, pace, settings, state):
    """One pass of the structured perceptron (see `online_epoch`)."""
    return online_epoch(
        perceptron_rule, rows, labels, samples, sample_weight, pace, settings, state
    )
