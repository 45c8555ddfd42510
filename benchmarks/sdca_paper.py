"""The experiments of the SDCA paper (Le Priol et al., 2018), run again.

    python benchmarks/sdca_paper.py run --data DIR
    python benchmarks/sdca_paper.py report

`run` keeps every finished run as a line of JSON in the results folder; started again, it goes on
where it stopped. A run ends when its duality gap is 1e-8 of the objective, or after the epochs or
the time of its task (`sdca_paper_tasks.py`). `report` writes tables and figures into the docs, of
whatever there is. Tasks can be named.
"""

import argparse
import os
from pathlib import Path

from sdca_paper_plan import EXPERIMENTS, GAP, SEEDS, SMALLER, UNIFORM, Runs, warm_up
from sdca_paper_report import write_report
from sdca_paper_tasks import TASKS

HERE = Path(__file__).parent


def run_all(tasks):
    """Make all runs with the first seed, experiment by experiment, then those with the others."""
    for experiment, names, epochs in EXPERIMENTS:
        for runs in (runs for runs in tasks if runs.name in names):
            warm_up(runs)
            for setting in experiment.values():
                runs.make(setting, epochs=epochs)
            runs.release()
    for seed in range(1, SEEDS):
        for runs in (runs for runs in tasks if runs.name in SMALLER):
            for setting in (GAP, UNIFORM):
                runs.make(setting, seed)
            runs.release()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["run", "report"])
    parser.add_argument("tasks", nargs="*", default=[], help="by default all")
    parser.add_argument("--data", type=Path, default=os.environ.get("SKSTRUCT_DATA"))
    parser.add_argument("--results", type=Path, default=HERE / "results" / "sdca_paper")
    parser.add_argument("--docs", type=Path, default=HERE.parent / "docs")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    tasks = [Runs(name, arguments) for name in arguments.tasks or TASKS]
    if arguments.action == "run":
        run_all(tasks)
    else:
        write_report([runs for runs in tasks if len(runs)], arguments.docs)


if __name__ == "__main__":
    main()
