"""What all online learners share: epochs, averaging, early stopping, `partial_fit`."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from skstruct.history import History
from skstruct.kernels.appearance import by_appearance, reorder
from skstruct.kernels.decode import decode_best
from skstruct.kernels.online import (
    N_PROGRESS,
    NORM,
    RATE,
    SCALE,
    SEEN,
    TOTAL,
    OnlineState,
    Pace,
    combine,
)
from skstruct.kernels.scores import Chain
from skstruct.parallel import range_runner
from skstruct.structure import cut_sequences
from skstruct.tagger import BaseTagger, unchanged_on_error

__all__ = ["OnlineTagger"]


class OnlineTagger(BaseTagger):
    """Base of the taggers that change their weights after every sequence.

    A subclass sets ``_epoch``, a compiled pass over the training set (see
    `skstruct.kernels.online`), and may override ``_settings``.
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
        with unchanged_on_error(self):
            first_call = not hasattr(self, "coef_")
            classes = self._check_classes(classes, first_call)
            training_set = self._read_training_set(X, y, sample_weight, classes, first_call)
            # A copy, because an error or interrupt may come after the weights have moved.
            known = getattr(self, "_state", None)
            state = known.copy() if known else self._new_state(warm=not first_call)
            random_state = check_random_state(self.random_state)
            history = History(self.verbose)
            self.n_iter_ = getattr(self, "n_iter_", 0) + 1
            self._run_epoch(training_set, state, random_state, history, self.n_iter_)
            self._state = state
            self._set_chain(_averaged(state))
            self.history_ = history.arrays()
        return self

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

    def _fit(self, training_set):
        self.__dict__.pop("_state", None)
        random_state = check_random_state(self.random_state)
        rank, rows = by_appearance(training_set.rows, self.n_features_in_)
        training_set = training_set._replace(rows=rows)
        validation_set = None
        if self.early_stopping:
            training_set, validation_set = self._hold_out(training_set, random_state)
        warm = self.warm_start and hasattr(self, "coef_")
        state = self._new_state(warm=warm)
        if warm:
            reorder(state.chain.weights, np.argsort(rank))
        history = History(self.verbose)
        best, best_chain, epochs_since = -np.inf, None, 0
        for epoch in range(1, self.max_iter + 1):
            self._run_epoch(training_set, state, random_state, history, epoch)
            merit = self._merit(history)
            if validation_set is not None:
                chain = _averaged(state)
                merit = self._accuracy(chain, validation_set)
                history.amend(validation_score=merit)
                if merit > best:
                    best_chain = chain
            epochs_since = 0 if merit > best + (self.tol or 0.0) else epochs_since + 1
            best = max(best, merit)
            stuck = self.tol is not None and epochs_since >= self.n_iter_no_change
            if stuck or self._nothing_left(history):
                break
        else:
            if self.tol is not None:
                warnings.warn(
                    f"Still improving after max_iter={self.max_iter} epochs.",
                    ConvergenceWarning,
                    stacklevel=4,
                )
        self.n_iter_ = epoch
        self.history_ = history.arrays()
        chain = best_chain or _averaged(state, overwrite=True)
        reorder(chain.weights, rank)
        self._set_chain(chain)

    def _settings(self):
        """What the rule is told: a NamedTuple of parameters of its own."""
        return ()

    def _merit(self, history):
        """What is to grow by more than `tol`: minus the logarithm of the loss."""
        return -np.log(max(history["loss"][-1], np.finfo(float).tiny))

    def _nothing_left(self, history):
        """Whether another epoch would change nothing."""
        return history["mistakes"][-1] == 0 and history["loss"][-1] == 0

    def _run_epoch(self, training_set, state, random_state, history, number):
        """Visit every sample once, and note what it came to."""
        samples, owner = cut_sequences(
            training_set.offsets,
            random_state,
            mini_length=self.mini_length,
            structure_alpha=self.structure_alpha,
        )
        if self.shuffle:
            order = np.arange(len(samples))
            random_state.shuffle(order)
            samples, owner = samples[order], owner[order]
        pace = self._pace(len(samples))
        result = self._epoch(
            training_set.rows,
            training_set.labels,
            samples,
            training_set.sample_weight[owner],
            pace,
            self._settings(),
            state,
        )
        weight_norm = state.progress[SCALE] * np.sqrt(np.maximum(state.progress[NORM], 0.0))
        if not (np.isfinite(result.loss) and np.isfinite(weight_norm)):
            raise ValueError(
                f"The weights became infinite or NaN in epoch {number}: scale the features, or "
                "learn at a lower rate."
            )
        mistakes = result.mistakes / max(len(training_set.labels), 1)
        history.add(epoch=number, mistakes=mistakes, loss=result.loss, weight_norm=weight_norm)

    def _pace(self, n_samples):
        l2, decay = getattr(self, "l2", 0.0), getattr(self, "decay", 1.0)
        penalty = l2 / n_samples
        if getattr(self, "learning_rate", 1.0) * penalty >= 1:
            raise ValueError(
                f"learning_rate={self.learning_rate} times l2={l2} must be less than the number "
                f"of samples, {n_samples}."
            )
        return Pace(float(decay ** (1 / n_samples)), float(penalty), self.fit_intercept)

    def _hold_out(self, training_set, random_state):
        lengths = np.diff(training_set.offsets)
        counting = np.flatnonzero((training_set.sample_weight > 0) & (lengths > 0))
        n_held = max(1, round(self.validation_fraction * len(counting)))
        if n_held >= len(counting):
            raise ValueError(
                f"early_stopping needs sequences to learn from beside validation_fraction="
                f"{self.validation_fraction} of {len(counting)}."
            )
        order = counting[random_state.permutation(len(counting))]
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
        return training_set.take(kept), training_set.take(held)

    def _accuracy(self, chain, data):
        predicted = np.empty(len(data.labels), np.int32)
        with range_runner(data.offsets, self.n_jobs) as run:
            run(
                lambda _, first, last: decode_best(
                    data.rows, data.offsets, first, last, chain, predicted
                )
            )
        weight = np.repeat(data.sample_weight, np.diff(data.offsets))
        return float(np.average(predicted == data.labels, weights=weight))

    def _new_state(self, *, warm):
        def zeros(n_rows):
            k = len(self.classes_)
            return Chain(np.zeros((n_rows, k)), np.zeros((k, k)), *np.zeros((3, k)))

        if warm:
            chain = Chain(*(part.copy() for part in self._chain()))
        else:
            chain = zeros(self.n_features_in_)
        lag = zeros(self.n_features_in_ if self.average else 0)
        progress = np.zeros(N_PROGRESS)
        progress[NORM] = np.square(chain.weights).sum() if warm else 0.0
        progress[SCALE], progress[RATE] = 1.0, getattr(self, "learning_rate", 1.0)
        return OnlineState(chain, lag, progress)


def _averaged(state, *, overwrite=False):
    """The chain that a learner has learnt: the average, or without one the current weights."""
    progress = state.progress
    factor, lag_factor = progress[SCALE], 0.0
    target = state.chain
    if state.lag.weights.shape[0] > 0 and progress[SEEN] > 0:
        factor, lag_factor = progress[TOTAL] / progress[SEEN], 1 / progress[SEEN]
        target = state.lag
    parts = []
    for weights, lag, out in zip(state.chain, state.lag, target, strict=True):
        part = out if overwrite else np.empty_like(weights)
        combine(np.atleast_2d(weights), factor, np.atleast_2d(lag), lag_factor, np.atleast_2d(part))
        parts.append(part)
    return Chain(*parts)
