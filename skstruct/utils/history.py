"""Training histories: numbers recorded at every epoch."""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np

from skstruct.utils.messages import overflowed

__all__ = ["History"]


class History:
    """Equally long lists of numbers, one entry an epoch, with the seconds since the start.

    Parameters
    ----------
    earlier : dict of ndarray, default=None
        What `arrays` returned of a history that this one goes on with.
    """

    def __init__(self, earlier=None):
        self._columns = {name: values.tolist() for name, values in (earlier or {}).items()}
        self._start = perf_counter() - self._columns.get("time", [0.0])[-1]

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
            If a number is infinite or NaN: the fit has come to nothing. A bound may be infinite.
        """
        entry = {"epoch": epoch, "time": perf_counter() - self._start, **values}
        for name, value in entry.items():
            unknown = value is None or (name == "bound" and value == math.inf)
            if not (unknown or math.isfinite(value)):
                raise overflowed(epoch)
            self._columns.setdefault(name, []).append(math.nan if value is None else value)

    def amend(self, **values):
        """Add more values to the entry of the last epoch."""
        for name, value in values.items():
            self._columns.setdefault(name, []).append(value)

    def last(self):
        """Return the last entry, a dict."""
        return {name: values[-1] for name, values in self._columns.items()}

    def __contains__(self, name):
        return name in self._columns

    def __getitem__(self, name):
        return self._columns[name]

    def arrays(self):
        """Return a dict with one array for each name."""
        return {name: np.asarray(values) for name, values in self._columns.items()}
