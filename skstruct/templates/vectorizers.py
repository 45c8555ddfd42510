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

from skstruct.sequences import SequenceBatch
from skstruct.templates.learnt import LearntFeatures, learn_features
from skstruct.templates.reader import TemplateReader
from skstruct.templates.syntax import template_lines
from skstruct.utils.garbage import collector_paused
from skstruct.utils.options import check_float_dtype
from skstruct.utils.persistence import Persistent
from skstruct.utils.public_paths import set_module

__all__ = ["BaseTemplateVectorizer", "TemplateVectorizer", "fitted_vectorizer"]


class BaseTemplateVectorizer(
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


@set_module("skstruct")
class TemplateVectorizer(BaseTemplateVectorizer):
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
        **BaseTemplateVectorizer._parameter_constraints,
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
        dtype = check_float_dtype(self.dtype)
        reader = self._read(X, self._given_lines())
        if reader.n_columns is None:
            raise ValueError("There is no token in these sequences.")
        reader.sort_values()
        features, matrix = learn_features(reader, self.min_freq, dtype)
        if features.n_features_ == 0:
            raise ValueError(f"No feature occurs in at least {self.min_freq} token(s).")
        transitions, transition_matrix = None, None
        if reader.observes_transitions:
            observer = reader.for_transitions()
            transitions, transition_matrix = learn_features(observer, self.min_freq, dtype)
        self._keep(reader.n_columns, features, transitions)
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
        reader = self._read(X, self.template_, self._features.vocabulary)
        if reader.n_columns not in (None, self.n_columns_):
            raise ValueError(
                f"Tokens have {reader.n_columns} column(s), but {type(self).__name__} was fitted "
                f"on {self.n_columns_}."
            )
        dtype = check_float_dtype(self.dtype)
        matrix, transition_matrix = self._features.find(reader, dtype, self.n_jobs), None
        if self._transitions is not None:
            observer = reader.for_transitions()
            transition_matrix = self._transitions.find(observer, dtype, self.n_jobs)
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
        return self._features.names()

    def get_transition_feature_names_out(self):
        """Name of each column of the batch's `transition_X`.

        Returns
        -------
        names : ndarray of shape (n_transition_features,), dtype object
            Empty where the template has no features of transitions.
        """
        check_is_fitted(self)
        if self._transitions is None:
            return np.empty(0, dtype=object)
        return self._transitions.names()

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
        names = self._features.names(columns)[which].tolist()
        values = X.data.tolist()
        tokens = [
            {name: value for name, value in zip(names[a:b], values[a:b], strict=True) if value}
            for a, b in pairwise(X.indptr.tolist())
        ]
        return [tokens[a:b] for a, b in pairwise(batch.offsets.tolist())]

    def _keep(self, n_columns, features, transitions):
        self.template_ = features.template_
        self.n_columns_ = n_columns
        self.n_features_ = features.n_features_
        self._features = features
        self._transitions = transitions

    # Stored models name no class but the vectoriser: they have the arrays of the features of
    # tokens among its attributes, and those of the features of transitions as a dict.

    def __getstate__(self):
        state = super().__getstate__()
        features = state.pop("_features", None)
        if features is not None:
            state = {**features.__getstate__(), **state}
            if self._transitions is not None:
                state["_transitions"] = self._transitions.__getstate__()
        return state

    def _restore_state(self):
        state = vars(self)
        if "_codes" not in state:
            return
        arrays = [state.pop(name) for name in ("_values", "_codes", "_groups", "_hashes")]
        state.pop("_of_transitions", None)
        self._features = LearntFeatures(self.template_, *arrays)
        # Absent from models stored before there were features of transitions.
        transitions = state.setdefault("_transitions", None)
        if isinstance(transitions, dict):
            self._transitions = LearntFeatures.__new__(LearntFeatures)
            self._transitions.__setstate__(transitions)

    def _check_state(self):
        if not hasattr(self, "_features"):
            return
        self._features.check()
        if self.n_features_ != self._features.n_features_:
            raise ValueError(
                f"n_features_ is {self.n_features_}, but there are "
                f"{self._features.n_features_} features."
            )


def fitted_vectorizer(features, n_columns, transitions=None):
    """Vectoriser with features that were learnt elsewhere.

    Parameters
    ----------
    features : LearntFeatures
        Of tokens.
    n_columns : int
        Columns of a token.
    transitions : LearntFeatures, default=None
        Features of transitions.

    Returns
    -------
    vectorizer : TemplateVectorizer
    """
    vectorizer = TemplateVectorizer(features.template_)
    vectorizer._keep(n_columns, features, transitions)
    return vectorizer
