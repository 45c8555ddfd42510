"""Scorers of taggers: what they take and return, and scores of weights during a fit."""

from inspect import signature
from numbers import Real

import numpy as np
import scipy.sparse as sp

from skstruct.sequences import SequenceBatch
from skstruct.utils.messages import short_repr

# Constraint of the parameter; `scorer_of` refuses names that do not exist.
SCORING = [str, callable, None]


def takes_weights(scorer):
    """Return True if a scorer has a parameter `sample_weight`."""
    if hasattr(scorer, "_estimator"):
        # The score of the tagger itself.
        return True
    return "sample_weight" in signature(getattr(scorer, "_score_func", scorer)).parameters


def scorer_of(tagger, scoring):
    """Scorer that the parameter `scoring` of a tagger stands for.

    Raises
    ------
    ValueError
        If it is unknown, or a metric, which takes labels.
    """
    if callable(scoring) and list(signature(scoring).parameters)[:2] == ["y_true", "y_pred"]:
        name = getattr(scoring, "__name__", short_repr(scoring))
        raise ValueError(
            f"scoring={name} is a metric of labels; pass a scorer, such as make_scorer({name}) of "
            "sklearn.metrics."
        )
    from sklearn.metrics import check_scoring  # slow

    return check_scoring(tagger, scoring=scoring)


def as_number(score):
    """Score as a float; a ValueError if it is none."""
    if not isinstance(score, Real) or np.isnan(score):
        raise ValueError(f"scoring must return one number, got {short_repr(score)}.")
    return float(score)


def score_of_weights(tagger, scoring, unseen=()):
    """Make a function that scores weights on a validation set.

    Parameters
    ----------
    tagger : BaseTagger
        With the attributes of X and y.
    scoring : str or callable
        Its scorer.
    unseen : list, default=()
        Labels of the validation set that no training sequence has, whose codes are -2, -3 and so
        on.

    Returns
    -------
    score : callable
        ``score(chain, data)`` scores a chain on a `TrainingSet`, the same one in each call.
    """
    scorer, arguments, weights = scorer_of(tagger, scoring), [], {}
    # Negative codes count from the end.
    names = np.array([*tagger.classes_.tolist(), *reversed(unseen), None], dtype=object)

    def score(chain, data):
        if not arguments:
            labels = np.split(names[data.labels], data.offsets[1:-1])
            arguments.extend([_batch_of(data, tagger), [part.tolist() for part in labels]])
            if takes_weights(scorer) and np.any(data.sample_weight != 1):
                weights["sample_weight"] = data.sample_weight
        return as_number(scorer(tagger._with_chain(chain), *arguments, **weights))

    return score


def _batch_of(data, tagger):
    widths = tagger.n_features_in_, tagger._n_transition_features
    # The second set, if there is one, belongs to transitions.
    X, *of_transitions = map(_matrix, data.rows.sets(), widths)
    names = getattr(tagger, "feature_names_in_", None)
    transition_X = next(iter(of_transitions), None)
    if data.rows.placed:
        more = {"transition_X": transition_X}
        X = sp.csr_matrix(X)
        return SequenceBatch._of_blocks(X, data.rows.placed, data.offsets, names, more)
    return SequenceBatch(X, data.offsets, feature_names=names, transition_X=transition_X)


def _matrix(rows, n_columns):
    data = rows.data if rows.data.size else np.ones(len(rows.indices))
    return sp.csr_array((data, rows.indices, rows.indptr), (len(rows.indptr) - 1, n_columns))
