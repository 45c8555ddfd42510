"""Labellings of the same sequences by several annotators, on their way in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import NamedTuple

import numpy as np

from skstruct.frames import is_frame
from skstruct.input.formats import (
    Format,
    as_list,
    as_lists,
    check_count,
    flatten_labels,
    label_array,
)
from skstruct.matrices import to_offsets
from skstruct.utils.messages import DataError, position, short_repr


class Labelled(NamedTuple):
    """Labellings of a sequence by one annotator."""

    sequence: int
    annotator: object  # name, or number
    labels: object


class GivenLabels(NamedTuple):
    """All labels that annotators have given."""

    annotators: np.ndarray  # names, sorted, or numbers
    rows: np.ndarray  # number of the token of each label
    numbers: np.ndarray  # number of its annotator
    labels: list
    dtype: object  # of the classes; None for numpy to choose
    offsets: np.ndarray  # of the sequences

    def encode(self, classes=None):
        """Classes, by default those that occur, and codes of the labels; a ValueError as of y."""
        if classes is None and not self.labels:
            raise ValueError("y has no label: nobody has labelled a token of a weight.")
        if classes is None:
            classes = label_array(sorted(set(self.labels)), self.dtype)
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        lacking = next((n for n, label in enumerate(self.labels) if label not in code_of), None)
        if lacking is not None:
            raise DataError(
                "{place}: label {label} of annotator {name} is not among the classes.",
                *position(self.offsets, self.rows[lacking]),
                label=short_repr(self.labels[lacking]),
                name=short_repr(self.annotators[self.numbers[lacking]]),
            )
        return classes, np.array([code_of[label] for label in self.labels], np.int64)

    def numbers_among(self, annotators):
        """Numbers of the annotators of the labels in an array of them; a ValueError for others."""
        number = {name: i for i, name in enumerate(annotators.tolist())}
        for name in self.annotators.tolist():
            if name not in number:
                raise ValueError(
                    f"Annotator {short_repr(name)} has labelled nothing that was learnt from; "
                    f"known are {short_repr(annotators.tolist())}."
                )
        return np.array([number[name] for name in self.annotators.tolist()], np.int64)[self.numbers]


def to_read(y):
    """Labels with lists in place of iterators, and an array in place of a data frame."""
    return as_lists(y.to_numpy() if is_frame(y) else y)


def are_several(y, of_rows):
    """Tell labellings by several annotators from plain labels.

    Parameters
    ----------
    y : object
        As given.
    of_rows : bool
        X has two dimensions, so that a labelling is a label.
    """
    if isinstance(y, (str, bytes, Mapping)) or not isinstance(y, Iterable):
        return False
    if isinstance(y, np.ndarray) and y.dtype != object:
        return y.ndim > (1 if of_rows else 2)
    items = map(_listed, y)
    if of_rows:
        return any(isinstance(item, (list, Mapping)) for item in items)
    return any(
        item is None
        or isinstance(item, Mapping)
        or (isinstance(item, list) and any(isinstance(_listed(part), list) for part in item))
        for item in items
    )


def labellings(y, of_rows, counts=None):
    """Yield all labellings by several annotators, sequence by sequence.

    Parameters
    ----------
    y : iterable
        As given.
    of_rows : bool
        As of `are_several`.
    counts : ndarray of bool of shape (n_sequences,), default=None
        False for sequences whose labellings are not looked at.

    Raises
    ------
    ValueError
        If an item of y is no dict of labellings, and no list with one for each annotator.
    """
    n_annotators = None
    for i, item in enumerate(map(_listed, y)):
        if item is None or not (counts is None or counts[i]):
            continue
        if not isinstance(item, (list, Mapping)):
            raise _no_labellings(i, item)
        pairs = item.items() if isinstance(item, Mapping) else enumerate(item)
        found = [Labelled(i, name, _listed(labels)) for name, labels in pairs]
        for one in found:
            if one.labels is not None and (
                isinstance(one.labels, Mapping) or isinstance(one.labels, list) == of_rows
            ):
                raise _no_labellings(i, item)
        if isinstance(item, list):
            n_annotators = len(item) if n_annotators is None else n_annotators
            if len(item) != n_annotators:
                raise DataError(
                    "{place} has labellings for {n} annotators, but others for {expected}. Pass "
                    "None for who has not labelled it, or dicts by name.",
                    i,
                    n=len(item),
                    expected=n_annotators,
                )
        yield from (one for one in found if one.labels is not None)


def _no_labellings(i, item):
    fact = "{place}: expected a dict of labellings by annotator, or a list of one for each, "
    return DataError(fact + "got {item}.", i, item=short_repr(item))


def _listed(values):
    """List as `as_list` makes it, also of a tuple."""
    values = as_list(values)
    return list(values) if isinstance(values, tuple) else values


def read_annotators(y, offsets, format, weight=None):
    """Read labellings by several annotators, or plain labels as those of a single one.

    Parameters
    ----------
    y : object
        As given.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence of X starts.
    format : Format
        That of X.
    weight : ndarray of shape (n_sequences,), default=None
        Weights of sequences; labels of those with weight 0 are not read.

    Returns
    -------
    given : GivenLabels

    Raises
    ------
    ValueError
        If y does not fit X; the message names annotator, sequence and token.
    """
    if y is None:
        raise ValueError("This tagger requires y to be passed, but the target y is None.")
    of_rows, counts = format is Format.ROWS, None if weight is None else weight > 0
    if not are_several(y, of_rows):
        labels, dtype = flatten_labels(y, offsets, format, "y", partial=True)
        every = np.array([label is not None for label in labels])
        if counts is not None:
            every &= np.repeat(counts, np.diff(offsets))
        rows = np.flatnonzero(every)
        given = np.arange(1), rows, np.zeros(len(rows), np.int64), [labels[row] for row in rows]
        return GivenLabels(*given, dtype, offsets)
    check_count(y, len(offsets) - 1, "y")
    y = list(map(_listed, y))
    by_annotator = {}
    for one in labellings(y, of_rows, counts):
        by_annotator.setdefault(one.annotator, []).append(one)
    n_listed = max((len(item) for item in y if isinstance(item, list)), default=0)
    names = _names(by_annotator, n_listed)
    parts = [
        _read_one(name, by_annotator.get(name, []), offsets, format) for name in names.tolist()
    ]
    numbers = np.repeat(np.arange(len(parts)), [len(labels) for _, labels in parts])
    rows = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in parts)])
    flat = [label for _, labels in parts for label in labels]
    for number, (_, labels) in enumerate(parts):
        if labels and isinstance(labels[0], str) != isinstance(flat[0], str):
            raise ValueError(
                f"Labels of annotator {short_repr(names[number])}, such as {labels[0]!r}, are not "
                f"of the type of {flat[0]!r}: all must be strings, or all integers."
            )
    return GivenLabels(names, rows, numbers, flat, None, offsets)


def _names(by_annotator, n_listed):
    """Names of the annotators, sorted; numbers where y has lists."""
    if n_listed:
        if not all(isinstance(name, Integral) and name < n_listed for name in by_annotator):
            raise ValueError("y has both lists and dicts: pass dicts by name for all sequences.")
        return np.arange(n_listed)
    names = list(by_annotator)
    kind = str if names and isinstance(names[0], str) else Integral
    for name in names:
        if not isinstance(name, kind):
            raise ValueError(
                f"Annotator {short_repr(name)} has a name of another type: all must be strings, or "
                "all integers."
            )
    return label_array(sorted(names))


def _read_one(name, given, offsets, format):
    """Rows and labels of all tokens that an annotator has labelled."""
    sequences = np.array([one.sequence for one in given], np.int64)
    lengths = np.diff(offsets)[sequences]
    try:
        labels = [one.labels for one in given]
        flat, _ = flatten_labels(labels, to_offsets(lengths), format, "y", partial=True)
    except ValueError as error:
        error = DataError.of(error)
        error.part = f"Annotator {short_repr(name)}"
        if error.sequence is not None:
            error.sequence = int(sequences[error.sequence])
        raise error from None
    rows = np.repeat(offsets[sequences] - to_offsets(lengths)[:-1], lengths) + np.arange(len(flat))
    known = [n for n, label in enumerate(flat) if label is not None]
    return rows[known].astype(np.int64), [flat[n] for n in known]
