"""Inner products of the feature differences between labellings of one sample.

At a token where a labelling differs from the gold one, it has the features of the token with its
own label in place of the gold label. The same goes for transitions and triples. All these are
*codes* here: an array with a row for each place that differs, the gold code first and then that of
each labelling.
"""

import numpy as np

from skstruct.chain.per_token import PerToken
from skstruct.chain.protocol import creating, width
from skstruct.chain.scores import value_of
from skstruct.compiled.jit import (
    inline_jit,
    inline_lean_jit,
    inner_jit,
    inner_lean_jit,
    jit,
    lean_jit,
)
from skstruct.compiled.rows import dot
from skstruct.learning.epoch import n_before

# Up to so many places, all are compared with each other, which is fast but quadratic.
FEW = 64


@jit
def inner_products(edges, rows, sample, gold, labels, fit_intercept, slots):
    """Inner products of the differences between the gold and each other labelling.

    Parameters
    ----------
    edges, rows, sample
        As passed to a rule (see `online_epoch`).
    gold : ndarray of shape (length,)
        Gold labels.
    labels : ndarray of shape (n_found, length)
        Other labellings.
    fit_intercept : bool
        Labels, first tokens and last tokens have biases.
    slots : ndarray of integers
        Workspace, filled with -1: a slot for every feature, feature of transitions, transition or
        triple of labels.

    Returns
    -------
    products : ndarray of shape (n_found, n_found)
    """
    length, n_found, n_labels = gold.shape[0], labels.shape[0], width(edges, 0)
    products = np.zeros((n_found, n_found))
    places = np.empty(length, np.int64)
    codes = np.empty((length, 1 + n_found), np.int64)
    n_codes = min(codes.size, n_labels ** (1 + n_before(edges)))
    gathered = np.empty((n_codes, n_found))
    n = write_codes(gold, labels, 0, n_labels, places, codes)
    add_products(rows, sample[0], places[:n], codes[:n], slots, gathered, products)
    ones = rows.data[:0]
    if fit_intercept and n > 0:
        add_shared(codes[:n], ones, slots, gathered, products)
        if sample[2] and places[0] == 0:
            add_shared(codes[:1], ones, slots, gathered, products)
        if sample[3] and places[n - 1] == length - 1:
            add_shared(codes[n - 1 : n], ones, slots, gathered, products)
    for back in range(1, 1 + n_before(edges)):
        n = write_codes(gold, labels, back, n_labels, places, codes)
        add_shared(codes[:n], ones, slots, gathered, products)
        work = codes[:n], slots, gathered, products
        add_transition_products(edges, rows, sample[0], places[:n], *work)
    return products


@creating
def add_transition_products(edges, rows, offset, places, codes, slots, gathered, products):
    """Add the products of the features of the transitions into some places, if they have any."""


@add_transition_products.of(PerToken)
def add_token_products(edges, rows, offset, places, codes, slots, gathered, products):
    """Add the inner products of transitions' features, as of tokens'."""
    add_products(rows.transitions, offset, places, codes, slots, gathered, products)


@inner_lean_jit
def write_codes(gold, labels, back, n_labels, places, codes):
    """Write the tokens with a code that may be wrong, and their codes; return their number.

    A code stands for the labels of a token and of the ``back`` tokens before it: a label, a
    transition or a triple.
    """
    n = 0
    for t in range(back, gold.shape[0]):
        found = False
        for s in range(t - back, t + 1):
            found |= differs(gold, labels, s)
        if found:
            places[n], codes[n, 0] = t, code_at(gold, t, back, n_labels)
            for k in range(labels.shape[0]):
                codes[n, k + 1] = code_at(labels[k], t, back, n_labels)
            n += 1
    return n


@inline_lean_jit
def differs(gold, labels, t):
    """Return True if some labelling is wrong at a token."""
    found = False
    for k in range(labels.shape[0]):
        found |= labels[k, t] != gold[t]
    return found


@inline_lean_jit
def code_at(labels, t, back, n_labels):
    """Code of the labels of a token and of those before it."""
    code = np.int64(0)
    for s in range(t - back, t + 1):
        code = code * n_labels + labels[s]
    return code


@inner_jit
def add_products(rows, offset, places, codes, slots, gathered, products):
    """Add the products of the features at some places."""
    n = places.shape[0]
    if n > FEW:
        first, place, value = group_features(rows, offset, places, slots)
        for s in range(first.shape[0] - 1):
            group = slice(first[s], first[s + 1])
            add_shared(codes[place[group]], value[group], slots, gathered, products)
        return
    n_features = count_features(rows, offset, places)
    gram, links = np.zeros((n, n)), np.empty((2, n_features), np.int32)
    fill_gram(rows, offset, places, slots, links, np.empty(n_features), gram)
    add_grams(gram, codes, products)


@inner_jit
def add_vector_products(edges, vectors, gold, labels, slots, products):
    """Add the products of the vectors of a sample, of shape (>= length, n_columns).

    ``edges``, ``gold``, ``labels`` and ``slots`` are as of `inner_products`.
    """
    length, n_found = gold.shape[0], labels.shape[0]
    places, codes = np.empty(length, np.int64), np.empty((length, 1 + n_found), np.int64)
    n = write_codes(gold, labels, 0, width(edges, 0), places, codes)
    if n <= FEW:
        gram = np.empty((n, n))
        for i in range(n):
            for j in range(i + 1):
                gram[i, j] = dot(vectors[places[i]], vectors[places[j]])
        add_grams(gram, codes[:n], products)
        return
    gathered, value = np.empty((codes[:n].size, n_found)), np.empty(n)
    for f in range(vectors.shape[1]):
        for i in range(n):
            value[i] = vectors[places[i], f]
        add_shared(codes[:n], value, slots, gathered, products)


@inner_lean_jit
def count_features(rows, offset, places):
    """Number of features at some places."""
    n = 0
    for t in places:
        n += rows.indptr[offset + t + 1] - rows.indptr[offset + t]
    return n


@inner_lean_jit
def add_grams(gram, codes, products):
    """Add the products of the differences at each place with those at each other."""
    for i in range(gram.shape[0]):
        for j in range(i + 1):
            if gram[i, j] != 0.0:
                add_contrasts(codes[i], codes[j], gram[i, j], i != j, products)


@inline_lean_jit
def add_contrasts(left, right, weight, both, products):
    """Add the products of the differences at one place with those at another, times a weight.

    If `both`, add the transpose, too.
    """
    for k in range(products.shape[0]):
        if left[k + 1] == left[0]:
            continue
        for m in range(products.shape[0]):
            if right[m + 1] == right[0]:
                continue
            same = int(left[0] == right[0]) + int(left[k + 1] == right[m + 1])
            other = int(left[0] == right[m + 1]) + int(left[k + 1] == right[0])
            products[k, m] += weight * (same - other)
            if both:
                products[m, k] += weight * (same - other)


@inner_lean_jit
def fill_gram(rows, offset, places, slots, links, value, gram):
    """Add the inner products of the features of each place with those of each other.

    The occurrences of a feature form a linked list, latest first.
    """
    place, before = links[0], links[1]
    n = 0
    for i in range(places.shape[0]):
        for k in range(rows.indptr[offset + places[i]], rows.indptr[offset + places[i] + 1]):
            place[n], value[n] = i, value_of(rows.data, k)
            gram[i, i] += value[n] * value[n]
            m = before[n] = slots[rows.indices[k]]
            while m >= 0:
                gram[i, place[m]] += value[n] * value[m]
                gram[place[m], i] += value[n] * value[m]
                m = before[m]
            slots[rows.indices[k]] = n
            n += 1
    forget(rows, offset, places, slots)


@lean_jit
def forget(rows, offset, places, slots):
    """Reset the slots of the features at some places."""
    for t in places:
        for k in range(rows.indptr[offset + t], rows.indptr[offset + t + 1]):
            slots[rows.indices[k]] = -1


@inline_jit
def group_features(rows, offset, places, slots):
    """Sort the features at some places into groups of the same feature.

    Returns
    -------
    first : ndarray of shape (n_groups + 1,)
        Start of each group.
    place : ndarray
        Place of each occurrence, as a position in ``places``.
    value : ndarray
        Its value.
    """
    n = count_features(rows, offset, places)
    first = np.zeros(n + 2, np.int64)
    n_groups = 0
    for t in places:
        for k in range(rows.indptr[offset + t], rows.indptr[offset + t + 1]):
            n_groups = claim_slot(rows.indices[k], slots, n_groups)
            first[slots[rows.indices[k]] + 2] += 1
    for s in range(n_groups):
        first[s + 2] += first[s + 1]
    place, value = np.empty(n, np.int64), np.empty(n)
    # Filling a group moves first[s + 1] from its start to its end, the start of the next group.
    for i in range(places.shape[0]):
        for k in range(rows.indptr[offset + places[i]], rows.indptr[offset + places[i] + 1]):
            m = first[slots[rows.indices[k]] + 1]
            place[m], value[m] = i, value_of(rows.data, k)
            first[slots[rows.indices[k]] + 1] += 1
    forget(rows, offset, places, slots)
    return first[: n_groups + 1], place, value


@inner_lean_jit
def add_shared(codes, values, slots, gathered, products):
    """Add the products of one feature that all places share, with its values (all one if empty).

    ``gathered`` is workspace.
    """
    n_found = products.shape[0]
    n_codes = 0
    for p in range(codes.shape[0]):
        for k in range(n_found + 1):
            n_codes = claim_slot(codes[p, k], slots, n_codes)
    for j in range(n_codes):
        for k in range(n_found):
            gathered[j, k] = 0.0
    for p in range(codes.shape[0]):
        x = value_of(values, p)
        for k in range(n_found):
            gathered[slots[codes[p, 0]], k] += x
            gathered[slots[codes[p, k + 1]], k] -= x
    for p in range(codes.shape[0]):
        for k in range(n_found + 1):
            slots[codes[p, k]] = -1
    for j in range(n_codes):
        for k in range(n_found):
            for m in range(n_found):
                products[k, m] += gathered[j, k] * gathered[j, m]


@inner_lean_jit
def claim_slot(key, slots, n):
    """Assign the next slot to a key that has none; return the number of slots in use."""
    if slots[key] < 0:
        slots[key] = n
        n += 1
    return n
