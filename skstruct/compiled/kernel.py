"""Compiled functions: numba's, but compiled in less time."""

from __future__ import annotations

import gc
from contextlib import contextmanager

from numba.core import types

from skstruct.compiled.interrupts import Interruptible

__all__ = ["Kernel", "garbage_left"]

# Python looks for garbage when so many objects more were made than freed. The compiler makes
# millions, which nearly all live on: with Python's 700 the search takes a fifteenth of its time.
_MANY = 100_000


class Kernel(Interruptible):
    """Compiled function that other kernels call with constants as with any integer."""

    def get_call_template(self, args, kws):
        """Signature for a call in a kernel; numba would compile the function for each constant."""
        kws = {name: _without_constant(kind) for name, kind in kws.items()}
        return super().get_call_template(tuple(map(_without_constant, args)), kws)


def _without_constant(kind):
    return kind.literal_type if isinstance(kind, types.IntegerLiteral) else kind


@contextmanager
def garbage_left():
    """Context of a compilation, with little time spent on the search for garbage."""
    before = gc.get_threshold()
    # Zero turns the search off.
    if before[0]:
        gc.set_threshold(max(before[0], _MANY), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
