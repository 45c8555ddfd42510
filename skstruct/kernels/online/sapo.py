"""The rule of SAPO, search-based probabilistic online learning (Sun et al., 2018)."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.beam import n_possible
from skstruct.chain.forward_backward import log_sum_exp
from skstruct.chain.scores import path_score
from skstruct.chain.search import AStarSearch, search_nbest
from skstruct.kernels.online.loop import add_contrast, clear_difference, count_wrong, rule


class Expectation(NamedTuple):
    """Parameters of SAPO."""

    search: AStarSearch  # or BeamSearch


@rule.of(Expectation)
def sapo_rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Gold labelling less the expectation over the n best (Algorithm 1, lines 4 to 7).

    The loss is the negative log-likelihood of the gold labelling, normalised over the n best
    (equation 1). It is set to zero where a beam finds only labellings that score less than gold.
    """
    length = gold.shape[0]
    n_best = n_possible(length, scores.shape[1], settings.search.n_best)
    labels = np.empty((n_best, length), np.int32)
    path_scores = np.empty(n_best)
    gold_score = path_score(scores, length, edges, gold)
    n_found = search_nbest(settings.search, scores, length, edges, labels, path_scores)
    log_z = log_sum_exp(path_scores, n_found)
    clear_difference(length, difference)
    for k in range(n_found):
        p = np.exp(path_scores[k] - log_z)
        add_contrast(edges, gold, labels[k], p, difference, counts)
    loss = log_z - gold_score
    return count_wrong(gold, labels[0]), 0.0 if loss < 0.0 else loss
