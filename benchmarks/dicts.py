"""Feature dicts: time to vectorise them, memory of the batch, and one sentence at a time.

    python -m benchmarks.dicts [--before FOLDER]

The dicts of text chunking on CoNLL-2000, and of sklearn-crfsuite's tutorial on the Spanish part of
CoNLL-2002, whose features are strings and bools as in the tutorial. Every run is a process of its
own. Times are CPU times. python-crfsuite tags the same sentences, with a model that it has trained
on the same dicts. With `--before`, a checkout of another version of skstruct takes part.
"""

import gc
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

from benchmarks.common import features
from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import read_sentences, write_corpus
from benchmarks.common.features import chunking_features, feature_dicts
from benchmarks.common.processes import peak_memory, take_turns
from benchmarks.common.report import note_on_runs, rows_of_medians, table

ALONE = 300  # sentences that are tagged one at a time
PASSES = 5
N_ITERATIONS = 10  # of training: the number of weights is that of a long training


def tutorial_features(sentence, t):
    """Features of sklearn-crfsuite's tutorial, with text for the bias: no value is a number."""
    return {**dict(features.tutorial_features(sentence, t)), "bias": "bias"}.items()


TASKS = {
    "conll2000": chunking_features,
    "conll2002-esp": tutorial_features,
    "addresses": chunking_features,
}
QUICK = ["addresses"]


def cpu_seconds(function):
    """CPU time of a call, and what it returns."""
    gc.collect()
    start = process_time()
    result = function()
    return process_time() - start, result


def alone(tag, sentences):
    """Milliseconds of a sentence that is tagged alone: the best of several passes."""
    passes = [cpu_seconds(lambda: [tag(s) for s in sentences])[0] for _ in range(PASSES)]
    return 1000 * min(passes) / len(sentences)


def run_skstruct(X, y, X_test, folder):
    """Results of the version of skstruct that is found first."""
    from skstruct import CRFTagger, SequenceVectorizer, crfsuite

    # Kernels are loaded before anything is measured.
    SequenceVectorizer().fit_transform(X[:1])
    before = peak_memory()
    fit, batch = cpu_seconds(lambda: SequenceVectorizer().fit_transform(X))
    memory = peak_memory() - before
    parts = {part.ctypes.data: part for part in (batch.X.data, batch.X.indices, batch.X.indptr)}
    size = sum(part.nbytes if any(part.strides) else 8 for part in parts.values())
    vectorizer = SequenceVectorizer().fit(X)
    transform, _ = cpu_seconds(lambda: vectorizer.transform(X_test))
    tagger = CRFTagger(max_iter=N_ITERATIONS, tol=100.0).fit(X, y)
    drop_in = crfsuite.CRF(max_iterations=N_ITERATIONS).fit(X, y)
    sentences = X_test[:ALONE]
    for model in (tagger, drop_in):
        model.predict(sentences)
    return {
        "fit": fit,
        "transform": transform,
        "bytes": size / batch.n_rows,
        "memory": memory,
        "one": alone(lambda sentence: tagger.predict([sentence]), sentences),
        "one, drop-in": alone(drop_in.predict_single, sentences),
    }


def run_python_crfsuite(X, y, X_test, folder):
    """The same of python-crfsuite."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(params={"max_iterations": N_ITERATIONS}, verbose=False)
    before = peak_memory()

    def append():
        for sentence, labels in zip(X, y, strict=True):
            trainer.append(sentence, labels)

    fit, _ = cpu_seconds(append)
    memory = peak_memory() - before
    trainer.train(str(folder / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "model"))
    transform, _ = cpu_seconds(lambda: [tagger.set(sentence) for sentence in X_test])
    one = alone(tagger.tag, X_test[:ALONE])
    return {"fit": fit, "transform": transform, "memory": memory, "one": one}


SYSTEMS = {"python-crfsuite": run_python_crfsuite, "skstruct": run_skstruct}


def run_one(task, system, folder):
    """Run one system in this process; return what it took."""
    X, y, X_test = [], [], []
    for part, dicts in (("train", X), ("test", X_test)):
        sentences, labels = read_sentences(folder / part)
        dicts += [feature_dicts(TASKS[task], sentence) for sentence in sentences]
        y = y or labels
    return SYSTEMS.get(system, run_skstruct)(X, y, X_test, folder)


def run_child(task, folder, checkout, system):
    """Run one system in a process of its own, with the package of a checkout if one is given."""
    first = f"sys.path.insert(0, {str(checkout)!r}); import skstruct; sys.path.pop(0)"
    arguments = f"{task!r}, {system!r}, Path({str(folder)!r})"
    code = (
        f"import json, sys; from pathlib import Path\n{first if checkout else ''}\n"
        f"from benchmarks.dicts import run_one; print(json.dumps(run_one({arguments})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


ROWS = {
    "vectorise the training set, s": ("fit", "{:.2f}"),
    "vectorise the test set, s": ("transform", "{:.2f}"),
    "memory for it, MB": ("memory", "{:.0f}"),
    "bytes a token of the batch": ("bytes", "{:.0f}"),
    "one sentence, ms": ("one", "{:.3f}"),
    "one sentence, `predict_single`, ms": ("one, drop-in", "{:.3f}"),
}


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__, repeat=3)
    parser.add_argument("--before", type=Path, help="folder of another checkout")
    arguments = parse(parser)
    checkouts = {**dict.fromkeys(SYSTEMS), "before": arguments.before}
    if not arguments.before:
        del checkouts["before"]
    with open_report("dicts", arguments) as report:
        for task in QUICK if arguments.quick else [t for t in TASKS if t not in QUICK]:
            with tempfile.TemporaryDirectory() as folder:
                write_corpus(task, Path(folder))
                results = take_turns(
                    checkouts,
                    lambda system, task=task, folder=folder: run_child(
                        task, folder, checkouts[system], system
                    ),
                    arguments.repeat,
                )
            rows = rows_of_medians(ROWS, results)
            report.write(task, table(["", *results], rows), note_on_runs(arguments.repeat))


if __name__ == "__main__":
    main()
