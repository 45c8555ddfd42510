"""The n best label sequences by A* search, k-best Viterbi or beam search."""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.chain.astar import astar_nbest
from skstruct.kernels.chain.beam import beam_nbest, forbid_dead_ends
from skstruct.kernels.chain.listed import IntoLabels
from skstruct.kernels.chain.nbest import nbest
from skstruct.kernels.chain.scores import (
    N_PLAIN,
    copy_transitions,
    longest,
    sequence_scores,
    transition_scores,
)
from skstruct.kernels.chain.viterbi import best_prefixes
from skstruct.kernels.vector.sums import largest

SEARCHES = ("astar", "kbest", "beam")


class AStarSearch(NamedTuple):
    """Parameters of an A* search for the best labellings."""

    n_best: int
    into: IntoLabels  # listed transitions, or None to search through all


class PrefixSearch(NamedTuple):
    """Parameters of a search that extends the best prefixes, by k-best Viterbi or in a beam."""

    n_best: int
    beam: bool
    beam_width: int  # at least n_best
    misses: np.ndarray  # (1,), number of beams that missed the best labelling; (0,) to skip


N_ASTAR = len(AStarSearch._fields)


@jit
def search_nbest(scores, length, transition, search, labels, path_scores):
    """Write the best labellings of a sample, best first; return their number.

    Parameters and ties are those of `nbest`, except that the scores may be overwritten. At most as
    many labellings as ``labels`` has rows are found. Only the search of the record is compiled.
    """
    n_best = labels.shape[0]
    if len(search) == N_ASTAR:
        return astar_nbest(scores, length, transition, n_best, labels, path_scores, search.into)
    if not search.beam:
        return nbest(scores, length, transition, n_best, labels, path_scores)
    n_found = beam_nbest(scores, length, transition, search.beam_width, n_best, labels, path_scores)
    if length > 0 and path_scores[0] == -np.inf:
        # Every prefix in the beam could only be continued by impossible labels.
        forbid_dead_ends(scores, length, transition)
        n_found = beam_nbest(
            scores, length, transition, search.beam_width, n_best, labels, path_scores
        )
    if search.misses.shape[0] > 0 and length > 0:
        # A Viterbi pass is cheap compared with the beam, and rounds its sums in the same way.
        best_prefixes(scores, length, transition)
        best = largest(scores[length - 1], transition.shape[-1])
        search.misses[0] += path_scores[0] < best
    return n_found


@jit
def search_range(rows, offsets, first, last, chain, search, labels, scores, counts):
    """Write the best labellings of the sequences ``first:last``.

    Parameters
    ----------
    labels : ndarray of shape (n_best, n_rows), integer
        Receives the labellings, best first.
    scores : ndarray of shape (n_sequences, n_best)
        Receives their scores.
    counts : ndarray of shape (n_sequences,)
        Receives the number of labellings found.
    """
    length, n_labels = longest(offsets, first, last), chain.transition.shape[0]
    emission = np.empty((length, n_labels))
    transition = copy_transitions(chain, length)
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, emission)
        if len(chain) > N_PLAIN:
            transition_scores(rows, a, b, chain, transition)
        counts[i] = search_nbest(emission, b - a, transition, search, labels[:, a:b], scores[i])
