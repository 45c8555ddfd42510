"""Chunking with the same attribute strings by CRFsuite and by skstruct, each in its own process.

A run imports its library, reads the corpus as plain text, makes the features of CRFsuite's chunking
example, trains, and tags the test set. Libraries are imported within the run because that counts.
"""

import json
import statistics
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import chunking_name, read_sentences, write_corpus
from benchmarks.common.crfsuite import open_trained
from benchmarks.common.features import crfsuite_attributes
from benchmarks.common.processes import Clock, peak_memory, run_child, seconds_of, take_turns

EPOCHS = 10
# The first pass of a process loads compiled code, or memory, and is counted in the whole process.
TAGGING_PASSES = 7


def run_crfsuite(algorithm, params, folder):
    """Results of python-crfsuite, with the gold and the predicted labels of the test set."""
    clock = Clock()
    import pycrfsuite

    class TimedTrainer(pycrfsuite.Trainer):
        """Trainer that takes the time, as ours do, and not that of the processor, as CRFsuite."""

        def message(self, message):
            if self.logparser.feed(message) == "iteration":
                ends.append(perf_counter())

    ends = []
    baseline = peak_memory()
    clock.lap("import")
    (X, y), (X_test, y_test) = (read_sentences(folder / part) for part in ("train", "test"))
    clock.lap("read")
    trainer = TimedTrainer(algorithm=algorithm, params=params, verbose=False)
    append = 0.0
    for tokens, labels in zip(X, y, strict=True):
        strings = crfsuite_attributes(tokens)
        start = perf_counter()
        trainer.append(strings, labels)
        append += perf_counter() - start
    clock.lap("features")
    tagger = open_trained(trainer, clock)
    items = [pycrfsuite.ItemSequence(crfsuite_attributes(tokens)) for tokens in X_test]
    clock.lap("test features")
    predicted = [tagger.tag(item) for item in items]
    clock.lap("tag")
    memory = peak_memory()
    seconds = seconds_of(lambda: [tagger.tag(item) for item in items], TAGGING_PASSES)
    iterations = trainer.logparser.iterations
    results = {
        "memory": memory,
        "memory before data": baseline,
        "tokens per second": sum(map(len, y_test)) / seconds,
        "vectorise": append,
        "objective": iterations[-1]["loss"] if algorithm == "lbfgs" else None,
        "iterations": len(iterations),
        "epoch": statistics.median(b - a for a, b in pairwise(ends)),
    }
    return finish(clock, results, y_test, predicted)


def run_skstruct(estimator, params, folder):
    """Results of an estimator of skstruct, with the gold and the predicted labels."""
    clock = Clock()
    import skstruct

    package = skstruct if hasattr(skstruct, estimator) else skstruct.crfsuite
    kind, vectorizer = getattr(package, estimator), skstruct.SequenceVectorizer()
    baseline = peak_memory()
    clock.lap("import")
    (X, y), (X_test, y_test) = (read_sentences(folder / part) for part in ("train", "test"))
    clock.lap("read")
    making = 0.0

    def stream():
        nonlocal making
        for tokens in X:
            start = perf_counter()
            strings = crfsuite_attributes(tokens)
            making += perf_counter() - start
            yield strings

    batch = vectorizer.fit_transform(stream())
    clock.lap("features")
    tagger = kind(**params).fit(batch, y)
    clock.lap("train")
    batch = vectorizer.transform(map(crfsuite_attributes, X_test))
    clock.lap("test features")
    predicted = tagger.predict(batch)
    clock.lap("tag")
    memory = peak_memory()
    seconds = seconds_of(lambda: tagger.predict(batch), TAGGING_PASSES)
    history = tagger.history_
    results = {
        "memory": memory,
        "memory before data": baseline,
        "tokens per second": sum(map(len, y_test)) / seconds,
        "vectorise": clock.seconds["features"] - making,
        "objective": float(history["objective"][-1]) if "objective" in history else None,
        "iterations": int(tagger.n_iter_),
        "epoch": statistics.median(history["time"][1:] - history["time"][:-1]),
    }
    return finish(clock, results, y_test, predicted)


def finish(clock, results, y_test, predicted):
    """Results with the times of the clock and the F1 of the test set."""
    times = {**clock.seconds, "whole": sum(clock.seconds.values())}
    # Imported after the measurement, so that it does not count.
    from skstruct.metrics import chunk_f1_score

    return {**times, **results, "f1": chunk_f1_score(y_test, predicted)}


def compare(name, doc, systems, *, ours, repeat, write_report):
    """Run a benchmark of systems in turn, or one of them in this process.

    Parameters
    ----------
    name, doc : str
        Name of the benchmark, and the docstring of its module.
    systems : dict of str to callable
        Functions of the folder of the corpus.
    ours : iterable of str
        Systems that fill the cache of compiled kernels before anything is measured.
    repeat : int
        Number of turns by default.
    write_report : callable
        ``write_report(results, report)``.
    """
    parser = make_parser(doc, repeat=repeat)
    parser.add_argument("--run", choices=list(systems), help="only this, once, in this process")
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus as plain text")
    arguments = parse(parser)
    if arguments.run:
        print(json.dumps(systems[arguments.run](arguments.folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(chunking_name(arguments.quick), Path(folder))
        run = partial(run_child, name, "--folder", folder, "--run")
        warm = () if arguments.quick else ours
        results = take_turns(systems, run, arguments.repeat, warm=warm)
    with open_report(name, arguments) as report:
        write_report(results, report)
