"""Files of brat: a text file, and a file with a line for each annotation."""

import re

from skstruct.datasets.annotations.exports import FoundSpan, place_spans
from skstruct.datasets.conll import BYTE_ORDER_MARK
from skstruct.utils.files import read_text, write_whole
from skstruct.utils.messages import short_repr

# "T1<tab>PERSON 0 5<tab>Maria". A span over a line end, and any other with gaps, has several pairs.
_SPAN = re.compile(r"T\S*\t(\S+) (\d+ \d+(?:;\d+ \d+)*)(?:\t(.*))?").fullmatch


def read_brat(path, text_key, several):
    """Iterate over the texts of a folder, or of one file of annotations.

    Parameters
    ----------
    path : Path
        The folder, or a file with the suffix ``.ann``.
    text_key : str
        Not used.
    several : SeveralParts

    Yields
    ------
    text : str
    spans : list of tuple (start, end, type)
    """
    paths = sorted(path.glob("*.ann")) if path.is_dir() else [path]
    if not paths:
        raise ValueError(f"{path} has no .ann file.")
    for file in paths:
        # Offsets count every character of the text, those of line ends too.
        text = read_text(file.with_suffix(".txt"), keep_mark=True)
        spans = [
            _as_span(line.removesuffix("\r"), f"{file}, line {number}")
            for number, line in enumerate(read_text(file).split("\n"), 1)
            if line.startswith("T")
        ]
        marked = text.startswith(BYTE_ORDER_MARK)
        text = text.removeprefix(BYTE_ORDER_MARK)
        yield text, place_spans(text, spans, marked=marked, several=several)


def _as_span(line, where):
    match = _SPAN(line)
    if match is None:
        raise ValueError(f"{where}: {short_repr(line)} is not a span such as T1<tab>A 0 5.")
    kind, places, stored = match.groups()
    parts = tuple(tuple(map(int, part.split())) for part in places.split(";"))
    return FoundSpan(parts, kind, stored, where)


def write_brat(path, texts, spans, text_key):
    """Write two files for each text into a folder.

    Parameters
    ----------
    path : Path
    texts : list of str
    spans : list of list of tuple (start, end, type)
    text_key : str
        Not used.
    """
    for i, (text, found) in enumerate(zip(texts, spans, strict=True)):
        if text.startswith(BYTE_ORDER_MARK):
            raise ValueError(
                f"Text {i} begins with a byte order mark, which would not be read back from a file."
            )
        for *_, kind in found:
            if not re.fullmatch(r"\S+", kind):
                raise ValueError(f"Text {i}: brat does not allow the type {short_repr(kind)}.")
    path.mkdir(parents=True, exist_ok=True)
    width = len(str(max(len(texts) - 1, 0)))
    for i, (text, found) in enumerate(zip(texts, spans, strict=True)):
        lines = []
        for number, (start, end, kind) in enumerate(found, 1):
            part = re.sub(r"[\r\n]", " ", text[start:end])
            lines.append(f"T{number}\t{kind} {start} {end}\t{part}\n")
        write_whole(path / f"{i:0{width}}.txt", text.encode("utf-8"))
        write_whole(path / f"{i:0{width}}.ann", "".join(lines).encode("utf-8"))
