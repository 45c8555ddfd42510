"""Ranges cover the batch evenly, and their results come back in order."""

import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import cpu_count, parallel_config
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from strategies import lengths

from skstruct import (
    SDCACRF,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    TruncatedGradientReranker,
    VRDAReranker,
)
from skstruct.utils import parallel
from skstruct.utils.parallel import (
    count_shards,
    portions,
    range_runner,
    run_tasks,
    split_ranges,
)


def as_offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@given(lengths(max_sequences=30), st.integers(1, 8))
def test_ranges_cover_all_sequences_once_and_evenly(lengths, n_ranges):
    offsets = as_offsets(lengths)
    ranges = split_ranges(offsets, n_ranges)
    assert 1 <= len(ranges) <= n_ranges
    assert [i for first, last in ranges for i in range(first, last)] == list(range(len(lengths)))
    assert all(first < last for first, last in ranges)
    fair = sum(lengths) / n_ranges
    for first, last in ranges:
        assert offsets[last] - offsets[first] <= fair + max(lengths)


@pytest.mark.parametrize("n_ranges", [10**4, 10**18, 2**70])
def test_there_are_no_more_ranges_than_sequences(n_ranges):
    """However many are asked for, and without an array of so many places."""
    offsets = as_offsets([2, 0, 1, 3, 0])
    assert split_ranges(offsets, n_ranges) == [(0, 1), (1, 3), (3, 4), (4, 5)]
    with range_runner(offsets, n_ranges) as run:
        assert run(lambda number, first, last: last) == [1, 3, 4, 5]


def test_results_come_in_the_order_of_the_ranges():
    offsets = as_offsets([1] * 8)
    with range_runner(offsets, 4) as run:
        assert run.n_ranges == 4

        def slow_first(number, first, last):
            time.sleep(0.05 if number == 0 else 0)
            return number, first, last, threading.get_ident()

        results = run(slow_first)
    assert [r[:3] for r in results] == [(0, 0, 2), (1, 2, 4), (2, 4, 6), (3, 6, 8)]
    assert threading.get_ident() not in {r[3] for r in results}


def test_one_job_stays_in_the_calling_thread():
    with range_runner(as_offsets([2, 3]), None) as run:
        assert run.n_ranges == 1
        assert run(lambda *args: (*args, threading.get_ident())) == [
            (0, 0, 2, threading.get_ident())
        ]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_are_passed_on(n_jobs):
    def fail(number, first, last):
        raise KeyError(first)

    with pytest.raises(KeyError, match="0"), range_runner(as_offsets([1, 1]), n_jobs) as run:
        run(fail)


@pytest.mark.parametrize(("n_jobs", "in_threads"), [(1, False), (2, True), (9, True)])
def test_tasks_are_all_run_and_come_back_in_order(n_jobs, in_threads):
    def slow_first(number):
        time.sleep(0.05 if number == 0 else 0)
        return number, threading.get_ident()

    results = run_tasks(slow_first, 5, n_jobs)
    assert [number for number, _ in results] == list(range(5))
    assert (threading.get_ident() not in {ident for _, ident in results}) == in_threads


def test_number_of_shards_is_what_was_asked_for_wherever_that_is():
    expected = {None: 1, 1: 1, 3: 3, -1: cpu_count(), -2: max(1, cpu_count() - 1)}
    for n_jobs, n_shards in expected.items():
        assert count_shards(n_jobs) == n_shards
        with parallel_config(n_jobs=7):
            assert count_shards(n_jobs) == n_shards
    with pytest.raises(ValueError, match="n_jobs"):
        count_shards(0)


def test_number_of_jobs_is_read_as_in_joblib():
    offsets = as_offsets([1] * 1000)
    with range_runner(offsets, -1) as run:
        assert run.n_ranges == cpu_count()
    with parallel_config(n_jobs=3), range_runner(offsets, None) as run:
        assert run.n_ranges == 3


def test_training_gives_the_same_bits_for_the_same_number_of_jobs(addresses):
    X, y = addresses[0][:60], addresses[1][:60]
    one = CRFTagger(n_jobs=1, tol=1e-9).fit(X, y)
    two = [CRFTagger(n_jobs=2, tol=1e-9).fit(X, y) for _ in range(2)]
    assert np.array_equal(two[0].coef_, two[1].coef_)
    assert np.array_equal(two[0].transition_, two[1].transition_)
    assert np.array_equal(two[0].history_["objective"], two[1].history_["objective"])
    np.testing.assert_allclose(one.coef_, two[0].coef_, atol=1e-3)
    np.testing.assert_allclose(
        one.history_["objective"][-1], two[0].history_["objective"][-1], rtol=1e-8
    )


@given(lengths(max_sequences=30), st.floats(0.0, 5.0))
def test_portions_cover_all_visits_and_are_short(n_rows, work_per_row):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "_WORK_AT_ONCE", 10.0)
        found = list(portions(np.array(n_rows), work_per_row))
    visits = [i for portion in found for i in range(len(n_rows))[portion]]
    assert visits == list(range(len(n_rows)))
    for portion in found:
        assert len(n_rows[portion]) >= 1
        # A visit is never cut.
        others = sum(n_rows[portion]) - max(n_rows[portion])
        assert others * work_per_row <= 10.0 * (1 + 1e-9)


LEARNERS = {
    "perceptron": PerceptronTagger(max_iter=3, tol=None, random_state=0),
    "perceptron, shards": PerceptronTagger(max_iter=3, tol=None, random_state=0, n_jobs=2),
    "mira": MIRATagger(max_iter=3, tol=None, random_state=0),
    "sapo": SAPOTagger(max_iter=3, tol=None, random_state=0, structure_alpha=1.5),
    "sgd": CRFTagger(solver="sgd", max_iter=3, tol=None, random_state=0),
    "sag": CRFTagger(solver="sag", max_iter=12, random_state=0),
    "oeg": CRFTagger(solver="oeg", max_iter=12, random_state=0),
    "sdca": SDCACRF(max_iter=5, random_state=0),
    "lbfgs": CRFTagger(max_iter=5),
    "vrda": VRDAReranker(prediction="vote", max_iter=4, random_state=0),
    "truncated gradient": TruncatedGradientReranker(max_iter=4, random_state=0),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_portions_change_nothing(name, monkeypatch):
    """Learning visits the same sequences in the same order, however few at once."""
    rng = np.random.default_rng(0)
    if "Reranker" in type(LEARNERS[name]).__name__:
        X = [rng.normal(size=(rng.integers(2, 6), 5)) for _ in range(20)]
        y = [int(rng.integers(len(x))) for x in X]
    else:
        X = [rng.normal(size=(rng.integers(1, 6), 5)) for _ in range(20)]
        y = [rng.choice(["a", "b", "c"], size=len(x)).tolist() for x in X]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = clone(LEARNERS[name]).fit(X, y)
        monkeypatch.setattr(parallel, "_WORK_AT_ONCE", 2000.0)
        cut = clone(LEARNERS[name]).fit(X, y)
    # Objectives are sums in another order, by which L-BFGS and the evaluations go.
    exact = {} if name in ("lbfgs", "sdca", "sag", "oeg") else {"rtol": 0, "atol": 0}
    assert_allclose(cut.coef_, whole.coef_, **(exact or {"rtol": 1e-6}))
    for x, x_whole in zip(cut.predict(X), whole.predict(X), strict=True):
        assert x == x_whole


def test_an_error_in_one_thread_stops_the_others():
    visited = []

    def fail_or_wait(number, first, last):
        if number == 0:
            raise KeyError(first)
        time.sleep(0.01)
        visited.append(first)

    offsets = as_offsets([1] * 2000)
    with pytest.raises(KeyError), range_runner(offsets, 2, 1e9) as run:
        run(fail_or_wait)
    assert len(visited) < 100
