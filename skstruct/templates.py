"""Features straight from token columns, by templates."""

from __future__ import annotations

from itertools import compress, pairwise, repeat
from numbers import Integral
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from skstruct._template_features import (
    TemplateReader,
    check_templates,
    empty_slots,
    expand_group,
    expand_names,
    find_namesakes,
    gather,
    group_literals,
    keep_frequent,
    number_all,
    order_features,
)
from skstruct._template_syntax import parse_template, template_lines
from skstruct.kernels.templates import (
    Features,
    fill_slots,
    find_template,
    hash_template,
    mark_used,
)
from skstruct.sequences import SequenceBatch

__all__ = ["HashingTemplateVectorizer", "TemplateVectorizer"]


class _BaseTemplateVectorizer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """What both vectorisers share: reading templates and tokens."""

    _parameter_constraints: ClassVar[dict] = {
        "template": "no_validation",
        "functions": [dict, None],
        "dtype": "no_validation",
    }

    def _read(self, X, lines):
        """Number the columns of X that the template needs."""
        return TemplateReader(X, lines, self.functions or {})

    def _given_lines(self):
        return None if self.template is None else template_lines(self.template)

    def _checked_dtype(self):
        dtype = np.dtype(self.dtype)
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be np.float64 or np.float32, got {self.dtype!r}.")
        return dtype

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class TemplateVectorizer(_BaseTemplateVectorizer):
    r"""Turn sequences of tokens into a sequence batch, by templates in CRF++'s format.

    A token is a string or a tuple of columns, such as the word and its part of speech. A
    template says what of it and its neighbours becomes a feature: of ``"U05:%x[-1,0]/%x[0,0]"``
    comes at each token one feature, named ``U05:the/cat`` where the word before is "the" and the
    word "cat". Outside of the sequence, the words are ``_B-1``, ``_B-2``, ..., and ``_B+1``, ...
    Lines with the same text around their macros share features.

    =================================  =============================================================
    in a template                      stands for
    =================================  =============================================================
    ``%x[row,column]``                 value of a column, counted from 0, `row` tokens further on
    ``%x[row,column|lower|suffix3]``   functions of it, applied from left to right
    ``%X[row,column]``                 in lower case
    ``%m[row,column,"pattern"]``       the part that the pattern matches, or nothing
    ``%t[row,column,"pattern"]``       ``true`` or ``false``: whether the pattern matches
    ``%x[@1,column]``                  of the first token; ``@-1`` of the last
    ``U``, ``u``                       at the start of a line: a feature of tokens
    ``B``, ``b``                       weights of label pairs; chains have them anyway
    ``#``                              starts a comment
    =================================  =============================================================

    Nothing is done for each token in Python but looking up its columns in a dict: functions see
    every distinct value once, combinations are numbered and counted in compiled code, and names
    are made only when they are asked for.

    Parameters
    ----------
    template : str, path-like, list of str or None, default=None
        The template, the path of its file, or its lines. A string that is a single line without
        a macro is taken for a path if there is such a file. None stands for words in a window of
        five with bigrams and the word's spelling, and a window of five with bigrams and trigrams
        of every other column.
    functions : dict of str to callable, default=None
        Functions for use in the template, from string to string, integer or bool, or to None
        where there shall be no feature. Besides, there are ``lower``, ``digits`` (each as 0),
        ``shape`` (``Xx-dd``), ``shortshape`` (the same without repetitions), ``length``,
        ``prefix1``, ``prefix2``, ... and ``suffix1``, ...
    min_freq : int, default=1
        Least number of tokens of the training data that a feature must occur in to get a column.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the values.

    Attributes
    ----------
    template_ : list of str
        Lines of the template in use.
    n_columns_ : int
        Columns of a token.
    n_features_ : int
        Number of features.

    See Also
    --------
    HashingTemplateVectorizer : The same with bounded memory, for streams.
    SequenceVectorizer : For features that are computed in Python.

    Notes
    -----
    Columns are in the order of the template's lines, and of one line in the order of the values:
    they do not depend on the order of the data. Batches carry no names, which would take longer
    than all the rest; ``get_feature_names_out`` makes them.

    Values are strings; integers and bools are taken as ``str`` writes them, and everything else
    is refused, as are tokens with different numbers of columns. Columns that the template does
    not use are not looked at.

    As in CRF++, features are told apart by their names alone: ``%x[0,0]/%x[1,0]`` makes the same
    of "a/b", "c" as of "a", "b/c". Names are compared by 64-bit hashes, and where these agree,
    letter by letter.

    In patterns, ``.`` is any character, ``\d`` a digit, ``\a`` a letter, ``\w`` either, ``\l`` and
    ``\u`` a small and a capital letter, ``\p`` punctuation, ``\s`` a space, in upper case
    anything but that; ``*`` (as few as possible) and ``?`` follow what is repeated or optional,
    and ``^`` and ``$`` stand for the ends. Unlike in Wapiti these are classes of Unicode, and
    neither patterns nor functions apply to the values outside of the sequence.

    Lines such as ``B01:%x[0,0]`` or ``*01:%x[0,0]``, label pairs that depend on the tokens, are
    refused: no tagger has such weights.

    Examples
    --------
    >>> from skstruct import TemplateVectorizer
    >>> X = [[("the", "DT"), ("cat", "NN")], [("cats", "NNS")]]
    >>> vectorizer = TemplateVectorizer("U0:%x[-1,1]/%x[0,1]\nU1:%x[0,0|prefix3]")
    >>> batch = vectorizer.fit_transform(X)
    >>> batch
    SequenceBatch(n_sequences=2, n_rows=3, n_features=5)
    >>> vectorizer.get_feature_names_out()
    array(['U0:DT/NN', 'U0:_B-1/DT', 'U0:_B-1/NNS', 'U1:cat', 'U1:the'],
          dtype=object)
    >>> vectorizer.inverse_transform(batch[1:])
    [[{'U0:_B-1/NNS': 1.0, 'U1:cat': 1.0}]]
    """

    _parameter_constraints: ClassVar[dict] = {
        **_BaseTemplateVectorizer._parameter_constraints,
        "min_freq": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, template=None, *, functions=None, min_freq=1, dtype=np.float64):
        self.template = template
        self.functions = functions
        self.min_freq = min_freq
        self.dtype = dtype

    def fit(self, X, y=None):
        """Learn the features.

        Parameters
        ----------
        X : iterable of sequences of tokens
            A token is a string or a tuple or list of columns. A sequence may also be a data
            frame or a 2-D array, whose rows are the tokens.
        y : None
            Ignored.

        Returns
        -------
        self : TemplateVectorizer

        Raises
        ------
        ValueError
            If the template cannot be read (the message names the line), asks for a column that
            there is not, or makes no feature in `min_freq` tokens; or if a token is of no
            accepted form (the message names the sequence and the token, counted from 0).
        """
        self.fit_transform(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X, y=None):
        """Learn the features, and return the batch; reads `X` once.

        Parameters
        ----------
        X : iterable of sequences of tokens
            As in `fit`.
        y : None
            Ignored.

        Returns
        -------
        batch : SequenceBatch
            Sparse, one row for each token.

        Raises
        ------
        ValueError
            As in `fit`.
        """
        dtype = self._checked_dtype()
        reader = self._read(X, self._given_lines())
        if reader.n_columns is None:
            raise ValueError("There is no token in these sequences.")
        values = reader.sort_values()
        features, numbers, doubtful = number_all(reader)
        order = order_features(features, reader.literals, len(values))
        column_of = np.empty(len(order), np.int32)
        if len(doubtful):
            same = find_namesakes(features, reader.literals, values, doubtful, order)
            order = order[same[order] == order]
        column_of[order] = np.arange(len(order), dtype=np.int32)
        if len(doubtful):
            column_of = column_of[same]
        matrix, kept = keep_frequent(gather(numbers, column_of, len(order), dtype), self.min_freq)
        if len(kept) == 0:
            raise ValueError(f"No feature occurs in at least {self.min_freq} token(s).")
        self._keep(reader, values, features, order[kept])
        return SequenceBatch(matrix, reader.offsets)

    def _keep(self, reader, values, features, chosen):
        """Keep the chosen features, in this order, and the values they are made of."""
        codes = features.codes[chosen]
        used = np.zeros(len(values), bool)
        mark_used(codes, used)
        if not used.all():
            values = list(compress(values, used.tolist()))
            # One more, for the -1 that stands for no value.
            codes = np.append(np.cumsum(used, dtype=np.int32) - np.int32(1), np.int32(-1))[codes]
        self.template_ = reader.lines
        self.n_columns_ = reader.n_columns
        self.n_features_ = len(chosen)
        self._values = values
        self._codes = codes
        self._groups = features.groups[chosen]
        self._hashes = features.hashes[chosen]
        self.__dict__.pop("_lookup", None)

    def transform(self, X):
        """Vectorise with the features learnt; others are ignored.

        Parameters
        ----------
        X : iterable of sequences of tokens
            As in `fit`, with as many columns.

        Returns
        -------
        batch : SequenceBatch
            Sparse, one row for each token.

        Raises
        ------
        ValueError
            If there is no sequence, or a token is of no accepted form or has another number of
            columns.
        """
        check_is_fitted(self)
        reader = self._read(X, self.template_)
        if reader.n_columns not in (None, self.n_columns_):
            raise ValueError(
                f"Tokens have {reader.n_columns} column(s), but {type(self).__name__} was fitted "
                f"on {self.n_columns_}."
            )
        code_of, features = self._tables()
        known = np.fromiter(
            map(code_of.get, reader.values, repeat(-1)), np.int32, len(reader.values)
        )
        numbers = np.empty((len(reader.patterns), reader.n_rows), np.int32)
        for pattern, row in zip(reader.patterns, numbers, strict=True):
            if find_template(reader.tokens, pattern, reader.pieces, known, features, row):
                self._settle(reader, pattern, row)
        matrix = gather(numbers, np.empty(0, np.int32), self.n_features_, self._checked_dtype())
        return SequenceBatch(matrix, reader.offsets)

    def _tables(self):
        """Dict of values and table of features, rebuilt rather than pickled."""
        if not hasattr(self, "_lookup"):
            features = Features(
                self._hashes, self._codes, self._groups, empty_slots(self.n_features_)
            )
            fill_slots(features, self.n_features_)
            self._lookup = dict(zip(self._values, range(len(self._values)), strict=True)), features
        return self._lookup

    def _settle(self, reader, pattern, row):
        """Compare names where a combination only has the hash of a feature."""
        rows = np.flatnonzero(row <= -2)
        combinations, which = np.unique(reader.codes_at(pattern, rows), axis=0, return_inverse=True)
        candidates = np.flatnonzero(np.isin(self._hashes, self._hashes[np.unique(-2 - row[rows])]))
        columns = dict(zip(self._names(candidates), candidates.tolist(), strict=True))
        literals = reader.literals[pattern.group]
        names = expand_group(literals, np.array(reader.values, dtype=object), combinations)
        found = np.array([columns.get(name, -1) for name in names], np.int32)
        row[rows] = found[which.ravel()]

    def get_feature_names_out(self, input_features=None):
        """Name of each column, as CRF++ expands the template.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of shape (n_features,), dtype object
        """
        check_is_fitted(self)
        names = np.empty(self.n_features_, dtype=object)
        names[:] = self._names(np.arange(self.n_features_))
        return names

    def _names(self, columns):
        """Names of some columns, in any order."""
        literals = group_literals(parse_template(self.template_))
        values = np.array(self._values, dtype=object)
        return expand_names(literals, values, self._groups[columns], self._codes[columns])

    def inverse_transform(self, batch):
        """Features and values of each token.

        Parameters
        ----------
        batch : SequenceBatch
            With the columns of this vectoriser.

        Returns
        -------
        X : list of lists of dicts
            For each token of each sequence, the features that are not zero and their values:
            what `SequenceVectorizer` makes the same batch of, up to the order of columns.

        Raises
        ------
        ValueError
            If `batch` is no sequence batch or has another number of columns.
        """
        check_is_fitted(self)
        n_features = self.n_features_
        if not isinstance(batch, SequenceBatch) or batch.n_features != n_features:
            raise ValueError(f"Expected a SequenceBatch of {n_features} features, got {batch!r}.")
        X = sp.csr_matrix(batch.X)
        columns, which = np.unique(X.indices, return_inverse=True)
        names = np.array(self._names(columns), dtype=object)[which].tolist()
        values = X.data.tolist()
        tokens = [
            {name: value for name, value in zip(names[a:b], values[a:b], strict=True) if value}
            for a, b in pairwise(X.indptr.tolist())
        ]
        return [tokens[a:b] for a, b in pairwise(batch.offsets.tolist())]

    def __getstate__(self):
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key != "_lookup"}


class HashingTemplateVectorizer(_BaseTemplateVectorizer):
    r"""Turn sequences of tokens into a sequence batch by templates, without learning anything.

    Like `TemplateVectorizer`, but the column of a feature is a hash of its name. It needs no fit
    and no memory beyond the batch, and batches that are made separately, of a stream, fit
    together: for ``partial_fit``. Different features may share a column, and no column has a
    name.

    Parameters
    ----------
    template : str, path-like, list of str or None, default=None
        As in `TemplateVectorizer`.
    functions : dict of str to callable, default=None
        As in `TemplateVectorizer`.
    n_features : int, default=2**20
        Number of columns, ``2**31 - 1`` at most.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the values.

    See Also
    --------
    TemplateVectorizer : With a column for each feature.

    Notes
    -----
    The hash depends on nothing but the name: not on the process, the machine, or the order of
    the template's lines.

    Examples
    --------
    >>> from skstruct import HashingTemplateVectorizer
    >>> vectorizer = HashingTemplateVectorizer("U0:%x[0,0]\nU1:%x[-1,0]", n_features=1000)
    >>> vectorizer.transform([["the", "cat"], ["cats"]])
    SequenceBatch(n_sequences=2, n_rows=3, n_features=1000)
    """

    _parameter_constraints: ClassVar[dict] = {
        **_BaseTemplateVectorizer._parameter_constraints,
        "n_features": [Interval(Integral, 1, 2**31 - 1, closed="both")],
    }

    def __init__(self, template=None, *, functions=None, n_features=2**20, dtype=np.float64):
        self.template = template
        self.functions = functions
        self.n_features = n_features
        self.dtype = dtype

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X=None, y=None):
        """Check the parameters; there is nothing to learn.

        Parameters
        ----------
        X : None
            Ignored.
        y : None
            Ignored.

        Returns
        -------
        self : HashingTemplateVectorizer
        """
        self._checked_dtype()
        lines = self._given_lines()
        if lines is not None:
            check_templates(parse_template(lines), self.functions or {})
        return self

    def partial_fit(self, X=None, y=None):
        """The same as `fit`.

        Parameters
        ----------
        X : None
            Ignored.
        y : None
            Ignored.

        Returns
        -------
        self : HashingTemplateVectorizer
        """
        return self.fit()

    def transform(self, X):
        """Vectorise.

        Parameters
        ----------
        X : iterable of sequences of tokens
            A token is a string or a tuple or list of columns. A sequence may also be a data
            frame or a 2-D array, whose rows are the tokens.

        Returns
        -------
        batch : SequenceBatch
            Sparse, one row for each token. Features of a token that share a column are added up.

        Raises
        ------
        ValueError
            If the template cannot be read, or a token is of no accepted form.
        """
        self.fit()
        reader = self._read(X, self._given_lines())
        numbers = np.empty((len(reader.patterns), reader.n_rows), np.int32)
        for pattern, row in zip(reader.patterns, numbers, strict=True):
            hash_template(reader.tokens, pattern, reader.pieces, self.n_features, row)
        matrix = gather(numbers, np.empty(0, np.int32), self.n_features, self._checked_dtype())
        return SequenceBatch(matrix, reader.offsets)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
