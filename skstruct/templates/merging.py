"""Features that parts of the data have learnt, united."""

from __future__ import annotations

from itertools import count

import numpy as np

from skstruct import kernels
from skstruct.templates.learnt import LearntFeatures, select
from skstruct.templates.numbering import merge_equal_names
from skstruct.templates.reader import group_literals
from skstruct.templates.syntax import parse_template
from skstruct.templates.values import renumber

__all__ = ["merge_features"]


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
    same = _merge_names(features, lines, values)
    number_of = same[number_of]
    counts = np.bincount(number_of, np.concatenate(frequency), minlength=len(same))
    kept = np.flatnonzero((same == np.arange(len(same))) & (counts >= min_freq))
    column_of = np.full(len(same), -1, np.int64)
    column_of[kept] = np.arange(len(kept))
    chosen, _ = select(features, kept, values)
    ends = np.cumsum([part.n_features_ for part in parts])
    return LearntFeatures(lines, *chosen), np.split(column_of[number_of], ends[:-1])


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
    columns = groups, *codes.T
    order = np.lexsort(columns[::-1])
    is_new = np.zeros(len(order), bool)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= np.diff(column[order]) != 0
    number_of = np.empty(len(order), np.int64)
    number_of[order] = np.cumsum(is_new) - 1
    first = order[is_new]
    nothing = np.empty(0, np.int64)
    return kernels.Features(hashes[first], codes[first], groups[first], nothing), number_of


def _merge_names(features, lines, values):
    """For each combination, the first one with the same name."""
    order = np.argsort(features.hashes, kind="stable")
    is_shared = np.zeros(len(order), bool)
    repeated = np.diff(features.hashes[order]) == 0
    is_shared[1:] |= repeated
    is_shared[:-1] |= repeated
    literals = group_literals(parse_template(lines))
    numbers = np.arange(len(order))
    return merge_equal_names(features, literals, values, order[is_shared], numbers)
