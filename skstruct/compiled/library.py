"""Code of kernels that only other kernels call, which include it in theirs.

numba makes machine code of every function that it compiles. It takes a tenth of the time of
compiling, and nothing ever runs this code of a kernel that Python does not call.
"""

from __future__ import annotations

from contextlib import contextmanager

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

__all__ = ["CalledLibrary", "KernelCompiler", "libraries_of"]


class KernelCompiler(Compiler):
    """numba's compiler, which makes no machine code of what Python is not to call."""

    def define_pipelines(self):
        """Steps of the compiler; before the first one, its code gets a place."""
        state = self.state
        if state.flags.no_cpython_wrapper:
            state.library = CalledLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class CalledLibrary(JITCodeLibrary):
    """LLVM's code of a kernel, without machine code."""

    @property
    def codegen(self):
        """What numba tells the address of the function's environment, which is not in memory."""
        return _NoEnvironments

    def get_pointer_to_function(self, name):
        """Nothing is in memory."""
        self._ensure_finalized()
        return 0

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self):
        """What `_unserialize` takes, with bitcode alone."""
        return self.name, "object", (b"", self._get_module_for_linking().as_bitcode())

    @classmethod
    def _unserialize(cls, codegen, state):
        library = codegen.create_library(state[0])
        library._finalized = True
        return library


class _NoEnvironments:
    @staticmethod
    def set_env(name, environment):
        """Leave it to the kernels that include this one."""


@contextmanager
def libraries_of(target, kind):
    """Context in which the code that numba loads is of a class."""
    codegen = target.codegen()
    before = codegen._library_class
    codegen._library_class = kind
    try:
        yield
    finally:
        codegen._library_class = before
