"""Rows of a matrix from the features of all templates."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from skstruct.compiled.jit import inner_lean_jit, jit, lean_jit

_BLOCK = 512


class Sources(NamedTuple):
    """Location of each template's feature numbers: in a table of values, or row by row."""

    field: np.ndarray  # (n_templates,) int64, of the values; -1: row by row
    position: np.ndarray  # (n_templates,) int64, relative to the current token
    row: np.ndarray  # (n_templates,) int64, of `tables` or of the numbers
    tables: np.ndarray  # (n_tables, n_values) int32; -1: no feature


def gather(reader, numbers, n_columns, dtype, *, column_of=None, sources=None):
    """Gather the columns of all templates at each row in a CSR matrix.

    Parameters
    ----------
    reader : TemplateReader
    numbers : ndarray of shape (n_templates, n_rows)
        Features, or -1. First tokens have no features of transitions.
    n_columns : int
    dtype : dtype
        Of the values.
    column_of : ndarray, default=None
        Column of each feature. By default, its number.
    sources : Sources, default=None
        Location of the numbers of each template. By default, the rows of `numbers`.

    Returns
    -------
    matrix : csr_matrix of shape (n_rows, n_columns)
    """
    if reader.of_transitions:
        offsets = reader.offsets
        numbers[:, offsets[:-1][np.diff(offsets) > 0]] = -1
    if sources is None:
        sources = locate_numbers(reader, [False] * len(numbers), 0)
    if column_of is None:
        column_of = np.empty(0, np.int32)
    size = len(sources.row) * reader.n_rows
    indices, data = np.empty(size, np.int32), np.empty(size, dtype)
    indptr = np.zeros(reader.n_rows + 1, np.int32 if size < 2**31 else np.int64)
    n = gather_rows(reader.tokens, sources, numbers, column_of, indptr, indices, data)
    return _as_matrix(data[:n], indices[:n], indptr, n_columns)


def _as_matrix(data, indices, indptr, n_columns):
    matrix = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_columns))
    matrix.has_canonical_format = True
    return matrix


def keep_frequent(matrix, min_freq, *, all_occur):
    """Columns that occur in at least `min_freq` rows, and their numbers; works in place.

    `all_occur` says that every column has an entry, so that ``min_freq=1`` needs no count.
    """
    if min_freq == 1 and all_occur:
        return matrix, np.arange(matrix.shape[1])
    counts = np.zeros(matrix.shape[1], np.int64)
    count_columns(matrix.indices, counts)
    kept = np.flatnonzero(counts >= min_freq)
    column_of = np.full(matrix.shape[1], -1, np.int32)
    column_of[kept] = np.arange(len(kept), dtype=np.int32)
    n = keep_columns(column_of, matrix.indptr, matrix.indices, matrix.data)
    return _as_matrix(matrix.data[:n], matrix.indices[:n], matrix.indptr, len(kept)), kept


def locate_numbers(reader, tabular, n_values):
    """Sources of templates, with empty tables where `tabular`."""
    row, n_rows = [], [0, 0]
    for has_table in tabular:
        row.append(n_rows[has_table])
        n_rows[has_table] += 1
    patterns = list(zip(reader.patterns, tabular, strict=True))
    return Sources(
        np.array([p.fields[0] if has_table else -1 for p, has_table in patterns], np.int64),
        np.array([p.positions[0] if has_table else 0 for p, has_table in patterns], np.int64),
        np.array(row, np.int64),
        np.full((sum(tabular), n_values), -1, np.int32),
    )


@inner_lean_jit
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


@inner_lean_jit
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
