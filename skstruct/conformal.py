"""Answers that hold: few enough chunks are missed, or the right labelling is among a few.

A threshold on probabilities decides what is a candidate. It is chosen on labelled sequences that
the tagger has not seen, so that what is missed there stays below a bound; for a new sequence from
the same source, the bound then holds on average, whatever the tagger is worth.
"""

from __future__ import annotations

import warnings
from collections import Counter
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted

from skstruct.features.statistics import warn_of_label_features
from skstruct.input.folds import restrict_to_fold
from skstruct.input.formats import as_lists, label_array, labels_to_split, lists_to_split
from skstruct.input.schemes import scheme_of_classes
from skstruct.inspection.models import find_tagger
from skstruct.metrics.chunks import extract_chunks, reading_of_labels
from skstruct.spans import AroundTagger, check_weights, names_of, reading_in
from skstruct.taggers.base import BaseTagger
from skstruct.taggers.prediction import Span
from skstruct.utils.declared import Array, Count, Labels, Part
from skstruct.utils.messages import DataError, short_repr
from skstruct.utils.persistence import set_module
from skstruct.utils.progress import fit_context
from skstruct.utils.transaction import draft_of

MISSED, BY_SEQUENCE, LABELLING = RISKS = ("missed", "missed_by_sequence", "labelling")
# Probabilities that candidates exceed, whatever is promised: below the last there are too many to
# list. Few chunks are below the first.
FLOORS = (1e-4, 1e-8)
# Sums of shares are rounded, and a share more or less is never so small.
_ROUNDING = 1e-9
_ALL = "all"


@set_module("skstruct")
def predict_candidates(estimator, X):
    """Predict candidates with a `ConformalTagger`, or a pipeline that ends in one.

    Parameters
    ----------
    estimator : estimator
        Fitted: a `ConformalTagger`, or a Pipeline or search that ends in one.
    X : sequences of tokens
        What its `predict` takes.

    Returns
    -------
    candidates : ndarray of shape (n_sequences,), dtype object
        As of `ConformalTagger.predict_candidates`.

    Raises
    ------
    TypeError
        If there is no `ConformalTagger`.
    ValueError
        As `ConformalTagger.predict_candidates` does.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skstruct import ConformalTagger, CRFTagger, WordVectorizer, predict_candidates
    >>> X, y = [["in", "Rome"], ["Rome"], ["in"]] * 20, [["O", "B-LOC"], ["B-LOC"], ["O"]] * 20
    >>> tagger = ConformalTagger(CRFTagger(), max_chunks=1, alpha=0.2, random_state=0)
    >>> pipeline = make_pipeline(WordVectorizer(), tagger).fit(X, y)
    >>> [span[:3] for span in predict_candidates(pipeline, [["in", "Rome"]])[0]]
    [(1, 2, 'LOC')]
    """
    tagger, X = _find_conformal(estimator, X)
    return tagger.predict_candidates(X)


@set_module("skstruct")
def predict_sets(estimator, X):
    """Predict sets of labellings with a `ConformalTagger`, or a pipeline that ends in one.

    Parameters
    ----------
    estimator : estimator
        As of `predict_candidates`.
    X : sequences of tokens
        What its `predict` takes.

    Returns
    -------
    sets : ndarray of shape (n_sequences,), dtype object
        As of `ConformalTagger.predict_sets`.

    Raises
    ------
    TypeError
        If there is no `ConformalTagger`.
    ValueError
        As `ConformalTagger.predict_sets` does.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skstruct import ConformalTagger, CRFTagger, WordVectorizer, predict_sets
    >>> X, y = [["in", "Rome"], ["Rome"], ["in"]] * 20, [["O", "B-LOC"], ["B-LOC"], ["O"]] * 20
    >>> tagger = ConformalTagger(CRFTagger(), risk="labelling", alpha=0.2, random_state=0)
    >>> pipeline = make_pipeline(WordVectorizer(), tagger).fit(X, y)
    >>> [labelling.labels for labelling in predict_sets(pipeline, [["in", "Rome"]])[0]]
    [['O', 'B-LOC']]
    """
    tagger, X = _find_conformal(estimator, X)
    return tagger.predict_sets(X)


def _find_conformal(estimator, X):
    """The `ConformalTagger` in an estimator, and X as it takes it."""
    if hasattr(estimator, "best_estimator_"):
        return _find_conformal(estimator.best_estimator_, X)
    if hasattr(estimator, "steps"):
        if len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        return _find_conformal(estimator.steps[-1][1], X)
    if not isinstance(estimator, ConformalTagger):
        raise TypeError(
            f"Expected a ConformalTagger, or a Pipeline or search that ends in one, got "
            f"{type(estimator).__name__}."
        )
    return estimator, X


def _delegates(name):
    """Check for `available_if`: the estimator has a method."""

    def check(self):
        getattr(vars(self).get("estimator_", self.estimator), name)
        return True

    return check


@set_module("skstruct")
class ConformalTagger(AroundTagger):
    """Tagger with candidates that miss no more than a chosen share of the chunks.

    A part of the training data is held out. On it, a threshold is chosen for the probabilities of
    spans, or of whole labellings, such that the share of what is missed is at most `alpha` for new
    sequences. That holds on average over held-out and new data, for any tagger, if both come from
    the same source in random order. A poor tagger has more candidates, and not more misses.

    The promise, by `risk`:

    - "missed": of all chunks of new sequences, at most a share `alpha` is missed:
      E[missed] <= alpha E[chunks]. Sequences with many chunks count more.
    - "missed_by_sequence": the share that is missed in a sequence is at most `alpha` on average
      over the new sequences that have chunks.
    - "labelling": the right labelling of a new sequence is among those of `predict_sets` with a
      probability of at least ``1 - alpha``.

    Parameters
    ----------
    estimator : estimator
        A tagger, `SpanTaggerCV`, `skstruct.crfsuite.CRF`, or a Pipeline that ends in one. In a
        :class:`~sklearn.frozen.FrozenEstimator`, it stays as it is, and all data of `fit` are held
        out.
    risk : {"missed", "missed_by_sequence", "labelling"}, default="missed"
        What is bounded.
    alpha : float, default=0.05
        Its bound, between 0 and 1.
    calibration : float or int, default=0.2
        Share of the sequences, or of the groups, that is held out; or their number.
    max_chunks : int, default=20
        With "missed": the most chunks that a sequence, or a group, can have. More of them that are
        missed count as so many. Choose it by what you know of the source, and not by the data of
        `fit`. The smaller it is, the fewer held-out chunks are needed: some
        ``max_chunks / alpha``.
    max_labellings : int, default=100
        With "labelling": the most labellings of a set.
    by : "type", callable or None, default=None
        Thresholds and promises for parts of the data. "type": for each type of chunk. A callable
        ``by(x)`` returns the class of a sequence x of X, a string or an integer, such as its
        language. Each class has a promise of its own; they need not hold all at once.
    random_state : int, RandomState instance or None, default=None
        Chooses what is held out.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, which predicts.
    kinds_ : ndarray of shape (n_kinds,)
        Types or classes, by `by`; otherwise only "all".
    thresholds_ : ndarray of shape (n_kinds,)
        Least probability of candidates for each of them.
    n_calibration_ : int
        Number of sequences, or of groups, that were held out.
    classes_ : ndarray of shape (n_classes,)
        Labels of the tagger.

    See Also
    --------
    SpanTaggerCV : Chunks above a threshold that is tuned for F1, or for precision at some recall.
    sklearn.calibration.CalibratedClassifierCV : Its model among classifiers.

    Notes
    -----
    Let a threshold miss m of the held-out chunks, n in all, and M be `max_chunks`. The largest
    threshold with ``m + (1 - alpha) M <= alpha n`` is taken. The other risks are the mean of shares
    s of sequences, or of groups, n in all: ``sum(s) + 1 <= alpha (n + 1)``.

    True chunks that no threshold reaches count as missed: their type is new, a constraint forbids
    them, or their probability is below 1e-8. So do labellings beyond `max_labellings`.

    The promise is about data like the held-out ones. It does not hold for another source, nor if
    steps outside of this estimator have learnt from the labels of `fit`: put all steps that learn
    from y inside, ``ConformalTagger(make_pipeline(...))``. `sample_weight` is for the estimator
    inside alone.

    References
    ----------
    Anastasios N. Angelopoulos, Stephen Bates, Adam Fisch, Lihua Lei and Tal Schuster: Conformal
    risk control. ICLR 2024.

    Examples
    --------
    >>> from skstruct import ConformalTagger, CRFTagger
    >>> X = [[{"word": "in"}, {"word": "Rome"}], [{"word": "Rome"}], [{"word": "in"}]] * 20
    >>> y = [["O", "B-LOC"], ["B-LOC"], ["O"]] * 20
    >>> tagger = ConformalTagger(CRFTagger(), alpha=0.2, max_chunks=1, random_state=0).fit(X, y)
    >>> [span[:3] for span in tagger.predict_candidates(X[:1])[0]]
    [(1, 2, 'LOC')]
    >>> tagger.measure(X, y)["missed"]
    0.0
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods("fit")],
        "risk": [StrOptions(set(RISKS))],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "calibration": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "max_chunks": [Interval(Integral, 1, None, closed="left")],
        "max_labellings": [Interval(Integral, 1, None, closed="left")],
        "by": [StrOptions({"type"}), callable, None],
        "random_state": ["random_state"],
    }

    _stored = {
        "classes_": Labels(),
        "estimator_": Part("predict"),
        "kinds_": Labels(),
        "thresholds_": Array(np.float64, ("kinds_",), least=0),
        "n_calibration_": Count(),
    }
    _complete = tuple(_stored)

    def __init__(
        self,
        estimator,
        *,
        risk="missed",
        alpha=0.05,
        calibration=0.2,
        max_chunks=20,
        max_labellings=100,
        by=None,
        random_state=None,
    ) -> None:
        self.estimator = estimator
        self.risk = risk
        self.alpha = alpha
        self.calibration = calibration
        self.max_chunks = max_chunks
        self.max_labellings = max_labellings
        self.by = by
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, groups=None, **params) -> Self:
        """Fit the estimator on a part of the data, and choose thresholds on the rest.

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.
        y : sequences of labels
            Strings, or numbers: then each run of a label is a chunk. Sequences with labels that are
            None are not held out.
        groups : array-like of shape (n_sequences,), default=None
            Documents, persons or other sources of several sequences. Those of a group are held out
            together, numbers of sequences are then numbers of groups, and the promise is about the
            sequences of a new group.
        **params
            For the `fit` of the estimator; those with an item for each sequence, such as
            `sample_weight`, are split like X.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X, y or a parameter is invalid; if there are too few sequences, groups or chunks for
            `alpha`; or if too many of the true ones are out of reach of any threshold.

        Warns
        -----
        UserWarning
            If a held-out sequence, or group, has more than `max_chunks` chunks; or if X has
            features that were made of labels.
        """
        if self.risk == LABELLING and isinstance(self.by, str):
            raise ValueError('risk="labelling" is about all types at once: pass by=None.')
        X, y = lists_to_split(X), as_lists(y)
        is_frozen = isinstance(self.estimator, FrozenEstimator)
        inner = self.estimator.estimator if is_frozen else self.estimator
        labels = labels_to_split(X, y, is_read=isinstance(inner, BaseTagger))
        check_weights(X, params)
        units = _units(groups, len(labels))
        train, held_out = _split(self, labels, units, is_frozen)
        with draft_of(self) as draft:
            if is_frozen:
                draft.estimator_ = inner
            else:
                warn_of_label_features(X, "ConformalTagger")
                estimator = restrict_to_fold(clone(inner), labels, train)
                of_train = _check_method_params(X, params, indices=train)
                parts = (_safe_indexing(part, train) for part in (X, y))
                draft.estimator_ = estimator.fit(*parts, **of_train)
            draft.classes_ = find_tagger(draft.estimator_).tagger.classes_
            names = names_of([labels[i] for i in held_out])
            draft.n_calibration_ = len(np.unique(units[held_out]))
            X = _safe_indexing(X, held_out)
            truth = draft._truth(X, names, held_out)
            kinds, draft.kinds_ = draft._kinds(X, truth)
            thresholds = []
            for kind in draft.kinds_.tolist():
                of_kind = truth.select(kinds == kind)
                thresholds.append(draft._threshold(of_kind, units[held_out], kind))
            draft.thresholds_ = np.array(thresholds)
        return self

    def _kinds(self, X, truth):
        """Type or class of each of the true ones, and all types or classes."""
        if self.by is None:
            return np.full(len(truth.of), _ALL), np.array([_ALL])
        if self.by == "type":
            types, *_ = reading_of_labels(tuple(self.classes_.tolist()))
            return truth.of, np.unique([*map(str, types), *truth.of.tolist()])
        classes = self._classes_of(X)
        return classes[truth.sequences], np.unique(classes)

    def _threshold(self, truth, units, kind):
        """Threshold for a type or a class: the largest that keeps the promise."""
        found, owner, counts = np.unique(
            units[truth.sequences], return_inverse=True, return_counts=True
        )
        alpha, out_of_reach = self.alpha, truth.probabilities == 0
        if self.risk == MISSED:
            if counts.max(initial=0) > self.max_chunks:
                most = np.argmax(counts)
                warnings.warn(
                    f"Sequence or group {found[most]} has {counts[most]} chunks, more than "
                    f"max_chunks={self.max_chunks}. Beyond these, the promise does not count what "
                    "is missed.",
                    stacklevel=4,
                )
            n, costs, spare = len(owner), np.ones(len(owner)), self.max_chunks
            allowed, least = alpha * n - (1 - alpha) * spare, (1 - alpha) * spare / alpha
        else:
            n, costs, spare = len(found), 1 / counts[owner], 1
            allowed, least = alpha * (n + spare) - spare, spare / alpha - spare
        what = _COUNTED[self.risk]
        if self.by is not None:
            what = f"{what} of {kind!r}"
            if len(found) < np.ceil(1 / alpha - 1 - _ROUNDING):
                least, allowed = 1 / alpha - 1, -1
                n, what = len(found), f"sequences or groups with {kind!r}"
        if allowed < -_ROUNDING:
            raise ValueError(
                f"alpha={alpha} needs {np.ceil(least - _ROUNDING):.0f} {what} to choose a threshold"
                f", but {n} are held out. Pass more data, or raise alpha or calibration."
            )
        threshold = _largest_threshold(truth.probabilities, costs, allowed)
        if threshold == 0:
            smallest = (costs[out_of_reach].sum() + spare) / (n + spare)
            raise ValueError(self._beyond(truth.of[out_of_reach], n, what, smallest))
        return threshold

    def _beyond(self, kinds, n, what, smallest):
        """Message: too many of the true ones are out of reach."""
        remedy = f"The smallest alpha that can be kept is {np.ceil(1000 * smallest) / 1000:g}"
        if self.risk == LABELLING:
            return (
                f"{len(kinds)} right labellings, with {n} {what} held out, are not among the "
                f"{self.max_labellings} best, too many for alpha={self.alpha}. {remedy}; or raise "
                "max_labellings."
            )
        types = ", ".join(
            f"{count} {kind}" for kind, count in Counter(kinds.tolist()).most_common(5)
        )
        return (
            f"No threshold reaches {len(kinds)} of the true chunks ({types}), with {n} {what} held "
            f"out: too many for alpha={self.alpha}. {remedy}."
        )

    def _truth(self, X, names, numbers):
        """Probabilities of what is right, by the estimator; errors have the sequences' numbers."""
        fitted = find_tagger(self.estimator_)
        X = fitted.transform(X)
        if self.risk == LABELLING:
            best = fitted.tagger.predict_nbest(X, self.max_labellings)
            _check_lengths([len(some[0].labels) for some in best], names, numbers)
            found = [
                next((one.probability for one in some if names_of([one.labels])[0] == right), 0.0)
                for some, right in zip(best, names, strict=True)
            ]
            of = np.full(len(found), _ALL)
            return Truth(np.arange(len(found)), of, np.array(found))
        true = _true_chunks(names, fitted.tagger.classes_)
        sequences = np.array([chunk[0] for chunk in true], np.int64)
        probabilities, left = {}, np.arange(len(names))
        for floor in FLOORS:
            some = _safe_indexing(X, left)
            batch, _, types, places, p = fitted.tagger._search_spans(some, least=floor)
            _check_lengths(batch.lengths, [names[i] for i in left], numbers[left])
            sequence = left[places[:, 1]].tolist()
            kinds = [str(types[kind]) for kind in places[:, 4]]
            spans = zip(sequence, *places[:, 2:4].T.tolist(), kinds, strict=True)
            probabilities |= dict(zip(spans, p.tolist(), strict=True))
            lacking = [chunk not in probabilities for chunk in true]
            left = np.unique(sequences[lacking])
            if not len(left):
                break
        kinds = np.array([chunk[3] for chunk in true], str)
        return Truth(sequences, kinds, np.array([probabilities.get(c, 0.0) for c in true], float))

    def _classes_of(self, X):
        """Class of each sequence, by the function of the user."""
        found = [self.by(_safe_indexing(X, i)) for i in range(_num_samples(X))]
        for i, kind in enumerate(found):
            if not isinstance(kind, type(found[0])) or not isinstance(kind, (str, Integral)):
                raise ValueError(
                    f"Sequence {i}: by returned {short_repr(kind)}; expected strings only, or "
                    "integers only."
                )
        return label_array(found)

    def _bounds(self, X, sequences, kinds):
        """Least probability of each candidate, given its sequence and its type."""
        if self.by is None:
            return np.full(len(sequences), self.thresholds_[0])
        by_kind = dict(zip(self.kinds_.tolist(), self.thresholds_.tolist(), strict=True))
        if self.by == "type":
            return np.array([by_kind[kind] for kind in kinds], float)
        found = self._classes_of(X).tolist()
        for i, kind in enumerate(found):
            if kind not in by_kind:
                raise ValueError(
                    f"Sequence {i} is of the class {short_repr(kind)}, for which there is no "
                    f"threshold: there are {', '.join(map(repr, by_kind))}."
                )
        return np.array([by_kind[kind] for kind in found], float)[sequences]

    def predict_candidates(self, X) -> Any:
        """Predict the chunks that are probable enough; they may overlap.

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.

        Returns
        -------
        candidates : ndarray of shape (n_sequences,), dtype object
            For each sequence a list of `Span` ``(start, end, type, probability)``, by their start.

        Raises
        ------
        ValueError
            If X is invalid; if a sequence is of a class without a threshold; or if the risk is
            "labelling".
        """
        check_is_fitted(self)
        if self.risk == LABELLING:
            raise ValueError('risk="labelling" has no candidates: call predict_sets.')
        return self._find(lists_to_split(X))[0]

    def _find(self, X):
        """Candidates, and the lengths of the sequences."""
        fitted = find_tagger(self.estimator_)
        # The chunk that the threshold was taken from is a candidate itself.
        least = np.nextafter(self.thresholds_.min(), 0)
        batch, _, types, places, p = fitted.tagger._search_spans(fitted.transform(X), least=least)
        kinds = [str(types[kind]) for kind in places[:, 4]]
        kept = np.flatnonzero(p >= self._bounds(X, places[:, 1], kinds))
        result = np.fromiter(([] for _ in range(len(batch))), object, len(batch))
        for place, probability in zip(places[kept].tolist(), p[kept].tolist(), strict=True):
            _, sequence, start, end, kind = place
            result[sequence].append(Span(start, end, types[kind], min(probability, 1.0)))
        return result, batch.lengths

    def predict_sets(self, X) -> Any:
        """Predict sets of labellings, of which one is right with a probability of 1 - alpha.

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.

        Returns
        -------
        sets : ndarray of shape (n_sequences,), dtype object
            For each sequence a list of `Labelling` ``(labels, score, probability)``, best first. It
            is empty where no labelling is probable enough.

        Raises
        ------
        ValueError
            If X is invalid; if a sequence is of a class without a threshold; or if the risk is not
            "labelling".
        """
        check_is_fitted(self)
        if self.risk != LABELLING:
            raise ValueError(
                f'risk="{self.risk}" has no sets of labellings: call predict_candidates.'
            )
        X = lists_to_split(X)
        fitted = find_tagger(self.estimator_)
        best = fitted.tagger.predict_nbest(fitted.transform(X), self.max_labellings)
        bounds = self._bounds(X, np.arange(len(best)), None)
        sets = (
            [one for one in some if one.probability >= bound]
            for some, bound in zip(best, bounds, strict=True)
        )
        return np.fromiter(sets, object, len(best))

    def measure(self, X, y) -> dict:
        """Measure what is missed on labelled sequences, and how much there is to look at.

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.
        y : sequences of labels
            The right labels. Sequences with labels that are None are left out.

        Returns
        -------
        measures : dict
            "missed": share of all true chunks that are no candidates; "missed_by_sequence": its
            mean over the sequences that have chunks; "candidates": number of candidates for each
            true chunk. With labellings, "missed": share of the sequences whose set lacks the right
            labelling; "labellings": mean number of labellings in a set.

        Raises
        ------
        ValueError
            If X or y is invalid, or nothing is left to measure.
        """
        check_is_fitted(self)
        X, y = lists_to_split(X), as_lists(y)
        labels = labels_to_split(X, y, is_read=isinstance(self.estimator_, BaseTagger))
        whole = [i for i, of_one in enumerate(labels) if None not in of_one]
        names = names_of([labels[i] for i in whole])
        chunks = _true_chunks(names, self.classes_)
        if not (chunks if self.risk != LABELLING else whole):
            raise ValueError("y has no chunk and no labelling to measure with.")
        X = _safe_indexing(X, whole)
        if self.risk == LABELLING:
            sets = [names_of(one.labels for one in some) for some in self.predict_sets(X)]
            missed = [right not in some for some, right in zip(sets, names, strict=True)]
            return {
                "missed": float(np.mean(missed)),
                "labellings": float(np.mean(list(map(len, sets)))),
            }
        found, lengths = self._find(X)
        _check_lengths(lengths, names, whole)
        spans = {(i, a, b, str(kind)) for i, some in enumerate(found) for a, b, kind, _ in some}
        missed = np.array([chunk not in spans for chunk in chunks], float)
        _, owner = np.unique([chunk[0] for chunk in chunks], return_inverse=True)
        by_sequence = np.bincount(owner, missed) / np.bincount(owner)
        return {
            "missed": float(missed.mean()),
            "missed_by_sequence": float(by_sequence.mean()),
            "candidates": len(spans) / len(chunks),
        }

    @available_if(_delegates("predict"))
    def predict(self, X) -> Any:
        """Predict labels with the estimator.

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.

        Returns
        -------
        y : ndarray
            Labels, as of `estimator_`.
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)

    @available_if(_delegates("predict_proba"))
    def predict_proba(self, X) -> Any:
        """Predict the marginal probabilities of labels with the estimator.

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.

        Returns
        -------
        proba : ndarray
            Probabilities, as of `estimator_`.
        """
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @available_if(_delegates("score"))
    def score(self, X, y, sample_weight=None) -> float:
        """Score the predictions of the estimator.

        Parameters
        ----------
        X : sequences of tokens
            What the estimator takes.
        y : sequences of labels
            The right labels.
        sample_weight : array-like of shape (n_sequences,), default=None
            Weight of each sequence.

        Returns
        -------
        score : float
            As of `estimator_`.
        """
        check_is_fitted(self)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.estimator_.score(X, y, **weights)


_COUNTED = {MISSED: "chunks", BY_SEQUENCE: "sequences or groups with chunks",
            LABELLING: "sequences or groups"}  # fmt: skip


class Truth(NamedTuple):
    """The chunks, or the labellings, of sequences that were held out."""

    sequences: np.ndarray  # number of the sequence of each
    of: np.ndarray  # type of the chunk
    probabilities: np.ndarray  # zero for those that no threshold reaches

    def select(self, mask):
        """Some of them."""
        return Truth(*(part[mask] for part in self))


def _true_chunks(names, classes):
    """Chunks (sequence, start, end, type) of sequences of labels."""
    scheme = reading_in(scheme_of_classes(list(map(str, classes.tolist()))))
    return [
        (i, *chunk)
        for i, labels in enumerate(names)
        for chunk in extract_chunks(labels, scheme=scheme)
    ]


def _largest_threshold(probabilities, costs, allowed):
    """The largest threshold below which the true ones do not cost more than is allowed; at most 1.

    It is one of the probabilities; what has the threshold itself is not missed.
    """
    order = np.argsort(probabilities, kind="stable")
    p, total = probabilities[order], np.cumsum(np.append(0.0, costs[order]))
    if total[-1] <= allowed + _ROUNDING:
        return 1.0
    below = total[np.searchsorted(p, p, side="left")]
    return float(min(p[below <= allowed + _ROUNDING][-1], 1.0))


def _check_lengths(lengths, names, numbers):
    """Refuse labels that do not fit X; steps of a pipeline have to read it before its lengths."""
    for number, length, labels in zip(numbers, lengths, names, strict=True):
        if length != len(labels):
            raise DataError(
                f"{{place}} has {length} tokens, but {len(labels)} labels.", int(number)
            )


def _units(groups, n_sequences):
    """Number of each sequence, or its group."""
    if groups is None:
        return np.arange(n_sequences)
    units = np.asarray(groups)
    if units.shape != (n_sequences,):
        raise ValueError(
            f"groups has the shape {units.shape}, but there are {n_sequences} sequences."
        )
    return units


def _split(tagger, labels, units, is_frozen):
    """Numbers of the sequences to learn from, and of those that are held out."""
    known = np.flatnonzero([None not in of_one for of_one in labels])
    if not len(known):
        raise ValueError("No sequence has all of its labels: there is nothing to calibrate on.")
    if is_frozen:
        return known[:0], known
    n_units = len(np.unique(units[known]))
    if n_units < 2:
        raise ValueError(
            f"n_samples={n_units}: there is only one sequence or group with all labels, and one is "
            "to be held out beside those that are learnt from."
        )
    splitter = GroupShuffleSplit(1, test_size=tagger.calibration, random_state=tagger.random_state)
    _, held_out = next(splitter.split(known, groups=units[known]))
    held_out = np.sort(known[held_out])
    return np.flatnonzero(~np.isin(units, units[held_out])), held_out
