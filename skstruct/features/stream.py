"""Sequences of tokens on their way to a batch: codes of attributes, values and lengths."""

from __future__ import annotations

from array import array
from itertools import chain

import numpy as np
import scipy.sparse as sp

from skstruct import kernels
from skstruct.features.arrays import ArrayValues
from skstruct.features.attributes import iterate_level, read_tokens
from skstruct.input.copies import copied
from skstruct.sequences import SequenceBatch
from skstruct.utils.options import check_float_dtype
from skstruct.utils.sparse import are_ones, merge_rows, pieces, read_only, shared_ones

__all__ = ["PackedBatch", "Stream", "canonical", "renumber"]

_TOKENS_AT_ONCE = 500
# Failures to read plain tokens, of several sequences and of one, after which it is not tried.
_MOST_FAILURES = 20


class PackedBatch:
    """What decoders need of a batch: the rows in the layout of the kernels, and the offsets.

    Names of the features are for messages.
    """

    def __init__(self, rows, offsets, feature_names):
        self.rows = rows
        self.offsets = offsets
        self.feature_names = feature_names

    def __len__(self):
        return len(self.offsets) - 1


class Stream:
    """Sequences being read into a CSR matrix.

    Takes four bytes for each attribute while reading, and sixteen for each value that is not 1.

    Parameters
    ----------
    dtype : {np.float64, np.float32}
        Type of the values.
    codes : NewCodes or KnownCodes
        Codes of the attributes.
    array_lengths : dict of str to int, default=None
        Length of the arrays of each known feature; new features are added.
    """

    def __init__(self, dtype, codes, array_lengths=None):
        self.dtype = check_float_dtype(dtype)
        self.limit = float(np.finfo(self.dtype).max)
        self._codes = codes
        # Buffers of int32, int64 and float64. A bytearray grows in place, by whole arrays.
        self.columns = bytearray()
        self.positions = bytearray()
        self.values = bytearray()
        self.token_lengths = array("q")
        self.sequence_lengths = array("q")
        self.arrays = ArrayValues({} if array_lengths is None else array_lengths, self.limit)
        self._failures = 0

    def read(self, X):
        """Read all sequences of `X`."""
        for chunk in _chunks(X):
            self._read_chunk(chunk)
        if not self.sequence_lengths:
            raise ValueError("Found an empty batch: at least one sequence is required.")
        self._check_arrays()
        return self

    def _read_chunk(self, chunk):
        """Read sequences at once, or one at a time where tokens are not plain."""
        tokens = chunk[0] if len(chunk) == 1 else list(chain.from_iterable(chunk))
        found = None
        if self._failures <= _MOST_FAILURES:
            found = self._codes.read(tokens, self.limit)
            self._failures += found is None
        if found is None and len(chunk) > 1:
            for sequence in chunk:
                self._read_chunk([sequence])
            return
        if found is None:
            i = len(self.sequence_lengths)
            names, *rest = read_tokens(tokens, self.limit, i, self._add_array)
            found = np.fromiter(self._codes.codes(names), np.int32, len(names)), *rest
        columns, lengths, positions, values = found
        if len(values):
            start = len(self.columns) // 4
            self.positions += (np.array(positions, np.int64) + start).data
            self.values += np.array(values, np.float64).data
        self.columns += columns.data
        self.token_lengths.extend(lengths)
        self.sequence_lengths.extend(map(len, chunk))

    def _add_array(self, t, name, vector):
        self.arrays.add(len(self.token_lengths) + t, name, vector)

    def _check_arrays(self):
        found = self.arrays.first_too_large()
        if found is not None:
            row, name, value = found
            ends = np.cumsum(self.sequence_lengths)
            i = int(np.searchsorted(ends, row, side="right"))
            t = row - (ends[i] - self.sequence_lengths[i])
            raise ValueError(
                f"Sequence {i}, token {t}: feature {name!r} has the value {value}; values must be "
                f"finite and at most {self.limit:.2g}."
            )

    def to_rows(self):
        """Data, codes and `indptr` of all tokens, unsorted; of dtype int8 if every value is 1."""
        columns = np.frombuffer(self.columns, np.int32)
        n = len(columns)
        data = self._values_of_all(n) if self.values else np.ones(n, np.int8)
        indptr = _ends(self.token_lengths)
        if self.arrays:
            blocks = [(data, columns, indptr, 0)]
            blocks += self.arrays.blocks(len(self.token_lengths), self._codes.codes)
            data, columns, indptr = merge_rows(blocks, self.dtype, 0)
        return data, columns, indptr

    def to_packed(self, feature_names):
        """Rows of all tokens in the order of a matrix; None if one repeats an attribute."""
        columns, data = np.array(np.frombuffer(self.columns, np.int32)), np.empty(0)
        if self.values:
            data = self._values_of_all(len(columns)).astype(np.float64)
        indptr = _ends(self.token_lengths)
        n_entries, repeats = kernels.sort_rows(indptr, columns, data)
        if repeats:
            return None
        data = data[:n_entries]
        rows = kernels.Rows(indptr, columns[:n_entries], data[:0] if are_ones(data) else data)
        offsets = read_only(_ends(self.sequence_lengths))
        return PackedBatch(read_only(rows), offsets, feature_names)

    def _values_of_all(self, n):
        data = np.ones(n, self.dtype)
        data[np.frombuffer(self.positions, np.int64)] = np.frombuffer(self.values, np.float64)
        return data

    def to_batch(self, matrix, feature_names):
        """Batch of the sequences, with the matrix of their tokens."""
        if matrix.data.dtype == np.int8:
            matrix.data = shared_ones(matrix.nnz, self.dtype)
        else:
            matrix.data = matrix.data.astype(self.dtype, copy=False)
        offsets = _ends(self.sequence_lengths)
        return SequenceBatch(matrix, offsets, feature_names=feature_names, keep_zeros=True)


def _chunks(X):
    """Yield lists of sequences, with about so many tokens that a call for them takes little time.

    What `X` makes on the way comes one at a time: it may be the same list again with other tokens.
    """
    stays = isinstance(X, (list, tuple, np.ndarray))
    chunk, n_tokens = [], 0
    for i, sequence in enumerate(iterate_level(copied(X), "X", "sequences")):
        is_list = stays and type(sequence) is list
        if chunk and not is_list:
            yield chunk
            chunk, n_tokens = [], 0
        tokens = list(sequence if is_list else iterate_level(sequence, f"Sequence {i}", "tokens"))
        chunk.append(tokens)
        n_tokens += len(tokens)
        if n_tokens >= _TOKENS_AT_ONCE or not is_list:
            yield chunk
            chunk, n_tokens = [], 0
    if chunk:
        yield chunk


def _ends(lengths):
    """Zero and the cumulative sums of an array of int64."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    ends[1:] = lengths
    return ends.cumsum(out=ends)


def renumber(numbers, new):
    """Replace each number of an array by ``new[number]``, of the same type, in place."""
    for part in pieces(numbers):
        # In place: mode "clip" does not buffer the output.
        np.take(new, part, out=part, mode="clip")


def canonical(data, columns, indptr, n_columns, dtype):
    """CSR matrix without entries that have no column, duplicates summed; works in place."""
    indptr = indptr.astype(np.int64, copy=False)
    are_values = data.dtype != np.int8
    n, repeats = kernels.sort_rows(indptr, columns, data if are_values else np.empty(0))
    matrix = sp.csr_matrix((data[:n], columns[:n], indptr), shape=(len(indptr) - 1, n_columns))
    matrix.has_sorted_indices = True
    if repeats:
        # Sums of int8 could overflow.
        matrix.data = matrix.data.astype(dtype, copy=False)
        matrix.sum_duplicates()
    matrix.has_canonical_format = True
    return matrix
