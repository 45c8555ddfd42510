"""The parameter vector of a CRF: its parts, and its weights as a chain."""

from copy import copy
from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.chain.kinds import kind_of
from skstruct.input.constraints import WEIGHTS, Constraint, forbid
from skstruct.input.training_set import zero_transition_weights
from skstruct.learning.layout import copy_rows
from skstruct.matrices import pieces


class VectorShape(NamedTuple):
    """Parts of a parameter vector.

    Attributes
    ----------
    cuts : tuple of int
        Where transitions, biases and, if there are any, features of transitions or triples begin.
    n_labels : int
        Number of labels.
    kind : type
        That of the weights, `Chain` or another one.
    possible : Constraint or None
        Allowed transitions, first and last labels; None allows all.
    """

    cuts: tuple
    n_labels: int
    kind: type = Chain
    possible: Constraint | None = None

    @property
    def n_more(self):
        """Number of scores of transitions beyond those of a matrix: triples that are allowed."""
        k = self.n_labels
        zero = np.zeros((k, k))
        if self.possible is not None:
            zero[~self.possible.transition] = -np.inf
        return self.kind.n_more(zero)

    def with_states(self, n_places):
        """Shape of a vector with so many places of state weights."""
        more = n_places - self.cuts[0]
        return self._replace(cuts=tuple(cut + more for cut in self.cuts))

    def split(self, theta):
        """Views of the parts of a vector, as a chain."""
        k = self.n_labels
        state, transition, biases, *more = np.split(theta, self.cuts)
        # Rows of features differ in width.
        shaped = (
            part if name in self.kind.of_features else part.reshape(shape)
            for part, (name, shape) in zip(more, self.kind.more_shapes(k, 0).items(), strict=True)
        )
        return self.kind(state, transition.reshape(k, k), *biases.reshape(3, k), *shaped)

    def shrunk(self, vector, threshold):
        """Chain of the weights that are a vector's entries, shrunk; its state weights are not.

        All parts but the state weights are copies, or without a threshold features of transitions.
        """
        n_state = self.cuts[0]
        rest = vector[n_state:]
        rest = rest - np.clip(rest, -threshold, threshold)
        chain = self.with_states(0).split(rest)
        whole = self.split(vector)
        kept = ("weights", *self.kind.of_features) if threshold == 0 else ("weights",)
        return chain._replace(**{name: getattr(whole, name) for name in kept})

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
    layouts : list of RowLayout
        Layout of the weights of features of tokens, and of those of transitions, if there are any.
    frequencies : list of ndarray
        How often each label follows each other in the training data, of shape (n_labels, n_labels),
        and for a model of second order how often each follows each pair. It has weights of those
        pairs and triples.
    min_freq : float
        Least frequency of a transition, or triple, with a weight.
    all_possible_transitions : bool
        Count transitions that do not occur with frequency zero, instead of giving them no weight.
    fit_intercept : bool
        True if the model has biases.
    possible : Constraint or None
        Allowed transitions, first and last labels. Weights of others are pinned.

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
        layouts,
        frequencies,
        *,
        min_freq,
        all_possible_transitions,
        fit_intercept,
        possible,
    ):
        (states, *more_layouts), (frequency, *more_frequencies) = layouts, frequencies
        n_labels, n_state = len(frequency), states.n_places
        # The widths of rows are not needed here, and may be let go of.
        self._rows = [(layout.place, layout.labels) for layout in layouts]

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
        for layout in more_layouts:
            cuts += (self.size,)
            pinned.append(layout.pinned + self.size)
            self.size += layout.n_places
        for frequency in more_frequencies:
            triple = free(frequency)
            if possible is not None:
                triple &= possible.transition[:, :, None] & possible.transition
            cuts += (self.size,)
            pinned.append(self.size + np.flatnonzero(~triple))
            self.size += triple.size
        self.pinned = np.concatenate([part.astype(np.int32) for part in pinned])
        kind = kind_of(len(frequencies), len(layouts))
        self.shape = VectorShape(cuts, n_labels, kind, possible)
        self.n_weights = self.size - len(self.pinned)

    def first_order(self):
        """Layout without triples, which come last."""
        layout = copy(self)
        layout.size = self.shape.cuts[-1]
        layout.pinned = self.pinned[self.pinned < layout.size]
        layout.shape = self.shape._replace(cuts=self.shape.cuts[:-1], kind=Chain)
        layout.n_weights = layout.size - len(layout.pinned)
        return layout

    def pack(self, chain):
        """Copy the weights of a chain that the model has into a parameter vector."""
        theta = np.zeros(self.size)
        parts = self.shape.split(theta)
        of_features = dict(zip(parts.of_features, self._rows, strict=True))
        for name, part, weights in zip(parts._fields, parts, forbid(chain, None), strict=True):
            if name in of_features:
                copy_rows(part, *of_features[name], weights, True)
            else:
                part[...] = weights
        theta[self.pinned] = 0.0
        return theta

    def unpack(self, theta):
        """Copy a parameter vector into a chain, with zeros where the model has no weight.

        Weights of impossible labellings are minus infinity.
        """
        parts, n_labels = self.shape.constrained(theta), self.shape.n_labels
        unpacked = {}
        for name, where, zeros in zip(parts.of_features, self._rows, _ZEROS, strict=False):
            unpacked[name] = zeros(len(where[0]), n_labels)
            copy_rows(getattr(parts, name), *where, unpacked[name], False)
        kept = {name: part.copy() for name, part in parts._asdict().items() if name not in unpacked}
        return type(parts)(**unpacked, **kept)


# Weights of features of tokens, and of transitions.
_ZEROS = (lambda n_features, n_labels: np.zeros((n_features, n_labels))), zero_transition_weights


def transition_frequency(training_set, n_labels, order=1):
    """Count how often each label follows each other, or with order 2 each pair, weighted.

    The axes of the result are as many labels in the order of their tokens.
    """
    labels, offsets = training_set.labels, training_set.offsets
    frequency = np.zeros((n_labels,) * (order + 1))
    for part in pieces(range(order, len(labels))):
        later = np.arange(part.start, part.stop)
        sequence = np.searchsorted(offsets, later, side="right") - 1
        counted = later >= offsets[sequence] + order
        for back in range(order + 1):
            counted &= labels[later - back] >= 0
        later, weight = later[counted], training_set.sample_weight[sequence[counted]]
        where = tuple(labels[later - back] for back in range(order, -1, -1))
        np.add.at(frequency, where, weight)
    return frequency
