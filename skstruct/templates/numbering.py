"""Features of templates: combinations of values, their hashes, numbers, order and names.

The name of a feature is the template's text with values filled in. Its polynomial hash (Karp and
Rabin, 1987) is computed from the hashes of these pieces, without building the name:

    hash(a + b) = hash(a) * power(b) + hash(b),    power(b) = BASE ** len(b) mod 2 ** 64
"""

from itertools import pairwise, repeat
from typing import NamedTuple

import numpy as np

from skstruct.compiled.jit import inner_jit, inner_lean_jit, jit, lean_jit
from skstruct.compiled.lanes import prefetch
from skstruct.templates.gathering import locate_numbers
from skstruct.utils.parallel import run_tasks

# For fewer tokens, starting threads takes longer than the work itself.
_ROWS_FOR_THREADS = 5000
_BASE = np.uint64(0x9E3779B97F4A7C55)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_LOW = np.int64(0xFFFFFFFF)
_BLOCK = 512
NOT_FOUND_YET = np.int32(-(2**31))


class Pieces(NamedTuple):
    """Hashes of the strings that names consist of."""

    hashes: np.ndarray  # (n_pieces,) uint64
    powers: np.ndarray  # (n_pieces,) uint64


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


class Features(NamedTuple):
    """Combinations numbered so far, in a hash table; codes distinguish equal hashes."""

    hashes: np.ndarray  # (capacity,) uint64
    codes: np.ndarray  # (capacity, max_parts) int32; -1 after the last part
    groups: np.ndarray  # (capacity,) int32
    slots: np.ndarray  # (power of two,) int64: upper half of the hash and number; -1: free


class Recent(NamedTuple):
    """Direct-mapped cache of the combinations seen last."""

    keys: np.ndarray  # (power of two,) int64, packed codes; -1: free
    numbers: np.ndarray  # (power of two,) int32


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
    sources = locate_numbers(reader, tabular, n_values)
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


@lean_jit
def hash_strings(text, ends, byte_hashes, hashes, powers):
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
def _packed(tokens, pattern, n_values, place):
    """Pack the codes of a combination into one number; False if a value is missing."""
    key = np.int64(0)
    for j in range(len(pattern.fields)):
        c = tokens.codes[pattern.fields[j], place + pattern.positions[j]]
        if c < 0:
            return key, False
        key = key * n_values + c
    return key, True


@inner_jit
def _recent(pattern, n_values, n_rows):
    """Allocate a cache for the combinations seen last; empty if packed codes could overflow.

    Text is repetitive, so the cache saves most look-ups in the large table of features.
    """
    if np.float64(n_values) ** len(pattern.fields) >= 2.0**62:
        return Recent(np.empty(0, np.int64), np.empty(0, np.int32))
    size = 16
    while size < min(2 * n_rows, 1 << 15):
        size *= 2
    return Recent(np.full(size, -1, np.int64), np.empty(size, np.int32))


@inner_lean_jit
def _recent_slot(key, keys):
    mixed = np.uint64(key) * _BASE
    return np.int64(mixed >> np.uint64(40)) & (len(keys) - 1)


@inner_lean_jit
def _hash_at(tokens, pattern, values, place):
    h = pattern.literals.hashes[0]
    for j in range(len(pattern.fields)):
        c = tokens.codes[pattern.fields[j], place + pattern.positions[j]]
        h = h * values.powers[c] + values.hashes[c]
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
        if features.codes[feature, j] != known[c]:
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
    mixed = _mixed(h)
    tag = np.int64(mixed >> _HALF)
    slot = np.int64(mixed & np.uint64(mask))
    namesake = -1
    while features.slots[slot] >= 0:
        entry = features.slots[slot]
        # 31 bits of the tag: an entry must not be negative.
        if entry >> 32 == tag >> 1:
            feature = entry & _LOW
            if _same_codes(tokens, pattern, known, place, features, feature):
                return feature, slot, namesake
            if features.hashes[feature] == h:
                namesake = feature
        slot = (slot + 1) & mask
    return np.int64(-1), slot, namesake


@inner_lean_jit
def _entry(h, feature):
    return (np.int64(_mixed(h) >> _HALF) >> 1) << 32 | feature


@lean_jit
def fill_slots(features, n_features):
    """Insert the first features into the empty slots."""
    mask = np.uint64(len(features.slots) - 1)
    for feature in range(n_features):
        h = features.hashes[feature]
        slot = np.int64(_mixed(h) & mask)
        while features.slots[slot] >= 0:
            slot = (slot + 1) & np.int64(mask)
        features.slots[slot] = _entry(h, feature)


@inner_lean_jit
def _enter(h, tokens, pattern, known, place, features, n_features, doubtful):
    """Look up a combination, or add it; return its number and the new number of features."""
    feature, slot, namesake = _probe(h, tokens, pattern, known, place, features)
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
        features.slots[slot] = _entry(h, feature)
        if namesake >= 0:
            doubtful[feature] = True
            doubtful[namesake] = True
    return feature, n_features


@lean_jit
def number_values(tokens, pattern, values, known, features, n_features, table, doubtful):
    """Number the values of a template with one macro, and add new ones to the features.

    `table` receives the number of each value, and keeps -1 for values that do not occur. See
    `number_template` for the other parameters and the result.
    """
    codes, position = tokens.codes[pattern.fields[0]], pattern.positions[0]
    for r in range(len(tokens.places)):
        place = tokens.places[r]
        c = codes[place + position]
        if c >= 0 and table[c] < 0:
            h = _hash_at(tokens, pattern, values, place)
            table[c], n_features = _enter(
                h, tokens, pattern, known, place, features, n_features, doubtful
            )
    return n_features


@jit
def find_values(tokens, pattern, values, known, features, table, numbers):
    """Number the features of a template with one macro, from a table of its values.

    `table` has the features of the first values, or NOT_FOUND_YET for values not looked up yet.
    """
    fresh = np.full(len(known) - len(table), NOT_FOUND_YET, np.int32)
    return _find_rows_of_values(tokens, pattern, values, known, features, table, fresh, numbers)


@inner_lean_jit
def _find_rows_of_values(tokens, pattern, values, known, features, table, fresh, numbers):
    n_doubtful, n_known = 0, len(table)
    codes, position = tokens.codes[pattern.fields[0]], pattern.positions[0]
    for r in range(len(numbers)):
        place = tokens.places[r]
        c = codes[place + position]
        found = np.int32(-1)
        if c >= 0:
            found = table[c] if c < n_known else fresh[c - n_known]
            if found == NOT_FOUND_YET:
                h = _hash_at(tokens, pattern, values, place)
                feature, _, namesake = _probe(h, tokens, pattern, known, place, features)
                found = np.int32(-2 - namesake if feature < 0 and namesake >= 0 else feature)
                if c >= n_known:
                    fresh[c - n_known] = found
        numbers[r] = found
        n_doubtful += found <= -2
    return n_doubtful


@inner_lean_jit
def _prefetch_codes(features, hashes, n):
    """Prefetch the codes of the features that combinations probably are."""
    slots, width = features.slots, features.codes.shape[1]
    for i in range(n):
        entry = slots[np.int64(_mixed(hashes[i]) & np.uint64(len(slots) - 1))]
        if entry >= 0:
            prefetch(features.codes, (entry & _LOW) * width)
            prefetch(features.groups, entry & _LOW)


@inner_lean_jit
def _prepare_block(tokens, pattern, values, first, last, features, recent, numbers, pending):
    """Number the combinations seen lately; hash the others and prefetch what looks them up.

    Returns the number of pending rows; ``pending`` receives their row numbers, hashes and keys.
    """
    n, slots = 0, features.slots
    rows, hashes, keys = pending
    for r in range(first, last):
        place = tokens.places[r]
        key, present = _packed(tokens, pattern, len(values.hashes), place)
        if not present:
            numbers[r] = -1
            continue
        if len(recent.keys):
            i = _recent_slot(key, recent.keys)
            if recent.keys[i] == key:
                numbers[r] = recent.numbers[i]
                continue
        h = _hash_at(tokens, pattern, values, place)
        rows[n], hashes[n], keys[n] = r, h, key
        prefetch(slots, np.int64(_mixed(h) & np.uint64(len(slots) - 1)))
        n += 1
    _prefetch_codes(features, hashes, n)
    return n


@inner_jit
def _pending():
    return np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.int64)


@inner_lean_jit
def _note(recent, key, number):
    if len(recent.keys):
        i = _recent_slot(key, recent.keys)
        recent.keys[i], recent.numbers[i] = key, number


@jit
def number_template(tokens, pattern, values, known, features, n_features, numbers, doubtful):
    """Number the combinations of all rows, and add new ones to the features.

    There must be capacity for one new feature per row. Features that share their hash with another
    one are marked in `doubtful`. Returns the new number of features.
    """
    recent = _recent(pattern, len(known), len(numbers))
    return _number_rows(
        tokens, pattern, values, known, features, n_features, numbers, doubtful, recent, _pending()
    )


@inner_lean_jit
def _number_rows(
    tokens, pattern, values, known, features, n_features, numbers, doubtful, recent, pending
):
    rows, hashes, keys = pending
    for start in range(0, len(numbers), _BLOCK):
        end = min(start + _BLOCK, len(numbers))
        n = _prepare_block(tokens, pattern, values, start, end, features, recent, numbers, pending)
        for i in range(n):
            place = tokens.places[rows[i]]
            numbers[rows[i]], n_features = _enter(
                hashes[i], tokens, pattern, known, place, features, n_features, doubtful
            )
            _note(recent, keys[i], numbers[rows[i]])
    return n_features


@jit
def find_template(tokens, pattern, values, known, features, numbers):
    """Find the combinations of all rows among the features.

    `known` has the fitted code of each value, or -1. Rows that are not found get -1. Where only the
    name could tell, they get ``-2 - n``, where ``n`` is the feature with the same hash; the number
    of such rows is returned.
    """
    recent = _recent(pattern, len(known), len(numbers))
    return _find_rows(tokens, pattern, values, known, features, numbers, recent, _pending())


@inner_lean_jit
def _find_rows(tokens, pattern, values, known, features, numbers, recent, pending):
    n_doubtful = 0
    rows, hashes, keys = pending
    for start in range(0, len(numbers), _BLOCK):
        end = min(start + _BLOCK, len(numbers))
        n = _prepare_block(tokens, pattern, values, start, end, features, recent, numbers, pending)
        for i in range(n):
            r = rows[i]
            feature, _, namesake = _probe(
                hashes[i], tokens, pattern, known, tokens.places[r], features
            )
            numbers[r] = -2 - namesake if feature < 0 and namesake >= 0 else feature
            _note(recent, keys[i], numbers[r])
        for r in range(start, end):
            n_doubtful += numbers[r] <= -2
    return n_doubtful


@lean_jit
def hash_template(tokens, pattern, values, n_columns, numbers):
    """Map the combination at each row to a column by its hash."""
    for r in range(len(numbers)):
        place = tokens.places[r]
        numbers[r] = -1
        if _packed(tokens, pattern, 0, place)[1]:
            h = _mixed(_hash_at(tokens, pattern, values, place))
            numbers[r] = np.int64((h >> _HALF) * np.uint64(n_columns) >> _HALF)
