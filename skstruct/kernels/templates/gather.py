"""Kernels that merge the features of all templates into sorted rows with counts."""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit, lean_jit

_BLOCK = 512


class Sources(NamedTuple):
    """Location of each template's feature numbers: in a table of values, or row by row."""

    field: np.ndarray  # (n_templates,) int64, of the values; -1: row by row
    position: np.ndarray  # (n_templates,) int64, relative to the current token
    row: np.ndarray  # (n_templates,) int64, of `tables` or of the numbers
    tables: np.ndarray  # (n_tables, n_values) int32; -1: no feature


@lean_jit
def _insert(c, first, n, indices, data):
    """Insert a column into the sorted row ``first:n``, or count it; return the new `n`."""
    k = n
    while k > first and indices[k - 1] > c:
        k -= 1
    if k > first and indices[k - 1] == c:
        data[k - 1] += 1
        return n
    for i in range(n, k, -1):
        indices[i], data[i] = indices[i - 1], data[i - 1]
    indices[k], data[k] = c, 1
    return n + 1


@jit
def gather_rows(tokens, sources, numbers, column_of, indptr, indices, data):
    """Merge the columns of all templates into sorted rows with counts.

    An empty `column_of` means that numbers are columns. Returns the number of entries.
    """
    block = np.empty((_BLOCK, len(sources.row)), np.int32)
    return _gather_blocks(tokens, sources, numbers, column_of, block, indptr, indices, data)


@lean_jit
def _read_block(tokens, sources, numbers, column_of, start, end, block):
    """Read the columns of some rows, one template at a time for locality."""
    mapped = len(column_of) > 0
    for m in range(len(sources.row)):
        i, field, position = sources.row[m], sources.field[m], sources.position[m]
        for r in range(start, end):
            if field >= 0:
                c = tokens.codes[field, tokens.places[r] + position]
                if c >= 0:
                    c = sources.tables[i, c]
            else:
                c = numbers[i, r]
            if c >= 0 and mapped:
                c = column_of[c]
            block[r - start, m] = c


@lean_jit
def _gather_blocks(tokens, sources, numbers, column_of, block, indptr, indices, data):
    n_templates, n_rows = len(sources.row), len(tokens.places)
    n = 0
    for start in range(0, n_rows, _BLOCK):
        end = min(start + _BLOCK, n_rows)
        _read_block(tokens, sources, numbers, column_of, start, end, block)
        for r in range(start, end):
            first, last = n, -1
            for m in range(n_templates):
                c = block[r - start, m]
                # Templates are in the order of their columns, so most columns are appended.
                if c > last:
                    indices[n], data[n] = c, 1
                    n += 1
                    last = c
                elif c >= 0:
                    n = _insert(c, first, n, indices, data)
            indptr[r + 1] = n
    return n


@lean_jit
def mark_used(codes, used):
    """Mark the codes that occur, except -1."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            if codes[i, j] >= 0:
                used[codes[i, j]] = True


@lean_jit
def count_columns(indices, counts):
    """Count the rows that each column occurs in."""
    for k in range(len(indices)):
        counts[indices[k]] += 1


@lean_jit
def keep_columns(column_of, indptr, indices, data):
    """Renumber columns in place, dropping those without a number; return the number of entries."""
    n, start = 0, 0
    for r in range(len(indptr) - 1):
        end = indptr[r + 1]
        for k in range(start, end):
            c = column_of[indices[k]]
            if c >= 0:
                indices[n], data[n] = c, data[k]
                n += 1
        start = end
        indptr[r + 1] = n
    return n
