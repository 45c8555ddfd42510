"""Epochs of the online taggers on CoNLL-2000 beside CRFsuite's averaged perceptron and
passive-aggressive algorithm: whole processes, side by side in one run.

Corpus, attribute strings and what is measured are those of `conll2000.py`. The systems take
turns, so that a machine that gets slower gets slower for all of them.

    python benchmarks/online_epochs.py --repeat 5

writes the table to docs/benchmarks/online_epochs.md. Needs the extra `bench`.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from conll2000 import EPOCHS, run_crfsuite, run_skstruct, write_corpus

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "online_epochs.md"
COMMON = {"max_iter": EPOCHS, "tol": None, "fit_intercept": False, "random_state": 0}


SYSTEMS = {
    "CRFsuite ap": partial(run_crfsuite, "ap", {"max_iterations": EPOCHS}),
    "CRFsuite pa": partial(run_crfsuite, "pa", {"max_iterations": EPOCHS}),
    "Averaged perceptron": partial(run_skstruct, "PerceptronTagger", COMMON),
    "MIRA, averaged": partial(run_skstruct, "MIRATagger", COMMON),
    "MIRA, 5 best, averaged": partial(run_skstruct, "MIRATagger", {**COMMON, "n_best": 5}),
    "SAPO, 5 best": partial(run_skstruct, "SAPOTagger", {**COMMON, "n_best": 5}),
}
OURS = list(SYSTEMS)[2:]
# How many times faster than CRFsuite's averaged perceptron an epoch is meant to be.
WANTED = {"Averaged perceptron": 4, "MIRA, 5 best, averaged": 3, "SAPO, 5 best": 2}
# How many epochs of the averaged perceptron one of SAPO is meant to take at most.
WANTED_OF_SAPO = 3


def run_one(name, folder):
    """Run one system in this process and print what it took."""
    clock, y_test, predicted, extra = SYSTEMS[name](folder)
    from skstruct.metrics import chunk_f1_score

    f1 = chunk_f1_score(y_test, predicted)
    print(json.dumps({"train": clock.seconds["train"], "epoch": extra["epoch"], "f1": f1}))


def run_all(repeat, folder):
    """Let the systems take turns in fresh processes; a first turn of ours fills the cache."""
    write_corpus(folder)
    results = {name: [] for name in SYSTEMS}
    for turn in range(repeat + 1):
        for name in SYSTEMS if turn else OURS:
            command = [sys.executable, __file__, "--run", name, "--folder", str(folder)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            if turn > 0:
                results[name].append(json.loads(output.splitlines()[-1]))
                print(turn, name, results[name][-1], flush=True)
    return results


def compare(results, slow, fast):
    """Ratio of the epochs of two systems in the same turn, median and range."""
    pairs = zip(results[slow], results[fast], strict=True)
    ratios = [a["epoch"] / b["epoch"] for a, b in pairs]
    return statistics.median(ratios), f"({min(ratios):.1f}-{max(ratios):.1f})"


def write_page(results, path):
    """Write medians, and the ratios of runs of the same turn."""
    n_turns = len(next(iter(results.values())))
    lines = [
        "# Epochs of the online taggers beside CRFsuite's",
        "",
        "CoNLL-2000 chunking: 8,936 sentences, 22 labels, the same 335,674 attribute strings for",
        f"all, one thread. Each system learns for {EPOCHS} epochs in a process of its own, and the",
        f"systems take turns, {n_turns} each. An epoch is the median of its process; given are the",
        "medians over the processes, and ratios within a turn (median, and range). Defaults, but",
        "without biases. Written by `benchmarks/online_epochs.py`.",
        "",
        f"| | an epoch, s | {EPOCHS} epochs, s | chunk F1 on test, % | times faster than `ap`"
        " | wanted | times faster than `pa` |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, runs in results.items():
        epoch, train, f1 = (
            statistics.median(run[key] for run in runs) for key in ("epoch", "train", "f1")
        )
        row = f"| {name} | {epoch:.3f} | {train:.2f} | {100 * f1:.2f} |"
        if name in OURS:
            ap, ap_range = compare(results, "CRFsuite ap", name)
            pa, pa_range = compare(results, "CRFsuite pa", name)
            wanted = f"at least {WANTED[name]}" if name in WANTED else ""
            row += f" {ap:.1f} {ap_range} | {wanted} | {pa:.1f} {pa_range} |"
        else:
            row += " | | |"
        lines.append(row)
    ratio, spread = compare(results, "SAPO, 5 best", "Averaged perceptron")
    lines += [
        "",
        f"An epoch of SAPO takes as long as {ratio:.1f} {spread} of the averaged perceptron; at "
        f"most {WANTED_OF_SAPO} were wanted.",
        "",
        f"Python {platform.python_version()}, {platform.machine()}, two processors.",
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="turns (default 5)")
    parser.add_argument("--run", choices=list(SYSTEMS), help="only this, once, in this process")
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus as plain text")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the table")
    arguments = parser.parse_args()
    if arguments.run:
        run_one(arguments.run, arguments.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_page(run_all(arguments.repeat, Path(folder)), arguments.page)


if __name__ == "__main__":
    main()
