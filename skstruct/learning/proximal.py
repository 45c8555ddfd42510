"""Proximal methods for objectives with an L1 penalty: by dual-free ascent, and quasi-Newton.

A step of the quasi-Newton method minimises a quadratic model plus the penalty. The Hessian is
modelled as ``diag(curvature) - W K^-1 W'``, the compact form of L-BFGS (Byrd, Nocedal and Schnabel,
1994), with ``W = (diag(curvature) S, Y)`` for the last steps ``S`` and the changes of the gradient
``Y``. The rows of ``S`` and ``Y`` belong to coordinates, the columns to steps.
"""

from itertools import count
from typing import NamedTuple

import numpy as np

from skstruct.compiled.jit import jit, lean_jit
from skstruct.compiled.rows import dot
from skstruct.learning.start import dual_free_epochs, penalty_of_ascent


def duality_gap(objective, theta, value, smooth, l1):
    """Bound the distance of the objective with an L1 penalty from its minimum.

    The dual objective is at most the minimum. It is computed at the marginals of the weights, mixed
    with the gold labels where these are better (Kim et al., 2007).

    Parameters
    ----------
    objective : CRFObjective
        The smooth part.
    theta : ndarray of shape (size,)
        Parameters.
    value : float
        Objective there, with both penalties.
    smooth : ndarray of shape (size,)
        Gradient of the objective without the L1 penalty.
    l1 : float
        Strength of the penalty.

    Returns
    -------
    gap : float
        Infinite where labels are unknown: the objective is not convex.
    """
    if objective.partial:
        return np.inf
    l2 = objective.l2
    # Minus the gradient of the likelihood, to which the weights are conjugate.
    slope = l2 * theta - smooth
    penalty = l1 * np.abs(theta).sum() + l2 / 2 * dot(theta, theta)
    # Python's numbers do not warn where a huge l2 multiplies them.
    entropy = float(value - penalty + dot(theta, slope))
    return max(value - best_dual(entropy, np.abs(slope), l1, l2), 0.0)


def best_dual(entropy, slope, l1, l2):
    """Largest ``share * entropy - |max(share * slope - l1, 0)|^2 / (2 l2)`` of shares up to one."""
    steepest = slope.max(initial=0.0)
    if l2 == 0 or steepest <= l1:
        return entropy * min(1.0, l1 / max(steepest, l1))
    slope = slope[slope > l1]

    def excess(share):
        return np.maximum(share * slope - l1, 0.0)

    low, high = 0.0, 1.0
    if l2 * entropy < dot(excess(high), slope):
        while high - low > 1e-6:
            middle = (low + high) / 2
            falls = l2 * entropy < dot(excess(middle), slope)
            low, high = (low, middle) if falls else (middle, high)
    over = excess(high)
    return high * entropy - dot(over, over) / (2 * l2)


# Sufficient decrease (Armijo), and the number of shorter steps before a step counts as none.
_DECREASE = 1e-4
_MAX_TRIALS = 40
# Number of past steps from which the curvature is estimated.
_MEMORY = 10
# The model is minimised until a sweep gains this share of what the first one did.
_SWEEP_TOL = 1e-3
_MAX_SWEEPS = 20
# Epochs of dual-free ascent between two evaluations of the objective, each of which takes about as
# long as an epoch. Once so many epochs gain less than this share of the objective, quasi-Newton
# steps gain more in the same time.
_EPOCHS = 4
_LEAST_GAIN = 1e-3
# An ascent has settled when an epoch, not one of the first, has changed the weights and its
# estimate of the objective by no more than these shares of it, and the objective itself is hardly
# above the estimate: epochs of two threads now and then end in a spike. The change of the weights
# is squared and times half of the ascent's penalty. With two threads, whose steps are shorter, the
# same change means that more is left.
_FIRST_EPOCHS = 5
_MOST_MOVED, _MOST_GAINED, _MOST_ABOVE = 1.5e-4, 1e-3, 1.002
_WITH_TWO_THREADS = 2 / 3
# The first two shares are those for so many tokens per unit of the L2 penalty. With more tokens
# CRFsuite is further from the minimum after 100 iterations, and the shares grow in proportion,
# within bounds. With too few, or hardly any L1 penalty, CRFsuite is too near the minimum to be met.
# With hardly any L2 penalty the ascent is slow, and small changes do not mean that it is near.
_TOKENS_OF_SHARES, _SMALLEST_FACTOR, _LARGEST_FACTOR = 2e5, 0.5, 8.0
_LEAST_TOKENS, _LEAST_L1, _MOST_OF_START = 2.5e4, 0.1, 10.0


class ProximalIterate(NamedTuple):
    """A point, with the objective, its subgradient of least norm, and the smooth part's gradient.

    ``settled`` is True where an ascent has come so near the minimum that a fit may stop. After
    other epochs of an ascent the value is an estimate, and there are no gradients.
    """

    x: np.ndarray
    value: float
    gradient: np.ndarray | None
    smooth: np.ndarray | None
    settled: bool = False


def minimize_proximal(value_and_gradient, x, l1, *, curvature=None, scale=1.0):
    """Yield the iterates of the proximal quasi-Newton method; the caller decides when to stop.

    Parameters
    ----------
    value_and_gradient : callable
        ``value_and_gradient(x, out)`` returns the smooth part of the objective at `x` and writes
        its gradient into `out`.
    x : ndarray of shape (n_parameters,)
        Starting point.
    l1 : float
        Strength of the penalty ``l1 * |x|_1``.
    curvature : callable, default=None
        ``curvature(x, out)`` writes an estimate of the diagonal of the Hessian at `x` into
        `out`. If given, it is called at the start.
    scale : float, default=1
        Factor of the diagonal in the first step, before there are any to estimate it from.

    Yields
    ------
    iterate : ProximalIterate
        The starting point, then one after every step. ``value`` is the objective with its penalty.
        Iteration ends when no step decreases the objective.
    """
    smooth = np.empty(len(x))
    x = x.copy()
    value = value_and_gradient(x, smooth) + l1 * float(np.abs(x).sum())
    current = ProximalIterate(x, value, least_subgradient(x, smooth, l1), smooth)
    yield current
    diagonal = np.ones(len(x))
    if curvature is not None:
        curvature(x, diagonal)
    model = _Model(diagonal, _MEMORY, scale)
    while True:
        active = np.flatnonzero((current.x != 0) | (current.gradient != 0))
        target = model.minimum(current, active, l1)
        following = _line_search(value_and_gradient, current, active, target, l1)
        if following is None:
            if not model.order:
                return
            # Rounding has spoilt the history, or the objective is not convex.
            model.forget()
            continue
        model.remember(following, current)
        current = following
        yield current


def proximal_points(objective, l1, run, stop_when_settled=False, max_epochs=np.inf):
    """Yield iterates of dual-free ascent or the proximal point method, while they gain fast.

    From far away they come near the minimum several times sooner than the steps of the quasi-Newton
    method, which then goes on.

    Parameters
    ----------
    objective : Objective
        The smooth part.
    l1 : float
        Strength of the L1 penalty.
    run : callable
        See `skstruct.utils.parallel.range_runner`.
    stop_when_settled : bool, default=False
        End with the first iterate that has settled, and hardly compute the objective before, where
        that is known to end below CRFsuite.
    max_epochs : float, default=inf
        Epoch after which the objective is computed, as the caller stops there.

    Yields
    ------
    iterate : ProximalIterate
        That of zero weights, then one for each epoch, whose point the next one overwrites where
        it has no gradient. None at all if the method would need too much memory.
    """
    memory = objective.new_memory()
    if memory is None:
        return
    value, changes = objective.bound_at_zero, _Changes(objective, l1, run)
    settles = stop_when_settled and changes.tell
    every = 4 * _EPOCHS if settles else _EPOCHS
    yield ProximalIterate(np.zeros(objective.size), value, None, None)
    epochs = dual_free_epochs(objective, memory, l1, run=run)
    for epoch, (theta, estimate, _) in enumerate(epochs, 1):
        settled = settles and changes.are_small(theta, estimate) and epoch >= _FIRST_EPOCHS
        due = epoch % every == 0 or epoch == max_epochs
        if due or settled:
            x = changes.mean if settled else theta.copy()
            smooth, before = np.empty(objective.size), value
            found = objective.value_and_gradient(x, smooth, run) + l1 * float(np.abs(x).sum())
            settled = settled and found <= min(_MOST_ABOVE * estimate, before)
        if not (due or settled):
            if not estimate < np.inf:
                return
            yield ProximalIterate(theta, estimate, None, None)
            continue
        value = found
        if not value <= before:
            return
        yield ProximalIterate(x, value, least_subgradient(x, smooth, l1), smooth, settled)
        if settled or before - value <= _LEAST_GAIN * value:
            return


class _Changes:
    """Size of the changes of the last epoch of an ascent.

    Attributes
    ----------
    tell : bool
        True if small changes mean that the objective is below CRFsuite's: values of features are
        ones, and the penalties are as those for which that was tried.
    mean : ndarray
        Mean of the weights after the last two epochs, once there are two. Single steps that are too
        long weigh half there.
    """

    def __init__(self, objective, l1, run):
        likelihood, l2 = objective.likelihood, objective.l2
        self._penalty = penalty_of_ascent(objective, l1)
        self._theta, self._estimate = None, np.inf
        tokens = likelihood.weighted_tokens
        self.tell = (
            likelihood.sum_of_squares == likelihood.n_occurrences
            and tokens >= _LEAST_TOKENS * l2
            and l1 >= _LEAST_L1 * l2
            and self._penalty <= _MOST_OF_START * l2
        )
        if self.tell:
            factor = max(tokens / (_TOKENS_OF_SHARES * l2), _SMALLEST_FACTOR)
            self._factor = min(factor, _LARGEST_FACTOR)
            if run is not None and run.n_ranges > 1:
                self._factor *= _WITH_TWO_THREADS

    def are_small(self, theta, estimate):
        """Take in the weights after an epoch; return True if it has changed little."""
        small = False
        if self._theta is not None:
            step = theta - self._theta
            moved = self._penalty / 2 * dot(step, step)
            gained, share = abs(self._estimate - estimate), self._factor * estimate
            small = moved <= _MOST_MOVED * share and gained <= _MOST_GAINED * share
            self.mean = theta - step / 2
        self._theta, self._estimate = theta.copy(), estimate
        return small


class _Model:
    """Quadratic model of the smooth part: a scaled diagonal and the last steps."""

    def __init__(self, diagonal, memory, scale):
        self._diagonal = diagonal
        self._s, self._y = np.zeros((2, len(diagonal), memory), np.float32)
        # Inner products of steps with changes of the gradient, and of steps with each other.
        self._sy, self._ss = np.zeros((2, memory, memory))
        self._first_scale = scale
        self.forget()

    def forget(self):
        self.order, self._scale = [], self._first_scale

    def remember(self, following, current):
        """Take a step into account."""
        memory = self._s.shape[1]
        full = len(self.order) == memory
        slot = self.order[0] if full else next(i for i in count() if i not in self.order)
        ends = following.x, current.x, following.smooth, current.smooth
        products, yy = remember_step(*ends, self._diagonal, slot, self._s, self._y)
        self.order = [i for i in self.order if i != slot]
        self._sy[slot], self._sy[:, slot], self._ss[slot] = products
        self._ss[:, slot] = self._ss[slot]
        sy = self._sy[slot, slot]
        if sy > 1e-10 * yy:
            self._scale = yy / sy
            self.order = [*self.order, slot]

    def minimum(self, current, active, l1, *, tol=_SWEEP_TOL, max_sweeps=_MAX_SWEEPS):
        """Active coordinates of the point where the model plus the penalty is least."""
        order = np.array(self.order, np.int64)
        curvature = self._scale * self._diagonal[active]
        sy, ss = self._sy[np.ix_(order, order)], self._ss[np.ix_(order, order)]
        lower = np.tril(sy, -1)
        middle = np.block([[self._scale * ss, lower], [lower.T, -np.diag(np.diag(sy))]])
        inverse = np.linalg.pinv(middle, hermitian=True) if len(order) else middle
        rows, solved = np.empty((2, len(active), len(middle)))
        bend = model_rows(active, self._s, self._y, order, curvature, inverse, rows, solved)
        target, product = np.empty(len(active)), np.empty(len(middle))
        descend_coordinates(
            *(current.x[active], current.smooth[active], float(l1), curvature, bend, rows, solved),
            *(product, tol, max_sweeps, target),
        )
        return target


def least_subgradient(x, gradient, l1):
    """Subgradient of least norm of the objective, given the gradient of its smooth part.

    It is zero at the minimum and nowhere else.
    """
    # At zero, the penalty resists a slope of up to l1 in either direction.
    return np.where(
        x == 0,
        np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0),
        gradient + l1 * np.sign(x),
    )


def _line_search(value_and_gradient, start, active, target, l1):
    """Shorten the step to `target` until it meets the Armijo condition."""
    origin = start.x[active]
    direction = target - origin
    slope = dot(start.smooth[active], direction)
    slope += l1 * (np.abs(target).sum() - np.abs(origin).sum())
    if not slope < 0:
        return None
    # Near the minimum rounding hides the decrease.
    slack = 1e-13 * abs(start.value)
    x, smooth, step = start.x.copy(), np.empty(len(start.x)), 1.0
    for _ in range(_MAX_TRIALS):
        x[active] = target if step == 1 else origin + step * direction
        value = value_and_gradient(x, smooth) + l1 * float(np.abs(x).sum())
        if value <= start.value + _DECREASE * step * slope + slack:
            return ProximalIterate(x, value, least_subgradient(x, smooth, l1), smooth)
        parabola = 2 * (value - start.value - slope * step)
        best = -slope * step**2 / parabola if np.isfinite(parabola) else 0.0
        step = min(max(best, 0.1 * step), 0.5 * step)
    return None


# Least share of its diagonal part that the modelled curvature of a coordinate is taken for, against
# rounding.
LEAST_CURVATURE = 1e-3


@jit
def remember_step(x_new, x, g_new, g, diagonal, slot, s, y):
    """Store ``x_new - x`` and ``g_new - g`` in the columns ``slot`` of ``s`` and ``y``.

    Returns
    -------
    products : ndarray of shape (3, memory)
        Inner products of the new step with the columns of ``y``, of the columns of ``s`` with the
        new change, and of the new step with the columns of ``s``, weighted by the diagonal.
    curvature : float
        Squared norm of the change, divided by the diagonal, over the coordinates that have moved.
    """
    memory = s.shape[1]
    products = np.zeros((3, memory))
    curvature = 0.0
    for i in range(x.shape[0]):
        s[i, slot] = x_new[i] - x[i]
        y[i, slot] = g_new[i] - g[i]
        moved, changed = np.float64(s[i, slot]), np.float64(y[i, slot])
        for m in range(memory):
            products[1, m] += s[i, m] * changed
        if moved != 0.0:
            curvature += changed * changed / diagonal[i]
            for m in range(memory):
                products[0, m] += moved * y[i, m]
                products[2, m] += moved * diagonal[i] * s[i, m]
    return products, curvature


@jit
def model_rows(active, s, y, order, curvature, inverse, rows, solved):
    """Write the rows of ``W`` and of ``W K^-1`` that belong to the active coordinates.

    Returns
    -------
    bend : ndarray of shape (n_active,)
        Diagonal of the modelled Hessian.
    """
    n_pairs = order.shape[0]
    bend = np.empty(active.shape[0])
    for a in range(active.shape[0]):
        i = active[a]
        for m in range(n_pairs):
            rows[a, m] = curvature[a] * s[i, order[m]]
            rows[a, n_pairs + m] = y[i, order[m]]
        low_rank = 0.0
        for m in range(2 * n_pairs):
            total = 0.0
            for k in range(2 * n_pairs):
                total += inverse[m, k] * rows[a, k]
            solved[a, m] = total
            low_rank += total * rows[a, m]
        bend[a] = max(curvature[a] - low_rank, LEAST_CURVATURE * curvature[a])
    return bend


@lean_jit
def descend_coordinates(x, g, l1, curvature, bend, rows, solved, product, tol, max_sweeps, new):
    """Minimise the model plus the penalty by cyclic coordinate descent.

    Parameters
    ----------
    x, g : ndarray of shape (n_active,)
        Active coordinates of the point, and of the gradient there.
    l1 : float
        Strength of the penalty.
    curvature, bend : ndarray of shape (n_active,)
        Diagonal part of the modelled Hessian, and its diagonal.
    rows, solved : ndarray of shape (n_active, 2 * n_pairs)
        ``W`` and ``W K^-1``.
    product : ndarray of shape (2 * n_pairs,)
        Workspace.
    tol : float
        Stop when a sweep gains at most this share of what the first one has gained.
    max_sweeps : int
        Largest number of sweeps.
    new : ndarray of shape (n_active,)
        Receives the minimum.
    """
    for m in range(product.shape[0]):
        product[m] = 0.0
    for a in range(x.shape[0]):
        new[a] = x[a]
    gain, goal = 1.0, 0.0
    sweep = 0
    while sweep < max_sweeps and gain > goal:
        gain = 0.0
        for a in range(x.shape[0]):
            slope = g[a] + curvature[a] * (new[a] - x[a])
            for m in range(product.shape[0]):
                slope -= rows[a, m] * product[m]
            target = new[a] - slope / bend[a]
            target = np.copysign(max(abs(target) - l1 / bend[a], 0.0), target)
            change = target - new[a]
            if change != 0.0:
                new[a] = target
                gain += bend[a] * change * change
                for m in range(product.shape[0]):
                    product[m] += solved[a, m] * change
        if sweep == 0:
            goal = tol * gain
        sweep += 1
