"""Corpora: read from where they are, cut to size, and written as plain text for child processes."""

import os
from functools import partial
from pathlib import Path

from benchmarks.common.addresses import make_up_addresses
from benchmarks.common.features import shape

# Of the packaged addresses, in quick runs.
QUICK_SIZES = {"train": 80, "test": 40}
MADE_UP_SIZES = {"train": 10_000, "test": 2_000}


def data_folder():
    """The folder that the environment variable SKSTRUCT_DATA names."""
    folder = os.environ.get("SKSTRUCT_DATA")
    if not folder:
        raise SystemExit("Set SKSTRUCT_DATA to the folder of the corpora.")
    return Path(folder)


def fetch_chunking(**more):
    """CoNLL-2000, downloaded where it is not at hand: tokens are pairs of word and tag."""
    from skstruct.datasets import fetch_conll2000

    return {
        part: fetch_conll2000(subset=part, return_X_y=True, **more) for part in ("train", "test")
    }


def fetch_entities(language):
    """CoNLL-2002, downloaded where it is not at hand: tokens are pairs of word and tag."""
    from skstruct.datasets import fetch_conll2002

    subsets = {"train": "train", "test": "testb"}
    return {
        part: fetch_conll2002(language=language, subset=subset, return_X_y=True)
        for part, subset in subsets.items()
    }


def load_quick():
    """A few of the packaged addresses: tokens are pairs of word and shape."""
    from skstruct.datasets import load_addresses

    X, y = load_addresses(return_X_y=True)
    tokens = [[(word, shape(word)) for word in address] for address in X]
    parts, start = {}, 0
    for part, size in QUICK_SIZES.items():
        parts[part] = tokens[start : start + size], list(y[start : start + size])
        start += size
    return parts


def make_up():
    """Addresses that are made up: tokens are pairs of word and shape."""
    sizes = enumerate(MADE_UP_SIZES.items())
    return {part: make_up_addresses(size, seed) for seed, (part, size) in sizes}


def load_quick_digits():
    """A few of the handwritten numbers that come with the package."""
    from skstruct.datasets import load_digit_sequences

    return {
        part: load_digit_sequences(n_sequences=size, subset=part, return_X_y=True)
        for part, size in QUICK_SIZES.items()
    }


def read_columns(folder, names, n_columns):
    """Parts of a corpus in column files: `names` maps each part to the name of its file."""
    from skstruct.datasets import read_conll

    return {
        part: read_conll(
            Path(folder) / f"{name}.txt.gz", separator="\t", columns=list(range(n_columns))
        )
        for part, name in names.items()
    }


def columns(folder, n_columns=1, **names):
    """Reader of column files in the data folder: words alone, or with more columns."""
    return lambda: read_columns(data_folder() / folder, names, n_columns)


TWO_FILES = {"train": "train", "test": "test"}
read_jnlpba = columns("jnlpba", **TWO_FILES)
CORPORA = {
    "conll2000": fetch_chunking,
    "conll2002-ned": partial(fetch_entities, "ned"),
    "conll2002-esp": partial(fetch_entities, "esp"),
    "jnlpba": read_jnlpba,
    "made-up-addresses": make_up,
    "addresses": load_quick,
}


def chunking_name(quick):
    """Name of the corpus of the benchmarks on chunking."""
    return "addresses" if quick else "conll2000"


def choose(pair, size, rng):
    """So many sentences at random, in a random order."""
    order = rng.permutation(len(pair[0]))[:size]
    return tuple([values[i] for i in order] for values in pair)


def write_corpus(name, folder):
    """Write a corpus as plain text, so that no child process pays for finding it."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, (X, y) in CORPORA[name]().items():
        write_sentences(X, y, folder / part)


def write_sentences(X, y, path):
    """Write sentences as columns of plain text, the label last."""
    sentences = (
        "".join(" ".join((*token, label)) + "\n" for token, label in zip(*pair, strict=True))
        for pair in zip(X, y, strict=True)
    )
    path.write_text("\n".join(sentences), encoding="utf-8")


def read_sentences(path):
    """Tokens and labels of each sentence of a file of `write_sentences`."""
    X, y = [], []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        *columns, labels = zip(*(line.split(" ") for line in block.splitlines()), strict=True)
        X.append(list(zip(*columns, strict=True)))
        y.append(list(labels))
    return X, y
