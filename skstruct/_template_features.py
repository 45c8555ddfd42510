"""The arrays behind the template vectorisers: tokens as codes, combinations, names, matrices."""

from __future__ import annotations

from copy import copy
from itertools import accumulate, pairwise, repeat

import numpy as np
import scipy.sparse as sp

from skstruct._template_syntax import compose, default_lines, parse_template
from skstruct._token_columns import TokenColumns
from skstruct.kernels.templates import (
    Features,
    Pattern,
    Pieces,
    Tokens,
    add_margins,
    count_columns,
    fill_slots,
    gather_rows,
    hash_strings,
    keep_columns,
    number_template,
)

__all__ = [
    "TemplateReader",
    "check_templates",
    "empty_slots",
    "expand_group",
    "expand_names",
    "find_namesakes",
    "gather",
    "group_literals",
    "keep_frequent",
    "number_all",
    "order_features",
]

# Fixed for good: the columns of the hashing vectoriser follow from it.
_BYTE_HASHES = np.random.Generator(np.random.PCG64(2000)).integers(
    1, 2**64, 256, dtype=np.uint64, endpoint=False
)


class TemplateReader:
    """A batch as the kernels read it: codes of what each macro needs, and the templates.

    These are the ones for features of tokens, or, in what `for_transitions` returns, for features
    of transitions.
    """

    def __init__(self, X, lines, functions):
        self.lines = lines
        self._functions = functions
        self.of_transitions = False
        self.patterns, self.literals, self._templates = [], [], []
        self._transitions = [], [], []
        if lines is not None:
            self._set_templates(lines)
        columns = TokenColumns(X, self._wanted)
        self.n_columns = columns.n_columns
        self.offsets = columns.offsets
        self.n_rows = int(columns.offsets[-1])
        if self.n_columns is None:
            # Sequences without a token: any template makes nothing of them.
            self._templates = []
            self._transitions = [], self._transitions[1], []
        self._read_fields(columns)

    def _set_templates(self, lines):
        self.lines = lines
        templates = check_templates(parse_template(lines), self._functions)
        self.literals = group_literals(templates)
        self._templates = _by_group((t for t in templates if t.makes_features), self.literals)
        literals = group_literals(templates, of_transitions=True)
        observers = _by_group((t for t in templates if t.observes_transitions), literals)
        self._transitions = [], literals, observers

    @property
    def observes_transitions(self):
        """Whether some lines of the template make features of transitions."""
        return len(self._transitions[1]) > 0

    def for_transitions(self):
        """The same batch with the templates of the features of transitions."""
        other = copy(self)
        other.of_transitions = True
        other.patterns, other.literals, other._templates = self._transitions
        return other

    def _wanted(self, n_columns):
        if self.lines is None:
            self._set_templates(default_lines(n_columns))
        templates = self._templates + self._transitions[2]
        for template in templates:
            for macro in template.macros:
                if macro.column >= n_columns:
                    raise ValueError(
                        f"{template.where}: there is no column {macro.column}; tokens have "
                        f"{n_columns} column(s), counted from 0."
                    )
        return {macro.column for template in templates for macro in template.macros}

    def _read_fields(self, columns):
        templates = self._templates + self._transitions[2]
        macros = [(m, t.where) for t in templates for m in t.macros]
        reach = max((abs(m.offset) for m, _ in macros), default=0)
        margin = max((abs(m.offset) for m, _ in macros if not m.absolute), default=0)
        before = [columns.number[f"_B-{i}"] for i in range(1, reach + 1)]
        after = [columns.number[f"_B+{i}"] for i in range(1, reach + 1)]
        before, after = np.array(before, np.int32), np.array(after, np.int32)
        sources, fields = {}, {}
        for macro, where in macros:
            if macro.source not in sources:
                function = compose(macro, self._functions, where)
                codes = columns.codes[macro.column]
                sources[macro.source] = (
                    codes if function is None else columns.derive(macro.column, function)
                )
            key = (macro.source, macro.offset if macro.absolute else None)
            if key not in fields:
                fields[key] = sources[macro.source]
                if macro.absolute:
                    fields[key] = _at_absolute(
                        fields[key], self.offsets, macro.offset, before, after
                    )
        n_places = self.n_rows + 2 * margin * (len(self.offsets) - 1)
        codes = np.empty((len(fields), n_places), np.int32)
        for row, field in zip(codes, fields.values(), strict=True):
            add_margins(field, self.offsets, before, after, margin, row)
        self.tokens = Tokens(codes, self.offsets, margin)
        self.values = columns.values
        self.pieces = _pieces(self.values)
        numbers = {key: number for number, key in enumerate(fields)}
        _, literals, observers = self._transitions
        self.patterns = [self._pattern(t, numbers, self.literals) for t in self._templates]
        patterns = [self._pattern(t, numbers, literals) for t in observers]
        self._transitions = patterns, literals, observers

    def _pattern(self, template, numbers, literals):
        keys = [(m.source, m.offset if m.absolute else None) for m in template.macros]
        return Pattern(
            np.array([numbers[key] for key in keys], np.int64),
            np.array([0 if m.absolute else m.offset for m in template.macros], np.int64),
            _pieces(template.literals),
            literals.index(template.literals),
        )

    def sort_values(self):
        """Number the values in their own order from now on; returns them."""
        order = sorted(range(len(self.values)), key=self.values.__getitem__)
        # One more, because no value is number -1.
        rank = np.full(len(order) + 1, -1, np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        codes = self.tokens.codes
        np.take(rank, codes, out=codes, mode="wrap")
        self.values = [self.values[i] for i in order]
        self.pieces = Pieces(self.pieces.hashes[order], self.pieces.powers[order])
        return self.values

    def codes_at(self, pattern, rows):
        """Codes of the values that a pattern takes at some rows, (n_rows, n_parts)."""
        sequence = np.searchsorted(self.offsets, rows, side="right") - 1
        places = rows + self.tokens.margin * (2 * sequence + 1)
        return self.tokens.codes[pattern.fields, places[:, None] + pattern.positions]


def check_templates(templates, functions):
    """Refuse what cannot be done, before any data are read."""
    for template in templates:
        for macro in template.macros:
            compose(macro, functions, template.where)
    return templates


def group_literals(templates, *, of_transitions=False):
    """Text around the macros, once for templates that have it in common."""
    kind = "observes_transitions" if of_transitions else "makes_features"
    return list(dict.fromkeys(t.literals for t in templates if getattr(t, kind)))


def _by_group(templates, literals):
    # Templates of a group side by side: their features are numbered together.
    return sorted(templates, key=lambda template: literals.index(template.literals))


def _pieces(strings):
    """Hashes and powers of strings."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = np.fromiter(accumulate(map(len, encoded)), np.int64, len(encoded))
    pieces = Pieces(np.empty(len(encoded), np.uint64), np.empty(len(encoded), np.uint64))
    hash_strings(np.frombuffer(b"".join(encoded), np.uint8), ends, _BYTE_HASHES, *pieces)
    return pieces


def _at_absolute(codes, offsets, position, before, after):
    """For every token, the value at a position of its sequence that counts from an end."""
    first, last = offsets[:-1], offsets[1:]
    if position > 0:
        place = first + position - 1
        outside = np.take(after, place - last, mode="clip")
        inside = place < last
    else:
        place = last + position
        outside = np.take(before, first - place - 1, mode="clip")
        inside = place >= first
    chosen = outside.copy()
    chosen[inside] = codes[place[inside]]
    return np.repeat(chosen, last - first)


def empty_slots(n_features):
    """Slots for a table that gets at most half full."""
    return np.full(1 << max(2 * n_features, 8).bit_length(), -1, np.int64)


def number_all(reader):
    """Number all combinations; returns the features, numbers of each row, and doubtful names."""
    width = max(len(pattern.fields) for pattern in reader.patterns)
    features = Features(
        np.empty(0, np.uint64),
        np.empty((0, width), np.int32),
        np.empty(0, np.int32),
        np.empty(0, np.int64),
    )
    doubtful = np.zeros(0, bool)
    numbers = np.empty((len(reader.patterns), reader.n_rows), np.int32)
    n_features = 0
    for pattern, row in zip(reader.patterns, numbers, strict=True):
        n_new = min(reader.n_rows, len(reader.values) ** len(pattern.fields))
        features = _grown(features, n_features, n_features + n_new, width)
        doubtful = np.resize(doubtful, len(features.hashes))
        doubtful[n_features:] = False
        n_features = number_template(
            reader.tokens,
            pattern,
            reader.pieces,
            len(reader.values),
            features,
            n_features,
            row,
            doubtful,
        )
    features = Features(*(a[:n_features] for a in features[:3]), features.slots)
    return features, numbers, np.flatnonzero(doubtful[:n_features])


def _grown(features, n_features, capacity, width):
    """Features with room for `capacity` of them."""
    if len(features.hashes) < capacity:
        # Room that is not needed is not touched, and then takes no memory.
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
    """Numbers of the features by group, and within a group by values."""
    parts = []
    for group, (a, b) in enumerate(pairwise(_group_edges(features.groups, len(literals)))):
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


def _group_edges(groups, n_groups):
    return np.searchsorted(groups, np.arange(n_groups + 1))


def find_namesakes(features, literals, values, doubtful, order):
    """For each feature the first one, in the order given, that has the same name."""
    same = np.arange(len(features.groups))
    doubtful = order[np.isin(order, doubtful)]
    values = np.array(values, dtype=object)
    names = expand_names(literals, values, features.groups[doubtful], features.codes[doubtful])
    first = {}
    for name, feature in zip(names, doubtful.tolist(), strict=True):
        same[feature] = first.setdefault(name, feature)
    return same


def expand_names(literals, values, groups, codes):
    """Names of features of several groups."""
    names = np.empty(len(groups), dtype=object)
    for group in np.unique(groups).tolist():
        members = np.flatnonzero(groups == group)
        names[members] = expand_group(literals[group], values, codes[members])
    return names.tolist()


def expand_group(literals, values, codes):
    """Names of features of one group."""
    pieces = [repeat(literals[0], len(codes))]
    for j, literal in enumerate(literals[1:]):
        pieces += [values[codes[:, j]].tolist(), repeat(literal)]
    return list(map("".join, zip(*pieces, strict=False)))


def gather(reader, numbers, column_of, n_columns, dtype):
    """CSR matrix of the columns that all templates have at each row.

    No transition leads to the first token of a sequence.
    """
    if reader.of_transitions:
        offsets = reader.offsets
        numbers[:, offsets[:-1][np.diff(offsets) > 0]] = -1
    size = numbers.size
    indices, data = np.empty(size, np.int32), np.empty(size, dtype)
    indptr = np.zeros(numbers.shape[1] + 1, np.int32 if size < 2**31 else np.int64)
    n = gather_rows(numbers, column_of, indptr, indices, data)
    return _as_matrix(data[:n], indices[:n], indptr, n_columns)


def _as_matrix(data, indices, indptr, n_columns):
    matrix = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, n_columns))
    matrix.has_canonical_format = True
    return matrix


def keep_frequent(matrix, min_freq, *, sure):
    """The columns that occur in enough rows, and their numbers; `sure` that all occur at all."""
    if min_freq == 1 and sure:
        return matrix, np.arange(matrix.shape[1])
    counts = np.zeros(matrix.shape[1], np.int64)
    count_columns(matrix.indices, counts)
    kept = np.flatnonzero(counts >= min_freq)
    column_of = np.full(matrix.shape[1], -1, np.int32)
    column_of[kept] = np.arange(len(kept), dtype=np.int32)
    n = keep_columns(column_of, matrix.indptr, matrix.indices, matrix.data)
    return _as_matrix(matrix.data[:n], matrix.indices[:n], matrix.indptr, len(kept)), kept
