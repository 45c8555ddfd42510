"""The dual-free start of a CRF's training, against its plain twin and against the minimum."""

from itertools import islice

import naive
import numpy as np
import pytest
from helpers.objectives import (
    OPTIONS,
    as_weights,
    evaluate,
    make_objective,
    objective_problems,
    packed_set,
    training_set,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skstruct import CRFTagger, SequenceBatch
from skstruct.chain.scores import Rows
from skstruct.compiled.jit import jit
from skstruct.learning.ascent import draw_order, halve
from skstruct.learning.layout import FeaturePlaces, lay_out, observe, state_scores
from skstruct.learning.lbfgs import minimize_lbfgs
from skstruct.learning.proximal import least_subgradient, minimize_proximal, proximal_points
from skstruct.learning.start import dual_free_epochs, stochastic_start
from skstruct.matrices import read_only
from skstruct.utils.parallel import range_runner


def related_data(lengths, n_labels=4, n_features=6, seed=0):
    """Labels that depend on the features and on the label before."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(lengths), n_features)) * (rng.random((sum(lengths), n_features)) < 0.6)
    weights = rng.normal(size=(n_features, n_labels))
    y = np.argmax(X @ weights + rng.gumbel(size=(len(X), n_labels)), axis=1)
    follows = rng.random(len(X)) < 0.3
    for t in range(1, len(X)):
        y[t] = (y[t - 1] + 1) % n_labels if follows[t] else y[t]
    cuts = np.cumsum(lengths)[:-1]
    return np.split(X, cuts), [part.tolist() for part in np.split(y, cuts)]


def minimum(objective):
    with range_runner(objective.offsets, 1) as run:
        iterates = minimize_lbfgs(
            lambda x, out: objective.value_and_gradient(x, out, run), np.zeros(objective.size)
        )
        return list(islice(iterates, 400))[-1]


def epochs(objective, n_epochs):
    """Parameters after some epochs, what is remembered, and what was said of the last one."""
    memory = objective.new_memory()
    theta, *said = list(islice(dual_free_epochs(objective, memory), n_epochs))[-1]
    return theta, memory, said


@pytest.mark.parametrize("l1", [0.0, 0.1])
@pytest.mark.parametrize("values", ["ones", "real"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("lengths", [[3, 1, 4, 2, 4, 3, 2] * 3, [3, 0, 2, 0, 1]])
def test_epochs_are_those_of_the_plain_twin(monkeypatch, lengths, fit_intercept, values, l1):
    # Otherwise the ascent has a larger penalty than the model.
    monkeypatch.setattr("skstruct.learning.start._L1_FACTOR", 0.0)
    X, y = related_data(lengths, 3, 4)
    if values == "ones":
        X = [(x > 0).astype(float) for x in X]
    rng = np.random.default_rng(1)
    sample_weight = rng.uniform(0.5, 2, len(X))
    data = training_set(X, y, sample_weight)
    objective = make_objective(data, 4, 3, (0, True, True, fit_intercept), l2=0.3)
    twin = naive.DualFree(X, y, sample_weight / 0.3, naive.zero_weights(3, 4), l1 / 0.3)
    memory, random_state = objective.new_memory(), np.random.RandomState(0)
    order = random_state.permutation(len(X))
    for theta, value, distance in islice(dual_free_epochs(objective, memory, l1), 6):
        twin.epoch(order, fit_intercept)
        for found, part in zip(as_weights(objective.unpack(theta)), twin.weights, strict=True):
            assert_allclose(found, part, rtol=1e-5, atol=1e-6)
        divergence = np.array([past["divergence"] for past in twin.past])
        assert_allclose(memory.divergence, divergence, rtol=1e-4, atol=1e-7)
        assert_allclose(distance, sample_weight @ divergence, rtol=1e-4)
        penalty = sum(np.sum(0.15 * w**2 + l1 * np.abs(w)) for w in twin.weights)
        assert_allclose(value, sample_weight @ twin.loss + penalty, rtol=1e-5)
        order = draw_order(sample_weight * memory.divergence, random_state)
    # Some step was too long, some was not.
    shares = [past["share"] for past in twin.past]
    if len(X) > 5:
        assert max(shares) == 1
        assert min(shares) < 1
        assert any(np.any(part == 0) for part in twin.weights) == (l1 > 0 or not fit_intercept)


@given(objective_problems(), st.sampled_from(OPTIONS), st.integers(1, 4))
def test_weights_are_conjugate_to_what_is_remembered(problem, options, n_epochs):
    """The weights that the model has, that is; the others are zero."""
    _, X, y, n_labels, n_features, sample_weight = problem
    data = training_set(X, y, sample_weight)
    objective = make_objective(data, n_features, n_labels, options, l2=0.7)
    theta, memory, _ = epochs(objective, n_epochs)
    cuts = objective.offsets[1:-1]
    total = naive.zero_weights(n_labels, n_features)
    pairs = memory.transition.astype(float).reshape(-1, 1, n_labels, n_labels)
    node = np.split(memory.node.astype(float), cuts)
    for x, s, *kept in zip(X, sample_weight, node, pairs, strict=True):
        if len(x):
            for part, addend in zip(total, naive.expected_features(x, *kept), strict=True):
                part -= s / 0.7 * addend
    chain = objective.unpack(theta)._replace(weights=total.coef.T, transition=total.transition)
    chain = chain._replace(intercept=total.intercept, start=total.start, end=total.end)
    assert_allclose(theta, objective.pack(chain), atol=1e-9)


@given(objective_problems(), st.integers(1, 4))
def test_what_is_remembered_are_marginals(problem, n_epochs):
    """Their distance from the gold labels sums to zero, and both add up to probabilities."""
    _, X, y, n_labels, n_features, sample_weight = problem
    objective = make_objective(training_set(X, y, sample_weight), n_features, n_labels)
    _, memory, _ = epochs(objective, n_epochs)
    assert_allclose(memory.node.sum(axis=1), 0, atol=1e-5)
    assert_allclose(memory.transition.sum(axis=1), 0, atol=1e-5)
    marginals = memory.node + np.eye(n_labels)[objective.labels]
    assert marginals.min() > -1e-6
    assert marginals.max() < 1 + 1e-6
    assert np.all((memory.caution >= 0) & (memory.caution <= 0.95))


@pytest.mark.parametrize("options", [(0, True, True, True), (0, False, False, False)])
@pytest.mark.parametrize("l2", [0.2, 1.0, 30.0])
def test_epochs_come_to_the_minimum(options, l2):
    X, y = related_data([5, 3, 8, 1, 4, 6] * 10)
    objective = make_objective(training_set(X, y), 6, 4, options, l2=l2)
    best = minimum(objective).value
    found = [
        (evaluate(objective, theta)[0], value, distance)
        for theta, value, distance in islice(
            dual_free_epochs(objective, objective.new_memory()), 200
        )
    ]
    assert np.all(np.array(found)[:, 0] >= best - 1e-9)
    reached, last_visited, distance = found[-1]
    assert reached <= best * (1 + 1e-3)
    assert_allclose(last_visited, best, rtol=1e-2)
    # What is said of the distance is little where it is little.
    assert distance <= 0.1 * best


def test_sample_weights_are_repetitions():
    X, y = related_data([5, 3, 8, 1, 4, 6])
    weighted = make_objective(training_set(X, y, [1, 2, 1, 3, 1, 1]), 6, 4)
    repeated = [0, 1, 1, 2, 3, 3, 3, 4, 5]
    plain = make_objective(training_set([X[i] for i in repeated], [y[i] for i in repeated]), 6, 4)
    for objective in (weighted, plain):
        theta, *_ = epochs(objective, 80)
        assert_allclose(evaluate(objective, theta)[0], minimum(plain).value, rtol=1e-4)


@pytest.mark.parametrize("l2", [0.0, 1e-8])
def test_a_start_without_penalty_has_some(l2):
    X, y = related_data([5, 3, 8, 1, 4, 6] * 10)
    objective = make_objective(training_set(X, y), 6, 4, l2=l2)
    theta = stochastic_start(objective)
    value, _ = evaluate(objective, theta)
    assert value < 0.9 * evaluate(objective, np.zeros(objective.size))[0]


def test_no_start_where_it_takes_too_much_memory(monkeypatch):
    X, y = related_data([5, 3, 8])
    objective = make_objective(training_set(X, y), 6, 4)
    needed = sum(part.nbytes for part in objective.new_memory()[:2])
    monkeypatch.setattr("skstruct.learning.ascent._MOST_MEMORY", needed - 1)
    assert stochastic_start(objective) is None
    monkeypatch.setattr("skstruct.learning.ascent._MOST_MEMORY", needed)
    assert stochastic_start(objective) is not None


@pytest.mark.parametrize("sample_weight", [None, [2.0, 0.5, 3.0]])
def test_the_value_at_zero_is_known(sample_weight):
    X, y = related_data([5, 0, 8])
    objective = make_objective(training_set(X, y, sample_weight), 6, 4)
    value, _ = evaluate(objective, np.zeros(objective.size))
    assert_allclose(objective.bound_at_zero, value)


@pytest.mark.parametrize("bad", [1e3, np.nan, np.inf])
def test_a_fit_does_not_go_on_from_a_start_that_is_worse_than_zero(monkeypatch, bad):
    X, y = related_data([5, 3, 8, 1, 4, 6, 2] * 80)
    plain = CRFTagger(tol=1e-6)
    with monkeypatch.context() as patch:
        patch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 10**9)
        plain.fit(X, y)
    starts = []

    def start(objective, given=None, run=None):
        starts.append(np.full(objective.size, bad))
        return starts[-1]

    monkeypatch.setattr("skstruct.learning.lbfgs.stochastic_start", start)
    with np.errstate(all="ignore"):
        tagger = CRFTagger(tol=1e-6).fit(X, y)
    assert len(starts) == 1
    assert_array_equal(tagger.coef_, plain.coef_)


def with_distances(shares):
    """Epochs that estimate these shares of the objective as its distances."""

    def epochs(objective, memory, l1=0.0, vector=None, run=None):
        found = dual_free_epochs(objective, memory, l1, vector)
        for (theta, value, _), share in zip(found, shares, strict=False):
            yield theta, value, share * value

    return epochs


@pytest.mark.parametrize(
    ("shares", "n_epochs"),
    [
        # Fast: it goes on below 0.03, and ends below 0.001.
        (0.5 ** np.arange(40), 11),
        # Fast, though it ends at 20 epochs.
        (np.repeat(1e9, 40) * 0.5 ** np.arange(40), 20),
        # Slow: it ends below 0.03, or at 12 epochs.
        (0.8 ** (6 + np.arange(40)), 11),
        (0.9 ** np.arange(40), 12),
        # It slows down, when it is near or when it would have ended.
        (np.r_[0.5 ** np.arange(7), 0.012 * 0.9 ** np.arange(30)], 8),
        (np.r_[1e6 * 0.5 ** np.arange(15), 30 * 0.9 ** np.arange(30)], 17),
        # Nothing is known of the distance.
        (np.full(40, np.nan), 1),
    ],
)
def test_a_start_ends_where_it_is_near_or_slow(monkeypatch, shares, n_epochs):
    X, y = related_data([5, 3, 8, 1, 4, 6] * 10)
    objective = make_objective(training_set(X, y), 6, 4, l2=10.0)
    epochs = dual_free_epochs(objective, objective.new_memory())
    wanted = [theta.copy() for theta, _, _ in islice(epochs, n_epochs)][-1]
    monkeypatch.setattr("skstruct.learning.start.dual_free_epochs", with_distances(shares))
    assert_array_equal(stochastic_start(objective), wanted)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_drawn_as_often_as_wanted(seed, n):
    """But for rounding, and a tenth of the visits, by the square root of the priority."""
    rng = np.random.default_rng(seed)
    priority = rng.exponential(size=n) * (rng.random(n) < 0.7)
    order = draw_order(priority, np.random.RandomState(seed))
    assert len(order) == n
    root = np.sqrt(priority)
    share = root / root.sum() if priority.any() else np.full(n, 1 / n)
    wanted = 0.1 + 0.9 * n * share
    counts = np.bincount(order, minlength=n)
    assert np.all(np.abs(counts - wanted) < 1 + 1e-9)


@pytest.mark.parametrize("priority", [np.zeros(5), np.full(5, np.nan), np.array([1.0, np.inf])])
def test_drawn_alike_where_nothing_is_known(priority):
    order = draw_order(priority, np.random.RandomState(0))
    assert_array_equal(np.sort(order), np.arange(len(priority)))


# ------------------------------------------------------------------------------- inside of a fit


@pytest.mark.parametrize(
    ("l1", "l2"), [(0, 0.05), (0, 1.0), (0, 20.0), (2.0, 0.0), (0.5, 0.1), (5.0, 2.0)]
)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_fit_from_the_start_is_that_from_zero(monkeypatch, fit_intercept, l1, l2):
    X, y = related_data([5, 3, 8, 1, 4, 6, 2] * 80)
    batch = SequenceBatch.from_lengths(np.concatenate(X), [len(x) for x in X])
    params = {"l1": l1, "l2": l2, "fit_intercept": fit_intercept, "tol": 1e-7}
    started = CRFTagger(**params).fit(batch, y)
    monkeypatch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 10**9)
    plain = CRFTagger(**params).fit(batch, y)
    if l2 >= 1:
        # Of an ascent with an L1 penalty, only the objective of some epochs is known.
        known = started.history_["objective"][~np.isnan(started.history_["gradient_norm"])]
        assert known[0] < 0.85 * plain.history_["objective"][0]
        assert started.n_iter_ < plain.n_iter_
    assert_allclose(started.history_["objective"][-1], plain.history_["objective"][-1], rtol=2e-7)


@pytest.mark.parametrize(("l1", "l2"), [(0.5, 0.0), (2.0, 0.1), (0.1, 1.0)])
def test_the_proximal_point_method_ends_at_the_minimum(l1, l2):
    X, y = related_data([5, 3, 8, 1, 4, 6, 2] * 20)
    objective = make_objective(training_set(X, y), 6, 4, l2=l2)
    with range_runner(objective.offsets, None) as run:

        def value_and_gradient(x, out):
            return objective.value_and_gradient(x, out, run)

        exact = islice(minimize_proximal(value_and_gradient, np.zeros(objective.size), l1), 2000)
        minimum = min(point.value for point in exact)
        points = [p for p in proximal_points(objective, l1, run) if p.gradient is not None]
    values = [point.value for point in points]
    assert np.all(np.diff(values) <= 0)
    assert_allclose(values[-1], minimum, rtol=2e-5)
    x, last = points[-1].x, points[-1]
    assert_allclose(last.gradient, least_subgradient(x, last.smooth, l1))
    assert_allclose(last.value, evaluate(objective, x)[0] + l1 * np.abs(x).sum())
    assert np.any(x == 0)


@pytest.mark.parametrize("l1", [0.0, 0.5])
def test_a_fit_from_the_start_has_the_same_bits_again(l1):
    X, y = related_data([5, 3, 8, 1, 4, 6, 2] * 80)
    for n_jobs in (1, 2):
        first, second = (CRFTagger(l1=l1, n_jobs=n_jobs).fit(X, y) for _ in range(2))
        assert_array_equal(first.coef_, second.coef_)
        assert_array_equal(first.history_["objective"], second.history_["objective"])


# ---------------------------------------------------------------------------------- two threads


@pytest.fixture
def in_blocks(monkeypatch):
    """Small sets are visited in two threads, too."""
    monkeypatch.setattr("skstruct.learning.ascent._LEAST_WORK", 0)
    monkeypatch.setattr("skstruct.learning.ascent._OCCURRENCES", 0)


@pytest.mark.parametrize("l1", [0.0, 0.1])
@pytest.mark.parametrize("options", [(0, True, True, True), (0, False, False, False)])
def test_weights_of_two_threads_are_conjugate_to_what_is_remembered(in_blocks, options, l1):
    X, y = related_data([5, 3, 8, 1, 4, 6, 2] * 12)
    objective = make_objective(training_set(X, y), 6, 4, options, l2=2.0)
    memory = objective.new_memory()
    with range_runner(objective.offsets, 2) as run:
        epochs = dual_free_epochs(objective, memory, l1, run=run)
        theta = [theta.copy() for theta, *_ in islice(epochs, 5)][-1]
    total = naive.zero_weights(4, 6)
    node = np.split(memory.node.astype(float), objective.offsets[1:-1])
    pairs = memory.transition.astype(float).reshape(-1, 1, 4, 4)
    for x, *kept in zip(X, node, pairs, strict=True):
        for part, addend in zip(total, naive.expected_features(x, *kept), strict=True):
            part -= addend / 2.0
    chain = objective.unpack(theta)._replace(weights=total.coef.T, transition=total.transition)
    chain = chain._replace(intercept=total.intercept, start=total.start, end=total.end)
    vector = objective.pack(chain)
    shrunk = np.sign(vector) * np.maximum(np.abs(vector) - l1 / 2.0, 0)
    assert_allclose(theta, shrunk, atol=1e-9)


@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_two_threads_come_to_the_minimum_with_the_same_bits(in_blocks, l1):
    X, y = related_data([5, 3, 8, 1, 4, 6, 2] * 20)
    found = []
    for n_jobs in (1, 2, 2, 3):
        objective = make_objective(training_set(X, y), 6, 4, l2=2.0)
        with range_runner(objective.offsets, n_jobs) as run:
            epochs = dual_free_epochs(objective, objective.new_memory(), l1, run=run)
            theta = [theta.copy() for theta, *_ in islice(epochs, 60)][-1]
        found.append(theta)
    one, *two = found
    for theta in two:
        assert_array_equal(theta, two[0])
    assert np.any(one != two[0])
    values = [evaluate(objective, theta)[0] + l1 * np.abs(theta).sum() for theta in (one, two[0])]
    assert_allclose(*values, rtol=1e-3)


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(0, 2**32 - 1))
def test_halves_have_no_sequence_in_common_and_about_the_same_work(order, seed):
    order, lengths = np.array(order, int), np.random.default_rng(seed).integers(0, 9, 10)
    first, second = halve(order, lengths)
    assert not set(first) & set(second)
    assert_array_equal(np.sort(np.concatenate([first, second])), np.sort(order))
    heaviest = max((lengths[i] * np.sum(order == i) for i in set(order)), default=0)
    assert abs(lengths[first].sum() - lengths[second].sum()) <= heaviest


@jit
def write_state_scores(*arguments):
    """From Python, `state_scores` would run as Python."""
    state_scores(*arguments)


@pytest.mark.parametrize("values", ["ones", "real"])
@pytest.mark.parametrize("n_labels", [3, 11])
@pytest.mark.parametrize("all_states", [False, True])
def test_scores_of_shrunk_weights(values, n_labels, all_states):
    X, y = related_data([5, 3, 8, 1, 4, 6, 2] * 5, n_labels)
    if values == "ones":
        X = [(x > 0).astype(float) for x in X]
    objective = make_objective(training_set(X, y), 6, n_labels, (0, all_states, True, True))
    features = objective.likelihood.features
    vector = np.random.default_rng(0).normal(size=objective.size)
    found, wanted = np.empty((2, len(objective.labels), n_labels))
    n_rows = len(objective.labels)
    write_state_scores(features, vector, 0.7, n_labels, 0, n_rows, found)
    weights = objective.unpack(np.sign(vector) * np.maximum(np.abs(vector) - 0.7, 0)).weights
    wanted[:] = np.concatenate(X) @ weights
    assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_values_of_zero_change_nothing(scale):
    X, y = related_data([5, 3, 8, 1, 4, 6, 2] * 5)
    values = scale * (np.concatenate(X) > 0)
    # A feature that is always zero has weights, too.
    values = np.pad(values, ((0, 0), (0, 1)))
    plain = training_set(X, y)
    places = [np.arange(len(values) + 1) * 7, np.tile(np.arange(7, dtype=np.int32), len(values))]
    rows = read_only(Rows(*places, values.ravel()))
    data = packed_set(rows, plain.offsets, plain.labels, plain.sample_weight)
    objective = make_objective(data, 7, 4)
    features = objective.likelihood.features
    n_values = np.count_nonzero(values)
    assert len(features.places) == n_values
    assert features.data.shape == ((0,) if scale == 1 else (n_values,))
    theta = np.random.default_rng(0).normal(size=objective.size)
    found = evaluate(objective, theta)
    layout = lay_out(observe(rows, data.labels, None, 7, 4), 4, 0, False)
    # The same with all occurrences, in the order of decreasing widths.
    order = np.argsort(-layout.width, kind="stable")
    kept = np.tile(layout.place[order], len(values)), values[:, order].ravel()
    # A copy can be written to, as in a fit: for other types the objective would be compiled anew.
    objective.likelihood.features = FeaturePlaces(rows.indptr.copy(), *kept, *features[3:])
    wanted = evaluate(objective, theta)
    assert found[0] == wanted[0]
    assert_array_equal(found[1], wanted[1])
