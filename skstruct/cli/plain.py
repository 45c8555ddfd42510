"""Plain text: a text a line, split into tokens by a rule, and written with its chunks."""

import importlib
import json
import os
import re
import sys
from functools import cache, partial
from itertools import chain
from operator import attrgetter

import click

from skstruct.cli.options import did_you_mean
from skstruct.cli.text import Sequence, opened_source, without_end
from skstruct.metrics.chunks import extract_chunks
from skstruct.utils.files import value_errors_name
from skstruct.utils.messages import short_repr

_RULES = {"whitespace": r"\S+", "characters": r"\S"}
_FUNCTION = re.compile(r"([^\W\d][\w.]*):([^\W\d][\w.]*)")

# A rule is a function that returns the offsets of the tokens of a text, (start, end). It is sent to
# other processes by name: they import it again, perhaps in another folder.


def _by_pattern(pattern, text):
    """Offsets of the tokens that a regular expression finds."""
    offsets = [found.span() for found in pattern.finditer(text)]
    if any(start == end for start, end in offsets):
        raise ValueError(
            f"--tokenizer {pattern.pattern!r} matches no characters in {short_repr(text)}; tokens "
            "have characters."
        )
    return offsets


def _by_function(name, folder, text):
    """Offsets of the tokens that a function of the user's returns, in order."""
    try:
        tokens = _imported(name, folder)(text)
    except Exception as error:
        raise ValueError(
            f"{name} raised {type(error).__name__} for {short_repr(text)}: {error}"
        ) from error
    if not isinstance(tokens, (list, tuple)) or not all(isinstance(t, str) for t in tokens):
        raise ValueError(
            f"{name} returned {short_repr(tokens)} for {short_repr(text)}; expected a list of "
            "tokens, each a string."
        )
    offsets, end = [], 0
    for token in tokens:
        start = text.find(token, end) if token else -1
        if start < 0:
            raise ValueError(
                f"{name} returned the token {token!r}, which is not in what follows in the text, "
                f"{short_repr(text[end:])}; tokens are parts of the text."
            )
        end = start + len(token)
        offsets.append((start, end))
    return offsets


@cache
def _imported(name, folder):
    """Function named ``package.module:function``, also of a module in a folder."""
    module, path = name.split(":")
    if folder not in sys.path:
        # Last, so that nothing there is taken for an installed package.
        sys.path.append(folder)
    try:
        found = importlib.import_module(module)
    except Exception as error:
        raise click.BadParameter(
            f"{module} cannot be imported ({type(error).__name__}: {error})."
        ) from None
    try:
        function = attrgetter(path)(found)
    except AttributeError:
        where = getattr(found, "__file__", None) or "built in"
        raise click.BadParameter(f"the module {module} ({where}) has no {path}.") from None
    if not callable(function):
        raise click.BadParameter(f"{name} is {short_repr(function)}, and not a function.")
    return function


def _rule(value):
    """Rule that the option ``--tokenizer`` names."""
    if _FUNCTION.fullmatch(value):
        _imported(value, os.getcwd())
        return partial(_by_function, value, os.getcwd())
    if value.isidentifier() and value not in _RULES:
        raise click.BadParameter(
            f"{value!r} is no rule: there are {' and '.join(_RULES)}, patterns, and functions, "
            f"module:function.{did_you_mean(value, _RULES)}"
        )
    try:
        pattern = re.compile(_RULES.get(value, value))
    except re.error as error:
        raise click.BadParameter(f"{value!r} is not a pattern: {error}.") from None
    if pattern.fullmatch(""):
        raise click.BadParameter(f"{value!r} matches the empty text; tokens have characters.")
    return partial(_by_pattern, pattern)


tokenizer_option = click.option(
    "--tokenizer",
    metavar="RULE",
    type=_rule,
    help="Read plain text, a text a line, and split it into tokens: whitespace, characters, a "
    "pattern (regular expression) of a token, such as '\\w+|[^\\w\\s]', or a function of your own, "
    "package.module:function, which takes a text and returns the list of its tokens.",
)


def check_takes_words(model):
    """Raise an error unless the features of a model come from words alone."""
    columns = (model.layout or {}).get("columns", [0])
    n_columns = getattr(model.vectorizer, "n_columns_", len(columns))
    if model.vectorizer is None or n_columns not in (None, 1) or len(columns) != 1:
        needs = "features" if model.vectorizer is None else f"{n_columns} columns a token"
        raise ValueError(f"--tokenizer gives words alone, but the model needs {needs}.")


def read_texts(path, layout, tokenizer):
    """Iterate over the texts of a file, one a line, as sequences of tokens.

    `raw` is the text and the characters of its tokens.
    """
    has_words, has_tokens = False, False
    with opened_source(path, layout) as (name, blocks):
        lines = chain.from_iterable(without_end(blocks))
        for number, line in enumerate(lines, start=1):
            with value_errors_name(f"{name}, line {number}"):
                offsets = tokenizer(line)
            has_words = has_words or any(map(str.isalnum, line))
            has_tokens = has_tokens or bool(offsets)
            tokens = [line[start:end] for start, end in offsets]
            yield Sequence(tokens, None, name, number, [], (line, offsets))
    if has_words and not has_tokens:
        raise ValueError(f"{name}: --tokenizer finds no tokens in this text.")


def write_text(sequence, answer, layout, scheme):
    """Text with its chunks, as the answer's labels or its spans tell them.

    Chunks are in brackets with their types; in JSON lines they are "spans" of characters,
    and candidates are "candidates".
    """
    text, offsets = sequence.raw
    if "labellings" in answer.entries:
        raise ValueError(f"{sequence.where()}: labellings are of tokens; leave out --tokenizer.")
    if "candidates" in answer.entries:
        found = [
            {**one, "start": offsets[one["start"]][0], "end": offsets[one["end"] - 1][1]}
            for one in answer.entries["candidates"]
        ]
        return json.dumps({"text": text, "candidates": found}, ensure_ascii=False) + "\n"
    if "spans" in answer.entries:
        chunks = [span.values() for span in answer.entries["spans"]]
    else:
        chunks = extract_chunks([str(x) for x in answer.entries["labels"]], scheme=scheme)
    found = [(offsets[a][0], offsets[b - 1][1], *rest) for a, b, *rest in chunks]
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
