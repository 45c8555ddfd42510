"""Look-up of the features of dicts as they come, without a name made for each.

`FeatureCounter` numbers the features of a batch, and makes their names at the end. `FeatureLookup`
remembers the columns of features from one sentence to the next.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from itertools import chain, compress, count, repeat
from operator import getitem

import numba
import numpy as np

from skstruct import kernels
from skstruct.features.ordering import EncodedTexts, sort_names

__all__ = ["FeatureCounter", "FeatureLookup"]

_TEXTS_AND_NUMBERS = {str, bool, int, float}
_NUMBERS = {int, float}
# Failures, of several sequences at once and of one alone, after which the rest is not tried.
_MOST_FAILURES = 20
_NOTHING = np.empty(0, np.int64), np.empty(0)


class FeatureCounter:
    """Numbers of features, in the order of their first occurrence."""

    def __init__(self):
        self._failures = 0 if can_read_dicts() else _MOST_FAILURES + 1
        self._clear()

    def _clear(self):
        self._names = defaultdict(count().__next__)
        self._pairs = _Pairs()

    def codes(self, names):
        """Numbers of names, one by one."""
        return map(self._names.__getitem__, names)

    def look_up(self, tokens, limit):
        """Look up the features of tokens that are dicts of strings, bools and plain numbers.

        Parameters
        ----------
        tokens : list
        limit : float
            Largest absolute value allowed.

        Returns
        -------
        numbers : ndarray of int32
            For each feature.
        positions : ndarray of int64
            Positions of the features that are numbers other than 1. The value of a bool follows
            from its number.
        values : ndarray of float64
            These numbers.

        Or None if a token or feature is of another type or not allowed.
        """
        if self._failures > _MOST_FAILURES:
            return None
        n_before = len(self._names) + len(self._pairs)
        found = self._pairs.number(tokens, n_before, limit)
        if len(self._names) + len(self._pairs) > n_before:
            self._names.default_factory = count(len(self._names) + len(self._pairs)).__next__
        if found is None:
            self._failures += 1
        return found

    def take_names(self):
        """Names of the attributes in the order of their numbers, and whether the value is zero.

        The counter is empty afterwards: its tables are larger than the names.
        """
        numbers, keys, values = self._pairs.columns()
        names = [
            f"{key}:{value}" if type(value) is str else key
            for key, value in zip(keys, values, strict=True)
        ]
        zero = self._pairs.are_false()
        if self._names:
            # Both are numbered together.
            order = np.argsort([*numbers.tolist(), *self._names.values()])
            names = np.array([*names, *self._names], dtype=object)[order].tolist()
            zero = np.append(zero, np.zeros(len(self._names), bool))[order]
        self._clear()
        return names, zero

    def take_sorted_names(self):
        """Names of the attributes in alphabetical order, and what the numbers stand for.

        The counter is empty afterwards.

        Returns
        -------
        names : list of str
        columns : ndarray of int32
            Position of its name, for each number.
        zero : ndarray of bool
            Whether the value is zero, for each number.

        Or None, and nothing is taken, if a text may give two features the same name, or a name has
        a NUL character.
        """
        if self._names:
            return None
        _, keys, texts = self._pairs.columns()
        number = defaultdict(count().__next__)
        which = np.fromiter(map(number.__getitem__, keys), np.int64, len(keys))
        del keys
        zero = self._pairs.are_false()
        # The name of a feature that is not a text is its key.
        others = np.flatnonzero(zero | self._pairs.are_true())
        which[others] += len(number)
        for i in others.tolist():
            texts[i] = ""
        # The first of those with the same name. Only True and False can have the same.
        first = np.arange(len(texts))
        _, where, inverse = np.unique(which[others], return_index=True, return_inverse=True)
        first[others] = others[where][inverse]
        differs = first == np.arange(len(texts))
        try:
            texts = EncodedTexts(list(compress(texts, differs)))
        except ValueError:
            return None
        if not _are_apart(number):
            return None
        # The tables are larger than the names.
        self._clear()
        names, order = sort_names([*(f"{key}:" for key in number), *number], which[differs], texts)
        columns = np.empty(len(first), np.int32)
        columns[np.flatnonzero(differs)[order]] = np.arange(len(names))
        return names, columns[first], zero


def _are_apart(keys):
    """Return True if no name of one of the keys, a dict, can be the name of another one.

    The names ``a:b:c`` of two features are the same if their keys are ``a`` and ``a:b``. A key with
    a NUL character is not told apart.
    """
    return not any("\0" in key for key in keys) and keys.keys().isdisjoint(
        key[:i] for key in keys if ":" in key for i, c in enumerate(key) if c == ":"
    )


def can_read_dicts():
    """Return True if compiled code may read objects: nothing else does, thanks to the GIL."""
    return not numba.config.DISABLE_JIT and getattr(sys, "_is_gil_enabled", lambda: True)()


class _Pairs:
    """Pairs of a key and a value, numbered by compiled code (see `number_pairs`)."""

    def __init__(self, capacity=1 << 8):
        self._block = np.empty((kernels.BLOCK, kernels.N_COLUMNS_OF_FEATURES), np.int64)
        self._remembered = np.zeros((kernels.N_REMEMBERED, 4), np.int64)
        self._entries = np.empty((0, kernels.N_COLUMNS), np.int64)
        # The objects that entries have addresses of.
        self._keys, self._values = [], []
        objects = dict, str, float, int, True, False, self._keys, self._values
        self._state = np.zeros(kernels.LENGTH_OF_STATE, np.int64)
        self._state[: len(objects)] = list(map(id, objects))
        self._state[kernels.WHERE] = self._state[len(objects) :].ctypes.data
        self._grow(capacity)

    def __len__(self):
        return int(self._state[kernels.ENTRIES])

    def columns(self):
        """Numbers, keys and values."""
        n = len(self)
        return self._entries[:n, kernels.NUMBER], self._keys[:n], self._values[:n]

    def are_false(self):
        """Whether the value of each pair is False."""
        return self._entries[: len(self), kernels.VALUE] == id(False)

    def are_true(self):
        """Whether the value of each pair is True, as it is for numbers."""
        return self._entries[: len(self), kernels.VALUE] == id(True)

    def number(self, tokens, first, limit):
        """Numbers of the features of tokens, from `first` for new ones; None for other types."""
        n = kernels.count_features(id(tokens), len(tokens), self._state)
        if n < 0:
            return None
        if len(self) + n > len(self._entries):
            self._grow(max(len(self) + n, 2 * len(self._entries)))
        self._state[kernels.NEXT] = first
        table = kernels.PairTable(
            self._state, self._block, self._remembered, self._slots, self._entries
        )
        found = kernels.FoundNumbers(np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n))
        if kernels.number_pairs(id(tokens), len(tokens), table, limit, found) < 0:
            return None
        n_others = self._state[kernels.OTHER_VALUES]
        return found.codes, found.positions[:n_others], found.values[:n_others]

    def _grow(self, capacity):
        entries = np.empty((capacity, kernels.N_COLUMNS), np.int64)
        entries[: len(self)] = self._entries[: len(self)]
        n_more = capacity - len(self._keys)
        self._keys.extend([None] * n_more)
        self._values.extend([None] * n_more)
        self._slots = np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32)
        self._entries = entries
        kernels.fill_slots_of_pairs(entries, len(self), self._slots)


class FeatureLookup:
    """Codes of features, looked up by key and value.

    A name such as ``word:the`` is made for the first feature with this key and value. All later
    ones are found by two look-ups that run without Python code.

    Parameters
    ----------
    code : callable
        Function from the name of an attribute to its code, at least -1.
    most : int, default=None
        Values to remember; when there are more, all are forgotten. By default, any number.
    """

    def __init__(self, code, most=None):
        self._code = code
        self._tables = _Tables(code)
        self._most = most
        self._failures = 0
        self._with_numbers = False

    def codes(self, names):
        """Codes of names, one by one."""
        return map(self._code, names)

    def look_up(self, tokens, limit):
        """Look up the features of tokens that are dicts of strings, bools and plain numbers.

        Parameters
        ----------
        tokens : list
        limit : float
            Largest absolute value allowed.

        Returns
        -------
        codes : ndarray of int32
            Codes of the attributes of all tokens.
        positions : ndarray of int64
            Positions of the attributes with a value other than 1.
        values : ndarray of float64
            These values.

        Or None if a token or feature is of another type or not allowed.
        """
        if set(map(type, tokens)) != {dict} or self._failures > _MOST_FAILURES:
            return None
        if self._most is not None and self._tables.n_values > self._most:
            self._tables.forget()
        try:
            if not self._with_numbers:
                try:
                    return self._find_texts(tokens)
                except _OtherType:
                    pass
            found = self._find_numbers(tokens, limit)
            self._with_numbers = True
            return found
        except (_OtherType, OverflowError, TypeError):  # a list is not hashable
            self._failures += 1
            return None

    def _find_texts(self, tokens):
        keys = chain.from_iterable(tokens)
        values = chain.from_iterable(map(dict.values, tokens))
        codes = self._find(keys, values, sum(map(len, tokens)))
        if codes.min(initial=0) > -2:
            return codes, *_NOTHING
        zeros = np.flatnonzero(codes < -1)
        codes[zeros] = -2 - codes[zeros]
        return codes, zeros, np.zeros(len(zeros))

    def _find_numbers(self, tokens, limit):
        keys = list(chain.from_iterable(tokens))
        values = list(chain.from_iterable(map(dict.values, tokens)))
        types = list(map(type, values))
        if not set(types) <= _TEXTS_AND_NUMBERS:
            raise _OtherType
        is_number = list(map(_NUMBERS.__contains__, types))
        is_text = np.logical_not(is_number)
        codes = np.empty(len(keys), np.int32)
        n_texts = np.count_nonzero(is_text)
        # The code of a number is that of True: only the name counts.
        named = compress(keys, is_number)
        codes[~is_text] = self._find(named, repeat(True), len(keys) - n_texts)
        texts = compress(keys, is_text), compress(values, is_text)
        codes[is_text] = self._find(*texts, n_texts)
        data = np.ones(len(keys))
        data[~is_text] = np.fromiter(compress(values, is_number), float, len(keys) - n_texts)
        zeros = codes < -1
        codes[zeros], data[zeros] = -2 - codes[zeros], 0.0
        if not (np.abs(data) <= limit).all():
            raise _OtherType
        positions = np.flatnonzero(data != 1)
        return codes, positions, data[positions]

    def _find(self, keys, values, n):
        return np.fromiter(map(getitem, map(self._tables.__getitem__, keys), values), np.int32, n)


class _OtherType(Exception):
    """A feature that is not looked up by key and value."""


class _Tables(dict):
    """Table of values for each key."""

    def __init__(self, code):
        super().__init__()
        self.code = code
        self.n_values = 0

    def __missing__(self, key):
        if type(key) is not str:
            raise _OtherType
        table = self[key] = _Values(key, self)
        return table

    def forget(self):
        """Forget all values."""
        self.clear()
        self.n_values = 0


class _Values(dict):
    """Code for each value of a key; ``-2 - code`` for False.

    Numbers that equal a bool are found, and mean the same.
    """

    def __init__(self, key, tables):
        super().__init__()
        self._key = key
        self._tables = tables

    def __missing__(self, value):
        if type(value) is str:
            code = self._tables.code(f"{self._key}:{value}")
        elif type(value) is bool:
            code = self._tables.code(self._key)
            code = code if value else -2 - code
        else:
            raise _OtherType
        self._tables.n_values += 1
        self[value] = code
        return code
