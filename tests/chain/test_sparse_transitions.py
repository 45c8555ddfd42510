"""Listed transitions: labels, marginals and gradients are those of all transitions."""

import warnings
from itertools import islice, pairwise

import naive
import numpy as np
import pytest
from helpers.lists import list_from
from helpers.objectives import evaluate, make_objective, packed_set, random_theta
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from strategies import score_arrays

from skstruct import (
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    decoding,
)
from skstruct.chain.dense import Dense
from skstruct.chain.forward_backward import forward_backward
from skstruct.chain.listed import GrowingList, Leaving, Listed, collect_transitions, list_transition
from skstruct.chain.protocol import factors_of, finish, forbidding
from skstruct.chain.viterbi import viterbi
from skstruct.crfsuite.online import OnlineCRF
from skstruct.input.training_set import as_rows
from skstruct.learning import online as learner
from skstruct.learning.start import dual_free_epochs, stochastic_start


@pytest.fixture
def always_listed(monkeypatch):
    """Lists for any number of labels and transitions."""
    list_from(monkeypatch, 0)


@st.composite
def sparse_cases(draw):
    """Scores and transitions of which most are zero, or minus infinity into some labels."""
    scores, transition = draw(score_arrays(min_length=1, forbid_labels=True))
    n_labels = len(transition)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kept = rng.random(transition.shape) < draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    default = np.where(rng.random(n_labels) < draw(st.sampled_from([0.0, 0.5])), -np.inf, 0.0)
    wanted = rng.random(transition.shape) < 0.2 if draw(st.booleans()) else np.empty((0, 0), bool)
    return scores, np.where(kept, transition, default), wanted


def listed(transition, wanted):
    *into, leaving = collect_transitions(transition, wanted, transition.size)
    return Listed(*into, Leaving(*leaving))


@given(sparse_cases())
def test_a_list_and_the_defaults_are_the_matrix(case):
    _, transition, wanted = case
    edges = listed(transition, wanted)
    matrix = np.tile(edges.default, (len(transition), 1))
    second = np.repeat(np.arange(len(transition)), np.diff(edges.indptr))
    matrix[edges.origin, second] = edges.score
    assert_array_equal(matrix, transition)
    leaving = edges.leaving
    first = np.repeat(np.arange(len(transition)), np.diff(leaving.indptr))
    assert_array_equal(leaving.into[leaving.order], second)
    assert_array_equal(first[leaving.order], edges.origin)
    if wanted.size:
        found = np.zeros(transition.shape, bool)
        found[edges.origin, second] = True
        assert found[wanted].all()


@given(sparse_cases())
def test_best_labels_are_the_same(case):
    scores, transition, wanted = case
    expected, labels = np.empty((2, len(scores)), np.int32)
    score = viterbi(scores.copy(), len(scores), listed(transition, wanted), labels)
    assert score == viterbi(scores.copy(), len(scores), Dense(transition), expected)
    assert_array_equal(labels, expected)


@given(sparse_cases())
def test_marginals_are_those_of_all_sequences(case):
    scores, transition, wanted = case
    labels = np.empty(len(scores), int)
    assume(viterbi(scores.copy(), len(scores), Dense(transition), labels) > -np.inf)
    expected_log_z, expected_node, expected_pairs = naive.listed_marginals(scores, transition)
    edges = listed(transition, wanted)
    factors = factors_of(edges, len(scores))
    if np.isneginf(scores).any():
        factors = forbidding(factors)
    node, counts = np.empty(scores.shape), np.zeros(len(edges.score))
    log_z = forward_backward(
        scores.copy(), len(scores), factors, node, np.empty(len(scores)), 2.5, counts
    )
    finish(factors, counts)
    assert_allclose(log_z, expected_log_z, rtol=1e-13, atol=1e-12)
    assert_allclose(node, expected_node, atol=1e-11)
    first = np.repeat(np.arange(len(transition)), np.diff(edges.leaving.indptr))
    expected = 2.5 * expected_pairs.sum(axis=0)
    assert_allclose(counts, expected[first, edges.leaving.into], atol=1e-10)


@pytest.mark.parametrize(
    "scores",
    [[[0.0, -40, -40], [-200, 0, -200]], [[0.0, -200, -200], [-40, 0, -40]]],
    ids=["forward", "backward"],
)
def test_sums_do_not_cancel(scores):
    # Nearly all of the total belongs to a listed transition that hardly counts.
    scores, transition = np.array(scores), np.zeros((3, 3))
    transition[0, 1] = -60
    expected_log_z, expected_node, _ = naive.listed_marginals(scores, transition)
    factors = factors_of(listed(transition, np.empty((0, 0), bool)), 2)
    node, counts = np.empty(scores.shape), np.zeros(1)
    log_z = forward_backward(scores.copy(), 2, factors, node, np.empty(2), 1.0, counts)
    assert_allclose(log_z, expected_log_z, rtol=1e-12)
    assert_allclose(node, expected_node, rtol=1e-9, atol=1e-12)


def chunks(n_labels, *, seed=0, n_sequences=30):
    """Sequences in which few transitions occur."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, size=n_sequences)
    y = np.cumsum(rng.integers(0, 3, size=lengths.sum())) % n_labels
    y[:n_labels] = np.arange(n_labels)
    X = (rng.random((len(y), 6)) < 0.4) * rng.normal(size=(len(y), 6))
    return X, y.astype(np.int32), np.concatenate([[0], np.cumsum(lengths)]), rng


@pytest.mark.parametrize("options", [(0, False, False, True), (2, True, False, False)])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_objective_and_curvature_are_the_same(options, n_jobs, always_listed, monkeypatch):
    X, y, offsets, rng = chunks(9)
    data = packed_set(as_rows(X), offsets, y, rng.choice([0.5, 1.0], len(offsets) - 1))
    sparse = make_objective(data, 6, 9, options)
    list_from(monkeypatch, 100)
    dense = make_objective(data, 6, 9, options)
    assert isinstance(sparse.likelihood.edges, Listed)
    assert isinstance(dense.likelihood.edges, Dense)
    theta = random_theta(rng, dense)
    value, gradient = evaluate(sparse, theta, n_jobs)
    expected_value, expected_gradient = evaluate(dense, theta, n_jobs)
    assert_allclose(value, expected_value, rtol=1e-13)
    assert_allclose(gradient, expected_gradient, atol=1e-11)
    assert np.count_nonzero(gradient) > 20
    with decoding.range_runner(offsets, n_jobs) as run:
        found, expected = np.empty((2, dense.size))
        sparse.curvature(theta, found, run)
        dense.curvature(theta, expected, run)
    # What has no weight has no use for its curvature.
    free = np.delete(np.arange(dense.size), dense.vector.pinned)
    assert_allclose(found[free], expected[free], atol=1e-11)


@pytest.mark.slow  # compiles it for lists
@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_the_ascent_is_the_same_where_all_is_listed(always_listed, monkeypatch, l1):
    X, y, offsets, rng = chunks(4)
    data = packed_set(as_rows(X), offsets, y, rng.choice([0.5, 1.0], len(offsets) - 1))
    sparse = make_objective(data, 6, 4, (0, False, True, True))
    list_from(monkeypatch, 100)
    dense = make_objective(data, 6, 4, (0, False, True, True))
    assert sparse.likelihood.edges.n_scores == 16
    found, expected = (ascend(objective, l1) for objective in (sparse, dense))
    assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert np.count_nonzero(expected) > 20
    assert np.any(dense.vector.shape.split(expected).transition != 0)


def ascend(objective, l1, n_epochs=6):
    """Weights after some epochs of dual-free ascent."""
    epochs = dual_free_epochs(objective, objective.new_memory(), l1)
    return [theta for theta, *_ in islice(epochs, n_epochs)][-1]


@pytest.mark.slow  # as above
def test_the_start_is_near_the_minimum(always_listed):
    X, y, offsets, _ = chunks(9, n_sequences=200)
    data = packed_set(as_rows(X), offsets, y, np.ones(len(offsets) - 1))
    objective = make_objective(data, 6, 9)
    assert 0 < objective.likelihood.edges.n_scores < 40
    zero = np.zeros(objective.size)
    minimum = minimize(lambda theta: evaluate(objective, theta), zero, jac=True).fun
    value, _ = evaluate(objective, stochastic_start(objective))
    assert minimum <= value < 1.02 * minimum
    assert evaluate(objective, zero)[0] > 1.2 * minimum


@pytest.mark.parametrize("constraint", [None, "IOB2"])
def test_taggers_learn_and_predict_the_same(constraint, always_listed, monkeypatch):
    X, y, offsets, _ = chunks(7)
    names = np.array(["O", "B-a", "I-a", "B-b", "I-b", "B-c", "I-c"])
    labels = [names[part] for part in np.split(y, offsets[1:-1])]
    for part in labels:
        for t, label in enumerate(part):
            if label[0] == "I" and (t == 0 or part[t - 1][2:] != label[2:]):
                part[t] = "B" + label[1:]
    batch = SequenceBatch(X, offsets)
    labels = [part.tolist() for part in labels]
    crf = CRFTagger(tol=1e-10, constraint=constraint, l2=0.3)
    sparse = crf.fit(batch, labels)
    proba, nbest = sparse.predict_proba(batch), sparse.predict(batch)
    list_from(monkeypatch, 100)
    for a, b in zip(proba, sparse.predict_proba(batch), strict=True):
        assert_allclose(a, b, atol=1e-12)
    assert list(nbest) == list(sparse.predict(batch))
    coef = sparse.coef_
    assert_allclose(coef, crf.fit(batch, labels).coef_, atol=1e-5)


def test_many_labels_are_listed_and_few_are_not():
    transition = np.zeros((128, 128))
    transition[0] = 1.0
    for programme in decoding.LIMITS:
        assert len(decoding.list_transitions(transition, programme).score) == 128
        assert isinstance(decoding.list_transitions(transition[:90, :90], programme), Dense)
    # A share that pays for some programmes.
    for n_rows, listed in ((2, ["sums", "online"]), (6, ["sums"]), (7, [])):
        transition[:n_rows] = 1.0
        edges = {name: decoding.list_transitions(transition, name) for name in decoding.LIMITS}
        found = [name for name in edges if isinstance(edges[name], Listed)]
        assert found == listed


def test_many_labels_that_are_forbidden():
    """A constraint on the labels of 40 types, in a fit and in a prediction."""
    rng = np.random.default_rng(0)
    types = [f"T{i}" for i in range(40)]
    y = [[f"B-{t}", f"I-{t}", "O", f"B-{t}"] for t in types]
    X = [rng.normal(size=(4, 5)) for _ in y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        crf = CRFTagger(constraint="IOB2", max_iter=15).fit(X, y)
        perceptron = PerceptronTagger(constraint="IOB2", max_iter=3, random_state=0).fit(X, y)
    for tagger in (crf, perceptron):
        for row in tagger.predict(X):
            for before, label in zip(["O", *row], row, strict=False):
                assert label[0] != "I" or before[2:] == label[2:]
    assert_allclose([p.sum(axis=1) for p in crf.predict_proba(X)], 1.0, atol=1e-12)


# ------------------------------------------------------------------------------- online learners

ONLINE = {
    "perceptron": PerceptronTagger(),
    "perceptron, last weights": PerceptronTagger(average=False, fit_intercept=False),
    "perceptron, pieces": PerceptronTagger(mini_length=2.5),
    "perceptron, shards": PerceptronTagger(n_jobs=2),
    "mira": MIRATagger(),
    "mira, 4 best": MIRATagger(n_best=4, C=0.1),
    "sapo": SAPOTagger(),
    "sapo, averaged": SAPOTagger(n_best=3, average=True, l2=5.0, decay=0.9),
    "arow": AROWTagger(),
    "arow, pieces in shards": AROWTagger(structure_alpha=2, n_jobs=2, gamma=3.0),
    "crfsuite, pa": OnlineCRF(rule="pa"),
    "crfsuite, ap": OnlineCRF(rule="ap"),
}
LEARNT = ("coef_", "transition_", "intercept_", "start_", "end_")


def entities(n_types, n_sequences=60, seed=0):
    """Sequences with labels in IOB2, and features that say something about them."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        labels = []
        while len(labels) < rng.integers(1, 9):
            kind = rng.integers(n_types)
            labels += [f"B-{kind}"] + [f"I-{kind}"] * rng.integers(3) + ["O"] * rng.integers(3)
        hints = [(int(label[2:]) + 1 if label != "O" else 0) for label in labels]
        X.append(
            np.eye(n_types + 1)[hints] + rng.normal(scale=0.3, size=(len(labels), n_types + 1))
        )
        y.append(labels)
    return SequenceBatch.from_lengths(np.concatenate(X), [len(x) for x in X]), y


def assert_same_weights(found, expected):
    for name in LEARNT:
        assert_array_equal(getattr(found, name), getattr(expected, name))
    for name, column in expected.history_.items():
        if name != "time":
            assert_array_equal(found.history_[name], column)


@pytest.mark.parametrize("constraint", [None, "IOB2"])
@pytest.mark.slow  # compiles each learner for a list that grows
@pytest.mark.parametrize("name", ONLINE)
def test_online_learners_learn_the_same_bits(name, constraint, always_listed, monkeypatch):
    batch, y = entities(4)
    tagger = clone(ONLINE[name]).set_params(
        constraint=constraint, max_iter=4, tol=None, random_state=0
    )
    lists, n_at_first = [], []

    def counted(transition, programme):
        lists.append(decoding.list_transitions(transition, programme))
        if isinstance(lists[-1], Listed):
            n_at_first.append(lists[-1].indptr[-1])
        return lists[-1]

    monkeypatch.setattr(learner, "list_transitions", counted)
    listed = clone(tagger).fit(batch, y)
    assert all(isinstance(edges, Listed) for edges in lists)
    # Lists grow as the learner goes.
    assert n_at_first[0] < lists[-1].indptr[-1] <= listed.transition_.size
    list_from(monkeypatch, 100)
    dense = clone(tagger).fit(batch, y)
    assert isinstance(lists[-1], Dense)
    assert_same_weights(listed, dense)
    assert np.count_nonzero(listed.transition_) > 5


@pytest.mark.slow  # as above
@pytest.mark.parametrize("name", ["perceptron", "mira, 4 best", "sapo", "arow"])
def test_portions_are_learned_to_the_same_bits(name, always_listed, monkeypatch):
    batch, y = entities(4)
    taggers = [clone(ONLINE[name]).set_params(random_state=0) for _ in range(2)]
    classes = sorted({label for row in y for label in row})
    for tagger, fewest in zip(taggers, (0, 100), strict=True):
        list_from(monkeypatch, fewest)
        for part in (slice(0, 20), slice(20, 60)):
            tagger.partial_fit(batch[part], y[part], classes=classes)
    assert_same_weights(*taggers)


@pytest.mark.slow  # as above
def test_lists_hold_what_differs_from_the_defaults(always_listed):
    """After learning, what is not listed has no weight."""
    batch, y = entities(5)
    tagger = PerceptronTagger(
        constraint="IOB2", average=False, max_iter=3, tol=None, random_state=0
    ).fit(batch, y)
    sparse = decoding.list_transitions(tagger.transition_, "best")
    named = tagger.classes_[sparse.origin], np.repeat(tagger.classes_, np.diff(sparse.indptr))
    gold = {pair for row in y for pair in pairwise(row)}
    allowed = [
        (a, b)
        for a, b in zip(*named, strict=True)
        if b[0] != "I" or a[1:] == b[1:] or (a, b) in gold
    ]
    assert len(allowed) == len(sparse.origin)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=30))
def test_transitions_are_inserted_in_order(transitions):
    into = GrowingList(np.zeros(5), np.zeros(6, np.int64), np.empty(25, np.int32), np.empty(25))
    for score, (i, j) in enumerate(transitions):
        list_transition(into, i, j, float(score))
    expected = sorted({(j, i): score for score, (i, j) in enumerate(transitions)}.items())
    second = np.repeat(np.arange(5), np.diff(into.indptr)).tolist()
    first, scores = (part[: into.indptr[-1]].tolist() for part in (into.origin, into.score))
    assert list(zip(zip(second, first, strict=True), scores, strict=True)) == expected


@pytest.mark.slow  # compiles a learner with a beam
def test_a_beam_reads_all_transitions(always_listed):
    batch, y = entities(3, 10)
    beam = MIRATagger(n_best=3, search="beam", max_iter=2, tol=None, random_state=0)
    beam.fit(batch, y)
