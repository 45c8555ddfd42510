"""`EmbeddingVectorizer`: word vectors as features."""

from __future__ import annotations

from functools import lru_cache
from itertools import count, repeat
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skstruct.blocks.looked_up import LookedUpBlock
from skstruct.blocks.rows import Placed
from skstruct.compiled.jit import lean_jit
from skstruct.features.base import LearningVectorizer, keep_names_in, names_in
from skstruct.features.columns import normalized, read_words
from skstruct.features.scaling import scale_of
from skstruct.matrices import read_only
from skstruct.sequences import SequenceBatch
from skstruct.utils.declared import Array, Choice, Count, Maybe, Number
from skstruct.utils.messages import check_float_dtype, short_repr
from skstruct.utils.persistence import require_fitted, set_module

_FARTHEST = 1000
# No vectors are longer, and a damaged file could ask for names of any number of columns.
_MOST_DIMENSIONS = 1 << 20


@set_module("skstruct")
class EmbeddingVectorizer(LearningVectorizer, auto_wrap_output_keys=None):
    r"""Turn sequences of tokens into a batch of their word vectors.

    A token is a string, a tuple or list of columns, or a dict. Each distinct word is looked up
    once. A vector that is not finite, or differs in length from the others, raises an error that
    names the word.

    Parameters
    ----------
    vectors : mapping
        The vector of each word: a dict, such as `skstruct.datasets.read_vectors` returns, or
        anything else with ``word in vectors`` and ``vectors[word]``, such as gensim's
        ``KeyedVectors``. Of spaCy, ``nlp.vocab.vectors``, also in the mode "floret". It is never
        changed, and clones of the estimator share it.
    column : int or str, default=0
        Position of the word in a token: the column of a tuple or list, counted from 0, or the key
        of a dict. A token that is a string has one column, the word, and no keys.
    normalize : callable, default=None
        Function applied to a word before it is looked up, such as ``str.lower``.
    offsets : sequence of int, default=(0,)
        Positions, relative to the token, of the words whose vectors it gets: ``(-1, 0, 1)``
        includes both neighbours. Positions outside of the sequence get zeros.
    unknown : {"zeros", "mean"} or callable, default="zeros"
        Vector of words that have none: zeros, the mean of the distinct words of the training X that
        have one, or what a function returns for the word. Neither depends on what else is
        transformed.
    scale : {"auto"} or float, default="auto"
        Factor of all values. The larger it is, the weaker the penalty of a tagger on their weights.
        "auto" is :math:`\sqrt{2 / m}`, where :math:`m` is the mean squared length of the vectors of
        the training tokens, as of `VectorScaler`; each offset has a vector of its own.
    dtype : {np.float64, np.float32}, default=None
        Type of the values. By default, as the vectors of the training words have it, or float64 if
        they are no floats.

    Attributes
    ----------
    n_dimensions_ : int
        Length of the vectors.
    dtype_ : str
        Type of the values.
    scale_ : float
        Factor of all values.
    unknown_vector_ : ndarray of shape (n_dimensions,)
        Vector of unknown words with ``unknown="mean"``, before it is scaled; else None.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, if sequences are data frames and `column` is a number.

    See Also
    --------
    SequenceUnion : Combine them with other features.
    SequenceVectorizer : Accept vectors as values in feature dicts.

    Examples
    --------
    >>> from skstruct import EmbeddingVectorizer
    >>> vectors = {"the": [0.1, 0.9], "cat": [0.8, 0.1]}
    >>> vectorizer = EmbeddingVectorizer(vectors, normalize=str.lower, scale=1)
    >>> batch = vectorizer.fit_transform([["The", "cat"], ["axolotl"]])
    >>> batch.blocks
    (Placed(start=0, block=LookedUpBlock(3 x 2, 2 vectors)),)
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
        "unknown": [StrOptions({"zeros", "mean"}), callable],
        "scale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "dtype": "no_validation",
    }

    _stored: ClassVar[dict] = {
        "n_dimensions_": Count(1, _MOST_DIMENSIONS),
        "dtype_": Choice("float32", "float64"),
        "scale_": Number(),
        "unknown_vector_": Maybe(Array(np.float64, ("n_dimensions_",))),
    }
    _complete = ("n_dimensions_", "dtype_", "scale_", "unknown_vector_")

    def __init__(
        self,
        vectors,
        *,
        column=0,
        normalize=None,
        offsets=(0,),
        unknown="zeros",
        scale="auto",
        dtype=None,
    ) -> None:
        self.vectors = vectors
        self.column = column
        self.normalize = normalize
        self.offsets = offsets
        self.unknown = unknown
        self.scale = scale
        self.dtype = dtype

    def _fit(self, X):
        """Learn length and scale of the vectors, and one for unknown words; return the batch."""
        block, bounds, names, mean = self._vectorize(X, None)
        keep_names_in(self, names)
        self.unknown_vector_ = mean
        self.n_dimensions_, self.dtype_ = block.table.shape[1], block.dtype.name
        self.scale_ = scale_of(block) if self.scale == "auto" else float(self.scale)
        return self._to_batch(block, bounds)

    def transform(self, X) -> SequenceBatch:
        """Look up the vectors.

        Parameters
        ----------
        X : iterable of sequences of tokens
            A token is a string, a tuple or list of columns, or a dict.

        Returns
        -------
        batch : SequenceBatch
            One row for each token. Each distinct vector is kept once, and `X` is made when it is
            asked for.

        Raises
        ------
        ValueError
            If a vector is not finite or differs in length from those in `fit`, `normalize` fails,
            or a token is invalid.
        """
        require_fitted(self)
        if self.unknown == "mean" and self.unknown_vector_ is None:
            raise ValueError("unknown='mean' was set after the fit: fit again.")
        block, bounds, *_ = self._vectorize(X, self.n_dimensions_, names_in(self))
        return self._to_batch(block, bounds)

    def _to_batch(self, block, bounds):
        block.factor = self.scale_
        names = _names_of(tuple(self.offsets), self.n_dimensions_)
        return SequenceBatch._of_blocks(None, (Placed(0, block),), bounds, names)

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
        require_fitted(self)
        return _names_of(self._checked_offsets(), self.n_dimensions_).copy()

    def _vectorize(self, X, n_dimensions, names=None):
        """Block of the vectors of all tokens, offsets, names of columns of frames, and the mean."""
        offsets, dtype = self._checked_offsets(), self.dtype
        if dtype is not None:
            dtype = check_float_dtype(dtype)
        elif n_dimensions is not None:
            dtype = np.dtype(self.dtype_)
        words, codes, bounds, names = read_words(X, self.column, names)
        table, number_of, mean = self._look_up(words, n_dimensions, dtype)
        numbers = np.empty((len(codes), len(offsets)), np.int32)
        look_around(number_of, codes, bounds, np.array(offsets, np.int64), numbers)
        return LookedUpBlock(table, numbers), bounds, names, mean

    def _look_up(self, words, n_dimensions, dtype):
        """Table of the vectors of words, the number of each word's row, -1 for zeros, and the mean.

        The mean, that of unknown words, is that of the first table.
        """
        if isinstance(self.vectors, (str, list, tuple, np.ndarray)):
            raise ValueError(
                f"vectors must be a mapping, got {short_repr(self.vectors)}. Files are read by "
                "skstruct.datasets.read_vectors."
            )
        mapping, is_fitted = _by_words(self.vectors), n_dimensions is not None
        words = normalized(words, self.normalize, as_strings=False)
        found = {}
        for word in words:
            if word not in found:
                # A mapping need not have `get`.
                vector = mapping[word] if word in mapping else self._vector_of_unknown(word)
                if vector is not None:
                    found[word] = as_vector(word, vector)
        if n_dimensions is None and not found:
            raise ValueError(
                "No word of X has a vector: check the parameters vectors, column and normalize."
            )
        table = table_of(found, n_dimensions, dtype)
        numbers = map(dict(zip(found, count())).get, words, repeat(-1))
        number_of = np.fromiter(numbers, np.int32, len(words))
        mean = vars(self).get("unknown_vector_") if is_fitted else None
        if self.unknown == "mean":
            mean = table.mean(axis=0, dtype=np.float64) if mean is None else mean
            number_of[number_of < 0] = len(table)
            table = np.concatenate([table, mean[None].astype(table.dtype)])
        return table, number_of, mean

    def _vector_of_unknown(self, word):
        """What a function says about a word without a vector; None without one."""
        if not callable(self.unknown):
            return None
        try:
            return self.unknown(word)
        except Exception as error:
            raise ValueError(
                f"unknown raised {type(error).__name__}: {error}, for the word {word!r}."
            ) from error

    def _checked_offsets(self):
        offsets = tuple(self.offsets)
        if not offsets or not all(
            isinstance(offset, Integral) and abs(offset) <= _FARTHEST for offset in offsets
        ):
            raise ValueError(
                f"offsets must be one or more integers from -{_FARTHEST} to {_FARTHEST}, got "
                f"{short_repr(self.offsets)}."
            )
        return offsets

    def __sklearn_clone__(self):
        # Clones share the vectors, which may take gigabytes and are never changed.
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


# Hundreds of names would take most of the time of a sentence.
@lru_cache(maxsize=16)
def _names_of(offsets, n_dimensions):
    """Names of the columns, read-only."""
    names = [
        f"vector[{offset}]:{place}" if offset else f"vector:{place}"
        for offset in offsets
        for place in range(n_dimensions)
    ]
    return read_only(np.array(names, dtype=object))


@lean_jit
def look_around(numbers, codes, bounds, offsets, out):
    """Write for each token the numbers of the words at some offsets in its sequence.

    Parameters
    ----------
    numbers : ndarray of shape (n_words,)
    codes : ndarray of shape (n_rows,)
        The word of each token.
    bounds : ndarray of shape (n_sequences + 1,)
        Token at which each sequence starts.
    offsets : ndarray of shape (n_places,)
    out : ndarray of shape (n_rows, n_places)
        Written; -1 beyond the ends of the sequence.
    """
    for i in range(bounds.shape[0] - 1):
        for t in range(bounds[i], bounds[i + 1]):
            for place in range(offsets.shape[0]):
                at = t + offsets[place]
                is_inside = bounds[i] <= at and at < bounds[i + 1]
                out[t, place] = numbers[codes[at]] if is_inside else -1


class _OfHashes:
    """spaCy's vectors by words: their keys are hashes, of which ``strings`` has the words."""

    def __init__(self, vectors):
        self._vectors, self._key_of = vectors, vectors.strings.__getitem__

    def __contains__(self, word):
        return isinstance(word, str) and self._key_of(word) in self._vectors

    def __getitem__(self, word):
        return self._vectors[self._key_of(word)]


def _by_words(vectors):
    """Mapping of vectors whose keys are words."""
    if hasattr(vectors, "vectors") and hasattr(vectors, "strings"):
        raise ValueError("vectors is a vocabulary of spaCy: pass nlp.vocab.vectors.")
    # With mode "floret", spaCy's vectors take words, and have a vector for each.
    is_spacys = getattr(vectors, "mode", None) == "default" and hasattr(vectors, "strings")
    return _OfHashes(vectors) if is_spacys else vectors


def as_vector(word, vector):
    """Array of the vector of a word; a ValueError that names the word where there is none."""
    try:
        return np.asarray(vector)
    except (TypeError, ValueError, RuntimeError) as error:
        # Lists of several lengths; tensors with a gradient, or of types that NumPy lacks.
        raise ValueError(f"The vector of {word!r} is no array of numbers ({error}).") from error


def table_of(found, n_dimensions, dtype):
    """Table of the vectors of words; a ValueError that names the word of a wrong one."""
    vectors = list(found.values())
    if n_dimensions is None:
        n_dimensions = vectors[0].size
    types = {vector.dtype for vector in vectors}
    fits = {vector.shape for vector in vectors} <= {(n_dimensions,)} and n_dimensions > 0
    if not fits or not {kind.kind for kind in types} <= set("biuf"):
        _refuse_shapes(found, n_dimensions)
    if dtype is None:
        dtype = np.float32 if types <= {np.dtype(np.float32), np.dtype(np.float16)} else float
    if not vectors:
        return np.empty((0, n_dimensions), dtype)
    with np.errstate(over="ignore"):
        table = np.concatenate(vectors, dtype=dtype, casting="unsafe").reshape(len(vectors), -1)
    is_finite = np.isfinite(table)
    if not is_finite.all():
        word = list(found)[np.argmin(is_finite.all(axis=1))]
        raise ValueError(f"The vector of {word!r} has NaN or infinite values as {table.dtype}.")
    return table


def _refuse_shapes(found, n_dimensions):
    """Raise a ValueError for the first vector that is none, or differs in length from others."""
    for word, vector in found.items():
        if vector.ndim != 1 or vector.size == 0 or vector.dtype.kind not in "biuf":
            raise ValueError(f"The vector of {word!r} is not a 1-D array of numbers.")
        if len(vector) != n_dimensions:
            raise ValueError(
                f"The vector of {word!r} has {len(vector)} numbers, but others have {n_dimensions}."
            )
