"""Base of the vectorisers that learn."""

from typing import Self

from sklearn.base import BaseEstimator, TransformerMixin, _fit_context

from skstruct.sequences import ReturnsBatches, SequenceBatch
from skstruct.utils.persistence import Persistent
from skstruct.utils.progress import CallbackSupport, as_one_task


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

    @_fit_context(prefer_skip_nested_validation=True)
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
