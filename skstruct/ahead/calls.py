"""A little work for each estimator, which calls the kernels; every function returns its results."""

from __future__ import annotations

import os
import tempfile
from copy import copy

import numpy as np
from scipy import sparse

import skstruct
from skstruct import kernels
from skstruct.crfsuite.tagger import Tagger
from skstruct.crfsuite.trainer import Trainer

__all__ = [
    "LABELS",
    "fit",
    "fit_and_watch",
    "label_like_crfsuite",
    "predict",
    "rerank",
    "use_many_labels",
    "use_second_order",
    "vectorize",
    "vectorize_dicts",
]

LABELS = np.array(["B-a", "B-b", "I-a", "O"])
N_FEATURES = 5


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


def fit(name, options, *, learns_in_portions=False, **data):
    """Fit a tagger, fit it once more from where it is, and let another one learn in portions."""
    batch, labels = _sequences(**data)
    tagger = getattr(skstruct, name)(**{"max_iter": 2, **options})
    fitted = [copy(tagger.fit(batch, labels))]
    if "warm_start" in tagger.get_params() and options.get("solver") != "oeg":
        fitted.append(tagger.set_params(warm_start=True).fit(batch, labels))
    if learns_in_portions:
        fitted.append(type(tagger)(**options).partial_fit(batch, labels, classes=LABELS))
    return fitted


def use_many_labels(name, options):
    """Fit a tagger with so many labels that their transitions are listed."""
    n_labels = 160
    codes = np.arange(4 * n_labels) % n_labels
    X = sparse.eye_array(len(codes), format="csr")
    batch = skstruct.SequenceBatch.from_lengths(X, [16, 624])
    labels = [[f"label {code}" for code in part] for part in np.split(codes, [16])]
    tagger = getattr(skstruct, name)(max_iter=2, **options).fit(batch, labels)
    methods = ("predict", "predict_proba", "predict_nbest")
    return tagger, *(getattr(tagger, m)(batch) for m in methods if hasattr(tagger, m))


def use_second_order(name, options):
    """Fit a tagger with weights of label triples, and predict with it."""
    batch, labels = _sequences()
    tagger = getattr(skstruct, name)(order=2, max_iter=2, **options).fit(batch, labels)
    learnt = [copy(tagger)]
    if hasattr(tagger, "partial_fit"):
        learnt.append(tagger.partial_fit(batch, labels))
    if hasattr(tagger, "predict_proba"):
        learnt.append(tagger.predict_proba(batch))
    known = _first_labels(labels)
    nbest = [tagger.predict_nbest(batch, search=search) for search in ("astar", "beam")]
    return *learnt, tagger.predict(batch), tagger.predict(batch, known=known), *nbest


def fit_and_watch(name, options, **data):
    """Fit a tagger with a validation set."""
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


def _first_labels(labels):
    return [[row[0], *[None] * (len(row) - 1)] for row in labels]


def predict(name, method, options, *, known=False, **data):
    """Call a method of a tagger whose weights are random."""
    batch, labels = _sequences(**data)
    tagger = _model(name, transition_features=data.get("transition_features", False))
    if known:
        options = {**options, "known": _first_labels(labels)}
    return getattr(tagger, method)(batch, **options)


def _groups():
    rng = np.random.default_rng(0)
    X = [[{"a": float(rng.random()), f"b{rng.integers(9)}": 1} for _ in range(4)] for _ in range(9)]
    return X, [rng.integers(0, 4, size=4).tolist() for _ in X]


def rerank(name, options):
    """Fit a reranker, and call all of its methods."""
    X, costs = _groups()
    reranker = getattr(skstruct, name)(max_iter=2, **options).fit(X, costs)
    return reranker, reranker.decision_function(X), reranker.predict_proba(X), reranker.rank(X)


def vectorize(name, *options, **more):
    """Make features of columns by a template, and names of them."""
    columns = [[("the", "DT"), ("cat", "NN")], [("a", "DT"), ("dog", "NN"), ("ran", "VB")]] * 3
    vectorizer = getattr(skstruct, name)(*options, **more)
    batches = [vectorizer.fit_transform(columns), vectorizer.transform(columns)]
    if hasattr(vectorizer, "inverse_transform"):
        vectorizer.inverse_transform(batches[1])
    return batches


def label_like_crfsuite():
    """Sequences one at a time."""
    with tempfile.TemporaryDirectory() as folder:
        trainer, tagger = Trainer(verbose=False), Tagger()
        for labels in ("ab", "ba"):
            trainer.append([["x"], ["y"]], list(labels))
        trainer.train(os.path.join(folder, "model"))
        tagger.open(os.path.join(folder, "model"))
    labels = tagger.tag([["x"], ["y"]])
    return labels, tagger.probability(labels), tagger.marginal(labels[0], 0)


def vectorize_dicts(**options):
    """Make features of dicts and of lists of strings."""
    X = [[{"word": "the", "n": 2.0}, ["cat", "noun"]]]
    return skstruct.SequenceVectorizer(**options).fit(X).transform(X)
