"""Hard constraints: allowed transitions, first and last labels, and labels that are known.

They are weights of minus infinity in the transition, start and end weights of a tagger, so decoders
need no code for them. Most learners need none either: impossible labellings have probability zero
and are never decoded, so their weights are never updated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.chain.ranges import decode_best
from skstruct.chain.scores import Rows
from skstruct.frames import refuse_table
from skstruct.input.scale import check_weights
from skstruct.input.schemes import (
    RUNS,
    SCHEMES,
    allowed_labels,
    belongs,
    letters_in,
    spelling_of,
)
from skstruct.matrices import read_only
from skstruct.utils.messages import DataError, given, place, position, short_repr

# The weights that may be minus infinity.
WEIGHTS = ("transition", "start", "end")
# Weights of a chain that `fit_intercept` stands for.
BIASES = ("intercept", "start", "end")
# Name of a constraint that is an array.
_OF_ARRAY = "the constraint"
# Most labels or places that a message lists.
_SHOWN = 5


class Constraint(NamedTuple):
    """Allowed transitions and ends, in the order of the classes."""

    transition: np.ndarray  # (n_classes, n_classes) bool: the column may follow the row
    start: np.ndarray  # (n_classes,) bool: a class may come first
    end: np.ndarray  # (n_classes,) bool: it may come last
    name: str  # for messages


def read_constraint(constraint, classes):
    """Read the parameter `constraint` of a tagger.

    Parameters
    ----------
    constraint : str, array-like of bool or None
        One of `SCHEMES`, or an array in which True allows the column to follow the row.
    classes : ndarray of shape (n_classes,)
        The labels.

    Returns
    -------
    possible : Constraint or None
        None if everything is allowed.

    Raises
    ------
    ValueError
        If a class does not belong to the scheme, or the array has a wrong shape or dtype.
    """
    if constraint is None or (isinstance(constraint, str) and constraint == RUNS):
        return None
    if isinstance(constraint, str):
        return _read_scheme(constraint, classes)
    refuse_table(constraint, "constraint")
    n_classes = len(classes)
    transition = np.asarray(constraint)
    if transition.dtype.kind != "b" or transition.shape != (n_classes, n_classes):
        raise ValueError(
            f"constraint is an array of shape {transition.shape} and type {transition.dtype}; for "
            f"the {n_classes} classes {short_repr(classes.tolist())} it must be a boolean array of "
            f"shape {(n_classes, n_classes)}."
        )
    anything = np.ones(n_classes, bool)
    return Constraint(transition, anything, anything, _OF_ARRAY)


def _read_scheme(scheme, classes):
    """Constraint of a scheme; a ValueError that lists the classes that are no labels of it."""
    name, classes = given("constraint", scheme), classes.tolist()
    wrong = [label for label in classes if not belongs(label, scheme)]
    if not wrong:
        return Constraint(*allowed_labels(classes, scheme), name)
    if not isinstance(wrong[0], str):
        raise ValueError(
            f"Class {wrong[0]!r} does not fit {name}, whose labels are strings: "
            "skstruct.datasets.labels_from_ids replaces numbers by names."
        )
    if spelling := spelling_of(classes):
        raise ValueError(f"Class {wrong[0]!r} does not fit {name}. {spelling}")
    others = [s for s in SCHEMES if s != RUNS and all(belongs(label, s) for label in classes)]
    remedy = (
        f"All are labels of {given('constraint', others[0])}: pass it, or"
        if others
        else "Correct them, or"
    )
    raise ValueError(
        f"Class {wrong[0]!r} does not fit {name}, whose labels are O, and the letters "
        f"{', '.join(letters_in(scheme))}, alone or followed by '-' and a type. {len(wrong)} of "
        f"{len(classes)} classes do not fit: {_first_few(wrong, repr)}. {remedy} leave "
        f"out {given('constraint')}."
    )


def forbid(chain, possible):
    """Set the forbidden weights of a chain to minus infinity, and no others.

    Parameters
    ----------
    chain : Chain
    possible : Constraint or None

    Returns
    -------
    chain : Chain
        With copies of the arrays that change. Weights of minus infinity that are allowed now
        become zero.
    """
    changed = {}
    for name in WEIGHTS:
        part = getattr(chain, name)
        part = np.where(np.isneginf(part), 0.0, part)
        if possible is not None:
            part[~getattr(possible, name)] = -np.inf
        changed[name] = part
    return chain._replace(**changed)


def check_chain(chain, possible, epoch):
    """Check the weights of a chain that are not forbidden, as `check_weights` does."""
    if possible is not None:
        allowed = {
            name: np.where(getattr(possible, name), getattr(chain, name), 0.0) for name in WEIGHTS
        }
        chain = chain._replace(**allowed)
    check_weights(chain, epoch)


def minus_infinite(chain):
    """Read the constraint off the weights of a chain; None if all of them are finite."""
    parts = [getattr(chain, name) > -np.inf for name in WEIGHTS]
    return None if all(part.all() for part in parts) else Constraint(*parts, "the constraint")


def check_labelling(labels, offsets, classes, possible, *, known=False):
    """Raise an error that names the tokens whose labels are impossible, and what to do.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        Codes of the classes, negative for unknown labels. Transitions from and to these are not
        checked.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    classes : ndarray of shape (n_classes,)
        Names of the labels.
    possible : Constraint
    known : bool, default=False
        The labels are what predictions have to agree with, and are not learnt from.

    Raises
    ------
    ValueError
        If a label may not follow the one before, or may not come first or last. The message has
        the number of these labels and the places of the first.
    """
    found = impossible(labels, offsets, possible)
    if not found:
        return
    row, where = found[0]
    names = classes.tolist()
    complaint = f"{names[labels[row]]!r} may not come {where}"
    if where == "after":
        complaint = f"{names[labels[row]]!r} may not follow {names[labels[row - 1]]!r}"
    rows = sorted({row for row, _ in found})
    n_sequences = len(set(np.searchsorted(offsets, rows, side="right").tolist()))
    remedy = "Correct them, or pass None in their place."
    if not known:
        remedy = _remedy(labels, offsets, classes, possible)
    raise DataError(
        "{place}: {complaint} under {name}. "
        f"Labels that break it: {len(rows)} of {np.sum(labels >= 0)}, in {n_sequences} of "
        f"{len(offsets) - 1} sequences: "
        f"{_first_few(rows, lambda row: place(offsets, row).lower())}. {{advice}}",
        *position(offsets, row),
        complaint=complaint,
        name=possible.name,
        advice=remedy,
    )


def _remedy(labels, offsets, classes, possible):
    """Advice for labels that break a constraint."""
    if possible.name == _OF_ARRAY:
        return f"Correct the labels, change the array, or leave out {given('constraint')}."
    names = classes.tolist()
    for scheme in SCHEMES[: SCHEMES.index(RUNS)]:
        belong = all(belongs(label, scheme) for label in names)
        if belong and not impossible(labels, offsets, _read_scheme(scheme, classes)):
            fitting = given("constraint", scheme)
            return f"All labels fit {fitting}: pass it, or leave out {given('constraint')}."
    return (
        "No scheme fits all labels: skstruct.datasets.convert_labels with "
        f"{given('repair', 'conlleval')} repairs them; or leave out {given('constraint')}."
    )


def _first_few(items, name):
    """Names of the first few items, and the number of the others."""
    shown = "; ".join(map(name, items[:_SHOWN]))
    return shown + (f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else "")


def impossible(labels, offsets, possible):
    """Rows whose labels break a constraint, in order, and the kind of each breach.

    The kind is "first" or "last" for the ends of a sequence, "after" for a transition.
    """
    full = np.diff(offsets) > 0
    first, last = offsets[:-1][full], offsets[1:][full] - 1
    follows = np.ones(len(labels), bool)
    follows[first] = False
    later = np.flatnonzero(follows)
    later = later[(labels[later] >= 0) & (labels[later - 1] >= 0)]
    places = {
        "first": first[(labels[first] >= 0) & ~possible.start[labels[first]]],
        "after": later[~possible.transition[labels[later - 1], labels[later]]],
        "last": last[(labels[last] >= 0) & ~possible.end[labels[last]]],
    }
    return sorted((row, where) for where, rows in places.items() for row in rows.tolist())


# Known labels are constraints of single tokens.


def clamp(rows, chain, known, outer=None):
    """Restrict rows and a chain to the labellings that agree with known labels.

    Parameters
    ----------
    rows : Rows or TransitionRows
        The tokens.
    chain : Chain or TransitionChain
        The weights.
    known : ndarray of shape (n_rows,)
        Codes of the labels, negative where unknown.
    outer : ndarray of shape (n_labels,), default=None
        Code of the label of y that each label stands for; None for its own.

    Returns
    -------
    rows : Rows or TransitionRows
    chain : Chain or TransitionChain
    """
    n_features, n_labels = chain.weights.shape
    which = np.flatnonzero(known >= 0)
    ends = rows.indptr[which + 1]
    added = (n_features + known[which]).astype(rows.indices.dtype)
    data = np.insert(rows.data, ends, 1.0) if rows.data.size else rows.data
    rows = rows._replace(
        indptr=rows.indptr + np.concatenate([[0], np.cumsum(known >= 0)]),
        indices=np.insert(rows.indices, ends, added),
        data=data,
    )
    outer = np.arange(n_labels) if outer is None else outer
    agree = outer == np.arange(max(known.max(initial=0), outer.max()) + 1)[:, None]
    weights = np.concatenate([chain.weights, np.where(agree, 0.0, -np.inf)])
    return read_only(rows), read_only(chain._replace(weights=weights))


def check_decoded(codes, known, offsets, possible, codes_of_y=None):
    """Raise an error if decoding found no possible labelling of a sequence.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        The best labels.
    known : ndarray of shape (n_rows,) or None
        Codes of known labels, negative where unknown.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    possible : Constraint or None
        The constraint in the weights.
    codes_of_y : ndarray of shape (n_rows,), default=None
        The best labels as y has them, if known labels are y's.

    Raises
    ------
    ValueError
        For the first such sequence.
    """
    bad = [] if possible is None else [row for row, _ in impossible(codes, offsets, possible)]
    if known is not None:
        codes = codes if codes_of_y is None else codes_of_y
        bad += np.flatnonzero((known >= 0) & (known != codes)).tolist()
    if bad:
        sequence = int(np.searchsorted(offsets, min(bad), side="right") - 1)
        raise no_labelling(sequence, known, possible)


def no_labelling(sequence, known, possible):
    """Error for a sequence without a possible labelling."""
    agreeing = "" if known is None else " that agrees with its known labels"
    under = "" if possible is None else f" under {possible.name}"
    fact = f"{{place}} has no possible labelling{agreeing}{{under}}."
    return DataError(fact, int(sequence), under=under)


def check_completable(known, offsets, classes, possible):
    """Raise an error if no possible labelling agrees with the known labels of a sequence.

    The parameters are as in `check_decoded` and `check_labelling`.
    """
    check_labelling(known, offsets, classes, possible)
    if np.all(known >= 0):
        return
    k = len(classes)
    nothing = Rows(np.zeros(len(known) + 1, np.int64), np.empty(0, np.int32), np.empty(0))
    chain = forbid(Chain(np.zeros((0, k)), np.zeros((k, k)), *np.zeros((3, k))), possible)
    rows, chain = clamp(nothing, chain, known)
    codes = np.empty(len(known), np.int32)
    decode_best(rows, offsets, 0, len(offsets) - 1, chain, codes)
    check_decoded(codes, known, offsets, possible)
