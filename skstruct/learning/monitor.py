"""The monitor of a fit: history, messages, callbacks, a held-out set, and when to stop."""

import logging
import math
from time import perf_counter
from typing import NamedTuple

import numpy as np

from skstruct.blocks.rows import scored
from skstruct.decoding import best_labels
from skstruct.matrices import read_only
from skstruct.utils.messages import REMEDY, logger, overflowed, say
from skstruct.utils.progress import FitTasks

# Code of tokens without a label. Labels that training has not seen have codes below it, and count
# as wrong.
_UNKNOWN = -1


class Stopping(NamedTuple):
    """Parameters of early stopping, with values for estimators that do not have it."""

    early_stopping: bool = False
    validation_fraction: float = 0.1
    tol: float | None = 1e-3
    n_iter_no_change: int = 5
    n_jobs: int | None = None


# Entries of the history from which the pace is taken.
_RECENT = 10


class Monitor:
    """What is known about a fit while it goes on.

    An estimator makes one, and a solver adds an entry to the history and calls `visit` after every
    epoch. Without an estimator, a monitor only keeps the history.

    With ``verbose=1`` each epoch prints a line with the time elapsed and the time left, to which
    ``verbose=2`` adds the numbers of the history. The logger "skstruct" gets both lines, at the
    levels INFO and DEBUG, whether they are printed or not.

    Parameters
    ----------
    estimator : estimator, default=None
        With the parameter `verbose`, if it has messages.
    tasks : FitTasks, default=None
        Tasks for callbacks.
    stopping : Stopping, default=Stopping()
        When to stop.
    name : str, default=None
        What messages begin with; by default the class of the estimator.
    unit : str, default="epoch"
        What they count.
    max_iter : int, default=None
        Largest number of epochs; None if unknown.
    verbose : int, default=None
        In place of the estimator's.

    Attributes
    ----------
    history : dict of list
        Numbers by name, one for each epoch, and the seconds since `start_clock`.
    validation_set : TrainingSet or None
        The held-out set.
    best : Chain or None
        Weights of the epoch with the best score; None without early stopping.
    best_entry : int
        Entry of the history that belongs to them.
    """

    def __init__(
        self,
        estimator=None,
        tasks=None,
        stopping=None,
        *,
        name=None,
        unit="epoch",
        max_iter=None,
        verbose=None,
    ):
        if name is None and estimator is not None:
            name = type(estimator).__name__
        self._name, self._unit, self._max_iter = name, unit, max_iter
        self._verbose = int(getattr(estimator, "verbose", 0) if verbose is None else verbose)
        self._remedy = getattr(estimator, "_remedy", REMEDY)
        self._tasks, self._told = tasks, None
        self.history, self.best, self.best_entry = {}, None, -1
        self._highest, self._since = -np.inf, 0
        self.watch(stopping)
        self.start_clock()
        if tasks is not None:
            tasks.begin_epoch()

    @classmethod
    def of_fit(cls, estimator, X, y, **metadata):
        """Monitor of ``fit(X, y, **metadata)``, which also calls callbacks."""
        max_iter = getattr(estimator, "max_iter", None)
        tasks = FitTasks.of(estimator, X, y, max_iter or 0, **metadata)
        return cls(estimator, tasks, max_iter=max_iter)

    def watch(
        self,
        stopping=None,
        validation_set=None,
        *,
        score=None,
        on_prediction=None,
        codes_of_y=None,
        **functions,
    ):
        """Set what is known after the data have been read.

        Parameters
        ----------
        stopping : Stopping, default=Stopping()
            When to stop.
        validation_set : TrainingSet, default=None
            The held-out set. With early stopping and without one, `hold_out` makes it.
        score : callable, default=None
            ``score(chain, validation_set)``. By default, that is the token accuracy.
        on_prediction : callable, default=None
            Called at every epoch with the labels predicted for the held-out set, an ndarray of
            codes of shape (n_rows,).
        codes_of_y : ndarray of shape (n_labels,), default=None
            Code of y's label for each label that is learnt, if these are others. The held-out set
            has y's.
        **functions : callable
            ``attributes(weights)`` returns a dict of the attributes that the estimator would have
            with these weights, for callbacks; by default, they are such a dict.
            ``on_epoch(monitor, learnt)`` is called after every epoch, where ``learnt()`` returns
            this dict, and returns True to stop.

        Returns
        -------
        self : Monitor
        """
        self._stopping = Stopping() if stopping is None else stopping
        self.validation_set, self._score, self._on_prediction = validation_set, score, on_prediction
        self._functions, self._codes_of_y = functions, codes_of_y
        return self

    def hold_out(self, training_set, random_state):
        """Take part of a training set for validation where early stopping needs it.

        Parameters
        ----------
        training_set : TrainingSet
            All sequences.
        random_state : RandomState instance
            Source of the choice; not touched where nothing is held out.

        Returns
        -------
        training_set : TrainingSet
            The sequences to learn from.

        Raises
        ------
        ValueError
            If no sequence would be left to learn from.
        """
        if not self._stopping.early_stopping or self.validation_set is not None:
            return training_set
        counting = training_set.counting()
        fraction = self._stopping.validation_fraction
        n_held = max(1, round(fraction * len(counting)))
        if n_held >= len(counting):
            raise ValueError(
                f"early_stopping with validation_fraction={fraction} leaves no sequence to learn "
                f"from: {len(counting)} in all. Use more sequences or a smaller fraction."
            )
        order = counting[random_state.permutation(len(counting))]
        held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
        self.validation_set = training_set.take(held)
        if self._codes_of_y is not None:
            labels = self._codes_of_y[self.validation_set.labels]
            self.validation_set = self.validation_set._replace(labels=labels)
        return training_set.take(kept)

    # History

    def start_clock(self):
        """Begin to count the seconds of the history, which goes on if it has entries."""
        self._start = perf_counter() - self.history.get("time", [0.0])[-1]

    def resume(self, history):
        """Go on from the result of `arrays`."""
        self.history = {name: values.tolist() for name, values in history.items()}
        self.start_clock()

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
            self.history.setdefault(name, []).append(math.nan if value is None else value)

    def add_score(self, score):
        """Add the score of the held-out set to the last entry."""
        self.history.setdefault("validation_score", []).append(score)

    def last(self):
        """Last entry, a dict."""
        return {name: values[-1] for name, values in self.history.items()}

    def arrays(self):
        """History as a dict with an array for each name."""
        return {name: np.asarray(values) for name, values in self.history.items()}

    # When an epoch is over

    def visit(self, weights, merit=None):
        """Score the weights after an epoch, report it, and decide whether to stop.

        Parameters
        ----------
        weights : callable
            Returns the weights; called if they are asked for.
        merit : float, default=None
            Figure that should grow, for solvers that can stop without a held-out set. Early
            stopping uses the score instead.

        Returns
        -------
        stop : bool
            True if learning is to stop after this epoch.
        """
        stop = self._judge(weights, merit)
        attributes, on_epoch = map(self._functions.get, ("attributes", "on_epoch"))

        def learnt():
            found = weights()
            return found if attributes is None else attributes(found)

        stop = self.report(learnt) or stop
        return (on_epoch is not None and on_epoch(self, learnt)) or stop

    def is_best(self, merit):
        """Take note of the merit of an epoch; return True if it is the best one so far."""
        best = merit > self._highest
        improved = merit > self._highest + (self._stopping.tol or 0.0)
        self._since = 0 if improved else self._since + 1
        self._highest = max(self._highest, merit)
        return best

    @property
    def is_over(self):
        """True if no merit has grown by more than the tolerance for `n_iter_no_change` epochs."""
        tol, patience = self._stopping.tol, self._stopping.n_iter_no_change
        return tol is not None and self._since >= patience

    def _judge(self, weights, merit):
        chain = None
        if self.validation_set is not None:
            chain = weights()
            score = self._score_of(chain)
            self.add_score(score)
            merit = score if self._stopping.early_stopping else merit
        if merit is None:
            return False
        if self.is_best(merit) and self._stopping.early_stopping:
            self.best, self.best_entry = chain, len(self.history["epoch"]) - 1
        return self.is_over

    def _score_of(self, chain):
        data = self.validation_set
        if self._score is not None:
            return self._score(chain, data)
        options = self._on_prediction, self._codes_of_y
        return token_accuracy(chain, data, self._stopping.n_jobs, *options)

    # Messages and callbacks

    def report(self, learnt=dict):
        """Report an epoch that is over.

        Parameters
        ----------
        learnt : callable
            Returns a dict of the attributes that the estimator would have if it stopped now.

        Returns
        -------
        stop : bool
            True if a callback asks to stop.
        """
        if self._name is None:
            return False
        epoch, elapsed = self.history["epoch"][-1], self.history["time"][-1]
        self._told = epoch, elapsed
        if self._verbose or logger.isEnabledFor(logging.INFO):
            self._say()
        # The first entry of a history may belong to the start.
        if self._tasks is None or epoch == 0:
            return False
        return self._tasks.end_epoch(learnt)

    def close(self):
        """Report the end of the fit."""
        if self._told is not None:
            epoch, elapsed = self._told
            unit = self._unit if epoch == 1 else f"{self._unit}s"
            count = f"{epoch:,} {unit} in {duration(elapsed)}"
            say(self._verbose, "%s: finished, %s", self._name, count)
        if self._tasks is not None:
            self._tasks.close()

    def _say(self):
        entry = self.last()
        epoch, elapsed = entry.pop("epoch"), entry.pop("time")
        width = len(f"{self._max_iter:,}") if self._max_iter else 1
        line = f"{self._name}: {self._unit} {epoch:>{width},}"
        if self._max_iter:
            line += f" of {self._max_iter:,}"
        line += f"  {duration(elapsed):>8} elapsed{self._time_left()}"
        say(self._verbose == 1, "%s", line)
        numbers = "".join(f"  {name} {number(value)}" for name, value in entry.items())
        say(self._verbose > 1, "%s%s", line, numbers, level=logging.DEBUG)

    def _time_left(self):
        """Text about the time left; empty where nothing is known."""
        times = self.history["time"]
        n_recent = min(_RECENT, len(times) - 1)
        # The first epoch may compile kernels, and says nothing about those to come.
        if self._max_iter is None or n_recent == 0:
            return ""
        pace = (times[-1] - times[-1 - n_recent]) / n_recent
        most = self._max_iter - self.history["epoch"][-1]
        expected = epochs_to_gap(self.history, self._stopping.tol)
        if expected is None or expected >= most:
            return f"  at most {duration(pace * most):>8} left"
        return f"  about {duration(pace * expected):>8} left"


def token_accuracy(chain, data, n_jobs, on_prediction=None, codes_of_y=None):
    """Weighted share of the labelled tokens that a chain labels correctly.

    Parameters
    ----------
    chain : Chain
        Weights.
    data : TrainingSet
        Sequences and their gold labels.
    n_jobs : int or None
        Number of threads.
    on_prediction : callable, default=None
        Called with the predicted labels, ndarray of shape (n_rows,).
    codes_of_y : ndarray of shape (n_labels,), default=None
        As of `Monitor.watch`.

    Returns
    -------
    accuracy : float
    """
    rows, chain = scored(data.rows, read_only(chain))
    predicted = best_labels(rows, data.offsets, chain, n_jobs)
    if on_prediction is not None:
        on_prediction(predicted)
    if codes_of_y is not None:
        predicted = codes_of_y[predicted]
    weight = data.weight_of_tokens() * (data.labels != _UNKNOWN)
    return float(np.average(predicted == data.labels, weights=weight))


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
