"""Marginals against sums over all label sequences, in the linear and in the log domain."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import score_arrays

from skstruct import CRFTagger, PerceptronTagger, SequenceBatch
from skstruct.chain.dense import count_by_token, prepare_transitions
from skstruct.chain.forward_backward import forward_backward, log_sum_exp
from skstruct.chain.protocol import finish
from skstruct.compiled.tables import MAX_SPREAD, exp_all


def run(scores, transition, *, n_slabs=1, weight=1.0, linear=None, forbids=False):
    """Log-partition, node marginals, and pair marginals: summed in one slab, each in its own."""
    transitions = prepare_transitions(transition)
    if forbids:
        transitions = transitions._replace(forbids=True)
    if linear is not None:
        assert transitions.safe or not linear
        transitions = transitions._replace(safe=linear)
    length, n_labels = scores.shape
    node = np.full((length, n_labels), np.nan)
    pairs = np.zeros((n_slabs, n_labels, n_labels))
    counts = np.zeros((n_labels, n_labels))
    if n_slabs > 1:
        transitions, counts = count_by_token(transitions), pairs
    log_z = forward_backward(
        scores.copy(),
        length,
        transitions,
        node,
        np.empty(length),
        weight if n_slabs else 0.0,
        counts,
    )
    finish(transitions, counts)
    if n_slabs == 1:
        pairs[0] = counts
    return log_z, node, pairs


@given(score_arrays(min_length=1))
def test_marginals_are_those_of_all_sequences(case):
    scores, transition = case
    log_z, node, pairs = run(scores, transition, n_slabs=len(scores) - 1)
    expected_log_z, expected_node, expected_pairs = naive.listed_marginals(scores, transition)
    assert_allclose(log_z, expected_log_z, rtol=1e-13, atol=1e-12)
    assert_allclose(node, expected_node, atol=1e-11)
    assert_allclose(pairs, expected_pairs, atol=1e-11)


@given(score_arrays(min_length=1))
def test_one_slab_sums_the_pairs_and_no_slab_leaves_them_out(case):
    scores, transition = case
    _, node, each = run(scores, transition, n_slabs=len(scores) - 1)
    log_z, node_of_sum, [total] = run(scores, transition, weight=2.5)
    assert_allclose(total, 2.5 * each.sum(axis=0), atol=1e-11)
    assert_array_equal(node_of_sum, node)
    log_z_alone, node_alone, _ = run(scores, transition, n_slabs=0)
    assert log_z_alone == log_z
    assert_array_equal(node_alone, node)


@given(score_arrays(min_length=1))
def test_marginals_are_consistent(case):
    scores, transition = case
    _, node, pairs = run(scores, transition, n_slabs=len(scores) - 1)
    assert np.all(node >= 0)
    assert_allclose(node.sum(axis=1), 1, atol=1e-11)
    assert_allclose(pairs.sum(axis=2), node[:-1], atol=1e-11)
    assert_allclose(pairs.sum(axis=1), node[1:], atol=1e-11)
    assert_array_equal(pairs[:, transition == -np.inf], 0)


@given(score_arrays(min_length=1, forbid=False, kinds=("moderate", "ties")))
def test_linear_and_log_domain_agree(case):
    scores, transition = case
    n_slabs = len(scores) - 1
    linear = run(scores, transition, n_slabs=n_slabs, linear=True)
    log = run(scores, transition, n_slabs=n_slabs, linear=False)
    for a, b in zip(linear, log, strict=True):
        assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_linear_domain_holds_up_to_the_largest_spread(seed):
    """Emissions that underflow, under transitions that just may still be scaled."""
    rng = np.random.default_rng(seed)
    length, n_labels = rng.integers(1, 6), rng.integers(1, 5)
    scores = rng.choice([-2000.0, -700, -300, 0, 300, 700, 2000], (length, n_labels))
    transition = rng.choice([-MAX_SPREAD / 2, 0, MAX_SPREAD / 2], (n_labels, n_labels))
    linear = run(scores, transition, n_slabs=length - 1, linear=True)
    log_z, node, pairs = naive.listed_marginals(scores, transition)
    assert_allclose(linear[0], log_z, rtol=1e-13, atol=1e-12)
    assert_allclose(linear[1], node, atol=1e-11)
    assert_allclose(linear[2], pairs, atol=1e-11)


def test_domain_is_chosen_by_the_spread_into_a_label():
    far = 10 * MAX_SPREAD
    # The same for all that may precede a label: only differences within a column count.
    assert prepare_transitions(np.array([[0.0, far], [0.0, far]])).safe
    assert prepare_transitions(np.array([[0.0, 0.0], [MAX_SPREAD, 0.0]])).safe
    assert not prepare_transitions(np.array([[0.0, 0.0], [1.01 * MAX_SPREAD, 0.0]])).safe
    assert not prepare_transitions(np.array([[0.0, np.nan], [0.0, 0.0]])).safe


@pytest.mark.parametrize("first", [-np.inf, 1.0])
def test_impossible_pairs_leave_the_domain_to_the_others(first):
    scaled = prepare_transitions(np.array([[first, -np.inf], [0.0, -np.inf]]))
    assert scaled.safe
    assert scaled.forbids
    assert_array_equal(scaled.linear[:, 1], 0)
    far = np.array([[-np.inf, 0.0], [0.0, 1.01 * MAX_SPREAD]])
    assert not prepare_transitions(far).safe
    assert not prepare_transitions(np.zeros((2, 2))).forbids


@given(score_arrays(min_length=1, forbid_labels=True), st.integers(0, 2))
def test_impossible_labels_get_exactly_nothing(case, n_slabs):
    """Both where the linear domain serves and where it has to give way, with any slabs."""
    scores, transition = case
    if n_slabs == 2:
        n_slabs = len(scores) - 1
    log_z, node, pairs = run(scores, transition, n_slabs=n_slabs, weight=2.0, forbids=True)
    expected_log_z, expected_node, expected_pairs = naive.listed_marginals(scores, transition)
    if n_slabs == 1:
        expected_pairs = expected_pairs.sum(axis=0, keepdims=True)
    assert_allclose(log_z, expected_log_z, rtol=1e-13, atol=1e-12)
    assert_allclose(node, expected_node, atol=1e-11)
    assert_array_equal(node[scores == -np.inf], 0)
    if n_slabs > 0:
        assert_allclose(pairs, 2 * expected_pairs, atol=1e-11)
        assert_array_equal(pairs[:, transition == -np.inf], 0)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_what_underflows_may_be_all_that_is_left(seed, each):
    """Scores so far apart that a path which is lost on the way wins in the end."""
    rng = np.random.default_rng(seed)
    length, n_labels = rng.integers(2, 7), rng.integers(2, 5)
    scores = rng.choice([-1500.0, -800, -300, 0, 300, 800, 1500, -np.inf], (length, n_labels))
    transition = np.where(rng.random((n_labels, n_labels)) < 0.6, -np.inf, 0.0)
    np.fill_diagonal(transition, 0.0)
    scores[:, 0] = rng.choice([-1500.0, 0, 1500], length)
    n_slabs = length - 1 if each else 1
    log_z, node, pairs = run(scores, transition, n_slabs=n_slabs, forbids=True)
    expected_log_z, expected_node, expected_pairs = naive.listed_marginals(scores, transition)
    if not each:
        expected_pairs = expected_pairs.sum(axis=0, keepdims=True)
    assert_allclose(log_z, expected_log_z, rtol=1e-13, atol=1e-12)
    assert_allclose(node, expected_node, atol=1e-11)
    assert_allclose(pairs, expected_pairs, atol=1e-11)


def test_labels_out_of_reach_do_not_overflow():
    """A group of labels that may not come first, however good it would be later."""
    length = 60
    scores = np.where(np.arange(4) < 2, 0.0, 100.0) + np.arange(4.0) + np.zeros((length, 1))
    scores[0, 2:] = -np.inf
    transition = np.full((4, 4), -np.inf)
    transition[:2, :2] = transition[2:, 2:] = 0.0
    log_z, node, [pairs] = run(scores, transition)
    possible = naive.marginals(scores[:, :2], transition[:2, :2])
    assert_allclose(log_z, possible[0], rtol=1e-13)
    assert_allclose(node[:, :2], possible[1], atol=1e-12)
    assert_array_equal(node[:, 2:], 0)
    assert_allclose(pairs.sum(), length - 1)


def test_empty_sequence():
    log_z, node, pairs = run(np.empty((0, 2)), np.zeros((2, 2)))
    assert log_z == 0
    assert node.shape == (0, 2)
    assert_array_equal(pairs, 0)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize(("length", "n_labels"), [(100_000, 3), (5, 500)])
def test_long_sequences_and_many_labels(length, n_labels, linear):
    rng = np.random.default_rng(length)
    scores = 3 * rng.normal(size=(length, n_labels))
    transition = rng.normal(size=(n_labels, n_labels))
    log_z, node, [pairs] = run(scores, transition, linear=linear)
    expected_log_z, expected_node = naive.marginals(scores, transition)
    assert_allclose(log_z, expected_log_z, rtol=1e-12)
    # Logarithms that reach some hundred thousand leave about ten digits behind the point.
    assert_allclose(node, expected_node, atol=1e-7)
    accuracy = 1e-12 if linear else 1e-7
    assert_allclose(node.sum(axis=1), 1, atol=accuracy)
    assert_allclose(pairs.sum(), length - 1, rtol=accuracy)
    assert_allclose(pairs.sum(axis=0), node[1:].sum(axis=0), rtol=accuracy)


@given(score_arrays(min_length=1))
def test_naive_twin_is_right_as_well(case):
    log_z, node = naive.marginals(*case)
    expected_log_z, expected_node, _ = naive.listed_marginals(*case)
    assert_allclose(log_z, expected_log_z, rtol=1e-13, atol=1e-12)
    assert_allclose(node, expected_node, atol=1e-11)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_predict_proba_gives_node_marginals(n_jobs):
    rng = np.random.default_rng(3)
    batch = SequenceBatch.from_lengths(rng.normal(size=(8, 5)), [3, 0, 1, 4])
    y = [[0, 1, 2], [], [0], [1, 1, 2, 0]]
    tagger = PerceptronTagger(max_iter=1, tol=None, n_jobs=n_jobs, random_state=0).fit(batch, y)
    for name in ("coef_", "transition_", "intercept_", "start_", "end_"):
        setattr(tagger, name, rng.normal(size=getattr(tagger, name).shape))
    weights = naive.weights_of(tagger)
    proba = tagger.predict_proba(batch)
    assert [p.shape for p in proba] == [(3, 3), (0, 3), (1, 3), (4, 3)]
    for found, x in zip(proba, batch, strict=True):
        if len(x):
            _, node, _ = naive.listed_marginals(
                naive.emission_scores(x, weights), weights.transition
            )
            assert_allclose(found, node, atol=1e-13)


# -------------------------------------------------------------------------------- arithmetic


def exponentials(x):
    out = x.copy()
    exp_all(out)
    return out


@pytest.mark.parametrize("constraint", [None, "IOB2"])
def test_probabilities_are_at_most_one_and_sum_to_it(constraint):
    rng, length = np.random.default_rng(0), 3000
    X = [rng.normal(scale=s, size=(n, 4)) for s, n in ((1, 40), (30, 40), (100, length))]
    y = [rng.choice(["B-A", "O"], len(x)).tolist() for x in X]
    tagger = CRFTagger(constraint=constraint).fit(X[:2], y[:2])
    tagger.coef_ = rng.normal(size=tagger.coef_.shape)
    for x in X:
        proba = tagger.predict_proba([x])[0]
        assert proba.max() <= 1
        assert_allclose(proba.sum(axis=1), 1, rtol=1e-14)
        (best,) = tagger.predict_nbest([x], 1)[0]
        assert best.probability <= 1


def test_exponential_is_within_two_units_in_the_last_place():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            np.linspace(-708, 0, 1_000_001),
            -(10.0 ** rng.uniform(-20, 2.8, 200_000)),
            # Where the nearest multiple of log 2 changes.
            (np.arange(-1021, 0) + 0.5) * np.log(2),
        ]
    )
    expected = np.exp(x)
    assert np.max(np.abs(exponentials(x) - expected) / np.spacing(expected)) <= 2
    assert_array_equal(exponentials(np.array([0.0, -0.0])), 1)


def test_exponential_stops_falling_where_doubles_lose_precision():
    lowest = exponentials(np.array([-708.0]))
    assert_allclose(lowest, np.exp(-708.0), rtol=1e-15)
    below = np.array([-708.0000001, -709, -745, -746, -1e4, -1e300, -np.inf])
    assert_array_equal(exponentials(below), lowest[0])


@given(st.lists(st.floats(-700, 700) | st.just(-np.inf), min_size=1, max_size=8))
def test_log_sum_exp_is_numpys(values):
    x = np.array(values)
    expected = np.logaddexp.reduce(x)
    assert_allclose(log_sum_exp(np.append(x, 1e3), len(x)), expected, rtol=1e-14, atol=1e-14)
