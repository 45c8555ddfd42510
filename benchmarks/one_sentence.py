"""One sentence at a time, as a service tags: microseconds a call, beside sklearn-crfsuite.

    python -m benchmarks.one_sentence
    python -m benchmarks.one_sentence --write

The corpus is CoNLL-2000, with the attributes of CRFsuite's chunking example, as lists of attribute
strings and as feature dicts. Sentences of each length are cut from the test set. A figure is the
best of many rounds over different sentences, in the time of the clock. In a service of four
processes, each tags sentences one after the other, with the model that was there before the fork.
Finished runs are kept in ``benchmarks/results/one_sentence``, and ``--write`` writes the tables
from them. Needs the extra `bench`.
"""

import gc
import json
import multiprocessing
import tempfile
from functools import partial
from itertools import chain, cycle, islice
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import chunking_name, read_sentences, write_corpus
from benchmarks.common.features import chunking_features, crfsuite_attributes, feature_dicts
from benchmarks.common.processes import run_child
from benchmarks.common.report import machine, table
from benchmarks.common.runs import Records

INPUTS = {
    "strings": crfsuite_attributes,
    "dicts": partial(feature_dicts, chunking_features),
}
LENGTHS = (1, 3, 10, 24, 50, 100)
BATCHES = (1, 8, 64)
# Tokens of a sentence of a batch, and of a service.
LENGTH = 24
ITERATIONS = 10
SENTENCES = 64
ROUNDS, SECONDS, SECONDS_OF_SERVICE = 200, 1.0, 3.0
QUICK_SECONDS = 0.02
PROCESSES = 4


def callables(system, X, y):
    """Functions that tag one sentence, and one that tags several, by their names."""
    if system == "CRFsuite":
        import sklearn_crfsuite

        crf = sklearn_crfsuite.CRF(max_iterations=ITERATIONS).fit(X, y)
        single = {"`predict_single`": crf.predict_single}
        return single, lambda batch: [crf.predict_single(sentence) for sentence in batch]
    if system == "drop-in":
        from skstruct.crfsuite import CRF

        crf = CRF(max_iterations=ITERATIONS).fit(X, y)
        return {"`predict_single`": crf.predict_single}, crf.predict
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from skstruct import CRFTagger, SequenceVectorizer

    tagger = CRFTagger(max_iter=ITERATIONS, tol=100.0)
    # Its first step changes nothing.
    pipeline = make_pipeline(FunctionTransformer(), tagger).fit(X, y)
    vectorizing = make_pipeline(SequenceVectorizer(), clone(tagger)).fit(X, y)
    return {
        "`predict`": lambda sentence: tagger.predict([sentence]),
        "`predict_proba`": lambda sentence: tagger.predict_proba([sentence]),
        "`predict_nbest`, 1 best": lambda sentence: tagger.predict_nbest([sentence], n_best=1),
        "`predict` of a pipeline": lambda sentence: pipeline.predict([sentence]),
        "`predict` after `SequenceVectorizer`": lambda sentence: vectorizing.predict([sentence]),
    }, tagger.predict


SYSTEMS = ("CRFsuite", "drop-in", "CRFTagger")


def read(kind, folder):
    """Features of the training set, its labels, and all tokens of the test set."""
    X, y = read_sentences(folder / "train")
    test, _ = read_sentences(folder / "test")
    return list(map(INPUTS[kind], X)), y, list(chain.from_iterable(test))


def cut(tokens, length, kind):
    """Sentences of one length, of which no two share a list or dict."""
    stream = cycle(tokens)
    return [INPUTS[kind](list(islice(stream, length))) for _ in range(SENTENCES)]


def microseconds(function, arguments, seconds):
    """Best of the rounds of so many seconds: time of a call, over some arguments in turn."""
    few = max(1, len(arguments) // 32)
    parts = [arguments[i : i + few] for i in range(0, len(arguments), few)]
    best = dict.fromkeys(range(len(parts)), np.inf)
    start, n_rounds = perf_counter(), 0
    while n_rounds < 3 or (n_rounds < ROUNDS and perf_counter() - start < seconds):
        for i, part in enumerate(parts):
            begin = perf_counter()
            for argument in part:
                function(argument)
            best[i] = min(best[i], perf_counter() - begin)
        n_rounds += 1
    return 1e6 * sum(best.values()) / len(arguments)


def measure(system, kind, seconds, folder):
    """Figures of one system with one kind of input."""
    X, y, tokens = read(kind, folder)
    single, several = callables(system, X, y)
    by_length = {
        name: {length: microseconds(tag, cut(tokens, length, kind), seconds) for length in LENGTHS}
        for name, tag in single.items()
    }
    sentences = cut(tokens, LENGTH, kind)
    by_batch = {}
    for size in BATCHES:
        batches = [sentences[i : i + size] for i in range(0, len(sentences), size)]
        by_batch[size] = microseconds(several, batches, seconds) / size
    return {"lengths": by_length, "batches": by_batch}


def serve(tag, sentences, seconds, barrier, queue):
    """Tag sentences one after the other; rate, and quantiles of the microseconds of a call."""
    barrier.wait()
    times, start = [], perf_counter()
    for sentence in cycle(sentences):
        begin = perf_counter()
        if begin - start > seconds:
            break
        tag(sentence)
        times.append(perf_counter() - begin)
    middle, late, last = np.quantile(times, [0.5, 0.99, 1.0]) * 1e6
    queue.put({"rate": len(times) / seconds, "median": middle, "p99": late, "longest": last})


def serve_by_four(system, freeze, seconds, folder):
    """Figures of four processes that share a model: rates added up, medians, the longest call."""
    X, y, tokens = read("dicts", folder)
    single, _ = callables(system, X, y)
    tag, sentences = next(iter(single.values())), cut(tokens, LENGTH, "dicts")
    # A server loads the model, and tags a sentence with it, before it forks.
    for sentence in sentences:
        tag(sentence)
    del X, y
    if freeze:
        gc.collect()
        gc.freeze()
    context = multiprocessing.get_context("fork")
    barrier, queue = context.Barrier(PROCESSES), context.Queue()
    given = tag, sentences, seconds, barrier, queue
    workers = [context.Process(target=serve, args=given) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    found = [queue.get() for _ in workers]
    for worker in workers:
        worker.join()
    return {
        "rate": sum(one["rate"] for one in found),
        **{key: float(np.median([one[key] for one in found])) for key in ("median", "p99")},
        "longest": max(one["longest"] for one in found),
    }


class Runs(Records):
    """Finished runs of a system with an input, or of a service, in one turn."""

    names = ("turn", "system", "input", "freeze")


def run_all(runs, corpus, repeat, quick):
    """Measure what is not there yet, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(corpus, Path(folder))
        common = ("--folder", folder, *(["--quick"] if quick else []))
        for turn in range(repeat):
            for kind in INPUTS:
                for system in SYSTEMS:
                    key = {"turn": turn, "system": system, "input": kind}
                    if runs.find(**key) is None:
                        options = ("--run", system, "--input", kind)
                        runs.add({**key, **run_child("one_sentence", *common, *options)})
            for system in SYSTEMS:
                for freeze in (False, True):
                    key = {"turn": turn, "system": system, "freeze": freeze}
                    if runs.find(**key) is None:
                        options = ("--serve", system, *(["--freeze"] if freeze else []))
                        runs.add({**key, **run_child("one_sentence", *common, *options)})


def medians(runs, path, **entries):
    """Median over the turns of a figure, found by its path, in the runs with some entries."""
    values = []
    for run in runs:
        if all(run.get(name) == value for name, value in entries.items()):
            for key in path:
                # JSON has made texts of the numbers.
                run = run[key] if key in run else run[str(key)]
            values.append(run)
    return float(np.median(values))


def write_report(runs, report):
    """Write the tables of all finished runs."""
    runs = list(runs)
    n_turns = len({run["turn"] for run in runs})
    note = f"Medians of {n_turns} {'turn' if n_turns == 1 else 'turns'}. {machine()}"
    names = {run["system"]: list(run["lengths"]) for run in runs if run.get("input") == "strings"}
    for kind in INPUTS:
        rows = []
        for system in SYSTEMS:
            for name in names[system]:
                found = [
                    medians(runs, ("lengths", name, length), system=system, input=kind)
                    for length in LENGTHS
                ]
                rows.append([f"{system}, {name}", *(f"{value:.1f}" for value in found)])
        head = ["microseconds a call", *(f"{n} token{'s' * (n > 1)}" for n in LENGTHS)]
        report.write(kind, table(head, rows), note)
    rows = []
    for kind in INPUTS:
        for system in SYSTEMS:
            found = [medians(runs, ("batches", n), system=system, input=kind) for n in BATCHES]
            rows.append([f"{system}, {kind}", *(f"{value:.1f}" for value in found)])
    head = ["microseconds a sentence", *(f"batches of {n}" for n in BATCHES)]
    report.write("batches", table(head, rows), note)
    rows = []
    for system in SYSTEMS:
        for freeze in (False, True):
            found = [
                medians(runs, (key,), system=system, freeze=freeze)
                for key in ("rate", "median", "p99", "longest")
            ]
            title = f"{system}, `gc.freeze()`" if freeze else system
            rows.append([title, *(f"{value:,.0f}" for value in found)])
    head = ["", "sentences a second", "median, µs", "99 % are below, µs", "longest, µs"]
    report.write("service", table(head, rows), note)


def main():
    """Run the benchmark, or one of its parts in this process."""
    parser = make_parser(__doc__, repeat=5)
    parser.add_argument("--write", action="store_true", help="only write tables of finished runs")
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--run", choices=SYSTEMS, help="only this, once, in this process")
    parser.add_argument("--input", choices=list(INPUTS), help="what --run tags")
    parser.add_argument("--serve", choices=SYSTEMS, help="only this service")
    parser.add_argument("--freeze", action="store_true", help="with `gc.freeze()`")
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus as plain text")
    arguments = parse(parser)
    folder = arguments.folder
    if arguments.run:
        seconds = QUICK_SECONDS if arguments.quick else SECONDS
        print(json.dumps(measure(arguments.run, arguments.input, seconds, folder)))
        return
    if arguments.serve:
        seconds = QUICK_SECONDS if arguments.quick else SECONDS_OF_SERVICE
        print(json.dumps(serve_by_four(arguments.serve, arguments.freeze, seconds, folder)))
        return
    with results_folder("one_sentence", arguments) as folder:
        runs = Runs(folder / "runs.jsonl")
        if not arguments.write:
            run_all(runs, chunking_name(arguments.quick), arguments.repeat, arguments.quick)
        with open_report("one_sentence", arguments) as report:
            write_report(runs, report)


if __name__ == "__main__":
    main()
