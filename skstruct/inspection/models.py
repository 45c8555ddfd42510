"""The tagger in an estimator, and the steps before it."""

from collections.abc import Hashable
from contextlib import suppress
from importlib import import_module
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skstruct.input.schemes import are_chunk_labels
from skstruct.matrices import as_dense
from skstruct.utils.messages import short_repr

_WEIGHTS = ("classes_", "transition_", "intercept_", "start_", "end_")


class FittedTagger(NamedTuple):
    """A fitted tagger, and the steps before it.

    Attributes
    ----------
    tagger : estimator
        With the weights of a linear chain.
    steps : Pipeline or None
        The steps before it.
    """

    tagger: object
    steps: object = None

    def transform(self, X):
        """Turn the X of the estimator into the tagger's."""
        return X if self.steps is None else self.steps.transform(X)

    def coef(self):
        """Weights of features, a dense array (n_classes, n_features)."""
        return as_dense(self.tagger.coef_, "coef_")

    def classes(self):
        """Labels of the weights."""
        return getattr(self.tagger, "learned_classes_", self.tagger.classes_)

    def feature_names(self):
        """Names of the features, ``x0``, ``x1`` and so on where they have none.

        They come from the tagger's input, or else from the steps before it.
        """
        names = getattr(self.tagger, "feature_names_in_", None)
        return self._names(names, "get_feature_names_out", self.tagger.n_features_in_)

    def transition_feature_names(self):
        """Names of the transition features, ``x0`` and so on where they have none."""
        n_features = getattr(self.tagger, "n_transition_features_in_", 0)
        return self._names(None, "get_transition_feature_names_out", n_features)

    def _names(self, names, method, n_columns):
        parts = [self.steps]
        while hasattr(parts[-1], "steps"):
            parts.append(parts[-1].steps[-1][1])
        for part in parts:
            # Steps without names for their output raise different errors.
            with suppress(AttributeError, TypeError, ValueError):
                names = getattr(part, method)() if names is None else names
        if names is None or len(names) != n_columns:
            names = [f"x{column}" for column in range(n_columns)]
        return np.asarray(names, dtype=object)

    def codes(self, labels):
        """Positions of labels of the weights; None stands for all, chunk type by chunk type.

        Raises
        ------
        ValueError
            If the tagger does not know one of them.
        """
        classes = self.classes().tolist()
        if labels is None:
            return order_of_labels(classes)
        return codes_of(labels, classes, f"the labels of {type(self.tagger).__name__}")


def find_tagger(estimator):
    """Find the tagger in an estimator.

    Parameters
    ----------
    estimator : estimator
        A fitted tagger, or a Pipeline or search that ends in one.

    Returns
    -------
    fitted : FittedTagger

    Raises
    ------
    TypeError
        If there is none.
    NotFittedError
        If it is not fitted.
    """
    if hasattr(estimator, "best_estimator_"):
        return find_tagger(estimator.best_estimator_)
    if hasattr(estimator, "steps"):
        fitted = find_tagger(estimator.steps[-1][1])
        return fitted if len(estimator.steps) == 1 else fitted._replace(steps=estimator[:-1])
    if hasattr(estimator, "predict_nbest"):
        check_is_fitted(estimator)
    elif hasattr(estimator, "estimator_"):
        # The drop-in for sklearn-crfsuite.
        check_is_fitted(estimator)
        return find_tagger(estimator.estimator_)
    if not all(hasattr(estimator, name) for name in _WEIGHTS):
        raise TypeError(
            f"Expected a fitted tagger, or a Pipeline or search that ends in one, got "
            f"{type(estimator).__name__}."
        )
    return FittedTagger(estimator)


def check_index(name, value, n, owner, parts, lowest=0):
    """Raise a ValueError unless a parameter is the number of one of the `n` parts."""
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_number or not lowest <= value < n:
        numbers = f"the {parts} 0 to {n - 1}" if n else f"no {parts}"
        raise ValueError(f"{name}={short_repr(value)}, but {owner} has {numbers}.")


def codes_of(labels, classes, what):
    """Positions of labels in a list; a ValueError names the first that is not one of `what`."""
    labels = labels if isinstance(labels, str) else list(labels)
    if isinstance(labels, str) or not labels:
        raise ValueError(f"labels must be a list of at least one label, got {labels!r}.")
    position = {label: code for code, label in enumerate(classes)}
    unknown = [
        label for label in labels if not isinstance(label, Hashable) or label not in position
    ]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of {what}: {classes}.")
    return np.array([position[label] for label in labels], dtype=np.int64)


def order_of_labels(labels):
    """Positions of labels, each chunk type side by side."""
    if not are_chunk_labels(labels):
        return np.arange(len(labels))
    return np.array(sorted(range(len(labels)), key=lambda k: (labels[k][2:], labels[k])))


def require(package, what):
    """Import an optional package; an ImportError says how to get it."""
    try:
        return import_module(package)
    except ImportError:
        raise ImportError(f'{what} needs {package}: pip install "skstruct[plot]".') from None
