from skstruct.model_selection.choosing import choose_sequences
from skstruct.model_selection.errors import LabelError, find_label_errors
from skstruct.model_selection.folds import StratifiedSequenceKFold

__all__ = [
    "LabelError",
    "StratifiedSequenceKFold",
    "choose_sequences",
    "find_label_errors",
]
