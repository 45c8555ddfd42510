"""Learnt features of templates: learning, look-up, names, and union."""

from itertools import compress, count

import numpy as np

from skstruct.features.base import warn_of_unseen_values
from skstruct.features.tokens import LooseRows, keep_frequent
from skstruct.matrices import read_only
from skstruct.templates.numbering import (
    NOT_FOUND_YET,
    Features,
    Tables,
    empty_slots,
    expand_group,
    expand_names,
    fill_slots,
    find_templates,
    gather,
    gather_rows,
    hash_pieces,
    merge_equal_names,
    number_all,
    order_features,
    pattern_at,
    run_for_patterns,
    workspace,
)
from skstruct.templates.reader import Vocabulary, group_literals, renumber
from skstruct.templates.syntax import parse_template
from skstruct.utils.declared import Array, Choice, Count, Declaration, Strings
from skstruct.utils.persistence import Persistent


def learn_features(reader, min_freq, dtype):
    """Number the features of a batch, and keep the frequent ones.

    Parameters
    ----------
    reader : TemplateReader
        The batch, its values sorted.
    min_freq : int
        Least number of tokens that a feature must occur in.
    dtype : dtype
        Of the values of the matrix.

    Returns
    -------
    learnt : LearntFeatures
        Without features if none is frequent enough.
    matrix : csr_matrix of shape (n_rows, learnt.n_features_)
        The batch in these features.
    """
    features, numbers = number_all(reader)
    order = order_features(features, reader.literals, len(reader.values))
    same = merge_equal_names(features, reader.literals, reader.values, order)
    order = order[same[order] == order]
    column_of = np.empty(len(same), np.int32)
    column_of[order] = np.arange(len(order), dtype=np.int32)
    matrix = gather(reader, numbers, len(order), dtype, column_of[same])
    # Features of first tokens alone do not occur in transitions.
    if min_freq > 1 or reader.of_transitions:
        matrix, is_kept = keep_frequent(matrix, min_freq)
        order = order[is_kept]
    return _learnt(reader.lines, features, order, reader.values, reader), matrix


def _learnt(lines, features, chosen, values, reader=None):
    """`LearntFeatures` of some combinations in a new order, with only the values that they use.

    Parameters
    ----------
    lines : list of str
        Of the template.
    features : Features
        All combinations.
    chosen : ndarray of int
        Numbers of those to keep.
    values : list of str
        Values by code.
    reader : TemplateReader, default=None
        The training data. By default, no results of functions are remembered.
    """
    codes = features.codes[chosen]
    used = np.zeros(len(values), bool)
    used[codes[codes >= 0]] = True
    return LearntFeatures(
        lines,
        list(compress(values, used.tolist())),
        renumber(np.cumsum(used, dtype=np.int32) - np.int32(1), codes),
        features.groups[chosen],
        features.hashes[chosen],
        of_transitions=reader is not None and reader.of_transitions,
        memory=None if reader is None else reader.memory(used),
    )


class LearntFeatures(Persistent):
    """Learnt features, each with a column, and the values that they combine.

    Parameters
    ----------
    lines : list of str
        Of the template.
    values : list of str
        Distinct values of the macros.
    codes : ndarray of shape (n_features, n_macros), dtype int32
        Numbers of the values that a feature combines, -1 where its group has fewer macros.
    groups : ndarray of shape (n_features,), dtype int32
        Numbers of the features' groups: templates with the same text around their macros.
    hashes : ndarray of shape (n_features,), dtype uint64
        Hashes of the features' names.
    of_transitions : bool, default=False
        Features of transitions rather than of tokens.
    memory : dict, default=None
        Results of functions for the training data, see `ValueNumbers.memory`. By default, none.
    """

    _stored = {
        "template_": Strings(),
        "n_features_": Count(),
        "_of_transitions": Choice(False, True),
        "_values": Strings(distinct=True),
        "_groups": Array(np.int32, ("n_features_",), least=0, below="_n_groups"),
        "_codes": Array(np.int32, ("n_features_", "_width"), least=-1, below="_values"),
        "_hashes": Array(np.uint64, ("n_features_",)),
    }
    _complete = ("template_", "n_features_", "_values", "_groups", "_codes", "_hashes")
    # Look-up tables, built at the first use, and the memory that only serves to build them.
    _derived_state = ("_lookup", "_memory")

    def __init__(self, lines, values, codes, groups, hashes, *, of_transitions=False, memory=None):
        self.template_ = lines
        self.n_features_ = len(codes)
        self._values = values
        self._codes = codes
        self._groups = groups
        self._hashes = hashes
        self._of_transitions = of_transitions
        self._memory = memory

    @classmethod
    def from_names(cls, lines, names, *, of_transitions=False):
        """Make features from their names, in this order.

        Parameters
        ----------
        lines : list of str
            Of the template.
        names : list of str
        of_transitions : bool, default=False
            Features of transitions rather than of tokens.

        Returns
        -------
        features : LearntFeatures

        Raises
        ------
        ValueError
            If no line of the template makes a feature with one of the names.
        """
        groups = group_literals(parse_template(lines), of_transitions=of_transitions)
        width = max((len(literals) - 1 for literals in groups), default=0)
        number_of, codes = {}, np.full((len(names), width), -1, np.int32)
        group_of, group = np.empty(len(names), np.int32), 0
        for feature, name in enumerate(names):
            # In sorted names, the group of the name before is the most likely one.
            group, parts = _split_by_any(name, groups, group)
            group_of[feature] = group
            codes[feature, : len(parts)] = [number_of.setdefault(p, len(number_of)) for p in parts]
        # Features are found by the hash of their names and then compared by name. If a name can
        # be split in several ways, any of them will do.
        hashes = hash_pieces(names).hashes
        return cls(lines, list(number_of), codes, group_of, hashes, of_transitions=of_transitions)

    @property
    def vocabulary(self):
        """The values, for a `TemplateReader`."""
        return self._tables()[0]

    def find(self, reader, dtype, n_jobs):
        """Look the features up in a batch; return a CSR matrix."""
        return gather(reader, self._numbers_in(reader, n_jobs), self.n_features_, dtype)

    def find_few(self, reader, n_jobs):
        """Look the features up in a few sequences; return `LooseRows`."""
        counts, columns, ends = gather_rows(reader, self._numbers_in(reader, n_jobs))
        values = np.empty(0) if counts is None else counts.astype(np.float64)
        return LooseRows(ends, columns, values, reader.offsets)

    def _numbers_in(self, reader, n_jobs):
        """Numbers of the features of all patterns at each row, -1 for others."""
        vocabulary, features, tables = self._tables()
        # Values that were not learnt have larger numbers than all codes of features.
        known, hashes = np.empty(0, np.int32), reader.hashes
        if reader.vocabulary is not vocabulary:
            known = vocabulary.codes_of(reader.values)
            tables = tables._replace(rows=np.full_like(tables.rows, -1))
        numbers = np.empty((reader.n_patterns, reader.n_rows), np.int32)

        def find(first, last):
            work = workspace(reader.most_parts(first, last), reader.n_values, reader.n_rows)
            given = reader.tokens, reader.patterns, (first, last), hashes, known, features
            find_templates(
                *given, tables, work, np.empty(len(hashes.new.hashes), np.int32), numbers
            )

        run_for_patterns(find, reader, n_jobs)
        if numbers.min(initial=0) <= -2:
            for i in np.flatnonzero(numbers.min(axis=1) <= -2):
                self._compare_names(reader, pattern_at(reader.patterns, i), numbers[i])
        if not reader.of_transitions:
            warn_of_unseen_values(reader, numbers)
        return numbers

    def names(self, columns=None):
        """Make the names of some columns, in any order; by default of all.

        Parameters
        ----------
        columns : ndarray of int, default=None

        Returns
        -------
        names : ndarray of shape (n_names,), dtype object
        """
        columns = np.arange(self.n_features_) if columns is None else columns
        values = np.array(self._values, dtype=object)
        groups, codes = self._groups[columns], self._codes[columns]
        return expand_names(self._literals(), values, groups, codes)

    def _tables(self):
        """Vocabulary, hash table of features, and features by value of groups of one macro."""
        if not hasattr(self, "_lookup"):
            vocabulary = Vocabulary(self._values, self.__dict__.pop("_memory", None) or {})
            # Arrays of a stored model may be memory maps.
            learnt = map(read_only, (self._hashes, self._codes, self._groups))
            features = Features(*learnt, empty_slots(self.n_features_))
            fill_slots(features, self.n_features_)
            singles = [g for g, literals in enumerate(self._literals()) if len(literals) == 2]
            rows = np.full(self._n_groups, -1)
            rows[singles] = np.arange(len(singles))
            table = np.full((len(singles), len(self._values)), NOT_FOUND_YET, np.int32)
            for row, group in zip(table, singles, strict=True):
                members = np.flatnonzero(self._groups == group)
                row[self._codes[members, 0]] = members
            self._lookup = vocabulary, features, Tables(rows, table)
        return self._lookup

    def _literals(self):
        templates = parse_template(self.template_)
        return group_literals(templates, of_transitions=self._of_transitions)

    def _compare_names(self, reader, pattern, row):
        """Look up by name the combinations whose hash belongs to a feature of other values."""
        rows = np.flatnonzero(row <= -2)
        combinations, which = np.unique(reader.codes_at(pattern, rows), axis=0, return_inverse=True)
        candidates = np.flatnonzero(np.isin(self._hashes, self._hashes[np.unique(-2 - row[rows])]))
        columns = dict(zip(self.names(candidates), candidates.tolist(), strict=True))
        literals = reader.literals[pattern.group]
        names = expand_group(literals, np.array(reader.values, dtype=object), combinations)
        found = np.array([columns.get(name, -1) for name in names], np.int32)
        row[rows] = found[which.ravel()]

    # Sizes of the arrays.
    _n_groups = property(lambda learnt: len(learnt._literals()))
    _width = property(lambda learnt: max(map(len, learnt._literals())) - 1)

    def _check_state(self):
        n_macros = np.array([len(literals) - 1 for literals in self._literals()])
        has_value = np.arange(self._width) < n_macros[self._groups][:, None]
        if np.any((self._codes >= 0) != has_value):
            raise ValueError("a feature has more or fewer values than its template has macros.")


class StoredFeatures(Declaration):
    """State of `LearntFeatures`, so that a stored vectoriser names no class but its own.

    Parameters
    ----------
    of_transitions : bool, default=False
        Features of transitions rather than of tokens.
    """

    def __init__(self, *, of_transitions=False):
        self._of_transitions = of_transitions

    def write(self, value):
        return value.__getstate__()

    def read(self, value, what, size):
        """Features with a state."""
        features = LearntFeatures.__new__(LearntFeatures)
        features.__setstate__(value)
        if features._of_transitions != self._of_transitions:
            raise ValueError("features of tokens and of transitions are mixed up.")
        return features


def split_name(name, literals):
    """Split the name of a feature at the text around the macros of a template.

    Parameters
    ----------
    name : str
    literals : sequence of str
        One more than macros.

    Returns
    -------
    parts : list of str or None
        Values of the macros; None if the name does not fit.
    """
    if not name.startswith(literals[0]):
        return None
    place, parts = len(literals[0]), []
    for literal in literals[1:-1]:
        end = name.find(literal, place)
        if end < 0:
            return None
        parts.append(name[place:end])
        place = end + len(literal)
    if len(literals) == 1:
        return parts if place == len(name) else None
    end = len(name) - len(literals[-1])
    if end < place or not name.endswith(literals[-1]):
        return None
    return [*parts, name[place:end]]


def _split_by_any(name, groups, first):
    """Group whose templates make a name, and the values in it; tries the group `first` first."""
    for group in (first, *range(len(groups))) if groups else ():
        parts = split_name(name, groups[group])
        if parts is not None:
            return group, parts
    raise ValueError(f"the feature {name!r} comes from no line of the template")


def merge_features(parts, frequency, min_freq):
    """Unite the features of parts of the data.

    Parameters
    ----------
    parts : list of LearntFeatures
        Learnt from each part by the same template, with ``min_freq=1``.
    frequency : list of ndarray of shape (n_features,)
        Number of tokens of a part with each of its features.
    min_freq : int
        Least number of tokens of all parts that a feature must occur in.

    Returns
    -------
    learnt : LearntFeatures
        Those that all parts together would have learnt, without features if none is frequent
        enough.
    columns : list of ndarray of shape (n_features,)
        For each feature of each part its number among them, -1 for rare ones.
    """
    lines = parts[0].template_
    values = sorted(set().union(*(part._values for part in parts)))
    features, number_of = _number_all(parts, values)
    literals = group_literals(parse_template(lines))
    same = merge_equal_names(features, literals, values, np.arange(len(features.groups)))
    number_of = same[number_of]
    counts = np.bincount(number_of, np.concatenate(frequency), minlength=len(same))
    kept = np.flatnonzero((same == np.arange(len(same))) & (counts >= min_freq))
    column_of = np.full(len(same), -1, np.int64)
    column_of[kept] = np.arange(len(kept))
    ends = np.cumsum([part.n_features_ for part in parts])
    return _learnt(lines, features, kept, values), np.split(column_of[number_of], ends[:-1])


def _number_all(parts, values):
    """Number the combinations of all parts in the order of groups and values.

    Returns
    -------
    features : Features
        Each combination once.
    number_of : ndarray
        Number of each feature of each part, one part after the other.
    """
    number = dict(zip(values, count()))
    codes = np.concatenate(
        [
            renumber(np.array([number[value] for value in part._values], np.int32), part._codes)
            for part in parts
        ]
    )
    groups = np.concatenate([part._groups for part in parts])
    hashes = np.concatenate([part._hashes for part in parts])
    _, first, number_of = np.unique(
        np.column_stack([groups, codes]), axis=0, return_index=True, return_inverse=True
    )
    nothing = np.empty(0, np.int64)
    return Features(hashes[first], codes[first], groups[first], nothing), number_of.ravel()
