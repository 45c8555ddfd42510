"""The n best label sequences by A* search or beam search."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.astar import astar_nbest
from skstruct.chain.beam import beam_nbest, forbid_dead_ends
from skstruct.chain.family import needed
from skstruct.chain.protocol import state_rows, width
from skstruct.chain.viterbi import best_prefixes
from skstruct.compiled.jit import inner_jit
from skstruct.compiled.rows import largest

SEARCHES = ("astar", "beam")


class AStarSearch(NamedTuple):
    """Parameters of an A* search for the best labellings."""

    n_best: int


class BeamSearch(NamedTuple):
    """Parameters of a search that extends the best prefixes, in a beam."""

    n_best: int
    beam_width: int  # at least n_best
    misses: np.ndarray  # (1,), number of beams that missed the best labelling; (0,) to skip


@needed(compiler=inner_jit)
def search_nbest(search, scores, length, edges, labels, path_scores):
    """Write the best labellings of a sample, best first; return their number.

    At most as many labellings as ``labels`` has rows are found, in the order that
    `skstruct.chain.ties` describes. Scores may be overwritten.
    """


@search_nbest.of(AStarSearch)
def search_with_astar(search, scores, length, edges, labels, path_scores):
    return astar_nbest(scores, length, edges, labels.shape[0], labels, path_scores)


@search_nbest.of(BeamSearch)
def search_in_beam(search, scores, length, edges, labels, path_scores):
    """Search in a beam, and count whether it misses the best labelling."""
    rows, n_best = state_rows(edges, scores, length), labels.shape[0]
    n_found = beam_nbest(rows, length, edges, search.beam_width, n_best, labels, path_scores)
    if length > 0 and path_scores[0] == -np.inf:
        # Every prefix in the beam could only be continued by impossible states.
        forbid_dead_ends(rows, length, edges)
        n_found = beam_nbest(rows, length, edges, search.beam_width, n_best, labels, path_scores)
    if search.misses.shape[0] > 0 and length > 0:
        # A Viterbi pass is cheap compared with the beam, and rounds its sums in the same way.
        best_prefixes(rows, length, edges)
        best = largest(rows[length - 1], width(edges, length - 1))
        search.misses[0] += path_scores[0] < best
    return n_found
