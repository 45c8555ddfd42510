"""From what a model file of CRFsuite holds to the weights that kernels read."""

from __future__ import annotations

import numpy as np

from skstruct.kernels.chain.scores import Chain

__all__ = ["chain_from_model"]


def chain_from_model(model, columns, codes, shape, *, max_bytes=2**32):
    """The weights of a model as kernels read them.

    Parameters
    ----------
    model : CRFsuiteModel
    columns, codes : ndarray of int
        Column of each attribute, and code of each label.
    shape : tuple of int
        Numbers of columns and of labels.
    max_bytes : int, default=2**32
        Most memory that they may take.

    Returns
    -------
    chain : Chain
    """
    n_features, n_labels = shape
    needed = 8 * n_labels * (n_features + n_labels)
    if needed > max_bytes:
        raise ValueError(
            f"The weights of {n_features} attributes and {n_labels} labels take {needed} bytes, "
            f"more than max_bytes={max_bytes}."
        )
    weights, transition = np.zeros((n_features, n_labels)), np.zeros((n_labels, n_labels))
    # A file may name a combination twice. CRFsuite adds weights of attributes up, and takes the
    # last one of a label pair.
    places = (columns[model.states[:, 0]], codes[model.states[:, 1]])
    np.add.at(weights, places, model.state_weights)
    transition[codes[model.pairs[:, 0]], codes[model.pairs[:, 1]]] = model.pair_weights
    return Chain(weights, transition, *np.zeros((3, n_labels)))
