"""Dual-free coordinate ascent over the sequences of a likelihood: the start of batch methods.

See `skstruct.kernels.likelihood.dual_free`.
"""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.utils.parallel import chain_work, portions

__all__ = ["DualFreeAscent", "draw_order", "new_memory", "shrink"]

# Largest number of bytes that the start may store.
_MOST_MEMORY = 2**31
# Share of the visits in a random order that is uniform; the others are by priority.
_UNIFORM = 0.1


class DualFreeAscent:
    """Epochs of dual-free coordinate ascent.

    Parameters
    ----------
    likelihood : Likelihood
        Sequences to visit.
    free : ndarray of shape (size,)
        One for the weights of the model, zero for pinned positions.
    l2, l1 : float
        Strengths of the penalties.
    memory : Memory
        Zero at first; changed.
    random_state : RandomState instance, default=None
        Source of the orders of the sequences. By default, of a fixed seed.
    visited : bool, default=False
        The memory is that of an earlier epoch.

    Attributes
    ----------
    loss : float
        Sum of the losses of the sequences at their last visits.
    distance : float
        Estimated distance of the objective from its minimum, usually several times too large.
    """

    def __init__(self, likelihood, free, l2, l1, memory, random_state=None, visited=False):
        self._likelihood = likelihood
        self._free = likelihood.shape.split(free)
        self._l2, self._l1 = l2, l1
        self._memory = memory
        self._random_state = np.random.RandomState(0) if random_state is None else random_state
        self._visited = visited
        self.loss = self.distance = np.inf

    def epoch(self, vector, theta, n_parts=1):
        """Visit as many sequences as there are.

        Parameters
        ----------
        vector : ndarray of shape (size,)
            The conjugate vector; changed, pinned positions too.
        theta : ndarray of shape (size,)
            The parameters; changed likewise. The vector itself without an L1 penalty.
        n_parts : int, default=1
            Number of parts of the training set that are visited at the same time, if this is one of
            them. Changes are that many times as large, so that their mean over the parts keeps the
            vector conjugate (CoCoA+; Ma et al., 2015).

        Returns
        -------
        successful : bool
            False if the weights got too large; the vectors are then of no use.
        """
        likelihood, memory = self._likelihood, self._memory
        order = self._order()
        self._visited = True
        for weights in (vector, theta):
            likelihood.shape.set_impossible(weights, -np.inf)
        chain, shrunk = map(likelihood.shape.split, (vector, theta))
        shrunk = likelihood.with_list(shrunk)
        strength = likelihood.sample_weight * n_parts / self._l2
        work = chain_work(likelihood.shape.n_labels, likelihood.shape.kind.order)
        for part in portions(np.diff(likelihood.offsets)[order], work):
            where = likelihood.features, likelihood.offsets, order[part], likelihood.labels
            changed = strength, chain, shrunk, self._l1 / self._l2, self._free, memory
            if not kernels.dual_free_epoch(*where, *changed):
                return False
        self.loss = likelihood.sample_weight @ memory.loss
        self.distance = self._priority().sum()
        return True

    def _priority(self):
        return self._likelihood.sample_weight * self._memory.divergence

    def _order(self):
        if self._visited:
            return draw_order(self._priority(), self._random_state)
        return self._random_state.permutation(len(self._likelihood.sample_weight))


def new_memory(likelihood):
    """Memory of the sequences before the first epoch; None if it is too large."""
    n_rows, n_sequences = likelihood.n_tokens, len(likelihood.sample_weight)
    k, listed = likelihood.shape.n_labels, likelihood.listed
    n_slabs = n_rows if likelihood.shape.kind.per_token else n_sequences
    n_transitions = k * k + likelihood.shape.n_more if listed is None else len(listed.score)
    if 4 * (n_rows * k + n_slabs * n_transitions) > _MOST_MEMORY:
        return None
    return kernels.Memory(
        np.zeros((n_rows, k), np.float32),
        np.zeros((n_slabs, n_transitions), np.float32),
        *np.zeros((3, n_sequences)),
    )


def draw_order(priority, random_state):
    """Draw as many sequences as there are, most of them in proportion to their priorities."""
    n = len(priority)
    total = priority.sum()
    # Without a finite priority all sequences are alike.
    share = priority / total if 0 < total < np.inf else np.full(n, 1 / n)
    bounds = np.cumsum(_UNIFORM / n + (1 - _UNIFORM) * share)
    places = (np.arange(n) + random_state.random_sample()) / n
    return random_state.permutation(np.minimum(np.searchsorted(bounds, places), n - 1))


def shrink(vector, threshold):
    """Move the numbers of a vector towards zero; those closer to it than `threshold` become it."""
    return np.copysign(np.maximum(np.abs(vector) - threshold, 0.0), vector)
