"""Packed values of stored estimators: strings and sparse weights as a few plain arrays.

skops stores each string of a list, dict or object array by itself, and all formats store zeros.
Packed values are checked when they are read, as a file may hold anything.
"""

from math import prod

import numpy as np

from skstruct.utils.memory import require_memory

_STRINGS, _NONZERO = "_packed_strings", "_packed_zeros"
# Length up to which arrays are not packed.
_SHORT = 4096


def pack(value):
    """Many strings, or an array that is mostly zero, as plain arrays; anything else as it is."""
    return pack_zeros(pack_strings(value))


def unpack(value):
    """Unpack the result of `pack`; anything else stays as it is."""
    return unpack_zeros(unpack_strings(value))


def pack_strings(value):
    """Many strings as two arrays; anything else as it is."""
    is_array = isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1
    if not (is_array or type(value) is list) or not len(value):
        return value
    strings = value.tolist() if is_array else value
    if set(map(type, strings)) != {str}:
        return value
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    lengths = lengths.astype(np.min_scalar_type(-1 - int(lengths.max())))
    text = np.frombuffer(b"".join(encoded), np.uint8)
    return {_STRINGS: text, "lengths": lengths, "kind": "array" if is_array else "list"}


def unpack_strings(value):
    """Strings that `pack_strings` has packed; anything else as it is."""
    if not (isinstance(value, dict) and _STRINGS in value):
        return value
    text = _vector(value[_STRINGS], "the bytes of strings", np.uint8)
    lengths = _vector(value["lengths"], "the lengths of strings", "i")
    # None is longer than all of them, so that their sum cannot overflow.
    fit = not len(lengths) or 0 <= lengths.min() <= lengths.max() <= len(text)
    if not fit or lengths.sum(dtype=np.int64) != len(text):
        raise ValueError("the lengths of strings do not add up.")
    if value["kind"] not in ("array", "list"):
        raise ValueError("strings are neither an array nor a list.")
    text, ends = text.tobytes(), np.cumsum(lengths, dtype=np.int64).tolist()
    starts = [0, *ends[:-1]]
    strings = [
        text[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=True)
    ]
    if value["kind"] == "list":
        return strings
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    return array


def pack_zeros(value):
    """Long arrays of floats that are mostly zero without their zeros; anything else as it is.

    Each weight then takes nine or ten bytes, wherever it is.
    """
    if not isinstance(value, np.ndarray) or value.dtype != np.float64 or value.size < _SHORT:
        return value
    transposed = value.flags.f_contiguous and not value.flags.c_contiguous
    flat = (value.T if transposed else value).reshape(-1)
    # By their bits: minus zero is kept.
    places = np.flatnonzero(flat.view(np.uint64))
    if 2 * len(places) > len(flat):
        return value
    gaps = np.diff(places, prepend=0)
    return {
        _NONZERO: flat[places],
        "gaps": gaps.astype(np.min_scalar_type(gaps.max(initial=0))),
        "shape": np.array(value.shape),
        "transposed": transposed,
    }


def unpack_zeros(value, expected=None):
    """Array that `pack_zeros` has packed, in the same order; anything else as it is.

    Parameters
    ----------
    value : object
    expected : tuple of int or None, default=None
        Shape that the array must have, None where any size will do.

    Raises
    ------
    ValueError
        If it cannot be unpacked, or has another shape.
    MemoryError
        If it does not fit into memory: zeros take no room in a file.
    """
    if not (isinstance(value, dict) and _NONZERO in value):
        return value
    gaps = _vector(value["gaps"], "the places of weights", "u")
    numbers = _vector(value[_NONZERO], "the weights", np.float64)
    shape = tuple(_vector(value["shape"], "the sizes of an array", "iu").tolist())
    if len(numbers) != len(gaps) or min(shape, default=0) < 0:
        raise ValueError("the weights of an array do not fit their places.")
    if expected is not None and not fits_shape(shape, expected):
        raise ValueError(f"an array has the shape {shape} and not {expected}.")
    require_memory(
        8 * prod(shape),
        f"The zeros and weights of an array of the shape {shape}",
        "Load it where there is more.",
    )
    flat = np.zeros(prod(shape))
    places = np.cumsum(gaps, dtype=np.int64)
    if np.any(places < 0) or np.any(places >= len(flat)):
        raise ValueError("a weight is outside of its array.")
    flat[places] = numbers
    return flat.reshape(shape[::-1]).T if value["transposed"] else flat.reshape(shape)


def fits_shape(shape, expected):
    """Return True if a shape is the expected one, which has None where any size will do."""
    return len(shape) == len(expected) and all(
        b in (None, a) for a, b in zip(shape, expected, strict=True)
    )


def _vector(value, what, kind):
    """A one-dimensional array of a dtype, or of one of the kinds of dtypes in a string."""
    is_vector = isinstance(value, np.ndarray) and value.ndim == 1
    if not is_vector or not (
        value.dtype.kind in kind if isinstance(kind, str) else value.dtype == kind
    ):
        raise ValueError(f"{what} are not a one-dimensional array of numbers of the right type.")
    return value
