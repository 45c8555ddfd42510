"""Where the parameters of a shard are in the vector of all, in little memory."""

from __future__ import annotations

import numpy as np

from skstruct.utils.sparse import pieces

__all__ = ["Gaps", "RowTable", "Taken", "add_at", "quick_or_small"]

# Numbers of places for each place of the whole vector, from which on rows are kept instead.
_MANY = 2
_FAR = 1 << 8


class Gaps:
    """Ascending numbers, kept as the gaps between them.

    These take a byte for each number in place of four, as most gaps are short.

    Parameters
    ----------
    numbers : ndarray of int32
        Ascending.
    """

    def __init__(self, numbers):
        gaps = np.diff(numbers, prepend=numbers.dtype.type(0))
        self._near = gaps.astype(np.uint8)
        self._far = np.flatnonzero(gaps >= _FAR).astype(np.int32)
        self._more = gaps[self._far] - self._near[self._far]

    def __len__(self):
        return len(self._near)

    def __array__(self, dtype=None, copy=None):
        """Numbers, as numpy asks for them where it is given these as an index."""
        numbers = self._near.astype(np.int32)
        numbers[self._far] += self._more
        return np.cumsum(numbers, out=numbers)


class RowTable:
    """Places of all rows of weights, by which those of a shard are told from its rows alone.

    Parameters
    ----------
    layout : RowLayout
        Of the whole model.
    size : int
        Length of the whole vector, which ends with parameters that all shards have.
    """

    def __init__(self, layout, size):
        rows = np.flatnonzero(layout.place >= 0)
        rows = rows[np.argsort(layout.place[rows])].astype(np.int32)
        # Row k is from bounds[k] to bounds[k + 1].
        self.bounds = np.append(layout.place[rows], layout.n_places).astype(np.int32)
        self.size = size
        self._row = np.full(len(layout.place), -1, np.int32)
        self._row[rows] = np.arange(len(rows), dtype=np.int32)

    def places(self, features):
        """Places of the parameters of a shard with these features, ascending."""
        rows = np.sort(self._row[features])
        return _Places(self.bounds, rows[np.searchsorted(rows, 0) :], self.size)


class _Places:
    """Places of the weights of some rows, and of what all shards have."""

    def __init__(self, bounds, rows, size):
        self._bounds, self._rows, self._size = bounds, Gaps(rows), size
        self._n_state = int((bounds[rows + 1] - bounds[rows]).sum())

    def __len__(self):
        return self._n_state + self._size - self._bounds[-1]

    def __array__(self, dtype=None, copy=None):
        """Places, as numpy asks for them where it is given these as an index."""
        return np.concatenate(list(self.parts()))

    def parts(self):
        """Yield the places in arrays that are not large."""
        bounds = self._bounds
        for rows in pieces(np.asarray(self._rows)):
            starts = bounds[rows]
            widths = bounds[rows + 1] - starts
            ends = np.cumsum(widths, dtype=np.int32)
            places = np.arange(ends[-1], dtype=np.int32)
            places += np.repeat(starts - ends + widths, widths)
            yield places
        yield np.arange(bounds[-1], self._size, dtype=np.int32)


def quick_or_small(places, size):
    """Places of all shards in a vector of this size: as arrays, unless they are many."""
    many = sum(map(len, places)) > _MANY * size
    return places if many else list(map(np.asarray, places))


class Taken:
    """Entries of a vector, which are taken when they are sent, and not kept.

    Where they arrive, they are an array; in this process, numpy makes one of them.

    Parameters
    ----------
    vector : ndarray
    places : object
        An index of arrays.
    dtype : dtype
        Type in which they travel.
    """

    def __init__(self, vector, places, dtype):
        self._vector, self._places, self._dtype = vector, places, dtype

    def __array__(self, dtype=None, copy=None):
        """Take the entries."""
        taken = np.empty(len(self._places), self._dtype)
        for part, places in _parts(self._places):
            taken[part] = self._vector[places]
        return taken

    def __reduce_ex__(self, protocol):
        return np.asarray(self).__reduce_ex__(protocol)


def add_at(vector, places, values):
    """Add values to entries of a vector, each of which is named once."""
    for part, places_of_part in _parts(places):
        vector[places_of_part] += values[part]


def _parts(places):
    """Yield the places a few at a time, after the slice of these among all."""
    start = 0
    for some in pieces(places) if isinstance(places, np.ndarray) else places.parts():
        yield slice(start, start + len(some)), some
        start += len(some)
