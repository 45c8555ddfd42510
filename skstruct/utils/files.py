"""Files that are written whole or not at all, and read with errors that name them."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

__all__ = [
    "errors_named",
    "not_in_encoding",
    "read_bytes",
    "read_text",
    "replaced",
    "write_whole",
]


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


def read_bytes(source):
    """Content of a file given by its path, or as bytes."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, (str, os.PathLike)):
        return Path(source).read_bytes()
    raise TypeError(f"Expected the path of a file or bytes, got {type(source).__name__}.")


def read_text(path, *, keep_mark=False):
    """Text of a file in UTF-8.

    Parameters
    ----------
    path : str or path-like
    keep_mark : bool, default=False
        Keep a byte order mark at the beginning.

    Returns
    -------
    text : str
        With the line ends of the file.

    Raises
    ------
    ValueError
        If the file is not in UTF-8; the message names the file and the line.
    OSError
        If it cannot be read.
    """
    try:
        return Path(path).read_bytes().decode("utf-8" if keep_mark else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise not_in_encoding(error, f"{path}, line {line}", "convert the file") from None


def not_in_encoding(error, where, remedy):
    """Error for bytes that are not in an encoding, made of Python's."""
    byte = error.object[error.start]
    name = error.encoding
    return ValueError(f"{where}: not {name} text (byte {byte:#04x}: {error.reason}); {remedy}")


@contextlib.contextmanager
def errors_named(source):
    """Context in which a ValueError names the file that is read.

    Parameters
    ----------
    source : str, path-like or bytes
        Path of the file. With its content in place of it, errors stay as they are.
    """
    try:
        yield
    except ValueError as error:
        if not isinstance(source, (str, os.PathLike)):
            raise
        raise ValueError(f"{os.fspath(source)}: {error}") from error
