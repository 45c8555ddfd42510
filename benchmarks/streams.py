"""Learning from a stream in bounded memory, beside learning in memory: CoNLL-2000 chunking.

    python -m benchmarks.streams

The training text is written out 1, 4 and 16 times over. Every run is a process of its own. A stream
reads the text in batches of sentences, hashes their features, and learns from each batch once; for
another epoch it reads the file again. In memory, the whole text is read and vectorised, and then
learnt from. Test sentences are tagged in batches in both. The systems take turns.

Memory is the peak of the resident set, beside what the process had after it had learnt from and
tagged a few sentences: imports and compiled code are not counted, the weights are.
"""

import json
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import CORPORA, chunking_name, write_sentences
from benchmarks.common.processes import peak_memory, run_child, take_turns
from benchmarks.common.report import median, note_on_runs, table

COPIES = (1, 4, 16)
BATCH = 1000
N_FEATURES = 2**18
EPOCHS = 5
N_BATCHES = 9  # of the text once
# Estimator, its settings, and those for batches: to penalty and rate, each batch is an epoch.
LEARNERS = {
    "averaged perceptron": ("PerceptronTagger", {}, {}),
    "CRF by SGD": (
        "CRFTagger",
        {"solver": "sgd", "l2": 1.0, "decay": 0.9},
        {"l2": 1.0 / N_BATCHES, "decay": 0.9 ** (1 / N_BATCHES)},
    ),
}
WAYS = {
    "stream": "stream, hashed",
    "memory": "in memory, hashed",
    "columns": "in memory, a column for each feature",
}


def make_tagger(learner, *, in_batches=False, **params):
    """Estimator with its settings for epochs or for batches."""
    import skstruct

    kind, settings, for_batches = LEARNERS[learner]
    params = {**settings, **(for_batches if in_batches else {}), **params}
    return getattr(skstruct, kind)(random_state=0, **params)


def learn_from_stream(learner, vectorizer, path, classes, n_epochs):
    """Tagger that has read the file `n_epochs` times, and the seconds of its calls in sum."""
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
    """Tagger that was fitted to the whole file, and the seconds of the fit."""
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


def run_one(way, learner, copies, n_epochs, folder):
    """Run one learner in this process; return what it took."""
    import skstruct

    hashes = skstruct.HashingTemplateVectorizer(n_features=N_FEATURES)
    vectorizer = skstruct.TemplateVectorizer() if way == "columns" else hashes
    classes = (folder / "labels").read_text().split()
    # Few columns, so that the peak until now is that of imports and compiled code.
    small, few = folder / "small", skstruct.HashingTemplateVectorizer(n_features=100)
    for warming in (few, skstruct.TemplateVectorizer()):
        tagger, _ = learn_in_memory(learner, warming, small, 1)
        f1_in_batches(tagger, warming, small)
    f1_in_batches(learn_from_stream(learner, few, small, classes, 1)[0], few, small)
    before, start = peak_memory(), perf_counter()
    path = folder / f"train{copies}"
    if way == "stream":
        tagger, learning = learn_from_stream(learner, hashes, path, classes, n_epochs)
    else:
        tagger, learning = learn_in_memory(learner, vectorizer, path, n_epochs)
    seconds = perf_counter() - start
    f1 = f1_in_batches(tagger, vectorizer, folder / "test")
    return {"seconds": seconds, "learning": learning, "f1": f1, "MiB": peak_memory() - before}


def write_text(corpus, copies, folder):
    """Write the training set several times over, the test set, and the labels."""
    parts = CORPORA[corpus]()
    X, y = parts["train"]
    for n in copies:
        write_sentences(X * n, y * n, folder / f"train{n}")
    write_sentences(X[:20], y[:20], folder / "small")
    write_sentences(*parts["test"], folder / "test")
    labels = sorted({label for sequence in y for label in sequence})
    (folder / "labels").write_text("\n".join(labels))


def plan(quick):
    """All runs: way, learner, copies of the text, epochs."""
    runs = []
    for learner in ["averaged perceptron"] if quick else LEARNERS:
        for way in ("stream", "memory"):
            runs += [(way, learner, copies, 1) for copies in ((1,) if quick else COPIES)]
        runs += [(way, learner, 1, EPOCHS) for way in WAYS]
    return runs


def run_all(corpus, runs, repeat, warm):
    """Results of all runs, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        write_text(corpus, sorted({copies for _, _, copies, _ in runs}), Path(folder))

        def run(options):
            return run_child("streams", "--folder", folder, "--run", *options)

        return take_turns(runs, run, repeat, warm=warm)


def first_of_each_learner(runs):
    """Runs after which everything is compiled."""
    return [next(run for run in runs if run[1] == learner) for learner in LEARNERS]


def write_report(results, report):
    """Write medians of memory and time by the size of the text, and of accuracy."""
    rows = []
    for way, learner, copies, n_epochs in results:
        if way == "stream" and n_epochs == 1:
            pair = [results[way, learner, copies, 1] for way in ("stream", "memory")]
            memory = [f"{median(runs, 'MiB'):,.0f}" for runs in pair]
            seconds = [f"{median(runs, 'seconds'):.1f}" for runs in pair]
            rows.append([learner, f"x{copies}", *memory, *seconds])
    head = ["", "text", "stream, MiB", "in memory, MiB", "stream, s", "in memory, s"]
    report.write("memory", table(head, rows))
    rows = []
    for (way, learner, _, n_epochs), runs in results.items():
        if n_epochs == EPOCHS:
            f1, seconds = 100 * median(runs, "f1"), median(runs, "seconds")
            learning, memory = median(runs, "learning"), median(runs, "MiB")
            cells = [f"{f1:.2f}", f"{seconds:.1f}", f"{learning:.2f}", f"{memory:.0f}"]
            rows.append([learner, WAYS[way], *cells])
    head = ["", "", "chunk F1 on test, %", "all, s", "of it learning, s", "MiB"]
    report.write("accuracy", table(head, rows, left=(0, 1)), note_on_runs(len(runs)))


def main():
    """Run the benchmark, or one run of it in this process."""
    parser = make_parser(__doc__, repeat=3)
    parser.add_argument("--run", nargs=4, metavar=("WAY", "LEARNER", "COPIES", "EPOCHS"))
    parser.add_argument("--folder", type=Path, help="where --run finds the text")
    arguments = parse(parser)
    if arguments.run:
        way, learner, copies, n_epochs = arguments.run
        results = run_one(way, learner, int(copies), int(n_epochs), arguments.folder)
        print(json.dumps(results))
        return
    runs = plan(arguments.quick)
    warm = () if arguments.quick else first_of_each_learner(runs)
    results = run_all(chunking_name(arguments.quick), runs, arguments.repeat, warm)
    with open_report("streams", arguments) as report:
        write_report(results, report)


if __name__ == "__main__":
    main()
