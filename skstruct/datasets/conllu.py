"""CoNLL-U files: treebanks with ten named columns, comments, ranges and empty nodes."""

import re

from skstruct.datasets.conll import (
    BYTE_ORDER_MARK,
    TokenLines,
    batched,
    open_line_blocks,
    splitter,
    write_lines,
)
from skstruct.metrics.labels import check_lengths, sequences_of
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import set_module

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# Comments, ranges such as 1-2 (a contraction) and empty nodes such as 3.1.
is_no_word = re.compile(r"#|\d+[-.]\d+\t").match
UNKNOWN = "_"
# First line of CoNLL-U Plus, with the names of the columns.
_GLOBAL = re.compile(r"#\s*global\.columns\s*=\s*(\S.*)").match


@set_module("skstruct.datasets")
def read_conllu(path_or_file, *, columns="form", label="upos"):
    r"""Read a CoNLL-U file: the words of each sentence, and a label for each.

    CoNLL-U Plus is read as well: the first line, ``# global.columns = ID FORM PARSEME:MWE``, names
    the columns, in any case. Comments, ranges (``1-2``, the surface form of several words) and
    empty nodes (``3.1``) are skipped. A label that is ``_`` is unknown, and becomes None. In the
    columns of the tokens, ``_`` stays as it is.

    Parameters
    ----------
    path_or_file : str, path-like, file object or iterable of lines
        The file, in UTF-8; plain or gzipped.
    columns : str or sequence of str, default="form"
        Columns of a token: "id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps"
        or "misc", or columns of CoNLL-U Plus, such as "parseme:mwe". Tokens are str for one name,
        tuples of str for a sequence of names.
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
        If a name is no column, or a line has another number of columns, separated by
        tabs; the message names the file and the line.
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
    name, lines = _all_lines(path_or_file)
    known = _columns_of(lines)
    if isinstance(columns, str):
        columns = _number(columns, known)
    else:
        columns = [_number(column, known) for column in columns]
    label = None if label is None else _number(label, known)
    layout = {"separator": "\t", "width": len(known), "unknown": UNKNOWN}
    parsed = TokenLines(name, label, columns=columns, **layout)
    return next(batched(parsed.sequences([lines], is_no_word), None, label is not None))


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
        If the sentences of `labels` and of the file differ in number or length, a label could not
        be read back (it is blank, ``_``, or has a tab, a line end or, in the last column, a blank
        at its end), or `label` is not the name of a column.
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
    labels, (_, like) = sequences_of(labels, "labels"), _all_lines(like)
    while like and not like[-1].strip():
        like.pop()
    known = _columns_of(like)
    column = _number(label, known)
    tokens, _ = read_conllu(like, columns=known[0], label=None)
    check_lengths(tokens, labels)
    words = (
        (value, f"Sequence {i}, token {t}")
        for i, given in enumerate(labels)
        for t, value in enumerate(given)
    )
    lines, places = [], []
    for number, line in enumerate(like, start=1):
        place = f"Line {number}"
        if line.strip() and not is_no_word(line):
            value, place = next(words)
            line = _relabelled(line, column, value, place)
        lines.append(line)
        places.append(place)
    write_lines(path_or_file, [*lines, ""], places.__getitem__, "utf-8")


def _relabelled(line, column, label, where):
    """Line of a word with another label, checked to be read back."""
    fields = line.split("\t")
    fields[column] = UNKNOWN if label is None else str(label)
    changed = "\t".join(fields)
    is_read = (
        isinstance(label, str)
        and not (is_no_word(changed) or changed.startswith(BYTE_ORDER_MARK))
        and splitter("\t")(changed)[column : column + 1] == [label]
        and label.strip()
        and label != UNKNOWN
        and not set(label) & set("\t\r\n")
    )
    if label is not None and not is_read:
        raise ValueError(
            f"{where}: the label {short_repr(label)} is not a string that could be read back from "
            "its column; change it, or pass None for no label."
        )
    return changed


def _all_lines(source):
    with open_line_blocks(source, None) as (name, blocks):
        return name, [line for block in blocks for line in block]


def _columns_of(lines):
    """Names of the columns: from a line "# global.columns", or as in CoNLL-U."""
    found = _GLOBAL(lines[0]) if lines else None
    return COLUMNS if found is None else tuple(found[1].lower().split())


def _number(name, known):
    if str(name).lower() not in known:
        raise ValueError(f"{name!r} is not a column of the file; they are {', '.join(known)}.")
    return known.index(name.lower())
