"""What sklearn-crfsuite keeps of a training, from what our estimators keep."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

__all__ = ["LabelScore", "TrainingLog"]

# What CRFsuite calls what `history_` has.
_COLUMNS = {
    "loss": ("objective", "loss"),
    "feature_norm": ("weight_norm",),
    "error_norm": ("gradient_norm",),
}


class LabelScore(NamedTuple):
    """How well a label is found in the held out sequences.

    Attributes
    ----------
    match, model, ref : int
        Tokens that have the label rightly, by the model, and in truth.
    precision, recall, f1 : float or None
        None where they are not defined.
    """

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


class TrainingLog:
    """How a training went, with the attributes of python-crfsuite's log.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``history_``.
    n_features : int
        Number of weights.
    seconds : float
        How long it took.

    Attributes
    ----------
    iterations : list of dict
        For each iteration ``"num"``, ``"loss"`` (the objective), ``"feature_norm"``, ``"time"``
        (seconds), ``"scores"``, and for L-BFGS ``"error_norm"`` (of the gradient) and
        ``"active_features"``. The last one has the scores of the held out sequences, if there
        were any, as `score_held_out` adds them.
    featgen_num_features : int
        Number of weights.
    training_seconds : float
        How long it took.
    """

    def __init__(self, estimator, n_features, seconds):
        self.featgen_num_features = n_features
        self.training_seconds = seconds
        self.iterations = list(_iterations(estimator.history_, n_features))

    @property
    def last_iteration(self):
        """The last of the iterations; None if there was none."""
        return self.iterations[-1] if self.iterations else None

    def __getstate__(self):
        # Plain numbers, which every way of storing knows.
        state = self.__dict__.copy()
        state["iterations"] = [_change(entry, _as_pair) for entry in self.iterations]
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.iterations = [
            _change(entry, lambda pair: Fraction(*pair)) for entry in self.iterations
        ]

    def score_held_out(self, labels, y_true, y_pred):
        """Add the scores of held out sequences to the last iteration."""
        if self.last_iteration is None:
            return
        true = [label for sequence in y_true for label in sequence]
        pred = [label for sequence in y_pred for label in sequence]
        names = dict.fromkeys([*labels, *true])
        scores = {name: _label_score(name, true, pred) for name in names}
        n_right = sum(t == p for t, p in zip(true, pred, strict=True))
        n_whole = sum(list(t) == list(p) for t, p in zip(y_true, y_pred, strict=True))
        tokens, whole = Fraction(n_right, max(len(true), 1)), Fraction(n_whole, len(y_true))
        self.last_iteration.update(
            scores=scores,
            **{
                f"avg_{what}": float(np.mean([getattr(s, what) or 0.0 for s in scores.values()]))
                for what in ("precision", "recall", "f1")
            },
            item_accuracy=tokens,
            item_accuracy_float=float(tokens),
            instance_accuracy=whole,
            instance_accuracy_float=float(whole),
        )


def _iterations(history, n_features):
    """The entries of a history one after the other, less the one for the start."""
    epochs, times = history["epoch"], history["time"]
    for k in range(len(epochs)):
        if epochs[k] == 0 and len(epochs) > 1:
            continue
        entry = {"num": int(epochs[k]), "scores": {}}
        for name, sources in _COLUMNS.items():
            source = next((source for source in sources if source in history), None)
            if source is not None:
                entry[name] = float(history[source][k])
        if "gradient_norm" in history:
            entry["active_features"] = n_features
        entry["time"] = float(times[k] - (times[k - 1] if k else 0.0))
        yield entry


def _change(entry, function):
    """An entry with the exact accuracies changed."""
    exact = ("item_accuracy", "instance_accuracy")
    return {**entry, **{name: function(entry[name]) for name in exact if name in entry}}


def _as_pair(fraction):
    return fraction.numerator, fraction.denominator


def _label_score(name, true, pred):
    match = sum(t == p == name for t, p in zip(true, pred, strict=True))
    model, ref = pred.count(name), true.count(name)
    precision = match / model if model else None
    recall = match / ref if ref else None
    f1 = 2 * match / (model + ref) if model + ref else None
    return LabelScore(match, model, ref, precision, recall, f1)
