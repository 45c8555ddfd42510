from .alternatives import label_alternatives
from .calibration import CalibrationDisplay
from .changes import LabelChange, smallest_label_change
from .confusion import ChunkConfusionDisplay, LabelConfusionDisplay
from .contributions import explain_labelling, explain_token
from .probabilities import SequenceProbabilityDisplay
from .tagged import TaggedText
from .training import TrainingCurveDisplay
from .transitions import TransitionDisplay, transition_weights
from .weights import FeatureWeightsDisplay, feature_weights

__all__ = [
    "CalibrationDisplay",
    "ChunkConfusionDisplay",
    "FeatureWeightsDisplay",
    "LabelChange",
    "LabelConfusionDisplay",
    "SequenceProbabilityDisplay",
    "TaggedText",
    "TrainingCurveDisplay",
    "TransitionDisplay",
    "explain_labelling",
    "explain_token",
    "feature_weights",
    "label_alternatives",
    "smallest_label_change",
    "transition_weights",
]
