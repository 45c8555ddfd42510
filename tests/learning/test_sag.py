"""The stochastic average gradient against its plain twin and the optimum."""

import naive
import numpy as np
import pytest
from helpers.objectives import as_weights, learnable_data, training_set
from numpy.testing import assert_allclose, assert_array_equal

from skstruct import CRFTagger
from skstruct.learning.sag import StochasticAverageGradient
from skstruct.learning.solver import Model
from skstruct.learning.stochastic import draw_sequence


def learner(X, y, sample_weight=None, **params):
    model = Model(X[0].shape[1], 1 + max(map(max, y)))
    data = training_set(X, y, sample_weight)
    return StochasticAverageGradient(data, model, **{"l2": 1.0, "fit_intercept": True, **params})


@pytest.mark.parametrize("skip_searches", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sample_weight", [None, [2.0, 0.5, 1.0, 3.0]])
@pytest.mark.parametrize("values", ["real", "ones"])
def test_steps(values, sample_weight, fit_intercept, skip_searches):
    X, y = learnable_data([3, 1, 4, 2])
    if values == "ones":
        X = [(x > 0).astype(float) for x in X]
    order = np.array([2, 0, 2, 3, 1, 1, 0, 2, 3, 3, 2, 2, 2, 2, 0, 2, 2, 2, 2, 2, 2, 1])
    options = {"fit_intercept": fit_intercept, "skip_searches": skip_searches}
    sag = learner(X, y, sample_weight, l2=0.7, **options)
    weight = sample_weight or np.ones(4)
    # Weights that stay behind are brought up to date between two calls, and within one.
    for end in (4, 22):
        sag.steps(order[sag.n_updates : end], np.empty(0))
        expected, curvatures, n_calls = naive.sag_weights(
            X, y, order[:end], l2=0.7, sample_weight=weight, **options
        )
        for found, part in zip(as_weights(sag.chain()), expected, strict=True):
            assert_allclose(found, part, atol=1e-10)
        for i, curvature in curvatures.items():
            assert_allclose(sag._state.curvature[i], curvature)
        assert sag.n_updates == end
        assert sag.n_oracle_calls == n_calls


@pytest.mark.parametrize("skip_searches", [False, True])
@pytest.mark.parametrize("sample_weight", [None, "random"])
@pytest.mark.parametrize("nonuniformity", [0.0, 0.5, 1.0])
def test_reaches_the_optimum(sample_weight, nonuniformity, skip_searches):
    X, y = learnable_data(np.random.default_rng(0).integers(1, 6, 30).tolist())
    weight = np.ones(30)
    if sample_weight == "random":
        weight = np.random.default_rng(1).uniform(0.1, 3, 30)
    sag = learner(X, y, weight, l2=0.5, nonuniformity=nonuniformity, skip_searches=skip_searches)
    random_state = np.random.RandomState(0)
    for _ in range(400):
        sag.epoch(random_state)
    best = CRFTagger(
        l2=0.5, tol=1e-13, all_possible_states=True, all_possible_transitions=True
    ).fit(X, y, weight)
    minimum = naive.crf_objective(X, y, naive.weights_of(best), 0.5, weight)
    found = naive.crf_objective(X, y, as_weights(sag.chain()), 0.5, weight)
    assert_allclose(found, minimum, rtol=1e-9)
    for ours, theirs in zip(as_weights(sag.chain()), naive.weights_of(best), strict=True):
        assert_allclose(ours, theirs, atol=1e-4)


def test_skipped_searches_save_calls():
    X, y = learnable_data([3, 1, 4, 2, 5])
    calls = []
    for skip_searches in (False, True):
        sag, random_state = learner(X, y, skip_searches=skip_searches), np.random.RandomState(0)
        for _ in range(40):
            sag.epoch(random_state)
        calls.append(sag.n_oracle_calls / sag.n_updates)
    # A search takes a call at least.
    assert calls[0] >= 2.0
    assert 1.0 < calls[1] < 1.5


def test_sequences_that_bend_more_are_drawn_more_often():
    X, y = learnable_data([2] * 8)
    X[5] = 10 * X[5]
    sag = learner(X, y, nonuniformity=1.0)
    sag.steps(np.arange(8), np.empty(0))
    curvature = sag._state.curvature
    assert_array_equal(np.argmax(curvature), 5)
    u = (np.arange(2000) + 0.5) / 2000
    drawn = [draw_sequence(sag._state.priority, 8, 1.0, x, False) for x in u]
    share = np.bincount(drawn, minlength=8) / 2000
    assert_allclose(share, curvature / curvature.sum(), atol=2e-3)
