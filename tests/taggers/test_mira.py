"""MIRA: its quadratic programme against a solver, its steps against a plain twin."""

from itertools import product

import naive
import numpy as np
import pytest
from helpers.marks import compiled
from helpers.taggers import visiting_orders
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from strategies import online_problems

from skstruct import MIRATagger, SequenceBatch
from skstruct.chain.dense import Dense
from skstruct.input.training_set import as_rows
from skstruct.learning.products import FEW, inner_products
from skstruct.taggers.mira import MAX_PASSES, hildreth


def flat_features(x, labels, n_labels, intercept):
    """Feature vector of a whole labelling."""
    parts = naive.zero_weights(n_labels, x.shape[1])
    for t, label in enumerate(labels):
        parts.coef[label] += x[t]
        parts.intercept[label] += intercept
        if t > 0:
            parts.transition[labels[t - 1], label] += 1
    parts.start[labels[0]] += intercept
    parts.end[labels[-1]] += intercept
    return np.concatenate([part.ravel() for part in parts])


def multipliers_of(A, missing, cap, n_passes):
    a = np.zeros(len(missing))
    for _ in range(n_passes):
        for k in range(len(a)):
            if A[k, k] > 0:
                a[k] = np.clip(a[k] + (missing[k] - A[k] @ a) / A[k, k], 0, cap)
    return a


def mira_twin(X, y, sample_weight, epoch_orders, *, n_labels, search, C, hamming, n_passes,
              intercept):  # fmt: skip
    shapes = naive.zero_weights(n_labels, X[0].shape[1])
    w, total, n_seen = np.zeros(sum(part.size for part in shapes)), 0.0, 0
    cuts = np.cumsum([part.size for part in shapes])[:-1]

    def unflatten(vector):
        parts = np.split(vector, cuts)
        return naive.Weights(*(p.reshape(s.shape) for p, s in zip(parts, shapes, strict=True)))

    for order in epoch_orders:
        for i in order:
            if len(X[i]) == 0 or sample_weight[i] == 0:
                continue
            weights = unflatten(w)
            scores = naive.emission_scores(X[i], weights)
            found = search(scores, weights.transition)
            gold = flat_features(X[i], y[i], n_labels, intercept)
            D = [gold - flat_features(X[i], labels, n_labels, intercept) for labels, _ in found]
            wrong = [sum(a != b for a, b in zip(labels, y[i], strict=True)) for labels, _ in found]
            cost = np.array(wrong if hamming else np.minimum(wrong, 1), dtype=float)
            missing = np.where(np.array(wrong) > 0, cost - np.array(D) @ w, 0)
            if missing.max() > 0:
                a = multipliers_of(np.array(D) @ np.array(D).T, missing, C, n_passes)
                w = w + sample_weight[i] * (a @ np.array(D))
            total = total + w
            n_seen += 1
    return unflatten(w), unflatten(total / n_seen)


def without_ties(problem):
    """The problem with noise on its features, because a tie here is rounded to none there."""
    batch, y, sample_weight = problem
    noise = np.random.default_rng(0).normal(size=batch.X.shape)
    return SequenceBatch(batch.X + noise, batch.offsets), y, sample_weight


@pytest.mark.parametrize("wider", [None, compiled(0), compiled(2)])
@given(
    online_problems(),
    st.integers(1, 6),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["hamming", "zero_one"]),
    st.sampled_from([0.05, 10.0]),
)
def test_every_step_of_the_sequential_update_is_the_twins(
    wider, problem, n_best, average, intercept, cost, C
):
    batch, y, sample_weight = without_ties(problem)
    # A narrow beam may miss the correct labelling, and find only others that score less.
    width = None if wider is None else n_best + wider
    tagger = MIRATagger(
        n_best=n_best, C=C, cost=cost, update="sequential", average=average,
        search="astar" if width is None else "beam", beam_width=width or 100,
        fit_intercept=intercept, max_iter=2, tol=None, random_state=5,
    ).fit(batch, y, sample_weight)  # fmt: skip

    def search(scores, transition):
        if width is None:
            return naive.n_best(scores, transition, n_best)
        return naive.beam(scores, transition, width, n_best)

    last, mean = mira_twin(
        list(batch), y, sample_weight, visiting_orders(len(y), 2, 5), n_labels=len(tagger.classes_),
        search=search, C=C, hamming=cost == "hamming", n_passes=1, intercept=intercept,
    )  # fmt: skip
    for found, expected in zip(naive.weights_of(tagger), mean if average else last, strict=True):
        assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@given(
    st.integers(1, 30) | st.just(2 * FEW),
    st.integers(1, 5),
    st.integers(1, 6),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
    st.integers(0, 2**31),
)
def test_inner_products_are_those_of_the_differences(
    length, n_labels, n_found, unit, intercept, ends, seed
):
    rng = np.random.default_rng(seed)
    X = np.ones((length, 6)) if unit else rng.normal(size=(length, 6))
    X *= rng.random(X.shape) < rng.random(6)
    gold = rng.integers(n_labels, size=length, dtype=np.int32)
    labels = np.where(
        rng.random((n_found, length)) < 0.4, rng.integers(n_labels, size=length), gold
    )
    slots = np.full(max(6, n_labels**2), -1, np.int32)
    # The sample lies in the middle of others, whose features must not matter.
    rows = as_rows(np.concatenate([np.ones((2, 6)), X, np.ones((1, 6))]))
    sample = np.array([2, 2 + length, ends % 2, ends // 2])
    edges = Dense(np.zeros((n_labels, n_labels)))
    found = inner_products(edges, rows, sample, gold, labels.astype(np.int32), intercept, slots)

    def features(labels):
        parts = np.split(flat_features(X, labels, n_labels, intercept), [-2 * n_labels, -n_labels])
        return np.concatenate([parts[0], parts[1] * sample[2], parts[2] * sample[3]])

    D = np.array([features(gold) - features(y) for y in labels])
    assert_allclose(found, D @ D.T, rtol=1e-10, atol=1e-10)
    assert np.all(slots == -1)


@given(st.integers(1, 6), st.sampled_from([0.1, 1.0, 100.0]), st.integers(0, 2**31))
def test_hildreth_solves_the_quadratic_programme(n, cap, seed):
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(n, 8))
    A, missing = D @ D.T, rng.normal(size=n)
    a = hildreth(A, missing, cap, 5000)
    reference = minimize(
        lambda m: (m @ A @ m / 2 - missing @ m, A @ m - missing),
        np.zeros(n),
        jac=True,
        bounds=[(0, cap)] * n,
        options={"ftol": 1e-15, "gtol": 1e-12},
    )
    assert a @ A @ a / 2 - missing @ a <= reference.fun + 1e-7
    assert np.all((a >= 0) & (a <= cap))


def best_multipliers(A, missing, cap):
    """Maximum of the dual, over all sets of multipliers that are zero, free or at the cap."""
    best = -np.inf
    for state in product(("zero", "free", "cap"), repeat=len(missing)):
        at, free = np.array(state) == "cap", np.array(state) == "free"
        a = np.where(at, cap, 0.0)
        if free.any():
            rest = missing[free] - cap * A[np.ix_(free, at)].sum(axis=1)
            a[free] = np.linalg.lstsq(A[np.ix_(free, free)], rest)[0]
            margin = 1e-9 * np.abs(a).max()
            if a.min() < -margin or a.max() > cap + margin:
                continue
        value = missing @ a - a @ A @ a / 2
        if value > best:
            best, found = value, a
    return found


@given(
    st.integers(1, 4),
    st.sampled_from([1e-3, 1e-1, 1.0, 1e2, 1e4, 1e6, 1e8, 1e12]),
    st.integers(0, 2**31),
)
def test_the_update_is_exact_whatever_the_cap(n, cap, seed):
    """Multipliers may not be unique, the change of the weights is."""
    rng = np.random.default_rng(seed)
    D = rng.integers(-1, 2, size=(n, 12)).astype(float)
    missing = rng.integers(1, 6, size=n) - rng.random(n)
    change = hildreth(D @ D.T, missing, cap, MAX_PASSES) @ D
    exact = best_multipliers(D @ D.T, missing, cap) @ D
    assert_allclose(change, exact, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize("n_best", [1, 4])
def test_after_an_uncapped_update_every_margin_holds(n_best):
    rng = np.random.default_rng(0)
    x, gold = rng.normal(size=(4, 6)), [0, 1, 2, 1]
    tagger = MIRATagger(n_best=n_best, C=1e9, average=False, max_iter=1, tol=None)
    tagger.fit([x], [gold])
    before = naive.n_best(np.zeros((4, 3)), np.zeros((3, 3)), n_best)
    weights = naive.weights_of(tagger)
    scores = naive.emission_scores(x, weights)
    gold_score = naive.path_score(scores, weights.transition, gold)
    for labels, _ in before:
        cost = sum(a != b for a, b in zip(labels, gold, strict=True))
        margin = gold_score - naive.path_score(scores, weights.transition, labels)
        assert margin >= cost - 1e-6


def test_a_smaller_cap_moves_less(addresses):
    X, y = addresses
    norms = [
        MIRATagger(C=C, average=False, max_iter=1, tol=None, random_state=0)
        .fit(X[:100], y[:100])
        .history_["weight_norm"][-1]
        for C in (1e-4, 1e-3, 1e-2)
    ]
    assert norms == sorted(norms)
    assert norms[0] < norms[-1]


def test_more_labellings_than_there_are():
    X = SequenceBatch.from_lengths(np.random.default_rng(0).normal(size=(6, 3)), [1, 3, 0, 2])
    y = [[0], [1, 0, 1], [], [1, 1]]
    few, many = (
        MIRATagger(n_best=n_best, max_iter=3, tol=None, random_state=0).fit(X, y)
        for n_best in (2**3, 10**15)
    )
    for found, expected in zip(naive.weights_of(many), naive.weights_of(few), strict=True):
        assert_allclose(found, expected, rtol=0, atol=0)
