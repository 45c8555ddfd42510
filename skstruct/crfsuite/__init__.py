"""CRFsuite: drop-in replacements for its Python packages, and its model files.

``CRF`` replaces the one of ``sklearn_crfsuite``; ``Tagger`` and ``Trainer`` replace those of
``pycrfsuite``. Neither package has to be installed.
"""

from skstruct.crfsuite.estimator import CRF
from skstruct.crfsuite.install import install
from skstruct.crfsuite.items import ItemSequence
from skstruct.crfsuite.model import read_model, write_model
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
