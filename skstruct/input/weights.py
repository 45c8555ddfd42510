"""Weights of sequences and of classes: checked, and multiplied."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np

from skstruct.matrices import to_offsets
from skstruct.utils.messages import short_repr


def read_sample_weight(sample_weight, n_sequences, name="sample_weight"):
    """Check weights of sequences.

    Parameters
    ----------
    sample_weight : float, array-like of shape (n_sequences,) or None
        As the user gave them. A number is the weight of each sequence, None stands for 1.
    n_sequences : int
    name : str, default="sample_weight"
        For messages.

    Returns
    -------
    weight : ndarray of shape (n_sequences,)
        Finite and not negative, a copy.

    Raises
    ------
    ValueError
        If a weight is negative, NaN, infinite or no number, if there are more or fewer than
        sequences, or if their sum is infinite.
    """
    if sample_weight is None:
        return np.ones(n_sequences)
    if has_token_weights(sample_weight):
        raise ValueError(f"{name} has weights of tokens; pass one for each sequence.")
    weight = _as_numbers(sample_weight, name)
    valid = np.isfinite(weight) & (weight >= 0)
    if weight.ndim == 0:
        if not valid:
            raise ValueError(f"{name} is {weight}; weights must be finite and not negative.")
        weight = np.full(n_sequences, weight)
    elif weight.shape != (n_sequences,):
        raise ValueError(
            f"{name} must have shape ({n_sequences},), one weight for each sequence, "
            f"got {weight.shape}."
        )
    elif not valid.all():
        i = int(np.argmin(valid))
        raise ValueError(f"{name}[{i}] is {weight[i]}; weights must be finite and not negative.")
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError(f"{name} adds up to infinity: divide the weights by the largest one.")
    return weight


def has_token_weights(sample_weight):
    """Return True for weights in the form of labels: a sequence of them for each sequence."""
    if isinstance(sample_weight, np.ndarray) and sample_weight.dtype.kind != "O":
        # A column is rather a mistake than weights of sequences of one token each.
        return sample_weight.ndim == 2 and sample_weight.shape[1] != 1
    if not isinstance(sample_weight, (list, tuple, np.ndarray)):
        return False
    return any(
        isinstance(weights, (list, tuple)) or (isinstance(weights, np.ndarray) and weights.ndim)
        for weights in sample_weight
    )


def read_token_weights(sample_weight, lengths, name="sample_weight"):
    """Check weights of tokens.

    Parameters
    ----------
    sample_weight : sequence of array-like of shape (length,)
        As the user gave them (see `has_token_weights`).
    lengths : ndarray of shape (n_sequences,)
        Number of tokens of each sequence.
    name : str, default="sample_weight"
        For messages.

    Returns
    -------
    weight : ndarray of shape (n_sequences,)
        Mean of the weights of each sequence, 1 for one without tokens.
    token_weight : ndarray of shape (n_rows,) or (0,)
        Factors beside it; empty if all are one.

    Raises
    ------
    ValueError
        If there are more or fewer weights than tokens, a weight is negative, NaN, infinite or no
        number, or their sum is infinite.
    """
    if len(sample_weight) != len(lengths):
        raise ValueError(
            f"{name} has weights of {len(sample_weight)} sequences, but there are {len(lengths)}."
        )
    mean, factors = np.ones(len(lengths)), []
    for i, (weights, length) in enumerate(zip(sample_weight, lengths.tolist(), strict=True)):
        weights = _as_numbers(weights, f"{name}[{i}]")
        if weights.shape != (length,):
            raise ValueError(
                f"{name}[{i}] must have shape ({length},), one weight for each token of sequence "
                f"{i}, got {weights.shape}."
            )
        valid = np.isfinite(weights) & (weights >= 0)
        if not valid.all():
            t = int(np.argmin(valid))
            raise ValueError(
                f"Sequence {i}, token {t}: {name} is {weights[t]}; weights must be finite and not "
                "negative."
            )
        if length:
            # The mean of equal numbers may be off by rounding.
            mean[i] = weights[0] if (weights == weights[0]).all() else _mean(weights, name)
            varies = mean[i] > 0 and (weights != mean[i]).any()
            factors.append(weights / mean[i] if varies else np.ones(length))
    factors = np.concatenate(factors) if factors else np.empty(0)
    weight = read_sample_weight(mean, len(lengths), name)
    return weight, factors if np.any(factors != 1) else np.empty(0)


def _mean(weights, name):
    with np.errstate(over="ignore"):
        mean = weights.mean()
    if not np.isfinite(mean):
        raise ValueError(f"{name} adds up to infinity: divide the weights by the largest one.")
    return mean


def _as_numbers(sample_weight, name):
    try:
        weight = np.asarray(sample_weight)
        if weight.dtype.kind in "biufO":
            return np.array(weight, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        pass
    raise ValueError(f"{name} must be numbers, got {short_repr(sample_weight)}.")


def require_weight(weight, lengths):
    """Raise a ValueError unless a sequence with tokens has a weight."""
    if not np.any(weight[lengths > 0]):
        raise ValueError("Sample weights must contain at least one non-zero number.")


def empty_unweighted(batch, labels, weight):
    """Leave out the rows of sequences that have no weight.

    These become empty sequences, so that messages number the others as the user does.

    Parameters
    ----------
    batch : SequenceBatch
    labels : ndarray of shape (n_rows,)
    weight : ndarray of shape (n_sequences,)

    Returns
    -------
    batch : SequenceBatch
    labels : ndarray
        Of the rows that are left.
    """
    weighted = weight > 0
    rows = np.flatnonzero(np.repeat(weighted, batch.lengths))
    return batch._select(rows, to_offsets(batch.lengths * weighted)), labels[rows]


def classes_that_occur(classes, labels):
    """Return the classes that labels have, and the codes of the labels among these."""
    found = np.unique(labels[labels >= 0])
    codes = np.searchsorted(found, labels).astype(labels.dtype)
    return classes[found], np.where(labels < 0, labels, codes)


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
