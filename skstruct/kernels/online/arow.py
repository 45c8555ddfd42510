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

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.scores import (
    N_PLAIN,
    Chain,
    path_score,
    value_of,
    zero_transitions,
)
from skstruct.kernels.chain.sparse_viterbi import sparse_viterbi
from skstruct.kernels.chain.viterbi import viterbi
from skstruct.kernels.online.biases import (
    add_up_biases,
    change_all_transitions,
    change_biases,
    change_listed_transitions,
    spread_of_biases,
    spread_of_listed,
    take_listed,
    take_transitions,
)
from skstruct.kernels.online.difference import add_contrast, clear_difference, count_wrong
from skstruct.kernels.online.listed import MOST_DENSE, most_changed, score_buffer
from skstruct.kernels.online.loop import NORM, TOTAL, finish_sample, sample_scores
from skstruct.kernels.online.products import claim_slot

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


class Sums(NamedTuple):
    """Differences of one sample, added up by feature and label (or transition)."""

    values: np.ndarray  # one after the other, feature by feature
    features: np.ndarray  # feature of each row
    labels: np.ndarray  # label of each column
    counts: np.ndarray  # (2,), numbers of rows and of columns


class Room(NamedTuple):
    """Workspace for the differences of one sample."""

    total: Chain  # of transitions and biases; its features are empty
    features: Sums
    transitions: Sums  # of the features of transitions
    codes: np.ndarray  # of listed transitions that change (see `find_changed_transitions`)


@jit
def arow_epoch(rows, labels, samples, sample_weight, schedule, settings, state):
    """Visit all samples in the given order (arguments and result are those of `online_epoch`)."""
    n_labels = state.chain.transition.shape[0]
    length = np.int64(0)
    for s in range(samples.shape[0]):
        length = max(length, samples[s, 1] - samples[s, 0])
    scores, difference = np.empty((length, n_labels)), np.empty((length, n_labels))
    predicted = np.empty(length, np.int32)
    transition_difference = zero_transitions(state.chain, length)
    transition = score_buffer(state, transition_difference)
    room = Room(
        zero_chain(state.chain),
        room_for_sums(rows, samples, n_labels),
        room_for_transitions(rows, samples, state.chain),
        np.empty(most_changed(state, transition_difference), np.int64),
    )
    mistakes, loss = 0, 0.0
    for s in range(samples.shape[0]):
        a, b = samples[s, 0], samples[s, 1]
        if a == b or sample_weight[s] == 0.0:
            continue
        sample_scores(rows, samples[s], state, scores, transition)
        gold, found = labels[a:b], predicted[: b - a]
        # Viterbi overwrites the scores.
        excess = -path_score(scores, b - a, transition, gold)
        excess += best_labels(scores, b - a, transition, state, found)
        wrong = count_wrong(gold, found)
        if wrong > 0:
            cost = cost_of(excess, wrong, b - a, settings)
            clear_difference(b - a, difference)
            add_contrast(gold, found, 1.0, difference, transition_difference)
            violation = cost, sample_weight[s], schedule.fit_intercept
            update(
                rows,
                samples[s],
                gold,
                difference,
                transition_difference,
                violation,
                settings,
                state,
                room,
            )
            mistakes += wrong
            loss += sample_weight[s] * cost
        finish_sample(schedule, state)
    return mistakes, loss


@jit
def best_labels(scores, length, transition, state, labels):
    """Write the best labels of a sample, and return their score."""
    if len(state) > MOST_DENSE:
        return sparse_viterbi(scores, length, state.into, labels)
    return viterbi(scores, length, transition, labels)


@lean_jit
def cost_of(excess, wrong, length, settings):
    """Loss of a labelling with so many wrong tokens and a score so far above the gold one's."""
    if settings.cost == HAMMING:
        return excess + wrong
    if settings.cost == ROOT:
        return excess + np.sqrt(wrong)
    return excess + 1.0 if settings.cost == ONE else wrong / length


@jit
def zero_chain(chain):
    """Zero differences for the weights that a chain has whatever the features are."""
    n_labels = chain.transition.shape[0]
    none = np.empty((0, n_labels))
    k = n_labels
    return Chain(none, np.zeros((k, k)), np.zeros(k), np.zeros(k), np.zeros(k))


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


@jit
def room_for_transitions(rows, samples, chain):
    """Workspace for the sums of transition features; empty where there are none."""
    if len(chain) > N_PLAIN:
        return room_for_sums(rows.transitions, samples, chain.transition.size)
    return room_for_sums(rows, samples[:0], 0)


@lean_jit
def update(rows, sample, gold, difference, transition_difference, violation, settings, state, room):
    """Change the weights by the difference of a sample, and their variances.

    Reset the differences of transitions to zero.
    """
    cost, weight, fit_intercept = violation
    variance, total = state.variance, room.total
    add_up(rows, sample, difference, settings, room.features)
    add_up_biases(sample, difference, fit_intercept, total)
    spread = spread_of_sums(room.features, variance.weights)
    if transition_difference.ndim == 3:
        add_up_transitions(rows, sample, transition_difference, settings, room)
        spread += spread_of_sums(room.transitions, variance.transition_weights)
    elif len(state) <= MOST_DENSE:
        take_transitions(transition_difference, total.transition)
    n_codes = 0
    if len(state) > MOST_DENSE:
        n_codes = take_listed(difference, transition_difference, gold, room.codes, total.transition)
        spread += spread_of_listed(total, variance, room.codes[:n_codes])
    else:
        spread += spread_of_biases(total, variance)
    step = step_size(cost, weight, spread, settings)
    chain, lag, progress = state.chain, state.lag, state.progress
    change_sums(room.features, step, chain.weights, lag.weights, variance.weights, progress)
    if transition_difference.ndim == 3:
        change_sums_of_transitions(room.transitions, step, state)
    change_biases(total, step, state)
    if len(state) > MOST_DENSE:
        change_listed_transitions(total.transition, step, state, room.codes[:n_codes])
    else:
        change_all_transitions(total.transition, step, state)


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
def add_up_transitions(rows, sample, difference, settings, room):
    """Add up the differences of a sample's transitions and those of their features.

    Reset the differences to zero.
    """
    length, k = sample[1] - sample[0], difference.shape[1]
    flat, total = difference.reshape(difference.shape[0], k * k), room.total.transition
    for i in range(k):
        for j in range(k):
            total[i, j] = 0.0
            for t in range(1, length):
                total[i, j] += difference[t, i, j]
    add_up(rows.transitions, sample, flat, settings, room.transitions)
    for t in range(1, length):
        for p in range(k * k):
            flat[t, p] = 0.0


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


@lean_jit
def change_sums_of_transitions(sums, step, state):
    """Change the weights of the transition features of a sample, and their variances."""
    weights, lag = state.chain.transition_weights, state.lag.transition_weights
    change_sums(sums, step, weights, lag, state.variance.transition_weights, state.progress)
