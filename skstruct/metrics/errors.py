"""Errors in chunks by their kind: wrong type, wrong boundary, missed, invented."""

import numpy as np

from skstruct.metrics.chunks import pairs_of_chunks
from skstruct.metrics.scores import table
from skstruct.utils.public_paths import set_module

KINDS_OF_ERRORS = ("right", "wrong type", "wrong boundary", "both wrong", "missed", "invented")
# Condition of a correct pair of overlapping chunks; kind and share of all other pairs.
SCHEMAS = {
    "strict": (lambda same_span, same_type: same_span and same_type, "incorrect", 0.0),
    "exact": (lambda same_span, same_type: same_span, "incorrect", 0.0),
    "partial": (lambda same_span, same_type: same_span, "partial", 0.5),
    "type": (lambda same_span, same_type: same_type, "incorrect", 0.0),
}
_COUNTS = ("correct", "incorrect", "partial", "missed", "spurious")
_SCORES = ("precision", "recall", "f1-score")


@set_module("skstruct.metrics")
def chunk_error_report(
    y_true, y_pred, *, scheme="conlleval", digits=2, output_dict=False, zero_division=0.0
):
    """Report the kinds of errors of predicted chunks, and four scores of them.

    In the first table each chunk counts once: it is right; it has the wrong type, the wrong
    boundary, or both, beside a true chunk that it overlaps; it was missed or invented. The most
    similar chunks are paired first.

    The second table has the four scores of SemEval-2013 task 9, as nervaluate counts them. Chunks
    are "correct" by both boundary and type ("strict"), by the boundary alone ("exact", and
    "partial", where others that overlap count half), or by the type alone where they overlap
    ("type").

    Parameters
    ----------
    y_true, y_pred : label sequences, n_sequences of them
        Correct and predicted labels, in any form that the module accepts.
    scheme : str, default="conlleval"
        Scheme of the labels, see :func:`extract_chunks`.
    digits : int, default=2
        Digits after the decimal point; ignored for a dict.
    output_dict : bool, default=False
        Return a dict instead of text.
    zero_division : float, default=0.0
        A score whose denominator is zero.

    Returns
    -------
    report : str or dict
        As a dict, ``report["errors"]`` has for each type, and for ``"all"``, the counts "right",
        "wrong type", "wrong boundary", "both wrong", "missed" and "invented". A pair counts in the
        row of its true type. ``report["strict"]``, "exact", "partial" and "type" have the
        counts "correct", "incorrect", "partial", "missed" and "spurious", and "precision",
        "recall" and "f1-score".

    Raises
    ------
    ValueError
        If `y_true` and `y_pred` are empty or differ in number or lengths of sequences, or a label
        is not one of the scheme's.

    References
    ----------
    Isabel Segura-Bedmar, Paloma Martinez and Maria Herrero-Zazo: SemEval-2013 task 9: extraction of
    drug-drug interactions from biomedical texts. SemEval 2013.

    Examples
    --------
    >>> from skstruct.metrics import chunk_error_report
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"]]
    >>> y_pred = [["B-PER", "O", "O", "B-ORG"], ["O", "B-LOC"]]
    >>> print(chunk_error_report(y_true, y_pred))
         right  wrong type  wrong boundary  both wrong  missed  invented
    <BLANKLINE>
    LOC      0           1               0           0       1         1
    PER      0           0               1           0       0         0
    all      0           1               1           0       1         1
    <BLANKLINE>
             correct  incorrect  partial  missed  spurious  precision  recall  f1-score
    <BLANKLINE>
     strict        0          2        0       1         1       0.00    0.00      0.00
      exact        1          1        0       1         1       0.33    0.33      0.33
    partial        1          0        1       1         1       0.50    0.50      0.50
       type        1          1        0       1         1       0.33    0.33      0.33
    <BLANKLINE>
    """
    types, pairs = pairs_of_chunks(y_true, y_pred, scheme)
    errors = np.zeros((len(types), len(KINDS_OF_ERRORS)), dtype=int)
    counts = {name: dict.fromkeys(_COUNTS, 0) for name in SCHEMAS}
    for true, predicted in pairs:
        for kind, true_chunk, predicted_chunk in errors_of_sequence(true, predicted):
            chunk = predicted_chunk if true_chunk is None else true_chunk
            errors[chunk[2], KINDS_OF_ERRORS.index(kind)] += 1
        for name in SCHEMAS:
            _count(true, predicted, name, counts[name])
    rows = [*zip(types, *errors.T.tolist(), strict=True), ("all", *errors.sum(axis=0).tolist())]
    rows = [row for row in rows if any(row[1:]) or row[0] == "all"]
    scores = {name: _score(counts[name], SCHEMAS[name][2], zero_division) for name in SCHEMAS}
    if output_dict:
        by_type = {name: dict(zip(KINDS_OF_ERRORS, row, strict=True)) for name, *row in rows}
        return {"errors": by_type, **{name: {**counts[name], **scores[name]} for name in SCHEMAS}}
    scored = [(name, *counts[name].values(), *scores[name].values()) for name in SCHEMAS]
    tables = (KINDS_OF_ERRORS, rows), ((*_COUNTS, *_SCORES), scored)
    return "\n".join(table(header, [rows], digits) for header, rows in tables)


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
        for j, b in enumerate(predicted):
            if overlap(a, b):
                wrong_type, wrong_boundary = a[2] != b[2], a[:2] != b[:2]
                # Number of the kind: the first four are all combinations, in this order.
                candidates.append((wrong_type + 2 * wrong_boundary, i, j))
    found, left, right = [], dict(enumerate(true)), dict(enumerate(predicted))
    for kind, i, j in sorted(candidates):
        if i in left and j in right:
            found.append((KINDS_OF_ERRORS[kind], left.pop(i), right.pop(j)))
    found += [("missed", chunk, None) for chunk in left.values()]
    return found + [("invented", None, chunk) for chunk in right.values()]


def overlap(a, b):
    """Return True if two spans (start, end, ...) have a position in common."""
    return a[0] < b[1] and b[0] < a[1]


def without_overlaps(spans):
    """Leave out each span that overlaps one before it in the list."""
    kept = []
    for span in spans:
        if not any(overlap(span, other) for other in kept):
            kept.append(span)
    return kept


def _count(true, predicted, schema, counts):
    """Count as nervaluate does: pair each predicted chunk in turn with a true one that is left."""
    is_correct, otherwise, _ = SCHEMAS[schema]
    left = list(true)
    for chunk in predicted:
        overlapping = [t for t in left if overlap(t, chunk)]
        fits = [t for t in overlapping if is_correct(t[:2] == chunk[:2], t[2] == chunk[2])]
        if fits:
            # By the type alone, that with the closest boundaries.
            best = min(fits, key=lambda t: abs(t[0] - chunk[0]) + abs(t[1] - chunk[1]))
            counts["correct"] += 1
            left.remove(best)
        elif overlapping:
            counts[otherwise] += 1
            left.remove(overlapping[0])
        else:
            counts["spurious"] += 1
    counts["missed"] += len(left)


def _score(counts, share, zero_division):
    """Precision, recall and F1, where partial chunks count a share."""
    hits = counts["correct"] + share * counts["partial"]
    paired = counts["correct"] + counts["incorrect"] + counts["partial"]
    sums = paired + counts["spurious"], paired + counts["missed"]
    precision, recall = (hits / n if n else float(zero_division) for n in sums)
    f1 = 2 * hits / sum(sums) if sum(sums) else float(zero_division)
    return {"precision": precision, "recall": recall, "f1-score": f1}
