"""`LabelStatistics`: what the labels of other sequences say about a word."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, count, pairwise
from numbers import Integral
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from skstruct.features.columns import normalized, read_words
from skstruct.frames import is_frame
from skstruct.input.folds import checked_folds
from skstruct.input.formats import Format, flatten_labels
from skstruct.input.schemes import OUTSIDE, RUNS, SCHEMES, scheme_of_classes, split_label
from skstruct.input.training_set import read_sample_weight
from skstruct.utils.declared import Array, Choice, Strings
from skstruct.utils.persistence import Persistent, set_module
from skstruct.utils.transaction import draft_of

# Statistic of words without a label, and name of the column.
NEW, NAME = "new", "label_statistics"
_MOST_FOLDS = 5


@set_module("skstruct")
class LabelStatistics(Persistent, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """Put a column beside tokens: what labels the word has in other training sequences.

    ``fit_transform(X, y)`` does not equal ``fit(X, y).transform(X)``, as with
    :class:`~sklearn.preprocessing.TargetEncoder`: in training, the statistic of a token comes from
    the labels of other folds, and never from its own sequence. So words that occur in one fold only
    are "new" in training, as many words of other texts will be, and a tagger learns what to make of
    them. New texts get the statistics of all training sequences. Pipelines do this by themselves.

    The statistic is a string: the commonest type of chunk of the word; "!" if half of its
    occurrences or more are of this type, or else "?"; and the least number of the bin of its count,
    such as "LOC!5". A word that is never part of a chunk has "O" and the number; a word without
    occurrences is "new". It pays where words are rare and labels few.

    Parameters
    ----------
    column : int or str, default=0
        Position of the word in tokens that are tuples or lists, key in dicts, position or name in
        data frames. Tokens that are strings are the words.
    normalize : callable, default=str.lower
        Function applied to words before they are counted, from a string to a string. None takes
        words as they are.
    counts : sequence of int, default=(1, 2, 5)
        Least numbers of the bins, increasing. Words with fewer occurrences are "new".
    scheme : str, default=None
        Scheme of the labels, as of `SpanTaggerCV`. By default, it is recognised by their letters.
        Of labels without letters, such as parts of speech, each is a type.
    cv : int, cross-validation generator or iterable, default=None
        Folds of the training sequences. Each must be tested once. None means 5 folds of
        neighbouring sequences, so that few documents are split.

    Attributes
    ----------
    words_ : list of str
        The words, normalised.
    types_ : list of str
        Types of chunks, and "O".
    occurrences_ : ndarray of shape (n_words,)
        Number of tokens with a label.
    scheme_ : str
        Scheme of the labels.

    See Also
    --------
    WordVectorizer : Has the statistics as features, with ``label_statistics=True``.
    sklearn.preprocessing.TargetEncoder : The counterpart for classifiers.

    Notes
    -----
    Tokens whose label is None count for nothing, and neither do sequences of weight zero. Weights
    of sequences decide which type is the commonest, and whether it is half of the occurrences.
    Whether a word is new, and its bin, go by whole occurrences.

    Beside the word itself, "all but one fold" tells a little of the labels of that fold. With
    random labels, the training accuracy of a logistic regression on words rises by two points (.589
    to .609). Folds of one sequence, which are counts less its own, tell more (.613). Held out, the
    statistics of random labels are worth nothing.

    A step of a pipeline is fitted by the pipeline: `cross_val_score`, `GridSearchCV` and
    `SpanTaggerCV` around it count the labels of their training parts only. `CRFTaggerCV` as the
    last step does not refit the steps before it: each fold of its search is tested on sequences
    whose labels have entered columns of its training part, though never their own. On 1,000
    sentences of three corpora, F1 of new text was the same within .2 points as after a grid search
    around the pipeline. The penalties differed by a factor of up to ten, and `best_score_` by .8
    points at most.

    Examples
    --------
    >>> from skstruct import LabelStatistics
    >>> X = [["in", "Rome"], ["Rome", "is", "old"], ["in", "Oslo"]]
    >>> y = [["O", "B-LOC"], ["B-LOC", "O", "O"], ["O", "B-LOC"]]
    >>> statistics = LabelStatistics()
    >>> statistics.fit_transform(X, y)
    [[('in', 'O1'), ('Rome', 'LOC!1')], [('Rome', 'LOC!1'), ('is', 'new'), ('old', 'new')], \
[('in', 'O1'), ('Oslo', 'new')]]
    >>> statistics.transform([["Oslo", "and", "Rome"]])
    [[('Oslo', 'LOC!1'), ('and', 'new'), ('Rome', 'LOC!2')]]
    """

    _parameter_constraints: dict = {
        "column": [Integral, str],
        "normalize": [callable, None],
        "counts": ["array-like"],
        "scheme": [StrOptions(set(SCHEMES)), None],
        "cv": ["cv_object"],
    }

    _stored = {
        "scheme_": Choice(*SCHEMES),
        "words_": Strings(distinct=True),
        "types_": Strings(distinct=True),
        "occurrences_": Array(np.int64, ("words_",), least=0),
        # The word, the type and the weight of each pair that occurs.
        "_rows": Array(np.int64, (None,), least=0, below="words_"),
        "_columns": Array(np.int64, ("_rows",), least=0, below="types_"),
        "_weights": Array(np.float64, ("_rows",), least=0),
    }
    _complete = tuple(_stored)
    _derived_state = ("_lookup",)

    def __init__(
        self, *, column=0, normalize=str.lower, counts=(1, 2, 5), scheme=None, cv=None
    ) -> None:
        self.column = column
        self.normalize = normalize
        self.counts = counts
        self.scheme = scheme
        self.cv = cv

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, *, groups=None, sample_weight=None) -> Self:
        """Count the labels of words.

        Parameters
        ----------
        X : iterable of sequences of tokens
            A token is a string, a tuple or list of columns, or a dict. A sequence may also be a
            data frame or a 2-D array, whose rows are the tokens.
        y : sequences of labels
            Strings or integers; None where a label is unknown.
        groups : array-like of shape (n_sequences,), default=None
            Ignored: only the columns of training sequences depend on it.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Weight of each sequence. By default, 1.

        Returns
        -------
        self : LabelStatistics

        Raises
        ------
        ValueError
            If X, y, a weight or a parameter is invalid; the message names the sequence and the
            token.
        """
        words = read_words(X, self.column)[:3]
        self._keep(self._read(*words, y, sample_weight).counts())
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X, y, *, groups=None, sample_weight=None) -> list:
        """Count the labels of words, and put columns beside the training tokens.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        groups : array-like of shape (n_sequences,), default=None
            Documents or other sources of several sequences, which say nothing about each other.
            Unless `cv` is a splitter, the sequences of a group are in one fold, as
            :class:`~sklearn.model_selection.GroupKFold` does it.

        Returns
        -------
        columns : list of sequences
            As from `transform`, but from the labels of other folds.

        Raises
        ------
        ValueError
            As in `fit`; or if `cv` does not test each sequence once.
        """
        X = _sequences(X)
        *words, _ = read_words(X, self.column)
        values, codes = self._learn(*words, y, groups, sample_weight)
        return _beside(X, words[2], np.array(values, dtype=object)[codes].tolist())

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, *, sample_weight=None) -> Self:
        """Add the labels of more sequences.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self : LabelStatistics

        Raises
        ------
        ValueError
            As in `fit`.
        """
        *words, _ = read_words(X, self.column)
        portion = self._read(*words, y, sample_weight, vars(self).get("scheme_"))
        before = [self._counts()] if self._is_learnt() else []
        self._keep(merge([*before, portion.counts()]))
        return self

    def transform(self, X) -> list:
        """Put a column beside tokens, from the labels of all training sequences.

        Parameters
        ----------
        X : iterable of sequences of tokens
            As in `fit`. Training sequences get the statistics of their own labels, too, which are
            better than any others will be: `fit_transform` is for them.

        Returns
        -------
        columns : list of sequences
            Lists of tokens. A token that was a string is a pair, a tuple or list is a tuple with
            one column more, and a dict has the key ``"label_statistics"``. A data frame has a
            column of this name.

        Raises
        ------
        ValueError
            If a token is invalid or lacks the column.
        """
        check_is_fitted(self)
        X = _sequences(X)
        words, codes, offsets, _ = read_words(X, self.column)
        values = np.array(list(map(self.value_of, words)), dtype=object)
        return _beside(X, offsets, values[codes].tolist())

    def value_of(self, word):
        """Look up the statistic of a word.

        Parameters
        ----------
        word : str

        Returns
        -------
        value : str
            "new" for a word without occurrences.
        """
        if "_lookup" not in vars(self):
            values = self._counts().values(self.counts)
            self._lookup = dict(zip(self.words_, values.tolist(), strict=True))
        return self._lookup.get(normalized([word], self.normalize)[0], NEW)

    def _learn(self, words, codes, offsets, y, groups, sample_weight):
        """Count labels; return the statistics of the training tokens.

        Parameters
        ----------
        words : list of str
            Distinct words.
        codes : ndarray of shape (n_rows,)
            Position of each token's word among them.
        offsets : ndarray of shape (n_sequences + 1,)
        y, groups, sample_weight
            As in `fit_transform`.

        Returns
        -------
        values : list of str
            Distinct statistics.
        codes : ndarray of shape (n_rows,), dtype int32
            Position of each token's statistic among them.
        """
        training = self._read(words, codes, offsets, y, sample_weight)
        n_sequences, number = len(offsets) - 1, defaultdict(count().__next__)
        owner = np.repeat(np.arange(n_sequences), np.diff(offsets))
        found = np.empty(len(codes), np.int32)
        for train, test in _folds(self.cv, n_sequences, groups):
            values = training.counts(np.isin(owner, train)).values(self.counts)
            numbers = np.fromiter(map(number.__getitem__, values), np.int32, len(values))
            rows = np.isin(owner, test)
            found[rows] = numbers[training.codes[rows]]
        self._keep(training.counts())
        return list(number), found

    def _learn_part(self, words, codes, offsets, y, total):
        """Statistics of the tokens of a part of the data, from the labels of the other parts.

        Parameters
        ----------
        words, codes, offsets, y
            As of `_learn`.
        total : Counts
            Of all parts, this one included.

        Returns
        -------
        values, codes
            As of `_learn`.
        """
        part = self._read(words, codes, offsets, y, None, total.scheme)
        values = total.without(part.counts()).values(self.counts)
        number = defaultdict(count().__next__)
        numbers = np.fromiter(map(number.__getitem__, values), np.int32, len(values))
        return list(number), numbers[part.codes]

    def _read(self, words, codes, offsets, y, sample_weight, scheme=None):
        """Words and types of all tokens, numbered."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        _check_bounds(self.counts)
        labels, _ = flatten_labels(y, offsets, Format.TOKENS, partial=True)
        distinct = set(labels) - {None}
        scheme = scheme or self.scheme or scheme_of_classes(distinct)
        type_of = {label: _type(label, scheme) for label in distinct}
        types = sorted(set(type_of.values()))
        number = {label: types.index(kind) for label, kind in type_of.items()} | {None: -1}
        kinds = np.fromiter(map(number.__getitem__, labels), np.int64, len(labels))
        weights = read_sample_weight(sample_weight, len(offsets) - 1)
        keys = defaultdict(count().__next__)
        found = normalized(words, self.normalize)
        which = np.fromiter(map(keys.__getitem__, found), np.int64, len(words))
        weights = np.repeat(weights, np.diff(offsets))
        return _Training(scheme, list(keys), types, which[codes], kinds, weights)

    def _counts(self):
        shape = len(self.words_), len(self.types_)
        weights = sp.csr_matrix((self._weights, (self._rows, self._columns)), shape=shape)
        return Counts(self.scheme_, self.words_, self.types_, self.occurrences_, weights)

    def _keep(self, counts):
        with draft_of(self) as draft:
            vars(draft).pop("_lookup", None)
            draft.scheme_, draft.words_, draft.types_, draft.occurrences_, weights = counts
            pairs = weights.tocoo()
            draft._rows, draft._columns = pairs.row.astype(np.int64), pairs.col.astype(np.int64)
            draft._weights = pairs.data

    def _check_state(self):
        _check_bounds(self.counts)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class Counts(NamedTuple):
    """How often words have labels of each type."""

    scheme: str
    words: list
    types: list
    occurrences: np.ndarray  # of shape (n_words,): number of tokens
    weights: sp.csr_matrix  # of shape (n_words, n_types): sums of weights

    def values(self, bounds):
        """Statistic of each word, an array of strings."""
        weights, bounds = self.weights, list(bounds)
        words = np.repeat(np.arange(len(self.words)), np.diff(weights.indptr))
        among = np.array([kind != OUTSIDE for kind in self.types], bool)[weights.indices]
        words, kinds, share = words[among], weights.indices[among], weights.data[among]
        # Of types that are equally common, the first one.
        order = np.lexsort((kinds, -share, words))
        words, first = np.unique(words[order], return_index=True)
        best = order[first]
        total = np.asarray(weights.sum(axis=1)).ravel()[words]
        marks = np.full(len(self.words), 2 * len(self.types))
        marks[words] = 2 * kinds[best] + (2 * share[best] >= total)
        names = [kind + sign for kind in self.types for sign in "?!"] + [OUTSIDE]
        table = [[NEW, *(f"{name}{bound}" for bound in bounds)] for name in names]
        levels = np.searchsorted(bounds, self.occurrences, side="right")
        return np.array(table, dtype=object)[marks, levels]

    def without(self, part):
        """Counts of the words of a part of the data, less its own; weights are integers."""
        place = dict(zip(self.words, count()))
        rows = np.fromiter(map(place.__getitem__, part.words), np.int64, len(part.words))
        own = sp.coo_matrix(part.weights)
        columns = np.array([self.types.index(kind) for kind in part.types], np.int64)[own.col]
        shape = len(rows), len(self.types)
        weights = self.weights[rows] - sp.csr_matrix((own.data, (own.row, columns)), shape=shape)
        weights.eliminate_zeros()
        occurrences = self.occurrences[rows] - part.occurrences
        return Counts(self.scheme, part.words, self.types, occurrences, weights)


class _Training(NamedTuple):
    """Tokens of training sequences."""

    scheme: str
    words: list
    types: list
    codes: np.ndarray  # position of each token's word
    kinds: np.ndarray  # position of the type of its label, -1 where that is unknown
    weights: np.ndarray

    def counts(self, rows=True):
        rows = np.flatnonzero((self.kinds >= 0) & (self.weights > 0) & rows)
        shape, codes = (len(self.words), len(self.types)), self.codes[rows]
        weights = sp.csr_matrix((self.weights[rows], (codes, self.kinds[rows])), shape=shape)
        occurrences = np.bincount(codes, minlength=len(self.words))
        return Counts(self.scheme, self.words, self.types, occurrences, weights)


def merge(parts):
    """Add `Counts` of several parts of the data."""
    words = dict(zip(dict.fromkeys(chain.from_iterable(part.words for part in parts)), count()))
    types = sorted(set().union(*(part.types for part in parts)))
    shape, occurrences, entries = (len(words), len(types)), np.zeros(len(words), np.int64), []
    for part in parts:
        rows = np.fromiter(map(words.__getitem__, part.words), np.int64, len(part.words))
        columns = np.array([types.index(kind) for kind in part.types], np.int64)
        occurrences[rows] += part.occurrences
        own = part.weights.tocoo()
        entries.append((own.data, rows[own.row], columns[own.col]))
    data, rows, columns = map(np.concatenate, zip(*entries, strict=True))
    weights = sp.csr_matrix((data, (rows, columns)), shape=shape)
    # Parts may have labels without letters only in common, such as "O".
    scheme = RUNS if any(part.scheme == RUNS for part in parts) else parts[0].scheme
    return Counts(scheme, list(words), types, occurrences, weights)


def _type(label, scheme):
    """Type of the chunks of a label; "O" outside of chunks."""
    if scheme == RUNS or not isinstance(label, str):
        return str(label)
    return OUTSIDE if label == OUTSIDE else split_label(label)[1]


def _folds(cv, n_sequences, groups):
    """Pairs of the training and the test sequences of each fold."""
    from sklearn.model_selection import GroupKFold, check_cv  # slow

    if groups is not None and np.shape(groups) != (n_sequences,):
        raise ValueError(f"groups has the shape {np.shape(groups)}; expected ({n_sequences},).")
    n_units = n_sequences if groups is None else len(np.unique(groups))
    if cv is None and n_units < 2:
        return [([], range(n_sequences))]
    cv = min(_MOST_FOLDS, n_units) if cv is None else cv
    if groups is not None and isinstance(cv, Integral):
        cv = GroupKFold(cv)
    positions, tested = np.arange(n_sequences), np.zeros(n_sequences, np.int64)
    splits = checked_folds(check_cv(cv).split(positions, None, groups), n_sequences)
    for _, test in splits:
        np.add.at(tested, test, 1)
    wrong = np.flatnonzero(tested != 1)
    if len(wrong):
        raise ValueError(
            f"cv must test each sequence once, but tests sequence {wrong[0]} {tested[wrong[0]]} "
            "times."
        )
    return splits


def _check_bounds(counts):
    bounds = list(counts)
    fits = bounds and all(isinstance(n, Integral) and n > 0 for n in bounds)
    if not fits or any(a >= b for a, b in pairwise(bounds)):
        raise ValueError(
            f"counts must be positive integers, each larger than the one before, got {counts!r}."
        )


def _sequences(X):
    """List of sequences that can be read twice."""
    if isinstance(X, (str, bytes, Mapping)) or is_frame(X):
        # Not a batch; an error says so when it is read.
        return X
    return [list(part) if isinstance(part, (list, Iterator)) else part for part in X]


def _beside(X, offsets, values):
    """Sequences with a value beside each token."""
    parts = zip(X, pairwise(offsets.tolist()), strict=True)
    return [_with_column(sequence, values[a:b]) for sequence, (a, b) in parts]


def _with_column(sequence, values):
    if is_frame(sequence):
        columns = {name: sequence[name] for name in sequence.columns}
        if NAME in columns:
            raise ValueError(f"The data frame already has a column {NAME!r}: rename it.")
        index = {"index": sequence.index} if hasattr(sequence, "index") else {}
        return type(sequence)({**columns, NAME: values}, **index)
    return [_with_value(token, value) for token, value in zip(sequence, values, strict=True)]


def _with_value(token, value):
    if isinstance(token, Mapping):
        return {**token, NAME: value}
    return (token, value) if isinstance(token, str) or np.ndim(token) == 0 else (*token, value)


def warn_of_label_features(X, who):
    """Warn if X has features that steps before an estimator, which splits it, have made of labels.

    Parameters
    ----------
    X : sequences of tokens
    who : str
        Name of the estimator.
    """
    names = getattr(X, "feature_names", None)
    if names is None:
        first = X[0] if isinstance(X, (list, tuple)) and X else ()
        is_dicts = isinstance(first, (list, tuple)) and first and isinstance(first[0], dict)
        names = first.columns if is_frame(first) else first[0] if is_dicts else ()
    if getattr(X, "reads_labels", False) or any(str(name).startswith(NAME) for name in names):
        warnings.warn(
            f"X has features made of labels ({NAME}), also of those that {who} holds out. Put the "
            f"steps that make them inside: {who}(make_pipeline(...)).",
            stacklevel=4,
        )
