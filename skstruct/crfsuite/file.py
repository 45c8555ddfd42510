"""CRFsuite's binary model format: decoding and encoding.

A file is a header and five chunks: the weights, each with the numbers of an attribute and a label,
or of two labels; the names of the labels and of the attributes; and for each label and each
attribute the numbers of its weights. All integers are little-endian.

The names are in tables ("constant quark databases") that map strings to the numbers 0, 1, ...,
n - 1 and back. Such a table is a header; 256 heads of hash tables; the records, each a number, a
length and a name that ends with NUL; the hash tables; and the offset of each record.

Every size and offset in a file is checked against the size of the file before it is used, so that a
damaged or hostile file costs no more than reading it.
"""

import struct
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

import numpy as np

_UINT32 = np.dtype("<u4")
_HEADER = struct.Struct("<4sI4s9I")
_CHUNK = struct.Struct("<4sII")
_MAGIC, _KIND, _VERSION = b"lCRF", b"FOMC", 100
_STATE, _TRANSITION = 0, 1
_WEIGHT = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("value", "<f8")])
_TABLE_HEADER = struct.Struct("<4s5I")
_RECORD = struct.Struct("<II")
_TABLE_MAGIC, _BYTE_ORDER = b"CQDB", 0x62445371
_N_TABLES = 256
_FIRST_RECORD = _TABLE_HEADER.size + 8 * _N_TABLES


class CRFsuiteModel(NamedTuple):
    """Content of a model file: names, and weights by the numbers of the names."""

    labels: list  # of str
    attributes: list  # of str
    states: np.ndarray  # (n_states, 2): attribute and label
    state_weights: np.ndarray  # (n_states,)
    pairs: np.ndarray  # (n_pairs, 2): previous label and label
    pair_weights: np.ndarray  # (n_pairs,)


# ------------------------------------------------------------------------------------------ reading


def decode_model(data):
    """Decode a model file.

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
        If the file is not a CRFsuite model, or is truncated or inconsistent.
    """
    _check(len(data) >= _HEADER.size, f"its {len(data)} bytes are too short for the header")
    magic, size, kind, version, _, n_labels, n_attributes, *places = _HEADER.unpack_from(data)
    _check(magic == _MAGIC, f"it starts with {magic!r} instead of {_MAGIC!r}")
    _check(size == len(data), f"its size is {len(data)} bytes, but the header says {size}")
    _check(kind == _KIND, f"the model type {kind!r} is not supported")
    _check(version == _VERSION, f"the format version {version} is not supported")
    weights = _read_weights(data, places[0])
    labels = _decode_names(data, places[1], n_labels, "label")
    attributes = _decode_names(data, places[2], n_attributes, "attribute")
    # These chunks list the weights of each label and attribute, as the weights themselves say.
    for place, name in zip(places[3:], (b"LFRF", b"AFRF"), strict=True):
        _read_chunk_head(data, place, name)
    pairs, pair_weights = _select(weights, _TRANSITION, n_labels, n_labels)
    states, state_weights = _select(weights, _STATE, n_attributes, n_labels)
    _check(len(pairs) + len(states) == len(weights), "the kind of a weight is unknown")
    return CRFsuiteModel(
        _as_text(labels, "label", "strict"),
        # CRFsuite's attributes are bytes. Invalid UTF-8 survives decoding and encoding.
        _as_text(attributes, "attribute", "surrogateescape"),
        states,
        state_weights,
        pairs,
        pair_weights,
    )


def _read_weights(data, place):
    size, n = _read_chunk_head(data, place, b"FEAT")
    _check(
        size == _CHUNK.size + _WEIGHT.itemsize * n,
        f"{n} weights do not fit the chunk of {size} bytes",
    )
    weights = np.frombuffer(data, _WEIGHT, n, place + _CHUNK.size)
    _check(np.isfinite(weights["value"]).all(), "a weight is infinite or NaN")
    return weights


def _read_chunk_head(data, place, name):
    _check(place + _CHUNK.size <= len(data), f"the chunk {name!r} starts after the end")
    found, size, n = _CHUNK.unpack_from(data, place)
    _check(found == name, f"expected the chunk {name!r}, found {found!r}")
    _check(_CHUNK.size <= size <= len(data) - place, f"the chunk {name!r} is truncated")
    return size, n


def _select(weights, kind, n_sources, n_labels):
    """Pairs that the weights of one kind belong to, and their values."""
    chosen = weights[weights["kind"] == kind]
    exist = np.all(chosen["source"] < n_sources) and np.all(chosen["target"] < n_labels)
    _check(exist, "a weight belongs to an attribute or label that does not exist")
    joined = np.stack([chosen["source"], chosen["target"]], axis=1).astype(np.int64)
    return joined, chosen["value"].astype(np.float64)


def _as_text(names, what, errors):
    with suppress(UnicodeDecodeError):
        return [name.decode("utf-8", errors) for name in names]
    _check(False, f"one of the {what} names is not valid UTF-8")


def describe_header(data):
    """Header of a model as CRFsuite prints it, a dict of str."""
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


def _check(valid, complaint):
    """Raise a ValueError unless a condition is met."""
    if not valid:
        raise ValueError(f"Not a valid CRFsuite model: {complaint}.")


def _decode_names(data, place, n, what):
    _check(place + _FIRST_RECORD <= len(data), f"the table of {what}s starts after the end")
    name, size, _, order, _, backward = _TABLE_HEADER.unpack_from(data, place)
    _check(name == _TABLE_MAGIC, f"expected the table of {what}s, found {name!r}")
    _check(order == _BYTE_ORDER, f"the table of {what}s has another byte order")
    _check(_FIRST_RECORD <= size <= len(data) - place, f"the table of {what}s is truncated")
    if n == 0:
        return []
    fits = _FIRST_RECORD <= backward <= size and n <= (size - backward) // 4
    _check(fits, f"the table of {what}s is too small for {n} names")
    chunk = data[place : place + size]
    starts = np.frombuffer(chunk, _UINT32, n, backward).astype(np.int64)
    fits = starts.min() >= _FIRST_RECORD and starts.max() <= size - _RECORD.size
    _check(fits, f"one of the {what} names lies outside its table")
    heads = np.frombuffer(chunk, np.uint8)[starts[:, None] + np.arange(_RECORD.size)]
    numbers, lengths = heads.view(_UINT32).T
    _check(np.array_equal(numbers, np.arange(n)), f"the numbers of the {what}s are out of order")
    _check(lengths.sum() <= size, f"one of the {what} names is truncated, or they overlap")
    firsts = starts + _RECORD.size
    places = list(zip(firsts.tolist(), (firsts + lengths - 1).tolist(), strict=True))
    well_formed = all(chunk.find(b"\0", a, b + 1) == b for a, b in places)
    _check(well_formed, f"one of the {what} names has the wrong length")
    names = [chunk[a:b] for a, b in places]
    _check(len(set(names)) == n, f"two {what}s have the same name")
    return names


# ------------------------------------------------------------------------------------------ writing


def encode_model(model):
    """Encode a model file.

    Parameters
    ----------
    model : CRFsuiteModel
        Model with the weights sorted by attribute and by previous label.

    Returns
    -------
    data : bytes

    Raises
    ------
    ValueError
        If a name contains a NUL character, or the file would exceed 4 GiB.
    """
    n_labels, n_attributes, n_states = len(model.labels), len(model.attributes), len(model.states)
    weights = np.empty(n_states + len(model.pairs), _WEIGHT)
    _fill(weights[:n_states], _STATE, model.states, model.state_weights)
    _fill(weights[n_states:], _TRANSITION, model.pairs, model.pair_weights)
    data, places = bytearray(_HEADER.size), [_HEADER.size]
    data += _CHUNK.pack(b"FEAT", _CHUNK.size + weights.nbytes, len(weights)) + weights.tobytes()
    for names, what in ((model.labels, "label"), (model.attributes, "attribute")):
        places.append(len(data))
        data += _encode_names(names, what)
    of_label = np.bincount(model.pairs[:, 0], minlength=n_labels)
    of_attribute = np.bincount(model.states[:, 0], minlength=n_attributes)
    for name, lengths, first, n_spare in (
        (b"LFRF", of_label, n_states, 2),
        (b"AFRF", of_attribute, 0, 0),
    ):
        data += b"\0" * (-len(data) % 4)
        places.append(len(data))
        data += _encode_references(name, lengths, first, n_spare, len(data))
    if len(data) >= 1 << 32:
        raise ValueError(
            f"The model needs {len(data)} bytes, but CRFsuite's format is limited to 4 GiB. Use "
            "fewer features, or an L1 penalty."
        )
    counts = n_labels, n_attributes
    _HEADER.pack_into(data, 0, _MAGIC, len(data), _KIND, _VERSION, 0, *counts, *places)
    return bytes(data)


def _fill(weights, kind, joined, values):
    weights["kind"] = kind
    weights["source"], weights["target"] = joined.T
    weights["value"] = values


def _encode_references(name, lengths, first, n_spare, place):
    """Chunk that lists consecutive weights, from number `first` on, for each label or attribute.

    It begins at `place` in the file, and has room for `n_spare` more lists, which are not there.
    """
    n = len(lengths)
    before = np.cumsum(lengths) - lengths
    # Each list is its length and then its numbers.
    lists = np.insert(first + np.arange(lengths.sum()), before, lengths)
    head = _CHUNK.size + 4 * (n + n_spare)
    starts = place + head + 4 * (before + np.arange(n))
    return (
        _CHUNK.pack(name, (head + 4 * len(lists)) & 0xFFFFFFFF, n + n_spare)
        + np.append(starts, [0] * n_spare).astype(_UINT32).tobytes()
        + lists.astype(_UINT32).tobytes()
    )


def _encode_names(names, what):
    """Table of names, for look-up by name and by number."""
    names = [_as_bytes(name, what) + b"\0" for name in names]
    records = [_RECORD.pack(number, len(name)) + name for number, name in enumerate(names)]
    places = list(accumulate(map(len, records), initial=_FIRST_RECORD))
    place = places.pop()
    entries = [[] for _ in range(_N_TABLES)]
    for h, start in zip(hash_names(names).tolist(), places, strict=True):
        entries[h % _N_TABLES].append((h, start))
    tables, heads = [], []
    for of_table in entries:
        table = _hash_table(of_table)
        heads += [place if of_table else 0, len(table)]
        tables.append(table.tobytes())
        place += table.nbytes
    head = _TABLE_HEADER.pack(
        _TABLE_MAGIC, (place + 4 * len(names)) & 0xFFFFFFFF, 0, _BYTE_ORDER, len(names),
        place & 0xFFFFFFFF if names else 0,
    )  # fmt: skip
    heads, places = (np.array(x, np.int64).astype(_UINT32).tobytes() for x in (heads, places))
    return b"".join([head, heads, *records, *tables, places])


def _as_bytes(name, what):
    try:
        encoded = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"The {what} {name!r} cannot be encoded as UTF-8.") from None
    if b"\0" in encoded:
        raise ValueError(f"The {what} {name!r} contains a NUL character, which ends a name.")
    return encoded


def _hash_table(entries):
    """Hash table with open addressing and twice as many slots: hash and offset, or zeros."""
    table = [(0, 0)] * (2 * len(entries))
    for h, place in entries:
        k = (h >> 8) % len(table)
        while table[k][1]:
            k = (k + 1) % len(table)
        table[k] = h, place
    return np.array(table, np.int64).astype(_UINT32)


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
    lengths = np.fromiter(map(len, names), np.uint32, len(names))
    n_blocks = (lengths + 11) // 12
    for n in np.unique(n_blocks).tolist():
        chosen = np.flatnonzero(n_blocks == n)
        # Padded with zeros.
        padded = np.array([names[i] for i in chosen.tolist()], f"S{12 * n}")
        words = padded.view(_UINT32).astype(np.uint32).reshape(-1, n, 3)
        hashes[chosen] = _hash_blocks(words, lengths[chosen])
    return hashes


def _hash_blocks(words, lengths):
    """Hash of names with equal numbers of blocks of three words."""
    a = np.uint32(0xDEADBEEF) + lengths
    state = [a, a.copy(), a.copy()]
    for block in range(words.shape[1]):
        for part, word in zip(state, words[:, block].T, strict=True):
            part += word
        if block + 1 < words.shape[1]:
            _mix(state)
    return _final_hash(*state)


def _mix(state):
    """Mix the three words of the state in place."""
    for step, bits in enumerate((4, 6, 8, 16, 19, 4)):
        x, y, z = (state[(step + k) % 3] for k in (0, 1, 2))
        x -= z
        x ^= _rotate(z, bits)
        z += y


def _final_hash(a, b, c):
    turns = ((c, b, 14), (a, c, 11), (b, a, 25), (c, b, 16), (a, c, 4), (b, a, 14), (c, b, 24))
    for x, y, bits in turns:
        x ^= y
        x -= _rotate(y, bits)
    return c


def _rotate(x, bits):
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))
