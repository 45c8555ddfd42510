"""Ctrl-C while a kernel is compiled or loaded.

LLVM calls Python for the code that it loads, and with the code that it has made. An exception does
not get through. Nor must one come between the moment in which LLVM frees or takes over an object
and the note of it in Python: the object would be freed twice, and the process crash. So a Ctrl-C is
deferred until the kernel is ready.
"""

import signal
import threading
from contextlib import contextmanager


@contextmanager
def interrupts_deferred():
    """Context that defers interrupts to its end."""
    before = signal.getsignal(signal.SIGINT)
    # Python calls handlers in the main thread only.
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    # A kernel that another one calls is compiled within the context of that one.
    deferred = before if isinstance(before, _Deferred) else _Deferred(before)
    signal.signal(signal.SIGINT, deferred)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        deferred.answer()


class _Deferred:
    """Handler of interrupts that keeps the last one for another handler."""

    def __init__(self, handler):
        self._handler, self._interrupt = handler, None

    def __call__(self, *interrupt):
        self._interrupt = interrupt

    def answer(self):
        """Call the other handler if there was an interrupt."""
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            self._handler(*interrupt)
