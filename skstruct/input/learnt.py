"""Labels that a tagger learns in place of y's: of a scheme with a letter for each place.

Each label of such a scheme belongs to one label of y, and each valid labelling to one of y. So the
labellings of y keep their scores, and the probability of a label of y is a sum.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from skstruct.input.constraints import Constraint
from skstruct.input.formats import label_array
from skstruct.input.schemes import (
    OUTSIDE,
    allowed_labels,
    belongs,
    scheme_named,
    split_label,
)
from skstruct.matrices import read_only
from skstruct.utils.messages import DataError, position

# Schemes that have a letter for each place, and those whose labels theirs can stand for.
LEARNT_SCHEMES = ("IOBES", "BIOES", "BILOU", "BMES")
READ_SCHEMES = ("IOB2", "BIO", "IOE2", *LEARNT_SCHEMES)
_FIRST, _INNER, _LAST, _ONLY = range(4)


class LearntLabels(NamedTuple):
    """Labels that are learnt, and their places among y's."""

    classes: np.ndarray  # (n_learnt,) sorted
    outer: np.ndarray  # (n_learnt,) code of the label of y
    table: np.ndarray  # (n_classes, 4) codes of the learnt labels by their place in a chunk, or -1
    joined: np.ndarray  # (n_classes, n_classes) True where the column goes on a chunk of the row
    possible: Constraint  # of the learnt labels
    possible_outer: Constraint  # of the labels of y

    def read(self, labels, offsets):
        """Codes of what is learnt, of valid labels of y."""
        if labels.min(initial=0) < 0:
            raise DataError(
                "{place} has no label; learn_scheme needs all labels. Use learn_scheme=None.",
                *position(offsets, np.argmin(labels)),
            )
        goes_on = np.zeros(len(labels) + 1, bool)
        goes_on[1:-1] = self.joined[labels[:-1], labels[1:]]
        goes_on[offsets] = False
        place = np.where(
            goes_on[:-1],
            np.where(goes_on[1:], _INNER, _LAST),
            np.where(goes_on[1:], _FIRST, _ONLY),
        )
        return self.table[labels, place].astype(labels.dtype)

    def restrict(self, possible):
        """Constraint of what is learnt, under one of the labels of y."""
        if possible is None:
            return self.possible
        pairs = np.ix_(self.outer, self.outer)
        parts = possible.transition[pairs], possible.start[self.outer], possible.end[self.outer]
        both = (a & b for a, b in zip(parts, self.possible, strict=False))
        return Constraint(*both, possible.name)

    def costs(self, cost):
        """Costs of what is learnt, by the costs of the labels of y."""
        return read_only(cost[np.ix_(self.outer, self.outer)]) if len(cost) else cost

    def sum_up(self, proba):
        """Probabilities of the labels of y."""
        return proba @ np.eye(len(self.table))[self.outer]


@lru_cache(maxsize=16)
def learnt_labels(classes, scheme, learn_scheme):
    """Labels of another scheme for the classes of y.

    Parameters
    ----------
    classes : tuple of str
        Labels of y, sorted.
    scheme, learn_scheme : str
        Scheme of y, and the one to learn, from `LEARNT_SCHEMES`.

    Returns
    -------
    labels : LearntLabels
        Without what cannot be a part of a chunk, such as B-X where y has no I-X.

    Raises
    ------
    ValueError
        If the labels are not of the scheme, or the scheme is none of `READ_SCHEMES`: in others,
        what a label stands for depends on its neighbours.
    """
    if scheme not in READ_SCHEMES or not all(belongs(label, scheme) for label in classes):
        raise ValueError(
            f"learn_scheme={learn_scheme!r} needs labels of IOB2, IOE2, IOBES, BILOU or BMES, "
            f"but those of y are of {scheme!r} or of none: skstruct.datasets.convert_labels "
            "converts them."
        )
    code_of = {label: code for code, label in enumerate(classes)}
    outer_letters, letters = scheme_named(scheme)[:4], scheme_named(learn_scheme)[:4]
    kinds = sorted({label[1:] for label in classes if label != OUTSIDE})
    found = {OUTSIDE: (code_of[OUTSIDE], range(4))} if OUTSIDE in code_of else {}
    for kind in kinds:
        first, inner, last, only = (code_of.get(letter + kind) for letter in outer_letters)
        has_ends = first is not None and last is not None
        parts = {_FIRST: first, _INNER: inner, _LAST: last} if has_ends else {}
        for place, code in (parts | {_ONLY: only}).items():
            if code is not None:
                found[letters[place] + kind] = code, (place,)
    names = sorted(found)
    table = np.full((len(classes), 4), -1)
    for number, name in enumerate(names):
        code, places = found[name]
        table[code, list(places)] = number
    parts = zip(*(split_label(label) for label in classes), strict=True)
    letter, kind = (np.array(part, object) for part in parts)
    opens, closes = (np.isin(letter, list(some)) for some in _joining(scheme_named(scheme)))
    joined = opens[:, None] & closes & (kind[:, None] == kind)
    outer = np.array([found[name][0] for name in names], np.int64)
    possible = Constraint(*allowed_labels(names, learn_scheme), f"learn_scheme={learn_scheme!r}")
    possible_outer = Constraint(*allowed_labels(list(classes), scheme), f"constraint={scheme!r}")
    return LearntLabels(label_array(names), outer, table, joined, possible, possible_outer)


def _joining(scheme):
    """Letters after which a chunk goes on, and letters that go on."""
    return {scheme.first, scheme.inner}, {scheme.inner, scheme.last}
