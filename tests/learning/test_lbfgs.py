"""L-BFGS finds the optimum that is known, or that scipy finds."""

import tracemalloc
from itertools import islice

import numpy as np
import pytest
import scipy.optimize
from helpers.objectives import make_objective, random_data, training_set
from numpy.testing import assert_allclose, assert_array_equal

from skstruct.compiled.rows import add_scaled
from skstruct.learning.lbfgs import Curvature, PenaltyPath, dot, minimize_lbfgs
from skstruct.utils.parallel import range_runner


class Recorder:
    """A function in the form that the minimiser wants, which notes where it was evaluated."""

    def __init__(self, value_and_gradient):
        self.value_and_gradient = value_and_gradient
        self.values = []

    def __call__(self, x, out):
        value, out[:] = self.value_and_gradient(x)
        self.values.append(value)
        return value


def run(value_and_gradient, x, n_steps, **options):
    """Last iterate, and the values of all."""
    values = []
    recorder = Recorder(value_and_gradient)
    for point in islice(minimize_lbfgs(recorder, x, **options), n_steps + 1):
        expected_value, expected_gradient = value_and_gradient(point.x)
        assert point.value == expected_value
        assert_array_equal(point.gradient, expected_gradient)
        values.append(point.value)
    return point, np.array(values)


def quadratic(scales, centre):
    def value_and_gradient(x):
        return 0.5 * float(np.sum(scales * (x - centre) ** 2)), scales * (x - centre)

    return value_and_gradient


def rosenbrock(x):
    return scipy.optimize.rosen(x), scipy.optimize.rosen_der(x)


def softmax_regression(seed, l2):
    """Value and gradient of a small multinomial logistic regression."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 5)) * 10.0 ** np.arange(-2, 3), rng.integers(3, size=60)

    def value_and_gradient(w):
        w = w.reshape(5, 3)
        scores = X @ w
        log_z = np.logaddexp.reduce(scores, axis=1)
        difference = np.exp(scores - log_z[:, None])
        difference[np.arange(60), y] -= 1
        value = np.sum(log_z - scores[np.arange(60), y]) + l2 / 2 * np.sum(w**2)
        return float(value), (X.T @ difference + l2 * w).ravel()

    return value_and_gradient


@pytest.mark.parametrize("memory", [1, 3, 10])
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
def test_quadratics(condition, memory):
    rng = np.random.default_rng(0)
    scales, centre = np.geomspace(1, condition, 30), rng.normal(size=30)
    point, values = run(quadratic(scales, centre), np.zeros(30), 1500, known=Curvature(30, memory))
    assert_allclose(point.x, centre, atol=1e-6)
    assert np.all(np.diff(values) <= 1e-13 * values[:-1])


@pytest.mark.parametrize("n", [2, 10])
def test_rosenbrock(n):
    start = np.where(np.arange(n) % 2, 1.0, -1.2)
    point, values = run(rosenbrock, start, 500)
    reference = scipy.optimize.minimize(
        rosenbrock, start, jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-10}
    )
    assert_allclose(point.x, reference.x, atol=1e-5)
    assert point.value < 1e-10
    assert np.all(np.diff(values) <= 1e-13 * values[:-1])


@pytest.mark.parametrize("l2", [1e-3, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_badly_scaled_features(seed, l2):
    function = softmax_regression(seed, l2)
    reference = scipy.optimize.minimize(
        function, np.zeros(15), jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 5000}
    )
    point, values = run(function, np.zeros(15), 2000)
    assert_allclose(point.value, reference.fun, rtol=1e-8)
    assert np.all(np.diff(values) <= 1e-12 * values[:-1])


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(unit):
    """The same problem measured in other units, of the value and of the parameters."""
    scales, centre = np.array([1.0, 10.0, 100.0]), np.array([3.0, -2.0, 1.0])
    point, _ = run(quadratic(unit * scales, centre), np.zeros(3), 200)
    assert_allclose(point.x, centre, atol=1e-5)
    point, _ = run(quadratic(scales / unit**2, unit * centre), np.zeros(3), 200)
    assert_allclose(point.x, unit * centre, atol=1e-5 * unit)


def test_first_iterate_is_the_start():
    start = np.array([2.0, 3.0])
    first = next(minimize_lbfgs(Recorder(rosenbrock), start))
    assert_array_equal(first.x, start)
    assert first.value == rosenbrock(start)[0]
    assert_array_equal(start, [2.0, 3.0])


def test_ends_where_the_gradient_is_zero():
    function = quadratic(np.ones(3), np.ones(3))
    iterates = list(islice(minimize_lbfgs(Recorder(function), np.ones(3)), 5))
    assert len(iterates) == 1
    assert iterates[0].value == 0


def test_ends_by_itself_when_nothing_improves():
    function = quadratic(np.geomspace(1, 100, 10), np.arange(10.0))
    values = [p.value for p in islice(minimize_lbfgs(Recorder(function), np.zeros(10)), 3000)]
    assert len(values) < 3000
    assert values[-1] < 1e-12 * values[0]


def test_steps_into_nowhere_are_taken_back():
    """The first step, of length one, leaves the domain: the value is infinite or not a number."""
    for outside in (np.inf, np.nan):

        def barrier(x, outside=outside):
            inside = np.abs(x[0]) < 0.1
            value = -np.log(0.01 - x[0] ** 2) - 5 * x[0] if inside else outside
            slope = 2 * x[0] / (0.01 - x[0] ** 2) - 5 if inside else outside
            return value, np.array([slope])

        optimum = scipy.optimize.brentq(lambda x: 2 * x / (0.01 - x**2) - 5, -0.09, 0.09)
        point, _ = run(barrier, np.zeros(1), 50)
        assert_allclose(point.x, optimum, atol=1e-8)


def test_every_evaluated_value_is_used_sparingly():
    """About one evaluation an iteration, as the step of length one is right most of the time."""
    recorder = Recorder(softmax_regression(3, 1.0))
    iterates = sum(1 for _ in islice(minimize_lbfgs(recorder, np.zeros(15)), 41))
    assert len(recorder.values) <= 2 * iterates


# ----------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 1000])
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f4", "f8"), ("f8", "f4")])
def test_dot_is_numpys(n, dtypes):
    rng = np.random.default_rng(n)
    a, b = (rng.normal(size=n).astype(dtype) for dtype in dtypes)
    expected = np.dot(a.astype("f8"), b.astype("f8"))
    assert_allclose(dot(a, b), expected, rtol=1e-12, atol=1e-12)


def test_add_scaled_is_the_plain_sum():
    rng = np.random.default_rng(0)
    x, d, out = rng.normal(size=5), rng.normal(size=5), np.empty(5)
    add_scaled(x, 0.3, d, out)
    assert_allclose(out, x + 0.3 * d, rtol=1e-14)


def test_memory():
    """116 bytes a parameter: ten pairs of single precision, a metric, and four points."""
    n = 100_000
    scales = np.geomspace(1, 1e4, n)

    def value_and_gradient(x, out):
        # ``scales / 2 * (x - 1) ** 2``, without arrays of its own.
        np.subtract(x, 1.0, out=out)
        out *= scales
        return 0.5 * float(out @ x - out.sum())

    def curvature(x, out):
        out[:] = 1.0

    def last():
        iterates = minimize_lbfgs(value_and_gradient, np.zeros(n), curvature=curvature)
        return sum(1 for _ in islice(iterates, 14))

    # What is compiled and imported is not counted.
    assert last() == 14
    tracemalloc.start()
    try:
        last()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 100 * n < peak < 121 * n


def test_pairs_stay_exact_when_the_penalty_changes():
    """The gradient changes by more where the penalty is stronger; steps stay what they were."""
    rng = np.random.default_rng(3)
    scales, centre = rng.uniform(0.5, 20.0, 12), rng.normal(size=12)
    known = Curvature(12, memory=4)
    weak = Recorder(quadratic(scales, centre))
    for _ in islice(minimize_lbfgs(weak, np.zeros(12), known=known), 7):
        pass
    assert len(known.order) == 4
    for more in (3.0, -3.25):
        scales = scales + more
        known.add_penalty(more)
        known.rescale()
        for slot in known.order:
            s, y = known.pairs[slot].astype(float)
            assert_allclose(y, scales * s, rtol=1e-4, atol=1e-5 * np.abs(y).max())
            assert_allclose(known.rho[slot], 1 / (s @ y), rtol=1e-4)
        s, y = known.pairs[known.order[0]].astype(float)
        assert_allclose(known.scale, (s @ y) / (y @ y), rtol=1e-4)
    # A pair that would not be that of a convex function is dropped.
    known.add_penalty(-30.0)
    assert known.order == []


def test_what_is_known_saves_iterations():
    """From the same start, with pairs of the objective with another penalty and without."""
    rng = np.random.default_rng(4)
    scales, centre = 10.0 ** rng.uniform(-2, 2, 8), rng.normal(size=8)

    def iterations(known):
        recorder = Recorder(quadratic(scales + 0.01, centre))
        iterates = minimize_lbfgs(recorder, np.zeros(8), known=known)
        for number, point in enumerate(iterates):
            if np.linalg.norm(point.gradient) < 1e-6:
                return number
        raise AssertionError("The minimum was not found.")

    known = Curvature(8)
    for _ in islice(
        minimize_lbfgs(Recorder(quadratic(scales + 0.1, centre)), np.ones(8), known=known), 12
    ):
        pass
    known.add_penalty(0.01 - 0.1)
    known.rescale()
    assert iterations(known) < iterations(Curvature(8))


# Minima along a path of penalties

PENALTIES = [1.0, 0.1, 0.01, 1e-3, 1e-4]
N_FEATURES, N_LABELS = 60, 4


@pytest.fixture(scope="module")
def objective():
    rng = np.random.default_rng(0)
    data = training_set(*random_data(rng, [6] * 40, N_LABELS, N_FEATURES, "real"))
    return make_objective(data, N_FEATURES, N_LABELS)


def follow(objective, penalties, tol):
    """Minima for penalties, one after the other."""
    with range_runner(objective.offsets, 1) as run:
        path = PenaltyPath(objective, tol, 5000, run)
        return [path.minimize(l2) for l2 in penalties]


def value_of(solution):
    """Objective of the last iterate."""
    return solution.history["objective"][-1]


def test_search_ends_where_little_is_gained_although_the_bound_is_far(objective):
    tol = 1e-3
    found = follow(objective, PENALTIES, tol)
    assert all(minimum.reason in ("bound", "gain") for minimum in found)
    is_bounded = [minimum.bound <= tol * value_of(minimum) for minimum in found]
    # By the bound with a strong penalty, and before it closes with a weak one.
    assert is_bounded == sorted(is_bounded, reverse=True)
    assert {True, False} == set(is_bounded)
    for minimum, best in zip(found, follow(objective, PENALTIES, 1e-8), strict=True):
        assert value_of(best) <= value_of(minimum) <= value_of(best) * (1 + tol)


def test_minima_are_those_of_the_penalty_alone(objective):
    for l2, minimum in zip(PENALTIES, follow(objective, PENALTIES, 1e-8), strict=True):
        (alone,) = follow(objective, [l2], 1e-8)
        assert_allclose(value_of(minimum), value_of(alone), rtol=1e-6)
