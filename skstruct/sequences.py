"""`SequenceBatch`, the input of all kernels: stacked rows and sequence offsets."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp

from skstruct.frames import FrameConversions
from skstruct.utils.public_paths import set_module
from skstruct.utils.sparse import canonical, hstack, pack_matrix, read_only, unpack_matrix, vstack
from skstruct.utils.stored.arrays import check_matrix
from skstruct.utils.stored.packing import pack_strings, unpack_strings

__all__ = ["SequenceBatch"]


@set_module("skstruct")
class SequenceBatch(FrameConversions):
    """A batch of sequences: all rows stacked in one matrix, with the offsets of the sequences.

    Sequence ``i`` owns the rows ``offsets[i]:offsets[i + 1]`` of `X`; the offsets start at
    0, never decrease, and end at the number of rows. A row is a token (or, for a reranker, a
    candidate). The batch counts, indexes and splits by *sequence*, so every scikit-learn
    splitter works on it.

    Parameters
    ----------
    X : {ndarray, sparse matrix, sparse array} of shape (n_rows, n_features)
        Stacked rows. Sparse input becomes a CSR matrix, dense input a C-ordered array; dtypes
        other than float32 and float64 become float64. Sparse values that are all 1 share the
        memory of one number, and are read-only.
    offsets : array-like of shape (n_sequences + 1,)
        Row number at which each sequence starts, and the number of rows at the end.
    feature_names : array-like of shape (n_features,), default=None
        Names of the columns. Taggers keep them as ``feature_names_in_``.
    transition_X : {ndarray, sparse matrix} of shape (n_rows, n_transition_features), default=None
        Features of transitions: row ``t`` has those of the step from row ``t - 1`` to row ``t``.
        Taggers learn a weight for each of them and each pair of labels. Rows of first tokens are
        ignored.

    Attributes
    ----------
    X : {ndarray, csr_matrix} of shape (n_rows, n_features)
        Stacked rows.
    offsets : ndarray of shape (n_sequences + 1,), dtype int64
        Sequence boundaries.
    feature_names : ndarray of shape (n_features,) or None
        Names of the columns.
    transition_X : {ndarray, csr_matrix} of shape (n_rows, n_transition_features) or None
        Features of the transitions into the rows.

    Raises
    ------
    ValueError
        If `offsets` or `transition_X` do not match the rows of `X`, or `feature_names` do not
        match its columns.

    See Also
    --------
    SequenceVectorizer : Make batches from sequences of feature dicts or attribute strings.
    SequenceBatch.from_frame : Make a batch of a data frame with one token a row.

    Examples
    --------
    >>> import numpy as np
    >>> from skstruct import SequenceBatch
    >>> batch = SequenceBatch.from_lengths(np.eye(5), [2, 3])
    >>> batch
    SequenceBatch(n_sequences=2, n_rows=5, n_features=5)
    >>> batch[1]
    array([[0., 0., 1., 0., 0.],
           [0., 0., 0., 1., 0.],
           [0., 0., 0., 0., 1.]])
    >>> batch[[1, 0]].lengths
    array([3, 2])
    >>> SequenceBatch(batch.X, batch.offsets, transition_X=np.ones((5, 1)))
    SequenceBatch(n_sequences=2, n_rows=5, n_features=5, n_transition_features=1)
    """

    def __init__(self, X, offsets, *, feature_names=None, transition_X=None):
        self.X = canonical(X)
        self.offsets = _as_offsets(offsets, self.X.shape[0])
        self.feature_names = None
        if feature_names is not None:
            self.feature_names = np.asarray(feature_names, dtype=object)
            if self.feature_names.shape != (self.X.shape[1],):
                raise ValueError(
                    f"feature_names has shape {self.feature_names.shape}, "
                    f"but X has {self.X.shape[1]} columns."
                )
        self.transition_X = None
        if transition_X is not None:
            self.transition_X = canonical(transition_X, "transition_X")
            if self.transition_X.shape[0] != self.n_rows:
                raise ValueError(
                    f"transition_X has {self.transition_X.shape[0]} rows, but X has {self.n_rows}."
                )

    @classmethod
    def from_lengths(cls, X, lengths, *, feature_names=None, transition_X=None):
        """Make a batch of stacked rows and the length of each sequence.

        This is the convention of hmmlearn and seqlearn.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_features)
            Stacked rows.
        lengths : array-like of shape (n_sequences,)
            Rows in each sequence; their sum is ``n_rows``.
        feature_names : array-like of shape (n_features,), default=None
            Names of the columns.
        transition_X : {ndarray, sparse matrix} of shape (n_rows, n_transition_features), \
default=None
            Stacked features of the transitions into the rows.

        Returns
        -------
        batch : SequenceBatch
        """
        lengths = np.asarray(lengths)
        if lengths.ndim != 1 or not (lengths.size == 0 or np.issubdtype(lengths.dtype, np.integer)):
            raise ValueError("lengths must be a 1-D array of integers.")
        if lengths.size and lengths.min() < 0:
            raise ValueError(f"lengths[{int(np.argmin(lengths))}] is negative.")
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return cls(X, offsets, feature_names=feature_names, transition_X=transition_X)

    @classmethod
    def from_sequences(cls, sequences, *, feature_names=None):
        """Make a batch of a list of matrices, one for each sequence.

        Parameters
        ----------
        sequences : iterable of {array-like, sparse matrix} of shape (length_i, n_features)
            All dense or all sparse, with the same number of columns.
        feature_names : array-like of shape (n_features,), default=None
            Names of the columns.

        Returns
        -------
        batch : SequenceBatch

        Raises
        ------
        ValueError
            If there is no sequence, or if one is not two-dimensional or differs from the first in
            its number of columns; the message names it.
        """
        sequences = [s if sp.issparse(s) else np.asarray(s) for s in sequences]
        if not sequences:
            raise ValueError("Found an empty batch: at least one sequence is required.")
        for i, s in enumerate(sequences):
            if s.ndim != 2:
                raise ValueError(f"Sequence {i} has {s.ndim} dimension(s), expected 2.")
            if s.shape[1] != sequences[0].shape[1]:
                raise ValueError(
                    f"Sequence {i} has {s.shape[1]} features, "
                    f"but sequence 0 has {sequences[0].shape[1]}."
                )
        sparse = [sp.issparse(s) for s in sequences]
        if any(sparse) and not all(sparse):
            raise ValueError(
                f"Sequence {sparse.index(not sparse[0])} is {'dense' if sparse[0] else 'sparse'}, "
                f"but sequence 0 is not: a batch is all dense or all sparse."
            )
        stacked = sp.vstack(sequences, format="csr") if sparse[0] else np.concatenate(sequences)
        return cls.from_lengths(
            stacked, [s.shape[0] for s in sequences], feature_names=feature_names
        )

    @classmethod
    def concatenate(cls, batches):
        """Concatenate batches that have the same columns.

        Parameters
        ----------
        batches : iterable of SequenceBatch
            At least one.

        Returns
        -------
        batch : SequenceBatch

        Raises
        ------
        ValueError
            If there is no batch, or their columns differ in number or name, or some are sparse
            and others dense.
        """
        batches = list(batches)
        if not batches:
            raise ValueError("Nothing to concatenate: at least one batch is required.")
        names = batches[0].feature_names
        if not all(_same_names(b.feature_names, names) for b in batches):
            raise ValueError("Batches with different columns cannot be concatenated.")
        X, transition_X = vstack([b.X for b in batches]), None
        observed = [b.transition_X is not None for b in batches]
        if any(observed) and not all(observed):
            raise ValueError("Batches with and without transition_X cannot be concatenated.")
        if observed[0]:
            transition_X = vstack([b.transition_X for b in batches])
        lengths = np.concatenate([b.lengths for b in batches])
        return cls.from_lengths(X, lengths, feature_names=names, transition_X=transition_X)

    @classmethod
    def hstack(cls, batches):
        """Stack the columns of batches of the same sequences horizontally.

        Parameters
        ----------
        batches : iterable of SequenceBatch
            At least one; dense or sparse. Features of transitions are stacked, too.

        Returns
        -------
        batch : SequenceBatch
            Dense if all are, else sparse. With feature names if all have them.

        Raises
        ------
        ValueError
            If there is no batch, or they differ in the number or the lengths of their sequences.

        Examples
        --------
        >>> import numpy as np
        >>> from skstruct import SequenceBatch
        >>> words = SequenceBatch.from_lengths(np.eye(3), [2, 1], feature_names=["a", "b", "c"])
        >>> tags = SequenceBatch.from_lengths(np.ones((3, 1)), [2, 1], feature_names=["tag"])
        >>> SequenceBatch.hstack([words, tags]).feature_names
        array(['a', 'b', 'c', 'tag'], dtype=object)
        """
        batches = list(batches)
        if not batches:
            raise ValueError("Nothing to stack: at least one batch is required.")
        offsets = batches[0].offsets
        for number, batch in enumerate(batches):
            if len(batch) != len(batches[0]):
                raise ValueError(
                    f"Batch {number} has {len(batch)} sequences, but batch 0 has {len(batches[0])}."
                )
            if not np.array_equal(batch.offsets, offsets):
                i = int(np.flatnonzero(batch.lengths != batches[0].lengths)[0])
                raise ValueError(
                    f"Sequence {i} has {batch.lengths[i]} rows in batch {number}, but "
                    f"{batches[0].lengths[i]} in batch 0."
                )
        names = [batch.feature_names for batch in batches]
        observed = [batch.transition_X for batch in batches if batch.transition_X is not None]
        return cls(
            hstack([batch.X for batch in batches]),
            offsets,
            feature_names=None if any(n is None for n in names) else np.concatenate(names),
            transition_X=hstack(observed) if observed else None,
        )

    @property
    def lengths(self):
        """Rows in each sequence, ndarray of shape (n_sequences,)."""
        return np.diff(self.offsets)

    @property
    def n_rows(self):
        """Number of rows of all sequences together."""
        return self.X.shape[0]

    @property
    def n_features(self):
        """Number of columns."""
        return self.X.shape[1]

    @property
    def n_transition_features(self):
        """Number of columns of `transition_X`; 0 if it is None."""
        return 0 if self.transition_X is None else self.transition_X.shape[1]

    @property
    def shape(self):
        """``(n_sequences,)``, for scikit-learn's splitters."""
        return (len(self),)

    @property
    def dtype(self):
        """Dtype of the values."""
        return self.X.dtype

    def __len__(self):
        return self.offsets.shape[0] - 1

    def __iter__(self):
        return (self._rows(i) for i in range(len(self)))

    def __mul__(self, factor):
        """Multiply all values by a number."""
        if not isinstance(factor, Real):
            return NotImplemented
        return type(self)(
            self.X * factor,
            self.offsets,
            feature_names=self.feature_names,
            transition_X=None if self.transition_X is None else self.transition_X * factor,
        )

    def __getitem__(self, key):
        """Select sequences: an integer selects a matrix of rows, any other index a batch."""
        # scikit-learn indexes objects with a shape as X[key, ...].
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if isinstance(key, Integral) and not isinstance(key, (bool, np.bool_)):
            i = int(key)
            if not -len(self) <= i < len(self):
                raise IndexError(f"Sequence {i} is out of range for a batch of {len(self)}.")
            return self._rows(i % len(self))
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
        return self._take(np.arange(len(self))[key])

    def _rows(self, i):
        return self.X[self.offsets[i] : self.offsets[i + 1]]

    def _slice(self, start, stop):
        first, last = self.offsets[start], self.offsets[stop]
        return self._like(slice(first, last), self.offsets[start : stop + 1] - first)

    def _take(self, indices):
        if indices.ndim != 1:
            raise IndexError("A batch has one axis: use a 1-D index array or mask.")
        lengths = self.lengths[indices]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # Row numbers of the selected sequences, without a Python loop over them.
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[indices] - offsets[:-1], lengths)
        return self._like(rows, offsets)

    def _like(self, rows, offsets):
        return type(self)(
            self.X[rows],
            offsets,
            feature_names=self.feature_names,
            transition_X=None if self.transition_X is None else self.transition_X[rows],
        )

    def __getstate__(self):
        state = {
            "matrix": pack_matrix(self.X),
            "offsets": self.offsets,
            "feature_names": pack_strings(self.feature_names),
        }
        if self.transition_X is not None:
            state["transition_matrix"] = pack_matrix(self.transition_X)
        return state

    def __setstate__(self, state):
        try:
            self.__init__(
                check_matrix(unpack_matrix(state["matrix"])),
                state["offsets"],
                feature_names=unpack_strings(state["feature_names"]),
                transition_X=check_matrix(unpack_matrix(state.get("transition_matrix"))),
            )
        except Exception as error:
            raise ValueError(f"This stored SequenceBatch is damaged: {error}") from error

    def _repr_html_(self):
        # Imported where it is needed: only notebooks ask for it.
        from skstruct.utils.html import batch_html

        return batch_html(self)

    def __repr__(self):
        counts = f"n_sequences={len(self)}, n_rows={self.n_rows}, n_features={self.n_features}"
        if self.transition_X is not None:
            counts += f", n_transition_features={self.n_transition_features}"
        return f"{type(self).__name__}({counts})"


def _same_names(a, b):
    if a is None or b is None:
        return a is b
    return a is b or np.array_equal(a, b)


def _as_offsets(offsets, n_rows):
    offsets = np.asarray(offsets)
    if offsets.ndim != 1 or offsets.size == 0 or not np.issubdtype(offsets.dtype, np.integer):
        raise ValueError("offsets must be a 1-D array of integers that starts with 0.")
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if offsets[0] != 0 or offsets[-1] != n_rows:
        raise ValueError(
            f"offsets must start at 0 and end at the number of rows, {n_rows}; "
            f"got offsets from {offsets[0]} to {offsets[-1]}."
        )
    if np.any(np.diff(offsets) < 0):
        i = int(np.flatnonzero(np.diff(offsets) < 0)[0])
        raise ValueError(f"offsets decrease at sequence {i}.")
    return read_only(offsets)
