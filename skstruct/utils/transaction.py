"""Atomic fits: no thread sees, and no error leaves behind, a half-fitted estimator."""

from contextlib import contextmanager
from functools import wraps


@contextmanager
def draft_of(estimator, undo=()):
    """Context of a fit, which works on a draft of the estimator.

    When all is done, the attributes of the draft replace those of the estimator, in one assignment:
    other threads see the estimator before the fit or after it. An exception or an interrupt leaves
    it as it was.

    Parameters
    ----------
    estimator : estimator
    undo : list of callable, default=()
        Called after an error, to restore objects that the attributes refer to. May be filled later.

    Yields
    ------
    draft : estimator
        Shallow copy.
    """
    draft = with_attributes(estimator, vars(estimator).copy())
    try:
        yield draft
        estimator.__dict__ = vars(draft)
    except BaseException:
        # After the assignment, the fit is complete, and an interrupt undoes nothing.
        if vars(estimator) is not vars(draft):
            for put_back in undo:
                put_back()
        raise


def reads_one_fit(method):
    """Decorator of a method that reads learnt attributes, all of them from the same fit.

    The method gets an estimator with the attributes of the moment, even if another thread fits
    meanwhile. Attributes that it caches are kept with them.
    """

    @wraps(method)
    def read(estimator, *args, **kwargs):
        if "lengths" in kwargs:
            refuse_arguments(method.__name__, kwargs)
        return method(with_attributes(estimator, vars(estimator)), *args, **kwargs)

    return read


def refuse_arguments(method, names):
    """Raise a TypeError for arguments that a method does not take."""
    if "lengths" in names:
        raise TypeError(
            f"{method}() takes no lengths: pass SequenceBatch.from_lengths(X, lengths) as X, and a "
            "list of label sequences as y."
        )
    for name in names:
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")


def with_attributes(estimator, attributes):
    """Estimator of the same class that shares this dict of attributes."""
    other = type(estimator).__new__(type(estimator))
    other.__dict__ = attributes
    return other
