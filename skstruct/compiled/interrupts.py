"""Ctrl-C while compiled code is loaded."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager

__all__ = ["interrupts_deferred"]


@contextmanager
def interrupts_deferred():
    """Context of some milliseconds at whose end an interrupt is answered.

    LLVM asks Python for the code that it loads. An exception does not get through, and without the
    code the process crashes.
    """
    handler = signal.getsignal(signal.SIGINT)
    # Python calls handlers in the main thread only.
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    deferred = []
    signal.signal(signal.SIGINT, lambda *given: deferred.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if deferred:
            handler(*deferred[-1])
