"""Standard output; and progress, warnings and messages, in the words of the command."""

import contextlib
import errno
import io
import os
import sys
import time
import warnings

import click

from skstruct.utils.files import os_errors_name

_NAME = "standard output"
# Options with other names than the parameters in Python.
_OPTIONS = {"constraint": "-p constraint", "output_dict": "--json", "source": "--scheme"}


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


class Log(io.TextIOBase):
    """Standard error: progress of a training, and lines on its steps, none with ``--quiet``.

    Errors such as a full disk are ignored: a training goes on then. It ends if a pipe is closed.
    """

    def __init__(self, quiet):
        self._quiet, self._since = quiet, time.perf_counter()

    def write(self, text):
        try:
            if sys.stderr is not None:
                sys.stderr.write(text)
                sys.stderr.flush()
        except BrokenPipeError:
            raise
        except OSError:
            pass
        return len(text)

    def say(self, line):
        if not self._quiet:
            print(line, file=self)

    def report(self, step):
        """Write a line on a step that is done, with the seconds that it took."""
        now = time.perf_counter()
        self.say(f"{step} ({now - self._since:.1f} s)")
        self._since = now


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
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {in_one_line(message)}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def in_one_line(message):
    """Text of a message in one line."""
    return " ".join(str(message).split())


def as_option(name, *value):
    """Name a parameter by the option that takes it, for `skstruct.utils.messages.given`."""
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    joint = "=" if option.startswith("-p") else " "
    return joint.join([option, *(repr(part) if _is_odd(part) else str(part) for part in value)])


def _is_odd(value):
    """Return True for a value that a shell would not take as it is."""
    return not all(char.isalnum() or char in "._-" for char in str(value))
