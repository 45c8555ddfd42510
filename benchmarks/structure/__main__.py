"""Structure regularisation with and without edge features, as its paper has it.

    python -m benchmarks.structure
    python -m benchmarks.structure --only jnlpba --learners Perceptron CRF
    python -m benchmarks.structure --write

Each learner is trained on whole sequences and on pieces, once with features of tokens alone and
once with features of transitions ("rich edge features" in the paper). The mean length of the pieces
is chosen on the development set, for each learner and kind of features. Every finished run is added
at once to a file in the results folder, and is not made again; neither are those that came with the
repository. `--write` makes the tables, the figure and the file of records that the repository
keeps, of the corpora with all their runs.
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
from benchmarks.structure.corpora import CORPORA, QUICK_CORPORA
from benchmarks.structure.plan import LEARNERS, SEEDS, WHOLE, Runs, StructureRecords
from benchmarks.structure.report import write_report

NAME = "structure"


def main():
    """Make runs, or write the report."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="*", choices=CORPORA, help="by default all")
    learners = [*LEARNERS, *WHOLE]
    parser.add_argument("--learners", nargs="*", choices=learners, default=learners)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKSTRUCT_DATA"))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--write", action="store_true", help="write the report, make no runs")
    arguments = parse(parser)
    with results_folder(NAME, arguments) as folder:
        kept = [] if arguments.quick else read_runs(GENERATED / NAME / "runs.jsonl")
        records = StructureRecords(folder / "runs.jsonl", kept)
        if arguments.quick:
            for name, corpus in QUICK_CORPORA.items():
                runs = Runs(name, corpus, records, folder, None, epochs=2, seeds=2)
                runs.make_all(learners, (None, 2.5))
        elif not arguments.write:
            for name in arguments.only or CORPORA:
                runs = Runs(name, CORPORA[name], records, folder, arguments.data)
                runs.make_all(arguments.learners)
        if arguments.quick or arguments.write:
            corpora, seeds = (QUICK_CORPORA, 2) if arguments.quick else (CORPORA, SEEDS)
            with open_report(NAME, arguments) as report:
                write_report(records, corpora, report, n_seeds=seeds)


if __name__ == "__main__":
    main()
