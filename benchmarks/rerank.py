"""Rerankers on real n-best lists: the tables and figures of the VRDA paper, run again.

    python benchmarks/rerank.py run atis parse --orders 5 --data DIR
    python benchmarks/rerank.py repeat parse --orders 10
    python benchmarks/rerank.py scale
    python benchmarks/rerank.py report

`run` tries all systems with all settings, in several orders of the training groups, on the
development set and the test set, and keeps every finished run as a line of JSON in the results
folder; started again, it goes on where it stopped. `repeat` makes runs in more orders with those
settings alone that the development set chooses. `scale` measures the training on a million
candidates with a million features. `report` writes tables and figures into the docs.
"""

import argparse
import json
import os
import time
from itertools import product
from pathlib import Path

import numpy as np
from rerank_compare import Task
from rerank_data import load_task
from rerank_features import N_FOLDS, TASKS
from rerank_report import write_report
from rerank_scale import measure_scale
from rerank_taggers import TAGGER_TASKS

from skstruct.rerankers.perceptron import PerceptronReranker
from skstruct.rerankers.sgd import SGDReranker
from skstruct.rerankers.truncated_gradient import TruncatedGradientReranker
from skstruct.rerankers.vrda import VRDAReranker

HERE = Path(__file__).parent
# By name; the folds of a task as "task/fold".
ALL_TASKS = {**TASKS, **TAGGER_TASKS}
SYSTEMS = {
    "Perceptron": PerceptronReranker,
    "SGD": SGDReranker,
    "TG": TruncatedGradientReranker,
    "VRDA": VRDAReranker,
}
LOSSES = ("hinge", "logistic", "log", "bayes_risk")
L1 = (0.0, 1e-5, 1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 4e-3, 5e-3)
# Where the first column is the score of a system that the candidates come from.
FIXED = {"translation": {"baseline": 0}}
# How far weights get: the proximal strengths that are tried with each loss, and rates for SGD.
ETAS = {"hinge": (1.0,), "logistic": (1.0,), "log": (0.3, 1.0), "bayes_risk": (0.03, 0.1)}
EPOCHS = {"hinge": (3, 10), "logistic": (10,), "log": (3, 10), "bayes_risk": (10,)}
RATES = {"hinge": (0.1, 1.0), "logistic": (0.1, 1.0), "log": (0.1, 1.0), "bayes_risk": (1.0, 10.0)}


# Between the strengths of L1, where a model has some tenth of the weights that it had without.
FINE_L1 = {
    "hinge": (1.5e-3, 2.5e-3, 3.5e-3),
    "logistic": (5e-4, 7e-4, 1.5e-3),
    "log": (1.5e-3, 2.5e-3, 3.5e-3),
    "bayes_risk": (2e-5, 3e-5, 5e-5),
}
# Tasks with many groups, for which fewer settings have to do.
LARGE = ("conll2000", "jnlpba")
SMALL = ("atis", "translation", *(f"librispeech/{fold}" for fold in range(N_FOLDS)))


def few_settings(task):
    """Runs of a large task."""
    yield "Perceptron", {"average": True, "max_iter": 10}
    for loss in LOSSES:
        rate, eta = RATES[loss][-1], ETAS[loss][-1]
        yield "SGD", {"loss": loss, "learning_rate": rate, "max_iter": 10}
        options = {"loss": loss, "eta": eta, "max_iter": 10}
        for l1, prediction in product((0.0, *L1[2::2]), ("last", "average")):
            yield "VRDA", {**options, "l1": l1, "prediction": prediction}
        for l1 in (*L1[3:6:2], *FINE_L1[loss]):
            yield "VRDA", {**options, "l1": l1, "prediction": "last"}
        for gravity in (1e-4, 1e-3):
            options = {"loss": loss, "learning_rate": rate, "max_iter": 10}
            yield "TG", {**options, "gravity": gravity, "period": 10}
    yield from settings_of_prediction(task)


def settings(task):
    """All runs of a task: system and parameters, the quick ones first."""
    if task in LARGE:
        yield from few_settings(task)
        return
    for average, n in product((True, False), (2, 5, 10)):
        yield "Perceptron", {"average": average, "max_iter": n}
    for loss in LOSSES:
        for rate, n in product(RATES[loss], (3, 10)):
            yield "SGD", {"loss": loss, "learning_rate": rate, "max_iter": n}
    for loss in LOSSES:
        for eta, n in product(ETAS[loss], EPOCHS[loss]):
            options = {"loss": loss, "eta": eta, "max_iter": n}
            for l1, prediction in product(L1, ("last", "average")):
                yield "VRDA", {**options, "l1": l1, "prediction": prediction}
            for l1 in FINE_L1[loss]:
                yield "VRDA", {**options, "l1": l1, "prediction": "last"}
    for loss in LOSSES:
        for rate, gravity, period in product(RATES[loss], (1e-5, 1e-4, 1e-3, 1e-2), (10, 100)):
            options = {"loss": loss, "learning_rate": rate, "max_iter": 10}
            yield "TG", {**options, "gravity": gravity, "period": period}
    yield from settings_of_prediction(task)


def settings_of_prediction(task):
    """Runs that differ in nothing but how they predict."""
    # Votes take long where there are many groups, and many mistakes.
    combinations = product(LOSSES, (0.0, 1e-3)) if task in SMALL else [("hinge", 0.0), ("log", 0.0)]
    for loss, l1 in combinations:
        for prediction in ("last", "average", "vote"):
            n = 3 if task in SMALL else 1
            options = {"loss": loss, "eta": ETAS[loss][-1], "max_iter": n, "l1": l1}
            yield "VRDA", {**options, "prediction": prediction}


def run_task(task, wanted, data, results):
    """Make the runs of a task, of those wanted, that the results folder does not have."""
    splits = load_task(task, data, results, ALL_TASKS)
    path = result_path(results, task)
    done = {run_key(run) for run in read_runs(path)}
    with path.open("a", encoding="utf-8") as file:
        for order, (system, parameters) in wanted:
            run = {"system": system, "parameters": parameters, "order": order}
            if run_key(run) in done:
                continue
            done.add(run_key(run))
            run |= measure(run, splits, FIXED.get(task, {}), ALL_TASKS[task][1])
            file.write(json.dumps(run) + "\n")
            file.flush()
            print(task, order, system, parameters, run["dev"], run["test"], run["nnz"], flush=True)


def chosen_settings(task, fold):
    """The settings that the main comparisons of a task choose in a fold."""
    choices = (choice for choice in task.key_choices() if choice is not None)
    firsts = [choice.settings[fold][0] for choice in choices]
    return [(first["system"], first["parameters"]) for first in firsts]


def measure(run, splits, fixed, metric):
    """Fit a reranker and see what it chooses on the other sets; times are of the processor."""
    X, costs = splits["train"].teaching()
    model = SYSTEMS[run["system"]](random_state=run["order"], **fixed, **run["parameters"])
    start = time.process_time()
    model.fit(X, costs)
    found = {"time": time.process_time() - start, "nnz": int(np.count_nonzero(model.coef_))}
    for name in ("mistakes", "nnz"):
        found[f"{name}_history"] = model.history_[name].tolist()
    for name in ("dev", "test"):
        start = time.process_time()
        chosen = model.predict(splits[name].batch)
        found[f"{name}_time"] = time.process_time() - start
        found[name] = metric(splits[name].chosen_stats(chosen).sum(axis=0))
        found[f"{name}_chosen"] = chosen.tolist()
    return found


def result_path(results, task):
    return results / f"{task.replace('/', '-')}.jsonl"


def run_key(run):
    return json.dumps([run["system"], run["parameters"], run["order"]], sort_keys=True)


def read_runs(path):
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def finished_tasks(names, results, data):
    """The tasks all of whose folds have runs."""
    tasks = []
    for name in names:
        folds = folds_of(name)
        runs = [read_runs(result_path(results, fold)) for fold in folds]
        if all(runs):
            splits = [load_task(fold, data, results, ALL_TASKS) for fold in folds]
            pairs = list(zip(runs, splits, strict=True))
            tasks.append(Task(name, pairs, ALL_TASKS[folds[0]]))
    return tasks


def folds_of(name):
    return [fold for fold in ALL_TASKS if fold.split("/")[0] == name]


def main():
    names = list(dict.fromkeys(name.split("/")[0] for name in ALL_TASKS))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["run", "repeat", "scale", "report"])
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(names)}; by default all")
    parser.add_argument("--orders", type=int, default=1, help="of the training groups")
    parser.add_argument("--data", default=os.environ.get("SKSTRUCT_DATA"))
    parser.add_argument("--results", type=Path, default=HERE / "results" / "rerank")
    parser.add_argument("--docs", type=Path, default=HERE.parent / "docs")
    arguments = parser.parse_args()
    data, results = arguments.data, arguments.results
    results.mkdir(parents=True, exist_ok=True)
    wanted, orders = arguments.tasks or names, range(arguments.orders)
    if arguments.action == "scale":
        measure_scale(results)
    elif arguments.action == "report":
        tasks = finished_tasks(wanted, results, data)
        write_report(tasks, read_runs(results / "scale.jsonl"), arguments.docs)
    elif arguments.action == "repeat":
        for task in finished_tasks(wanted, results, data):
            for i, fold in enumerate(folds_of(task.name)):
                run_task(fold, product(orders, chosen_settings(task, i)), data, results)
    else:
        for name in wanted:
            for fold in folds_of(name):
                run_task(fold, product(orders, list(settings(fold))), data, results)


if __name__ == "__main__":
    main()
