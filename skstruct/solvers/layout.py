"""Layout of a CRF's parameter vector: which weights exist, and where each one stands."""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.input.training_set import take_rows
from skstruct.utils.sparse import read_only

__all__ = [
    "lay_out_rows",
    "squared",
    "sum_of_squares",
    "transition_frequency",
    "without_first_tokens",
]


def lay_out_rows(rows, labels, weight, n_features, n_labels, min_freq, every_label):
    """Lay out the weights of features in the parameter vector.

    Returns the tokens with pointers to the weights, the place of each feature, the places that are
    not weights of the model, and the number of places.
    """
    counted = rows if weight is None else _weighted_rows(rows, weight)
    none = np.empty(
        0, kernels.LABEL_TYPE if n_labels <= kernels.MOST_LABELS else kernels.TRANSITION_TYPE
    )
    observed = kernels.group_by_feature(*_labelled(counted, labels), n_features, none)
    if np.any(labels < 0):
        # Features that no labelled token has may still have weights for all labels.
        *_, order = kernels.group_by_feature(rows, np.zeros_like(labels), n_features, none)
        observed = (*observed[:-1], order)
    place, width, short_labels, pinned, n_places = kernels.lay_out(
        *observed, n_labels, float(min_freq), every_label
    )
    if n_places > np.iinfo(np.int32).max:
        raise ValueError(
            f"{n_places} weights are more than the 2,147,483,647 that are supported; "
            "use fewer features or a larger min_freq."
        )
    pointers = kernels.point_to_rows(rows, place, width)
    return (
        kernels.StateFeatures(*pointers, short_labels, len(short_labels)),
        place,
        pinned,
        n_places,
    )


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
    labels, offsets = training_set.labels.astype(np.int64), training_set.offsets
    follows = np.ones(len(labels), bool)
    follows[offsets[:-1][offsets[:-1] < len(labels)]] = False
    follows &= labels >= 0
    follows[1:] &= labels[:-1] >= 0
    later = np.flatnonzero(follows)
    weight = np.repeat(training_set.sample_weight, np.diff(offsets))[later]
    pair = labels[later - 1] * n_labels + labels[later]
    return np.bincount(pair, weight, n_labels**2).reshape(n_labels, n_labels)
