"""Hard constraints: which labels may follow each other, come first and come last.

A fitted tagger holds them as weights of minus infinity, so decoding needs to know nothing else. Nor
do most learners: a labelling that is impossible has probability zero and is never found, so nothing
pulls at these weights.
"""

from __future__ import annotations

from reprlib import repr as short_repr
from typing import NamedTuple

import numpy as np

from skstruct.input.formats import place

__all__ = [
    "SCHEMES",
    "WEIGHTS",
    "Constraint",
    "check_labelling",
    "first_impossible",
    "forbid",
    "minus_infinite",
    "read_constraint",
    "without_forbidden",
]

# For each scheme its letters, by what they do to a chunk: part of the first token, of the last.
_OPENS_AND_CLOSES = {
    "IOBES": {"B": (True, False), "I": (False, False), "E": (False, True), "S": (True, True)},
    "BILOU": {"B": (True, False), "I": (False, False), "L": (False, True), "U": (True, True)},
}
_OPENS_AND_CLOSES["BIOES"] = _OPENS_AND_CLOSES["IOBES"]
# The weights that may be minus infinity.
WEIGHTS = ("transition", "start", "end")
SCHEMES = ("IOB1", "IOB2", "IOBES", "BIOES", "BILOU")


class Constraint(NamedTuple):
    """What is possible, in the order of the classes."""

    transition: np.ndarray  # (n_classes, n_classes), whether the column may follow the row
    start: np.ndarray  # (n_classes,), whether a class may come first
    end: np.ndarray  # (n_classes,), whether it may come last
    name: str  # how messages refer to it


def read_constraint(constraint, classes):
    """Turn the parameter `constraint` of a tagger into what is possible.

    Parameters
    ----------
    constraint : {"IOB1", "IOB2", "IOBES", "BIOES", "BILOU"}, array-like of bool or None
        A scheme of labels, or for each row which columns may follow.
    classes : ndarray of shape (n_classes,)
        The labels.

    Returns
    -------
    possible : Constraint or None
        None where everything is.

    Raises
    ------
    ValueError
        If a class is not one of the scheme's, or the array has another shape or type.
    """
    if constraint is None:
        return None
    if isinstance(constraint, str):
        return _read_scheme(constraint, classes)
    n_classes = len(classes)
    transition = np.asarray(constraint)
    if transition.dtype.kind != "b" or transition.shape != (n_classes, n_classes):
        raise ValueError(
            f"constraint is an array of shape {transition.shape} and type {transition.dtype}; with "
            f"the {n_classes} classes {short_repr(classes.tolist())} it must be a boolean array of "
            f"shape {(n_classes, n_classes)}."
        )
    anything = np.ones(n_classes, bool)
    return Constraint(transition, anything, anything, "the constraint")


def _read_scheme(scheme, classes):
    name = f"constraint={scheme!r}"
    parts = [_split_label(label, scheme, name) for label in classes.tolist()]
    letters = np.array([letter for letter, _ in parts])
    kinds = np.array([kind for _, kind in parts], dtype=object)
    outside = letters == "O"
    goes_on = (kinds[:, None] == kinds) & ~outside[:, None]
    if scheme == "IOB2":
        # Only I needs something before it.
        free, end = letters != "I", np.ones(len(letters), bool)
    elif scheme == "IOB1":
        free, end = letters != "B", np.ones(len(letters), bool)
    else:
        roles = {"O": (True, True), **_OPENS_AND_CLOSES[scheme]}
        free, end = np.array([roles[letter] for letter in letters.tolist()]).T
    transition = (end[:, None] & free) | (goes_on & ~free)
    if scheme not in ("IOB1", "IOB2"):
        transition &= end[:, None] == free
    return Constraint(transition, free, end, name)


def _split_label(label, scheme, name):
    """Letter and kind of a label of a scheme."""
    letters = "".join(_OPENS_AND_CLOSES.get(scheme, "BI"))
    letter, dash, kind = label.partition("-") if isinstance(label, str) else ("", "", "")
    if label != "O" and not (len(letter) == 1 and letter in letters):
        raise ValueError(
            f"Class {label!r} does not fit {name}, whose labels are O, and the letters "
            f"{', '.join(letters)}, alone or followed by '-' and a type."
        )
    return letter, (kind if dash else None)


def forbid(chain, possible):
    """The chain with weights of minus infinity where `possible` says so, and nowhere else.

    Parameters
    ----------
    chain : Chain
    possible : Constraint or None

    Returns
    -------
    chain : Chain
        With copies of what changes; weights that were minus infinity and no longer are, are zero.
    """
    changed = {}
    for name in WEIGHTS:
        part = getattr(chain, name)
        part = np.where(np.isneginf(part), 0.0, part)
        if possible is not None:
            part[~getattr(possible, name)] = -np.inf
        changed[name] = part
    return chain._replace(**changed)


def without_forbidden(chain, possible):
    """The chain with zero for the weights that `possible` forbids."""
    kept = {name: np.where(getattr(possible, name), getattr(chain, name), 0.0) for name in WEIGHTS}
    return chain._replace(**kept)


def minus_infinite(chain):
    """What the weights of a chain leave possible; None if they forbid nothing."""
    parts = [getattr(chain, name) > -np.inf for name in WEIGHTS]
    return None if all(part.all() for part in parts) else Constraint(*parts, "the constraint")


def check_labelling(labels, offsets, classes, possible):
    """Raise an error that names the first token whose label is impossible.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        Codes of the classes; what is next to a negative one is not looked at.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    classes : ndarray of shape (n_classes,)
        Their names.
    possible : Constraint

    Raises
    ------
    ValueError
        If a label may not follow the one before, come first or come last.
    """
    found = first_impossible(labels, offsets, possible)
    if found is None:
        return
    row, where = found
    names = classes.tolist()
    complaint = f"{names[labels[row]]!r} may not come {where}"
    if where == "after":
        complaint = f"{names[labels[row]]!r} may not follow {names[labels[row - 1]]!r}"
    raise ValueError(f"{place(offsets, row)}: {complaint} under {possible.name}.")


def first_impossible(labels, offsets, possible):
    """First row that is labelled against a constraint, and where it stands; None if there is none.

    It stands "first" or "last" in its sequence or "after" the row before.
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
    found = [(rows[0], where) for where, rows in places.items() if len(rows)]
    return min(found) if found else None
