"""What users pass: bags, and lists of delayed objects or futures, one a partition."""

from __future__ import annotations

import warnings

from skstruct.utils.messages import short_repr

__all__ = ["answer_lazily", "as_parts", "pair_parts"]

_EXPECTED = "Expected a dask bag, or a list of delayed objects or futures, one for each partition."


def as_parts(X, name):
    """List the partitions of a collection.

    Parameters
    ----------
    X : dask.bag.Bag or list of Delayed or Future
        Partitions.
    name : str
        Name of the argument, for messages.

    Returns
    -------
    parts : list of Delayed or Future

    Raises
    ------
    ValueError
        If X is something else, or has no partition.
    """
    from dask.bag import Bag  # optional
    from dask.delayed import Delayed  # optional
    from distributed import Future  # optional

    if isinstance(X, Bag):
        return X.to_delayed()
    if not isinstance(X, (list, tuple)):
        raise ValueError(f"{name} is {short_repr(X)}. {_EXPECTED}")
    if not X:
        raise ValueError(f"{name} has no partition. {_EXPECTED}")
    for i, part in enumerate(X):
        if not isinstance(part, (Delayed, Future)):
            raise ValueError(f"{name}[{i}] is {short_repr(part)}. {_EXPECTED}")
    return list(X)


def pair_parts(client, X, y):
    """Pair the partitions of X and y, without computing them.

    Parameters
    ----------
    client : distributed.Client
    X, y : dask.bag.Bag or list of Delayed or Future
        With the same number of partitions.

    Returns
    -------
    shards : list of (Delayed or Future, Delayed or Future)
        The partitions of both.

    Raises
    ------
    ValueError
        If they are not collections, or their numbers of partitions differ.
    """
    from distributed import Future  # optional

    parts = as_parts(X, "X"), as_parts(y, "y")
    n = len(parts[0])
    if n != len(parts[1]):
        raise ValueError(f"X has {n} partitions, but y has {len(parts[1])}.")
    given = [part for column in parts for part in column if isinstance(part, Future)]
    if given:
        _warn_of_scattered(client, given)
    return list(zip(*parts, strict=True))


def _warn_of_scattered(client, futures):
    scattered = client.run_on_scheduler(_without_recipe, [future.key for future in futures])
    if scattered:
        warnings.warn(
            f"{scattered} of the partitions were scattered: if their worker dies they are lost, "
            "and learning ends with an error. Bags and delayed objects can be computed again.",
            UserWarning,
            stacklevel=8,
        )


def _without_recipe(keys, dask_scheduler):
    """Count the keys that the scheduler cannot compute again; runs there."""
    tasks = [dask_scheduler.tasks.get(key) for key in keys]
    return sum(task is not None and task.run_spec is None for task in tasks)


def answer_lazily(function, X, model):
    """Call ``function(partition, model)`` for each partition when the result is asked for.

    Parameters
    ----------
    function : callable
        Returns a list.
    X : dask.bag.Bag or list of Delayed or Future
        Partitions.
    model : object
        Sent once, and passed on from worker to worker.

    Returns
    -------
    answers : dask.bag.Bag or list of Delayed
        A bag for a bag.
    """
    import dask  # optional
    from dask.bag import Bag  # optional

    shared = dask.delayed(model, traverse=False)
    if isinstance(X, Bag):
        return X.map_partitions(function, model=shared)
    return [dask.delayed(function)(part, shared) for part in as_parts(X, "X")]
