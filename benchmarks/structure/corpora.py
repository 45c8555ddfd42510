"""Corpora in full, with features of tokens and of transitions."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.common.cache import load_or_make
from benchmarks.search_based import tasks
from benchmarks.search_based.tasks import QUICK_TASKS, TASKS, Split, Task
from skstruct import SequenceBatch, TemplateVectorizer

# An edge feature has a weight for every label pair: the word and the word before, as a rule.
WORD_EDGES = ("B00:%x[0,0|lower|digits]", "B01:%x[-1,0|lower|digits]")
TAG_EDGES = ("B00:%x[0,0|lower|digits]", "B01:%x[-1,1]/%x[0,1]")
CHARACTER_EDGES = ("B00:%x[0,0]", "B01:%x[-1,0]", "B02:%x[-1,0]/%x[0,0]")
SHAPE_EDGES = ("B00:%x[0,0|shape]", "B01:%x[0,0|suffix2]")


class Corpus(NamedTuple):
    """A task of `benchmarks.search_based`, its edges, and the settings chosen there."""

    task: Task
    edges: tuple  # template lines; none where the features of tokens are those of transitions
    sapo: dict
    crf: dict
    full: bool = True


def settings(rate, l2):
    return {"learning_rate": rate, "l2": l2}


# Rates and penalties were chosen by `python -m benchmarks.search_based tune`, for whole sequences.
CORPORA = {
    "jnlpba": Corpus(TASKS["jnlpba"], WORD_EDGES, settings(0.03, 1.0), settings(0.1, 2.0)),
    "ud-english-ewt": Corpus(
        TASKS["ud-english-ewt"], WORD_EDGES, settings(0.3, 0.5), settings(0.1, 0.1)
    ),
    "wordseg-as": Corpus(
        TASKS["wordseg-as"], CHARACTER_EDGES, settings(0.1, 0.5), settings(0.1, 0.1)
    ),
    "conll2000": Corpus(TASKS["conll2000"], TAG_EDGES, settings(0.1, 0.1), settings(0.1, 0.1)),
    "hapt": Corpus(TASKS["hapt"], (), settings(0.001, 1.0), settings(0.003, 0.5)),
    "brown-pos": Corpus(
        TASKS["brown-pos"]._replace(sizes={"train": 8_000, "dev": 1_000, "test": 2_000}),
        SHAPE_EDGES,
        settings(0.1, 0.1),
        settings(0.3, 0.1),
        full=False,
    ),
}
QUICK_CORPORA = {
    "addresses": Corpus(
        QUICK_TASKS["addresses"], WORD_EDGES, settings(0.1, 1.0), settings(0.1, 1.0)
    ),
    "digits": Corpus(QUICK_TASKS["digits"], (), settings(0.01, 1.0), settings(0.01, 1.0)),
}


def load_splits(name, corpus, data, cache):
    """Splits with edge features: all to learn from, its parts `fit` and `dev`, and the test set."""
    path = Path(cache) / f"{name}.joblib"
    return load_or_make(path, lambda: make_splits(corpus, data))


def make_splits(corpus, data):
    """Batches with both kinds of features; numbers serve as both."""
    parts = tasks.draw_parts(corpus.task, data, corpus.full)
    if corpus.edges:
        lines = [*corpus.task.template, *corpus.edges]
        vectorizer = TemplateVectorizer(lines).fit(parts["train"][0])
        batches = {name: vectorizer.transform(X) for name, (X, _) in parts.items()}
    else:
        batches = {name: observed_twice(X) for name, (X, _) in parts.items()}
    return {name: Split(batches[name], tasks.as_objects(y)) for name, (_, y) in parts.items()}


def observed_twice(X):
    batch = SequenceBatch.from_sequences(X)
    return SequenceBatch(batch.X, batch.offsets, transition_X=batch.X)


def without_edges(batch):
    return SequenceBatch(batch.X, batch.offsets)
