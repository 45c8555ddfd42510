"""Features of templates: combinations of values, their numbers, order, names and rows."""

from itertools import pairwise, repeat

import numpy as np
import scipy.sparse as sp

from skstruct.kernels.templates.combine import Features, fill_slots, number_template, number_values
from skstruct.kernels.templates.gather import Sources, count_columns, gather_rows, keep_columns
from skstruct.utils.parallel import run_tasks

# For fewer tokens, starting threads takes longer than the work itself.
_ROWS_FOR_THREADS = 5000


def empty_slots(n_features):
    """Slots of a hash table that gets at most half full."""
    return np.full(1 << max(2 * n_features, 8).bit_length(), -1, np.int64)


def number_all(reader):
    """Number all combinations of values in a batch.

    Returns
    -------
    features : Features
    sources : Sources
        Location of the numbers of each template.
    numbers : ndarray of shape (n_templates_with_rows, n_rows)
        Numbers at each row, for the templates without a table.
    doubtful : ndarray
        Features that share their hash with another one.
    """
    width = max(len(pattern.fields) for pattern in reader.patterns)
    features = Features(
        np.empty(0, np.uint64),
        np.empty((0, width), np.int32),
        np.empty(0, np.int32),
        np.empty(0, np.int64),
    )
    doubtful = np.zeros(0, bool)
    n_values, n_features = len(reader.pieces.hashes), 0
    known = np.arange(n_values, dtype=np.int32)
    # A table of values is smaller than a number for each row. It cannot serve for transitions,
    # which first tokens do not have whatever their values.
    tabular = [len(p.fields) == 1 and not reader.of_transitions for p in reader.patterns]
    sources = _sources(reader, tabular, n_values)
    numbers = np.empty((len(tabular) - sum(tabular), reader.n_rows), np.int32)
    for i, (pattern, row) in enumerate(zip(reader.patterns, sources.row, strict=True)):
        n_new = min(reader.n_rows, n_values ** len(pattern.fields))
        features = _grown(features, n_features, n_features + n_new, width)
        doubtful = np.resize(doubtful, len(features.hashes))
        doubtful[n_features:] = False
        number = number_values if tabular[i] else number_template
        n_features = number(
            reader.tokens,
            pattern,
            reader.pieces,
            known,
            features,
            n_features,
            sources.tables[row] if tabular[i] else numbers[row],
            doubtful,
        )
    features = Features(*(a[:n_features] for a in features[:3]), features.slots)
    return features, sources, numbers, np.flatnonzero(doubtful[:n_features])


def _sources(reader, tabular, n_values):
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


def _grown(features, n_features, capacity, width):
    """Enlarge the arrays and slots to `capacity` features."""
    if len(features.hashes) < capacity:
        # Pages that are never touched take no memory.
        size = max(capacity, 2 * len(features.hashes))
        grown = Features(
            np.empty(size, np.uint64),
            np.empty((size, width), np.int32),
            np.empty(size, np.int32),
            features.slots,
        )
        for new, old in zip(grown[:3], features[:3], strict=True):
            new[:n_features] = old[:n_features]
        features = grown
    if len(features.slots) < 2 * capacity:
        features = features._replace(slots=empty_slots(capacity))
        fill_slots(features, n_features)
    return features


def order_features(features, literals, n_values):
    """Order features by group, and within a group by values."""
    parts = []
    edges = np.searchsorted(features.groups, np.arange(len(literals) + 1))
    for group, (a, b) in enumerate(pairwise(edges)):
        n_parts = len(literals[group]) - 1
        codes = features.codes[a:b, :n_parts]
        if n_values**n_parts < 2**63:
            key = np.zeros(b - a, np.int64)
            for j in range(n_parts):
                key = key * n_values + codes[:, j]
            parts.append(a + np.argsort(key))
        else:
            parts.append(a + np.lexsort(codes.T[::-1]))
    return np.concatenate(parts)


def merge_equal_names(features, literals, values, doubtful, order):
    """For each feature, the first one in the order given that has the same name."""
    same = np.arange(len(features.groups))
    doubtful = order[np.isin(order, doubtful)]
    values = np.array(values, dtype=object)
    names = expand_names(literals, values, features.groups[doubtful], features.codes[doubtful])
    first = {}
    for name, feature in zip(names, doubtful.tolist(), strict=True):
        same[feature] = first.setdefault(name, feature)
    return same


def expand_names(literals, values, groups, codes):
    """Make the names of features of several groups."""
    names = np.empty(len(groups), dtype=object)
    for group in np.unique(groups).tolist():
        members = np.flatnonzero(groups == group)
        names[members] = expand_group(literals[group], values, codes[members])
    return names.tolist()


def expand_group(literals, values, codes):
    """Make the names of features of one group."""
    pieces = [repeat(literals[0], len(codes))]
    for j, literal in enumerate(literals[1:]):
        pieces += [values[codes[:, j]].tolist(), repeat(literal)]
    return list(map("".join, zip(*pieces, strict=False)))


def run_for_patterns(function, reader, n_jobs):
    """Call a function with the number of each pattern, in threads if the batch is large."""
    enough = reader.n_rows >= _ROWS_FOR_THREADS
    return run_tasks(function, len(reader.patterns), n_jobs if enough else 1)


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
        sources = _sources(reader, [False] * len(numbers), 0)
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
