"""Entropy and divergence of chains from their clique marginals, and their derivatives on a line.

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

import numpy as np

from skstruct.compiled.jit import jit, lean_jit
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


@jit(inline="always")
def node_sign(t, length):
    """Sign of a token in sums over cliques and separators (see `skstruct.learning.divergence`).

    Zero at both ends, which are no separators; one for a token on its own, which is a clique.
    """
    if length == 1:
        return 1.0
    return 0.0 if t == 0 or t == length - 1 else -1.0


@jit(inline="always")
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
