"""Exports of Label Studio: JSON with all annotations of a task, and JSON-MIN."""

import json
import warnings

from skstruct.datasets.spans import as_whole
from skstruct.datasets.tool_spans import (
    FoundSpan,
    fit_text,
    holds_spans,
    parse_json,
    text_of,
    unknown_keys,
)
from skstruct.utils.files import read_text, write_whole
from skstruct.utils.messages import short_repr

# Keys of a task's annotations; the second is that of versions before 1.0.
_KEYS = ("annotations", "completions")
# Predictions of a model count only in files without annotations.
_PREDICTIONS = "predictions"
# Keys that never hold the spans of a task.
_OTHERS = ("data", "meta", "drafts")
# Keys of remarks on a region whose labels are in another result.
_REMARKS = {"choices", "rating", "number", "datetime", "taxonomy"}
# Notes on tasks, one warning each for a file.
_DIFFERING = "have several annotations that differ; the first of each is read"
_UNREAD = "have predictions, but no annotation; they are read as without spans"
_ELSEWHERE = "have spans, but all of another text than that of text_key"


def read_label_studio(path, text_key):
    """Yield the texts of a file, and their spans, as the readers of `annotations` do."""
    tasks = parse_json(read_text(path), path)
    if not isinstance(tasks, list):
        keys = f"; its keys are {', '.join(map(repr, tasks))}" if isinstance(tasks, dict) else ""
        raise ValueError(f"{path} is not a list of tasks, as Label Studio's JSON is{keys}.")
    notes = {what: [] for what in (_DIFFERING, _UNREAD, _ELSEWHERE)}
    found_any = False
    for number, task in enumerate(tasks):
        where = f"{path}, task {number}"
        if isinstance(task, dict) and isinstance(task.get("data"), dict):
            data, text = task["data"], text_of(task["data"], text_key, where)
            regions, note = _regions_of_objects(task, where)
        else:
            data, text = task, text_of(task, text_key, where)
            regions, note = _regions_of_controls(task, text_key, where), None
        regions = {name: spans for name, spans in regions.items() if spans}
        spans = _spans_of_text(regions, data, text_key, where)
        found_any = found_any or bool(spans)
        if regions and not spans:
            note = note or _ELSEWHERE
        if note:
            notes[note].append(number)
        yield text, spans, False
    if found_any:
        notes.pop(_ELSEWHERE)
    for what, numbers in notes.items():
        if numbers:
            shown = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
            # To the caller of the function that iterates.
            warnings.warn(f"{path}: {len(numbers)} task(s) {what} (task {shown}).", stacklevel=3)


def _regions_of_objects(task, where):
    """Spans by the name of their object tag, and the note on the task or None."""
    annotations = _annotations(task, where)
    regions = {}
    for entry in (entry for annotation in annotations[:1] for entry in annotation["result"]):
        if not isinstance(entry, dict) or not {"value", "from_id"} & set(entry):
            raise ValueError(f"{where}: {short_repr(entry)} is not a result with a 'value'.")
        # A relation between regions has none.
        if "value" in entry:
            spans, name = _spans_of_value(entry["value"], where), entry.get("to_name")
            regions.setdefault(name if isinstance(name, str) else None, []).extend(spans)
    note = _UNREAD if not annotations and task.get(_PREDICTIONS) else None
    if len(set(map(_fingerprint, annotations))) > 1:
        note = _DIFFERING
    return regions, note


def _annotations(task, where):
    """Annotations of a task that were not cancelled."""
    keys = [key for key in _KEYS if key in task]
    key = next((key for key in keys if task[key]), keys[0] if keys else _PREDICTIONS)
    found = [] if task.get(key) is None else task[key]
    unknown = [name for name in task if name not in _OTHERS and holds_spans(task[name])]
    if not keys and not found and unknown:
        raise unknown_keys(task, unknown, (*_KEYS, _PREDICTIONS), where)
    if not isinstance(found, list) or not all(
        isinstance(annotation, dict) and isinstance(annotation.get("result"), list)
        for annotation in found
    ):
        raise ValueError(
            f"{where}: under the key {key!r}, {short_repr(found)} are not annotations with a "
            "'result' each."
        )
    return [a for a in found if not (a.get("was_cancelled") or a.get("skipped"))]


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
        part = as_whole(value["start"]), as_whole(value["end"])
        kinds = value["labels"]
        is_list = isinstance(kinds, list) and len(kinds) > 0
        if not is_list or not all(isinstance(kind, str) and kind for kind in kinds):
            raise TypeError
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{where}: a result lacks start, end or labels of characters; under its keys it has "
            f"{short_repr(value)}."
        ) from None
    stored = stored if isinstance(stored, str) else None
    return [FoundSpan((part,), kind, stored, where) for kind in kinds]


def _spans_of_text(regions, data, text_key, where):
    """Spans of this text, without those of other texts of the task."""
    found = []
    for name, spans in regions.items():
        key = _field(name, spans, data, text_key)
        if key is None and len(regions) > 1 and not any(span.stored for span in spans):
            raise ValueError(
                f"{where} has spans of several objects ({', '.join(map(repr, regions))}), and "
                f"neither the name nor a text tells whether those of {name!r} are of {text_key!r}."
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


def write_label_studio(path, texts, spans, text_key):
    """Write a task for each text."""
    tasks = [
        {"data": {text_key: text}, "annotations": [{"result": _results(text, found)}]}
        for text, found in zip(texts, spans, strict=True)
    ]
    write_whole(path, json.dumps(tasks, ensure_ascii=False, indent=1).encode("utf-8"))


def _results(text, spans):
    return [
        {
            "from_name": "label",
            "to_name": "text",
            "type": "labels",
            "value": {"start": start, "end": end, "text": text[start:end], "labels": [kind]},
        }
        for start, end, kind in spans
    ]
