"""Pausing Python's garbage collector."""

from __future__ import annotations

import gc
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused():
    """Context in which the garbage collector is off.

    Reading a corpus makes many objects and frees none. Searching them for garbage over and over
    would take as long as the reading itself.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
