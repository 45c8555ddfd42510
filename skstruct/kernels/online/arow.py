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
from skstruct.chain.protocol import creating
from skstruct.chain.scores import path_score, value_of
from skstruct.chain.second_order import SecondOrder
from skstruct.chain.viterbi import viterbi
from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.online.loop import (
    NORM,
    TOTAL,
    add_contrast,
    change,
    change_matrix,
    change_row,
    change_token_features,
    clear_difference,
    count_wrong,
    learn,
    most_changed,
    room_for,
    rule,
    settle_counts,
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

    total: Chain  # of biases, and of transitions with features; those of labels are empty
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


# -------------------------------------------------------- transitions, for each kind of weights


@creating
def room_for_transitions(chain, rows, samples):
    """Workspace for the sums of transition features; empty where there are none."""
    return room_for_sums(rows, samples[:0], 0)


@room_for_transitions.of(TransitionChain)
def room_for_token_transitions(chain, rows, samples):
    """Do the same where there are some."""
    return room_for_sums(rows.transitions, samples, chain.transition.size)


@family
def add_up_transitions(edges, rows, sample, counts, settings, room):
    """Add up the counts of a sample's transitions, where they are counted at each token."""


@add_up_transitions.of(PerToken)
def add_up_token_transitions(edges, rows, sample, counts, settings, room):
    """Move the differences of all tokens, and those of their features, to the room."""
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


@family
def add_spread(edges, counts, spread, variance, room, codes):
    """Add the variance of the score of the differences of transitions and biases to a sum."""
    return spread + spread_of_biases(counts, room.total, variance)


@add_spread.of(PerToken)
def add_token_spread(edges, counts, spread, variance, room, codes):
    """Add that of the features of transitions, too."""
    spread += spread_of_sums(room.transitions, variance.transition_weights)
    return spread + spread_of_biases(room.total.transition, room.total, variance)


@add_spread.of(SecondOrder)
def add_pair_spread(edges, counts, spread, variance, room, codes):
    """Add that of triples, too."""
    of_triples, where = variance.triple.reshape(variance.triple.size), edges.pairs.triple
    for q in range(where.shape[0]):
        spread += counts.log[q] * counts.log[q] * of_triples[where[q]]
    return spread + spread_of_biases(counts.first, room.total, variance)


@add_spread.of(Growing)
def add_listed_spread(edges, counts, spread, variance, room, codes):
    """Add that of transitions that change."""
    return spread + spread_of_listed(counts, room.total, variance, codes)


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
def spread_of_biases(counts, total, variance):
    """Variance of the score of the differences of transitions and biases."""
    spread = 0.0
    for j in range(total.intercept.shape[0]):
        for i in range(counts.shape[0]):
            spread += counts[i, j] * counts[i, j] * variance.transition[i, j]
        spread += total.intercept[j] * total.intercept[j] * variance.intercept[j]
        spread += total.start[j] * total.start[j] * variance.start[j]
        spread += total.end[j] * total.end[j] * variance.end[j]
    return spread


@lean_jit
def spread_of_listed(counts, total, variance, codes):
    """Do the same where only transitions with these codes have a difference."""
    n_labels = total.intercept.shape[0]
    spread, n = 0.0, 0
    for j in range(n_labels):
        while n < codes.shape[0] and codes[n] // n_labels == j:
            i = codes[n] % n_labels
            spread += counts[i, j] * counts[i, j] * variance.transition[i, j]
            n += 1
        spread += total.intercept[j] * total.intercept[j] * variance.intercept[j]
        spread += total.start[j] * total.start[j] * variance.start[j]
        spread += total.end[j] * total.end[j] * variance.end[j]
    return spread


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


class ConfidentStep(NamedTuple):
    """Change of weights in proportion to their variances (see `Step`)."""

    multiplier: float
    slack: float  # variances shrink the less, the larger it is
    chain: Chain
    lag: Chain
    variance: Chain
    progress: np.ndarray
    codes: np.ndarray
    room: Room


class Adaptive(NamedTuple):
    """Parameters of the update, and workspace."""

    cost: int  # HAMMING, ROOT, ONE or SHARE
    slack: float  # added to the variance of the margin
    cap: float  # largest multiplier
    learns_variance: bool  # variances shrink, by an amount that is inverse to the slack
    slots: np.ndarray  # -1 between samples, (max(n_features, n_transition_features),)
    columns: np.ndarray  # -1 between samples, (n_labels or n_labels ** 2,)


@rule.of(Adaptive)
def arow_rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Gold labelling less the predicted one; the loss is the cost of that."""
    length = gold.shape[0]
    found = np.empty(length, np.int32)
    # Viterbi overwrites the scores.
    excess = -path_score(scores, length, edges, gold)
    excess += viterbi(scores, length, edges, found)
    wrong = count_wrong(gold, found)
    if wrong == 0:
        return 0, 0.0
    clear_difference(length, difference)
    add_contrast(edges, gold, found, 1.0, difference, counts)
    return wrong, cost_of(excess, wrong, length, settings)


@lean_jit
def cost_of(excess, wrong, length, settings):
    """Loss of a labelling with so many wrong tokens and a score so far above the gold one's."""
    if settings.cost == HAMMING:
        return excess + wrong
    if settings.cost == ROOT:
        return excess + np.sqrt(wrong)
    return excess + 1.0 if settings.cost == ONE else wrong / length


@room_for.of(ConfidentState)
def room_for_sums_of_all(state, edges, rows, samples):
    """Room for the differences of any sample."""
    chain, k = state.chain, state.chain.intercept.shape[0]
    return Room(
        Chain(np.empty((0, k)), np.zeros((k, k)), np.zeros(k), np.zeros(k), np.zeros(k)),
        room_for_sums(rows, samples, k),
        room_for_transitions(chain, rows, samples),
        np.empty(most_changed(chain), np.int64),
    )


@learn.of(ConfidentState)
def learn_by_variance(state, edges, rows, sample, gold, difference, counts, sizes, settings, room):
    """Change each weight in proportion to its variance, and the variances."""
    cost, weight, fit_intercept = sizes
    chain, lag, variance, progress = state.chain, state.lag, state.variance, state.progress
    add_up(rows, sample, difference, settings, room.features)
    add_up_biases(sample, difference, fit_intercept, room.total)
    add_up_transitions(edges, rows, sample, counts, settings, room)
    codes = room.codes[: settle_counts(edges, gold, difference, counts, room.codes)]
    spread = spread_of_sums(room.features, variance.weights)
    spread = add_spread(edges, counts, spread, variance, room, codes)
    multiplier, slack = step_size(cost, weight, spread, settings)
    step = ConfidentStep(multiplier, slack, chain, lag, variance, progress, codes, room)
    change_sums(step, room.features, chain.weights, lag.weights, variance.weights)
    total = room.total
    change_row(step, total.intercept, chain.intercept, lag.intercept, variance.intercept)
    change_row(step, total.start, chain.start, lag.start, variance.start)
    change_row(step, total.end, chain.end, lag.end, variance.end)
    change(edges, counts, step)


@lean_jit
def change_sums(step, sums, weights, lag, variance):
    """Change the weights of the features of a sample, and their variances."""
    n_columns, growth = sums.counts[1], 0.0
    average, so_far = lag.shape[0] > 0, step.progress[TOTAL]
    for r in range(sums.counts[0]):
        f = sums.features[r]
        for c in range(n_columns):
            d, j = sums.values[r * n_columns + c], sums.labels[c]
            if d == 0.0:
                continue
            v, before = variance[f, j], weights[f, j]
            change = step.multiplier * v * d
            weights[f, j] = before + change
            growth += change * (before + weights[f, j])
            if average:
                lag[f, j] += so_far * change
            variance[f, j] = v / (1.0 + v * d * d / step.slack)
    step.progress[NORM] += growth


@change_row.of(ConfidentStep)
def change_row_by_variance(step, d, weights, lag, variance):
    """Change a row of weights, and their variances."""
    average, so_far = step.lag.weights.shape[0] > 0, step.progress[TOTAL]
    for j in range(d.shape[0]):
        if d[j] != 0.0:
            v = variance[j]
            difference = step.multiplier * v * d[j]
            weights[j] += difference
            if average:
                lag[j] += so_far * difference
            variance[j] = v / (1.0 + v * d[j] * d[j] / step.slack)


@change_token_features.of(ConfidentStep)
def change_token_features_by_variance(step, counts):
    """Change those of the features of transitions by sums over all tokens, and the matrix."""
    change_sums(
        step,
        step.room.transitions,
        step.chain.transition_weights,
        step.lag.transition_weights,
        step.variance.transition_weights,
    )
    change_matrix(step, step.room.total.transition)


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
