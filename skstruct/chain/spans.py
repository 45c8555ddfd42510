"""Probabilities of spans: that exactly these tokens are a chunk of this type, and no longer one.

Whether a token opens a chunk, goes on with one or follows its end depends on its label and on the
one before (`Reading`). So the probability of a span is a sum over paths through the labels of its
type, weighted with the forward vector before it and the backward vector after it,

    P(a:b, type) = sum_{s, s'} open_a[s] (goes on from a to b - 1)[s, s'] end_{b-1}[s'].

The sum of all spans from a token on that are at least so long bounds that of each: a search goes on
until this is below the least probability asked for. Spans with one start exclude each other, so
that there are few.
"""

from typing import NamedTuple

import numpy as np

# Members for the weights of each kind have to be there before these loops are compiled.
from skstruct.chain import dense, per_token, second_order  # noqa: F401
from skstruct.chain.forward_backward import log_forward, scaled_forward
from skstruct.chain.protocol import (
    alpha_rows,
    factor,
    factors_for,
    label_of,
    prepare,
    score,
    score_edges,
    sources,
    state_rows,
    step_back,
    sum_buffer,
    width,
)
from skstruct.chain.scores import longest, sequence_scores
from skstruct.compiled.jit import inline_jit, inner_lean_jit, jit, lean_jit


class Reading(NamedTuple):
    """Labels read as parts of chunks.

    Of the matrices (n_labels + 1, n_labels + 1), item ``[i, j]`` is about label j after label i.
    The last row and column stand for no token.
    """

    kinds: np.ndarray  # (n_labels,) number of the type of chunk, -1 outside of chunks
    opens: np.ndarray  # label j begins a chunk
    goes_on: np.ndarray  # label j goes on with the chunk of label i
    closes: np.ndarray  # the chunk of label i ends before label j


@jit
def find_spans(rows, offsets, first, last, chain, factors, reading, least, log_partition):
    """Find the spans of a range of sequences that are more probable than ``least``.

    Parameters
    ----------
    reading : Reading
        How labels are read.
    least : float
        From 0 on.
    log_partition : ndarray of shape (n_sequences,)
        Receives the logarithms of the partition functions.

    Returns
    -------
    places : ndarray of shape (n_spans, 4)
        Sequence, first token, end, and number of the type of each span; sequence by sequence, with
        the starts in order.
    probabilities : ndarray of shape (n_spans,)
    """
    length, n_labels = longest(offsets, first, last), chain.intercept.shape[0]
    scores, marginals = np.empty((length, n_labels)), np.empty((length, n_labels))
    factors = factors_for(chain, factors, length)
    places, probabilities = np.empty((16, 4), np.int64), np.empty(16)
    n = 0
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        log_partition[i] = 0.0
        if a == b:
            continue
        sequence_scores(rows, a, b, chain, scores)
        score_edges(chain, rows, a, b, factors.edges)
        log_z, linear, states, alpha, beta = both_ways(scores[: b - a], factors, marginals[: b - a])
        log_partition[i] = log_z
        if log_z == -np.inf:
            continue
        at_end = ends(linear, factors, states, alpha, beta, reading)
        open_, mass = np.empty((2, states.shape[1])), np.zeros(reading.opens.shape[1])
        for t in range(b - a):
            begin(linear, factors, states, alpha, beta, reading, t, open_[0])
            end = t
            while rest(linear, factors, beta, end, open_[0]) > least:
                if n + mass.shape[0] > places.shape[0]:
                    places, probabilities = grown(places, probabilities)
                n = close(factors, reading, at_end, i, t, end, open_[0], mass, least,
                          places, probabilities, n)  # fmt: skip
                end += 1
                if end == b - a:
                    break
                extend(linear, factors, states, beta, reading, end, open_)
    return places[:n].copy(), probabilities[:n].copy()


@inline_jit
def both_ways(scores, factors, marginals):
    """Forward and backward vectors of all states of a sequence.

    Returns
    -------
    log_z : float
    linear : bool
        False if the linear domain is not safe. Then ``alpha`` has marginals, ``beta`` the
        logarithms of backward sums, and `step` gives the probability of a state after another.
    states, alpha, beta : ndarray of shape (length, n_states)
        Factors of states and scaled vectors: ``alpha[t, s] * beta[t, s]`` is a marginal.
    """
    edges, length = factors.edges, scores.shape[0]
    states = state_rows(edges, scores, length)
    alpha = alpha_rows(edges, marginals, length)
    beta, scale = np.ones((length, states.shape[1])), np.empty(length)
    safe, forbids = prepare(factors, length)
    if safe:
        buffer = sum_buffer(factors, states.shape[1])
        log_z, exact = scaled_forward(states, length, factors, forbids, buffer, alpha, scale)
        if exact:
            q = buffer[1]
            for t in range(length - 1, -1, -1):
                for s in range(width(edges, t)):
                    states[t, s] *= scale[t]
                    q[s] = states[t, s] * beta[t, s]
                if t > 0:
                    step_back(factors, buffer, t, q, beta[t - 1])
            return log_z, True, states, alpha, beta
    log_z = log_both_ways(states, length, factors, alpha, beta)
    return log_z, False, states, alpha, beta


@inline_jit
def log_both_ways(states, length, factors, alpha, beta):
    """Write marginals and logarithms of the backward sums; return the log-partition."""
    edges = factors.edges
    log_z = log_forward(states, length, edges, alpha, np.zeros(states.shape[1]))
    for t in range(length - 1, -1, -1):
        for s in range(width(edges, t)):
            if t == length - 1:
                beta[t, s] = 0.0
            alpha[t, s] = np.exp(alpha[t, s] + beta[t, s] - log_z)
        if t > 0:
            log_back(states, t, edges, beta)
    return log_z


@inner_lean_jit
def log_back(states, t, edges, beta):
    """Sum, in the log domain, over all that follows each state of token ``t - 1``."""
    for i in range(width(edges, t - 1)):
        beta[t - 1, i] = -np.inf
    for s in range(width(edges, t)):
        first, last = sources(edges, t, s)
        for i in range(first, last):
            x = score(edges, t, i, s) + states[t, s] + beta[t, s]
            high, low = max(beta[t - 1, i], x), min(beta[t - 1, i], x)
            if high > -np.inf:
                beta[t - 1, i] = high + np.log1p(np.exp(low - high))


@lean_jit
def step(linear, factors, states, beta, t, i, s):
    """Factor of the step from state ``i`` into state ``s`` of token ``t``."""
    if linear:
        return factor(factors, t, i, s) * states[t, s]
    if beta[t - 1, i] == -np.inf:
        return 0.0
    after = states[t, s] + beta[t, s] - beta[t - 1, i]
    return np.exp(score(factors.edges, t, i, s) + after)


@jit
def ends(linear, factors, states, alpha, beta, reading):
    """Factor of all that follows a state that ends its chunk, (length, n_states)."""
    edges, (length, n) = factors.edges, states.shape
    at_end, none = np.zeros((length, n)), reading.closes.shape[1] - 1
    for s in range(width(edges, length - 1)):
        at_end[length - 1, s] = reading.closes[label_of(edges, length - 1, s), none]
    for t in range(1, length):
        for s in range(width(edges, t)):
            label = label_of(edges, t, s)
            behind = beta[t, s] if linear else 1.0
            first, last = sources(edges, t, s)
            for i in range(first, last):
                if reading.closes[label_of(edges, t - 1, i), label]:
                    at_end[t - 1, i] += step(linear, factors, states, beta, t, i, s) * behind
    return at_end


@lean_jit
def begin(linear, factors, states, alpha, beta, reading, t, open_):
    """Write the forward vector of the states in which a chunk begins at token ``t``."""
    edges, none = factors.edges, reading.opens.shape[0] - 1
    for s in range(width(edges, t)):
        label, open_[s] = label_of(edges, t, s), 0.0
        if t == 0:
            open_[s] = alpha[t, s] if reading.opens[none, label] else 0.0
            continue
        if reading.kinds[label] < 0:
            continue
        first, last = sources(edges, t, s)
        for i in range(first, last):
            if reading.opens[label_of(edges, t - 1, i), label]:
                open_[s] += alpha[t - 1, i] * step(linear, factors, states, beta, t, i, s)


@lean_jit
def extend(linear, factors, states, beta, reading, t, open_):
    """Extend open chunks to token ``t``; the first row of ``open_`` is replaced."""
    edges, n = factors.edges, width(factors.edges, t)
    for s in range(n):
        label, open_[1, s] = label_of(edges, t, s), 0.0
        if reading.kinds[label] < 0:
            continue
        first, last = sources(edges, t, s)
        for i in range(first, last):
            if open_[0, i] > 0.0 and reading.goes_on[label_of(edges, t - 1, i), label]:
                open_[1, s] += open_[0, i] * step(linear, factors, states, beta, t, i, s)
    for s in range(n):
        open_[0, s] = open_[1, s]


@lean_jit
def rest(linear, factors, beta, t, open_):
    """Probability of all open chunks at token ``t``, given the vector of their states."""
    total = 0.0
    for s in range(width(factors.edges, t)):
        if open_[s] > 0.0:
            total += open_[s] * (beta[t, s] if linear else 1.0)
    return total


@lean_jit
def close(factors, reading, at_end, i, begin, t, open_, mass, least, places, probabilities, n):
    """Keep the probable spans that end with token ``t``; return the number kept."""
    for kind in range(mass.shape[0]):
        mass[kind] = 0.0
    for s in range(width(factors.edges, t)):
        if open_[s] > 0.0:
            mass[reading.kinds[label_of(factors.edges, t, s)]] += open_[s] * at_end[t, s]
    for kind in range(mass.shape[0]):
        if mass[kind] > least:
            places[n, 0], places[n, 1], places[n, 2], places[n, 3] = i, begin, t + 1, kind
            probabilities[n] = mass[kind]
            n += 1
    return n


@jit
def grown(places, probabilities):
    """Copies of both arrays, twice as long."""
    n = places.shape[0]
    more, more_probabilities = np.empty((2 * n + 1024, 4), np.int64), np.empty(2 * n + 1024)
    for m in range(n):
        for column in range(4):
            more[m, column] = places[m, column]
        more_probabilities[m] = probabilities[m]
    return more, more_probabilities


@jit
def choose_spans(places, probabilities, offsets, threshold, separable):
    """Choose spans that do not overlap, with the largest sum of ``probability - threshold``.

    Parameters
    ----------
    places, probabilities : ndarray
        From `find_spans`.
    offsets : ndarray of shape (n_sequences + 1,)
    threshold : float
    separable : ndarray of shape (n_types,), dtype bool
        False for types of which a chunk cannot follow another one at once.

    Returns
    -------
    chosen : ndarray of shape (n_spans,), dtype bool
    """
    n, length = places.shape[0], longest(offsets, 0, offsets.shape[0] - 1)
    chosen = np.zeros(n, np.bool_)
    # Spans that end at a token, as lists; the sum up to each span, and the span before it.
    last_at, next_at = np.empty(length + 1, np.int64), np.empty(n, np.int64)
    sums, before = np.empty(n), np.empty(n, np.int64)
    # The best sum up to a token and its last span; and the best one that does not end here with a
    # span of that type.
    best, last = np.zeros(length + 1), np.full(length + 1, -1)
    other, last_other = np.zeros(length + 1), np.full(length + 1, -1)
    m = 0
    while m < n:
        sequence, a = places[m, 0], m
        n_tokens = offsets[sequence + 1] - offsets[sequence]
        for t in range(n_tokens + 1):
            last_at[t] = -1
        while m < n and places[m, 0] == sequence:
            next_at[m], last_at[places[m, 2]] = last_at[places[m, 2]], m
            m += 1
        for t in range(1, n_tokens + 1):
            best[t], last[t] = best[t - 1], last[t - 1]
            other[t], last_other[t] = best[t - 1], last[t - 1]
            k = last_at[t]
            while k >= a:
                start, kind = places[k, 1], places[k, 3]
                j = last[start]
                runs_on = j >= 0 and places[j, 2] == start and places[j, 3] == kind
                if runs_on and not separable[kind]:
                    sums[k], before[k] = other[start], last_other[start]
                else:
                    sums[k], before[k] = best[start], j
                sums[k] = sums[k] + probabilities[k] - threshold
                if sums[k] > best[t]:
                    best[t], last[t] = sums[k], k
                k = next_at[k]
            k = last_at[t]
            while k >= a:
                if sums[k] > other[t] and places[k, 3] != places[last[t], 3]:
                    other[t], last_other[t] = sums[k], k
                k = next_at[k]
        k = last[n_tokens]
        while k >= 0:
            chosen[k] = True
            k = before[k]
    return chosen
