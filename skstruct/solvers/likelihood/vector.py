"""The parameter vector of a CRF: which weights there are, and where each one stands.

It holds the state weights (see `skstruct.kernels.likelihood.parameters`), then the transition
matrix, and the biases of all, first and last tokens. Features of transitions come last, and are
laid out like those of states, with transitions for labels; or, in a model of second order, the
matrix of triples. Positions that are no weights of the model are *pinned*: they are zero and so is
their gradient.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from skstruct import kernels
from skstruct.input.constraints import WEIGHTS, Constraint, forbid
from skstruct.input.training_set import zero_transition_weights

__all__ = ["ParameterVector", "VectorShape"]


class VectorShape(NamedTuple):
    """Parts of a parameter vector.

    Attributes
    ----------
    cuts : tuple of int
        Where transitions, biases and, if there are any, features of transitions or triples begin.
    n_labels : int
        Number of labels.
    possible : Constraint or None
        Allowed transitions, first and last labels; None allows all.
    order : int
        2 if there are triples, else 1.
    """

    cuts: tuple
    n_labels: int
    possible: Constraint | None = None
    order: int = 1

    @property
    def has_transition_features(self):
        """True if there are features of transitions."""
        return self.order == 1 and len(self.cuts) > 2

    @property
    def n_triples(self):
        """Number of triples of labels with a score of their own: those that are not forbidden."""
        if self.order == 1:
            return 0
        zero = self.constrained(np.zeros(self.cuts[-1] + self.n_labels**3)).transition
        return kernels.count_triples(zero)

    @property
    def may_list(self):
        """True if all transitions are those of one matrix, which may be listed."""
        return len(self.cuts) == 2

    def with_states(self, n_places):
        """Shape of a vector with so many places of state weights."""
        more = n_places - self.cuts[0]
        return self._replace(cuts=tuple(cut + more for cut in self.cuts))

    def split(self, theta):
        """Views of the parts of a vector, as a chain."""
        k = self.n_labels
        state, transition, biases, *more = np.split(theta, self.cuts)
        chain = kernels.Chain(state, transition.reshape(k, k), *biases.reshape(3, k))
        if self.order == 2:
            return kernels.SecondOrderChain(*chain, more[0].reshape(k * k, k))
        return kernels.TransitionChain(*chain, *more) if more else chain

    def constrained(self, theta):
        """Split as `split` does, with minus infinity for impossible labellings, in copies."""
        chain = self.split(theta)
        return chain if self.possible is None else forbid(chain, self.possible)

    def set_impossible(self, theta, value):
        """Set the weights of impossible labellings in a vector."""
        if self.possible is not None:
            chain = self.split(theta)
            for name in WEIGHTS:
                getattr(chain, name)[~getattr(self.possible, name)] = value


class ParameterVector:
    """Layout of all weights of a model.

    Parameters
    ----------
    states : RowLayout
        Layout of the state weights.
    frequency : ndarray of shape (n_labels, n_labels)
        How often each label follows each other in the training data.
    min_freq : float
        Least frequency of a transition with a weight.
    all_possible_transitions : bool
        Count transitions that do not occur with frequency zero, instead of giving them no weight.
    fit_intercept : bool
        True if the model has biases.
    possible : Constraint or None
        Allowed transitions, first and last labels. Weights of others are pinned.
    transitions : RowLayout, default=None
        Layout of the weights of features of transitions, if there are any.
    triple_frequency : ndarray of shape (n_labels, n_labels, n_labels), default=None
        How often each label follows each pair, if triples have weights. Which of them have one is
        decided as for transitions.

    Attributes
    ----------
    shape : VectorShape
        Parts of the vector.
    size : int
        Length of the vector.
    n_weights : int
        Number of its positions that are weights.
    pinned : ndarray
        The other positions.
    transition : ndarray of bool of shape (n_labels, n_labels)
        Transitions with a weight.
    """

    def __init__(
        self,
        states,
        frequency,
        *,
        min_freq,
        all_possible_transitions,
        fit_intercept,
        possible,
        transitions=None,
        triple_frequency=None,
    ):
        n_labels, n_state = len(frequency), states.n_places
        # The widths of rows are not needed here, and may be let go of.
        self._rows = states.place, states.labels
        self._transition_rows = None
        if transitions is not None:
            self._transition_rows = transitions.place, transitions.labels

        def free(frequency):
            return ((frequency > 0) | all_possible_transitions) & (frequency >= min_freq)

        self.transition = free(frequency)
        biases = np.full((3, n_labels), fit_intercept)
        if possible is not None:
            self.transition &= possible.transition
            biases[1:] &= np.stack([possible.start, possible.end])
        no_transition = n_state + np.flatnonzero(~self.transition)
        no_bias = n_state + n_labels * n_labels + np.flatnonzero(~biases)
        self.size = n_state + n_labels * n_labels + 3 * n_labels
        cuts = (n_state, n_state + n_labels * n_labels)
        pinned = [states.pinned, no_transition, no_bias]
        if transitions is not None:
            cuts += (self.size,)
            pinned.append(transitions.pinned + self.size)
            self.size += transitions.n_places
        order = 1
        if triple_frequency is not None:
            order, triple = 2, free(triple_frequency)
            if possible is not None:
                triple &= possible.transition[:, :, None] & possible.transition
            cuts += (self.size,)
            pinned.append(self.size + np.flatnonzero(~triple))
            self.size += triple.size
        self.pinned = np.concatenate([part.astype(np.int32) for part in pinned])
        self.shape = VectorShape(cuts, n_labels, possible, order)
        self.n_weights = self.size - len(self.pinned)

    def first_order(self):
        """Layout without triples, which come last."""
        layout = copy(self)
        layout.size = self.shape.cuts[-1]
        layout.pinned = self.pinned[self.pinned < layout.size]
        layout.shape = self.shape._replace(cuts=self.shape.cuts[:-1], order=1)
        layout.n_weights = layout.size - len(layout.pinned)
        return layout

    def pack(self, chain):
        """Copy the weights of a chain that the model has into a parameter vector."""
        theta = np.zeros(self.size)
        kernels.copy_rows(theta, *self._rows, chain.weights, True)
        parts = self.shape.split(theta)
        chain = forbid(chain, None)
        names = parts._fields[1:] if self.shape.order == 2 else kernels.Chain._fields[1:]
        for name in names:
            getattr(parts, name)[...] = getattr(chain, name)
        if self._transition_rows is not None:
            where, weights = self._transition_rows, chain.transition_weights
            kernels.copy_rows(parts.transition_weights, *where, weights, True)
        theta[self.pinned] = 0.0
        return theta

    def unpack(self, theta):
        """Copy a parameter vector into a chain, with zeros where the model has no weight.

        Weights of impossible labellings are minus infinity.
        """
        parts, n_labels = self.shape.constrained(theta), self.shape.n_labels
        weights, where = np.zeros((len(self._rows[0]), n_labels)), self._transition_rows
        kernels.copy_rows(theta, *self._rows, weights, False)
        if where is None:
            return type(parts)(weights, *(part.copy() for part in parts[1:]))
        chain = kernels.Chain(weights, *(part.copy() for part in parts[1:5]))
        of_transitions = zero_transition_weights(len(where[0]), n_labels)
        kernels.copy_rows(parts.transition_weights, *where, of_transitions, False)
        return kernels.TransitionChain(*chain, of_transitions)
