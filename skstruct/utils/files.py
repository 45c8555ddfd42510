"""Files that are written whole or not at all, and read with errors that name them."""

import contextlib
import errno
import functools
import os
import stat
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that is open
    fcntl = None


_UNFINISHED = ".skstruct-unfinished-"


def write_whole(path, content):
    """Write bytes to a file, which stays as it was if anything fails or interrupts.

    Parameters
    ----------
    path : str or path-like
        The file. Devices and pipes are written to directly.
    content : bytes
        Its new content.
    """
    with replaced(path) as file:
        file.write(content)


def check_writable(path):
    """Raise an error if a file cannot be written, before the work for it begins.

    Unfinished files that killed processes have left in its folder are removed.

    Parameters
    ----------
    path : str or path-like
        The file, which need not exist.

    Raises
    ------
    OSError
        If it is a folder, its folder does not exist, or one of them is write-protected. The error
        names the path.
    """
    _refuse_obstacle(path)
    _remove_abandoned(os.path.dirname(os.path.realpath(os.fsdecode(path))))


# Checks the effective user where the system supports it.
_allows = functools.partial(os.access, effective_ids=os.access in os.supports_effective_ids)


def _refuse_obstacle(path):
    """Raise an error that says what keeps a file from being written, if anything does."""
    path = os.fsdecode(path)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = 0
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    is_new = mode == 0
    if not path:
        raise OSError(errno.ENOENT, "the path of the file is empty", path)
    if not os.path.basename(path) or stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "this is a folder, and not a file", path)
    if is_new and not os.path.isdir(folder):
        raise OSError(errno.ENOENT, "the folder does not exist", path)
    if not is_new and not _allows(target, os.W_OK):
        raise OSError(errno.EACCES, "the file is write-protected", path)
    if (is_new or stat.S_ISREG(mode)) and not _allows(folder, os.W_OK | os.X_OK):
        raise OSError(errno.EACCES, "the folder is write-protected", path)


@contextlib.contextmanager
def replaced(path):
    """File that replaces another one when it is complete.

    If anything fails or interrupts, the other one stays as it was. Where there is one, its mode
    and owner are kept. If the process is killed, an unfinished file stays until another process
    writes into the folder.

    Parameters
    ----------
    path : str or path-like
        The file. Links are followed; devices and pipes are written to directly.

    Yields
    ------
    file : binary file object

    Raises
    ------
    OSError
        If the file cannot be written; the error names the path.
    """
    _refuse_obstacle(path)
    target = os.path.realpath(os.fsdecode(path))
    is_special = os.path.exists(target) and not os.path.isfile(target)
    with os_errors_name(path), open(target, "wb") if is_special else _regular(target) as file:
        yield file


@contextlib.contextmanager
def os_errors_name(name):
    """Context in which an OSError that names no file, or a temporary one, names this file.

    Parameters
    ----------
    name : str or path-like
    """
    try:
        yield
    except OSError as error:
        named = error.filename
        hidden = isinstance(named, str) and os.path.basename(named).startswith(_UNFINISHED)
        if error.errno is None or not (named is None or hidden):
            raise
        raise OSError(error.errno, error.strerror, os.fsdecode(name)) from None


@contextlib.contextmanager
def _regular(target):
    """Temporary file that is renamed when it is complete."""
    before = os.stat(target) if os.path.exists(target) else None
    folder = os.path.dirname(target)
    _remove_abandoned_once(folder)
    # Not by `tempfile`, whose files other users cannot read. An interrupt may come as soon as the
    # file exists, so its path is chosen before.
    path = os.path.join(folder, _UNFINISHED + os.urandom(8).hex())
    try:
        with open(_create(path, 0o666 if before is None else 0o600), "wb") as file:
            yield file
            file.flush()
            if before is not None:
                _make_like(path, before)
            if fcntl is None:
                # Windows does not rename a file that is open; elsewhere the lock lasts until then.
                file.close()
            os.replace(path, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


def read_bytes(source):
    """Content of a file given by its path, or as bytes."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, (str, os.PathLike)):
        # Not by Path, for which no path is the working directory.
        with open(source, "rb") as file:
            return file.read()
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
    """ValueError for bytes that are not in an encoding, from Python's error."""
    byte = error.object[error.start]
    name = error.encoding
    return ValueError(f"{where}: not {name} text (byte {byte:#04x}: {error.reason}); {remedy}")


@contextlib.contextmanager
def value_errors_name(source):
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


def _make_like(path, before):
    """Give a file the owner and the mode of another one, where permitted."""
    with contextlib.suppress(OSError, AttributeError):
        os.chown(path, before.st_uid, before.st_gid)
    with contextlib.suppress(OSError):
        os.chmod(path, stat.S_IMODE(before.st_mode))


def _create(path, mode):
    """Descriptor of a new file, locked so that it does not look abandoned."""
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_BINARY", 0), mode)
        try:
            if _lock(descriptor) and os.path.exists(path):
                return descriptor
        except OSError:
            # A file system without locks, where `_remove_abandoned` removes nothing either.
            return descriptor
        # Another process is removing it, or has.
        os.close(descriptor)


def _lock(file):
    """Lock a file as long as it is open; return False if another process has locked it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_abandoned(folder):
    """Remove unfinished files that no process has locked."""
    # Files of other users cannot be removed.
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_UNFINISHED):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(entry.path)


# Listing the folder for each of many files would take longer than writing them.
_remove_abandoned_once = functools.cache(_remove_abandoned)


def _remove_if_abandoned(path):
    if fcntl is None:
        os.unlink(path)
        return
    with open(path, "r+b") as file:
        if _lock(file):
            os.unlink(path)
