"""The findings of the SAPO and structure regularisation papers, run again on real data.

    python -m benchmarks.search_based tune --data DIR
    python -m benchmarks.search_based run
    python -m benchmarks.search_based report
    python -m benchmarks.search_based check

`tune` chooses settings on development data and `run` makes the runs on the test sets. Both keep
every finished run as a line of JSON in the results folder; started again, they go on where they
stopped; `--without crf` leaves a system for later. `report` writes tables and figures of all runs
that are finished. `check` compares the epochs of `partial_fit`, by which the curves are measured,
with those of one `fit`. With `--full` nothing is cut to size. Tasks can be named. `--quick` runs,
reports and checks on small tasks.
"""

import os
from pathlib import Path

import numpy as np

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.search_based.plan import CLASSES, EPOCHS, EXPERIMENTS, Runs, epochs_of, new_tagger
from benchmarks.search_based.report import write_report
from benchmarks.search_based.tasks import QUICK_TASKS, TASKS, Split


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
    """Check that epochs of `partial_fit` give the weights of a single `fit`.

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


def report_on(tasks, arguments):
    """Write the report on the tasks that have runs."""
    with open_report("search_based", arguments) as report:
        write_report([runs for runs in tasks if len(runs)], report)


def main():
    """Choose settings, make runs, report on them, or check."""
    parser = make_parser(__doc__)
    parser.add_argument("action", nargs="?", choices=["tune", "run", "report", "check"])
    parser.add_argument("tasks", nargs="*", default=[], help="by default all")
    parser.add_argument("--data", type=Path, default=os.environ.get("SKSTRUCT_DATA"))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], choices=list(CLASSES))
    parser.add_argument("--full", action="store_true", help="all sentences of all tasks")
    arguments = parse(parser)
    action, known = arguments.action, QUICK_TASKS if arguments.quick else TASKS
    if not (action or arguments.quick):
        parser.error("Name an action, tune, run, report or check, or pass --quick.")
    options = {"without": arguments.without, "full": arguments.full, "frozen": action == "report"}
    with results_folder("search_based", arguments) as results:
        tasks = [
            Runs(name, known[name], arguments.data, results, **options)
            for name in arguments.tasks or known
        ]
        if arguments.quick:
            run_all(tasks, seeds=1)
            report_on(tasks, arguments)
            check(tasks[0])
        elif action == "run":
            run_all(tasks, arguments.seeds)
        elif action == "tune":
            for runs in tasks:
                chosen = runs.tune()
                print(runs.name, chosen, runs.tune_cut(chosen))
        elif action == "report":
            report_on(tasks, arguments)
        else:
            for runs in tasks:
                check(runs)


if __name__ == "__main__":
    main()
