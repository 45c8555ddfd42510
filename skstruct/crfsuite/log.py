"""Training log in the form of python-crfsuite's, and CRFsuite's messages."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from skstruct.crfsuite.file import describe_header
from skstruct.utils.public_paths import set_module

# CRFsuite's names, and columns of `history_`, of which the first that exists is the source.
_COLUMNS = {
    "loss": ("objective", "loss"),
    "feature_norm": ("weight_norm",),
    "error_norm": ("gradient_norm",),
}
_MEANS = ("precision", "recall", "f1")
_TITLES = {
    "lbfgs": "L-BFGS optimization",
    "l2sgd": "Stochastic Gradient Descent (SGD)",
    "ap": "Averaged perceptron",
    "pa": "Passive Aggressive",
    "arow": "Adaptive Regularization of Weights (AROW)",
}


# CRFsuite's messages about the end of L-BFGS by what ended it, and one of ours.
_CRITERIA = "L-BFGS terminated with the stopping criteria"
STOP_REASONS = {
    "bound": "L-BFGS resulted in convergence",
    "gain": _CRITERIA,
    "watcher": _CRITERIA,
    "settled": "L-BFGS terminated as the objective has settled",
    "max_iter": "L-BFGS terminated with the maximum number of iterations",
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
    iterations : list of dict, default=()
        Entries of the iterations.
    featgen_num_features : int, default=0
        Number of weights.
    training_seconds : float, default=0.0
        Training time.
    stop_reason : str, default=""
        Message about the end of the training.

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
    stop_reason : str
        Why L-BFGS has stopped, in CRFsuite's words: "L-BFGS resulted in convergence" (the objective
        is provably near its minimum), "... terminated with the stopping criteria" (of `epsilon`, or
        `delta` and `period`) or "... with the maximum number of iterations"; or, in ours, "L-BFGS
        terminated as the objective has settled" (see `max_iterations` of `CRF`). Empty if no step
        decreased the objective, and with other algorithms.
    """

    # Stored logs may be without.
    stop_reason = ""

    def __init__(self, iterations=(), featgen_num_features=0, training_seconds=0.0, stop_reason=""):
        self.iterations = list(iterations)
        self.featgen_num_features = featgen_num_features
        self.training_seconds = training_seconds
        self.stop_reason = stop_reason

    @property
    def last_iteration(self):
        """The last iteration; None if there was none."""
        return self.iterations[-1] if self.iterations else None

    def __getstate__(self):
        # Fractions as pairs of integers, which every way of storing supports, and plain tuples.
        state = self.__dict__.copy()
        state["iterations"] = [
            _change(entry, Fraction.as_integer_ratio, tuple) for entry in self.iterations
        ]
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


# The class of ``trainer.logparser`` in python-crfsuite, which fills it from text.
TrainLogParser = TrainingLog


def _change(entry, as_fraction, as_score):
    """Entry with functions applied to the accuracies that are fractions and to the scores."""
    exact = ("item_accuracy", "instance_accuracy")
    scores = {label: as_score(score) for label, score in entry["scores"].items()}
    changed = {name: as_fraction(entry[name]) for name in exact if name in entry}
    return {**entry, **changed, "scores": scores}


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
        counts = [
            np.bincount(codes, minlength=len(self._code_of)).tolist()
            for codes in (self._true[right], predicted, self._true)
        ]
        scores = dict(zip(self._code_of, map(_label_score, *counts), strict=True))
        n_wrong = len(np.unique(self._owner[~right]))
        entry = {"scores": scores}
        for name in _MEANS:
            values = [getattr(score, name) or 0.0 for score in scores.values()]
            entry[f"avg_{name}"] = float(np.mean(values))
        for name, share in (
            ("item_accuracy", Fraction(int(right.sum()), max(len(right), 1))),
            ("instance_accuracy", Fraction(self._n_sequences - n_wrong, self._n_sequences)),
        ):
            entry[name], entry[f"{name}_float"] = share, float(share)
        self.scores.append(entry)


def _label_score(match, model, ref):
    precision = match / model if model else None
    recall = match / ref if ref else None
    f1 = 2 * match / (model + ref) if model + ref else None
    return LabelScore(match, model, ref, precision, recall, f1)


def log_entries(history, n_features, scores):
    """Yield the entry of each iteration of a history; epoch 0 only where there is no other.

    Parameters
    ----------
    history : dict of arrays
        That of an estimator.
    n_features : int
        Number of weights.
    scores : list of dict
        Those of `HeldOut`; empty without held-out sequences.
    """
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


def training_events(algorithm, params, log, holdout=-1):
    """Yield the events of a training up to the storing of the model, with CRFsuite's messages.

    Parameters
    ----------
    algorithm : str
        Short name.
    params : dict of str to object
        Parameters by CRFsuite's names.
    log : TrainingLog
        Log of the training.
    holdout : int, default=-1
        Number of the group that was held out.

    Yields
    ------
    event : str
        Name of the event, as in ``on_iteration``.
    messages : list of str
        Lines, and parts of lines.
    details : object
        The percentage of "featgen_progress" and the entry of "iteration"; else absent.
    """
    general = [name for name in params if name.startswith("feature.")]
    start = [] if holdout == -1 else [f"Holdout group: {holdout + 1}\n", "\n"]
    start += ["Feature generation\n", "type: CRF1d\n"]
    yield "start", start[:1]
    before = start[1:] + [_setting(name, params[name]) for name in general]
    for percent in range(0, 101, 2):
        dot = "." if percent % 10 else str(percent // 10)
        yield "featgen_progress", [*before, dot], percent
        before = []
    n_features = f"Number of features: {log.featgen_num_features}\n"
    yield "featgen_end", ["\n", n_features, "Seconds required: 0.000\n"]
    own = [_setting(name, value) for name, value in params.items() if name not in general]
    yield "prepared", ["\n", f"{_TITLES[algorithm]}\n", *own, "\n"]
    what = "Epoch" if algorithm == "l2sgd" else "Iteration"
    for entry in log.iterations:
        yield "iteration", [f"***** {what} #{entry['num']} *****\n", *_lines_of(entry), "\n"], entry
    reason = [f"{log.stop_reason}\n"] if log.stop_reason else []
    seconds = f"Total seconds required for training: {log.training_seconds:.3f}\n"
    yield "optimization_end", [*reason, seconds, "\n"]


def storing_messages(data, seconds):
    """List the messages about the storing of a model.

    Parameters
    ----------
    data : bytes
        Content of the file; empty if there is none.
    seconds : float
        Time that writing took.
    """
    header = describe_header(data) if data else {}
    counts = {"features": "num_features", "attributes": "num_attrs", "labels": "num_labels"}
    lines = [f"Number of active {what}: {header[name]}\n" for what, name in counts.items() if data]
    return ["Storing the model\n", *lines, f"Seconds required: {seconds:.3f}\n", "\n"]


def _setting(name, value):
    if isinstance(value, float):
        return f"{name}: {value:f}\n"
    return f"{name}: {int(value) if isinstance(value, bool) else value}\n"


def _lines_of(entry):
    """Lines about an iteration after its head."""
    for name in _COLUMNS:
        if name in entry:
            yield f"{name.capitalize().replace('_', ' ')}: {entry[name]:f}\n"
    if "active_features" in entry:
        yield f"Active features: {entry['active_features']}\n"
    yield f"Seconds required for this iteration: {entry['time']:.3f}\n"
    if not entry["scores"]:
        return
    yield "Performance by label (#match, #model, #ref) (precision, recall, F1):\n"
    for label, score in entry["scores"].items():
        shares = ", ".join(
            f"{share or 0.0:.4f}" if score.model or score.ref else "******" for share in score[3:]
        )
        yield f"    {label}: ({score.match}, {score.model}, {score.ref}) ({shares})\n"
    means = ", ".join(f"{entry[f'avg_{name}']:f}" for name in _MEANS)
    yield f"Macro-average precision, recall, F1: ({means})\n"
    for title in ("Item", "Instance"):
        share = entry[f"{title.lower()}_accuracy"]
        yield f"{title} accuracy: {share.numerator} / {share.denominator} ({float(share):.4f})\n"
