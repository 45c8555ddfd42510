"""Label schemes: which letters mark the first, inner, last and only token of a chunk.

Constraints, chunk metrics, conversions and probabilities of spans all read the table `TABLE`.
`spelling_of` recognises labels that write letters in another way, such as B_LOC or LOC-B.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from skstruct.utils.messages import DataError, short_repr


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

# What others write for letters and for O, in any case. Whole words are rarer in labels of chunks
# than in types, such as start_date and end_date.
_WORDS = {
    **dict.fromkeys(("BEGIN", "BEGINNING", "START"), "B"),
    **dict.fromkeys(("INSIDE", "INNER"), "I"),
    **dict.fromkeys(("MID", "MIDDLE"), "M"),
    **dict.fromkeys(("SINGLE", "SINGLETON", "WHOLE"), "S"),
    **dict.fromkeys(("UNIT", "UNIQUE"), "U"),
    "END": "E",
    "LAST": "L",
}
_LETTER_OF = {**{letter: letter for letter in LETTERS}, "W": "S", **_WORDS}
_OUTSIDES = ("O", "OUT", "OUTSIDE", "OTHER", "OTHERS", "NONE", "NULL", "0", "_", "-")
_ANY_WORD = "|".join(sorted(_LETTER_OF, key=len, reverse=True))
# A separator is any character that is neither a letter nor a digit, also twice or between blanks.
_SEPARATOR = r"(?P<separator>\s*(?P<mark>[\W_])(?P=mark)*\s*)"
_FLAGS = re.DOTALL | re.IGNORECASE
# Where the letter stands; without a separator only capitals are letters.
_SPELLINGS = (
    re.compile(rf"(?P<word>{_ANY_WORD}){_SEPARATOR}(?P<kind>.+)", _FLAGS),
    re.compile(rf"(?P<kind>.+?){_SEPARATOR}(?P<word>{_ANY_WORD})", _FLAGS),
    re.compile(rf"(?P<word>[{LETTERS}])(?P<separator>)(?P<kind>[^\W_]\w+)"),
    re.compile(rf"(?P<kind>\w+[^\W_])(?P<separator>)(?P<word>[{LETTERS}])"),
)


class Spelling(NamedTuple):
    """Way in which labels of chunks are written in place of the schemes' own."""

    standard: dict  # labels as schemes have them, by the labels that were found
    odd: list  # labels that are not written in this way
    is_certain: bool  # False: they may be types, too

    def __str__(self):
        """What was seen, and how to convert it."""
        changed = [(found, label) for found, label in self.standard.items() if found != label]
        seen, label = max(changed, key=lambda pair: len(pair[1]))
        if not self.is_certain:
            return (
                f"Labels such as {seen!r} may mark chunks, {label!r}, or types: "
                "skstruct.datasets.convert_labels rewrites them with source='IOB2', or another "
                "scheme; source='runs' takes each run of a label as a chunk."
            )
        if self.odd:
            return (
                f"Labels such as {seen!r} mark chunks, but {self.odd[0]!r} is not written "
                f"like them. Correct it; skstruct.datasets.convert_labels makes {label!r} of them."
            )
        return (
            f"Labels such as {seen!r} mark chunks, which are written {label!r}: "
            "skstruct.datasets.convert_labels(y, target='IOB2').labels rewrites them."
        )


def spelling_of(labels):
    """Way in which labels of chunks are written, where it is not the schemes' own.

    Parameters
    ----------
    labels : iterable of str

    Returns
    -------
    spelling : Spelling or None
        None for labels of schemes, and for all that do not clearly, or likely, mark chunks.
    """
    labels = sorted(set(labels) - {None}, key=str)
    if not all(isinstance(label, str) for label in labels) or are_of_schemes(labels):
        return None
    found = [_spelled(labels, pattern) for pattern in _SPELLINGS]
    found = [one for one in (*found, _spelled_alone(labels)) if one is not None]
    return min(found, key=lambda one: (not one.is_certain, len(one.odd)), default=None)


def _spelled(labels, pattern):
    """Spelling in which all letters stand where a pattern has them; None unless it is likely."""
    matches = {label: pattern.fullmatch(label) for label in labels}
    matches = {label: match for label, match in matches.items() if match}
    separators = Counter(match["separator"] for match in matches.values())
    separator = max(separators, key=separators.get, default=None)
    parsed = {
        label: (match["word"].upper(), match["kind"])
        for label, match in matches.items()
        if match["separator"] == separator
    }
    standard = {label: f"{_LETTER_OF[word]}-{kind}" for label, (word, kind) in parsed.items()}
    others = [label for label in labels if label not in parsed]
    outside = _outside(others)
    standard.update(dict.fromkeys(outside, OUTSIDE))
    others = [label for label in others if label not in outside]
    alone = {label: _LETTER_OF[label.upper()] for label in others if label.upper() in _LETTER_OF}
    standard.update(alone)
    odd = [label for label in others if label not in alone]
    words = {}
    for word, kind in parsed.values():
        words.setdefault(kind, set()).add(word)
    is_same = all(found == label for found, label in standard.items())
    if is_same or len(set(standard.values())) < len(standard) or not _fit_a_scheme(standard):
        return None
    full = any(map(_are_of_one_chunk, words.values()))
    if separator == "" and (odd or not outside):
        return None
    certain = full and 2 * len(odd) < len(labels) and bool(outside or not odd)
    # One letter only, and capital: types may well begin so, but hardly all of them.
    letters = {label[0] for label in parsed if len(matches[label]["word"]) == 1}
    likely = pattern is _SPELLINGS[0] and outside and not odd and not alone
    likely = likely and len(letters) == 1 and letters <= {"B", "I"}
    return Spelling(standard, odd, certain) if certain or likely else None


def _spelled_alone(labels):
    """Spelling of letters or words without types, as b, i and o; None if they are anything else."""
    outside = _outside(labels)
    others = [label for label in labels if label not in outside]
    if not all(label.upper() in _LETTER_OF for label in others):
        return None
    standard = {**{x: _LETTER_OF[x.upper()] for x in others}, **dict.fromkeys(outside, OUTSIDE)}
    letters = set(standard.values()) - {OUTSIDE}
    whole = {"B", "I"} <= letters if outside else letters == set("BMES")
    is_one = len(set(standard.values())) == len(labels)
    return Spelling(standard, [], True) if whole and is_one and _fit_a_scheme(standard) else None


def _outside(labels):
    """The label that stands for O, in a list, or none; O itself comes before other names."""
    found = [label for label in labels if label.upper() in _OUTSIDES]
    return sorted(found, key=lambda label: (label != OUTSIDE, _OUTSIDES.index(label.upper())))[:1]


def rewritten(y, spelling):
    """Labels of sequences as schemes write them, in place of a spelling; None stays."""
    standard = {None: None, **spelling.standard}
    return [[standard.get(label, label) for label in labels] for labels in y]


def in_standard_spelling(y, *, is_named=False):
    """Labels of sequences as schemes have them, where all are written in another way.

    Parameters
    ----------
    y : list of list of str
    is_named : bool, default=False
        The user has named a scheme with letters: the labels are no types.

    Returns
    -------
    y : list of list of str

    Raises
    ------
    ValueError
        If most labels are written in one way, but not all; or if they may be types.
    """
    spelling = spelling_of(chain.from_iterable(y))
    if spelling is None:
        return y
    if spelling.odd:
        i, t = next((i, x.index(spelling.odd[0])) for i, x in enumerate(y) if spelling.odd[0] in x)
        raise DataError.of(str(spelling), i, t)
    if not (spelling.is_certain or is_named):
        raise ValueError(str(spelling))
    return rewritten(y, spelling)


def _fit_a_scheme(standard):
    letters = {label[0] for label in standard.values()} - {OUTSIDE}
    return any(letters <= set(letters_in(name)) for name in TABLE)


def _are_of_one_chunk(words):
    """Return True if a type has the words, or letters, of several places in a chunk."""
    letters = {_LETTER_OF[word] for word in words}
    if words & set(_WORDS):
        return "B" in letters and bool(letters & set("IM"))
    return len(letters) > 1 and bool(letters & set("BI"))


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
    """Return True if labels mark chunks with types, such as B-NP, I-NP and O."""
    return (
        are_of_schemes(labels)
        and not any(label.startswith("O-") for label in labels)
        and any("-" in label[1:2] for label in labels)
    )


def are_segment_letters(labels):
    """Return True if labels mark segments without types: B, and I, M, E or L, alone."""
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
        True where the label of the column may follow the row's.
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
        If a label is not a string, or labels mark chunks in another spelling.
    """
    pairs = _pairs(y)
    wrong = next((a for pair in pairs for a in pair if not isinstance(a, (str, type(None)))), None)
    if wrong is not None:
        raise ValueError(f"Labels must be strings for chunks, but one is {short_repr(wrong)}.")
    classes = {label for pair in pairs for label in pair} - {None}
    spelling = spelling_of(classes)
    if spelling is not None and spelling.is_certain:
        raise ValueError(str(spelling))
    names = _candidates(classes)
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
    """Write the labels of a chunk into a list, after the chunks before it."""
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
