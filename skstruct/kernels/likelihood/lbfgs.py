"""Vector operations of L-BFGS, fused to save passes over memory."""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.vector.rows import dot


@lean_jit
def add_scaled(x, step, d, out):
    """``out = x + step * d``."""
    for k in range(x.shape[0]):
        out[k] = x[k] + step * d[k]


@lean_jit
def add_scaled_dot(d, step, v, u):
    """``d += step * v``; return the inner product of the new ``d`` with ``u``."""
    s0 = s1 = s2 = s3 = 0.0
    n = d.shape[0]
    for k in range(0, n - 3, 4):
        d[k] += step * v[k]
        d[k + 1] += step * v[k + 1]
        d[k + 2] += step * v[k + 2]
        d[k + 3] += step * v[k + 3]
        s0 += d[k] * u[k]
        s1 += d[k + 1] * u[k + 1]
        s2 += d[k + 2] * u[k + 2]
        s3 += d[k + 3] * u[k + 3]
    for k in range(n - n % 4, n):
        d[k] += step * v[k]
        s0 += d[k] * u[k]
    return (s0 + s1) + (s2 + s3)


@lean_jit
def remember(x_new, x, g_new, g, metric, s, y):
    """Store ``s = x_new - x`` and ``y = g_new - g``.

    Returns ``s @ y`` and ``y @ (metric * y)``.
    """
    yy = 0.0
    for k in range(x.shape[0]):
        s[k] = x_new[k] - x[k]
        y[k] = g_new[k] - g[k]
        yy += y[k] * metric[k] * y[k]
    return dot(s, y), yy


@jit
def descent_direction(pairs, rho, order, scale, metric, g, d):
    """Two-loop recursion (Nocedal and Wright, 2006, algorithm 7.4): ``d = -H g``.

    ``pairs[i]`` has the rows ``s`` and ``y`` of a correction pair; ``order`` lists the pairs,
    newest first. The initial approximation of the inverse Hessian is the diagonal
    ``scale * metric``.
    """
    n_pairs = order.shape[0]
    alpha = np.empty(n_pairs)
    for k in range(g.shape[0]):
        d[k] = -g[k]
    product = dot(pairs[order[0], 0], d) if n_pairs > 0 else 0.0
    for m in range(n_pairs):
        i = order[m]
        alpha[m] = rho[i] * product
        older = order[min(m + 1, n_pairs - 1)]
        product = add_scaled_dot(d, -alpha[m], pairs[i, 1], pairs[older, 0])
    for k in range(g.shape[0]):
        d[k] *= scale * metric[k]
    product = dot(pairs[order[n_pairs - 1], 1], d) if n_pairs > 0 else 0.0
    for m in range(n_pairs - 1, -1, -1):
        i = order[m]
        step, newer = alpha[m] - rho[i] * product, order[max(m - 1, 0)]
        product = add_scaled_dot(d, step, pairs[i, 0], pairs[newer, 1])
