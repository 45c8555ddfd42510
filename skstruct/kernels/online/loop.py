"""The epoch of all online learners: score a sample, apply the rule, update the weights.

The learners differ in their *rule*. It reads the scores of one sample and fills in the update by
the scores of its labels and transitions; the loop multiplies these differences by the features and
maintains the average. Each rule gets a compiled entry of its own, because numba cannot cache a
function that takes another one as an argument.
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.scores import (
    N_PLAIN,
    Chain,
    emission_scores,
    transition_scores,
    value_of,
    zero_transitions,
)
from skstruct.kernels.online.listed import (
    MOST_DENSE,
    change_listed,
    most_changed,
    read_listed_scores,
    score_buffer,
)
from skstruct.kernels.vector.prefetch import LINE, prefetch

# Places in the array `OnlineState.progress`.
SEEN = 0  # number of samples seen
NORM = 1  # squared norm of the feature weights, without the scale
SCALE = 2  # factor of the stored weights
TOTAL = 3  # sum of the scales after each sample
RATE = 4  # learning rate of the next sample
N_PROGRESS = 5
# A smaller scale is multiplied into the weights.
SMALLEST_SCALE = 1e-100


class OnlineState(NamedTuple):
    """Weights during training, scaled, and their average (Shalev-Shwartz et al., 2011; Xu, 2011).

    The current weights are ``scale * chain``, so shrinking all of them is one multiplication. The
    sum of the weights after each sample is ``total * chain - lag``, where ``total`` is the sum of
    the scales: a change made at ``total = c`` is not in the terms before, so ``lag`` adds up ``c``
    times each change. Only the weights that change are touched.
    """

    chain: Chain  # weights divided by the scale
    lag: Chain  # weighted sum of the changes; empty without averaging
    progress: np.ndarray  # (N_PROGRESS,)

    def copy(self):
        """State that shares no array with this one."""
        chain, lag = (type(parts)(*(part.copy() for part in parts)) for parts in self[:2])
        return OnlineState(chain, lag, self.progress.copy())


class Schedule(NamedTuple):
    """Learning rate, penalty and biases, which do not depend on the rule."""

    decay: float  # factor of the learning rate after each sample
    penalty: float  # l2 divided by the number of samples
    fit_intercept: bool  # biases are learnt


class EpochResult(NamedTuple):
    """Totals of a pass over the training set."""

    mistakes: int  # wrongly labelled tokens
    loss: float  # weighted sum of the losses of the samples


@jit(inline="always")
def online_epoch(rule, rows, labels, samples, sample_weight, schedule, settings, state):
    """Visit all samples in the given order.

    Parameters
    ----------
    rule : function
        ``rule(rows, sample, scores, transition, gold, settings, difference,
        transition_difference)`` returns the number of wrong tokens and the loss, and unless both
        are zero fills in the rows of ``difference`` that belong to the sample and adds to
        ``transition_difference``, which is zero. It may overwrite the scores. Where tokens have
        transitions of their own, ``transition`` and ``transition_difference`` have a matrix for
        each token of the sample (see `into_token`).
    rows : Rows
        The tokens.
    labels : ndarray of shape (n_rows,)
        Their gold labels.
    samples : ndarray of shape (n_samples, 4)
        First row and end of each sample, and 1 if it has the first and the last token of its
        sequence, else 0.
    sample_weight : ndarray of shape (n_samples,)
        Factor of the update of each sample; samples of weight zero are skipped.
    schedule : Schedule
        Learning rate and penalty.
    settings : NamedTuple
        Parameters of the rule.
    state : OnlineState
        Updated.

    Returns
    -------
    mistakes, loss : int, float
        Fields of `EpochResult`.
    """
    n_labels = state.chain.transition.shape[0]
    length = np.int64(0)
    for s in range(samples.shape[0]):
        length = max(length, samples[s, 1] - samples[s, 0])
    scores = np.empty((length, n_labels))
    difference = np.empty((length, n_labels))
    transition_difference = zero_transitions(state.chain, length)
    transition = score_buffer(state, transition_difference)
    # Workspace: labels or transitions with a difference, and a sum for each.
    changed = np.empty(most_changed(state, transition_difference), np.int64)
    both = np.empty(changed.shape[0])
    progress = state.progress
    mistakes, loss = 0, 0.0
    for s in range(samples.shape[0]):
        a, b = samples[s, 0], samples[s, 1]
        if a == b or sample_weight[s] == 0.0:
            continue
        sample_scores(rows, samples[s], state, scores, transition)
        wrong, sample_loss = rule(
            rows,
            samples[s],
            scores,
            transition,
            labels[a:b],
            settings,
            difference,
            transition_difference,
        )
        if sample_loss > 0.0 or wrong > 0:
            step = sample_weight[s] * progress[RATE] / progress[SCALE]
            apply_change(
                rows,
                samples[s],
                difference,
                transition_difference,
                step,
                schedule.fit_intercept,
                state,
                changed,
                both,
            )
            change_transitions(difference, transition_difference, labels[a:b], step, state, changed)
        mistakes += wrong
        loss += sample_weight[s] * sample_loss
        finish_sample(schedule, state)
    return mistakes, loss


@lean_jit
def sample_scores(rows, sample, state, scores, transition):
    """Write the scores of a sample's labels and transitions under the current weights."""
    chain, scale = state.chain, state.progress[SCALE]
    length, n_labels = sample[1] - sample[0], chain.transition.shape[0]
    emission_scores(rows, sample[0], sample[1], chain, scores)
    for j in range(n_labels):
        if sample[2]:
            scores[0, j] += chain.start[j]
        if sample[3]:
            scores[length - 1, j] += chain.end[j]
    if scale != 1.0:
        for t in range(length):
            for j in range(n_labels):
                scores[t, j] *= scale
    if transition.ndim == 3:
        scaled_transition_scores(rows, sample, chain, scale, transition)
    elif len(state) > MOST_DENSE:
        read_listed_scores(state, scale)
    else:
        for i in range(n_labels):
            for j in range(n_labels):
                transition[i, j] = scale * chain.transition[i, j]


@lean_jit
def scaled_transition_scores(rows, sample, chain, scale, out):
    """Write the scores of the transition into each token, with scaled weights."""
    transition_scores(rows, sample[0], sample[1], chain, out)
    for t in range(1, sample[1] - sample[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                out[t, i, j] *= scale


@lean_jit
def finish_sample(schedule, state):
    """Shrink the weights by the penalty, decay the learning rate, and count the sample."""
    progress = state.progress
    progress[SCALE] *= 1.0 - progress[RATE] * schedule.penalty
    progress[RATE] *= schedule.decay
    progress[SEEN] += 1.0
    progress[TOTAL] += progress[SCALE]
    if progress[SCALE] < SMALLEST_SCALE:
        scale = progress[SCALE]
        shrink(state.chain, scale)
        progress[NORM] *= scale * scale
        progress[TOTAL] /= scale
        progress[SCALE] = 1.0


@lean_jit
def shrink(chain, scale):
    """Multiply all weights by a scale."""
    for j in range(chain.transition.shape[0]):
        for i in range(chain.weights.shape[0]):
            chain.weights[i, j] *= scale
        for i in range(chain.transition.shape[0]):
            chain.transition[i, j] *= scale
        chain.intercept[j] *= scale
        chain.start[j] *= scale
        chain.end[j] *= scale
    if len(chain) > N_PLAIN:
        for row in chain.transition_weights:
            for p in range(row.shape[0]):
                row[p] *= scale


@lean_jit
def apply_change(
    rows, sample, difference, transition_difference, step, fit_intercept, state, changed, both
):
    """Add ``step`` times the differences to the weights of features and biases.

    With transitions of their own, also to these, and reset their differences to zero.
    """
    chain, lag = state.chain, state.lag
    n_labels = chain.transition.shape[0]
    first, last = sample[0], sample[1]
    average = lag.weights.shape[0] > 0
    total = state.progress[TOTAL]
    for t in range(first, last):
        d = difference[t - first]
        n_changed = 0
        for j in range(n_labels):
            if d[j] != 0.0:
                changed[n_changed] = j
                n_changed += 1
        if n_changed == 0:
            continue
        state.progress[NORM] += change_feature_weights(
            rows, t, d, changed[:n_changed], step, chain.weights, total, lag.weights, both
        )
        if fit_intercept:
            add_lagged(d, step, total, chain.intercept, average, lag.intercept)
    if fit_intercept and sample[2]:
        add_lagged(difference[0], step, total, chain.start, average, lag.start)
    if fit_intercept and sample[3]:
        add_lagged(difference[last - first - 1], step, total, chain.end, average, lag.end)
    if transition_difference.ndim == 3:
        change_transition_weights(rows, sample, transition_difference, step, state, changed, both)


@lean_jit
def change_transitions(difference, transition_difference, gold, step, state, changed):
    """Add ``step`` times the differences of transitions that all tokens share; reset them to zero.

    ``difference`` are those of the labels of the sample. Elsewhere `apply_change` does it.
    """
    total = state.progress[TOTAL]
    if transition_difference.ndim == 2 and len(state) > MOST_DENSE:
        change_listed(difference, transition_difference, gold, step, total, state, changed)
    elif transition_difference.ndim == 2:
        weights, lag = state.chain.transition, state.lag.transition
        average = state.lag.weights.shape[0] > 0
        for i in range(weights.shape[0]):
            add_lagged(transition_difference[i], step, total, weights[i], average, lag[i])
            for j in range(weights.shape[0]):
                transition_difference[i, j] = 0.0


@lean_jit
def change_transition_weights(rows, sample, transition_difference, step, state, changed, both):
    """Add ``step`` times the differences of each token's transitions; reset them to zero.

    They change the transition matrix and the weights of the features of transitions.
    """
    chain, lag, total = state.chain, state.lag, state.progress[TOTAL]
    average = lag.weights.shape[0] > 0
    n_transitions = chain.transition.size
    weights, behind = chain.transition.reshape(n_transitions), lag.transition.reshape(n_transitions)
    for t in range(1, sample[1] - sample[0]):
        d = transition_difference[t].reshape(n_transitions)
        n_changed = 0
        for p in range(n_transitions):
            if d[p] != 0.0:
                changed[n_changed] = p
                n_changed += 1
        if n_changed == 0:
            continue
        row, which = sample[0] + t, changed[:n_changed]
        state.progress[NORM] += change_feature_weights(
            rows.transitions,
            row,
            d,
            which,
            step,
            chain.transition_weights,
            total,
            lag.transition_weights,
            both,
        )
        add_lagged(d, step, total, weights, average, behind)
        for p in range(n_transitions):
            d[p] = 0.0


@lean_jit
def change_feature_weights(rows, t, d, changed, step, weights, total, lag, both):
    """Change the weights of the features of a token; return the growth of their squared norm."""
    n_labels = d.shape[0]
    average = lag.shape[0] > 0
    first, last = rows.indptr[t], rows.indptr[t + 1]
    if 8 * changed.shape[0] >= n_labels:
        growth = change_rows(rows, first, last, d, step, weights, lag, both)
        if average:
            lag_rows(rows, first, last, d, step, total, lag)
        return growth
    # For a few labels of many, scalar code is faster than whole rows.
    growth = 0.0
    for j in changed:
        total_of_both = 0.0
        for k in range(first, last):
            x = value_of(rows.data, k) * step
            if average:
                prefetch(lag, rows.indices[k] * n_labels + j)
            before = weights[rows.indices[k], j]
            weights[rows.indices[k], j] = before + x * d[j]
            total_of_both += x * (before + weights[rows.indices[k], j])
        growth += d[j] * total_of_both
    if average:
        for j in changed:
            for k in range(first, last):
                lag[rows.indices[k], j] += total * (value_of(rows.data, k) * step * d[j])
    return growth


@lean_jit
def change_rows(rows, first, last, d, step, weights, lag, both):
    """Change some features' weights of all labels; return the growth of their squared norm."""
    n_labels = d.shape[0]
    for j in range(n_labels):
        both[j] = 0.0
    for k in range(first, last):
        x, w = value_of(rows.data, k) * step, weights[rows.indices[k]]
        for j in range(0, n_labels if lag.shape[0] > 0 else 0, LINE):
            prefetch(lag, rows.indices[k] * n_labels + j)
        for j in range(n_labels):
            before = w[j]
            w[j] = before + x * d[j]
            both[j] += x * (before + w[j])
    growth = 0.0
    for j in range(n_labels):
        growth += d[j] * both[j]
    return growth


@lean_jit
def lag_rows(rows, first, last, d, step, total, lag):
    """Add the same change, times the sum of the scales, to the lag of the average."""
    for k in range(first, last):
        x, u = value_of(rows.data, k) * step, lag[rows.indices[k]]
        for j in range(d.shape[0]):
            u[j] += total * (x * d[j])


@lean_jit
def add_lagged(d, step, total, weights, average, lag):
    """Change a vector of weights and the lag of its average."""
    for j in range(d.shape[0]):
        weights[j] += step * d[j]
        if average:
            lag[j] += total * (step * d[j])


@lean_jit
def subtract_lag(weights, factor, lag, lag_factor, out):
    """``out = factor * weights - lag_factor * lag``; an empty lag is zero."""
    average = lag.shape[0] > 0
    for i in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            # `out` may be `weights` or `lag`.
            value = factor * weights[i, j]
            if average:
                value -= lag_factor * lag[i, j]
            out[i, j] = value
