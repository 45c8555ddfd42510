"""Batches of tokens in the layout of the template kernels: the values of macros, numbered."""

from collections import defaultdict
from copy import copy
from functools import lru_cache
from itertools import compress, count, repeat
from operator import is_
from typing import NamedTuple

import numpy as np

from skstruct.features.columns import TokenColumns
from skstruct.templates.numbering import Patterns, Pieces, Tokens, Values, hash_pieces, lay_out
from skstruct.templates.syntax import FunctionError, apply, compose, parse_template
from skstruct.utils.messages import DataError, position

_NOT_KEPT = np.int32(-2)
_NO_PIECES = Pieces(np.empty(0, np.uint64), np.empty(0, np.uint64))
# Values of a column whose results are remembered, or twice those in training if these are more.
_MOST_RESULTS = 1 << 16


class Plan(NamedTuple):
    """What the lines of a template say about every batch."""

    # For each column and `Macro.source` the first macro, and its line for messages.
    sources: dict  # of int to dict of tuple to (Macro, str)
    # Numbers of each `Macro.field`: first all sources, column by column, then absolute positions.
    fields: dict
    outside: list  # names of the values before a sequence, the nearest first, and after it
    margin: int  # farthest position relative to the current token
    kinds: tuple  # what `_patterns` returns, of tokens and then of transitions


@lru_cache(maxsize=128)
def plan_of(lines):
    templates = parse_template(lines)
    macros = [(macro, template.where) for template in templates for macro in template.macros]
    sources = defaultdict(dict)
    for macro, where in macros:
        sources[macro.column].setdefault(macro.source, (macro, where))
    fields = [(source, None) for found in sources.values() for source in found]
    fields += [macro.field for macro, _ in macros]
    fields = dict(zip(dict.fromkeys(fields), count()))
    reach = max((abs(macro.offset) for macro, _ in macros), default=0)
    return Plan(
        sources,
        fields,
        [f"_B{sign}{i}" for sign in "-+" for i in range(1, reach + 1)],
        max((abs(macro.position) for macro, _ in macros), default=0),
        tuple(_patterns(*_group(templates, kind), fields) for kind in (False, True)),
    )


def _patterns(groups, templates, fields):
    """Texts of groups, their templates as kernels take them, and how many macros these have."""
    n_macros = [len(template.macros) for template in templates]
    macros = [macro for template in templates for macro in template.macros]
    patterns = Patterns(
        np.cumsum(n_macros, dtype=np.int64),
        np.array([fields[macro.field] for macro in macros], np.int64),
        np.array([macro.position for macro in macros], np.int64),
        hash_pieces([literal for template in templates for literal in template.literals]),
        np.array([groups.index(template.literals) for template in templates], np.int64),
    )
    return groups, patterns, n_macros


def compose_all(plan, functions):
    """Functions of each macro, and their lines for messages, in two lists for each column."""
    return {
        column: (
            [compose(macro, functions, where) for macro, where in found.values()],
            [where for _, where in found.values()],
        )
        for column, found in plan.sources.items()
    }


class TemplateReader:
    """A batch in the layout of the kernels: codes of the macros' values, and the templates.

    The templates make features of tokens; `for_transitions` returns a reader with the templates for
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
        Makers of further columns, which follow the tokens'. Each takes the distinct words
        (the first column), the position of each token's word among them and the offsets, and
        returns the same of the new column: distinct values and their positions.
    replace : dict of str to callable, default=None
        Makers of values by the names of functions. What they make stands in these tokens in place
        of the results of the function, which holds for all other tokens. They are called like those
        of `derive`, and before the functions.
    width : int, default=None
        Number of columns that tokens must have. None: as many as the template reads, or more.
    names : array-like of str, default=None
        Names that columns of data frames must have.
    """

    def __init__(
        self,
        X,
        lines,
        functions,
        vocabulary=None,
        *,
        derive=(),
        replace=None,
        width=None,
        names=None,
    ):
        self.lines = None if callable(lines) else lines
        self._width = width
        self._make_lines = lines
        self._derive = derive
        self._replace = replace or {}
        self._functions = functions
        self.vocabulary = vocabulary
        self._numbers = ValueNumbers(vocabulary)
        if self.lines is not None:
            self._set_lines(lines)
        columns = TokenColumns(X, self._wanted, names)
        self.n_columns, self.names = columns.n_columns, columns.names
        self.offsets = columns.offsets
        self.n_rows = int(columns.offsets[-1])
        if self.lines is None:
            # All sequences are empty, so that any number of columns will do.
            self._set_lines(lines(1))
        if self.n_columns is not None:
            for i, make in enumerate(derive, start=columns.n_columns):
                columns.values[i], columns.codes[i] = make(
                    columns.values[0], columns.codes[0], columns.offsets
                )
        words = columns.values.get(0, []), columns.codes.get(0, np.empty(0, np.int32))
        made = {name: make(*words, self.offsets) for name, make in self._replace.items()}
        self._read_fields(columns, made)
        self._set_kind(of_transitions=False)

    @property
    def n_values(self):
        """Number of values, fitted and new."""
        return sum(len(pieces.hashes) for pieces in self.hashes)

    def _set_lines(self, lines):
        self.lines = lines
        self._plan = plan_of(tuple(lines))
        compose = compose_all if self.vocabulary is None else self.vocabulary.compose_all
        self._composed = compose(self._plan, self._functions)

    @property
    def observes_transitions(self):
        """True if some lines of the template make features of transitions."""
        return len(self._plan.kinds[True][0]) > 0

    def for_transitions(self):
        """Return the same batch with the templates of features of transitions."""
        other = copy(self)
        other._set_kind(of_transitions=True)
        return other

    def _set_kind(self, of_transitions):
        self.of_transitions = of_transitions
        self.literals, self.patterns, self._n_parts = self._plan.kinds[of_transitions]

    @property
    def n_patterns(self):
        return len(self.patterns.groups)

    def most_parts(self, first, last):
        """Most values that one of some patterns combines."""
        return max(self._n_parts[first:last], default=0)

    def _wanted(self, n_columns):
        if self._width not in (None, n_columns):
            raise ValueError(
                f"Tokens have {n_columns} column(s), but the vectorizer was fitted on "
                f"{self._width}."
            )
        if self.lines is None:
            self._set_lines(self._make_lines(n_columns))
        for column, found in self._plan.sources.items():
            if column >= n_columns + len(self._derive):
                _, where = next(iter(found.values()))
                raise ValueError(
                    f"{where}: there is no column {column}; tokens have {n_columns} column(s), "
                    "counted from 0."
                )
        own = {column for column in self._plan.sources if column < n_columns}
        return own | {0} if self._derive or self._replace else own

    def _read_fields(self, columns, made):
        plan, numbers, margin = self._plan, self._numbers, self._plan.margin
        outside = np.array(numbers.of(plan.outside), np.int32).reshape(2, -1)
        places, first = np.zeros(self.n_rows, np.int64), 0
        n_places = self.n_rows + 2 * margin * (len(self.offsets) - 1)
        fields = np.empty((len(plan.fields), n_places), np.int32)
        for column, macros in self._composed.items():
            codes = self._codes_of(columns, column, *macros)
            of_column = fields[first : first + len(codes)]
            values = columns.codes.get(column, np.empty(0, np.int32))
            lay_out(codes, values, outside, margin, self.offsets, places, of_column)
            first += len(codes)
        for name, (values, codes) in made.items():
            for number in self._fields_of(name):
                fields[number, places] = np.array(numbers.of(values), np.int32)[codes]
        for (source, at), number in plan.fields.items():
            if at is not None:
                codes = fields[plan.fields[source, None], places]
                fields[number] = -1
                fields[number, places] = _at_absolute(codes, self.offsets, at, *outside)
        self.tokens = Tokens(fields, places)
        self.hashes = numbers.hashes()

    def _fields_of(self, name):
        """Numbers of the fields whose macro takes a function of the word."""
        for found in self._plan.sources.values():
            for source, (macro, where) in found.items():
                if name not in macro.functions:
                    continue
                if source != (0, (name,), "x", False, None):
                    raise ValueError(
                        f"{where}: {name!r} takes the word, and its results as they are: write "
                        f"%x[{macro.offset},0|{name}]."
                    )
                yield self._plan.fields[source, None]

    def _codes_of(self, columns, column, steps, lines):
        """Codes of the results of the macros of a column, for its distinct values."""
        values = columns.values.get(column, [])
        try:
            return self._numbers.of_macros(column, values, steps, lines)
        except FunctionError as error:
            message, value = error.args
            row = np.argmax(columns.codes[column] == values.index(value))
            raise DataError.of(message, *position(self.offsets, row)) from error.__cause__

    def leave_out_repeats(self, share, always):
        """Leave out lines that have the values of an earlier line at nearly all tokens.

        Parameters
        ----------
        share : float
            Of the tokens where one of the two has a value.
        always : collection of str
            Lines that stay in any case.
        """
        templates, number = parse_template(self.lines), self._plan.fields
        grouped = [t for kind in (False, True) for t in _group(templates, kind)[1]]
        fields = dict.fromkeys(number[m.field] for t in grouped for m in t.macros)
        first = _first_alike(self.tokens, fields, share)
        seen, kept = set(), []
        for line, template in zip(self.lines, templates, strict=True):
            key = tuple((first[number[m.field]], m.position) for m in template.macros)
            stays = line in always or template.observes_transitions
            if stays or not (key and key in seen):
                kept.append(line)
                seen.add(key)
        if len(kept) < len(self.lines):
            self._set_lines(kept)
            codes = self.tokens.codes[[number[field] for field in self._plan.fields]]
            self.tokens = self.tokens._replace(codes=codes)
            self._set_kind(of_transitions=False)

    @property
    def values(self):
        """The values, in the order of their numbers."""
        return self._numbers.values

    def sort_values(self):
        order, rank = self._numbers.sort()
        for field in self.tokens.codes:
            field[:] = renumber(rank, field)
        hashes, powers = self.hashes.new
        self.hashes = self.hashes._replace(new=Pieces(hashes[order], powers[order]))

    def memory(self, kept):
        """Results of functions; kept ones are renumbered."""
        number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        return self._numbers.memory(np.where(kept, number, _NOT_KEPT))

    def codes_at(self, pattern, rows):
        """Codes of a pattern's values at some rows, of shape (n_rows, n_parts)."""
        places = self.tokens.places[rows]
        return self.tokens.codes[pattern.fields, places[:, None] + pattern.positions]


def _first_alike(tokens, fields, share):
    """For each field, the first one with the same value at a share of the tokens."""
    first = {}
    for field in fields:
        later, first[field] = tokens.codes[field][tokens.places], field
        for other in [other for other, found in first.items() if other == found != field]:
            earlier = tokens.codes[other][tokens.places]
            n = np.count_nonzero((earlier >= 0) | (later >= 0))
            if np.count_nonzero((earlier == later) & (later >= 0)) >= share * n > 0:
                first[field] = other
                break
    return first


def group_literals(templates, *, of_transitions=False):
    """Distinct texts around macros: templates with the same text form a group."""
    return _group(templates, of_transitions)[0]


def _group(templates, of_transitions):
    """Distinct texts around macros, and the templates, group by group."""
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


class Vocabulary:
    """Learnt values, and the results of functions so far.

    Parameters
    ----------
    values : list of str
        In the order of their numbers.
    memory : dict
        Results of functions for the training data, from `ValueNumbers.memory`.
    """

    def __init__(self, values, memory):
        self.values = values
        self.number = {None: -1, **dict(zip(values, count()))}
        self.hashes = hash_pieces(values)
        self._results = {
            column: (steps, dict(zip(texts, map(bytes, codes.T.copy()), strict=True)))
            for column, (steps, texts, codes) in memory.items()
        }
        longest = max((len(results) for _, results in self._results.values()), default=0)
        self._most_results = max(_MOST_RESULTS, 2 * longest)
        self._composed = None, [], [], None

    def compose_all(self, plan, functions):
        """What `compose_all` returns; composed again only where the user has replaced functions."""
        # Looked up once: another thread may replace it.
        of_plan, names, used, composed = self._composed
        same = of_plan is plan and names == list(functions)
        if not same or not all(map(is_, used, functions.values())):
            composed = compose_all(plan, functions)
            self._composed = plan, list(functions), list(functions.values()), composed
        return composed

    def codes_of(self, values):
        """Return the numbers of strings, -1 for unknown ones."""
        return np.fromiter(map(self.number.get, values, repeat(-1)), np.int32, len(values))

    def results(self, column, steps):
        """Results of functions for the values of a column that are remembered; may be added to.

        Parameters
        ----------
        column : int
        steps : list of list of callable
            Functions of each macro.

        Returns
        -------
        results : dict of str to bytes
            The numbers of the results of all macros for a value, as int32: -1 for None, -2 for
            results that were not learnt.
        """
        known, results = self._results.get(column, ((), {}))
        # The user may have replaced functions by others with the same name.
        same = known is steps
        if not same and len(known) == len(steps):
            pairs = zip(known, steps, strict=True)
            same = all(len(a) == len(b) and all(map(is_, a, b)) for a, b in pairs)
        if not same or len(results) > self._most_results:
            results = {}
        if known is not steps or not results:
            self._results[column] = steps, results
        return results


class ValueNumbers:
    """Numbers of values, assigned in the order of first occurrence.

    Parameters
    ----------
    vocabulary : Vocabulary or None
        Values with fixed numbers.
    """

    def __init__(self, vocabulary=None):
        self._vocabulary = vocabulary
        self._known = {None: -1} if vocabulary is None else vocabulary.number
        self._n_known = len(self._known) - 1
        self._new = defaultdict(count(self._n_known).__next__)
        self._memory = {}

    @property
    def values(self):
        """All values, in the order of their numbers."""
        known = [] if self._vocabulary is None else self._vocabulary.values
        return known + list(self._new)

    def hashes(self):
        """Return the hashes and powers of all values, `Values`."""
        learnt = _NO_PIECES if self._vocabulary is None else self._vocabulary.hashes
        return Values(learnt, hash_pieces(list(self._new)) if self._new else _NO_PIECES)

    def of(self, values):
        """Return the numbers of strings, -1 for None."""
        find, new = self._known.get, self._new
        return [new[v] if (code := find(v)) is None else code for v in values]

    def of_macros(self, column, values, steps, lines):
        """Return the numbers of the results of all macros of a column.

        Parameters
        ----------
        column : int
        values : list of str
            Distinct values of the column.
        steps : list of list of callable
            Functions of each macro.
        lines : list of str
            Its line of the template, for messages.

        Returns
        -------
        codes : ndarray of shape (n_macros, n_values), dtype int32
        """
        if not any(steps):
            return np.array([self.of(values)], np.int32)
        results = {} if self._vocabulary is None else self._vocabulary.results(column, steps)
        nothing = _NOT_KEPT.tobytes()
        found = b"".join(map(results.get, values, repeat(len(steps) * nothing)))
        codes = np.frombuffer(found, np.int32).reshape(-1, len(steps)).T.copy()
        if self._vocabulary is not None and nothing not in found:
            return codes
        is_fresh = codes == _NOT_KEPT
        for row, fresh, functions, where in zip(codes, is_fresh, steps, lines, strict=True):
            found = apply(functions, list(compress(values, fresh.tolist())), where)
            row[fresh] = self.of(found)
        if self._vocabulary is None:
            self._memory[column] = steps, values, codes
            return codes
        new = [i for i, value in enumerate(values) if value not in results]
        if new:
            kept = codes[:, new].T.copy()
            kept[kept >= self._n_known] = _NOT_KEPT
            results.update(zip([values[i] for i in new], map(bytes, kept), strict=True))
        return codes

    def sort(self):
        """Renumber the values in sorted order.

        Returns
        -------
        order : ndarray of shape (n_values,)
            Old numbers in the new order.
        rank : ndarray of shape (n_values,), dtype int32
            New numbers in the old order.
        """
        values = list(self._new)
        order = sorted(range(len(values)), key=values.__getitem__)
        self._new = dict(zip(map(values.__getitem__, order), count()))
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        self._memory = self.memory(rank)
        return np.array(order, np.int64), rank

    def memory(self, number):
        """Results of functions for the columns of the data.

        Parameters
        ----------
        number : ndarray of shape (n_values,), dtype int32
            New numbers of the values; -2 for those that are not kept.

        Returns
        -------
        memory : dict
            By column the functions of its macros, its distinct values, and the numbers of the
            results, ndarray of shape (n_macros, n_values).
        """
        return {
            column: (steps, values, renumber(number, codes))
            for column, (steps, values, codes) in self._memory.items()
        }


def renumber(number, codes):
    """Map codes to new numbers; -1 stays -1."""
    # The last entry serves code -1.
    return np.append(number, np.int32(-1))[codes]
