"""Transition scores as the factors that forward-backward multiplies with.

``linear[i, j] = exp(log[i, j] - shift[j])``, where ``shift[j]`` is the largest score into label
``j``: the largest factor into each label is one.
"""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.vector.vectormath import exp_all, exp_nonpositive

# The factors into one label may differ by up to exp(MAX_SPREAD); beyond that they could underflow.
MAX_SPREAD = 300.0


@jit(inline="always")
def tabulate(transition, shift, linear, linear_t):
    """Fill in the factors of one matrix.

    Returns
    -------
    scaled : bool
        The linear domain is safe.
    forbids : bool
        Some transitions are impossible in the linear domain.
    """
    n_rows, n_labels = transition.shape
    low = np.empty(n_labels)
    for j in range(n_labels):
        shift[j] = low[j] = transition[0, j]
    for i in range(1, n_rows):
        for j in range(n_labels):
            shift[j] = max(shift[j], transition[i, j])
            low[j] = min(low[j], transition[i, j])
    scaled, forbids = True, False
    for j in range(n_labels):
        # The spread of a label that cannot be reached is NaN, for which this is False.
        scaled &= shift[j] - low[j] <= MAX_SPREAD
    if scaled:
        for i in range(n_rows):
            for j in range(n_labels):
                linear[i, j] = transition[i, j] - shift[j]
        exp_all(linear.reshape(n_rows * n_labels))
    else:
        scaled = forbids = tabulate_possible(transition, shift, linear)
    for i in range(n_rows):
        for j in range(n_labels):
            linear_t[j, i] = linear[i, j]
    return scaled, forbids


@lean_jit
def tabulate_possible(transition, shift, linear):
    """Do the same for a matrix with minus infinity; return True if it is safe and has any."""
    n_rows, n_labels = transition.shape
    forbids = False
    for j in range(n_labels):
        high, low = -np.inf, np.inf
        for i in range(n_rows):
            x = transition[i, j]
            forbids |= x == -np.inf
            if x != -np.inf:
                high = x if x > high else high
                low = x if x < low else low
                if np.isnan(x):
                    return False
        if high - low > MAX_SPREAD:
            return False
        shift[j] = high if high > -np.inf else 0.0
    for i in range(n_rows):
        for j in range(n_labels):
            x = transition[i, j]
            linear[i, j] = exp_nonpositive(x - shift[j]) if x > -np.inf else 0.0
    return forbids
