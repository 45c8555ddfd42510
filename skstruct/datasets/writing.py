"""Writer of column files, which the reader reads back as they were."""

from __future__ import annotations

from skstruct.datasets.text_lines import splitter
from skstruct.utils.files import write_whole
from skstruct.utils.messages import short_repr
from skstruct.utils.public_paths import set_module

__all__ = ["join_lines", "write_conll", "write_text"]


@set_module("skstruct.datasets")
def write_conll(path_or_file, tokens, labels=None, *, encoding="utf-8", separator=None):
    r"""Write a column file: one token per line, a blank line after each sequence.

    `read_conll` with the same `separator` returns the tokens and labels as they were.

    Parameters
    ----------
    path_or_file : str, path-like or file object
        The file. It is written whole or, if anything is wrong, not at all. A file object is open in
        text mode, and is not closed.
    tokens : sequence of sequences of str or of tuple of str
        The columns of each token.
    labels : sequence of sequences of str, default=None
        Labels, which become the last column.
    encoding : str, default="utf-8"
        Encoding of the file; ignored for a file object.
    separator : str, default=None
        Separator of the columns, by default a space. Columns with spaces need another one, such as
        ``"\t"``.

    Raises
    ------
    ValueError
        If `labels` do not match `tokens`, a sequence is empty, tokens differ in their number of
        columns, or a column could not be read back: it has the separator or a line end, or is
        empty. The message names the sequence and the token.
    OSError
        If the file cannot be written.

    See Also
    --------
    read_conll : Read column files.
    write_conllu : Write CoNLL-U files, with their comments.

    Examples
    --------
    >>> import sys
    >>> from skstruct.datasets import write_conll
    >>> write_conll(sys.stdout, [[("He", "PRP"), ("sleeps", "VBZ")], [("Yes", "UH")]],
    ...             [["B-NP", "B-VP"], ["O"]])
    He PRP B-NP
    sleeps VBZ B-VP
    <BLANKLINE>
    Yes UH O
    <BLANKLINE>
    """
    tokens = list(tokens)
    if labels is not None and len(labels) != len(tokens):
        raise ValueError(f"{len(tokens)} sequences of tokens, but labels for {len(labels)}.")
    write = _Line(" " if separator is None else separator, splitter(separator))
    lines = []
    for i, sequence in enumerate(tokens):
        given = [()] * len(sequence) if labels is None else [(label,) for label in labels[i]]
        if len(given) != len(sequence):
            raise ValueError(f"Sequence {i} has {len(sequence)} tokens, but {len(given)} labels.")
        if not len(sequence):
            raise ValueError(f"Sequence {i} is empty, which a column file cannot express.")
        lines += [""] if lines else []
        for t, (token, label) in enumerate(zip(sequence, given, strict=True)):
            fields = [token] if isinstance(token, str) else list(token)
            lines.append(write([*fields, *label], i, t))
    write_text(path_or_file, join_lines(lines), encoding)


class _Line:
    """Line of the columns of a token, checked to be read back as they were."""

    def __init__(self, separator, split):
        self.width = None
        self._separator = separator
        self._split = split

    def __call__(self, fields, i, t):
        if self.width is None:
            self.width = len(fields)
        if len(fields) != self.width:
            raise ValueError(
                f"Sequence {i}, token {t}: {len(fields)} columns, but {self.width} before."
            )
        wrong = [field for field in fields if not isinstance(field, str)]
        if wrong:
            raise ValueError(
                f"Sequence {i}, token {t}: {short_repr(wrong[0])} is not a string, as columns are."
            )
        line = self._separator.join(fields)
        if self._split(line) != fields or not fields[-1] or set(line) & set("\r\n"):
            raise ValueError(
                f"Sequence {i}, token {t}: {short_repr(fields)} could not be read back with the "
                f"separator {self._separator!r}; choose another one, or change the column."
            )
        return line


def join_lines(lines):
    """Text of lines, with a blank line at the end as the formats have it."""
    return "".join(f"{line}\n" for line in [*lines, ""]) if lines else ""


def write_text(path_or_file, text, encoding):
    """Write text to a file object, or to a file as a whole."""
    if hasattr(path_or_file, "write"):
        path_or_file.write(text)
    else:
        write_whole(path_or_file, text.encode(encoding))
