"""Learning on a Dask cluster of two processes, beside two threads: CoNLL-2000 chunking.

    python -m benchmarks.distributed

A conditional random field learns by L-BFGS from the same sentences in two threads of one process,
and from 2, 8 and 64 partitions on two workers with a thread each. Partitions are files, which the
workers read and turn into attribute strings. The systems take turns. An evaluation is one of the
objective and its gradient, with all that is sent for it.
"""

import tempfile
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import CORPORA, chunking_name, read_sentences, write_sentences
from benchmarks.common.features import crfsuite_attributes
from benchmarks.common.report import machine, median_and_range, table
from skstruct import CRFTagger
from skstruct.metrics import chunk_f1_score
from skstruct.solvers.objective import Objective

THREADS, PARTITIONS, QUICK_PARTITIONS = "two threads", (2, 8, 64), (2, 4)
TAGGER = {"l2": 1.0, "tol": 1e-4}


def read_features(path):
    """Attribute strings and labels of the sentences of a file."""
    X, y = read_sentences(path)
    return [crfsuite_attributes(tokens) for tokens in X], y


def write_partitions(X, y, n, folder):
    """Files of consecutive sentences, with about equally many tokens."""
    ends = np.cumsum([len(labels) for labels in y])
    cuts = np.searchsorted(ends, np.linspace(0, ends[-1], n + 1)[1:-1])
    bounds, paths = [0, *cuts.tolist(), len(X)], []
    for i, (a, b) in enumerate(pairwise(bounds)):
        paths.append(folder / f"{n}-{i}")
        write_sentences(X[a:b], y[a:b], paths[-1])
    return paths


@contextmanager
def evaluations():
    """Seconds of each evaluation in this context, and a list of the objectives."""
    seconds, objectives, evaluate = [], [], Objective.value_and_gradient

    def timed(objective, *arguments):
        start = perf_counter()
        value = evaluate(objective, *arguments)
        seconds.append(perf_counter() - start)
        objectives.append(objective)
        return value

    Objective.value_and_gradient = timed
    try:
        yield seconds, objectives
    finally:
        Objective.value_and_gradient = evaluate


def run(system, paths, test):
    """What a fit of one system takes, and what it gives."""
    import dask

    from skstruct.dask import DaskTagger

    start = perf_counter()
    with evaluations() as (seconds, objectives):
        if system == THREADS:
            tagger = CRFTagger(n_jobs=2, **TAGGER).fit(*read_features(paths[0]))
            share = sent = None
        else:
            parts = [dask.delayed(read_features, nout=2)(path) for path in paths]
            tagger = DaskTagger(CRFTagger(**TAGGER)).fit(*zip(*parts, strict=True)).estimator_
            positions = objectives[0].likelihood.positions
            sent = sum(map(len, positions))
            share = sent / (len(positions) * objectives[0].size)
    whole = perf_counter() - start
    X, y = test
    return {
        "evaluations": len(seconds),
        "evaluation": 1000 * float(np.median(seconds)),
        "whole": whole,
        "objective": float(tagger.history_["objective"][-1]),
        "share": share,
        "MB": None if sent is None else 8e-6 * sent,
        "f1": 100 * chunk_f1_score(y, tagger.predict(X)),
    }


def run_all(corpus, partitions, repeat):
    """Results of all systems, in turn."""
    from distributed import Client

    parts = CORPORA[corpus]()
    with (
        tempfile.TemporaryDirectory() as folder,
        Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"),
    ):
        folder = Path(folder)
        paths = {n: write_partitions(*parts["train"], n, folder) for n in (1, *partitions)}
        write_sentences(*parts["test"], folder / "test")
        test = read_features(folder / "test")
        systems = {THREADS: paths[1], **{n: paths[n] for n in partitions}}
        results = {system: [] for system in systems}
        for turn in range(repeat + 1):
            for system, files in systems.items():
                found = run(system, files, test)
                if turn:  # the first turn compiles
                    results[system].append(found)
                    print(system, found, flush=True)
    return results


def write_report(results, report):
    """Write medians of time, and the traffic."""
    rows, traffic = [], []
    threads = results[THREADS]
    for system, runs in results.items():
        ratio = [a["evaluation"] / b["evaluation"] for a, b in zip(runs, threads, strict=True)]
        first, name = runs[0], system if system == THREADS else f"{system} partitions"
        ms, whole = (
            median_and_range([run[key] for run in runs]) for key in ("evaluation", "whole")
        )
        cells = [ms, median_and_range(ratio, digits=2), first["evaluations"], whole]
        rows.append([name, *cells, f"{first['objective']:.3f}", f"{first['f1']:.2f}"])
        if first["share"] is not None:
            traffic.append([name, f"{100 * first['share']:.0f}", f"{first['MB']:.1f}"])
    head = ["", "an evaluation, ms", "ratio", "evaluations", "fit, s", "objective", "F1 on test, %"]
    note = f"Medians of {len(threads)} runs (and range), in turn. {machine()}"
    report.write("evaluations", table(head, rows), note)
    head = ["", "weights of a partition, % of all", "MB each way, all partitions"]
    report.write("traffic", table(head, traffic))


def main():
    """Run the benchmark."""
    arguments = parse(make_parser(__doc__, repeat=3))
    partitions = QUICK_PARTITIONS if arguments.quick else PARTITIONS
    results = run_all(chunking_name(arguments.quick), partitions, arguments.repeat)
    with open_report("distributed", arguments) as report:
        write_report(results, report)


if __name__ == "__main__":
    main()
