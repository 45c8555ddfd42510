"""Best labels, marginals and n best labellings of a range of sequences.

Ranges may run in parallel: a call writes only the rows and sequences of its range.
"""

import numpy as np

# Members for the weights of each kind have to be there before these loops are compiled.
from skstruct.chain import dense, listed, per_token, second_order  # noqa: F401
from skstruct.chain.forward_backward import forward_backward
from skstruct.chain.protocol import edges_of, factors_for, score_edges, zero_counts
from skstruct.chain.scores import longest, sequence_scores
from skstruct.chain.search import search_nbest
from skstruct.chain.viterbi import viterbi
from skstruct.compiled.jit import jit, lean_jit

# Largest difference of a sum of probabilities from one that rounding explains.
NEARLY_ONE = 1e-6


@jit
def decode_best(rows, offsets, first, last, chain, labels):
    """Write the best labels of the sequences ``first:last`` into ``labels`` (n_rows,)."""
    length, n_labels = longest(offsets, first, last), chain.intercept.shape[0]
    scores = np.empty((length, n_labels))
    edges = edges_of(chain, length)
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, scores)
        score_edges(chain, rows, a, b, edges)
        viterbi(scores, b - a, edges, labels[a:b])


@jit
def decode_marginals(rows, offsets, first, last, chain, factors, marginals, log_partition):
    """Write node marginals (n_rows, n_labels) and log-partitions (n_sequences,) of a range.

    ``factors`` belong to the transitions that all tokens share, from `chain_factors`.
    """
    length, n_labels = longest(offsets, first, last), chain.intercept.shape[0]
    scores, scale = np.empty((length, n_labels)), np.empty(length)
    factors = factors_for(chain, factors, length)
    counts = zero_counts(factors.edges, 0)
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, scores)
        score_edges(chain, rows, a, b, factors.edges)
        log_partition[i] = forward_backward(
            scores, b - a, factors, marginals[a:b], scale, 0.0, counts
        )
        normalize(marginals, a, b)


@lean_jit
def normalize(marginals, first, last):
    """Divide the marginals of each token by their sum, unless it is far from one.

    By rounding, they could be more than one otherwise.
    """
    for t in range(first, last):
        total = 0.0
        for j in range(marginals.shape[1]):
            total += marginals[t, j]
        if abs(total - 1.0) <= NEARLY_ONE:
            for j in range(marginals.shape[1]):
                marginals[t, j] /= total


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
    length, n_labels = longest(offsets, first, last), chain.intercept.shape[0]
    emission = np.empty((length, n_labels))
    edges = edges_of(chain, length)
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        sequence_scores(rows, a, b, chain, emission)
        score_edges(chain, rows, a, b, edges)
        counts[i] = search_nbest(search, emission, b - a, edges, labels[:, a:b], scores[i])
