"""Learners that look at one sequence after the other, and yet come to the minimum."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skstruct.kernels.chain.scores import Chain
from skstruct.solvers.objective import CRFObjective
from skstruct.solvers.oeg import ExponentiatedGradient
from skstruct.solvers.sag import StochasticAverageGradient
from skstruct.utils.history import History
from skstruct.utils.parallel import range_runner

__all__ = ["Learnt", "learn_stochastically"]

# The objective takes a pass over all sequences, and that a third to a half of the time of an
# epoch. So it is computed after every tenth epoch, and before that where it promises to be the end,
# but not at once again where it was not.
_EVALUATE_EVERY = 10
_WAIT_AT_LEAST = 3
# After so many evaluations without a change there is nothing to be gained.
_PATIENCE = 3


class Learnt(NamedTuple):
    """What was learnt, and how near the minimum it is."""

    chain: Chain
    n_weights: int
    history: dict
    n_iter: int
    bound: float  # on the distance of the objective from its minimum
    converged: bool


def learn_stochastically(
    solver,
    training_set,
    n_features,
    n_labels,
    random_state,
    *,
    tol,
    max_iter,
    start=None,
    possible=None,
    n_jobs=None,
    verbose=0,
    **model,
):
    """Minimise the objective of a CRF by stochastic average or exponentiated gradients.

    Parameters
    ----------
    solver : {"sag", "oeg"}
        The learner.
    training_set : TrainingSet
        What to learn from.
    n_features, n_labels : int
        Size of the model.
    random_state : RandomState instance
        Source of the order of the sequences.
    tol : float
        Stop when the objective is certainly within this share of its minimum, or hardly changes.
    max_iter : int
        Most epochs.
    start : Chain, default=None
        Weights to start from, of "sag".
    possible : Constraint, default=None
        Which labels may follow each other, come first and last, of "sag".
    n_jobs : int, default=None
        Number of threads that compute the objective.
    verbose : int, default=0
        Whether to print the history of every epoch.
    **model : object
        `l2` and `fit_intercept`, as of `CRFTagger`.

    Returns
    -------
    learnt : Learnt
    """
    lengths, weight = np.diff(training_set.offsets), training_set.sample_weight
    counting = np.flatnonzero((lengths > 0) & (weight > 0))
    if len(counting) < len(lengths):
        training_set = training_set.take(counting)
    size = n_features, n_labels
    if solver == "sag":
        learner = StochasticAverageGradient(
            training_set, *size, start=start, possible=possible, **model
        )
    else:
        learner = ExponentiatedGradient(training_set, *size, **model)
    evaluation = _Evaluation(training_set, *size, possible=possible, **model)
    history, value, last = History(verbose), math.inf, -_WAIT_AT_LEAST
    with range_runner(training_set.offsets, n_jobs) as run:
        for epoch in range(1, max_iter + 1):
            learner.epoch(random_state)
            regular = epoch % _EVALUATE_EVERY == 0
            promising = learner.estimate() <= tol * value and epoch - last >= _WAIT_AT_LEAST
            evaluate = regular or promising or epoch in (1, max_iter)
            if evaluate:
                value, bound = evaluation.evaluate(learner, run)
                last = epoch
            history.add(
                epoch=epoch,
                objective=value if evaluate else math.nan,
                bound=bound if evaluate else math.nan,
                **learner.notes(),
                updates=learner.n_updates,
                oracle_calls=learner.n_oracle_calls,
            )
            settled = regular and evaluation.settled(value, 0.01 * tol)
            converged = evaluate and (bound <= tol * value or settled)
            if converged:
                break
    chain = learner.chain()
    return Learnt(chain, evaluation.n_weights, history.arrays(), epoch, bound, converged)


class _Evaluation:
    """The objective itself, and how far it can be above its minimum."""

    def __init__(self, training_set, n_features, n_labels, **model):
        every = {"all_possible_states": True, "all_possible_transitions": True}
        self._objective = CRFObjective(training_set, n_features, n_labels, **every, **model)
        self._gradient = np.empty(self._objective.size)
        self.n_weights = self._objective.n_weights
        self._values = []

    def evaluate(self, learner, run):
        """Value of the objective, and the better of the bounds that are known."""
        theta = self._objective.pack(learner.chain())
        value = self._objective.value_and_gradient(theta, self._gradient, run)
        bound = self._objective.suboptimality_bound(self._gradient)
        dual = learner.notes().get("dual", -math.inf)
        # Where they are equal, rounding must not turn them round.
        return value, max(min(bound, value - dual), 0.0)

    def settled(self, value, tol):
        """Whether some values in a row, of which this is the last, are the same but for `tol`."""
        self._values.append(value)
        recent = self._values[-_PATIENCE:]
        return len(recent) == _PATIENCE and np.ptp(recent) <= tol * abs(value)
