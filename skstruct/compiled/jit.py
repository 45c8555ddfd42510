"""Compiled functions: numba's dispatchers with the package's own cache, and compiler options.

Integer constants have the type of any integer: a first fit from source takes a quarter less.

LLVM calls Python to load code, and to store code that it has made. An exception in such a call is
lost. One that comes after LLVM has freed or taken over an object, and before Python has noted it,
has the object freed twice, and the process crashes. So a Ctrl-C is deferred until the kernel is
ready.
"""

import logging
import signal
import threading
from contextlib import contextmanager
from functools import partial

import numba
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from skstruct.compiled.cache import KernelCache, has_private_names
from skstruct.compiled.rules import CANNOT_KEEP
from skstruct.utils.messages import log_once


class Kernel(CPUDispatcher):
    """Compiled function that is found in the cache, and can be interrupted.

    Parameters
    ----------
    *args, **options
        Those of numba's dispatcher: the function, and options of `numba.jit`.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        if has_private_names():
            self._cache = KernelCache(self.py_func)
            return
        try:
            self.enable_caching()
        except RuntimeError:
            log_once(logging.WARNING, CANNOT_KEEP, "the package's folder")

    def __call__(self, *args):
        """Call the compiled function; one that only kernels call runs in Python.

        numba calls Python for each array that a kernel returns. There, a Ctrl-C that came while the
        kernel ran raises KeyboardInterrupt, and numba a SystemError with it as the cause.
        """
        if self.targetoptions.get("no_cpython_wrapper"):
            return self.py_func(*args)
        try:
            return super().__call__(*args)
        except SystemError as error:
            cause = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            if cause is error:
                raise
            raise cause from None

    def get_call_template(self, args, kws):
        """Signature of a call from another kernel, into which the code is linked."""
        kws = {name: _without_constant(kind) for name, kind in kws.items()}
        with global_compiler_lock:
            self._cache.for_linking = True
            try:
                return super().get_call_template(tuple(map(_without_constant, args)), kws)
            finally:
                self._cache.for_linking = False

    def compile(self, signature):
        """Compile for argument types, or load from the cache, unless that is done."""
        with interrupts_deferred(), global_compiler_lock:
            if isinstance(self._cache, KernelCache) and self._cache.must_compile_again(signature):
                del self.overloads[signature]
            return super().compile(signature)


def _without_constant(kind):
    return kind.literal_type if isinstance(kind, types.IntegerLiteral) else kind


@contextmanager
def interrupts_deferred():
    """Context that defers interrupts to its end."""
    before = signal.getsignal(signal.SIGINT)
    # Python calls handlers in the main thread only.
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    # A kernel that another one calls is compiled in the context of that one: the handler before is
    # then the outer context's.
    pending = []
    signal.signal(signal.SIGINT, lambda *interrupt: pending.append(interrupt))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pending:
            before(*pending[-1])


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
