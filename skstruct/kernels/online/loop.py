"""The epoch of all online learners: score a sample, apply the rule, update the weights.

The learners differ in their *rule*. It reads the scores of one sample and fills in the update by
the scores of its labels and transitions; the loop multiplies these differences by the features and
maintains the average. Each rule gets a compiled entry of its own, because numba cannot cache a
function that takes another one as an argument.
"""

from typing import NamedTuple

import numpy as np

# Members for the weights of each kind have to be there before the loop is compiled.
from skstruct.chain import per_token  # noqa: F401
from skstruct.chain.dense import Chain
from skstruct.chain.protocol import edges_of, zero_counts
from skstruct.chain.scores import emission_scores
from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.online.changes import (
    NORM,
    RATE,
    SCALE,
    SEEN,
    TOTAL,
    Scratch,
    add_lagged,
    change_feature_weights,
)
from skstruct.kernels.online.transitions import (
    change_transitions,
    most_changed,
    scaled_edges,
    shrink_more,
)

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
        ``rule(rows, sample, scores, edges, gold, settings, difference, counts)`` returns the
        number of wrong tokens and the loss, and unless both are zero fills in the rows of
        ``difference`` that belong to the sample and adds to ``counts``, which are zero. It may
        overwrite the scores. ``edges`` are the scores of transitions, and ``counts`` those of
        `zero_counts`: see `skstruct.chain.protocol`.
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
    chain, progress = state.chain, state.progress
    n_labels, length = chain.intercept.shape[0], longest_sample(samples)
    scores = np.empty((length, n_labels))
    difference = np.empty((length, n_labels))
    edges = edges_of(chain, length)
    counts = zero_counts(edges, length)
    most = most_changed(chain)
    scratch = Scratch(np.empty(most, np.int64), np.empty(most))
    mistakes, loss = 0, 0.0
    for s in range(samples.shape[0]):
        sample, gold = samples[s], labels[samples[s, 0] : samples[s, 1]]
        if gold.shape[0] == 0 or sample_weight[s] == 0.0:
            continue
        sample_scores(rows, sample, state, scores)
        scaled_edges(chain, rows, sample, progress[SCALE], edges)
        wrong, sample_loss = rule(rows, sample, scores, edges, gold, settings, difference, counts)
        if sample_loss > 0.0 or wrong > 0:
            step = sample_weight[s] * progress[RATE] / progress[SCALE]
            change_labels(rows, sample, difference, step, schedule.fit_intercept, state, scratch)
            change_transitions(edges, state, rows, sample, difference, gold, counts, step, scratch)
        mistakes += wrong
        loss += sample_weight[s] * sample_loss
        finish_sample(schedule, state)
    return mistakes, loss


@lean_jit
def longest_sample(samples):
    """Length of the longest of some samples."""
    length = np.int64(0)
    for s in range(samples.shape[0]):
        length = max(length, samples[s, 1] - samples[s, 0])
    return length


@lean_jit
def sample_scores(rows, sample, state, scores):
    """Write the scores of a sample's labels under the current weights."""
    chain, scale = state.chain, state.progress[SCALE]
    length, n_labels = sample[1] - sample[0], chain.intercept.shape[0]
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
    shrink_more(chain, scale)


@lean_jit
def change_labels(rows, sample, difference, step, fit_intercept, state, scratch):
    """Add ``step`` times the differences of labels to the weights of features and biases."""
    chain, lag = state.chain, state.lag
    first, last = sample[0], sample[1]
    average, total = lag.weights.shape[0] > 0, state.progress[TOTAL]
    for t in range(first, last):
        d = difference[t - first]
        n_changed = 0
        for j in range(d.shape[0]):
            if d[j] != 0.0:
                scratch.changed[n_changed] = j
                n_changed += 1
        if n_changed == 0:
            continue
        which = scratch.changed[:n_changed]
        state.progress[NORM] += change_feature_weights(
            rows, t, d, which, step, chain.weights, total, lag.weights, scratch.both
        )
        if fit_intercept:
            add_lagged(d, step, total, chain.intercept, average, lag.intercept)
    if fit_intercept and sample[2]:
        add_lagged(difference[0], step, total, chain.start, average, lag.start)
    if fit_intercept and sample[3]:
        add_lagged(difference[last - first - 1], step, total, chain.end, average, lag.end)


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
