"""Threads over ranges of sequences: the shell around the serial kernels.

Kernels release the GIL, so plain threads run them in parallel. The ranges depend only on the batch
and on the number of jobs, and partial results are combined in order: the same `n_jobs` gives
bit-identical results.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from joblib import cpu_count, effective_n_jobs

__all__ = ["count_shards", "range_runner", "run_tasks"]


def count_shards(n_jobs):
    """Number of shards for computations whose result depends on it.

    Unlike the number of threads, it must not depend on the environment. None means 1 even in a
    `joblib.parallel_config` context, and a positive `n_jobs` is used as it is even where joblib
    would allow fewer threads.
    """
    if n_jobs is None:
        return 1
    effective_n_jobs(n_jobs)  # refuses zero
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


def run_tasks(function, n_tasks, n_jobs):
    """Call ``function(number)`` for each task, in threads; return the results in order."""
    n_threads = min(n_tasks, effective_n_jobs(n_jobs))
    if n_threads <= 1:
        return [function(number) for number in range(n_tasks)]
    # Imported here, because a single job does not need it.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, range(n_tasks)))


def split_ranges(offsets, n_ranges):
    """Cut the sequences into consecutive ranges of about equally many rows.

    Parameters
    ----------
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    n_ranges : int
        Number of ranges; fewer if there are fewer sequences.

    Returns
    -------
    ranges : list of (first, last)
        Numbers of sequences, `last` exclusive.
    """
    n_sequences = len(offsets) - 1
    targets = np.linspace(0, offsets[-1], n_ranges + 1)[1:-1]
    cuts = np.searchsorted(offsets, targets)
    bounds = np.unique(np.concatenate([[0], cuts, [n_sequences]]))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


@contextmanager
def range_runner(offsets, n_jobs):
    """Context that runs functions on all ranges of sequences, in `n_jobs` threads.

    Parameters
    ----------
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    n_jobs : int or None
        As everywhere in scikit-learn: None means 1 unless in a `joblib.parallel_config`
        context, -1 means all processors.

    Yields
    ------
    run : callable
        ``run(function)`` calls ``function(number, first, last)`` for each range and returns the
        results in the order of the ranges. ``run.n_ranges`` is their number.
    """
    ranges = split_ranges(offsets, effective_n_jobs(n_jobs))
    if len(ranges) == 1:
        yield _Runner(ranges, map)
        return
    # Imported here, because a single job does not need it.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(ranges)) as pool:
        yield _Runner(ranges, pool.map)


class _Runner:
    def __init__(self, ranges, map_):
        self._ranges = ranges
        self._map = map_
        self.n_ranges = len(ranges)

    def __call__(self, function):
        numbers, firsts, lasts = zip(
            *((n, first, last) for n, (first, last) in enumerate(self._ranges)), strict=True
        )
        return list(self._map(function, numbers, firsts, lasts))
