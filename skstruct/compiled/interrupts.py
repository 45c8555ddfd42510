"""Ctrl-C while compiled code is loaded or made.

LLVM calls Python for the code that it loads, and with the code that it has made. An exception does
not get through. Nor must one come between the moment in which LLVM frees or takes over an object
and the note of it in Python: the object would be freed twice, and the process crash.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager

from llvmlite.binding import ExecutionEngine, ffi, linker

__all__ = ["interrupts_deferred", "interrupts_kept"]

# What LLVM calls, where Python prints an exception and ignores it; and where objects change hands.
_LATE = {
    getattr(getattr(owner, name, None), "__code__", None)
    for owner, names in (
        (ExecutionEngine, ("_raw_object_cache_notify", "_raw_object_cache_getbuffer")),
        (ExecutionEngine, ("add_module", "remove_module")),
        (ffi.ObjectRef, ("close", "detach")),
        (ffi.OutputString, ("close",)),
        (linker, ("link_modules",)),
    )
    for name in names
}


def interrupts_deferred():
    """Context of some milliseconds at whose end an interrupt is answered.

    Without the code that LLVM asks for, the process crashes.
    """
    return _answered_later(lambda frame: True)


def interrupts_kept():
    """Context of a compilation that loses no interrupt.

    An interrupt is answered at once, or at the end if it comes while LLVM calls Python or an object
    changes hands.
    """
    return _answered_later(_is_delicate)


def _is_delicate(frame):
    while frame is not None and frame.f_code not in _LATE:
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
