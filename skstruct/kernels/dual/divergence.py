"""Entropy and divergence of chains from their clique marginals, and the line search on them.

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

from skstruct.kernels._jit import jit, lean_jit

# Sums may be reordered, which lets the compiler vectorise them. Use it only for functions without
# infinities and without arithmetic that relies on rounding.
jit_sums = partial(lean_jit, fastmath={"contract", "reassoc"})

# Lower bound of marginals, so that logarithms and quotients exist. It is a normal number in single
# precision, too.
FLOOR = 1e-37

_LN2 = 0.6931471805599453
# The bits of sqrt(1 / 2), of the exponent, and of the number one.
_HALF_ROOT = 0x3FE6A09E667F3BCD
_EXPONENT = -(1 << 52)


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


@jit_sums
def compare_clique(mu, nu, excess, delta):
    """Compare the marginals of one clique.

    ``excess`` receives ``x = mu / nu - 1``, and ``nu - mu`` is added to ``delta``.

    Returns
    -------
    gap : float
        Divergence of ``mu`` from ``nu``.
    slope : float
        Derivative of the entropy term at the step 0: the sum of both divergences.
    """
    gap, slope = 0.0, 0.0
    for k in range(nu.shape[0]):
        n = nu[k]
        m = np.float64(mu[k])
        d = n - m
        ratio = m / n
        log_ratio = log_positive(ratio)
        gap += m * log_ratio + d
        slope -= d * log_ratio
        excess[k] = -d / n
        delta[k] += d
    return gap, slope


@jit_sums
def entropy_slopes(nu, excess, rest):
    """First two derivatives of the entropy term, for ``rest = 1 - gamma``."""
    first, second = 0.0, 0.0
    for k in range(nu.shape[0]):
        x = excess[k]
        z = max(1.0 + rest * x, FLOOR)
        m = nu[k] * x
        first += m * log_positive(z)
        second -= m * (x / z)
    return first, second


@jit_sums
def move(mu, nu, gamma):
    """Replace ``mu`` by ``mu + gamma (nu - mu)``; return its entropy."""
    entropy = 0.0
    for k in range(nu.shape[0]):
        m = np.float64(mu[k])
        p = max(m + gamma * (nu[k] - m), FLOOR)
        entropy -= p * log_positive(p)
        mu[k] = p
    return entropy


@jit_sums
def entropy(mu):
    """Entropy of the marginals of one clique."""
    total = 0.0
    for k in range(mu.shape[0]):
        p = max(np.float64(mu[k]), FLOOR)
        total -= p * log_positive(p)
    return total
