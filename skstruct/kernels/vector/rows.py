"""Vectorised operations on rows: the inner loops of decoding and of forward-backward.

Three blocks of columns of a matrix are processed at a time, which gives the processor
independent sums to interleave. The last block overlaps the one before where the number of columns
is not a multiple of its size; columns in both are computed twice with the same result.
"""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.vector.lanes import (
    LANES,
    add_top_two,
    dot_blocks,
    max_plus_blocks,
    outer_block,
    sum_block,
)


@jit(inline="always")
def sum_rows(initial, matrix, rows, values, first, last, out):
    """``out = initial + sum_k values[k] * matrix[rows[k]]`` over ``first <= k < last``.

    See `sum_block` for the other forms of the parameters. At least `LANES` columns are needed.
    """
    n = out.shape[0]
    for j in range(0, n, LANES):
        sum_block(initial, matrix, rows, values, first, last, min(j, n - LANES), out)


@jit(inline="always")
def add_rows(x, i, y, j, out):
    """``out = x[i] + y[j]``; return its largest item, the next one, and the first largest position.

    An item that does not exist, or is NaN, counts as minus infinity, at the first position.
    """
    if out.shape[0] >= LANES:
        return add_top_two(x, i, y, j, out)
    top = second = -np.inf
    where = 0
    for k in range(out.shape[0]):
        out[k] = x[i, k] + y[j, k]
        if out[k] > top:
            top, second, where = out[k], top, k
        elif out[k] > second:
            second = out[k]
    return top, second, where


@lean_jit
def vector_matrix(x, matrix, out):
    """``out = x @ matrix``."""
    n = matrix.shape[1]
    if n >= LANES:
        for j in range(0, n, 3 * LANES):
            if j + 2 * LANES < n:
                dot_blocks(x, matrix, (j, j + LANES, min(j + 2 * LANES, n - LANES)), out)
            elif j + LANES < n:
                dot_blocks(x, matrix, (j, n - LANES), out)
            else:
                dot_blocks(x, matrix, (n - LANES,), out)
        return
    for j in range(n):
        out[j] = 0.0
    for i in range(matrix.shape[0]):
        for j in range(n):
            out[j] += x[i] * matrix[i, j]


@lean_jit
def max_plus(x, matrix, out):
    """``out[j] = max_i x[i] + matrix[i, j]`` for a matrix with a row."""
    n = matrix.shape[1]
    if n >= LANES:
        for j in range(0, n, 3 * LANES):
            if j + 2 * LANES < n:
                max_plus_blocks(x, matrix, (j, j + LANES, min(j + 2 * LANES, n - LANES)), out)
            elif j + LANES < n:
                max_plus_blocks(x, matrix, (j, n - LANES), out)
            else:
                max_plus_blocks(x, matrix, (n - LANES,), out)
        return
    for j in range(n):
        out[j] = x[0] + matrix[0, j]
    for i in range(1, matrix.shape[0]):
        for j in range(n):
            score = x[i] + matrix[i, j]
            out[j] = score if score > out[j] else out[j]


@lean_jit
def add_outer(weight, x, y, out):
    """``out += weight * outer(x, y)``."""
    n = out.shape[1]
    if n >= LANES:
        for j in range(0, n, LANES):
            at = min(j, n - LANES)
            outer_block(weight, x, y, at, j - at, out)
        return
    for i in range(out.shape[0]):
        for j in range(n):
            out[i, j] += weight * x[i] * y[j]


@lean_jit
def add_matrix(matrix, out):
    """``out += matrix``."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            out[i, j] += matrix[i, j]
