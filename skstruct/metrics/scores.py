"""Scores of chunks and kinds of their errors, reports of both, and scorers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Literal, Protocol, TypedDict, Unpack, overload

import numpy as np
from sklearn.metrics import make_scorer

from skstruct.metrics.chunks import (
    KINDS_OF_ERRORS,
    count_chunks,
    errors_of_sequence,
    overlapped,
    pairs_of_chunks,
)
from skstruct.metrics.labels import sequence_accuracy_score, token_accuracy_score
from skstruct.utils.messages import check_choice, given, short_repr
from skstruct.utils.persistence import set_module

_AVERAGES = ("micro", "macro", "weighted")


class _Options(TypedDict, total=False):
    labels: Sequence[str] | None
    scheme: str
    zero_division: float
    sample_weight: Any


class _Score(Protocol):
    """Type of a score: a number, or an array without an average."""

    @overload
    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        average: Literal["micro", "macro", "weighted"] = ...,
        **options: Unpack[_Options],
    ) -> float: ...

    @overload
    def __call__(
        self, y_true: Any, y_pred: Any, *, average: None, **options: Unpack[_Options]
    ) -> np.ndarray: ...


def _score(function: Callable[..., Any]) -> _Score:
    """Return the function itself, with the type of a score."""
    return function


@_score
@set_module("skstruct.metrics")
def chunk_precision_score(
    y_true,
    y_pred,
    *,
    average="micro",
    labels=None,
    scheme="conlleval",
    zero_division=0.0,
    sample_weight=None,
):
    """Share of the predicted chunks that are correct: same start, same stop, same type.

    Parameters
    ----------
    y_true, y_pred : label sequences, n_sequences of them
        Correct and predicted labels, in any form that the module accepts.
    average : {"micro", "macro", "weighted"} or None, default="micro"
        "micro" pools the chunks of all types, "macro" is the mean over the types, "weighted" the
        mean weighted by the number of true chunks, and None returns one score per type.
    labels : list of str, default=None
        The chunk types to score, in this order: ``"NP"``, and not the label ``"B-NP"``. By default,
        all that occur in `y_true` or `y_pred`, sorted.
    scheme : str, default="conlleval"
        Scheme of the labels, see :func:`extract_chunks`.
    zero_division : float, default=0.0
        The score if the denominator is zero. Scores that are NaN are left out of means.
    sample_weight : array-like of shape (n_sequences,), default=None
        Weights of the sequences, which apply to each of their chunks.

    Returns
    -------
    precision : float, or ndarray of shape (n_types,) if ``average=None``

    Raises
    ------
    ValueError
        If `y_true` and `y_pred` are empty or differ in number or lengths of sequences, if they are
        a sequence without the list around it, if a label is not a str or not one of the scheme's,
        if `labels` has a label in place of a type, or if an option has an unknown value.

    Examples
    --------
    >>> from skstruct.metrics import chunk_precision_score
    >>> y_true = [["B-NP", "I-NP", "O"], ["B-VP", "B-NP"]]
    >>> y_pred = [["B-NP", "O", "B-VP"], ["B-VP", "B-NP"]]
    >>> chunk_precision_score(y_true, y_pred)
    0.5
    """
    _, counts = count_chunks(y_true, y_pred, labels, scheme, sample_weight)
    return _summarise(counts, average, zero_division)[0]


@_score
@set_module("skstruct.metrics")
def chunk_recall_score(
    y_true,
    y_pred,
    *,
    average="micro",
    labels=None,
    scheme="conlleval",
    zero_division=0.0,
    sample_weight=None,
):
    """Share of the true chunks that were found: same start, same stop, same type.

    Parameters
    ----------
    y_true, y_pred, average, labels, scheme, zero_division, sample_weight
        As in :func:`chunk_precision_score`.

    Returns
    -------
    recall : float, or ndarray of shape (n_types,) if ``average=None``

    Raises
    ------
    ValueError
        As in :func:`chunk_precision_score`.

    Examples
    --------
    >>> from skstruct.metrics import chunk_recall_score
    >>> y_true = [["B-NP", "I-NP", "O"], ["B-VP", "B-NP"]]
    >>> y_pred = [["B-NP", "O", "B-VP"], ["B-VP", "B-NP"]]
    >>> chunk_recall_score(y_true, y_pred, average=None)
    array([0.5, 1. ])
    """
    _, counts = count_chunks(y_true, y_pred, labels, scheme, sample_weight)
    return _summarise(counts, average, zero_division)[1]


@_score
@set_module("skstruct.metrics")
def chunk_f1_score(
    y_true,
    y_pred,
    *,
    average="micro",
    labels=None,
    scheme="conlleval",
    zero_division=0.0,
    sample_weight=None,
):
    """Harmonic mean of chunk precision and recall, the CoNLL shared tasks' FB1.

    Parameters
    ----------
    y_true, y_pred, average, labels, scheme, zero_division, sample_weight
        As in :func:`chunk_precision_score`.

    Returns
    -------
    f1 : float, or ndarray of shape (n_types,) if ``average=None``

    Raises
    ------
    ValueError
        As in :func:`chunk_precision_score`.

    Examples
    --------
    >>> from skstruct.metrics import chunk_f1_score
    >>> y_true = [["B-NP", "I-NP", "O"], ["B-VP", "B-NP"]]
    >>> y_pred = [["B-NP", "O", "B-VP"], ["B-VP", "B-NP"]]
    >>> chunk_f1_score(y_true, y_pred, labels=["NP"])
    0.5
    """
    _, counts = count_chunks(y_true, y_pred, labels, scheme, sample_weight)
    return _summarise(counts, average, zero_division)[2]


@set_module("skstruct.metrics")
def chunk_precision_recall_fscore_support(
    y_true,
    y_pred,
    *,
    average=None,
    labels=None,
    scheme="conlleval",
    zero_division=0.0,
    sample_weight=None,
):
    """Compute chunk precision, recall, F1 and the number of true chunks at once.

    Parameters
    ----------
    y_true, y_pred, labels, scheme, zero_division, sample_weight
        As in :func:`chunk_precision_score`.
    average : {"micro", "macro", "weighted"} or None, default=None
        As in :func:`chunk_precision_score`, but by default one score per type.

    Returns
    -------
    precision, recall, f1 : float, or ndarray of shape (n_types,) if ``average=None``
    support : int, or ndarray of shape (n_types,) if ``average=None``
        The number of true chunks, in total if averaged; with `sample_weight` their weight, a
        float.

    Raises
    ------
    ValueError
        As in :func:`chunk_precision_score`.

    Examples
    --------
    >>> from skstruct.metrics import chunk_precision_recall_fscore_support
    >>> y_true = [["B-NP", "I-NP", "O"], ["B-VP", "B-NP"]]
    >>> y_pred = [["B-NP", "O", "B-VP"], ["B-VP", "B-NP"]]
    >>> chunk_precision_recall_fscore_support(y_true, y_pred)
    (array([0.5, 0.5]), array([0.5, 1. ]), array([0.5       , 0.66666667]), array([2, 1]))
    """
    _, counts = count_chunks(y_true, y_pred, labels, scheme, sample_weight)
    return _summarise(counts, average, zero_division)


@set_module("skstruct.metrics")
def chunk_report(
    y_true,
    y_pred,
    *,
    labels=None,
    scheme="conlleval",
    digits=2,
    output_dict=False,
    zero_division=0.0,
    sample_weight=None,
):
    """Report precision, recall, F1 and support of every chunk type and their averages.

    Parameters
    ----------
    y_true, y_pred, labels, scheme, zero_division, sample_weight
        As in :func:`chunk_precision_score`.
    digits : int, default=2
        Digits after the decimal point; ignored for a dict.
    output_dict : bool, default=False
        Return a dict instead of text.

    Returns
    -------
    report : str or dict
        As a dict, ``report[row]["precision"]`` and so on with "recall", "f1-score" and "support";
        the rows are the types, then "micro avg", "macro avg" and "weighted avg".

    Raises
    ------
    ValueError
        As in :func:`chunk_precision_score`; or if a dict is wanted, and a type has the name of an
        average.

    Examples
    --------
    >>> from skstruct.metrics import chunk_report
    >>> y_true = [["B-NP", "I-NP", "O"], ["B-VP", "B-NP"]]
    >>> y_pred = [["B-NP", "O", "B-VP"], ["B-VP", "B-NP"]]
    >>> print(chunk_report(y_true, y_pred))
                  precision    recall  f1-score   support
    <BLANKLINE>
              NP       0.50      0.50      0.50         2
              VP       0.50      1.00      0.67         1
    <BLANKLINE>
       micro avg       0.50      0.67      0.57         3
       macro avg       0.50      0.75      0.58         3
    weighted avg       0.50      0.67      0.56         3
    <BLANKLINE>
    """
    types, counts = count_chunks(y_true, y_pred, labels, scheme, sample_weight)
    columns = (column.tolist() for column in _summarise(counts, None, zero_division))
    types = list(zip(types, *columns, strict=True))
    averages = [(f"{name} avg", *_summarise(counts, name, zero_division)) for name in _AVERAGES]
    header = ("precision", "recall", "f1-score", "support")
    if output_dict:
        return _as_dict(header, types + averages)
    return table(header, (types, averages), digits, width=9, gap=" ")


def _as_dict(header, rows):
    report = {}
    for name, *values in rows:
        if name in report:
            raise ValueError(
                f"a dict has room for one row {name!r}, the name of a type and of all types "
                f"together: rename the type, or leave out {given('output_dict')}"
            )
        report[name] = dict(zip(header, values, strict=True))
    return report


def _check_zero_division(value):
    if not isinstance(value, (Real, np.bool_)):
        raise ValueError(f"zero_division must be a number, such as 0.0, got {short_repr(value)}")


def _summarise(counts, average, zero_division):
    """Compute precision, recall, F1 and support: arrays over the types, or averages."""
    check_choice("average", average, (*_AVERAGES, None))
    _check_zero_division(zero_division)
    if average == "micro":
        counts = [count.sum(keepdims=True) for count in counts]
    correct, predicted, true = counts
    scores = (
        _divide(correct, predicted, zero_division),
        _divide(correct, true, zero_division),
        _divide(2 * correct, predicted + true, zero_division),
    )
    if average is None:
        return *scores, true
    weights = true if average == "weighted" else np.ones(len(true))
    return *(_mean(score, weights, zero_division) for score in scores), true.sum().item()


def _divide(numerator, denominator, zero_division):
    out = np.full(len(denominator), zero_division, dtype=float)
    return np.divide(numerator, denominator, out=out, where=denominator != 0)


def _mean(values, weights, zero_division):
    known = ~np.isnan(values)
    values, weights = values[known], weights[known]
    if not len(values):
        return float(zero_division)
    return float(np.average(values, weights=weights if weights.sum() else None))


def table(header, blocks, digits, *, width=0, gap="  "):
    """Format numbers as text, in columns that are right-aligned.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    blocks : sequence of list of (name, *numbers)
        Rows; a blank line stands before each block.
    digits : int
        Digits of a float after the decimal point.
    width : int, default=0
        Least width of a column.
    gap : str, default="  "
        Text between two columns.

    Returns
    -------
    text : str
    """
    if not isinstance(digits, Integral) or digits < 0:
        raise ValueError(f"digits must be an integer that is not negative, got {digits!r}")
    widths = [max(len(head), width) for head in header]
    indent = max(len(name) for rows in blocks for name, *_ in rows)

    def line(name, cells):
        cells = (f"{cell:>{n}}" for cell, n in zip(cells, widths, strict=True))
        return f"{name:>{indent}}  {gap.join(cells)}"

    lines = [line("", header)]
    for rows in blocks:
        lines.append("")
        for name, *numbers in rows:
            texts = (f"{n:.{digits}f}" if isinstance(n, float) else str(n) for n in numbers)
            lines.append(line(name, texts))
    return "\n".join([*lines, ""])


# Condition of a correct pair of overlapping chunks; kind and share of all other pairs.
SCHEMAS = {
    "strict": (lambda same_span, same_type: same_span and same_type, "incorrect", 0.0),
    "exact": (lambda same_span, same_type: same_span, "incorrect", 0.0),
    "partial": (lambda same_span, same_type: same_span, "partial", 0.5),
    "type": (lambda same_span, same_type: same_type, "incorrect", 0.0),
}


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
        is not one of the scheme's; or if a dict is wanted, and a type has the name "all".

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
    _check_zero_division(zero_division)
    types, pairs = pairs_of_chunks(y_true, y_pred, scheme)
    errors = np.zeros((len(types), len(KINDS_OF_ERRORS)), dtype=int)
    for true, predicted in pairs:
        for kind, true_chunk, predicted_chunk in errors_of_sequence(true, predicted):
            chunk = predicted_chunk if true_chunk is None else true_chunk
            errors[chunk[2], KINDS_OF_ERRORS.index(kind)] += 1
    rows = [*zip(types, *errors.T.tolist(), strict=True), ("all", *errors.sum(axis=0).tolist())]
    rows = [row for row in rows if any(row[1:]) or row[0] == "all"]
    scores = {}
    for name, (is_correct, otherwise, share) in SCHEMAS.items():
        counts = _count(pairs, is_correct, otherwise)
        scores[name] = counts | _score_counts(counts, share, zero_division)
    if output_dict:
        return {"errors": _as_dict(KINDS_OF_ERRORS, rows), **scores}
    scored = [(name, *values.values()) for name, values in scores.items()]
    tables = (KINDS_OF_ERRORS, rows), (scores["strict"], scored)
    return "\n".join(table(header, [rows], digits) for header, rows in tables)


def _count(pairs, is_correct, otherwise):
    """Count as nervaluate does: pair each predicted chunk in turn with a true one that is left."""
    counts = dict.fromkeys(("correct", "incorrect", "partial", "missed", "spurious"), 0)
    for true, predicted in pairs:
        left = set(true)
        for chunk in predicted:
            overlapping = [true[i] for i in overlapped(true, chunk) if true[i] in left]
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
    return counts


def _score_counts(counts, share, zero_division):
    """Precision, recall and F1, where partial chunks count a share."""
    hits = counts["correct"] + share * counts["partial"]
    paired = counts["correct"] + counts["incorrect"] + counts["partial"]
    sums = paired + counts["spurious"], paired + counts["missed"]
    precision, recall = (hits / n if n else float(zero_division) for n in sums)
    f1 = 2 * hits / sum(sums) if sum(sums) else float(zero_division)
    return {"precision": precision, "recall": recall, "f1-score": f1}


chunk_precision_scorer = make_scorer(chunk_precision_score)
chunk_recall_scorer = make_scorer(chunk_recall_score)
chunk_f1_scorer = make_scorer(chunk_f1_score)
token_accuracy_scorer = make_scorer(token_accuracy_score)
sequence_accuracy_scorer = make_scorer(sequence_accuracy_score)
