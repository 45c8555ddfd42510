"""Exports of annotation tools: texts, and spans of their characters.

brat has a text file and a file with a line for each annotation; doccano and others JSON, an object
or a pair for each text; Label Studio JSON with all annotations of a task, or JSON-MIN.
"""

import json
import re
import warnings
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from numbers import Real
from pathlib import Path

from skstruct.datasets.conll import BYTE_ORDER_MARK, encoded
from skstruct.datasets.entries import (
    ANNOTATORS,
    DIFFERING,
    Notes,
    as_object,
    entries_of,
    is_approved,
    is_refused,
)
from skstruct.datasets.spans import as_whole, checked_spans
from skstruct.datasets.tool_spans import (
    FoundSpan,
    fit_text,
    has_gaps,
    holds_spans,
    parse_json,
    place_spans,
    text_of,
    unknown_keys,
)
from skstruct.metrics.chunks import without_overlaps
from skstruct.utils.files import read_text, write_whole
from skstruct.utils.messages import check_choice, short_repr
from skstruct.utils.persistence import set_module


@set_module("skstruct.datasets")
def read_annotations(
    path,
    *,
    format="auto",
    text_key="text",
    parts="raise",
    overlaps="keep",
    suggestions=None,
    unreviewed="skip",
):
    """Read the texts and spans that an annotation tool has exported.

    Parameters
    ----------
    path : str or path-like
        The file; for "brat" a folder with ``.txt`` and ``.ann`` files, or one of these.
    format : {"auto", "brat", "doccano", "label-studio", "prodigy", "spacy", "ner-annotator", \
"dataturks"}, default="auto"
        Format of the tool's export, see Notes; "auto" tells it by the name and the first entry.
    text_key : str, default="text"
        Key of the text in JSON. Of several texts of a task, only the spans of this one are read.
    parts : {"raise", "skip", "split", "longest"}, default="raise"
        What to do with a span of brat that has several parts: raise an error, leave it out, make a
        span of each part, or of the longest.
    overlaps : {"keep", "raise", "skip", "longest"}, default="keep"
        What to do with spans that overlap or are nested, which labels of tokens cannot express:
        keep them as they are, raise an error, leave all of them out, or keep the longest, and of
        equally long ones the first.
    suggestions : str or path-like, default=None
        File of suggestions that `write_annotations` has written beside its file for "doccano" or
        "brat". By default, the one beside `path`, if there is one.
    unreviewed : {"skip", "keep"}, default="skip"
        What to do with texts that nobody has reviewed: leave them out, or return the suggestions,
        where somebody has looked at all of them.

    Returns
    -------
    texts : list of str
        For brat in the order of the names of the files.
    spans : list of list of tuple (start, end, type)
        Characters and type of the chunks of each text, in order. Relations, events, attributes and
        labels of whole texts are left out.

    Raises
    ------
    ValueError
        If a file is not in the format, or stores spans in an unknown way; if a span lies
        outside of its text, is not the text that stands beside it, or has several parts or
        overlaps another where that is an error. The message names the file, and the line or task.
    OSError
        If a file cannot be opened.

    Warns
    -----
    UserWarning
        If something is not read or may not be gold, see Notes; if spans are of other texts where
        `text_key` has none. With `parts` or `overlaps`, the number of spans that were left out or
        changed.

    See Also
    --------
    write_annotations : Write such files, to have predictions corrected.
    spans_to_labels : Labels of tokens for spans.

    Notes
    -----
    "doccano" is JSON, one object in each line or all in a list. The spans stand under "label",
    "labels", "entities" (beside relations), "annotations" or "spans", as lists of start, end and
    type or as objects. Types that are numbers, as older versions have them, become strings.
    "prodigy" (JSON lines), "spacy" (pairs ``[text, {"entities": [[start, end, type]]}]``, in lines
    or in a list), "ner-annotator" and "dataturks" are other names for it: each entry is read as
    what it is.

    "label-studio" is its JSON or JSON-MIN, also with "completions" as before version 1.0, and with
    control tags of any name. Predictions are read only from files without annotations.

    Texts are not reviewed if they have predictions of Label Studio and no annotation, or if their
    spans are still those that were suggested, and nothing says that they are approved. doccano and
    brat cannot tell suggestions from answers, so that a text whose suggestions are all right is
    left out as well, unless it was approved. The warning names the texts.

    Entries that are no gold are left out, with a warning that names the key: the answers "reject"
    and "ignore" of Prodigy, tasks of Label Studio whose annotations were all cancelled, skipped or
    rejected, and whatever has a key such as "rejected", "skipped" or "status" that says so. Entries
    that are not approved (``"annotation_approver": null`` of doccano, ``"confirmed": false``) and
    predictions are read, with a warning. Of several annotations of a task, or several annotators of
    a text, the first that was not cancelled is read, in Label Studio one with "ground_truth" before
    others, with a warning if others differ.

    brat, Label Studio and Dataturks store the words of a span beside its offsets. Where these do
    not agree, the tool may have counted the code units of UTF-16, or line ends of Windows as one
    character, or of Unix as two. If one such way of counting fits all spans of a text, the
    spans are corrected. Blanks and line ends are not compared: brat stores a blank for a line end.
    A span of brat with several parts is read if only blanks and line ends are between them.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from skstruct.datasets import read_annotations
    >>> line = json.dumps({"text": "Maria sings", "label": [[0, 5, "PER"]]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "all.jsonl"
    ...     _ = path.write_text(line, encoding="utf-8")
    ...     read_annotations(path, format="doccano")
    (['Maria sings'], [[(0, 5, 'PER')]])
    """
    check_choice("format", format, (*_READERS, "auto"))
    check_choice("parts", parts, ("raise", "skip", "split", "longest"))
    check_choice("overlaps", overlaps, ("keep", "raise", "skip", "longest"))
    check_choice("unreviewed", unreviewed, ("skip", "keep"))
    texts, spans, n_split, n_left_out = [], [], 0, 0
    path = Path(path)
    format = _format_of(path) if format == "auto" else format
    suggested, open_texts = _read_suggestions(path, format, suggestions), []
    for number, (text, found, marked, reviewed) in enumerate(_READERS[format](path, text_key)):
        placed = place_spans(text, found, marked=marked, may_gap=parts != "raise")
        if reviewed is None and text in suggested:
            # A text that occurs more than once has been reviewed if it has none of its suggestions.
            reviewed = sorted(span.whole() for span in placed) not in suggested[text]
        if reviewed is False:
            open_texts.append(str(number))
            if unreviewed == "skip":
                continue
        n_split += sum(has_gaps(text, span) for span in placed)
        found = [one for span in placed for one in _in_one_part(text, span, parts)]
        found.sort(key=lambda span: span[:2])
        spans.append(_chosen(found, overlaps, f"{path}: text {len(texts)}"))
        n_left_out += len(found) - len(spans[-1])
        texts.append(text)
    for n, what in (
        (n_split, f"had several parts (parts={parts!r})"),
        (n_left_out, f"overlapped others and were left out (overlaps={overlaps!r})"),
    ):
        if n:
            warnings.warn(f"{path}: {n} span(s) {what}.", stacklevel=2)
    if open_texts:
        shown = ", ".join(open_texts[:5]) + (", ..." if len(open_texts) > 5 else "")
        how = "were left out" if unreviewed == "skip" else "are read with what was suggested"
        warnings.warn(
            f"{path}: {len(open_texts)} text(s) have suggestions that nobody has reviewed, and "
            f"{how} (text {shown}).",
            stacklevel=2,
        )
    return texts, spans


def _suggestions_beside(path, format):
    """File of the suggestions for the file or folder of an annotation tool."""
    return path / "suggestions.jsonl" if format == "brat" else Path(f"{path}.suggestions")


def _read_suggestions(path, format, suggestions):
    """Lists of sorted spans that were suggested, by their texts."""
    if suggestions is None:
        suggestions = _suggestions_beside(path, format)
        if format == "label-studio" or not suggestions.is_file():
            return {}
    found = {}
    for where, entry in entries_of(Path(suggestions)):
        try:
            spans = [(as_whole(a), as_whole(b), kind) for a, b, kind, *_ in entry["suggestions"]]
            found.setdefault(entry["text"], []).append(sorted(spans))
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"{where}: {short_repr(entry)} has no text with suggestions, as write_annotations "
                "writes them."
            ) from None
    return found


def _in_one_part(text, span, parts):
    """Spans (start, end, type) in place of one that may have several parts."""
    if not has_gaps(text, span):
        return [span.whole()]
    found = [(start, end, span.kind) for start, end in span.parts]
    if parts == "longest":
        return [max(found, key=lambda part: part[1] - part[0])]
    return found if parts == "split" else []


def _chosen(spans, overlaps, where):
    """Spans in order, without those that overlap others unless these are kept."""
    if overlaps == "keep":
        return spans
    if overlaps == "longest":
        return without_overlaps(sorted(spans, key=lambda span: span[0] - span[1]))
    # In order, a span that overlaps any later one overlaps the next.
    clash = next(((a, b) for a, b in pairwise(spans) if b[0] < a[1]), None)
    if clash and overlaps == "raise":
        raise ValueError(
            f"{where}: the spans {clash[0]} and {clash[1]} overlap. Pass "
            "overlaps='longest', overlaps='skip' or overlaps='keep'."
        )
    before = [0, *accumulate((end for _, end, _ in spans), max)]
    after = [*(start for start, *_ in spans[1:]), float("inf")]
    placed = zip(spans, before, after, strict=False)
    return [span for span, end, start in placed if end <= span[0] and span[1] <= start]


@set_module("skstruct.datasets")
def write_annotations(path, texts, spans=None, *, format, text_key="text", predictions=None):
    """Write texts and spans for an annotation tool, to be looked at or corrected there.

    `read_annotations` returns spans as they were, and no predictions that nobody has reviewed.

    Parameters
    ----------
    path : str or path-like
        The file; for "brat" a folder, which gets two files for each text. Other files there stay,
        and are read again too: take a new folder.
    texts : sequence of str
        The texts.
    spans : sequence of sequences of tuple (start, end, type), default=None
        Characters and type of the chunks of each text, such as `labels_to_spans` returns. None with
        `predictions`.
    format : {"brat", "doccano", "label-studio"}
        As of `read_annotations`. For "label-studio" the spans are annotations of the control tag
        "label" on the object tag "text".
    text_key : str, default="text"
        Key of the text in JSON.
    predictions : sequence of sequences of tuple (start, end, type, probability), default=None
        In place of `spans`: suggestions for texts that are still to be labelled, the probability
        may be left out. For "label-studio" they are predictions with scores, and the score of a
        task is the lowest of these. doccano and brat cannot tell a suggestion from an answer:
        suggestions are written like spans, and also into a file beside, ``PATH.suggestions`` or
        ``suggestions.jsonl`` in the folder. `read_annotations` needs it to tell what nobody has
        reviewed; writing `spans` to the same place removes it.

    Raises
    ------
    TypeError
        If both or neither of `spans` and `predictions` are given.
    ValueError
        If there are more or fewer texts than lists of spans, a span is not one of the text or its
        type not a string, or what is written could not be read back: a lone surrogate, and for brat
        a type with a blank or a text that begins with a byte order mark. Nothing is written then.
    OSError
        If a file cannot be written.

    See Also
    --------
    read_annotations : Read such files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skstruct.datasets import write_annotations
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_annotations(folder, ["Maria sings"], [[(0, 5, "PER")]], format="brat")
    ...     print((Path(folder) / "0.ann").read_text(encoding="utf-8"), end="")
    T1	PER 0 5	Maria
    """
    check_choice("format", format, tuple(_WRITERS))
    if (spans is None) == (predictions is None):
        raise TypeError("write_annotations() needs either spans or predictions.")
    name, scores = "spans", None
    if predictions is not None:
        name, spans = (
            "predictions",
            [list(found) if isinstance(found, Iterable) else found for found in predictions],
        )
        scores = [
            [_score_of(span, f"predictions[{i}]") for span in found or ()]
            for i, found in enumerate(spans)
        ]
    texts = list(texts)
    spans = [checked_spans(found, f"{name}[{i}]") for i, found in enumerate(spans)]
    if len(texts) != len(spans):
        raise ValueError(f"{len(texts)} texts, but {name} for {len(spans)}.")
    for i, (text, found) in enumerate(zip(texts, spans, strict=True)):
        _check_text(text, found, f"Text {i}")
    if format == "brat":
        _check_brat(texts, spans)
    path = Path(path)
    if format == "label-studio":
        _write_label_studio(path, texts, spans, text_key, scores)
        return
    beside = _suggestions_beside(path, format)
    if predictions is not None:
        # First: without them, what was suggested would be read as reviewed.
        beside.parent.mkdir(parents=True, exist_ok=True)
        write_whole(beside, _suggestions(texts, spans, scores))
    _WRITERS[format](path, texts, spans, text_key)
    if predictions is None:
        beside.unlink(missing_ok=True)


def _suggestions(texts, spans, scores):
    """Content of the file of suggestions: a line for each text."""
    lines = []
    for text, found, probable in zip(texts, spans, scores, strict=True):
        suggested = [
            [*span] if score is None else [*span, score]
            for span, score in zip(found, probable, strict=True)
        ]
        lines.append(json.dumps({"text": text, "suggestions": suggested}, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _score_of(span, where):
    """Probability of a suggestion, None without one."""
    if not isinstance(span, Sequence) or len(span) < 4:
        return None
    if not isinstance(span[3], Real) or not 0 <= span[3] <= 1:
        raise ValueError(f"{where}: {short_repr(span[3])} is not a probability.")
    return float(span[3])


def _check_text(text, spans, where):
    """Raise an error unless a text and its spans can be written and read back."""
    if not isinstance(text, str):
        raise ValueError(f"{where} is {short_repr(text)}; expected a string.")
    for span in spans:
        if span[0] < 0 or span[1] > len(text):
            raise ValueError(
                f"{where}: the span {span} is outside of the text, which has {len(text)} "
                "characters."
            )
    encoded([text, *(kind for *_, kind in spans)], lambda number: where, "utf-8")


# brat

# "T1<tab>PERSON 0 5<tab>Maria". A span over a line end, and any other with gaps, has several pairs.
_SPAN = re.compile(r"T\S*\t(\S+) (\d+ \d+(?:;\d+ \d+)*)(?:\t(.*))?").fullmatch


def _read_brat(path, text_key):
    """Yield the texts of a folder, or of one file of annotations, as all readers do.

    Parameters
    ----------
    path : Path
    text_key : str
        Key of the text in JSON.

    Yields
    ------
    text : str
    spans : list of FoundSpan
    marked : bool
        True if a byte order mark stood before the text.
    reviewed : bool or None
        None if the tool does not say.
    """
    single = path.with_suffix(".ann") if path.suffix == ".txt" else path
    # Archives of macOS have a hidden file "._0.ann" beside each file.
    found = (file for file in path.glob("*.ann") if not file.name.startswith("."))
    paths = sorted(found) if path.is_dir() else [single]
    if not paths:
        raise ValueError(f"{path} has no .ann file.")
    for file in paths:
        # Offsets count every character of the text, line ends too.
        text = read_text(file.with_suffix(".txt"), keep_mark=True)
        spans = [
            _span_of_line(line.removesuffix("\r"), f"{file}, line {number}")
            for number, line in enumerate(read_text(file).split("\n"), 1)
            if line.startswith("T")
        ]
        marked = text.startswith(BYTE_ORDER_MARK)
        yield text.removeprefix(BYTE_ORDER_MARK), spans, marked, None


def _span_of_line(line, where):
    match = _SPAN(line)
    if match is None:
        raise ValueError(f"{where}: {short_repr(line)} is not a span such as T1<tab>A 0 5.")
    kind, places, stored = match.groups()
    parts = tuple(tuple(map(int, part.split())) for part in places.split(";"))
    return FoundSpan(parts, kind, stored, where)


def _check_brat(texts, spans):
    """Raise an error for texts and types that brat's files cannot hold."""
    for i, (text, found) in enumerate(zip(texts, spans, strict=True)):
        if text.startswith(BYTE_ORDER_MARK):
            raise ValueError(
                f"Text {i} begins with a byte order mark, which would not be read back from a file."
            )
        for *_, kind in found:
            if not re.fullmatch(r"\S+", kind):
                raise ValueError(f"Text {i}: brat does not allow the type {short_repr(kind)}.")


def _write_brat(path, texts, spans, text_key):
    """Write two files for each text into a folder."""
    path.mkdir(parents=True, exist_ok=True)
    width = len(str(max(len(texts) - 1, 0)))
    for i, (text, found) in enumerate(zip(texts, spans, strict=True)):
        lines = []
        for number, (start, end, kind) in enumerate(found, 1):
            part = re.sub(r"[\r\n]", " ", text[start:end])
            lines.append(f"T{number}\t{kind} {start} {end}\t{part}\n")
        write_whole(path / f"{i:0{width}}.txt", text.encode("utf-8"))
        write_whole(path / f"{i:0{width}}.ann", "".join(lines).encode("utf-8"))


# doccano

# Keys of the spans in doccano and what is like it: "entities" beside "relations", "annotations"
# with the numbers of types.
_SPAN_KEYS = ("label", "labels", "entities", "annotations", "spans")


def _read_doccano(path, text_key):
    """Yield the texts of a file of JSON lines, or of one list."""
    notes = Notes(path, "text(s)")
    for where, entry in entries_of(path):
        place = where.rpartition(", ")[2]
        if entry is None:
            notes.add("are null and were left out", place)
            continue
        if isinstance(entry, dict) and entry.get("annotation", 0) is None:
            notes.add(_BARE, place)
        entry = as_object(entry, text_key, where)
        text = text_of(entry, text_key, where)
        others = {key: value for key, value in entry.items() if key != text_key}
        given = {key: value for key, value in others.items() if value}
        if notes.refuse(others, place):
            continue
        found = [_spans_of_key(given[key], key, where) for key in _SPAN_KEYS if key in given]
        unknown = [
            key for key, value in given.items() if key not in _SPAN_KEYS and holds_spans(value)
        ]
        if not found and unknown and not any(key in entry for key in _SPAN_KEYS):
            raise unknown_keys(entry, unknown, _SPAN_KEYS, where)
        if any(spans != found[0] for spans in found):
            keys = ", ".join(repr(key) for key in _SPAN_KEYS if key in given)
            raise ValueError(f"{where} has different spans under the keys {keys}; keep one.")
        spans = found[0] if found else []
        by_whom = {}
        for span in spans:
            by_whom.setdefault(span.by, []).append(span)
        if len({frozenset(one[:2] for one in of_one) for of_one in by_whom.values()}) > 1:
            notes.add(DIFFERING, place)
        spans = next(iter(by_whom.values()), [])
        notes.compare(entry, text, spans, place)
        yield text, spans, False, is_approved(others) or None
    # To the caller of the function that iterates.
    notes.warn(stacklevel=3)


def _spans_of_key(value, key, where):
    try:
        if not isinstance(value, list):
            raise TypeError
        return [_span_of_item(item, where) for item in value]
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{where}: {short_repr(value)} are not spans [start, end, type] or objects with "
            f"start_offset, end_offset and label, but stand under the key {key!r}."
        ) from None


def _span_of_item(item, where):
    stored = by = None
    if isinstance(item, dict):
        by = next((str(item[key]) for key in ANNOTATORS if item.get(key) is not None), None)
        start = item["start_offset"] if "start_offset" in item else item["start"]
        end = item["end_offset"] if "end_offset" in item else item["end"]
        kind, stored = item["label"], item.get("text")
    else:
        start, end, kind = item
    if isinstance(kind, int) and not isinstance(kind, bool):
        kind = str(kind)
    return _span_of_parts(start, end, kind, stored, where)._replace(by=by)


def _span_of_parts(start, end, kind, stored, where):
    """Span in JSON of any tool; a TypeError or ValueError unless it is one."""
    if not isinstance(kind, str) or not kind:
        raise TypeError
    part = as_whole(start), as_whole(end)
    return FoundSpan((part,), kind, stored if isinstance(stored, str) else None, where)


def _write_doccano(path, texts, spans, text_key):
    if text_key in _SPAN_KEYS:
        raise ValueError(f"text_key={text_key!r} is a key of the spans; choose another one.")
    lines = [
        json.dumps({text_key: text, "label": [list(span) for span in found]}, ensure_ascii=False)
        for text, found in zip(texts, spans, strict=True)
    ]
    write_whole(path, "".join(f"{line}\n" for line in lines).encode("utf-8"))


# Label Studio

# Keys of a task's annotations; the second is from versions before 1.0.
_TASK_KEYS = ("annotations", "completions")
# Predictions of a model count only in files without annotations.
_PREDICTIONS = "predictions"
# Keys that never hold the spans of a task.
_OTHERS = ("data", "meta", "drafts")
# Keys of remarks on a region whose labels are in another result.
_REMARKS = {"choices", "rating", "number", "datetime", "taxonomy"}
# Notes on tasks.
_UNREAD = "have predictions, but no annotation"
_BARE = "have no annotation; they are read as without spans"
_PREDICTED = "have predictions of a model alone; these are read as spans"
_CANCELLED = "have annotations that were all cancelled, skipped or rejected, and were left out"
_ELSEWHERE = "have spans, but all of another text than text_key"


def _read_label_studio(path, text_key):
    """Yield the texts of a file of JSON or JSON-MIN."""
    tasks = parse_json(read_text(path), path)
    if not isinstance(tasks, list):
        keys = f"; its keys are {', '.join(map(repr, tasks))}" if isinstance(tasks, dict) else ""
        raise ValueError(f"{path} is not a list of tasks, as Label Studio's JSON is{keys}.")
    notes, elsewhere, found_any = Notes(path, "task(s)"), [], False
    for number, task in enumerate(tasks):
        where, place, is_open = f"{path}, task {number}", f"task {number}", False
        is_task = isinstance(task, dict) and isinstance(task.get("data"), dict)
        data = task["data"] if is_task else task
        text = text_of(data, text_key, where)
        if notes.refuse(task, place):
            continue
        if is_task:
            annotations, note = _annotations(task, where)
            if note == _UNREAD:
                is_open = True
            elif note:
                notes.add(note, place)
            if note == _CANCELLED:
                continue
            regions = _regions_of_objects(annotations, where)
        else:
            regions = _regions_of_controls(task, text_key, where)
        regions = {name: spans for name, spans in regions.items() if spans}
        spans = _spans_of_text(regions, data, text_key, where)
        notes.compare(task, text, spans, place)
        found_any = found_any or bool(spans)
        elsewhere += [place] if regions and not spans else []
        yield text, spans, False, not is_open
    for place in elsewhere if not found_any else ():
        notes.add(_ELSEWHERE, place)
    # To the caller of the function that iterates.
    notes.warn(stacklevel=3)


def _regions_of_objects(annotations, where):
    """Spans of the first annotation, by the name of their object tag."""
    regions = {}
    for entry in annotations[0]["result"] if annotations else ():
        if not isinstance(entry, dict) or not {"value", "from_id"} & set(entry):
            raise ValueError(f"{where}: {short_repr(entry)} is not a result with a 'value'.")
        # A relation between regions has none.
        if "value" in entry:
            spans, name = _spans_of_value(entry["value"], where), entry.get("to_name")
            regions.setdefault(name if isinstance(name, str) else None, []).extend(spans)
    return regions


def _annotations(task, where):
    """Annotations of a task, the one to read first, and the note on the task or None."""
    keys = [key for key in _TASK_KEYS if key in task]
    key = next((key for key in keys if task[key]), keys[0] if keys else _PREDICTIONS)
    found = [] if task.get(key) is None else task[key]
    unknown = [name for name in task if name not in _OTHERS and holds_spans(task[name])]
    if not keys and not found and unknown:
        raise unknown_keys(task, unknown, (*_TASK_KEYS, _PREDICTIONS), where)
    if not found and task.get(_PREDICTIONS):
        key, found = _UNREAD, task[_PREDICTIONS]
    if not isinstance(found, list) or not all(
        isinstance(annotation, dict) and isinstance(annotation.get("result"), list)
        for annotation in found
    ):
        key = _PREDICTIONS if key == _UNREAD else key
        raise ValueError(
            f"{where}: under the key {key!r}, {short_repr(found)} are not annotations with a "
            "'result' each."
        )
    if key == _UNREAD:
        return found, _UNREAD
    if key == _PREDICTIONS:
        return found, _PREDICTED if found else _BARE
    read = [one for one in found if not (is_refused(one) or _is_rejected(one))]
    right = [one for one in read if one.get("ground_truth")]
    if found and not read:
        return [], _CANCELLED
    if not found:
        return [], _BARE
    differ = len(set(map(_fingerprint, right or read))) > 1
    return right or read, DIFFERING if differ else None


def _is_rejected(annotation):
    """Return True if the last review of an annotation did not accept it."""
    reviews = annotation.get("reviews")
    last = reviews[-1] if isinstance(reviews, list) and reviews else None
    return isinstance(last, dict) and last.get("accepted") is False


def _fingerprint(annotation):
    """Contents of an annotation, without identifiers and times."""
    values = [entry.get("value") for entry in annotation["result"] if isinstance(entry, dict)]
    return "\n".join(sorted(json.dumps(value, sort_keys=True) for value in values))


def _regions_of_controls(task, text_key, where):
    """Spans by the control tag, under whose name JSON-MIN has them."""
    regions = {}
    for key, values in task.items():
        is_list = isinstance(values, list) and any(isinstance(v, dict) for v in values)
        has_labels = is_list and any(isinstance(v, dict) and "labels" in v for v in values)
        if key == text_key or key in _OTHERS or not (holds_spans(values) or has_labels):
            continue
        if not is_list:
            raise unknown_keys(task, [key], ("the name of a control tag",), where)
        regions[key] = [span for value in values for span in _spans_of_value(value, where)]
    return regions


def _spans_of_value(value, where):
    """Spans of a result; none if it is not a region of a text."""
    if not isinstance(value, dict):
        raise ValueError(f"{where}: {short_repr(value)} is not the value of a result.")
    stored, is_place = value.get("text"), "start" in value or holds_spans(value)
    is_remark = _REMARKS & set(value) or isinstance(stored, list)
    if "labels" not in value and (is_remark or not is_place):
        return []
    try:
        kinds = value["labels"]
        if not isinstance(kinds, list) or not kinds:
            raise TypeError
        start, end = value["start"], value["end"]
        return [_span_of_parts(start, end, kind, stored, where) for kind in kinds]
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{where}: a result lacks start, end or labels of characters; under its keys it has "
            f"{short_repr(value)}."
        ) from None


def _spans_of_text(regions, data, text_key, where):
    """Spans of this text, one of several in the task."""
    found = []
    for name, spans in regions.items():
        key = _field(name, spans, data, text_key)
        if key is None and len(regions) > 1 and not any(span.stored for span in spans):
            raise ValueError(
                f"{where} has spans of several objects ({', '.join(map(repr, regions))}), and "
                f"neither the name nor a text tells whether {name!r} belongs to {text_key!r}."
            )
        if key in (None, text_key):
            found += spans
    return found


def _field(name, spans, data, text_key):
    """Key of the text of an object's spans, found by its name or by its spans; None if unknown."""
    fields = {key: text for key, text in data.items() if isinstance(text, str)}
    if name in fields and fit_text(fields[name], spans):
        return name
    if not any(span.stored for span in spans):
        return None
    others = (key for key in fields if key != text_key)
    return next((key for key in (text_key, *others) if fit_text(fields[key], spans)), None)


def _write_label_studio(path, texts, spans, text_key, scores=None):
    """Write a task for each text; with scores, spans are predictions."""
    tasks = []
    for i, (text, found) in enumerate(zip(texts, spans, strict=True)):
        results = [
            {
                "from_name": "label",
                "to_name": "text",
                "type": "labels",
                "value": {"start": start, "end": end, "text": text[start:end], "labels": [kind]},
            }
            for start, end, kind in found
        ]
        task = {"data": {text_key: text}, "annotations": [{"result": results}]}
        if scores is not None:
            given = [score for score in scores[i] if score is not None]
            for result, score in zip(results, scores[i], strict=True):
                result.update({} if score is None else {"score": score})
            of_task = {"score": min(given)} if given else {}
            prediction = {"model_version": "skstruct", **of_task, "result": results}
            task |= {"annotations": [], _PREDICTIONS: [prediction]}
        tasks.append(task)
    write_whole(path, json.dumps(tasks, ensure_ascii=False, indent=1).encode("utf-8"))


_WRITERS = {"brat": _write_brat, "doccano": _write_doccano, "label-studio": _write_label_studio}
_READERS = {
    "brat": _read_brat,
    "label-studio": _read_label_studio,
    **dict.fromkeys(("doccano", "prodigy", "spacy", "ner-annotator", "dataturks"), _read_doccano),
}


def _format_of(path):
    """Format of a file or folder, by its name and first entry."""
    if path.is_dir() or path.suffix in (".ann", ".txt"):
        return "brat"
    entry = next((entry for _, entry in entries_of(path) if entry is not None), None)
    values = entry.values() if isinstance(entry, dict) else ()
    inner = [one for value in values if isinstance(value, list) for one in value]
    inner = [set(one) for one in inner if isinstance(one, dict)]
    is_task = isinstance(entry, dict) and isinstance(entry.get("data"), dict)
    is_min = any("result" in keys or {"labels", "start"} <= keys for keys in inner)
    return "label-studio" if is_task or is_min else "doccano"
