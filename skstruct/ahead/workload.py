"""A little work for every estimator, which calls the kernels with all types of arguments.

What is compiled ahead of time is what these steps call: nothing lists kernels by name. The steps
of `TYPICAL` are those of an estimator with the usual parameters.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

import skstruct
from skstruct import kernels
from skstruct.solvers.batch import MANY_TOKENS

__all__ = ["Step", "estimators", "run_step", "steps"]

LABELS = np.array(["B-a", "B-b", "I-a", "O"])
N_FEATURES = 5
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


def _sequences(n_sequences=12, *, transition_features=False, partly=False):
    """A batch with matrices of floats, and labels that follow the scheme IOB2."""
    rng = np.random.default_rng(0)
    lengths = np.resize([4, 1, 6, 3, 5], n_sequences)
    n_tokens = int(lengths.sum())
    codes = rng.integers(0, 4, size=n_tokens)
    first = np.cumsum(lengths) - lengths
    # Every label occurs, whatever is drawn.
    codes[:4] = [0, 2, 3, 1]
    for t in range(n_tokens):
        if codes[t] == 2 and (t in first or codes[t - 1] not in (0, 2)):
            codes[t] = 3
    X = sparse.random_array((n_tokens, N_FEATURES), density=0.5, format="csr", rng=rng)
    T = sparse.random_array((n_tokens, 3), density=0.5, format="csr", rng=rng)
    batch = skstruct.SequenceBatch.from_lengths(
        X, lengths, transition_X=T if transition_features else None
    )
    labels = LABELS[codes].astype(object)
    if partly:
        labels[rng.random(n_tokens) < 0.3] = None
    return batch, [part.tolist() for part in np.split(labels, first[1:])]


def _fit(name, options, *, learns_in_portions=False, **data):
    batch, labels = _sequences(**data)
    tagger = getattr(skstruct, name)(**{"max_iter": 2, **options})
    fitted = [tagger.fit(batch, labels)]
    if learns_in_portions:
        fitted.append(type(tagger)(**options).partial_fit(batch, labels, classes=LABELS))
    return fitted


def _fit_and_watch(name, options, **data):
    batch, labels = _sequences(**data)
    tagger = getattr(skstruct, name)(max_iter=2, **options)
    return tagger.fit(batch, labels, X_val=batch, y_val=labels)


def _model(name, *, transition_features):
    """A fitted model that nothing was compiled for."""
    tagger, k = getattr(skstruct, name)(), len(LABELS)
    draw = np.random.default_rng(0).standard_normal
    tagger.classes_, tagger.n_features_in_ = LABELS, N_FEATURES
    chain = kernels.Chain(draw((N_FEATURES, k)), draw((k, k)), *draw((3, k)))
    if transition_features:
        tagger.n_transition_features_in_ = 3
        chain = kernels.TransitionChain(*chain, draw((3, k * k)))
    tagger._set_chain(chain)
    return tagger


def _predict(name, method, options, *, known=False, **data):
    batch, labels = _sequences(**data)
    tagger = _model(name, transition_features=data.get("transition_features", False))
    if known:
        options = {**options, "known": [[row[0], *[None] * (len(row) - 1)] for row in labels]}
    return getattr(tagger, method)(batch, **options)


def _groups():
    rng = np.random.default_rng(0)
    X = [[{"a": float(rng.random()), f"b{rng.integers(9)}": 1} for _ in range(4)] for _ in range(9)]
    return X, [rng.integers(0, 4, size=4).tolist() for _ in X]


def _rerank(name, options):
    X, costs = _groups()
    reranker = getattr(skstruct, name)(max_iter=2, **options).fit(X, costs)
    return reranker, reranker.decision_function(X), reranker.predict_proba(X), reranker.rank(X)


def _vectorize(name, *options, **more):
    columns = [[("the", "DT"), ("cat", "NN")], [("a", "DT"), ("dog", "NN"), ("ran", "VB")]] * 3
    vectorizer = getattr(skstruct, name)(*options, **more)
    batches = [vectorizer.fit_transform(columns), vectorizer.transform(columns)]
    if hasattr(vectorizer, "inverse_transform"):
        vectorizer.inverse_transform(batches[1])
    return batches


def _vectorize_dicts():
    X = [[{"word": "the", "n": 2.0}, ["cat", "noun"]]]
    return skstruct.SequenceVectorizer().fit(X).transform(X)


ONLINE = {
    "PerceptronTagger": [{}, {"average": False}, {"n_jobs": 2}, {"mini_length": 2.5}],
    "MIRATagger": [
        {"n_best": 3},
        {"n_best": 3, "search": "kbest"},
        {"n_best": 3, "search": "beam"},
        {"n_best": 3, "update": "sequential"},
        {"n_jobs": 2},
    ],
    "SAPOTagger": [{"search": "kbest"}, {"search": "beam"}, {"average": True}, {"n_jobs": 2}],
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
SAMPLINGS = ("gap", "uniform", "importance", "gap_importance", "max")
LOSSES = ("log", "hinge", "logistic", "bayes_risk")


def _title(options):
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _steps_of_fit():
    def fit(name, options, *, call=_fit, typical=False, **data):
        title = f"fit({_title({**options, **data})})"
        return Step(name, title, partial(call, name, options, **data), typical)

    transitions, partly = {"transition_features": True}, {"partly": True}
    yield fit("CRFTagger", {}, typical=True)
    yield fit("CRFTagger", {"max_iter": 1}, n_sequences=MANY_TOKENS // 3, typical=True)
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
        yield fit("CRFTagger", options, call=_fit_and_watch)
    for solver in ("sag", "oeg"):
        yield fit("CRFTagger", {"solver": solver})
    for name, variants in ONLINE.items():
        yield fit(name, {}, typical=True)
        for options in variants:
            yield fit(name, options, learns_in_portions=True)
            yield fit(name, options, **transitions)
    for sampling in SAMPLINGS:
        yield fit("SDCACRF", {"sampling": sampling}, typical=sampling == "gap")
    yield fit("SDCACRF", {"n_jobs": 2})


def _steps_of_predict(name):
    def predict(method, *, typical=False, data=None, **options):
        title = f"{method}({_title({**options, **(data or {})})})"
        call = partial(_predict, name, method, options, **(data or {}))
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
        for search in ("kbest", "beam"):
            yield predict("predict_nbest", data=data, search=search)


def _steps_of_others():
    for name in ("PerceptronReranker", "SGDReranker", "TruncatedGradientReranker", "VRDAReranker"):
        variants = [{}]
        if name != "PerceptronReranker":
            variants += [{"loss": loss} for loss in LOSSES]
        if name == "VRDAReranker":
            variants += [{"prediction": kind} for kind in ("vote", "last")] + [{"n_jobs": 2}]
        for options in variants:
            call = partial(_rerank, name, options)
            yield Step(name, f"fit({_title(options)})", call, not options)
    for name in ("TemplateVectorizer", "HashingTemplateVectorizer"):
        for kind, template in (("", TEMPLATE), (" with transitions", TRANSITION_TEMPLATE)):
            for options in ({}, {"dtype": np.float32}):
                call = partial(_vectorize, name, template, **options)
                title = f"transform({_title(options)}){kind}"
                yield Step(name, title, call, not kind and not options)
    yield Step("SequenceVectorizer", "transform()", _vectorize_dicts, True)


def steps():
    """All steps; those that take long to compile come first."""
    found = list(_steps_of_fit())
    for name in ("CRFTagger", "PerceptronTagger", "MIRATagger", "SAPOTagger", "SDCACRF"):
        found += _steps_of_predict(name)
    return [*found, *_steps_of_others()]


def estimators():
    """Names of all estimators that have steps."""
    return sorted({step.estimator for step in steps()})
