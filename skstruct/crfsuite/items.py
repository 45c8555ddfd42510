"""Input and output of the drop-in classes: tokens, labels, and lists of labels."""

import sys
from collections.abc import Iterable, Iterator, Mapping, MappingView
from itertools import chain

import numpy as np

from skstruct.features.tokens import iterate_level, read_tokens
from skstruct.utils.messages import DataError, short_repr
from skstruct.utils.persistence import set_module

_TAKES = (
    "X is a list of sequences of tokens, and y has a list for each, with one label for each token. "
    "CRFTagger takes a matrix and one label a row, too."
)
# Not numpy's number, which an integer beyond all floats cannot be compared with.
_LARGEST = sys.float_info.max


@set_module("skstruct.crfsuite")
class ItemSequence:
    """Tokens of a sequence, read once, with the interface of ``pycrfsuite.ItemSequence``.

    Parameters
    ----------
    pyseq : list of tokens
        Feature dicts or lists of attribute strings, without arrays.

    Examples
    --------
    >>> from skstruct.crfsuite import ItemSequence
    >>> ItemSequence([{"word": "the", "next": {"length": 3}}, ["title"]]).items()
    [{'word:the': 1.0, 'next:length': 3.0}, {'title': 1.0}]
    """

    def __init__(self, pyseq):
        if isinstance(pyseq, ItemSequence):
            self._items = pyseq._items
            return
        tokens = list(iterate_level(pyseq, "The sequence"))
        names, lengths, positions, values = read_tokens(tokens, _LARGEST, 0, _refuse_array)
        numbers = [1.0] * len(names)
        for position, value in zip(positions, values, strict=True):
            numbers[position] = float(value)
        pairs = zip(names, numbers, strict=True)
        self._items = [[next(pairs) for _ in range(length)] for length in lengths]

    def items(self):
        """Return the attributes of each token with their values, of repeated ones the last.

        Returns
        -------
        items : list of dict of str to float
        """
        return [dict(item) for item in self._items]

    def __iter__(self):
        # All taggers take it. Values of the same attribute add up, as in CRFsuite.
        for item in self._items:
            token = {}
            for name, value in item:
                token[name] = token.get(name, 0.0) + value
            yield token

    def __len__(self):
        return len(self._items)

    def __repr__(self):
        return f"<ItemSequence of size {len(self)}>"


def _refuse_array(t, name, array):
    raise ValueError(
        f"feature {name!r} is an array, which an ItemSequence does not take. Pass the "
        "tokens themselves."
    )


class LabelLists(np.ndarray):
    """Array of lists of labels that compares as the array of sklearn-crfsuite.

    Where all sequences have the same length, ``sklearn_crfsuite.CRF.predict`` returns an array
    with a row for each sequence. ``==`` and ``!=`` compare as if this were such an array.
    """

    def __eq__(self, other):
        return _comparable(self) == _comparable(other)

    def __ne__(self, other):
        return _comparable(self) != _comparable(other)

    __hash__ = None

    def __repr__(self):
        return repr(self.view(np.ndarray))


def _comparable(array):
    """Plain array, with a row for each sequence where all are lists of the same length."""
    if not isinstance(array, np.ndarray):
        return array
    array = array.view(np.ndarray)
    is_flat = array.ndim == 1 and array.size and array.dtype == object
    if not is_flat or not all(isinstance(item, list) for item in array):
        return array
    return np.array(array.tolist()) if len({len(item) for item in array}) == 1 else array


def as_text(label):
    """Label as plain text, also if it is given in UTF-8; other objects as they are."""
    if not isinstance(label, bytes):
        return str.__str__(label) if isinstance(label, str) else label
    try:
        return label.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"The label {label!r} is not valid UTF-8.") from None


def as_label_lists(y, name, first=0):
    """Tuples of labels, as text, one for each sequence; a ValueError for anything else.

    Parameters
    ----------
    y : iterable of iterables
    name : str
        Name of y in messages.
    first : int, default=0
        Number of the first sequence in messages.
    """
    rows = enumerate(_labels_in(y, name, "a list of lists of labels"), first)
    # Tuples: that many lists would have the garbage collector traverse all tokens in memory once
    # more, which takes up to a tenth of a fit.
    rows = [_labels_in(row, f"{name}[{i}]", "a list of labels") for i, row in rows]
    kinds = set(map(type, chain.from_iterable(rows)))
    if kinds <= {str}:
        return rows
    for i, row in enumerate(rows, first):
        for t, label in enumerate(row):
            if not isinstance(label, (str, bytes)):
                advice = " Leave tokens without a label out of X and y." if label is None else ""
                fact = f"{{place}}: labels must be strings; got {{label}}.{advice}"
                raise DataError(fact, i, t, label=short_repr(label))
    return [tuple(map(as_text, row)) for row in rows]


def _labels_in(value, name, expected):
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ValueError(f"{name} is {short_repr(value)}; expected {expected}. {_TAKES}")
    return tuple(value)


def as_tokens(xseq):
    """Tokens of a sequence or `ItemSequence`."""
    if type(xseq) is list:
        return xseq
    if isinstance(xseq, ItemSequence):
        return list(xseq)
    # By its name: python-crfsuite, which has one as well, need not be installed.
    is_read = any(kind.__name__ == "ItemSequence" for kind in type(xseq).__mro__)
    return xseq.items() if is_read else xseq


def read_sequence(xseq):
    """Matrix of a sequence, or the list of its tokens, which may come from any iterable."""
    if type(xseq) is list:
        # What is below would take a thirtieth of the time to tag a sequence.
        return xseq.copy()
    xseq = as_tokens(xseq)
    if len(getattr(xseq, "shape", ())) > 1:
        return xseq
    return list(iterate_level(xseq, "The sequence"))


def snapshot(xseq, i):
    """Deep copy of the tokens of sequence ``i``, which the caller may change afterwards."""
    if getattr(getattr(xseq, "dtype", None), "kind", "O") in "biufc":
        raise DataError(
            "{place} is a matrix, whose features have no names for the model file. Pass feature "
            "dicts or lists of attribute strings.",
            i,
        )
    xseq = list(iterate_level(as_tokens(xseq), i))
    try:
        return list(map(_snapshot, xseq))
    except RecursionError:
        raise DataError("{place}: the dicts of a token are nested too deeply.", i) from None


def check_tokens(tokens, i):
    """Raise a ValueError that names sequence ``i`` if one of its tokens is none."""
    read_tokens(tokens, _LARGEST, i, lambda *array: None)


def _snapshot(value):
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Mapping):
        return {name: _snapshot(of_name) for name, of_name in list(value.items())}
    return copied_token(value)


def copied_token(token):
    """Shallow copy of a token, which can be read several times."""
    if isinstance(token, (dict, list, set)):
        return token.copy()
    # Anything else is left to the reader of tokens.
    return list(token) if isinstance(token, (Iterator, MappingView)) else token


def as_sequences(X, name="X"):
    """Sequences of tokens, also if some are given as an `ItemSequence`."""
    if hasattr(X, "shape"):
        return X
    return list(map(as_tokens, iterate_level(X, name, "{sequence}s")))


def count_sequences(X):
    """Number of sequences, or of the tokens of one; a sparse matrix has no ``len``."""
    return X.shape[0] if hasattr(X, "shape") else len(X)
