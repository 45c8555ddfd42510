"""The features that a template vectoriser has learnt: numbered, looked up, named."""

from __future__ import annotations

from itertools import compress, repeat

import numpy as np

from skstruct._persistence import Persistent, check_array_shape
from skstruct._template_features import (
    empty_slots,
    expand_group,
    expand_names,
    find_namesakes,
    gather,
    group_literals,
    keep_frequent,
    number_all,
    order_features,
)
from skstruct._template_syntax import parse_template
from skstruct.kernels.templates import Features, fill_slots, find_template, mark_used

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
    features, numbers, doubtful = number_all(reader)
    order = order_features(features, reader.literals, len(reader.values))
    column_of = np.empty(len(order), np.int32)
    if len(doubtful):
        same = find_namesakes(features, reader.literals, reader.values, doubtful, order)
        order = order[same[order] == order]
    column_of[order] = np.arange(len(order), dtype=np.int32)
    if len(doubtful):
        column_of = column_of[same]
    matrix = gather(reader, numbers, column_of, len(order), dtype)
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
        if not used.all():
            values = list(compress(values, used.tolist()))
            # One more, for the -1 that stands for no value.
            codes = np.append(np.cumsum(used, dtype=np.int32) - np.int32(1), np.int32(-1))[codes]
        self.template_ = reader.lines
        self.n_features_ = len(chosen)
        self._values = values
        self._codes = codes
        self._groups = features.groups[chosen]
        self._hashes = features.hashes[chosen]
        self._of_transitions = reader.of_transitions
        self.__dict__.pop("_lookup", None)

    def _find(self, reader, dtype):
        """CSR matrix of these features in a batch."""
        code_of, features = self._tables()
        known = np.fromiter(
            map(code_of.get, reader.values, repeat(-1)), np.int32, len(reader.values)
        )
        numbers = np.empty((len(reader.patterns), reader.n_rows), np.int32)
        for pattern, row in zip(reader.patterns, numbers, strict=True):
            if find_template(reader.tokens, pattern, reader.pieces, known, features, row):
                self._settle(reader, pattern, row)
        return gather(reader, numbers, np.empty(0, np.int32), self.n_features_, dtype)

    def _tables(self):
        """Dict of values and table of features, rebuilt rather than pickled."""
        if not hasattr(self, "_lookup"):
            features = Features(
                self._hashes, self._codes, self._groups, empty_slots(self.n_features_)
            )
            fill_slots(features, self.n_features_)
            self._lookup = dict(zip(self._values, range(len(self._values)), strict=True)), features
        return self._lookup

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
        templates = parse_template(self.template_)
        literals = group_literals(templates, of_transitions=self._of_transitions)
        values = np.array(self._values, dtype=object)
        return expand_names(literals, values, self._groups[columns], self._codes[columns])

    def _all_names(self):
        names = np.empty(self.n_features_, dtype=object)
        names[:] = self._names(np.arange(self.n_features_))
        return names

    # Made anew when it is asked for.
    _derived_state = ("_lookup",)

    def _check_state(self):
        if not hasattr(self, "_codes"):
            return
        templates = parse_template(self.template_)
        literals = group_literals(templates, of_transitions=self._of_transitions)
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
