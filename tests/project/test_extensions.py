"""The extensions that the development guide builds: they work as its tutorials say."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.seeds import global_seed
from numpy.testing import assert_allclose
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from skstruct import CRFTagger, SequenceBatch
from skstruct.chain.astar import astar_nbest
from skstruct.chain.dense import Dense
from skstruct.chain.forward_backward import forward_backward
from skstruct.chain.protocol import factors_of, finish, zero_counts
from skstruct.chain.viterbi import viterbi

# Each compiles kernels of its own.
pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "docs" / "development" / "extensions"
if not FOLDER.is_dir():
    pytest.skip("the development guide is not at hand", allow_module_level=True)


def extension(name):
    """Import an extension, whose kernels must be found by their module when they are pickled."""
    spec = importlib.util.spec_from_file_location(f"extension_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


StructuredSVMTagger = extension("structured_svm").StructuredSVMTagger
ScipyCRF = extension("scipy_crf").ScipyCRF
PassiveAggressiveReranker = extension("passive_aggressive_reranker").PassiveAggressiveReranker


def expected_failures(estimator):
    """Stochastic descent does not learn twice as much from a sequence that it meets twice."""
    if isinstance(estimator, ScipyCRF):
        return {}
    reason = "sample_weight is not equivalent to removing/repeating samples."
    names = (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
    return dict.fromkeys(names, reason)


@parametrize_with_checks(
    [StructuredSVMTagger(random_state=0), ScipyCRF()], expected_failed_checks=expected_failures
)
def test_estimator_checks(estimator, check):
    with global_seed():
        check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, 30)
    X = SequenceBatch.from_lengths(rng.normal(size=(lengths.sum(), 4)), lengths)
    labels = (X.X @ rng.normal(size=(4, 3))).argmax(axis=1)
    return X, [labels[a:b].tolist() for a, b in zip(X.offsets[:-1], X.offsets[1:], strict=True)]


def test_the_svm_takes_the_steps_of_a_twin(data):
    X, y = data
    tagger = StructuredSVMTagger(l2=0.0, decay=1.0, max_iter=1, tol=None, random_state=0)
    # From weights of zero, many labellings would be equally good.
    tagger.set_params(fit_intercept=False, warm_start=True).fit(X, y)
    coef, transition = tagger.coef_.copy(), tagger.transition_.copy()
    tagger.fit(X, y)
    order = np.arange(len(y))
    np.random.RandomState(0).shuffle(order)
    for i in order:
        rows, gold = X[int(i)], y[i]
        scores = rows @ coef.T + 1.0
        scores[np.arange(len(gold)), gold] -= 1.0
        paths = np.indices([3] * len(gold)).reshape(len(gold), -1).T
        total = [
            sum(scores[t, p[t]] for t in range(len(p)))
            + sum(transition[a, b] for a, b in pairwise(p))
            for p in paths
        ]
        best = paths[int(np.argmax(total))]
        for path, sign in ((gold, 0.1), (best, -0.1)):
            for t, label in enumerate(path):
                coef[label] += sign * rows[t]
                if t:
                    transition[path[t - 1], label] += sign
    assert_allclose(tagger.coef_, coef, atol=1e-9)
    assert_allclose(tagger.transition_, transition, atol=1e-9)


def test_scipy_finds_the_minimum_of_crf_tagger(data):
    X, y = data
    ours, theirs = CRFTagger(tol=1e-9).fit(X, y), ScipyCRF(tol=1e-9).fit(X, y)
    assert_allclose(theirs.history_["objective"][-1], ours.history_["objective"][-1], rtol=1e-7)
    assert_allclose(theirs.coef_, ours.coef_, atol=1e-3)
    again = ScipyCRF(tol=1e-9, warm_start=True).fit(X, y).fit(X, y)
    assert again.n_iter_ <= 2


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimators_unfitted,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_set_params,
        estimator_checks.check_valid_tag_types,
    ],
)
def test_checks_of_scikit_learn_that_need_no_table(check):
    check("PassiveAggressiveReranker", PassiveAggressiveReranker())


def test_the_reranker_takes_the_steps_of_a_twin():
    rng = np.random.default_rng(1)
    groups = [rng.normal(size=(k, 3)) for k in (2, 4, 3, 5, 2)]
    costs = [rng.integers(0, 3, len(group)) + 0.1 * np.arange(len(group)) for group in groups]
    reranker = PassiveAggressiveReranker(C=0.5, max_iter=2, shuffle=False).fit(groups, costs)
    weights = np.zeros(3)
    for group, cost in [*zip(groups, costs, strict=True)] * 2:
        scores = group @ weights
        predicted, oracle = int(scores.argmax()), int(cost.argmin())
        if predicted != oracle:
            change = group[oracle] - group[predicted]
            loss = cost[predicted] - cost[oracle] + scores[predicted] - scores[oracle]
            weights += min(0.5, loss / (change @ change)) * change
    assert_allclose(reranker.coef_, weights)


def test_a_ladder_is_a_matrix_that_forbids_all_other_steps():
    module = extension("ladder")
    rng = np.random.default_rng(0)
    for length, k in ((1, 3), (5, 3), (6, 4)):
        edges = module.Ladder(rng.normal(size=k), rng.normal(size=k))
        matrix = np.full((k, k), -np.inf)
        np.fill_diagonal(matrix, edges.stay)
        np.fill_diagonal(matrix[:, 1:], edges.up[1:])
        scores, found = rng.normal(size=(length, k)), []
        for chain in (edges, Dense(matrix)):
            labels, paths = np.empty(length, np.int32), np.empty((4, length), np.int32)
            path_scores, node = np.empty(4), np.empty((length, k))
            factors, counts = factors_of(chain, length), zero_counts(chain, length)
            best = viterbi(scores.copy(), length, chain, labels)
            n = astar_nbest(scores.copy(), length, chain, 4, paths, path_scores)
            log_z = forward_backward(
                scores.copy(), length, factors, node, np.empty(length), 1.0, counts
            )
            finish(factors, counts)
            of_pairs = counts if counts.ndim == 2 else counts.sum(axis=0)
            found.append([labels, best, n, paths[:n], path_scores[:n], node, log_z, of_pairs])
        for a, b in zip(*found, strict=True):
            assert_allclose(a, b, atol=1e-12)
