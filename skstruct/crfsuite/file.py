"""CRFsuite's binary model format: bytes to arrays and back.

A file is a header and five chunks: the weights, with the numbers of what they join; the names of
the labels and of the attributes, each a small hash table on disk ("constant quark database"); and
for each label and each attribute the numbers of its weights. All numbers are little-endian.

Nothing that a file says about itself is believed before it was held against the size of the file,
so that a damaged or hostile one costs no more than reading it.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import NamedTuple

import numpy as np

__all__ = ["CRFsuiteModel", "decode_model", "describe_header", "encode_model", "hash_names"]

_HEADER = struct.Struct("<4sI4s9I")
_CHUNK = struct.Struct("<4sII")
_QUARKS = struct.Struct("<4s5I")
_MAGIC, _KIND, _VERSION = b"lCRF", b"FOMC", 100
_BYTE_ORDER = 0x62445371
_N_TABLES = 256
_FIRST_RECORD = _QUARKS.size + 8 * _N_TABLES
_STATE, _TRANSITION = 0, 1
_WEIGHT = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("value", "<f8")])
_U4 = np.dtype("<u4")


class CRFsuiteModel(NamedTuple):
    """What a file holds: names, and weights by the numbers of the names."""

    labels: list  # of str
    attributes: list  # of str
    states: np.ndarray  # (n_states, 2): attribute and label
    state_weights: np.ndarray  # (n_states,)
    pairs: np.ndarray  # (n_pairs, 2): label before and label
    pair_weights: np.ndarray  # (n_pairs,)


class _Damaged(ValueError):
    pass


# ------------------------------------------------------------------------------------------ reading


def decode_model(data):
    """Read a model.

    Parameters
    ----------
    data : bytes
        Content of the file.

    Returns
    -------
    model : CRFsuiteModel

    Raises
    ------
    ValueError
        If it is no such file, or is cut short or inconsistent.
    """
    try:
        return _decode(data)
    except _Damaged as error:
        raise ValueError(f"This is no intact CRFsuite model: {error}.") from None


def _decode(data):
    _check(len(data) >= _HEADER.size, "it has no complete header")
    magic, size, kind, version, _, n_labels, n_attributes, *places = _HEADER.unpack_from(data)
    _check(magic == _MAGIC, f"it starts with {magic!r} and not with {_MAGIC!r}")
    _check(size == len(data), f"it has {len(data)} bytes, and its header says {size}")
    _check(kind == _KIND, f"models of the type {kind!r} are not known")
    _check(version == _VERSION, f"version {version} is not known")
    weights = _read_weights(data, places[0])
    labels = _read_quarks(data, places[1], n_labels, "label")
    attributes = _read_quarks(data, places[2], n_attributes, "attribute")
    of_label = _read_references(data, places[3], b"LFRF", n_labels, len(weights))
    of_attribute = _read_references(data, places[4], b"AFRF", n_attributes, len(weights))
    pairs, pair_weights = _take(weights, of_label, _TRANSITION, n_labels)
    states, state_weights = _take(weights, of_attribute, _STATE, n_labels)
    return CRFsuiteModel(
        _as_text(labels, "label", "strict"),
        # Attributes are bytes to CRFsuite; what is no UTF-8 still compares and writes the same.
        _as_text(attributes, "attribute", "surrogateescape"),
        states,
        state_weights,
        pairs,
        pair_weights,
    )


def _check(holds, complaint):
    if not holds:
        raise _Damaged(complaint)


def _read_weights(data, place):
    size, n = _read_chunk_head(data, place, b"FEAT")
    _check(size == _CHUNK.size + _WEIGHT.itemsize * n, f"{n} weights do not take {size} bytes")
    weights = np.frombuffer(data, _WEIGHT, n, place + _CHUNK.size)
    _check(np.isfinite(weights["value"]).all(), "a weight is infinite or no number")
    return weights


def _read_chunk_head(data, place, name):
    _check(place + _CHUNK.size <= len(data), f"the chunk {name!r} lies behind the end")
    found, size, n = _CHUNK.unpack_from(data, place)
    _check(found == name, f"where the chunk {name!r} should be, there is {found!r}")
    _check(_CHUNK.size <= size <= len(data) - place, f"the chunk {name!r} is cut short")
    return size, n


def _read_quarks(data, place, n, what):
    """The names with the numbers 0, 1, ..., n - 1, as bytes."""
    _check(place + _FIRST_RECORD <= len(data), f"the table of {what}s lies behind the end")
    name, size, _, order, _, backward = _QUARKS.unpack_from(data, place)
    _check(name == b"CQDB", f"where the table of {what}s should be, there is {name!r}")
    _check(order == _BYTE_ORDER, f"the table of {what}s is of another byte order")
    _check(_FIRST_RECORD <= size <= len(data) - place, f"the table of {what}s is cut short")
    if n == 0:
        return []
    fits = _FIRST_RECORD <= backward <= size and n <= (size - backward) // 4
    _check(fits, f"there is no room for the names of {n} {what}s")
    chunk = data[place : place + size]
    starts = np.frombuffer(chunk, _U4, n, backward).astype(np.int64)
    fits = starts.min() >= _FIRST_RECORD and starts.max() <= size - 8
    _check(fits, f"the name of {what} {int(starts.argmax())} lies outside of its table")
    numbers, lengths = _integers_at(chunk, starts), _integers_at(chunk, starts + 4)
    _check(np.array_equal(numbers, np.arange(n)), f"the numbers of the {what}s are mixed up")
    ends = starts + 8 + lengths
    _check(lengths.min() >= 1 and ends.max() <= size, f"one of the {what}s is cut short")
    _check(lengths.sum() <= size, f"the names of {what}s overlap")
    names = [chunk[a + 8 : b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    well_formed = all(name.find(b"\0") == len(name) - 1 for name in names)
    _check(well_formed, f"one of the {what}s does not end where it should")
    names = [name[:-1] for name in names]
    _check(len(set(names)) == n, f"two {what}s have the same name")
    return names


def _integers_at(data, places):
    """Integers of four bytes at any places."""
    raw = np.frombuffer(data, np.uint8)[places[:, None] + np.arange(4)]
    return np.ascontiguousarray(raw).view(_U4).ravel().astype(np.int64)


def _read_references(data, place, name, n, n_weights):
    """Numbers of the weights of each label or attribute: where they start, and the numbers."""
    size, n_listed = _read_chunk_head(data, place, name)
    # CRFsuite's writer leaves room for two labels more than there are.
    fits = n <= n_listed <= (size - _CHUNK.size) // 4
    _check(fits, f"the chunk {name!r} has no room for {n} lists")
    starts = np.frombuffer(data, _U4, n, place + _CHUNK.size).astype(np.int64)
    _check(n == 0 or starts.max() <= len(data) - 4, f"a list of the chunk {name!r} lies outside")
    lengths = _integers_at(data, starts)
    fits = n == 0 or (starts + 4 + 4 * lengths).max() <= len(data)
    _check(fits, f"a list of the chunk {name!r} is cut short")
    edges = np.concatenate([[0], np.cumsum(lengths)])
    _check(edges[-1] <= n_weights, f"the chunk {name!r} lists more weights than there are")
    within = np.arange(edges[-1]) - np.repeat(edges[:-1], lengths)
    numbers = _integers_at(data, np.repeat(starts + 4, lengths) + 4 * within)
    _check(edges[-1] == 0 or numbers.max() < n_weights, f"the chunk {name!r} lists no weight")
    return edges, numbers


def _take(weights, references, kind, n_labels):
    """What the weights of one kind join, and their values."""
    edges, numbers = references
    chosen = weights[numbers]
    owners = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    consistent = (
        np.all(chosen["kind"] == kind)
        and np.array_equal(chosen["source"], owners)
        and np.all(chosen["target"] < n_labels)
        and (len(numbers) == 0 or np.bincount(numbers).max() == 1)
    )
    _check(consistent, "the lists of weights contradict the weights")
    joined = np.stack([owners, chosen["target"].astype(np.int64)], axis=1)
    return joined, chosen["value"].astype(np.float64)


def _as_text(names, what, errors):
    try:
        return [name.decode("utf-8", errors) for name in names]
    except UnicodeDecodeError:
        raise _Damaged(f"one of the {what}s is no UTF-8") from None


def describe_header(data):
    """The header of a model as CRFsuite prints it, a dict of str."""
    magic, size, kind, *rest = _HEADER.unpack_from(data)
    counts = ("version", "num_features", "num_labels", "num_attrs")
    places = ("off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs")
    return {
        "magic": magic.decode("latin-1"),
        "size": str(size),
        "type": kind.decode("latin-1"),
        **{name: str(value) for name, value in zip(counts, rest[:4], strict=True)},
        **{name: f"0x{value:X}" for name, value in zip(places, rest[4:], strict=True)},
    }


# ------------------------------------------------------------------------------------------ writing


def encode_model(model):
    """Write a model.

    Parameters
    ----------
    model : CRFsuiteModel
        With the weights in the order of their attributes, or of their labels before.

    Returns
    -------
    data : bytes

    Raises
    ------
    ValueError
        If a name holds a NUL character, or the file would be larger than 4 GiB.
    """
    n_labels, n_attributes, n_states = len(model.labels), len(model.attributes), len(model.states)
    weights = np.empty(n_states + len(model.pairs), _WEIGHT)
    _fill(weights[:n_states], _STATE, model.states, model.state_weights)
    _fill(weights[n_states:], _TRANSITION, model.pairs, model.pair_weights)
    parts = _Parts(_HEADER.size)
    places = [
        parts.add(_CHUNK.pack(b"FEAT", _CHUNK.size + weights.nbytes, len(weights))),
    ]
    parts.add(weights.tobytes())
    places.append(parts.add(_encode_quarks(model.labels, "label")))
    places.append(parts.add(_encode_quarks(model.attributes, "attribute")))
    of_label = np.bincount(model.pairs[:, 0], minlength=n_labels)
    places.append(parts.add_references(b"LFRF", of_label, n_states, n_spare=2))
    of_attribute = np.bincount(model.states[:, 0], minlength=n_attributes)
    places.append(parts.add_references(b"AFRF", of_attribute, 0))
    if parts.size >= 1 << 32:
        raise ValueError(
            f"The model would take {parts.size} bytes; CRFsuite's format ends at 4 GiB."
        )
    header = _HEADER.pack(_MAGIC, parts.size, _KIND, _VERSION, 0, n_labels, n_attributes, *places)
    return header + b"".join(parts.parts)


class _Parts:
    """The chunks of a file, and how long it is so far."""

    def __init__(self, size):
        self.parts = []
        self.size = size

    def add(self, data):
        """Append `data`; returns where it starts."""
        place = self.size
        self.parts.append(data)
        self.size += len(data)
        return place

    def add_references(self, name, lengths, first, n_spare=0):
        """Append lists of consecutive weights from number `first` on; returns where they start."""
        self.add(b"\0" * (-self.size % 4))
        n = len(lengths)
        head = _CHUNK.size + 4 * (n + n_spare)
        # Each list is its length and then its numbers.
        edges = np.concatenate([[0], np.cumsum(lengths + 1)])
        lists = np.empty(edges[-1], _U4)
        is_number = np.ones(len(lists), bool)
        is_number[edges[:-1]] = False
        lists[edges[:-1]] = lengths
        lists[is_number] = first + np.arange(edges[-1] - n)
        starts = np.zeros(n + n_spare, np.int64)
        starts[:n] = self.size + head + 4 * edges[:-1]
        size = head + lists.nbytes
        return self.add(
            _CHUNK.pack(name, size & 0xFFFFFFFF, n + n_spare)
            + (starts & 0xFFFFFFFF).astype(_U4).tobytes()
            + lists.tobytes()
        )


def _fill(weights, kind, joined, values):
    weights["kind"] = kind
    weights["source"], weights["target"] = joined.T
    weights["value"] = values


def _encode_quarks(names, what):
    """Table of names, to be looked up by name and by number."""
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
    head = _QUARKS.pack(
        b"CQDB", (place + 4 * len(names)) & 0xFFFFFFFF, 0, _BYTE_ORDER, len(names),
        place & 0xFFFFFFFF if names else 0,
    )  # fmt: skip
    heads = (np.array(heads, np.int64) & 0xFFFFFFFF).astype(_U4)
    backward = (places[:-1] & 0xFFFFFFFF).astype(_U4)
    return b"".join([head, heads.tobytes(), records, *tables, backward.tobytes()])


def _as_bytes(name, what):
    try:
        encoded = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"The {what} {name!r} cannot be written as UTF-8.") from None
    if b"\0" in encoded:
        raise ValueError(f"The {what} {name!r} holds a NUL character, which ends a name.")
    return encoded


def _hash_table(hashes, places):
    """Table of twice the size with open addresses: hash and place, or zeros."""
    size = 2 * len(hashes)
    table = np.zeros((size, 2), _U4)
    taken = [False] * size
    for h, place in zip(hashes.tolist(), places.tolist(), strict=True):
        k = (h >> 8) % size
        while taken[k]:
            k = (k + 1) % size
        taken[k] = True
        table[k] = h, place & 0xFFFFFFFF
    return table


def hash_names(names):
    """Bob Jenkins' hash "lookup3" of byte strings, which CRFsuite looks names up by.

    Parameters
    ----------
    names : list of bytes
        None of them empty.

    Returns
    -------
    hashes : ndarray of shape (n_names,), dtype uint32
    """
    hashes = np.empty(len(names), np.uint32)
    n_blocks = np.array([(len(name) + 11) // 12 for name in names], np.int64)
    for n in np.unique(n_blocks).tolist():
        chosen = np.flatnonzero(n_blocks == n)
        padded = b"".join(names[i].ljust(12 * n, b"\0") for i in chosen.tolist())
        words = np.frombuffer(padded, _U4).astype(np.uint32).reshape(len(chosen), n, 3)
        lengths = np.array([len(names[i]) for i in chosen.tolist()], np.uint32)
        hashes[chosen] = _hash_blocks(words, lengths)
    return hashes


def _hash_blocks(words, lengths):
    """The hash of names of equally many blocks of three words."""
    a = np.uint32(0xDEADBEEF) + lengths
    state = [a, a.copy(), a.copy()]
    for block in range(words.shape[1]):
        for part, word in zip(state, words[:, block].T, strict=True):
            part += word
        if block + 1 < words.shape[1]:
            _stir(state)
    return _settle(*state)


def _stir(state):
    """Mix the three words of the state, in place."""
    for step, bits in enumerate((4, 6, 8, 16, 19, 4)):
        x, y, z = (state[(step + k) % 3] for k in (0, 1, 2))
        x -= z
        x ^= _rotate(z, bits)
        z += y


def _settle(a, b, c):
    """The hash that the state comes to."""
    turns = ((c, b, 14), (a, c, 11), (b, a, 25), (c, b, 16), (a, c, 4), (b, a, 14), (c, b, 24))
    for x, y, bits in turns:
        x ^= y
        x -= _rotate(y, bits)
    return c


def _rotate(x, bits):
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))
