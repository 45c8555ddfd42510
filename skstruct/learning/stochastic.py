"""The loop of the solvers that visit one sequence after the other and yet reach the minimum."""

import math
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from skstruct.learning.objective import CRFObjective
from skstruct.learning.solver import Solution, not_converged
from skstruct.utils.parallel import chain_work, range_runner
from skstruct.utils.progress import History

# The objective takes a pass over all sequences: a third to a half of the time of an epoch. So it is
# computed after every tenth epoch, and before that where the estimate promises convergence, but not
# again right after it was not.
_EVALUATE_EVERY = 10
_WAIT_AT_LEAST = 3
# After so many evaluations without a change there is nothing to be gained.
_PATIENCE = 3
# Share of the objective at zero by which rounding may put another one above it.
_ROUNDING = 1e-9


class Settings(NamedTuple):
    """Parameters of `CRFTagger` that the solvers "sag" and "oeg" read."""

    l2: float
    fit_intercept: bool
    max_iter: int
    tol: float
    random_state: object
    n_jobs: int | None


def run_epochs(learner, training_set, model, settings, watcher):
    """Run epochs until the objective is within `tol` of its minimum, or hardly changes.

    Parameters
    ----------
    learner : StochasticAverageGradient or ExponentiatedGradient
        Makes the epochs.
    training_set : TrainingSet
        Sequences with tokens and a weight, for the objective.
    model : Model
        Size of the model.
    settings : Settings
        Parameters of the estimator.
    watcher : Watcher
        Asked once an epoch whether to stop.

    Returns
    -------
    solution : Solution
    """
    random_state, tol = check_random_state(settings.random_state), settings.tol
    evaluation = _Evaluation(training_set, model, settings)
    history, value, last = History(), math.inf, -_WAIT_AT_LEAST
    work = chain_work(model.n_labels)
    with range_runner(training_set.offsets, settings.n_jobs, work) as run:
        for epoch in range(1, settings.max_iter + 1):
            learner.epoch(random_state)
            regular = epoch % _EVALUATE_EVERY == 0
            promising = learner.estimate() <= tol * value and epoch - last >= _WAIT_AT_LEAST
            evaluate = regular or promising or epoch in (1, settings.max_iter)
            if evaluate:
                value, bound = evaluation.evaluate(learner, run)
                last = epoch
            history.add(
                epoch=epoch,
                objective=value if evaluate else None,
                bound=bound if evaluate else None,
                **learner.notes(),
                updates=learner.n_updates,
                oracle_calls=learner.n_oracle_calls,
            )
            settled = regular and evaluation.settled(value, 0.01 * tol)
            converged = evaluate and (bound <= tol * value or settled)
            stopped = watcher.visit(learner.chain, history)
            if stopped and not evaluate:
                value, bound = evaluation.evaluate(learner, run)
            if converged or stopped:
                break
    complaint = None
    if not (converged or stopped):
        complaint = not_converged(epoch, settings.max_iter, "epochs", bound, value, tol)
    return Solution(
        learner.chain(),
        history.arrays(),
        epoch,
        bound=bound,
        n_weights=evaluation.n_weights,
        complaint=complaint,
    )


class _Evaluation:
    """The objective itself, and how far it can be above its minimum."""

    def __init__(self, training_set, model, settings):
        self._objective = CRFObjective(
            training_set,
            model.n_features,
            model.n_labels,
            l2=settings.l2,
            fit_intercept=settings.fit_intercept,
            all_possible_states=True,
            all_possible_transitions=True,
            possible=model.possible,
        )
        self._gradient = np.empty(self._objective.size)
        self.n_weights = self._objective.n_weights
        self._values = []

    def evaluate(self, learner, run):
        """Compute the objective, and the better of the known bounds on its distance."""
        theta = self._objective.pack(learner.chain())
        value = self._objective.value_and_gradient(theta, self._gradient, run)
        bound = self._objective.suboptimality_bound(self._gradient)
        dual = learner.notes().get("dual", -math.inf)
        # The minimum is at most the objective at zero, whatever rounding makes of a large dual; and
        # at the minimum rounding must not make the distance negative.
        return value, max(min(bound, value - dual), value - self._objective.bound_at_zero, 0.0)

    def settled(self, value, tol):
        """Return True if some values in a row, this one the last, differ by no more than `tol`.

        That they would settle above the objective at zero is no reason to be content.
        """
        self._values.append(value)
        recent = self._values[-_PATIENCE:]
        if len(recent) < _PATIENCE or value > (1 + _ROUNDING) * self._objective.bound_at_zero:
            return False
        return np.ptp(recent) <= tol * abs(value)
