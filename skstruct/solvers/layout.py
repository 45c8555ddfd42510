"""Layout of a CRF's parameter vector: which weights exist, and where each one stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skstruct import kernels
from skstruct.input.training_set import take_rows
from skstruct.utils.sparse import pieces, read_only

__all__ = [
    "Observed",
    "RowLayout",
    "lay_out",
    "merge_observed",
    "observe",
    "point_to_rows",
    "restrict",
    "squared",
    "sum_observed",
    "sum_of_squares",
    "transition_frequency",
    "without_first_tokens",
]


# Parts of a training set whose entries are joined at a time.
_TOGETHER = 4


class RowLayout(NamedTuple):
    """Places of the weights of features in a parameter vector.

    Attributes
    ----------
    place : ndarray of shape (n_features,), int64
        Start of the row of each feature, -1 if it has no weight.
    width : ndarray of shape (n_features,), int32
        Length of each row.
    labels : ndarray of shape (full_from,)
        Labels of the short rows, which come first.
    pinned : ndarray, int64
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
    none = np.empty(0, _label_type(n_labels))
    observed = Observed(*kernels.group_by_feature(*_labelled(counted, labels), n_features, none))
    if np.any(labels < 0):
        # Features that no labelled token has may still have weights for all labels.
        *_, order = kernels.group_by_feature(rows, np.zeros_like(labels), n_features, none)
        observed = observed._replace(order=order)
    return observed


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
    layout = RowLayout(*kernels.lay_out(*observed, n_labels, float(min_freq), every_label))
    if layout.n_places > np.iinfo(np.int32).max:
        raise ValueError(
            f"{layout.n_places} weights are more than the 2,147,483,647 that are supported; "
            "use fewer features or a larger min_freq."
        )
    return layout


def point_to_rows(rows, layout):
    """Replace the features of tokens by pointers to their rows, a `StateFeatures`."""
    pointers = kernels.point_to_rows(rows, layout.place, layout.width)
    return kernels.StateFeatures(*pointers, layout.labels, len(layout.labels))


def sum_observed(observed, n_labels):
    """Make one entry of all those of a feature and a label: as many as there are weights.

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
    return Observed(
        _pointers(feature, n_features), label.astype(observed.labels.dtype), total, observed.order
    )


def merge_observed(parts, numbers, n_features, n_labels):
    """Join what parts of a training set have observed, in their order.

    Parameters
    ----------
    parts : list of Observed
        Of each part, by its own numbers of features.
    numbers : list of ndarray
        The number in the whole model of each feature of a part.
    n_features, n_labels : int
        Size of the model.

    Returns
    -------
    observed : Observed
        As `observe` collects it from the whole training set, with one entry for a feature and a
        label.
    """
    whole = _join(parts[:1], numbers[:1], n_features)
    # All at the same time would take many times the memory of their union.
    for first in range(1, len(parts), _TOGETHER):
        some = slice(first, first + _TOGETHER)
        joined = [whole, *parts[some]], [np.arange(n_features), *numbers[some]]
        whole = sum_observed(_join(*joined, n_features), n_labels)
    return whole


def _join(parts, numbers, n_features):
    """Entries of several parts."""
    feature = np.concatenate(
        [np.repeat(n, np.diff(part.indptr)) for part, n in zip(parts, numbers, strict=True)]
    )
    by_feature = np.argsort(feature, kind="stable")
    seen = np.concatenate([n[part.order] for part, n in zip(parts, numbers, strict=True)])
    _, first = np.unique(seen, return_index=True)
    return Observed(
        _pointers(feature, n_features),
        np.concatenate([part.labels for part in parts])[by_feature],
        np.concatenate([part.values for part in parts])[by_feature],
        seen[np.sort(first)].astype(np.int32),
    )


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
    positions : ndarray of shape (n_places,), int32
        Where its weights are in the whole vector.
    """
    place, width = layout.place[features], layout.width[features]
    rows = np.flatnonzero(place >= 0)
    rows = rows[np.argsort(place[rows])]
    ends = np.cumsum(width[rows], dtype=np.int64)
    starts = ends - width[rows]
    n_places = int(ends[-1]) if len(ends) else 0
    positions = np.arange(n_places) + np.repeat(place[rows] - starts, width[rows])
    own_place = np.full(len(features), -1, np.int64)
    own_place[rows] = starts
    full_from = np.searchsorted(positions, len(layout.labels))
    labels, nothing = layout.labels[positions[:full_from]], np.empty(0, np.int64)
    own = RowLayout(own_place, width, labels, nothing, n_places)
    return own, positions.astype(np.int32)


def _pointers(feature, n_features):
    """First entry of each feature, where entries are sorted by feature."""
    counts = np.bincount(feature, minlength=n_features)
    return np.concatenate([[0], np.cumsum(counts)])


def _label_type(n_labels):
    return kernels.LABEL_TYPE if n_labels <= kernels.MOST_LABELS else kernels.TRANSITION_TYPE


def _labelled(rows, labels):
    """Return the rows with a label, and their labels."""
    kept = np.flatnonzero(labels >= 0)
    return (rows, labels) if len(kept) == len(labels) else (take_rows(rows, kept), labels[kept])


def _weighted_rows(rows, weight):
    """Multiply the values of each row by the weight of its token."""
    if np.all(weight == 1):
        return rows
    weight = np.repeat(weight, np.diff(rows.indptr))
    data = weight * rows.data if rows.data.size else weight
    return read_only(kernels.Rows(rows.indptr, rows.indices, data))


def without_first_tokens(rows, offsets):
    """Empty the rows of first tokens, which no transition leads to."""
    counts = np.diff(rows.indptr)
    reached = np.ones(len(counts), bool)
    reached[offsets[:-1][np.diff(offsets) > 0]] = False
    if not counts[~reached].any():
        return rows
    kept = np.repeat(reached, counts)
    indptr = np.concatenate([[0], np.cumsum(counts * reached)])
    data = rows.data[kept] if rows.data.size else rows.data
    return read_only(kernels.Rows(indptr, rows.indices[kept], data))


def squared(features):
    """Square the values of features."""
    squares = features._replace(data=np.square(features.data))
    if isinstance(features, kernels.TransitionStateFeatures):
        squares = squares._replace(transitions=squared(features.transitions))
    return squares


def sum_of_squares(features):
    """Sum the squares of the values of features."""
    return np.square(features.data).sum() if features.data.size else len(features.places)


def transition_frequency(training_set, n_labels):
    """Count how often each label follows each other, weighted; shape (n_labels, n_labels)."""
    labels, offsets = training_set.labels, training_set.offsets
    frequency = np.zeros((n_labels, n_labels))
    for part in pieces(range(1, len(labels))):
        later = np.arange(part.start, part.stop)
        sequence = np.searchsorted(offsets, later, side="right") - 1
        counted = (later > offsets[sequence]) & (labels[later - 1] >= 0) & (labels[later] >= 0)
        later, weight = later[counted], training_set.sample_weight[sequence[counted]]
        np.add.at(frequency, (labels[later - 1], labels[later]), weight)
    return frequency
