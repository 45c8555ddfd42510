"""What to label next: sequences that a tagger is unsure of, and that are not all alike."""

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils import _safe_indexing, check_random_state

from skstruct.decoding import make_search
from skstruct.input.formats import lists_to_split
from skstruct.inspection.models import find_tagger
from skstruct.utils.messages import check_choice, check_count
from skstruct.utils.persistence import set_module

STRATEGIES = ("spans", "margin", "entropy", "random")
# Spans that are less probable add little to what may be wrong.
_LEAST = 0.02
# So many times the sequences that are asked for are compared with each other.
_COMPARED = 20
# So many are compared at once with what is chosen.
_TOGETHER = 64


@set_module("skstruct.model_selection")
def choose_sequences(estimator, X, n, *, strategy="spans", diverse=True, random_state=None):
    """Choose unlabelled sequences to label next.

    Parameters
    ----------
    estimator : estimator
        Fitted: a tagger, or a Pipeline or search that ends in one.
    X : sequences of tokens
        The pool: what its `predict` takes.
    n : int
        Number of sequences to choose. All are chosen where there are fewer.
    strategy : {"spans", "margin", "entropy", "random"}, default="spans"
        What the score of a sequence is. "spans": the expected number of chunks that are wrongly
        found or missed at a threshold of one half, the sum of ``min(p, 1 - p)`` over all spans,
        for each token. "margin": the probability of the second best labelling, divided by that of
        the best. "entropy": the mean entropy of the labels of its tokens. "random": a random
        number, to compare with.
    diverse : bool, default=True
        Keep out what is like a sequence that is chosen already: scores are multiplied by one less
        their largest cosine similarity with these, by the tokens of which the estimator
        is unsure and by their features. Rare ones weigh more.
    random_state : int, RandomState instance or None, default=None
        For "random".

    Returns
    -------
    numbers : ndarray of shape (n,), dtype int
        Numbers of the sequences in X, in the order in which they were chosen.
    scores : ndarray of shape (n,)
        Their scores; with `diverse`, these do not always fall.

    Raises
    ------
    ValueError
        If X or a parameter is invalid.
    TypeError
        If there is no tagger.

    See Also
    --------
    skstruct.datasets.write_annotations : Write sequences for an annotation tool, with predictions.

    Notes
    -----
    Only some twenty times `n` sequences, those with the highest scores, are compared with each
    other. Empty sequences have the score 0.

    References
    ----------
    Burr Settles and Mark Craven: An analysis of active learning strategies for sequence labeling
    tasks. EMNLP 2008.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skstruct import CRFTagger, WordVectorizer
    >>> from skstruct.model_selection import choose_sequences
    >>> X, y = [["in", "Rome"], ["in", "May"]], [["O", "B-LOC"], ["O", "O"]]
    >>> tagger = make_pipeline(WordVectorizer(), CRFTagger()).fit(X, y)
    >>> pool = [["in", "in"], ["in", "Oslo"], ["in", "Oslo"]]
    >>> numbers, _ = choose_sequences(tagger, pool, 2)
    >>> numbers.tolist()
    [1, 0]
    """
    check_choice("strategy", strategy, STRATEGIES)
    check_count("n", n)
    if not isinstance(diverse, (bool, np.bool_)):
        raise ValueError(f"diverse must be True or False, got {diverse!r}.")
    fitted = find_tagger(estimator)
    tokens = lists_to_split(X)
    _, batch = fitted.tagger._read_X(fitted.transform(tokens))
    if strategy == "random":
        scores = check_random_state(random_state).random_sample(len(batch))
    else:
        scores = _SCORES[strategy](fitted.tagger, batch)
    order = np.argsort(-scores, kind="stable")
    if diverse and len(order) > n:
        order = order[: _COMPARED * n]
        chosen = _diverse(scores[order], _vectors(fitted, _safe_indexing(tokens, order)), n)
        order = order[chosen]
    return order[:n], scores[order[:n]]


def _by_spans(tagger, batch):
    _, _, _, places, p = tagger._search_spans(batch, least=_LEAST)
    wrong = np.bincount(places[:, 1], np.minimum(p, np.maximum(1 - p, 0)), minlength=len(batch))
    return wrong / np.maximum(batch.lengths, 1)


def _by_margin(tagger, batch):
    # Labellings themselves would take most of the time.
    *_, scores, counts = tagger._search_nbest(batch, make_search(2, "astar", 2))
    margins = np.full(len(batch), np.inf)
    several = counts > 1
    # There is one column where no sequence has two labellings.
    margins[several] = scores[several, 0] - scores[several, -1]
    return np.exp(-margins)


def _by_entropy(tagger, batch):
    proba = _flat_proba(tagger, batch)
    entropy = -np.sum(proba * np.log(np.maximum(proba, 1e-300)), axis=1)
    owner = np.repeat(np.arange(len(batch)), batch.lengths)
    return np.bincount(owner, entropy, minlength=len(batch)) / np.maximum(batch.lengths, 1)


_SCORES = {"spans": _by_spans, "margin": _by_margin, "entropy": _by_entropy}


def _flat_proba(tagger, batch):
    """Marginals of all tokens, (n_tokens, n_classes)."""
    proba = tagger.predict_proba(batch)
    return np.concatenate([*proba, np.empty((0, len(tagger.classes_)))])


def _vectors(fitted, X):
    """Features, and tokens, of which the tagger is unsure in each sequence, of length one."""
    tokens, X = X, fitted.transform(X)
    _, batch = fitted.tagger._read_X(X)
    proba = _flat_proba(fitted.tagger, batch)
    # Every token counts a little: none may be unsure.
    unsure = 1.01 - proba.max(axis=1)
    owner = np.repeat(np.arange(len(batch)), batch.lengths)
    sums = sp.csr_array((unsure, (owner, np.arange(len(owner)))), shape=(len(batch), len(owner)))
    parts = [normalize(sums @ _rare(batch.X))]
    words = _words(tokens)
    if words is not None and len(words) == len(owner):
        # Words that are new to the tagger have no features.
        number = {word: i for i, word in enumerate(dict.fromkeys(words))}
        codes = np.array([number[word] for word in words])
        rows = np.arange(len(codes)), codes
        parts.append(normalize(sums @ _rare(sp.csr_array((np.ones(len(codes)), rows)))))
    return sp.csr_array(sp.hstack(parts)) / np.sqrt(len(parts))


def _rare(features):
    """Which features are there, the rare ones with larger numbers."""
    features = sp.csr_array(features)
    n_rows, n_columns = features.shape
    frequency = np.bincount(features.indices, minlength=n_columns)
    rarity = np.log((1 + n_rows) / (1 + frequency)) + 1e-3
    there = rarity[features.indices], features.indices, features.indptr
    return sp.csr_array(there, shape=features.shape)


def _words(X):
    """Text of all tokens; None for sequences of numbers."""
    if not isinstance(X, list) or not all(isinstance(x, (list, tuple)) for x in X):
        return None
    return [str(token) for tokens in X for token in tokens]


def _diverse(scores, vectors, n):
    """Choose rows one after the other, by their scores and by how unlike they are.

    Gains only fall as rows are chosen. So only rows whose gain, as known, is among the largest are
    compared with what has been chosen since.
    """
    gain, similar = scores.copy(), np.zeros(len(scores))
    chosen, n_compared = [], np.zeros(len(scores), np.int64)
    while len(chosen) < n:
        best = int(np.argmax(gain))
        if n_compared[best] == len(chosen):
            chosen.append(best)
            gain[best] = -1.0
            continue
        first = np.argpartition(-gain, min(_TOGETHER, len(gain) - 1))[:_TOGETHER]
        first = np.append(first, best)
        stale = first[(gain[first] >= 0) & (n_compared[first] == n_compared[best])]
        others = vectors[chosen[n_compared[best] :]]
        similarity = (vectors[stale] @ others.T).max(axis=1).toarray().ravel()
        similar[stale] = np.maximum(similar[stale], np.clip(similarity, 0.0, 1.0))
        gain[stale] = scores[stale] * (1 - similar[stale])
        n_compared[stale] = len(chosen)
    return chosen
