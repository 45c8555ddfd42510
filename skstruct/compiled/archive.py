"""Archives of compiled kernels in wheels, one for each class of processors.

An archive is a ZIP file with machine code, by the names of cache entries, and the environment that
it was compiled in. It is used only in the same environment, on processors that have every feature
of the archive's baseline.

The kernels of a module share a member: they have much code in common, and compress to a third of
the size that they have one by one.
"""

import io
import json
import logging
import os
import pickle
import platform
import zipfile
from functools import cache
from importlib import resources

import llvmlite.binding as llvm
import numba

from skstruct.compiled.keys import environment
from skstruct.utils.messages import log_once

# x86-64 levels of the psABI, with LLVM's names of their features. Kernels for v3 are as fast as
# those for the processor itself, also with AVX-512 (benchmarks/baselines.py): v4 would win nothing.
# Those for v2 spare older processors the wait for the compiler.
_V2 = "cmov cx8 cx16 fxsr mmx popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_X86 = {"x86-64-v3": _V3, "x86-64-v2": _V2}
_ARM = {"generic": ""}
# For each kind of machine LLVM's names of processors, best first, and their required features.
_BASELINES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}
_ABOUT = "about.json"


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


class Archive:
    """Compiled kernels of one baseline.

    Parameters
    ----------
    content : bytes
        Content of the file, kept in memory: forked processes would share an open file and its
        position.
    """

    def __init__(self, content):
        self._zip = zipfile.ZipFile(io.BytesIO(content))
        about = json.loads(self._zip.read(_ABOUT))
        self.environment, self.n_kernels = about["environment"], about["n_kernels"]
        self._codes = cache(self._read)

    def find(self, name):
        """Machine code of a cache entry, and None for bitcode; None if the kernel is missing."""
        code = self._codes(_member(name)).get(name)
        return None if code is None else (code, None)

    def _read(self, member):
        try:
            return pickle.loads(self._zip.read(member))
        except KeyError:
            return {}
        # A damaged file fails in ways of its own: in the headers, the data, or the checksum.
        except Exception:
            log_once(logging.WARNING, "Kernels of this installation are damaged: %s", member)
            return {}


def _member(name):
    """Member of the archive that holds a kernel: there is one for each module."""
    return ".".join(name.rpartition("-")[0].split(".")[:3])


def write_archive(path, codes):
    """Write an archive, with the same bytes for the same code.

    Parameters
    ----------
    path : path-like
        The new file.
    codes : dict of str to bytes
        Machine code by the names of cache entries.
    """
    about = {"environment": environment(), "n_kernels": len(codes)}
    members = {}
    for name, code in sorted(codes.items()):
        members.setdefault(_member(name), {})[name] = code
    contents = {name: pickle.dumps(found, protocol=4) for name, found in members.items()}
    contents[_ABOUT] = json.dumps(about, sort_keys=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            info = zipfile.ZipInfo(name)  # with a fixed date
            archive.writestr(info, content, zipfile.ZIP_LZMA)


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
