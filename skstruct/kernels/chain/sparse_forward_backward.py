"""Sum over all label sequences, in time that grows with the number of listed transitions.

With normalised forward probabilities ``a`` and factors ``m``, of which ``m_j`` is that of all
transitions into label ``j`` that are not listed,

    sum_i a[i] m[i, j] = m_j (1 - sum_listed a[i]) + sum_listed a[i] m[i, j].

Where the difference would cancel, the sum is taken term by term. Results are those of
`forward_backward` but for rounding, and so are the ways out of underflow.
"""

from typing import NamedTuple

import numpy as np

from skstruct.kernels._jit import jit, lean_jit
from skstruct.kernels.chain.forward_backward import (
    TINY,
    clear_impossible,
    exponentiate,
    log_forward_backward,
    restore,
)
from skstruct.kernels.chain.transitions import MAX_SPREAD
from skstruct.kernels.vector.sums import sum_in_lanes
from skstruct.kernels.vector.vectormath import exp_nonpositive

# A sum that is smaller than this share of its terms is computed without a difference.
CANCELLED = 1e-5


class SparseFactors(NamedTuple):
    """Exponentials of the scores, as `Transitions` has them; plain where all is listed."""

    shift: np.ndarray  # (n_labels,), largest score into each label
    default: np.ndarray  # (n_labels,), factor of transitions that are not listed
    linear: np.ndarray  # (nnz,), in the order of the scores
    linear_t: np.ndarray  # (nnz,), sorted by second label
    forbids: bool  # some labellings are impossible


@jit
def sparse_factors(sparse):
    """Tabulate the exponentials of transition scores.

    Returns
    -------
    shift, default, linear, linear_t, forbids
        Fields of `SparseFactors`.
    safe : bool
        False if sums in the linear domain could underflow.
    """
    n_labels, nnz = sparse.default.shape[0], sparse.score.shape[0]
    shift, default = np.zeros(n_labels), np.zeros(n_labels)
    linear, linear_t = np.empty(nnz), np.empty(nnz)
    forbids, safe = False, True
    for j in range(n_labels):
        first, last = sparse.indptr_t[j], sparse.indptr_t[j + 1]
        high, low = -np.inf, np.inf
        if last - first < n_labels:
            forbids |= sparse.default[j] == -np.inf
            if sparse.default[j] == 0.0:
                high = low = 0.0
        for m in range(first, last):
            x = sparse.score[sparse.order[m]]
            safe &= not np.isnan(x)
            forbids |= x == -np.inf
            if x != -np.inf:
                high = x if x > high else high
                low = x if x < low else low
        safe &= not high - low > MAX_SPREAD
        shift[j] = high if high > -np.inf else 0.0
        default[j] = exp_nonpositive(-shift[j]) if sparse.default[j] == 0.0 else 0.0
        for m in range(first, last):
            x = sparse.score[sparse.order[m]]
            linear_t[m] = exp_nonpositive(x - shift[j]) if x > -np.inf else 0.0
            linear[sparse.order[m]] = linear_t[m]
    return shift, default, linear, linear_t, forbids, safe


@lean_jit
def sum_unlisted(x, weights, listed, first, last):
    """``sum x[i] weights[i]`` over the positions not in ``listed[first:last]``, in order."""
    total, start = 0.0, 0
    for m in range(first, last + 1):
        end = listed[m] if m < last else x.shape[0]
        for i in range(start, end):
            total += x[i] * weights[i]
        start = end + 1
    return total


@lean_jit
def into_labels(previous, sparse, factors, ones, out):
    """``out[j] = sum_i previous[i] m[i, j]``; the items of ``previous`` sum to one."""
    first = 0
    for j in range(out.shape[0]):
        last, base = sparse.indptr_t[j + 1], factors.default[j]
        others, listed = 1.0, 0.0
        for m in range(first, last):
            # Of an unsigned index, no code looks whether it counts from the end.
            a = previous[np.uint32(sparse.origin[m])]
            others -= a
            listed += a * factors.linear_t[m]
        if base > 0.0:
            total = base * max(others, 0.0) + listed
            if total < CANCELLED * base:
                others = sum_unlisted(previous, ones, sparse.origin, first, last)
                total = base * others + listed
            listed = total
        out[j] = listed
        first = last


@lean_jit
def from_labels(q, sparse, factors, shares, out):
    """``out[i] = sum_j m[i, j] q[j]``; ``shares`` is workspace."""
    for j in range(q.shape[0]):
        shares[j] = factors.default[j] * q[j]
    total, first = sum_in_lanes(shares), 0
    for i in range(out.shape[0]):
        last = sparse.indptr[i + 1]
        others, listed = total, 0.0
        for k in range(first, last):
            j = np.uint32(sparse.into[k])
            others -= shares[j]
            listed += factors.linear[k] * q[j]
        others = max(others, 0.0)
        if others + listed < CANCELLED * total:
            others = sum_unlisted(q, factors.default, sparse.into, first, last)
        out[i] = others + listed
        first = last


@lean_jit
def sparse_forward(scores, factors, length, sparse, tables, room, alpha, scale):
    """Fill in the normalised forward vectors and their scales.

    Where labellings are impossible, ``scores`` are those before `exponentiate`, and the factors of
    labels that no possible label precedes become zero.

    Returns
    -------
    log_scale : float
        Sum of the logarithms of the norms.
    exact : bool
        False if a possible label has a tiny forward probability.
    """
    ones, reached = room[0], room[1]
    log_scale = 0.0
    for t in range(length):
        a = alpha[t]
        if t == 0:
            for j in range(a.shape[0]):
                a[j] = factors[0, j]
        else:
            into_labels(alpha[t - 1], sparse, tables, ones, a)
            for j in range(a.shape[0]):
                if tables.forbids and a[j] == 0.0 and not is_reached(t, j, sparse, tables, alpha):
                    factors[t, j] = reached[j] = 0.0
                a[j] *= factors[t, j]
        total = sum_in_lanes(a)
        inverse = 1.0 / total
        for j in range(a.shape[0]):
            a[j] *= inverse
        scale[t] = inverse
        if tables.forbids:
            if not inverse <= 1.0 / TINY:
                return log_scale, False
            for j in range(a.shape[0]):
                if a[j] < TINY and scores[t, j] > -np.inf and reached[j] > 0.0:
                    return log_scale, False
                reached[j] = 1.0
        log_scale += np.log(total)
    return log_scale, True


@lean_jit
def is_reached(t, j, sparse, tables, alpha):
    """Return True if a label of positive probability precedes label ``j``, or may do so."""
    if tables.default[j] > 0.0:
        return True
    for m in range(sparse.indptr_t[j], sparse.indptr_t[j + 1]):
        if alpha[t - 1, sparse.origin[m]] > 0.0 and tables.linear_t[m] > 0.0:
            return True
    return False


@lean_jit
def sparse_backward(factors, length, sparse, tables, alpha, scale, weight, expected, room):
    """Turn forward vectors into node marginals in place, and collect transition marginals.

    ``expected[k] += weight * alpha[t - 1, i] * q[j]`` omits the factor ``linear``.
    """
    n_labels = alpha.shape[1]
    beta, q, shares = room[0], room[1], room[2]
    for j in range(n_labels):
        beta[j] = 1.0
    for t in range(length - 1, 0, -1):
        for j in range(n_labels):
            q[j] = factors[t, j] * beta[j] * scale[t]
            alpha[t, j] *= beta[j]
        if expected.shape[0] > 0:
            for i in range(n_labels):
                a = weight * alpha[t - 1, i]
                for k in range(sparse.indptr[i], sparse.indptr[i + 1]):
                    expected[k] += a * q[sparse.into[k]]
        from_labels(q, sparse, tables, shares, beta)
    for j in range(n_labels):
        alpha[0, j] *= beta[j]


@jit
def sparse_forward_backward(scores, length, transition, sparse, tables, alpha, scale, weight, out):
    """Compute the marginals of one sequence; return the logarithm of its partition function.

    Parameters are those of `forward_backward`. ``out`` of shape (nnz,) collects the marginals of
    listed transitions, without their factor, or is empty.
    """
    n_labels = sparse.default.shape[0]
    if length == 0:
        return 0.0
    kept = scores[:0]
    if tables.forbids:
        kept = scores[:length].copy()
    log_z = exponentiate(scores, length, tables.shift)
    if tables.forbids:
        clear_impossible(kept, scores)
    room = np.ones((3, n_labels))
    added, exact = sparse_forward(kept, scores, length, sparse, tables, room, alpha, scale)
    if exact:
        sparse_backward(scores, length, sparse, tables, alpha, scale, weight, out, room)
        return log_z + added
    if tables.forbids:
        restore(kept, scores)
    n_slabs = 1 if out.shape[0] > 0 else 0
    slabs = np.zeros((n_slabs, n_labels, n_labels))
    log_z = log_forward_backward(scores, length, transition, alpha, weight, slabs, transition[:0])
    if n_slabs > 0:
        for i in range(n_labels):
            for k in range(sparse.indptr[i], sparse.indptr[i + 1]):
                if tables.linear[k] > 0.0:
                    out[k] += slabs[0, i, sparse.into[k]] / tables.linear[k]
    return log_z
