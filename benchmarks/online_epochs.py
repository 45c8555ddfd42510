"""Epochs of the online taggers beside those of CRFsuite's online algorithms.

    python -m benchmarks.online_epochs

The corpus is CoNLL-2000, with the attribute strings of CRFsuite's chunking example
(`benchmarks/common/chunking.py`). Needs the extra `bench`.
"""

from functools import partial

from benchmarks.common.chunking import EPOCHS, compare, run_crfsuite, run_skstruct
from benchmarks.common.report import median, median_and_range, note_on_runs, ratios, table

COMMON = {"max_iter": EPOCHS, "tol": None, "fit_intercept": False, "random_state": 0}
SYSTEMS = {
    "CRFsuite ap": partial(run_crfsuite, "ap", {"max_iterations": EPOCHS}),
    "CRFsuite pa": partial(run_crfsuite, "pa", {"max_iterations": EPOCHS}),
    "CRFsuite arow": partial(run_crfsuite, "arow", {"max_iterations": EPOCHS}),
    "Averaged perceptron": partial(run_skstruct, "PerceptronTagger", COMMON),
    "MIRA, averaged": partial(run_skstruct, "MIRATagger", COMMON),
    "MIRA, 5 best, averaged": partial(run_skstruct, "MIRATagger", {**COMMON, "n_best": 5}),
    "SAPO, 5 best": partial(run_skstruct, "SAPOTagger", {**COMMON, "n_best": 5}),
    "AROW": partial(run_skstruct, "AROWTagger", {**COMMON, "average": False}),
    "AROW of the drop-in": partial(
        run_skstruct, "OnlineCRF", {**COMMON, "rule": "arow", "average": False}
    ),
}
THEIRS = list(SYSTEMS)[:3]
OURS = list(SYSTEMS)[3:]
# Speed of an epoch that was set as a goal: relative to CRFsuite's arow, or averaged perceptron.
GOALS = {
    "Averaged perceptron": 4,
    "MIRA, 5 best, averaged": 3,
    "SAPO, 5 best": 2,
    "AROW": 4,
    "AROW of the drop-in": 4,
}
# Epochs of the averaged perceptron that one of SAPO may take.
SAPO_GOAL = 3


def write_report(results, report):
    """Write medians, and the ratios of runs of the same turn."""
    rows = []
    for name, runs in results.items():
        epoch, train, f1 = (median(runs, key) for key in ("epoch", "train", "f1"))
        row = [name, f"{epoch:.3f}", f"{train:.2f}", f"{100 * f1:.2f}"]
        if name in OURS:
            goal = f"at least {GOALS[name]}" if name in GOALS else ""
            times = (median_and_range(ratios(results[other], runs, "epoch")) for other in THEIRS)
            rows.append([*row, *times, goal])
        else:
            rows.append([*row, *[""] * (len(THEIRS) + 1)])
    head = ["", "an epoch, s", f"{EPOCHS} epochs, s", "chunk F1 on test, %"]
    head += [f"times faster than `{name.split()[-1]}`" for name in THEIRS] + ["goal"]
    spread = median_and_range(
        ratios(results["SAPO, 5 best"], results["Averaged perceptron"], "epoch")
    )
    sapo = (
        f"An epoch of SAPO takes as long as {spread} epochs of the averaged perceptron; the goal "
        f"was at most {SAPO_GOAL}."
    )
    note = note_on_runs(len(results["SAPO, 5 best"]))
    report.write("epochs", table(head, rows), sapo, note)


def main():
    """Run the benchmark, or one of its systems in this process."""
    compare("online_epochs", __doc__, SYSTEMS, ours=OURS, repeat=5, write_report=write_report)


if __name__ == "__main__":
    main()
