"""Where the parameters of a shard are in the vector of all, in little memory."""

from __future__ import annotations

import numpy as np

__all__ = ["Gaps", "quick_or_small"]

# Numbers of places for each place of the whole vector, from which on gaps are kept instead.
_MANY = 2
_FAR = 1 << 8


class Gaps:
    """Ascending places, kept as the gaps between them.

    These take a byte for each place in place of four, as most gaps are short.

    Parameters
    ----------
    places : ndarray of int32
        Ascending.
    """

    def __init__(self, places):
        gaps = np.diff(places, prepend=places.dtype.type(0))
        self._near = gaps.astype(np.uint8)
        self._far = np.flatnonzero(gaps >= _FAR).astype(np.int32)
        self._more = gaps[self._far] - self._near[self._far]

    def __len__(self):
        return len(self._near)

    def __array__(self, dtype=None, copy=None):
        """Places, as numpy asks for them where it is given these as an index."""
        places = self._near.astype(np.int32)
        places[self._far] += self._more
        return np.cumsum(places, out=places)


def quick_or_small(gaps, size):
    """Places of all shards in a vector of this size: as arrays, unless they are many."""
    many = sum(map(len, gaps)) > _MANY * size
    return gaps if many else list(map(np.asarray, gaps))
