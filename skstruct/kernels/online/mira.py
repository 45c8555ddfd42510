"""The rule of MIRA, the margin infused relaxed algorithm (Crammer and Singer, 2003)."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.beam import n_possible
from skstruct.chain.scores import add_cost, path_score
from skstruct.chain.search import AStarSearch, search_nbest
from skstruct.kernels._jit import jit
from skstruct.kernels.online.loop import (
    add_weighted_contrast,
    clear_difference,
    count_wrong,
    rule,
)
from skstruct.kernels.online.products import inner_products

MAX_PASSES = 200
# Passes end when no multiplier changes by more than this share of the largest one.
PRECISION = 1e-9


class Margin(NamedTuple):
    """Parameters and workspace of MIRA."""

    search: AStarSearch  # or BeamSearch
    hamming: bool  # the margin is the number of wrong tokens, else one
    label_cost: np.ndarray  # added to the margin, see `add_cost`
    cap: float  # largest multiplier of a labelling
    n_passes: int  # largest number of passes over the constraints
    fit_intercept: bool
    # Slots of features or transitions, -1 between samples (see `inner_products`).
    slots: np.ndarray  # (max(n_features, n_transition_features, n_labels ** (order + 1)),)
    token_weight: np.ndarray = np.empty(0)  # factor of each token's difference; empty: one


@rule.of(Margin)
def mira_rule(margin, rows, sample, scores, edges, gold, difference, counts):
    """Smallest change of the weights that gives every labelling found its margin.

    The loss is the largest violation of a margin.
    """
    add_cost(margin.label_cost, gold, scores)
    length = gold.shape[0]
    n_best = n_possible(length, scores.shape[1], margin.search.n_best)
    labels = np.empty((n_best, length), np.int32)
    path_scores = np.empty(n_best)
    gold_score = path_score(scores, length, edges, gold)
    n_found = search_nbest(margin.search, scores, length, edges, labels, path_scores)
    missing = np.empty(n_found)
    loss = 0.0
    for k in range(n_found):
        wrong = count_wrong(gold, labels[k])
        cost = wrong if margin.hamming else min(wrong, 1)
        missing[k] = cost - (gold_score - path_scores[k]) if wrong > 0 else 0.0
        if not missing[k] <= loss:
            loss = missing[k]
        if np.isnan(loss):
            break
    if loss > 0.0:
        products = inner_products(
            edges, rows, sample, gold, labels[:n_found], margin.fit_intercept, margin.slots
        )
        multipliers = hildreth(products, missing, margin.cap, margin.n_passes)
        clear_difference(length, difference)
        weights, first = margin.token_weight, sample[0]
        for k in range(n_found):
            if multipliers[k] != 0.0:
                add_weighted_contrast(
                    edges, gold, labels[k], multipliers[k], weights, first, difference, counts
                )
    return count_wrong(gold, labels[0]), loss


@jit
def hildreth(products, missing, cap, n_passes):
    """Multipliers of the quadratic programme by coordinate ascent (Hildreth, 1957).

    A single pass satisfies each constraint once, in order.
    """
    n = missing.shape[0]
    multipliers = np.zeros(n)
    for _ in range(n_passes):
        largest, change = 0.0, 0.0
        for k in range(n):
            if products[k, k] <= 0.0:
                continue
            gap = missing[k]
            for m in range(n):
                gap -= multipliers[m] * products[k, m]
            value = min(max(multipliers[k] + gap / products[k, k], 0.0), cap)
            change = max(change, abs(value - multipliers[k]))
            largest = max(largest, value)
            multipliers[k] = value
        if change <= PRECISION * largest:
            break
    return multipliers
