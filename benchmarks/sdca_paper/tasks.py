"""The training sets: tasks like those of the paper, and small ones for quick runs."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.common.cache import load_or_make
from benchmarks.common.corpora import choose, load_quick, load_quick_digits, read_columns
from benchmarks.common.features import CHUNKING, SPELLING, TAGGING, WORDS
from benchmarks.common.problems import training_problem
from skstruct import SequenceBatch, TemplateVectorizer
from skstruct.dask.shard import own_arrays
from skstruct.datasets import fetch_ocr_letters


class Task(NamedTuple):
    """A training set, and the numbers of its counterpart in Table 1 of the paper."""

    title: str
    read: object  # function of the data folder: X and y
    paper: dict | None  # name there, and the columns of the table
    template: object = None  # lines for TemplateVectorizer; None where X is of numbers
    min_freq: int = 1
    size: object = None  # most sequences
    epochs: int = 100
    seconds: float = 400.0  # processor time after which a run ends in any case


# GiB of the marginals of all label pairs are the last column.
COLUMNS = ("weights", "sequences", "tokens", "labels", "attributes", "at most", "memory")


def as_in_table(name, *values):
    return {"name": name, **dict(zip(COLUMNS, values, strict=True))}


def read_training(name, n_columns=1):
    """Reader of the training part of a corpus in column files."""
    return lambda data: read_columns(Path(data) / name, {"train": "train"}, n_columns)["train"]


def read_ocr(data):
    return fetch_ocr_letters(subset="train", data_home=data, return_X_y=True)


TASKS = {
    "ocr": Task(
        "OCR letters",
        read_ocr,
        as_in_table("OCR", 4_082, 6_202, 52_827, 26, 128, 128, 0.2),
        epochs=150,
    ),
    "conll2000": Task(
        "CoNLL-2000",
        read_training("conll2000", 2),
        as_in_table("CONLL", 1_600_000, 8_936, 210_000, 22, 74_658, 19, 0.7),
        CHUNKING,
        min_freq=3,
    ),
    "conll2002-ned": Task(
        "CoNLL-2002 Dutch",
        read_training("conll2002-ned"),
        as_in_table("NER", 2_800_000, 15_806, 200_000, 9, 310_000, 20, 0.1),
        WORDS + SPELLING,
    ),
    "brown-pos": Task(
        "Brown POS",
        read_training("brown-pos"),
        as_in_table("POS", 8_600_000, 38_219, 910_000, 45, 190_000, 13, 13.0),
        TAGGING,
        size=3_000,
        epochs=40,
    ),
}
QUICK_TASKS = {
    "addresses": Task("Addresses", lambda data: load_quick()["train"], None, CHUNKING),
    "digits": Task("Digits", lambda data: load_quick_digits()["train"], None),
}


def load_problem(name, task, data, cache):
    """The training set of a task; it is computed once and kept in the folder `cache`."""
    problem = load_or_make(Path(cache) / f"{name}.joblib", lambda: make_problem(task, data))
    return problem._replace(training_set=own_arrays(problem.training_set))


def make_problem(task, data):
    """Vectorise a corpus, without empty sequences."""
    X, y = task.read(data)
    kept = [i for i, labels in enumerate(y) if len(labels)]
    X, y = [X[i] for i in kept], [y[i] for i in kept]
    if task.size:
        X, y = choose((X, y), task.size, np.random.default_rng(0))
    if task.template:
        batch = TemplateVectorizer(task.template, min_freq=task.min_freq).fit_transform(X)
    else:
        batch = SequenceBatch.from_sequences(X)
    return training_problem(batch, y)
