from .estimator import CRF
from .log import LabelScore, TrainingLog
from .model import read_model, write_model
from .online import OnlineCRF
from .tagger import ModelInfo, Tagger
from .trainer import Trainer

__all__ = [
    "CRF",
    "LabelScore",
    "ModelInfo",
    "OnlineCRF",
    "Tagger",
    "Trainer",
    "TrainingLog",
    "read_model",
    "write_model",
]
