"""Kernels for classes of processors, as wheels carry them, beside kernels for this processor.

    python -m benchmarks.baselines

Each process compiles for one processor, as `skstruct.ahead.build` does for a wheel, or has compiled
before. It learns to chunk CoNLL-2000, and to tag it with parts of speech.
"""

import json
import os

import numpy as np

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import CORPORA, chunking_name
from benchmarks.common.features import crfsuite_attributes
from benchmarks.common.processes import run_child, seconds_of, take_turns
from benchmarks.common.report import median, median_and_range, note_on_runs, ratios, table

NATIVE = "native"
EPOCHS = 12
# The first ones load kernels and memory, and take longer.
WARM_UP = 4
TITLES = {
    "iteration": "iteration of L-BFGS",
    "epoch": "epoch of the perceptron",
    "viterbi": "Viterbi, training set",
}


def restrict(processor):
    """Have numba compile for a class of processors from now on, in this process."""
    if processor != NATIVE:
        os.environ.update(NUMBA_CPU_NAME=processor, NUMBA_CPU_FEATURES="")
    os.environ["SKSTRUCT_KERNELS"] = "local"


def tasks(corpus):
    """Batch, labels and number of labels: chunks, and tags with the features of their chunks."""
    from skstruct import SequenceVectorizer

    X, y = CORPORA[corpus]()["train"]
    strings = [crfsuite_attributes(tokens) for tokens in X]
    yield "few", SequenceVectorizer().fit_transform(strings), y
    # The tag itself is no feature of the token.
    strings = [[[s for s in token if "pos[0]" not in s] for token in line] for line in strings]
    tags = [[token[1] for token in tokens] for tokens in X]
    yield "many", SequenceVectorizer().fit_transform(strings), tags


def step(tagger, batch, y):
    """Seconds of an epoch or iteration, the best of those after the first ones."""
    history = tagger.fit(batch, y).history_
    return float(np.diff(history["time"])[WARM_UP:].min())


def measure(corpus, processor):
    """Seconds of each part of the work, with kernels for a processor, in this process."""
    restrict(processor)
    from skstruct import CRFTagger, PerceptronTagger

    found = {}
    for name, batch, y in tasks(corpus):
        tagger = PerceptronTagger(max_iter=EPOCHS, tol=None, random_state=0)
        found[f"epoch, {name}"] = step(tagger, batch, y)
        found[f"viterbi, {name}"] = seconds_of(lambda t=tagger, b=batch: t.predict(b), EPOCHS)
        found[f"labels, {name}"] = len(tagger.classes_)
        # Random labels of small corpora are learnt at once.
        if corpus == "conll2000" and name == "few":
            tagger = CRFTagger(max_iter=3 * EPOCHS, tol=1e-9)
            found[f"iteration, {name}"] = step(tagger, batch, y)
    return found


def write_report(results, report):
    """Write medians of the seconds, and ratios to the native kernels of the same turn."""
    others = [name for name in results if name != NATIVE]
    rows = []
    for key in sorted(results[NATIVE][0]):
        kind, _, size = key.partition(", ")
        if kind in TITLES:
            labels = results[NATIVE][0][f"labels, {size}"]
            row = [TITLES[kind], labels, f"{1000 * median(results[NATIVE], key):.1f}"]
            for name in others:
                row.append(median_and_range(ratios(results[name], results[NATIVE], key), 2))
            rows.append(row)
    head = ["", "labels", "native, ms", *(f"{name}, times as long" for name in others)]
    report.write("seconds", table(head, rows), note_on_runs(len(results[NATIVE])))


def main():
    """Run the benchmark, or measure one kind of kernels in this process."""
    parser = make_parser(__doc__, repeat=5)
    parser.add_argument("--run", help="only kernels for this processor, in this process")
    arguments = parse(parser)
    corpus = chunking_name(arguments.quick)
    if arguments.run:
        print(json.dumps(measure(corpus, arguments.run)))
        return
    from skstruct.compiled.rules import host_baselines

    processors = [NATIVE, *host_baselines()[: 1 if arguments.quick else 2]]
    quick = ["--quick"] if arguments.quick else []
    results = take_turns(
        processors,
        # numba reads the name of the processor when it is imported.
        lambda processor: run_child("baselines", "--run", processor, *quick, alone=True),
        arguments.repeat,
        warm=() if arguments.quick else processors,
    )
    with open_report("baselines", arguments) as report:
        write_report(results, report)


if __name__ == "__main__":
    main()
