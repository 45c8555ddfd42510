from skstruct.crfsuite.estimator import CRF
from skstruct.crfsuite.items import ItemSequence
from skstruct.crfsuite.model import read_model, write_model
from skstruct.crfsuite.names import install
from skstruct.crfsuite.online import OnlineCRF
from skstruct.crfsuite.tagger import ModelInfo, Tagger
from skstruct.crfsuite.trainer import BaseTrainer, LabelScore, Trainer, TrainingLog, TrainLogParser

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
