"""The training set in the layout of the learners, its weights, and the validation set."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple

import numpy as np

from skstruct.blocks.rows import BlockRows, is_dense, without_blocks
from skstruct.chain.scores import Rows, TransitionRows
from skstruct.input.formats import encode_labels
from skstruct.input.scale import check_blocks, check_sample_weight, check_values
from skstruct.matrices import are_ones, as_csr, ranges, read_only, to_offsets
from skstruct.sequences import tokens_of
from skstruct.utils.messages import DataError, position, short_repr

# The column indices of kernels have 32 bits.
_MOST_COLUMNS = int(np.iinfo(np.int32).max)


class TrainingSet(NamedTuple):
    """A validated training set."""

    rows: Rows  # or TransitionRows, or BlockRows
    offsets: np.ndarray  # (n_sequences + 1,)
    labels: np.ndarray  # (n_rows,) codes of the classes
    sample_weight: np.ndarray  # (n_sequences,)
    token_weight: np.ndarray = np.empty(0)  # (n_rows,) further factors; empty if all are one

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
        kept, offsets = ranges(self.offsets[sequences], np.diff(self.offsets)[sequences])
        rows = take_rows(self.rows, kept)
        weight = read_only(self.sample_weight[sequences])
        token_weight = self.token_weight[kept] if len(self.token_weight) else self.token_weight
        return TrainingSet(rows, read_only(offsets), self.labels[kept], weight, token_weight)

    def without_blocks(self):
        """Return the same with sparse columns in place of blocks."""
        return self._replace(rows=without_blocks(self.rows))

    def weight_of_tokens(self):
        """Weight of each token, its sequence's included."""
        weight = np.repeat(self.sample_weight, np.diff(self.offsets))
        return weight * self.token_weight if len(self.token_weight) else weight


def as_rows(X):
    """Convert a dense or CSR matrix to the layout of the kernels.

    Values that are all one, as in most text features, are not stored.
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
    """Convert a batch to the layout of the kernels, with sparse columns in place of blocks."""
    return without_blocks(block_rows(batch))


def block_rows(batch):
    """Convert a batch to the layout of the kernels, with its transition features and blocks if any.

    The matrix of a few sequences is not made for that, which would take most of the time of a
    prediction. Raises a ValueError for a value that is too large to compute with.
    """
    rows, placed = _rows_and_blocks(batch)
    check_values(rows, batch.offsets, names=batch.feature_names)
    check_blocks(placed, batch.offsets, batch.n_features, batch.feature_names)
    if batch.transition_X is not None:
        transitions = as_rows(batch.transition_X)
        check_values(transitions, batch.offsets, "transition feature")
        rows = TransitionRows(*rows, transitions)
    return BlockRows(rows, placed) if placed else rows


def _rows_and_blocks(batch):
    """Rows of the sparse columns of a batch, and its blocks; see `is_dense`."""
    tokens, blocks = tokens_of(batch), batch._has_blocks
    if tokens is not None:
        return Rows(*tokens[:3]), batch._columns(loose=True)[1] if blocks else ()
    sparse, placed, _ = batch._columns()
    if not batch._has_blocks and placed and not is_dense(batch.X):
        return as_rows(batch.X), ()
    if sparse is None:
        n_rows = placed[0].block.n_rows
        nothing = Rows(np.zeros(n_rows + 1, np.int64), np.empty(0, np.int32), np.empty(0))
        return read_only(nothing), placed
    return as_rows(sparse), placed


def take_rows(rows, kept):
    """Select rows by their numbers, in this order."""
    if rows.placed:
        return rows.take(kept, take_rows)
    return read_only(rows.map(lambda part: _take(part, kept)))


def _take(rows, kept):
    source, indptr = ranges(rows.indptr[kept], np.diff(rows.indptr)[kept])
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


# Labels that no training sequence has are numbered from here downwards; -1 stands for no label.
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
        rows = block_rows(batch)
    except ValueError as error:
        error = DataError.of(error)
        error.part = "X_val, y_val"
        raise error from None
    given = TrainingSet(rows, batch.offsets, known[codes], read_only(weight))
    return given.weighted(), unseen


# Labels that are not known


def check_partial(labels, offsets, *, learns):
    """Raise an error for tokens without a label unless a tagger can learn from them.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        Codes of the classes, negative where there is no label.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    learns : bool
        The tagger learns from partly labelled sequences.

    Raises
    ------
    ValueError
        If it does not, or no token has a label.
    """
    if not learns:
        raise DataError(
            "{place} has no label; only CRFTagger with solver='lbfgs' or solver='sgd' learns from "
            "partly labelled sequences. Use one of these, or leave tokens without a label out of "
            "X and y.",
            *position(offsets, np.argmin(labels)),
        )
    if labels.max() < 0:
        raise ValueError("No token has a label: at least one label is required.")


def without_unlabelled(sample_weight, labels, offsets):
    """Weights of sequences, with zeros for those without any label."""
    n_labelled = np.concatenate([[0], np.cumsum(labels >= 0)])[offsets]
    return np.where(np.diff(n_labelled) > 0, sample_weight, 0.0)


# Weights of sequences, tokens and classes


def read_sample_weight(sample_weight, n_sequences, name="sample_weight"):
    """Check weights of sequences.

    Parameters
    ----------
    sample_weight : float, array-like of shape (n_sequences,) or None
        As the user gave them. A number is the weight of each sequence, None stands for 1.
    n_sequences : int
    name : str, default="sample_weight"
        For messages.

    Returns
    -------
    weight : ndarray of shape (n_sequences,)
        Finite and not negative, a copy.

    Raises
    ------
    ValueError
        If a weight is negative, NaN, infinite or no number, if there are more or fewer than
        sequences, or if their sum is infinite.
    """
    if sample_weight is None:
        return np.ones(n_sequences)
    if has_token_weights(sample_weight):
        raise ValueError(f"{name} has weights of tokens; pass one for each sequence.")
    weight = _as_numbers(sample_weight, name)
    if weight.ndim == 0:
        _refuse_invalid(weight[None], lambda _: name)
        weight = np.full(n_sequences, weight)
    elif weight.shape != (n_sequences,):
        # The third argument is lengths in other libraries.
        like = ""
        if weight.ndim == 1 and weight.sum() == n_sequences:
            like = " Lengths of sequences belong to X: SequenceBatch.from_lengths(X, lengths)."
        raise DataError(
            f"{name} must have shape ({n_sequences},), one weight for each {{sequence}}, "
            f"got {weight.shape}.{like}"
        )
    _refuse_invalid(weight, f"{name}[{{}}]".format)
    with np.errstate(over="ignore"):
        _refuse_infinite(weight.sum(), name)
    return weight


def _refuse_invalid(weight, name_of, sequence=None):
    """Raise a ValueError for the first weight that is not finite, or negative."""
    for i in np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))[:1].tolist():
        fact = f"{name_of(i)} is {weight[i]}; weights must be finite and not negative."
        raise ValueError(fact) if sequence is None else DataError.of(fact, sequence, i)


def _refuse_infinite(total, name="sample_weight"):
    """Raise a ValueError for sums of weights that have overflowed."""
    if not np.isfinite(total).all():
        raise ValueError(f"{name} adds up to infinity: divide the weights by the largest one.")


def has_token_weights(sample_weight):
    """Return True for weights in the form of labels: a sequence of them for each sequence."""
    if isinstance(sample_weight, np.ndarray) and sample_weight.dtype.kind != "O":
        # A column is more likely a mistake than weights of sequences of one token each.
        return sample_weight.ndim == 2 and sample_weight.shape[1] != 1
    return _is_list(sample_weight) and any(map(_is_list, sample_weight))


def _is_list(value):
    """Return True for a list, a tuple, a series of pandas or polars, or an array with an axis."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, (list, tuple)) or hasattr(value, "to_list")


def read_token_weights(sample_weight, lengths):
    """Check weights of tokens.

    Parameters
    ----------
    sample_weight : sequence of array-like of shape (length,)
        As the user gave them (see `has_token_weights`).
    lengths : ndarray of shape (n_sequences,)
        Number of tokens of each sequence.

    Returns
    -------
    weight : ndarray of shape (n_sequences,)
        Mean of the weights of each sequence, 1 for one without tokens.
    token_weight : ndarray of shape (n_rows,) or (0,)
        Factors of the tokens beside that mean; empty if all are one.

    Raises
    ------
    ValueError
        If there are more or fewer weights than tokens, a weight is negative, NaN, infinite or no
        number, or their sum is infinite.
    """
    if len(sample_weight) != len(lengths):
        raise ValueError(
            f"sample_weight has weights of {len(sample_weight)} sequences, but there are "
            f"{len(lengths)}."
        )
    mean, factors = np.ones(len(lengths)), []
    for i, (weights, length) in enumerate(zip(sample_weight, lengths.tolist(), strict=True)):
        weights = _as_numbers(weights, f"sample_weight[{i}]")
        if weights.shape != (length,):
            raise ValueError(
                f"sample_weight[{i}] must have shape ({length},), one weight for each token of "
                f"sequence {i}, got {weights.shape}."
            )
        _refuse_invalid(weights, lambda _: "sample_weight", sequence=i)
        if length:
            # The mean of equal numbers may be off by rounding.
            with np.errstate(over="ignore"):
                mean[i] = weights[0] if (weights == weights[0]).all() else weights.mean()
            factors.append(weights / mean[i] if mean[i] > 0 else np.ones(length))
    _refuse_infinite(mean)
    factors = np.concatenate(factors) if factors else np.empty(0)
    weight = read_sample_weight(mean, len(lengths))
    return weight, factors if np.any(factors != 1) else np.empty(0)


def _as_numbers(sample_weight, name):
    try:
        weight = np.asarray(sample_weight)
        if weight.dtype.kind in "biufO":
            return np.array(weight, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        pass
    raise ValueError(f"{name} must be numbers, got {short_repr(sample_weight)}.")


def require_weight(weight, lengths):
    """Raise a ValueError unless a sequence with tokens has a weight."""
    if not np.any(weight[lengths > 0]):
        raise ValueError("Sample weights must contain at least one non-zero number.")


def empty_unweighted(batch, labels, weight):
    """Leave out the rows of sequences that have no weight.

    These become empty sequences, so that messages number the others as the user does.

    Parameters
    ----------
    batch : SequenceBatch
    labels : ndarray of shape (n_rows,)
    weight : ndarray of shape (n_sequences,)

    Returns
    -------
    batch : SequenceBatch
    labels : ndarray
        Of the rows that are left.
    """
    weighted = weight > 0
    rows = np.flatnonzero(np.repeat(weighted, batch.lengths))
    return batch._select(rows, to_offsets(batch.lengths * weighted)), labels[rows]


def classes_that_occur(classes, labels):
    """Return the classes that labels have, and the codes of the labels among these."""
    found = np.unique(labels[labels >= 0])
    codes = np.searchsorted(found, labels).astype(labels.dtype)
    return classes[found], np.where(labels < 0, labels, codes)


def weigh_sequences(class_weight, classes, labels, offsets, sample_weight):
    """Multiply the weights of sequences by the mean class weight of their tokens.

    Weights of tokens would have no place in the objective, because the likelihood of a sequence
    does not factor over its tokens. Weights of sequences keep it a weighted sum of negative
    log-likelihoods.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weight of each class, by default 1. "balanced": ``n_tokens / (n_classes * count)``,
        inversely proportional to the frequency of the class, where tokens are weighted by
        `sample_weight`.
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    labels : ndarray of shape (n_rows,)
        Codes of the classes. Negative codes are tokens without a label, which are left out of
        means and counts.
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    sample_weight : ndarray of shape (n_sequences,)
        Weights of the sequences.

    Returns
    -------
    weight : ndarray of shape (n_sequences,)

    Raises
    ------
    ValueError
        If a weight is negative, NaN or infinite, also the product, or if a dict has weights for
        unknown labels and lacks some of the classes.
    """
    if class_weight is None or len(class_weight) == 0:
        return sample_weight
    n_sequences = len(sample_weight)
    labelled = np.flatnonzero(labels >= 0)
    codes = labels[labelled]
    owner = np.repeat(np.arange(n_sequences), np.diff(offsets))[labelled]
    if isinstance(class_weight, Mapping):
        weight_of = _weights_by_class(class_weight, classes.tolist())
    else:
        weight_of = _balanced(codes, sample_weight[owner], len(classes))
    n_tokens = np.bincount(owner, minlength=n_sequences)
    total = np.bincount(owner, weight_of[codes], n_sequences)
    mean = np.divide(total, n_tokens, np.ones(n_sequences), where=n_tokens > 0)
    with np.errstate(over="ignore"):
        weight = sample_weight * mean
    if not np.isfinite(weight).all():
        i = int(np.argmin(np.isfinite(weight)))
        raise DataError(
            "{place}: sample_weight times the mean of class_weight is {weight}; divide the weights "
            "by the largest one.",
            i,
            weight=weight[i],
        )
    return weight


def refuse_balanced(class_weight):
    """Raise an error for weights by frequency, as ``partial_fit`` never sees all labels."""
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight={class_weight!r} needs all labels at once, but partial_fit sees only "
            "some of them. Pass the weights of the classes as a dict."
        )


def _weights_by_class(class_weight, classes):
    for label, weight in class_weight.items():
        if not _is_weight(weight):
            raise ValueError(
                f"class_weight has {short_repr(weight)} for {short_repr(label)}; weights must be "
                "finite and not negative."
            )
    unknown = sorted(class_weight.keys() - set(classes), key=str)
    # Where all classes have weights, others may be for labels that this part of the data lacks.
    if unknown and not all(label in class_weight for label in classes):
        raise ValueError(
            f"class_weight has weights for {short_repr(unknown)}, which are not among the classes."
        )
    return np.array([class_weight.get(label, 1.0) for label in classes], np.float64)


def _is_weight(value):
    try:
        return isinstance(value, Real) and 0 <= float(value) < np.inf
    except OverflowError:
        return False


def _balanced(codes, weight, n_classes):
    count = np.bincount(codes, weight, n_classes)
    # Classes without a token, or with tokens of weight zero alone, do not count as classes.
    counts = count > 0
    with np.errstate(over="ignore"):
        total, shares = count.sum(), counts.sum() * count
    _refuse_infinite([total, *shares])
    return np.divide(total, shares, np.zeros(n_classes), where=counts)
