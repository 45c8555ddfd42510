"""Estimators and vectorisers by name, with parameters from the command line."""

import io

import click

import skstruct
from skstruct.cli.options import find_name
from skstruct.utils.files import read_text

TAGGERS = (
    "AROWTagger",
    "CRFTagger",
    "CRFTaggerCV",
    "MIRATagger",
    "PerceptronTagger",
    "SAPOTagger",
    "SDCACRF",
)
RERANKERS = ("PerceptronReranker", "SGDReranker", "TruncatedGradientReranker", "VRDAReranker")
STACKED = "NBestReranker"
SPANS, CONFORMAL = AROUND = ("SpanTaggerCV", "ConformalTagger")
# Learns from several annotators, whose labels stand in a file each.
OF_ANNOTATORS = "AnnotatorCRF"
# All taggers and rerankers, and what is put together of them.
ESTIMATORS = (*TAGGERS, *RERANKERS, STACKED, *AROUND, OF_ANNOTATORS)
# The part of each of the latter that is a tagger.
TAGGER_OF = {STACKED: "tagger__", **dict.fromkeys(AROUND, "estimator__")}


def make(name, parameters, option):
    """Make an estimator with parameters that are checked now.

    Parameters
    ----------
    name : str
        Public name of its class.
    parameters : dict
        As of ``set_params``. In place of the parts of `NBestReranker`, `SpanTaggerCV` and
        `ConformalTagger` there are their names.
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
    parameters = dict(parameters)
    try:
        composed = name in TAGGER_OF
        estimator = _composed(name, parameters) if composed else getattr(skstruct, name)()
        estimator.set_params(**parameters)
        for part in (estimator, *vars(estimator).values()):
            if hasattr(part, "_validate_params"):
                part._validate_params()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
    return estimator


def _composed(name, parameters):
    """Make an estimator with parts, and put these in place of their names in the parameters.

    Features of labellings are ready-made, since the command line has no functions.
    """
    tagger = skstruct.CRFTagger()
    if name == STACKED:
        reranker = skstruct.VRDAReranker(random_state=0)
        composed = skstruct.NBestReranker(tagger, reranker, features="labels")
        parts = ("tagger", TAGGERS), ("reranker", RERANKERS)
    else:
        composed, parts = getattr(skstruct, name)(tagger), [("estimator", TAGGERS)]
        if name == CONFORMAL:
            composed.set_params(random_state=0)
    known = composed.get_params(deep=False)
    for parameter in parameters:
        if parameter.partition("__")[0] not in known:
            raise ValueError(
                f"{name} has no parameter {parameter!r}; it has {', '.join(known)}, and those of "
                f"its parts, such as {TAGGER_OF[name]}max_iter."
            )
    for part, names in parts:
        if part in parameters:
            found = find_name(str(parameters[part]), names)
            if found is None:
                wanted = f"{part}={parameters[part]}"
                raise ValueError(f"{wanted}: expected one of {', '.join(names)}.")
            parameters[part] = getattr(skstruct, found)()
    return composed


def make_vectorizer(features, template, parameters, gazetteers, clusters):
    """Make the vectoriser that the options ask for.

    Parameters
    ----------
    features : {"auto", "words", "template", "none"}
        "auto" stands for words.
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
    if features in ("template", "none") and (gazetteers or clusters):
        raise click.UsageError("--gazetteer and --clusters are for --features words.")
    if features == "none":
        return None
    if features == "template":
        return make("TemplateVectorizer", parameters, "-f")
    lists = {}
    if gazetteers:
        lists["gazetteers"] = {
            name: list(filter(None, map(str.strip, _lines(path))))
            for name, path in gazetteers.items()
        }
    if clusters:
        lists["clusters"] = _read_clusters(clusters)
    return make("WordVectorizer", {**parameters, **lists}, "-f")


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
