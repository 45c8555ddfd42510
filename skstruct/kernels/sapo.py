"""The rule of SAPO, search-based probabilistic online learning."""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.astar import astar_nbest
from skstruct.kernels.forward_backward import log_sum_exp
from skstruct.kernels.nbest import nbest
from skstruct.kernels.online import (
    begin_difference,
    count_wrong,
    online_epoch,
    subtract_labelling,
)
from skstruct.kernels.scores import path_score


class Search(NamedTuple):
    """How the best labellings are searched for."""

    n_best: int
    astar: bool  # or k-best Viterbi


@jit
def search_nbest(scores, length, transition, search, labels, path_scores):
    """Best labellings of a sample, best first; return how many there are."""
    if search.astar:
        return astar_nbest(scores, length, transition, search.n_best, labels, path_scores)
    return nbest(scores, length, transition, search.n_best, labels, path_scores)


@jit
def sapo_rule(rows, sample, scores, transition, gold, search, difference, pairs):
    """Gold labelling less the mean of the n best (Algorithm 1, lines 4 to 7).

    The loss is the negative log-likelihood of the gold labelling with the n best in place of all
    in the normaliser (equation 1).
    """
    length = gold.shape[0]
    labels = np.empty((search.n_best, length), np.int32)
    path_scores = np.empty(search.n_best)
    gold_score = path_score(scores, length, transition, gold)
    n_found = search_nbest(scores, length, transition, search, labels, path_scores)
    log_z = log_sum_exp(path_scores, n_found)
    begin_difference(gold, difference, pairs)
    for k in range(n_found):
        p = np.exp(path_scores[k] - log_z)
        subtract_labelling(labels[k], p, difference, pairs)
    return count_wrong(gold, labels[0]), log_z - gold_score


@jit
def sapo_epoch(rows, labels, samples, sample_weight, pace, search, state):
    """One pass of SAPO (see `online_epoch`)."""
    return online_epoch(sapo_rule, rows, labels, samples, sample_weight, pace, search, state)
