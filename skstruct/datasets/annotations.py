"""Exports of annotation tools: texts, and spans of their characters."""

from __future__ import annotations

import json
import os
import re
from itertools import chain
from pathlib import Path

from skstruct.datasets.text_lines import open_line_blocks
from skstruct.datasets.writing import write_text
from skstruct.utils.files import write_whole
from skstruct.utils.messages import short_repr
from skstruct.utils.options import check_choice
from skstruct.utils.public_paths import set_module

__all__ = ["read_annotations", "write_annotations"]

# "T1<tab>PERSON 0 5<tab>Maria", in a file beside the text. Discontinuous spans have several pairs.
_BRAT_SPAN = re.compile(r"T\S*\t(\S+) (\d+ \d+(?:;\d+ \d+)*)(?:\t|$)").match


@set_module("skstruct.datasets")
def read_annotations(path, *, format, text_key="text"):
    """Read the texts and spans that an annotation tool has exported.

    Parameters
    ----------
    path : str or path-like
        The file; for "brat" a folder with ``.txt`` and ``.ann`` files, or one of its ``.ann``
        files.
    format : {"brat", "doccano", "label-studio"}
        "doccano" is JSON lines with the keys "text" and "label", or "entities" of an export with
        relations. "label-studio" is its JSON or JSON-MIN. Of several annotations of a task, the
        first one that was not cancelled is read.
    text_key : str, default="text"
        Key of the text in JSON.

    Returns
    -------
    texts : list of str
        For brat in the order of the names of the files.
    spans : list of list of tuple (start, end, type)
        Characters and type of the chunks of each text. Relations, events and attributes are left
        out.

    Raises
    ------
    ValueError
        If a file is not in the format, a span lies outside of its text, or has several parts; the
        message names the file, and the line or task.
    OSError
        If a file cannot be opened.

    See Also
    --------
    write_annotations : Write such files, to have predictions corrected.
    spans_to_labels : Labels of tokens for spans.

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
    check_choice("format", format, tuple(_FORMATS))
    texts, spans = [], []
    for where, text, found in _FORMATS[format][0](Path(path), text_key):
        for span in found:
            if not 0 <= span[0] < span[1] <= len(text):
                raise ValueError(
                    f"{where}: the span {span} is empty or outside of the text, which has "
                    f"{len(text)} characters."
                )
        texts.append(text)
        spans.append(sorted(found, key=lambda span: span[:2]))
    return texts, spans


@set_module("skstruct.datasets")
def write_annotations(path, texts, spans, *, format, text_key="text"):
    """Write texts and spans for an annotation tool, to be looked at or corrected there.

    `read_annotations` returns them as they were.

    Parameters
    ----------
    path : str or path-like
        The file; for "brat" a folder, which gets two files for each text.
    texts : sequence of str
        The texts.
    spans : sequence of sequences of tuple (start, end, type)
        Characters and type of the chunks of each text, such as `labels_to_spans` returns.
    format : {"brat", "doccano", "label-studio"}
        As of `read_annotations`. For "label-studio" the spans are annotations of the control tag
        "label" on the object tag "text".
    text_key : str, default="text"
        Key of the text in JSON.

    Raises
    ------
    ValueError
        If there are more or fewer texts than lists of spans, or a type has a blank, which brat
        does not allow.
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
    check_choice("format", format, tuple(_FORMATS))
    texts, spans = list(texts), [[tuple(span) for span in found] for found in spans]
    if len(texts) != len(spans):
        raise ValueError(f"{len(texts)} texts, but spans for {len(spans)}.")
    _FORMATS[format][1](Path(path), texts, spans, text_key)


def _read_brat(path, text_key):
    paths = sorted(path.glob("*.ann")) if path.is_dir() else [path]
    if not paths:
        raise ValueError(f"{path} has no .ann file.")
    for file in paths:
        # Offsets count every character of the text, those of line ends too.
        text = file.with_suffix(".txt").read_bytes().decode("utf-8-sig")
        spans = []
        for number, line in enumerate(file.read_bytes().decode("utf-8-sig").split("\n"), 1):
            if not line.startswith("T"):
                continue
            match = _BRAT_SPAN(line)
            where = f"{file}, line {number}"
            if match is None:
                raise ValueError(f"{where}: {short_repr(line)} is not a span such as T1<tab>A 0 5.")
            kind, places = match.groups()
            if ";" in places:
                raise ValueError(f"{where}: a span has several parts, {places}; a chunk has one.")
            start, end = map(int, places.split())
            spans.append((start, end, kind))
        yield str(file), text, spans


def _write_brat(path, texts, spans, text_key):
    for i, found in enumerate(spans):
        for span in found:
            if not re.fullmatch(r"\S+", str(span[2])):
                raise ValueError(f"Text {i}: brat does not allow the type {short_repr(span[2])}.")
    path.mkdir(parents=True, exist_ok=True)
    width = len(str(max(len(texts) - 1, 0)))
    for i, (text, found) in enumerate(zip(texts, spans, strict=True)):
        lines = []
        for number, (start, end, kind) in enumerate(found, 1):
            part = re.sub(r"[\r\n]", " ", text[start:end])
            lines.append(f"T{number}\t{kind} {start} {end}\t{part}\n")
        write_whole(path / f"{i:0{width}}.txt", text.encode("utf-8"))
        write_whole(path / f"{i:0{width}}.ann", "".join(lines).encode("utf-8"))


def _read_doccano(path, text_key):
    with open_line_blocks(path, "utf-8") as (name, blocks):
        for number, line in enumerate(chain.from_iterable(blocks), 1):
            if line.strip():
                where = f"{name}, line {number}"
                entry = _parse(line, where)
                yield where, _text(entry, text_key, where), _doccano_spans(entry, where)


def _doccano_spans(entry, where):
    found = next((entry[key] for key in ("label", "labels", "entities") if key in entry), [])
    try:
        return [
            (span["start_offset"], span["end_offset"], span["label"])
            if isinstance(span, dict)
            else (int(span[0]), int(span[1]), str(span[2]))
            for span in found
        ]
    except (KeyError, TypeError, ValueError, IndexError):
        raise ValueError(
            f"{where}: {short_repr(found)} are not spans [start, end, type]."
        ) from None


def _write_doccano(path, texts, spans, text_key):
    lines = [
        json.dumps({text_key: text, "label": [list(span) for span in found]}, ensure_ascii=False)
        for text, found in zip(texts, spans, strict=True)
    ]
    write_text(path, "".join(f"{line}\n" for line in lines), "utf-8")


def _read_label_studio(path, text_key):
    tasks = _parse(path.read_bytes().decode("utf-8-sig"), os.fspath(path))
    if not isinstance(tasks, list):
        raise ValueError(f"{path} is not a list of tasks, as Label Studio's JSON is.")
    for number, task in enumerate(tasks):
        where = f"{path}, task {number}"
        if isinstance(task, dict) and "data" in task:
            results = [
                entry["value"]
                for annotation in _valid(task)[:1]
                for entry in annotation.get("result", [])
                if "labels" in entry.get("value", {})
            ]
            task = task["data"]
        else:
            results = task.get("label", []) if isinstance(task, dict) else []
        yield where, _text(task, text_key, where), _label_studio_spans(results, where)


def _valid(task):
    return [a for a in task.get("annotations", []) if not a.get("was_cancelled")]


def _label_studio_spans(results, where):
    try:
        return [
            (int(value["start"]), int(value["end"]), str(kind))
            for value in results
            for kind in value["labels"]
        ]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{where}: a result lacks start, end or labels.") from None


def _write_label_studio(path, texts, spans, text_key):
    tasks = [
        {
            "data": {text_key: text},
            "annotations": [
                {
                    "result": [
                        {
                            "from_name": "label",
                            "to_name": "text",
                            "type": "labels",
                            "value": {
                                "start": start,
                                "end": end,
                                "text": text[start:end],
                                "labels": [kind],
                            },
                        }
                        for start, end, kind in found
                    ]
                }
            ],
        }
        for text, found in zip(texts, spans, strict=True)
    ]
    write_text(path, json.dumps(tasks, ensure_ascii=False, indent=1), "utf-8")


def _parse(content, where):
    try:
        return json.loads(content)
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from None


def _text(entry, text_key, where):
    text = entry.get(text_key) if isinstance(entry, dict) else None
    if not isinstance(text, str):
        raise ValueError(f"{where} has no text under the key {text_key!r}; pass text_key.")
    return text


_FORMATS = {
    "brat": (_read_brat, _write_brat),
    "doccano": (_read_doccano, _write_doccano),
    "label-studio": (_read_label_studio, _write_label_studio),
}
