"""Class weights, turned into weights of sequences."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np

from skstruct.utils.messages import short_repr

__all__ = ["refuse_balanced", "weigh_sequences"]


def weigh_sequences(class_weight, classes, labels, offsets, sample_weight):
    """Multiply the weights of sequences by the mean class weight of their tokens.

    Weights of tokens would have no place in the objective, because the likelihood of a sequence
    does not factor over its tokens. Weights of sequences keep it a weighted sum of negative
    log-likelihoods.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weight of each class, by default 1. "balanced": ``n_tokens / (n_classes * count)``,
        inversely proportional to the frequency of the class, where tokens are weighted by
        `sample_weight`.
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    labels : ndarray of shape (n_rows,)
        Codes of the classes. Negative codes are tokens without a label, which are left out of
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
        If a weight is negative, NaN or infinite, also the product, or if a dict has weights for
        unknown labels and lacks some of the classes.
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
    mean = np.divide(total, n_tokens, np.ones(n_sequences), where=n_tokens > 0)
    with np.errstate(over="ignore"):
        weight = sample_weight * mean
    if not np.isfinite(weight).all():
        i = int(np.argmin(np.isfinite(weight)))
        raise ValueError(
            f"Sequence {i}: sample_weight times the mean of class_weight is {weight[i]}; divide "
            "the weights by the largest one."
        )
    return weight


def refuse_balanced(class_weight):
    """Raise an error for weights by frequency, as ``partial_fit`` never sees all labels."""
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight={class_weight!r} needs all labels at once, but partial_fit sees only "
            "some of them. Pass the weights of the classes as a dict."
        )


def _given(class_weight, classes):
    for label, weight in class_weight.items():
        if not _is_weight(weight):
            raise ValueError(
                f"class_weight has {short_repr(weight)} for {short_repr(label)}; weights must be "
                "finite and not negative."
            )
    unknown = sorted(class_weight.keys() - set(classes), key=str)
    # A dict with all classes may have more, which need not occur in a part of the data.
    if unknown and not all(label in class_weight for label in classes):
        raise ValueError(
            f"class_weight has weights for {short_repr(unknown)}, which are not among the classes."
        )
    return np.array([class_weight.get(label, 1.0) for label in classes], np.float64)


def _is_weight(value):
    try:
        return isinstance(value, Real) and 0 <= float(value) < np.inf
    except OverflowError:
        return False


def _balanced(codes, weight, n_classes):
    count = np.bincount(codes, weight, n_classes)
    # Classes without a token, or with tokens of weight zero alone, do not count as classes.
    counts = count > 0
    with np.errstate(over="ignore"):
        total, shares = count.sum(), counts.sum() * count
    if not np.isfinite([total, *shares]).all():
        raise ValueError("sample_weight adds up to infinity: divide the weights by the largest.")
    return np.divide(total, shares, np.zeros(n_classes), where=counts)
