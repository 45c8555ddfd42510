"""Training with CRFsuite's parameters, its log, and trainers with python-crfsuite's interface."""

import os
import warnings
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from numbers import Real
from time import perf_counter
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from skstruct.crfsuite.algorithms import (
    PARAMETERS,
    algorithm_named,
    make_estimator,
    read_value,
    stopping_rule,
)
from skstruct.crfsuite.file import encode_model
from skstruct.crfsuite.items import as_label_lists, check_tokens, snapshot
from skstruct.crfsuite.model import model_from_tagger
from skstruct.crfsuite.online import OnlineCRF
from skstruct.learning.monitor import Monitor
from skstruct.utils.files import check_writable, write_whole
from skstruct.utils.messages import DataError, errors_in
from skstruct.utils.persistence import set_module

# What the log counts.
UNIT = "iteration"
# Names of the held-out data in messages.
_HELD_OUT = "X_dev, y_dev"


def learn(params, X, y, X_dev=None, y_dev=None, monitor=None, name="Trainer"):
    """Train an estimator with the parameters of `CRF`.

    Parameters
    ----------
    params : dict
        Parameters of `CRF`; missing ones are None.
    X, y, X_dev, y_dev : object
        As in `CRF.fit`.
    monitor : Monitor, default=None
        Of a `CRF`, which closes it.
    name : str, default="Trainer"
        Name of the class that the user has called, for messages; used without `monitor`.

    Returns
    -------
    estimator : estimator
        Fitted estimator.
    labels : list of str
        Labels in order of first occurrence.
    log : TrainingLog
        Log of the training.
    """
    estimator, is_own = make_estimator(params), monitor is None
    if is_own:
        limit, verbose = estimator.max_iter, estimator.verbose
        monitor = Monitor(name=name, unit=UNIT, max_iter=limit, verbose=verbose)
    y = as_label_lists(y, "y")
    labels = list(dict.fromkeys(chain.from_iterable(y)))
    start = perf_counter()
    # An explicit limit says that stopping before convergence is intended.
    how, is_over = {"complains": params.get("max_iterations") is None}, stopping_rule(params)
    if is_over is not None:
        how["on_epoch"] = lambda monitor, _: is_over(monitor.history)
    held_out = _fit(estimator, X, y, X_dev, y_dev, labels, monitor, how)
    # Labelling uses as many threads as joblib is configured for.
    estimator.set_params(n_jobs=None)
    if estimator._kind.per_token:
        raise ValueError(
            "X has features of transitions, which CRFsuite's models do not support. Use CRFTagger."
        )
    n_weights = getattr(estimator, "n_weights_", estimator.coef_.size + estimator.transition_.size)
    scores = [] if held_out is None else held_out.scores
    entries = list(log_entries(estimator.history_, n_weights, scores))
    reason = STOP_REASONS.get(getattr(estimator, "_reason", None), "")
    log = TrainingLog(entries, n_weights, perf_counter() - start, reason)
    if is_own:
        close(monitor, log, params.get("verbose"))
    return estimator, labels, log


def close(monitor, log, verbose):
    """Report the end of a training, and why it has ended."""
    monitor.close()
    if verbose and log.stop_reason:
        print(log.stop_reason)


def _fit(estimator, X, y, X_dev, y_dev, labels, monitor, how):
    """Fit; if there are held-out sequences, score them at every iteration."""
    is_online = isinstance(estimator, OnlineCRF)
    number_of = {label: number for number, label in enumerate(labels)}

    def as_learnt(y):
        """Labels as the estimator learns them.

        Where scores are equal, CRFsuite takes the label that occurs first. So online algorithms
        learn from the numbers of the labels in this order, and labels that do not occur have one
        more.
        """
        if not is_online:
            return y
        return [[number_of.get(label, len(labels)) for label in sequence] for sequence in y]

    validation, held_out, watch = (None, None, None), None, None
    if X_dev is not None:
        y_dev = _read_held_out_labels(y_dev, labels)
        held_out = HeldOut(labels, labels if is_online else sorted(labels), y_dev)
        validation, watch = (X_dev, as_learnt(y_dev), None), held_out.add

    def finish(fitted):
        if is_online:
            fitted.name_classes(labels)
        return {"_estimator": fitted, "_labels": labels}

    how |= {"on_prediction": watch, "finish": finish}
    try:
        estimator._fit_watched(X, as_learnt(y), None, validation, monitor, **how)
    except DataError as error:
        # A tagger has names of its own for the held-out sequences.
        error.part = error.part and _HELD_OUT
        raise
    finish(estimator)
    return held_out


def _read_held_out_labels(y_dev, labels):
    with errors_in(part=_HELD_OUT):
        y_dev = as_label_lists(y_dev, "y_dev")
    found = set(chain.from_iterable(y_dev))
    if found and found.isdisjoint(labels):
        raise ValueError(f"{_HELD_OUT}: none of the labels {sorted(found)} occurs in training.")
    return y_dev


@set_module("skstruct.crfsuite")
class BaseTrainer:
    """Trainer with the interface of ``pycrfsuite.BaseTrainer``: passes on messages unchanged.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default=None
        Training algorithm; None means "lbfgs".
    params : dict, default=None
        Parameters, with python-crfsuite's names, such as ``"feature.minfreq"``.
    verbose : bool, default=True
        If True, print the messages.

    See Also
    --------
    Trainer : Calls a method for each event of a training.
    """

    # As in python-crfsuite, a subclass need not call __init__.
    verbose = None
    _algorithm = "lbfgs"
    _sequences = ()
    _values = MappingProxyType({})

    def __init__(self, algorithm=None, params=None, verbose=True):
        self.verbose = verbose
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)

    def select(self, algorithm, type="crf1d"):
        """Select the algorithm, and reset the parameters to their defaults.

        Parameters
        ----------
        algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}
            Training algorithm.
        type : {"crf1d"}, default="crf1d"
            Type of the model.
        """
        if type != "crf1d":
            raise ValueError(f"Bad arguments: algorithm={algorithm!r}, type={type!r}")
        self._algorithm = algorithm_named(algorithm)
        self._values = {}

    def params(self):
        """Return the names of the algorithm's parameters.

        Returns
        -------
        names : list of str
        """
        return list(self._parameters())

    def set_params(self, params):
        """Set several parameters.

        Parameters
        ----------
        params : dict of str to object
            Values of the parameters by name.
        """
        for name, value in params.items():
            self.set(name, value)

    def set(self, name, value):
        """Set a parameter.

        Parameters
        ----------
        name : str
            Name of the parameter.
        value : object
            Number, bool or word, also as a string.
        """
        value = read_value(self._parameter(name), value)
        self._values = {**self._values, name: value}

    def get(self, name):
        """Return the value of a parameter.

        Parameters
        ----------
        name : str
            Name of the parameter.

        Returns
        -------
        value : bool, int, float or str
        """
        return self._values.get(name, self._parameter(name).default)

    def get_params(self):
        """Return the values of all parameters.

        Returns
        -------
        params : dict of str to object
        """
        return {name: self.get(name) for name in self.params()}

    def help(self, name):
        """Return the description of a parameter.

        Parameters
        ----------
        name : str
            Name of the parameter.

        Returns
        -------
        description : str
        """
        return self._parameter(name).help

    def append(self, xseq, yseq, group=0):
        """Add a copy of a sequence to the training set.

        Parameters
        ----------
        xseq : list of tokens
            Feature dicts or lists of attribute strings, or an `ItemSequence`.
        yseq : list of str
            Labels of the tokens.
        group : int, default=0
            Number of its group; `train` can hold out a group.
        """
        xseq = snapshot(xseq, len(self._sequences))
        (yseq,) = as_label_lists([list(yseq)], "yseq", len(self._sequences))
        if len(xseq) != len(yseq):
            raise ValueError(
                f"The numbers of items and labels differ: |x| = {len(xseq)}, |y| = {len(yseq)}"
            )
        if not self._sequences:
            self.clear()
        self._sequences.append((xseq, yseq, group))

    def clear(self):
        """Remove all sequences."""
        self._sequences = []

    def train(self, model, holdout=-1):
        """Train, and write the model file.

        All messages come after the training.

        Parameters
        ----------
        model : str or path-like
            Path of the file; an empty string writes no file.
        holdout : int, default=-1
            Group that is held out of the training and scored; -1 for none.
        """
        if not isinstance(holdout, Real):
            raise TypeError(f"holdout is {holdout!r}; expected the number of a group, or -1.")
        if os.fspath(model):
            check_writable(model)
        train = [s for s in self._sequences if holdout == -1 or s[2] != holdout]
        held = [s for s in self._sequences if holdout != -1 and s[2] == holdout]
        values = {self._parameter(name).ours: value for name, value in self._values.items()}
        X_dev, y_dev = ([s[k] for s in held] for k in (0, 1)) if held else (None, None)
        data, counts, log = b"", {}, TrainingLog()
        if train:
            params = {**values, "algorithm": self._algorithm}
            X, y = ([s[k] for s in train] for k in (0, 1))
            try:
                name = type(self).__name__
                estimator, labels, log = learn(params, X, y, X_dev, y_dev, name=name)
            except ValueError:
                # Sequences have the numbers of their calls of append, also if some are held out.
                for i, (tokens, *_) in enumerate(self._sequences):
                    check_tokens(tokens, i)
                raise
            stored = model_from_tagger(estimator, labels=labels)
            data = encode_model(stored)
            counts = {
                "features": (len(stored.states) + len(stored.pairs), log.featgen_num_features),
                "attributes": (len(stored.attributes), estimator.n_features_in_),
                "labels": (len(labels), len(labels)),
            }
        else:
            warnings.warn("There is no sequence to learn from; no model was written.", stacklevel=2)
        for event in training_events(self._algorithm, self.get_params(), log, holdout):
            self._report(log, *event)
        start = perf_counter()
        if data and os.fspath(model):
            write_whole(model, data)
        self._report(log, "end", storing_messages(counts, perf_counter() - start))

    def _report(self, log, event, messages, *details):
        for message in messages:
            self.message(message)

    def message(self, message):
        """Take a message of the training; prints it if `verbose`.

        Parameters
        ----------
        message : str
            A line, or a part of one, in CRFsuite's layout.
        """
        if self.verbose:
            print(message, end="")

    def _parameters(self):
        return {parameter.theirs: parameter for parameter in PARAMETERS[self._algorithm]}

    def _parameter(self, name):
        found = self._parameters().get(name)
        if found is None:
            raise ValueError(f"Parameter not found: {name}")
        return found


@set_module("skstruct.crfsuite")
class Trainer(BaseTrainer):
    """Trainer with the interface of ``pycrfsuite.Trainer``: writes model files.

    A drop-in replacement that trains as `CRF` does. A subclass may override ``message``, and the
    methods that are called when something has happened: ``on_start``, ``on_featgen_progress``,
    ``on_featgen_end``, ``on_prepared``, ``on_prepare_error``, ``on_iteration``,
    ``on_optimization_end`` and ``on_end``. They get the text of the messages, which they print, and
    the second and the sixth the percentage and the entry of the iteration.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default=None
        Training algorithm; None means "lbfgs".
    params : dict, default=None
        Parameters, with python-crfsuite's names, such as ``"feature.minfreq"``.
    verbose : bool, default=True
        If True, print the messages.

    Attributes
    ----------
    logparser : TrainingLog or None
        Log of the last training. In a method such as `on_iteration`, its iterations up to that one.

    See Also
    --------
    CRF : Trainer and tagger in one estimator.

    Examples
    --------
    >>> import tempfile
    >>> from skstruct.crfsuite import Tagger, Trainer
    >>> trainer = Trainer(verbose=False, params={"c2": 0.1})
    >>> trainer.append([["word=the"], ["word=cat"]], ["DET", "NOUN"])
    >>> trainer.append([["word=a"], ["word=dog"]], ["DET", "NOUN"])
    >>> tagger = Tagger()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trainer.train(f"{folder}/model.crfsuite")
    ...     context = tagger.open(f"{folder}/model.crfsuite")
    >>> tagger.tag([["word=the"], ["word=dog"]])
    ['DET', 'NOUN']
    """

    logparser = None
    _text = ""

    def message(self, message):
        """Take a message of the training; its text goes to the method of the event.

        Parameters
        ----------
        message : str
            A line, or a part of one, in CRFsuite's layout.
        """
        self._text += message

    def _report(self, log, event, messages, *details):
        if event == "start":
            self.logparser, self._text = replace(log, iterations=[]), ""
        if event == "iteration":
            self.logparser.iterations += details
        super()._report(log, event, messages)
        text, self._text = self._text, ""
        # As in python-crfsuite, the events after the features need an iteration.
        happened = log.iterations or event == "start" or event.startswith("featgen")
        if text and self.verbose and happened:
            getattr(self, f"on_{event}")(text, *details)

    def _print(self, text, *details):
        print(text, end="")

    on_start = on_featgen_progress = on_featgen_end = on_prepared = on_prepare_error = _print
    on_iteration = on_optimization_end = on_end = _print


# The log of a training, and CRFsuite's messages about it

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
    "monitor": _CRITERIA,
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
        None for a label that is neither predicted nor true; 0 where there is nothing to divide by.
    """

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


@set_module("skstruct.crfsuite")
@dataclass(eq=False, repr=False)
class TrainingLog:
    """Log of a training, with the attributes of python-crfsuite's log.

    Parameters
    ----------
    iterations : list of dict, default=[]
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
        For each iteration ``"num"``, ``"loss"`` (the objective; with other algorithms than
        L-BFGS the loss alone, during the iteration), ``"feature_norm"`` (of all weights; with
        other algorithms of the weights of attributes, before averaging), ``"time"`` (seconds),
        ``"scores"``, and for L-BFGS ``"error_norm"`` (of the gradient) and ``"active_features"``
        (the number of weights, also those that are zero). With an L1 penalty the first ones are
        passes of the dual ascent, where the loss is an estimate and ``"error_norm"`` missing. With
        held-out sequences, also their scores: ``"scores"`` then has a `LabelScore` for each label;
        ``"avg_precision"``, ``"avg_recall"`` and ``"avg_f1"``; ``"item_accuracy"`` and
        ``"instance_accuracy"``, the shares of correct tokens and sequences as fractions, and with
        the suffix ``"_float"`` as floats.
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

    iterations: list = field(default_factory=list)
    featgen_num_features: int = 0
    training_seconds: float = 0.0
    stop_reason: str = ""

    @property
    def last_iteration(self):
        """The last iteration; None if there was none."""
        return self.iterations[-1] if self.iterations else None

    def __getstate__(self):
        # Every format can store pairs of integers and plain tuples.
        state = self.__dict__.copy()
        state["iterations"] = [_change(entry, _write_fraction, tuple) for entry in self.iterations]
        return state

    def __setstate__(self, state):
        try:
            # The state may come from python-crfsuite's log, where the last iteration is stored.
            self.__dict__.update({k: v for k, v in state.items() if k != "last_iteration"})
            self.iterations = [
                _change(entry, _read_fraction, lambda score: LabelScore(*score))
                for entry in self.iterations
            ]
        except Exception as error:
            raise ValueError(f"This stored TrainingLog is damaged: {error}") from error


# The class of ``trainer.logparser`` in python-crfsuite, which fills it from text.
TrainLogParser = TrainingLog


def _change(entry, as_fraction, as_score):
    """Copy of an entry, with functions applied to its fractions and its label scores."""
    exact = ("item_accuracy", "instance_accuracy")
    scores = {label: as_score(score) for label, score in entry.get("scores", {}).items()}
    changed = {name: as_fraction(entry[name]) for name in exact if name in entry}
    return {**entry, **changed, "scores": scores}


def _write_fraction(value):
    """Pair of integers; any other value stays as it is."""
    return value.as_integer_ratio() if isinstance(value, Fraction) else value


def _read_fraction(value):
    """Fraction from a pair of integers; python-crfsuite's is one already."""
    return Fraction(*value) if isinstance(value, (tuple, list)) else value


class HeldOut:
    """Scores of held-out sequences, once for each iteration.

    Parameters
    ----------
    labels, classes : list of str
        Labels of the training set, in order of first occurrence and in the order of their codes.
    y : list of list of str
        True labels of the held-out sequences.

    Attributes
    ----------
    scores : list of dict
        For each iteration, the entries that it adds to `TrainingLog.iterations`.
    """

    def __init__(self, labels, classes, y):
        flat = [label for sequence in y for label in sequence]
        names = dict.fromkeys([*labels, *flat])
        self._code_of = {name: code for code, name in enumerate(names)}
        self._code_of_class = np.array([self._code_of[label] for label in classes], np.int64)
        self._true = np.array([self._code_of[label] for label in flat], np.int64)
        self._owner = np.repeat(np.arange(len(y)), [len(sequence) for sequence in y])
        self._n_sequences = len(y)
        self.scores = []

    def add(self, predicted):
        """Add the scores of an iteration from the codes that it predicts, one for each token."""
        predicted = self._code_of_class[predicted]
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
    if not model and not ref:
        return LabelScore(match, model, ref, None, None, None)
    f1 = 2 * match / (model + ref)
    return LabelScore(match, model, ref, match / max(model, 1), match / max(ref, 1), f1)


def log_entries(history, n_features, scores):
    """Yield the log entry of each iteration; epoch 0 only where there is no other.

    Parameters
    ----------
    history : dict of arrays
        History of an estimator.
    n_features : int
        Number of weights.
    scores : list of dict
        As in `HeldOut`; empty without held-out sequences.
    """
    columns = {
        "loss": history.get("objective", history.get("loss")),
        "feature_norm": history.get("weight_norm"),
        "error_norm": history.get("gradient_norm"),
    }
    # Without a single iteration there are no columns.
    epochs = history.get("epoch", ())
    times = np.diff(history.get("time", ()), prepend=0.0)
    for k in range(len(epochs)):
        if epochs[k] == 0 and len(epochs) > 1:
            continue
        entry = {"num": int(epochs[k]), "scores": {}}
        known = {name: float(c[k]) for name, c in columns.items() if c is not None}
        entry |= {name: value for name, value in known.items() if not np.isnan(value)}
        if "gradient_norm" in history:
            entry["active_features"] = n_features
        entry["time"] = float(times[k])
        yield entry | (scores[k] if scores else {})


def training_events(algorithm, params, log, holdout):
    """Yield the events of a training before the model is stored, with CRFsuite's messages.

    Parameters
    ----------
    algorithm : str
        Short name.
    params : dict of str to object
        Parameters by CRFsuite's names.
    log : TrainingLog
        Log of the training.
    holdout : int
        Number of the group that was held out; -1 for none.

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


def storing_messages(counts, seconds):
    """List the messages about the storing of a model.

    Parameters
    ----------
    counts : dict of str to tuple of int
        How many weights, attributes and labels the file has, and how many there were to learn;
        empty if there is no file.
    seconds : float
        Time that writing took.
    """
    lines = [f"Number of active {what}: {n} ({of})\n" for what, (n, of) in counts.items()]
    return ["Storing the model\n", *lines, f"Seconds required: {seconds:.3f}\n", "\n"]


def _setting(name, value):
    if isinstance(value, float):
        return f"{name}: {value:f}\n"
    return f"{name}: {int(value) if isinstance(value, bool) else value}\n"


def _lines_of(entry):
    """Lines about an iteration after its head."""
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
        shares = ", ".join(f"{share:.4f}" if score.ref else "******" for share in score[3:])
        yield f"    {label}: ({score.match}, {score.model}, {score.ref}) ({shares})\n"
    means = ", ".join(f"{entry[f'avg_{name}']:f}" for name in _MEANS)
    yield f"Macro-average precision, recall, F1: ({means})\n"
    for title in ("Item", "Instance"):
        share = entry[f"{title.lower()}_accuracy"]
        yield f"{title} accuracy: {share.numerator} / {share.denominator} ({float(share):.4f})\n"
