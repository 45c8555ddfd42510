"""The experiments of the SDCA paper (Le Priol et al., 2018), run again.

    python -m benchmarks.sdca_paper run --data DIR
    python -m benchmarks.sdca_paper repeat conll2002-ned --seeds 5
    python -m benchmarks.sdca_paper time
    python -m benchmarks.sdca_paper report
    python -m benchmarks.sdca_paper sizes

`run` keeps every finished run as a line of JSON in the results folder; started again, it goes on
where it stopped. Runs that came with the repository are not made again. A run ends when its duality
gap is 1e-8 of the objective, or after the epochs or the time of its task (`tasks.py`). Gap and
uniform sampling are run with several seeds; `repeat` makes these runs alone. `time` measures some
epochs of each method again, and needs a machine without other work. `report` writes tables and
figures of all runs that are finished, and the runs for the repository, `sizes` the table that needs
none. Tasks can be named. `--quick` runs and reports on small tasks.
"""

import os
from pathlib import Path

from benchmarks.common.commandline import (
    GENERATED,
    make_parser,
    open_report,
    parse,
    results_folder,
)
from benchmarks.common.runs import read_runs
from benchmarks.sdca_paper.plan import (
    EXPERIMENTS,
    GAP,
    QUICK_EXPERIMENTS,
    SEEDS,
    TIMED,
    UNIFORM,
    Runs,
    warm_up,
)
from benchmarks.sdca_paper.report import kept_name, write_report, write_sizes
from benchmarks.sdca_paper.tasks import QUICK_TASKS, TASKS

NAME = "sdca_paper"


def run_all(tasks, experiments, seeds):
    """Make all runs with the first seed, then those that are repeated with the others."""
    for experiment, names, epochs in experiments:
        for runs in (runs for runs in tasks if runs.name in names):
            warm_up(runs)
            for setting in experiment.values():
                runs.make(setting, epochs=epochs)
            runs.release()
    repeat(tasks, range(1, seeds))


def repeat(tasks, seeds):
    """Make the runs of gap and of uniform sampling."""
    for seed in seeds:
        for runs in tasks:
            for setting in (GAP, UNIFORM):
                runs.make(setting, seed)
            runs.release()


def measure_times(tasks):
    """Measure the time of epochs."""
    for runs in tasks:
        warm_up(runs)
        for setting in TIMED:
            runs.measure(setting)
        runs.release()


def main():
    """Make runs, or report on them."""
    parser = make_parser(__doc__)
    actions = ["run", "repeat", "time", "report", "sizes"]
    parser.add_argument("action", nargs="?", choices=actions)
    parser.add_argument("tasks", nargs="*", default=[], help="by default all")
    parser.add_argument("--data", type=Path, default=os.environ.get("SKSTRUCT_DATA"))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"default {SEEDS}")
    arguments = parse(parser)
    if not (arguments.action or arguments.quick):
        parser.error("Name an action, such as run or report, or pass --quick.")
    known = QUICK_TASKS if arguments.quick else TASKS
    with results_folder(NAME, arguments) as results:
        tasks = [
            Runs(name, known[name], arguments.data, results, kept_runs(name))
            for name in arguments.tasks or known
        ]
        if arguments.quick:
            run_all(tasks, QUICK_EXPERIMENTS, 2)
            measure_times(tasks)
        elif arguments.action == "run":
            run_all(tasks, EXPERIMENTS, arguments.seeds)
        elif arguments.action == "repeat":
            repeat(tasks, range(arguments.seeds))
        elif arguments.action == "time":
            measure_times(tasks)
        write(tasks, arguments)


def kept_runs(name):
    """Runs of a task that came with the repository; the tasks of quick runs have none."""
    return read_runs(GENERATED / NAME / kept_name(name))


def write(tasks, arguments):
    """Write the tables and figures that are asked for."""
    if not (arguments.quick or arguments.action in ("report", "sizes")):
        return
    with open_report(NAME, arguments) as report:
        if arguments.action == "sizes":
            write_sizes(tasks, report)
        else:
            write_report([runs for runs in tasks if len(runs)], report, arguments.seeds)


if __name__ == "__main__":
    main()
