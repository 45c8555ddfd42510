"""Votes of all predictors of VRDA, rebuilt from the gradient sums of the features."""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.input.training_set import batch_rows
from skstruct.rerankers.groups import errors_name_groups
from skstruct.utils.declared import Array, Declaration, Record
from skstruct.utils.parallel import range_runner

__all__ = ["VoteHistories", "count_all_votes", "feature_histories"]


class VoteHistories(Declaration):
    """`Histories` of a reranker, whose mistakes ascend for every feature."""

    def write(self, value):
        """Dict of the fields."""
        return self._record().write(value)

    def read(self, value, what, size):
        """Histories that voting can replay."""
        found = self._record().read(value, "the history of votes", size)
        indptr, mistake = found.indptr, found.mistake
        if indptr[0] != 0 or np.any(np.diff(indptr) < 0) or indptr[-1] != len(mistake):
            raise ValueError("the history of votes does not belong to the features.")
        later = np.ones(len(mistake), bool)
        later[indptr[:-1][np.diff(indptr) > 0]] = False
        if len(found.gradient_sum) != len(mistake) or np.any(np.diff(mistake)[later[1:]] <= 0):
            raise ValueError("the mistakes in the history of votes are not in order.")
        return found

    def _record(self):
        return Record(
            kernels.Histories,
            indptr=Array(np.int64, (("n_features_in_", 1),), least=0),
            mistake=Array(np.int32, (None,), least=1, below=("n_mistakes_", 1)),
            gradient_sum=Array(np.float64, (None,)),
        )


def feature_histories(rows, epochs, n_features):
    """Gradient sum of each feature after each mistake that changed it.

    Parameters
    ----------
    rows : Rows
        Candidates of the training set.
    epochs : list of tuple of ndarray
        For each epoch, the number of candidates in the gradient of each mistake, their rows, and
        their factors.
    n_features : int
        Number of features.

    Returns
    -------
    histories : Histories
    """
    counts, candidates, factors = (np.concatenate(parts) for parts in zip(*epochs, strict=True))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return kernels.Histories(
        *kernels.build_histories(rows, indptr, candidates, factors, n_features)
    )


def count_all_votes(batch, base, electorate, n_jobs):
    """Votes of each candidate of a batch, (n_rows,)."""
    with errors_name_groups():
        rows = batch_rows(batch)
    rows = kernels.without_shared(rows, batch.offsets, batch.n_features)
    votes = np.empty(batch.n_rows, np.int64)

    def count(_, first, last):
        kernels.count_votes(rows, batch.offsets, first, last, base, electorate, votes)

    # Each predictor compares all candidates.
    work_per_row = 10.0 * len(electorate.votes)
    with range_runner(batch.offsets, n_jobs, work_per_row) as run:
        run(count)
    return votes
