"""Labels that are wrong: those that a tagger doubts which has learnt from other sequences."""

from numbers import Integral
from typing import NamedTuple

import numpy as np
from joblib import Parallel
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import _safe_indexing

from skstruct.features.statistics import warn_of_label_features
from skstruct.input.folds import checked_folds, restrict_to_fold
from skstruct.input.formats import as_lists, labels_to_split, lists_to_split
from skstruct.input.schemes import RUNS, scheme_of_classes
from skstruct.inspection.models import find_tagger
from skstruct.metrics.chunks import extract_chunks
from skstruct.spans import errors_name_fold
from skstruct.taggers.base import BaseTagger
from skstruct.utils.messages import DataError
from skstruct.utils.parallel import in_process
from skstruct.utils.persistence import set_module


@set_module("skstruct.model_selection")
class LabelError(NamedTuple):
    """Labels that may be wrong, as `find_label_errors` returns them.

    Attributes
    ----------
    sequence : int
        Number of the sequence.
    start, end : int
        The first of the tokens, and the one after the last.
    given : list
        Their labels in y.
    suggested : list
        The labels that a tagger predicts which has not learnt from the sequence.
    score : float
        The lowest probability of a given label; NaN if the tagger does not know one of the labels.
    """

    sequence: int
    start: int
    end: int
    given: list
    suggested: list
    score: float


@set_module("skstruct.model_selection")
def find_label_errors(estimator, X, y, *, cv=5, groups=None, n_jobs=None):
    """Find labels that may be wrong, by cross-validation.

    For each fold, the estimator learns from the others and predicts this one. Where its prediction
    differs from the labels that are given, it has an error, or they have.

    Parameters
    ----------
    estimator : estimator
        A tagger, or a Pipeline that ends in one; it stays unfitted. Steps that learn from y belong
        into it.
    X : sequences of tokens
        What the estimator takes.
    y : sequences of labels
        None where a label is unknown.
    cv : int, cross-validation generator or iterable, default=5
        Folds. No sequence may be tested twice.
    groups : array-like of shape (n_sequences,), default=None
        Documents or other sources of several sequences: with a number for `cv`, those of a group
        are in one fold, as :class:`~sklearn.model_selection.GroupKFold` does it.
    n_jobs : int, default=None
        Processes for the folds.

    Returns
    -------
    errors : list of LabelError
        The most doubtful first. Chunks that overlap, given and suggested, make one record; where
        labels are no chunks, tokens side by side do. Records with a label that the tagger of
        their fold has not learnt come last, with the score NaN: nothing can be said about them.

    Raises
    ------
    ValueError
        If X, y or `cv` is invalid.
    TypeError
        If there is no tagger.

    Warns
    -----
    UserWarning
        If X has features that were made of labels.

    Notes
    -----
    The order is that of the lowest probability of a given label, which finds damaged sequences
    better than scores of spans do.

    References
    ----------
    Wei-Chen Wang and Jonas Mueller: Detecting label errors in token classification data. NeurIPS
    2022 workshop on interactive learning for natural language processing.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skstruct import CRFTagger, WordVectorizer
    >>> from skstruct.model_selection import find_label_errors
    >>> X = [["in", "Rome"], ["in", "May"]] * 10
    >>> y = [["O", "B-LOC"], ["O", "O"]] * 9 + [["O", "O"], ["O", "O"]]
    >>> model = make_pipeline(WordVectorizer(), CRFTagger())
    >>> [error[:5] for error in find_label_errors(model, X, y)]
    [(18, 1, 2, ['O'], ['B-LOC'])]
    """
    warn_of_label_features(X, "find_label_errors")
    X, y = lists_to_split(X), as_lists(y)
    labels = labels_to_split(X, y, is_read=isinstance(estimator, BaseTagger))
    if groups is not None and isinstance(cv, Integral):
        cv = GroupKFold(cv)
    splits = checked_folds(check_cv(cv).split(X, y, groups), len(labels))
    if not splits:
        raise ValueError("cv has no split; pass at least one.")
    tested = np.bincount(np.concatenate([test for _, test in splits]))
    if tested.max(initial=0) > 1:
        raise ValueError(f"cv tests sequence {np.argmax(tested)} more than once.")
    found = Parallel(n_jobs=n_jobs)(
        in_process(_errors_of_fold)(number, clone(estimator), X, y, labels, *split)
        for number, split in enumerate(splits)
    )
    errors = [error for of_fold in found for error in of_fold]
    # NaN, of which nothing is known, comes last.
    return sorted(errors, key=lambda e: (np.isnan(e.score), np.nan_to_num(e.score), e[:3]))


def _errors_of_fold(number, estimator, X, y, labels, train, test):
    with errors_name_fold(number):
        restrict_to_fold(estimator, labels, train)
        estimator.fit(_safe_indexing(X, train), _safe_indexing(y, train))
    fitted = find_tagger(estimator)
    X_test = _safe_indexing(X, test)
    predicted = labels_to_split(X_test, estimator.predict(X_test), is_read=False)
    classes = fitted.tagger.classes_.tolist()
    proba = fitted.tagger.predict_proba(fitted.transform(X_test))
    code = {label: column for column, label in enumerate(classes)}
    scheme = scheme_of_classes(list(map(str, classes)))
    errors = []
    for i, suggested, p in zip(test.tolist(), predicted, proba, strict=True):
        given, p = labels[i], p.reshape(-1, len(classes))
        if len(given) != len(suggested):
            raise DataError(f"{{place}} has {len(suggested)} tokens, but {len(given)} labels.", i)
        for start, end in _regions(given, suggested, scheme):
            known = [label for label in given[start:end] if label is not None]
            score = np.nan
            if all(label in code for label in known):
                pairs = enumerate(given[start:end], start)
                score = min(p[t, code[label]] for t, label in pairs if label is not None)
            part = slice(start, end)
            errors.append(LabelError(i, start, end, given[part], suggested[part], float(score)))
    return errors


def _regions(given, suggested, scheme):
    """Tokens (start, end) of chunks that only one side has; of overlapping ones, all together."""
    if scheme == RUNS or None in given:
        pairs = enumerate(zip(given, suggested, strict=True))
        spans = [(t, t + 1) for t, (a, b) in pairs if a is not None and a != b]
        gap = 0
    else:
        ours, theirs = (set(extract_chunks(x)) for x in (given, suggested))
        spans = sorted({(start, end) for start, end, _ in ours ^ theirs})
        gap = 1
    regions = []
    for start, end in spans:
        if regions and start + gap <= regions[-1][1]:
            regions[-1] = regions[-1][0], max(end, regions[-1][1])
        else:
            regions.append((start, end))
    return regions
