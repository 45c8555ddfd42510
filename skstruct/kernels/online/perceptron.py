"""The rule of the structured perceptron (Collins, 2002)."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import add_cost, path_score
from skstruct.chain.viterbi import viterbi
from skstruct.kernels.online.loop import (
    add_weighted_contrast,
    clear_difference,
    count_wrong,
    rule,
)


class Mistakes(NamedTuple):
    """Parameters of the perceptron."""

    label_cost: np.ndarray  # added to the scores, so that it is the margin (see `add_cost`)
    token_weight: np.ndarray = np.empty(0)  # factor of each token's difference; empty: one


@rule.of(Mistakes)
def perceptron_rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Gold labelling less the predicted one; the loss is the difference of their scores."""
    add_cost(settings.label_cost, gold, scores)
    length = gold.shape[0]
    predicted = np.empty(length, np.int32)
    gold_score = path_score(scores, length, edges, gold)
    best_score = viterbi(scores, length, edges, predicted)
    wrong = count_wrong(gold, predicted)
    if wrong == 0:
        return 0, 0.0
    clear_difference(length, difference)
    weights, first = settings.token_weight, sample[0]
    add_weighted_contrast(edges, gold, predicted, 1.0, weights, first, difference, counts)
    loss = best_score - gold_score
    # Unlike max, this keeps NaN.
    return wrong, 0.0 if loss < 0.0 else loss
