"""Accuracy of tokens and of whole sequences."""

import numpy as np

from skstruct.metrics.labels import (
    check_sample_weight,
    compare_tokens,
    weigh_tokens,
    weighted_share,
)
from skstruct.utils.public_paths import set_module

__all__ = ["sequence_accuracy_score", "token_accuracy_score"]


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
        a sequence without the list around it, if a label is neither a str nor a number, all
        correct labels are unknown, a weight is not finite, or all weights are zero.

    Examples
    --------
    >>> from skstruct.metrics import token_accuracy_score
    >>> token_accuracy_score([["DET", "NOUN"], ["VERB", "DET"]], [["DET", "VERB"], ["VERB", "DET"]])
    0.75
    """
    hit, lengths, known = compare_tokens(y_true, y_pred, partial=True)
    weights = weigh_tokens(sample_weight, lengths)
    if not known.all():
        weights = known * (1.0 if weights is None else weights)
        if not known.any():
            raise ValueError("y_true has no known labels: all are None")
    return weighted_share(hit, weights)


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
    weights = check_sample_weight(sample_weight, len(lengths))
    sequences = np.repeat(np.arange(len(lengths)), lengths)
    mistakes = np.bincount(sequences[~hit], minlength=len(lengths))
    return weighted_share(mistakes == 0, weights)
