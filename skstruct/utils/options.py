"""Checks of parameters."""

from numbers import Integral

import numpy as np

from skstruct.utils.messages import short_repr


def check_choice(name, value, choices):
    """Raise a ValueError unless a parameter has one of the values allowed."""
    if value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, choices))}, got {short_repr(value)}."
        )


def check_count(name, value, *, none=False):
    """Raise a ValueError unless a parameter is a positive integer, or None if that is allowed."""
    if (value is None and none) or (isinstance(value, Integral) and value >= 1):
        return
    kind = "None or a positive integer" if none else "a positive integer"
    raise ValueError(f"{name} must be {kind}, got {short_repr(value)}.")


def check_float_dtype(dtype):
    """Return a vectoriser's dtype as numpy's; a ValueError unless 32- or 64-bit float."""
    try:
        checked = np.dtype(dtype)
    except (TypeError, ValueError):
        checked = None
    if checked not in (np.float32, np.float64):
        raise ValueError(f"dtype must be np.float64 or np.float32, got {short_repr(dtype)}.")
    return checked
