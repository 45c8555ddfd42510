"""Callbacks of scikit-learn, whose releases have them from 1.9 on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from functools import wraps

from sklearn.utils.metaestimators import available_if

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9
    CallbackSupportMixin = None

__all__ = [
    "CallbackSupport",
    "EpochRelay",
    "FitTasks",
    "as_one_task",
    "has_callbacks",
    "part_of_fit",
    "without_callbacks",
]


def has_callbacks():
    """True if the installed release of scikit-learn has callbacks."""
    return CallbackSupportMixin is not None


class CallbackSupport:
    """Mixin of estimators whose `fit` calls the callbacks of scikit-learn.

    It stands in for `sklearn.callback.CallbackSupportMixin`, which older releases do not have. If a
    fit fails, the decorator ``_fit_context`` tears down the callbacks.
    """

    @available_if(lambda estimator: has_callbacks())
    def set_callbacks(self, *callbacks):
        """Set callbacks that `fit` calls, in place of those set before.

        Needs scikit-learn 1.9 or later.

        Parameters
        ----------
        *callbacks : callback instances
            Such as :class:`sklearn.callback.ProgressBar` and
            :class:`sklearn.callback.ScoringMonitor`. None removes all.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            If one of them is not a callback.
        """
        return CallbackSupportMixin.set_callbacks(self, *callbacks)


def without_callbacks(estimator):
    """Copy of an estimator without its callbacks, which can be neither stored nor sent."""
    estimator = copy(estimator)
    for name in [name for name in vars(estimator) if "callback" in name]:
        delattr(estimator, name)
    return estimator


class FitTasks:
    """Tasks of a fit, as callbacks see them: the fit itself, and its epochs.

    Parameters
    ----------
    estimator : estimator
        With callbacks.
    X, y : object
        Training data, as the estimator was given them.
    n_tasks : int or None
        Largest number of epochs or other parts of the fit; None where there is no limit.
    **metadata : object
        What else `fit` was given, such as sample weights.
    """

    def __init__(self, estimator, X, y, n_tasks, **metadata):
        given = {name: value for name, value in metadata.items() if value is not None}
        # The fit itself has to read an iterator.
        X = None if isinstance(X, Iterator) else X
        self._data = {"X": X, "y": y, "metadata": given or None}
        self._estimator = estimator
        self._n_left = math.inf if n_tasks is None else n_tasks
        self.root = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=n_tasks)
        self.root.call_on_fit_task_begin(estimator=estimator, **self._data)
        self._epoch = None

    @classmethod
    def of(cls, estimator, X, y, n_tasks, **metadata):
        """Tasks of an estimator, None if it has no callbacks."""
        if not getattr(estimator, "_skl_callbacks", None):
            return None
        return cls(estimator, X, y, n_tasks, **metadata)

    def begin_epoch(self):
        """Begin the next epoch, if there can be one."""
        if self._n_left:
            self._n_left -= 1
            self._epoch = self.root.subcontext(task_name="epoch")
            self._epoch.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end_epoch(self, attributes):
        """End an epoch, and begin the next.

        Parameters
        ----------
        attributes : callable
            Returns a dict of the attributes that were learnt; called if a callback asks for the
            fitted estimator.

        Returns
        -------
        stop : bool
            True if a callback asks to stop.
        """
        if self._epoch is None:
            return False
        stop = self._epoch.call_on_fit_task_end(
            estimator=self._estimator, **self._data, reconstruction_attributes=attributes
        )
        self._epoch = None
        if not stop:
            self.begin_epoch()
        return stop

    def part(self, name, n_parts=0):
        """Context of a part of the fit, None if there are no callbacks.

        Parameters
        ----------
        name : str
            Name of the part, in the way of ``fit-tagger``.
        n_parts : int, default=0
            Number of its own parts, which can be done in any order.

        Returns
        -------
        context : CallbackContext
        """
        return self.root.subcontext(name, max_subtasks=n_parts, sequential_subtasks=not n_parts)

    def close(self):
        """End the fit of an estimator that has its attributes."""
        if self._epoch is not None:
            # It was begun, but the fit was over.
            self._epoch.call_on_fit_task_end(estimator=self._estimator)
        self.root.call_on_fit_task_end(
            estimator=self._estimator, **self._data, reconstruction_attributes={}
        )


class EpochRelay:
    """Callback that reports the epochs of an inner estimator to callbacks of the outer one.

    Parameters
    ----------
    tasks : FitTasks
        Tasks of the outer estimator.
    attributes : callable
        ``attributes(inner_estimator)`` returns a dict of the attributes that the outer estimator
        would have if its fit stopped with this inner one.
    """

    def __init__(self, tasks, attributes):
        self._tasks, self._attributes = tasks, attributes

    def setup(self, estimator, context):
        """Begin the first epoch."""
        self._tasks.begin_epoch()

    def teardown(self, estimator, context):
        """Do nothing: the outer estimator ends its fit."""

    def on_fit_task_begin(self, estimator, context):
        """Do nothing: the end of an epoch begins the next."""

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        """Report an epoch that is over; return True if a callback asks to stop."""
        # An epoch that was begun when the fit was over has no fitted estimator.
        if context.task_name != "epoch" or fitted_estimator is None:
            return False
        return self._tasks.end_epoch(lambda: self._attributes(fitted_estimator))


def as_one_task(fit):
    """Decorator, below ``_fit_context``, of a fit that is a single task for callbacks."""

    @wraps(fit)
    def fit_as_task(estimator, X=None, y=None):
        tasks = FitTasks.of(estimator, X, y, 0)
        result = fit(estimator, X, y)
        if tasks is not None:
            tasks.close()
        return result

    return fit_as_task


def part_of_fit(context, estimator, of=None):
    """Context of a part of a fit that another estimator does.

    Parameters
    ----------
    context : CallbackContext or None
        Context of the part; with None, there are no callbacks.
    estimator : estimator or None
        The estimator that does the part, which inherits callbacks; None where `of` does it itself.
    of : estimator
        The estimator whose fit it is.
    """
    return nullcontext() if context is None else _task_context(context, estimator, of)


@contextmanager
def _task_context(context, estimator, of):
    inherit = nullcontext if estimator is None else context.propagate_callback_context
    with inherit(estimator):
        context.call_on_fit_task_begin(estimator=of)
        yield
    context.call_on_fit_task_end(estimator=of)
