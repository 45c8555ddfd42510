"""Weights of sequences: checked, and what it means that a sequence has none."""

from __future__ import annotations

import numpy as np

from skstruct.matrices.index_arrays import add_up
from skstruct.utils.messages import short_repr

__all__ = ["classes_that_occur", "empty_unweighted", "read_sample_weight", "require_weight"]


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
    return batch._select(rows, add_up(batch.lengths * weighted)), labels[rows]


def classes_that_occur(classes, labels):
    """Return the classes that labels have, and the codes of the labels among these."""
    found = np.unique(labels[labels >= 0])
    codes = np.searchsorted(found, labels).astype(labels.dtype)
    return classes[found], np.where(labels < 0, labels, codes)
