"""`WordClusters`: classes of words that have the same neighbours in raw text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import count
from numbers import Integral
from typing import Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from skstruct.features.columns import normalized
from skstruct.features.embeddings import as_vector, table_of
from skstruct.features.tokens import iterate_level
from skstruct.utils.declared import Array, Strings
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import Persistent, set_module
from skstruct.utils.transaction import draft_of

# The commonest words, which are what words are described by, on either side.
_CONTEXTS = 2000
# Exponent of the frequencies of contexts: less weight for what is next to rare words only.
_SMOOTHING = 0.75
# Tokens whose neighbours are counted at a time, and sequences read at a time.
_TOKENS, _SEQUENCES = 1 << 20, 1 << 12
_SEED = 2**31 - 1


@set_module("skstruct")
class WordClusters(Persistent, BaseEstimator):
    """Put words into classes by their neighbours in raw text, as paths in a binary tree.

    Words with few labels, or none, share the classes of words that are used alike. The neighbours
    of a word are counted, on the left and on the right. Their positive pointwise mutual information
    is reduced to a vector by :class:`~sklearn.decomposition.TruncatedSVD`.
    :class:`~sklearn.cluster.KMeans` divides the words in two, then the widest class in two again,
    and so on. Each division adds a bit to the paths of its words, so that prefixes of paths are
    coarser classes.

    Parameters
    ----------
    n_clusters : int, default=256
        Number of classes.
    window : int, default=2
        Number of neighbours on each side.
    min_count : int, default=3
        Least number of occurrences of a word.
    max_vocabulary : int, default=20000
        Number of words, the commonest ones.
    n_components : int, default=50
        Length of the vectors.
    normalize : callable, default=str.lower
        Function applied to words, from a string to a string. None takes words as they are. Where
        words are looked up, in `WordVectorizer`, they are also tried in lower case.
    random_state : int, RandomState instance or None, default=None
        Source of the starts of `TruncatedSVD` and `KMeans`. Pass an int for the same classes
        whenever the text is the same.

    Attributes
    ----------
    clusters_ : dict of str to str
        Path of each word, such as "0010110".
    vectors_ : dict of str to ndarray of shape (n_components,)
        Vector of each word, of length one.
    words_ : list of str
        The words, the commonest first.

    See Also
    --------
    WordVectorizer : Takes `clusters_` as `clusters`.
    EmbeddingVectorizer : Takes `vectors_` as `vectors`, with ``normalize=str.lower``.

    Notes
    -----
    The text is read once, and kept as 4 bytes a token. Ten million tokens take some fifteen seconds
    of a processor.

    References
    ----------
    Levy, Goldberg and Dagan (2015), "Improving distributional similarity with lessons learned from
    word embeddings", TACL 3, for the vectors. Brown et al. (1992), "Class-based n-gram models of
    natural language", Computational Linguistics 18(4), for paths of classes.

    Examples
    --------
    >>> from skstruct import WordClusters
    >>> raw = [f"{a} {b} in {c}".split() for a in ("Ana", "Bo") for b in ("is", "was")
    ...        for c in ("Rome", "Oslo", "Bonn")]
    >>> clusters = WordClusters(n_clusters=4, n_components=3, random_state=0).fit(raw)
    >>> paths = clusters.clusters_
    >>> paths["rome"] == paths["oslo"], paths["rome"] == paths["ana"]
    (True, False)
    """

    _parameter_constraints: dict = {
        **{
            name: [Interval(Integral, 1, None, closed="left")]
            for name in ("n_clusters", "min_count", "max_vocabulary", "n_components")
        },
        "window": [Interval(Integral, 1, 100, closed="both")],
        "normalize": [callable, None],
        "random_state": ["random_state"],
    }

    _stored = {
        "words_": Strings(distinct=True),
        "paths_": Strings(),
        "_vectors": Array(np.float64, ("words_", None)),
    }
    _complete = tuple(_stored)

    def __init__(
        self,
        n_clusters=256,
        *,
        window=2,
        min_count=3,
        max_vocabulary=20000,
        n_components=50,
        normalize=str.lower,
        random_state=None,
    ) -> None:
        self.n_clusters = n_clusters
        self.window = window
        self.min_count = min_count
        self.max_vocabulary = max_vocabulary
        self.n_components = n_components
        self.normalize = normalize
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, raw, y=None) -> Self:
        """Learn classes of words from text without labels.

        Parameters
        ----------
        raw : iterable of sequences of words
            Strings, such as ``(line.split() for line in file)``.
        y : None
            Ignored.

        Returns
        -------
        self : WordClusters

        Raises
        ------
        ValueError
            If a token is not a string (the message names the sequence and the token, counted from
            0), or no word occurs `min_count` times beside another one.
        """
        rng = check_random_state(self.random_state)
        words, codes, ends = _read(raw, self.normalize)
        frequency = np.bincount(codes, minlength=len(words))
        order = np.argsort(-frequency, kind="stable")[: self.max_vocabulary]
        order = order[frequency[order] >= self.min_count]
        number = np.full(len(words), -1, np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        counts = _count_neighbours(number[codes], ends, len(order), self.window)
        if counts.nnz == 0:
            raise ValueError(
                f"No word occurs {self.min_count} times beside another such word: lower min_count, "
                "or pass more text."
            )
        vectors = _vectors(counts, self.n_components, rng)
        self._keep([words[i] for i in order.tolist()], vectors, rng)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_vectors(self, vectors) -> Self:
        """Learn classes of words from vectors that are given, such as word embeddings.

        Parameters
        ----------
        vectors : mapping of str to array-like of shape (n_dimensions,)
            Vector of each word. Their directions count, and not their lengths.

        Returns
        -------
        self : WordClusters

        Raises
        ------
        ValueError
            If there is no word, or a vector is not finite or differs in length from the others; the
            message names the word.
        """
        if not isinstance(vectors, Mapping) or not len(vectors):
            raise ValueError(f"vectors must be a mapping of words, got {short_repr(vectors)}.")
        words = list(vectors)
        if not all(isinstance(word, str) for word in words):
            raise ValueError("The words of vectors must be strings.")
        found = {word: as_vector(word, vectors[word]) for word in words}
        table = table_of(found, None, np.float64)
        self._keep(words, _of_length_one(table), check_random_state(self.random_state))
        return self

    @property
    def clusters_(self):
        """Path of each word."""
        check_is_fitted(self)
        return dict(zip(self.words_, self.paths_, strict=True))

    @property
    def vectors_(self):
        """Vector of each word."""
        check_is_fitted(self)
        return dict(zip(self.words_, self._vectors, strict=True))

    def _keep(self, words, vectors, rng):
        paths = _bisect(vectors, self.n_clusters, rng)
        with draft_of(self) as draft:
            draft.words_, draft.paths_, draft._vectors = words, paths, vectors

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_state(self):
        if self._is_learnt() and len(self.paths_) != len(self.words_):
            raise ValueError("there are not as many paths as words.")


def _read(raw, normalize):
    """Distinct words, the position of each token's word among them, and the ends of sequences."""
    number, tokens, ends = defaultdict(count().__next__), [], [0]
    some = []
    for i, sequence in enumerate(iterate_level(raw, "raw", "sequences of words")):
        words = list(iterate_level(sequence, f"Sequence {i}", "words"))
        if not set(map(type, words)) <= {str}:
            wrong = next((t for t, word in enumerate(words) if not isinstance(word, str)), None)
            if wrong is not None:
                raise ValueError(
                    f"Sequence {i}, token {wrong}: {short_repr(words[wrong])} is not a string."
                )
        some += map(number.__getitem__, words)
        ends.append(ends[-1] + len(words))
        if i % _SEQUENCES == 0:
            tokens.append(np.array(some, np.int32))
            some = []
    codes = np.concatenate([*tokens, np.array(some, np.int32)])
    words = list(number)
    keys = defaultdict(count().__next__)
    found = normalized(words, normalize)
    which = np.fromiter(map(keys.__getitem__, found), np.int32, len(words))
    codes, words = which[codes], list(keys)
    return words, codes, np.array(ends, np.int64)


def _count_neighbours(numbers, ends, n_words, window):
    """Matrix of how often each common word is to the left and to the right of each word."""
    n_contexts = min(n_words, _CONTEXTS)
    shape = n_words, 2 * n_contexts
    total = sp.csr_matrix(shape)
    owner = np.repeat(np.arange(len(ends) - 1, dtype=np.int32), np.diff(ends))
    for start in range(0, len(numbers), _TOKENS):
        rows, columns = [], []
        for distance in range(1, window + 1):
            left = numbers[start : start + _TOKENS]
            right = numbers[start + distance : start + _TOKENS + distance]
            left = left[: len(right)]
            inside = owner[start : start + len(right)] == owner[start + distance :][: len(right)]
            both = inside & (left >= 0) & (right >= 0)
            for word, other, side in ((right, left, 0), (left, right, n_contexts)):
                chosen = both & (other < n_contexts)
                rows.append(word[chosen])
                columns.append(other[chosen] + side)
        rows, columns = np.concatenate(rows), np.concatenate(columns)
        total = total + sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
    return total


def _vectors(counts, n_components, rng):
    """Vectors of words, of length one: what exceeds chance, reduced."""
    from sklearn.decomposition import TruncatedSVD  # slow

    of_words = np.asarray(counts.sum(axis=1)).ravel()
    of_contexts = np.asarray(counts.sum(axis=0)).ravel() ** _SMOOTHING
    of_contexts /= of_contexts.sum()
    pairs = counts.tocoo()
    information = np.log(pairs.data / (of_words[pairs.row] * of_contexts[pairs.col]))
    kept = information > 0
    positive = sp.csr_matrix(
        (information[kept], (pairs.row[kept], pairs.col[kept])), shape=counts.shape
    )
    n_components = min(n_components, min(counts.shape))
    reduced = TruncatedSVD(n_components, random_state=rng.randint(_SEED))
    # Of a single word, the variance that it explains is no number.
    with np.errstate(invalid="ignore"):
        return _of_length_one(reduced.fit_transform(positive))


def _of_length_one(vectors):
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def _bisect(vectors, n_clusters, rng):
    """Paths of words: the class with the largest sum of squares is divided, time and again."""
    from sklearn.cluster import KMeans  # slow
    from threadpoolctl import threadpool_limits  # slow

    paths, order = [""] * len(vectors), count()

    def entry(members, path):
        spread = vectors[members] - vectors[members].mean(axis=0)
        return -float(np.square(spread).sum()), next(order), members, path

    heap, done = [entry(np.arange(len(vectors)), "")], []
    # With several threads, sums depend on which of them is first.
    with threadpool_limits(1, user_api="openmp"):
        while heap and len(heap) + len(done) < n_clusters:
            spread, _, members, path = heappop(heap)
            distinct = len(members) > 1 and -spread > 1e-9
            if distinct:
                halves = KMeans(2, n_init=1, random_state=rng.randint(_SEED))
                side = halves.fit_predict(vectors[members])
            if not distinct or side.min() == side.max():
                done.append((members, path))
                continue
            for bit in (0, 1):
                heappush(heap, entry(members[side == bit], f"{path}{bit}"))
    for members, path in [*done, *(last[2:] for last in heap)]:
        for word in members.tolist():
            paths[word] = path
    return paths
