"""The CRF objective on its compact parameter vector: which weights, what value, what gradient."""

from itertools import product

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.objectives import (
    OPTIONS,
    as_weights,
    evaluate,
    make_objective,
    objective_problems,
    random_data,
    random_theta,
    training_set,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skstruct.chain.dense import Chain
from skstruct.input.training_set import as_rows
from skstruct.utils.parallel import range_runner


def weight_directions(objective):
    """Unit vectors of the parameters that are weights."""
    k = objective.n_labels
    ones = objective.pack(
        Chain(np.ones((objective.n_features, k)), np.ones((k, k)), *np.ones((3, k)))
    )
    assert set(ones) <= {0.0, 1.0}
    return np.flatnonzero(ones)


# ------------------------------------------------------------------------- which weights there are


@given(objective_problems(), st.sampled_from(OPTIONS))
def test_weights_are_those_that_the_plain_count_finds(problem, options):
    _, X, y, n_labels, n_features, sample_weight = problem
    objective = make_objective(training_set(X, y, sample_weight), n_features, n_labels, options)
    k = n_labels
    ones = Chain(np.ones((n_features, k)), np.ones((k, k)), *np.ones((3, k)))
    kept = objective.unpack(objective.pack(ones))
    min_freq, all_states, all_transitions, fit_intercept = options
    state, transition = naive.crf_weight_masks(
        X,
        y,
        k,
        min_freq=min_freq,
        all_states=all_states,
        all_transitions=all_transitions,
        sample_weight=sample_weight,
    )
    assert_array_equal(kept.weights.T, state)
    assert_array_equal(kept.transition, transition)
    for bias in kept[2:]:
        assert_array_equal(bias, float(fit_intercept))
    assert objective.n_weights == state.sum() + transition.sum() + 3 * k * fit_intercept


@given(objective_problems(), st.sampled_from(OPTIONS))
def test_packing_and_unpacking_lose_nothing(problem, options):
    rng, X, y, n_labels, n_features, sample_weight = problem
    objective = make_objective(training_set(X, y, sample_weight), n_features, n_labels, options)
    theta = random_theta(rng, objective)
    assert theta.shape == (objective.size,)
    assert np.count_nonzero(theta) == objective.n_weights
    chain = objective.unpack(theta)
    assert_array_equal(objective.pack(chain), theta)
    assert sum(np.count_nonzero(part) for part in chain) == objective.n_weights


@pytest.mark.parametrize("all_states", [False, True])
def test_features_of_any_sign_have_weights(all_states):
    """By default nothing that occurs is left out for being rare, negative values included."""
    X, y = [np.array([[-1.0, 0.5], [2.0, -3.0]])], [[0, 1]]
    objective = make_objective(training_set(X, y), 2, 2, (0, all_states, False, False))
    assert objective.n_weights == 4 + 1


def test_frequency_of_real_values_is_the_sum_of_their_sizes():
    X, y = [np.array([[0.5], [-0.75], [-3.0], [1.0]])], [[0, 0, 1, 2]]
    counts = {}
    for min_freq in (0.1, 1.0, 1.25, 1.3, 3.0, 3.1):
        objective = make_objective(training_set(X, y), 1, 3, (min_freq, False, False, False))
        counts[min_freq] = np.count_nonzero(
            objective.unpack(
                objective.pack(Chain(*map(np.ones, [(1, 3), (3, 3), 3, 3, 3])))
            ).weights
        )
    assert counts == {0.1: 3, 1.0: 3, 1.25: 2, 1.3: 1, 3.0: 1, 3.1: 0}


@pytest.mark.parametrize("values", ["ones", "positive"])
@pytest.mark.parametrize(("all_states", "all_transitions"), list(product([False, True], repeat=2)))
def test_weights_are_as_many_as_in_crfsuite(all_states, all_transitions, values, tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    rng = np.random.default_rng(0)
    X, y = random_data(rng, [3, 1, 4, 2, 5], 4, 9, "ones")
    if values == "positive":
        X = [x * rng.integers(1, 5, x.shape) / 4 for x in X]
    for min_freq in (0, 0.75, 1, 2, 3.5):
        trainer = pycrfsuite.Trainer(verbose=False)
        for x, labels in zip(X, y, strict=True):
            trainer.append(
                [{str(f): token[f] for f in np.flatnonzero(token)} for token in x],
                list(map(str, labels)),
            )
        trainer.set_params(
            {
                "feature.minfreq": min_freq,
                "feature.possible_states": all_states,
                "feature.possible_transitions": all_transitions,
                "max_iterations": 1,
            }
        )
        trainer.train(str(tmp_path / "model"))
        options = (min_freq, all_states, all_transitions, False)
        objective = make_objective(training_set(X, y), 9, 4, options)
        assert objective.n_weights == trainer.logparser.featgen_num_features


# ------------------------------------------------------------------------------ value and gradient


@pytest.mark.parametrize("options", OPTIONS)
@given(objective_problems(), st.sampled_from([0.0, 0.7]))
def test_value_and_gradient(options, problem, l2):
    """The value is the plain one, the gradient that of differences in every direction."""
    rng, X, y, n_labels, n_features, sample_weight = problem
    objective = make_objective(
        training_set(X, y, sample_weight), n_features, n_labels, options, l2=l2
    )
    theta = random_theta(rng, objective)
    value, gradient = evaluate(objective, theta)
    expected = naive.crf_objective(X, y, as_weights(objective.unpack(theta)), l2, sample_weight)
    assert_allclose(value, expected, rtol=1e-11, atol=1e-11)

    weights = weight_directions(objective)
    assert len(weights) == objective.n_weights
    assert_array_equal(np.delete(gradient, weights), 0)
    step, direction = 1e-5, rng.normal(size=len(weights))
    moved = theta.copy()
    slopes = []
    for at, along in [*((w, 1.0) for w in rng.permutation(weights)[:3]), (weights, direction)]:
        values = []
        for sign in (1, -1):
            moved[:] = theta
            moved[at] += sign * step * along
            values.append(evaluate(objective, moved)[0])
        slope = np.sum(gradient[at] * along)
        slopes.append((slope, (values[0] - values[1]) / (2 * step)))
    found, differences = zip(*slopes, strict=True)
    assert_allclose(found, differences, rtol=1e-5, atol=1e-5)


@given(objective_problems(), st.sampled_from(OPTIONS), st.integers(2, 4))
def test_several_ranges_give_the_same(problem, options, n_jobs):
    rng, X, y, n_labels, n_features, sample_weight = problem
    objective = make_objective(training_set(X, y, sample_weight), n_features, n_labels, options)
    # One objective serves runs of different widths, one after the other.
    for theta in (random_theta(rng, objective), random_theta(rng, objective)):
        value, gradient = evaluate(objective, theta)
        value_of_many, gradient_of_many = evaluate(objective, theta, n_jobs)
        assert_allclose(value_of_many, value, rtol=1e-12)
        assert_allclose(gradient_of_many, gradient, rtol=1e-10, atol=1e-10)


@given(objective_problems(), st.sampled_from(OPTIONS))
def test_weights_of_samples_are_repetitions(problem, options):
    rng, X, y, n_labels, n_features, _ = problem
    repeats = rng.integers(1, 4, len(X))
    weighted = make_objective(training_set(X, y, repeats), n_features, n_labels, options)
    X = [x for x, r in zip(X, repeats, strict=True) for _ in range(r)]
    y = [labels for labels, r in zip(y, repeats, strict=True) for _ in range(r)]
    repeated = make_objective(training_set(X, y), n_features, n_labels, options)
    chain = weighted.unpack(random_theta(rng, weighted))
    assert weighted.n_weights == repeated.n_weights
    results = []
    for objective in (weighted, repeated):
        value, gradient = evaluate(objective, objective.pack(chain))
        results.append((value, *objective.unpack(gradient)))
    for a, b in zip(*results, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@given(objective_problems(), st.integers(0, 2**32 - 1))
def test_stored_zeros_and_duplicates_do_not_change_value_and_gradient(problem, seed):
    _, X, y, n_labels, n_features, _ = problem
    plain = training_set(X, y)
    # The same matrix with zeros stored.
    stacked = sp.csr_matrix(np.concatenate(X) + 1.0)
    stacked.data[:] = np.concatenate(X).ravel()
    stored = plain._replace(rows=as_rows(stacked))
    assert len(stored.rows.indices) == stacked.shape[0] * n_features
    options = (0, True, True, True)
    results = []
    for data in (plain, stored):
        objective = make_objective(data, n_features, n_labels, options)
        rng = np.random.default_rng(seed)
        occurs = np.any(np.concatenate(X) != 0, axis=0)
        weights = rng.normal(size=(n_features, n_labels)) * occurs[:, None]
        square = (n_labels, n_labels)
        theta = objective.pack(
            Chain(weights, rng.normal(size=square), *rng.normal(size=(3, n_labels)))
        )
        value, gradient = evaluate(objective, theta)
        results.append((value, *objective.unpack(gradient)))
    for a, b in zip(*results, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_large_scores_are_no_problem():
    """Weights in the hundreds, where exp overflows and transitions leave the linear domain."""
    rng = np.random.default_rng(0)
    X, y = random_data(rng, [4, 5, 1], 3, 4, "real")
    objective = make_objective(training_set(X, y), 4, 3, (0, True, True, True), l2=0.0)
    theta = random_theta(rng, objective, scale=500.0)
    value, gradient = evaluate(objective, theta)
    expected = naive.crf_objective(X, y, as_weights(objective.unpack(theta)), 0.0)
    assert_allclose(value, expected, rtol=1e-10)
    assert np.all(np.isfinite(gradient))


def test_many_labels():
    k = 300
    X, y = [np.eye(2)], [[0, k - 1]]
    objective = make_objective(training_set(X, y), 2, k, (0, False, False, False))
    theta = np.zeros(objective.size)
    places = weight_directions(objective)
    theta[places] = np.arange(1.0, len(places) + 1)
    chain = objective.unpack(theta)
    assert objective.n_weights == 3
    assert_array_equal(np.argwhere(chain.weights), [[0, 0], [1, k - 1]])
    assert_array_equal(np.argwhere(chain.transition), [[0, k - 1]])
    assert_array_equal(objective.pack(chain), theta)


@given(objective_problems())
def test_minimum_is_no_further_than_the_bound(problem):
    """At any point, the objective at any other point is above the value less the bound."""
    rng, X, y, n_labels, n_features, _ = problem
    objective = make_objective(training_set(X, y), n_features, n_labels, l2=0.3)
    value, gradient = evaluate(objective, random_theta(rng, objective, 0.1))
    bound = objective.suboptimality_bound(gradient)
    assert bound >= 0
    for scale in (0.0, 0.1, 0.3):
        other, _ = evaluate(objective, random_theta(rng, objective, scale))
        assert other >= value - bound - 1e-10


def test_bound_without_penalty_says_nothing():
    objective = make_objective(training_set([np.eye(2)], [[0, 1]]), 2, 2, l2=0.0)
    assert objective.suboptimality_bound(np.ones(objective.size)) == np.inf
    # But where there is no slope there is the minimum of a convex function.
    assert objective.suboptimality_bound(np.zeros(objective.size)) == 0


# ------------------------------------------------------------------------- help for the optimiser


@given(objective_problems(), st.sampled_from([0.0, 0.7]), st.integers(1, 3))
def test_curvature_of_state_weights_is_the_diagonal_of_the_hessian(problem, l2, n_jobs):
    """It is exact where a feature has one token a sequence, as in sequences of length one."""
    rng, X, y, n_labels, n_features, _ = problem
    X, y = [x[:1] for x in X if len(x)], [labels[:1] for labels in y if labels]
    sample_weight = rng.uniform(0.5, 2, len(X))
    data = training_set(X, y, sample_weight)
    objective = make_objective(data, n_features, n_labels, (0, True, False, True), l2=l2)
    theta = random_theta(rng, objective)
    curvature = np.full(objective.size, np.nan)
    with range_runner(objective.offsets, n_jobs) as run:
        objective.curvature(theta, curvature, run)
    assert np.all(curvature > 0)
    for at in weight_directions(objective):
        slopes = []
        for sign in (1, -1):
            moved = theta.copy()
            moved[at] += sign * 1e-5
            slopes.append(evaluate(objective, moved)[1][at])
        # Without penalty a little is added, in the scale of the weights and of small features.
        weight, squares = sample_weight.mean(), np.square(np.concatenate(X))
        square = squares.sum() / max(np.count_nonzero(squares), 1)
        little = 1e-3 * weight * (min(square, 1) if square else 1)
        expected = (slopes[0] - slopes[1]) / 2e-5 + (little if l2 == 0 else 0)
        assert_allclose(curvature[at], expected, rtol=1e-5, atol=1e-5)
