"""Dual of a CRF's training problem: where its variables start, and its exact gap.

The dual variables are marginals (Le Priol et al., 2018). They start as a mixture of the gold labels
and the marginals ``nu`` of some weights, ``mu = eta nu + (1 - eta) gold``, with one ``eta`` for all
sequences (equation 21, with ``nu`` for the uniform distribution). It must be small where ``nu`` is
far from the optimum, as the conjugate weights would be large.

Stored transition marginals, usually in single precision, fit no distribution exactly:
the marginals of a token computed from its two neighbours differ slightly. For the gap (equation 11)
they are therefore read as the conditional probabilities of a Markov chain, whose exact entropy,
marginals and expected features are computed in double precision. The gap is then one between a true
dual and a true primal value. Impossible labellings, marked by weights of minus infinity, have
probability zero in that chain, although no stored marginal is exactly zero.

The cliques ``C`` of a chain are its transitions, and its separators ``S`` the tokens between the
ends. Entropies and divergences of the distribution over labellings follow from the marginals (Le
Priol et al., 2018, equations 18 and 19):

    H(mu) = sum_C H(mu_C) - sum_S H(mu_S),    KL(mu || nu) = sum_C KL(...) - sum_S KL(...).

A token on its own is a clique. ``mu`` are the marginals of the dual variable and ``nu`` those of
the current weights. With ``mu / nu = 1 + x``, the marginals at the step ``gamma`` are ``nu (1 + (1
- gamma) x)``. Written in ``x``, all sums are of second order in the difference, so rounding errors
of ``mu`` do not dominate them.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from skstruct.blocks.visits import (
    add_sums,
    load_vectors,
    new_window,
    sum_vectors,
    visit_scores,
)
from skstruct.chain.dense import count_by_token
from skstruct.chain.forward_backward import forward_backward, log_forward_backward, scaled_forward
from skstruct.chain.protocol import sum_buffer
from skstruct.chain.scores import (
    add_cost,
    longest,
    mean_cost,
    path_score,
    value_of,
)
from skstruct.compiled.jit import inline_jit, inner_jit, inner_lean_jit, jit, lean_jit
from skstruct.compiled.lanes import AHEAD, prefetch
from skstruct.compiled.rows import sum_in_lanes

# Products and sums may be fused: a logarithm takes half the time. Use it only for functions without
# infinities and without arithmetic that relies on rounding.
fused_jit = partial(lean_jit, fastmath={"contract"})
# Lower bound of marginals, so that logarithms and quotients exist. It is a normal number in single
# precision, too.
FLOOR = 1e-37
_LN2 = 0.6931471805599453
# The bits of sqrt(1 / 2), of the exponent, and of the number one.
_HALF_ROOT = 0x3FE6A09E667F3BCD
_EXPONENT = -(1 << 52)


@inline_jit
def node_sign(t, length):
    """Sign of a token in sums over cliques and separators (see `skstruct.learning.dual`).

    Zero at both ends, which are no separators; one for a token on its own, which is a clique.
    """
    if length == 1:
        return 1.0
    return 0.0 if t == 0 or t == length - 1 else -1.0


@inline_jit
def log_positive(z):
    """Logarithm of a positive normal number, to about 2 ulp.

    ``z = 2**e m`` with ``m`` between the roots of 1/2 and 2, and ``log(m) = 2 atanh(s)`` with
    ``s = (m - 1) / (m + 1)`` by its series.
    """
    bits = np.float64(z).view(np.int64)
    shifted = bits - _HALF_ROOT
    m = np.int64(bits - (shifted & _EXPONENT)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    w = s * s
    p = 1.0 / 21.0
    p = p * w + 1.0 / 19.0
    p = p * w + 1.0 / 17.0
    p = p * w + 1.0 / 15.0
    p = p * w + 1.0 / 13.0
    p = p * w + 1.0 / 11.0
    p = p * w + 1.0 / 9.0
    p = p * w + 1.0 / 7.0
    p = p * w + 1.0 / 5.0
    p = p * w + 1.0 / 3.0
    return np.float64(shifted >> 52) * _LN2 + 2.0 * (s + s * w * p)


@fused_jit
def compare_clique(mu, nu, excess, delta, terms):
    """Compare the marginals of one clique.

    ``excess`` receives ``x = mu / nu - 1``, and ``nu - mu`` is added to ``delta``. ``terms`` is
    workspace: two rows with at least as many columns as there are marginals.

    Returns
    -------
    gap : float
        Divergence of ``mu`` from ``nu``.
    slope : float
        Derivative of the entropy term at the step 0: the sum of both divergences.
    """
    size = nu.shape[0]
    gaps, slopes = terms[0], terms[1]
    # In two loops, because the compiler gives up on one that writes four arrays.
    for k in range(size):
        d = nu[k] - np.float64(mu[k])
        excess[k] = -d / nu[k]
        delta[k] += d
    for k in range(size):
        m = np.float64(mu[k])
        d = nu[k] - m
        log_ratio = log_positive(m / nu[k])
        gaps[k] = m * log_ratio + d
        slopes[k] = -d * log_ratio
    return sum_in_lanes(gaps[:size]), sum_in_lanes(slopes[:size])


@fused_jit
def entropy_slopes(nu, excess, rest, terms):
    """First two derivatives of the entropy term, for ``rest = 1 - gamma``; `terms` as above."""
    size = nu.shape[0]
    first, second = terms[0], terms[1]
    for k in range(size):
        x = excess[k]
        z = max(1.0 + rest * x, FLOOR)
        m = nu[k] * x
        first[k] = m * log_positive(z)
        second[k] = -m * (x / z)
    return sum_in_lanes(first[:size]), sum_in_lanes(second[:size])


@fused_jit
def move(mu, nu, gamma, terms):
    """Replace ``mu`` by ``mu + gamma (nu - mu)``; return its entropy. `terms` is a row."""
    size = nu.shape[0]
    for k in range(size):
        m = np.float64(mu[k])
        p = max(m + gamma * (nu[k] - m), FLOOR)
        terms[k] = -p * log_positive(p)
        mu[k] = p
    return sum_in_lanes(terms[:size])


@fused_jit
def entropy(mu, terms):
    """Entropy of the marginals of one clique; `terms` is a row of workspace."""
    size = mu.shape[0]
    for k in range(size):
        p = max(np.float64(mu[k]), FLOOR)
        terms[k] = -p * log_positive(p)
    return sum_in_lanes(terms[:size])


class Dual(NamedTuple):
    """The dual variables, and the entropy and duality gap of each sequence.

    Where there is a cost, the entropy is what the dual objective has in its place: entropy plus
    expected cost. The transition into token ``t`` of sequence ``i`` is at ``t - 1 - i``.
    """

    node: np.ndarray  # (n_rows, n_labels)
    transition: np.ndarray  # (n_rows - n_sequences, n_labels**2), in single or double precision
    entropy: np.ndarray  # (n_sequences,)
    gap: np.ndarray  # (n_sequences,), at the last visit


LOWEST = -1.7976931348623157e308


@jit
def set_marginals(problem, first, last, chain, transitions, dual):
    """Set the dual variables of the sequences ``first:last`` to the marginals of a chain."""
    n_labels = chain.transition.shape[0]
    length = longest(problem.offsets, first, last)
    scores, window = np.empty((length, n_labels)), new_window(problem.vectors, length, n_labels)
    scale = np.empty(length)
    factors, slabs = count_by_token(transitions), np.empty((length - 1, n_labels, n_labels))
    for i in range(first, last):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        visit_scores(problem.rows, problem.vectors, a, b, chain, window, scores)
        add_cost(problem.cost, problem.labels[a:b], scores)
        used = slabs[: b - a - 1]
        for slab in used:
            for y in range(n_labels):
                for j in range(n_labels):
                    slab[y, j] = 0.0
        forward_backward(scores, b - a, factors, dual.node[a:b], scale, 1.0, used)
        for t in range(1, b - a):
            for y in range(n_labels):
                for j in range(n_labels):
                    dual.transition[a - i + t - 1, y * n_labels + j] = max(used[t - 1, y, j], FLOOR)


@fused_jit
def entropy_slope(nu, gold, eta, terms):
    """Derivative by `eta` of the entropy of ``eta nu + (1 - eta) gold`` on one clique."""
    size = nu.shape[0]
    for k in range(size):
        n = np.float64(nu[k])
        terms[k] = -n * log_positive(max(eta * n, FLOOR))
    slope = sum_in_lanes(terms[:size])
    n = np.float64(nu[gold])
    slope += n * log_positive(max(eta * n, FLOOR))
    return slope - (n - 1.0) * log_positive(max(eta * n + 1.0 - eta, FLOOR))


@jit
def start_slope(problem, first, last, dual, eta):
    """Derivative by `eta` of the weighted entropies of the sequences ``first:last``."""
    n_labels = dual.node.shape[1]
    terms = np.empty(n_labels * n_labels)
    total = 0.0
    for i in range(first, last):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        slope = mean_cost(problem.cost, problem.labels[a:b], dual.node[a:b])
        for t in range(a, b):
            gold = problem.labels[t]
            slope += node_sign(t - a, b - a) * entropy_slope(dual.node[t], gold, eta, terms)
            if t > a:
                gold += n_labels * problem.labels[t - 1]
                slope += entropy_slope(dual.transition[t - i - 1], gold, eta, terms)
        total += problem.sample_weight[i] * slope
    return total


@jit
def mix_with_gold(problem, first, last, dual, eta):
    """Replace ``nu`` by ``eta nu + (1 - eta) gold`` in the sequences ``first:last``.

    Their entropies are computed as well.
    """
    n_labels = dual.node.shape[1]
    terms = np.empty(n_labels * n_labels)
    for i in range(first, last):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        total = 0.0
        for t in range(a, b):
            gold = problem.labels[t]
            total += node_sign(t - a, b - a) * mix_clique(dual.node[t], gold, eta, terms)
            if t > a:
                gold += n_labels * problem.labels[t - 1]
                total += mix_clique(dual.transition[t - i - 1], gold, eta, terms)
        dual.entropy[i] = total + mean_cost(problem.cost, problem.labels[a:b], dual.node[a:b])


@inner_jit
def mix_clique(mu, gold, eta, terms):
    """Mix the marginals of one clique with gold; return their entropy."""
    for k in range(mu.shape[0]):
        mu[k] = max(eta * mu[k], FLOOR)
    mu[gold] += 1.0 - eta
    return entropy(mu, terms)


@inner_jit
def possible_transitions(chain):
    """Flat indicators of possible transitions: into any token, and into the last one."""
    n_labels = chain.transition.shape[0]
    possible = np.ones((2, n_labels * n_labels))
    for y in range(n_labels):
        for j in range(n_labels):
            if chain.transition[y, j] == -np.inf:
                possible[:, y * n_labels + j] = 0.0
            elif chain.end[j] == -np.inf:
                possible[1, y * n_labels + j] = 0.0
    return possible


@inner_lean_jit
def read_chain(stored, possible, node, joint):
    """Compute the joint marginals of two tokens, and the second's, from the first's."""
    n_labels = node.shape[1]
    for j in range(n_labels):
        node[1, j] = 0.0
    for y in range(n_labels):
        total = 0.0
        for j in range(n_labels):
            total += possible[y * n_labels + j] * stored[y * n_labels + j]
        # A label that cannot be followed has a negligible probability, which becomes zero.
        share = node[0, y] / total if total > 0.0 else 0.0
        for j in range(n_labels):
            p = share * (possible[y * n_labels + j] * stored[y * n_labels + j])
            joint[y * n_labels + j] = p
            node[1, j] += p


@inner_lean_jit
def read_first(stored, possible, start, node):
    """Write the marginals of the first token, up to a factor."""
    n_labels = node.shape[0]
    for y in range(n_labels):
        node[y] = 0.0
        for j in range(n_labels if start[y] > -np.inf else 0):
            node[y] += possible[y * n_labels + j] * stored[y * n_labels + j]


@inner_lean_jit
def normalise(node):
    total = 0.0
    for p in node:
        total += p
    for y in range(node.shape[0]):
        node[y] /= total


@jit
def conjugate_sum(problem, first, last, dual, out):
    """Compute entropies of the sequences ``first:last``; add ``sum_i s_i (F(gold) - E F)``.

    The node marginals become the Markov chains'. Weights of minus infinity in ``out`` mark
    what is impossible, and stay.

    Returns
    -------
    entropy : float
        Weighted sum.
    """
    n_labels = dual.node.shape[1]
    possible = possible_transitions(out)
    joint, terms = np.empty(n_labels * n_labels), np.empty(n_labels * n_labels)
    length = longest(problem.offsets, first, last)
    difference, window = (
        np.empty((length, n_labels)),
        new_window(problem.vectors, length, n_labels),
    )
    total = 0.0
    for i in range(first, last):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        weight = problem.sample_weight[i]
        node = dual.node[a:b]
        dual.entropy[i] = 0.0
        if b - a > 1:
            read_first(dual.transition[a - i], possible[np.int64(b - a == 2)], out.start, node[0])
        else:
            for j in range(n_labels):
                if out.start[j] == -np.inf or out.end[j] == -np.inf:
                    node[0, j] = 0.0
        normalise(node[0])
        for t in range(b - a):
            if t > 0:
                last = np.int64(t == b - a - 1)
                read_chain(
                    dual.transition[a - i + t - 1], possible[last], node[t - 1 : t + 1], joint
                )
                dual.entropy[i] += entropy(joint, terms)
                add_flat(joint, -weight, out.transition)
                out.transition[problem.labels[a + t - 1], problem.labels[a + t]] += weight
            dual.entropy[i] += node_sign(t, b - a) * entropy(node[t], terms)
            for j in range(n_labels):
                difference[t, j] = -weight * node[t, j]
            difference[t, problem.labels[a + t]] += weight
        add_features(problem, a, b, difference, window, out)
        dual.entropy[i] += mean_cost(problem.cost, problem.labels[a:b], node)
        total += weight * dual.entropy[i]
    return total


@inner_lean_jit
def add_flat(joint, factor, out):
    """``out += factor * joint``, where ``joint`` is flat."""
    n = out.shape[0]
    for y in range(n):
        for j in range(n):
            out[y, j] += factor * joint[y * n + j]


@inner_lean_jit
def add_features(problem, a, b, difference, window, out):
    """Add the contribution of the tokens ``a:b`` to state weights and biases."""
    rows = problem.rows
    n_labels = difference.shape[1]
    end = rows.indices.shape[0]
    for t in range(b - a):
        d = difference[t]
        for k in range(rows.indptr[a + t], rows.indptr[a + t + 1]):
            if k + AHEAD < end:
                prefetch(out.weights, rows.indices[k + AHEAD] * n_labels)
            x = value_of(rows.data, k)
            row = out.weights[rows.indices[k]]
            for j in range(n_labels):
                row[j] += x * d[j]
        if problem.fit_intercept:
            for j in range(n_labels):
                out.intercept[j] += d[j]
    if window.sums.shape[0] > 0:
        load_vectors(problem.vectors, a, b, window.values)
        sum_vectors(window, b - a, difference)
        add_sums(problem.vectors, window, 1.0, out.weights)
    if problem.fit_intercept:
        for j in range(n_labels):
            out.start[j] += difference[0, j]
            out.end[j] += difference[b - a - 1, j]


@jit
def true_gaps(problem, first, last, dual, chain, transitions):
    """Compute duality gaps of the sequences ``first:last``; return their negative log-likelihood.

    The node marginals must come from `conjugate_sum`.
    """
    n_labels = chain.transition.shape[0]
    length = longest(problem.offsets, first, last)
    scores, window = np.empty((length, n_labels)), new_window(problem.vectors, length, n_labels)
    alpha = np.empty((length, n_labels))
    scale = np.empty(length)
    joint = np.empty(n_labels * n_labels)
    spare = np.empty((2, n_labels))
    factors = count_by_token(transitions)
    buffer, none = sum_buffer(factors, n_labels), np.empty((0, n_labels, n_labels))
    possible = possible_transitions(chain)
    # Impossible transitions have probability zero, and zero times infinity would be NaN.
    finite = np.empty((n_labels, n_labels))
    for y in range(n_labels):
        for j in range(n_labels):
            finite[y, j] = max(chain.transition[y, j], LOWEST)
    total = 0.0
    for i in range(first, last):
        a, b = problem.offsets[i], problem.offsets[i + 1]
        visit_scores(problem.rows, problem.vectors, a, b, chain, window, scores)
        gold_score = path_score(scores, b - a, factors.edges, problem.labels[a:b])
        mean_score = 0.0
        for t in range(b - a):
            for j in range(n_labels):
                mean_score += dual.node[a + t, j] * max(scores[t, j], LOWEST)
            if t > 0:
                for j in range(n_labels):
                    spare[0, j] = dual.node[a + t - 1, j]
                last = np.int64(t == b - a - 1)
                read_chain(dual.transition[a - i + t - 1], possible[last], spare, joint)
                mean_score += inner(joint, finite)
        # The expected cost is part of the entropy.
        add_cost(problem.cost, problem.labels[a:b], scores)
        log_z, exact = 0.0, False
        if factors.safe:
            log_z, exact = scaled_forward(
                scores, b - a, factors, factors.forbids, buffer, alpha, scale
            )
        if not exact:
            log_z = log_forward_backward(scores, b - a, factors, alpha, 0.0, none)
        dual.gap[i] = max(log_z - mean_score - dual.entropy[i], 0.0)
        total += problem.sample_weight[i] * (log_z - gold_score)
    return total


@lean_jit
def inner(joint, transition):
    """Mean of the transition scores under flat transition marginals."""
    n = transition.shape[0]
    total = 0.0
    for y in range(n):
        for j in range(n):
            total += joint[y * n + j] * transition[y, j]
    return total
