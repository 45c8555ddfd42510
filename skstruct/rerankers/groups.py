"""Input of the rerankers: costs, oracles and baselines, group by group."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Number

import numpy as np

from skstruct.chain.scores import Rows, value_of
from skstruct.compiled.jit import jit
from skstruct.input.copies import copied
from skstruct.input.formats import Format
from skstruct.rerankers.losses import Tally
from skstruct.sequences import SequenceBatch
from skstruct.utils.messages import short_repr
from skstruct.utils.parallel import portions


@contextmanager
def errors_name_groups():
    """Context in which errors about sequences and tokens name groups and candidates."""
    try:
        yield
    except ValueError as error:
        raise ValueError(_WORDS.sub(_translate, str(error))) from None


# Whole words. Quoted ones are left alone: they come from the user's data.
_WORDS = re.compile(r"(?<!['\"])\b([Ss]equence|[Tt]oken)(s?)\b(?!['\"])( \d+)?")


def _translate(match):
    word, plural, number = match.group(1), match.group(2), match.group(3) or ""
    meant = {"s": "group", "t": "candidate"}[word[0].lower()]
    if word[0].isupper() or (meant == "group" and number):
        meant = meant.capitalize()
    return meant + plural + number


def learn_in_portions(learn, groups, order):
    """Visit the groups in an order, and handle interrupts in between.

    Parameters
    ----------
    learn : callable
        ``learn(order)`` visits groups, and returns the fields of a `Tally`.
    groups : Groups
        The training set.
    order : ndarray of int
        Numbers of the groups.

    Returns
    -------
    tally : Tally
        Sum of the tallies.
    """
    n_rows, nnz = len(groups.rows.indptr) - 1, len(groups.rows.indices)
    # Reading a feature's weight takes as long as some pairs of labels.
    work_per_row = 100.0 + 10.0 * nnz / n_rows
    n_candidates = np.diff(groups.offsets)[order]
    tallies = [learn(order[part]) for part in portions(n_candidates, work_per_row)]
    return Tally(*map(sum, zip(*tallies, strict=True)))


def split_groups(values, offsets, format):
    """Values of candidates, group by group: 2-D if X was, else an object array of arrays."""
    n_groups = len(offsets) - 1
    if format is Format.GRID:
        return values.reshape(n_groups, -1)
    result = np.empty(n_groups, dtype=object)
    for i, part in enumerate(np.split(values, offsets[1:-1])):
        result[i] = part
    return result


def split_column(batch, column):
    """Set a column to zero in a copy of a batch; return it, and the values of the column."""
    X = batch.X.copy()
    if isinstance(X, np.ndarray):
        values = X[:, column].astype(np.float64)
        X[:, column] = 0.0
    else:
        values = X[:, [column]].toarray().ravel().astype(np.float64)
        X.data[X.indices == column] = 0.0
        X.eliminate_zeros()
    return SequenceBatch(X, batch.offsets, feature_names=batch.feature_names), values


def refuse_single_candidates(n_candidates, weight):
    """Raise a ValueError if a group with a weight has a single candidate."""
    lone = np.flatnonzero((n_candidates == 1) & (weight > 0))
    if lone.size:
        raise ValueError(
            f"Group {lone[0]} has a single candidate, and nothing can be learnt from it. "
            f"Remove such groups from the training set ({lone.size} of {len(n_candidates)}), or "
            "give them the weight 0."
        )


def baseline_column(baseline, n_features, names):
    """Column of a baseline that is given by its number or name."""
    if isinstance(baseline, Integral):
        if baseline >= n_features:
            raise ValueError(
                f"baseline={baseline} is out of range: X has {n_features} features, and columns "
                "are numbered from 0."
            )
        return int(baseline)
    found = [] if names is None else np.flatnonzero(names == baseline)
    if len(found) == 0:
        raise ValueError(f"baseline={baseline!r} is not among the feature names of X.")
    return int(found[0])


def read_baseline_score(baseline_score, offsets):
    """Baseline scores of all candidates, (n_rows,); zeros if none are given."""
    if baseline_score is None:
        return np.zeros(offsets[-1])
    return _read_per_candidate(baseline_score, offsets, "baseline score", "baseline scores")


def read_costs(y, offsets):
    """Costs of all candidates, (n_rows,), and True if `y` has costs, False if oracles."""
    if y is None:
        raise ValueError("This reranker requires y to be passed, but the target y is None.")
    y = _by_position(y, "y")
    if len(y) != len(offsets) - 1:
        raise ValueError(f"X has {len(offsets) - 1} groups, but y has {len(y)} entries.")
    if not isinstance(y[0], (Number, np.generic)):
        return _read_per_candidate(y, offsets, "cost", "costs"), True
    costs = np.ones(offsets[-1])
    for i, oracle in enumerate(y):
        n_candidates = offsets[i + 1] - offsets[i]
        if not isinstance(oracle, Integral):
            raise ValueError(
                f"Group {i}: {short_repr(oracle)} is not a candidate number. For each group, y "
                f"must have the number of the oracle or an array of costs."
            )
        if not 0 <= oracle < n_candidates:
            raise ValueError(
                f"Group {i}: oracle {oracle} is out of range for {n_candidates} candidates, "
                "which are numbered from 0."
            )
        costs[offsets[i] + oracle] = 0.0
    return costs, False


def _by_position(values, name):
    """Make the values of groups indexable by position, also those of a pandas series."""
    if hasattr(values, "iloc"):
        return values.to_numpy()
    if isinstance(values, Iterator):
        return list(values)
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise ValueError(f"{name} must have an entry for each group; got {short_repr(values)}.")
    return copied(values)


def _read_per_candidate(values, offsets, name, names):
    """Finite numbers, one for each candidate, as an array of shape (n_rows,)."""
    values = _by_position(values, names)
    if len(values) != len(offsets) - 1:
        raise ValueError(
            f"X has {len(offsets) - 1} groups, but {names} are given for {len(values)}."
        )
    parts = []
    for i, part in enumerate(values):
        try:
            part = np.asarray(part, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"Group {i}: {names} must be numbers; got {short_repr(part)}."
            ) from None
        if part.shape != (offsets[i + 1] - offsets[i],):
            raise ValueError(
                f"Group {i} has {offsets[i + 1] - offsets[i]} candidates, "
                f"but its {names} have shape {part.shape}."
            )
        parts.append(part)
    values = np.concatenate(parts)
    check_finite(values, offsets, name, "it must be finite")
    return values


def check_finite(values, offsets, name, advice):
    """Raise a ValueError unless the numbers of all candidates, (n_rows,), are finite."""
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values))[0]
        group = np.searchsorted(offsets, bad, side="right") - 1
        candidate = bad - offsets[group]
        raise ValueError(
            f"Group {group}, candidate {candidate}: the {name} is {values[bad]}; {advice}."
        )


def without_shared(rows, offsets, n_features):
    """Rows without the features that have the same value in all candidates of a group.

    These cancel in every comparison and, as the derivatives of a loss sum to zero, in every
    gradient. Rounding would otherwise leave them tiny weights.
    """
    return Rows(*drop_shared(rows, offsets, n_features))


@jit
def drop_shared(rows, offsets, n_features):
    """Arrays of the rows `without_shared` features."""
    seen_in = np.full(n_features, -1, np.int64)
    n_same = np.zeros(n_features, np.int64)
    value = np.zeros(n_features)
    unit = rows.data.shape[0] == 0
    indptr = np.zeros(rows.indptr.shape[0], np.int64)
    indices = np.empty(rows.indices.shape[0], np.int32)
    data = np.empty(rows.data.shape[0])
    end = 0
    for i in range(offsets.shape[0] - 1):
        a, b = offsets[i], offsets[i + 1]
        for e in range(rows.indptr[a], rows.indptr[b]):
            j, x = rows.indices[e], value_of(rows.data, e)
            if seen_in[j] != i:
                seen_in[j], n_same[j], value[j] = i, 0, x
            n_same[j] += x == value[j]
        for t in range(a, b):
            for e in range(rows.indptr[t], rows.indptr[t + 1]):
                if n_same[rows.indices[e]] < b - a:
                    indices[end] = rows.indices[e]
                    if not unit:
                        data[end] = rows.data[e]
                    end += 1
            indptr[t + 1] = end
    return indptr, indices[:end].copy(), data[: 0 if unit else end].copy()
