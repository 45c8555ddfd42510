"""Values of macros, numbered."""

from collections import defaultdict
from itertools import accumulate, compress, count, repeat
from operator import is_
from typing import NamedTuple

import numpy as np

from skstruct.templates.numbering import Pieces, hash_strings
from skstruct.templates.syntax import apply

# Never to be changed: the columns of the hashing vectoriser depend on it.
_BYTE_HASHES = np.random.Generator(np.random.PCG64(2000)).integers(
    1, 2**64, 256, dtype=np.uint64, endpoint=False
)
_NOT_KEPT = np.int32(-2)


class FunctionResults(NamedTuple):
    """Results of functions so far, so that they need not be called again."""

    columns: dict  # distinct values of each column
    # By source (see Macro.source) the functions, in order, and the number of each value's result;
    # -1: None; -2: not in the vocabulary.
    numbers: dict


class Vocabulary:
    """Learnt values, and the results of functions for the training data.

    Parameters
    ----------
    values : list of str
        In the order of their numbers.
    memory : FunctionResults
    """

    def __init__(self, values, memory):
        self.values = values
        self._number = dict(zip(values, count()))
        self.pieces = hash_pieces(values)
        self._results = memory.numbers
        self._places = {c: dict(zip(v, count())) for c, v in memory.columns.items()}

    def codes_of(self, values):
        """Return the numbers of strings, -1 for unknown ones."""
        return _look_up(self._number, values)

    def places(self, column, values):
        """Positions among the training values of a column, -1 for new ones; None if unknown."""
        return _look_up(self._places[column], values) if column in self._places else None

    def recall(self, source, steps, places):
        """Numbers of the results of functions for training values; -2 if not recorded."""
        known, codes = self._results.get(source, ((), ()))
        # The user may have replaced functions by others with the same name.
        if len(known) != len(steps) or not all(map(is_, known, steps)):
            return np.full(len(places), _NOT_KEPT)
        # The last entry serves new values, at position -1.
        return np.append(codes, _NOT_KEPT)[places]


class ValueNumbers:
    """Numbers of values, assigned in the order of first occurrence.

    Parameters
    ----------
    vocabulary : Vocabulary or None
        Values with fixed numbers.
    """

    def __init__(self, vocabulary=None):
        self._vocabulary = vocabulary
        n_known = 0 if vocabulary is None else len(vocabulary.values)
        self._new = defaultdict(count(n_known).__next__)
        self._results = FunctionResults({}, {})
        self._places = {}

    @property
    def values(self):
        """All values, in the order of their numbers."""
        known = [] if self._vocabulary is None else self._vocabulary.values
        return known + list(self._new)

    def pieces(self):
        """Return the hashes and powers of all values."""
        new = hash_pieces(list(self._new))
        if self._vocabulary is None:
            return new
        return Pieces(*map(np.append, self._vocabulary.pieces, new))

    def of(self, values):
        """Return the numbers of strings, -1 for None."""
        if None in values:
            codes = np.full(len(values), -1, np.int32)
            present = [value is not None for value in values]
            codes[present] = self.of(list(compress(values, present)))
            return codes
        if self._vocabulary is None:
            return np.fromiter(map(self._new.__getitem__, values), np.int32, len(values))
        codes = self._vocabulary.codes_of(values)
        missing = np.flatnonzero(codes < 0)
        codes[missing] = [self._new[values[i]] for i in missing.tolist()]
        return codes

    def of_macro(self, macro, values, steps, where):
        """Return the numbers of a macro's results for the distinct values of its column.

        Parameters
        ----------
        macro : Macro
        values : list of str
        steps : list of callable
            Functions of the macro.
        where : str
            The template line, for messages.
        """
        if not steps:
            return self.of(values)
        codes = np.full(len(values), _NOT_KEPT)
        if macro.column not in self._places and self._vocabulary is not None:
            self._places[macro.column] = self._vocabulary.places(macro.column, values)
        places = self._places.get(macro.column)
        if places is not None:
            codes = self._vocabulary.recall(macro.source, steps, places)
        fresh = np.flatnonzero(codes == _NOT_KEPT)
        codes[fresh] = self.of(apply(steps, [values[i] for i in fresh.tolist()], where))
        self._results.columns[macro.column] = values
        self._results.numbers[macro.source] = steps, codes
        return codes

    def sort(self):
        """Renumber the values in sorted order.

        Returns
        -------
        order : ndarray of shape (n_values,)
            Old numbers in the new order.
        rank : ndarray of shape (n_values,), dtype int32
            New numbers in the old order.
        """
        values = list(self._new)
        order = sorted(range(len(values)), key=values.__getitem__)
        self._new = dict(zip(map(values.__getitem__, order), count()))
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        self._results = self._renumbered(rank)
        return np.array(order, np.int64), rank

    def memory(self, kept):
        """Results of functions, renumbered for the values that are kept.

        Parameters
        ----------
        kept : ndarray of shape (n_values,), dtype bool
        """
        return self._renumbered(
            np.where(kept, np.cumsum(kept, dtype=np.int32) - np.int32(1), _NOT_KEPT)
        )

    def _renumbered(self, number):
        numbers = {
            source: (steps, renumber(number, codes))
            for source, (steps, codes) in self._results.numbers.items()
        }
        return self._results._replace(numbers=numbers)


def renumber(number, codes):
    """Map codes to new numbers; -1 stays -1."""
    # The last entry serves code -1.
    return np.append(number, np.int32(-1))[codes]


def _look_up(number, values):
    return np.fromiter(map(number.get, values, repeat(-1)), np.int32, len(values))


def hash_pieces(strings):
    """Compute the hashes and powers of strings."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = np.fromiter(accumulate(map(len, encoded)), np.int64, len(encoded))
    pieces = Pieces(np.empty(len(encoded), np.uint64), np.empty(len(encoded), np.uint64))
    hash_strings(np.frombuffer(b"".join(encoded), np.uint8), ends, _BYTE_HASHES, *pieces)
    return pieces
