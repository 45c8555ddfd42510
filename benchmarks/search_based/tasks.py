"""The tasks: read, cut to size, turned into sequence batches, cached."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.common.cache import load_or_make
from benchmarks.common.corpora import choose, load_quick, load_quick_digits, read_columns
from benchmarks.common.features import CHARACTERS, CHUNKING, NEIGHBOUR_SHAPES, SPELLING, WORDS
from skstruct import SequenceBatch, TemplateVectorizer
from skstruct.datasets import fetch_ocr_letters
from skstruct.input.training_set import as_rows
from skstruct.learning.online import by_appearance
from skstruct.metrics import chunk_f1_score, extract_chunks, token_accuracy_score

WINDOW, STEP = 64, 32
# Windows of a sequence, near the mean length of the papers' activity task, 67.9.
STRETCH = 68
TRAINING_USERS, DEVELOPMENT_USERS = 21, 17


class Task(NamedTuple):
    """A corpus, its features and its score."""

    title: str
    measure: str  # "accuracy" or "F1"
    sizes: dict  # most sentences of each part
    read: object  # function of the data folder: {"train": (X, y), "test": ..., maybe "dev": ...}
    template: object = None  # lines for TemplateVectorizer; None where X is of numbers
    rates: tuple = (0.01, 0.03, 0.1, 0.3)  # learning rates that are tried


class Split(NamedTuple):
    """One part of a task."""

    X: SequenceBatch
    y: np.ndarray  # object array of lists


def columns(folder, n_columns=1, **names):
    """Reader of column files: words alone, or with more columns."""
    return lambda data: read_columns(Path(data) / folder, names, n_columns)


def read_ocr(data):
    return {
        part: fetch_ocr_letters(subset=part, data_home=data, return_X_y=True)
        for part in ("train", "test")
    }


def read_hapt(data):
    """Windows of the recordings: mean, deviation, roughness, band energies, correlations."""
    arrays = np.load(Path(data) / "hapt.npz")
    parts = {"train": ([], []), "dev": ([], []), "test": ([], [])}
    for part, _, starts in recordings(arrays):
        places = starts[:, None] + np.arange(WINDOW)
        features = describe_windows(arrays["signal"][places].astype(float))
        labels = [int(np.bincount(window).argmax()) for window in arrays["label"][places]]
        for first in range(0, len(starts), STRETCH):
            parts[part][0].append(features[first : first + STRETCH])
            parts[part][1].append([f"{label:02}" for label in labels[first : first + STRETCH]])
    mean = np.concatenate(parts["train"][0]).mean(axis=0)
    deviation = np.concatenate(parts["train"][0]).std(axis=0)
    return {name: ([(x - mean) / deviation for x in X], y) for name, (X, y) in parts.items()}


def read_hapt_users(data):
    """User of each sequence of `read_hapt`, by part."""
    users = {"train": [], "dev": [], "test": []}
    for part, user, starts in recordings(np.load(Path(data) / "hapt.npz")):
        users[part] += [user] * -(-len(starts) // STRETCH)
    return users


def recordings(arrays):
    """Part, user and first samples of the windows of each recording."""
    stop = np.cumsum(arrays["length"])
    for a, b, user in zip(stop - arrays["length"], stop, arrays["user"].tolist(), strict=True):
        part = "test" if user > TRAINING_USERS else "dev" if user > DEVELOPMENT_USERS else "train"
        yield part, user, np.arange(a, b - WINDOW + 1, STEP)


def describe_windows(windows):
    """Features ``(n, n_features)`` of windows ``(n, length, n_axes)``."""
    mean, deviation = windows.mean(axis=1), windows.std(axis=1)
    roughness = np.abs(np.diff(windows, axis=1)).mean(axis=1)
    centred = windows - mean[:, None]
    power = np.abs(np.fft.rfft(centred, axis=1)[:, 1:]) ** 2
    bands = [power[:, a:b].sum(axis=1) for a, b in ((0, 2), (2, 4), (4, 8), (8, 16), (16, 32))]
    energy = [np.log(band + 1e-6) for band in bands]
    products = np.einsum("nta,ntb->nab", centred, centred) / windows.shape[1]
    scale = deviation[:, :, None] * deviation[:, None, :] + 1e-9
    upper = np.triu_indices(windows.shape[2], 1)
    correlation = (products / scale)[:, upper[0], upper[1]]
    return np.hstack([mean, deviation, roughness, *energy, correlation])


DENSE_RATES = (0.0003, 0.001, 0.003, 0.01, 0.03)

TASKS = {
    "conll2000": Task(
        "Chunking, CoNLL-2000",
        "F1",
        {},
        columns("conll2000", 2, train="train", test="test"),
        CHUNKING,
    ),
    "ud-english-ewt": Task(
        "POS, English-EWT",
        "accuracy",
        {"train": 6_000},
        columns("ud-english-ewt", train="train", dev="dev", test="test"),
        WORDS + SPELLING,
    ),
    "brown-pos": Task(
        "POS, Brown",
        "accuracy",
        {"train": 4_000, "dev": 1_000, "test": 2_000},
        columns("brown-pos", train="train", test="test"),
        WORDS + SPELLING,
    ),
    "jnlpba": Task(
        "Bio-NER, JNLPBA",
        "F1",
        {"train": 6_000, "dev": 1_000},
        columns("jnlpba", train="train", test="test"),
        WORDS + SPELLING + NEIGHBOUR_SHAPES,
    ),
    "wordseg-as": Task(
        "Word segmentation, AS",
        "F1",
        {"train": 6_000, "dev": 1_000},
        columns("wordseg-as", train="train", test="test"),
        CHARACTERS,
    ),
    "ocr": Task("Handwriting, OCR letters", "accuracy", {}, read_ocr, rates=DENSE_RATES),
    "hapt": Task("Activities, HAPT", "accuracy", {}, read_hapt, rates=DENSE_RATES),
}
QUICK_SIZES, QUICK_RATES = {"train": 30, "dev": 10, "test": 20}, (0.03, 0.1)
QUICK_TASKS = {
    "addresses": Task(
        "Chunking, addresses",
        "F1",
        QUICK_SIZES,
        lambda data: load_quick(),
        CHUNKING,
        rates=QUICK_RATES,
    ),
    "digits": Task(
        "Handwriting, digits",
        "accuracy",
        QUICK_SIZES,
        lambda data: load_quick_digits(),
        rates=QUICK_RATES,
    ),
}


def load_task(name, task, data, cache, *, full=False):
    """Splits ``train``, its parts ``fit`` and ``dev`` for choosing settings, and ``test``."""
    path = Path(cache) / f"{name}{'-full' if full else ''}.joblib"
    return load_or_make(path, lambda: make_splits(task, data, full))


def make_splits(task, data, full):
    return as_batches(task, draw_parts(task, data, full))


def draw_parts(task, data, full):
    """Sentences and labels of each split, at random but the same in every call."""
    parts = task.read(data)
    sizes = {} if full else task.sizes
    rng = np.random.default_rng(0)
    if "dev" in parts:
        fit = choose(parts["train"], sizes.get("train"), rng)
        dev = choose(parts["dev"], sizes.get("dev"), rng)
        # The development part of the activity task is taken from its training users.
        train = fit if task.template else join(fit, dev)
    else:
        n_train = sizes.get("train", len(parts["train"][0]))
        n_dev = sizes.get("dev", n_train // 10)
        spare = n_train + n_dev <= len(parts["train"][0])
        drawn = choose(parts["train"], n_train + n_dev if spare else n_train, rng)
        n_fit = len(drawn[0]) - n_dev
        fit, dev = part(drawn, slice(n_fit)), part(drawn, slice(n_fit, None))
        train = fit if spare else drawn
    test = choose(parts["test"], sizes.get("test"), rng)
    return {"train": train, "fit": fit, "dev": dev, "test": test}


def part(pair, key):
    return tuple(values[key] for values in pair)


def join(a, b):
    return tuple([*x, *y] for x, y in zip(a, b, strict=True))


def as_batches(task, parts):
    """Vectorise, with the features in the order in which `fit` would put them."""
    if task.template:
        vectorizer = TemplateVectorizer(task.template).fit(parts["train"][0])
        batches = {name: vectorizer.transform(X) for name, (X, _) in parts.items()}
    else:
        batches = {name: SequenceBatch.from_sequences(X) for name, (X, _) in parts.items()}
    rank = by_appearance(as_rows(batches["train"].X), batches["train"].n_features)
    order = np.argsort(rank)
    return {
        name: Split(SequenceBatch(batch.X[:, order], batch.offsets), as_objects(parts[name][1]))
        for name, batch in batches.items()
    }


def as_objects(y):
    labels = np.empty(len(y), object)
    labels[:] = [[str(label) for label in sequence] for sequence in y]
    return labels


def score(task, y_true, y_pred):
    """Token accuracy, or F1 of chunks or words, in per cent."""
    if task.measure == "accuracy":
        return 100 * token_accuracy_score(y_true, y_pred)
    return 100 * chunk_f1_score(y_true, y_pred)


def sentence_counts(task, y_true, y_pred):
    """Counts of each sentence that the score is made of: right, found and true items."""
    counts = []
    for true, found in zip(y_true, y_pred, strict=True):
        if task.measure == "accuracy":
            right = sum(a == b for a, b in zip(true, found, strict=True))
            counts.append((right, len(true), len(true)))
        else:
            a, b = set(extract_chunks(true)), set(extract_chunks(found))
            counts.append((len(a & b), len(b), len(a)))
    return counts


def score_of_counts(counts):
    """The score from counts ``(..., n_sentences, 3)``."""
    right, found, true = np.moveaxis(np.asarray(counts).sum(axis=-2), -1, 0)
    return 200 * right / (found + true)
