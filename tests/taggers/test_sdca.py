"""Dual coordinate ascent against plain twins, other solvers, and its own certificate."""

import math
import warnings
from functools import reduce
from itertools import pairwise
from operator import add

import joblib
import naive
import numpy as np
import pytest
import scipy.optimize
from helpers.marks import compiled
from helpers.objectives import learnable_data, training_set
from helpers.taggers import assert_same_weights
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import InvalidParameterError

from skstruct import SDCACRF, CRFTagger
from skstruct.chain.dense import Chain
from skstruct.compiled import rows as sums
from skstruct.learning import dual as divergence
from skstruct.learning import stochastic as sampling
from skstruct.learning.sdca import CRFDual
from skstruct.learning.solver import Model
from skstruct.utils.parallel import range_runner

SCHEMES = ["gap", "uniform", "importance", "gap_importance", compiled("max")]
TOKEN_CASES = [[3, 1, 4, 2], [1, 1, 1], [5]]


@pytest.fixture(scope="module")
def small():
    return learnable_data(np.random.default_rng(0).integers(1, 6, 30).tolist())


def optimum(X, y, l2, sample_weight=None, **params):
    """The same model by another method."""
    tagger = CRFTagger(
        l2=l2, tol=1e-14, all_possible_states=True, all_possible_transitions=True, **params
    )
    return tagger.fit(X, y, sample_weight)


def objective_of(tagger, X, y, sample_weight=None):
    return naive.crf_objective(X, y, naive.weights_of(tagger), tagger.l2, sample_weight)


def square_distance(tagger, other):
    parts = zip(naive.weights_of(tagger), naive.weights_of(other), strict=True)
    return sum(np.sum((a - b) ** 2) for a, b in parts)


# -------------------------------------------------------------------------------------- sampling

PRIORITIES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0, 100.0]), min_size=1, max_size=20)


@given(PRIORITIES, st.floats(0, 1, exclude_max=True))
def test_draws_are_in_proportion(priorities, u):
    tree = sampling.build_tree(np.array(priorities), False)
    drawn = sampling.draw(tree, u, False)
    assert tree[1] == pytest.approx(sum(priorities))
    if sum(priorities) > 0:
        # The sums are exact, so there is no doubt about the borders.
        assert drawn == np.searchsorted(np.cumsum(priorities), u * sum(priorities), side="right")
        assert priorities[drawn] > 0


@given(PRIORITIES)
def test_largest_is_drawn(priorities):
    tree = sampling.build_tree(np.array(priorities), True)
    assert sampling.draw(tree, 0.3, True) == np.argmax(priorities)


@given(PRIORITIES, st.data(), st.booleans())
def test_changed_priorities_are_as_good_as_new(priorities, data, largest):
    priorities = np.array(priorities)
    tree = sampling.build_tree(priorities, largest)
    for _ in range(data.draw(st.integers(1, 5))):
        i = data.draw(st.integers(0, len(priorities) - 1))
        priorities[i] = data.draw(st.sampled_from([0.0, 0.25, 2.0]))
        sampling.set_priority(tree, i, priorities[i], largest)
    assert_array_equal(tree, sampling.build_tree(priorities, largest))


def test_part_of_the_draws_is_uniform():
    tree = sampling.build_tree(np.array([0.0, 0.0, 1.0, 0.0]), False)
    u = (np.arange(1000) + 0.5) / 1000
    for share in (0.0, 0.6, 1.0):
        drawn = [sampling.draw_sequence(tree, 4, share, x, False) for x in u]
        found = np.bincount(drawn, minlength=4) / 1000
        expected = (1 - share) / 4 + share * np.eye(4)[2]
        assert_allclose(found, expected, atol=2e-3)
    nothing = sampling.build_tree(np.zeros(4), False)
    drawn = [sampling.draw_sequence(nothing, 4, 1.0, x, False) for x in u]
    assert set(drawn) == {0, 1, 2, 3}


# ------------------------------------------------------------------------------------ divergence


@given(st.floats(-700, 700))
def test_logarithm(exponent):
    z = np.exp(exponent)
    assert_allclose(divergence.log_positive(z), np.log(z), rtol=1e-15, atol=1e-15)


def test_logarithm_next_to_one():
    z = 1 + np.array([1e-15, 1e-9, 1e-4, -1e-4, -1e-9, -1e-15])
    found = [divergence.log_positive(x) for x in z]
    assert_allclose(found, np.log(z), rtol=1e-14)


def random_chains(length, n_labels, seed, count=2):
    """Node and pair marginals of random chains."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        scores = 2 * rng.normal(size=(length, n_labels))
        yield naive.listed_marginals(scores, 2 * rng.normal(size=(n_labels, n_labels)))[1:]


def joint(node, pairs):
    """Probability of each labelling, by the junction tree formula."""
    length, n_labels = node.shape
    found = []
    for labels in naive.labellings(length, n_labels):
        p = node[0, labels[0]]
        for t in range(1, length):
            p *= pairs[t - 1, labels[t - 1], labels[t]] / node[t - 1, labels[t - 1]]
        found.append(p)
    return np.array(found)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_entropy_and_divergence_by_listing(length):
    """The twins' formulas over cliques are those of the distributions themselves."""
    (mu, mu_pairs), (nu, nu_pairs) = random_chains(length, 3, seed=length)
    p, q = joint(mu, mu_pairs), joint(nu, nu_pairs)
    assert_allclose(p.sum(), 1)
    assert_allclose(naive.chain_entropy(mu, mu_pairs), -np.sum(p * np.log(p)))
    of_pairs = mu_pairs * np.log(mu_pairs / nu_pairs)
    found = naive.chain_sum(np.sum, mu * np.log(mu / nu), of_pairs)
    assert_allclose(found, np.sum(p * np.log(p / q)))


@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_slopes_of_the_entropy(gamma):
    rng = np.random.default_rng(1)
    mu, nu = rng.dirichlet(np.ones(17), 2)
    excess, delta, terms = np.empty(17), np.full(17, 0.5), np.empty((2, 17))
    gap, slope = divergence.compare_clique(mu, nu, excess, delta, terms)
    assert_allclose(gap, np.sum(mu * np.log(mu / nu)))
    assert_allclose(slope, np.sum((nu - mu) * np.log(nu / mu)))
    assert_allclose(delta, 0.5 + nu - mu)
    p = mu + gamma * (nu - mu)
    first, second = divergence.entropy_slopes(nu, excess, 1 - gamma, terms)
    assert_allclose(first, -np.sum((nu - mu) * np.log(p / nu)), atol=1e-14)
    assert_allclose(second, -np.sum((nu - mu) ** 2 / p))
    assert_allclose(divergence.entropy(p, terms[0]), -np.sum(p * np.log(p)))
    moved = mu.copy()
    assert_allclose(divergence.move(moved, nu, gamma, terms[0]), -np.sum(p * np.log(p)))
    assert_allclose(moved, p)


def lane_sum(numbers):
    """Sum of groups of 32 numbers in 32 lanes, and of the rest in eight."""

    def fold(lanes):
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [a + b for a, b in zip(lanes[:half], lanes[half:], strict=True)]
        return lanes[0]

    groups, rest = numbers[: len(numbers) // 32 * 32], numbers[len(numbers) // 32 * 32 :]
    # Python's own `sum` compensates for rounding since 3.12.
    lanes = [reduce(add, groups[j::32], 0.0) for j in range(32)]
    first, *others = (lanes[j : j + 8] for j in range(0, 32, 8))
    pairs = zip(first, others[0], others[1], others[2], strict=True)
    total = fold([(a + b) + (c + d) for a, b, c, d in pairs])
    full = rest[: len(rest) // 8 * 8]
    few = [reduce(add, full[j::8], 0.0) for j in range(8)]
    for number in rest[len(full) :]:
        few[0] += number
    return total + fold(few)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 31, 32, 33, 40, 63, 64, 100, 484, 1000])
def test_sums_have_the_same_order_everywhere(size):
    numbers = np.random.default_rng(size).normal(size=size)
    found = sums.sum_in_lanes(numbers)
    assert found == lane_sum(numbers.tolist())
    assert_allclose(found, math.fsum(numbers), rtol=1e-12, atol=1e-12)
    others = np.random.default_rng(1).normal(size=size)
    assert_allclose(sums.squared_distance(numbers, others), np.sum((numbers - others) ** 2))
    assert_allclose(sums.dot(numbers, others), numbers @ others, atol=1e-12)


def test_marginals_of_nothing_have_a_logarithm():
    mu, nu = np.array([0.0, 1.0], np.float32), np.array([1.0 - 1e-37, 1e-37])
    mu = np.maximum(mu, np.float32(divergence.FLOOR))
    excess, delta, terms = np.empty(2), np.zeros(2), np.empty((2, 2))
    found = [*divergence.compare_clique(mu, nu, excess, delta, terms)]
    for rest in (1.0, 0.5, 0.0):
        found += [*divergence.entropy_slopes(nu, excess, rest, terms)]
    assert np.all(np.isfinite(found))


# ------------------------------------------------------------------------------------ the update


def make_dual(X, y, l2, sample_weight=None, **params):
    """The dual problem of a small training set, and its blocks as node and pair marginals."""
    model = Model(X[0].shape[1], 1 + max(map(max, y)))
    data = training_set(X, y, sample_weight)
    return CRFDual(data, model, **{"l2": l2, "fit_intercept": True, **params})


def blocks(dual):
    """Marginals of each sequence in the stored form."""
    offsets, (node, pairs) = dual._problem.offsets, dual._dual[:2]
    n = node.shape[1]
    return [
        (node[a:b].copy(), pairs[a - i : b - 1 - i].reshape(-1, n, n).astype(float))
        for i, (a, b) in enumerate(pairwise(offsets))
    ]


def weights_in(dual):
    chain = dual.chain()
    return naive.Weights(chain.weights.T.copy(), *(part.copy() for part in chain[1:]))


def started(*args, start_from=None, **params):
    dual = make_dual(*args, **params)
    with range_runner(dual._problem.offsets, None) as run:
        dual.start(run, start_from)
    return dual


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sample_weight", [None, [2.0, 0.5, 1.0, 3.0]])
@pytest.mark.parametrize("values", ["real", "ones"])
def test_updates_step_by_step(values, sample_weight, fit_intercept):
    X, y = learnable_data([3, 1, 4, 2])
    if values == "ones":
        X = [(x > 0).astype(float) for x in X]
    dual = started(X, y, 0.7, sample_weight, fit_intercept=fit_intercept)
    plan = dual.sampling("gap", 0.8)
    weights = weights_in(dual)
    sample_weight = sample_weight or np.ones(4)
    for i in [2, 0, 3, 1, 2, 0, 2]:
        node, pairs = blocks(dual)[i]
        node, pairs, weights, gap = naive.sdca_update(
            X[i],
            sample_weight[i],
            node,
            pairs,
            weights,
            l2=0.7,
            tol=1e-3,
            fit_intercept=fit_intercept,
        )
        dual.steps(np.array([i]), np.empty(0), plan, 1e-3)
        found_node, found_pairs = blocks(dual)[i]
        assert_allclose(found_node, node, rtol=1e-6, atol=1e-7)
        assert_allclose(found_pairs, pairs, rtol=1e-6, atol=1e-7)
        for found, expected in zip(weights_in(dual), weights, strict=True):
            assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert_allclose(dual._dual.gap[i], gap, rtol=1e-4, atol=1e-7)
        assert_allclose(dual._dual.entropy[i], naive.chain_entropy(node, pairs), rtol=1e-5)
        assert_allclose(plan.tree[len(plan.tree) // 2 + i], sample_weight[i] * gap, rtol=1e-4)


@pytest.mark.parametrize("lengths", TOKEN_CASES)
def test_step_is_as_long_as_the_dual_objective_grows(lengths):
    """No other step along the same direction is better, by more than the tolerance explains."""
    X, y = learnable_data(lengths, seed=3)
    dual = started(X, y, 0.3)
    plan = dual.sampling("uniform", 0.0)
    ones = np.ones(len(X))
    for i in [*range(len(X))] * 3:
        before = blocks(dual)
        scores = naive.emission_scores(X[i], weights_in(dual))
        _, nu, nu_pairs = naive.listed_marginals(scores, weights_in(dual).transition)

        def value(gamma, before=before, i=i, nu=nu, nu_pairs=nu_pairs):
            node, pairs = before[i]
            mixed = node + gamma * (nu - node), pairs + gamma * (nu_pairs - pairs)
            return naive.dual_objective(X, y, [*before[:i], mixed, *before[i + 1 :]], ones, 0.3)

        best = scipy.optimize.minimize_scalar(
            lambda g: -value(g), bounds=(0, 1), method="bounded", options={"xatol": 1e-9}
        )
        dual.steps(np.array([i]), np.empty(0), plan, 1e-9)
        found = naive.dual_objective(X, y, blocks(dual), ones, 0.3)
        assert found >= value(0) - 1e-6
        assert_allclose(found, -best.fun, atol=2e-6)
        assert_allclose(dual.estimate().dual, found, atol=2e-6)


def test_extreme_transitions():
    """Scores whose exponentials do not fit together in one number."""
    X, y = learnable_data([3, 4, 2])
    transition = np.array([[0.0, -400, 0], [0, 0, 0], [100.0, 0, 300]])
    start = Chain(np.zeros((4, 3)), transition, *np.zeros((3, 3)))
    dual = started(X, y, 1.0, start_from=start)
    assert np.all(np.isfinite(dual.estimate()))
    dual._chain.transition[:] = transition
    weights, (node, pairs) = weights_in(dual), blocks(dual)[1]
    _, nu, nu_pairs = naive.listed_marginals(
        naive.emission_scores(X[1], weights), weights.transition
    )
    dual.steps(np.array([1]), np.empty(0), dual.sampling("gap", 0.8), 1e-3)
    found, found_pairs = blocks(dual)[1]
    # Somewhere on the way from one to the other.
    gamma = np.sum((found - node) * (nu - node)) / np.sum((nu - node) ** 2)
    assert 0 <= gamma <= 1
    assert_allclose(found, node + gamma * (nu - node), atol=1e-6)
    assert_allclose(found_pairs, pairs + gamma * (nu_pairs - pairs), atol=1e-6)


# ------------------------------------------------------------------------------------- the start


def mixtures(marginals_of, y, eta):
    """Equation (21) of the paper, with any marginals in place of the uniform ones."""
    found = []
    for (node, pairs), gold in zip(marginals_of, y, strict=True):
        gold_node, gold_pairs = naive.gold_marginals(gold, node.shape[1])
        found.append((eta * node + (1 - eta) * gold_node, eta * pairs + (1 - eta) * gold_pairs))
    return found


@pytest.mark.parametrize("lengths", TOKEN_CASES)
@pytest.mark.parametrize("warm", [False, True])
def test_start_is_the_best_of_its_kind(lengths, warm):
    X, y = learnable_data(lengths, seed=1)
    weight = 1 + np.arange(len(X)) / 2
    weights = naive.zero_weights(1 + max(map(max, y)), 4)
    if warm:
        rng = np.random.default_rng(0)
        weights = naive.Weights(*(rng.normal(size=part.shape) for part in weights))
    chain = Chain(weights.coef.T.copy(), *weights[1:]) if warm else None
    dual = started(X, y, 0.5, weight, start_from=chain)
    marginals_of = [
        naive.listed_marginals(naive.emission_scores(x, weights), weights.transition)[1:] for x in X
    ]

    def value(eta):
        return naive.dual_objective(X, y, mixtures(marginals_of, y, eta), weight, 0.5)

    found = naive.dual_objective(X, y, blocks(dual), weight, 0.5)
    assert found >= max(value(eta) for eta in np.geomspace(1e-6, 1, 200)[:-1]) - 1e-6
    expected = naive.conjugate_weights(X, y, blocks(dual), weight, 0.5)
    for ours, theirs in zip(weights_in(dual), expected, strict=True):
        assert_allclose(ours, theirs, atol=1e-6)


# ------------------------------------------------------------------------------- the certificate


def certify(dual, n_jobs=None):
    with range_runner(dual._problem.offsets, n_jobs) as run:
        return dual.certify(run)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.5])
def test_certificate_is_true_whatever_is_stored(small, noise, dtype):
    """Marginals that are spoilt make the bound worse, and not wrong."""
    X, y = small
    best = optimum(X, y, 0.5)
    minimum = objective_of(best, X, y)
    dual = started(X, y, 0.5, dtype=dtype)
    for _ in range(20):
        dual.steps(np.arange(30), np.empty(0), dual.sampling("uniform", 0), 1e-3)
    rng = np.random.default_rng(0)
    dual._dual.transition[:] *= np.exp(noise * rng.normal(size=dual._dual.transition.shape))
    dual._dual.node[:] *= np.exp(noise * rng.normal(size=dual._dual.node.shape))
    found = certify(dual, n_jobs=2)
    weights = weights_in(dual)
    assert_allclose(found.objective, naive.crf_objective(X, y, weights, 0.5))
    assert found.dual <= minimum * (1 + 1e-13)
    assert found.gap == found.objective - found.dual
    assert found.gap >= found.objective - minimum - 1e-12
    # The nodes are now those of the chains that the pairs stand for.
    stored = [(node, pairs / pairs.sum(axis=(1, 2))[:, None, None]) for node, pairs in blocks(dual)]
    for node, pairs in stored:
        if len(node) > 1:
            assert_allclose(node[0], pairs[0].sum(axis=1), rtol=1e-6)
        for t, pair in enumerate(pairs):
            conditional = pair / pair.sum(axis=1, keepdims=True)
            assert_allclose(node[t + 1], node[t] @ conditional, rtol=1e-6)
    chains = [(n, n[:-1, :, None] * p / p.sum(axis=2, keepdims=True)) for n, p in stored]
    assert_allclose(found.dual, naive.dual_objective(X, y, chains, np.ones(30), 0.5), rtol=1e-6)
    assert_allclose(dual._dual.gap.sum(), found.gap, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("l2", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_weights_are_as_near_as_the_certificate_says(addresses, l2, tol):
    X, y = addresses[0][:80], addresses[1][:80]
    tagger = SDCACRF(l2=l2, tol=tol, random_state=0).fit(X, y)
    best = optimum(X, y, l2)
    minimum = best.history_["objective"][-1]
    objective = tagger.history_["objective"][-1]
    assert tagger.duality_gap_ <= tol * objective
    assert objective - minimum <= tagger.duality_gap_ + 1e-13 * minimum
    assert minimum >= tagger.history_["dual"][-1] - 1e-13 * minimum
    assert l2 / 2 * square_distance(tagger, best) <= tagger.duality_gap_ + 1e-9


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("sample_weight", [None, "random"])
def test_all_schemes_reach_the_optimum(small, scheme, sample_weight):
    X, y = small
    if sample_weight == "random":
        sample_weight = np.random.default_rng(1).uniform(0, 3, len(X))
    tagger = SDCACRF(l2=0.3, sampling=scheme, tol=1e-12, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger.fit(X, y, sample_weight)
    best = optimum(X, y, 0.3, sample_weight)
    minimum = objective_of(best, X, y, sample_weight)
    assert_allclose(objective_of(tagger, X, y, sample_weight), minimum, rtol=1e-10)
    assert_same_weights(tagger, best, atol=1e-4)
    assert tagger.relative_duality_gap_ <= 1e-12


@pytest.mark.parametrize("scale", [1e-3, 1.0, pytest.param(30.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("l2", [1.0, 1e4])
def test_scale_of_features_and_penalty(l2, scale):
    X, y = learnable_data(np.random.default_rng(0).integers(1, 4, 40).tolist())
    X = [scale * x for x in X]
    tagger = SDCACRF(l2=l2, tol=1e-6, max_iter=99_999, random_state=0).fit(X, y)
    minimum = objective_of(optimum(X, y, l2), X, y)
    assert_allclose(objective_of(tagger, X, y), minimum, rtol=1e-6)


def test_attribute_strings(addresses):
    X, y = addresses[0][:150], addresses[1][:150]
    for fit_intercept in (True, False):
        tagger = SDCACRF(l2=0.5, tol=1e-8, fit_intercept=fit_intercept, random_state=0).fit(X, y)
        best = optimum(X, y, 0.5, fit_intercept=fit_intercept)
        assert_allclose(tagger.history_["objective"][-1], best.history_["objective"][-1], rtol=1e-6)
        assert tagger.predict(X).tolist() == best.predict(X).tolist()
        for a, b in zip(tagger.predict_proba(X), best.predict_proba(X), strict=True):
            assert_allclose(a, b, atol=1e-3)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_logistic_regression_on_sequences_of_length_one(C):
    X, y = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    reference = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    tagger = SDCACRF(l2=1 / C, tol=1e-11, max_iter=9999, fit_intercept=False, random_state=0).fit(
        X, y
    )
    assert_allclose(tagger.coef_, reference.coef_, atol=1e-4 * np.abs(reference.coef_).max())
    assert_allclose(tagger.predict_proba(X), reference.predict_proba(X), atol=1e-5)
    assert_array_equal(tagger.predict(X), reference.predict(X))
    assert not tagger.transition_.any()


@pytest.mark.parametrize("line_search_tol", [1e-8, 1e-2, 0.5])
def test_precision_of_the_line_search_does_not_matter(small, line_search_tol):
    X, y = small
    tagger = SDCACRF(tol=1e-9, line_search_tol=line_search_tol, random_state=0).fit(X, y)
    assert_allclose(objective_of(tagger, X, y), objective_of(optimum(X, y, 1.0), X, y), rtol=1e-8)


@pytest.mark.parametrize("nonuniformity", [0.0, 0.5, 1.0])
def test_share_of_nonuniform_sampling(small, nonuniformity):
    X, y = small
    params = {"tol": 1e-9, "random_state": 0}
    tagger = SDCACRF(nonuniformity=nonuniformity, **params).fit(X, y)
    assert_allclose(objective_of(tagger, X, y), objective_of(optimum(X, y, 1.0), X, y), rtol=1e-8)
    if nonuniformity == 0:
        assert_same_weights(tagger, SDCACRF(sampling="uniform", **params).fit(X, y), rtol=0)


def test_gap_sampling_needs_fewer_updates_than_uniform(addresses):
    updates = {}
    for scheme in ("gap", "uniform"):
        tagger = SDCACRF(l2=0.1, sampling=scheme, tol=1e-4, verify_every=1, random_state=0)
        updates[scheme] = tagger.fit(*addresses).history_["updates"][-1]
    assert updates["gap"] < 0.9 * updates["uniform"]


# ----------------------------------------------------------------------------------- the history


@pytest.mark.parametrize("scheme", SCHEMES)
def test_history_between_the_bounds(small, scheme):
    X, y = small
    tagger = SDCACRF(l2=0.5, sampling=scheme, tol=1e-8, verify_every=1, random_state=0).fit(X, y)
    history = tagger.history_
    assert list(history) == [
        "epoch",
        "time",
        "objective",
        "dual",
        "gap",
        "verified",
        "updates",
        "oracle_calls",
        "weight_norm",
    ]
    assert {len(column) for column in history.values()} == {tagger.n_iter_}
    assert_array_equal(history["epoch"], 1 + np.arange(tagger.n_iter_))
    assert_array_equal(history["updates"], 30 * history["epoch"])
    assert_array_equal(history["oracle_calls"], 2 * history["updates"])
    assert np.all(np.diff(history["time"]) >= 0)
    assert np.all(history["verified"])
    assert np.all(history["gap"] >= 0)
    assert_allclose(history["gap"], history["objective"] - history["dual"], atol=1e-10)
    minimum = objective_of(optimum(X, y, 0.5), X, y)
    assert np.all(history["dual"] <= minimum * (1 + 1e-13))
    assert np.all(history["objective"] >= minimum * (1 - 1e-13))
    # The dual objective never falls, but for what single precision loses.
    assert np.all(np.diff(history["dual"]) >= -1e-6 * minimum)
    assert np.all(history["gap"][10:] < 0.5 * history["gap"][0])
    assert tagger.duality_gap_ == history["gap"][-1]
    assert tagger.relative_duality_gap_ == history["gap"][-1] / history["objective"][-1]
    assert_allclose(history["objective"][-1], objective_of(tagger, X, y))
    norm = np.sqrt(sum(np.sum(part**2) for part in naive.weights_of(tagger)))
    assert_allclose(history["weight_norm"][-1], norm)


def test_estimates_are_near_the_truth(addresses):
    X, y = addresses[0], addresses[1]
    estimated = SDCACRF(l2=0.5, tol=1e-4, random_state=0).fit(X, y)
    verified = SDCACRF(l2=0.5, tol=1e-4, verify_every=1, random_state=0).fit(X, y)
    assert not estimated.history_["verified"][:-1].all()
    assert estimated.history_["verified"][-1]
    first = {name: column[0] for name, column in estimated.history_.items()}
    assert_allclose(first["dual"], verified.history_["dual"][0], rtol=1e-5)
    n = min(estimated.n_iter_, verified.n_iter_) - 1
    ratio = estimated.history_["gap"][2:n] / verified.history_["gap"][2:n]
    assert np.all((ratio > 0.3) & (ratio < 10))


@pytest.mark.parametrize("verify_every", [1, 3])
def test_verification_does_not_change_the_way(small, verify_every):
    X, y = small
    tagger = SDCACRF(
        tol=0.0, max_iter=7, verify_every=verify_every, sampling="uniform", random_state=0
    )
    with pytest.warns(ConvergenceWarning):
        tagger.fit(X, y)
    verified = [e % verify_every == 0 or e == 7 for e in range(1, 8)]
    assert_array_equal(tagger.history_["verified"], verified)
    with pytest.warns(ConvergenceWarning):
        other = SDCACRF(tol=0.0, max_iter=7, sampling="uniform", random_state=0).fit(X, y)
    assert_same_weights(tagger, other, rtol=1e-5, atol=1e-6)


def test_warns_when_max_iter_is_too_small(small):
    with pytest.warns(ConvergenceWarning, match="max_iter=2 epochs: .* > tol 1e-09"):
        tagger = SDCACRF(l2=0.2, tol=1e-9, max_iter=2, random_state=0).fit(*small)
    assert tagger.n_iter_ == 2
    assert tagger.history_["verified"][-1]
    assert tagger.duality_gap_ > 1e-9 * tagger.history_["objective"][-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SDCACRF(l2=0.2, tol=1e-9, random_state=0).fit(*small)


def test_verbose_prints_the_memory(small, capsys):
    SDCACRF(verbose=1, random_state=0).fit(*small)
    line = capsys.readouterr().out.splitlines()[0]
    assert line == f"Marginals: {SDCACRF().memory_needed(small[1]):,} bytes"


# ------------------------------------------------------------------------------------ the memory


@pytest.mark.parametrize(
    "y",
    [
        [["a", "b", "c"], [], ["a"]],
        [[0, 1, 2], [1, 1]],
        np.array([[0, 1, 2], [2, 1, 0]]),
        np.array(["a", "b", "a"]),
        [0, 1, 1, 3],
    ],
)
def test_memory_needed_is_what_is_taken(y):
    sequences = [[labels] if np.ndim(labels) == 0 else labels for labels in y]
    codes = {label: code for code, label in enumerate(sorted({x for s in sequences for x in s}))}
    full = [[codes[label] for label in labels] for labels in sequences if len(labels)]
    for tol, dtype in ((1e-4, np.float32), (1e-10, np.float64)):
        dual = make_dual([np.ones((len(labels), 2)) for labels in full], full, 1.0, dtype=dtype)
        taken = dual._dual.node.nbytes + dual._dual.transition.nbytes
        assert SDCACRF(tol=tol).memory_needed(y) == taken


def test_too_much_memory(small):
    X, y = small
    needed = SDCACRF(random_state=0).memory_needed(y)
    SDCACRF(max_memory=needed, random_state=0).fit(X, y)
    tagger = SDCACRF(max_memory=needed - 1, random_state=0)
    before = joblib.hash(vars(tagger))
    with pytest.raises(MemoryError, match=rf"need {needed:,} bytes, more than max_memory="):
        tagger.fit(X, y)
    assert joblib.hash(vars(tagger)) == before
    # What has no weight takes no memory.
    weight = np.ones(len(X))
    weight[np.argmax([len(x) for x in X])] = 0
    tagger.fit(X, y, weight)
    assert tagger.duality_gap_ >= 0


# -------------------------------------------------------------------------------- sample weights


def test_weights_of_samples_are_repetitions(small):
    X, y = small
    repeats = np.random.default_rng(2).integers(0, 4, len(X))
    index = np.repeat(np.arange(len(X)), repeats)
    weighted = SDCACRF(tol=1e-11, random_state=0).fit(X, y, repeats)
    repeated = SDCACRF(tol=1e-11, random_state=0).fit([X[i] for i in index], [y[i] for i in index])
    assert_same_weights(weighted, repeated, atol=1e-4)
    assert_allclose(
        weighted.history_["objective"][-1], repeated.history_["objective"][-1], rtol=1e-9
    )


# -------------------------------------------------------------------------------------- the rest


def test_fits_are_the_same_to_the_last_bit(small):
    first, second = (SDCACRF(random_state=3, n_jobs=2).fit(*small) for _ in range(2))
    assert_same_weights(first, second, rtol=0)
    for name in set(first.history_) - {"time"}:
        assert_array_equal(first.history_[name], second.history_[name])
    other = SDCACRF(random_state=4, n_jobs=2).fit(*small)
    assert np.any(other.coef_ != first.coef_)


def test_number_of_threads_changes_rounding_alone(small):
    one, three = (SDCACRF(random_state=0, n_jobs=n).fit(*small) for n in (1, 3))
    assert_same_weights(one, three, rtol=1e-5, atol=1e-6)
    assert_allclose(one.history_["objective"], three.history_["objective"], rtol=1e-6)


def test_warm_start_continues(addresses):
    X, y = addresses[0][:150], addresses[1][:150]
    params = {"verify_every": 1, "random_state": 0}
    tagger = SDCACRF(l2=1.0, tol=1e-8, warm_start=True, **params).fit(X, y)
    cold, coef = tagger.n_iter_, tagger.coef_.copy()
    kept = tagger.coef_
    tagger.fit(X, y)
    assert tagger.n_iter_ < cold / 3
    assert_array_equal(kept, coef)
    tagger.set_params(l2=0.7).fit(X, y)
    fresh = SDCACRF(l2=0.7, tol=1e-8, **params).fit(X, y)
    assert tagger.n_iter_ < fresh.n_iter_
    assert_allclose(tagger.history_["objective"][-1], fresh.history_["objective"][-1], rtol=1e-7)
    more = SDCACRF(l2=0.7, tol=1e-6, warm_start=True, random_state=0)
    batch = tagger.vectorizer_.transform(addresses[0][:200])
    more.fit(batch[:150], y).fit(batch, addresses[1][:200])
    best = optimum(batch, addresses[1][:200], 0.7)
    assert_allclose(more.history_["objective"][-1], best.history_["objective"][-1], rtol=1e-6)


def test_without_warm_start_nothing_is_left_of_the_last_fit(small):
    tagger = SDCACRF(random_state=0).fit(*small)
    expected = naive.weights_of(tagger)
    tagger.fit([[["a"], ["b"]]], [["x", "y"]])
    assert tagger.classes_.tolist() == ["x", "y"]
    tagger.fit(*small)
    for before, after in zip(expected, naive.weights_of(tagger), strict=True):
        assert_array_equal(before, after)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_one_label_only(scheme):
    X, y = [[["a"], ["b"]], [["b"]]], [["x", "x"], ["x"]]
    tagger = SDCACRF(sampling=scheme, random_state=0).fit(X, y)
    assert tagger.predict(X).tolist() == y
    assert_array_equal(tagger.predict_proba(X)[0], [[1], [1]])
    assert tagger.duality_gap_ == tagger.history_["objective"][-1] == 0


def test_tokens_without_features():
    X = [np.zeros((3, 2)), np.zeros((1, 2))]
    y = [["x", "y", "x"], ["x"]]
    for fit_intercept in (True, False):
        tagger = SDCACRF(tol=1e-9, fit_intercept=fit_intercept, random_state=0).fit(X, y)
        best = optimum(X, y, 1.0, fit_intercept=fit_intercept)
        assert_allclose(tagger.history_["objective"][-1], best.history_["objective"][-1], rtol=1e-8)


def test_long_sequence():
    """The work of a sequence is not divided, so this takes its time, but it is no exception."""
    X, y = learnable_data([3000, *[3] * 20])
    tagger = SDCACRF(l2=300.0, tol=1e-6, random_state=0).fit(X, y)
    best = optimum(X, y, 300.0)
    assert_allclose(tagger.history_["objective"][-1], best.history_["objective"][-1], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("l2", 0.0),
        ("l2", -1.0),
        ("l2", np.nan),
        ("sampling", "random"),
        ("nonuniformity", 1.1),
        ("nonuniformity", -0.1),
        ("line_search_tol", 0.0),
        ("max_iter", 0),
        ("tol", -1e-3),
        ("verify_every", 0),
        ("max_memory", -1),
        ("random_state", "x"),
        ("n_jobs", 1.5),
        ("fit_intercept", "yes"),
    ],
)
def test_bad_parameters(small, name, value):
    tagger = SDCACRF(random_state=0).fit(*small)
    tagger.set_params(**{name: value})
    before = joblib.hash(vars(tagger))
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of SDCACRF"):
        tagger.fit(*small)
    assert joblib.hash(vars(tagger)) == before
