"""Sum over all label sequences: log-partition, node and transition marginals.

Scaled forward-backward in the linear domain (Rabiner, 1989, section V.A): at each token ``t`` the
emissions are divided by the largest, transitions by the largest into each label, and forward
vectors are normalised,

    a_t[j] = c_t e_t[j] sum_i a_{t-1}[i] m[i, j],    log Z = -sum_t log c_t + the factors taken out.

An item that underflows is negligible, as long as no two transitions into one label
differ by more than `MAX_SPREAD`. Beyond that, the sums are computed in the log domain.

A score of minus infinity makes labellings impossible and its factor exactly zero. An item that
underflows may then be the only one that can be continued. If a forward vector of such a sequence
has a tiny item, the sequence is computed again in the log domain.
"""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.scores import into_token, transition_score
from skstruct.kernels.chain.transitions import N_SHARED, tabulate_sequence
from skstruct.kernels.vector.rows import add_outer, vector_matrix
from skstruct.kernels.vector.sums import largest
from skstruct.kernels.vector.vectormath import exp_all

# Smaller forward probabilities are not trusted where some labellings are impossible. Backward
# vectors of larger ones are far from overflow.
TINY = 1e-150


@jit
def scaled_forward(scores, length, transitions, forbids, alpha, scale):
    """Run the forward recursion in the linear domain; scores become factors.

    Returns
    -------
    log_z : float
        Logarithm of the partition function.
    exact : bool
        False if forward probabilities were lost to underflow; the scores are then unchanged and
        the other results invalid.
    """
    kept = scores[:0]
    if forbids:
        kept = scores[:length].copy()
    if len(transitions) == N_SHARED:
        shift = transitions.shift
    else:
        shift = transitions.shift[0]
        for t in range(1, length):
            for j in range(shift.shape[0]):
                scores[t, j] += transitions.shift[t, j]
    log_z = exponentiate(scores, length, shift)
    if forbids:
        clear_impossible(kept, scores)
    log_z += forward(scores, length, transitions.linear, alpha, scale)
    if forbids and loses_paths(kept, scores, transitions.linear_t, alpha, scale):
        restore(kept, scores)
        return log_z, False
    return log_z, True


@lean_jit
def restore(kept, scores):
    """Copy ``kept`` into ``scores``; assigning to a slice would take seconds to compile."""
    for t in range(kept.shape[0]):
        for j in range(kept.shape[1]):
            scores[t, j] = kept[t, j]


@lean_jit
def clear_impossible(scores, factors):
    """Set the factors of scores of minus infinity to exactly zero."""
    for t in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            if scores[t, j] == -np.inf:
                factors[t, j] = 0.0


@lean_jit
def loses_paths(scores, factors, linear_t, alpha, scale):
    """Return True if possible labels have tiny forward probabilities, or may have lost them.

    Factors of labels that are in no possible labelling become zero, so that the backward pass
    ignores them.
    """
    for t in range(scores.shape[0]):
        if not scale[t] <= 1.0 / TINY:
            return True
        for j in range(scores.shape[1]):
            if alpha[t, j] >= TINY:
                continue
            if scores[t, j] > -np.inf:
                if t == 0:
                    return True
                for i in range(scores.shape[1]):
                    if alpha[t - 1, i] > 0.0 and transition_score(linear_t, t, j, i) > 0.0:
                        return True
            factors[t, j] = 0.0
    return False


@jit
def exponentiate(scores, length, shift):
    """Turn scores into factors of at most one in place; return the sum of the maxima."""
    taken = subtract_largest(scores, length, shift)
    exp_all(scores.reshape(scores.size)[: length * shift.shape[0]])
    return taken


@lean_jit
def subtract_largest(scores, length, shift):
    """Subtract the largest score of each token from its scores; return the sum of the largest."""
    n_labels = shift.shape[0]
    taken = 0.0
    for t in range(length):
        row = scores[t]
        if t > 0:
            for j in range(n_labels):
                row[j] += shift[j]
        high = largest(row, n_labels)
        for j in range(n_labels):
            row[j] -= high
        taken += high
    return taken


@lean_jit
def forward(factors, length, linear, alpha, scale):
    """Fill in the normalised forward vectors and their scales; return the sum of the log norms."""
    n_labels = linear.shape[-1]
    log_scale = 0.0
    for t in range(length):
        a = alpha[t]
        if t == 0:
            for j in range(n_labels):
                a[j] = factors[0, j]
        else:
            if linear.ndim == 2:
                vector_matrix(alpha[t - 1], linear, a)
            else:
                vector_matrix(alpha[t - 1], linear[t], a)
            for j in range(n_labels):
                a[j] *= factors[t, j]
        total = 0.0
        for j in range(n_labels):
            total += a[j]
        inverse = 1.0 / total
        for j in range(n_labels):
            a[j] *= inverse
        scale[t] = inverse
        log_scale += np.log(total)
    return log_scale


@lean_jit
def backward(factors, length, linear_t, alpha, scale, weight, slabs, room):
    """Turn the forward vectors into node marginals in place, and collect transition marginals.

    ``slabs[s] += weight * outer(alpha[t - 1], q)`` omits the factor ``linear``, which the caller
    multiplies in once (`finish_transition_marginals`). A single slab receives the sum over the
    sequence, ``length - 1`` slabs one transition each. ``room`` is workspace of two rows.
    """
    n_labels = linear_t.shape[-1]
    beta, q = room[0], room[1]
    for j in range(n_labels):
        beta[j] = 1.0
    n_slabs = slabs.shape[0]
    for t in range(length - 1, 0, -1):
        f = factors[t]
        a = alpha[t]
        for j in range(n_labels):
            q[j] = f[j] * beta[j] * scale[t]
            a[j] *= beta[j]
        if n_slabs > 0:
            add_outer(weight, alpha[t - 1], q, slabs[(t - 1) % n_slabs])
        if linear_t.ndim == 2:
            vector_matrix(q, linear_t, beta)
        else:
            vector_matrix(q, linear_t[t], beta)
    for j in range(n_labels):
        alpha[0, j] *= beta[j]


@jit
def as_slabs(difference):
    """View of differences of transitions as the slabs of `forward_backward`."""
    if difference.ndim == 2:
        return difference.reshape((1, difference.shape[0], difference.shape[1]))
    return difference[1:]


@lean_jit
def finish_transition_marginals(slabs, transitions):
    """Multiply collected transition marginals by the transition factors."""
    if transitions.scaled:
        for slab in slabs:
            for i in range(slab.shape[0]):
                for j in range(slab.shape[1]):
                    slab[i, j] *= transitions.linear[i, j]


@lean_jit
def finish_sequence(linear, length, slabs):
    """Do the same for one sequence whose tokens have their own transitions."""
    for t in range(1, min(length, slabs.shape[0] + 1)):
        for i in range(linear.shape[1]):
            for j in range(linear.shape[2]):
                slabs[t - 1, i, j] *= linear[t, i, j]


@lean_jit
def log_sum_exp(x, n):
    """``log(sum(exp(x[:n])))``; minus infinity if all items are."""
    high = x[0]
    for i in range(1, n):
        high = max(high, x[i])
    if high == -np.inf:
        return high
    total = 0.0
    for i in range(n):
        total += np.exp(x[i] - high)
    return high + np.log(total)


@jit
def log_forward_backward(scores, length, transition, alpha, weight, slabs, factors):
    """Do the same as `scaled_forward` and `backward` in the log domain: slower, but always safe.

    Transition marginals are divided by the ``factors``, if any, as `finish_transition_marginals`
    will multiply by them.
    """
    n_labels = transition.shape[-1]
    z = np.empty(n_labels)
    beta = np.zeros(n_labels)
    below = np.empty(n_labels)
    for t in range(length):
        for j in range(n_labels):
            if t == 0:
                alpha[0, j] = scores[0, j]
            else:
                added = into_token(transition, t)
                for i in range(n_labels):
                    z[i] = alpha[t - 1, i] + added[i, j]
                alpha[t, j] = log_sum_exp(z, n_labels) + scores[t, j]
    log_z = log_sum_exp(alpha[length - 1], n_labels)
    for t in range(length - 1, -1, -1):
        added = into_token(transition, t)
        for j in range(n_labels):
            below[j] = beta[j] + scores[t, j]
        if t > 0 and slabs.shape[0] > 0:
            slab = slabs[(t - 1) % slabs.shape[0]]
            for i in range(n_labels):
                for j in range(n_labels):
                    log_p = alpha[t - 1, i] + added[i, j] + below[j] - log_z
                    p = weight * np.exp(log_p)
                    if factors.shape[0] > 0:
                        p = p / factors[i, j] if factors[i, j] > 0.0 else 0.0
                    slab[i, j] += p
        for j in range(n_labels):
            alpha[t, j] = np.exp(alpha[t, j] + beta[j] - log_z)
        if t > 0:
            for i in range(n_labels):
                for j in range(n_labels):
                    z[j] = added[i, j] + below[j]
                beta[i] = log_sum_exp(z, n_labels)
    return log_z


@jit
def forward_backward(scores, length, transitions, alpha, scale, weight, slabs):
    """Compute the marginals of one sequence; return the logarithm of its partition function.

    Parameters
    ----------
    scores : ndarray of shape (>= length, n_labels)
        Emission scores; overwritten.
    transitions : Transitions
        From `prepare_transitions`.
    alpha : ndarray of shape (>= length, n_labels)
        Receives the node marginals.
    scale : ndarray of shape (>= length,)
        Workspace.
    weight : float
        Factor of the transition marginals.
    slabs : ndarray of shape (n_slabs, n_labels, n_labels)
        Transition marginals are added here: with one slab their sum over the sequence, with
        ``length - 1`` or more one in each, with none nothing. If tokens share transitions,
        `finish_transition_marginals` must follow; if every token has its own, every transition
        needs a slab and the result is final.
    """
    if length == 0:
        return 0.0
    if len(transitions) == N_SHARED:
        scaled, forbids = transitions.scaled, transitions.forbids
        factors = transitions.linear if scaled else transitions.linear[:0]
    else:
        scaled, forbids = tabulate_sequence(length, transitions)
        factors = transitions.linear[0, :0]
    log_z, exact = 0.0, False
    if scaled:
        log_z, exact = scaled_forward(scores, length, transitions, forbids, alpha, scale)
    if not exact:
        return log_forward_backward(scores, length, transitions.log, alpha, weight, slabs, factors)
    room = np.empty((2, alpha.shape[1]))
    backward(scores, length, transitions.linear_t, alpha, scale, weight, slabs, room)
    if len(transitions) != N_SHARED:
        finish_sequence(transitions.linear, length, slabs)
    return log_z
