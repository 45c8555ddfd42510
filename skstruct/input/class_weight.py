"""Class weights: how much the tokens of each label count, turned into weights of sequences."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np

__all__ = ["refuse_balanced", "weigh_sequences"]


def weigh_sequences(class_weight, classes, labels, offsets, sample_weight):
    """Multiply the weights of sequences with the mean class weight of their tokens.

    A weight of the sequence as a whole leaves the objective what it was, a sum of negative
    log-likelihoods with positive factors; weights of single tokens would not, for the likelihood
    of a sequence is no product over its tokens.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        The weight of each class, 1 where there is none. "balanced": inversely proportional to how
        often it occurs, ``n_tokens / (n_classes * count)``, where a token counts as often as its
        sequence.
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    labels : ndarray of shape (n_rows,)
        Codes of the classes; codes below zero are tokens without a label, which are left out of
        means and counts.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    sample_weight : ndarray of shape (n_sequences,)
        Weights of the sequences.

    Returns
    -------
    weight : ndarray of shape (n_sequences,)

    Raises
    ------
    ValueError
        If a dict has weights of labels that are no classes while some classes have none, or a
        weight is no finite number or negative.
    """
    if class_weight is None or len(class_weight) == 0:
        return sample_weight
    n_sequences = len(sample_weight)
    labelled = np.flatnonzero(labels >= 0)
    codes = labels[labelled]
    owner = np.repeat(np.arange(n_sequences), np.diff(offsets))[labelled]
    if isinstance(class_weight, Mapping):
        weight_of = _given(class_weight, classes.tolist())
    else:
        weight_of = _balanced(codes, sample_weight[owner], len(classes))
    n_tokens = np.bincount(owner, minlength=n_sequences)
    total = np.bincount(owner, weight_of[codes], n_sequences)
    return sample_weight * np.divide(total, n_tokens, np.ones(n_sequences), where=n_tokens > 0)


def refuse_balanced(class_weight):
    """Refuse weights by frequency where only a portion of the labels is seen."""
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight={class_weight!r} needs all labels at once, and partial_fit sees a "
            "portion of them. Pass the weights of the classes as a dict."
        )


def _given(class_weight, classes):
    for label, weight in class_weight.items():
        if not (isinstance(weight, Real) and 0 <= weight < np.inf):
            raise ValueError(
                f"class_weight has {weight!r} for {label!r}; weights must be finite numbers that "
                "are not negative."
            )
    unknown = sorted(class_weight.keys() - set(classes), key=str)
    # A label that happens not to occur in a part of the data is no error if all others are there.
    if unknown and not all(label in class_weight for label in classes):
        raise ValueError(f"class_weight has weights of {unknown}, which are not among the classes.")
    return np.array([class_weight.get(label, 1.0) for label in classes], np.float64)


def _balanced(codes, weight, n_classes):
    count = np.bincount(codes, weight, n_classes)
    # Classes that do not occur, or count for nothing, are none.
    counts = count > 0
    return np.divide(count.sum(), counts.sum() * count, np.zeros(n_classes), where=counts)
