"""A new solver: the objective of a CRF by scipy's L-BFGS-B."""

from itertools import count
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.utils._param_validation import Interval

from skstruct.learning.objective import CRFObjective
from skstruct.learning.solver import Solution, not_converged, settings_of
from skstruct.taggers.base import BaseTagger
from skstruct.utils.parallel import range_runner


# solver: begin
class Settings(NamedTuple):
    """Parameters of the estimator that the solver reads."""

    l2: float
    max_iter: int
    tol: float
    n_jobs: int | None


def solve(training_set, model, settings, start, monitor):
    """Learn as `skstruct.learning.solver` says."""
    objective = CRFObjective(training_set.effective(), model, l2=settings.l2)
    theta = np.zeros(objective.size) if start is None else objective.pack(start)
    numbers = count(1)
    with range_runner(objective.offsets, settings.n_jobs) as run:

        def value_and_gradient(theta):
            gradient = np.empty_like(theta)
            return objective.value_and_gradient(theta, gradient, run), gradient

        def note(intermediate_result):
            monitor.add(epoch=next(numbers), objective=intermediate_result.fun)
            if monitor.visit(lambda: objective.unpack(intermediate_result.x)):
                raise StopIteration

        options = {"maxiter": settings.max_iter, "ftol": settings.tol / 100, "gtol": 0.0}
        found = minimize(
            value_and_gradient, theta, jac=True, method="L-BFGS-B", callback=note, options=options
        )
    bound = objective.suboptimality_bound(found.jac)
    notice = None
    if found.nit >= settings.max_iter:
        notice = not_converged(found.nit, "iterations", bound, found.fun, settings)
    return Solution(
        monitor.best or objective.unpack(found.x),
        monitor.arrays(),
        found.nit,
        bound=bound,
        n_weights=objective.n_weights,
        notice=notice,
    )


# solver: end


# tagger: begin
class ScipyCRF(BaseTagger):
    """Conditional random field by L-BFGS-B; parameters as of :class:`~skstruct.CRFTagger`."""

    _parameter_constraints: dict = {
        **BaseTagger._parameter_constraints,
        "l2": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        l2=1.0,
        constraint=None,
        max_iter=1000,
        tol=1e-6,
        class_weight=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        self.l2 = l2
        self.constraint = constraint
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def _solver(self):
        return solve, settings_of(Settings, self)


# tagger: end
