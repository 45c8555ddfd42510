"""Sums and maxima in several lanes, in the same order on every processor.

The compiler could vectorise a plain sum only if it were free to reorder it, and the order would
depend on the width of the processor's registers.
"""

import numpy as np

from skstruct.kernels._jit import lean_jit
from skstruct.kernels.vector.lanes import GROUP, sum_groups


@lean_jit
def dot(a, b):
    """Inner product in double precision."""
    s0 = s1 = s2 = s3 = 0.0
    n = a.shape[0]
    for k in range(0, n - 3, 4):
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
    for k in range(n - n % 4, n):
        s0 += a[k] * b[k]
    return (s0 + s1) + (s2 + s3)


@lean_jit
def squared_distance(a, b):
    """Squared distance of two vectors."""
    s0 = s1 = s2 = s3 = 0.0
    n = a.shape[0]
    for k in range(0, n - 3, 4):
        d0, d1 = a[k] - b[k], a[k + 1] - b[k + 1]
        d2, d3 = a[k + 2] - b[k + 2], a[k + 3] - b[k + 3]
        s0 += d0 * d0
        s1 += d1 * d1
        s2 += d2 * d2
        s3 += d3 * d3
    for k in range(n - n % 4, n):
        d0 = a[k] - b[k]
        s0 += d0 * d0
    return (s0 + s1) + (s2 + s3)


@lean_jit
def largest(x, n):
    """Maximum of the first ``n`` items; four independent comparisons at a time for speed."""
    a = b = c = d = -np.inf
    for i in range(0, n - 3, 4):
        a = x[i] if x[i] > a else a
        b = x[i + 1] if x[i + 1] > b else b
        c = x[i + 2] if x[i + 2] > c else c
        d = x[i + 3] if x[i + 3] > d else d
    for i in range(n - n % 4, n):
        a = x[i] if x[i] > a else a
    return max(max(a, b), max(c, d))


@lean_jit
def sum_in_lanes(terms):
    """Sum of an array in double precision."""
    n = terms.shape[0]
    start = n - n % GROUP
    a = b = c = d = e = f = g = h = 0.0
    for k in range(start, n - 7, 8):
        a += terms[k]
        b += terms[k + 1]
        c += terms[k + 2]
        d += terms[k + 3]
        e += terms[k + 4]
        f += terms[k + 5]
        g += terms[k + 6]
        h += terms[k + 7]
    for k in range(n - n % 8, n):
        a += terms[k]
    return sum_groups(terms, n // GROUP) + (((a + e) + (c + g)) + ((b + f) + (d + h)))
