"""The training objective of a CRF as a function of one parameter vector."""

from __future__ import annotations

from itertools import islice

import numpy as np

from skstruct import kernels
from skstruct.decoding import list_transitions, tabulate
from skstruct.input.constraints import WEIGHTS, forbid
from skstruct.input.training_set import zero_transition_weights
from skstruct.solvers.layout import (
    lay_out_rows,
    squared,
    sum_of_squares,
    transition_frequency,
    without_first_tokens,
)
from skstruct.utils.parallel import chain_work, portions

__all__ = ["CRFObjective", "draw_order"]

# A batch method takes over after so many epochs of dual-free ascent, or when the ascent is within
# this share of the objective, by a generous estimate: from there it gains as much in the same time.
_MOST_EPOCHS = 12
_NEAR = 0.03
# Least penalty in the start, relative to the mean square of the features of a token.
_LEAST_PENALTY = 1e-3
# Least ratio of both penalties in the start: its weights are zero until the slope is above ``l1``.
_LEAST_RATIO = 0.5
# Largest number of bytes that the start may store.
_MOST_MEMORY = 2**31
# Share of the visits in a random order that is uniform; the others are by priority.
_UNIFORM = 0.1


class CRFObjective:
    """``sum_i s_i nll_i(w) + l2 / 2 |w|^2``, and its gradient.

    The weights are CRFsuite's choice: those of (feature, label) and (label, label) combinations
    that occur in the training data at least `min_freq` times, or all of them. The
    parameter vector holds the state weights (see `skstruct.kernels.likelihood.parameters`), then
    the transition matrix, and the biases of all, first and last tokens. Features of transitions
    come last, and are laid out like those of states, with transitions for labels. Positions
    that are no weights of the model are *pinned*: they are zero and so is their gradient.

    Parameters
    ----------
    training_set : TrainingSet
        Sequences with a positive weight. Unknown labels are negative: the likelihood is then that
        of all labellings that agree with the known ones, and only labelled tokens count as
        observed.
    n_features, n_labels : int
        Size of the model.
    n_transition_features : int, default=0
        Number of transition features, if the rows of the training set have them.
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
    possible : Constraint, default=None
        Allowed transitions, first and last labels. Other labellings have probability zero; weights
        that would be minus infinity are pinned.

    Attributes
    ----------
    size : int
        Length of the parameter vector.
    n_weights : int
        Number of its positions that are weights.
    partial : bool
        True if some labels are unknown. The objective is then not convex.
    """

    def __init__(
        self,
        training_set,
        n_features,
        n_labels,
        n_transition_features=0,
        *,
        l2,
        min_freq=0,
        all_possible_states=False,
        all_possible_transitions=False,
        fit_intercept=True,
        possible=None,
    ):
        self.l2 = l2
        self._possible = possible
        self.offsets = training_set.offsets
        self.labels = training_set.labels
        self.partial = bool(np.any(self.labels < 0))
        self.sample_weight = training_set.sample_weight
        self.n_features = n_features
        self.n_labels = n_labels
        # Weight of each token.
        weight = np.repeat(self.sample_weight, np.diff(self.offsets)) if min_freq > 0 else None
        rows = kernels.Rows(*training_set.rows[: len(kernels.Rows._fields)])
        self._features, self._place, pinned, n_state = lay_out_rows(
            rows, self.labels, weight, n_features, n_labels, min_freq, all_possible_states
        )
        unseen = transition_frequency(training_set, n_labels)
        free = (unseen > 0) | all_possible_transitions
        transition = free & (unseen >= min_freq)
        biases = np.full((3, n_labels), fit_intercept)
        if possible is not None:
            transition &= possible.transition
            biases[1:] &= np.stack([possible.start, possible.end])
        no_transition = n_state + np.flatnonzero(~transition)
        no_bias = n_state + n_labels * n_labels + np.flatnonzero(~biases)
        n_chain = n_state + n_labels * n_labels + 3 * n_labels
        self._cuts = [n_state, n_state + n_labels * n_labels]
        self._pinned = np.concatenate([pinned, no_transition, no_bias])
        self.size = n_chain
        self._transition_place = None
        if isinstance(training_set.rows, kernels.TransitionRows):
            self._add_transitions(
                training_set.rows.transitions,
                n_transition_features,
                weight,
                min_freq,
                all_possible_transitions,
            )
        self.n_weights = self.size - len(self._pinned)
        self._partial = []
        self._sparse = None
        if self._transition_place is None and not self.partial:
            zero = self._constrained(np.zeros(self.size)).transition
            self._sparse = list_transitions(zero, transition)

    def _add_transitions(self, rows, n_features, weight, min_freq, every_transition):
        """Append the weights of features of transitions to the parameter vector."""
        n_transitions = self.n_labels**2
        # Fail now rather than at the end; memory that is not written to is not used.
        zero_transition_weights(n_features, self.n_labels)
        labels = self.labels
        transitions = np.zeros_like(labels)
        transitions[1:] = labels[:-1] * self.n_labels + labels[1:]
        transitions[1:][(labels[:-1] < 0) | (labels[1:] < 0)] = -1
        rows = without_first_tokens(rows, self.offsets)
        features, self._transition_place, pinned, n_transition_places = lay_out_rows(
            rows, transitions, weight, n_features, n_transitions, min_freq, every_transition
        )
        self._features = kernels.TransitionStateFeatures(*self._features, features)
        self._cuts.append(self.size)
        self._pinned = np.concatenate([self._pinned, self.size + pinned])
        self.size += n_transition_places

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
        value = sum(self._sum_over_ranges(self._nll(theta, self._features, False), out, run))
        out += self.l2 * theta
        out[self._pinned] = 0.0
        return value + self.l2 / 2 * kernels.dot(theta, theta)

    def curvature(self, theta, out, run):
        """Estimate the diagonal of the Hessian at `theta`; parameters as of the gradient."""
        self._sum_over_ranges(self._nll(theta, squared(self._features), True), out, run)
        # Without penalty the curvature of a weight may be close to zero.
        out += max(self.l2, 1e-3)

    def _nll(self, theta, counted, curved):
        """Function that adds the gradient, or the curvature, of a range of sequences."""
        chain, features = self._constrained(theta), self._features
        labels, weight = self.labels, self.sample_weight
        # The curvature does not depend on labels.
        partial = True if self.partial and not curved else None
        sparse, tables = self._sparse, None
        if sparse is not None:
            kernels.read_scores(chain.transition, sparse)
            tables = tabulate(sparse)

        def nll(first, last, out):
            tokens = features, counted, self.offsets, first, last, labels
            if tables is None:
                return kernels.nll_gradient(*tokens, partial, weight, chain, curved, out)
            return kernels.sparse_nll_gradient(*tokens, weight, chain, sparse, tables, curved, out)

        return nll

    def _sum_over_ranges(self, function, out, run):
        """Run ``function(first, last, vector)`` on all ranges; the vectors' sum goes to `out`."""
        # The first range writes into the result; each other range has a vector of its own.
        if len(self._partial) != run.n_ranges - 1:
            self._partial = [np.empty(self.size) for _ in range(run.n_ranges - 1)]
        vectors = [out, *self._partial]
        for vector in vectors:
            vector[:] = 0.0

        def on_range(number, first, last):
            return function(first, last, self._split(vectors[number]))

        results = run(on_range)
        for partial in self._partial:
            out += partial
        return results

    def stochastic_start(self, l1=0.0):
        """Compute a parameter vector near the minimum.

        From there a batch method needs a third of the evaluations or fewer. The order of the
        sequences is random but fixed.

        Parameters
        ----------
        l1 : float, default=0
            Strength of an L1 penalty.

        Returns
        -------
        theta : ndarray of shape (size,) or None
            None if it would need too much memory, or its weights got too large.
        """
        memory = self._memory()
        if memory is None:
            return None
        theta = None
        for found in islice(self.dual_free_epochs(memory, l1), _MOST_EPOCHS):
            theta, objective, distance = found
            if not distance > _NEAR * objective:
                break
        return theta

    @property
    def most_at_zero(self):
        """Objective at zero; an upper bound on it where some labellings are impossible."""
        return self.sample_weight @ np.diff(self.offsets) * np.log(self.n_labels)

    def dual_free_epochs(self, memory, l1=0.0):
        """Yield the weights after each epoch of dual-free coordinate ascent.

        See `skstruct.kernels.likelihood.dual_free`.

        Parameters
        ----------
        memory : Memory
            Zero at first; changed.
        l1 : float, default=0
            Strength of an L1 penalty.

        Yields
        ------
        theta : ndarray of shape (size,)
            Parameters; the next epoch changes them in place.
        objective : float
            Objective, from the loss of each sequence at its last visit.
        distance : float
            Estimated distance of the objective from its minimum, usually several times too large.
        """
        vector, free = np.zeros(self.size), np.ones(self.size)
        free[self._pinned] = 0.0
        theta = vector if l1 == 0 else np.zeros(self.size)
        chain, shrunk, free = map(self._split, (vector, theta, free))
        # With hardly any penalty the dual is too hard to be worthwhile.
        l2 = max(self.l2, _LEAST_PENALTY * self.mean_square, _LEAST_RATIO * l1)
        random_state = np.random.RandomState(0)
        order = random_state.permutation(len(self.sample_weight))
        while True:
            for name in () if self._possible is None else WEIGHTS:
                for part in (chain, shrunk):
                    getattr(part, name)[~getattr(self._possible, name)] = -np.inf
            for part in portions(np.diff(self.offsets)[order], chain_work(self.n_labels)):
                where = self._features, self.offsets, order[part], self.labels
                changed = self.sample_weight / l2, chain, shrunk, l1 / l2, free, memory
                if self._sparse is None:
                    kernels.dual_free_epoch(*where, *changed)
                elif not kernels.sparse_dual_free_epoch(*where, *changed, self._sparse):
                    return
            # Pinned positions have changed with the others.
            vector[self._pinned] = theta[self._pinned] = 0.0
            priority = self.sample_weight * memory.divergence
            objective = self.sample_weight @ memory.loss + l2 / 2 * kernels.dot(theta, theta)
            objective += l1 * np.abs(theta).sum()
            yield theta, objective, priority.sum()
            order = draw_order(priority, random_state)

    def _memory(self):
        """Memory of the sequences before the first epoch; None if it would be too large."""
        n_rows, n_sequences, k = len(self.labels), len(self.sample_weight), self.n_labels
        n_slabs = n_sequences if self._transition_place is None else n_rows
        n_transitions = k * k if self._sparse is None else len(self._sparse.score)
        if 4 * (n_rows * k + n_slabs * n_transitions) > _MOST_MEMORY:
            return None
        return kernels.Memory(
            np.zeros((n_rows, k), np.float32),
            np.zeros((n_slabs, n_transitions), np.float32),
            *np.zeros((3, n_sequences)),
        )

    @property
    def mean_square(self):
        """Mean over the tokens of the squared norm of their features."""
        total = sum_of_squares(self._features)
        if self._transition_place is not None:
            total += sum_of_squares(self._features.transitions)
        return max(total, 1.0) / len(self.labels)

    def suboptimality_bound(self, gradient):
        """Bound the distance of the objective from its minimum, given its gradient.

        The objective is strongly convex with modulus `l2`, so the distance is at most
        ``|gradient|^2 / (2 l2)``. Infinite where labels are unknown: the objective is not convex.
        """
        if self.partial:
            return np.inf
        square = kernels.dot(gradient, gradient)
        if square == 0:
            return 0.0
        return square / (2 * self.l2) if self.l2 > 0 else np.inf

    def pack(self, chain):
        """Copy the weights of a chain that the model has into a parameter vector."""
        theta = np.zeros(self.size)
        kernels.copy_rows(theta, self._place, self._features.labels, chain.weights, True)
        parts = self._split(theta)
        chain = forbid(chain, None)
        for name in kernels.Chain._fields[1:]:
            getattr(parts, name)[...] = getattr(chain, name)
        if self._transition_place is not None:
            labels = self._features.transitions.labels
            kernels.copy_rows(
                parts.transition_weights,
                self._transition_place,
                labels,
                chain.transition_weights,
                True,
            )
        theta[self._pinned] = 0.0
        return theta

    def unpack(self, theta):
        """Copy a parameter vector into a chain, with zeros where the model has no weight.

        Weights of impossible labellings are minus infinity.
        """
        parts = self._constrained(theta)
        weights = np.zeros((self.n_features, self.n_labels))
        kernels.copy_rows(theta, self._place, self._features.labels, weights, False)
        chain = kernels.Chain(weights, *(part.copy() for part in parts[1:5]))
        if self._transition_place is None:
            return chain
        weights_of_transitions = zero_transition_weights(len(self._transition_place), self.n_labels)
        kernels.copy_rows(
            parts.transition_weights,
            self._transition_place,
            self._features.transitions.labels,
            weights_of_transitions,
            False,
        )
        return kernels.TransitionChain(*chain, weights_of_transitions)

    def _constrained(self, theta):
        """Split as `_split` does, with minus infinity for impossible labellings."""
        chain = self._split(theta)
        return chain if self._possible is None else forbid(chain, self._possible)

    def _split(self, theta):
        k = self.n_labels
        state, transition, biases, *transition_weights = np.split(theta, self._cuts)
        chain = kernels.Chain(state, transition.reshape(k, k), *biases.reshape(3, k))
        return kernels.TransitionChain(*chain, *transition_weights) if transition_weights else chain


def draw_order(priority, random_state):
    """Draw as many sequences as there are, most of them in proportion to their priorities."""
    n = len(priority)
    total = priority.sum()
    # Without a finite priority all sequences are alike.
    share = priority / total if 0 < total < np.inf else np.full(n, 1 / n)
    bounds = np.cumsum(_UNIFORM / n + (1 - _UNIFORM) * share)
    places = (np.arange(n) + random_state.random_sample()) / n
    return random_state.permutation(np.minimum(np.searchsorted(bounds, places), n - 1))
