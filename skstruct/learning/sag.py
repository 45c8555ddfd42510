"""Stochastic average gradient for CRFs, one epoch at a time."""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.input.constraints import forbid
from skstruct.input.costs import NO_COST
from skstruct.learning.stochastic import Settings, run_epochs
from skstruct.utils.parallel import chain_work, portions

__all__ = ["Settings", "StochasticAverageGradient", "solve"]


class StochasticAverageGradient:
    """SAG with non-uniform sampling (Schmidt et al., 2015) on the objective of a CRF.

    ``sum_i s_i nll_i(w) + l2 / 2 |w|^2``, with a weight for every combination of a feature and a
    label. It converges linearly, needs no learning rate, and stores the gradient of each sequence
    by its scores: of each token, and of the transitions in sum.

    Parameters
    ----------
    training_set : TrainingSet
        Sequences with at least one token and a positive weight.
    n_features, n_labels : int
        Size of the model.
    l2 : float
        Strength of the penalty.
    fit_intercept : bool
        True if the model has biases.
    nonuniformity : float, default=0.5
        Probability of drawing a sequence by its curvature instead of uniformly.
    skip_searches : bool, default=False
        After ``k`` searches for the curvature of a sequence, one after the other, that accepted
        their first trial, skip the search at the next ``2 ** (k - 1)`` visits. The SDCA paper (Le
        Priol et al., 2018) calls this SAG-NUS*.
    start : Chain, default=None
        Weights to start from; by default, zero. The gradients of all sequences are computed there,
        because steps by a few of them would lead away again.
    possible : Constraint, default=None
        Allowed transitions, first and last labels.

    Attributes
    ----------
    n_updates, n_oracle_calls : int
        Number of steps, and of calls that computed marginals or log-partitions of a sequence.
    """

    def __init__(
        self,
        training_set,
        n_features,
        n_labels,
        *,
        l2,
        fit_intercept,
        nonuniformity=0.5,
        skip_searches=False,
        start=None,
        possible=None,
    ):
        offsets, labels, weight = training_set[1:4]
        found = kernels.renumber_features(training_set.rows, offsets, n_features)
        self._rank, rows, self._distinct = found
        options = float(l2), fit_intercept, NO_COST
        self._problem = kernels.Problem(rows, offsets, labels, weight, *options)
        self._nonuniformity, self._skip_searches = float(nonuniformity), skip_searches
        self.n_sequences, k = len(weight), n_labels
        nothing = np.zeros(self.n_sequences)
        self._state = kernels.AverageGradient(
            *(
                kernels.Chain(np.zeros((n_features, k)), np.zeros((k, k)), *np.zeros((3, k)))
                for _ in range(2)
            ),
            np.zeros(n_features),
            np.zeros((len(labels), k)),
            np.zeros((self.n_sequences, k * k)),
            nothing,
            *np.zeros((2, self.n_sequences), np.int64),
            kernels.build_tree(nothing, False),
            kernels.build_tree(nothing, True),
            np.zeros(kernels.N_SAG_PROGRESS),
        )
        self._state.progress[kernels.SAG_SCALE] = 1.0
        self.n_updates = self.n_oracle_calls = 0
        if possible is not None:
            chain = forbid(self._state.chain, possible)
            self._state = self._state._replace(chain=chain)
        if start is not None:
            start = start._replace(weights=start.weights[np.argsort(self._rank)])
            start = forbid(start, possible)
            for part, weights in zip(self._state.chain, start, strict=True):
                part[...] = weights
            self._visit(np.arange(self.n_sequences), np.empty(0), move=False)

    def epoch(self, random_state):
        """Make as many steps as there are sequences.

        In the first epoch each sequence is visited once, in random order.

        Parameters
        ----------
        random_state : RandomState instance
            Source of the order.
        """
        order, draws = np.empty(0, np.int64), np.empty(0)
        if self.n_updates == 0:
            order = random_state.permutation(self.n_sequences)
        else:
            draws = random_state.random_sample(self.n_sequences)
        self.steps(order, draws)

    def steps(self, order, draws):
        """Visit the sequences in `order`, then one for each of the uniform random numbers."""
        self._visit(order, draws, move=True)
        kernels.settle(self._state)
        self.n_updates += len(order) + len(draws)

    def _visit(self, order, draws, *, move):
        n_visits = len(order) + len(draws)
        # Nobody knows which sequences the draws will choose.
        lengths = np.full(n_visits, len(self._problem.labels) / self.n_sequences)
        for part in portions(lengths, chain_work(self._state.node.shape[1])):
            first, last = part.start - len(order), part.stop - len(order)
            self.n_oracle_calls += kernels.sag_steps(
                self._problem,
                self._distinct,
                order[part],
                draws[max(first, 0) : max(last, 0)],
                self._nonuniformity,
                move,
                self._skip_searches,
                self._state,
            )

    def gradient_norm(self):
        """Norm of the gradient, from the gradient of each sequence at its last visit."""
        square = 0.0
        for weights, total in zip(forbid(self._state.chain, None), self._state.total, strict=True):
            gradient = (self._problem.l2 * weights + total).ravel()
            square += kernels.dot(gradient, gradient)
        return float(np.sqrt(square))

    def estimate(self):
        """Estimate the bound on the distance from the minimum; usually slightly too small."""
        norm, l2 = self.gradient_norm(), self._problem.l2
        return norm**2 / (2 * l2) if l2 > 0 else np.inf

    def notes(self):
        """Columns of the history that need no pass over the sequences."""
        return {"gradient_norm": self.gradient_norm()}

    def chain(self):
        """Weights in the order of the features."""
        chain = self._state.chain
        return kernels.Chain(chain.weights[self._rank], *(part.copy() for part in chain[1:]))


def solve(training_set, model, settings, start, watcher):
    """Learn as `skstruct.learning.solver` says."""
    training_set = training_set.effective()
    n_sequences = len(training_set.sample_weight)
    # Each sequence keeps a matrix of transitions.
    model.require_memory(2, n_sequences, 'solver="lbfgs" needs less.')
    learner = StochasticAverageGradient(
        training_set,
        model.n_features,
        model.n_labels,
        l2=settings.l2,
        fit_intercept=settings.fit_intercept,
        start=start,
        possible=model.possible,
    )
    return run_epochs(learner, training_set, model, settings, watcher)
