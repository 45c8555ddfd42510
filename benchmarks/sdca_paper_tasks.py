"""The training sets of `sdca_paper.py`."""

from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
from search_based_tasks import CHUNKING, SPELLING, WORDS, choose, columns, read_conll2000, read_ocr

from skstruct import SequenceBatch, TemplateVectorizer
from skstruct.input.training_set import TrainingSet, batch_rows


class Task(NamedTuple):
    """What is learnt from, and what Table 1 of the paper says of its counterpart."""

    title: str
    read: object  # function of the data folder: {"train": (X, y), ...}
    paper: dict  # name there, sequences, tokens, labels, attributes, most of them at a token
    template: object = None  # lines for TemplateVectorizer; None where X is of numbers
    min_freq: int = 1
    size: object = None  # most sequences
    epochs: int = 100
    seconds: float = 150.0  # of the processor, after which a run ends in any case


def as_in_table(name, sequences, tokens, labels, attributes, at_most):
    names = ("name", "sequences", "tokens", "labels", "attributes", "at most")
    return dict(zip(names, (name, sequences, tokens, labels, attributes, at_most), strict=True))


# As many attributes at a token as the paper has.
TAGGING = [line for line in WORDS if "/" not in line][1:4]
TAGGING += [line for line in SPELLING if not line.startswith(("UP5", "US5", "UX2"))]

TASKS = {
    "ocr": Task(
        "OCR letters", read_ocr, as_in_table("OCR", 6_202, 52_827, 26, 128, 128), epochs=150
    ),
    "conll2000": Task(
        "CoNLL-2000",
        read_conll2000,
        as_in_table("CONLL", 8_936, 210_000, 22, 74_658, 19),
        CHUNKING,
        min_freq=3,
    ),
    "conll2002-ned": Task(
        "CoNLL-2002 Dutch",
        columns("conll2002-ned", "train"),
        as_in_table("NER", 15_806, 200_000, 9, 310_000, 20),
        WORDS + SPELLING,
    ),
    "brown-pos": Task(
        "Brown POS",
        columns("brown-pos", "train"),
        as_in_table("POS", 38_219, 910_000, 45, 190_000, 13),
        TAGGING,
        size=3_000,
        epochs=40,
        seconds=180.0,
    ),
}


class TrainingProblem(NamedTuple):
    """A training set with the size of the model; it is the arguments of learners."""

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


def load_problem(name, data, cache):
    """The training set of a task."""
    path = Path(cache) / f"{name}.joblib"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(make_problem(TASKS[name], data), path)
    return joblib.load(path)


def make_problem(task, data):
    X, y = task.read(data)["train"]
    kept = [i for i, labels in enumerate(y) if len(labels)]
    X, y = [X[i] for i in kept], [y[i] for i in kept]
    if task.size:
        X, y = choose((X, y), task.size, np.random.default_rng(0))
    if task.template:
        batch = TemplateVectorizer(task.template, min_freq=task.min_freq).fit_transform(X)
    else:
        batch = SequenceBatch.from_sequences(X)
    labels = np.concatenate([[str(label) for label in labels] for labels in y])
    classes, codes = np.unique(labels, return_inverse=True)
    weight = np.ones(len(batch))
    training_set = TrainingSet(batch_rows(batch), batch.offsets, codes.astype(np.int32), weight)
    return TrainingProblem(training_set, batch.n_features, len(classes))
