"""Arrays as kernels take them."""

from __future__ import annotations

import numpy as np

__all__ = ["read_only"]


def read_only(value):
    """View of an array, or of every array of a record, that cannot be written to.

    Numba has a type for arrays that can be written to and another one for those that cannot, such
    as memory maps, and compiles a kernel for each. So input that kernels only read is always made
    one that cannot.

    Parameters
    ----------
    value : ndarray or NamedTuple of such values

    Returns
    -------
    value : ndarray or NamedTuple
    """
    if isinstance(value, tuple):
        return type(value)(*map(read_only, value))
    view = np.asarray(value).view()
    view.flags.writeable = False
    return view
