"""A little work for every estimator, which calls the kernels with all types of arguments.

What is compiled ahead of time is what these steps call: nothing lists kernels by name. Typical
steps are those of an estimator with the usual parameters.
"""

from __future__ import annotations

import warnings
from functools import partial
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np

import skstruct
from skstruct.ahead import calls
from skstruct.solvers.batch import MANY_TOKENS
from skstruct.taggers.online import OnlineTagger

__all__ = ["Step", "estimators", "run_step", "steps"]

TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nU02:%x[0,1|prefix2]\nB"
TRANSITION_TEMPLATE = f"{TEMPLATE}1:%x[0,1]"


class Step(NamedTuple):
    """Something to call, which returns what certain kernels compute."""

    estimator: str
    title: str
    call: callable
    typical: bool


def run_step(step):
    """Call one step and return its result; models are small, and what they complain about too."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return step.call()


# Kinds of steps of L-BFGS that come late.
LONG = {"max_iter": 40, "tol": 1e-12, "l2": 1e-4}
WATCHED = {"early_stopping": True, "constraint": "IOB2"}
PIECES = {"mini_length": 2.5}, {"structure_alpha": 2.5}
# Of online taggers, besides the usual parameters.
VARIANTS = {
    "AROWTagger": [{"average": False}, WATCHED, {"n_jobs": 2}],
    "PerceptronTagger": [{}, {"average": False}, {"n_jobs": 2}, *PIECES, WATCHED],
    "MIRATagger": [
        {"n_best": 3},
        {"n_best": 3, "search": "beam"},
        {"n_best": 3, "update": "sequential"},
        {"n_jobs": 2},
        WATCHED,
    ],
    "SAPOTagger": [
        {"search": "beam"},
        {"average": True},
        {"n_jobs": 2},
        WATCHED,
    ],
}
CRF = [
    {"l1": 0.1},
    {"constraint": "IOB2"},
    {"all_possible_states": True},
    {"all_possible_transitions": True},
    {"fit_intercept": False},
    {"min_freq": 2},
    {"n_jobs": 2},
    {"early_stopping": True},
]
STOCHASTIC = [
    {"solver": "sgd"},
    {"solver": "sgd", "average": True, "mini_length": 2.5},
    {"solver": "sgd", "early_stopping": True},
    {"solver": "sgd", "n_jobs": 2},
]
SDCA = [{"n_jobs": 2}, {"tol": 1e-12}, {"constraint": "IOB2"}, {"fit_intercept": False}]
SAMPLINGS = ("gap", "uniform", "importance", "gap_importance", "max")
LOSSES = ("log", "hinge", "logistic", "bayes_risk")


def _title(options):
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _online():
    """Variants of all public online taggers; what is said of none above has the usual ones."""
    public = [getattr(skstruct, name) for name in skstruct.__all__]
    found = [kind for kind in public if isinstance(kind, type) and issubclass(kind, OnlineTagger)]
    return {kind.__name__: VARIANTS.get(kind.__name__, [WATCHED]) for kind in found}


def _steps_of_fit():
    def fit(name, options, *, call=calls.fit, typical=False, **data):
        title = f"fit({_title({**options, **data})})"
        return Step(name, title, partial(call, name, options, **data), typical)

    transitions, partly = {"transition_features": True}, {"partly": True}
    yield fit("CRFTagger", LONG, typical=True)
    for options in ({}, {"order": 2}, {"order": 2, "l1": 0.1}):
        # As many as the start of L-BFGS needs.
        options, n_sequences = {"max_iter": 1, **options}, MANY_TOKENS // 3
        yield fit("CRFTagger", options, n_sequences=n_sequences, typical="order" not in options)
    for options in CRF:
        yield fit("CRFTagger", options)
    for options in STOCHASTIC:
        portions = not options.get("early_stopping")
        yield fit("CRFTagger", options, learns_in_portions=portions)
    for solver in ("lbfgs", "sgd"):
        options = {"solver": solver}
        yield fit("CRFTagger", options, **transitions)
        yield fit("CRFTagger", options, **partly)
        yield fit("CRFTagger", options, **transitions, **partly)
        yield fit("CRFTagger", options, call=calls.fit_and_watch)
    yield fit("CRFTagger", {"l1": 0.1}, **transitions)
    for solver in ("sag", "oeg"):
        yield fit("CRFTagger", {"solver": solver})
    yield fit("CRFTagger", {"solver": "sag", "constraint": "IOB2"})
    for name, variants in _online().items():
        yield fit(name, {}, typical=True)
        for options in variants:
            yield fit(name, options, learns_in_portions=True)
            yield fit(name, options, **transitions)
    for sampling in SAMPLINGS:
        yield fit("SDCACRF", {"sampling": sampling}, typical=sampling == "gap")
    for options in SDCA:
        yield fit("SDCACRF", options)


def _steps_of_predict(name):
    def predict(method, *, typical=False, data=None, **options):
        title = f"{method}({_title({**options, **(data or {})})})"
        call = partial(calls.predict, name, method, options, **(data or {}))
        return Step(name, title, call, typical)

    variants = [{}, {"known": True}]
    if name not in ("SDCACRF",):
        variants += [{"transition_features": True, **more} for more in ({}, {"known": True})]
    for data in variants:
        typical = not data
        yield predict("predict_nbest", data=data, typical=typical)
        yield predict("predict", data=data, typical=typical)
        if hasattr(getattr(skstruct, name), "predict_proba"):
            yield predict("predict_proba", data=data, typical=typical)
        yield predict("predict_nbest", data=data, search="beam")


def _steps_of_others():
    for name in ("PerceptronReranker", "SGDReranker", "TruncatedGradientReranker", "VRDAReranker"):
        variants = [{}]
        if name != "PerceptronReranker":
            variants += [{"loss": loss} for loss in LOSSES]
        if name == "VRDAReranker":
            variants += [{"prediction": kind} for kind in ("vote", "last")] + [{"n_jobs": 2}]
        for options in variants:
            call = partial(calls.rerank, name, options)
            yield Step(name, f"fit({_title(options)})", call, not options)
    for name in ("TemplateVectorizer", "HashingTemplateVectorizer"):
        for kind, template in (("", TEMPLATE), (" with transitions", TRANSITION_TEMPLATE)):
            for options in ({}, {"dtype": np.float32}):
                call = partial(calls.vectorize, name, template, **options)
                title = f"transform({_title(options)}){kind}"
                yield Step(name, title, call, not kind and not options)
    yield Step("WordVectorizer", "transform()", partial(calls.vectorize, "WordVectorizer"), True)
    for name in ("CRFTagger", *_online()):
        call = partial(calls.use_many_labels, name, {})
        yield Step(name, "fit() with many labels", call, False)
    second_order = [("CRFTagger", options) for options in ({}, {"l1": 0.1}, {"solver": "sgd"})]
    for name, options in [*second_order, *((name, {}) for name in _online())]:
        call = partial(calls.use_second_order, name, options)
        yield Step(name, f"fit({_title({'order': 2, **options})})", call, False)
    yield Step("CRFTagger", "crfsuite.Tagger.tag()", calls.label_like_crfsuite, False)
    for options in ({}, {"dtype": np.float32}):
        call = partial(calls.vectorize_dicts, **options)
        yield Step("SequenceVectorizer", f"transform({_title(options)})", call, not options)


def steps():
    """All steps; those that take long to compile come first.

    Processes that run them side by side compile twice what two of them share. So the steps that
    learn, which share much, take turns with those that predict.
    """
    predict = [_steps_of_predict(name) for name in ("CRFTagger", *_online(), "SDCACRF")]
    pairs = zip_longest(_steps_of_fit(), chain.from_iterable(predict))
    found = [step for pair in pairs for step in pair if step is not None]
    return [*found, *_steps_of_others()]


def estimators():
    """Names of all estimators that have steps."""
    return sorted({step.estimator for step in steps()})
