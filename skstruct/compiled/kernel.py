"""Compiled functions: numba's, but compiled in less time."""

from __future__ import annotations

import gc
from contextlib import contextmanager

from numba.core import sigutils, types
from numba.core.compiler_lock import global_compiler_lock

from skstruct.compiled.interrupts import Interruptible

__all__ = ["Kernel", "garbage_left", "python_can_call"]

# Python looks for garbage when so many objects more were made than freed. The compiler makes
# millions, which nearly all live on: with Python's 700 the search takes a fifteenth of its time.
_MANY = 100_000


class Kernel(Interruptible):
    """Compiled function that other kernels call with constants as with any integer.

    What other kernels call is compiled without machine code, and without the wrapper for calls from
    Python, which reads each argument, checks it and answers errors. If Python calls it later, it is
    compiled anew.
    """

    def get_call_template(self, args, kws):
        """Signature for a call in a kernel; numba would compile the function for each constant."""
        kws = {name: _without_constant(kind) for name, kind in kws.items()}
        with self._wanted(for_kernel=True):
            return super().get_call_template(tuple(map(_without_constant, args)), kws)

    def compile(self, signature):
        """Compile for argument types, unless that is done."""
        with self._wanted(for_kernel=self._for_kernel):
            args = tuple(sigutils.normalize_signature(signature)[0])
            known = self.overloads.get(args)
            if known is not None and not (self._for_kernel or python_can_call(known)):
                del self.overloads[args]
            return super().compile(signature)

    def add_overload(self, result):
        """Note what was compiled or loaded; let Python find it if it can call it."""
        if not python_can_call(result):
            self.overloads[tuple(result.signature.args)] = result
            return
        super().add_overload(result)
        if hasattr(self._cache, "for_kernel"):
            # Those of the kernels that this one includes are in memory only now.
            for environment in result._find_referenced_environments():
                result.library.codegen.set_env(environment.env_name, environment)

    @property
    def _for_kernel(self):
        """True while another kernel asks, to which code that Python cannot call is good enough."""
        return getattr(self._cache, "for_kernel", False)

    @contextmanager
    def _wanted(self, *, for_kernel):
        if not hasattr(self._cache, "for_kernel"):
            yield
            return
        with global_compiler_lock:
            before = self._for_kernel
            self._cache.for_kernel = self.targetoptions["no_cpython_wrapper"] = for_kernel
            try:
                yield
            finally:
                self._cache.for_kernel = self.targetoptions["no_cpython_wrapper"] = before


def python_can_call(result):
    """Return True if a result of numba's compiler has a wrapper for calls from Python."""
    return result.library.get_pointer_to_function(result.fndesc.llvm_cpython_wrapper_name) != 0


def _without_constant(kind):
    return kind.literal_type if isinstance(kind, types.IntegerLiteral) else kind


@contextmanager
def garbage_left():
    """Context of a compilation, with little time spent on the search for garbage."""
    before = gc.get_threshold()
    # Zero turns the search off.
    if before[0]:
        gc.set_threshold(max(before[0], _MANY), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
