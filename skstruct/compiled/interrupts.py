"""Ctrl-C while compiled code is loaded or made.

LLVM calls Python for the code that it loads, and with the code that it has made. An exception does
not get through.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager

from llvmlite.binding import ExecutionEngine

__all__ = ["interrupts_deferred", "interrupts_kept"]

# What LLVM calls; Python prints an exception there, and ignores it.
_CALLED_BY_LLVM = {
    getattr(function, "__code__", None)
    for function in (
        getattr(ExecutionEngine, "_raw_object_cache_notify", None),
        getattr(ExecutionEngine, "_raw_object_cache_getbuffer", None),
    )
}


def interrupts_deferred():
    """Context of some milliseconds at whose end an interrupt is answered.

    Without the code that LLVM asks for, the process crashes.
    """
    return _answered_later(lambda frame: True)


def interrupts_kept():
    """Context of a compilation that loses no interrupt.

    An interrupt is answered at once, or at the end if it comes while LLVM calls Python.
    """
    return _answered_later(_is_called_by_llvm)


def _is_called_by_llvm(frame):
    while frame is not None and frame.f_code not in _CALLED_BY_LLVM:
        frame = frame.f_back
    return frame is not None


@contextmanager
def _answered_later(is_late):
    handler = signal.getsignal(signal.SIGINT)
    # Python calls handlers in the main thread only.
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    deferred = []

    def answer(number, frame):
        if is_late(frame):
            deferred.append((number, frame))
        else:
            handler(number, frame)

    signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if deferred:
            handler(*deferred[-1])
