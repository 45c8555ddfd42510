"""Scores of the labels and transitions of one sequence, and of its best labellings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from skstruct.inspection.models import find_tagger

__all__ = ["ChainScores", "score_sequence", "take_sequence"]


class ChainScores(NamedTuple):
    """Scores of one sequence.

    Attributes
    ----------
    emissions : ndarray of shape (length, n_labels)
        Of the labels at each token, with start and end.
    transitions : ndarray of shape (length - 1, n_labels, n_labels)
        Of the transition into each token but the first, from row to column.
    """

    emissions: np.ndarray
    transitions: np.ndarray

    def best_through(self):
        """Score of the best labelling with each label at each token, (length, n_labels)."""
        before, after = self.emissions.copy(), self.emissions.copy()
        for t, transition in enumerate(self.transitions, start=1):
            before[t] += (before[t - 1][:, None] + transition).max(axis=0)
        for t in range(len(self.transitions) - 1, -1, -1):
            after[t] += (self.transitions[t] + after[t + 1]).max(axis=1)
        # Emissions are in both. Impossible labels stay at minus infinity.
        with np.errstate(invalid="ignore"):
            through = before + after - self.emissions
        return np.where(np.isneginf(before) | np.isneginf(after), -np.inf, through)

    def best_labelling(self, t, code):
        """Codes of the best labelling whose label at token `t` is `code`."""
        emissions = self.emissions.copy()
        emissions[t, np.arange(emissions.shape[1]) != code] = -np.inf
        back, best = [], emissions[0]
        for s, transition in enumerate(self.transitions, start=1):
            scores = best[:, None] + transition
            back.append(scores.argmax(axis=0))
            best = scores.max(axis=0) + emissions[s]
        codes = [int(best.argmax())]
        for pointers in reversed(back):
            codes.append(int(pointers[codes[-1]]))
        return np.array(codes[::-1])


def take_sequence(estimator, X, index, token=0):
    """Find the tagger in an estimator, and take one sequence in its features.

    Parameters
    ----------
    estimator : estimator
        A fitted tagger, or a Pipeline or search that ends in one.
    X : sequences of tokens
        As the estimator takes them.
    index : int
        Number of the sequence.
    token : int, default=0
        Number of a token that the sequence must have.

    Returns
    -------
    fitted : FittedTagger
    batch : SequenceBatch
        The sequence alone.

    Raises
    ------
    ValueError
        If there is no such sequence or token, or the sequence is empty.
    """
    fitted = find_tagger(estimator)
    n_sequences = X.shape[0] if hasattr(X, "shape") else len(X)
    if not 0 <= index < n_sequences:
        raise ValueError(f"index={index}, but X has the sequences 0 to {n_sequences - 1}.")
    alone = _safe_indexing(X, [index])
    batch = fitted.tagger._read_X(fitted.transform(alone))[1]
    if batch.n_rows == 0:
        raise ValueError(f"Sequence {index} has no tokens: there is nothing to explain.")
    if not 0 <= token < batch.n_rows:
        raise ValueError(f"token={token}, but the sequence has the tokens 0 to {batch.n_rows - 1}.")
    return fitted, batch


def score_sequence(fitted, batch):
    """Compute the scores of a batch with one sequence.

    Parameters
    ----------
    fitted : FittedTagger
    batch : SequenceBatch

    Returns
    -------
    scores : ChainScores

    Raises
    ------
    ValueError
        If the tagger is of second order.
    """
    if hasattr(fitted.tagger, "transition2_"):
        raise ValueError(
            "Scores of alternatives are shown for taggers of first order, not for order=2: see "
            "predict_nbest, or explain_labelling."
        )
    tagger, k = fitted.tagger, len(fitted.tagger.classes_)
    emissions = np.asarray(batch.X @ fitted.coef().T + tagger.intercept_, dtype=np.float64)
    emissions[0] += tagger.start_
    emissions[-1] += tagger.end_
    transitions = np.tile(np.asarray(tagger.transition_), (batch.n_rows - 1, 1, 1))
    if batch.transition_X is not None:
        weights = tagger.transition_coef_.reshape(k * k, -1)
        rows = sp.csr_matrix(batch.transition_X)[1:]
        transitions = transitions + np.asarray(rows @ weights.T).reshape(-1, k, k)
    return ChainScores(emissions, transitions)
