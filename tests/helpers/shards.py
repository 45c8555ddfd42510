"""Training sets in shards, without a cluster."""

import pickle

import numpy as np

from skstruct.utils.parallel import split_ranges


class OneProcess:
    """What `skstruct.dask.cluster.Cluster` does, in this process.

    Everything is pickled on its way, and arrays come out read-only, as they do from a network.
    """

    def map(self, function, shards, shared=None, *, keep=False):
        return list(self.iterate(function, shards, shared))

    def iterate(self, function, shards, shared=None, *, together=1, direct=False):
        for number, shard in enumerate(shards):
            arguments = [*map(_travel, shard), _travel(shared)]
            before = pickle.dumps(arguments)
            try:
                result = _travel(function(*arguments))
            except ValueError as error:
                raise ValueError(f"Partition {number}: {error}") from None
            # A task may be run again.
            assert pickle.dumps(arguments) == before, function.__name__
            yield result


def _travel(value):
    buffers = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])


def cut(X, y, n_shards):
    """Cut sequences into as many parts as threads would get, pairs of X and y."""
    offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in y])])
    return [(X[a:b], y[a:b]) for a, b in split_ranges(offsets, n_shards)]
