"""CoNLL-2000 chunking beside python-crfsuite: whole processes, side by side in one run.

Every run is a process of its own that reads the corpus as plain text, makes the features of
CRFsuite's chunking template (words and parts of speech from -2 to 2, their bigrams, trigrams of
parts of speech), trains, and tags the test set. Both libraries are given the same lists of
attribute strings. The systems take turns, so that a machine that gets slower gets slower for all
of them.

    python benchmarks/conll2000.py --repeat 3

writes the table to docs/benchmarks/conll2000.md. The corpus is downloaded, or read from the folder
that SKSTRUCT_DATA names. Needs the extra `bench`.

Speed of tagging is the median of several passes over the test set, for both libraries alike: the
first one of a process loads compiled code, or memory, and is counted in the time of the process.
Memory is the peak of the resident set, beside what the process had before it read any data.
"""

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "conll2000.md"
TEMPLATES = [
    *([(0, offset)] for offset in (-2, -1, 0, 1, 2)),
    [(0, -1), (0, 0)],
    [(0, 0), (0, 1)],
    *([(1, offset)] for offset in (-2, -1, 0, 1, 2)),
    *([(1, offset), (1, offset + 1)] for offset in (-2, -1, 0, 1)),
    *([(1, offset), (1, offset + 1), (1, offset + 2)] for offset in (-2, -1, 0)),
]
COLUMNS = ("w", "pos")
NAMES = ["|".join(f"{COLUMNS[column]}[{offset}]" for column, offset in t) for t in TEMPLATES]
EPOCHS = 10
TAGGING_PASSES = 7


def attributes(tokens):
    """Attribute strings of each token of a sentence, as CRFsuite's example makes them."""
    last = len(tokens) - 1
    lists = []
    for position in range(len(tokens)):
        strings = []
        for template, name in zip(TEMPLATES, NAMES, strict=True):
            places = [(position + offset, column) for column, offset in template]
            if places[0][0] >= 0 and places[-1][0] <= last:
                strings.append(name + "=" + "|".join([tokens[p][c] for p, c in places]))
        if position == 0:
            strings.append("__BOS__")
        if position == last:
            strings.append("__EOS__")
        lists.append(strings)
    return lists


class Clock:
    """Seconds of the named parts of a run."""

    def __init__(self):
        self.seconds = {}
        self._since = perf_counter()

    def lap(self, part):
        now = perf_counter()
        self.seconds[part] = now - self._since
        self._since = now


def peak_memory():
    """Peak of the resident set of this process until now, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # What getrusage says begins with the peak of the process that started this one.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds_of(function, n_calls=TAGGING_PASSES):
    """Median of the seconds that some calls take."""
    seconds = []
    for _ in range(n_calls):
        start = perf_counter()
        function()
        seconds.append(perf_counter() - start)
    return statistics.median(seconds)


def write_corpus(folder):
    """Write the corpus as plain text, so that no run pays for finding it."""
    from skstruct.datasets import fetch_conll2000

    for subset in ("train", "test"):
        X, y = fetch_conll2000(subset=subset, return_X_y=True)
        write_sentences(X, y, folder / subset)


def write_sentences(X, y, path):
    """Write sentences as columns of plain text."""
    sentences = (
        "".join(f"{word} {pos} {label}\n" for (word, pos), label in zip(*pair, strict=True))
        for pair in zip(X, y, strict=True)
    )
    path.write_text("\n".join(sentences), encoding="utf-8")


def read_corpus(path):
    """Tokens and labels of each sentence."""
    X, y = [], []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        columns = list(zip(*(line.split(" ") for line in block.splitlines()), strict=True))
        X.append(list(zip(columns[0], columns[1], strict=True)))
        y.append(list(columns[2]))
    return X, y


def run_crfsuite(algorithm, params, folder):
    clock = Clock()
    import pycrfsuite

    baseline = peak_memory()
    clock.lap("import")
    (X, y), (X_test, y_test) = read_corpus(folder / "train"), read_corpus(folder / "test")
    clock.lap("read")
    trainer = pycrfsuite.Trainer(algorithm=algorithm, params=params, verbose=False)
    append = 0.0
    for tokens, labels in zip(X, y, strict=True):
        strings = attributes(tokens)
        start = perf_counter()
        trainer.append(strings, labels)
        append += perf_counter() - start
    clock.lap("features")
    with tempfile.NamedTemporaryFile(suffix=".crfsuite") as model:
        trainer.train(model.name)
        clock.lap("train")
        tagger = pycrfsuite.Tagger()
        tagger.open(model.name)
        items = [pycrfsuite.ItemSequence(attributes(tokens)) for tokens in X_test]
        clock.lap("test features")
        predicted = [tagger.tag(item) for item in items]
        clock.lap("tag")
        memory = peak_memory()
        seconds = seconds_of(lambda: [tagger.tag(item) for item in items])
    iterations = trainer.logparser.iterations
    return (
        clock,
        y_test,
        predicted,
        {
            "memory": memory,
            "memory before data": baseline,
            "tokens per second": sum(map(len, y_test)) / seconds,
            "vectorise": append,
            "objective": iterations[-1]["loss"],
            "iterations": len(iterations),
            "epoch": statistics.median(i["time"] for i in iterations),
        },
    )


def run_skstruct(estimator, params, folder):
    clock = Clock()
    import skstruct

    kind, vectorizer = getattr(skstruct, estimator), skstruct.SequenceVectorizer()
    baseline = peak_memory()
    clock.lap("import")
    (X, y), (X_test, y_test) = read_corpus(folder / "train"), read_corpus(folder / "test")
    clock.lap("read")
    making = 0.0

    def stream():
        nonlocal making
        for tokens in X:
            start = perf_counter()
            strings = attributes(tokens)
            making += perf_counter() - start
            yield strings

    batch = vectorizer.fit_transform(stream())
    clock.lap("features")
    tagger = kind(**params).fit(batch, y)
    clock.lap("train")
    batch = vectorizer.transform(map(attributes, X_test))
    clock.lap("test features")
    predicted = tagger.predict(batch)
    clock.lap("tag")
    memory = peak_memory()
    seconds = seconds_of(lambda: tagger.predict(batch))
    history = tagger.history_
    return (
        clock,
        y_test,
        predicted,
        {
            "memory": memory,
            "memory before data": baseline,
            "tokens per second": sum(map(len, y_test)) / seconds,
            "vectorise": clock.seconds["features"] - making,
            "objective": float(history["objective"][-1]) if "objective" in history else None,
            "iterations": int(tagger.n_iter_),
            "epoch": statistics.median(history["time"][1:] - history["time"][:-1]),
        },
    )


def crfsuite_lbfgs(folder):
    return run_crfsuite("lbfgs", {"c1": 0.0, "c2": 1.0}, folder)


def crfsuite_ap(folder):
    return run_crfsuite("ap", {"max_iterations": EPOCHS}, folder)


def skstruct_lbfgs(n_jobs, folder):
    # tol: to the objective that CRFsuite stops at, or below.
    params = {"l2": 2.0, "fit_intercept": False, "tol": 3e-5, "n_jobs": n_jobs}
    return run_skstruct("CRFTagger", params, folder)


def skstruct_perceptron(folder):
    params = {"max_iter": EPOCHS, "tol": None, "fit_intercept": False, "random_state": 0}
    return run_skstruct("PerceptronTagger", params, folder)


SYSTEMS = {
    "CRFsuite lbfgs": crfsuite_lbfgs,
    "CRFTagger, 1 thread": partial(skstruct_lbfgs, 1),
    "CRFTagger, 2 threads": partial(skstruct_lbfgs, 2),
    "CRFsuite ap": crfsuite_ap,
    "PerceptronTagger": skstruct_perceptron,
}
RATIOS = {
    "CRFTagger, 1 thread": "CRFsuite lbfgs",
    "CRFTagger, 2 threads": "CRFsuite lbfgs",
    "PerceptronTagger": "CRFsuite ap",
}


def run_one(name, folder):
    """Run one system in this process and print what it took."""
    clock, y_test, predicted, extra = SYSTEMS[name](folder)
    whole = sum(clock.seconds.values())
    # After the measurement: what is imported here does not count.
    from skstruct.metrics import chunk_f1_score

    f1 = chunk_f1_score(y_test, predicted)
    print(json.dumps({**clock.seconds, **extra, "whole": whole, "f1": f1}))


def run_all(repeat, folder):
    """Let the systems take turns in fresh processes; a first turn of ours fills the cache."""
    write_corpus(folder)
    results = {name: [] for name in SYSTEMS}
    for turn in range(repeat + 1):
        for name in SYSTEMS:
            if turn == 0 and name.startswith("CRFsuite"):
                continue
            command = [sys.executable, __file__, "--run", name, "--folder", str(folder)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            if turn > 0:
                results[name].append(json.loads(output.splitlines()[-1]))
                print(turn, name, results[name][-1], flush=True)
    return results


def write_page(results, path):
    """Write the medians, and the ratios of runs of the same turn."""

    def median(name, key):
        values = [run[key] for run in results[name]]
        return None if None in values else statistics.median(values)

    rows = {
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
    lines = [
        "# CoNLL-2000 chunking beside python-crfsuite",
        "",
        "Whole processes with the same attribute strings (22 labels, 335,674 attributes,",
        f"3.8 million occurrences); medians of {len(next(iter(results.values())))} runs in turn.",
        "Written by `benchmarks/conll2000.py`, whose text says what is measured.",
        "",
        "| | " + " | ".join(SYSTEMS) + " |",
        "|---|" + "---:|" * len(SYSTEMS),
    ]
    for title, (key, form) in rows.items():
        values = [median(name, key) for name in SYSTEMS]
        if key == "objective":
            values = [
                v if "ap" not in n and "Perc" not in n else None
                for n, v in zip(SYSTEMS, values, strict=True)
            ]
        cells = ["" if v is None else form.format(v) for v in values]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines += ["", "How many times faster than CRFsuite, in the same turn (median, and range):", ""]
    lines += ["| | features | train | iteration or epoch | tagging | whole process |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for name, other in RATIOS.items():
        cells = []
        for key in ("vectorise", "train", "epoch", "tokens per second", "whole"):
            ratios = [b[key] / a[key] for a, b in zip(results[name], results[other], strict=True)]
            if key == "tokens per second":
                ratios = [1 / ratio for ratio in ratios]
            low, high = min(ratios), max(ratios)
            cells.append(f"{statistics.median(ratios):.1f} ({low:.1f}-{high:.1f})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", f"Python {platform.python_version()}, {platform.machine()}, two processors."]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="turns (default 3)")
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
