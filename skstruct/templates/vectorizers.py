"""Features straight from token columns, by templates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import pairwise
from numbers import Integral
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from skstruct.kernels.templates.combine import hash_template
from skstruct.sequences import SequenceBatch
from skstruct.templates.learnt import LearntFeatures, learn_features
from skstruct.templates.numbering import gather, run_for_patterns
from skstruct.templates.reader import TemplateReader, check_templates
from skstruct.templates.syntax import parse_template, template_lines
from skstruct.utils.garbage import collector_paused
from skstruct.utils.persistence import Persistent
from skstruct.utils.public_paths import set_module

__all__ = ["HashingTemplateVectorizer", "TemplateVectorizer"]


class _BaseTemplateVectorizer(
    Persistent, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """What both vectorisers share: reading templates and tokens."""

    _parameter_constraints: ClassVar[dict] = {
        "template": "no_validation",
        "functions": [dict, None],
        "dtype": "no_validation",
        "n_jobs": [Integral, None],
    }

    def _read(self, X, lines, vocabulary=None):
        """Number the columns of X that the template needs."""
        # A generator is somebody else's code, which may leave garbage.
        with nullcontext() if isinstance(X, Iterator) else collector_paused():
            return TemplateReader(X, lines, self.functions or {}, vocabulary)

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


@set_module("skstruct")
class TemplateVectorizer(LearntFeatures, _BaseTemplateVectorizer):
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
    ``B``, ``b``                       at the start of a line: a feature of transitions; without a
                                       macro, the weights of label pairs that chains have anyway
    ``*``                              at the start of a line: both
    ``#``                              starts a comment
    =================================  =============================================================

    Nothing is done for each token in Python but looking it up in a dict: functions see every
    distinct value once, and after the fit only values that are new to them; combinations are
    numbered and counted in compiled code; and names are made only when they are asked for.

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
    n_jobs : int, default=None
        Number of threads in which `transform` looks features up, -1 means all processors. The
        result is the same for any number. None means 1 unless in a `joblib.parallel_config`
        context.

    Attributes
    ----------
    template_ : list of str
        Lines of the template in use.
    n_columns_ : int
        Columns of a token.
    n_features_ : int
        Number of features of tokens.

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

    Lines such as ``B01:%x[-1,0]/%x[0,0]`` make a second matrix, the batch's ``transition_X``:
    features of the transition into each token, which have a weight for every label pair. First
    tokens have none. ``get_transition_feature_names_out`` makes their names.

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

    def __init__(self, template=None, *, functions=None, min_freq=1, dtype=np.float64, n_jobs=None):
        self.template = template
        self.functions = functions
        self.min_freq = min_freq
        self.dtype = dtype
        self.n_jobs = n_jobs

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
        reader.sort_values()
        features, chosen, matrix = learn_features(reader, self.min_freq, dtype)
        if len(chosen) == 0:
            raise ValueError(f"No feature occurs in at least {self.min_freq} token(s).")
        transitions, transition_matrix = None, None
        if reader.observes_transitions:
            observer, transitions = reader.for_transitions(), LearntFeatures()
            *found, transition_matrix = learn_features(observer, self.min_freq, dtype)
            transitions._keep(observer, *found)
        self._keep(reader, features, chosen)
        self.n_columns_ = reader.n_columns
        self._transitions = transitions
        return SequenceBatch(matrix, reader.offsets, transition_X=transition_matrix)

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
        reader = self._read(X, self.template_, self._tables()[0])
        if reader.n_columns not in (None, self.n_columns_):
            raise ValueError(
                f"Tokens have {reader.n_columns} column(s), but {type(self).__name__} was fitted "
                f"on {self.n_columns_}."
            )
        dtype = self._checked_dtype()
        matrix, transition_matrix = self._find(reader, dtype, self.n_jobs), None
        transitions = getattr(self, "_transitions", None)
        if transitions is not None:
            transition_matrix = transitions._find(reader.for_transitions(), dtype, self.n_jobs)
        return SequenceBatch(matrix, reader.offsets, transition_X=transition_matrix)

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
        return self._all_names()

    def get_transition_feature_names_out(self):
        """Name of each column of the batch's `transition_X`.

        Returns
        -------
        names : ndarray of shape (n_transition_features,), dtype object
            Empty where the template has no features of transitions.
        """
        check_is_fitted(self)
        transitions = getattr(self, "_transitions", None)
        return np.empty(0, dtype=object) if transitions is None else transitions._all_names()

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


@set_module("skstruct")
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
    n_transition_features : int, default=2**12
        The same of the batch's ``transition_X``, where the template has features of transitions.
        Each takes a weight for every label pair.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the values.
    n_jobs : int, default=None
        Number of threads in which `transform` looks features up, -1 means all processors. The
        result is the same for any number. None means 1 unless in a `joblib.parallel_config`
        context.

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
        "n_transition_features": [Interval(Integral, 1, 2**31 - 1, closed="both")],
    }

    def __init__(
        self,
        template=None,
        *,
        functions=None,
        n_features=2**20,
        n_transition_features=2**12,
        dtype=np.float64,
        n_jobs=None,
    ):
        self.template = template
        self.functions = functions
        self.n_features = n_features
        self.n_transition_features = n_transition_features
        self.dtype = dtype
        self.n_jobs = n_jobs

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
        matrix, transition_matrix = self._hash(reader, self.n_features), None
        if reader.observes_transitions:
            transition_matrix = self._hash(reader.for_transitions(), self.n_transition_features)
        return SequenceBatch(matrix, reader.offsets, transition_X=transition_matrix)

    def _hash(self, reader, n_columns):
        numbers = np.empty((len(reader.patterns), reader.n_rows), np.int32)

        def take_hashes(i):
            hash_template(reader.tokens, reader.patterns[i], reader.pieces, n_columns, numbers[i])

        run_for_patterns(take_hashes, reader, self.n_jobs)
        return gather(reader, numbers, n_columns, self._checked_dtype())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
