"""Lines of text from files and streams, read piece by piece."""

from __future__ import annotations

import codecs
import io
import os
import re
import zlib
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain

from skstruct.utils.files import not_in_encoding

__all__ = ["BYTE_ORDER_MARK", "GZIP_MAGIC", "open_line_blocks", "splitter"]

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = "\ufeff"
_PIECE = 1 << 16
# Window bits of zlib for data with a gzip header.
_GZIP_WINDOW = 31
# Not str.split, which also splits at no-break spaces; these occur inside tokens.
_split_at_blanks = re.compile(r"[^ \t\f\v]+").findall


def splitter(separator):
    """Make the function that splits a line into columns; at blanks if `separator` is None."""
    return _split_at_blanks if separator is None else partial(_split_at, separator)


def _split_at(separator, line):
    # Trailing blanks are noise, but a trailing separator precedes an empty column.
    stripped = line.rstrip(" ") if separator.strip(" ") else line
    return stripped.split(separator) if stripped.strip() else []


@contextmanager
def open_line_blocks(source, encoding):
    """Context in which a source of text is open, to iterate over lists of its lines.

    Parameters
    ----------
    source : str, path-like, file object or iterable of lines
        Plain or gzipped; lines may be str or bytes.
    encoding : str or None
        Encoding of bytes; None for UTF-8 where the caller has no choice.

    Yields
    ------
    name : str
        Name of the source, for messages.
    blocks : iterator of list of str
        Lines read at a time; a single one from an iterable of lines. Line ends of any kind and a
        byte order mark are stripped. Raises ValueError for bytes that are not in the encoding, and
        for damaged gzip data.
    """
    is_path = isinstance(source, (str, os.PathLike))
    # A file object or an iterable stays open: it is the caller's.
    with open(source, "rb") if is_path else nullcontext(source) as file:
        if hasattr(file, "read"):
            name = os.fspath(source) if is_path else str(getattr(file, "name", "<file object>"))
            pieces = iter(lambda: file.read(_PIECE) or None, None)
        else:
            name, pieces = "<lines>", map(_ended, file)
        yield name, _line_blocks(_texts(pieces, encoding, name))


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
        decoder = codecs.getincrementaldecoder(encoding or "utf-8")()
        decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
    n_lines, begun = 0, False
    for piece, final in chain(((piece, False) for piece in pieces), [(first[:0], True)]):
        try:
            text = decoder.decode(piece, final=final)
        except UnicodeDecodeError as error:
            number = n_lines + error.object.count(b"\n", 0, error.start) + 1
            remedy = "pass encoding=, for example 'latin-1'" if encoding else "convert the file"
            raise not_in_encoding(error, f"{name}, line {number}", remedy) from error
        if text and not begun:
            text, begun = text.removeprefix(BYTE_ORDER_MARK), True
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
