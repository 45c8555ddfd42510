"""Everything that compiled code depends on: sources, versions, settings, processor."""

import hashlib
import json
import re
import sysconfig
from importlib import resources
from pathlib import Path

import llvmlite
import numba
import numpy as np

# Version of the layout of cache entries and archives.
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
# Decorators of kernels, and of families of them. To look for "@" first is ten times faster.
_KERNEL = re.compile(rb"@(?<![^\n ]@)(\w*jit|family|needed|creating|intrinsic|\w+\.of)\b")
# Where a statement at the top of a module begins.
_STATEMENT = re.compile(rb"^(?=[^\s#)\]}])", re.MULTILINE)


def _modules_in(folder, name):
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and not entry.name.startswith("_"):
            yield from _modules_in(entry, f"{name}.{entry.name}")
        elif entry.name.endswith(".py"):
            yield f"{name}.{entry.name.removesuffix('.py')}", entry


def _text_of_kernels(name, text):
    """Text of a module without what no kernel can see; empty if it has no kernel.

    Kernels see neither functions that are not compiled nor classes other than records: estimators
    can be edited without compiling anything again.
    """
    if name == "skstruct.compiled.jit" or name.startswith("skstruct.chain."):
        return text
    kept, decorators = [], b""
    for part in _STATEMENT.split(text if _KERNEL.search(text) else b""):
        if part.startswith(b"@"):
            decorators += part
            continue
        head = part.partition(b":")[0]
        hidden = head.startswith((b"class ", b"def ")) and not head.endswith(b"(NamedTuple)")
        if not hidden or _KERNEL.search(decorators):
            kept += decorators, part
        decorators = b""
    return b"".join(kept)


def _read_sources():
    """Files of all modules with kernels, by name, and the hash of the text of all kernels.

    The hash is None if the sources cannot be read. numba itself looks at the file of a function,
    and not at the files of functions that it calls.
    """
    files, texts = {}, []
    try:
        for name, path in _modules_in(resources.files("skstruct"), "skstruct"):
            text = _text_of_kernels(name, path.read_bytes().replace(b"\r\n", b"\n"))
            if text:
                files[name] = path
                texts.append(f"{name} {len(text)} ".encode() + text)
    except (OSError, ValueError, ModuleNotFoundError):
        return {}, None
    return files, hashlib.sha256(b"".join(texts)).hexdigest() if texts else None


# Read on import, before any kernel; later edits are detected by the stamps.
_FILES, _SOURCES = _read_sources()


def _stamps():
    """Time and size of every source file; none where sources are not in files."""
    status = [path.stat() for path in _FILES.values() if isinstance(path, Path)]
    return [(s.st_mtime_ns, s.st_size) for s in status]


_STAMPS = _stamps()


def sources_unchanged():
    """Return True if the files could be read, and have not changed since."""
    try:
        return _SOURCES is not None and _stamps() == _STAMPS
    except OSError:
        return False


# Files of extensions: those with kernels outside the package.
_outside = set()


def is_outside(function):
    """Return True if a function belongs to an extension, and note its file."""
    outside = function.__module__ not in _FILES
    if outside:
        _outside.add(function.__code__.co_filename)
    return outside


def hash_outside():
    """Hash of the text of all files of extensions; None if one cannot be read.

    Nothing tells which of them a kernel calls, so that kernels of extensions depend on all.
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


def file_name(kernel, signature, outside=""):
    """Name of the cache entry of a kernel for argument types; `outside` is a hash of extensions."""
    return f"{kernel}-{_digest(repr(signature) + outside)[:32]}.kernel"


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()
