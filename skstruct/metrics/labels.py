"""Labels of a batch, compared token by token: accuracy of tokens and of whole sequences."""

from collections.abc import Iterable, Mapping
from itertools import chain
from operator import eq
from typing import NamedTuple

import numpy as np

from skstruct.input.formats import NO_LABEL
from skstruct.input.training_set import read_sample_weight
from skstruct.matrices import to_offsets
from skstruct.utils.messages import DataError, position, short_repr
from skstruct.utils.persistence import set_module

_NO_LABEL = (
    "it stands for no label; leave such tokens out of y_true and y_pred, as token_accuracy_score "
    "does where y_true has none"
)


class StackedLabels(NamedTuple):
    """All labels of a batch, concatenated, with the offsets of the sequences."""

    name: str
    labels: list
    offsets: np.ndarray
    flat: bool = False  # labels without sequences around them, each one of length one

    def fail(self, row, complaint):
        """Raise a ValueError about the label at a position."""
        sequence, token = position(self.offsets, row)
        where = "" if self.flat else f" (token {token})"
        raise DataError(
            "{name}[{i}] has the label {label}: {complaint}" + where,
            *(sequence, token),
            name=self.name,
            i=sequence,
            label=short_repr(self.labels[row]),
            complaint=complaint,
        )


def as_list(y):
    """Convert an array or a sequence to a list."""
    return y.tolist() if isinstance(y, np.ndarray) else list(y)


def sequences_of(y, name):
    """Convert sequences to lists; an error names the first element that is not a sequence."""
    rows = as_list(y)
    for i, row in enumerate(rows):
        if isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable):
            raise ValueError(
                f"{name}[{i}] is {short_repr(row)}, but a list of sequences is expected: put a "
                f"single sequence into a list, [{name}]."
            )
    return [as_list(row) for row in rows]


def check_lengths(tokens, labels, what="labels"):
    """Raise a ValueError unless each sequence of tokens has as many labels."""
    if len(tokens) != len(labels):
        raise ValueError(
            f"There are {len(tokens)} sequences of tokens, but {what} for {len(labels)}."
        )
    for i, (sequence, given) in enumerate(zip(tokens, labels, strict=True)):
        if len(sequence) != len(given):
            raise DataError(f"{{place}} has {len(sequence)} tokens, but {len(given)} {what}.", i)


def stack(y, name):
    """Stack the labels of all sequences."""
    if isinstance(y, str) or not hasattr(y, "__len__"):
        raise ValueError(f"{name} must be a list or array of labels, got {type(y).__name__}")
    rows = as_list(y.to_numpy() if hasattr(y, "to_numpy") else y)
    plain = [issubclass(kind, str) or not hasattr(kind, "__len__") for kind in map(type, rows)]
    flat = any(plain)
    if flat and not all(plain):
        odd = plain.index(not plain[0])
        raise ValueError(
            f"{name} mixes labels and sequences of labels: {name}[0] is a "
            f"{type(rows[0]).__name__}, {name}[{odd}] a {type(rows[odd]).__name__}"
        )
    rows = rows if flat else list(map(as_list, rows))
    labels = rows if flat else list(chain.from_iterable(rows))
    if not labels:
        raise ValueError(f"{name} has no {'labels' if rows else 'sequences'}")
    return StackedLabels(name, labels, to_offsets([1 if flat else len(row) for row in rows]), flat)


def stack_both(y_true, y_pred):
    """Stack the labels of both sides; a ValueError unless their sequences are equally long.

    Labels of a list are a sequence without the list around it, unless the other side is an array:
    then the rows of X were sequences of length one.
    """
    pair = stack(y_true, "y_true"), stack(y_pred, "y_pred")
    flat = [(tokens, y) for tokens, y in zip(pair, (y_true, y_pred), strict=True) if tokens.flat]
    if flat and not any(hasattr(y, "__array__") for _, y in flat):
        name, first = flat[0][0].name, short_repr(flat[0][0].labels[0])
        raise ValueError(
            f"{name}[0] is the label {first}, but a list of sequences of labels is expected: put "
            f"the labels of a single sequence into a list, [{name}]. If every label is a sequence "
            "of its own, pass one-dimensional arrays."
        )
    true, pred = (np.diff(tokens.offsets) for tokens in pair)
    if len(true) != len(pred):
        raise ValueError(f"y_true has {len(true)} sequences but y_pred has {len(pred)}")
    if (true != pred).any():
        i = int(np.argmax(true != pred))
        raise DataError(f"y_true[{i}] has {true[i]} labels but y_pred[{i}] has {pred[i]}", i)
    return pair


def check_types(tokens, allowed, complaint):
    """Raise a ValueError unless all labels are of an allowed type."""
    if not all(issubclass(kind, allowed) for kind in set(map(type, tokens.labels))):
        row = [isinstance(label, allowed) for label in tokens.labels].index(False)
        tokens.fail(row, _NO_LABEL if tokens.labels[row] is None else complaint)


def _refuse_strings_beside_numbers(true, pred):
    """Raise a ValueError if one side has strings only, and the other one numbers only."""
    kinds = [set(map(type, tokens.labels)) - {type(None)} for tokens in (true, pred)]
    are_strings = [{issubclass(kind, str) for kind in found} for found in kinds]
    if are_strings in ([{True}, {False}], [{False}, {True}]):
        raise ValueError(
            f"y_true has labels such as {short_repr(_first_label(true))}, but y_pred such as "
            f"{short_repr(_first_label(pred))}: a string and a number are never equal; convert "
            "the labels of one side."
        )


def _first_label(tokens):
    return next(label for label in tokens.labels if label is not None)


def weigh_sequences(sample_weight, n_sequences):
    """Weights of the sequences as an array, all one by default."""
    weights = read_sample_weight(sample_weight, n_sequences)
    if not weights.any():
        raise ValueError("the weights add up to zero; give some sequence a weight")
    return weights


def count_by_sequence(tokens, lengths):
    """Count tokens by sequence.

    Parameters
    ----------
    tokens : ndarray
        Positions among the tokens of all sequences, or a mask of these.
    lengths : ndarray of shape (n_sequences,)

    Returns
    -------
    counts : ndarray of shape (n_sequences,)
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return np.bincount(owner[tokens], minlength=len(lengths))


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
    true, pred = stack_both(y_true, y_pred)
    _refuse_strings_beside_numbers(true, pred)
    n, known = len(true.labels), np.ones(len(true.labels), bool)
    if partial and type(None) in set(map(type, true.labels)):
        known = np.fromiter((label is not None for label in true.labels), bool, n)
        true = true._replace(labels=[0 if label is None else label for label in true.labels])
    for tokens in (true, pred):
        check_types(tokens, (str, int, float, np.generic), "labels must be str or numbers")
    if NO_LABEL in true.labels:
        replaced = "skstruct.datasets.labels_from_ids replaces it by None"
        true.fail(true.labels.index(NO_LABEL), f"it stands for no label; {replaced}")
    hit = np.fromiter(map(eq, true.labels, pred.labels), bool, n)
    return hit, np.diff(true.offsets), known


@set_module("skstruct.metrics")
def token_accuracy_score(y_true, y_pred, *, sample_weight=None):
    """Share of the tokens that have the correct label.

    Parameters
    ----------
    y_true, y_pred : label sequences, n_sequences of them
        Correct and predicted labels, str or numbers, in any form that the module accepts. Tokens
        whose correct label is None, for unknown, are left out.
    sample_weight : array-like of shape (n_sequences,), default=None
        Weights of the sequences, which apply to each of their tokens.

    Returns
    -------
    accuracy : float

    Raises
    ------
    ValueError
        If `y_true` and `y_pred` are empty or differ in number or lengths of sequences, if they are
        a sequence without the list around it, if a label is neither a str nor a number, one side
        has strings and the other numbers, all correct labels are unknown, a weight is not finite,
        or all weights are zero.

    Examples
    --------
    >>> from skstruct.metrics import token_accuracy_score
    >>> token_accuracy_score([["DET", "NOUN"], ["VERB", "DET"]], [["DET", "VERB"], ["VERB", "DET"]])
    0.75
    """
    hit, lengths, known = compare_tokens(y_true, y_pred, partial=True)
    weights = known * np.repeat(weigh_sequences(sample_weight, len(lengths)), lengths)
    if not known.any():
        raise ValueError("y_true has no known labels: all are None")
    if not weights.any():
        raise ValueError("the weights of all tokens add up to zero; give some sequence a weight")
    return float(np.average(hit, weights=weights))


@set_module("skstruct.metrics")
def sequence_accuracy_score(y_true, y_pred, *, sample_weight=None):
    """Share of the sequences that have the correct label at every token.

    Parameters
    ----------
    y_true, y_pred : label sequences, n_sequences of them
        Correct and predicted labels, str or numbers, in any form that the module accepts.
    sample_weight : array-like of shape (n_sequences,), default=None
        Weights of the sequences.

    Returns
    -------
    accuracy : float

    Raises
    ------
    ValueError
        As in :func:`token_accuracy_score`.

    Examples
    --------
    >>> from skstruct.metrics import sequence_accuracy_score
    >>> sequence_accuracy_score([[0, 1], [2, 0]], [[0, 2], [2, 0]])
    0.5
    """
    hit, lengths, _ = compare_tokens(y_true, y_pred)
    weights = weigh_sequences(sample_weight, len(lengths))
    return float(np.average(count_by_sequence(~hit, lengths) == 0, weights=weights))
