from skstruct.metrics.chunks import extract_chunks
from skstruct.metrics.labels import sequence_accuracy_score, token_accuracy_score
from skstruct.metrics.scores import (
    chunk_error_report,
    chunk_f1_score,
    chunk_f1_scorer,
    chunk_precision_recall_fscore_support,
    chunk_precision_score,
    chunk_precision_scorer,
    chunk_recall_score,
    chunk_recall_scorer,
    chunk_report,
    sequence_accuracy_scorer,
    token_accuracy_scorer,
)
from skstruct.metrics.significance import PairedTest, paired_permutation_test

__all__ = [
    "PairedTest",
    "chunk_error_report",
    "chunk_f1_score",
    "chunk_f1_scorer",
    "chunk_precision_recall_fscore_support",
    "chunk_precision_score",
    "chunk_precision_scorer",
    "chunk_recall_score",
    "chunk_recall_scorer",
    "chunk_report",
    "extract_chunks",
    "paired_permutation_test",
    "sequence_accuracy_score",
    "sequence_accuracy_scorer",
    "token_accuracy_score",
    "token_accuracy_scorer",
]
