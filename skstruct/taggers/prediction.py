"""Prediction with the weights of a linear chain: labels, marginals, the n best labellings."""

from math import prod
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skstruct.blocks.rows import scored
from skstruct.chain.dense import Chain
from skstruct.chain.kinds import KINDS
from skstruct.chain.search import SEARCHES
from skstruct.decoding import best_labels, make_search, marginals, nbest_labels, probable_spans
from skstruct.input.constraints import (
    check_decoded,
    check_labelling,
    clamp,
    minus_infinite,
    no_labelling,
)
from skstruct.input.formats import Format, encode_labels, shape_predictions
from skstruct.input.learnt import learnt_labels
from skstruct.input.scale import check_log_partition, correct_marginals
from skstruct.input.training_set import block_rows
from skstruct.matrices import as_dense, read_only
from skstruct.metrics.chunks import reading_of_labels
from skstruct.metrics.labels import token_accuracy_score
from skstruct.taggers.short import (
    ALWAYS_LEARNT,
    DERIVED,
    label_few,
    search_few,
    weigh_few,
)
from skstruct.utils.messages import check_choice, check_count, given
from skstruct.utils.persistence import set_module
from skstruct.utils.transaction import refuse_arguments

# Attributes of the other weights, by the field of a chain, and the order of their axes in kernels,
# where the last two belong to labels.
MORE_LEARNT = {
    "transition_weights": ("transition_coef_", (2, 0, 1)),
    "triple": ("transition2_", (0, 1, 2)),
}
# Kernels would read beyond the weights.
_OTHER_FIT = (
    "The tagger was fitted again while it predicted: fit a copy, and replace this one by it."
)
LEARNT = (*ALWAYS_LEARNT, *(name for name, _ in MORE_LEARNT.values()))


@set_module("skstruct")
class Labelling(NamedTuple):
    """One label sequence that `BaseTagger.predict_nbest` found.

    Attributes
    ----------
    labels : list
        One label a token.
    score : float
        Sum of the weights of its labels and transitions.
    probability : float
        ``exp(score)``, normalised over all label sequences or over those found.
    """

    labels: list
    score: float
    probability: float


@set_module("skstruct")
class Span(NamedTuple):
    """A chunk that `BaseTagger.predict_spans` found.

    Attributes
    ----------
    start, end : int
        Its first token, and the one after its last.
    type : str
        Type of the chunk.
    probability : float
        Probability that exactly these tokens are a chunk of this type.
    """

    start: int
    end: int
    type: str
    probability: float


class LinearChainMixin:
    """Mixin of estimators with the weights of a linear chain: all that needs no training set.

    A subclass is also a `FeatureInput`. It defines ``_read_X(X)``, which returns the format of X
    and a `SequenceBatch`, and has the attributes ``classes_`` and `LEARNT`, and the
    parameters `n_jobs` and `constraint`.
    """

    # Schemes of y and of the labels that are learnt in place of y's; None if they are y's own.
    _scheme_of_y = _scheme_learnt = None

    @property
    def _learnt_labels(self):
        """Labels that are learnt in place of y's; None if they are the same."""
        if self._scheme_learnt is None:
            return None
        classes = tuple(self.classes_.tolist())
        return learnt_labels(classes, self._scheme_of_y, self._scheme_learnt)

    @property
    def learned_classes_(self):
        """Labels that are learnt, in the order of the weights."""
        learnt = self._learnt_labels
        return self.classes_ if learnt is None else learnt.classes

    def _codes_of_y(self, codes):
        """Codes of ``classes_`` for codes of what is learnt."""
        learnt = self._learnt_labels
        return codes if learnt is None else learnt.outer[codes]

    def predict(self, X, known=None, **others) -> Any:
        """Predict the best label sequences (Viterbi).

        Parameters
        ----------
        X : sequences of tokens
            Any format that `fit` accepts, with the same features. Unknown features of dicts and
            attribute strings are ignored.
        known : sequences of labels, default=None
            Known labels, in the shape of `y`, with None for tokens whose label is unknown. The
            prediction is then the best labelling that agrees with them.
        **others
            None, as in `fit`.

        Returns
        -------
        y : ndarray
            Object array of lists of labels, one for each sequence; 2-D for a 3-D X, 1-D for a 2-D
            X. An empty sequence gives an empty list.

        Raises
        ------
        ValueError
            If `X` or `known` is invalid, or a sequence has no possible labelling because of the
            `constraint` and what is known; the message names the sequence.
        """
        if others:
            refuse_arguments("predict", others)
        labels = label_few(self, X) if known is None else None
        return self._label_batch(X, known) if labels is None else labels

    def _label_batch(self, X, known):
        format, batch = self._read_X(X)
        rows, chain, known, possible = self._condition(batch, known, format)
        codes = best_labels(rows, batch.offsets, chain, self.n_jobs)
        codes_of_y = self._codes_of_y(codes)
        if known is not None or possible is not None:
            check_decoded(codes, known, batch.offsets, possible, codes_of_y)
        return self._shape_labels(codes_of_y, batch, format)

    def predict_proba(self, X, known=None, **others) -> Any:
        """Predict the marginal probability of each label at each token (forward-backward).

        The probability of a label sequence is proportional to ``exp(score)``. A CRF is trained for
        it. The scores of a perceptron have no natural scale, so read its marginals as a ranking.

        Parameters
        ----------
        X : sequences of tokens
            As in `predict`.
        known : sequences of labels, default=None
            As in `predict`. The probabilities are then conditional on these labels.
        **others
            None, as in `fit`.

        Returns
        -------
        proba : ndarray
            Object array of arrays of shape ``(length_i, n_classes)``, one for each sequence;
            ``(n_sequences, length, n_classes)`` for a 3-D X, ``(n_rows, n_classes)`` for a 2-D X.
            Columns in the order of ``classes_``.

        Raises
        ------
        ValueError
            As in `predict`.
        """
        if others:
            refuse_arguments("predict_proba", others)
        plain = known is None and self._scheme_learnt is None
        found = weigh_few(self, X) if plain else None
        return self._weigh_batch(X, known) if found is None else found

    def _weigh_batch(self, X, known):
        format, batch = self._read_X(X)
        proba, _ = self._marginals(batch.offsets, *self._condition(batch, known, format))
        learnt = self._learnt_labels
        proba = proba if learnt is None else learnt.sum_up(proba)
        return shape_predictions(proba, batch.offsets, format)

    def predict_nbest(
        self, X, n_best=5, *, search="astar", beam_width=50, normalize="all", known=None, **others
    ) -> Any:
        """Predict the n best label sequences, with scores and probabilities.

        Parameters
        ----------
        X : sequences of tokens
            As in `predict`.
        n_best : int, default=5
            Number of label sequences. All are returned where fewer are possible.
        search : {"astar", "beam"}, default="astar"
            Search algorithm. "astar" is exact. "beam" keeps the `beam_width` best partial label
            sequences from token to token. It may miss some of the best and return worse ones.
        beam_width : int, default=50
            Number of partial label sequences that a beam keeps, at least `n_best`.
        normalize : {"all", "n_best"}, default="all"
            Normalise probabilities over all label sequences, or over those returned (as
            :class:`~skstruct.SAPOTagger` does in learning).
        known : sequences of labels, default=None
            As in `predict`. Only labellings that agree with these labels are returned, and "all"
            means all of those.
        **others
            None, as in `fit`.

        Returns
        -------
        labellings : ndarray of shape (n_sequences,), dtype object
            For each sequence a list of `Labelling` ``(labels, score, probability)``, best first.

        Raises
        ------
        ValueError
            If a parameter is invalid, and as in `predict`.
        """
        if others:
            refuse_arguments("predict_nbest", others)
        plain = known is None and type(n_best) is type(beam_width) is int
        if plain and n_best == 1 <= beam_width and (search, normalize) == ("astar", "all"):
            found = self._best_of_few(X)
            if found is not None:
                return found
        check_count("n_best", n_best)
        check_count("beam_width", beam_width)
        check_choice("search", search, SEARCHES)
        if normalize not in ("all", "n_best"):
            raise ValueError(f"normalize must be 'all' or 'n_best', got {normalize!r}.")
        found = make_search(n_best, search, beam_width)
        batch, conditioned, codes, scores, counts = self._search_nbest(X, found, known)
        log_partition = None
        if normalize == "all":
            _, log_partition = self._marginals(batch.offsets, *conditioned)
            check_log_partition(log_partition)
        labels = self.classes_.astype(object)[self._codes_of_y(codes)]
        result = np.empty(len(batch), dtype=object)
        for i, n_found in enumerate(counts):
            a, b = batch.offsets[i], batch.offsets[i + 1]
            found = scores[i, :n_found]
            log_z = logsumexp(found) if log_partition is None else log_partition[i]
            probabilities = np.exp(np.minimum(found - log_z, 0.0))
            result[i] = [
                Labelling(labels[m, a:b].tolist(), float(found[m]), float(probabilities[m]))
                for m in range(n_found)
            ]
        return result

    def _search_nbest(self, X, search, known=None):
        """Read X and search; return the batch, `_condition`'s result and `nbest_labels`'."""
        format, batch = self._read_X(X)
        rows, chain, known, possible = conditioned = self._condition(batch, known, format)
        found = nbest_labels(rows, batch.offsets, chain, search, self.n_jobs)
        _require_labellings(found[1][:, 0], known, possible)
        return batch, conditioned, *found

    def predict_spans(self, X, *, threshold=0.5, known=None) -> Any:
        """Predict the chunks, with the probability of each.

        The probability of a span sums over all label sequences in which exactly its tokens are a
        chunk of its type. It is exact, by one forward-backward pass. Of all sets of spans that do
        not overlap, the one with the largest sum of ``probability - threshold`` is chosen. A lower
        threshold finds more chunks, and more that are none.

        Labels are read as :func:`~skstruct.metrics.chunk_f1_score` reads them by default. Where
        they follow no scheme (``"B-LOC"``), a run of the same label is a chunk, and
        ``"O"`` is outside of all. Of labels that are numbers, each run is a chunk.

        The probabilities of a CRF are those that it was trained for. The scores of a perceptron
        have no natural scale: its threshold is a number to be tuned, not a probability.

        Parameters
        ----------
        X : sequences of tokens
            As in `predict`.
        threshold : float, default=0.5
            Probability above which a span is worth predicting, from 0 to 1.
        known : sequences of labels, default=None
            As in `predict`. The probabilities are then conditional on these labels.

        Returns
        -------
        spans : ndarray of shape (n_sequences,), dtype object
            For each sequence a list of `Span` ``(start, end, type, probability)``, in order.
            Positions count tokens, `end` is the one after the last.

        Raises
        ------
        ValueError
            If `threshold` is not a number from 0 to 1, and as in `predict`.

        See Also
        --------
        skstruct.datasets.spans_to_labels : Labels of spans.

        Examples
        --------
        >>> from skstruct import CRFTagger
        >>> X = [[{"word": "in"}, {"word": "New"}, {"word": "York"}]]
        >>> tagger = CRFTagger(l2=0.1).fit(X, [["O", "B-LOC", "I-LOC"]])
        >>> [(start, end, kind) for start, end, kind, _ in tagger.predict_spans(X)[0]]
        [(1, 3, 'LOC')]
        """
        if not isinstance(threshold, Real) or not 0 <= threshold <= 1:
            raise ValueError(f"threshold must be a number from 0 to 1, got {threshold!r}.")
        found = self._search_spans(X, known, least=threshold, thresholds=[float(threshold)])
        batch, _, types, places, probabilities = found
        result = np.empty(len(batch), dtype=object)
        for i in range(len(batch)):
            result[i] = []
        for place, p in zip(places.tolist(), probabilities.tolist(), strict=True):
            _, sequence, start, end, kind = place
            result[sequence].append(Span(start, end, types[kind], min(p, 1.0)))
        return result

    def _search_spans(self, X, known=None, *, least, thresholds=()):
        """Read X and find spans as `probable_spans` does.

        Returns the batch, the format of X, the types of chunks, places and probabilities.
        """
        check_is_fitted(self)
        classes = tuple(self.learned_classes_.tolist())
        types, reading, separable = reading_of_labels(classes)
        format, batch = self._read_X(X)
        rows, chain, known, possible = self._condition(batch, known, format)
        if len(chain.intercept) != len(classes):
            raise ValueError(_OTHER_FIT)
        forbids = known is not None or possible is not None
        how = {"reading": reading, "separable": separable, "thresholds": thresholds}
        *found, log_partition = probable_spans(
            rows, batch.offsets, chain, self.n_jobs, forbids=forbids, least=least, **how
        )
        _require_labellings(log_partition, known, possible)
        check_log_partition(log_partition)
        return batch, format, types, *found

    def score(self, X, y, sample_weight=None) -> float:
        """Compute the token accuracy.

        Parameters
        ----------
        X : sequences of tokens
            As in `predict`.
        y : sequences of labels
            As in `fit`. Tokens whose label is None are left out.
        sample_weight : array-like of shape (n_sequences,), default=None
            Weight of the tokens of each sequence.

        Returns
        -------
        score : float
            Fraction of tokens with the correct label, between 0 and 1.
        """
        return token_accuracy_score(y, self.predict(X), sample_weight=sample_weight)

    def _best_of_few(self, X):
        """The best `Labelling` of each of a few sequences; None where a batch has to be made."""
        found = search_few(self, X)
        if found is None:
            return None
        labels, scores, log_partition = found
        result = np.empty(len(labels), dtype=object)
        probabilities = np.exp(np.minimum(scores - log_partition, 0.0))
        parts = labels, scores.tolist(), probabilities.tolist()
        for i, part in enumerate(zip(*parts, strict=True)):
            result[i] = [Labelling(*part)]
        return result

    def _condition(self, batch, known, format):
        """Return rows and chain to decode, codes of the known labels, and the constraint.

        The last two are None where no label is known, and where every labelling is possible.
        """
        rows, chain, classes = block_rows(batch), read_only(self._chain()), self.classes_
        learnt = self._learnt_labels
        n_labels = len(classes) if learnt is None else len(learnt.classes)
        sizes = n_labels, batch.n_features, batch.n_transition_features
        weights = len(chain.intercept), *(len(getattr(chain, name)) for name in chain.of_features)
        if weights != sizes[: len(weights)]:
            raise ValueError(_OTHER_FIT)
        rows, chain = scored(rows, chain)
        possible = minus_infinite(chain)
        if possible is not None and isinstance(self.constraint, str):
            possible = possible._replace(name=given("constraint", self.constraint))
        if known is not None:
            _, known = encode_labels(known, batch, format, classes, name="known", partial=True)
            of_y = possible if learnt is None else learnt.possible_outer
            if of_y is not None:
                check_labelling(known, batch.offsets, classes, of_y, known=True)
            rows, chain = clamp(rows, chain, known, None if learnt is None else learnt.outer)
        return rows, chain, known, possible

    def _marginals(self, offsets, rows, chain, known, possible):
        """Node marginals (n_rows, n_classes) and log-partitions (n_sequences,)."""
        forbids = known is not None or possible is not None
        found, log_partition = marginals(rows, offsets, chain, self.n_jobs, forbids=forbids)
        if forbids:
            _require_labellings(log_partition, known, possible)
        correct_marginals(found, offsets, log_partition)
        return found, log_partition

    def _shape_labels(self, codes, batch, format):
        # As objects, the same few labels are shared by all tokens.
        ragged = format in (Format.BATCH, Format.TOKENS)
        classes = self.classes_.astype(object) if ragged else self.classes_
        return shape_predictions(classes[codes], batch.offsets, format)

    def _set_chain(self, chain):
        self._forget(*LEARNT[len(ALWAYS_LEARNT) :], DERIVED)
        vars(self).update(weights_of(chain))

    def _chain(self):
        def kernel_array(a):
            return np.ascontiguousarray(a, dtype=np.float64)

        if not hasattr(self, "coef_"):
            raise NotFittedError(f"This {type(self).__name__} has no weights: call fit.")
        coef = as_dense(self.coef_, "coef_")
        parts = np.transpose(coef), self.transition_, self.intercept_, self.start_, self.end_
        chain = Chain(*map(kernel_array, parts))
        k, n_features = len(self.learned_classes_), self.n_features_in_
        shapes = (n_features, k), (k, k), (k,), (k,), (k,)
        for name, part, shape in zip(ALWAYS_LEARNT, chain, shapes, strict=True):
            _check_shape(self, name, part, shape)
        kind, more = self._kind, []
        for field, shape in kind.more_shapes(k, self._n_transition_features).items():
            name, axes = MORE_LEARNT[field]
            by_label = prod(shape) // k**2, k, k
            weights, expected = getattr(self, name), tuple(by_label[i] for i in np.argsort(axes))
            _check_shape(self, name, weights, expected)
            more.append(kernel_array(weights.transpose(axes)).reshape(shape))
        return kind(*chain, *more)

    @property
    def _kind(self):
        """Kind of the chain whose weights are there: the first all of whose fields are."""

        def is_there(kind):
            return all(hasattr(self, MORE_LEARNT[field][0]) for field in kind.more_shapes(0, 0))

        return next(kind for kind in KINDS if is_there(kind))


def _check_shape(tagger, name, part, shape):
    """Refuse weights that were assigned in a wrong shape: kernels would read beyond them."""
    if part.shape != shape:
        raise ValueError(
            f"{name} has the shape {np.shape(getattr(tagger, name))}, which does not fit "
            f"{len(tagger.learned_classes_)} classes and {tagger.n_features_in_} features."
        )


def weights_of(chain):
    """Attributes of the weights of a chain; a feature's stay contiguous."""
    k, parts = len(chain.intercept), chain._asdict()
    found = {"coef_": parts.pop("weights").T}
    for field, part in parts.items():
        if field in MORE_LEARNT:
            name, axes = MORE_LEARNT[field]
            found[name] = part.reshape(-1, k, k).transpose(np.argsort(axes))
        else:
            found[f"{field}_"] = np.asarray(part)
    return found


def _require_labellings(scores, known, possible):
    """Raise a ValueError for the first sequence all of whose labellings are impossible."""
    for sequence in np.flatnonzero(scores == -np.inf)[:1]:
        raise no_labelling(sequence, known, possible)
