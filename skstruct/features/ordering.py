"""Names of features in alphabetical order, without Python code for each name.

A name is a prefix and a text, such as ``word:`` and ``the``. The texts are sorted as bytes, several
at once: in UTF-8 they have the order of their characters.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from skstruct.utils.sparse import pieces

__all__ = ["EncodedTexts", "sort_names"]

_SEPARATOR = "\0"
_WORD = 8  # bytes
# By number of bytes, a mask of that many bytes of a word, from the first.
_MASKS = np.array([(1 << 64) - (1 << 8 * (_WORD - n)) for n in range(_WORD + 1)], np.uint64)
# Names that are made at once. A call for fewer than `_FEW` costs more than it saves.
_MANY = 1 << 14
_FEW = 32
_UTF8 = "utf-8", "surrogatepass"


def sort_names(prefixes, which, texts):
    """Sort names that consist of a prefix and a text.

    Parameters
    ----------
    prefixes : list of str
        All different, without NUL characters. Where one begins with another, the other one has only
        the empty text.
    which : ndarray of shape (n_names,), dtype int
        Number of the prefix of each name.
    texts : EncodedTexts
        The text of each name. Those of a prefix differ.

    Returns
    -------
    names : list of str
        In alphabetical order.
    order : ndarray of shape (n_names,), dtype int64
        Position of each of them in `texts`.
    """
    by_rank = np.array(sorted(range(len(prefixes)), key=prefixes.__getitem__), np.int64)
    rank = np.empty_like(by_rank)
    rank[by_rank] = np.arange(len(prefixes))
    ranks = rank[which]
    order = texts.sort(ranks)
    ends = np.searchsorted(ranks[order], np.arange(len(prefixes) + 1))
    names = []
    for r, (first, last) in enumerate(pairwise(ends.tolist())):
        prefix = prefixes[by_rank[r]]
        if last - first < _FEW:
            names += [prefix + texts[i] for i in order[first:last].tolist()]
            continue
        for start in range(first, last, _MANY):
            part = texts.join(order[start : min(start + _MANY, last)])
            part = part.replace(_SEPARATOR, _SEPARATOR + prefix)
            names += (prefix + part).split(_SEPARATOR)
    return names, order


class EncodedTexts:
    """Texts as bytes, each with a separator after it.

    Parameters
    ----------
    texts : list of str

    Raises
    ------
    ValueError
        If a text has a NUL character, the separator.
    """

    def __init__(self, texts):
        joined = _SEPARATOR.join(texts)
        if joined.count(_SEPARATOR) >= max(len(texts), 1):
            raise ValueError("A text has a NUL character.")
        # The separators after the last text complete the last word.
        self._bytes = np.frombuffer(joined.encode(*_UTF8) + bytes(1 + _WORD), np.uint8)
        self._ends = np.flatnonzero(self._bytes == 0)[: len(texts)]
        self._starts = np.zeros(len(texts), np.int64)
        self._starts[1:] = self._ends[:-1] + 1
        # A word from each byte on; big-endian numbers have the order of their bytes.
        self._words = np.ndarray(len(self._bytes) - _WORD, ">u8", self._bytes, strides=(1,))

    def __getitem__(self, i):
        return self._bytes[self._starts[i] : self._ends[i]].tobytes().decode(*_UTF8)

    def sort(self, groups):
        """Order of the texts by group, then by text."""
        order = np.arange(len(groups))
        # Places in the order where texts may still have to be exchanged, with those of the same
        # group, whose first bytes are the same.
        places, groups, n_bytes = order.copy(), groups.astype(np.uint64), 0
        while len(places):
            n_more = _WORD - (int(groups.max()).bit_length() + 7) // 8
            texts = order[places]
            keys = groups << np.uint64(8 * n_more)
            for part, text in zip(pieces(keys), pieces(texts), strict=True):
                part |= self._read(text, n_bytes, n_more)
            by_key = np.argsort(keys)
            order[places], keys = texts[by_key], keys[by_key]
            differs = np.ones(len(keys) + 1, bool)
            np.not_equal(keys[1:], keys[:-1], out=differs[1:-1])
            tied = ~(differs[1:] & differs[:-1])
            groups = np.cumsum(differs[:-1])[tied].astype(np.uint64)
            places = places[tied]
            n_bytes += n_more
        return order

    def _read(self, texts, start, n_bytes):
        """Bytes of texts from a position on, as numbers; zeros after the end."""
        ends = self._ends[texts]
        places = np.minimum(self._starts[texts] + start, ends)
        words = self._words[places].astype(np.uint64)
        words &= _MASKS[np.minimum(ends - places, n_bytes)]
        return words >> np.uint64(8 * (_WORD - n_bytes))

    def join(self, texts):
        """Texts in another order, with separators between them."""
        starts = self._starts[texts]
        lengths = self._ends[texts] + 1 - starts
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1])
        places += np.repeat(starts - (ends - lengths), lengths)
        return self._bytes[places[:-1]].tobytes().decode(*_UTF8)
