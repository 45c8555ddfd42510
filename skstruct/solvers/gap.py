"""Duality gap of a CRF with an L1 penalty."""

from __future__ import annotations

import numpy as np

from skstruct import kernels

__all__ = ["best_dual", "duality_gap"]


def duality_gap(objective, theta, value, smooth, l1):
    """Bound the distance of the objective with an L1 penalty from its minimum.

    The dual objective is at most the minimum. It is computed at the marginals of the weights, mixed
    with the gold labels where these are better (Kim et al., 2007).

    Parameters
    ----------
    objective : CRFObjective
        The smooth part.
    theta : ndarray of shape (size,)
        Parameters.
    value : float
        Objective there, with both penalties.
    smooth : ndarray of shape (size,)
        Gradient of the objective without the L1 penalty.
    l1 : float
        Strength of the penalty.

    Returns
    -------
    gap : float
        Infinite where labels are unknown: the objective is not convex.
    """
    if objective.partial:
        return np.inf
    l2 = objective.l2
    # Minus the gradient of the likelihood, to which the weights are conjugate.
    slope = l2 * theta - smooth
    penalty = l1 * np.abs(theta).sum() + l2 / 2 * kernels.dot(theta, theta)
    # Python's numbers do not warn where a huge l2 multiplies them.
    entropy = float(value - penalty + kernels.dot(theta, slope))
    return max(value - best_dual(entropy, np.abs(slope), l1, l2), 0.0)


def best_dual(entropy, slope, l1, l2):
    """Largest ``share * entropy - |max(share * slope - l1, 0)|^2 / (2 l2)`` of shares up to one."""
    steepest = slope.max(initial=0.0)
    if l2 == 0 or steepest <= l1:
        return entropy * min(1.0, l1 / max(steepest, l1))
    slope = slope[slope > l1]

    def excess(share):
        return np.maximum(share * slope - l1, 0.0)

    low, high = 0.0, 1.0
    if l2 * entropy < kernels.dot(excess(high), slope):
        while high - low > 1e-6:
            middle = (low + high) / 2
            falls = l2 * entropy < kernels.dot(excess(middle), slope)
            low, high = (low, middle) if falls else (middle, high)
    over = excess(high)
    return high * entropy - kernels.dot(over, over) / (2 * l2)
