"""Fits that fail: the estimator stays as it was."""

from __future__ import annotations

from contextlib import contextmanager

__all__ = ["unchanged_on_error"]


@contextmanager
def unchanged_on_error(estimator):
    """Context that restores an estimator's attributes after an exception or an interrupt.

    It yields a list. Functions appended to the list are called as well, and restore what the
    attributes refer to.
    """
    before = estimator.__dict__.copy()
    undo = []
    try:
        yield undo
    except BaseException as error:
        for put_back in undo:
            put_back()
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        if _hides_interrupt(error):
            raise KeyboardInterrupt from error
        raise


def _hides_interrupt(error):
    """True if an error stands for an interrupt.

    When the interrupt comes while numba makes a tuple of several arrays, it goes on with the error
    set, which Python then reports as a SystemError.
    """
    cause = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    return cause is not error and isinstance(cause, KeyboardInterrupt)
