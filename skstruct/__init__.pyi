from skstruct import (
    crfpp,
    crfsuite,
    dask,
    datasets,
    export,
    inspection,
    metrics,
    model_selection,
    streams,
)
from skstruct.ahead.warm import warm
from skstruct.compiled.rules import show_versions
from skstruct.conformal import ConformalTagger, predict_candidates, predict_sets
from skstruct.features.clusters import WordClusters
from skstruct.features.dicts import SequenceVectorizer
from skstruct.features.embeddings import EmbeddingVectorizer
from skstruct.features.rows import TokenTransformer
from skstruct.features.scaling import VectorScaler
from skstruct.features.statistics import LabelStatistics
from skstruct.features.union import SequenceUnion
from skstruct.rerankers.descent import PerceptronReranker, SGDReranker, TruncatedGradientReranker
from skstruct.rerankers.stacking import NBestReranker
from skstruct.rerankers.vrda import VRDAReranker
from skstruct.sequences import SequenceBatch
from skstruct.spans import SpanTaggerCV, predict_nbest, predict_spans
from skstruct.taggers.annotators import AnnotatorCRF
from skstruct.taggers.arow import AROWTagger
from skstruct.taggers.crf import CRFTagger
from skstruct.taggers.crf_cv import CRFTaggerCV
from skstruct.taggers.mira import MIRATagger
from skstruct.taggers.perceptron import PerceptronTagger
from skstruct.taggers.prediction import Labelling, Span
from skstruct.taggers.sapo import SAPOTagger
from skstruct.taggers.sdca import SDCACRF
from skstruct.templates.vectorizers import HashingTemplateVectorizer, TemplateVectorizer
from skstruct.templates.words import WordVectorizer
from skstruct.utils.messages import DataError

__all__ = [
    "SDCACRF",
    "AROWTagger",
    "AnnotatorCRF",
    "CRFTagger",
    "CRFTaggerCV",
    "ConformalTagger",
    "DataError",
    "EmbeddingVectorizer",
    "HashingTemplateVectorizer",
    "LabelStatistics",
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
    "Span",
    "SpanTaggerCV",
    "TemplateVectorizer",
    "TokenTransformer",
    "TruncatedGradientReranker",
    "VRDAReranker",
    "VectorScaler",
    "WordClusters",
    "WordVectorizer",
    "crfpp",
    "crfsuite",
    "dask",
    "datasets",
    "export",
    "inspection",
    "metrics",
    "model_selection",
    "predict_candidates",
    "predict_nbest",
    "predict_sets",
    "predict_spans",
    "show_versions",
    "streams",
    "warm",
]

__version__: str
