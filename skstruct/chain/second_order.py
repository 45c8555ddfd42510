"""Chains whose transitions depend on the two labels before: label `j` after `i` after `h`.

A state is a pair of labels; at the first token it is the label. Pairs that a constraint forbids are
no states, and triples with such a pair have no scores. States are in the order of their second
label, then of their first: ties are broken as everywhere. A step is one of a dense chain for each
label in the middle, with a matrix from the pairs that end with it to those that begin with it: at
most ``n_labels ** 3`` operations, in rows that are contiguous.
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
    max_buffer,
    most_sources,
    n_states,
    n_steps,
    pending,
    prepare,
    row_into,
    score,
    sources,
    state_of,
    step_back,
    step_max,
    step_number,
    step_sum,
    sum_buffer,
    width,
    zero_counts,
)
from skstruct.chain.ties import first_largest_sum
from skstruct.compiled.jit import inline_jit, inline_lean_jit, inner_jit, inner_lean_jit, jit
from skstruct.compiled.rows import add_outer, max_plus, vector_matrix
from skstruct.compiled.tables import tabulate

# All pairs that begin with a label can be lost at once, with the pairs that end with it, and go on
# to others. So what underflows has three steps to make up for it: 3 * 200 is less than 708, beyond
# which factors underflow. Where scores differ by more, sequences are searched for tiny items.
MAX_SPREAD_OF_PAIRS = 200.0


class SecondOrderChain(NamedTuple):
    """Weights of a chain of second order."""

    weights: np.ndarray  # (n_features, n_labels)
    transition: np.ndarray  # (n_labels, n_labels), from row to column, at all tokens but the first
    intercept: np.ndarray  # (n_labels,)
    start: np.ndarray  # (n_labels,)
    end: np.ndarray  # (n_labels,)
    triple: np.ndarray  # (n_labels ** 2, n_labels), from a pair, row by row, to a label

    order, of_features, may_list, per_token = 2, ("weights",), False, False

    @staticmethod
    def more_shapes(n_labels, n_transition_features):
        """Shapes of the fields after the first five, by their names."""
        return {"triple": (n_labels**2, n_labels)}

    @staticmethod
    def n_more(transition):
        """Number of transition scores beyond the matrix, given the allowed transitions."""
        return count_triples(transition)


class Pairs(NamedTuple):
    """Pairs of labels that may follow each other, sorted by their second label, and triples.

    For each label in the middle, triples are the items of a matrix: from the pairs that end with
    it, row by row, to those that begin with it.
    """

    before: np.ndarray  # (n_pairs,), first label
    label: np.ndarray  # (n_pairs,), second label
    ending: np.ndarray  # (n_labels + 1,), first pair that ends with each label
    beginning: np.ndarray  # (n_labels + 1,), the same where pairs are sorted by their first label
    order: np.ndarray  # (n_pairs,), pairs so sorted
    place: np.ndarray  # (n_pairs,), place of each pair among those that begin with the same label
    matrix: np.ndarray  # (n_labels + 1,), first of the triples with each label in the middle
    last: np.ndarray  # (n_triples,), place of the last two labels of each in a matrix of pairs
    triple: np.ndarray  # (n_triples,), place of all three in `SecondOrderChain.triple`


class SecondOrder(NamedTuple):
    """Transition scores of pairs of labels; those into the second token depend on one label."""

    first: np.ndarray  # (n_labels, n_labels), into the second token, from row to column
    log: np.ndarray  # (n_triples,), of the triples
    pairs: Pairs


class PairFactors(NamedTuple):
    """Exponentials of the transition scores."""

    edges: SecondOrder
    shift: np.ndarray  # (n_pairs,), largest score into each pair
    linear: np.ndarray  # (n_triples,), exp(log - shift)
    linear_t: np.ndarray  # (n_triples,), the same with the matrices transposed
    safe: bool
    forbids: bool  # a tiny item may be all that is left


class PairCounts(NamedTuple):
    """Counts of transitions, in the shapes of the scores."""

    first: np.ndarray
    log: np.ndarray
    both: np.ndarray  # both of them, one after the other


# -------------------------------------------------------------------------------------------- pairs


@inner_jit
def allowed_pairs(transition):
    """Pairs that a matrix of scores allows, and at least one pair into each label.

    So all ranges of sources have an item, even where no labelling is possible.
    """
    k = transition.shape[0]
    allowed = np.zeros((k, k), np.bool_)
    for j in range(k):
        found = False
        for i in range(k):
            allowed[i, j] = transition[i, j] != -np.inf
            found |= allowed[i, j]
        allowed[0, j] |= not found
    return allowed


@inner_jit
def bounds_of_pairs(allowed):
    """Compute the fields ``ending``, ``beginning`` and ``matrix`` of `Pairs`."""
    k = allowed.shape[0]
    ending, beginning = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)
    matrix = np.zeros(k + 1, np.int64)
    for i in range(k):
        into = out = 0
        for j in range(k):
            into += allowed[j, i]
            out += allowed[i, j]
        ending[i + 1] = ending[i] + into
        beginning[i + 1] = beginning[i] + out
        matrix[i + 1] = matrix[i] + into * out
    return ending, beginning, matrix


@jit
def count_triples(transition):
    """Number of triples whose two pairs are allowed."""
    return bounds_of_pairs(allowed_pairs(transition))[2][-1]


@jit
def list_pairs(transition):
    """Compute the fields of `Pairs` that a matrix of scores allows."""
    k, allowed = transition.shape[0], allowed_pairs(transition)
    ending, beginning, matrix = bounds_of_pairs(allowed)
    n = ending[k]
    before, label = np.empty(n, np.int64), np.empty(n, np.int64)
    order, place = np.empty(n, np.int64), np.empty(n, np.int64)
    fill, s = beginning.copy(), 0
    for j in range(k):
        for i in range(k):
            if allowed[i, j]:
                before[s], label[s] = i, j
                order[fill[i]], place[s] = s, fill[i] - beginning[i]
                fill[i] += 1
                s += 1
    last, triple = np.empty(matrix[k], np.int64), np.empty(matrix[k], np.int64)
    q = 0
    for i in range(k):
        for p in range(ending[i], ending[i + 1]):
            for r in range(beginning[i], beginning[i + 1]):
                last[q] = i * k + label[order[r]]
                triple[q] = before[p] * k * k + last[q]
                q += 1
    return before, label, ending, beginning, order, place, matrix, last, triple


@inline_lean_jit
def pair_number(pairs, i, j):
    """Number of a pair; -1 if it is forbidden."""
    first, last = pairs.ending[j], pairs.ending[j + 1]
    while first < last:
        middle = (first + last) // 2
        if pairs.before[middle] < i:
            first = middle + 1
        else:
            last = middle
    return first if first < pairs.ending[j + 1] and pairs.before[first] == i else -1


@inline_jit
def matrix_of(pairs, triples, i):
    """Matrix of the triples with label ``i`` in the middle, as a view."""
    n, m = pairs.ending[i + 1] - pairs.ending[i], pairs.beginning[i + 1] - pairs.beginning[i]
    return triples[pairs.matrix[i] : pairs.matrix[i + 1]].reshape((n, m))


@inline_jit
def transposed_of(pairs, triples, i):
    """Transposed matrix of the triples with label ``i`` in the middle, as a view."""
    n, m = pairs.ending[i + 1] - pairs.ending[i], pairs.beginning[i + 1] - pairs.beginning[i]
    return triples[pairs.matrix[i] : pairs.matrix[i + 1]].reshape((m, n))


@inner_lean_jit
def triple_number(pairs, p, s):
    """Number of the triple of pair ``p`` and pair ``s``, which begins with the label ``p`` ends."""
    i = pairs.before[s]
    n = pairs.beginning[i + 1] - pairs.beginning[i]
    return pairs.matrix[i] + (p - pairs.ending[i]) * n + pairs.place[s]


@inner_lean_jit
def score_triples(pairs, transition, triple, scale, first, log):
    """Write the scores of all transitions, from weights times a scale."""
    of_pairs, weights = first.reshape(first.size), triple.reshape(triple.size)
    for i in range(first.shape[0]):
        for j in range(first.shape[1]):
            first[i, j] = scale * transition[i, j]
    for q in range(log.shape[0]):
        log[q] = of_pairs[pairs.last[q]] + scale * weights[pairs.triple[q]]


# ----------------------------------------------------------------------------------- states, scores


@edges_of.of(SecondOrderChain)
def pair_edges(chain, length):
    """Transition scores of a model."""
    pairs = Pairs(*list_pairs(chain.transition))
    edges = SecondOrder(np.empty(chain.transition.shape), np.empty(pairs.last.shape[0]), pairs)
    score_triples(pairs, chain.transition, chain.triple, 1.0, edges.first, edges.log)
    return edges


@width.of(SecondOrder)
def pair_width(edges, t):
    """Number of pairs; at the first token, number of labels."""
    return edges.pairs.label.shape[0] if t > 0 else edges.first.shape[0]


@n_states.of(SecondOrder)
def pair_n_states(edges, length):
    """Number of pairs, of which there are at least as many as labels."""
    return edges.pairs.label.shape[0]


@sources.of(SecondOrder)
def pair_sources(edges, t, s):
    """The range of pairs that end with the first label of the pair."""
    i = edges.pairs.before[s]
    return (edges.pairs.ending[i], edges.pairs.ending[i + 1]) if t > 1 else (i, i + 1)


@score.of(SecondOrder)
def pair_score(edges, t, i, s):
    """Score of three labels, or of the first two; minus infinity for a forbidden pair."""
    if i < 0 or s < 0:
        return -np.inf
    if t == 1:
        return edges.first[i, edges.pairs.label[s]]
    return edges.log[triple_number(edges.pairs, i, s)]


have_states(SecondOrder)


@label_of.of(SecondOrder)
def pair_label_of(edges, t, s):
    """Second label of the pair."""
    return edges.pairs.label[s] if t > 0 else s


@state_of.of(SecondOrder)
def pair_state_of(edges, labels, t):
    """Pair of a label and the one before; -1 if it is forbidden."""
    return pair_number(edges.pairs, labels[t - 1], labels[t]) if t > 0 else labels[t]


# ------------------------------------------------------------------------------------------- maxima


@row_into.of(SecondOrder)
def pair_row_into(edges, t, s, out):
    """Write a column of the matrix of the label in the middle."""
    pairs = edges.pairs
    i = pairs.before[s]
    if t == 1:
        out[0] = edges.first[i, pairs.label[s]]
        return
    scores, c = matrix_of(pairs, edges.log, i), pairs.place[s]
    for r in range(scores.shape[0]):
        out[r] = scores[r, c]


@max_buffer.of(SecondOrder)
def pair_max_buffer(edges, length):
    """Workspace for a row of labels."""
    return np.empty(edges.first.shape[0])


@step_max.of(SecondOrder)
def pair_step_max(edges, buffer, t, previous, out):
    """Dense step for each label in the middle."""
    pairs = edges.pairs
    if t == 1:
        for s in range(pairs.label.shape[0]):
            i = pairs.before[s]
            out[s] = previous[i] + edges.first[i, pairs.label[s]]
        return
    for i in range(edges.first.shape[0]):
        first, scores = pairs.beginning[i], matrix_of(pairs, edges.log, i)
        y = buffer[: scores.shape[1]]
        max_plus(previous[pairs.ending[i] : pairs.ending[i + 1]], scores, y)
        for c in range(y.shape[0]):
            out[pairs.order[first + c]] = y[c]


@best_source.of(SecondOrder)
def pair_best_source(edges, t, prefix, s, row):
    """First pair with the largest sum."""
    pairs = edges.pairs
    i = pairs.before[s]
    if t == 1:
        return i
    first, last = pairs.ending[i], pairs.ending[i + 1]
    column = matrix_of(pairs, edges.log, i)[:, pairs.place[s]]
    return first + first_largest_sum(prefix[first:last], column)


@most_sources.of(SecondOrder)
def pair_most_sources(edges, length):
    """Number of labels."""
    return edges.first.shape[0]


@n_steps.of(SecondOrder)
def pair_n_steps(edges, length):
    """Number of pairs, twice: at the second token, pairs have rows of their own."""
    return 2 * n_states(edges, length)


@step_number.of(SecondOrder)
def pair_step_number(edges, length, t, s):
    """Number of the pair; at the second token, after all others."""
    return s if t > 1 else n_states(edges, length) + s


# --------------------------------------------------------------------------------------------- sums


@jit
def tabulate_triples(first, log, pairs):
    """Compute the fields of `PairFactors`, except the edges."""
    n = pairs.label.shape[0]
    shift, sorted_shift, low = np.empty(n), np.empty(n), np.empty(n)
    linear, linear_t = np.empty(log.shape), np.empty(log.shape)
    safe, forbids = True, False
    for i in range(first.shape[0]):
        a, b = pairs.beginning[i], pairs.beginning[i + 1]
        one, forbidding_one = tabulate(
            matrix_of(pairs, log, i),
            sorted_shift[a:b],
            low[a:b],
            matrix_of(pairs, linear, i),
            transposed_of(pairs, linear_t, i),
        )
        safe &= one
        forbids |= forbidding_one
        for p in range(a, b):
            shift[pairs.order[p]] = sorted_shift[p]
    forbids |= differ_widely(first, pairs, sorted_shift, low)
    return shift, linear, linear_t, safe, forbids


@inner_lean_jit
def differ_widely(first, pairs, high, low):
    """Return True if scores into a label differ by more than `MAX_SPREAD_OF_PAIRS`.

    ``high`` and ``low`` belong to the triples into each pair, in the order of first labels.
    Forbidden pairs differ widely from all others.
    """
    k = first.shape[0]
    for j in range(k):
        top, bottom = -np.inf, np.inf
        for s in range(pairs.ending[j], pairs.ending[j + 1]):
            p = pairs.beginning[pairs.before[s]] + pairs.place[s]
            top, bottom = max(top, high[p]), min(bottom, low[p])
        least, most = first[0, j], first[0, j]
        for i in range(1, k):
            least, most = min(least, first[i, j]), max(most, first[i, j])
        spread = max(top - bottom, most - least)
        if not spread <= MAX_SPREAD_OF_PAIRS:
            return True
    return False


@factors_of.of(SecondOrder)
def pair_factors(edges, length):
    """Factors, tabulated once for all sequences."""
    tables = tabulate_triples(edges.first, edges.log, edges.pairs)
    shift, linear, linear_t, safe, forbids = tables
    return PairFactors(edges, shift, linear, linear_t, safe, forbids)


@jit
def read_pairs(transition, triple):
    """Compute the scores of all transitions, and the fields of `Pairs`."""
    found = list_pairs(transition)
    pairs = Pairs(*found)
    first, log = np.empty(transition.shape), np.empty(pairs.last.shape[0])
    score_triples(pairs, transition, triple, 1.0, first, log)
    return first, log, found


@chain_factors.register(SecondOrderChain)
def pair_chain_factors(chain):
    """Factors of a model."""
    first, log, pairs = read_pairs(chain.transition, chain.triple)
    edges = SecondOrder(first, log, Pairs(*pairs))
    return PairFactors(edges, *tabulate_triples(*edges))


@prepare.of(PairFactors)
def pair_prepare(factors, length):
    """Flags ``safe`` and ``forbids`` of the tables."""
    return factors.safe, factors.forbids


@forbidding.of(PairFactors)
def pair_forbidding(factors):
    """Factors with the flag ``forbids`` set."""
    edges, shift, linear, linear_t = factors[:4]
    return PairFactors(edges, shift, linear, linear_t, factors.safe, True)


@factor.of(PairFactors)
def pair_factor(factors, t, i, s):
    """Entry of the table; one at the second token, where the shift has the finite scores."""
    if t > 1:
        return factors.linear[triple_number(factors.edges.pairs, i, s)]
    return 1.0 if score(factors.edges, t, i, s) > -np.inf else 0.0


@add_shift.of(PairFactors)
def pair_add_shift(factors, t, row):
    """Add the largest score into each pair, which has one source at the second token."""
    first, pairs = factors.edges.first, factors.edges.pairs
    for s in range(pairs.label.shape[0]):
        row[s] += factors.shift[s] if t > 1 else first[pairs.before[s], pairs.label[s]]


@sum_buffer.of(PairFactors)
def pair_sum_buffer(factors, n):
    """Workspace with another row, for labels."""
    return np.empty((3, n))


@step_sum.of(PairFactors)
def pair_step_sum(factors, buffer, t, previous, out):
    """Dense step forward for each label in the middle."""
    pairs = factors.edges.pairs
    if t == 1:
        for s in range(pairs.label.shape[0]):
            out[s] = previous[pairs.before[s]]
        return
    for i in range(factors.edges.first.shape[0]):
        first, table = pairs.beginning[i], matrix_of(pairs, factors.linear, i)
        y = buffer[2, : table.shape[1]]
        vector_matrix(previous[pairs.ending[i] : pairs.ending[i + 1]], table, y)
        for c in range(y.shape[0]):
            out[pairs.order[first + c]] = y[c]


@step_back.of(PairFactors)
def pair_step_back(factors, buffer, t, q, out):
    """Dense step backward for each label in the middle."""
    pairs = factors.edges.pairs
    for i in range(factors.edges.first.shape[0]):
        first, table = pairs.beginning[i], transposed_of(pairs, factors.linear_t, i)
        y, total = buffer[2, : table.shape[0]], 0.0
        for c in range(y.shape[0]):
            y[c] = q[pairs.order[first + c]]
            total += y[c]
        if t == 1:
            out[i] = total
        else:
            vector_matrix(y, table, out[pairs.ending[i] : pairs.ending[i + 1]])


# ------------------------------------------------------------------------------------------- counts


@zero_counts.of(SecondOrder)
def pair_zero_counts(edges, length):
    """Zero arrays in the shapes of the scores; triples are not counted as pairs."""
    n = edges.first.size
    both = np.zeros(n + edges.log.shape[0])
    return PairCounts(both[:n].reshape(edges.first.shape), both[n:], both)


@inner_lean_jit
def add_to_pairs(pairs, counts):
    """Add the count of each triple to the count of its last two labels."""
    of_pairs = counts.first.reshape(counts.first.size)
    for q in range(counts.log.shape[0]):
        of_pairs[pairs.last[q]] += counts.log[q]


@add_edge.of(SecondOrder)
def pair_add_edge(edges, counts, t, i, s, weight):
    """Add to the count of a pair or triple; forbidden ones are not counted."""
    if i < 0 or s < 0:
        return
    if t > 1:
        counts.log[triple_number(edges.pairs, i, s)] += weight
    else:
        counts.first[i, edges.pairs.label[s]] += weight


@collect.of(PairFactors)
def pair_collect(factors, buffer, t, weight, alpha, q, counts):
    """Add an outer product for each middle label; `finish` multiplies by the factors."""
    pairs = factors.edges.pairs
    if t == 1:
        for s in range(pairs.label.shape[0]):
            i = pairs.before[s]
            counts.first[i, pairs.label[s]] += weight * alpha[i] * q[s]
        return
    for i in range(factors.edges.first.shape[0]):
        first, out = pairs.beginning[i], matrix_of(pairs, counts.log, i)
        y = buffer[2, : out.shape[1]]
        for c in range(y.shape[0]):
            y[c] = q[pairs.order[first + c]]
        add_outer(weight, alpha[pairs.ending[i] : pairs.ending[i + 1]], y, out)


@pending.of(PairFactors)
def pair_pending(factors, t, i, s):
    """Factor of the transition, if sums are in the linear domain."""
    return factor(factors, t, i, s) if factors.safe else 1.0


@finish.of(PairFactors)
def pair_finish(factors, counts):
    """Multiply the counts by the factors, if sums are in the linear domain."""
    if factors.safe:
        for p in range(counts.log.shape[0]):
            counts.log[p] *= factors.linear[p]
