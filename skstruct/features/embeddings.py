"""`EmbeddingVectorizer`: word vectors as features."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from skstruct.features.base import LearningVectorizer, keep_names_in, names_in
from skstruct.features.columns import normalized, read_words
from skstruct.sequences import SequenceBatch
from skstruct.utils.declared import Count
from skstruct.utils.messages import check_float_dtype, short_repr
from skstruct.utils.persistence import set_module

_FARTHEST = 1000


@set_module("skstruct")
class EmbeddingVectorizer(LearningVectorizer, auto_wrap_output_keys=None):
    """Turn sequences of tokens into a batch of their word vectors.

    A token is a string, a tuple or list of columns, or a dict. Each distinct word is looked up
    once. Words without a vector get zeros. A vector that is not finite, or differs in length from
    the others, raises an error that names the word.

    Parameters
    ----------
    vectors : mapping
        The vector of each word: a dict, or anything else with ``word in vectors`` and
        ``vectors[word]``, such as gensim's ``KeyedVectors``. It is never changed, and clones of
        the estimator share it.
    column : int or str, default=0
        Position of the word in a token: the column of a tuple or list, counted from 0, or the key
        of a dict. A token that is a string has one column, the word, and no keys.
    normalize : callable, default=None
        Function applied to a word before it is looked up, such as ``str.lower``.
    offsets : sequence of int, default=(0,)
        Positions, relative to the token, of the words whose vectors it gets: ``(-1, 0, 1)``
        includes both neighbours. Positions outside of the sequence get zeros.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the values.

    Attributes
    ----------
    n_dimensions_ : int
        Length of the vectors.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, if sequences are data frames.

    See Also
    --------
    SequenceUnion : Combine them with other features.
    SequenceVectorizer : Accept vectors as values in feature dicts.

    Examples
    --------
    >>> from skstruct import EmbeddingVectorizer
    >>> vectors = {"the": [0.1, 0.9], "cat": [0.8, 0.1]}
    >>> vectorizer = EmbeddingVectorizer(vectors, normalize=str.lower)
    >>> batch = vectorizer.fit_transform([["The", "cat"], ["axolotl"]])
    >>> batch
    SequenceBatch(n_sequences=2, n_rows=3, n_features=2)
    >>> batch.X
    array([[0.1, 0.9],
           [0.8, 0.1],
           [0. , 0. ]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "vectors": [HasMethods(["__contains__", "__getitem__"])],
        "column": [Integral, str],
        "normalize": [callable, None],
        "offsets": ["array-like"],
        "dtype": "no_validation",
    }

    _stored: ClassVar[dict] = {"n_dimensions_": Count(1)}

    def __init__(
        self, vectors, *, column=0, normalize=None, offsets=(0,), dtype=np.float64
    ) -> None:
        self.vectors = vectors
        self.column = column
        self.normalize = normalize
        self.offsets = offsets
        self.dtype = dtype

    def _fit(self, X):
        """Learn the length of the vectors; return the batch."""
        rows, bounds, names = self._vectorize(X, None)
        keep_names_in(self, names)
        self.n_dimensions_ = rows.shape[1] // len(self._checked_offsets())
        return SequenceBatch(rows, bounds, feature_names=self.get_feature_names_out())

    def transform(self, X) -> SequenceBatch:
        """Look up the vectors.

        Parameters
        ----------
        X : iterable of sequences of tokens
            A token is a string, a tuple or list of columns, or a dict.

        Returns
        -------
        batch : SequenceBatch
            Dense, one row for each token.

        Raises
        ------
        ValueError
            If a vector is not finite or differs in length from those in `fit`, `normalize` fails,
            or a token is invalid.
        """
        check_is_fitted(self)
        rows, bounds, _ = self._vectorize(X, self.n_dimensions_, names_in(self))
        return SequenceBatch(rows, bounds, feature_names=self.get_feature_names_out())

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Name of each column: ``vector:0``, ...; of neighbours ``vector[-1]:0``, ...

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of shape (n_features,), dtype object
        """
        check_is_fitted(self)
        names = [
            f"vector[{offset}]:{place}" if offset else f"vector:{place}"
            for offset in self._checked_offsets()
            for place in range(self.n_dimensions_)
        ]
        return np.array(names, dtype=object)

    def _vectorize(self, X, n_dimensions, names=None):
        """Matrix of the vectors of all tokens, offsets, and names of columns of data frames."""
        offsets, dtype = self._checked_offsets(), check_float_dtype(self.dtype)
        words, codes, bounds, names = read_words(X, self.column, names)
        table = self._look_up(words, n_dimensions, dtype)
        n_dimensions = table.shape[1]
        vectors = np.zeros((len(codes), len(offsets) * n_dimensions), dtype)
        rows, lengths = np.arange(len(codes)), np.diff(bounds)
        first, end = np.repeat(bounds[:-1], lengths), np.repeat(bounds[1:], lengths)
        for number, offset in enumerate(offsets):
            inside = (first <= rows + offset) & (rows + offset < end)
            columns = slice(number * n_dimensions, (number + 1) * n_dimensions)
            vectors[inside, columns] = table[codes[rows[inside] + offset]]
        return vectors, bounds, names

    def _look_up(self, words, n_dimensions, dtype):
        """Matrix of the vectors of words, with zeros for words without a vector."""
        if isinstance(self.vectors, (str, list, tuple, np.ndarray)):
            raise ValueError(f"vectors must be a mapping, got {short_repr(self.vectors)}.")
        words = normalized(words, self.normalize, as_strings=False)
        table = np.zeros((len(words), n_dimensions or 0), dtype)
        for number, word in enumerate(words):
            if word not in self.vectors:
                continue
            vector = np.asarray(self.vectors[word])
            if vector.ndim != 1 or vector.size == 0 or vector.dtype.kind not in "biuf":
                raise ValueError(f"The vector of {word!r} is not a 1-D array of numbers.")
            if table.shape[1] == 0:
                table = np.zeros((len(words), len(vector)), dtype)
            if len(vector) != table.shape[1]:
                raise ValueError(
                    f"The vector of {word!r} has {len(vector)} numbers, but others have "
                    f"{table.shape[1]}."
                )
            table[number] = vector
        for number in np.flatnonzero(~np.isfinite(table).all(axis=1))[:1]:
            raise ValueError(
                f"The vector of {words[number]!r} has NaN or infinite values as {dtype}."
            )
        if table.shape[1] == 0:
            raise ValueError(
                "No word of X has a vector: check the parameters vectors, column and normalize."
            )
        return table

    def _checked_offsets(self):
        offsets = list(self.offsets)
        if not offsets or not all(
            isinstance(offset, Integral) and abs(offset) <= _FARTHEST for offset in offsets
        ):
            raise ValueError(
                f"offsets must be one or more integers from -{_FARTHEST} to {_FARTHEST}, got "
                f"{short_repr(self.offsets)}."
            )
        return offsets

    def _check_state(self):
        if "n_dimensions_" in vars(self) and isinstance(self.vectors, Mapping):
            shape = (self.n_dimensions_,)
            if not any(np.shape(self.vectors[word]) == shape for word in self.vectors):
                raise ValueError(f"no vector has {self.n_dimensions_} numbers.")

    def __sklearn_clone__(self):
        # Clones share the vectors, which may take gigabytes and are never changed.
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
