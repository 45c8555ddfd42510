"""Confusion matrices of labels and of types of chunks."""

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix

from skstruct.inspection.figures import new_axes
from skstruct.inspection.models import order_of_labels
from skstruct.metrics.chunks import chosen_types, pairs_of_chunks
from skstruct.metrics.labels import stack_both
from skstruct.utils.public_paths import set_module

_NONE = "(none)"
# Number of labels beyond which numbers are illegible.
_MOST_NUMBERS = 25


class _SequenceConfusion(ConfusionMatrixDisplay):
    """Confusion matrix of sequences, base of both displays."""

    @classmethod
    def from_estimator(cls, estimator, X, y, **options):
        """Plot the confusion matrix of an estimator's predictions.

        Parameters
        ----------
        estimator : estimator
            With `predict`, such as a fitted tagger or a Pipeline.
        X, y : sequences of tokens and of labels
            Test set, as of `predict` and `score`.
        **options : object
            Options of :meth:`from_predictions`.

        Returns
        -------
        display : ConfusionMatrixDisplay
        """
        return cls.from_predictions(y, estimator.predict(X), **options)

    @classmethod
    def _plotted(cls, true, pred, labels, normalize, options):
        """Plot a matrix: numbers are counts, unless they are shares, and colours shares of rows."""
        matrix = confusion_matrix(true, pred, labels=labels, normalize=normalize)
        names, counts = [str(label) for label in labels], normalize is None
        options.setdefault("values_format", "d" if counts else ".2f")
        size = 2.5 + 0.35 * len(names)
        ax = new_axes(options.pop("ax", None), cls.__name__, figsize=(size + 1.6, size))
        options.setdefault("cmap", "Blues")
        options.setdefault("include_values", len(names) <= _MOST_NUMBERS)
        options.setdefault("xticks_rotation", "vertical" if len(names) > 5 else "horizontal")
        display = cls(confusion_matrix=matrix, display_labels=names).plot(ax=ax, **options)
        if counts:
            _colour_by_row(display)
        if display.text_ is not None:
            # Other numbers stand out where zeros are left out.
            for cell in np.argwhere(matrix == 0):
                display.text_[tuple(cell)].set_text("")
        return display


def _colour_by_row(display):
    """Colour cells by their share of the row, so that frequent labels leave others visible."""
    matrix = display.confusion_matrix
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    image = display.im_
    image.set_data(shares)
    image.set_clim(0.0, 1.0)
    if image.colorbar is not None:
        image.colorbar.set_label("Share of the row")
    if display.text_ is not None:
        dark, light = image.cmap(1.0), image.cmap(0.0)
        for cell, share in np.ndenumerate(shares):
            display.text_[cell].set_color(light if share > 0.5 else dark)


@set_module("skstruct.inspection")
class LabelConfusionDisplay(_SequenceConfusion):
    """Confusion matrix of the labels of tokens.

    Numbers are counts, and colours shares of the row. It is scikit-learn's
    :class:`~sklearn.metrics.ConfusionMatrixDisplay`, with its parameters, attributes and ``plot``,
    for sequences. Use :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    confusion_matrix : ndarray of shape (n_labels, n_labels)
        Number or share of tokens, from the true label to the predicted one.
    display_labels : list of str
        Names of the labels.

    See Also
    --------
    ChunkConfusionDisplay : Confusion of chunks of labels.

    Examples
    --------
    >>> from skstruct.inspection import LabelConfusionDisplay
    >>> y_true, y_pred = [["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]]
    >>> LabelConfusionDisplay.from_predictions(y_true, y_pred).confusion_matrix
    array([[1, 0, 0],
           [0, 0, 1],
           [0, 0, 1]])
    """

    @classmethod
    def from_predictions(cls, y_true, y_pred, *, labels=None, normalize=None, **options):
        """Plot the confusion matrix of true and predicted labels.

        Parameters
        ----------
        y_true, y_pred : label sequences
            Correct and predicted labels. Tokens whose true label is None are left out.
        labels : array-like, default=None
            Labels to show, in this order. By default all, those of a chunk type side by side.
        normalize : {"true", "pred", "all"}, default=None
            Show shares of the rows, the columns, or of all tokens.
        **options : object
            Options of :meth:`sklearn.metrics.ConfusionMatrixDisplay.plot`.

        Returns
        -------
        display : LabelConfusionDisplay

        Raises
        ------
        ValueError
            If a sequence has another number of labels in `y_pred`.
        """
        sides = (side.labels for side in stack_both(y_true, y_pred))
        pairs = [pair for pair in zip(*sides, strict=True) if pair[0] is not None]
        true, pred = map(list, zip(*pairs, strict=True))
        if labels is None:
            known = sorted({*true, *pred})
            labels = [known[k] for k in order_of_labels(known)]
        return cls._plotted(true, pred, labels, normalize, options)


@set_module("skstruct.inspection")
class ChunkConfusionDisplay(_SequenceConfusion):
    """Confusion matrix of the types of chunks.

    A true and a predicted chunk are compared if they have the same tokens. Chunks without a
    counterpart are in the row or column "(none)". It is scikit-learn's
    :class:`~sklearn.metrics.ConfusionMatrixDisplay`, with its parameters, attributes and ``plot``.
    Use :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    confusion_matrix : ndarray of shape (n_types + 1, n_types + 1)
        Number or share of chunks, from the true type to the predicted one. The last row counts
        predicted chunks without a counterpart, the last column true ones that were missed.
    display_labels : list of str
        Types, and ``"(none)"``.

    See Also
    --------
    LabelConfusionDisplay : Confusion of single labels.
    skstruct.metrics.chunk_report : Precision, recall and F1 of each type.

    Examples
    --------
    >>> from skstruct.inspection import ChunkConfusionDisplay
    >>> y_true, y_pred = [["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "B-NP"]]
    >>> display = ChunkConfusionDisplay.from_predictions(y_true, y_pred)
    >>> display.display_labels
    ['NP', 'VP', '(none)']
    >>> display.confusion_matrix
    array([[1, 0, 0],
           [1, 0, 0],
           [0, 0, 0]])
    """

    @classmethod
    def from_predictions(
        cls, y_true, y_pred, *, labels=None, scheme="conlleval", normalize=None, **options
    ):
        """Plot the confusion matrix of true and predicted chunks.

        Parameters
        ----------
        y_true, y_pred : label sequences
            Correct and predicted labels of chunks.
        labels : array-like of str, default=None
            Types of chunks to show. By default all, sorted.
        scheme : str, default="conlleval"
            Scheme of the labels, as of :func:`skstruct.metrics.extract_chunks`.
        normalize : {"true", "pred", "all"}, default=None
            Show shares of the rows, the columns, or of all chunks.
        **options : object
            Options of :meth:`sklearn.metrics.ConfusionMatrixDisplay.plot`.

        Returns
        -------
        display : ChunkConfusionDisplay

        Raises
        ------
        ValueError
            If there is no chunk, a sequence has another number of labels in `y_pred`, or as in
            :func:`~skstruct.metrics.chunk_f1_score`.
        """
        types, pairs = pairs_of_chunks(y_true, y_pred, scheme)
        true, pred = [], []
        for sides in pairs:
            expected, found = ({(a, b): types[kind] for a, b, kind in side} for side in sides)
            for span in {**expected, **found}:
                true.append(expected.get(span, _NONE))
                pred.append(found.get(span, _NONE))
        if not true:
            raise ValueError("There are no chunks, neither in y_true nor in y_pred.")
        types = sorted({*true, *pred} - {_NONE})
        types = types if labels is None else chosen_types(labels, types)
        return cls._plotted(true, pred, [*types, _NONE], normalize, options)
