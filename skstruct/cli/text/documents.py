"""Annotated sequences: read from files of any format, with their places, and written back."""

from __future__ import annotations

import contextlib
import re
import sys
from itertools import islice

import click

from skstruct.cli.text import columns, jsonlines
from skstruct.metrics.chunks import are_chunk_labels
from skstruct.utils.files import os_errors_name

__all__ = [
    "batches",
    "errors_name_lines",
    "format_module",
    "has_chunks",
    "read_all",
    "read_sequences",
]

_PLACE = re.compile(r"\b(?:[Ss]equence|[Gg]roup) (\d+)(?:, token (\d+)|, candidate \d+)?")


def format_module(format):
    """Return the module that reads and writes files of a format."""
    return jsonlines if format == "jsonl" else columns


def read_sequences(path, layout, *, labelled=True):
    """Iterate over the sequences of a file.

    Parameters
    ----------
    path : str
        "-" for standard input.
    layout : Layout
    labelled : bool, default=True
        Read labels, and raise an error where there is none.

    Yields
    ------
    sequence : Sequence

    Raises
    ------
    ValueError
        For text that cannot be read; the message names the file and the line.
    """
    source = _standard_input() if path == "-" else path
    layout = layout.of(path)
    with os_errors_name("standard input" if path == "-" else path):
        yield from format_module(layout.format).read_sequences(source, layout, labelled)


def _standard_input():
    if sys.stdin is None:
        raise ValueError("Standard input is closed; name a file to read.")
    if sys.stdin.isatty():
        click.echo("Reading from the terminal; Ctrl-D ends the text.", err=True)
    return sys.stdin.buffer


def read_all(paths, layout):
    """Read all labelled sequences of some files into a list."""
    found = [s for path in paths for s in read_sequences(path, layout) if len(s.X)]
    if not found:
        raise ValueError(f"{', '.join(paths)}: there are no sequences.")
    return found


def batches(sequences, size):
    """Lists of up to `size` sequences."""
    sequences = iter(sequences)
    while batch := list(islice(sequences, size)):
        yield batch


@contextlib.contextmanager
def errors_name_lines(sequences):
    """Context in which an error that names a sequence by number gets its file and line."""
    try:
        yield
    except ValueError as error:
        place = _PLACE.search(str(error))
        if place is None or int(place[1]) >= len(sequences):
            raise
        sequence = sequences[int(place[1])]
        token = int(place[2] or 0)
        row = sequence.rows[token] if token < len(sequence.rows) else 0
        raise ValueError(f"{sequence.name}, line {sequence.first + row}: {error}") from error


def has_chunks(y):
    """Return True if labels are those of chunks, such as B-NP, I-NP and O."""
    return are_chunk_labels({label for sequence in y for label in sequence})
