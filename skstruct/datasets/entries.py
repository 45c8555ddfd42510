"""Entries of JSON files: found in all layouts that tools write, and told from what is no gold.

An entry is an object with a text and spans. Tools mark entries that were turned down, skipped or
not yet approved; these are never taken for gold without a word.
"""

import warnings
from collections import defaultdict
from itertools import chain

from skstruct.datasets.conll import open_line_blocks
from skstruct.datasets.tool_spans import parse_json
from skstruct.utils.messages import short_repr

# Keys with a verdict in words, and the words of an entry that is not to be read.
_VERDICTS = (
    *("answer", "status", "state", "review_status", "annotation_status", "evaluation"),
    *("decision", "verdict"),
)
_REFUSED = (
    *("reject", "rejected", "ignore", "ignored", "skip", "skipped", "cancelled", "canceled"),
    *("deleted", "discarded", "declined", "incorrect", "invalid", "refused"),
)
_OPEN = (
    *("pending", "draft", "open", "new", "todo", "unreviewed", "unapproved", "unlabeled"),
    *("unlabelled", "unannotated", "not done", "in progress", "in review", "to review"),
)
# Keys that are true for an entry that is not to be read, and that are false for an open one.
_OUT = (
    *("cancelled", "canceled", "skipped", "rejected", "ignored", "deleted", "discarded"),
    *("was_cancelled", "was_canceled", "was_skipped", "is_cancelled", "is_skipped", "is_rejected"),
    *("is_ignored", "is_deleted", "skip", "ignore"),
)
_DONE = (
    *("annotation_approver", "approved", "confirmed", "reviewed", "verified", "validated", "done"),
    *("completed", "is_approved", "is_confirmed", "is_reviewed", "is_verified", "is_validated"),
    *("is_done", "is_completed", "approved_by", "is_labeled", "is_annotated", "accepted"),
)
# Keys of who has annotated an entry, or a span.
ANNOTATORS = (
    *("_annotator_id", "_session_id", "annotator", "annotated_by", "completed_by", "user"),
    *("username", "worker_id", "annotator_id", "user_id"),
)
DIFFERING = "have several annotations that differ; the first of each is read"


def is_refused(entry):
    """Key of an object, with its value, that says that it is not to be read; None without any."""
    for key in _VERDICTS:
        if _word(entry.get(key)) in _REFUSED:
            return key, entry[key]
    return next(((key, entry[key]) for key in _OUT if _is_true(entry.get(key))), None)


def is_open(entry):
    """Key of an object, with its value, that says that it is not approved; None without any."""
    for key in _VERDICTS:
        if _word(entry.get(key)) in _OPEN:
            return key, entry[key]
    unsure = (key for key in _DONE if key in entry and not _is_true(entry[key]))
    return next(((key, entry[key]) for key in unsure), None)


def is_approved(entry):
    """Return True if a key of an object says that somebody has approved it."""
    return any(key in entry and _is_true(entry[key]) for key in _DONE)


def _word(value):
    return value.lower().replace("_", " ").strip() if isinstance(value, str) else None


def _is_true(value):
    return bool(value) and _word(value) not in ("false", "no", "none", "null", "0")


class Notes:
    """What is to be said about entries of a file, a warning for each kind."""

    def __init__(self, path, unit):
        self._path, self._unit = path, unit
        self._places = defaultdict(list)
        self._by_text = {}

    def add(self, what, place):
        """Note that something is true of an entry."""
        self._places[what].append(place)

    def refuse(self, entry, place):
        """Return True for an entry that is not to be read, which is noted; note an open one."""
        refused, unsure = is_refused(entry), is_open(entry)
        if refused:
            key, value = refused
            self.add(f"have {key!r}: {value!r} and were left out", place)
        elif unsure:
            key, value = unsure
            self.add(f"have {key!r}: {value!r}, so may not be approved; they are read", place)
        return refused is not None

    def compare(self, entry, text, spans, place):
        """Note an entry whose text another annotator has given other spans."""
        who = next((key for key in ANNOTATORS if entry.get(key) is not None), None)
        if who is not None:
            who, spans = str(entry[who]), sorted(span[:2] for span in spans)
            first, before = self._by_text.setdefault(text, (who, spans))
            if who != first and spans != before:
                self.add("repeat a text that another annotator has given other spans", place)

    def warn(self, stacklevel):
        """Warn of all kinds; the first places of each are named."""
        for what, places in self._places.items():
            word = places[0].rpartition(" ")[0]
            shown = ", ".join(place.rpartition(" ")[2] for place in places[:5])
            shown += ", ..." if len(places) > 5 else ""
            warnings.warn(
                f"{self._path}: {len(places)} {self._unit} {what} ({word} {shown}).",
                stacklevel=stacklevel + 1,
            )


def entries_of(path):
    """Yield places and entries of a file: JSON lines, one list, or one object of pairs."""
    with open_line_blocks(path, None) as (name, blocks):
        lines = enumerate(chain.from_iterable(blocks), 1)
        number, line = next((pair for pair in lines if pair[1].strip()), (0, "[]"))
        where = f"{name}, line {number}"
        try:
            found = parse_json(line, where)
        except ValueError:
            rest = [after for _, after in lines]
            # A line that is no JSON is part of an object or a list, unless it looks whole.
            if not any(map(str.strip, rest)) or line.rstrip().endswith(("}", "}]")):
                raise
            found, where = parse_json("\n".join([line, *rest]), name), name
        inner = _inner_entries(found)
        if inner is None:
            yield where, found
            for number, line in lines:
                if line.strip():
                    where = f"{name}, line {number}"
                    yield where, parse_json(line, where)
            return
        number, line = next((pair for pair in lines if pair[1].strip()), (0, ""))
        if line:
            raise ValueError(f"{name}, line {number}: this follows a list of all entries.")
        yield from ((f"{name}, entry {place}", entry) for place, entry in enumerate(inner))


def _inner_entries(found):
    """Entries in a list, or in the object that NER Annotator writes; None for a single entry."""
    if isinstance(found, list) and not _is_pair(found):
        return found
    inner = found.get("annotations") if isinstance(found, dict) else None
    return inner if isinstance(inner, list) and any(map(_is_pair, inner)) else None


def _is_pair(entry):
    """Return True for a text and its annotations, as spaCy's examples are."""
    kinds = tuple(map(type, entry)) if isinstance(entry, list) else ()
    return kinds == (str, dict)


def as_object(entry, text_key, where):
    """Entry as an object with a text and spans, if it is of spaCy or Dataturks; else as it is.

    Parameters
    ----------
    entry : object
    text_key : str
        Key that the text gets.
    where : str
        Place of the entry, for messages.
    """
    if _is_pair(entry):
        text, found = entry
        return {**found, text_key: text}
    of_dataturks = isinstance(entry, dict) and isinstance(entry.get("content"), str)
    if not of_dataturks or not isinstance(entry.get("annotation", 0), (list, type(None))):
        return entry
    spans = []
    for item in entry["annotation"] or ():
        try:
            kinds, points = item["label"], item["points"]
            kinds = [kinds] if isinstance(kinds, str) else kinds
            spans += [
                # The end is the last character.
                {"start": point["start"], "end": point["end"] + 1, "label": kind, **_words(point)}
                for kind in kinds
                for point in points
            ]
        except (KeyError, TypeError):
            raise ValueError(
                f"{where}: {short_repr(item)} has no 'label' and 'points' with start and end."
            ) from None
    others = {key: value for key, value in entry.items() if key not in ("content", "annotation")}
    metadata = entry.get("metadata")
    others.update(metadata if isinstance(metadata, dict) else {})
    return {**others, text_key: entry["content"], "spans": spans}


def _words(point):
    return {"text": point["text"]} if "text" in point else {}
