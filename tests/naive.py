"""Plain oracles: what kernels and learners must compute, written the obvious way.

Scores are an array ``(length, n_labels)`` and a transition matrix ``(n_labels, n_labels)`` from
row to column. Sequences of tokens are lists of dense matrices ``(length_i, n_features)``, their
labels lists of integer codes, and weights a `Weights`.
"""

from collections import Counter
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np


class Weights(NamedTuple):
    """The weights of a linear chain, in the shapes of a fitted tagger's attributes."""

    coef: np.ndarray  # (n_labels, n_features)
    transition: np.ndarray  # (n_labels, n_labels)
    intercept: np.ndarray  # (n_labels,)
    start: np.ndarray  # (n_labels,)
    end: np.ndarray  # (n_labels,)


def zero_weights(n_labels, n_features):
    k = n_labels
    return Weights(np.zeros((k, n_features)), np.zeros((k, k)), *(np.zeros(k) for _ in range(3)))


def weights_of(tagger):
    """The weights of a fitted tagger."""
    return Weights(tagger.coef_, tagger.transition_, tagger.intercept_, tagger.start_, tagger.end_)


def emission_scores(X, weights):
    scores = np.zeros((len(X), len(weights.intercept)))
    for t, x in enumerate(X):
        for y in range(scores.shape[1]):
            scores[t, y] = weights.intercept[y] + sum(
                weights.coef[y, f] * x[f] for f in range(len(x))
            )
            if t == 0:
                scores[t, y] += weights.start[y]
            if t == len(X) - 1:
                scores[t, y] += weights.end[y]
    return scores


def path_score(scores, transition, labels):
    score = sum(scores[t, y] for t, y in enumerate(labels))
    return score + sum(transition[i, j] for i, j in pairwise(labels))


# ---------------------------------------------------------------- by listing all label sequences


def labellings(length, n_labels):
    return list(product(range(n_labels), repeat=length))


def n_best(scores, transition, n):
    """The best label sequences with their scores, as far as these are finite.

    Of equal scores the one with the smaller label comes first, the last token counting most.
    """
    found = [
        (labels, path_score(scores, transition, labels)) for labels in labellings(*scores.shape)
    ]
    found = [(labels, score) for labels, score in found if score > -np.inf]
    return sorted(found, key=lambda item: (-item[1], item[0][::-1]))[:n]


def beam(scores, transition, width, n):
    """The best label sequences with scores of those whose every prefix is among the `width` best.

    Those with a score of minus infinity only where there are no others; ties as in `n_best`.
    """
    prefixes = [((), 0.0)]
    for row in scores:
        prefixes = [
            ((*labels, j), row[j] + (score + (transition[labels[-1], j] if labels else 0.0)))
            for labels, score in prefixes
            for j in range(len(row))
        ]
        prefixes = sorted(prefixes, key=lambda item: (-item[1], item[0][::-1]))[:width]
    return [item for item in prefixes[:n] if item[1] > -np.inf] or prefixes[:1]


def listed_marginals(scores, transition):
    """Log-partition, node marginals, and pair marginals of each two neighbours."""
    length, n_labels = scores.shape
    node = np.zeros((length, n_labels))
    pairs = np.zeros((max(length - 1, 0), n_labels, n_labels))
    paths = labellings(length, n_labels)
    log_p = np.array([path_score(scores, transition, labels) for labels in paths])
    log_z = np.logaddexp.reduce(log_p)
    for labels, p in zip(paths, np.exp(log_p - log_z), strict=True):
        for t, y in enumerate(labels):
            node[t, y] += p
            if t > 0:
                pairs[t - 1, labels[t - 1], y] += p
    return log_z, node, pairs


# ----------------------------------------------------------------------------- token by token


def viterbi(scores, transition):
    """Best label sequence and its score; ties as in `n_best`."""
    length = len(scores)
    if length == 0:
        return [], 0.0
    best, back = scores[0], []
    for t in range(1, length):
        extended = best[:, None] + transition
        back.append(extended.argmax(axis=0))
        best = extended.max(axis=0) + scores[t]
    labels = [int(best.argmax())]
    for predecessor in reversed(back):
        labels.append(int(predecessor[labels[-1]]))
    return labels[::-1], best.max()


def marginals(scores, transition):
    """Log-partition and node marginals, over logarithms."""
    length = len(scores)
    alpha, beta = scores.copy(), np.zeros_like(scores)
    for t in range(1, length):
        alpha[t] += np.logaddexp.reduce(alpha[t - 1][:, None] + transition)
    for t in range(length - 2, -1, -1):
        beta[t] = np.logaddexp.reduce(transition + scores[t + 1] + beta[t + 1], axis=1)
    log_z = np.logaddexp.reduce(alpha[-1])
    return log_z, np.exp(alpha + beta - log_z)


# ----------------------------------------------------------------------------------- learners


def token_accuracy(X, y, weights):
    right = total = 0
    for x, gold in zip(X, y, strict=True):
        predicted, _ = viterbi(emission_scores(x, weights), weights.transition)
        right += sum(a == b for a, b in zip(predicted, gold, strict=True))
        total += len(gold)
    return right / total


def crf_objective(X, y, weights, l2, sample_weight=None):
    """Weighted negative log-likelihood with its penalty."""
    sample_weight = np.ones(len(X)) if sample_weight is None else sample_weight
    value = l2 / 2 * sum(np.sum(part**2) for part in weights)
    for x, gold, s in zip(X, y, sample_weight, strict=True):
        if len(x) > 0:
            scores = emission_scores(x, weights)
            log_z, _ = marginals(scores, weights.transition)
            value += s * (log_z - path_score(scores, weights.transition, gold))
    return value


def crf_gradient(x, gold, weights):
    """Gradient of the negative log-likelihood of one sequence."""
    gradient = zero_weights(*weights.coef.shape)
    scores = emission_scores(x, weights)
    _, node, pairs = listed_marginals(scores, weights.transition)
    for t, label in enumerate(gold):
        node[t, label] -= 1
        if t > 0:
            pairs[t - 1, gold[t - 1], label] -= 1
    gradient.coef[:] = node.T @ x
    gradient.transition[:] = pairs.sum(axis=0)
    gradient.intercept[:] = node.sum(axis=0)
    gradient.start[:], gradient.end[:] = node[0], node[-1]
    return gradient


def dual_free_share(found, kept, gold, squares, pair_squares, strength, past):
    """How far dual-free ascent goes from the marginals it has kept of a sequence to those found.

    ``found`` and ``kept`` are node marginals and a list of pair marginals, less those of the gold
    labels; ``past`` has the divergence at the last visit and the share, and is changed.
    """
    one_hot = np.eye(len(found[0][0]))[list(gold)]
    p, q = found[0] + one_hot, kept[0] + one_hot
    both = np.where(p + q > 1e-12, p + q, 1e-12)
    divergence = np.sum(2 * (p - q) ** 2 / both)
    square = sum(n * np.sum(d**2) for n, d in zip(squares, p - q, strict=True))
    square += sum(
        n * np.sum((a - b) ** 2) for n, a, b in zip(pair_squares, *(found[1], kept[1]), strict=True)
    )
    worse = past["divergence"] > 0 and divergence > past["divergence"]
    past["share"] = max(0.8 * past["share"], 0.05) if worse else min(1.05 * past["share"], 1)
    past["divergence"] = divergence
    return past["share"] * divergence / (divergence + strength * square) if divergence > 0 else 0


class DualFree:
    """Dual-free ascent; what it keeps is rounded to single precision.

    Scores of transitions are those of the weights when an epoch begins, and then after two tokens
    for each label. With a threshold, marginals of a token that would change by 1e-4 or less stay as
    they are.
    """

    def __init__(self, X, y, strength, vector, threshold=0.0):
        self.X, self.y, self.strength, self.vector = X, y, strength, vector
        self.threshold = threshold
        k = len(vector.transition)
        self.node = [np.zeros((len(x), k), np.float32) for x in X]
        self.pairs = [np.zeros((k, k), np.float32) for _ in X]
        self.past = [{"divergence": 0.0, "share": 0.8} for _ in X]
        self.loss = np.zeros(len(X))

    @property
    def weights(self):
        parts = (np.sign(v) * np.maximum(np.abs(v) - self.threshold, 0) for v in self.vector)
        return type(self.vector)(*parts)

    def epoch(self, order, fit_intercept=True):
        self.transition, n_tokens = self.weights.transition, 0
        for i in order:
            if n_tokens >= 2 * len(self.transition):
                self.transition, n_tokens = self.weights.transition, 0
            self.visit(i, fit_intercept)
            n_tokens += len(self.X[i])

    def visit(self, i, fit_intercept=True):
        x, gold = self.X[i], self.y[i]
        weights = self.weights._replace(transition=self.transition)
        if len(x) == 0:
            return
        scores = emission_scores(x, weights)
        log_z, node, pairs = listed_marginals(scores, weights.transition)
        self.loss[i] = log_z - path_score(scores, weights.transition, gold)
        gold_node, gold_pairs = gold_marginals(gold, len(weights.transition))
        found = node - gold_node, pairs.sum(axis=0) - gold_pairs.sum(axis=0)
        share = dual_free_share(
            (found[0], [found[1]]),
            (self.node[i], [self.pairs[i]]),
            gold,
            1 + np.sum(x**2, axis=1),
            [1.0],
            self.strength[i],
            self.past[i],
        )
        changes = []
        for new, kept in zip(found, (self.node[i], self.pairs[i]), strict=True):
            step = share * (new - kept.astype(float))
            if kept is self.node[i] and self.threshold > 0:
                step[np.abs(step).max(axis=1) <= 1e-4] = 0
            moved = (kept + step).astype(np.float32)
            changes.append(moved.astype(float) - kept)
            kept[:] = moved
        change = expected_features(x, changes[0], changes[1][None], fit_intercept=fit_intercept)
        for part, addend in zip(self.vector, change, strict=True):
            part -= self.strength[i] * addend


def crf_weight_masks(X, y, n_labels, *, min_freq, all_states, all_transitions, sample_weight):
    """Which features and label pairs a CRF has weights for, as boolean `coef` and `transition`."""
    n_features = X[0].shape[1]
    state, transition = {}, {}
    if all_states:
        occurring = {f for x in X for token in x for f in range(n_features) if token[f] != 0}
        state = {(label, f): 0.0 for label in range(n_labels) for f in occurring}
    if all_transitions:
        transition = {pair: 0.0 for pair in product(range(n_labels), repeat=2)}
    for x, gold, s in zip(X, y, sample_weight, strict=True):
        for t, label in enumerate(gold):
            for f in range(n_features):
                if x[t, f] != 0:
                    state[label, f] = state.get((label, f), 0.0) + s * abs(x[t, f])
            if t > 0:
                pair = gold[t - 1], label
                transition[pair] = transition.get(pair, 0.0) + s
    masks = zero_weights(n_labels, n_features)
    for mask, frequency in ((masks.coef, state), (masks.transition, transition)):
        for position, value in frequency.items():
            mask[position] = value >= min_freq
    return masks.coef.astype(bool), masks.transition.astype(bool)


class Perceptron:
    """Structured perceptron that sums the weights after every sequence to average them."""

    def __init__(self, n_labels, n_features, *, fit_intercept=True, weights=None):
        self.fit_intercept = fit_intercept
        self.weights = zero_weights(n_labels, n_features)
        if weights is not None:
            self.weights = Weights(*(part.copy() for part in weights))
        self.total = zero_weights(n_labels, n_features)
        self.n_samples = 0

    def epoch(self, X, y, order, sample_weight=None):
        """Visit sequences; return the number of wrong tokens, and the loss."""
        mistakes, loss = 0, 0.0
        for i in order:
            s = 1.0 if sample_weight is None else sample_weight[i]
            if s == 0 or len(X[i]) == 0:
                continue
            wrong, sample_loss = self._visit(X[i], y[i], s)
            mistakes += wrong
            loss += s * sample_loss
            for total, part in zip(self.total, self.weights, strict=True):
                total += part
            self.n_samples += 1
        return mistakes, loss

    def _visit(self, x, gold, step):
        w = self.weights
        scores = emission_scores(x, w)
        predicted, best = viterbi(scores, w.transition)
        wrong = sum(a != b for a, b in zip(gold, predicted, strict=True))
        if wrong == 0:
            return 0, 0.0
        loss = best - path_score(scores, w.transition, gold)
        for labels, change in ((gold, step), (predicted, -step)):
            for t, label in enumerate(labels):
                w.coef[label] += change * x[t]
                if t > 0:
                    w.transition[labels[t - 1], label] += change
                if self.fit_intercept:
                    w.intercept[label] += change
            if self.fit_intercept:
                w.start[labels[0]] += change
                w.end[labels[-1]] += change
        return wrong, loss

    def average(self):
        return Weights(*(part / self.n_samples for part in self.total))


# -------------------------------------------------------------------- dual coordinate ascent


def chain_sum(function, node, pairs):
    """Sum of a function of marginals over the cliques of a chain, less that over its separators."""
    if len(node) == 1:
        return function(node[0])
    return sum(map(function, pairs)) - sum(map(function, node[1:-1]))


def chain_entropy(node, pairs):
    return chain_sum(lambda p: -np.sum(p * np.log(p)), node, pairs)


def expected_features(x, node, pairs, *, fit_intercept=True):
    """Mean of the features under marginals, or of a difference of marginals."""
    mean = zero_weights(node.shape[1], x.shape[1])
    mean.coef[:] = node.T @ x
    mean.transition[:] = np.sum(pairs, axis=0)
    if fit_intercept:
        mean.intercept[:] = node.sum(axis=0)
        mean.start[:], mean.end[:] = node[0], node[-1]
    return mean


def gold_marginals(gold, n_labels):
    node = np.eye(n_labels)[list(gold)]
    return node, node[:-1, :, None] * node[1:, None, :]


def conjugate_weights(X, y, marginals_of, sample_weight, l2, *, fit_intercept=True):
    """The weights that belong to node and pair marginals of each sequence."""
    total = zero_weights(marginals_of[0][0].shape[1], X[0].shape[1])
    for x, gold, (node, pairs), s in zip(X, y, marginals_of, sample_weight, strict=True):
        gold_node, gold_pairs = gold_marginals(gold, node.shape[1])
        difference = gold_node - node, gold_pairs - pairs
        for part, addend in zip(
            total, expected_features(x, *difference, fit_intercept=fit_intercept), strict=True
        ):
            part += s / l2 * addend
    return total


def dual_objective(X, y, marginals_of, sample_weight, l2, *, fit_intercept=True):
    """Lower bound on `crf_objective` that the marginals give."""
    weights = conjugate_weights(X, y, marginals_of, sample_weight, l2, fit_intercept=fit_intercept)
    entropy = sum(s * chain_entropy(*m) for s, m in zip(sample_weight, marginals_of, strict=True))
    return entropy - l2 / 2 * sum(np.sum(part**2) for part in weights)


def sdca_update(x, s, node, pairs, weights, *, l2, tol, fit_intercept=True):
    """One step of dual coordinate ascent in the block of one sequence.

    Returns the new marginals, weights, and the gap before the step.
    """
    scores = emission_scores(x, weights)
    _, new_node, new_pairs = listed_marginals(scores, weights.transition)

    def divergence(a_node, a_pairs, b_node, b_pairs):
        terms = [a * np.log(a / b) for a, b in ((a_node, b_node), (a_pairs, b_pairs))]
        return chain_sum(np.sum, *terms)

    gap = divergence(node, pairs, new_node, new_pairs)
    slope = gap + divergence(new_node, new_pairs, node, pairs)
    d_node, d_pairs = new_node - node, new_pairs - pairs
    change = expected_features(x, d_node, d_pairs, fit_intercept=fit_intercept)
    square = s / l2 * sum(np.sum(part**2) for part in change)

    def derivatives(gamma):
        at = node + gamma * d_node, pairs + gamma * d_pairs
        first = [
            -d * (np.log(p) - np.log(n))
            for d, p, n in zip((d_node, d_pairs), at, (new_node, new_pairs), strict=True)
        ]
        second = [-(d**2) / p for d, p in zip((d_node, d_pairs), at, strict=True)]
        return (
            chain_sum(np.sum, *first) - gamma * square,
            chain_sum(np.sum, *second) - square,
        )

    low, high, gamma, moved = 0.0, 1.0, slope / (slope + square), np.inf
    while square > 0 and moved >= tol:
        first, second = derivatives(gamma)
        low, high = (gamma, high) if first > 0 else (low, gamma)
        following = gamma - first / second
        if not low < following < high:
            following = (low + high) / 2
        moved, gamma = abs(following - gamma), following
    new_weights = Weights(*(w - s / l2 * gamma * c for w, c in zip(weights, change, strict=True)))
    return node + gamma * d_node, pairs + gamma * d_pairs, new_weights, gap


# ------------------------------------------------------------------- stochastic average gradient


def sag_weights(X, y, order, *, l2, sample_weight, fit_intercept=True, skip_searches=False):
    """Weights after steps along the mean of the gradients that each sequence had last.

    The sequences come in the order given; the curvatures of their losses are found by doubling.
    Also returns the number of calls of the oracle.
    """
    n = len(X)
    weights = zero_weights(1 + max(map(max, y)), X[0].shape[1])
    gradients, curvatures, n_calls = {}, {}, 0
    accepted, skips = Counter(), Counter()
    for i in order:

        def value(w, i=i):
            return crf_objective([X[i]], [y[i]], w, 0.0, [sample_weight[i]])

        gradient = Weights(*(sample_weight[i] * part for part in crf_gradient(X[i], y[i], weights)))
        if not fit_intercept:
            for part in gradient[2:]:
                part[:] = 0
        square = sum(np.sum(part**2) for part in gradient)
        n_calls += 1
        if skips[i]:
            skips[i] -= 1
            curvature = curvatures[i]
        else:
            first = curvature = 0.9 * curvatures[i] if i in curvatures else sample_weight[i]
            while square > 1e-8 * sample_weight[i] ** 2:
                n_calls += 1
                away = Weights(*(w - g / curvature for w, g in zip(weights, gradient, strict=True)))
                if value(away) <= value(weights) - square / (2 * curvature):
                    accepted[i] = accepted[i] + 1 if curvature == first else 0
                    skips[i] = 2 ** (accepted[i] - 1) if skip_searches and accepted[i] else 0
                    break
                curvature *= 2
        gradients[i], curvatures[i] = gradient, curvature
        known = np.array(list(curvatures.values()))
        rate = (1 / (known.mean() + l2 / n) + 1 / (known.max() + l2 / n)) / 2
        mean = [sum(parts) / len(gradients) for parts in zip(*gradients.values(), strict=True)]
        weights = Weights(
            *(w - rate * (m + l2 / n * w) for w, m in zip(weights, mean, strict=True))
        )
    return weights, curvatures, n_calls


def sapo(X, y, sample_weight, epoch_orders, *, weights, n_found, l2, rate, decay, intercept):
    """Last weights, their average over the samples, and the loss of the last epoch."""
    n_labels = len(weights.intercept)
    weights = Weights(*(part.copy() for part in weights))
    total = zero_weights(n_labels, X[0].shape[1])
    n_seen = 0
    for order in epoch_orders:
        loss = 0.0
        for i in order:
            if len(X[i]) == 0:
                continue
            scores = emission_scores(X[i], weights)
            found = n_best(scores, weights.transition, n_found)
            exp = np.exp([score - found[0][1] for _, score in found])
            gold_score = path_score(scores, weights.transition, y[i])
            loss += sample_weight[i] * (found[0][1] + np.log(exp.sum()) - gold_score)
            step = rate * sample_weight[i]
            changes = [(y[i], step)]
            changes += [
                (labels, -step * p) for (labels, _), p in zip(found, exp / exp.sum(), strict=True)
            ]
            for labels, change in changes:
                for t, label in enumerate(labels):
                    weights.coef[label] += change * X[i][t]
                    weights.intercept[label] += change * intercept
                    if t > 0:
                        weights.transition[labels[t - 1], label] += change
                weights.start[labels[0]] += change * intercept
                weights.end[labels[-1]] += change * intercept
            n_seen += 1
            for part, sum_of_parts in zip(weights, total, strict=True):
                part *= 1 - rate * l2 / len(order)
                sum_of_parts += part
            rate *= decay ** (1 / len(order))
    return weights, Weights(*(part / n_seen for part in total)), loss
