"""Chains whose tokens have transition scores of their own, from features of the transitions."""

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
    factors_for,
    factors_of,
    forbidding,
    max_buffer,
    n_states,
    prepare,
    score,
    score_edges,
    sources,
    step_back,
    step_max,
    step_sum,
    width,
    zero_counts,
)
from skstruct.chain.scores import linear_scores
from skstruct.chain.ties import first_largest_sum
from skstruct.compiled.rows import max_plus, vector_matrix
from skstruct.compiled.tables import tabulate


class TransitionChain(NamedTuple):
    """Weights of a linear chain with features of transitions."""

    weights: np.ndarray
    transition: np.ndarray
    intercept: np.ndarray
    start: np.ndarray
    end: np.ndarray
    transition_weights: np.ndarray  # (n_transition_features, n_labels ** 2), transitions row by row

    order, of_features, may_list, per_token = 1, ("weights", "transition_weights"), False, True

    @staticmethod
    def more_shapes(n_labels, n_transition_features):
        """Shapes of the fields after the first five, by their names."""
        return {"transition_weights": (n_transition_features, n_labels**2)}

    @staticmethod
    def n_more(transition):
        """Number of transition scores beyond the matrix, given the allowed transitions."""
        return 0


class PerToken(NamedTuple):
    """Scores of the transitions into each token; those into the first are unused."""

    log: np.ndarray  # (length, n_labels, n_labels)


class TokenFactors(NamedTuple):
    """Exponentials of the scores of one sequence; counts have the shape of the scores."""

    edges: PerToken
    shift: np.ndarray  # (length, n_labels)
    linear: np.ndarray
    linear_t: np.ndarray
    forbids: bool  # some labellings are impossible for other reasons than transitions


@edges_of.of(TransitionChain)
def token_edges(chain, length):
    """Empty scores, which `score_edges` fills in for each sequence."""
    return PerToken(np.zeros((length, *chain.transition.shape)))


@score_edges.of(TransitionChain)
def score_token_edges(chain, rows, first, last, edges):
    """Write linear scores: transitions take the place of labels, their matrix replaces biases."""
    bias = chain.transition.reshape(chain.transition.size)
    scores = edges.log.reshape(edges.log.shape[0], bias.shape[0])
    linear_scores(rows.transitions, first + 1, last, chain.transition_weights, bias, scores[1:])


@width.of(PerToken)
def token_width(edges, t):
    """Number of labels."""
    return edges.log.shape[1]


@n_states.of(PerToken)
def token_n_states(edges, length):
    """Number of labels."""
    return edges.log.shape[1]


@sources.of(PerToken)
def token_sources(edges, t, s):
    """The range of all labels."""
    return 0, edges.log.shape[1]


@score.of(PerToken)
def token_score(edges, t, i, s):
    """Entry of the token's matrix."""
    return edges.log[t, i, s]


@max_buffer.of(PerToken)
def token_max_buffer(edges, length):
    """Empty workspace."""
    return ()


@step_max.of(PerToken)
def token_step_max(edges, buffer, t, previous, out):
    """Maximum over all labels: selecting some would cost as much as it saves."""
    max_plus(previous, edges.log[t], out)


@best_source.of(PerToken)
def token_best_source(edges, t, prefix, s, row):
    """First label with the largest sum."""
    return first_largest_sum(prefix, edges.log[t, :, s])


@factors_of.of(PerToken)
def token_factors(edges, length):
    """Buffers for the factors of a sequence."""
    shift = np.zeros(edges.log.shape[:2])
    linear, linear_t = np.zeros(edges.log.shape), np.zeros(edges.log.shape)
    return TokenFactors(edges, shift, linear, linear_t, False)


@chain_factors.register(TransitionChain)
def token_chain_factors(chain):
    """Empty factors that say whether transitions are forbidden; calls allocate their own."""
    none = np.empty((0, *chain.transition.shape))
    return TokenFactors(PerToken(none), none[:, 0], none, none, False)


@factors_for.of(TransitionChain)
def token_factors_for(chain, factors, length):
    """Buffers for the factors of a sequence of a call."""
    buffer = factors_of(edges_of(chain, length), length)
    return TokenFactors(buffer.edges, buffer.shift, buffer.linear, buffer.linear_t, factors.forbids)


@forbidding.of(TokenFactors)
def token_forbidding(factors):
    """Factors with the flag ``forbids`` set."""
    return TokenFactors(factors.edges, factors.shift, factors.linear, factors.linear_t, True)


@prepare.of(TokenFactors)
def token_prepare(factors, length):
    """Tabulate the factors of the transitions into each token."""
    safe, forbids = True, factors.forbids
    low = np.empty(factors.shift.shape[1])
    for t in range(1, length):
        one, forbidding_one = tabulate(
            factors.edges.log[t], factors.shift[t], low, factors.linear[t], factors.linear_t[t]
        )
        safe &= one
        forbids |= forbidding_one
    return safe, forbids


@factor.of(TokenFactors)
def token_factor(factors, t, i, s):
    """Entry of the token's table of factors."""
    return factors.linear[t, i, s]


@add_shift.of(TokenFactors)
def token_add_shift(factors, t, row):
    """Add the largest score into each label of the token."""
    for j in range(row.shape[0]):
        row[j] += factors.shift[t, j]


@step_sum.of(TokenFactors)
def token_step_sum(factors, buffer, t, previous, out):
    """Vector-matrix product with the token's table of factors."""
    vector_matrix(previous, factors.linear[t], out)


@step_back.of(TokenFactors)
def token_step_back(factors, buffer, t, q, out):
    """Product with the transposed table."""
    vector_matrix(q, factors.linear_t[t], out)


@zero_counts.of(PerToken)
def token_zero_counts(edges, length):
    """Zero matrix for each token."""
    return np.zeros((length, edges.log.shape[1], edges.log.shape[2]))


@add_edge.of(PerToken)
def token_add_edge(edges, counts, t, i, s, weight):
    """Add to an entry of the token's matrix."""
    counts[t, i, s] += weight


@collect.of(TokenFactors)
def token_collect(factors, buffer, t, weight, alpha, q, counts):
    """Add an outer product times the factors, which no two sequences share."""
    for i in range(alpha.shape[0]):
        a = weight * alpha[i]
        for j in range(q.shape[0]):
            counts[t, i, j] += a * q[j] * factors.linear[t, i, j]
