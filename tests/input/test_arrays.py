"""Arrays that can be written to, and such that cannot: kernels see no difference."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp

from skstruct import PerceptronTagger, SequenceBatch
from skstruct.chain.scores import Rows
from skstruct.input.training_set import TrainingSet, batch_rows
from skstruct.matrices import read_only


def batch(*, transition_features=False):
    X = sp.csr_matrix(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]))
    return SequenceBatch(X, [0, 1, 3], transition_X=X if transition_features else None)


def frozen(batch):
    """The batch as a worker of joblib gets a large one: its arrays are memory maps to be read."""
    for matrix in filter(lambda matrix: matrix is not None, (batch.X, batch.transition_X)):
        for name in ("data", "indices", "indptr"):
            array = getattr(matrix, name)
            array.flags.writeable = False
    return batch


def test_views_of_records_cannot_be_written_to():
    rows = Rows(np.arange(3), np.arange(3, dtype=np.int32), np.ones(3))
    view = read_only(rows)
    assert isinstance(view, Rows)
    for array, original in zip(view, rows, strict=True):
        assert np.shares_memory(array, original)
        assert not array.flags.writeable
        assert original.flags.writeable


def test_memory_maps_become_plain_arrays(tmp_path):
    np.save(tmp_path / "array.npy", np.ones(3))
    array = np.load(tmp_path / "array.npy", mmap_mode="r")
    assert type(read_only(array)) is np.ndarray


@pytest.mark.parametrize("transition_features", [False, True])
def test_types_of_rows_do_not_depend_on_who_may_write(transition_features):
    one = batch(transition_features=transition_features)
    other = frozen(batch(transition_features=transition_features))
    assert numba.typeof(batch_rows(one)) == numba.typeof(batch_rows(other))
    assert numba.typeof(one.offsets) == numba.typeof(other[:2].offsets)


def test_a_part_of_a_training_set_has_the_types_of_the_whole():
    whole = TrainingSet(
        batch_rows(batch()), batch().offsets, np.array([0, 1, 0]), read_only(np.ones(2))
    )
    assert numba.typeof(whole.take(np.array([1]))) == numba.typeof(whole)


def test_a_memory_mapped_model_decodes_with_the_same_kernels():
    tagger = PerceptronTagger(max_iter=1, tol=None, random_state=0).fit(
        batch(), [["a"], ["b", "a"]]
    )
    before = tagger._condition(batch(), None, None)
    tagger.coef_.flags.writeable = tagger.transition_.flags.writeable = False
    after = tagger._condition(batch(), None, None)
    assert numba.typeof(before[:2]) == numba.typeof(after[:2])
