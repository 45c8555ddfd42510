"""The rule of SAPO, search-based probabilistic online learning (Sun et al., 2018)."""

import numpy as np

from skstruct.chain.beam import n_possible
from skstruct.chain.forward_backward import log_sum_exp
from skstruct.chain.scores import path_score
from skstruct.chain.search import search_nbest
from skstruct.kernels._jit import jit
from skstruct.kernels.online.loop import add_contrast, clear_difference, count_wrong, online_epoch


@jit
def sapo_rule(rows, sample, scores, edges, gold, search, difference, counts):
    """Gold labelling less the expectation over the n best (Algorithm 1, lines 4 to 7).

    The loss is the negative log-likelihood of the gold labelling, normalised over the n best
    (equation 1). It is set to zero where a beam finds only labellings that score less than gold.
    """
    length = gold.shape[0]
    n_best = n_possible(length, scores.shape[1], search.n_best)
    labels = np.empty((n_best, length), np.int32)
    path_scores = np.empty(n_best)
    gold_score = path_score(scores, length, edges, gold)
    n_found = search_nbest(search, scores, length, edges, labels, path_scores)
    log_z = log_sum_exp(path_scores, n_found)
    clear_difference(length, difference)
    for k in range(n_found):
        p = np.exp(path_scores[k] - log_z)
        add_contrast(edges, gold, labels[k], p, difference, counts)
    loss = log_z - gold_score
    return count_wrong(gold, labels[0]), 0.0 if loss < 0.0 else loss


@jit
def sapo_epoch(rows, labels, samples, sample_weight, schedule, search, state):
    """One pass of SAPO (see `online_epoch`)."""
    return online_epoch(sapo_rule, rows, labels, samples, sample_weight, schedule, search, state)
