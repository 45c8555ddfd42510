"""The experiments of the SDCA paper (Le Priol et al., 2018), run again.

    python -m benchmarks.sdca_paper run --data DIR
    python -m benchmarks.sdca_paper repeat conll2002-ned --seeds 5
    python -m benchmarks.sdca_paper report
    python -m benchmarks.sdca_paper estimates
    python -m benchmarks.sdca_paper sizes

`run` keeps every finished run as a line of JSON in the results folder; started again, it goes on
where it stopped. A run ends when its duality gap is 1e-8 of the objective, or after the epochs or
the time of its task (`tasks.py`). Gap and uniform sampling are run with several seeds, but for the
largest task; `repeat` makes these runs alone. `report` writes tables and figures of all runs that
are finished, `estimates` those of the estimated gap, for which the runs of `repeat` are enough, and
`sizes` the table that needs none. Tasks can be named. `--quick` runs and reports on small tasks.
"""

import os
from pathlib import Path

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.sdca_paper.plan import (
    EXPERIMENTS,
    GAP,
    QUICK_EXPERIMENTS,
    SEEDS,
    SMALLER,
    UNIFORM,
    Runs,
    warm_up,
)
from benchmarks.sdca_paper.report import write_estimates, write_report, write_sizes
from benchmarks.sdca_paper.tasks import QUICK_TASKS, TASKS


def run_all(tasks, experiments, repeated, seeds):
    """Make all runs with the first seed, then those of the `repeated` tasks with the others."""
    for experiment, names, epochs in experiments:
        for runs in (runs for runs in tasks if runs.name in names):
            warm_up(runs)
            for setting in experiment.values():
                runs.make(setting, epochs=epochs)
            runs.release()
    repeat([runs for runs in tasks if runs.name in repeated], range(1, seeds))


def repeat(tasks, seeds):
    """Make the runs of gap and of uniform sampling."""
    for seed in seeds:
        for runs in tasks:
            for setting in (GAP, UNIFORM):
                runs.make(setting, seed)
            runs.release()


def main():
    """Make runs, or report on them."""
    parser = make_parser(__doc__)
    actions = ["run", "repeat", "report", "estimates", "sizes"]
    parser.add_argument("action", nargs="?", choices=actions)
    parser.add_argument("tasks", nargs="*", default=[], help="by default all")
    parser.add_argument("--data", type=Path, default=os.environ.get("SKSTRUCT_DATA"))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"default {SEEDS}")
    arguments = parse(parser)
    if not (arguments.action or arguments.quick):
        parser.error("Name an action, such as run or report, or pass --quick.")
    known = QUICK_TASKS if arguments.quick else TASKS
    with results_folder("sdca_paper", arguments) as results:
        tasks = [
            Runs(name, known[name], arguments.data, results) for name in arguments.tasks or known
        ]
        if arguments.quick:
            run_all(tasks, QUICK_EXPERIMENTS, tuple(QUICK_TASKS), 2)
        elif arguments.action == "run":
            run_all(tasks, EXPERIMENTS, SMALLER, arguments.seeds)
        elif arguments.action == "repeat":
            repeat(tasks, range(arguments.seeds))
        write(tasks, arguments)


def write(tasks, arguments):
    """Write the tables and figures that are asked for."""
    finished, seeds = [runs for runs in tasks if len(runs)], arguments.seeds
    if not (arguments.quick or arguments.action in ("report", "estimates", "sizes")):
        return
    with open_report("sdca_paper", arguments) as report:
        if arguments.action == "estimates":
            write_estimates(finished, report, seeds)
        elif arguments.action == "sizes":
            write_sizes(tasks, report)
        else:
            write_report(finished, report, seeds)


if __name__ == "__main__":
    main()
