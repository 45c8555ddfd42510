"""Curves: histories of fits, scores along penalties, precision and recall along thresholds."""

from collections.abc import Mapping
from itertools import chain, count

import numpy as np

from skstruct.inspection.figures import new_axes, panels, plain_spines
from skstruct.utils.persistence import set_module

_TITLES = {
    "bound": "bound on the distance from the minimum",
    "gap": "duality gap",
    "loss": "loss",
    "mistakes": "share of wrong tokens",
    "objective": "objective",
    "relative_gap": "gap, share of the objective",
    "time": "seconds",
    "updates": "updates",
    "validation_score": "accuracy on the validation set",
    "weight_norm": "norm of the weights",
}
_GAPS = ("gap", "bound")


@set_module("skstruct.inspection")
class TrainingCurveDisplay:
    """Curves of the histories of one or several fits.

    It is recommended to use :meth:`from_estimator`.

    Parameters
    ----------
    histories : dict of str to dict
        Name and history of each fit.

    Attributes
    ----------
    lines_ : list of dict of str to matplotlib Line2D
        For each panel the curve of each fit.
    axes_ : list of matplotlib Axes
        A panel for each quantity.
    ax_, figure_ : matplotlib Axes and Figure
        Axes that the panels divide, and the figure.

    Examples
    --------
    >>> from skstruct import CRFTagger, PerceptronTagger
    >>> from skstruct.datasets import load_digit_sequences
    >>> from skstruct.inspection import TrainingCurveDisplay
    >>> X, y = load_digit_sequences(return_X_y=True)
    >>> taggers = [CRFTagger().fit(X, y), PerceptronTagger(random_state=0).fit(X, y)]
    >>> display = TrainingCurveDisplay.from_estimator(taggers, y="weight_norm")
    >>> list(display.lines_[0])
    ['CRFTagger', 'PerceptronTagger']
    """

    def __init__(self, histories):
        self.histories = histories

    @classmethod
    def from_estimator(cls, estimator, *, x="epoch", y="objective", ax=None, **options):
        """Plot the history of one or several estimators.

        Parameters
        ----------
        estimator : estimator, list of estimators, or dict of str to estimator
            Fitted taggers or rerankers, or Pipelines or searches that end in one. Keys of a dict
            are the names in the legend, where matplotlib leaves out those that begin with "_"; by
            default the names of the classes.
        x : {"epoch", "time", "updates"}, default="epoch"
            Epochs, seconds, or updates of single sequences.
        y : str or list of str, default="objective"
            Columns of ``history_``, a panel for each, or ``"relative_gap"``, the duality gap or
            bound over the objective.
        ax : matplotlib Axes or array-like of Axes, default=None
            One for each panel, or one that is divided; by default a new figure.
        **options : object
            Options of :meth:`plot`.

        Returns
        -------
        display : TrainingCurveDisplay

        Raises
        ------
        ValueError
            If there is no estimator, `y` is empty, or no estimator has recorded `x` and `y`.
        TypeError
            If an estimator has no history.
        """
        return cls(_histories(estimator)).plot(ax, x=x, y=y, **options)

    def plot(self, ax=None, *, x="epoch", y="objective", log_x=False, log_y=None, **line):
        """Plot the curves.

        Parameters
        ----------
        ax : matplotlib Axes or array-like of Axes, default=None
            One for each panel, or one that is divided; by default a new figure.
        x, y : str
            As in :meth:`from_estimator`.
        log_x : bool, default=False
            Logarithmic axis of `x`.
        log_y : bool, default=None
            Logarithmic axis of `y`; by default for gaps and bounds.
        **line : object
            Keyword arguments of matplotlib's ``plot``.

        Returns
        -------
        self : TrainingCurveDisplay
        """
        columns = [y] if isinstance(y, str) else list(y)
        if not columns or not self.histories:
            raise ValueError("There is nothing to plot: pass an estimator, and a column as y.")
        curves = [self._curves(x, column) for column in columns]
        self.axes_, self.ax_ = panels(ax, "TrainingCurveDisplay", len(columns), (4.5, 3.4))
        self.figure_ = self.ax_.figure
        self.lines_ = []
        for panel, column, found in zip(self.axes_, columns, curves, strict=True):
            style = {"marker": "o", "markersize": 3}
            lines = {
                name: panel.plot(*points, **{**style, "label": name, **line})[0]
                for name, points in found.items()
            }
            self.lines_.append(lines)
            panel.set(xlabel=_TITLES.get(x, x), ylabel=_TITLES.get(column, column))
            if column in (*_GAPS, "relative_gap") if log_y is None else log_y:
                panel.set_yscale("log")
            if log_x:
                panel.set_xscale("log")
            plain_spines(panel)
        if len(self.histories) > 1:
            self.axes_[0].legend(frameon=False)
        return self

    def _curves(self, x, y):
        """Points of each fit that recorded both."""
        found = {}
        for name, history in self.histories.items():
            values, places = _column(history, y), _column(history, x)
            if values is not None and places is not None:
                # Some solvers compute the objective at some epochs only.
                known = np.isfinite(values)
                found[name] = places[known], values[known]
        if not found:
            recorded = sorted({name for history in self.histories.values() for name in history})
            raise ValueError(
                f"No history has {x!r} and {y!r}. There are: {', '.join(recorded)}; and "
                "relative_gap where there is a gap or bound."
            )
        return found


def _column(history, name):
    if name == "relative_gap":
        gap = next((history[gap] for gap in _GAPS if gap in history), None)
        return None if gap is None else np.asarray(gap) / np.asarray(history["objective"])
    return np.asarray(history[name]) if name in history else None


def _histories(estimators):
    """Histories by the keys of a dict, or by names of classes, with numbers where one recurs."""
    if isinstance(estimators, Mapping):
        return {name: _history(estimator)[1] for name, estimator in estimators.items()}
    histories = {}
    for estimator in [estimators] if hasattr(estimators, "get_params") else estimators:
        base, history = _history(estimator)
        names = chain([base], (f"{base} {number}" for number in count(2)))
        histories[next(name for name in names if name not in histories)] = history
    return histories


def _history(estimator):
    """Name of the class and history of the estimator that a Pipeline or search ends in."""
    if hasattr(estimator, "best_estimator_"):
        return _history(estimator.best_estimator_)
    if hasattr(estimator, "steps"):
        return _history(estimator.steps[-1][1])
    # The history of the drop-in for sklearn-crfsuite is its tagger's.
    inner = getattr(estimator, "estimator_", None)
    history = getattr(estimator, "history_", getattr(inner, "history_", None))
    if history is None:
        raise TypeError(
            f"{type(estimator).__name__} has no history: pass fitted taggers or rerankers, or "
            "Pipelines or searches that end in one."
        )
    return type(estimator).__name__, history


@set_module("skstruct.inspection")
class PenaltyPathDisplay:
    """Mean score by L2 penalty, a line for each L1 penalty, with the best pair.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    l2s : ndarray of shape (n_l2s,)
        L2 penalties.
    l1s : ndarray of shape (n_l1s,)
        L1 penalties.
    scores, deviations : ndarray of shape (n_l1s, n_l2s)
        Means and standard deviations of the scores over the folds.
    best : tuple (l2, score), default=None
        The best penalty and its score, to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was plotted.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : list of matplotlib Line2D
        The mean scores.
    bands_ : list of matplotlib PolyCollection
        A standard deviation around them.
    best_ : matplotlib Line2D
        The mark of the best penalty, if there is one.

    Examples
    --------
    >>> from skstruct import CRFTaggerCV
    >>> from skstruct.inspection import PenaltyPathDisplay
    >>> X = [[{"word": "in"}, {"word": "Rome"}], [{"word": "Rome"}], [{"word": "in"}]] * 4
    >>> y = [["O", "B-LOC"], ["B-LOC"], ["O"]] * 4
    >>> tagger = CRFTaggerCV([10, 1, 0.1], cv=2).fit(X, y)
    >>> display = PenaltyPathDisplay.from_estimator(tagger)
    >>> display.scores.shape
    (1, 3)
    """

    def __init__(self, l2s, l1s, scores, deviations, best=None):
        self.l2s = l2s
        self.l1s = l1s
        self.scores = scores
        self.deviations = deviations
        self.best = best

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **options):
        """Plot the scores of a `CRFTaggerCV`.

        Parameters
        ----------
        estimator : CRFTaggerCV
            Fitted.
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        **options : object
            Options of the lines.

        Returns
        -------
        display : PenaltyPathDisplay

        Raises
        ------
        ValueError
            If `estimator` is not a fitted `CRFTaggerCV`.
        """
        if not all(hasattr(estimator, name) for name in ("l2s_", "l1s_", "cv_results_")):
            raise ValueError(f"Expected a fitted CRFTaggerCV, got {type(estimator).__name__}.")
        shape = -1, len(estimator.l1s_), len(estimator.l2s_)
        # The best factor of vectors stands for all.
        scales = getattr(estimator, "block_scales_", np.ones(1))
        scale = int(np.argmax(scales == getattr(estimator, "block_scale_", 1.0)))
        means, deviations = (
            estimator.cv_results_[f"{name}_test_score"].reshape(shape)[scale]
            for name in ("mean", "std")
        )
        best = estimator.l2_, estimator.best_score_
        display = cls(estimator.l2s_, estimator.l1s_, means, deviations, best)
        return display.plot(ax=ax, **options)

    def plot(self, ax=None, **options):
        """Plot the scores.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        **options : object
            Options of the lines.

        Returns
        -------
        display : PenaltyPathDisplay
        """
        self.ax_, self.figure_ = new_axes(ax, "PenaltyPathDisplay")
        self.lines_, self.bands_ = [], []
        order = np.argsort(self.l2s)
        l2s = np.asarray(self.l2s)[order]
        for l1, mean, deviation in zip(self.l1s, self.scores, self.deviations, strict=True):
            mean, deviation = mean[order], deviation[order]
            style = {"marker": ".", "label": f"l1 = {l1:.3g}", **options}
            (line,) = self.ax_.plot(l2s, mean, **style)
            band = self.ax_.fill_between(
                l2s, mean - deviation, mean + deviation, color=line.get_color(), alpha=0.2
            )
            self.lines_.append(line)
            self.bands_.append(band)
        if self.best is not None:
            label = f"best: l2 = {self.best[0]:.3g}"
            (self.best_,) = self.ax_.plot(*self.best, "o", color="black", label=label)
        if np.all(l2s > 0):
            self.ax_.set_xscale("log")
        self.ax_.set(xlabel="l2", ylabel="mean score")
        if len(self.l1s) > 1 or self.best is not None:
            self.ax_.legend()
        return self


@set_module("skstruct.inspection")
class SpanThresholdDisplay:
    """Precision and recall of chunks at all thresholds, with the one that was chosen.

    Use :meth:`from_estimator`.

    Parameters
    ----------
    precision, recall : ndarray of shape (n_thresholds,)
        Precision and recall of the chunks that are predicted above each threshold.
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
        name = options.pop("label", name)
        self.ax_, self.figure_ = new_axes(ax, "SpanThresholdDisplay")
        (self.line_,) = self.ax_.plot(self.recall, self.precision, label=name, **options)
        if self.best_threshold is not None:
            best = int(np.argmin(np.abs(np.asarray(self.thresholds) - self.best_threshold)))
            point, color = (self.recall[best], self.precision[best]), self.line_.get_color()
            label = f"threshold {self.best_threshold:.2f}"
            (self.best_,) = self.ax_.plot(*point, "o", color=color, label=label)
        self.ax_.set(xlabel="recall of chunks", ylabel="precision of chunks")
        if name is not None or self.best_threshold is not None:
            self.ax_.legend()
        return self
