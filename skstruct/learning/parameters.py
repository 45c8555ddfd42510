"""The parameter vector of a CRF: which weights exist, and where each one stands."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.chain.kinds import kind_of
from skstruct.chain.scores import Rows
from skstruct.input.constraints import WEIGHTS, Constraint, forbid
from skstruct.input.training_set import take_rows, zero_transition_weights
from skstruct.kernels.likelihood.parameters import (
    LABEL_TYPE,
    MOST_LABELS,
    TRANSITION_TYPE,
    StateFeatures,
    copy_rows,
    group_by_feature,
    place_rows,
    row_pointers,
)
from skstruct.matrices import pieces, read_only


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


class RowLayout(NamedTuple):
    """Places of the weights of features in a parameter vector.

    Attributes
    ----------
    place : ndarray of shape (n_features,), int32
        Start of the row of each feature, -1 if it has no weight.
    width : ndarray of shape (n_features,), int32
        Length of each row.
    labels : ndarray of shape (full_from,)
        Labels of the short rows, which come first.
    pinned : ndarray, int32
        Positions in full rows that are not weights of the model.
    n_places : int
        Total length of all rows.
    """

    place: np.ndarray
    width: np.ndarray
    labels: np.ndarray
    pinned: np.ndarray
    n_places: int


class Observed(NamedTuple):
    """Labels that each feature occurs with.

    Attributes
    ----------
    indptr : ndarray of shape (n_features + 1,), int64
        First entry of each feature.
    labels : ndarray of shape (n_entries,)
        Labels, a feature's in any order and any number of times.
    values : ndarray of shape (n_entries,)
        What each entry adds to the frequency of the feature and the label; empty where all are one.
    order : ndarray of shape (n_seen,), int32
        Features that occur, by first appearance.
    """

    indptr: np.ndarray
    labels: np.ndarray
    values: np.ndarray
    order: np.ndarray


def observe(rows, labels, weight, n_features, n_labels):
    """Collect the labels that features occur with.

    Parameters
    ----------
    rows : Rows
        The tokens.
    labels : ndarray of shape (n_rows,)
        Their labels, negative where unknown. Tokens without a label are not counted, but their
        features occur.
    weight : ndarray of shape (n_rows,) or None
        Weight of each token; None for one.
    n_features, n_labels : int
        Size of the model.

    Returns
    -------
    observed : Observed
    """
    counted = rows if weight is None else _weighted_rows(rows, weight)
    none = np.empty(0, _label_type(n_labels))
    observed = Observed(*group_by_feature(*_labelled(counted, labels), n_features, none))
    if np.any(labels < 0):
        # Features that no labelled token has may still have weights for all labels.
        *_, order = group_by_feature(rows, np.zeros_like(labels), n_features, none)
        observed = observed._replace(order=order)
    return observed


def lay_out(observed, n_labels, min_freq, every_label):
    """Lay out the weights of features in the parameter vector.

    Parameters
    ----------
    observed : Observed
        Labels that features occur with.
    n_labels : int
        Number of labels.
    min_freq : float
        Least frequency of a feature and a label with a weight.
    every_label : bool
        Give a feature weights for labels that it does not occur with, too.

    Returns
    -------
    layout : RowLayout

    Raises
    ------
    ValueError
        If there are more weights than the kernels can count.
    """
    layout = RowLayout(*place_rows(*observed, n_labels, float(min_freq), every_label))
    if layout.n_places > np.iinfo(np.int32).max:
        raise ValueError(
            f"{layout.n_places} weights are more than the 2,147,483,647 that are supported; "
            "use fewer features or a larger min_freq."
        )
    return layout


def point_to_rows(rows, layout):
    """Replace the features of tokens by pointers to their rows, a `StateFeatures`."""
    pointers = row_pointers(rows, layout.place, layout.width)
    return without_zeros(StateFeatures(*pointers, layout.labels, len(layout.labels)))


def without_zeros(features):
    """Drop occurrences with the value 0, which change no score and no gradient.

    A feature that is False, such as those of sklearn-crfsuite's tutorial, has this value. If all
    that is left is one, no values are kept.
    """
    data = features.data
    if np.all(data == 1):
        return features._replace(data=np.empty(0))
    kept = data != 0
    if kept.all():
        return features
    ends = np.concatenate([[0], np.cumsum(kept)])
    data = data[kept]
    if np.all(data == 1):
        data = np.empty(0)
    return features._replace(indptr=ends[features.indptr], places=features.places[kept], data=data)


def sum_observed(observed, n_labels):
    """Make one entry of all those of a feature and a label: as many as there are weights.

    Parameters
    ----------
    observed : Observed
    n_labels : int

    Returns
    -------
    observed : Observed
    """
    n_features = len(observed.indptr) - 1
    feature = np.repeat(np.arange(n_features), np.diff(observed.indptr))
    pairs, which = np.unique(feature * n_labels + observed.labels, return_inverse=True)
    values = observed.values if observed.values.size else None
    total = np.bincount(which, values, len(pairs)).astype(np.float64, copy=False)
    feature, label = np.divmod(pairs, n_labels)
    return Observed(
        _pointers(feature, n_features), label.astype(observed.labels.dtype), total, observed.order
    )


def merge_observed(parts, numbers, n_features, n_labels, by_frequency=True):
    """Join what parts of a training set have observed, in their order.

    Parameters
    ----------
    parts : iterable of Observed
        Of each part, by its own numbers of features, with one entry for a feature and a label.
        They are asked for one by one, as all of them take many times the memory of their union.
    numbers : list of ndarray
        The number in the whole model of each feature of a part.
    n_features, n_labels : int
        Size of the model.
    by_frequency : bool, default=True
        False if it does not matter how often a feature occurs with a label.

    Returns
    -------
    observed : Observed
        As `observe` collects it from the whole training set, with one entry for a feature and a
        label; without values if these do not matter.
    """
    # Pairs of a feature and a label, sorted.
    pairs, values = np.empty(0, np.int64), np.empty(0)
    seen, order, dtype = np.zeros(n_features, bool), [], None
    for part, of_part in zip(parts, numbers, strict=True):
        appeared = of_part[part.order]
        order.append(appeared[~seen[appeared]].astype(np.int32))
        seen[appeared], dtype = True, part.labels.dtype
        own = np.repeat(of_part.astype(np.int64) * n_labels, np.diff(part.indptr)) + part.labels
        by_pair = np.argsort(own)
        own = own[by_pair]
        where, new = _find(pairs, own)
        if by_frequency:
            of_own = part.values[by_pair]
            values[where[~new]] += of_own[~new]
            values = np.insert(values, where[new], of_own[new])
        pairs = np.insert(pairs, where[new], own[new])
    feature, label = np.divmod(pairs, n_labels)
    order = np.concatenate(order)
    return Observed(_pointers(feature, n_features), label.astype(dtype), values, order)


def _find(pairs, own):
    """Places of some sorted pairs among others, and which of them are not there yet."""
    where = np.searchsorted(pairs, own)
    new = np.ones(len(own), bool)
    inside = where < len(pairs)
    new[inside] = pairs[where[inside]] != own[inside]
    return where, new


def restrict(layout, features):
    """Lay out the rows of some features alone, in the same order.

    Parameters
    ----------
    layout : RowLayout
        Of the whole model.
    features : ndarray
        Numbers of features, each once.

    Returns
    -------
    layout : RowLayout
        Of these features, by their position in `features`.
    """
    place, width = layout.place[features], layout.width[features]
    rows = np.flatnonzero(place >= 0)
    rows = rows[np.argsort(place[rows])]
    ends = np.cumsum(width[rows], dtype=np.int64)
    starts = ends - width[rows]
    own_place = np.full(len(features), -1, np.int32)
    own_place[rows] = starts
    # Short rows come first, and only these have labels.
    short = rows[: np.searchsorted(place[rows], len(layout.labels))]
    n_short = int(ends[len(short) - 1]) if len(short) else 0
    where = np.arange(n_short) + np.repeat(place[short] - starts[: len(short)], width[short])
    labels, nothing = layout.labels[where], np.empty(0, np.int32)
    return RowLayout(own_place, width, labels, nothing, int(ends[-1]) if len(ends) else 0)


def _pointers(feature, n_features):
    """First entry of each feature, where entries are sorted by feature."""
    counts = np.bincount(feature, minlength=n_features)
    return np.concatenate([[0], np.cumsum(counts)])


def _label_type(n_labels):
    return LABEL_TYPE if n_labels <= MOST_LABELS else TRANSITION_TYPE


def _labelled(rows, labels):
    """Return the rows with a label, and their labels."""
    kept = np.flatnonzero(labels >= 0)
    return (rows, labels) if len(kept) == len(labels) else (take_rows(rows, kept), labels[kept])


def _weighted_rows(rows, weight):
    """Multiply the values of each row by the weight of its token."""
    if np.all(weight == 1):
        return rows
    weight = np.repeat(weight, np.diff(rows.indptr))
    data = weight * rows.data if rows.data.size else weight
    return read_only(Rows(rows.indptr, rows.indices, data))


def without_first_tokens(rows, offsets):
    """Empty the rows of first tokens, which no transition leads to."""
    counts = np.diff(rows.indptr)
    reached = np.ones(len(counts), bool)
    reached[offsets[:-1][np.diff(offsets) > 0]] = False
    if not counts[~reached].any():
        return rows
    kept = np.repeat(reached, counts)
    indptr = np.concatenate([[0], np.cumsum(counts * reached)])
    data = rows.data[kept] if rows.data.size else rows.data
    return read_only(Rows(indptr, rows.indices[kept], data))


def squared(features):
    """Square the values of features."""
    first, *more = (part._replace(data=np.square(part.data)) for part in features.sets())
    return type(features)(*first, *more)


def sum_of_squares(features):
    """Sum the squares of the values of features."""
    return np.square(features.data).sum() if features.data.size else len(features.places)


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
