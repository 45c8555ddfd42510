"""Fits that fail: the estimator stays as it was."""

from __future__ import annotations

from contextlib import contextmanager

__all__ = ["unchanged_on_error"]


@contextmanager
def unchanged_on_error(estimator):
    """Context in which an exception, or an interrupt, puts back the estimator's attributes.

    What the attributes refer to is put back by functions that are appended to the list given.
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
