"""Formats of X and y: recognised once, and converted to what estimators work on.

Everything after this works on a `SequenceBatch` and integer label codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import chain
from numbers import Integral, Number, Real

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from skstruct.frames import columns_of_sequences, is_frame
from skstruct.input.scale import check_finite_blocks
from skstruct.matrices import as_rows, refuse_times, to_csr, to_offsets
from skstruct.sequences import SequenceBatch
from skstruct.utils.declared import MAX_LABELS
from skstruct.utils.messages import DataError, position, short_repr

# The number that stands for "no label" in datasets, as in the losses of PyTorch.
NO_LABEL = -100


class Format(Enum):
    """Format of X, which determines the shape of predictions."""

    ROWS = "rows"  # 2-D: each row a sequence of length one; 1-D answers
    GRID = "grid"  # 3-D: sequences of one length; 2-D answers
    BATCH = "batch"  # SequenceBatch, or matrices one for each sequence; object array of lists
    TOKENS = "tokens"  # feature dicts or attribute strings; object array of lists


def as_lists(values):
    """A collection with lists in place of iterators, which can be read only once."""
    values = list(values) if isinstance(values, Iterator) else values
    if not isinstance(values, (list, tuple)):
        return values
    return [list(part) if isinstance(part, Iterator) else part for part in values]


def lists_to_split(X):
    """X as `as_lists` makes it, from which sequences can be selected."""
    if sp.issparse(X) and X.format in ("bsr", "coo", "dia"):
        return to_csr(X, place=lambda row: (row, 0))
    return as_lists(X)


def read_format(X, n_features=None, n_transition_features=None):
    """Recognise the format of `X`, and stack it unless it needs a vectoriser.

    The format follows from the first element of `X` that is not a list, and from its depth: a
    number is the value of a feature, and anything else is left to the vectoriser.

    Parameters
    ----------
    X : object
        As passed by the user.
    n_features, n_transition_features : int, default=None
        Numbers of features of a fitted model, for sequences that are all empty lists.

    Returns
    -------
    format : Format
    X : object
        A `SequenceBatch`; or data still to be checked by scikit-learn (``Format.ROWS``) or read
        by the vectoriser (``Format.TOKENS``).

    Raises
    ------
    ValueError
        If `X` is in none of the accepted formats, has no sequence, or has NaN or infinite values;
        the message names the sequence and the token.
    """
    if isinstance(X, SequenceBatch):
        return Format.BATCH, _finite(X._checked())
    if sp.issparse(X) and X.ndim == 2:
        return Format.ROWS, to_csr(X, place=lambda row: (row, 0))
    if sp.issparse(X) or is_frame(X):
        return Format.ROWS, X
    X = _as_collection(X)
    if isinstance(X, Iterator):
        return Format.TOKENS, X
    leaf = _first_leaf(X)
    if leaf is None:
        return _read_empty(X, n_features, n_transition_features)
    value, depth = leaf
    n_axes = X.ndim if isinstance(X, np.ndarray) else 1
    if n_axes == depth == 2 and not _holds_dicts(X):
        return Format.ROWS, X
    if not isinstance(value, Number):
        return Format.TOKENS, X
    if depth == 2:
        return Format.ROWS, _rectangular(X)
    if depth == 3:
        return (Format.GRID, _stack_grid(X)) if n_axes == 3 else (Format.BATCH, _stack(X))
    if depth == 1:
        raise ValueError(
            "Expected 2D array, got 1D array instead: X must be a sequence of sequences. "
            "Reshape your data using array.reshape(-1, 1) if it has a single feature."
        )
    raise ValueError(f"X has {depth} dimensions, expected 2 or 3.")


def _as_collection(X):
    """`X` as an array, a sequence or, if its tokens can be read one by one, an iterator."""
    if hasattr(X, "__array__"):
        X = np.asanyarray(X)
        refuse_times(X, "X")
        return X
    if isinstance(X, (str, bytes, Mapping, AbstractSet)) or not isinstance(X, Iterable):
        fact = "X is {value}; expected a batch: a list of {sequence}s."
        raise DataError(fact, value=short_repr(X))
    if isinstance(X, Sequence):
        return X
    X, head = iter(X), []
    for sequence in X:
        head.append(sequence)
        leaf = _first_leaf(sequence)
        if leaf is not None:
            return [*head, *X] if isinstance(leaf[0], Number) else chain(head, X)
    return head


def _first_leaf(X):
    """First element of `X` that is not a list or array, and its depth; None in empty lists.

    For an array of numbers or strings, any number or string.
    """
    if sp.issparse(X) or is_frame(X):
        return 0.0, len(X.shape)
    if hasattr(X, "__array__"):
        X = np.asarray(X)
        if X.dtype != object:
            return ("" if X.dtype.kind in "SUT" else 0.0), X.ndim
        if X.ndim == 0:
            return X.item(), 0
    elif isinstance(X, (str, bytes)) or not isinstance(X, Sequence):
        return X, 0
    leaves = (leaf for leaf in map(_first_leaf, X) if leaf is not None)
    value, depth = next(leaves, (None, None))
    return None if depth is None else (value, depth + 1)


def _holds_dicts(X):
    """Tell sequences of feature dicts, all of the same length, from rows of other objects."""
    return X.dtype == object and all(isinstance(token, Mapping) for token in X[0])


def _read_empty(X, n_features, n_transition_features):
    if len(X) == 0:
        raise DataError("Found an empty batch: at least one {sequence} is required.")
    if n_features is None:
        return Format.TOKENS, X
    transition_X = None if n_transition_features is None else np.empty((0, n_transition_features))
    lengths = np.zeros(len(X), np.int64)
    X = np.empty((0, n_features))
    return Format.BATCH, SequenceBatch.from_lengths(X, lengths, transition_X=transition_X)


def _rectangular(X):
    """The rows of a matrix as a list, or an error that names a row of a different length."""
    widths = [len(row) if hasattr(row, "__len__") else None for row in X]
    odd = next((i for i, width in enumerate(widths) if width != widths[0]), None)
    if odd is not None:
        raise ValueError(
            f"X[0] has {widths[0]} numbers, but X[{odd}] is {short_repr(X[odd])}. In a list of "
            "lists of numbers, each list is a sequence of length one; pass longer sequences as "
            "matrices of shape (length, n_features)."
        )
    return list(X)


def _stack(X):
    """Stack one matrix for each sequence; an empty list is a sequence without rows."""
    names = columns_of_sequences(X)
    matrices = [as_rows(sequence, i) for i, sequence in enumerate(X)]
    first = next(m for m in matrices if m.ndim == 2)
    empty = 0, first.shape[1]
    nothing = sp.csr_matrix(empty, dtype=first.dtype) if sp.issparse(first) else first[:0]
    matrices = [nothing if m.ndim == 1 and m.shape[0] == 0 else m for m in matrices]
    return _finite(SequenceBatch.from_sequences(matrices, feature_names=names))


def _stack_grid(X):
    X = check_array(X, allow_nd=True, dtype=[np.float64, np.float32], ensure_all_finite=False)
    n_sequences, length, n_features = X.shape
    stacked = X.reshape(n_sequences * length, n_features)
    return _finite(SequenceBatch.from_lengths(stacked, np.full(n_sequences, length)))


def _finite(batch):
    """Return the batch, or raise an error that names its first NaN or infinity."""
    if len(batch) == 0:
        raise DataError("Found an empty batch: at least one {sequence} is required.")
    sparse, blocks, _ = batch._columns(loose=True)
    # Tokens that were read have been checked.
    if sparse is not None and not isinstance(sparse, tuple):
        _check_finite(sparse, batch.offsets, "feature")
    check_finite_blocks(blocks, batch.offsets)
    if batch.transition_X is not None:
        _check_finite(batch.transition_X, batch.offsets, "transition feature")
    return batch


def _check_finite(X, offsets, kind):
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        # The sum is finite if all terms are; a second pass rules out an overflow.
        suspicious = not np.isfinite(values.sum())
    if suspicious and not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values).ravel())[0]
        if sp.issparse(X):
            row, column = np.searchsorted(X.indptr, bad, "right") - 1, X.indices[bad]
        else:
            row, column = divmod(bad, X.shape[1])
        raise DataError(
            "{place}: {kind} {column} is {value}; input contains NaN or infinity where finite "
            "numbers are required.",
            *position(offsets, row),
            kind=kind,
            column=column,
            value=values.ravel()[bad],
        )


def encode_labels(y, batch, format, classes=None, *, sample_weight=None, name="y", partial=False):
    """Classes and integer codes of the labels `y` of a batch.

    Parameters
    ----------
    y : array-like
        Labels in one of the formats that go with `format`.
    batch : SequenceBatch
        The tokens they belong to.
    format : Format
        Format of X.
    classes : ndarray of shape (n_classes,), default=None
        Sorted classes. By default, the labels that occur.
    sample_weight : ndarray of shape (n_sequences,), default=None
        Weights of the sequences. With weight 0, labels may be any, and are taken as unknown.
    name : str, default="y"
        Name of the labels in messages.
    partial : bool, default=False
        Allow labels that are None, which are unknown.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted.
    codes : ndarray of shape (n_rows,), dtype int32
        -1 where the label is None.

    Raises
    ------
    ValueError
        If the numbers of sequences or the lengths differ, labels are neither all str nor all int,
        or a label is not among `classes`.
    """
    if y is None:
        raise ValueError("This tagger requires y to be passed, but the target y is None.")
    labels, dtype = flatten_labels(y, batch.offsets, format, name, partial)
    if sample_weight is not None and not sample_weight.all():
        counts = np.repeat(sample_weight > 0, batch.lengths).tolist()
        labels = [label if count else None for label, count in zip(labels, counts, strict=True)]
    if classes is None:
        if not labels:
            raise ValueError("Found no token: every sequence is empty.")
        classes = label_array(sorted(set(labels) - {None}), dtype)
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    code_of[None] = -1
    try:
        return classes, np.fromiter(map(code_of.__getitem__, labels), np.int32, len(labels))
    except KeyError:
        row = next(row for row, label in enumerate(labels) if label not in code_of)
        raise DataError(
            "{place}: label {label} is not among the classes.",
            *position(batch.offsets, row),
            label=short_repr(labels[row]),
        ) from None


def flatten_labels(y, offsets, format, name="y", partial=False):
    """Labels of all tokens, and the dtype of their array; see `encode_labels`."""
    flatten = _flatten_rows if format is Format.ROWS else _flatten_sequences
    return flatten(y, offsets, name, partial)


def check_number(n_labels):
    """Raise a ValueError if there are more labels than are supported."""
    if n_labels > MAX_LABELS:
        raise ValueError(f"{n_labels} classes; at most {MAX_LABELS} are supported.")


def label_array(labels, dtype=None):
    """Array of some labels.

    Parameters
    ----------
    labels : list
        All str or all int.
    dtype : dtype, default=None
        Of the array. By default, numpy's choice, or object if that would change a label: numpy
        drops trailing NUL characters, and makes floats of integers beyond 64 bits.

    Returns
    -------
    array : ndarray of shape (n_labels,)
    """
    array = np.array(labels, dtype=dtype)
    if dtype is None and (array.dtype.kind == "f" or array.tolist() != labels):
        array = np.array(labels, dtype=object)
    return array


def sorted_classes(classes):
    """Distinct labels that a user has given, sorted.

    Parameters
    ----------
    classes : array-like of shape (n_classes,)

    Returns
    -------
    classes : ndarray of shape (n_classes,)

    Raises
    ------
    ValueError
        If they are no collection, or labels are not all strings or all numbers.
    """
    if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
        raise ValueError(f"classes is {short_repr(classes)}; expected a list of all labels.")
    if hasattr(classes, "to_numpy"):
        classes = classes.to_numpy()
    if not isinstance(classes, np.ndarray):
        classes = list(classes)
        if all(isinstance(label, str) for label in classes):
            return label_array(sorted(map(str.__str__, set(classes))))
    labels = np.ravel(classes).tolist() if isinstance(classes, np.ndarray) else classes
    kind = str if isinstance(_first_label(labels), str) else (Real, np.bool_)
    for label in labels:
        if not isinstance(label, kind) or label != label:
            raise ValueError(
                f"classes has {short_repr(label)}; expected all labels, which are either strings "
                "or integers, without None."
            )
    return np.unique(classes)


def _flatten_rows(y, offsets, name, partial):
    """Labels of sequences of length one, and their dtype, by scikit-learn's rules."""
    given = y if isinstance(y, (list, tuple)) else []
    if given and all(isinstance(label, str) for label in given):
        y = label_array(list(given))
    y = column_or_1d(y, warn=True)
    check_count(y, len(offsets) - 1, name)
    labels = y.tolist()
    if y.dtype == object:
        _check_label_types(labels, offsets, partial, name)
        return labels, object if isinstance(_first_label(labels), str) else None
    if any(isinstance(label, str) for label in given):
        # numpy has converted everything else to strings.
        _check_label_types(given, offsets, partial, name)
    check_classification_targets(y)
    return labels, y.dtype


def _flatten_sequences(y, offsets, name, partial):
    """Labels of all sequences, concatenated, and their dtype: None, for numpy to choose."""
    labels = []
    lists = _label_lists(y, len(offsets) - 1, name)
    for i, (sequence, length) in enumerate(zip(lists, np.diff(offsets).tolist(), strict=True)):
        if len(sequence) != length:
            counts = {"n": length, "n_labels": len(sequence)}
            raise DataError("{place} has {n} tokens, but {n_labels} labels.", i, **counts)
        labels.extend(sequence)
    _check_label_types(labels, offsets, partial, name)
    return labels, None


def _label_lists(y, n_sequences, name):
    if isinstance(y, (str, bytes, Mapping, AbstractSet)) or not isinstance(y, Iterable):
        raise ValueError(f"{name} is {short_repr(y)}; expected a list of label sequences.")
    y = as_list(y.to_numpy() if is_frame(y) else y)
    check_count(y, n_sequences, name)
    lists = []
    for i, sequence in enumerate(y):
        sequence = as_list(sequence)
        if isinstance(sequence, (str, bytes)) or not isinstance(sequence, Sequence):
            raise DataError(
                "{place}: its labels must be a list with one label for each token, got {labels}.",
                i,
                labels=short_repr(sequence),
            )
        lists.append(list(sequence))
    return lists


def labels_to_split(X, y, *, is_read=True):
    """Labels of each sequence, checked before an estimator splits X and y into folds.

    Parameters
    ----------
    X : sequences of tokens
        What the estimator inside takes.
    y : sequences of labels
        None where a label is unknown.
    is_read : bool, default=True
        False if steps of a pipeline may read X first, so that it need not be in a format of the
        taggers.

    Returns
    -------
    labels : list of list
        A label for each row in a list of its own, if X has two dimensions.

    Raises
    ------
    ValueError
        As a tagger's `fit` does, as far as that can be told before X is read.
    """
    format = _format_to_split(X, is_read)
    n_sequences = _num_samples(X)
    if n_sequences == 0:
        raise DataError("Found an empty batch: at least one {sequence} is required.")
    if y is None:
        raise ValueError("This tagger requires y to be passed, but the target y is None.")
    if format is Format.ROWS:
        labels, _ = _flatten_rows(y, np.arange(n_sequences + 1), "y", True)
        return [[label] for label in labels]
    lists = _label_lists(y, n_sequences, "y")
    offsets = to_offsets(list(map(len, lists)))
    if is_read:
        lengths = [_num_samples(sequence) for sequence in X]
        offsets = to_offsets(lengths)
        _flatten_sequences(lists, offsets, "y", True)
    _check_label_types(list(chain.from_iterable(lists)), offsets, True, "y")
    return lists


def _format_to_split(X, is_read):
    """Format of X; None if it is in none of those that taggers read."""
    if not is_read and (X is None or isinstance(X, (str, bytes)) or not hasattr(X, "__len__")):
        raise ValueError(f"X is {short_repr(X)}; expected a batch: a list of sequences.")
    try:
        return read_format(X)[0]
    except ValueError:
        if is_read:
            raise
        return None


def as_list(y):
    """List of the elements of an array, series or iterator; anything else as it is."""
    for name in ("tolist", "to_list"):
        if hasattr(y, name):
            return getattr(y, name)()
    return list(y) if isinstance(y, Iterator) else y


def check_count(y, n_sequences, name):
    if len(y) != n_sequences:
        raise ValueError(f"X has {n_sequences} sequences, but {name} has labels for {len(y)}.")


def _first_label(labels):
    return next((label for label in labels if label is not None), None)


def _check_label_types(labels, offsets, partial, name):
    """Raise an error unless labels are all str or all int, or None if `partial`."""
    allowed = str if isinstance(_first_label(labels), str) else (Integral, np.bool_)
    # Types are few, and a set of them is made at the speed of C.
    wrong = {kind for kind in set(map(type, labels)) if not issubclass(kind, allowed)}
    wrong -= {type(None)} if partial else set()
    if not wrong:
        if allowed is not str and NO_LABEL in labels:
            remedy = (
                "which CRFTagger takes with solver='lbfgs' or solver='sgd'. Others need X and y "
                "without such tokens."
            )
            if name == "known":
                remedy = "which stands for unknown labels."
            raise DataError(
                f"{{place}}: {NO_LABEL} stands for no label; skstruct.datasets.labels_from_ids "
                "replaces it by None,",
                *position(offsets, labels.index(NO_LABEL)),
                remedy=remedy,
            )
        return
    row = next(row for row, label in enumerate(labels) if type(label) in wrong)
    if isinstance(labels[row], (str, Integral, np.bool_)):
        complaint = f"is not {'a string' if allowed is str else 'an integer'} like the first label"
    elif labels[row] is None:
        complaint = "stands for no label; leave such tokens out of X and y"
    else:
        complaint = "is neither a string nor an integer"
        complaint += "; pass None where a label is unknown" if name == "known" else ""
    label, at = short_repr(labels[row]), position(offsets, row)
    raise DataError(f"{{place}}: label {{label}} {complaint}.", *at, label=label)


def shape_predictions(values, offsets, format):
    """Bring predictions into the shape that matches the format of X.

    Parameters
    ----------
    values : ndarray of shape (n_rows, ...)
        One prediction for each token: labels, or marginals.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    format : Format
        Format of X.

    Returns
    -------
    predictions : ndarray
        ``values`` itself for rows, of shape ``(n_sequences, length, ...)`` for a grid, else an
        object array of lists of labels or of 2-D arrays of marginals.
    """
    if format is Format.ROWS:
        return values
    if format is Format.GRID:
        return values.reshape(len(offsets) - 1, offsets[1], *values.shape[1:])
    return split_sequences(values.tolist() if values.ndim == 1 else values, offsets)


def split_sequences(values, offsets):
    """Object array of the values of each sequence, from a list or array of all values."""
    parts, bounds = np.empty(len(offsets) - 1, dtype=object), offsets.tolist()
    for i in range(len(parts)):
        parts[i] = values[bounds[i] : bounds[i + 1]]
    return parts
