"""Progress of a fit: history, messages, and tasks for callbacks."""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from functools import wraps
from importlib.util import find_spec
from time import perf_counter

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import _fit_context
from sklearn.utils.metaestimators import available_if

from skstruct.utils.messages import REMEDY, logger, overflowed, say


class History(dict):
    """Lists of numbers by name, with an entry for each epoch and the seconds since the start.

    Parameters
    ----------
    earlier : dict of ndarray, default=None
        Result of `arrays` of the history that this one continues.
    remedy : str, default=REMEDY
        What to do about numbers that overflow, apart from scaling.
    """

    def __init__(self, earlier=None, remedy=REMEDY):
        super().__init__({name: values.tolist() for name, values in (earlier or {}).items()})
        self._remedy = remedy
        self._start = perf_counter() - self.get("time", [0.0])[-1]

    def add(self, *, epoch, **values):
        """Add an entry for an epoch.

        Parameters
        ----------
        epoch : int
            Its number.
        **values : float or None
            Numbers to record; None, which becomes NaN, where one is not known.

        Raises
        ------
        ValueError
            If a number is infinite or NaN: the fit has diverged. A bound may be infinite.
        """
        entry = {"epoch": epoch, "time": perf_counter() - self._start, **values}
        for name, value in entry.items():
            unknown = value is None or (name == "bound" and value == math.inf)
            if not (unknown or math.isfinite(value)):
                raise overflowed(epoch, self._remedy)
            self.setdefault(name, []).append(math.nan if value is None else value)

    def amend(self, **values):
        """Add more values to the entry of the last epoch."""
        for name, value in values.items():
            self.setdefault(name, []).append(value)

    def last(self):
        return {name: values[-1] for name, values in self.items()}

    def arrays(self):
        return {name: np.asarray(values) for name, values in self.items()}


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
        # An epoch that was begun after the last one has no fitted estimator.
        if context.task_name != "epoch" or fitted_estimator is None:
            return False
        return self._tasks.end_epoch(lambda: self._attributes(fitted_estimator))


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


# Entries of the history from which the pace is taken.
_RECENT = 10


class Progress:
    """Messages on a fit, an epoch at a time.

    With ``verbose=1`` each epoch prints a line with the time elapsed and the time left, to which
    ``verbose=2`` adds the numbers of the history. The logger "skstruct" gets both lines, at the
    levels INFO and DEBUG, whether they are printed or not.

    Parameters
    ----------
    estimator : estimator
        With the parameter `verbose`, and `max_iter` and `tol` if it has them. Where another
        estimator learns by it, its attribute ``_title`` is the pair of what lines begin with and
        what they count.
    tasks : FitTasks, default=None
        Tasks for callbacks.
    max_iter : int, default=None
        Largest number of epochs; None if unknown.
    verbose : int, default=None
        In place of the estimator's.
    """

    def __init__(self, estimator, tasks=None, max_iter=None, verbose=None):
        title = type(estimator).__name__, "epoch"
        self._name, self._unit = getattr(estimator, "_title", title)
        self._verbose = int(getattr(estimator, "verbose", 0) if verbose is None else verbose)
        self._tol = getattr(estimator, "tol", None)
        self._max_iter = max_iter
        self._tasks = tasks
        self._last = None
        if tasks is not None:
            tasks.begin_epoch()

    @classmethod
    def of_fit(cls, estimator, X, y, **metadata):
        """Progress of ``fit(X, y, **metadata)``, also reported to callbacks."""
        max_iter = getattr(estimator, "max_iter", None)
        return cls(estimator, FitTasks.of(estimator, X, y, max_iter or 0, **metadata), max_iter)

    def report(self, history, attributes=dict):
        """Report an epoch that is over.

        Parameters
        ----------
        history : History
            Its last entry belongs to the epoch.
        attributes : callable
            Returns a dict of the attributes that the estimator would have if it stopped now.

        Returns
        -------
        stop : bool
            True if a callback asks to stop.
        """
        epoch, elapsed = history["epoch"][-1], history["time"][-1]
        self._last = epoch, elapsed
        if self._verbose or logger.isEnabledFor(logging.INFO):
            self._say(history)
        # The first entry of a history may belong to the start.
        if self._tasks is None or epoch == 0:
            return False
        return self._tasks.end_epoch(attributes)

    def close(self):
        """Report the end of the fit."""
        if self._last is not None:
            epoch, elapsed = self._last
            unit = self._unit if epoch == 1 else f"{self._unit}s"
            count = f"{epoch:,} {unit} in {duration(elapsed)}"
            say(self._verbose, "%s: finished, %s", self._name, count)
        if self._tasks is not None:
            self._tasks.close()

    def _say(self, history):
        entry = history.last()
        epoch, elapsed = entry.pop("epoch"), entry.pop("time")
        width = len(f"{self._max_iter:,}") if self._max_iter else 1
        line = f"{self._name}: {self._unit} {epoch:>{width},}"
        if self._max_iter:
            line += f" of {self._max_iter:,}"
        line += f"  {duration(elapsed):>8} elapsed{self._time_left(history)}"
        say(self._verbose == 1, "%s", line)
        numbers = "".join(f"  {name} {number(value)}" for name, value in entry.items())
        say(self._verbose > 1, "%s%s", line, numbers, level=logging.DEBUG)

    def _time_left(self, history):
        """Text about the time left; empty where nothing is known."""
        times = history["time"]
        n_recent = min(_RECENT, len(times) - 1)
        # The first epoch may compile kernels, and says nothing about those to come.
        if self._max_iter is None or n_recent == 0:
            return ""
        pace = (times[-1] - times[-1 - n_recent]) / n_recent
        most = self._max_iter - history["epoch"][-1]
        expected = epochs_to_gap(history, self._tol)
        if expected is None or expected >= most:
            return f"  at most {duration(pace * most):>8} left"
        return f"  about {duration(pace * expected):>8} left"


def epochs_to_gap(history, tol):
    """Epochs until the gap is within the tolerance, extrapolated from the last ones.

    Parameters
    ----------
    history : History
        With the objective, and the gap or bound.
    tol : float or None
        Share of the objective at which the fit ends.

    Returns
    -------
    n_epochs : float or None
        None where the history has no gap, or it does not close.
    """
    names = [name for name in ("gap", "bound") if name in history]
    if not (tol and names and "objective" in history):
        return None
    columns = zip(history["epoch"], history[names[0]], history["objective"], strict=True)
    # Bounds fluctuate; the least so far never rises.
    shares, least = [], math.inf
    for epoch, gap, value in columns:
        if 0 < gap < math.inf and value > 0:
            least = min(least, gap / value)
            shares.append((epoch, least))
    if len(shares) < 3:
        return None
    (before, wide), (epoch, narrow) = shares[len(shares) // 2 - 1], shares[-1]
    if narrow <= tol:
        return 0.0
    if narrow == wide:
        return None
    return math.log(narrow / tol) / math.log(wide / narrow) * (epoch - before)


def duration(seconds):
    """Format seconds: ``3.2 s``, ``4:05``, ``2:13:07``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def number(value):
    """Format a value of a history, floats with six digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
