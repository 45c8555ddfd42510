"""CoNLL-2000 chunking beside python-crfsuite: time, memory and F1 of whole processes.

    python -m benchmarks.conll2000

Every run is a process of its own that reads the corpus as plain text, makes the features of
CRFsuite's chunking example (words and parts of speech from -2 to 2, their bigrams, trigrams of
parts of speech), trains, and tags the test set. Both libraries are given the same lists of
attribute strings. The systems take turns. Needs the extra `bench`.

The speed of tagging is the median of several passes over the test set. Memory is the peak of the
resident set, beside what the process had before it read any data.
"""

import json
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.common.chunking import EPOCHS, run_crfsuite, run_skstruct
from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import chunking_name, write_corpus
from benchmarks.common.processes import run_child, take_turns
from benchmarks.common.report import gain, note_on_runs, rows_of_medians, table

# This `tol` takes CRFTagger to the objective that CRFsuite stops at, or below.
CRF = {"l2": 2.0, "fit_intercept": False, "tol": 3e-5}
PERCEPTRON = {"max_iter": EPOCHS, "tol": None, "fit_intercept": False, "random_state": 0}
SYSTEMS = {
    "CRFsuite lbfgs": partial(run_crfsuite, "lbfgs", {"c1": 0.0, "c2": 1.0}),
    "CRFTagger, 1 thread": partial(run_skstruct, "CRFTagger", {**CRF, "n_jobs": 1}),
    "CRFTagger, 2 threads": partial(run_skstruct, "CRFTagger", {**CRF, "n_jobs": 2}),
    "CRFsuite ap": partial(run_crfsuite, "ap", {"max_iterations": EPOCHS}),
    "PerceptronTagger": partial(run_skstruct, "PerceptronTagger", PERCEPTRON),
}
# Ours, and what each is compared with.
COUNTERPARTS = {
    "CRFTagger, 1 thread": "CRFsuite lbfgs",
    "CRFTagger, 2 threads": "CRFsuite lbfgs",
    "PerceptronTagger": "CRFsuite ap",
}
ROWS = {
    "attribute strings to matrix, s": ("vectorise", "{:.2f}"),
    "train, s": ("train", "{:.1f}"),
    "iterations or epochs": ("iterations", "{:.0f}"),
    "one of them, s": ("epoch", "{:.3f}"),
    "final objective": ("objective", "{:,.2f}"),
    "tag, tokens/s": ("tokens per second", "{:,.0f}"),
    "whole process, s": ("whole", "{:.1f}"),
    "peak memory, MB": ("memory", "{:.0f}"),
    "of it before any data, MB": ("memory before data", "{:.0f}"),
    "chunk F1 on test, %": ("f1", "{:.2%}"),
}
RATIOS = {
    "features": "vectorise",
    "train": "train",
    "iteration or epoch": "epoch",
    "tagging": "tokens per second",
    "whole process": "whole",
}


def run_all(corpus, repeat, warm):
    """Results of all systems, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(corpus, Path(folder))
        run = partial(run_child, "conll2000", "--folder", folder, "--run")
        return take_turns(SYSTEMS, run, repeat, warm=warm)


def write_report(results, report):
    """Write the medians, and the ratios of runs of the same turn."""
    note = note_on_runs(len(results["PerceptronTagger"]))
    report.write("medians", table(["", *SYSTEMS], rows_of_medians(ROWS, results)), note)
    rows = []
    for name, other in COUNTERPARTS.items():
        gains = (gain(results[other], results[name], key) for key in RATIOS.values())
        rows.append([name, *gains])
    report.write("ratios", table(["", *RATIOS], rows))


def main():
    """Run the benchmark, or one of its systems in this process."""
    parser = make_parser(__doc__, repeat=3)
    parser.add_argument("--run", choices=list(SYSTEMS), help="only this, once, in this process")
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus as plain text")
    arguments = parse(parser)
    if arguments.run:
        print(json.dumps(SYSTEMS[arguments.run](arguments.folder)))
        return
    warm = () if arguments.quick else COUNTERPARTS
    results = run_all(chunking_name(arguments.quick), arguments.repeat, warm)
    with open_report("conll2000", arguments) as report:
        write_report(results, report)


if __name__ == "__main__":
    main()
