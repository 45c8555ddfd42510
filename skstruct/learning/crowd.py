"""Annotators who err: how each confuses labels, and a CRF of the right ones, by EM.

The right labels are hidden. The CRF says how probable they are, and a matrix of confusions for
each annotator how probable the given labels are, token by token, if they are right.
"""

from functools import partial
from itertools import count, islice
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from skstruct.blocks.dense import DenseBlock
from skstruct.blocks.rows import BlockRows, Placed, scored
from skstruct.chain.dense import Chain
from skstruct.chain.scores import Rows
from skstruct.compiled.rows import dot
from skstruct.decoding import best_labels
from skstruct.input.constraints import check_decoded, forbid
from skstruct.learning.lbfgs import minimize_lbfgs, separate_minimum
from skstruct.matrices import read_only

# Most steps of L-BFGS of an M step, and those over which its gain is measured. It need not come
# to the minimum: whatever decreases its objective decreases that of EM.
_MOST_STEPS, _PERIOD = 100, 5
# An M step ends when it gained less than this share of the tolerance.
_GAIN = 0.1
# Most iterations of the model of Dawid and Skene, and the change of a probability that ends them.
_MOST_DAWID_SKENE, _LEAST_CHANGE = 100, 1e-4
# Votes that every label has before any is counted, for tokens that nobody has labelled.
_NO_VOTE = 1e-3


class Answers(NamedTuple):
    """Labels that annotators have given to tokens."""

    table: sp.csr_array  # (n_rows, n_annotators * n_labels), one for each label that is given
    n_annotators: int
    n_labels: int

    @classmethod
    def of(cls, rows, annotators, codes, shape):
        """Table of the numbers of rows, annotators and labels; `shape` has one more of each."""
        n_rows, n_annotators, n_labels = shape
        places = rows, annotators * n_labels + codes
        size = n_rows, n_annotators * n_labels
        return cls(sp.csr_array((np.ones(len(rows)), places), shape=size), n_annotators, n_labels)

    def votes(self):
        """Number of annotators who give each label to each token, (n_rows, n_labels)."""
        return self.table @ np.tile(np.eye(self.n_labels), (self.n_annotators, 1))

    def evidence(self, log_confusion):
        """Log-likelihood of each right label of each token, (n_rows, n_labels).

        The logarithm of the confusions has the shape (n_annotators, n_labels, n_labels), from right
        to given labels.
        """
        return self.table @ log_confusion.transpose(0, 2, 1).reshape(-1, self.n_labels)

    def confusion(self, proba, weight, prior):
        """The most probable confusions, given the probabilities of the right labels.

        Parameters
        ----------
        proba : ndarray of shape (n_rows, n_labels)
        weight : ndarray of shape (n_rows,)
        prior : ndarray of shape (n_labels, n_labels)
            Numbers of tokens that are counted before any, of each right and given label.

        Returns
        -------
        confusion : ndarray of shape (n_annotators, n_labels, n_labels)
        """
        shape = self.n_annotators, self.n_labels, self.n_labels
        counts = (self.table.T @ (proba * weight[:, None])).reshape(shape).transpose(0, 2, 1)
        counts = counts + prior
        return counts / counts.sum(axis=2, keepdims=True)


def dawid_skene(answers, weight, prior):
    """Learn how annotators confuse labels, where each token stands alone (Dawid and Skene, 1979).

    It begins with majority vote. Parameters are as of `Answers.confusion`.

    Returns
    -------
    scores : ndarray of shape (n_rows, n_labels)
        Logarithms of the probabilities of the right labels, plus a number for each token.
    """
    votes = answers.votes()
    # A token without a vote is like all others.
    proba = votes + _NO_VOTE * (weight @ votes + 1)
    proba /= proba.sum(axis=1, keepdims=True)
    for _ in range(_MOST_DAWID_SKENE):
        shares = weight @ proba + 1e-9
        evidence = answers.evidence(np.log(answers.confusion(proba, weight, prior)))
        scores = np.log(shares / shares.sum()) + evidence
        before, proba = proba, softmax(scores, axis=1)
        if np.abs(proba - before).max() < _LEAST_CHANGE:
            break
    return scores


def with_scores(rows, chain, scores):
    """Rows and weights for decoding, where labels of tokens have further scores.

    Parameters
    ----------
    rows : Rows or TransitionRows
    chain : Chain or any other
    scores : ndarray of shape (n_rows, n_labels)

    Returns
    -------
    rows : Rows or TransitionRows
    chain : Chain or any other
    """
    n_features, n_labels = chain.weights.shape
    weights = read_only(np.concatenate([chain.weights, np.eye(n_labels)]))
    placed = Placed(n_features, DenseBlock(np.ascontiguousarray(scores)))
    return scored(BlockRows(rows, (placed,)), chain._replace(weights=weights))


def best_possible(scores, offsets, possible):
    """Labels with the largest sums of scores that a constraint allows; a ValueError if none are."""
    n_rows, k = scores.shape
    nothing = Rows(np.zeros(n_rows + 1, np.int64), np.empty(0, np.int32), np.empty(0))
    chain = forbid(Chain(np.zeros((0, k)), np.zeros((k, k)), *np.zeros((3, k))), possible)
    rows, chain = with_scores(read_only(nothing), read_only(chain), scores)
    codes = best_labels(rows, offsets, chain, None)
    if possible is not None:
        check_decoded(codes, None, offsets, possible)
    return codes


class Expectation(NamedTuple):
    """What an E step finds."""

    proba: np.ndarray  # (n_rows, n_labels) probabilities of the right labels
    gradient: np.ndarray  # (size,) see `improve`
    log_likelihood: float  # of the given labels
    value: float  # objective of EM


def expect(objective, answers, confusion, prior, theta, run):
    """E step: probabilities of the right labels, given features and annotators, exactly.

    Parameters
    ----------
    objective : CRFObjective
        Of any possible labels of the same sequences.
    answers : Answers
    confusion : ndarray of shape (n_annotators, n_labels, n_labels)
    prior : ndarray of shape (n_labels, n_labels)
    theta : ndarray of shape (size,)
        Parameters of the CRF.
    run : callable
        From `skstruct.utils.parallel.range_runner`.

    Returns
    -------
    expectation : Expectation
    """
    log_confusion = np.log(confusion)
    scores, labels = answers.evidence(log_confusion), objective.labels
    each, weight = np.arange(len(labels)), weight_of_tokens(objective)
    given, gradient = objective.likelihood.with_scores(scores), np.empty(objective.size)
    without = sum(objective.likelihood.value_and_gradient(theta, gradient, run))
    within = sum(given.value_and_gradient(theta, gradient, run))
    proba = given.residual / weight[:, None]
    proba[each, labels] += 1.0
    # Both count the labels of the objective, which cancel out.
    log_likelihood = within + float(weight @ scores[each, labels]) - without
    value = objective.l2 / 2 * dot(theta, theta) - log_likelihood
    value -= float(np.sum(prior * log_confusion))
    return Expectation(np.maximum(proba, 0.0), gradient, log_likelihood, value)


def weight_of_tokens(objective):
    """Weight of each token of an objective, its sequence's."""
    return np.repeat(objective.sample_weight, np.diff(objective.offsets))


def improve(objective, gradient, theta, tol, run):
    """M step of the CRF: decrease the expected negative log-likelihood, by L-BFGS.

    It is linear in the expected counts of features and transitions, by which the objective of any
    labels differs from it: minus `gradient`, the gradient of that objective's likelihood given
    the annotators, where the expectation was taken.

    Returns
    -------
    theta : ndarray of shape (size,)
    """
    linear = gradient.copy()
    linear[objective.vector.pinned] = 0.0

    def value_and_gradient(x, out):
        value = objective.value_and_gradient(x, out, run) - dot(linear, x)
        out -= linear
        return value

    curvature = partial(objective.curvature, run=run)
    iterates = minimize_lbfgs(value_and_gradient, theta.copy(), curvature=curvature)
    values = []
    for point in islice(iterates, _MOST_STEPS + 1):
        values.append(point.value)
        least = _GAIN * tol * abs(point.value)
        if objective.suboptimality_bound(point.gradient) <= least:
            break
        if len(values) > _PERIOD and values[-1 - _PERIOD] - point.value <= least:
            break
    return point.x.copy()


def learn(objective, answers, prior, scores, settings, max_iter, tol, monitor, run):
    """Learn a CRF and the confusions of annotators together, by expectation maximisation.

    Parameters
    ----------
    objective : CRFObjective
        Of the labels to start from.
    answers, prior : Answers, ndarray
        As of `expect`.
    scores : ndarray of shape (n_rows, n_labels)
        Logarithms of probabilities of the right labels to start from, plus a number for each token.
    settings : Settings
        Of the solver "lbfgs", for the start.
    max_iter : int
        Largest number of iterations.
    tol : float
        It ends when an iteration gained less than this fraction of the objective.
    monitor : Monitor
    run : callable
        From `skstruct.utils.parallel.range_runner`.

    Returns
    -------
    chain : Chain
        Weights of the CRF.
    confusion : ndarray of shape (n_annotators, n_labels, n_labels)
    is_over : bool
        True if the last iteration gained less than the tolerance.
    """
    weight = weight_of_tokens(objective)
    start = separate_minimum(objective, objective.l2, settings, run)
    theta = objective.pack(start.chain)
    confusion = answers.confusion(softmax(scores, axis=1), weight, prior)
    monitor.start_clock()
    before = np.inf
    for iteration in count():
        found = expect(objective, answers, confusion, prior, theta, run)
        monitor.add(epoch=iteration, objective=found.value, log_likelihood=found.log_likelihood)
        stopped = monitor.visit(lambda: objective.unpack(theta))  # noqa: B023
        is_over = before - found.value <= tol * abs(found.value)
        if is_over or stopped or iteration == max_iter:
            return objective.unpack(theta), confusion, is_over or stopped
        before = found.value
        theta = improve(objective, found.gradient, theta, tol, run)
        confusion = answers.confusion(found.proba, weight, prior)
