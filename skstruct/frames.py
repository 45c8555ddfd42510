"""Data frames with one token a row: to the rows of a batch, and back from its predictions."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from itertools import chain, compress, count, pairwise
from numbers import Real

import numpy as np
import scipy.sparse as sp

from skstruct.matrices import hstack, refuse_times, to_offsets
from skstruct.utils.messages import DataError, short_repr

_KINDS = "expected strings, numbers or bools"
_FROM_FRAME = 'SequenceBatch.from_frame(X, group="...") reads frames with one token a row'


def is_frame(X):
    """Return True for a data frame of pandas or polars, or one that looks like them."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def names_of(columns):
    """Names of the columns of a data frame, as scikit-learn keeps them: None unless all are str."""
    return list(columns) if all(isinstance(name, str) for name in columns) else None


def same_columns(frames, first=None):
    """Check that data frames have the same columns.

    Parameters
    ----------
    frames : iterable of (int, data frame)
        Numbers of sequences, and their tokens.
    first : (int, list), default=None
        Number and columns of an earlier one.

    Returns
    -------
    first : (int, list) or None
        Number and columns of the first one.
    """
    for i, frame in frames:
        columns = list(frame.columns)
        first = first or (i, columns)
        if columns != first[1]:
            raise DataError(
                f"The columns of {{sequence}} {i} differ from those of {{sequence}} {first[0]}.", i
            )
    return first


def columns_of_sequences(sequences):
    """Names of the columns if sequences are data frames, which must have the same; else None.

    A ValueError names a column of strings: such frames are no matrices.
    """
    frames = [(i, frame) for i, frame in enumerate(sequences) if is_frame(frame)]
    first = same_columns(frames)
    for i, frame in frames:
        name = _column_of_strings(frame)
        if name is not None:
            raise DataError(
                "{place} is a data frame whose column {name!r} has strings. Pass its {token}s as "
                'dicts, frame.to_dict("records") (polars: to_dicts()), or all as one frame to '
                "SequenceBatch.from_frame.",
                i,
                name=name,
            )
    return None if first is None else names_of(first[1])


def _column_of_strings(frame):
    """Name of the first column with a string; None without any."""
    for name in frame.columns:
        values = frame[name].to_numpy()
        if values.dtype.kind in "OUST" and any(isinstance(value, str) for value in values.flat):
            return name
    return None


def refuse_frame(X):
    """Raise an error for a data frame where sequences are expected."""
    if is_frame(X):
        raise ValueError(
            f"X is a data frame; expected a list of sequences. {_FROM_FRAME}, and a pandas or "
            "polars series of lists is a list of sequences."
        )


def refuse_table(value, name):
    """Raise an error for a data frame as a parameter: the labels of its axes would be ignored."""
    if is_frame(value):
        raise ValueError(
            f"{name} is a data frame, whose row and column labels have no meaning here; pass "
            f"{name}.loc[labels, labels].to_numpy(), where `labels` are the sorted labels."
        )


def check_rows(X):
    """Check a data frame whose rows are to be sequences of length one.

    Raises
    ------
    ValueError
        If a column has strings, dates or durations.

    Warns
    -----
    UserWarning
        Otherwise: most frames have one token a row, and longer sequences.
    """
    for name in X.columns:
        refuse_times(X[name].to_numpy(), f"Column {name!r} of X")
    name = _column_of_strings(X)
    if name is not None:
        raise ValueError(
            f"Column {name!r} of X has strings, and each row would be a sequence of length "
            f"one. {_FROM_FRAME}."
        )
    warnings.warn(
        f"Each row of the data frame X is a sequence of length one. {_FROM_FRAME}, as longer "
        "sequences; pass X.to_numpy() if each row is a sequence.",
        UserWarning,
        stacklevel=10,
    )


class FrameConversions:
    """Mixin of `SequenceBatch`: batches of data frames, and data frames of predictions."""

    @classmethod
    def from_frame(cls, frame, group, *, columns=None, label=None, feature_names=None):
        """Make a batch of a data frame of pandas or polars that has one token a row.

        Rows with the same value in the column `group` are a sequence. Sequences come in the order
        of their first rows, and rows keep their order. A sequence may be scattered over the frame.

        Parameters
        ----------
        frame : data frame of shape (n_rows, n_columns)
            One row for each token.
        group : str or list of str
            The column that tells sequences apart, such as the number of the document; or several
            columns, whose combinations do.
        columns : list of str, default=None
            The columns with features. By default, all but `group` and `label`. Numbers and bools
            become one feature with the name of the column. Strings become one feature for each
            value, ``"token:the"``; where a string or a bool is missing, the token has no such
            feature. In a column where bools are missing, False is kept as a zero that is stored.
        label : str, default=None
            The column of the labels: strings or integers. A missing label is None, for taggers
            that learn from partly labelled sequences.
        feature_names : array-like of str, default=None
            The features to make, such as ``tagger.feature_names_in_`` for new tokens. Values that
            are not among them are ignored. By default, those that occur in the frame.

        Returns
        -------
        batch : SequenceBatch
            With feature names. Dense if all features are numbers or bools, else sparse.
        labels : list of list of str or int
            Labels of each sequence. Only if `label` is given.

        Raises
        ------
        ValueError
            If the frame has no rows or lacks a column, a value is of another type, a number or a
            group is missing, two columns make features of the same name, or `feature_names` has
            features of other columns.

        See Also
        --------
        SequenceBatch.to_frame : Labels or probabilities as columns beside the frame.

        Examples
        --------
        >>> import pandas as pd
        >>> from skstruct import CRFTagger, SequenceBatch
        >>> frame = pd.DataFrame({
        ...     "doc_id": [1, 1, 2, 2],
        ...     "token": ["the", "cat", "the", "dog"],
        ...     "label": ["DET", "NOUN", "DET", "NOUN"],
        ... })
        >>> X, y = SequenceBatch.from_frame(frame, "doc_id", label="label")
        >>> X.feature_names
        array(['token:cat', 'token:dog', 'token:the'], dtype=object)
        >>> y
        [['DET', 'NOUN'], ['DET', 'NOUN']]
        >>> tagger = CRFTagger().fit(X, y)
        >>> SequenceBatch.to_frame(tagger.predict(X), frame, "doc_id")
          predicted
        0       DET
        1      NOUN
        2       DET
        3      NOUN
        """
        order, offsets = _grouped(frame, group)
        if columns is None:
            other = [label, *_as_names(group)]
            columns = [name for name in frame.columns if name not in other]
        X, names = _read_features(frame, _as_names(columns), feature_names)
        # False is not the same as missing.
        batch = cls(X[order], offsets, feature_names=names, keep_zeros=True)
        if label is None:
            return batch
        labels = _read_labels(frame, label)
        labels = list(map(labels.__getitem__, order.tolist()))
        return batch, [labels[a:b] for a, b in pairwise(offsets.tolist())]

    @staticmethod
    def to_frame(values, frame, group, *, names="predicted"):
        """Put labels or probabilities of sequences into a data frame like the one of the tokens.

        Parameters
        ----------
        values : sequence of array-like
            The output of `predict` or `predict_proba` for ``SequenceBatch.from_frame(frame,
            group)``.
        frame : data frame of shape (n_rows, n_columns)
            The frame of the tokens, of pandas or polars.
        group : str or list of str
            The column or columns that tell sequences apart, as in `from_frame`.
        names : str or list of str, default="predicted"
            Name of the column of the labels, or the names of the columns of probabilities, such
            as ``tagger.classes_``.

        Returns
        -------
        predictions : data frame of shape (n_rows, n_names)
            A frame of the same library, with the rows in the order of `frame` and, in pandas, its
            index.

        Raises
        ------
        ValueError
            If the sequences of `values` and of the frame differ in number or length, or
            `names` has not one name for each column.

        Examples
        --------
        >>> import pandas as pd
        >>> from skstruct import SequenceBatch
        >>> frame = pd.DataFrame({"doc_id": [1, 2, 1], "token": ["the", "a", "cat"]})
        >>> frame.join(SequenceBatch.to_frame([["DET", "NOUN"], ["DET"]], frame, "doc_id"))
           doc_id token predicted
        0       1   the       DET
        1       2     a       DET
        2       1   cat      NOUN
        """
        order, offsets = _grouped(frame, group)
        lengths, values = np.diff(offsets), list(values)
        if len(values) != len(lengths):
            raise ValueError(
                f"The frame has {len(lengths)} sequences, but there are predictions for "
                f"{len(values)}."
            )
        for i, (sequence, length) in enumerate(zip(values, lengths, strict=True)):
            if len(sequence) != length:
                raise ValueError(
                    f"Sequence {i} has {length} rows in the frame, but {len(sequence)} predictions."
                )
        rows = np.argsort(order)
        names = list(map(str, _as_names(names)))
        if np.ndim(values[0]) == 2:
            found = list(np.concatenate(values)[rows].T)
        else:
            labels = list(chain.from_iterable(values))
            found = [list(map(labels.__getitem__, rows.tolist()))]
        if len(names) != len(found):
            raise ValueError(f"names has {len(names)} name(s), but there are {len(found)} columns.")
        index = {"index": frame.index} if hasattr(frame, "index") else {}
        return type(frame)(dict(zip(names, found, strict=True)), **index)


def _as_names(names):
    return list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]


def _column(frame, name):
    """A column of a frame, and where it has no value."""
    if not isinstance(name, Hashable) or name not in frame.columns:
        raise ValueError(f"The frame has no column {name!r}; it has {list(frame.columns)}.")
    column = frame[name]
    if len(column.shape) != 1:
        raise ValueError(f"The frame has several columns with the name {name!r}.")
    missing = column.isna() if hasattr(column, "isna") else column.is_null()
    return column, np.asarray(missing, dtype=bool)


def _grouped(frame, group):
    """Order that puts the rows of each group together, and the offsets of the groups."""
    if not is_frame(frame):
        raise ValueError(f"Expected a data frame of pandas or polars, got {type(frame).__name__}.")
    if frame.shape[0] == 0:
        raise ValueError("The data frame has no rows: at least one token is required.")
    keys = []
    for name in _as_names(group):
        column, missing = _column(frame, name)
        if missing.any():
            raise ValueError(f"Row {int(np.argmax(missing))}: the group {name!r} is missing.")
        keys.append(column.to_numpy().tolist())
    if not keys:
        raise ValueError("group is empty; expected the name of a column, or several.")
    number = defaultdict(count().__next__)
    keys = keys[0] if len(keys) == 1 else zip(*keys, strict=True)
    codes = np.fromiter(map(number.__getitem__, keys), np.int64, frame.shape[0])
    return np.argsort(codes, kind="stable"), to_offsets(np.bincount(codes))


def _read_features(frame, columns, wanted):
    """Matrix of the features in columns, in the order of the rows, and their names."""
    if not columns:
        raise ValueError("The frame has no column with features: pass columns.")
    read, wanted = {}, None if wanted is None else list(wanted)
    for name in columns:
        if not isinstance(name, str):
            raise ValueError(f"The name {name!r} of a column is not a string.")
        read[name] = _read_feature(frame, name, wanted)
    names = list(chain.from_iterable(found for _, found in read.values()))
    twice = next((name for name, n in Counter(names).items() if n > 1), None)
    if twice is not None:
        raise ValueError(f"Two columns make the feature {twice!r}; rename one of them.")
    X = hstack([block for block, _ in read.values()])
    if wanted is None:
        return X, names
    texts = tuple(f"{name}:" for name, (block, _) in read.items() if sp.issparse(block))
    position = dict(zip(names, range(len(names)), strict=True))
    for name in wanted:
        if name not in position and not (isinstance(name, str) and name.startswith(texts)):
            message = f"The columns {columns} do not have the feature {name!r}."
            for column in names:
                if str(name).startswith(f"{column}:"):
                    message += f" The values of {column!r} are not strings: convert them."
            raise ValueError(message)
    # The column after all others, of zeros, is for strings that do not occur.
    columns = [position.get(name, len(names)) for name in wanted]
    return hstack([X, np.zeros((X.shape[0], 1))])[:, columns], wanted


def _read_feature(frame, name, wanted):
    """Matrix of the features of one column, and their names."""
    column, missing = _column(frame, name)
    values = column.to_numpy()
    if missing.all() and wanted is not None and name not in wanted:
        # Readers of files take a column without values for one of numbers.
        return sp.csr_matrix((len(values), 0)), []
    if values.dtype.kind in "mM":
        raise ValueError(f"The column {name!r} has dates or times; {_KINDS}: convert them.")
    if values.dtype.kind in "iuf":
        return _as_numbers(values, missing, name)
    if values.dtype.kind == "b" and not missing.any():
        return values[:, None].astype(np.float64), [name]
    rows, present = np.flatnonzero(~missing), list(compress(values.tolist(), ~missing))
    kinds = set(map(type, present))
    if kinds and all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        entries = np.array(present, float), (rows, np.zeros(len(rows), np.int64))
        return sp.csr_matrix(entries, shape=(len(values), 1)), [name]
    if kinds and all(issubclass(kind, Real) for kind in kinds):
        return _as_numbers(values, missing, name)
    for row, value in zip(rows.tolist(), present, strict=True):
        if not isinstance(value, str):
            raise ValueError(f"Row {row}: the value of {name!r} is {short_repr(value)}; {_KINDS}.")
    distinct = sorted(set(present))
    code = dict(zip(distinct, range(len(distinct)), strict=True))
    codes = np.fromiter(map(code.__getitem__, present), np.int64, len(present))
    entries, shape = (np.ones(len(codes)), (rows, codes)), (len(values), len(distinct))
    return sp.csr_matrix(entries, shape=shape), [f"{name}:{value}" for value in distinct]


def _as_numbers(values, missing, name):
    if missing.any():
        values = np.where(missing, np.nan, values)
    numbers = values.astype(np.float64)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"Row {row}: the number {name!r} is missing or infinite; fill in a number, or make "
            "the column one of strings, which may be missing."
        )
    return numbers[:, None], [name]


def _read_labels(frame, name):
    """Labels in the order of the rows, None where they are missing."""
    column, missing = _column(frame, name)
    labels = [None if lacks else value for value, lacks in zip(column, missing, strict=True)]
    if column.to_numpy().dtype.kind == "f":
        # Integers beside missing values are floats in pandas.
        for row, label in enumerate(labels):
            if label is not None and not float(label).is_integer():
                raise ValueError(
                    f"Row {row}: label {short_repr(label)} is neither a string nor an integer."
                )
        labels = [None if label is None else int(label) for label in labels]
    return labels
