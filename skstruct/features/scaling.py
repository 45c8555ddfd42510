"""`VectorScaler`, and the rule by which vectors are scaled."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skstruct.blocks.rows import Placed
from skstruct.input.formats import Format, read_format
from skstruct.input.scale import check_blocks
from skstruct.sequences import ReturnsBatches, SequenceBatch
from skstruct.utils.declared import Array, Count
from skstruct.utils.persistence import Persistent, set_module

# Mean squared length of vectors after scaling: of five from 0.5 to 8, the one with the best mean
# score of a static table of 256 numbers at three places, beside words, learnt from a twentieth of
# CoNLL-2000, English-EWT and JNLPBA, on other training sentences (`benchmarks/vectors`). On
# each, the score is within .2 points of the best.
SQUARED_LENGTH = 2.0


# Scales beyond these, and their inverse, are no scales of vectors.
_LARGEST_SCALE = 1e30


def scale_of(block):
    """Factor that gives the vectors of a block a mean squared length of `SQUARED_LENGTH`.

    1 for zeros. Raises a ValueError for vectors that are too large or too small.
    """
    if not block.values().any():
        return 1.0
    with np.errstate(over="ignore", divide="ignore"):
        mean = np.float64(block.sum_of_squares() / block.n_vectors)
        scale = float(np.sqrt(SQUARED_LENGTH / mean))
    if not 1 / _LARGEST_SCALE <= scale <= _LARGEST_SCALE:
        raise ValueError(
            f"The mean squared length of the vectors is {mean:g}. Multiply them by a number that "
            "brings it near 1."
        )
    return scale


# No wrapping of outputs: a batch cannot become a data frame.
@set_module("skstruct")
class VectorScaler(
    ReturnsBatches,
    Persistent,
    OneToOneFeatureMixin,
    TransformerMixin,
    BaseEstimator,
    auto_wrap_output_keys=None,
):
    r"""Scale vectors so that taggers learn from them with their usual penalty.

    The larger the values of features, the weaker the penalty on their weights, and vectors come in
    all scales. This multiplies the numbers of each block by one number,

    .. math:: s = \sqrt{2 / m},

    where :math:`m` is the mean squared length of the vectors of the training tokens that are not
    zero. The directions and the relative lengths of vectors stay as they are, and so do sparse
    columns.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    scale_ : ndarray of shape (n_blocks,)
        Factor of each block of vectors.
    starts_ : ndarray of shape (n_blocks,)
        First column of each block.

    See Also
    --------
    EmbeddingVectorizer : Its `scale` is the same rule for vectors of words.
    SequenceUnion : Stack vectors and other features.

    Examples
    --------
    >>> import numpy as np
    >>> from skstruct import VectorScaler
    >>> states = [np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[2.0, 2.0]])]
    >>> scaler = VectorScaler().fit(states)
    >>> scaler.scale_.round(3)
    array([0.577])
    >>> scaler.transform(states).X.round(2)
    array([[1.73, 0.  ],
           [0.  , 0.58],
           [1.15, 1.15]])
    """

    _parameter_constraints: ClassVar[dict] = {}
    _stored: ClassVar[dict] = {
        "n_features_in_": Count(1),
        "scale_": Array(np.float64, (None,)),
        "starts_": Array(np.int64, ("scale_",)),
    }
    _complete = tuple(_stored)

    def fit(self, X, y=None) -> Self:
        """Find the scale of vectors.

        Parameters
        ----------
        X : SequenceBatch, list of matrices or 3-D array
            Sequences of vectors.
        y : None
            Ignored.

        Returns
        -------
        self : VectorScaler

        Raises
        ------
        ValueError
            If X has no vectors, or some that are not finite.
        """
        batch = _as_batch(X)
        scale = np.array([scale_of(block) for _, block in batch.blocks])
        self.n_features_in_, self.scale_, self.starts_ = batch.n_features, scale, _starts(batch)
        return self

    def transform(self, X) -> SequenceBatch:
        """Multiply the vectors by their scale.

        Parameters
        ----------
        X : SequenceBatch, list of matrices or 3-D array
            As in `fit`.

        Returns
        -------
        batch : SequenceBatch
            The same, with other factors of its blocks; numbers are not copied.

        Raises
        ------
        ValueError
            If X has other columns than in `fit`, or other blocks.
        """
        check_is_fitted(self)
        batch = _as_batch(X)
        sparse, placed, _ = batch._columns()
        if batch.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {batch.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if not np.array_equal(_starts(batch), self.starts_):
            raise ValueError(
                f"X has vectors from the columns {_starts(batch).tolist()} on, but in fit from "
                f"{self.starts_.tolist()}."
            )
        scaled = tuple(
            Placed(start, block.times(scale))
            for (start, block), scale in zip(placed, self.scale_.tolist(), strict=True)
        )
        return batch._like_blocks(sparse, scaled, batch.offsets, batch.transition_X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Rows are tokens of sequences.
        tags.input_tags.two_d_array = False
        return tags


def _starts(batch):
    """First column of each block."""
    return np.array([start for start, _ in batch.blocks], np.int64)


def _as_batch(X):
    format, batch = read_format(X)
    if format not in (Format.BATCH, Format.GRID) or not batch.blocks:
        raise ValueError(
            "X has no vectors: expected a batch with blocks, or dense matrices, one for each "
            "sequence."
        )
    check_blocks(batch.blocks, batch.offsets, batch.n_features, batch.feature_names)
    return batch
