"""Spans as annotation tools store them: found in JSON, and placed in their texts.

Offsets are checked against the words that are stored beside them, and counted anew where a tool
counts something else than characters.
"""

import json
from itertools import accumulate, pairwise, product
from typing import NamedTuple

from skstruct.utils.messages import short_repr

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
    """Text of a task or a line; an error lists the keys that there are."""
    if not isinstance(entry, dict):
        raise ValueError(
            f"{where} has no text: expected an object with a text and spans, or a pair "
            f'of a text and {{"entities": [[start, end, type]]}}, but it is {short_repr(entry)}.'
        )
    text = entry.get(text_key)
    if not isinstance(text, str):
        keys = f"; its keys are {_listed(entry)}" if entry else ""
        remedy = "Pass text_key."
        if not any(isinstance(value, str) for value in entry.values()):
            remedy = "No key has a text: this is no export that can be read."
        raise ValueError(f"{where} has no text under the key {text_key!r}{keys}. {remedy}")
    return text


def unknown_keys(entry, keys, known, where):
    """Error for an entry that may have spans under unknown keys."""
    return ValueError(
        f"{where} has no spans under a key that is known ({', '.join(map(repr, known))}), but may "
        f"have some under the keys {_listed(keys)}. Rename the key, or remove it if it has none; "
        f"all keys are {_listed(entry)}."
    )


def _listed(keys):
    return ", ".join(map(short_repr, keys))


def holds_spans(value, depth=8):
    """True if a value looks like spans: it has a number named as an offset, or two and a type."""
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


# How a tool counts a line end: as the text has it; "\r\n" as one; a single "\n" as two.
_LINE_ENDS = ("as it is", "one", "two")


class FoundSpan(NamedTuple):
    """A span as a tool has stored it."""

    parts: tuple  # of (start, end): more than one where a line end or anything else lies between
    kind: str
    stored: str | None  # its text, if the tool stores it
    where: str  # for messages
    by: str | None = None  # who has annotated it, if the tool says so for each span

    def whole(self):
        """Start, end and type, from the first part to the last."""
        return self.parts[0][0], self.parts[-1][1], self.kind


def place_spans(text, spans, *, marked=False, may_gap=False):
    """Spans with the offsets of characters of a text.

    Parameters
    ----------
    text : str
    spans : list of FoundSpan
    marked : bool, default=False
        Before the text there was a byte order mark, which a tool may have counted.
    may_gap : bool, default=False
        More than blanks may lie between the parts of a span.

    Returns
    -------
    spans : list of FoundSpan
        Where the offsets fit only if they are counted in another way, these are converted.

    Raises
    ------
    ValueError
        If no way of counting fits, or several do with different results; the message names the
        span.
    """
    if _fit(text, spans, may_gap):
        return spans
    found = set()
    if any(span.stored for span in spans):
        for wide, ends, shift in product((False, True), _LINE_ENDS, range(marked + 1)):
            recounted = _recounted(spans, _places(text, wide, ends, shift))
            if recounted is not None and _fit(text, recounted, may_gap):
                found.add(tuple(recounted))
    if len(found) == 1:
        return list(found.pop())
    bad = next(span for span in spans if not _fit(text, [span], may_gap))
    raise _misplaced(bad, text, ambiguous=bool(found))


def fit_text(text, spans):
    """Return True if spans can be placed in a text."""
    try:
        place_spans(text, spans)
    except ValueError:
        return False
    return True


def _places(text, wide, ends, shift):
    """Position of the character that begins at each of a tool's offsets."""
    widths = [1 + (wide and character > "\uffff") for character in text]
    for i, character in enumerate(text):
        after_return = i > 0 and text[i - 1] == "\r"
        if ends == "one" and after_return and character == "\n":
            widths[i - 1] = 0
        elif ends == "two" and character == "\n" and not after_return:
            widths[i] = 2
    places = {}
    for place, offset in enumerate(accumulate(widths, initial=shift)):
        # A line end that counts as one begins with its first character.
        places.setdefault(offset, place)
    return places


def _recounted(spans, places):
    """Convert a tool's offsets to offsets of characters; None if one lies within a character."""
    if not all(offset in places for span in spans for part in span.parts for offset in part):
        return None
    return [
        span._replace(parts=tuple((places[start], places[end]) for start, end in span.parts))
        for span in spans
    ]


def _fit(text, spans, may_gap):
    """True if spans lie in a text, without gaps, and match the words that are stored."""
    return all(
        _lies_in(text, span)
        and (may_gap or not has_gaps(text, span))
        and (not span.stored or _words(_covered(text, span)) == _words(span.stored))
        for span in spans
    )


def has_gaps(text, span):
    """True if more than blanks lies between the parts of a span."""
    return any(text[before[1] : after[0]].strip() for before, after in pairwise(span.parts))


def _covered(text, span):
    return " ".join(text[start:end] for start, end in span.parts)


def _lies_in(text, span):
    offsets = [offset for part in span.parts for offset in part]
    ascending = offsets == sorted(offsets) and all(start < end for start, end in span.parts)
    return ascending and offsets[0] >= 0 and offsets[-1] <= len(text)


def _words(text):
    """Text without blanks and line ends, which tools store in different ways."""
    return "".join(text.replace("\\n", " ").split())


def _misplaced(span, text, ambiguous):
    start, end, kind = span.whole()
    if not _lies_in(text, span):
        return ValueError(
            f"{span.where}: the span {(start, end, kind)} is empty or outside of the text, which "
            f"has {len(text)} characters."
        )
    if len(span.parts) > 1:
        parts = ";".join(f"{a} {b}" for a, b in span.parts)
        return ValueError(
            f"{span.where}: a span has several parts, {parts}; a chunk has one. Pass "
            "parts='skip' to leave such spans out, parts='split' for each part, or parts='longest'."
        )
    more = " Several other ways of counting would fit." if ambiguous else ""
    return ValueError(
        f"{span.where}: the span {(start, end, kind)} is {short_repr(text[start:end])} in the "
        f"text, but {short_repr(span.stored)} stands beside it. The text was changed after it was "
        f"annotated, or offsets are counted in an unknown way.{more}"
    )
