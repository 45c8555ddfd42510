"""`TokenTransformer`: transformers of scikit-learn on the rows of a batch."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from skstruct.features.mixin import FeatureInput
from skstruct.input.formats import (
    Format,
    as_lists,
    flatten_labels,
    label_array,
    read_format,
)
from skstruct.input.training_set import read_sample_weight
from skstruct.matrices import as_matrix, read_only
from skstruct.sequences import ReturnsBatches, SequenceBatch
from skstruct.utils.declared import Part
from skstruct.utils.persistence import Persistent, set_module
from skstruct.utils.transaction import draft_of


# No wrapping of outputs: a batch cannot become a data frame.
@set_module("skstruct")
class TokenTransformer(
    ReturnsBatches,
    FeatureInput,
    Persistent,
    TransformerMixin,
    BaseEstimator,
    auto_wrap_output_keys=None,
):
    """Apply a transformer of scikit-learn to the tokens of a batch.

    Transformers such as `StandardScaler`, `SelectKBest` or `TruncatedSVD` take a matrix whose rows
    are samples. This one gives them the rows of all sequences, and makes a batch of what they
    return. It stands between a vectoriser and a tagger, and several steps may be a pipeline within
    it: ``TokenTransformer(make_pipeline(MaxAbsScaler(), SelectKBest(chi2)))``.

    Parameters
    ----------
    transformer : transformer
        With `fit` and `transform` for matrices; a clone of it is fitted. Sparse features cannot be
        centred: `StandardScaler` needs ``with_mean=False``.

    Attributes
    ----------
    transformer_ : transformer
        The fitted clone.
    n_features_in_ : int
        Number of columns of the batch in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if it had any.

    See Also
    --------
    SequenceUnion : Stack the outputs of several transformers.
    SequenceVectorizer : Its `min_freq` leaves out rare features.

    Notes
    -----
    The sequences stay as they are, and so does `transition_X`. Zeros that the output stores are
    kept if the input's were, see `SequenceBatch`: scaling and selecting keep them, while
    what makes new columns has none.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest, chi2
    >>> from sklearn.pipeline import make_pipeline
    >>> from skstruct import CRFTagger, SequenceVectorizer, TokenTransformer
    >>> X = [[{"word": "the", "n": 1}, {"word": "cat", "n": 2}], [{"word": "the", "n": 3}]]
    >>> y = [["DET", "NOUN"], ["DET"]]
    >>> select = TokenTransformer(SelectKBest(chi2, k=2))
    >>> tagger = make_pipeline(SequenceVectorizer(), select, CRFTagger()).fit(X, y)
    >>> tagger[:-1].get_feature_names_out().tolist()
    ['word:cat', 'word:the']
    >>> tagger.predict([[{"word": "the"}, {"word": "cat"}]]).tolist()
    [['DET', 'NOUN']]
    """

    _parameter_constraints: ClassVar[dict] = {"transformer": [HasMethods(["fit", "transform"])]}
    _stored: ClassVar[dict] = {"transformer_": Part("transform")}
    _complete = ("transformer_", "n_features_in_")

    def __init__(self, transformer) -> None:
        self.transformer = transformer

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Rows are tokens of sequences.
        tags.input_tags.two_d_array = False
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, *, sample_weight=None) -> Self:
        """Fit the transformer to the rows of all sequences.

        Parameters
        ----------
        X : SequenceBatch, list of matrices or 3-D array
            The sequences, as a vectoriser returns them.
        y : sequences of labels, default=None
            Labels of the tokens, for transformers that need them, such as `SelectKBest`. Tokens
            whose label is None are left out then.
        sample_weight : array-like of shape (n_sequences,), default=None
            Weights of the sequences, for transformers that take weights: each token has its
            sequence's.

        Returns
        -------
        self : TokenTransformer

        Raises
        ------
        ValueError
            If X is not a batch, or `y` does not fit it; and whatever the transformer raises.
        """
        format, batch = _as_batch(X)
        rows, params, labels = _own_rows(batch.X), {}, None
        if sample_weight is not None:
            weights = read_sample_weight(sample_weight, len(batch))
            params["sample_weight"] = np.repeat(weights, batch.lengths)
        y = as_lists(y)
        if y is not None and (get_tags(self.transformer).target_tags.required or _are_labels(y)):
            labels, dtype = flatten_labels(y, batch.offsets, format, partial=True)
            known = np.array([label is not None for label in labels], bool)
            if not known.all():
                rows = rows[known]
                params = {name: weights[known] for name, weights in params.items()}
                labels = [label for label in labels if label is not None]
            labels = label_array(labels, dtype)
        fitted = clone(self.transformer).fit(rows, labels, **params)
        with draft_of(self) as draft:
            draft.transformer_ = fitted
            draft._check_features(batch, reset=True)
        return self

    def transform(self, X) -> SequenceBatch:
        """Transform the rows of all sequences.

        Parameters
        ----------
        X : SequenceBatch, list of matrices or 3-D array
            With the columns of `fit`.

        Returns
        -------
        batch : SequenceBatch
            The same sequences with other columns, which have names if the columns of X and the
            transformer have.

        Raises
        ------
        ValueError
            If the columns differ from those in `fit`, or the transformer drops or adds rows.
        """
        check_is_fitted(self)
        _, batch = _as_batch(X)
        self._check_features(batch, reset=False)
        found = as_matrix(self.transformer_.transform(_own_rows(batch.X)))
        if found.shape[0] != batch.n_rows:
            raise ValueError(
                f"{type(self.transformer_).__name__} made {found.shape[0]} rows of "
                f"{batch.n_rows}; expected one for each token."
            )
        has_names = batch.feature_names is not None
        has_names = has_names and hasattr(self.transformer_, "get_feature_names_out")
        transformed = SequenceBatch(
            found,
            batch.offsets,
            feature_names=self.get_feature_names_out(batch.feature_names) if has_names else None,
            transition_X=batch.transition_X,
            keep_zeros=batch.keep_zeros,
        )
        transformed.reads_labels = batch.reads_labels
        return transformed

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Name of each column of the output, as the transformer makes it.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of the input; by default from `fit`.

        Returns
        -------
        names : ndarray of shape (n_features,), dtype object
        """
        check_is_fitted(self)
        if input_features is None:
            input_features = vars(self).get("feature_names_in_")
        names = self.transformer_.get_feature_names_out(input_features)
        return np.asarray(names, dtype=object)


def _as_batch(X):
    """Format and batch of sequences of numbers."""
    format, batch = read_format(X)
    if format is Format.ROWS:
        raise ValueError(
            "X is one matrix, whose rows are no sequences: use the transformer itself, or pass "
            "SequenceBatch.from_lengths(X, lengths)."
        )
    if format is Format.TOKENS:
        raise ValueError(
            "X has tokens that are no rows of numbers: put a vectoriser before TokenTransformer, "
            "such as SequenceVectorizer."
        )
    return format, batch


def _own_rows(X):
    """Rows for a transformer, which may not change the batch's."""
    if not sp.issparse(X):
        return read_only(X)
    # Compiled code of others takes neither a number that is repeated without memory nor a view.
    parts = (np.array(part) for part in (X.data, X.indices, X.indptr))
    return sp.csr_matrix(tuple(parts), shape=X.shape)


def _are_labels(y):
    """Return False for the costs of candidates, which are no labels of rows."""
    first = next((label for labels in y for label in np.ravel(labels).tolist()), None)
    return not isinstance(first, float)
