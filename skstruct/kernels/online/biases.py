"""Biases and transitions of `arow`: differences of a sample, their variance, and the change."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.dense import Chain
from skstruct.chain.family import family
from skstruct.chain.listed import GrowingChain
from skstruct.chain.per_token import TransitionChain
from skstruct.chain.protocol import creating
from skstruct.kernels._jit import lean_jit
from skstruct.kernels.online.changes import TOTAL
from skstruct.kernels.online.sums import (
    Sums,
    add_up,
    change_sums,
    room_for_sums,
    spread_of_sums,
)
from skstruct.kernels.online.transitions import find_changed_transitions, score_changed


class Room(NamedTuple):
    """Workspace for the differences of one sample."""

    total: Chain  # of transitions and biases; its features are empty
    features: Sums
    transitions: Sums  # of the features of transitions
    codes: np.ndarray  # of listed transitions that change (see `find_changed_transitions`)


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
def add_up_transitions(chain, rows, sample, gold, difference, counts, settings, room):
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


@add_up_transitions.of(TransitionChain)
def add_up_token_transitions(chain, rows, sample, gold, difference, counts, settings, room):
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


@add_up_transitions.of(GrowingChain)
def add_up_listed_transitions(chain, rows, sample, gold, difference, counts, settings, room):
    """Move those that change."""
    n_labels = counts.shape[0]
    n = find_changed_transitions(difference, counts, gold, room.codes)
    for code in room.codes[:n]:
        i, j = code % n_labels, code // n_labels
        room.total.transition[i, j] = counts[i, j]
        counts[i, j] = 0.0
    return n


@family
def add_spread(chain, spread, variance, room, n_codes):
    """Add the variance of the score of the differences of transitions and biases to a sum."""
    return spread + spread_of_biases(room.total, variance)


@add_spread.of(TransitionChain)
def add_token_spread(chain, spread, variance, room, n_codes):
    """Add that of the features of transitions, too."""
    spread += spread_of_sums(room.transitions, variance.transition_weights)
    return spread + spread_of_biases(room.total, variance)


@add_spread.of(GrowingChain)
def add_listed_spread(chain, spread, variance, room, n_codes):
    """Add that of transitions that change."""
    return spread + spread_of_listed(room.total, variance, room.codes[:n_codes])


@family
def change_transitions(chain, state, step, room, n_codes):
    """Change the weights of transitions by a step, and their variances."""
    change_matrix(state, step, room.total.transition)


@change_transitions.of(TransitionChain)
def change_token_transitions(chain, state, step, room, n_codes):
    """Change those of their features, too."""
    change_sums(
        room.transitions,
        step,
        chain.transition_weights,
        state.lag.transition_weights,
        state.variance.transition_weights,
        state.progress,
    )
    change_matrix(state, step, room.total.transition)


@change_transitions.of(GrowingChain)
def change_listed_transitions(chain, state, step, room, n_codes):
    """Change those that have a difference, list them, and reset the differences.

    Elsewhere the differences are overwritten by those of the next sample.
    """
    lag, variance, total = state.lag.transition, state.variance.transition, room.total.transition
    when = state.lag.weights.shape[0] > 0, state.progress[TOTAL]
    n_labels = total.shape[0]
    for code in room.codes[:n_codes]:
        i, j = code % n_labels, code // n_labels
        row, one = total[i, j : j + 1], slice(j, j + 1)
        change_vector(row, step, chain.transition[i, one], lag[i, one], variance[i, one], when)
        total[i, j] = 0.0
        score_changed(chain, i, j)


@lean_jit
def change_matrix(state, step, total):
    """Change the weights of all transitions, and their variances."""
    weights, lag, variance = state.chain.transition, state.lag.transition, state.variance.transition
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
