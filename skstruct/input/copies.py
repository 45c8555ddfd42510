"""Copies of the caller's lists, which another thread may change between two looks at them."""

from __future__ import annotations


def copied(value):
    """Copy of a list; anything else as it is."""
    return list(value) if isinstance(value, list) else value


def copied_lists(values):
    """Copy of a list or tuple, and of the lists in it, as a list; anything else as it is."""
    return list(map(copied, list(values))) if isinstance(values, (list, tuple)) else values
