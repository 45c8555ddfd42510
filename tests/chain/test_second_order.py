"""Chains of second order in the estimators: weights of label triples, against all labellings."""

import pickle
import warnings
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
import skops.io
from click.testing import CliRunner
from helpers.objectives import crf_objective
from helpers.shards import OneProcess, cut
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    SequenceVectorizer,
    crfpp,
    crfsuite,
)
from skstruct.chain.forward_backward import scaled_forward
from skstruct.chain.protocol import (
    chain_factors,
    n_states,
    state_of,
    state_rows,
    sum_buffer,
    width,
    zero_counts,
)
from skstruct.chain.scores import path_score
from skstruct.chain.second_order import SecondOrderChain
from skstruct.chain.viterbi import viterbi
from skstruct.cli import main
from skstruct.cli.models import load_model
from skstruct.dask.learning import learn as learn_from_parts
from skstruct.dask.learning import start_from
from skstruct.input.constraints import read_constraint
from skstruct.inspection import explain_labelling
from skstruct.learning.monitor import Monitor
from skstruct.learning.online import cut_sequences
from skstruct.learning.solver import Model
from skstruct.streams import fit_stream

K, N_FEATURES = 3, 2
LENGTHS = [4, 1, 2, 0, 5, 3, 4, 2]
# The label 2 comes neither first nor after 0.
ALLOWED = np.array([[True, True, False], [True, True, True], [True, True, True]])
# Each programme is compiled for pairs of labels, which takes longer than all that the tests do.
COMPILES = pytest.mark.slow
ONLINE = {
    "perceptron": PerceptronTagger(order=2, random_state=0),
    "sapo": SAPOTagger(order=2, n_best=3, random_state=0),
    "mira": MIRATagger(order=2, n_best=3, random_state=0),
    "arow": AROWTagger(order=2, random_state=0),
    "sgd": CRFTagger(order=2, solver="sgd", random_state=0),
}


def data(seed=0, *, allowed=None, partly=False):
    """A batch of matrices, and labels."""
    rng = np.random.default_rng(seed)
    batch = SequenceBatch.from_lengths(rng.normal(size=(sum(LENGTHS), N_FEATURES)), LENGTHS)
    y = []
    for length in LENGTHS:
        choices = [c for c in product(range(K), repeat=length) if is_allowed(c, allowed)]
        y.append(list(choices[rng.integers(len(choices))]))
    if partly:
        y = [[None if rng.random() < 0.3 else label for label in labels] for labels in y]
    return batch, y


def is_allowed(labels, allowed):
    return allowed is None or all(allowed[i, j] for i, j in pairwise(labels))


SHAPES = ((K, N_FEATURES), (K, K), (K,), (K,), (K,), (K, K, K))
SIZE = sum(int(np.prod(shape)) for shape in SHAPES)
NAMES = ("coef_", "transition_", "intercept_", "start_", "end_", "transition2_")


def features(x, labels, first=True, last=True, intercept=True):
    """How often each weight of a model counts in the score of a labelling."""
    coef, transition, bias, start, end, triple = (np.zeros(shape) for shape in SHAPES)
    for t, j in enumerate(labels):
        coef[j] += x[t]
        bias[j] += intercept
        if t > 0:
            transition[labels[t - 1], j] += 1
        if t > 1:
            triple[labels[t - 2], labels[t - 1], j] += 1
    if len(labels) and intercept:
        start[labels[0]] += first
        end[labels[-1]] += last
    parts = coef, transition, bias, start, end, triple
    return np.concatenate([part.ravel() for part in parts])


def weights_of(tagger):
    return np.concatenate([np.nan_to_num(getattr(tagger, name), neginf=0.0).ravel()
                           for name in NAMES])  # fmt: skip


def listed(w, x, allowed=None, known=None, **how):
    """Labellings of a sequence that are possible, their features and their scores."""
    found = [
        labels
        for labels in product(range(K), repeat=len(x))
        if is_allowed(labels, allowed)
        and (known is None or all(b in (None, a) for a, b in zip(labels, known, strict=True)))
    ]
    phi = np.array([features(x, labels, **how) for labels in found])
    return found, phi, phi @ w


def objective(w, batch, y, weight, l2, allowed=None):
    """Penalised negative log-likelihood of the known labels, and its gradient."""
    value, gradient = l2 / 2 * w @ w, l2 * w
    for x, labels, s in zip(batch, y, weight, strict=True):
        for known, sign in ((None, 1), (labels, -1)):
            _, phi, scores = listed(w, x, allowed, known)
            log_z = logsumexp(scores)
            value += sign * s * log_z
            gradient = gradient + sign * s * np.exp(scores - log_z) @ phi
    return value, gradient


def check_predictions(tagger, batch, allowed=None, known=None):
    w = weights_of(tagger)
    proba, best = tagger.predict_proba(batch, known), tagger.predict(batch, known)
    exact = tagger.predict_nbest(batch, 4, known=known)
    beam = tagger.predict_nbest(batch, 4, known=known, search="beam", beam_width=99)
    for i, x in enumerate(batch):
        found, _, scores = listed(w, x, allowed, None if known is None else known[i])
        order = np.argsort(-scores, kind="stable")[:4]
        p = np.exp(scores - logsumexp(scores))
        marginals = np.zeros((len(x), K))
        for labels, q in zip(found, p, strict=True):
            marginals[np.arange(len(x)), list(labels)] += q
        assert_allclose(proba[i], marginals, atol=1e-9)
        assert tuple(best[i]) == found[order[0]]
        for nbest in (exact[i], beam[i]):
            assert [tuple(one.labels) for one in nbest] == [found[m] for m in order]
            assert_allclose([one.score for one in nbest], scores[order], rtol=1e-9, atol=1e-9)
            assert_allclose([one.probability for one in nbest], p[order], rtol=1e-9)


# The label 0 comes first only, and the label 2 last.
ENDS = np.array([[False, True, True], [False, True, True], [False, False, False]])
CRF_CASES = {
    "plain": {},
    "constraint": {"allowed": ALLOWED},
    "ends": {"allowed": ENDS, "partly": True},
    "partly": {"partly": True},
    "l1": {"l1": 0.2},
}


def fit_crf(l1=0.0, allowed=None, partly=False):
    batch, y = data(allowed=allowed, partly=partly)
    weight = np.linspace(0.5, 2, len(LENGTHS))
    tagger = CRFTagger(
        order=2, l1=l1, l2=0.7, tol=1e-12, constraint=allowed, all_possible_transitions=True,
        all_possible_states=True,
    )  # fmt: skip
    return tagger.fit(batch, y, weight), batch, y, weight


@pytest.fixture(
    scope="module",
    params=[
        # Unknown labels have a likelihood of their own.
        pytest.param(name, marks=COMPILES if case.get("partly") else ())
        for name, case in CRF_CASES.items()
    ],
)
def fitted(request):
    return *fit_crf(**CRF_CASES[request.param]), CRF_CASES[request.param]


def test_the_optimum_is_that_of_all_labellings(fitted):
    tagger, batch, y, weight, case = fitted
    allowed, l1 = case.get("allowed"), case.get("l1", 0.0)
    w = weights_of(tagger)
    value, gradient = objective(w, batch, y, weight, 0.7, allowed)
    assert_allclose(tagger.history_["objective"][-1], value + l1 * np.abs(w).sum(), rtol=1e-9)
    if l1:
        # Optimality of a penalised weight, and of one that is zero.
        slope = np.where(w != 0, gradient + l1 * np.sign(w), np.maximum(np.abs(gradient) - l1, 0))
        assert 0 < np.count_nonzero(w) < SIZE
        assert_allclose(slope, 0, atol=2e-4)
        return
    args = batch, y, weight, 0.7, allowed
    expected = minimize(objective, np.zeros(SIZE), args, "L-BFGS-B", jac=True, tol=1e-14)
    assert_allclose(value, expected.fun, rtol=1e-7)
    if not case.get("partly"):
        # With unknown labels there are several minima.
        assert_allclose(w, expected.x, atol=2e-3)
    assert_allclose(gradient, 0, atol=1e-3)


@pytest.mark.parametrize("partly", [False, pytest.param(True, marks=COMPILES)])
def test_the_gradient_is_that_of_finite_differences(partly):
    from helpers.objectives import evaluate, training_set

    batch, y = data(3, partly=partly)
    part = crf_objective(
        training_set(batch, y), N_FEATURES, K, l2=0.3, order=2, all_possible_transitions=True
    )
    theta = np.random.default_rng(0).normal(size=part.size)
    theta[part.vector.pinned] = 0
    _, gradient = evaluate(part, theta)
    free = np.setdiff1d(np.arange(part.size), part.vector.pinned)
    for k in free:
        step = np.zeros(part.size)
        step[k] = 1e-5
        slope = evaluate(part, theta + step)[0] - evaluate(part, theta - step)[0]
        assert_allclose(slope / 2e-5, gradient[k], rtol=1e-5, atol=1e-6)


@COMPILES
def test_predictions_are_those_of_all_labellings(fitted):
    tagger, batch, y, _, case = fitted
    check_predictions(tagger, batch, case.get("allowed"))
    known = [[label if t % 2 else None for t, label in enumerate(labels)] for labels in y]
    check_predictions(tagger, batch, case.get("allowed"), known)
    if not case.get("partly"):
        hits = sum(a == b for p, q in zip(tagger.predict(batch), y, strict=True)
                   for a, b in zip(p, q, strict=True))  # fmt: skip
        assert_allclose(tagger.score(batch, y), hits / sum(LENGTHS))


def test_forbidden_pairs_forbid_triples(fitted):
    tagger, *_, case = fitted
    if "allowed" in case:
        allowed = case["allowed"]
        assert_array_equal(np.isneginf(tagger.transition_), ~allowed)
        forbidden = ~(allowed[:, :, None] & allowed)
        assert_array_equal(tagger.transition2_[forbidden], 0)
    assert np.isfinite(tagger.transition2_).all()


@COMPILES
@pytest.mark.parametrize("width", [1, 2])
def test_a_beam_comes_back_from_labels_that_none_may_follow(width):
    X = [[{"w": w} for w in words] for words in (["1", "2", "."], ["2", "1", "."], ["1"] * 3)]
    y = [["A", "B", "."], ["B", "A", "."], ["A", "A", "B"]]
    allowed = np.array([[False] * 3, [True] * 3, [True] * 3])
    tagger = CRFTagger(order=2, constraint=allowed, l2=0.1).fit(X, y)
    first_is_a_dead_end = [[{"w": w} for w in (".", "1", "2", ".")]] * 30
    for found in tagger.predict_nbest(first_is_a_dead_end, 1, search="beam", beam_width=width):
        assert len(found) == 1
        assert "." not in found[0].labels[:-1]
    sapo = SAPOTagger(
        order=2, constraint=allowed, search="beam", n_best=1, beam_width=width, max_iter=3,
        tol=None, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert sapo.history_["loss"][0] > 0
    assert sapo.coef_.any()


def test_sums_under_a_constraint_stay_in_the_linear_domain():
    rng, length = np.random.default_rng(0), 4
    chain = SecondOrderChain(
        np.zeros((1, K)), np.where(ALLOWED, 0.5, -np.inf), *np.zeros((3, K)),
        rng.normal(size=(K * K, K)),
    )  # fmt: skip
    factors = chain_factors(chain)
    assert factors.safe
    assert factors.forbids
    rows = state_rows(factors.edges, rng.normal(size=(length, K)), length)
    buffer, alpha, scale = sum_buffer(factors, K * K), np.zeros_like(rows), np.empty(length)
    _, exact = scaled_forward(rows, length, factors, True, buffer, alpha, scale)
    assert exact


def test_only_triples_that_occur_have_weights():
    batch, y = data(1)
    weight = np.linspace(0.5, 2, len(LENGTHS))
    for min_freq in (0, 1.5):
        tagger = CRFTagger(order=2, min_freq=min_freq, max_iter=3, tol=1).fit(batch, y, weight)
        seen = np.zeros((K, K, K))
        for labels, s in zip(y, weight, strict=True):
            for a, b, c in zip(labels, labels[1:], labels[2:], strict=False):
                seen[a, b, c] += s
        kept = (seen > 0) & (seen >= min_freq)
        assert_array_equal(tagger.transition2_ != 0, kept)
        others = CRFTagger(min_freq=min_freq, max_iter=3, tol=1).fit(batch, y, weight)
        assert tagger.n_weights_ - others.n_weights_ == kept.sum()


@COMPILES
def test_it_is_a_first_order_model_of_pairs(fitted):
    """With the label before in each label, and pairs that do not fit together forbidden."""
    tagger, batch, *_ = fitted
    pairs = [f"{a}{b}" for a in ["^", *range(K)] for b in range(K)]
    k = len(pairs)
    other = CRFTagger()
    other.classes_, other.n_features_in_ = np.array(pairs), N_FEATURES
    last = np.array([int(pair[1]) for pair in pairs])
    initial = np.array([pair[0] == "^" for pair in pairs])
    other.coef_, other.intercept_ = tagger.coef_[last], tagger.intercept_[last]
    other.start_ = np.where(initial, tagger.start_[last], -np.inf)
    other.end_, other.transition_ = tagger.end_[last], np.full((k, k), -np.inf)
    for p, q in product(range(k), repeat=2):
        if pairs[p][1] == pairs[q][0]:
            other.transition_[p, q] = tagger.transition_[last[p], last[q]]
            if not initial[p]:
                a = int(pairs[p][0])
                other.transition_[p, q] += tagger.transition2_[a, last[p], last[q]]
    found = [[int(pair[1]) for pair in labels] for labels in other.predict(batch)]
    assert found == tagger.predict(batch).tolist()
    for by_pair, proba in zip(other.predict_proba(batch), tagger.predict_proba(batch), strict=True):
        summed = np.stack([by_pair[:, last == j].sum(axis=1) for j in range(K)], axis=1)
        assert_allclose(summed, proba, atol=1e-9)


@COMPILES
@pytest.mark.parametrize("case", ["plain", "constraint", "l1"])
def test_large_training_sets_start_near_the_optimum(case, monkeypatch):
    """By an ascent in the dual; with too little memory, from the model without triples."""
    params = dict(CRF_CASES[case])
    allowed = params.pop("allowed", None)
    batch, y = data(allowed=allowed)
    tagger = CRFTagger(
        order=2, l2=0.7, tol=1e-9, constraint=allowed, all_possible_transitions=True, **params
    )
    other = clone(tagger).fit(batch, y).history_["objective"]
    monkeypatch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 1)
    near = clone(tagger).fit(batch, y).history_["objective"]
    monkeypatch.setattr("skstruct.learning.ascent._MOST_MEMORY", 4 * 25 * (K + K**2))
    first = clone(tagger).fit(batch, y).history_["objective"]
    assert_allclose([near[-1], first[-1]], other[-1], rtol=1e-7)
    if case != "l1":
        assert near[0] - other[-1] < 0.3 * (first[0] - other[-1])
        assert first[0] < other[0]


def test_what_a_scheme_forbids_takes_no_room():
    """Under IOB2 an inside label follows its own kind only: fewer states, and far fewer triples."""
    kinds = [f"{letter}-{kind}" for kind in range(10) for letter in "BI"]
    labels = np.array(sorted([*kinds, "O"]))
    model = Model(1, len(labels), None, read_constraint("IOB2", labels), 2)
    edges = chain_factors(model.zero_chain()).edges
    allowed = read_constraint("IOB2", labels).transition
    assert width(edges, 1) == n_states(edges, 9) == allowed.sum() < 0.6 * len(labels) ** 2
    triples = allowed[:, :, None] & allowed
    assert len(edges.log) == triples.sum() < 0.4 * len(labels) ** 3
    assert state_rows(edges, np.zeros((4, len(labels))), 4).shape == (4, allowed.sum())
    assert zero_counts(edges, 4).log.shape == edges.log.shape
    codes = np.array([[labels.tolist().index(x) for x in ("B-1", "I-1", "I-2")]])[0]
    assert state_of(edges, codes, 1) >= 0 > state_of(edges, codes, 2)
    assert path_score(np.zeros((3, len(labels))), 3, edges, codes) == -np.inf
    # Nothing is possible: all programmes end.
    nothing = model.zero_chain()._replace(transition=np.full_like(allowed, -np.inf, float))
    edges = chain_factors(nothing).edges
    assert width(edges, 1) == len(labels)
    assert viterbi(np.zeros((4, len(labels))), 4, edges, np.empty(4, np.int32)) == -np.inf


# ---------------------------------------------------------------------------------- online learners


def learn(tagger, step, batch, y, weight, mini_length, allowed=None):
    """Last weights and their average over all samples, with the updates of a rule."""
    params, w, state = tagger.get_params(), np.zeros(SIZE), {}
    rate, l2, decay = (params.get(n, d) for n, d in (("learning_rate", 1), ("l2", 0), ("decay", 1)))
    labels, total, n_seen = [j for part in y for j in part], np.zeros(SIZE), 0
    rng = np.random.RandomState(params["random_state"])
    for _ in range(tagger.n_iter_):
        samples, owner = cut_sequences(batch.offsets, rng, mini_length=mini_length)
        order = np.arange(len(samples))
        rng.shuffle(order)
        for i in order:
            a, b, first, last = samples[i]
            if a == b:
                continue
            how = {"first": first, "last": last, "intercept": params["fit_intercept"]}
            found, phi, scores = listed(w, batch.X[a:b], allowed, **how)
            gold = found.index(tuple(labels[a:b]))
            ranked = sorted(range(len(found)), key=lambda m: (-scores[m], found[m][::-1]))
            wrong = np.array([np.sum(np.array(one) != found[gold]) for one in found])
            w = w + rate * step(phi, scores, gold, ranked, wrong, weight[owner[i]], state)
            w = w * (1 - rate * l2 / len(samples))
            rate *= decay ** (1 / len(samples))
            total, n_seen = total + w, n_seen + 1
    return total / n_seen if params["average"] else w


def perceptron_step(phi, scores, gold, ranked, wrong, weight, state):
    return weight * (phi[gold] - phi[ranked[0]])


def crf_step(phi, scores, gold, ranked, wrong, weight, state):
    return weight * (phi[gold] - np.exp(scores - logsumexp(scores)) @ phi)


def sapo_step(phi, scores, gold, ranked, wrong, weight, state):
    best = ranked[:3]
    p = np.exp(scores[best] - logsumexp(scores[best]))
    return weight * (phi[gold] - p @ phi[best])


def mira_step(phi, scores, gold, ranked, wrong, weight, state):
    """One pass over the constraints of the three best."""
    best = ranked[:3]
    D, cost = phi[gold] - phi[best], wrong[best]
    missing = np.where(cost > 0, cost - (scores[gold] - scores[best]), 0.0)
    change = np.zeros(SIZE)
    if missing.max() > 0:
        for k, d in enumerate(D):
            if d @ d > 0:
                change += np.clip((missing[k] - d @ change) / (d @ d), 0, 1.0) * d
    return weight * change


def arow_step(phi, scores, gold, ranked, wrong, weight, state):
    best = ranked[0]
    if best == gold:
        return 0.0
    v, d = state.setdefault("variance", np.ones(SIZE)), phi[gold] - phi[best]
    loss, slack = scores[best] - scores[gold] + wrong[best], 10.0 / weight
    state["variance"] = v / (1 + v * d**2 / slack)
    return loss / (slack + v @ d**2) * v * d


STEPS = {
    "perceptron": (perceptron_step, {}),
    "sapo": (sapo_step, {"l2": 0.7, "learning_rate": 0.11, "decay": 0.8}),
    "mira": (mira_step, {"update": "sequential"}),
    "arow": (arow_step, {}),
    "sgd": (crf_step, {"l2": 0.7, "learning_rate": 0.11, "decay": 0.8}),
}


@COMPILES
@pytest.mark.parametrize("name", STEPS)
def test_steps_are_the_twins(name):
    step, params = STEPS[name]
    weight = np.linspace(0.5, 2, len(LENGTHS))
    cases = ((False, True, None, None), (True, False, 3, None), (True, True, None, ALLOWED))
    for seed, (average, intercept, mini_length, allowed) in enumerate(cases):
        batch, y = data(seed, allowed=allowed)
        tagger = clone(ONLINE[name]).set_params(
            **params, average=average, fit_intercept=intercept, mini_length=mini_length,
            constraint=allowed, tol=None, max_iter=2,
        )  # fmt: skip
        tagger.fit(batch, y, weight)
        expected = learn(tagger, step, batch, y, weight, mini_length, allowed)
        assert_allclose(weights_of(tagger), expected, rtol=1e-7, atol=1e-9)
        assert np.any(tagger.transition2_)
        if allowed is not None:
            check_predictions(tagger, batch, allowed)


@COMPILES
@pytest.mark.parametrize("name", ONLINE)
def test_portions_shards_and_copies(name):
    batch, y = data()
    tagger = clone(ONLINE[name]).set_params(tol=None, max_iter=1, average=True)
    tagger.fit(batch, y)
    portion = clone(tagger).partial_fit(batch, y)
    assert_allclose(weights_of(portion), weights_of(tagger), rtol=1e-12, atol=1e-12)
    copied = pickle.loads(pickle.dumps(portion))
    with pytest.raises(ValueError, match="too large"):
        # Whatever has changed before the error is undone.
        portion.partial_fit(SequenceBatch(np.full((4, N_FEATURES), 1e308), [0, 4]), [[0, 1, 2, 0]])
    for one in (portion, copied):
        one.partial_fit(batch, y)
    assert_array_equal(weights_of(portion), weights_of(copied))
    # Two shards of the same sequences learn what each of them does.
    twice = SequenceBatch.from_lengths(np.repeat(batch.X[:4], 1, axis=0), [4])
    both = SequenceBatch.from_lengths(np.concatenate([batch.X[:4]] * 2), [4, 4])
    params = {"shuffle": False, "l2": 0.0} if "l2" in tagger.get_params() else {"shuffle": False}
    alone = clone(tagger).set_params(**params, max_iter=2).fit(twice, [[0, 1, 2, 1]])
    shards = clone(tagger).set_params(**params, n_jobs=2, max_iter=2)
    shards.fit(both, [[0, 1, 2, 1]] * 2)
    assert_allclose(weights_of(shards), weights_of(alone), rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------------------ parameters, storage


def test_warm_starts_and_early_stopping(fitted):
    tagger, batch, y, weight, case = fitted
    again = clone(tagger).set_params(max_iter=1, warm_start=True, tol=1e-6)
    again.__dict__.update({name: vars(tagger)[name] for name in (*NAMES, "classes_")})
    again.n_features_in_ = N_FEATURES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again.fit(batch, y, weight)
    assert again.history_["objective"][0] <= tagger.history_["objective"][-1] * (1 + 1e-9)
    if not case:
        stopped = clone(tagger).set_params(early_stopping=True, n_iter_no_change=2)
        stopped.fit(batch, y, X_val=batch, y_val=y)
        best = stopped.history_["validation_score"].max()
        assert_allclose(stopped.score(batch, y), best)


@COMPILES
def test_other_orders_are_refused():
    batch, y = data()
    for name, tagger in (*ONLINE.items(), ("lbfgs", CRFTagger(order=2))):
        for order in (1, 2):
            first = clone(tagger).set_params(
                order=order, max_iter=1, tol=1 if name == "lbfgs" else None
            )
            first.set_params(warm_start=True).fit(batch, y)
            before = {key: str(value) for key, value in vars(first).items() if key != "order"}
            first.set_params(order=3 - order)
            learners = [first.fit] if name == "lbfgs" else [first.fit, first.partial_fit]
            for learner in learners:
                with pytest.raises(ValueError, match=f"cannot go on from weights of order {order}"):
                    learner(batch, y)
            assert {k: str(v) for k, v in vars(first).items() if k != "order"} == before
    portion = clone(ONLINE["perceptron"]).partial_fit(batch, y).set_params(order=1)
    with pytest.raises(ValueError, match="cannot go on from weights of order 2"):
        portion.partial_fit(batch, y)
    with pytest.raises(ValueError, match="order"):
        CRFTagger(order=3).fit(batch, y)


@COMPILES
def test_a_fit_forgets_triples():
    batch, y = data()
    tagger = clone(ONLINE["perceptron"]).fit(batch, y)
    assert not hasattr(tagger.set_params(order=1).fit(batch, y), "transition2_")


def test_transition_features_are_refused():
    batch, y = data()
    both = SequenceBatch(batch.X, batch.offsets, transition_X=batch.X)
    for tagger in (ONLINE["perceptron"], CRFTagger(order=2)):
        with pytest.raises(ValueError, match=r"transition features .* needs order=1"):
            clone(tagger).fit(both, y)


@COMPILES
def test_models_are_stored(tmp_path):
    batch, y = data()
    online = clone(ONLINE["arow"]).partial_fit(batch, y)
    for tagger in (fit_crf()[0], online):
        path = tmp_path / "model.skops"
        skops.io.dump(tagger, path)
        loaded = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
        assert_array_equal(weights_of(loaded), weights_of(tagger))
        assert_array_equal(
            np.concatenate(loaded.predict_proba(batch)), np.concatenate(tagger.predict_proba(batch))
        )
    assert_array_equal(
        weights_of(loaded.partial_fit(batch, y)), weights_of(online.partial_fit(batch, y))
    )
    state = fit_crf()[0].__getstate__()
    with pytest.raises(ValueError, match="transition2_"):
        CRFTagger().__setstate__({**state, "transition2_": np.zeros((K, K, K + 1))})
    tagger.transition2_ = np.zeros((K, K))
    with pytest.raises(ValueError, match="transition2_ has the shape"):
        tagger.predict(batch)


def test_what_has_no_second_order_says_so(tmp_path):
    X, y = [[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]]], [["x", "y", "x"], ["y", "y", "x"]]
    tagger = CRFTagger(order=2, fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match=r"label triples .* order=1"):
        crfsuite.write_model(tagger, tmp_path / "model")
    from sklearn.pipeline import make_pipeline

    from skstruct import TemplateVectorizer

    model = make_pipeline(TemplateVectorizer("U00:%x[0,0]"), CRFTagger(order=2))
    model.fit([["a", "b", "c"], ["b", "a", "c"]], y)
    with pytest.raises(ValueError, match=r"label triples .* order=1"):
        crfpp.write_model(model, tmp_path / "model")


@pytest.mark.parametrize("solver", ["sag", "oeg", "crfsuite", "sdca"])
def test_solvers_without_say_what_to_take(solver):
    batch, y = data()
    tagger = SDCACRF(order=2) if solver == "sdca" else CRFTagger(solver=solver, order=2)
    before = dict(vars(tagger))
    with pytest.raises(ValueError, match=r"order=2.*solver='lbfgs' or (solver=)?'sgd'"):
        tagger.fit(batch, y)
    assert vars(tagger) == before


def learn_in_shards(tagger, X, y, n_shards, before=None):
    """What `DaskTagger` does, without a cluster."""
    vectorizer = None if isinstance(X, SequenceBatch) else SequenceVectorizer()
    parts = cut(X, y, n_shards)
    tagger = clone(tagger)
    found = learn_from_parts(
        tagger, OneProcess(), parts, vectorizer, None, Monitor, "float64", before
    )
    tagger._keep(found)
    return SimpleNamespace(estimator_=tagger, classes_=tagger.classes_, vectorizer_=None)


@COMPILES
def test_clusters_learn_triples(monkeypatch):
    for params in ({}, {"constraint": ALLOWED}, {"min_freq": 2, "l1": 0.1}):
        batch, y = data(allowed=params.get("constraint"))
        tagger = CRFTagger(order=2, l2=0.7, tol=1e-9, n_jobs=3, **params).fit(batch, y)
        found = learn_in_shards(tagger, batch, y, 3).estimator_
        assert_array_equal(weights_of(found), weights_of(tagger))
        monkeypatch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 1)
        near = learn_in_shards(tagger, batch, y, 3).estimator_
        monkeypatch.undo()
        values = [one.history_["objective"][-1] for one in (near, tagger)]
        assert_allclose(*values, rtol=1e-7)
    for name in ("perceptron", "sapo", "mira", "sgd"):
        tagger = clone(ONLINE[name]).set_params(shuffle=False, average=True, tol=None, max_iter=2)
        # None of them is empty: such sequences are no samples of shards.
        found = learn_in_shards(tagger, batch[4:], y[4:], 1).estimator_
        alone = weights_of(tagger.fit(batch[4:], y[4:]))
        assert_allclose(weights_of(found), alone, rtol=1e-9, atol=1e-12)


@COMPILES
def test_clusters_go_on_with_triples():
    X, y = [[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]]], [["x", "z", "x"], ["z", "z", "x"]]
    tagger = PerceptronTagger(order=2, tol=None, max_iter=1, random_state=0)
    before = learn_in_shards(tagger, X, y, 1)
    more = [[*X, [["d"], ["a"]]], [*y, ["y", "x"]]]
    start = start_from(before, SimpleNamespace(
        classes_=np.array(["x", "y", "z"]), feature_names_in_=np.array(["a", "b", "c", "d"]),
        _same_order=tagger._same_order,
    ), None, Model(4, 3, None, None, 2))  # fmt: skip
    kept = [0, 2]
    triple = start.triple.reshape(3, 3, 3)
    assert_array_equal(triple[np.ix_(kept, kept, kept)], before.estimator_.transition2_)
    assert np.count_nonzero(triple) == np.count_nonzero(before.estimator_.transition2_) > 0
    assert learn_in_shards(tagger, *more, 1, before).estimator_.transition2_.shape == (3, 3, 3)
    with pytest.raises(ValueError, match="cannot go on from weights of order 2"):
        learn_in_shards(clone(tagger).set_params(order=1), *more, 1, before)


@COMPILES
def test_checkpoints_of_another_order_are_refused(tmp_path):
    batch, y = data()
    path = tmp_path / "stream"
    tagger = fit_stream(clone(ONLINE["perceptron"]), lambda epoch: [(batch, y)], checkpoint=path)
    assert tagger.transition2_.shape == (K, K, K)
    with pytest.raises(ValueError, match="order=2, not 1"):
        fit_stream(PerceptronTagger(random_state=0), lambda epoch: [(batch, y)], checkpoint=path)


def test_the_command_learns_and_shows_triples(tmp_path):
    train, model = tmp_path / "train.txt", str(tmp_path / "model.skops")

    def run(*arguments):
        result = CliRunner().invoke(main.skstruct, arguments)
        assert result.exit_code == 0, result.output
        return result.output

    train.write_text("a x\nb y\nc x\n\nb y\na y\nc x\n\n")
    run("train", str(train), "-m", model, "--order", "2", "-p", "l2=0.1", "-q")
    assert "x -> y -> x" in run("show", model)
    lines = run("show", model, "--dump").splitlines()
    triples = [line.split("\t") for line in lines if line.count("\t") == 3]
    found = load_model(model).estimator
    for *labels, weight in triples:
        codes = tuple(found.classes_.tolist().index(label) for label in labels)
        assert float(weight) == found.transition2_[codes]
    assert len(triples) == np.count_nonzero(found.transition2_) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "order=2"], "not both"),
        (["-e", "SDCACRF"], "take an online tagger or CRFTagger"),
        (["-p", "solver=oeg"], "needs solver='lbfgs' or 'sgd'"),
        (["-e", "VRDAReranker"], "--order is for taggers"),
    ],
)
def test_the_command_refuses_an_order(tmp_path, arguments, message):
    train = tmp_path / "train.txt"
    train.write_text("a x\nb y\n\nb x\n")
    call = ["train", str(train), "-m", str(tmp_path / "model"), "--order", "2", *arguments]
    result = CliRunner().invoke(main.skstruct, call)
    assert result.exit_code != 0
    assert message in result.output + str(result.exception)


@COMPILES
def test_the_command_stacks_a_reranker_on_triples(tmp_path):
    train, model = tmp_path / "train.txt", str(tmp_path / "model.skops")
    train.write_text("a x\nb y\nc x\n\nb y\na y\nc x\n\n" * 5)
    call = ["train", str(train), "-m", model, "--order", "2", "-e", "NBestReranker", "-q"]
    result = CliRunner().invoke(main.skstruct, call)
    assert result.exit_code == 0, result.output
    assert load_model(model).estimator.tagger_.transition2_.shape == (2, 2, 2)


@COMPILES
def test_terms_add_up_to_the_score():
    X, y = [[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]]], [["x", "y", "x"], ["y", "y", "x"]]
    tagger = CRFTagger(order=2, l2=0.1).fit(X, y)
    table = explain_labelling(tagger, X, index=0)
    [best] = tagger.predict_nbest(X[:1], 1)[0]
    assert_allclose(table["contribution"].sum(), best.score)
    assert "triple" in set(table["kind"])


def test_order_is_a_parameter_to_search():
    batch, y = data()
    search = GridSearchCV(CRFTagger(max_iter=5, tol=1), {"order": [1, 2]}, cv=2)
    search.fit(batch, y)
    assert hasattr(search.best_estimator_, "transition2_") == (search.best_params_["order"] == 2)


@COMPILES
def test_patterns_of_three_are_learnt():
    """Each label is that of two tokens before: pairs say nothing."""
    rng = np.random.default_rng(0)
    y = [[int(a), int(b)] * 4 for a, b in rng.integers(0, 2, (40, 2))]
    X = SequenceBatch.from_lengths(np.zeros((320, 2)), [8] * 40)
    for i, labels in enumerate(y):
        X.X[8 * i, labels[0]] = X.X[8 * i + 1, labels[1]] = 3.0
    for tagger in (CRFTagger(order=2), *ONLINE.values()):
        assert clone(tagger).fit(X, y).score(X, y) == 1.0
    assert CRFTagger().fit(X, y).score(X, y) < 0.9
