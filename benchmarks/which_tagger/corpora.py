"""The corpora, with their features, as the systems are given them."""

import json
import pickle
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from benchmarks.common.corpora import (
    TWO_FILES,
    choose,
    columns,
    data_folder,
    load_quick_digits,
)
from benchmarks.common.features import CHARACTERS, CHUNKING, NEIGHBOUR_SHAPES, SPELLING, WORDS
from benchmarks.search_based.tasks import read_hapt, read_hapt_users, read_ocr
from skstruct import TemplateVectorizer
from skstruct.datasets import load_addresses

# The share of the training set that is held out where the corpus has no development set.
HELD_OUT = 0.2
TRAINING_ADDRESSES = 400
F1, ACCURACY = "chunk_f1", "token_accuracy"
WORDS_AND_SPELLING = WORDS + SPELLING + NEIGHBOUR_SHAPES


class Corpus(NamedTuple):
    """A corpus, its features and its measure."""

    kind: str
    title: str
    measure: str  # metric of `paired_permutation_test`
    read: object  # function that returns {"train": (X, y), "test": ..., maybe "dev": ...}
    template: object = None  # lines for TemplateVectorizer; None where X is of numbers
    binary: bool = True  # whether the numbers are 0 and 1 only
    words: bool = True  # whether tokens are words
    groups: object = None  # function of the labels of the test set: the unit of each sequence


def read_addresses(n_train=TRAINING_ADDRESSES, n_test=None):
    """The addresses that come with the package."""
    X, y = load_addresses(return_X_y=True)
    tokens = [[(word,) for word in address] for address in X]
    stop = n_test and n_train + n_test
    return {
        "train": (tokens[:n_train], y[:n_train]),
        "test": (tokens[n_train:stop], y[n_train:stop]),
    }


def users_of_test(y):
    """User of each test sequence of HAPT: stretches of one recording are no independent evidence.

    `y` is not read.
    """
    return read_hapt_users(data_folder())["test"]


def spelled(y):
    """The word that each sequence of letters spells: many writers wrote the same few words."""
    return ["".join(labels) for labels in y]


ENTITY_FILES = {"train": "train", "dev": "testa", "test": "testb"}
# In the order of the time that they take.
CORPORA = {
    "addresses": Corpus("addresses", "Addresses", F1, read_addresses, WORDS_AND_SPELLING),
    "wordseg-as": Corpus(
        "words of Chinese", "AS", F1, columns("wordseg-as", **TWO_FILES), CHARACTERS, words=False
    ),
    "hapt": Corpus(
        "signals",
        "HAPT",
        ACCURACY,
        lambda: read_hapt(data_folder()),
        binary=False,
        words=False,
        groups=users_of_test,
    ),
    "ocr": Corpus(
        "characters",
        "OCR letters",
        ACCURACY,
        lambda: read_ocr(data_folder()),
        words=False,
        groups=spelled,
    ),
    "conll2002-esp": Corpus(
        "names, Spanish",
        "CoNLL-2002 Spanish",
        F1,
        columns("conll2002-esp", **ENTITY_FILES),
        WORDS_AND_SPELLING,
    ),
    "conll2002-ned": Corpus(
        "names, Dutch",
        "CoNLL-2002 Dutch",
        F1,
        columns("conll2002-ned", **ENTITY_FILES),
        WORDS_AND_SPELLING,
    ),
    "conll2000": Corpus("chunks", "CoNLL-2000", F1, columns("conll2000", 2, **TWO_FILES), CHUNKING),
    "ud-english-ewt": Corpus(
        "parts of speech",
        "English-EWT",
        ACCURACY,
        columns("ud-english-ewt", dev="dev", **TWO_FILES),
        WORDS_AND_SPELLING,
    ),
    "jnlpba": Corpus(
        "biomedical entities", "JNLPBA", F1, columns("jnlpba", **TWO_FILES), WORDS_AND_SPELLING
    ),
}
QUICK_CORPORA = {
    "addresses": CORPORA["addresses"]._replace(read=lambda: read_addresses(80, 40)),
    "digits": Corpus(
        "characters", "Digits", ACCURACY, load_quick_digits, binary=False, words=False
    ),
}


def prepare(corpus, folder, add=None):
    """Write the parts of a corpus with its features, unless they are there; describe it.

    A part is a pickled pair. X has a list of attribute strings for each token, or an array for each
    sequence; y has strings. "fit" and "dev" are for choosing parameters. Another function than
    `add_features` gives other inputs.
    """
    add = add or add_features
    path = folder / "description.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        parts, n_attributes = add(corpus, split(corpus.read()))
        for name, part in parts.items():
            (folder / f"{name}.pickle").write_bytes(pickle.dumps(part))
        path.write_text(json.dumps(describe(corpus, parts, n_attributes)), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def split(parts):
    """Parts with "fit" and "dev"; a random part of the training set where there is no "dev"."""
    if "dev" in parts:
        return {**parts, "fit": parts["train"]}
    n = len(parts["train"][0])
    shuffled, first = choose(parts["train"], n, np.random.default_rng(0)), round(HELD_OUT * n)
    dev, fit = (
        tuple(values[key] for values in shuffled) for key in (slice(first), slice(first, n))
    )
    return {**parts, "fit": fit, "dev": dev}


def add_features(corpus, parts):
    """Parts as systems are given them, and the number of attributes."""
    labels = {name: [list(map(str, found)) for found in y] for name, (_, y) in parts.items()}
    if corpus.template is None:
        X = {name: [np.asarray(x, float) for x in X] for name, (X, _) in parts.items()}
        n_attributes = X["train"][0].shape[1]
    else:
        vectorizer = TemplateVectorizer(corpus.template).fit(parts["train"][0])
        names = vectorizer.get_feature_names_out()
        X = {name: as_strings(vectorizer.transform(X), names) for name, (X, _) in parts.items()}
        n_attributes = len(names)
    return {name: (X[name], labels[name]) for name in parts}, n_attributes


def add_tokens(corpus, parts):
    """Parts with tokens, or numbers where there are none; and how many words there are.

    A token is a tuple of its word and of the tags in other columns, if the corpus has any.
    """
    if corpus.template is None:
        return add_features(corpus, parts)
    found = {name: (X, [list(map(str, labels)) for labels in y]) for name, (X, y) in parts.items()}
    return found, len({word for tokens in found["train"][0] for word, *_ in tokens})


def as_strings(batch, names):
    """Attribute strings of each token of each sequence."""
    matrix = batch.X.tocsr()
    strings, starts = names[matrix.indices].tolist(), matrix.indptr.tolist()
    tokens = [strings[a:b] for a, b in pairwise(starts)]
    ends = batch.offsets.tolist()
    return [tokens[a:b] for a, b in pairwise(ends)]


def describe(corpus, parts, n_attributes):
    """Sizes of a corpus, with the measure."""
    (_, y), (_, y_test) = parts["train"], parts["test"]
    return {
        "measure": corpus.measure,
        "sequences": len(y),
        "tokens": sum(map(len, y)),
        "labels": len({label for labels in y for label in labels}),
        "attributes": n_attributes,
        "test sequences": len(y_test),
        "test tokens": sum(map(len, y_test)),
    }


prepare_tokens = partial(prepare, add=add_tokens)
