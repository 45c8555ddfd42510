"""From sequences of tokens to integer codes of their columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import chain, count, islice
from operator import itemgetter
from reprlib import repr as short_repr

import numpy as np

__all__ = ["TokenColumns"]

# Sequences that are in memory as lists of strings at a time.
_CHUNK = 4096
_SHAPE = (
    "A batch is a list of sequences, a sequence a list of tokens (or a data frame), and a token "
    "a string or a tuple of columns."
)


class TokenColumns:
    """Columns of the tokens of a batch, each value a number.

    All columns share one numbering, in the order of first occurrence.

    Parameters
    ----------
    X : iterable of sequences
        Read once; only the distinct values are kept.
    wanted : callable
        Called with the number of columns, once it is known; returns the columns to number.

    Attributes
    ----------
    codes : dict of int to ndarray of shape (n_rows,), dtype int32
        For each column wanted, the number of the value at each token.
    offsets : ndarray of shape (n_sequences + 1,), dtype int64
        Token at which each sequence starts.
    n_columns : int or None
        Columns of a token. None if there is no token.
    """

    def __init__(self, X, wanted):
        self.number = defaultdict(count().__next__)
        self.n_columns = None
        self._wanted = wanted
        self._chunks = {}
        lengths = []
        sequences = _iterate(X)
        while chunk := list(islice(sequences, _CHUNK)):
            lengths += self._read(chunk, len(lengths))
        if not lengths:
            raise ValueError("Found an empty batch: at least one sequence is required.")
        self.offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self.codes = {c: np.concatenate(chunks) for c, chunks in self._chunks.items()}
        del self._chunks

    @property
    def values(self):
        """The distinct values; their places are their numbers."""
        return list(self.number)

    def derive(self, column, function):
        """Numbers of what a function makes of a column; -1 where it returns None.

        The function is called once for each distinct value.
        """
        codes = self.codes[column]
        occurs = np.zeros(len(self.number), bool)
        occurs[codes] = True
        values = self.values
        derived = np.full(len(values), -1, np.int32)
        for code in np.flatnonzero(occurs).tolist():
            result = function(values[code])
            if result is not None:
                derived[code] = self.number[result]
        return derived[codes]

    def _read(self, chunk, first):
        """Number the values of some sequences, the first of which is number `first` of all."""
        if not set(map(type, chunk)) <= {list, tuple}:
            chunk = [_as_tokens(sequence, first + i) for i, sequence in enumerate(chunk)]
        lengths = list(map(len, chunk))
        tokens = list(chain.from_iterable(chunk))
        if tokens:
            rows, columns = self._split_distinct(tokens)
            if columns is None:
                columns = self._split(tokens, lengths, first)
            for c in self._chunks:
                values = _as_strings(columns[c], c, lengths, first)
                codes = np.fromiter(map(self.number.__getitem__, values), np.int32, len(values))
                self._chunks[c].append(codes if rows is None else codes[rows])
        return lengths

    def _split_distinct(self, tokens):
        """Columns of the distinct tokens, and which of them each token is.

        Most tokens occur again and again, and nothing but this look-up is then done for all.
        None and None where some are not plain strings or tuples of strings, or differ in their
        number of columns: then each one needs a look, as 1 and True are equal, but not the same.
        """
        number = defaultdict(count().__next__)
        try:
            rows = np.fromiter(map(number.__getitem__, tokens), np.int32, len(tokens))
        except TypeError:  # lists cannot be looked up
            return None, None
        distinct = list(number)
        types = set(map(type, distinct))
        if types == {str}:
            columns = [distinct]
        elif types == {tuple} and len(set(map(len, distinct))) == 1:
            # Not by zip, whose iterator for each token would set the garbage collector going.
            columns = [list(map(itemgetter(c), distinct)) for c in range(len(distinct[0]))]
        else:
            return None, None
        if any(set(map(type, column)) != {str} for column in columns):
            return None, None
        if self.n_columns is None and columns:
            self._set_width(len(columns))
        return (rows, columns) if len(columns) == self.n_columns else (None, None)

    def _split(self, tokens, lengths, first):
        """Lists of values, one for each column."""
        types = set(map(type, tokens))
        if types == {str}:
            self._check_width(1, tokens[0], 0, lengths, first)
            return [tokens]
        if not types <= {list, tuple}:
            tokens = [_as_columns(token, i, lengths, first) for i, token in enumerate(tokens)]
        self._check_width(len(tokens[0]), tokens[0], 0, lengths, first)
        if set(map(len, tokens)) != {self.n_columns}:
            for i, token in enumerate(tokens):
                self._check_width(len(token), token, i, lengths, first)
        flat = list(chain.from_iterable(tokens))
        return [flat[c :: self.n_columns] for c in range(self.n_columns)]

    def _set_width(self, width):
        self.n_columns = width
        self._chunks = {c: [] for c in self._wanted(width)}

    def _check_width(self, width, token, i, lengths, first):
        """Check that a token has as many columns as the first of all."""
        if self.n_columns is None:
            if width == 0:
                raise ValueError(f"{_place(0, lengths, first)}: the token has no column. {_SHAPE}")
            self._set_width(width)
        if width != self.n_columns:
            raise ValueError(
                f"{_place(i, lengths, first)}: the token {short_repr(token)} has {width} "
                f"column(s), but the first token of all has {self.n_columns}."
            )


def _iterate(X):
    try:
        if not isinstance(X, (str, bytes, Mapping)) and not hasattr(X, "iloc"):
            return iter(X)
    except TypeError:
        pass
    raise ValueError(f"X is {short_repr(X)}; expected a list of sequences. {_SHAPE}")


def _as_tokens(sequence, i):
    """The tokens of a sequence that is neither a list nor a tuple."""
    if hasattr(sequence, "to_numpy"):
        return sequence.to_numpy().tolist()
    if isinstance(sequence, np.ndarray) and sequence.ndim in (1, 2):
        return sequence.tolist()
    try:
        if not isinstance(sequence, (str, bytes, Mapping)):
            return list(sequence)
    except TypeError:
        pass
    raise ValueError(f"Sequence {i} is {short_repr(sequence)}; expected a list of tokens. {_SHAPE}")


def _as_columns(token, i, lengths, first):
    if isinstance(token, (str, int, np.integer, np.bool_)):
        return (token,)
    if isinstance(token, np.ndarray) and token.ndim == 1:
        return token.tolist()
    if isinstance(token, (list, tuple)):
        return token
    raise ValueError(
        f"{_place(i, lengths, first)}: {short_repr(token)} is no token; expected a string or a "
        f"tuple of columns. {_SHAPE}"
    )


def _as_strings(values, column, lengths, first):
    """Values of a column as strings; those that are not need a closer look."""
    if set(map(type, values)) == {str}:
        return values
    return [_as_string(value, i, column, lengths, first) for i, value in enumerate(values)]


def _as_string(value, i, column, lengths, first):
    if isinstance(value, str):
        # What str makes of itself: of an enumeration's member its value, not its name.
        return str.__str__(value)
    if isinstance(value, (int, np.integer, np.bool_)):
        return str(value)
    raise ValueError(
        f"{_place(i, lengths, first)}: column {column} is {short_repr(value)}; expected a string "
        f"or an integer."
    )


def _place(i, lengths, first):
    """Where token `i` of a chunk is, for messages."""
    sequence = int(np.searchsorted(np.cumsum(lengths), i, side="right"))
    return f"Sequence {first + sequence}, token {i - sum(lengths[:sequence])}"
