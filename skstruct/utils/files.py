"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

__all__ = ["replaced", "write_whole"]


def write_whole(path, content):
    """Write bytes to a file, which stays as it was if anything fails or interrupts.

    Parameters
    ----------
    path : str or path-like
        The file. Devices and pipes are written to directly.
    content : bytes
        Its new content.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    with replaced(path.resolve()) as file:
        file.write(content)


@contextlib.contextmanager
def replaced(path):
    """File that takes the place of another one once all of it is written."""
    # Not by `tempfile`, whose files other users cannot read.
    temporary = path.parent / f".part-{uuid.uuid4().hex}"
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
