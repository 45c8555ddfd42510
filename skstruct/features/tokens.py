"""Tokens read into matrices: attributes and values of feature dicts and strings."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import partial
from itertools import chain, count, repeat
from numbers import Real
from operator import countOf, getitem
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from skstruct.blocks.dense import DenseBlock
from skstruct.blocks.rows import LEAST_COLUMNS, LEAST_DENSE, Placed
from skstruct.compiled.rows import keep_columns, sort_rows
from skstruct.frames import refuse_frame
from skstruct.matrices import (
    are_ones,
    merge_rows,
    offsets_of,
    pieces,
    shared_ones,
    stores_zeros,
    to_offsets,
)
from skstruct.sequences import SequenceBatch
from skstruct.utils.messages import DataError, check_float_dtype, short_repr


def is_vector(value):
    """Return True if the value of a feature is an array of numbers.

    A masked array is none: its mask would be lost.
    """
    is_array = isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)
    return is_array and value.dtype.kind in "biuf" and value.ndim > 0


class ArrayValues:
    """Array-valued features of a batch, collected as bytes until all tokens are read.

    Parameters
    ----------
    lengths : dict of str to int
        Length of the arrays of each known feature; new features are added.
    limit : float
        Largest absolute value allowed.
    """

    def __init__(self, lengths, limit):
        self.lengths = lengths
        self._limit = limit
        self._rows = defaultdict(partial(array, "q"))
        self._values = defaultdict(bytearray)

    def __bool__(self):
        return bool(self._rows)

    def add(self, row, name, vector):
        """Add the array of a token; `row` is the number of the token in the batch.

        A token's arrays of the same name are summed.
        """
        vector = np.array(vector, np.float64, order="C")
        if vector.ndim != 1:
            raise ValueError(
                f"feature {name!r} is an array of shape {vector.shape}; expected a 1-D array."
            )
        length = self.lengths.setdefault(name, len(vector))
        if len(vector) != length:
            raise ValueError(
                f"feature {name!r} is an array of {len(vector)} numbers, but elsewhere of {length}."
            )
        wrong = vector[~(np.abs(vector) <= self._limit)]
        if len(wrong):
            raise ValueError(
                f"feature {name!r} has the value {wrong[0]}; values must be finite and at most "
                f"{self._limit:.2g}."
            )
        # A bytearray grows in place.
        rows, values = self._rows[name], self._values[name]
        if rows and rows[-1] == row:
            vector += np.frombuffer(values, np.float64)[-length:]
            del values[-vector.nbytes :]
        else:
            rows.append(row)
        values.extend(vector.data.cast("B"))

    def wide(self, n_rows):
        """Names of the features that become blocks: long arrays in most tokens."""
        return [
            name
            for name, rows in self._rows.items()
            if self.lengths[name] >= LEAST_COLUMNS and len(rows) >= LEAST_DENSE * n_rows
        ]

    def count(self, name):
        """Number of tokens with a feature."""
        return len(self._rows[name])

    def codes_of(self, name, find):
        """What `find` returns for the names of the columns of a feature."""
        length = self.lengths[name]
        names = [f"{name}:{place}" for place in range(length)]
        return np.fromiter(find(names), np.int32, length)

    def matrix(self, name, n_rows, dtype):
        """Arrays of a feature of all tokens; zeros where a token has none."""
        rows = np.frombuffer(self._rows[name], np.int64)
        values = np.frombuffer(self._values[name], np.float64).reshape(-1, self.lengths[name])
        if len(rows) == n_rows and values.dtype == dtype:
            return values
        found = np.zeros((n_rows, values.shape[1]), dtype)
        found[rows] = values
        return found

    def parts(self, n_rows, find, without):
        """Yield the arrays of CSR matrices, one for each feature.

        Parameters
        ----------
        n_rows : int
            Number of tokens.
        find : callable
            Function from names to an iterator over their columns.
        without : list of str
            Features to leave out.

        Yields
        ------
        data, indices, indptr, shift
            In the format of `skstruct.matrices.merge_rows`.
        """
        for name, rows in self._rows.items():
            if name in without:
                continue
            length, rows = self.lengths[name], np.frombuffer(rows, np.int64)
            columns = self.codes_of(name, find)
            values = np.frombuffer(self._values[name], np.float64)
            counts = length * np.bincount(rows, minlength=n_rows)
            yield values, np.tile(columns, len(rows)), to_offsets(counts), 0


# Types of nearly all data, which need no further check.
PLAIN_COLLECTIONS = {list, tuple, set, frozenset}
_PLAIN_NUMBERS = {bool, int, float}
_SHAPE = "A batch is a list of {sequence}s, a {sequence} a list of {token}s."


def iterate_level(value, name, content="{token}s", shape=_SHAPE):
    """Iterate over a collection of `content`; a ValueError says what `shape` a batch has.

    The error has the name of the value, or the number of a sequence.
    """
    refuse_frame(value)
    try:
        if not isinstance(value, (str, bytes, Mapping)):
            return iter(value)
    except TypeError:
        pass
    fact = f" is {{value}}; expected a list of {content}. {shape}"
    if isinstance(name, str):
        raise DataError(name + fact, value=short_repr(value))
    raise DataError("{place}" + fact, name, value=short_repr(value))


def read_tokens(tokens, limit, i, add_array):
    """Read the tokens of a sequence: feature dicts or collections of attribute strings.

    Parameters
    ----------
    tokens : list
    limit : float
        Largest absolute value allowed.
    i : int
        Number of the sequence, for messages.
    add_array : callable
        Called as ``add_array(t, name, array)`` for each feature whose value is an array.

    Returns
    -------
    names : list of str
        Attributes of all tokens.
    lengths : list of int
        Number of attributes of each token.
    positions, values : list
        Positions in `names` of the attributes with a value other than 1, and these values.
    """
    names, lengths, positions, values = [], [], [], []
    for t, token in enumerate(tokens):
        start = len(names)
        try:
            for key, value in _features(token):
                # Strings, bools and plain numbers, which are most features, need no call.
                kind = type(value) if type(key) is str else None
                if kind is str:
                    names.append(f"{key}:{value}")
                    continue
                if kind in _PLAIN_NUMBERS and (value is True or abs(value) <= limit):
                    if value != 1:
                        positions.append(len(names))
                        values.append(value)
                    names.append(key)
                    continue
                for name, number in _attributes(key, value, limit):
                    if isinstance(number, np.ndarray):
                        add_array(t, name, number)
                        continue
                    if number != 1:
                        positions.append(len(names))
                        values.append(number)
                    names.append(name)
        except (ValueError, LookupError, RuntimeError) as error:
            raise DataError.of(_complaint(error, token), i, t) from None
        lengths.append(len(names) - start)
    return names, lengths, positions, values


def _complaint(error, token):
    """Reason why a token could not be read."""
    if isinstance(error, ValueError):
        return error
    if isinstance(error, RecursionError):
        return "its dicts are nested too deeply."
    # Raised by mappings and collections that are written in Python.
    return f"reading it, a {type(token).__name__}, failed with {error!r}."


def _features(token):
    """Pairs of key and value in a token; an attribute string is a feature with the value True."""
    if isinstance(token, Mapping):
        return list(token.items())
    strings = _strings(token)
    if strings is None:
        raise DataError(
            "{value} is not a valid {token}; expected a dict of features, or a list, tuple or set "
            f"of strings. {_SHAPE}",
            value=short_repr(token),
        )
    return zip(strings, repeat(True))


def _attributes(key, value, limit, prefix=""):
    """Pairs of name and value of the attributes of one feature."""
    if not isinstance(key, (str, bytes)):
        raise ValueError(f"feature name {short_repr(key)} is not a string.")
    name = prefix + _as_text(key)
    if is_vector(value):
        return [(name, value)] if value.size else []
    strings = _strings([value] if isinstance(value, (str, bytes)) else value)
    if strings is not None:
        return [(f"{name}:{text}", 1) for text in strings]
    if isinstance(value, Mapping):
        nested = (_attributes(k, v, limit, f"{name}:") for k, v in list(value.items()))
        return list(chain.from_iterable(nested))
    if not isinstance(value, (Real, Decimal, np.bool_)):
        raise ValueError(
            f"feature {name!r} is {short_repr(value)}; expected a string, bool or number, a dict "
            f"of these, a list, tuple or set of strings, or an array of numbers."
        )
    number = _as_float(value)
    if not abs(number) <= limit:
        raise ValueError(
            f"feature {name!r} is {number}; values must be finite and at most {limit:.2g}."
        )
    return [(name, number)]


def _as_float(value):
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except ValueError:  # a signalling NaN
        return np.nan


def _strings(value):
    """Strings in a list, tuple, set or other collection; None if `value` is something else."""
    if type(value) not in PLAIN_COLLECTIONS:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Collection):
            return None
    texts = list(value)
    kinds = set(map(type, texts))
    if kinds <= {str}:
        return texts
    return list(map(_as_text, texts)) if all(issubclass(k, (str, bytes)) for k in kinds) else None


def _as_text(text):
    """Plain string, also if it is given as bytes in UTF-8.

    Other bytes become surrogates, and can be written to a file as they were.
    """
    if isinstance(text, bytes):
        return text.decode("utf-8", "surrogateescape")
    # This gives the value of a member of a string enumeration, not its name.
    return str.__str__(text)


# Column of attributes without a column, whose entries are dropped.
NO_COLUMN = -1
_PLAIN_VALUES = {str, *_PLAIN_NUMBERS}
_NO_VALUES = np.empty(0, np.int64), np.empty(0)


class _OtherKey(Exception):
    """A key that is not a string."""


class _Values(dict):
    """Codes of the values of a key: less than `NO_COLUMN` for values other than 1.

    Half of the values of the tutorials' features are False, so zero has a code of its own; `_split`
    tells it from other numbers.

    Parameters
    ----------
    code : int
        Code of the attribute that is named like the key, which numbers and bools belong to.
    code_of : callable
        Function from a text to the code of its attribute, called once for each.
    """

    def __init__(self, code, code_of):
        # A number that equals a bool is found as this one.
        super().__init__({True: code, False: -2 * code - 4})
        self._other = -2 * code - 5
        self._code_of = code_of

    def __missing__(self, value):
        if type(value) is not str:
            return self._other
        code = self[value] = self._code_of(value)
        return code


def _split(codes):
    """Attributes of the codes of values other than 1, and whether these values are not zero."""
    codes = -codes - 4
    return codes >> 1, (codes & 1).astype(bool)


class _Codes(dict):
    """The `_Values` of each key.

    A subclass defines ``codes(names)``, an iterator over the codes of attributes, and
    ``_code_of(key)``, the function that `_Values` need.
    """

    def __missing__(self, key):
        if type(key) is not str:
            raise _OtherKey
        (code,) = self.codes([key])
        return self.setdefault(key, _Values(code, self._code_of(key)))

    def read(self, tokens, limit):
        """Read tokens if all of them are dicts of plain values, or collections of strings.

        Parameters
        ----------
        tokens : list
        limit : float
            Largest absolute value allowed.

        Returns
        -------
        codes : ndarray of int32
            Codes of the attributes of all tokens.
        lengths : list of int
            Number of attributes of each token.
        positions, values : ndarray
            Positions of the attributes with a value other than 1, and these values.

        Or None for other tokens.
        """
        kinds = set(map(type, tokens))
        # Copies, whose lengths stay: kernels read as many features.
        if kinds <= {dict}:
            return self._read_dicts(list(map(dict.copy, tokens)), limit)
        if kinds <= PLAIN_COLLECTIONS:
            return self._read_strings(list(map(tuple, tokens)))
        return None

    def _read_strings(self, tokens):
        names = list(chain.from_iterable(tokens))
        if countOf(map(type, names), str) < len(names):
            return None
        codes = np.fromiter(self.codes(names), np.int32, len(names))
        return codes, list(map(len, tokens)), *_NO_VALUES

    def _read_dicts(self, tokens, limit):
        values = list(chain.from_iterable(map(dict.values, tokens)))
        kinds = set(map(type, values))
        if not kinds <= _PLAIN_VALUES:
            return None
        lengths, tables = list(map(len, tokens)), map(self.__getitem__, chain.from_iterable(tokens))
        try:
            codes = np.fromiter(map(getitem, tables, values), np.int32, len(values))
            if kinds <= {str}:
                return codes, lengths, *_NO_VALUES
            positions = (codes < NO_COLUMN).nonzero()[0]
            codes[positions], others = _split(codes[positions])
            numbers = np.zeros(len(positions))
            numbers[others] = [values[i] for i in positions[others].tolist()]
        except (_OtherKey, OverflowError):
            return None
        if not (np.abs(numbers) <= limit).all():
            return None
        return codes, lengths, positions, numbers


class NewCodes(_Codes):
    """Numbers of features as they come; features with the same name may have several."""

    def __init__(self):
        super().__init__()
        self._number = count().__next__
        self._named = defaultdict(self._number)

    def _code_of(self, key):
        return lambda text: self._number()

    def codes(self, names):
        return map(self._named.__getitem__, names)

    def take_names(self):
        """Names and numbers of all features; the tables, which are large, are emptied."""
        names, numbers = list(self._named), list(self._named.values())
        self._named.clear()
        while self:
            key, values = self.popitem()
            del values[True], values[False]
            names += map(f"{key}:".__add__, values)
            numbers += values.values()
        return names, numbers


class KnownCodes(_Codes):
    """Columns of features, remembered from call to call.

    Parameters
    ----------
    vocabulary : dict of str to int
        Column of each attribute.
    most : int
        Values to remember; when there are more, all are forgotten.

    Attributes
    ----------
    is_plain : bool
        The vocabulary is a dict of plain strings: a look-up runs no code of Python.
    """

    def __init__(self, vocabulary, most):
        super().__init__()
        self.vocabulary = vocabulary
        self.is_plain = type(vocabulary) is dict and set(map(type, vocabulary)) <= {str}
        self._most, self._n_learnt = most, 0

    def _code_of(self, key):
        get = self.vocabulary.get
        return lambda text: get(f"{key}:{text}", NO_COLUMN)

    def codes(self, names):
        return map(self.vocabulary.get, names, repeat(NO_COLUMN))

    def read(self, tokens, limit):
        """Read tokens as the base class does."""
        if sum(map(len, list(self.values()))) > self._most:
            self.clear()
        return super().read(tokens, limit)

    def learn(self, keys, values):
        """Remember the columns of values of some keys."""
        self._n_learnt += len(keys)
        if self._n_learnt > self._most:
            self.clear()
            self._n_learnt = len(keys)
        for key, value in zip(keys, values, strict=True):
            self[key][value]

    def read_few(self, X, dtype, limit, most_strange):
        """Read a few sequences, at a tenth of what a `Stream` costs for one.

        Parameters
        ----------
        X : list of lists of tokens
        dtype, limit : dtype and float
            Type of the values, and the largest absolute value allowed.
        most_strange : int
            So many tokens, or more, must have columns for half of their features.

        Returns
        -------
        tokens : LooseRows or None
            None for tokens that `read` does not read, or one of which repeats a feature.
        """
        # Kernels would read beyond the tokens of a list that another thread makes longer.
        X = list(map(list.copy, X))
        tokens = X[0] if len(X) == 1 else list(chain.from_iterable(X))
        found = self.read(tokens, limit)
        if found is None:
            return None
        columns, lengths, positions, numbers = found
        ends, values, n_given = offsets_of(lengths), numbers, len(columns)
        if len(numbers):
            values = np.ones(n_given)
            values[positions] = numbers.astype(dtype)
        n, repeats = sort_rows(ends, columns, values)
        if repeats or (len(lengths) >= most_strange and 2 * n <= n_given):
            return None
        return LooseRows(ends, columns[:n], values[:n], offsets_of(map(len, X)))


_TOKENS_AT_ONCE = 500
# Failures to read tokens as plain ones, after which it is no longer tried.
_MOST_FAILURES = 20


class LooseRows(NamedTuple):
    """Tokens of a few sequences as they are read, the columns of each sorted and distinct."""

    ends: np.ndarray  # (n_rows + 1,) int64
    columns: np.ndarray  # (n_entries,) int32
    values: np.ndarray  # (n_entries,) values, or (0,) when all are one
    offsets: np.ndarray  # (n_sequences + 1,) int64

    def copy(self):
        """The same with arrays of its own, except the offsets."""
        parts = map(np.ndarray.copy, self[:-1])
        return LooseRows(*parts, self.offsets)


class Stream:
    """Sequences being read into a CSR matrix.

    Takes four bytes for each attribute while reading, and its value's unless all are 1.

    Parameters
    ----------
    dtype : {np.float64, np.float32}
        Type of the values.
    array_lengths : dict of str to int, default=None
        Length of the arrays of each known feature; new features are added.
    wide : list of str, default=None
        Features whose arrays are not among the rows but become blocks. By default, `to_rows` finds
        them.

    Attributes
    ----------
    codes : NewCodes
        Numbers of the attributes.
    """

    def __init__(self, dtype, array_lengths=None, wide=None):
        self.dtype = check_float_dtype(dtype)
        self.limit = float(np.finfo(self.dtype).max)
        self.codes = NewCodes()
        # Buffers of int32 and `dtype`. A bytearray grows in place, by whole arrays. There are no
        # values as long as all are one.
        self.columns = bytearray()
        self.values = bytearray()
        self.token_lengths = array("q")
        self.sequence_lengths = array("q")
        self.arrays = ArrayValues({} if array_lengths is None else array_lengths, self.limit)
        self.wide, self._failures = wide, 0

    def read(self, X):
        """Read all sequences of `X`."""
        for chunk in _chunks(X):
            self._read_chunk(chunk)
        if not self.sequence_lengths:
            raise DataError("Found an empty batch: at least one {sequence} is required.")
        return self

    def _read_chunk(self, chunk):
        """Read sequences at once, or one at a time where tokens are not plain."""
        tokens = chunk[0] if len(chunk) == 1 else list(chain.from_iterable(chunk))
        found = None
        if self._failures <= _MOST_FAILURES:
            found = self.codes.read(tokens, self.limit)
            self._failures += found is None
        if found is None and len(chunk) > 1:
            for sequence in chunk:
                self._read_chunk([sequence])
            return
        if found is None:
            i = len(self.sequence_lengths)
            names, *rest = read_tokens(tokens, self.limit, i, self._add_array)
            found = np.fromiter(self.codes.codes(names), np.int32, len(names)), *rest
        columns, lengths, positions, values = found
        if len(values) and not self.values:
            self.values += np.ones(len(self.columns) // 4, self.dtype).data
        if len(values) or self.values:
            of_chunk = np.ones(len(columns), self.dtype)
            of_chunk[np.array(positions, np.int64)] = np.array(values, np.float64)
            self.values += of_chunk.data
        self.columns += columns.data
        self.token_lengths.extend(lengths)
        self.sequence_lengths.extend(map(len, chunk))

    def _add_array(self, t, name, vector):
        self.arrays.add(len(self.token_lengths) + t, name, vector)

    def to_rows(self):
        """Data, numbers of attributes and `indptr` of all tokens; int8 if every value is 1.

        The numbers of the columns of wide arrays follow the others.
        """
        columns = np.frombuffer(self.columns, np.int32)
        data = shared_ones(len(columns), np.int8)
        if self.values:
            data = np.frombuffer(self.values, self.dtype)
        indptr = to_offsets(self.token_lengths)
        n_rows, find = len(self.token_lengths), self.codes.codes
        if self.wide is None:
            self.wide = self.arrays.wide(n_rows)
        if self.arrays or self.wide:
            parts = [(data, columns, indptr, 0), *self.arrays.parts(n_rows, find, self.wide)]
            data, columns, indptr = merge_rows(parts, self.dtype, 0)
            if self.wide:
                wide = [self.arrays.codes_of(name, find) for name in self.wide]
                columns = np.concatenate([columns, *wide])
        return data, columns, indptr

    def split(self, columns, n):
        """Columns of the rows, which are the first `n`, and of each wide array."""
        ends = np.cumsum([self.arrays.lengths[name] for name in self.wide], dtype=int)
        return columns[:n], np.split(columns[n:], ends[:-1]) if self.wide else []

    def to_batch(self, matrix, feature_names, of_wide):
        """Batch of the sequences, with the matrix of their tokens.

        ``of_wide`` has the columns of the wide arrays, negative for those that are left out.
        """
        offsets, n_rows = to_offsets(self.sequence_lengths), len(self.token_lengths)
        batch, placed = to_batch(matrix, offsets, feature_names, self.dtype), []
        for name, columns in zip(self.wide, of_wide, strict=True):
            values, order = self.arrays.matrix(name, n_rows, self.dtype), np.argsort(columns)
            order = order[columns[order] >= 0]
            # Names are sorted as strings, and others may stand between them.
            for run in np.split(order, np.flatnonzero(np.diff(columns[order]) != 1) + 1):
                if len(run):
                    block = DenseBlock(np.ascontiguousarray(values[:, run]))
                    placed.append(Placed(int(columns[run[0]]), block))
        if not placed:
            return batch
        placed = tuple(sorted(placed, key=lambda one: one.start))
        return SequenceBatch._of_blocks(
            batch.X, placed, offsets, feature_names, {"transition_X": None, "keep_zeros": True}
        )


def to_batch(matrix, offsets, feature_names, dtype):
    """Batch of a matrix from `canonical`, which is changed."""
    if are_ones(matrix.data):
        matrix.data = shared_ones(matrix.nnz, dtype)
    else:
        matrix.data = matrix.data.astype(dtype, copy=False)
    return SequenceBatch._of_valid(
        matrix, offsets, feature_names=feature_names, keep_zeros=stores_zeros(matrix)
    )


def _chunks(X):
    """Yield lists of sequences with so many tokens that the overhead of a call is small.

    Sequences that `X` makes on the way come one at a time: it may use the same list again.
    """
    stays = isinstance(X, (list, tuple, np.ndarray))
    chunk, n_tokens = [], 0
    for i, sequence in enumerate(iterate_level(X, "X", "{sequence}s")):
        is_list = stays and type(sequence) is list
        if chunk and not is_list:
            yield chunk
            chunk, n_tokens = [], 0
        tokens = list(sequence if is_list else iterate_level(sequence, i))
        chunk.append(tokens)
        n_tokens += len(tokens)
        if n_tokens >= _TOKENS_AT_ONCE or not is_list:
            yield chunk
            chunk, n_tokens = [], 0
    if chunk:
        yield chunk


def renumber(numbers, new):
    """Replace each number of an array by ``new[number]``, of the same type, in place."""
    for part in pieces(numbers):
        # In place: mode "clip" does not buffer the output.
        np.take(new, part, out=part, mode="clip")


def canonical(data, columns, indptr, n_columns, dtype):
    """CSR matrix without entries that have no column, duplicates summed; works in place."""
    indptr = indptr.astype(np.int64, copy=False)
    n, repeats = sort_rows(indptr, columns, _values(data))
    matrix = as_canonical(data[:n], columns[:n], indptr, n_columns)
    if repeats:
        matrix.has_canonical_format = False
        # Sums of int8 could overflow.
        matrix.data = matrix.data.astype(dtype, copy=False)
        matrix.sum_duplicates()
    return matrix


def _values(data):
    """Values as kernels take them: none where all are one."""
    return np.empty(0) if are_ones(data) else data


def as_canonical(data, columns, indptr, n_columns):
    """CSR matrix of arrays that are known to be sorted, without duplicates."""
    matrix = sp.csr_matrix((data, columns, indptr), shape=(len(indptr) - 1, n_columns))
    matrix.has_canonical_format = True
    return matrix


def keep_frequent(matrix, min_freq, frequency=None):
    """CSR matrix of the columns that occur in enough rows, and the mask of these.

    Works in place. The matrix must be canonical: then no row counts twice. A `frequency` has counts
    of other rows, to which the matrix's are added.
    """
    frequency = np.zeros(matrix.shape[1], np.int64) if frequency is None else frequency
    for part in pieces(matrix.indices):
        np.add.at(frequency, part, 1)
    is_kept = frequency >= min_freq
    if is_kept.all():
        return matrix, is_kept
    column_of = np.where(is_kept, is_kept.cumsum() - 1, NO_COLUMN).astype(np.int32)
    data, columns, indptr = matrix.data, matrix.indices, matrix.indptr
    n = keep_columns(column_of, indptr, columns, _values(data))
    return as_canonical(data[:n], columns[:n], indptr, np.count_nonzero(is_kept)), is_kept
