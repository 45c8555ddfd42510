"""Features of transitions: everything against the list of all labellings and their feature vectors.

A labelling of a sequence has one long vector of features: those of its labels, label pairs and
biases, and those of its transitions. Its score is the product with all weights. That is the whole
model, and learners are twins that know nothing else.
"""

import warnings
from itertools import islice, pairwise

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.marks import compiled
from helpers.objectives import crf_objective, evaluate, training_set
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from strategies import ELEMENTS, kind_of, lengths

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
)
from skstruct.chain.astar import astar_nbest
from skstruct.chain.beam import beam_nbest
from skstruct.chain.dense import Dense
from skstruct.chain.forward_backward import forward_backward
from skstruct.chain.per_token import PerToken, TransitionChain
from skstruct.chain.protocol import factors_of, zero_counts
from skstruct.chain.viterbi import viterbi
from skstruct.input.training_set import zero_transition_weights
from skstruct.learning.ascent import draw_order
from skstruct.learning.online import cut_sequences
from skstruct.learning.start import dual_free_epochs
from skstruct.utils.parallel import range_runner

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

TAGGERS = {
    "perceptron": PerceptronTagger(max_iter=3, tol=None, random_state=0),
    "sapo": SAPOTagger(max_iter=3, tol=None, random_state=0),
    "mira": MIRATagger(n_best=2, max_iter=3, tol=None, random_state=0),
    "arow": AROWTagger(max_iter=3, tol=None, random_state=0),
    "sgd": CRFTagger(solver="sgd", max_iter=3, tol=None, random_state=0),
    "lbfgs": CRFTagger(),
}
# Each learner, and each programme alone, is compiled for such features, which takes longer than all
# that the tests do.
COMPILES = pytest.mark.slow
NAMES = [compiled(name) if name in ("sapo", "mira", "arow", "sgd") else name for name in TAGGERS]
every_tagger = pytest.mark.parametrize("name", NAMES)
every_online_tagger = pytest.mark.parametrize("name", NAMES[:-1])


# ------------------------------------------------------------------------------- dynamic programmes


@st.composite
def scores_of_each(draw, min_length=0, kinds=tuple(ELEMENTS)):
    """Emission scores, and transition scores of each token, of which some may be forbidden."""
    length, n_labels = draw(st.integers(min_length, 5)), draw(st.integers(1, 4))
    scores = draw(arrays(float, (length, n_labels), elements=ELEMENTS[draw(kind_of(kinds))]))
    shape = (length, n_labels, n_labels)
    transition = draw(arrays(float, shape, elements=ELEMENTS[draw(kind_of(kinds))]))
    if draw(st.booleans()):
        # From one label all others stay allowed.
        transition[:, 1:][draw(arrays(bool, (length, n_labels - 1, n_labels)))] = -np.inf
    return scores, transition


def listed(scores, transition):
    """All labellings and their scores."""
    found = naive.labellings(*scores.shape)
    return found, np.array([
        sum(scores[t, j] for t, j in enumerate(labels))
        + sum(transition[t + 1, i, j] for t, (i, j) in enumerate(pairwise(labels)))
        for labels in found
    ])  # fmt: skip


@COMPILES
@given(scores_of_each())
def test_viterbi_finds_the_best(case):
    scores, transition = case
    labels = np.empty(len(scores), np.int32)
    score = viterbi(scores.copy(), len(scores), PerToken(transition), labels)
    found, expected = listed(scores, transition)
    assert_allclose(score, expected.max(), rtol=1e-13, atol=1e-13)
    assert_allclose(expected[found.index(tuple(labels.tolist()))], score, rtol=1e-13, atol=1e-13)


@COMPILES
@given(scores_of_each(kinds=("ties", "large")), st.integers(1, 30), st.data())
def test_searches_find_the_best_in_order(case, n, data):
    scores, transition = case
    found, score_of = listed(scores, transition)
    expected = [(s, labels) for s, labels in zip(score_of, found, strict=True) if s > -np.inf]
    expected.sort(key=lambda item: (-item[0], item[1][::-1]))
    for search in (astar_nbest, beam_nbest):
        labels, path_scores = np.empty((n, len(scores)), np.int32), np.empty(n)
        width = (max(len(found), n),) if search is beam_nbest else ()
        edges = PerToken(transition)
        n_found = search(scores.copy(), len(scores), edges, *width, n, labels, path_scores)
        assert n_found == min(n, len(expected))
        assert_array_equal(path_scores[:n_found], [s for s, _ in expected[:n]])
        assert [tuple(row) for row in labels[:n_found].tolist()] == [x for _, x in expected[:n]]


@COMPILES
@given(scores_of_each(min_length=1), st.sampled_from([1.0, -0.5]))
def test_marginals_are_those_of_all_labellings(case, weight):
    scores, transition = case
    length, k = scores.shape
    found, score_of = listed(scores, transition)
    log_z = logsumexp(score_of)
    node, expected_pairs = np.zeros((length, k)), np.zeros((length - 1, k, k))
    for labels, p in zip(found, np.exp(score_of - log_z), strict=True):
        for t, j in enumerate(labels):
            node[t, j] += p
            if t > 0:
                expected_pairs[t - 1, labels[t - 1], j] += weight * p
    marginals, pairs = np.empty((length, k)), np.zeros((length + 2, k, k))
    value = forward_backward(
        scores.copy(), length, factors_of(PerToken(transition), length), marginals,
        np.empty(length), weight, pairs,
    )  # fmt: skip
    assert_allclose(value, log_z, rtol=1e-13, atol=1e-12)
    assert_allclose(marginals, node, atol=1e-11)
    assert_allclose(pairs[1:length], expected_pairs, atol=1e-11)
    assert_array_equal(pairs[0], 0)
    assert_array_equal(pairs[length:], 0)


@COMPILES
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from([2, 5, 40]))
def test_the_same_matrix_for_all_tokens_gives_the_same_bits(seed, length, k):
    rng = np.random.default_rng(seed)
    scores, shared = rng.normal(size=(length, k)), rng.normal(size=(k, k))
    results = []
    for edges in (Dense(shared), PerToken(np.repeat(shared[None], length, axis=0))):
        paths, path_scores = np.empty((4, length), np.int32), np.empty(4)
        astar_nbest(scores.copy(), length, edges, 4, paths, path_scores)
        node = np.empty((length, k))
        factors, none = factors_of(edges, length), zero_counts(edges, 0)
        log_z = forward_backward(scores.copy(), length, factors, node, np.empty(length), 0.0, none)
        results.append([paths[0], path_scores[0], node, log_z])
    for a, b in zip(*results, strict=True):
        assert_array_equal(a, b)


# ---------------------------------------------------------------------------------- the plain model


class Model:
    """Feature vectors of labellings, and their scores for given weights."""

    def __init__(self, n_labels, n_features, n_transition_features, *, intercept=True):
        k, self.intercept = n_labels, intercept
        self.n_labels = k
        self.shapes = [(k, n_features), (k, k), (k,), (k,), (k,), (k, k, n_transition_features)]
        self.size = sum(map(np.prod, self.shapes))

    def features(self, x, edges, labels, first=True, last=True):
        coef, transition, bias, start, end, edge_coef = parts = [np.zeros(s) for s in self.shapes]
        for t, label in enumerate(labels):
            coef[label] += x[t]
            bias[label] += self.intercept
            if t > 0:
                transition[labels[t - 1], label] += 1
                edge_coef[labels[t - 1], label] += edges[t]
        start[labels[0]] += self.intercept and first
        end[labels[-1]] += self.intercept and last
        return np.concatenate([part.ravel() for part in parts])

    def all_features(self, x, *rest):
        found = naive.labellings(len(x), self.n_labels)
        return found, np.array([self.features(x, rest[0], labels, *rest[1:]) for labels in found])

    def parts(self, w):
        cuts = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        return [p.reshape(s) for p, s in zip(np.split(w, cuts), self.shapes, strict=True)]

    def chain(self, w):
        coef, *others, edges = self.parts(w)
        edges = edges.transpose(2, 0, 1).reshape(-1, self.n_labels**2)
        return TransitionChain(coef.T.copy(), *(part.copy() for part in others), edges.copy())

    def from_chain(self, chain):
        edges = chain.transition_weights.reshape(-1, self.n_labels, self.n_labels).transpose(
            1, 2, 0
        )
        parts = [chain.weights.T, *chain[1:5], edges]
        return np.concatenate([part.ravel() for part in parts])


def weights_of(tagger):
    names = ("coef_", "transition_", "intercept_", "start_", "end_", "transition_coef_")
    return np.concatenate([getattr(tagger, name).ravel() for name in names])


def model_of(tagger):
    sizes = len(tagger.classes_), tagger.n_features_in_, tagger.n_transition_features_in_
    return Model(*sizes)


def sequences_of(batch):
    edges = batch.transition_X
    edges = edges.toarray() if sp.issparse(edges) else edges
    return list(zip(batch, np.split(edges, batch.offsets[1:-1]), strict=True))


@st.composite
def problems(draw, values=("eighths", "normal", "ones"), max_labels=3):
    """A batch with features of transitions, its labels, sample weights, and a generator."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = draw(lengths(min_tokens=3, max_sequences=6))
    n_labels, kind = draw(st.integers(1, max_labels)), draw(st.sampled_from(values))

    def matrix(n_columns):
        shape = (sum(found), n_columns)
        some = {
            "eighths": rng.integers(-8, 9, shape) / 8,
            "normal": rng.normal(size=shape),
            "ones": np.ones(shape),
        }
        return some[kind] * (rng.random(shape) < 0.6)

    X, edges = matrix(draw(st.integers(1, 3))), matrix(draw(st.integers(1, 3)))
    y = rng.integers(n_labels, size=len(X))
    y[:n_labels] = np.arange(n_labels)
    y = [part.tolist() for part in np.split(y, np.cumsum(found)[:-1])]
    weight = rng.choice([0.5, 1.0, 2.0], len(found)) if draw(st.booleans()) else np.ones(len(found))
    if draw(st.booleans()):
        edges = sp.csr_matrix(edges)
    return SequenceBatch.from_lengths(X, found, transition_X=edges), y, weight, rng


def random_batch(seed=0, n_sequences=30, n_labels=3, most=6):
    """Labels that depend on the one before where the second matrix says so."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, most + 1, n_sequences)
    X, edges = rng.normal(size=(found.sum(), 3)) / 10, rng.integers(0, 2, (found.sum(), 2)) * 1.0
    y = []
    for a, b in pairwise(np.concatenate([[0], np.cumsum(found)]).tolist()):
        labels = [int(rng.integers(n_labels))] if b > a else []
        for t in range(a + 1, b):
            labels.append(int((labels[-1] + 1 + edges[t, 0]) % n_labels))
        if b > a:
            X[a, labels[0]] = 3.0
        y.append(labels)
    return SequenceBatch.from_lengths(X, found, transition_X=edges), y


def without_edges(batch):
    return SequenceBatch(batch.X, batch.offsets)


# --------------------------------------------------------------------------------------- prediction


@every_tagger
@given(problems(), st.sampled_from(["astar", "beam"]))
def test_predictions_are_those_of_all_labellings(name, problem, search):
    batch, y, _, rng = problem
    tagger = clone(TAGGERS[name]).set_params(max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger.fit(batch, y)
    # Any weights will do.
    tagger.coef_ = rng.normal(size=tagger.coef_.shape)
    tagger.transition_ = rng.normal(size=tagger.transition_.shape)
    tagger.transition_coef_ = rng.normal(size=tagger.transition_coef_.shape)
    model, w = model_of(tagger), weights_of(tagger)
    lists = tagger.predict_nbest(batch, 4, search=search, beam_width=81)
    answers = zip(
        sequences_of(batch), tagger.predict(batch), tagger.predict_proba(batch), lists, strict=True
    )
    for (x, edges), labels, proba, best in answers:
        if len(x) == 0:
            assert labels == [] == best[0].labels
            continue
        found, features = model.all_features(x, edges)
        scores = features @ w
        order = np.argsort(-scores)[:4]
        # Among labellings of tokens without features there are ties.
        place = {tuple(tagger.classes_[list(path)].tolist()): m for m, path in enumerate(found)}
        places = [place[tuple(b.labels)] for b in best]
        assert len(set(places)) == len(order)
        for m in (places, order):
            assert_allclose([b.score for b in best], scores[m], atol=1e-9)
        p = np.exp(scores - logsumexp(scores))
        assert_allclose([b.probability for b in best], p[order], atol=1e-9)
        assert_allclose(scores[place[tuple(labels)]], scores.max(), atol=1e-9)
        one_hot = np.eye(len(tagger.classes_))[np.array(found)]
        assert_allclose(proba, np.tensordot(p, one_hot, axes=1), atol=1e-9)


@every_tagger
def test_they_learn_what_features_of_tokens_cannot_tell(name):
    batch, y = random_batch()
    tagger = clone(TAGGERS[name]).set_params(max_iter=30)
    assert tagger.fit(batch, y).score(batch, y) > 0.95
    assert tagger.transition_coef_.shape == (3, 3, 2)
    plain = tagger.fit(without_edges(batch), y)
    assert plain.score(without_edges(batch), y) < 0.8
    assert not hasattr(plain, "transition_coef_")
    assert not hasattr(plain, "n_transition_features_in_")


@every_tagger
def test_sparse_and_dense_and_several_jobs_are_the_same(name):
    batch, y = random_batch()
    dense = clone(TAGGERS[name]).fit(batch, y)
    edges = sp.csr_array(batch.transition_X)
    sparse = SequenceBatch(batch.X, batch.offsets, transition_X=edges)
    assert_array_equal(weights_of(clone(dense).fit(sparse, y)), weights_of(dense))
    proba = np.concatenate(dense.predict_proba(batch))
    dense.n_jobs = 3
    assert_array_equal(np.concatenate(dense.predict_proba(sparse)), proba)
    assert (
        dense.predict_nbest(batch, 3)[4] == dense.set_params(n_jobs=1).predict_nbest(sparse, 3)[4]
    )


@every_tagger
def test_rows_of_first_tokens_do_not_matter(name):
    batch, y = random_batch()
    edges = batch.transition_X.copy()
    edges[batch.offsets[:-1][batch.lengths > 0]] = 77.0
    other = SequenceBatch(batch.X, batch.offsets, transition_X=edges)
    tagger = clone(TAGGERS[name]).fit(batch, y)
    assert_array_equal(weights_of(clone(tagger).fit(other, y)), weights_of(tagger))
    before = tagger.predict_proba(batch)
    assert_array_equal(np.concatenate(tagger.predict_proba(other)), np.concatenate(before))


# ----------------------------------------------------------------------------------------- learning


def visits(batch, n_epochs, seed, mini_length=None):
    """For every epoch, the pieces of sequences as taggers visit them, and whose they are."""
    rng = np.random.RandomState(seed)
    for _ in range(n_epochs):
        samples, owner = cut_sequences(batch.offsets, rng, mini_length=mini_length)
        order = np.arange(len(samples))
        rng.shuffle(order)
        yield [(samples[i], owner[i]) for i in order]


def learn(rule, model, batch, codes, weight, epochs, *, l2=0.0, rate=1.0, decay=1.0):
    """Last weights and their average, with the updates of a rule."""
    X = batch.X
    edges = batch.transition_X.toarray() if sp.issparse(batch.transition_X) else batch.transition_X
    w, total, n_seen = np.zeros(model.size), np.zeros(model.size), 0
    for visited in epochs:
        for (a, b, first, last), i in visited:
            if a == b:
                continue
            found, features = model.all_features(X[a:b], edges[a:b], bool(first), bool(last))
            gold = found.index(tuple(codes[a:b]))
            w = w + rate * weight[i] * rule(w, found, features, gold)
            w = w * (1 - rate * l2 / len(visited))
            rate *= decay ** (1 / len(visited))
            total += w
            n_seen += 1
    return w, total / n_seen


def ranked(w, found, features, n):
    scores = features @ w
    order = sorted(range(len(found)), key=lambda m: (-scores[m], found[m][::-1]))[:n]
    return order, scores


def perceptron_rule(w, found, features, gold):
    [best], _ = ranked(w, found, features, 1)
    return features[gold] - features[best]


def sapo_rule(w, found, features, gold):
    order, scores = ranked(w, found, features, 3)
    p = np.exp(scores[order] - logsumexp(scores[order]))
    return features[gold] - p @ features[order]


def crf_rule(w, found, features, gold):
    scores = features @ w
    return features[gold] - np.exp(scores - logsumexp(scores)) @ features


def mira_rule(w, found, features, gold, *, cap=10.0):
    order, _ = ranked(w, found, features, 3)
    D = features[gold] - features[order]
    cost = np.array(
        [sum(a != b for a, b in zip(found[gold], found[m], strict=True)) for m in order]
    )
    missing = np.where(cost > 0, cost - D @ w, 0.0)
    A, multipliers = D @ D.T, np.zeros(len(order))
    if missing.max() > 0:
        for k in range(len(order)):
            if A[k, k] > 0:
                multipliers[k] = np.clip((missing[k] - A[k] @ multipliers) / A[k, k], 0, cap)
    return multipliers @ D


def check_against_twin(tagger, rule, problem, mini_length, **how):
    batch, y, weight, _ = problem
    average, n_epochs = tagger.average, tagger.max_iter
    tagger.set_params(mini_length=mini_length, tol=None, random_state=3).fit(batch, y, weight)
    if tagger.n_iter_ < n_epochs:
        return
    model = Model(
        len(tagger.classes_), batch.n_features, batch.n_transition_features,
        intercept=tagger.fit_intercept,
    )  # fmt: skip
    codes = [label for labels in y for label in labels]
    last, mean = learn(
        rule, model, batch, codes, weight, visits(batch, n_epochs, 3, mini_length), **how
    )
    expected = mean if average else last
    assert_allclose(weights_of(tagger), expected, rtol=1e-7, atol=1e-9)
    if not average:
        coef, *_, edges = model.parts(last)
        norm = np.linalg.norm(np.concatenate([coef.ravel(), edges.ravel()]))
        assert_allclose(tagger.history_["weight_norm"][-1], norm, atol=1e-8)


modes = (st.booleans(), st.booleans(), st.sampled_from([None, 1.5, 2]))


@given(problems(values=("eighths", "ones")), *modes)
def test_perceptron_steps_are_the_twins(problem, average, intercept, mini_length):
    tagger = PerceptronTagger(average=average, fit_intercept=intercept, max_iter=2)
    check_against_twin(tagger, perceptron_rule, problem, mini_length)


@COMPILES
@given(problems(values=("normal",)), *modes)
def test_sapo_steps_are_the_twins(problem, average, intercept, mini_length):
    tagger = SAPOTagger(
        n_best=3, l2=0.7, learning_rate=0.11, decay=0.8, average=average, fit_intercept=intercept,
        max_iter=2,
    )  # fmt: skip
    how = {"l2": 0.7, "rate": 0.11, "decay": 0.8}
    check_against_twin(tagger, sapo_rule, problem, mini_length, **how)


@COMPILES
@given(problems(values=("normal",)), *modes)
def test_mira_steps_are_the_twins(problem, average, intercept, mini_length):
    tagger = MIRATagger(
        n_best=3, C=10.0, update="sequential", average=average, fit_intercept=intercept, max_iter=1
    )
    check_against_twin(tagger, mira_rule, problem, mini_length)


@COMPILES
@given(problems(), *modes)
def test_crf_steps_are_the_twins(problem, average, intercept, mini_length):
    tagger = CRFTagger(
        solver="sgd", l2=0.7, learning_rate=0.11, decay=0.8, average=average,
        fit_intercept=intercept, max_iter=2,
    )  # fmt: skip
    how = {"l2": 0.7, "rate": 0.11, "decay": 0.8}
    check_against_twin(tagger, crf_rule, problem, mini_length, **how)


@COMPILES
def test_a_strong_penalty_survives_many_epochs():
    batch, y = random_batch(most=3)
    # Shrinks by a factor of about 1e-8 in every epoch, so that the scale is taken out again.
    how = {"l2": 15.0, "decay": 1.0}
    tagger = CRFTagger(
        solver="sgd", learning_rate=0.9, max_iter=20, tol=None, random_state=0, **how
    ).fit(batch, y)
    codes, epochs = [label for labels in y for label in labels], visits(batch, 20, 0)
    expected, _ = learn(
        crf_rule, model_of(tagger), batch, codes, np.ones(len(y)), epochs, rate=0.9, **how
    )
    assert_allclose(weights_of(tagger), expected, rtol=1e-7, atol=1e-12)


@every_online_tagger
def test_an_epoch_of_fit_is_a_partial_fit(name):
    batch, y = random_batch()
    tagger = clone(TAGGERS[name]).set_params(max_iter=1, shuffle=False)
    fitted = clone(tagger).fit(batch, y)
    assert_allclose(weights_of(tagger.partial_fit(batch, y)), weights_of(fitted), atol=1e-12)
    with pytest.raises(ValueError, match=r"no transition features, but .* is expecting 2"):
        tagger.partial_fit(without_edges(batch), y)


@every_tagger
def test_a_warm_start_goes_on_with_all_weights(name):
    batch, y = random_batch()
    tagger = clone(TAGGERS[name]).set_params(warm_start=True, max_iter=50).fit(batch, y)
    known = weights_of(tagger)
    assert np.any(tagger.transition_coef_ != 0)
    # Nothing moves where the rate is next to zero, or the optimum is reached already.
    if name in ("sapo", "sgd"):
        tagger.set_params(learning_rate=1e-12, max_iter=1)
    elif name == "mira":
        tagger.set_params(C=1e-12, max_iter=1, average=False)
    elif name == "perceptron":
        tagger.set_params(max_iter=1, average=False)
        tagger.fit(batch, y, sample_weight=np.full(len(y), 1e-12))
        assert_allclose(weights_of(tagger), known, atol=1e-9)
        return
    atol = 0.05 if name == "lbfgs" else 1e-9
    assert_allclose(weights_of(tagger.fit(batch, y)), known, atol=atol)


@every_online_tagger
@pytest.mark.parametrize("average", [False, True])
def test_early_stopping_keeps_the_weights_of_the_best_epoch(name, average):
    batch, y = random_batch(n_sequences=60)
    tagger = clone(TAGGERS[name]).set_params(
        early_stopping=True, validation_fraction=0.3, max_iter=8, average=average
    )
    tagger.fit(batch, y)
    rng = np.random.RandomState(0)
    counting = np.flatnonzero(batch.lengths > 0)
    held = np.sort(counting[rng.permutation(len(counting))][: round(0.3 * len(counting))])
    score = tagger.score(batch[held], [y[i] for i in held])
    assert_allclose(score, max(tagger.history_["validation_score"]))


@every_online_tagger
def test_shards_mix_all_weights(name):
    batch, y = random_batch(n_sequences=12)
    tagger = clone(TAGGERS[name]).set_params(
        n_jobs=2, max_iter=1, shuffle=False, fit_intercept=False, average=False
    )
    counting = np.flatnonzero(batch.lengths > 0)
    parts = []
    for shard in (counting[::2], counting[1::2]):
        alone = clone(tagger).set_params(n_jobs=1)
        # The penalty and the decay of each are those of all the samples.
        if hasattr(alone, "l2"):
            alone.l2 = alone.l2 * len(shard) / len(batch)
        labels = [y[i] for i in shard]
        parts.append(weights_of(alone.partial_fit(batch[shard], labels, classes=[0, 1, 2])))
    tagger.fit(batch, y)
    assert_allclose(weights_of(tagger), np.mean(parts, axis=0), atol=1e-9)


def test_a_step_without_transitions_leaves_their_features_alone():
    batch, y = random_batch()
    tagger = PerceptronTagger(mini_length=1, max_iter=2, tol=None, random_state=0).fit(batch, y)
    assert_array_equal(tagger.transition_coef_, 0)
    assert np.any(tagger.coef_ != 0)


# ------------------------------------------------------------------------------------ the objective


def make_objective(problem, *, l2=0.5, min_freq=0, every_pair=False, intercept=True):
    batch, y, weight, _ = problem
    k = max(max(labels, default=0) for labels in y) + 1
    objective = crf_objective(
        training_set(batch, y, weight),
        batch.n_features,
        k,
        batch.n_transition_features,
        l2=l2,
        min_freq=min_freq,
        all_possible_states=every_pair,
        all_possible_transitions=every_pair,
        fit_intercept=intercept,
    )
    return objective, Model(k, batch.n_features, batch.n_transition_features)


options = (st.sampled_from([0, 1.5]), st.booleans(), st.booleans())


@given(problems(), *options)
def test_weights_are_those_of_pairs_seen_with_a_feature(problem, min_freq, every_pair, intercept):
    batch, y, weight, _ = problem
    objective, model = make_objective(
        problem, min_freq=min_freq, every_pair=every_pair, intercept=intercept
    )
    frequency, occurs = np.zeros(model.shapes[5]), np.zeros(model.shapes[5], bool)
    for (_, edges), labels, s in zip(sequences_of(batch), y, weight, strict=True):
        for t in range(1, len(labels)):
            frequency[labels[t - 1], labels[t]] += s * np.abs(edges[t])
            occurs[labels[t - 1], labels[t]] |= edges[t] != 0
    if every_pair:
        occurs[:] = occurs.any(axis=(0, 1))
    expected = occurs & (frequency >= min_freq)
    ones = model.chain(np.ones(model.size))
    *_, kept = model.parts(model.from_chain(objective.unpack(objective.pack(ones))))
    assert_array_equal(kept, expected)
    assert objective.n_weights == objective.pack(ones).sum()


@given(problems(), *options, st.sampled_from([1, 3]))
def test_value_and_gradient_are_those_of_all_labellings(
    problem, min_freq, every_pair, intercept, n_jobs
):
    batch, y, weight, rng = problem
    objective, model = make_objective(
        problem, min_freq=min_freq, every_pair=every_pair, intercept=intercept
    )
    theta = objective.pack(model.chain(rng.normal(size=model.size)))
    w = model.from_chain(objective.unpack(theta))
    value, slope = 0.25 * w @ w, 0.5 * w
    for (x, edges), labels, s in zip(sequences_of(batch), y, weight, strict=True):
        if not labels:
            continue
        found, features = model.all_features(x, edges)
        scores, gold = features @ w, found.index(tuple(labels))
        value += s * (logsumexp(scores) - scores[gold])
        slope += s * (np.exp(scores - logsumexp(scores)) @ features - features[gold])
    found_value, gradient = evaluate(objective, theta, n_jobs)
    assert_allclose(found_value, value, rtol=1e-11)
    assert_allclose(gradient, objective.pack(model.chain(slope)), atol=1e-10)


@given(problems(values=("normal",)))
def test_gradient_is_that_of_finite_differences(problem):
    objective, model = make_objective(problem, every_pair=True)
    rng = problem[3]
    theta = objective.pack(model.chain(rng.normal(size=model.size)))
    _, gradient = evaluate(objective, theta)
    direction = objective.pack(model.chain(rng.normal(size=model.size)))
    step = 1e-5
    ahead, behind = (evaluate(objective, theta + s * step * direction)[0] for s in (1, -1))
    assert_allclose((ahead - behind) / (2 * step), gradient @ direction, rtol=1e-5, atol=1e-5)


@given(problems())
def test_curvature_of_pairs_is_their_expected_count(problem):
    batch, _, weight, rng = problem
    objective, model = make_objective(problem, every_pair=True)
    theta = objective.pack(model.chain(rng.normal(size=model.size)))
    w = model.from_chain(objective.unpack(theta))
    expected = np.zeros(model.shapes[5])
    for (x, edges), s in zip(sequences_of(batch), weight, strict=True):
        if len(x):
            found, features = model.all_features(x, edges)
            scores = features @ w
            for labels, p in zip(found, np.exp(scores - logsumexp(scores)), strict=True):
                for t, (i, j) in enumerate(pairwise(labels)):
                    expected[i, j] += s * p * edges[t + 1] ** 2
    diagonal = np.empty(objective.size)
    with range_runner(objective.offsets, 2) as run:
        objective.curvature(theta, diagonal, run)
    *_, found = model.parts(model.from_chain(objective.unpack(diagonal)))
    occurs = expected.any(axis=(0, 1))
    assert_allclose(found[..., occurs], expected[..., occurs] + 0.5, atol=1e-10)


@COMPILES
@given(problems())
def test_dual_free_epochs_go_step_by_step(problem):
    batch, y, weight, _ = problem
    kept = [i for i, labels in enumerate(y) if labels]
    batch, y, weight = batch[kept], [y[i] for i in kept], weight[kept]
    k = max(map(max, y)) + 1
    objective, model = make_objective((batch, y, weight, None), l2=0.7, every_pair=True)
    w, memory, random_state = np.zeros(model.size), objective.new_memory(), np.random.RandomState(0)
    kept = [(np.zeros((len(g), k), "f4"), np.zeros((len(g) - 1, k, k), "f4")) for g in y]
    past = [{"divergence": 0.0, "share": 0.8} for _ in y]
    order = random_state.permutation(len(y))
    for theta, *_ in islice(dual_free_epochs(objective, memory), 3):
        for i in order:
            x, edges = sequences_of(batch)[i]
            labellings, features = model.all_features(x, edges)
            scores, gold = features @ w, y[i]
            found = [np.zeros(part.shape) for part in kept[i]]
            share_of = dict(zip(labellings, np.exp(scores - logsumexp(scores)), strict=True))
            for labels, p in [*share_of.items(), (tuple(gold), -1.0)]:
                for t, label in enumerate(labels):
                    found[0][t, label] += p
                    if t > 0:
                        found[1][t - 1, labels[t - 1], label] += p
            squares = 1 + np.sum(x**2, axis=1), 1 + np.sum(edges[1:] ** 2, axis=1)
            strength = weight[i] / 0.7
            share = naive.dual_free_share(found, kept[i], gold, *squares, strength, past[i])
            node, pairs = changes(found, kept[i], share)
            change = [node.T @ x, pairs.sum(axis=0), node.sum(axis=0), node[0], node[-1]]
            change.append(np.einsum("tij,tf->ijf", pairs, edges[1:]))
            w -= strength * np.concatenate([part.ravel() for part in change])
        found_w = model.from_chain(objective.unpack(theta))
        # Pairs with features that never occur have none.
        w = model.from_chain(objective.unpack(objective.pack(model.chain(w))))
        assert_allclose(found_w, w, rtol=1e-4, atol=1e-5)
        order = draw_order(weight * memory.divergence, random_state)


def changes(found, kept, share):
    """Go from what is kept towards what was found, in single precision."""
    for new, old in zip(found, kept, strict=True):
        moved = (old + share * (new - old.astype(float))).astype(np.float32)
        yield moved.astype(float) - old
        old[:] = moved


def test_the_optimum_of_a_constant_feature_is_that_of_half_the_penalty_on_pairs():
    """A pair then has two weights, which are best equal: together they cost half as much."""
    batch, y = random_batch()
    constant = SequenceBatch(batch.X, batch.offsets, transition_X=np.ones((batch.n_rows, 1)))
    tagger = CRFTagger(l2=1.0, tol=1e-12, all_possible_transitions=True).fit(constant, y)
    edges = tagger.transition_coef_[:, :, 0]
    assert_allclose(edges, tagger.transition_, atol=1e-4)
    weights = naive.weights_of(tagger)
    weights = weights._replace(transition=tagger.transition_ + edges)

    def objective(weights):
        plain = naive.crf_objective(list(batch), y, weights, 1.0)
        return plain - np.sum(weights.transition**2) / 4

    best = objective(weights)
    assert_allclose(tagger.history_["objective"][-1], best, rtol=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = [part + 0.01 * rng.normal(size=part.shape) for part in weights]
        assert objective(naive.Weights(*moved)) > best


def test_a_constant_feature_is_the_transition_matrix():
    batch, y = random_batch()
    plain = CRFTagger(all_possible_transitions=True).fit(without_edges(batch), y)
    constant = SequenceBatch(batch.X, batch.offsets, transition_X=np.ones((batch.n_rows, 1)))
    tagger = CRFTagger().fit(constant, y)
    for name in ("coef_", "intercept_", "start_", "end_"):
        setattr(tagger, name, getattr(plain, name))
    tagger.transition_ = np.zeros_like(plain.transition_)
    tagger.transition_coef_ = plain.transition_[:, :, None]
    for a, b in zip(tagger.predict_proba(constant), plain.predict_proba(without_edges(batch)),
                    strict=True):  # fmt: skip
        assert_allclose(a, b, atol=1e-12)


# ---------------------------------------------------------------------------------------- bad input


@every_tagger
def test_a_model_without_refuses_a_batch_with(name):
    batch, y = random_batch()
    tagger = clone(TAGGERS[name]).fit(without_edges(batch), y)
    for method in (tagger.predict, tagger.predict_proba, tagger.predict_nbest):
        with pytest.raises(
            ValueError, match=r"X has 2 transition features, but \w+ is expecting none"
        ):
            method(batch)


@every_tagger
def test_a_model_with_refuses_what_has_none_or_another_number(name):
    batch, y = random_batch()
    tagger = clone(TAGGERS[name]).fit(batch, y)
    wide = SequenceBatch(batch.X, batch.offsets, transition_X=np.ones((batch.n_rows, 3)))
    with pytest.raises(ValueError, match=r"X has 3 transition features, but .* is expecting 2 as"):
        tagger.predict(wide)
    for X in (without_edges(batch), batch.X, list(batch)):
        with pytest.raises(
            ValueError, match=r"X has no transition features, but .* is expecting 2"
        ):
            tagger.predict(X)
    assert tagger.predict([[], []]).tolist() == [[], []]
    tagger.warm_start = True
    with pytest.raises(ValueError, match="X has no transition features"):
        tagger.fit(without_edges(batch), y)
    assert tagger.score(batch, y) > 0.5


@every_tagger
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_values_must_be_finite(name, kind):
    batch, y = random_batch()
    tagger = clone(TAGGERS[name]).fit(batch, y)
    edges = batch.transition_X.copy()
    sequence = int(np.flatnonzero(batch.lengths > 2)[1])
    edges[batch.offsets[sequence] + 2, 1] = np.nan
    bad = SequenceBatch(batch.X, batch.offsets, transition_X=kind(edges))
    for method in (lambda: tagger.predict(bad), lambda: clone(tagger).fit(bad, y)):
        with pytest.raises(ValueError, match=f"Sequence {sequence}, token 2: transition feature 1"):
            method()


def test_what_has_no_weights_for_them_refuses_them():
    batch, y = random_batch()
    with pytest.raises(ValueError, match=r"SDCACRF .* transition features"):
        SDCACRF().fit(batch, y)


def test_too_many_weights_are_an_error_that_says_how_many():
    with pytest.raises(MemoryError, match=f"{8 * 10**12 * 10**4:,} bytes"):
        zero_transition_weights(10**12, 100)


@pytest.mark.slow
def test_wide_numbers_of_transitions_make_no_difference(monkeypatch):
    batch, y = random_batch()
    expected = clone(TAGGERS["lbfgs"]).fit(batch, y)
    monkeypatch.setattr("skstruct.learning.layout.MOST_LABELS", 5)
    found = clone(TAGGERS["lbfgs"]).fit(batch, y)
    for name in ("coef_", "transition_", "transition_coef_", "intercept_"):
        assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.slow
def test_a_crf_with_more_transitions_than_16_bits_number():
    """Where the second feature is 1, the labels go backwards."""
    k = 190
    y = [[i, (i + 1) % k, (i + 2) % k] for i in range(k)] + [[i, (i - 1) % k] for i in range(k)]
    X, edges = np.ones((5 * k, 1)), np.zeros((5 * k, 2))
    edges[: 3 * k, 0] = edges[3 * k :, 1] = 1
    lengths = [len(row) for row in y]
    batch = SequenceBatch.from_lengths(X, lengths, transition_X=edges)
    tagger = CRFTagger(max_iter=15, tol=0.1).fit(batch, y)
    coef, codes = tagger.transition_coef_, np.arange(k)
    assert np.all(coef[codes, (codes + 1) % k, 0] > 0)
    assert np.all(coef[codes, (codes - 1) % k, 1] > 0)
    assert np.count_nonzero(coef) == 2 * k
    known = [[row[0]] + [None] * (len(row) - 1) for row in y]
    assert tagger.predict(batch, known=known).tolist() == y


@every_tagger
def test_no_transition_feature_at_all_is_none_with_weight(name):
    batch, y = random_batch()
    empty = SequenceBatch(batch.X, batch.offsets, transition_X=np.empty((batch.n_rows, 0)))
    tagger = clone(TAGGERS[name]).fit(empty, y)
    plain = clone(TAGGERS[name]).fit(without_edges(batch), y)
    assert tagger.transition_coef_.shape == (3, 3, 0)
    assert_allclose(tagger.transition_, plain.transition_, rtol=1e-4, atol=1e-4)
