"""Linear structured prediction the scikit-learn way."""

from skstruct.crf import CRFTagger
from skstruct.embeddings import EmbeddingVectorizer
from skstruct.features import SequenceVectorizer
from skstruct.mira import MIRATagger
from skstruct.perceptron import PerceptronTagger
from skstruct.rerank import VRDAReranker
from skstruct.rerank_baselines import (
    PerceptronReranker,
    SGDReranker,
    TruncatedGradientReranker,
)
from skstruct.sapo import SAPOTagger
from skstruct.sdca import SDCACRF
from skstruct.sequences import SequenceBatch
from skstruct.stacking import NBestReranker
from skstruct.tagger import Labelling
from skstruct.templates import HashingTemplateVectorizer, TemplateVectorizer
from skstruct.union import SequenceUnion

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
]

__version__ = "0.1.0.dev0"
