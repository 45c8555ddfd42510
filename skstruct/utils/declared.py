"""Declarations of stored attributes: types, shapes and ranges.

A class declares what a file may hold for each of its learnt attributes, and
`skstruct.utils.persistence.Persistent` reads loaded attributes in this order::

    _stored = {
        "n_features_in_": Count(),
        "coef_": Array(REAL, ("n_features_in_",)),
    }

Compiled code does not check its arrays, so all that it reads must be declared. A declaration has
two methods: ``write(value)`` returns the stored form of a value, and ``read(value, what, size)``
restores the value, or raises a ValueError that names it by `what`. `size` is the function that
`sizes_of` makes.
"""

from contextlib import suppress
from itertools import pairwise
from math import prod
from numbers import Integral, Real
from types import MethodDescriptorType

import numpy as np
import scipy.sparse as sp

from skstruct.utils.memory import require_memory
from skstruct.utils.messages import short_repr

# Real numbers of any type that is no wider than 64 bits.
REAL = "real"
# Most labels that the integers in the layout of weights can number.
MAX_LABELS = (1 << 15) - 1
_LAST_CODE_POINT = 0x10FFFF


# Packed values

_STRINGS, _NONZERO, _METHOD = "_packed_strings", "_packed_zeros", "_method_of_str"
# Shorter arrays are not packed.
_SHORT = 4096


def pack_strings(value):
    """Pack a list or array of strings into two arrays; anything else stays as it is."""
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
    """Unpack the result of `pack_strings`; anything else stays as it is."""
    if not (type(value) is dict and _STRINGS in value):
        return value
    text = _vector(value[_STRINGS], "the bytes of strings", np.uint8)
    lengths = _vector(value["lengths"], "the lengths of strings", "i")
    # No length exceeds the text's, so that their sum cannot overflow.
    fit = not len(lengths) or 0 <= lengths.min() <= lengths.max() <= len(text)
    if not fit or lengths.sum(dtype=np.int64) != len(text):
        raise ValueError("the lengths of strings do not add up.")
    if value["kind"] not in ("array", "list"):
        raise ValueError("strings are neither an array nor a list.")
    text, ends = text.tobytes(), np.cumsum(lengths, dtype=np.int64).tolist()
    strings = [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends])]
    if value["kind"] == "list":
        return strings
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    return array


def pack_methods(value):
    """Pack a method of strings, such as ``str.lower``, alone or in a dict, by its name.

    skops stores such a method, but does not load it. Anything else stays as it is.
    """
    if isinstance(value, MethodDescriptorType) and value.__objclass__ is str:
        return {_METHOD: value.__name__}
    if type(value) is dict and any(isinstance(v, MethodDescriptorType) for v in value.values()):
        return {key: pack_methods(v) for key, v in value.items()}
    return value


def unpack_methods(value):
    """Unpack the result of `pack_methods`; anything else stays as it is."""
    if type(value) is not dict:
        return value
    if list(value) == [_METHOD]:
        method = vars(str).get(value[_METHOD])
        if not isinstance(method, MethodDescriptorType):
            raise ValueError(f"strings have no method {short_repr(value[_METHOD])}.")
        return method
    if any(type(v) is dict and _METHOD in v for v in value.values()):
        return {key: unpack_methods(v) for key, v in value.items()}
    return value


def pack_zeros(value):
    """Pack a long array of floats that is mostly zero; anything else stays as it is.

    Each number other than zero then takes nine or ten bytes.
    """
    if not isinstance(value, np.ndarray) or value.dtype != np.float64 or value.size < _SHORT:
        return value
    transposed = value.flags.f_contiguous and not value.flags.c_contiguous
    flat = (value.T if transposed else value).reshape(-1)
    # Bits are compared, so that minus zero is kept.
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
    """Unpack the result of `pack_zeros`, in its memory order; anything else stays as it is.

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
    if not (type(value) is dict and _NONZERO in value):
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


# Declarations


def sizes_of(owner):
    """Make the function that evaluates declared sizes.

    A size is a number itself; the name of an attribute, which is a number or has a length; a pair
    of such a name and a number to add; or None, which is any number.
    """

    def size(of):
        if isinstance(of, tuple):
            return size(of[0]) + of[1]
        value = getattr(owner, of) if isinstance(of, str) else of
        return value if value is None or isinstance(value, Integral) else len(value)

    return size


class Declaration:
    """Any value; base of all declarations.

    Parameters
    ----------
    *options : object
        What is allowed or required; each class says what they are.
    """

    def __init__(self, *options):
        self._options = options

    def write(self, value):
        """Pack strings, a method of strings, or an array that is mostly zero."""
        return pack_zeros(pack_strings(pack_methods(value)))

    def read(self, value, what, size):
        return unpack_zeros(unpack_strings(unpack_methods(value)))


class Number(Declaration):
    """Finite number.

    Parameters
    ----------
    least, most : float
        Bounds of the range; by default any number from zero on.
    """

    _kind, _types, _called = float, Real, "a finite number"

    def __init__(self, least=0, most=np.inf):
        self._least, self._most = least, most

    def read(self, value, what, size):
        is_number = isinstance(value, self._types) and not isinstance(value, bool)
        if not is_number or not self._least <= value <= self._most or value == np.inf:
            expected = f"{self._called} from {self._least} to {self._most}"
            raise ValueError(f"{what} is {short_repr(value)}, and not {expected}.")
        return self._kind(value)


class Count(Number):
    """Integer in a range, with the parameters of `Number`."""

    _kind, _types, _called = int, Integral, "an integer"


class Counts(Declaration):
    """Dict of strings to non-negative integers.

    Parameters
    ----------
    *names : str
        Required keys; by default, any keys are allowed.
    """

    def read(self, value, what, size):
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise ValueError(f"{what} are not numbers by name.")
        if self._options and set(value) != set(self._options):
            raise ValueError(f"{what} does not consist of {', '.join(self._options)}.")
        return {name: Count().read(number, what, size) for name, number in value.items()}


class Numbers(Declaration):
    """Tuple of finite numbers from zero on.

    Parameters
    ----------
    length : int
        Number of them.
    """

    def __init__(self, length):
        self._length = length

    def read(self, value, what, size):
        if not isinstance(value, (list, tuple)) or len(value) != self._length:
            raise ValueError(f"{what} is {short_repr(value)}, and not {self._length} numbers.")
        return tuple(Number().read(number, what, size) for number in value)


class Choice(Declaration):
    """One of some values.

    Parameters
    ----------
    *values : object
    """

    def read(self, value, what, size):
        for one in self._options:
            if value is one or (value == one) is True:
                return one
        raise ValueError(f"{what} is {short_repr(value)}, and not one of {self._options}.")


class Strings(Declaration):
    """Strings.

    Parameters
    ----------
    kind : {list, numpy.ndarray}, default=list
        Their container; an array is one of objects.
    distinct : bool, default=False
        No two are the same.
    """

    def __init__(self, kind=list, *, distinct=False):
        self._kind, self._distinct = kind, distinct

    def read(self, value, what, size):
        strings = unpack_strings(value)
        fits = type(strings) is self._kind and np.ndim(strings) == 1
        if not fits or not all(isinstance(string, str) for string in strings):
            raise ValueError(f"{what} are not strings.")
        if self._distinct and len(set(strings)) < len(strings):
            raise ValueError(f"two of {what} are the same.")
        return strings


class Part(Declaration):
    """Object, such as an estimator, that has certain methods and attributes.

    Parameters
    ----------
    *names : str
        Their names.
    **lengths : size
        For some attributes, their lengths.
    """

    def __init__(self, *names, **lengths):
        self._names, self._lengths = (*names, *lengths), lengths

    def read(self, value, what, size):
        lacking = [name for name in self._names if not hasattr(value, name)]
        if lacking or isinstance(value, type):
            raise ValueError(f"{what} is {type(value).__name__}, without {', '.join(lacking)}.")
        for name, length in self._lengths.items():
            if (found := len(getattr(value, name))) != size(length):
                raise ValueError(f"{name} of {what} has the length {found}, not {size(length)}.")
        return value


class Maybe(Declaration):
    """None, or a value that another declaration allows."""

    def __init__(self, kind):
        self._kind = kind

    def write(self, value):
        return None if value is None else self._kind.write(value)

    def read(self, value, what, size):
        return None if value is None else self._kind.read(value, what, size)


class Either(Declaration):
    """Value that one of several declarations allows; messages come from the last one."""

    def write(self, value):
        return self._options[-1].write(value)

    def read(self, value, what, size):
        for kind in self._options[:-1]:
            with suppress(ValueError):
                return kind.read(value, what, size)
        return self._options[-1].read(value, what, size)


class Record(Declaration):
    """NamedTuple of the kernels, stored as a dict of its fields.

    Parameters
    ----------
    kind : type
        The NamedTuple.
    **fields : Declaration
        Of all fields, in their order.
    """

    _KEY = "_record"

    def __init__(self, kind, **fields):
        self._kind, self._fields = kind, fields

    def write(self, value):
        return {
            self._KEY: {
                name: self.write(part) if hasattr(part, "_fields") else pack_zeros(part)
                for name, part in value._asdict().items()
            }
        }

    def read(self, value, what, size):
        if not isinstance(value, (dict, self._kind)):
            raise ValueError(f"{what} is {short_repr(value)}, and no record.")
        found = value[self._KEY] if isinstance(value, dict) else value._asdict()
        if list(found) != list(self._fields):
            raise ValueError(f"{what} has other fields than {', '.join(self._fields)}.")
        parts = [kind.read(found[name], what, size) for name, kind in self._fields.items()]
        return self._kind(*parts)


class Array(Declaration):
    """Array of numbers, none of which is NaN.

    Parameters
    ----------
    dtype : dtype or REAL
        Kernels are compiled for C-ordered arrays of one type, and `read` returns such an array.
        With `REAL`, any real numbers in any order will do: users may assign such arrays, too, and
        they are converted before use.
    shape : tuple
        Of sizes.
    least, below : int or size, default=None
        Inclusive lower and exclusive upper bound. By default, any finite number.
    forbids : bool, default=False
        Allow minus infinity, the weight of what is forbidden.
    sparse : bool, default=False
        Allow a sparse matrix, if it would fit into memory as a dense array.
    """

    def __init__(self, dtype, shape, *, least=None, below=None, forbids=False, sparse=False):
        self._dtype, self._shape = dtype, shape
        self._least, self._below, self._forbids, self._sparse = least, below, forbids, sparse

    def write(self, value):
        """Array without its zeros, or sparse matrix in a form that can be checked."""
        return value.tocsr() if sp.issparse(value) else pack_zeros(value)

    def read(self, value, what, size):
        expected = tuple(map(size, self._shape))
        array = unpack_zeros(value, expected)
        if self._sparse and sp.issparse(array):
            # Indices must name existing columns.
            array.check_format(full_check=True)
            numbers = array.data
            needs = 8.0 * np.prod(expected, dtype=float)
            require_memory(needs, f"The weights of {what}", "Load it where there is more.")
        elif isinstance(array, np.ndarray):
            # A subclass may redefine arithmetic.
            array = numbers = np.asarray(array)
        else:
            raise ValueError(f"{what} is not an array of numbers.")
        if not self._allows(numbers.dtype):
            wanted = "real numbers" if self._dtype is REAL else np.dtype(self._dtype)
            raise ValueError(f"{what} is an array of {numbers.dtype} and not of {wanted}.")
        if not fits_shape(array.shape, expected):
            raise ValueError(f"{what} has the shape {array.shape} and not {expected}.")
        self._check_values(numbers, what, size)
        return array if self._dtype is REAL else np.ascontiguousarray(array)

    def _allows(self, dtype):
        if self._dtype is REAL:
            return dtype.kind in "fiu" and dtype.itemsize <= 8
        return dtype == self._dtype

    def _check_values(self, numbers, what, size):
        with np.errstate(over="ignore", invalid="ignore"):
            # A finite sum needs no check of each number, which would allocate a buffer.
            total = numbers.sum(dtype=np.float64)
        if not np.isfinite(total) and np.isnan(numbers).any():
            raise ValueError(f"a number of {what} is NaN.")
        if not np.isfinite(total) and (np.isposinf if self._forbids else np.isinf)(numbers).any():
            raise ValueError(f"a number of {what} is infinite.")
        least, below = self._least, size(self._below)
        if numbers.size and least is not None and numbers.min() < least:
            raise ValueError(f"{what} has the number {numbers.min()}, which is less than {least}.")
        if numbers.size and below is not None and numbers.max() >= below:
            raise ValueError(f"{what} has the number {numbers.max()}, but {below} are the most.")


class Objects(Declaration):
    """One-dimensional array of any objects, such as the names of columns.

    Parameters
    ----------
    length : size
    """

    def __init__(self, length):
        self._length = length

    def read(self, value, what, size):
        array, expected = unpack_strings(value), (size(self._length),)
        if not isinstance(array, np.ndarray) or array.dtype != object or array.shape != expected:
            raise ValueError(f"{what} is not an array of {expected[0]} names.")
        return np.asarray(array)


class Labels(Declaration):
    """Distinct labels, all strings or all numbers."""

    def read(self, value, what, size):
        labels = unpack_strings(value)
        if not isinstance(labels, np.ndarray) or labels.ndim != 1:
            raise ValueError(f"{what} is not an array of labels.")
        if not 1 <= len(labels) <= MAX_LABELS:
            raise ValueError(f"{what} has {len(labels)} labels.")
        if labels.dtype.kind == "U":
            # numpy decodes code points without checking them.
            points = np.ascontiguousarray(labels).view(np.uint32)
            if not labels.dtype.isnative or points.max() > _LAST_CODE_POINT:
                raise ValueError(f"{what} has characters that do not exist.")
        each = labels.tolist()
        kind = str if isinstance(each[0], str) else Real
        if not all(isinstance(label, kind) and label == label for label in each):
            raise ValueError(f"{what} has labels that are neither all strings nor all numbers.")
        if len(set(each)) < len(each):
            raise ValueError(f"two labels of {what} are the same.")
        return np.asarray(labels)


class Columns(Declaration):
    """Dict of equally long columns of numbers, such as a history.

    Parameters
    ----------
    *names : str
        Required columns.
    """

    def read(self, value, what, size):
        if not isinstance(value, dict) or not set(self._options) <= value.keys():
            raise ValueError(f"{what} lacks columns.")
        for name, column in value.items():
            is_column = isinstance(column, np.ndarray) and column.ndim == 1
            if not is_column or column.dtype.kind not in "biuf" or not isinstance(name, str):
                raise ValueError(f"the column {name!r} of {what} is not an array of numbers.")
        if len(set(map(len, value.values()))) > 1:
            raise ValueError(f"the columns of {what} differ in length.")
        return value
