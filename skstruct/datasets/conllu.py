"""CoNLL-U files: treebanks with ten named columns, comments, ranges and empty nodes."""

from __future__ import annotations

import re

from skstruct.datasets.conll import parsed_lines
from skstruct.datasets.text_lines import open_line_blocks
from skstruct.datasets.writing import join_lines, write_text
from skstruct.utils.memory import collector_paused
from skstruct.utils.messages import short_repr
from skstruct.utils.public_paths import set_module

__all__ = ["COLUMNS", "UNKNOWN", "is_no_word", "read_conllu", "write_conllu"]

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# Comments, ranges such as 1-2 (a contraction) and empty nodes such as 3.1.
is_no_word = re.compile(r"#|\d+[-.]\d+\t").match
UNKNOWN = "_"


@set_module("skstruct.datasets")
def read_conllu(path_or_file, *, columns="form", label="upos"):
    r"""Read a CoNLL-U file: the words of each sentence, and a label for each.

    Comments, ranges (``1-2``, the surface form of several words) and empty nodes (``3.1``) are
    skipped. A label that is ``_`` is unknown, and becomes None. In the columns of the tokens, ``_``
    stays as it is.

    Parameters
    ----------
    path_or_file : str, path-like, file object or iterable of lines
        The file, in UTF-8; plain or gzipped.
    columns : str or sequence of str, default="form"
        Columns of a token: "id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps"
        or "misc". Tokens are str for one name, tuples of str for a sequence of names.
    label : str or None, default="upos"
        Column of the label; None for no labels.

    Returns
    -------
    tokens : list of list of str or of tuple of str
        The sentences.
    labels : list of list of (str or None), or None
        Their labels. None if `label` is None.

    Raises
    ------
    ValueError
        If a name is not that of a column, or a line has not ten columns, separated by tabs; the
        message names the file and the line.
    OSError
        If the file cannot be opened.

    See Also
    --------
    write_conllu : Write the file with other labels.
    read_conll : Read other column files.

    Examples
    --------
    >>> from skstruct.datasets import read_conllu
    >>> lines = [
    ...     "# text = vámonos",
    ...     "1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_",
    ...     "1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_",
    ...     "2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_",
    ... ]
    >>> read_conllu(lines)
    ([['vamos', 'nos']], [['VERB', 'PRON']])
    >>> read_conllu(lines, columns=("form", "lemma"), label="xpos")
    ([[('vamos', 'ir'), ('nos', 'nosotros')]], [[None, None]])
    """
    numbers = _number(columns) if isinstance(columns, str) else list(map(_number, columns))
    parsed = parsed_lines(
        path_or_file,
        columns=numbers,
        label=None if label is None else _number(label),
        separator="\t",
        skip=is_no_word,
        width=len(COLUMNS),
        unknown=UNKNOWN,
    )
    with collector_paused():
        tokens, labels = map(list, zip(*parsed, strict=True))
    return tokens, None if label is None else labels


@set_module("skstruct.datasets")
def write_conllu(path_or_file, labels, *, like, label="upos"):
    r"""Write a CoNLL-U file again with other labels.

    All else is kept: comments, ranges, empty nodes and the other columns.

    Parameters
    ----------
    path_or_file : str, path-like or file object
        The file to write, which may be `like` itself; a file object is open in text mode.
    labels : sequence of sequences of str
        A label for each word of each sentence, such as the output of `predict`. None is written
        as ``_``.
    like : str, path-like, file object or iterable of lines
        The file with the sentences.
    label : str, default="upos"
        Column to write.

    Raises
    ------
    ValueError
        If the sentences of `labels` and of the file differ in number or length, a label is empty or
        has a blank at an end, a tab or a line end, or `label` is not the name of a column.
    OSError
        If a file cannot be opened.

    See Also
    --------
    read_conllu : Read the words and labels.

    Examples
    --------
    >>> import sys
    >>> from skstruct.datasets import write_conllu
    >>> lines = ["# text = go", "1\tgo\tgo\t_\t_\t_\t0\troot\t_\t_"]
    >>> write_conllu(sys.stdout, [["VERB"]], like=lines)
    # text = go
    1       go      go      VERB    _       _       0       root    _       _
    <BLANKLINE>
    """
    column = _number(label)
    labels = [list(sentence) for sentence in labels]
    tokens, _ = read_conllu(like := _kept(like), label=None)
    if len(tokens) != len(labels):
        raise ValueError(
            f"The file has {len(tokens)} sentences, but there are labels for {len(labels)}."
        )
    flat = []
    for i, (words, given) in enumerate(zip(tokens, labels, strict=True)):
        if len(words) != len(given):
            raise ValueError(f"Sequence {i} has {len(words)} tokens, but {len(given)} labels.")
        flat += [_as_label(value, i, t) for t, value in enumerate(given)]
    flat, lines = iter(flat), []
    for line in like:
        if line.strip() and not is_no_word(line):
            fields = line.split("\t")
            fields[column] = next(flat)
            line = "\t".join(fields)
        lines.append(line)
    write_text(path_or_file, join_lines(lines), "utf-8")


def _kept(source):
    """All lines of a source, without empty ones at the end."""
    with open_line_blocks(source, "utf-8") as (_, blocks):
        lines = [line for block in blocks for line in block]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _number(name):
    if name not in COLUMNS:
        raise ValueError(f"{name!r} is not a column of CoNLL-U; they are {', '.join(COLUMNS)}.")
    return COLUMNS.index(name)


def _as_label(value, i, t):
    if value is None:
        return UNKNOWN
    if not isinstance(value, str) or not value.strip() or set(value) & set("\t\r\n"):
        raise ValueError(
            f"Sequence {i}, token {t}: the label {short_repr(value)} is not a string that fits "
            "into a column."
        )
    return value
