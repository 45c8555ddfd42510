"""Tagging: batch by batch from files to files, several files in parallel."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import click
from joblib import Parallel, delayed

from skstruct.cli.text.documents import batches, format_module, read_sequences
from skstruct.cli.work.answers import answer
from skstruct.cli.work.models import load_model
from skstruct.utils.files import replaced

__all__ = ["layout_for", "run"]


def run(path, files, layout, wish, output, output_dir, batch_size, jobs):
    """Tag all files, in order."""
    if output_dir is not None:
        _check_names(files)
        os.makedirs(output_dir, exist_ok=True)
    if len(files) == 1 or jobs == 1:
        model = load_model(path)
        with _opened(output, output_dir) as write:
            for file in files:
                for text in _texts(model, file, layout, wish, batch_size):
                    write(file, text)
        return
    parallel = Parallel(n_jobs=jobs, return_as="generator")
    tagged = parallel(delayed(_tag_file)(path, file, layout, wish, batch_size) for file in files)
    with _opened(output, output_dir) as write:
        for file, text in zip(files, tagged, strict=True):
            write(file, text)


def _check_names(files):
    names = [os.path.basename(file) for file in files]
    if "-" in files or len(set(names)) < len(names):
        raise click.UsageError("--output-dir needs files with different names.")


@contextlib.contextmanager
def _opened(output, output_dir):
    """Function that writes the text of a file, to where the options say.

    Files are written whole or not at all.
    """
    with contextlib.ExitStack() as stack:
        opened = {}

        def write(file, text):
            path = output if output_dir is None else os.path.join(output_dir, _plain(file))
            if path not in opened:
                opened[path] = _open(path, stack)
            opened[path].write(text)
            if path == "-":
                opened[path].flush()

        yield write


def _open(path, stack):
    if path == "-":
        return sys.stdout.buffer
    if os.path.exists(path) and not os.path.isfile(path):
        return stack.enter_context(open(path, "wb"))
    return stack.enter_context(replaced(Path(path).resolve()))


def _plain(file):
    """Name of the output of a file, which is not compressed."""
    return os.path.basename(file).removesuffix(".gz")


def _tag_file(path, file, layout, wish, batch_size):
    model = load_model(path)
    return b"".join(_texts(model, file, layout, wish, batch_size))


def _texts(model, file, layout, wish, batch_size):
    """Output of a file in pieces, encoded."""
    layout = layout_for(model, layout, file)
    write_sequence = format_module(layout.format).write_sequence
    for batch in batches(read_sequences(file, layout, labelled=False), batch_size):
        found = answer(model, batch, wish)
        pairs = zip(batch, found, strict=True)
        text = "".join(write_sequence(sequence, one, layout) for sequence, one in pairs)
        yield text.encode(layout.encoding)


def layout_for(model, layout, file):
    """Layout of a file: as given, else by its name, else as the model remembers it."""
    stored = model.layout or {}
    named = layout.of(file).format
    if layout.format is None and named != "columns":
        layout = layout._replace(format=named)
    if layout.format not in (None, stored.get("format")):
        # Columns of another format mean something else.
        stored = {}
    layout = layout.with_defaults(stored).of(file)
    n_columns = getattr(model.vectorizer, "n_columns_", None)
    if layout.format == "columns" and layout.columns is None and n_columns is not None:
        layout = layout._replace(columns=list(range(n_columns)))
    return layout
