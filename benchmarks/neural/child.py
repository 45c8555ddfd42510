"""One run in this process; prints JSON."""

import argparse
import json
from functools import partial
from pathlib import Path

from benchmarks.which_tagger.child import measure, read_part, score
from benchmarks.which_tagger.systems import NEURAL, SYSTEMS


def run(folder, system, parameters, seed, *, again):
    """What a run took, with the epochs and the predicted labels."""
    if system not in NEURAL:
        return run_linear(folder, system, parameters, seed)
    from benchmarks.neural.learner import NeuralLearner

    parts = (read_part(folder, name) for name in ("fit", "dev"))
    learner = NeuralLearner(system, parameters, seed, *parts, partial(score, folder), again=again)
    return {
        **measure(learner, folder, seed),
        "epochs": learner.epochs,
        "epoch seconds": learner.epoch_seconds,
        "dev scores": learner.history,
        "weights": learner.n_weights(),
    }


def run_linear(folder, system, parameters, seed):
    """The same of a tagger of `which_tagger`."""
    learner = SYSTEMS[system].learner(parameters, seed)
    found = measure(learner, folder, seed)
    n_epochs = int(learner.tagger.n_iter_)
    return {**found, "epochs": n_epochs, "epoch seconds": [found["seconds"] / n_epochs]}


def main():
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("system")
    parser.add_argument("parameters", type=json.loads)
    parser.add_argument("seed", type=int)
    parser.add_argument("--again", action="store_true", help="learn from the whole set at the end")
    given = parser.parse_args()
    print(
        json.dumps(run(given.folder, given.system, given.parameters, given.seed, again=given.again))
    )


if __name__ == "__main__":
    main()
