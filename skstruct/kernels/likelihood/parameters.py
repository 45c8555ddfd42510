"""Layout of the weights of a CRF in its parameter vector.

By default only the (feature, label) combinations seen in training have a weight, and most
features occur with one or two labels. The weights of a feature, its *row*, are contiguous. A
*short* row lists its labels; a *full* row has a weight for every label and is read by vector
instructions. Every occurrence of a feature in the data is replaced by the start of its row, which
saves an indirection in scoring.
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import longest, value_of
from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.vector.lanes import (
    AHEAD,
    LANES,
    prefetch,
    scatter_block,
    scatter_unit_block,
    sum_shrunk_block,
)
from skstruct.kernels.vector.rows import sum_rows

# The highest bit marks the last label of a short row. So there are at most 32,767 labels, and more
# than 2e9 transitions.
LABEL_TYPE, TRANSITION_TYPE = np.uint16, np.uint32
MOST_LABELS = 1 << 15
# A row with weights for at least this share of the labels is stored full.
FULL_SHARE = 0.4
# Tokens with more features keep them in the order of the data.
MOST_SORTED = 64


class StateFeatures(NamedTuple):
    """Tokens of a training set, with positions in the parameter vector for features."""

    indptr: np.ndarray  # (n_rows + 1,) int64, the occurrences of each token
    places: np.ndarray  # (n_occurrences,) int32, start of the feature's row
    data: np.ndarray  # (n_occurrences,) values, or (0,) when all are one
    # (full_from,) uint16, or uint32 where they are many, the label of each weight of the short rows
    labels: np.ndarray
    full_from: int  # rows that start here or later are full

    def sets(self):
        """Features of each set."""
        return (self,)


class TransitionStateFeatures(NamedTuple):
    """Tokens with features of the transition into each; the labels of these are transitions."""

    indptr: np.ndarray
    places: np.ndarray
    data: np.ndarray
    labels: np.ndarray
    full_from: int
    transitions: StateFeatures  # first tokens have none

    def sets(self):
        """Features of tokens, and of transitions."""
        return StateFeatures(*self[:-1]), self.transitions


@lean_jit
def last_bit(labels):
    """Bit that marks the last label of a short row, and a number beyond all labels."""
    return np.int64(1) << (8 * labels.itemsize - 1)


@jit
def group_by_feature(rows, labels, n_features, none):
    """Sort the occurrences by feature.

    ``none`` is an empty array with the type of labels.

    Returns
    -------
    colptr : ndarray of shape (n_features + 1,)
    seen_labels : ndarray of shape (nnz,)
        ``seen_labels[colptr[f]:colptr[f + 1]]`` are the labels of the tokens that have ``f``.
    seen_values : ndarray of shape (nnz,)
        The absolute values of ``f`` there; empty when all are one.
    order : ndarray of shape (n_seen,), int32
        The features by first appearance: neighbours in the text become neighbours in memory.
    """
    colptr = np.zeros(n_features + 1, np.int64)
    order = np.empty(n_features, np.int32)
    n_seen = 0
    for f in rows.indices:
        if colptr[f + 1] == 0:
            order[n_seen] = f
            n_seen += 1
        colptr[f + 1] += 1
    for f in range(n_features):
        colptr[f + 1] += colptr[f]
    fill = np.empty(n_features, np.int64)
    for f in range(n_features):
        fill[f] = colptr[f]
    unit = rows.data.shape[0] == 0
    seen_labels = np.empty(rows.indices.shape[0], none.dtype)
    seen_values = np.empty(rows.data.shape[0])
    for t in range(rows.indptr.shape[0] - 1):
        for k in range(rows.indptr[t], rows.indptr[t + 1]):
            m = fill[rows.indices[k]]
            seen_labels[m] = labels[t]
            if not unit:
                seen_values[m] = abs(rows.data[k])
            fill[rows.indices[k]] += 1
    return colptr, seen_labels, seen_values, order[:n_seen]


@jit
def row_labels(f, colptr, seen_labels, seen_values, min_freq, every_label, freq, seen, out):
    """Write the labels that feature ``f`` has weights for, in order; return their number."""
    n_labels = freq.shape[0]
    for y in range(n_labels):
        freq[y] = 0.0
        seen[y] = every_label
    for m in range(colptr[f], colptr[f + 1]):
        freq[seen_labels[m]] += value_of(seen_values, m)
        seen[seen_labels[m]] = True
    n = 0
    for y in range(n_labels):
        if seen[y] and freq[y] >= min_freq:
            out[n] = y
            n += 1
    return n


@jit
def place_rows(colptr, seen_labels, seen_values, order, n_labels, min_freq, every_label):
    """Assign each feature's row a place in the parameter vector.

    Returns
    -------
    place : ndarray of shape (n_features,), int32
        Start of the row of each feature, -1 if it has no weight. Those that are too large for the
        type are wrong.
    width : ndarray of shape (n_features,), int32
        Length of each row.
    short_labels : ndarray of shape (full_from,)
        Labels of the short rows, which come first.
    pinned : ndarray, int32
        Positions in full rows that are not weights of the model.
    n_places : int
        Total length of all rows.
    """
    n_features = colptr.shape[0] - 1
    freq = np.empty(n_labels)
    seen = np.empty(n_labels, np.bool_)
    labels = np.empty(n_labels, np.int64)
    place = np.full(n_features, -1, np.int32)
    width = np.zeros(n_features, np.int32)
    short, n_pinned = 0, 0
    for f in order:
        n = row_labels(
            f, colptr, seen_labels, seen_values, min_freq, every_label, freq, seen, labels
        )
        if n >= FULL_SHARE * n_labels:
            n_pinned += n_labels - n
        else:
            short += n
    short_labels = np.empty(short, seen_labels.dtype)
    pinned, last = np.empty(n_pinned, np.int32), last_bit(short_labels)
    at_short, at_full, at_pinned = 0, short, 0
    for f in order:
        n = row_labels(
            f, colptr, seen_labels, seen_values, min_freq, every_label, freq, seen, labels
        )
        if n >= FULL_SHARE * n_labels:
            place[f], width[f] = at_full, n_labels
            m = 0
            for y in range(n_labels):
                if m < n and labels[m] == y:
                    m += 1
                else:
                    pinned[at_pinned] = at_full + y
                    at_pinned += 1
            at_full += n_labels
        elif n > 0:
            place[f], width[f] = at_short, n
            for m in range(n):
                short_labels[at_short + m] = labels[m] | (last if m == n - 1 else 0)
            at_short += n
    return place, width, short_labels, pinned, at_full


@jit
def row_pointers(rows, place, width):
    """Replace features by the starts of their rows; drop features without a weight.

    The features of a token are sorted by decreasing width, which makes the ends of rows predictable
    for the processor.
    """
    unit = rows.data.shape[0] == 0
    n_kept = 0
    for f in rows.indices:
        n_kept += place[f] >= 0
    indptr = np.zeros(rows.indptr.shape[0], np.int64)
    places = np.empty(n_kept, np.int32)
    widths = np.empty(longest(rows.indptr, 0, indptr.shape[0] - 1), np.int32)
    data = np.empty(0 if unit else n_kept)
    begin = 0
    for t in range(indptr.shape[0] - 1):
        n = 0
        for k in range(rows.indptr[t], rows.indptr[t + 1]):
            f = rows.indices[k]
            if place[f] < 0:
                continue
            m = n
            while m > 0 and n <= MOST_SORTED and widths[m - 1] < width[f]:
                widths[m] = widths[m - 1]
                places[begin + m] = places[begin + m - 1]
                if not unit:
                    data[begin + m] = data[begin + m - 1]
                m -= 1
            widths[m] = width[f]
            places[begin + m] = place[f]
            if not unit:
                data[begin + m] = rows.data[k]
            n += 1
        begin += n
        indptr[t + 1] = begin
    return indptr, places, data


@lean_jit
def copy_rows(theta, place, short_labels, weights, pack):
    """Copy a dense ``weights`` (n_features, n_labels) into the parameter vector, or back."""
    n_labels, last = weights.shape[1], last_bit(short_labels)
    for f in range(place.shape[0]):
        p, label = place[f], -1
        full, finished = p >= short_labels.shape[0], p < 0
        while not finished:
            if full:
                label += 1
                finished = label == n_labels - 1
            else:
                code = np.int64(short_labels[p])
                label, finished = code & (last - 1), code >= last
            if pack:
                theta[p] = weights[f, label]
            else:
                weights[f, label] = theta[p]
            p += 1


@lean_jit
def end_of_full_rows(features, first, last):
    """First of some occurrences whose row is short."""
    k = first
    while k < last and features.places[k] >= features.full_from:
        k += 1
    return k


@jit
def state_scores(features, theta, n_labels, first, last, out):
    """Write the scores of the rows ``first:last``, without biases, into ``out``."""
    unit = features.data.shape[0] == 0
    places, data = features.places, features.data
    zero, final = np.zeros(n_labels), last_bit(features.labels)
    end = features.indptr[last]
    for t in range(first, last):
        score = out[t - first]
        a, b = features.indptr[t], features.indptr[t + 1]
        for k in range(a + AHEAD, min(b + AHEAD, end)):
            prefetch(theta, places[k])
        if n_labels < LANES:
            for j in range(n_labels):
                score[j] = 0.0
        else:
            c = end_of_full_rows(features, a, b)
            if unit:
                sum_rows(zero, theta, places, None, a, c, score)
            else:
                sum_rows(zero, theta, places, data, a, c, score)
            a = c
        for k in range(a, b):
            x = value_of(data, k)
            p = places[k]
            if p >= features.full_from:
                for j in range(n_labels):
                    score[j] += x * theta[p + j]
            else:
                code = 0
                while code < final:
                    code = np.int64(features.labels[p])
                    score[code & (final - 1)] += x * theta[p]
                    p += 1


@lean_jit
def shrunk_state_scores(features, vector, threshold, n_labels, first, last, out):
    """Do the same with the weights that are the entries of a vector, shrunk."""
    unit = features.data.shape[0] == 0
    places, data = features.places, features.data
    final, end = last_bit(features.labels), features.indptr[last]
    for t in range(first, last):
        score = out[t - first]
        a, b = features.indptr[t], features.indptr[t + 1]
        for k in range(a + AHEAD, min(b + AHEAD, end)):
            prefetch(vector, places[k])
        if n_labels < LANES:
            for j in range(n_labels):
                score[j] = 0.0
        else:
            c = end_of_full_rows(features, a, b)
            for j in range(0, n_labels, LANES):
                at = min(j, n_labels - LANES)
                if unit:
                    sum_shrunk_block(vector, places, None, a, c, at, threshold, score)
                else:
                    sum_shrunk_block(vector, places, data, a, c, at, threshold, score)
            a = c
        for k in range(a, b):
            x = value_of(data, k)
            p = places[k]
            if p >= features.full_from:
                for j in range(n_labels):
                    score[j] += x * shrink(vector[p + j], threshold)
            else:
                code = 0
                while code < final:
                    code = np.int64(features.labels[p])
                    score[code & (final - 1)] += x * shrink(vector[p], threshold)
                    p += 1


@lean_jit
def add_state_gradient(features, difference, n_labels, first, last, gradient):
    """Add the ``difference`` of each token to the rows of its features."""
    unit, final = features.data.shape[0] == 0, last_bit(features.labels)
    places, data = features.places, features.data
    for t in range(first, last):
        d = difference[t - first]
        a, b = features.indptr[t], features.indptr[t + 1]
        if n_labels >= LANES:
            c = end_of_full_rows(features, a, b)
            for j in range(0, n_labels, LANES):
                at = min(j, n_labels - LANES)
                if unit:
                    scatter_unit_block(d, places, a, c, at, j - at, gradient)
                else:
                    scatter_block(d, data, places, a, c, at, j - at, gradient)
            a = c
        for k in range(a, b):
            x = value_of(data, k)
            p = places[k]
            if p >= features.full_from:
                for j in range(n_labels):
                    gradient[p + j] += x * d[j]
            else:
                code = 0
                while code < final:
                    code = np.int64(features.labels[p])
                    gradient[p] += x * d[code & (final - 1)]
                    p += 1


@lean_jit
def squared_feature_norm(features, t):
    """Squared norm of the features of a token."""
    a, b = features.indptr[t], features.indptr[t + 1]
    if features.data.shape[0] == 0:
        return np.float64(b - a)
    total = 0.0
    for k in range(a, b):
        total += features.data[k] * features.data[k]
    return total


@lean_jit
def shrink(value, threshold):
    """Move a number towards zero; minus infinity stays."""
    return value - min(max(value, -threshold), threshold)


@lean_jit
def shrink_states(features, n_labels, first, last, vector, threshold, out):
    """Shrink the rows of all features of some tokens."""
    final = last_bit(features.labels)
    for k in range(features.indptr[first], features.indptr[last]):
        p = features.places[k]
        if p >= features.full_from:
            for j in range(p, p + n_labels):
                out[j] = shrink(vector[j], threshold)
        else:
            code = 0
            while code < final:
                code = np.int64(features.labels[p])
                out[p] = shrink(vector[p], threshold)
                p += 1
