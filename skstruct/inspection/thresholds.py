"""Precision and recall of chunks, by the threshold above which they are predicted."""

import numpy as np

from skstruct.inspection.figures import new_axes
from skstruct.utils.public_paths import set_module


@set_module("skstruct.inspection")
class SpanThresholdDisplay:
    """Precision and recall of chunks at all thresholds, with the one that was chosen.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    precision, recall : ndarray of shape (n_thresholds,)
        Those of the chunks that are predicted above each threshold.
    thresholds : ndarray of shape (n_thresholds,)
        The thresholds.
    best_threshold : float, default=None
        The threshold to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    line_ : matplotlib Line2D
        The curve.
    best_ : matplotlib Line2D
        The mark of the threshold, if there is one.

    Examples
    --------
    >>> from skstruct import CRFTagger, SpanTaggerCV
    >>> from skstruct.inspection import SpanThresholdDisplay
    >>> X = [[{"word": "in"}, {"word": "Rome"}], [{"word": "Rome"}], [{"word": "in"}]] * 4
    >>> y = [["O", "B-LOC"], ["B-LOC"], ["O"]] * 4
    >>> tagger = SpanTaggerCV(CRFTagger(), cv=2, store_cv_results=True).fit(X, y)
    >>> display = SpanThresholdDisplay.from_estimator(tagger)
    >>> float(display.recall.max())
    1.0
    """

    def __init__(self, precision, recall, thresholds, best_threshold=None):
        self.precision = precision
        self.recall = recall
        self.thresholds = thresholds
        self.best_threshold = best_threshold

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, name=None, **options):
        """Plot the curve of a `SpanTaggerCV`.

        Parameters
        ----------
        estimator : SpanTaggerCV
            Fitted with ``store_cv_results=True``.
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        name : str, default=None
            Name in the legend.
        **options : object
            Options of the line.

        Returns
        -------
        display : SpanThresholdDisplay

        Raises
        ------
        ValueError
            If the scores of the thresholds were not kept.
        """
        results = getattr(estimator, "cv_results_", {})
        if "precision" not in results:
            raise ValueError(
                "Expected a fitted SpanTaggerCV with store_cv_results=True, got "
                f"{type(estimator).__name__}."
            )
        parts = results["precision"], results["recall"], results["thresholds"]
        return cls(*parts, estimator.best_threshold_).plot(ax=ax, name=name, **options)

    def plot(self, ax=None, *, name=None, **options):
        """Plot the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        name : str, default=None
            Name in the legend.
        **options : object
            Options of the line.

        Returns
        -------
        display : SpanThresholdDisplay
        """
        self.ax_ = new_axes(ax, "SpanThresholdDisplay")
        self.figure_ = self.ax_.figure
        (self.line_,) = self.ax_.plot(self.recall, self.precision, label=name, **options)
        if self.best_threshold is not None:
            best = int(np.argmin(np.abs(np.asarray(self.thresholds) - self.best_threshold)))
            (self.best_,) = self.ax_.plot(
                self.recall[best],
                self.precision[best],
                "o",
                color=self.line_.get_color(),
                label=f"threshold {self.best_threshold:.2f}",
            )
        self.ax_.set(xlabel="recall of chunks", ylabel="precision of chunks")
        if name is not None or self.best_threshold is not None:
            self.ax_.legend()
        return self
