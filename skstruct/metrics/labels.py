"""Labels of a batch: stacked, checked and compared token by token."""

from itertools import chain
from operator import eq
from typing import NamedTuple

import numpy as np

from skstruct.input.formats import NO_LABEL
from skstruct.utils.messages import short_repr

__all__ = [
    "StackedLabels",
    "as_list",
    "check_sample_weight",
    "check_types",
    "compare_tokens",
    "stack",
    "stack_pair",
    "weigh_tokens",
    "weighted_share",
]


class StackedLabels(NamedTuple):
    """All labels of a batch, concatenated, with the offsets of the sequences."""

    name: str
    labels: list
    offsets: np.ndarray

    def fail(self, position, complaint):
        """Raise a ValueError about the label at a position."""
        sequence = np.searchsorted(self.offsets, position, side="right") - 1
        label = self.labels[position]
        raise ValueError(f"{self.name}[{sequence}] has the label {short_repr(label)}: {complaint}")


def as_list(y):
    """Convert an array or a sequence to a list."""
    return y.tolist() if isinstance(y, np.ndarray) else list(y)


def stack(y, name):
    """Stack the labels of all sequences."""
    if isinstance(y, str) or not hasattr(y, "__len__"):
        raise ValueError(f"{name} must be a list or array of labels, got {type(y).__name__}")
    rows = as_list(y.to_numpy() if hasattr(y, "to_numpy") else y)
    plain = [issubclass(kind, str) or not hasattr(kind, "__len__") for kind in map(type, rows)]
    if not any(plain):
        # Copies, as another thread may change the lists.
        rows = list(map(as_list, rows))
        labels = list(chain.from_iterable(rows))
        lengths = [len(row) for row in rows]
    elif all(plain):
        labels = rows
        lengths = [1] * len(rows)
    else:
        odd = plain.index(not plain[0])
        raise ValueError(
            f"{name} mixes labels and sequences of labels: {name}[0] is a "
            f"{type(rows[0]).__name__}, {name}[{odd}] a {type(rows[odd]).__name__}"
        )
    if not labels:
        raise ValueError(f"{name} has no {'labels' if rows else 'sequences'}")
    return StackedLabels(name, labels, np.concatenate(([0], np.cumsum(lengths))))


def stack_pair(y_true, y_pred, allowed, complaint):
    """Stack the labels of both sides, and check their lengths and types."""
    return _check_pair(stack(y_true, "y_true"), stack(y_pred, "y_pred"), allowed, complaint)


def _check_pair(y_true, y_pred, allowed, complaint):
    pair = y_true, y_pred
    true, pred = (np.diff(tokens.offsets) for tokens in pair)
    if len(true) != len(pred):
        raise ValueError(f"y_true has {len(true)} sequences but y_pred has {len(pred)}")
    if (true != pred).any():
        i = np.argmax(true != pred)
        raise ValueError(f"y_true[{i}] has {true[i]} labels but y_pred[{i}] has {pred[i]}")
    for tokens in pair:
        check_types(tokens, allowed, complaint)
    return pair


def check_types(tokens, allowed, complaint):
    """Raise a ValueError unless all labels are of an allowed type."""
    if not all(issubclass(kind, allowed) for kind in set(map(type, tokens.labels))):
        valid = [isinstance(label, allowed) for label in tokens.labels]
        tokens.fail(valid.index(False), complaint)


def check_sample_weight(sample_weight, n_sequences):
    """Weights of the sequences as an array; None if not given."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=float)
    if weights.shape != (n_sequences,):
        raise ValueError(
            f"sample_weight must have shape ({n_sequences},), one weight for each sequence, "
            f"got {weights.shape}"
        )
    valid = np.isfinite(weights) & (weights >= 0)
    if not valid.all():
        i = np.argmin(valid)
        raise ValueError(
            f"sample_weight[{i}] is {weights[i]}; weights must be finite and not negative"
        )
    if n_sequences and not weights.any():
        raise ValueError("the weights add up to zero; give some sequence a weight")
    return weights


def weighted_share(true, weights):
    """Share of what is true, weighted; ValueError if all weights are zero."""
    if weights is not None and len(weights) and not weights.sum():
        raise ValueError("the weights of all tokens add up to zero; give some sequence a weight")
    return float(np.average(true, weights=weights))


def weigh_tokens(sample_weight, lengths):
    """Weights of the tokens; None if not given."""
    weights = check_sample_weight(sample_weight, len(lengths))
    return None if weights is None else np.repeat(weights, lengths)


def compare_tokens(y_true, y_pred, *, partial=False):
    """Compare the labels of two sides.

    Returns
    -------
    hit : ndarray of shape (n_tokens,), dtype bool
        True where the labels are equal.
    lengths : ndarray of shape (n_sequences,)
    known : ndarray of shape (n_tokens,), dtype bool
        False where `partial` and the correct label is None.
    """
    numbers = (str, int, float, np.generic)
    pair = stack(y_true, "y_true"), stack(y_pred, "y_pred")
    n, known = len(pair[0].labels), np.ones(len(pair[0].labels), bool)
    if partial and type(None) in set(map(type, pair[0].labels)):
        known = np.fromiter((label is not None for label in pair[0].labels), bool, n)
        labels = [0 if label is None else label for label in pair[0].labels]
        pair = pair[0]._replace(labels=labels), pair[1]
    true, pred = _check_pair(*pair, numbers, "labels must be str or numbers")
    if NO_LABEL in true.labels:
        replaced = "skstruct.datasets.labels_from_ids replaces it by None"
        true.fail(true.labels.index(NO_LABEL), f"it stands for no label; {replaced}")
    hit = np.fromiter(map(eq, true.labels, pred.labels), bool, n)
    return hit, np.diff(true.offsets), known
