"""Folds: their sequences, and parameters that name labels, restricted to those that a fold has."""

from collections.abc import Iterable, Mapping

import numpy as np

from skstruct.input.constraints import read_constraint
from skstruct.input.costs import read_label_cost
from skstruct.input.formats import label_array
from skstruct.utils.messages import short_repr

_OF_LABELS = ("constraint", "label_cost", "class_weight")


def params_of_fold(tagger, classes, kept):
    """Parameters of a tagger that name labels, for a fold that lacks some.

    Parameters
    ----------
    tagger : estimator
    classes : ndarray of shape (n_classes,)
        Labels of all data, sorted.
    kept : ndarray of int
        Codes of those that the training part of the fold has, sorted.

    Returns
    -------
    params : dict
        The parameters among `constraint`, `label_cost` and `class_weight` that have to change.

    Raises
    ------
    ValueError
        If one of them does not fit all of the labels.
    """
    params = {}
    if len(kept) == len(classes):
        return params
    constraint, cost, weights = (getattr(tagger, name, None) for name in _OF_LABELS)
    if constraint is not None and not isinstance(constraint, str):
        read_constraint(constraint, classes)
        params["constraint"] = np.asarray(constraint)[np.ix_(kept, kept)]
    if cost is not None:
        params["label_cost"] = read_label_cost(cost, classes)[np.ix_(kept, kept)]
    if isinstance(weights, Mapping):
        lacking = set(classes.tolist()).difference(classes[kept].tolist())
        params["class_weight"] = {name: w for name, w in weights.items() if name not in lacking}
    return params


def restrict_to_fold(estimator, labels, train, weighted=None):
    """Restrict all taggers in an estimator to the labels that a fold has, in place.

    Parameters
    ----------
    estimator : estimator
        Not fitted.
    labels : list of list
        Labels of all sequences.
    train : ndarray of int
        Sequences that the fold learns from.
    weighted : ndarray of bool of shape (n_sequences,), default=None
        False for sequences without a weight, whose labels do not count.

    Returns
    -------
    estimator : estimator
        The same.
    """
    params = estimator.get_params(deep=True)
    # Names of the parameters of each tagger begin with its own.
    taggers = {"": estimator, **{f"{name}__": value for name, value in params.items()}}
    taggers = {
        name: tagger
        for name, tagger in taggers.items()
        if hasattr(tagger, "predict_nbest")
        and any(getattr(tagger, of_labels, None) is not None for of_labels in _OF_LABELS)
    }
    if not taggers:
        return estimator
    counts = np.ones(len(labels), bool) if weighted is None else weighted
    of_all = {label for i in np.flatnonzero(counts) for label in labels[i]} - {None}
    of_fold = {label for i in train if counts[i] for label in labels[i]} - {None}
    classes = label_array(sorted(of_all))
    kept = np.flatnonzero([label in of_fold for label in classes.tolist()])
    changed = {
        name + key: value
        for name, tagger in taggers.items()
        for key, value in params_of_fold(tagger, classes, kept).items()
    }
    return estimator.set_params(**changed)


def checked_folds(folds, n_sequences):
    """Training and held-out sequences of each fold, as their numbers.

    Parameters
    ----------
    folds : iterable
        What a splitter returns, or a user gives: pairs of numbers or of masks.
    n_sequences : int

    Returns
    -------
    folds : list of (ndarray, ndarray)

    Raises
    ------
    ValueError
        If a fold is something else; the message names it.
    """
    found = []
    for number, fold in enumerate(folds):
        given = list(fold) if isinstance(fold, Iterable) and not isinstance(fold, str) else []
        parts = [_numbers(part, n_sequences) for part in given]
        if len(parts) != 2 or any(part is None for part in parts):
            raise ValueError(
                f"cv: fold {number} is {short_repr(fold)}; expected the numbers of the sequences "
                f"to train on and of those held out, from 0 to {n_sequences - 1}. cv is a number "
                "of folds, a splitter, or a list of such pairs."
            )
        found.append(tuple(parts))
    return found


def _numbers(part, n_sequences):
    """Numbers of sequences, also from a mask or from the end; None if they are invalid."""
    try:
        part = np.asarray(part)
    except ValueError:
        return None
    if part.ndim == 1 and not part.size:
        return np.empty(0, np.int64)
    if part.dtype == bool and part.shape == (n_sequences,):
        return np.flatnonzero(part)
    fits = part.ndim == 1 and part.dtype.kind in "iu"
    if not fits or not np.all((part >= -n_sequences) & (part < n_sequences)):
        return None
    return np.where(part < 0, part + n_sequences, part)
