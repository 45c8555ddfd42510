"""The corpora of `which_tagger`, with words in place of features."""

from functools import partial
from typing import NamedTuple

from benchmarks.which_tagger.corpora import (
    CORPORA as FOUND,
)
from benchmarks.which_tagger.corpora import (
    QUICK_CORPORA as QUICK_FOUND,
)
from benchmarks.which_tagger.corpora import (
    add_features,
    prepare,
)


class Task(NamedTuple):
    """A corpus, and the settings of the networks that are not defaults."""

    corpus: object
    again: bool  # True if the development set is a part of the training set
    settings: dict = {}


LONG = {"epochs": 15, "patience": 3}
# In the order of the time that they take.
TASKS = {
    "addresses": Task(FOUND["addresses"], again=True),
    "hapt": Task(FOUND["hapt"], again=False),
    "ocr": Task(FOUND["ocr"], again=True),
    "conll2002-ned": Task(FOUND["conll2002-ned"], again=False, settings=LONG),
    "wordseg-as": Task(FOUND["wordseg-as"], again=True, settings=LONG),
}
QUICK_TASKS = {
    name: Task(corpus, again=True, settings={"epochs": 2, "hidden": 20})
    for name, corpus in QUICK_FOUND.items()
}


def add_words(corpus, parts):
    """Parts with words, or numbers where there are none; and how many there are."""
    if corpus.template is None:
        return add_features(corpus, parts)
    found = {
        name: (
            [[token[0] for token in tokens] for tokens in X],
            [list(map(str, labels)) for labels in y],
        )
        for name, (X, y) in parts.items()
    }
    return found, len({word for words in found["train"][0] for word in words})


prepare_words = partial(prepare, add=add_words)
