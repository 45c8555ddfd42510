"""Doubts about a fit: signs that what was learnt is not what was meant."""

import numpy as np
from sklearn.utils.validation import _num_samples

from skstruct.input.formats import as_lists
from skstruct.input.schemes import are_chunk_labels
from skstruct.inspection.models import find_tagger
from skstruct.metrics.chunks import count_chunks_of_sequences
from skstruct.metrics.labels import stack
from skstruct.utils.persistence import set_module

# With fewer tokens, labels that are all different may be meant.
_FEWEST_TOKENS = 10
# With fewer chunks, there may be too little to learn from.
_FEWEST_CHUNKS = 10
# Smallest share of the chunks that predictions must have.
_SHARE = 0.1


@set_module("skstruct.inspection")
def check_fit(estimator, X, y) -> list:
    """Look for signs that a fit has learnt nothing.

    Parameters
    ----------
    estimator : estimator
        A fitted tagger, or a Pipeline or search that ends in one.
    X : sequences of tokens
        Some of the training sequences, a hundred or more.
    y : sequences of labels
        Their labels; None where unknown.

    Returns
    -------
    doubts : list of str
        A sentence for each sign, with a remedy. Empty if there is none. The signs are: labels that
        are all different, and predictions with less than a tenth of the chunks of `y`, if it has
        ten or more.

    Raises
    ------
    TypeError
        If the estimator has no tagger.
    ValueError
        If X and y do not fit together.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> from skstruct.inspection import check_fit
    >>> X, y = [[["the"]]] * 30, [["B-PET"]] * 10 + [["O"]] * 20
    >>> print(check_fit(CRFTagger().fit(X, y), X, y)[0])
    Predictions have 0 of the 10 chunks of y: hardly anything but O was learnt. ...
    >>> X[:10] = [[["cat"]]] * 10
    >>> check_fit(CRFTagger().fit(X, y), X, y)
    []
    """
    fitted, X, y = find_tagger(estimator), as_lists(X), as_lists(y)
    y_true = stack(y, "y")
    n_sequences = len(y_true.offsets) - 1
    if _num_samples(X) != n_sequences:
        raise ValueError(f"X has {_num_samples(X)} sequences, but y has {n_sequences}.")
    doubts = _doubts_about_labels([label for label in y_true.labels if label is not None])
    names = fitted.tagger.classes_.tolist()
    if are_chunk_labels(names):
        y_pred = stack(estimator.predict(X), "the predictions")
        if not np.array_equal(y_pred.offsets, y_true.offsets):
            i = np.flatnonzero(np.diff(y_pred.offsets) != np.diff(y_true.offsets))[0]
            raise ValueError(f"Sequence {i}: X and y have different numbers of tokens.")
        doubts += _doubts_about_chunks(y_true, y_pred, hasattr(fitted.tagger, "label_cost"))
    return doubts


def _doubts_about_labels(labels):
    if not len(set(labels)) == len(labels) >= _FEWEST_TOKENS:
        return []
    return [
        f"The {len(labels)} labels of y are all different, so that nothing can be learnt from "
        "them. Check that y has the labels, and not another column."
    ]


def _doubts_about_chunks(y_true, y_pred, learns_costs):
    sides = [
        np.split(np.array([label or "O" for label in side.labels], object), side.offsets[1:-1])
        for side in (y_true, y_pred)
    ]
    _, n_predicted, n_true = count_chunks_of_sequences(*sides, "conlleval").sum(axis=0)
    if n_true < _FEWEST_CHUNKS or n_predicted >= _SHARE * n_true:
        return []
    cost = " or a cost of missed names (label_cost={'missed': 2})" if learns_costs else ""
    return [
        f"Predictions have {n_predicted} of the {n_true} chunks of y: hardly anything but O was "
        f"learnt. A smaller penalty (l2){cost} may help, and SpanTaggerCV or predict_spans with a "
        "low threshold finds chunks that the best labelling leaves out."
    ]
