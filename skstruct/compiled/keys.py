"""Everything that compiled code depends on: sources, versions, settings, processor."""

import hashlib
import json
import sysconfig
from importlib import resources
from pathlib import Path

import llvmlite
import numba
import numpy as np

# Number of the layout of cache files and archives.
FORMAT = 3
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


def _modules_in(folder):
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _modules_in(entry)
        elif entry.name.endswith(".py"):
            yield entry


def _source_files():
    """Files of all modules of kernels, in order."""
    package = resources.files("skstruct")
    return [*_modules_in(package / "chain"), *_modules_in(package / "kernels")]


def _stamps():
    """Time and size of every source file; none where sources are not in files."""
    status = [path.stat() for path in _source_files() if isinstance(path, Path)]
    return [(s.st_mtime_ns, s.st_size) for s in status]


def _read_sources():
    """Hash of the text of all kernels and the stamps of their files; None where they are unknown.

    numba itself looks at the file of a function and not at those of the functions that it calls.
    """
    try:
        stamps, found = _stamps(), hashlib.sha256()
        for path in _source_files():
            text = path.read_bytes().replace(b"\r\n", b"\n")
            found.update(f"{path.name} {len(text)} ".encode() + text)
    except (OSError, ValueError, ModuleNotFoundError):
        return None, None
    return found.hexdigest(), stamps


# Read on import, before any kernel; later edits are detected by the stamps.
_SOURCES, _STAMPS = _read_sources()


def sources_unchanged():
    """Return True if the files could be read, and are still those that were hashed."""
    try:
        return _SOURCES is not None and _stamps() == _STAMPS
    except OSError:
        return False


# Files that are none of these, but have kernels: an extension, or a tagger that brings its rule.
_outside = set()


def is_outside(function):
    """Return True if a function is in no file whose text every key depends on."""
    return not function.__module__.startswith(("skstruct.chain.", "skstruct.kernels."))


def note_source(function):
    """Remember the file of a kernel if it is outside."""
    if is_outside(function):
        _outside.add(function.__code__.co_filename)


def hash_outside():
    """Hash of the text of all files outside that have kernels; None if one cannot be read.

    Which of them a kernel calls is not known, so what is outside depends on all.
    """
    try:
        texts = [Path(name).read_bytes().replace(b"\r\n", b"\n") for name in _outside]
    except (OSError, ValueError):
        return None
    return hashlib.sha256(b"".join(sorted(hashlib.sha256(t).digest() for t in texts))).hexdigest()


def environment():
    """Everything but the processor, as a dict of strings that JSON can hold."""
    return {
        "format": str(FORMAT),
        "sources": str(_SOURCES),
        "python": sysconfig.get_config_var("EXT_SUFFIX"),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        # numpy breaks its ABI in major releases only.
        "numpy": np.__version__.partition(".")[0],
        **{name: str(getattr(numba.config, name, None)) for name in SETTINGS},
    }


def folder_name(target):
    """Name of the folder for code that is compiled here.

    Parameters
    ----------
    target : tuple
        Triple, name and features of the processor (`magic_tuple` of numba's code generator).
    """
    return f"skstruct-{_digest(json.dumps([environment(), target], sort_keys=True))[:20]}"


def kernel_name(function):
    """Name of a kernel: its module, and its own."""
    return f"{function.__module__}.{function.__qualname__}"


def file_name(kernel, signature, outside=""):
    """Name of the file for one kernel and its argument types, and the hash of what is outside."""
    return f"{kernel}-{_digest(repr(signature) + outside)[:32]}.kernel"


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()
