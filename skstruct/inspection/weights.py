"""Weights of features and of label pairs, as pictures and as tables."""

import numpy as np

from skstruct.inspection.figures import MOST_NUMBERS, heat_map, new_axes, panels, plain_spines
from skstruct.inspection.models import find_tagger, require
from skstruct.utils.messages import check_count
from skstruct.utils.persistence import set_module


@set_module("skstruct.inspection")
class FeatureWeightsDisplay:
    """Bar chart of the features with the largest and the smallest weights of each label.

    It is recommended to use :meth:`from_estimator`.

    Parameters
    ----------
    features : list of ndarray of str
        For each label the names of features, from the largest weight to the smallest.
    weights : list of ndarray of float
        Their weights.
    labels : list
        The labels.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        For each label a bar for each feature.
    axes_ : list of matplotlib Axes
        A panel for each label.
    ax_, figure_ : matplotlib Axes and Figure
        Axes that the panels divide, and the figure.

    See Also
    --------
    feature_weights : The same numbers as a data frame.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.inspection import FeatureWeightsDisplay
    >>> X = [[{"word": "time"}, {"word": "flies"}], [{"word": "fruit"}, {"word": "juice"}]]
    >>> tagger = CRFTagger().fit(X, [["NOUN", "VERB"], ["NOUN", "NOUN"]])
    >>> display = FeatureWeightsDisplay.from_estimator(tagger, n_features=1)
    >>> [names.tolist() for names in display.features]
    [['word:juice'], ['word:flies']]
    """

    def __init__(self, features, weights, *, labels):
        self.features = features
        self.weights = weights
        self.labels = labels

    @classmethod
    def from_estimator(cls, estimator, *, labels=None, n_features=10, ax=None, **options):
        """Plot the largest weights of a fitted tagger.

        Parameters
        ----------
        estimator : estimator
            A fitted tagger, or a Pipeline or search that ends in one.
        labels : array-like, default=None
            Labels to show. By default all.
        n_features : int, default=10
            Largest number of features with positive weights for each label, and with negative ones.
        ax : matplotlib Axes or array-like of Axes, default=None
            One for each label, or one that is divided; by default a new figure.
        **options : object
            Options of :meth:`plot`.

        Returns
        -------
        display : FeatureWeightsDisplay

        Raises
        ------
        ValueError
            If `labels` is empty, or the tagger does not know one.
        """
        found = zip(*_strongest(estimator, labels, n_features), strict=True)
        labels, features, weights = map(list, found)
        return cls(features, weights, labels=labels).plot(ax=ax, **options)

    def plot(self, ax=None, *, colors=("C0", "C3")):
        """Plot the bars.

        Parameters
        ----------
        ax : matplotlib Axes or array-like of Axes, default=None
            One for each label, or one that is divided; by default a new figure.
        colors : tuple of colors, default=("C0", "C3")
            Of weights for the label, and of those against it.

        Returns
        -------
        self : FeatureWeightsDisplay
        """
        size = (3.8, 1 + 0.22 * max(map(len, self.weights), default=0))
        self.axes_, self.ax_ = panels(ax, "FeatureWeightsDisplay", len(self.labels), size)
        self.figure_ = self.ax_.figure
        self.bars_ = []
        for panel, label, names, weights in zip(
            self.axes_, self.labels, self.features, self.weights, strict=True
        ):
            color = [colors[int(weight < 0)] for weight in weights]
            self.bars_.append(panel.barh(range(len(weights)), weights, color=color, height=0.7))
            # Two dollar signs would make mathematics of a name.
            panel.set_yticks(range(len(names)), names, parse_math=False)
            panel.invert_yaxis()
            panel.tick_params(axis="y", length=0)
            panel.axvline(0, color="0.5", linewidth=0.8)
            panel.set_title(str(label), parse_math=False)
            panel.set_xlabel("weight")
            plain_spines(panel, "top", "right", "left")
        return self


@set_module("skstruct.inspection")
def feature_weights(estimator, *, labels=None, n_features=None):
    """Table of the weights of features.

    Parameters
    ----------
    estimator : estimator
        A fitted tagger, or a Pipeline or search that ends in one.
    labels : array-like, default=None
        Labels to list. By default all.
    n_features : int, default=None
        Largest number of features with positive weights for each label, and with negative ones.
        By default all whose weight is not zero.

    Returns
    -------
    weights : pandas DataFrame
        A row for each label and feature, with the columns ``"label"``, ``"feature"`` and
        ``"weight"``; for each label from the largest weight to the smallest.

    Raises
    ------
    ValueError
        If `labels` is empty, the tagger does not know one, or `n_features` is not positive.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.inspection import feature_weights
    >>> X = [[{"word": "time"}, {"word": "flies"}], [{"word": "fruit"}, {"word": "juice"}]]
    >>> tagger = CRFTagger().fit(X, [["NOUN", "VERB"], ["NOUN", "NOUN"]])
    >>> feature_weights(tagger, labels=["VERB"])[["label", "feature"]]
      label     feature
    0  VERB  word:flies
    """
    pd = require("pandas", "feature_weights")
    found = _strongest(estimator, labels, n_features)
    tables = [
        pd.DataFrame({"label": [label] * len(names), "feature": names, "weight": weights})
        for label, names, weights in found
    ]
    return pd.concat(tables, ignore_index=True)


def _strongest(estimator, labels, n_features):
    check_count("n_features", n_features, none=True)
    fitted = find_tagger(estimator)
    classes, coef, names = fitted.classes().tolist(), fitted.coef(), fitted.feature_names()
    found = []
    for code in fitted.codes(labels):
        weights = coef[code]
        present = np.flatnonzero(weights)
        # Equal weights keep the order of the features.
        order = present[np.argsort(-weights[present], kind="stable")]
        positive, negative = order[weights[order] > 0], order[weights[order] < 0]
        order = np.concatenate([positive[:n_features], negative[::-1][:n_features][::-1]])
        found.append((classes[code], names[order], weights[order]))
    return found


@set_module("skstruct.inspection")
class TransitionDisplay:
    """Heat map of the weights of label pairs; triples are not shown.

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
            Labels to show, in this order. By default all, each chunk type side by side.
        include_ends : bool, default=False
            Add a row with the weights of first labels, and a column for last labels.
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
            If `labels` is empty, or the tagger does not know one.
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
        self.ax_, self.figure_ = new_axes(ax, "TransitionDisplay", figsize=size)
        if include_values is None:
            include_values = max(n_rows, n_columns) <= MOST_NUMBERS
        finite = np.where(np.isfinite(self.transition), np.abs(self.transition), 0.0)
        limit = max(finite.max(initial=0.0), 1e-12)
        image = {"cmap": cmap, "vmin": -limit, "vmax": limit}
        image["values_format"] = values_format if include_values else None
        self.im_, self.text_ = heat_map(
            self.ax_, self.transition, self.from_labels, self.to_labels, **image
        )
        self.ax_.set(xlabel="label", ylabel="previous label", title="Transition weights")
        if colorbar:
            self.figure_.colorbar(self.im_, ax=self.ax_, label="weight")
        return self


@set_module("skstruct.inspection")
def transition_weights(estimator, *, labels=None, include_ends=False):
    """Table of the weights of label pairs, without triples.

    Parameters
    ----------
    estimator : estimator
        A fitted tagger, or a Pipeline or search that ends in one.
    labels : array-like, default=None
        Labels to list, in this order. By default all, each chunk type side by side.
    include_ends : bool, default=False
        Add a row with the weights of first labels, and a column for last labels.

    Returns
    -------
    weights : pandas DataFrame
        From row to column; minus infinity where a pair is impossible.

    Raises
    ------
    ValueError
        If `labels` is empty, or the tagger does not know one.

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
    names = fitted.classes()[codes].tolist()
    if not include_ends:
        return matrix, names, names
    start, end = tagger.start_[codes], tagger.end_[codes][:, None]
    with_ends = np.block([[start, np.nan], [matrix, end]])
    return with_ends, ["(start)", *names], [*names, "(end)"]
