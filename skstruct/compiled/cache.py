"""Cache of compiled kernels, which numba's dispatchers read and write.

With it, a warm first fit takes 0.30 s and 163 MB; with numba's own cache it takes 0.45 s and
200 MB, and kernels in wheels are ten times larger. numba's cache also misses edits of functions
that a kernel calls, and raises an error where a file is damaged.

Most of the difference is LLVM bitcode, which numba keeps next to machine code. It is only needed
when another kernel that is compiled here calls the one that was loaded, and parsing it takes most
of the time of loading. So it is parsed on demand, and wheels carry none.
"""

import functools
import hashlib
import logging
import os
import pickle

import llvmlite.binding as llvm
from numba.core.caching import NullCache
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.cpython import numbers  # noqa: F401  (loaded kernels refer to it)
from numba.np import arrayobj  # noqa: F401  (and to this)

from skstruct.compiled.keys import file_name, hash_outside, is_outside, sources_unchanged
from skstruct.compiled.rules import (
    NATIVE,
    LoadedKernel,
    is_native,
    loaded_kernels,
    own_folders,
    read_file,
    usable_archives,
    write_file,
)
from skstruct.utils.messages import announce_compiling, log_once

logger = logging.getLogger("skstruct")


# Classes that have family members in extensions (`is_outside`).
outside = set()
_DIGEST = hashlib.sha256().digest_size
NOT_COMPILED = (
    "The kernel {0} is not compiled for arguments of the types {1}, and the environment variable "
    "SKSTRUCT_KERNELS=compiled forbids compiling it. Unset it, or run `skstruct warm` first."
)


def has_private_names():
    """Return True if this release of numba has the private names that are used here."""
    names = {CompileResult: ("_reduce", "_rebuild"), CPUCodeLibrary: ("_get_module_for_linking",)}
    return all(hasattr(kind, name) for kind, found in names.items() for name in found)


def mark_native():
    """From now on, prefer kernels compiled here to the kernels of the package."""
    write_file(own_folders(), NATIVE, b"")


def pack(code, bitcode):
    """Content of a cache entry: a digest, machine code and bitcode."""
    content = pickle.dumps((code, bitcode))
    return hashlib.sha256(content).digest() + content


def unpack(content):
    """Machine code and bitcode of a cache entry; a ValueError if it is damaged."""
    digest, content = content[:_DIGEST], content[_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("The file is damaged.")
    return pickle.loads(content)


class KernelCache(NullCache):
    """Compiled code of one kernel, for each combination of argument types.

    Parameters
    ----------
    function : callable
        The kernel in Python.

    Attributes
    ----------
    for_linking : bool
        True while the code is wanted for a call from another kernel, which needs bitcode.
    """

    def __init__(self, function):
        self.kernel = f"{function.__module__}.{function.__qualname__}"
        self._is_outside = is_outside(function)
        self.for_linking = False
        self._without_bitcode = set()

    def must_compile_again(self, signature):
        """Return True, once, if another kernel links code that was loaded without bitcode."""
        again = self.for_linking and signature in self._without_bitcode
        if again:
            self._without_bitcode.remove(signature)
        return again

    def load_overload(self, signature, target):
        """Find compiled code; None has numba compile."""
        name = self._file_name(signature)
        if name is not None:
            for origin, find in self._places(own_folders()):
                result = self._load(find, name, signature, target)
                if result is not None:
                    loaded_kernels.append(LoadedKernel(self.kernel, signature, origin, name))
                    return result
        if os.environ.get("SKSTRUCT_KERNELS") == "compiled":
            raise RuntimeError(NOT_COMPILED.format(self.kernel, signature))
        announce_compiling()
        loaded_kernels.append(LoadedKernel(self.kernel, signature, "compiler", name))
        return None

    def _file_name(self, signature):
        """Name of the entry for argument types; None if the sources are unknown or were edited."""
        more = hash_outside() if self._is_outside or _has_outside(signature) else ""
        if more is None or not sources_unchanged():
            return None
        return file_name(self.kernel, signature, more)

    def _places(self, folders):
        """Origins, best first, and functions that find code and bitcode there by name."""
        if not (self.for_linking or is_native(folders)):
            for baseline, archive in usable_archives().items():
                yield baseline, archive.find

        def find(name):
            content = read_file(folders, name)
            return None if content is None else unpack(content)

        yield "cache", find

    def _load(self, find, name, signature, target):
        try:
            found = find(name)
            result = None if found is None else _rebuild(*found, signature, target)
        # Unpickling may raise anything.
        except Exception:
            message = "A compiled kernel is damaged, and is compiled again: %s"
            log_once(logging.WARNING, message, self.kernel)
            return None
        if result is not None and found[1] is None:
            self._without_bitcode.add(signature)
        return result

    def save_overload(self, signature, result):
        """Keep what numba has compiled."""
        name = None if result.library.has_dynamic_globals else self._file_name(signature)
        if name is None:
            return
        try:
            content = pack(*_reduce(signature, result))
        except Exception:
            logger.debug("%s cannot be kept", self.kernel, exc_info=True)
            return
        write_file(own_folders(), name, content)


def _has_outside(kind):
    """Return True if a type, or a part of it, belongs to a class with members in extensions."""
    parts = kind if isinstance(kind, tuple) else getattr(kind, "types", ())
    return getattr(kind, "instance_class", None) in outside or any(map(_has_outside, parts))


def _reduce(signature, result):
    """Code and bitcode of a result of numba's compiler."""
    # The annotation is a listing of the source for people, and long.
    (name, kind, (machine_code, bitcode)), *rest = result._replace(type_annotation="")._reduce()
    defined = result.fndesc.llvm_func_name, result.fndesc.llvm_cpython_wrapper_name
    library = name, kind, (machine_code, _stub(*defined))
    return dumps((signature, (library, *rest))), bitcode


def _stub(*names):
    """Bitcode in place of the real one: it declares the symbols of the machine code.

    They are declared as bytes, not functions, so that calls of them fail to link.
    """
    lines = [f'@"{name}" = global i8 0' for name in names]
    return llvm.parse_assembly("\n".join(lines)).as_bitcode()


def _rebuild(code, bitcode, signature, target):
    """Restore a result of numba's compiler; None if it is for another signature.

    Of all that numba sets up before it compiles, code that is loaded needs the runtime only. The
    rest, tables of its functions for the compiler, takes a tenth of the time of a short fit.
    """
    rtsys.initialize(target)
    kept_signature, reduced = pickle.loads(code)
    if kept_signature != signature:
        return None
    result = CompileResult._rebuild(target, *reduced)
    result.library._get_module_for_linking = functools.cache(lambda: llvm.parse_bitcode(bitcode))
    return result
