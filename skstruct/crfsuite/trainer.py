"""Training with CRFsuite's parameters, and a trainer with python-crfsuite's interface."""

from __future__ import annotations

import os
import warnings
from time import perf_counter

from sklearn.exceptions import ConvergenceWarning

from skstruct.crfsuite.algorithms import algorithm_named, make_estimator, parameters_of
from skstruct.crfsuite.log import HeldOut, TrainingLog
from skstruct.crfsuite.model import tagger_to_bytes
from skstruct.crfsuite.tagger import as_tokens
from skstruct.utils.files import write_whole
from skstruct.utils.public_paths import set_module

__all__ = ["Trainer", "learn"]

# Parameters of python-crfsuite that have another name in sklearn-crfsuite.
_RENAMED = {
    "feature.minfreq": "min_freq",
    "feature.possible_states": "all_possible_states",
    "feature.possible_transitions": "all_possible_transitions",
    "type": "pa_type",
    **{
        f"calibration.{name}": f"calibration_{name}"
        for name in ("eta", "rate", "samples", "candidates", "max_trials")
    },
}
_FLAGS = {"all_possible_states", "all_possible_transitions", "error_sensitive", "averaging"}
_WORDS = {"linesearch"}
_WHOLE_NUMBERS = {"max_iterations", "num_memories", "period", "max_linesearch", "pa_type"}


def learn(params, X, y, X_dev=None, y_dev=None):
    """Train an estimator with the parameters of `CRF`.

    Parameters
    ----------
    params : dict
        Parameters of `CRF`; missing ones are None.
    X, y, X_dev, y_dev : object
        As in `CRF.fit`.

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
    y = [list(sequence) for sequence in y]
    labels = list(dict.fromkeys(label for sequence in y for label in sequence))
    if not all(isinstance(label, str) for label in labels):
        raise ValueError(f"Labels must be strings; got {labels[:3]!r}, ...")
    start = perf_counter()
    with warnings.catch_warnings():
        if params.get("max_iterations") is not None:
            # An explicit limit says that stopping before convergence is intended.
            warnings.simplefilter("ignore", ConvergenceWarning)
        held_out = _fit(estimator, X, y, X_dev, y_dev, labels)
    if hasattr(estimator, "transition_coef_"):
        raise ValueError(
            "X has features of transitions, which CRFsuite's models do not support. Use CRFTagger."
        )
    n_weights = getattr(estimator, "n_weights_", estimator.coef_.size)
    log = TrainingLog(estimator, n_weights, perf_counter() - start, held_out)
    return estimator, labels, log


def _fit(estimator, X, y, X_dev, y_dev, labels):
    """Fit; if there are held-out sequences, score them at every iteration."""
    if X_dev is None:
        estimator.fit(X, y)
        return None
    y_dev = [list(sequence) for sequence in y_dev]
    held_out = HeldOut(labels, y_dev)
    estimator._fit_watched(
        *(X, y, None, (X_dev, y_dev, None)),
        on_prediction=lambda predicted: held_out.add(estimator.classes_, predicted),
    )
    return held_out


@set_module("skstruct.crfsuite")
class Trainer:
    """Trainer with the interface of ``pycrfsuite.Trainer``: writes model files.

    A drop-in replacement that trains as `CRF` does.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa"}, default=None
        Training algorithm; None means "lbfgs".
    params : dict, default=None
        Parameters, with python-crfsuite's names, such as ``"feature.minfreq"``.
    verbose : bool, default=True
        If True, print a line for each iteration.

    Attributes
    ----------
    logparser : TrainingLog or None
        Log of the last training.

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

    def __init__(self, algorithm=None, params=None, verbose=True):
        self.verbose = verbose
        self.logparser = None
        self._values = {}
        self.select("lbfgs" if algorithm is None else algorithm)
        self.clear()
        if params is not None:
            self.set_params(params)

    def select(self, algorithm, type="crf1d"):
        """Select the algorithm, and reset the parameters to their defaults.

        Parameters
        ----------
        algorithm : {"lbfgs", "l2sgd", "ap", "pa"}
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
        theirs = {ours: name for name, ours in _RENAMED.items()}
        return [theirs.get(name, name) for name in sorted(parameters_of(self._algorithm))]

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
        if name not in self.params():
            raise ValueError(f"Parameter not found: {name} = {value}")
        self._values[name] = _as_value(_RENAMED.get(name, name), value)

    def get(self, name):
        """Return the value of a parameter.

        Parameters
        ----------
        name : str
            Name of the parameter.

        Returns
        -------
        value : object
            None if it was not set, which means CRFsuite's default.
        """
        if name not in self.params():
            raise ValueError(f"Parameter not found: {name}")
        return self._values.get(name)

    def get_params(self):
        """Return the values of all parameters.

        Returns
        -------
        params : dict of str to object
        """
        return {name: self.get(name) for name in self.params()}

    def append(self, xseq, yseq, group=0):
        """Add a sequence to the training set.

        Parameters
        ----------
        xseq : list of tokens
            Feature dicts or lists of attribute strings, or an ``ItemSequence``.
        yseq : list of str
            Labels of the tokens.
        group : int, default=0
            Number of its group; `train` can hold out a group.
        """
        xseq, yseq = list(as_tokens(xseq)), list(yseq)
        if len(xseq) != len(yseq):
            raise ValueError(
                f"The numbers of items and labels differ: |x| = {len(xseq)}, |y| = {len(yseq)}"
            )
        self._sequences.append((xseq, yseq, group))

    def clear(self):
        """Remove all sequences."""
        self._sequences = []

    def train(self, model, holdout=-1):
        """Train, and write the model file.

        Parameters
        ----------
        model : str or path-like
            Path of the file; an empty string writes no file.
        holdout : int, default=-1
            Group that is held out of the training and scored; -1 for none.
        """
        train = [s for s in self._sequences if holdout == -1 or s[2] != holdout]
        held = [s for s in self._sequences if holdout != -1 and s[2] == holdout]
        params = {_RENAMED.get(name, name): value for name, value in self._values.items()}
        params |= {"algorithm": self._algorithm, "verbose": self.verbose}
        X_dev, y_dev = ([s[k] for s in held] for k in (0, 1)) if held else (None, None)
        estimator, labels, self.logparser = learn(
            params, [s[0] for s in train], [s[1] for s in train], X_dev, y_dev
        )
        if os.fspath(model):
            write_whole(model, tagger_to_bytes(estimator, labels=labels))


def _as_value(name, value):
    """Value of a parameter, which may be given as a string, in its own type."""
    if name in _WORDS:
        return str(value)
    if name in _FLAGS:
        return bool(int(value))
    return int(value) if name in _WHOLE_NUMBERS else float(value)
