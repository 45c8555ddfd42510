"""`SequenceBatch`, the input of all kernels: stacked rows and sequence offsets."""

from __future__ import annotations

from html import escape
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp

from skstruct.blocks.dense import DenseBlock
from skstruct.blocks.rows import (
    Placed,
    bytes_of_matrix,
    pack_blocks,
    stack_blocks,
    stack_columns,
    to_matrix,
    unpack_blocks,
)
from skstruct.frames import FrameConversions, columns_of_sequences, is_frame, names_of
from skstruct.matrices import (
    as_matrix,
    canonical,
    hstack,
    matrix_of_tokens,
    pack_matrix,
    ranges,
    read_offsets,
    read_only,
    select_rows,
    stack_sequences,
    stores_zeros,
    to_csr,
    to_offsets,
    unpack_matrix,
    vstack,
)
from skstruct.utils.declared import pack_strings, unpack_strings
from skstruct.utils.messages import position
from skstruct.utils.persistence import set_module


def tokens_of(batch):
    """Tokens of a few sequences as they were read, `LooseRows`, without their blocks.

    None for other batches, and once the matrix of a batch has been made.
    """
    if not isinstance(batch, SequenceBatch) or batch.transition_X is not None:
        return None
    parts = vars(batch)
    # Looked up once: another thread may make the matrix meanwhile.
    found = parts.get("_loose") or parts.get("_blocks")
    if found is None or "X" in parts:
        return None
    tokens = found[0]
    return tokens if isinstance(tokens, tuple) and parts["offsets"] is tokens.offsets else None


@set_module("skstruct")
class SequenceBatch(FrameConversions):
    """A batch of sequences: all rows stacked in one matrix, with the offsets of the sequences.

    Sequence ``i`` owns the rows ``offsets[i]:offsets[i + 1]`` of `X`; the offsets start at
    0, never decrease, and end at the number of rows. A row is a token (or, for a reranker, a
    candidate). The batch counts, indexes and splits by *sequence*, so every scikit-learn
    splitter works on it.

    Parameters
    ----------
    X : {ndarray, sparse matrix, sparse array, data frame} of shape (n_rows, n_features)
        Stacked rows. Sparse input becomes a CSR matrix, dense input a C-ordered array; dtypes
        other than float32 and float64 become float64. Sparse values that are all 1 share the
        memory of one number, and are read-only. The matrix is not changed.
    offsets : array-like of shape (n_sequences + 1,)
        Row number at which each sequence starts, and the number of rows at the end. Copied.
    feature_names : array-like of shape (n_features,), default=None
        Names of the columns. Taggers keep them as ``feature_names_in_``. By default, a data frame's
        names, if they are strings.
    transition_X : {ndarray, sparse matrix} of shape (n_rows, n_transition_features), default=None
        Features of transitions: row ``t`` belongs to the step from row ``t - 1`` to row ``t``.
        Taggers learn a weight for each of them and each pair of labels. Rows of first tokens are
        ignored, but must be finite.
    keep_zeros : bool, default=False
        Keep the zeros that a sparse `X` stores, as features with the value zero (see Notes).

    Attributes
    ----------
    X : {ndarray, csr_matrix} of shape (n_rows, n_features)
        Stacked rows.
    offsets : ndarray of shape (n_sequences + 1,), dtype int64
        Sequence boundaries.
    blocks : tuple of (start, block)
        Columns that every token has a number in, and the first column of each block: the matrix of
        a dense batch, and the vectors of batches that `EmbeddingVectorizer` and `hstack` make.
    feature_names : ndarray of shape (n_features,) or None
        Names of the columns.
    transition_X : {ndarray, csr_matrix} of shape (n_rows, n_transition_features) or None
        Features of the transitions into the rows.
    keep_zeros : bool
        True if `X` stores zeros, which are kept.

    Raises
    ------
    ValueError
        If `X` has complex numbers, dates or durations, `offsets` or `transition_X` do not match
        the rows of `X`, `feature_names` do not match its columns, or the index arrays of a sparse
        matrix do not fit its shape; the message names the sequence and the token.

    See Also
    --------
    SequenceVectorizer : Make batches from sequences of feature dicts or attribute strings.
    SequenceBatch.from_frame : Make a batch of a data frame with one token a row.

    Notes
    -----
    A zero is the same number whether a sparse matrix stores it or not: stored zeros are dropped,
    and duplicates are summed. Only feature dicts tell a feature that is zero from one that is not
    there, as CRFsuite does, and `SequenceVectorizer` keeps zeros.

    Vectors are kept as they came, beside sparse columns, and `X` is made when it is asked for. It
    is read-only then.

    Arrays can be changed later. So methods of batches, and estimators, check them at every call.

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

    # True if features of this batch were made of the labels of its own sequences.
    reads_labels = False

    def __init__(
        self, X, offsets, *, feature_names=None, transition_X=None, keep_zeros=False
    ) -> None:
        if feature_names is None and is_frame(X):
            feature_names = names_of(X.columns)
        X = as_matrix(X)
        self.offsets = read_offsets(offsets, X.shape[0])
        self.X = canonical(X, place=self._place, keep_zeros=keep_zeros)
        self.keep_zeros = keep_zeros and stores_zeros(self.X)
        self.feature_names = _names_of_columns(feature_names, self.X.shape[1])
        self.transition_X = self._as_transitions(transition_X)
        if transition_X is not None:
            self.transition_X = canonical(self.transition_X, "transition_X", self._place)

    @classmethod
    def _of_valid(cls, X, offsets, transition_X=None, feature_names=None, keep_zeros=False):
        """Batch of matrices that are as `__init__` would make them, without checks or copies."""
        batch = cls.__new__(cls)
        offsets.flags.writeable = False
        batch.X, batch.offsets, batch.transition_X = X, offsets, transition_X
        batch.feature_names, batch.keep_zeros = feature_names, keep_zeros
        return batch

    @classmethod
    def _of_tokens(cls, tokens, n_features, dtype=np.float64, feature_names=None):
        """Batch of `LooseRows`, whose matrix of a `dtype` is made when it is asked for.

        Making it takes most of the time for one sentence, and taggers do not need it.
        """
        batch, values = cls.__new__(cls), tokens.values
        for array in tokens:
            array.flags.writeable = False
        vars(batch).update(
            offsets=tokens.offsets,
            feature_names=feature_names,
            transition_X=None,
            keep_zeros=len(values) > 0 and not values.all(),
            _loose=(tokens, n_features, dtype),
        )
        return batch

    @classmethod
    def _of_blocks(cls, sparse, placed, offsets, feature_names=None, more=None):
        """Batch of blocks beside sparse columns, whose matrix is made when it is asked for.

        Parameters
        ----------
        sparse : csr_matrix or None
            All columns of the batch, the columns of blocks empty; None if there are no others.
        placed : tuple of Placed
        offsets : ndarray of shape (n_sequences + 1,)
            From `read_offsets`, or made here.
        feature_names : ndarray of shape (n_features,), default=None
        more : dict, default=None
            Attributes ``transition_X`` and ``keep_zeros``, by default None and False.
        """
        batch = cls.__new__(cls)
        n_columns = max(p.columns.stop for p in placed) if sparse is None else sparse.shape[1]
        vars(batch).update(
            offsets=read_only(offsets),
            feature_names=feature_names,
            _blocks=(sparse, placed, n_columns),
            **({"transition_X": None, "keep_zeros": False} | (more or {})),
        )
        return batch

    def _made_of_blocks(self):
        """The matrix of a batch with blocks: read-only, so that no change of it is lost."""
        X = to_matrix(*self._columns())
        for array in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
            array.flags.writeable = False
        return vars(self).setdefault("X", X)

    def _columns(self, *, loose=False):
        """Sparse columns, blocks and number of columns.

        With ``loose``, the sparse columns beside blocks may be `LooseRows` that nobody has changed.
        """
        found = vars(self).get("_blocks")
        if found is not None:
            tokens, *others = found
            if isinstance(tokens, tuple) and not (loose and self.offsets is tokens.offsets):
                found = matrix_of_tokens(tokens, found[-1], np.float64), *others
                vars(self)["_blocks"] = found
            return found
        X = self.X
        if sp.issparse(X):
            return X, (), X.shape[1]
        return None, (Placed(0, DenseBlock(X)),), X.shape[1]

    @property
    def blocks(self):
        """Blocks of columns, tuple of (start, block)."""
        return self._columns()[1]

    def __setattr__(self, name, value):
        if name == "X":
            # Another matrix takes the place of the blocks.
            vars(self).pop("_blocks", None)
        super().__setattr__(name, value)

    def __getattr__(self, name):
        if name == "X" and "_blocks" in vars(self):
            return self._made_of_blocks()
        loose = vars(self).get("_loose")
        if loose is None or name != "X":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        # Another thread may do the same: the first one's arrays stay.
        return vars(self).setdefault("X", matrix_of_tokens(*loose))

    @classmethod
    def from_lengths(cls, X, lengths, *, feature_names=None, transition_X=None) -> SequenceBatch:
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
        offsets = to_offsets(lengths)
        if offsets.min() < 0:
            raise ValueError("lengths add up to more than the rows that X can have.")
        return cls(X, offsets, feature_names=feature_names, transition_X=transition_X)

    @classmethod
    def from_sequences(cls, sequences, *, feature_names=None):
        """Make a batch of a list of matrices, one for each sequence.

        Parameters
        ----------
        sequences : iterable of {array-like, sparse matrix} of shape (length_i, n_features)
            All dense or all sparse, with the same columns.
        feature_names : array-like of shape (n_features,), default=None
            Names of the columns. By default, the names of the columns if sequences are data frames.

        Returns
        -------
        batch : SequenceBatch

        Raises
        ------
        ValueError
            If there is no sequence, or if one is not two-dimensional or differs from the first in
            its columns; the message names it.
        """
        sequences = list(sequences)
        if feature_names is None:
            feature_names = columns_of_sequences(sequences)
        return cls.from_lengths(*stack_sequences(sequences), feature_names=feature_names)

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
            If there is no batch or something else, or their columns differ in number or name, or
            some are sparse and others dense.
        """
        batches = list(_checked_batches(batches))
        if not batches:
            raise ValueError("Nothing to concatenate: at least one batch is required.")
        names = batches[0].feature_names
        same = (b.feature_names is names or np.array_equal(b.feature_names, names) for b in batches)
        if not all(same):
            raise ValueError("Batches with different columns cannot be concatenated.")
        observed = [b.transition_X for b in batches if b.transition_X is not None]
        if 0 < len(observed) < len(batches):
            raise ValueError("Batches with and without transition_X cannot be concatenated.")
        offsets = to_offsets(np.concatenate([b.lengths for b in batches]))
        more = {
            "transition_X": vstack(observed) if observed else None,
            "keep_zeros": any(b.keep_zeros for b in batches),
        }
        if any(b._has_blocks for b in batches):
            sparse, placed, n_columns = zip(*(b._columns() for b in batches), strict=True)
            stacked = stack_blocks(placed)
            alike = len({part is None for part in sparse}) == len(set(n_columns)) == 1
            if stacked is not None and alike:
                sparse = None if sparse[0] is None else vstack(sparse)
                return cls._of_blocks(sparse, stacked, offsets, names, more)
        return cls(vstack([b.X for b in batches]), offsets, feature_names=names, **more)

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
            Dense if all are, else sparse; vectors stay apart, in `blocks`. With feature names if
            all have them.

        Raises
        ------
        ValueError
            If there is no batch or something else, or they differ in the number or the lengths of
            their sequences.

        Examples
        --------
        >>> import numpy as np
        >>> from skstruct import SequenceBatch
        >>> words = SequenceBatch.from_lengths(np.eye(3), [2, 1], feature_names=["a", "b", "c"])
        >>> tags = SequenceBatch.from_lengths(np.ones((3, 1)), [2, 1], feature_names=["tag"])
        >>> SequenceBatch.hstack([words, tags]).feature_names
        array(['a', 'b', 'c', 'tag'], dtype=object)
        """
        batches = list(_checked_batches(batches))
        if not batches:
            raise ValueError("Nothing to stack: at least one batch is required.")
        return cls._hstack(batches)

    @classmethod
    def _hstack(cls, batches):
        """Stack columns as `hstack` does, of batches whose arrays need no check."""
        offsets = batches[0].offsets
        for number, batch in enumerate(batches):
            if len(batch) != len(batches[0]):
                raise ValueError(
                    f"Batch {number} has {len(batch)} sequences, but batch 0 has {len(batches[0])}."
                )
            same = batch.offsets is offsets or batch.offsets.tobytes() == offsets.tobytes()
            if not same and not np.array_equal(batch.offsets, offsets):
                i = int(np.flatnonzero(batch.lengths != batches[0].lengths)[0])
                raise ValueError(
                    f"Sequence {i} has {batch.lengths[i]} rows in batch {number}, but "
                    f"{batches[0].lengths[i]} in batch 0."
                )
        names = [batch.feature_names for batch in batches]
        observed = [batch.transition_X for batch in batches if batch.transition_X is not None]
        feature_names = None if any(n is None for n in names) else np.concatenate(names)
        more = {
            "transition_X": hstack(observed) if observed else None,
            "keep_zeros": any(batch.keep_zeros for batch in batches),
        }
        stacked = cls._beside_tokens(batches, offsets, feature_names, more)
        if stacked is not None:
            return stacked
        columns = [batch._columns() for batch in batches]
        if any(placed for _, placed, _ in columns):
            stacked = cls._of_blocks(*stack_columns(columns), offsets, feature_names, more)
        else:
            X = hstack([batch.X for batch in batches])
            stacked = cls(X, offsets, feature_names=feature_names, **more)
        stacked.reads_labels = any(batch.reads_labels for batch in batches)
        return stacked

    @classmethod
    def _beside_tokens(cls, batches, offsets, feature_names, more):
        """Blocks beside a first batch of a few tokens; None for any other batches."""
        first, *others = map(vars, batches)
        tokens, (*_, dtype) = tokens_of(batches[0]), first.get("_loose", (None,))
        if tokens is None or not others or dtype != np.float64:
            return None
        if any(batch.reads_labels for batch in batches):
            return None
        placed, width = [], batches[0].n_features
        for parts in others:
            sparse, blocks, n_columns = parts.get("_blocks", ((), (), 0))
            if sparse is not None:
                return None
            placed += [Placed(width + start, block) for start, block in blocks]
            width += n_columns
        stacked = cls.__new__(cls)
        found = tokens, tuple(placed), width
        vars(stacked).update(offsets=offsets, feature_names=feature_names, _blocks=found, **more)
        return stacked

    @property
    def lengths(self):
        """Rows in each sequence, ndarray of shape (n_sequences,)."""
        return np.diff(self.offsets)

    @property
    def n_rows(self):
        """Number of rows of all sequences together."""
        found = vars(self).get("_blocks")
        return self.X.shape[0] if found is None else found[1][0].block.n_rows

    @property
    def n_features(self):
        """Number of columns."""
        parts = vars(self)
        if "_blocks" in parts:
            return parts["_blocks"][-1]
        loose = parts.get("_loose")
        return self.X.shape[1] if loose is None or "X" in parts else loose[1]

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
        sparse, placed, _ = self._columns()
        parts = [] if sparse is None else [sparse.dtype]
        return np.result_type(*parts, *(p.block.dtype for p in placed))

    @property
    def _has_blocks(self):
        """True if the matrix is made of blocks when it is asked for."""
        return "_blocks" in vars(self)

    def __len__(self):
        return self.offsets.shape[0] - 1

    def __iter__(self):
        return (self._rows(i) for i in range(len(self)))

    def __array__(self, dtype=None, copy=None):
        """Raise a ValueError: what takes an array would take sequences for rows."""
        raise ValueError(
            "A SequenceBatch has sequences, where rows are expected. Wrap a transformer, as in "
            "TokenTransformer(MaxAbsScaler()), which gives it the rows of all tokens, batch.X; "
            "SequenceUnion stacks batches."
        )

    # numpy would multiply the sequences one by one, and return an array.
    __array_ufunc__ = None

    def __mul__(self, factor):
        """Multiply all values by a number."""
        if not isinstance(factor, Real):
            return NotImplemented
        # Numbers of numpy keep their precision, scipy takes no fractions.
        factor = factor if isinstance(factor, np.generic) else float(factor)
        batch = self._checked()
        transition_X = batch.transition_X
        if transition_X is not None:
            transition_X = transition_X * factor
        if batch._has_blocks:
            sparse, placed, _ = batch._columns()
            placed = tuple(Placed(start, block.times(factor)) for start, block in placed)
            sparse = None if sparse is None else sparse * factor
            return batch._like_blocks(sparse, placed, batch.offsets, transition_X)
        return batch._like(batch.X * factor, batch.offsets, transition_X)

    __rmul__ = __mul__

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
                offsets = self._offsets_of(start, max(start, stop))
                return self._select(slice(offsets[0], offsets[-1]), offsets - offsets[0])
        return self._take(np.arange(len(self))[key])

    def _as_transitions(self, transition_X):
        """Matrix of features of transitions into the rows of this batch; None for None."""
        if transition_X is None:
            return None
        transition_X = as_matrix(transition_X, "transition_X")
        if transition_X.shape[0] != self.n_rows:
            raise ValueError(
                f"transition_X has {transition_X.shape[0]} rows, but X has {self.n_rows}."
            )
        return transition_X

    def _place(self, row):
        return position(self.offsets, row)

    def _checked(self):
        """The same batch, checked again: its arrays may have been changed since it was made."""
        if not self._has_blocks:
            return self._like(self.X, self.offsets, self.transition_X)
        sparse, placed, n_columns = self._columns(loose=True)
        offsets = read_offsets(self.offsets, self.n_rows)
        for one in placed:
            one.check(self.n_rows, n_columns)
        transition_X = self._as_transitions(self.transition_X)
        if isinstance(sparse, tuple) and transition_X is None and self.feature_names is None:
            return self
        sparse = self._columns()[0]
        if sparse is not None:
            sparse = canonical(sparse, place=self._place, keep_zeros=self.keep_zeros)
        return self._like_blocks(sparse, placed, offsets, transition_X)

    def _rows(self, i):
        if self._has_blocks and "X" not in vars(self):
            return self._take(np.array([i])).X
        rows = select_rows(self.X, slice(*self._offsets_of(i, i + 1)), place=self._place)
        return to_csr(rows, place=lambda token: (i, token)) if sp.issparse(rows) else rows

    def _offsets_of(self, start, stop):
        return read_offsets(self.offsets, self.n_rows, slice(start, stop + 1))

    def _take(self, indices):
        if indices.ndim != 1:
            raise IndexError("A batch has one axis: use a 1-D index array or mask.")
        all_offsets = read_offsets(self.offsets, self.n_rows)
        return self._select(*ranges(all_offsets[indices], np.diff(all_offsets)[indices]))

    def _select(self, rows, offsets):
        transition_X = self._as_transitions(self.transition_X)
        if transition_X is not None:
            transition_X = select_rows(transition_X, rows, "transition_X", self._place)
        if self._has_blocks:
            sparse, placed, _ = self._columns()
            if sparse is not None:
                sparse = canonical(select_rows(sparse, rows, place=self._place), keep_zeros=True)
            placed = tuple(Placed(start, block.take(rows)) for start, block in placed)
            return self._like_blocks(sparse, placed, offsets, transition_X)
        return self._like(select_rows(self.X, rows, place=self._place), offsets, transition_X)

    def _like(self, X, offsets, transition_X):
        batch = type(self)(
            X,
            offsets,
            feature_names=self.feature_names,
            transition_X=transition_X,
            keep_zeros=self.keep_zeros,
        )
        batch.reads_labels = self.reads_labels
        return batch

    def _like_blocks(self, sparse, placed, offsets, transition_X):
        if transition_X is not None:
            transition_X = canonical(transition_X, "transition_X", self._place)
        more = {"transition_X": transition_X, "keep_zeros": self.keep_zeros}
        names = _names_of_columns(self.feature_names, self.n_features)
        batch = type(self)._of_blocks(sparse, placed, offsets, names, more)
        batch.reads_labels = self.reads_labels
        return batch

    def __getstate__(self):
        batch = self._checked()
        if batch._has_blocks:
            sparse, placed, _ = batch._columns()
            parts = {"matrix": pack_matrix(sparse), "blocks": pack_blocks(placed)}
        else:
            parts = {"matrix": pack_matrix(batch.X)}
        state = parts | {
            "offsets": batch.offsets,
            "feature_names": pack_strings(batch.feature_names),
        }
        if batch.transition_X is not None:
            state["transition_matrix"] = pack_matrix(batch.transition_X)
        return state

    def __setstate__(self, state):
        try:
            matrix = unpack_matrix(state["matrix"])
            if "blocks" in state:
                placed = unpack_blocks(state["blocks"])
                matrix = None if matrix is None else canonical(matrix, keep_zeros=True)
                vars(self).update(
                    vars(_of_parts(type(self), matrix, placed, state)),
                )
                return
            self.__init__(
                matrix,
                state["offsets"],
                feature_names=unpack_strings(state["feature_names"]),
                transition_X=unpack_matrix(state.get("transition_matrix")),
                # Zeros that were to be dropped have not been stored.
                keep_zeros=True,
            )
        except Exception as error:
            raise ValueError(f"This stored SequenceBatch is damaged: {error}") from error

    def _repr_html_(self):
        return _html(self._checked())

    def __repr__(self):
        counts = f"n_sequences={len(self)}, n_rows={self.n_rows}, n_features={self.n_features}"
        if self.transition_X is not None:
            counts += f", n_transition_features={self.n_transition_features}"
        if self._has_blocks:
            sparse, placed, _ = self._columns()
            counts += f", blocks={[p.block for p in placed]}"
            counts += f"; X takes {bytes_of_matrix(sparse, placed):,} bytes when asked for"
        return f"{type(self).__name__}({counts})"


def _names_of_columns(names, n_columns):
    """Names as an array, checked; None for None."""
    if names is None:
        return None
    names = np.asarray(names, dtype=object)
    if names.shape != (n_columns,):
        raise ValueError(f"feature_names has shape {names.shape}, but X has {n_columns} columns.")
    return names


def _of_parts(cls, sparse, placed, state):
    """Stored batch with blocks; a ValueError where its parts do not fit."""
    n_rows, width = placed[0].block.n_rows, placed[-1].columns.stop
    width = width if sparse is None else sparse.shape[1]
    for one in placed:
        one.check(n_rows, width)
    if sparse is not None and sparse.shape[0] != n_rows:
        raise ValueError("its sparse columns have another number of rows than its blocks.")
    names = _names_of_columns(unpack_strings(state["feature_names"]), width)
    transition_X = unpack_matrix(state.get("transition_matrix"))
    if transition_X is not None:
        transition_X = canonical(as_matrix(transition_X, "transition_X"), "transition_X")
        if transition_X.shape[0] != n_rows:
            raise ValueError("transition_X has another number of rows.")
    # Zeros that were to be dropped have not been stored.
    more = {"transition_X": transition_X, "keep_zeros": stores_zeros(sparse)}
    return cls._of_blocks(sparse, placed, read_offsets(state["offsets"], n_rows), names, more)


def _checked_batches(batches):
    for number, batch in enumerate(batches):
        if not isinstance(batch, SequenceBatch):
            raise ValueError(
                f"Batch {number} is {type(batch).__name__} and no SequenceBatch. "
                "SequenceBatch.from_sequences makes one of a list of matrices."
            )
        yield batch._checked()


class ReturnsBatches:
    """Mixin for transformers whose output is a batch, whatever is asked for."""

    @property
    def set_output(self):
        """Not available: tokens without their sequences would be of no use in a data frame."""
        raise AttributeError(
            f"A {type(self).__name__} returns batches: it has no attribute 'set_output'."
        )


# Tables for notebooks

# Most sequences, tokens of each and features of a token that are shown.
_SEQUENCES, _TOKENS, _FEATURES = 3, 5, 8
_STYLE = """
.skstruct-batch { font: .9em/1.4 system-ui, sans-serif; overflow-x: auto; }
.skstruct-batch table { border-collapse: collapse; margin-top: .4em; }
.skstruct-batch td, .skstruct-batch th { text-align: left; padding: .2em .7em; vertical-align: top;
  border-bottom: 1px solid #8884; }
.skstruct-batch .more { opacity: .6; }
""".strip()


def _html(batch):
    """Table of the first tokens of the first sequences of a batch, as an element of its own."""
    text = escape(repr(batch))
    head = "<tr><th>sequence</th><th>token</th><th>features</th></tr>"
    rows = []
    for i in range(min(len(batch), _SEQUENCES)):
        first, last = batch.offsets[i : i + 2]
        for row in range(first, min(last, first + _TOKENS)):
            cells = str(i) if row == first else "", str(row - first), _features(batch, row)
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        if last - first > _TOKENS:
            rows.append(_more(f"{last - first - _TOKENS:,} more tokens"))
    if len(batch) > _SEQUENCES:
        rows.append(_more(f"{len(batch) - _SEQUENCES:,} more sequences"))
    table = f"<table>{head}{''.join(rows)}</table>"
    return f'<div class="skstruct-batch"><style>{_STYLE}</style><code>{text}</code>{table}</div>'


def _more(text):
    return f'<tr class="more"><td></td><td colspan="2">… {text}</td></tr>'


def _features(batch, row):
    """Names and values of the features of a row that are not zero."""
    values = batch.X[row : row + 1]
    values = (values.toarray() if sp.issparse(values) else np.asarray(values))[0]
    columns = np.flatnonzero(values)
    texts = []
    for column in columns[:_FEATURES].tolist():
        name = f"x{column}" if batch.feature_names is None else str(batch.feature_names[column])
        value = "" if values[column] == 1 else f" = {values[column]:.4g}"
        texts.append(escape(name + value))
    if len(columns) > _FEATURES:
        texts.append(f'<span class="more">… {len(columns) - _FEATURES:,} more</span>')
    return ", ".join(texts) or '<span class="more">none</span>'
