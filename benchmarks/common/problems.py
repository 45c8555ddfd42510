"""Training sets as the solvers take them, for benchmarks that call these by themselves."""

from typing import NamedTuple

import numpy as np

from skstruct.dask.shard import own_arrays
from skstruct.input.training_set import TrainingSet, batch_rows
from skstruct.learning.solver import Model


class TrainingProblem(NamedTuple):
    """A training set and the model: the arguments of learners."""

    training_set: TrainingSet
    model: Model

    def describe(self):
        """The numbers of Table 1."""
        rows, offsets = self.training_set.rows, self.training_set.offsets
        n, n_tokens, k = len(offsets) - 1, int(offsets[-1]), self.model.n_labels
        return {
            # Features, transitions, and biases of labels, of first and of last tokens.
            "weights": k * (self.model.n_features + k + 3),
            "sequences": n,
            "tokens": n_tokens,
            "labels": k,
            "attributes": self.model.n_features,
            "at most": int(np.diff(rows.indptr).max()),
            "memory": 8 * (n_tokens - n) * k**2 / 2**30,
        }


def training_problem(batch, y):
    """Training set of a batch without empty sequences, whose labels become strings."""
    labels = np.concatenate([[str(label) for label in labels] for labels in y])
    classes, codes = np.unique(labels, return_inverse=True)
    weight = np.ones(len(batch))
    training_set = TrainingSet(batch_rows(batch), batch.offsets, codes.astype(np.int32), weight)
    return TrainingProblem(own_arrays(training_set), Model(batch.n_features, len(classes)))
