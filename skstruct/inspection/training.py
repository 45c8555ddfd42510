"""Training curves: the histories of fits."""

from collections.abc import Mapping

import numpy as np

from skstruct.inspection.figures import panels, plain_spines
from skstruct.utils.public_paths import set_module

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
            are the names in the legend; by default the names of the classes.
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
            If no estimator has recorded `x` and `y`.
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
        curves = [self._curves(x, column) for column in columns]
        self.axes_, self.ax_ = panels(ax, "TrainingCurveDisplay", len(columns), (4.5, 3.4))
        self.figure_ = self.ax_.figure
        self.lines_ = []
        for panel, column, found in zip(self.axes_, columns, curves, strict=True):
            style = {"marker": "o", "markersize": 3, **line}
            lines = {
                name: panel.plot(*points, label=name, **style)[0] for name, points in found.items()
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
            values = _column(history, y)
            places = _column(history, x)
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
    if hasattr(estimators, "get_params"):
        estimators = [estimators]
    if not isinstance(estimators, Mapping):
        estimators = _named(estimators)
    return {name: _history(estimator) for name, estimator in estimators.items()}


def _named(estimators):
    """Names of classes, numbered where one occurs again."""
    named = {}
    for estimator in estimators:
        name = base = type(_last(estimator)).__name__
        number = 1
        while name in named:
            number += 1
            name = f"{base} {number}"
        named[name] = estimator
    return named


def _last(estimator):
    estimator = getattr(estimator, "best_estimator_", estimator)
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _history(estimator):
    history = getattr(_last(estimator), "history_", None)
    if history is None:
        raise TypeError(
            f"{type(estimator).__name__} has no history: pass fitted taggers or rerankers, or "
            "Pipelines or searches that end in one."
        )
    return history
