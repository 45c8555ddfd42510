"""Chunks in label sequences: found in every scheme, matched, paired and counted."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from skstruct.chain.spans import Reading
from skstruct.input.schemes import (
    LETTERS,
    OUTSIDE,
    PLACES,
    RUNS,
    SCHEMES,
    letters_in,
    odd_labels,
    scheme_named,
    scheme_of_classes,
    spelling_of,
    split_label,
)
from skstruct.matrices import read_only
from skstruct.metrics.labels import (
    StackedLabels,
    as_list,
    check_types,
    count_by_sequence,
    stack_both,
    weigh_sequences,
)
from skstruct.utils.messages import check_choice, given, short_repr
from skstruct.utils.persistence import set_module

_O, _B, _I, _E, _S = range(5)
_OF_PLACES = {"first": _B, "inner": _I, "last": _E, "only": _S}
_ROLES = {OUTSIDE: _O, **{letter: _OF_PLACES[place] for letter, place in PLACES.items()}}


class _Chunks(NamedTuple):
    """Chunks in order of position; positions count the tokens of the whole batch."""

    starts: np.ndarray
    stops: np.ndarray
    kinds: np.ndarray


@set_module("skstruct.metrics")
def extract_chunks(labels, *, scheme="conlleval"):
    """Find the chunks in one sequence of labels.

    A label is ``"O"`` (outside), or one of the letters B (begin), I or M (inside), E or L (end), S
    or U (single token), alone or followed by ``-`` and the type of the chunk. The type may contain
    ``-``; a letter alone has the type ``"_"``. In the scheme "runs", labels are types.

    Parameters
    ----------
    labels : sequence of str, of shape (length,)
        The labels of one sequence.
    scheme : {"conlleval", "IOB1", "IOB2", "BIO", "IOE1", "IOE2", "IOBES", "BIOES", "BILOU", \
"BMES", "runs"}, default="conlleval"
        Scheme of the labels; see Notes. "BIO" is another name for "IOB2", "BIOES" for "IOBES".
        "BILOU" uses L for E and U for S, "BMES" M for I.

    Returns
    -------
    chunks : list of tuple (start, stop, type)
        In order of position; ``labels[start:stop]`` are the labels of the chunk.

    Raises
    ------
    ValueError
        If the scheme is unknown, or a label is not a str or not one of the scheme's, such as a
        sequence of several.

    Notes
    -----
    "conlleval" is the lenient mode of the CoNLL shared tasks' ``conlleval`` script and of
    seqeval's default. It reads valid labels of all schemes but "runs" alike. With invalid labels,
    every token but O still belongs to a chunk. A chunk continues from B, I or M to an I, M, E or L
    of the same type; any other pair of neighbours separates two chunks.

    The named schemes are strict, as in seqeval's ``mode="strict"``. Only valid chunks of the
    scheme count:

    - "IOB2": B, then any number of I of the same type.
    - "IOBES": S, or B, then any number of I, then E, all of the same type.
    - "IOB1": a run of I of the same type. B is valid only directly after a token of its own type,
      where it starts a new chunk that any number of I may follow. An invalid B is read as O.
    - "IOE2": any number of I, then E, all of the same type.
    - "IOE1": a run of I of the same type. E is valid only directly before a token of its own type,
      where it ends a chunk. An invalid E is read as O.

    With "runs", the labels have no prefixes, and each run of a label other than O is a chunk.

    Results differ from seqeval and conlleval only for labels that are invalid in every scheme. A
    label with another prefix, or with none (``"NP"``), is an error here and for strict seqeval.
    seqeval's default mode takes the first letter as the prefix, and conlleval counts such tokens
    depending on their neighbours. L and U are ends and single tokens in the lenient mode, too, and
    M is inside. In strict IOB1, seqeval drops a chunk of a single, valid B if an invalid B of
    another type follows it; here it counts. In strict IOE1, seqeval misses valid chunks of a single
    E. The original conlleval does not support S, gives a bare letter an empty type (seqeval:
    ``"_"``), and does not separate an E from a B of the same type.

    Examples
    --------
    >>> from skstruct.metrics import extract_chunks
    >>> extract_chunks(["B-NP", "I-NP", "O", "I-VP", "B-NP"])
    [(0, 2, 'NP'), (3, 4, 'VP'), (4, 5, 'NP')]
    >>> extract_chunks(["B-NP", "I-NP", "O", "I-VP", "B-NP"], scheme="IOB2")
    [(0, 2, 'NP'), (4, 5, 'NP')]
    >>> extract_chunks(["author", "author", "title"], scheme="runs")
    [(0, 2, 'author'), (2, 3, 'title')]
    """
    if isinstance(labels, (str, Mapping)) or not isinstance(labels, Iterable):
        raise ValueError(
            f"labels must be a list or array of the labels of a sequence, got {short_repr(labels)}"
        )
    labels = as_list(labels)
    nested = [x for x in labels if hasattr(x, "__len__") and not isinstance(x, str)]
    if nested:
        raise ValueError(
            f"labels must belong to one sequence, but one of them is {short_repr(nested[0])}; "
            "pass the sequences one by one"
        )
    # With an offset for every label, errors name the position in the sequence.
    tokens = StackedLabels("labels", labels, np.arange(len(labels) + 1), flat=True)
    types, (coded,) = _encode([tokens], scheme)
    chunks = _find_chunks(*coded, np.arange(len(labels)) == 0, scheme)
    names = [types[kind] for kind in chunks.kinds]
    return list(zip(chunks.starts.tolist(), chunks.stops.tolist(), names, strict=True))


def _role_and_type(label, scheme):
    """Role of a label in its chunk, and the type of this, which is empty for O."""
    letter, kind = ("I", label) if scheme == RUNS else split_label(label)
    return (_O, "") if OUTSIDE in (letter, label) else (_ROLES[letter], kind)


def _encode(batch, scheme):
    """Give every token a role (one of _O, _B, _I, _E, _S) and the number of its chunk type.

    Returns the sorted types and, for each of the batch, a pair of arrays of shape (n_tokens,).
    """
    check_choice("scheme", scheme, ("conlleval", *SCHEMES))
    names = "skstruct.datasets.labels_from_ids replaces numbers by names"
    for tokens in batch:
        check_types(tokens, str, f"labels of chunks must be str; {names}")
    parsed, letters = {}, LETTERS if scheme in ("conlleval", RUNS) else letters_in(scheme)
    for tokens in batch:
        for label in set(tokens.labels).difference(parsed):
            letter = label.partition("-")[0]
            if scheme != RUNS and letter not in (OUTSIDE, *letters):
                expected = f"'O' or one of {', '.join(letters)}, alone or before '-' and a type"
                more = "" if "-" in label[1:2] else "; 'runs' takes runs of labels"
                spelling = spelling_of({label for side in batch for label in side.labels})
                tokens.fail(
                    tokens.labels.index(label),
                    f"the labels of {given('scheme', scheme)} are {expected}"
                    f"{more if spelling is None else f'. {spelling}'.rstrip('.')}",
                )
            parsed[label] = _role_and_type(label, scheme)
    types = sorted({kind for _, kind in parsed.values()})
    numbers = {kind: number for number, kind in enumerate(types)}
    codes = {label: code for code, label in enumerate(parsed)}
    roles = np.array([role for role, _ in parsed.values()], dtype=np.int8)
    kinds = np.array([numbers[kind] for _, kind in parsed.values()], dtype=np.intp)
    coded = []
    for tokens in batch:
        lookup = map(codes.__getitem__, tokens.labels)
        code = np.fromiter(lookup, np.intp, len(tokens.labels))
        coded.append((roles[code], kinds[code]))
    return types, coded


def _find_chunks(roles, kinds, is_first, scheme):
    """Find the chunks of tokens with these roles and types, where O has a type of its own.

    Neighbours are linked or not, depending on their roles and types. Maximal runs of linked tokens
    partition the batch, and the scheme determines which runs are chunks.
    """
    same = np.zeros(len(roles), dtype=bool)
    same[1:] = (kinds[1:] == kinds[:-1]) & ~is_first[1:]
    letters = scheme_named(scheme)
    if letters is not None and letters.opens:
        roles = np.where((roles == _ROLES[letters.opens]) & ~same, _O, roles)
    if letters is not None and letters.closes:
        before_same = np.append(same[1:], False)[: len(roles)]
        roles = np.where((roles == _ROLES[letters.closes]) & ~before_same, _O, roles)
    linked = same & ((roles == _I) | (roles == _E))
    linked[1:] &= (roles[:-1] == _B) | (roles[:-1] == _I)
    starts = np.flatnonzero(~linked)
    stops = np.append(starts[1:], len(roles))[: len(starts)]
    head, tail = roles[starts], roles[stops - 1]
    valid = head != _O
    if letters is not None and not (letters.opens or letters.closes):
        first, _, last, only = (_ROLES[letter] for letter in letters[:4])
        whole = (head == first) & (tail == last)
        valid = np.where(stops - starts == 1, head == only, whole)
    return _Chunks(starts[valid], stops[valid], kinds[starts[valid]])


def reading_of_labels(classes):
    """Read all pairs of labels as "conlleval" does; runs of a label where labels have no prefixes.

    Parameters
    ----------
    classes : tuple of str or of int

    Returns
    -------
    types : tuple
        Types of chunks, sorted.
    reading : Reading
    separable : ndarray of shape (n_types,), dtype bool
        True for types of which a chunk can be told from one right before it.

    Raises
    ------
    ValueError
        If a label has no letter of a scheme, and the others have; or if labels mark chunks
        in another spelling.
    """
    return _reading_of_labels(classes, tuple(map(type, classes)))


@lru_cache(maxsize=16)
def _reading_of_labels(classes, _):
    """Reading of labels of some types: 1, 1.0 and True are equal, but other types of chunks."""
    spelling = spelling_of(classes)
    if spelling is not None and spelling.is_certain:
        raise ValueError(f"{spelling} Fit the tagger to these.")
    if odd := odd_labels(classes):
        raise ValueError(
            f"Label {odd[0]!r} has no letter of a scheme, as the other labels have: its chunks are "
            "unknown. Correct it in the training data."
        )
    scheme = RUNS if scheme_of_classes(classes) == RUNS else "conlleval"
    parsed = [_role_and_type(label, scheme) for label in classes]
    types = tuple(sorted({kind for role, kind in parsed if role != _O}))
    # No token is outside of chunks.
    roles = np.array([*(role for role, _ in parsed), _O])
    kinds = np.array([*(types.index(kind) if role != _O else -1 for role, kind in parsed), -1])
    goes_on = (kinds[:, None] == kinds) & np.isin(roles, (_I, _E))
    goes_on &= np.isin(roles, (_B, _I))[:, None]
    inside = roles != _O
    kinds, opens = kinds[:-1], inside & ~goes_on
    separable = [opens[:-1][kinds == k][:, :-1][:, kinds == k].any() for k in range(len(types))]
    reading = Reading(kinds, opens, goes_on, inside[:, None] & ~goes_on)
    return types, read_only(reading), read_only(np.array(separable, bool))


def count_chunks(y_true, y_pred, labels, scheme, sample_weight):
    """Count the chunks of each type, or add up their weights.

    Returns the types, and for each of them the number of correct, predicted and true chunks.
    """
    types, lengths, found = _find_pair(y_true, y_pred, scheme)
    if labels is None:
        labels = [types[kind] for kind in np.unique(np.concatenate([c.kinds for c in found]))]
    else:
        labels = chosen_types(labels, types)
    weights = None
    if sample_weight is not None:
        weights = np.repeat(weigh_sequences(sample_weight, len(lengths)), lengths)
    # The extra row of zeros at the end serves types that do not occur.
    row_of = dict(zip(types, range(len(types)), strict=True))
    rows = [row_of.get(label, len(types)) for label in labels]
    counts = []
    for chunks in found:
        weight = None if weights is None else weights[chunks.starts]
        count = np.bincount(chunks.kinds, weights=weight, minlength=len(types) + 1)
        counts.append(count[rows])
    return labels, counts


def chosen_types(chosen, types):
    """List of the chunk types to score; some may not occur."""
    is_list = isinstance(chosen, Iterable) and not isinstance(chosen, (str, Mapping))
    names = list(chosen) if is_list else [chosen]
    is_list = is_list and all(isinstance(name, str) for name in names)
    if not is_list or len(set(names)) != len(names):
        raise ValueError(f"labels must be a list of distinct chunk types, got {short_repr(chosen)}")
    for name in names:
        letter, dash, kind = name.partition("-")
        kind = kind if dash else "_"
        if name not in types and (name == "O" or (letter in _ROLES and kind in types)):
            meant = "leave it out" if letter == "O" else f"pass the type {kind!r}"
            raise ValueError(f"labels must be types of chunks, but {name!r} is a label: {meant}")
    return names


def count_chunks_of_sequences(y_true, y_pred, scheme):
    """Count the correct, predicted and true chunks of each sequence, (n_sequences, 3)."""
    _, lengths, found = _find_pair(y_true, y_pred, scheme)
    return np.column_stack([count_by_sequence(chunks.starts, lengths) for chunks in found])


def pairs_of_chunks(y_true, y_pred, scheme):
    """Types, and for each sequence its true and its predicted chunks, (start, end, number of type).

    Positions count the tokens of all sequences.
    """
    types, lengths, (_, pred, true) = _find_pair(y_true, y_pred, scheme)
    ends = np.cumsum(lengths)
    sides = []
    for chunks in (true, pred):
        tuples = list(zip(*(column.tolist() for column in chunks), strict=True))
        bounds = [0, *np.searchsorted(chunks.starts, ends).tolist()]
        sides.append([tuples[a:b] for a, b in pairwise(bounds)])
    return types, list(zip(*sides, strict=True))


def _find_pair(y_true, y_pred, scheme):
    """Types, lengths of the sequences, and the correct, predicted and true chunks."""
    pair = stack_both(y_true, y_pred)
    types, coded = _encode(pair, scheme)
    lengths = np.diff(pair[0].offsets)
    is_first = np.zeros(len(pair[0].labels), dtype=bool)
    is_first[pair[0].offsets[:-1][lengths > 0]] = True
    true, pred = (_find_chunks(*roles_and_kinds, is_first, scheme) for roles_and_kinds in coded)
    return types, lengths, (_match(true, pred, len(is_first)), pred, true)


def _match(true, pred, n_tokens):
    """Select the correct chunks, using that the chunks of each side have distinct starts."""
    stop_at = np.zeros(n_tokens, dtype=np.intp)
    kind_at = np.zeros(n_tokens, dtype=np.intp)
    stop_at[true.starts], kind_at[true.starts] = true.stops, true.kinds
    hit = (stop_at[pred.starts] == pred.stops) & (kind_at[pred.starts] == pred.kinds)
    return _Chunks(*(column[hit] for column in pred))


KINDS_OF_ERRORS = ("right", "wrong type", "wrong boundary", "both wrong", "missed", "invented")


def errors_of_sequence(true, predicted):
    """Pair the chunks of a sequence, the most similar ones first.

    Parameters
    ----------
    true, predicted : list of tuple (start, end, type)
        In order.

    Returns
    -------
    errors : list of tuple (kind, true chunk or None, predicted chunk or None)
        The kind is one of `KINDS_OF_ERRORS`.
    """
    candidates = []
    for i, a in enumerate(true):
        for j in overlapped(predicted, a):
            b = predicted[j]
            wrong_type, wrong_boundary = a[2] != b[2], a[:2] != b[:2]
            # Number of the kind: the first four are all combinations, in this order.
            candidates.append((wrong_type + 2 * wrong_boundary, i, j))
    found, left, right = [], dict(enumerate(true)), dict(enumerate(predicted))
    for kind, i, j in sorted(candidates):
        if i in left and j in right:
            found.append((KINDS_OF_ERRORS[kind], left.pop(i), right.pop(j)))
    found += [("missed", chunk, None) for chunk in left.values()]
    return found + [("invented", None, chunk) for chunk in right.values()]


def overlapped(spans, span):
    """Places in a list, in order and free of overlaps, of the spans that this one overlaps."""
    first = bisect_right(spans, span[0], key=itemgetter(1))
    return range(first, bisect_left(spans, span[1], key=itemgetter(0)))


def without_overlaps(spans):
    """Leave out each span that overlaps one before it in the list, and put the others in order."""
    kept = []
    for span in spans:
        places = overlapped(kept, span)
        if not places:
            kept.insert(places.start, span)
    return kept
