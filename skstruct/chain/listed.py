"""Chains whose transition scores are mostly zero or minus infinity: a list of the others.

With many labels, most transitions never occur and have no weight, or are forbidden. A transition
into label ``j`` that is not *listed* has the score ``default[j]``, zero or minus infinity.

The best label before ``j`` is a listed one, or the best of all labels that is not listed for ``j``:
maxima are over all transitions, to the last bit.

With normalised forward probabilities ``a`` and factors ``m``, of which ``m_j`` is that of all
transitions into label ``j`` that are not listed,

    sum_i a[i] m[i, j] = m_j (1 - sum_listed a[i]) + sum_listed a[i] m[i, j].

Where the difference would cancel, the sum is taken term by term: sums are over all transitions
but for rounding.
"""

from functools import singledispatch
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
    max_buffer,
    n_states,
    n_steps,
    pending,
    prepare,
    reached,
    row_into,
    score,
    sources,
    step_back,
    step_max,
    step_number,
    step_sum,
    sum_buffer,
    sum_of,
    width,
    zero_counts,
)
from skstruct.chain.ties import first_largest, next_largest
from skstruct.compiled.jit import inline_jit, inner_lean_jit, jit, lean_jit
from skstruct.compiled.rows import sum_in_lanes
from skstruct.compiled.tables import MAX_SPREAD, exp_nonpositive

# So many of the best labels are tried before all are compared.
MOST_TRIED = 4
# A sum that is smaller than this share of its terms is computed without a difference.
CANCELLED = 1e-5


class Leaving(NamedTuple):
    """Listed transitions in the order of their first label."""

    indptr: np.ndarray  # (n_labels + 1,), first transition from each label
    into: np.ndarray  # (nnz,) int32, second label, in increasing order for each first label
    order: np.ndarray  # (nnz,), place of each transition in this order, sorted by second label


class Listed(NamedTuple):
    """Listed transitions, sorted by their second label."""

    default: np.ndarray  # (n_labels,), score into each label of transitions that are not listed
    indptr: np.ndarray  # (n_labels + 1,), first transition into each label
    origin: np.ndarray  # (nnz,) int32, first label, in increasing order for each second label
    score: np.ndarray  # (nnz,)
    leaving: Leaving

    @property
    def n_scores(self):
        """Number of transitions with a score of their own."""
        return self.score.size


class GrowingList(NamedTuple):
    """Listed transitions to which others can be added; counts are a dense matrix."""

    default: np.ndarray
    indptr: np.ndarray
    origin: np.ndarray  # (n_labels**2,), with space for all
    score: np.ndarray


class ListedChain(NamedTuple):
    """Weights of a linear chain with few weights of transitions."""

    weights: np.ndarray
    transition: np.ndarray
    intercept: np.ndarray
    start: np.ndarray
    end: np.ndarray
    listed: Listed

    order, of_features, may_list = 1, ("weights",), False


class GrowingChain(NamedTuple):
    """Weights of a linear chain while it is learnt, with few transition weights so far."""

    weights: np.ndarray
    transition: np.ndarray
    intercept: np.ndarray
    start: np.ndarray
    end: np.ndarray
    listed: GrowingList
    scale: np.ndarray  # (1,), factor of the weights in the listed scores; NaN at first

    order, of_features, may_list = 1, ("weights",), False


class ListedFactors(NamedTuple):
    """Exponentials of the scores; counts of shape (nnz,) are in the order of `Leaving`."""

    edges: Listed
    shift: np.ndarray  # (n_labels,), largest score into each label
    default: np.ndarray  # (n_labels,), factor of transitions that are not listed
    linear: np.ndarray  # (nnz,), in the order of `Leaving`
    linear_t: np.ndarray  # (nnz,), sorted by second label
    safe: bool
    forbids: bool


# -------------------------------------------------------------------------------------------- lists


@jit
def collect_transitions(transition, wanted, most):
    """List the transitions whose score is not the default.

    Parameters
    ----------
    transition : ndarray of shape (n_labels, n_labels)
        Scores.
    wanted : ndarray of bool of shape (n_labels, n_labels) or (0, 0)
        More transitions to list.
    most : int
        Largest number to list.

    Returns
    -------
    default, indptr, origin, score : ndarray
        First fields of `Listed`; ``indptr`` is empty if there are too many transitions.
    leaving : tuple of ndarray
        Fields of `Leaving`.
    """
    n_labels = transition.shape[0]
    default = common_scores(transition)
    indptr = np.zeros(n_labels + 1, np.int64)
    from_label = np.zeros(n_labels + 1, np.int64)
    for i in range(n_labels):
        from_label[i + 1] = from_label[i]
        for j in range(n_labels):
            listed = is_listed(transition, default, wanted, i, j)
            from_label[i + 1] += listed
            indptr[j + 1] += listed
    nnz = from_label[n_labels]
    if nnz > most:
        nnz, indptr = 0, indptr[:0]
    into, origin = np.empty(nnz, np.int32), np.empty(nnz, np.int32)
    score, order = np.empty(nnz), np.empty(nnz, np.int64)
    if nnz > 0:
        for j in range(n_labels):
            indptr[j + 1] += indptr[j]
        fill = indptr[:n_labels].copy()
        k = 0
        for i in range(n_labels):
            for j in range(n_labels):
                if is_listed(transition, default, wanted, i, j):
                    into[k], score[fill[j]] = j, transition[i, j]
                    origin[fill[j]], order[fill[j]] = i, k
                    fill[j] += 1
                    k += 1
    return default, indptr, origin, score, (from_label, into, order)


@inline_jit
def common_scores(transition):
    """Score into each label that most transitions have: minus infinity if they are forbidden."""
    n_labels = transition.shape[0]
    default, n_forbidden = np.zeros(n_labels), np.zeros(n_labels, np.int64)
    for i in range(n_labels):
        for j in range(n_labels):
            n_forbidden[j] += transition[i, j] == -np.inf
    for j in range(n_labels):
        if 2 * n_forbidden[j] > n_labels:
            default[j] = -np.inf
    return default


@inner_lean_jit
def is_listed(transition, default, wanted, i, j):
    """Return True if a transition has a score of its own."""
    return transition[i, j] != default[j] or (wanted.shape[0] > 0 and wanted[i, j])


@jit
def read_scores(transition, listed, scale):
    """Read the scores of the listed transitions from a matrix, times a scale."""
    for j in range(listed.default.shape[0]):
        for m in range(listed.indptr[j], listed.indptr[j + 1]):
            listed.score[m] = scale * transition[listed.origin[m], j]


@singledispatch
def with_edges(edges, chain):
    """Weights with a list of transitions if the edges are one, else the same."""
    return chain


@with_edges.register(Listed)
def list_chain(listed, chain):
    """Chain with listed transitions, whose scores are read from its matrix into a new array."""
    listed = listed._replace(score=np.empty_like(listed.score))
    read_scores(chain.transition, listed, 1.0)
    return ListedChain(*chain, listed)


@singledispatch
def with_growing_edges(edges, chain):
    """Weights with a list of transitions that can grow if the edges are one, else the same."""
    return chain


@with_growing_edges.register(Listed)
def grow_list(listed, chain):
    """Chain whose list of transitions can grow; scores are read at the first visit.

    Memory for entries that may be added is reserved, but not touched.
    """
    n, n_listed = chain.transition.size, len(listed.origin)
    origin, score = np.empty(n, np.int32), np.empty(n)
    origin[:n_listed], score[:n_listed] = listed.origin, listed.score
    growing = GrowingList(listed.default, listed.indptr, origin, score)
    return GrowingChain(*chain, growing, np.full(1, np.nan))


@inner_lean_jit
def first_at_least(code, codes, first, last):
    """First position in ``codes[first:last]``, which are sorted, of a code that is not smaller."""
    while first < last:
        middle = (first + last) // 2
        if codes[middle] < code:
            first = middle + 1
        else:
            last = middle
    return first


@lean_jit
def list_transition(listed, i, j, score):
    """Set the score of the transition from label ``i`` to label ``j``; list it unless it is."""
    n_labels = listed.default.shape[0]
    place = first_at_least(i, listed.origin, listed.indptr[j], listed.indptr[j + 1])
    if place == listed.indptr[j + 1] or listed.origin[place] != i:
        for m in range(listed.indptr[n_labels], place, -1):
            listed.origin[m], listed.score[m] = listed.origin[m - 1], listed.score[m - 1]
        listed.origin[place] = i
        for k in range(j + 1, n_labels + 1):
            listed.indptr[k] += 1
    listed.score[place] = score


# ------------------------------------------------------------------------------------------- maxima


@edges_of.of(ListedChain, GrowingChain)
def listed_edges(chain, length):
    """The list of transitions."""
    return chain.listed


@width.of(Listed, GrowingList)
def listed_width(edges, t):
    """Number of labels."""
    return edges.default.shape[0]


@n_states.of(Listed, GrowingList)
def listed_n_states(edges, length):
    """Number of labels."""
    return edges.default.shape[0]


@sources.of(Listed, GrowingList)
def listed_sources(edges, t, s):
    """The range of all labels."""
    return 0, edges.default.shape[0]


@score.of(Listed, GrowingList)
def listed_score(edges, t, i, s):
    """Score of a listed transition, or the default."""
    place = first_at_least(i, edges.origin, edges.indptr[s], edges.indptr[s + 1])
    if place < edges.indptr[s + 1] and edges.origin[place] == i:
        return edges.score[place]
    return edges.default[s]


@row_into.of(Listed, GrowingList)
def listed_row_into(edges, t, s, out):
    """Write the default score, then the listed scores over it."""
    for i in range(edges.default.shape[0]):
        out[i] = edges.default[s]
    for m in range(edges.indptr[s], edges.indptr[s + 1]):
        out[edges.origin[m]] = edges.score[m]


@max_buffer.of(Listed, GrowingList)
def listed_max_buffer(edges, length):
    """Workspace: a mark for each label, and a list of the best ones."""
    n_labels = edges.default.shape[0]
    return np.empty(n_labels, np.int64), np.empty(n_labels + 1, np.int64)


@step_max.of(Listed, GrowingList, compiler=inner_lean_jit)
def listed_step_max(edges, buffer, t, previous, out):
    """Maximum over the listed transitions and the best of the others."""
    (mark, best), n_labels, first = buffer, edges.default.shape[0], np.uint64(0)
    best[0], n_best = first_largest(previous, n_labels), 1
    for j in range(n_labels):
        mark[j] = -1
    for j in range(n_labels):
        high, last = -np.inf, np.uint64(edges.indptr[j + 1])
        for m in range(first, last):
            # Of an unsigned index, no code looks whether it counts from the end.
            i = np.uint32(edges.origin[m])
            mark[i] = j
            x = previous[i] + edges.score[m]
            high = x if x > high else high
        if edges.default[j] == 0.0 and last - first < n_labels:
            # The best label that is not listed for j.
            m = 0
            while m < MOST_TRIED and mark[best[m]] == j:
                m += 1
                if m == n_best and m < MOST_TRIED:
                    best[m] = next_largest(previous, best[m - 1])
                    n_best += 1
            if m < MOST_TRIED:
                high = max(high, previous[best[m]])
            else:
                ends = edges.indptr[j], edges.indptr[j + 1]
                high = max(high, best_unlisted(previous, edges.origin, *ends))
        out[j] = high
        first = last


@inner_lean_jit
def best_unlisted(x, listed, first, last):
    """Maximum of the items at positions that are not in ``listed[first:last]``, in order."""
    high, start = -np.inf, 0
    for m in range(first, last + 1):
        end = listed[m] if m < last else x.shape[0]
        for i in range(start, end):
            high = x[i] if x[i] > high else high
        start = end + 1
    return high


@best_source.of(Listed, GrowingList)
def listed_best_source(edges, t, prefix, s, row):
    """First label with the largest sum."""
    label, top, start = 0, -np.inf, 0
    for m in range(edges.indptr[s], edges.indptr[s + 1] + 1):
        listed = m < edges.indptr[s + 1]
        end = edges.origin[m] if listed else edges.default.shape[0]
        if edges.default[s] == 0.0:
            for i in range(start, end):
                if prefix[i] > top:
                    top, label = prefix[i], i
        if listed:
            x = prefix[end] + edges.score[m]
            if x > top:
                top, label = x, end
        start = end + 1
    return label


@n_steps.of(Listed, GrowingList)
def listed_n_steps(edges, length):
    """Number of labels."""
    return edges.default.shape[0]


@step_number.of(Listed, GrowingList)
def listed_step_number(edges, length, t, s):
    """Number of the label."""
    return s


# --------------------------------------------------------------------------------------------- sums


@factors_of.of(Listed)
def listed_factors(edges, length):
    """Factors, tabulated once for all sequences."""
    shift, default, linear, linear_t, safe, forbids = tabulate_list(edges)
    return ListedFactors(edges, shift, default, linear, linear_t, safe, forbids)


@chain_factors.register(ListedChain)
def listed_chain_factors(chain):
    """Factors of a model."""
    return ListedFactors(chain.listed, *tabulate_list(chain.listed))


@jit
def tabulate_list(edges):
    """Compute the fields of `ListedFactors`, except the edges."""
    n_labels, nnz = edges.default.shape[0], edges.score.shape[0]
    shift, default = np.zeros(n_labels), np.zeros(n_labels)
    linear, linear_t = np.empty(nnz), np.empty(nnz)
    forbids, safe = False, True
    for j in range(n_labels):
        first, last = edges.indptr[j], edges.indptr[j + 1]
        high, low = -np.inf, np.inf
        if last - first < n_labels:
            forbids |= edges.default[j] == -np.inf
            if edges.default[j] == 0.0:
                high = low = 0.0
        for m in range(first, last):
            x = edges.score[m]
            safe &= not np.isnan(x)
            forbids |= x == -np.inf
            if x != -np.inf:
                high = x if x > high else high
                low = x if x < low else low
        safe &= not high - low > MAX_SPREAD
        shift[j] = high if high > -np.inf else 0.0
        default[j] = exp_nonpositive(-shift[j]) if edges.default[j] == 0.0 else 0.0
        for m in range(first, last):
            x = edges.score[m]
            linear_t[m] = exp_nonpositive(x - shift[j]) if x > -np.inf else 0.0
            linear[edges.leaving.order[m]] = linear_t[m]
    return shift, default, linear, linear_t, safe, forbids


@prepare.of(ListedFactors)
def listed_prepare(factors, length):
    """Flags ``safe`` and ``forbids`` of the table."""
    return factors.safe, factors.forbids


@forbidding.of(ListedFactors)
def listed_forbidding(factors):
    """Factors with the flag ``forbids`` set."""
    edges, shift, default, linear, linear_t = factors[:5]
    return ListedFactors(edges, shift, default, linear, linear_t, factors.safe, True)


@inner_lean_jit
def place_leaving(edges, i, s):
    """Position of a transition in the order of `Leaving`; -1 if it is not listed."""
    leaving = edges.leaving
    place = first_at_least(s, leaving.into, leaving.indptr[i], leaving.indptr[i + 1])
    return place if place < leaving.indptr[i + 1] and leaving.into[place] == s else -1


@factor.of(ListedFactors)
def listed_factor(factors, t, i, s):
    """Factor of a listed transition, or of all others into the label."""
    place = place_leaving(factors.edges, i, s)
    return factors.linear[place] if place >= 0 else factors.default[s]


@add_shift.of(ListedFactors)
def listed_add_shift(factors, t, row):
    """Add the largest score into each label."""
    for j in range(factors.shift.shape[0]):
        row[j] += factors.shift[j]


@sum_buffer.of(ListedFactors)
def listed_sum_buffer(factors, n):
    """Workspace with two more rows: ones, and terms of a sum."""
    return np.ones((4, n))


@step_sum.of(ListedFactors, compiler=inner_lean_jit)
def listed_step_sum(factors, buffer, t, previous, out):
    """Sum over the listed transitions, plus the remainder of a total of one."""
    edges, first, cancelled = factors.edges, np.uint64(0), False
    for j in range(out.shape[0]):
        last = np.uint64(edges.indptr[j + 1])
        others, listed = 1.0, 0.0
        for m in range(first, last):
            a = previous[np.uint32(edges.origin[m])]
            others -= a
            listed += a * factors.linear_t[m]
        out[j] = factors.default[j] * max(others, 0.0) + listed
        cancelled |= out[j] < CANCELLED * factors.default[j]
        first = last
    if cancelled:
        tables = edges.indptr, edges.origin, factors.linear_t, factors.default
        sum_terms(previous, buffer[2], *tables, CANCELLED, out)


@step_back.of(ListedFactors, compiler=inner_lean_jit)
def listed_step_back(factors, buffer, t, q, out):
    """Sum over the listed transitions, plus the remainder of the total."""
    leaving, shares = factors.edges.leaving, buffer[3]
    for j in range(q.shape[0]):
        shares[j] = factors.default[j] * q[j]
    total, first, cancelled = sum_in_lanes(shares), np.uint64(0), False
    for i in range(out.shape[0]):
        last = np.uint64(leaving.indptr[i + 1])
        others, listed = total, 0.0
        for k in range(first, last):
            j = np.uint32(leaving.into[k])
            others -= shares[j]
            listed += factors.linear[k] * q[j]
        out[i] = max(others, 0.0) + listed
        cancelled |= out[i] < CANCELLED * total
        first = last
    if cancelled:
        tables = leaving.indptr, leaving.into, factors.linear, buffer[2]
        sum_terms(q, factors.default, *tables, CANCELLED * total, out)


@reached.of(ListedFactors)
def listed_reached(factors, t, s, previous):
    """Return True if a label of positive probability may precede label ``s``."""
    edges = factors.edges
    if factors.default[s] > 0.0:
        return True
    for m in range(edges.indptr[s], edges.indptr[s + 1]):
        if previous[edges.origin[m]] > 0.0 and factors.linear_t[m] > 0.0:
            return True
    return False


@sum_of.of(ListedFactors)
def listed_sum_of(factors, row, n):
    """Sum in lanes, since rows are long."""
    return sum_in_lanes(row)


@inner_lean_jit
def sum_unlisted(x, weights, listed, first, last):
    """``sum x[i] weights[i]`` over the positions not in ``listed[first:last]``, in order."""
    total, start = 0.0, 0
    for m in range(first, last + 1):
        end = listed[m] if m < last else x.shape[0]
        for i in range(start, end):
            total += x[i] * weights[i]
        start = end + 1
    return total


@inner_lean_jit
def sum_terms(x, weights, indptr, listed, factors, bases, least, out):
    """Compute sums that cancel, below ``least`` times their base, term by term.

    ``out[j] = bases[j] sum x[i] weights[i] + sum x[i] factors[m]``, where the first sum is over the
    labels ``i`` that are not listed for ``j``, and the second over those that are, at positions
    ``m`` in ``listed``.
    """
    for j in range(out.shape[0]):
        if out[j] < least * bases[j]:
            first, last, total = indptr[j], indptr[j + 1], 0.0
            for m in range(first, last):
                total += x[listed[m]] * factors[m]
            out[j] = bases[j] * sum_unlisted(x, weights, listed, first, last) + total


# ------------------------------------------------------------------------------------------- counts


@zero_counts.of(Listed)
def listed_zero_counts(edges, length):
    """Zero for each listed transition."""
    return np.zeros(edges.score.shape[0])


@zero_counts.of(GrowingList)
def growing_zero_counts(edges, length):
    """Zero matrix (n_labels, n_labels)."""
    return np.zeros((edges.default.shape[0], edges.default.shape[0]))


@add_edge.of(GrowingList)
def growing_add_edge(edges, counts, t, i, s, weight):
    """Add to an entry of the matrix."""
    counts[i, s] += weight


@add_edge.of(Listed)
def listed_add_edge(edges, counts, t, i, s, weight):
    """Add to the count of a transition, if it is listed."""
    place = place_leaving(edges, i, s)
    if place >= 0:
        counts[place] += weight


@collect.of(ListedFactors, compiler=inner_lean_jit)
def listed_collect(factors, buffer, t, weight, alpha, q, counts):
    """Add products for listed transitions; `finish` multiplies them by the factors."""
    leaving = factors.edges.leaving
    for i in range(alpha.shape[0]):
        a = weight * alpha[i]
        for k in range(np.uint64(leaving.indptr[i]), np.uint64(leaving.indptr[i + 1])):
            counts[k] += a * q[np.uint32(leaving.into[k])]


@pending.of(ListedFactors)
def listed_pending(factors, t, i, s):
    """Factor of the transition, if sums are in the linear domain."""
    place = place_leaving(factors.edges, i, s)
    return factors.linear[place] if factors.safe and place >= 0 else 1.0


@finish.of(ListedFactors)
def listed_finish(factors, counts):
    """Multiply the counts by the factors, if sums are in the linear domain."""
    if factors.safe:
        for k in range(counts.shape[0]):
            counts[k] *= factors.linear[k]
