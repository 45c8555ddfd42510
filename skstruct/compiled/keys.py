"""Everything that compiled code depends on: sources, versions, settings, processor."""

from __future__ import annotations

import hashlib
import json
import sysconfig
from functools import lru_cache
from importlib import import_module, resources
from pathlib import Path

import llvmlite
import numba
import numpy as np

__all__ = [
    "PACKAGES",
    "environment",
    "file_name",
    "find_kernel",
    "folder_name",
    "kernel_name",
    "sources_hash",
    "sources_unchanged",
]

# Packages of kernels.
PACKAGES = ("skstruct.chain", "skstruct.kernels")
# Number of the layout of entries and archives.
FORMAT = 2
# Settings of numba that change the code it makes.
SETTINGS = (
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "DEBUG_NRT",
    "DISABLE_INTEL_SVML",
    "ENABLE_AVX",
    "ENABLE_PROFILING",
    "EXTEND_VARIABLE_LIFETIMES",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "NRT_STATS",
    "OPT",
    "SLP_VECTORIZE",
    "USING_SVML",
)


def _source_files(folder, prefix=""):
    """Path inside of a package and file of every module, in order."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _source_files(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield prefix + entry.name, entry


def _all_source_files():
    """Path inside of skstruct and file of every module of the kernels, in order."""
    for package in PACKAGES:
        # The packages themselves import this module.
        folder = resources.files("skstruct") / package.removeprefix("skstruct.")
        yield from _source_files(folder, f"{package}/")


def _stamps():
    """Size and time of every source file; none where sources are not in files."""
    status = [path.stat() for _, path in _all_source_files() if isinstance(path, Path)]
    return [(s.st_mtime_ns, s.st_size) for s in status]


def _read_sources():
    """Hash of the text of all kernels and the stamps of their files, or a pair of None."""
    try:
        stamps, found = _stamps(), hashlib.sha256()
        for name, path in _all_source_files():
            text = path.read_bytes().replace(b"\r\n", b"\n")
            found.update(f"{name}\0{len(text)}\0".encode() + text)
    except (OSError, ValueError, ModuleNotFoundError):
        return None, None
    return found.hexdigest(), stamps


# Read on import, and so before any kernel: what is edited later is found out by the stamps.
_SOURCES, _STAMPS = _read_sources()


def sources_hash():
    """Hash of the text of all kernels, None where it cannot be read.

    Numba itself looks at the file of a function and not at those of the functions it calls.
    """
    return _SOURCES


def sources_unchanged():
    """Return True if the files are still those that were hashed."""
    try:
        return _SOURCES is not None and _stamps() == _STAMPS
    except OSError:
        return False


def kernel_name(function):
    """Name of a kernel: its module in `skstruct.kernels` or in `skstruct`, and its own."""
    name = f"{function.__module__}.{function.__qualname__}"
    return name.removeprefix("skstruct.").removeprefix("kernels.")


def find_kernel(name):
    """Find the kernel with a name."""
    module, _, kernel = name.rpartition(".")
    package = "skstruct" if module.startswith("chain.") else "skstruct.kernels"
    return getattr(import_module(f"{package}.{module}"), kernel)


def _settings():
    return tuple((name, str(getattr(numba.config, name, None))) for name in SETTINGS)


def environment():
    """Everything but the processor, as a dict of strings that JSON can hold."""
    return {
        "format": str(FORMAT),
        "sources": str(sources_hash()),
        "python": sysconfig.get_config_var("EXT_SUFFIX"),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        # numpy breaks its ABI in major releases only.
        "numpy": np.__version__.partition(".")[0],
        **dict(_settings()),
    }


def folder_name(target):
    """Name of the folder for code that is compiled here.

    Parameters
    ----------
    target : tuple
        Triple, name and features of the processor (`magic_tuple` of numba's code generator).
    """
    return _folder_name(tuple(target), _settings())


@lru_cache
def _folder_name(target, settings):
    text = json.dumps([environment(), target, settings], sort_keys=True)
    return f"skstruct-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def file_name(kernel, signature, *, for_kernel=False):
    """Name of the file for one kernel and its argument types.

    What only kernels can call has another name than what Python can call, too.
    """
    digest = hashlib.sha256(repr(signature).encode()).hexdigest()[:32]
    return f"{kernel}-{digest}{'-called' if for_kernel else ''}.kernel"
