"""Parameters sections: complete, true to the signature, and alike where estimators share them."""

import inspect
import re
from collections import defaultdict

import numpy as np
import pytest

import skstruct
from skstruct import crfsuite

docscrape = pytest.importorskip("numpydoc.docscrape")

ESTIMATORS = {
    name: getattr(package, name)
    for package in (skstruct, crfsuite)
    for name in package.__all__
    if hasattr(getattr(package, name), "get_params")
}
# Parameters that share a name, and no more: type lines differ.
DIFFERENT_TYPES = {
    "cost",  # of a labelling, or between two
    "cv",  # None in SpanTaggerCV, as in scikit-learn's searches
    "min_freq",  # weights of tokens in a tagger, numbers of tokens in a vectoriser
    "scoring",  # None is token accuracy; SpanTaggerCV maximises scores of chunks
    "tol",  # SDCACRF needs one
    "verbose",  # of SequenceUnion, as in scikit-learn
}
# Estimators whose shared parameters mean the same, and those that do not in one of them.
FAMILIES = {
    ("AROWTagger", "MIRATagger", "PerceptronTagger", "SAPOTagger"): {
        "n_jobs",  # AROW averages the variances, too
        "warm_start",  # and starts them anew
        "average",  # the perceptron without is called naive
        "n_best",  # each is a constraint of MIRA
        "tol",  # the perceptron watches the share of wrong tokens
    },
    ("PerceptronReranker", "SGDReranker", "TruncatedGradientReranker", "VRDAReranker"): {
        "loss",  # explained by VRDAReranker
    },
    ("HashingTemplateVectorizer", "TemplateVectorizer"): {
        "functions",  # explained by TemplateVectorizer
        "template",
    },
}


def documented(name):
    """Type line without default, default, and description of each parameter."""
    found = {}
    for parameter in docscrape.ClassDoc(ESTIMATORS[name])["Parameters"]:
        kind, _, default = parameter.type.partition(", default=")
        for single in parameter.name.split(", "):
            found[single] = kind, default, " ".join(parameter.desc)
    return found


DOCUMENTED = {name: documented(name) for name in ESTIMATORS}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_sections_follow_the_signature(name):
    signature = inspect.signature(ESTIMATORS[name]).parameters
    assert list(DOCUMENTED[name]) == list(signature)
    for parameter, (kind, default, description) in DOCUMENTED[name].items():
        assert kind, parameter
        assert re.search(r"\w.*[.:]$", description), parameter
        if signature[parameter].default is inspect.Parameter.empty:
            assert not default, parameter
        else:
            assert eval(default, {"np": np}) == signature[parameter].default, parameter


def test_shared_parameters_have_the_same_type():
    kinds = defaultdict(lambda: defaultdict(list))
    for name, parameters in DOCUMENTED.items():
        if name != "CRF":  # those of sklearn-crfsuite
            for parameter, (kind, _, _) in parameters.items():
                kinds[parameter][kind].append(name)
    different = {parameter for parameter, found in kinds.items() if len(found) > 1}
    assert different == DIFFERENT_TYPES, {p: dict(kinds[p]) for p in different}


@pytest.mark.parametrize("family", FAMILIES)
def test_shared_parameters_are_described_alike(family):
    for parameter in set().union(*(DOCUMENTED[name] for name in family)) - FAMILIES[family]:
        told = {DOCUMENTED[name][parameter] for name in family if parameter in DOCUMENTED[name]}
        assert len(told) == 1, (parameter, told)
