"""The corpora of `which_tagger`, with tokens in place of features."""

from typing import NamedTuple

from benchmarks.which_tagger import corpora


class Task(NamedTuple):
    """A corpus, and the settings of the networks that are not defaults."""

    corpus: object
    again: bool  # True if the development set is a part of the training set
    settings: dict = {}
    tuned: bool = False  # True if networks are tuned, too: eight fits in place of three


LONG = {"epochs": 15, "patience": 3}
# In the order of the time that they take.
TASKS = {
    "addresses": Task(corpora.CORPORA["addresses"], again=True, tuned=True),
    "hapt": Task(corpora.CORPORA["hapt"], again=False, tuned=True),
    "ocr": Task(corpora.CORPORA["ocr"], again=True, tuned=True),
    "conll2002-ned": Task(corpora.CORPORA["conll2002-ned"], again=False, settings=LONG, tuned=True),
    "wordseg-as": Task(corpora.CORPORA["wordseg-as"], again=True, settings=LONG, tuned=True),
    "conll2000": Task(corpora.CORPORA["conll2000"], again=True, settings=LONG, tuned=True),
}
# The tasks of Figure 1 of the paper of 2018; tags of the Wall Street Journal are not at hand.
CURVE_CORPORA = {name: corpora.CORPORA[name] for name in ("ud-english-ewt", "conll2000", "jnlpba")}
QUICK_CURVE_CORPORA = {"addresses": corpora.QUICK_CORPORA["addresses"]}
QUICK_TASKS = {
    "addresses": Task(
        corpora.QUICK_CORPORA["addresses"], again=True, settings={"epochs": 2, "hidden": 20}
    )
}
