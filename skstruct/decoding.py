"""Best labels and marginals of a batch, with many labels by way of their listed transitions."""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.utils.parallel import chain_work, range_runner

__all__ = ["best_labels", "into_labels", "list_transitions", "marginals", "tabulate"]

# With fewer labels, vector instructions run through all transitions faster.
_FEWEST_LABELS = 64
# Largest share of the transitions to be listed: one of them takes as long as this many others.
_MOST_LISTED = 1 / 20


def list_transitions(transition, wanted=None):
    """List the transitions that have a score of their own.

    Parameters
    ----------
    transition : ndarray of shape (n_labels, n_labels)
        Scores, most of them zero or minus infinity.
    wanted : ndarray of bool of shape (n_labels, n_labels), default=None
        More transitions to list.

    Returns
    -------
    sparse : SparseTransitions or None
        None if there are few labels, or too many transitions for a list to pay.
    """
    n_labels = len(transition)
    if n_labels < _FEWEST_LABELS:
        return None
    wanted = np.empty((0, 0), bool) if wanted is None else wanted
    most = int(_MOST_LISTED * n_labels**2)
    sparse = kernels.SparseTransitions(*kernels.list_transitions(transition, wanted, most))
    return sparse if len(sparse.indptr) else None


def into_labels(sparse):
    """Listed transitions as the search for the best labels reads them."""
    score = sparse.score[sparse.order]
    return kernels.IntoLabels(sparse.default, sparse.indptr_t, sparse.origin, score)


def tabulate(sparse):
    """Exponentials of the listed scores, `SparseFactors`; None if sums could underflow."""
    *tables, safe = kernels.sparse_factors(sparse)
    return kernels.SparseFactors(*tables) if safe else None


def best_labels(rows, offsets, chain, n_jobs):
    """Find the best labels of every sequence.

    Parameters
    ----------
    rows : Rows or TransitionRows
        The tokens.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    chain : Chain or TransitionChain
        The weights, in arrays that are read only.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    codes : ndarray of shape (n_rows,), dtype int32
    """
    codes = np.empty(offsets[-1], np.int32)
    n_labels = len(chain.transition)
    shared = len(chain) == len(kernels.Chain._fields)
    sparse = list_transitions(chain.transition) if shared else None
    into = None if sparse is None else into_labels(sparse)

    def decode(_, first, last):
        if into is None:
            kernels.decode_best(rows, offsets, first, last, chain, codes)
        else:
            kernels.decode_best_sparse(rows, offsets, first, last, chain, into, codes)

    with range_runner(offsets, n_jobs, chain_work(n_labels)) as run:
        run(decode)
    return codes


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
    n_labels = len(chain.transition)
    proba, log_partition = np.empty((offsets[-1], n_labels)), np.empty(len(offsets) - 1)
    shared = len(chain) == len(kernels.Chain._fields)
    sparse = list_transitions(chain.transition) if shared else None
    tables = None if sparse is None else tabulate(sparse)
    if tables is None:
        transitions = kernels.transition_tables(chain.transition)
        transitions = transitions._replace(forbids=transitions.forbids or forbids)
    else:
        tables = tables._replace(forbids=tables.forbids or forbids)

    def decode(_, first, last):
        where = rows, offsets, first, last, chain
        if tables is None:
            kernels.decode_marginals(*where, transitions, proba, log_partition)
        else:
            kernels.decode_marginals_sparse(*where, sparse, tables, proba, log_partition)

    with range_runner(offsets, n_jobs, chain_work(n_labels)) as run:
        run(decode)
    return proba, log_partition
