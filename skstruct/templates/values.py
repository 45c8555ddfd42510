"""Values of macros, numbered."""

from collections import defaultdict
from itertools import accumulate, count, repeat
from operator import is_

import numpy as np

from skstruct.templates.numbering import Pieces, hash_strings
from skstruct.templates.syntax import apply

# Never to be changed: the columns of the hashing vectoriser depend on it.
_BYTE_HASHES = np.random.Generator(np.random.PCG64(2000)).integers(
    1, 2**64, 256, dtype=np.uint64, endpoint=False
)
NOT_KEPT = np.int32(-2)
# Values of a column whose results are remembered, or as many as were learnt if these are more.
_MOST_RESULTS = 1 << 16


class Vocabulary:
    """Learnt values, and the results of functions so far.

    Parameters
    ----------
    values : list of str
        In the order of their numbers.
    memory : dict
        Results of functions for the training data, see `ValueNumbers.memory`.
    """

    def __init__(self, values, memory):
        self.values = values
        self.number = {None: -1, **dict(zip(values, count()))}
        self.pieces = hash_pieces(values)
        self._results = {
            column: (steps, dict(zip(texts, map(bytes, codes.T.copy()), strict=True)))
            for column, (steps, texts, codes) in memory.items()
        }

    def codes_of(self, values):
        """Return the numbers of strings, -1 for unknown ones."""
        return np.fromiter(map(self.number.get, values, repeat(-1)), np.int32, len(values))

    def results(self, column, steps):
        """Codes of the results of functions by the values of a column; may be added to.

        Parameters
        ----------
        column : int
        steps : list of list of callable
            Functions of each macro.

        Returns
        -------
        results : dict of str to bytes
            The codes, as int32, of the results of all macros for a value: -1 for None, and -2 for
            those that have no number.
        """
        known, results = self._results.get(column, ((), {}))
        # The user may have replaced functions by others with the same name.
        same = len(known) == len(steps) and all(
            len(a) == len(b) and all(map(is_, a, b)) for a, b in zip(known, steps, strict=True)
        )
        if not same or len(results) > max(_MOST_RESULTS, len(self.values)):
            results = {}
            self._results[column] = steps, results
        return results


class ValueNumbers:
    """Numbers of values, assigned in the order of first occurrence.

    Parameters
    ----------
    vocabulary : Vocabulary or None
        Values with fixed numbers.
    """

    def __init__(self, vocabulary=None):
        self._vocabulary = vocabulary
        self._known = {None: -1} if vocabulary is None else vocabulary.number
        self._n_known = len(self._known) - 1
        self._new = defaultdict(count(self._n_known).__next__)
        self._memory = {}

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
        find, new = self._known.get, self._new
        return [new[v] if (code := find(v)) is None else code for v in values]

    def of_macros(self, column, values, macros):
        """Return the numbers of the results of all macros of a column.

        Parameters
        ----------
        column : int
        values : list of str
            Distinct values of the column.
        macros : list of (list of callable, str)
            Functions of each macro, and the template line for messages.

        Returns
        -------
        codes : ndarray of shape (n_macros, n_values), dtype int32
        """
        steps = [functions for functions, _ in macros]
        if not any(steps):
            return np.array([self.of(values)], np.int32)
        results = {} if self._vocabulary is None else self._vocabulary.results(column, steps)
        nothing = np.full(len(macros), NOT_KEPT).tobytes()
        found = b"".join(map(results.get, values, repeat(nothing)))
        codes = np.frombuffer(found, np.int32).reshape(-1, len(macros)).T.copy()
        for row, (functions, where) in zip(codes, macros, strict=True):
            fresh = np.flatnonzero(row == NOT_KEPT).tolist()
            if fresh:
                row[fresh] = self.of(apply(functions, [values[i] for i in fresh], where))
        if self._vocabulary is None:
            self._memory[column] = steps, values, codes
        else:
            kept = np.where(codes < self._n_known, codes, NOT_KEPT).T
            for i, value in enumerate(values):
                if value not in results:
                    results[value] = kept[i].tobytes()
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
        self._memory = self.memory(rank)
        return np.array(order, np.int64), rank

    def memory(self, number):
        """Results of functions for the columns of the data.

        Parameters
        ----------
        number : ndarray of shape (n_values,), dtype int32
            New numbers of the values; -2 for those that are not kept.

        Returns
        -------
        memory : dict
            By column the functions of its macros, its distinct values, and the numbers of the
            results, ndarray of shape (n_macros, n_values).
        """
        return {
            column: (steps, values, renumber(number, codes))
            for column, (steps, values, codes) in self._memory.items()
        }


def renumber(number, codes):
    """Map codes to new numbers; -1 stays -1."""
    # The last entry serves code -1.
    return np.append(number, np.int32(-1))[codes]


def hash_pieces(strings):
    """Compute the hashes and powers of strings."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = np.fromiter(accumulate(map(len, encoded)), np.int64, len(encoded))
    pieces = Pieces(np.empty(len(encoded), np.uint64), np.empty(len(encoded), np.uint64))
    hash_strings(np.frombuffer(b"".join(encoded), np.uint8), ends, _BYTE_HASHES, *pieces)
    return pieces
