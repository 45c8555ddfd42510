"""Messages of a training in CRFsuite's layout: written, and read by a parser."""

from __future__ import annotations

import re
from fractions import Fraction

from skstruct.crfsuite.file import describe_header
from skstruct.crfsuite.log import LabelScore
from skstruct.utils.public_paths import set_module

__all__ = ["TrainLogParser", "storing_messages", "training_messages"]

_TITLES = {
    "lbfgs": "L-BFGS optimization",
    "l2sgd": "Stochastic Gradient Descent (SGD)",
    "ap": "Averaged perceptron",
    "pa": "Passive Aggressive",
    "arow": "Adaptive Regularization of Weights (AROW)",
}
_HEAD = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}")
_NUMBER = r"(\d+(?:\.\d+)?)"
# Entries of an iteration, and the line that each is read from.
_ENTRIES = {
    "loss": (re.compile(rf"Loss: {_NUMBER}"), float),
    "feature_norm": (re.compile(rf"Feature norm: {_NUMBER}"), float),
    "error_norm": (re.compile(rf"Error norm: {_NUMBER}"), float),
    "active_features": (re.compile(r"Active features: (\d+)"), int),
    "linesearch_trials": (re.compile(r"Line search trials: (\d+)"), int),
    "linesearch_step": (re.compile(rf"Line search step: {_NUMBER}"), float),
    "time": (re.compile(rf"Seconds required for this iteration: {_NUMBER}"), float),
}
_MACRO = re.compile(rf"Macro-average precision, recall, F1: \({_NUMBER}, {_NUMBER}, {_NUMBER}\)")
_ACCURACY = re.compile(r"(Item|Instance) accuracy: (\d+) / (\d+)")
_LABEL = re.compile(r"\s{4}(.+): \((\d+), (\d+), (\d+)\) \((\S+), (\S+), (\S+)\)")
_SECONDS = re.compile(rf"Seconds required: {_NUMBER}")


@set_module("skstruct.crfsuite")
class TrainLogParser:
    r"""Parser of the messages of a training, with the interface of python-crfsuite's.

    Attributes
    ----------
    iterations : list of dict
        Entries of each iteration, as of `TrainingLog.iterations`.
    last_iteration : dict or None
        The last of them.
    featgen_percent, featgen_num_features, featgen_seconds : int, int or None, float or None
        Progress of the feature generation, number of weights, and time.
    training_seconds, storing_seconds : float or None
        Times.
    log : list of str
        All messages.
    events : list of tuple
        For each event its name, and the first and the end of its messages in `log`.

    Examples
    --------
    >>> from skstruct.crfsuite import TrainLogParser
    >>> parser = TrainLogParser()
    >>> lines = ["Feature generation\n", "Number of features: 3\n", "Seconds required: 0.1\n"]
    >>> lines += ["***** Iteration #1 *****\n", "Loss: 2.5\n", "\n"]
    >>> [event for event in map(parser.feed, lines) if event]
    ['start', 'featgen_end', 'prepared', 'iteration']
    >>> parser.last_iteration
    {'num': 1, 'scores': {}, 'loss': 2.5}
    """

    def __init__(self):
        self.state = None
        self.featgen_percent = -2
        self.featgen_num_features = self.featgen_seconds = None
        self.training_seconds = self.storing_seconds = None
        self.iterations, self.last_iteration = [], None
        self.log, self.events = [], []

    @property
    def last_log(self):
        """Text of the messages of the last event."""
        _, first, end = self.events[-1]
        return "".join(self.log[first:end])

    def feed(self, line):
        """Read a message.

        Parameters
        ----------
        line : str
            The message.

        Returns
        -------
        event : str or None
            "start", "featgen_progress", "featgen_end", "prepared", "prepare_error", "iteration",
            "optimization_end" or "end" if the message completes one.
        """
        self.log.append(line)
        if self.state is None:
            self.state = "STARTING"
            self._read_starting(line)
            self.events.append(("start", 0, 1))
            return "start"
        event = getattr(self, f"_read_{self.state.lower()}")(line)
        if event is not None:
            # The message that shows that these are over belongs to what follows.
            end = len(self.log) - (event in ("prepared", "optimization_end"))
            self.events.append((event, self.events[-1][2], end))
        return event

    def _read_starting(self, line):
        if line.startswith("Feature generation"):
            self.state = "FEATGEN"

    def _read_featgen(self, line):
        if line == "." or line.isdigit():
            self.featgen_percent += 2
            return "featgen_progress"
        found = re.match(r"Number of features: (\d+)", line)
        if found:
            self.featgen_num_features = int(found[1])
        found = _SECONDS.match(line)
        if not found:
            return None
        self.featgen_seconds = float(found[1])
        self.state = "AFTER_FEATGEN"
        return "featgen_end"

    def _read_after_featgen(self, line):
        if self._begins_iteration(line):
            return "prepared"
        if "terminated with error" not in line:
            return None
        self.state = "AFTER_ITERATION"
        return "prepare_error"

    def _begins_iteration(self, line):
        found = _HEAD.match(line)
        if found:
            self.state = "ITERATION"
            self.last_iteration = {"num": int(found[1]), "scores": {}}
            self.iterations.append(self.last_iteration)
        return found

    def _read_iteration(self, line):
        if line == "\n":
            self.state = "AFTER_ITERATION"
            return "iteration"
        for name, (pattern, kind) in _ENTRIES.items():
            found = pattern.match(line)
            if found:
                self.last_iteration[name] = kind(found[1])
                return None
        self._read_scores(line)
        return None

    def _read_scores(self, line):
        entry = self.last_iteration
        if found := _MACRO.match(line):
            names = ("avg_precision", "avg_recall", "avg_f1")
            entry.update(zip(names, map(float, found.groups()), strict=True))
        elif found := _ACCURACY.match(line):
            share, name = Fraction(int(found[2]), int(found[3])), f"{found[1].lower()}_accuracy"
            entry[name], entry[f"{name}_float"] = share, float(share)
        elif found := _LABEL.match(line):
            counts = map(int, found.groups()[1:4])
            shares = (None if "*" in text else float(text) for text in found.groups()[4:])
            entry["scores"][found[1]] = LabelScore(*counts, *shares)

    def _read_after_iteration(self, line):
        if self._begins_iteration(line):
            return None
        found = re.match(rf"Total seconds required for training: {_NUMBER}", line)
        if found:
            self.training_seconds = float(found[1])
        if line.startswith("Storing the model"):
            self.state = "STORING"
            return "optimization_end"
        return None

    def _read_storing(self, line):
        found = _SECONDS.match(line)
        if found:
            self.storing_seconds = float(found[1])
        return "end" if line == "\n" else None


def training_messages(algorithm, params, log, holdout=-1):
    """Messages of a training that has ended, up to the storing of the model.

    Parameters
    ----------
    algorithm : str
        Short name.
    params : dict of str to object
        Parameters by CRFsuite's names.
    log : TrainingLog
        What happened.
    holdout : int, default=-1
        Number of the group that was held out.

    Yields
    ------
    message : str
    """
    if holdout != -1:
        yield from (f"Holdout group: {holdout + 1}\n", "\n")
    yield from ("Feature generation\n", "type: CRF1d\n")
    general = [name for name in params if name.startswith("feature.")]
    yield from (_setting(name, params[name]) for name in general)
    yield from (str(k // 5) if k % 5 == 0 else "." for k in range(51))
    yield from ("\n", f"Number of features: {log.featgen_num_features}\n")
    yield from ("Seconds required: 0.000\n", "\n", f"{_TITLES[algorithm]}\n")
    yield from (_setting(name, value) for name, value in params.items() if name not in general)
    yield "\n"
    for entry in log.iterations:
        yield f"***** {'Epoch' if algorithm == 'l2sgd' else 'Iteration'} #{entry['num']} *****\n"
        yield from _iteration(entry)
        yield "\n"
    yield from (f"Total seconds required for training: {log.training_seconds:.3f}\n", "\n")


def storing_messages(data, seconds):
    """Messages of the storing of a model.

    Parameters
    ----------
    data : bytes
        Content of the file; empty if there is none.
    seconds : float
        Time that writing took.

    Yields
    ------
    message : str
    """
    yield "Storing the model\n"
    if data:
        header = describe_header(data)
        yield f"Number of active features: {header['num_features']}\n"
        yield f"Number of active attributes: {header['num_attrs']}\n"
        yield f"Number of active labels: {header['num_labels']}\n"
    yield from (f"Seconds required: {seconds:.3f}\n", "\n")


def _setting(name, value):
    if isinstance(value, float):
        return f"{name}: {value:f}\n"
    return f"{name}: {int(value) if isinstance(value, bool) else value}\n"


def _iteration(entry):
    """Messages of one iteration after its head."""
    for name in ("loss", "feature_norm", "error_norm"):
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
            f"{share or 0.0:.4f}" if score.model or score.ref else "******"
            for share in (score.precision, score.recall, score.f1)
        )
        yield f"    {label}: ({score.match}, {score.model}, {score.ref}) ({shares})\n"
    means = ", ".join(f"{entry[f'avg_{name}']:f}" for name in ("precision", "recall", "f1"))
    yield f"Macro-average precision, recall, F1: ({means})\n"
    for title in ("Item", "Instance"):
        share = entry[f"{title.lower()}_accuracy"]
        yield (f"{title} accuracy: {share.numerator} / {share.denominator} ({float(share):.4f})\n")
