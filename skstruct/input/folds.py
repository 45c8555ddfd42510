"""Parameters that name labels, restricted to the labels that a fold has."""

from collections.abc import Mapping

import numpy as np

from skstruct.input.constraints import read_constraint
from skstruct.input.costs import read_label_cost
from skstruct.input.formats import label_array

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
