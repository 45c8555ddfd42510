"""Columns of tokens as integer codes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import chain, count, islice
from operator import itemgetter

import numpy as np

from skstruct.frames import refuse_frame
from skstruct.input.formats import copied
from skstruct.utils.messages import short_repr

# Sequences that are in memory at the same time.
_CHUNK = 4096
_SHAPE = (
    "A batch is a list of sequences, a sequence a list of tokens (or a data frame), and a token "
    "a string or a tuple of columns."
)


class TokenColumns:
    """Columns of the tokens of a batch as integer codes.

    Parameters
    ----------
    X : iterable of sequences
        Read once, keeping only the distinct tokens.
    wanted : callable
        Function from the number of columns, once it is known, to the columns to encode.

    Attributes
    ----------
    values : dict of int to list of str
        Distinct values of each wanted column, in the order of first occurrence.
    codes : dict of int to ndarray of shape (n_rows,), dtype int32
        Position of each token's value among them, for each wanted column.
    offsets : ndarray of shape (n_sequences + 1,), dtype int64
        Token at which each sequence starts.
    n_columns : int or None
        Number of columns of a token. None if all sequences are empty.
    """

    def __init__(self, X, wanted):
        self.n_columns = None
        self._wanted = wanted
        self._columns = []
        self._number = defaultdict(count().__next__)
        which, lengths = [np.empty(0, np.int32)], []
        sequences = _iterate(X)
        while chunk := list(islice(sequences, _CHUNK)):
            which.append(self._read(chunk, lengths))
        if not lengths:
            raise ValueError("Found an empty batch: at least one sequence is required.")
        self.offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        which = np.concatenate(which)
        self.values, self.codes = {}, {}
        distinct = list(self._number)
        for c in self._columns:
            # Not by zip, whose many iterators would trigger the garbage collector.
            column = list(map(itemgetter(c), distinct)) if self.n_columns > 1 else distinct
            number = defaultdict(count().__next__)
            self.codes[c] = _look_up(number, column)[which]
            self.values[c] = list(number)
        del self._number

    def _read(self, chunk, lengths):
        """Numbers of the tokens of a chunk of sequences among the distinct tokens.

        Most tokens occur many times, so only this look-up is done for each. If some tokens are not
        strings or tuples of strings, all are converted first: 1 and True are equal as keys, but
        different as values.
        """
        first = len(lengths)
        # Copies: another thread may change the lists, here and below, between two looks at them.
        if set(map(type, chunk)) <= {list, tuple}:
            chunk = list(map(tuple, chunk))
        else:
            chunk = [_as_tokens(sequence, first + i) for i, sequence in enumerate(chunk)]
        chunk_lengths = list(map(len, chunk))
        lengths += chunk_lengths
        tokens = list(chain.from_iterable(chunk))
        number, n_known = self._number, len(self._number)
        try:
            which = _look_up(number, tokens)
        except TypeError:  # a list is not hashable
            which = None
        new = list(islice(reversed(number), len(number) - n_known))
        if which is None or not self._are_plain(new):
            for token in new:
                del number[token]
            number.default_factory = count(n_known).__next__
            which = _look_up(number, self._as_plain(tokens, chunk_lengths, first))
        return which

    def _are_plain(self, tokens):
        """Return True for strings, or tuples of strings, with the right number of columns."""
        if not tokens:
            return True
        types = set(map(type, tokens))
        if types == {str}:
            width = 1
        elif types == {tuple}:
            width, *others = set(map(len, tokens))
            if others or width < 2:
                return False
        else:
            return False
        if self.n_columns is None:
            self._set_width(width)
        return width == self.n_columns and (
            width == 1
            or all(set(map(type, map(itemgetter(c), tokens))) == {str} for c in self._columns)
        )

    def _as_plain(self, tokens, lengths, first):
        """Convert tokens to strings or tuples of strings, with None in columns not wanted."""
        if not tokens:
            return tokens
        columns = self._split(tokens, lengths, first)
        columns = [
            _as_strings(column, c, lengths, first) if c in self._columns else [None] * len(tokens)
            for c, column in enumerate(columns)
        ]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def _split(self, tokens, lengths, first):
        """Split tokens into lists of values, one for each column."""
        types = set(map(type, tokens))
        if types == {str}:
            self._check_width(1, tokens[0], 0, lengths, first)
            return [tokens]
        if types <= {list, tuple}:
            tokens = list(map(tuple, tokens))
        else:
            tokens = [_as_columns(token, i, lengths, first) for i, token in enumerate(tokens)]
        self._check_width(len(tokens[0]), tokens[0], 0, lengths, first)
        if set(map(len, tokens)) != {self.n_columns}:
            for i, token in enumerate(tokens):
                self._check_width(len(token), token, i, lengths, first)
        flat = list(chain.from_iterable(tokens))
        return [flat[c :: self.n_columns] for c in range(self.n_columns)]

    def _set_width(self, width):
        self.n_columns = width
        self._columns = sorted(self._wanted(width))

    def _check_width(self, width, token, i, lengths, first):
        """Check that a token has as many columns as the first token of the batch."""
        if self.n_columns is None:
            if width == 0:
                raise ValueError(f"{_place(0, lengths, first)}: the token has no columns. {_SHAPE}")
            self._set_width(width)
        if width != self.n_columns:
            raise ValueError(
                f"{_place(i, lengths, first)}: the token {short_repr(token)} has {width} "
                f"column(s), but the first token has {self.n_columns}."
            )


def _look_up(number, items):
    return np.fromiter(map(number.__getitem__, items), np.int32, len(items))


def _iterate(X):
    refuse_frame(X)
    try:
        if not isinstance(X, (str, bytes, Mapping)):
            return iter(copied(X))
    except TypeError:
        pass
    raise ValueError(f"X is {short_repr(X)}; expected a list of sequences. {_SHAPE}")


def _as_tokens(sequence, i):
    """Tokens of a sequence that is neither a list nor a tuple."""
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
        return tuple(token)
    raise ValueError(
        f"{_place(i, lengths, first)}: {short_repr(token)} is not a valid token; expected a "
        f"string or a tuple of columns. {_SHAPE}"
    )


def _as_strings(values, column, lengths, first):
    """Convert the values of a column to strings."""
    if set(map(type, values)) == {str}:
        return values
    return [_as_string(value, i, column, lengths, first) for i, value in enumerate(values)]


def _as_string(value, i, column, lengths, first):
    if isinstance(value, str):
        # str.__str__ gives the value of a member of a string enumeration, not its name.
        return str.__str__(value)
    if isinstance(value, (int, np.integer, np.bool_)):
        return str(value)
    raise ValueError(
        f"{_place(i, lengths, first)}: column {column} is {short_repr(value)}; expected a string "
        f"or an integer."
    )


def _place(i, lengths, first):
    """Sequence and token of token `i` of a chunk, for messages."""
    sequence = int(np.searchsorted(np.cumsum(lengths), i, side="right"))
    return f"Sequence {first + sequence}, token {i - sum(lengths[:sequence])}"
