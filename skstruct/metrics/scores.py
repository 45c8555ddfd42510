"""Scores of chunks: precision, recall, F1, a report, and scorers for model selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypedDict, Unpack, overload

import numpy as np
from sklearn.metrics import make_scorer

from skstruct.metrics.chunks import count_chunks
from skstruct.metrics.labels import sequence_accuracy_score, token_accuracy_score
from skstruct.utils.options import check_choice
from skstruct.utils.public_paths import set_module

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
    """Function as it is, with its type."""
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
        those of the chunks in `y_true` or `y_pred`, sorted.
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
        As in :func:`chunk_precision_score`.

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
        rows = types + averages
        return {name: dict(zip(header, values, strict=True)) for name, *values in rows}
    return table(header, (types, averages), digits, width=9, gap=" ")


def _summarise(counts, average, zero_division):
    """Compute precision, recall, F1 and support: arrays over the types, or averages."""
    check_choice("average", average, (*_AVERAGES, None))
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


chunk_precision_scorer = make_scorer(chunk_precision_score)
chunk_recall_scorer = make_scorer(chunk_recall_score)
chunk_f1_scorer = make_scorer(chunk_f1_score)
token_accuracy_scorer = make_scorer(token_accuracy_score)
sequence_accuracy_scorer = make_scorer(sequence_accuracy_score)
