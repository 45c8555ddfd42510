"""Chains whose tokens share one matrix of transition scores."""

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
    score,
    sources,
    step_back,
    step_max,
    step_number,
    step_sum,
    width,
    zero_counts,
)
from skstruct.chain.ties import first_largest_sum
from skstruct.compiled.jit import inline_lean_jit, jit
from skstruct.compiled.rows import add_outer, copy_matrix, largest, max_plus, vector_matrix
from skstruct.compiled.tables import tabulate

# With at most so many labels, comparing all of them is faster than selecting some.
FEW_LABELS = 32


class Chain(NamedTuple):
    """Weights of a linear chain."""

    weights: np.ndarray  # (n_features, n_labels)
    transition: np.ndarray  # (n_labels, n_labels), from row to column
    intercept: np.ndarray  # (n_labels,)
    start: np.ndarray  # (n_labels,), added at the first token
    end: np.ndarray  # (n_labels,), added at the last token

    order, of_features, may_list, per_token = 1, ("weights",), True, False

    @staticmethod
    def more_shapes(n_labels, n_transition_features):
        """Shapes of the fields after the first five, by their names."""
        return {}

    @staticmethod
    def n_more(transition):
        """Number of transition scores beyond the matrix, given the allowed transitions."""
        return 0


class Dense(NamedTuple):
    """Transition scores that all tokens share."""

    log: np.ndarray  # (n_labels, n_labels), from row to column

    @property
    def n_scores(self):
        """Number of transitions with a score of their own."""
        return self.log.size


class DenseFactors(NamedTuple):
    """Exponentials of shared transition scores; counts are summed over all tokens."""

    edges: Dense
    shift: np.ndarray  # (n_labels,), largest score into each label
    linear: np.ndarray  # exp(log - shift)
    linear_t: np.ndarray  # its transpose
    safe: bool  # the linear domain is safe
    forbids: bool  # some labellings are impossible


class CountedByToken(NamedTuple):
    """Transition scores that all tokens share, with a count for each token."""

    log: np.ndarray


class ByTokenFactors(NamedTuple):
    """Exponentials of `CountedByToken`; ``counts[t - 1, i, j]`` leads into token ``t``."""

    edges: CountedByToken
    shift: np.ndarray
    linear: np.ndarray
    linear_t: np.ndarray
    safe: bool
    forbids: bool


# ----------------------------------------------------------------------------------- scores, maxima


@edges_of.of(Chain)
def dense_edges(chain, length):
    """Transition scores of a model."""
    scores = np.empty(chain.transition.shape)
    copy_matrix(chain.transition, scores)
    return Dense(scores)


@width.of(Dense, CountedByToken)
def dense_width(edges, t):
    """Number of labels."""
    return edges.log.shape[0]


@n_states.of(Dense, CountedByToken)
def dense_n_states(edges, length):
    """Number of labels."""
    return edges.log.shape[0]


@sources.of(Dense, CountedByToken)
def dense_sources(edges, t, s):
    """The range of all labels."""
    return 0, edges.log.shape[0]


@score.of(Dense, CountedByToken)
def dense_score(edges, t, i, s):
    """Entry of the transition matrix."""
    return edges.log[i, s]


@max_buffer.of(Dense)
def dense_max_buffer(edges, length):
    """Workspace: the handicap of each label, and a list of labels."""
    k = edges.log.shape[0]
    handicap = np.empty(k)
    if k > FEW_LABELS and length > 1:
        handicaps(edges.log, handicap)
    return handicap, np.empty(k + 1, np.int64)


@step_max.of(Dense)
def dense_step_max(edges, buffer, t, previous, out):
    """Maximum over all labels; with many labels, over those that can be on a best path."""
    if edges.log.shape[0] <= FEW_LABELS:
        max_plus(previous, edges.log, out)
    else:
        n = keep_contenders(previous, buffer[0], buffer[1])
        best_contenders(previous, edges.log, buffer[1][:n], out)


@best_source.of(Dense)
def dense_best_source(edges, t, prefix, s, row):
    """First label with the largest sum."""
    return first_largest_sum(prefix, edges.log[:, s])


@n_steps.of(Dense)
def dense_n_steps(edges, length):
    """Number of labels: a column of the matrix each."""
    return edges.log.shape[0]


@step_number.of(Dense)
def dense_step_number(edges, length, t, s):
    """Number of the label."""
    return s


@inline_lean_jit
def handicaps(transition, out):
    """Largest deficit with which each label can still win at the next token.

    ``out[i]`` is the most that label ``i`` can gain on another label by a transition: the maximum
    over ``j`` of ``transition[i, j] - min_k transition[k, j]``. It is infinite if a transition is
    minus infinity, which keeps every label.
    """
    n_labels = transition.shape[0]
    for i in range(n_labels):
        out[i] = -np.inf
    for j in range(n_labels):
        worst = transition[0, j]
        for i in range(1, n_labels):
            worst = min(worst, transition[i, j])
        for i in range(n_labels):
            if transition[i, j] > -np.inf:
                out[i] = max(out[i], transition[i, j] - worst)


@inline_lean_jit
def keep_contenders(scores, handicap, out):
    """Write the labels that may precede a best one into ``out``; return their number."""
    n_labels = handicap.shape[0]
    top = largest(scores, n_labels)
    # The margin covers the rounding of sums.
    limit = top - 1e-9 * (1.0 + abs(top))
    n = 0
    for i in range(n_labels):
        out[n] = i
        n += not scores[i] + handicap[i] < limit
    return n


@inline_lean_jit
def best_contenders(previous, transition, contenders, out):
    """``out[j] = max_i previous[i] + transition[i, j]`` over the contenders ``i``."""
    for j in range(transition.shape[0]):
        out[j] = -np.inf
    for i in contenders:
        x = previous[i]
        for j in range(transition.shape[0]):
            a = x + transition[i, j]
            out[j] = a if a > out[j] else out[j]


# ------------------------------------------------------------------------------------- sums, counts


@jit
def prepare_transitions(transition):
    """Tabulate the factors of a matrix of transition scores."""
    return factors_of(Dense(transition), 0)


@chain_factors.register(Chain)
def dense_chain_factors(chain):
    """Factors of a model, from a writable copy of its matrix."""
    transition = chain.transition.copy()
    return DenseFactors(Dense(transition), *tabulate_matrix(transition))


@jit
def tabulate_matrix(transition):
    """Compute the fields of `DenseFactors`, except the edges."""
    k = transition.shape[0]
    shift, low, linear, linear_t = np.empty(k), np.empty(k), np.empty((k, k)), np.empty((k, k))
    safe, forbids = tabulate(transition, shift, low, linear, linear_t)
    return shift, linear, linear_t, safe, forbids


@factors_of.of(Dense)
def dense_factors(edges, length):
    """Factors, tabulated once for all sequences."""
    shift, linear, linear_t, safe, forbids = tabulate_matrix(edges.log)
    return DenseFactors(edges, shift, linear, linear_t, safe, forbids)


@prepare.of(DenseFactors, ByTokenFactors)
def dense_prepare(factors, length):
    """Flags ``safe`` and ``forbids`` of the table."""
    return factors.safe, factors.forbids


@forbidding.of(DenseFactors)
def dense_forbidding(factors):
    """Factors with the flag ``forbids`` set."""
    edges, shift, linear, linear_t = factors[:4]
    return DenseFactors(edges, shift, linear, linear_t, factors.safe, True)


@factor.of(DenseFactors, ByTokenFactors)
def dense_factor(factors, t, i, s):
    """Entry of the table of factors."""
    return factors.linear[i, s]


@add_shift.of(DenseFactors, ByTokenFactors)
def dense_add_shift(factors, t, row):
    """Add the largest score into each label."""
    for j in range(factors.shift.shape[0]):
        row[j] += factors.shift[j]


@step_sum.of(DenseFactors, ByTokenFactors)
def dense_step_sum(factors, buffer, t, previous, out):
    """Vector-matrix product with the table of factors."""
    vector_matrix(previous, factors.linear, out)


@step_back.of(DenseFactors, ByTokenFactors)
def dense_step_back(factors, buffer, t, q, out):
    """Product with the transposed table."""
    vector_matrix(q, factors.linear_t, out)


@zero_counts.of(Dense)
def dense_zero_counts(edges, length):
    """Zero matrix (n_labels, n_labels)."""
    return np.zeros(edges.log.shape)


@add_edge.of(Dense)
def dense_add_edge(edges, counts, t, i, s, weight):
    """Add to an entry of the matrix."""
    counts[i, s] += weight


@add_edge.of(CountedByToken)
def add_edge_by_token(edges, counts, t, i, s, weight):
    """Add to an entry of the token's matrix."""
    counts[t - 1, i, s] += weight


@collect.of(DenseFactors)
def dense_collect(factors, buffer, t, weight, alpha, q, counts):
    """Add an outer product; `finish` multiplies it by the factors."""
    add_outer(weight, alpha, q, counts)


@collect.of(ByTokenFactors)
def collect_by_token(factors, buffer, t, weight, alpha, q, counts):
    """Write the marginals of the transitions into one token."""
    for i in range(alpha.shape[0]):
        for j in range(q.shape[0]):
            counts[t - 1, i, j] += weight * alpha[i] * q[j] * factors.linear[i, j]


@pending.of(DenseFactors)
def dense_pending(factors, t, i, s):
    """Factor of the transition, if sums are in the linear domain."""
    return factors.linear[i, s] if factors.safe else 1.0


@finish.of(DenseFactors)
def dense_finish(factors, counts):
    """Multiply the counts by the factors, if sums are in the linear domain."""
    if factors.safe:
        for i in range(counts.shape[0]):
            for j in range(counts.shape[1]):
                counts[i, j] *= factors.linear[i, j]


@jit
def count_by_token(factors):
    """Factors for counts of each transition at each token."""
    edges, shift, linear, linear_t, safe, forbids = factors
    return ByTokenFactors(CountedByToken(edges.log), shift, linear, linear_t, safe, forbids)
