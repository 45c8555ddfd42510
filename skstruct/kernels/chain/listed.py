"""Transition scores that are mostly zero or minus infinity, as a list of the others.

With many labels, most transitions never occur and have no weight, or are forbidden. A transition
into label ``j`` that is not *listed* has the score ``default[j]``, zero or minus infinity. Sums and
maxima over all previous labels are then those over the listed ones and one that all labels share
(`sparse_viterbi`, `sparse_forward_backward`).
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit, lean_jit


class SparseTransitions(NamedTuple):
    """Listed transitions, sorted by their first label, and those into each label."""

    default: np.ndarray  # (n_labels,), score into each label of transitions that are not listed
    indptr: np.ndarray  # (n_labels + 1,), first transition from each label
    into: np.ndarray  # (nnz,) int32, second label
    score: np.ndarray  # (nnz,)
    indptr_t: np.ndarray  # (n_labels + 1,), first place in `order` of each second label
    order: np.ndarray  # (nnz,) transitions sorted by their second label
    origin: np.ndarray  # (nnz,) int32, first label, in that order


class IntoLabels(NamedTuple):
    """What the search for the best labels reads of them; arrays may have room for more."""

    default: np.ndarray  # (n_labels,), score into each label of transitions that are not listed
    indptr: np.ndarray  # (n_labels + 1,), first transition into each label
    origin: np.ndarray  # (nnz,) int32, first label, in increasing order for each second label
    score: np.ndarray  # (nnz,)


@jit
def list_transitions(transition, wanted, most):
    """List the transitions whose score is not the default.

    Parameters
    ----------
    transition : ndarray of shape (n_labels, n_labels)
        Scores.
    wanted : ndarray of bool of shape (n_labels, n_labels) or (0, 0)
        More transitions to list.
    most : int
        Largest number to list.

    Returns
    -------
    default, indptr, into, score, indptr_t, order, origin : ndarray
        Fields of `SparseTransitions`; ``indptr`` is empty if there are too many transitions.
    """
    n_labels = transition.shape[0]
    default = np.zeros(n_labels)
    n_forbidden = np.zeros(n_labels, np.int64)
    for i in range(n_labels):
        for j in range(n_labels):
            n_forbidden[j] += transition[i, j] == -np.inf
    for j in range(n_labels):
        if 2 * n_forbidden[j] > n_labels:
            default[j] = -np.inf
    indptr = np.zeros(n_labels + 1, np.int64)
    indptr_t = np.zeros(n_labels + 1, np.int64)
    for i in range(n_labels):
        indptr[i + 1] = indptr[i]
        for j in range(n_labels):
            listed = is_listed(transition, default, wanted, i, j)
            indptr[i + 1] += listed
            indptr_t[j + 1] += listed
    nnz = indptr[n_labels]
    if nnz > most:
        nnz, indptr = 0, indptr[:0]
    into, origin = np.empty(nnz, np.int32), np.empty(nnz, np.int32)
    score, order = np.empty(nnz), np.empty(nnz, np.int64)
    if nnz > 0:
        for j in range(n_labels):
            indptr_t[j + 1] += indptr_t[j]
        fill = indptr_t[:n_labels].copy()
        k = 0
        for i in range(n_labels):
            for j in range(n_labels):
                if is_listed(transition, default, wanted, i, j):
                    into[k], score[k] = j, transition[i, j]
                    origin[fill[j]], order[fill[j]] = i, k
                    fill[j] += 1
                    k += 1
    return default, indptr, into, score, indptr_t, order, origin


@lean_jit
def is_listed(transition, default, wanted, i, j):
    """Return True if a transition has a score of its own."""
    return transition[i, j] != default[j] or (wanted.shape[0] > 0 and wanted[i, j])


@jit
def read_scores(transition, sparse):
    """Read the scores of the listed transitions from a matrix."""
    for i in range(transition.shape[0]):
        for k in range(sparse.indptr[i], sparse.indptr[i + 1]):
            sparse.score[k] = transition[i, sparse.into[k]]
