"""Weights of a CRFsuite model in the layout of the kernels."""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.utils.memory import require_memory

__all__ = ["chain_from_model"]


def chain_from_model(model, columns, codes, shape, *, max_bytes=2**32):
    """Weights of a CRFsuite model in the layout of the kernels.

    Parameters
    ----------
    model : CRFsuiteModel
    columns, codes : ndarray of int
        Column of each attribute, and code of each label.
    shape : tuple of int
        Numbers of columns and of labels.
    max_bytes : int, default=2**32
        Memory limit of the weights.

    Returns
    -------
    chain : Chain
    """
    n_features, n_labels = shape
    needed = 8 * n_labels * (n_features + n_labels)
    if needed > max_bytes:
        raise ValueError(
            f"The weights of {n_features} attributes and {n_labels} labels need {needed} bytes, "
            f"more than max_bytes={max_bytes}. Increase max_bytes to read this model."
        )
    require_memory(
        needed,
        f"The weights of {n_features:,} attributes and {n_labels:,} labels",
        "Read the model where there is more.",
    )
    weights, transition = np.zeros((n_features, n_labels)), np.zeros((n_labels, n_labels))
    # A file may repeat a combination. As in CRFsuite, repeated weights of an attribute are added,
    # and the last weight of a label pair is taken.
    places = (columns[model.states[:, 0]], codes[model.states[:, 1]])
    np.add.at(weights, places, model.state_weights)
    transition[codes[model.pairs[:, 0]], codes[model.pairs[:, 1]]] = model.pair_weights
    return kernels.Chain(weights, transition, *np.zeros((3, n_labels)))
