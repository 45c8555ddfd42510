"""Common parts of solvers that visit one sequence at a time and still reach the minimum.

A visit changes the node and transition marginals of the sequence; the change of its expected
features is the product of its feature matrix and these differences, with one row for each distinct
feature.
"""

import math
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from skstruct.blocks.visits import Vectors, Window, add_sums, new_window, sum_vectors, vectors_of
from skstruct.chain.dense import Chain
from skstruct.chain.scores import Rows, longest, value_of
from skstruct.compiled.jit import inline_jit, inner_jit, inner_lean_jit, jit
from skstruct.compiled.rows import dot
from skstruct.input.constraints import forbid
from skstruct.learning.objective import CRFObjective
from skstruct.learning.solver import Solution, not_converged
from skstruct.matrices import read_only
from skstruct.utils.parallel import chain_work, portions, range_runner

# The objective takes a pass over all sequences: a third to a half of the time of an epoch. So it is
# computed after every tenth epoch, and in between where the estimate promises convergence, but not
# within three epochs of the last time.
_EVALUATE_EVERY = 10
_WAIT_AT_LEAST = 3
# After so many evaluations without a change there is nothing to be gained.
_PATIENCE = 3
# Share of the objective at zero by which rounding may put another one above it.
_ROUNDING = 1e-9


_NO_DRAWS = np.empty(0)


class Settings(NamedTuple):
    """Parameters of `CRFTagger` that the solvers "sag" and "oeg" read."""

    l2: float
    fit_intercept: bool
    max_iter: int
    tol: float
    random_state: object
    n_jobs: int | None


def run_epochs(kind, training_set, model, settings, monitor, **options):
    """Run epochs until the objective is within `tol` of its minimum, or hardly changes.

    Parameters
    ----------
    kind : type
        That of the learner, a `SequenceLearner`, which makes the epochs.
    training_set : TrainingSet
        Sequences with tokens and a weight.
    model : Model
        Size of the model.
    settings : Settings
        Parameters of the estimator.
    monitor : Monitor
        Asked once an epoch whether to stop.
    **options : object
        More parameters of the learner.

    Returns
    -------
    solution : Solution
    """
    random_state, tol = check_random_state(settings.random_state), settings.tol
    options |= {"l2": settings.l2, "fit_intercept": settings.fit_intercept}
    learner = kind(training_set, model, **options)
    evaluation = _Evaluation(training_set, model, settings)
    notice, value, last = None, math.inf, -_WAIT_AT_LEAST
    monitor.start_clock()
    work = chain_work(model.n_labels)
    with range_runner(training_set.offsets, settings.n_jobs, work) as run:
        for epoch in range(1, settings.max_iter + 1):
            learner.epoch(random_state)
            regular = epoch % _EVALUATE_EVERY == 0
            promising = learner.estimate() <= tol * value and epoch - last >= _WAIT_AT_LEAST
            evaluate = regular or promising or epoch in (1, settings.max_iter)
            if evaluate:
                value, bound = evaluation.evaluate(learner, run)
                last = epoch
            monitor.add(
                epoch=epoch,
                objective=value if evaluate else None,
                bound=bound if evaluate else None,
                **learner.notes(),
                updates=learner.n_updates,
                oracle_calls=learner.n_oracle_calls,
            )
            settled = regular and evaluation.settled(value, 0.01 * tol)
            converged = evaluate and (bound <= tol * value or settled)
            stopped = monitor.visit(learner.chain)
            if stopped and not evaluate:
                value, bound = evaluation.evaluate(learner, run)
            if converged or stopped:
                break
        else:
            notice = not_converged(epoch, "epochs", bound, value, settings)
    return Solution(
        learner.chain(),
        monitor.arrays(),
        epoch,
        bound=bound,
        n_weights=evaluation.n_weights,
        notice=notice,
    )


class _Evaluation:
    """The objective itself, and how far it can be above its minimum."""

    def __init__(self, training_set, model, settings):
        self._objective = CRFObjective(
            training_set,
            model,
            l2=settings.l2,
            fit_intercept=settings.fit_intercept,
            all_possible_states=True,
            all_possible_transitions=True,
        )
        self._gradient = np.empty(self._objective.size)
        self.n_weights = self._objective.n_weights
        self._values = []

    def evaluate(self, learner, run):
        """Compute the objective, and the better of the known bounds on its distance."""
        theta = self._objective.pack(learner.chain())
        value = self._objective.value_and_gradient(theta, self._gradient, run)
        bound = self._objective.suboptimality_bound(self._gradient)
        dual = learner.notes().get("dual", -math.inf)
        # The minimum is at most the objective at zero, whatever rounding makes of a large dual; and
        # at the minimum rounding must not make the distance negative.
        return value, max(min(bound, value - dual), value - self._objective.bound_at_zero, 0.0)

    def settled(self, value, tol):
        """Return True if some values in a row, this one the last, differ by no more than `tol`.

        Values above the objective at zero count as unsettled.
        """
        self._values.append(value)
        recent = self._values[-_PATIENCE:]
        if len(recent) < _PATIENCE or value > (1 + _ROUNDING) * self._objective.bound_at_zero:
            return False
        return np.ptp(recent) <= tol * abs(value)


class SequenceLearner:
    """Base of the learners: the problem, with features numbered as they first appear, and counts.

    Parameters
    ----------
    training_set : TrainingSet
        Sequences with at least one token and a positive weight.
    model : Model
        Size of the model, the constraint, and costs that are added to the scores of labels.
    l2 : float
        Strength of the penalty.
    fit_intercept : bool
        True if the model has biases.

    Attributes
    ----------
    n_sequences : int
        Number of sequences.
    n_updates, n_oracle_calls : int
        Number of updates, and of calls that computed marginals or log-partitions of a sequence.
    """

    def __init__(self, training_set, model, *, l2, fit_intercept):
        rows, offsets, labels, weight, *_ = training_set
        first, *_ = rows.sets()
        # Features that first appear next to each other are then neighbours in memory, so reading
        # their weights causes fewer cache misses.
        self._rank, indices, *distinct = number_features(first, offsets, model.n_features)
        self._distinct = Distinct(*distinct)
        vectors = vectors_of(rows)
        self._problem = Problem(
            Rows(first.indptr, indices, first.data),
            offsets,
            labels,
            weight,
            float(l2),
            fit_intercept,
            model.cost,
            vectors._replace(columns=read_only(self._rank[vectors.columns])),
        )
        self._model = model
        self.n_sequences = len(training_set.sample_weight)
        self.n_updates = self.n_oracle_calls = 0

    def _visits(self, random_state):
        """Draw the visits of an epoch: every sequence in the first one, uniform numbers later."""
        if self.n_updates == 0:
            return random_state.permutation(self.n_sequences), _NO_DRAWS
        return np.empty(0, np.int64), random_state.random_sample(self.n_sequences)

    def _portions(self, order, draws=_NO_DRAWS, work=1.0):
        """Cut visits of sequences, drawn and yet to be drawn, into `portions`.

        `work` is the work of a visit, relative to inference.
        """
        lengths = np.diff(self._problem.offsets)
        # The sequences that will be drawn are unknown: they count with the mean length.
        lengths = np.concatenate([lengths[order], np.full(len(draws), lengths.mean())])
        for part in portions(lengths, work * chain_work(self._model.n_labels)):
            first, last = part.start - len(order), part.stop - len(order)
            yield order[part], draws[max(first, 0) : max(last, 0)]

    def _numbered(self, chain):
        """Allowed weights of an estimator, in the order of the numbers of the features."""
        chain = forbid(chain, self._model.possible)
        return chain._replace(weights=chain.weights[np.argsort(self._rank)])

    def _in_order(self, chain):
        """Copy of some weights, in the order of the features."""
        return Chain(chain.weights[self._rank], *(part.copy() for part in chain[1:]))


def square_norm(chain):
    """Squared norm of the weights of a chain that are not forbidden."""
    return sum(dot(part.ravel(), part.ravel()) for part in forbid(chain, None))


class Problem(NamedTuple):
    """A training set and its regularisation; no sequence is empty or has weight zero."""

    rows: Rows
    offsets: np.ndarray  # (n_sequences + 1,)
    labels: np.ndarray  # (n_rows,)
    sample_weight: np.ndarray  # (n_sequences,)
    l2: float
    fit_intercept: bool
    cost: np.ndarray  # (n_labels, n_labels), or (0, 0) if there is none
    vectors: Vectors


class Distinct(NamedTuple):
    """The distinct features of each sequence."""

    start: np.ndarray  # (n_sequences + 1,)
    features: np.ndarray  # (start[-1],) int32
    position: np.ndarray  # (nnz,) int32, index of an occurrence's feature among its sequence's


class Difference(NamedTuple):
    """Workspace: a change of the marginals of one sequence, and of its expected features."""

    node: np.ndarray  # (length, n_labels)
    transition: np.ndarray  # (n_labels**2,), summed over the sequence
    features: np.ndarray  # (n_distinct, n_labels)
    window: Window  # has the vectors of the sequence, and the change of their features in its sums


@inner_jit
def new_difference(problem, distinct, n_labels):
    """Workspace that is large enough for every sequence."""
    n_sequences = problem.offsets.shape[0] - 1
    length = longest(problem.offsets, 0, n_sequences)
    return Difference(
        np.empty((length, n_labels)),
        np.empty(n_labels * n_labels),
        np.empty((longest(distinct.start, 0, n_sequences), n_labels)),
        new_window(problem.vectors, length, n_labels),
    )


@jit
def number_features(rows, offsets, n_features):
    """Number the features as they first appear, and find the distinct ones of each sequence.

    Returns
    -------
    rank : ndarray of shape (n_features,)
        Number of each feature; those that do not appear come last.
    indices : ndarray of shape (nnz,)
        Numbers in place of the features of the tokens.
    start, features, position : ndarray
        Fields of `Distinct`.
    """
    n_sequences = offsets.shape[0] - 1
    rank = np.full(n_features, -1, np.int32)
    seen_in = np.full(n_features, -1, np.int32)
    place = np.empty(n_features, np.int32)
    indices = np.empty(rows.indices.shape[0], np.int32)
    position = np.empty(rows.indices.shape[0], np.int32)
    features = np.empty(rows.indices.shape[0], np.int32)
    start = np.zeros(n_sequences + 1, np.int64)
    n, n_ranked = 0, 0
    for i in range(n_sequences):
        for k in range(rows.indptr[offsets[i]], rows.indptr[offsets[i + 1]]):
            f = rows.indices[k]
            if rank[f] < 0:
                rank[f] = n_ranked
                n_ranked += 1
            if seen_in[f] != i:
                seen_in[f] = i
                place[f] = n - start[i]
                features[n] = rank[f]
                n += 1
            indices[k] = rank[f]
            position[k] = place[f]
        start[i + 1] = n
    for f in range(n_features):
        if rank[f] < 0:
            rank[f] = n_ranked
            n_ranked += 1
    return rank, indices, start, features, position


@inner_lean_jit
def collect_features(problem, distinct, i, difference):
    """Fill in ``difference.features`` of sequence ``i``; return the squared norm of all features.

    Transitions and biases are features, too. The vectors of the sequence are in the window.
    """
    rows, node = problem.rows, difference.node
    a, b = problem.offsets[i], problem.offsets[i + 1]
    n_distinct = distinct.start[i + 1] - distinct.start[i]
    n_labels = node.shape[1]
    for u in range(n_distinct):
        for j in range(n_labels):
            difference.features[u, j] = 0.0
    for t in range(b - a):
        d = node[t]
        for k in range(rows.indptr[a + t], rows.indptr[a + t + 1]):
            x = value_of(rows.data, k)
            row = difference.features[distinct.position[k]]
            for j in range(n_labels):
                row[j] += x * d[j]
    total = dot(difference.transition, difference.transition)
    for u in range(n_distinct):
        total += dot(difference.features[u], difference.features[u])
    sums = difference.window.sums
    if sums.shape[0] > 0:
        sum_vectors(difference.window, b - a, node)
        flat = sums.reshape(sums.size)
        total += dot(flat, flat)
    if problem.fit_intercept:
        for j in range(n_labels):
            bias = 0.0
            for t in range(b - a):
                bias += node[t, j]
            total += bias * bias
        total += dot(node[0], node[0]) + dot(node[b - a - 1], node[b - a - 1])
    return total


@inner_lean_jit
def add_difference(problem, distinct, i, difference, factor, chain):
    """Add the difference of sequence ``i``, times a factor, to weights or to a gradient."""
    n_labels = chain.transition.shape[0]
    begin, end = distinct.start[i], distinct.start[i + 1]
    for u in range(begin, end):
        weights, change = chain.weights[distinct.features[u]], difference.features[u - begin]
        for j in range(n_labels):
            weights[j] += factor * change[j]
    add_sums(problem.vectors, difference.window, factor, chain.weights)
    for y in range(n_labels):
        for z in range(n_labels):
            chain.transition[y, z] += factor * difference.transition[y * n_labels + z]
    if problem.fit_intercept:
        node, length = difference.node, problem.offsets[i + 1] - problem.offsets[i]
        for j in range(n_labels):
            for t in range(length):
                chain.intercept[j] += factor * node[t, j]
            chain.start[j] += factor * node[0, j]
            chain.end[j] += factor * node[length - 1, j]


@jit
def build_tree(priority, largest):
    """Tree over the priorities: of maxima if `largest`, else of sums."""
    n_leaves = 1
    while n_leaves < priority.shape[0]:
        n_leaves *= 2
    tree = np.zeros(2 * n_leaves)
    for i in range(priority.shape[0]):
        tree[n_leaves + i] = priority[i]
    for k in range(n_leaves - 1, 0, -1):
        tree[k] = parent_priority(tree, k, largest)
    return tree


@inline_jit
def parent_priority(tree, k, largest):
    """Sum or maximum of the children of node ``k``."""
    a, b = tree[2 * k], tree[2 * k + 1]
    return max(a, b) if largest else a + b


@jit
def set_priority(tree, i, priority, largest):
    k = tree.shape[0] // 2 + i
    tree[k] = priority
    while k > 1:
        k //= 2
        tree[k] = parent_priority(tree, k, largest)


@jit
def draw(tree, u, largest):
    """Leaf at the share ``u`` of the sum, or the first largest leaf.

    Leaves of priority zero are never drawn, unless all are zero.
    """
    n_leaves = tree.shape[0] // 2
    target = u * tree[1]
    k = 1
    while k < n_leaves:
        a, b = tree[2 * k], tree[2 * k + 1]
        if largest:
            k = 2 * k + (b > a)
        elif target < a or b == 0.0:
            k = 2 * k
        else:
            target -= a
            k = 2 * k + 1
    return k - n_leaves


@jit
def draw_sequence(tree, n_sequences, nonuniformity, u, largest):
    """Sequence at the uniform number ``u``: by priority with probability `nonuniformity`."""
    if u < nonuniformity and tree[1] > 0.0:
        return draw(tree, u / nonuniformity, largest)
    if nonuniformity < 1.0:
        u = (u - nonuniformity) / (1.0 - nonuniformity) if u >= nonuniformity else u
    return min(int(u * n_sequences), n_sequences - 1)
