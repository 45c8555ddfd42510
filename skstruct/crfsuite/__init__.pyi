from .estimator import CRF
from .log import LabelScore, TrainingLog
from .model import read_model, write_model
from .tagger import ModelInfo, Tagger
from .trainer import Trainer

__all__ = [
    "CRF",
    "LabelScore",
    "ModelInfo",
    "Tagger",
    "Trainer",
    "TrainingLog",
    "read_model",
    "write_model",
]
