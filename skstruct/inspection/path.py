"""Scores of cross-validation along the penalties that were compared."""

from __future__ import annotations

import numpy as np

from skstruct.inspection.figures import new_axes
from skstruct.utils.public_paths import set_module


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
            If it is not fitted, or something else.
        """
        if not all(hasattr(estimator, name) for name in ("l2s_", "l1s_", "cv_results_")):
            raise ValueError(f"Expected a fitted CRFTaggerCV, got {type(estimator).__name__}.")
        shape = len(estimator.l1s_), len(estimator.l2s_)
        means, deviations = (
            estimator.cv_results_[f"{name}_test_score"].reshape(shape) for name in ("mean", "std")
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
        self.ax_ = new_axes(ax, "PenaltyPathDisplay")
        self.figure_ = self.ax_.figure
        self.lines_, self.bands_ = [], []
        order = np.argsort(self.l2s)
        l2s = np.asarray(self.l2s)[order]
        for l1, mean, deviation in zip(self.l1s, self.scores, self.deviations, strict=True):
            mean, deviation = mean[order], deviation[order]
            options = {"marker": ".", **options}
            (line,) = self.ax_.plot(l2s, mean, label=f"l1 = {l1:.3g}", **options)
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
