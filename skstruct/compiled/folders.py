"""The user's own cache: a folder for each environment, a file for each compiled kernel.

No index is shared, so that processes that write at once never hand each other the wrong code.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from pathlib import Path

import numba
from numba.misc.appdirs import AppDirs

from skstruct.utils.files import replaced

__all__ = ["NATIVE", "cache_folders", "is_native", "read_file", "write_file"]

# Folders of other environments are kept if they are among the newest or were used within a day.
KEPT = 5
# Name of a file that says: prefer this folder to what came with the package.
NATIVE = "native"
_DAY = 24 * 3600
_FOLDER = re.compile("skstruct-[0-9a-f]{20}")


def cache_folders(name):
    """Folders of one environment, in the order in which they are tried.

    ``NUMBA_CACHE_DIR`` is the only place where it is set. Otherwise, as numba has it, the package
    itself comes first and the user's cache folder second.
    """
    if numba.config.CACHE_DIR:
        places = [Path(numba.config.CACHE_DIR)]
    else:
        places = [Path(AppDirs(appname="skstruct", appauthor=False).user_cache_dir)]
        # An application that was packed into one file unpacks the package anew at each start.
        if not getattr(sys, "frozen", False):
            places.insert(0, Path(__file__).parent / "__pycache__")
    return [place / name for place in places]


def is_native(folders):
    """Return True if kernels compiled here take precedence over those of the package."""
    return any((folder / NATIVE).exists() for folder in folders)


def read_file(folders, name):
    """Content of a file, from the first folder that has it, or None."""
    for folder in folders:
        with contextlib.suppress(OSError):
            content = (folder / name).read_bytes()
            _mark_used(folder)
            return content
    return None


def write_file(folders, name, content):
    """Write a file into the first folder that can be written to; return that folder, or None."""
    for folder in folders:
        try:
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                _prune(folder)
            with replaced(folder / name) as file:
                file.write(content)
        except OSError:
            continue
        return folder
    return None


def _mark_used(folder):
    """Renew the time stamp that `_prune` goes by, at most once an hour."""
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY / 24:
            os.utime(folder)


def _prune(newest):
    """Remove folders of environments that are gone."""
    others = []
    for folder in newest.parent.iterdir():
        if folder != newest and _FOLDER.fullmatch(folder.name):
            with contextlib.suppress(OSError):
                others.append((folder.stat().st_mtime, folder))
    for used, folder in sorted(others, reverse=True)[KEPT:]:
        if time.time() - used > _DAY:
            shutil.rmtree(folder, ignore_errors=True)
