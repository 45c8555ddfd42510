"""`SequenceVectorizer`: feature dicts and attribute strings to a sequence batch."""

from __future__ import annotations

from functools import cached_property
from itertools import count, pairwise, repeat
from numbers import Integral
from operator import countOf
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval

from skstruct.features.base import (
    FEWEST_TOKENS,
    LearningVectorizer,
    warn_of_unseen_attributes,
)
from skstruct.features.tokens import (
    NO_COLUMN,
    KnownCodes,
    Stream,
    canonical,
    keep_frequent,
    renumber,
)
from skstruct.sequences import SequenceBatch
from skstruct.utils.declared import Counts, Strings
from skstruct.utils.messages import check_float_dtype
from skstruct.utils.persistence import require_fitted, set_module
from skstruct.utils.transaction import draft_of

# More sequences gain nothing by being read as a few.
FEW = 64
# Values of features that are remembered for the next call, or as many as there are columns if these
# are more.
_MOST_VALUES = 1 << 16


def _sort(codes, names, numbers):
    """Replace the numbers of `NewCodes` by columns sorted by name; return the sorted names."""
    distinct = sorted(set(names))
    _set_columns(codes, dict(zip(distinct, count())), names, numbers)
    return distinct


def _set_columns(codes, vocabulary, names, numbers):
    """Replace the numbers of `NewCodes` by columns; new names have none."""
    columns = np.empty(len(names), codes.dtype)
    columns[numbers] = np.fromiter(
        map(vocabulary.get, names, repeat(NO_COLUMN)), codes.dtype, len(names)
    )
    renumber(codes, columns)


def as_dicts(batch, n_features, names_of):
    """Features and values of each token of a batch.

    Parameters
    ----------
    batch : SequenceBatch
    n_features : int
        Number of columns that it must have.
    names_of : callable
        Function from an array of columns to their names.

    Returns
    -------
    X : list of lists of dicts
        For each token of each sequence, the features that are stored and their values.
    """
    if not isinstance(batch, SequenceBatch) or batch.n_features != n_features:
        raise ValueError(f"Expected a SequenceBatch of {n_features} features, got {batch!r}.")
    batch = batch._checked()
    X = sp.csr_matrix(batch.X)
    names, values, ends = names_of(X.indices), X.data.tolist(), X.indptr.tolist()
    tokens = [dict(zip(names[a:b], values[a:b], strict=True)) for a, b in pairwise(ends)]
    return [tokens[a:b] for a, b in pairwise(batch.offsets.tolist())]


@set_module("skstruct")
class SequenceVectorizer(LearningVectorizer, auto_wrap_output_keys=None):
    """Turn sequences of feature dicts or attribute strings into a sequence batch.

    Accepts the same input as sklearn-crfsuite, and names attributes like python-crfsuite, so that
    models are comparable:

    ====================================  =========================================
    In a token                            Attribute and value
    ====================================  =========================================
    ``{"word": "the"}``                   ``word:the`` 1.0
    ``{"title": True, "digit": False}``   ``title`` 1.0, ``digit`` 0.0
    ``{"length": 3}``                     ``length`` 3.0
    ``{"shape": ["Xx", "X"]}``            ``shape:Xx`` 1.0, ``shape:X`` 1.0
    ``{"next": {"word": "cat"}}``         ``next:word:cat`` 1.0
    ``{"vector": np.array([0.5, 2])}``    ``vector:0`` 0.5, ``vector:1`` 2.0
    ``["word=the", "title"]``             ``word=the`` 1.0, ``title`` 1.0
    ====================================  =========================================

    Arrays of 32 numbers or more that most training tokens have become blocks of vectors. Columns
    are sorted by name, and so do not depend on the order of the data. Sequences are read one at a
    time and not kept: vectorising a generator takes memory proportional to the result.

    Parameters
    ----------
    min_freq : int, default=1
        Minimum number of training tokens with an attribute, whatever its value, for it to get a
        column.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the values.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        Column of each attribute, in the order of the columns.
    feature_names_ : ndarray of shape (n_features,), dtype object
        Attribute of each column.

    See Also
    --------
    SequenceBatch : The output.
    sklearn.feature_extraction.DictVectorizer : The counterpart for single samples.

    Notes
    -----
    If a token repeats an attribute, its values are summed. CRFsuite does the same in training,
    although python-crfsuite's ``ItemSequence.items``, a dict, shows only one of them. Zeros, such
    as features that are False, are stored, and the batch keeps them: a CRF has weights for the
    features and labels that occur together, even with the value zero. So has CRFsuite. In other
    matrices a zero that is stored is like one that is not.

    Unlike python-crfsuite, the vectoriser raises an error for NaN, infinities and tokens that are a
    bare string, which python-crfsuite splits into characters. It accepts any mapping as a dict and
    a tuple as a list, and does not cut names at a NUL character. Names and values that are bytes
    are read as UTF-8.

    CRFsuite's ``feature.minfreq`` counts an attribute together with a label; `min_freq`
    counts attributes alone.

    Examples
    --------
    >>> from skstruct import SequenceVectorizer
    >>> X = [[{"word": "the", "title": True}, {"word": "cat", "length": 3}], [["word:the"]]]
    >>> vectorizer = SequenceVectorizer()
    >>> batch = vectorizer.fit_transform(X)
    >>> batch
    SequenceBatch(n_sequences=2, n_rows=3, n_features=4)
    >>> vectorizer.get_feature_names_out()
    array(['length', 'title', 'word:cat', 'word:the'], dtype=object)
    >>> batch.X.toarray()
    array([[0., 1., 0., 1.],
           [3., 0., 1., 0.],
           [0., 0., 0., 1.]])
    >>> vectorizer.inverse_transform(batch[1:])
    [[{'word:the': 1.0}]]
    """

    _parameter_constraints: ClassVar[dict] = {
        "min_freq": [Interval(Integral, 1, None, closed="left")],
        "dtype": "no_validation",
    }

    def __init__(self, *, min_freq=1, dtype=np.float64) -> None:
        self.min_freq = min_freq
        self.dtype = dtype

    def _fit(self, X, *, is_part=False):
        """Learn the attributes.

        A part of the data keeps all of them, however rare, and may have no token or attribute.
        """
        min_freq = 1 if is_part else self.min_freq
        stream = Stream(self.dtype).read(X)
        data, columns, indptr = stream.to_rows()
        n, names = int(indptr[-1]), _sort(columns, *stream.codes.take_names())
        columns, of_wide = stream.split(columns, n)
        if len(indptr) == 1 and not is_part:
            raise ValueError("Found no token: every sequence is empty.")
        matrix = canonical(data, columns, indptr, len(names), stream.dtype)
        del data, columns, indptr
        frequency = np.zeros(len(names), np.int64)
        for name, found in zip(stream.wide, of_wide, strict=True):
            frequency[found] += stream.arrays.count(name)
        matrix, occurs = keep_frequent(matrix, min_freq, frequency)
        kept = np.where(occurs, np.cumsum(occurs) - 1, NO_COLUMN)
        if not occurs.any() and not is_part:
            raise ValueError(
                f"No attribute occurs in at least {min_freq} token(s): lower min_freq, or "
                "pass tokens with attributes."
            )
        self._learn(np.array(names, dtype=object)[occurs], stream.arrays.lengths, stream.wide)
        return stream.to_batch(matrix, self.feature_names_, [kept[found] for found in of_wide])

    def _learn(self, names, array_lengths, wide):
        """Set the attributes, sorted, the lengths of arrays, and which arrays become blocks."""
        with draft_of(self) as draft:
            draft._array_lengths, draft._wide = array_lengths, wide
            vars(draft).pop("vocabulary_", None)
            draft.feature_names_ = np.array(names, dtype=object)

    # Made at the first use, as learning does not need it.
    @cached_property
    def vocabulary_(self):
        """Column of each attribute."""
        names = self.feature_names_.tolist()
        return dict(zip(names, range(len(names)), strict=True))

    def transform(self, X) -> SequenceBatch:
        """Vectorise; attributes that were not learnt are ignored.

        Parameters
        ----------
        X : iterable of iterables of tokens
            Sequences. A token is a dict of features or a list, tuple or set of strings.

        Returns
        -------
        batch : SequenceBatch
            Sparse, ``feature_names`` set; one row for each token.

        Raises
        ------
        ValueError
            If there is no sequence, or a token or value is invalid.

        Warns
        -----
        UserWarning
            If there are twenty tokens or more, and nearly no feature was seen in training.
        """
        few = self._transform_few(X)
        if few is not None:
            return few
        require_fitted(self)
        # A copy, because reading adds the lengths of arrays that were not in the training data.
        stream = Stream(self.dtype, dict(self._array_lengths), self._wide).read(X)
        data, columns, indptr = stream.to_rows()
        vocabulary = self.vocabulary_
        n = int(indptr[-1])
        _set_columns(columns, vocabulary, *stream.codes.take_names())
        columns, of_wide = stream.split(columns, n)
        matrix = canonical(data, columns, indptr, len(vocabulary), stream.dtype)
        warn_of_unseen_attributes(matrix, int(np.sum(stream.token_lengths)))
        return stream.to_batch(matrix, self.feature_names_, of_wide)

    def _transform_few(self, X):
        """Batch of a few sequences, whose matrix is made on demand; None where it has to be now."""
        # Looked up once, so that columns and names are of one fit, whatever another thread does.
        names = vars(self).get("feature_names_")
        if names is None or self._wide:
            return None
        if type(X) is not list or not 0 < len(X) <= FEW or countOf(map(type, X), list) < len(X):
            return None
        codes, dtype = self.known_codes(), check_float_dtype(self.dtype)
        tokens = codes.read_few(X, dtype, float(np.finfo(dtype).max), FEWEST_TOKENS)
        if tokens is None or len(codes.vocabulary) != len(names):
            return None
        return self.batch_of(tokens, names)

    def batch_of(self, tokens, names=None):
        """Batch of tokens that have been read, `LooseRows`; its matrix is made on demand."""
        names = self.feature_names_ if names is None else names
        return SequenceBatch._of_tokens(tokens, len(names), check_float_dtype(self.dtype), names)

    def known_codes(self):
        """Columns of the attributes, and of keys and values that were seen since the fit."""
        vocabulary, codes = self.vocabulary_, vars(self).get("_last_codes")
        if codes is None or codes.vocabulary is not vocabulary:
            codes = self._last_codes = KnownCodes(vocabulary, max(_MOST_VALUES, len(vocabulary)))
        return codes

    def restrict(self, support, indices=False):
        """Keep only some of the attributes, in place and in their order.

        Parameters
        ----------
        support : array-like of shape (n_attributes,) or (n_kept,)
            Mask of the attributes to keep; their column numbers if `indices`.
        indices : bool, default=False
            What `support` holds.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, IndexError
            If the mask has another length, or a column does not exist.

        Examples
        --------
        >>> from skstruct import SequenceVectorizer
        >>> vectorizer = SequenceVectorizer().fit([[{"word": "the"}, {"word": "cat"}]])
        >>> vectorizer.restrict([True, False]).get_feature_names_out()
        array(['word:cat'], dtype=object)
        """
        require_fitted(self)
        if not indices and np.shape(support) != self.feature_names_.shape:
            raise ValueError(
                f"support has the shape {np.shape(support)}, but there are "
                f"{len(self.feature_names_)} attributes."
            )
        kept = np.unique(support) if indices else np.flatnonzero(support)
        self._learn(self.feature_names_[kept], self._array_lengths, self._wide)
        return self

    def inverse_transform(self, batch):
        """Attributes and values of each token.

        Parameters
        ----------
        batch : SequenceBatch
            With the columns of this vectoriser.

        Returns
        -------
        X : list of lists of dicts
            For each token of each sequence, the stored attributes and their values. Vectorising
            them gives the same batch.

        Raises
        ------
        ValueError
            If `batch` is not a `SequenceBatch` or has a different number of columns.
        """
        require_fitted(self)
        names = self.feature_names_
        return as_dicts(batch, len(names), names.__getitem__)

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Attribute of each column.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of shape (n_features,), dtype object
        """
        require_fitted(self)
        return self.feature_names_.copy()

    # Lengths of array-valued features, and those that become blocks. Models stored by the first
    # versions do not have them.
    _array_lengths: ClassVar[dict] = {}
    _wide: ClassVar[list] = []
    _stored = {
        "feature_names_": Strings(np.ndarray, distinct=True),
        "_array_lengths": Counts(),
        "_wide": Strings(distinct=True),
    }
    # Made of the names.
    _derived_state = ("vocabulary_", "_last_codes")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.dict = True
        tags.input_tags.two_d_array = False
        return tags
