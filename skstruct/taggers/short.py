"""The short way: a few sentences, tagged in one compiled call.

A service tags one sentence at a time, and what is done once for a batch is then nearly all of the
time. What depends on the tagger alone is kept here, and the rest is done by one compiled function
(`skstruct.taggers.few`), whose results equal a batch's to the last bit.

With 4 attribute strings a token and 9 labels, 3 tokens take 1.4 microseconds, and 20 take 4. By way
of arrays that Python makes, they took 15 and 30. CRFsuite takes 2 and 12.
"""

from array import array
from functools import cache
from numbers import Integral
from operator import countOf, is_, sub

import numpy as np
from numba.core import types

from skstruct.blocks.rows import label_scores
from skstruct.chain.protocol import chain_factors
from skstruct.compiled.objects import READABLE
from skstruct.decoding import with_list
from skstruct.features.tokens import LooseRows
from skstruct.input.formats import split_sequences
from skstruct.input.training_set import block_rows
from skstruct.matrices import read_offsets, read_only
from skstruct.sequences import SequenceBatch, tokens_of
from skstruct.taggers import few
from skstruct.taggers.few import ask_few, decode_few
from skstruct.utils.messages import check_float_dtype
from skstruct.utils.transaction import with_attributes

# Attribute in which a tagger keeps its short way.
DERIVED = "_short_way"
# Attribute of a tagger that nobody else can change.
OWN = "_is_own"
# Sentences that are tagged at once.
_FEW = 64
_OTHER = few.OTHER
# Attributes that a short way is built from; it is rebuilt when one has been replaced.
ALWAYS_LEARNT = ("coef_", "transition_", "intercept_", "start_", "end_")
_OF_OTHERS = ("transition_coef_", "transition2_", "n_transition_features_in_")
_HELD = (*ALWAYS_LEARNT, *_OF_OTHERS, "classes_", "vectorizer_", "feature_names_in_")
_HELD += ("n_features_in_", "n_jobs")


def answer(tagger, X, store, labels, sums=None):
    """Tag a few sentences by the short way.

    Parameters
    ----------
    tagger : LinearChainMixin
        Fitted or not.
    X : list of lists of tokens, SequenceBatch or None
        A batch with blocks; None for what is in the store.
    store : bytearray
        Receives what was read, which can be asked again, about the same features.
    labels : list
        One empty list for each sentence, to which its labels are appended; empty if they are not
        wanted.
    sums : bytearray, default=None
        Receives marginals, log-partitions and, if labels are wanted, their scores.

    Returns
    -------
    found : bool
        False where a batch has to be made. What the arguments hold is then of no use.
    """
    attributes = tagger.__dict__
    way = attributes.get(DERIVED)
    is_read = X is None or type(X) is list
    if is_read and way is not None and way.vectorizer.vocabulary_ is way.vocabulary:
        # The tuple has a name, and so lives until the end of the call.
        call = X, attributes, way.address, store, labels, sums
        status = way.ask(id(call))
        if status <= _OTHER:
            return not status
    return _ask_again(tagger, X, store, labels, sums)


def _ask_again(tagger, X, store, labels, sums):
    """Do what the compiled function has left to do, until there is an answer."""
    attributes, n_lists = tagger.__dict__, countOf(map(type, labels), list)
    # What is missing is found once more.
    del labels[n_lists:]
    # Another thread may fit meanwhile.
    tagger = with_attributes(tagger, attributes)
    # Other threads may make the same changes, or others: a few times are enough without them.
    for _ in range(5):
        way = current_way(tagger, attributes)
        if way is None:
            return False
        is_batch = isinstance(X, SequenceBatch)
        if is_batch and not way.score(X, store):
            return False
        call = None if is_batch else X, attributes, way.address, store, labels, sums
        status = way.ask(id(call))
        if status == few.MISSING:
            way.codes.learn(labels[n_lists::2], labels[n_lists + 1 :: 2])
        elif status == few.UNTABULATED:
            attributes[DERIVED] = ShortWay(tagger, tabulates=True)
        elif status == few.LARGE:
            return way.decode(store, labels, sums)
        elif status != few.STALE:
            return status == few.DONE
        del labels[n_lists:]
    return False


def current_way(tagger, attributes):
    """Short way of a tagger, from its current weights; None without any weights."""
    way = attributes.get(DERIVED)
    if way is None or not way.is_of(tagger):
        if not READABLE or not hasattr(tagger, "coef_"):
            return None
        # Complete when it is assigned: other threads may use it at once.
        way = attributes[DERIVED] = ShortWay(tagger)
    return way


def label_few(tagger, X):
    """Result of `predict`, an object array of lists; None where a batch has to be made."""
    X, store = _input(tagger, X)
    if store is None:
        return None
    labels = [[] for _ in range(_n_sequences(X, store))]
    return _as_array(labels) if answer(tagger, X, store, labels) else None


def weigh_few(tagger, X):
    """Result of `predict_proba`, an object array of arrays; None as of `label_few`."""
    X, store = _input(tagger, X)
    sums = bytearray()
    if store is None or not answer(tagger, X, store, [], sums):
        return None
    proba, _, _ = _parts(store, sums)
    if _n_sequences(X, store) == 1:
        return _as_array([proba])
    return split_sequences(proba, unpack(store)[0].offsets)


def search_few(tagger, X):
    """The best labelling of each sequence; None as of `label_few`.

    Returns
    -------
    labels : list of lists
    scores, log_partition : ndarray of shape (n_sequences,)
    """
    X, store = _input(tagger, X)
    if store is None:
        return None
    labels, sums = [[] for _ in range(_n_sequences(X, store))], bytearray()
    if not answer(tagger, X, store, labels, sums):
        return None
    _, log_partition, scores = _parts(store, sums)
    return labels, scores, log_partition


def _input(tagger, X):
    """Sentences and a store for them; None and a full store, or None where there are none."""
    if type(X) is list:
        return (X, bytearray()) if 0 < len(X) <= _FEW else (None, None)
    loose = tokens_of(X)
    if loose is None:
        return None, None
    attributes = vars(tagger)
    if X.feature_names is not attributes.get("feature_names_in_"):
        return None, None
    # Without names, columns are told apart by their numbers.
    has_blocks = X._has_blocks
    is_numbered = has_blocks or X.feature_names is None
    if is_numbered and X.n_features != attributes.get("n_features_in_"):
        return None, None
    return (X, bytearray()) if has_blocks else (None, pack(loose))


def _n_sequences(X, store):
    return np.frombuffer(store, np.int64, 1)[few.N_SEQUENCES] if X is None else len(X)


def _as_array(values):
    result = np.empty(len(values), object)
    for i, value in enumerate(values):
        result[i] = value
    return result


def _parts(store, sums):
    """Marginals, log-partitions and scores."""
    head, found = np.frombuffer(store, np.int64, few.N_HEAD).tolist(), np.frombuffer(sums)
    n_sequences, n_rows, n_labels = head[few.N_SEQUENCES], head[few.N_TOKENS], head[few.WIDTH]
    proba, sums = found[: n_rows * n_labels], found[n_rows * n_labels :]
    return proba.reshape(n_rows, n_labels), sums[:n_sequences], sums[n_sequences:]


def pack(loose):
    """Store of tokens that have been read, `LooseRows`."""
    ends, columns, values, offsets = loose
    n_rows, n_entries, bounds = len(ends) - 1, len(columns), offsets.tolist()
    lengths = [*map(sub, bounds[1:], bounds)] if offsets.ndim == 1 else []
    # The compiled function follows them, and whoever has a batch can write to them.
    if not lengths or bounds[0] != 0 or bounds[-1] != n_rows or min(lengths) < 0:
        read_offsets(offsets, n_rows)
    head = array("q", bytes(8 * few.N_HEAD))
    head[few.N_SEQUENCES], head[few.N_TOKENS] = len(offsets) - 1, n_rows
    head[few.N_ENTRIES] = head[few.N_READ] = n_entries
    head[few.N_VALUES], head[few.LENGTH] = len(values), max(lengths)
    labels, odd = bytes(4 * (n_rows + n_rows % 2)), bytes(4 * (n_entries % 2))
    return bytearray().join((head, offsets, ends, columns, odd, labels, values))


def unpack(store):
    """Tokens in a store, `LooseRows`, and their labels; none of it copied."""
    head = np.frombuffer(store, np.int64, few.N_HEAD).tolist()
    n_rows, n_entries = head[few.N_TOKENS], head[few.N_ENTRIES]
    sizes = [head[few.N_SEQUENCES] + 1, n_rows + 1, n_entries, n_rows, head[few.N_VALUES]]
    types_of_parts = [np.int64, np.int64, np.int32, np.int32, np.float64]
    parts, at = [], 8 * few.N_HEAD
    for size, dtype in zip(sizes, types_of_parts, strict=True):
        part = np.ndarray(size, dtype, store, at)
        parts.append(part)
        at += part.nbytes + part.nbytes % 8
    offsets, ends, columns, labels, values = parts
    columns, values = columns[: ends[-1]], values[: ends[-1]]
    return LooseRows(ends, columns, values, offsets), labels


@cache
def _compiled():
    """Entry of the compiled function, without the look at the types of its arguments."""
    return ask_few.compile((types.intp,))


class _NoVectorizer:
    vocabulary_ = None


class ShortWay:
    """What the compiled function has to know of a fitted tagger, none of the weights copied.

    It keeps them alive, so that no later array can have the identity of one of them. It is never
    changed: another thread may be using it.

    Parameters
    ----------
    tagger : LinearChainMixin
        Fitted.
    tabulates : bool, default=False
        Tabulate the factors of the transitions, which marginals need.

    Attributes
    ----------
    ask : callable
        The compiled function `ask_few`.
    address : int
        As in the plan.
    chain : Chain or None
        The weights; None if they have to be decoded otherwise.
    codes : KnownCodes or None
        Columns by key and value.
    """

    def __init__(self, tagger, tabulates=False):
        self.ask = _compiled()
        # Asking for weights may compute them (`OnlineTagger`).
        self._held = [getattr(tagger, name, None) for name in _HELD]
        self.vectorizer = vars(tagger).get("vectorizer_") or _NoVectorizer
        self.vocabulary = getattr(self.vectorizer, "vocabulary_", None)
        self._plan = np.zeros(few.N_PLACES, np.int64)
        self.address = self._plan.ctypes.data
        self.codes, self.chain, self._arrays = None, None, []
        for place, value in _CONSTANTS:
            self._plan[place] = id(value)
        self._plan[few.N_HELD] = len(_HELD)
        self._plan[few.IS_OWN] = OWN in vars(tagger)
        self._point(few.NAMES, np.array(list(map(id, _HELD))))
        self._point(few.HELD, np.array(list(map(id, self._held))))
        self._classes, self._classes_before = tagger.classes_, tagger.classes_.copy()
        if not self._classes.flags.c_contiguous:
            return
        self._plan[few.N_BYTES] = self._classes.nbytes
        self._point(few.CLASSES, self._classes)
        self._point(few.CLASSES_BEFORE, self._classes_before)
        chain = self._chain_of(tagger)
        if chain is not None:
            self._plan[few.USABLE], self.chain = 1, read_only(chain)
            self._describe(chain, tagger._codes_of_y(np.arange(len(chain.transition))))
            self._describe_codes()
            if tabulates:
                self._tabulate(chain)

    def score(self, batch, store):
        """Fill a store with scores of labels, in place of the tokens of a batch with blocks.

        Returns
        -------
        found : bool
            False where a batch has to be made, which raises the errors.
        """
        if self.chain is None:
            return False
        rows, placed = block_rows(batch)
        scores = label_scores(rows, placed, self.chain.weights)
        ends, columns = np.zeros(len(scores) + 1, np.int64), np.empty(0, np.int32)
        store[:] = pack(LooseRows(ends, columns, scores.ravel(), batch.offsets))
        return True

    def _point(self, place, array):
        """Note the address of an array, and keep the array."""
        self._plan[place] = array.ctypes.data
        self._arrays.append(array)

    def is_of(self, tagger):
        """Return True if a tagger has the very same arrays."""
        same = all(map(is_, self._held, map(vars(tagger).get, _HELD)))
        same = same and getattr(self.vectorizer, "vocabulary_", None) is self.vocabulary
        return same and self._classes.tobytes() == self._classes_before.tobytes()

    def _chain_of(self, tagger):
        """The weights, None if they have to be decoded otherwise."""
        try:
            chain = tagger._chain()
        except ValueError:
            return None
        n_jobs = tagger.n_jobs
        may_run = n_jobs is None or (isinstance(n_jobs, Integral) and n_jobs != 0)
        known = self.vocabulary
        if self.vectorizer is _NoVectorizer:
            known = vars(tagger).get("feature_names_in_", range(tagger.n_features_in_))
        fits = known is not None and len(chain.weights) == len(known) and chain.may_list
        if not may_run or not fits or len(tagger.learned_classes_) != len(chain.transition):
            return None
        # Changes in place are to be seen, as in a batch.
        given = (getattr(tagger, name) for name in ALWAYS_LEARNT)
        return chain if all(map(np.may_share_memory, chain, given)) else None

    def _describe(self, chain, codes_of_y):
        """Note the weights and the labels."""
        self._plan[few.N_FEATURES], self._plan[few.N_LABELS] = chain.weights.shape
        places = few.WEIGHTS, few.TRANSITION, few.INTERCEPT, few.START, few.END
        for place, part in zip(places, chain, strict=True):
            self._point(place, part)
        self._names = self._classes[codes_of_y].tolist()
        self._point(few.LABELS, np.array(list(map(id, self._names))))

    def _describe_codes(self):
        """Note the columns of attributes, unless Python has to compare some of their names."""
        codes = None if self.vectorizer is _NoVectorizer else self.vectorizer.known_codes()
        if codes is None or codes.vocabulary is not self.vocabulary or not codes.is_plain:
            return
        self.codes = codes
        self._plan[few.VOCABULARY], self._plan[few.TABLES] = id(self.vocabulary), id(codes)
        self._plan[few.SINGLE] = check_float_dtype(self.vectorizer.dtype) == np.float32

    def _tabulate(self, chain):
        copied = chain.transition.copy()
        chain = with_list(chain._replace(transition=read_only(copied)), "sums")
        factors = chain_factors(chain)
        places = few.TABULATED, few.SHIFT, few.LINEAR, few.LINEAR_T
        for place, part in zip(
            places, (copied, factors.shift, factors.linear, factors.linear_t), strict=True
        ):
            self._point(place, part)
        self._plan[few.SAFE], self._plan[few.FORBIDS] = factors.safe, factors.forbids
        if "default" in factors._fields:
            # Scores of listed transitions.
            self._plan[few.IS_LISTED], self._plan[few.N_LISTED] = 1, factors.linear.size
            self._point(few.DEFAULT, factors.default)
            places = few.DEFAULT_SCORE, few.INDPTR, few.ORIGIN, few.SCORE
            *into, leaving = factors.edges
            for place, part in zip(places, into, strict=True):
                self._point(place, part)
            for place, part in zip((few.FROM_LABEL, few.INTO, few.ORDER), leaving, strict=True):
                self._point(place, part)

    def decode(self, store, labels, sums):
        """Do the rest of `answer` for many tokens, without the lock of the interpreter."""
        if not decode_few(self.address, id(store), len(labels) > 0, id(sums)):
            return False
        if labels:
            loose, codes = unpack(store)
            found = split_sequences(codes.tolist(), loose.offsets)
            for out, part in zip(labels, found, strict=True):
                out += map(self._names.__getitem__, part)
        return True


_CONSTANTS = (
    (few.LIST, list),
    (few.DICT, dict),
    (few.STR, str),
    (few.FLOAT, float),
    (few.INT, int),
    (few.BOOL, bool),
    (few.TRUE, True),
    (few.NONE, None),
)
