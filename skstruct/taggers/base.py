"""What all taggers share: reading X and y, prediction, and that a failed fit changes nothing."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from skstruct.features.mixin import FeatureInput
from skstruct.input.class_weight import weigh_sequences
from skstruct.input.constraints import SCHEMES, check_labelling, minus_infinite, read_constraint
from skstruct.input.formats import Format, encode_labels, read_format, shape_predictions
from skstruct.input.known_labels import (
    check_completable,
    check_decoded,
    check_partial,
    clamp,
    no_labelling,
    without_unlabelled,
)
from skstruct.input.training_set import TrainingSet, batch_rows
from skstruct.kernels.chain.decode import decode_best, decode_marginals
from skstruct.kernels.chain.forward_backward import prepare_transitions
from skstruct.kernels.chain.scores import Chain, TransitionChain
from skstruct.sequences import SequenceBatch
from skstruct.solvers.base import Model, settings_of
from skstruct.solvers.watcher import Stopping, Watcher
from skstruct.taggers.nbest import check_search, make_search, search_sequences
from skstruct.taggers.stored import check_weights
from skstruct.utils.parallel import range_runner
from skstruct.utils.persistence import Persistent
from skstruct.utils.public_paths import set_module
from skstruct.utils.transaction import unchanged_on_error

__all__ = ["LEARNT", "BaseTagger", "Labelling"]

# Attributes that hold what was learnt; the last one only where transitions have features.
LEARNT = ("coef_", "transition_", "intercept_", "start_", "end_", "transition_coef_")


@set_module("skstruct")
class Labelling(NamedTuple):
    """One label sequence that `BaseTagger.predict_nbest` found.

    Attributes
    ----------
    labels : list
        One label a token.
    score : float
        What the model scores it: the weights of its labels and label pairs, summed.
    probability : float
        ``exp(score)`` over the sum of the same of all label sequences, or of those found.
    """

    labels: list
    score: float
    probability: float


class BaseTagger(Persistent, FeatureInput, BaseEstimator):
    """Base of the taggers: linear chains that differ in how they learn their weights.

    A subclass has the parameters `constraint`, `class_weight`, `n_jobs` and `warm_start`.

    Required:

    - ``_solver()`` returns the function that learns, ``solve(training_set, model, start=,
      watcher=) -> Solution`` (see `skstruct.solvers.base`).

    Optional, with what the base class does:

    - ``_check_params()``: refuse parameters that do not go together. Nothing.
    - ``_learns_partial_labels()``: True if labels may be None. False.
    - ``_learns_transition_features``: True if transitions may have features. False.
    - ``_keep(solution)``: keep what was learned. Sets the weights, ``n_iter_`` and ``history_``.

    `fit` calls ``_check_params``, ``_solver``, reads X and y, which sets ``classes_`` and
    ``n_features_in_``, calls what ``_solver`` returned, and then ``_keep``. Whatever is raised on
    the way, it puts the estimator back as it was. So a tagger that always predicts the most
    frequent label is::

        class MajorityTagger(BaseTagger):
            def __init__(
                self, *, constraint=None, class_weight=None, n_jobs=None, warm_start=False
            ):
                self.constraint, self.class_weight = constraint, class_weight
                self.n_jobs, self.warm_start = n_jobs, warm_start

            def _solver(self):
                return count_labels

        def count_labels(training_set, model, start, watcher):
            chain = model.zero_chain()
            chain.intercept[:] = np.bincount(training_set.labels, minlength=model.n_labels)
            return Solution(chain, history={}, n_iter=1)

    Taggers do not call themselves classifiers to scikit-learn, although they are: for a
    classifier and an integer ``cv`` it would look into y for the classes to stratify by, and
    reject a list of label lists.
    """

    _parameter_constraints: dict = {
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "constraint": [StrOptions(set(SCHEMES)), "array-like", None],
        "n_jobs": [Integral, None],
    }

    def fit(self, X, y, sample_weight=None, *, X_val=None, y_val=None, sample_weight_val=None):
        """Learn the weights.

        Parameters
        ----------
        X : sequences of tokens
            A list of sequences of feature dicts or of lists of attribute strings, a
            `SequenceBatch`, a list of matrices ``(length_i, n_features)``, a 3-D array, or a 2-D
            array, sparse matrix or data frame whose rows are sequences of length one.
        y : sequences of labels
            For each sequence its labels, all str or all int: a list of lists, an object array,
            or a 2-D array. For 2-D `X` a 1-D array. For taggers that learn from partly labelled
            sequences, None where the label of a token is not known.
        sample_weight : array-like of shape (n_sequences,), default=None
            How often each sequence counts in the objective. By default, once.
        X_val, y_val : sequences of tokens and of labels, default=None
            A validation set, in any format and with the features of `X`; others are ignored as in
            `predict`. Its accuracy is noted in ``history_["validation_score"]`` at every epoch
            (or iteration). With ``early_stopping`` it takes the place of a part held out.
            Labels that do not occur in `y` count as wrong, whatever is predicted.
        sample_weight_val : array-like of shape (n_val_sequences,), default=None
            Weights of its sequences.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X, y or a parameter is invalid; the message names the sequence and the token. The
            estimator is then as it was before.
        """
        validation = X_val, y_val, sample_weight_val
        return self._fit_watched(X, y, sample_weight, validation, None)

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_watched(self, X, y, sample_weight, validation, on_prediction):
        """Learn as `fit`, and call a function with each prediction for the validation set."""
        with unchanged_on_error(self):
            self._check_params()
            solve = self._solver()
            warm = self.warm_start and hasattr(self, "coef_")
            # In one call, so that a solver that has packed the data can let go of it.
            solution = solve(
                self._read_training_set(
                    X, y, sample_weight, self.classes_ if warm else None, not warm
                ),
                self._model(),
                start=self._chain() if warm else None,
                watcher=self._watcher(validation, on_prediction),
            )
            self._keep(solution)
            if solution.complaint:
                warnings.warn(solution.complaint, ConvergenceWarning, stacklevel=4)
        return self

    def _check_params(self):
        """Refuse parameters that do not go together."""

    def _model(self):
        """Size of the model, and the labellings that `constraint` allows."""
        n_transition_features = vars(self).get("n_transition_features_in_")
        size = self.n_features_in_, len(self.classes_), n_transition_features
        return Model(*size, read_constraint(self.constraint, self.classes_))

    def _watcher(self, validation, on_prediction):
        """Watch the validation set given to `fit`, if there is one."""
        validation_set = None
        if any(part is not None for part in validation):
            # Imported where it is needed: most fits have no validation set.
            from skstruct.input.validation_set import read_validation_set

            validation_set = read_validation_set(self._read_X, self.classes_, *validation)
        return Watcher(settings_of(Stopping, self), validation_set, on_prediction)

    def _keep(self, solution):
        """Keep what was learned."""
        self._set_chain(solution.chain)
        self.n_iter_, self.history_ = solution.n_iter, solution.history

    def _forget(self, *names):
        """Remove attributes of an earlier fit."""
        for name in names:
            vars(self).pop(name, None)

    def predict(self, X, known=None):
        """Best label sequences (Viterbi).

        Parameters
        ----------
        X : sequences of tokens
            In any format that `fit` takes, with the same features. Unknown features of dicts and
            attribute strings are ignored.
        known : sequences of labels, default=None
            Labels that are known, in the shape of `y`, with None for tokens whose label is not.
            The labelling is then the best one that agrees with them.

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
        format, batch = self._read_X(X)
        rows, chain, known, possible = self._condition(batch, known, format)
        codes = np.empty(batch.n_rows, np.int32)
        with range_runner(batch.offsets, self.n_jobs) as run:
            run(lambda _, first, last: decode_best(rows, batch.offsets, first, last, chain, codes))
        check_decoded(codes, known, batch.offsets, possible)
        return self._shape_labels(codes, batch, format)

    def predict_proba(self, X, known=None):
        """Marginal probability of each label at each token (forward-backward).

        The distribution is ``exp(score)`` over all label sequences. It is what a CRF was trained
        for; the scores of a perceptron have no natural scale, so read its marginals as a ranking.

        Parameters
        ----------
        X : sequences of tokens
            As in `predict`.
        known : sequences of labels, default=None
            As in `predict`. The probabilities are then conditional on these labels.

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
        format, batch = self._read_X(X)
        marginals, _ = self._marginals(batch.offsets, *self._condition(batch, known, format))
        return shape_predictions(marginals, batch.offsets, format)

    def predict_nbest(
        self, X, n_best=5, *, search="astar", beam_width=50, normalize="all", known=None
    ):
        """Best label sequences, with scores and probabilities.

        Parameters
        ----------
        X : sequences of tokens
            As in `predict`.
        n_best : int, default=5
            How many are wanted. Where there are fewer possible label sequences, all are returned.
        search : {"astar", "kbest", "beam"}, default="astar"
            How they are found. "astar" and "kbest", k-best Viterbi, are exact and return the
            same; "astar" is faster. "beam" keeps the `beam_width` best partial label sequences
            from token to token: it may miss some, and may then end with worse ones.
        beam_width : int, default=50
            How many partial label sequences a beam keeps, at least `n_best`.
        normalize : {"all", "n_best"}, default="all"
            Over what the probabilities sum to one: all label sequences, or those returned (as
            :class:`~skstruct.SAPOTagger` does when it learns).
        known : sequences of labels, default=None
            As in `predict`. Only labellings that agree with these labels are returned, and "all"
            means all of those.

        Returns
        -------
        labellings : ndarray of shape (n_sequences,), dtype object
            For each sequence a list of `Labelling` ``(labels, score, probability)``, best first.

        Raises
        ------
        ValueError
            If a parameter is invalid, and as in `predict`.
        """
        check_search(n_best, search, beam_width)
        if normalize not in ("all", "n_best"):
            raise ValueError(f"normalize must be 'all' or 'n_best', got {normalize!r}.")
        format, batch = self._read_X(X)
        rows, chain, known, possible = self._condition(batch, known, format)
        found = make_search(n_best, search, beam_width)
        codes, scores, counts = search_sequences(rows, batch.offsets, chain, found, self.n_jobs)
        impossible = np.flatnonzero(scores[:, 0] == -np.inf)
        if len(impossible):
            raise no_labelling(impossible[0], known, possible)
        log_partition = None
        if normalize == "all":
            _, log_partition = self._marginals(batch.offsets, rows, chain, known, possible)
        labels = self.classes_.astype(object)[codes]
        result = np.empty(len(batch), dtype=object)
        for i, n_found in enumerate(counts):
            a, b = batch.offsets[i], batch.offsets[i + 1]
            found = scores[i, :n_found]
            log_z = logsumexp(found) if log_partition is None else log_partition[i]
            probabilities = np.exp(found - log_z)
            result[i] = [
                Labelling(labels[m, a:b].tolist(), float(found[m]), float(probabilities[m]))
                for m in range(n_found)
            ]
        return result

    def score(self, X, y, sample_weight=None):
        """Share of tokens that get the right label.

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
            Between 0 and 1.
        """
        # Here, because scorers need much of scikit-learn that nothing else does.
        from skstruct.metrics.accuracy import token_accuracy_score

        return token_accuracy_score(y, self.predict(X), sample_weight=sample_weight)

    def _read_training_set(self, X, y, sample_weight, classes, reset):
        """Check X, y and the weights, and set ``classes_`` and what is known of the features.

        `classes` are those that are known already, or None; with `reset` the features are those
        of X, without it they must be those that are known.
        """
        format, batch = self._read_X(X, reset=reset)
        self.classes_, labels = encode_labels(y, batch, format, classes, partial=True)
        self._check_labels(labels, batch.offsets)
        if len(self.classes_) >= 1 << 15:
            raise ValueError(f"{len(self.classes_)} classes; at most 32767 are supported.")
        if batch.n_features == 0:
            raise ValueError("Found array with 0 feature(s): at least one feature is required.")
        sample_weight = _check_sample_weight(
            sample_weight, batch, dtype=np.float64, ensure_non_negative=True
        )
        sample_weight = weigh_sequences(
            self.class_weight, self.classes_, labels, batch.offsets, sample_weight
        )
        if labels.min(initial=0) < 0:
            sample_weight = without_unlabelled(sample_weight, labels, batch.offsets)
        if not np.any(sample_weight[np.diff(batch.offsets) > 0]):
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return TrainingSet(batch_rows(batch), batch.offsets, labels, sample_weight)

    def _check_labels(self, labels, offsets):
        """Refuse training labels that the learner, or its `constraint`, can do nothing with."""
        if labels.min(initial=0) < 0:
            check_partial(labels, offsets, learns=self._learns_partial_labels())
        possible = read_constraint(self.constraint, self.classes_)
        if possible is not None:
            check_completable(labels, offsets, self.classes_, possible)

    def _learns_partial_labels(self):
        """Whether tokens may be without a label."""
        return False

    def _condition(self, batch, known, format):
        """What to decode: rows, chain, codes of the known labels, and what is possible.

        The last two are None where nothing is known, and nothing impossible.
        """
        rows, chain = batch_rows(batch), self._chain()
        possible = minus_infinite(chain)
        if possible is not None and isinstance(self.constraint, str):
            possible = possible._replace(name=f"constraint={self.constraint!r}")
        if known is not None:
            _, known = encode_labels(
                known, batch, format, self.classes_, name="known", partial=True
            )
            if possible is not None:
                check_labelling(known, batch.offsets, self.classes_, possible)
            rows, chain = clamp(rows, chain, known)
        return rows, chain, known, possible

    def _read_X(self, X, *, reset=False):
        """Settle the format of X and bring it into a batch with the features of the model."""
        if not reset:
            check_is_fitted(self)
        n_transition_features = vars(self).get("n_transition_features_in_")
        known = (None, None) if reset else (self.n_features_in_, n_transition_features)
        format, X = read_format(X, *known)
        if reset:
            self._forget("vectorizer_")
        if format is Format.ROWS:
            X = validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset
            )
            X = SequenceBatch(X, np.arange(X.shape[0] + 1))
        else:
            if format is Format.TOKENS:
                X = self._vectorize(X, reset=reset)
            self._check_features(X, reset=reset)
        self._check_transition_features(X, reset=reset)
        return format, X

    def _shape_labels(self, codes, batch, format):
        # As objects, the same few labels are shared by all tokens.
        ragged = format in (Format.BATCH, Format.TOKENS)
        classes = self.classes_.astype(object) if ragged else self.classes_
        return shape_predictions(classes[codes], batch.offsets, format)

    def _set_chain(self, chain):
        """Keep weights; a feature's weights stay side by side, as the kernels read them."""
        self.coef_ = chain.weights.T
        self.transition_ = chain.transition
        self.intercept_ = chain.intercept
        self.start_ = chain.start
        self.end_ = chain.end
        self._forget("transition_coef_")
        if isinstance(chain, TransitionChain):
            k = len(chain.intercept)
            self.transition_coef_ = chain.transition_weights.reshape(-1, k, k).transpose(1, 2, 0)

    def _chain(self):
        def kernel_array(a):
            return np.ascontiguousarray(a, dtype=np.float64)

        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        chain = Chain(
            kernel_array(coef.T),
            kernel_array(self.transition_),
            kernel_array(self.intercept_),
            kernel_array(self.start_),
            kernel_array(self.end_),
        )
        if not hasattr(self, "transition_coef_"):
            return chain
        weights = self.transition_coef_.transpose(2, 0, 1)
        return TransitionChain(
            *chain, kernel_array(weights).reshape(len(weights), chain.transition.size)
        )

    def _marginals(self, offsets, rows, chain, known, possible):
        """Node marginals (n_rows, n_classes) and log-partitions (n_sequences,)."""
        transitions = prepare_transitions(chain.transition)
        forbids = known is not None or possible is not None
        if forbids:
            transitions = transitions._replace(forbids=True)
        marginals = np.empty((offsets[-1], len(self.classes_)))
        log_partition = np.empty(len(offsets) - 1)
        with range_runner(offsets, self.n_jobs) as run:
            run(
                lambda _, first, last: decode_marginals(
                    rows, offsets, first, last, chain, transitions, marginals, log_partition
                )
            )
        impossible = np.flatnonzero(log_partition == -np.inf) if forbids else ()
        if len(impossible):
            raise no_labelling(impossible[0], known, possible)
        return marginals, log_partition

    def _check_state(self):
        check_weights(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.input_tags.dict = True
        return tags
