"""Linear structured prediction the scikit-learn way."""

from skstruct.crf import CRFTagger
from skstruct.features import SequenceVectorizer
from skstruct.mira import MIRATagger
from skstruct.perceptron import PerceptronTagger
from skstruct.sapo import SAPOTagger
from skstruct.sequences import SequenceBatch
from skstruct.tagger import Labelling

__all__ = [
    "CRFTagger",
    "Labelling",
    "MIRATagger",
    "PerceptronTagger",
    "SAPOTagger",
    "SequenceBatch",
    "SequenceVectorizer",
]

__version__ = "0.1.0.dev0"
