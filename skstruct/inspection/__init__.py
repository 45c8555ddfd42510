"""Pictures and tables of fitted taggers and of what they predict.

Displays follow scikit-learn's grammar: ``from_estimator`` and ``from_predictions`` compute and
plot, ``plot(ax=...)`` plots again, and the artists are attributes that end with an underscore, such
as ``ax_`` and ``figure_``. Functions return data frames. An estimator is a fitted tagger, or a
:class:`~sklearn.pipeline.Pipeline` or search whose last step is one.

Displays need matplotlib, and tables pandas: ``pip install "skstruct[plot]"``.

`models` finds the tagger in an estimator, `figures` makes axes and heat maps, and `chain_scores`
has the scores of one sequence, which `contributions`, `alternatives` and `changes` explain.
"""

from skstruct.utils.public_paths import export_stub

__getattr__, __dir__, __all__ = export_stub(__name__)
