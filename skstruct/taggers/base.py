"""Base of the taggers: read X and y, learn, keep the weights; a failed fit changes nothing."""

import warnings
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import validate_data

from skstruct.features.mixin import FeatureInput
from skstruct.frames import check_rows, is_frame
from skstruct.input.constraints import BIASES, check_chain, check_completable, read_constraint
from skstruct.input.costs import LabelCost, read_label_cost
from skstruct.input.formats import Format, check_number, encode_labels, read_format
from skstruct.input.learnt import LEARNT_SCHEMES, READ_SCHEMES
from skstruct.input.scale import advise_scaling, check_sample_weight
from skstruct.input.schemes import SCHEMES, scheme_of_classes
from skstruct.input.training_set import (
    TrainingSet,
    block_rows,
    check_partial,
    empty_unweighted,
    has_token_weights,
    read_sample_weight,
    read_token_weights,
    read_validation_set,
    require_weight,
    weigh_sequences,
    without_unlabelled,
)
from skstruct.learning.monitor import Monitor, Stopping
from skstruct.learning.solver import Model, settings_of
from skstruct.matrices import read_only
from skstruct.sequences import SequenceBatch
from skstruct.taggers.prediction import (
    ALWAYS_LEARNT,
    LEARNT,
    LinearChainMixin,
    weights_of,
)
from skstruct.taggers.scoring import score_of_weights
from skstruct.taggers.short import DERIVED
from skstruct.utils.declared import REAL, Array, Choice, Columns, Count, Labels
from skstruct.utils.messages import DataError, compiling_announced
from skstruct.utils.persistence import Persistent, require_fitted
from skstruct.utils.progress import CallbackSupport, fit_context
from skstruct.utils.transaction import draft_of, refuse_arguments, with_attributes

# Attribute whose length is the size of weights.
LABELS = "learned_classes_"


class _Tags(ClassifierTags):
    """Tags of a tagger, which a pipeline copies at each prediction.

    `deepcopy` of a dataclass would take a fifth of the time that a pipeline takes for a sentence.
    """

    __slots__ = ()

    def __deepcopy__(self, memo):
        return replace(self)


class BaseTagger(CallbackSupport, Persistent, FeatureInput, LinearChainMixin, BaseEstimator):
    """Base of the taggers: linear chains that differ in how they learn their weights.

    A subclass has those of the parameters `constraint`, `class_weight`, `learn_scheme`, `scoring`,
    `n_jobs`, `fit_intercept`, `order`, `warm_start` and `verbose` that it offers, and `label_cost`
    if it learns with the costs of a `Model`.

    Required:

    - ``_solver()`` returns the function that learns, ``solve(training_set, model, settings, start,
      monitor) -> Solution``, and its settings (see `skstruct.learning.solver`).

    Optional, with what the base class does:

    - ``_check_params()``: refuse parameters that do not go together. Nothing.
    - ``_learns_partial_labels()``: True if labels may be None. False.
    - ``_learns_transition_features``: True if transitions may have features. False.
    - ``_learns_token_weights``: True if tokens may have weights. False.
    - ``_keep(solution)``: keep what was learned. Sets the weights, ``n_iter_`` and ``history_``.

    `fit` calls ``_check_params``, ``_solver``, reads X and y, which sets ``classes_`` and
    ``n_features_in_``, calls what ``_solver`` returned, and then ``_keep``. It calls them on a
    draft, whose attributes the estimator takes over at the end, so that an error on the way
    leaves the estimator as it was. A tagger that always predicts the most frequent label is::

        class MajorityTagger(BaseTagger):
            def _solver(self):
                return count_labels, None

        def count_labels(training_set, model, settings, start, monitor):
            chain = model.zero_chain()
            chain.intercept[:] = np.bincount(training_set.labels, minlength=model.n_labels)
            return Solution(chain, history={}, n_iter=1)

    Taggers do not call themselves classifiers to scikit-learn, although they are: for a
    classifier and an integer ``cv`` it would look into y for the classes to stratify by, and
    reject a list of label lists.
    """

    _parameter_constraints: dict = {
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "label_cost": [dict, "array-like", None],
        "constraint": [StrOptions(set(SCHEMES)), "array-like", None],
        "learn_scheme": [StrOptions(set(LEARNT_SCHEMES)), None],
        "fit_intercept": ["boolean"],
        "order": [Options(Integral, {1, 2})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    _stored = {
        "label_cost": LabelCost(),
        "classes_": Labels(),
        "_scheme_of_y": Choice(*READ_SCHEMES, None),
        "_scheme_learnt": Choice(*LEARNT_SCHEMES, None),
        "n_transition_features_in_": Count(),
        "coef_": Array(REAL, (LABELS, "n_features_in_"), sparse=True),
        "transition_": Array(REAL, (LABELS, LABELS), forbids=True),
        "intercept_": Array(REAL, (LABELS,)),
        "start_": Array(REAL, (LABELS,), forbids=True),
        "end_": Array(REAL, (LABELS,), forbids=True),
        "transition_coef_": Array(REAL, (LABELS, LABELS, "n_transition_features_in_")),
        "transition2_": Array(REAL, (LABELS, LABELS, LABELS)),
        "n_iter_": Count(),
        "history_": Columns(),
    }
    # What the base reads of taggers without these parameters.
    constraint = class_weight = learn_scheme = scoring = n_jobs = None
    fit_intercept, order, warm_start, verbose = True, 1, False, 0

    _complete = ALWAYS_LEARNT
    _derived_state = (DERIVED,)
    _learns_token_weights = False

    def fit(
        self,
        X,
        y,
        sample_weight=None,
        *,
        X_val=None,
        y_val=None,
        sample_weight_val=None,
        **others,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : sequences of tokens
            A list of sequences of feature dicts or of lists of attribute strings, a
            `SequenceBatch`, a list of matrices ``(length_i, n_features)``, a 3-D array, or a 2-D
            array, sparse matrix or data frame whose rows are sequences of length one.
        y : sequences of labels
            Labels of each sequence, all str or all int: a list of lists, an object array, or a 2-D
            array; for a 2-D `X`, a 1-D array. Arrays of strings have lost NUL characters at the
            ends of labels, lists have not. For taggers that learn from partly labelled sequences,
            None where the label of a token is unknown.
        sample_weight : float, array-like of shape (n_sequences,) or sequences, default=None
            Weight of each sequence in the objective. By default, 1. A sequence of weight 0 is as
            if it were not there, to the last bit: nothing is learnt from it, and labels and
            features of dicts that only such sequences have are not learnt.
            `PerceptronTagger` and `MIRATagger` also take weights of tokens, in the form of `y`.
            They scale what each token adds to a change of the weights; a transition has the
            smallest weight of the tokens that it joins, which are three with ``order=2``. Elsewhere
            the weight of the sequence is their mean.
        X_val, y_val : sequences of tokens and of labels, default=None
            Validation set, in any format. Features that `X` does not have are ignored as in
            `predict`. ``history_["validation_score"]`` records its accuracy at every epoch (or
            iteration), or what the parameter `scoring` of online taggers says. With
            ``early_stopping`` it replaces the held-out set. Labels that do not occur in `y` count
            as wrong.
        sample_weight_val : float or array-like of shape (n_val_sequences,), default=None
            Weights of its sequences.
        **others
            None. For `lengths`, as of hmmlearn, an error says how to make a `SequenceBatch`.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            If there are other arguments.
        ValueError
            If X, y or a parameter is invalid; the message names the sequence and the token. The
            estimator is then as it was before.

        See Also
        --------
        skstruct.inspection.check_fit : Find out whether anything was learnt.
        """
        refuse_arguments("fit", others)
        validation = X_val, y_val, sample_weight_val
        return self._fit_watched(X, y, sample_weight, validation)

    def prune(self):
        """Drop the features that have no weight, in place.

        A model that an L1 penalty has made sparse gets as small as its weights, in memory and in
        files. Predictions stay the same. `partial_fit` goes on from the weights, without what the
        learner remembered.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the tagger was fitted on numbers: it cannot drop their columns.

        Examples
        --------
        >>> from skstruct import CRFTagger
        >>> X = [[{"word": "the"}, {"word": "cat"}, {"word": "the"}, {"word": "dog"}]]
        >>> tagger = CRFTagger(l1=0.5).fit(X, [["DET", "NOUN", "DET", "NOUN"]])
        >>> tagger.n_features_in_, tagger.prune().n_features_in_
        (3, 1)
        """
        require_fitted(self)
        self._chain()
        if not hasattr(self, "vectorizer_"):
            raise ValueError(
                f"Only features of dicts and attribute strings can be dropped, but this "
                f"{type(self).__name__} was fitted on numbers."
            )
        # The built-in abs and the method sum take sparse weights, too.
        kept = np.flatnonzero(np.asarray(abs(self.coef_).sum(axis=0)))
        if len(kept) == self.n_features_in_:
            return self
        with draft_of(self) as draft:
            # Keep the weights of a feature contiguous.
            draft.coef_ = self.coef_.T[kept].T
            draft._forget("_state", DERIVED)
            # Copies of this tagger have the same vectoriser.
            draft.vectorizer_ = copy(self.vectorizer_).restrict(kept, indices=True)
            draft.feature_names_in_ = draft.vectorizer_.feature_names_
            draft.n_features_in_ = len(kept)
        return self

    def _fit_watched(
        self, X, y, sample_weight, validation, monitor=None, *, complains=True, **options
    ):
        """Learn as `fit`, told of by the monitor of another estimator.

        Without `complains`, there is no `ConvergenceWarning`. The options are as of `_watch`.
        """
        with draft_of(self) as draft:

            def learn(monitor):
                warm = draft.warm_start and hasattr(draft, "coef_")
                classes = draft.classes_ if warm else None
                data, model = draft._read_training_set(X, y, sample_weight, classes, not warm)
                start = draft._initial_chain() if warm else None
                monitor = draft._watch(monitor, validation, **options)
                data = [data]
                solution = draft._learn_from(data, model, start, monitor)
                return solution if complains else solution._replace(notice=None)

            draft._fit_by(learn, X, y, monitor, sample_weight=sample_weight)
        return self

    def _learn_from(self, data, model, start, monitor):
        """Learn from a training set, the only item of a list, which is emptied.

        Nothing here refers to it then, so that a solver that packs the data can free it.
        """
        solve, settings = self._solver()
        scale = advise_scaling(data[0].rows, getattr(self, "feature_names_in_", None))
        solution = solve(data.pop(), model, settings, start, monitor)
        check_chain(solution.chain, model.possible, solution.n_iter)
        return solution._replace(scale=scale)

    @fit_context(prefer_skip_nested_validation=True)
    def _fit_by(self, learn, X, y, monitor=None, **metadata):
        """Keep what ``learn(monitor)`` finds, a `Solution`; X and y are for callbacks.

        A monitor that is given belongs to another estimator, which closes it.
        """
        own = Monitor.of_fit(self, X, y, **metadata) if monitor is None else None
        with compiling_announced(self.verbose):
            self._check_params()
            solution = learn(own or monitor)
            self._keep(solution)
            if own is not None:
                own.close()
            if solution.scale is not None:
                warnings.warn(solution.scale, UserWarning, stacklevel=5)
            if solution.notice is not None:
                fact, remedy = solution.notice
                message = fact if solution.scale is not None else f"{fact} {remedy}".strip()
                warnings.warn(message, ConvergenceWarning, stacklevel=5)
        return self

    def _check_params(self):
        """Refuse parameters that do not go together."""

    def _model(self):
        """Size of the model, and the labellings that `constraint` allows."""
        size = self.n_features_in_, len(self.learned_classes_), self._n_transition_features
        possible = read_constraint(self.constraint, self.classes_)
        cost = read_label_cost(getattr(self, "label_cost", None), self.classes_)
        learnt = self._learnt_labels
        if learnt is not None:
            possible, cost = learnt.restrict(possible), learnt.costs(cost)
        model = Model(*size, possible, self.order, cost)
        if model.kind is None:
            raise ValueError(
                f"X with transition features (transition_X) needs order=1, not order={self.order}."
            )
        return model

    def _initial_chain(self):
        """Weights that a warm start goes on from."""
        chain = self._same_order(self._chain())
        if not self.fit_intercept:
            # Biases of an earlier fit are not part of this model.
            zeros = {name: np.zeros_like(getattr(chain, name)) for name in BIASES}
            chain = chain._replace(**zeros)
        return chain

    def _same_order(self, chain):
        """Return the weights to go on from; a ValueError if they are of another order."""
        if chain.order != self.order:
            raise ValueError(
                f"order={self.order} cannot go on from weights of order {chain.order}: set "
                f"order={chain.order}, or fit anew with warm_start=False."
            )
        return chain

    def _watch(self, monitor, validation, *, finish=None, **options):
        """Tell a monitor what to watch: the validation set, if there is one, and `options`.

        ``finish(tagger)`` returns the attributes of another estimator that this tagger, fitted,
        stands in; by default there is none.
        """
        validation_set, unseen = None, ()
        if any(part is not None for part in validation):
            found = read_validation_set(self._read_X_val, self.classes_, *validation)
            validation_set, unseen = found
        score = None
        if self.scoring is not None:
            score = score_of_weights(self, self.scoring, unseen)

        def attributes(chain):
            return weights_of(chain) if finish is None else finish(self._with_chain(chain))

        learnt = self._learnt_labels
        codes_of_y = None if learnt is None else learnt.outer
        options |= {"score": score, "attributes": attributes, "codes_of_y": codes_of_y}
        return monitor.watch(settings_of(Stopping, self), validation_set, **options)

    def _read_X_val(self, X_val):
        """Read X of a validation set; errors tell users of pipelines what else to try."""
        try:
            return self._read_X(X_val)
        except ValueError as error:
            is_batch = isinstance(X_val, SequenceBatch) or sp.issparse(X_val)
            if "vectorizer_" in vars(self) or is_batch:
                raise
            error = DataError.of(error)
            error.remedy += (
                " In a Pipeline, the steps before the tagger transform X alone: give the Pipeline "
                'transform_input=["X_val"], with metadata routing.'
            )
            raise error from None

    def _with_chain(self, chain):
        """Copy of this tagger with other weights."""
        learnt = {name: value for name, value in vars(self).items() if name != "_state"}
        tagger = with_attributes(self, learnt)
        tagger._set_chain(chain)
        return tagger

    def _keep(self, solution):
        self._set_chain(solution.chain)
        self.n_iter_, self.history_ = solution.n_iter, solution.history

    def _read_training_set(self, X, y, sample_weight, classes, reset):
        """Check X, y and the weights, and set ``classes_`` and the attributes of the features.

        Returns the `TrainingSet` and the `Model`. `classes` come from an earlier call, or are None.
        With `reset` the features come from X; without it they must be as before.
        """
        _, _, given, model = self._read(X, y, sample_weight, classes, reset)
        return self._weigh(given), model

    def _read(self, X, y, sample_weight, classes, reset):
        """Read X, y and the weights as `_read_training_set` does, before class weights.

        Returns
        -------
        format : Format
            Format of X.
        batch : SequenceBatch
            X, in which sequences of weight zero are empty.
        given : TrainingSet
            The same with labels and weights.
        model : Model
        """
        format, batch = self._read_X(X, reset=reset)
        if reset:
            # Attributes of an earlier fit belong to other features and classes.
            self._forget("_state", DERIVED, *LEARNT)
        if has_token_weights(sample_weight):
            sample_weight, token_weight = self._read_token_weights(sample_weight, batch.lengths)
        else:
            sample_weight, token_weight = read_sample_weight(sample_weight, len(batch)), np.empty(0)
        self.classes_, labels = encode_labels(
            y, batch, format, classes, sample_weight=sample_weight, partial=True
        )
        require_weight(sample_weight, batch.lengths)
        if not sample_weight.all():
            if len(token_weight):
                token_weight = token_weight[np.repeat(sample_weight > 0, batch.lengths)]
            batch, labels = empty_unweighted(batch, labels, sample_weight)
            if reset:
                batch = self._keep_features_of(batch)
        labels = self._read_other_scheme(labels, batch.offsets, reset)
        check_number(len(self.learned_classes_))
        model = self._model()
        if self._learnt_labels is None:
            self._check_labels(labels, batch.offsets, model.possible)
        if batch.n_features == 0:
            raise ValueError("Found array with 0 feature(s): at least one feature is required.")
        given = block_rows(batch), batch.offsets, labels, sample_weight, token_weight
        return format, batch, TrainingSet(*given), model

    def _read_other_scheme(self, labels, offsets, reset):
        """Codes of what is learnt: as in y, unless `learn_scheme` has another scheme."""
        scheme, before = self.learn_scheme, self._scheme_learnt
        if not reset and scheme != before:
            raise ValueError(
                f"learn_scheme={scheme!r} cannot go on from weights for {before!r}: fit anew with "
                "warm_start=False."
            )
        if scheme is None:
            self._forget("_scheme_of_y", "_scheme_learnt")
            return labels
        if reset:
            named = self.constraint if isinstance(self.constraint, str) else None
            self._scheme_of_y = named or scheme_of_classes(self.classes_.tolist())
            self._scheme_learnt = scheme
        learnt = self._learnt_labels
        for possible in (learnt.possible_outer, read_constraint(self.constraint, self.classes_)):
            self._check_labels(labels, offsets, possible)
        return learnt.read(labels, offsets)

    def _read_token_weights(self, sample_weight, lengths):
        """Weights of sequences, and factors of tokens beside them, where tokens have weights."""
        if not self._learns_token_weights:
            message = (
                f"sample_weight has weights of tokens, but {type(self).__name__} takes one for "
                "each sequence. PerceptronTagger and MIRATagger take weights of tokens."
            )
            if self._learns_costs:
                message += " With label_cost, mistakes at some labels cost more."
            if self._learns_partial_labels():
                message += " None in place of a label leaves it open."
            raise ValueError(message)
        return read_token_weights(sample_weight, lengths)

    def _weigh(self, given):
        """Give the sequences of a training set their weights; leave out those without one."""
        labels, offsets = given.labels, given.offsets
        if self._scheme_learnt is not None:
            labels = self._codes_of_y(labels)
        sample_weight = weigh_sequences(
            self.class_weight, self.classes_, labels, offsets, given.sample_weight
        )
        if labels.min(initial=0) < 0:
            sample_weight = without_unlabelled(sample_weight, labels, offsets)
        require_weight(sample_weight, np.diff(offsets))
        check_sample_weight(sample_weight)
        return given._replace(sample_weight=read_only(sample_weight)).weighted()

    def _check_labels(self, labels, offsets, possible):
        """Refuse labels that the learner does not support or that the constraint rules out."""
        if labels.min(initial=0) < 0:
            check_partial(labels, offsets, learns=self._learns_partial_labels())
        if possible is not None:
            check_completable(labels, offsets, self.classes_, possible)

    def _learns_partial_labels(self):
        """Return True if labels of tokens may be None."""
        return False

    @property
    def _learns_costs(self):
        """True if labels may have costs."""
        return hasattr(self, "label_cost")

    def _read_X(self, X, *, reset=False):
        """Recognise the format of X, and convert it to a batch with the features of the model."""
        if not reset:
            require_fitted(self)
        # With a vectoriser, an empty list may be a token without attributes.
        learns_format = reset or "vectorizer_" in vars(self)
        known = () if learns_format else (self.n_features_in_, self._n_transition_features)
        format, X = read_format(X, *known)
        if reset:
            self._forget("vectorizer_")
        if format is Format.ROWS:
            if reset and is_frame(X):
                check_rows(X)
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

    def _check_state(self):
        learnt = vars(self)
        if "coef_" in learnt and ("transition_coef_" in learnt) != (
            "n_transition_features_in_" in learnt
        ):
            raise ValueError("features of transitions do not belong to the weights.")
        if "transition_coef_" in learnt and "transition2_" in learnt:
            raise ValueError(
                "it has features of transitions, and triples, which do not go together."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = _Tags()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.input_tags.dict = True
        return tags
