"""Estimators and vectorisers by name, with parameters from the command line."""

from __future__ import annotations

import inspect
import io

import click
from sklearn.utils._param_validation import InvalidParameterError

import skstruct
from skstruct.taggers.base import BaseTagger
from skstruct.utils.files import read_text

__all__ = ["estimator_names", "find_estimator", "make", "make_vectorizer", "parameters_of"]

RERANKERS = ("PerceptronReranker", "SGDReranker", "TruncatedGradientReranker", "VRDAReranker")
STACKED = "NBestReranker"
_PUBLIC = {name: getattr(skstruct, name) for name in skstruct.__all__}
TAGGERS = tuple(
    sorted(k for k, v in _PUBLIC.items() if isinstance(v, type) and issubclass(v, BaseTagger))
)


def estimator_names():
    """Names of all taggers and rerankers, and of the reranker on top of a tagger."""
    return [*TAGGERS, *RERANKERS, STACKED]


def find_estimator(name):
    """Return the class of a public name."""
    return getattr(skstruct, name)


def parameters_of(kind):
    """Names of the parameters of a class, in the order of its signature."""
    return list(inspect.signature(kind).parameters)


def make(kind, parameters, option):
    """Make an estimator with parameters that are checked now.

    Parameters
    ----------
    kind : type
    parameters : dict
    option : str
        Option that they come from, for messages.

    Returns
    -------
    estimator : object

    Raises
    ------
    click.BadParameter
        If the class has no parameter of a name, or a value is invalid.
    """
    known, hint = parameters_of(kind), ""
    if kind.__name__ == STACKED:
        parameters = _with_parts(parameters, option)
        hint = ", and those of its parts, such as tagger__max_iter"
    for name in parameters:
        if name not in known:
            raise click.BadParameter(
                f"{kind.__name__} has no parameter {name!r}; its parameters are "
                f"{', '.join(known)}{hint}.",
                param_hint=option,
            )
    estimator = kind(**parameters)
    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
    return estimator


def _with_parts(parameters, option):
    """Parameters of `NBestReranker` with a tagger and a reranker in place of names and parameters.

    The features of labellings are the ready-made ones, since functions cannot be typed in.
    """
    found = {"features": "labels"}
    defaults = {
        "tagger": (TAGGERS, "CRFTagger", {}),
        "reranker": (RERANKERS, "VRDAReranker", {"random_state": 0}),
    }
    for part, (names, default, always) in defaults.items():
        asked = str(parameters.get(part, default))
        name = next((name for name in names if name.lower() == asked.lower()), None)
        if name is None:
            raise click.BadParameter(
                f"{part}={asked}: expected one of {', '.join(names)}.", param_hint=option
            )
        own = {
            key.removeprefix(f"{part}__"): value
            for key, value in parameters.items()
            if key.startswith(f"{part}__")
        }
        found[part] = make(
            find_estimator(name), {**({} if part in parameters else always), **own}, option
        )
    rest = {k: v for k, v in parameters.items() if k.partition("__")[0] not in defaults}
    return {**found, **rest}


def make_vectorizer(features, template, parameters, gazetteers, clusters):
    """Make the vectoriser that the options ask for.

    Parameters
    ----------
    features : {"words", "template", "none"}
    template : str or None
        Path of a template.
    parameters : dict
        Of the vectoriser.
    gazetteers : dict of str to str
        Paths of files with a name in each line.
    clusters : str or None
        Path of a file of Brown clusters.

    Returns
    -------
    vectorizer : estimator or None
        None for "none".
    """
    if template is not None:
        parameters = {"template": read_text(template).splitlines(), **parameters}
        features = "template"
    if features != "words" and (gazetteers or clusters):
        raise click.UsageError("--gazetteer and --clusters are for --features words.")
    if features == "none":
        return None
    parameters = dict(parameters)
    if gazetteers:
        parameters["gazetteers"] = {n: _read_names(path) for n, path in gazetteers.items()}
    if clusters:
        parameters["clusters"] = _read_clusters(clusters)
    kind = "WordVectorizer" if features == "words" else "TemplateVectorizer"
    return make(find_estimator(kind), parameters, "-f")


def _read_names(path):
    return [line.strip() for line in _lines(path) if line.strip()]


def _read_clusters(path):
    """Words and paths of a file whose lines are path, word and count, separated by tabs."""
    found = {}
    for number, line in enumerate(_lines(path), start=1):
        fields = line.rstrip("\n").split("\t")
        if len(fields) < 2:
            raise ValueError(f"{path}, line {number}: expected a path, a tab and a word.")
        found[fields[1]] = fields[0]
    return found


def _lines(path):
    return io.StringIO(read_text(path), newline=None)
