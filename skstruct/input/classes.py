"""Arrays of labels, in which every label is what it was.

numpy's arrays of strings lose the NUL characters at the ends of strings. What comes as such an
array has lost them already; all else keeps them, in arrays of objects.
"""

from __future__ import annotations

import numpy as np

from skstruct.utils.declared import MAX_LABELS

__all__ = ["check_number", "label_array", "sorted_classes"]


def check_number(n_labels):
    """Raise a ValueError if there are more labels than are supported."""
    if n_labels > MAX_LABELS:
        raise ValueError(f"{n_labels} classes; at most {MAX_LABELS} are supported.")


def label_array(labels, dtype=None):
    """Array of some labels.

    Parameters
    ----------
    labels : list
        All str or all int.
    dtype : dtype, default=None
        Of the array. By default, numpy chooses it, unless it would change a label: besides NUL
        characters, integers beyond 64 bits, which become floats.

    Returns
    -------
    array : ndarray of shape (n_labels,)
    """
    array = np.array(labels, dtype=dtype)
    if dtype is None and (array.dtype.kind == "f" or array.tolist() != labels):
        array = np.array(labels, dtype=object)
    return array


def sorted_classes(classes):
    """Distinct labels of a user, sorted.

    Parameters
    ----------
    classes : array-like of shape (n_classes,)

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    """
    if not hasattr(classes, "dtype"):
        classes = list(classes)
        if all(isinstance(label, str) for label in classes):
            return label_array(sorted(map(str.__str__, set(classes))))
    return np.unique(classes)
