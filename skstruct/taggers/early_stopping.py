"""Watching a validation set while learning: its accuracy, and when that says to stop."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from skstruct.input.formats import encode_labels
from skstruct.kernels.chain.decode import decode_best
from skstruct.utils.parallel import range_runner

__all__ = [
    "BestIterate",
    "Patience",
    "apply_feature_order",
    "read_validation_set",
    "token_accuracy",
    "validation_accuracy",
]

# Codes of tokens without a label, and of labels that no training sequence has.
_UNKNOWN, _UNSEEN = -1, -2


def read_validation_set(tagger, read, X, y, sample_weight):
    """Check and encode a validation set for a tagger that knows its classes and features.

    Parameters
    ----------
    tagger : BaseTagger
        That has read its training set.
    read : callable
        Makes a training set of rows, offsets, labels and weights.
    X, y, sample_weight : object
        As `BaseTagger.fit` was given them.

    Returns
    -------
    validation_set : TrainingSet or None
        Labels that no training sequence has are -2. None without X and y.

    Raises
    ------
    ValueError
        If only one of X and y is given, if they are invalid, have no token that counts, or no
        label that is known.
    """
    if X is None and y is None:
        if sample_weight is not None:
            raise ValueError("sample_weight_val is given, but neither X_val nor y_val.")
        return None
    if X is None or y is None:
        raise ValueError("X_val and y_val are needed both, or neither.")
    try:
        format, batch = tagger._read_X(X)
        found, codes = encode_labels(y, batch, format)
        code_of = {label: code for code, label in enumerate(tagger.classes_.tolist())}
        known = np.array([code_of.get(label, _UNSEEN) for label in found.tolist()], np.int32)
        if np.all(known == _UNSEEN):
            raise ValueError(f"none of the labels {found.tolist()} occurs in training.")
        weight = _check_sample_weight(
            sample_weight, batch, dtype=np.float64, ensure_non_negative=True
        )
        if not np.any(weight[batch.lengths > 0]):
            raise ValueError("Sample weights must contain at least one non-zero number.")
    except ValueError as error:
        raise ValueError(f"X_val, y_val: {error}") from error
    return read(batch, known[codes], weight)


def apply_feature_order(data, rank):
    """A training set in which feature ``f`` has the number ``rank[f]``."""
    return data._replace(rows=data.rows._replace(indices=rank[data.rows.indices]))


def token_accuracy(chain, data, n_jobs, callback=None):
    """Share of the labelled tokens of a training set that a chain labels rightly, weighted.

    Parameters
    ----------
    chain : Chain
    data : TrainingSet
    n_jobs : int or None
    callback : callable, default=None
        Called with the labels predicted, ndarray of shape (n_rows,).

    Returns
    -------
    accuracy : float
    """
    predicted = np.empty(len(data.labels), np.int32)
    with range_runner(data.offsets, n_jobs) as run:
        run(
            lambda _, first, last: decode_best(
                data.rows, data.offsets, first, last, chain, predicted
            )
        )
    if callback is not None:
        callback(predicted)
    weight = np.repeat(data.sample_weight, np.diff(data.offsets)) * (data.labels != _UNKNOWN)
    return float(np.average(predicted == data.labels, weights=weight))


def validation_accuracy(tagger, chain, data, history):
    """Accuracy of weights on their way, which is noted in the history."""
    accuracy = token_accuracy(chain, data, tagger.n_jobs, tagger._on_validation)
    history.amend(validation_score=accuracy)
    return accuracy


class Patience:
    """Counts the epochs since something improved by more than a tolerance.

    Parameters
    ----------
    tol : float or None
        What counts as no improvement. With None, patience never ends.
    n_iter_no_change : int
        Epochs to wait for an improvement.
    """

    def __init__(self, tol, n_iter_no_change):
        self._tol = tol
        self._n_iter_no_change = n_iter_no_change
        self._best = -np.inf
        self._since = 0

    def is_best(self, merit):
        """Take note of an epoch; return whether it is the best one so far."""
        best = merit > self._best
        self._since = 0 if merit > self._best + (self._tol or 0.0) else self._since + 1
        self._best = max(self._best, merit)
        return best

    @property
    def is_over(self):
        """Whether it is time to stop."""
        return self._tol is not None and self._since >= self._n_iter_no_change


class BestIterate:
    """What an optimiser's iterates come to on a validation set, and the best of them.

    Parameters
    ----------
    tagger : CRFTagger
        Whose parameters say whether to stop, and when.
    unpack : callable
        Makes a chain of a parameter vector.
    data : TrainingSet or None
        The validation set; None watches nothing.
    """

    def __init__(self, tagger, unpack, data):
        self._tagger = tagger
        self._unpack = unpack
        self._data = data
        self._patience = Patience(tagger.tol, tagger.n_iter_no_change)
        self._kept = None

    def visit(self, x, bound, history):
        """Score an iterate; return whether learning is to stop here."""
        if self._data is None:
            return False
        score = validation_accuracy(self._tagger, self._unpack(x), self._data, history)
        if not self._tagger.early_stopping:
            return False
        if self._patience.is_best(score):
            self._kept = x.copy(), bound
        return self._patience.is_over

    def best(self, x, bound):
        """The best iterate and its bound; those given where the last one is wanted."""
        return (x, bound) if self._kept is None else self._kept
