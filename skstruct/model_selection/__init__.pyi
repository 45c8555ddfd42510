from skstruct.model_selection.choosing import choose_sequences
from skstruct.model_selection.folds import StratifiedSequenceKFold

__all__ = [
    "StratifiedSequenceKFold",
    "choose_sequences",
]
