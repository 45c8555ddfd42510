"""Declarations of stored attributes: what they are, in which range, and what they consist of.

A class says beside its code what a file may hold for each attribute that it learns, and
`skstruct.utils.persistence.Persistent` reads loaded attributes by it, in this order::

    _stored = {
        "n_features_in_": Count(),
        "coef_": Array(REAL, ("n_features_in_",)),
    }

Compiled code checks none of its arrays (`skstruct.utils.stored.arrays`). So whatever it reads has
to be declared. A declaration has two methods: ``write(value)`` returns what is stored for a value,
and ``read(value, what, size)`` returns the value again, or raises a ValueError that says what is
wrong with it. `what` names it, and `size` is the function that `sizes_of` makes.
"""

from __future__ import annotations

from contextlib import suppress
from numbers import Integral

import numpy as np

from skstruct.utils.messages import short_repr
from skstruct.utils.stored.packing import pack_strings, pack_zeros, unpack_strings

__all__ = [
    "Count",
    "Counts",
    "Declaration",
    "Either",
    "Flag",
    "Maybe",
    "Part",
    "Record",
    "Strings",
    "sizes_of",
]


def sizes_of(owner):
    """Make a function from the declaration of a size to the number that it is.

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
    """Base of the declarations."""

    def write(self, value):
        """Return what is stored for a value."""
        return value


class Count(Declaration):
    """Integer.

    Parameters
    ----------
    least : int, default=0
        Least number.
    """

    def __init__(self, least=0):
        self._least = least

    def read(self, value, what, size):
        """Integer that is large enough."""
        is_integer = isinstance(value, Integral) and not isinstance(value, bool)
        if not is_integer or value < self._least:
            raise ValueError(f"{what} is {short_repr(value)}, and not at least {self._least}.")
        return int(value)


class Counts(Declaration):
    """Dict of strings to integers that are not negative.

    Parameters
    ----------
    *names : str
        The strings; by default, there may be any.
    """

    def __init__(self, *names):
        self._names = names

    def read(self, value, what, size):
        """Counts by name."""
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise ValueError(f"{what} are not numbers by name.")
        if self._names and set(value) != set(self._names):
            raise ValueError(f"{what} does not consist of {', '.join(self._names)}.")
        return {name: Count().read(number, what, size) for name, number in value.items()}


class Flag(Declaration):
    """True or False."""

    def read(self, value, what, size):
        """Truth value."""
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{what} is neither True nor False.")
        return bool(value)


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

    write = staticmethod(pack_strings)

    def read(self, value, what, size):
        """Distinct strings in their container."""
        strings = unpack_strings(value)
        fits = type(strings) is self._kind and np.ndim(strings) == 1
        if not fits or not all(isinstance(string, str) for string in strings):
            raise ValueError(f"{what} are not strings.")
        if self._distinct and len(set(strings)) < len(strings):
            raise ValueError(f"two of {what} are the same.")
        return strings


class Part(Declaration):
    """Object, such as an estimator, with some methods and attributes.

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
        """Object that has what is needed of it."""
        lacking = [name for name in self._names if not hasattr(value, name)]
        if lacking or isinstance(value, type):
            raise ValueError(f"{what} is {type(value).__name__}, without {', '.join(lacking)}.")
        for name, length in self._lengths.items():
            if (found := len(getattr(value, name))) != size(length):
                raise ValueError(f"{name} of {what} has the length {found}, not {size(length)}.")
        return value


class Maybe(Declaration):
    """None, or what another declaration allows."""

    def __init__(self, kind):
        self._kind = kind

    def write(self, value):
        """Return what is stored for a value."""
        return None if value is None else self._kind.write(value)

    def read(self, value, what, size):
        """None, or the value."""
        return None if value is None else self._kind.read(value, what, size)


class Either(Declaration):
    """What any of several declarations allows; messages are those of the last one."""

    def __init__(self, *kinds):
        self._kinds = kinds

    def write(self, value):
        """Return what is stored for a value."""
        return self._kinds[-1].write(value)

    def read(self, value, what, size):
        """Value that one of them allows."""
        for kind in self._kinds[:-1]:
            with suppress(ValueError):
                return kind.read(value, what, size)
        return self._kinds[-1].read(value, what, size)


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
        """Dict of the fields."""
        return {
            self._KEY: {
                name: self.write(part) if hasattr(part, "_fields") else pack_zeros(part)
                for name, part in value._asdict().items()
            }
        }

    def read(self, value, what, size):
        """NamedTuple with the right fields."""
        found = value[self._KEY] if isinstance(value, dict) else value._asdict()
        if list(found) != list(self._fields):
            raise ValueError(f"{what} has other fields than {', '.join(self._fields)}.")
        parts = [kind.read(found[name], what, size) for name, kind in self._fields.items()]
        return self._kind(*parts)
