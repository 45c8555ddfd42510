"""Standard output; and progress, warnings and messages, in the words of the command."""

import contextlib
import errno
import io
import os
import re
import sys
import time
import warnings

import click

from skstruct.cli.estimators import option_of
from skstruct.utils.files import os_errors_name

_NAME = "standard output"
# Parameters in Python that are options of the same name.
_OPTIONS = (
    *("encoding", "separator", "label", "columns", "comment", "scheme", "repair", "template"),
    "sentence_column",
)
# What only Python has, and what the command says in its place.
_PHRASES = {
    "pass label=None to read tokens without labels": "a line has both",
    " of skstruct.datasets.convert_labels": "",
    "or leave constraint out": "or leave out -p constraint",
    "or take the report as text": "or leave out --json",
    "or another source": "or name another --scheme",
    "or pass another source": "or pass another --scheme",
}
# Text in quotes, which stays as it is, or a parameter and its value.
_QUOTED = r"""'[^']*'|"[^"]*\""""
_PARAMETER = re.compile(rf"(?<![=\w])({_QUOTED})|(?<![\w.(])(\w+)=({_QUOTED}|-?\w+)")


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
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {with_options(str(message))}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def with_options(message):
    """Message in one line that speaks of options, and not of Python's parameters."""
    text = " ".join(message.split())
    for phrase, said in _PHRASES.items():
        text = text.replace(phrase, said)
    return _PARAMETER.sub(_as_option, text)


def _as_option(found):
    """Text of an option in place of a parameter; anything else as it is."""
    quoted, name, value = found.groups()
    if quoted:
        return quoted
    plain = value.strip("'\"")
    if name in _OPTIONS:
        is_word = re.fullmatch(r"[\w.-]+", plain)
        option = name.replace("_", "-")
        return f"--{option} {plain}" if is_word else f"--{option} '{plain}'"
    option = option_of(name)
    return found[0] if option is None else f"{option} {name}={plain}"
