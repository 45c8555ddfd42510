"""`partial_fit`: one pass over some more sequences, with weights that change in place."""

from __future__ import annotations

import threading
from contextlib import nullcontext

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from skstruct.input.class_weight import refuse_balanced
from skstruct.input.classes import sorted_classes
from skstruct.input.constraints import WEIGHTS, check_chain, forbid
from skstruct.input.scale import warn_of_scale
from skstruct.online.state import averaged, without_features
from skstruct.taggers.prediction import LEARNT, weights_of
from skstruct.taggers.stored import LearnerState
from skstruct.utils.declared import Maybe
from skstruct.utils.history import History
from skstruct.utils.messages import compiling_announced
from skstruct.utils.progress import Progress
from skstruct.utils.transaction import draft_of

__all__ = ["PartialFitMixin"]


class _Deferred:
    """A learned attribute that is computed when it is asked for.

    Instances come first: once the attribute is set, this descriptor is out of the way.
    """

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, tagger, owner=None):
        if tagger is None:
            return self
        tagger._compute_weights()
        try:
            return vars(tagger)[self._name]
        except KeyError:
            message = f"{type(tagger).__name__!r} object has no attribute {self._name!r}"
            raise AttributeError(message) from None


class Turn:
    """Lock of weights that change in place. Copies and stored ones are new."""

    def __init__(self):
        self._lock = threading.RLock()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *error):
        self._lock.release()

    def __reduce__(self):
        return type(self), ()


class PartialFitMixin:
    """Mixin, before `BaseTagger`, of taggers that learn in portions.

    A subclass defines ``_learner(model)``, which returns an `OnlineLearner`. After `partial_fit`
    the weights are in ``_state``, and the attributes that users read are computed on demand: that
    takes a pass over all weights, which is long compared with a small portion.
    """

    _state = None
    _stored = {"_state": Maybe(LearnerState())}
    _derived_state = ("_turn",)
    # Attributes that no longer hold after `partial_fit`.
    _learnt = LEARNT
    coef_ = _Deferred()
    transition_ = _Deferred()
    intercept_ = _Deferred()
    start_ = _Deferred()
    end_ = _Deferred()
    transition_coef_ = _Deferred()
    transition2_ = _Deferred()

    # Sizes of the arrays of the state.
    _n_edges = property(lambda tagger: vars(tagger).get("n_transition_features_in_"))
    _n_pairs = property(lambda tagger: len(tagger.classes_) ** 2)

    @property
    def _complete(self):
        return ("_state", "n_iter_") if self._state is not None else super()._complete

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Make one pass over some more sequences.

        Parameters
        ----------
        X : sequences of tokens
            As in `fit`. Feature dicts and attribute strings are turned into numbers with what the
            first call has seen; features that first occur in a later call are ignored.
        y : sequences of labels
            As in `fit`.
        classes : array-like of shape (n_classes,), default=None
            All labels that will occur in any call. Needed in the first call, unless that has them
            all. Arrays of strings have lost NUL characters at the ends of labels, lists have not.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Factor of the change that each sequence makes. A sequence of weight 0 is as if it were
            not there, as in `fit`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As in `fit`; and if `classes` are not those of the first call.
        """
        # Other threads wait with reading the state, which changes in place.
        with nullcontext() if self._state is None else self._turn:
            undo = []
            with draft_of(self, undo) as draft, compiling_announced(self.verbose):
                training_set = draft._learn_portion(X, y, classes, sample_weight, undo)
                warn_of_scale(training_set.rows, getattr(draft, "feature_names_in_", None))
        return self

    def _learn_portion(self, X, y, classes, sample_weight, undo):
        self._check_params()
        if self.class_weight is not None:
            refuse_balanced(self.class_weight)
        first_call = self._state is None and not hasattr(self, "coef_")
        classes = self._check_classes(classes, first_call)
        training_set = self._read_training_set(X, y, sample_weight, classes, first_call)
        model = self._model()
        learner = self._learner(model)
        state = self._state
        if state is None:
            start = None if first_call else self._same_order(self._chain())
            state = learner.new_state(training_set, start)
            self._turn = Turn()
        self._same_order(state.chain)
        if state.chain.weights.shape != (model.n_features, model.n_labels):
            raise ValueError(
                f"{model.n_labels} classes do not fit the {state.chain.weights.shape[1]} that "
                "were learnt."
            )
        state = learner.protect(state, training_set, undo)
        # In place, too: an earlier state has the same arrays.
        allowed = forbid(state.chain, model.possible)
        for name in WEIGHTS:
            getattr(state.chain, name)[...] = getattr(allowed, name)
        # Models read from files of other programs have not been learnt here.
        n_epochs = 1 + (0 if first_call else vars(self).get("n_iter_", 0))
        history = History()
        random_state = check_random_state(learner.settings.random_state)
        learner.run_epoch(training_set, state, random_state, history, n_epochs)
        # The norm has shown that the weights of features are finite.
        check_chain(without_features(state.chain), model.possible, n_epochs)
        Progress(self).report(history)
        self._forget(*self._learnt)
        self._state, self.n_iter_, self.history_ = state, n_epochs, history.arrays()
        return training_set

    def _keep(self, solution):
        self._forget("_state", "_turn")
        super()._keep(solution)

    def _compute_weights(self):
        """Set the learned attributes that `partial_fit` has left open, all at once."""
        if self._state is None or {"coef_", "end_"} <= vars(self).keys():
            return
        with self._turn:
            weights = weights_of(averaged(self._state))
        # What was set by hand stays.
        vars(self).update({**weights, **vars(self)})

    def _restore_state(self):
        # A tagger that this one is a copy of may change the arrays in place.
        if self._state is not None:
            self._state, self._turn = self._state.copy(), Turn()

    def __copy__(self):
        copied = super().__copy__()
        copied._restore_state()
        return copied

    def _check_classes(self, classes, first_call):
        """Return the classes known before y is read, None if there are none."""
        known = None if first_call else self.classes_
        if classes is None:
            return known
        classes = sorted_classes(classes)
        if known is not None and not np.array_equal(classes, known):
            raise ValueError(
                f"classes={classes!r} is not the same as in the first call of partial_fit, "
                f"{known!r}."
            )
        return classes
