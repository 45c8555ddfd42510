"""Progress of a fit: lines that are printed and logged, and tasks for callbacks."""

from __future__ import annotations

import logging
import math

from skstruct.utils.callbacks import FitTasks
from skstruct.utils.messages import logger, say

__all__ = ["Progress"]

# Entries of the history from which the pace is taken.
_RECENT = 10
_WIDTH = 12


class Progress:
    """Messages on a fit, an epoch at a time.

    With ``verbose=1`` each epoch prints a line with the time elapsed and the time left, and with
    ``verbose=2`` a row of the history. The logger "skstruct" gets the lines at level INFO and the
    rows at level DEBUG, whether they are printed or not.

    Parameters
    ----------
    estimator : estimator
        With the parameter `verbose`, and `max_iter` and `tol` if it has them.
    tasks : FitTasks, default=None
        Tasks for callbacks.
    max_iter : int, default=None
        Most epochs that there can be; None where that is unknown.
    verbose : int, default=None
        In place of that of the estimator.
    """

    def __init__(self, estimator, tasks=None, max_iter=None, verbose=None):
        self._name = type(estimator).__name__
        self._verbose = int(getattr(estimator, "verbose", 0) if verbose is None else verbose)
        self._tol = getattr(estimator, "tol", None)
        self._max_iter = max_iter
        self._tasks = tasks
        self._widths = None
        self._last = None
        if tasks is not None:
            tasks.begin_epoch()

    @classmethod
    def of_fit(cls, estimator, X, y, **metadata):
        """Progress of ``fit(X, y, **metadata)``, which callbacks follow, too."""
        max_iter = getattr(estimator, "max_iter", None)
        return cls(estimator, FitTasks.of(estimator, X, y, max_iter or 0, **metadata), max_iter)

    def report(self, history, attributes=dict):
        """Report an epoch that is over.

        Parameters
        ----------
        history : History
            Its last entry is that of the epoch.
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
            about, left = self._time_left(history)
            self._say_line(epoch, elapsed, about, left)
            self._say_row(history.last(), left)
        # The first entry of a history may be that of the start.
        if self._tasks is None or epoch == 0:
            return False
        return self._tasks.end_epoch(attributes)

    def close(self):
        """Report the end of the fit."""
        if self._last is not None:
            epoch, elapsed = self._last
            unit = "epoch" if epoch == 1 else "epochs"
            count = f"{epoch:,} {unit} in {duration(elapsed)}"
            say(self._verbose, "%s: finished, %s", self._name, count)
        if self._tasks is not None:
            self._tasks.close()

    def _say_line(self, epoch, elapsed, about, left):
        width = len(f"{self._max_iter:,}") if self._max_iter else 1
        line = f"{self._name}: epoch {epoch:>{width},}"
        if self._max_iter:
            line += f" of {self._max_iter:,}"
        line += f"  {duration(elapsed):>8} elapsed"
        if left is not None:
            line += f"  {'about' if about else 'at most'} {duration(left):>8} left"
        say(self._verbose == 1, "%s", line)

    def _say_row(self, entry, left):
        if self._verbose < 2 and not logger.isEnabledFor(logging.DEBUG):
            return
        others = {name: value for name, value in entry.items() if name not in ("epoch", "time")}
        first = {
            "epoch": f"{entry['epoch']:,}",
            "elapsed": duration(entry["time"]),
            "left": "" if left is None else duration(left),
        }
        cells = {**first, **{name: number(value) for name, value in others.items()}}
        if self._widths is None:
            self._widths = {name: max(len(name), _WIDTH) for name in cells}
            self._widths.update(epoch=6, elapsed=8, left=8)
            self._say_cells(dict(zip(cells, cells, strict=True)))
        self._say_cells(cells)

    def _say_cells(self, cells):
        row = "  ".join(f"{text:>{self._widths.get(name, 0)}}" for name, text in cells.items())
        say(self._verbose > 1, "%s: %s", self._name, row, level=logging.DEBUG)

    def _time_left(self, history):
        """Seconds that are left, None if unknown; and True if that is estimated from the gap."""
        times = history["time"]
        n_recent = min(_RECENT, len(times) - 1)
        # The first epoch may compile kernels, and says nothing about those to come.
        if self._max_iter is None or n_recent == 0:
            return False, None
        pace = (times[-1] - times[-1 - n_recent]) / n_recent
        most = self._max_iter - history["epoch"][-1]
        expected = epochs_to_gap(history, self._tol)
        if expected is None or expected >= most:
            return False, pace * most
        return True, pace * expected


def epochs_to_gap(history, tol):
    """Epochs until the gap is within the tolerance, if it goes on to close as it has of late.

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
    if not tol or "objective" not in history:
        return None
    name = next((name for name in ("gap", "bound") if name in history), None)
    if name is None:
        return None
    columns = zip(history["epoch"], history[name], history["objective"], strict=True)
    # Bounds go up and down on their way; the least so far only goes down.
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
    """Seconds as people read them: ``3.2 s``, ``4:05``, ``2:13:07``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def number(value):
    """Text of a value of a history, of six digits unless it counts something."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
