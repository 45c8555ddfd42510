"""Writer of column files, and of text that is read back as it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from skstruct.datasets.conll import DOCSTART
from skstruct.datasets.text_lines import BYTE_ORDER_MARK, GZIP_MAGIC, splitter
from skstruct.metrics.labels import sequences_of
from skstruct.utils.files import write_whole
from skstruct.utils.messages import short_repr
from skstruct.utils.public_paths import set_module

__all__ = ["encoded", "write_conll", "write_lines"]


@set_module("skstruct.datasets")
def write_conll(
    path_or_file,
    tokens,
    labels=None,
    *,
    encoding="utf-8",
    separator=None,
    comment=None,
    skip_docstart=True,
):
    r"""Write a column file: one token per line, a blank line after each sequence.

    `read_conll` with the same options returns the tokens and labels as they were; what it could
    not read back is an error. Tokens that are tuples of one column come back as strings.

    Parameters
    ----------
    path_or_file : str, path-like or file object
        The file. It is written whole or, if anything is wrong, not at all. A file object is open in
        text mode, and is not closed.
    tokens : sequence of sequences of str or of tuple of str
        The columns of each token.
    labels : sequence of sequences of str, default=None
        Labels, which become the last column.
    encoding : str, default="utf-8"
        Encoding of the file; a file object has its own.
    separator : str, default=None
        Separator of the columns, by default a space. Columns with spaces need another one, such as
        ``"\t"``.
    comment : str, default=None
        Prefix of lines that the reader is to skip. A token that begins with it is an error.
    skip_docstart : bool, default=True
        Whether the reader takes a line whose first column is ``-DOCSTART-`` as a boundary. Such a
        token is an error then.

    Raises
    ------
    ValueError
        If `labels` do not match `tokens`, there is no sequence or one is empty, tokens differ in
        their number of columns, or a token could not be read back: a column is empty, or has the
        separator, a line end or what the encoding lacks; the token is a comment or ``-DOCSTART-``,
        or the file would begin with a byte order mark. The message names the sequence and the
        token.
    OSError
        If the file cannot be written.

    See Also
    --------
    read_conll : Read column files.
    write_conllu : Write CoNLL-U files, with their comments.

    Examples
    --------
    >>> import sys
    >>> from skstruct.datasets import write_conll
    >>> write_conll(sys.stdout, [[("He", "PRP"), ("sleeps", "VBZ")], [("Yes", "UH")]],
    ...             [["B-NP", "B-VP"], ["O"]])
    He PRP B-NP
    sleeps VBZ B-VP
    <BLANKLINE>
    Yes UH O
    <BLANKLINE>
    """
    tokens = sequences_of(tokens, "tokens")
    labels = None if labels is None else sequences_of(labels, "labels")
    if labels is not None and len(labels) != len(tokens):
        raise ValueError(f"{len(tokens)} sequences of tokens, but labels for {len(labels)}.")
    if not tokens:
        raise ValueError("There is no sequence, and a file without tokens could not be read back.")
    write = _Line(separator, comment, skip_docstart)
    lines, places = [], []
    for i, sequence in enumerate(tokens):
        given = [()] * len(sequence) if labels is None else [(label,) for label in labels[i]]
        if len(given) != len(sequence):
            raise ValueError(f"Sequence {i} has {len(sequence)} tokens, but {len(given)} labels.")
        if not sequence:
            raise ValueError(f"Sequence {i} is empty, which a column file cannot express.")
        lines += [write(*pair, i, t) for t, pair in enumerate(zip(sequence, given, strict=True))]
        lines.append("")
        places += [(i, t) for t in range(len(sequence) + 1)]
    write_lines(path_or_file, lines, lambda number: _place(*places[number]), encoding)


def _place(i, t):
    return f"Sequence {i}, token {t}"


class _Line:
    """Line of a token, checked to be read back as it was."""

    def __init__(self, separator, comment, skip_docstart):
        self.width = None
        self._separator = " " if separator is None else separator
        self._split = splitter(separator)
        self._comment = comment
        self._skip_docstart = skip_docstart

    def __call__(self, token, label, i, t):
        fields = [*_columns(token, i, t), *label]
        is_first = self.width is None
        if is_first:
            self.width = len(fields)
        if len(fields) != self.width:
            raise ValueError(f"{_place(i, t)}: {len(fields)} columns, but {self.width} before.")
        wrong = [field for field in fields if not isinstance(field, str)]
        if wrong:
            raise ValueError(
                f"{_place(i, t)}: {short_repr(wrong[0])} is not a string, as columns are."
            )
        line = self._separator.join(fields)
        fault = self._fault(line, fields, is_first)
        if fault:
            raise ValueError(f"{_place(i, t)}: {short_repr(fields)} could not be read back {fault}")
        return line

    def _fault(self, line, fields, is_first):
        """Why a line would not be read back, and what to do; None if it would."""
        same = bool(fields) and self._split(line) == fields and fields[-1]
        if not same or "\n" in line or "\r" in line:
            return (
                f"with the separator {self._separator!r}; choose another one, or change the column."
            )
        if self._skip_docstart and fields[0] == DOCSTART:
            return (
                "as a token, but as a boundary between documents; pass skip_docstart=False to "
                "writer and reader, or change the token."
            )
        if self._comment is not None and line.startswith(self._comment):
            return f"with comments that begin with {self._comment!r}; change the token."
        if is_first and line.startswith(BYTE_ORDER_MARK):
            return "at the start of a file, where a byte order mark is dropped; change the token."
        return None


def _columns(token, i, t):
    """Columns of a token."""
    if isinstance(token, str):
        return (token,)
    if isinstance(token, (bytes, Mapping, AbstractSet)) or not isinstance(token, Iterable):
        raise ValueError(
            f"{_place(i, t)}: {short_repr(token)} is neither a string nor a tuple of strings, as "
            "tokens of a column file are."
        )
    return token


def write_lines(path_or_file, lines, place, encoding):
    """Write lines to a file object, or to a file as a whole.

    Parameters
    ----------
    path_or_file : str, path-like or file object
    lines : list of str
    place : callable
        ``place(number)`` names a line, for messages.
    encoding : str
        Encoding of the file, unless it is a file object.

    Raises
    ------
    ValueError
        If a line could not be read back from its encoding; the message has its place.
    """
    lines = [f"{line}\n" for line in lines]
    if not hasattr(path_or_file, "write"):
        write_whole(path_or_file, encoded(lines, place, encoding))
        return
    encoding = getattr(path_or_file, "encoding", None)
    if encoding is not None:
        encoded(lines, place, encoding, getattr(path_or_file, "errors", None) or "strict")
    path_or_file.write("".join(lines))


def encoded(pieces, place, encoding, errors="strict"):
    """Bytes of pieces of text, checked to be read back as they were.

    Parameters
    ----------
    pieces : list of str
    place : callable
        ``place(number)`` names a piece, for messages.
    encoding, errors : str
        As of `str.encode`.

    Returns
    -------
    content : bytes

    Raises
    ------
    ValueError
        If the encoding has not all of the characters, or takes some for others.
    """
    content = _survivor("".join(pieces), encoding, errors)
    if content is not None:
        return content
    bad = next((k for k, p in enumerate(pieces) if _survivor(p, encoding, errors) is None), 0)
    raise ValueError(
        f"{place(bad)}: {short_repr(pieces[bad].rstrip())} could not be read back from a file in "
        f"{encoding}; choose another encoding, or change the text."
    )


def _survivor(text, encoding, errors):
    """Bytes of a text; None if they are not read as the text."""
    try:
        content = text.encode(encoding, errors)
        # Bytes that look like those of a gzipped file are taken for one.
        same = content.decode(encoding) == text and not content.startswith(GZIP_MAGIC)
    except UnicodeError:
        return None
    return content if same else None
