"""Costs of wrong labels, which are added to their scores while a tagger learns."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np

from skstruct.frames import refuse_table
from skstruct.input.scale import LARGEST
from skstruct.matrices import read_only
from skstruct.utils.declared import Declaration
from skstruct.utils.messages import short_repr

# Kernels read it as no cost.
NO_COST = read_only(np.zeros((0, 0)))
_MISSED, _OUTSIDE = "missed", "O"
_ITEMS = "_items"


class LabelCost(Declaration):
    """The parameter `label_cost`; skops stores no dict whose keys are pairs."""

    def write(self, value):
        """Keys and numbers of a dict, anything else as it is."""
        return {_ITEMS: list(value.items())} if isinstance(value, dict) else value

    def read(self, value, what, size):
        """Return the parameter, which `read_label_cost` checks when it is used."""
        if not (isinstance(value, dict) and _ITEMS in value):
            return value
        try:
            return dict(value[_ITEMS])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what} does not consist of keys and numbers: {error}") from error


def read_label_cost(label_cost, classes):
    """Read the parameter `label_cost` of a tagger.

    Parameters
    ----------
    label_cost : array-like of shape (n_classes, n_classes), dict or None
        Costs from gold label, the row, to predicted label; or a dict of some of them, by pairs
        ``(gold, predicted)`` or, under "missed", of "O" in place of any other label.
    classes : ndarray of shape (n_classes,)
        Labels, sorted.

    Returns
    -------
    cost : ndarray of shape (n_classes, n_classes) or (0, 0)
        Read-only; empty if there is none.

    Raises
    ------
    ValueError
        If a label is unknown, the shape is another one, a number is NaN, infinite or negative, or a
        right label has a cost.
    """
    if label_cost is None:
        return NO_COST
    refuse_table(label_cost, "label_cost")
    names = classes.tolist()
    read = _read_pairs if isinstance(label_cost, Mapping) else _read_array
    cost = read(label_cost, names)
    for gold, predicted in np.argwhere(~((cost >= 0) & (cost <= LARGEST)))[:1]:
        raise ValueError(
            f"label_cost is {cost[gold, predicted]:g} for {names[predicted]!r} in place of "
            f"{names[gold]!r}; costs must be finite, not negative, and at most {LARGEST:.2g}."
        )
    for gold in np.flatnonzero(np.diag(cost))[:1]:
        raise ValueError(
            f"label_cost is {cost[gold, gold]:g} for {names[gold]!r} in place of itself; the right "
            "label must cost 0."
        )
    return read_only(cost)


def _read_array(label_cost, names):
    try:
        cost = np.array(label_cost, np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"label_cost is no array of numbers: {error}") from error
    if cost.shape != (len(names), len(names)):
        raise ValueError(
            f"label_cost has shape {cost.shape}; for the {len(names)} classes {short_repr(names)} "
            f"it must have shape {(len(names), len(names))}, from right label to predicted one."
        )
    return cost


def _read_pairs(label_cost, names):
    code_of = {name: code for code, name in enumerate(names)}
    cost = np.zeros((len(names), len(names)))
    # Costs of pairs replace the cost of all missed names, so they are read after it.
    for key, value in sorted(label_cost.items(), key=lambda item: item[0] != _MISSED):
        if not isinstance(value, Real):
            raise ValueError(f"label_cost is {short_repr(value)} for {key!r}, which is no number.")
        if key == _MISSED:
            if _OUTSIDE not in code_of:
                raise ValueError(
                    f"label_cost for {_MISSED!r} is that of the label {_OUTSIDE!r} in place of a "
                    f"name, but the classes {short_repr(names)} do not have it: give pairs (right, "
                    "predicted) of labels."
                )
            outside = code_of[_OUTSIDE]
            cost[np.arange(len(names)) != outside, outside] = value
        elif not (isinstance(key, tuple) and len(key) == 2):
            raise ValueError(
                f"label_cost has the key {key!r}; keys are pairs (right, predicted) of labels, or "
                f"{_MISSED!r}."
            )
        else:
            for label in key:
                if label not in code_of:
                    raise ValueError(
                        f"label_cost has the label {label!r}, which is not among the classes "
                        f"{short_repr(names)}."
                    )
            cost[code_of[key[0]], code_of[key[1]]] = value
    return cost
