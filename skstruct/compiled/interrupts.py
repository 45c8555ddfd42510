"""Ctrl-C while compiled code is loaded or made, or returns.

LLVM calls Python for the code that it loads, and with the code that it has made. An exception does
not get through. Nor must one come between the moment in which LLVM frees or takes over an object
and the note of it in Python: the object would be freed twice, and the process crash.

numba calls Python for each array that compiled code returns. A Ctrl-C that came while the code ran
is answered there, and what the caller gets is a SystemError that was caused by it.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager

from llvmlite.binding import ExecutionEngine, ffi, linker
from numba.core.registry import CPUDispatcher

__all__ = ["Interruptible", "interrupts_deferred", "interrupts_kept"]

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


class Interruptible(CPUDispatcher):
    """Compiled function out of which an interrupt comes as what it is."""

    def __call__(self, *args):
        """Run the function; raise what raised inside, not the SystemError that it caused."""
        try:
            return _call(self, *args)
        except SystemError as error:
            cause = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            if cause is error:
                raise
            raise cause from None


_call = CPUDispatcher.__call__

# Seconds after which an interrupt that came at a bad moment is sent again.
_PAUSE = 0.01


def interrupts_deferred():
    """Context of some milliseconds at whose end an interrupt is answered.

    Without the code that LLVM asks for, the process crashes.
    """
    return _answered_later(lambda frame: True)


def interrupts_kept():
    """Context of a compilation that loses no interrupt.

    An interrupt is answered at once, or as soon as LLVM has got its answer or an object has changed
    hands.
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
    late = _Late(handler, is_late)
    signal.signal(signal.SIGINT, late.answer)
    try:
        yield
    finally:
        try:
            late.stop()
        finally:
            signal.signal(signal.SIGINT, handler)
        late.answer_now()


class _Late:
    """Handler of interrupts that sends those again which come at a bad moment."""

    def __init__(self, handler, is_late):
        self._handler, self._is_late = handler, is_late
        self._deferred = self._timer = None

    def answer(self, number, frame):
        if not self._is_late(frame):
            self._deferred = None
            self._handler(number, frame)
            return
        self._deferred = number, frame
        self._timer = threading.Timer(_PAUSE, signal.raise_signal, [number])
        self._timer.daemon = True
        self._timer.start()

    def stop(self):
        """Send no more interrupts."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def answer_now(self):
        """Answer an interrupt that has not been answered."""
        if self._deferred is not None:
            self._handler(*self._deferred)
