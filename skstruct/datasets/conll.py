"""Reader for column files with one token per line: the CoNLL formats and similar ones."""

import gzip
import zlib
from itertools import chain, islice, takewhile
from numbers import Integral
from operator import itemgetter, methodcaller

from skstruct.datasets.text_lines import GZIP_MAGIC, open_line_blocks, splitter
from skstruct.utils.messages import short_repr
from skstruct.utils.public_paths import set_module

__all__ = ["DOCSTART", "TokenLines", "batched", "iter_conll", "parsed_lines", "read_conll"]

# First column of the lines between documents, in the files of the CoNLL tasks.
DOCSTART = "-DOCSTART-"
# Distinct lines whose tokens a stream caches: in text, most lines repeat early ones.
_REMEMBERED = 1 << 16


@set_module("skstruct.datasets")
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
    r"""Read a column file: one token per line, a blank line after each sequence.

    Gzipped files are recognised by their content. Line ends of any kind, trailing blanks, several
    blank lines in a row, a missing newline at the end of the file and a byte order mark are
    accepted.

    Parameters
    ----------
    path_or_file : str, path-like, file object or iterable of lines
        The file; a file object may be open in binary or in text mode, and is not closed.
    columns : int or sequence of int, default=None
        The columns of a token, counted from 0, or from the end if negative. By default, all columns
        but the label. With an int, or by default if only one column is left, tokens are str;
        otherwise tuples of str. Equal tokens are the same object.
    label : int or None, default=-1
        The column of the label; None for files without labels.
    encoding : str, default="utf-8"
        Encoding of the file; ignored for a file object in text mode.
    separator : str, default=None
        Separator of the columns, by default any run of spaces and tabs. With a separator such as
        ``"\t"``, a token may contain spaces or be empty.
    comment : str, default=None
        Prefix of lines to skip, such as ``"#"``. By default, there are no comments.
    skip_docstart : bool, default=True
        Read a line whose first column is ``-DOCSTART-`` as a boundary between documents, as in the
        CoNLL files, instead of as a token.

    Returns
    -------
    tokens : list of list of str or of tuple of str
        The sequences.
    labels : list of list of str, or None
        Their labels, each as long as its sequence. None if `label` is None.

    Raises
    ------
    ValueError
        If lines differ in their number of columns, lack a requested column, or have an empty
        label; if the file is not in the encoding, is a damaged gzip file or has no token. The
        message names the file and, if possible, the line.
    OSError
        If the file cannot be opened.

    See Also
    --------
    iter_conll : Read sequence by sequence.
    read_conllu : Read CoNLL-U files.
    write_conll : Write column files.

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
    parsed = parsed_lines(
        path_or_file,
        columns=columns,
        label=label,
        encoding=encoding,
        separator=separator,
        skip=_starting_with(comment),
        skip_docstart=skip_docstart,
    )
    tokens, labels = map(list, zip(*parsed, strict=True))
    return tokens, None if label is None else labels


@set_module("skstruct.datasets")
def iter_conll(
    path_or_file,
    *,
    batch_size=None,
    columns=None,
    label=-1,
    encoding="utf-8",
    separator=None,
    comment=None,
    skip_docstart=True,
):
    r"""Iterate over the sequences of a column file, one by one or in batches.

    Accepts the same files as `read_conll`, but keeps only one batch in memory. This suits files
    that are larger than the memory and endless streams.

    Parameters
    ----------
    path_or_file : str, path-like, file object or iterable of lines
        The file; a file object may be open in binary or in text mode, and is not closed.
    batch_size : int, default=None
        Sequences in a batch; the last one may have fewer. By default, yield single sequences.
    columns : int or sequence of int, default=None
        The columns of a token, as in `read_conll`.
    label : int or None, default=-1
        The column of the label; None for files without labels.
    encoding : str, default="utf-8"
        Encoding of the file; ignored for text.
    separator : str, default=None
        Separator of the columns, by default any run of spaces and tabs.
    comment : str, default=None
        Prefix of lines to skip.
    skip_docstart : bool, default=True
        Read a line whose first column is ``-DOCSTART-`` as a boundary between documents.

    Yields
    ------
    tokens : list
        The tokens of a sequence, str or tuples of str; with `batch_size` a list of such lists.
    labels : list or None
        Their labels; with `batch_size` a list of such lists. None if `label` is None.

    Raises
    ------
    ValueError
        As in `read_conll`, once the iterator reaches the error; or if `batch_size` is not a
        positive integer.
    OSError
        If the file cannot be opened.

    See Also
    --------
    read_conll : Read the whole file.

    Examples
    --------
    >>> from skstruct.datasets import iter_conll
    >>> lines = ["He PRP B-NP", "sleeps VBZ B-VP", "", "Yes UH O"]
    >>> for tokens, labels in iter_conll(lines, columns=0):
    ...     print(tokens, labels)
    ['He', 'sleeps'] ['B-NP', 'B-VP']
    ['Yes'] ['O']
    >>> for X, y in iter_conll(lines, columns=0, batch_size=100):
    ...     print(X, y)
    [['He', 'sleeps'], ['Yes']] [['B-NP', 'B-VP'], ['O']]
    """
    if batch_size is not None and not (isinstance(batch_size, Integral) and batch_size >= 1):
        raise ValueError(
            f"batch_size must be None or a positive integer, got {short_repr(batch_size)}."
        )
    sequences = parsed_lines(
        path_or_file,
        columns=columns,
        label=label,
        encoding=encoding,
        separator=separator,
        skip=_starting_with(comment),
        skip_docstart=skip_docstart,
        remembered=_REMEMBERED,
    )
    return sequences if batch_size is None else batched(sequences, batch_size, label is not None)


def batched(sequences, batch_size, labelled=True):
    """Yield lists of the tokens and of the labels of so many sequences.

    Parameters
    ----------
    sequences : iterator of (tokens, labels)
    batch_size : int
    labelled : bool, default=True
        With False, None takes the place of the labels.

    Yields
    ------
    X, y : list
    """
    while batch := list(islice(sequences, batch_size)):
        tokens, labels = map(list, zip(*batch, strict=True))
        yield tokens, labels if labelled else None


def _starting_with(comment):
    """Function that is true of comments; None without them."""
    return None if comment is None else methodcaller("startswith", comment)


def parsed_lines(
    source, *, encoding="utf-8", skip=None, label=None, remembered=float("inf"), **layout
):
    """Yield tokens and labels of each sequence of a file.

    Parameters
    ----------
    source : str, path-like, file object or iterable of lines
    encoding : str or None
        As of `open_line_blocks`.
    skip : callable, default=None
        Tells lines to skip.
    label : int or None
        Column of the label.
    remembered : float
        Distinct lines to cache, about.
    **layout
        Of the columns, for `TokenLines`.

    Yields
    ------
    tokens, labels : list
        Labels are None if `label` is.
    """
    with open_line_blocks(source, encoding) as (name, blocks):
        tokens = TokenLines(name, label, **layout)
        before, labels_before = [], []
        for block in chain(blocks, [[""]]):
            if len(tokens) > remembered:
                tokens.forget()
            tokens.enter(block)
            lines = block if skip is None else [line for line in block if not skip(line)]
            found, labels, error = tokens.read(lines)
            start = 0
            for end in [i for i, token in enumerate(found) if token is None]:
                if start < end or before:
                    sequence = before + found[start:end]
                    yield sequence, None if label is None else labels_before + labels[start:end]
                    before, labels_before = [], []
                start = end + 1
            before += found[start:]
            labels_before += labels[start:]
            if error is not None:
                raise error
    if tokens.width is None:
        raise ValueError(f"{name}: the file has no tokens")


class TokenLines(dict):
    """Cache of the token of each line, None for the end of a sequence; labels are in `labels`.

    Most lines occur many times, and are parsed at the first look-up. Equal tokens and equal fields
    are the same object.
    """

    def __init__(
        self, name, label, *, columns, separator, skip_docstart=False, width=None, unknown=None
    ):
        super().__init__()
        self.labels = {}
        self.width = None
        self._wanted_width = width
        self._unknown = unknown
        self._name = name
        self._columns = columns
        self._label = label
        self._split = splitter(separator)
        self._skip_docstart = skip_docstart
        self._same = {}
        self._block, self._n_lines = [], 0

    def enter(self, block):
        """Move on to the next block of lines."""
        self._n_lines += len(self._block)
        self._block = block

    def read(self, lines):
        """Tokens and labels of lines up to the first bad one, and the error about it or None."""
        try:
            found, error = list(map(self.__getitem__, lines)), None
        except ValueError as bad_line:
            lines, error = list(takewhile(self.__contains__, lines)), bad_line
            found = list(map(self.__getitem__, lines))
        return found, list(map(self.labels.__getitem__, lines)), error

    def forget(self):
        """Clear the cache."""
        self.clear()
        self.labels.clear()
        self._same.clear()

    def __missing__(self, line):
        fields = self._split(line)
        if not fields or (self._skip_docstart and fields[0] == DOCSTART):
            self[line] = self.labels[line] = None
            return None
        if self.width is None:
            self._set_layout(line, len(fields))
        elif len(fields) != self.width:
            raise ValueError(
                f"{self._place(line)}: {_columns(len(fields))}, but line {self._first} has "
                f"{self.width}: {line!r}"
            )
        same = self._same.setdefault
        fields = list(map(same, fields, fields))
        label = None if self._label is None else fields[self._label]
        if label == "":
            raise ValueError(f"{self._place(line)}: the label is empty: {line!r}")
        if label is not None and label == self._unknown:
            label = None
        token = self._take(fields)
        self[line] = token = same(token, token)
        self.labels[line] = label
        return token

    def _set_layout(self, line, width):
        if self._wanted_width not in (None, width):
            raise ValueError(
                f"{self._place(line)}: {_columns(width)}, but {self._wanted_width} are expected, "
                f"separated by tabs: {line!r}"
            )
        label, columns = _resolved(self._columns, self._label, width, self._place(line))
        self.width, self._label = width, label
        self._first = self._number(line)
        several = isinstance(columns, list)
        self._take = itemgetter(*columns) if several else itemgetter(columns)
        if several and len(columns) == 1:
            self._take = lambda fields: (fields[columns[0]],)

    def _number(self, line):
        return self._n_lines + self._block.index(line) + 1

    def _place(self, line):
        return f"{self._name}, line {self._number(line)}"


def unpacked(content, name):
    """Decompress bytes if they are gzipped."""
    if not content.startswith(GZIP_MAGIC):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{name}: the gzip data is truncated or damaged ({error})") from error


def _resolved(columns, label, width, where):
    """Resolve `label` and `columns` to column numbers from 0, in files with `width` columns."""

    def resolve(column, parameter):
        if not -width <= column < width:
            raise ValueError(f"{where}: {_columns(width)}, so {parameter}={column} does not exist")
        return column % width

    label_column = None if label is None else resolve(label, "label")
    if columns is None:
        token_columns = [column for column in range(width) if column != label_column]
        if not token_columns:
            raise ValueError(
                f"{where}: 1 column, so either the token or the label is missing; "
                f"pass label=None to read tokens without labels"
            )
        return label_column, token_columns[0] if len(token_columns) == 1 else token_columns
    single = isinstance(columns, int)
    token_columns = [resolve(column, "columns") for column in ([columns] if single else columns)]
    if not token_columns or label_column in token_columns:
        raise ValueError(
            f"columns={columns} must have at least one column, and not that of the label ({label})"
        )
    return label_column, token_columns[0] if single else token_columns


def _columns(count):
    return "1 column" if count == 1 else f"{count} columns"
