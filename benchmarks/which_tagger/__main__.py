"""Every tagger, with default and tuned parameters, beside CRFsuite, CRF++, Wapiti and spaCy.

    python -m benchmarks.which_tagger
    python -m benchmarks.which_tagger --only hapt --only "conll*" "CRFsuite*" CRFTagger
    python -m benchmarks.which_tagger --test
    python -m benchmarks.which_tagger --write

Each run is a process of its own: it learns from a training set with features, tags the test set,
and says what that took in score, seconds of the processor, memory, and size of the stored model.
The systems of a corpus take turns. Seeds decide the order of the training sequences, too; systems
to which neither matters are run once. The tuned ones have parameters that were chosen on a
development set.

Every finished run is added at once to a file in the results folder, and is not made again; neither
are those that came with the repository. So the runs can be made in pieces: `--only` names a corpus
and maybe systems, with `*` for any text, and can be given more than once; `--limit` gives up runs
that take longer. A run is tested against CRFsuite's `lbfgs` when it is made. `--test` tests the
finished ones that were compared with another system, and `SAPOTagger` against `CRFTagger`: it
learns again and measures nothing.

`--write` makes the tables, the figure, and the file of records that the repository keeps, of all
systems with all their seeds; tables and figure have the runs of `benchmarks.neural`, too. Needs the
extra `bench`; CRF++ and Wapiti, which have no numbers as values of features, and spaCy, which has
words in place of features, are run where their packages (extra `peers`) are installed.
"""

import os
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

from benchmarks.common.commandline import (
    GENERATED,
    make_parser,
    open_report,
    parse,
    results_folder,
)
from benchmarks.common.runs import read_runs
from benchmarks.which_tagger.corpora import CORPORA, QUICK_CORPORA
from benchmarks.which_tagger.plan import SEEDS, Runs, TaggerRecords, neural_runs
from benchmarks.which_tagger.report import write_report
from benchmarks.which_tagger.systems import PAIRS, QUICK, SYSTEMS

NAME = "which_tagger"


def selection(only):
    """Pairs of a corpus and the names of its systems, as chosen by the options `--only`."""
    for name in CORPORA:
        patterns = [
            pattern
            for corpus, *found in only or [["*"]]
            if fnmatchcase(name, corpus)
            for pattern in found or ["*"]
        ]
        systems = [system for system in SYSTEMS if any(fnmatchcase(system, p) for p in patterns)]
        if systems:
            yield name, systems


def make_runs(chosen, corpora, records, folder, *, n_seeds, limit=None, test=False):
    """Make, or test, what is missing of the runs of pairs of a corpus and systems."""
    # One thread for all, also in libraries of linear algebra.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    for name, systems in chosen:
        corpus = corpora[name]
        possible = [
            system
            for system in systems
            if find_spec(SYSTEMS[system].package)
            and (SYSTEMS[system].strings if corpus.binary else SYSTEMS[system].values)
            and (corpus.words or not SYSTEMS[system].words)
        ]
        runs = Runs(name, corpus, records, folder / "cache", limit)
        (runs.test_all if test else runs.make_all)(possible, n_seeds)
        for pair in PAIRS if test else ():
            if set(pair) <= set(possible):
                runs.test_pair(*pair, n_seeds)


def main():
    """Make runs, or write the report."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", action="append", metavar=("CORPUS", "SYSTEM"))
    parser.add_argument("--limit", type=float, help="seconds after which a run is given up")
    parser.add_argument("--test", action="store_true", help="test finished runs, measure nothing")
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--write", action="store_true", help="write the report, make no runs")
    arguments = parse(parser)
    with results_folder(NAME, arguments) as folder:
        if arguments.quick:
            records, n_seeds, quick = TaggerRecords(folder / "runs.jsonl"), 1, QUICK
            make_runs(QUICK, QUICK_CORPORA, records, folder, n_seeds=1)
        else:
            kept = read_runs(GENERATED / NAME / "runs.jsonl")
            records, n_seeds, quick = TaggerRecords(folder / "runs.jsonl", kept), SEEDS, None
        if not (arguments.quick or arguments.write):
            chosen = list(selection(arguments.only))
            if not chosen:
                parser.error(f"--only names no corpus of {', '.join(CORPORA)}, or no system.")
            options = {"limit": arguments.limit, "test": arguments.test}
            make_runs(chosen, CORPORA, records, folder, n_seeds=SEEDS, **options)
        else:
            with open_report(NAME, arguments) as report:
                neural = (
                    {} if quick else neural_runs(read_runs(GENERATED / "neural" / "runs.jsonl"))
                )
                write_report(records, neural, report, quick=quick, n_seeds=n_seeds)


if __name__ == "__main__":
    main()
