"""Vectorised operations on rows: the inner loops of decoding, forward-backward and learners.

Sums and maxima are taken in several lanes, in the same order on every processor. The compiler could
vectorise a plain sum only if it were free to reorder it, and the order would depend on the width of
the registers.

Loops over four items at a time count the groups, from zero: LLVM then knows that no index is
negative, and drops numba's check of whether one counts from the end.
"""

import numpy as np

from skstruct.compiled.jit import inline_jit, inline_lean_jit, inner_lean_jit, lean_jit
from skstruct.compiled.lanes import (
    GROUP,
    LANES,
    add_top_two,
    add_wide_outer,
    dot_wide_rows,
    max_plus_wide_rows,
    sum_groups,
)


@lean_jit
def dot(a, b):
    """Inner product in double precision."""
    s0 = s1 = s2 = s3 = 0.0
    n = a.shape[0]
    for i in range(n // 4):
        k = 4 * i
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
    for k in range(n - n % 4, n):
        s0 += a[k] * b[k]
    return (s0 + s1) + (s2 + s3)


@lean_jit
def add_scaled(x, step, d, out):
    """``out = x + step * d``."""
    for k in range(x.shape[0]):
        out[k] = x[k] + step * d[k]


@lean_jit
def squared_distance(a, b):
    s0 = s1 = s2 = s3 = 0.0
    n = a.shape[0]
    for i in range(n // 4):
        k = 4 * i
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
    for k in range(n // 4):
        i = 4 * k
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


@inline_jit
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
        dot_wide_rows(x, matrix, out)
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
        max_plus_wide_rows(x, matrix, out)
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
        add_wide_outer(weight, x, y, out)
        return
    for i in range(out.shape[0]):
        for j in range(n):
            out[i, j] += weight * x[i] * y[j]


@inline_lean_jit
def copy_matrix(matrix, out):
    """Copy a matrix; numba takes longer to compile `copy`, and seconds for a slice assignment."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            out[i, j] = matrix[i, j]


@inner_lean_jit
def add_matrix(matrix, out):
    """``out += matrix``."""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            out[i, j] += matrix[i, j]


@lean_jit
def sort_rows(indptr, columns, values):
    """Drop negative columns and sort each row's, in place.

    Parameters
    ----------
    indptr : ndarray of shape (n_rows + 1,)
        Place at which each row starts. Updated.
    columns : ndarray of int32 of shape (n_entries,)
        Columns of all rows, negative where there is none. Updated.
    values : ndarray of shape (n_entries,) or (0,)
        Values that go with the columns, if they have any. Updated.

    Returns
    -------
    n_entries : int
        Number of columns that are kept, the first ones of `columns`.
    repeats : bool
        True if a row has a column more than once.
    """
    n, start, repeats = 0, indptr[0], False
    for r in range(indptr.shape[0] - 1):
        first, end = n, indptr[r + 1]
        for k in range(start, end):
            if columns[k] >= 0:
                columns[n] = columns[k]
                if values.shape[0]:
                    values[n] = values[k]
                n += 1
        start = end
        indptr[r + 1] = n
        _sort(columns, values, first, n)
        for k in range(first + 1, n):
            repeats |= columns[k] == columns[k - 1]
    return n, repeats


@lean_jit
def keep_columns(column_of, indptr, columns, values):
    """Renumber columns, dropping those whose new number is negative, in place.

    `indptr`, `columns` and `values` are as in `sort_rows`. Returns the number of entries kept.
    """
    n, start = 0, 0
    for r in range(indptr.shape[0] - 1):
        end = indptr[r + 1]
        for k in range(start, end):
            column = column_of[columns[k]]
            if column >= 0:
                columns[n] = column
                if values.shape[0]:
                    values[n] = values[k]
                n += 1
        start = end
        indptr[r + 1] = n
    return n


@inner_lean_jit
def _sort(columns, values, first, end):
    """Sort a row by its columns (Shell, 1959), which are few."""
    gap = 1
    while 3 * gap + 1 < end - first:
        gap = 3 * gap + 1
    while gap:
        for k in range(first + gap, end):
            column = columns[k]
            value = values[k] if values.shape[0] else 1.0
            place = k
            while place >= first + gap and columns[place - gap] > column:
                columns[place] = columns[place - gap]
                if values.shape[0]:
                    values[place] = values[place - gap]
                place -= gap
            columns[place] = column
            if values.shape[0]:
                values[place] = value
        gap //= 3
