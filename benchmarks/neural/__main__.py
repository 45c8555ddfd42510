"""Bi-LSTM and Bi-LSTM-CRF beside CRFTagger and SAPOTagger.

    python -m benchmarks.neural
    python -m benchmarks.neural --only hapt ocr
    python -m benchmarks.neural --curves
    python -m benchmarks.neural --write

Each run is a process of its own, with one thread. The networks have words and their characters as
inputs, or numbers, and stop early by the score on a development set; the linear taggers have the
features and the parameters of `benchmarks.which_tagger`. Every finished run is added at once to a
file in the results folder, and is not made again; neither are those that came with the repository.
`--curves` makes other runs, without a development set, which score the test set after each epoch;
`--seeds` says how many of them. It also times a few epochs, in batches of 16 sequences and of one.
`--write` makes the tables, the figures and the files of records that the repository keeps, of what
has all its runs. Needs PyTorch besides the extra `bench`; its build for processors alone is enough.
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
from benchmarks.neural.corpora import CURVE_CORPORA, QUICK_CURVE_CORPORA, QUICK_TASKS, TASKS
from benchmarks.neural.curves import (
    CURVE_SEEDS,
    EPOCHS,
    QUICK_EPOCHS,
    CurveRuns,
    write_curves,
)
from benchmarks.neural.plan import LINEAR, QUICK_LINEAR, SEEDS, NeuralRecords, Runs
from benchmarks.neural.report import write_report
from benchmarks.which_tagger.plan import TaggerRecords

NAME = "neural"


def make_runs(tasks, names, records, others, folder, *, linear, n_seeds):
    """Make what is missing of the runs on some corpora; `others` are records of `which_tagger`."""
    for name in names:
        runs = Runs(name, tasks[name], records, others, folder / "cache")
        runs.make_all(linear, n_seeds)


def make_curves(corpora, names, records, folder, *, n_seeds, n_epochs):
    """Make what is missing of the runs by epoch: one seed on all corpora, then the next."""
    runs = [CurveRuns(name, corpora[name], records, folder / "cache", n_epochs) for name in names]
    for seed in range(n_seeds):
        for corpus in runs:
            corpus.make_all(seed)
    for corpus in runs:
        corpus.compare()


def main():
    """Make runs, or write the report."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=list({**TASKS, **CURVE_CORPORA}))
    parser.add_argument("--curves", action="store_true", help="make the runs by epoch")
    parser.add_argument("--seeds", type=int, default=CURVE_SEEDS, help="of the runs by epoch")
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--write", action="store_true", help="write the report, make no runs")
    arguments = parse(parser)
    quick, only = arguments.quick, arguments.only
    tasks, corpora, linear, n_seeds = TASKS, CURVE_CORPORA, LINEAR, SEEDS
    curve_options = {"n_seeds": arguments.seeds, "n_epochs": EPOCHS}
    if quick:
        tasks, corpora, linear, n_seeds = QUICK_TASKS, QUICK_CURVE_CORPORA, QUICK_LINEAR, 1
        curve_options = {"n_seeds": 1, "n_epochs": QUICK_EPOCHS}
    # One thread for all, also in libraries of linear algebra.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    with results_folder(NAME, arguments) as folder:
        kept, curves, others = (
            [] if quick else read_runs(GENERATED / name)
            for name in ("neural/runs.jsonl", "neural/curves.jsonl", "which_tagger/runs.jsonl")
        )
        records = NeuralRecords(folder / "runs.jsonl", kept)
        curves = NeuralRecords(folder / "curves.jsonl", curves)
        others = TaggerRecords(folder / "which_tagger.jsonl", others)
        if quick or arguments.curves:
            names = [name for name in corpora if not only or name in only]
            make_curves(corpora, names, curves, folder, **curve_options)
        if quick or not (arguments.curves or arguments.write):
            names = [name for name in tasks if not only or name in only]
            make_runs(tasks, names, records, others, folder, linear=linear, n_seeds=n_seeds)
        if quick or arguments.write:
            with open_report(NAME, arguments) as report:
                write_report(records, tasks, report, linear, n_seeds)
                write_curves(curves, corpora, report)


if __name__ == "__main__":
    main()
