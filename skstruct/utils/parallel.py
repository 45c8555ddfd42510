"""Threads over ranges of sequences: the shell around the serial kernels.

Kernels release the GIL, so plain threads run them in parallel. The ranges depend only on the batch
and on the number of jobs, and partial results are combined in order: the same `n_jobs` gives
bit-identical results.
"""

import os
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise

import numpy as np
from joblib import cpu_count, delayed, effective_n_jobs

# Work of a kernel between two checks for an interrupt, in pairs of labels: 0.1 to 0.9 s.
_WORK_AT_ONCE = 2e9
# More threads would only take memory.
_MAX_THREADS = 256
# A process looks so often whether its parent is still there.
_SECONDS_BETWEEN_LOOKS = 0.2
# In each thread of a pool the event `cancelled`, set when another one fails or is interrupted.
_thread = threading.local()


def chain_work(n_labels, order=1):
    """Work of a dynamic programme for one token, in pairs of labels.

    The features of a token take as long as some hundreds of pairs for each label.
    """
    return n_labels * (n_labels**order + 300.0)


def portions(n_rows, work_per_row):
    """Cut a series of visits into slices, between which interrupts are handled.

    A running kernel cannot be stopped. The slices depend on nothing but the arguments, and
    there is only one where the work takes less than a second.

    Parameters
    ----------
    n_rows : ndarray of shape (n_visits,)
        Number of rows of each visit.
    work_per_row : float
        Work of one row, see `chain_work`.

    Yields
    ------
    portion : slice
        Consecutive visits, at least one unless there are none.

    Raises
    ------
    CancelledError
        In a thread of a pool whose other threads have failed or been interrupted.
    """
    ends = np.cumsum(n_rows) * work_per_row
    n_cuts = int(ends[-1] / _WORK_AT_ONCE) if len(ends) else 0
    cuts = np.searchsorted(ends, _WORK_AT_ONCE * np.arange(1, n_cuts + 1)).tolist()
    inner = sorted({*cuts} - {0, len(ends)})
    for first, last in pairwise([0, *inner, len(ends)]):
        _check_cancelled()
        yield slice(first, last)


def _check_cancelled():
    cancelled = getattr(_thread, "cancelled", None)
    if cancelled is not None and cancelled.is_set():
        raise CancelledError


def inner_product(a, b):
    """Inner product of two vectors, without BLAS.

    From 10,000 numbers on, OpenBLAS takes it in threads, so its last bits depend on the machine.
    Those threads then stay awake for some 30 ms and keep processors from our threads: epochs in two
    threads took longer than in one.
    """
    return float((a * b).sum())


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
    with _thread_pool(n_threads) as pool:
        return list(pool.map(function, range(n_tasks)))


def in_process(function):
    """Tasks of `joblib.Parallel`, as `joblib.delayed` makes them, that end when this process does.

    A process of joblib notices only after its task, which may be a fit of minutes, that nobody
    waits for the result: the process that started it was killed.
    """
    return partial(delayed(_call_with_parent), os.getpid(), function)


def _call_with_parent(parent, function, *args, **kwargs):
    # Without processes, or in a cluster's, there is no such parent.
    if os.getpid() != parent == os.getppid():
        _end_with(parent)
    return function(*args, **kwargs)


@cache
def _end_with(parent):
    """Start a thread that ends this process soon after its parent has gone."""

    def watch():
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _thread_pool(n_threads):
    """Pool of threads that stop at their next portion if an error leaves the context."""
    cancelled = threading.Event()

    def initialize():
        _thread.cancelled = cancelled

    with ThreadPoolExecutor(min(n_threads, _MAX_THREADS), initializer=initialize) as pool:
        try:
            yield pool
        except BaseException:
            cancelled.set()
            raise


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
    # Of more targets than that, several would fall between the same two rows.
    n_ranges = min(n_ranges, 2 * int(offsets[-1]) + 1)
    targets = np.linspace(0, offsets[-1], n_ranges + 1)[1:-1]
    cuts = np.searchsorted(offsets, targets)
    bounds = np.unique(np.concatenate([[0], cuts, [n_sequences]]))
    return list(pairwise(bounds.tolist()))


@contextmanager
def range_runner(offsets, n_jobs, work_per_row=0.0):
    """Context that runs functions on all ranges of sequences, in `n_jobs` threads.

    Parameters
    ----------
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    n_jobs : int or None
        As everywhere in scikit-learn: None means 1 unless in a `joblib.parallel_config`
        context, -1 means all processors.
    work_per_row : float, default=0.0
        Work of the functions for one row, see `chain_work`. Ranges of more work than a kernel may
        do at once are cut into `portions`.

    Yields
    ------
    run : callable
        ``run(function)`` calls ``function(number, first, last)`` for each portion of each range,
        within a range one after the other, and returns the results in order. ``run.n_ranges`` is
        the number of ranges.
    """
    if len(offsets) == 2 and n_jobs != 0:
        # Reading the configuration would delay the answer for a single sequence.
        yield _Runner([[(0, 1)]], map)
        return
    n_ranges = effective_n_jobs(n_jobs)
    ranges = split_ranges(offsets, n_ranges) if n_ranges > 1 else [(0, len(offsets) - 1)]
    cut = [
        [
            (first + portion.start, first + portion.stop)
            for portion in portions(np.diff(offsets[first : last + 1]), work_per_row)
        ]
        for first, last in ranges
    ]
    if len(ranges) == 1:
        yield _Runner(cut, map)
        return
    with _thread_pool(len(ranges)) as pool:
        yield _Runner(cut, pool.map)


class _Runner:
    def __init__(self, ranges, map_):
        self._ranges = ranges
        self._map = map_
        self.n_ranges = len(ranges)

    def each(self, function, items):
        """Call ``function(item)`` for each item, at most one for each range, in threads."""
        return list(self._map(function, items))

    def __call__(self, function):
        def on_range(number):
            results = []
            for first, last in self._ranges[number]:
                _check_cancelled()
                results.append(function(number, first, last))
            return results

        return [result for part in self._map(on_range, range(self.n_ranges)) for result in part]
