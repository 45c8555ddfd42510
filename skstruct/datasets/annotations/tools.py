"""Exports of annotation tools: texts, and spans of their characters."""

import warnings
from pathlib import Path

from skstruct.datasets.annotations.brat import read_brat, write_brat
from skstruct.datasets.annotations.doccano import read_doccano, write_doccano
from skstruct.datasets.annotations.exports import SeveralParts
from skstruct.datasets.annotations.label_studio import read_label_studio, write_label_studio
from skstruct.datasets.conll import encoded
from skstruct.datasets.spans import checked_spans
from skstruct.utils.messages import short_repr
from skstruct.utils.options import check_choice
from skstruct.utils.public_paths import set_module


@set_module("skstruct.datasets")
def read_annotations(path, *, format, text_key="text", parts="raise", overlaps="keep"):
    """Read the texts and spans that an annotation tool has exported.

    Parameters
    ----------
    path : str or path-like
        The file; for "brat" a folder with ``.txt`` and ``.ann`` files, or one of its ``.ann``
        files.
    format : {"brat", "doccano", "label-studio"}
        Format of the tool's export, see Notes.
    text_key : str, default="text"
        Key of the text in JSON. Of several texts of a task, only the spans of this one are read.
    parts : {"raise", "skip", "split", "longest"}, default="raise"
        What to do with a span of brat that has several parts: raise an error, leave it out, make a
        span of each part, or of the longest.
    overlaps : {"keep", "raise", "skip", "longest"}, default="keep"
        What to do with spans that overlap or are nested, which labels of tokens cannot express:
        keep them as they are, raise an error, leave all of them out, or keep the longest, and of
        equally long ones the first.

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
        If a file is not in the format, or has spans in a way that is not known; if a span lies
        outside of its text, is not the text that stands beside it, or has several parts or
        overlaps another where that is an error. The message names the file, and the line or task.
    OSError
        If a file cannot be opened.

    Warns
    -----
    UserWarning
        If something is not read: further annotations of a task that differ from the first,
        predictions beside no annotation, or the spans of other texts where `text_key` has none.
        With `parts` or `overlaps`, the number of spans that were left out or changed.

    See Also
    --------
    write_annotations : Write such files, to have predictions corrected.
    spans_to_labels : Labels of tokens for spans.

    Notes
    -----
    "doccano" is JSON, one object in each line or all in a list. The spans stand under "label",
    "labels", "entities" (beside relations), "annotations" or "spans", as lists of start, end and
    type or as objects. Types that are numbers, as older versions have them, become strings.

    "label-studio" is its JSON or JSON-MIN, also with "completions" as before version 1.0, and with
    control tags of any name. Of several annotations of a task, the first one that was not cancelled
    is read, with a warning if others differ. Predictions are read only from files without
    annotations.

    brat and Label Studio store the words of a span beside its offsets. Where these do not agree,
    the tool may have counted the code units of UTF-16, or line ends of Windows as one character, or
    those of Unix as two. If one such way of counting fits all spans of a text, the spans are
    corrected. Blanks and line ends are not compared: brat stores a blank for a line end. A span of
    brat with several parts is read if only blanks and line ends are between them.

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
    check_choice("parts", parts, ("raise", "skip", "split", "longest"))
    check_choice("overlaps", overlaps, ("keep", "raise", "skip", "longest"))
    texts, spans, several, n_left_out = [], [], SeveralParts(parts), 0
    for text, found in _FORMATS[format][0](Path(path), text_key, several):
        found = sorted(found, key=lambda span: span[:2])
        if overlaps != "keep":
            kept = _apart(found, overlaps, f"{path}: text {len(texts)}")
            n_left_out += len(found) - len(kept)
            found = kept
        texts.append(text)
        spans.append(found)
    for n, what in (
        (several.n_spans, f"had several parts (parts={parts!r})"),
        (n_left_out, f"overlapped others and were left out (overlaps={overlaps!r})"),
    ):
        if n:
            warnings.warn(f"{path}: {n} span(s) {what}.", stacklevel=2)
    return texts, spans


def _apart(spans, overlaps, where):
    """Spans in order, without those that overlap others."""
    clashing = [
        [
            other
            for other in spans
            if other is not span and other[0] < span[1] and span[0] < other[1]
        ]
        for span in spans
    ]
    pairs = zip(spans, clashing, strict=True)
    if overlaps == "skip":
        return [span for span, others in pairs if not others]
    if overlaps == "raise":
        bad = next(((span, others[0]) for span, others in pairs if others), None)
        if bad is not None:
            raise ValueError(
                f"{where}: the spans {bad[0]} and {bad[1]} overlap. Pass overlaps='longest', "
                "overlaps='skip' or overlaps='keep'."
            )
        return spans
    kept = []
    for span in sorted(spans, key=lambda span: span[0] - span[1]):
        if all(span[1] <= other[0] or other[1] <= span[0] for other in kept):
            kept.append(span)
    return sorted(kept, key=lambda span: span[:2])


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
    check_choice("format", format, tuple(_FORMATS))
    texts = list(texts)
    spans = [checked_spans(found, f"spans[{i}]") for i, found in enumerate(spans)]
    if len(texts) != len(spans):
        raise ValueError(f"{len(texts)} texts, but spans for {len(spans)}.")
    for i, (text, found) in enumerate(zip(texts, spans, strict=True)):
        _check_text(text, found, f"Text {i}")
    _FORMATS[format][1](Path(path), texts, spans, text_key)


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


_FORMATS = {
    "brat": (read_brat, write_brat),
    "doccano": (read_doccano, write_doccano),
    "label-studio": (read_label_studio, write_label_studio),
}
