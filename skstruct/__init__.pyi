from . import crfpp, crfsuite, datasets, metrics
from .crf import CRFTagger
from .embeddings import EmbeddingVectorizer
from .features import SequenceVectorizer
from .mira import MIRATagger
from .perceptron import PerceptronTagger
from .rerank import VRDAReranker
from .rerank_baselines import (
    PerceptronReranker,
    SGDReranker,
    TruncatedGradientReranker,
)
from .sapo import SAPOTagger
from .sdca import SDCACRF
from .sequences import SequenceBatch
from .stacking import NBestReranker
from .tagger import Labelling
from .templates import HashingTemplateVectorizer, TemplateVectorizer
from .union import SequenceUnion

__all__ = [
    "SDCACRF",
    "CRFTagger",
    "EmbeddingVectorizer",
    "HashingTemplateVectorizer",
    "Labelling",
    "MIRATagger",
    "NBestReranker",
    "PerceptronReranker",
    "PerceptronTagger",
    "SAPOTagger",
    "SGDReranker",
    "SequenceBatch",
    "SequenceUnion",
    "SequenceVectorizer",
    "TemplateVectorizer",
    "TruncatedGradientReranker",
    "VRDAReranker",
    "crfpp",
    "crfsuite",
    "datasets",
    "metrics",
]

__version__: str
