"""Blocks of vectors: each kind against the same matrix in CSR, in batches, fits and predictions."""

import pickle
import sys
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import chain as chained
from itertools import islice

import joblib
import numba
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.marks import compiled
from helpers.objectives import crf_objective
from helpers.objectives import training_set as training_set_of
from numba.core.registry import CPUDispatcher
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    CRFTaggerCV,
    EmbeddingVectorizer,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
    SequenceUnion,
    SequenceVectorizer,
    SpanTaggerCV,
    VectorScaler,
    WordVectorizer,
)
from skstruct.blocks import visits
from skstruct.blocks.dense import DenseBlock
from skstruct.blocks.looked_up import LookedUpBlock, stack_looked_up
from skstruct.blocks.protocol import PANEL
from skstruct.blocks.rows import BlockRows, Placed, stack_blocks
from skstruct.blocks.visits import vectors_of, visit_rows
from skstruct.compiled.jit import jit
from skstruct.compiled.lanes import LANES, PANEL_ROWS
from skstruct.crfsuite import CRF, OnlineCRF, Tagger, write_model
from skstruct.input import training_set
from skstruct.input.training_set import block_rows
from skstruct.inspection import PenaltyPathDisplay
from skstruct.learning.online import undo_of
from skstruct.learning.products import FEW
from skstruct.learning.start import dual_free_epochs
from skstruct.matrices import copied_arrays
from skstruct.metrics import token_accuracy_score
from skstruct.streams import fit_stream
from skstruct.utils.parallel import range_runner

LABELS = ["B-X", "I-X", "O"]


def dense_block(n_rows, dtype=np.float64, seed=0):
    matrix = np.random.default_rng(seed).normal(size=(n_rows, 6)).astype(dtype)
    return DenseBlock(matrix, 0.5)


def looked_up_block(n_rows, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(11, 3)).astype(dtype)
    return LookedUpBlock(table, rng.integers(-1, 11, size=(n_rows, 2)), 2.0)


KINDS = [dense_block, looked_up_block]


def make_batch(lengths=(4, 0, 3, 1, 5) * 6, kinds=KINDS, dtype=np.float64, words=True):
    """Batch of a block, sparse columns and another block."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n, rng = int(offsets[-1]), np.random.default_rng(1)
    parts = [
        SequenceBatch._of_blocks(None, (Placed(0, kind(n, dtype)),), offsets) for kind in kinds
    ]
    if words:
        X = sp.csr_matrix((rng.random((n, 9)) < 0.2).astype(float))
        parts.insert(1, SequenceBatch(X, offsets))
    y = [rng.choice(LABELS, size=length).tolist() for length in lengths]
    return SequenceBatch.hstack(parts), y


def flat(batch):
    """The same batch with sparse columns alone."""
    return SequenceBatch(sp.csr_matrix(batch.X), batch.offsets, transition_X=batch.transition_X)


# -------------------------------------------------------------------------------------------- kinds


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [0, 1, 7, 2 * PANEL + 3])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_products_are_those_of_the_matrix(kind, dtype, n_rows, n_jobs):
    block, rng = kind(n_rows, dtype), np.random.default_rng(5)
    X = block.toarray().astype(np.float64)
    weights, residual = rng.normal(size=(6, 3)), rng.normal(size=(n_rows, 3))
    tol = {"rtol": 1e-6, "atol": 1e-5 if dtype == np.float32 else 1e-9}
    with range_runner(np.arange(n_rows + 2), n_jobs) as run:
        scores = np.ones((n_rows, 3))
        block.add_scores(weights, scores, run)
        assert_allclose(scores, 1 + X @ weights, **tol)
        for add, matrix in ((block.add_gradient, X), (block.add_curvature, X**2)):
            found = np.ones((6, 3))
            add(residual, found, run)
            assert_allclose(found, 1 + matrix.T @ residual, **tol)
        quick, total = np.ones((n_rows, 3)), np.ones((6, 3))
        block.add_scores(weights, quick, run, precise=False)
        block.add_gradient(residual, total, run, precise=False)
        assert_allclose(quick, scores, rtol=1e-4, atol=1e-4)
        assert_allclose(total, 1 + X.T @ residual, rtol=1e-4, atol=1e-2)
        if n_rows > 1:
            assert np.array_equal(quick, scores) == (dtype == np.float64)
    fixed = np.ones((n_rows, 3))
    block.add_fixed_scores(weights, fixed)
    assert_allclose(fixed, 1 + X @ weights, **tol)
    assert_allclose(block.sum_of_squares(), np.square(X).sum(), rtol=1e-5)
    assert block.count() == np.count_nonzero(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_labels", [1, 7, LANES, 2 * LANES + 3])
@pytest.mark.parametrize("n_rows", [1, 6, 70])
def test_scores_of_predictions_are_added_up_column_by_column(dtype, n_labels, n_rows):
    """To the last bit: whatever the number of rows, and whatever the processor can fuse."""
    rng, n_columns = np.random.default_rng(n_labels), 300
    matrix = rng.normal(size=(n_rows, n_columns)).astype(dtype)
    numbers = rng.integers(-1, n_rows, size=(9, 2))
    weights, start = rng.normal(size=(2 * n_columns, n_labels)), rng.normal(size=(9, n_labels))
    products = []
    for part in (weights[:n_columns], weights[n_columns:]):
        total = np.zeros((n_rows, n_labels))
        for column in range(n_columns):
            total += np.outer(matrix[:, column].astype(np.float64), part[column])
        products.append(0.3 * total)
    expected, found = start.copy(), start.copy()
    for place, product in enumerate(products):
        has = numbers[:, place] >= 0
        expected[has] += product[numbers[has, place]]
    LookedUpBlock(matrix, numbers, 0.3).add_fixed_scores(weights, found)
    assert_array_equal(found, expected)
    found = np.zeros((n_rows, n_labels))
    DenseBlock(matrix, 0.3).add_fixed_scores(weights[:n_columns], found)
    assert_array_equal(found, products[0])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_selected_with_what_they_need(kind):
    block = kind(50)
    rows = np.array([3, 3, 0])
    assert_array_equal(block.take(rows).toarray(), block.toarray()[rows])
    assert_array_equal(block.take(slice(4, 9)).toarray(), block.toarray()[4:9])
    assert block.take(rows).nbytes < block.nbytes / 3
    assert_array_equal(block.times(3).toarray(), block.toarray() * 3)
    assert block.times(3).values() is not None
    assert np.shares_memory(block.times(3).values(), block.values())


def test_tables_are_merged():
    table = np.arange(12.0).reshape(4, 3)
    blocks = [
        LookedUpBlock(table[[2, 0]], np.array([[0, 1], [-1, 0]])),
        LookedUpBlock(table[[0, 3]], np.array([[1, 0]])),
    ]
    stacked = stack_looked_up(blocks)
    assert_array_equal(stacked.table, table[[2, 0, 3]])
    assert_array_equal(stacked.numbers, [[0, 1], [-1, 0], [2, 1]])
    assert stack_blocks([(Placed(0, blocks[0]),), (Placed(1, blocks[1]),)]) is None
    assert stack_blocks([(Placed(0, blocks[0]),), (Placed(0, blocks[1].times(2)),)]) is None


# ------------------------------------------------------------------------------------------ batches


def test_a_batch_keeps_blocks():
    batch, _ = make_batch()
    X = batch.X.toarray()
    assert "blocks=[DenseBlock" in repr(batch)
    assert f"X takes {batch.X.nnz * 12:,} bytes" in repr(make_batch()[0])
    assert not batch.X.data.flags.writeable
    fresh, _ = make_batch()
    for found, expected in (
        (fresh[3:9], flat(batch)[3:9]),
        (fresh[[7, 2]], flat(batch)[[7, 2]]),
        (fresh * 2.0, flat(batch) * 2.0),
        (pickle.loads(pickle.dumps(fresh)), flat(batch)),
        (SequenceBatch.concatenate([fresh[:5], fresh[5:]]), flat(batch)),
        (SequenceBatch.hstack([fresh, fresh]), SequenceBatch.hstack([flat(batch)] * 2)),
    ):
        assert "X" not in vars(found)
        assert len(found.blocks) in (2, 4)
        assert (found.n_rows, found.n_features) == expected.X.shape
        assert_allclose(found.X.toarray(), expected.X.toarray())
        assert_array_equal(found.offsets, expected.offsets)
    assert_array_equal(fresh[2].toarray(), flat(batch)[2].toarray())
    assert "X" not in vars(fresh)
    assert joblib.hash(fresh) == joblib.hash(make_batch()[0])
    mixed = SequenceBatch.concatenate([fresh, flat(fresh)])
    assert_array_equal(mixed.X.toarray(), np.concatenate([X, X]))


def test_blocks_without_other_columns_are_a_dense_matrix():
    batch, _ = make_batch(words=False)
    assert isinstance(batch.X, np.ndarray)
    assert batch.X.shape == (batch.n_rows, 12)
    assert batch.dtype == np.float64


def test_numbers_that_point_nowhere_are_refused():
    batch, y = make_batch()
    tagger = CRFTagger().fit(batch, y)
    for wrong in (99, -2):
        batch.blocks[1].block.numbers[4, 1] = wrong
        for call in (
            lambda: CRFTagger().fit(batch, y),
            lambda: tagger.predict(batch),
            lambda: batch.X,
            lambda: batch[:3],
            lambda: pickle.dumps(batch),
        ):
            with pytest.raises(
                ValueError, match=f"row 4 of a looked-up block has the number {wrong}"
            ):
                call()


# A longer table has the rows that there were.
@pytest.mark.parametrize(
    ("name", "axis"), [("matrix", 0), ("matrix", 1), ("numbers", 0), ("numbers", 1), ("table", 1)]
)
def test_arrays_of_other_shapes_are_refused(name, axis):
    batch, y = make_batch()
    tagger = CRFTagger(max_iter=2).fit(batch, y)
    block = next(block for _, block in batch.blocks if hasattr(block, name))
    array = getattr(block, name)
    setattr(block, name, np.concatenate([array] * 3, axis=axis))
    for call in (lambda: tagger.predict(batch), lambda: tagger.fit(batch, y), lambda: batch[:3]):
        with pytest.raises(ValueError, match="Make the batch again"):
            call()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("matrix", lambda array: array.astype(np.float16)),
        ("matrix", np.ravel),
        ("matrix", lambda array: array.astype(array.dtype.newbyteorder())),
        ("matrix", np.ma.array),
        ("table", lambda array: array.astype(object)),
        ("table", lambda array: None),
        ("numbers", lambda array: array.astype(np.float64)),
        ("numbers", np.ravel),
    ],
)
def test_arrays_of_other_types_are_refused(name, change):
    batch, y = make_batch()
    tagger = CRFTagger(max_iter=2).fit(batch, y)
    block = next(block for _, block in batch.blocks if hasattr(block, name))
    setattr(block, name, change(getattr(block, name)))
    for call in (
        lambda: tagger.predict(batch),
        lambda: tagger.predict_proba(batch),
        lambda: tagger.fit(batch, y),
        lambda: batch[:3],
    ):
        with pytest.raises(ValueError, match="Make the batch again"):
            call()


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (3e38, r"feature \S+ is \S+e\+38; values may be up to"),
        (1e200, r"a block of vectors has the factor 1e\+200"),
        (np.nan, "a block of vectors has the factor nan"),
    ],
)
def test_values_that_are_too_large_are_told_with_their_factor(factor, message):
    batch, y = make_batch()
    for _, block in batch.blocks:
        block.factor = factor
    with pytest.raises(ValueError, match=message):
        CRFTagger(max_iter=2).fit(batch, y)
    tiny = DenseBlock(np.full((8, 40), 1e-39, np.float32), factor)
    tiny = SequenceBatch._of_blocks(None, (Placed(0, tiny),), [0, 8])
    if factor == 3e38:
        tagger = CRFTagger(max_iter=2).fit(tiny, [["a", "b"] * 4])
        assert np.isfinite(tagger.coef_).all()
        return
    with pytest.raises(ValueError, match=message):
        CRFTagger(max_iter=2).fit(tiny, [["a", "b"] * 4])


def test_blocks_that_fit_no_batch_are_refused():
    """Arrays and the sizes that blocks say of themselves, both changed."""
    batch, y = make_batch()
    tagger = CRFTagger(max_iter=2).fit(batch, y)
    block = batch.blocks[0].block
    whole = block.matrix
    for matrix in (np.hstack([whole] * 9), whole[:2], whole[:, :1]):
        block.matrix = matrix
        block.n_rows, block.n_columns = matrix.shape
        if matrix.shape[1] == 1:
            # Fewer columns are zeros beyond.
            continue
        for call in (
            lambda: tagger.predict(batch),
            lambda: PerceptronTagger(max_iter=2).fit(batch, y),
            lambda: batch * 2,
            lambda: pickle.dumps(batch),
        ):
            with pytest.raises(ValueError, match=r"does not fit a batch|must start at 0 and end"):
                call()


def with_transitions():
    """A batch with blocks and features of transitions, and labels."""
    batch, y = make_batch(kinds=KINDS)
    X = sp.csr_matrix(np.eye(3)[np.arange(batch.n_rows) % 3])
    empty = SequenceBatch(sp.csr_matrix((batch.n_rows, 1)), batch.offsets, transition_X=X)
    return SequenceBatch.hstack([batch, empty]), y


def point_elsewhere(batch):
    batch.transition_X.indices[1] = 2_000_000_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (point_elsewhere, "column 2000000000 is not one of the 3"),
        (lambda batch: setattr(batch, "transition_X", np.ones((2, 3))), "transition_X has 2 rows"),
        (lambda batch: setattr(batch, "transition_X", np.ones(4)), r"has 1 dimension\(s\)"),
        (lambda batch: setattr(batch, "transition_X", "abc"), r"has 0 dimension\(s\)"),
        (lambda batch: setattr(batch, "feature_names", np.array(["a"])), r"has shape \(1,\)"),
    ],
)
def test_what_stands_beside_blocks_is_checked_again(change, message):
    batch, y = with_transitions()
    tagger = CRFTagger(max_iter=2).fit(batch, y)
    change(batch)
    calls = [
        lambda: tagger.predict(batch),
        lambda: PerceptronTagger(max_iter=2).fit(batch, y),
        lambda: batch * 2,
        lambda: SequenceBatch.concatenate([batch, batch]),
        lambda: pickle.dumps(batch),
    ]
    for call in [*calls, lambda: batch[:2]]:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_matrix_takes_the_place_of_blocks():
    batch, y = make_batch()
    tagger = CRFTagger(max_iter=5).fit(batch, y)
    zeros = sp.csr_matrix(batch.X.shape)
    expected = tagger.predict_proba(SequenceBatch(zeros, batch.offsets))
    batch.X = zeros
    for found in (tagger.predict_proba(batch), tagger.predict_proba(batch[:])):
        for ours, theirs in zip(found, expected, strict=True):
            assert_array_equal(ours, theirs)
    assert (batch * 2).X.nnz == 0


def test_tables_in_any_order_are_merged():
    batch, _ = make_batch()
    block = batch.blocks[1].block
    whole = batch.X.toarray()
    block.table = np.asfortranarray(block.table)
    both = SequenceBatch.concatenate([batch, batch[::-1]])
    assert_array_equal(both[: len(batch)].X.toarray(), whole)
    assert_array_equal(both[len(batch) :].X.toarray(), batch[::-1].X.toarray())


@pytest.mark.parametrize(
    "tagger",
    [
        *(kind(random_state=0) for kind in (PerceptronTagger, SAPOTagger, SDCACRF)),
        *(compiled(kind(random_state=0)) for kind in (MIRATagger, AROWTagger)),
        *(compiled(CRFTagger(solver=solver, random_state=0)) for solver in ("sgd", "sag", "oeg")),
    ],
    ids=lambda tagger: getattr(tagger, "solver", type(tagger).__name__),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_learner_refuses_what_it_cannot_read(tagger):
    batch, y = make_batch()
    tagger.set_params(max_iter=2).fit(batch, y)
    before = tagger.coef_.copy()
    learns = [tagger.fit, *([tagger.partial_fit] if hasattr(tagger, "partial_fit") else [])]
    for learn in learns[1:]:
        with pytest.raises(ValueError, match="X has 42 features, but"):
            learn(SequenceBatch.hstack([batch, batch]), y)
    wrong, _ = make_batch()
    wrong.blocks[1].block.numbers[4, 1] = 99
    table = make_batch()[0].blocks[1].block
    for learn in (*learns, lambda X, y: tagger.predict(X)):
        with pytest.raises(ValueError, match="row 4 of a looked-up block has the number 99"):
            learn(wrong, y)
        values = table.values().copy()
        values[table.numbers.max(), 1] = np.nan
        bad = SequenceBatch._of_blocks(
            batch._columns()[0],
            (batch.blocks[0], Placed(15, LookedUpBlock(values, table.numbers))),
            batch.offsets,
        )
        with pytest.raises(ValueError, match=r"Sequence \d+, token \d: feature \d+ is nan"):
            learn(bad, y)
    assert_array_equal(tagger.coef_, before)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
@pytest.mark.parametrize("kind", KINDS)
def test_values_that_nobody_can_compute_with_are_refused(kind, value):
    block = kind(8)
    values = block.values().copy()
    values[3 if kind is dense_block else block.numbers.max(), 1] = value
    block = DenseBlock(values) if kind is dense_block else LookedUpBlock(values, block.numbers)
    batch = SequenceBatch._of_blocks(None, (Placed(0, block),), [0, 8])
    with pytest.raises(ValueError, match=r"Sequence 0, token \d: feature \d is (nan|inf|1e)"):
        CRFTagger().fit(batch, [["a"] * 4 + ["b"] * 4])


# ----------------------------------------------------------------------------------------- learners

EXACT = [
    *({}, {"l1": 0.5}, {"l2": 0.05}, {"n_jobs": 2}, {"fit_intercept": False}),
    compiled({"order": 2}),
]


@pytest.mark.parametrize("params", EXACT, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_crf_finds_the_minimum_of_sparse_columns(params, dtype):
    batch, y = make_batch(dtype=dtype)
    tagger = CRFTagger(all_possible_states=True, tol=1e-8, max_iter=1000, **params)
    ours, theirs = clone(tagger).fit(batch, y), clone(tagger).fit(flat(batch), y)
    ours_at, theirs_at = (found.history_["objective"][-1] for found in (ours, theirs))
    assert_allclose(ours_at, theirs_at, rtol=1e-6)
    assert_allclose(ours.coef_, theirs.coef_, atol=0.01)
    assert ours.coef_.shape == (3, batch.n_features)
    assert ours.n_features_in_ == batch.n_features
    if "l1" in params:
        columns = batch.blocks[1].columns
        of_block = ours.coef_[:, columns]
        # Single weights, not whole columns.
        assert 0 < np.count_nonzero(of_block == 0) < of_block.size
    same = clone(tagger).fit(batch, y)
    assert_array_equal(same.coef_, ours.coef_)


def kinds_of_products(monkeypatch, tagger, batch, y):
    """Whether products of blocks had to be precise in a fit of a tagger, which is returned, too."""
    found, add = set(), LookedUpBlock.add_scores

    def watched(block, weights, out, run, *, precise=True):
        found.add(precise)
        add(block, weights, out, run, precise=precise)

    with monkeypatch.context() as patch:
        patch.setattr(LookedUpBlock, "add_scores", watched)
        return found, tagger.fit(batch, y)


def test_products_are_in_single_precision_unless_a_fit_needs_more(monkeypatch):
    batch, y = make_batch((5, 3, 7) * 20, [looked_up_block], np.float32)
    precise, exact = kinds_of_products(monkeypatch, CRFTagger(tol=1e-9), batch, y)
    assert precise == {True}
    single, quick = kinds_of_products(monkeypatch, CRFTagger(tol=1e-6), batch, y)
    assert single == {False}
    assert_allclose(quick.history_["objective"][-1], exact.history_["objective"][-1], rtol=2e-6)
    assert_allclose(quick.coef_, exact.coef_, atol=0.01)


@pytest.mark.parametrize("size", [1e-20, 1e20])
@pytest.mark.parametrize("tagger", [PerceptronTagger(), SAPOTagger()], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_extreme_vectors_are_sparse_columns_of_online_learners(tagger, size):
    batch, y = make_batch(words=False)
    X = SequenceBatch._of_blocks(
        None, [Placed(start, block.times(size)) for start, block in batch.blocks], batch.offsets
    )
    tagger.set_params(max_iter=5, random_state=0)
    ours, theirs = clone(tagger).fit(X, y), clone(tagger).fit(flat(X), y)
    assert_array_equal(ours.coef_, theirs.coef_)
    assert np.any(ours.coef_)


@pytest.mark.filterwarnings("ignore:Feature 0 has values")
@pytest.mark.parametrize("size", [1e-20, 1e20])
def test_products_of_extreme_values_are_in_double_precision(monkeypatch, size):
    batch, y = make_batch((5, 3, 7) * 4, [looked_up_block], np.float32, words=False)
    precise, _ = kinds_of_products(monkeypatch, CRFTagger(l2=size**2), batch * size, y)
    assert precise == {True}


def test_columns_of_blocks_have_a_weight_for_every_label():
    batch, y = make_batch()
    tagger = CRFTagger(min_freq=1e9, tol=1e-6).fit(batch, y)
    start, block = batch.blocks[1]
    assert np.all(tagger.coef_[:, start : start + block.n_columns] != 0)
    assert not tagger.coef_[:, 6:15].any()


@pytest.mark.slow
def test_unknown_labels_costs_transition_features_and_warm_starts_beside_blocks():
    batch, y = make_batch()
    with_features = SequenceBatch._of_blocks(
        *batch._columns()[:2],
        batch.offsets,
        more={"transition_X": sp.csr_matrix(np.ones((batch.n_rows, 1)))},
    )
    partial = [[None, *labels[1:]] if labels else labels for labels in y]
    for X, labels, params in (
        (batch, partial, {}),
        (batch, y, {"label_cost": {"missed": 2.0}}),
        (with_features, y, {}),
        (batch, y, {"warm_start": True}),
    ):
        tagger = CRFTagger(all_possible_states=True, tol=1e-8, max_iter=1000, **params)
        ours, theirs = clone(tagger).fit(X, labels), clone(tagger).fit(flat(X), labels)
        assert_allclose(ours.history_["objective"][-1], theirs.history_["objective"][-1], rtol=1e-5)
        assert_allclose(
            np.concatenate(ours.predict_proba(X)),
            np.concatenate(theirs.predict_proba(flat(X))),
            atol=0.02,
        )
    assert ours.fit(batch, y).n_iter_ <= 1


OTHERS = [
    PerceptronTagger(),
    SAPOTagger(),
    SDCACRF(sampling="uniform"),
    *map(
        compiled,
        [
            CRFTagger(solver="sgd"),
            PerceptronTagger(n_jobs=2),
            PerceptronTagger(order=2, average=False, mini_length=2),
            MIRATagger(),
            MIRATagger(n_best=3, order=2),
            MIRATagger(n_best=3, search="beam", n_jobs=2),
            SAPOTagger(n_jobs=2),
            AROWTagger(),
            AROWTagger(order=2, n_jobs=2),
            CRFTagger(solver="sgd", order=2, average=True, n_jobs=2),
            CRFTagger(solver="sag"),
            CRFTagger(solver="oeg"),
            *(SDCACRF(sampling=s) for s in ("importance", "gap", "gap_importance", "max")),
            SDCACRF(n_jobs=2, label_cost={"missed": 2.0}),
            # By default it drops sparse features whose values add up to less than zero, as
            # CRFsuite does.
            *(OnlineCRF(rule=rule, min_freq=-1e9) for rule in ("ap", "pa", "arow")),
        ],
    ),
]


def assert_same_weights(ours, theirs):
    # Learners that can go on with portions multiply in single precision.
    tolerance = 1e-5 if hasattr(ours, "partial_fit") else 1e-9
    for name in ("coef_", "transition_", "intercept_", "start_", "end_"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=name)
    assert np.any(ours.coef_)


@pytest.mark.parametrize("tagger", OTHERS, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_learners_learn_what_they_learn_from_sparse_columns(monkeypatch, tagger):
    batch, y = make_batch()
    sparse = flat(batch)
    seen = []
    monkeypatch.setattr(
        training_set, "as_rows", lambda X, make=training_set.as_rows: seen.append(X) or make(X)
    )
    fresh, _ = make_batch()
    tagger.set_params(max_iter=5, random_state=0)
    ours = clone(tagger).fit(fresh, y)
    if hasattr(tagger, "partial_fit"):
        portion = (
            clone(tagger).partial_fit(fresh, y, classes=LABELS).partial_fit(fresh[::2], y[::2])
        )
    assert all(X.nnz <= sparse.X[:, 6:15].nnz for X in seen)
    assert "X" not in vars(fresh)
    theirs = clone(tagger).fit(sparse, y)
    assert_same_weights(ours, theirs)
    assert ours.predict(fresh).tolist() == theirs.predict(sparse).tolist()
    if hasattr(tagger, "partial_fit"):
        theirs = clone(tagger).partial_fit(sparse, y, classes=LABELS)
        assert_same_weights(portion, theirs.partial_fit(sparse[::2], y[::2]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_of_vectors_whose_scale_gets_small():
    batch, y = make_batch()
    tagger = SAPOTagger(l2=6.0, learning_rate=0.99, decay=1.0, max_iter=15, tol=None)
    tagger.set_params(random_state=0)
    ours, theirs = clone(tagger).fit(batch, y), clone(tagger).fit(flat(batch), y)
    # Such long steps make more of roundings.
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("n_labels", [2, 9, 29])
@pytest.mark.parametrize(
    "tagger",
    [
        *(SAPOTagger(), SDCACRF()),
        *map(compiled, (AROWTagger(), MIRATagger(n_best=2, C=5), CRFTagger(solver="sag"))),
    ],
    ids=lambda tagger: type(tagger).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learners_with_any_number_of_labels_and_long_sequences(tagger, n_labels):
    lengths = (2 * FEW, 1, 4)
    batch, _ = make_batch(lengths, dtype=np.float32)
    codes = np.random.default_rng(3).integers(n_labels, size=sum(lengths))
    y = [part.tolist() for part in np.split(codes, np.cumsum(lengths)[:-1])]
    tagger.set_params(max_iter=3, random_state=0)
    assert_same_weights(clone(tagger).fit(batch, y), clone(tagger).fit(flat(batch), y))


@pytest.mark.parametrize("kind", KINDS)
def test_windows_have_what_blocks_have(kind):
    # Called from Python, these kernels run in Python, where wide rows are not summed.
    rng, n_labels = np.random.default_rng(4), LANES - 1
    blocks = [kind(9, dtype, seed) for seed, dtype in enumerate([np.float32, np.float64] * 2)]
    rows = BlockRows(
        training_set.as_rows(sp.csr_matrix((9, 24))),
        tuple(Placed(start, block) for start, block in zip((0, 6, 18, 12), blocks, strict=True)),
    )
    X = np.concatenate([blocks[i].toarray() for i in (0, 1, 3, 2)], axis=1)
    weights, difference = rng.normal(size=(24, n_labels)), rng.normal(size=(5, n_labels))
    vectors, window = vectors_of(rows), visits.new_window(vectors_of(rows), 5, n_labels)
    for first, last in ((0, 4), (4, 9)):
        visits.load_vectors(vectors, first, last, window.values)
        n, scores = last - first, np.ones((5, n_labels))
        assert_allclose(window.values[:n], X[first:last][:, vectors.columns], rtol=1e-6)
        visits.add_vector_scores(vectors, window, n, weights, scores)
        assert_allclose(scores[:n], 1 + X[first:last] @ weights, rtol=1e-5, atol=1e-5)
        assert np.all(scores[n:] == 1)
        visits.sum_vectors(window, n, difference)
        sums = weights.copy()
        visits.add_sums(vectors, window, 0.5, sums)
        expected = weights + 0.5 * X[first:last].T @ difference[:n]
        assert_allclose(sums, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_labels", [1, LANES, 2 * LANES + 3])
@pytest.mark.parametrize("lengths", [(4, 9, 1, PANEL_ROWS), (2 * PANEL_ROWS + 1,)])
def test_panels_have_what_blocks_have(lengths, n_labels):
    batch, _ = make_batch(lengths, words=False)
    rng, X = np.random.default_rng(5), batch.X
    rows = block_rows(batch)
    found = visit_rows(rows, vectors_of(rows), max(lengths), n_labels)
    weights = rng.normal(size=(X.shape[1], n_labels))
    difference = rng.normal(size=(max(lengths), n_labels)) * rng.integers(2, size=(max(lengths), 1))
    # Labels that do not change, of a block and of parts of others.
    difference[:, LANES - 1 : 2 * LANES + 1] = 0.0
    for first, last in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        changed, scores = weights.copy(), np.ones((max(lengths), n_labels))
        growth = use_panel(found, first, last, scores, difference, changed)
        n = last - first
        assert_allclose(scores[:n], 1 + X[first:last] @ weights, rtol=1e-4, atol=1e-4)
        assert np.all(scores[n:] == 1)
        expected = weights + X[first:last].T @ difference[:n]
        assert_allclose(changed, expected, rtol=1e-4, atol=1e-4)
        assert_allclose(growth, np.sum(changed**2) - np.sum(weights**2), rtol=1e-6)


@jit
def use_panel(rows, first, last, scores, difference, weights):
    """Scores of a sequence, and weights to which its vectors times the differences are added."""
    panel, columns, n_labels = rows.panel, rows.vectors.columns, weights.shape[1]
    flat = weights.reshape(weights.size)
    visits.load_vectors(rows.vectors, first, last, panel.values)
    visits.read_weights(columns, n_labels, flat, n_labels, panel)
    visits.add_panel_scores(panel, last - first, scores)
    for i in range(visits.sum_panel(panel, last - first, difference)):
        panel.exact[panel.changing[i]] += panel.sums[i]
    return visits.write_blocks(columns, n_labels, panel.exact, n_labels, flat)


def test_learners_of_blocks_need_little_memory():
    n, lengths = 4000, [20] * 200
    rng = np.random.default_rng(0)
    table = rng.normal(size=(50, 64)).astype(np.float32)
    block = LookedUpBlock(table, rng.integers(50, size=(n, 3)))
    batch = SequenceBatch._of_blocks(None, (Placed(0, block),), np.cumsum([0, *lengths]))
    y = [rng.choice(LABELS, size=20).tolist() for _ in lengths]
    for tagger in (PerceptronTagger(), AROWTagger(), SDCACRF(), CRFTagger(solver="sag")):
        tagger.set_params(max_iter=1, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tagger.fit(batch[:2], y[:2])
            tracemalloc.start()
            tagger.fit(batch, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # As sparse columns, 12 bytes each, the vectors alone take nine megabytes.
        assert peak < 4 * n * 64 * 3


def test_a_pass_that_fails_leaves_the_weights_of_vectors():
    batch, y = make_batch()
    state = PerceptronTagger(random_state=0).partial_fit(batch, y, classes=LABELS)._state
    before = copied_arrays(state)
    undo = undo_of(state, training_set.block_rows(batch))
    for chain in (state.chain, state.lag):
        chain.weights[...] += 1
    undo()
    for now, then in zip(state[:2], before[:2], strict=True):
        for columns in (one.columns for one in batch.blocks):
            assert_array_equal(now.weights[columns], then.weights[columns])
    assert np.any(before.lag.weights[batch.blocks[0].columns])


@pytest.mark.slow
def test_vectors_beside_transition_features_and_early_stopping():
    batch, y = make_batch()
    more = {"transition_X": sp.csr_matrix(np.arange(batch.n_rows)[:, None] % 3.0)}
    with_features = SequenceBatch._of_blocks(*batch._columns()[:2], batch.offsets, more=more)
    for tagger in (
        PerceptronTagger(max_iter=3),
        AROWTagger(max_iter=3),
        MIRATagger(max_iter=3),
        CRFTagger(solver="sgd", max_iter=3, early_stopping=True),
    ):
        tagger.set_params(tol=None, random_state=0)
        ours, theirs = (clone(tagger).fit(X, y) for X in (with_features, flat(with_features)))
        assert_same_weights(ours, theirs)
        assert_allclose(ours.transition_coef_, theirs.transition_coef_, rtol=1e-5, atol=1e-5)
        stopping = clone(tagger).set_params(early_stopping=True)
        if "scoring" in stopping.get_params():
            stopping.set_params(scoring=make_scorer(token_accuracy_score))
        ours, theirs = (clone(stopping).fit(X, y) for X in (batch, flat(batch)))
        assert_same_weights(ours, theirs)
        scores = (found.history_["validation_score"] for found in (ours, theirs))
        assert_array_equal(*scores)


@pytest.mark.parametrize("penalty", [{"order": 1}, *map(compiled, ({"order": 2}, {"l1": 0.5}))])
@pytest.mark.parametrize("words", [True, False])
def test_a_fit_begins_near_the_minimum(monkeypatch, penalty, words):
    batch, y = make_batch(words=words)
    params = {**penalty, "all_possible_states": True, "tol": 1e-8, "max_iter": 1000}
    plain = CRFTagger(**params).fit(batch, y)
    monkeypatch.setattr("skstruct.learning.lbfgs.MANY_TOKENS", 10)
    started = CRFTagger(**params).fit(batch, y)
    first, last = plain.history_["objective"][[0, -1]]
    # With an L1 penalty the epochs of the start are in the history.
    epochs = 20 if "l1" in penalty else 1
    near = np.nanmin(started.history_["objective"][:epochs])
    assert near - last < 0.2 * (first - last)
    assert_allclose(started.history_["objective"][-1], last, rtol=1e-6)
    again = CRFTagger(warm_start=True, **params).fit(batch, y).fit(batch, y)
    assert again.n_iter_ <= 1


@pytest.mark.parametrize("l1", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_start_takes_the_steps_that_it_takes_with_sparse_columns(
    monkeypatch, l1, dtype, n_jobs
):
    for name in ("_LEAST_WORK", "_OCCURRENCES"):
        monkeypatch.setattr(f"skstruct.learning.ascent.{name}", 0)
    batch, y = make_batch(dtype=dtype)
    labels = [[LABELS.index(label) for label in sequence] for sequence in y]
    found = []
    for X in (batch, flat(batch)):
        data = training_set_of(X, labels)
        options = {"l2": 0.3, "all_possible_states": True}
        objective = crf_objective(data, batch.n_features, len(LABELS), **options)
        with range_runner(objective.offsets, n_jobs, 1e9) as run:
            epochs = dual_free_epochs(objective, objective.new_memory(), l1, run=run)
            found.append([(objective.unpack(theta), *said) for theta, *said in islice(epochs, 5)])
    for (ours, *of_ours), (theirs, *of_theirs) in zip(*found, strict=True):
        for part, same in zip(ours, theirs, strict=True):
            assert_allclose(part, same, rtol=1e-4, atol=1e-5)
        assert_allclose(of_ours, of_theirs, rtol=1e-4)
    assert np.any(ours.weights[batch.blocks[1].columns] == 0) == (l1 > 0)


def test_a_search_of_penalties_takes_blocks():
    batch, y = make_batch(lengths=(4, 2, 3, 1, 5) * 6)
    search = CRFTaggerCV(l2s=[1, 0.1], cv=2, all_possible_states=True, tol=1e-6)
    ours, theirs = clone(search).fit(batch, y), clone(search).fit(flat(batch), y)
    assert ours.l2_ == theirs.l2_
    assert_allclose(ours.coef_, theirs.coef_, atol=0.02)


@pytest.mark.filterwarnings("ignore:The best of:UserWarning")
def test_a_search_of_scales_is_one_search_for_each():
    batch, y = make_batch(lengths=(4, 2, 3, 1, 5) * 6, kinds=[dense_block])
    search = CRFTaggerCV(l2s=[1, 0.1], cv=2, block_scales=[0.3, 3, 1]).fit(batch, y)
    assert search.best_params_.keys() == {"block_scale", "l2"}
    assert search.block_scale_ == search.best_params_["block_scale"]
    sparse, ((start, block),), _ = batch._columns()
    found = {}
    for scale in (0.3, 3, 1):
        X = SequenceBatch._of_blocks(sparse, (Placed(start, block.times(scale)),), batch.offsets)
        found[scale] = CRFTaggerCV(l2s=[1, 0.1], cv=2).fit(X, y)
    scores = [found[scale].cv_results_["mean_test_score"] for scale in (0.3, 3, 1)]
    assert_allclose(search.cv_results_["mean_test_score"], np.concatenate(scores))
    assert search.best_score_ == max(other.best_score_ for other in found.values())
    other = found[search.block_scale_]
    factor = np.ones(batch.n_features)
    factor[start : start + block.n_columns] = search.block_scale_
    assert_allclose(search.coef_, other.coef_ * factor)
    assert_allclose(search.best_estimator_.score(batch, y), search.score(batch, y))
    PenaltyPathDisplay.from_estimator(search)
    with pytest.raises(ValueError, match="block_scales is given, but X has no vectors"):
        clone(search).fit(SequenceBatch(sparse, batch.offsets), y)
    for wrong in ([0.0, 1], [-1], [np.nan], "ab"):
        with pytest.raises(ValueError, match="block_scales"):
            CRFTaggerCV(block_scales=wrong).fit(batch, y)


def test_streams_take_blocks():
    batch, y = make_batch()

    def learnt(X):
        parts = [(X[a:b], y[a:b]) for a, b in ((0, 9), (9, 20), (20, 30))]
        return fit_stream(PerceptronTagger(random_state=0), lambda epoch: parts, n_epochs=3)

    ours = learnt(batch)
    assert "X" not in vars(batch)
    assert_same_weights(ours, learnt(flat(batch)))


def test_a_threshold_for_spans_is_found_with_blocks():
    batch, y = make_batch(lengths=(4, 2, 3, 1, 5) * 6)
    tagger = SpanTaggerCV(CRFTagger(all_possible_states=True, tol=1e-9, l2=0.3), cv=2)
    ours = clone(tagger).fit(batch, y)
    assert "X" not in vars(batch)
    theirs = clone(tagger).fit(flat(batch), y)
    assert ours.best_threshold_ == theirs.best_threshold_
    assert ours.predict(batch).tolist() == theirs.predict(flat(batch)).tolist()


def test_weights_of_blocks_are_pruned_and_sparsified(tmp_path):
    X, y = with_arrays(40)
    tagger = CRFTagger(l1=0.5).fit(X, y)
    expected = np.concatenate(tagger.predict_proba(X))
    used = tagger.coef_.any(axis=0)
    assert 0 < np.count_nonzero(used) < used.size
    sparse = clone(tagger).fit(X, y)
    sparse.coef_ = sp.csr_matrix(sparse.coef_)
    assert_array_equal(np.concatenate(sparse.predict_proba(X)), expected)
    names = tagger.feature_names_in_[used]
    assert_array_equal(tagger.prune().feature_names_in_, names)
    assert any("vector" in name for name in names)
    assert_allclose(np.concatenate(tagger.predict_proba(X)), expected, rtol=1e-12)
    # CRFsuite knows features by their names alone.
    batch, y = make_batch()
    with pytest.raises(ValueError, match="feature_names"):
        write_model(CRFTagger(fit_intercept=False).fit(batch, y), tmp_path / "model")
    with pytest.raises(ValueError, match="fitted on numbers"):
        CRFTagger(l1=0.5).fit(batch, y).prune()


def test_validation_sets_and_early_stopping_take_blocks():
    batch, y = make_batch()
    for tagger in (CRFTagger(), PerceptronTagger(random_state=0)):
        ours = clone(tagger).fit(batch, y, X_val=batch[:9], y_val=y[:9])
        theirs = clone(tagger).set_params(
            **({"all_possible_states": True} if isinstance(tagger, CRFTagger) else {})
        )
        theirs.fit(flat(batch), y, X_val=flat(batch)[:9], y_val=y[:9])
        assert ours.history_["validation_score"][-1] == theirs.history_["validation_score"][-1]
        clone(tagger).set_params(early_stopping=True, random_state=0).fit(batch, y)


def test_a_fit_makes_no_sparse_columns_of_blocks(monkeypatch):
    batch, y = make_batch()
    seen = []
    monkeypatch.setattr(
        training_set, "as_rows", lambda X, make=training_set.as_rows: seen.append(X) or make(X)
    )
    CRFTagger().fit(batch, y).predict(batch)
    assert all(sp.issparse(X) and X.nnz == batch._columns()[0].nnz for X in seen)
    assert "X" not in vars(batch)


# -------------------------------------------------------------------------------------- predictions


def test_a_sequence_alone_has_the_scores_of_its_batch():
    batch, y = make_batch(dtype=np.float32)
    tagger = CRFTagger().fit(batch, y)
    proba, best = tagger.predict_proba(batch), tagger.predict_nbest(batch, 3)
    spans = tagger.predict_spans(batch, threshold=0.2)
    for i in range(len(batch)):
        one = batch[i : i + 1]
        assert_array_equal(tagger.predict_proba(one)[0], proba[i])
        assert tagger.predict_nbest(one, 3)[0] == best[i]
        assert tagger.predict_spans(one, threshold=0.2)[0] == spans[i]
    assert_allclose(
        np.concatenate(tagger.predict_proba(flat(batch))), np.concatenate(proba), atol=1e-5
    )
    known = [[labels[0], *[None] * (len(labels) - 1)] if labels else [] for labels in y]
    for found, labels in zip(tagger.predict(batch, known=known), y, strict=True):
        assert found[:1] == labels[:1]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(tagger.predict_proba, [batch] * 4):
            assert_array_equal(np.concatenate(found), np.concatenate(proba))


# ------------------------------------------------------------------------------- what makes blocks


def test_vectors_of_words_stay_a_table_through_a_union_and_folds():
    rng = np.random.default_rng(0)
    X = [[f"w{i}" for i in rng.integers(30, size=length)] for length in (4, 6, 3, 8) * 5]
    y = [["A" if int(word[1:]) % 2 else "B" for word in words] for words in X]
    vectors = {f"w{i}": v for i, v in enumerate(rng.normal(size=(25, 7)).astype(np.float32))}
    lookup = EmbeddingVectorizer(vectors, offsets=(-1, 0, 1), scale=1)
    union = SequenceUnion(
        [("words", WordVectorizer()), ("v", lookup)],
        transformer_weights={"v": 0.5},
    )
    batch = union.fit_transform(X)
    ((start, block),) = batch.blocks
    assert (block.dtype, block.factor, len(block.table)) == (np.float32, 0.5, 25)
    assert block.nbytes < block.n_rows * block.n_columns * 4 / 2
    expected = [
        np.concatenate([vectors.get(w, np.zeros(7)) * 0.5 if w else np.zeros(7) for w in around])
        for words in X
        for around in zip(["", *words[:-1]], words, [*words[1:], ""], strict=True)
    ]
    assert_allclose(batch.X.toarray()[:, start:], expected)
    tagger = make_pipeline(union, CRFTagger())
    found = cross_val_predict(tagger, X, y, cv=3)
    assert np.mean(np.concatenate(found) == np.concatenate(y)) > 0.8
    fitted = tagger.fit(X, y)
    assert fitted.predict(X[:1])[0] == fitted.predict(X)[0]
    restored = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(restored[-1].coef_, fitted[-1].coef_)


@pytest.mark.parametrize(
    ("is_full", "n_columns", "n_blocks"), [(True, 32, 1), (True, 31, 0), (False, 40, 0)]
)
def test_wide_matrices_are_blocks_unless_most_numbers_are_zero(is_full, n_columns, n_blocks):
    rng, lengths = np.random.default_rng(0), (3, 1, 4)
    X = [rng.normal(size=(n, n_columns)) if is_full else np.eye(n, n_columns) for n in lengths]
    y = [["a", "b", "a"], ["b"], ["a", "a", "b", "b"]]
    rows = training_set.block_rows(CRFTagger().fit(X, y)._read_X(X)[1])
    assert len(rows.placed) == n_blocks
    # Only a block has weights for pairs that do not occur.
    assert np.all(CRFTagger().fit(X, y).coef_ != 0) == is_full


def with_arrays(n_numbers, dtype=np.float64, missing=()):
    """Feature dicts with an array each, but for some tokens, and their labels."""
    rng, lengths = np.random.default_rng(2), (3, 1, 4, 2)
    X, y, t = [], [], 0
    for n in lengths:
        X.append([])
        for _ in range(n):
            token = {"word": f"w{rng.integers(3)}", "vector": rng.normal(size=n_numbers)}
            token = token | {"zero": 0.0, "vector:1x": 2.0}
            token["vector"] = token["vector"].astype(dtype)
            if t in missing:
                del token["vector"]
            X[-1].append(token)
            t += 1
        y.append(rng.choice(LABELS, size=n).tolist())
    return X, y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("missing", [(), (0, 4)])
@pytest.mark.parametrize("n_numbers", [33, 40])
def test_arrays_in_dicts_become_blocks(monkeypatch, n_numbers, missing, dtype):
    X, y = with_arrays(n_numbers, missing=missing)
    vectorizer = SequenceVectorizer(dtype=dtype)
    batch = vectorizer.fit_transform(X)
    # A name stands between those of the array.
    assert [block.n_columns for _, block in batch.blocks] == [12, n_numbers - 12]
    assert all(block.dtype == dtype for _, block in batch.blocks)
    again = vectorizer.transform(X)
    few = vectorizer.transform(X[:1])
    monkeypatch.setattr("skstruct.features.tokens.LEAST_COLUMNS", 99)
    other = SequenceVectorizer(dtype=dtype)
    expected = other.fit_transform(X)
    assert not expected.blocks
    assert_array_equal(batch.feature_names, expected.feature_names)
    for found, matrix in ((batch, expected.X), (again, expected.X), (few, expected.X[:3])):
        assert_array_equal(found.X.toarray(), matrix.toarray())
    # Stored zeros of other features stay.
    zero = vectorizer.vocabulary_["zero"]
    assert np.count_nonzero(batch.X.indices == zero) == batch.n_rows
    everything = {"all_possible_states": True, "tol": 1e-8}
    tagger, sparse = (CRFTagger(**everything).fit(b, y) for b in (batch, expected))
    assert_allclose(tagger.coef_, sparse.coef_, atol=1e-3)
    # Tokens without an array, and other vectorisers, give the same columns.
    assert tagger.predict(expected).tolist() == tagger.predict(batch).tolist()
    # What is a block does not depend on the batch.
    without = [[{"word": "w0"}], []]
    nothing = vectorizer.transform(without)
    assert [block.n_columns for _, block in nothing.blocks] == [12, n_numbers - 12]
    assert_array_equal(nothing.X.toarray(), other.transform(without).X.toarray())
    restored = pickle.loads(pickle.dumps(vectorizer)).transform(without)
    assert [block.shape for _, block in restored.blocks] == [
        block.shape for _, block in nothing.blocks
    ]


@pytest.mark.parametrize("n_numbers", [3, 40])
def test_arrays_of_the_same_name_are_summed(n_numbers):
    vector = np.arange(1.0, n_numbers + 1)
    X = [[{"a:b": vector, "a": {"b": 2 * vector}}, {"w": "x"}], [{"a": {"b": vector}}]]
    found = SequenceVectorizer().fit_transform(X)
    columns = np.argsort([int(name.split(":")[2]) for name in found.feature_names[:n_numbers]])
    assert_array_equal(found.X.toarray()[:, columns], np.outer([3, 0, 1], vector))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sentences_without_arrays_are_scaled_and_tagged():
    X, y = with_arrays(40, missing=(0, 4, 6))
    pipeline = make_pipeline(SequenceVectorizer(), VectorScaler(), CRFTagger(max_iter=5))
    proba = pipeline.fit(X, y).predict_proba(X)
    for sequence, together in zip(X, proba, strict=True):
        (alone,) = pipeline.predict_proba([sequence])
        assert_array_equal(alone, together)
    assert [len(labels) for labels in pipeline.predict([[{"word": "w1"}], [], [{}]])] == [1, 0, 1]
    names = pipeline[:-1].get_feature_names_out()
    assert_array_equal(names, pipeline[0].get_feature_names_out())


@pytest.mark.parametrize("algorithm", ["lbfgs", *map(compiled, ("l2sgd", "ap", "pa", "arow"))])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_drop_in_learns_from_arrays_as_from_numbers(monkeypatch, algorithm):
    X, y = with_arrays(40, missing=(0, 4))
    for token in chained.from_iterable(X):
        # CRFsuite's online algorithms drop features whose values add up to less than zero.
        token |= {"vector": np.abs(token["vector"])} if "vector" in token else {}
    params = {"epsilon": 1e-12, "delta": 1e-12} if algorithm == "lbfgs" else {"max_iterations": 7}
    crf, seen = CRF(algorithm=algorithm, all_possible_states=True, **params), []
    with monkeypatch.context() as patch:
        patch.setattr(
            training_set, "as_rows", lambda X, make=training_set.as_rows: seen.append(X) or make(X)
        )
        ours = clone(crf).fit(X, y, X_dev=X, y_dev=y)
        proba = ours.predict_marginals(X)
    # None has the numbers of an array.
    assert max(np.diff(matrix.indptr).max() for matrix in seen) < 5
    monkeypatch.setattr("skstruct.features.tokens.LEAST_COLUMNS", 99)
    theirs = clone(crf).fit(X, y)
    # Online learners multiply vectors in single precision.
    tol = 1e-6 if algorithm != "lbfgs" else 1e-3
    weights, expected = ours.state_features_, theirs.state_features_
    assert any("vector" in name for name, _ in expected)
    for names in weights.keys() | expected.keys():
        assert abs(weights.get(names, 0.0) - expected.get(names, 0.0)) < tol
    # A model file has them as any other attributes.
    opened = Tagger()
    with opened.open(ours.modelfile.name):
        for tokens, expected in zip(X, proba, strict=True):
            assert opened.tag(tokens) == ours.predict_single(tokens)
            for t, of_labels in enumerate(expected):
                assert_allclose([opened.marginal(k, t) for k in of_labels], [*of_labels.values()])
        (every,) = ours.estimator_.predict_nbest(X[:1], n_best=27)
        opened.set(X[0])
        for labels, _, probability in every:
            assert_allclose(opened.probability(labels), probability, rtol=1e-6)


def test_min_freq_of_the_drop_in_is_for_sparse_columns():
    batch, y = make_batch()
    for tagger in (OnlineCRF(rule="ap"), OnlineCRF(rule="arow")):
        coef = tagger.set_params(min_freq=1e9, max_iter=3, random_state=0).fit(batch, y).coef_
        start, block = batch.blocks[0]
        assert np.all(coef[:, start : start + block.n_columns].any(axis=0))
        assert not coef[:, 6:15].any()


def test_crfsuite_itself_learns_from_blocks():
    pytest.importorskip("pycrfsuite")
    batch, y = make_batch()
    tagger = CRFTagger(solver="crfsuite", all_possible_states=True, tol=1e-7)
    found = (clone(tagger).fit(X, y).history_["objective"][-1] for X in (batch, flat(batch)))
    assert_allclose(*found, rtol=1e-9)


def test_rare_arrays_and_restricted_ones(monkeypatch):
    X, y = with_arrays(40, missing=range(6))
    assert not SequenceVectorizer().fit_transform(X).blocks
    X, y = with_arrays(40, missing=(0,))
    vectorizer = SequenceVectorizer(min_freq=10).fit(X)
    assert not any(name.startswith("vector:2") for name in vectorizer.get_feature_names_out())
    vectorizer = SequenceVectorizer(min_freq=9).fit(X)
    kept = np.ones(len(vectorizer.feature_names_), bool)
    kept[vectorizer.vocabulary_["vector:5"]] = False
    before = vectorizer.transform(X).X.toarray()
    after = vectorizer.restrict(kept).transform(X)
    assert sum(block.n_columns for _, block in after.blocks) == 39
    assert_array_equal(after.X.toarray(), before[:, kept])
    tagger = PerceptronTagger(random_state=0).fit(X, y)
    assert tagger.predict(X[:1]).tolist() == tagger.predict(X)[:1].tolist()
    X[1][0]["vector"] = np.ones(39)
    with pytest.raises(ValueError, match="Sequence 1, token 0: feature 'vector' is an array of 39"):
        tagger.predict(X)
    X[1][0]["vector"] = np.full(40, np.nan)
    with pytest.raises(ValueError, match="Sequence 1, token 0: feature 'vector' has the value nan"):
        PerceptronTagger().fit(X, y)


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("dtype", [np.float16, np.int8, ">f8", bool])
def test_numbers_of_other_types_become_float64(dtype):
    numbers = np.random.default_rng(0).integers(1, 9, size=(6, 40)).astype(dtype)
    (_, block) = SequenceBatch(numbers, [0, 6]).blocks[0]
    assert block.dtype == np.float64
    assert_array_equal(block.toarray(), numbers.astype(float))


def test_memory_maps_stay_maps_and_strided_arrays_are_copied(tmp_path):
    values = np.random.default_rng(0).normal(size=(12, 40)).astype(np.float32)
    np.save(tmp_path / "states.npy", values)
    mapped = np.load(tmp_path / "states.npy", mmap_mode="r")
    batch = SequenceBatch(mapped, [0, 5, 12])
    assert np.shares_memory(batch.blocks[0].block.values(), mapped)
    y = [["a", "b", "a", "b", "a"], ["b"] * 7]
    expected = CRFTagger().fit(SequenceBatch(values, [0, 5, 12]), y)
    assert_array_equal(CRFTagger().fit(batch, y).coef_, expected.coef_)
    for strided in (np.asfortranarray(values), np.repeat(values, 2, axis=0)[::2]):
        found = CRFTagger().fit(SequenceBatch(strided, [0, 5, 12]), y)
        assert_array_equal(found.coef_, expected.coef_)
    with pytest.raises(ValueError, match="X has 39 features, but"):
        expected.predict(SequenceBatch(values[:, 1:], [0, 12]))


def signatures():
    """Argument types for which kernels are compiled."""
    modules = [module for name, module in sys.modules.items() if name.startswith("skstruct.")]
    kernels = {id(x): x for m in modules for x in vars(m).values() if isinstance(x, CPUDispatcher)}
    return {(x.py_func.__qualname__, s) for x in kernels.values() for s in x.overloads}


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_workers_of_joblib_need_no_other_kernels(tmp_path):
    batch, y = make_batch(dtype=np.float32)
    taggers = CRFTagger(max_iter=3), PerceptronTagger(max_iter=2), SDCACRF(max_iter=2)
    for X in (batch, batch[3:9]):
        fitted = [tagger.set_params(random_state=0).fit(batch, y) for tagger in taggers]
        expected = [tagger.predict(X).tolist() for tagger in fitted]
        before = signatures()
        # So a worker gets large arrays.
        joblib.dump((batch, X), tmp_path / "batches")
        mapped, X = joblib.load(tmp_path / "batches", mmap_mode="r")
        assert not mapped.blocks[1].block.numbers.flags.writeable
        for tagger, labels in zip(taggers, expected, strict=True):
            assert tagger.fit(mapped, y).predict(X).tolist() == labels
        assert signatures() == before


def test_a_table_of_which_no_row_is_used():
    table, y = np.ones((3, 2)), [["a", "b"], ["b", "b"]]
    numbers = np.array([[0], [-1], [-1], [-1]], np.int32)
    batch = SequenceBatch._of_blocks(None, (Placed(0, LookedUpBlock(table, numbers)),), [0, 2, 4])
    nothing = batch[1:]
    assert len(nothing.blocks[0].block.table) == 0
    tagger = CRFTagger().fit(batch, y)
    assert tagger.predict(nothing).tolist() == tagger.predict(batch)[1:].tolist()
    assert not CRFTagger().fit(nothing, y[1:]).coef_.any()
    assert not nothing.X.any()
    assert len(SequenceBatch.concatenate([nothing, nothing]).blocks[0].block.table) == 0


def test_a_union_does_what_scikit_learns_does():
    X = [["a", "b"], ["b", "c", "a"]]
    vectors = {"a": [1.0, 2.0], "b": [0.5, 0.0]}
    union = SequenceUnion(
        [
            ("v", EmbeddingVectorizer(vectors)),
            ("words", WordVectorizer()),
            ("none", "drop"),
            ("again", EmbeddingVectorizer(vectors, scale=1)),
        ],
        transformer_weights={"v": 3, "none": 2},
    ).fit(X)
    short, long = union.transform(X), union.set_params(verbose=True).transform(X)
    assert_array_equal(short.X.toarray(), long.X.toarray())
    assert [(start, block.factor) for start, block in short.blocks] == [
        (start, block.factor) for start, block in long.blocks
    ]
    assert short.feature_names is None
