"""Cache of compiled kernels, which numba's dispatchers read and write."""

from __future__ import annotations

import logging
import os
from typing import NamedTuple

from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target

from skstruct.compiled.archive import usable_archives
from skstruct.compiled.entries import Entry, load_entry, make_entry, read_entry, supported
from skstruct.compiled.folders import (
    CANNOT_KEEP,
    NATIVE,
    cache_folders,
    is_native,
    read_file,
    write_file,
)
from skstruct.compiled.kernel import Kernel, garbage_left, python_can_call
from skstruct.compiled.keys import file_name, folder_name, kernel_name, sources_unchanged
from skstruct.compiled.library import KernelCompiler
from skstruct.utils.messages import tell_compiling, tell_once

__all__ = ["Use", "attach_cache", "mark_native", "own_folders", "untracked", "uses"]

logger = logging.getLogger("skstruct")


class Use(NamedTuple):
    """One kernel that was loaded or compiled in this process."""

    kernel: str
    signature: tuple
    origin: str  # baseline of the archive, "cache" or "compiler"


uses = []
# Classes with functions in files that are no sources of the package. Kernels that call these are
# not kept: nothing would notice an edit.
untracked = set()
NOT_COMPILED = (
    "The kernel {0} is not compiled for arguments of the types {1}, and the environment variable "
    "SKSTRUCT_KERNELS=compiled forbids compiling it. Unset it, or run `skstruct warm` first."
)


def own_folders(target=None):
    """Folders where kernels that are compiled here may be, by default with numba's CPU target."""
    target = cpu_target.target_context if target is None else target
    return cache_folders(folder_name(target.codegen().magic_tuple()))


def mark_native():
    """From now on, prefer what is compiled here to what came with the package."""
    write_file(own_folders(), NATIVE, b"")


def _is_untracked(kind):
    """Return True for types of untracked classes, and for those that have such parts."""
    parts = kind if isinstance(kind, tuple) else getattr(kind, "types", ())
    return getattr(kind, "instance_class", None) in untracked or any(map(_is_untracked, parts))


def attach_cache(kernel):
    """Let a kernel find and keep its compiled code here, and be interrupted; return the kernel."""
    if not isinstance(kernel, Dispatcher):  # NUMBA_DISABLE_JIT
        return kernel
    kernel.__class__ = Kernel
    if supported() and hasattr(kernel, "_cache") and hasattr(kernel, "_compiler"):
        kernel._cache = KernelCache(kernel.py_func)
        kernel._compiler.pipeline_class = KernelCompiler
        kernel._compiler.compile = garbage_left()(kernel._compiler.compile)
        return kernel
    try:
        # A release of numba that has changed inside.
        kernel.enable_caching()
    except RuntimeError:
        tell_once(logging.WARNING, CANNOT_KEEP, "the package's folder")
    return kernel


class KernelCache(NullCache):
    """Compiled code of one kernel, for each combination of argument types.

    Parameters
    ----------
    function : callable
        The kernel in Python.
    """

    # True while another kernel asks.
    for_kernel = False

    def __init__(self, function):
        self.kernel = kernel_name(function)

    @property
    def cache_path(self):
        """The folder that is tried first."""
        return str(next(iter(own_folders()), ""))

    def load_overload(self, signature, target):
        """Find compiled code; None has numba compile."""
        for origin, content in self._contents(signature, target):
            result = self._load(content, signature, target)
            if result is not None:
                uses.append(Use(self.kernel, signature, origin))
                return result
        if os.environ.get("SKSTRUCT_KERNELS") == "compiled":
            raise RuntimeError(NOT_COMPILED.format(self.kernel, signature))
        tell_compiling()
        uses.append(Use(self.kernel, signature, "compiler"))
        return None

    def _contents(self, signature, target):
        """Entries, or contents of files, that may fit, each with its origin; the best one first."""
        if not sources_unchanged() or _is_untracked(signature):
            return
        folders, name = own_folders(target), file_name(self.kernel, signature)
        if not is_native(folders):
            for archive in usable_archives():
                yield archive.baseline, archive.find(name)
        if self.for_kernel:
            yield "cache", read_file(folders, file_name(self.kernel, signature, for_kernel=True))
        yield "cache", read_file(folders, name)

    def _load(self, content, signature, target):
        if content is None:
            return None
        try:
            entry = content if isinstance(content, Entry) else read_entry(content)
            return load_entry(entry, signature, target)
        # Unpickling raises whatever it likes.
        except Exception:
            message = "A compiled kernel is damaged, and is compiled again: %s"
            tell_once(logging.WARNING, message, self.kernel)
            return None

    def save_overload(self, signature, result):
        """Keep what numba has compiled."""
        if not sources_unchanged() or _is_untracked(signature):
            return
        try:
            entry = make_entry(signature, result)
        except Exception:
            logger.debug("%s cannot be kept", self.kernel, exc_info=True)
            return
        if entry is None:
            return
        folders = own_folders(result.target_context)
        name = file_name(self.kernel, signature, for_kernel=not python_can_call(result))
        write_file(folders, name, entry.pack())
