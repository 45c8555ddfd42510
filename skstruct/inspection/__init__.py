"""Pictures and tables of fitted taggers and of their predictions.

Displays follow scikit-learn's grammar: ``from_estimator`` and ``from_predictions`` compute and
plot, ``plot(ax=...)`` plots again, and the artists are attributes that end with an underscore, such
as ``ax_`` and ``figure_``. Functions return data frames. An estimator is a fitted tagger, or a
:class:`~sklearn.pipeline.Pipeline` or search whose last step is one.

Displays need matplotlib, and tables pandas: ``pip install "skstruct[plot]"``.

`models` finds the tagger in an estimator, and `figures` makes axes and heat maps.
"""

from skstruct.inspection.checks import check_fit
from skstruct.inspection.curves import (
    PenaltyPathDisplay,
    SpanThresholdDisplay,
    TrainingCurveDisplay,
)
from skstruct.inspection.explanations import (
    LabelChange,
    explain_labelling,
    explain_token,
    label_alternatives,
    smallest_label_change,
)
from skstruct.inspection.predictions import (
    CalibrationDisplay,
    ChunkConfusionDisplay,
    LabelConfusionDisplay,
    SequenceProbabilityDisplay,
)
from skstruct.inspection.tagged import TaggedText
from skstruct.inspection.weights import (
    FeatureWeightsDisplay,
    TransitionDisplay,
    feature_weights,
    transition_weights,
)

__all__ = [
    "CalibrationDisplay",
    "ChunkConfusionDisplay",
    "FeatureWeightsDisplay",
    "LabelChange",
    "LabelConfusionDisplay",
    "PenaltyPathDisplay",
    "SequenceProbabilityDisplay",
    "SpanThresholdDisplay",
    "TaggedText",
    "TrainingCurveDisplay",
    "TransitionDisplay",
    "check_fit",
    "explain_labelling",
    "explain_token",
    "feature_weights",
    "label_alternatives",
    "smallest_label_change",
    "transition_weights",
]
