"""Compiler options of all kernels."""

from functools import partial

import numba

from skstruct.compiled.cache import attach_cache


def jit(function=None, **options):
    """Compile a kernel when it is first called, unless it was compiled before.

    Parameters
    ----------
    function : callable, optional
        The kernel in Python. Without it, a decorator is returned.
    **options
        Options of `numba.njit`.
    """
    if function is None:
        return partial(jit, **options)
    # error_model="numpy": the check for division by zero would stop vectorisation.
    # No fast-math flag, not even "contract": a function may be compiled more than once, inlined
    # here and called there, and what is fused in one copy and not in another rounds differently.
    # Which copy runs depends on what was cached, and the same fit would not always give the same
    # bits.
    # No wrapper for C: nothing calls kernels from there, and a tenth of the compile time is spared.
    compiled = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)
    return attach_cache(compiled(function))


# For kernels that do not allocate or return arrays, and do not call functions that return arrays.
# Without the NRT, numba does not count references to the rows of an array, which would often cost
# more than the arithmetic on a row.
lean_jit = partial(jit, _nrt=False)
