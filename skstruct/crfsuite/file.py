"""CRFsuite's binary model format: decoding and encoding.

A file is a header and five chunks: the weights, with the numbers of the attribute or label and of
the label that they belong to; the names of the labels and of the attributes, each a hash table on
disk ("constant quark database"); and for each label and each attribute the numbers of its weights.
All integers are little-endian.

Every size and offset in a file is checked against the size of the file before it is used, so that a
damaged or hostile file costs no more than reading it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from skstruct.crfsuite.names import (
    UINT32,
    DamagedError,
    check,
    decode_names,
    encode_names,
    read_integers,
)

__all__ = ["CRFsuiteModel", "decode_model", "describe_header", "encode_model"]

_HEADER = struct.Struct("<4sI4s9I")
_CHUNK = struct.Struct("<4sII")
_MAGIC, _KIND, _VERSION = b"lCRF", b"FOMC", 100
_STATE, _TRANSITION = 0, 1
_WEIGHT = np.dtype([("kind", "<u4"), ("source", "<u4"), ("target", "<u4"), ("value", "<f8")])


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
    try:
        return _decode(data)
    except DamagedError as error:
        raise ValueError(f"Not a valid CRFsuite model: {error}.") from None


def _decode(data):
    check(len(data) >= _HEADER.size, f"its {len(data)} bytes are too short for the header")
    magic, size, kind, version, _, n_labels, n_attributes, *places = _HEADER.unpack_from(data)
    check(magic == _MAGIC, f"it starts with {magic!r} instead of {_MAGIC!r}")
    check(size == len(data), f"its size is {len(data)} bytes, but the header says {size}")
    check(kind == _KIND, f"the model type {kind!r} is not supported")
    check(version == _VERSION, f"the format version {version} is not supported")
    weights = _read_weights(data, places[0])
    labels = decode_names(data, places[1], n_labels, "label")
    attributes = decode_names(data, places[2], n_attributes, "attribute")
    of_label = _read_references(data, places[3], b"LFRF", n_labels, len(weights))
    of_attribute = _read_references(data, places[4], b"AFRF", n_attributes, len(weights))
    pairs, pair_weights = _take(weights, of_label, _TRANSITION, n_labels)
    states, state_weights = _take(weights, of_attribute, _STATE, n_labels)
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
    check(
        size == _CHUNK.size + _WEIGHT.itemsize * n,
        f"{n} weights do not fit the chunk of {size} bytes",
    )
    weights = np.frombuffer(data, _WEIGHT, n, place + _CHUNK.size)
    check(np.isfinite(weights["value"]).all(), "a weight is infinite or NaN")
    return weights


def _read_chunk_head(data, place, name):
    check(place + _CHUNK.size <= len(data), f"the chunk {name!r} starts after the end")
    found, size, n = _CHUNK.unpack_from(data, place)
    check(found == name, f"expected the chunk {name!r}, found {found!r}")
    check(_CHUNK.size <= size <= len(data) - place, f"the chunk {name!r} is truncated")
    return size, n


def _read_references(data, place, name, n, n_weights):
    """Numbers of the weights of each label or attribute, as the bounds of the lists and numbers."""
    size, n_listed = _read_chunk_head(data, place, name)
    # CRFsuite's writer adds two unused entries to the labels.
    fits = n <= n_listed <= (size - _CHUNK.size) // 4
    check(fits, f"the chunk {name!r} is too small for {n} lists")
    starts = np.frombuffer(data, UINT32, n, place + _CHUNK.size).astype(np.int64)
    check(
        n == 0 or starts.max() <= len(data) - 4,
        f"a list of the chunk {name!r} lies outside the file",
    )
    lengths = read_integers(data, starts)
    fits = n == 0 or (starts + 4 + 4 * lengths).max() <= len(data)
    check(fits, f"a list of the chunk {name!r} is truncated")
    edges = np.concatenate([[0], np.cumsum(lengths)])
    check(edges[-1] <= n_weights, f"the chunk {name!r} lists more than {n_weights} weights")
    within = np.arange(edges[-1]) - np.repeat(edges[:-1], lengths)
    numbers = read_integers(data, np.repeat(starts + 4, lengths) + 4 * within)
    check(
        edges[-1] == 0 or numbers.max() < n_weights,
        f"the chunk {name!r} lists a weight out of range",
    )
    return edges, numbers


def _take(weights, references, kind, n_labels):
    """Pairs that the weights of one kind belong to, and their values."""
    edges, numbers = references
    chosen = weights[numbers]
    owners = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    consistent = (
        np.all(chosen["kind"] == kind)
        and np.array_equal(chosen["source"], owners)
        and np.all(chosen["target"] < n_labels)
        and (len(numbers) == 0 or np.bincount(numbers).max() == 1)
    )
    check(consistent, "the lists of weights do not match the weights")
    joined = np.stack([owners, chosen["target"].astype(np.int64)], axis=1)
    return joined, chosen["value"].astype(np.float64)


def _as_text(names, what, errors):
    try:
        return [name.decode("utf-8", errors) for name in names]
    except UnicodeDecodeError:
        raise DamagedError(f"one of the {what} names is not valid UTF-8") from None


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
    parts = _Parts(_HEADER.size)
    places = [
        parts.add(_CHUNK.pack(b"FEAT", _CHUNK.size + weights.nbytes, len(weights))),
    ]
    parts.add(weights.tobytes())
    places.append(parts.add(encode_names(model.labels, "label")))
    places.append(parts.add(encode_names(model.attributes, "attribute")))
    of_label = np.bincount(model.pairs[:, 0], minlength=n_labels)
    places.append(parts.add_references(b"LFRF", of_label, n_states, n_spare=2))
    of_attribute = np.bincount(model.states[:, 0], minlength=n_attributes)
    places.append(parts.add_references(b"AFRF", of_attribute, 0))
    if parts.size >= 1 << 32:
        raise ValueError(
            f"The model needs {parts.size} bytes, but CRFsuite's format is limited to 4 GiB. Use "
            "fewer features, or an L1 penalty."
        )
    header = _HEADER.pack(_MAGIC, parts.size, _KIND, _VERSION, 0, n_labels, n_attributes, *places)
    return header + b"".join(parts.parts)


class _Parts:
    """Chunks of a file, and its size so far."""

    def __init__(self, size):
        self.parts = []
        self.size = size

    def add(self, data):
        """Append `data`; return its offset."""
        place = self.size
        self.parts.append(data)
        self.size += len(data)
        return place

    def add_references(self, name, lengths, first, n_spare=0):
        """Append lists of consecutive weights, starting at number `first`; return the offset."""
        self.add(b"\0" * (-self.size % 4))
        n = len(lengths)
        head = _CHUNK.size + 4 * (n + n_spare)
        # Each list is its length and then its numbers.
        edges = np.concatenate([[0], np.cumsum(lengths + 1)])
        lists = np.empty(edges[-1], UINT32)
        is_number = np.ones(len(lists), bool)
        is_number[edges[:-1]] = False
        lists[edges[:-1]] = lengths
        lists[is_number] = first + np.arange(edges[-1] - n)
        starts = np.zeros(n + n_spare, np.int64)
        starts[:n] = self.size + head + 4 * edges[:-1]
        size = head + lists.nbytes
        return self.add(
            _CHUNK.pack(name, size & 0xFFFFFFFF, n + n_spare)
            + (starts & 0xFFFFFFFF).astype(UINT32).tobytes()
            + lists.tobytes()
        )


def _fill(weights, kind, joined, values):
    weights["kind"] = kind
    weights["source"], weights["target"] = joined.T
    weights["value"] = values
