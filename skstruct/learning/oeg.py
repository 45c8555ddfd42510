"""Online exponentiated gradient for CRFs, one epoch at a time."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from skstruct import kernels
from skstruct.input.costs import NO_COST
from skstruct.learning.stochastic import Settings, run_epochs
from skstruct.utils.messages import overflowed
from skstruct.utils.parallel import chain_work, portions

__all__ = ["ExponentiatedGradient", "Settings", "solve"]

# First step size: a fraction of the way to the scores of the current weights.
_FIRST_STEP = 0.5
# Share of wrong labels at which the start is tried out.
_TRIAL_SHARE = 1e-6
# The dual usually has to rise again by as much as it rose in the last epochs.
_LOOK_BACK = 5


class ExponentiatedGradient:
    """Online exponentiated gradient (Collins et al., 2008) on the objective of a CRF.

    ``sum_i s_i nll_i(w) + l2 / 2 |w|^2``, with a weight for every combination of a feature and a
    label, by its dual. As `skstruct.learning.dual.CRFDual` it knows a lower bound of the objective,
    and stores less, but each trial of a step takes another call of the oracle.

    Parameters
    ----------
    training_set : TrainingSet
        Sequences with at least one token and a positive weight.
    n_features, n_labels : int
        Size of the model.
    l2 : float
        Strength of the penalty, positive.
    fit_intercept : bool
        True if the model has biases.

    Attributes
    ----------
    n_updates, n_oracle_calls : int
        Number of steps, and of calls that computed the marginals of a sequence.
    """

    def __init__(self, training_set, n_features, n_labels, *, l2, fit_intercept):
        offsets, labels, weight = training_set[1:4]
        found = kernels.renumber_features(training_set.rows, offsets, n_features)
        self._rank, rows, self._distinct = found
        options = float(l2), fit_intercept, NO_COST
        self._problem = kernels.Problem(rows, offsets, labels, weight, *options)
        self.n_sequences, k = len(weight), n_labels
        by_row, by_sequence = (len(labels), k), (self.n_sequences, k, k)
        self._state = kernels.Exponentiated(
            kernels.Chain(np.zeros((n_features, k)), np.zeros((k, k)), *np.zeros((3, k))),
            np.empty(by_row),
            np.empty(by_sequence),
            np.empty(by_row),
            np.empty(by_sequence),
            np.empty(self.n_sequences),
            np.full(self.n_sequences, _FIRST_STEP),
        )
        self.n_updates = self.n_oracle_calls = 0
        self._duals = []
        if n_labels == 1:
            kernels.start_dual(self._problem, self._state, 0.0)
            return
        self._start(_TRIAL_SHARE)
        square = self._square_norm() / _TRIAL_SHARE**2
        if not np.isfinite(square):
            raise overflowed(0)
        self._start(self._best_share(square))

    def _start(self, share):
        """Give the wrong labels of a token this share of its probability."""
        others = self._state.node.shape[1] - 1
        kernels.start_dual(self._problem, self._state, float(np.log((1 - share) / share * others)))
        for part in self._state.chain:
            part[...] = 0.0
        kernels.conjugate_to(self._problem, self._distinct, self._state)

    def _best_share(self, square):
        """Maximise the lower bound over the share, to which the weights are proportional."""
        n_tokens = self._problem.sample_weight @ np.diff(self._problem.offsets)
        others = self._state.node.shape[1] - 1

        def slope(log_share):
            share = np.exp(log_share)
            entropy = n_tokens * (np.log1p(-share) - log_share + np.log(others))
            return entropy - self._problem.l2 * share * square

        low, high = np.log(1e-12), np.log(others / (others + 1))
        if slope(high) >= 0 or slope(low) <= 0:
            return float(np.exp(high if slope(high) >= 0 else low))
        return float(np.exp(brentq(slope, low, high)))

    def epoch(self, random_state):
        """Make as many steps as there are sequences, in the first epoch one for each sequence.

        Parameters
        ----------
        random_state : RandomState instance
            Source of the order.
        """
        n = self.n_sequences
        first = self.n_updates == 0
        self.steps(random_state.permutation(n) if first else random_state.randint(n, size=n))
        self._duals.append(self.dual())

    def steps(self, order):
        """Visit the sequences in `order`."""
        lengths = np.diff(self._problem.offsets)[order]
        for part in portions(lengths, chain_work(self._state.node.shape[1])):
            self.n_oracle_calls += kernels.oeg_steps(
                self._problem, self._distinct, order[part], self._state
            )
        self.n_updates += len(order)

    def dual(self):
        """Lower bound of the objective."""
        entropy = self._problem.sample_weight @ self._state.entropy
        return float(entropy - self._problem.l2 / 2 * self._square_norm())

    def estimate(self):
        """Estimate the distance of the objective from its minimum; infinite at first."""
        if len(self._duals) <= _LOOK_BACK:
            return np.inf
        return self._duals[-1] - self._duals[-1 - _LOOK_BACK]

    def notes(self):
        """Columns of the history that need no pass over the sequences."""
        return {"dual": self._duals[-1]}

    def chain(self):
        """Weights in the order of the features."""
        chain = self._state.chain
        return kernels.Chain(chain.weights[self._rank], *(part.copy() for part in chain[1:]))

    def _square_norm(self):
        return sum(kernels.dot(part.ravel(), part.ravel()) for part in self._state.chain)


def solve(training_set, model, settings, start, watcher):
    """Learn as `skstruct.learning.solver` says."""
    training_set = training_set.effective()
    n_sequences = len(training_set.sample_weight)
    # Each sequence keeps a matrix of transitions.
    model.require_memory(1, 2 * n_sequences, 'solver="lbfgs" needs less.')
    learner = ExponentiatedGradient(
        training_set,
        model.n_features,
        model.n_labels,
        l2=settings.l2,
        fit_intercept=settings.fit_intercept,
    )
    return run_epochs(learner, training_set, model, settings, watcher)
