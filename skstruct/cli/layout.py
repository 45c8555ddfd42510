"""Layout of annotated files: given by options, by a file's name, or by the model."""

import codecs
import functools
import warnings
from typing import NamedTuple

import click

from skstruct.datasets.conll import is_header, sentence_column_of, splitter
from skstruct.datasets.conllu import COLUMNS

# Formats, and what their layouts have by default.
FORMATS = {
    "columns": {"label": -1},
    "conllu": {"columns": [COLUMNS.index("form")], "label": COLUMNS.index("upos")},
    "jsonl": {},
}
# Formats by suffixes of file names.
SUFFIXES = {".conllu": "conllu", ".jsonl": "jsonl", ".ndjson": "jsonl"}
# Types of the entries of a stored layout.
_STORED = dict(format=str, columns=list, label=int, separator=str, comment=str, width=int)
_STORED["sentence_column"] = int


class Layout(NamedTuple):
    """Arrangement of tokens and labels in files."""

    format: str | None = None  # None: by the name of the file
    columns: list | None = None  # of a token; None: all but the label, in CoNLL-U form
    label: int | None = None  # column of the label; None: the last one, in CoNLL-U upos
    separator: str | None = None
    comment: str | None = None
    sentence_column: int | str | None = None  # None: by a usual name in the header
    encoding: str = "utf-8"
    width: int | None = None  # number of columns of the files that a model was trained on

    def of(self, name):
        """Fill in what is not given, by the format that the name of a file tells."""
        stem = name.removesuffix(".gz")
        named = (format for suffix, format in SUFFIXES.items() if stem.endswith(suffix))
        format = self.format or next(named, "columns")
        return Layout(**{**FORMATS[format], "format": format, **self.given()})

    def given(self):
        """Entries that are not left to defaults."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def _column(name):
    """Number of a column that is named, or given by its number."""
    name = name.strip().lower()
    try:
        return COLUMNS.index(name) if name in COLUMNS else int(name)
    except ValueError:
        raise click.BadParameter(
            f"{name!r} is neither a number nor one of {', '.join(COLUMNS)}."
        ) from None


def _columns(names):
    return [_column(name) for name in names.split(",")]


def _sentence_column(name):
    return int(name) if name.lstrip("-").isdecimal() else name


def _separator(text):
    if not text:
        raise click.BadParameter("it is empty.")
    return text.replace("\\t", "\t")


def _encoding(name):
    try:
        "".encode(name)
        codecs.getincrementalencoder(name), codecs.getincrementaldecoder(name)
    except (LookupError, ValueError):
        raise click.BadParameter(f"{name!r} is unknown.") from None
    return name


def layout_options(command):
    """Decorate a command with the options of a layout, which it gets as `layout`."""

    @click.option(
        "--format",
        type=click.Choice(list(FORMATS)),
        help="Format of the files; by default conllu for names that end in .conllu, jsonl "
        "for .jsonl, and columns for all others. Gzipped files (.gz) are read as well.",
    )
    @click.option(
        "--columns",
        metavar="LIST",
        type=_columns,
        help="Columns of a token, separated by commas: numbers from 0, or names in CoNLL-U. "
        "By default all but the label; in CoNLL-U, form.",
    )
    @click.option(
        "--label",
        metavar="COLUMN",
        type=_column,
        help="Column of the label; by default the last, in CoNLL-U upos. Negative numbers "
        "count from the end.",
    )
    @click.option(
        "--separator",
        metavar="TEXT",
        type=_separator,
        help="Separator of columns, such as '\\t'; by default any blanks.",
    )
    @click.option("--comment", metavar="TEXT", help="Prefix of lines that are comments.")
    @click.option(
        "--sentence-column",
        metavar="COLUMN",
        type=_sentence_column,
        help="Column whose value tells sentences apart, besides blank lines: its number, or its "
        "name in the first line. By default one that this line names, such as 'Sentence #'.",
    )
    @click.option(
        "--encoding", metavar="TEXT", type=_encoding, default="utf-8", help="Of the files."
    )
    @functools.wraps(command)
    def with_layout(**options):
        given = {name: options.pop(name) for name in Layout._fields if name in options}
        layout = Layout(**given)
        _check_columns(layout, options)
        return command(layout=layout, **options)

    return with_layout


def _check_columns(layout, options):
    """Refuse options on columns, given the others, where files have none."""
    names = ("columns", "label", "separator", "sentence_column")
    given = [name.replace("_", "-") for name in names if name in layout.given()]
    if options.get("tokenizer") is not None:
        given += ["comment"] * (layout.comment is not None)
        if given:
            raise click.UsageError(f"--{given[0]} is for columns, and --tokenizer for plain text.")
    files = *(options["files"] or ["-"]), *options.get("dev", ())
    if given and all(layout.of(file).format == "jsonl" for file in files):
        name = "standard input" if files[0] == "-" else files[0]
        raise click.UsageError(f"--{given[0]} is for columns, but {name} has JSON lines.")
    for read in map(layout.of, files):
        if read.format == "conllu" and not -len(COLUMNS) <= read.label < len(COLUMNS):
            raise click.UsageError(f"--label {layout.label}: CoNLL-U has the columns 0 to 9.")


def layout_for(model, layout, file):
    """Layout of a file: as given, else by its name, else as of the training files."""
    stored = dict(model.layout or {})
    named = layout.of(file).format
    if layout.format is not None or named != "columns":
        layout = layout._replace(format=named)
        if named != stored.get("format"):
            # Columns of another format mean something else.
            stored = {}
    if layout.columns is not None or layout.label is not None:
        stored.pop("width", None)
    layout = Layout(**{**stored, **layout.given()}).of(file)
    n_columns = getattr(model.vectorizer, "n_columns_", None)
    if layout.format == "columns" and layout.columns is None and n_columns is not None:
        layout = layout._replace(columns=list(range(n_columns)))
    return layout


def _count_columns(sequence, layout):
    """Count the columns of the first line of a sequence with tokens."""
    return len(splitter(layout.separator)(sequence.raw[sequence.rows[0]]))


def warn_of_columns(sequence, layout):
    """Warn where lines have another number of columns than the training files."""
    if layout.width is None or not len(sequence.X):
        return
    n_columns = _count_columns(sequence, layout)
    # The label may be missing.
    if n_columns not in (layout.width, layout.width - 1):
        warnings.warn(
            f"{sequence.where()}: {n_columns} columns, but the model was trained on "
            f"{layout.width}, the label's included. A line is for one token, whose columns "
            "have the same order as in training; --columns names others, and --tokenizer reads "
            "plain text.",
            stacklevel=2,
        )


def layout_to_store(layout, sequence):
    """Layout of training files, given the first sequence, as the dict to store with a model."""
    if layout.format == "columns":
        width, sentence = _count_columns(sequence, layout), _find_sentence_column(sequence, layout)
        if layout.columns is None:
            label = layout.label % width
            others = [column for column in range(width) if column not in (label, sentence)]
            layout = layout._replace(columns=others, label=label)
        layout = layout._replace(width=width, sentence_column=sentence)
    return {name: value for name, value in layout.given().items() if name in _STORED}


def _find_sentence_column(sequence, layout):
    """Number of the column that tells sentences apart, given the first sequence; None without."""
    column, split = layout.sentence_column, splitter(layout.separator)
    if isinstance(column, int):
        return column % _count_columns(sequence, layout)
    lines = list(filter(None, map(split, sequence.raw[: sequence.rows[0]])))
    if column is not None:
        return next((names.index(column) for names in lines if column in names), None)
    return next((sentence_column_of(names) for names in lines if is_header(names)), None)


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
