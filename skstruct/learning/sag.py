"""Stochastic average gradient with non-uniform sampling (Schmidt et al., 2015).

The objective is ``l2 / (2 n) |w|^2 + 1 / n sum_i f_i(w)``, where ``f_i`` is the weighted negative
log-likelihood of a sequence. A step computes the gradient of one ``f_i``, stores it in place of the
sequence's previous one, and goes along the mean of all stored gradients. The Lipschitz constant of
each gradient, its curvature, is estimated by line searches; curvatures determine the step size and
the probabilities of sampling. As an option, searches are skipped (SAG-NUS*): after the k-th search
in a row whose first trial is accepted, the next ``2 ** (k - 1)`` visits of the sequence keep its
curvature.

Every step changes all weights, by the penalty and the mean gradient. To do so lazily, weights of
features are stored as ``scale * weights``, and a feature that does not occur is updated only when
it occurs again: by ``travelled - behind`` times its total gradient, which has not changed since.
"""

from typing import NamedTuple

import numpy as np

from skstruct.blocks.visits import add_vector_scores, add_window_scores, load_vectors
from skstruct.chain.dense import Chain, prepare_transitions
from skstruct.chain.forward_backward import forward_backward
from skstruct.chain.protocol import finish
from skstruct.chain.scores import add_boundary, longest, path_score, value_of
from skstruct.compiled.jit import inline_jit, inner_jit, jit, lean_jit
from skstruct.compiled.rows import dot
from skstruct.input.constraints import forbid
from skstruct.learning.stochastic import (
    Difference,
    SequenceLearner,
    Settings,
    add_difference,
    build_tree,
    collect_features,
    draw_sequence,
    new_difference,
    run_epochs,
    set_priority,
)

__all__ = ["Settings", "StochasticAverageGradient", "solve"]

# Places in the array `AverageGradient.progress`.
SAG_SCALE = 0
TRAVELLED = 1
SEEN = 2  # number of sequences visited
SUM = 3  # sum of their curvatures
N_SAG_PROGRESS = 4
# Factor of a curvature estimate before every search, so that it can decrease.
EASING = 0.9
# Gradients with a smaller squared norm, without the weight, give no estimate of the curvature.
SMALLEST = 1e-8
# The weights are not divided by a smaller scale.
SMALLEST_SCALE = 1e-200


class StochasticAverageGradient(SequenceLearner):
    """SAG with non-uniform sampling (Schmidt et al., 2015) on the objective of a CRF.

    ``sum_i s_i nll_i(w) + l2 / 2 |w|^2``, with a weight for every combination of a feature and a
    label. It converges linearly, needs no learning rate, and stores the gradient of each sequence
    by its scores: of each token, and of the transitions in sum.

    Parameters
    ----------
    *problem, **options : object
        As of `SequenceLearner`, without costs.
    nonuniformity : float, default=0.5
        Probability of drawing a sequence by its curvature instead of uniformly.
    skip_searches : bool, default=False
        After ``k`` searches for the curvature of a sequence, one after the other, that accepted
        their first trial, skip the search at the next ``2 ** (k - 1)`` visits. The SDCA paper (Le
        Priol et al., 2018) calls this SAG-NUS*.
    start : Chain, default=None
        Weights to start from; by default, zero. The gradients of all sequences are computed there,
        because steps by a few of them would lead away again.
    """

    def __init__(self, *problem, nonuniformity=0.5, skip_searches=False, start=None, **options):
        super().__init__(*problem, **options)
        self._nonuniformity, self._skip_searches = float(nonuniformity), skip_searches
        model, k = self._model, self._model.n_labels
        nothing = np.zeros(self.n_sequences)
        self._state = AverageGradient(
            model.zero_chain(),
            model._replace(possible=None).zero_chain(),
            np.zeros(model.n_features),
            np.zeros((len(self._problem.labels), k)),
            np.zeros((self.n_sequences, k * k)),
            nothing,
            *np.zeros((2, self.n_sequences), np.int64),
            build_tree(nothing, False),
            build_tree(nothing, True),
            np.zeros(N_SAG_PROGRESS),
        )
        self._state.progress[SAG_SCALE] = 1.0
        if start is not None:
            for part, weights in zip(self._state.chain, self._numbered(start), strict=True):
                part[...] = weights
            self._visit(np.arange(self.n_sequences), np.empty(0), move=False)

    def epoch(self, random_state):
        """Make as many steps as there are sequences, in the first epoch one for each sequence.

        Parameters
        ----------
        random_state : RandomState instance
            Source of the order.
        """
        self.steps(*self._visits(random_state))

    def steps(self, order, draws):
        """Visit the sequences in `order`, then one for each of the uniform random numbers."""
        self._visit(order, draws, move=True)
        catch_up_all(self._state)
        self.n_updates += len(order) + len(draws)

    def _visit(self, order, draws, *, move):
        for numbers, part in self._portions(order, draws):
            self.n_oracle_calls += sag_steps(
                self._problem,
                self._distinct,
                numbers,
                part,
                self._nonuniformity,
                move,
                self._skip_searches,
                self._state,
            )

    def gradient_norm(self):
        """Norm of the gradient, from the gradient of each sequence at its last visit."""
        square = 0.0
        for weights, total in zip(forbid(self._state.chain, None), self._state.total, strict=True):
            gradient = (self._problem.l2 * weights + total).ravel()
            square += dot(gradient, gradient)
        return float(np.sqrt(square))

    def estimate(self):
        """Estimate the bound on the distance from the minimum; usually slightly too small."""
        norm, l2 = self.gradient_norm(), self._problem.l2
        return norm**2 / (2 * l2) if l2 > 0 else np.inf

    def notes(self):
        """Columns of the history that need no pass over the sequences."""
        return {"gradient_norm": self.gradient_norm()}

    def chain(self):
        """Weights in the order of the features."""
        return self._in_order(self._state.chain)


def solve(training_set, model, settings, start, monitor):
    """Learn as `skstruct.learning.solver` says."""
    data = training_set.effective(), model, settings, monitor
    return run_epochs(StochasticAverageGradient, *data, start=start)


class AverageGradient(NamedTuple):
    """Weights, and the gradient of each sequence at its last visit."""

    chain: Chain  # weights of features divided by the scale; other weights as they are
    total: Chain  # sum of the gradients
    behind: np.ndarray  # (n_features,), distance travelled when a feature last occurred
    node: np.ndarray  # (n_rows, n_labels), gradients by the scores of labels
    transition: np.ndarray  # (n_sequences, n_labels**2), and of transitions, summed
    curvature: np.ndarray  # (n_sequences,)
    accepted: np.ndarray  # (n_sequences,), last searches in a row that accepted their first trial
    skips: np.ndarray  # (n_sequences,), visits that are still to skip the search
    priority: np.ndarray  # tree of sums of the curvatures
    largest: np.ndarray  # tree of their maxima
    progress: np.ndarray  # (N_SAG_PROGRESS,)


class Visit(NamedTuple):
    """Workspace: the gradient of one sequence, and its scores before and after a step."""

    gradient: Difference  # and at the end of a visit, its change
    descent: np.ndarray  # (length, n_labels), decrease of the scores by a unit step
    scores: np.ndarray  # (length, n_labels), under the current weights
    trial: np.ndarray  # (length, n_labels), after a step; overwritten


@jit
def sag_steps(problem, distinct, order, draws, nonuniformity, move, skip_searches, state):
    """Visit the sequences in `order`, then one for each of the uniform numbers `draws`.

    Parameters
    ----------
    problem : Problem
        The training set.
    distinct : Distinct
        Distinct features of each sequence.
    order : ndarray of int
        Sequences.
    draws : ndarray
        Numbers below 1.
    nonuniformity : float
        Probability of drawing a sequence in proportion to its curvature.
    move : bool
        Take a step at each visit, instead of only storing the gradient.
    skip_searches : bool
        Skip the search for the curvature where the last ones accepted their first trial.
    state : AverageGradient
        Changed.

    Returns
    -------
    n_oracle_calls : int
        Number of times that marginals or partition functions were computed.
    """
    n_sequences = state.transition.shape[0]
    n_labels = state.chain.transition.shape[0]
    length = longest(problem.offsets, 0, n_sequences)
    visit = Visit(
        new_difference(problem, distinct, n_labels),
        np.empty((length, n_labels)),
        np.empty((length, n_labels)),
        np.empty((length, n_labels)),
    )
    n_calls = 0
    for k in range(order.shape[0] + draws.shape[0]):
        if k < order.shape[0]:
            i = order[k]
        else:
            u = draws[k - order.shape[0]]
            i = draw_sequence(state.priority, n_sequences, nonuniformity, u, False)
        catch_up(distinct.features, distinct.start[i], distinct.start[i + 1], state)
        catch_up(problem.vectors.columns, 0, problem.vectors.columns.shape[0], state)
        n_calls += visit_sequence(problem, distinct, i, skip_searches, state, visit)
        if move:
            advance(problem.l2 / n_sequences, state, problem.fit_intercept)
    return n_calls


@inline_jit
def catch_up(features, first, last, state):
    """Bring the weights of ``features[first:last]`` up to date."""
    weights, total = state.chain.weights, state.total.weights
    for u in range(first, last):
        f = features[u]
        missed = state.progress[TRAVELLED] - state.behind[f]
        state.behind[f] = state.progress[TRAVELLED]
        for j in range(weights.shape[1]):
            weights[f, j] -= missed * total[f, j]


@inline_jit
def visit_sequence(problem, distinct, i, skip_searches, state, visit):
    """Update the gradient of sequence ``i`` and the estimate of its curvature.

    Returns the number of times that marginals or partition functions were computed.
    """
    a, b = problem.offsets[i], problem.offsets[i + 1]
    gradient = visit.gradient
    value = sequence_gradient(problem, i, state, visit)
    square = collect_features(problem, distinct, i, gradient)
    known = state.curvature[i] > 0.0
    curvature, n_trials = state.curvature[i], 0
    if state.skips[i] > 0:
        state.skips[i] -= 1
    else:
        weight = problem.sample_weight[i]
        curvature = EASING * curvature if known else weight
        if square > SMALLEST * weight * weight:
            curvature, n_trials = search(
                problem, distinct, i, state, visit, value, square, curvature
            )
            if skip_searches:
                plan_skips(state, i, n_trials)
    replace_gradient(gradient.node[: b - a], state.node[a:b])
    size = gradient.transition.shape[0]
    replace_gradient(gradient.transition.reshape((1, size)), state.transition[i : i + 1])
    collect_features(problem, distinct, i, gradient)
    add_difference(problem, distinct, i, gradient, 1.0, state.total)
    state.progress[SEEN] += 0.0 if known else 1.0
    state.progress[SUM] += curvature - state.curvature[i]
    state.curvature[i] = curvature
    set_priority(state.priority, i, curvature, False)
    set_priority(state.largest, i, curvature, True)
    return 1 + n_trials


@jit
def search(problem, distinct, i, state, visit, value, square, curvature):
    """Double the curvature until the loss falls as far as it says; return the number of trials."""
    fill_descent(problem, distinct, i, visit)
    n_trials = 0
    while True:
        n_trials += 1
        reached = trial_value(problem, i, state, visit, 1.0 / curvature)
        # The last term ends the search where the decrease is lost in rounding. NaN ends it, too, as
        # the curvature is infinite in the end.
        if not reached > value - square / (2.0 * curvature) + 1e-13 * abs(value):
            return curvature, n_trials
        curvature *= 2.0


@inline_jit
def plan_skips(state, i, n_trials):
    """Say how many of the next visits of sequence ``i`` skip the search."""
    if n_trials > 1:
        state.accepted[i] = 0
    else:
        state.skips[i] = 1 << state.accepted[i]
        state.accepted[i] += 1


@inner_jit
def replace_gradient(gradient, stored):
    for t in range(gradient.shape[0]):
        for k in range(gradient.shape[1]):
            renewed = gradient[t, k]
            gradient[t, k] = renewed - stored[t, k]
            stored[t, k] = renewed


@inline_jit
def sequence_gradient(problem, i, state, visit):
    """Write the scores of sequence ``i`` and the gradient by them; return the loss."""
    a, b = problem.offsets[i], problem.offsets[i + 1]
    scores, trial, node = visit.scores, visit.trial, visit.gradient.node
    n_labels = node.shape[1]
    weight = problem.sample_weight[i]
    chain, rows = state.chain, problem.rows
    for t in range(b - a):
        for j in range(n_labels):
            scores[t, j] = 0.0
        for k in range(rows.indptr[a + t], rows.indptr[a + t + 1]):
            x = value_of(rows.data, k)
            row = chain.weights[rows.indices[k]]
            for j in range(n_labels):
                scores[t, j] += x * row[j]
    if problem.vectors.columns.shape[0] > 0:
        window = visit.gradient.window
        load_vectors(problem.vectors, a, b, window.values)
        add_vector_scores(problem.vectors, window, b - a, chain.weights, scores)
    for t in range(b - a):
        for j in range(n_labels):
            scores[t, j] = state.progress[SAG_SCALE] * scores[t, j] + chain.intercept[j]
    add_boundary(chain.start, chain.end, scores, b - a)
    for t in range(b - a):
        for j in range(n_labels):
            trial[t, j] = scores[t, j]
    transitions = prepare_transitions(chain.transition)
    expected = np.zeros((n_labels, n_labels))
    log_z = forward_backward(trial, b - a, transitions, node, np.empty(b - a), 1.0, expected)
    finish(transitions, expected)
    gold = problem.labels[a:b]
    for t in range(b - a):
        node[t, gold[t]] -= 1.0
        if t > 0:
            expected[gold[t - 1], gold[t]] -= 1.0
        for j in range(n_labels):
            node[t, j] *= weight
    for y in range(n_labels):
        for j in range(n_labels):
            visit.gradient.transition[y * n_labels + j] = weight * expected[y, j]
    return weight * (log_z - path_score(scores, b - a, transitions.edges, gold))


@inline_jit
def fill_descent(problem, distinct, i, visit):
    """Write the scores of sequence ``i`` with its gradient in place of the weights."""
    a, b = problem.offsets[i], problem.offsets[i + 1]
    rows, descent, node = problem.rows, visit.descent, visit.gradient.node
    window = visit.gradient.window
    n_labels = node.shape[1]
    for t in range(b - a):
        score = descent[t]
        for j in range(n_labels):
            score[j] = 0.0
        for k in range(rows.indptr[a + t], rows.indptr[a + t + 1]):
            x = value_of(rows.data, k)
            row = visit.gradient.features[distinct.position[k]]
            for j in range(n_labels):
                score[j] += x * row[j]
    add_window_scores(window, b - a, window.sums, window.every, descent)
    if problem.fit_intercept:
        for j in range(n_labels):
            bias = 0.0
            for t in range(b - a):
                bias += node[t, j]
            for t in range(b - a):
                descent[t, j] += bias
        add_boundary(node[0], node[b - a - 1], descent, b - a)


@inline_jit
def trial_value(problem, i, state, visit, distance):
    """Loss of sequence ``i`` after a step of this length against its gradient."""
    a, b = problem.offsets[i], problem.offsets[i + 1]
    trial, n_labels = visit.trial, visit.trial.shape[1]
    transition = np.empty((n_labels, n_labels))
    for y in range(n_labels):
        for j in range(n_labels):
            moved = distance * visit.gradient.transition[y * n_labels + j]
            transition[y, j] = state.chain.transition[y, j] - moved
    for t in range(b - a):
        for j in range(n_labels):
            trial[t, j] = visit.scores[t, j] - distance * visit.descent[t, j]
    transitions = prepare_transitions(transition)
    gold_score = path_score(trial, b - a, transitions.edges, problem.labels[a:b])
    node, scale = np.empty((b - a, n_labels)), np.empty(b - a)
    log_z = forward_backward(trial, b - a, transitions, node, scale, 0.0, transition)
    return problem.sample_weight[i] * (log_z - gold_score)


@inline_jit
def advance(penalty, state, fit_intercept):
    """Take a step along the mean gradient."""
    progress, chain, total = state.progress, state.chain, state.total
    seen = progress[SEEN]
    mean, largest = progress[SUM] / seen, state.largest[1]
    rate = 0.5 * (1.0 / (mean + penalty) + 1.0 / (largest + penalty))
    shrink = 1.0 - rate * penalty
    if progress[SAG_SCALE] * shrink < SMALLEST_SCALE:
        catch_up_all(state)
        step_at_once(chain.weights, total.weights, shrink, rate / seen)
    else:
        progress[SAG_SCALE] *= shrink
        progress[TRAVELLED] += rate / (seen * progress[SAG_SCALE])
    n_labels = chain.transition.shape[0]
    for y in range(n_labels):
        for j in range(n_labels):
            moved = rate / seen * total.transition[y, j]
            chain.transition[y, j] = shrink * chain.transition[y, j] - moved
    if fit_intercept:
        for j in range(n_labels):
            chain.intercept[j] = shrink * chain.intercept[j] - rate / seen * total.intercept[j]
            chain.start[j] = shrink * chain.start[j] - rate / seen * total.start[j]
            chain.end[j] = shrink * chain.end[j] - rate / seen * total.end[j]


@lean_jit
def step_at_once(weights, total, shrink, step):
    """Change the weights of all features now, where a strong penalty leaves next to no scale."""
    for f in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            weights[f, j] = shrink * weights[f, j] - step * total[f, j]


@jit
def catch_up_all(state):
    """Bring all weights of features up to date, and set the scale to one."""
    weights, total, progress = state.chain.weights, state.total.weights, state.progress
    for f in range(weights.shape[0]):
        missed = progress[TRAVELLED] - state.behind[f]
        state.behind[f] = 0.0
        for j in range(weights.shape[1]):
            weights[f, j] = progress[SAG_SCALE] * (weights[f, j] - missed * total[f, j])
    progress[SAG_SCALE], progress[TRAVELLED] = 1.0, 0.0
