"""Rows of the weights of features: which exist, where each stands, and sums over them.

By default only the (feature, label) combinations seen in training have a weight, and most
features occur with one or two labels. The weights of a feature, its *row*, are contiguous in the
parameter vector. A *short* row lists its labels; a *full* row has a weight for every label and is
read by vector instructions. Every occurrence of a feature in the data is replaced by the start of
its row, which saves an indirection in scoring.

Indices of the inner loops are unsigned: numba checks whether a signed one counts from the end,
which doubles the time that short rows take.
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import Rows, value_of
from skstruct.compiled.jit import inner_lean_jit, lean_jit
from skstruct.compiled.lanes import AHEAD, LANES, prefetch, scatter_wide_row, sum_wide_rows
from skstruct.input.training_set import take_rows
from skstruct.matrices import ranges, read_only, to_offsets

# The highest bit marks the last label of a short row. So there are at most 32,767 labels, and more
# than 2e9 transitions.
LABEL_TYPE, TRANSITION_TYPE = np.uint16, np.uint32
MOST_LABELS = 1 << 15
# A row with weights for at least this share of the labels is stored full.
FULL_SHARE = 0.4
# Tokens with more features keep them in the order of the data.
MOST_SORTED = 64


class FeaturePlaces(NamedTuple):
    """Tokens of a training set, with positions in the parameter vector for features."""

    indptr: np.ndarray  # (n_rows + 1,) int64, the occurrences of each token
    places: np.ndarray  # (n_occurrences,) int32, start of the feature's row
    data: np.ndarray  # (n_occurrences,) values, or (0,) when all are one
    # (full_from,) uint16, or uint32 where they are many, the label of each weight of the short rows
    labels: np.ndarray
    full_from: int  # rows that start here or later are full

    def sets(self):
        return (self,)


class TransitionFeaturePlaces(NamedTuple):
    """Tokens with features of the transition into each; the labels of these are transitions."""

    indptr: np.ndarray
    places: np.ndarray
    data: np.ndarray
    labels: np.ndarray
    full_from: int
    transitions: FeaturePlaces  # first tokens have none

    def sets(self):
        return FeaturePlaces(*self[:-1]), self.transitions


class RowLayout(NamedTuple):
    """Places of the weights of features in a parameter vector.

    Attributes
    ----------
    place : ndarray of shape (n_features,), int32
        Start of the row of each feature, -1 if it has no weight.
    width : ndarray of shape (n_features,), int32
        Length of each row.
    labels : ndarray of shape (full_from,)
        Labels of the short rows, which come first.
    pinned : ndarray, int32
        Positions in full rows that are not weights of the model.
    n_places : int
        Total length of all rows.
    """

    place: np.ndarray
    width: np.ndarray
    labels: np.ndarray
    pinned: np.ndarray
    n_places: int


class Observed(NamedTuple):
    """Labels that each feature occurs with.

    Attributes
    ----------
    indptr : ndarray of shape (n_features + 1,), int64
        First entry of each feature.
    labels : ndarray of shape (n_entries,)
        Labels, a feature's in any order and any number of times.
    values : ndarray of shape (n_entries,)
        What each entry adds to the frequency of the feature and the label; empty where all are one.
    order : ndarray of shape (n_seen,), int32
        Features that occur, by first appearance.
    """

    indptr: np.ndarray
    labels: np.ndarray
    values: np.ndarray
    order: np.ndarray


def observe(rows, labels, weight, n_features, n_labels):
    """Collect the labels that features occur with.

    Parameters
    ----------
    rows : Rows
        The tokens.
    labels : ndarray of shape (n_rows,)
        Their labels, negative where unknown. Tokens without a label are not counted, but their
        features occur.
    weight : ndarray of shape (n_rows,) or None
        Weight of each token; None for one.
    n_features, n_labels : int
        Size of the model.

    Returns
    -------
    observed : Observed
    """
    counted = rows if weight is None else _weighted_rows(rows, weight)
    dtype = LABEL_TYPE if n_labels <= MOST_LABELS else TRANSITION_TYPE
    observed = group_by_feature(*_labelled(counted, labels), n_features, dtype)
    if np.any(labels < 0):
        # Features that no labelled token has may still have weights for all labels.
        every = group_by_feature(rows, np.zeros_like(labels), n_features, dtype)
        observed = observed._replace(order=every.order)
    return observed


def _labelled(rows, labels):
    kept = np.flatnonzero(labels >= 0)
    return (rows, labels) if len(kept) == len(labels) else (take_rows(rows, kept), labels[kept])


def _weighted_rows(rows, weight):
    """Multiply the values of each row by the weight of its token."""
    if np.all(weight == 1):
        return rows
    weight = np.repeat(weight, np.diff(rows.indptr))
    data = weight * rows.data if rows.data.size else weight
    return read_only(Rows(rows.indptr, rows.indices, data))


def group_by_feature(rows, labels, n_features, dtype):
    """Sort the occurrences of features, with the labels of their tokens, by feature: `Observed`."""
    # By first appearance, neighbours in the text become neighbours in memory.
    colptr, order = np.zeros(n_features + 1, np.int64), np.empty(n_features, np.int32)
    seen_labels, seen_values = np.empty(len(rows.indices), dtype), np.empty(len(rows.data))
    n_seen = sort_occurrences(rows, labels, colptr, seen_labels, seen_values, order)
    return Observed(colptr, seen_labels, seen_values, order[:n_seen])


@lean_jit
def sort_occurrences(rows, labels, colptr, seen_labels, seen_values, order):
    """Write the fields of `Observed`; return the number of features that occur."""
    n_features, n_seen, end = order.shape[0], 0, 0
    for f in rows.indices:
        if colptr[f] == 0:
            order[n_seen] = f
            n_seen += 1
        colptr[f] += 1
    for f in range(n_features):
        count = colptr[f]
        colptr[f] = end
        end += count
    for t in range(rows.indptr.shape[0] - 1):
        for k in range(rows.indptr[t], rows.indptr[t + 1]):
            m = colptr[rows.indices[k]]
            colptr[rows.indices[k]] = m + 1
            seen_labels[m] = labels[t]
            if seen_values.shape[0] > 0:
                seen_values[m] = abs(rows.data[k])
    # Each feature's pointer is now where the next one begins.
    for f in range(n_features, 0, -1):
        colptr[f] = colptr[f - 1]
    colptr[0] = 0
    return n_seen


def lay_out(observed, n_labels, min_freq, every_label):
    """Lay out the weights of features in the parameter vector.

    Parameters
    ----------
    observed : Observed
        Labels that features occur with.
    n_labels : int
        Number of labels.
    min_freq : float
        Least frequency of a feature and a label with a weight.
    every_label : bool
        Give a feature weights for labels that it does not occur with, too.

    Returns
    -------
    layout : RowLayout

    Raises
    ------
    ValueError
        If there are more weights than the kernels can count.
    """
    colptr, seen_labels, seen_values, order = observed
    kept, width = np.empty_like(seen_labels), np.zeros(len(colptr) - 1, np.int32)
    if every_label and min_freq <= 0:
        width[order] = n_labels
    else:
        frequency = np.full(n_labels, -1.0)
        select_labels(colptr, seen_labels, seen_values, float(min_freq), frequency, kept, width)
    is_full = width[order] >= FULL_SHARE * n_labels
    short, full = order[~is_full & (width[order] > 0)], order[is_full]
    of_short, starts = ranges(colptr[short], width[short])
    n_short, n_full = int(starts[-1]), len(full) * n_labels
    if n_short + n_full > np.iinfo(np.int32).max:
        raise ValueError(
            f"{n_short + n_full} weights are more than the 2,147,483,647 that are supported; "
            "use fewer features or a larger min_freq."
        )
    labels = kept[of_short]
    labels[starts[1:] - 1] += np.iinfo(labels.dtype).max // 2 + 1
    place = np.full(len(width), -1, np.int32)
    place[short], place[full] = starts[:-1], np.arange(n_short, n_short + n_full, n_labels)
    partly = full[width[full] < n_labels]
    of_partly, _ = ranges(colptr[partly], width[partly])
    is_weight = np.zeros((len(partly), n_labels), bool)
    is_weight[np.repeat(np.arange(len(partly)), width[partly]), kept[of_partly]] = True
    row, label = np.nonzero(~is_weight)
    pinned = place[partly][row] + label.astype(np.int32)
    width[full] = n_labels
    return RowLayout(place, width, labels, pinned, n_short + n_full)


def with_every_label(observed, columns, n_labels):
    """Observed features, and columns of blocks, which occur with every label often enough.

    Parameters
    ----------
    observed : Observed
        Of other features, with one entry for a feature and a label.
    columns : ndarray of int32
        Columns of blocks.
    n_labels : int
        Number of labels.

    Returns
    -------
    observed : Observed
    """
    counts, before = np.diff(observed.indptr), np.repeat(observed.indptr[columns], n_labels)
    counts[columns] = n_labels
    labels = np.insert(observed.labels, before, np.tile(np.arange(n_labels), len(columns)))
    values = np.insert(observed.values, before, np.inf)
    order = np.concatenate([observed.order, columns])
    return Observed(to_offsets(counts), labels, values, order)


def with_blocks(layout, placed, n_labels):
    """Add the columns of blocks to a layout, with a weight for every label.

    Parameters
    ----------
    layout : RowLayout
        Of all other features, whose places of the columns of blocks are changed.
    placed : tuple of Placed
        The blocks.
    n_labels : int
        Number of labels.

    Returns
    -------
    layout : RowLayout
    where : list of slice
        Places of the weights of each block, those of a column one after the other.
    """
    n, where = layout.n_places, []
    for one in placed:
        size = one.block.n_columns * n_labels
        if n + size > np.iinfo(np.int32).max:
            raise ValueError(
                f"{n + size} weights are more than the 2,147,483,647 that are supported; use "
                "fewer features."
            )
        layout.place[one.columns] = np.arange(n, n + size, n_labels)
        layout.width[one.columns] = n_labels
        where.append(slice(n, n + size))
        n += size
    return layout._replace(n_places=n), where


@lean_jit
def select_labels(colptr, seen_labels, seen_values, min_freq, frequency, kept, width):
    """Write the labels that features have weights for, and their number.

    Parameters
    ----------
    frequency : ndarray of shape (n_labels,)
        Workspace, all -1.
    kept : ndarray of shape (n_entries,)
        Receives the labels of each feature in order, the first of its part.
    width : ndarray of shape (n_features,)
        Receives their number.
    """
    for f in range(width.shape[0]):
        for m in range(colptr[f], colptr[f + 1]):
            y = seen_labels[m]
            if frequency[y] < 0.0:
                frequency[y] = 0.0
            frequency[y] += value_of(seen_values, m)
        n = 0
        for y in range(frequency.shape[0]):
            if frequency[y] >= min_freq:
                kept[colptr[f] + n] = y
                n += 1
            frequency[y] = -1.0
        width[f] = n


@inner_lean_jit
def last_bit(labels):
    """Bit that marks the last label of a short row, and a number beyond all labels."""
    return np.int64(1) << (8 * labels.itemsize - 1)


def point_to_rows(rows, layout):
    """Replace the features of tokens by pointers to their rows, a `FeaturePlaces`."""
    n = len(rows.indices)
    unit = bool(np.all((rows.data == 0) | (rows.data == 1)))
    indptr, places = np.zeros(len(rows.indptr), np.int64), np.empty(n, np.int32)
    data = np.empty(0 if unit else n)
    widths = np.empty(np.diff(rows.indptr).max(initial=0), np.int32)
    n_kept = write_pointers(rows, layout.place, layout.width, widths, indptr, places, data)
    # Pages that nothing was written to take no memory.
    pointers = indptr, places[:n_kept], data[:n_kept]
    return FeaturePlaces(*pointers, layout.labels, len(layout.labels))


@lean_jit
def write_pointers(rows, place, width, widths, indptr, places, data):
    """Replace features by the starts of their rows; drop what changes no score and no gradient.

    That is features without a weight, and occurrences with the value 0, which stands for
    False: half of the features in sklearn-crfsuite's tutorial. If all other values are one, none
    is kept. The features of a token are sorted by decreasing width, which makes the ends of rows
    predictable for the processor.

    Parameters
    ----------
    widths : ndarray of shape (n_features_of_a_token,)
        Workspace.
    indptr, places, data : ndarray
        Receive the fields of `FeaturePlaces`.

    Returns
    -------
    n_kept : int
        Number of occurrences that are kept.
    """
    unit, begin = data.shape[0] == 0, 0
    for t in range(indptr.shape[0] - 1):
        n = 0
        for k in range(rows.indptr[t], rows.indptr[t + 1]):
            f = rows.indices[k]
            if place[f] < 0 or value_of(rows.data, k) == 0.0:
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
    return begin


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


def sum_observed(observed, n_labels):
    """Make one entry of all entries of a feature and a label: as many as there are weights.

    Parameters
    ----------
    observed : Observed
    n_labels : int

    Returns
    -------
    observed : Observed
    """
    n_features = len(observed.indptr) - 1
    feature = np.repeat(np.arange(n_features), np.diff(observed.indptr))
    pairs, which = np.unique(feature * n_labels + observed.labels, return_inverse=True)
    values = observed.values if observed.values.size else None
    total = np.bincount(which, values, len(pairs)).astype(np.float64, copy=False)
    feature, label = np.divmod(pairs, n_labels)
    indptr = to_offsets(np.bincount(feature, minlength=n_features))
    return Observed(indptr, label.astype(observed.labels.dtype), total, observed.order)


def merge_observed(parts, numbers, n_features, n_labels, by_frequency=True):
    """Join what parts of a training set have observed, in their order.

    Parameters
    ----------
    parts : iterable of Observed
        Of each part, by its own numbers of features, with one entry for a feature and a label.
        They are read one by one, as together they take many times the memory of their union.
    numbers : list of ndarray
        The number in the whole model of each feature of a part.
    n_features, n_labels : int
        Size of the model.
    by_frequency : bool, default=True
        False if it does not matter how often a feature occurs with a label.

    Returns
    -------
    observed : Observed
        As `observe` collects it from the whole training set, with one entry for a feature and a
        label; without values if these do not matter.
    """
    # Pairs of a feature and a label, sorted.
    pairs, values = np.empty(0, np.int64), np.empty(0)
    seen, order, dtype = np.zeros(n_features, bool), [], None
    for part, of_part in zip(parts, numbers, strict=True):
        appeared = of_part[part.order]
        order.append(appeared[~seen[appeared]].astype(np.int32))
        seen[appeared], dtype = True, part.labels.dtype
        own = np.repeat(of_part.astype(np.int64) * n_labels, np.diff(part.indptr)) + part.labels
        by_pair = np.argsort(own)
        own = own[by_pair]
        where, new = _find(pairs, own)
        if by_frequency:
            of_own = part.values[by_pair]
            values[where[~new]] += of_own[~new]
            values = np.insert(values, where[new], of_own[new])
        pairs = np.insert(pairs, where[new], own[new])
    feature, label = np.divmod(pairs, n_labels)
    indptr = to_offsets(np.bincount(feature, minlength=n_features))
    return Observed(indptr, label.astype(dtype), values, np.concatenate(order))


def _find(pairs, own):
    """Places of some sorted pairs among others, and which of them are not there yet."""
    where = np.searchsorted(pairs, own)
    new = np.ones(len(own), bool)
    inside = where < len(pairs)
    new[inside] = pairs[where[inside]] != own[inside]
    return where, new


def restrict(layout, features):
    """Lay out the rows of some features alone, in the same order.

    Parameters
    ----------
    layout : RowLayout
        Of the whole model.
    features : ndarray
        Numbers of features, each once.

    Returns
    -------
    layout : RowLayout
        Of these features, by their position in `features`.
    """
    place, width = layout.place[features], layout.width[features]
    rows = np.flatnonzero(place >= 0)
    rows = rows[np.argsort(place[rows])]
    starts = to_offsets(width[rows])
    own_place = np.full(len(features), -1, np.int32)
    own_place[rows] = starts[:-1]
    # Short rows come first, and only these have labels.
    short = rows[: np.searchsorted(place[rows], len(layout.labels))]
    of_short, _ = ranges(place[short], width[short])
    nothing = np.empty(0, np.int32)
    return RowLayout(own_place, width, layout.labels[of_short], nothing, int(starts[-1]))


def without_first_tokens(rows, offsets):
    """Empty the rows of first tokens, which no transition leads to."""
    counts = np.diff(rows.indptr)
    reached = np.ones(len(counts), bool)
    reached[offsets[:-1][np.diff(offsets) > 0]] = False
    if not counts[~reached].any():
        return rows
    kept = np.repeat(reached, counts)
    indptr = to_offsets(counts * reached)
    data = rows.data[kept] if rows.data.size else rows.data
    return read_only(Rows(indptr, rows.indices[kept], data))


def squared(features):
    first, *more = (part._replace(data=np.square(part.data)) for part in features.sets())
    return type(features)(*first, *more)


@inner_lean_jit
def end_of_full_rows(features, first, last):
    """First of some occurrences whose row is short."""
    k = np.uint64(first)
    while k < np.uint64(last) and features.places[k] >= features.full_from:
        k += np.uint64(1)
    return np.int64(k)


@inner_lean_jit
def state_scores(features, vector, threshold, n_labels, first, last, out):
    """Write the scores of the rows ``first:last``, without biases, into ``out``.

    With a threshold, weights are the entries of the vector, shrunk by it.
    """
    unit = features.data.shape[0] == 0
    places, data = features.places, features.data
    one, final, end = np.uint64(1), np.uint64(last_bit(features.labels)), features.indptr[last]
    for t in range(first, last):
        score = out[t - first]
        a, b = features.indptr[t], features.indptr[t + 1]
        ahead = np.uint64(a + AHEAD)
        for k in range(ahead, max(ahead, np.uint64(min(b + AHEAD, end)))):
            prefetch(vector, places[k])
        if n_labels < LANES:
            for j in range(n_labels):
                score[j] = 0.0
        else:
            c = end_of_full_rows(features, a, b)
            if unit:
                sum_wide_rows(None, vector, places, None, threshold, a, c, score)
            else:
                sum_wide_rows(None, vector, places, data, threshold, a, c, score)
            a = c
        for k in range(np.uint64(a), np.uint64(b)):
            x = value_of(data, k)
            p = np.uint64(places[k])
            if places[k] >= features.full_from:
                for j in range(n_labels):
                    score[j] += x * shrink(vector[p + np.uint64(j)], threshold)
            else:
                code = np.uint64(0)
                while code < final:
                    code = np.uint64(features.labels[p])
                    score[code & (final - one)] += x * shrink(vector[p], threshold)
                    p += one


@inner_lean_jit
def add_state_gradient(features, difference, n_labels, first, last, gradient):
    """Add the ``difference`` of each token to the rows of its features."""
    unit, one = features.data.shape[0] == 0, np.uint64(1)
    final = np.uint64(last_bit(features.labels))
    places, data = features.places, features.data
    for t in range(first, last):
        d = difference[t - first]
        a, b = features.indptr[t], features.indptr[t + 1]
        if n_labels >= LANES:
            c = end_of_full_rows(features, a, b)
            if unit:
                scatter_wide_row(d, None, places, a, c, gradient)
            else:
                scatter_wide_row(d, data, places, a, c, gradient)
            a = c
        for k in range(np.uint64(a), np.uint64(b)):
            x = value_of(data, k)
            p = np.uint64(places[k])
            if places[k] >= features.full_from:
                for j in range(n_labels):
                    gradient[p + np.uint64(j)] += x * d[j]
            else:
                code = np.uint64(0)
                while code < final:
                    code = np.uint64(features.labels[p])
                    gradient[p] += x * d[code & (final - one)]
                    p += one


@inner_lean_jit
def squared_feature_norm(features, t):
    a, b = features.indptr[t], features.indptr[t + 1]
    if features.data.shape[0] == 0:
        return np.float64(b - a)
    total = 0.0
    for k in range(a, b):
        total += features.data[k] * features.data[k]
    return total


@lean_jit
def shrink(value, threshold):
    """Move a number towards zero; minus infinity stays. Without a threshold, all stay."""
    if threshold is None:
        return value
    return value - min(max(value, -threshold), threshold)


@inner_lean_jit
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
