"""Feature files of CRFsuite and Wapiti: a label and attributes in each line, read as they are."""

import re
from itertools import chain
from math import isfinite

from skstruct.datasets.conll import open_line_blocks
from skstruct.utils.messages import short_repr
from skstruct.utils.options import check_choice
from skstruct.utils.public_paths import set_module

# A colon that is not escaped separates the name of an attribute from its value.
_COLON = re.compile(r"(?<!\\)((?:\\\\)*):")
_ESCAPED = re.compile(r"\\([:\\])")


@set_module("skstruct.datasets")
def read_features(path_or_file, *, format="crfsuite", encoding="utf-8"):
    r"""Read a file of features as CRFsuite or Wapiti takes it.

    Parameters
    ----------
    path_or_file : str, path-like, file object or iterable of lines
        The file; plain or gzipped. A line has a token, a blank line ends a sequence.
    format : {"crfsuite", "wapiti"}, default="crfsuite"
        "crfsuite": a tab stands between the label, which comes first, and the attributes, each a
        name or ``name:value``; in names, ``\:`` stands for a colon and ``\\`` for a backslash.
        "wapiti": blanks stand between the features, and the label comes last, as Wapiti reads files
        without a template; only its features ``u...`` and ``*...`` of tokens are read.
    encoding : str, default="utf-8"
        Encoding of the file.

    Returns
    -------
    tokens : list of list of dict
        For each token a dict of the values of its attributes, 1.0 where there is none; a value that
        occurs twice is added up, as in CRFsuite.
    labels : list of list of str
        The labels.

    Raises
    ------
    ValueError
        If a value is no finite number, a label is empty, or a line of Wapiti begins a feature with
        another letter; the message names the file and the line.
    OSError
        If the file cannot be opened.

    See Also
    --------
    read_conll : Read files with columns, from which a template makes features.

    Examples
    --------
    >>> from skstruct.datasets import read_features
    >>> X, y = read_features(["B-NP\tw=The\tlength:3", "I-NP\tw=cat\tt\\:0", "", "O\tw=!"])
    >>> X
    [[{'w=The': 1.0, 'length': 3.0}, {'w=cat': 1.0, 't:0': 1.0}], [{'w=!': 1.0}]]
    >>> y
    [['B-NP', 'I-NP'], ['O']]
    """
    check_choice("format", format, ("crfsuite", "wapiti"))
    parse = _crfsuite if format == "crfsuite" else _wapiti
    X, y = [[]], [[]]
    with open_line_blocks(path_or_file, encoding) as (name, blocks):
        for number, line in enumerate(chain.from_iterable(blocks), start=1):
            if line.strip():
                try:
                    label, token = parse(line)
                except ValueError as error:
                    raise ValueError(f"{name}, line {number}: {error}") from None
                X[-1].append(token)
                y[-1].append(label)
            elif X[-1]:
                X.append([])
                y.append([])
    if not X[0]:
        raise ValueError(f"{name}: the file has no tokens")
    return list(filter(None, X)), list(filter(None, y))


def _crfsuite(line):
    label, *attributes = line.split("\t")
    if not label.strip():
        raise ValueError("the label, which comes first, is empty")
    token = {}
    for attribute in filter(None, attributes):
        name, value = attribute, 1.0
        colon = _COLON.search(attribute)
        if colon:
            name, value = attribute[: colon.end() - 1], _number(attribute[colon.end() :])
        name = _ESCAPED.sub(r"\1", name)
        token[name] = token.get(name, 0.0) + value
    return label, token


def _number(text):
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise ValueError(
            f"{short_repr(text)} is not the value of an attribute; a colon in a name is written "
            "with a backslash before it"
        )
    return value


def _wapiti(line):
    *features, label = line.split()
    odd = next((feature for feature in features if feature[0] not in "uU*"), None)
    if odd is not None:
        raise ValueError(f"{short_repr(odd)} is not a feature of tokens, which begins with u or *")
    return label, dict.fromkeys(features, 1.0)
