"""Chunks chosen for their score: by any tagger, above a threshold that is tuned."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from itertools import chain
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import Parallel
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import ClassifierTags, _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted

from skstruct.input.folds import checked_folds, restrict_to_fold
from skstruct.input.formats import (
    Format,
    as_lists,
    label_array,
    labels_to_split,
    lists_to_split,
    shape_predictions,
)
from skstruct.input.schemes import OUTSIDE, RUNS, SCHEMES, infer_scheme, write_chunk
from skstruct.inspection.models import find_tagger
from skstruct.metrics.chunks import extract_chunks
from skstruct.metrics.scores import chunk_f1_score
from skstruct.taggers.base import BaseTagger
from skstruct.utils.declared import Choice, Labels, Number, Part
from skstruct.utils.messages import DataError, short_repr
from skstruct.utils.parallel import in_process
from skstruct.utils.persistence import Persistent, set_module
from skstruct.utils.progress import fit_context
from skstruct.utils.transaction import draft_of


@set_module("skstruct")
def predict_spans(estimator, X, *, threshold=0.5):
    """Predict chunks and their probabilities with a tagger, or a pipeline that ends in one.

    Parameters
    ----------
    estimator : estimator
        Fitted: a tagger, `skstruct.crfsuite.CRF`, or a Pipeline or search that ends in one.
    X : sequences of tokens
        What its `predict` takes.
    threshold : float, default=0.5
        Probability above which a span is worth predicting, from 0 to 1.

    Returns
    -------
    spans : ndarray of shape (n_sequences,), dtype object
        For each sequence a list of `Span` ``(start, end, type, probability)``, in order.

    Raises
    ------
    TypeError
        If there is no tagger.
    ValueError
        As `CRFTagger.predict_spans` does.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skstruct import CRFTagger, WordVectorizer, predict_spans
    >>> pipeline = make_pipeline(WordVectorizer(), CRFTagger(l2=0.1))
    >>> pipeline = pipeline.fit([["in", "New", "York"]], [["O", "B-LOC", "I-LOC"]])
    >>> [span[:3] for span in predict_spans(pipeline, [["New", "York"]])[0]]
    [(0, 2, 'LOC')]
    """
    fitted = find_tagger(estimator)
    return fitted.tagger.predict_spans(fitted.transform(X), threshold=threshold)


@set_module("skstruct")
def predict_nbest(estimator, X, n_best=5, **options):
    """Predict the n best label sequences with a tagger, or a pipeline that ends in one.

    Parameters
    ----------
    estimator : estimator
        As of `predict_spans`.
    X : sequences of tokens
        What its `predict` takes.
    n_best : int, default=5
        Number of label sequences.
    **options
        As of `CRFTagger.predict_nbest`.

    Returns
    -------
    labellings : ndarray of shape (n_sequences,), dtype object
        For each sequence a list of `Labelling` ``(labels, score, probability)``, best first.

    Raises
    ------
    TypeError
        If there is no tagger.
    ValueError
        As `CRFTagger.predict_nbest` does.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skstruct import CRFTagger, WordVectorizer, predict_nbest
    >>> pipeline = make_pipeline(WordVectorizer(), CRFTagger())
    >>> pipeline = pipeline.fit([["the", "cat"]], [["DET", "NOUN"]])
    >>> [labelling.labels for labelling in predict_nbest(pipeline, [["a", "cat"]], 1)[0]]
    [['DET', 'NOUN']]
    """
    fitted = find_tagger(estimator)
    return fitted.tagger.predict_nbest(fitted.transform(X), n_best, **options)


class AroundTagger(Persistent, MetaEstimatorMixin, BaseEstimator):
    """Base of estimators around a tagger, or a pipeline that ends in one: `estimator_`, fitted."""

    @property
    def n_features_in_(self):
        """Number of features of X, where the estimator knows it."""
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self):
        """Names of the features of X, where the estimator knows them."""
        return self.estimator_.feature_names_in_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags()
        tags.target_tags.required = True
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


@set_module("skstruct")
class SpanTaggerCV(AroundTagger):
    """Tagger that predicts the chunks which are probable enough, above a threshold tuned for F1.

    A tagger predicts the best label sequence. Where names are rare or training data few, that is
    often one without any, although some spans are chunks with a probability that is worth a try.
    This estimator asks for the probability of each span, exactly, and predicts those above a
    threshold (`CRFTagger.predict_spans`). One cross-validation gives the probabilities of the
    training data by models that have not seen them. The threshold that scores best on these is
    taken; no threshold needs a fit of its own.

    Parameters
    ----------
    estimator : estimator
        A tagger, `skstruct.crfsuite.CRF`, or a Pipeline that ends in one.
    scoring : str or callable, default="f1"
        What the threshold is to maximise, over the chunks of all folds: "f1", F-beta by its number,
        such as "f0.5" or "f2", or "precision at recall 0.8" for the best precision at a recall of
        at least 0.8. Thresholds that miss that recall have a negative score: their recall minus the
        one asked for. If all miss it, a warning says so, and the one with the largest recall is
        taken. A callable ``scoring(precision, recall)`` returns a score to maximise.
    thresholds : int or array-like, default=100
        Number of thresholds to compare, evenly spaced between 0 and 1; or the thresholds.
    cv : int, cross-validation generator, iterable or None, default=None
        Folds, as in :class:`~sklearn.model_selection.GridSearchCV`. None means 5.
    refit : bool, default=True
        Fit the estimator on all data. Otherwise `estimator_` is from the only split of `cv`.
    n_jobs : int, default=None
        Processes for the folds.
    store_cv_results : bool, default=False
        Keep the scores of all thresholds in `cv_results_`.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator that predicts.
    best_threshold_ : float
        The threshold.
    best_score_ : float
        Its score in cross-validation.
    cv_results_ : dict
        With ``store_cv_results=True``: arrays ``"thresholds"``, ``"scores"``, ``"precision"`` and
        ``"recall"``.
    classes_ : ndarray of shape (n_classes,)
        Labels of the tagger.
    scheme_ : str
        Scheme of the labels of y and of `predict`: the one that the fewest labels break, of "IOB1",
        "IOB2", "IOE1", "IOE2", "IOBES", "BILOU" and "BMES"; or "runs" for numbers and for labels
        without prefixes, where a run of a label is a chunk.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : The counterpart for classifiers.
    skstruct.CRFTagger.predict_spans : How spans are chosen.

    Notes
    -----
    The probabilities of perceptrons are not calibrated. A threshold is tuned for them all the same,
    but says nothing about the share of predictions that are right.

    Tokens outside of the chunks that are chosen are labelled "O"; where labels are numbers, of
    which none means that, as the estimator labels them.

    Labels that a fold has not in its training part are left out of `label_cost`, `class_weight` and
    `constraint` there, as in `CRFTaggerCV`.

    Examples
    --------
    >>> from skstruct import CRFTagger, SpanTaggerCV
    >>> X = [[{"word": "in"}, {"word": "Rome"}], [{"word": "Rome"}], [{"word": "in"}]] * 4
    >>> y = [["O", "B-LOC"], ["B-LOC"], ["O"]] * 4
    >>> tagger = SpanTaggerCV(CRFTagger(), thresholds=[0.3, 0.6], cv=2).fit(X, y)
    >>> tagger.predict(X[:2]).tolist()
    [['O', 'B-LOC'], ['B-LOC']]
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods("fit")],
        "scoring": [str, callable],
        "thresholds": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "refit": ["boolean"],
        "n_jobs": [Integral, None],
        "store_cv_results": ["boolean"],
    }

    _stored = {
        "classes_": Labels(),
        "estimator_": Part("predict"),
        "best_threshold_": Number(0, 1),
        "scheme_": Choice(*SCHEMES),
    }
    _complete = ("classes_", "estimator_", "best_threshold_", "scheme_")

    def __init__(
        self,
        estimator,
        *,
        scoring="f1",
        thresholds=100,
        cv=None,
        refit=True,
        n_jobs=None,
        store_cv_results=False,
    ) -> None:
        self.estimator = estimator
        self.scoring = scoring
        self.thresholds = thresholds
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.store_cv_results = store_cv_results

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, groups=None, **params) -> Self:
        """Tune the threshold by cross-validation, and fit the estimator on all data.

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.
        y : sequences of labels
            Strings, or numbers: then each run of a label is a chunk.
        groups : array-like of shape (n_sequences,), default=None
            For splitters that take groups, such as
            :class:`~sklearn.model_selection.GroupKFold`.
        **params
            For the `fit` of the estimator; those with an item for each sequence, such as
            `sample_weight`, are split like X.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X or y is invalid, y has no chunk, or a parameter is invalid.

        Warns
        -----
        UserWarning
            If no threshold reaches the recall that `scoring` names.
        """
        score = _scoring(self.scoring)
        thresholds = _thresholds(self.thresholds)
        X, y = lists_to_split(X), as_lists(y)
        labels = labels_to_split(X, y, is_read=isinstance(self.estimator, BaseTagger))
        check_weights(X, params)
        names = names_of(labels)
        scheme = infer_scheme(names)
        splits = checked_folds(check_cv(self.cv).split(X, y, groups), len(labels))
        if not splits:
            raise ValueError("cv has no split; pass at least one.")
        if not self.refit and len(splits) != 1:
            raise ValueError(f"refit=False needs a cv of one split, but it has {len(splits)}.")
        data = X, y, labels, names, params
        folds = Parallel(n_jobs=self.n_jobs)(
            in_process(_count_fold)(
                number, clone(self.estimator), data, split, thresholds, scheme, self.refit
            )
            for number, split in enumerate(splits)
        )
        correct, predicted, true = (sum(fold[part] for fold in folds) for part in range(3))
        if not true:
            raise ValueError(
                "y has no chunk in the test sequences of cv: there is nothing to tune a threshold "
                "for."
            )
        precision = np.divide(correct, predicted, out=np.ones(len(thresholds)), where=predicted > 0)
        recall = correct / true
        scores = np.asarray(score(precision, recall), dtype=float)
        if scores.shape != thresholds.shape or np.isnan(scores).any():
            raise ValueError(
                f"scoring must return a number for each of the {len(thresholds)} thresholds, got "
                f"{short_repr(scores)}."
            )
        with draft_of(self) as draft:
            draft.estimator_ = folds[0][3]
            if self.refit:
                draft.estimator_ = clone(self.estimator).fit(X, y, **params)
            best = int(np.argmax(scores))
            draft.best_threshold_, draft.best_score_ = float(thresholds[best]), float(scores[best])
            vars(draft).pop("cv_results_", None)
            if self.store_cv_results:
                draft.cv_results_ = {
                    "thresholds": thresholds,
                    "scores": scores,
                    "precision": precision,
                    "recall": recall,
                }
            draft.scheme_ = scheme
            draft.classes_ = find_tagger(draft.estimator_).tagger.classes_
        return self

    def predict_spans(self, X, *, threshold=None) -> Any:
        """Predict the chunks, with the probability of each.

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.
        threshold : float, default=None
            By default, `best_threshold_`.

        Returns
        -------
        spans : ndarray of shape (n_sequences,), dtype object
            For each sequence a list of `Span` ``(start, end, type, probability)``, in order.
        """
        check_is_fitted(self)
        threshold = self.best_threshold_ if threshold is None else threshold
        return predict_spans(self.estimator_, X, threshold=threshold)

    def predict(self, X) -> Any:
        """Predict labels, of the chunks that are probable enough.

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.

        Returns
        -------
        y : ndarray
            Labels in the scheme of the training data, in the shape of those that the tagger
            predicts: an object array of lists, unless X is an array or a matrix.
        """
        check_is_fitted(self)
        fitted = find_tagger(self.estimator_)
        tagger, threshold = fitted.tagger, self.best_threshold_
        found = tagger._search_spans(fitted.transform(X), least=threshold, thresholds=[threshold])
        batch, format, types, places, _ = found
        if isinstance(types[0], str):
            labels = [[OUTSIDE] * length for length in batch.lengths.tolist()]
        else:
            labels = tagger.predict(batch).tolist()
        for _, sequence, start, end, kind in places.tolist():
            write_chunk(labels[sequence], start, end, types[kind], self.scheme_)
        if format in (Format.BATCH, Format.TOKENS):
            return np.fromiter(labels, dtype=object, count=len(labels))
        stacked = label_array(list(chain.from_iterable(labels)))
        return shape_predictions(stacked, batch.offsets, format)

    def score(self, X, y, sample_weight=None) -> float:
        """Compute the chunk F1 (:func:`~skstruct.metrics.chunk_f1_score`).

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.
        y : sequences of labels
            The right labels.
        sample_weight : array-like of shape (n_sequences,), default=None
            Weight of the chunks of each sequence.

        Returns
        -------
        score : float
        """
        X, is_read = lists_to_split(X), isinstance(self.estimator_, BaseTagger)
        both = (names_of(labels_to_split(X, of, is_read=is_read)) for of in (y, self.predict(X)))
        scheme = reading_in(self.scheme_)
        return chunk_f1_score(*both, scheme=scheme, sample_weight=sample_weight)


def check_weights(X, params):
    """Refuse weights that do not fit X, before folds number the sequences anew."""
    weight = params.get("sample_weight")
    if hasattr(weight, "__len__") and _num_samples(weight) != _num_samples(X):
        raise ValueError(
            f"sample_weight has {_num_samples(weight)} weights for {_num_samples(X)} sequences."
        )


def names_of(labels):
    """Labels as strings; None stays."""
    return [[None if label is None else str(label) for label in of_one] for of_one in labels]


def reading_in(scheme):
    """How chunk scores read labels of a scheme."""
    return RUNS if scheme == RUNS else "conlleval"


def _count_fold(number, estimator, data, split, thresholds, scheme, keep):
    """Fit on other folds; count the correct, predicted and true chunks of this one by threshold."""
    X, y, labels, names, params = data
    # Splitters may return masks instead of positions.
    train, test = (np.arange(_num_samples(X))[part] for part in split)
    for i in test:
        if None in labels[i]:
            raise DataError(
                "{place}: the label is None, but sequences that cv tests need all labels. Leave "
                "the sequence out, or test others.",
                *(int(i), labels[i].index(None)),
            )
    with errors_name_fold(number):
        if not len(train) or not len(test):
            raise ValueError("cv must leave sequences to learn from, and sequences to test.")
        weighted = _weighted(X, params)
        if not weighted[train].any():
            raise ValueError("none of the sequences that it learns from has a weight.")
        restrict_to_fold(estimator, labels, train, weighted)
        of_train = _check_method_params(X, params, indices=train)
        estimator.fit(_safe_indexing(X, train), _safe_indexing(y, train), **of_train)
    fitted = find_tagger(estimator)
    X_test = fitted.transform(_safe_indexing(X, test))
    *_, types, places, _ = fitted.tagger._search_spans(
        X_test, least=thresholds[0], thresholds=thresholds
    )
    true = {
        (i, *chunk)
        for i, sequence in enumerate(test)
        for chunk in extract_chunks(names[sequence], scheme=reading_in(scheme))
    }
    different, which = np.unique(places[:, 1:], axis=0, return_inverse=True)
    is_true = [(i, a, b, str(types[kind])) in true for i, a, b, kind in different.tolist()]
    of_places = np.array(is_true, dtype=float)[which.ravel()]
    correct, predicted = (
        np.bincount(places[:, 0], weights, minlength=len(thresholds))
        for weights in (of_places, None)
    )
    return correct, predicted, len(true), None if keep else estimator


@contextmanager
def errors_name_fold(number):
    """Context in which errors begin with the number of the fold."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Fold {number}: {error}") from error


def _weighted(X, params):
    """True for each sequence that has a weight."""
    weighted = np.ones(_num_samples(X), bool)
    for name, weight in params.items():
        is_weight = name.rpartition("__")[2] == "sample_weight"
        if is_weight and hasattr(weight, "__len__") and len(weight) == len(weighted):
            # Of each sequence, or of each of its tokens.
            weighted &= [np.any(np.asarray(one, dtype=float) > 0) for one in weight]
    return weighted


def _thresholds(thresholds):
    """Thresholds as a sorted array of numbers from 0 to 1."""
    if isinstance(thresholds, Integral):
        return np.linspace(0.0, 1.0, thresholds + 2)[1:-1]
    found = np.unique(np.asarray(thresholds, dtype=float))
    if found.size == 0 or not (found.min() >= 0.0 and found.max() <= 1.0):
        raise ValueError(f"thresholds must be numbers from 0 to 1, got {short_repr(thresholds)}.")
    return found


def _scoring(scoring):
    """Function of the arrays of precision and recall."""
    if callable(scoring):
        return scoring
    match = re.fullmatch(r"f(\d+(?:\.\d+)?)", scoring)
    if match:
        weight = float(match[1]) ** 2

        def f_score(precision, recall):
            below = weight * precision + recall
            score = (1 + weight) * precision * recall
            return np.divide(score, below, out=np.zeros_like(score), where=below > 0)

        return f_score
    match = re.fullmatch(r"precision at recall (\d+(?:\.\d+)?)", scoring)
    if match and float(match[1]) <= 1.0:
        wished = float(match[1])

        def best_precision(precision, recall):
            if recall.max() < wished:
                warnings.warn(
                    f"No threshold reaches a recall of {wished:g}; the one with the largest recall "
                    f"is taken, {recall.max():.4f}. Ask for less, or pass lower thresholds.",
                    stacklevel=4,
                )
            return np.where(recall >= wished, precision, recall - wished)

        return best_precision
    raise ValueError(
        f"scoring must be 'f1' or another F-beta such as 'f0.5', 'precision at recall 0.8' or "
        f"another recall up to 1, or a callable, got {scoring!r}."
    )
