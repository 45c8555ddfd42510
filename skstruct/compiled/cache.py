"""What numba's dispatchers ask for compiled code, and give it to."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numba
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

from skstruct.compiled.entries import load_entry, make_entry, read_entry, supported
from skstruct.compiled.folders import cache_folders, read_file, write_file
from skstruct.compiled.keys import file_name, folder_name, sources_unchanged

__all__ = ["Use", "attach_cache", "uses"]

logger = logging.getLogger("skstruct")


class Use(NamedTuple):
    """One kernel that was loaded or compiled in this process."""

    kernel: str
    signature: tuple
    origin: str  # "cache" or "compiler"


uses = []
_told = set()


def tell_once(level, message, *values):
    """Log a message if no other one with the same text was logged by this process."""
    if message not in _told:
        _told.add(message)
        logger.log(level, message, *values)


def attach_cache(kernel):
    """Let a kernel find and keep its compiled code here; return the kernel."""
    if not isinstance(kernel, Dispatcher):  # NUMBA_DISABLE_JIT
        return kernel
    if supported() and hasattr(kernel, "_cache"):
        kernel._cache = KernelCache(kernel.py_func)
        return kernel
    try:
        # A release of numba that has changed inside.
        kernel.enable_caching()
    except RuntimeError:
        tell_once(logging.WARNING, "Compiled kernels cannot be kept: no folder can be written to.")
    return kernel


class KernelCache(NullCache):
    """Compiled code of one kernel, for each combination of argument types.

    Parameters
    ----------
    function : callable
        The kernel in Python.
    """

    def __init__(self, function):
        self._kernel = f"{function.__module__}.{function.__qualname__}".rpartition(".kernels.")[2]

    @property
    def cache_path(self):
        """The folder that is tried first."""
        return str(self._folders(numba.core.registry.cpu_target.target_context)[0])

    def _folders(self, target):
        return cache_folders(folder_name(target.codegen().magic_tuple()))

    def load_overload(self, signature, target):
        """Find compiled code; None has numba compile."""
        target.refresh()
        result = self._load_own(signature, target) if sources_unchanged() else None
        uses.append(Use(self._kernel, signature, "compiler" if result is None else "cache"))
        return result

    def _load_own(self, signature, target):
        content = read_file(self._folders(target), file_name(self._kernel, signature))
        if content is None:
            return None
        try:
            return load_entry(read_entry(content), signature, target)
        # Unpickling raises whatever it likes.
        except Exception:
            message = "A cached kernel is damaged, and is compiled again: %s"
            tell_once(logging.WARNING, message, self._kernel)
            return None

    def save_overload(self, signature, result):
        """Keep what numba has compiled."""
        if not sources_unchanged():
            return
        try:
            entry = make_entry(signature, result)
        except Exception:
            logger.debug("%s cannot be kept", self._kernel, exc_info=True)
            return
        if entry is None:
            return
        folders = self._folders(result.target_context)
        if write_file(folders, file_name(self._kernel, signature), entry.pack()) is None:
            message = (
                "Compiled kernels cannot be kept: %s cannot be written to. Every process compiles "
                "them again. Set NUMBA_CACHE_DIR to a folder that can be written to."
            )
            tell_once(logging.WARNING, message, " and ".join(str(f.parent) for f in folders))
