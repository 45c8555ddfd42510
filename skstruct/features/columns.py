"""Columns of tokens as integer codes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from itertools import chain, count, islice
from operator import itemgetter

import numpy as np

from skstruct.features.tokens import iterate_level
from skstruct.frames import is_frame, names_of, same_columns
from skstruct.matrices import offsets_of
from skstruct.utils.messages import DataError, short_repr

# Sequences that are in memory at the same time.
_CHUNK = 4096
_SHAPE = (
    "A batch is a list of {sequence}s, a {sequence} a list of {token}s (or a data frame), and a "
    "{token} a string or a tuple of columns."
)


class TokenColumns:
    """Columns of the tokens of a batch as integer codes.

    Parameters
    ----------
    X : iterable of sequences
        Read once, keeping only the distinct tokens.
    wanted : callable
        Function from the number of columns, once it is known, to the columns to encode.
    names : array-like of str, default=None
        Names that columns of data frames must have, if they have names.

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
    names : list of str or None
        Names of the columns, if sequences are data frames with names.
    """

    def __init__(self, X, wanted, names=None):
        self.n_columns = None
        self._expected = names
        self._first_frame = None
        self._wanted = wanted
        self._columns = []
        self._number = defaultdict(count().__next__)
        which, lengths = [], []
        sequences = iterate_level(X, "X", "{sequence}s", _SHAPE)
        while chunk := list(islice(sequences, _CHUNK)):
            which.append(self._read(chunk, lengths))
        if not lengths:
            raise DataError("Found an empty batch: at least one {sequence} is required.")
        self.offsets = offsets_of(lengths)
        which = which[0] if len(which) == 1 else np.concatenate(which)
        self.values, self.codes = {}, {}
        distinct = list(self._number)
        for c in self._columns:
            if self.n_columns == 1:
                self.codes[c], self.values[c] = which, distinct
                continue
            # Not by zip, whose many iterators would trigger the garbage collector.
            column = list(map(itemgetter(c), distinct))
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
        # As tuples, which can be looked up.
        if set(map(type, chunk)) <= {list, tuple}:
            chunk = list(map(tuple, chunk))
        else:
            self._check_frames(chunk, first)
            chunk = [_as_tokens(sequence, i) for i, sequence in enumerate(chunk, start=first)]
        lengths += map(len, chunk)
        tokens = list(chain.from_iterable(chunk))
        if set(map(type, tokens)) <= {list, tuple}:
            tokens = list(map(tuple, tokens))
        number, n_known = self._number, len(self._number)
        try:
            which = _look_up(number, tokens)
        except TypeError:  # an array is not hashable
            which = None
        new = list(islice(reversed(number), len(number) - n_known))
        if which is None or not self._are_plain(new):
            for token in new:
                del number[token]
            number.default_factory = count(n_known).__next__
            which = _look_up(number, self._as_plain(chunk, first))
        return which

    @property
    def names(self):
        """Names of the columns of data frames; None without any."""
        return None if self._first_frame is None else names_of(self._first_frame[1])

    def _check_frames(self, chunk, first):
        frames = ((i, part) for i, part in enumerate(chunk, start=first) if is_frame(part))
        self._first_frame = same_columns(frames, self._first_frame)
        if self._expected is not None and self.names not in (None, list(self._expected)):
            raise DataError(
                "{place} has the columns {found}, but the vectorizer was fitted on {expected}.",
                self._first_frame[0],
                found=self.names,
                expected=list(self._expected),
            )

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

    def _as_plain(self, chunk, first):
        """Convert tokens to strings or tuples of strings, with None in columns not wanted."""
        plain = []
        for i, sequence in enumerate(chunk, start=first):
            for t, token in enumerate(sequence):
                try:
                    texts = self._texts(_as_columns(token))
                except DataError as error:
                    raise DataError.of(error, i, t) from None
                plain.append(tuple(texts) if len(texts) > 1 else texts[0])
        return plain

    def _set_width(self, width):
        self.n_columns = width
        self._columns = sorted(self._wanted(width))

    def _texts(self, columns):
        """Strings in the columns of a token, as many as of the first one; None where not wanted."""
        if not columns:
            raise DataError(f"the token has no columns. {_SHAPE}")
        if self.n_columns is None:
            self._set_width(len(columns))
        if len(columns) != self.n_columns:
            raise DataError(
                f"the token {{columns}} has {len(columns)} column(s), but the first token has "
                f"{self.n_columns}.",
                columns=short_repr(columns),
            )
        return [
            _as_string(value, c) if c in self._columns else None for c, value in enumerate(columns)
        ]


def _look_up(number, items):
    return np.fromiter(map(number.__getitem__, items), np.int32, len(items))


def _as_tokens(sequence, i):
    """List of the tokens of a sequence of another kind."""
    if hasattr(sequence, "to_numpy"):
        return sequence.to_numpy().tolist()
    if isinstance(sequence, np.ndarray) and sequence.ndim in (1, 2):
        return sequence.tolist()
    return list(iterate_level(sequence, i, shape=_SHAPE))


def _as_columns(token):
    if isinstance(token, (str, int, np.integer, np.bool_)):
        return (token,)
    if isinstance(token, np.ndarray) and token.ndim == 1:
        return token.tolist()
    if isinstance(token, (list, tuple)):
        return tuple(token)
    if isinstance(token, Mapping):
        raise DataError(
            "{value} is a dict; expected a string or a tuple of columns. SequenceVectorizer reads "
            "dicts of features, and EmbeddingVectorizer(column='word') one key.",
            value=short_repr(token),
        )
    raise DataError(
        f"{{value}} is not a valid token; expected a string or a tuple of columns. {_SHAPE}",
        value=short_repr(token),
    )


def _as_string(value, column):
    if isinstance(value, str):
        # str.__str__ gives the value of a member of a string enumeration, not its name.
        return str.__str__(value)
    if isinstance(value, (int, np.integer, np.bool_)):
        return str(value)
    fact = f"column {column} is {{value}}; expected a string or an integer."
    raise DataError(fact, value=short_repr(value))


def read_words(X, column, names=None):
    """Words of the tokens of a batch, in one of their columns.

    Parameters
    ----------
    X : iterable of sequences of tokens
        A token is a string, a tuple or list of columns, or a dict; a sequence may be a data frame.
    column : int or str
        Place of the words in tuples and lists, key in dicts, name in data frames.
    names : array-like of str, default=None
        Names that columns of data frames must have, if they have names.

    Returns
    -------
    words : list of str
        Distinct words, in the order of first occurrence.
    codes : ndarray of shape (n_rows,), dtype int32
        Position of each token's word among them.
    offsets : ndarray of shape (n_sequences + 1,), dtype int64
    names : list of str or None
        Names of the columns of data frames.

    Raises
    ------
    ValueError
        If a token is invalid or has no such column; the message names sequence and token.
    """
    place = 0 if isinstance(column, str) else column
    if isinstance(column, str):
        sequences = iterate_level(X, "X", "{sequence}s", _SHAPE)
        X = (_words_at(sequence, i, column) for i, sequence in enumerate(sequences))

    def wanted(width):
        if not -width <= place < width:
            raise ValueError(f"column={place}, but tokens have {width} column(s).")
        return [place % width]

    columns = TokenColumns(X, wanted, names)
    codes = next(iter(columns.codes.values()), np.empty(0, np.int32))
    words = next(iter(columns.values.values()), [])
    return words, codes, columns.offsets, columns.names


def _words_at(sequence, i, key):
    """The words in a sequence of dicts, or in a column of a data frame."""
    if is_frame(sequence):
        if key not in sequence.columns:
            raise DataError("{place} has no column {key!r}.", i, key=key)
        return sequence[key].to_numpy().tolist()
    words = []
    for t, token in enumerate(iterate_level(sequence, i, shape=_SHAPE)):
        word = token.get(key) if isinstance(token, Mapping) else None
        if not isinstance(word, str):
            raise DataError(
                "{place}: {value} has no string for the key {key!r}.",
                *(i, t),
                value=short_repr(token),
                key=key,
            )
        words.append(word)
    return words


def normalized(words, normalize, *, as_strings=True):
    """Words as a function of the user's writes them; as they are for None.

    Raises a ValueError if the function raises, or returns another type where strings are needed.
    """
    if normalize is None:
        return words
    found = []
    try:
        for word in words:
            found.append(normalize(word))
    except Exception as error:
        raise ValueError(
            f"normalize raised {type(error).__name__}: {error}, for the word {words[len(found)]!r}."
        ) from error
    if not set(map(type, found)) <= {str}:
        kind = str if as_strings else Hashable
        wrong = next((n for n, word in enumerate(found) if not isinstance(word, kind)), None)
        if wrong is not None:
            raise ValueError(
                f"normalize must return strings, but returned {short_repr(found[wrong])} for "
                f"{words[wrong]!r}."
            )
    return found
