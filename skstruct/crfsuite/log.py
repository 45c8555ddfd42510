"""Training log with the attributes of python-crfsuite's."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from skstruct.utils.public_paths import set_module

__all__ = ["HeldOut", "LabelScore", "TrainingLog"]

# CRFsuite's names, and the columns of `history_` that they are taken from, the first that exists.
_COLUMNS = {
    "loss": ("objective", "loss"),
    "feature_norm": ("weight_norm",),
    "error_norm": ("gradient_norm",),
}


@set_module("skstruct.crfsuite")
class LabelScore(NamedTuple):
    """Precision, recall and F1 of a label on held-out sequences.

    Attributes
    ----------
    match, model, ref : int
        Numbers of tokens with the label: correctly predicted, predicted, and true.
    precision, recall, f1 : float or None
        None if undefined.
    """

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


@set_module("skstruct.crfsuite")
class TrainingLog:
    """Log of a training, with the attributes of python-crfsuite's log.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``history_``.
    n_features : int
        Number of weights.
    seconds : float
        Training time.
    held_out : HeldOut, default=None
        Scores of held-out sequences.

    Attributes
    ----------
    iterations : list of dict
        For each iteration ``"num"``, ``"loss"`` (the objective), ``"feature_norm"``, ``"time"``
        (seconds), ``"scores"``, and for L-BFGS ``"error_norm"`` (of the gradient) and
        ``"active_features"``. With held-out sequences, also their scores: ``"scores"`` then has a
        `LabelScore` for each label; ``"avg_precision"``, ``"avg_recall"`` and ``"avg_f1"``;
        ``"item_accuracy"`` and ``"instance_accuracy"``, the shares of correct tokens and sequences
        as fractions, and with the suffix ``"_float"`` as floats.
    featgen_num_features : int
        Number of weights.
    training_seconds : float
        Training time.
    """

    def __init__(self, estimator, n_features, seconds, held_out=None):
        self.featgen_num_features = n_features
        self.training_seconds = seconds
        scores = [] if held_out is None else held_out.scores
        self.iterations = list(_iterations(estimator.history_, n_features, scores))

    @classmethod
    def empty(cls):
        """Log of a training without data."""
        log = cls.__new__(cls)
        log.featgen_num_features, log.training_seconds, log.iterations = 0, 0.0, []
        return log

    @property
    def last_iteration(self):
        """The last iteration; None if there was none."""
        return self.iterations[-1] if self.iterations else None

    def __getstate__(self):
        # Fractions as pairs of integers, which every way of storing supports, and plain tuples.
        state = self.__dict__.copy()
        state["iterations"] = [_change(entry, _as_pair, tuple) for entry in self.iterations]
        return state

    def __setstate__(self, state):
        try:
            self.__dict__.update(state)
            self.iterations = [
                _change(entry, lambda pair: Fraction(*pair), lambda score: LabelScore(*score))
                for entry in self.iterations
            ]
        except Exception as error:
            raise ValueError(f"This stored TrainingLog is damaged: {error}") from error


class HeldOut:
    """Scores of held-out sequences, once for each iteration.

    Parameters
    ----------
    labels : list of str
        Labels of the training set, in order of first occurrence.
    y : list of list of str
        True labels of the held-out sequences.

    Attributes
    ----------
    scores : list of dict
        For each iteration, the entries that it adds to `TrainingLog.iterations`.
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
        """Add the scores of predicted labels, given as codes of the classes, token by token."""
        code_of_class = np.array([self._code_of[label] for label in classes], np.int64)
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
    """Entries of a history, iteration by iteration, without epoch 0 if there are others."""
    # Without a single iteration there are no columns.
    epochs, times = history.get("epoch", ()), history.get("time", ())
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


def _change(entry, as_fraction, as_score):
    """Entry with functions applied to the accuracies that are fractions and to the scores."""
    exact = ("item_accuracy", "instance_accuracy")
    scores = {label: as_score(score) for label, score in entry["scores"].items()}
    changed = {name: as_fraction(entry[name]) for name in exact if name in entry}
    return {**entry, **changed, "scores": scores}


def _as_pair(fraction):
    return fraction.numerator, fraction.denominator


def _label_score(match, model, ref):
    precision = match / model if model else None
    recall = match / ref if ref else None
    f1 = 2 * match / (model + ref) if model + ref else None
    return LabelScore(match, model, ref, precision, recall, f1)
