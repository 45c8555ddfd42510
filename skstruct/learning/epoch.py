"""The epoch of all online learners: score a sample, apply the rule, change the weights.

Families leave open what differs. A `rule` fills in how the features of labellings differ, for the
class of its settings (of an online tagger, or of "sgd" in `online`). `learn` changes the
weights so, for the class of the state: by a step, which is here, or each by its variance (`arow`).
`change` walks through the transitions that have a count, for the class of their scores; it knows
neither rule nor state, so all rules learn with all kinds of chains.
"""

from typing import NamedTuple

import numpy as np

from skstruct.blocks.visits import (
    add_panel_scores,
    load_vectors,
    read_weights,
    sum_panel,
    write_blocks,
)
from skstruct.chain import per_token  # noqa: F401
from skstruct.chain.dense import Chain, Dense
from skstruct.chain.family import family, needed
from skstruct.chain.listed import (
    GrowingChain,
    GrowingList,
    first_at_least,
    list_transition,
    read_scores,
)
from skstruct.chain.per_token import PerToken, TransitionChain
from skstruct.chain.protocol import (
    add_edge,
    edges_of,
    score_edges,
    state_of,
    zero_counts,
)
from skstruct.chain.scores import Rows, emission_scores, value_of
from skstruct.chain.second_order import SecondOrder, SecondOrderChain, add_to_pairs, score_triples
from skstruct.compiled.jit import (
    inline_jit,
    inline_lean_jit,
    inner_jit,
    inner_lean_jit,
    jit,
    lean_jit,
)
from skstruct.compiled.lanes import LANES, LINE, prefetch

# Places in the array `OnlineState.progress`.
SEEN = 0  # number of samples seen
NORM = 1  # squared norm of the feature weights, without the scale
SCALE = 2  # factor of the stored weights
TOTAL = 3  # sum of the scales after each sample
RATE = 4  # learning rate of the next sample
N_PROGRESS = 5


class Scratch(NamedTuple):
    """Workspace: labels or transitions whose difference is not zero, and a sum for each."""

    changed: np.ndarray
    both: np.ndarray


@inner_lean_jit
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


@inline_lean_jit
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


@inline_lean_jit
def lag_rows(rows, first, last, d, step, total, lag):
    """Add the same change, times the sum of the scales, to the lag of the average."""
    for k in range(first, last):
        x, u = value_of(rows.data, k) * step, lag[rows.indices[k]]
        for j in range(d.shape[0]):
            u[j] += total * (x * d[j])


@inner_lean_jit
def add_lagged(d, step, total, weights, average, lag):
    """Change a vector of weights and the lag of its average."""
    for j in range(d.shape[0]):
        weights[j] += step * d[j]
        if average:
            lag[j] += total * (step * d[j])


@inner_lean_jit
def clear_difference(length, difference):
    for t in range(length):
        for j in range(difference.shape[1]):
            difference[t, j] = 0.0


@inline_lean_jit
def add_contrast(edges, gold, labels, weight, difference, counts):
    """Add ``weight`` times the gold labelling less another one to differences and counts."""
    add_weighted_contrast(edges, gold, labels, weight, gold[:0], 0, difference, counts)


@inner_lean_jit
def add_weighted_contrast(edges, gold, labels, weight, token_weight, first, difference, counts):
    """Add the contrast of two labellings weighted by token; transitions take the smallest weight.

    ``token_weight`` has one for each row, or none; the sample begins at row ``first``. Where both
    labellings agree nothing is added, so rounding leaves no trace: tokens with a difference of
    exactly zero are skipped later.
    """
    weighted = token_weight.shape[0] > 0
    for t in range(gold.shape[0]):
        if labels[t] != gold[t]:
            change = weight * value_of(token_weight, first + t)
            difference[t, gold[t]] += change
            difference[t, labels[t]] -= change
    for t in range(1, gold.shape[0]):
        before, right = state_of(edges, gold, t - 1), state_of(edges, gold, t)
        before_that, wrong = state_of(edges, labels, t - 1), state_of(edges, labels, t)
        if right != wrong or before != before_that:
            least = np.inf if weighted else 1.0
            for s in range(max(t - n_before(edges), 0), t + 1 if weighted else 0):
                least = min(least, token_weight[first + s])
            add_edge(edges, counts, t, before, right, weight * least)
            add_edge(edges, counts, t, before_that, wrong, -weight * least)


@family
def n_before(edges):
    """Number of tokens that a transition joins to the one it leads to."""
    return 1


@n_before.of(SecondOrder)
def two_before(edges):
    """Two, since a triple joins three tokens."""
    return 2


@inner_lean_jit
def count_wrong(gold, predicted):
    """Number of wrongly labelled tokens."""
    wrong = 0
    for t in range(gold.shape[0]):
        wrong += gold[t] != predicted[t]
    return wrong


# ------------------------------------------------------------------------------------------- scores


@needed
def scaled_edges(chain, rows, sample, scale, edges):
    """Write the scores of a sample's transitions: weights times a scale."""


@scaled_edges.of(Chain)
def scaled_dense_edges(chain, rows, sample, scale, edges):
    for i in range(edges.log.shape[0]):
        for j in range(edges.log.shape[1]):
            edges.log[i, j] = scale * chain.transition[i, j]


@scaled_edges.of(TransitionChain)
def scaled_token_edges(chain, rows, sample, scale, edges):
    """Write the scaled matrix of each token but the first."""
    score_edges(chain, rows, sample[0], sample[1], edges)
    for t in range(1, sample[1] - sample[0]):
        for i in range(edges.log.shape[1]):
            for j in range(edges.log.shape[2]):
                edges.log[t, i, j] *= scale


@scaled_edges.of(SecondOrderChain)
def scaled_pair_edges(chain, rows, sample, scale, edges):
    """Write the scaled scores of pairs and triples."""
    score_triples(edges.pairs, chain.transition, chain.triple, scale, edges.first, edges.log)


@scaled_edges.of(GrowingChain)
def scaled_listed_edges(chain, rows, sample, scale, edges):
    """Update the list: at an unchanged scale, only changed transitions are read again."""
    if chain.scale[0] != scale:
        chain.scale[0] = scale
        read_scores(chain.transition, edges, scale)


# ------------------------------------------------------------------------------------------ changes


@family
def most_changed(chain):
    """Largest number of labels or transitions that change at once."""
    return chain.intercept.shape[0]


@most_changed.of(TransitionChain, GrowingChain)
def most_transitions_changed(chain):
    return chain.transition.size


@family
def settle_counts(edges, gold, difference, counts, codes):
    """Complete the counts of a rule; list the transitions that have one.

    Returns
    -------
    n : int
        Number of transitions in ``codes``; zero where none are listed.
    """
    return 0


@settle_counts.of(SecondOrder)
def settle_pair_counts(edges, gold, difference, counts, codes):
    """Add the counts of triples to the pairs'."""
    add_to_pairs(edges.pairs, counts)
    return 0


@settle_counts.of(GrowingList)
def settle_listed_counts(edges, gold, difference, counts, codes):
    """List the transitions that have a count."""
    return find_changed_transitions(difference, counts, gold, codes)


@needed
def change(edges, counts, step):
    """Change the weights of transitions by their counts; reset the counts to zero.

    Parameters
    ----------
    edges : Dense or any other
        Their scores, as `scaled_edges` wrote them.
    counts : ndarray or NamedTuple
        From `zero_counts`, after `settle_counts`.
    step : Step or any other
        How a row of weights changes (`change_row`), with the weights, as a chain, in ``chain``,
        their lag and variances in ``lag`` and ``variance``, and in ``codes`` what is listed.
    """


@change.of(Dense)
def change_dense(edges, counts, step):
    change_matrix(step, counts)


@change.of(PerToken)
def change_of_tokens(edges, counts, step):
    """Change the matrix of transitions, and the weights of transition features."""
    change_token_features(step, counts)


@change.of(SecondOrder)
def change_pairs(edges, counts, step):
    chain, lag, variance, where = step.chain, step.lag, step.variance, edges.pairs.triple
    weights, behind = chain.triple.reshape(chain.triple.size), lag.triple.reshape(lag.triple.size)
    variances = variance.triple.reshape(variance.triple.size)
    for q in range(where.shape[0]):
        if counts.log[q] != 0.0:
            one = slice(where[q], where[q] + 1)
            change_row(step, counts.log[q : q + 1], weights[one], behind[one], variances[one])
            counts.log[q] = 0.0
    change_matrix(step, counts.first)


@change.of(GrowingList)
def change_listed(edges, counts, step):
    """Change the weights of transitions with a count, and add them to the list."""
    chain, lag, variance = step.chain, step.lag.transition, step.variance.transition
    n_labels = counts.shape[0]
    for code in step.codes:
        i, j = code % n_labels, code // n_labels
        one = slice(j, j + 1)
        change_row(step, counts[i, one], chain.transition[i, one], lag[i, one], variance[i, one])
        counts[i, j] = 0.0
        list_transition(chain.listed, i, j, chain.scale[0] * chain.transition[i, j])


@inner_lean_jit
def change_matrix(step, counts):
    """Change the matrix of transitions; reset the counts to zero."""
    weights, lag, variance = step.chain.transition, step.lag.transition, step.variance.transition
    for i in range(counts.shape[0]):
        change_row(step, counts[i], weights[i], lag[i], variance[i])
        for j in range(counts.shape[1]):
            counts[i, j] = 0.0


@needed
def change_row(step, d, weights, lag, variance):
    """Change a row of weights by its differences ``d``, and its lag and variances."""


@needed
def change_token_features(step, counts):
    """Change the weights of features of transitions, and the matrix; reset the counts to zero."""


@family
def shrink_more(chain, scale):
    """Multiply the weights that only some chains have by a scale."""


@shrink_more.of(SecondOrderChain)
def shrink_triples(chain, scale):
    multiply(chain.triple, scale)


@shrink_more.of(TransitionChain)
def shrink_token_features(chain, scale):
    """Multiply the weights of transition features by a scale."""
    multiply(chain.transition_weights, scale)


@inner_lean_jit
def multiply(weights, scale):
    """Multiply the rows of some weights by a scale."""
    for row in weights:
        for j in range(row.shape[0]):
            row[j] *= scale


# -------------------------------------------------------------------------------------------- lists


@inline_lean_jit
def find_changed_transitions(difference, counts, gold, codes):
    """Write codes ``j * n_labels + i`` of transitions that change; return their number.

    A transition changes between labels that are gold or that change themselves. The codes are in
    increasing order; ``codes`` has space for all transitions.
    """
    n_labels, n = difference.shape[1], 0
    for t in range(1, gold.shape[0]):
        for j in range(n_labels):
            if difference[t, j] == 0.0 and j != gold[t]:
                continue
            for i in range(n_labels):
                if difference[t - 1, i] == 0.0 and i != gold[t - 1]:
                    continue
                if counts[i, j] != 0.0:
                    n = insert_code(j * n_labels + i, codes, n)
    return n


@inline_lean_jit
def insert_code(code, codes, n):
    """Insert a code into the sorted list unless it is there; return the length of the list."""
    place = first_at_least(code, codes, 0, n)
    if place < n and codes[place] == code:
        return n
    for m in range(n, place, -1):
        codes[m] = codes[m - 1]
    codes[place] = code
    return n + 1


# -------------------------------------------------------------------------------------------- epoch

# A smaller scale is multiplied into the weights: without vectors, and with them, as their weights
# have to stay within single precision.
SMALLEST_SCALE, SMALLEST_WITH_VECTORS = 1e-100, 1e-15


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


class Schedule(NamedTuple):
    """Learning rate, penalty and biases, which do not depend on the rule."""

    decay: float  # factor of the learning rate after each sample
    penalty: float  # l2 divided by the number of samples
    fit_intercept: bool  # biases are learnt


class EpochResult(NamedTuple):
    """Totals of a pass over the training set."""

    mistakes: int  # wrongly labelled tokens
    loss: float  # weighted sum of the losses of the samples


@needed(compiler=inner_jit)
def rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Difference of the features of labellings by which the weights are to change.

    Parameters
    ----------
    settings : NamedTuple
        Parameters of the rule. Their class is what a member is registered for.
    rows : VisitRows or VisitTransitionRows
        The tokens; the vectors of the sample are in their panel.
    sample : ndarray of shape (4,)
        First row and end of the sample, and 1 if it has the first and the last token of its
        sequence, else 0.
    scores : ndarray of shape (>= length, n_labels)
        Scores of the labels of each token; may be overwritten.
    edges : NamedTuple
        Scores of the transitions (see `skstruct.chain.protocol`).
    gold : ndarray of shape (length,)
        Gold labels.
    difference : ndarray of shape (>= length, n_labels)
        Receives the change for each token and label; need not be written where both results are
        zero.
    counts : ndarray or NamedTuple
        Counts of transitions, from `zero_counts`, zero; they are added to.

    Returns
    -------
    wrong : int
        Number of wrong tokens.
    loss : float
        Loss of the sample. If both are zero, nothing changes.
    """


@needed(compiler=inner_jit)
def buffers_for(state, settings, edges, rows, samples):
    """Workspace of `learn` for any of the samples, with the settings that it needs."""


@family
def empty_buffer(buffer, rows, state):
    """Copy back what a workspace has of the state."""


@needed(compiler=inner_lean_jit)
def learn(state, edges, rows, sample, gold, difference, counts, sizes, buffer):
    """Change the weights by the difference of a sample; reset the counts of transitions to zero.

    ``sizes`` are the loss, the weight of the sample, and True if biases are learnt. All else is as
    `rule` got and left it.
    """


@jit
def online_epoch(rows, labels, samples, sample_weight, schedule, settings, state):
    """Visit all samples in the given order.

    Parameters
    ----------
    rows : VisitRows or VisitTransitionRows
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
        Parameters of the rule, whose class says which `rule` it is.
    state : OnlineState or ConfidentState
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
    buffer = buffers_for(state, settings, edges, rows, samples)
    fill_panel(rows, chain, rows.panel)
    mistakes, loss = 0, 0.0
    has_vectors = rows.vectors.columns.shape[0] > 0
    smallest = SMALLEST_WITH_VECTORS if has_vectors else SMALLEST_SCALE
    for s in range(samples.shape[0]):
        sample, gold = samples[s], labels[samples[s, 0] : samples[s, 1]]
        if gold.shape[0] == 0 or sample_weight[s] == 0.0:
            continue
        sample_scores(rows, sample, state, scores)
        scaled_edges(chain, rows, sample, progress[SCALE], edges)
        wrong, sample_loss = rule(settings, rows, sample, scores, edges, gold, difference, counts)
        if sample_loss > 0.0 or wrong > 0:
            sizes = sample_loss, sample_weight[s], schedule.fit_intercept
            learn(state, edges, rows, sample, gold, difference, counts, sizes, buffer)
        mistakes += wrong
        loss += sample_weight[s] * sample_loss
        finish_sample(schedule, state)
        if progress[SCALE] < smallest:
            empty_panel(rows, state)
            rescale(state)
            fill_panel(rows, chain, rows.panel)
    empty_panel(rows, state)
    empty_buffer(buffer, rows, state)
    return mistakes, loss


@inline_jit
def longest_sample(samples):
    length = np.int64(0)
    for s in range(samples.shape[0]):
        length = max(length, samples[s, 1] - samples[s, 0])
    return length


@inline_jit
def sample_scores(rows, sample, state, scores):
    """Write the scores of a sample's labels under the current weights."""
    chain, scale = state.chain, state.progress[SCALE]
    length, n_labels = sample[1] - sample[0], chain.intercept.shape[0]
    emission_scores(rows, sample[0], sample[1], chain, scores)
    if rows.vectors.columns.shape[0] > 0:
        load_vectors(rows.vectors, sample[0], sample[1], rows.panel.values)
        add_panel_scores(rows.panel, length, scores)
    for j in range(n_labels):
        if sample[2]:
            scores[0, j] += chain.start[j]
        if sample[3]:
            scores[length - 1, j] += chain.end[j]
    if scale != 1.0:
        for t in range(length):
            for j in range(n_labels):
                scores[t, j] *= scale


@inline_jit
def fill_panel(rows, chain, panel):
    """Copy the weights of vectors into a panel, where they change."""
    weights = chain.weights.reshape(chain.weights.size)
    n_labels = chain.intercept.shape[0]
    read_weights(rows.vectors.columns, n_labels, weights, n_labels, panel)


@inline_jit
def empty_panel(rows, state):
    """Copy them back, and add up what averages lag behind."""
    weights, lag, n_labels = state.chain.weights, state.lag.weights, state.chain.intercept.shape[0]
    flat = weights.reshape(weights.size)
    place = rows.vectors.columns, n_labels, rows.panel.exact, n_labels
    state.progress[NORM] += write_blocks(*place, flat)
    if lag.shape[0] > 0:
        add_lag(rows.vectors.columns, rows.panel.lag, lag)


@inner_lean_jit
def add_lag(columns, found, lag):
    """Add what the averages of vectors lag behind in a panel; it becomes zero there."""
    for j in range(lag.shape[1]):
        part, lane = found[j // LANES], j % LANES
        for f in range(columns.shape[0]):
            lag[columns[f], j] += part[f, lane]
            part[f, lane] = 0.0


@inline_jit
def finish_sample(schedule, state):
    """Shrink the weights by the penalty, decay the learning rate, and count the sample."""
    progress = state.progress
    progress[SCALE] *= 1.0 - progress[RATE] * schedule.penalty
    progress[RATE] *= schedule.decay
    progress[SEEN] += 1.0
    progress[TOTAL] += progress[SCALE]


@inline_jit
def rescale(state):
    """Multiply all weights by their factor, which becomes one."""
    progress, scale = state.progress, state.progress[SCALE]
    shrink(state.chain, scale)
    progress[NORM] *= scale * scale
    progress[TOTAL] /= scale
    progress[SCALE] = 1.0


@lean_jit
def shrink(chain, scale):
    multiply(chain.weights, scale)
    multiply(chain.transition, scale)
    for j in range(chain.intercept.shape[0]):
        chain.intercept[j] *= scale
        chain.start[j] *= scale
        chain.end[j] *= scale
    shrink_more(chain, scale)


# -------------------------------------------------------------------------------- learning by steps


class Step(NamedTuple):
    """Change of all weights by the same multiple of their differences."""

    size: float
    chain: Chain
    lag: Chain
    variance: Chain  # not read
    progress: np.ndarray
    rows: Rows
    sample: np.ndarray
    codes: np.ndarray
    scratch: Scratch


@buffers_for.of(OnlineState)
def step_buffers(state, settings, edges, rows, samples):
    """Buffers for labels or transitions that change."""
    most = most_changed(state.chain)
    return Scratch(np.empty(most, np.int64), np.empty(most))


@learn.of(OnlineState)
def learn_by_step(state, edges, rows, sample, gold, difference, counts, sizes, scratch):
    """Take a step of the learning rate times the weight of the sample."""
    chain, lag, progress = state.chain, state.lag, state.progress
    size = sizes[1] * progress[RATE] / progress[SCALE]
    change_labels(rows, sample, difference, size, sizes[2], state, scratch)
    if rows.vectors.columns.shape[0] > 0:
        change_vectors(rows, sample, difference, size, state)
    codes = scratch.changed[: settle_counts(edges, gold, difference, counts, scratch.changed)]
    change(edges, counts, Step(size, chain, lag, lag, progress, rows, sample, codes, scratch))


@change_row.of(Step)
def step_row(step, d, weights, lag, variance):
    add_lagged(d, step.size, step.progress[TOTAL], weights, step.lag.weights.shape[0] > 0, lag)


@change_token_features.of(Step)
def step_token_features(step, counts):
    """Change the weights of transition features token by token, and the matrix."""
    n = step.chain.transition.size
    weights, lag = step.chain.transition.reshape(n), step.lag.transition.reshape(n)
    for t in range(1, step.sample[1] - step.sample[0]):
        d = counts[t].reshape(n)
        n_changed = find_changed(d, step.scratch.changed)
        if n_changed == 0:
            continue
        step.progress[NORM] += change_feature_weights(
            step.rows.transitions,
            step.sample[0] + t,
            d,
            step.scratch.changed[:n_changed],
            step.size,
            step.chain.transition_weights,
            step.progress[TOTAL],
            step.lag.transition_weights,
            step.scratch.both,
        )
        change_row(step, d, weights, lag, lag)
        for p in range(n):
            d[p] = 0.0


@inline_lean_jit
def change_labels(rows, sample, difference, step, fit_intercept, state, scratch):
    """Add ``step`` times the differences of labels to the weights of features and biases."""
    chain, lag = state.chain, state.lag
    first, last = sample[0], sample[1]
    average, total = lag.weights.shape[0] > 0, state.progress[TOTAL]
    for t in range(first, last):
        d = difference[t - first]
        n_changed = find_changed(d, scratch.changed)
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


@inner_lean_jit
def change_vectors(rows, sample, difference, step, state):
    """Add ``step`` times the differences to the weights of vectors, which are in the panel."""
    panel, total = rows.panel, state.progress[TOTAL]
    average, size = state.lag.weights.shape[0] > 0, LANES * rows.vectors.columns.shape[0]
    for i in range(sum_panel(panel, sample[1] - sample[0], difference)):
        b, sums = panel.changing[i], panel.sums[i].reshape(size)
        exact, weights = panel.exact[b].reshape(size), panel.weights[b].reshape(size)
        for p in range(size):
            exact[p] += step * sums[p]
            weights[p] = exact[p]
        if average:
            lag = panel.lag[b].reshape(size)
            for p in range(size):
                lag[p] += total * (step * sums[p])


@inline_lean_jit
def find_changed(d, changed):
    """Write the numbers of the differences that are not zero; return how many there are."""
    n = 0
    for j in range(d.shape[0]):
        if d[j] != 0.0:
            changed[n] = j
            n += 1
    return n


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
