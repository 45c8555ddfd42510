"""Bi-LSTM and Bi-LSTM-CRF beside CRFTagger and SAPOTagger.

    python -m benchmarks.neural
    python -m benchmarks.neural --only hapt ocr
    python -m benchmarks.neural --write

Each run is a process of its own, with one thread. The networks have words and their characters as
inputs, or numbers, and stop early by the score on a development set; the linear taggers have the
features and the parameters of `benchmarks.which_tagger`. Every finished run is added at once to a
file in the results folder, and is not made again; neither are those that came with the repository.
`--write` makes the tables, the figure and the file of records that the repository keeps, of the
corpora with all their runs. Needs PyTorch besides the extra `bench`; its build for processors alone
is enough.
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
from benchmarks.neural.corpora import QUICK_TASKS, TASKS
from benchmarks.neural.plan import LINEAR, QUICK_LINEAR, SEEDS, NeuralRecords, Runs
from benchmarks.neural.report import write_report
from benchmarks.which_tagger.plan import TaggerRecords

NAME = "neural"


def make_runs(tasks, names, records, others, folder, *, linear, n_seeds):
    """Make what is missing of the runs on some corpora; `others` are records of `which_tagger`."""
    # One thread for all, also in libraries of linear algebra.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    for name in names:
        runs = Runs(name, tasks[name], records, others, folder / "cache")
        runs.make_all(linear, n_seeds)


def main():
    """Make runs, or write the report."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), help="by default all")
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--write", action="store_true", help="write the report, make no runs")
    arguments = parse(parser)
    tasks, linear, n_seeds = TASKS, LINEAR, SEEDS
    if arguments.quick:
        tasks, linear, n_seeds = QUICK_TASKS, QUICK_LINEAR, 1
    with results_folder(NAME, arguments) as folder:
        kept, others = (
            [] if arguments.quick else read_runs(GENERATED / name / "runs.jsonl")
            for name in (NAME, "which_tagger")
        )
        records = NeuralRecords(folder / "runs.jsonl", kept)
        others = TaggerRecords(folder / "which_tagger.jsonl", others)
        if not arguments.write:
            names = list(tasks) if arguments.quick else arguments.only or list(tasks)
            make_runs(tasks, names, records, others, folder, linear=linear, n_seeds=n_seeds)
        if arguments.quick or arguments.write:
            with open_report(NAME, arguments) as report:
                write_report(records, tasks, report, linear, n_seeds)


if __name__ == "__main__":
    main()
