"""What all online learners share: epochs, averaging, early stopping, `partial_fit`."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.input.class_weight import refuse_balanced
from skstruct.input.constraints import WEIGHTS, forbid, without_forbidden
from skstruct.input.training_set import zero_transition_weights
from skstruct.kernels.chain.scores import Chain, Rows, TransitionChain
from skstruct.kernels.online.appearance import by_appearance, reorder
from skstruct.kernels.online.loop import (
    N_PROGRESS,
    NORM,
    RATE,
    SCALE,
    SEEN,
    TOTAL,
    OnlineState,
    Schedule,
    subtract_lag,
)
from skstruct.taggers.base import LEARNT, BaseTagger
from skstruct.taggers.early_stopping import (
    Patience,
    apply_feature_order,
    token_accuracy,
    validation_accuracy,
)
from skstruct.taggers.mixing import Mixture
from skstruct.taggers.nbest import SEARCHES, make_search
from skstruct.taggers.pieces import cut_sequences
from skstruct.taggers.rollback import Undo, may_rescale
from skstruct.taggers.stored import check_learner
from skstruct.utils.history import History
from skstruct.utils.parallel import count_shards
from skstruct.utils.transaction import unchanged_on_error

__all__ = ["OnlineTagger", "SearchTagger"]


class OnlineTagger(BaseTagger):
    """Base of the taggers that change their weights after every sequence.

    A subclass sets ``_epoch``, a compiled pass over the training set (see
    `skstruct.kernels.online.loop`), and may override ``_settings``, ``_notes``, ``_merit`` and
    ``_check_params``.
    """

    _parameter_constraints: dict = {
        **BaseTagger._parameter_constraints,
        "average": ["boolean"],
        "mini_length": [Interval(Real, 1, None, closed="left"), None],
        "structure_alpha": [Interval(Real, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    _epoch = None
    _learns_transition_features = True

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
            all.
        sample_weight : array-like of shape (n_sequences,), default=None
            Factor of the change that each sequence makes.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As in `fit`; and if `classes` are not those of the first call.
        """
        with unchanged_on_error(self) as undo:
            self._check_params()
            refuse_balanced(getattr(self, "class_weight", None))
            first_call = "_state" not in self.__dict__ and not hasattr(self, "coef_")
            classes = self._check_classes(classes, first_call)
            training_set = self._read_training_set(X, y, sample_weight, classes, first_call)
            state = self.__dict__.get("_state") or self._new_state(warm=not first_call)
            state = state._replace(chain=forbid(state.chain, self._possible()))
            n_samples = np.count_nonzero(np.diff(training_set.offsets))
            if may_rescale(state, getattr(self, "l2", 0.0), n_samples):
                state = state.copy()
            else:
                undo.append(Undo(state, training_set.rows))
            random_state = check_random_state(self.random_state)
            history = History(self.verbose)
            self.n_iter_ = getattr(self, "n_iter_", 0) + 1
            self._run_epoch(training_set, state, None, random_state, history, self.n_iter_)
            # Of the weights of features the norm has told already.
            no_features = np.empty((0, len(self.classes_)))
            self._finite(Chain(no_features, *state.chain[1 : len(Chain._fields)]), self.n_iter_)
            self._state = state
            for name in LEARNT:
                self.__dict__.pop(name, None)
            self.history_ = history.arrays()
        return self

    def __getattr__(self, name):
        # After `partial_fit` the weights are worked out when they are asked for: it takes a pass
        # over all of them, which is long beside a small portion.
        state = self.__dict__.get("_state")
        known = name in LEARNT and state is not None
        if not known or (
            name == "transition_coef_" and not isinstance(state.chain, TransitionChain)
        ):
            # Raises what it has raised.
            return object.__getattribute__(self, name)
        given = self.__dict__.copy()
        self._set_chain(_averaged(state))
        self.__dict__.update(given)
        return self.__dict__[name]

    _records = (OnlineState, Chain, TransitionChain)

    def _check_state(self):
        super()._check_state()
        if self.__dict__.get("_state") is not None:
            check_learner(self, self._state, N_PROGRESS)

    def _restore_state(self):
        # The arrays may be those of the tagger that this one is a copy of, and change in place.
        if self.__dict__.get("_state") is not None:
            self._state = self._state.copy()

    def _check_classes(self, classes, first_call):
        """Return the classes known before y is read, None if there are none."""
        known = None if first_call else self.classes_
        if classes is None:
            return known
        classes = np.unique(classes)
        if known is not None and not np.array_equal(classes, known):
            raise ValueError(
                f"classes={classes!r} is not the same as in the first call of partial_fit, "
                f"{known!r}."
            )
        return classes

    def _fit(self, training_set, validation_set=None):
        self._check_params()
        self._fit_online(training_set, validation_set)

    def _fit_online(self, training_set, validation_set):
        self.__dict__.pop("_state", None)
        random_state = check_random_state(self.random_state)
        rows = Rows(*training_set.rows[: len(Rows._fields)])
        rank, rows = by_appearance(rows, self.n_features_in_)
        training_set = training_set._replace(rows=training_set.rows._replace(**rows._asdict()))
        if validation_set is not None:
            validation_set = apply_feature_order(validation_set, rank)
        elif self.early_stopping:
            training_set, validation_set = self._hold_out(training_set, random_state)
        warm = self.warm_start and hasattr(self, "coef_")
        state = self._new_state(warm=warm)
        if warm:
            reorder(state.chain.weights, np.argsort(rank))
        mixture = self._new_mixture(state, training_set)
        if mixture is not None:
            state = mixture.state
        history = History(self.verbose)
        patience, best_chain = Patience(self.tol, self.n_iter_no_change), None
        for epoch in range(1, self.max_iter + 1):
            self._run_epoch(training_set, state, mixture, random_state, history, epoch)
            merit = self._merit(history)
            if validation_set is not None:
                chain = _averaged(state)
                score = validation_accuracy(self, chain, validation_set, history)
                merit = score if self.early_stopping else merit
            if patience.is_best(merit) and self.early_stopping:
                best_chain = chain
            if patience.is_over or self._nothing_left(history, state, training_set):
                break
        else:
            if self.tol is not None:
                warnings.warn(
                    f"Still improving after max_iter={self.max_iter} epochs.",
                    ConvergenceWarning,
                    stacklevel=5,
                )
        self.n_iter_ = epoch
        self.history_ = history.arrays()
        chain = best_chain or _averaged(state, overwrite=mixture is None)
        chain = self._finite(chain, epoch)
        reorder(chain.weights, rank)
        self._set_chain(chain)

    def _epoch_for(self, training_set):
        """The pass over this training set."""
        return self._epoch

    def _check_params(self):
        """Refuse parameters that do not go together."""

    def _settings(self):
        """What the rule is told: a NamedTuple of parameters of its own."""
        return ()

    def _merit(self, history):
        """What is to grow by more than `tol`: minus the logarithm of the loss."""
        return -np.log(max(history["loss"][-1], np.finfo(float).tiny))

    def _notes(self, settings, n_visited):
        """What else to note of an epoch, from the settings that each shard's rule was given."""
        return {}

    def _nothing_left(self, history, state, training_set):
        """Whether there were no mistakes, and what predicts makes none either.

        The average lags behind the current weights, and pieces say nothing of whole sequences.
        """
        if history["mistakes"][-1] > 0 or history["loss"][-1] > 0:
            return False
        return token_accuracy(_averaged(state), training_set, self.n_jobs) == 1.0

    def _new_mixture(self, state, training_set):
        """What learns in shards, None if there is one only."""
        n_shards = count_shards(self.n_jobs)
        if n_shards > 1:
            counting = _counting(training_set)
            n_shards = min(n_shards, len(counting))
        return Mixture(state, counting, n_shards, self.n_jobs) if n_shards > 1 else None

    def _run_epoch(self, training_set, state, mixture, random_state, history, number):
        """Visit every sample once, and note what it came to."""
        samples, owner = self._draw_samples(training_set.offsets, random_state)
        all_settings = []
        epoch = self._epoch_for(training_set)

        def visit(samples_, owner_, state_):
            settings = self._settings()
            all_settings.append(settings)
            return epoch(
                training_set.rows,
                training_set.labels,
                samples_,
                training_set.sample_weight[owner_],
                self._schedule(len(samples_), len(samples)),
                settings,
                state_,
            )

        if mixture is None:
            result = visit(samples, owner, state)
        else:
            result = mixture.run_epoch(visit, samples, owner)
        weight_norm = state.progress[SCALE] * np.sqrt(np.maximum(state.progress[NORM], 0.0))
        if not (np.isfinite(result.loss) and np.isfinite(weight_norm)):
            raise _not_finite(number)
        lengths = samples[:, 1] - samples[:, 0]
        n_visited = np.count_nonzero((lengths > 0) & (training_set.sample_weight[owner] > 0))
        history.add(
            epoch=number,
            mistakes=result.mistakes / max(np.count_nonzero(training_set.labels >= 0), 1),
            loss=result.loss,
            weight_norm=weight_norm,
            **self._notes(all_settings, n_visited),
        )

    def _draw_samples(self, offsets, random_state):
        """The samples of an epoch in their order, and the sequence that each belongs to."""
        samples, owner = cut_sequences(
            offsets,
            random_state,
            mini_length=self.mini_length,
            structure_alpha=self.structure_alpha,
        )
        if self.shuffle:
            order = np.arange(len(samples))
            random_state.shuffle(order)
            samples, owner = samples[order], owner[order]
        return samples, owner

    def _schedule(self, n_visits, n_samples):
        """How weights move where a learner visits some of the samples."""
        l2, decay = getattr(self, "l2", 0.0), getattr(self, "decay", 1.0)
        penalty = l2 / n_samples
        if getattr(self, "learning_rate", 1.0) * penalty >= 1:
            raise ValueError(
                f"learning_rate={self.learning_rate} times l2={l2} must be less than the number "
                f"of samples, {n_samples}."
            )
        return Schedule(float(decay ** (1 / n_visits)), float(penalty), self.fit_intercept)

    def _hold_out(self, training_set, random_state):
        counting = _counting(training_set)
        n_held = max(1, round(self.validation_fraction * len(counting)))
        if n_held >= len(counting):
            raise ValueError(
                f"early_stopping needs sequences to learn from beside validation_fraction="
                f"{self.validation_fraction} of {len(counting)}."
            )
        order = counting[random_state.permutation(len(counting))]
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
        return training_set.take(kept), training_set.take(held)

    def _new_state(self, *, warm):
        def zeros(n_rows, n_transition_rows):
            k = len(self.classes_)
            chain = Chain(np.zeros((n_rows, k)), np.zeros((k, k)), *np.zeros((3, k)))
            return (
                chain
                if n_transition_rows is None
                else TransitionChain(*chain, zero_transition_weights(n_transition_rows, k))
            )

        size = self.n_features_in_, getattr(self, "n_transition_features_in_", None)
        if warm:
            chain = self._chain()
            chain = type(chain)(*(part.copy() for part in chain))
        else:
            chain = zeros(*size)
        chain = forbid(chain, self._possible())
        lag = zeros(*size) if self.average else zeros(0, None if size[1] is None else 0)
        progress = np.zeros(N_PROGRESS)
        progress[NORM] = _squared_norm(chain) if warm else 0.0
        progress[SCALE], progress[RATE] = 1.0, getattr(self, "learning_rate", 1.0)
        return OnlineState(chain, lag, progress)

    def _finite(self, chain, epoch):
        """The chain itself, or an error if weights are not finite that `constraint` leaves."""
        possible = self._possible()
        learnt = chain if possible is None else without_forbidden(chain, possible)
        with np.errstate(over="ignore", invalid="ignore"):
            if all(np.isfinite(part.sum()) for part in learnt):
                return chain
        raise _not_finite(epoch)


class SearchTagger(OnlineTagger):
    """Base of the online taggers with the parameters `n_best`, `search` and `beam_width`."""

    _parameter_constraints: dict = {
        **OnlineTagger._parameter_constraints,
        "n_best": [Interval(Integral, 1, None, closed="left")],
        "search": [StrOptions(set(SEARCHES))],
        "beam_width": [Interval(Integral, 1, None, closed="left")],
    }

    def _search(self):
        return make_search(self.n_best, self.search, self.beam_width, count_misses=True)

    def _search_notes(self, searches, n_visited):
        """The share of the samples whose best labelling a beam missed."""
        if self.search != "beam":
            return {}
        return {"search_misses": sum(int(search.misses[0]) for search in searches) / n_visited}


def _squared_norm(chain):
    """Squared norm of the weights of features."""
    norm = np.square(chain.weights).sum()
    if isinstance(chain, TransitionChain):
        norm += np.square(chain.transition_weights).sum()
    return norm


def _averaged(state, *, overwrite=False):
    """The chain that a learner has learnt: the average, or without one the current weights."""
    progress = state.progress
    factor, lag_factor = progress[SCALE], 0.0
    target = state.chain
    if state.lag.weights.shape[0] > 0 and progress[SEEN] > 0:
        factor, lag_factor = progress[TOTAL] / progress[SEEN], 1 / progress[SEEN]
        target = state.lag
    forbidden = {name: np.isneginf(getattr(state.chain, name)) for name in WEIGHTS}
    parts = []
    for weights, lag, out in zip(state.chain, state.lag, target, strict=True):
        part = out if overwrite else np.empty_like(weights)
        subtract_lag(
            np.atleast_2d(weights), factor, np.atleast_2d(lag), lag_factor, np.atleast_2d(part)
        )
        parts.append(part)
    chain = type(state.chain)(*parts)
    for name, which in forbidden.items():
        # Where shards were mixed, these were multiplied by zero.
        getattr(chain, name)[which] = -np.inf
    return chain


def _counting(training_set):
    """Numbers of the sequences that there is something to learn from."""
    lengths = np.diff(training_set.offsets)
    return np.flatnonzero((training_set.sample_weight > 0) & (lengths > 0))


def _not_finite(epoch):
    return ValueError(
        f"The weights became infinite or NaN in epoch {epoch}: scale the features, or learn at a "
        "lower rate."
    )
