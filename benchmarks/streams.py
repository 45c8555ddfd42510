"""Learning from a stream in bounded memory, beside learning in memory: CoNLL-2000 chunking.

The training text is written out 1, 4 and 16 times over. Every run is a process of its own. A
stream reads it in batches of sentences, hashes their features, and learns from each batch once;
for another epoch it reads the file again. In memory, the whole text is read and vectorised, and
then learnt from. Test sentences are tagged in batches in both. The systems take turns.

    python benchmarks/streams.py --repeat 3

writes the tables to docs/benchmarks/streams.md. The corpus is downloaded, or read from the folder
that SKSTRUCT_DATA names.

Memory is the peak of the resident set, beside what the process had after it had learnt from and
tagged a few sentences: imports and compiled code are not counted, the weights are. Linux only.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "streams.md"
COPIES = (1, 4, 16)
BATCH = 1000
N_FEATURES = 2**18
EPOCHS = 5
N_BATCHES = 9  # of the text once
# Kind, its settings, and those for batches, each of which is an epoch to penalty and rate.
LEARNERS = {
    "averaged perceptron": ("PerceptronTagger", {}, {}),
    "CRF by SGD": (
        "CRFTagger",
        {"solver": "sgd", "l2": 1.0, "decay": 0.9},
        {"l2": 1.0 / N_BATCHES, "decay": 0.9 ** (1 / N_BATCHES)},
    ),
}


def peak_memory():
    """Most memory, in MiB, that the process has had."""
    # What getrusage says includes the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 2**10


def make_tagger(learner, *, in_batches=False, **params):
    import skstruct

    kind, settings, for_batches = LEARNERS[learner]
    params = {**settings, **(for_batches if in_batches else {}), **params}
    return getattr(skstruct, kind)(random_state=0, **params)


def learn_from_stream(learner, vectorizer, path, classes, n_epochs):
    """A tagger that has read the file so many times, and the sum of the seconds of its calls."""
    from skstruct.datasets import iter_conll

    tagger, learning = make_tagger(learner, in_batches=True), 0.0
    for _ in range(n_epochs):
        for tokens, labels in iter_conll(path, batch_size=BATCH):
            batch = vectorizer.transform(tokens)
            start = perf_counter()
            tagger.partial_fit(batch, labels, classes=classes)
            learning += perf_counter() - start
    return tagger, learning


def learn_in_memory(learner, vectorizer, path, n_epochs):
    """A tagger that was fitted to the whole file, and the seconds that fitting took."""
    from skstruct.datasets import read_conll

    tokens, labels = read_conll(path)
    batch = vectorizer.fit_transform(tokens)
    del tokens
    start = perf_counter()
    tagger = make_tagger(learner, max_iter=n_epochs, tol=None).fit(batch, labels)
    return tagger, perf_counter() - start


def f1_in_batches(tagger, vectorizer, path):
    """Chunk F1 on a file that is tagged in batches; only labels are kept."""
    from skstruct.datasets import iter_conll
    from skstruct.metrics import chunk_f1_score

    true, found = [], []
    for tokens, labels in iter_conll(path, batch_size=BATCH):
        true += labels
        found += tagger.predict(vectorizer.transform(tokens)).tolist()
    return chunk_f1_score(true, found)


def run_one(way, learner, folder, copies, n_epochs):
    """One run in this process; prints what it took."""
    import skstruct

    hashes = skstruct.HashingTemplateVectorizer(n_features=N_FEATURES)
    vectorizer = skstruct.TemplateVectorizer() if way == "columns" else hashes
    classes = (folder / "labels").read_text().split()
    # Few columns, so that the peak until now is that of imports and compiled code.
    small, few = folder / "small", skstruct.HashingTemplateVectorizer(n_features=100)
    for vectorise in (few, skstruct.TemplateVectorizer()):
        tagger, _ = learn_in_memory(learner, vectorise, small, 1)
        f1_in_batches(tagger, vectorise, small)
    f1_in_batches(learn_from_stream(learner, few, small, classes, 1)[0], few, small)
    before, start = peak_memory(), perf_counter()
    path = folder / f"train{copies}"
    if way == "stream":
        tagger, learning = learn_from_stream(learner, hashes, path, classes, n_epochs)
    else:
        tagger, learning = learn_in_memory(learner, vectorizer, path, n_epochs)
    seconds = perf_counter() - start
    f1 = f1_in_batches(tagger, vectorizer, folder / "test")
    result = {"seconds": seconds, "learning": learning, "f1": f1, "MiB": peak_memory() - before}
    print(json.dumps(result))


def write_corpus(folder):
    """Write the corpus, its training set several times over, and the labels."""
    from conll2000 import write_sentences

    from skstruct.datasets import fetch_conll2000

    X, y = fetch_conll2000(subset="train", return_X_y=True)
    for copies in COPIES:
        write_sentences(X * copies, y * copies, folder / f"train{copies}")
    write_sentences(X[:20], y[:20], folder / "small")
    write_sentences(*fetch_conll2000(subset="test", return_X_y=True), folder / "test")
    labels = sorted({label for sequence in y for label in sequence})
    (folder / "labels").write_text("\n".join(labels))


def plan():
    """All runs: way, learner, copies of the text, epochs."""
    runs = []
    for learner in LEARNERS:
        for way in ("stream", "memory"):
            runs += [(way, learner, copies, 1) for copies in COPIES]
        runs += [(way, learner, 1, EPOCHS) for way in ("stream", "memory", "columns")]
    return runs


def first_of_each_learner():
    return [next(run for run in plan() if run[1] == learner) for learner in LEARNERS]


def run_all(repeat, folder):
    """Let the runs take turns in fresh processes; a first one fills the cache of the compiler."""
    write_corpus(folder)
    results = {run: [] for run in plan()}
    for turn in range(repeat + 1):
        for run in plan() if turn else first_of_each_learner():
            command = [sys.executable, __file__, "--folder", str(folder), "--run", *map(str, run)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            if turn > 0:
                results[run].append(json.loads(done.stdout.splitlines()[-1]))
                print(turn, run, results[run][-1], flush=True)
    return results


def median(results, run, key):
    return statistics.median(result[key] for result in results[run])


def write_page(results, path):
    n_turns = len(results[plan()[0]])
    lines = [
        "# Learning from a stream",
        "",
        "CoNLL-2000 chunking, the training text (8,936 sentences, 211,727 tokens) 1, 4 and 16",
        "times over, features of `TemplateVectorizer`'s default template. A stream reads batches",
        f"of {BATCH:,} sentences, hashes their features into {N_FEATURES:,} columns and learns",
        f"from each batch once. One thread, medians of {n_turns} processes each; written by",
        "`benchmarks/streams.py`.",
        "",
        "Memory is the peak beside what the process had before it read the text, and includes the",
        f"weights: {N_FEATURES:,} columns times 22 labels are {N_FEATURES * 22 * 8 / 2**20:.0f}",
        "MiB, as much again where an average is taken, and as much again for predicting.",
        "",
        "## Memory: one pass over the text",
        "",
        "| | text | stream, MiB | in memory, MiB | stream, s | in memory, s |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for learner in LEARNERS:
        for copies in COPIES:
            cells = [
                f"{median(results, (way, learner, copies, 1), key):,.{digits}f}"
                for key, digits in (("MiB", 0), ("seconds", 1))
                for way in ("stream", "memory")
            ]
            lines.append(f"| {learner} | x{copies} | {' | '.join(cells)} |")
    lines += [
        "",
        f"## Accuracy and time: {EPOCHS} epochs over the text once",
        "",
        "A stream vectorises anew in every epoch, and shuffles within a batch only. In a batch,",
        f"the CRF has 1/{N_BATCHES} of the penalty that it has in an epoch, and its rate decays by",
        "as much in all batches of the text as in an epoch.",
        "",
        "| | | chunk F1 on test, % | all, s | of it learning, s | MiB |",
        "|---|---|---:|---:|---:|---:|",
    ]
    names = {
        "stream": "stream, hashed",
        "memory": "in memory, hashed",
        "columns": "in memory, a column for each feature",
    }
    for learner in LEARNERS:
        for way, name in names.items():
            run = (way, learner, 1, EPOCHS)
            lines.append(
                f"| {learner} | {name} | {100 * median(results, run, 'f1'):.2f} "
                f"| {median(results, run, 'seconds'):.1f} "
                f"| {median(results, run, 'learning'):.2f} | {median(results, run, 'MiB'):.0f} |"
            )
    lines += ["", f"Python {platform.python_version()}, {platform.machine()}, two processors."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="turns (default 3)")
    parser.add_argument("--run", nargs=4, help="only this, once, in this process")
    parser.add_argument("--folder", type=Path, help="where --run finds the text")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the tables")
    arguments = parser.parse_args()
    if arguments.run:
        way, learner, copies, n_epochs = arguments.run
        run_one(way, learner, arguments.folder, int(copies), int(n_epochs))
        return
    with tempfile.TemporaryDirectory() as folder:
        write_page(run_all(arguments.repeat, Path(folder)), arguments.page)


if __name__ == "__main__":
    main()
