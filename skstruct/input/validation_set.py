"""Reading a validation set: labels and features as those of the training set."""

from __future__ import annotations

import numpy as np

from skstruct.input.formats import encode_labels
from skstruct.input.sample_weight import read_sample_weight, require_weight
from skstruct.input.scale import check_sample_weight
from skstruct.input.training_set import TrainingSet, batch_rows
from skstruct.utils.sparse import read_only

__all__ = ["read_validation_set"]

# Code of labels that no training sequence has; -1 is that of tokens without a label.
_UNSEEN = -2


def read_validation_set(read_X, classes, X, y, sample_weight):
    """Check and encode a validation set.

    Parameters
    ----------
    read_X : callable
        ``read_X(X)`` returns the format and the batch of an X with the features of the training
        set.
    classes : ndarray of shape (n_classes,)
        Labels of the training set.
    X, y, sample_weight : object
        As the caller of `fit` gave them.

    Returns
    -------
    validation_set : TrainingSet
        The sequences with a weight. Labels that no training sequence has are -2.

    Raises
    ------
    ValueError
        If X or y is missing, or invalid; if no token counts; or if no label occurs in training.
    """
    if X is None and y is None:
        raise ValueError("sample_weight_val is given without X_val and y_val.")
    if X is None or y is None:
        raise ValueError("Pass both X_val and y_val, or neither.")
    try:
        format, batch = read_X(X)
        found, codes = encode_labels(y, batch, format)
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        known = np.array([code_of.get(label, _UNSEEN) for label in found.tolist()], np.int32)
        if np.all(known == _UNSEEN):
            raise ValueError(f"none of the labels {found.tolist()} occurs in training.")
        weight = read_sample_weight(sample_weight, len(batch), "sample_weight_val")
        require_weight(weight, batch.lengths)
        check_sample_weight(weight)
        rows = batch_rows(batch)
    except ValueError as error:
        raise ValueError(f"X_val, y_val: {error}") from error
    return TrainingSet(rows, batch.offsets, known[codes], read_only(weight)).weighted()
