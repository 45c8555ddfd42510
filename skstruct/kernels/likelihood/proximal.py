"""Steps of the proximal quasi-Newton method: a quadratic model plus an L1 penalty.

The Hessian is modelled as ``diag(curvature) - W K^-1 W'``, the compact form of L-BFGS (Byrd,
Nocedal and Schnabel, 1994), with ``W = (diag(curvature) S, Y)`` for the last steps ``S`` and the
changes of the gradient ``Y``. The rows of ``S`` and ``Y`` belong to coordinates, the columns to
steps.
"""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit

# Least share of its diagonal part that the modelled curvature of a coordinate is taken for, against
# rounding.
LEAST_CURVATURE = 1e-3


@jit
def remember_step(x_new, x, g_new, g, diagonal, slot, s, y):
    """Store ``x_new - x`` and ``g_new - g`` in the columns ``slot`` of ``s`` and ``y``.

    Returns
    -------
    products : ndarray of shape (3, memory)
        Inner products of the new step with the columns of ``y``, of the columns of ``s`` with the
        new change, and of the new step with the columns of ``s``, weighted by the diagonal.
    curvature : float
        Squared norm of the change, divided by the diagonal, over the coordinates that have moved.
    """
    memory = s.shape[1]
    products = np.zeros((3, memory))
    curvature = 0.0
    for i in range(x.shape[0]):
        s[i, slot] = x_new[i] - x[i]
        y[i, slot] = g_new[i] - g[i]
        moved, changed = np.float64(s[i, slot]), np.float64(y[i, slot])
        for m in range(memory):
            products[1, m] += s[i, m] * changed
        if moved != 0.0:
            curvature += changed * changed / diagonal[i]
            for m in range(memory):
                products[0, m] += moved * y[i, m]
                products[2, m] += moved * diagonal[i] * s[i, m]
    return products, curvature


@jit
def model_rows(active, s, y, order, curvature, inverse, rows, solved):
    """Write the rows of ``W`` and of ``W K^-1`` that belong to the active coordinates.

    Returns
    -------
    bend : ndarray of shape (n_active,)
        Diagonal of the modelled Hessian.
    """
    n_pairs = order.shape[0]
    bend = np.empty(active.shape[0])
    for a in range(active.shape[0]):
        i = active[a]
        for m in range(n_pairs):
            rows[a, m] = curvature[a] * s[i, order[m]]
            rows[a, n_pairs + m] = y[i, order[m]]
        low_rank = 0.0
        for m in range(2 * n_pairs):
            total = 0.0
            for k in range(2 * n_pairs):
                total += inverse[m, k] * rows[a, k]
            solved[a, m] = total
            low_rank += total * rows[a, m]
        bend[a] = max(curvature[a] - low_rank, LEAST_CURVATURE * curvature[a])
    return bend


@lean_jit
def descend_coordinates(x, g, l1, curvature, bend, rows, solved, product, tol, max_sweeps, new):
    """Minimise the model plus the penalty by cyclic coordinate descent.

    Parameters
    ----------
    x, g : ndarray of shape (n_active,)
        Active coordinates of the point, and of the gradient there.
    l1 : float
        Strength of the penalty.
    curvature, bend : ndarray of shape (n_active,)
        Diagonal part of the modelled Hessian, and its diagonal.
    rows, solved : ndarray of shape (n_active, 2 * n_pairs)
        ``W`` and ``W K^-1``.
    product : ndarray of shape (2 * n_pairs,)
        Workspace.
    tol : float
        Stop when a sweep gains at most this share of what the first one has gained.
    max_sweeps : int
        Largest number of sweeps.
    new : ndarray of shape (n_active,)
        Receives the minimum.
    """
    for m in range(product.shape[0]):
        product[m] = 0.0
    for a in range(x.shape[0]):
        new[a] = x[a]
    gain, goal = 1.0, 0.0
    sweep = 0
    while sweep < max_sweeps and gain > goal:
        gain = 0.0
        for a in range(x.shape[0]):
            slope = g[a] + curvature[a] * (new[a] - x[a])
            for m in range(product.shape[0]):
                slope -= rows[a, m] * product[m]
            target = new[a] - slope / bend[a]
            target = np.copysign(max(abs(target) - l1 / bend[a], 0.0), target)
            change = target - new[a]
            if change != 0.0:
                new[a] = target
                gain += bend[a] * change * change
                for m in range(product.shape[0]):
                    product[m] += solved[a, m] * change
        if sweep == 0:
            goal = tol * gain
        sweep += 1
