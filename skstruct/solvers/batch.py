"""The solver "lbfgs": the whole objective at every step.

L-BFGS. Large training sets are started by dual-free coordinate ascent (Shalev-Shwartz, 2016), from
which it needs a third of the evaluations or fewer. With an L1 penalty the ascent goes on for as
long as it gains fast, and the proximal quasi-Newton method does the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from skstruct import kernels
from skstruct.solvers.base import Solution, not_converged
from skstruct.solvers.gap import duality_gap
from skstruct.solvers.lbfgs import minimize_lbfgs
from skstruct.solvers.objective import CRFObjective
from skstruct.solvers.proximal import minimize_proximal, proximal_points
from skstruct.utils.history import History
from skstruct.utils.memory import require_memory
from skstruct.utils.parallel import chain_work, count_shards, range_runner

__all__ = ["Settings", "has_stalled", "minimize", "solve"]

# Below this many tokens a fit takes less time than compiling the stochastic start once.
MANY_TOKENS = 10_000
# A fit ends when ten iterations gained less than this share of the tolerance.
_GAIN, _L1_GAIN = 0.01, 1 / 3
# Steps of L-BFGS from zero before the curvature is of any use.
_BLIND_STEPS = 15


# A weight, its gradient and its share of the directions of L-BFGS.
_BYTES_OF_A_WEIGHT = 116


class Settings(NamedTuple):
    """Parameters of `CRFTagger` that the solver reads."""

    l2: float
    l1: float
    min_freq: float
    all_possible_states: bool
    all_possible_transitions: bool
    fit_intercept: bool
    max_iter: int
    tol: float
    random_state: object
    n_jobs: int | None


def solve(training_set, model, settings, start, watcher):
    """Learn as `skstruct.solvers.base` says."""
    # The result is as large as that, however few weights there are.
    model.require_memory(1, _n_tables(model, training_set, settings.n_jobs))
    training_set = watcher.hold_out(training_set, check_random_state(settings.random_state))
    objective = CRFObjective(
        training_set,
        model.n_features,
        model.n_labels,
        model.n_transition_features or 0,
        l2=settings.l2,
        min_freq=settings.min_freq,
        all_possible_states=settings.all_possible_states,
        all_possible_transitions=settings.all_possible_transitions,
        fit_intercept=settings.fit_intercept,
        possible=model.possible,
        order=model.order,
    )
    # The objective has packed it.
    del training_set
    work = chain_work(objective.n_labels, model.order)
    with range_runner(objective.offsets, settings.n_jobs, work) as run:
        return minimize(objective, settings, start, watcher, run)


def _n_tables(model, training_set, n_jobs):
    """Number of matrices of transitions that the sums of sequences need at once."""
    longest = np.diff(training_set.offsets).max()
    if model.has_transition_features:
        # Tables of all transitions for each token.
        return 4 * longest
    if model.order == 1:
        return 0
    k = model.n_labels
    n_pairs, n_triples = k**2, k**3
    if model.possible is not None:
        allowed = model.possible.transition
        n_pairs, n_triples = int(allowed.sum()), int(allowed.sum(axis=0) @ allowed.sum(axis=1))
    # For each thread places, scores, factors and counts of triples, and rows of pairs for each
    # token.
    n_numbers = 7 * n_triples + 3 * int(longest) * n_pairs
    return max(count_shards(n_jobs), 1) * n_numbers // k**2


def minimize(objective, settings, start, watcher, run=None):
    """Minimise an objective.

    Parameters
    ----------
    objective : Objective
        The smooth part, which loses its likelihood.
    settings : Settings
        Parameters of the estimator.
    start : Chain or None
        Weights to start from.
    watcher : Watcher
        Says when to stop.
    run : callable, default=None
        Passed on to the objective, which may take its sums without.

    Returns
    -------
    solution : Solution

    Raises
    ------
    MemoryError
        If the weights and what L-BFGS keeps of them need more memory than there is.
    """
    require_memory(
        _BYTES_OF_A_WEIGHT * objective.size,
        f"The {objective.size:,} weights of L-BFGS, with gradients and directions,",
        "Use a larger min_freq, all_possible_states=False, or an online tagger.",
    )
    history = History()
    iterates = _iterates(objective, settings.l1, start, run)
    for iteration, point in enumerate(iterates):
        bound = _bound(objective, settings.l1, point)
        history.add(
            epoch=iteration,
            objective=point.value,
            bound=bound,
            gradient_norm=np.sqrt(kernels.dot(point.gradient, point.gradient)),
            weight_norm=np.sqrt(kernels.dot(point.x, point.x)),
        )
        # With an L1 penalty the bound closes late, and only the gain says that the end is near.
        least_gain = settings.tol * (_L1_GAIN if settings.l1 else _GAIN)
        converged = bound <= settings.tol * point.value or has_stalled(history, least_gain)
        stopped = watcher.visit(lambda: objective.unpack(point.x), history)  # noqa: B023
        if converged or stopped or iteration == settings.max_iter:
            break
    complaint = None
    if not (converged or stopped):
        limits = settings.max_iter, "iterations"
        complaint = not_converged(iteration, *limits, bound, point.value, settings.tol)
    # What L-BFGS keeps, and the tokens, go before the weights of all features and labels come.
    iterates.close()
    theta, point, objective.likelihood = point.x, None, None
    chain = watcher.best or objective.unpack(theta)
    return Solution(
        chain,
        history.arrays(),
        iteration,
        bound=history["bound"][watcher.best_entry],
        n_weights=objective.n_weights,
        complaint=complaint,
    )


def _bound(objective, l1, point):
    if l1:
        return duality_gap(objective, point.x, point.value, point.smooth, l1)
    return objective.suboptimality_bound(point.gradient)


def _starts(objective, l1, start, run):
    """Yield points to start from, and the step at which to ask for the curvature; best first."""
    # With an L1 penalty the ascent has been tried.
    if not l1 and _has_many_tokens(objective):
        theta = objective.stochastic_start(start, run)
        if theta is not None:
            yield theta, 1
    if start is not None:
        yield start, 1
    yield np.zeros(objective.size), _BLIND_STEPS


def _has_many_tokens(objective):
    return objective.n_tokens >= MANY_TOKENS and not objective.partial


def _iterates(objective, l1, start, run):
    """Yield points on the way to the minimum, from the first start that is no worse than zero."""

    def value_and_gradient(x, out):
        return objective.value_and_gradient(x, out, run)

    def curvature(x, out):
        objective.curvature(x, out, run)

    point, start = None, None if start is None else objective.pack(start)
    if l1 and start is None and _has_many_tokens(objective):
        for point in proximal_points(objective, l1, run):
            yield point
    for theta, ask_at in _starts(objective, l1, start if point is None else point.x, run):
        if l1:
            iterates = minimize_proximal(
                value_and_gradient, theta, l1, curvature=curvature, scale=objective.mean_square
            )
        else:
            iterates = minimize_lbfgs(value_and_gradient, theta, curvature=curvature, ask_at=ask_at)
        first = next(iterates)
        # The stochastic start may be worse than zero where it has not settled: with few features,
        # or features of very different scale.
        if first.value <= objective.most_at_zero:
            break
    if point is None:
        yield first
    yield from iterates


def has_stalled(history, least_gain, period=10):
    """Return True if `period` iterations gained at most a share, or the gradient is zero."""
    if history["gradient_norm"][-1] == 0:
        return True
    objective = history["objective"]
    if len(objective) <= period:
        return False
    return objective[-1 - period] - objective[-1] <= least_gain * abs(objective[-1])
