"""Base of the taggers that learn online: sequence by sequence, by an update rule."""

from __future__ import annotations

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, Options

from skstruct.online.learner import OnlineLearner, Settings, UpdateRule, less_loss
from skstruct.solvers.base import settings_of
from skstruct.taggers.base import BaseTagger
from skstruct.taggers.partial_fit import PartialFitMixin

__all__ = ["OnlineTagger"]


class OnlineTagger(PartialFitMixin, BaseTagger):
    """Base of the taggers that change their weights after every sequence.

    Required:

    - ``_epoch``: the compiled pass over the training set, a static method (see
      `skstruct.kernels.online.loop`).

    Optional, with what the base class does:

    - ``_settings()``: the NamedTuple that the rule reads. Called once for each shard and epoch,
      before the pass. Empty.
    - ``_merit(history)``: the figure that is to grow by more than `tol`. Called after each epoch.
      Minus the logarithm of the loss.
    - ``_start(state, training_set)``: the state before the first sample, from an `OnlineState`.
      The same.
    - ``_is_over(history, training_set)``: True if an epoch was the last. The learner stops where
      there are no mistakes left.
    - ``_lists``: True if the rule learns the same, and sooner, where the transitions of large label
      sets are listed. False.
    - ``_work``: the work of an update, in that of a search for the best labelling. 1.
    - ``_notes(settings, n_visited)``: more columns of ``history_``, from the settings of each
      shard. Called after each epoch. None.

    The loop reads the parameters that `skstruct.online.learner.Settings` and
    `skstruct.solvers.watcher.Stopping` list, as far as a subclass has them. So a perceptron with
    nothing but the parameters that every tagger has is::

        class PlainPerceptron(OnlineTagger):
            _epoch = staticmethod(perceptron_epoch)

            def __init__(
                self, *, constraint=None, class_weight=None, n_jobs=None, warm_start=False
            ):
                self.constraint, self.class_weight = constraint, class_weight
                self.n_jobs, self.warm_start = n_jobs, warm_start

            def _merit(self, history):
                return -history["mistakes"][-1]
    """

    _parameter_constraints: dict = {
        **BaseTagger._parameter_constraints,
        "average": ["boolean"],
        "mini_length": [Interval(Real, 1, None, closed="left"), None],
        "structure_alpha": [Interval(Real, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "order": [Options(Integral, {1, 2})],
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
    _lists = False
    _is_over = None
    # Numbers that the state has for each weight, beyond the weight and its average.
    _n_more = 0
    _work = 1.0
    _learns_transition_features = True

    def _solver(self):
        return self._fit_online, None

    def _fit_online(self, training_set, model, settings, start, watcher):
        return self._learner(model).fit(training_set, start, watcher)

    def _learner(self, model):
        rule = UpdateRule(
            lambda training_set: self._epoch,
            self._settings,
            self._merit,
            self._notes,
            self._start,
            self._n_more,
            self._lists,
            self._is_over,
            self._work,
        )
        return OnlineLearner(rule, settings_of(Settings, self), model)

    def _settings(self):
        """Parameters that the rule reads, a NamedTuple."""
        return ()

    def _merit(self, history):
        """Figure that is to grow by more than `tol`."""
        return less_loss(history)

    def _notes(self, settings, n_visited):
        """More columns of the history."""
        return {}

    def _start(self, state, training_set):
        """State before the first sample."""
        return state
