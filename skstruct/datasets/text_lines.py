"""Lines of text from files and streams, read piece by piece."""

from __future__ import annotations

import codecs
import io
import os
import zlib
from itertools import chain

__all__ = ["GZIP_MAGIC", "open_line_blocks"]

GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 16
# Window bits of zlib for data with a gzip header.
_GZIP_WINDOW = 31


def open_line_blocks(source, encoding):
    """Open a source of text, and iterate over lists of its lines.

    Parameters
    ----------
    source : str, path-like, file object or iterable of lines
        Plain or gzipped; lines may be str or bytes.
    encoding : str
        Encoding of bytes.

    Returns
    -------
    name : str
        Name of the source, for messages.
    blocks : iterator of list of str
        Lines read at a time; a single one from an iterable of lines. Line ends of any kind and a
        byte order mark are stripped. A file given by its path is open until the iterator ends.
        Raises ValueError for bytes that are not in the encoding, and for damaged gzip data.
    """
    if hasattr(source, "read"):
        name = str(getattr(source, "name", "<file object>"))
        pieces = iter(lambda: source.read(_PIECE) or None, None)
    elif isinstance(source, (str, os.PathLike)):
        name, pieces = os.fspath(source), _pieces_of_file(open(source, "rb"))  # noqa: SIM115
    else:
        name, pieces = "<lines>", map(_ended, source)
    return name, _line_blocks(_texts(pieces, encoding, name))


def _pieces_of_file(file):
    with file:
        while piece := file.read(_PIECE):
            yield piece


def _ended(line):
    """Append the newline that a line may lack."""
    end = "\n" if isinstance(line, str) else b"\n"
    return line if line.endswith(end) else line + end


def _texts(pieces, encoding, name):
    """Decode pieces of a source, with newlines for line ends of any kind."""
    first = next(pieces, "")
    pieces = chain([first], pieces)
    if isinstance(first, str):
        decoder = io.IncrementalNewlineDecoder(None, translate=True)
    else:
        pieces = _unpacked(pieces, name)
        decoder = codecs.getincrementaldecoder(encoding)()
        decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
    n_lines, begun = 0, False
    for piece, final in chain(((piece, False) for piece in pieces), [(first[:0], True)]):
        try:
            text = decoder.decode(piece, final=final)
        except UnicodeDecodeError as error:
            number = n_lines + error.object.count(b"\n", 0, error.start) + 1
            raise ValueError(
                f"{name}, line {number}: not {encoding} text "
                f"(byte {error.object[error.start]:#04x}: {error.reason}); pass encoding=, for "
                f"example 'latin-1'"
            ) from error
        if text and not begun:
            text, begun = text.removeprefix("\ufeff"), True
        n_lines += text.count("\n")
        yield text


def _unpacked(pieces, name):
    """Decompress pieces of bytes if they are gzipped."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= len(GZIP_MAGIC):
            break
    pieces = chain([head], pieces)
    return _gunzipped(pieces, name) if head.startswith(GZIP_MAGIC) else pieces


def _gunzipped(pieces, name):
    unpack = zlib.decompressobj(_GZIP_WINDOW)
    try:
        for piece in pieces:
            while piece:
                if unpack.eof:
                    # Another gzip member, or the padding zeros of a tape.
                    piece = piece.lstrip(b"\0")
                    if not piece:
                        break
                    unpack = zlib.decompressobj(_GZIP_WINDOW)
                yield unpack.decompress(piece)
                piece = unpack.unused_data
    except zlib.error as error:
        raise ValueError(f"{name}: the gzip data is truncated or damaged ({error})") from error
    if not unpack.eof:
        raise ValueError(f"{name}: the gzip data is truncated or damaged (its end is missing)")


def _line_blocks(texts):
    unfinished = []
    for text in texts:
        lines = text.split("\n")
        unfinished.append(lines[0])
        if len(lines) > 1:
            lines[0] = "".join(unfinished)
            unfinished = [lines.pop()]
            yield lines
    yield ["".join(unfinished)]
