"""Plain text: a text a line, split into tokens by a rule, and written with its chunks."""

from __future__ import annotations

import json
import re
from itertools import chain

import click

from skstruct.cli.text import Sequence, opened_source, without_end
from skstruct.datasets.spans import labels_to_spans
from skstruct.input.schemes import RUNS, scheme_of_classes

_RULES = {"whitespace": r"\S+", "characters": r"\S"}


def tokenizer_option(command):
    """Decorate a command with the option ``--tokenizer``."""

    def read(ctx, param, value):
        if value is None:
            return None
        try:
            pattern = re.compile(_RULES.get(value, value))
        except re.error as error:
            raise click.BadParameter(f"{value!r} is not a pattern: {error}.") from None
        if pattern.fullmatch(""):
            raise click.BadParameter(f"{value!r} matches the empty text; tokens have characters.")
        return pattern

    return click.option(
        "--tokenizer",
        metavar="RULE",
        callback=read,
        help="Read plain text, a text a line, and split it into tokens: whitespace, characters, or "
        "a pattern (regular expression) of a token, such as '\\w+|[^\\w\\s]'.",
    )(command)


def check_takes_words(model):
    """Raise an error unless the features of a model come from words alone."""
    columns = (model.layout or {}).get("columns", [0])
    n_columns = getattr(model.vectorizer, "n_columns_", len(columns))
    if model.vectorizer is None or n_columns not in (None, 1) or len(columns) != 1:
        needs = "features" if model.vectorizer is None else f"{n_columns} columns a token"
        raise ValueError(f"--tokenizer gives words alone, but the model needs {needs}.")


def read_texts(path, layout, tokenizer):
    """Iterate over the texts of a file, one a line, as sequences of tokens; `raw` is the text."""
    with opened_source(path, layout) as (name, blocks):
        lines = chain.from_iterable(without_end(blocks))
        for number, line in enumerate(lines, start=1):
            tokens = [found[0] for found in tokenizer.finditer(line)]
            yield Sequence(tokens, None, name, number, [], line)


def text_writer(model, layout, tokenizer):
    """Function of a sequence and an answer that returns the text with its chunks.

    Chunks are in brackets, with their types behind; in JSON lines they are "spans" of characters.
    """
    scheme = scheme_of_classes(list(map(str, model.estimator.classes_)))
    reading = RUNS if scheme == RUNS else "conlleval"

    def write(sequence, answer):
        text = sequence.raw
        offsets = [found.span() for found in tokenizer.finditer(text)]
        if answer.spans is None:
            found = labels_to_spans([str(x) for x in answer.labels[0]], offsets, scheme=reading)
        else:
            found = [(offsets[a][0], offsets[b - 1][1], kind, p) for a, b, kind, p in answer.spans]
        if layout.format == "jsonl":
            names = ("start", "end", "type", "probability")
            spans = [dict(zip(names, span, strict=False)) for span in found]
            return json.dumps({"text": text, "spans": spans}, ensure_ascii=False) + "\n"
        parts, end = [], 0
        for start, stop, kind, *probability in found:
            note = "".join(f" {p:.2f}" for p in probability)
            parts += [text[end:start], f"[{text[start:stop]} {kind}{note}]"]
            end = stop
        return "".join([*parts, text[end:]]) + "\n"

    return write
