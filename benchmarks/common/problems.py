"""Training sets as the solvers take them, for benchmarks that call these by themselves."""

from typing import NamedTuple

import numpy as np

from skstruct.dask.shard import own_arrays
from skstruct.input.training_set import TrainingSet, batch_rows


class TrainingProblem(NamedTuple):
    """A training set with the size of the model: the arguments of learners."""

    training_set: TrainingSet
    n_features: int
    n_labels: int

    def describe(self):
        """The numbers of Table 1."""
        rows, offsets = self.training_set.rows, self.training_set.offsets
        n, n_tokens, k = len(offsets) - 1, int(offsets[-1]), self.n_labels
        return {
            # Features, transitions, and biases of labels, of first and of last tokens.
            "weights": k * (self.n_features + k + 3),
            "sequences": n,
            "tokens": n_tokens,
            "labels": k,
            "attributes": self.n_features,
            "at most": int(np.diff(rows.indptr).max()),
            "memory": 8 * (n_tokens - n) * k**2 / 2**30,
        }


def training_problem(batch, y):
    """Training set of a batch without empty sequences, whose labels become strings."""
    labels = np.concatenate([[str(label) for label in labels] for labels in y])
    classes, codes = np.unique(labels, return_inverse=True)
    weight = np.ones(len(batch))
    training_set = TrainingSet(batch_rows(batch), batch.offsets, codes.astype(np.int32), weight)
    return TrainingProblem(own_arrays(training_set), batch.n_features, len(classes))
