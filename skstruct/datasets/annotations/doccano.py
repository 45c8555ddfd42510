"""Exports of doccano: JSON, one object for each text, on lines of their own or in a list."""

import json
from itertools import chain

from skstruct.datasets.annotations.exports import (
    FoundSpan,
    holds_spans,
    parse_json,
    place_spans,
    text_of,
    unknown_keys,
)
from skstruct.datasets.conll import open_line_blocks
from skstruct.datasets.spans import as_whole
from skstruct.utils.files import write_whole
from skstruct.utils.messages import short_repr

# Keys of the spans in the versions of doccano: "entities" beside "relations", "annotations" with
# the numbers of types.
_KEYS = ("label", "labels", "entities", "annotations", "spans")


def read_doccano(path, text_key, several):
    """Iterate over the texts of a file.

    Parameters
    ----------
    path : Path
    text_key : str
    several : SeveralParts
        Not used: spans have one part.

    Yields
    ------
    text : str
    spans : list of tuple (start, end, type)
    """
    for where, entry in _entries(path):
        text = text_of(entry, text_key, where)
        given = {key: value for key, value in entry.items() if value and key != text_key}
        found = [_spans(given[key], key, where) for key in _KEYS if key in given]
        others = [key for key, value in given.items() if key not in _KEYS and holds_spans(value)]
        if not found and others and not any(key in entry for key in _KEYS):
            raise unknown_keys(entry, others, _KEYS, where)
        if any(spans != found[0] for spans in found):
            keys = ", ".join(repr(key) for key in _KEYS if key in given)
            raise ValueError(f"{where} has different spans under the keys {keys}; keep one.")
        yield text, place_spans(text, found[0] if found else [])


def _entries(path):
    with open_line_blocks(path, None) as (name, blocks):
        lines = chain.from_iterable(blocks)
        started = False
        for number, line in enumerate(lines, 1):
            if not started and line.lstrip().startswith("["):
                content = "\n".join([line, *lines])
                for place, entry in enumerate(parse_json(content, name)):
                    yield f"{name}, entry {place}", entry
                return
            if line.strip():
                started = True
                yield f"{name}, line {number}", parse_json(line, f"{name}, line {number}")


def _spans(value, key, where):
    try:
        if not isinstance(value, list):
            raise TypeError
        return [_as_span(item, where) for item in value]
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{where}: {short_repr(value)} are not spans [start, end, type] or objects with "
            f"start_offset, end_offset and label, but stand under the key {key!r}."
        ) from None


def _as_span(item, where):
    stored = None
    if isinstance(item, dict):
        start = item["start_offset"] if "start_offset" in item else item["start"]
        end = item["end_offset"] if "end_offset" in item else item["end"]
        kind, stored = item["label"], item.get("text")
    else:
        start, end, kind = item
    if isinstance(kind, int) and not isinstance(kind, bool):
        kind = str(kind)
    if not isinstance(kind, str) or not kind:
        raise TypeError
    part = as_whole(start), as_whole(end)
    return FoundSpan((part,), kind, stored if isinstance(stored, str) else None, where)


def write_doccano(path, texts, spans, text_key):
    """Write a line for each text.

    Parameters
    ----------
    path : Path
    texts : list of str
    spans : list of list of tuple (start, end, type)
    text_key : str
    """
    if text_key in _KEYS:
        raise ValueError(f"text_key={text_key!r} is a key of the spans; choose another one.")
    lines = [
        json.dumps({text_key: text, "label": [list(span) for span in found]}, ensure_ascii=False)
        for text, found in zip(texts, spans, strict=True)
    ]
    write_whole(path, "".join(f"{line}\n" for line in lines).encode("utf-8"))
