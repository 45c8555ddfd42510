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
    except BaseException:
        for put_back in undo:
            put_back()
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
