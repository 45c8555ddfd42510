"""Annotated text: sequences read from files with their places, and written with predictions.

A file has columns, one token a line and a blank line after each sequence; or is CoNLL-U; or has an
object a line in JSON, with tokens and labels or with candidates and costs.
"""

import contextlib
import json
import sys
from array import array
from functools import cache
from itertools import chain
from typing import NamedTuple

import click

from skstruct.cli.layout import warn_of_columns
from skstruct.datasets.conll import TokenLines, is_header, open_line_blocks, splitter, starting_with
from skstruct.datasets.conllu import COLUMNS, UNKNOWN, is_no_word
from skstruct.datasets.tool_spans import parse_json
from skstruct.utils.files import os_errors_name, value_errors_name
from skstruct.utils.messages import DataError, short_repr

_MISC = COLUMNS.index("misc")
_TOKENS = str, int, list, dict
# bool is a kind of int.
_LABELS = str, int, type(None)
_NUMBERS = (int, float), "a number"


class Sequence(NamedTuple):
    """A sequence of tokens, or a group of candidates."""

    X: list  # tokens, or candidates
    y: object  # labels, or costs or the number of the oracle; None: not read or not given
    name: str  # of the file
    first: int  # its first line, from 1
    rows: list  # position of each token's line after the first
    raw: object  # what was read: lines, or the object of a JSON line
    baseline: list | None = None  # scores of candidates

    @property
    def kind(self):
        """Kind of its rows: "tokens", or "candidates"."""
        is_group = isinstance(self.raw, dict) and "candidates" in self.raw
        return "candidates" if is_group else "tokens"

    def where(self, t=0):
        """Name of the file and number of the line of a token, or of the first line."""
        row = self.rows[t] if t < len(self.rows) else 0
        return f"{self.name}, line {self.first + row}"


def read_sequences(path, layout, *, labelled=True):
    """Iterate over the sequences of a file.

    Parameters
    ----------
    path : str
        "-" for standard input.
    layout : Layout
    labelled : bool, default=True
        Read labels or costs, and raise an error where there is none.

    Yields
    ------
    sequence : Sequence

    Raises
    ------
    ValueError
        For text that cannot be read; the message names the file and the line.
    """
    layout = layout.of(path)
    read = _read_objects if layout.format == "jsonl" else _read_columns
    with opened_source(path, layout) as (name, blocks):
        for number, sequence in enumerate(read(name, blocks, layout, labelled)):
            if number == 0:
                warn_of_columns(sequence, layout)
            yield sequence


@contextlib.contextmanager
def opened_source(path, layout):
    """Context in which a file or standard input is open: its name, and blocks of its lines."""
    name, source = path, path
    if path == "-":
        if sys.stdin is None:
            raise ValueError("Standard input is closed; name a file to read.")
        if sys.stdin.isatty():
            click.echo("Reading from the terminal; Ctrl-D ends the text.", err=True)
        name, source = "standard input", sys.stdin.buffer
    with os_errors_name(name), open_line_blocks(source, layout.encoding) as (_, blocks):
        yield name, blocks


def read_all(paths, layout, *, say=lambda line: click.echo(line, err=True)):
    """Read all labelled sequences of some files into a list; say how many comments were dropped."""
    found = [s for path in paths for s in read_sequences(path, layout)]
    if layout.comment is not None:
        n = sum(comments_in(one, layout) for one in found)
        say(f"Lines that begin with {layout.comment!r}, dropped as comments: {n:,}")
    found = [one for one in found if len(one.X)]
    if not found:
        raise ValueError(f"{', '.join(paths)}: there are no sequences.")
    return found


def comments_in(sequence, layout):
    """Number of lines of a sequence that are comments."""
    if layout.comment is None or not isinstance(sequence.raw, list):
        return 0
    return sum(line.startswith(layout.comment) for line in sequence.raw)


@contextlib.contextmanager
def errors_name_lines(sequences, held_out=()):
    """Context in which an error that names a sequence by number gets its file and line.

    Errors about a validation set name the sequences of `held_out`.
    """
    try:
        yield
    except DataError as error:
        named, i = held_out if error.part else sequences, error.sequence
        if i is not None and i < len(named):
            error.where = named[i].where(error.token or 0)
        raise


# ------------------------------------------------------------------------------ columns and CoNLL-U


def _read_columns(name, blocks, layout, labelled):
    """Iterate over the sequences of a column file or of CoNLL-U.

    `raw` has the lines since the sequence before. The last sequence may have no tokens.
    """
    skip = starting_with(layout.comment)
    how = {"separator": layout.separator, "skip_docstart": True, "header": None}
    how["sentence_column"] = layout.sentence_column
    if layout.format == "conllu":
        skip, how = is_no_word, {"separator": "\t", "width": len(COLUMNS), "unknown": UNKNOWN}
    columns = layout.columns
    if columns is not None and len(columns) == 1:
        # A single column is a string, and not a tuple of one.
        (columns,) = columns
    parsed = TokenLines(name, layout.label if labelled else None, columns=columns, **how)
    first, rows, raw = 1, array("I"), []

    def as_sequence():
        lines = [raw[row] for row in rows]
        y = [parsed.labels[line] for line in lines] if labelled else None
        return Sequence([parsed[line] for line in lines], y, name, first, rows, raw)

    for block in without_end(blocks):
        parsed.enter(block)
        for line in block:
            if skip is not None and skip(line):
                raw.append(line)
                continue
            is_token = parsed[line] is not None
            if is_token and parsed.begins(line) and rows:
                yield as_sequence()
                first, rows, raw = first + len(raw), array("I"), []
            raw.append(line)
            if is_token:
                rows.append(len(raw) - 1)
            elif rows:
                yield as_sequence()
                first, rows, raw = first + len(raw), array("I"), []
    if labelled and parsed.width is None:
        raise ValueError(f"{name}: the file has no tokens")
    if raw:
        yield as_sequence()


def without_end(blocks):
    """Leave out the empty text after the last line end."""
    block = next(blocks)
    for after in blocks:
        yield block
        block = after
    if block != [""]:
        yield block


def write_columns(sequence, answer, layout):
    """Add predicted labels to the lines that were read; repeat these for several labellings.

    A column file gets the label in a further column; CoNLL-U in the column of the label.
    """
    with_label, heads, separator = _appended, ("#", "# candidate"), layout.separator
    if layout.format == "conllu":
        with_label, heads, separator = _into_conllu, ("# n_best =", "# candidate ="), "\t"
    if "labellings" in answer.entries:
        raise ValueError(f"{sequence.where()}: sets of labellings need --format jsonl.")
    (head, of_candidate), parts = heads, []
    for start, end, kind, probability in map(dict.values, answer.entries.get("candidates", ())):
        parts.append(f"{of_candidate} {start} {end} {kind} {probability:.6f}")
    for rank, one in enumerate(answer.entries.get("n_best", [answer.entries])):
        if rank and parts[-1].strip():
            parts.append("")
        if "probability" in one:
            parts.append(f"{head} {rank} {one['probability']:.6f}")
        raw = list(sequence.raw)
        for t, (row, label) in enumerate(zip(sequence.rows, one["labels"], strict=True)):
            if not _fits(str(label), separator):
                remedy = "read" if separator == "\t" else "pass another --separator, or read"
                raise ValueError(
                    f"{sequence.where(t)}: the label {str(label)!r} does not fit into a column; "
                    f"{remedy} and write JSON lines."
                )
            raw[row] = with_label(raw[row], str(label), answer.fields_of(t, label), layout)
        if layout.format != "conllu" and sequence.rows:
            _name_columns(raw, sequence.rows[0], answer, layout)
        parts += raw
    return "".join(line + "\n" for line in parts)


def _name_columns(raw, end, answer, layout):
    """Add the names of further columns to a header before the first token."""
    split = splitter(layout.separator)
    for row in range(end):
        if is_header(split(raw[row])):
            more = answer.fields_of(0, answer.entries["labels"][0])
            names = ["probability", *(f"probability {n}" for n in range(2, len(more) + 1))]
            raw[row] = _appended(raw[row], "predicted", names[: len(more)], layout)


def _appended(line, label, fields, layout):
    if layout.separator is not None:
        # Separators at the end stand for empty columns.
        return layout.separator.join([line.rstrip(" "), label, *fields])
    separator = "\t" if "\t" in line else " "
    # Other blanks, such as in East Asian text, are tokens.
    return separator.join([line.rstrip(" \t\f\v"), label, *fields])


@cache
def _fits(label, separator):
    """Return True for a label that a column of the output can hold."""
    return label and splitter(separator)(label) == [label] and not set(label) & set("\r\n")


def _into_conllu(line, label, fields, layout):
    columns = line.split("\t")
    columns[layout.label] = label
    if fields:
        note = "Prob=" + ",".join(fields)
        columns[_MISC] = note if columns[_MISC] == "_" else f"{columns[_MISC]}|{note}"
    return "\t".join(columns)


# --------------------------------------------------------------------------------------- JSON lines


def _read_objects(name, blocks, layout, labelled):
    """Iterate over the objects of a file of JSON lines; `raw` is the object."""
    for number, line in enumerate(chain.from_iterable(blocks), start=1):
        if line.strip():
            where = f"{name}, line {number}"
            found = parse_json(line, f"{where}: this")
            with value_errors_name(where):
                X, y, baseline = _contents(found, labelled)
            yield Sequence(X, y, name, number, [], found, baseline)


def _contents(found, labelled):
    """Tokens and labels of an object; or candidates, their costs and their baseline scores."""
    if not isinstance(found, dict) or not {"tokens", "candidates"} & set(found):
        raise ValueError('expected an object with "tokens" or "candidates"')
    if "candidates" not in found:
        X = _list_in(found, "tokens", _TOKENS, "a word, a list of columns, or a dict of features")
        y = labels_in(found, "labels", len(X)) if labelled else None
        return [_token(token) for token in X], y, None
    X, baseline = _list_in(found, "candidates", (list, dict), "a dict of features"), None
    y = _costs(found, len(X)) if labelled else None
    if "baseline_score" in found:
        length = len(X), "candidates", "baseline scores"
        baseline = _list_in(found, "baseline_score", *_NUMBERS, length)
    return X, y, baseline


def labels_in(found, key, n_tokens):
    """Labels in an object, one for each token; a ValueError if they are invalid."""
    return _list_in(found, key, _LABELS, "a string or a whole number", (n_tokens, "tokens", key))


def _list_in(found, key, kinds, expected, length=None):
    """List in an object, checked for its length and the types of its entries.

    `length` is a number, what it counts, and the name of the entries.
    """
    if key not in found:
        raise ValueError(f'"{key}" are missing')
    values = found[key]
    if not isinstance(values, list):
        raise ValueError(f'"{key}" is not a list')
    if not all(issubclass(kind, kinds) for kind in set(map(type, values))):
        i = [isinstance(entry, kinds) for entry in values].index(False)
        raise ValueError(f'"{key}"[{i}] is {short_repr(values[i])}; expected {expected}')
    if length is not None and len(values) != length[0]:
        raise ValueError(f"there are {length[0]} {length[1]}, but {len(values)} {length[2]}")
    return values


def _token(token):
    """Lists of columns become tuples, and numbers strings, as column files have them."""
    if isinstance(token, list):
        return tuple(token)
    return str(token) if isinstance(token, int) else token


def _costs(found, n_candidates):
    if "oracle" in found:
        if type(found["oracle"]) is not int:
            raise ValueError('"oracle" is not the number of a candidate')
        return found["oracle"]
    if "costs" not in found:
        raise ValueError('"costs" or "oracle" are missing')
    return _list_in(found, "costs", *_NUMBERS, (n_candidates, "candidates", "costs"))


def write_object(sequence, answer, layout):
    """Line with the object that was read and the predictions."""
    found = {**sequence.raw, **answer.entries}
    try:
        text = json.dumps(found, ensure_ascii=False)
        text.encode(layout.encoding)
    except UnicodeEncodeError:
        text = json.dumps(found)
    except RecursionError:
        raise ValueError(f"{sequence.where()}: this is nested too deeply") from None
    return text + "\n"
