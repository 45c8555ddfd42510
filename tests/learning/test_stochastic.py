"""CRFs by stochastic average and exponentiated gradients: the minimum, and what is known of it."""

import naive
import numpy as np
import pytest
from helpers.logistic import elastic_net
from helpers.taggers import assert_same_weights
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skstruct import SDCACRF, CRFTagger, SequenceBatch
from skstruct.learning.objective import CRFObjective
from skstruct.learning.oeg import ExponentiatedGradient
from skstruct.learning.sag import StochasticAverageGradient

LEARNERS = {"sag": StochasticAverageGradient, "oeg": ExponentiatedGradient}
every_solver = pytest.mark.parametrize("solver", LEARNERS)


@pytest.fixture(scope="module")
def small():
    """Forty short sequences of real-valued features, and labels that depend on them."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, 40)
    X = rng.normal(size=(lengths.sum(), 4)) * (rng.random((lengths.sum(), 4)) < 0.7)
    y = np.argmax(X[:, :3] + rng.normal(size=(len(X), 3)), axis=1)
    cuts = np.cumsum(lengths)[:-1]
    return SequenceBatch.from_lengths(X, lengths), [part.tolist() for part in np.split(y, cuts)]


def optimum(X, y, sample_weight=None, **params):
    every = {"all_possible_states": True, "all_possible_transitions": True, "tol": 1e-12}
    return CRFTagger(**every, **params).fit(X, y, sample_weight)


def coded(tagger, y):
    return [np.searchsorted(tagger.classes_, labels).tolist() for labels in y]


@every_solver
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_minimum_is_that_of_the_others(small, solver, fit_intercept, weighted):
    X, y = small
    weight = np.random.default_rng(1).uniform(0.1, 3, len(y)) if weighted else None
    params = {"l2": 0.5, "fit_intercept": fit_intercept}
    tagger = CRFTagger(solver=solver, tol=1e-9, random_state=0, **params).fit(X, y, weight)
    best = optimum(X, y, weight, **params)
    ascent = SDCACRF(tol=1e-9, random_state=0, **params).fit(X, y, weight)
    objective = tagger.history_["objective"][-1]
    assert_allclose(objective, best.history_["objective"][-1], rtol=1e-6)
    assert_allclose(objective, ascent.history_["objective"][-1], rtol=1e-6)
    assert_allclose(
        objective, naive.crf_objective(list(X), y, naive.weights_of(tagger), 0.5, weight)
    )
    assert_same_weights(tagger, best, atol=1e-3)
    assert tagger.n_weights_ == best.n_weights_
    gradient = [0.5 * part for part in naive.weights_of(tagger)]
    for s, x, labels in zip(np.ones(len(y)) if weight is None else weight, X, y, strict=True):
        slopes = naive.crf_gradient(x, labels, naive.weights_of(tagger))
        for part, slope in zip(gradient, slopes, strict=True):
            part += s * slope
    used = gradient if fit_intercept else gradient[:2]
    assert sum(np.sum(part**2) for part in used) <= 1e-3


@every_solver
def test_attribute_strings(addresses, solver):
    X, y = addresses[0][:150], addresses[1][:150]
    tagger = CRFTagger(solver=solver, l2=0.5, tol=1e-7, random_state=0).fit(X, y)
    best = optimum(X, y, l2=0.5)
    assert_allclose(tagger.history_["objective"][-1], best.history_["objective"][-1], rtol=1e-6)
    assert tagger.predict(X).tolist() == best.predict(X).tolist()


@every_solver
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_logistic_regression_on_sequences_of_length_one(solver, C):
    X, y = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    reference = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    tagger = CRFTagger(
        solver=solver, l2=1 / C, tol=1e-11, max_iter=9999, fit_intercept=False, random_state=0
    ).fit(X, y)
    assert_allclose(tagger.coef_, reference.coef_, atol=1e-4 * np.abs(reference.coef_).max())
    assert_allclose(tagger.predict_proba(X), reference.predict_proba(X), atol=1e-5)
    assert not tagger.transition_.any()


@pytest.mark.parametrize("l1", [0.5, 5.0])
def test_absolute_penalty_is_that_of_logistic_regression(l1):
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    reference = elastic_net(
        C=1 / l1, l1_ratio=1, fit_intercept=False, tol=1e-10, max_iter=100_000
    ).fit(X, y)
    tagger = CRFTagger(
        l1=l1, l2=0, all_possible_states=True, fit_intercept=False, tol=1e-10, max_iter=5000
    ).fit(X, y)
    # Adding the same to a feature's weights of all labels changes the penalty alone, and where the
    # middle one is zero there may be a choice; probabilities and the penalty are the same.
    assert_allclose(tagger.predict_proba(X), reference.predict_proba(X), atol=1e-4)
    assert_allclose(np.abs(tagger.coef_).sum(), np.abs(reference.coef_).sum(), rtol=1e-4)
    assert_array_equal(np.abs(tagger.coef_) > 1e-3, np.abs(reference.coef_) > 1e-3)
    assert np.any(tagger.coef_ == 0)


@every_solver
def test_history_and_bound(small, solver):
    X, y = small
    tagger = CRFTagger(solver=solver, l2=0.3, tol=1e-6, random_state=0).fit(X, y)
    best = optimum(X, y, l2=0.3).history_["objective"][-1]
    history = tagger.history_
    assert {len(column) for column in history.values()} == {tagger.n_iter_}
    assert_array_equal(history["epoch"], np.arange(1, tagger.n_iter_ + 1))
    assert_array_equal(history["updates"], len(y) * history["epoch"])
    assert np.all(np.diff(history["oracle_calls"]) >= len(y))
    known = ~np.isnan(history["objective"])
    assert_array_equal(known, ~np.isnan(history["bound"]))
    assert known[[0, *range(9, tagger.n_iter_, 10), -1]].all()
    assert not known.all()
    objective, bound = history["objective"][known], history["bound"][known]
    assert np.all(objective >= best * (1 - 1e-12))
    assert np.all(objective - bound <= best * (1 + 1e-12))
    assert bound[-1] == tagger.suboptimality_bound_ <= 1e-6 * objective[-1]
    assert np.all(bound[:-1] > 1e-6 * objective[:-1])
    if solver == "oeg":
        assert np.all(history["dual"] <= best * (1 + 1e-12))
        assert np.all(bound <= objective - history["dual"][known])
    else:
        assert_allclose(history["gradient_norm"][-1] ** 2 / 0.6, bound[-1], rtol=1)


@every_solver
def test_evaluations_are_few(small, solver):
    """Even where the estimate promises the end and does not keep it."""
    X, y = small
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LEARNERS[solver], "estimate", lambda self: 0.0)
        tagger = CRFTagger(solver=solver, l2=0.3, tol=1e-8, random_state=0).fit(X, y)
    known = tagger.history_["epoch"][~np.isnan(tagger.history_["objective"])]
    assert known[:5].tolist() == [1, 4, 7, 10, 13]


def test_stops_where_nothing_changes_any_more(small):
    X, y = small
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CRFObjective, "suboptimality_bound", lambda self, gradient: np.inf)
        tagger = CRFTagger(solver="sag", tol=1e-4, random_state=0).fit(X, y)
    assert tagger.suboptimality_bound_ == np.inf
    objective = tagger.history_["objective"]
    assert tagger.n_iter_ % 10 == 0
    assert np.ptp(objective[[-1, -11, -21]]) <= 1e-6 * objective[-1]
    assert_allclose(objective[-1], optimum(X, y).history_["objective"][-1], rtol=1e-4)


def test_without_penalty_on_labels_that_contradict_each_other():
    """The maximum of the likelihood is known: the shares of the labels."""
    X, y = [np.ones((1, 1))] * 10, [["a"]] * 7 + [["b"]] * 3
    tagger = CRFTagger(solver="sag", l2=0.0, fit_intercept=False, tol=1e-10, random_state=0)
    assert_allclose(tagger.fit(X, y).predict_proba(X)[0], [[0.7, 0.3]], atol=1e-4)
    assert tagger.suboptimality_bound_ == np.inf


@every_solver
def test_warns_when_max_iter_is_too_small(small, solver):
    with pytest.warns(ConvergenceWarning, match="after 3 epochs .max_iter=3.") as record:
        tagger = CRFTagger(solver=solver, max_iter=3, random_state=0).fit(*small)
    assert [warning.filename for warning in record] == [__file__]
    assert tagger.n_iter_ == 3
    assert np.isfinite(tagger.history_["objective"][-1])


@every_solver
def test_weights_of_samples_are_repetitions(small, solver):
    X, y = small
    repeats = np.random.default_rng(2).integers(1, 4, len(X))
    index = np.repeat(np.arange(len(X)), repeats)
    params = {"solver": solver, "tol": 1e-10, "random_state": 0}
    weighted = CRFTagger(**params).fit(X, y, repeats)
    repeated = CRFTagger(**params).fit(X[index], [y[i] for i in index])
    assert_same_weights(weighted, repeated, atol=1e-3)


@every_solver
def test_fits_depend_on_the_seed_alone(small, solver):
    first, second, other = (
        CRFTagger(solver=solver, random_state=seed).fit(*small) for seed in (0, 0, 1)
    )
    assert_same_weights(first, second, rtol=0, atol=0)
    assert_array_equal(first.history_["objective"], second.history_["objective"])
    assert np.any(first.coef_ != other.coef_)
    threads = CRFTagger(solver=solver, random_state=0, n_jobs=2).fit(*small)
    assert_same_weights(threads, first, rtol=0, atol=0)


def test_warm_start_continues(small):
    X, y = small
    params = {"l2": 0.2, "tol": 1e-8, "random_state": 0, "warm_start": True}
    tagger = CRFTagger(solver="sag", **params).fit(X, y)
    cold = tagger.n_iter_
    near = CRFTagger(solver="lbfgs", **params).fit(X, y)
    for start in (tagger, near):
        start.set_params(solver="sag", tol=1e-6).fit(X, y)
        assert start.n_iter_ == 1
    tagger.set_params(l2=0.21).fit(X, y)
    assert 1 < tagger.n_iter_ < cold / 2
    tagger.set_params(l2=0.3, tol=1e-10).fit(X, y)
    assert_same_weights(tagger, optimum(X, y, l2=0.3), atol=1e-3)


def test_start_is_what_it_is_given(addresses):
    """Features are numbered anew inside, and the first pass only looks."""
    X, y = addresses[0][:60], addresses[1][:60]
    tagger = CRFTagger(solver="sag", l2=0.2, warm_start=True, random_state=0).fit(X, y)
    expected = naive.weights_of(tagger)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StochasticAverageGradient, "epoch", lambda self, random_state: None)
        tagger.set_params(tol=1.0).fit(X, y)
    assert tagger.history_["oracle_calls"][0] >= 60
    for found, part in zip(naive.weights_of(tagger), expected, strict=True):
        assert_array_equal(found, part)


@every_solver
def test_one_label_only(solver):
    X, y = [[["a"], ["b"]], [["b"]]], [["x", "x"], ["x"]]
    tagger = CRFTagger(solver=solver, random_state=0).fit(X, y)
    assert tagger.predict(X).tolist() == y
    assert_array_equal(tagger.predict_proba(X)[0], [[1], [1]])
    assert tagger.history_["objective"][-1] == tagger.suboptimality_bound_ == 0


def test_solvers_may_take_turns(small):
    X, y = small
    tagger = CRFTagger(l2=0.5, tol=1e-9, random_state=0)
    for solver in ("oeg", "lbfgs", "sag", "sgd", "oeg"):
        tagger.set_params(solver=solver).fit(X, y)
        if solver == "sgd":
            tagger.partial_fit(X, y)
        assert hasattr(tagger, "suboptimality_bound_") == (solver != "sgd")
        assert hasattr(tagger, "n_weights_") == (solver != "sgd")
        assert ("_state" in vars(tagger)) == (solver == "sgd")
        assert ("dual" in tagger.history_) == (solver == "oeg")
