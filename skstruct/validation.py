"""The border: which of the accepted formats X and y are in, settled once.

Everything behind it works on a `SequenceBatch` and integer label codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import chain
from numbers import Integral, Number

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from skstruct.sequences import SequenceBatch

__all__ = ["Format", "encode_labels", "read_format", "shape_predictions"]


class Format(Enum):
    """How X was given, which decides the shape of what `predict` returns."""

    ROWS = "rows"  # 2-D: each row a sequence of length one; 1-D answers
    GRID = "grid"  # 3-D: sequences of one length; 2-D answers
    BATCH = "batch"  # SequenceBatch, or matrices one for each sequence; object array of lists
    TOKENS = "tokens"  # feature dicts or attribute strings; object array of lists


def read_format(X):
    """Tell the format of `X`, and stack it where that needs no vectoriser.

    Returns
    -------
    format : Format
    X : object
        A `SequenceBatch`, or for ``Format.ROWS`` and ``Format.TOKENS`` X itself, to be checked
        by scikit-learn and read by the vectoriser.

    Raises
    ------
    ValueError
        If `X` is in none of the accepted formats, holds no sequence, or has values that are not
        finite; the message names the sequence and the token.
    """
    if isinstance(X, SequenceBatch):
        return Format.BATCH, _finite(X)
    if sp.issparse(X) or hasattr(X, "iloc") or hasattr(X, "__dataframe__"):
        return Format.ROWS, X
    if isinstance(X, Iterator):
        first = next(X, None)
        if first is None:
            raise ValueError("Found an empty batch: at least one sequence is required.")
        X = chain([first], X)
        return Format.TOKENS, X
    if not (isinstance(X, (list, tuple)) or _is_object_array(X)):
        if getattr(X, "ndim", 2) == 3:
            return Format.GRID, _stack_grid(X)
        return Format.ROWS, X
    return _read_nested(X)


def _is_object_array(X):
    return isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1


def _read_nested(X):
    if len(X) == 0:
        raise ValueError("Found an empty batch: at least one sequence is required.")
    kinds = (_sequence_kind(sequence) for sequence in X)
    kind = next((k for k in kinds if k is not None), None)
    if kind == "matrix":
        return Format.BATCH, _finite(SequenceBatch.from_sequences(X))
    if kind == "vectors":
        return Format.BATCH, _finite(SequenceBatch.from_sequences(_as_matrices(X)))
    if kind == "numbers":
        return Format.ROWS, list(X)
    return Format.TOKENS, X


def _sequence_kind(sequence):
    """What the first token of a sequence is; None if there is no token to tell by."""
    if sp.issparse(sequence) or (hasattr(sequence, "ndim") and sequence.ndim == 2):
        return "matrix"
    if isinstance(sequence, (Number, np.generic)):
        raise ValueError(
            "Expected 2D array, got 1D array instead: X must be a sequence of sequences. "
            "Reshape your data using array.reshape(-1, 1) if it has a single feature."
        )
    if isinstance(sequence, np.ndarray) and sequence.ndim == 1 and sequence.dtype != object:
        return "numbers"
    if not isinstance(sequence, Sequence) or isinstance(sequence, (str, bytes)):
        return "tokens"
    if len(sequence) == 0:
        return None
    token = sequence[0]
    if isinstance(token, (Mapping, str, AbstractSet)):
        return "tokens"
    if isinstance(token, (Number, np.generic)):
        return "numbers"
    if isinstance(token, (list, tuple)):
        return "vectors" if len(token) and isinstance(token[0], Number) else "tokens"
    return "vectors" if isinstance(token, np.ndarray) else "tokens"


def _as_matrices(X):
    matrices = []
    for i, sequence in enumerate(X):
        try:
            matrices.append(np.asarray(sequence, dtype=np.float64))
        except (TypeError, ValueError):
            raise ValueError(
                f"Sequence {i} is not a matrix of numbers: its tokens differ in length or type."
            ) from None
    width = next(m.shape[1] for m in matrices if m.ndim == 2)
    return [m.reshape(0, width) if m.size == 0 else m for m in matrices]


def _stack_grid(X):
    X = check_array(X, allow_nd=True, dtype=[np.float64, np.float32], ensure_all_finite=False)
    n_sequences, length, n_features = X.shape
    stacked = X.reshape(n_sequences * length, n_features)
    return _finite(SequenceBatch.from_lengths(stacked, np.full(n_sequences, length)))


def _finite(batch):
    """The batch itself, or an error that names the first value that is not finite."""
    if len(batch) == 0:
        raise ValueError("Found an empty batch: at least one sequence is required.")
    values = batch.X.data if sp.issparse(batch.X) else batch.X
    # A sum is finite unless a term is not (or it overflows, which the second look clears).
    if values.size and not np.isfinite(values.sum()) and not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values).ravel())[0]
        if sp.issparse(batch.X):
            row, column = np.searchsorted(batch.X.indptr, bad, "right") - 1, batch.X.indices[bad]
        else:
            row, column = divmod(bad, batch.n_features)
        sequence, token = locate(batch.offsets, row)
        value = values.ravel()[bad]
        raise ValueError(
            f"Sequence {sequence}, token {token}: feature {column} is {value}; "
            "input contains NaN or infinity where finite numbers are required."
        )
    return batch


def locate(offsets, row):
    """Sequence and token number of a row."""
    sequence = int(np.searchsorted(offsets, row, side="right") - 1)
    return sequence, int(row - offsets[sequence])


def encode_labels(y, batch, format, classes=None):
    """Classes and integer codes of the labels `y` of a batch.

    Parameters
    ----------
    y : array-like
        Labels in one of the formats that go with `format`.
    batch : SequenceBatch
        The tokens they belong to.
    format : Format
        How X was given.
    classes : ndarray of shape (n_classes,), default=None
        Sorted classes, if they are known already. By default, the labels that occur.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted.
    codes : ndarray of shape (n_rows,), dtype int32

    Raises
    ------
    ValueError
        If the numbers of sequences or the lengths differ, labels have mixed or other types than
        str and int, or a label is not among `classes`.
    """
    if y is None:
        raise ValueError("This tagger requires y to be passed, but the target y is None.")
    if format is Format.ROWS:
        return _encode_rows(y, batch, classes)
    labels = _flatten_labels(y, batch.offsets)
    if classes is None:
        distinct = set(labels)
        _check_label_types(distinct, labels, batch.offsets)
        classes = np.array(sorted(distinct))
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    try:
        codes = np.fromiter(map(code_of.__getitem__, labels), np.int32, len(labels))
    except (KeyError, TypeError):
        row = next(r for r, label in enumerate(labels) if not _known(label, code_of))
        sequence, token = locate(batch.offsets, row)
        raise ValueError(
            f"Sequence {sequence}, token {token}: label {labels[row]!r} is not among the classes."
        ) from None
    return classes, codes


def _known(label, code_of):
    try:
        return label in code_of
    except TypeError:
        return False


def _encode_rows(y, batch, classes):
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    if len(y) != len(batch):
        raise ValueError(f"X has {len(batch)} sequences, but y has labels for {len(y)}.")
    distinct = np.unique(y)
    if classes is None:
        classes = distinct
    unknown = np.setdiff1d(distinct, classes)
    if unknown.size:
        row = int(np.flatnonzero(y == unknown[0])[0])
        raise ValueError(f"Row {row}: label {unknown[0]!r} is not among the classes.")
    return classes, np.searchsorted(classes, y).astype(np.int32)


def _flatten_labels(y, offsets):
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        y = list(y) if isinstance(y, Iterator) else y
        if not isinstance(y, list):
            raise ValueError(f"y must be a list of label sequences, got {type(y).__name__}.")
    if len(y) != len(offsets) - 1:
        raise ValueError(f"X has {len(offsets) - 1} sequences, but y has labels for {len(y)}.")
    if isinstance(y, np.ndarray) and y.ndim == 2:
        y = y.tolist()
    labels = []
    for i, sequence in enumerate(y):
        if isinstance(sequence, np.ndarray):
            sequence = sequence.tolist()
        if isinstance(sequence, (str, bytes)) or not isinstance(sequence, Sequence):
            raise ValueError(
                f"Sequence {i}: its labels must be a list of one label a token, "
                f"got {type(sequence).__name__} {sequence!r}."
            )
        if len(sequence) != offsets[i + 1] - offsets[i]:
            raise ValueError(
                f"Sequence {i} has {offsets[i + 1] - offsets[i]} tokens, "
                f"but {len(sequence)} labels."
            )
        labels.extend(sequence)
    if not labels:
        raise ValueError("Found no token: every sequence is empty.")
    return labels


def _check_label_types(distinct, labels, offsets):
    """Accept labels that are all strings or all integers."""

    def fail(is_wrong, message):
        row = next(r for r, label in enumerate(labels) if is_wrong(label))
        sequence, token = locate(offsets, row)
        raise ValueError(f"Sequence {sequence}, token {token}: label {labels[row]!r} {message}.")

    def is_str(label):
        return isinstance(label, str)

    def is_label(label):
        return isinstance(label, (str, Integral, np.bool_))

    if not all(map(is_label, distinct)):
        fail(lambda label: not is_label(label), "is neither a string nor an integer")
    first = labels[0]
    if any(is_str(label) != is_str(first) for label in distinct):
        kind = "a string" if is_str(first) else "an integer"
        fail(lambda label: is_str(label) != is_str(first), f"is not {kind} as the first label is")


def shape_predictions(values, offsets, format):
    """Give predictions the shape that goes with the format of X.

    Parameters
    ----------
    values : ndarray of shape (n_rows, ...)
        One prediction a token: labels, or marginals.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    format : Format
        How X was given.

    Returns
    -------
    predictions : ndarray
        ``values`` itself for rows, of shape ``(n_sequences, length, ...)`` for a grid, else an
        object array of lists of labels or of 2-D arrays of marginals.
    """
    if format is Format.ROWS:
        return values
    n_sequences = len(offsets) - 1
    if format is Format.GRID:
        return values.reshape(n_sequences, -1, *values.shape[1:])
    predictions = np.empty(n_sequences, dtype=object)
    source = values.tolist() if values.ndim == 1 else values
    for i, (a, b) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        predictions[i] = source[a:b]
    return predictions
