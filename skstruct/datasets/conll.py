"""Files with one token a line: columns, as in the CoNLL formats, or a label and features."""

import codecs
import csv
import io
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain, islice, takewhile
from math import isfinite
from numbers import Integral
from operator import itemgetter, methodcaller

from skstruct.metrics.labels import check_lengths, sequences_of
from skstruct.utils.files import not_in_encoding, write_whole
from skstruct.utils.messages import DataError, check_choice, check_count, given, short_repr
from skstruct.utils.persistence import set_module

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = "\ufeff"
_PIECE = 1 << 16
# Window bits of zlib for data with a gzip header.
_GZIP_WINDOW = 31
# Not str.split or str.strip, which also take no-break spaces; these occur inside tokens.
_BLANKS = " \t\f\v"
_split_at_blanks = re.compile(f"[^{_BLANKS}]+").findall


def splitter(separator):
    """Make the function that splits a line into columns; at blanks if `separator` is None."""
    if separator is None:
        return _split_at_blanks
    if not isinstance(separator, str) or not separator:
        raise ValueError(
            f"separator must be a string that is not empty, or None, got {short_repr(separator)}."
        )
    return _split_csv[separator] if separator in _split_csv else partial(_split_at, separator)


def _split_quoted(separator, line):
    """Columns of a line of a CSV file, whose separators may stand between quotes."""
    if '"' not in line:
        return _split_at(separator, line)
    try:
        fields = next(csv.reader([line], delimiter=separator))
    except csv.Error as error:
        raise ValueError(f"no columns of a CSV file, {error}") from error
    return [*fields[:-1], fields[-1].rstrip(" ")]


_split_csv = {separator: partial(_split_quoted, separator) for separator in ",;"}


def _join(separator, fields):
    """Line of columns, with quotes in CSV files where they are needed."""
    if separator not in _split_csv:
        return (" " if separator is None else separator).join(fields)
    return separator.join(
        '"{}"'.format(field.replace('"', '""')) if {'"', separator} & set(field) else field
        for field in fields
    )


# Names of columns in the first lines of files, and those that tell sentences apart.
_SENTENCE_NAMES = (
    *("sentence #", "sentence", "sentence_id", "sentence id", "sentenceid", "sentence_idx"),
    *("sentence_number", "sentence_no", "sent_id", "sent_idx", "sent", "sentno", "seq_id"),
)
_COLUMN_NAMES = {
    *_SENTENCE_NAMES,
    *("word", "words", "token", "tokens", "form", "text", "lemma", "pos", "pos_tag", "upos"),
    *("xpos", "chunk", "chunk_tag", "tag", "tags", "label", "labels", "ner", "ner_tag", "iob"),
    *(
        "bio",
        "entity",
        "predicted",
        "prediction",
        "probability",
        "shape",
        "index",
        "id",
        "doc",
        "doc_id",
    ),
}


def is_header(fields):
    """Return True for a line that names columns, such as word, pos and tag, each once."""
    names = [field.strip().lower() for field in fields]
    return 1 < len(names) == len(set(names)) and set(names) <= _COLUMN_NAMES | {""}


def sentence_column_of(fields):
    """Number of the column that tells sentences apart, by the names of columns; else None."""
    names = [field.strip().lower() for field in fields]
    return next((names.index(name) for name in _SENTENCE_NAMES if name in names), None)


def _split_at(separator, line):
    # Trailing blanks are noise, but a trailing separator precedes an empty column.
    stripped = line.rstrip(" ") if separator.strip(" ") else line
    return stripped.split(separator) if stripped.strip(_BLANKS) else []


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
    """Append a newline unless there is one."""
    end = "\n" if isinstance(line, str) else b"\n"
    return line if line.endswith(end) else line + end


def _texts(pieces, encoding, name):
    """Decode pieces of a source, with newlines for line ends of any kind."""
    first = next(pieces, "")
    pieces, decoder = chain([first], pieces), None
    if not isinstance(first, str):
        pieces = _unpacked(pieces, name)
        decoder = codecs.getincrementaldecoder(encoding or "utf-8")()
    decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
    n_lines, begun = 0, False
    for piece, final in chain(((piece, False) for piece in pieces), [(first[:0], True)]):
        try:
            text = decoder.decode(piece, final=final)
        except UnicodeDecodeError as error:
            number = n_lines + error.object.count(b"\n", 0, error.start) + 1
            remedy = "convert the file"
            if encoding:
                remedy = f"pass {given('encoding', _guess(error.object, n_lines))}, for example"
            raise not_in_encoding(error, f"{name}, line {number}", remedy) from error
        if text and not begun:
            text, begun = text.removeprefix(BYTE_ORDER_MARK), True
        n_lines += text.count("\n")
        yield text


def _guess(content, n_lines):
    """Encoding that bytes may be in: UTF-16 where they begin with its mark."""
    begins = n_lines == 0 and content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if begins else "latin-1"


def _unpacked(pieces, name):
    """Decompress pieces of bytes if they are gzipped."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= len(GZIP_MAGIC):
            break
    pieces = chain([head], pieces)
    if not head.startswith(GZIP_MAGIC):
        yield from pieces
        return
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


def unpacked(content, name):
    """Decompress bytes if they are gzipped."""
    return b"".join(_unpacked(iter([content]), name))


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
    header=None,
    sentence_column=None,
):
    r"""Read a column file: one token per line, a blank line after each sequence.

    Gzipped files are recognised by their content. Line ends of any kind, trailing blanks, several
    blank lines in a row, a missing newline at the end of the file and a byte order mark are
    accepted.

    Parameters
    ----------
    path_or_file : str, path-like, file object or iterable of lines
        The file; a file object may be open in binary or in text mode, and is not closed.
    columns : int, str or sequence of these, default=None
        The columns of a token, counted from 0, or from the end if negative, or their names in the
        header. By default, all columns but the label and the sentence column. With one column, or
        by default if only one is left, tokens are str; otherwise tuples of str. Equal tokens are
        the same object.
    label : int, str or None, default=-1
        The column of the label; None for files without labels.
    encoding : str, default="utf-8"
        Encoding of the file; ignored for a file object in text mode.
    separator : str, default=None
        Separator of the columns, by default any run of spaces and tabs. With a separator such as
        ``"\t"``, a token may contain spaces or be empty. With ``","`` or ``";"``, columns may be
        in quotes, as in CSV files.
    comment : str, default=None
        Prefix of lines to skip, such as ``"#"``. By default, there are no comments.
    skip_docstart : bool, default=True
        Read a line whose first column is ``-DOCSTART-`` as a boundary between documents, as in the
        CoNLL files, instead of as a token.
    header : bool, default=None
        Whether the first line names the columns. By default, it does if all its columns are usual
        names, such as ``word``, ``pos`` and ``tag``, or if a column is asked for by its name.
    sentence_column : int or str, default=None
        A column whose value tells sentences apart: a sequence also begins where it changes. Where
        it is empty, the sentence goes on. By default one with a usual name, such as
        ``Sentence #``, if there is a header.

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

    A CSV file that has a column of sentences and no blank lines:

    >>> file = io.StringIO('Sentence #,Word,Tag\n1,He,O\n,sleeps,O\n,",",O\n2,Yes,O\n')
    >>> read_conll(file, separator=",")
    ([['He', 'sleeps', ','], ['Yes']], [['O', 'O', 'O'], ['O']])
    """
    layout = {"columns": columns, "separator": separator, "skip_docstart": skip_docstart}
    layout |= {"header": header, "sentence_column": sentence_column}
    parsed = _parsed(path_or_file, label, encoding, comment, **layout)
    return next(batched(parsed, None, label is not None))


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
    header=None,
    sentence_column=None,
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
    header : bool, default=None
        Whether the first line names the columns, as in `read_conll`.
    sentence_column : int or str, default=None
        A column whose value tells sentences apart, as in `read_conll`.

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
    check_count("batch_size", batch_size, none=True)
    layout = {"columns": columns, "separator": separator, "skip_docstart": skip_docstart}
    layout |= {"header": header, "sentence_column": sentence_column}
    sequences = _parsed(path_or_file, label, encoding, comment, _REMEMBERED, **layout)
    return sequences if batch_size is None else batched(sequences, batch_size, label is not None)


def batched(sequences, batch_size, labelled=True):
    """Yield lists of the tokens and of the labels of `batch_size` sequences.

    Parameters
    ----------
    sequences : iterator of (tokens, labels)
    batch_size : int or None
        None for all of them at once.
    labelled : bool, default=True
        With False, None takes the place of the labels.

    Yields
    ------
    X, y : list
    """
    while batch := list(islice(sequences, batch_size)):
        tokens, labels = map(list, zip(*batch, strict=True))
        yield tokens, labels if labelled else None


def starting_with(comment):
    """Make the function that is true for lines of comments; None if there are no comments."""
    if comment is not None and not (isinstance(comment, (str, tuple)) and comment):
        raise ValueError(f"comment must be a prefix of lines, or None, got {short_repr(comment)}.")
    return None if comment is None else methodcaller("startswith", comment)


def _parsed(source, label, encoding, comment, remembered=float("inf"), **layout):
    """Yield tokens and labels of each sequence of a file, with the options of `TokenLines`."""
    with open_line_blocks(source, encoding) as (name, blocks):
        lines = TokenLines(name, label, **layout)
        yield from lines.sequences(blocks, starting_with(comment), remembered)


class TokenLines(dict):
    """Cache of the token of each line, None for the end of a sequence; labels are in `labels`.

    Most lines occur many times, and are parsed at the first look-up. Equal tokens and equal fields
    are the same object.
    """

    def __init__(
        self,
        name,
        label,
        *,
        columns,
        separator,
        skip_docstart=False,
        width=None,
        unknown=None,
        header=False,
        sentence_column=None,
    ):
        super().__init__()
        self.sentences = {}
        self._sentence = ""
        self._header, self._sentence_column = header, sentence_column
        self._names = None
        self.labels = {}
        self.width = None
        self._wanted_width = width
        self._unknown = unknown
        self._name = name
        self._columns = columns
        self._label = label
        self._split = splitter(separator)
        self._separated = separator is not None
        self._skip_docstart = skip_docstart
        self._same = {}
        self._block, self._n_lines = [], 0

    def enter(self, block):
        """Move on to the next block of lines."""
        self._n_lines += len(self._block)
        self._block = block

    def sequences(self, blocks, skip=None, remembered=float("inf")):
        """Yield tokens and labels of each sequence in blocks of lines.

        Parameters
        ----------
        blocks : iterable of list of str
        skip : callable, default=None
            Tells lines to skip.
        remembered : float
            Approximate number of distinct lines to cache.

        Yields
        ------
        tokens, labels : list
            Labels are None if there is no column of labels.
        """
        self._block, self._n_lines = [], 0
        before, labels_before = [], []
        for block in chain(blocks, [[""]]):
            if len(self) > remembered:
                for cache in (self, self.labels, self.sentences, self._same):
                    cache.clear()
            self.enter(block)
            lines = block if skip is None else [line for line in block if not skip(line)]
            error = None
            try:
                found = list(map(self.__getitem__, lines))
            except ValueError as bad_line:
                lines, error = list(takewhile(self.__contains__, lines)), bad_line
                found = list(map(self.__getitem__, lines))
            labels, start = list(map(self.labels.__getitem__, lines)), 0
            for end in self._ends(lines, found):
                if start < end or before:
                    of_sequence = labels_before + labels[start:end]
                    yield before + found[start:end], None if self._label is None else of_sequence
                    before, labels_before = [], []
                start = end + (found[end] is None)
            before += found[start:]
            labels_before += labels[start:]
            if error is not None:
                raise error
        if self.width is None:
            raise ValueError(f"{self._name}: the file has no tokens")

    def _ends(self, lines, found):
        """Positions of lines between sequences, or with which the next one begins."""
        if self._sentence_column is None:
            return [i for i, token in enumerate(found) if token is None]
        return [
            i
            for i, (line, token) in enumerate(zip(lines, found, strict=True))
            if token is None or self.begins(line)
        ]

    def begins(self, line):
        """Return True if a sentence begins with this line by its column, and another ends."""
        value = self.sentences.get(line, "")
        if value in ("", self._sentence):
            return False
        self._sentence = value
        return True

    def __missing__(self, line):
        try:
            fields = self._split(line)
        except ValueError as error:
            raise ValueError(f"{self._place(line)}: {error}") from error
        if not fields or (self._skip_docstart and fields[0] == DOCSTART):
            self[line] = self.labels[line] = None
            return None
        if self.width is None:
            if self._names is None and self._read_header(fields, line):
                self[line] = self.labels[line] = None
                return None
            self._set_layout(line, len(fields))
        elif len(fields) != self.width:
            raise ValueError(
                f"{self._place(line)}: {_columns(len(fields))}, but line {self._first} has "
                f"{self.width}{self._advice(line)}: {line!r}"
            )
        if self._sentence_column is not None:
            self.sentences[line] = fields[self._sentence_column].strip()
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

    def _advice(self, line):
        """What to pass where columns are not separated by blanks."""
        marks = {"\t": "tabs", ",": "commas", ";": "semicolons"}
        mark = None if self._separated else max(marks, key=line.count)
        if mark is None or mark not in line.strip(_BLANKS if mark == "\t" else None)[:-1]:
            return ""
        return f"; pass {given('separator', mark)} for {marks[mark]}"

    def _read_header(self, fields, line):
        """Return True for a line of names, by which columns are found."""
        columns = [self._columns] if isinstance(self._columns, (str, int)) else self._columns
        asked = [self._label, self._sentence_column]
        asked += columns if isinstance(columns, (list, tuple)) else []
        by_name = any(isinstance(column, str) for column in asked)
        self._names = ()
        seen = by_name or is_header(fields) if self._header is None else self._header
        if seen:
            self._names = [field.strip() for field in fields]
            # Errors name this line.
            self._numbered(line)
            if self._sentence_column is None:
                self._sentence_column = sentence_column_of(fields)
        return seen

    def _numbered(self, line):
        """Columns of tokens, of the label and of sentences, by numbers where they had names."""
        names = {name: number for number, name in enumerate(self._names)}

        def number(column, parameter):
            if isinstance(column, str) and column not in names:
                known = f": {', '.join(map(repr, names))}" if names else ", which there is not"
                raise ValueError(
                    f"{self._place(line)}: {parameter} has {column!r}; a column is a whole number, "
                    f"from 0, or a name in the header{known}"
                )
            return names[column] if isinstance(column, str) else column

        if isinstance(self._columns, Iterable) and not isinstance(self._columns, str):
            columns = [number(column, "columns") for column in self._columns]
        else:
            columns = number(self._columns, "columns")
        sentence = number(self._sentence_column, "sentence_column")
        return columns, number(self._label, "label"), sentence

    def _set_layout(self, line, width):
        if self._wanted_width not in (None, width):
            raise ValueError(
                f"{self._place(line)}: {_columns(width)}, but {self._wanted_width} are expected, "
                f"separated by tabs: {line!r}"
            )
        self._label, columns, self._sentence_column, single = _resolved(
            *self._numbered(line), width, self._place(line), self._advice(line)
        )
        self.width, self._first = width, self._number(line)
        if single or len(columns) > 1:
            self._take = itemgetter(*columns)
        else:
            self._take = lambda fields: (fields[columns[0]],)

    def _number(self, line):
        return self._n_lines + self._block.index(line) + 1

    def _place(self, line):
        return f"{self._name}, line {self._number(line)}"


def _resolved(columns, label, sentence, width, where, advice):
    """Resolve columns to numbers from 0, in files with `width` columns.

    Returns the columns of the label, the tokens and the sentences, and whether tokens
    are strings.
    """

    def resolve(column, parameter):
        if not isinstance(column, Integral):
            raise ValueError(
                f"{parameter} has {short_repr(column)}; a column is a whole number, from 0"
            )
        if not -width <= column < width:
            wanted = given(parameter, column)
            raise ValueError(f"{where}: {_columns(width)}, so {wanted} does not exist")
        return column % width

    label_column = None if label is None else resolve(label, "label")
    sentence_column = None if sentence is None else resolve(sentence, "sentence_column")
    if sentence_column is not None and sentence_column == label_column:
        raise ValueError(
            f"{where}: {given('sentence_column', sentence)} is the column of the label ({label})"
        )
    if columns is None:
        others = (label_column, sentence_column)
        token_columns = [column for column in range(width) if column not in others]
        if not token_columns:
            raise ValueError(
                f"{where}: {_columns(width)}, so either the token or the label is missing; "
                f"a line has both, unless label is None{advice}"
            )
        return label_column, token_columns, sentence_column, len(token_columns) == 1
    single = not isinstance(columns, Iterable)
    token_columns = [resolve(column, "columns") for column in ([columns] if single else columns)]
    if not token_columns or label_column in token_columns:
        raise ValueError(
            f"{given('columns', columns)} must have at least one column, and not the label's "
            f"({label})"
        )
    return label_column, token_columns, sentence_column, single


def _columns(count):
    return "1 column" if count == 1 else f"{count} columns"


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
    if labels is not None:
        labels = sequences_of(labels, "labels")
        check_lengths(tokens, labels)
    if not tokens:
        raise ValueError("There is no sequence, and a file without tokens could not be read back.")
    lines, places, width = [], [], None
    for i, sequence in enumerate(tokens):
        if not sequence:
            raise DataError("{place} is empty, which a column file cannot express.", i)
        for t, token in enumerate(sequence):
            try:
                fields = [*_columns_of_token(token), *([] if labels is None else [labels[i][t]])]
                lines.append(_checked_line(fields, width, separator, comment, skip_docstart))
            except ValueError as error:
                raise DataError.of(error, i, t) from None
            width = len(fields)
        lines.append("")
        places += [(i, t) for t in range(len(sequence) + 1)]
    write_lines(path_or_file, lines, lambda number: _place(*places[number]), encoding)


def _place(i, t):
    return f"Sequence {i}, token {t}"


def _columns_of_token(token):
    if isinstance(token, str):
        return (token,)
    if isinstance(token, (bytes, Mapping, AbstractSet)) or not isinstance(token, Iterable):
        raise ValueError(
            f"{short_repr(token)} is neither a string nor a tuple of strings, as tokens of a "
            "column file are."
        )
    return token


def _checked_line(fields, width, separator, comment, skip_docstart):
    """Line of a token, checked to be read back as it was; `width` is None for the first."""
    if width not in (None, len(fields)):
        raise ValueError(f"{len(fields)} columns, but {width} before.")
    wrong = [field for field in fields if not isinstance(field, str)]
    if wrong:
        raise ValueError(f"{short_repr(wrong[0])} is not a string, as columns are.")
    split, blank = splitter(separator), " " if separator is None else separator
    line = _join(separator, fields)
    is_same = split(line) == fields and any(fields[-1:])
    if not is_same or "\n" in line or "\r" in line:
        fault = f"with the separator {blank!r}; choose another one, or change the column."
    elif skip_docstart and fields[0] == DOCSTART:
        fault = (
            "as a token, but as a boundary between documents; pass skip_docstart=False to "
            "writer and reader, or change the token."
        )
    elif comment is not None and line.startswith(comment):
        fault = f"with comments that begin with {comment!r}; change the token."
    elif width is None and is_header(fields):
        fault = "as a token, but as names of columns; change the token, or put another one first."
    elif width is None and line.startswith(BYTE_ORDER_MARK):
        fault = "at the start of a file, where a byte order mark is dropped; change the token."
    else:
        return line
    raise ValueError(f"{short_repr(fields)} could not be read back {fault}")


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
        If the encoding lacks a character, or would read one back as another.
    """
    content = _encode_reversibly("".join(pieces), encoding, errors)
    if content is not None:
        return content
    bad = next(
        (k for k, p in enumerate(pieces) if _encode_reversibly(p, encoding, errors) is None), 0
    )
    raise ValueError(
        f"{place(bad)}: {short_repr(pieces[bad].rstrip())} could not be read back from a file in "
        f"{encoding}; choose another encoding, or change the text."
    )


def _encode_reversibly(text, encoding, errors):
    """Encode a text; None if it would be decoded as another one."""
    try:
        content = text.encode(encoding, errors)
        # Bytes that begin like a gzipped file would be read as one.
        same = content.decode(encoding) == text and not content.startswith(GZIP_MAGIC)
    except UnicodeError:
        return None
    return content if same else None


# Features

# A colon that is not escaped separates the name of an attribute from its value.
_COLON = re.compile(r"(?<!\\)((?:\\\\)*):")
_ESCAPED = re.compile(r"\\([:\\])")


@set_module("skstruct.datasets")
def read_features(path_or_file, *, format="crfsuite", encoding="utf-8"):
    r"""Read a file of features as CRFsuite or Wapiti takes it.

    Parameters
    ----------
    path_or_file : str, path-like, file object or iterable of lines
        The file; plain or gzipped. A line has a token, a blank line ends a sequence.
    format : {"crfsuite", "wapiti"}, default="crfsuite"
        "crfsuite": a tab stands between the label, which comes first, and the attributes, each a
        name or ``name:value``; in names and labels, ``\:`` stands for a colon and ``\\`` for a
        backslash. There are no declarations such as ``@weight:2.0``.
        "wapiti": blanks stand between the features, and the label comes last, as Wapiti reads files
        without a template; only its features ``u...`` and ``*...`` of tokens are read.
    encoding : str, default="utf-8"
        Encoding of the file.

    Returns
    -------
    tokens : list of list of dict
        For each token a dict of the values of its attributes, 1.0 where there is none; a value that
        occurs twice is added up, as in CRFsuite.
    labels : list of list of str
        The labels.

    Raises
    ------
    ValueError
        If a value is no finite number, a label is empty or a declaration, or a line of Wapiti
        begins a feature with another letter; the message names the file and the line.
    OSError
        If the file cannot be opened.

    See Also
    --------
    read_conll : Read files with columns, from which a template makes features.

    Examples
    --------
    >>> from skstruct.datasets import read_features
    >>> X, y = read_features(["B-NP\tw=The\tlength:3", "I-NP\tw=cat\tt\\:0", "", "O\tw=!"])
    >>> X
    [[{'w=The': 1.0, 'length': 3.0}, {'w=cat': 1.0, 't:0': 1.0}], [{'w=!': 1.0}]]
    >>> y
    [['B-NP', 'I-NP'], ['O']]
    """
    check_choice("format", format, ("crfsuite", "wapiti"))
    parse = _crfsuite if format == "crfsuite" else _wapiti
    X, y = [[]], [[]]
    with open_line_blocks(path_or_file, encoding) as (name, blocks):
        for number, line in enumerate(chain.from_iterable(blocks), start=1):
            if line.strip(_BLANKS):
                try:
                    label, token = parse(line)
                except ValueError as error:
                    raise ValueError(f"{name}, line {number}: {error}") from None
                X[-1].append(token)
                y[-1].append(label)
            elif X[-1]:
                X.append([])
                y.append([])
    if not X[0]:
        raise ValueError(f"{name}: the file has no tokens")
    return list(filter(None, X)), list(filter(None, y))


def _crfsuite(line):
    label, *attributes = line.split("\t")
    if not label.strip(_BLANKS):
        raise ValueError("the label, which comes first, is empty")
    if label.startswith("@") and _COLON.search(label):
        raise ValueError(
            f"{short_repr(label)} is a declaration and no token; remove it, and pass weights of "
            "sequences as sample_weight to fit"
        )
    token = {}
    for attribute in filter(None, attributes):
        name, value = attribute, 1.0
        colon = _COLON.search(attribute)
        if colon:
            name, value = attribute[: colon.end() - 1], _number(attribute[colon.end() :])
        name = _ESCAPED.sub(r"\1", name)
        token[name] = token.get(name, 0.0) + value
    return _ESCAPED.sub(r"\1", label) if "\\" in label else label, token


def _number(text):
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise ValueError(
            f"{short_repr(text)} is not the value of an attribute; a colon in a name is written "
            "with a backslash before it"
        )
    return value


def _wapiti(line):
    # Blanks of other scripts are no separators.
    *features, label = line.split() if line.isascii() else _split_at_blanks(line)
    odd = next((feature for feature in features if feature[0] not in "uU*"), None)
    if odd is not None:
        raise ValueError(f"{short_repr(odd)} is not a feature of tokens, which begins with u or *")
    return label, dict.fromkeys(features, 1.0)
