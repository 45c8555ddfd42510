"""Reliability of the probabilities of tokens and of whole sequences."""

import numpy as np
from sklearn.calibration import CalibrationDisplay as _CalibrationDisplay

from skstruct.inspection.models import find_tagger, labels_of, require
from skstruct.metrics.labels import as_list
from skstruct.utils.options import check_choice
from skstruct.utils.public_paths import set_module


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
            Name in the legend; by default that of the class, with the kind of the probabilities.
        **options : object
            Options of :meth:`sklearn.calibration.CalibrationDisplay.from_predictions`:
            ``n_bins=5``, ``strategy="uniform"``, ``ref_line=True``, ``ax=None`` and those of a
            line.

        Returns
        -------
        display : CalibrationDisplay

        Raises
        ------
        ValueError
            If `of` or `label` is invalid, or a label is missing for a whole sequence.
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
            code = None if label is None else fitted.codes([label])[0]
            correct, probability = _of_tokens(tagger, X, y, code)
        of = f"{of}s" if label is None else label
        name = f"{fitted.name}, {of}" if name is None else name
        display = super().from_predictions(correct, probability, name=name, **options)
        share = "correct" if label is None else f"labelled {label}"
        display.ax_.set(xlabel="mean probability", ylabel=f"share that is {share}")
        return display


def _of_sequences(tagger, X, y):
    best = [found[0] for found in tagger.predict_nbest(X, n_best=1)]
    truth = [labels_of(labels) for labels in as_list(y)]
    for i, labels in enumerate(truth):
        if None in labels:
            raise ValueError(f"Sequence {i} has tokens without a label: its labels must be known.")
    correct = [found.labels == labels for found, labels in zip(best, truth, strict=True)]
    return np.array(correct, dtype=int), np.array([found.probability for found in best])


def _of_tokens(tagger, X, y, code):
    proba = tagger.predict_proba(X)
    stacked = np.concatenate([np.atleast_2d(rows) for rows in proba])
    truth = [label for labels in as_list(y) for label in labels_of(labels)]
    known = np.array([label is not None for label in truth])
    chosen = stacked.argmax(axis=1) if code is None else np.full(len(stacked), code)
    names = tagger.classes_.astype(object)[chosen]
    correct = np.array([name == label for name, label in zip(names, truth, strict=True)])
    probability = stacked[np.arange(len(stacked)), chosen]
    # Sums of rounded numbers may be slightly more than one.
    return correct[known].astype(int), np.clip(probability[known], 0.0, 1.0)
