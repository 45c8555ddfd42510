from .estimator import CRF
from .install import install
from .items import ItemSequence
from .log import LabelScore, TrainingLog
from .messages import TrainLogParser
from .model import read_model, write_model
from .online import OnlineCRF
from .tagger import ModelInfo, Tagger
from .trainer import BaseTrainer, Trainer

__all__ = [
    "CRF",
    "BaseTrainer",
    "ItemSequence",
    "LabelScore",
    "ModelInfo",
    "OnlineCRF",
    "Tagger",
    "TrainLogParser",
    "Trainer",
    "TrainingLog",
    "install",
    "read_model",
    "write_model",
]
