"""Online exponentiated gradient (Collins et al., 2008) on the dual of a CRF.

The dual variable of a sequence is a distribution over its labellings, as in
`skstruct.learning.sdca`, but represented by scores ``theta`` instead of marginals. A step moves
these scores towards those under the current weights, ``theta + eta (scores - theta)``. Its gain
depends on the marginals of the new scores, so every trial takes an oracle call. The tokens of a
sequence share the scores of transitions, so storage is small.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from skstruct.blocks.visits import load_vectors, visit_scores
from skstruct.chain.dense import Chain, prepare_transitions
from skstruct.chain.forward_backward import forward_backward
from skstruct.chain.protocol import finish
from skstruct.chain.scores import longest
from skstruct.compiled.jit import inner_jit, jit
from skstruct.learning.stochastic import (
    SequenceLearner,
    Settings,
    add_difference,
    collect_features,
    new_difference,
    run_epochs,
    square_norm,
)
from skstruct.utils.messages import overflowed
from skstruct.utils.parallel import inner_product

__all__ = ["ExponentiatedGradient", "Settings", "solve"]

# First step size: a fraction of the way to the scores of the current weights.
_FIRST_STEP = 0.5
# Share of wrong labels at which the start is tried out.
_TRIAL_SHARE = 1e-6
# The dual usually has to rise again by as much as it rose in the last epochs.
_LOOK_BACK = 5
MAX_TRIALS = 30
# Factor of the step size after a step that succeeds at the first trial.
GROWTH = 1.05


class ExponentiatedGradient(SequenceLearner):
    """Online exponentiated gradient (Collins et al., 2008) on the objective of a CRF.

    ``sum_i s_i nll_i(w) + l2 / 2 |w|^2``, with a weight for every combination of a feature and a
    label, by its dual. As `skstruct.learning.sdca.CRFDual` it knows a lower bound of the objective,
    and stores less, but each trial of a step takes another call of the oracle.

    Parameters
    ----------
    *problem, **options : object
        As of `SequenceLearner`, without constraint and costs, and with a positive penalty.
    """

    def __init__(self, *problem, **options):
        super().__init__(*problem, **options)
        k = self._model.n_labels
        by_row, by_sequence = (len(self._problem.labels), k), (self.n_sequences, k, k)
        self._state = Exponentiated(
            self._model.zero_chain(),
            np.empty(by_row),
            np.empty(by_sequence),
            np.empty(by_row),
            np.empty(by_sequence),
            np.empty(self.n_sequences),
            np.full(self.n_sequences, _FIRST_STEP),
        )
        self._duals = []
        if k == 1:
            start_dual(self._problem, self._state, 0.0)
            return
        self._start(_TRIAL_SHARE)
        square = square_norm(self._state.chain) / _TRIAL_SHARE**2
        if not np.isfinite(square):
            raise overflowed(0)
        self._start(self._best_share(square))

    def _start(self, share):
        """Give the wrong labels of a token this share of its probability."""
        others = self._state.node.shape[1] - 1
        start_dual(self._problem, self._state, float(np.log((1 - share) / share * others)))
        for part in self._state.chain:
            part[...] = 0.0
        conjugate_to(self._problem, self._distinct, self._state)

    def _best_share(self, square):
        """Maximise the lower bound over the share, to which the weights are proportional."""
        n_tokens = inner_product(self._problem.sample_weight, np.diff(self._problem.offsets))
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
        for numbers, _ in self._portions(order):
            self.n_oracle_calls += oeg_steps(self._problem, self._distinct, numbers, self._state)
        self.n_updates += len(order)

    def dual(self):
        """Lower bound of the objective."""
        entropy = inner_product(self._problem.sample_weight, self._state.entropy)
        return float(entropy - self._problem.l2 / 2 * square_norm(self._state.chain))

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
        return self._in_order(self._state.chain)


def solve(training_set, model, settings, start, monitor):
    """Learn as `skstruct.learning.solver` says."""
    training_set = training_set.effective()
    return run_epochs(ExponentiatedGradient, training_set, model, settings, monitor)


class Exponentiated(NamedTuple):
    """Dual variables of all sequences, and the weights conjugate to them."""

    chain: Chain
    node_theta: np.ndarray  # (n_rows, n_labels)
    transition_theta: np.ndarray  # (n_sequences, n_labels, n_labels)
    node: np.ndarray  # (n_rows, n_labels), marginals
    transition: np.ndarray  # (n_sequences, n_labels, n_labels), marginals, summed
    entropy: np.ndarray  # (n_sequences,)
    eta: np.ndarray  # (n_sequences,), size of the next step


class Trial(NamedTuple):
    """Workspace: scores and marginals of one sequence on trial."""

    node_theta: np.ndarray  # (length, n_labels)
    transition_theta: np.ndarray  # (n_labels, n_labels)
    node: np.ndarray  # (length, n_labels)
    transition: np.ndarray  # (n_labels, n_labels)
    spare: np.ndarray  # (length, n_labels)
    scale: np.ndarray  # (length,)


@inner_jit
def new_trial(length, n_labels):
    """Allocate a workspace for sequences up to this length."""
    return Trial(
        np.empty((length, n_labels)),
        np.empty((n_labels, n_labels)),
        np.empty((length, n_labels)),
        np.empty((n_labels, n_labels)),
        np.empty((length, n_labels)),
        np.empty(length),
    )


@inner_jit
def infer(length, trial):
    """Compute the marginals of the scores on trial; return their entropy."""
    n_labels = trial.transition_theta.shape[0]
    for t in range(length):
        for j in range(n_labels):
            trial.spare[t, j] = trial.node_theta[t, j]
    for y in range(n_labels):
        for j in range(n_labels):
            trial.transition[y, j] = 0.0
    transitions = prepare_transitions(trial.transition_theta)
    log_z = forward_backward(
        trial.spare, length, transitions, trial.node, trial.scale, 1.0, trial.transition
    )
    finish(transitions, trial.transition)
    return log_z - mean_score(
        trial.node_theta, trial.transition_theta, trial.node, trial.transition, length
    )


@inner_jit
def mean_score(node_scores, transition_scores, node, transition, length):
    total = 0.0
    for t in range(length):
        for j in range(node.shape[1]):
            total += node_scores[t, j] * node[t, j]
    for y in range(node.shape[1]):
        for j in range(node.shape[1]):
            total += transition_scores[y, j] * transition[y, j]
    return total


@jit
def start_dual(problem, state, margin):
    """Initialise the scores of gold labels to the margin, and of others to zero."""
    n_labels = state.node.shape[1]
    trial = new_trial(longest(problem.offsets, 0, state.eta.shape[0]), n_labels)
    for i in range(state.eta.shape[0]):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        for y in range(n_labels):
            for j in range(n_labels):
                trial.transition_theta[y, j] = 0.0
        for t in range(b - a):
            for j in range(n_labels):
                trial.node_theta[t, j] = margin if problem.labels[a + t] == j else 0.0
        state.entropy[i] = infer(b - a, trial)
        keep(i, a, b, trial, state)


@jit
def keep(i, a, b, trial, state):
    """Accept the scores and marginals on trial for sequence ``i``."""
    n_labels = state.node.shape[1]
    for t in range(b - a):
        for j in range(n_labels):
            state.node_theta[a + t, j] = trial.node_theta[t, j]
            state.node[a + t, j] = trial.node[t, j]
    for y in range(n_labels):
        for j in range(n_labels):
            state.transition_theta[i, y, j] = trial.transition_theta[y, j]
            state.transition[i, y, j] = trial.transition[y, j]


@jit
def conjugate_to(problem, distinct, state):
    """Set the weights, which must be zero, to those conjugate to the dual variables."""
    n_sequences, n_labels = state.transition.shape[0], state.node.shape[1]
    difference = new_difference(problem, distinct, n_labels)
    for i in range(n_sequences):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        for y in range(n_labels):
            for j in range(n_labels):
                difference.transition[y * n_labels + j] = state.transition[i, y, j]
        for t in range(b - a):
            for j in range(n_labels):
                difference.node[t, j] = state.node[a + t, j]
            gold = problem.labels[a + t]
            difference.node[t, gold] -= 1.0
            if t > 0:
                difference.transition[problem.labels[a + t - 1] * n_labels + gold] -= 1.0
        load_vectors(problem.vectors, a, b, difference.window.values)
        collect_features(problem, distinct, i, difference)
        weight = problem.sample_weight[i] / problem.l2
        add_difference(problem, distinct, i, difference, -weight, state.chain)


@jit
def oeg_steps(problem, distinct, order, state):
    """Ascend in the dual variables of the sequences in `order`, one after the other.

    Parameters
    ----------
    problem : Problem
        The training set.
    distinct : Distinct
        Distinct features of each sequence.
    order : ndarray of int
        Sequences.
    state : Exponentiated
        Changed.

    Returns
    -------
    n_oracle_calls : int
        Number of times that marginals were computed.
    """
    n_sequences, n_labels = state.transition.shape[0], state.node.shape[1]
    length = longest(problem.offsets, 0, n_sequences)
    difference = new_difference(problem, distinct, n_labels)
    trial = new_trial(length, n_labels)
    scores = np.empty((length, n_labels))
    n_calls = 0
    for i in order:
        a, b = problem.offsets[i], problem.offsets[i + 1]
        visit_scores(problem.rows, problem.vectors, a, b, state.chain, difference.window, scores)
        n_calls += ascend(problem, distinct, i, state, difference, trial, scores)
    return n_calls


@jit
def ascend(problem, distinct, i, state, difference, trial, scores):
    """Take a step of sequence ``i`` that increases the dual objective; return the trials."""
    a, b = problem.offsets[i], problem.offsets[i + 1]
    n_labels = state.node.shape[1]
    weight = problem.sample_weight[i] / problem.l2
    transition = state.chain.transition
    for n_trials in range(1, MAX_TRIALS + 1):
        eta = state.eta[i]
        for t in range(b - a):
            for j in range(n_labels):
                theta = state.node_theta[a + t, j]
                trial.node_theta[t, j] = theta + eta * (scores[t, j] - theta)
        for y in range(n_labels):
            for j in range(n_labels):
                theta = state.transition_theta[i, y, j]
                trial.transition_theta[y, j] = theta + eta * (transition[y, j] - theta)
        entropy = infer(b - a, trial)
        for t in range(b - a):
            for j in range(n_labels):
                difference.node[t, j] = trial.node[t, j] - state.node[a + t, j]
        for y in range(n_labels):
            for j in range(n_labels):
                difference.transition[y * n_labels + j] = (
                    trial.transition[y, j] - state.transition[i, y, j]
                )
        square = collect_features(problem, distinct, i, difference)
        moved = difference.transition.reshape((n_labels, n_labels))
        rise = mean_score(scores, transition, difference.node, moved, b - a)
        gain = entropy - state.entropy[i] + rise - 0.5 * weight * square
        # Near the optimum, the gain is smaller than the rounding errors of the entropies.
        if gain >= -1e-13 * (b - a):
            state.entropy[i] = entropy
            keep(i, a, b, trial, state)
            add_difference(problem, distinct, i, difference, -weight, state.chain)
            if n_trials == 1:
                state.eta[i] = min(1.0, GROWTH * eta)
            return n_trials
        state.eta[i] = 0.5 * eta
    return MAX_TRIALS
