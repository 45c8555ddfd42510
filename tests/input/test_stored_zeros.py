"""Zeros that sparse matrices store: numbers like any other; those of feature dicts are observed."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.learners import RERANKERS, TAGGERS, labelled_sequences
from helpers.learnt import learnt_by
from helpers.marks import compiled
from numpy.testing import assert_array_equal

from skstruct import CRFTagger, SequenceBatch, SequenceUnion, SequenceVectorizer
from skstruct.crfsuite import CRF

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LENGTHS = [3, 1, 4, 2, 5, 3, 2, 4, 1, 5]


def matrices(seed=0, n_columns=6):
    """A matrix that stores a third of its zeros, and one that stores none."""
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 0.0, 0.5, 1.0, -1.0], (sum(LENGTHS), n_columns))
    # Without copies of the same row for candidates of a group.
    values[:, 0] += np.arange(len(values)) / 8
    stored = (values != 0) | (rng.random(values.shape) < 1 / 3)
    rows, columns = np.nonzero(stored)
    with_zeros = sp.csr_matrix((values[stored], (rows, columns)), shape=values.shape)
    plain = sp.csr_matrix(values)
    assert with_zeros.nnz > plain.nnz == np.count_nonzero(values)
    return with_zeros, plain


def labels(seed=1):
    rng = np.random.default_rng(seed)
    return [[str(label) for label in rng.choice([*"ABC"], n)] for n in LENGTHS]


LEARNERS = {
    **TAGGERS,
    "CRF, frequent": lambda: CRFTagger(min_freq=1, max_iter=4, tol=0),
    "CRF, all states": lambda: CRFTagger(all_possible_states=True, max_iter=4, tol=0),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_taggers_learn_the_same(name):
    with_zeros, plain = matrices()
    y, before = labels(), with_zeros.copy()
    learn = LEARNERS[name]
    expected = learn().fit(SequenceBatch.from_lengths(plain, LENGTHS), y)
    cuts = np.cumsum([0, *LENGTHS])
    pieces = [with_zeros[a:b] for a, b in pairwise(cuts)]
    for X in (SequenceBatch.from_lengths(with_zeros, LENGTHS), pieces):
        found = learn().fit(X, y)
        assert learnt_by(found) == learnt_by(expected)
        for method in ("predict", "predict_proba"):
            one, other = (getattr(expected, method)(data) for data in (X, plain_batch(plain)))
            assert all(map(np.array_equal, one, other))
    rows = learn().fit(with_zeros, np.concatenate(y))
    assert learnt_by(rows) == learnt_by(learn().fit(plain, np.concatenate(y)))
    # The caller's matrix is as it was.
    assert_array_equal(with_zeros.data, before.data)
    assert_array_equal(with_zeros.indices, before.indices)


def plain_batch(matrix):
    return SequenceBatch.from_lengths(matrix, LENGTHS)


@pytest.mark.parametrize(
    "name", ["CRF", "perceptron", *map(compiled, ("SGD", "MIRA", "SAPO", "AROW"))]
)
def test_features_of_transitions(name):
    _, X = matrices()
    expected, found = (
        LEARNERS[name]().fit(SequenceBatch.from_lengths(X, LENGTHS, transition_X=edges), labels())
        for edges in matrices(seed=2, n_columns=2)[::-1]
    )
    assert learnt_by(found) == learnt_by(expected)
    assert found.transition_coef_.any()


@pytest.mark.parametrize("name", RERANKERS)
def test_rerankers_learn_the_same(name):
    lengths = [2, 3, 4, 2, 3, 5, 4, 3, 2, 2]
    costs = [np.arange(n)[::-1] / 2.0 for n in lengths]
    expected, found = (
        RERANKERS[name]().fit(SequenceBatch.from_lengths(X, lengths), costs)
        for X in matrices()[::-1]
    )
    assert learnt_by(found) == learnt_by(expected)
    assert found.coef_.any()


def test_zeros_that_come_later_or_out_of_sums():
    y = [["A", "B"], ["B", "A"]]
    values = np.array([[1.0, 0], [0, 2], [0, 0], [3, 1]])
    plain = CRFTagger().fit(SequenceBatch(values, [0, 2, 4]), y)
    late = sp.csr_matrix(np.where(values == 0, 7, values))
    batch = SequenceBatch(late, [0, 2, 4])
    batch.X.data[:] = values.ravel()
    arrays = (
        np.array([1.0, 2, 5, -5, 3, 1]),
        np.array([0, 1, 1, 1, 0, 1]),
        np.array([0, 1, 2, 4, 6]),
    )
    summed = SequenceBatch(sp.csr_matrix(arrays, shape=(4, 2)), [0, 2, 4])
    for X in (batch, summed):
        assert_array_equal(CRFTagger().fit(X, y).coef_, plain.coef_)


# ----------------------------------------------------------------------------- feature dicts


@pytest.fixture
def dicts():
    X, y = labelled_sequences()
    for sequence, golds in zip(X, y, strict=True):
        for token, label in zip(sequence, golds, strict=True):
            token["other than C"] = label != "C"
    return X, y


def test_zeros_of_dicts_are_observed(dicts):
    """With CRFsuite's rule, a weight for each feature and label that occur together."""
    X, y = dicts
    pairs = {
        (name, label)
        for sequence, golds in zip(X, y, strict=True)
        for token, label in zip(sequence, golds, strict=True)
        for name in (f"word:{token['word']}", "even", "other than C")
    }
    tagger = CRFTagger(fit_intercept=False, max_iter=1).fit(X, y)
    n_transitions = len({pair for golds in y for pair in pairwise(golds)})
    assert tagger.n_weights_ == len(pairs) + n_transitions
    assert CRF(max_iterations=1).fit(X, y).estimator_.n_weights_ == tagger.n_weights_


def test_batches_of_dicts_keep_their_zeros(dicts):
    X, y = dicts
    expected = learnt_by(CRFTagger(max_iter=3).fit(X, y))
    del expected["vectorizer_"]
    batch = SequenceVectorizer().fit_transform(X)
    assert batch.keep_zeros
    union = SequenceUnion([("dicts", SequenceVectorizer())]).fit_transform(X)
    nothing = SequenceBatch(np.empty((batch.n_rows, 0)), batch.offsets)
    for same in [
        batch,
        pickle.loads(pickle.dumps(batch)),
        SequenceBatch.concatenate([batch[:4], batch[np.arange(4, len(batch))]]),
        SequenceBatch.hstack([batch, nothing])[:],
        union * 1.0,
    ]:
        found = learnt_by(CRFTagger(max_iter=3).fit(same, y))
        assert {**expected, **found} == {**found, **expected}
    fewer = CRFTagger(max_iter=3).fit(SequenceBatch(batch.X, batch.offsets), y)
    assert fewer.n_weights_ < CRFTagger(max_iter=3).fit(batch, y).n_weights_


def test_a_batch_without_zeros_keeps_none():
    plain = SequenceVectorizer().fit_transform([[{"a": 1, "b": 2}]])
    assert not plain.keep_zeros
    plain.X.data[0] = 0.0
    assert SequenceBatch.concatenate([plain, plain]).X.nnz == 2
