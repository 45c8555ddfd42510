"""The user's own cache: a folder for each environment, a file for each compiled kernel.

No index is shared, so that processes that write at once never hand each other the wrong code.

Cached code is run. So it is read only where nobody but the user, root and the owner of the package
can have written it, and never from the current folder.
"""

import contextlib
import logging
import os
import re
import shutil
import stat
import sys
import time
from pathlib import Path

import numba

from skstruct.utils.files import replaced
from skstruct.utils.messages import log_once

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
