"""Storage of fitted estimators: plain arrays with a version, checked when they are loaded.

Every way of storing an estimator (skops.io, pickle, joblib, copies) asks it for its state. A state
is packed, because skops stores each string of a list, dict or object array by itself. It is checked
when it is loaded, because compiled code does not check that its arrays fit together.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from math import prod

import numpy as np

__all__ = [
    "Persistent",
    "check_array_shape",
    "pack_strings",
    "pack_zeros",
    "unpack_strings",
    "unpack_zeros",
]

# Increased when states change so that older versions cannot read them.
FORMAT = 3
_FORMAT_KEY, _VERSION_KEY = "_state_format", "_skstruct_version"
_STRINGS, _RECORD, _NONZERO = "_packed_strings", "_record", "_packed_zeros"
# Length of arrays that are small in any case.
_SHORT = 4096


class Persistent:
    """Mixin, before `BaseEstimator`, of estimators that are stored.

    A subclass may define ``_check_state()``, which raises ValueError if the attributes do not fit
    together; ``_derived_state``, names of attributes that are not stored, and
    ``_restore_state()``, which recomputes them; and ``_records``, NamedTuples that are stored as
    dicts of their fields, because a stored model names public classes only.
    """

    _derived_state = ()
    _records = ()

    def __getstate__(self):
        try:
            state = super().__getstate__()
        except AttributeError:
            state = self.__dict__
        # A copy, as below: another thread may add what it caches.
        kept = {name: v for name, v in dict(state).items() if name not in self._derived_state}
        names = kept.get("feature_names_in_")
        vectorizer = kept.get("vectorizer_")
        if names is not None and names is getattr(vectorizer, "feature_names_", None):
            # The vectoriser stores them already.
            kept["feature_names_in_"] = "vectorizer_"
        return {
            **{name: self._pack(value) for name, value in kept.items()},
            _FORMAT_KEY: FORMAT,
            _VERSION_KEY: _own_version(),
        }

    def __setstate__(self, state):
        what = type(self).__name__
        if not isinstance(state, dict):
            raise ValueError(f"The state of a {what} is {type(state).__name__} and not a dict.")
        state = dict(state)
        found, writer = state.pop(_FORMAT_KEY, 0), state.pop(_VERSION_KEY, "unknown")
        if not isinstance(found, int) or found > FORMAT:
            raise ValueError(
                f"This {what} was stored by skstruct {writer} in the format {found}; "
                f"skstruct {_own_version()} reads formats up to {FORMAT}. Load it with the "
                "version that stored it, or a later one."
            )
        try:
            state = {name: self._unpack(value) for name, value in state.items()}
            if isinstance(state.get("feature_names_in_"), str):
                state["feature_names_in_"] = state["vectorizer_"].feature_names_
            if hasattr(super(), "__setstate__"):
                super().__setstate__(state)
            else:
                self.__dict__.update(state)
            self._restore_state()
            self._check_state()
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"This stored {what} is damaged: {error}") from error

    def __sklearn_is_fitted__(self):
        return any(name.endswith("_") and not name.startswith("__") for name in list(vars(self)))

    def __copy__(self):
        # The attributes of a copy in memory need neither packing nor checks.
        copied = type(self).__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def _pack(self, value):
        if isinstance(value, self._records):
            return {_RECORD: {name: self._pack(v) for name, v in value._asdict().items()}}
        return pack_zeros(pack_strings(value))

    def _unpack(self, value):
        if isinstance(value, dict) and _RECORD in value:
            kinds = {kind._fields: kind for kind in self._records}
            fields = value[_RECORD]
            return kinds[tuple(fields)](*map(self._unpack, fields.values()))
        return unpack_zeros(unpack_strings(value))

    def _restore_state(self):
        pass

    def _check_state(self):
        pass


def _own_version():
    try:
        return version("skstruct")
    except PackageNotFoundError:
        return "unknown"


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
    text, lengths = value[_STRINGS], np.asarray(value["lengths"])
    check_array_shape(text, (len(text),), "the text", kinds="u")
    if lengths.dtype.kind != "i" or np.any(lengths < 0) or lengths.sum(dtype=np.int64) != len(text):
        raise ValueError("the lengths of strings do not add up.")
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

    Every weight that a model has takes nine or ten bytes, wherever it stands.
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


def unpack_zeros(value):
    """Array that `pack_zeros` has packed, in the same order; anything else as it is."""
    if not (isinstance(value, dict) and _NONZERO in value):
        return value
    numbers, gaps, shape = value[_NONZERO], value["gaps"], tuple(value["shape"].tolist())
    check_array_shape(gaps, (len(gaps),), "the places of weights", kinds="u")
    check_array_shape(numbers, gaps.shape, "the weights", kinds="f")
    flat = np.zeros(prod(shape))
    places = np.cumsum(gaps, dtype=np.int64)
    if np.any(places < 0) or np.any(places >= len(flat)):
        raise ValueError("a weight is outside of its array.")
    flat[places] = numbers
    return flat.reshape(shape[::-1]).T if value["transposed"] else flat.reshape(shape)


def check_array_shape(array, shape, what, *, kinds="fiu"):
    """Check that something is an array of numbers of this shape.

    Parameters
    ----------
    array : object
    shape : tuple of int
    what : str
        For the message.
    kinds : str, default="fiu"
        Kinds of dtype that are fine.

    Raises
    ------
    ValueError
        If it is not.
    """
    if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
        raise ValueError(f"{what} is not an array of numbers.")
    if array.shape != shape:
        raise ValueError(f"{what} has the shape {array.shape} and not {shape}.")
