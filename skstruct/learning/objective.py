"""The training objective of a CRF, its gradient and curvature, and its parameter vector."""

from copy import copy
from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.chain.kinds import kind_of
from skstruct.compiled.rows import add_scaled, dot
from skstruct.input.constraints import WEIGHTS, Constraint, forbid
from skstruct.input.training_set import zero_transition_weights
from skstruct.learning.ascent import DualFreeAscent, new_memory
from skstruct.learning.layout import (
    TransitionFeaturePlaces,
    copy_rows,
    lay_out,
    observe,
    point_to_rows,
    with_blocks,
    without_first_tokens,
)
from skstruct.learning.likelihood import Likelihood
from skstruct.matrices import pieces, writable

# Least curvature of a weight, relative to the mean weight of a token and to small features.
_LEAST_CURVATURE = 1e-3


class Objective:
    """``likelihood(w) + l2 / 2 |w|^2``, and its gradient.

    Parameters
    ----------
    likelihood : Likelihood
        The sum over all sequences, wherever they are.
    vector : ParameterVector
        Layout of the parameter vector.
    l2 : float
        Strength of the penalty.

    Attributes
    ----------
    size : int
        Length of the parameter vector.
    n_weights : int
        Number of its positions that are weights.
    n_labels, n_tokens : int
        Numbers of labels, and of tokens.
    partial : bool
        True if some labels are unknown. The objective is then not convex.
    """

    # Whether this process has the memory of an ascent.
    has_memory_here = True

    def __init__(self, likelihood, vector, l2):
        self.likelihood, self.vector, self.l2 = likelihood, vector, float(l2)
        self.size, self.n_weights = vector.size, vector.n_weights
        self.n_labels, self.n_tokens = vector.shape.n_labels, likelihood.n_tokens
        self.partial = likelihood.partial

    def value_and_gradient(self, theta, out, run):
        """Objective at `theta`; its gradient is written into `out`.

        Parameters
        ----------
        theta : ndarray of shape (size,)
            Parameters.
        out : ndarray of shape (size,)
            Receives the gradient.
        run : callable
            From `skstruct.utils.parallel.range_runner`.

        Returns
        -------
        value : float
        """
        value = sum(self.likelihood.value_and_gradient(theta, out, run))
        add_scaled(out, self.l2, theta, out)
        out[self.vector.pinned] = 0.0
        return value + self.l2 / 2 * dot(theta, theta)

    def curvature(self, theta, out, run):
        """Estimate the diagonal of the Hessian at `theta`; parameters as of the gradient."""
        self.likelihood.curvature(theta, out, run)
        # Without penalty the curvature of a weight may be close to zero.
        weight, square = self.scale
        out += max(self.l2, _LEAST_CURVATURE * weight * min(square or 1.0, 1.0))

    @property
    def bound_at_zero(self):
        """Objective at zero; an upper bound on it where some labellings are impossible."""
        return self.likelihood.at_zero

    def new_memory(self):
        """Memory of the sequences before an ascent; None if there can be none."""
        return new_memory(self.likelihood)

    def ascent(self, free, l2, l1, memory, run=None):
        """Dual-free coordinate ascent of this objective (`skstruct.learning.ascent`)."""
        return DualFreeAscent(self.likelihood, free, l2, l1, memory, run=run)

    def first_order(self):
        """Objective without the weights of triples."""
        vector = self.vector.first_order()
        return Objective(self.likelihood.first_order(vector), vector, self.l2)

    @property
    def scale(self):
        """Mean weight of a token, and mean square of the features that are not zero."""
        square = self.likelihood.sum_of_squares / max(self.likelihood.n_occurrences, 1)
        return self.likelihood.weighted_tokens / max(self.n_tokens, 1), square

    @property
    def mean_square(self):
        """Mean over the tokens of the squared norm of their features."""
        return max(self.likelihood.sum_of_squares, 1.0) / self.n_tokens

    def suboptimality_bound(self, gradient):
        """Bound the distance of the objective from its minimum, given its gradient.

        The objective is strongly convex with modulus `l2`, so the distance is at most
        ``|gradient|^2 / (2 l2)``. Infinite where labels are unknown: the objective is not convex.
        """
        if self.partial:
            return np.inf
        square = dot(gradient, gradient)
        if square == 0:
            return 0.0
        return square / (2 * self.l2) if self.l2 > 0 else np.inf

    def pack(self, chain):
        """Copy the weights of a chain that the model has into a parameter vector."""
        return self.vector.pack(chain)

    def unpack(self, theta):
        """Copy a parameter vector into a chain, with zeros where the model has no weight.

        Weights of impossible labellings are minus infinity.
        """
        return self.vector.unpack(theta)


class CRFObjective(Objective):
    """``sum_i s_i nll_i(w) + l2 / 2 |w|^2`` of a training set in this process.

    The weights are CRFsuite's choice: of (feature, label) and (label, label) combinations that
    occur in the training data at least `min_freq` times, or all of them. Columns of blocks have a
    weight for every label. The parameter vector is laid out as in `VectorShape`.

    Parameters
    ----------
    training_set : TrainingSet
        Sequences with a positive weight. Unknown labels are negative: the likelihood is then that
        of all labellings that agree with the known ones, and only labelled tokens count as
        observed.
    model : Model
        Size of the model. Labellings that its constraint rules out have probability zero; weights
        that would be minus infinity are pinned. Its costs are added to the scores of labels.
    l2 : float
        Strength of the penalty.
    min_freq : float
        Least frequency of a combination with a weight. The frequency of a feature is the sum of its
        absolute values.
    all_possible_states, all_possible_transitions : bool
        Count combinations that do not occur with frequency zero, instead of giving them no weight;
        for transitions, also their combinations with features.
    fit_intercept : bool
        True if the model has biases.

    Attributes
    ----------
    offsets, labels, sample_weight : ndarray
        Those of the training set.
    """

    def __init__(
        self,
        training_set,
        model,
        *,
        l2,
        min_freq=0,
        all_possible_states=False,
        all_possible_transitions=False,
        fit_intercept=True,
    ):
        self.offsets, self.labels = training_set.offsets, training_set.labels
        self.sample_weight = training_set.sample_weight
        n_features, n_labels, n_transition_features, possible, order, cost = model
        self.n_features = n_features
        # Weight of each token.
        weight = np.repeat(self.sample_weight, np.diff(self.offsets)) if min_freq > 0 else None
        rows, *of_transitions = training_set.rows.sets()
        # The observed labels are not kept: there is one for each occurrence of a feature.
        states = lay_out(
            observe(_counted(rows, min_freq), self.labels, weight, n_features, n_labels),
            n_labels,
            min_freq,
            all_possible_states,
        )
        placed = training_set.rows.placed
        states, where = with_blocks(states, placed, n_labels)
        features, layouts = point_to_rows(rows, states), [states]
        for rows in of_transitions:
            # Fail now rather than at the end; memory that is not written to is not used.
            zero_transition_weights(n_transition_features, n_labels)
            rows = without_first_tokens(rows, self.offsets)
            size = n_transition_features, n_labels**2
            counted = _counted(rows, min_freq)
            observed = observe(counted, self._transitions(n_labels), weight, *size)
            transitions = lay_out(observed, n_labels**2, min_freq, all_possible_transitions)
            features = TransitionFeaturePlaces(*features, point_to_rows(rows, transitions))
            layouts.append(transitions)
        vector = ParameterVector(
            layouts,
            [transition_frequency(training_set, n_labels, n) for n in range(1, order + 1)],
            min_freq=min_freq,
            all_possible_transitions=all_possible_transitions,
            fit_intercept=fit_intercept,
            possible=possible,
        )
        partial = bool(np.any(self.labels < 0))
        of_model = vector.shape, vector.transition, partial, cost
        blocks = [(one.block, part) for one, part in zip(placed, where, strict=True)]
        likelihood = Likelihood(features, training_set, *of_model, blocks=blocks)
        super().__init__(likelihood, vector, l2)

    def _transitions(self, n_labels):
        """Code of the transition into each token; -1 where a label is unknown."""
        labels = self.labels
        transitions = np.zeros_like(labels)
        transitions[1:] = labels[:-1] * n_labels + labels[1:]
        transitions[1:][(labels[:-1] < 0) | (labels[1:] < 0)] = -1
        return transitions


def _counted(rows, min_freq):
    """Rows as `observe` needs them: without values where any frequency is enough.

    Values would be stored once more, at the peak of the memory of a fit.
    """
    return rows if min_freq > 0 else rows._replace(data=rows.data[:0])


# The parameter vector


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
        """Number of scores of transitions beyond a matrix: triples that are allowed."""
        return self.kind.n_more(self.no_transitions())

    def no_transitions(self):
        """Matrix of transition scores where no transition has a weight."""
        zero = np.zeros((self.n_labels, self.n_labels))
        if self.possible is not None:
            zero[~self.possible.transition] = -np.inf
        return zero

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
        rest = rest - (0.0 if threshold is None else np.clip(rest, -threshold, threshold))
        chain = self.with_states(0).split(rest)
        whole = self.split(vector)
        kept = ("weights", *self.kind.of_features) if threshold is None else ("weights",)
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
        Layouts of the weights of features of tokens, and of transitions, if there are any.
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
        # The widths of rows are not needed here, and can be freed.
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
                # The same kernel writes the weights of a finished fit.
                copy_rows(part, *of_features[name], writable(weights), True)
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
