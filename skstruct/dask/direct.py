"""Direct calls of the workers, which bypass the scheduler.

The scheduler registers every task, and its arguments and its result pass through it. An actor of
Dask takes a call from the client, and returns the result to it. Without this module an evaluation
of the objective on two workers takes 1.2, 1.3 and 1.8 times as long, with 2, 8 and 64 partitions of
CoNLL-2000 (``benchmarks/distributed``, the part "seconds").
"""

import asyncio


class DirectCalls:
    """Calls of functions of results that are kept on the workers.

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
        calls : list of DirectCall

        Raises
        ------
        ConnectionError
            If the client may not talk to workers.
        """
        if self._client is None:
            self._client = _direct_client(self._user_client)
        with self._client.as_current():
            self._make_actors([kept for kept, *_ in shards])
            return [
                DirectCall(self._actors[kept.key], call, number, arguments)
                for number, (kept, *arguments) in enumerate(shards, first)
            ]

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


class DirectCall:
    """Direct call of a function for a shard."""

    def __init__(self, actor, call, number, arguments):
        self._arguments = arguments
        self._future = actor.call(call, number, arguments)

    def result(self):
        """Wait for the result."""
        result = self._future.result()
        # Dask's closure refers to itself, and would keep the arguments until the next garbage
        # collection.
        self._arguments.clear()
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
