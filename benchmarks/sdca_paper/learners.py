"""The learners, point by point on their way to the optimum."""

import math
import time
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from skstruct.learning.lbfgs import minimize_lbfgs
from skstruct.learning.objective import CRFObjective
from skstruct.learning.oeg import ExponentiatedGradient
from skstruct.learning.sag import StochasticAverageGradient
from skstruct.learning.sdca import CRFDual
from skstruct.learning.start import stochastic_start
from skstruct.utils.parallel import range_runner

# The penalty that is l2 / n = 1 / n in the paper.
MODEL = {"l2": 1.0, "fit_intercept": True}
EVERY = {"all_possible_states": True, "all_possible_transitions": True}


class Point(NamedTuple):
    """State of a learner, and the cost so far."""

    epoch: int
    updates: int  # of the weights
    calls: int  # of the oracle, by sequence
    seconds: float  # processor time, without computations for the curve alone
    objective: float
    dual: float  # lower bound of the minimum
    estimate: float  # duality gap as the learner estimates it, or NaN
    carriers: float = math.nan  # share of the sequences that have nine tenths of the gap
    stale: float = math.nan  # share of the gap of sequences with less than half of it on record


class ProcessorClock:
    """Processor time, in which other work on the machine counts less."""

    def __init__(self):
        self.seconds = 0.0

    @contextmanager
    def running(self):
        start = time.process_time()
        yield
        self.seconds += time.process_time() - start


def measured(epoch):
    """True if the curves have a point after this epoch."""
    return epoch <= 10 or (epoch <= 30 and epoch % 2 == 0) or epoch % 5 == 0


def sdca(problem, seed, epochs, *, sampling, nonuniformity=0.8, line_search_tol=1e-3):
    """Stochastic dual coordinate ascent."""
    clock, random_state = ProcessorClock(), np.random.RandomState(seed)
    with range_runner(problem.training_set.offsets, 1) as run:
        with clock.running():
            dual = CRFDual(*problem, **MODEL)
            dual.start(run)
            scheme = dual.sampling(sampling, nonuniformity)
        for epoch in range(1, epochs + 1):
            with clock.running():
                dual.epoch(random_state, scheme, line_search_tol)
            if not measured(epoch):
                continue
            estimate = dual.estimate().gap
            # The gaps computed for the curve must not help the learner.
            recorded = dual._dual.gap.copy()
            found = dual.certify(run)
            stale = staleness(recorded, dual._dual.gap)
            dual._dual.gap[:] = recorded
            updates = dual.n_updates
            values = found.objective, found.dual, estimate
            yield Point(epoch, updates, updates, clock.seconds, *values, *stale)


def staleness(recorded, gap):
    """Which sequences have the gap, and how much of it the records miss."""
    largest, total = np.sort(gap)[::-1], gap.sum()
    n_carriers = 1 + np.searchsorted(np.cumsum(largest), 0.9 * total)
    return n_carriers / len(gap), gap[recorded < gap / 2].sum() / total


def sag(problem, seed, epochs, *, skip_searches=False):
    """Stochastic average gradient with non-uniform sampling."""
    clock = ProcessorClock()
    with clock.running():
        learner = StochasticAverageGradient(*problem, **MODEL, skip_searches=skip_searches)
    for epoch, value, bound in visits(problem, learner, seed, epochs, clock):
        calls, estimate = learner.n_oracle_calls, learner.estimate()
        yield Point(epoch, learner.n_updates, calls, clock.seconds, value, value - bound, estimate)


def oeg(problem, seed, epochs):
    """Online exponentiated gradient."""
    clock = ProcessorClock()
    with clock.running():
        learner = ExponentiatedGradient(*problem, **MODEL)
    for epoch, value, _ in visits(problem, learner, seed, epochs, clock):
        calls, dual = learner.n_oracle_calls, learner.dual()
        yield Point(epoch, learner.n_updates, calls, clock.seconds, value, dual, math.nan)


def visits(problem, learner, seed, epochs, clock):
    """Epochs of a learner, with the objective and the bound that its gradient implies."""
    random_state, objective = np.random.RandomState(seed), CRFObjective(*problem, **MODEL, **EVERY)
    gradient = np.empty(objective.size)
    with range_runner(objective.offsets, 1) as run:
        for epoch in range(1, epochs + 1):
            with clock.running():
                learner.epoch(random_state)
            if measured(epoch):
                theta = objective.pack(learner.chain())
                value = objective.value_and_gradient(theta, gradient, run)
                yield epoch, value, objective.suboptimality_bound(gradient)


class CountingObjective(CRFObjective):
    """Objective that counts the epochs of coordinate ascent with which L-BFGS begins."""

    n_start_epochs = 0

    def ascent(self, *arguments, **options):
        """Ascent whose epochs are counted."""
        ascent = super().ascent(*arguments, **options)
        epoch = ascent.epoch

        def counted(vector, theta):
            successful = epoch(vector, theta)
            self.n_start_epochs += successful
            return successful

        ascent.epoch = counted
        return ascent


def lbfgs(problem, seed, epochs):
    """L-BFGS from some epochs of dual-free coordinate ascent; an epoch is a step."""
    clock, calls = ProcessorClock(), 0
    with clock.running():
        objective = CountingObjective(*problem, **MODEL, **EVERY)
    n = len(objective.sample_weight)
    with range_runner(objective.offsets, 1) as run:

        def value_and_gradient(x, out):
            nonlocal calls
            calls += n
            return objective.value_and_gradient(x, out, run)

        def curvature(x, out):
            nonlocal calls
            calls += n
            objective.curvature(x, out, run)

        with clock.running():
            start = stochastic_start(objective)
        start_updates = objective.n_start_epochs * n
        calls += start_updates
        iterates = minimize_lbfgs(value_and_gradient, start, curvature=curvature)
        for epoch in range(epochs + 1):
            with clock.running():
                point = next(iterates, None)
            if point is None:
                return
            bound = objective.suboptimality_bound(point.gradient)
            updates = start_updates + epoch
            values = point.value, point.value - bound, math.nan
            yield Point(epoch, updates, calls, clock.seconds, *values)


METHODS = {"sdca": sdca, "sag": sag, "oeg": oeg, "lbfgs": lbfgs}
