"""The proximal quasi-Newton method against closed forms, logistic regression and CRFsuite."""

from itertools import islice

import numpy as np
import pytest
from helpers.logistic import elastic_net
from helpers.objectives import (
    crf_objective,
    make_objective,
    objective_problems,
    packed_set,
    training_set,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

from skstruct import CRFTagger, SequenceVectorizer
from skstruct.input.training_set import as_rows
from skstruct.learning.lbfgs import minimize_lbfgs
from skstruct.learning.proximal import (
    ProximalIterate,
    _Model,
    best_dual,
    duality_gap,
    least_subgradient,
    minimize_proximal,
)
from skstruct.utils.parallel import range_runner


def least_squares(A, b, l2=0.0):
    def value_and_gradient(x, out):
        residual = A @ x - b
        out[:] = A.T @ residual + l2 * x
        return residual @ residual / 2 + l2 / 2 * x @ x

    return value_and_gradient


def last(iterates, n=500):
    for point in islice(iterates, n):
        found = point
    return found


@given(st.integers(0, 10_000), st.floats(0.0, 5.0))
def test_separable_objective_has_a_closed_form(seed, l1):
    rng = np.random.default_rng(seed)
    d, b = rng.uniform(0.1, 10, 6), 3 * rng.normal(size=6)
    value_and_gradient = least_squares(np.diag(np.sqrt(d)), b / np.sqrt(d))
    point = last(minimize_proximal(value_and_gradient, rng.normal(size=6), l1))
    assert_allclose(point.x, np.sign(b) * np.maximum(np.abs(b) - l1, 0) / d, atol=1e-5)


@pytest.mark.parametrize("l1", [0.1, 3.0, 30.0])
def test_lasso(l1):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 20)) @ rng.normal(size=(20, 20))
    b = A @ (rng.normal(size=20) * (rng.random(20) < 0.3)) + rng.normal(size=40)
    reference = Lasso(
        alpha=l1 / 40, fit_intercept=False, tol=1e-12, max_iter=100_000, random_state=0
    ).fit(A, b)
    point = last(minimize_proximal(least_squares(A, b), np.zeros(20), l1), 5000)
    objective = np.sum((A @ reference.coef_ - b) ** 2) / 2 + l1 * np.abs(reference.coef_).sum()
    assert_allclose(point.value, objective, rtol=1e-8)
    assert_allclose(point.x, reference.coef_, atol=1e-3)


def test_objective_falls_and_subgradient_bounds_the_rest():
    rng = np.random.default_rng(1)
    value_and_gradient = least_squares(rng.normal(size=(30, 10)), rng.normal(size=30), l2=2.0)
    points = [
        (p.value, p.gradient.copy(), p.x.copy())
        for p in islice(minimize_proximal(value_and_gradient, np.ones(10), 3.0), 100)
    ]
    values = np.array([value for value, _, _ in points])
    assert np.all(np.diff(values) <= 1e-12)
    bound = np.array([g @ g / (2 * 2.0) for _, g, _ in points])
    assert np.all(values - values[-1] <= bound + 1e-12)
    for value, gradient, x in points:
        smooth = np.empty(10)
        assert_allclose(value, value_and_gradient(x, smooth) + 3 * np.abs(x).sum())
        assert_allclose(gradient, least_subgradient(x, smooth, 3.0))


@given(st.integers(0, 10_000), st.floats(0.01, 3.0))
def test_subgradient_is_the_least(seed, l1):
    rng = np.random.default_rng(seed)
    x, gradient = rng.integers(-1, 2, 8).astype(float), 3 * rng.normal(size=8)
    found = least_subgradient(x, gradient, l1)
    # All subgradients: the sign where there is one, anything between -1 and 1 at zero.
    slopes = np.where(x == 0, np.linspace(-1, 1, 2001)[:, None], np.sign(x))
    subgradients = gradient + l1 * slopes
    assert_allclose(np.abs(found), np.abs(subgradients).min(axis=0), atol=2e-3 * l1)


def test_without_the_penalty_it_is_lbfgs():
    rng = np.random.default_rng(2)
    value_and_gradient = least_squares(rng.normal(size=(30, 10)), rng.normal(size=30), l2=0.1)
    ours = last(minimize_proximal(value_and_gradient, np.zeros(10), 0.0))
    theirs = last(minimize_lbfgs(value_and_gradient, np.zeros(10)))
    assert_allclose(ours.x, theirs.x, atol=1e-6)


def test_starts_where_it_is_told_and_leaves_that_alone():
    start = np.array([1.0, -2.0])
    point = next(minimize_proximal(least_squares(np.eye(2), np.zeros(2)), start, 1.0))
    assert_allclose(point.x, start)
    assert point.value == 2.5 + 3.0
    last(minimize_proximal(least_squares(np.eye(2), np.zeros(2)), start, 1.0))
    assert start.tolist() == [1.0, -2.0]


def test_strong_penalty_leaves_nothing():
    value_and_gradient = least_squares(np.eye(3), np.array([1.0, -2.0, 0.5]))
    point = last(minimize_proximal(value_and_gradient, np.ones(3), 10.0))
    assert point.x.tolist() == [0.0, 0.0, 0.0]
    assert point.gradient.tolist() == [0.0, 0.0, 0.0]


# --------------------------------------------------------------------------------- CRF objectives


def minimize_crf(training_set, n_features, n_labels, *, l1, l2, n_iter=3000, **params):
    """The optimum of a CRF as an iterate, and the objective without the penalty of `l1`."""
    objective = crf_objective(training_set, n_features, n_labels, l2=l2, **params)
    with range_runner(training_set.offsets, None) as run:

        def value_and_gradient(x, out):
            return objective.value_and_gradient(x, out, run)

        start = np.zeros(objective.size)
        return last(minimize_proximal(value_and_gradient, start, l1), n_iter), objective


@pytest.mark.parametrize("C", [0.05, 1.0])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_logistic_regression(C, l1_ratio):
    """Multinomial, on sequences of length one, with L1 and elastic net."""
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    reference = elastic_net(
        C=C, l1_ratio=l1_ratio, fit_intercept=False, tol=1e-9, max_iter=100_000
    ).fit(X, y)
    data = packed_set(as_rows(X), np.arange(151), y.astype(np.int32), np.ones(150))
    point, objective = minimize_crf(
        data,
        4,
        3,
        l1=l1_ratio / C,
        l2=(1 - l1_ratio) / C,
        all_possible_states=True,
        fit_intercept=False,
    )
    coef = objective.unpack(point.x).weights.T
    assert_allclose(coef, reference.coef_, atol=2e-4)
    assert np.array_equal(coef == 0, np.abs(reference.coef_) < 1e-10)
    scores = X @ reference.coef_.T
    nll = np.sum(np.logaddexp.reduce(scores, axis=1) - scores[np.arange(150), y])
    penalty = l1_ratio * np.abs(coef).sum() + (1 - l1_ratio) / 2 * np.sum(coef**2)
    assert_allclose(point.value, nll + penalty / C, rtol=1e-6)


@pytest.mark.parametrize(("c1", "c2"), [pytest.param(0.5, 0.0, marks=pytest.mark.slow), (0.2, 0.1)])
def test_crfsuite(addresses, tmp_path, c1, c2):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X, y = addresses[0][:80], addresses[1][:80]
    trainer = pycrfsuite.Trainer(verbose=False)
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    tight = {"epsilon": 1e-9, "delta": 1e-12, "max_iterations": 500, "num_memories": 10}
    trainer.set_params({"c1": c1, "c2": c2, **tight})
    trainer.train(str(tmp_path / "model"))
    theirs = trainer.logparser.last_iteration
    batch = SequenceVectorizer().fit_transform(X)
    classes = sorted({label for labels in y for label in labels})
    labels = np.array([classes.index(label) for labels in y for label in labels], np.int32)
    data = packed_set(as_rows(batch.X), batch.offsets, labels, np.ones(len(y)))
    point, objective = minimize_crf(
        data, batch.n_features, len(classes), l1=c1, l2=2 * c2, fit_intercept=False
    )
    assert point.value <= theirs["loss"] * (1 + 1e-6)
    assert_allclose(point.value, theirs["loss"], rtol=1e-4)
    # As sparse, but for weights about which the objective hardly cares.
    assert_allclose(np.count_nonzero(point.x), theirs["active_features"], rtol=0.05)
    ridge = CRFTagger(l2=1.0, fit_intercept=False).fit(batch, y)
    assert np.count_nonzero(point.x) < 0.6 * ridge.n_weights_
    gap = duality_gap(objective, point.x, point.value, point.smooth, c1)
    assert gap < 1e-4 * point.value


# --------------------------------------------------------------------------- against plain twins


def plain_descent(value_and_gradient, x, l1, step, n_iter):
    """Proximal gradient descent with momentum (FISTA)."""
    ahead, before, momentum, gradient = x, x, 1.0, np.empty(len(x))
    for _ in range(n_iter):
        value_and_gradient(ahead, gradient)
        z = ahead - step * gradient
        x = np.sign(z) * np.maximum(np.abs(z) - step * l1, 0)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = x + (momentum - 1) / following * (x - before)
        before, momentum = x, following
    return x


@given(st.integers(0, 10_000), st.integers(0, 4), st.floats(0.0, 2.0))
def test_step_minimises_the_model(seed, n_pairs, l1):
    """The model is that of L-BFGS: its updates of a dense matrix give the same."""
    rng = np.random.default_rng(seed)
    A, n = rng.normal(size=(12, 7)), 7
    hessian, diagonal = A.T @ A + np.eye(n), rng.uniform(0.5, 3, n)
    model = _Model(diagonal, 3, 1.0)
    steps, x = [], rng.normal(size=n)
    for _ in range(n_pairs):
        following = x + rng.normal(size=n)
        ends = [ProximalIterate(z, 0.0, z, hessian @ z) for z in (following, x)]
        model.remember(*ends)
        steps = [*steps, (following - x, hessian @ (following - x))][-3:]
        x = following
    dense = np.diag(diagonal)
    if steps:
        s, y = steps[-1]
        dense *= np.sum(y * y / diagonal) / (s @ y)
    for s, y in steps:
        dense += np.outer(y, y) / (s @ y) - np.outer(dense @ s, dense @ s) / (s @ dense @ s)
    active, gradient = np.array([0, 2, 3, 5, 6]), 3 * rng.normal(size=n)
    point = ProximalIterate(x, 0.0, gradient, gradient)
    found = model.minimum(point, active, l1, tol=0.0, max_sweeps=3000)
    dense = dense[np.ix_(active, active)]

    def quadratic(z, out):
        out[:] = gradient[active] + dense @ (z - x[active])

    step = 1 / np.linalg.eigvalsh(dense)[-1]
    expected = plain_descent(quadratic, x[active], l1, step, 4000)
    assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize(("l1", "l2"), [(0.3, 0.0), (0.3, 0.5), (5.0, 0.1)])
def test_crf_is_that_of_plain_descent(l1, l2):
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(length, 5)) for length in (4, 2, 6, 3, 5)]
    y = [rng.integers(0, 3, len(x)) for x in X]
    data = training_set(X, y)
    params = {"all_possible_states": True, "all_possible_transitions": True}
    point, objective = minimize_crf(data, 5, 3, l1=l1, l2=l2, **params)
    with range_runner(data.offsets, None) as run:

        def value_and_gradient(x, out):
            return objective.value_and_gradient(x, out, run)

        x = plain_descent(value_and_gradient, np.zeros(objective.size), l1, 0.02, 6000)
        value = value_and_gradient(x, np.empty(len(x))) + l1 * np.abs(x).sum()
    assert_allclose(point.value, value, rtol=1e-7)
    assert_allclose(point.x, x, atol=1e-2)
    # The gap closes at the minimum, and bounds the distance on the way.
    gap = duality_gap(objective, point.x, point.value, point.smooth, l1)
    assert -1e-9 <= gap < 1e-4 * value


@given(objective_problems(), st.floats(0.05, 3.0), st.sampled_from([0.0, 0.1, 2.0]))
def test_gap_bounds_the_distance_from_the_minimum(problem, l1, l2):
    _, X, y, n_labels, n_features, sample_weight = problem
    objective = make_objective(
        training_set(X, y, sample_weight), n_features, n_labels, (0, True, True, True), l2=l2
    )
    with range_runner(objective.offsets, None) as run:

        def value_and_gradient(x, out):
            return objective.value_and_gradient(x, out, run)

        iterates = minimize_proximal(value_and_gradient, np.zeros(objective.size), l1)
        points = [
            (p.value, duality_gap(objective, p.x, p.value, p.smooth, l1))
            for p in islice(iterates, 40)
        ]
    values, gaps = np.array(points).T
    assert np.all(values - gaps <= values.min() + 1e-7 * (1 + values.min()))
    assert np.all(gaps >= 0)


@given(st.floats(0.0, 100.0), st.integers(0, 1000), st.floats(0.01, 3), st.floats(0.01, 3))
def test_best_dual_is_that_of_a_grid(entropy, seed, l1, l2):
    slope = np.random.default_rng(seed).exponential(size=5)
    share = np.linspace(0, 1, 20_001)[:, None]
    over = np.maximum(share * slope - l1, 0)
    expected = np.max(share[:, 0] * entropy - np.sum(over**2, axis=1) / (2 * l2))
    assert_allclose(best_dual(entropy, slope, l1, l2), expected, rtol=1e-4, atol=1e-4)
    hard = np.max(share[:, 0][np.all(share * slope <= l1, axis=1)]) * entropy
    assert_allclose(best_dual(entropy, slope, l1, 0.0), hard, rtol=1e-2, atol=1e-2)
