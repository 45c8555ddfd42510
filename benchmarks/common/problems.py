"""Training sets as the solvers take them, for benchmarks that call these by themselves."""

from typing import NamedTuple

import numpy as np

from skstruct.input.training_set import TrainingSet, batch_rows


class TrainingProblem(NamedTuple):
    """A training set with the size of the model: the arguments of learners."""

    training_set: TrainingSet
    n_features: int
    n_labels: int

    def describe(self):
        """The numbers of Table 1."""
        rows, offsets, _, _ = self.training_set
        return {
            "sequences": len(offsets) - 1,
            "tokens": int(offsets[-1]),
            "labels": self.n_labels,
            "attributes": self.n_features,
            "at most": int(np.diff(rows.indptr).max()),
        }


def training_problem(batch, y):
    """Training set of a batch without empty sequences, whose labels become strings."""
    labels = np.concatenate([[str(label) for label in labels] for labels in y])
    classes, codes = np.unique(labels, return_inverse=True)
    weight = np.ones(len(batch))
    training_set = TrainingSet(batch_rows(batch), batch.offsets, codes.astype(np.int32), weight)
    return TrainingProblem(training_set, batch.n_features, len(classes))
