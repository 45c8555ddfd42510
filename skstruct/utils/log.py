"""Messages about compiled kernels."""

from __future__ import annotations

import logging
from contextlib import contextmanager

__all__ = ["compiling_announced", "tell_compiling", "tell_once"]

logger = logging.getLogger("skstruct")

COMPILING = (
    "Compiling kernels for this machine, which can take half a minute. They are kept for the next "
    "time; `skstruct warm` compiles them ahead."
)

_told = set()
# For each fit that is under way, whether it is verbose.
_verbose = []


def tell_once(level, message, *values):
    """Log a message unless this process has logged one with the same text before `values`."""
    if message not in _told:
        _told.add(message)
        logger.log(level, message, *values)


@contextmanager
def compiling_announced(verbose):
    """Context of a fit: if it has to compile, it says so once, and prints it if it is verbose."""
    _told.discard(COMPILING)
    _verbose.append(verbose)
    try:
        yield
    finally:
        _verbose.remove(verbose)


def tell_compiling():
    """Say that a kernel has to be compiled."""
    if COMPILING not in _told and any(_verbose):
        print(COMPILING)
    tell_once(logging.INFO, COMPILING)
