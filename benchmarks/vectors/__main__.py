"""Vectors beside words: time, memory and F1, and how their scale was chosen.

    python -m benchmarks.vectors
    python -m benchmarks.vectors --only states
    python -m benchmarks.vectors --only states --write
    python -m benchmarks.vectors --quick

Vectors are the static table of the package wordllama: means of the pieces of a word, of unit
length. Install it with `pip install wordllama tokenizers safetensors`. Hidden states are those of
`benchmarks.common.states`, measured where its packages are installed. A quick run draws vectors at
random. `--only` measures one part. "states" scores all kinds of vectors; its finished runs are kept
in ``benchmarks/results``, and are not made again; `--write` makes its tables without making runs.

Fits take turns in one process, and a figure is a ratio of seconds of the processor, so that other
programs on the machine disturb it little. Memory is the peak of a process of its own.
"""

import importlib.util
import json
from pathlib import Path

import numpy as np

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.processes import run_child
from benchmarks.common.report import machine, table
from benchmarks.common.states import PACKAGE, encode
from benchmarks.vectors import states
from benchmarks.vectors.data import random_vectors, read, static_vectors
from benchmarks.vectors.network import GAPS, measure_network
from benchmarks.vectors.scores import SCALES, measure_scale
from benchmarks.vectors.speed import (
    measure_dense,
    measure_fits,
    measure_memory,
    measure_one,
    measure_sentence,
)
from skstruct import VectorScaler

NAME, CHILD = "vectors", "vectors.__main__"
CORPORA = ("conll2000", "ud-english-ewt", "jnlpba")
PARTS = ("fits", "dense", "memory", "crfsuite", "sentence", "scale", "states", "torch")
# Sentences that a network learns from, and the most seconds that one of its runs takes.
N_NETWORK, NETWORK_SECONDS = 1500, 40


def write_speed(report, arguments, vectors_for, corpus):
    """Write the tables of time and memory."""
    quick, repeat = arguments.quick, arguments.repeat
    wanted = PARTS if arguments.only is None else (arguments.only,)
    if "fits" in wanted:
        rows, (fewer, every), note = measure_fits(
            corpus, 1.0 if quick else 0.1, vectors_for, repeat
        )
        head = ["learner", f"words, s, {fewer} labels", "with vectors, times", "iterations"]
        head += [f"times, {every} labels", "iterations"]
        report.write("fits", table(head, rows), f"{note}. {machine()}")
    if "dense" in wanted:
        rows, note = measure_dense(200 if quick else 20_000, 13, repeat)
        head = ["learner", "epoch, ms", "in products", "of vectors"]
        report.write("dense", table(head, rows), f"{note}. {machine()}")
    if "sentence" in wanted:
        rows = measure_sentence(corpus, vectors_for, 3 if quick else 500)
        report.write("sentence", table(["call", "microseconds"], rows), machine())
    if "memory" in wanted:
        options = ["--quick"] if quick else []
        (words, *sizes), (more, *_) = (
            run_child(CHILD, "--system", kind, *options) for kind in ("words", "both")
        )
        of_table, scores, n_sentences, n_tokens = sizes
        rows = [[f"{size:,.0f}" for size in (words, more, more - words, of_table, scores)]]
        head = ["words, MiB", "with vectors, MiB", "difference", "table", "scores"]
        note = f"{n_sentences:,} sentences, {n_tokens:,} tokens. {machine()}"
        report.write("memory", table(head, rows), note)
    if "crfsuite" in wanted and importlib.util.find_spec("sklearn_crfsuite"):
        rows = []
        for system in ("skstruct", "sklearn-crfsuite"):
            options = ("--system", system, *(["--quick"] if quick else []))
            seconds, n_iter, memory = run_child(CHILD, *options)
            rows.append([system, f"{seconds:.1f}", n_iter, f"{memory:,.0f}"])
        head = ["system", "seconds", "iterations", "memory, MiB"]
        report.write("crfsuite", table(head, rows), machine())


def make_states(report, arguments):
    """Make the runs that score vectors, and write their tables."""
    quick = arguments.quick
    rows = states.choose_rows(quick, arguments.corpora, arguments.shares)
    with results_folder(NAME, arguments) as folder:
        records = states.RowRecords(folder / "runs.jsonl")
        if not arguments.write and (quick or importlib.util.find_spec(PACKAGE)):
            states.make_runs(records, rows, folder, quick)
        states.write_report(records, rows, report, quick)


def make_torch(report, arguments):
    """Write the table of a network that learns the same."""
    quick = arguments.quick
    with results_folder(NAME, arguments) as folder:
        X, y = read(None if quick else "conll2000", "train")
        X, y = X[:N_NETWORK], y[:N_NETWORK]
        found = states.random_states(X) if quick else encode(folder / "states" / "conll2000", X)
        vectors = found if quick else found.transform(X)
    scaled = [x.astype(np.float32) for x in VectorScaler().fit_transform(vectors)]
    seconds = 0.1 if quick else NETWORK_SECONDS
    rows, note = measure_network(scaled, y, arguments.repeat, seconds)
    head = ["", *(f"within {100 * gap:g} %, s" for gap in GAPS), "passes", "times"]
    report.write("torch", table(head, rows), f"{note} {machine()}")


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__, repeat=3)
    parser.add_argument("--only", choices=PARTS, help="measure one part")
    parser.add_argument("--system", help="one fit in this process")
    parser.add_argument("--corpora", nargs="+", help="for scale and states")
    parser.add_argument("--shares", nargs="+", type=float, help="of the training sentences")
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--write", action="store_true", help="make no runs that score vectors")
    arguments = parse(parser)
    quick = arguments.quick
    corpus, vectors_for = ("conll2000", static_vectors)
    corpora, shares = arguments.corpora or CORPORA, arguments.shares or (0.05, 0.2)
    if quick:
        corpus, vectors_for, corpora, shares = None, random_vectors, [None], [0.5]
    if arguments.system in ("words", "both"):
        print(json.dumps(measure_memory(arguments.system, corpus, 4000, vectors_for)))
        return
    if arguments.system:
        print(json.dumps(measure_one(arguments.system, corpus, 20 if quick else 200)))
        return
    wanted = PARTS if arguments.only is None else (arguments.only,)
    with open_report("vectors", arguments) as report:
        write_speed(report, arguments, vectors_for, corpus)
        if "scale" in wanted:
            rows = [measure_scale(name, share, vectors_for) for name in corpora for share in shares]
            head = ["corpus, share", *(f"{size:g}" for size in SCALES), "best"]
            report.write("scale", table(head, rows), machine())
        if "states" in wanted:
            make_states(report, arguments)
        packages = ("torch", "torchcrf", *(() if quick else (PACKAGE,)))
        if "torch" in wanted and all(map(importlib.util.find_spec, packages)):
            make_torch(report, arguments)


if __name__ == "__main__":
    main()
