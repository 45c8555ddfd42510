"""Chains whose transitions depend on the two labels before: label `j` after `i` after `h`.

A state is a pair of labels, ``j * n_labels + i`` for label ``j`` after label ``i``; at the first
token it is the label. In this order ties are broken as everywhere. A step is one of a dense chain
for each label in the middle: ``n_labels ** 3`` operations, in rows that are contiguous.
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.protocol import (
    add_edge,
    add_shift,
    best_source,
    chain_factors,
    collect,
    edges_of,
    factor,
    factors_of,
    finish,
    forbidding,
    have_states,
    label_of,
    most_sources,
    n_states,
    n_steps,
    pending,
    prepare,
    room_max,
    room_sum,
    row_into,
    score,
    sources,
    state_of,
    step_back,
    step_max,
    step_number,
    step_sum,
    width,
    zero_counts,
)
from skstruct.chain.ties import first_largest_sum
from skstruct.kernels._jit import jit
from skstruct.kernels.vector.rows import add_outer, max_plus, vector_matrix
from skstruct.kernels.vector.tables import tabulate


class SecondOrderChain(NamedTuple):
    """Weights of a chain of second order."""

    weights: np.ndarray  # (n_features, n_labels)
    transition: np.ndarray  # (n_labels, n_labels), from row to column, at all tokens but the first
    intercept: np.ndarray  # (n_labels,)
    start: np.ndarray  # (n_labels,)
    end: np.ndarray  # (n_labels,)
    triple: np.ndarray  # (n_labels ** 2, n_labels), from a pair, row by row, to a label


class SecondOrder(NamedTuple):
    """Scores of transitions; those into the second token depend on one label only."""

    first: np.ndarray  # (n_labels, n_labels), into the second token, from row to column
    log: np.ndarray  # (n_labels, n_labels, n_labels), label in the middle, first and last label


class PairFactors(NamedTuple):
    """Their exponentials."""

    edges: SecondOrder
    shift: np.ndarray  # (n_labels, n_labels), largest score after each label into each label
    linear: np.ndarray  # exp(log - shift)
    linear_t: np.ndarray  # with first and last label exchanged
    safe: bool
    forbids: bool


class PairCounts(NamedTuple):
    """Counts of transitions, in the shapes of the scores."""

    first: np.ndarray
    log: np.ndarray


# ----------------------------------------------------------------------------------- states, scores


@edges_of.of(SecondOrderChain)
def pair_edges(chain, length):
    """Edges of a model."""
    k = chain.transition.shape[0]
    log = np.empty((k, k, k))
    for h in range(k):
        for i in range(k):
            for j in range(k):
                log[i, h, j] = chain.transition[i, j] + chain.triple[h * k + i, j]
    return SecondOrder(chain.transition.copy(), log)


@width.of(SecondOrder)
def pair_width(edges, t):
    """Number of pairs, or of labels at the first token."""
    k = edges.first.shape[0]
    return k * k if t > 0 else k


@n_states.of(SecondOrder)
def pair_n_states(edges, length):
    """Number of pairs, whatever the length."""
    return edges.first.shape[0] * edges.first.shape[0]


@sources.of(SecondOrder)
def pair_sources(edges, t, s):
    """Pairs that end with the first label of the pair."""
    k = edges.first.shape[0]
    i = s % k
    return (i * k, i * k + k) if t > 1 else (i, i + 1)


@score.of(SecondOrder)
def pair_score(edges, t, i, s):
    """Score of three labels, or of the first two."""
    k = edges.first.shape[0]
    return edges.log[s % k, i % k, s // k] if t > 1 else edges.first[s % k, s // k]


have_states(SecondOrder)


@label_of.of(SecondOrder)
def pair_label_of(edges, t, s):
    """Second label of the pair."""
    return s // edges.first.shape[0] if t > 0 else s


@state_of.of(SecondOrder)
def pair_state_of(edges, labels, t):
    """Pair of a label and the one before."""
    return labels[t] * edges.first.shape[0] + labels[t - 1] if t > 0 else labels[t]


# ------------------------------------------------------------------------------------------- maxima


@row_into.of(SecondOrder)
def pair_row_into(edges, t, s, out):
    """Write a column of the matrix of a label."""
    k = edges.first.shape[0]
    i, j = s % k, s // k
    if t == 1:
        out[0] = edges.first[i, j]
        return
    for h in range(k):
        out[h] = edges.log[i, h, j]


@room_max.of(SecondOrder)
def pair_room_max(edges, length):
    """A row of labels."""
    return np.empty(edges.first.shape[0])


@step_max.of(SecondOrder)
def pair_step_max(edges, room, t, previous, out):
    """A dense step for each label in the middle."""
    k = room.shape[0]
    for i in range(k):
        if t == 1:
            for j in range(k):
                out[j * k + i] = previous[i] + edges.first[i, j]
        else:
            max_plus(previous[i * k : i * k + k], edges.log[i], room)
            for j in range(k):
                out[j * k + i] = room[j]


@best_source.of(SecondOrder)
def pair_best_source(edges, t, prefix, s, row):
    """First of the best pairs."""
    k = edges.first.shape[0]
    i = s % k
    if t == 1:
        return i
    return i * k + first_largest_sum(prefix[i * k : i * k + k], edges.log[i, :, s // k])


@most_sources.of(SecondOrder)
def pair_most_sources(edges, length):
    """Number of labels."""
    return edges.first.shape[0]


@n_steps.of(SecondOrder)
def pair_n_steps(edges, length):
    """One for each pair, and again for those of the second token."""
    return 2 * n_states(edges, length)


@step_number.of(SecondOrder)
def pair_step_number(edges, length, t, s):
    """The pair, or its number among those of the second token."""
    return s if t > 1 else n_states(edges, length) + s


# --------------------------------------------------------------------------------------------- sums


@jit
def tabulate_triples(first, log):
    """Fields of `PairFactors` but for the edges."""
    k = first.shape[0]
    shift, linear, linear_t = np.empty((k, k)), np.empty((k, k, k)), np.empty((k, k, k))
    safe, forbids = True, False
    for i in range(k):
        one, forbidding_one = tabulate(log[i], shift[i], linear[i], linear_t[i])
        safe &= one
        forbids |= forbidding_one
        for j in range(k):
            forbids |= first[i, j] == -np.inf
    return shift, linear, linear_t, safe, forbids


@factors_of.of(SecondOrder)
def pair_factors(edges, length):
    """Factors, tabulated once for all sequences."""
    shift, linear, linear_t, safe, forbids = tabulate_triples(edges.first, edges.log)
    return PairFactors(edges, shift, linear, linear_t, safe, forbids)


@chain_factors.register(SecondOrderChain)
def pair_chain_factors(chain):
    """Factors of a model."""
    k = len(chain.transition)
    triple = chain.triple.reshape(k, k, k)
    log = np.ascontiguousarray((chain.transition + triple).swapaxes(0, 1))
    edges = SecondOrder(chain.transition.copy(), log)
    return PairFactors(edges, *tabulate_triples(edges.first, edges.log))


@prepare.of(PairFactors)
def pair_prepare(factors, length):
    """What was found when they were tabulated."""
    return factors.safe, factors.forbids


@forbidding.of(PairFactors)
def pair_forbidding(factors):
    """The same factors."""
    edges, shift, linear, linear_t = factors[:4]
    return PairFactors(edges, shift, linear, linear_t, factors.safe, True)


@factor.of(PairFactors)
def pair_factor(factors, t, i, s):
    """Item of the table; one into the second token, whose finite scores are in the shift."""
    k = factors.shift.shape[0]
    if t > 1:
        return factors.linear[s % k, i % k, s // k]
    return 1.0 if factors.edges.first[s % k, s // k] > -np.inf else 0.0


@add_shift.of(PairFactors)
def pair_add_shift(factors, t, row):
    """Add the largest score into each pair, which has a single source at the second token."""
    k = factors.shift.shape[0]
    for i in range(k):
        for j in range(k):
            row[j * k + i] += factors.shift[i, j] if t > 1 else factors.edges.first[i, j]


@room_sum.of(PairFactors)
def pair_room_sum(factors, n):
    """One row more, of labels."""
    return np.empty((3, n))


@step_sum.of(PairFactors)
def pair_step_sum(factors, room, t, previous, out):
    """A dense step for each label in the middle."""
    k = factors.shift.shape[0]
    y = room[2, :k]
    for i in range(k):
        if t == 1:
            for j in range(k):
                out[j * k + i] = previous[i]
        else:
            vector_matrix(previous[i * k : i * k + k], factors.linear[i], y)
            for j in range(k):
                out[j * k + i] = y[j]


@step_back.of(PairFactors)
def pair_step_back(factors, room, t, q, out):
    """Do the same backwards."""
    k = factors.shift.shape[0]
    y = room[2, :k]
    for i in range(k):
        total = 0.0
        for j in range(k):
            y[j] = q[j * k + i]
            total += y[j]
        if t == 1:
            out[i] = total
        else:
            vector_matrix(y, factors.linear_t[i], out[i * k : i * k + k])


# ------------------------------------------------------------------------------------------- counts


@zero_counts.of(SecondOrder)
def pair_zero_counts(edges, length):
    """Arrays of the shapes of the scores."""
    return PairCounts(np.zeros(edges.first.shape), np.zeros(edges.log.shape))


@add_edge.of(SecondOrder)
def pair_add_edge(edges, counts, t, i, s, weight):
    """Add to an item of either."""
    k = edges.first.shape[0]
    if t > 1:
        counts.log[s % k, i % k, s // k] += weight
    else:
        counts.first[s % k, s // k] += weight


@collect.of(PairFactors)
def pair_collect(factors, room, t, weight, alpha, q, counts):
    """Add an outer product for each label in the middle, without the factor."""
    k = factors.shift.shape[0]
    y = room[2, :k]
    for i in range(k):
        for j in range(k):
            y[j] = q[j * k + i]
            if t == 1:
                counts.first[i, j] += weight * alpha[i] * y[j]
        if t > 1:
            add_outer(weight, alpha[i * k : i * k + k], y, counts.log[i])


@pending.of(PairFactors)
def pair_pending(factors, t, i, s):
    """The factor, where sums were safe."""
    return factor(factors, t, i, s) if factors.safe else 1.0


@finish.of(PairFactors)
def pair_finish(factors, counts):
    """Multiply by the factors, where sums were safe."""
    if factors.safe:
        for i in range(counts.log.shape[0]):
            for h in range(counts.log.shape[1]):
                for j in range(counts.log.shape[2]):
                    counts.log[i, h, j] *= factors.linear[i, h, j]
