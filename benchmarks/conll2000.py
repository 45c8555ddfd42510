"""CoNLL-2000 chunking beside python-crfsuite: time, memory and F1 of whole processes.

    python -m benchmarks.conll2000

Every run is a process of its own that reads the corpus as plain text, makes the features of
CRFsuite's chunking example (words and parts of speech from -2 to 2, their bigrams, trigrams of
parts of speech), trains, and tags the test set. Both libraries are given the same lists of
attribute strings. The systems take turns. Needs the extra `bench`.

The speed of tagging is the median of several passes over the test set. Memory is the peak of the
resident set, beside what the process had before it read any data.
"""

from functools import partial

from benchmarks.common.chunking import EPOCHS, compare, run_crfsuite, run_skstruct
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
    compare("conll2000", __doc__, SYSTEMS, ours=COUNTERPARTS, repeat=3, write_report=write_report)


if __name__ == "__main__":
    main()
