"""Tables of names in CRFsuite's model files: "constant quark databases".

A table maps strings to the numbers 0, 1, ..., n - 1 and back. It is a header; 256 heads of hash
tables; the records, each a number, a length and a name that ends with NUL; the hash tables; and the
offset of each record.
"""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np

__all__ = [
    "UINT32",
    "DamagedError",
    "check",
    "decode_names",
    "encode_names",
    "hash_names",
    "read_integers",
]

UINT32 = np.dtype("<u4")
_HEADER = struct.Struct("<4s5I")
_MAGIC, _BYTE_ORDER = b"CQDB", 0x62445371
_N_TABLES = 256
_FIRST_RECORD = _HEADER.size + 8 * _N_TABLES


class DamagedError(ValueError):
    """Model file that is not valid."""


def check(valid, complaint):
    """Raise `DamagedError` with a complaint unless a condition is met."""
    if not valid:
        raise DamagedError(complaint)


def read_integers(data, places):
    """Unsigned 32-bit integers at the given offsets."""
    raw = np.frombuffer(data, np.uint8)[places[:, None] + np.arange(4)]
    return np.ascontiguousarray(raw).view(UINT32).ravel().astype(np.int64)


def decode_names(data, place, n, what):
    """Names with the numbers 0, 1, ..., n - 1, as bytes."""
    check(place + _FIRST_RECORD <= len(data), f"the table of {what}s starts after the end")
    name, size, _, order, _, backward = _HEADER.unpack_from(data, place)
    check(name == _MAGIC, f"expected the table of {what}s, found {name!r}")
    check(order == _BYTE_ORDER, f"the table of {what}s has another byte order")
    check(_FIRST_RECORD <= size <= len(data) - place, f"the table of {what}s is truncated")
    if n == 0:
        return []
    fits = _FIRST_RECORD <= backward <= size and n <= (size - backward) // 4
    check(fits, f"the table of {what}s is too small for {n} names")
    chunk = data[place : place + size]
    starts = np.frombuffer(chunk, UINT32, n, backward).astype(np.int64)
    fits = starts.min() >= _FIRST_RECORD and starts.max() <= size - 8
    check(fits, f"the name of {what} {int(starts.argmax())} lies outside its table")
    numbers, lengths = read_integers(chunk, starts), read_integers(chunk, starts + 4)
    check(np.array_equal(numbers, np.arange(n)), f"the numbers of the {what}s are out of order")
    ends = starts + 8 + lengths
    check(lengths.min() >= 1 and ends.max() <= size, f"one of the {what} names is truncated")
    check(lengths.sum() <= size, f"the names of {what}s overlap")
    names = [chunk[a + 8 : b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    well_formed = all(name.find(b"\0") == len(name) - 1 for name in names)
    check(well_formed, f"one of the {what} names has the wrong length")
    names = [name[:-1] for name in names]
    check(len(set(names)) == n, f"two {what}s have the same name")
    return names


def encode_names(names, what):
    """Table of names, for look-up by name and by number."""
    names = [_as_bytes(name, what) + b"\0" for name in names]
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    places = _FIRST_RECORD + np.concatenate([[0], np.cumsum(lengths + 8)])
    records = b"".join(
        struct.pack("<II", number, len(name)) + name for number, name in enumerate(names)
    )
    hashes = hash_names(names)
    tables, heads, place = [], [], int(places[-1])
    order = np.argsort(hashes % _N_TABLES, kind="stable")
    edges = np.searchsorted(hashes[order] % _N_TABLES, np.arange(_N_TABLES + 1))
    for a, b in pairwise(edges.tolist()):
        table = _hash_table(hashes[order[a:b]], places[order[a:b]])
        heads += [place if b > a else 0, len(table)]
        tables.append(table.tobytes())
        place += table.nbytes
    head = _HEADER.pack(
        _MAGIC, (place + 4 * len(names)) & 0xFFFFFFFF, 0, _BYTE_ORDER, len(names),
        place & 0xFFFFFFFF if names else 0,
    )  # fmt: skip
    heads = (np.array(heads, np.int64) & 0xFFFFFFFF).astype(UINT32)
    backward = (places[:-1] & 0xFFFFFFFF).astype(UINT32)
    return b"".join([head, heads.tobytes(), records, *tables, backward.tobytes()])


def _as_bytes(name, what):
    try:
        encoded = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"The {what} {name!r} cannot be encoded as UTF-8.") from None
    if b"\0" in encoded:
        raise ValueError(f"The {what} {name!r} contains a NUL character, which ends a name.")
    return encoded


def _hash_table(hashes, places):
    """Hash table with open addressing and twice as many slots: hash and offset, or zeros."""
    size = 2 * len(hashes)
    table = np.zeros((size, 2), UINT32)
    taken = [False] * size
    for h, place in zip(hashes.tolist(), places.tolist(), strict=True):
        k = (h >> 8) % size
        while taken[k]:
            k = (k + 1) % size
        taken[k] = True
        table[k] = h, place & 0xFFFFFFFF
    return table


def hash_names(names):
    """Hash byte strings by Bob Jenkins' "lookup3", as in CRFsuite's tables of names.

    Parameters
    ----------
    names : list of bytes
        Non-empty names.

    Returns
    -------
    hashes : ndarray of shape (n_names,), dtype uint32
    """
    hashes = np.empty(len(names), np.uint32)
    n_blocks = np.array([(len(name) + 11) // 12 for name in names], np.int64)
    for n in np.unique(n_blocks).tolist():
        chosen = np.flatnonzero(n_blocks == n)
        padded = b"".join(names[i].ljust(12 * n, b"\0") for i in chosen.tolist())
        words = np.frombuffer(padded, UINT32).astype(np.uint32).reshape(len(chosen), n, 3)
        lengths = np.array([len(names[i]) for i in chosen.tolist()], np.uint32)
        hashes[chosen] = _hash_blocks(words, lengths)
    return hashes


def _hash_blocks(words, lengths):
    """Hash of names with equal numbers of blocks of three words."""
    a = np.uint32(0xDEADBEEF) + lengths
    state = [a, a.copy(), a.copy()]
    for block in range(words.shape[1]):
        for part, word in zip(state, words[:, block].T, strict=True):
            part += word
        if block + 1 < words.shape[1]:
            _stir(state)
    return _settle(*state)


def _stir(state):
    """Mix the three words of the state in place."""
    for step, bits in enumerate((4, 6, 8, 16, 19, 4)):
        x, y, z = (state[(step + k) % 3] for k in (0, 1, 2))
        x -= z
        x ^= _rotate(z, bits)
        z += y


def _settle(a, b, c):
    """Hash from the final state."""
    turns = ((c, b, 14), (a, c, 11), (b, a, 25), (c, b, 16), (a, c, 4), (b, a, 14), (c, b, 24))
    for x, y, bits in turns:
        x ^= y
        x -= _rotate(y, bits)
    return c


def _rotate(x, bits):
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))
