"""Offsets of annotation tools, compared with the text that stands beside them.

Tools count code points or the code units of UTF-16, and a line end of two characters as one or as
two. Which of these it was shows in the words that a tool stores beside the offsets.
"""

from __future__ import annotations

from itertools import accumulate, pairwise, product
from typing import NamedTuple

from skstruct.utils.messages import short_repr

__all__ = ["FoundSpan", "place_spans", "placed_or_none"]

# How a tool counts a line end: as the text has it; "\r\n" as one; a single "\n" as two.
_LINE_ENDS = ("as it is", "one", "two")


class FoundSpan(NamedTuple):
    """A span as a tool has stored it."""

    parts: tuple  # of (start, end): more than one where a line end or anything else lies between
    kind: str
    stored: str | None  # what the tool has as its text
    where: str  # for messages

    @property
    def plain(self):
        """The span with the offsets as they stand."""
        return self.parts[0][0], self.parts[-1][1], self.kind


def place_spans(text, spans, *, marked=False):
    """Spans of the characters of a text.

    Parameters
    ----------
    text : str
    spans : list of FoundSpan
    marked : bool, default=False
        Before the text there was a byte order mark, which a tool may have counted.

    Returns
    -------
    spans : list of tuple (start, end, type)
        If the offsets do not fit, but fit for all spans when they are counted in another way, as
        they are then.

    Raises
    ------
    ValueError
        If no way of counting fits, or several do with different results; the message names the
        span.
    """
    if _fit(text, spans):
        return [span.plain for span in spans]
    found = set()
    if any(span.stored for span in spans):
        for wide, ends, shift in product((False, True), _LINE_ENDS, range(marked + 1)):
            recounted = _recounted(spans, _places(text, wide, ends, shift))
            if recounted is not None and _fit(text, recounted):
                found.add(tuple(span.plain for span in recounted))
    if len(found) == 1:
        return list(found.pop())
    bad = next(span for span in spans if not _fit(text, [span]))
    raise _misplaced(bad, text, ambiguous=bool(found))


def placed_or_none(text, spans):
    """Spans of the characters of a text, or None if they do not fit it."""
    try:
        return place_spans(text, spans)
    except ValueError:
        return None


def _places(text, wide, ends, shift):
    """Characters before which a tool's offsets lie."""
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
    """Spans with characters in place of a tool's offsets; None if one lies between characters."""
    if not all(offset in places for span in spans for part in span.parts for offset in part):
        return None
    return [
        span._replace(parts=tuple((places[start], places[end]) for start, end in span.parts))
        for span in spans
    ]


def _fit(text, spans):
    """True if spans lie in a text, only blanks between their parts, and have what is stored."""
    return all(
        _lies_in(text, span)
        and not any(text[before[1] : after[0]].strip() for before, after in pairwise(span.parts))
        and (not span.stored or _words(text[slice(*span.plain[:2])]) == _words(span.stored))
        for span in spans
    )


def _lies_in(text, span):
    offsets = [offset for part in span.parts for offset in part]
    ascending = offsets == sorted(offsets) and all(start < end for start, end in span.parts)
    return ascending and offsets[0] >= 0 and offsets[-1] <= len(text)


def _words(text):
    """Text without blanks and line ends, which tools store in different ways."""
    return "".join(text.replace("\\n", " ").split())


def _misplaced(span, text, ambiguous):
    start, end, kind = span.plain
    if not _lies_in(text, span):
        return ValueError(
            f"{span.where}: the span {(start, end, kind)} is empty or outside of the text, which "
            f"has {len(text)} characters."
        )
    if len(span.parts) > 1:
        parts = ";".join(f"{a} {b}" for a, b in span.parts)
        return ValueError(f"{span.where}: a span has several parts, {parts}; a chunk has one.")
    more = " Several other ways of counting would fit." if ambiguous else ""
    return ValueError(
        f"{span.where}: the span {(start, end, kind)} is {short_repr(text[start:end])} in the "
        f"text, but {short_repr(span.stored)} stands beside it. The text was changed after it was "
        f"annotated, or offsets are counted in an unknown way.{more}"
    )
