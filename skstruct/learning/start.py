"""The stochastic start of a batch method: some epochs of dual-free coordinate ascent."""

import numpy as np

from skstruct.compiled.rows import dot

# A batch method takes over when dual-free ascent is within this share of the objective, by a
# generous estimate, or after so many epochs. It takes over sooner from a slow ascent: one whose
# last epoch has left more than this part of the distance.
_NEAR, _MOST_EPOCHS = 1e-3, 20
_NEAR_IF_SLOW, _MOST_EPOCHS_IF_SLOW = 0.03, 12
_SLOW = 0.6
# Least penalty in the start, relative to the mean square of the features of a token.
_LEAST_PENALTY = 1e-3
# Least penalty in the start with an L1 penalty, whose weights are zero until the slope is above
# ``l1``: the square root of so many times ``l1``, for features with values of about one.
_L1_FACTOR = 10.0
# Norm of the weights that are conjugate to the marginals under given weights, relative to
# the given ones. Above the largest ratio, these do not belong to the data; below the smallest, they
# were learnt with a much smaller penalty, and zero is nearer. The ascent then begins at zero.
_SMALLEST_RATIO, _LARGEST_RATIO = 0.2, 6.0


def stochastic_start(objective, given=None, run=None):
    """Compute a parameter vector near the minimum.

    From there a batch method needs a third of the evaluations or fewer. The order of the
    sequences is random but fixed. Where triples need too much memory, they start from zero, and
    the others near the minimum of the model without.

    Parameters
    ----------
    objective : Objective
    given : ndarray of shape (size,), default=None
        Weights of an earlier fit, from which the ascent begins if they are of any use.
    run : callable, default=None
        From `skstruct.utils.parallel.range_runner`. With more than one range, two threads visit
        sequences.

    Returns
    -------
    theta : ndarray of shape (size,) or None
        None if it would need too much memory, single precision is not enough, or its weights got
        too large; the given weights themselves where they are near the minimum.
    """
    if given is not None and not objective.has_memory_here:
        return given
    memory, vector = objective.new_memory(), None
    if memory is not None and given is not None:
        vector = _begin_at(objective, given, memory, run)
        if vector is None:
            return given
    if memory is None:
        if not (objective.vector.shape.kind.order > 1 and objective.has_memory_here):
            return None
        if given is not None:
            return given
        found = stochastic_start(objective.first_order(), run=run)
        return None if found is None else np.pad(found, (0, objective.size - len(found)))
    theta, before = None, np.inf
    epochs = dual_free_epochs(objective, memory, vector=vector, run=run)
    for epoch, (theta, value, distance) in enumerate(epochs, 1):  # noqa: B007
        slow = not distance <= _SLOW * before
        near, most = (_NEAR_IF_SLOW, _MOST_EPOCHS_IF_SLOW) if slow else (_NEAR, _MOST_EPOCHS)
        if not distance > near * value or epoch >= most:
            break
        before = distance
    return theta


def _begin_at(objective, theta, memory, run):
    """Fill the memory of the ascent with the marginals under given weights.

    The weights conjugate to these marginals belong to an ascent that has been there. At the
    minimum for another penalty they are the given ones, times the ratio of the penalties, and
    the minimum lies between both: the ascent begins at their mean, in logarithms.

    Returns
    -------
    vector : ndarray of shape (size,) or None
        Conjugate to the memory. Zero, like the memory, where given weights and data do not
        belong together; None where the weights are near the minimum.
    """
    gradient = np.empty(objective.size)
    value = objective.value_and_gradient(theta, gradient, run)
    if objective.suboptimality_bound(gradient) <= _NEAR * value:
        return None
    vector = (objective.l2 * theta - gradient) / penalty_of_ascent(objective)
    square = dot(theta, theta)
    ratio = np.sqrt(dot(vector, vector) / square) if square > 0 else np.inf
    if not _SMALLEST_RATIO <= ratio <= _LARGEST_RATIO:
        return np.zeros(objective.size)
    # With an infinite penalty, an epoch takes whole steps and moves no weight.
    kept = theta.copy()
    memory.caution[...] = 0.0
    if not objective.ascent(np.ones(objective.size), np.inf, 0.0, memory).epoch(kept, kept):
        memory.node[...] = memory.transition[...] = memory.divergence[...] = 0.0
        return np.zeros(objective.size)
    memory.divergence[...] = 0.0
    share = min(1.0, ratio**-0.5)
    for marginals in (memory.node, memory.transition):
        marginals *= np.float32(share)
    vector *= share
    return vector


def penalty_of_ascent(objective, l1=0.0):
    """L2 penalty of the ascent, which needs more than hardly any."""
    weight, square = objective.scale
    of_l1 = np.sqrt(_L1_FACTOR * l1 * weight * square**1.5)
    return max(objective.l2, _LEAST_PENALTY * objective.mean_square, of_l1)


def dual_free_epochs(objective, memory, l1=0.0, vector=None, run=None):
    """Yield the weights after each epoch of dual-free coordinate ascent.

    See `skstruct.learning.ascent`. The ascent may need a larger L2 penalty than the model has.
    With an L1 penalty, the difference penalises the distance from the weights of the previous
    epoch: the epochs are steps of the proximal point method (Rockafellar, 1976), which ends at
    the minimum of the objective itself. Without one, they end near it.

    Parameters
    ----------
    objective : Objective
    memory : Memory
        Zero at first, or with marginals that `vector` is conjugate to; changed.
    l1 : float, default=0
        Strength of an L1 penalty.
    vector : ndarray of shape (size,), default=None
        Weights conjugate to the memory; changed. Zero by default.
    run : callable, default=None
        As in `stochastic_start`.

    Yields
    ------
    theta : ndarray of shape (size,)
        Parameters; the next epoch changes them in place.
    value : float
        Objective, from the loss of each sequence at its last visit.
    distance : float
        Estimated distance of the objective from its minimum, usually several times too large.
    """
    vector, free = np.zeros(objective.size) if vector is None else vector, np.ones(objective.size)
    free[objective.vector.pinned] = 0.0
    theta = vector if l1 == 0 else np.zeros(objective.size)
    l2 = penalty_of_ascent(objective, l1)
    ascent = objective.ascent(free, l2, l1, memory, run)
    # Share of the penalty that is one on the distance from a centre.
    pull = 1 - objective.l2 / l2 if l1 else 0.0
    centre = np.zeros(objective.size if pull else 0)
    while ascent.epoch(vector, theta):
        # Pinned positions have changed with the others.
        vector[objective.vector.pinned] = theta[objective.vector.pinned] = 0.0
        value = ascent.loss + (1 - pull) * l2 / 2 * dot(theta, theta)
        value += l1 * np.abs(theta).sum()
        yield theta, value, ascent.distance
        if pull:
            vector += pull * (theta - centre)
            centre[:] = theta
