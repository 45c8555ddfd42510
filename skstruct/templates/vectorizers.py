"""`TemplateVectorizer`: columns of tokens to a sequence batch, by a template."""

from __future__ import annotations

import numpy as np

from skstruct.templates.base import LearningTemplateVectorizer
from skstruct.utils.public_paths import set_module

__all__ = ["TemplateVectorizer", "fitted_vectorizer"]


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
    feature of "a/b", "c" and of "a", "b/c". Names are compared by 64-bit hashes, and in full if
    these are equal.

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

    def __init__(self, template=None, *, functions=None, min_freq=1, dtype=np.float64, n_jobs=None):
        self.template = template
        self.functions = functions
        self.min_freq = min_freq
        self.dtype = dtype
        self.n_jobs = n_jobs


def fitted_vectorizer(features, n_columns, transitions=None):
    """Make a fitted vectoriser of features that were learnt elsewhere.

    Parameters
    ----------
    features : LearntFeatures
        Of tokens.
    n_columns : int
        Number of columns of a token.
    transitions : LearntFeatures, default=None
        Features of transitions.

    Returns
    -------
    vectorizer : TemplateVectorizer
    """
    vectorizer = TemplateVectorizer(features.template_)
    vectorizer._keep(n_columns, features, transitions)
    return vectorizer
