"""Learning from shards, without a cluster: the same bits as threads of one process."""

from itertools import pairwise

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.learners import labelled_sequences
from helpers.lists import list_from
from helpers.marks import compiled
from helpers.objectives import crf_objective, learnable_data, random_theta, training_set
from helpers.shards import OneProcess, cut
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skstruct import (
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    SequenceVectorizer,
)
from skstruct.blocks.dense import DenseBlock
from skstruct.blocks.looked_up import LookedUpBlock
from skstruct.blocks.rows import Placed
from skstruct.dask.learning import learn, merge_columns
from skstruct.dask.shard import read
from skstruct.dask.sums import ShardedLikelihood, ShardedObjective, find_positions
from skstruct.input import training_set as training_set_of_batch
from skstruct.input.constraints import read_constraint
from skstruct.learning.layout import (
    RowLayout,
    lay_out,
    merge_observed,
    observe,
    restrict,
    sum_observed,
)
from skstruct.learning.monitor import Monitor
from skstruct.learning.start import dual_free_epochs, stochastic_start
from skstruct.utils.declared import unpack_strings
from skstruct.utils.parallel import range_runner

LEARNT = ("classes_", "coef_", "transition_", "intercept_", "start_", "end_")


def learn_from_shards(tagger, parts, *, vectorizer=None, classes=None, dtype="float64"):
    """Tagger that has learnt from pairs of X and y."""
    tagger = clone(tagger)
    tagger._keep(learn(tagger, OneProcess(), parts, vectorizer, classes, Monitor, dtype))
    return tagger


def assert_same_bits(tagger, other):
    for name in LEARNT:
        assert_array_equal(getattr(tagger, name), getattr(other, name), err_msg=name)
    assert tagger.n_weights_ == other.n_weights_
    assert_array_equal(tagger.history_["objective"], other.history_["objective"])


def numbers_and_labels(values="real"):
    X, y = learnable_data(np.random.default_rng(3).integers(0, 6, 40), n_features=9)
    if values == "ones":
        X = [(x > 0).astype(float) for x in X]
    return SequenceBatch.from_sequences(X), y


@pytest.mark.parametrize("n_shards", [1, 2, 3])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"l1": 0.3},
        {"min_freq": 2},
        {"all_possible_states": True, "all_possible_transitions": True},
        {"fit_intercept": False, "l2": 0.1},
        {"class_weight": {"A": 2.0, "B": 0.5}},
        {"label_cost": {("A", "B"): 2.0, ("C", "A"): 0.5}},
    ],
    ids=str,
)
def test_bits_are_those_of_threads(params, n_shards):
    X, y = labelled_sequences(40)
    tagger = CRFTagger(n_jobs=n_shards, tol=1e-6, **params)
    found = learn_from_shards(tagger, cut(X, y, n_shards))
    expected = tagger.fit(X, y)
    assert_same_bits(found, expected)
    assert_array_equal(found.feature_names_in_, expected.feature_names_in_)
    assert found.predict(X).tolist() == expected.predict(X).tolist()


@pytest.mark.parametrize("values", ["ones", "real"])
@pytest.mark.parametrize("n_shards", [2, 5])
def test_batches_of_numbers(values, n_shards):
    X, y = numbers_and_labels(values)
    tagger = CRFTagger(n_jobs=n_shards, tol=1e-6)
    assert_same_bits(learn_from_shards(tagger, cut(X, y, n_shards)), tagger.fit(X, y))


def test_names_of_columns_are_kept():
    X, y = numbers_and_labels()
    named = SequenceBatch(X.X, X.offsets, feature_names=[f"f{i}" for i in range(9)])
    tagger = learn_from_shards(CRFTagger(), [(named[:0], []), *cut(named, y, 2)])
    assert_array_equal(tagger.feature_names_in_, named.feature_names)
    assert not hasattr(learn_from_shards(CRFTagger(), cut(X, y, 2)), "feature_names_in_")


def test_partly_labelled_sequences():
    X, y = labelled_sequences(40)
    # One shard has no label at all, one knows all.
    y = [[None] * len(labels) for labels in y[:9]] + [
        [None if t % 2 and i < 30 else label for t, label in enumerate(labels)]
        for i, labels in enumerate(y[9:])
    ]
    parts = [(X[a:b], y[a:b]) for a, b in ((0, 9), (9, 25), (25, 40))]
    found = learn_from_shards(CRFTagger(tol=1e-8), parts)
    expected = CRFTagger(tol=1e-8).fit(X, y)
    assert found.n_weights_ == expected.n_weights_
    assert_allclose(found.history_["objective"][0], expected.history_["objective"][0])
    assert_allclose(found.coef_, expected.coef_, atol=1e-3)


def test_a_constraint(addresses):
    X, y = (part[:60] for part in addresses)
    tagger = CRFTagger(constraint="IOB2", n_jobs=2, tol=1e-3)
    assert_same_bits(learn_from_shards(tagger, cut(X, y, 2)), tagger.fit(X, y))


def test_many_labels_list_their_transitions(monkeypatch):
    list_from(monkeypatch, 3)
    X, y = labelled_sequences(40)
    tagger = CRFTagger(n_jobs=2, tol=1e-6)
    assert_same_bits(learn_from_shards(tagger, cut(X, y, 2)), tagger.fit(X, y))


def test_empty_partitions_and_partitions_that_lack_something():
    X, y = labelled_sequences(30)
    full = cut(X, y, 3)
    nothing = ([], [])
    silent = ([[]], [[]])
    bare = ([[{}], [{}, {}]], [["A"], ["C", "C"]])
    parts = [nothing, full[0], silent, full[1], bare, full[2], nothing]
    X, y = ([s for part in parts for s in part[column]] for column in (0, 1))
    found = learn_from_shards(CRFTagger(tol=1e-8), parts)
    expected = CRFTagger(tol=1e-8).fit(X, y)
    assert_array_equal(found.feature_names_in_, expected.feature_names_in_)
    assert_array_equal(found.classes_, expected.classes_)
    assert_allclose(found.history_["objective"][-1], expected.history_["objective"][-1], rtol=1e-7)
    assert_allclose(found.coef_, expected.coef_, atol=1e-3)


def test_single_precision_on_the_way():
    X, y = labelled_sequences(40)
    plain = CRFTagger(tol=1e-4).fit(X, y)
    found = learn_from_shards(CRFTagger(tol=1e-4), cut(X, y, 3), dtype="float32")
    assert found.coef_.dtype == np.float64
    assert found.suboptimality_bound_ <= 1e-4 * found.history_["objective"][-1]
    assert_allclose(found.history_["objective"][-1], plain.history_["objective"][-1], rtol=3e-4)


# Columns and vocabularies


@pytest.mark.parametrize("n_columns", [40, 10**9])
def test_columns_are_numbered_in_their_order(n_columns):
    """Whether there are fewer columns than entries or more."""
    rng = np.random.default_rng(0)
    indices = np.sort(rng.choice(n_columns, (60, 3)), axis=1).astype(np.int32)
    matrix = sp.csr_matrix(
        (np.ones(180), indices.ravel(), np.arange(0, 181, 3)), shape=(60, n_columns)
    )
    matrix.sum_duplicates()
    shard = read(SequenceBatch(matrix, [0, 60]), [["A"] * 60], (None, None, None))
    columns = sorted(set(matrix.indices.tolist()))
    assert shard.summary.columns.tolist() == columns
    assert shard.summary.columns.dtype == shard.rows.indices.dtype == np.int32
    expected = [columns.index(column) for column in matrix.indices.tolist()]
    assert shard.rows.indices.tolist() == expected
    assert shard.summary.n_features == n_columns


@pytest.mark.parametrize("min_freq", [1, 2, 5])
def test_vocabularies_are_merged(min_freq):
    X, y = labelled_sequences(40)
    vectorizer = SequenceVectorizer(min_freq=min_freq)
    shards = [read(*part, (vectorizer, None, None)) for part in cut(X, y, 4)]
    n_features, united, numbers = merge_columns([shard.summary for shard in shards], vectorizer)
    expected = clone(vectorizer).fit(X)
    assert united.vocabulary_ == expected.vocabulary_
    assert n_features == len(expected.feature_names_)
    for shard, of_shard in zip(shards, numbers, strict=True):
        for name, number in zip(unpack_strings(shard.summary.columns), of_shard, strict=True):
            assert number == expected.vocabulary_.get(name, -1)


def test_a_vectorizer_drops_rare_features_of_all_shards():
    X, y = labelled_sequences(40)
    vectorizer = SequenceVectorizer(min_freq=12)
    tagger = CRFTagger(n_jobs=2, tol=1e-6)
    found = learn_from_shards(tagger, cut(X, y, 2), vectorizer=vectorizer)
    batch = vectorizer.fit_transform(X)
    assert 0 < batch.n_features < SequenceVectorizer().fit_transform(X).n_features
    assert_same_bits(found, tagger.fit(batch, y))
    assert found.predict(X).tolist() == tagger.predict(batch).tolist()


def test_features_that_are_arrays():
    rng = np.random.default_rng(0)
    X = [[{"v": rng.normal(size=3), "word": str(t % 3)} for t in range(n)] for n in (3, 4, 2, 5)]
    y = [["A", "B", "A", "C", "B"][: len(x)] for x in X]
    tagger = CRFTagger(n_jobs=2, tol=1e-6)
    assert_same_bits(learn_from_shards(tagger, cut(X, y, 2)), tagger.fit(X, y))
    X[3][0]["v"] = np.ones(2)
    parts = [(X[:3], y[:3]), ([X[3][:1]], [["A"]])]
    message = "Partition 1: feature 'v' is an array of 2 numbers, but of 3 in partition 0"
    with pytest.raises(ValueError, match=message):
        learn_from_shards(tagger, parts)


def words_and_vectors(n=40):
    """Batch of a table of vectors, words and a matrix, and the labels."""
    X, y = labelled_sequences(n)
    words, rng = SequenceVectorizer().fit_transform(X), np.random.default_rng(1)
    table = rng.normal(size=(7, 3)).astype(np.float32)
    numbers = rng.integers(-1, 7, size=(words.n_rows, 2))
    blocks = LookedUpBlock(table, numbers, 0.5), DenseBlock(rng.normal(size=(words.n_rows, 4)))
    first, last = (
        SequenceBatch._of_blocks(None, (Placed(0, block),), words.offsets) for block in blocks
    )
    return SequenceBatch.hstack([first, words, last]), y


@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize(
    "params",
    [{}, {"l1": 0.3}, {"min_freq": 3}, {"order": 2}, {"all_possible_states": True}],
    ids=str,
)
def test_vectors_stay_blocks(monkeypatch, params, n_shards):
    batch, y = words_and_vectors()
    seen, most = [], np.diff(batch._columns()[0].indptr).max()
    monkeypatch.setattr(
        training_set_of_batch,
        "as_rows",
        lambda X, make=training_set_of_batch.as_rows: seen.append(X) or make(X),
    )
    tagger = CRFTagger(tol=1e-8, max_iter=500, **params)
    found = learn_from_shards(tagger, cut(batch, y, n_shards))
    assert max(np.diff(X.indptr).max() for X in seen) <= most
    assert "X" not in vars(batch)
    tagger.fit(batch, y)
    assert found.n_weights_ == tagger.n_weights_
    objectives = (fitted.history_["objective"] for fitted in (found, tagger))
    (first, *_, last), (expected_first, *_, expected_last) = objectives
    assert_allclose([first, last], [expected_first, expected_last], rtol=1e-9)
    for name in ("coef_", "transition_", "intercept_"):
        assert_allclose(getattr(found, name), getattr(tagger, name), atol=1e-4)


@pytest.mark.parametrize("params", [{}, compiled({"order": 2}), {"l1": 0.3}], ids=str)
def test_the_start_visits_vectors(monkeypatch, params):
    batch, y = words_and_vectors()
    whole = CRFTagger(tol=1e-8, max_iter=500, **params).fit(batch, y)
    monkeypatch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 10)
    found = learn_from_shards(CRFTagger(tol=1e-8, max_iter=500, **params), cut(batch, y, 2))
    known = found.history_["objective"][~np.isnan(found.history_["gradient_norm"])]
    assert known[0] < 0.97 * whole.history_["objective"][0]
    assert_allclose(known[-1], whole.history_["objective"][-1], rtol=1e-6)


@pytest.mark.parametrize(
    "tagger",
    [PerceptronTagger(), MIRATagger(), SAPOTagger(), CRFTagger(solver="sgd")],
    ids=lambda tagger: type(tagger).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_online_learners_of_shards_take_blocks(tagger):
    batch, y = words_and_vectors()
    sparse = SequenceBatch(sp.csr_matrix(batch.X), batch.offsets)
    tagger.set_params(max_iter=4, random_state=0)
    ours, theirs = (learn_from_shards(tagger, cut(X, y, 3)) for X in (batch, sparse))
    # They multiply vectors in single precision.
    for name in LEARNT[1:]:
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("min_freq", [1, 14])
def test_arrays_that_only_some_shards_have(min_freq):
    rng = np.random.default_rng(0)
    X = [[{"v": rng.normal(size=40), "v:1x": 1.0} for _ in range(n)] for n in (3, 4, 2, 5)]
    y = [["A", "B", "A", "C", "B"][: len(x)] for x in X]
    # Too few for a block of the second shard.
    for token in (*X[2], *X[3][1:]):
        del token["v"]
    vectorizer = SequenceVectorizer(min_freq=min_freq)
    parts = [(X[:2], y[:2]), (X[2:], y[2:])]
    tagger = CRFTagger(all_possible_states=True, tol=1e-8)
    found = learn_from_shards(tagger, parts, vectorizer=vectorizer)
    expected = tagger.fit(vectorizer.fit_transform(X), y)
    assert_array_equal(found.feature_names_in_, expected.feature_names_in_)
    assert found.n_features_in_ == (41 if min_freq == 1 else 1)
    assert_allclose(found.coef_, expected.coef_, atol=1e-4)


# The layout


def test_observations_are_merged_to_the_same_layout():
    X, y = numbers_and_labels()
    data, n_features, n_labels = training_set(X, y), 9, 3
    weight = np.ones(len(data.labels))
    whole = observe(data.rows, data.labels, weight, n_features, n_labels)
    parts, numbers = [], []
    for a, b in pairwise([0, 7, 10, 11, 15, 22, 30, 40]):
        part = data.take(np.arange(a, b))
        own = np.unique(part.rows.indices)
        rows = part.rows._replace(indices=np.searchsorted(own, part.rows.indices).astype(np.int32))
        found = observe(rows, part.labels, np.ones(len(part.labels)), len(own), n_labels)
        parts.append(sum_observed(found, n_labels))
        numbers.append(own)
    size = n_features, n_labels
    by_frequency = merge_observed(iter(parts), numbers, *size)
    without = [part._replace(values=np.empty(0)) for part in parts]
    any_frequency = merge_observed(iter(without), numbers, *size, by_frequency=False)
    assert not any_frequency.values.size
    for min_freq, every_label in ((0, False), (1.5, False), (0, True)):
        merged = by_frequency if min_freq else any_frequency
        assert_array_equal(merged.order, whole.order)
        expected = lay_out(whole, n_labels, min_freq, every_label)
        found = lay_out(merged, n_labels, min_freq, every_label)
        for a, b in zip(found, expected, strict=True):
            assert_array_equal(a, b)
        of_shards = find_positions(expected, expected.n_places + 3, numbers)
        for own, positions in zip(numbers, of_shards, strict=True):
            layout, positions = restrict(expected, own), positions.as_array()
            assert np.all(np.diff(positions) > 0)
            assert_array_equal(positions[layout.n_places :], expected.n_places + np.arange(3))
            for f, place, width in zip(own, layout.place, layout.width, strict=True):
                if expected.place[f] < 0:
                    assert place == -1
                    continue
                start = expected.place[f]
                assert_array_equal(positions[place : place + width], start + np.arange(width))
                assert (place < len(layout.labels)) == (start < len(expected.labels))
                if place < len(layout.labels):
                    where = slice(start, start + width)
                    assert_array_equal(layout.labels[place : place + width], expected.labels[where])


def test_positions_are_kept_as_rows():
    n, nothing = 500, np.empty(0, np.int64)
    layout = RowLayout(2 * np.arange(n)[::-1], np.full(n, 2, np.int32), nothing, nothing, 2 * n)
    (positions,) = find_positions(layout, 2 * n + 5, [np.arange(0, n, 2)])
    expected = np.concatenate(
        [(4 * np.arange(n // 2)[:, None] + [2, 3]).ravel(), 1000 + np.arange(5)]
    )
    assert len(positions) == len(expected)
    assert_array_equal(positions.as_array(), expected)
    vector = np.arange(2 * n + 5) / 3
    taken = positions.take(vector, np.float32)
    assert_array_equal(taken, vector[expected].astype(np.float32))
    added = vector.copy()
    positions.add(taken, added)
    vector[expected] += taken
    assert_array_equal(added, vector)


# The stochastic start


def sharded(X, y, n_shards, n_features=9, n_labels=3, **params):
    """The objective of data in this process, and the same in shards."""
    data = training_set(X, y)
    objective = crf_objective(data, n_features, n_labels, **params)
    whole = [
        data.take(np.arange(a, b)) for a, b in pairwise(np.linspace(0, 40, n_shards + 1, dtype=int))
    ]
    numbers, sets = [], []
    for part in whole:
        own = np.unique(part.rows.indices)
        indices = np.searchsorted(own, part.rows.indices).astype(np.int32)
        sets.append(part._replace(rows=part.rows._replace(indices=indices)))
        numbers.append(own)
    observed = observe(data.rows, data.labels, None, n_features, n_labels)
    layout = lay_out(observed, n_labels, 0, False)
    likelihood = ShardedLikelihood(
        OneProcess(), sets, numbers, layout, objective.vector, objective.partial, "float64"
    )
    return objective, ShardedObjective(likelihood, objective.vector, objective.l2)


@pytest.mark.parametrize("n_shards", [1, 4])
def test_sums_of_shards_are_those_of_the_whole(n_shards):
    objective, shards = sharded(*numbers_and_labels(), n_shards, l2=0.5)
    theta = random_theta(np.random.default_rng(0), objective)
    found, expected = np.empty((2, objective.size))
    with range_runner(objective.offsets, 1) as run:
        value = objective.value_and_gradient(theta, expected, run)
        assert_allclose(shards.value_and_gradient(theta, found, None), value, rtol=1e-14)
        assert_allclose(found, expected, atol=1e-12)
        objective.curvature(theta, expected, run)
        shards.curvature(theta, found, None)
        assert_allclose(found, expected, atol=1e-12)
    assert_allclose(shards.bound_at_zero, objective.bound_at_zero)
    assert_allclose(shards.mean_square, objective.mean_square)
    assert shards.n_tokens == objective.n_tokens


@pytest.mark.parametrize("l1", [0.0, 0.2])
@pytest.mark.parametrize("n_shards", [1, 4])
def test_weights_of_the_start_are_conjugate_to_what_all_shards_remember(monkeypatch, n_shards, l1):
    # Otherwise the ascent has a larger penalty than the model.
    monkeypatch.setattr("skstruct.learning.start._L1_FACTOR", 0.0)
    X, y = numbers_and_labels()
    objective, shards = sharded(X, y, n_shards, l2=0.7)
    states, free = shards.new_memory(), np.ones(objective.size)
    free[objective.vector.pinned] = 0.0
    epochs, ascent = dual_free_epochs(shards, states, l1), shards.ascent(free, 0.7, l1, states)
    vector = np.zeros(objective.size)
    theta = vector if l1 == 0 else np.zeros(objective.size)
    for _ in range(4):
        assert ascent.epoch(vector, theta)
        vector[objective.vector.pinned] = theta[objective.vector.pinned] = 0.0
        found, *_ = next(epochs)
    assert_array_equal(found, theta)
    memories = [state.memory for state in ascent._states]
    node = np.concatenate([memory.node for memory in memories]).astype(float)
    pairs = np.concatenate([memory.transition for memory in memories]).astype(float)
    total = naive.zero_weights(3, 9)
    for x, (a, b), of_sequence in zip(X, pairwise(X.offsets), pairs, strict=True):
        if b > a:
            kept = node[a:b], of_sequence.reshape(1, 3, 3)
            for part, addend in zip(total, naive.expected_features(x, *kept), strict=True):
                part -= addend / 0.7
    weights = {"weights": total.coef.T, "transition": total.transition}
    biases = {name: getattr(total, name) for name in ("intercept", "start", "end")}
    chain = objective.unpack(vector)._replace(**weights, **biases)
    assert_allclose(vector, objective.pack(chain), atol=1e-9)
    assert_allclose(theta, np.sign(vector) * np.maximum(np.abs(vector) - l1 / 0.7, 0), atol=1e-12)


@pytest.mark.parametrize("n_shards", [1, 2, 5])
def test_the_start_comes_near_the_minimum(n_shards):
    objective, shards = sharded(*numbers_and_labels(), n_shards, l2=2.0)
    X, y = numbers_and_labels()
    minimum = CRFTagger(l2=2.0, tol=1e-9).fit(X, y).history_["objective"][-1]
    gradient = np.empty(objective.size)
    theta = stochastic_start(shards)
    value = shards.value_and_gradient(theta, gradient, None)
    at_zero = shards.value_and_gradient(np.zeros(objective.size), gradient, None)
    assert minimum <= value < minimum + 0.2 * (at_zero - minimum)


@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_a_fit_goes_on_from_the_start(monkeypatch, l1):
    X, y = labelled_sequences(60)
    whole = CRFTagger(tol=1e-8, l1=l1).fit(X, y)
    monkeypatch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 50)
    objectives = []
    for n_shards in (1, 4, 4):
        tagger = learn_from_shards(CRFTagger(tol=1e-8, l1=l1), cut(X, y, n_shards))
        objectives.append(tagger.history_["objective"])
        # Of an ascent with an L1 penalty, only the objective of some epochs is known.
        known = objectives[-1][~np.isnan(tagger.history_["gradient_norm"])]
        assert known[0] < 0.97 * whole.history_["objective"][0]
        assert_allclose(objectives[-1][-1], whole.history_["objective"][-1], rtol=1e-6)
    assert_array_equal(objectives[1], objectives[2])


def test_no_start_where_a_shard_would_need_too_much_memory(monkeypatch):
    _, shards = sharded(*numbers_and_labels(), 2, l2=2.0)
    monkeypatch.setattr("skstruct.learning.ascent._MOST_MEMORY", 10)
    assert stochastic_start(shards) is None


# Errors


X, Y = labelled_sequences(8)
PARTS = [(X[:4], Y[:4]), (X[4:], Y[4:])]
NAMED, SWAPPED = (
    SequenceBatch(np.eye(2), [0, 1, 2], feature_names=names) for names in (["a", "b"], ["b", "a"])
)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([([], []), ([], [])], "Found an empty batch: at least one sequence is required"),
        ([([[]], [[]])], "Found no token: every sequence is empty"),
        ([([[{"a": 1}]], [[None]])], "No token has a label"),
        ([([[{}]], [["A"]])], "No attribute occurs in at least 1 token"),
        (
            [*PARTS, ([[{"a": 1}], [{"a": 1}, {"a": float("nan")}]], [["A"], ["A", "A"]])],
            "Partition 2: Sequence 1, token 1: feature 'a' is nan",
        ),
        (
            [*PARTS, ([[{"a": 1}], [{"a": 1}, {"b": 1}]], [["A"], ["A", 2.5]])],
            r"Partition 2: Sequence 1, token 1: label 2\.5 is neither",
        ),
        ([*PARTS, ([[{"a": 1}]], [["A", "B"]])], "Partition 2: Sequence 0 has 1 tokens, but 2 lab"),
        ([*PARTS, ([], [["A"]])], "Partition 2: X has 0 sequences, but y has labels for 1"),
        ([([[{"a": 1}]], [[1]]), *PARTS], "labels of partition 1 are strings, but in partition"),
        (
            [*PARTS, ([np.ones((1, 2))], [["A"]])],
            "features of partition 2 are numbers, but in partition 0 they are feature dicts",
        ),
        (
            [([np.ones((1, 2))], [["A"]]), ([np.ones((1, 3))], [["A"]])],
            "Partition 1 has 3 features, but partition 0 has 2",
        ),
        (
            [(NAMED[:1], [["A"]]), (NAMED[:0], []), (SWAPPED, [["A"], ["B"]])],
            "columns of partition 2 and of partition 0 differ in name or order",
        ),
        ([*PARTS, (None, [["A"]])], "Partition 2: X is None; expected a list of sequences"),
        ([*PARTS, (3, [["A"]])], "Partition 2: X is 3; expected a list of sequences"),
        ([*PARTS, ([[{"a": 1}]], None)], "Partition 2: y is None; expected a list of sequences"),
        ([(np.ones((2, 2)), ["A", "B"])], "Partition 0: X is a matrix"),
        (
            [(SequenceBatch(np.ones((1, 2)), [0, 1], transition_X=np.ones((1, 1))), [["A"]])],
            "Partition 0: DaskTagger does not learn transition features",
        ),
    ],
)
def test_errors_say_where(parts, message):
    with pytest.raises(ValueError, match=message):
        learn_from_shards(CRFTagger(), parts)


def test_labels_that_the_classes_lack():
    message = "Partition 0: Sequence 0, token 0: label '.' is not among the classes"
    with pytest.raises(ValueError, match=message):
        learn_from_shards(CRFTagger(), PARTS, classes=["Q"])
    tagger = learn_from_shards(CRFTagger(), PARTS, classes=["Q", "C", "B", "A"])
    assert tagger.classes_.tolist() == ["A", "B", "C", "Q"]


def test_labels_that_a_constraint_forbids():
    allowed = np.ones((3, 3), bool)
    y = [["A", "A"], ["B", "A"], ["A", "C"]]
    x = [[{"a": 1}] * 2] * 3
    allowed[1, 0] = False
    assert not read_constraint(allowed, np.array(["A", "B", "C"])).transition.all()
    parts = [(x[:1], y[:1]), (x[2:], y[2:]), (x[:2], y[:2])]
    message = "Partition 2: Sequence 1, token 1: 'A' may not follow 'B'"
    with pytest.raises(ValueError, match=message):
        learn_from_shards(CRFTagger(constraint=allowed), parts)


def test_all_classes_without_a_weight():
    weights = dict.fromkeys("ABC", 0.0)
    with pytest.raises(ValueError, match="at least one non-zero"):
        learn_from_shards(CRFTagger(class_weight=weights), PARTS)
