"""Dual-free coordinate ascent over the sequences of a likelihood: the start of batch methods.

See `skstruct.kernels.likelihood.dual_free`.
"""

from __future__ import annotations

import numpy as np

from skstruct.kernels.likelihood.dual_free import Memory, dual_free_epoch, merge_changes
from skstruct.utils.parallel import chain_work, portions

# Largest number of bytes that the start may store.
_MOST_MEMORY = 2**31
# Share of the visits in a random order that is uniform; the others are by priority.
_UNIFORM = 0.1
# One minus the share of the estimated step at the first visits.
_FIRST_CAUTION = 0.2
# With two threads an epoch is cut into so many blocks, after each of which the changes of both are
# added up. Steps are shorter by a factor, as each thread does not know what the other one changes.
# Plain addition diverges where sequences share features; a factor of two is always safe with steps
# that maximise the dual (Ma et al., 2015), and needs more epochs.
_BLOCKS, _SHORTER = 16, 1.4
# Least number of occurrences of features for each weight, and least work of an epoch (see
# `chain_work`), that are worth a second thread: adding up takes time for each weight and block.
_OCCURRENCES, _LEAST_WORK = 4, 3e8


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
    run : callable, default=None
        From `skstruct.utils.parallel.range_runner`. With more than one range, two threads visit
        sequences at the same time; the result depends on that, and on nothing else.

    Attributes
    ----------
    loss : float
        Sum of the losses of the sequences at their last visits.
    distance : float
        Estimated distance of the objective from its minimum, usually several times too large.
    """

    def __init__(
        self, likelihood, free, l2, l1, memory, random_state=None, visited=False, run=None
    ):
        self._likelihood = likelihood
        self._free = likelihood.shape.split(free)
        self._l2, self._l1 = l2, l1
        self._memory = memory
        self._random_state = np.random.RandomState(0) if random_state is None else random_state
        self._visited = visited
        self._run, self._copies = run, None
        if run is not None and run.n_ranges > 1:
            n_occurrences = len(likelihood.features.places)
            shape = likelihood.shape
            work = likelihood.n_tokens * chain_work(shape.n_labels, shape.kind.order)
            if work >= _LEAST_WORK and n_occurrences >= _OCCURRENCES * shape.cuts[0]:
                self._copies = np.empty((2, len(free)))
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
        likelihood = self._likelihood
        order = self._order()
        self._visited = True
        likelihood.shape.set_impossible(vector, -np.inf)
        strength = likelihood.sample_weight * n_parts / self._l2
        if self._copies is None:
            successful = self._visit(vector, order, strength)
        else:
            successful = self._visit_in_blocks(vector, order, strength)
        if not successful:
            return False
        if theta is not vector:
            theta[:] = shrink(vector, self._l1 / self._l2)
        self.loss = likelihood.sample_weight @ self._memory.loss
        self.distance = self._priority().sum()
        return True

    def _visit(self, vector, order, strength):
        """Visit sequences one after the other."""
        likelihood, threshold = self._likelihood, self._l1 / self._l2
        chain = likelihood.shape.split(vector)
        shrunk = likelihood.with_list(likelihood.shape.shrunk(vector, threshold), own=True)
        work = chain_work(likelihood.shape.n_labels, likelihood.shape.kind.order)
        for part in portions(np.diff(likelihood.offsets)[order], work):
            where = likelihood.features, likelihood.offsets, order[part]
            where += likelihood.labels, likelihood.cost
            changed = strength, chain, shrunk, threshold, self._free, self._memory
            if not dual_free_epoch(*where, *changed):
                return False
        return True

    def _visit_in_blocks(self, vector, order, strength):
        """Visit sequences in two threads, which learn of each other after each block."""
        strength, lengths = _SHORTER * strength, np.diff(self._likelihood.offsets)
        self._copies[:] = vector
        for block in np.array_split(order, _BLOCKS):
            halves = halve(block, lengths)
            visits = zip(self._copies, halves, strict=True)
            if not all(self._run.each(lambda visit: self._visit(*visit, strength), visits)):
                return False
            merge_changes(vector, *self._copies, 1 / _SHORTER)
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
    return Memory(
        np.zeros((n_rows, k), np.float32),
        np.zeros((n_slabs, n_transitions), np.float32),
        *np.zeros((2, n_sequences)),
        np.full(n_sequences, _FIRST_CAUTION),
    )


def draw_order(priority, random_state):
    """Draw as many sequences as there are, most of them by the square roots of their priorities."""
    n, priority = len(priority), np.sqrt(priority)
    total = priority.sum()
    # Without a finite priority all sequences are alike.
    share = priority / total if 0 < total < np.inf else np.full(n, 1 / n)
    bounds = np.cumsum(_UNIFORM / n + (1 - _UNIFORM) * share)
    places = (np.arange(n) + random_state.random_sample()) / n
    return random_state.permutation(np.minimum(np.searchsorted(bounds, places), n - 1))


def halve(order, lengths):
    """Split visits into two parts of about equally many tokens, all visits of a sequence in one.

    Parameters
    ----------
    order : ndarray
        Numbers of sequences, some of them several times.
    lengths : ndarray of shape (n_sequences,)
        Number of tokens of each sequence.

    Returns
    -------
    first, second : ndarray
        Numbers of sequences, in the given order.
    """
    visited, inverse, counts = np.unique(order, return_inverse=True, return_counts=True)
    # From the longest to the shortest, one after the other: a, b, b, a, a, b, b, ...
    by_work = np.argsort(-counts * lengths[visited], kind="stable")
    side = np.empty(len(visited), bool)
    side[by_work] = (np.arange(len(visited)) + 1) // 2 % 2
    second = side[inverse]
    return order[~second], order[second]


def shrink(vector, threshold):
    """Move the numbers of a vector towards zero; those closer to it than `threshold` become it."""
    return np.copysign(np.maximum(np.abs(vector) - threshold, 0.0), vector)
