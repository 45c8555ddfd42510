"""Compiled functions: numba's, but compiled in less time."""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager

from numba.core import sigutils, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target

from skstruct.compiled.interrupts import interrupts_deferred

__all__ = ["Kernel", "garbage_left", "python_can_call"]

# Python looks for garbage when so many objects more were made than freed. The compiler makes
# millions, which nearly all live on: with Python's 700 the search takes a fifteenth of its time.
_MANY = 100_000

# numba imports a part of itself, with all that it can compile, when it first compiles or loads.
# A fork or a Ctrl-C in the midst of imports leaves modules that are never complete.
cpu_target.target_context.refresh()

if hasattr(os, "register_at_fork"):
    # The child has no other threads: none would ever unlock what another one has locked.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


class Kernel(CPUDispatcher):
    """Compiled function that other kernels call with constants as with any integer.

    What other kernels call is compiled without machine code, and without the wrapper for calls from
    Python, which reads each argument, checks it and answers errors. If Python calls it later, it is
    compiled anew.
    """

    def __call__(self, *args):
        """Run the function.

        numba calls Python for each array that compiled code returns. A Ctrl-C that came while the
        code ran is answered there, and numba raises a SystemError that was caused by it.
        """
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
        """Signature for a call in a kernel; numba would compile the function for each constant."""
        kws = {name: _without_constant(kind) for name, kind in kws.items()}
        with self._wanted(for_kernel=True):
            return super().get_call_template(tuple(map(_without_constant, args)), kws)

    def compile(self, signature):
        """Compile for argument types, or load what was compiled, unless that is done."""
        with interrupts_deferred(), self._wanted(for_kernel=self._for_kernel):
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
