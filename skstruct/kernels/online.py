"""The loop that all online learners share: score a sample, ask the rule, move the weights.

A *rule* is what tells the learners apart. It reads the scores of one sample and fills in what
the weights of its features and label pairs are to gain, as differences in label space; the loop
alone scatters them to the weights and keeps the average. The loop is compiled into one entry for
each rule, because a compiled function that is given another one as an argument cannot be cached.
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit
from skstruct.kernels.scores import Chain, emission_scores


class OnlineState(NamedTuple):
    """Weights on their way.

    The average of the weights after each of ``n`` samples is ``chain - lag / n``: a change that
    comes after ``m`` samples is missing from ``m`` of the ``n`` summands, so ``lag`` collects
    ``m`` times each change, and nothing is summed over all weights.
    """

    chain: Chain  # current weights
    lag: Chain  # weighted sum of the changes; empty weights when there is no average
    progress: np.ndarray  # (2,) number of samples seen, squared norm of the feature weights


class EpochResult(NamedTuple):
    """What a pass over the training set came to."""

    mistakes: int  # tokens that were labelled wrongly
    loss: float  # of the rule, summed over the samples, weighted


@jit(inline="always")
def online_epoch(rule, rows, labels, samples, sample_weight, fit_intercept, state):
    """Visit samples in the order given.

    Parameters
    ----------
    rule : function
        ``rule(scores, length, transition, gold, difference, pairs)`` returns the number of
        wrong tokens and the loss, and unless there is nothing to change fills in the first
        `length` rows of ``difference`` and adds to ``pairs``, which is zero.
    rows : Rows
        The tokens.
    labels : ndarray of shape (n_rows,)
        Their gold labels.
    samples : ndarray of shape (n_samples, 2)
        First row and end of each sample, in the order of visit.
    sample_weight : ndarray of shape (n_samples,)
        Factor of the change that each sample makes.
    fit_intercept : bool
        Whether biases change.
    state : OnlineState
        Updated.
    """
    n_labels = state.chain.transition.shape[0]
    length = 0
    for s in range(samples.shape[0]):
        length = max(length, samples[s, 1] - samples[s, 0])
    scores = np.empty((length, n_labels))
    difference = np.empty((length, n_labels))
    pairs = np.zeros((n_labels, n_labels))
    mistakes, loss = 0, 0.0
    for s in range(samples.shape[0]):
        a, b = samples[s]
        if a < b and sample_weight[s] > 0.0:
            emission_scores(rows, a, b, state.chain, scores)
            wrong, sample_loss = rule(
                scores, b - a, state.chain.transition, labels[a:b], difference, pairs
            )
            if sample_loss > 0.0 or wrong > 0:
                apply_change(rows, a, b, difference, pairs, sample_weight[s], fit_intercept, state)
            mistakes += wrong
            loss += sample_weight[s] * sample_loss
        state.progress[0] += 1.0
    return EpochResult(mistakes, loss)


@jit
def apply_change(rows, first, last, difference, pairs, step, fit_intercept, state):
    """Add ``step`` times what a rule filled in to the weights; empty ``pairs`` again."""
    chain, lag = state.chain, state.lag
    n_labels = pairs.shape[0]
    average = lag.weights.shape[0] > 0
    seen = state.progress[0]
    changed = np.empty(n_labels, np.int64)
    for t in range(first, last):
        d = difference[t - first]
        n_changed = 0
        for j in range(n_labels):
            if d[j] != 0.0:
                changed[n_changed] = j
                n_changed += 1
        if n_changed == 0:
            continue
        state.progress[1] += change_features(
            rows, t, d, changed[:n_changed], step, chain.weights, seen, lag.weights
        )
        if fit_intercept:
            add_lagged(d, step, seen, chain.intercept, average, lag.intercept)
    if fit_intercept:
        add_lagged(difference[0], step, seen, chain.start, average, lag.start)
        add_lagged(difference[last - first - 1], step, seen, chain.end, average, lag.end)
    for i in range(n_labels):
        add_lagged(pairs[i], step, seen, chain.transition[i], average, lag.transition[i])
        pairs[i] = 0.0


@jit
def change_features(rows, t, d, changed, step, weights, seen, lag):
    """Change the weights of the features of a token; return how their squared norm grew."""
    unit = rows.data.shape[0] == 0
    n_labels = d.shape[0]
    average = lag.shape[0] > 0
    # A few labels of many: cheaper one by one than at vector speed.
    few = 8 * changed.shape[0] < n_labels
    growth = 0.0
    for k in range(rows.indptr[t], rows.indptr[t + 1]):
        x = step if unit else step * rows.data[k]
        w = weights[rows.indices[k]]
        if few:
            for j in changed:
                growth += x * d[j] * (2.0 * w[j] + x * d[j])
                w[j] += x * d[j]
        else:
            for j in range(n_labels):
                growth += x * d[j] * (2.0 * w[j] + x * d[j])
                w[j] += x * d[j]
        if average:
            u = lag[rows.indices[k]]
            if few:
                for j in changed:
                    u[j] += seen * (x * d[j])
            else:
                for j in range(n_labels):
                    u[j] += seen * (x * d[j])
    return growth


@jit
def add_lagged(d, step, seen, weights, average, lag):
    """Change a vector of weights, and what its average lags behind."""
    for j in range(d.shape[0]):
        weights[j] += step * d[j]
        if average:
            lag[j] += seen * (step * d[j])


@jit
def gold_minus(gold, predicted, difference, pairs):
    """Fill in the features of the gold labelling less those of another; count where they differ."""
    wrong = 0
    for t in range(gold.shape[0]):
        for j in range(difference.shape[1]):
            difference[t, j] = 0.0
        if gold[t] != predicted[t]:
            wrong += 1
            difference[t, gold[t]] = 1.0
            difference[t, predicted[t]] = -1.0
        if t > 0 and (gold[t] != predicted[t] or gold[t - 1] != predicted[t - 1]):
            pairs[gold[t - 1], gold[t]] += 1.0
            pairs[predicted[t - 1], predicted[t]] -= 1.0
    return wrong
