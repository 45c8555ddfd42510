"""What vectorisers that learn have in common: `fit`, and a warning of data unlike the training."""

import warnings
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from skstruct.sequences import ReturnsBatches, SequenceBatch
from skstruct.utils.declared import Strings
from skstruct.utils.persistence import Persistent
from skstruct.utils.progress import CallbackSupport, as_one_task, fit_context

# Fewer tokens may well have nothing in common with the training data.
FEWEST_TOKENS = 20
# Most tokens that are looked at.
_MOST_TOKENS = 500
# Share of the tokens that must be known.
_FEWEST_KNOWN = 0.05
# Share of the features by a template that must be known for a token to be known.
_SHARE = 0.25


# No wrapping of outputs: a batch cannot become a data frame.
class LearningVectorizer(
    CallbackSupport,
    ReturnsBatches,
    Persistent,
    TransformerMixin,
    BaseEstimator,
    auto_wrap_output_keys=None,
):
    """Base of vectorisers that learn.

    A subclass defines ``_fit(X)``, which learns from sequences and returns their batch.
    """

    _stored: ClassVar[dict] = {"feature_names_in_": Strings(np.ndarray)}

    def fit(self, X, y=None) -> Self:
        """Learn the features of tokens.

        Parameters
        ----------
        X : iterable of sequences of tokens
            Tokens as the class describes them.
        y : None
            Ignored.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there is no token, if a token is invalid (the message names the sequence and the
            token, counted from 0), or if no feature is left to learn.
        """
        self.fit_transform(X)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    @as_one_task
    def fit_transform(self, X, y=None) -> SequenceBatch:
        """Learn the features and return the batch, reading `X` once.

        Parameters
        ----------
        X : iterable of sequences of tokens
            As in `fit`.
        y : None
            Ignored.

        Returns
        -------
        batch : SequenceBatch
            As from `transform`.

        Raises
        ------
        ValueError
            As in `fit`.
        """
        return self._fit(X)


def names_in(vectorizer):
    """Names of the columns of the data frames that a vectoriser was fitted to; None without any."""
    return vars(vectorizer).get("feature_names_in_")


def keep_names_in(vectorizer, names):
    """Keep the names of the columns of data frames; None forgets an earlier fit's."""
    vars(vectorizer).pop("feature_names_in_", None)
    if names is not None:
        vectorizer.feature_names_in_ = np.array(names, dtype=object)


def warn_of_unseen_attributes(matrix, n_given):
    """Warn if hardly any token of dicts or lists has a feature that was seen in training.

    Parameters
    ----------
    matrix : csr_matrix of shape (n_tokens, n_columns)
        Features that were seen.
    n_given : int
        Number of features of all tokens.
    """
    if matrix.shape[0] < FEWEST_TOKENS or matrix.nnz > n_given / 2:
        return
    some = matrix[_spread(matrix.shape[0])]
    n_tokens = some.shape[0]
    _, which, counts = np.unique(some.indices, return_inverse=True, return_counts=True)
    # A bias tells nothing: all tokens have it, with the value 1.
    differs = np.bincount(which, some.data != 1, minlength=len(counts)) > 0
    is_telling = (differs | (counts < (1 - _FEWEST_KNOWN) * n_tokens))[which]
    rows = np.repeat(np.arange(n_tokens), np.diff(some.indptr))[is_telling]
    # One feature is enough for a token: a model may have been pruned to a few.
    _warn_if_few(np.bincount(rows, minlength=n_tokens) > 0)


def warn_of_unseen_values(reader, numbers):
    """Warn if hardly any token has values that were seen in training.

    Features of neighbours are left out: their values beyond the ends of a sequence are always the
    same.

    Parameters
    ----------
    reader : TemplateReader
    numbers : ndarray of shape (n_templates, n_tokens)
        Numbers of the features, -1 for those that were not seen.
    """
    is_sentence = len(reader.offsets) == 2 and reader.n_rows < 5 * FEWEST_TOKENS
    if is_sentence or reader.n_rows < FEWEST_TOKENS:
        return
    ends = reader.patterns.ends
    lines = np.flatnonzero(np.diff(ends, prepend=0) == 1)
    lines = lines[reader.patterns.positions[ends[lines] - 1] == 0, None]
    if not len(lines):
        return
    fields, tokens = reader.patterns.fields[ends[lines] - 1], _spread(reader.n_rows)
    # A function may give no value.
    n_given = (reader.tokens.codes[fields, reader.tokens.places[tokens]] >= 0).sum(axis=0)
    n_known = (numbers[lines, tokens] >= 0).sum(axis=0)
    _warn_if_few((n_known >= _SHARE * n_given)[n_given > 0])


def _spread(n_tokens):
    """Numbers of some tokens from all over a batch."""
    return np.linspace(0, n_tokens - 1, min(n_tokens, _MOST_TOKENS)).astype(np.int64)


def _warn_if_few(is_known):
    if len(is_known) >= FEWEST_TOKENS and np.mean(is_known) < _FEWEST_KNOWN:
        warnings.warn(
            "Nearly no feature of X was seen in training: hardly any token has more than a few of "
            "its features in common with the training data. Check that X has the same columns or "
            "features, made in the same way.",
            stacklevel=4,
        )
