"""The rule of MIRA, the margin infused relaxed algorithm."""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.nbest import n_possible
from skstruct.kernels.online import add_contrast, clear_difference, count_wrong, online_epoch
from skstruct.kernels.scores import path_score
from skstruct.kernels.search import Search, search_nbest

MAX_PASSES = 200


class Margin(NamedTuple):
    """What the labellings found are to keep away from the gold one by."""

    search: Search
    hamming: bool  # the number of wrong tokens; or one, whatever their number
    cap: float  # largest multiplier of a labelling
    n_passes: int  # over the constraints
    fit_intercept: bool
    # Workspace of integers, -1 between samples: a place for every feature, or every label pair.
    slots: np.ndarray  # (max(n_features, n_edge_features, n_labels ** 2),)


@jit
def mira_rule(rows, sample, scores, transition, gold, margin, difference, pairs):
    """Least change of the weights after which every labelling found keeps its margin.

    The loss is by how much the worst of them fails to.
    """
    length = gold.shape[0]
    n_best = n_possible(length, scores.shape[1], margin.search.n_best)
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
        if not missing[k] <= loss:
            loss = missing[k]
        if np.isnan(loss):
            break
    if loss > 0.0:
        found, n_labels = labels[:n_found], difference.shape[1]
        products = inner_products(rows, sample, gold, found, n_labels, margin)
        add_edge_products(rows, sample, gold, found, n_labels, margin.slots, products, pairs)
        multipliers = hildreth(products, missing, margin.cap, margin.n_passes)
        clear_difference(length, difference)
        for k in range(n_found):
            if multipliers[k] != 0.0:
                add_contrast(gold, labels[k], multipliers[k], difference, pairs)
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
def inner_products(rows, sample, gold, labels, n_labels, margin):
    """Inner products of the feature differences between the gold and each other labelling.

    Differences are gathered feature by feature and pair by pair, so that the work grows with the
    number of tokens that differ and not with its square.
    """
    n_found, length = labels.shape
    tokens = differing_tokens(gold, labels)
    n_tokens = tokens.shape[0]
    products = np.zeros((n_found, n_found))
    alone = np.zeros(n_tokens)
    for i in range(n_tokens if margin.fit_intercept else 0):
        alone[i] += tokens[i] == 0 and sample[2] == 1
        alone[i] += tokens[i] == length - 1 and sample[3] == 1
    first, place, value = group_features(rows, sample[0], tokens, margin.slots)
    gathered = np.zeros((n_labels, n_found))
    touched = np.zeros(n_labels, np.bool_)
    for s in range(first.shape[0] - 1):
        a, b = first[s], first[s + 1]
        if b - a == 1:
            alone[place[a]] += value[a] * value[a]
        else:
            gather(gold, labels, tokens[place[a:b]], value[a:b], gathered, touched)
            add_products(gathered, touched, products)
    if margin.fit_intercept:
        gather(gold, labels, tokens, np.ones(n_tokens), gathered, touched)
        add_products(gathered, touched, products)
    add_alone(gold, labels, tokens, alone, products)
    places = differing_pairs(tokens, length)
    values = np.ones(places.shape[0])
    add_pair_products(gold, labels, places, values, n_labels, margin.slots, products)
    return products


@jit
def differing_tokens(gold, labels):
    """The tokens that some labelling gives another label than the gold one."""
    tokens = np.empty(gold.shape[0], np.int64)
    n = 0
    for t in range(gold.shape[0]):
        for k in range(labels.shape[0]):
            if labels[k, t] != gold[t]:
                tokens[n] = t
                n += 1
                break
    return tokens[:n]


@jit
def group_features(rows, offset, tokens, slots):
    """Sort the features of some tokens into groups of the same feature.

    Returns
    -------
    first : ndarray of shape (n_groups + 1,)
        Where each group begins.
    place : ndarray
        For each occurrence, which of the tokens has it.
    value : ndarray
        Its value.
    """
    n = 0
    for t in tokens:
        n += rows.indptr[offset + t + 1] - rows.indptr[offset + t]
    first = np.zeros(n + 2, np.int64)
    n_groups = 0
    for t in tokens:
        for k in range(rows.indptr[offset + t], rows.indptr[offset + t + 1]):
            f = rows.indices[k]
            if slots[f] < 0:
                slots[f] = n_groups
                n_groups += 1
            first[slots[f] + 2] += 1
    for s in range(n_groups):
        first[s + 2] += first[s + 1]
    place = np.empty(n, np.int64)
    value = np.empty(n)
    unit = rows.data.shape[0] == 0
    # What is counted up here to the end of a group is the beginning of the next one then.
    for i in range(tokens.shape[0]):
        t = offset + tokens[i]
        for k in range(rows.indptr[t], rows.indptr[t + 1]):
            m = first[slots[rows.indices[k]] + 1]
            place[m] = i
            value[m] = 1.0 if unit else rows.data[k]
            first[slots[rows.indices[k]] + 1] += 1
    for t in tokens:
        for k in range(rows.indptr[offset + t], rows.indptr[offset + t + 1]):
            slots[rows.indices[k]] = -1
    return first[: n_groups + 1], place, value


@jit
def gather(gold, labels, tokens, values, gathered, touched):
    """Add up the differences that one feature makes, for every label and labelling."""
    for i in range(tokens.shape[0]):
        t, x = tokens[i], values[i]
        touched[gold[t]] = True
        for k in range(labels.shape[0]):
            if labels[k, t] != gold[t]:
                touched[labels[k, t]] = True
                gathered[gold[t], k] += x
                gathered[labels[k, t], k] -= x


@jit
def add_products(gathered, touched, products):
    """Add the products of what was gathered, and empty it again."""
    n_found = products.shape[0]
    for j in range(gathered.shape[0]):
        if not touched[j]:
            continue
        touched[j] = False
        for k in range(n_found):
            for m in range(n_found):
                products[k, m] += gathered[j, k] * gathered[j, m]
        for k in range(n_found):
            gathered[j, k] = 0.0


@jit
def add_alone(gold, labels, tokens, squares, products):
    """Add the products of features that a single token has, whose squares are summed already."""
    n_found = products.shape[0]
    for i in range(tokens.shape[0]):
        t = tokens[i]
        for k in range(n_found):
            if labels[k, t] == gold[t]:
                continue
            for m in range(n_found):
                if labels[m, t] != gold[t]:
                    products[k, m] += squares[i] * (1.0 + (labels[k, t] == labels[m, t]))


@jit
def add_edge_products(rows, sample, gold, labels, n_labels, slots, products, pairs):
    """Add the inner products of the differences in label pairs with features, if these have any.

    Where that is not so, ``pairs`` is one matrix for all tokens.
    """
    if pairs.ndim == 3:
        tokens = differing_tokens(gold, labels)
        places = differing_pairs(tokens, gold.shape[0])
        first, place, value = group_features(rows.edges, sample[0], places, slots)
        for s in range(first.shape[0] - 1):
            group = slice(first[s], first[s + 1])
            add_pair_products(
                gold, labels, places[place[group]], value[group], n_labels, slots, products
            )


@jit
def differing_pairs(tokens, length):
    """The tokens into which pairs can differ: those that differ themselves, and the next ones."""
    places = np.empty(2 * tokens.shape[0], np.int64)
    n = 0
    for t in tokens:
        if t > 0 and (n == 0 or places[n - 1] != t):
            places[n] = t
            n += 1
        if t + 1 < length:
            places[n] = t + 1
            n += 1
    return places[:n]


@jit
def add_pair_products(gold, labels, places, values, n_labels, slots, products):
    """Add the inner products of the differences in label pairs, which count for some value each."""
    n_found = labels.shape[0]
    n_pairs = 0
    for p in places:
        n_pairs = claim_slot(gold[p - 1] * n_labels + gold[p], slots, n_pairs)
        for k in range(n_found):
            n_pairs = claim_slot(labels[k, p - 1] * n_labels + labels[k, p], slots, n_pairs)
    gathered = np.zeros((n_pairs, n_found))
    for i in range(places.shape[0]):
        p, x = places[i], values[i]
        right = slots[gold[p - 1] * n_labels + gold[p]]
        for k in range(n_found):
            gathered[right, k] += x
            gathered[slots[labels[k, p - 1] * n_labels + labels[k, p]], k] -= x
    for p in places:
        slots[gold[p - 1] * n_labels + gold[p]] = -1
        for k in range(n_found):
            slots[labels[k, p - 1] * n_labels + labels[k, p]] = -1
    add_products(gathered, np.ones(n_pairs, np.bool_), products)


@jit
def claim_slot(key, slots, n):
    """Give the key the next slot unless it has one; return how many are taken."""
    if slots[key] < 0:
        slots[key] = n
        n += 1
    return n


@jit
def mira_epoch(rows, labels, samples, sample_weight, pace, margin, state):
    """One pass of MIRA (see `online_epoch`)."""
    return online_epoch(mira_rule, rows, labels, samples, sample_weight, pace, margin, state)
