"""Reranker of the n best label sequences of a tagger, and ready-made features of them."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from itertools import compress, pairwise
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import Parallel
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import check_cv
from sklearn.utils import ClassifierTags, _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

from skstruct.input.folds import checked_folds, restrict_to_fold
from skstruct.input.formats import (
    as_lists,
    labels_to_split,
    lists_to_split,
    read_format,
    shape_predictions,
)
from skstruct.input.schemes import are_chunk_labels
from skstruct.matrices import to_offsets
from skstruct.metrics.chunks import extract_chunks
from skstruct.metrics.labels import token_accuracy_score
from skstruct.rerankers.vrda import VRDAReranker
from skstruct.utils.declared import Count, Labels, Part
from skstruct.utils.messages import DataError, short_repr
from skstruct.utils.parallel import in_process
from skstruct.utils.persistence import Persistent, set_module
from skstruct.utils.progress import CallbackSupport, FitTasks, fit_context, part_of_fit
from skstruct.utils.transaction import draft_of


def chunk_features(x, labels):
    """Features of the chunks of a label sequence: their types, in order and together, and lengths.

    Parameters
    ----------
    x : object
        The sequence, which is not used.
    labels : list of str
        In a scheme of chunks.

    Returns
    -------
    features : Counter
    """
    chunks = extract_chunks(labels)
    features = _features_of_units([kind for _, _, kind in chunks])
    features.update(f"{kind} of length {stop - start}" for start, stop, kind in chunks)
    return features


def label_features(x, labels):
    """Features of a label sequence: its labels, in order and together.

    Parameters
    ----------
    x : object
        The sequence, which is not used.
    labels : list of str or int

    Returns
    -------
    features : Counter
    """
    return _features_of_units([str(label) for label in labels])


def _features_of_units(units):
    features = Counter(f"{unit} repeated" for unit, n in Counter(units).items() if n > 1)
    kinds = sorted(set(units))
    features.update(f"{a} and {b}" for i, a in enumerate(kinds) for b in kinds[i + 1 :])
    bounded = ["start", *units, "end"]
    features.update(f"{a}, {b}" for a, b in pairwise(bounded))
    features.update(", ".join(bounded[i : i + 3]) for i in range(len(units)))
    return features


@set_module("skstruct")
class NBestReranker(CallbackSupport, Persistent, BaseEstimator):
    """Tagger whose n best label sequences are reranked.

    A chain scores labels and transitions. A reranker scores whole label sequences, and so can use
    features that a chain cannot: a word that has the same label everywhere, the words of a chunk,
    the number of chunks. It is trained by cross-fitting, on n-best lists of taggers that were not
    trained on the sequence, because a tagger's scores on its own training set are too optimistic.

    Parameters
    ----------
    tagger : estimator
        Tagger with `predict_nbest`.
    reranker : estimator, default=None
        Reranker of feature dicts. By default, ``VRDAReranker(random_state=0)``.
    n_best : int, default=10
        Number of label sequences to rerank.
    features : callable or "labels", default=None
        ``features(x, labels)`` returns the features of the label sequence ``labels`` of ``x``, an
        element of X: a dict, or a list of attribute strings. "labels" stands for ready-made ones,
        which look at the labels alone: types of chunks that are repeated, that occur together and
        that follow each other, by twos and threes, and lengths of chunks; where labels do not
        mark chunks, the same of the labels. Two features are added: ``"base_score"``, the
        tagger's score less its best label sequence's, and ``"first"`` for the best one; they
        take the place of features of these names. By default there are only these two.
    cost : {"hamming", "chunk_f1"} or callable, default="hamming"
        Cost to minimise. "hamming": share of wrong labels; "chunk_f1": one minus the F1 of the
        chunks of the sequence; or a function ``cost(y_true, y_pred)`` of two lists of labels.
    cv : int, cross-validation generator or iterable, default=5
        Folds of the cross-fitting: each fold is labelled by a tagger trained on the others.
    n_jobs : int, default=None
        Number of folds to process in parallel.

    Attributes
    ----------
    tagger_ : estimator
        Tagger trained on all sequences.
    reranker_ : estimator
        Reranker trained on the n-best lists of the folds.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_groups_ : int
        Number of n-best lists that the reranker was trained on. Lists in which all label sequences
        have the same cost are left out.

    See Also
    --------
    VRDAReranker : The default reranker.

    Examples
    --------
    >>> from skstruct import CRFTagger, NBestReranker
    >>> X = [[{"word": "time"}, {"word": "flies"}], [{"word": "fruit"}, {"word": "flies"}]] * 5
    >>> y = [["NOUN", "VERB"], ["NOUN", "NOUN"]] * 5
    >>> def first_word_and_last_label(x, labels):
    ...     return [f"{x[0]['word']} ... {labels[-1]}"]
    >>> model = NBestReranker(CRFTagger(), features=first_word_and_last_label, cv=2).fit(X, y)
    >>> model.predict(X[:2])
    array([list(['NOUN', 'VERB']), list(['NOUN', 'NOUN'])], dtype=object)
    """

    _parameter_constraints: dict = {
        "tagger": [HasMethods(["fit", "predict_nbest"])],
        "reranker": [HasMethods(["fit", "predict"]), None],
        "n_best": [Interval(Integral, 2, None, closed="left")],
        "features": [callable, StrOptions({"labels"}), None],
        "cost": [StrOptions({"hamming", "chunk_f1"}), callable],
        "cv": ["cv_object"],
        "n_jobs": [Integral, None],
    }

    _stored = {
        "classes_": Labels(),
        "tagger_": Part("predict_nbest", "classes_"),
        "reranker_": Part("predict"),
        "n_groups_": Count(),
    }
    _complete = ("classes_", "tagger_", "reranker_")

    def __init__(
        self,
        tagger,
        reranker=None,
        *,
        n_best=10,
        features=None,
        cost="hamming",
        cv=5,
        n_jobs=None,
    ) -> None:
        self.tagger = tagger
        self.reranker = reranker
        self.n_best = n_best
        self.features = features
        self.cost = cost
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X, y) -> Self:
        """Train the tagger and the reranker.

        Parameters
        ----------
        X : sequences of tokens
            As the tagger takes them.
        y : sequences of labels
            As the tagger takes them.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X, y, a parameter or what `features` or `cost` returns is invalid, or if no n-best
            list has label sequences that differ in cost. The message names the sequence.
        """
        X, y = lists_to_split(X), as_lists(y)
        with draft_of(self) as draft:
            draft._fit_draft(X, y)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def _fit_draft(self, X, y):
        # Before the tagger is fitted, which may take long.
        labels = labels_to_split(X, y)
        folds = _folds(self.cv, X, y)
        numbers = [i for _, held in folds for i in held]
        if self.cost == "chunk_f1":
            _check_chunks(y, numbers)
        tasks = FitTasks.of(self, X, y, 3)
        self.tagger_ = self._fit_part(tasks, "fit-tagger", clone(self.tagger), X, y)
        self.classes_ = self.tagger_.classes_
        groups, costs = self._cross_fitted(X, y, labels, folds, tasks)
        informative = [max(c) > min(c) for c in costs]
        self.n_groups_ = sum(informative)
        if self.n_groups_ == 0:
            raise ValueError(
                "There is nothing to rerank: in each n-best list, all label sequences have the "
                "same cost. Increase n_best, or use another cost or tagger."
            )
        reranker = VRDAReranker(random_state=0) if self.reranker is None else self.reranker
        groups, costs, numbers = (
            list(compress(values, informative)) for values in (groups, costs, numbers)
        )
        with _errors_name_sequences(numbers):
            self.reranker_ = self._fit_part(tasks, "fit-reranker", clone(reranker), groups, costs)
        if tasks is not None:
            tasks.close()

    def predict(self, X) -> Any:
        """Choose the best label sequences.

        Parameters
        ----------
        X : sequences of tokens
            As in `fit`.

        Returns
        -------
        y : ndarray
            As from the tagger's `predict`.
        """
        check_is_fitted(self)
        X = lists_to_split(X)
        lists = self.tagger_.predict_nbest(X, n_best=self.n_best)
        numbers = range(len(lists))
        groups = self._groups(X, lists, numbers)
        with _errors_name_sequences(numbers):
            chosen = self.reranker_.predict(groups)
        labels = [found[i].labels for found, i in zip(lists, chosen, strict=True)]
        offsets = to_offsets(list(map(len, labels)))
        stacked = [label for sequence in labels for label in sequence]
        stacked = np.array(stacked, self.classes_.dtype)
        return shape_predictions(stacked, offsets, read_format(X)[0])

    @property
    def n_features_in_(self):
        """Number of features of X, as of the tagger."""
        return self.tagger_.n_features_in_

    @property
    def feature_names_in_(self):
        """Names of the features of X, where the tagger knows them."""
        return self.tagger_.feature_names_in_

    def score(self, X, y, sample_weight=None) -> float:
        """Compute the token accuracy.

        Parameters
        ----------
        X : sequences of tokens
            As in `fit`.
        y : sequences of labels
            As in `fit`.
        sample_weight : array-like of shape (n_sequences,), default=None
            Weights of the tokens of each sequence.

        Returns
        -------
        score : float
            Between 0 and 1.
        """
        return token_accuracy_score(y, self.predict(X), sample_weight=sample_weight)

    def _fit_part(self, tasks, name, estimator, X, y):
        with part_of_fit(tasks and tasks.part(name), estimator, self):
            return estimator.fit(X, y)

    def _cross_fitted(self, X, y, labels, folds, tasks):
        """Candidates of all sequences and their costs, by taggers not trained on them."""
        task = tasks and tasks.part("cross-fit", len(folds))
        contexts = [task and task.subcontext("fold", task_id=k) for k in range(len(folds))]
        model = self.tagger, self.n_best, self if task else None
        with part_of_fit(task, None, self):
            parts = Parallel(n_jobs=self.n_jobs)(
                in_process(_lists_of_fold)(*model, X, y, labels, train, held, context)
                for (train, held), context in zip(folds, contexts, strict=True)
            )
        groups, costs = [], []
        for (_, held), lists in zip(folds, parts, strict=True):
            groups += self._groups(_safe_indexing(X, held), lists, held)
            for i, found in zip(held, lists, strict=True):
                costs.append([self._cost(_as_labels(y, i), of.labels, i) for of in found])
        return groups, costs

    def _cost(self, y_true, y_pred, i):
        if not callable(self.cost):
            return (chunk_cost if self.cost == "chunk_f1" else hamming_cost)(y_true, y_pred)
        cost = _call(self.cost, y_true, y_pred, i)
        try:
            valid = math.isfinite(cost)
        except (TypeError, OverflowError):
            valid = False
        if not valid:
            fact = "{place}: cost returned {cost}; expected a finite number."
            raise DataError(fact, i, cost=short_repr(cost))
        return cost

    def _groups(self, X, lists, numbers):
        """Candidates of some sequences; `numbers` are the caller's, for messages."""
        features = self.features
        if features == "labels":
            features = chunk_features if are_chunk_labels(self.classes_) else label_features
        return [
            self._candidates(_item(X, i), found, features, number)
            for i, (found, number) in enumerate(zip(lists, numbers, strict=True))
        ]

    def _candidates(self, x, found, features_of, i):
        """Feature dicts of the label sequences of sequence `i`."""
        candidates = []
        for number, labelling in enumerate(found):
            features = None
            if features_of is not None:
                features = _call(features_of, x, labelling.labels, i)
            features = {} if features is None else features
            if isinstance(features, (str, bytes)) or not isinstance(features, Iterable):
                raise DataError(
                    "{place}: features returned {features}; expected a dict or a list of attribute "
                    "strings.",
                    i,
                    features=short_repr(features),
                )
            if not isinstance(features, Mapping):
                features = Counter(features)
            base = {"base_score": labelling.score - found[0].score, "first": number == 0}
            # A forbidden path scores minus infinity, but features must be finite.
            base["base_score"] = max(base["base_score"], -1e6)
            candidates.append({**features, **base})
        return candidates

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tagger_tags = get_tags(self.tagger)
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags()
        tags.input_tags = tagger_tags.input_tags
        return tags


def hamming_cost(y_true, y_pred):
    """Share of wrong labels."""
    wrong = sum(t != p for t, p in zip(y_true, y_pred, strict=True))
    return wrong / max(len(y_true), 1)


def chunk_cost(y_true, y_pred):
    """One minus the F1 of the chunks; 0 if there are none, neither true nor predicted."""
    true, found = set(extract_chunks(y_true)), set(extract_chunks(y_pred))
    if not true and not found:
        return 0.0
    return 1.0 - 2.0 * len(true & found) / (len(true) + len(found))


def _lists_of_fold(tagger, n_best, reranker, X, y, labels, train, held, context):
    tagger = restrict_to_fold(clone(tagger), labels, train)
    with part_of_fit(context, tagger, reranker):
        tagger.fit(_safe_indexing(X, train), _safe_indexing(y, train))
    return tagger.predict_nbest(_safe_indexing(X, held), n_best=n_best)


def _call(function, first, labels, i):
    """Call a function of the user, which may change its labels; errors name the sequence."""
    try:
        return function(first, list(labels))
    except Exception as error:
        error.add_note(f"This happened in sequence {i}.")
        raise


@contextmanager
def _errors_name_sequences(numbers):
    """Context in which an error about a group names its sequence, one of some numbers."""
    try:
        yield
    except DataError as error:
        if error.sequence is not None:
            error.sequence, error.units = numbers[error.sequence], ("sequence", "candidate")
        raise


def _check_chunks(y, numbers):
    """Raise a ValueError that names a sequence, of some numbers, whose labels are no chunks'."""
    for i in numbers:
        labels = _as_labels(y, i)
        if None in labels:
            raise DataError(
                "{place} has no label, but cost='chunk_f1' needs all. Leave such sequences out of "
                "X and y, or use another cost.",
                *(i, labels.index(None)),
            )
        try:
            extract_chunks(labels)
        except ValueError as error:
            raise DataError.of(error, i) from error


def _folds(cv, X, y):
    """Training and held-out sequences of each fold; a ValueError if they are invalid."""
    n_sequences = _num_samples(X)
    folds = cv
    if hasattr(cv, "split") or not isinstance(cv, Iterable):
        try:
            folds = list(check_cv(cv).split(np.empty((n_sequences, 0)), y))
        except ValueError as error:
            raise ValueError(f"cv={cv!r} does not fit {n_sequences} sequences: {error}") from error
    found = checked_folds(folds, n_sequences)
    for number, parts in enumerate(found):
        if not all(map(len, parts)):
            fold = tuple(part.tolist() for part in parts)
            raise ValueError(
                f"cv: fold {number} is {short_repr(fold)}: it trains on no sequence, or holds none "
                "out."
            )
    if not found:
        raise ValueError("cv has no fold: pass a number of folds, a splitter, or a list of pairs.")
    return found


def _item(values, i):
    """Sequence or labels at a position, also of a pandas series or frame."""
    return values.iloc[i] if hasattr(values, "iloc") else values[i]


def _as_labels(y, i):
    labels = _item(y, i)
    labels = labels.tolist() if hasattr(labels, "tolist") else labels
    return list(labels) if isinstance(labels, (list, tuple)) else [labels]
