"""The validated training set, and feature matrices in the layout of the kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skstruct import kernels
from skstruct.input.scale import check_values
from skstruct.utils.sparse import are_ones, as_csr, read_only

__all__ = ["TrainingSet", "as_rows", "batch_rows", "take_rows", "zero_transition_weights"]

# The column indices of kernels have 32 bits.
_MOST_COLUMNS = int(np.iinfo(np.int32).max)


class TrainingSet(NamedTuple):
    """A validated training set."""

    rows: kernels.Rows  # or TransitionRows
    offsets: np.ndarray  # (n_sequences + 1,)
    labels: np.ndarray  # (n_rows,) codes of the classes
    sample_weight: np.ndarray  # (n_sequences,)

    def counting(self):
        """Numbers of the sequences that have tokens and a weight."""
        return np.flatnonzero((self.sample_weight > 0) & (np.diff(self.offsets) > 0))

    def effective(self):
        """Return the part that can be learned from: sequences with tokens and a weight."""
        counting = self.counting()
        return self if len(counting) == len(self.sample_weight) else self.take(counting)

    def weighted(self):
        """Return the sequences that have a weight: others are as if they were not there."""
        kept = np.flatnonzero(self.sample_weight)
        return self if len(kept) == len(self.sample_weight) else self.take(kept)

    def take(self, sequences):
        """Select sequences by their numbers."""
        lengths = np.diff(self.offsets)[sequences]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        kept = np.arange(offsets[-1]) + np.repeat(self.offsets[sequences] - offsets[:-1], lengths)
        rows = take_rows(self.rows, kept)
        weight = read_only(self.sample_weight[sequences])
        return TrainingSet(rows, read_only(offsets), self.labels[kept], weight)


def as_rows(X):
    """Convert a dense or CSR matrix to the layout of the kernels.

    Values that are all one, as those of most text features, are not stored.
    """
    X = as_csr(X)
    if X.shape[1] > _MOST_COLUMNS:
        raise ValueError(
            f"X has {X.shape[1]:,} columns, more than the {_MOST_COLUMNS:,} that are supported: "
            "use fewer features."
        )
    data = np.empty(0) if are_ones(X.data) else X.data.astype(np.float64, copy=False)
    indptr, indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    return read_only(kernels.Rows(indptr, indices, data))


def batch_rows(batch):
    """Convert a batch to the layout of the kernels, with its transition features if any.

    A batch that was packed for decoders is in it. A value that is too large to compute with is a
    ValueError.
    """
    packed = getattr(batch, "rows", None)
    rows = as_rows(batch.X) if packed is None else packed
    check_values(rows, batch.offsets, names=getattr(batch, "feature_names", None))
    if packed is not None or batch.transition_X is None:
        return rows
    transitions = as_rows(batch.transition_X)
    check_values(transitions, batch.offsets, "transition feature")
    return kernels.TransitionRows(*rows, transitions)


def take_rows(rows, kept):
    """Select rows by their numbers, in this order."""
    counts = np.diff(rows.indptr)[kept]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    source = np.arange(indptr[-1]) + np.repeat(rows.indptr[kept] - indptr[:-1], counts)
    data = rows.data[source] if rows.data.size else rows.data
    taken = rows._replace(indptr=indptr, indices=rows.indices[source], data=data)
    if isinstance(rows, kernels.TransitionRows):
        taken = taken._replace(transitions=take_rows(rows.transitions, kept))
    return read_only(taken)


def zero_transition_weights(n_features, n_labels):
    """Make zero weights for transition features; an error tells how much memory they need."""
    try:
        return np.zeros((n_features, n_labels**2))
    except (MemoryError, ValueError):
        raise MemoryError(
            f"The weights of {n_features} transition features for {n_labels} x {n_labels} label "
            f"pairs need {8 * n_features * n_labels**2:,} bytes, more than is available; use fewer "
            "transition features."
        ) from None
