"""Rerankers against plain-Python twins that store every vector, and against the theory."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks as checks

from skstruct import SequenceVectorizer
from skstruct.rerankers.base import without_shared
from skstruct.rerankers.descent import PerceptronReranker, SGDReranker, TruncatedGradientReranker
from skstruct.rerankers.losses import LOSSES, judge, loss_gradient
from skstruct.rerankers.vrda import VRDAReranker, vanishes
from skstruct.sequences import SequenceBatch

RERANKERS = [VRDAReranker, PerceptronReranker, SGDReranker, TruncatedGradientReranker]
WITH_LOSS = [VRDAReranker, SGDReranker, TruncatedGradientReranker]


# ------------------------------------------------------------------------------------------ data


def random_task(seed, n_groups=12, n_features=6, density=0.6, most=5):
    """Groups of sparse candidates, some of them equal, and costs, some of them equal."""
    rng = np.random.default_rng(seed)
    X, costs = [], []
    for _ in range(n_groups):
        n = int(rng.integers(2, most + 1))
        # Random reals: no two sums are equal by chance, so twins cannot differ by how they round.
        candidates = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < density)
        if n > 2 and rng.random() < 0.5:
            candidates[n - 1] = candidates[0]
        candidates[:, 0] = rng.normal()
        X.append(candidates)
        costs.append(rng.integers(0, 4, size=n) / 4.0)
    return X, costs


def random_base(X, seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=len(x)) for x in X]


def separable_task(seed, n_groups=60, n_features=8):
    """Groups in which a hidden vector puts the oracle ahead by at least one."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=n_features)
    X, oracles = [], []
    while len(X) < n_groups:
        candidates = rng.normal(size=(rng.integers(2, 6), n_features))
        scores = np.sort(candidates @ u)
        if scores[-1] - scores[-2] >= 1.0:
            X.append(candidates)
            oracles.append(int(np.argmax(candidates @ u)))
    return X, oracles, u


# ----------------------------------------------------------------------------------------- twins


def naive_gradient(loss, candidates, scores, costs):
    """Gradient of a loss by the weights, by its formula."""
    oracle, rival = naive_oracle(scores, costs), naive_rival(scores, costs)
    z = candidates[oracle] - candidates[rival]
    margin = scores[oracle] - scores[rival]
    proba = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    if loss == "hinge":
        return -z * (margin < 1)
    if loss == "logistic":
        return -z / (1 + np.exp(margin))
    if loss == "log":
        return proba @ candidates - candidates[oracle]
    return (proba * (costs - proba @ costs)) @ candidates


def naive_oracle(scores, costs):
    return max(np.flatnonzero(costs == costs.min()), key=lambda y: scores[y])


def naive_rival(scores, costs):
    return max(np.flatnonzero(costs > costs.min()), key=lambda y: scores[y])


def shrink(g, l1):
    return np.sign(g) * np.maximum(np.abs(g) - l1, 0.0)


def naive_vrda(X, costs, base, loss, l1, eta, max_iter):
    """Figure 1 with every predictor stored: all weight vectors, and the votes of each."""
    predictors, votes, gradients = [np.zeros(X[0].shape[1])], [0], []
    for _ in range(max_iter):
        for candidates, cost, b in zip(X, costs, base, strict=True):
            if np.ptp(cost) == 0:
                continue
            scores = candidates @ predictors[-1] + b
            if cost[np.argmax(scores)] == cost.min():
                votes[-1] += 1
                continue
            gradients.append(naive_gradient(loss, candidates, scores, cost))
            k = len(gradients)
            predictors.append(-np.sqrt(k) / eta * shrink(np.mean(gradients, axis=0), l1))
            votes.append(1)
    return np.array(predictors), np.array(votes)


def naive_votes(predictors, votes, candidates, base):
    """Figure 2."""
    counts = np.zeros(len(candidates), int)
    for w, c in zip(predictors, votes, strict=True):
        counts[np.argmax(candidates @ w + base)] += c
    return counts


def naive_descent(X, costs, loss, learning_rate, gravity, period, max_iter):
    """Stochastic gradient descent with the truncation (12) of all weights, after every period."""
    w, n_steps, n_seen = np.zeros(X[0].shape[1]), 0, 0
    for _ in range(max_iter):
        for candidates, cost in zip(X, costs, strict=True):
            step = learning_rate / np.sqrt(n_steps + 1)
            if np.ptp(cost) > 0:
                scores = candidates @ w
                margin = scores[naive_oracle(scores, cost)] - scores[naive_rival(scores, cost)]
                if loss != "hinge" or margin < 1:
                    w = w - step * naive_gradient(loss, candidates, scores, cost)
                    n_steps += 1
            n_seen += 1
            if n_seen % period == 0:
                w = shrink(w, step * period * gravity)
    return w


def naive_perceptron(X, costs, max_iter):
    w, total, n_seen = np.zeros(X[0].shape[1]), np.zeros(X[0].shape[1]), 0
    for _ in range(max_iter):
        for candidates, cost in zip(X, costs, strict=True):
            scores = candidates @ w
            chosen = int(np.argmax(scores))
            if cost[chosen] > cost.min():
                w = w + candidates[naive_oracle(scores, cost)] - candidates[chosen]
            total, n_seen = total + w, n_seen + 1
    return total / n_seen


# ------------------------------------------------------------------------------- VRDA is its twin


settings_of_vrda = given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(sorted(LOSSES)),
    l1=st.sampled_from([0.0, 1e-3, 0.03, 0.1, 0.3, 2.0]),
    eta=st.sampled_from([0.2, 1.0, 3.0]),
    max_iter=st.integers(1, 4),
    with_base=st.booleans(),
)


@settings_of_vrda
def test_voting_equals_storing_every_vector(seed, loss, l1, eta, max_iter, with_base):
    X, costs = random_task(seed)
    base = random_base(X, seed) if with_base else [np.zeros(len(x)) for x in X]
    predictors, votes = naive_vrda(X, costs, base, loss, l1, eta, max_iter)
    reranker = VRDAReranker(
        loss=loss, l1=l1, eta=eta, max_iter=max_iter, shuffle=False, prediction="vote"
    ).fit(X, costs, baseline_score=base)

    assert_array_equal(reranker.votes_, votes)
    assert reranker.n_mistakes_ == len(predictors) - 1
    new, _ = random_task(seed + 1, n_groups=6)
    new_base = random_base(new, seed) if with_base else [np.zeros(len(x)) for x in new]
    shares = reranker.decision_function(new, baseline_score=new_base)
    for candidates, b, share in zip(new, new_base, shares, strict=True):
        expected = naive_votes(predictors, votes, candidates, b)
        assert_array_equal(np.rint(share * votes.sum()), expected)


@given(seed=st.integers(0, 10**6), l1=st.sampled_from([0.0, 0.01, 0.1]))
def test_voting_tells_ties_from_rounding(seed, l1):
    # Whole numbers and few of them, so that scores of different candidates are often equal and
    # the first has to win; with thousandths added, corrected scores are wrong in the last bits.
    rng = np.random.default_rng(seed)
    X = [rng.integers(0, 2, size=(5, 6)) * rng.choice([1.0, 1.001], size=6) for _ in range(25)]
    costs = [rng.integers(0, 3, size=5).astype(float) for _ in X]
    base = [np.zeros(5)] * len(X)
    predictors, votes = naive_vrda(X, costs, base, "hinge", l1, 1.0, max_iter=4)
    reranker = VRDAReranker(loss="hinge", l1=l1, max_iter=4, shuffle=False, prediction="vote").fit(
        X, costs
    )
    # Rounding may let training itself take another of two equal candidates.
    assume(np.array_equal(votes, reranker.votes_))
    for candidates, share in zip(X, reranker.decision_function(X), strict=True):
        counts = np.zeros(5, int)
        doubtful = 0
        for k, (w, c) in enumerate(zip(predictors, votes, strict=True)):
            scores = candidates @ w
            order = np.sort(scores)
            if order[-1] - order[-2] > 1e-9 or k == 0:
                counts[np.argmax(scores)] += c
            else:
                doubtful += c
        found = np.rint(share * votes.sum()).astype(int)
        assert (found >= counts).all()
        assert found.sum() == counts.sum() + doubtful
        # Of equal candidates the first is voted for, and a later one never.
        for y in range(1, 5):
            if any(np.array_equal(candidates[y], earlier) for earlier in candidates[:y]):
                assert found[y] == 0


@settings_of_vrda
def test_lazy_shrinkage_equals_the_closed_form(seed, loss, l1, eta, max_iter, with_base):
    X, costs = random_task(seed)
    base = random_base(X, seed) if with_base else [np.zeros(len(x)) for x in X]
    predictors, votes = naive_vrda(X, costs, base, loss, l1, eta, max_iter)
    options = {"loss": loss, "l1": l1, "eta": eta, "max_iter": max_iter, "shuffle": False}
    last = VRDAReranker(prediction="last", **options).fit(X, costs, baseline_score=base)
    mean = VRDAReranker(prediction="average", **options).fit(X, costs, baseline_score=base)

    assert_allclose(last.coef_, predictors[-1], rtol=1e-9, atol=1e-9)
    # The first feature is the same in all candidates, so its gradient is rounding error.
    predictors[:, 0] = 0
    assert_array_equal(last.coef_ != 0, predictors[-1] != 0)
    assert last.history_["nnz"][-1] == np.count_nonzero(predictors[-1])
    total = votes @ predictors / max(votes.sum(), 1)
    assert_allclose(mean.coef_, total, rtol=1e-9, atol=1e-9)
    assert last.history_["mistakes"].sum() == len(predictors) - 1


@given(seed=st.integers(0, 10**6))
def test_votes_decide_and_equal_votes_go_by_the_average(seed):
    X, costs = random_task(seed, n_groups=20)
    reranker = VRDAReranker(prediction="vote", max_iter=2, random_state=seed).fit(X, costs)
    by_average = VRDAReranker(prediction="average", max_iter=2, random_state=seed).fit(X, costs)
    votes, scores = reranker.decision_function(X), by_average.decision_function(X)
    for chosen, order, v, s in zip(
        reranker.predict(X), reranker.rank(X), votes, scores, strict=True
    ):
        pairs = list(zip(v[order], s[order], strict=True))
        assert pairs == sorted(pairs, reverse=True)
        assert chosen == order[0]
        assert v.sum() == pytest.approx(1)


@given(
    size=st.floats(0, 50),
    l1=st.sampled_from([0.0, 0.1, 0.3, 1.0, 7.3]) | st.floats(1e-3, 10),
    n_mistakes=st.integers(0, 300),
    sign=st.sampled_from([-1, 1]),
)
def test_a_standing_weight_vanishes_when_the_threshold_reaches_it(size, l1, n_mistakes, sign):
    m = vanishes(sign * size, l1, n_mistakes)
    alive = [k for k in range(1, n_mistakes + 1) if size > k * l1]
    assert m == len(alive) + 1


def test_whole_numbers_that_meet_the_threshold_leave_no_rest():
    # After 10 mistakes the threshold of the sum is 10 * 0.3, which is 3 and is not 3.
    X = [[[1.0, 0.0], [0.0, 1.0]]] * 3 + [[[0.0, 1.0], [0.0, 2.0]]] * 7
    batch = [np.array(x) for x in X]
    costs = [np.array([1.0, 0.0])] * 3 + [np.array([0.0, 1.0])] * 7
    rounds = 0
    for l1 in (0.1, 0.3, 0.6, 0.7):
        reranker = VRDAReranker(loss="hinge", l1=l1, shuffle=False, prediction="last", max_iter=4)
        reranker.fit(batch, costs)
        predictors, _ = naive_vrda(batch, costs, [np.zeros(2)] * 10, "hinge", l1, 1.0, max_iter=4)
        assert_allclose(reranker.coef_, predictors[-1], atol=1e-9)
        rounds += reranker.n_mistakes_
    assert rounds > 10


# ------------------------------------------------------------------------- mistake bound, theory


@given(
    seed=st.integers(0, 10**6), l1=st.sampled_from([0.0, 1e-3, 1e-2]), max_iter=st.integers(1, 5)
)
@settings(max_examples=30)
def test_mistakes_are_within_the_bound_of_theorem_1(seed, l1, max_iter):
    X, oracles, u = separable_task(seed)
    differences = np.concatenate(
        [np.delete(x[y] - x, y, axis=0) for x, y in zip(X, oracles, strict=True)]
    )
    assert (differences @ u).min() >= 1
    radius = np.linalg.norm(differences, axis=1).max()
    # The step size for which the bound is proved, eta = sqrt(2) G / |u|; Theorem 1 with
    # regularisation speaks of the first pass.
    eta = np.sqrt(2) * radius / np.linalg.norm(u)
    max_iter = max_iter if l1 == 0 else 1
    reranker = VRDAReranker(
        loss="hinge", l1=l1, eta=eta, max_iter=max_iter, shuffle=False, prediction="vote"
    ).fit(X, oracles)
    costs = [1.0 * (np.arange(len(x)) != y) for x, y in zip(X, oracles, strict=True)]
    base = [np.zeros(len(x)) for x in X]
    predictors, _ = naive_vrda(X, costs, base, "hinge", l1, eta, max_iter)
    n_mistakes = reranker.n_mistakes_
    assert n_mistakes > 0
    strength = l1 * (np.abs(u).sum() - np.abs(predictors[:-1]).sum(axis=1).mean())
    if strength < 1:
        bound = 2 * (radius * np.linalg.norm(u) / (1 - strength)) ** 2
        assert n_mistakes <= bound


def test_separable_data_end_without_mistakes():
    X, oracles, _ = separable_task(0)
    reranker = VRDAReranker(loss="hinge", max_iter=50, prediction="last", random_state=0)
    reranker.fit(X, oracles)
    assert reranker.history_["mistakes"][-1] == 0
    assert reranker.score(X, oracles) == 1
    assert reranker.history_["mistakes"][0] > 0


# --------------------------------------------------------------------------------------- losses


@pytest.mark.parametrize("loss", sorted(LOSSES))
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 5.0]))
def test_derivatives_are_finite_differences(loss, seed, scale):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=rng.integers(2, 7)) * scale
    costs = rng.integers(0, 3, size=len(scores)) / 2.0
    costs[0], costs[1] = 0.0, 1.0

    def value(s):
        _, oracle, rival = judge(s, costs)
        return loss_gradient(LOSSES[loss], s, costs, oracle, rival, np.empty(len(s)))

    _, oracle, rival = judge(scores, costs)
    d = np.empty(len(scores))
    loss_gradient(LOSSES[loss], scores, costs, oracle, rival, d)
    if abs(scores[oracle] - scores[rival] - 1) > 1e-4:
        assert_allclose(d, approx_fprime(scores, value, 1e-6), atol=1e-4)
    assert d.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("size", [1e3, -1e3])
def test_losses_do_not_overflow(loss, size):
    scores, costs, d = np.array([size, 0.0, -size]), np.array([0.0, 1.0, 2.0]), np.empty(3)
    value = loss_gradient(LOSSES[loss], scores, costs, 0, 1, d)
    worst = {"bayes_risk": 2.0, "log": -2 * size, "hinge": 1 - size, "logistic": -size}[loss]
    assert value == pytest.approx(0.0 if size > 0 else worst)
    assert np.isfinite(d).all()


@given(seed=st.integers(0, 10**6))
def test_prediction_oracle_and_rival(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, size=5).astype(float)
    costs = rng.integers(0, 2, size=5).astype(float)
    predicted, oracle, rival = judge(scores, costs)
    assert predicted == np.argmax(scores)
    assert oracle == naive_oracle(scores, costs)
    assert rival == (naive_rival(scores, costs) if np.ptp(costs) else -1)


# --------------------------------------------------------------------------- compared with VRDA


@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(sorted(LOSSES)),
    gravity=st.sampled_from([0.0, 1e-3, 0.05, 0.5]),
    period=st.integers(1, 5),
    max_iter=st.integers(1, 3),
)
def test_lazy_truncation_equals_truncating_all(seed, loss, gravity, period, max_iter):
    X, costs = random_task(seed)
    options = {"loss": loss, "learning_rate": 0.5, "max_iter": max_iter, "shuffle": False}
    truncated = TruncatedGradientReranker(gravity=gravity, period=period, **options).fit(X, costs)
    expected = naive_descent(X, costs, loss, 0.5, gravity, period, max_iter)
    assert_allclose(truncated.coef_[1:], expected[1:], rtol=1e-9, atol=1e-9)
    assert truncated.history_["nnz"][-1] == np.count_nonzero(truncated.coef_)
    if gravity == 0:
        assert_array_equal(SGDReranker(**options).fit(X, costs).coef_, truncated.coef_)


@given(seed=st.integers(0, 10**6), max_iter=st.integers(1, 4))
def test_perceptron_equals_its_twin(seed, max_iter):
    X, costs = random_task(seed)
    reranker = PerceptronReranker(max_iter=max_iter, shuffle=False).fit(X, costs)
    assert_allclose(reranker.coef_, naive_perceptron(X, costs, max_iter), atol=1e-9)


def test_truncation_sets_weights_to_zero():
    X, costs = random_task(3, n_groups=60, n_features=30)
    counts = [
        TruncatedGradientReranker(gravity=g, learning_rate=0.5, random_state=0)
        .fit(X, costs)
        .history_["nnz"][-1]
        for g in (0.0, 0.02, 0.3)
    ]
    assert counts[0] > counts[1] > counts[2]


def test_a_larger_threshold_leaves_fewer_weights():
    X, costs = random_task(3, n_groups=60, n_features=30)
    counts = [
        np.count_nonzero(VRDAReranker(l1=l1, prediction="last", random_state=0).fit(X, costs).coef_)
        for l1 in (0.0, 0.02, 0.1, 10.0)
    ]
    assert counts[0] > counts[1] > counts[2] > counts[3] == 0


# ------------------------------------------------------------------- features that are all equal


@given(seed=st.integers(0, 10**6))
def test_shared_features_are_left_out(seed):
    X, _ = random_task(seed)
    batch = SequenceBatch.from_sequences(X)
    rows = without_shared(batch)
    kept = sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=batch.X.shape).toarray()
    for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        shared = np.ptp(batch.X[a:b], axis=0) == 0
        assert_array_equal(kept[a:b], np.where(shared, 0.0, batch.X[a:b]))
        assert shared[0]


# ---------------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("Reranker", RERANKERS)
def test_formats_agree(Reranker):
    X, costs = random_task(5, most=4, density=1.0)
    names = np.array([f"f{j}" for j in range(6)], dtype=object)
    dicts = [[dict(zip(names, row, strict=True)) for row in x] for x in X]
    forms = [
        X,
        dicts,
        [sp.csr_matrix(x) for x in X],
        SequenceBatch.from_sequences(X),
        SequenceBatch.from_sequences([sp.csr_matrix(x) for x in X], feature_names=names),
    ]
    expected = Reranker(random_state=0).fit(X, costs)
    for form in forms:
        reranker = Reranker(random_state=0).fit(form, costs)
        assert_allclose(reranker.coef_, expected.coef_, atol=1e-12)
        assert_array_equal(reranker.predict(form), expected.predict(X))


@pytest.mark.parametrize("Reranker", RERANKERS)
def test_equally_large_groups_give_matrices(Reranker):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4, 3))
    costs = -(X @ [1.0, -1.0, 0.0])
    reranker = Reranker(random_state=0).fit(X, costs)
    proba = reranker.predict_proba(X)
    assert proba.shape == reranker.decision_function(X).shape == (20, 4)
    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(np.sort(reranker.rank(X), axis=1), np.tile(np.arange(4), (20, 1)))
    listed = Reranker(random_state=0).fit(list(X), list(costs))
    assert_array_equal(listed.coef_, reranker.coef_)
    assert reranker.score(X, costs) > -costs.mean()


@pytest.mark.parametrize("Reranker", RERANKERS)
def test_oracle_numbers_are_costs_of_zero_and_one(Reranker):
    X, _ = random_task(8)
    oracles = [i % 2 for i in range(len(X))]
    costs = [(np.arange(len(x)) != o).astype(float) for x, o in zip(X, oracles, strict=True)]
    by_number, by_cost = Reranker(random_state=0), Reranker(random_state=0)
    assert_array_equal(by_number.fit(X, oracles).coef_, by_cost.fit(X, costs).coef_)
    accuracy = np.mean(by_number.predict(X) == oracles)
    assert by_number.score(X, oracles) == pytest.approx(accuracy)
    assert by_number.score(X, costs) == pytest.approx(accuracy - 1)
    assert "cost" in by_cost.history_
    assert "cost" not in by_number.history_


def test_score_is_the_negative_cost_of_the_chosen():
    X, costs = random_task(9)
    reranker = VRDAReranker(random_state=0).fit(X, costs)
    chosen = [c[i] for c, i in zip(costs, reranker.predict(X), strict=True)]
    assert reranker.score(X, costs) == pytest.approx(-np.mean(chosen))
    weight = np.arange(len(X))
    expected = -np.average(chosen, weights=weight)
    assert reranker.score(X, costs, sample_weight=weight) == pytest.approx(expected)


def test_probabilities_are_the_softmax_of_the_scores():
    X, costs = random_task(10)
    base = random_base(X, 1)
    reranker = VRDAReranker(random_state=0).fit(X, costs, baseline_score=base)
    for x, b, p in zip(X, base, reranker.predict_proba(X, baseline_score=base), strict=True):
        exp = np.exp(x @ reranker.coef_ + b)
        assert_allclose(p, exp / exp.sum())


@pytest.mark.parametrize("Reranker", RERANKERS)
def test_a_baseline_is_a_feature_with_a_fixed_weight(Reranker):
    X, costs = random_task(11)
    base = random_base(X, 2)
    given_apart = Reranker(random_state=0, baseline_weight=0.5).fit(X, costs, baseline_score=base)
    with_column = [np.column_stack([x, b]) for x, b in zip(X, base, strict=True)]
    by_number = Reranker(random_state=0, baseline=6, baseline_weight=0.5).fit(with_column, costs)
    named = [[dict(zip("abcdefg", row, strict=True)) for row in x] for x in with_column]
    by_name = Reranker(random_state=0, baseline="g", baseline_weight=0.5).fit(named, costs)
    assert_allclose(by_number.coef_, np.append(given_apart.coef_, 0.0), atol=1e-12)
    assert_allclose(by_name.coef_, by_number.coef_, atol=1e-12)
    expected = given_apart.predict(X, baseline_score=base)
    assert_array_equal(by_number.predict(with_column), expected)
    assert_array_equal(by_name.predict(named), expected)
    score = given_apart.score(X, costs, baseline_score=base)
    assert by_number.score(with_column, costs) == score
    assert by_name.score(named, costs) == score
    chosen = [c[i] for c, i in zip(costs, expected, strict=True)]
    assert score == pytest.approx(-np.mean(chosen))
    without = Reranker(random_state=0).fit(X, costs)
    assert not np.allclose(without.coef_, given_apart.coef_)


def test_groups_of_one_are_welcome_in_prediction():
    X, costs = random_task(13)
    for prediction in ("vote", "average", "last"):
        reranker = VRDAReranker(prediction=prediction, random_state=0).fit(X, costs)
        assert_array_equal(reranker.predict([X[0][:1], X[1]]), [0, reranker.predict(X)[1]])
        assert_allclose(reranker.predict_proba([X[0][:1]])[0], [1.0])


def test_unknown_features_of_dicts_are_ignored():
    X = [[{"a": 1}, {"b": 1}]] * 2
    reranker = VRDAReranker(random_state=0).fit(X, [1, 1])
    assert_array_equal(reranker.predict([[{"a": 1, "new": 9}, {"b": 1}, {"new": 1}]]), [1])


def test_y_may_come_from_a_data_frame():
    X, costs = random_task(14, most=3)
    X, costs = [x[:2] for x in X], [c[:2] for c in costs]
    rows = range(100, 100 + len(X))
    expected = VRDAReranker(random_state=0).fit(X, costs)
    frame, series = pd.DataFrame(costs, index=rows), pd.Series(costs, index=rows)
    for y in (frame, series, iter(costs), np.array(costs)):
        assert_array_equal(VRDAReranker(random_state=0).fit(X, y).coef_, expected.coef_)
    assert expected.score(X, frame) == expected.score(X, costs)
    oracles = pd.Series([int(np.argmin(c)) for c in costs], index=rows)
    by_list = VRDAReranker(random_state=0).fit(X, oracles.tolist())
    by_series = VRDAReranker(random_state=0).fit(X, oracles)
    assert_array_equal(by_series.coef_, by_list.coef_)


# ------------------------------------------------------------------------------------- bad input


def _with(values, i, value):
    return [*values[:i], value, *values[i + 1 :]]


BAD = {
    "empty group": (lambda X, y: (_with(X, 3, X[3][:0]), _with(y, 3, [])), "Group 3 is empty"),
    "group of one": (
        lambda X, y: (_with(X, 4, X[4][:1]), _with(y, 4, [0.0])),
        "Group 4 has a single candidate",
    ),
    "costs too few": (lambda X, y: (X, _with(y, 2, y[2][:-1])), "Group 2 has . candidates"),
    "NaN cost": (
        lambda X, y: (X, _with(y, 5, np.append(y[5][:-1], np.nan))),
        r"Group 5, candidate \d+: the cost is nan",
    ),
    "infinite cost": (
        lambda X, y: (X, _with(y, 5, np.append(y[5][:-1], np.inf))),
        r"Group 5, candidate \d+: the cost is inf",
    ),
    "text for costs": (lambda X, y: (X, _with(y, 1, ["x"] * len(y[1]))), "Group 1: costs must be"),
    "oracle too large": (lambda X, y: (X, _with([0] * len(X), 6, 9)), "Group 6: oracle 9 is out"),
    "negative oracle": (lambda X, y: (X, _with([0] * len(X), 6, -1)), "Group 6: oracle -1 is out"),
    "fraction for oracle": (lambda X, y: (X, _with([0] * len(X), 6, 0.5)), "Group 6: 0.5 is not"),
    "costs after oracles": (lambda X, y: (X, _with([0] * len(X), 6, y[6])), "Group 6: .* is not"),
    "y too short": (lambda X, y: (X, y[:-1]), "X has 12 groups, but y has 11 entries"),
    "no y": (lambda X, y: (X, None), "requires y"),
    "a table": (lambda X, y: (X[0], [0] * len(X[0])), "X is a single table"),
    "NaN feature": (
        lambda X, y: (_with(X, 7, np.full_like(X[7], np.nan)), y),
        "Group 7, candidate 0",
    ),
    "no groups": (lambda X, y: ([], []), "at least one group"),
    "y a number": (lambda X, y: (X, 3), "y must be a list or array of one entry .*; got 3"),
    "y a dict": (lambda X, y: (X, dict(enumerate(y))), "y must be a list or array of one entry"),
    "y a set": (lambda X, y: (X, set(range(len(y)))), "y must be a list or array of one entry"),
    "text for an oracle": (lambda X, y: (X, ["a"] * len(X)), "Group 0: 'a' is not a candidate num"),
    "no oracle": (lambda X, y: (X, [None, *y[1:]]), "Group 0: None is not a candidate number"),
    "an oracle": (lambda X, y: (X, _with(y, 2, 1)), "Group 2: 1 is not an array of costs. Give"),
    "a number for a group": (
        lambda X, y: ([[["a"], ["b"]], 3], [0, 0]),
        "Group 1 is 3; expected a list of candidates",
    ),
    "a number for a candidate": (
        lambda X, y: ([[["a"], ["b"]], [["a"], 3]], [0, 0]),
        "Group 1, candidate 1: 3 is not a valid candidate",
    ),
    "too few columns": (
        lambda X, y: (_with(X, 3, X[3][:, :4]), y),
        "Group 3 has 4 features, but group 0 has 6",
    ),
}


@pytest.mark.parametrize("Reranker", RERANKERS)
@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_names_the_group_and_changes_nothing(Reranker, case):
    X, costs = random_task(20)
    spoil, message = BAD[case]
    reranker = Reranker(random_state=0).fit(X, costs)
    before = pickle.dumps(reranker.coef_)
    with pytest.raises(ValueError, match=message):
        reranker.fit(*spoil(X, costs))
    assert pickle.dumps(reranker.coef_) == before
    with pytest.raises(ValueError, match=message):
        Reranker().fit(*spoil(X, costs))


@pytest.mark.parametrize(
    ("baseline_score", "message"),
    [
        ([[0.0]] * 12, "Group 0 has . candidates, but its baseline scores"),
        ([[0.0]], "baseline scores are given for 1"),
        (None, None),
    ],
)
def test_bad_baseline_scores(baseline_score, message):
    X, costs = random_task(21)
    if message is None:
        message = r"Group 3, candidate 0: the baseline score is nan"
        baseline_score = _with(random_base(X, 0), 3, np.full(len(X[3]), np.nan))
    with pytest.raises(ValueError, match=message):
        VRDAReranker().fit(X, costs, baseline_score=baseline_score)


@pytest.mark.parametrize("Reranker", RERANKERS)
def test_baseline_scores_must_be_given_again(Reranker):
    X, costs = random_task(21)
    reranker = Reranker(random_state=0).fit(X, costs, baseline_score=random_base(X, 0))
    for method in ("predict", "rank", "decision_function", "predict_proba"):
        with pytest.raises(ValueError, match="fitted with baseline scores"):
            getattr(reranker, method)(X)
    with pytest.raises(ValueError, match="fitted with baseline scores"):
        reranker.score(X, costs)
    reranker.fit(X, costs)
    assert reranker.predict(X).shape == (len(X),)


def test_bad_sample_weights():
    X, costs = random_task(21)
    reranker = VRDAReranker(random_state=0).fit(X, costs)
    for weight, message in (
        ([1.0], "sample_weight must have shape .*, one weight for each group, got"),
        ([-1.0] * len(X), "finite and not negative"),
        ([0.0] * len(X), "at least one non-zero"),
        ([np.nan] * len(X), r"sample_weight\[0\] is nan"),
    ):
        with pytest.raises(ValueError, match=message):
            reranker.fit(X, costs, sample_weight=weight)
        with pytest.raises(ValueError, match=message):
            reranker.score(X, costs, sample_weight=weight)


@pytest.mark.parametrize(
    ("reranker", "remedy"),
    [
        (SGDReranker(learning_rate=1e308), "or a smaller learning rate"),
        (VRDAReranker(eta=1e-320), "or a larger eta"),
    ],
)
def test_advice_on_weights_that_overflow_names_what_there_is(reranker, remedy):
    message = rf"smaller sample weights or costs, {remedy}\.$"
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        reranker.set_params(random_state=0).fit(*random_task(21))


def test_words_of_the_user_are_left_alone():
    with pytest.raises(ValueError, match=r"Group 0, candidate 1.*'token'"):
        VRDAReranker().fit([[{"token": 1}, {"token": None}]], [0])


def test_bad_baseline_names_and_features():
    X, costs = random_task(21)
    with pytest.raises(ValueError, match="baseline=6 is out of range: X has 6 features"):
        VRDAReranker(baseline=6, random_state=0).fit(X, costs)
    with pytest.raises(ValueError, match="'score' is not among the feature names"):
        VRDAReranker(baseline="score", random_state=0).fit(X, costs)
    reranker = VRDAReranker(random_state=0).fit(X, costs)
    with pytest.raises(ValueError, match="X has 5 features, but VRDAReranker is expecting 6"):
        reranker.predict([x[:, :5] for x in X])
    named = SequenceBatch.from_sequences(X, feature_names=list("abcdef"))
    renamed = SequenceBatch.from_sequences(X, feature_names=list("abcdeg"))
    with pytest.raises(ValueError, match="feature names of X differ from those"):
        VRDAReranker(random_state=0).fit(named, costs).predict(renamed)
    with pytest.raises(ValueError, match="fitted on numbers"):
        reranker.predict([[["word"], ["other"]]])
    with pytest.raises(ValueError, match="Group 0, candidate 1"):
        VRDAReranker(random_state=0).fit([[{"a": 1}, {"a": None}]], [0])


@pytest.mark.parametrize(
    "bad",
    [
        {"loss": "squared"},
        {"l1": -1.0},
        {"eta": 0.0},
        {"prediction": "first"},
        {"max_iter": 0},
        {"baseline": 1.5},
        {"baseline_weight": np.inf},
    ],
)
def test_bad_parameters(bad):
    X, costs = random_task(22)
    with pytest.raises(ValueError, match=next(iter(bad))):
        VRDAReranker(**bad).fit(X, costs)


# --------------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("Reranker", RERANKERS)
@pytest.mark.parametrize(
    "check",
    [
        checks.check_estimator_cloneable,
        checks.check_estimator_repr,
        checks.check_estimators_unfitted,
        checks.check_get_params_invariance,
        checks.check_no_attributes_set_in_init,
        checks.check_parameters_default_constructible,
        checks.check_set_params,
        checks.check_valid_tag_types,
    ],
)
def test_checks_of_scikit_learn_that_need_no_table(Reranker, check):
    check(Reranker.__name__, Reranker())


def test_not_fitted():
    X, costs = random_task(30)
    for method in ("predict", "rank", "decision_function", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(VRDAReranker(), method)(X)
    with pytest.raises(NotFittedError):
        VRDAReranker().score(X, costs)


@pytest.mark.parametrize("Reranker", RERANKERS)
def test_fit_and_predict_leave_input_and_parameters_alone(Reranker):
    X, costs = random_task(30)
    reranker = Reranker(random_state=0, max_iter=2)
    before = pickle.dumps((X, costs, reranker.get_params()))
    assert reranker.fit(X, costs) is reranker
    reranker.predict(X)
    reranker.score(X, costs)
    assert pickle.dumps((X, costs, reranker.get_params())) == before
    learnt = reranker.coef_.copy()
    assert_array_equal(reranker.fit(X, costs).coef_, learnt)


def test_pipeline_with_a_vectorizer():
    X, costs = random_task(35, n_groups=30)
    dicts = [[{f"f{j}": v for j, v in enumerate(row)} for row in x] for x in X]
    pipeline = make_pipeline(SequenceVectorizer(), VRDAReranker(random_state=0, prediction="vote"))
    alone = VRDAReranker(random_state=0, prediction="vote").fit(dicts, costs)
    pipeline.fit(dicts, costs)
    assert_array_equal(pipeline.predict(dicts), alone.predict(dicts))
    assert pipeline.score(dicts, costs) == alone.score(dicts, costs)
    grid = {"vrdareranker__l1": [0.0, 100.0], "vrdareranker__prediction": ["last", "vote"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(dicts, costs)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.predict(dicts[:4]).shape == (4,)
    first = [np.mean([costs[i][0] for i in test]) for _, test in KFold(3).split(costs)]
    assert_allclose(search.cv_results_["mean_test_score"][2:], -np.mean(first))


@pytest.mark.parametrize("Reranker", RERANKERS)
def test_clones_pickles_and_repeats(Reranker):
    X, costs = random_task(30, n_groups=30)
    first = Reranker(random_state=7).fit(X, costs)
    again = clone(first).fit(X, costs)
    assert_array_equal(first.coef_, again.coef_)
    copy = pickle.loads(pickle.dumps(first))
    for a, b in zip(copy.decision_function(X), first.decision_function(X), strict=True):
        assert_array_equal(a, b)
    other = Reranker(random_state=8).fit(X, costs)
    assert not np.array_equal(first.coef_, other.coef_)


def test_threads_count_the_same_votes():
    X, costs = random_task(31, n_groups=40)
    one = VRDAReranker(prediction="vote", random_state=0).fit(X, costs)
    two = clone(one).set_params(n_jobs=3).fit(X, costs)
    for a, b in zip(one.decision_function(X), two.decision_function(X), strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("as_batch", [False, True])
def test_grid_search_by_cost(as_batch):
    X, costs = random_task(32, n_groups=30)
    X = SequenceBatch.from_sequences(X) if as_batch else X
    search = GridSearchCV(VRDAReranker(random_state=0, max_iter=2), {"l1": [0.0, 100.0]}, cv=3).fit(
        X, costs
    )
    for l1, mean in zip([0.0, 100.0], search.cv_results_["mean_test_score"], strict=True):
        model = VRDAReranker(random_state=0, max_iter=2, l1=l1)
        expected = cross_val_score(model, X, costs, cv=KFold(3)).mean()
        assert mean == pytest.approx(expected)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    # With a threshold that no gradient passes, the first candidate is all that is left.
    first = [np.mean([costs[i][0] for i in test]) for _, test in KFold(3).split(costs)]
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(-np.mean(first))


def test_baseline_scores_are_routed():
    X, costs = random_task(33, n_groups=30)
    base = random_base(X, 3)
    with sklearn.config_context(enable_metadata_routing=True):
        model = VRDAReranker(random_state=0, l1=100.0)
        model.set_fit_request(baseline_score=True).set_score_request(baseline_score=True)
        scores = cross_val_score(model, X, costs, cv=3, params={"baseline_score": base})
    by_base = [c[np.argmax(b)] for c, b in zip(costs, base, strict=True)]
    expected = [-np.mean([by_base[i] for i in test]) for _, test in KFold(3).split(X)]
    assert_allclose(scores, expected)


def test_history_has_one_entry_an_epoch():
    X, costs = random_task(34)
    for Reranker in RERANKERS:
        history = Reranker(random_state=0, max_iter=3).fit(X, costs).history_
        assert {"epoch", "time", "mistakes", "nnz", "loss", "cost"} <= set(history)
        assert {len(v) for v in history.values()} == {3}
        assert (np.diff(history["time"]) > 0).all()


@pytest.mark.parametrize("Reranker", RERANKERS)
def test_features_of_transitions_are_refused(Reranker):
    """Candidates do not follow each other, so nothing could be learnt from them."""
    plain = SequenceBatch(np.eye(4), [0, 2, 4])
    edges = SequenceBatch(np.eye(4), [0, 2, 4], transition_X=np.ones((4, 1)))
    name = Reranker.__name__
    with pytest.raises(ValueError, match=f"{name} does not support transition features"):
        Reranker().fit(edges, [0, 1])
    reranker = Reranker(random_state=0).fit(plain, [0, 1])
    for method in ("predict", "rank", "decision_function", "predict_proba"):
        with pytest.raises(ValueError, match=f"X has 1 transition features, but {name}"):
            getattr(reranker, method)(edges)
    with pytest.raises(ValueError, match=f"X has 1 transition features, but {name}"):
        reranker.score(edges, [0, 1])


def point_to_no_mistake(reranker):
    mistake = reranker._histories.mistake.copy()
    mistake[:] = 2**30
    reranker._histories = reranker._histories._replace(mistake=mistake)


def claim_more_features(reranker):
    reranker.n_features_in_ = 5000


VOTES_CHANGED = {
    "mistakes": point_to_no_mistake,
    "features": claim_more_features,
    "fewer votes": lambda r: setattr(r, "votes_", r.votes_[:1]),
    "list": lambda r: setattr(r, "votes_", r.votes_.tolist()),
    "column": lambda r: setattr(r, "votes_", r.votes_[:, None]),
    "nothing": lambda r: setattr(r, "_histories", None),
}


@pytest.mark.parametrize("change", VOTES_CHANGED.values(), ids=VOTES_CHANGED)
def test_votes_that_were_changed_are_refused(change):
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(3, 4)) for _ in range(20)], rng.integers(0, 3, 20)
    reranker = VRDAReranker(prediction="vote", random_state=0).fit(X, y)
    change(reranker)
    X = [rng.normal(size=(3, reranker.n_features_in_)) for _ in range(5)]
    with pytest.raises(ValueError, match=r"_histories|history of votes|votes_"):
        reranker.predict(X)


@pytest.mark.parametrize("change", [lambda w: w[:, None], lambda w: w + 1j, lambda w: w[:2]])
def test_weights_of_another_kind_are_refused(change):
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(3, 4)) for _ in range(20)], rng.integers(0, 3, 20)
    reranker = VRDAReranker(random_state=0).fit(X, y)
    reranker.coef_ = change(reranker.coef_)
    for method in (reranker.predict, reranker.decision_function, reranker.predict_proba):
        with pytest.raises(ValueError, match=r"coef_ has the shape .* expected 4 real numbers"):
            method(X)
