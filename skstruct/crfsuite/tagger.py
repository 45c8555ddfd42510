"""Tagger with the interface of python-crfsuite's."""

import math
import os
import sys
from collections.abc import Hashable
from contextlib import closing
from functools import cached_property
from operator import index
from typing import NamedTuple

import numpy as np

from skstruct.blocks.rows import scored
from skstruct.chain.protocol import chain_factors
from skstruct.chain.scores import path_score, sequence_scores
from skstruct.crfsuite.file import decode_model, describe_header, encode_model
from skstruct.crfsuite.items import as_text, copied_token, count_sequences, read_sequence
from skstruct.crfsuite.model import model_from_tagger, tagger_from_model
from skstruct.decoding import marginals
from skstruct.input.scale import check_log_partition
from skstruct.input.training_set import block_rows
from skstruct.matrices import read_only
from skstruct.taggers.short import OWN, answer, unpack
from skstruct.utils.files import read_bytes, value_errors_name, write_whole
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import set_module

# Numbers behind the marginals of a sequence that was set.
_N_MORE = 2


@set_module("skstruct.crfsuite")
class ModelInfo(NamedTuple):
    """Weights of a model by name, as from python-crfsuite's ``Tagger.info()``.

    Attributes
    ----------
    header : dict of str to str
        Header of the model file.
    labels, attributes : dict of str to str
        Number of each label and attribute.
    transitions : dict of (str, str) to float
        Weight of each transition, from the first label to the second.
    state_features : dict of (str, str) to float
        Weight of each pair of an attribute and a label.
    """

    header: dict
    labels: dict
    attributes: dict
    transitions: dict
    state_features: dict


class _Sequence:
    """Sequence that was set, and the estimator that labels it.

    Parameters
    ----------
    estimator : LinearChainMixin
    xseq : list of tokens, default=None
    store : bytearray, default=None
        In place of tokens, what the short way has read of them (`answer`).
    """

    def __init__(self, estimator, xseq=None, store=None):
        self.estimator, self.store = estimator, store
        if store is not None:
            # The columns belong to this vectoriser, whatever becomes of the estimator.
            self._vectorizer = estimator.vectorizer_
            return
        xseq = read_sequence(xseq)
        # A copy, unless it is a matrix: the caller may change the tokens.
        self.X = [list(map(copied_token, xseq)) if isinstance(xseq, list) else xseq]

    @cached_property
    def X(self):
        """The sequence, as a list of one or as a batch."""
        return self._vectorizer.batch_of(unpack(self.store)[0].copy())

    def __len__(self):
        return count_sequences(self.X[0]) if self.store is None else int(self.X.offsets[-1])

    def labels(self):
        labels = []
        # A copy, of which other threads know nothing.
        if self.store and answer(self.estimator, None, bytearray(self.store), [labels]):
            return labels
        return list(self.estimator.predict(self.X)[0])

    def marginals(self):
        """Marginals of all labels, row by row, with `_N_MORE` more numbers."""
        found = self.estimator.predict_proba(self.X)[0]
        return memoryview(np.append(found.ravel(), np.zeros(_N_MORE)))

    def probability(self, codes):
        """Probability of labels, given by their codes."""
        # The best labels, the most usual ones, come with their probability.
        X = self.X
        best = self.estimator.predict_nbest(X, n_best=1)[0][0]
        if best.labels == self.estimator.classes_[codes].tolist():
            return best.probability
        chain, batch = read_only(self.estimator._chain()), self.estimator._read_X(X)[1]
        rows, chain = scored(block_rows(batch), chain)
        scores = np.empty((len(codes), len(chain.intercept)))
        _, log_partition = marginals(rows, read_only(batch.offsets), chain, 1, forbids=False)
        check_log_partition(log_partition)
        sequence_scores(rows, 0, len(codes), chain, scores)
        score = path_score(scores, len(codes), chain_factors(chain).edges, codes)
        return math.exp(min(score - log_partition[0], 0.0))


@set_module("skstruct.crfsuite")
class Tagger:
    """Tagger with the interface of ``pycrfsuite.Tagger``: labels one sequence at a time.

    A drop-in replacement with the same results. For many sequences, `read_model` and ``predict``
    are much faster, and can use several threads.

    See Also
    --------
    read_model : The model as a `CRFTagger`.

    Examples
    --------
    >>> from skstruct.crfsuite import CRF, Tagger
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> crf = CRF().fit(X, y)
    >>> tagger = Tagger()
    >>> with tagger.open(crf.modelfile.name):
    ...     labels = tagger.tag([{"word": "the"}, {"word": "dog"}])
    ...     marginal = tagger.marginal("DET", 0)
    >>> labels
    ['DET', 'NOUN']
    >>> print(f"{marginal:.2f}")
    0.63
    """

    def __init__(self):
        self.close()

    def _set_model(self, estimator, labels):
        self._estimator, self._labels = estimator, labels
        self._last = self._marginals = None
        self._codes = {label: code for code, label in enumerate(estimator.classes_.tolist())}

    def open(self, name):
        """Read a model file.

        Parameters
        ----------
        name : str, bytes or path-like
            Path of the file.

        Returns
        -------
        context : context manager
            Closes the tagger on exit.

        Raises
        ------
        ValueError
            If the file is not a CRFsuite model, or is truncated or inconsistent; the message names
            it.
        """
        # Otherwise bytes would be read as the content of a file.
        name = os.fsdecode(name)
        with value_errors_name(name):
            return self.open_inmemory(read_bytes(name))

    def open_inmemory(self, value):
        """Read the content of a model file.

        Parameters
        ----------
        value : bytes
            Content of the file.

        Returns
        -------
        context : context manager
            As from `open`.
        """
        # Not of a number, of which `bytes` would make so many zeros.
        model = decode_model(bytes(memoryview(value)))
        estimator = tagger_from_model(model)
        vars(estimator)[OWN] = True
        self._set_model(estimator, model.labels)
        return closing(self)

    def close(self):
        """Drop the model."""
        self._estimator = self._labels = self._codes = self._last = self._marginals = None

    def labels(self):
        """Return the labels in the order of the model file.

        Returns
        -------
        labels : list of str
        """
        self._check_opened()
        return list(self._labels)

    def set(self, xseq):
        """Set the sequence for the calls that follow.

        Parameters
        ----------
        xseq : list of tokens
            Feature dicts, also with arrays; lists of attribute strings; or an ``ItemSequence`` of
            python-crfsuite.
        """
        estimator = self._estimator
        if type(xseq) is list and estimator is not None:
            store, sums = bytearray(), bytearray()
            if answer(estimator, [xseq], store, [], sums):
                self._last, self._marginals = (estimator, store), memoryview(sums).cast("d")
                return
        sequence = self._sequence(xseq)
        found = sequence.marginals()
        # Only now: tokens that cannot be read leave the sequence that was set before.
        self._last, self._marginals = sequence, found

    def _sequence(self, xseq):
        self._check_opened()
        return _Sequence(self._estimator, xseq)

    def tag(self, xseq=None):
        """Predict the labels of a sequence.

        Parameters
        ----------
        xseq : list of tokens, default=None
            As in `set`. By default, the sequence that was set last.

        Returns
        -------
        labels : list of str
        """
        estimator = self._estimator
        if type(xseq) is list and estimator is not None:
            labels, store = [], bytearray()
            if answer(estimator, [xseq], store, [labels]):
                self._last, self._marginals = (estimator, store), None
                return labels
        sequence = self._last_set() if xseq is None else self._sequence(xseq)
        labels = sequence.labels()
        if xseq is not None:
            self._last, self._marginals = sequence, None
        return labels

    def marginal(self, y, pos):
        """Compute the marginal of a label at a position of the sequence that was set last.

        Parameters
        ----------
        y : str
            Label.
        pos : int
            Position of the token, from 0.

        Returns
        -------
        probability : float
        """
        found = self._marginals
        if found is None:
            found = self._marginals = self._last_set().marginals()
        n_labels, n = len(self._codes), len(found) - _N_MORE
        if type(pos) is int and type(y) is str and y in self._codes:
            place = pos * n_labels + self._codes[y]
            if pos >= 0 and place < n:
                return found[place]
        try:
            place = index(pos)
        except TypeError:
            if not (isinstance(pos, float) and pos.is_integer()):
                raise TypeError(f"Position {short_repr(pos)} is not a whole number.") from None
            place = int(pos)
        n_tokens = n // max(n_labels, 1)
        if not 0 <= place < n_tokens:
            where = short_repr(place)
            raise ValueError(f"Position {where} is out of range of {n_tokens} tokens.")
        return found[place * n_labels + self._code(y)]

    def probability(self, yseq):
        """Compute the probability of a label sequence for the sequence that was set last.

        Parameters
        ----------
        yseq : list of str
            One label for each token.

        Returns
        -------
        probability : float
        """
        sequence = self._last_set()
        codes = np.array([self._code(label) for label in yseq], np.int32)
        if len(codes) != len(sequence):
            raise ValueError(
                f"Got {len(codes)} labels for {len(sequence)} tokens; pass one for each token."
            )
        return sequence.probability(codes)

    def info(self):
        """Return the names and weights of the model.

        Returns
        -------
        info : ModelInfo
            Weights are in full precision, unlike python-crfsuite's, which have six decimals.
        """
        # As python-crfsuite, which raises ValueError for the other methods.
        self._check_opened(RuntimeError)
        model, info = self._described()
        return info._replace(header=describe_header(encode_model(model)))

    def _described(self):
        """Model, and the names and weights in it: there may be some that no file can hold."""
        model = model_from_tagger(self._estimator, labels=self._labels)
        labels, attributes = model.labels, model.attributes
        return model, ModelInfo(
            {},
            {name: str(number) for number, name in enumerate(labels)},
            {name: str(number) for number, name in enumerate(attributes)},
            _weights_by_name(model.pairs, model.pair_weights, labels, labels),
            _weights_by_name(model.states, model.state_weights, attributes, labels),
        )

    def dump(self, filename=None):
        """Print the names and weights of the model in CRFsuite's layout.

        Parameters
        ----------
        filename : str or path-like, default=None
            Path of a file. By default, standard output.
        """
        lines = _dump_lines(self.info())
        if filename is None:
            sys.stdout.writelines(lines)
            return
        write_whole(filename, "".join(lines).encode("utf-8", errors="surrogateescape"))

    def _check_opened(self, error=ValueError):
        if self._estimator is None:
            raise error("The tagger is not opened")

    def _code(self, label):
        label = as_text(label)
        if not isinstance(label, Hashable) or label not in self._codes:
            raise ValueError(f"{short_repr(label)} is not a label of this model; see labels().")
        return self._codes[label]

    def _last_set(self):
        """The sequence that was set last; without one, an empty one."""
        last = self._last
        if type(last) is tuple:
            # From `tag`, most of whose callers ask for nothing more.
            estimator, store = last
            last = self._last = _Sequence(estimator, store=store)
        return self._sequence([]) if last is None else last


def _weights_by_name(pairs, weights, names, labels):
    return {
        (names[a], labels[b]): weight
        for (a, b), weight in zip(pairs.tolist(), weights.tolist(), strict=True)
    }


def _dump_lines(info):
    """Lines of CRFsuite's dump."""
    for title, layout, entries in (
        ("FILEHEADER", "  {0}: {1}\n", info.header),
        ("LABELS", "  {1:>5}: {0}\n", info.labels),
        ("ATTRIBUTES", "  {1:>5}: {0}\n", info.attributes),
        ("TRANSITIONS", "  (1) {0[0]} --> {0[1]}: {1:.6f}\n", info.transitions),
        ("STATE_FEATURES", "  (0) {0[0]} --> {0[1]}: {1:.6f}\n", info.state_features),
    ):
        yield f"{title} = {{\n"
        for name, value in entries.items():
            yield layout.format(name, value)
        yield "}\n\n"
