"""Stochastic dual coordinate ascent for conditional random fields (Le Priol et al., 2018).

The dual is maximised over distributions ``mu_i``, one for each sequence, which are stored by their
marginals. An update of a sequence computes the marginals ``nu`` under the current weights, and
replaces ``mu`` by ``mu + gamma (nu - mu)``. A line search finds ``gamma``, and the weights follow.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from skstruct.blocks.visits import load_vectors, new_window, visit_scores
from skstruct.chain.dense import count_by_token, prepare_transitions
from skstruct.chain.forward_backward import log_forward_backward, scaled_forward
from skstruct.chain.protocol import chain_factors, sum_buffer
from skstruct.chain.scores import add_cost, longest, mean_cost, value_of
from skstruct.compiled.jit import inline_jit, inner_lean_jit, jit, lean_jit
from skstruct.compiled.rows import vector_matrix
from skstruct.learning.dual import (
    FLOOR,
    Dual,
    compare_clique,
    conjugate_sum,
    entropy_slopes,
    mix_with_gold,
    move,
    node_sign,
    set_marginals,
    start_slope,
    true_gaps,
)
from skstruct.learning.solver import Notice, Solution
from skstruct.learning.stochastic import (
    Difference,
    SequenceLearner,
    add_difference,
    build_tree,
    collect_features,
    draw_sequence,
    new_difference,
    set_priority,
    square_norm,
)
from skstruct.utils.messages import overflowed, say
from skstruct.utils.parallel import chain_work, inner_product, range_runner

# Work after which convergence is checked at the earliest, some 10 ms: an epoch over a dozen
# sequences takes less time than the check.
_WORK_BETWEEN = 1e6
# Marginals of transitions in single precision allow gaps down to some 1e-11 of the objective.
_LEAST_SINGLE_TOL = 1e-8
# The gap is verified where its estimate is below this many times the tolerance; the estimate is
# usually twice too large.
_OVERESTIMATE = 2.0
# Gap of a sequence before its first visit.
_UNKNOWN_GAP = 100.0
# Least share of wrong labels in the start.
_LEAST_SHARE = 1e-12
# Largest priority of a sequence before its gap is known.
_MOST_SMOOTH = 1e100
# Work of an update, whose line search tries several steps, relative to inference.
_WORK_OF_UPDATE = 5.0
# So many bisections alone reach full precision.
MAX_TRIALS = 50


class Settings(NamedTuple):
    """Parameters of `SDCACRF` that the solver reads."""

    l2: float
    sampling: str
    nonuniformity: float
    line_search_tol: float
    fit_intercept: bool
    max_iter: int
    tol: float
    verify_every: int | None
    max_memory: float
    random_state: object
    n_jobs: int | None
    verbose: int


def solve(training_set, model, settings, start, monitor):
    """Learn as `skstruct.learning.solver` says; the bound is the verified duality gap."""
    training_set = training_set.effective()
    _check_memory(training_set, model, settings)
    dual = CRFDual(
        training_set,
        model,
        l2=settings.l2,
        fit_intercept=settings.fit_intercept,
        dtype=storage_dtype(settings.tol),
    )
    offsets = training_set.offsets
    # Free it: the dual has a renumbered copy.
    del training_set
    monitor.start_clock()
    work = chain_work(model.n_labels)
    with range_runner(offsets, settings.n_jobs, work) as run:
        dual.start(run, start)
        return _maximize(dual, settings, run, monitor)


def storage_dtype(tol):
    """Precision in which marginals of transitions are stored, given the tolerance."""
    return np.float32 if tol >= _LEAST_SINGLE_TOL else np.float64


def relative_gap(certificate):
    """Duality gap over the objective."""
    return certificate.gap / certificate.objective if certificate.gap > 0 else 0.0


def _check_memory(training_set, model, settings):
    n_sequences, n_rows = len(training_set.sample_weight), len(training_set.labels)
    dtype = storage_dtype(settings.tol)
    needed = marginals_nbytes(n_sequences, n_rows, model.n_labels, dtype)
    say(settings.verbose, "Marginals: %s bytes", f"{needed:,}")
    if needed > settings.max_memory:
        raise MemoryError(
            f"The marginals of {n_rows:,} tokens with {model.n_labels} labels need {needed:,} "
            f"bytes, more than max_memory={settings.max_memory:,}. Increase max_memory, or use "
            "CRFTagger, which does not store them."
        )


def _maximize(dual, settings, run, monitor):
    """Ascend until the gap is small enough."""
    random_state = check_random_state(settings.random_state)
    notice = None
    sampling = dual.sampling(settings.sampling, settings.nonuniformity)
    ask_every = math.ceil(_WORK_BETWEEN / dual.work)
    for epoch in range(1, settings.max_iter + 1):
        dual.epoch(random_state, sampling, settings.line_search_tol)
        certificate = dual.estimate()
        if settings.verify_every:
            verify = epoch % settings.verify_every == 0
        else:
            promising = relative_gap(certificate) <= _OVERESTIMATE * settings.tol
            verify = promising and epoch % ask_every == 0
        verify = verify or epoch == settings.max_iter
        if verify:
            certificate = dual.certify(run)
            sampling = dual.refresh(sampling)
        monitor.add(
            epoch=epoch,
            **certificate._asdict(),
            verified=verify,
            updates=dual.n_updates,
            oracle_calls=dual.n_oracle_calls,
            weight_norm=dual.weight_norm(),
        )
        stopped = monitor.visit(dual.chain)
        if stopped and not verify:
            certificate = dual.certify(run)
        if stopped or (verify and relative_gap(certificate) <= settings.tol):
            break
    else:
        notice = Notice(
            f"Did not converge after max_iter={epoch} epochs: duality gap "
            f"{relative_gap(certificate):.2g} of the objective > tol {settings.tol:.2g}.",
            "Increase max_iter, tol or l2.",
        )
    return Solution(dual.chain(), monitor.arrays(), epoch, bound=certificate.gap, notice=notice)


class Certificate(NamedTuple):
    """Bounds on the objective of the current weights."""

    objective: float  # of the weights
    dual: float  # no weights have an objective below this
    gap: float  # the difference


class CRFDual(SequenceLearner):
    """``sum_i s_i H(mu_i) - l2 / 2 |w(mu)|^2``, to be maximised over distributions ``mu_i``.

    ``H`` is the entropy, and ``w(mu) = sum_i s_i (F(gold) - E_mu F) / l2`` are the conjugate
    weights. The dual value of any ``mu`` is at most the primal objective of any weights, and at
    the optimum they are the same.

    Parameters
    ----------
    *problem, **options : object
        As of `SequenceLearner`, with a positive penalty. The distributions are over allowed
        labellings. With costs, the dual objective gains those expected under each distribution:
        below, they are part of its entropy.
    dtype : dtype, default=np.float32
        Precision of the stored marginals of transitions. Single precision allows gaps down to some
        1e-11 of the objective.

    Attributes
    ----------
    work : float
        Work of an epoch; about 2e8 a second.
    """

    def __init__(self, *problem, dtype=np.float32, **options):
        super().__init__(*problem, **options)
        n_rows, n_sequences = len(self._problem.labels), self.n_sequences
        n_labels = self._model.n_labels
        self._dual = Dual(
            np.empty((n_rows, n_labels)),
            np.empty((n_rows - n_sequences, n_labels**2), dtype),
            np.zeros(n_sequences),
            np.full(n_sequences, _UNKNOWN_GAP),
        )
        self.work = 100.0 * n_sequences + n_rows * n_labels**2

    def start(self, run, chain=None):
        """Set the dual variables between the gold labels and the marginals of a chain.

        Parameters
        ----------
        run : callable
            From `skstruct.utils.parallel.range_runner`.
        chain : Chain, default=None
            Weights of the marginals. By default, zero, with uniform marginals.
        """
        n_labels = self._model.n_labels
        if chain is None and self._model.possible is not None:
            chain = self._model.zero_chain()
        if chain is None:
            self._dual.node[:] = 1 / n_labels
            self._dual.transition[:] = 1 / n_labels**2
            slope = self._uniform_slope
        else:
            chain = self._numbered(chain)
            transitions = chain_factors(chain)
            run(lambda _, a, b: set_marginals(self._problem, a, b, chain, transitions, self._dual))
            self.n_oracle_calls += self.n_sequences

            def slope(eta):
                return sum(run(lambda _, a, b: start_slope(self._problem, a, b, self._dual, eta)))

        self._set_conjugate_chain(run)
        eta = self._best_share(slope)
        run(lambda _, a, b: mix_with_gold(self._problem, a, b, self._dual, eta))
        # The conjugate weights are linear in the distributions and zero at the gold labels.
        self._scale_chain(eta)

    def _best_share(self, entropy_slope):
        """Maximise the dual value over the share of the marginals."""
        curvature = self._problem.l2 * square_norm(self._chain)
        if not np.isfinite(curvature):
            raise overflowed(0)

        def slope(log_eta):
            eta = np.exp(log_eta)
            return entropy_slope(eta) - eta * curvature

        low, high = np.log(_LEAST_SHARE), 0.0
        if slope(high) >= 0:
            return 1.0
        if slope(low) <= 0:
            return _LEAST_SHARE
        return float(np.exp(brentq(slope, low, high, xtol=1e-9)))

    def _uniform_slope(self, eta):
        """Derivative of the weighted entropies with respect to the share of uniform marginals."""
        lengths = np.diff(self._problem.offsets)
        weight = self._problem.sample_weight
        n_transitions = inner_product(weight, lengths - 1)
        n_nodes = inner_product(weight, 1.0 * (lengths == 1) - np.maximum(lengths - 2, 0))
        total = 0.0
        k = self._model.n_labels
        for count, size in ((n_transitions, k**2), (n_nodes, k)):
            other = eta / size
            total += count * (1 - 1 / size) * (np.log1p(other - eta) - np.log(other))
        if len(self._problem.cost):
            mean = self._problem.cost.mean(axis=1)
            total += inner_product(np.repeat(weight, lengths), mean[self._problem.labels])
        return total

    def sampling(self, scheme, nonuniformity):
        """Sampling scheme of the sequences (see `SDCACRF`)."""
        weight = self._problem.sample_weight
        smoothness = np.ones_like(weight)
        if "importance" in scheme:
            radii = squared_radii(self._problem, self._distinct)
            smoothness = self._problem.l2 + weight * radii
            # Only ratios count, and products must not overflow.
            smoothness /= max(smoothness.max() / _MOST_SMOOTH, 1.0)
        adaptive = "gap" in scheme or scheme == "max"
        factor = weight * smoothness
        largest = scheme == "max"
        priority = factor * self._dual.gap if adaptive else smoothness
        return Sampling(
            build_tree(priority, largest),
            factor if adaptive else np.empty(0),
            largest,
            0.0 if scheme == "uniform" else float(nonuniformity),
        )

    def epoch(self, random_state, sampling, line_search_tol):
        """Make as many updates as there are sequences, in the first epoch one for each sequence.

        Parameters
        ----------
        random_state : RandomState instance
            Source of the order.
        sampling : Sampling
            Of all but the first epoch; updated.
        line_search_tol : float
            As of `SDCACRF`.
        """
        self.steps(*self._visits(random_state), sampling, line_search_tol)

    def steps(self, order, draws, sampling, line_search_tol):
        """Update the sequences in `order`, then one for each of the uniform random numbers."""
        state = self._dual, self._chain, sampling, line_search_tol
        for numbers, part in self._portions(order, draws, _WORK_OF_UPDATE):
            sdca_updates(self._problem, self._distinct, numbers, part, *state)
            self.n_updates += len(numbers) + len(part)
            self.n_oracle_calls += len(numbers) + len(part)

    def refresh(self, sampling):
        """Update the sampling with the gaps that `certify` computed."""
        if len(sampling.factor) == 0:
            return sampling
        priority = sampling.factor * self._dual.gap
        return sampling._replace(tree=build_tree(priority, sampling.largest))

    def estimate(self):
        """Estimate the certificate without a pass over the data.

        The dual value is exact up to the precision of the stored marginals. The gap is the sum of
        the gaps of the sequences at their last visits, which is usually too large.
        """
        weight = self._problem.sample_weight
        dual = inner_product(weight, self._dual.entropy)
        dual -= self._problem.l2 / 2 * square_norm(self._chain)
        gap = inner_product(weight, self._dual.gap)
        return Certificate(float(dual + gap), float(dual), gap)

    def certify(self, run):
        """Recompute the weights from the dual variables, and both objectives from scratch."""
        entropy = self._set_conjugate_chain(run)
        transitions = chain_factors(self._chain)
        nll = run(
            lambda _, first, last: true_gaps(
                self._problem, first, last, self._dual, self._chain, transitions
            )
        )
        self.n_oracle_calls += self.n_sequences
        penalty = self._problem.l2 / 2 * square_norm(self._chain)
        objective = sum(nll) + penalty
        # At the optimum rounding must not put the dual above the objective.
        dual = min(entropy - penalty, objective)
        return Certificate(float(objective), float(dual), float(objective - dual))

    def chain(self):
        """Weights in the order of the features."""
        return self._in_order(self._chain)

    def weight_norm(self):
        return np.sqrt(square_norm(self._chain))

    def _set_conjugate_chain(self, run):
        """Set the weights to those conjugate to the dual variables; return the sum of entropies."""
        parts = [self._model.zero_chain() for _ in range(run.n_ranges)]
        entropies = run(
            lambda number, first, last: conjugate_sum(
                self._problem, first, last, self._dual, parts[number]
            )
        )
        self._chain = parts[0]
        for part in parts[1:]:
            for total, addend in zip(self._chain, part, strict=True):
                total += addend
        self._scale_chain(1 / self._problem.l2)
        return sum(entropies)

    def _scale_chain(self, factor):
        # Next to no penalty makes what overflows, which is found later.
        with np.errstate(over="ignore", invalid="ignore"):
            for part in self._chain:
                part *= factor


def marginals_nbytes(n_sequences, n_rows, n_labels, dtype=np.float32):
    """Bytes of the dual variables: nodes in double precision, transitions in `dtype`."""
    return 8 * n_rows * n_labels + np.dtype(dtype).itemsize * (n_rows - n_sequences) * n_labels**2


class Sampling(NamedTuple):
    """Sampling of the next sequence."""

    tree: np.ndarray  # priorities, see `build_tree`
    factor: np.ndarray  # (n_sequences,), priority divided by gap; empty if priorities are constant
    largest: bool  # take the largest priority instead of drawing in proportion
    nonuniformity: float  # probability of sampling by priority


@jit
def squared_radii(problem, distinct):
    """Bounds on the squared distance between the features of any two labellings.

    A token changes the weights' features by at most ``sqrt(2)`` times its own, and so do
    transitions and biases.
    """
    rows = problem.rows
    n_sequences = problem.offsets.shape[0] - 1
    radii = np.empty(n_sequences)
    total = np.empty(longest(distinct.start, 0, n_sequences))
    window = new_window(problem.vectors, longest(problem.offsets, 0, n_sequences), 0)
    for i in range(n_sequences):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        n_distinct = distinct.start[i + 1] - distinct.start[i]
        for u in range(n_distinct):
            total[u] = 0.0
        for k in range(rows.indptr[a], rows.indptr[b]):
            total[distinct.position[k]] += abs(value_of(rows.data, k))
        radius = (b - a - 1.0) ** 2
        for u in range(n_distinct):
            radius += total[u] * total[u]
        load_vectors(problem.vectors, a, b, window.values)
        for f in range(window.values.shape[1]):
            length = 0.0
            for t in range(b - a):
                length += abs(window.values[t, f])
            radius += length * length
        if problem.fit_intercept:
            radius += (b - a) ** 2 + 2.0
        radii[i] = 2.0 * radius
    return radii


class Oracle(NamedTuple):
    """Workspace: marginals of one sequence under the current weights.

    The transition marginals are ``left[t - 1, i] * middle[(t - 1) % n, i, j] * right[t, j]``, where
    ``middle`` has one slab that all transitions share, or one for each if the scores are extreme.
    """

    scores: np.ndarray  # (length, n_labels)
    left: np.ndarray
    right: np.ndarray
    node: np.ndarray
    scale: np.ndarray  # (length,)


class Step(NamedTuple):
    """Workspace: the direction ``nu - mu`` of an update."""

    nu: np.ndarray  # transition marginals of the weights, flat
    excess: np.ndarray  # ratios ``mu / nu - 1`` of transition marginals, flat
    node_excess: np.ndarray  # (length, n_labels), and of node marginals
    terms: np.ndarray  # (2, n_labels ** 2), terms of a sum over a clique
    difference: Difference


@inline_jit
def oracle_marginals(problem, chain, transitions, a, b, oracle, window):
    """Compute the marginals of the rows ``a:b``; return the middle factors of transitions.

    The vectors of these rows are then in the window.
    """
    length = b - a
    n_labels = chain.transition.shape[0]
    visit_scores(problem.rows, problem.vectors, a, b, chain, window, oracle.scores)
    add_cost(problem.cost, problem.labels[a:b], oracle.scores)
    factors, exact = count_by_token(transitions), False
    if transitions.safe:
        buffer, forbids = sum_buffer(factors, n_labels), transitions.forbids
        _, exact = scaled_forward(
            oracle.scores, length, factors, forbids, buffer, oracle.left, oracle.scale
        )
    if not exact:
        slabs = np.zeros((max(length - 1, 1), n_labels, n_labels))
        log_forward_backward(oracle.scores, length, factors, oracle.node, 1.0, slabs)
        for t in range(length):
            for j in range(n_labels):
                oracle.left[t, j] = oracle.right[t, j] = 1.0
        return slabs
    backward_factors(oracle, length, transitions.linear_t)
    return transitions.linear.reshape((1, n_labels, n_labels))


@inner_lean_jit
def backward_factors(oracle, length, linear_t):
    """Compute node marginals and right factors of transitions from the forward vectors."""
    n_labels = linear_t.shape[0]
    # No transition leads into the first token, so its row serves as workspace.
    beta = oracle.right[0]
    for j in range(n_labels):
        beta[j] = 1.0
    for t in range(length - 1, -1, -1):
        a, f = oracle.left[t], oracle.scores[t]
        q, node = oracle.right[t], oracle.node[t]
        for j in range(n_labels):
            node[j] = a[j] * beta[j]
        if t > 0:
            for j in range(n_labels):
                q[j] = f[j] * beta[j] * oracle.scale[t]
            vector_matrix(q, linear_t, beta)


@inner_lean_jit
def compare_sequence(mu_node, mu_transition, oracle, middle, step):
    """Fill in the step from ``mu`` to ``nu``; return the gap and the slope at ``gamma = 0``."""
    length, n_labels = mu_node.shape
    size = n_labels * n_labels
    node, transition = step.difference.node, step.difference.transition
    gap, slope = 0.0, 0.0
    for k in range(size):
        transition[k] = 0.0
    for t in range(length):
        for j in range(n_labels):
            oracle.node[t, j] = max(oracle.node[t, j], FLOOR)
            node[t, j] = 0.0
        g, s = compare_clique(mu_node[t], oracle.node[t], step.node_excess[t], node[t], step.terms)
        sign = node_sign(t, length)
        gap += sign * g
        slope += sign * s
        if t > 0:
            slab = middle[(t - 1) % middle.shape[0]]
            nu = step.nu[(t - 1) * size : t * size]
            for i in range(n_labels):
                x = oracle.left[t - 1, i]
                for j in range(n_labels):
                    nu[i * n_labels + j] = max(x * slab[i, j] * oracle.right[t, j], FLOOR)
            excess = step.excess[(t - 1) * size : t * size]
            g, s = compare_clique(mu_transition[t - 1], nu, excess, transition, step.terms)
            gap += g
            slope += s
    return max(gap, 0.0), slope


@lean_jit
def slopes(step, oracle, length, square, gamma):
    """First two derivatives of the dual objective, divided by the weight of the sequence."""
    size = step.difference.transition.shape[0]
    rest = 1.0 - gamma
    first, second = 0.0, 0.0
    for t in range(length):
        sign = node_sign(t, length)
        if sign != 0.0:
            f, s = entropy_slopes(oracle.node[t], step.node_excess[t], rest, step.terms)
            first += sign * f
            second += sign * s
        if t > 0:
            a, b = (t - 1) * size, t * size
            f, s = entropy_slopes(step.nu[a:b], step.excess[a:b], rest, step.terms)
            first += f
            second += s
    return first - gamma * square, second - square


@inline_jit
def line_search(step, oracle, length, slope, square, tol):
    """Step size that maximises the dual objective.

    Newton's method on the derivative, with bisection where it would leave the bracket. The
    derivative is ``slope`` at 0 and ``-square`` at 1; the first trial is the zero of the line
    through both.
    """
    if not slope > 0.0:
        return 0.0
    if not square > 0.0:
        return 1.0
    low, high = 0.0, 1.0
    gamma = slope / (slope + square)
    for _ in range(MAX_TRIALS):
        first, second = slopes(step, oracle, length, square, gamma)
        if first > 0.0:
            low = gamma
        else:
            high = gamma
        following = gamma - first / second
        if not low < following < high:
            following = 0.5 * (low + high)
        moved = abs(following - gamma)
        gamma = following
        if moved < tol:
            break
    return gamma


@inline_jit
def update(problem, distinct, i, dual, chain, oracle, step, tol):
    """Ascend in the dual variables of sequence ``i``."""
    a, b = problem.offsets[i], problem.offsets[i + 1]
    length = b - a
    node, transition = dual.node[a:b], dual.transition[a - i : b - 1 - i]
    transitions = prepare_transitions(chain.transition)
    window = step.difference.window
    middle = oracle_marginals(problem, chain, transitions, a, b, oracle, window)
    gap, slope = compare_sequence(node, transition, oracle, middle, step)
    dual.gap[i] = gap
    scale = problem.sample_weight[i] / problem.l2
    square = scale * collect_features(problem, distinct, i, step.difference)
    gamma = line_search(step, oracle, length, slope, square, tol)
    if gamma == 0.0:
        return
    total = 0.0
    size = step.difference.transition.shape[0]
    for t in range(length):
        total += node_sign(t, length) * move(node[t], oracle.node[t], gamma, step.terms[0])
        if t > 0:
            nu = step.nu[(t - 1) * size : t * size]
            total += move(transition[t - 1], nu, gamma, step.terms[0])
    dual.entropy[i] = total + mean_cost(problem.cost, problem.labels[a:b], node)
    add_difference(problem, distinct, i, step.difference, -gamma * scale, chain)


@jit
def sdca_updates(problem, distinct, order, draws, dual, chain, sampling, tol):
    """Update the sequences in `order`, then one for each of the uniform numbers `draws`.

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
    dual : Dual
        The dual variables, changed.
    chain : Chain
        The weights conjugate to them, changed.
    sampling : Sampling
        Turns draws into sequences; its priorities follow the gaps.
    tol : float
        Precision of the line search.
    """
    n_labels = chain.transition.shape[0]
    n_sequences = dual.gap.shape[0]
    length = longest(problem.offsets, 0, n_sequences)
    size = n_labels * n_labels
    oracle = Oracle(
        np.empty((length, n_labels)),
        np.empty((length, n_labels)),
        np.empty((length, n_labels)),
        np.empty((length, n_labels)),
        np.empty(length),
    )
    step = Step(
        np.empty((length - 1) * size),
        np.empty((length - 1) * size),
        np.empty((length, n_labels)),
        np.empty((2, size)),
        new_difference(problem, distinct, n_labels),
    )
    for k in range(order.shape[0] + draws.shape[0]):
        if k < order.shape[0]:
            i = order[k]
        else:
            u = draws[k - order.shape[0]]
            i = draw_sequence(
                sampling.tree, n_sequences, sampling.nonuniformity, u, sampling.largest
            )
        update(problem, distinct, i, dual, chain, oracle, step, tol)
        if sampling.factor.shape[0] > 0:
            set_priority(sampling.tree, i, sampling.factor[i] * dual.gap[i], sampling.largest)
