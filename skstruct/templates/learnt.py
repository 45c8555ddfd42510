"""The features that a template vectoriser has learnt: numbered, looked up, named."""

from __future__ import annotations

from itertools import compress

import numpy as np

from skstruct.kernels.templates.combine import (
    NOT_FOUND_YET,
    Features,
    fill_slots,
    find_template,
    find_values,
)
from skstruct.kernels.templates.gather import mark_used
from skstruct.templates.numbering import (
    empty_slots,
    expand_group,
    expand_names,
    gather,
    keep_frequent,
    merge_equal_names,
    number_all,
    order_features,
    run_for_patterns,
)
from skstruct.templates.reader import group_literals
from skstruct.templates.syntax import parse_template
from skstruct.templates.values import Memory, Vocabulary, renumber
from skstruct.utils.persistence import Persistent, check_array_shape

__all__ = ["LearntFeatures", "learn_features"]


def learn_features(reader, min_freq, dtype):
    """Number the features of a batch whose values are sorted.

    Returns
    -------
    features : Features
        All of them.
    chosen : ndarray of shape (n_columns,)
        Numbers of those that have a column, in the order of the columns.
    matrix : csr_matrix of shape (n_rows, n_columns)
    """
    features, sources, numbers, doubtful = number_all(reader)
    order = order_features(features, reader.literals, len(reader.values))
    column_of = np.empty(len(order), np.int32)
    if len(doubtful):
        same = merge_equal_names(features, reader.literals, reader.values, doubtful, order)
        order = order[same[order] == order]
    column_of[order] = np.arange(len(order), dtype=np.int32)
    if len(doubtful):
        column_of = column_of[same]
    matrix = gather(reader, numbers, len(order), dtype, column_of=column_of, sources=sources)
    matrix, kept = keep_frequent(matrix, min_freq, sure=not reader.of_transitions)
    return features, order[kept], matrix


class LearntFeatures(Persistent):
    """Features that have a column each, and the values that they are made of."""

    _of_transitions = False

    def _keep(self, reader, features, chosen):
        """Keep the chosen features, in this order."""
        codes, values = features.codes[chosen], reader.values
        used = np.zeros(len(values), bool)
        mark_used(codes, used)
        self.template_ = reader.lines
        self.n_features_ = len(chosen)
        self._values = list(compress(values, used.tolist()))
        self._codes = renumber(np.cumsum(used, dtype=np.int32) - np.int32(1), codes)
        self._groups = features.groups[chosen]
        self._hashes = features.hashes[chosen]
        self._of_transitions = reader.of_transitions
        self._memory = reader.memory(used)
        self.__dict__.pop("_lookup", None)

    def _find(self, reader, dtype, n_jobs):
        """CSR matrix of these features in a batch."""
        vocabulary, features, tables = self._tables()
        shared = reader.vocabulary is vocabulary
        if shared:
            known = np.full(len(reader.pieces.hashes), -1, np.int32)
            known[: len(self._values)] = np.arange(len(self._values), dtype=np.int32)
        else:
            known = vocabulary.codes_of(reader.values)
        numbers = np.empty((len(reader.patterns), reader.n_rows), np.int32)

        def find(i):
            pattern, row = reader.patterns[i], numbers[i]
            given = reader.tokens, pattern, reader.pieces, known, features
            if shared and len(pattern.fields) == 1:
                return find_values(*given, tables[pattern.group], row)
            return find_template(*given, row)

        for i, n_doubtful in enumerate(run_for_patterns(find, reader, n_jobs)):
            if n_doubtful:
                self._settle(reader, reader.patterns[i], numbers[i])
        return gather(reader, numbers, self.n_features_, dtype)

    def _tables(self):
        """Vocabulary, table of features and tables of values, rebuilt rather than pickled."""
        if not hasattr(self, "_lookup"):
            vocabulary = Vocabulary(self._values, self.__dict__.pop("_memory", Memory({}, {})))
            features = Features(
                self._hashes, self._codes, self._groups, empty_slots(self.n_features_)
            )
            fill_slots(features, self.n_features_)
            self._lookup = vocabulary, features, self._features_of_values()
        return self._lookup

    def _features_of_values(self):
        """For each group of templates of one macro, the feature of each value."""
        tables = {}
        for group, literals in enumerate(self._literals()):
            if len(literals) == 2:
                members = np.flatnonzero(self._groups == group)
                tables[group] = np.full(len(self._values), NOT_FOUND_YET, np.int32)
                tables[group][self._codes[members, 0]] = members
        return tables

    def _literals(self):
        templates = parse_template(self.template_)
        return group_literals(templates, of_transitions=self._of_transitions)

    def _settle(self, reader, pattern, row):
        """Compare names where a combination only has the hash of a feature."""
        rows = np.flatnonzero(row <= -2)
        combinations, which = np.unique(reader.codes_at(pattern, rows), axis=0, return_inverse=True)
        candidates = np.flatnonzero(np.isin(self._hashes, self._hashes[np.unique(-2 - row[rows])]))
        columns = dict(zip(self._names(candidates), candidates.tolist(), strict=True))
        literals = reader.literals[pattern.group]
        names = expand_group(literals, np.array(reader.values, dtype=object), combinations)
        found = np.array([columns.get(name, -1) for name in names], np.int32)
        row[rows] = found[which.ravel()]

    def _names(self, columns):
        """Names of some columns, in any order."""
        literals = self._literals()
        values = np.array(self._values, dtype=object)
        return expand_names(literals, values, self._groups[columns], self._codes[columns])

    def _all_names(self):
        names = np.empty(self.n_features_, dtype=object)
        names[:] = self._names(np.arange(self.n_features_))
        return names

    # Made anew when it is asked for.
    _derived_state = ("_lookup", "_memory")

    def _check_state(self):
        if not hasattr(self, "_codes"):
            return
        literals = self._literals()
        width, n = max(map(len, literals)) - 1, self.n_features_
        check_array_shape(self._codes, (n, width), "the codes of the features", kinds="i")
        check_array_shape(self._groups, (n,), "the groups of the features", kinds="i")
        check_array_shape(self._hashes, (n,), "the hashes of the features", kinds="u")
        known = n == 0 or (
            (width == 0 or -1 <= self._codes.min() <= self._codes.max() < len(self._values))
            and 0 <= self._groups.min() <= self._groups.max() < len(literals)
        )
        if not known:
            raise ValueError("a feature is made of what there is not.")
