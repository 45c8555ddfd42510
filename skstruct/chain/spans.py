"""Probabilities of spans: that exactly these tokens are a chunk of this type, and no longer one.

Whether a token opens a chunk, goes on with one or follows its end depends on its label and on the
one before (`Reading`). So the probability of a span is a sum over paths through the labels of its
type, weighted with the forward vector before it and the backward vector after it,

    P(a:b, type) = sum_{s, s'} open_a[s] (goes on from a to b - 1)[s, s'] end_{b-1}[s'].

What comes before a label of a chunk either goes on to it or not, so that ``open`` is the forward
vector less what goes on, and ``end`` the backward vector less what goes on: of all transitions only
those between few labels of a type have to be visited. Where a difference would cancel, the sum is
taken term by term.

The sum of all spans of a type from a token on that are at least so long bounds each one's: a
search goes on until this is below the least probability asked for. Spans with one start exclude
each other, so that there are few.
"""

from typing import NamedTuple

import numpy as np

# Members for the weights of each kind have to be there before these loops are compiled.
from skstruct.chain import dense, listed, per_token, second_order  # noqa: F401
from skstruct.chain.forward_backward import log_forward, scaled_forward
from skstruct.chain.listed import CANCELLED
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
from skstruct.compiled.jit import inline_jit, inner_jit, inner_lean_jit, jit, lean_jit


class Reading(NamedTuple):
    """Labels read as parts of chunks.

    Of the matrices (n_labels + 1, n_labels + 1), item ``[i, j]`` is about label j after label i.
    The last row and column stand for no token.
    """

    kinds: np.ndarray  # (n_labels,) number of the type of chunk, -1 outside of chunks
    opens: np.ndarray  # label j begins a chunk
    goes_on: np.ndarray  # label j goes on with the chunk of label i
    closes: np.ndarray  # the chunk of label i ends before label j


class Paths(NamedTuple):
    """Steps inside of chunks: the states of each type at a token, and those they go on from."""

    first: np.ndarray  # (n_types + 1,), first of the states of each type
    state: np.ndarray  # (n,), states, sorted by type
    source_first: np.ndarray  # (n_states + 1,), first of the sources of each state
    source: np.ndarray  # states of the token before with whose chunk the state goes on


class Task(NamedTuple):
    """What to look for, and how labels are read."""

    reading: Reading
    can_open: np.ndarray  # (n_labels,), False if no transition into a label opens a chunk
    can_close: np.ndarray  # (n_labels,), False if no transition from a label closes its chunk
    separable: np.ndarray  # (n_types,), False if a chunk cannot follow one of its type at once
    least: float  # probability that spans exceed
    thresholds: np.ndarray  # (n,), rising; spans are chosen for each. If empty, all are returned.


class Choice(NamedTuple):
    """Sets of spans that do not overlap, up to each token; the first axis is of thresholds.

    Of the spans that end before a token, the last axis has the best one, and the best one of
    another type: a chunk of some types cannot follow one of the same type at once.
    """

    best: np.ndarray  # (n, length + 1), largest sum of ``probability - threshold`` up to a token
    other: np.ndarray  # the same, without a last span of the type of the best one
    total: np.ndarray  # (n, length + 1, 2), sum up to a span, with it
    start: np.ndarray
    kind: np.ndarray
    probability: np.ndarray


class Vectors(NamedTuple):
    """Forward and backward vectors of all states of a sequence."""

    linear: bool  # False if sums are taken in the log domain
    states: np.ndarray  # (length, n_states), factors of states; their scores in the log domain
    alpha: np.ndarray  # forward vectors; marginals in the log domain
    beta: np.ndarray  # backward vectors; logarithms of backward sums in the log domain


@jit
def paths_inside(edges, reading, n_types, t):
    """List the states at token ``t`` by type of chunk, and those they go on from: `Paths`."""
    n = width(edges, t)
    first, state, m = np.zeros(n_types + 1, np.int64), np.empty(n, np.int64), 0
    for kind in range(n_types):
        for s in range(n):
            if reading.kinds[label_of(edges, t, s)] == kind:
                state[m] = s
                m += 1
        first[kind + 1] = m
    source_first, source, m = np.zeros(n + 1, np.int64), np.empty(0, np.int64), 0
    if t > 0:
        for _ in range(2):
            # The first pass counts.
            fills, source, m = m > 0, np.empty(m, np.int64), 0
            for s in range(n):
                label, (a, b) = label_of(edges, t, s), sources(edges, t, s)
                for i in range(a, b):
                    if reading.goes_on[label_of(edges, t - 1, i), label]:
                        if fills:
                            source[m] = i
                        m += 1
                source_first[s + 1] = m
    return first, state, source_first, source


@jit
def find_spans(rows, offsets, first, last, chain, factors, task, paths, log_partition):
    """Find spans of a range of sequences that are more probable than ``task.least``.

    Parameters
    ----------
    task : Task
    paths : tuple of Paths
        Those of the first, the second and all later tokens.
    log_partition : ndarray of shape (n_sequences,)
        Receives the logarithms of the partition functions.

    Returns
    -------
    places : ndarray of shape (n_spans, 5)
        Number of the threshold, sequence, first token, end, and number of the type of each span;
        sequence by sequence and threshold by threshold, with the starts in order.
    probabilities : ndarray of shape (n_spans,)
    """
    length, n_labels = longest(offsets, first, last), chain.intercept.shape[0]
    scores, marginals = np.empty((length, n_labels)), np.empty((length, n_labels))
    factors = factors_for(chain, factors, length)
    # The type that it has later: a constant in a tuple has another one.
    places, probabilities, n = np.empty((16, 5), np.int64), np.empty(16), np.int64(0)
    choice = no_choice(task.thresholds.shape[0], length)
    for i in range(first, last):
        a, b = offsets[i], offsets[i + 1]
        log_partition[i] = 0.0
        if a == b:
            continue
        sequence_scores(rows, a, b, chain, scores)
        score_edges(chain, rows, a, b, factors.edges)
        log_z, vectors = both_ways(scores[: b - a], factors, marginals[: b - a])
        log_partition[i] = log_z
        if log_z > -np.inf:
            found = places, probabilities, n
            found = search_sequence(factors, vectors, task, paths, i, choice, found)
            places, probabilities, n = trace(choice, task.separable, i, b - a, found)
    return places[:n].copy(), probabilities[:n].copy()


@inner_jit
def search_sequence(factors, vectors, task, paths, i, choice, found):
    """Append the probable spans of a sequence to those found, or choose among them."""
    (places, probabilities, n), least = found, task.least
    (length, n_states), n_types = vectors.states.shape, task.separable.shape[0]
    at_end = ends(factors, vectors, task, paths)
    open_, inside, rest = np.empty(n_states), np.empty((2, n_states)), np.empty(n_types)
    for t in range(length):
        settle(choice, t)
        begin(factors, vectors, task, paths[min(t, 2)], t, open_)
        rest_of_types(vectors, paths[min(t, 2)], t, open_, rest)
        for kind in range(n_types):
            if not rest[kind] > least:
                continue
            enter(paths[min(t, 2)], kind, open_, inside[0])
            end, left = t, rest[kind]
            while left > least:
                p = mass_at_end(paths[min(end, 2)], kind, at_end[end], inside[0])
                if p > least and task.thresholds.shape[0]:
                    push(choice, task, t, end + 1, kind, p)
                elif p > least:
                    if n == places.shape[0]:
                        places, probabilities = grown(places, probabilities)
                    write(places, n, 0, i, t, end + 1, kind)
                    probabilities[n] = p
                    n += 1
                end += 1
                if end == length:
                    break
                left = extend(factors, vectors, paths[min(end, 2)], end, kind, inside)
    settle(choice, length)
    return places, probabilities, n


@inline_jit
def both_ways(scores, factors, marginals):
    """Forward and backward vectors of all states of a sequence.

    Returns
    -------
    log_z : float
    vectors : Vectors
        In the linear domain scaled, so that ``alpha[t, s] * beta[t, s]`` is a marginal; in the log
        domain `step` gives the probability of a state after another.
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
            return log_z, Vectors(True, states, alpha, beta)
    log_z = log_both_ways(states, length, factors, alpha, beta)
    return log_z, Vectors(False, states, alpha, beta)


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
def step(factors, vectors, t, i, s):
    """Factor of the step from state ``i`` into state ``s`` of token ``t``."""
    if vectors.linear:
        return factor(factors, t, i, s) * vectors.states[t, s]
    beta = vectors.beta
    if beta[t - 1, i] == -np.inf:
        return 0.0
    after = vectors.states[t, s] + beta[t, s] - beta[t - 1, i]
    return np.exp(score(factors.edges, t, i, s) + after)


@lean_jit
def behind(vectors, t, s):
    """Factor of all that follows a state."""
    return vectors.beta[t, s] if vectors.linear else 1.0


@inner_jit
def ends(factors, vectors, task, paths):
    """Factor of all that follows a state that ends its chunk, (length, n_states)."""
    edges, (length, n) = factors.edges, vectors.states.shape
    at_end, none = np.zeros((length, n)), task.reading.closes.shape[1] - 1
    for s in range(width(edges, length - 1)):
        label = label_of(edges, length - 1, s)
        at_end[length - 1, s] = task.reading.closes[label, none]
    for t in range(1, length):
        if vectors.linear:
            leave(factors, vectors, task, paths[min(t, 2)], t, at_end[t - 1])
        else:
            leave_in_logs(factors, vectors, task.reading, t, at_end[t - 1])
    return at_end


@inner_lean_jit
def leave(factors, vectors, task, paths, t, out):
    """Write the backward vector of the states of token ``t - 1``, less all that goes on inside."""
    edges, reading = factors.edges, task.reading
    for s in range(width(edges, t)):
        for m in range(paths.source_first[s], paths.source_first[s + 1]):
            i = paths.source[m]
            out[i] -= step(factors, vectors, t, i, s) * vectors.beta[t, s]
    for i in range(width(edges, t - 1)):
        label, total = label_of(edges, t - 1, i), vectors.beta[t - 1, i]
        out[i] += total
        if reading.kinds[label] < 0 or not task.can_close[label]:
            out[i] = 0.0
        elif out[i] < CANCELLED * total:
            out[i] = 0.0
            for s in range(width(edges, t)):
                first, last = sources(edges, t, s)
                if first <= i < last and reading.closes[label, label_of(edges, t, s)]:
                    out[i] += step(factors, vectors, t, i, s) * vectors.beta[t, s]


@inner_lean_jit
def leave_in_logs(factors, vectors, reading, t, out):
    """Add up what ends the chunks of the states of token ``t - 1``, term by term."""
    edges = factors.edges
    for s in range(width(edges, t)):
        label, (first, last) = label_of(edges, t, s), sources(edges, t, s)
        for i in range(first, last):
            if reading.closes[label_of(edges, t - 1, i), label]:
                out[i] += step(factors, vectors, t, i, s)


@inner_lean_jit
def begin(factors, vectors, task, paths, t, open_):
    """Write the forward vector of the states in which a chunk begins at token ``t``."""
    edges, reading, alpha = factors.edges, task.reading, vectors.alpha
    none = reading.opens.shape[0] - 1
    for s in range(width(edges, t)):
        label, open_[s] = label_of(edges, t, s), 0.0
        if t == 0:
            open_[s] = alpha[t, s] if reading.opens[none, label] else 0.0
            continue
        if reading.kinds[label] < 0 or not task.can_open[label]:
            continue
        if vectors.linear:
            open_[s] = alpha[t, s]
            for m in range(paths.source_first[s], paths.source_first[s + 1]):
                i = paths.source[m]
                open_[s] -= alpha[t - 1, i] * step(factors, vectors, t, i, s)
        if not vectors.linear or open_[s] < CANCELLED * alpha[t, s]:
            open_[s], (first, last) = 0.0, sources(edges, t, s)
            for i in range(first, last):
                if reading.opens[label_of(edges, t - 1, i), label]:
                    open_[s] += alpha[t - 1, i] * step(factors, vectors, t, i, s)


@inner_lean_jit
def rest_of_types(vectors, paths, t, open_, rest):
    """Write the probability that a chunk of each type begins at token ``t``."""
    for kind in range(rest.shape[0]):
        rest[kind] = 0.0
        for m in range(paths.first[kind], paths.first[kind + 1]):
            s = paths.state[m]
            rest[kind] += open_[s] * behind(vectors, t, s) if open_[s] > 0.0 else 0.0


@inner_lean_jit
def enter(paths, kind, open_, inside):
    """Copy the states of a type."""
    for m in range(paths.first[kind], paths.first[kind + 1]):
        inside[paths.state[m]] = open_[paths.state[m]]


@inner_lean_jit
def extend(factors, vectors, paths, t, kind, inside):
    """Extend open chunks of a type to token ``t``; return the probability of all of them.

    The first row of ``inside`` is replaced.
    """
    rest = 0.0
    for m in range(paths.first[kind], paths.first[kind + 1]):
        s, total = paths.state[m], 0.0
        for k in range(paths.source_first[s], paths.source_first[s + 1]):
            i = paths.source[k]
            if inside[0, i] > 0.0:
                total += inside[0, i] * step(factors, vectors, t, i, s)
        inside[1, s] = total
        rest += total * behind(vectors, t, s) if total > 0.0 else 0.0
    for m in range(paths.first[kind], paths.first[kind + 1]):
        inside[0, paths.state[m]] = inside[1, paths.state[m]]
    return rest


@inner_lean_jit
def mass_at_end(paths, kind, at_end, inside):
    """Probability that the open chunks of a type end here."""
    total = 0.0
    for m in range(paths.first[kind], paths.first[kind + 1]):
        s = paths.state[m]
        total += inside[s] * at_end[s] if inside[s] > 0.0 else 0.0
    return total


@inner_jit
def grown(places, probabilities):
    """Copies of both arrays, twice as long."""
    n = places.shape[0]
    more, more_probabilities = np.empty((2 * n + 1024, 5), np.int64), np.empty(2 * n + 1024)
    for m in range(n):
        for column in range(5):
            more[m, column] = places[m, column]
        more_probabilities[m] = probabilities[m]
    return more, more_probabilities


@inner_lean_jit
def write(places, n, number, sequence, start, end, kind):
    """Write the place of a span into row ``n``."""
    places[n, 0], places[n, 1] = number, sequence
    places[n, 2], places[n, 3], places[n, 4] = start, end, kind


# --------------------------------------------------------------------------------------- the choice


@inner_jit
def no_choice(n_thresholds, length):
    """Workspace for sequences of up to a length."""
    shape = n_thresholds, length + 1, 2
    best, other = np.empty(shape[:2]), np.empty(shape[:2])
    start, kind = np.empty(shape, np.int32), np.empty(shape, np.int32)
    total = np.full(shape, -np.inf)
    return Choice(best, other, total, start, kind, np.empty(shape))


@inner_lean_jit
def settle(choice, t):
    """Add up the best spans that end by token ``t``; all that start before have been pushed."""
    for n in range(choice.best.shape[0]):
        high = choice.best[n, t - 1] if t > 0 else 0.0
        choice.best[n, t] = max(high, choice.total[n, t, 0])
        choice.other[n, t] = max(high, choice.total[n, t, 1])


@inner_lean_jit
def runs_on(choice, separable, n, t, kind):
    """True if the best spans up to token ``t`` end with one that a chunk would be one with."""
    if separable[kind] or t == 0 or choice.kind[n, t, 0] != kind:
        return False
    return choice.total[n, t, 0] > choice.best[n, t - 1]


@inner_lean_jit
def push(choice, task, start, end, kind, p):
    """Take a span into the sets of all thresholds that it exceeds; of equal ones, the last."""
    for n in range(task.thresholds.shape[0]):
        if not p > task.thresholds[n]:
            break
        before = choice.best[n, start]
        if runs_on(choice, task.separable, n, start, kind):
            before = choice.other[n, start]
        total, place = before + p - task.thresholds[n], 1
        if total >= choice.total[n, end, 0]:
            if choice.kind[n, end, 0] != kind:
                put(choice, n, end, 1, choice.total[n, end, 0], choice.start[n, end, 0],
                    choice.kind[n, end, 0], choice.probability[n, end, 0])  # fmt: skip
            place = 0
        elif kind == choice.kind[n, end, 0] or total < choice.total[n, end, 1]:
            continue
        put(choice, n, end, place, total, start, kind, p)


@inner_lean_jit
def put(choice, n, end, place, total, start, kind, p):
    """Write a span that ends at a token."""
    choice.total[n, end, place], choice.probability[n, end, place] = total, p
    choice.start[n, end, place], choice.kind[n, end, place] = start, kind


@inner_jit
def trace(choice, separable, i, length, found):
    """Append the chosen spans of a sequence to those found; clear the workspace."""
    places, probabilities, n = found
    for number in range(choice.best.shape[0]):
        t, place, first = length, 0, n
        while t > 0:
            if not choice.total[number, t, place] > choice.best[number, t - 1]:
                t, place = t - 1, 0
                continue
            if n == places.shape[0]:
                places, probabilities = grown(places, probabilities)
            start, kind = choice.start[number, t, place], choice.kind[number, t, place]
            p = choice.probability[number, t, place]
            write(places, n, number, i, start, t, kind)
            probabilities[n] = p
            place, t = np.int64(runs_on(choice, separable, number, start, kind)), start
            n += 1
        turn_round(places, probabilities, first, n)
        for t in range(length + 1):
            choice.total[number, t, 0] = choice.total[number, t, 1] = -np.inf
    return places, probabilities, n


@inner_lean_jit
def turn_round(places, probabilities, first, last):
    """Turn round the order of some spans."""
    for k in range((last - first) // 2):
        a, b = first + k, last - 1 - k
        for column in range(5):
            places[a, column], places[b, column] = places[b, column], places[a, column]
        probabilities[a], probabilities[b] = probabilities[b], probabilities[a]
