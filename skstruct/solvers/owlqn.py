"""Orthant-wise L-BFGS (Andrew and Gao, 2007): smooth objectives plus an L1 penalty.

Within an orthant, where no coordinate changes sign, the penalty is linear, so L-BFGS works on the
sum as it does on the smooth part. Every step stays in one orthant: coordinates that would leave it
stop at zero, and leave zero only in the direction in which the objective decreases.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from skstruct import kernels
from skstruct.solvers.lbfgs import Iterate

__all__ = ["minimize_owlqn"]

# Sufficient decrease (Armijo), and the number of halvings before a step counts as none.
_DECREASE = 1e-4
_MAX_TRIALS = 40


def minimize_owlqn(value_and_gradient, x, l1, *, memory=10):
    """Yield the iterates of orthant-wise L-BFGS; the caller decides when to stop.

    Parameters
    ----------
    value_and_gradient : callable
        ``value_and_gradient(x, out)`` returns the smooth part of the objective at `x` and writes
        its gradient into `out`.
    x : ndarray of shape (n_parameters,)
        Starting point.
    l1 : float
        Strength of the penalty ``l1 * |x|_1``.
    memory : int, default=10
        Number of past steps from which the curvature is estimated.

    Yields
    ------
    iterate : Iterate
        The starting point, then one after every step. ``value`` is the objective with its penalty,
        ``gradient`` its subgradient of least norm. The second step after an iterate overwrites its
        arrays. Iteration ends when no step decreases the objective.
    """
    n = x.shape[0]
    s, y = np.zeros((memory, n), np.float32), np.zeros((memory, n), np.float32)
    rho, metric = np.zeros(memory), np.ones(n, np.float32)
    order, scale = [], 1.0
    direction = np.empty(n)
    # The history is made of gradients of the smooth part.
    smooth, next_smooth = np.empty(n), np.empty(n)
    x = x.copy()
    value = value_and_gradient(x, smooth) + l1 * np.abs(x).sum()
    current = Iterate(x, value, least_subgradient(x, smooth, l1))
    yield current
    while True:
        newest_first = np.array(order, np.int64)
        kernels.descent_direction(
            s, y, rho, newest_first, scale, metric, current.gradient, direction
        )
        # The objective is known to decrease only where the subgradient agrees.
        direction[direction * current.gradient >= 0] = 0.0
        if not order:
            norm = np.sqrt(kernels.dot(direction, direction))
            direction /= max(norm, np.finfo(float).tiny)
        following = _line_search(value_and_gradient, current, direction, l1, next_smooth)
        if following is None:
            if not order:
                return
            # Rounding has spoilt the history: restart with steepest descent.
            order, scale = [], 1.0
            continue
        slot = order[-1] if len(order) == memory else next(i for i in count() if i not in order)
        sy, yy = kernels.remember(
            following.x, current.x, next_smooth, smooth, metric, s[slot], y[slot]
        )
        order = [i for i in order if i != slot]
        if sy > 1e-10 * yy:
            rho[slot], scale = 1.0 / sy, sy / yy
            order = [slot, *order]
        current = following
        smooth, next_smooth = next_smooth, smooth
        yield current


def least_subgradient(x, gradient, l1):
    """Subgradient of least norm of the objective, given the gradient of its smooth part.

    It is zero at the minimum and nowhere else. If the smooth part is strongly convex with modulus
    ``l2``, the objective is at most ``|subgradient|^2 / (2 l2)`` above its minimum.
    """
    # At zero, the penalty resists a slope of up to l1 in either direction.
    return np.where(
        x == 0,
        np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0),
        gradient + l1 * np.sign(x),
    )


def _line_search(value_and_gradient, start, direction, l1, smooth):
    """Halve the step until a point in the orthant meets the Armijo condition.

    Writes the gradient of the smooth part there into `smooth`.
    """
    orthant = np.where(start.x == 0, -np.sign(start.gradient), np.sign(start.x))
    # Near the minimum rounding hides the decrease.
    slack = 1e-14 * abs(start.value)
    step = 1.0
    for _ in range(_MAX_TRIALS):
        x = start.x + step * direction
        x[x * orthant <= 0] = 0.0
        decrease = kernels.dot(start.gradient, x - start.x)
        if not decrease < 0:
            return None
        value = value_and_gradient(x, smooth) + l1 * np.abs(x).sum()
        if value <= start.value + _DECREASE * decrease + slack:
            return Iterate(x, value, least_subgradient(x, smooth, l1))
        step *= 0.5
    return None
