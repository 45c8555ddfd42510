"""Codes of features, looked up by key and value, without a name made for each.

Tokens that consist of texts, bools and numbers alone are read many at once; `read_tokens` reads the
others. Both read copies: another thread may change a token between two looks at it.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, count, repeat
from operator import getitem

import numpy as np

from skstruct.features.attributes import PLAIN_COLLECTIONS

__all__ = ["NO_COLUMN", "KnownCodes", "NewCodes"]

# Column of attributes without a column, whose entries are dropped.
NO_COLUMN = -1
_PLAIN_VALUES = {str, bool, int, float}
_NO_VALUES = np.empty(0, np.int64), np.empty(0)


class _OtherKey(Exception):
    """A key that is not a string."""


class _Values(dict):
    """Codes of the values of a key; those of values other than 1 are less than `NO_COLUMN`.

    Parameters
    ----------
    code : int
        Code of the attribute that is named like the key, which numbers and bools belong to.
    code_of : callable
        Function from a text to the code of its attribute, called once for each.
    """

    def __init__(self, code, code_of):
        # A number that equals a bool is found as this one.
        super().__init__({True: code, False: NO_COLUMN - 2 - code})
        self._code_of = code_of

    def __missing__(self, value):
        if type(value) is not str:
            return self[False]
        code = self[value] = self._code_of(value)
        return code


class _Codes(dict):
    """The `_Values` of each key.

    A subclass defines ``codes(names)``, an iterator over the codes of attributes, and
    ``_code_of(key)``, the function that `_Values` need.
    """

    def __missing__(self, key):
        if type(key) is not str:
            raise _OtherKey
        (code,) = self.codes([key])
        return self.setdefault(key, _Values(code, self._code_of(key)))

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
        return codes, list(map(len, tokens)), *_NO_VALUES

    def _read_dicts(self, tokens, limit):
        values = list(chain.from_iterable(map(dict.values, tokens)))
        if not set(map(type, values)) <= _PLAIN_VALUES:
            return None
        tables = map(self.__getitem__, chain.from_iterable(tokens))
        try:
            codes = np.fromiter(map(getitem, tables, values), np.int32, len(values))
            positions = np.flatnonzero(codes < NO_COLUMN)
            numbers = np.array([values[i] for i in positions.tolist()], float)
        except (_OtherKey, OverflowError):
            return None
        if not (np.abs(numbers) <= limit).all():
            return None
        codes[positions] = NO_COLUMN - 2 - codes[positions]
        return codes, list(map(len, tokens)), positions, numbers


class NewCodes(_Codes):
    """Numbers of features as they come; features with the same name may have several."""

    def __init__(self):
        super().__init__()
        self._number = count().__next__
        self._named = defaultdict(self._number)

    def _code_of(self, key):
        return lambda text: self._number()

    def codes(self, names):
        """Numbers of names."""
        return map(self._named.__getitem__, names)

    def take_names(self):
        """Names of all features and their numbers; nothing is left, as the tables are large."""
        names, numbers = list(self._named), list(self._named.values())
        self._named.clear()
        while self:
            key, values = self.popitem()
            del values[True], values[False]
            names += map(f"{key}:".__add__, values)
            numbers += values.values()
        return names, numbers


class KnownCodes(_Codes):
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

    def _code_of(self, key):
        get = self.vocabulary.get
        return lambda text: get(f"{key}:{text}", NO_COLUMN)

    def codes(self, names):
        """Columns of names."""
        return map(self.vocabulary.get, names, repeat(NO_COLUMN))

    def read(self, tokens, limit):
        """Read tokens as the base class does."""
        if sum(map(len, list(self.values()))) > self._most:
            self.clear()
        return super().read(tokens, limit)
