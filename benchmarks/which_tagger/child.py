"""One run in this process, or the choice of the parameters of one system; prints JSON."""

import argparse
import base64
import json
import pickle
import zlib
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.common.processes import peak_memory, seconds_of
from benchmarks.which_tagger.systems import SYSTEMS

N_WARM = 20
TAGGING_PASSES = 5


def read_part(folder, name):
    """X and y of a part of a corpus that `prepare` has written."""
    return pickle.loads((folder / f"{name}.pickle").read_bytes())


def read_shuffled(folder, name, seed):
    """The same in a random order."""
    X, y = read_part(folder, name)
    order = np.random.default_rng(seed).permutation(len(X))
    return [X[i] for i in order], [y[i] for i in order]


def description(folder):
    """Sizes of a corpus, with the measure."""
    return json.loads((folder / "description.json").read_text(encoding="utf-8"))


def score(folder, y_true, y_pred):
    """Score of a corpus, in per cent."""
    from skstruct.metrics import chunk_f1_score, token_accuracy_score

    metrics = {"chunk_f1": chunk_f1_score, "token_accuracy": token_accuracy_score}
    return 100 * float(metrics[description(folder)["measure"]](y_true, y_pred))


def run(folder, system, parameters, seed):
    """Learn from the training set, tag the test set, and say what it took."""
    more = ()
    if SYSTEMS[system].words:
        more = (read_part(folder, "fit"), read_part(folder, "dev"), description(folder)["measure"])
    return measure(SYSTEMS[system].learner(parameters, seed, *more), folder, seed)


def measure(learner, folder, seed):
    """The same for a learner."""
    (X, y), (X_test, y_test) = read_shuffled(folder, "train", seed), read_part(folder, "test")
    learner.warm_up(X[:N_WARM], y[:N_WARM])
    seconds = learner.fit(X, y)
    inputs = learner.inputs(X_test)
    predicted = learner.tag(inputs)
    memory = peak_memory()
    tagging = seconds_of(lambda: learner.tag(inputs), TAGGING_PASSES, process_time)
    return {
        "score": score(folder, y_test, predicted),
        "seconds": seconds,
        "tokens per second": sum(map(len, y_test)) / tagging,
        "memory": memory,
        "megabytes": learner.megabytes(),
        "mistakes": pack_mistakes(y_test, predicted),
    }


def pack_mistakes(y_true, y_pred):
    """Predicted labels where they are wrong, packed into a string, with the list of labels."""
    true, found = np.concatenate(y_true), np.concatenate(y_pred)
    labels, codes = np.unique(found, return_inverse=True)
    wrong = np.where(true == found, 0, 1 + codes).astype("<i2").tobytes()
    return {"labels": labels.tolist(), "codes": base64.b64encode(zlib.compress(wrong, 9)).decode()}


def unpack_mistakes(packed, y_true):
    """Predicted labels."""
    wrong = np.frombuffer(zlib.decompress(base64.b64decode(packed["codes"])), "<i2")
    labels = np.array([None, *packed["labels"]], object)
    found = np.where(wrong == 0, np.concatenate(y_true).astype(object), labels[wrong])
    ends = np.cumsum(list(map(len, y_true)))
    return [part.tolist() for part in np.split(found, ends[:-1])]


def tune(folder, system):
    """Choose the parameters of a system on the development set, one after the other."""
    part, (X_dev, y_dev) = read_shuffled(folder, "fit", 0), read_part(folder, "dev")
    chosen = dict(SYSTEMS[system].parameters)
    if isinstance(X_dev[0], list):
        chosen.update(SYSTEMS[system].on_text)

    def score_of(parameters):
        learner = SYSTEMS[system].learner(parameters, 0)
        try:
            learner.fit(*part)
        except ValueError as error:
            # Too large a learning rate: as bad as can be.
            print(parameters, error)
            return 0.0
        return score(folder, y_dev, learner.tag(learner.inputs(X_dev)))

    return choose(SYSTEMS[system].grid, chosen, score_of)


def choose(grid, chosen, score_of):
    """Choose the values of a grid by their scores, one parameter after the other."""
    tried = []

    def known_score(parameters):
        known = [value for settings, value in tried if settings == parameters]
        if not known:
            known = [score_of(parameters)]
            tried.append((parameters, known[0]))
        return known[0]

    for name, values in grid.items():
        chosen = max(({**chosen, name: value} for value in values), key=known_score)
    return {"parameters": chosen, "tried": tried}


def main():
    """Run or tune."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["run", "tune"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("system", choices=list(SYSTEMS))
    parser.add_argument("parameters", type=json.loads, nargs="?")
    parser.add_argument("seed", type=int, nargs="?")
    given = parser.parse_args()
    if given.action == "tune":
        found = tune(given.folder, given.system)
    else:
        found = run(given.folder, given.system, given.parameters, given.seed)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
