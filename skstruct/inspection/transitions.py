"""Weights of label pairs, as a picture and as a table."""

import numpy as np

from skstruct.inspection.figures import MOST_NUMBERS, heat_map, new_axes
from skstruct.inspection.models import find_tagger, require
from skstruct.utils.public_paths import set_module

_START, _END = "(start)", "(end)"


@set_module("skstruct.inspection")
class TransitionDisplay:
    """Heat map of the weights of label pairs; those of triples are not shown.

    It is recommended to use :meth:`from_estimator`.

    Parameters
    ----------
    transition : ndarray of shape (n_from, n_to)
        Weights, from row to column; minus infinity where a pair is impossible.
    from_labels, to_labels : list
        Labels of the rows and of the columns.

    Attributes
    ----------
    im_ : matplotlib AxesImage
        The heat map.
    text_ : ndarray of matplotlib Text, or None
        Numbers in the cells.
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure of the plot.

    See Also
    --------
    transition_weights : The same numbers as a data frame.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.inspection import TransitionDisplay
    >>> X = [[{"word": "time"}, {"word": "flies"}], [{"word": "fruit"}, {"word": "juice"}]]
    >>> tagger = CRFTagger().fit(X, [["NOUN", "VERB"], ["NOUN", "NOUN"]])
    >>> display = TransitionDisplay.from_estimator(tagger)
    >>> display.im_.get_array().shape
    (2, 2)
    """

    def __init__(self, transition, *, from_labels, to_labels):
        self.transition = transition
        self.from_labels = from_labels
        self.to_labels = to_labels

    @classmethod
    def from_estimator(cls, estimator, *, labels=None, include_ends=False, ax=None, **options):
        """Plot the weights of a fitted tagger.

        Parameters
        ----------
        estimator : estimator
            A fitted tagger, or a Pipeline or search that ends in one.
        labels : array-like, default=None
            Labels to show, in this order. By default all, those of a chunk type side by side.
        include_ends : bool, default=False
            Add a row with the weights of first labels, and a column with those of last labels.
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        **options : object
            Options of :meth:`plot`.

        Returns
        -------
        display : TransitionDisplay

        Raises
        ------
        ValueError
            If the tagger does not know a label.
        """
        matrix, from_labels, to_labels = _weights(estimator, labels, include_ends)
        display = cls(matrix, from_labels=from_labels, to_labels=to_labels)
        return display.plot(ax=ax, **options)

    def plot(
        self, ax=None, *, cmap="RdBu", include_values=None, values_format=".1f", colorbar=True
    ):
        """Plot the heat map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        cmap : str or matplotlib Colormap, default="RdBu"
            Colours, the middle one for zero.
        include_values : bool, default=None
            Write the numbers into the cells; by default if there are up to 12 labels.
        values_format : str, default=".1f"
            Format of the numbers.
        colorbar : bool, default=True
            Add a colour bar.

        Returns
        -------
        self : TransitionDisplay
        """
        n_rows, n_columns = self.transition.shape
        size = (2 + 0.35 * n_columns + 1.2 * colorbar, 1.5 + 0.35 * n_rows)
        self.ax_ = new_axes(ax, "TransitionDisplay", figsize=size)
        self.figure_ = self.ax_.figure
        if include_values is None:
            include_values = max(n_rows, n_columns) <= MOST_NUMBERS
        finite = np.where(np.isfinite(self.transition), np.abs(self.transition), 0.0)
        limit = max(finite.max(initial=0.0), 1e-12)
        self.im_, self.text_ = heat_map(
            self.ax_,
            self.transition,
            [str(label) for label in self.from_labels],
            [str(label) for label in self.to_labels],
            values_format=values_format if include_values else None,
            **{"cmap": cmap, "vmin": -limit, "vmax": limit},
        )
        self.ax_.set(xlabel="label", ylabel="previous label", title="Transition weights")
        if colorbar:
            self.figure_.colorbar(self.im_, ax=self.ax_, label="weight")
        return self


@set_module("skstruct.inspection")
def transition_weights(estimator, *, labels=None, include_ends=False):
    """Table of the weights of label pairs, without those of triples.

    Parameters
    ----------
    estimator : estimator
        A fitted tagger, or a Pipeline or search that ends in one.
    labels : array-like, default=None
        Labels to list, in this order. By default all, those of a chunk type side by side.
    include_ends : bool, default=False
        Add a row with the weights of first labels, and a column with those of last labels.

    Returns
    -------
    weights : pandas DataFrame
        From row to column; minus infinity where a pair is impossible.

    Raises
    ------
    ValueError
        If the tagger does not know a label.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.inspection import transition_weights
    >>> X = [[{"word": "time"}, {"word": "flies"}], [{"word": "fruit"}, {"word": "juice"}]]
    >>> tagger = CRFTagger().fit(X, [["NOUN", "VERB"], ["NOUN", "NOUN"]])
    >>> bool(transition_weights(tagger).loc["NOUN", "VERB"] == tagger.transition_[0, 1])
    True
    """
    pd = require("pandas", "transition_weights")
    matrix, from_labels, to_labels = _weights(estimator, labels, include_ends)
    index, columns = pd.Index(from_labels, name="from"), pd.Index(to_labels, name="to")
    return pd.DataFrame(matrix, index=index, columns=columns)


def _weights(estimator, labels, include_ends):
    fitted = find_tagger(estimator)
    tagger, codes = fitted.tagger, fitted.codes(labels)
    matrix = tagger.transition_[np.ix_(codes, codes)]
    names = tagger.classes_[codes].tolist()
    if not include_ends:
        return matrix, names, names
    with_ends = np.full((len(codes) + 1, len(codes) + 1), np.nan)
    with_ends[0, :-1], with_ends[1:, -1] = tagger.start_[codes], tagger.end_[codes]
    with_ends[1:, :-1] = matrix
    return with_ends, [_START, *names], [*names, _END]
