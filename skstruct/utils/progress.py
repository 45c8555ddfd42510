"""Callbacks of scikit-learn: tasks of a fit, and its epochs."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from functools import wraps
from importlib.util import find_spec

from sklearn import config_context, get_config
from sklearn.base import _fit_context
from sklearn.utils.metaestimators import available_if


def has_callbacks():
    """True if the installed release of scikit-learn has callbacks, as 1.9 and later."""
    return find_spec("sklearn.callback") is not None


def _callback_support():
    """scikit-learn's mixin of estimators with callbacks."""
    from sklearn.callback import CallbackSupportMixin  # slow

    return CallbackSupportMixin


def fit_context(*, prefer_skip_nested_validation):
    """Decorator of fits: scikit-learn's ``_fit_context``, used where there are callbacks.

    That one imports scikit-learn's callbacks in every process that fits, and with them rich.

    Parameters
    ----------
    prefer_skip_nested_validation : bool
        As of ``_fit_context``: do not check the parameters of inner estimators.
    """

    def decorator(fit):
        fit_with_callbacks = _fit_context(
            prefer_skip_nested_validation=prefer_skip_nested_validation
        )(fit)

        @wraps(fit)
        def fit_checked(estimator, *args, **kwargs):
            if getattr(estimator, "_skl_callbacks", None):
                return fit_with_callbacks(estimator, *args, **kwargs)
            skip = get_config()["skip_parameter_validation"]
            # A pass over more data does not check them again.
            goes_on = fit.__name__ == "partial_fit" and estimator.__sklearn_is_fitted__()
            if not (skip or goes_on):
                estimator._validate_params()
            skip_nested = prefer_skip_nested_validation or skip
            with config_context(skip_parameter_validation=skip_nested):
                return fit(estimator, *args, **kwargs)

        return fit_checked

    return decorator


class CallbackSupport:
    """Mixin of estimators whose `fit` calls the callbacks of scikit-learn.

    It stands in for `sklearn.callback.CallbackSupportMixin`, which older releases do not have. If a
    fit fails, the decorator `fit_context` tears down the callbacks.
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
        return _callback_support().set_callbacks(self, *callbacks)


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
        Further arguments of `fit`, such as sample weights.
    """

    def __init__(self, estimator, X, y, n_tasks, **metadata):
        given = {name: value for name, value in metadata.items() if value is not None}
        # An iterator can be read only once, by the fit itself.
        X = None if isinstance(X, Iterator) else X
        self._data = {"X": X, "y": y, "metadata": given or None}
        self._estimator = estimator
        self._n_left = math.inf if n_tasks is None else n_tasks
        self.root = _callback_support()._init_callback_context(estimator, max_subtasks=n_tasks)
        self.root.call_on_fit_task_begin(estimator=estimator, **self._data)
        self._epoch = None

    @classmethod
    def of(cls, estimator, X, y, n_tasks, **metadata):
        """Tasks of an estimator, None if it has no callbacks."""
        if not getattr(estimator, "_skl_callbacks", None):
            return None
        return cls(estimator, X, y, n_tasks, **metadata)

    def begin_epoch(self):
        """Begin the next epoch, unless there is none left."""
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
            Name of the part, such as ``fit-tagger``.
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
            # It was begun before the fit turned out to be over.
            self._epoch.call_on_fit_task_end(estimator=self._estimator)
        self.root.call_on_fit_task_end(
            estimator=self._estimator, **self._data, reconstruction_attributes={}
        )


def as_one_task(fit):
    """Decorator, below `fit_context`, of a fit that is a single task for callbacks."""

    @wraps(fit)
    def fit_as_task(estimator, X=None, y=None, **params):
        tasks = FitTasks.of(estimator, X, y, 0)
        result = fit(estimator, X, y, **params)
        if tasks is not None:
            tasks.close()
        return result

    return fit_as_task


@contextmanager
def part_of_fit(context, estimator, of):
    """Context of a part of a fit that is delegated to another estimator.

    Parameters
    ----------
    context : CallbackContext or None
        Context of the part; with None, there are no callbacks.
    estimator : estimator or None
        The estimator that does the part, which inherits callbacks; None where `of` does it itself.
    of : estimator
        The estimator whose fit it is.
    """
    if context is None:
        yield
        return
    inherit = nullcontext if estimator is None else context.propagate_callback_context
    with inherit(estimator):
        context.call_on_fit_task_begin(estimator=of)
        yield
    context.call_on_fit_task_end(estimator=of)
