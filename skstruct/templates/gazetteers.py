"""Gazetteers: lists of names, whose longest matches mark tokens."""

from __future__ import annotations

import numpy as np

# Values of the marks: none, the only word of a match, its first, inner and last word.
MARKS = ["", "S", "B", "I", "E"]
_ONLY, _FIRST, _INNER, _LAST = range(1, 5)


class Gazetteer:
    """Marks of the tokens that are part of a name in a list.

    From left to right, the longest name that begins at a word is matched, whatever its case.

    Parameters
    ----------
    entries : iterable of str
        Names, whose words are separated by blanks.

    Raises
    ------
    ValueError
        If an entry is not a string.
    """

    def __init__(self, entries):
        self._number = {}
        self._entries = set()
        self._longest = {}
        for entry in entries:
            if not isinstance(entry, str):
                raise ValueError(f"The entries of a gazetteer are strings, but one is {entry!r}.")
            words = [self._number.setdefault(w, len(self._number)) for w in _fold(entry).split()]
            if words:
                self._entries.add(tuple(words))
                self._longest[words[0]] = max(self._longest.get(words[0], 0), len(words))

    def __call__(self, values, codes, offsets):
        """Mark tokens.

        Parameters
        ----------
        values : list of str
            Distinct words.
        codes : ndarray of shape (n_rows,)
            Position of each token's word among them.
        offsets : ndarray of shape (n_sequences + 1,)
            Token at which each sequence starts.

        Returns
        -------
        values : list of str
            The marks: "" for no match, else "S" for the only word of a name, "B", "I" and "E" for
            its first, inner and last words.
        codes : ndarray of shape (n_rows,), dtype int32
            Position of each token's mark among them.
        """
        number = np.array([self._number.get(_fold(value), -1) for value in values], np.int64)
        begins = np.array([n in self._longest for n in number.tolist()], bool)
        words, marks = number[codes], np.zeros(len(codes), np.int32)
        rows = np.flatnonzero(begins[codes])
        ends = offsets[np.searchsorted(offsets, rows, side="right")]
        done = 0
        for row, end in zip(rows.tolist(), ends.tolist(), strict=True):
            length = self._match(words[row:end]) if row >= done else 0
            if length:
                done = row + length
                marks[row:done] = _INNER
                marks[row], marks[done - 1] = _FIRST, _LAST
                if length == 1:
                    marks[row] = _ONLY
        return MARKS, marks

    def _match(self, words):
        """Length of the longest entry that these words begin with, or 0."""
        longest = min(self._longest[words[0]], len(words))
        words = tuple(words[:longest].tolist())
        for length in range(longest, 0, -1):
            if words[:length] in self._entries:
                return length
        return 0


def _fold(text):
    return text.casefold()
