"""Displays of predictions: probabilities along a sequence, calibration, confusion matrices."""

from functools import wraps

import numpy as np
from sklearn.calibration import CalibrationDisplay as _CalibrationDisplay
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix

from skstruct.input.formats import as_lists
from skstruct.inspection.figures import heat_map, new_axes
from skstruct.inspection.models import check_index, codes_of, find_tagger, order_of_labels, require
from skstruct.metrics.chunks import chosen_types, pairs_of_chunks
from skstruct.metrics.labels import as_list, check_lengths, stack_both
from skstruct.utils.messages import check_choice
from skstruct.utils.persistence import set_module


@set_module("skstruct.inspection")
class SequenceProbabilityDisplay:
    """Heat map of the probabilities of the labels at each token of a sequence.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    proba : ndarray of shape (length, n_labels)
        Probabilities.
    labels : list
        Labels of the columns.
    tokens : list of str
        Texts of the tokens.
    y_true, y_pred : list of shape (length,), default=None
        Correct and predicted labels.

    Attributes
    ----------
    im_ : matplotlib AxesImage
        The heat map, tokens from left to right.
    text_ : ndarray of matplotlib Text, or None
        Numbers in the cells.
    true_ : matplotlib PathCollection, or None
        Circles around the correct labels.
    pred_ : matplotlib Line2D, or None
        Dots on the predicted labels.
    ax_, figure_ : matplotlib Axes and Figure
        Axes and figure of the plot.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.inspection import SequenceProbabilityDisplay
    >>> X = [[{"word": "time"}, {"word": "flies"}], [{"word": "fruit"}, {"word": "juice"}]]
    >>> y = [["NOUN", "VERB"], ["NOUN", "NOUN"]]
    >>> tagger = CRFTagger().fit(X, y)
    >>> display = SequenceProbabilityDisplay.from_estimator(tagger, X, y, tokens=["time", "flies"])
    >>> display.im_.get_array().shape
    (2, 2)
    """

    def __init__(self, proba, *, labels, tokens, y_true=None, y_pred=None):
        self.proba = proba
        self.labels = labels
        self.tokens = tokens
        self.y_true = y_true
        self.y_pred = y_pred

    @classmethod
    def from_estimator(cls, estimator, X, y=None, *, index=0, tokens=None, **options):
        """Plot the probabilities that an estimator predicts.

        Parameters
        ----------
        estimator : estimator
            A fitted tagger, or a Pipeline or search that ends in one.
        X : sequences of tokens
            As the estimator takes them.
        y : sequences of labels, default=None
            Correct labels.
        index : int, default=0
            Number of the sequence to show.
        tokens : array-like of str of shape (length,), default=None
            Texts of its tokens. By default taken from `X`, if its tokens are str or begin with one;
            otherwise their numbers.
        **options : object
            Options of :meth:`from_predictions`: `labels`, `min_probability`, `ax` and what goes to
            :meth:`plot`.

        Returns
        -------
        display : SequenceProbabilityDisplay

        Raises
        ------
        ValueError
            If there is no such sequence, it has no tokens, or `y` or `tokens` do not fit `X`.
        """
        fitted, X = find_tagger(estimator), as_lists(X)
        X_tagger = fitted.transform(X)
        proba = [np.atleast_2d(rows) for rows in fitted.tagger.predict_proba(X_tagger)]
        # A negative number counts from the end.
        check_index("index", index, len(proba), "X", "sequences", lowest=-len(proba))
        return cls.from_predictions(
            proba[index],
            classes=fitted.tagger.classes_,
            y_true=None if y is None else labels_of_each(y, proba)[index],
            y_pred=_labels_of(fitted.tagger.predict(X_tagger)[index]),
            tokens=token_texts(X, index, len(proba[index])) if tokens is None else tokens,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        proba,
        *,
        classes,
        y_true=None,
        y_pred=None,
        tokens=None,
        labels=None,
        min_probability=0.05,
        ax=None,
        **options,
    ):
        """Plot probabilities of one sequence.

        Parameters
        ----------
        proba : ndarray of shape (length, n_classes)
            As `predict_proba` returns for a sequence.
        classes : array-like of shape (n_classes,)
            Labels of its columns.
        y_true, y_pred : array-like of shape (length,), default=None
            Correct and predicted labels.
        tokens : array-like of str of shape (length,), default=None
            Texts of its tokens, by default their numbers.
        labels : array-like, default=None
            Labels to show. By default those that are likely somewhere, predicted or correct.
        min_probability : float, default=0.05
            Labels whose probability is nowhere larger are left out, unless `labels` are given.
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        **options : object
            Options of :meth:`plot`.

        Returns
        -------
        display : SequenceProbabilityDisplay

        Raises
        ------
        ValueError
            If there are no tokens, the lengths differ, or a label is not one of `classes`.
        """
        proba, classes = np.asarray(proba), as_list(classes)
        if proba.ndim != 2 or proba.shape[1] != len(classes):
            expected = f"(length, {len(classes)}), a column for each class"
            raise ValueError(f"proba must have shape {expected}, got {proba.shape}.")
        if not len(proba):
            raise ValueError("The sequence has no tokens: there is nothing to show.")
        tokens = list(map(str, range(len(proba))) if tokens is None else tokens)
        y_true, y_pred = (None if y is None else as_list(y) for y in (y_true, y_pred))
        for name, values in (("tokens", tokens), ("y_true", y_true), ("y_pred", y_pred)):
            if values is not None and len(values) != len(proba):
                raise ValueError(f"{name} has {len(values)} entries for {len(proba)} tokens.")
        if labels is None:
            named = {*(y_true or ()), *(y_pred or ())}
            shown = [
                k
                for k in order_of_labels(classes)
                if proba[:, k].max() > min_probability or classes[k] in named
            ]
        else:
            shown = codes_of(labels, classes, "the classes")
        names, truth = [classes[k] for k in shown], {"y_true": y_true, "y_pred": y_pred}
        return cls(proba[:, shown], labels=names, tokens=tokens, **truth).plot(ax=ax, **options)

    def plot(self, ax=None, *, cmap="Blues", include_values=False, colorbar=True, legend=True):
        """Plot the heat map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to plot; by default a new figure.
        cmap : str or matplotlib Colormap, default="Blues"
            Colours, from 0 to 1.
        include_values : bool, default=False
            Write the numbers into the cells.
        colorbar : bool, default=True
            Add a colour bar.
        legend : bool, default=True
            Say what circles and dots are.

        Returns
        -------
        self : SequenceProbabilityDisplay
        """
        size = (3 + 0.6 * len(self.tokens), 1.8 + 0.32 * len(self.labels))
        self.ax_, self.figure_ = new_axes(ax, "SequenceProbabilityDisplay", figsize=size)
        image = {"cmap": cmap, "vmin": 0, "vmax": 1}
        image["values_format"] = ".2f" if include_values else None
        proba = np.asarray(self.proba).T
        self.im_, self.text_ = heat_map(self.ax_, proba, self.labels, self.tokens, **image)
        self.pred_ = self.true_ = None
        if self.y_pred is not None:
            style = {"color": "C1", "marker": "o", "linestyle": "", "label": "predicted"}
            (self.pred_,) = self.ax_.plot(*self._places(self.y_pred), **style)
        if self.y_true is not None:
            style = {"s": 130, "facecolors": "none", "edgecolors": "C3", "linewidths": 1.8}
            self.true_ = self.ax_.scatter(*self._places(self.y_true), label="correct", **style)
        self.ax_.set_ylabel("label")
        if legend and (self.y_pred is not None or self.y_true is not None):
            self.ax_.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
        if colorbar:
            self.figure_.colorbar(self.im_, ax=self.ax_, label="probability")
        return self

    def _places(self, labels):
        rows = {label: row for row, label in enumerate(self.labels)}
        return range(len(labels)), [rows.get(label, np.nan) for label in labels]


def token_texts(X, index, length):
    """Texts of the tokens of a sequence, their numbers where they have none."""
    is_list = isinstance(X, (list, tuple)) or np.ndim(X) == 1
    sequence = getattr(X, "iloc", X)[index] if is_list else None
    texts = []
    for token in sequence if isinstance(sequence, (list, tuple, np.ndarray)) else ():
        first = token[0] if isinstance(token, (list, tuple)) and token else token
        texts.append(first if isinstance(first, str) else None)
    return texts if texts and None not in texts else [str(t) for t in range(length)]


def labels_of_each(y, answers):
    """Labels of each sequence as lists; a ValueError unless as many as answers for its tokens."""
    if y is None:
        raise ValueError("y is None: pass the correct labels.")
    labels = [_labels_of(labels) for labels in as_list(as_lists(y))]
    check_lengths(answers, labels)
    return labels


def _labels_of(labels):
    """List of the labels of a sequence, or of a row of X, which has one label."""
    return as_list(labels) if np.ndim(labels) or isinstance(labels, (list, tuple)) else [labels]


@set_module("skstruct.inspection")
class CalibrationDisplay(_CalibrationDisplay):
    """Reliability curve of the probabilities of a tagger.

    The predictions are sorted into bins by probability. In each bin, the share of correct ones is
    plotted against the mean probability: on the diagonal, probabilities are calibrated. It is
    scikit-learn's :class:`~sklearn.calibration.CalibrationDisplay`, with its parameters, attributes
    and ``plot``, for sequences.

    Use :meth:`from_estimator`, or :meth:`from_predictions` with 1 for each correct prediction, 0
    for others, and their probabilities.

    Parameters
    ----------
    prob_true : ndarray of shape (n_bins,)
        Share of correct predictions in each bin.
    prob_pred : ndarray of shape (n_bins,)
        Mean probability in each bin.
    y_prob : ndarray of shape (n_predictions,)
        Probability of each prediction.
    estimator_name : str, default=None
        Name in the legend.
    pos_label : object, default=None
        Label whose probabilities they are.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.datasets import load_digit_sequences
    >>> from skstruct.inspection import CalibrationDisplay
    >>> X, y = load_digit_sequences(return_X_y=True)
    >>> tagger = CRFTagger().fit(X[::2], y[::2])
    >>> display = CalibrationDisplay.from_estimator(tagger, X[1::2], y[1::2], n_bins=5)
    >>> len(display.y_prob) == sum(map(len, y[1::2]))
    True
    """

    @classmethod
    def from_estimator(cls, estimator, X, y, *, of="token", label=None, name=None, **options):
        """Plot the reliability curve of a tagger.

        Parameters
        ----------
        estimator : estimator
            A fitted tagger, or a Pipeline or search that ends in one.
        X, y : sequences of tokens and of labels
            Test set. Tokens whose label is None are left out.
        of : {"token", "sequence"}, default="token"
            "token": the marginal probability of each token's most probable label; "sequence": the
            probability of each sequence's best labelling.
        label : str or int, default=None
            With "token", the probability of this label at every token instead.
        name : str, default=None
            Name in the legend; by default the class, with the kind of the probabilities.
        **options : object
            Options of :meth:`sklearn.calibration.CalibrationDisplay.from_predictions`:
            ``n_bins=5``, ``strategy="uniform"``, ``ref_line=True``, ``ax=None`` and options of a
            line.

        Returns
        -------
        display : CalibrationDisplay

        Raises
        ------
        ValueError
            If `of` or `label` is invalid, `y` does not fit `X`, no label is known, or with
            ``of="sequence"`` one is not.
        """
        require("matplotlib", "CalibrationDisplay")
        check_choice("of", of, ("token", "sequence"))
        fitted = find_tagger(estimator)
        tagger, X = fitted.tagger, fitted.transform(X)
        if of == "sequence":
            if label is not None:
                raise ValueError("label is for the probabilities of tokens, not of='sequence'.")
            correct, probability = _of_sequences(tagger, X, y)
        else:
            names = tagger.classes_.tolist(), f"the labels of {type(tagger).__name__}"
            code = None if label is None else codes_of([label], *names)[0]
            correct, probability = _of_tokens(tagger, X, y, code)
        # Two dollar signs would make mathematics of the label.
        shown = str(label).replace("$", r"\$")
        of = f"{of}s" if label is None else shown
        name = f"{type(tagger).__name__}, {of}" if name is None else name
        display = super().from_predictions(correct, probability, name=name, **options)
        share = "correct" if label is None else f"labelled {shown}"
        display.ax_.set(xlabel="mean probability", ylabel=f"share that is {share}")
        return display


def _of_sequences(tagger, X, y):
    best = [found[0] for found in tagger.predict_nbest(X, n_best=1)]
    truth = labels_of_each(y, [found.labels for found in best])
    for i, labels in enumerate(truth):
        if None in labels:
            raise ValueError(f"Sequence {i} has tokens without a label: its labels must be known.")
    correct = [found.labels == labels for found, labels in zip(best, truth, strict=True)]
    return np.array(correct, dtype=int), np.array([found.probability for found in best])


def _of_tokens(tagger, X, y, code):
    proba = [np.atleast_2d(rows) for rows in tagger.predict_proba(X)]
    truth = [label for labels in labels_of_each(y, proba) for label in labels]
    stacked = np.concatenate(proba)
    known = np.array([label is not None for label in truth])
    if not known.any():
        raise ValueError("No token has a label: at least one label is required.")
    chosen = stacked.argmax(axis=1) if code is None else np.full(len(stacked), code)
    names = tagger.classes_.astype(object)[chosen]
    correct = np.array([name == label for name, label in zip(names, truth, strict=True)])
    probability = stacked[np.arange(len(stacked)), chosen]
    # Sums of rounded numbers may be slightly more than one.
    return correct[known].astype(int), np.clip(probability[known], 0.0, 1.0)


# Confusion matrices

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

    @wraps(ConfusionMatrixDisplay.plot)
    def plot(self, **options):
        super().plot(**options)
        for text in (*self.ax_.get_xticklabels(), *self.ax_.get_yticklabels()):
            text.set_parse_math(False)
        return self

    @classmethod
    def _plotted(cls, true, pred, labels, names, normalize, options):
        """Plot the matrix: counts, coloured by their share of the row, or shares if normalised."""
        matrix = confusion_matrix(true, pred, labels=labels, normalize=normalize)
        names, counts = [str(name) for name in names], normalize is None
        options.setdefault("values_format", "d" if counts else ".2f")
        size = 2.5 + 0.35 * len(names)
        ax, _ = new_axes(options.pop("ax", None), cls.__name__, figsize=(size + 1.6, size))
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
            Labels to show, in this order. By default all, each chunk type side by side.
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
            If a sequence has another number of labels in `y_pred`, no true label is known, a
            predicted one is None, or labels are of different types and `labels` are not given.
        """
        sides = stack_both(y_true, y_pred)
        kept = [k for k, label in enumerate(sides[0].labels) if label is not None]
        if not kept:
            raise ValueError("y_true has no known labels: all are None")
        true, pred = ([side.labels[k] for k in kept] for side in sides)
        if None in pred:
            sides[1].fail(kept[pred.index(None)], "a prediction must be a label")
        if labels is None:
            known = {*true, *pred}
            if len({isinstance(label, str) for label in known}) > 1:
                raise ValueError(
                    "Some labels are str, some are numbers, so they cannot be sorted: pass labels, "
                    "in the order to show them."
                )
            known = sorted(known)
            labels = [known[k] for k in order_of_labels(known)]
        return cls._plotted(true, pred, labels, labels, normalize, options)


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
            expected, found = ({(a, b): kind for a, b, kind in side} for side in sides)
            for span in {**expected, **found}:
                true.append(expected.get(span, -1))
                pred.append(found.get(span, -1))
        if not true:
            raise ValueError("There are no chunks, neither in y_true nor in y_pred.")
        codes = {types[kind]: kind for kind in {*true, *pred} - {-1}}
        names = sorted(codes) if labels is None else chosen_types(labels, codes)
        # Other types have no chunks, and numbers that occur nowhere.
        chosen = [codes.get(name, len(types) + k) for k, name in enumerate(names)]
        return cls._plotted(true, pred, [*chosen, -1], [*names, "(none)"], normalize, options)
