"""Biases and transitions of `arow`: differences of a sample, their variance, and the change."""

from skstruct.kernels._jit import lean_jit
from skstruct.kernels.online.listed import find_changed_transitions, score_changed
from skstruct.kernels.online.loop import TOTAL


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
def take_transitions(difference, out):
    """Move the differences of transitions to ``out``, and leave zeros."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = difference[i, j]
            difference[i, j] = 0.0


@lean_jit
def take_listed(difference, transition_difference, gold, codes, out):
    """Move the differences of transitions that change to ``out``; return their number.

    Their codes (see `find_changed_transitions`) are written into ``codes``.
    """
    n_labels = out.shape[0]
    n = find_changed_transitions(difference, transition_difference, gold, codes)
    for code in codes[:n]:
        i, j = code % n_labels, code // n_labels
        out[i, j] = transition_difference[i, j]
        transition_difference[i, j] = 0.0
    return n


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
def change_all_transitions(total, step, state):
    """Change the weights of transitions, and their variances."""
    weights, lag, variance = state.chain.transition, state.lag.transition, state.variance.transition
    when = state.lag.weights.shape[0] > 0, state.progress[TOTAL]
    for i in range(total.shape[0]):
        change_vector(total[i], step, weights[i], lag[i], variance[i], when)


@lean_jit
def change_listed_transitions(total, step, state, codes):
    """Change the weights of transitions with these codes, list them, and reset their differences.

    Elsewhere the differences are overwritten by those of the next sample.
    """
    weights, lag, variance = state.chain.transition, state.lag.transition, state.variance.transition
    when = state.lag.weights.shape[0] > 0, state.progress[TOTAL]
    n_labels = total.shape[0]
    for code in codes:
        i, j = code % n_labels, code // n_labels
        row, one = total[i, j : j + 1], slice(j, j + 1)
        change_vector(row, step, weights[i, one], lag[i, one], variance[i, one], when)
        total[i, j] = 0.0
        score_changed(state, i, j)


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
