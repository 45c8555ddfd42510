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

Where some labels are known, scores of minus infinity rule out all labellings that do not agree.
"""

import numpy as np

from skstruct.chain.protocol import (
    add_edge,
    add_shift,
    alpha_rows,
    collect,
    fold,
    forbidding,
    pending,
    prepare,
    reached,
    row_into,
    sources,
    state_rows,
    step_back,
    step_sum,
    sum_buffer,
    sum_of,
    width,
)
from skstruct.compiled.jit import inline_jit, inner_lean_jit, jit, lean_jit
from skstruct.compiled.rows import copy_matrix, largest
from skstruct.compiled.tables import exp_all

# Smaller forward probabilities are not trusted where some labellings are impossible. Backward
# vectors of larger ones are far from overflow.
TINY = 1e-150


@jit
def forward_backward(scores, length, factors, marginals, scale, weight, counts):
    """Compute the marginals of one sequence; return the logarithm of its partition function.

    Parameters
    ----------
    scores : ndarray of shape (>= length, n_labels)
        Emission scores; overwritten.
    factors : DenseFactors, TokenFactors, ListedFactors or any other
        From `factors_of`.
    marginals : ndarray of shape (>= length, n_labels)
        Receives the node marginals.
    scale : ndarray of shape (>= length,)
        Workspace.
    weight : float
        Factor of the transition marginals; zero leaves them out.
    counts : ndarray or NamedTuple
        Transition marginals are added here (see `zero_counts`); `finish` must follow, once for
        all sequences that are counted together.
    """
    if length == 0:
        return 0.0
    edges = factors.edges
    rows, alpha = state_rows(edges, scores, length), alpha_rows(edges, marginals, length)
    safe, forbids = prepare(factors, length)
    log_z, exact = 0.0, False
    if safe:
        buffer = sum_buffer(factors, rows.shape[1])
        log_z, exact = scaled_forward(rows, length, factors, forbids, buffer, alpha, scale)
        if exact:
            backward(rows, length, factors, buffer, alpha, scale, weight, counts)
    if not exact:
        log_z = log_forward_backward(rows, length, factors, alpha, weight, counts)
    fold(edges, alpha, length, marginals)
    return log_z


@inline_jit
def scaled_forward(rows, length, factors, forbids, buffer, alpha, scale):
    """Run the forward recursion in the linear domain; scores of states become factors.

    Returns
    -------
    log_z : float
        Logarithm of the partition function.
    exact : bool
        False if forward probabilities were lost to underflow; the scores are then unchanged and
        the other results invalid.
    """
    kept = rows[:0]
    if forbids:
        kept = rows[:length].copy()
    log_z = subtract_largest(rows, length, factors)
    exp_all(rows.reshape(rows.size)[: length * rows.shape[1]])
    if forbids:
        clear_impossible(kept, rows)
    log_z += forward(rows, length, factors, buffer, alpha, scale)
    if forbids and loses_paths(kept, rows, factors, alpha, scale):
        copy_matrix(kept, rows)
        return log_z, False
    return log_z, True


@inline_jit
def clear_impossible(scores, factors):
    """Set the factors of scores of minus infinity to exactly zero."""
    for t in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            if scores[t, j] == -np.inf:
                factors[t, j] = 0.0


@inner_lean_jit
def loses_paths(scores, rows, factors, alpha, scale):
    """Return True if possible states have tiny forward probabilities, or may have lost them.

    Factors of states that are in no possible labelling become zero, so that the backward pass
    ignores them.
    """
    for t in range(scores.shape[0]):
        if not scale[t] <= 1.0 / TINY:
            return True
        for s in range(width(factors.edges, t)):
            if alpha[t, s] >= TINY:
                continue
            if scores[t, s] > -np.inf and (t == 0 or reached(factors, t, s, alpha[t - 1])):
                return True
            rows[t, s] = 0.0
    return False


@inner_lean_jit
def subtract_largest(rows, length, factors):
    """Subtract the largest score of each token from its scores; return the sum of the largest."""
    taken = 0.0
    for t in range(length):
        row, n = rows[t], width(factors.edges, t)
        if t > 0:
            add_shift(factors, t, row)
        high = largest(row, n)
        for s in range(n):
            row[s] -= high
        for s in range(n, row.shape[0]):
            row[s] = 0.0
        taken += high
    return taken


@inner_lean_jit
def forward(rows, length, factors, buffer, alpha, scale):
    """Fill in the normalised forward vectors and their scales; return the sum of the log norms."""
    log_scale = 0.0
    for t in range(length):
        a, n = alpha[t], width(factors.edges, t)
        if t == 0:
            for s in range(n):
                a[s] = rows[0, s]
        else:
            step_sum(factors, buffer, t, alpha[t - 1], a)
            for s in range(n):
                a[s] *= rows[t, s]
        total = sum_of(factors, a, n)
        inverse = 1.0 / total
        for s in range(n):
            a[s] *= inverse
        scale[t] = inverse
        log_scale += np.log(total)
    return log_scale


@lean_jit
def backward(rows, length, factors, buffer, alpha, scale, weight, counts):
    """Turn the forward vectors into marginals in place, and collect the transitions'."""
    edges = factors.edges
    beta, q = buffer[0], buffer[1]
    for s in range(width(edges, length - 1)):
        beta[s] = 1.0
    for t in range(length - 1, 0, -1):
        a, row, factor = alpha[t], rows[t], scale[t]
        for s in range(width(edges, t)):
            q[s] = row[s] * beta[s] * factor
        for s in range(width(edges, t)):
            a[s] *= beta[s]
        if weight != 0.0:
            collect(factors, buffer, t, weight, alpha[t - 1], q, counts)
        step_back(factors, buffer, t, q, beta)
    for s in range(width(edges, 0)):
        alpha[0, s] *= beta[s]


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


@inline_jit
def log_forward_backward(rows, length, factors, alpha, weight, counts):
    """Compute marginals and log-partition in the log domain: slower, but always safe.

    Counts are divided by what `finish` will multiply them by.
    """
    edges = factors.edges
    buffer = np.empty((4, rows.shape[1]))
    below, beta = buffer[1], buffer[2]
    for s in range(width(edges, length - 1)):
        beta[s] = 0.0
    log_z = log_forward(rows, length, edges, alpha, buffer[0])
    for t in range(length - 1, -1, -1):
        for s in range(width(edges, t)):
            below[s] = beta[s] + rows[t, s]
            alpha[t, s] = np.exp(alpha[t, s] + beta[s] - log_z)
        if t > 0:
            back_in_logs(t, factors, alpha[t - 1], log_z, weight, buffer, counts)
    return log_z


@inner_lean_jit
def log_forward(rows, length, edges, alpha, z):
    """Write the logarithms of the forward sums; return the log-partition. ``z`` is workspace."""
    for t in range(length):
        for s in range(width(edges, t)):
            alpha[t, s] = rows[t, s]
            if t > 0:
                first, last = sources(edges, t, s)
                row_into(edges, t, s, z)
                for i in range(first, last):
                    z[i - first] += alpha[t - 1, i]
                alpha[t, s] = log_sum_exp(z, last - first) + rows[t, s]
    return log_sum_exp(alpha[length - 1], width(edges, length - 1))


@inner_lean_jit
def back_in_logs(t, factors, previous, log_z, weight, buffer, counts):
    """Count the transitions into a token; sum, in logarithms, over all that follows each source."""
    z, below, beta, high = buffer[0], buffer[1], buffer[2], buffer[3]
    edges = factors.edges
    for i in range(width(edges, t - 1)):
        beta[i], high[i] = 0.0, -np.inf
    for s in range(width(edges, t)):
        first, last = sources(edges, t, s)
        row_into(edges, t, s, z)
        for i in range(first, last):
            high[i] = max(high[i], z[i - first] + below[s])
            if weight != 0.0:
                p = weight * np.exp(previous[i] + z[i - first] + below[s] - log_z)
                divisor = pending(factors, t, i, s)
                add_edge(edges, counts, t, i, s, p / divisor if divisor > 0.0 else 0.0)
    for s in range(width(edges, t)):
        first, last = sources(edges, t, s)
        row_into(edges, t, s, z)
        for i in range(first, last):
            if high[i] > -np.inf:
                beta[i] += np.exp(z[i - first] + below[s] - high[i])
    for i in range(width(edges, t - 1)):
        beta[i] = high[i] + np.log(beta[i]) if high[i] > -np.inf else -np.inf


@jit
def subtract_agreeing(scores, labels, factors, weight, node, counts):
    """Subtract the marginals of agreeing labellings from those of all; return their log-partition.

    Parameters
    ----------
    scores : ndarray of shape (length, n_labels)
        Emission scores; overwritten.
    labels : ndarray of shape (length,)
        Labels, negative where unknown.
    factors : NamedTuple
        As of `forward_backward`.
    weight : float
        Factor of the result.
    node : ndarray of shape (>= length, n_labels)
        Node marginals of all labellings; becomes the difference, times the weight.
    counts : ndarray or NamedTuple
        Transition marginals of all labellings, already times the weight, as `forward_backward`
        leaves them; becomes the difference.

    Returns
    -------
    log_z : float
        Logarithm of the partition function of the agreeing labellings.
    """
    length, n_labels = scores.shape
    for t in range(length):
        for j in range(n_labels):
            if labels[t] >= 0 and j != labels[t]:
                scores[t, j] = -np.inf
    agreeing, scale = np.empty((length, n_labels)), np.empty(length)
    impossible = forbidding(factors)
    log_z = forward_backward(scores, length, impossible, agreeing, scale, -weight, counts)
    for t in range(length):
        for j in range(n_labels):
            node[t, j] = weight * (node[t, j] - agreeing[t, j])
    return log_z
