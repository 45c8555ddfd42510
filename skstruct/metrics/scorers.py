"""Scorers for the ``scoring`` parameter of scikit-learn's model selection tools."""

from sklearn.metrics import make_scorer

from skstruct.metrics.accuracy import sequence_accuracy_score, token_accuracy_score
from skstruct.metrics.scores import chunk_f1_score, chunk_precision_score, chunk_recall_score

__all__ = [
    "chunk_f1_scorer",
    "chunk_precision_scorer",
    "chunk_recall_scorer",
    "sequence_accuracy_scorer",
    "token_accuracy_scorer",
]

chunk_precision_scorer = make_scorer(chunk_precision_score)
chunk_recall_scorer = make_scorer(chunk_recall_score)
chunk_f1_scorer = make_scorer(chunk_f1_score)
token_accuracy_scorer = make_scorer(token_accuracy_score)
sequence_accuracy_scorer = make_scorer(sequence_accuracy_score)
