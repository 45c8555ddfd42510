"""Rules: which compiled kernels are used, where they are kept, and what each rule wins.

A kernel is looked for in the wheel, then in the cache; otherwise it is compiled.

- Wheels carry kernels (`archive`). A first fit takes 0.06 s longer than the second, not 9 to 20 s.
- For a class of processors, not for one. Kernels for x86-64-v3 are as fast as for the processor
  itself, so v4 would win nothing; v2 spares older processors the compiler.
- The cache has a folder for each environment (`keys`), so that releases can share a place, and a
  file for each kernel. No index is shared: processes that write at once cannot mix up code.
- Cached code is run. It is read only where nobody but the user, root and the owner of the package
  can have written it, and never from the current folder.
- Old folders are removed: each release or edit of a kernel leaves tens of megabytes behind.

Figures are from ``benchmarks/cold_start`` and ``benchmarks/baselines``.
"""

import contextlib
import logging
import os
import platform
import re
import shutil
import stat
import sys
import time
from collections import Counter
from functools import cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm
import numba
from numba.core.registry import cpu_target

from skstruct.compiled.archive import Archive
from skstruct.compiled.keys import environment, folder_name, sources_unchanged
from skstruct.utils.files import replaced
from skstruct.utils.messages import log_once
from skstruct.utils.persistence import set_module

# --------------------------------------------------------------------------- kernels of the wheel

# x86-64 levels of the psABI, with LLVM's names of their features.
_V2 = "cmov cx8 cx16 fxsr mmx popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_X86 = {"x86-64-v3": _V3, "x86-64-v2": _V2}
_ARM = {"generic": ""}
# For each kind of machine LLVM's names of processors, best first, and their required features.
_BASELINES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}


def all_baselines():
    """Features that each baseline for this kind of machine needs, by its name; best first."""
    found = _BASELINES.get(platform.machine().lower(), {})
    return {name: frozenset(features.split()) for name, features in found.items()}


@cache
def host_features():
    """LLVM's names of the features of this processor; empty if LLVM does not know them."""
    try:
        return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    except RuntimeError:
        return frozenset()


def host_baselines():
    """Names of the baselines that this processor meets, best first."""
    return [name for name, needed in all_baselines().items() if needed <= host_features()]


def folder():
    """Folder of the archives of this installation."""
    return resources.files("skstruct.compiled") / "archives"


@cache
def _open(baseline, needed, ours):
    """Archive of a baseline; or the reason why it cannot be used in an environment."""
    missing = sorted(needed - host_features())
    if missing:
        return f"this processor lacks {', '.join(missing)}"
    path = folder() / f"{baseline}.zip"
    try:
        archive = Archive(path.read_bytes())
    except FileNotFoundError:
        return "not part of this installation"
    except Exception:
        log_once(logging.WARNING, "%s is damaged, and kernels are compiled here instead.", path)
        return "damaged"
    differing = sorted(name for name, value in ours if value != archive.environment.get(name))
    return f"made for another {', '.join(differing)}" if differing else archive


def _archives():
    """Archive of each baseline, or why it cannot be used."""
    named = numba.config.CPU_NAME, numba.config.CPU_FEATURES
    wanted = os.environ.get("SKSTRUCT_KERNELS", "auto") in ("auto", "compiled")
    if named != (None, None) or not wanted:
        return {"none": "SKSTRUCT_KERNELS, NUMBA_CPU_NAME or NUMBA_CPU_FEATURES is set"}
    ours = tuple(environment().items())
    return {name: _open(name, needed, ours) for name, needed in all_baselines().items()}


def archive_report():
    """Lines on the archives: the number of kernels of each, or why it is not used."""
    return [
        f"{name}: {one if isinstance(one, str) else f'{one.n_kernels} kernels'}"
        for name, one in _archives().items()
    ] or ["none for this kind of processor"]


def usable_archives():
    """Archives that fit this process, by the names of their baselines; best first."""
    return {name: one for name, one in _archives().items() if isinstance(one, Archive)}


# --------------------------------------------------------------------------------- the cache

# Folders of other environments are kept if they are among the newest or were used within a day.
KEPT = 5
# Name of a file that says: prefer this folder to what came with the package.
NATIVE = "native"
_DAY = 24 * 3600
_FOLDER = re.compile("skstruct-[0-9a-f]{20}")
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
UNSAFE = (
    "Compiled kernels are neither read from %s nor kept there: it, or what is in it, belongs to "
    "another user, or others may write to it. Remove it, or take the permission away (chmod go-w)."
)
CANNOT_KEEP = (
    "Compiled kernels cannot be kept: %s cannot be written to. Every process compiles them again. "
    "Set NUMBA_CACHE_DIR to a folder that can be written to."
)


def own_folders():
    """Folders of the user's cache for this environment and processor."""
    return cache_folders(folder_name(cpu_target.target_context.codegen().magic_tuple()))


def cache_folders(name):
    """Folders of one environment, in the order in which they are tried.

    ``NUMBA_CACHE_DIR`` is the only place where it is set. Otherwise, as numba has it, the package
    itself comes first and the user's cache folder second.
    """
    if numba.config.CACHE_DIR:
        return [Path(numba.config.CACHE_DIR, name)]
    # An application that was packed into one file unpacks the package anew at each start.
    is_packed = getattr(sys, "frozen", False)
    package = [] if is_packed else [Path(__file__).parent / "__pycache__"]
    return [place / name for place in package + _user_folders()]


def _user_folders():
    """Cache folder of the user; none where the system does not say where that is."""
    named = {"win32": os.environ.get("LOCALAPPDATA"), "darwin": "~/Library/Caches"}
    for base in (named.get(sys.platform, os.environ.get("XDG_CACHE_HOME")), "~/.cache"):
        # Without a home, "~" stays as it is.
        path = os.path.expanduser(base or "")
        if os.path.isabs(path):
            return [Path(path, "skstruct")]
    return []


def is_native(folders):
    """Return True if kernels compiled here come before the kernels of the package."""
    return any((folder / NATIVE).exists() for folder in folders)


def read_file(folders, name):
    """Content of a file, from the first folder that has it, or None."""
    for folder in folders:
        with contextlib.suppress(OSError):
            content = (folder / name).read_bytes()
            if is_safe(folder) and _is_trusted(folder / name):
                _mark_used(folder)
                return content
            log_once(logging.WARNING, UNSAFE, folder)
    return None


def write_file(folders, name, content):
    """Write a file into the first folder that can be written to; warn if there is none."""
    places = " and ".join(str(folder.parent) for folder in folders) or "an unknown home folder"
    complaint = CANNOT_KEEP, places
    for folder in folders:
        with contextlib.suppress(OSError):
            if not _make(folder):
                complaint = UNSAFE, folder
                continue
            # The new file would keep the owner and mode of the old one.
            if (folder / name).exists() and not _is_trusted(folder / name):
                (folder / name).unlink()
            with replaced(folder / name) as file:
                file.write(content)
                os.chmod(file.name, os.stat(file.name).st_mode & ~_WRITABLE_BY_OTHERS)
            return
    log_once(logging.WARNING, *complaint)


def _make(folder):
    """Make a folder unless it is there; return True if nobody else can write to it."""
    folder.parent.mkdir(0o755, parents=True, exist_ok=True)
    if _is_trusted(folder.parent) and not folder.is_dir():
        folder.mkdir(0o755, exist_ok=True)
        _prune(folder)
    return is_safe(folder)


def is_safe(folder):
    """Return True if only trusted users can write into a folder, or replace it."""
    return _is_trusted(folder.parent) and _is_trusted(folder)


def _is_trusted(path):
    """Return True if only trusted users can write to a file or folder."""
    if os.name == "nt":
        return True
    owners = {0, os.geteuid()}
    # Whoever owns the package can change what it does; a package in a ZIP file has no such owner.
    with contextlib.suppress(OSError):
        owners.add(os.stat(__file__).st_uid)
    status = path.stat()
    # In a folder such as /tmp, nobody can replace what belongs to others.
    is_sticky = status.st_mode & stat.S_ISVTX
    return status.st_uid in owners and (is_sticky or not status.st_mode & _WRITABLE_BY_OTHERS)


def _mark_used(folder):
    """Renew the time stamp that `_prune` goes by, at most once an hour."""
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY / 24:
            os.utime(folder)


def _prune(newest):
    """Remove folders of old environments, unless another process is doing it."""
    with contextlib.suppress(OSError):
        found = [path for path in newest.parent.iterdir() if _FOLDER.fullmatch(path.name)]
        used = {path: path.stat().st_mtime for path in found if path != newest}
        for folder in sorted(used, key=used.get, reverse=True)[KEPT:]:
            if time.time() - used[folder] > _DAY:
                shutil.rmtree(folder, ignore_errors=True)


# --------------------------------------------------------------------------- what has been used


class LoadedKernel(NamedTuple):
    """One kernel that was loaded or compiled in this process."""

    kernel: str
    signature: tuple
    origin: str  # baseline of the archive, "cache" or "compiler"
    file: str | None  # name of its file; None if it is not kept


loaded_kernels = []

PACKAGES = (
    "skstruct",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "llvmlite",
    "joblib",
    "pooch",
    "click",
    "skops",
)


@set_module("skstruct")
def show_versions():
    """Print versions and origins of kernels, for bug reports.

    These are the versions of Python and of the packages that skstruct needs, the processor, the
    kernels of the package that can be used on it, and the folders of the cache.

    Examples
    --------
    >>> import skstruct
    >>> skstruct.show_versions()
    Python ...
    """
    print(f"Python {platform.python_version()}, {platform.platform()}")
    for name in PACKAGES:
        try:
            print(f"{name} {version(name)}")
        except PackageNotFoundError:
            print(f"{name} (not installed)")
    print("\nKernels")
    for line in _kernel_lines():
        print(f"  {line}")


def _kernel_lines():
    if numba.config.DISABLE_JIT:
        return ["not compiled: NUMBA_DISABLE_JIT is set"]
    folders = own_folders()
    origins = Counter(loaded.origin for loaded in loaded_kernels)
    cached, compiled = origins["cache"], origins["compiler"]
    shipped = origins.total() - cached - compiled
    lines = [f"processor: {llvm.get_host_cpu_name()}"]
    lines += [f"from the package, {line}" for line in archive_report()]
    for folder in folders:
        n_files = len(list(folder.glob("*.kernel")))
        note = "" if not folder.exists() or is_safe(folder) else ", not used: others may write here"
        lines.append(f"from the cache: {folder}, {n_files} kernels{note}")
    if is_native(folders):
        lines.append("the cache comes first, as `skstruct warm --native` has it")
    if not sources_unchanged():
        lines.append("neither is used: the sources of the kernels cannot be read, or were edited")
    lines.append(f"this process: {shipped} from the package, {cached} cached, {compiled} compiled")
    return lines
