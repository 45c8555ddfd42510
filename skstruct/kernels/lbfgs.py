"""The vector operations of L-BFGS, each one pass over memory."""

import numpy as np

from skstruct.kernels._jit import jit


@jit
def dot(a, b):
    """Inner product in double precision; four sums, so that it is not one chain of additions."""
    s0 = s1 = s2 = s3 = 0.0
    n = a.shape[0]
    k = 0
    while k + 3 < n:
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
        k += 4
    while k < n:
        s0 += a[k] * b[k]
        k += 1
    return (s0 + s1) + (s2 + s3)


@jit
def add_scaled(x, step, d, out):
    """``out = x + step * d``."""
    for k in range(x.shape[0]):
        out[k] = x[k] + step * d[k]


@jit
def remember(x_new, x, g_new, g, s, y):
    """Keep ``s = x_new - x`` and ``y = g_new - g``; return their inner product and ``y @ y``."""
    for k in range(x.shape[0]):
        s[k] = x_new[k] - x[k]
        y[k] = g_new[k] - g[k]
    return dot(s, y), dot(y, y)


@jit
def descent_direction(s, y, rho, order, scale, g, d):
    """Two-loop recursion: ``d = -H g`` with the pairs ``order``, newest first."""
    alpha = np.empty(order.shape[0])
    for k in range(g.shape[0]):
        d[k] = -g[k]
    for m, i in enumerate(order):
        alpha[m] = rho[i] * dot(s[i], d)
        add_scaled(d, -alpha[m], y[i], d)
    for k in range(g.shape[0]):
        d[k] *= scale
    for m in range(order.shape[0] - 1, -1, -1):
        i = order[m]
        beta = rho[i] * dot(y[i], d)
        add_scaled(d, alpha[m] - beta, s[i], d)
