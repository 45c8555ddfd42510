"""Checks of what a stored tagger has learnt, before compiled code reads it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from skstruct.utils.persistence import check_array_shape

__all__ = ["check_learner", "check_weights"]

# Minus infinity forbids a pair of labels, or a label at one end.
_MAY_FORBID = ("transition_", "start_", "end_")


def check_weights(tagger):
    """Check that the weights of a tagger fit together, and with its classes and features."""
    if "coef_" in vars(tagger):
        _check_chain(tagger, tagger.n_features_in_, len(tagger.classes_))
    vectorizer = getattr(tagger, "vectorizer_", None)
    if vectorizer is not None and len(vectorizer.feature_names_) != tagger.n_features_in_:
        raise ValueError("the vectoriser does not belong to the weights.")


def _check_chain(tagger, n_features, n_classes):
    coef = tagger.coef_.toarray() if sp.issparse(tagger.coef_) else tagger.coef_
    shapes = {
        "coef_": (coef, (n_classes, n_features)),
        "transition_": (tagger.transition_, (n_classes, n_classes)),
        **{
            name: (getattr(tagger, name), (n_classes,)) for name in ("intercept_", "start_", "end_")
        },
    }
    if hasattr(tagger, "transition_coef_"):
        shape = (n_classes, n_classes, tagger.n_transition_features_in_)
        shapes["transition_coef_"] = tagger.transition_coef_, shape
    for name, (array, shape) in shapes.items():
        check_array_shape(array, shape, name)
        if np.isnan(array).any():
            raise ValueError(f"a weight of {name} is NaN.")
        wrong = np.isposinf if name in _MAY_FORBID else np.isinf
        if wrong(array).any():
            raise ValueError(f"a weight of {name} is infinite.")


def check_learner(tagger, state, n_progress):
    """Check the `OnlineState` from which `partial_fit` continues.

    Parameters
    ----------
    tagger : OnlineTagger
        With the classes and the number of features that the state must fit.
    state : OnlineState
    n_progress : int
        Length of ``state.progress``.

    Raises
    ------
    ValueError
        If a shape is wrong, or a weight is NaN or infinite.
    """
    what = "the state of the learner"
    n_features, n_classes = tagger.n_features_in_, len(tagger.classes_)
    n_transition_features = getattr(tagger, "n_transition_features_in_", None)
    averages = len(state.lag.weights) > 0
    for chain, counts in ((state.chain, True), (state.lag, averages)):
        shapes = {
            "weights": (n_features * counts, n_classes),
            "transition": (n_classes, n_classes),
            **dict.fromkeys(("intercept", "start", "end"), (n_classes,)),
        }
        if hasattr(chain, "transition_weights") != (n_transition_features is not None):
            raise ValueError(f"{what} does not belong to the weights.")
        if n_transition_features is not None:
            shapes["transition_weights"] = (n_transition_features * counts, n_classes**2)
        for name, shape in shapes.items():
            check_array_shape(getattr(chain, name), shape, what)
            array = getattr(chain, name)
            wrong = np.isposinf if f"{name}_" in _MAY_FORBID else np.isinf
            if np.isnan(array).any() or wrong(array).any():
                raise ValueError(f"a weight in {what} is NaN or infinite.")
    check_array_shape(state.progress, (n_progress,), what)
