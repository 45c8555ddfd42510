"""spaCy as the benchmarks run it: what it is given, when it stops, and what it gives back."""

import sys
from pathlib import Path

import pytest
from helpers.seeds import global_seed

from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_score, token_accuracy_score

pytest.importorskip("spacy")
# Behind all others, so that the package under test stays the one that is installed.
sys.path.append(str(Path(__file__).parents[2]))
pytest.importorskip("benchmarks")
from benchmarks.which_tagger.spacy_pipelines import SpacyLearner, note_checkpoints

SHORT = {"max_steps": 60, "eval_frequency": 20}


@pytest.fixture(scope="module")
def parts():
    X, y = load_addresses(return_X_y=True)
    tokens = [[(word,) for word in address] for address in X]
    return (tokens[:120], y[:120]), (tokens[120:160], y[120:160])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "score", "least"),
    [("chunk_f1", chunk_f1_score, 0.3), ("token_accuracy", token_accuracy_score, 0.5)],
)
def test_it_learns_and_a_seed_gives_the_same_labels(parts, measure, score, least):
    train, dev = parts
    found = []
    for _ in range(2):
        learner = SpacyLearner(SHORT, 1, train, dev, measure)
        # spaCy seeds numpy's global generator.
        with global_seed():
            assert learner.fit(*train) > 0
        found.append(learner.tag(learner.inputs(train[0])))
        assert learner.megabytes()["spacy"] > 0
    assert found[0] == found[1]
    assert [len(labels) for labels in found[0]] == [len(labels) for labels in train[1]]
    assert score(train[1], found[0]) > least


class Recorded(SpacyLearner):
    """A learner that learns nothing, and notes how it was to learn."""

    def _learn(self, train, dev, **settings):
        self.calls = [*getattr(self, "calls", []), (len(train[0]), settings)]
        return [(0.1, 0), (0.7, 200), (0.6, 400), (0.7, 600)]


def test_a_part_of_the_training_set_only_chooses_the_number_of_updates(parts):
    train, dev = parts
    fit = tuple(values[:100] for values in train)
    learner = Recorded({}, 0, fit, dev, "chunk_f1")
    learner.fit(*train)
    # The first of equal scores, whose pipeline spaCy keeps.
    again = {"max_steps": 200, "eval_frequency": 200, "last": True}
    assert learner.calls == [(100, {}), (120, again)]


def test_a_development_set_of_the_corpus_is_enough(parts):
    train, dev = parts
    learner = Recorded({}, 0, train, dev, "chunk_f1")
    learner.fit(*train)
    assert learner.calls == [(120, {})]


def test_checkpoints_are_pairs_of_score_and_updates():
    checkpoints = []
    log, finish = note_checkpoints(checkpoints)(None, None, None)
    log(None)
    log({"score": 0.5, "step": 20, "other": 1})
    finish()
    assert checkpoints == [(0.5, 20)]
