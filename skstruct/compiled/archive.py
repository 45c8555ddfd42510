"""Compiled kernels that come with the package: one archive for each class of processors.

An archive is a ZIP file of `Entry` objects under the names that they have in the user's cache,
with the environment they were compiled in. It is used only where all of that agrees, and where the
processor has every feature of the archive's baseline.

The code of all kernels of a room is one member: kernels have much code in common, so that together
they are a third of their size apart.
"""

from __future__ import annotations

import io
import json
import logging
import os
import zipfile
from functools import lru_cache
from importlib import resources

import numba

from skstruct.compiled.entries import Entry
from skstruct.compiled.keys import environment
from skstruct.compiled.processors import baselines, host_features
from skstruct.utils.messages import tell_once

__all__ = ["archive_name", "archive_report", "open_archive", "usable_archives", "write_archive"]

_ABOUT = "about.json"
_INDEX = "index.json"
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
        self._places = json.loads(self._zip.read(_INDEX))
        self._rooms = {}
        self.environment = json.loads(self._zip.read(_ABOUT))
        self.baseline = self.environment.pop("baseline")

    def __len__(self):
        return len(self._places)

    def find(self, name):
        """Entry with the name of a file, or None."""
        if name not in self._places:
            return None
        room, start, end = self._places[name]
        try:
            if room not in self._rooms:
                self._rooms[room] = self._zip.read(room)
        # A damaged file fails in ways of its own: in the headers, the data, or the checksum.
        except Exception:
            tell_once(logging.WARNING, "Kernels of this installation are damaged: %s", room)
            return None
        return Entry(self._rooms[room][start:end], lambda: self._bitcode(name))

    def _bitcode(self, name):
        if name + _BITCODE not in self._zip.namelist():
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
    rooms, index, members = {}, {}, {}
    for name, entry in sorted(entries.items()):
        room = name.partition(".")[0]
        content = rooms.setdefault(room, bytearray())
        index[name] = room, len(content), len(content) + len(entry.code)
        content += entry.code
        if name.rpartition("-")[0] in called:
            members[name + _BITCODE] = entry.read_bitcode()
    about = {**environment(), "baseline": baseline}
    texts = {_ABOUT: json.dumps(about, sort_keys=True), _INDEX: json.dumps(index)}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**texts, **rooms, **members}.items():
            info = zipfile.ZipInfo(name)  # with a fixed date
            info.external_attr = 0o644 << 16
            archive.writestr(info, content, zipfile.ZIP_LZMA)


def folder():
    """Folder of the archives of this installation."""
    return resources.files("skstruct.compiled") / "archives"


def archive_name(baseline):
    """Name of the archive for this Python, this numba and a baseline."""
    python = environment()["python"].strip(".").rpartition(".")[0]
    return f"{python}-numba-{numba.__version__}-{baseline}.zip"


def open_archive(baseline):
    """Archive of a baseline, and None; or None, and the reason why it cannot be used here."""
    missing = sorted(baselines()[baseline] - host_features())
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


def archive_report():
    """Lines that say which archives are used here, and why others are not."""
    if not _wanted():
        return ["none: SKSTRUCT_KERNELS, NUMBA_CPU_NAME or NUMBA_CPU_FEATURES is set"]
    found = [(name, *open_archive(name)) for name in baselines()]
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


@lru_cache(maxsize=1)
def _fitting_archives(_):
    found = [open_archive(name)[0] for name in baselines()]
    return [archive for archive in found if archive is not None]
