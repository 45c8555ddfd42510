"""What sklearn-crfsuite keeps of a training, from what our estimators keep."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from skstruct.utils.public_paths import set_module

__all__ = ["HeldOut", "LabelScore", "TrainingLog"]

# What CRFsuite calls what `history_` has.
_COLUMNS = {
    "loss": ("objective", "loss"),
    "feature_norm": ("weight_norm",),
    "error_norm": ("gradient_norm",),
}


@set_module("skstruct.crfsuite")
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


@set_module("skstruct.crfsuite")
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
    held_out : HeldOut, default=None
        Scores of held out sequences.

    Attributes
    ----------
    iterations : list of dict
        For each iteration ``"num"``, ``"loss"`` (the objective), ``"feature_norm"``, ``"time"``
        (seconds), ``"scores"``, and for L-BFGS ``"error_norm"`` (of the gradient) and
        ``"active_features"``; where sequences were held out, also their scores, see `HeldOut`.
    featgen_num_features : int
        Number of weights.
    training_seconds : float
        How long it took.
    """

    def __init__(self, estimator, n_features, seconds, held_out=None):
        self.featgen_num_features = n_features
        self.training_seconds = seconds
        scores = [] if held_out is None else held_out.scores
        self.iterations = list(_iterations(estimator.history_, n_features, scores))

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


class HeldOut:
    """Scores of held out sequences, once for each iteration.

    Parameters
    ----------
    labels : list of str
        Of the sequences learnt from, in the order in which they first occur.
    y : list of list of str
        The right labels of the held out sequences.

    Attributes
    ----------
    scores : list of dict
        ``"scores"``, a `LabelScore` for each label; ``"avg_precision"``, ``"avg_recall"`` and
        ``"avg_f1"``; ``"item_accuracy"`` and ``"instance_accuracy"``, shares of the tokens and of
        the sequences that are right, and the same as floats.
    """

    def __init__(self, labels, y):
        flat = [label for sequence in y for label in sequence]
        names = dict.fromkeys([*labels, *flat])
        self._code_of = {name: code for code, name in enumerate(names)}
        self._true = np.array([self._code_of[label] for label in flat], np.int64)
        self._owner = np.repeat(np.arange(len(y)), [len(sequence) for sequence in y])
        self._n_sequences = len(y)
        self.scores = []

    def add(self, classes, predicted):
        """Score labels predicted, of which each is the number of one of the classes."""
        code_of_class = np.array([self._code_of[label] for label in classes.tolist()], np.int64)
        predicted = code_of_class[predicted]
        right = predicted == self._true
        n = len(self._code_of)
        counts = zip(
            np.bincount(self._true[right], minlength=n).tolist(),
            np.bincount(predicted, minlength=n).tolist(),
            np.bincount(self._true, minlength=n).tolist(),
            strict=True,
        )
        scores = dict(zip(self._code_of, (_label_score(*three) for three in counts), strict=True))
        tokens = Fraction(int(right.sum()), max(len(right), 1))
        n_spoilt = len(np.unique(self._owner[~right]))
        whole = Fraction(self._n_sequences - n_spoilt, self._n_sequences)
        self.scores.append(
            {
                "scores": scores,
                **{
                    f"avg_{what}": float(
                        np.mean([getattr(score, what) or 0.0 for score in scores.values()])
                    )
                    for what in ("precision", "recall", "f1")
                },
                "item_accuracy": tokens,
                "item_accuracy_float": float(tokens),
                "instance_accuracy": whole,
                "instance_accuracy_float": float(whole),
            }
        )


def _iterations(history, n_features, scores):
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
        yield entry | (scores[k] if scores else {})


def _change(entry, function):
    """An entry with the exact accuracies changed."""
    exact = ("item_accuracy", "instance_accuracy")
    return {**entry, **{name: function(entry[name]) for name in exact if name in entry}}


def _as_pair(fraction):
    return fraction.numerator, fraction.denominator


def _label_score(match, model, ref):
    precision = match / model if model else None
    recall = match / ref if ref else None
    f1 = 2 * match / (model + ref) if model + ref else None
    return LabelScore(match, model, ref, precision, recall, f1)
