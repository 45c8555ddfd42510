"""Minima of one objective for many penalties, each found from those before."""

from copy import copy
from math import log
from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.compiled.rows import dot
from skstruct.learning.lbfgs import (
    BLIND_STEPS,
    Curvature,
    has_many_tokens,
    has_stalled,
    minimize,
    minimize_lbfgs,
)
from skstruct.learning.solver import Watcher
from skstruct.utils.memory import require_memory
from skstruct.utils.progress import History

# A search ends earlier than a fit: when ten iterations gained less than this share of `tol`.
# The bound closes late where the penalty is weak, and scores have long been what they stay.
_GAIN = 0.1
# Few steps follow each start, so all use one power of the inverse diagonal of the Hessian.
_POWERS = 0.5, 0.5
# Weights, gradients, and what L-BFGS keeps of them; the last two minima and the diagonal.
_BYTES_OF_A_WEIGHT = 140


class Minimum(NamedTuple):
    """Minimum for a penalty.

    Attributes
    ----------
    chain : Chain
        Weights.
    objective, bound : float
        The objective, and a bound on its distance from the minimum.
    n_iter : int
        Number of iterations.
    converged : bool
        False if `max_iter` iterations were not enough.
    """

    chain: Chain
    objective: float
    bound: float
    n_iter: int
    converged: bool


class PenaltyPath:
    """Minima for L2 penalties that get weaker and weaker.

    The weights change steadily with the logarithm of the penalty. So the third minimum is looked
    for where the line through the first two leads, and so on. L-BFGS goes on with what it knows of
    the Hessian, whose diagonal changes by what the penalty does.

    Parameters
    ----------
    objective : CRFObjective
        Its labels are known.
    tol : float
        Relative tolerance: a minimum is found when its bound is this fraction of the objective, or
        when ten iterations gained less than a tenth of it.
    max_iter : int
        Largest number of iterations for a penalty.
    run : callable
        From `skstruct.utils.parallel.range_runner`.
    """

    def __init__(self, objective, tol, max_iter, run):
        require_memory(
            _BYTES_OF_A_WEIGHT * objective.size,
            f"The {objective.size:,} weights of L-BFGS, with gradients and directions,",
            "Use a larger min_freq or all_possible_states=False.",
        )
        self._objective, self._run = objective, run
        self._tol, self._max_iter = tol, max_iter
        self._known = Curvature(objective.size, powers=_POWERS)
        self._diagonal = None
        # Penalty, weights and objective of the last two minima.
        self._before = []

    def minimize(self, l2):
        """Find the minimum for the next penalty.

        Parameters
        ----------
        l2 : float
            Strength of the penalty, not larger than the one before.

        Returns
        -------
        minimum : Minimum

        Raises
        ------
        ValueError
            If the objective overflows.
        """
        objective, history = self._objective, History()
        if self._before:
            self._adapt(l2 - self._before[-1][0])
        objective.l2 = float(l2)
        for iteration, point in enumerate(self._iterates()):
            bound = objective.suboptimality_bound(point.gradient)
            norm = np.sqrt(dot(point.gradient, point.gradient))
            history.add(epoch=iteration, objective=point.value, gradient_norm=norm)
            converged = bound <= self._tol * point.value or has_stalled(history, _GAIN * self._tol)
            if converged or iteration == self._max_iter:
                break
        self._before = [*self._before[-1:], (objective.l2, point.x, point.value)]
        chain = objective.unpack(point.x)
        return Minimum(chain, point.value, bound, iteration, converged)

    def _adapt(self, more):
        """Adapt the known curvature to an L2 penalty that is stronger by `more`."""
        self._known.add_penalty(more)
        if self._diagonal is not None:
            self._diagonal += more
            self._known.measure(self._diagonal.copy())
        self._known.rescale()

    def _iterates(self):
        """Iterates of L-BFGS from the first start whose objective is small enough."""
        for start, most, ask_at in self._starts():
            iterates = minimize_lbfgs(
                lambda x, out: self._objective.value_and_gradient(x, out, self._run),
                start,
                known=self._known,
                curvature=self._curvature if self._diagonal is None else None,
                ask_at=ask_at,
            )
            first = next(iterates)
            if first.value <= most:
                break
        yield first
        yield from iterates

    def _curvature(self, x, out):
        self._objective.curvature(x, out, self._run)
        self._diagonal = out.copy()

    def _starts(self):
        """Yield points to start from, best first.

        Each comes with the largest objective that makes it useful, and with the step at which to
        ask for the curvature.
        """
        objective, before = self._objective, self._before
        if not before:
            if has_many_tokens(objective):
                theta = objective.stochastic_start()
                if theta is not None:
                    yield theta, objective.bound_at_zero, 1
            yield np.zeros(objective.size), np.inf, BLIND_STEPS
            return
        last_l2, last, value = before[-1]
        start = self._extrapolate() if len(before) == 2 else None
        if len(before) == 1 and has_many_tokens(objective):
            start = objective.stochastic_start(last, self._run)
        if start is not None and start is not last:
            yield start, value + (objective.l2 - last_l2) / 2 * dot(last, last), 1
        yield last.copy(), np.inf, 1

    def _extrapolate(self):
        """Point on the line through the last two minima; None where it leads nowhere."""
        (l2_a, a, _), (l2_b, b, _) = self._before
        if not 0 < self._objective.l2 < l2_b < l2_a:
            return None
        ratio = log(self._objective.l2 / l2_b) / log(l2_b / l2_a)
        return b + ratio * (b - a)


def separate_minimum(objective, l2, settings, run):
    """Find a minimum without regard to those of other penalties.

    With an L1 penalty they are of no use. Where labels are unknown, the objective has many minima,
    and the one found should not depend on other penalties.

    Parameters
    ----------
    objective : CRFObjective
        Not changed.
    l2 : float
        Strength of the L2 penalty.
    settings : Settings
        Of the solver "lbfgs", with the L1 penalty.
    run : callable
        From `skstruct.utils.parallel.range_runner`.

    Returns
    -------
    minimum : Minimum
    """
    # The solver removes the likelihood from the objective that it is given.
    objective = copy(objective)
    objective.l2 = float(l2)
    solution = minimize(objective, settings, None, Watcher(), run)
    value = float(solution.history["objective"][-1])
    converged = solution.complaint is None
    return Minimum(solution.chain, value, solution.bound, solution.n_iter, converged)
