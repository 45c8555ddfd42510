from .accuracy import sequence_accuracy_score, token_accuracy_score
from .scorers import (
    chunk_f1_scorer,
    chunk_precision_scorer,
    chunk_recall_scorer,
    sequence_accuracy_scorer,
    token_accuracy_scorer,
)
from .scores import (
    chunk_f1_score,
    chunk_precision_recall_fscore_support,
    chunk_precision_score,
    chunk_recall_score,
    chunk_report,
    extract_chunks,
)
from .significance import PairedTest, paired_permutation_test

__all__ = [
    "PairedTest",
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
