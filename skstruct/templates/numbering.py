"""Features of templates: combinations of values, their hashes, numbers, order and names.

The name of a feature is the template's text with values filled in. Its polynomial hash (Karp and
Rabin, 1987) is computed from the hashes of these pieces, without building the name:

    hash(a + b) = hash(a) * power(b) + hash(b),    power(b) = BASE ** len(b) mod 2 ** 64
"""

from itertools import accumulate, pairwise, repeat
from typing import NamedTuple

import numpy as np

from skstruct.compiled.jit import inline_lean_jit, inner_lean_jit, lean_jit
from skstruct.compiled.lanes import prefetch
from skstruct.features.tokens import as_canonical
from skstruct.matrices import shared_ones
from skstruct.utils.parallel import run_tasks

# For fewer tokens, starting threads takes longer than the work itself.
_ROWS_FOR_THREADS = 5000
_BASE = np.uint64(0x9E3779B97F4A7C55)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_BLOCK = 512
NOT_FOUND_YET = np.int32(-(2**31))
# Never to be changed: the columns of the hashing vectoriser depend on it.
_BYTE_HASHES = np.random.Generator(np.random.PCG64(2000)).integers(
    1, 2**64, 256, dtype=np.uint64, endpoint=False
)


class Pieces(NamedTuple):
    """Hashes of the strings that names consist of."""

    hashes: np.ndarray  # (n_pieces,) uint64
    powers: np.ndarray  # (n_pieces,) uint64


class Values(NamedTuple):
    """Hashes of the values of macros, in the order of their codes."""

    learnt: Pieces  # those that a vectoriser knows
    new: Pieces


class Tokens(NamedTuple):
    """Codes of values, with codes of boundaries on both sides of every sequence."""

    codes: np.ndarray  # (n_fields, n_rows + 2 * margin * n_sequences) int32; -1: no value
    places: np.ndarray  # (n_rows,) int64, column of each token in the codes


class Pattern(NamedTuple):
    """A template: positions of values, and the text around them."""

    fields: np.ndarray  # (n_parts,) int64
    positions: np.ndarray  # (n_parts,) int64, relative to the current token
    literals: Pieces  # n_parts + 1 of them
    group: int  # the same for templates with the same text


class Patterns(NamedTuple):
    """All templates in one set of arrays; `pattern_at` returns one template."""

    ends: np.ndarray  # (n_templates,) int64, place after the last part of each
    fields: np.ndarray
    positions: np.ndarray
    literals: Pieces
    groups: np.ndarray  # (n_templates,) int64


class Features(NamedTuple):
    """Combinations numbered so far, in a hash table; codes distinguish equal hashes."""

    hashes: np.ndarray  # (capacity,) uint64
    codes: np.ndarray  # (capacity, max_parts) int32; -1 after the last part
    groups: np.ndarray  # (capacity,) int32
    slots: np.ndarray  # (power of two,) int32, numbers; -1: free


class Tables(NamedTuple):
    """Features by value, for groups with one macro."""

    rows: np.ndarray  # (n_groups,) int64, row of each group in the table; -1: none
    features: np.ndarray  # (n_tables, n_values) int32


class Workspace(NamedTuple):
    """Cache of recent combinations (direct-mapped), and the rows of a block that miss it."""

    keys: np.ndarray  # (power of two or 0,) int64, packed codes; -1: free
    numbers: np.ndarray  # (power of two,) int32
    rows: np.ndarray  # (_BLOCK,) int64
    hashes: np.ndarray  # (_BLOCK,) uint64
    row_keys: np.ndarray  # (_BLOCK,) int64


def empty_slots(n_features):
    """Slots of a hash table that gets at most half full."""
    return np.full(1 << max(2 * n_features, 8).bit_length(), -1, np.int32)


def workspace(n_parts, n_values, n_rows):
    """Make the workspace of `number_template`; no cache if packed codes could overflow.

    Text is repetitive, so the cache saves most look-ups in the large table of features: without it,
    numbering the features of CoNLL-2000 takes three times as long, and without prefetch one and a
    half times. A dict, or sorting, takes six or five times as long.
    """
    size = 1 << min(max(2 * n_rows - 1, 15).bit_length(), 15)
    if n_values**n_parts >= 2**62:
        size = 0
    return Workspace(
        np.empty(size, np.int64),
        np.empty(size, np.int32),
        np.empty(_BLOCK, np.int64),
        np.empty(_BLOCK, np.uint64),
        np.empty(_BLOCK, np.int64),
    )


# Copied into kernels, as no kernel may return arrays; called from Python, it runs in Python.
@inline_lean_jit(no_cpython_wrapper=True)
def pattern_at(patterns, i):
    start, end = patterns.ends[i - 1] if i else 0, patterns.ends[i]
    hashes, powers = patterns.literals
    # Each template has one text more than parts.
    return Pattern(
        patterns.fields[start:end],
        patterns.positions[start:end],
        Pieces(hashes[start + i : end + i + 1], powers[start + i : end + i + 1]),
        patterns.groups[i],
    )


def number_all(reader):
    """Number all combinations of values in a batch.

    Returns
    -------
    features : Features
    numbers : ndarray of shape (n_templates, n_rows), dtype int32
        Numbers at each row, -1 for no feature.
    """
    patterns = [pattern_at(reader.patterns, i) for i in range(reader.n_patterns)]
    width = max(len(pattern.fields) for pattern in patterns)
    features = Features(
        np.empty(0, np.uint64),
        np.empty((0, width), np.int32),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
    )
    n_values, n_features, known = reader.n_values, 0, np.empty(0, np.int32)
    numbers = np.empty((len(patterns), reader.n_rows), np.int32)
    for pattern, row in zip(patterns, numbers, strict=True):
        n_new = min(reader.n_rows, n_values ** len(pattern.fields))
        features = _grown(features, n_features, n_features + n_new)
        given = reader.tokens, pattern, reader.hashes, known, features, n_features
        work = workspace(len(pattern.fields), n_values, reader.n_rows)
        n_features = number_template(*given, work, row)
    return Features(*(a[:n_features] for a in features[:3]), features.slots), numbers


def _grown(features, n_features, capacity):
    """Enlarge the arrays and slots to `capacity` features."""
    if len(features.hashes) < capacity:
        # Pages that are never touched take no memory.
        size = max(capacity, 2 * len(features.hashes))
        grown = [np.empty((size, *old.shape[1:]), old.dtype) for old in features[:3]]
        for new, old in zip(grown, features, strict=False):
            new[:n_features] = old[:n_features]
        features = Features(*grown, features.slots)
    if len(features.slots) < 2 * capacity:
        features = features._replace(slots=empty_slots(capacity))
        fill_slots(features, n_features)
    return features


def gather(reader, numbers, n_columns, dtype, column_of=None):
    """Gather the columns of all templates at each row in a CSR matrix.

    The parameters are those of `gather_rows`, and the number of columns and the type of the values.

    Returns
    -------
    matrix : csr_matrix of shape (n_rows, n_columns)
    """
    counts, indices, indptr = gather_rows(reader, numbers, column_of)
    data = shared_ones(len(indices), dtype) if counts is None else counts.astype(dtype)
    return as_canonical(data, indices, indptr, n_columns)


def gather_rows(reader, numbers, column_of=None):
    """Gather the columns of all templates at each row.

    Parameters
    ----------
    reader : TemplateReader
    numbers : ndarray of shape (n_templates, n_rows)
        Features, or -1. First tokens have no features of transitions.
    column_of : ndarray, default=None
        Column of each feature. By default, its number.

    Returns
    -------
    counts, indices, indptr : ndarray
        Arrays of a CSR matrix; counts that are all one are None.
    """
    if reader.of_transitions:
        offsets = reader.offsets
        numbers[:, offsets[:-1][np.diff(offsets) > 0]] = -1
    column_of = np.empty(0, np.int32) if column_of is None else column_of
    indices = np.empty(numbers.size, np.int32)
    counts = np.empty(numbers.size, np.min_scalar_type(len(numbers)))
    indptr = np.zeros(reader.n_rows + 1, np.int64)
    block = np.empty((_BLOCK, len(numbers)), np.int32)
    n, repeats = merge_columns(numbers, column_of, block, indptr, indices, counts)
    return counts[:n] if repeats else None, indices[:n], indptr


@lean_jit
def merge_columns(numbers, column_of, block, indptr, indices, counts):
    """Merge the columns of all templates into sorted rows with counts.

    An empty `column_of` means that numbers are columns. Returns the number of entries, and whether
    one counts more than once.
    """
    n, repeats = 0, False
    for r in range(numbers.shape[1]):
        if r % _BLOCK == 0:
            _read_block(numbers, column_of, r, block)
        first = n
        for m in range(numbers.shape[0]):
            c, k = block[r % _BLOCK, m], n
            if c < 0:
                continue
            # Templates are in the order of their columns, so most columns are appended.
            while k > first and indices[k - 1] > c:
                k -= 1
            if k > first and indices[k - 1] == c:
                counts[k - 1] += 1
                repeats = True
                continue
            for j in range(n, k, -1):
                indices[j], counts[j] = indices[j - 1], counts[j - 1]
            indices[k], counts[k] = c, 1
            n += 1
        indptr[r + 1] = n
    return n, repeats


@inner_lean_jit
def _read_block(numbers, column_of, start, block):
    """Read the columns of some rows, one template at a time for locality."""
    mapped = len(column_of) > 0
    for m in range(numbers.shape[0]):
        for r in range(start, min(start + _BLOCK, numbers.shape[1])):
            c = numbers[m, r]
            block[r - start, m] = column_of[c] if mapped and c >= 0 else c


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


def merge_equal_names(features, literals, values, order):
    """For each feature, the first one in the order given that has the same name."""
    same = np.arange(len(features.groups))
    hashes = np.sort(features.hashes)
    repeated = hashes[1:][hashes[1:] == hashes[:-1]]
    doubtful = order[np.isin(features.hashes[order], repeated)] if len(repeated) else order[:0]
    values = np.array(values, dtype=object)
    names = expand_names(literals, values, features.groups[doubtful], features.codes[doubtful])
    first = {}
    for name, feature in zip(names, doubtful.tolist(), strict=True):
        same[feature] = first.setdefault(name, feature)
    return same


def expand_names(literals, values, groups, codes):
    """Make the names of features of several groups, an object array."""
    names = np.empty(len(groups), dtype=object)
    for group in np.unique(groups).tolist():
        members = np.flatnonzero(groups == group)
        names[members] = expand_group(literals[group], values, codes[members])
    return names


def expand_group(literals, values, codes):
    """Make the names of features of one group."""
    pieces = [repeat(literals[0], len(codes))]
    for j, literal in enumerate(literals[1:]):
        pieces += [values[codes[:, j]].tolist(), repeat(literal)]
    return list(map("".join, zip(*pieces, strict=False)))


def run_for_patterns(function, reader, n_jobs):
    """Call ``function(first, last)`` for ranges of patterns, in threads if the batch is large."""
    if reader.n_rows < _ROWS_FOR_THREADS:
        function(0, reader.n_patterns)
    else:
        run_tasks(lambda i: function(i, i + 1), reader.n_patterns, n_jobs)


def hash_pieces(strings):
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = np.fromiter(accumulate(map(len, encoded)), np.int64, len(encoded))
    pieces = Pieces(np.empty(len(encoded), np.uint64), np.empty(len(encoded), np.uint64))
    _hash_strings(np.frombuffer(b"".join(encoded), np.uint8), ends, _BYTE_HASHES, *pieces)
    return pieces


@lean_jit
def _hash_strings(text, ends, byte_hashes, hashes, powers):
    """Hash strings that are given as concatenated bytes."""
    start = 0
    for i in range(len(ends)):
        h, power = np.uint64(0), np.uint64(1)
        for k in range(start, ends[i]):
            h = h * _BASE + byte_hashes[text[k]]
            power *= _BASE
        hashes[i], powers[i] = h, power
        start = ends[i]


@lean_jit
def lay_out(codes, column, outside, margin, offsets, places, fields):
    """Write the codes of a column's values for all tokens, and of boundaries around the sequences.

    Parameters
    ----------
    codes : ndarray of shape (n_macros, n_values)
        Of the distinct values of the column.
    column : ndarray of shape (n_rows,)
        Position of each token's value among them.
    outside : ndarray of shape (2, reach)
        Codes of boundaries, the nearest first, before and after sequences.
    margin : int
        Boundaries on each side of a sequence.
    offsets : ndarray of shape (n_sequences + 1,)
        Token at which each sequence starts.
    places, fields : ndarray of shape (n_rows,) and (n_macros, n_rows + 2 * margin * n_sequences)
        As of `Tokens`. Written.
    """
    n_sequences = len(offsets) - 1
    for i in range(n_sequences):
        for r in range(offsets[i], offsets[i + 1]):
            places[r] = r + margin * (2 * i + 1)
    for m in range(len(codes)):
        row, code_of = fields[m], codes[m]
        for i in range(n_sequences):
            start = offsets[i] + margin * (2 * i + 1)
            end = start + offsets[i + 1] - offsets[i]
            for k in range(margin):
                row[start - 1 - k], row[end + k] = outside[0, k], outside[1, k]
            for r in range(offsets[i], offsets[i + 1]):
                row[places[r]] = code_of[column[r]]


@lean_jit
def _packed(tokens, pattern, n_values, place):
    """Pack the codes of a combination into one number; False if a value is missing."""
    key = np.int64(0)
    for j in range(len(pattern.fields)):
        c = tokens.codes[pattern.fields[j], place + pattern.positions[j]]
        if c < 0:
            return key, False
        key = key * n_values + c
    return key, True


@inner_lean_jit
def _recent_slot(key, keys):
    mixed = np.uint64(key) * _BASE
    return np.int64(mixed >> np.uint64(40)) & (len(keys) - 1)


@inner_lean_jit
def _hash_at(tokens, pattern, values, place):
    h, n_learnt = pattern.literals.hashes[0], len(values.learnt.hashes)
    for j in range(len(pattern.fields)):
        c = tokens.codes[pattern.fields[j], place + pattern.positions[j]]
        if c < n_learnt:
            h = h * values.learnt.powers[c] + values.learnt.hashes[c]
        else:
            h = h * values.new.powers[c - n_learnt] + values.new.hashes[c - n_learnt]
        h = h * pattern.literals.powers[j + 1] + pattern.literals.hashes[j + 1]
    return h


@inner_lean_jit
def _mixed(h):
    # The low bits of a polynomial hash depend on few bits of the text.
    h = (h ^ (h >> _HALF)) * _SPREAD
    h = (h ^ (h >> _HALF)) * _SPREAD
    return h ^ (h >> _HALF)


@inner_lean_jit
def _same_codes(tokens, pattern, known, place, features, feature):
    if features.groups[feature] != pattern.group:
        return False
    for j in range(len(pattern.fields)):
        c = tokens.codes[pattern.fields[j], place + pattern.positions[j]]
        if features.codes[feature, j] != (known[c] if len(known) else c):
            return False
    return True


@inner_lean_jit
def _probe(h, tokens, pattern, known, place, features):
    """Look up a combination by its hash.

    Returns
    -------
    feature : int
        Its number, or -1.
    slot : int
        Where it is in the table, or the free slot for it.
    namesake : int
        A feature with the same hash and other codes, or -1. Only the names could tell whether it
        is the same feature.
    """
    mask = len(features.slots) - 1
    slot = np.int64(_mixed(h) & np.uint64(mask))
    namesake = -1
    while features.slots[slot] >= 0:
        feature = np.int64(features.slots[slot])
        if _same_codes(tokens, pattern, known, place, features, feature):
            return feature, slot, namesake
        if features.hashes[feature] == h:
            namesake = feature
        slot = (slot + 1) & mask
    return np.int64(-1), slot, namesake


@lean_jit
def fill_slots(features, n_features):
    """Insert the first features into the empty slots."""
    mask = np.uint64(len(features.slots) - 1)
    for feature in range(n_features):
        h = features.hashes[feature]
        slot = np.int64(_mixed(h) & mask)
        while features.slots[slot] >= 0:
            slot = (slot + 1) & np.int64(mask)
        features.slots[slot] = feature


@inner_lean_jit
def _number(h, tokens, pattern, known, place, features, n_features):
    """Look up a combination, and add it if it is new; return its number and the number of features.

    See `number_template` for the numbers of what is not found where nothing is added.
    """
    feature, slot, namesake = _probe(h, tokens, pattern, known, place, features)
    if n_features is None:
        return (-2 - namesake if feature < 0 and namesake >= 0 else feature), n_features
    if feature < 0:
        feature = n_features
        n_features += 1
        features.hashes[feature] = h
        features.groups[feature] = pattern.group
        n_parts = len(pattern.fields)
        for j in range(n_parts):
            c = tokens.codes[pattern.fields[j], place + pattern.positions[j]]
            features.codes[feature, j] = c
        for j in range(n_parts, features.codes.shape[1]):
            features.codes[feature, j] = -1
        features.slots[slot] = feature
    return feature, n_features


@lean_jit
def find_templates(tokens, patterns, bounds, values, known, features, tables, work, fresh, numbers):
    """Look up the combinations of the templates from ``bounds[0]`` to ``bounds[1]``.

    See `number_template` for the numbers. `fresh` is workspace, with an entry for each value that
    the tables lack.
    """
    for i in range(bounds[0], bounds[1]):
        pattern, row = pattern_at(patterns, i), numbers[i]
        table = tables.rows[pattern.group]
        if table >= 0:
            of_values = tables.features[table]
            _find_values(tokens, pattern, values, known, features, of_values, fresh, row)
        else:
            number_template(tokens, pattern, values, known, features, None, work, row)


@inner_lean_jit
def _find_values(tokens, pattern, values, known, features, table, fresh, numbers):
    """Number the features of a template with one macro, from tables of its values.

    `table` has the features of the first values, and `fresh` gets the other features, found on
    the way.
    """
    n_known = len(table)
    for k in range(len(fresh)):
        fresh[k] = NOT_FOUND_YET
    codes, position = tokens.codes[pattern.fields[0]], pattern.positions[0]
    for r in range(len(numbers)):
        place = tokens.places[r]
        c = codes[place + position]
        found = np.int32(-1)
        if c >= 0:
            found = table[c] if c < n_known else fresh[c - n_known]
            if found == NOT_FOUND_YET:
                h = _hash_at(tokens, pattern, values, place)
                found = np.int32(_number(h, tokens, pattern, known, place, features, None)[0])
                if c >= n_known:
                    fresh[c - n_known] = found
        numbers[r] = found


@inner_lean_jit
def _prefetch_codes(features, hashes, n):
    """Prefetch the codes that the combinations will be compared with."""
    slots, width = features.slots, features.codes.shape[1]
    for i in range(n):
        feature = slots[np.int64(_mixed(hashes[i]) & np.uint64(len(slots) - 1))]
        if feature >= 0:
            prefetch(features.codes, np.int64(feature) * width)
            prefetch(features.groups, np.int64(feature))


@inner_lean_jit
def _prepare_block(tokens, pattern, values, first, last, features, work, numbers):
    """Number the combinations that the cache has; hash the others, and prefetch their places.

    Returns the number of the others, whose rows, hashes and keys are in the workspace.
    """
    n, slots = 0, features.slots
    n_values = len(values.learnt.hashes) + len(values.new.hashes)
    for r in range(first, last):
        place = tokens.places[r]
        key, present = _packed(tokens, pattern, n_values, place)
        if not present:
            numbers[r] = -1
            continue
        if len(work.keys):
            i = _recent_slot(key, work.keys)
            if work.keys[i] == key:
                numbers[r] = work.numbers[i]
                continue
        h = _hash_at(tokens, pattern, values, place)
        work.rows[n], work.hashes[n], work.row_keys[n] = r, h, key
        prefetch(slots, np.int64(_mixed(h) & np.uint64(len(slots) - 1)))
        n += 1
    _prefetch_codes(features, work.hashes, n)
    return n


@lean_jit
def number_template(tokens, pattern, values, known, features, n_features, work, numbers):
    """Number the combinations of all rows, and add new ones to the features.

    There must be capacity for one new feature per row. Returns the new number of features. If
    `n_features` is None, nothing is added: `known` has the fitted code of each value, or -1; it is
    empty if codes are fitted ones. Rows that are not found get -1. Where only the name could tell,
    they get ``-2 - n``, where ``n`` is the feature with the same hash.
    """
    for k in range(len(work.keys)):
        work.keys[k] = -1
    for start in range(0, len(numbers), _BLOCK):
        end = min(start + _BLOCK, len(numbers))
        n = _prepare_block(tokens, pattern, values, start, end, features, work, numbers)
        for i in range(n):
            r = work.rows[i]
            numbers[r], n_features = _number(
                work.hashes[i], tokens, pattern, known, tokens.places[r], features, n_features
            )
            if len(work.keys):
                k = _recent_slot(work.row_keys[i], work.keys)
                work.keys[k], work.numbers[k] = work.row_keys[i], numbers[r]
    return n_features


@lean_jit
def hash_templates(tokens, patterns, bounds, values, n_columns, numbers):
    """Map the combinations of the templates from ``bounds[0]`` to ``bounds[1]`` to columns."""
    for i in range(bounds[0], bounds[1]):
        pattern = pattern_at(patterns, i)
        for r in range(numbers.shape[1]):
            place = tokens.places[r]
            numbers[i, r] = -1
            if _packed(tokens, pattern, 0, place)[1]:
                h = _mixed(_hash_at(tokens, pattern, values, place))
                numbers[i, r] = np.int64((h >> _HALF) * np.uint64(n_columns) >> _HALF)
