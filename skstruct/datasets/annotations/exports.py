"""JSON of annotation tools: read, and checked for what is expected."""

from __future__ import annotations

import json

from skstruct.utils.messages import short_repr

__all__ = ["holds_spans", "parse_json", "text_of", "unknown_keys"]

# Parts of the names that tools give to the offsets of a span.
_PLACES = ("start", "begin", "offset")


def parse_json(content, where):
    """Parse JSON; an error says where it is wrong."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError(f"{where} is nested too deeply.") from None
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from None


def text_of(entry, text_key, where):
    """Text of a task or a line; an error names the keys that it has in place of it."""
    text = entry.get(text_key) if isinstance(entry, dict) else None
    if not isinstance(text, str):
        keys = f"; its keys are {_listed(entry)}" if isinstance(entry, dict) and entry else ""
        raise ValueError(f"{where} has no text under the key {text_key!r}{keys}. Pass text_key.")
    return text


def unknown_keys(entry, keys, known, where):
    """Error for an entry that may have spans under keys that are not known."""
    return ValueError(
        f"{where} has no spans under a key that is known ({', '.join(map(repr, known))}), but may "
        f"have some under the keys {_listed(keys)}. Rename the key, or remove it if it has none; "
        f"all keys are {_listed(entry)}."
    )


def _listed(keys):
    return ", ".join(map(short_repr, keys))


def holds_spans(value, depth=8):
    """True if a value looks like spans: a number with the name of an offset, or two and a type."""
    if depth == 0 or not isinstance(value, (dict, list)):
        return False
    if isinstance(value, dict):
        numbers = [key.lower() for key, x in value.items() if _is_number(x)]
        named = any(part in key for key in numbers for part in _PLACES)
        return named or any(holds_spans(x, depth - 1) for x in value.values())
    is_span = sum(map(_is_number, value)) == 2 and len(value) > 2
    return is_span or any(holds_spans(x, depth - 1) for x in value)


def _is_number(value):
    return isinstance(value, int) and not isinstance(value, bool)
