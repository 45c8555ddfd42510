"""Attributes of tokens: names and values, read from feature dicts and attribute strings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from itertools import chain, repeat
from numbers import Real

import numpy as np

from skstruct.features.arrays import is_vector
from skstruct.frames import refuse_frame
from skstruct.utils.messages import short_repr

__all__ = ["PLAIN_COLLECTIONS", "iterate_level", "read_tokens"]

# The types that most data consists of, which need no further check.
PLAIN_COLLECTIONS = {list, tuple, set, frozenset}
_PLAIN_NUMBERS = {bool, int, float}
_SHAPE = "A batch is a list of sequences, a sequence a list of tokens."


def iterate_level(value, what, content):
    """Iterate over `value`, or raise an error if it cannot be a collection of `content`."""
    refuse_frame(value)
    try:
        if not isinstance(value, (str, bytes, Mapping)):
            return iter(value)
    except TypeError:
        pass
    raise ValueError(f"{what} is {short_repr(value)}; expected a list of {content}. {_SHAPE}")


def read_tokens(tokens, limit, i, add_array):
    """Read the tokens of a sequence: feature dicts or collections of attribute strings.

    Each dict or collection is copied at one moment, and what is returned is read from the copies:
    another thread may change it meanwhile.

    Parameters
    ----------
    tokens : list
    limit : float
        Largest absolute value allowed.
    i : int
        Number of the sequence, for messages.
    add_array : callable
        Called as ``add_array(t, name, array)`` for each feature whose value is an array.

    Returns
    -------
    names : list of str
        Attributes of all tokens.
    lengths : list of int
        Number of attributes of each token.
    positions, values : list
        Positions in `names` of the attributes with a value other than 1, and these values.
    """
    names, lengths, positions, values = [], [], [], []
    for t, token in enumerate(tokens):
        start = len(names)
        try:
            for key, value in _features(token):
                # Strings, bools and plain numbers, which are most features, need no call.
                kind = type(value) if type(key) is str else None
                if kind is str:
                    names.append(f"{key}:{value}")
                    continue
                if kind in _PLAIN_NUMBERS and (value is True or abs(value) <= limit):
                    if value != 1:
                        positions.append(len(names))
                        values.append(value)
                    names.append(key)
                    continue
                for name, number in _attributes(key, value, limit):
                    if type(number) is np.ndarray:
                        add_array(t, name, number)
                        continue
                    if number != 1:
                        positions.append(len(names))
                        values.append(number)
                    names.append(name)
        except (ValueError, LookupError, RuntimeError) as error:
            raise ValueError(f"Sequence {i}, token {t}: {_complaint(error, token)}") from None
        lengths.append(len(names) - start)
    return names, lengths, positions, values


def _complaint(error, token):
    """What was wrong with a token."""
    if isinstance(error, ValueError):
        return error
    if isinstance(error, RecursionError):
        return "its dicts are nested too deeply."
    # As mappings and collections that are written in Python raise them.
    return (
        f"reading it, a {type(token).__name__}, failed with {error!r}; another thread may have "
        "changed it meanwhile."
    )


def _features(token):
    """Pairs of key and value in a token; an attribute string is a feature with the value True."""
    if isinstance(token, Mapping):
        return list(token.items())
    strings = _strings(token)
    if strings is None:
        raise ValueError(
            f"{short_repr(token)} is not a valid token; expected a dict of features, or a list, "
            f"tuple or set of strings. {_SHAPE}"
        )
    return zip(strings, repeat(True))


def _attributes(key, value, limit, prefix=""):
    """Pairs of name and value of the attributes of one feature."""
    if not isinstance(key, (str, bytes)):
        raise ValueError(f"feature name {short_repr(key)} is not a string.")
    name = prefix + _as_text(key)
    if is_vector(value):
        return [(name, value)] if value.size else []
    strings = _strings([value] if isinstance(value, (str, bytes)) else value)
    if strings is not None:
        return [(f"{name}:{text}", 1) for text in strings]
    if isinstance(value, Mapping):
        nested = (_attributes(k, v, limit, f"{name}:") for k, v in list(value.items()))
        return list(chain.from_iterable(nested))
    if not isinstance(value, (Real, Decimal, np.bool_)):
        raise ValueError(
            f"feature {name!r} is {short_repr(value)}; expected a string, bool or number, a dict "
            f"of these, a list, tuple or set of strings, or an array of numbers."
        )
    number = _as_float(value)
    if not abs(number) <= limit:
        raise ValueError(
            f"feature {name!r} is {number}; values must be finite and at most {limit:.2g}."
        )
    return [(name, number)]


def _as_float(value):
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except ValueError:  # a signalling NaN
        return np.nan


def _strings(value):
    """Strings in a list, tuple, set or other collection; None if `value` is something else."""
    if type(value) not in PLAIN_COLLECTIONS:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Collection):
            return None
    texts = list(value)
    kinds = set(map(type, texts))
    if kinds <= {str}:
        return texts
    return list(map(_as_text, texts)) if all(issubclass(k, (str, bytes)) for k in kinds) else None


def _as_text(text):
    """Plain string, also if it is given as bytes in UTF-8.

    Other bytes become surrogates, and can be written to a file as they were.
    """
    if isinstance(text, bytes):
        return text.decode("utf-8", "surrogateescape")
    # This gives the value of a member of a string enumeration, not its name.
    return str.__str__(text)
