"""Negative log-likelihood and gradient of a CRF whose transitions are mostly without a weight."""

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.chain.scores import longest, path_score
from skstruct.kernels.chain.sparse_forward_backward import sparse_forward_backward
from skstruct.kernels.likelihood.objective import (
    add_biases,
    chain_scores,
    subtract_gold,
    to_variances,
)
from skstruct.kernels.likelihood.parameters import add_state_gradient


@jit
def sparse_nll_gradient(
    features,
    counted,
    offsets,
    first,
    last,
    labels,
    sequence_weight,
    chain,
    sparse,
    tables,
    curved,
    out,
):
    """Weighted sum of the negative log-likelihoods of the sequences ``first:last``.

    Parameters are those of `nll_gradient`; only listed transitions get a gradient.
    """
    length, n_labels = longest(offsets, first, last), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    marginals = np.empty((length, n_labels))
    scale = np.empty(length)
    expected = np.zeros(sparse.score.shape[0])
    nll = 0.0
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        if a == b:
            continue
        weight = sequence_weight[i]
        gold = labels[a:b]
        chain_scores(features, chain, 1.0, a, b, scores)
        gold_score = 0.0 if curved else path_score(scores, b - a, chain.transition, gold)
        log_z = sparse_forward_backward(
            scores, b - a, chain.transition, sparse, tables, marginals, scale, weight, expected
        )
        nll += weight * (log_z - gold_score)
        if curved:
            to_variances(marginals, b - a, weight)
        else:
            subtract_gold(marginals, gold, weight, out.transition)
        add_biases(marginals, b - a, out)
        add_state_gradient(counted, marginals, n_labels, a, b, out.weights)
    for i in range(n_labels):
        for k in range(sparse.indptr[i], sparse.indptr[i + 1]):
            out.transition[i, sparse.into[k]] += tables.linear[k] * expected[k]
    return nll
