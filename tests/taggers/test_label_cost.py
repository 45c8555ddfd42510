"""Costs of wrong labels: softmax-margin in CRFs, margins in online learners."""

import pickle
from itertools import pairwise

import naive
import numpy as np
import pytest
import scipy.optimize
import skops.io
from helpers.objectives import as_weights, crf_objective, evaluate, random_theta, training_set
from helpers.taggers import assert_same_weights
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skstruct import (
    SDCACRF,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SequenceBatch,
    streams,
)
from skstruct.chain.dense import Dense
from skstruct.chain.listed import Listed
from skstruct.input.costs import read_label_cost
from skstruct.inspection import check_fit
from skstruct.learning.sdca import CRFDual
from skstruct.learning.solver import Model
from skstruct.learning.start import stochastic_start
from skstruct.matrices import read_only
from skstruct.utils.parallel import range_runner

NAMES = np.array(["B-A", "I-A", "O"])
COST = read_only(np.array([[0.0, 0.7, 2.0], [1.5, 0.0, 2.5], [0.3, 0.0, 0.0]]))
EVERY = {"all_possible_states": True, "all_possible_transitions": True}
TAGGERS = [
    CRFTagger(),
    CRFTagger(l1=0.1),
    CRFTagger(order=2),
    CRFTagger(solver="sgd", max_iter=4, tol=None, random_state=0),
    SDCACRF(random_state=0),
    PerceptronTagger(max_iter=4, tol=None, random_state=0),
    MIRATagger(max_iter=4, tol=None, random_state=0),
]
WITH_PARTIAL_FIT = [tagger for tagger in TAGGERS if hasattr(tagger, "partial_fit")]


def name_of(tagger):
    params = [getattr(tagger, name, "") for name in ("solver", "l1", "order")]
    return "-".join(map(str, [type(tagger).__name__, *params]))


def make_data(lengths=(3, 1, 4, 2, 3, 5), seed=0):
    """Matrices, and codes of the labels, which depend on the first feature."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(length, 4)) for length in lengths]
    y = [np.digitize(x[:, 0] + rng.normal(size=len(x)) / 2, [-0.5, 0.2]).tolist() for x in X]
    return X, y


def named(y):
    return [NAMES[labels].tolist() for labels in y]


def costly_scores(x, gold, weights):
    """Scores of labels with the cost of each in place of the gold label, the obvious way."""
    scores = naive.emission_scores(x, weights)
    for t, label in enumerate(gold):
        if label is not None:
            scores[t] += COST[label]
    return scores


def listed_objective(X, y, weights, l2):
    """Softmax-margin with its penalty, by listing all labellings; None is an unknown label."""
    value = l2 / 2 * sum(np.sum(part**2) for part in weights)
    for x, gold in zip(X, y, strict=True):
        scores = costly_scores(x, gold, weights)
        agreeing, every = [], []
        for labels in naive.labellings(len(x), 3):
            score = naive.path_score(scores, weights.transition, labels)
            every.append(score)
            if all(g is None or g == label for g, label in zip(gold, labels, strict=True)):
                agreeing.append(score)
        value += logsumexp(every) - logsumexp(agreeing)
    return value


def stored_by_skops(tagger):
    """A tagger as a file of skops has it, which consists of our classes and plain arrays."""
    data = skops.io.dumps(tagger)
    found = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith("skstruct.") for name in found)
    return skops.io.loads(data, trusted=found)


# ------------------------------------------------------------------------------- the parameter


def test_all_ways_to_write_costs():
    array = [[0, 0, 3], [0.5, 0, 2], [0, 0, 0]]
    pairs = {("B-A", "O"): 3, "missed": 2, ("I-A", "B-A"): 0.5}
    for given in (array, np.array(array), pairs):
        found = read_label_cost(given, NAMES)
        assert_array_equal(found, array)
        assert not found.flags.writeable
    assert read_label_cost(None, NAMES).shape == (0, 0)
    numbers = read_label_cost({(1, 7): 2.0}, np.array([1, 7]))
    assert_array_equal(numbers, [[0, 2], [0, 0]])


WRONG = [
    ({("B-A", "B-B"): 1.0}, "'B-B', which is not among the classes"),
    ({("B-C", "O"): 1.0}, "'B-C', which is not among the classes"),
    ({("B-A", "O"): -1.0}, "-1 for 'O' in place of 'B-A'"),
    ({"missed": np.nan}, "nan for 'O' in place of 'B-A'"),
    ({"missed": np.inf}, "inf for 'O'"),
    ({"missed": 1e39}, "at most"),
    ({"missed": "2"}, "no number"),
    ({("O", "O"): 1.0}, "in place of itself"),
    ({"invented": 1.0}, "has the key 'invented'"),
    ({("B-A", "O", "O"): 1.0}, "has the key"),
    (np.ones((3, 2)), r"shape \(3, 2\)"),
    (np.zeros(3), r"shape \(3,\)"),
    (np.full((3, 3), np.nan), "nan for 'B-A' in place of 'B-A'"),
    (np.ones((3, 3)), "the right label must cost 0"),
    ([["a", "b"], ["c", "d"]], "no array of numbers"),
]


@pytest.mark.parametrize(("cost", "message"), WRONG)
@pytest.mark.parametrize("tagger", [CRFTagger(), SDCACRF(), PerceptronTagger()], ids=name_of)
def test_what_is_no_cost_is_an_error(tagger, cost, message):
    X, y = make_data()
    tagger = clone(tagger).set_params(label_cost=cost)
    with pytest.raises(ValueError, match=message):
        tagger.fit(X, named(y))
    assert not hasattr(tagger, "classes_")


def test_missed_names_need_a_label_outside():
    X, y = make_data()
    with pytest.raises(
        ValueError, match=r"'missed' is that of the label 'O'.*\(right, predicted\)"
    ):
        CRFTagger(label_cost={"missed": 2}).fit(X, y)


@pytest.mark.parametrize("solver", ["sag", "oeg", "crfsuite"])
def test_other_solvers_refuse_costs(solver):
    X, y = make_data()
    with pytest.raises(ValueError, match="label_cost needs solver='lbfgs' or 'sgd'"):
        CRFTagger(solver=solver, label_cost=COST).fit(X, named(y))


@pytest.mark.parametrize("tagger", TAGGERS, ids=name_of)
def test_costs_of_zero_change_nothing(tagger):
    X, y = make_data()
    plain = clone(tagger).fit(X, named(y))
    zero = clone(tagger).set_params(label_cost=np.zeros((3, 3))).fit(X, named(y))
    if tagger.get_params().get("solver") == "lbfgs" or isinstance(tagger, SDCACRF):
        # Rounding may differ.
        assert_allclose(zero.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    else:
        assert_same_weights(zero, plain)
    costly = clone(tagger).set_params(label_cost=COST).fit(X, named(y))
    assert np.abs(costly.coef_ - plain.coef_).max() > 1e-3


@pytest.mark.parametrize("tagger", TAGGERS, ids=name_of)
def test_costs_are_stored_and_copied(tagger):
    X, y = make_data()
    for cost in ({"missed": 2.0, ("I-A", "B-A"): 0.5}, COST):
        fitted = clone(tagger).set_params(label_cost=cost).fit(X, named(y))
        copied = clone(fitted).fit(X, named(y))
        assert_same_weights(copied, fitted)
        for stored in (
            pickle.loads(pickle.dumps(fitted)),
            stored_by_skops(fitted),
        ):
            assert_same_weights(stored, fitted)
            assert_array_equal(
                read_label_cost(stored.label_cost, NAMES), read_label_cost(cost, NAMES)
            )
            assert_same_weights(stored.fit(X, named(y)), fitted)


# -------------------------------------------------------------------------- the batch objective


def make_objective(X, y, *, l2=0.5, **params):
    return crf_objective(training_set(X, y), 4, 3, l2=l2, cost=COST, **EVERY, **params)


@pytest.mark.parametrize("known", ["all", "some"])
def test_value_is_that_of_all_labellings(known):
    X, y = make_data()
    if known == "some":
        y = [[None if (i + t) % 3 == 0 else g for t, g in enumerate(p)] for i, p in enumerate(y)]
    objective = make_objective(X, y)
    theta = random_theta(np.random.default_rng(1), objective)
    value, _ = evaluate(objective, theta)
    weights = as_weights(objective.unpack(theta))
    assert_allclose(value, listed_objective(X, y, weights, 0.5))
    zero, _ = evaluate(objective, np.zeros(objective.size))
    if known == "all":
        assert_allclose(objective.bound_at_zero, zero)
    else:
        assert objective.bound_at_zero >= zero


@pytest.mark.parametrize("how", [{}, {"order": 2}, {"known": "some"}], ids=str)
def test_gradient_is_that_of_finite_differences(how):
    how = dict(how)
    X, y = make_data()
    if how.pop("known", None):
        y = [[None if (i + t) % 3 == 0 else g for t, g in enumerate(p)] for i, p in enumerate(y)]
    objective = make_objective(X, y, **how)
    theta = np.random.default_rng(2).normal(size=objective.size)
    theta[objective.vector.pinned] = 0
    _, gradient = evaluate(objective, theta)
    step = 1e-5
    for k in range(0, objective.size, 3):
        sides = [theta.copy(), theta.copy()]
        sides[0][k] += step
        sides[1][k] -= step
        high, low = (evaluate(objective, side)[0] for side in sides)
        if k not in objective.vector.pinned:
            assert_allclose(gradient[k], (high - low) / (2 * step), rtol=1e-5, atol=1e-6)


def test_curvature_is_that_of_the_costly_distribution():
    """The second derivative by a bias of a sequence of one token is the variance of its label."""
    X, y = [np.array([[1.0, 2.0, 0.0, 0.0]])], [[0]]
    objective = make_objective(X, y, l2=0.0)
    theta, found = np.zeros(objective.size), np.empty(objective.size)
    with range_runner(objective.offsets, 1) as run:
        objective.curvature(theta, found, run)
    p = np.exp(COST[0] - logsumexp(COST[0]))
    chain = objective.unpack(found)
    assert_allclose(chain.intercept, p * (1 - p) + 1e-3)
    assert_allclose(chain.weights[1], 4 * p * (1 - p) + 1e-3)


def test_chains_of_every_kind_have_costs():
    """Costs are scores of labels: a feature that names the gold label, with fixed weights."""
    X, y = make_data()
    rng = np.random.default_rng(3)
    batch = SequenceBatch.from_lengths(np.concatenate(X), [len(x) for x in X])
    edges = rng.normal(size=(batch.X.shape[0], 2))
    batch = SequenceBatch(batch.X, batch.offsets, transition_X=edges)
    objective = crf_objective(training_set(batch, y), 4, 3, 2, l2=0.0, cost=COST, **EVERY)
    theta = rng.normal(size=objective.size)
    value, _ = evaluate(objective, theta)
    chain = objective.unpack(theta)
    expected = 0.0
    for a, b, gold in zip(batch.offsets[:-1], batch.offsets[1:], y, strict=True):
        scores = costly_scores(batch.X[a:b], gold, naive.Weights(chain.weights.T, *chain[1:5]))

        def score(labels, a=a, scores=scores):
            total = sum(scores[t, label] for t, label in enumerate(labels))
            for t, (i, j) in enumerate(pairwise(labels), start=a + 1):
                total += chain.transition[i, j]
                total += edges[t] @ chain.transition_weights[:, 3 * i + j]
            return total

        every = [score(labels) for labels in naive.labellings(b - a, 3)]
        expected += logsumexp(every) - score(gold)
    assert_allclose(value, expected)


def test_listed_transitions_give_the_value_of_the_matrix():
    k = 110
    rng = np.random.default_rng(4)
    lengths = rng.integers(2, 12, 40)
    codes = [(rng.integers(k) + np.arange(n)) % k for n in lengths]
    codes[0] = np.arange(k)
    X = [rng.normal(size=(len(c), 3)) for c in codes]
    cost = read_only(np.where(np.eye(k, dtype=bool), 0.0, rng.random((k, k))))
    values = []
    for listed in (True, False):
        objective = crf_objective(training_set(X, codes), 3, k, l2=0.5, cost=cost)
        assert isinstance(objective.likelihood.edges, Listed)
        if not listed:
            objective.likelihood.edges = Dense(np.empty((k, k)))
        theta = np.random.default_rng(5).normal(size=objective.size) / 5
        theta[objective.vector.pinned] = 0
        values.append(evaluate(objective, theta))
    assert_allclose(values[0][0], values[1][0])
    assert_allclose(*(gradient for _, gradient in values), atol=1e-9)


def test_stochastic_start_is_near_the_minimum():
    X, y = make_data([3, 4, 2] * 20)
    objective = make_objective(X, y)
    theta = stochastic_start(objective)
    value, _ = evaluate(objective, theta)
    weights = as_weights(objective.unpack(theta))
    assert_allclose(value, listed_objective(X, y, weights, 0.5))
    best = scipy.optimize.minimize(lambda x: evaluate(objective, x), 0 * theta, jac=True)
    assert best.fun <= value < 1.02 * best.fun


# ------------------------------------------------------------------------------------- minima


@pytest.fixture(scope="module")
def optimum():
    X, y = make_data([3, 1, 4, 2, 5, 2, 3, 1] * 3)
    tagger = CRFTagger(l2=0.5, tol=1e-13, label_cost=COST, **EVERY).fit(X, named(y))
    return X, y, tagger


def test_lbfgs_finds_the_minimum(optimum):
    X, y, tagger = optimum
    weights = naive.weights_of(tagger)
    best = listed_objective(X, y, weights, 0.5)
    assert_allclose(tagger.history_["objective"][-1], best)
    rng = np.random.default_rng(0)
    for _ in range(10):
        other = naive.Weights(*(part + 0.05 * rng.normal(size=part.shape) for part in weights))
        assert listed_objective(X, y, other, 0.5) > best


@pytest.mark.parametrize("sampling", ["gap", "uniform"])
def test_sdca_finds_the_same_minimum_with_a_true_gap(optimum, sampling):
    X, y, best = optimum
    minimum = best.history_["objective"][-1]
    rough = SDCACRF(
        l2=0.5, label_cost=COST, sampling=sampling, max_iter=2, verify_every=1, random_state=0
    )
    with pytest.warns(ConvergenceWarning):
        rough.fit(X, named(y))
    objective = listed_objective(X, y, naive.weights_of(rough), 0.5)
    assert_allclose(rough.history_["objective"][-1], objective)
    assert np.all(rough.history_["dual"] <= minimum * (1 + 1e-12))
    assert 0 <= objective - minimum <= rough.duality_gap_
    fine = SDCACRF(l2=0.5, label_cost=COST, sampling=sampling, tol=1e-9, random_state=0)
    fine.fit(X, named(y))
    assert_allclose(fine.history_["objective"][-1], minimum, rtol=1e-8)
    assert_allclose(fine.coef_, best.coef_, atol=1e-4)


def test_sdca_starts_from_weights_and_under_constraints(optimum):
    X, y, best = optimum
    warm = SDCACRF(l2=0.5, label_cost=COST, tol=1e-8, random_state=0, warm_start=True)
    cold = warm.fit(X, named(y)).n_iter_
    assert warm.fit(X, named(y)).n_iter_ <= cold
    assert_allclose(warm.coef_, best.coef_, atol=1e-3)
    allowed = np.ones((3, 3), bool)
    allowed[2, 1] = any(pair == (2, 1) for labels in y for pair in pairwise(labels))
    free = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 1]], bool)
    for constraint in (free, allowed):
        params = {"l2": 0.5, "label_cost": COST, "constraint": constraint}
        a = CRFTagger(tol=1e-12, **EVERY, **params).fit(X, named(y))
        b = SDCACRF(tol=1e-8, random_state=0, **params).fit(X, named(y))
        assert_allclose(b.history_["objective"][-1], a.history_["objective"][-1], rtol=1e-7)


def test_dual_objective_is_entropy_and_expected_cost():
    X, y = make_data()
    data = training_set(X, y, [2.0, 1, 1, 0.5, 1, 3])
    model, offsets = Model(4, 3, cost=COST), data.offsets
    dual = CRFDual(data, model, l2=0.7, fit_intercept=True, dtype=np.float64)
    with range_runner(offsets, None) as run:
        dual.start(run)
        found = [dual.estimate().dual, None]
        plan = dual.sampling("uniform", 0.0)
        expected = [costly_dual(X, y, dual, data.sample_weight)]
        dual.steps(np.array([3, 0, 5, 2, 1, 4]), np.empty(0), plan, 1e-6)
        expected.append(costly_dual(X, y, dual, data.sample_weight))
        found[1] = dual.estimate().dual
        assert_allclose(found, expected, rtol=1e-9)
        certificate = dual.certify(run)
        assert_allclose(certificate.dual, expected[1], rtol=1e-9)
        weights = as_weights(dual.chain())
        objective = sum(
            s * listed_objective([x], [gold], weights, 0.0)
            for x, gold, s in zip(X, y, data.sample_weight, strict=True)
        )
        objective += 0.35 * sum(np.sum(part**2) for part in weights)
        assert_allclose(certificate.objective, objective)


def costly_dual(X, y, dual, sample_weight):
    """Dual objective at the stored marginals, by the twin and the expected costs."""
    offsets, (node, pairs) = dual._problem.offsets, dual._dual[:2]
    blocks = [
        (node[a:b].copy(), pairs[a - i : b - 1 - i].reshape(-1, 3, 3))
        for i, (a, b) in enumerate(pairwise(offsets))
    ]
    value = naive.dual_objective(X, y, blocks, sample_weight, 0.7)
    for (mu, _), gold, s in zip(blocks, y, sample_weight, strict=True):
        value += s * sum(COST[g] @ p for g, p in zip(gold, mu, strict=True))
    return value


def test_the_start_of_the_dual_is_the_best_share():
    """No other mixture of gold labels and uniform marginals has a larger dual objective."""
    X, y = make_data()
    data = training_set(X, y)
    dual = CRFDual(data, Model(4, 3, cost=COST), l2=0.7, fit_intercept=True, dtype=np.float64)
    with range_runner(data.offsets, None) as run:
        dual.start(run)
    gold = np.eye(3)[np.concatenate(y)]
    eta = (dual._dual.node[0] - gold[0])[y[0][0]] / (1 / 3 - 1)
    values = []
    for share in (eta, 0.97 * eta, 1.03 * eta):
        blocks = []
        for labels in y:
            node, pairs = naive.gold_marginals(labels, 3)
            blocks.append((share / 3 + (1 - share) * node, share / 9 + (1 - share) * pairs))
        value = naive.dual_objective(X, y, blocks, np.ones(len(X)), 0.7)
        for (mu, _), labels in zip(blocks, y, strict=True):
            value += sum(COST[g] @ p for g, p in zip(labels, mu, strict=True))
        values.append(value)
    assert 0 < eta < 1
    assert values[0] > max(values[1:])


@pytest.mark.parametrize("l1", [0.3, 2.0])
def test_l1_bound_is_true(optimum, l1):
    X, y, _ = optimum
    params = {"l1": l1, "l2": 0.5, "label_cost": COST}
    best = CRFTagger(tol=1e-10, max_iter=3000, **params, **EVERY).fit(X, named(y))
    value = listed_objective(X, y, naive.weights_of(best), 0.5)
    value += l1 * sum(np.abs(part).sum() for part in naive.weights_of(best))
    assert_allclose(best.history_["objective"][-1], value)
    rough = CRFTagger(tol=0.05, **params, **EVERY).fit(X, named(y))
    history = rough.history_
    assert np.all(history["objective"] - history["bound"] <= value * (1 + 1e-9))


def test_large_training_sets_start_by_ascent():
    """With and without an L1 penalty, the minimum is that of a fit from zero."""
    rng = np.random.default_rng(0)
    X, y = make_data(rng.integers(1, 12, 300).tolist())
    assert sum(map(len, X)) >= 1_000
    for l1 in (0.0, 1.0):
        tagger = CRFTagger(l1=l1, label_cost=COST, tol=1e-6).fit(X, named(y))
        plain = CRFTagger(l1=l1, label_cost=COST, tol=1e-6, warm_start=True)
        plain.fit(X[:75], named(y[:75])).fit(X, named(y))
        values = [t.history_["objective"][-1] for t in (tagger, plain)]
        assert_allclose(*values, rtol=1e-5)
        # At zero, the first entry from there, every token has the cost of all labels.
        at_zero = sum(logsumexp(COST, axis=1)[labels].sum() for labels in y)
        assert tagger.history_["objective"][0] < at_zero


def test_sgd_comes_close(optimum):
    X, y, best = optimum
    tagger = CRFTagger(
        solver="sgd", l2=0.5, label_cost=COST, max_iter=300, tol=None, decay=0.98, random_state=0
    )
    tagger.fit(X, named(y))
    found = listed_objective(X, y, naive.weights_of(tagger), 0.5)
    assert best.history_["objective"][-1] <= found <= 1.02 * best.history_["objective"][-1]


# ---------------------------------------------------------------------- learning one by one


@pytest.mark.slow  # compiles a kernel for it
@pytest.mark.parametrize("partial", [False, True])
def test_a_step_of_sgd_is_against_the_gradient(partial):
    X, y = make_data([4])
    known = [*y[0]]
    if partial:
        known[1] = None
    names = [[None if label is None else NAMES[label] for label in known]]
    tagger = CRFTagger(solver="sgd", l2=0.0, learning_rate=0.3, label_cost=COST, shuffle=False)
    tagger.partial_fit(X, names, classes=NAMES.tolist())
    zero = naive.zero_weights(3, 4)
    assert_allclose(tagger.history_["loss"], listed_objective(X, [known], zero, 0.0))
    step = 1e-5
    for label in range(3):
        for f in range(4):
            sides = []
            for sign in (1, -1):
                moved = naive.zero_weights(3, 4)
                moved.coef[label, f] = sign * step
                sides.append(listed_objective(X, [known], moved, 0.0))
            slope = (sides[0] - sides[1]) / (2 * step)
            assert_allclose(tagger.coef_[label, f], -0.3 * slope, rtol=1e-5, atol=1e-8)


class CostlyPerceptron(naive.Perceptron):
    """The twin, which labels with the costs added."""

    def _visit(self, x, gold, step):
        w = self.weights
        scores = costly_scores(x, gold, w)
        predicted, best = naive.viterbi(scores, w.transition)
        wrong = sum(a != b for a, b in zip(gold, predicted, strict=True))
        if wrong == 0:
            return 0, 0.0
        loss = best - naive.path_score(scores, w.transition, gold)
        self._change(x, gold, step)
        self._change(x, predicted, -step)
        return wrong, loss

    def _change(self, x, labels, change):
        w = self.weights
        for t, label in enumerate(labels):
            w.coef[label] += change * x[t]
            w.intercept[label] += change
            if t > 0:
                w.transition[labels[t - 1], label] += change
        w.start[labels[0]] += change
        w.end[labels[-1]] += change


@pytest.mark.parametrize("average", [False, True])
def test_perceptron_step_by_step(average):
    X, y = make_data()
    tagger = PerceptronTagger(
        label_cost=COST, shuffle=False, max_iter=3, tol=None, average=average, random_state=0
    )
    tagger.fit(X, named(y))
    twin = CostlyPerceptron(3, 4)
    for epoch in range(3):
        wrong, loss = twin.epoch(X, y, range(len(X)))
        assert_allclose(tagger.history_["mistakes"][epoch], wrong / sum(map(len, y)))
        assert_allclose(tagger.history_["loss"][epoch], loss)
    expected = twin.average() if average else twin.weights
    for found, part in zip(naive.weights_of(tagger), expected, strict=True):
        assert_allclose(found, part, atol=1e-12)


def test_perceptron_asks_for_the_margin():
    """Where learning ends, every labelling has lost by its cost."""
    X, y = [np.eye(4)[[0, 1, 2]], np.eye(4)[[3, 0]]], [[0, 1, 2], [2, 0]]
    tagger = PerceptronTagger(label_cost=10 * COST, average=False, tol=None, random_state=0)
    tagger.fit(X, named(y))
    assert tagger.history_["loss"][-1] == 0
    weights = naive.weights_of(tagger)
    for x, gold in zip(X, y, strict=True):
        scores = naive.emission_scores(x, weights)
        right = naive.path_score(scores, weights.transition, gold)
        for labels in naive.labellings(len(x), 3):
            cost = sum(10 * COST[g, label] for g, label in zip(gold, labels, strict=True))
            assert right - naive.path_score(scores, weights.transition, labels) >= cost - 1e-9


@pytest.mark.parametrize("cost", ["hamming", "zero_one"])
def test_mira_gives_the_labelling_found_its_margin(cost):
    """After one step, the labelling that was worst with costs has lost by both margins."""
    X, y = make_data([4], seed=5)
    tagger = MIRATagger(label_cost=COST, cost=cost, C=1e9, average=False, shuffle=False)
    tagger.partial_fit(X, named(y), classes=NAMES.tolist())
    start = naive.zero_weights(3, 4)
    worst, most = naive.viterbi(costly_scores(X[0], y[0], start), start.transition)
    wrong = sum(a != b for a, b in zip(y[0], worst, strict=True))
    margin = sum(COST[g, label] for g, label in zip(y[0], worst, strict=True))
    assert_allclose(most, margin)
    margin += wrong if cost == "hamming" else 1
    weights = naive.weights_of(tagger)
    scores = naive.emission_scores(X[0], weights)
    right, found = (naive.path_score(scores, weights.transition, p) for p in (y[0], worst))
    assert_allclose(right - found, margin)
    assert_allclose(tagger.history_["loss"], margin)


@pytest.mark.parametrize("tagger", WITH_PARTIAL_FIT, ids=name_of)
def test_portions_and_streams_learn_with_costs(tagger):
    X, y = make_data([3, 4, 2] * 4)
    names, classes = named(y), NAMES.tolist()
    params = {"label_cost": COST, "shuffle": False}
    portions = clone(tagger).set_params(**params)
    for part in (slice(0, 6), slice(6, 12)):
        portions.partial_fit(X[part], names[part], classes=classes)
    stored = pickle.loads(pickle.dumps(clone(tagger).set_params(**params)))
    stored.partial_fit(X[:6], names[:6], classes=classes)
    stored = stored_by_skops(stored)
    stored.partial_fit(X[6:], names[6:])
    assert_same_weights(stored, portions)
    streamed = clone(tagger).set_params(**params)
    batches = [(X[:6], names[:6]), (X[6:], names[6:])]
    streams.fit_stream(streamed, lambda epoch: iter(batches), classes=classes)
    assert_same_weights(streamed, portions)
    plain = clone(tagger).set_params(shuffle=False)
    plain.partial_fit(X[:6], names[:6], classes=classes)
    assert np.abs(plain.coef_ - portions.coef_).max() > 1e-3


@pytest.mark.parametrize("tagger", WITH_PARTIAL_FIT, ids=name_of)
def test_shards_learn_with_costs(tagger):
    X, y = make_data([3, 4, 2] * 4)
    tagger = clone(tagger).set_params(label_cost=COST, n_jobs=2)
    found = tagger.fit(X, named(y)).coef_
    plain = clone(tagger).set_params(label_cost=None).fit(X, named(y)).coef_
    assert_array_equal(clone(tagger).fit(X, named(y)).coef_, found)
    assert np.abs(found - plain).max() > 1e-3


# ------------------------------------------------------------------------------- what it is for


def single_tokens(share):
    """Tokens of which a share are names and the others not, all with the same feature."""
    n_names = round(1000 * share)
    return np.ones((1000, 1)), np.repeat(["B-X", "O"], [n_names, 1000 - n_names])


@pytest.mark.filterwarnings("ignore:Predictions for")
@pytest.mark.parametrize("share", [0.3, 0.4])
@pytest.mark.parametrize("cost", [0.0, 1.0, 4.0, 30.0])
def test_border_of_names_of_one_token(share, cost):
    """Without costs it is one half. However large the cost, it does not fall below a third."""
    X, y = single_tokens(share)
    tagger = CRFTagger(l2=1e-6, fit_intercept=False, label_cost={"missed": cost}, tol=1e-10)
    tagger.fit(X, y)

    def slope(s):
        return share * expit(cost - s) - (1 - share) * expit(s)

    score = scipy.optimize.brentq(slope, -50, 50)
    assert_allclose(tagger.coef_[0, 0] - tagger.coef_[1, 0], score, atol=1e-3)
    assert tagger.predict([[1.0]])[0] == ("B-X" if share == 0.4 and cost > 1 else "O")


def test_doubts_about_missing_names_name_costs():
    X, y = single_tokens(0.4)
    (doubt,) = check_fit(CRFTagger().fit(X, y), X, y)
    assert "label_cost={'missed': 2}" in doubt
