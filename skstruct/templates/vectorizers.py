"""Vectorisers by templates of the user's own, learning and hashing, and their base classes."""

from numbers import Integral
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval

from skstruct.features.base import LearningVectorizer, keep_names_in, names_in
from skstruct.features.dicts import FEW, as_dicts
from skstruct.sequences import ReturnsBatches, SequenceBatch
from skstruct.templates.learnt import StoredFeatures, learn_features, merge_features
from skstruct.templates.numbering import gather, hash_templates, run_for_patterns
from skstruct.templates.reader import TemplateReader, compose_all, plan_of
from skstruct.templates.syntax import default_lines, template_lines
from skstruct.utils.declared import Count, Maybe
from skstruct.utils.messages import check_float_dtype
from skstruct.utils.persistence import Persistent, require_fitted, set_module
from skstruct.utils.progress import fit_context
from skstruct.utils.transaction import draft_of


class BaseTemplateVectorizer(
    ReturnsBatches, Persistent, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Base of the vectorisers by templates: parameters, and reading of templates and tokens.

    A subclass without the parameters `template` and `functions` defines ``_given_lines`` and
    ``_functions`` itself.
    """

    _parameter_constraints: ClassVar[dict] = {
        "template": "no_validation",
        "functions": [dict, None],
        "dtype": "no_validation",
        "n_jobs": [Integral, None],
    }

    def _read(self, X, lines, vocabulary=None, **columns):
        """Read the columns of X that the template uses."""
        made = {"derive": self._derived_columns(), "replace": self._replaced()}
        return TemplateReader(X, lines, self._functions(), vocabulary, **made, **columns)

    def _given_lines(self):
        """Lines of the template, or a function that makes them from the number of columns."""
        return default_lines if self.template is None else template_lines(self.template)

    def _functions(self):
        """Functions that the template may use, by name."""
        return self.functions or {}

    def _derived_columns(self):
        """Makers of columns in addition to the tokens'; see `TemplateReader`."""
        return ()

    def _replaced(self):
        """Makers of values in place of what functions return; see `TemplateReader`."""
        return {}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class LearningTemplateVectorizer(
    LearningVectorizer, BaseTemplateVectorizer, auto_wrap_output_keys=None
):
    """Base of the vectorisers that learn a column for each feature."""

    _parameter_constraints: ClassVar[dict] = {
        **BaseTemplateVectorizer._parameter_constraints,
        "min_freq": [Interval(Integral, 1, None, closed="left")],
    }

    _stored: ClassVar[dict] = {
        "n_columns_": Count(1),
        "_features": StoredFeatures(),
        "_transitions": Maybe(StoredFeatures(of_transitions=True)),
    }
    _complete = ("n_columns_", "_features", "_transitions")

    def _fit(self, X, *, is_part=False):
        """Learn the features.

        A part of the data keeps all of them, however rare, and may have no token or feature.
        """
        min_freq = 1 if is_part else self.min_freq
        dtype = check_float_dtype(self.dtype)
        reader = self._read(X, self._given_lines())
        if reader.n_columns is None:
            if is_part:
                return SequenceBatch(np.empty((0, 0), dtype), reader.offsets)
            raise ValueError("Found no token: every sequence is empty.")
        if not is_part:
            self._choose_lines(reader)
        reader.sort_values()
        features, matrix = learn_features(reader, min_freq, dtype)
        if features.n_features_ == 0 and not is_part:
            raise self._none_frequent()
        transitions, transition_matrix = None, None
        if reader.observes_transitions:
            observer = reader.for_transitions()
            transitions, transition_matrix = learn_features(observer, min_freq, dtype)
        self._keep(reader.n_columns, features, transitions, reader.names)
        return SequenceBatch._of_valid(matrix, reader.offsets, transition_X=transition_matrix)

    def _choose_lines(self, reader):
        """Leave out lines of the template, given a reader of all data."""

    def _none_frequent(self):
        """Error where no feature is left."""
        return ValueError(
            f"No feature occurs in at least {self.min_freq} token(s): lower min_freq, or change "
            "the template."
        )

    def _merge(self, parts, frequency):
        """Unite the features of parts of the data.

        Parameters
        ----------
        parts : list of LearningTemplateVectorizer
            Fitted to a part each, with ``min_freq=1``.
        frequency : list of ndarray of shape (n_features,)
            Number of tokens of a part with each of its features.

        Returns
        -------
        columns : list of ndarray of shape (n_features,)
            For each feature of each part its column, -1 for rare ones.
        """
        features, columns = merge_features(
            [part._features for part in parts], frequency, self.min_freq
        )
        if features.n_features_ == 0:
            raise self._none_frequent()
        self._keep(parts[0].n_columns_, features, None, names_in(parts[0]))
        return columns

    def transform(self, X) -> SequenceBatch:
        """Vectorise; features that were not learnt are ignored.

        Parameters
        ----------
        X : iterable of sequences of tokens
            A token is a string or a tuple or list of columns, as many as in `fit`. A sequence may
            also be a data frame or a 2-D array, whose rows are the tokens.

        Returns
        -------
        batch : SequenceBatch
            Sparse, one row for each token.

        Raises
        ------
        ValueError
            If there is no sequence, a token is invalid or has a different number of columns, or
            data frames have other columns than in `fit`.

        Warns
        -----
        UserWarning
            If there are twenty tokens or more, and nearly no feature was seen in training.
        """
        require_fitted(self)
        # Looked up once, so that all is of one fit, whatever another thread does.
        features = self._features
        columns = {"width": self.n_columns_, "names": names_in(self)}
        reader = self._read(X, self.template_, features.vocabulary, **columns)
        dtype = check_float_dtype(self.dtype)
        if len(reader.offsets) <= FEW + 1 and self._transitions is None:
            tokens = features.find_few(reader, self.n_jobs)
            return SequenceBatch._of_tokens(tokens, features.n_features_, dtype)
        matrix, transition_matrix = features.find(reader, dtype, self.n_jobs), None
        if self._transitions is not None:
            observer = reader.for_transitions()
            transition_matrix = self._transitions.find(observer, dtype, self.n_jobs)
        return SequenceBatch._of_valid(matrix, reader.offsets, transition_X=transition_matrix)

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Name of each column: the template line as CRF++ expands it.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of shape (n_features,), dtype object
        """
        require_fitted(self)
        return self._features.names()

    def get_transition_feature_names_out(self):
        """Name of each column of the batch's `transition_X`.

        Returns
        -------
        names : ndarray of shape (n_transition_features,), dtype object
            Empty if the template has no features of transitions.
        """
        require_fitted(self)
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
            For each token of each sequence, the features that are stored and their values.
            `SequenceVectorizer` makes the same batch of them, up to the order of columns.

        Raises
        ------
        ValueError
            If `batch` is not a `SequenceBatch` or has a different number of columns.
        """
        require_fitted(self)

        def names_of(columns):
            distinct, which = np.unique(columns, return_inverse=True)
            return self._features.names(distinct)[which]

        return as_dicts(batch, self.n_features_, names_of)

    def _keep(self, n_columns, features, transitions, names=None):
        with draft_of(self) as draft:
            draft.n_columns_, draft._features, draft._transitions = n_columns, features, transitions
            keep_names_in(draft, names)

    @property
    def template_(self):
        """Lines of the template."""
        return self._features.template_

    @property
    def n_features_(self):
        """Number of features of tokens."""
        return self._features.n_features_

    def _check_state(self):
        transitions = vars(self).get("_transitions")
        if transitions is not None and transitions.template_ != self.template_:
            raise ValueError("features of transitions belong to another template.")


@set_module("skstruct")
class TemplateVectorizer(LearningTemplateVectorizer, auto_wrap_output_keys=None):
    r"""Turn sequences of tokens into a sequence batch, by templates in CRF++'s format.

    A token is a string or a tuple of columns, such as the word and its part of speech. Each line
    of a template makes a feature of the columns of a token and its neighbours. The line
    ``"U05:%x[-1,0]/%x[0,0]"`` makes the feature ``U05:the/cat`` at the word "cat" after "the".
    Outside of the sequence, values are ``_B-1``, ``_B-2``, ..., and ``_B+1``, ... Lines with the
    same text around their macros share features.

    =================================  =============================================================
    In a template                      Meaning
    =================================  =============================================================
    ``%x[row,column]``                 value of a column, counted from 0, `row` tokens ahead
    ``%x[row,column|lower|suffix3]``   functions of the value, applied from left to right
    ``%X[row,column]``                 the value in lower case
    ``%m[row,column,"pattern"]``       the part that matches the pattern, or an empty string
    ``%t[row,column,"pattern"]``       ``true`` if the pattern matches, else ``false``
    ``%x[@1,column]``                  value of the first token; ``@-1`` of the last
    ``U``, ``u``                       at the start of a line: a feature of tokens
    ``B``, ``b``                       at the start of a line: a feature of transitions; without a
                                       macro, the transitions, which all taggers have
    ``*``                              at the start of a line: both
    ``#``                              starts a comment
    =================================  =============================================================

    Python code runs only once for each distinct value, apart from a dict look-up of each token.
    Functions are called once for each distinct value, and after the fit only for new ones.
    Combinations are numbered and counted in compiled code, and names are made on demand.

    Parameters
    ----------
    template : str, path-like, list of str or None, default=None
        The template, the path of its file, or its lines. A string of a single line without a
        macro is a path. The default template has words in a window of five with bigrams and
        spelling, and of every other column a window of five with bigrams and trigrams.
    functions : dict of str to callable, default=None
        Functions for use in the template, from a string to a string, integer or bool, or to None
        for no feature. Built in are ``lower``, ``digits`` (each as 0), ``shape`` (``Xx-dd``),
        ``shortshape`` (the shape without repetitions), ``length``, ``prefix1``, ``prefix2``, ...
        and ``suffix1``, ...
    min_freq : int, default=1
        Minimum number of training tokens with a feature for it to get a column.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the values.
    n_jobs : int, default=None
        Number of threads for `transform`; -1 means all processors. The result does not depend on
        it. None means 1 unless in a `joblib.parallel_config` context.

    Attributes
    ----------
    template_ : list of str
        Lines of the template.
    n_columns_ : int
        Number of columns of a token.
    n_features_ : int
        Number of features of tokens.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, if sequences are data frames.

    See Also
    --------
    HashingTemplateVectorizer : The counterpart for streams, with bounded memory.
    SequenceVectorizer : Vectorise features computed in Python.

    Notes
    -----
    Columns are sorted by the lines of the template, and within a line by the values, and so do
    not depend on the order of the data. Batches have no feature names, which would take longer to
    make than the batch; ``get_feature_names_out`` makes them.

    Values are strings; integers and bools are converted by ``str``. Other values, and tokens with
    different numbers of columns, raise an error. Columns that the template does not use are
    ignored.

    As in CRF++, features are the same if their names are: ``%x[0,0]/%x[1,0]`` makes the same
    feature of "a/b", "c" and of "a", "b/c". Blanks at the end of a line belong to the names. Names
    are compared by 64-bit hashes, and in full if these are equal.

    In patterns, ``.`` is any character, ``\d`` a digit, ``\a`` a letter, ``\w`` either of them,
    ``\l`` a lower-case and ``\u`` an upper-case letter, ``\p`` punctuation, and ``\s`` a space;
    the same letters in upper case are the complements. ``*`` (lazy) and ``?`` repeat what is
    before them or make it optional, and ``^`` and ``$`` match the ends. Unlike in Wapiti, these
    are classes of Unicode characters, and neither patterns nor functions apply to the values
    outside of the sequence.

    Lines such as ``B01:%x[-1,0]/%x[0,0]`` make a second matrix, the batch's ``transition_X``, with
    features of the transition into each token. These have a weight for every transition. First
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

    def __init__(
        self, template=None, *, functions=None, min_freq=1, dtype=np.float64, n_jobs=None
    ) -> None:
        self.template = template
        self.functions = functions
        self.min_freq = min_freq
        self.dtype = dtype
        self.n_jobs = n_jobs


@set_module("skstruct")
class HashingTemplateVectorizer(BaseTemplateVectorizer, auto_wrap_output_keys=None):
    r"""Turn sequences of tokens into a sequence batch by templates, without learning anything.

    Like `TemplateVectorizer`, but the column of a feature is a hash of its name. It needs no fit
    and no memory beyond the batch. All batches of a stream have the same columns, as
    ``partial_fit`` requires. Different features may share a column, and columns have no names.

    Parameters
    ----------
    template : str, path-like, list of str or None, default=None
        As in `TemplateVectorizer`.
    functions : dict of str to callable, default=None
        As in `TemplateVectorizer`.
    n_features : int, default=2**20
        Number of columns, ``2**31 - 1`` at most.
    n_transition_features : int, default=2**12
        Number of columns of the batch's ``transition_X``, if the template has features of
        transitions. Each has a weight for every transition.
    dtype : {np.float64, np.float32}, default=np.float64
        Type of the values.
    n_jobs : int, default=None
        Number of threads for `transform`; -1 means all processors. The result does not depend on
        it. None means 1 unless in a `joblib.parallel_config` context.

    See Also
    --------
    TemplateVectorizer : The counterpart with a column for each feature.

    Notes
    -----
    The hash depends on the name alone, and not on the process, the machine, or the order of the
    template's lines.

    Examples
    --------
    >>> from skstruct import HashingTemplateVectorizer
    >>> vectorizer = HashingTemplateVectorizer("U0:%x[0,0]\nU1:%x[-1,0]", n_features=1000)
    >>> vectorizer.transform([["the", "cat"], ["cats"]])
    SequenceBatch(n_sequences=2, n_rows=3, n_features=1000)
    """

    _parameter_constraints: ClassVar[dict] = {
        **BaseTemplateVectorizer._parameter_constraints,
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
    ) -> None:
        self.template = template
        self.functions = functions
        self.n_features = n_features
        self.n_transition_features = n_transition_features
        self.dtype = dtype
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X=None, y=None) -> Self:
        """Check the parameters; nothing is learnt.

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
        check_float_dtype(self.dtype)
        lines = self._given_lines()
        if not callable(lines):
            compose_all(plan_of(tuple(lines)), self._functions())
        return self

    def partial_fit(self, X=None, y=None) -> Self:
        """Check the parameters, like `fit`.

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

    def transform(self, X) -> SequenceBatch:
        """Vectorise.

        Parameters
        ----------
        X : iterable of sequences of tokens
            A token is a string or a tuple or list of columns. A sequence may also be a data
            frame or a 2-D array, whose rows are the tokens.

        Returns
        -------
        batch : SequenceBatch
            Sparse, one row for each token. Values of features that share a column are summed.

        Raises
        ------
        ValueError
            If the template cannot be read, or a token is invalid.
        """
        self.fit()
        reader = self._read(X, self._given_lines())
        matrix, transition_matrix = self._hash(reader, self.n_features), None
        if reader.observes_transitions:
            transition_matrix = self._hash(reader.for_transitions(), self.n_transition_features)
        return SequenceBatch._of_valid(matrix, reader.offsets, transition_X=transition_matrix)

    def _hash(self, reader, n_columns):
        numbers = np.empty((reader.n_patterns, reader.n_rows), np.int32)

        def take_hashes(*bounds):
            given = reader.tokens, reader.patterns, bounds, reader.hashes
            hash_templates(*given, n_columns, numbers)

        run_for_patterns(take_hashes, reader, self.n_jobs)
        return gather(reader, numbers, n_columns, check_float_dtype(self.dtype))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
