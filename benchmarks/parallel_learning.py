"""What learning in parallel gains and costs the online taggers: iterative parameter mixing.

On CoNLL-2000 chunking each tagger learns with one, two and four shards (`n_jobs`), the same number
of epochs. With two processors four shards cannot be faster than two; they show what mixing more
shards costs in accuracy.

    python benchmarks/parallel_learning.py --repeat 3

writes the table to docs/benchmarks/parallel_learning.md. The corpus is downloaded, or read from the
folder that SKSTRUCT_DATA names.
"""

import argparse
import os
import platform
import statistics
from pathlib import Path

import numpy as np
from conll2000 import EPOCHS, attributes

from skstruct import CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger, SequenceVectorizer
from skstruct.datasets import fetch_conll2000
from skstruct.metrics import chunk_f1_score

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "parallel_learning.md"
SHARDS = (1, 2, 4)
TAGGERS = {
    "Averaged perceptron": PerceptronTagger(),
    "MIRA, 5 best, averaged": MIRATagger(n_best=5),
    "SAPO, 5 best": SAPOTagger(n_best=5),
    "CRF, SGD": CRFTagger(solver="sgd"),
}


def load():
    """Training and test set as numbers."""
    parts = []
    for subset in ("train", "test"):
        X, y = fetch_conll2000(subset=subset, return_X_y=True)
        parts.append(([attributes(tokens) for tokens in X], y))
    vectorizer = SequenceVectorizer().fit(parts[0][0])
    return [(vectorizer.transform(X), y) for X, y in parts]


def measure(tagger, n_jobs, seed, train, test):
    """Seconds of an epoch (median of a run), and F1 of the test set, in per cent."""
    tagger.set_params(n_jobs=n_jobs, max_iter=EPOCHS, tol=None, random_state=seed).fit(*train)
    seconds = np.diff(tagger.history_["time"], prepend=0.0)
    return float(np.median(seconds)), 100 * chunk_f1_score(test[1], tagger.predict(test[0]))


def measure_all(repeat):
    """Results by tagger and number of shards; the numbers of shards take turns."""
    train, test = load()
    results = {}
    for name, tagger in TAGGERS.items():
        for n_jobs in SHARDS:  # compiled, and threads started, before anything is measured
            measure(tagger, n_jobs, 0, (train[0][:100], train[1][:100]), test)
        for seed in range(repeat):
            for n_jobs in SHARDS:
                found = measure(tagger, n_jobs, seed, train, test)
                results.setdefault((name, n_jobs), []).append(found)
                print(name, n_jobs, *found, flush=True)
    return results


def table(results):
    """Rows of the table, in Markdown."""
    yield "| | shards | an epoch, s | times faster | F1 on test, % |"
    yield "|---|---:|---:|---:|---:|"
    for name in TAGGERS:
        for n_jobs in SHARDS:
            runs, alone = results[name, n_jobs], results[name, 1]
            seconds = statistics.median(run[0] for run in runs)
            ratios = [a[0] / b[0] for a, b in zip(alone, runs, strict=True)]
            f1 = [run[1] for run in runs]
            gain = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
            score = f"{np.mean(f1):.2f} ({min(f1):.2f}-{max(f1):.2f})"
            yield f"| {name} | {n_jobs} | {seconds:.3f} | {gain} | {score} |"


def write_page(results, repeat, path):
    lines = [
        "# Learning in parallel",
        "",
        "CoNLL-2000 chunking, as on [its page](conll2000.md): the online taggers with `n_jobs` of",
        "1, 2 and 4. The sentences are dealt out to as many shards, which learn side by side in",
        "threads and mix their weights after every epoch (McDonald, Hall and Mann, 2010).",
        f"{EPOCHS} epochs each, {repeat} seeds. An epoch is the median of its run; given are the",
        "medians over the seeds, the ratio to one shard with the same seed (median, and range),",
        "and the mean F1 after the last epoch (and range).",
        "Written by `benchmarks/parallel_learning.py`.",
        "",
        "After each epoch, mixing goes over all weights of all shards, however much or little they",
        "changed. So the learners that compute most for each sequence gain most.",
        "",
        *table(results),
        "",
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} processors.",
    ]
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="seeds (default 3)")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the table")
    arguments = parser.parse_args()
    write_page(measure_all(arguments.repeat), arguments.repeat, arguments.page)


if __name__ == "__main__":
    main()
