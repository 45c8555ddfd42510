"""Minima along a path of penalties."""

import numpy as np
import pytest
from helpers.objectives import make_objective, random_data, training_set
from numpy.testing import assert_allclose

from skstruct.learning.path import PenaltyPath
from skstruct.utils.parallel import range_runner

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


def test_search_ends_where_little_is_gained_although_the_bound_is_far(objective):
    tol = 1e-3
    found = follow(objective, PENALTIES, tol)
    assert all(minimum.converged for minimum in found)
    is_bounded = [minimum.bound <= tol * minimum.objective for minimum in found]
    # By the bound with a strong penalty, and before it closes with a weak one.
    assert is_bounded == sorted(is_bounded, reverse=True)
    assert {True, False} == set(is_bounded)
    for minimum, best in zip(found, follow(objective, PENALTIES, 1e-8), strict=True):
        assert best.objective <= minimum.objective <= best.objective * (1 + tol)


def test_minima_are_those_of_the_penalty_alone(objective):
    for l2, minimum in zip(PENALTIES, follow(objective, PENALTIES, 1e-8), strict=True):
        (alone,) = follow(objective, [l2], 1e-8)
        assert_allclose(minimum.objective, alone.objective, rtol=1e-6)
