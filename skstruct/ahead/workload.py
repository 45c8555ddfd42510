"""Small fits and predictions of every estimator, which call the kernels with all argument types.

They are what is compiled ahead of time: kernels are not listed by name.
"""

import os
import tempfile
import warnings
from copy import copy
from functools import partial
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np
from scipy import sparse

import skstruct
from skstruct.chain.dense import Chain
from skstruct.chain.kinds import kind_of
from skstruct.crfsuite.tagger import Tagger
from skstruct.crfsuite.trainer import Trainer
from skstruct.inspection.explanations import best_by_label
from skstruct.learning.ascent import merge_changes
from skstruct.learning.lbfgs import MANY_TOKENS
from skstruct.taggers.few import MOST_LOCKED
from skstruct.taggers.online import OnlineTagger

LABELS = np.array(["B-a", "B-b", "I-a", "O"])
N_FEATURES = 5
TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nU02:%x[0,1|prefix2]\nB"
TRANSITION_TEMPLATE = f"{TEMPLATE}1:%x[0,1]"
# Reaches the kinds of steps that L-BFGS takes late.
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
    "SAPOTagger": [{"search": "beam"}, {"average": True}, {"n_jobs": 2}, WATCHED],
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
    {"solver": "sag"},
    {"solver": "oeg"},
    {"solver": "sag", "constraint": "IOB2"},
    {"solver": "sgd", "early_stopping": True},
]
STOCHASTIC = [{}, {"average": True, "mini_length": 2.5}, {"n_jobs": 2}]
SDCA = [{"n_jobs": 2}, {"tol": 1e-12}, {"constraint": "IOB2"}, {"fit_intercept": False}]
SAMPLINGS = ("gap", "uniform", "importance", "gap_importance", "max")
LOSSES = [{"loss": loss} for loss in ("log", "hinge", "logistic", "bayes_risk")]
RERANKERS = {
    "PerceptronReranker": [{}],
    "SGDReranker": [{}, *LOSSES],
    "TruncatedGradientReranker": [{}, *LOSSES],
    "VRDAReranker": [{}, *LOSSES, {"prediction": "vote"}, {"prediction": "last"}, {"n_jobs": 2}],
}


class Step(NamedTuple):
    """Call that needs certain kernels."""

    estimator: str
    title: str
    call: callable
    typical: bool  # one of the steps with the usual parameters


def _online():
    """Variants of all public online taggers; those without an entry above have the usual ones."""
    public = [getattr(skstruct, name) for name in skstruct.__all__ if name != "CRFTagger"]
    found = [kind for kind in public if isinstance(kind, type) and issubclass(kind, OnlineTagger)]
    return {kind.__name__: VARIANTS.get(kind.__name__, [WATCHED]) for kind in found}


def _step(call, name, options, *, typical=False, **more):
    given = ", ".join(f"{key}={value!r}" for key, value in {**options, **more}.items())
    title = f"{call.__name__}({given})"
    return Step(name, title, partial(call, name, options, **more), typical)


def run_step(step):
    """Call one step, without its warnings, and return its result."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return step.call()


def estimators():
    """Names of all estimators that have steps."""
    return sorted({step.estimator for step in steps()})


def steps():
    """All steps, beginning with the ones that take long to compile.

    Processes that run them side by side compile twice what two of them share. So the steps that
    learn, which share much, take turns with those that predict.
    """
    names = ("CRFTagger", *_online(), "SDCACRF")
    predicting = chain.from_iterable(map(_steps_of_predict, names))
    pairs = zip_longest(_steps_of_fit(), predicting)
    return [*(step for pair in pairs for step in pair if step is not None), *_steps_of_others()]


def part_of(step):
    """Number of one of two parts, each of which takes about half of the time to compile.

    A kernel that both need is compiled twice. So predictions, whose kernels all taggers share, are
    together with the fits of `CRFTagger`; but two of its solvers are with those of `SDCACRF`.
    """
    name, options = step.call.args
    first = step.call.func is predict or name == "CRFTagger"
    return 0 if first and options.get("solver") not in ("sag", "oeg") else 1


def _steps_of_fit():
    transitions, partly = {"transition_features": True}, {"partly": True}
    yield _step(fit, "CRFTagger", LONG, typical=True)
    for options in ({}, {"l1": 0.1}, {"order": 2}, {"order": 2, "l1": 0.1}):
        # Enough tokens for the stochastic start of L-BFGS.
        options, typical = {"max_iter": 1, **options}, not options
        yield _step(fit, "CRFTagger", options, n_sequences=MANY_TOKENS // 3, typical=typical)
    for options in CRF:
        yield _step(fit, "CRFTagger", options)
    for options in STOCHASTIC:
        yield _step(fit, "CRFTagger", {"solver": "sgd", **options}, in_portions=True)
    for options in ({"solver": "lbfgs"}, {"solver": "sgd"}):
        for data in (transitions, partly, {**transitions, **partly}):
            yield _step(fit, "CRFTagger", options, **data)
        yield _step(fit, "CRFTagger", options, watched=True)
    yield _step(fit, "CRFTagger", {"l1": 0.1}, **transitions)
    for name, variants in _online().items():
        yield _step(fit, name, {}, typical=True)
        for options in variants:
            yield _step(fit, name, options, in_portions=True)
            yield _step(fit, name, options, **transitions)
    for sampling in SAMPLINGS:
        yield _step(fit, "SDCACRF", {"sampling": sampling}, typical=sampling == "gap")
    for options in SDCA:
        yield _step(fit, "SDCACRF", options)


def _steps_of_predict(name):
    kinds = [{}] if name == "SDCACRF" else [{}, {"transition_features": True}]
    methods = [("predict_nbest", {}), ("predict", {}), ("predict_nbest", {"search": "beam"})]
    if hasattr(getattr(skstruct, name), "predict_proba"):
        methods += [("predict_proba", {}), ("predict_spans", {})]
    for kind in kinds:
        for known in ({}, {"known": True}):
            for method, options in methods:
                typical = not (kind or known or options)
                data = {"method": method, **kind, **known}
                yield _step(predict, name, options, typical=typical, **data)


def _steps_of_others():
    for name, variants in RERANKERS.items():
        for options in variants:
            yield _step(rerank, name, options, typical=not options)
    for name in ("TemplateVectorizer", "HashingTemplateVectorizer"):
        for template in (TEMPLATE, TRANSITION_TEMPLATE):
            for options in ({}, {"dtype": np.float32}):
                typical = template == TEMPLATE and not options
                yield _step(vectorize, name, options, template=template, typical=typical)
    yield _step(vectorize, "WordVectorizer", {}, typical=True)
    for options in ({}, {"dtype": np.float32}):
        yield _step(vectorize_dicts, "SequenceVectorizer", options, typical=not options)
        yield _step(vectorize_dicts, "SequenceVectorizer", {"min_freq": 2, **options})
    # The other taggers predict with the same kernels.
    for use in (use_many_labels, use_second_order):
        yield _step(use, "CRFTagger", {})
    for options in ({"l1": 0.1}, {"solver": "sgd"}):
        yield _step(learn_second_order, "CRFTagger", options)
    for name in _online():
        yield _step(learn_many_labels, name, {})
        yield _step(learn_second_order, name, {})
    for dtype in (np.float64, np.float32):
        for name in ("CRFTagger", *_online(), "SDCACRF"):
            yield _step(use_blocks, name, {}, dtype=dtype)
    yield _step(label_like_crfsuite, "CRFTagger", {})
    yield _step(merge_copies, "CRFTagger", {})
    yield _step(label_one_sentence, "CRFTagger", {}, typical=True)
    for data in ({}, {"transition_features": True}):
        yield _step(explain, "CRFTagger", {}, **data)


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
    X, T = (_random_matrix(rng, n_tokens, n_features) for n_features in (N_FEATURES, 3))
    batch = skstruct.SequenceBatch.from_lengths(
        X, lengths, transition_X=T if transition_features else None
    )
    labels = LABELS[codes].astype(object)
    if partly:
        labels[rng.random(n_tokens) < 0.3] = None
    return batch, [part.tolist() for part in np.split(labels, first[1:])]


def _random_matrix(rng, *shape):
    # Releases of scipy differ in how `random_array` takes a generator.
    return sparse.csr_array(rng.random(shape) * (rng.random(shape) < 0.5))


def _first_labels(labels):
    return [[row[0], *[None] * (len(row) - 1)] for row in labels]


def fit(name, options, *, in_portions=False, watched=False, **data):
    """Fit a tagger, fit it once more from where it is, and let another one learn in portions."""
    batch, labels = _sequences(**data)
    tagger = getattr(skstruct, name)(**{"max_iter": 2, **options})
    if watched:
        return tagger.fit(batch, labels, X_val=batch, y_val=labels)
    fitted = [copy(tagger.fit(batch, labels))]
    if "warm_start" in tagger.get_params() and options.get("solver") != "oeg":
        fitted.append(tagger.set_params(warm_start=True).fit(batch, labels))
    if in_portions:
        fitted.append(type(tagger)(**options).partial_fit(batch, labels, classes=LABELS))
    return fitted


def _many_labels():
    """A batch, with enough labels for sparse transitions, and tokens for a stochastic start."""
    n_labels = 160
    codes = np.arange(MANY_TOKENS + n_labels) % n_labels
    X = sparse.eye_array(len(codes), format="csr")
    batch = skstruct.SequenceBatch.from_lengths(X, [16, len(codes) - 16])
    return batch, [[f"label {code}" for code in part] for part in np.split(codes, [16])]


def learn_many_labels(name, options):
    """Fit a tagger with sparse transitions."""
    return getattr(skstruct, name)(max_iter=2, **options).fit(*_many_labels())


def use_many_labels(name, options):
    """Fit a tagger with sparse transitions, and predict with it."""
    tagger, (batch, _) = learn_many_labels(name, options), _many_labels()
    methods = ("predict", "predict_proba", "predict_nbest", "predict_spans")
    return (
        tagger,
        best_by_label(tagger, batch[:1], 0),
        *(getattr(tagger, m)(batch) for m in methods if hasattr(tagger, m)),
    )


def learn_second_order(name, options):
    """Fit a tagger with weights of label triples, and let it learn a portion more."""
    batch, labels = _sequences()
    tagger = getattr(skstruct, name)(order=2, max_iter=2, **options).fit(batch, labels)
    learnt = copy(tagger)
    return learnt, hasattr(tagger, "partial_fit") and tagger.partial_fit(batch, labels)


def use_second_order(name, options):
    """Fit a tagger with weights of label triples, and predict with it."""
    (tagger, _), (batch, labels) = learn_second_order(name, options), _sequences()
    searches, known = ("astar", "beam"), _first_labels(labels)
    return (
        tagger,
        best_by_label(tagger, batch[:1], 0),
        *(getattr(tagger, m)(batch) for m in ("predict", "predict_proba", "predict_spans")),
        tagger.predict(batch, known=known),
        *(tagger.predict_nbest(batch, search=search) for search in searches),
    )


def use_blocks(name, options, *, dtype):
    """Fit a tagger to words, vectors of words and matrices side by side, and predict with it."""
    words, labels = [["the", "cat"], ["a", "dog", "ran"]] * 3, [["O", "B-a"], ["O", "B-a", "O"]] * 3
    vectors = {word: np.ones(2, dtype) for word in ("the", "cat", "dog")}
    batch = skstruct.SequenceBatch.hstack(
        [
            skstruct.WordVectorizer().fit_transform(words),
            skstruct.EmbeddingVectorizer(vectors).fit_transform(words),
            skstruct.SequenceBatch.from_sequences([np.ones((len(s), 3), dtype) for s in words]),
        ]
    )
    tagger = getattr(skstruct, name)(max_iter=2, **options).fit(batch, labels)
    return tagger, tagger.predict(batch)


def predict(name, options, *, method, known=False, **data):
    """Call a method of a tagger whose weights are random, so that nothing is compiled for a fit."""
    batch, labels = _sequences(**data)
    tagger, k = getattr(skstruct, name)(), len(LABELS)
    draw = np.random.default_rng(0).standard_normal
    tagger.classes_, tagger.n_features_in_ = LABELS, N_FEATURES
    model = Chain(draw((N_FEATURES, k)), draw((k, k)), *draw((3, k)))
    if data.get("transition_features"):
        tagger.n_transition_features_in_ = 3
        model = kind_of(1, 2)(*model, draw((3, k * k)))
    tagger._set_chain(model)
    if known:
        options = {**options, "known": _first_labels(labels)}
    return getattr(tagger, method)(batch, **options)


def explain(name, options, **data):
    """Find the best labellings with each label of a token."""
    batch, labels = _sequences(**data)
    tagger = getattr(skstruct, name)(max_iter=2, **options).fit(batch, labels)
    return best_by_label(tagger, batch[:1], 0)


def rerank(name, options):
    """Fit a reranker, and call all of its methods."""
    rng = np.random.default_rng(0)
    X = [[{"a": float(rng.random()), f"b{rng.integers(9)}": 1} for _ in range(4)] for _ in range(9)]
    costs = [rng.integers(0, 4, size=4).tolist() for _ in X]
    reranker = getattr(skstruct, name)(max_iter=2, **options).fit(X, costs)
    return reranker, reranker.decision_function(X), reranker.predict_proba(X), reranker.rank(X)


def vectorize(name, options, **more):
    """Make features of columns by a template, and names of them."""
    columns = [[("the", "DT"), ("cat", "NN")], [("a", "DT"), ("dog", "NN"), ("ran", "VB")]] * 3
    vectorizer = getattr(skstruct, name)(**options, **more)
    batches = [vectorizer.fit_transform(columns), vectorizer.transform(columns)]
    if hasattr(vectorizer, "inverse_transform"):
        vectorizer.inverse_transform(batches[1])
    return batches


def vectorize_dicts(name, options):
    """Make features of dicts and of lists of strings."""
    X = [[{"word": "the", "n": 2.0}, ["cat", "noun"]], [["cat"]]]
    return getattr(skstruct, name)(**options).fit(X).transform(X)


def merge_copies(name, options):
    """Add up what two threads have changed, which only large training sets need."""
    vector, *copies = np.ones((3, 2))
    merge_changes(vector, *copies, 0.5)
    return vector


def label_one_sentence(name, options):
    """Label a sentence of attribute strings, and one of feature dicts."""
    sentences = [["x"], ["y"]], [{"x": 0.5}, {"y": "z"}]
    tagger = getattr(skstruct, name)(max_iter=1, **options).fit(sentences, [["a", "b"]] * 2)
    return [
        (tagger.predict([s]), tagger.predict_proba([s]), tagger.predict_nbest([s], n_best=1))
        for s in sentences
    ]


def label_like_crfsuite(name, options):
    """Label sequences one at a time."""
    with tempfile.TemporaryDirectory() as folder:
        trainer, tagger = Trainer(verbose=False), Tagger()
        for labels in ("ab", "aa"):
            trainer.append([["x"], ["y"]], list(labels))
        trainer.train(os.path.join(folder, "model"))
        tagger.open(os.path.join(folder, "model"))
    labels = tagger.tag([["x"], ["y"]])
    found = labels, tagger.probability(labels), tagger.marginal(labels[0], 0)
    # So many that they are decoded without the lock of the interpreter.
    tagger.set([["x"]] * MOST_LOCKED)
    return *found, tagger.tag()
