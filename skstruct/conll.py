"""Reader for column files, one token a line: the CoNLL formats and their many relatives."""

import gzip
import os
import re
import zlib
from itertools import pairwise

__all__ = ["read_conll"]

_GZIP_MAGIC = b"\x1f\x8b"

# Not str.split: that also splits at no-break spaces and the like, which occur inside tokens.
_split_at_blanks = re.compile(r"[^ \t\f\v]+").findall


def read_conll(
    path_or_file,
    *,
    columns=None,
    label=-1,
    encoding="utf-8",
    separator=None,
    comment=None,
    skip_docstart=True,
):
    r"""Read a column file: one token a line, a blank line after each sequence.

    Plain and gzipped files are told apart by their content. Line ends of any kind, blanks at the
    end of a line, several blank lines in a row, a missing newline at the end of the file and a
    byte order mark are all fine.

    Parameters
    ----------
    path_or_file : str, path-like or file object
        The file; a file object may be open in binary or in text mode, and is not closed.
    columns : int or sequence of int, default=None
        The columns that make up a token, counted from 0, or from the end if negative. None stands
        for all columns but the label. With an int, or with None and only one such column, tokens
        are str; otherwise they are tuples of str.
    label : int or None, default=-1
        The column of the label. None if the file has none.
    encoding : str, default="utf-8"
        Encoding of the file; not used for a file object open in text mode.
    separator : str, default=None
        What separates the columns. None stands for any run of spaces and tabs. With a separator
        such as ``"\t"`` a token may contain spaces, or be empty.
    comment : str, default=None
        Lines that start with this are left out, such as ``"#"`` in CoNLL-U files. None if the
        file has no comments.
    skip_docstart : bool, default=True
        Whether to take a line whose first column is ``-DOCSTART-`` for what it is in the CoNLL
        files, a boundary between documents, and not for a token.

    Returns
    -------
    tokens : list of list of str or of tuple of str
        The sequences.
    labels : list of list of str, or None
        Their labels, each as long as its sequence. None if `label` is None.

    Raises
    ------
    ValueError
        If lines differ in their number of columns, lack a column that is asked for, or have an
        empty label; if the file is not in the encoding, is a damaged gzip file or has no token.
        The message names the file and, where there is one, the line.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import io
    >>> from skstruct.datasets import read_conll
    >>> file = io.StringIO("He PRP B-NP\nsleeps VBZ B-VP\n\nYes UH O\n")
    >>> tokens, labels = read_conll(file)
    >>> tokens
    [[('He', 'PRP'), ('sleeps', 'VBZ')], [('Yes', 'UH')]]
    >>> labels
    [['B-NP', 'B-VP'], ['O']]

    Only the words:

    >>> read_conll(io.StringIO("He PRP B-NP\nsleeps VBZ B-VP\n"), columns=0)[0]
    [['He', 'sleeps']]
    """
    name, content = _read(path_or_file)
    text = content if isinstance(content, str) else _decoded(content, encoding, name)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")

    # One flat list of fields, cut into columns at the end: a list a line kept alive would have the
    # garbage collector go through all of them again and again.
    fields, ends, width = [], [0], None
    for number, line in enumerate(text.split("\n"), start=1):
        if comment is not None and line.startswith(comment):
            continue
        row = _split_at_blanks(line) if separator is None else _split_at(separator, line)
        if not row or (skip_docstart and row[0] == "-DOCSTART-"):
            if len(fields) > ends[-1]:
                ends.append(len(fields))
            continue
        if width is None:
            width, first = len(row), number
            label_column, token_columns = _resolved(columns, label, width, f"{name}, line {first}")
        if len(row) != width:
            raise ValueError(
                f"{name}, line {number}: {_columns(len(row))}, but line {first} has {width}: "
                f"{line!r}"
            )
        if label_column is not None and not row[label_column]:
            raise ValueError(f"{name}, line {number}: the label is empty: {line!r}")
        fields += row
    if width is None:
        raise ValueError(f"{name}: there is no token in this file")
    if len(fields) > ends[-1]:
        ends.append(len(fields))

    def sequences(items):
        return [items[start // width : end // width] for start, end in pairwise(ends)]

    if isinstance(token_columns, int):
        tokens = fields[token_columns::width]
    else:
        tokens = list(zip(*(fields[column::width] for column in token_columns), strict=True))
    labels = None if label_column is None else sequences(fields[label_column::width])
    return sequences(tokens), labels


def unpacked(content, name):
    """Return bytes gunzipped if they are gzipped, as they are otherwise."""
    if not content.startswith(_GZIP_MAGIC):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{name}: the gzip data is cut off or damaged ({error})") from error


def _read(path_or_file):
    if hasattr(path_or_file, "read"):
        name = str(getattr(path_or_file, "name", "<file object>"))
        content = path_or_file.read()
    else:
        name = os.fspath(path_or_file)
        with open(path_or_file, "rb") as file:
            content = file.read()
    return name, content if isinstance(content, str) else unpacked(content, name)


def _decoded(content, encoding, name):
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{name}, line {number}: not {encoding} text "
            f"(byte {content[error.start]:#04x}: {error.reason}); pass encoding=, for example "
            f"'latin-1'"
        ) from error


def _split_at(separator, line):
    # Blanks at the end of a line are noise, but a separator there announces an empty column.
    stripped = line.rstrip(" ") if separator.strip(" ") else line
    return stripped.split(separator) if stripped.strip() else []


def _resolved(columns, label, width, where):
    """Turn `label` and `columns` into column numbers from 0, for files of this many columns."""

    def resolve(column, parameter):
        if not -width <= column < width:
            raise ValueError(f"{where}: {_columns(width)}, none for {parameter}={column}")
        return column % width

    label_column = None if label is None else resolve(label, "label")
    if columns is None:
        token_columns = [column for column in range(width) if column != label_column]
        if not token_columns:
            raise ValueError(
                f"{where}: one column, so either the token or the label is missing; "
                f"pass label=None to read tokens without labels"
            )
        return label_column, token_columns[0] if len(token_columns) == 1 else token_columns
    single = isinstance(columns, int)
    token_columns = [resolve(column, "columns") for column in ([columns] if single else columns)]
    if not token_columns or label_column in token_columns:
        raise ValueError(
            f"columns={columns} must name at least one column, and not the label's ({label})"
        )
    return label_column, token_columns[0] if single else token_columns


def _columns(count):
    return "1 column" if count == 1 else f"{count} columns"
