"""Tagger with the interface of python-crfsuite's."""

import math
import sys
from contextlib import closing
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skstruct.chain.few import label_few, weigh_few
from skstruct.chain.protocol import chain_factors
from skstruct.chain.ranges import decode_best, decode_marginals
from skstruct.chain.scores import path_score, sequence_scores
from skstruct.crfsuite.file import decode_model, describe_header, encode_model
from skstruct.crfsuite.items import as_text, as_tokens
from skstruct.crfsuite.model import model_from_tagger, tagger_from_model
from skstruct.input.scale import check_log_partition, correct_marginals
from skstruct.input.training_set import batch_rows
from skstruct.matrices import read_only
from skstruct.taggers.short import Held
from skstruct.utils.files import read_bytes, value_errors_name, write_whole
from skstruct.utils.messages import short_repr
from skstruct.utils.public_paths import set_module


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


class _Model:
    """Weights and labels of an estimator, immutable because threads may share them."""

    def __init__(self, estimator, labels):
        self.estimator = estimator
        self.labels = labels
        self.classes = estimator.classes_.tolist()
        self.codes = {label: code for code, label in enumerate(self.classes)}
        self.chain = read_only(estimator._chain())
        self._held = Held(estimator)

    def is_current(self):
        """Return True if the estimator has learnt nothing, and was given no weights, meanwhile."""
        return self._held.is_of(self.estimator)

    def code(self, label):
        """Code of a label."""
        label = as_text(label)
        if label not in self.codes:
            raise ValueError(f"{short_repr(label)} is not a label of this model; see labels().")
        return self.codes[label]

    def read(self, xseq):
        """Read a sequence of tokens."""
        xseq = as_tokens(xseq)
        if not hasattr(self.estimator, "vectorizer_"):
            return _Sequence(self, self.estimator._read_X([xseq])[1])
        # For a single sequence, building a batch would take most of the time.
        xseq = list(xseq)
        packed = self.estimator.vectorizer_.pack([xseq])
        return _Sequence(self, self.estimator._read_X([xseq])[1] if packed is None else packed)


class _Sequence:
    """A batch of one sequence, and the model that it was read for."""

    def __init__(self, model, batch):
        self.model = model
        self._batch, self._length = batch, int(batch.offsets[-1])
        # The short way, in one call, is for the weights that nearly all models have.
        self._loose = getattr(batch, "loose", None) if model.chain.may_list else None
        self._found = None

    @cached_property
    def rows(self):
        """Rows in the layout of the kernels."""
        return batch_rows(self._batch)

    def __len__(self):
        return self._length

    def tag(self):
        """Best labels."""
        codes, loose, chain = np.empty(len(self), np.int32), self._loose, self.model.chain
        if loose is None or not label_few(*loose, chain, codes):
            ends = read_only(np.array([0, len(self)]))
            decode_best(self.rows, ends, 0, 1, chain, codes)
        return [self.model.classes[code] for code in codes.tolist()]

    def probabilities(self):
        """Marginals and log-partition, computed once."""
        if self._found is None:
            model, log_partition, loose = self.model, np.empty(1), self._loose
            marginals = np.empty((len(self), len(model.classes)))
            short = loose is not None
            if not (short and weigh_few(*loose, model.chain, marginals, log_partition)):
                ends = read_only(np.array([0, len(self)]))
                factors = chain_factors(model.chain)
                decode_marginals(
                    self.rows, ends, 0, 1, model.chain, factors, marginals, log_partition
                )
                correct_marginals(marginals, ends, log_partition)
            self._found = marginals, float(log_partition[0])
        return self._found

    def probability(self, yseq):
        """Probability of labels."""
        marginals, log_partition = self.probabilities()
        codes = np.array([self.model.code(label) for label in yseq], np.int32)
        if len(codes) != len(marginals):
            raise ValueError(
                f"Got {len(codes)} labels for {len(marginals)} tokens; pass one for each token."
            )
        scores = np.empty(marginals.shape)
        sequence_scores(self.rows, 0, len(codes), self.model.chain, scores)
        edges = chain_factors(self.model.chain).edges
        score = path_score(scores, len(codes), edges, codes)
        check_log_partition(np.array([log_partition]))
        return math.exp(score - log_partition)


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
        self._model = self._last = None

    def _set_model(self, estimator, labels):
        self._model, self._last = _Model(estimator, labels), None

    def open(self, name):
        """Read a model file.

        Parameters
        ----------
        name : str or path-like
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
        model = decode_model(bytes(value))
        self._set_model(tagger_from_model(model), model.labels)
        return closing(self)

    def close(self):
        """Drop the model."""
        self._model = self._last = None

    def labels(self):
        """Return the labels in the order of the model file.

        Returns
        -------
        labels : list of str
        """
        return list(self._opened().labels)

    def set(self, xseq):
        """Set the sequence for the calls that follow.

        Parameters
        ----------
        xseq : list of tokens
            Feature dicts, also with arrays; lists of attribute strings; or an ``ItemSequence`` of
            python-crfsuite.
        """
        self._set(xseq)

    def _set(self, xseq):
        """Set the sequence, and return it as a `_Sequence`."""
        # Each of several threads goes on with the sequence that it has set.
        self._last = sequence = self._opened().read(xseq)
        return sequence

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
        if xseq is not None:
            return self._set(xseq).tag()
        self._opened()
        sequence = self._last
        return [] if sequence is None else sequence.tag()

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
        sequence = self._last_set()
        marginals, _ = sequence.probabilities()
        if not 0 <= pos < len(marginals):
            raise ValueError(f"Position {pos} is out of range of {len(marginals)} tokens.")
        return float(marginals[pos, sequence.model.code(y)])

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
        return self._last_set().probability(yseq)

    def info(self):
        """Return the names and weights of the model.

        Returns
        -------
        info : ModelInfo
            Weights are in full precision, unlike python-crfsuite's, which have six decimals.
        """
        try:
            opened = self._opened()
        except ValueError as error:
            # As python-crfsuite, which raises ValueError everywhere else.
            raise RuntimeError(str(error)) from None
        model = model_from_tagger(opened.estimator, labels=opened.labels)
        labels, attributes = model.labels, model.attributes
        return ModelInfo(
            describe_header(encode_model(model)),
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

    def _opened(self):
        model = self._model
        if model is None:
            raise ValueError("The tagger is not opened")
        if not model.is_current():
            model = self._model = _Model(model.estimator, model.labels)
        return model

    def _last_set(self):
        """The sequence that was set last; without one, an empty one."""
        self._opened()
        sequence = self._last
        return self._set([]) if sequence is None else sequence


def tagger_of(estimator, labels):
    """`Tagger` of a fitted estimator, with its labels in the order given."""
    tagger = Tagger()
    tagger._set_model(estimator, labels)
    return tagger


def _weights_by_name(pairs, weights, names, labels):
    return {
        (names[a], labels[b]): weight
        for (a, b), weight in zip(pairs.tolist(), weights.tolist(), strict=True)
    }


def _dump_lines(info):
    """Lines of CRFsuite's dump."""
    sections = {
        "FILEHEADER": (f"  {name}: {value}\n" for name, value in info.header.items()),
        "LABELS": (f"  {number:>5}: {name}\n" for name, number in info.labels.items()),
        "ATTRIBUTES": (f"  {number:>5}: {name}\n" for name, number in info.attributes.items()),
        "TRANSITIONS": (
            f"  (1) {before} --> {label}: {weight:.6f}\n"
            for (before, label), weight in info.transitions.items()
        ),
        "STATE_FEATURES": (
            f"  (0) {name} --> {label}: {weight:.6f}\n"
            for (name, label), weight in info.state_features.items()
        ),
    }
    for title, lines in sections.items():
        yield f"{title} = {{\n"
        yield from lines
        yield "}\n\n"
