"""From text to labels beside sklearn-crfsuite and python-crfsuite: whole processes, in turn.

    python -m benchmarks.whole_process
    python -m benchmarks.whole_process --only conll2000 --repeat 5

Every run is a process of its own that reads a corpus as columns of plain text, makes features,
trains and tags the test set. All systems have the same features: the 19 templates of text chunking
on CoNLL-2000 and, with shapes in place of parts of speech, on 10,000 made-up addresses; those of
sklearn-crfsuite's tutorial on the Spanish part of CoNLL-2002.

- sklearn-crfsuite makes a dict for each token, as its tutorial does;
- python-crfsuite is given lists of attribute strings;
- the drop-in is the program of sklearn-crfsuite with one line changed, the import: it makes the
  same dicts, and trains in two threads; or, in a context of joblib, in one;
- `CRFTagger`, in two threads or one, and `PerceptronTagger`, the quickest learner, are given the
  matrix of a `TemplateVectorizer`.

Each system stops by its own default criterion. The perceptron stops when the score on a tenth of
the training set, which it holds out, no longer improves, and keeps the weights of the best epoch
(``early_stopping=True``): that search is part of its seconds. Needs the extra `bench`.
"""

import json
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import read_sentences, write_corpus
from benchmarks.common.crfsuite import open_trained
from benchmarks.common.features import (
    CHUNKING,
    ENTITIES,
    ENTITY_FUNCTIONS,
    chunking_features,
    entity_features,
    feature_dicts,
    feature_strings,
)
from benchmarks.common.processes import Clock, peak_memory, run_child, seconds_of, take_turns
from benchmarks.common.report import gain, note_on_runs, rows_of_medians, table

TAGGING_PASSES = 7
C2 = 1.0
PARAMETERS = {
    "CRFTagger": {"l2": 2 * C2, "fit_intercept": False},
    "PerceptronTagger": {"early_stopping": True, "random_state": 0},
}


class Task(NamedTuple):
    """The features of a corpus."""

    features: object  # function of a sentence and a position
    template: list
    functions: dict | None = None


TASKS = {
    "conll2000": Task(chunking_features, CHUNKING),
    "conll2002-esp": Task(entity_features, ENTITIES, ENTITY_FUNCTIONS),
    "made-up-addresses": Task(chunking_features, CHUNKING),
    "addresses": Task(chunking_features, CHUNKING),
}
QUICK = ["addresses"]


def run_sklearn_crfsuite(library, task, folder, clock, n_threads=None):
    """A function that tags the test set, its gold and predicted labels, and the objective."""
    kind = import_module(library).CRF
    # Both libraries have imported it.
    from joblib import parallel_config

    clock.lap("import")
    (X, y), (X_test, y_test) = (read_sentences(folder / part) for part in ("train", "test"))
    clock.lap("read")
    dicts = [feature_dicts(task.features, sentence) for sentence in X]
    clock.lap("features")
    with parallel_config(n_jobs=n_threads):
        crf = kind(algorithm="lbfgs", c1=0.0, c2=C2).fit(dicts, y)
    clock.lap("train")

    def tag():
        return crf.predict([feature_dicts(task.features, sentence) for sentence in X_test])

    predicted = tag()
    clock.lap("tag")
    return tag, y_test, predicted, crf.training_log_.last_iteration["loss"]


def run_python_crfsuite(task, folder, clock):
    """The same of python-crfsuite."""
    import pycrfsuite

    clock.lap("import")
    (X, y), (X_test, y_test) = (read_sentences(folder / part) for part in ("train", "test"))
    clock.lap("read")
    params = {"c1": 0.0, "c2": C2}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=params, verbose=False)
    for sentence, labels in zip(X, y, strict=True):
        trainer.append(feature_strings(task.features, sentence), labels)
    clock.lap("features")
    tagger = open_trained(trainer, clock)

    def tag():
        return [tagger.tag(feature_strings(task.features, sentence)) for sentence in X_test]

    predicted = tag()
    clock.lap("tag")
    return tag, y_test, predicted, trainer.logparser.last_iteration["loss"]


def run_skstruct(estimator, task, folder, clock, n_threads=1):
    """The same of an estimator of skstruct."""
    import skstruct
    from skstruct.datasets import read_conll

    kind, vectorizer_kind = getattr(skstruct, estimator), skstruct.TemplateVectorizer

    clock.lap("import")
    (X, y), (X_test, y_test) = (read_conll(folder / part) for part in ("train", "test"))
    clock.lap("read")
    vectorizer = vectorizer_kind(
        task.template, functions=task.functions, dtype="float32", n_jobs=n_threads
    )
    batch = vectorizer.fit_transform(X)
    clock.lap("features")
    tagger = kind(**PARAMETERS[estimator], n_jobs=n_threads)
    tagger.fit(batch, y)
    clock.lap("train")

    def tag():
        return tagger.predict(vectorizer.transform(X_test))

    predicted = tag()
    clock.lap("tag")
    objective = tagger.history_["objective"][-1] if estimator == "CRFTagger" else None
    return tag, y_test, predicted, objective


SYSTEMS = {
    "sklearn-crfsuite": partial(run_sklearn_crfsuite, "sklearn_crfsuite"),
    "python-crfsuite": run_python_crfsuite,
    "the drop-in": partial(run_sklearn_crfsuite, "skstruct.crfsuite"),
    "the drop-in, 1 thread": partial(run_sklearn_crfsuite, "skstruct.crfsuite", n_threads=1),
    "CRFTagger, 2 threads": partial(run_skstruct, "CRFTagger", n_threads=2),
    "CRFTagger, 1 thread": partial(run_skstruct, "CRFTagger"),
    "PerceptronTagger": partial(run_skstruct, "PerceptronTagger"),
}
OTHERS, OURS = list(SYSTEMS)[:2], list(SYSTEMS)[2:]


def run_one(task, system, folder):
    """Run one system in this process; return what it took."""
    clock = Clock(whole=True)
    tag, y_test, predicted, objective = SYSTEMS[system](TASKS[task], folder, clock)
    results = {
        **clock.seconds,
        "whole": sum(clock.seconds.values()),
        "memory of training": clock.memory["train"],
        "memory": peak_memory(),
        "tokens per second": sum(map(len, y_test)) / seconds_of(tag, TAGGING_PASSES),
        "objective": objective,
    }
    from skstruct.metrics import chunk_f1_score

    return {**results, "f1": chunk_f1_score(y_test, predicted)}


def run_all(task, repeat, warm):
    """Results of all systems on a task, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(task, Path(folder))
        run = partial(run_child, "whole_process", "--folder", folder, "--run", task)
        return take_turns(SYSTEMS, run, repeat, warm=warm)


ROWS = {
    "import, s": ("import", "{:.2f}"),
    "read, s": ("read", "{:.2f}"),
    "features, s": ("features", "{:.2f}"),
    "train, s": ("train", "{:.2f}"),
    "tag with features, s": ("tag", "{:.2f}"),
    "whole process, s": ("whole", "{:.2f}"),
    "final objective": ("objective", "{:,.2f}"),
    "chunk F1 on test, %": ("f1", "{:.2%}"),
    "tokens to labels, tokens/s": ("tokens per second", "{:,.0f}"),
    "peak memory until trained, MB": ("memory of training", "{:.0f}"),
    "peak memory, MB": ("memory", "{:.0f}"),
}


def write_report(task, results, report):
    """Write the medians of a task, and the ratios of runs of the same turn."""
    medians = table(["", *SYSTEMS], rows_of_medians(ROWS, results))
    rows = []
    for ours in OURS:
        for other in OTHERS:
            keys = ("whole", "features", "tokens per second", "memory")
            rows.append([ours, other, *(gain(results[other], results[ours], key) for key in keys)])
    head = ["", "than", "whole process", "features", "tokens to labels", "memory"]
    report.write(
        task,
        medians,
        "How many times faster, and how much smaller, in the same turn (median, and range):",
        table(head, rows, left=(0, 1)),
        note_on_runs(len(results[OURS[0]])),
    )


def main():
    """Run the benchmark, or one of its systems in this process."""
    parser = make_parser(__doc__, repeat=3)
    full = [task for task in TASKS if task not in QUICK]
    parser.add_argument("--only", nargs="+", choices=full, default=full, help="by default all")
    parser.add_argument("--run", nargs=2, metavar=("TASK", "SYSTEM"), help="only this, once")
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus as plain text")
    arguments = parse(parser)
    if arguments.run:
        print(json.dumps(run_one(*arguments.run, arguments.folder)))
        return
    with open_report("whole_process", arguments) as report:
        for task in QUICK if arguments.quick else arguments.only:
            results = run_all(task, arguments.repeat, () if arguments.quick else OURS)
            write_report(task, results, report)


if __name__ == "__main__":
    main()
