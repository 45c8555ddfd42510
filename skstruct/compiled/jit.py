"""Compiler options of all kernels."""

from functools import partial

import numba

from skstruct.compiled.kernel import Kernel


def jit(function=None, **options):
    """Compile a kernel when it is first called, unless it was compiled before.

    A kernel that Python calls returns numbers, arrays or plain tuples of them, from which its
    caller makes a record. numba makes a NamedTuple by calling Python code, without a check for
    errors: a pending Ctrl-C raises one there, and the process crashes.

    Parameters
    ----------
    function : callable, optional
        The kernel in Python. Without it, a decorator is returned.
    **options
        Options of `numba.njit`.
    """
    if function is None:
        return partial(jit, **options)
    if numba.config.DISABLE_JIT:
        return function
    # error_model="numpy": the check for division by zero would prevent vectorisation.
    # No fast-math flag, not even "contract": a function may be compiled twice, inlined and on its
    # own, and the copies would round differently if only one of them fuses an operation. Which copy
    # runs depends on the cache, so a fit would not be reproducible to the last bit.
    # No C wrapper: nothing calls kernels from C, and it takes a tenth of the compile time.
    fixed = {"nopython": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    return Kernel(function, targetoptions={**fixed, "boundscheck": None, **options})


# For kernels that do not allocate or return arrays, and do not call functions that return arrays.
# Without the NRT, numba does not count references to the rows of an array, which would often cost
# more than the arithmetic on a row.
lean_jit = partial(jit, _nrt=False)
# For kernels that only other kernels call: a wrapper for Python takes longer to compile than most
# of them. Called from Python, they run in Python.
inner_jit = partial(jit, no_cpython_wrapper=True)
inner_lean_jit = partial(lean_jit, no_cpython_wrapper=True)
# For kernels that numba copies into their callers. Most have one caller: on its own, such a kernel
# would be compiled, and then once more as a part of each kernel that calls its caller. Without
# these, the first fit of a CRF takes 1.15 to 1.4 times as long to compile.
inline_jit = partial(jit, inline="always")
inline_lean_jit = partial(lean_jit, inline="always")
