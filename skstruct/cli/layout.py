"""Layout of annotated files: given by options, by a file's name, or by the model."""

import codecs
import functools
import warnings
from typing import NamedTuple

import click

from skstruct.cli.text import count_columns
from skstruct.datasets.conllu import COLUMNS

FORMATS = ("columns", "conllu", "jsonl")
# Formats by suffixes of file names.
SUFFIXES = {".conllu": "conllu", ".jsonl": "jsonl", ".ndjson": "jsonl"}
# Types of the entries of a stored layout.
_STORED = dict(format=str, columns=list, label=int, separator=str, comment=str, width=int)


class Layout(NamedTuple):
    """Arrangement of tokens and labels in files."""

    format: str | None = None  # None: by the name of the file
    columns: list | None = None  # of a token; None: all but the label
    label: int | None = None  # column of the label; None: the last one
    separator: str | None = None
    comment: str | None = None
    encoding: str = "utf-8"
    width: int | None = None  # number of columns of the files that a model was trained on

    def of(self, name):
        """Complete it for a file with this name."""
        if self.format is not None:
            return self
        stem = name.removesuffix(".gz")
        found = [format for suffix, format in SUFFIXES.items() if stem.endswith(suffix)]
        return self._replace(format=found[0] if found else "columns")

    def with_defaults(self, stored):
        """Complete it by the dict that a model is stored with."""
        given = {name for name, value in self._asdict().items() if value is not None}
        return self._replace(**{k: v for k, v in (stored or {}).items() if k not in given})


_LAYOUT_OPTIONS = [
    click.option(
        "--format",
        type=click.Choice(FORMATS),
        help="Format of the files; by default conllu for names that end in .conllu, jsonl "
        "for .jsonl, and columns for all others. Gzipped files (.gz) are read as well.",
    ),
    click.option(
        "--columns",
        metavar="LIST",
        help="Columns of a token, separated by commas: numbers from 0, or names in CoNLL-U. "
        "By default all but the label; in CoNLL-U, form.",
    ),
    click.option(
        "--label",
        metavar="COLUMN",
        help="Column of the label; by default the last, in CoNLL-U upos. Negative numbers "
        "count from the end.",
    ),
    click.option(
        "--separator",
        metavar="TEXT",
        help="Separator of columns, such as '\\t'; by default any blanks.",
    ),
    click.option("--comment", metavar="TEXT", help="Prefix of lines that are comments."),
    click.option("--encoding", default="utf-8", show_default=True, help="Of the files."),
]


def layout_options(command):
    """Decorate a command with the options of a layout, which it gets as `layout`."""

    @functools.wraps(command)
    def with_layout(format, columns, label, separator, comment, encoding, **others):
        layout = _read_layout(format, columns, label, separator, comment, encoding)
        return command(layout=layout, **others)

    for option in reversed(_LAYOUT_OPTIONS):
        with_layout = option(with_layout)
    return with_layout


def _read_layout(format, columns, label, separator, comment, encoding):
    """Layout from the values of the options."""
    names = columns.split(",") if columns is not None else None
    try:
        "".encode(encoding)
        codecs.getincrementalencoder(encoding), codecs.getincrementaldecoder(encoding)
    except (LookupError, ValueError):
        raise click.BadParameter(f"{encoding!r} is unknown.", param_hint="--encoding") from None
    if separator == "":
        raise click.BadParameter("it is empty.", param_hint="--separator")
    return Layout(
        format,
        None if names is None else [_column(name, "--columns") for name in names],
        None if label is None else _column(label, "--label"),
        None if separator is None else separator.replace("\\t", "\t"),
        comment,
        encoding,
    )


def _column(name, option):
    name = name.strip().lower()
    if name in COLUMNS:
        return COLUMNS.index(name)
    try:
        return int(name)
    except ValueError:
        raise click.BadParameter(
            f"{name!r} is neither a number nor one of {', '.join(COLUMNS)}.",
            param_hint=option,
        ) from None


def layout_for(model, layout, file):
    """Layout of a file: as given, else by its name, else that of the training files."""
    stored = model.layout or {}
    named = layout.of(file).format
    if layout.format is None and named != "columns":
        layout = layout._replace(format=named)
    if layout.format not in (None, stored.get("format")):
        # Columns of another format mean something else.
        stored = {}
    if layout.columns is not None or layout.label is not None:
        stored = {**stored, "width": None}
    layout = layout.with_defaults(stored).of(file)
    n_columns = getattr(model.vectorizer, "n_columns_", None)
    if layout.format == "columns" and layout.columns is None and n_columns is not None:
        layout = layout._replace(columns=list(range(n_columns)))
    return layout


def warn_of_columns(sequence, layout):
    """Warn where lines have another number of columns than the training files."""
    if layout.width is None or not len(sequence.X):
        return
    n_columns = count_columns(sequence, layout)
    # The label may be missing.
    if n_columns not in (layout.width, layout.width - 1):
        warnings.warn(
            f"{sequence.where()}: {n_columns} columns, but the model was trained on "
            f"{layout.width}, that of the label included. A line is for one token, whose columns "
            "have the same order as in training; --columns names others, and --tokenizer reads "
            "plain text.",
            stacklevel=2,
        )


def layout_to_store(layout, sequence):
    """Layout of training files with such sequences, a dict that a model is stored with."""
    found = {"format": layout.format}
    if layout.format == "columns":
        found["width"] = count_columns(sequence, layout)
        token = sequence.X[0]
        width = 1 if isinstance(token, str) else len(token)
        if layout.columns is None:
            label = width if layout.label is None else layout.label % (width + 1)
            found["columns"] = [c for c in range(width + 1) if c != label]
            found["label"] = label
    for name in ("columns", "label", "separator", "comment"):
        value = getattr(layout, name)
        if value is not None and name not in found:
            found[name] = value
    return found


def check_layout(layout):
    """Raise an error for a stored layout that is not as `layout_to_store` makes it."""
    valid = layout is None or (
        isinstance(layout, dict)
        and all(isinstance(value, _STORED.get(name, ())) for name, value in layout.items())
        and layout.get("format", "columns") in FORMATS
        and all(isinstance(column, int) for column in layout.get("columns", ()))
    )
    if not valid:
        raise ValueError(f"{layout!r} is not a layout of files.")
