"""Batches of tokens in the layout of the template kernels."""

from copy import copy
from itertools import accumulate

import numpy as np

from skstruct.features.columns import TokenColumns
from skstruct.templates.numbering import Pattern, Pieces, Tokens
from skstruct.templates.syntax import FunctionError, compose, parse_template
from skstruct.templates.values import ValueNumbers, hash_pieces, renumber
from skstruct.utils.messages import place


class TemplateReader:
    """A batch in the layout of the kernels: codes of the macros' values, and the templates.

    The templates are those of features of tokens; `for_transitions` returns a reader with those of
    features of transitions.

    Parameters
    ----------
    X : iterable of sequences of tokens
    lines : list of str or callable
        Lines of the template, or a function that makes them from the number of columns.
    functions : dict of str to callable
        The user's functions.
    vocabulary : Vocabulary, default=None
        Values with fixed numbers; new values are numbered after them.
    derive : sequence of callable, default=()
        Makers of further columns, which follow those of the tokens. Each takes the distinct words
        (the first column), the position of each token's word among them and the offsets, and
        returns the same of the new column: distinct values and their positions.
    """

    def __init__(self, X, lines, functions, vocabulary=None, *, derive=()):
        self.lines = None if callable(lines) else lines
        self._make_lines = lines
        self._derive = derive
        self._functions = functions
        self.vocabulary = vocabulary
        self._numbers = ValueNumbers(vocabulary)
        # Texts around macros, and templates: those of tokens, and those of transitions.
        self._templates = ([], []), ([], [])
        if self.lines is not None:
            self._set_templates(lines)
        columns = TokenColumns(X, self._wanted)
        self.n_columns = columns.n_columns
        self.offsets = columns.offsets
        self.n_rows = int(columns.offsets[-1])
        if self.n_columns is None:
            # All sequences are empty, so no template makes a feature.
            self._templates = [(literals, []) for literals, _ in self._templates]
        else:
            for i, make in enumerate(derive, start=columns.n_columns):
                columns.values[i], columns.codes[i] = make(
                    columns.values[0], columns.codes[0], columns.offsets
                )
        self._read_fields(columns)

    def _set_templates(self, lines):
        self.lines = lines
        templates = parse_checked(lines, self._functions)
        self._templates = [_group(templates, of_transitions) for of_transitions in (False, True)]

    @property
    def observes_transitions(self):
        """True if some lines of the template make features of transitions."""
        return len(self._templates[1][0]) > 0

    def for_transitions(self):
        """Return the same batch with the templates of features of transitions."""
        other = copy(self)
        other._set_patterns(of_transitions=True)
        return other

    def _wanted(self, n_columns):
        if self.lines is None:
            self._set_templates(self._make_lines(n_columns))
        templates = self._all_templates()
        for template in templates:
            for macro in template.macros:
                if macro.column >= n_columns + len(self._derive):
                    raise ValueError(
                        f"{template.where}: there is no column {macro.column}; tokens have "
                        f"{n_columns} column(s), counted from 0."
                    )
        wanted = {macro.column for template in templates for macro in template.macros}
        own = {column for column in wanted if column < n_columns}
        return own | {0} if self._derive else own

    def _read_fields(self, columns):
        macros = [(m, t.where) for t in self._all_templates() for m in t.macros]
        reach = max((abs(m.offset) for m, _ in macros), default=0)
        margin = max((abs(m.position) for m, _ in macros), default=0)
        numbers = self._numbers
        before = numbers.of([f"_B-{i}" for i in range(1, reach + 1)])
        after = numbers.of([f"_B+{i}" for i in range(1, reach + 1)])
        # Values of each macro, for the distinct values of its column and then for each token.
        made = {}
        for macro, where in macros:
            if macro.source not in made:
                steps = compose(macro, self._functions, where)
                values = columns.values[macro.column]
                try:
                    made[macro.source] = numbers.of_macro(macro, values, steps, where)
                except FunctionError as error:
                    message, value = error.args
                    row = np.argmax(columns.codes[macro.column] == values.index(value))
                    where = place(self.offsets, row)
                    raise ValueError(f"{where}: {message}") from error.__cause__
        keys = {macro.field: macro for macro, _ in macros}
        counts = np.diff(self.offsets)
        shifts = margin * (2 * np.arange(len(counts)) + 1)
        places, near = np.arange(self.n_rows) + np.repeat(shifts, counts), np.arange(margin)
        fields = np.empty((len(keys), self.n_rows + 2 * margin * len(counts)), np.int32)
        fields[:, (self.offsets[:-1] + shifts)[:, None] - 1 - near] = before[:margin]
        fields[:, (self.offsets[1:] + shifts)[:, None] + near] = after[:margin]
        for row, macro in zip(fields, keys.values(), strict=True):
            codes = made[macro.source][columns.codes[macro.column]]
            if macro.absolute:
                codes = _at_absolute(codes, self.offsets, macro.offset, before, after)
            row[places] = codes
        self.tokens = Tokens(fields, places)
        self.pieces = numbers.pieces()
        self._field_of = {key: number for number, key in enumerate(keys)}
        self._set_patterns(of_transitions=False)

    def _set_patterns(self, of_transitions):
        self.of_transitions = of_transitions
        self.literals, templates = self._templates[of_transitions]
        # At once: for a single short text, a call for each template would show.
        literals = hash_pieces([literal for t in templates for literal in t.literals])
        ends = accumulate(len(template.literals) for template in templates)
        self.patterns = [
            Pattern(
                np.array([self._field_of[macro.field] for macro in template.macros], np.int64),
                np.array([macro.position for macro in template.macros], np.int64),
                Pieces(*(part[end - len(template.literals) : end] for part in literals)),
                self.literals.index(template.literals),
            )
            for template, end in zip(templates, ends, strict=True)
        ]

    def _all_templates(self):
        return [template for _, templates in self._templates for template in templates]

    def leave_out_repeats(self, share, always):
        """Leave out lines whose values are those of an earlier line at nearly all tokens.

        Parameters
        ----------
        share : float
            Of the tokens where one of the two has a value.
        always : collection of str
            Lines that stay in any case.
        """
        first, seen, kept = _first_alike(self.tokens, share), set(), []
        for line, template in zip(self.lines, parse_template(self.lines), strict=True):
            key = tuple((first[self._field_of[m.field]], m.position) for m in template.macros)
            stays = line in always or template.observes_transitions
            if stays or not (key and key in seen):
                kept.append(line)
                seen.add(key)
        if len(kept) < len(self.lines):
            self._set_templates(kept)
            self._set_patterns(of_transitions=False)

    @property
    def values(self):
        """The values, in the order of their numbers."""
        return self._numbers.values

    def sort_values(self):
        """Renumber the values in sorted order."""
        order, rank = self._numbers.sort()
        for field in self.tokens.codes:
            field[:] = renumber(rank, field)
        self.pieces = Pieces(self.pieces.hashes[order], self.pieces.powers[order])

    def memory(self, kept):
        """Results of functions, renumbered for the values that are kept."""
        return self._numbers.memory(kept)

    def codes_at(self, pattern, rows):
        """Codes of a pattern's values at some rows, of shape (n_rows, n_parts)."""
        places = self.tokens.places[rows]
        return self.tokens.codes[pattern.fields, places[:, None] + pattern.positions]


def _first_alike(tokens, share):
    """For each field, the first one with the same value at a share of the tokens."""
    first = []
    for j, later in enumerate(tokens.codes):
        later, found = later[tokens.places], j
        for i in [i for i, field in enumerate(first) if i == field]:
            earlier = tokens.codes[i][tokens.places]
            n = np.count_nonzero((earlier >= 0) | (later >= 0))
            if np.count_nonzero((earlier == later) & (later >= 0)) >= share * n > 0:
                found = i
                break
        first.append(found)
    return first


def parse_checked(lines, functions):
    """Parse a template; raise an error for unknown functions, before any data are read."""
    templates = parse_template(lines)
    for template in templates:
        for macro in template.macros:
            compose(macro, functions, template.where)
    return templates


def group_literals(templates, *, of_transitions=False):
    """Distinct texts around macros: templates with the same text form a group."""
    return _group(templates, of_transitions)[0]


def _group(templates, of_transitions):
    """Distinct texts around macros, and the templates, those of a group side by side."""
    kind = "observes_transitions" if of_transitions else "makes_features"
    chosen = [template for template in templates if getattr(template, kind)]
    literals = list(dict.fromkeys(template.literals for template in chosen))
    # The features of a group are numbered together.
    return literals, sorted(chosen, key=lambda template: literals.index(template.literals))


def _at_absolute(codes, offsets, position, before, after):
    """Values at an absolute position of the sequence, repeated for each of its tokens."""
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
