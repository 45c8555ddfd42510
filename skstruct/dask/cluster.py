"""Calls of functions for each shard on the workers of a cluster."""

import asyncio
from collections import deque
from functools import partial
from itertools import chain, islice

import numba
import numpy as np

import skstruct
from skstruct.utils.messages import short_repr

# Pending tasks for each thread, where several results are taken at a time.
_AHEAD = 2
# Number of shards whose arguments are in memory at a time, if they come from an iterator.
_AT_A_TIME = 4


class Cluster:
    """Workers of Dask.

    Parameters
    ----------
    client : distributed.Client or None
        Connection to the scheduler; with None, the one that was made last.
    max_retries : int
        How often Dask repeats a task that fails for another reason than invalid data.

    Attributes
    ----------
    client : distributed.Client
        As given, or found.

    Raises
    ------
    ImportError
        If Dask's scheduler, the package distributed, is missing.
    ValueError
        If no client is given and there is none, or what is given is none.
    """

    def __init__(self, client, max_retries):
        try:
            import distributed  # optional
        except ImportError:
            raise missing() from None
        if client is None:
            try:
                client = distributed.default_client()
            except ValueError:
                raise ValueError(
                    "DaskTagger found no client: connect to a cluster by distributed.Client(...), "
                    "and pass it as client= or leave it open."
                ) from None
        elif not isinstance(client, distributed.Client):
            raise ValueError(f"client must be a distributed.Client, got {short_repr(client)}.")
        self.client, self.max_retries = client, max_retries
        self._calls, self._is_direct = DirectCalls(client), True

    def close(self):
        """Close all connections but the client's."""
        self._calls.close()

    def map(self, function, shards, shared=None, *, keep=False):
        """Call ``function(*shard, shared)`` for each shard.

        Tasks that are lost because their worker dies are run again on another one, with all that
        they depend on. So a function changes none of its arguments, and its result depends on
        nothing else.

        Parameters
        ----------
        function : callable
            A function of a module. A ValueError that it raises gets the number of the shard;
            of several, the first shard's is raised.
        shards : list or iterator of tuples
            Arguments of each shard. Those that are results of earlier calls with `keep` are passed
            on by the workers themselves. Those that are delayed are computed on the workers, and
            freed as soon as the functions that take them have returned. An iterator yields a few
            shards at a time.
        shared : object, default=None
            Argument of all shards, which workers fetch from each other.
        keep : bool, default=False
            Leave the results on the workers.

        Returns
        -------
        results : list
            Results in the order of the shards, or with `keep` their futures.

        Raises
        ------
        ValueError
            If the function raises one, in this call or in an earlier one with `keep`.
        RuntimeError
            If a task or one of its dependencies is lost and cannot be run again.
        """
        shared, futures = self._share(shared), []
        # Delayed objects come in a list: several shards may share dependencies.
        at_a_time = len(shards) if isinstance(shards, list) else _AT_A_TIME
        shards = iter(shards)
        while some := list(islice(shards, at_a_time)):
            futures += self._submit(function, some, shared, len(futures))
        return futures if keep else self._gather(futures)

    def iterate(self, function, shards, shared=None, *, together=1, direct=False):
        """Call ``function(*shard, shared)`` for each shard, and take the results one by one.

        Few arguments and results are in memory at a time, in this process and in the scheduler's:
        the next shard is sent when the first of the pending results has been taken.

        Parameters
        ----------
        function, shared : object
            As in `map`.
        shards : iterable of tuples
            Arguments of each shard.
        together : int, default=1
            Number of shards to send, and of results to take, at a time. Small ones take less time
            together. Of large ones, hardly more are pending than workers have threads.
        direct : bool, default=False
            Bypass the scheduler, see `DirectCalls`. This takes less time where results of earlier
            calls with `keep` are the first arguments of many calls. Calls that fail, and all later
            ones, become tasks.

        Yields
        ------
        result : object
            Result for the next shard, in the order of the shards.

        Raises
        ------
        ValueError, RuntimeError
            As in `map`.
        """
        # Workers have something to do while the next results are taken.
        most, n_threads = 2, None
        direct = direct and shared is None
        shared, shards = self._share(shared), iter(shards)
        pending, sent, taken = deque(), 0, 0
        try:
            while True:
                while len(pending) < most and (some := list(islice(shards, together))):
                    pending.append(self._start(function, some, shared, sent, direct))
                    sent += len(some)
                # Free the arguments before waiting for results.
                some = None
                if len(pending) == most and n_threads is None:
                    # Asked for while workers compute, and only where there are many shards.
                    n_threads = sum(self.client.nthreads().values())
                    of_threads = _AHEAD * n_threads // together if together > 1 else n_threads + 1
                    most = max(most, of_threads)
                    continue
                if not pending:
                    return
                results = deque(self._take(function, *pending.popleft(), taken))
                taken += len(results)
                while results:
                    yield results.popleft()
        finally:
            tasks = (calls for calls, shards in pending if shards is None)
            self.client.cancel(list(chain.from_iterable(tasks)))

    def _share(self, value):
        """Future of an argument of all shards."""
        if value is None:
            return None
        with _large_graphs():
            return self.client.submit(partial(_constant, value), pure=False)

    def _submit(self, function, shards, shared, first):
        """Futures of the calls for shards, numbered from `first` on."""
        import dask  # optional
        from dask.delayed import Delayed  # optional

        call, retries = _Call(function), {"retries": self.max_retries}
        numbers = range(first, first + len(shards))
        with _large_graphs():
            if any(isinstance(value, Delayed) for shard in shards for value in shard):
                # In one call, so that what several shards need is computed once.
                call = dask.delayed(call, pure=False)
                calls = [call(i, shared, *shard) for i, shard in zip(numbers, shards, strict=True)]
                return self.client.compute(calls, **retries)
            columns = map(list, zip(*shards, strict=True))
            return self.client.map(
                call, numbers, [shared] * len(shards), *columns, pure=False, **retries
            )

    def _start(self, function, shards, shared, first, direct):
        """Start the calls for shards, direct ones if they are wanted and possible, else tasks.

        Returns
        -------
        calls : list
            Direct calls, or futures of tasks.
        shards : list or None
            As given, to repeat direct calls that fail; None for tasks.
        """
        if direct and self._is_direct:
            try:
                return self._calls.start(_Call(function), first, shards), shards
            except Exception:
                # Tasks are repeated, and their errors say what is wrong.
                self._is_direct = False
        return self._submit(function, shards, shared, first), None

    def _take(self, function, calls, shards, first):
        """Results of what `_start` returned; direct calls that fail are repeated as tasks."""
        if shards is None:
            return self._gather(calls, first)
        try:
            results = [_result_of(*call) for call in calls]
        except Exception:
            self._is_direct = False
            return self._gather(self._submit(function, shards, None, first), first)
        return _without_failures(results)

    def _gather(self, futures, first=0):
        """Results of tasks for the shards from number `first` on."""
        from distributed import CancelledError  # optional
        from distributed.scheduler import KilledWorker  # optional

        try:
            results = self.client.gather(futures)
        except (CancelledError, KilledWorker) as error:
            raise _lost(futures, first, error, isinstance(error, KilledWorker)) from error
        except BaseException as error:
            failed = next((i for i, f in enumerate(futures) if f.status == "error"), None)
            if failed is not None:
                error.add_note(f"This happened in partition {first + failed}.")
            self.client.cancel(futures)
            raise
        return _without_failures(results)

    def check_versions(self):
        """Raise an error if the workers have other releases of packages than this process.

        Raises
        ------
        RuntimeError
            With the worker, the package and both releases.
        """
        own = _releases()
        for worker, found in self.client.run(_releases, on_error="return").items():
            if isinstance(found, Exception):
                raise RuntimeError(
                    f"Worker {worker} cannot import skstruct {own['skstruct']}: {found}"
                ) from found
            for package, release in found.items():
                if release != own[package]:
                    raise RuntimeError(
                        f"Worker {worker} has {package} {release}, and this process {own[package]}."
                        " Install the same releases everywhere: other ones learn other weights."
                    )


def missing():
    """Error for what needs Dask."""
    return ImportError('skstruct.dask needs the package distributed: pip install "skstruct[dask]".')


def _releases():
    """Releases of the packages whose release can change the bits of a result."""
    return {package.__name__: package.__version__ for package in (skstruct, np, numba)}


def _large_graphs():
    """Context without Dask's warning of large tasks: weights are sent with them on purpose."""
    import dask  # optional

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"})


def _without_failures(results):
    """Raise the first ValueError among results, or return them."""
    failure = next((result for result in results if isinstance(result, ValueError)), None)
    if failure is not None:
        raise failure
    return results


def _constant(value):
    return value


class _Call:
    """A task that calls a function, and returns the ValueError that it raises.

    Dask would repeat a task that fails, and raise the error that came first in time.
    """

    def __init__(self, function):
        self._function = function
        self.__name__ = function.__name__

    def __call__(self, number, shared, *shard):
        failure = next((value for value in shard if isinstance(value, ValueError)), None)
        if failure is not None:
            return failure
        try:
            return self._function(*shard, shared)
        except ValueError as error:
            return ValueError(f"Partition {number}: {error}")


def _lost(futures, first, error, killed):
    """Error for a task that cannot be run again."""
    lost = (i for i, f in enumerate(futures) if f.status in ("error", "cancelled"))
    number = first + next(lost, 0)
    if killed:
        return RuntimeError(
            f"Partition {number}: {error.allowed_failures + 1} workers died one after the other "
            "with its task, most likely because they ran out of memory. Use smaller partitions, or "
            "workers with more memory."
        )
    return RuntimeError(
        f"Partition {number}: its data were lost with a worker, and cannot be computed again "
        "because they were scattered. Pass a bag or delayed objects that read the data."
    )


# Direct calls


class DirectCalls:
    """Calls of functions of results that are kept on the workers, past the scheduler.

    The scheduler registers every task, and its arguments and its result pass through it. An actor
    of Dask takes a call from the client, and returns the result to it. As tasks, an evaluation of
    the objective on two workers takes 1.2, 1.3 and 1.8 times as long, with 2, 8 and 64 partitions
    of CoNLL-2000 (``benchmarks/scale``, the part "seconds").

    Parameters
    ----------
    client : distributed.Client
        Connection to the scheduler. If it does not say whether it may talk to workers, it may where
        all of them are on this machine.
    """

    def __init__(self, client):
        self._user_client, self._client, self._actors = client, None, {}

    def close(self):
        """Close the connection, unless it is the user's."""
        self._actors.clear()
        if self._client not in (None, self._user_client):
            self._client.close()

    def start(self, call, first, shards):
        """Start ``call(number, None, *shard)`` where the first argument of each shard is kept.

        Parameters
        ----------
        call : callable
            Must be picklable.
        first : int
            Number of the first shard.
        shards : list of tuples
            Arguments of each shard, of which the first is a future.

        Returns
        -------
        calls : list of tuples
            Future and arguments of each call, for `_result_of`.

        Raises
        ------
        ConnectionError
            If the client may not talk to workers.
        """
        if self._client is None:
            self._client = _direct_client(self._user_client)
        with self._client.as_current():
            self._make_actors([kept for kept, *_ in shards])
            calls = []
            for number, (kept, *arguments) in enumerate(shards, first):
                future = self._actors[kept.key].call(call, number, arguments)
                calls.append((future, arguments))
            return calls

    def _make_actors(self, futures):
        """Make an actor beside each result that has none."""
        from distributed import Future  # optional

        new = {future.key: future for future in futures if future.key not in self._actors}
        if new:
            # Futures belong to one client.
            kept = [Future(key, self._client) for key in new]
            actors = self._client.map(_Actor, kept, actor=True, pure=False)
            self._actors |= zip(new, self._client.gather(actors), strict=True)


def _direct_client(client):
    """Return a client that talks to workers: only such a one calls actors past the scheduler."""
    from distributed import Client  # optional

    workers, allowed = client.nthreads(), client.direct_to_workers
    # An actor in this process would take the client for a worker.
    apart = not any(address.startswith("inproc:") for address in workers)
    if allowed and apart:
        return client
    if allowed is None and apart and _are_here(workers):
        address, options = client.scheduler.address, {"set_as_default": False}
        return Client(address, direct_to_workers=True, security=client.security, **options)
    raise ConnectionError("The client does not talk to workers.")


def _are_here(workers):
    """Return True if addresses are of this machine."""
    from distributed.comm.addressing import get_address_host  # optional
    from distributed.utils import get_ip  # optional

    others = set(map(get_address_host, workers)) - {"127.0.0.1", "localhost", "::1"}
    return not others or others == {get_ip()}


def _result_of(future, arguments):
    """Wait for the result of a direct call."""
    result = future.result()
    # Dask's closure refers to itself, and would keep the arguments until the next garbage
    # collection.
    arguments.clear()
    return result


class _Actor:
    """An actor beside the result of a task."""

    def __init__(self, kept):
        from distributed import get_worker  # optional

        self._kept, self._worker = kept, get_worker()

    async def call(self, call, number, arguments):
        """Call a function in one of the threads in which the worker runs tasks."""
        threads = self._worker.executors["default"]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, call, number, None, self._kept, *arguments)
