"""Training with CRFsuite's parameters, and a trainer with python-crfsuite's interface."""

import os
import warnings
from copy import copy
from time import perf_counter
from types import MappingProxyType

from sklearn.exceptions import ConvergenceWarning

from skstruct.crfsuite.algorithms import (
    algorithm_named,
    make_estimator,
    parameters_of,
    read_value,
    stopping_rule,
)
from skstruct.crfsuite.items import as_label_lists, refuse_other_labels, snapshot
from skstruct.crfsuite.log import (
    STOP_REASONS,
    HeldOut,
    TrainingLog,
    log_entries,
    storing_messages,
    training_events,
)
from skstruct.crfsuite.model import tagger_to_bytes
from skstruct.crfsuite.online import OnlineCRF
from skstruct.utils.files import check_writable, write_whole
from skstruct.utils.progress import EpochRelay
from skstruct.utils.public_paths import set_module


def learn(params, X, y, X_dev=None, y_dev=None, tasks=None):
    """Train an estimator with the parameters of `CRF`.

    Parameters
    ----------
    params : dict
        Parameters of `CRF`; missing ones are None.
    X, y, X_dev, y_dev : object
        As in `CRF.fit`.
    tasks : FitTasks, default=None
        Tasks of a `CRF`, for its callbacks.

    Returns
    -------
    estimator : estimator
        Fitted estimator.
    labels : list of str
        Labels in order of first occurrence.
    log : TrainingLog
        Log of the training.
    """
    estimator = make_estimator(params)
    y = as_label_lists(y, "y")
    labels = list(dict.fromkeys(label for sequence in y for label in sequence))
    refuse_other_labels(y, labels)
    start = perf_counter()
    with warnings.catch_warnings():
        if params.get("max_iterations") is not None:
            # An explicit limit says that stopping before convergence is intended.
            warnings.simplefilter("ignore", ConvergenceWarning)
        held_out = _fit(estimator, X, y, X_dev, y_dev, labels, tasks, stopping_rule(params))
    # Labelling uses as many threads as joblib is configured for.
    estimator.set_params(n_jobs=None)
    if estimator._kind.per_token:
        raise ValueError(
            "X has features of transitions, which CRFsuite's models do not support. Use CRFTagger."
        )
    n_weights = getattr(estimator, "n_weights_", estimator.coef_.size)
    scores = [] if held_out is None else held_out.scores
    entries = log_entries(estimator.history_, n_weights, scores)
    reason = STOP_REASONS.get(getattr(estimator, "_reason", None), "")
    if params.get("verbose") and reason:
        print(reason)
    return estimator, labels, TrainingLog(entries, n_weights, perf_counter() - start, reason)


def _fit(estimator, X, y, X_dev, y_dev, labels, tasks, is_over):
    """Fit; if there are held-out sequences, score them at every iteration."""
    # Longer than any label.
    named, other = dict(zip(labels, labels, strict=True)), "".join(labels) + "."
    if isinstance(estimator, OnlineCRF):
        # Where scores are equal, CRFsuite takes the label that occurs first. So the estimator
        # learns from the numbers of the labels in this order.
        named, other = dict(zip(labels, range(len(labels)), strict=True)), len(labels)
        y = [[named[label] for label in sequence] for sequence in y]
    label_of = {name: label for label, name in named.items()}
    validation, held_out, watch = (None, None, None), None, None
    if X_dev is not None:
        y_dev = as_label_lists(y_dev, "y_dev")
        held_out = HeldOut(labels, y_dev)
        # A label that does not occur in training counts as wrong, whatever its number is.
        named_dev = [[named.get(label, other) for label in sequence] for sequence in y_dev]
        validation = X_dev, named_dev, None

        def watch(predicted):
            held_out.add([label_of[name] for name in sorted(label_of)], predicted)

    def finish(fitted):
        if isinstance(fitted, OnlineCRF):
            fitted.name_classes(labels)
        return {"_estimator": fitted, "_labels": labels}

    if tasks is not None:
        estimator.set_callbacks(EpochRelay(tasks, finish))
    estimator._fit_watched(X, y, None, validation, watch, is_over)
    if tasks is not None:
        estimator.set_callbacks()
    finish(estimator)
    return held_out


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
        xseq, yseq = snapshot(xseq), list(yseq)
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

        The messages of the training follow when it is over.

        Parameters
        ----------
        model : str or path-like
            Path of the file; an empty string writes no file.
        holdout : int, default=-1
            Group that is held out of the training and scored; -1 for none.
        """
        if os.fspath(model):
            check_writable(model)
        train = [s for s in self._sequences if holdout == -1 or s[2] != holdout]
        held = [s for s in self._sequences if holdout != -1 and s[2] == holdout]
        values = {self._parameter(name).ours: value for name, value in self._values.items()}
        X_dev, y_dev = ([s[k] for s in held] for k in (0, 1)) if held else (None, None)
        data, log = b"", TrainingLog()
        if train:
            params = {**values, "algorithm": self._algorithm}
            X, y = ([s[k] for s in train] for k in (0, 1))
            estimator, labels, log = learn(params, X, y, X_dev, y_dev)
            data = tagger_to_bytes(estimator, labels=labels)
        else:
            warnings.warn("There is no sequence to learn from; no model was written.", stacklevel=2)
        for event in training_events(self._algorithm, self.get_params(), log, holdout):
            self._report(log, *event)
        start = perf_counter()
        if data and os.fspath(model):
            write_whole(model, data)
        self._report(log, "end", storing_messages(data, perf_counter() - start))

    def _report(self, log, event, messages, *details):
        """Pass on the messages of an event."""
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
        return {parameter.theirs: parameter for parameter in parameters_of(self._algorithm)}

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
        """Take a message of the training; the event that it is about gets its text.

        Parameters
        ----------
        message : str
            A line, or a part of one, in CRFsuite's layout.
        """
        self._text += message

    def _report(self, log, event, messages, *details):
        """Pass on the messages of an event, and call its method."""
        if event == "start":
            self.logparser, self._text = copy(log), ""
            self.logparser.iterations = []
        if event == "iteration":
            self.logparser.iterations += details
        super()._report(log, event, messages)
        text, self._text = self._text, ""
        # As in python-crfsuite, the events after the features need an iteration.
        happened = log.iterations or event == "start" or event.startswith("featgen")
        if text and self.verbose and happened:
            getattr(self, f"on_{event}")(text, *details)

    def _print(self, text, *details):
        """Print the text of the messages."""
        print(text, end="")

    on_start = on_featgen_progress = on_featgen_end = on_prepared = on_prepare_error = _print
    on_iteration = on_optimization_end = on_end = _print
