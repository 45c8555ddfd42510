"""The findings of the SAPO and structure regularisation papers, run again on real data.

    python benchmarks/search_based.py tune --data DIR
    python benchmarks/search_based.py run
    python benchmarks/search_based.py report
    python benchmarks/search_based.py check

`tune` chooses settings on development data and `run` makes the runs on the test sets. Both keep
every finished run as a line of JSON in the results folder; started again, they go on where they
stopped; `--without crf` leaves a system for later. `report` writes tables and figures into the
docs, of whatever there is. `check` tells whether the epochs of `partial_fit`, by which the curves
are measured, are those of one `fit`. With `--full` nothing is cut to size. Tasks can be named.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from search_based_plan import CLASSES, EPOCHS, EXPERIMENTS, Runs, epochs_of, new_tagger
from search_based_report import write_report
from search_based_tasks import TASKS, Split

HERE = Path(__file__).parent


def run_all(tasks, seeds):
    """Make all runs with the first seed, experiment by experiment, then those with the others."""
    for seed in range(seeds):
        for name, experiment in EXPERIMENTS.items():
            for runs in tasks:
                chosen = runs.tune()
                for system, parameters, every in experiment(chosen):
                    runs.get(system, parameters, "test", seed, EPOCHS, every)
                if name == "cut":
                    runs.tune_cut(chosen)
                    runs.get("lbfgs", {"l2": chosen["crf"]["l2"]}, "test", 0, 1)


def check(runs):
    """Whether epochs of `partial_fit` are those of a single `fit`.

    On the first sequences to learn from, whose features are in the order that `fit` gives them:
    in another order sums round differently, and near ties are broken differently.
    """
    X, y = (part[:1000] for part in runs.splits["train"])
    for system in sorted(set(CLASSES) - {"lbfgs", *runs.without}):
        for parameters in ({}, {"mini_length": 3.5}):
            head = {"system": system, "parameters": parameters, "seed": 0, "epochs": 4}
            *_, stepwise = epochs_of(head, Split(X, y))
            straight = new_tagger(system, parameters, 0, max_iter=4, tol=None)
            straight.fit(X, y)
            gap = np.abs(straight.coef_ - stepwise.coef_).max() / np.abs(straight.coef_).max()
            print(f"{runs.name} {system} {parameters}: largest relative difference {gap:.1e}")
            assert gap < 1e-9


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["tune", "run", "report", "check"])
    parser.add_argument("tasks", nargs="*", default=[], help="by default all")
    parser.add_argument("--data", type=Path, default=os.environ.get("SKSTRUCT_DATA"))
    parser.add_argument("--results", type=Path, default=HERE / "results" / "search_based")
    parser.add_argument("--docs", type=Path, default=HERE.parent / "docs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], choices=list(CLASSES))
    parser.add_argument("--full", action="store_true", help="all sentences of all tasks")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    tasks = [Runs(name, arguments) for name in arguments.tasks or TASKS]
    if arguments.action == "report":
        write_report([runs for runs in tasks if len(runs)], arguments.docs)
    elif arguments.action == "run":
        run_all(tasks, arguments.seeds)
    elif arguments.action == "tune":
        for runs in tasks:
            chosen = runs.tune()
            print(runs.name, chosen, runs.tune_cut(chosen))
    else:
        for runs in tasks:
            check(runs)


if __name__ == "__main__":
    main()
