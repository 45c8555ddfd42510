"""Updates in which every weight has a variance: adaptive regularisation of weights, AROW.

The algorithm is that of Crammer, Kulesza and Dredze (2009) with a diagonal covariance, applied to
the difference between the features of the gold labelling and those of the best one. A weight
changes in proportion to its variance, and every change reduces the variance. With variances that
stay at one or zero the same update is the passive-aggressive one, or that of the perceptron, of a
model that has only some of the weights.

The square of a difference is not the sum of the squares at each token. So the epoch first adds up
the differences of a sample, weight by weight, and then changes the weights.
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.chain.family import family
from skstruct.chain.listed import Growing
from skstruct.chain.per_token import PerToken, TransitionChain
from skstruct.chain.protocol import creating, edges_of, width, zero_counts
from skstruct.chain.scores import path_score, value_of
from skstruct.chain.second_order import SecondOrder, SecondOrderChain, add_to_pairs
from skstruct.chain.viterbi import viterbi
from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.online.loop import (
    NORM,
    SCALE,
    TOTAL,
    add_contrast,
    clear_difference,
    count_wrong,
    find_changed_transitions,
    finish_sample,
    longest_sample,
    most_changed,
    sample_scores,
    scaled_edges,
    score_changed,
)
from skstruct.kernels.online.products import claim_slot


class Sums(NamedTuple):
    """Differences of one sample, added up by feature and label (or transition)."""

    values: np.ndarray  # one after the other, feature by feature
    features: np.ndarray  # feature of each row
    labels: np.ndarray  # label of each column
    counts: np.ndarray  # (2,), numbers of rows and of columns


class Room(NamedTuple):
    """Workspace for the differences of one sample."""

    total: Chain  # of transitions, biases and triples; its features are empty
    features: Sums
    transitions: Sums  # of the features of transitions
    codes: np.ndarray  # of listed transitions that change (see `find_changed_transitions`)


# ----------------------------------------------------------------- features, by feature and label


@jit
def room_for_sums(rows, samples, n_codes):
    """Workspace for the sums of any sample, where a token has one of `n_codes` labels."""
    n_features, n_sums, width = 0, 0, 0
    for s in range(samples.shape[0]):
        n = rows.indptr[samples[s, 1]] - rows.indptr[samples[s, 0]]
        columns = min(2 * (samples[s, 1] - samples[s, 0]), n_codes)
        n_features, width = max(n_features, n), max(width, columns)
        n_sums = max(n_sums, n * columns)
    return Sums(
        np.empty(n_sums),
        np.empty(n_features, np.int64),
        np.empty(width, np.int64),
        np.zeros(2, np.int64),
    )


@lean_jit
def add_up(rows, sample, difference, settings, sums):
    """Add up the differences of the features of a sample, by feature and label."""
    length = sample[1] - sample[0]
    n_rows, n_columns = 0, 0
    for t in range(length):
        for j in range(difference.shape[1]):
            if difference[t, j] != 0.0 and settings.columns[j] < 0:
                sums.labels[n_columns] = j
                n_columns = claim_slot(j, settings.columns, n_columns)
    for t in range(length):
        if not any_change(difference, t):
            continue
        for k in range(rows.indptr[sample[0] + t], rows.indptr[sample[0] + t + 1]):
            f = rows.indices[k]
            if settings.slots[f] < 0:
                sums.features[n_rows] = f
                for c in range(n_columns):
                    sums.values[n_rows * n_columns + c] = 0.0
                n_rows = claim_slot(f, settings.slots, n_rows)
            first, x = settings.slots[f] * n_columns, value_of(rows.data, k)
            for c in range(n_columns):
                sums.values[first + c] += x * difference[t, sums.labels[c]]
    for r in range(n_rows):
        settings.slots[sums.features[r]] = -1
    for c in range(n_columns):
        settings.columns[sums.labels[c]] = -1
    sums.counts[0], sums.counts[1] = n_rows, n_columns


@lean_jit
def any_change(difference, t):
    """Return True if the difference of a token is not zero."""
    found = False
    for j in range(difference.shape[1]):
        found |= difference[t, j] != 0.0
    return found


@lean_jit
def spread_of_sums(sums, variance):
    """Variance of the score of the sums."""
    n_columns, spread = sums.counts[1], 0.0
    for r in range(sums.counts[0]):
        f = sums.features[r]
        for c in range(n_columns):
            d = sums.values[r * n_columns + c]
            if d != 0.0:
                spread += d * d * variance[f, sums.labels[c]]
    return spread


@lean_jit
def change_sums(sums, step, weights, lag, variance, progress):
    """Change the weights of the features of a sample, and their variances."""
    n_columns, growth = sums.counts[1], 0.0
    multiplier, slack = step
    average, so_far = lag.shape[0] > 0, progress[TOTAL]
    for r in range(sums.counts[0]):
        f = sums.features[r]
        for c in range(n_columns):
            d, j = sums.values[r * n_columns + c], sums.labels[c]
            if d == 0.0:
                continue
            v, before = variance[f, j], weights[f, j]
            change = multiplier * v * d
            weights[f, j] = before + change
            growth += change * (before + weights[f, j])
            if average:
                lag[f, j] += so_far * change
            variance[f, j] = v / (1.0 + v * d * d / slack)
    progress[NORM] += growth


# -------------------------------------------------------- transitions, for each kind of weights


@creating
def zero_totals(edges):
    """Differences of zero, for the weights of transitions and biases."""
    k = width(edges, 0)
    return Chain(np.empty((0, k)), np.zeros((k, k)), np.zeros(k), np.zeros(k), np.zeros(k))


@zero_totals.of(SecondOrder)
def zero_pair_totals(edges):
    """Differences for those of triples, too, in the order of the scores."""
    k = width(edges, 0)
    biases, triple = (np.zeros(k), np.zeros(k), np.zeros(k)), np.zeros(edges.log.shape)
    return SecondOrderChain(np.empty((0, k)), np.zeros((k, k)), *biases, triple)


@creating
def room_for_transitions(chain, rows, samples):
    """Workspace for the sums of transition features; empty where there are none."""
    return room_for_sums(rows, samples[:0], 0)


@room_for_transitions.of(TransitionChain)
def room_for_token_transitions(chain, rows, samples):
    """Do the same where there are some."""
    return room_for_sums(rows.transitions, samples, chain.transition.size)


@family
def add_up_transitions(edges, rows, sample, gold, difference, counts, settings, room):
    """Move the differences of a sample's transitions to the room, and leave zeros.

    Returns
    -------
    n_codes : int
        Number of transitions that change, where they are listed in ``room.codes``.
    """
    for i in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            room.total.transition[i, j] = counts[i, j]
            counts[i, j] = 0.0
    return 0


@add_up_transitions.of(PerToken)
def add_up_token_transitions(edges, rows, sample, gold, difference, counts, settings, room):
    """Add up the differences of all tokens, and those of their features."""
    length, k = sample[1] - sample[0], counts.shape[1]
    flat, total = counts.reshape(counts.shape[0], k * k), room.total.transition
    for i in range(k):
        for j in range(k):
            total[i, j] = 0.0
            for t in range(1, length):
                total[i, j] += counts[t, i, j]
    add_up(rows.transitions, sample, flat, settings, room.transitions)
    for t in range(1, length):
        for p in range(k * k):
            flat[t, p] = 0.0
    return 0


@add_up_transitions.of(SecondOrder)
def add_up_pair_transitions(edges, rows, sample, gold, difference, counts, settings, room):
    """Move those of triples, and add them up for pairs."""
    total, triples = room.total.transition, room.total.triple
    add_to_pairs(edges.pairs, counts)
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            total[i, j] = counts.first[i, j]
            counts.first[i, j] = 0.0
    for q in range(triples.shape[0]):
        triples[q] = counts.log[q]
        counts.log[q] = 0.0
    return 0


@add_up_transitions.of(Growing)
def add_up_listed_transitions(edges, rows, sample, gold, difference, counts, settings, room):
    """Move those that change."""
    n_labels = counts.shape[0]
    n = find_changed_transitions(difference, counts, gold, room.codes)
    for code in room.codes[:n]:
        i, j = code % n_labels, code // n_labels
        room.total.transition[i, j] = counts[i, j]
        counts[i, j] = 0.0
    return n


@family
def add_spread(edges, spread, variance, room, n_codes):
    """Add the variance of the score of the differences of transitions and biases to a sum."""
    return spread + spread_of_biases(room.total, variance)


@add_spread.of(PerToken)
def add_token_spread(edges, spread, variance, room, n_codes):
    """Add that of the features of transitions, too."""
    spread += spread_of_sums(room.transitions, variance.transition_weights)
    return spread + spread_of_biases(room.total, variance)


@add_spread.of(SecondOrder)
def add_pair_spread(edges, spread, variance, room, n_codes):
    """Add that of triples, too."""
    triples, of_triples = room.total.triple, variance.triple.reshape(variance.triple.size)
    for q in range(triples.shape[0]):
        spread += triples[q] * triples[q] * of_triples[edges.pairs.triple[q]]
    return spread + spread_of_biases(room.total, variance)


@add_spread.of(Growing)
def add_listed_spread(edges, spread, variance, room, n_codes):
    """Add that of transitions that change."""
    return spread + spread_of_listed(room.total, variance, room.codes[:n_codes])


@family
def change_transitions(edges, state, step, room, n_codes):
    """Change the weights of transitions by a step, and their variances."""
    parts = state.chain.transition, state.lag.transition, state.variance.transition
    change_matrix(state, step, room.total.transition, parts)


@change_transitions.of(SecondOrder)
def change_pair_transitions(edges, state, step, room, n_codes):
    """Change those of triples, too."""
    chain, lag, variance, n = state.chain, state.lag, state.variance, state.chain.triple.size
    when = lag.weights.shape[0] > 0, state.progress[TOTAL]
    weights, behind = chain.triple.reshape(n), lag.triple.reshape(lag.triple.size)
    variances, where = variance.triple.reshape(n), edges.pairs.triple
    for q in range(where.shape[0]):
        one = slice(where[q], where[q] + 1)
        row = room.total.triple[q : q + 1]
        change_vector(row, step, weights[one], behind[one], variances[one], when)
    pairs = state.chain.transition, state.lag.transition, state.variance.transition
    change_matrix(state, step, room.total.transition, pairs)


@change_transitions.of(PerToken)
def change_token_transitions(edges, state, step, room, n_codes):
    """Change those of their features, too."""
    change_sums(
        room.transitions,
        step,
        state.chain.transition_weights,
        state.lag.transition_weights,
        state.variance.transition_weights,
        state.progress,
    )
    parts = state.chain.transition, state.lag.transition, state.variance.transition
    change_matrix(state, step, room.total.transition, parts)


@change_transitions.of(Growing)
def change_listed_transitions(edges, state, step, room, n_codes):
    """Change those that have a difference, list them, and reset the differences.

    Elsewhere the differences are overwritten by those of the next sample.
    """
    lag, variance, total = state.lag.transition, state.variance.transition, room.total.transition
    chain = state.chain
    when = state.lag.weights.shape[0] > 0, state.progress[TOTAL]
    n_labels = total.shape[0]
    for code in room.codes[:n_codes]:
        i, j = code % n_labels, code // n_labels
        row, one = total[i, j : j + 1], slice(j, j + 1)
        change_vector(row, step, chain.transition[i, one], lag[i, one], variance[i, one], when)
        total[i, j] = 0.0
        score_changed(chain, i, j)


@lean_jit
def change_matrix(state, step, total, parts):
    """Change a matrix of weights and their lag and variances, the ``parts`` of a state."""
    weights, lag, variance = parts
    when = state.lag.weights.shape[0] > 0, state.progress[TOTAL]
    for i in range(total.shape[0]):
        change_vector(total[i], step, weights[i], lag[i], variance[i], when)


# ------------------------------------------------------------------------------------------- biases


@lean_jit
def add_up_biases(sample, difference, fit_intercept, total):
    """Write the differences of the biases of a sample."""
    length = sample[1] - sample[0]
    for j in range(difference.shape[1]):
        total.intercept[j] = total.start[j] = total.end[j] = 0.0
        if not fit_intercept:
            continue
        for t in range(length):
            total.intercept[j] += difference[t, j]
        if sample[2]:
            total.start[j] = difference[0, j]
        if sample[3]:
            total.end[j] = difference[length - 1, j]


@lean_jit
def spread_of_biases(total, variance):
    """Variance of the score of the differences of transitions and biases."""
    spread = 0.0
    for j in range(total.intercept.shape[0]):
        for i in range(total.transition.shape[0]):
            spread += total.transition[i, j] * total.transition[i, j] * variance.transition[i, j]
        spread += total.intercept[j] * total.intercept[j] * variance.intercept[j]
        spread += total.start[j] * total.start[j] * variance.start[j]
        spread += total.end[j] * total.end[j] * variance.end[j]
    return spread


@lean_jit
def spread_of_listed(total, variance, codes):
    """Do the same where only transitions with these codes have a difference."""
    n_labels = total.intercept.shape[0]
    spread, n = 0.0, 0
    for j in range(n_labels):
        while n < codes.shape[0] and codes[n] // n_labels == j:
            i = codes[n] % n_labels
            spread += total.transition[i, j] * total.transition[i, j] * variance.transition[i, j]
            n += 1
        spread += total.intercept[j] * total.intercept[j] * variance.intercept[j]
        spread += total.start[j] * total.start[j] * variance.start[j]
        spread += total.end[j] * total.end[j] * variance.end[j]
    return spread


@lean_jit
def change_biases(total, step, state):
    """Change the biases, and their variances."""
    chain, lag, variance = state.chain, state.lag, state.variance
    when = lag.weights.shape[0] > 0, state.progress[TOTAL]
    change_vector(total.intercept, step, chain.intercept, lag.intercept, variance.intercept, when)
    change_vector(total.start, step, chain.start, lag.start, variance.start, when)
    change_vector(total.end, step, chain.end, lag.end, variance.end, when)


@lean_jit
def change_vector(differences, step, weights, lag, variance, when):
    """Change a vector of weights, and their variances."""
    multiplier, slack = step
    average, so_far = when
    for j in range(differences.shape[0]):
        d, v = differences[j], variance[j]
        if d != 0.0:
            change = multiplier * v * d
            weights[j] += change
            if average:
                lag[j] += so_far * change
            variance[j] = v / (1.0 + v * d * d / slack)


# Loss of a wrong labelling (`Adaptive.cost`): the excess of its score over that of the gold one,
# plus the number of wrong tokens, its square root, or one; or else the share of wrong tokens, and
# then the multiplier of the difference is one.
HAMMING, ROOT, ONE, SHARE = range(4)


class ConfidentState(NamedTuple):
    """Weights during training, with their variances; the first fields are those of `OnlineState`.

    Nothing shrinks the weights, so their scale is one.
    """

    chain: Chain
    lag: Chain
    progress: np.ndarray
    variance: Chain  # of each weight; zero for one that does not change

    def copy(self):
        """State that shares no array with this one."""
        chain, lag, variance = (
            type(parts)(*(part.copy() for part in parts))
            for parts in (self.chain, self.lag, self.variance)
        )
        return ConfidentState(chain, lag, self.progress.copy(), variance)


class Adaptive(NamedTuple):
    """Parameters of the update, and workspace."""

    cost: int  # HAMMING, ROOT, ONE or SHARE
    slack: float  # added to the variance of the margin
    cap: float  # largest multiplier
    learns_variance: bool  # variances shrink, by an amount that is inverse to the slack
    slots: np.ndarray  # -1 between samples, (max(n_features, n_transition_features),)
    columns: np.ndarray  # -1 between samples, (n_labels or n_labels ** 2,)


@jit
def arow_epoch(rows, labels, samples, sample_weight, schedule, settings, state):
    """Visit all samples in the given order (arguments and result are those of `online_epoch`)."""
    chain, n_labels = state.chain, state.chain.intercept.shape[0]
    length = longest_sample(samples)
    scores, difference = np.empty((length, n_labels)), np.empty((length, n_labels))
    predicted = np.empty(length, np.int32)
    edges = edges_of(chain, length)
    counts = zero_counts(edges, length)
    room = Room(
        zero_totals(edges),
        room_for_sums(rows, samples, n_labels),
        room_for_transitions(chain, rows, samples),
        np.empty(most_changed(chain), np.int64),
    )
    mistakes, loss = 0, 0.0
    for s in range(samples.shape[0]):
        sample, gold = samples[s], labels[samples[s, 0] : samples[s, 1]]
        length = gold.shape[0]
        if length == 0 or sample_weight[s] == 0.0:
            continue
        sample_scores(rows, sample, state, scores)
        scaled_edges(chain, rows, sample, state.progress[SCALE], edges)
        found = predicted[:length]
        # Viterbi overwrites the scores.
        excess = -path_score(scores, length, edges, gold)
        excess += viterbi(scores, length, edges, found)
        wrong = count_wrong(gold, found)
        if wrong > 0:
            cost = cost_of(excess, wrong, length, settings)
            clear_difference(length, difference)
            add_contrast(edges, gold, found, 1.0, difference, counts)
            violation = cost, sample_weight[s], schedule.fit_intercept
            update(edges, rows, sample, gold, difference, counts, violation, settings, state, room)
            mistakes += wrong
            loss += sample_weight[s] * cost
        finish_sample(schedule, state)
    return mistakes, loss


@lean_jit
def cost_of(excess, wrong, length, settings):
    """Loss of a labelling with so many wrong tokens and a score so far above the gold one's."""
    if settings.cost == HAMMING:
        return excess + wrong
    if settings.cost == ROOT:
        return excess + np.sqrt(wrong)
    return excess + 1.0 if settings.cost == ONE else wrong / length


@lean_jit
def update(edges, rows, sample, gold, difference, counts, violation, settings, state, room):
    """Change the weights by the difference of a sample, and their variances.

    Reset the counts of transitions to zero.
    """
    cost, weight, fit_intercept = violation
    chain, lag, variance = state.chain, state.lag, state.variance
    add_up(rows, sample, difference, settings, room.features)
    add_up_biases(sample, difference, fit_intercept, room.total)
    n_codes = add_up_transitions(edges, rows, sample, gold, difference, counts, settings, room)
    spread = spread_of_sums(room.features, variance.weights)
    spread = add_spread(edges, spread, variance, room, n_codes)
    step = step_size(cost, weight, spread, settings)
    change_sums(room.features, step, chain.weights, lag.weights, variance.weights, state.progress)
    change_biases(room.total, step, state)
    change_transitions(edges, state, step, room, n_codes)


@lean_jit
def step_size(cost, weight, spread, settings):
    """Multiplier of the difference, and the slack by which variances shrink."""
    if settings.learns_variance:
        slack = settings.slack / weight
        return min(cost / (slack + spread), settings.cap), slack
    multiplier = 1.0
    if settings.cost != SHARE:
        room = settings.slack + spread
        multiplier = min(cost / room, settings.cap) if room > 0.0 else 0.0
    # Infinite slack keeps the variances.
    return multiplier * weight, np.inf
