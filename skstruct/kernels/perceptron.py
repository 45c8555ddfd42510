"""The rule of the structured perceptron."""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.online import gold_minus, online_epoch
from skstruct.kernels.scores import path_score
from skstruct.kernels.viterbi import viterbi


@jit
def perceptron_rule(scores, length, transition, gold, difference, pairs):
    """Gold labelling less the best one; the loss is by how much the best one scores more."""
    predicted = np.empty(length, np.int32)
    gold_score = path_score(scores, length, transition, gold)
    best_score = viterbi(scores, length, transition, predicted)
    wrong = gold_minus(gold, predicted, difference, pairs)
    return wrong, max(best_score - gold_score, 0.0) if wrong > 0 else 0.0


@jit
def perceptron_epoch(rows, labels, samples, sample_weight, fit_intercept, state):
    """One pass of the structured perceptron (see `online_epoch`)."""
    return online_epoch(perceptron_rule, rows, labels, samples, sample_weight, fit_intercept, state)
