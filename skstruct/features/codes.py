"""Codes of features, looked up by key and value, without a name made for each.

Tokens that consist of texts, bools and numbers alone are read many at once; `read_tokens` reads the
others. Both read copies: another thread may change a token between two looks at it.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, compress, count, repeat
from operator import getitem

import numpy as np

from skstruct.features.attributes import PLAIN_COLLECTIONS

__all__ = ["NO_COLUMN", "KnownCodes", "NewCodes"]

# Column of attributes without a column, whose entries are dropped.
NO_COLUMN = -1
# Types of plain values.
_ARE_NUMBERS = {str: False, bool: False, int: True, float: True}
_NOTHING = np.empty(0, np.int64), np.empty(0)


class _OtherType(Exception):
    """A key or value of another type."""


class _FeatureCodes(dict):
    """For each key, a table of the codes of its values.

    A subclass defines ``codes(names)``, an iterator over the codes of attributes, and
    ``_table(key)``, an empty dict which finds the codes of the texts that it is asked for.
    """

    def __missing__(self, key):
        if type(key) is not str:
            raise _OtherType
        table = self._table(key)
        # The name of a feature that is not a text is its key. The sign tells False from True.
        (code,) = self.codes([key])
        table[True], table[False] = code, -2 - code
        return self.setdefault(key, table)

    def read(self, tokens, limit):
        """Read tokens if all of them are dicts of plain values, or collections of strings.

        Parameters
        ----------
        tokens : list
        limit : float
            Largest absolute value allowed.

        Returns
        -------
        codes : ndarray of int32
            Codes of the attributes of all tokens.
        lengths : list of int
            Number of attributes of each token.
        positions, values : ndarray
            Positions of the attributes with a value other than 1, and these values.

        Or None for other tokens.
        """
        kinds = set(map(type, tokens))
        if kinds <= {dict}:
            return self._read_dicts(list(map(dict.copy, tokens)), limit)
        if kinds <= PLAIN_COLLECTIONS:
            return self._read_strings(list(map(tuple, tokens)))
        return None

    def _read_strings(self, tokens):
        names = list(chain.from_iterable(tokens))
        if not set(map(type, names)) <= {str}:
            return None
        codes = np.fromiter(self.codes(names), np.int32, len(names))
        return codes, list(map(len, tokens)), *_NOTHING

    def _read_dicts(self, tokens, limit):
        values = list(chain.from_iterable(map(dict.values, tokens)))
        keys = chain.from_iterable(tokens)
        try:
            positions, numbers = _take_numbers(values)
            found = map(getitem, map(self.__getitem__, keys), values)
            codes = np.fromiter(found, np.int32, len(values))
        except (_OtherType, KeyError, OverflowError):
            return None
        if not (np.abs(numbers) <= limit).all():
            return None
        false = np.flatnonzero(codes < NO_COLUMN)
        codes[false] = -2 - codes[false]
        positions = np.concatenate([positions, false])
        return codes, list(map(len, tokens)), positions, np.append(numbers, np.zeros(len(false)))


def _take_numbers(values):
    """Put True in place of numbers; return positions and values of those that are not 1."""
    are_numbers = bytes(map(_ARE_NUMBERS.__getitem__, map(type, values)))
    if 1 not in are_numbers:
        return _NOTHING
    numbers = np.fromiter(compress(values, are_numbers), float)
    # A number that equals True is found as True.
    differs = numbers != 1
    positions = np.flatnonzero(np.frombuffer(are_numbers, bool))[differs]
    for position in positions.tolist():
        values[position] = True
    return positions, numbers[differs]


class NewCodes(_FeatureCodes):
    """Numbers of features as they come; features with the same name may have several."""

    def __init__(self):
        super().__init__()
        self._number = count().__next__
        self._named = defaultdict(self._number)

    def _table(self, key):
        return defaultdict(self._number)

    def codes(self, names):
        """Numbers of names."""
        return map(self._named.__getitem__, names)

    def take_names(self):
        """Name of each feature, and its number; nothing is left, as the tables are large."""
        names, numbers = list(self._named), list(self._named.values())
        self._named.clear()
        while self:
            key, table = self.popitem()
            del table[True], table[False]
            names += map(f"{key}:".__add__, table)
            numbers += table.values()
        return names, numbers


class KnownCodes(_FeatureCodes):
    """Columns of features, remembered from call to call.

    Parameters
    ----------
    vocabulary : dict of str to int
        Column of each attribute.
    most : int
        Values to remember; when there are more, all are forgotten.
    """

    def __init__(self, vocabulary, most):
        super().__init__()
        self.vocabulary = vocabulary
        self._most = most

    def _table(self, key):
        return _Columns(key, self.vocabulary)

    def codes(self, names):
        """Columns of names."""
        return map(self.vocabulary.get, names, repeat(NO_COLUMN))

    def read(self, tokens, limit):
        """Read tokens as the base class does."""
        if sum(map(len, list(self.values()))) > self._most:
            self.clear()
        return super().read(tokens, limit)


class _Columns(dict):
    """Columns of the texts of a key."""

    def __init__(self, key, vocabulary):
        super().__init__()
        self._key = key
        self._vocabulary = vocabulary

    def __missing__(self, text):
        column = self[text] = self._vocabulary.get(f"{self._key}:{text}", NO_COLUMN)
        return column
