"""Label schemes: which letters mark the first, inner, last and only token of a chunk.

Constraints, chunk metrics, conversions and probabilities of spans all read the table `TABLE`.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from skstruct.utils.messages import short_repr


class Scheme(NamedTuple):
    """Letters of a scheme."""

    first: str  # of the first token of a chunk
    inner: str
    last: str
    only: str  # of the only token of a chunk
    opens: str = ""  # of the first token of a chunk that follows one of its own type
    closes: str = ""  # of the last token of a chunk that one of its own type follows


OUTSIDE = "O"
# Labels are types, and a run of a type is a chunk.
RUNS = "runs"
# In the order in which they are preferred where labels are valid in several.
TABLE = {
    "IOB2": Scheme(*"BIIB"),
    "IOBES": Scheme(*"BIES"),
    "BILOU": Scheme(*"BILU"),
    "BMES": Scheme(*"BMES"),
    "IOE2": Scheme(*"IIEE"),
    "IOB1": Scheme(*"IIII", opens="B"),
    "IOE1": Scheme(*"IIII", closes="E"),
}
ALIASES = {"BIO": "IOB2", "BIOES": "IOBES"}
SCHEMES = ("IOB1", "IOB2", "BIO", "IOE1", "IOE2", "IOBES", "BIOES", "BILOU", "BMES", RUNS)
# What letters mean where no scheme is named: their places in a chunk.
PLACES = {
    letter: place
    for name in ("IOBES", "BILOU", "BMES")
    for place, letter in zip(Scheme._fields, TABLE[name], strict=True)
    if letter
}
LETTERS = "".join(PLACES)
_LABEL = re.compile(rf"[{LETTERS}{OUTSIDE}](-.*)?", re.DOTALL)


def scheme_named(name):
    """Scheme of a name; None for "runs", which has no letters."""
    return TABLE.get(ALIASES.get(name, name))


def letters_in(name):
    """Letters of a scheme, in the order of a chunk."""
    s = scheme_named(name)
    return "".join(dict.fromkeys(s.opens + s.first + s.inner + s.last + s.closes + s.only))


def split_label(label):
    """Letter and type of a label with letters; the type of a letter alone is "_"."""
    letter, _, kind = label.partition("-")
    return letter, kind or "_"


def belongs(label, name):
    """Return True for a label of a scheme."""
    if not isinstance(label, str):
        return False
    letter = label.partition("-")[0]
    return name == RUNS or label == OUTSIDE or (len(letter) == 1 and letter in letters_in(name))


def are_of_schemes(labels):
    """Return True if labels begin with the letters of schemes, with types or without."""
    return all(isinstance(label, str) and _LABEL.fullmatch(label) for label in labels)


def odd_labels(labels):
    """Labels without a letter of a scheme, sorted, where the others are clearly of one.

    They are if one of them is O, or a type has two letters, as in B-LOC and I-LOC. Types may begin
    like labels, as S-Bahn and U-Bahn do.
    """
    odd = [label for label in labels if not are_of_schemes([label])]
    others = set(labels).difference(odd)
    letters = {label[0] for label in others} - {OUTSIDE}
    types = [split_label(label)[1] for label in others if "-" in label]
    clear = types and (OUTSIDE in others or len(set(types)) < len(types))
    clear = clear and any(letters <= set(letters_in(name)) for name in TABLE)
    return sorted(odd, key=str) if clear or are_segment_letters(others) else []


def are_chunk_labels(labels):
    """Return True if labels are those of chunks with types, such as B-NP, I-NP and O."""
    return (
        are_of_schemes(labels)
        and not any(label.startswith("O-") for label in labels)
        and any("-" in label[1:2] for label in labels)
    )


def are_segment_letters(labels):
    """Return True if labels are those of segments without types: B, and I, M, E or L, alone."""
    found = set(labels)
    return "B" in found and bool(found & set("IMEL")) and found <= {*LETTERS, OUTSIDE}


def allowed_labels(labels, name):
    """Transitions, starts and ends that a scheme allows.

    Parameters
    ----------
    labels : list of str
        Labels of the scheme.
    name : str

    Returns
    -------
    transition : ndarray of shape (n_labels, n_labels), dtype bool
        True where the label of the column may follow that of the row.
    start, end : ndarray of shape (n_labels,), dtype bool
        True for labels that may come first, and last.
    """
    scheme = scheme_named(name)
    if scheme is None:
        everything = np.ones(len(labels), bool)
        return np.ones((len(labels), len(labels)), bool), everything, everything
    letters, kinds = np.array([split_label(label) for label in labels], object).reshape(-1, 2).T
    outside = letters == OUTSIDE

    def among(some):
        return np.array([letter in some for letter in letters], bool)

    opens, closes = among(scheme.opens), among(scheme.closes)
    lone = outside | among(scheme.only) | opens | closes
    begins, ends = lone | among(scheme.first), lone | among(scheme.last)
    stays = opens | among(scheme.first + scheme.inner)
    goes_on = closes | among(scheme.inner + scheme.last)
    same = (kinds[:, None] == kinds) & ~outside[:, None] & ~outside
    transition = (ends[:, None] & begins) | (stays[:, None] & goes_on & same)
    transition &= same | ~(opens | closes[:, None])
    return transition, begins & ~opens, ends & ~closes


def scheme_of_classes(classes):
    """Scheme of labels, by the letters that most have; "runs" if they have none."""
    return _candidates(classes)[0]


def infer_scheme(y):
    """Scheme that the fewest labels break; "runs" for labels without letters.

    Parameters
    ----------
    y : list of list of str

    Returns
    -------
    name : str

    Raises
    ------
    ValueError
        If a label is not a string.
    """
    pairs = _pairs(y)
    wrong = next((a for pair in pairs for a in pair if not isinstance(a, (str, type(None)))), None)
    if wrong is not None:
        raise ValueError(f"Labels must be strings for chunks, but one is {short_repr(wrong)}.")
    names = _candidates({label for pair in pairs for label in pair} - {None})
    return names[0] if len(names) == 1 else min(names, key=lambda name: _breaches(pairs, name))


def count_breaches(y, name):
    """Count the places where labels of a scheme break it: at an end, or after another label."""
    return _breaches(_pairs(y), name)


def _pairs(y):
    """Number of times that a label follows another; None stands for the ends of sequences."""
    pairs = Counter()
    for labels in y:
        pairs.update(pairwise((None, *labels, None)))
    return pairs


def _breaches(pairs, name):
    classes = sorted({label for pair in pairs for label in pair} - {None})
    number = {label: n for n, label in enumerate([*classes, None])}
    fine = np.ones((len(number), len(number)), bool)
    fine[:-1, :-1], fine[-1, :-1], fine[:-1, -1] = allowed_labels(classes, name)
    return sum(n for (a, b), n in pairs.items() if not fine[number[a], number[b]])


def _candidates(classes):
    """Names of the schemes that labels may be in, the most plausible ones first."""
    classes = set(classes).difference(odd_labels(classes))
    if not are_of_schemes(classes):
        return [RUNS]
    found = {label[0] for label in classes} - {OUTSIDE}
    able = [name for name in TABLE if found <= set(letters_in(name))]

    def speaks_against(name):
        first, _, last, only, *_ = TABLE[name]
        return not (found & {first, only} and found & {last, only})

    # If letters of several schemes are mixed, the scheme that has most of them.
    return sorted(able, key=speaks_against) or [
        max(TABLE, key=lambda name: len(found & set(letters_in(name))))
    ]


def joins(labels, start, kind, name):
    """Return True if "runs" cannot express a chunk: of type O, or right after one of its type."""
    return name == RUNS and (kind == OUTSIDE or (start > 0 and labels[start - 1] == kind))


def labels_of_spans(spans, length, scheme):
    """Labels of a sequence in which spans are the chunks.

    Parameters
    ----------
    spans : list of tuple (start, end, type, ...)
        In order, not overlapping.
    length : int
        Number of tokens.
    scheme : str

    Returns
    -------
    labels : list of str
    """
    labels = [OUTSIDE] * length
    for start, end, kind, *_ in spans:
        write_chunk(labels, start, end, kind, scheme)
    return labels


def write_chunk(labels, start, end, kind, name):
    """Write the labels of a chunk into a list that has those of the chunks before it."""
    scheme = scheme_named(name)
    if scheme is None:
        labels[start:end] = [kind] * (end - start)
        return
    tail = "" if kind == "_" else f"-{kind}"
    before = labels[start - 1] if start else OUTSIDE
    letters = list(scheme.only if end - start == 1 else scheme.first)
    if end - start > 1:
        letters += [scheme.inner] * (end - start - 2) + [scheme.last]
    if before != OUTSIDE and before[1:] == tail:
        letters[0] = scheme.opens or letters[0]
        labels[start - 1] = scheme.closes + tail if scheme.closes else before
    labels[start:end] = [letter + tail for letter in letters]
