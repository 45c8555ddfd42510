"""Small fits and predictions of every estimator, which call the kernels with all argument types.

They are what is compiled ahead of time: kernels are not listed by name.
"""

import os
import tempfile
import warnings
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
RERANKERS = "PerceptronReranker", "SGDReranker", "TruncatedGradientReranker", "VRDAReranker"
# Data of a few sequences, besides the usual ones.
TRANSITIONS, PARTLY = {"transition_features": True}, {"partly": True}
DATA = [TRANSITIONS, PARTLY, {**TRANSITIONS, **PARTLY}]
# Enough tokens for the stochastic start of L-BFGS.
MANY = {"n_sequences": MANY_TOKENS // 3}
# Parameters and data of fits that need kernels of their own.
FITS_OF_CRF = [
    *((options, MANY) for options in ({"l1": 0.1}, {"order": 2}, {"order": 2, "l1": 0.1})),
    *((options, {}) for options in ({"l1": 0.1}, {"solver": "sag"}, {"solver": "oeg"})),
    *(({"solver": solver}, data) for solver in ("lbfgs", "sgd") for data in DATA),
]
FITS_OF_SDCA = [
    {"sampling": "importance"},
    # In single and in double precision.
    {"warm_start": True},
    {"warm_start": True, "tol": 1e-12},
]


class Step(NamedTuple):
    """Call that needs certain kernels."""

    estimator: str
    title: str
    call: callable
    typical: bool  # one of the steps with the usual parameters


def _online():
    """Names of all public online taggers."""
    public = [getattr(skstruct, name) for name in skstruct.__all__ if name != "CRFTagger"]
    found = [kind for kind in public if isinstance(kind, type) and issubclass(kind, OnlineTagger)]
    return [kind.__name__ for kind in found]


def _step(call, name, options=None, *, typical=False, **more):
    options = options or {}
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
    yield _step(fit, "CRFTagger", LONG, typical=True)
    yield _step(fit, "CRFTagger", {"max_iter": 1}, typical=True, **MANY)
    for options, data in FITS_OF_CRF:
        yield _step(fit, "CRFTagger", options, **data)
    # Pieces of sequences, of one kind and the other.
    yield _step(fit, "CRFTagger", {"solver": "sgd", "mini_length": 2.5})
    yield _step(fit, "PerceptronTagger", {"structure_alpha": 2.5})
    yield _step(fit, "PerceptronTagger", {"n_jobs": 2})
    for name in _online():
        yield _step(fit, name, typical=True)
        yield _step(fit, name, **TRANSITIONS)
        if "search" in getattr(skstruct, name)().get_params():
            for data in ({}, TRANSITIONS):
                yield _step(fit, name, {"search": "beam"}, **data)
    yield _step(fit, "SDCACRF", typical=True)
    for options in FITS_OF_SDCA:
        yield _step(fit, "SDCACRF", options)


def _steps_of_predict(name):
    methods = ["predict_proba", "predict_spans", "predict_nbest", "predict"]
    methods = [method for method in methods if hasattr(getattr(skstruct, name), method)]
    for method in methods:
        yield _step(predict, name, typical=True, method=method)
    # Other taggers predict with the same kernels.
    if name == "CRFTagger":
        for method in methods:
            yield _step(predict, name, method=method, **TRANSITIONS)
        for data in ({}, TRANSITIONS):
            yield _step(predict, name, {"search": "beam"}, method="predict_nbest", **data)


def _steps_of_others():
    for name in RERANKERS:
        yield _step(rerank, name, typical=True)
    yield _step(rerank, "VRDAReranker", {"prediction": "vote"})
    for name in ("TemplateVectorizer", "HashingTemplateVectorizer"):
        yield _step(vectorize, name, template=TEMPLATE, typical=True)
    yield _step(vectorize, "TemplateVectorizer", template=TRANSITION_TEMPLATE)
    yield _step(vectorize, "WordVectorizer", typical=True)
    yield _step(vectorize_dicts, "SequenceVectorizer", typical=True)
    yield _step(vectorize_dicts, "SequenceVectorizer", {"min_freq": 2, "dtype": np.float32})
    for use in (use_many_labels, use_second_order):
        yield _step(use, "CRFTagger")
    yield _step(learn_second_order, "CRFTagger", {"solver": "sgd"})
    for name in _online():
        yield _step(learn_many_labels, name)
        yield _step(learn_second_order, name)
    for dtype in (np.float64, np.float32):
        yield _step(use_blocks, "CRFTagger", dtype=dtype)
    yield _step(label_like_crfsuite, "CRFTagger")
    yield _step(merge_copies, "CRFTagger")
    yield _step(label_one_sentence, "CRFTagger", typical=True)
    for data in ({}, TRANSITIONS):
        yield _step(explain, "CRFTagger", **data)


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


def fit(name, options, **data):
    """Fit a tagger, and once more from where it is if it goes on from there."""
    batch, labels = _sequences(**data)
    tagger = getattr(skstruct, name)(**{"max_iter": 2, **options}).fit(batch, labels)
    return tagger.fit(batch, labels) if options.get("warm_start") else tagger


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
    """Fit a tagger with weights of label triples."""
    return fit(name, {"order": 2, **options})


def use_second_order(name, options):
    """Fit a tagger with weights of label triples, and predict with it."""
    tagger, (batch, _) = learn_second_order(name, options), _sequences()
    return (
        tagger,
        best_by_label(tagger, batch[:1], 0),
        *(getattr(tagger, m)(batch) for m in ("predict", "predict_proba", "predict_spans")),
        *(tagger.predict_nbest(batch, search=search) for search in ("astar", "beam")),
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


def predict(name, options, *, method, **data):
    """Call a method of a tagger whose weights are random, so that nothing is compiled for a fit."""
    batch, _ = _sequences(**data)
    tagger, k = getattr(skstruct, name)(), len(LABELS)
    draw = np.random.default_rng(0).standard_normal
    tagger.classes_, tagger.n_features_in_ = LABELS, N_FEATURES
    model = Chain(draw((N_FEATURES, k)), draw((k, k)), *draw((3, k)))
    if data.get("transition_features"):
        tagger.n_transition_features_in_ = 3
        model = kind_of(1, 2)(*model, draw((3, k * k)))
    tagger._set_chain(model)
    return getattr(tagger, method)(batch, **options)


def explain(name, options, **data):
    """Find the best labellings with each label of a token."""
    return best_by_label(fit(name, options, **data), _sequences(**data)[0][:1], 0)


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
