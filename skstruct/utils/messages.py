"""Messages of fits, printed and logged, and of errors about values and parameters."""

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from reprlib import Repr

import numpy as np

HOW_TO_SCALE = "scale the features, for example with MaxAbsScaler or StandardScaler of scikit-learn"

logger = logging.getLogger("skstruct")

COMPILING = (
    "Compiling kernels for this machine, which can take half a minute. They are kept for the next "
    "time; `skstruct warm` compiles them ahead."
)


REMEDY = "smaller sample weights, a smaller learning rate, or a larger l2"


def overflowed(epoch, remedy=REMEDY):
    """Error for a fit whose numbers have overflowed."""
    return ValueError(
        f"Weights or gradients became infinite or NaN in epoch {epoch}: {HOW_TO_SCALE}, or use "
        f"{remedy}."
    )


_logged = set()
# For each fit that is under way, whether it is verbose.
_verbose = []


def say(verbose, message, *values, level=logging.INFO):
    """Log a message, and print it if `verbose`."""
    logger.log(level, message, *values)
    if verbose:
        print(message % values)


def log_once(level, message, *values):
    """Log a message unless this process has already logged it, whatever the `values`."""
    if message not in _logged:
        _logged.add(message)
        logger.log(level, message, *values)


@contextmanager
def compiling_announced(verbose):
    """Context of a fit that announces once that kernels are compiled, and prints it if verbose."""
    _logged.discard(COMPILING)
    _verbose.append(verbose)
    try:
        yield
    finally:
        _verbose.remove(verbose)


def announce_compiling():
    """Log that a kernel has to be compiled, and print it in a verbose fit."""
    if COMPILING not in _logged and any(_verbose):
        print(COMPILING)
    log_once(logging.INFO, COMPILING)


class _ShortRepr(Repr):
    """`reprlib.Repr` that writes numpy's scalars as Python's in all versions of numpy.

    The repr of ``np.float64(1)`` is ``1.0`` before numpy 2, and ``np.float64(1.0)`` from then on.
    """

    def __init__(self):
        super().__init__()
        # Long enough for the whole of a label or the name of a feature.
        self.maxstring = 80

    def repr(self, x):
        try:
            return super().repr(x)
        except (LookupError, RuntimeError):
            return f"<{type(x).__name__}>"

    def repr1(self, x, level):
        if isinstance(x, np.generic):
            plain = x.item() if x.dtype.kind in "biufcSU" else str(x)
            return str(plain) if isinstance(plain, np.generic) else super().repr1(plain, level)
        if isinstance(x, np.ndarray) and x.dtype == object:
            return f"array({self.repr1(x.tolist(), level)}, dtype=object)"
        return super().repr1(x, level)


short_repr = _ShortRepr().repr


# How a parameter, and its value if there is one, are named: as in Python, or as options.
_naming = ContextVar("naming", default=lambda name, *value: "=".join([name, *map(repr, value)]))


def given(name, *value):
    """Parameter in a message, with its value or without, as who calls has to write it."""
    return _naming.get()(name, *value)


@contextmanager
def parameters_named(by):
    """Context in which `given` is the function ``by(name, *value)``."""
    before = _naming.set(by)
    try:
        yield
    finally:
        _naming.reset(before)


def position(offsets, row):
    """Numbers of the sequence and the token of a row."""
    sequence = int(np.searchsorted(offsets, row, side="right") - 1)
    return sequence, int(row - offsets[sequence])


def place(offsets, row):
    """Sequence and token of a row, for messages."""
    sequence, token = position(offsets, row)
    return f"Sequence {sequence}, token {token}"


class DataError(ValueError):
    """Error in the data, with the numbers of the sequence and the token.

    It becomes a text when it is shown. Until then, who calls can set its attributes: what sequences
    and tokens are called, to what data they belong, and where these come from.

    Parameters
    ----------
    fact : str
        Format string. Its fields are ``place``, such as "Sequence 3, token 4"; ``sequence`` and
        ``token``, what these are called; and `values`.
    sequence, token : int, default=None
        Numbers of both.
    remedy : str, default=""
        Further sentence, a format string like `fact`.
    **values : object
        What else there is to be formatted.

    Attributes
    ----------
    units : (str, str)
        What a sequence and a token are called.
    part : str
        Name of the data, such as "X_val, y_val"; empty where there are no others.
    where : str
        Name of a file and number of a line; empty for data that come from none.

    Examples
    --------
    >>> from skstruct import CRFTagger, DataError
    >>> try:
    ...     CRFTagger().fit([[["a"], "b"]], [["X", "Y"]])
    ... except DataError as error:
    ...     print(error.sequence, error.token)
    0 1
    """

    units, part, where = ("sequence", "token"), "", ""

    def __init__(self, fact, /, sequence=None, token=None, *, remedy="", **values):
        super().__init__(fact, sequence, token)
        self.fact, self.sequence, self.token = fact, sequence, token
        self.remedy, self.values = remedy, values

    @classmethod
    def of(cls, error, sequence=None, token=None):
        """Give an error in a part of the data its place."""
        if not isinstance(error, cls):
            error = cls("{fact}", fact=str(error))
        if sequence is not None:
            error.fact, error.sequence, error.token = f"{{place}}: {error.fact}", sequence, token
        return error

    def __str__(self):
        sequence, token = self.units
        place = f"{sequence.capitalize()} {self.sequence}"
        if self.token is not None:
            place += f", {token} {self.token}"
        text = f"{self.fact} {self.remedy}".strip()
        text = text.format(place=place, sequence=sequence, token=token, **self.values)
        return ": ".join(filter(None, (self.where, self.part, text)))


# As of `set_module`, which knows this module.
DataError.__module__ = "skstruct"


@contextmanager
def errors_in(**known):
    """Context that sets attributes of a `DataError` that leaves it."""
    try:
        yield
    except DataError as error:
        vars(error).update(known)
        raise


def check_choice(name, value, choices):
    """Raise a ValueError unless a parameter has one of the values allowed."""
    if value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, choices))}, got {short_repr(value)}."
        )


def check_count(name, value, *, none=False):
    """Raise a ValueError unless a parameter is a positive integer, or None if that is allowed."""
    if (value is None and none) or (isinstance(value, Integral) and value >= 1):
        return
    kind = "None or a positive integer" if none else "a positive integer"
    raise ValueError(f"{name} must be {kind}, got {short_repr(value)}.")


def check_float_dtype(dtype):
    """Return a vectoriser's dtype as numpy's; a ValueError unless 32- or 64-bit float."""
    try:
        checked = np.dtype(dtype)
    except (TypeError, ValueError):
        checked = None
    if checked not in (np.float32, np.float64):
        raise ValueError(f"dtype must be np.float64 or np.float32, got {short_repr(dtype)}.")
    return checked
