"""Tasks as dicts of splits, which are computed once and kept.

A reranker learns from the costs of candidates. Corpus scores are computed from `stats`, numbers
that are summed over the chosen candidates.
"""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from skstruct import SequenceBatch


class Definition(NamedTuple):
    """A task: its splits, and how choices are scored."""

    make: object  # function of the data folder: dict of splits
    metric: object  # function of summed stats: scores by name
    key: str  # the main score
    higher_is_better: bool = True


@dataclass
class Split:
    """Groups of candidates."""

    batch: SequenceBatch
    costs: np.ndarray  # (n_rows,)
    stats: np.ndarray  # (n_rows, n_stats)

    def groups_of(self, values):
        return np.split(values, self.batch.offsets[1:-1])

    def teaching(self):
        """Batch and costs of the groups whose candidates differ in cost."""
        costs = self.groups_of(self.costs)
        kept = np.array([c.max() > c.min() for c in costs])
        return self.batch[kept], [c for c, wanted in zip(costs, kept, strict=True) if wanted]

    def chosen_stats(self, chosen):
        return self.stats[self.batch.offsets[:-1] + chosen]

    def oracle(self):
        return np.array([np.argmin(c) for c in self.groups_of(self.costs)])


class Builder:
    """Collects features of candidates, without those that all candidates of a group share."""

    def __init__(self):
        self.ids = {}
        self.indices, self.data, self.row_lengths, self.lengths = [], [], [], []

    def name(self, feature):
        return self.ids.setdefault(feature, len(self.ids))

    def add_group(self, candidates):
        """Add a group: for each candidate a dict of feature id to value."""
        first = candidates[0]
        shared = {j for j, x in first.items() if all(c.get(j) == x for c in candidates)}
        for candidate in candidates:
            items = [(j, x) for j, x in candidate.items() if j not in shared]
            self.indices.append(np.fromiter((j for j, _ in items), np.int32, len(items)))
            self.data.append(np.fromiter((x for _, x in items), np.float64, len(items)))
            self.row_lengths.append(len(items))
        self.lengths.append(len(candidates))

    def finish(self, n_train, min_groups):
        """Batch of all groups with the features that `min_groups` training groups have."""
        indptr = np.concatenate([[0], np.cumsum(self.row_lengths)])
        X = sp.csr_matrix(
            (np.concatenate(self.data), np.concatenate(self.indices), indptr),
            shape=(len(indptr) - 1, len(self.ids)),
        )
        rows_of_group = np.repeat(np.arange(len(self.lengths)), self.lengths)
        n_rows = sum(self.lengths[:n_train])
        membership = sp.csr_matrix(
            (np.ones(n_rows), (rows_of_group[:n_rows], np.arange(n_rows))),
            shape=(n_train, n_rows),
        )
        binary = X[:n_rows].copy()
        binary.data[:] = 1
        frequency = np.diff((membership @ binary).tocsc().indptr)
        kept = np.flatnonzero(frequency >= min_groups)
        names = np.array(list(self.ids), dtype=object)[kept]
        return SequenceBatch.from_lengths(X[:, kept], self.lengths, feature_names=names)


def split_up(batch, costs, stats, sizes):
    """Consecutive splits of the given sizes, ``(name, n_groups)``."""
    splits, start = {}, 0
    for name, size in sizes:
        a, b = batch.offsets[start], batch.offsets[start + size]
        splits[name] = Split(batch[start : start + size], costs[a:b], stats[a:b])
        start += size
    return splits


def f1_scores(total):
    """Scores in per cent, from sums of correct, found and true items."""
    correct, found, true = total
    return {
        "f1": 100 * 2 * correct / (found + true),
        "precision": 100 * correct / found,
        "recall": 100 * correct / true,
    }


def read_records(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def load_task(name, data, cache, tasks):
    """Splits of a task; the features are computed once and kept in the folder `cache`."""
    path = Path(cache) / f"{name.replace('/', '-')}.features.npz"
    if not path.exists():
        save(tasks[name].make(data and Path(data)), path)
    kept = np.load(path, allow_pickle=False)
    splits = {}
    for split in ("train", "dev", "test"):
        shape = tuple(kept[f"{split}.shape"])
        parts = [kept[f"{split}.{field}"] for field in ("data", "indices", "indptr")]
        batch = SequenceBatch(sp.csr_matrix(tuple(parts), shape=shape), kept[f"{split}.offsets"])
        splits[split] = Split(batch, kept[f"{split}.costs"], kept[f"{split}.stats"])
    return splits


def save(splits, path):
    arrays = {}
    for name, split in splits.items():
        X = split.batch.X
        arrays |= {
            f"{name}.data": X.data,
            f"{name}.indices": X.indices,
            f"{name}.indptr": X.indptr,
            f"{name}.shape": X.shape,
            f"{name}.offsets": split.batch.offsets,
            f"{name}.costs": split.costs,
            f"{name}.stats": split.stats,
        }
    np.savez_compressed(path, **arrays)
