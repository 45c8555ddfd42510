"""Votes of all predictors of VRDA, rebuilt from the gradient sums of the features."""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.input.training_set import as_rows
from skstruct.utils.parallel import range_runner

__all__ = ["count_all_votes", "feature_histories"]


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
    histories : tuple of ndarray
        Fields of `Histories`; plain arrays, because they are stored with the estimator.
    """
    counts, candidates, factors = (np.concatenate(parts) for parts in zip(*epochs, strict=True))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return kernels.build_histories(rows, indptr, candidates, factors, n_features)


def count_all_votes(batch, base, electorate, n_jobs):
    """Votes of each candidate of a batch, (n_rows,)."""
    rows = kernels.without_shared(as_rows(batch.X), batch.offsets, batch.n_features)
    votes = np.empty(batch.n_rows, np.int64)

    def count(_, first, last):
        kernels.count_votes(rows, batch.offsets, first, last, base, electorate, votes)

    # Each predictor compares all candidates.
    work_per_row = 10.0 * len(electorate.votes)
    with range_runner(batch.offsets, n_jobs, work_per_row) as run:
        run(count)
    return votes
