"""Archive of compiled kernels in a wheel: a ZIP file with machine code, by names of cache entries.

It holds the environment that it was compiled in. The kernels of a module share a member: they have
much code in common, and compress to a third of the size that they have one by one.
"""

import io
import json
import logging
import pickle
import zipfile
from functools import cache

from skstruct.compiled.keys import environment
from skstruct.utils.messages import log_once

_ABOUT = "about.json"


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
