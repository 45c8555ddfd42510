"""`HashingTemplateVectorizer`: columns of tokens to a batch, by a template and a hash."""

from numbers import Integral
from typing import ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from skstruct.sequences import SequenceBatch
from skstruct.templates.base import BaseTemplateVectorizer
from skstruct.templates.numbering import gather, hash_templates, run_for_patterns
from skstruct.templates.reader import compose_all, plan_of
from skstruct.utils.messages import check_float_dtype
from skstruct.utils.persistence import set_module


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

    @_fit_context(prefer_skip_nested_validation=True)
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
            given = reader.tokens, reader.patterns, bounds, reader.pieces
            hash_templates(*given, n_columns, numbers)

        run_for_patterns(take_hashes, reader, self.n_jobs)
        return gather(reader, numbers, n_columns, check_float_dtype(self.dtype))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
