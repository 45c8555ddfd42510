"""Base of the taggers that learn online: sequence by sequence, by an update rule."""

from numbers import Integral, Real
from typing import Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.chain.kinds import KINDS
from skstruct.decoding import make_search, work_of_search
from skstruct.input.constraints import WEIGHTS, check_chain, forbid
from skstruct.input.formats import sorted_classes
from skstruct.input.scale import warn_of_scale
from skstruct.input.training_set import refuse_balanced
from skstruct.learning.epoch import N_PROGRESS, RATE, SCALE, SEEN, TOTAL, OnlineState
from skstruct.learning.monitor import Monitor
from skstruct.learning.online import (
    OnlineLearner,
    Settings,
    averaged,
    without_features,
)
from skstruct.learning.solver import settings_of
from skstruct.matrices import copied_arrays
from skstruct.taggers.base import LABELS, BaseTagger
from skstruct.taggers.prediction import LEARNT, weights_of
from skstruct.taggers.scoring import SCORING
from skstruct.taggers.short import DERIVED
from skstruct.utils.declared import Array, Declaration, Either, Maybe, Record
from skstruct.utils.messages import compiling_announced
from skstruct.utils.progress import fit_context
from skstruct.utils.transaction import draft_of


class LearnerState(Declaration):
    """State from which `partial_fit` goes on.

    Parameters
    ----------
    kind : type, default=OnlineState
        That of the state: an `OnlineState`, or one that has variances, too.
    """

    def __init__(self, kind=OnlineState) -> None:
        self._kind = kind

    def write(self, value):
        return _state(self._kind, 0, None).write(value)

    def read(self, value, what, size):
        """State with arrays that fit the tagger."""
        what = "the state of the learner"
        n_features, n_edges = size("n_features_in_"), size("_n_transition_features")
        state = _state(self._kind, n_features, n_edges).read(value, what, size)
        if len({type(chain) for chain in state if isinstance(chain, tuple)}) > 1:
            raise ValueError(f"{what} has weights of several orders.")
        if not len(state.lag.weights) and any(np.any(part) for part in state.lag):
            raise ValueError(f"{what} has averages, but none of features.")
        progress = state.progress[[SEEN, TOTAL, RATE]]
        if progress.min() < 0 or state.progress[SCALE] <= 0:
            raise ValueError(f"{what} has a negative count, scale or rate.")
        return state


def _state(kind, n_features, n_edges):
    weights = _weights(n_features, n_edges)
    # Without an average, the lags are empty.
    lags = (0, None if n_edges is None else 0), (n_features, n_edges)
    lag = Either(*(_weights(*sizes, forbids=False) for sizes in lags))
    parts = {"chain": weights, "lag": lag}
    parts["progress"] = Array(np.float64, (N_PROGRESS,))
    if "variance" in kind._fields:
        parts["variance"] = _weights(n_features, n_edges, least=0)
    return Record(kind, **parts)


def _weights(n_features, n_edges, least=None, *, forbids=True):
    """Weights of a chain, or as many other numbers."""
    biases = Array(np.float64, (LABELS,), least=least)
    pairs = Array(np.float64, (LABELS, LABELS), least=least, forbids=forbids)
    ends = Array(np.float64, (LABELS,), least=least, forbids=forbids)
    parts = {
        "weights": Array(np.float64, (n_features, LABELS), least=least),
        "transition": pairs,
        "intercept": biases,
        "start": ends,
        "end": ends,
    }
    more = {
        "triple": Array(np.float64, ("_n_pairs", LABELS), least=least),
        "transition_weights": Array(np.float64, (n_edges, "_n_pairs"), least=least),
    }
    n_sets = 1 if n_edges is None else 2
    kinds = [kind for kind in KINDS if len(kind.of_features) == n_sets]
    return Either(
        *(Record(kind, **parts, **{f: more[f] for f in kind.more_shapes(0, 0)}) for kind in kinds)
    )


class _Deferred:
    """A learned attribute that is computed when it is asked for.

    It is a non-data descriptor: an attribute of the instance, once set, takes precedence.
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


class OnlineTagger(BaseTagger):
    """Base of the taggers that learn sequence by sequence, in one call or in portions.

    A subclass defines ``_learner(model)``, which returns what ``_online_learner`` makes of a rule.
    The loop reads the parameters that `skstruct.learning.online.Settings` and
    `skstruct.learning.monitor.Stopping` list, as far as a subclass has them. So a perceptron
    without parameters is::

        class PlainPerceptron(OnlineTagger):
            def _learner(self, model):
                return self._online_learner(model, lambda _: Mistakes(model.cost))

    After `partial_fit` the weights are in ``_state``, and the attributes that users read are
    computed on demand: that takes a pass over all weights, which is long compared with a small
    portion.
    """

    _parameter_constraints: dict = {
        **BaseTagger._parameter_constraints,
        "l2": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "decay": [Interval(Real, 0, 1, closed="right")],
        "average": ["boolean"],
        "mini_length": [Interval(Real, 1, None, closed="left"), None],
        "structure_alpha": [Interval(Real, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "scoring": SCORING,
    }

    _learns_transition_features = True

    _state = None
    _stored = {"_state": Maybe(LearnerState())}
    # Attributes that no longer hold after `partial_fit`.
    _learnt = LEARNT
    coef_ = _Deferred()
    transition_ = _Deferred()
    intercept_ = _Deferred()
    start_ = _Deferred()
    end_ = _Deferred()
    transition_coef_ = _Deferred()
    transition2_ = _Deferred()

    # Size of arrays of the state.
    _n_pairs = property(lambda tagger: len(tagger.learned_classes_) ** 2)

    @property
    def _complete(self):
        return ("_state", "n_iter_") if self._state is not None else super()._complete

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None) -> Self:
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
        sample_weight : float, array-like of shape (n_sequences,) or sequences, default=None
            Factor of the change that each sequence makes. A sequence of weight 0 is as if it were
            not there, as in `fit`. Weights of tokens as in `fit`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As in `fit`; and if `classes` differ from the first call.

        Notes
        -----
        Learning rates and their decay, variances and whether weights are averaged are settled in
        the first call. The learner goes on from what it has learnt: weights that were changed by
        hand since are lost.
        """
        undo = []
        with compiling_announced(self.verbose), draft_of(self, undo) as draft:
            training_set = draft._learn_portion(X, y, classes, sample_weight, undo)
            warn_of_scale(training_set.rows, getattr(draft, "feature_names_in_", None))
        return self

    def _learn_portion(self, X, y, classes, sample_weight, undo):
        self._check_params()
        refuse_balanced(self.class_weight)
        first_call = self._state is None and not hasattr(self, "coef_")
        classes = self._check_classes(classes, first_call)
        training_set, model = self._read_training_set(X, y, sample_weight, classes, first_call)
        learner = self._learner(model)
        state = self._state
        if state is None:
            start = None if first_call else self._same_order(self._chain())
            state = learner.new_state(training_set, start)
        self._same_order(state.chain)
        if state.chain.weights.shape != (model.n_features, model.n_labels):
            raise ValueError(
                f"{model.n_labels} classes do not fit the {state.chain.weights.shape[1]} that "
                "were learnt."
            )
        state = learner.protect(state, training_set, undo)
        # In place: where `undo` puts the earlier weights back.
        allowed = forbid(state.chain, model.possible)
        for name in WEIGHTS:
            getattr(state.chain, name)[...] = getattr(allowed, name)
        # Models from files of other programs have no `n_iter_`.
        n_epochs = 1 + (0 if first_call else vars(self).get("n_iter_", 0))
        monitor = Monitor(self)
        random_state = check_random_state(learner.settings.random_state)
        learner.run_epoch(training_set, state, random_state, monitor, n_epochs)
        # The norm has shown that the weights of features are finite.
        check_chain(without_features(state.chain), model.possible, n_epochs)
        monitor.report()
        self._forget(DERIVED, *self._learnt)
        self._state, self.n_iter_, self.history_ = state, n_epochs, monitor.arrays()
        return training_set

    def _keep(self, solution):
        self._forget("_state")
        super()._keep(solution)

    def _compute_weights(self):
        """Set the learned attributes that `partial_fit` has left open, all at once."""
        if self._state is None or {"coef_", "end_"} <= vars(self).keys():
            return
        weights = weights_of(averaged(self._state))
        # Keep attributes that were set by hand.
        vars(self).update({**weights, **vars(self)})

    def _restore_state(self):
        # A tagger that this one is a copy of changes its arrays in place.
        if self._state is not None:
            self._state = copied_arrays(self._state)

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

    def _solver(self):
        return self._fit_online, None

    def _fit_online(self, training_set, model, settings, start, monitor):
        return self._learner(model).fit(training_set, start, monitor)

    def _online_learner(self, model, rule, **options):
        """`OnlineLearner` with the parameters of the tagger; rule and options are as there."""
        return OnlineLearner(settings_of(Settings, self), model, rule, **options)


class SearchTagger(OnlineTagger):
    """Base of the online taggers with the parameters `n_best`, `search` and `beam_width`."""

    _parameter_constraints: dict = {
        **OnlineTagger._parameter_constraints,
        "n_best": [Interval(Integral, 1, None, closed="left")],
        "search": [StrOptions({"astar", "beam"})],
        "beam_width": [Interval(Integral, 1, None, closed="left")],
    }

    def _online_learner(self, model, rule, *, work=None):
        """Learner whose rule has the search, from ``_search()``, in the field ``search``."""
        beam = self.search == "beam"
        if work is None:
            work = work_of_search(max(self.n_best, self.beam_width if beam else 1))
        # A beam reads scores one by one, and may miss the best labelling.
        options = {"work": work, "lists": not beam, "notes": _share_of_misses if beam else None}
        return super()._online_learner(model, rule, **options)

    def _search(self):
        return make_search(self.n_best, self.search, self.beam_width, count_misses=True)


def _share_of_misses(rules, n_visited):
    """Share of the samples whose best labelling a beam missed."""
    misses = sum(int(of_shard.search.misses[0]) for of_shard in rules)
    return {"search_misses": misses / n_visited}
