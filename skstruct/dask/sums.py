"""The objective of a CRF whose sequences are in shards: sums taken by workers, added in order.

A shard has the weights of its own features alone, and of all transitions and biases. Its sums have
the same bits as a range of sequences in one process.
"""

from itertools import repeat
from typing import NamedTuple

import numpy as np

from skstruct.dask.shard import own_arrays
from skstruct.input.costs import NO_COST
from skstruct.learning.ascent import DualFreeAscent, Memory, new_memory, soft_threshold
from skstruct.learning.layout import point_to_rows, restrict
from skstruct.learning.likelihood import Likelihood
from skstruct.learning.objective import Objective
from skstruct.matrices import copied_arrays, pieces, read_only, writable
from skstruct.utils.parallel import chain_work, range_runner

# Number of shards whose sums the driver takes at a time, unless the largest has more bytes than
# `_SMALL`. One by one takes longer on a few workers, but less memory.
_TOGETHER, _SMALL = 2, 1 << 21


class ShardedLikelihood:
    """``sum_i s_i nll_i(w)`` over all shards, as `skstruct.learning.likelihood.Likelihood`.

    Parameters
    ----------
    workers : Cluster
        Where the shards are; anything with its `map` and `iterate`.
    training_sets : list
        Futures of the training sets of the shards.
    numbers : list of ndarray
        For each shard the numbers of its features in the model.
    layout : RowLayout
        Layout of the state weights.
    vector : ParameterVector
        Layout of the parameter vector.
    partial : bool
        True if some labels are unknown.
    dtype : {"float64", "float32"}
        Type of the numbers that travel.
    cost : ndarray of shape (n_labels, n_labels) or (0, 0), default=NO_COST
        Added to the scores of labels, as of `Likelihood`.

    Attributes
    ----------
    positions : list of Positions
        For each shard, the positions of its parameters in the whole vector.
    parts : list
        Futures of the likelihoods of the shards.
    n_state : int
        Number of state weights, which come first.
    dtype : dtype
        As given.
    map, iterate : callable
        As in `workers`.
    """

    # Shards have their own.
    blocks = ()

    def __init__(
        self, workers, training_sets, numbers, layout, vector, partial, dtype, cost=NO_COST
    ):
        self.partial, self.map, self.iterate = partial, workers.map, workers.iterate
        self.dtype = np.dtype(dtype)
        self.n_state = layout.n_places
        # A few at a time: layouts take more memory than the weights.
        layouts = (restrict(layout, of_shard) for of_shard in numbers)
        settings = vector.shape, vector.transition, partial, cost
        shards = zip(training_sets, layouts, strict=True)
        self.parts = self.map(place, shards, settings, keep=True)
        self.positions = find_positions(layout, vector.size, numbers)
        totals = self.map(measure, [(part,) for part in self.parts])
        totals = map(sum, zip(*totals, strict=True))
        self.n_tokens, self.weighted_tokens, self.at_zero, *of_features = totals
        self.sum_of_squares, self.n_occurrences = of_features

    def value_and_gradient(self, theta, out, run=None):
        """Terms of the likelihood at `theta`; its gradient is written into `out`."""
        return self._sum("value_and_gradient", theta, out)

    def curvature(self, theta, out, run=None):
        """Estimate the diagonal of the Hessian at `theta`; parameters as of the gradient."""
        self._sum("curvature", theta, out)

    def _sum(self, method, theta, out):
        out[:] = 0.0
        sent = (positions.take(theta, self.dtype) for positions in self.positions)
        terms, shards = [], zip(self.parts, sent, repeat(method))
        for positions, (values, part) in self.each(evaluate, shards, direct=True):
            positions.add(part, out)
            terms += values
            # Free it before waiting for the next one.
            del part
        return terms

    def each(self, function, shards, *, direct=False):
        """Yield the positions of each shard, and the result of a function for it.

        Results are added in the order of the shards, and not kept: of many shards, few are in
        memory at the same time. `direct` is as in `iterate`.
        """
        largest = self.dtype.itemsize * max(map(len, self.positions))
        together = _TOGETHER if largest <= _SMALL else 1
        results = self.iterate(function, shards, together=together, direct=direct)
        # No zip: it would hold the last result while the next one comes.
        for positions in self.positions:
            yield positions, next(results)


class ShardedObjective(Objective):
    """``likelihood(w) + l2 / 2 |w|^2`` of sequences in shards."""

    has_memory_here = False

    def new_memory(self):
        likelihood = self.likelihood
        # A few at a time, too.
        positions = (of_shard.as_array() for of_shard in likelihood.positions)
        shards = zip(likelihood.parts, positions, strict=True)
        states = likelihood.map(remember, shards, keep=True)
        known = likelihood.map(has_memory, [(state,) for state in states])
        return states if all(known) else None

    def ascent(self, free, l2, l1, memory, run=None):
        return _ShardedAscent(self.likelihood, free, l2, l1, memory)


class _ShardedAscent:
    """Epochs of dual-free coordinate ascent by all shards at the same time (Ma et al., 2015).

    Attributes are as in `skstruct.learning.ascent.DualFreeAscent`.
    """

    def __init__(self, likelihood, free, l2, l1, states):
        self._likelihood, self._states = likelihood, states
        self._free, self._l2, self._l1 = free[likelihood.n_state :], l2, l1
        self._number = 0
        self.loss = self.distance = np.inf

    def epoch(self, vector, theta):
        """Let every shard visit its sequences, and add the changes of all."""
        likelihood, n = self._likelihood, len(self._states)
        shards = list(zip(likelihood.parts, self._states, range(n), strict=True))
        # In one piece: Dask keeps the inputs of all epochs, to recompute states that are lost.
        sent = vector.astype(likelihood.dtype)
        epoch = _Epoch(self._number, n, self._l2, self._l1, self._free, sent)
        self._states = likelihood.map(ascend, shards, epoch, keep=True)
        self._number += 1
        before, loss, distance = vector.copy(), 0, 0
        for positions, change in likelihood.each(getattr, zip(self._states, repeat("change"))):
            if not change.successful:
                vector[:] = before
                return False
            positions.add(change.vector, vector)
            loss, distance = loss + change.loss, distance + change.distance
            del change
        if self._l1:
            theta[:] = soft_threshold(vector, self._l1 / self._l2)
        self.loss, self.distance = loss, distance
        return True


# Positions of the parameters of a shard


def find_positions(layout, size, numbers):
    """Positions of the parameters of each shard in the parameter vector, ascending.

    Parameters
    ----------
    layout : RowLayout
        Of the whole model.
    size : int
        Length of the whole vector, which ends with parameters that all shards have.
    numbers : list of ndarray
        Features of each shard.

    Returns
    -------
    positions : list of Positions
    """
    rows = np.flatnonzero(layout.place >= 0)
    rows = rows[np.argsort(layout.place[rows])].astype(np.int32)
    # Row k is from bounds[k] to bounds[k + 1].
    bounds = np.append(layout.place[rows], layout.n_places).astype(np.int32)
    row_of = np.full(len(layout.place), -1, np.int32)
    row_of[rows] = np.arange(len(rows), dtype=np.int32)
    of_shards = (np.sort(row_of[features]) for features in numbers)
    return [Positions(bounds, own[np.searchsorted(own, 0) :], size) for own in of_shards]


class Positions:
    """Positions of the weights of some rows, and of the parameters that all shards share.

    They are computed on demand, in small arrays: there are many more positions than rows.
    """

    def __init__(self, bounds, rows, size):
        self._bounds, self._rows, self._size = bounds, rows, size
        self._n_state = int((bounds[rows + 1] - bounds[rows]).sum())

    def __len__(self):
        return self._n_state + self._size - self._bounds[-1]

    def as_array(self):
        return np.concatenate([positions for _, positions in self._parts()])

    def take(self, vector, dtype):
        entries = np.empty(len(self), dtype)
        for part, positions in self._parts():
            entries[part] = vector[positions]
        return entries

    def add(self, values, vector):
        for part, positions in self._parts():
            vector[positions] += values[part]

    def _parts(self):
        """Yield slices of the positions, and the positions in each."""
        start, bounds = 0, self._bounds
        for rows in pieces(self._rows):
            starts = bounds[rows]
            widths = bounds[rows + 1] - starts
            ends = np.cumsum(widths, dtype=np.int32)
            positions = np.arange(ends[-1], dtype=np.int32)
            positions += np.repeat(starts - ends + widths, widths)
            yield slice(start, start + len(positions)), positions
            start += len(positions)
        yield slice(start, len(self)), np.arange(bounds[-1], self._size, dtype=np.int32)


# What workers do


class _Epoch(NamedTuple):
    """Settings of an epoch of ascent that all shards share."""

    number: int
    n_shards: int
    l2: float
    l1: float
    free: np.ndarray  # one for transitions, biases and triples that are weights of the model
    vector: np.ndarray  # the weights of all shards


class _Change(NamedTuple):
    """Change of the weights that a shard proposes, and attributes of its `DualFreeAscent`."""

    vector: np.ndarray
    loss: float
    distance: float
    successful: bool


def place(training_set, layout, settings):
    """Make the likelihood of a shard, with a layout of its own."""
    shape, transition, partial, cost = settings
    training_set = own_arrays(training_set)
    (rows,) = training_set.rows.sets()
    features = point_to_rows(rows, writable(layout))
    shape = shape.with_states(layout.n_places)
    of_model = shape, writable(transition), partial, read_only(cost)
    blocks = []
    for start, block in training_set.rows.placed:
        # The rows of its columns are full, and side by side (`make_objective`).
        first = int(layout.place[start])
        blocks.append((block, slice(first, first + block.n_columns * shape.n_labels)))
    return Likelihood(features, training_set, *of_model, blocks=blocks)


def measure(likelihood, _):
    """Sums over the tokens, the likelihood at zero, and sums over the features of the tokens."""
    of_tokens = likelihood.n_tokens, likelihood.weighted_tokens, likelihood.at_zero
    return *of_tokens, likelihood.sum_of_squares, likelihood.n_occurrences


def evaluate(likelihood, theta, method, _):
    """Call a method of the likelihood of a shard; return its result, and the array it fills."""
    out = np.zeros(len(theta))
    if likelihood.n_tokens == 0:
        return [], out.astype(theta.dtype, copy=False)
    # One range for each shard, so that the result does not depend on the number of threads.
    work = chain_work(likelihood.shape.n_labels, likelihood.shape.kind.order)
    with range_runner(likelihood.offsets, 1, work) as run:
        values = getattr(likelihood, method)(np.array(theta, np.float64), out, run)
    return values or [], out.astype(theta.dtype, copy=False)


class _State(NamedTuple):
    """State of a shard after an epoch of ascent."""

    memory: Memory  # None if there can be none
    positions: np.ndarray  # of its weights among all shards'
    change: _Change  # its proposal


def remember(likelihood, positions, _):
    """State of a shard before the first epoch of ascent."""
    return _State(new_memory(likelihood), positions, None)


def has_memory(state, _):
    """Return True unless a shard can have no memory."""
    return state.memory is not None


def ascend(likelihood, state, shard, epoch):
    """Visit the sequences of a shard; return its next state."""
    vector, dtype = epoch.vector[state.positions], epoch.vector.dtype
    if likelihood.n_tokens == 0:
        return state._replace(change=_Change(np.zeros_like(vector), 0.0, 0.0, True))
    # Copies: a task that is run again finds the arguments that it had.
    memory = copied_arrays(state.memory)
    vector = vector.astype(np.float64)
    before = vector.copy()
    theta = soft_threshold(vector, epoch.l1 / epoch.l2) if epoch.l1 else vector
    free = np.concatenate([np.ones(likelihood.shape.cuts[0]), epoch.free])
    # Seeded by shard and epoch, so that the result does not depend on the worker.
    random_state = np.random.RandomState(np.random.MT19937([shard, epoch.number]))
    visited = epoch.number > 0
    ascent = DualFreeAscent(likelihood, free, epoch.l2, epoch.l1, memory, random_state, visited)
    successful = ascent.epoch(vector, theta, epoch.n_shards)
    likelihood.shape.set_impossible(vector, 0.0)
    change = ((vector - before) / epoch.n_shards).astype(dtype, copy=False)
    change = _Change(change, float(ascent.loss), float(ascent.distance), successful)
    return _State(memory, state.positions, change)
