"""Options that commands share, and the layout of files that they describe."""

from __future__ import annotations

import ast
import codecs
import functools
import os
from typing import NamedTuple

import click

from skstruct.datasets.conllu import COLUMNS
from skstruct.utils.files import check_writable

__all__ = [
    "Layout",
    "assignments",
    "can_be_written",
    "folder_can_be_made",
    "jobs_option",
    "layout_options",
    "model_option",
    "quiet_option",
    "require_other_files",
]

FORMATS = ("columns", "conllu", "jsonl")
# Of the names that file suffixes have, those that say what the format is.
SUFFIXES = {".conllu": "conllu", ".jsonl": "jsonl", ".ndjson": "jsonl"}


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
        """Take what is not given here from a dict that a model remembers."""
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


def model_option(*, required=True):
    """Make the option ``-m``."""
    return click.option(
        "-m",
        "--model",
        metavar="FILE",
        required=required,
        type=click.Path(dir_okay=False, exists=True),
        help="File of the model.",
    )


def require_other_files(outputs, inputs, option):
    """Refuse to write to a file that is read."""
    outputs, inputs = (
        [path for path in paths if path is not None and os.path.isfile(path)]
        for paths in (outputs, inputs)
    )
    for output in outputs:
        if any(os.path.samefile(output, path) for path in inputs):
            raise click.BadParameter(
                f"{output} is read, too, and would be overwritten; name another file.",
                param_hint=option,
            )


def can_be_written(ctx, param, path):
    """Refuse a file that cannot be written, before any work; a callback of options."""
    if path not in (None, "-"):
        try:
            check_writable(path)
        except OSError as error:
            raise click.BadParameter(f"{path}: {error.strerror}.") from None
    return path


def folder_can_be_made(ctx, param, path):
    """Refuse a folder that does not exist and cannot be made; a callback of options."""
    if path is not None and not os.path.isdir(path):
        # One level after the other may be missing.
        can_be_written(ctx, param, _highest_missing(os.path.abspath(path)))
    return path


def _highest_missing(path):
    folder = os.path.dirname(path)
    return path if os.path.exists(folder) else _highest_missing(folder)


def jobs_option(help):
    """Make the option ``-j``."""

    def check(ctx, param, jobs):
        if jobs == 0:
            raise click.BadParameter("0 is neither a number of processors nor -1, for all.")
        return jobs

    return click.option(
        "-j", "--jobs", type=int, default=1, show_default=True, callback=check, help=help
    )


quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")


def assignments(option, read_value=None):
    """Make a callback that reads several NAME=VALUE into a dict.

    By default, values are read as Python reads them, or else as strings.
    """
    read_value = _value if read_value is None else read_value

    def read(ctx, param, texts):
        found = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not (name and equals):
                raise click.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint=option)
            found[name.strip().replace("-", "_")] = read_value(value.strip())
        return found

    return read


def _value(text):
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
