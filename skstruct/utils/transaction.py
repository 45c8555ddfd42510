"""Fits that leave no trace if they fail."""

from contextlib import contextmanager


@contextmanager
def draft_of(estimator, undo=()):
    """Context of a fit, which works on a draft of the estimator.

    When all is done, the estimator takes over the attributes of the draft, in one assignment.
    An exception or an interrupt leaves it as it was.

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
