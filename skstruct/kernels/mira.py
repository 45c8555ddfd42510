"""The rule of MIRA, the margin infused relaxed algorithm."""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.online import count_wrong, online_epoch
from skstruct.kernels.sapo import Search, search_nbest
from skstruct.kernels.scores import path_score

MAX_PASSES = 200


class Margin(NamedTuple):
    """What the labellings found are to keep away from the gold one by."""

    search: Search
    hamming: bool  # the number of wrong tokens; or one, whatever their number
    cap: float  # largest multiplier of a labelling
    n_passes: int  # over the constraints
    fit_intercept: bool


@jit
def mira_rule(rows, sample, scores, transition, gold, margin, difference, pairs):
    """Least change of the weights after which every labelling found keeps its margin.

    The loss is by how much the worst of them fails to.
    """
    length, n_best = gold.shape[0], margin.search.n_best
    labels = np.empty((n_best, length), np.int32)
    path_scores = np.empty(n_best)
    gold_score = path_score(scores, length, transition, gold)
    n_found = search_nbest(scores, length, transition, margin.search, labels, path_scores)
    missing = np.empty(n_found)
    loss = 0.0
    for k in range(n_found):
        wrong = count_wrong(gold, labels[k])
        cost = wrong if margin.hamming else min(wrong, 1)
        missing[k] = cost - (gold_score - path_scores[k]) if wrong > 0 else 0.0
        loss = max(loss, missing[k])
    if loss > 0.0:
        products = inner_products(rows, sample, gold, labels[:n_found], margin.fit_intercept)
        multipliers = hildreth(products, missing, margin.cap, margin.n_passes)
        weighted_difference(gold, labels, multipliers, difference, pairs)
    return count_wrong(gold, labels[0]), loss


@jit
def hildreth(products, missing, cap, n_passes):
    """Multipliers of the quadratic programme, one constraint after another (Hildreth, 1957).

    One pass is the update that settles each constraint once, in its turn.
    """
    n = missing.shape[0]
    multipliers = np.zeros(n)
    for _ in range(n_passes):
        largest = 0.0
        for k in range(n):
            if products[k, k] <= 0.0:
                continue
            gap = missing[k]
            for m in range(n):
                gap -= multipliers[m] * products[k, m]
            value = min(max(multipliers[k] + gap / products[k, k], 0.0), cap)
            largest = max(largest, abs(value - multipliers[k]))
            multipliers[k] = value
        if largest <= 1e-9 * cap:
            break
    return multipliers


@jit
def inner_products(rows, sample, gold, labels, fit_intercept):
    """Inner products of the feature differences between the gold and each other labelling."""
    n_found, length = labels.shape
    tokens = np.empty(length, np.int64)
    n_tokens = 0
    for t in range(length):
        for k in range(n_found):
            if labels[k, t] != gold[t]:
                tokens[n_tokens] = t
                n_tokens += 1
                break
    products = np.zeros((n_found, n_found))
    for i in range(n_tokens):
        for j in range(n_tokens):
            t, u = tokens[i], tokens[j]
            x = token_product(rows, sample[0] + t, sample[0] + u)
            if fit_intercept:
                x += 1.0
                x += t == u and t == 0 and sample[2] == 1
                x += t == u and t == length - 1 and sample[3] == 1
            if x == 0.0:
                continue
            for k in range(n_found):
                for m in range(n_found):
                    products[k, m] += x * label_product(gold, labels[k], labels[m], t, u)
    add_pair_products(gold, labels, tokens[:n_tokens], products)
    return products


@jit
def token_product(rows, t, u):
    """Inner product of the features of two tokens, whose indices are sorted."""
    unit = rows.data.shape[0] == 0
    i, j = rows.indptr[t], rows.indptr[u]
    product = 0.0
    while i < rows.indptr[t + 1] and j < rows.indptr[u + 1]:
        if rows.indices[i] == rows.indices[j]:
            product += 1.0 if unit else rows.data[i] * rows.data[j]
            i += 1
            j += 1
        elif rows.indices[i] < rows.indices[j]:
            i += 1
        else:
            j += 1
    return product


@jit
def label_product(gold, a, b, t, u):
    """Inner product of the label differences of one labelling at ``t`` and another at ``u``."""
    product = 0.0
    product += gold[t] == gold[u]
    product -= gold[t] == b[u]
    product -= a[t] == gold[u]
    product += a[t] == b[u]
    return product


@jit
def add_pair_products(gold, labels, tokens, products):
    """Add the inner products of the differences in label pairs."""
    n_found, length = labels.shape
    # The pairs that can differ: the one into a token that does, and the one out of it.
    places = np.empty(2 * tokens.shape[0], np.int64)
    n = 0
    for t in tokens:
        if t > 0 and (n == 0 or places[n - 1] != t):
            places[n] = t
            n += 1
        if t + 1 < length:
            places[n] = t + 1
            n += 1
    for p in places[:n]:
        for q in places[:n]:
            for k in range(n_found):
                for m in range(n_found):
                    a, b = labels[k], labels[m]
                    products[k, m] += (
                        same_pair(gold, gold, p, q)
                        - same_pair(gold, b, p, q)
                        - same_pair(a, gold, p, q)
                        + same_pair(a, b, p, q)
                    )


@jit
def same_pair(a, b, p, q):
    """One if labelling ``a`` has the same labels at ``p`` and before as ``b`` at ``q``, or zero."""
    return 1.0 if a[p] == b[q] and a[p - 1] == b[q - 1] else 0.0


@jit
def weighted_difference(gold, labels, multipliers, difference, pairs):
    """Fill in the differences between the gold and the other labellings, times multipliers."""
    for t in range(gold.shape[0]):
        for j in range(difference.shape[1]):
            difference[t, j] = 0.0
    for k in range(multipliers.shape[0]):
        a = multipliers[k]
        if a == 0.0:
            continue
        y = labels[k]
        for t in range(gold.shape[0]):
            if y[t] != gold[t]:
                difference[t, gold[t]] += a
                difference[t, y[t]] -= a
            if t > 0 and (y[t] != gold[t] or y[t - 1] != gold[t - 1]):
                pairs[gold[t - 1], gold[t]] += a
                pairs[y[t - 1], y[t]] -= a


@jit
def mira_epoch(rows, labels, samples, sample_weight, pace, margin, state):
    """One pass of MIRA (see `online_epoch`)."""
    return online_epoch(mira_rule, rows, labels, samples, sample_weight, pace, margin, state)
