"""Likelihood of a CRF whose transitions are mostly without a weight, and its stochastic start."""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.listed import read_scores
from skstruct.kernels.chain.scores import longest, path_score
from skstruct.kernels.chain.sparse_forward_backward import (
    SparseFactors,
    sparse_factors,
    sparse_forward_backward,
)
from skstruct.kernels.likelihood.dual_free import (
    move_towards,
    prefetch_visit,
    shrink,
    shrink_biases,
    shrink_states,
    step_share,
)
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


@jit
def sparse_dual_free_epoch(
    features, offsets, order, labels, strength, chain, shrunk, threshold, free, memory, sparse
):
    """Visit all sequences in the given order.

    Parameters are those of `dual_free_epoch`; ``memory.transition`` of shape (n_sequences, nnz) has
    the listed transitions only.

    Returns
    -------
    safe : bool
        False if the weights got so large that sums could underflow; the pass has ended then.
    """
    length, n_labels = longest(offsets, 0, offsets.shape[0] - 1), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    marginals = np.empty((length, n_labels))
    scale = np.empty(length)
    expected = np.empty((1, sparse.score.shape[0]))
    for visit in range(order.shape[0]):
        i = order[visit]
        a, b = offsets[i], offsets[i + 1]
        prefetch_visit(features, offsets, order, visit + 1, memory)
        if a == b:
            continue
        gold = labels[a:b]
        read_scores(shrunk.transition, sparse)
        shift, default, linear, linear_t, forbids, safe = sparse_factors(sparse)
        if not safe:
            return False
        tables = SparseFactors(shift, default, linear, linear_t, forbids)
        chain_scores(features, shrunk, 1.0, a, b, scores)
        gold_score = path_score(scores, b - a, shrunk.transition, gold)
        expected[:] = 0.0
        log_z = sparse_forward_backward(
            scores, b - a, shrunk.transition, sparse, tables, marginals, scale, 1.0, expected[0]
        )
        memory.loss[i] = log_z - gold_score
        subtract_listed_gold(gold, sparse, tables, marginals, expected[0])
        kept = memory.transition[i : i + 1]
        share = step_share(features, a, b, i, gold, marginals, expected, kept, strength[i], memory)
        move_towards(marginals[: b - a], memory.node[a:b], share, -strength[i])
        move_towards(expected, kept, share, -strength[i])
        add_state_gradient(features, marginals, n_labels, a, b, chain.weights)
        add_free_listed(marginals[: b - a], expected[0], sparse, chain, free)
        if threshold > 0.0:
            shrink_states(features, n_labels, a, b, chain.weights, threshold, shrunk.weights)
            shrink_listed(chain, sparse, threshold, shrunk)
    return True


@lean_jit
def subtract_listed_gold(gold, sparse, tables, marginals, expected):
    """Finish the marginals of listed transitions, and subtract the gold labels and transitions."""
    for k in range(expected.shape[0]):
        expected[k] *= tables.linear[k]
    for t in range(gold.shape[0]):
        marginals[t, gold[t]] -= 1.0
        if t > 0:
            for k in range(sparse.indptr[gold[t - 1]], sparse.indptr[gold[t - 1] + 1]):
                if sparse.into[k] == gold[t]:
                    expected[k] -= 1.0


@lean_jit
def add_free_listed(node, transition, sparse, chain, free):
    """Add changes to the free biases and transitions."""
    n_labels = node.shape[1]
    for t in range(node.shape[0]):
        for j in range(n_labels):
            chain.intercept[j] += free.intercept[j] * node[t, j]
    for j in range(n_labels):
        chain.start[j] += free.start[j] * node[0, j]
        chain.end[j] += free.end[j] * node[node.shape[0] - 1, j]
    for i in range(n_labels):
        for k in range(sparse.indptr[i], sparse.indptr[i + 1]):
            j = sparse.into[k]
            if free.transition[i, j] > 0.0:
                chain.transition[i, j] += transition[k]


@lean_jit
def shrink_listed(chain, sparse, threshold, out):
    """Shrink biases and listed transitions."""
    shrink_biases(chain, threshold, out)
    for i in range(chain.intercept.shape[0]):
        for k in range(sparse.indptr[i], sparse.indptr[i + 1]):
            j = sparse.into[k]
            out.transition[i, j] = shrink(chain.transition[i, j], threshold)
