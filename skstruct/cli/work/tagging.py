"""Tagging: batch by batch from files to files, several files in parallel."""

from __future__ import annotations

import codecs
import contextlib
import os
import warnings
from concurrent.futures import BrokenExecutor
from itertools import groupby
from operator import itemgetter

import click
from joblib import Parallel, delayed

from skstruct.cli.output import plain_warnings, standard_output
from skstruct.cli.text.columns import count_columns
from skstruct.cli.text.documents import batches, format_module, read_sequences
from skstruct.cli.work.answers import answer
from skstruct.cli.work.models import load_model
from skstruct.utils.files import check_writable, replaced

__all__ = ["layout_for", "run", "warn_of_columns"]


def run(path, files, layout, wish, output, output_dir, batch_size, jobs):
    """Tag all files, in order. Each output is written whole or not at all."""
    outputs = [output] * len(files) if output_dir is None else _outputs_in(output_dir, files)
    given = path, files, layout, wish, batch_size
    # Other processes do not have the standard input of this one.
    in_turn = len(files) == 1 or jobs == 1 or "-" in files
    tagged = _in_turn(*given) if in_turn else _in_parallel(*given, jobs)
    for target, group in groupby(zip(outputs, tagged, strict=True), key=itemgetter(0)):
        with _opened(target, layout.encoding) as write:
            for _, texts in group:
                for text in texts:
                    write(text)


def _outputs_in(folder, files):
    """Paths of the outputs in a folder, which is made; files that were compressed are not."""
    names = [os.path.basename(file).removesuffix(".gz") for file in files]
    if "-" in files or len(set(names)) < len(names):
        raise click.UsageError("--output-dir needs files with different names.")
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, name) for name in names]
    for path in paths:
        check_writable(path)
    return paths


def _in_turn(path, files, layout, wish, batch_size):
    model = load_model(path)
    for file in files:
        yield _texts(model, file, layout, wish, batch_size)


def _in_parallel(path, files, layout, wish, batch_size, jobs):
    parallel = Parallel(n_jobs=min(jobs, len(files)), return_as="generator")
    try:
        yield from parallel(
            delayed(_tag_file)(path, file, layout, wish, batch_size) for file in files
        )
    except BrokenExecutor:
        raise OSError("A process of -j was killed, perhaps for want of memory.") from None


def _tag_file(path, file, layout, wish, batch_size):
    with plain_warnings():
        return list(_texts(load_model(path), file, layout, wish, batch_size))


@contextlib.contextmanager
def _opened(path, encoding):
    """Function that writes text to a file, or to standard output at once."""
    # One for all of it: some encodings begin with a mark.
    encode = codecs.getincrementalencoder(encoding)().encode
    with standard_output() if path == "-" else replaced(path) as file:

        def write(text):
            try:
                file.write(encode(text))
            except UnicodeEncodeError as error:
                odd = error.object[error.start : error.end]
                raise ValueError(f"{odd!r} cannot be written in {encoding}.") from None
            if path == "-":
                file.flush()

        yield write


def _texts(model, file, layout, wish, batch_size):
    """Output of a file in pieces."""
    layout = layout_for(model, layout, file)
    write_sequence = format_module(layout.format).write_sequence
    found = batches(read_sequences(file, layout, labelled=False), batch_size)
    for number, batch in enumerate(found):
        if number == 0:
            warn_of_columns(batch[0], layout)
        pairs = zip(batch, answer(model, batch, wish), strict=True)
        yield "".join(write_sequence(sequence, one, layout) for sequence, one in pairs)


def warn_of_columns(sequence, layout):
    """Warn where lines have not as many columns as those that a model was trained on."""
    if layout.width is None or not len(sequence.X):
        return
    n_columns = count_columns(sequence, layout)
    # The label may be missing.
    if n_columns not in (layout.width, layout.width - 1):
        warnings.warn(
            f"{sequence.name}, line {sequence.first + sequence.rows[0]}: {n_columns} columns, but "
            f"the model was trained on {layout.width}, that of the label included. A line is for "
            "one token, whose columns have the same order as in training; --columns names others.",
            stacklevel=2,
        )


def layout_for(model, layout, file):
    """Layout of a file: as given, else by its name, else as the model remembers it."""
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
