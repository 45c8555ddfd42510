"""Cross-validation: the score of each fold, and their mean."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

from skstruct.cli.output import write_line
from skstruct.cli.text.documents import has_chunks
from skstruct.cli.work.answers import as_attributes
from skstruct.metrics import scorers

__all__ = ["cross_validate", "cross_validate_reranker"]


def cross_validate(model, X, y, n_folds, n_jobs):
    """Print scores of a tagger: the F1 of chunks, or the token accuracy.

    Parameters
    ----------
    model : Model
        Not fitted.
    X, y : list
        Tokens and labels.
    n_folds : int
        Number of folds, in the order of the files.
    n_jobs : int
        Number of processes.
    """
    if model.vectorizer is None:
        X = as_attributes(X)
    name = "chunk_f1" if has_chunks(y) else "token_accuracy"
    scores = cross_val_score(
        clone(model.as_estimator()),
        X,
        y,
        cv=KFold(n_folds),
        scoring=getattr(scorers, f"{name}_scorer"),
        n_jobs=n_jobs,
        error_score="raise",
    )
    _print_folds(scores, name)


def cross_validate_reranker(reranker, X, y, baseline, n_folds):
    """Print scores of a reranker: the negative mean cost, or the accuracy.

    `cross_val_score` does not pass on baseline scores by itself.
    """

    def part(values, rows):
        return None if values is None else [values[i] for i in rows]

    scores = []
    for train, test in KFold(n_folds).split(X):
        fitted = clone(reranker).fit(
            part(X, train), part(y, train), baseline_score=part(baseline, train)
        )
        scores.append(
            fitted.score(part(X, test), part(y, test), baseline_score=part(baseline, test))
        )
    _print_folds(np.array(scores), "accuracy" if isinstance(y[0], int) else "negative mean cost")


def _print_folds(scores, name):
    for number, score in enumerate(scores, start=1):
        write_line(f"fold {number}: {name} {score:.4f}")
    write_line(f"mean: {name} {scores.mean():.4f} (standard deviation {scores.std():.4f})")
