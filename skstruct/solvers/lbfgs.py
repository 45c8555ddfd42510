"""Limited-memory BFGS (Nocedal, 1980) for large smooth objectives.

scipy's L-BFGS-B handles bounds, which a CRF does not have, and keeps its history in double
precision. Here the history is in single precision: half the memory, and half the time of an
iteration that is limited by memory. Iterates, objective and gradient stay in double precision.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

import numpy as np

from skstruct import kernels

__all__ = ["Iterate", "minimize_lbfgs"]

# Weak Wolfe conditions: sufficient decrease and curvature (Nocedal and Wright, 2006, 3.1).
_DECREASE = 1e-4
_CURVATURE = 0.9
_MAX_TRIALS = 30
# The coordinates are scaled by a power of the inverse diagonal of the Hessian. The full power would
# be too much: the features of a token share its error, so the Hessian of a CRF is far from
# diagonal. The first power decreases the objective fastest; the second one gains the last digits
# sooner.
_METRIC_POWERS = 0.6, 0.25
# Step at which the first power gives way to the second.
_LONG_RUN = 25


class Iterate(NamedTuple):
    """A point, with the objective and its gradient there."""

    x: np.ndarray
    value: float
    gradient: np.ndarray


def minimize_lbfgs(value_and_gradient, x, *, memory=10, curvature=None, ask_at=1):
    """Yield the iterates of L-BFGS; the caller decides when to stop.

    Parameters
    ----------
    value_and_gradient : callable
        ``value_and_gradient(x, out)`` returns the objective at `x` and writes its gradient into
        `out`.
    x : ndarray of shape (n_parameters,)
        Starting point, which is overwritten.
    memory : int, default=10
        Number of past steps from which the curvature is estimated.
    curvature : callable, default=None
        ``curvature(x, out)`` writes an estimate of the diagonal of the Hessian at `x` into
        `out`. If given, it is called once, and scales the coordinates from then on.
    ask_at : int, default=1
        Step at which it is called: at once from a good start, later from a bad one.

    Yields
    ------
    iterate : Iterate
        The starting point, then one after every step. The second step after an iterate overwrites
        its arrays. Iteration ends when no step decreases the objective.
    """
    n = x.shape[0]
    # A pair of rows, ``s`` and ``y``, takes as much memory as a point in double precision.
    pairs, rho = np.zeros((memory, 2, n), np.float32), np.zeros(memory)
    order = []
    scale, metric = 1.0, np.ones(n, np.float32)
    direction, gradient, spare = np.empty(n), np.empty(n), np.empty(n)
    current = Iterate(x, value_and_gradient(x, gradient), gradient)
    yield current
    for step in count(1):
        if step == ask_at and curvature is not None:
            curvature(current.x, direction)
            metric[:] = np.power(direction, -_METRIC_POWERS[step >= _LONG_RUN], out=direction)
        elif step == _LONG_RUN and order:
            metric **= _METRIC_POWERS[1] / _METRIC_POWERS[0]
            newest = pairs[order[0], 1]
            scale = 1.0 / (rho[order[0]] * kernels.dot(newest * metric, newest))
        newest_first = np.array(order, np.int64)
        kernels.descent_direction(
            pairs, rho, newest_first, scale, metric, current.gradient, direction
        )
        slope = kernels.dot(current.gradient, direction)
        if not order and slope < 0:
            # The curvature is unknown: a step of length one.
            direction /= np.sqrt(-slope)
            slope = -np.sqrt(-slope)
        # Where the next pair will be stands the point that the search looks at.
        slot = order[-1] if len(order) == memory else _free_slot(order)
        trial = pairs[slot].ravel().view(np.float64)
        value = _line_search(value_and_gradient, current, direction, slope, trial, spare)
        if value is None:
            if not order:
                return
            # Rounding has spoilt the history: restart with steepest descent.
            order, scale = [], 1.0
            continue
        direction[:] = trial
        following = Iterate(direction, value, spare)
        change = (following.x, current.x, following.gradient, current.gradient)
        sy, yy = kernels.remember(*change, metric, *pairs[slot])
        order = [i for i in order if i != slot]
        if sy > 1e-10 * yy:
            rho[slot], scale = 1.0 / sy, sy / yy
            order = [slot, *order]
        (direction, _, spare), current = current, following
        yield current


def _free_slot(order):
    return next(i for i in count() if i not in order)


def _line_search(value_and_gradient, start, direction, slope, x, gradient):
    """Find a point along `direction` that meets the weak Wolfe conditions.

    The point is written into `x` and its gradient into `gradient`; the objective there is returned,
    or None if there is no such point.
    """
    if not slope < 0:
        return None
    low, high, step = 0.0, np.inf, 1.0
    # Near the minimum rounding hides the decrease.
    slack = 1e-13 * abs(start.value)
    for _ in range(_MAX_TRIALS):
        kernels.add_scaled(start.x, step, direction, x)
        value = value_and_gradient(x, gradient)
        if not value <= start.value + _DECREASE * step * slope + slack:
            high = step
            step = _interpolate(low, step, value, start.value, slope)
        elif kernels.dot(gradient, direction) < _CURVATURE * slope:
            low = step
            step = 2 * low if high == np.inf else (low + high) / 2
        else:
            return value
    return None


def _interpolate(low, step, value, start_value, slope):
    """Minimise the parabola through both ends, keeping away from them."""
    parabola = 2 * (value - start_value - slope * step)
    best = -slope * step**2 / parabola if np.isfinite(parabola) and parabola > 0 else low
    return min(max(best, low + 0.1 * (step - low)), low + 0.5 * (step - low))
