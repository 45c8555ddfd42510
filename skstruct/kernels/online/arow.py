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
from skstruct.chain.protocol import edges_of, zero_counts
from skstruct.chain.scores import path_score
from skstruct.chain.viterbi import viterbi
from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.online.adaptive import (
    Room,
    add_spread,
    add_up,
    add_up_biases,
    add_up_transitions,
    change_biases,
    change_sums,
    change_transitions,
    room_for_sums,
    room_for_transitions,
    spread_of_sums,
    zero_totals,
)
from skstruct.kernels.online.changes import SCALE
from skstruct.kernels.online.difference import add_contrast, clear_difference, count_wrong
from skstruct.kernels.online.loop import finish_sample, longest_sample, sample_scores
from skstruct.kernels.online.transitions import most_changed, scaled_edges

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
