"""Python's garbage collector, out of the way."""

from __future__ import annotations

import gc
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused():
    """Context in which Python does not look for garbage.

    Reading makes many objects, and all of them stay. To look through these, and through all that
    was there before, again and again takes as long as to read.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
