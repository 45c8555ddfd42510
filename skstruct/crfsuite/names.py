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
from skstruct.crfsuite.pickles import FileResource
from skstruct.crfsuite.tagger import ModelInfo, Tagger
from skstruct.crfsuite.trainer import BaseTrainer, LabelScore, Trainer, TrainLogParser
from skstruct.utils.persistence import set_module


class CRFSuiteError(Exception):
    """Error of CRFsuite, never raised here."""


def _flatten(y):
    """Join lists of labels into one list."""
    return list(chain.from_iterable(y))


# Scores, and the options that they take by position, as scikit-learn's do not.
_SCORES = {
    metrics.accuracy_score: (),
    metrics.precision_score: (),
    metrics.recall_score: (),
    metrics.f1_score: (),
    metrics.fbeta_score: ("beta",),
    metrics.classification_report: ("labels",),
}


def _flattened(score):
    """Score of scikit-learn for all tokens of all sequences."""

    @wraps(score)
    def flat(y_true, y_pred, *args, **kwargs):
        names = _SCORES[score]
        if len(args) > len(names):
            raise TypeError(
                f"flat_{score.__name__} takes {2 + len(names)} positional arguments, but got "
                f"{2 + len(args)}. Pass options by name."
            )
        options = dict(zip(names, args, strict=False))
        return score(_flatten(y_true), _flatten(y_pred), **options, **kwargs)

    # pickle stores functions by these names.
    flat.__module__ = "sklearn_crfsuite.metrics"
    flat.__name__ = flat.__qualname__ = f"flat_{score.__name__}"
    return flat


def _sequence_accuracy(y_true, y_pred):
    """Share of the sequences that are equal, whatever their lengths; 0 where there are none."""
    true, pred = list(y_true), list(y_pred)
    if len(true) != len(pred):
        raise ValueError(f"y_true has {len(true)} sequences, but y_pred has {len(pred)}.")
    n_equal = sum(list(a) == list(b) for a, b in zip(true, pred, strict=True))
    return n_equal / len(true) if true else 0


_FLAT = {f"flat_{score.__name__}": _flattened(score) for score in _SCORES}
_CLASSES = (BaseTrainer, CRFSuiteError, ItemSequence, Tagger, Trainer)
# The release of CRFsuite whose interface and format these are.
_TAGGING = {"CRFSUITE_VERSION": "0.12", **{kind.__name__: kind for kind in _CLASSES}}
# Names in each module, a package before its parts.
_MODULES = {
    "pycrfsuite": _TAGGING,
    "pycrfsuite._pycrfsuite": _TAGGING,
    "pycrfsuite._logparser": {"LabelScore": LabelScore, "TrainLogParser": TrainLogParser},
    "pycrfsuite._dumpparser": {"ParsedDump": ModelInfo},
    "sklearn_crfsuite": {"CRF": CRF},
    "sklearn_crfsuite._fileresource": {"FileResource": FileResource},
    "sklearn_crfsuite.estimator": {"CRF": CRF},
    "sklearn_crfsuite.metrics": {**_FLAT, "sequence_accuracy_score": _sequence_accuracy},
    "sklearn_crfsuite.scorers": {
        "flat_accuracy": make_scorer(_FLAT["flat_accuracy_score"]),
        "sequence_accuracy": make_scorer(_sequence_accuracy),
    },
    "sklearn_crfsuite.trainer": {"LinePerIterationTrainer": Trainer},
    "sklearn_crfsuite.utils": {"flatten": _flatten},
}


@set_module("skstruct.crfsuite")
def install():
    """Let programs that import ``pycrfsuite`` or ``sklearn_crfsuite`` use this package.

    After the call, ``import pycrfsuite`` and ``import sklearn_crfsuite`` give modules with all
    names of these packages, whose classes are in `skstruct.crfsuite`. The packages need not
    be installed; if they were imported before, later imports give the new modules. Call it before
    importing the program.

    Pickles of ``sklearn_crfsuite.CRF``, also by joblib or inside other estimators, then load as
    `CRF`. As any pickle, they run code: load only those that you trust.

    Examples
    --------
    >>> import skstruct.crfsuite
    >>> skstruct.crfsuite.install()                               # doctest: +SKIP
    >>> import usaddress                                          # doctest: +SKIP
    """
    for path, names in _MODULES.items():
        module = ModuleType(path, f"Stand-in for {path} by skstruct.crfsuite.install().")
        vars(module).update(names)
        package, _, name = path.rpartition(".")
        module.__spec__ = ModuleSpec(path, None, is_package=not package)
        if package:
            setattr(sys.modules[package], name, module)
        else:
            module.__path__ = []
        sys.modules[path] = module
