"""
Train on a cluster
==================

A conditional random field learns from partitions of a training set on the workers of a Dask
cluster. The weights are those that one process learns. Traffic depends on how many weights each
partition has.
"""

# %%
# A cluster
# ---------
# Two workers in this process are enough to see how it works. On a real cluster, the client gets the
# address of the scheduler, and all that follows stays the same.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_cluster.svg"

import dask
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

from skstruct import CRFTagger
from skstruct.dask import DaskTagger
from skstruct.datasets import load_addresses

client = Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")

# %%
# Partitions
# ----------
# Each partition is a delayed object, which a worker computes when it needs it. Here a partition
# takes a slice of the packaged addresses and makes features; usually it reads a file.


def features(tokens):
    lower = ["", *(token.lower() for token in tokens), ""]
    return [
        {"word": lower[i + 1], "before": lower[i], "after": lower[i + 2], "ending": token[-3:]}
        for i, token in enumerate(tokens)
    ]


@dask.delayed(nout=2)
def read_partition(number, n_partitions):
    addresses, labels = load_addresses(return_X_y=True)
    part = slice(number, None, n_partitions)
    return [features(tokens) for tokens in addresses[part]], list(labels[part])


def partitions(n_partitions):
    return zip(*(read_partition(i, n_partitions) for i in range(n_partitions)), strict=True)


# %%
# Learn
# -----
# The driver unites the attributes of all partitions, adds their gradients, and makes the steps.

n_partitions = (1, 2, 4, 8)
models = {n: DaskTagger(CRFTagger(l2=0.5)).fit(*partitions(n)) for n in n_partitions}
for n, model in models.items():
    tagger = model.estimator_
    print(
        f"{n} partitions: {tagger.n_features_in_} features, {tagger.n_weights_} weights, "
        f"{tagger.n_iter_} iterations, objective {tagger.history_['objective'][-1]:.4f}"
    )

# %%
# Traffic
# -------
# A partition has the weights of its own features only. The more partitions there are, the fewer
# weights each has, but the sum over all partitions grows.

own = {}
for n in n_partitions:
    X, _ = partitions(n)
    names = [
        {f"{key}:{value}" for tokens in part for token in tokens for key, value in token.items()}
        for part in dask.compute(*X)
    ]
    own[n] = np.array([len(of_part) for of_part in names]) / len(set().union(*names))

_, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for n, model in models.items():
    left.plot(model.estimator_.history_["objective"], label=f"{n} partitions", alpha=0.7)
left.set(xlabel="iteration", ylabel="objective", title="The same minimum")
left.legend()
right.boxplot(list(own.values()))
right.set_xticks(range(1, len(own) + 1), list(own))
right.set(xlabel="partitions", ylabel="share of all features", title="Features of a partition")

client.close()
