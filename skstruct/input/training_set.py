"""The training set as learners get it, and a validation set beside it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import Rows, TransitionRows
from skstruct.input.formats import encode_labels
from skstruct.input.scale import check_sample_weight, check_values
from skstruct.input.weights import read_sample_weight, require_weight
from skstruct.matrices import are_ones, as_csr, read_only

# The column indices of kernels have 32 bits.
_MOST_COLUMNS = int(np.iinfo(np.int32).max)


class TrainingSet(NamedTuple):
    """A validated training set."""

    rows: Rows  # or TransitionRows
    offsets: np.ndarray  # (n_sequences + 1,)
    labels: np.ndarray  # (n_rows,) codes of the classes
    sample_weight: np.ndarray  # (n_sequences,)
    token_weight: np.ndarray = np.empty(0)  # (n_rows,) factors beside it; empty: one

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
        token_weight = self.token_weight[kept] if len(self.token_weight) else self.token_weight
        return TrainingSet(rows, read_only(offsets), self.labels[kept], weight, token_weight)

    def weight_of_tokens(self):
        """Weight of each token, that of its sequence included."""
        weight = np.repeat(self.sample_weight, np.diff(self.offsets))
        return weight * self.token_weight if len(self.token_weight) else weight


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
    return read_only(Rows(indptr, indices, data))


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
    return TransitionRows(*rows, transitions)


def take_rows(rows, kept):
    """Select rows by their numbers, in this order."""
    return read_only(rows.map(lambda part: _take(part, kept)))


def _take(rows, kept):
    counts = np.diff(rows.indptr)[kept]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    source = np.arange(indptr[-1]) + np.repeat(rows.indptr[kept] - indptr[:-1], counts)
    data = rows.data[source] if rows.data.size else rows.data
    return Rows(indptr, rows.indices[source], data)


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


# Codes of labels that no training sequence has go down from here; -1 is that of tokens without a
# label.
_UNSEEN = -2


def read_validation_set(read_X, classes, X, y, sample_weight):
    """Check and encode a validation set.

    Parameters
    ----------
    read_X : callable
        ``read_X(X)`` returns the format and the batch of an X with the features of the training
        set.
    classes : ndarray of shape (n_classes,)
        Labels of the training set.
    X, y, sample_weight : object
        As the caller of `fit` gave them.

    Returns
    -------
    validation_set : TrainingSet
        The sequences with a weight.
    unseen : list
        Labels that no training sequence has, whose codes are -2, -3 and so on.

    Raises
    ------
    ValueError
        If X or y is missing, or invalid; if no token counts; or if no label occurs in training.
    """
    if X is None and y is None:
        raise ValueError("sample_weight_val is given without X_val and y_val.")
    if X is None or y is None:
        raise ValueError("Pass both X_val and y_val, or neither.")
    try:
        format, batch = read_X(X)
        found, codes = encode_labels(y, batch, format)
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        unseen = [label for label in found.tolist() if label not in code_of]
        code_of |= {label: _UNSEEN - number for number, label in enumerate(unseen)}
        known = np.array([code_of[label] for label in found.tolist()], np.int32)
        if np.all(known <= _UNSEEN):
            raise ValueError(f"none of the labels {found.tolist()} occurs in training.")
        weight = read_sample_weight(sample_weight, len(batch), "sample_weight_val")
        require_weight(weight, batch.lengths)
        check_sample_weight(weight)
        rows = batch_rows(batch)
    except ValueError as error:
        raise ValueError(f"X_val, y_val: {error}") from error
    given = TrainingSet(rows, batch.offsets, known[codes], read_only(weight))
    return given.weighted(), unseen
