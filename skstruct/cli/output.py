"""Standard output, and progress and warnings on standard error."""

import contextlib
import errno
import io
import os
import sys
import warnings

import click

from skstruct.cli.estimators import with_options
from skstruct.utils.files import os_errors_name

_NAME = "standard output"


def write_line(text):
    """Write a line to standard output."""
    with standard_output():
        click.echo(text)


@contextlib.contextmanager
def standard_output():
    """Context that writes to standard output; errors of the system name it.

    Yields
    ------
    file : binary file object
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, "it is closed", _NAME)
    with os_errors_name(_NAME):
        yield sys.stdout.buffer
        sys.stdout.flush()


class Progress(io.TextIOBase):
    """Text file that writes to standard error, and ignores errors such as a full disk.

    A training goes on then. It ends if a pipe is closed.
    """

    def write(self, text):
        """Write text; return its length."""
        try:
            if sys.stderr is not None:
                sys.stderr.write(text)
                sys.stderr.flush()
        except BrokenPipeError:
            raise
        except OSError:
            pass
        return len(text)


def drop_unwritten():
    """Drop unwritten output, which Python would try to write again when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


@contextlib.contextmanager
def plain_warnings():
    """Context in which warnings are lines without a place in Python code."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {with_options(str(message))}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before
