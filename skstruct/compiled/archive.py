"""Compiled kernels that come with the package: one archive for each class of processors.

An archive is a ZIP file of `Entry` objects under the names that they have in the user's cache,
with the environment they were compiled in. It is used only where all of that agrees, and where the
processor has every feature of the archive's baseline.
"""

from __future__ import annotations

import io
import json
import logging
import os
import platform
import zipfile
from functools import lru_cache
from importlib import resources

import llvmlite.binding as llvm
import numba

from skstruct.compiled.entries import Entry
from skstruct.compiled.keys import environment
from skstruct.utils.log import tell_once

__all__ = [
    "all_baselines",
    "archive_name",
    "archive_report",
    "host_baselines",
    "open_archive",
    "usable_archives",
    "write_archive",
]

# The levels of the x86-64 psABI, with LLVM's names of their features.
_V2 = "cmov cx8 cx16 fxsr mmx popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_V4 = f"{_V3} avx512bw avx512cd avx512dq avx512f avx512vl"
_X86 = {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2}
_ARM = {"generic": ""}
# Names of processors as LLVM has them, and the features they must have; the best ones first.
BASELINES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}

_ABOUT = "about.json"
_BITCODE = ".bc"


class Archive:
    """Compiled kernels of one baseline.

    Parameters
    ----------
    content : bytes
        What `write_archive` wrote. It is kept in memory: a file that is open would be shared, with
        its position, by processes that fork.
    """

    def __init__(self, content):
        self._zip = zipfile.ZipFile(io.BytesIO(content))
        self._names = frozenset(self._zip.namelist())
        self.environment = json.loads(self._zip.read(_ABOUT))
        self.baseline = self.environment.pop("baseline")

    def __len__(self):
        return sum(name.endswith(".kernel") for name in self._names)

    def find(self, name):
        """Entry with the name of a file, or None."""
        if name not in self._names:
            return None
        try:
            return Entry(self._zip.read(name), lambda: self._bitcode(name))
        # A damaged file fails in ways of its own: in the headers, the data, or the checksum.
        except Exception:
            tell_once(logging.WARNING, "Kernels of this installation are damaged: %s", name)
            return None

    def _bitcode(self, name):
        if name + _BITCODE not in self._names:
            raise RuntimeError(
                f"{name} is compiled without what other compiled functions need to call it. Set "
                "the environment variable SKSTRUCT_KERNELS=local to have it compiled here."
            )
        return self._zip.read(name + _BITCODE)


def write_archive(path, baseline, entries, called):
    """Write an archive; the same entries make the same bytes.

    Parameters
    ----------
    path : Path
        The new file.
    baseline : str
        Name of the processor that the entries were compiled for.
    entries : dict of str to Entry
        Names of files, and what they hold.
    called : set of str
        Names of the kernels that other kernels call. Only those keep their bitcode.
    """
    about = json.dumps({**environment(), "baseline": baseline}, sort_keys=True)
    members = [(_ABOUT, about, zipfile.ZIP_STORED)]
    for name, entry in sorted(entries.items()):
        members.append((name, entry.code, zipfile.ZIP_DEFLATED))
        if name.rpartition("-")[0] in called:
            members.append((name + _BITCODE, entry.read_bitcode(), zipfile.ZIP_LZMA))
    with zipfile.ZipFile(path, "w") as archive:
        for name, content, method in members:
            info = zipfile.ZipInfo(name)  # with a fixed date
            info.external_attr = 0o644 << 16
            archive.writestr(info, content, method, compresslevel=9)


def folder():
    """Folder of the archives of this installation."""
    return resources.files("skstruct.compiled") / "archives"


def archive_name(baseline):
    """Name of the archive for this Python, this numba and a baseline."""
    python = environment()["python"].strip(".").rpartition(".")[0]
    return f"{python}-numba-{numba.__version__}-{baseline}.zip"


@lru_cache(maxsize=1)
def _host_features():
    try:
        return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    except RuntimeError:
        return frozenset()


def open_archive(baseline):
    """Archive of a baseline, and None; or None, and the reason why it cannot be used here."""
    missing = sorted(_baselines()[baseline] - _host_features())
    if missing:
        return None, f"this processor lacks {', '.join(missing)}"
    path = folder() / archive_name(baseline)
    try:
        archive = Archive(path.read_bytes())
    except FileNotFoundError:
        return None, "not part of this installation"
    except Exception:
        tell_once(logging.WARNING, "%s is damaged, and kernels are compiled here instead.", path)
        return None, "damaged"
    ours = environment()
    differing = sorted(name for name in ours if ours[name] != archive.environment.get(name))
    if differing:
        return None, f"made for another {', '.join(differing)}"
    return archive, None


def host_baselines():
    """Names of the baselines that this processor meets, best first."""
    return [name for name, needed in _baselines().items() if needed <= _host_features()]


def all_baselines():
    """Names of the baselines of this kind of processor; those that it meets come first."""
    return list(dict.fromkeys([*host_baselines(), *_baselines()]))


def archive_report():
    """Lines that say which archives are used here, and why others are not."""
    if not _wanted():
        return ["none: SKSTRUCT_KERNELS, NUMBA_CPU_NAME or NUMBA_CPU_FEATURES is set"]
    found = [(name, *open_archive(name)) for name in _baselines()]
    return [
        f"{name}: {f'{len(archive)} kernels' if archive else reason}"
        for name, archive, reason in found
    ] or ["none for this kind of processor"]


def usable_archives():
    """The archives that fit this process, best first."""
    return _fitting_archives(tuple(environment().items())) if _wanted() else []


def _wanted():
    """Return True unless a setting asks for code of another kind."""
    if (numba.config.CPU_NAME, numba.config.CPU_FEATURES) != (None, None):
        return False
    return os.environ.get("SKSTRUCT_KERNELS", "auto") in ("auto", "compiled")


def _baselines():
    """Baselines for this kind of processor, and the features that they need."""
    found = BASELINES.get(platform.machine().lower(), {})
    return {name: frozenset(features.split()) for name, features in found.items()}


@lru_cache(maxsize=1)
def _fitting_archives(_):
    found = [open_archive(name)[0] for name in _baselines()]
    return [archive for archive in found if archive is not None]
