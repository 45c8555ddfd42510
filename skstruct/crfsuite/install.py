"""The names of python-crfsuite and sklearn-crfsuite, for programs that import these."""

import sys
from functools import wraps
from importlib.machinery import ModuleSpec
from itertools import chain
from types import ModuleType

from sklearn import metrics
from sklearn.metrics import make_scorer

from skstruct.crfsuite.estimator import CRF
from skstruct.crfsuite.items import ItemSequence
from skstruct.crfsuite.tagger import ModelInfo, Tagger
from skstruct.crfsuite.trainer import BaseTrainer, LabelScore, Trainer, TrainLogParser
from skstruct.utils.public_paths import set_module

# The release of CRFsuite whose interface and format these are.
_VERSION = "0.12"


@set_module("skstruct.crfsuite")
def install():
    """Let programs that import ``pycrfsuite`` or ``sklearn_crfsuite`` use this package.

    After the call, ``import pycrfsuite`` and ``import sklearn_crfsuite`` give modules with all
    names of these packages, whose classes are those of `skstruct.crfsuite`. The packages need not
    be installed; if they were imported before, later imports give the new modules. Call it before
    importing the program.

    Models pickled by the real ``sklearn_crfsuite`` cannot be read; model files can.

    Examples
    --------
    >>> import skstruct.crfsuite
    >>> skstruct.crfsuite.install()                               # doctest: +SKIP
    >>> import usaddress                                          # doctest: +SKIP
    """
    for module in (*_pycrfsuite(), *_sklearn_crfsuite()):
        sys.modules[module.__name__] = module
        package, _, name = module.__name__.rpartition(".")
        if package:
            setattr(sys.modules[package], name, module)


class CRFSuiteError(Exception):
    """Error of CRFsuite, never raised here."""


def _pycrfsuite():
    names = {
        "BaseTrainer": BaseTrainer,
        "CRFSUITE_VERSION": _VERSION,
        "CRFSuiteError": CRFSuiteError,
        "ItemSequence": ItemSequence,
        "Tagger": Tagger,
        "Trainer": Trainer,
    }
    yield _module("pycrfsuite", names, is_package=True)
    yield _module("pycrfsuite._pycrfsuite", names)
    parser = {"LabelScore": LabelScore, "TrainLogParser": TrainLogParser}
    yield _module("pycrfsuite._logparser", parser)
    yield _module("pycrfsuite._dumpparser", {"ParsedDump": ModelInfo})


def _sklearn_crfsuite():
    flat = {
        f"flat_{name}": _flattened(getattr(metrics, name))
        for name in (
            *("accuracy_score", "precision_score", "recall_score", "f1_score", "fbeta_score"),
            "classification_report",
        )
    }
    scores = {**flat, "sequence_accuracy_score": _sequence_accuracy}
    yield _module("sklearn_crfsuite", {"CRF": CRF}, is_package=True)
    yield _module("sklearn_crfsuite.estimator", {"CRF": CRF})
    yield _module("sklearn_crfsuite.metrics", scores)
    scorers = {
        "flat_accuracy": make_scorer(scores["flat_accuracy_score"]),
        "sequence_accuracy": make_scorer(_sequence_accuracy),
    }
    yield _module("sklearn_crfsuite.scorers", scorers)
    yield _module("sklearn_crfsuite.trainer", {"LinePerIterationTrainer": Trainer})
    yield _module("sklearn_crfsuite.utils", {"flatten": _flatten})


def _module(name, names, *, is_package=False):
    module = ModuleType(name, f"Stand-in for {name} by skstruct.crfsuite.install.")
    module.__spec__ = ModuleSpec(name, None, is_package=is_package)
    if is_package:
        module.__path__ = []
    vars(module).update(names)
    return module


def _flatten(y):
    """Join lists of labels into one list."""
    return list(chain.from_iterable(y))


def _flattened(score):
    """Score of scikit-learn for all tokens of all sequences."""

    @wraps(score)
    def flat(y_true, y_pred, *args, **kwargs):
        # Scores of scikit-learn take their options by name only.
        options = dict(zip(_OPTIONS.get(score.__name__, ()), args, strict=False))
        return score(_flatten(y_true), _flatten(y_pred), **options, **kwargs)

    return flat


_OPTIONS = {"fbeta_score": ("beta",), "classification_report": ("labels",)}


def _sequence_accuracy(y_true, y_pred):
    """Share of the sequences that are equal, whatever their lengths; 0 where there are none."""
    pairs = list(zip(y_true, y_pred, strict=True))
    return sum(list(a) == list(b) for a, b in pairs) / len(pairs) if pairs else 0
