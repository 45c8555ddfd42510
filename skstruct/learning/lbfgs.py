"""The solver "lbfgs": limited-memory BFGS (Nocedal, 1980) on the whole objective.

`PenaltyPath` minimises the same objective for one penalty after the other.
"""

from copy import copy
from functools import partial
from itertools import count
from math import log
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from skstruct.compiled.jit import inner_lean_jit, lean_jit
from skstruct.compiled.rows import add_scaled, dot
from skstruct.learning.monitor import Monitor
from skstruct.learning.objective import CRFObjective
from skstruct.learning.proximal import duality_gap, minimize_proximal, proximal_points
from skstruct.learning.solver import Solution, not_converged
from skstruct.learning.start import stochastic_start
from skstruct.utils.parallel import chain_work, range_runner


@lean_jit
def descent_direction(pairs, rho, order, alpha, scale, metric, g, d):
    """Two-loop recursion (Nocedal and Wright, 2006, algorithm 7.4): ``d = -H g``.

    ``pairs[i]`` has the rows ``s`` and ``y`` of a correction pair; ``order`` lists the pairs,
    newest first, and ``alpha`` is workspace for them. The initial approximation of the inverse
    Hessian is the diagonal ``scale * metric``.
    """
    n_pairs = order.shape[0]
    for k in range(g.shape[0]):
        d[k] = -g[k]
    product = dot(pairs[order[0], 0], d) if n_pairs > 0 else 0.0
    for m in range(n_pairs):
        i = order[m]
        alpha[m] = rho[i] * product
        older = order[min(m + 1, n_pairs - 1)]
        product = add_scaled_dot(d, -alpha[m], pairs[i, 1], pairs[older, 0])
    for k in range(g.shape[0]):
        d[k] *= scale * metric[k]
    product = dot(pairs[order[n_pairs - 1], 1], d) if n_pairs > 0 else 0.0
    for m in range(n_pairs - 1, -1, -1):
        i = order[m]
        step, newer = alpha[m] - rho[i] * product, order[max(m - 1, 0)]
        product = add_scaled_dot(d, step, pairs[i, 0], pairs[newer, 1])


@inner_lean_jit
def add_scaled_dot(d, step, v, u):
    """``d += step * v``; return the inner product of the new ``d`` with ``u``."""
    s0 = s1 = s2 = s3 = 0.0
    n = d.shape[0]
    for k in range(0, n - 3, 4):
        d[k] += step * v[k]
        d[k + 1] += step * v[k + 1]
        d[k + 2] += step * v[k + 2]
        d[k + 3] += step * v[k + 3]
        s0 += d[k] * u[k]
        s1 += d[k + 1] * u[k + 1]
        s2 += d[k + 2] * u[k + 2]
        s3 += d[k + 3] * u[k + 3]
    for k in range(n - n % 4, n):
        d[k] += step * v[k]
        s0 += d[k] * u[k]
    return (s0 + s1) + (s2 + s3)


@lean_jit
def remember(x_new, x, g_new, g, metric, s, y):
    """Store ``s = x_new - x`` and ``y = g_new - g``.

    Returns ``s @ y`` and ``y @ (metric * y)``.
    """
    yy = 0.0
    for k in range(x.shape[0]):
        s[k] = x_new[k] - x[k]
        y[k] = g_new[k] - g[k]
        yy += y[k] * metric[k] * y[k]
    return dot(s, y), yy


# The coordinates are scaled by a power of the inverse diagonal of the Hessian. The full power would
# be too much: the features of a token share its error, so the Hessian of a CRF is far from
# diagonal. The first power decreases the objective fastest; the second one gains the last digits
# sooner.
_METRIC_POWERS = 0.6, 0.25
# Step at which the first power gives way to the second.
_LONG_RUN = 25


class Iterate(NamedTuple):
    """A point, with the objective and its gradient there."""

    x: np.ndarray
    value: float
    gradient: np.ndarray


class Curvature:
    """Hessian as L-BFGS knows it: steps with changes of the gradient, and a metric.

    Parameters
    ----------
    n : int
        Number of parameters.
    memory : int, default=10
        Number of past steps from which the curvature is estimated.
    powers : (float, float), default=(0.6, 0.25)
        Powers of the inverse diagonal of the Hessian that scale the coordinates: at first, and in a
        long run.

    Attributes
    ----------
    pairs : ndarray of shape (memory, 2, n)
        Steps ``s`` and changes ``y`` of the gradient. Rows that are not in use may hold anything.
    rho : ndarray of shape (memory,)
        Inverses of their products.
    order : list of int
        Numbers of the pairs in use, newest first.
    metric : ndarray of shape (n,)
        Scales of the coordinates.
    scale : float
        Length of a step where no pair says more.
    """

    def __init__(self, n, memory=10, powers=_METRIC_POWERS):
        # A pair of rows takes as much memory as a point in double precision.
        self.pairs, self.rho = np.zeros((memory, 2, n), np.float32), np.zeros(memory)
        self.order = []
        self.scale, self.metric = 1.0, np.ones(n, np.float32)
        self._powers = powers

    def measure(self, diagonal, late=False):
        """Scale the coordinates by the diagonal of the Hessian, which is overwritten."""
        self.metric[:] = np.power(diagonal, -self._powers[late], out=diagonal)

    def use_late_power(self):
        """Change the metric to the power for long runs."""
        self.metric **= self._powers[1] / self._powers[0]
        self.rescale()

    def rescale(self):
        """Find the length of a step anew, after a change of metric or pairs."""
        self.scale = 1.0
        if self.order:
            newest = self.pairs[self.order[0], 1]
            product = dot(newest * self.metric, newest)
            self.scale = 1.0 / (self.rho[self.order[0]] * product)

    def add_penalty(self, more):
        """Adapt the pairs to an objective whose L2 penalty is stronger by `more`.

        They stay exact: the gradient then changes by ``more * s`` more along a step ``s``.
        """
        kept = []
        for slot in self.order:
            s, y = self.pairs[slot]
            y += np.float32(more) * s
            product = dot(s, y)
            if product > 1e-10 * dot(y, y):
                self.rho[slot] = 1.0 / product
                kept.append(slot)
        self.order = kept

    def forget(self):
        self.order, self.scale = [], 1.0


def minimize_lbfgs(value_and_gradient, x, *, known=None, curvature=None, ask_at=1):
    """Yield the iterates of L-BFGS; the caller decides when to stop.

    Parameters
    ----------
    value_and_gradient : callable
        ``value_and_gradient(x, out)`` returns the objective at `x` and writes its gradient into
        `out`.
    x : ndarray of shape (n_parameters,)
        Starting point, which is overwritten.
    known : Curvature, default=None
        Knowledge of the Hessian, which is extended. By default, none.
    curvature : callable, default=None
        ``curvature(x, out)`` writes an estimate of the diagonal of the Hessian at `x` into
        `out`. If given, it is called once, and scales the coordinates from then on.
    ask_at : int, default=1
        Step at which it is called: at once from a good start, later from a bad one.

    Yields
    ------
    iterate : Iterate
        The starting point, then one after every step. The second step after an iterate overwrites
        its arrays. Iteration ends when no step decreases the objective.
    """
    known = Curvature(x.shape[0]) if known is None else known
    pairs, rho, metric = known.pairs, known.rho, known.metric
    direction, gradient, spare = (np.empty(x.shape[0]) for _ in range(3))
    current = Iterate(x, value_and_gradient(x, gradient), gradient)
    yield current
    for step in count(1):
        if step == ask_at and curvature is not None:
            curvature(current.x, direction)
            known.measure(direction, step >= _LONG_RUN)
            known.rescale()
        elif step == _LONG_RUN and known.order:
            known.use_late_power()
        order = known.order
        newest_first, products = np.array(order, np.int64), np.empty(len(order))
        history = pairs, rho, newest_first, products
        descent_direction(*history, known.scale, metric, current.gradient, direction)
        slope = dot(current.gradient, direction)
        if not order and slope < 0:
            # The curvature is unknown: a step of length one.
            direction /= np.sqrt(-slope)
            slope = -np.sqrt(-slope)
        # The trial point of the search shares the memory of the next pair.
        full = len(order) == len(pairs)
        slot = order[-1] if full else next(i for i in count() if i not in order)
        trial = pairs[slot].ravel().view(np.float64)
        # That pair is not in use meanwhile, whatever ends the search.
        known.order = [i for i in order if i != slot]
        value = _line_search(value_and_gradient, current, direction, slope, trial, spare)
        if value is None:
            if not order:
                return
            # Rounding has spoilt the history: restart with steepest descent.
            known.forget()
            continue
        direction[:] = trial
        following = Iterate(direction, value, spare)
        change = (following.x, current.x, following.gradient, current.gradient)
        sy, yy = remember(*change, metric, *pairs[slot])
        if sy > 1e-10 * yy:
            rho[slot], known.scale = 1.0 / sy, sy / yy
            known.order = [slot, *known.order]
        (direction, _, spare), current = current, following
        yield current


# Weak Wolfe conditions: sufficient decrease and curvature (Nocedal and Wright, 2006, 3.1).
_DECREASE = 1e-4
_CURVATURE = 0.9
_MAX_TRIALS = 30


def _line_search(value_and_gradient, start, direction, slope, x, gradient):
    """Find a point along `direction` that meets the weak Wolfe conditions.

    The point is written into `x` and its gradient into `gradient`; the objective there is returned,
    or None if there is no such point.
    """
    if not slope < 0:
        return None
    low, high, step = 0.0, np.inf, 1.0
    # Near the minimum rounding hides the decrease.
    slack = 1e-13 * abs(start.value)
    for _ in range(_MAX_TRIALS):
        add_scaled(start.x, step, direction, x)
        value = value_and_gradient(x, gradient)
        if not value <= start.value + _DECREASE * step * slope + slack:
            high = step
            step = _interpolate(low, step, value, start.value, slope)
        elif dot(gradient, direction) < _CURVATURE * slope:
            low = step
            step = 2 * low if high == np.inf else (low + high) / 2
        else:
            return value
    return None


def _interpolate(low, step, value, start_value, slope):
    """Minimise the parabola through both ends, keeping away from them."""
    parabola = 2 * (value - start_value - slope * step)
    best = -slope * step**2 / parabola if np.isfinite(parabola) and parabola > 0 else low
    return min(max(best, low + 0.1 * (step - low)), low + 0.5 * (step - low))


# Fewer tokens than these take some hundredths of a second from zero, and a start saves little.
MANY_TOKENS = 1_000
# A fit ends when ten iterations gained less than this share of the tolerance.
GAIN, _L1_GAIN = 0.01, 1 / 3
# Least tolerance with which products of vectors in single precision are taken so. On three corpora,
# fits with words and vectors then take .8 to .9 of the time, for as many iterations, and end within
# 2e-6 of the same objective.
SINGLE = 1e-6
# Steps of L-BFGS from zero before the curvature is of any use.
BLIND_STEPS = 2


class Settings(NamedTuple):
    """Parameters of `CRFTagger` that the solver reads."""

    l2: float
    l1: float
    min_freq: float
    all_possible_states: bool
    all_possible_transitions: bool
    fit_intercept: bool
    max_iter: int
    tol: float
    random_state: object
    n_jobs: int | None
    stop_when_settled: bool = False


def solve(training_set, model, settings, start, monitor):
    """Learn as `skstruct.learning.solver` says."""
    training_set = monitor.hold_out(training_set, check_random_state(settings.random_state))
    objective = build_objective(training_set, model, settings)
    # Free its rows: the objective has the tokens in a form of its own.
    del training_set
    work = chain_work(objective.n_labels, model.order)
    with range_runner(objective.offsets, settings.n_jobs, work) as run:
        return minimize(objective, settings, start, monitor, run)


def build_objective(training_set, model, settings):
    """Objective of a training set, with the weights and the penalty of the settings."""
    names = "l2", "min_freq", "all_possible_states", "all_possible_transitions", "fit_intercept"
    objective = CRFObjective(
        training_set, model, **{name: getattr(settings, name) for name in names}
    )
    likelihood = objective.likelihood
    are_moderate = all(block.may_be_single() for block, _ in likelihood.blocks)
    likelihood.precise = settings.tol < SINGLE or not are_moderate
    return objective


def minimize(objective, settings, start, monitor, run=None):
    """Minimise an objective.

    Parameters
    ----------
    objective : Objective
        The smooth part, which loses its likelihood.
    settings : Settings
        Parameters of the estimator.
    start : Chain or None
        Weights to start from.
    monitor : Monitor
        Says when to stop.
    run : callable, default=None
        Passed on to the objective; not all objectives need it.

    Returns
    -------
    solution : Solution
    """
    l1, tol = settings.l1, settings.tol
    iterates = _iterates(objective, start, run, settings)
    # With an L1 penalty the bound closes late, and only the gain says that the end is near.
    least_gain = tol * (_L1_GAIN if l1 else GAIN)
    limits = l1, tol, least_gain, settings.max_iter
    point, reason = _follow(iterates, objective, *limits, monitor)
    entry, notice = monitor.last(), None
    if reason in (None, "max_iter"):
        made = entry["epoch"], "iterations", entry["bound"], entry["objective"]
        notice = not_converged(*made, settings)
    # Free the pairs of L-BFGS and the tokens before the weights of all features and labels are
    # allocated.
    iterates.close()
    theta, point, objective.likelihood = point.x, None, None
    chain = monitor.best or objective.unpack(theta)
    return Solution(
        chain,
        monitor.arrays(),
        entry["epoch"],
        bound=monitor.history["bound"][monitor.best_entry],
        n_weights=objective.n_weights,
        notice=notice,
        reason=reason,
    )


def _follow(iterates, objective, l1, tol, least_gain, max_iter, monitor):
    """Take iterates until one is good enough.

    Returns
    -------
    point : Iterate or ProximalIterate
        The last one.
    reason : str or None
        That of `Solution`.
    """
    reason = None
    monitor.start_clock()
    for iteration, point in enumerate(iterates):
        estimated = point.gradient is None
        bound = np.inf if estimated else _bound(objective, l1, point)
        monitor.add(
            epoch=iteration,
            objective=point.value,
            bound=bound,
            gradient_norm=None if estimated else np.sqrt(dot(point.gradient, point.gradient)),
            weight_norm=np.sqrt(dot(point.x, point.x)),
        )
        stopped = monitor.visit(lambda: objective.unpack(point.x))  # noqa: B023
        if bound <= tol * point.value:
            reason = "bound"
        elif has_stalled(monitor.history, least_gain):
            reason = "gain"
        elif stopped:
            reason = "monitor"
        elif l1 and point.settled:
            reason = "settled"
        elif iteration == max_iter:
            reason = "max_iter"
        if reason is not None:
            break
    return point, reason


def _bound(objective, l1, point):
    if l1:
        return duality_gap(objective, point.x, point.value, point.smooth, l1)
    return objective.suboptimality_bound(point.gradient)


def _starts(objective, l1, start, run):
    """Yield points to start from, best first.

    Each comes with the largest objective that makes it useful, and with the step at which to ask
    for the curvature.
    """
    # The stochastic start may be worse than zero where it has not settled: with few features, or
    # features of very different scale. With an L1 penalty the ascent has been tried.
    most = objective.bound_at_zero
    if not l1 and has_many_tokens(objective):
        theta = stochastic_start(objective, start, run)
        if theta is not None:
            yield theta, most, 1
    if start is not None:
        yield start, most, 1
    yield np.zeros(objective.size), np.inf, BLIND_STEPS


def _from_first(starts, iterates_from):
    """Yield the iterates from the first start whose objective is small enough."""
    for start, most, ask_at in starts:
        iterates = iterates_from(start, ask_at)
        first = next(iterates)
        if first.value <= most:
            break
    yield first
    yield from iterates


def has_many_tokens(objective):
    """Return True if the stochastic start saves time."""
    return objective.n_tokens >= MANY_TOKENS and not objective.partial


def _iterates(objective, start, run, settings):
    """Yield points on the way to the minimum, from the first start that is no worse than zero."""
    l1, stops = settings.l1, settings.stop_when_settled
    value_and_gradient = partial(objective.value_and_gradient, run=run)
    curvature = partial(objective.curvature, run=run)

    def iterates_from(theta, ask_at):
        if not l1:
            return minimize_lbfgs(value_and_gradient, theta, curvature=curvature, ask_at=ask_at)
        scale = objective.mean_square
        return minimize_proximal(value_and_gradient, theta, l1, curvature=curvature, scale=scale)

    known, start = None, None if start is None else objective.pack(start)
    begins = l1 and start is None and has_many_tokens(objective)
    if begins:
        for point in proximal_points(objective, l1, run, stops, settings.max_iter):
            known = known if point.gradient is None else point
            yield point
    start = start if known is None else known.x
    iterates = _from_first(_starts(objective, l1, start, run), iterates_from)
    if known is not None:
        # The start is the last point whose objective is known.
        next(iterates)
    yield from iterates


def has_stalled(history, least_gain, period=10):
    """Return True if `period` iterations gained at most a share, or the gradient is zero.

    Only iterations whose gradient is known count: the objective of others is an estimate.
    """
    slope = history["gradient_norm"]
    if slope[-1] == 0:
        return True
    objective = [
        value for value, norm in zip(history["objective"], slope, strict=True) if norm >= 0
    ]
    if np.isnan(slope[-1]) or len(objective) <= period:
        return False
    return objective[-1 - period] - objective[-1] <= least_gain * abs(objective[-1])


# Minima of one objective for many penalties, each found from those before

# A search ends earlier than a fit: when ten iterations gained less than this share of `tol`.
# The bound closes late where the penalty is weak, and scores have long been what they stay.
_PATH_GAIN = 0.1
# Few steps follow each start, so all use one power of the inverse diagonal of the Hessian.
_PATH_POWERS = 0.5, 0.5


class PenaltyPath:
    """Minima for L2 penalties that get weaker and weaker.

    The weights change steadily with the logarithm of the penalty. So the third minimum is looked
    for where the line through the first two leads, and so on. L-BFGS goes on with what it knows of
    the Hessian, whose diagonal changes by what the penalty does.

    Parameters
    ----------
    objective : CRFObjective
        Its labels are known.
    tol : float
        Relative tolerance: a minimum is found when its bound is this fraction of the objective, or
        when ten iterations gained less than a tenth of it.
    max_iter : int
        Largest number of iterations for a penalty.
    run : callable
        From `skstruct.utils.parallel.range_runner`.
    """

    def __init__(self, objective, tol, max_iter, run):
        self._objective, self._run = objective, run
        self._tol, self._max_iter = tol, max_iter
        self._known = Curvature(objective.size, powers=_PATH_POWERS)
        self._diagonal = None
        # Penalty, weights and objective of the last two minima.
        self._before = []

    def minimize(self, l2):
        """Find the minimum for the next penalty.

        Parameters
        ----------
        l2 : float
            Strength of the penalty, not larger than the one before.

        Returns
        -------
        solution : Solution

        Raises
        ------
        ValueError
            If the objective overflows.
        """
        objective = self._objective
        if self._before:
            self._adapt(l2 - self._before[-1][0])
        objective.l2 = float(l2)
        iterates = _from_first(self._starts(), self._iterates_from)
        limits = self._tol, _PATH_GAIN * self._tol, self._max_iter
        monitor = Monitor()
        point, reason = _follow(iterates, objective, 0.0, *limits, monitor)
        self._before = [*self._before[-1:], (objective.l2, point.x, point.value)]
        entry, chain = monitor.last(), objective.unpack(point.x)
        return Solution(
            chain, monitor.arrays(), entry["epoch"], bound=entry["bound"], reason=reason
        )

    def _adapt(self, more):
        """Adapt the known curvature to an L2 penalty that is stronger by `more`."""
        self._known.add_penalty(more)
        if self._diagonal is not None:
            self._diagonal += more
            self._known.measure(self._diagonal.copy())
        self._known.rescale()

    def _iterates_from(self, start, ask_at):
        return minimize_lbfgs(
            partial(self._objective.value_and_gradient, run=self._run),
            start,
            known=self._known,
            curvature=self._curvature if self._diagonal is None else None,
            ask_at=ask_at,
        )

    def _curvature(self, x, out):
        self._objective.curvature(x, out, self._run)
        self._diagonal = out.copy()

    def _starts(self):
        """Yield starts as the function of this name does, from earlier minima if there are any."""
        objective, before = self._objective, self._before
        if not before:
            yield from _starts(objective, 0.0, None, self._run)
            return
        last_l2, last, value = before[-1]
        start = self._extrapolate() if len(before) == 2 else None
        if len(before) == 1 and has_many_tokens(objective):
            start = stochastic_start(objective, last, self._run)
        if start is not None and start is not last:
            yield start, value + (objective.l2 - last_l2) / 2 * dot(last, last), 1
        yield last.copy(), np.inf, 1

    def _extrapolate(self):
        """Point on the line through the last two minima; None where it leads nowhere."""
        (l2_a, a, _), (l2_b, b, _) = self._before
        if not 0 < self._objective.l2 < l2_b < l2_a:
            return None
        ratio = log(self._objective.l2 / l2_b) / log(l2_b / l2_a)
        return b + ratio * (b - a)


def separate_minimum(objective, l2, settings, run):
    """Find a minimum, whatever other penalties gave.

    With an L1 penalty they are of no use. Where labels are unknown, the objective has many minima,
    and the one found should not depend on other penalties.

    Parameters
    ----------
    objective : CRFObjective
        Not changed.
    l2 : float
        Strength of the L2 penalty.
    settings : Settings
        Of the solver "lbfgs", with the L1 penalty.
    run : callable
        From `skstruct.utils.parallel.range_runner`.

    Returns
    -------
    solution : Solution
    """
    # The solver removes the likelihood from the objective that it is given.
    objective = copy(objective)
    objective.l2 = float(l2)
    return minimize(objective, settings, None, Monitor(), run)
