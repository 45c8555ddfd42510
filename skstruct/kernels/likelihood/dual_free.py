"""Coordinate ascent in the dual of a CRF without dual values: the start of L-BFGS.

The method is SDCA without duality (Shalev-Shwartz, 2016), with an estimated step size.

The weights are conjugate to the stored marginals of all sequences, ``w = sum_i s_i (F(gold) - E_i
F) / l2``, as in `skstruct.kernels.dual.sdca`. A visit moves the marginals of one sequence towards
those of the current weights. The step size is estimated rather than searched for: were the dual
objective a parabola on the way, with the slope ``a`` at 0 and ``-b`` at 1, its maximum would be at
``a / (a + b)``. The share ``b`` of the weights is computed as if no two tokens had a feature in
common. The share ``a`` of the entropy is summed over tokens, which overestimates it where tokens
depend on each other. Therefore the steps of a sequence become shorter when its marginals are
further from those of the weights than at its last visit.

With an L1 penalty the conjugate vector is shrunk: each weight is its entry moved towards zero by
``l1 / l2``, and zero where it is smaller (proximal SDCA; Shalev-Shwartz and Zhang, 2014).

Marginals are stored in single precision, as differences from the gold labels. The vector is
updated by the rounded differences, so it stays conjugate to the last bit.
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.forward_backward import (
    as_slabs,
    finish_transition_marginals,
    forward_backward,
)
from skstruct.kernels.chain.scores import (
    N_PLAIN,
    longest,
    path_score,
    transition_buffer,
    zero_transitions,
)
from skstruct.kernels.chain.transitions import prepare_transitions
from skstruct.kernels.likelihood.objective import (
    chain_scores,
    chain_transition_scores,
    subtract_gold,
)
from skstruct.kernels.likelihood.parameters import StateFeatures, add_state_gradient, last_bit
from skstruct.kernels.vector.prefetch import LINE, prefetch
from skstruct.kernels.vector.sums import squared_distance

# Number of fields of tokens without features of transitions.
N_STATE = len(StateFeatures._fields)
# Factors of the share of the estimated step after a step that was too long, and after others.
CAUTION = 0.8
CONFIDENCE = 1.05
LEAST_SHARE = 0.05
# Most numbers to prefetch of an array: 8 kB, a part of the innermost cache.
MOST_PREFETCHED = 2048
# Lower bound of sums of probabilities in denominators.
SMALLEST = 1e-12


class Memory(NamedTuple):
    """State of the sequences at their last visit, all zero before the first."""

    node: np.ndarray  # (n_rows, n_labels) float32, marginals less one for the gold label
    # The same of transitions, float32: (n_sequences, n_labels**2), summed over each sequence, or
    # (n_rows, n_labels**2) where transitions have features.
    transition: np.ndarray
    divergence: np.ndarray  # (n_sequences,), of the stored marginals from those of the weights
    loss: np.ndarray  # (n_sequences,), negative log-likelihood
    caution: np.ndarray  # (n_sequences,), one minus the share of the estimated step


@jit
def dual_free_epoch(
    features, offsets, order, labels, strength, chain, shrunk, threshold, free, memory
):
    """Visit all sequences in the given order.

    Parameters
    ----------
    features : StateFeatures
        The tokens.
    strength : ndarray of shape (n_sequences,)
        Weights of the sequences, divided by ``l2``.
    chain : Chain
        The conjugate vector, changed; ``chain.weights`` is the part of the state weights.
    shrunk : Chain
        The weights, changed: `chain` itself if `threshold` is zero, otherwise its entries shrunk.
    threshold : float
        ``l1 / l2``.
    free : Chain
        One for biases and transitions that may change, zero for others. All entries of
        ``weights`` change, including those that are no weights of the model.
    memory : Memory
        Changed.
    """
    length, n_labels = longest(offsets, 0, offsets.shape[0] - 1), chain.transition.shape[0]
    scores = np.empty((length, n_labels))
    marginals = np.empty((length, n_labels))
    scale = np.empty(length)
    transitions = prepare_transitions(transition_buffer(chain, length))
    difference = zero_transitions(chain, length)
    slabs = as_slabs(difference)
    flat = slabs.reshape((slabs.shape[0], n_labels * n_labels))
    for visit in range(order.shape[0]):
        i = order[visit]
        a, b = offsets[i], offsets[i + 1]
        prefetch_visit(features, offsets, order, visit + 1, memory)
        if a == b:
            continue
        gold = labels[a:b]
        chain_scores(features, shrunk, 1.0, a, b, scores)
        if len(chain) == N_PLAIN:
            transitions = prepare_transitions(shrunk.transition)
        else:
            chain_transition_scores(features, shrunk, 1.0, a, b, transitions.log)
        gold_score = path_score(scores, b - a, transitions.log, gold)
        log_z = forward_backward(scores, b - a, transitions, marginals, scale, 1.0, slabs)
        memory.loss[i] = log_z - gold_score
        if len(chain) == N_PLAIN:
            finish_transition_marginals(slabs, transitions)
            found, kept = flat, memory.transition[i : i + 1]
        else:
            found, kept = flat[: b - a - 1], memory.transition[a + 1 : b]
        subtract_gold(marginals, gold, 1.0, difference)
        share = step_share(features, a, b, i, gold, marginals, found, kept, strength[i], memory)
        move_towards(marginals[: b - a], memory.node[a:b], share, -strength[i])
        move_towards(found, kept, share, -strength[i])
        add_state_gradient(features, marginals, n_labels, a, b, chain.weights)
        if len(chain) > N_PLAIN:
            add_state_gradient(
                features.transitions, found, n_labels * n_labels, a + 1, b, chain.transition_weights
            )
        add_free(marginals[: b - a], found, chain, free)
        if threshold > 0.0:
            shrink_states(features, n_labels, a, b, chain.weights, threshold, shrunk.weights)
            if len(chain) > N_PLAIN:
                where = n_labels * n_labels, a + 1, b
                vectors = chain.transition_weights, threshold, shrunk.transition_weights
                shrink_states(features.transitions, *where, *vectors)
            shrink_biases(chain, threshold, shrunk)
            shrink_transitions(chain.transition, threshold, shrunk.transition)
        clear(flat)


@lean_jit
def prefetch_visit(features, offsets, order, visit, memory):
    """Prefetch what a visit will read: its sequence may be anywhere in memory."""
    if visit >= order.shape[0]:
        return
    i = order[visit]
    a, b = offsets[i], offsets[i + 1]
    prefetch_part(features.places, features.indptr[a], features.indptr[b])
    prefetch_part(memory.node, a * memory.node.shape[1], b * memory.node.shape[1])
    # Where transitions have features, they are remembered by token.
    first, last = (a, b) if len(features) > N_STATE else (i, i + 1)
    n_transitions = memory.transition.shape[1]
    prefetch_part(memory.transition, first * n_transitions, last * n_transitions)


@lean_jit
def prefetch_part(array, first, last):
    """Prefetch a slice of a flat array of 4-byte numbers, or its beginning if it is long."""
    for p in range(first, min(last, first + MOST_PREFETCHED), 2 * LINE):
        prefetch(array, p)


@lean_jit
def shrink(value, threshold):
    """Move a number towards zero; minus infinity stays."""
    return np.copysign(max(abs(value) - threshold, 0.0), value)


@lean_jit
def shrink_states(features, n_labels, first, last, vector, threshold, out):
    """Shrink the rows of all features of some tokens."""
    final = last_bit(features.labels)
    for k in range(features.indptr[first], features.indptr[last]):
        p = features.places[k]
        if p >= features.full_from:
            for j in range(p, p + n_labels):
                out[j] = shrink(vector[j], threshold)
        else:
            code = 0
            while code < final:
                code = np.int64(features.labels[p])
                out[p] = shrink(vector[p], threshold)
                p += 1


@lean_jit
def shrink_biases(chain, threshold, out):
    """Shrink the biases."""
    for j in range(chain.intercept.shape[0]):
        out.intercept[j] = shrink(chain.intercept[j], threshold)
        out.start[j] = shrink(chain.start[j], threshold)
        out.end[j] = shrink(chain.end[j], threshold)


@lean_jit
def shrink_transitions(transition, threshold, out):
    """Shrink a matrix of transitions."""
    for y in range(transition.shape[0]):
        for j in range(transition.shape[1]):
            out[y, j] = shrink(transition[y, j], threshold)


@lean_jit
def clear(slabs):
    """Set the slabs of transitions to zero."""
    for t in range(slabs.shape[0]):
        for p in range(slabs.shape[1]):
            slabs[t, p] = 0.0


@lean_jit
def step_share(features, a, b, i, gold, node, transition, kept, strength, memory):
    """Step size from the stored marginals of sequence ``i`` to the new ones."""
    curvature, square = 0.0, 0.0
    for t in range(b - a):
        token = 1.0 + squared_feature_norm(features, a + t)
        bent, moved = divergence_and_distance(node[t], memory.node[a + t], gold[t])
        curvature += bent
        square += token * moved
    for t in range(transition.shape[0]):
        token = 1.0
        if len(features) > N_STATE:
            token += squared_feature_norm(features.transitions, a + 1 + t)
        square += token * squared_distance(transition[t], kept[t])
    if curvature > memory.divergence[i] > 0.0:
        memory.caution[i] = min(1.0 - CAUTION * (1.0 - memory.caution[i]), 1.0 - LEAST_SHARE)
    else:
        memory.caution[i] = max(1.0 - CONFIDENCE * (1.0 - memory.caution[i]), 0.0)
    memory.divergence[i] = curvature
    if not curvature > 0.0:
        return 0.0
    return (1.0 - memory.caution[i]) * curvature / (curvature + strength * square)


@lean_jit
def squared_feature_norm(features, t):
    """Squared norm of the features of a token."""
    a, b = features.indptr[t], features.indptr[t + 1]
    if features.data.shape[0] == 0:
        return np.float64(b - a)
    total = 0.0
    for k in range(a, b):
        total += features.data[k] * features.data[k]
    return total


@lean_jit
def divergence_and_distance(found, kept, gold):
    """Divergence and squared distance of two distributions, given as differences from gold.

    The divergence is a quadratic approximation of the sum of both relative entropies.
    """
    divergence, square = 0.0, 0.0
    for j in range(found.shape[0]):
        both = abs(found[j]) + abs(np.float64(kept[j]))
        both = 2.0 - both if j == gold else both
        x = found[j] - kept[j]
        divergence += 2.0 * x * x / max(both, SMALLEST)
        square += x * x
    return divergence, square


@lean_jit
def move_towards(found, kept, share, factor):
    """Move ``kept`` towards ``found``, which becomes the change times a factor."""
    for t in range(found.shape[0]):
        for j in range(found.shape[1]):
            old = np.float64(kept[t, j])
            kept[t, j] = np.float32(old + share * (found[t, j] - old))
            found[t, j] = factor * (kept[t, j] - old)


@lean_jit
def add_free(node, transition, chain, free):
    """Add changes to the free biases and transitions."""
    n_labels = node.shape[1]
    for t in range(node.shape[0]):
        for j in range(n_labels):
            chain.intercept[j] += free.intercept[j] * node[t, j]
    for j in range(n_labels):
        chain.start[j] += free.start[j] * node[0, j]
        chain.end[j] += free.end[j] * node[node.shape[0] - 1, j]
    for t in range(transition.shape[0]):
        for y in range(n_labels):
            for j in range(n_labels):
                change = free.transition[y, j] * transition[t, y * n_labels + j]
                chain.transition[y, j] += change
