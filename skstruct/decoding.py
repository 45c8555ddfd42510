"""Decoding of a batch, in threads, and with many labels by way of their listed transitions."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.beam import n_possible
from skstruct.chain.dense import Dense
from skstruct.chain.listed import Leaving, Listed, collect_transitions, with_edges
from skstruct.chain.protocol import chain_factors
from skstruct.chain.ranges import decode_best, decode_marginals, search_range
from skstruct.chain.scores import longest
from skstruct.chain.search import AStarSearch, BeamSearch
from skstruct.chain.spans import Paths, Task, find_spans, paths_inside
from skstruct.utils.parallel import chain_work, range_runner


class Limits(NamedTuple):
    """Sizes at which listed transitions are faster than vector instructions over all of them.

    Attributes
    ----------
    fewest_labels : int
        With fewer labels it never is.
    most : float
        Largest share of the transitions that may be listed.
    rise : float
        Growth of that share with the number of labels: of many, Viterbi tries few anyway.
    """

    fewest_labels: int
    most: float
    rise: float = np.inf


# Measured limits, by what is computed: best labels, sums over labellings, online updates.
LIMITS = {
    "best": Limits(100, 1 / 20, 1e-4),
    "sums": Limits(100, 1 / 20),
    "online": Limits(128, 1 / 40),
}
# Work of a search for spans, relative to one for the best labelling: of probable ones, and of all.
PROBABLE, WORK_OF_SPANS, WORK_OF_ALL_SPANS = 0.01, 8.0, 64.0


def list_transitions(transition, programme, wanted=None):
    """List the transitions that have a score of their own.

    Parameters
    ----------
    transition : ndarray of shape (n_labels, n_labels)
        Scores, most of them zero or minus infinity.
    programme : {"best", "sums", "online"}
        Key of `LIMITS`.
    wanted : ndarray of bool of shape (n_labels, n_labels), default=None
        More transitions to list.

    Returns
    -------
    edges : Listed or Dense
        All transitions if there are few labels, or too many to list for a list to pay.
    """
    n_labels, every = len(transition), Dense(transition)
    limits = LIMITS[programme]
    if n_labels < limits.fewest_labels:
        return every
    wanted = np.empty((0, 0), bool) if wanted is None else wanted
    most = int(min(limits.most, limits.rise * n_labels) * n_labels**2)
    *into, leaving = collect_transitions(transition, wanted, most)
    listed = Listed(*into, Leaving(*leaving))
    return listed if len(listed.indptr) else every


def with_list(chain, programme):
    """Weights of a chain with listed transitions if all tokens share them and that pays."""
    if not chain.may_list:
        return chain
    return with_edges(list_transitions(chain.transition, programme), chain)


def best_labels(rows, offsets, chain, n_jobs):
    """Find the best labels of every sequence.

    Parameters
    ----------
    rows : Rows or TransitionRows
        The tokens, with scores in place of blocks (`skstruct.blocks.rows.scored`).
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    chain : Chain, TransitionChain or SecondOrderChain
        The weights, in arrays that are read only.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    codes : ndarray of shape (n_rows,), dtype int32
    """
    codes, chain = np.empty(offsets[-1], np.int32), with_list(chain, "best")

    def decode(_, first, last):
        decode_best(rows, offsets, first, last, chain, codes)

    _run(decode, offsets, chain, n_jobs)
    return codes


def _run(decode, offsets, chain, n_jobs, work=1.0):
    """Results of ``decode(number, first, last)`` for ranges of sequences, in threads.

    `work` is the work of a label, relative to a search for the best labelling.
    """
    work = work * chain_work(len(chain.transition), chain.order)
    with range_runner(offsets, n_jobs, work) as run:
        return run(decode)


# Up to FEW labellings, features and scores take most of the time. Beyond MANY, more labellings do
# not count as more work: few sequences have that many.
FEW, MANY = 50, 10_000


def work_of_search(width):
    """Work of a search that keeps `width` labellings, relative to a search for the best one.

    Labellings are sorted by insertion, in quadratic time.
    """
    return max(1.0, (min(width, MANY) / FEW) ** 2)


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
    # More labellings do not fit into memory, nor their product with the labels into an integer.
    n_best, beam_width = (min(int(n), 2**31 - 1) for n in (n_best, beam_width))
    if search == "astar":
        return AStarSearch(n_best)
    misses = np.zeros(1 if count_misses else 0, np.int64)
    return BeamSearch(n_best, max(n_best, beam_width), misses)


def nbest_labels(rows, offsets, chain, search, n_jobs):
    """Search for the n best labellings of every sequence.

    Parameters
    ----------
    rows, offsets, chain, n_jobs
        As of `best_labels`.
    search : AStarSearch or BeamSearch
        From `make_search`.

    Returns
    -------
    codes : ndarray of shape (n_best, n_rows)
        Labels, a labelling in each row; there are no more rows than labellings.
    scores : ndarray of shape (n_sequences, n_best)
    counts : ndarray of shape (n_sequences,)
        Number of labellings found for each sequence; the rest of the arrays is undefined.
    """
    n_sequences = len(offsets) - 1
    length = longest(offsets, 0, n_sequences)
    n_best = n_possible(length, chain.transition.shape[0], search.n_best)
    codes = np.zeros((n_best, offsets[-1]), np.int32)
    scores = np.empty((n_sequences, n_best))
    counts = np.empty(n_sequences, np.int64)
    width = max(n_best, getattr(search, "beam_width", 1))

    def find(_, first, last):
        search_range(rows, offsets, first, last, chain, search, codes, scores, counts)

    _run(find, offsets, chain, n_jobs, max(n_best, work_of_search(width)))
    return codes, scores, counts


def marginals(rows, offsets, chain, n_jobs, *, forbids):
    """Compute the probabilities of the labels of every token, and the partition functions.

    Parameters
    ----------
    rows, offsets, chain, n_jobs
        As of `best_labels`.
    forbids : bool
        True if some labellings are impossible for other reasons than transitions.

    Returns
    -------
    marginals : ndarray of shape (n_rows, n_labels)
    log_partition : ndarray of shape (n_sequences,)
    """
    n_labels, chain = len(chain.transition), with_list(chain, "sums")
    factors = chain_factors(chain)
    factors = factors._replace(forbids=factors.forbids or forbids)
    proba, log_partition = np.empty((offsets[-1], n_labels)), np.empty(len(offsets) - 1)

    def decode(_, first, last):
        decode_marginals(rows, offsets, first, last, chain, factors, proba, log_partition)

    _run(decode, offsets, chain, n_jobs)
    return proba, log_partition


def probable_spans(
    rows, offsets, chain, n_jobs, *, forbids, reading, separable, least, thresholds=()
):
    """Find the spans that are chunks with more than some probability, or choose some of them.

    Parameters
    ----------
    rows, offsets, chain, n_jobs
        As of `best_labels`.
    forbids : bool
        As of `marginals`.
    reading : Reading
        How labels are read as chunks.
    separable : ndarray of shape (n_types,), dtype bool
        False for types of which a chunk cannot follow another one at once.
    least : float
        Probability that spans are to exceed, from 0 on.
    thresholds : array-like of float, default=()
        Rising, none below `least`. For each of them, of all sets of spans that do not overlap, the
        one with the largest sum of ``probability - threshold`` is chosen.

    Returns
    -------
    places : ndarray of shape (n_spans, 5)
        Number of the threshold (0 where there are none), sequence, first token, end and number of
        the type of each span, in order of the sequences.
    probabilities : ndarray of shape (n_spans,)
    log_partition : ndarray of shape (n_sequences,)
    """
    possible = chain.transition > -np.inf
    opens, closes = (part[:-1, :-1] & possible for part in (reading.opens, reading.closes))
    chain = with_list(chain, "sums")
    factors = chain_factors(chain)
    factors = factors._replace(forbids=factors.forbids or forbids)
    thresholds = np.array(thresholds, float)
    task = Task(reading, opens.any(axis=0), closes.any(axis=1), separable, least, thresholds)
    paths = tuple(Paths(*paths_inside(factors.edges, reading, len(separable), t)) for t in range(3))
    log_partition = np.empty(len(offsets) - 1)

    def find(_, first, last):
        return find_spans(rows, offsets, first, last, chain, factors, task, paths, log_partition)

    work = WORK_OF_SPANS if least >= PROBABLE else WORK_OF_ALL_SPANS
    found = _run(find, offsets, chain, n_jobs, work)
    places, probabilities = zip(*found, strict=True)
    return np.concatenate(places), np.concatenate(probabilities), log_partition
