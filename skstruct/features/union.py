"""`SequenceUnion`: features from several sources for the same tokens."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from numbers import Real
from types import NoneType
from typing import Self

from joblib import effective_n_jobs
from sklearn.pipeline import FeatureUnion
from sklearn.utils import get_tags

from skstruct.input.formats import Format, read_format
from skstruct.sequences import ReturnsBatches, SequenceBatch
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import Persistent, set_module


# No wrapping of outputs: a batch cannot become a data frame.
@set_module("skstruct")
class SequenceUnion(ReturnsBatches, Persistent, FeatureUnion, auto_wrap_output_keys=None):
    """Combine the outputs of several transformers of sequences, as `FeatureUnion` does.

    Every transformer gets the same sequences, and their columns are stacked horizontally: for
    example features by templates and word vectors. Parameters of the transformers are set and
    searched as in a pipeline: ``union__embeddings__column``.

    Parameters
    ----------
    transformer_list : list of (str, transformer) tuples
        Transformers of sequences, each with a name; "drop" leaves one out, and "passthrough"
        passes X itself, if it is a batch or a list of matrices. A transformer returns a
        `SequenceBatch` or a list of matrices, one for each sequence.
    n_jobs : int, default=None
        Number of jobs to run in parallel.
    transformer_weights : dict, default=None
        Factor for the values of each transformer, by its name. The larger the values of features,
        the weaker the penalty of a tagger on their weights.
    verbose : bool, default=False
        Print the time that each transformer takes.
    verbose_feature_names_out : bool, default=True
        Prefix the names of features with the name of their transformer in
        `get_feature_names_out`.

    See Also
    --------
    SequenceBatch.hstack : Stack the columns of batches.
    EmbeddingVectorizer : Word vectors, to be combined with other features.

    Notes
    -----
    The batch has no feature names; ``get_feature_names_out`` makes them. Its matrix is sparse
    unless all of its parts are dense. Vectors stay apart, in blocks, until somebody asks for the
    matrix, and the weight of their transformer is a factor of the block.

    Examples
    --------
    >>> from skstruct import EmbeddingVectorizer, SequenceUnion, TemplateVectorizer
    >>> vectors = {"the": [0.1, 0.9], "cat": [0.8, 0.1], "dog": [0.7, 0.2]}
    >>> union = SequenceUnion([
    ...     ("words", TemplateVectorizer("U0:%x[0,0]")),
    ...     ("embeddings", EmbeddingVectorizer(vectors, scale=1)),
    ... ])
    >>> batch = union.fit_transform([["the", "cat"], ["the"]])
    >>> batch.X.toarray()
    array([[0. , 1. , 0.1, 0.9],
           [1. , 0. , 0.8, 0.1],
           [0. , 1. , 0.1, 0.9]])
    >>> union.get_feature_names_out().tolist()
    ['words__U0:cat', 'words__U0:the', 'embeddings__vector:0', 'embeddings__vector:1']
    """

    def fit(self, X, y=None, **params) -> Self:
        """Fit all transformers.

        Parameters
        ----------
        X : iterable of sequences of tokens
            What each of the transformers takes.
        y : sequences of labels, default=None
            For transformers that need them.
        **params
            For the `fit` of the transformers, as in `FeatureUnion`.

        Returns
        -------
        self : SequenceUnion

        Raises
        ------
        ValueError
            As the transformers do; or if there is none, or a weight is not a finite number.
        """
        return super().fit(self._for_all(X), y, **params)

    def fit_transform(self, X, y=None, **params) -> SequenceBatch:
        """Fit all transformers, and stack their outputs.

        Parameters
        ----------
        X, y, **params
            As in `fit`.

        Returns
        -------
        batch : SequenceBatch

        Raises
        ------
        ValueError
            As in `fit`; or if a transformer returns something else than sequences, or others.
        """
        return super().fit_transform(self._for_all(X), y, **params)

    def transform(self, X, **params) -> SequenceBatch:
        """Stack the outputs of all transformers.

        Parameters
        ----------
        X : iterable of sequences of tokens
            As in `fit`.
        **params
            For the `transform` of the transformers, as in `FeatureUnion`.

        Returns
        -------
        batch : SequenceBatch

        Raises
        ------
        ValueError
            As in `fit_transform`.
        """
        X = self._for_all(X)
        # For one sentence, what else scikit-learn and joblib look at takes a third of the time.
        # Transformers say themselves that they are not fitted.
        is_alone = isinstance(X, list) and len(X) == 1 and self.n_jobs != 0
        if params or self.verbose or not (is_alone or effective_n_jobs(self.n_jobs) == 1):
            return super().transform(X, **params)
        parts, weights = {}, self.transformer_weights or {}
        for name, transformer in self.transformer_list:
            if not isinstance(transformer, str):
                parts[name] = transformer.transform(X)
            elif transformer == "passthrough":
                parts[name] = X
            if parts.get(name) is X and isinstance(X, SequenceBatch):
                parts[name] = X._checked()
            if weights.get(name) is not None and name in parts:
                parts[name] = parts[name] * weights[name]
        # Whoever reads the batch checks what is new in it, which takes longer than to stack.
        return _stacked(parts, SequenceBatch._hstack)

    def _for_all(self, X):
        """Check parameters; return X, as a list if the first transformer would use it up."""
        self._check_weights()
        if not list(self._iter()):
            raise ValueError("transformer_list is empty, or drops all transformers; leave one.")
        return list(X) if isinstance(X, Iterator) else X

    def _check_weights(self):
        if not isinstance(self.transformer_weights, (dict, NoneType)):
            raise ValueError(
                "transformer_weights must be a dict of numbers by the names of transformers, got "
                f"{short_repr(self.transformer_weights)}."
            )
        for name, weight in (self.transformer_weights or {}).items():
            if weight is not None and not (isinstance(weight, Real) and isfinite(weight)):
                raise ValueError(f"The weight of {name!r} is not a finite number.")

    def _check_state(self):
        for name, transformer in self.transformer_list:
            drops = isinstance(transformer, str) and transformer in ("drop", "passthrough")
            if not isinstance(name, str) or not (drops or hasattr(transformer, "transform")):
                raise ValueError(f"{name!r} in transformer_list is no transformer.")
        self._check_weights()
        if not isinstance(self.n_jobs, (int, type(None))):
            raise ValueError("n_jobs is not an integer.")

    # It is fitted if its parts are: it learns nothing of its own.
    __sklearn_is_fitted__ = FeatureUnion.__sklearn_is_fitted__

    def __sklearn_tags__(self):
        # A pipeline asks for tags at every call, and `FeatureUnion` would ask all transformers.
        tags = super(FeatureUnion, self).__sklearn_tags__()
        for _, transformer in reversed(self.transformer_list):
            if not isinstance(transformer, str):
                # They read the same X.
                tags.input_tags = get_tags(transformer).input_tags
                break
        return tags

    def _hstack(self, Xs):
        names = [name for name, _, _ in self._iter()]
        return _stacked(dict(zip(names, Xs, strict=True)), SequenceBatch.hstack)


def _stacked(parts, stack):
    """Batch of the outputs of transformers, by their names; ``stack(batches)`` stacks columns."""
    stacked = stack([_as_batch(X, name) for name, X in parts.items()])
    stacked.feature_names = None
    return stacked


def _as_batch(X, name):
    """Convert the output of a transformer to a batch."""
    if isinstance(X, SequenceBatch):
        return X
    format, batch = read_format(X)
    if format not in (Format.BATCH, Format.GRID):
        raise ValueError(
            f"Transformer {name!r} returned {type(X).__name__}; expected a SequenceBatch or a list "
            "of matrices, one for each sequence."
        )
    return batch
