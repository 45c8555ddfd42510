"""Conversion of labels to spans of characters, entities of spaCy or numbers, and back."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from numbers import Integral, Real
from operator import itemgetter
from typing import NamedTuple

from skstruct.input.formats import NO_LABEL
from skstruct.input.schemes import (
    OUTSIDE,
    RUNS,
    SCHEMES,
    belongs,
    in_standard_spelling,
    infer_scheme,
    joins,
    labels_of_spans,
    write_chunk,
)
from skstruct.metrics.chunks import extract_chunks
from skstruct.metrics.labels import check_lengths, sequences_of
from skstruct.utils.messages import DataError, check_choice, given, short_repr
from skstruct.utils.persistence import set_module

_ALIGNMENTS = ("strict", "expand", "contract")


@set_module("skstruct.datasets")
def find_tokens(text, tokens):
    """Find the characters of each token in a text.

    Parameters
    ----------
    text : str
        The text.
    tokens : sequence of str
        Its tokens, in order. Only blanks may stand between them.

    Returns
    -------
    offsets : list of tuple (start, end)
        ``text[start:end]`` is the token.

    Raises
    ------
    ValueError
        If a token is empty or no string, or is not what comes next in the text.

    Examples
    --------
    >>> from skstruct.datasets import find_tokens
    >>> find_tokens("Rue de Rivoli, 5", ["Rue", "de", "Rivoli", ",", "5"])
    [(0, 3), (4, 6), (7, 13), (13, 14), (15, 16)]
    """
    offsets, end = [], 0
    if not isinstance(text, str):
        raise ValueError(f"The text is {short_repr(text)}; expected a string.")
    for t, token in enumerate(tokens):
        if not isinstance(token, str):
            raise ValueError(f"Token {t} is {short_repr(token)}; expected a string.")
        start = text.find(token, end) if token else -1
        if start < 0 or text[end:start].strip():
            raise ValueError(
                f"Token {t}, {token!r}, is not what comes next in the text: "
                f"{text[end : end + 20]!r}."
            )
        end = start + len(token)
        offsets.append((start, end))
    return offsets


@set_module("skstruct.datasets")
def spans_to_labels(spans, offsets, *, scheme="IOB2", alignment="strict"):
    """Turn spans of characters into labels of tokens.

    Parameters
    ----------
    spans : sequence of tuple (start, end, type)
        Characters of each chunk in the text, and its type; in any order, not overlapping. A
        probability that comes fourth is left out.
    offsets : sequence of tuple (start, end)
        Characters of each token, in order: from `find_tokens` or a tokeniser.
    scheme : {"IOB1", "IOB2", "BIO", "IOE1", "IOE2", "IOBES", "BIOES", "BILOU", "BMES", "runs"}, \
default="IOB2"
        Scheme of the labels. Those of "runs" are the types alone.
    alignment : {"strict", "expand", "contract"}, default="strict"
        What to do with a span that does not begin and end where tokens do: raise an error, or take
        all tokens that it touches ("expand") or contains ("contract"). Without such a token there
        is no chunk.

    Returns
    -------
    labels : list of str
        One for each token, ``"O"`` outside of all spans.

    Raises
    ------
    ValueError
        If a span is empty or its type is not a string, two spans have a character or a token in
        common, or `alignment` is "strict" and a span does not begin and end where tokens do; if
        tokens overlap; or if two spans of a type touch in "runs".

    See Also
    --------
    labels_to_spans : The inverse.

    Examples
    --------
    >>> from skstruct.datasets import find_tokens, spans_to_labels
    >>> offsets = find_tokens("Rue de Rivoli, 5", ["Rue", "de", "Rivoli", ",", "5"])
    >>> spans_to_labels([(0, 13, "street"), (15, 16, "number")], offsets, scheme="IOBES")
    ['B-street', 'I-street', 'E-street', 'O', 'S-number']
    """
    check_choice("scheme", scheme, SCHEMES)
    check_choice("alignment", alignment, _ALIGNMENTS)
    offsets = _checked_offsets(offsets)
    labels, taken = [OUTSIDE] * len(offsets), 0
    for start, end, kind in _in_order(spans):
        first, stop = _tokens_of(start, end, offsets, alignment)
        if first >= stop:
            continue
        if first < taken:
            raise ValueError(f"The span {(start, end, kind)} has a token in common with another.")
        if joins(labels, first, kind, scheme):
            raise ValueError(
                f"The span {(start, end, kind)} would be outside of chunks, or one with the chunk "
                f"before it, in {given('scheme', scheme)}: choose one with letters, such as 'IOB2'."
            )
        write_chunk(labels, first, stop, kind, scheme)
        taken = stop
    return labels


@set_module("skstruct.datasets")
def labels_to_spans(labels, offsets, *, scheme="conlleval"):
    """Turn the labels of tokens into spans of characters.

    Parameters
    ----------
    labels : sequence of str, of shape (length,)
        Labels of the tokens.
    offsets : sequence of tuple (start, end)
        Characters of each token, in order.
    scheme : str, default="conlleval"
        Scheme of the labels, as in :func:`~skstruct.metrics.extract_chunks`.

    Returns
    -------
    spans : list of tuple (start, end, type)
        Characters and type of each chunk, in order.

    Raises
    ------
    ValueError
        If there are more or fewer labels than tokens, or a label is not one of the scheme's.

    See Also
    --------
    spans_to_labels : The inverse.

    Examples
    --------
    >>> from skstruct.datasets import labels_to_spans
    >>> labels_to_spans(["B-street", "I-street", "O"], [(0, 3), (4, 10), (10, 11)])
    [(0, 10, 'street')]
    """
    offsets = _checked_offsets(offsets)
    labels = list(labels) if isinstance(labels, Iterator) else labels
    if len(labels) != len(offsets):
        raise ValueError(f"{len(labels)} labels, but {len(offsets)} tokens.")
    return [
        (offsets[a][0], offsets[b - 1][1], kind)
        for a, b, kind in extract_chunks(labels, scheme=scheme)
    ]


def _checked_offsets(offsets):
    """Offsets of tokens as tuples of integers; a ValueError unless tokens follow each other."""
    checked = []
    for t, offset in enumerate(offsets):
        try:
            start, end = map(as_whole, offset)
        except (TypeError, ValueError):
            raise ValueError(
                f"Token {t} is {short_repr(offset)}; expected its first character and its end, "
                "(start, end)."
            ) from None
        if start >= end or (checked and start < checked[-1][1]):
            raise ValueError(f"Token {t}, {(start, end)}, is empty or overlaps the one before.")
        checked.append((start, end))
    return checked


def as_whole(number):
    """Convert a whole number of any type to int; anything else raises a ValueError."""
    try:
        whole = int(number)
    except (TypeError, OverflowError):
        raise ValueError from None
    if isinstance(number, (str, bytes)) or whole != number:
        raise ValueError
    return whole


def checked_spans(spans, where="spans"):
    """Check spans, and return them as tuples (start, end, type), without probabilities.

    Parameters
    ----------
    spans : iterable of (start, end, type) or (start, end, type, probability)
    where : str, default="spans"
        Name of the spans, for messages.

    Returns
    -------
    spans : list of tuple (int, int, str)

    Raises
    ------
    ValueError
        If a span has too few or too many parts, its ends are not whole numbers, or it is empty; or
        if its type is not a string or an empty one.
    """
    if isinstance(spans, (str, Mapping)) or not isinstance(spans, Iterable):
        raise ValueError(f"{where}: {short_repr(spans)} is not a list of spans.")
    return [_checked_span(span, f"{where}[{number}]") for number, span in enumerate(spans)]


def _checked_span(span, where):
    try:
        start, end, kind, *probability = span
        if len(probability) > 1 or not all(isinstance(p, Real) for p in probability):
            raise ValueError
        start, end = as_whole(start), as_whole(end)
    except (TypeError, ValueError):
        raise ValueError(
            f"{where} is {short_repr(span)}; expected (start, end, type) with two whole numbers."
        ) from None
    if not isinstance(kind, str) or not kind:
        raise ValueError(
            f"{where} has the type {short_repr(kind)}; a type is a string that is not empty."
        )
    if start >= end:
        raise ValueError(f"The span {(start, end, kind)} is empty.")
    return start, end, str(kind)


def _in_order(spans):
    """Spans in order, none of which overlaps another."""
    spans = sorted(checked_spans(spans), key=lambda span: span[:2])
    for before, span in pairwise(spans):
        if span[0] < before[1]:
            raise ValueError(f"The spans {before} and {span} overlap.")
    return spans


def _tokens_of(start, end, offsets, alignment):
    """First token of a span, and the one after its last."""
    of_start, of_end = itemgetter(0), itemgetter(1)
    if alignment == "contract":
        return bisect_left(offsets, start, key=of_start), bisect_right(offsets, end, key=of_end)
    first = bisect_right(offsets, start, key=of_end)
    stop = bisect_left(offsets, end, key=of_start)
    aligned = first < stop and offsets[first][0] == start and offsets[stop - 1][1] == end
    if alignment == "strict" and not aligned:
        raise ValueError(
            f"The span from {start} to {end} does not begin and end where tokens do: pass "
            "alignment='expand' or 'contract', or other tokens."
        )
    return first, stop


@set_module("skstruct.datasets")
class ConvertedLabels(NamedTuple):
    """Result of `convert_labels`.

    Attributes
    ----------
    labels : list of list of str
        The labels in the scheme wanted.
    source : str
        Scheme that they were in, or that most of them were in.
    n_repaired : int
        Number of tokens whose labels broke that scheme and were repaired; with the target "runs"
        also of those in chunks that have become one with the chunk before.
    """

    labels: list
    source: str
    n_repaired: int


@set_module("skstruct.datasets")
def convert_labels(y, *, source=None, target, repair="raise"):
    """Convert labels of chunks from one scheme into another, and repair what breaks the first.

    Parameters
    ----------
    y : sequence of sequences of str
        Labels of the tokens.
    source : str, default=None
        Scheme that they are in, one of the choices of `target`. By default the one that the fewest
        labels break; labels without prefixes are "runs".

        Labels of chunks may be written in other ways, if all are written alike: with another
        separator or none, the letter behind the type, in small letters or as a word, such as
        ``B_LOC``, ``LOC-I``, ``b-loc``, ``BLOC`` or ``Begin-LOC``, and with ``o`` or ``OTHER`` for
        O. They are read as ``B-LOC`` unless the source is "runs".
    target : {"IOB1", "IOB2", "BIO", "IOE1", "IOE2", "IOBES", "BIOES", "BILOU", "BMES", "runs"}
        Scheme that is wanted.
    repair : {"raise", "conlleval", "drop"}, default="raise"
        What to do with labels that break the scheme: raise an error; take every token but O as part
        of a chunk, as conlleval does, so that a missing first label is added; or take chunks that
        are invalid as outside, as strict metrics do. Where two chunks of a type touch, "runs"
        cannot show it: an error, or they become one.

    Returns
    -------
    converted : ConvertedLabels
        ``(labels, source, n_repaired)``.

    Raises
    ------
    ValueError
        If a label is not one of the source's, or is None; or breaks it, or cannot be shown in
        "runs", and `repair` is "raise"; or if labels may be types, or mark chunks and are
        written in another way, such as ``B_LOC`` alone, and `source` is not given.

    See Also
    --------
    spans_to_labels : Labels of spans of characters.

    Examples
    --------
    >>> from skstruct.datasets import convert_labels
    >>> convert_labels([["author", "author", "title", "O"]], target="IOB2").labels
    [['B-author', 'I-author', 'B-title', 'O']]
    >>> convert_labels(
    ...     [["I-LOC", "O", "B-LOC", "I-LOC"]], source="IOB2", target="BMES", repair="conlleval"
    ... )
    ConvertedLabels(labels=[['S-LOC', 'O', 'B-LOC', 'E-LOC']], source='IOB2', n_repaired=1)
    """
    check_choice("target", target, SCHEMES)
    check_choice("source", source, (*SCHEMES, None))
    check_choice("repair", repair, ("raise", "conlleval", "drop"))
    y = sequences_of(y, "y")
    if source != RUNS:
        y = in_standard_spelling(y, is_named=source is not None)
    if source is None:
        # The labels of "runs" are all strings.
        _check_labels(y, RUNS)
        source = infer_scheme(y)
    _check_labels(y, source)
    lenient = repair != "drop" and source != RUNS
    converted, lost = [], set()
    for i, labels in enumerate(y):
        chunks = extract_chunks(labels, scheme="conlleval" if lenient else source)
        valid, wanted = labels_of_spans(chunks, len(labels), source), [OUTSIDE] * len(labels)
        for start, end, kind in chunks:
            if joins(wanted, start, kind, target):
                lost.update((i, t) for t in range(start, end))
            write_chunk(wanted, start, end, kind, target)
        converted.append(wanted)
        lost.update((i, t) for t in range(len(labels)) if labels[t] != valid[t])
    if lost and repair == "raise":
        i, t = min(lost)
        fact = (
            f"{y[i][t]!r} breaks the scheme {source!r}, or cannot be written in {target!r}; so do "
            f"{len(lost)} of {sum(map(len, y))} labels, in {len({i for i, _ in lost})} of {len(y)} "
            f"sequences. Pass {given('repair', 'conlleval')} to keep their chunks, "
            f"{given('repair', 'drop')} to take them as outside, or another {given('source')}."
        )
        raise DataError.of(fact, i, t)
    return ConvertedLabels(converted, source, len(lost))


def _check_labels(y, source):
    """Raise an error for a label that is no string, or not one of the scheme."""
    for i, labels in enumerate(y):
        for t, label in enumerate(labels):
            if not belongs(label, source):
                fault = "no string. Convert labels before unknown ones are put in."
                if isinstance(label, str):
                    fault = (
                        f"not a label of {source!r}. Correct it, or pass another {given('source')}."
                    )
                raise DataError.of(f"{short_repr(label)} is {fault}", i, t)


@set_module("skstruct.datasets")
def labels_from_ids(ids, names):
    """Replace the numbers of labels by their names.

    Parameters
    ----------
    ids : sequence of sequences of int
        Number of the label of each token; -100 where there is none.
    names : sequence of str, dict, or feature of a dataset
        The name of each number; a dict of numbers and names in either direction, such as
        ``model.config.id2label``; or the feature that has them, such as
        ``dataset.features["ner_tags"]``.

    Returns
    -------
    labels : list of list of (str or None)
        Names, and None for -100: taggers that learn from partly labelled sequences take it.

    Raises
    ------
    ValueError
        If an id is neither -100 nor the number of a name, or `names` are not in order.

    See Also
    --------
    labels_to_ids : The inverse.

    Examples
    --------
    >>> from skstruct.datasets import labels_from_ids
    >>> labels_from_ids([[0, 1, -100], [2]], ["O", "B-PER", "I-PER"])
    [['O', 'B-PER', None], ['I-PER']]
    """
    names = _names(names)
    table = {**dict(enumerate(names)), NO_LABEL: None}
    fault = f"is neither the number of one of the {len(names)} names nor {NO_LABEL}, for no label"
    return _replaced(sequences_of(ids, "ids"), table, Integral, "", fault)


@set_module("skstruct.datasets")
def labels_to_ids(labels, names):
    """Replace labels by their numbers.

    Parameters
    ----------
    labels : sequence of sequences of (str or None)
        Labels, such as the output of `predict`.
    names : sequence of str, dict, or feature of a dataset
        As in `labels_from_ids`.

    Returns
    -------
    ids : list of list of int
        -100 for None.

    Raises
    ------
    ValueError
        If a label is not among the names, or these are not in order.

    See Also
    --------
    labels_from_ids : The inverse.

    Examples
    --------
    >>> from skstruct.datasets import labels_to_ids
    >>> labels_to_ids([["O", "B-PER", None], ["I-PER"]], ["O", "B-PER", "I-PER"])
    [[0, 1, -100], [2]]
    """
    names = _names(names)
    table = {**{name: number for number, name in enumerate(names)}, None: NO_LABEL}
    fault = f"is not among the names {short_repr(names)}"
    return _replaced(sequences_of(labels, "labels"), table, (str, type(None)), "the label ", fault)


def _replaced(rows, table, kinds, what, fault):
    """Look values up in a table; an error names the first that is not in it."""
    for i, row in enumerate(rows):
        for t, value in enumerate(row):
            if not isinstance(value, kinds) or value not in table:
                raise DataError.of(f"{what}{short_repr(value)} {fault}.", i, t)
    return [[table[value] for value in row] for row in rows]


def _names(names):
    """Names of the labels, from a list or from a feature such as a sequence of ClassLabel."""
    while hasattr(names, "feature"):
        names = names.feature
    names = getattr(names, "names", names)
    if isinstance(names, Mapping):
        names = _by_number(names)
    if isinstance(names, (str, set, frozenset)) or not isinstance(names, Iterable):
        raise ValueError(f"names must be an ordered list or a dict, got {short_repr(names)}.")
    names = list(names)
    if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be different strings, got {short_repr(names)}.")
    return names


def _by_number(table):
    """Names in a dict, in the order of the numbers that are its keys or values."""
    names = table
    if all(isinstance(number, Integral) for number in table.values()):
        names = {number: name for name, number in table.items()}
    elif all(isinstance(key, str) and key.isdecimal() for key in table):
        # As JSON has them.
        names = {int(key): name for key, name in table.items()}
    if set(names) != set(range(len(table))):
        raise ValueError(f"The numbers of names must be 0, 1, ..., got {short_repr(table)}.")
    return [names[number] for number in range(len(table))]


@set_module("skstruct.datasets")
def docs_to_sequences(docs, *, attributes="text", label="ent", sentences=False):
    """Turn documents of spaCy into sequences of tokens and their labels.

    Parameters
    ----------
    docs : iterable of spacy.tokens.Doc
        Documents, such as ``DocBin.get_docs`` returns.
    attributes : str or sequence of str, default="text"
        Attributes of a token, such as ``"lower_"``, ``"tag_"`` or ``"shape_"``. Tokens are str for
        one name, tuples of str for a sequence of names.
    label : str or None, default="ent"
        "ent" for the entities in IOB2, or an attribute of the tokens such as ``"tag_"``; None for
        no labels.
    sentences : bool, default=False
        Make a sequence of each sentence rather than of each document. An entity over the end of a
        sentence becomes one in each.

    Returns
    -------
    tokens : list of list of str or of tuple of str
        The sequences.
    labels : list of list of (str or None), or None
        Their labels: None for a token without annotation. None if `label` is None.

    Raises
    ------
    ValueError
        If `docs` is a single document, or tokens lack an attribute.

    See Also
    --------
    labels_to_docs : Write labels back as entities.

    Examples
    --------
    >>> from skstruct.datasets import docs_to_sequences
    >>> import spacy  # doctest: +SKIP
    >>> doc = spacy.blank("en")("Maria sings")  # doctest: +SKIP
    >>> docs_to_sequences([doc], label=None)  # doctest: +SKIP
    ([['Maria', 'sings']], None)
    """
    if hasattr(docs, "ents"):
        raise ValueError("docs is a single document; put it into a list, [docs].")
    sequences = [part for doc in docs for part in (doc.sents if sentences else [doc])]

    def take(token):
        if isinstance(attributes, str):
            return _attribute(token, attributes)
        return tuple(_attribute(token, name) for name in attributes)

    tokens = [list(map(take, part)) for part in sequences]
    if label is None:
        return tokens, None
    if label == "ent":
        return tokens, [
            [_entity_label(token, is_first=t == 0) for t, token in enumerate(part)]
            for part in sequences
        ]
    labels = [[_attribute(token, label) for token in part] for part in sequences]
    # spaCy has an empty string, or its number 0, where there is no annotation.
    return tokens, [[x if x or x is False else None for x in part] for part in labels]


def _attribute(token, name):
    try:
        return getattr(token, name)
    except (AttributeError, TypeError):
        raise ValueError(f"Tokens of spaCy have no attribute {name!r}.") from None


def _entity_label(token, *, is_first):
    if not token.ent_iob_:
        return None
    # A token that must not be in an entity is the first of one without a type.
    if token.ent_iob_ == "O" or not token.ent_type_:
        return "O"
    return f"{'B' if is_first else token.ent_iob_}-{token.ent_type_}"


@set_module("skstruct.datasets")
def labels_to_docs(labels, docs, *, scheme="conlleval"):
    """Set the entities of documents of spaCy to the chunks that labels describe.

    Parameters
    ----------
    labels : sequence of sequences of str
        Labels of the tokens of each document, such as a tagger predicts.
    docs : sequence of spacy.tokens.Doc
        The documents; changed in place.
    scheme : str, default="conlleval"
        Scheme of the labels, as in :func:`~skstruct.metrics.extract_chunks`.

    Returns
    -------
    docs : list of spacy.tokens.Doc
        The same documents.

    Raises
    ------
    ValueError
        If there are more or fewer label sequences than documents, or labels than tokens, or a
        label is not one of the scheme's. No document is changed then.

    See Also
    --------
    docs_to_sequences : Tokens and labels of documents.
    """
    from spacy.tokens import Span  # optional: documents come with it

    if hasattr(docs, "ents"):
        raise ValueError("docs is a single document; put it into a list, [docs].")
    docs, labels = list(docs), sequences_of(labels, "labels")
    check_lengths(docs, labels)
    entities = []
    for doc, found in zip(docs, labels, strict=True):
        chunks = extract_chunks(found, scheme=scheme)
        entities.append([Span(doc, first, end, label=kind) for first, end, kind in chunks])
    for doc, spans in zip(docs, entities, strict=True):
        doc.set_ents(spans)
    return docs
