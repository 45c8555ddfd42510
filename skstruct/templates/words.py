"""`WordVectorizer`: ready-made features of words, with gazetteers and classes of words."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from numbers import Integral
from typing import ClassVar, Self

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import Interval

from skstruct.features.statistics import Counts, LabelStatistics
from skstruct.sequences import SequenceBatch
from skstruct.templates.syntax import FARTHEST, column_lines, template_lines
from skstruct.templates.vectorizers import LearningTemplateVectorizer
from skstruct.utils.declared import Count, Part, Strings, pack_strings, unpack_strings
from skstruct.utils.persistence import set_module
from skstruct.utils.progress import as_one_task
from skstruct.utils.transaction import draft_of

# Templates reach no farther; a line for each of more tokens or characters would fill the memory.
_COUNT = Interval(Integral, 0, FARTHEST, closed="both")
_OF_TEMPLATES = LearningTemplateVectorizer._parameter_constraints
# Of two lines of the template that are alike at this share of the tokens, one is left out. Fewer
# tokens tell nothing.
_ALIKE, _FEWEST_TOKENS = 0.99, 1000
# Window of label statistics.
_NEAR = 1


@set_module("skstruct")
class WordVectorizer(LearningTemplateVectorizer, auto_wrap_output_keys=None):
    """Turn sequences of tokens into a sequence batch, by ready-made features of words.

    The features are those that taggers of text usually have: words in a window, pairs of words,
    prefixes, suffixes, shapes, windows of further columns such as parts of speech, names in
    gazetteers, and classes of words. They are a template (`template_`), and as fast as in
    `TemplateVectorizer`.

    Parameters
    ----------
    window : int, default=2
        Number of words on each side of the token, in lower case and with each digit as 0. The word
        itself is a feature with and without its case. No window and no affix is longer than 1000.
    bigrams : bool, default=True
        Also the pairs of the word and a neighbour.
    affixes : int, default=4
        Longest prefix and suffix of the word, in characters; all shorter ones are features too.
    context_affixes : int, default=3
        Longest prefix and suffix of both neighbours, from two characters on.
    shapes : int, default=1
        Number of words on each side of the token whose shapes (``Xx-d``) are features; so are the
        pairs of neighbouring shapes, and their triple around the token. The full shape of the word
        (``Xxxx-dd``) is a feature in any case.
    column_window : int, default=2
        Number of tokens on each side whose further columns are features; so are their pairs and
        triples within the window.
    gazetteers : dict of str to iterable of str, default=None
        Lists of names: of people, of places, of genes. The words of a name are separated by
        blanks. The longest match counts, whatever its case. Features are the position of the token
        and of its neighbours in a match. Each fit reads the lists anew, so they must not be
        iterators or open files. It copies them and `clusters`: changes count from the next fit on.
    clusters : mapping of str to str, default=None
        Classes of words, such as the paths of Brown clusters ("0010110"). Words are looked up as
        they are, and then in lower case.
    cluster_prefixes : sequence of int, default=(4, 6, 10, 20)
        Lengths of the prefixes of the paths. A path that is shorter counts as a whole.
    label_statistics : bool or LabelStatistics, default=False
        Also what labels the word has in other training sequences, in a window of three tokens.
        ``fit_transform(X, y)`` then does not equal ``fit(X, y).transform(X)``: see
        `LabelStatistics`, which also has parameters for `cv` and others. `fit` needs y.
    extra_template : str, path-like, list of str or None, default=None
        Further lines of the template, as in `TemplateVectorizer`: text, a path or a list. They may
        also use the functions ``cluster4``, ... of `cluster_prefixes`, and ``matched`` of the
        columns of gazetteers.
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
        Lines of the template that makes the features. Gazetteers are columns after the
        tokens'.
    n_columns_ : int
        Number of columns of a token.
    n_features_ : int
        Number of features of tokens.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, if sequences are data frames.
    label_statistics_ : LabelStatistics
        Fitted to all training sequences; only with `label_statistics`.

    See Also
    --------
    LabelStatistics : The statistics as a column, for templates and feature dicts.
    TemplateVectorizer : Features by a template of your own.
    SequenceUnion : Combine them with other features.

    Notes
    -----
    In text whose tokens are single characters, affixes and shapes repeat the word. Where two lines
    of the template have the same values at 99 % of 1000 training tokens or more, the second is
    left out of `template_`, unless it is one of `extra_template`. On 3,000 sentences of Chinese
    characters, a `CRFTagger` then fits in half the time, and F1 of words rises from .846 to .857.

    The defaults were chosen on held-out parts of the training sets of CoNLL-2000, CoNLL-2002
    (Spanish) and Universal Dependencies English-EWT.

    Examples
    --------
    >>> from skstruct import CRFTagger, WordVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> X = [["Anna", "lives", "in", "New", "York"], ["Rome", "is", "old"]]
    >>> y = [["B-PER", "O", "O", "B-LOC", "I-LOC"], ["B-LOC", "O", "O"]]
    >>> vectorizer = WordVectorizer(gazetteers={"place": ["Rome", "New York", "York"]})
    >>> tagger = make_pipeline(vectorizer, CRFTagger()).fit(X, y)
    >>> tagger.predict([["Anna", "is", "in", "Rome"]])
    array([list(['B-PER', 'O', 'O', 'B-LOC'])], dtype=object)
    >>> [name for name in vectorizer.get_feature_names_out() if "place+0" in name]
    ['Uplace+0:B', 'Uplace+0:E', 'Uplace+0:S']
    """

    _parameter_constraints: ClassVar[dict] = {
        "window": [_COUNT],
        "bigrams": ["boolean"],
        "affixes": [_COUNT],
        "context_affixes": [_COUNT],
        "shapes": [_COUNT],
        "column_window": [_COUNT],
        "gazetteers": [dict, None],
        "clusters": [Mapping, None],
        "cluster_prefixes": ["array-like"],
        "label_statistics": ["boolean", LabelStatistics],
        "extra_template": "no_validation",
        **{name: _OF_TEMPLATES[name] for name in ("min_freq", "dtype", "n_jobs")},
    }

    _stored: ClassVar[dict] = {"label_statistics_": Part("value_of")}
    _derived_state = ("_lookups",)
    # With metadata routing, they are passed on only where somebody asks for that.
    __metadata_request__fit: ClassVar[dict] = {"groups": False, "sample_weight": False}

    def __init__(
        self,
        *,
        window=2,
        bigrams=True,
        affixes=4,
        context_affixes=3,
        shapes=1,
        column_window=2,
        gazetteers=None,
        clusters=None,
        cluster_prefixes=(4, 6, 10, 20),
        label_statistics=False,
        extra_template=None,
        min_freq=1,
        dtype=np.float64,
        n_jobs=None,
    ) -> None:
        self.window = window
        self.bigrams = bigrams
        self.affixes = affixes
        self.context_affixes = context_affixes
        self.shapes = shapes
        self.column_window = column_window
        self.gazetteers = gazetteers
        self.clusters = clusters
        self.cluster_prefixes = cluster_prefixes
        self.label_statistics = label_statistics
        self.extra_template = extra_template
        self.min_freq = min_freq
        self.dtype = dtype
        self.n_jobs = n_jobs

    def fit(self, X, y=None, *, groups=None, sample_weight=None) -> Self:
        """Learn the features of tokens.

        Parameters
        ----------
        X : iterable of sequences of tokens
            A token is a string or a tuple or list of columns. A sequence may also be a data frame
            or a 2-D array, whose rows are the tokens.
        y : sequences of labels, default=None
            Only for `label_statistics`: strings or integers, None where a label is unknown.
        groups, sample_weight : array-like of shape (n_sequences,), default=None
            Only for `label_statistics`, as of `LabelStatistics.fit_transform`.

        Returns
        -------
        self : WordVectorizer

        Raises
        ------
        ValueError
            If there is no token, a token or a parameter is invalid, no feature is left to learn, or
            `label_statistics` is given and y is missing or invalid.
        """
        self.fit_transform(X, y, groups=groups, sample_weight=sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    @as_one_task
    def fit_transform(self, X, y=None, *, groups=None, sample_weight=None) -> SequenceBatch:
        """Learn the features and return the batch, reading `X` once.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in `fit`.

        Returns
        -------
        batch : SequenceBatch
            As from `transform`; but `label_statistics` of a token come from the labels of
            other sequences.

        Raises
        ------
        ValueError
            As in `fit`.
        """
        return self._fit(X, (y, groups, sample_weight))

    def _fit(self, X, labels=(None, None, None), **options):
        # Lists are learnt, too: if this fit fails, the lists of the one before stay.
        with draft_of(self) as draft:
            for name in ("_lists", "_lookups", "label_statistics_"):
                vars(draft).pop(name, None)
            if self.label_statistics:
                draft.label_statistics_ = self._unfitted_statistics(labels[0])
                if isinstance(labels[1], Counts):
                    draft.label_statistics_._keep(labels[1])
                draft._labels = labels
            batch = super(WordVectorizer, draft)._fit(X, **options)
            vars(draft).pop("_labels", None)
            batch.reads_labels = bool(self.label_statistics)
            return batch

    def _unfitted_statistics(self, y):
        statistics = LabelStatistics()
        if self.label_statistics is not True:
            statistics = clone(self.label_statistics)
            statistics._validate_params()
        if statistics.column != 0:
            raise ValueError(
                f"label_statistics has column={statistics.column!r}, but the words of a "
                "WordVectorizer are in column 0."
            )
        if y is None:
            raise ValueError(
                "label_statistics=True requires y to be passed, but the target y is None."
            )
        return statistics

    def _given_lines(self):
        self._check_lists()
        return self._make_lines

    def _check_lists(self):
        for name, entries in (self.gazetteers or {}).items():
            if not isinstance(name, str) or not name.isidentifier():
                raise ValueError(
                    f"The name of a gazetteer must consist of letters, digits and _, got {name!r}."
                )
            once = (str, Mapping, Iterator)
            if isinstance(entries, once) or not isinstance(entries, Iterable):
                raise ValueError(
                    f"The gazetteer {name!r} must be a list of strings, got {entries!r}."
                )
        for length in self.cluster_prefixes:
            if not isinstance(length, Integral) or length < 1:
                raise ValueError(f"cluster_prefixes must be positive integers, got {length!r}.")

    def _choose_lines(self, reader):
        if reader.n_rows >= _FEWEST_TOKENS:
            reader.leave_out_repeats(_ALIKE, self._extra_lines())

    def _extra_lines(self):
        if self.extra_template is None:
            return []
        return template_lines(self.extra_template, "extra_template")

    def _make_lines(self, n_columns):
        """Make the template for tokens with `n_columns` columns."""
        lines = ["form:%x[0,0]", *_word_lines(self.window, self.bigrams)]
        lines += _affix_lines(0, range(1, self.affixes + 1))
        for i in (-1, 1):
            lines += _affix_lines(i, range(2, self.context_affixes + 1))
        lines += ["shape:%x[0,0|shape]", *_shape_lines(self.shapes)]
        for c in range(1, n_columns):
            lines += column_lines(f"column{c}", c, self.column_window)
        if self.clusters:
            for n in self.cluster_prefixes:
                lines += [f"cluster{n}{i:+d}:%x[{i},0|cluster{n}]" for i in (-1, 0, 1)]
        for c, name in enumerate(self.gazetteers or (), start=n_columns):
            lines += [f"{name}{i:+d}:%x[{i},{c}|matched]" for i in (-1, 0, 1)]
        if self.label_statistics:
            lines += [f"labels{i:+d}:%x[{i},0|labels]" for i in range(-_NEAR, _NEAR + 1)]
        return ["U" + line for line in lines] + ["B", *self._extra_lines()]

    def _given_lists(self):
        """Copies of the gazetteers and clusters, and the lengths of the prefixes."""
        gazetteers = list(map(list, (self.gazetteers or {}).values()))
        lengths = list(self.cluster_prefixes) if self.clusters else []
        return gazetteers, dict(self.clusters or {}), lengths

    def _functions(self):
        # Kept, because results of a function are remembered for the function and not its name.
        if "_lookups" not in vars(self):
            if "_lists" not in vars(self):
                self._lists = self._given_lists()
            gazetteers, clusters, lengths = self._lists
            functions = {f"cluster{n}": _cluster_prefix(clusters, n) for n in lengths}
            if "label_statistics_" in vars(self):
                functions["labels"] = self.label_statistics_.value_of
            self._lookups = {"matched": _matched, **functions}, list(map(Gazetteer, gazetteers))
        return self._lookups[0]

    def _derived_columns(self):
        self._functions()
        return self._lookups[1]

    def _replaced(self):
        if "_labels" not in vars(self):
            return {}
        statistics, (y, *others) = self.label_statistics_, self._labels
        if isinstance(others[0], Counts):
            # Of all parts of the data, of which X is one.
            return {"labels": lambda *words: statistics._learn_part(*words, y, others[0])}
        return {"labels": lambda *words: statistics._learn(*words, y, *others)}

    def _count_labels(self, X, y):
        """Counts of a part of the data, for the statistics of all of it."""
        statistics = self._unfitted_statistics(y)
        statistics.fit(X, y)
        return statistics._counts()

    def _keep_counts(self, counts):
        """Keep the statistics of all parts of the data."""
        self.label_statistics_ = self._unfitted_statistics(())
        self.label_statistics_._keep(counts)

    # Lists of strings are stored packed; see `skstruct.utils.persistence`.

    def __getstate__(self):
        state = super().__getstate__()
        if self.gazetteers is not None:
            state["gazetteers"] = {
                name: pack_strings(list(entries)) for name, entries in self.gazetteers.items()
            }
        if self.clusters is not None:
            state["clusters"] = _pack_clusters(self.clusters)
        lists = state.pop("_lists", None)
        if lists is not None and lists != self._given_lists():
            # Parameters have changed since the fit.
            gazetteers, clusters, lengths = lists
            packed = list(map(pack_strings, gazetteers))
            state["_lists"] = packed, _pack_clusters(clusters), lengths
        return state

    def _restore_state(self):
        if self.gazetteers is not None:
            self.gazetteers = {name: unpack_strings(v) for name, v in self.gazetteers.items()}
        if self.clusters is not None:
            self.clusters = _unpack_clusters(self.clusters)
        if "_lists" in vars(self):
            gazetteers, clusters, lengths = self._lists
            unpacked = list(map(unpack_strings, gazetteers))
            self._lists = unpacked, _unpack_clusters(clusters), lengths
        elif self._is_learnt():
            self._lists = self._given_lists()

    def _check_state(self):
        super()._check_state()
        if self._is_learnt():
            self._check_lists()
            gazetteers, clusters, lengths = self._lists
            for entries in gazetteers:
                Strings().read(entries, "the entries of a gazetteer", None)
            words_and_paths = chain.from_iterable(clusters.items())
            Strings().read(list(words_and_paths), "words and their classes", None)
            for length in lengths:
                Count(1).read(length, "the length of a prefix", None)


def _pack_clusters(clusters):
    words, paths = list(clusters), [clusters[word] for word in clusters]
    return {"words": pack_strings(words), "paths": pack_strings(paths)}


def _unpack_clusters(packed):
    words, paths = (unpack_strings(packed[key]) for key in ("words", "paths"))
    return dict(zip(words, paths, strict=True))


def _cluster_prefix(clusters, length):
    """Function of the template: prefix of the class of a word."""

    def prefix_of_class(word):
        found = clusters.get(word, clusters.get(word.lower()))
        return None if found is None else found[:length]

    return prefix_of_class


def _matched(mark):
    """Mark of a gazetteer, None for tokens without a match."""
    return mark or None


def _word_lines(window, bigrams):
    word = "%x[{},0|lower|digits]".format
    lines = [f"word{i:+d}:{word(i)}" for i in range(-window, window + 1)]
    if bigrams:
        lines += [f"words{i:+d}:{word(i)}/{word(i + 1)}" for i in (-1, 0)]
    return lines


def _affix_lines(row, lengths):
    return [
        f"{side}{n}{row:+d}:%x[{row},0|{side}{n}]" for n in lengths for side in ("prefix", "suffix")
    ]


def _shape_lines(window):
    shape = "%x[{},0|shortshape]".format
    lines = [f"shape{i:+d}:{shape(i)}" for i in range(-window, window + 1)]
    if window:
        lines += [f"shapes{i:+d}:{shape(i)}/{shape(i + 1)}" for i in (-1, 0)]
        lines.append("shapes:" + "/".join(map(shape, (-1, 0, 1))))
    return lines


# Values of the marks: none, the only word of a match, its first, inner and last word.
MARKS = ["", "S", "B", "I", "E"]
_ONLY, _FIRST, _INNER, _LAST = range(1, 5)


class Gazetteer:
    """Marks of the tokens that are part of a name in a list.

    From left to right, the longest name that begins at a word is matched, whatever its case.

    Parameters
    ----------
    entries : iterable of str
        Names, whose words are separated by blanks.

    Raises
    ------
    ValueError
        If an entry is not a string.
    """

    def __init__(self, entries):
        self._entries = set()
        self._longest = {}
        for entry in entries:
            if not isinstance(entry, str):
                raise ValueError(f"The entries of a gazetteer are strings, but one is {entry!r}.")
            words = tuple(entry.casefold().split())
            if words:
                self._entries.add(words)
                self._longest[words[0]] = max(self._longest.get(words[0], 0), len(words))

    def __call__(self, values, codes, offsets):
        """Mark tokens.

        Parameters
        ----------
        values : list of str
            Distinct words.
        codes : ndarray of shape (n_rows,)
            Position of each token's word among them.
        offsets : ndarray of shape (n_sequences + 1,)
            Token at which each sequence starts.

        Returns
        -------
        values : list of str
            The marks: "" for no match, else "S" for the only word of a name, "B", "I" and "E" for
            its first, inner and last words.
        codes : ndarray of shape (n_rows,), dtype int32
            Position of each token's mark among them.
        """
        folded = [value.casefold() for value in values]
        begins = np.array([word in self._longest for word in folded], bool)
        marks = np.zeros(len(codes), np.int32)
        rows = np.flatnonzero(begins[codes])
        ends = offsets[np.searchsorted(offsets, rows, side="right")]
        done = 0
        for row, end in zip(rows.tolist(), ends.tolist(), strict=True):
            longest = self._longest[folded[codes[row]]]
            words = [folded[code] for code in codes[row : min(end, row + longest)].tolist()]
            length = self._match(words) if row >= done else 0
            if length:
                done = row + length
                marks[row:done] = _INNER
                marks[row], marks[done - 1] = _FIRST, _LAST
                if length == 1:
                    marks[row] = _ONLY
        return MARKS, marks

    def _match(self, words):
        """Length of the longest entry that these words begin with, or 0."""
        for length in range(len(words), 0, -1):
            if tuple(words[:length]) in self._entries:
                return length
        return 0
