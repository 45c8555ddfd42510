"""One run in this process; prints JSON."""

import argparse
import json
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np

import skstruct.utils.progress
from benchmarks.which_tagger.child import (
    N_WARM,
    choose,
    measure,
    pack_mistakes,
    read_part,
    read_shuffled,
    score,
)
from benchmarks.which_tagger.learners import SkstructLearner
from benchmarks.which_tagger.systems import NEURAL, SYSTEMS
from skstruct import SequenceVectorizer

# Settings of tuned networks; those of the others are among them.
GRID = {"learning_rate": [0.001, 0.002, 0.005], "dropout": [0.25, 0.5], "hidden": [100, 200]}


def run(folder, system, parameters, seed, *, again):
    """What a run took, with the epochs and the predicted labels."""
    if system not in NEURAL:
        return run_linear(folder, system, parameters, seed)
    from benchmarks.neural.learner import NeuralLearner

    parts = (read_part(folder, name) for name in ("fit", "dev"))
    kind = system.removesuffix(", tuned")
    learner = NeuralLearner(kind, parameters, seed, *parts, partial(score, folder), again=again)
    return {
        **measure(learner, folder, seed),
        "epochs": learner.epochs,
        "epoch seconds": learner.epoch_seconds,
        "dev scores": learner.history,
        "weights": learner.n_weights(),
    }


def tune(folder, system, parameters):
    """Choose the settings of a network on the development set, one after the other."""
    from benchmarks.neural.learner import NeuralLearner, Settings

    part, dev = read_shuffled(folder, "fit", 0), read_part(folder, "dev")
    defaults = {name: Settings._field_defaults[name] for name in GRID}

    def score_of(settings):
        kind = system.removesuffix(", tuned")
        learner = NeuralLearner(kind, settings, 0, None, dev, partial(score, folder))
        learner.fit(*part)
        return max(learner.history)

    return choose(GRID, {**defaults, **parameters}, score_of)


def run_linear(folder, system, parameters, seed):
    """The same of a tagger of `which_tagger`.

    Epochs begin when the features are read, as those of the networks do.
    """
    # The clock of the networks' epochs.
    skstruct.utils.progress.perf_counter = process_time
    learner = SYSTEMS[system].learner(parameters, seed)
    found = measure(learner, folder, seed)
    seconds = np.diff(learner.tagger.history_["time"], prepend=0.0)
    return {**found, "epochs": len(seconds), "epoch seconds": seconds.tolist()}


def follow(folder, system, parameters, seed, n_epochs):
    """Scores on the test set after each epoch, with the seconds of epochs, and the last labels."""
    (X, y), (X_test, y_test) = read_shuffled(folder, "train", seed), read_part(folder, "test")
    if system in NEURAL:
        import torch

        from benchmarks.neural.learner import NeuralLearner

        torch.set_num_threads(1)
        learner = NeuralLearner(system, parameters, seed)
    else:
        learner = LinearLearner(system, parameters, seed)
    learner.warm_up(X[:N_WARM], y[:N_WARM])
    found = {"scores": [], "epoch seconds": []}
    for seconds in learner.learn(X, y, n_epochs):
        predicted = learner.tag(X_test)
        found["epoch seconds"].append(seconds)
        found["scores"].append(score(folder, y_test, predicted))
    return {**found, "mistakes": pack_mistakes(y_test, predicted)}


class LinearLearner(SkstructLearner):
    """A tagger of the library that learns epoch by epoch."""

    def __init__(self, kind, parameters, seed):
        super().__init__(kind, parameters, np.random.RandomState(seed))
        self._vectorizer = None

    def learn(self, X, y, n_epochs):
        """Learn from the start, epoch by epoch; give the seconds of the processor of each."""
        if isinstance(X[0], list):
            # Read once: an epoch is not to read the features again.
            self._vectorizer = SequenceVectorizer()
            X = self._vectorizer.fit_transform(X)
        for _ in range(n_epochs):
            start = process_time()
            self.tagger.partial_fit(X, y)
            yield process_time() - start

    def tag(self, inputs):
        """Lists of labels."""
        return super().tag(self._vectorizer.transform(inputs) if self._vectorizer else inputs)


def main():
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("system")
    parser.add_argument("parameters", type=json.loads)
    parser.add_argument("seed", type=int)
    parser.add_argument("--tune", action="store_true", help="choose the settings of a network")
    parser.add_argument("--again", action="store_true", help="learn from the whole set at the end")
    parser.add_argument("--follow", type=int, metavar="EPOCHS", help="score each epoch")
    given = parser.parse_args()
    head = given.folder, given.system, given.parameters, given.seed
    if given.tune:
        found = tune(*head[:-1])
    elif given.follow:
        found = follow(*head, given.follow)
    else:
        found = run(*head, again=given.again)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
