"""The short way: a few sentences of dicts or attribute strings, tagged in one compiled call.

A service tags one sentence at a time, and what is done once for a batch is then most of the time:
matrices, checks of weights, a look at the threads. What depends on the tagger alone is kept here,
and the rest is done by one compiled function (`skstruct.chain.few`) that adds up in the same order
as for a batch. So all results are the same to the last bit.

With 11 attribute strings a token, `predict` takes 14 microseconds for a sentence of 3 tokens and 33
for one of 24, of which looking them up is 7 and 21. By way of a batch it was 180 and 230.
sklearn-crfsuite takes 5.5 and 40.
"""

from numbers import Integral
from operator import is_

import numpy as np

from skstruct.chain.few import label_few, search_few, weigh_few
from skstruct.decoding import LIMITS
from skstruct.input.formats import split_sequences
from skstruct.matrices import read_only
from skstruct.sequences import tokens_of

# Attribute in which a tagger keeps its short way.
DERIVED = "_short_way"
# Batches of at least so many tokens, and more sequences, are compared with the training data.
_FEWEST_COMPARED, _NEVER_COMPARED = 20, 8
# Attributes that a short way is built from; it is rebuilt when one has been replaced.
ALWAYS_LEARNT = ("coef_", "transition_", "intercept_", "start_", "end_")
_OF_OTHERS = ("transition_coef_", "transition2_", "n_transition_features_in_")
_HELD = (*ALWAYS_LEARNT, *_OF_OTHERS, "classes_", "vectorizer_", "feature_names_in_")
_HELD += ("n_features_in_", "n_jobs")


def short_way(tagger, X):
    """Short way of a tagger, from its current weights.

    Parameters
    ----------
    tagger : LinearChainMixin
    X : object
        What is to be tagged.

    Returns
    -------
    way : ShortWay or None
        None where other functions decode: for X in arrays, and for a tagger that has many labels,
        or weights of triples or of transition features.
    """
    attributes = vars(tagger)
    if type(X) is not list and tokens_of(X) is None:
        return None
    way = attributes.get(DERIVED)
    if way is None or not way.is_of(tagger):
        if not hasattr(tagger, "coef_"):
            return None
        # In one assignment: other threads may do the same.
        way = attributes[DERIVED] = ShortWay(tagger)
    return way if way.chain is not None else None


class ShortWay:
    """Arrays of a fitted tagger that the short way needs, none of them copied.

    It keeps them alive, so that no later array can have the identity of one of them.

    Parameters
    ----------
    tagger : LinearChainMixin
        Fitted.
    """

    def __init__(self, tagger):
        # Asking for weights may compute them (`PartialFitMixin`).
        self._parts = [getattr(tagger, name, None) for name in _HELD]
        self._vectorizer = vars(tagger).get("vectorizer_")
        self._vocabulary = getattr(self._vectorizer, "vocabulary_", None)
        self._names = vars(tagger).get("feature_names_in_")
        self._classes = tagger.classes_
        self.chain = self._chain_of(tagger)

    def is_of(self, tagger):
        """Return True if a tagger has the very same arrays."""
        same = all(map(is_, self._parts, map(vars(tagger).get, _HELD)))
        return same and getattr(self._vectorizer, "vocabulary_", None) is self._vocabulary

    def _chain_of(self, tagger):
        """The weights, None if they have to be decoded otherwise."""
        try:
            chain = read_only(tagger._chain())
        except ValueError:
            return None
        n_labels, n_jobs = len(chain.transition), tagger.n_jobs
        may_run = n_jobs is None or (isinstance(n_jobs, Integral) and n_jobs != 0)
        fewest = min(LIMITS["best"].fewest_labels, LIMITS["sums"].fewest_labels)
        known = self._names if self._vectorizer is None else self._vocabulary
        fits = known is not None and len(chain.weights) == len(known) and chain.may_list
        if not may_run or not fits or n_labels >= fewest:
            return None
        # Changes in place are to be seen, as in a batch.
        given = (getattr(tagger, name) for name in ALWAYS_LEARNT)
        return chain if all(map(np.may_share_memory, chain, given)) else None

    def read(self, X):
        """Tokens of a few sequences, in arrays that may be changed; None where there are none."""
        if type(X) is list:
            return None if self._vectorizer is None else self._vectorizer.read_few(X)
        loose = tokens_of(X)
        if loose is None or X.feature_names is not self._names:
            return None
        return loose.copy()

    def labels(self, X):
        """Result of `predict`, an object array of lists; None where a batch has to be made."""
        loose = self.read(X)
        if loose is None:
            return None
        codes = np.empty(len(loose.ends) - 1, np.int32)
        if not label_few(*loose, self.chain, codes) or _is_strange(loose):
            return None
        return split_sequences(self._classes[codes].tolist(), loose.offsets)

    def marginals(self, X):
        """Result of `predict_proba`, an object array of arrays; None as of `labels`."""
        loose = self.read(X)
        if loose is None:
            return None
        proba, log_partition = self._buffers(loose)
        if not weigh_few(*loose, self.chain, proba, log_partition) or _is_strange(loose):
            return None
        return split_sequences(proba, loose.offsets)

    def best(self, X):
        """The best labelling of each sequence; None as of `labels`.

        Returns
        -------
        labels : ndarray of lists
        scores, log_partition : ndarray of shape (n_sequences,)
        """
        loose = self.read(X)
        if loose is None:
            return None
        proba, log_partition = self._buffers(loose)
        codes, scores = np.empty(len(proba), np.int32), np.empty(len(log_partition))
        found = search_few(*loose, self.chain, codes, scores, proba, log_partition)
        if not found or _is_strange(loose):
            return None
        labels = split_sequences(self._classes[codes].tolist(), loose.offsets)
        return labels, scores, log_partition

    def _buffers(self, loose):
        """Arrays for marginals and log-partitions."""
        n_labels = len(self.chain.intercept)
        return np.empty((len(loose.ends) - 1, n_labels)), np.empty(len(loose.offsets) - 1)


def _is_strange(loose):
    """Return True if a batch may be unlike the training data, about which there are warnings."""
    n_sequences, n_tokens = len(loose.offsets) - 1, len(loose.ends) - 1
    if n_sequences <= _NEVER_COMPARED or n_tokens < _FEWEST_COMPARED:
        return False
    return loose.ends[-1] <= len(loose.columns) / 2
