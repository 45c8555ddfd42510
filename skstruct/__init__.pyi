from . import crfpp, crfsuite, dask, datasets, inspection, metrics, model_selection, streams
from .ahead.warm import warm
from .compiled.versions import show_versions
from .features.dicts import SequenceVectorizer
from .features.embeddings import EmbeddingVectorizer
from .features.union import SequenceUnion
from .rerankers.perceptron import PerceptronReranker
from .rerankers.sgd import SGDReranker
from .rerankers.stacking import NBestReranker
from .rerankers.truncated_gradient import TruncatedGradientReranker
from .rerankers.vrda import VRDAReranker
from .sequences import SequenceBatch
from .taggers.arow import AROWTagger
from .taggers.crf import CRFTagger
from .taggers.mira import MIRATagger
from .taggers.perceptron import PerceptronTagger
from .taggers.prediction import Labelling
from .taggers.sapo import SAPOTagger
from .taggers.sdca import SDCACRF
from .templates.hashing import HashingTemplateVectorizer
from .templates.vectorizers import TemplateVectorizer
from .templates.words import WordVectorizer

__all__ = [
    "SDCACRF",
    "AROWTagger",
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
    "WordVectorizer",
    "crfpp",
    "crfsuite",
    "dask",
    "datasets",
    "inspection",
    "metrics",
    "model_selection",
    "show_versions",
    "streams",
    "warm",
]

__version__: str
