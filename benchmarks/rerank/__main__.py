"""Rerankers on real n-best lists: the tables and figures of the VRDA paper, run again.

    python -m benchmarks.rerank run atis parse --orders 5 --data DIR
    python -m benchmarks.rerank repeat parse --orders 10
    python -m benchmarks.rerank scale
    python -m benchmarks.rerank report

`run` tries all systems with all settings, in several orders of the training groups, on the
development set and the test set, and keeps every finished run as a line of JSON in the results
folder; started again, it goes on where it stopped. `repeat` makes runs in more orders with only the
settings that the development set chooses. `scale` measures training on a million candidates with a
million features. `report` writes tables, figures and runs of the tasks whose runs are finished;
where the runs have come with the repository, none of these is made again. `--quick` does all of
this on a small task. Translation needs the extra `bench`.
"""

import os
from itertools import product
from pathlib import Path

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.runs import read_runs
from benchmarks.rerank.compare import PREDICTIONS, Task
from benchmarks.rerank.data import load_task
from benchmarks.rerank.plan import TASKS, finished_runs, folds_of, run_task, settings
from benchmarks.rerank.report import write_report
from benchmarks.rerank.scale import measure_scale
from benchmarks.rerank.taggers import QUICK_TASKS


def run_all(names, orders, data, results):
    """Make the runs of tasks with all settings."""
    for name in names:
        for fold in folds_of(name):
            run_task(fold, product(orders, list(settings(fold))), data, results)


def repeat(names, orders, data, results):
    """Make the runs of tasks with the settings that the main comparisons choose."""
    for task in finished_tasks(names, data, results):
        for i, fold in enumerate(folds_of(task.name)):
            run_task(fold, product(orders, list(chosen_settings(task, i))), data, results)


def chosen_settings(task, fold):
    """Settings that the main comparisons of a task choose in a fold.

    The other ways to predict are beside a vote, with everything else equal.
    """
    choices = (choice for choice in task.key_choices() if choice is not None)
    for first in (choice.settings[fold][0] for choice in choices):
        system, parameters = first["system"], first["parameters"]
        yield system, parameters
        if parameters.get("prediction") == "vote":
            for prediction in PREDICTIONS[:-1]:
                yield system, {**parameters, "prediction": prediction}


def finished_tasks(names, data, results):
    """The tasks all of whose folds have runs."""
    tasks = []
    for name in names:
        folds = folds_of(name)
        runs = [list(finished_runs(fold, results)) for fold in folds]
        if all(runs):
            splits = [load_task(fold, data, results, TASKS) for fold in folds]
            tasks.append(Task(name, list(zip(runs, splits, strict=True)), TASKS[folds[0]]))
    return tasks


def report_on(names, arguments, results):
    """Write the report on the tasks that are finished."""
    tasks = finished_tasks(names, arguments.data, results)
    with open_report("rerank", arguments) as report:
        write_report(tasks, read_runs(results / "scale.jsonl"), report)


def run_quick(arguments, results):
    """Do everything on a small task."""
    names = list(QUICK_TASKS)
    run_all(names, range(1), arguments.data, results)
    repeat(names, range(2), arguments.data, results)
    measure_scale(results / "scale.jsonl", n_rows=1000, per_row=(5,))
    report_on(names, arguments, results)


def main():
    """Make runs, measure large training sets, or report."""
    names = list(dict.fromkeys(name.split("/")[0] for name in TASKS if name not in QUICK_TASKS))
    parser = make_parser(__doc__)
    parser.add_argument("action", nargs="?", choices=["run", "repeat", "scale", "report"])
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(names)}; by default all")
    parser.add_argument("--orders", type=int, default=1, help="of the training groups")
    parser.add_argument("--data", default=os.environ.get("SKSTRUCT_DATA"))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    arguments = parse(parser)
    if not (arguments.action or arguments.quick):
        parser.error("Name an action, run, repeat, scale or report, or pass --quick.")
    wanted, orders = arguments.tasks or names, range(arguments.orders)
    with results_folder("rerank", arguments) as results:
        if arguments.quick:
            run_quick(arguments, results)
        elif arguments.action == "scale":
            measure_scale(results / "scale.jsonl")
        elif arguments.action == "report":
            report_on(wanted, arguments, results)
        elif arguments.action == "repeat":
            repeat(wanted, orders, arguments.data, results)
        else:
            run_all(wanted, orders, arguments.data, results)


if __name__ == "__main__":
    main()
