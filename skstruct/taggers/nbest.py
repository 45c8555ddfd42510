"""Searches for the n best labellings."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from skstruct import kernels
from skstruct.decoding import require_room
from skstruct.utils.memory import require_memory
from skstruct.utils.messages import short_repr
from skstruct.utils.parallel import chain_work, range_runner

__all__ = ["FEW", "MANY", "check_search", "make_search", "search_sequences", "work_of_search"]

# With up to so many labellings, features and scores take most of the time. From the other number
# on, more do not count as more work: few sequences have as many.
FEW, MANY = 50, 10_000


def work_of_search(width):
    """Work of a search that keeps so many labellings, in that of a search for the best one.

    What is kept is sorted by insertion, in quadratic time.
    """
    return max(1.0, (min(width, MANY) / FEW) ** 2)


# They are there in any case.
_FEW_BYTES = 1 << 24


def make_search(n_best, search, beam_width, *, count_misses=False):
    """Record of a search, for the kernels.

    Parameters
    ----------
    n_best : int
        Number of labellings.
    search : {"astar", "beam"}
        Search algorithm.
    beam_width : int
        Number of partial labellings that a beam keeps, at least `n_best`.
    count_misses : bool, default=False
        Count the sequences for which a beam misses the best labelling.
    """
    # More than that does not fit into memory, and its product with the labels into an integer.
    n_best, beam_width = (min(int(n), 2**31 - 1) for n in (n_best, beam_width))
    if search == "astar":
        return kernels.AStarSearch(n_best)
    misses = np.zeros(1 if count_misses else 0, np.int64)
    return kernels.BeamSearch(n_best, max(n_best, beam_width), misses)


def check_search(n_best, search, beam_width):
    """Raise a ValueError unless the parameters of a search make sense."""
    for name, value in (("n_best", n_best), ("beam_width", beam_width)):
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a positive integer, got {short_repr(value)}.")
    if search not in kernels.SEARCHES:
        names = ", ".join(map(repr, kernels.SEARCHES))
        raise ValueError(f"search must be one of {names}, got {search!r}.")


def search_sequences(rows, offsets, chain, search, n_jobs):
    """Search for the n best labellings of every sequence.

    Parameters
    ----------
    rows : Rows
        The tokens.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    chain : Chain
        The weights.
    search : AStarSearch or BeamSearch
        From `make_search`.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    codes : ndarray of shape (n_best, n_rows)
        Labels, a labelling in each row; there are no more rows than labellings.
    scores : ndarray of shape (n_sequences, n_best)
    counts : ndarray of shape (n_sequences,)
        Number of labellings found for each sequence; the rest of the arrays is undefined.
    """
    n_sequences = len(offsets) - 1
    length = kernels.longest(offsets, 0, n_sequences)
    n_best = kernels.n_possible(length, chain.transition.shape[0], search.n_best)
    n_bytes = n_best * (4 * int(offsets[-1]) + 8 * n_sequences)
    if n_bytes > _FEW_BYTES:
        require_memory(n_bytes, f"{n_best:,} labellings of each sequence", "Ask for fewer.")
    codes = np.zeros((n_best, offsets[-1]), np.int32)
    scores = np.empty((n_sequences, n_best))
    counts = np.empty(n_sequences, np.int64)
    width = max(n_best, getattr(search, "beam_width", 1))
    work = max(n_best, work_of_search(width)) * chain_work(chain.transition.shape[0], chain.order)
    with range_runner(offsets, n_jobs, work) as run:
        require_room(chain, offsets, run.n_ranges)
        run(
            lambda _, first, last: kernels.search_range(
                rows, offsets, first, last, chain, search, codes, scores, counts
            )
        )
    return codes, scores, counts
