"""Columns of a sparse matrix in order."""

from skstruct.kernels._jit import lean_jit


@lean_jit
def sort_rows(indptr, columns, values):
    """Drop negative columns and sort those of each row, in place.

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
