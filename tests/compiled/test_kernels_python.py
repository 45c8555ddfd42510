"""The kernels as plain Python: they give the same, and every one of them is run.

With NUMBA_DISABLE_JIT=1 this file is a script that computes `results` uncompiled, and writes them
to a file together with the names of the kernels that it came by. A new kernel needs a case here.
"""

import inspect
import os
import re
import subprocess
import sys
import threading
from functools import partial
from importlib import import_module
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.objectives import crf_objective, packed_set
from scipy.sparse import csr_matrix

import skstruct
from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    EmbeddingVectorizer,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    decoding,
)
from skstruct.chain import astar, beam, forward_backward, scores, viterbi
from skstruct.chain.dense import Chain, Dense, count_by_token, prepare_transitions
from skstruct.chain.forward_backward import subtract_agreeing
from skstruct.chain.listed import Leaving, Listed, collect_transitions
from skstruct.chain.per_token import PerToken
from skstruct.chain.protocol import chain_factors, factors_of, finish, zero_counts
from skstruct.chain.ranges import decode_best, decode_marginals, search_range
from skstruct.chain.search import search_nbest
from skstruct.chain.second_order import SecondOrderChain
from skstruct.chain.spans import Paths, Task, find_spans, paths_inside
from skstruct.chain.through import best_through
from skstruct.compiled import keys, rows
from skstruct.compiled.rows import sort_rows
from skstruct.decoding import make_search
from skstruct.input.training_set import as_rows, batch_rows
from skstruct.learning import lbfgs, products, sag
from skstruct.learning.ascent import merge_changes
from skstruct.learning.oeg import ExponentiatedGradient
from skstruct.learning.sag import StochasticAverageGradient
from skstruct.learning.solver import Model
from skstruct.learning.start import dual_free_epochs, stochastic_start
from skstruct.metrics.chunks import reading_of_labels
from skstruct.rerankers.descent import PerceptronReranker, TruncatedGradientReranker
from skstruct.rerankers.vrda import VRDAReranker
from skstruct.templates import HashingTemplateVectorizer, TemplateVectorizer

pytestmark = pytest.mark.slow

FOLDER = Path(skstruct.__file__).parent
# How kernels are compiled, and chosen, is run with the import, which is not watched. Objects of
# Python's are read by compiled code alone.
UNWATCHED = {"skstruct.compiled.jit", "skstruct.chain.family"}
UNWATCHED |= {"skstruct.compiled.objects", "skstruct.taggers.few"}
MODULES = sorted(keys._FILES.keys() - UNWATCHED)
# What numba's types need is not there uncompiled.
COMPILED_ONLY = {"get_call_type", "get_call_signatures", "get_impl_key", "have_states"}
CHAIN = ("coef_", "transition_", "intercept_", "start_", "end_")
LENGTHS = [3, 0, 1, 5, 4, 2]
EVERY = {"all_possible_states": True, "all_possible_transitions": True}


def results():
    """What the kernels come to on tiny data, as arrays with names."""
    return {
        **taggers(),
        **partial_labels(),
        **starts_of_crfs(),
        **few_sentences(),
        **stochastic_solvers(),
        **transition_features(),
        **label_triples(),
        **rerankers(),
        **templates(),
        **dynamic_programmes(),
        **listed_transitions(),
        **inner_products(),
        **vector_operations(),
        **blocks_of_vectors(),
    }


def real_features():
    """So many that some are fetched in advance; some rare, some in all tokens."""
    rng = np.random.default_rng(0)
    shape = (sum(LENGTHS), 40)
    return rng.integers(1, 5, shape) / 2 * (rng.random(shape) < np.linspace(0.05, 1, 40))


def sparse_batch(values, lengths):
    """Batch of sparse columns: learners multiply dense ones in single precision."""
    return SequenceBatch.from_lengths(csr_matrix(values), lengths)


def blocks_of_vectors():
    """Vectors of words and of their neighbours, with gradients that are summed by word."""
    words = [[f"word{i % 3}" for i in range(length)] for length in LENGTHS]
    vectors = {f"word{i}": [0.5 * i, 1.0, -1.0] for i in range(2)}
    batch = EmbeddingVectorizer(vectors, offsets=(-1, 0, 1)).fit_transform(words)
    tagger = CRFTagger(l2=0.5, tol=1e-10).fit(batch, labels())
    found = {"crf-blocks": tagger.coef_, "crf-proba": np.vstack(tagger.predict_proba(batch))}
    few = [[label % 3 for label in part] for part in labels()]
    options = {"max_iter": 2, "random_state": 0}
    for learner in (
        PerceptronTagger(average=True, **options),
        MIRATagger(n_best=3, **options),
        AROWTagger(**options),
        SDCACRF(sampling="importance", **options),
        CRFTagger(solver="sag", **options),
        CRFTagger(solver="oeg", **options),
    ):
        is_crf = isinstance(learner, (CRFTagger, SDCACRF))
        kind = getattr(learner, "solver", type(learner).__name__)
        name = f"{'crf-' * is_crf}blocks-{kind}"
        for title, y in (("few", few), ("many", labels())):
            found[f"{name}-{title}"] = learner.fit(batch, y).coef_
    return found


def labels():
    """So many that a change concerns few of them."""
    y = np.random.default_rng(1).integers(20, size=sum(LENGTHS))
    return [part.tolist() for part in np.split(y, np.cumsum(LENGTHS)[:-1])]


def taggers():
    """Where labels tie rounding must not decide: weights are exact, or features of any value."""
    exact = {
        "crf": CRFTagger(l2=0.5, tol=1e-10, n_jobs=2, warm_start=True),
        "crf-few": CRFTagger(l2=0.5, tol=1e-10, min_freq=1.5, fit_intercept=False),
        "crf-l1": CRFTagger(l1=0.2, l2=0.5, tol=1e-10),
        "crf-sdca": SDCACRF(
            l2=0.5, sampling="gap_importance", max_iter=2, warm_start=True, random_state=0
        ),
        "perceptron": PerceptronTagger(average=False, max_iter=3, tol=None, random_state=0),
        "averaged": PerceptronTagger(max_iter=1, tol=None, early_stopping=True, random_state=0),
        "pieces": PerceptronTagger(max_iter=1, tol=None, structure_alpha=2.5, random_state=0),
        "lengths": PerceptronTagger(max_iter=1, tol=None, mini_length=2.5, random_state=0),
    }
    inexact = {
        "mira": MIRATagger(n_best=3, max_iter=1, tol=None, random_state=0),
        "arow": AROWTagger(max_iter=1, tol=None, random_state=0),
        "sapo": SAPOTagger(max_iter=2, tol=None, average=True, random_state=0),
        "sapo-beam": SAPOTagger(
            search="beam", beam_width=6, max_iter=2, tol=None, random_state=0, n_jobs=2
        ),
        "sgd": CRFTagger(solver="sgd", average=True, max_iter=2, tol=None, random_state=0),
    }
    features, found, y = real_features(), {}, labels()
    noise = np.random.default_rng(2).normal(size=features.shape)
    for kind, values, estimators in (
        ("real", features, exact),
        ("ones", features > 1, exact),
        ("noisy", features + noise * (features > 0), inexact),
    ):
        batch = sparse_batch(values, LENGTHS)
        for name, tagger in estimators.items():
            tagger.fit(batch, y)
            for attribute in CHAIN:
                found[f"{kind}-{name}-{attribute}"] = getattr(tagger, attribute)
            found[f"{kind}-{name}-proba"] = np.concatenate(tagger.predict_proba(batch))
            found[f"{kind}-{name}-labels"] = np.concatenate(tagger.predict(batch))
            best = [x for candidates in tagger.predict_nbest(batch, 3) for x in candidates]
            found[f"{kind}-{name}-nbest"] = np.concatenate([x.labels for x in best])
            found[f"{kind}-{name}-scores"] = np.array([x.score for x in best])
    return found


def partial_labels():
    """Shared transitions, some of them forbidden."""
    y = [[label % 4 for label in part] for part in labels()]
    batch = sparse_batch(real_features(), LENGTHS)
    transition = np.array(list(set(pair for part in y for pair in pairwise(part))))
    possible = np.zeros((4, 4), bool)
    possible[tuple(transition.T)] = True
    online = {"solver": "sgd", "max_iter": 2, "tol": None, "random_state": 0}
    found = {}
    for name, params in {"crf": {"l2": 0.5, "tol": 1e-10, **EVERY}, "sgd": online}.items():
        tagger = CRFTagger(constraint=possible, **params).fit(batch, some_of(y))
        found |= {f"partial-{name}-{part}": getattr(tagger, part) for part in CHAIN}
        found[f"partial-{name}-known"] = np.concatenate(tagger.predict(batch, some_of(y)))
    return found


def few_sentences():
    """Attribute strings and feature dicts of a few sentences, which need no batch."""
    strings = [[["a", "b"], ["b"], []], [["c"], ["a"], ["b", "c", "unseen"]]]
    dicts = [[{"a": 1.5}, {"b": 1}, {}], [{"c": 1}, {"a": 0.5, "n": 2}, {"b": 1, "unseen": 1}]]
    y, found = [[0, 1, 0], [1, 0, 0]], {}
    possible = np.array([[True, True], [True, False]])
    for name, X, params in (
        ("strings", strings, {}),
        ("dicts", dicts, {}),
        ("constraint", strings, {"constraint": possible}),
    ):
        tagger = PerceptronTagger(average=False, max_iter=3, tol=None, random_state=0, **params)
        tagger.fit(X * 3, y * 3)
        best = [candidates[0] for candidates in tagger.predict_nbest(X, 1)]
        found |= {
            f"few-{name}-labels": np.concatenate(tagger.predict(X)),
            f"few-{name}-proba": np.concatenate(tagger.predict_proba(X)),
            f"few-{name}-best": np.concatenate([labelling.labels for labelling in best]),
            f"few-{name}-scores": np.array([labelling.score for labelling in best]),
        }
    merged = np.array([0.0, 1.0, -np.inf])
    merge_changes(merged, np.array([1.0, 1.0, 0.0]), np.array([0.0, 3.0, 0.0]), 0.5)
    return {**found, "merged": merged}


def some_of(y):
    """Labels without every third."""
    return [[None if t % 3 == 1 else label for t, label in enumerate(part)] for part in y]


def starts_of_crfs():
    """Many sequences would be needed for the tagger to do this."""
    lengths, y = [n for n in LENGTHS if n], [label for part in labels() for label in part]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    data = packed_set(
        as_rows(real_features()), offsets, np.array(y, np.int32), np.ones(len(lengths))
    )
    objective = crf_objective(data, 40, 20, l2=0.5)
    epochs = dual_free_epochs(objective, objective.new_memory(), 0.2)
    triples = crf_objective(data._replace(labels=data.labels % 3), 40, 3, l2=0.5, order=2)
    of_triples = dual_free_epochs(triples, triples.new_memory(), 0.2)
    return {
        "crf-start": stochastic_start(objective),
        "crf-start-l1": [theta for theta, *_ in islice(epochs, 12)][-1],
        "crf-start-triples": stochastic_start(triples),
        "crf-start-triples-l1": [theta for theta, *_ in islice(of_triples, 12)][-1],
    }


def transition_features():
    """What is compiled anew where tokens have transitions of their own."""
    rng = np.random.default_rng(3)
    X, edges = rng.normal(size=(sum(LENGTHS), 5)), rng.normal(size=(sum(LENGTHS), 3))
    y = [[label % 4 for label in part] for part in labels()]
    online = {"max_iter": 2, "tol": None, "random_state": 0}
    estimators = {
        "perceptron": PerceptronTagger(**online),
        "mira": MIRATagger(n_best=3, **online),
        "arow": AROWTagger(**online),
        # The scale of the weights gets so small that it is taken out.
        "sapo": SAPOTagger(l2=6.0, learning_rate=0.99, decay=1.0, **online | {"max_iter": 15}),
        "sapo-beam": SAPOTagger(search="beam", beam_width=6, n_jobs=2, **online),
        "sgd": CRFTagger(solver="sgd", average=True, **online),
        "crf": CRFTagger(l2=0.5, tol=1e-10, n_jobs=2),
        "partial-sgd": CRFTagger(solver="sgd", average=True, **online),
        "partial-crf": CRFTagger(l2=0.5, tol=1e-10, **EVERY),
    }
    found = {}
    for kind, values in (("real", edges), ("ones", edges > 0)):
        batch = SequenceBatch.from_lengths(X, LENGTHS, transition_X=values)
        for name, tagger in estimators.items():
            tagger.fit(batch, some_of(y) if "partial" in name else y)
            name = f"transitions-{kind}-{name}"
            for attribute in (*CHAIN, "transition_coef_"):
                found[f"{name}-{attribute}"] = getattr(tagger, attribute)
            found[f"{name}-proba"] = np.concatenate(tagger.predict_proba(batch))
            found[f"{name}-labels"] = np.concatenate(tagger.predict(batch))
            best = [x for candidates in tagger.predict_nbest(batch, 3) for x in candidates]
            found[f"{name}-scores"] = np.array([x.score for x in best])
        kept = [i for i, n in enumerate(LENGTHS) if n]
        codes = np.concatenate([y[i] for i in kept]).astype(np.int32)
        data = packed_set(batch_rows(batch[kept]), batch[kept].offsets, codes, np.ones(len(kept)))
        objective = crf_objective(data, 5, 4, 3, l2=0.5)
        found[f"transitions-{kind}-crf-start"] = stochastic_start(objective)
        epochs = dual_free_epochs(objective, objective.new_memory(), 0.2)
        found[f"transitions-{kind}-crf-start-l1"] = [theta for theta, *_ in islice(epochs, 3)][-1]
    return found


def label_triples():
    """Taggers of second order."""
    batch = sparse_batch(real_features(), LENGTHS)
    y = [[label % 3 for label in part] for part in labels()]
    online = {"order": 2, "max_iter": 2, "tol": None, "random_state": 0}
    estimators = {
        "crf": CRFTagger(order=2, l2=0.5, tol=1e-10),
        "perceptron": PerceptronTagger(**online),
        "mira": MIRATagger(n_best=3, **online),
        "arow": AROWTagger(**online),
        # The scale of the weights gets so small that it is taken out.
        "sapo": SAPOTagger(l2=6.0, learning_rate=0.99, decay=1.0, **online | {"max_iter": 15}),
    }
    found = {}
    for name, tagger in estimators.items():
        tagger.fit(batch, y)
        for attribute in (*CHAIN, "transition2_"):
            found[f"triples-{name}-{attribute}"] = getattr(tagger, attribute)
        found[f"triples-{name}-proba"] = np.concatenate(tagger.predict_proba(batch))
    weights = [np.arange(1.0, n + 1) / 2 for n in LENGTHS]
    found["triples-weighted"] = PerceptronTagger(**online).fit(batch, y, weights).transition2_
    return found


def inner_products():
    """What samples with so many wrong labels take another road for."""
    rng = np.random.default_rng(4)
    length = 2 * products.FEW
    rows = as_rows(rng.integers(3, size=(length, 5)) * 0.5)
    gold, labels = np.zeros(length, np.int32), rng.integers(3, size=(2, length), dtype=np.int32)
    args = np.array([0, length, 1, 1]), gold, labels, True, np.full(9, -1)
    return {"inner-products": products.inner_products(Dense(np.zeros((3, 3))), rows, *args)}


def stochastic_solvers():
    """Solvers of `CRFTagger`, a few epochs of them."""
    lengths, y = [n for n in LENGTHS if n], [label for part in labels() for label in part]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    data = packed_set(
        as_rows(real_features()), offsets, np.array(y, np.int32), np.ones(len(lengths))
    )
    found = {}
    solvers = {
        "sag": StochasticAverageGradient,
        "sag*": partial(StochasticAverageGradient, skip_searches=True),
        "oeg": ExponentiatedGradient,
    }
    for title, solver in solvers.items():
        learner = solver(data, Model(40, 20), l2=0.5, fit_intercept=True)
        random_state = np.random.RandomState(0)
        for _ in range(2):
            learner.epoch(random_state)
        for name, part in zip(Chain._fields, learner.chain(), strict=True):
            found[f"crf-{title}-{name}"] = part
    # What a penalty does that leaves next to no scale of the weights.
    found["sag-step-at-once"] = weights = np.arange(6.0).reshape(3, 2)
    sag.step_at_once(weights, np.ones((3, 2)), 0.5, 0.25)
    return found


def rerankers():
    estimators = {
        "vote": VRDAReranker(l1=0.05, prediction="vote", max_iter=3, random_state=0),
        "average": VRDAReranker(l1=0.05, loss="logistic", max_iter=3, random_state=0),
        "perceptron": PerceptronReranker(max_iter=3, random_state=0),
        "truncated": TruncatedGradientReranker(gravity=0.01, period=2, random_state=0),
    }
    found, sizes = {}, [2, 3, 5, 3, 2]
    costs = np.split(np.random.default_rng(1).random(sum(sizes)), np.cumsum(sizes)[:-1])
    for kind, features in (("real", real_features()), ("ones", real_features() > 1)):
        batch = sparse_batch(features, sizes)
        for name, reranker in estimators.items():
            reranker.fit(batch, costs)
            found[f"{kind}-{name}-reranker"] = reranker.coef_
            found[f"{kind}-{name}-choices"] = reranker.predict(batch)
            found[f"{kind}-{name}-probabilities"] = np.concatenate(reranker.predict_proba(batch))
    # Whole weights and a feature for each candidate: scores that are equal have to be told apart.
    ties = SequenceBatch.from_lengths(np.concatenate([np.eye(5)[:n] for n in sizes]), sizes)
    voted = VRDAReranker(loss="hinge", prediction="vote", max_iter=3, random_state=0)
    found["ties-vote-shares"] = np.concatenate(voted.fit(ties, costs).decision_function(ties))
    return found


def templates():
    X = [[("the", "DT"), ("cat", "NN")], [("the", "DT"), ("the", "NN"), ("dog", "NN")]] * 2
    template = "U0:%x[-1,1]/%x[0,1]\nU1:%x[0,0]\nU2:%x[0,0|prefix3]\nU3:%x[1,0]/%x[2,0]"
    vectorizer = TemplateVectorizer(template, min_freq=2).fit(X)
    unseen = [*X, [("bird", "NN"), ("the", "DT"), ("cat", "NN")]]
    hashing = HashingTemplateVectorizer(template, n_features=64)
    return {
        "templates-known": TemplateVectorizer(template).fit_transform(X).X.toarray(),
        "templates-frequent": TemplateVectorizer(template, min_freq=2)
        .fit_transform(unseen)
        .X.toarray(),
        "templates-unseen": vectorizer.transform(unseen).X.toarray(),
        "templates-hashed": hashing.transform(unseen).X.toarray(),
    }


def dynamic_programmes():
    found = {}
    rng = np.random.default_rng(2)
    for n_labels, forbid in ((1, False), (3, False), (4, True), (40, False)):
        scores = rng.integers(-4, 5, (4, n_labels)).astype(float)
        transition = rng.integers(-4, 5, (n_labels, n_labels)).astype(float)
        if forbid:
            transition[rng.random(transition.shape) < 0.3] = -np.inf
        name, edges = f"chain-{n_labels}-", Dense(transition)
        found[name + "viterbi"] = path = np.empty(4, np.int32)
        found[name + "viterbi-score"] = viterbi.viterbi(scores.copy(), 4, edges, path)
        found[name + "astar"] = paths = np.full((5, 4), -1, np.int32)
        found[name + "astar-scores"] = path_scores = np.full(5, np.nan)
        astar.astar_nbest(scores.copy(), 4, edges, 5, paths, path_scores)
        found[name + "beam"] = paths = np.full((5, 4), -1, np.int32)
        found[name + "beam-scores"] = path_scores = np.full(5, np.nan)
        beam.beam_nbest(scores, 4, edges, 7, 5, paths, path_scores)
        factors = count_by_token(prepare_transitions(transition))
        found[name + "node"] = node = np.empty((4, n_labels))
        found[name + "pairs"] = pairs = np.zeros((3, n_labels, n_labels))
        found[name + "log-partition"] = forward_backward.forward_backward(
            scores.copy(), 4, factors, node, np.empty(4), 2.0, pairs
        )
    return {**found, **dead_ends(), **hard_sums(), **second_order(), **spans()}


def hard_sums():
    """Marginals and counts where scores underflow, are far apart, or are forbidden."""
    found, rng, n, k = {}, np.random.default_rng(5), 4, 3
    for name, far in (("near", 1.0), ("far", 400.0)):
        matrix, emission = rng.normal(scale=far, size=(k, k)), rng.normal(size=(n, k))
        matrix[0, 0] = -np.inf
        # What is left at the last token has hardly any probability before it.
        emission[1], emission[-1] = [0.0, -900.0, -900.0], [-np.inf, -np.inf, 0.0]
        *into, leaving = collect_transitions(matrix, np.empty((0, 0), bool), matrix.size)
        listed = Listed(*into, Leaving(*leaving))
        token = PerToken(np.repeat(matrix[None], n, axis=0))
        shared = prepare_transitions(matrix)
        kinds = factors_of(listed, n), factors_of(token, n), shared, count_by_token(shared)
        for number, factors in enumerate(kinds):
            counts = zero_counts(factors.edges, n) if number < 3 else np.zeros((n - 1, k, k))
            node, title = np.empty((n, k)), f"hard-{name}-{number}-"
            args = emission.copy(), n, factors, node, np.empty(n), 2.0, counts
            found[title + "log-partition"] = forward_backward.forward_backward(*args)
            if number < 3:
                known = np.array([-1, 1, -1, -1], np.int32)
                subtract_agreeing(emission.copy(), known, factors, 2.0, node, counts)
            finish(factors, counts)
            found[title + "node"], found[title + "counts"] = node, counts
    with pytest.raises(TypeError, match="no chain_factors"):
        chain_factors(None)
    return found


def spans():
    """Chunks of two types, with sums that are safe or not, and a choice among them."""
    found, rng = {}, np.random.default_rng(6)
    _, reading, _ = reading_of_labels(("B-a", "B-b", "I-a", "O"))
    offsets = np.array([0, 0, 12, 17])
    for name, scale in (("plain", 1), ("far", 800)):
        transition = rng.normal(scale=scale, size=(4, 4))
        chain = Chain(rng.normal(size=(2, 4)), transition, *rng.normal(size=(3, 4)))
        given = as_rows(rng.normal(size=(17, 2))), offsets, 0, 3, chain
        factors, log_z = chain_factors(chain), np.empty(3)
        paths = tuple(Paths(*paths_inside(factors.edges, reading, 2, t)) for t in range(3))
        for number, thresholds in enumerate(([], [0.1, 0.2])):
            task = Task(reading, *np.ones((2, 4), bool), np.array([True, False]), 0.1 * number,
                        np.array(thresholds))  # fmt: skip
            places, p = find_spans(*given, factors, task, paths, log_z)
            found[f"spans-{name}-{number}-places"] = places
            found[f"spans-{name}-{number}-probabilities"] = p
        found[f"spans-{name}-log-partition"] = log_z
        scores, paths = np.empty(4), np.empty((4, 12), np.int32)
        tokens, end = as_rows(rng.normal(size=(12, 2))), np.array([0, 12])
        best_through(tokens, end, chain, 5, np.arange(4), scores, paths)
        found[f"through-{name}-scores"], found[f"through-{name}-labels"] = scores, paths
    return found


def second_order():
    """All programmes on pairs of labels: sums that are safe or not, and forbidden triples."""
    found, rng, k = {}, np.random.default_rng(4), 3
    search = make_search(4, "astar", 1), make_search(4, "beam", 5, count_misses=True)
    for name, scale, forbidden in (("plain", 1, 0.0), ("forbids", 1, 0.3), ("far", 400, 0.0)):
        transition, triple = rng.normal(size=(k, k)), rng.normal(scale=scale, size=(k * k, k))
        triple[rng.random(triple.shape) < forbidden] = -np.inf
        transition[rng.random(transition.shape) < forbidden] = -np.inf
        chain = SecondOrderChain(rng.normal(size=(2, k)), transition, *np.zeros((3, k)), triple)
        tokens, offsets = as_rows(rng.normal(size=(9, 2))), np.array([0, 4, 5, 9])
        name = f"second-order-{name}-"
        found[name + "labels"] = labels = np.empty(9, np.int32)
        decode_best(tokens, offsets, 0, 3, chain, labels)
        found[name + "node"], found[name + "log-partition"] = node, z = (
            np.empty((9, k)),
            np.empty(3),
        )
        factors = chain_factors(chain)
        decode_marginals(tokens, offsets, 0, 3, chain, factors, node, z)
        for which in search:
            kind = f"{name}{type(which).__name__}-"
            found[kind + "paths"] = paths = np.zeros((4, 9), np.int32)
            found[kind + "scores"] = values = np.zeros((3, 4))
            counts = np.empty(3, np.int64)
            search_range(tokens, offsets, 0, 3, chain, which, paths, values, counts)
        edges, emission = factors.edges, rng.normal(size=(4, k))
        low = np.where(np.arange(4)[:, None] == 1, [0.0, -900.0, -900.0], emission)
        for number, values in enumerate((emission, low)):
            counts, part = zero_counts(edges, 4), factors._replace(forbids=number > 0)
            args = values.copy(), 4, part, np.empty((4, k)), np.empty(4), 2.0, counts
            forward_backward.forward_backward(*args)
            finish(part, counts)
            found[f"{name}{number}-first"], found[f"{name}{number}-log"] = counts[:2]
        known, agreeing = np.array([-1, 1, -1, 0], np.int32), np.zeros((4, k))
        counts = zero_counts(edges, 4)
        found[name + "agreeing"] = agreeing
        subtract_agreeing(emission.copy(), known, factors_of(edges, 4), 1.0, agreeing, counts)
        gold = np.array([0, 1, 1, 2], np.int32)
        found[name + "score"] = scores.path_score(emission, 4, edges, gold)
        if forbidden == 0.0:
            found[name + "viterbi"] = path = np.empty(4, np.int32)
            viterbi.viterbi(emission.copy(), 4, edges, path)
    return found


def listed_transitions():
    """What large label sets are for: here all sets count as large."""
    limits = decoding.LIMITS
    decoding.LIMITS = dict.fromkeys(limits, decoding.Limits(0, 1.0))
    try:
        batch, y = sparse_batch(real_features(), LENGTHS), labels()
        crf = CRFTagger(l2=0.5, tol=1e-10).fit(batch, y)
        found = {
            "listed-crf": crf.coef_,
            **{f"listed-{name}": start for name, start in starts_of_crfs().items()},
            "listed-crf-proba": np.concatenate(crf.predict_proba(batch)),
            "listed-crf-labels": np.concatenate(crf.predict(batch)),
            "listed-crf-spans": np.array(
                [s.probability for p in crf.predict_spans(batch) for s in p]
            ),
        }
        for tagger in (PerceptronTagger(), MIRATagger(n_best=3), SAPOTagger(), AROWTagger()):
            tagger.set_params(max_iter=2, tol=None, random_state=0).fit(batch, y)
            found[f"listed-{type(tagger).__name__}"] = tagger.transition_
        rows, offsets = as_rows(np.zeros((3, 1))), np.array([0, 3])
        zero, forbidden = np.zeros(3), -np.inf
        chain = Chain(np.zeros((1, 3)), np.zeros((3, 3)), zero, zero, zero)
        # Five labels before the last one are better than the only one that is not listed for it.
        scores, transition = np.zeros((2, 6)), np.zeros((6, 6))
        scores[0], transition[:5, 5] = [5.0, 4.0, 3.0, 2.0, 1.0, 0.0], -9.0
        listed = decoding.list_transitions(transition, "best")
        found["listed-labels"] = path = np.empty(2, np.int32)
        found["listed-score"] = viterbi.viterbi(scores, 2, listed, path)
        # A label that is sure and hardly ever precedes the second; a way that underflows; a label
        # that nothing can precede.
        for name, start, transition in (
            ("sure", [50.0, 0.0, 0.0], [[0.0, -40.0, forbidden], [0, 0, 0], [-40.0, 0, 0]]),
            ("lost", [0.0, -900.0, 0.0], [[0.0, 0.0, forbidden], [0, 0, 0], [0, 0, forbidden]]),
            ("cut", [0.0, forbidden, 0.0], [[0.0, 0.0, forbidden], [0, 0, 0], [0, 0, forbidden]]),
        ):
            chain = chain._replace(start=np.array(start), transition=np.array(transition))
            chain = chain._replace(end=np.array([forbidden, forbidden, 0.0]))
            found[f"listed-{name}"], found[f"listed-{name}-log"] = decoding.marginals(
                rows, offsets, chain, 1, forbids=True
            )
    finally:
        decoding.LIMITS = limits
    return found


def dead_ends():
    """What is best so far but leads nowhere, for a beam and for what underflows on the way."""
    scores = np.array([[5.0, 0.0], [5.0, -900.0], [-np.inf, 0.0]])
    transition = np.array([[0.0, -np.inf], [0.0, 0.0]])
    paths, path_scores = np.full((1, 3), -1, np.int32), np.full(1, np.nan)
    search = make_search(1, "beam", 1)
    search_nbest(search, scores.copy(), 3, Dense(transition), paths, path_scores)
    transitions = prepare_transitions(transition)
    node, pairs = np.empty((3, 2)), np.zeros((2, 2))
    log_z = forward_backward.forward_backward(
        scores.copy(), 3, transitions, node, np.empty(3), 1.0, pairs
    )
    finish(transitions, pairs)
    return {
        "dead-ends-labels": paths,
        "dead-ends-score": path_scores,
        "dead-ends-log-partition": log_z,
        "dead-ends-node": node,
        "dead-ends-pairs": pairs,
    }


def vector_operations():
    a, b = np.random.default_rng(3).normal(size=(2, 11))
    out = np.empty(11)
    lbfgs.add_scaled(a, 0.5, b, out)
    found = {"dot": lbfgs.dot(a, b), "add_scaled": out}
    # Fewer labels than a block has columns, and more.
    for n in (3, 11):
        matrix = np.random.default_rng(n).normal(size=(n, n))
        for product in (rows.vector_matrix, rows.max_plus):
            found[f"{product.__name__}-{n}"] = np.empty(n)
            product(a[:n], matrix, found[f"{product.__name__}-{n}"])
        rows.add_outer(0.5, a[:n], b[:n], matrix)
        found[f"add_outer-{n}"] = matrix
        chain = Chain(np.random.default_rng(n).normal(size=(40, n)), matrix, a[:n], b[:n], b[:n])
        for kind, values in (("real", real_features()), ("ones", real_features() > 1)):
            found[f"scores-{kind}-{n}"] = np.empty((sum(LENGTHS), n))
            scores.sequence_scores(
                as_rows(values), 0, sum(LENGTHS), chain, found[f"scores-{kind}-{n}"]
            )
    indptr, columns = np.array([0, 1, 1, 25]), np.array([7, *range(23, -1, -1)], np.int32)
    values = columns + 0.5
    sort_rows(indptr, columns, values)
    return {**found, "sorted": columns, "sorted-values": values}


def kernels_of(module):
    """Names of the functions of a module that are compiled, and of all of a chain's."""
    path, module = keys._FILES[module], import_module(module)
    compiled = re.findall(r"^@(?:\w*jit|\w+\.of)\b.*\n(?:@.*\n)*def (\w+)", path.read_text(), re.M)
    below = module.__name__.startswith(("skstruct.chain.", "skstruct.compiled."))
    return {
        function.__name__
        for name, function in vars(module).items()
        if callable(function)
        and not inspect.isclass(function)
        and getattr(function, "__module__", None) == module.__name__
        and (below or function.__name__ in compiled)
        # What only helps to make machine code is not there uncompiled.
        and not name.startswith("_")
    }


def main(path):
    called = {}

    def note(frame, event, argument):
        # For each of millions of calls: nothing else may be done here.
        called[id(frame.f_code)] = frame.f_code

    threading.setprofile(note)
    sys.setprofile(note)
    found = results()
    sys.setprofile(None)
    threading.setprofile(None)
    reached = set()
    for code in called.values():
        if code.co_filename.startswith(str(FOLDER)):
            module = Path(code.co_filename).relative_to(FOLDER.parent).with_suffix("").parts
            reached.add(".".join([*module, code.co_name]))
    np.savez(path, reached=sorted(reached), **found)


@pytest.fixture(scope="module")
def uncompiled(tmp_path_factory):
    path = tmp_path_factory.mktemp("uncompiled") / "results.npz"
    process = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.returncode == 0, process.stderr
    with np.load(path) as found:
        return dict(found)


def test_compiled_kernels_give_the_same(uncompiled):
    expected = {name: np.asarray(value) for name, value in results().items()}
    assert uncompiled.keys() == expected.keys() | {"reached"}
    for name, value in expected.items():
        tolerance = 1e-12
        if "crf" in name:
            # Fits end at about the same point, after sums in another order.
            tolerance = 1e-4
        elif name.startswith("blocks"):
            # Online learners multiply vectors in single precision.
            tolerance = 1e-5
        np.testing.assert_allclose(
            uncompiled[name], value, rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("module", MODULES)
def test_every_kernel_was_run_uncompiled(uncompiled, module):
    names = [name.rpartition(".") for name in uncompiled["reached"]]
    reached = {kernel for home, _, kernel in names if home == module}
    assert kernels_of(module) - reached - COMPILED_ONLY == set()


if __name__ == "__main__":
    main(sys.argv[1])
