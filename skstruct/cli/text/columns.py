"""Column files and CoNLL-U: a token a line, a blank line after each sequence."""

from __future__ import annotations

from array import array
from operator import methodcaller

from skstruct.cli.text.sequence import Sequence
from skstruct.datasets.conll import TokenLines
from skstruct.datasets.conllu import COLUMNS, UNKNOWN, is_no_word
from skstruct.datasets.text_lines import open_line_blocks, splitter

__all__ = ["count_columns", "read_sequences", "write_sequence"]

_FORM, _UPOS, _MISC = (COLUMNS.index(name) for name in ("form", "upos", "misc"))


def read_sequences(source, layout, labelled):
    """Iterate over the sequences of a column file.

    Parameters
    ----------
    source : str or binary file
    layout : Layout
        Its format is "columns" or "conllu".
    labelled : bool
        Read labels.

    Yields
    ------
    sequence : Sequence
        Its `raw` has the lines since the sequence before. The last one may have no tokens. A file
        with labels has at least one token, or a ValueError says so.
    """
    with open_line_blocks(source, layout.encoding) as (name, blocks):
        parsed, skip = _parser(layout, labelled, name)
        tokens, labels, rows, raw, first, number = [], [], array("I"), [], 1, 0
        for block in _without_end(blocks):
            parsed.enter(block)
            for line in block:
                number += 1
                raw.append(line)
                if skip is not None and skip(line):
                    continue
                token = parsed[line]
                if token is not None:
                    tokens.append(token)
                    labels.append(parsed.labels[line])
                    rows.append(len(raw) - 1)
                elif tokens:
                    y = labels if labelled else None
                    yield Sequence(tokens, y, name, first, rows, raw)
                    tokens, labels, rows, raw, first = [], [], array("I"), [], number + 1
    if labelled and parsed.width is None:
        raise ValueError(f"{name}: the file has no tokens")
    if raw:
        yield Sequence(tokens, labels if labelled else None, name, first, rows, raw)


def _parser(layout, labelled, name):
    """Parser of lines, and a function that tells lines without a token; None if there are none."""
    columns, label = layout.columns, layout.label
    skip = None if layout.comment is None else methodcaller("startswith", layout.comment)
    if layout.format == "conllu":
        columns, label = columns or [_FORM], _UPOS if label is None else label
        more = {"separator": "\t", "width": len(COLUMNS), "unknown": UNKNOWN}
        skip = is_no_word
    else:
        label = -1 if label is None else label
        more = {"separator": layout.separator, "skip_docstart": True}
    # A single column is a string, and not a tuple of one.
    columns = columns[0] if columns is not None and len(columns) == 1 else columns
    return TokenLines(name, label if labelled else None, columns=columns, **more), skip


def count_columns(sequence, layout):
    """Count the columns of the first line of a sequence with tokens."""
    return len(splitter(layout.separator)(sequence.raw[sequence.rows[0]]))


def _without_end(blocks):
    """Leave out what follows the last line end, if that is nothing."""
    block = next(blocks)
    for after in blocks:
        yield block
        block = after
    if block != [""]:
        yield block


def write_sequence(sequence, answer, layout):
    """Text of a sequence with its predicted labels, or several.

    Parameters
    ----------
    sequence : Sequence
    answer : Answer
    layout : Layout

    Returns
    -------
    text : str
        The lines that were read. A column file gets the label in a further column; CoNLL-U in the
        column of the label.
    """
    if not len(sequence.X):
        return "".join(line + "\n" for line in sequence.raw)
    parts = []
    for rank, labels in enumerate(answer.labels):
        if answer.probabilities is not None:
            note = f"{rank} {answer.probabilities[rank]:.6f}"
            parts.append(f"# n_best = {note}" if layout.format == "conllu" else f"# {note}")
        raw = list(sequence.raw)
        for t, (row, label) in enumerate(zip(sequence.rows, labels, strict=True)):
            fields = answer.fields_of(t, label)
            raw[row] = (_into_conllu if layout.format == "conllu" else _appended)(
                raw[row], label, fields, layout
            )
        ends = rank + 1 < len(answer.labels) and raw[-1].strip()
        parts += [*raw, ""] if ends else raw
    return "".join(line + "\n" for line in parts)


def _appended(line, label, fields, layout):
    if layout.separator is not None:
        # Behind the last separator is an empty column.
        return layout.separator.join([line.rstrip(" "), str(label), *fields])
    separator = "\t" if "\t" in line else " "
    return separator.join([line.rstrip(), str(label), *fields])


def _into_conllu(line, label, fields, layout):
    columns = line.split("\t")
    columns[_UPOS if layout.label is None else layout.label] = str(label)
    if fields:
        note = "Prob=" + ",".join(fields)
        columns[_MISC] = note if columns[_MISC] == "_" else f"{columns[_MISC]}|{note}"
    return "\t".join(columns)
