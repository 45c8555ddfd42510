"""Checks of the scale of features and weights, which may be too large to compute with.

Biases and transitions are features of value one, whatever the scale of the others.
"""

from __future__ import annotations

import warnings

import numpy as np

from skstruct.utils.messages import (
    HOW_TO_SCALE,
    REMEDY,
    DataError,
    overflowed,
    position,
    short_repr,
)

# The largest number in single precision, in which some solvers keep a part of their state. Products
# of such numbers, and sums of their squares, are far below the limit of double precision.
LARGEST = float(np.finfo(np.float32).max)
# Beside larger values, most learners hardly learn weights of features of value one.
_LARGE = 1e4
# Products of such a weight with any value, and sums of these, are far below that limit.
_LARGEST_WEIGHT = 1e150
# Marginals whose sum is off by no more are left as they are.
_ROUNDING = 1e-6
# Scores up to here have a rounding error below a tenth.
_MOST_PRECISE = 0.1 / np.finfo(np.float64).eps


def check_values(rows, offsets, kind="feature", names=None):
    """Raise a ValueError that names the first value that is too large to compute with.

    Parameters
    ----------
    rows : Rows
        The tokens; values that are all one are not stored.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    kind : str, default="feature"
        What the values belong to.
    names : ndarray of shape (n_features,), default=None
        Names of the features.
    """
    if rows.data.size == 0 or _largest(rows.data) <= LARGEST:
        return
    entry = np.flatnonzero(np.abs(rows.data) > LARGEST)[0]
    row = np.searchsorted(rows.indptr, entry, side="right") - 1
    raise DataError(
        f"{{place}}: {kind} {{name}} is {rows.data[entry]:g}, too large to compute with, as values "
        f"may be up to {LARGEST:.2g}: {HOW_TO_SCALE}.",
        *position(offsets, row),
        name=_name(rows, entry, names),
    )


def check_blocks(placed, offsets, n_columns, names=None):
    """Raise a ValueError that names the first value of a block that cannot be computed with.

    Also where kernels could read out of bounds.

    Parameters
    ----------
    placed : tuple of Placed
    offsets, names
        As of `check_values`.
    n_columns : int
        Number of columns of the batch.
    """
    for one in placed:
        one.check(int(offsets[-1]), n_columns)
        start, block = one
        values = block.values()
        factor = abs(block.factor)
        # NaN fails the comparisons.
        if not factor <= LARGEST:
            raise ValueError(
                f"a block of vectors has the factor {block.factor:g}; factors may be up to "
                f"{LARGEST:.2g}."
            )
        # One pass where all is well.
        if factor * float(_largest(values)) <= LARGEST:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            products = np.multiply(np.abs(values), factor, dtype=np.float64)
            entry = np.flatnonzero(~(products <= LARGEST))[0]
        raise _wrong_value(start, block, entry, offsets, names)


def check_finite_blocks(placed, offsets):
    """Raise a ValueError that names the first value of a block that is NaN or infinite."""
    for start, block in placed:
        values = block.values()
        if not (np.isfinite(values.max(initial=0)) and np.isfinite(values.min(initial=0))):
            entry = np.flatnonzero(~np.isfinite(values).ravel())[0]
            raise _wrong_value(start, block, entry, offsets, None)


def _wrong_value(start, block, entry, offsets, names):
    """Error about an entry of the values of a block, which is not finite, or too large."""
    value = float(block.values().ravel()[entry]) * block.factor
    row, column = block.place_of(entry)
    fact = "input contains NaN or infinity where finite numbers are required"
    if np.isfinite(value):
        fact = f"values may be up to {LARGEST:.2g}: {HOW_TO_SCALE}"
    return DataError(
        "{place}: feature {column} is {value:g}; {fact}.",
        *position(offsets, row),
        column=start + column if names is None else short_repr(names[start + column]),
        value=value,
        fact=fact,
    )


def check_sample_weight(sample_weight):
    """Raise a ValueError that names the first weight of a sequence that is too large."""
    if _largest(sample_weight) > LARGEST:
        sequence = np.flatnonzero(sample_weight > LARGEST)[0]
        raise DataError(
            f"{{place}} has the weight {sample_weight[sequence]:g}, too large to compute with: "
            f"sample weights, times class weights, may be up to {LARGEST:.2g}. Scale them: divide "
            "all by the largest one.",
            sequence,
        )


def warn_of_scale(rows, names=None):
    """Warn the caller of an estimator with the advice of `advise_scaling`, if any."""
    advice = advise_scaling(rows, names)
    if advice is not None:
        # This function, a method, and scikit-learn's wrapper of it.
        warnings.warn(advice, UserWarning, stacklevel=4)


def advise_scaling(rows, names=None):
    """Advice to scale the features if there are very large values.

    Parameters
    ----------
    rows : Rows or TransitionRows
        The tokens of a training set.
    names : ndarray of shape (n_features,), default=None
        Names of the features.

    Returns
    -------
    advice : str or None
        A sentence that names a feature with the largest value; None where there is no need.
    """
    kinds, of_tokens = (("Feature", names), ("Transition feature", None)), names
    for part, (kind, names) in zip(rows.sets(), kinds, strict=False):
        largest = _largest(part.data)
        if largest >= _LARGE:
            name = _name(part, np.argmax(np.abs(part.data)), names)
            return (
                f"{kind} {name} has values as large as {largest:.0e}, beside which other features, "
                f"biases and transitions hardly count: {HOW_TO_SCALE}."
            )
    for start, block in rows.placed:
        largest = abs(block.factor) * float(_largest(block.values()))
        if largest >= _LARGE:
            _, column = block.place_of(np.argmax(np.abs(block.values())))
            column += start
            name = column if of_tokens is None else short_repr(of_tokens[column])
            return (
                f"Feature {name} has values as large as {largest:.0e}, beside which other "
                f"features, biases and transitions hardly count: {HOW_TO_SCALE}."
            )
    return None


def _name(rows, entry, names):
    column = int(rows.indices[entry])
    return column if names is None else short_repr(names[column])


def check_weights(parts, epoch, remedy=REMEDY):
    """Raise a ValueError if a weight in some arrays is too large to compute with, or NaN.

    `remedy` tells what to do about it, apart from scaling.
    """
    if not all(_largest(part) <= _LARGEST_WEIGHT for part in parts):
        raise overflowed(epoch, remedy)


def correct_marginals(marginals, offsets, log_partition):
    """Normalise the marginals of tokens whose sum is off, by rounding of large scores.

    Parameters
    ----------
    marginals : ndarray of shape (n_rows, n_labels)
        Changed in place, where the sum of a row is off by more than 1e-6.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    log_partition : ndarray of shape (n_sequences,)
        Minus infinity where no labelling is possible; such sequences are left alone.

    Raises
    ------
    ValueError
        If rounding leaves nothing of the marginals of a sequence.
    """
    total = marginals.sum(axis=1)
    if total.min(initial=1.0) >= 1.0 - _ROUNDING and total.max(initial=1.0) <= 1.0 + _ROUNDING:
        return
    off = np.flatnonzero(~(np.abs(total - 1.0) <= _ROUNDING))
    sequence = np.searchsorted(offsets, off, side="right") - 1
    off = off[log_partition[sequence] != -np.inf]
    lost = off[~((total[off] > 0.5) & (total[off] < 2.0))]
    if len(lost):
        raise _lost_in_rounding(np.searchsorted(offsets, lost[0], side="right") - 1)
    marginals[off] /= total[off, None]


def check_log_partition(log_partition):
    """Raise a ValueError if scores are so large that probabilities are lost in rounding."""
    lost = np.flatnonzero(~(np.abs(log_partition) < _MOST_PRECISE))
    if len(lost):
        raise _lost_in_rounding(lost[0])


def _lost_in_rounding(sequence):
    return DataError(
        "{place} has scores so large that its probabilities are lost in rounding: "
        f"{HOW_TO_SCALE}, or fit with a stronger penalty.",
        sequence,
    )


def _largest(values):
    """Largest absolute value; zero if there are none."""
    return max(values.max(initial=0.0), -values.min(initial=0.0))
