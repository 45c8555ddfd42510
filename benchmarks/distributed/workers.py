"""Two workers beside two threads: seconds of an evaluation, and of the start of a worker."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import dask
import numpy as np
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose

from benchmarks.common.corpora import (
    CORPORA,
    TWO_FILES,
    columns,
    read_sentences,
    write_sentences,
)
from benchmarks.common.features import SPELLING, WORDS, crfsuite_attributes
from benchmarks.common.problems import training_problem
from benchmarks.common.processes import take_turns
from benchmarks.common.report import machine, median_and_range, table
from benchmarks.distributed.partitions import TAGGER, THREADS, cut
from skstruct import CRFTagger, HashingTemplateVectorizer, SequenceVectorizer
from skstruct.dask.cluster import Cluster
from skstruct.dask.learning import make_objective, read_shards
from skstruct.learning.objective import CRFObjective
from skstruct.utils.parallel import chain_work, range_runner

WORKERS = {"threads_per_worker": 1, "dashboard_address": ":0"}
# Corpora of full runs.
TITLES = {"conll2000": "CoNLL-2000"}
# Evaluations in turn, of which the first compile or load kernels and are not counted.
TURNS, LONG_TURNS, QUICK_TURNS, UNCOUNTED = 30, 6, 4, 2


class Corpus(NamedTuple):
    """A training set: how workers read it, and numbers of partitions and of turns."""

    title: str
    load: object
    read: object
    vectorizer: object
    partitions: tuple
    turns: int


def read_attributes(path):
    """Attribute strings and labels of the sentences of a file."""
    X, y = read_sentences(path)
    return [crfsuite_attributes(tokens) for tokens in X], y


def load_brown():
    """Words and part-of-speech tags of the whole corpus."""
    parts = columns("brown-pos", **TWO_FILES)()
    return tuple(a + b for a, b in zip(parts["train"], parts["test"], strict=True))


def corpora(name, partitions):
    """Corpora of the part "seconds"."""
    title, turns = TITLES.get(name, name), TURNS if name in TITLES else QUICK_TURNS
    yield Corpus(title, lambda: CORPORA[name]()["train"], read_attributes, None, partitions, turns)
    if name in TITLES:
        hashing = HashingTemplateVectorizer(WORDS + SPELLING, n_features=2**18)
        yield Corpus("Brown", load_brown, read_sentences, hashing, partitions[:1], LONG_TURNS)


def write_partitions(X, y, n, folder):
    """Files of consecutive sentences."""
    paths = []
    for i, (a, b) in enumerate(cut(y, n)):
        paths.append(folder / f"{n}-{i}")
        write_sentences(X[a:b], y[a:b], paths[-1])
    return paths


def delayed_parts(read, paths):
    """X and y of partitions that workers read."""
    return [dask.delayed(read, nout=2)(path) for path in paths]


def objective_of_threads(corpus, path):
    """Function that evaluates the objective in two threads, and the number of its weights."""
    X, y = corpus.read(path)
    batch = (corpus.vectorizer or SequenceVectorizer()).fit_transform(X)
    objective = CRFObjective(*training_problem(batch, y), l2=TAGGER["l2"])
    work = chain_work(objective.n_labels)

    def evaluate(theta, out):
        with range_runner(objective.offsets, 2, work) as run:
            return objective.value_and_gradient(theta, out, run)

    return evaluate, objective.size


def objective_of_workers(corpus, paths, client):
    """The same function on a cluster."""
    tagger, workers = CRFTagger(**TAGGER), Cluster(client, max_retries=0)
    parts = delayed_parts(corpus.read, paths)
    *shards, _ = read_shards(tagger, workers, parts, corpus.vectorizer, None)
    objective = make_objective(tagger, workers, *shards, "float64")
    return lambda theta, out: objective.value_and_gradient(theta, out, None)


def compare(corpus, clients, folder):
    """Milliseconds of evaluations in turn, by system."""
    files = {n: write_partitions(*corpus.load(), n, folder) for n in (1, *corpus.partitions)}
    evaluate, size = objective_of_threads(corpus, files[1][0])
    systems = {THREADS: evaluate}
    for n in corpus.partitions:
        for way, client in clients.items():
            systems[f"{n} partitions, {way}"] = objective_of_workers(corpus, files[n], client)
    theta = 0.1 * np.random.default_rng(0).standard_normal(size)
    gradients, values = {name: np.empty(size) for name in systems}, {}

    def measure(name):
        start = perf_counter()
        values[name] = systems[name](theta, gradients[name])
        return 1000 * (perf_counter() - start)

    found = take_turns(systems, measure, corpus.turns)
    for name in systems:
        assert_allclose(values[name], values[THREADS], rtol=1e-9)
        assert_allclose(gradients[name], gradients[THREADS], atol=1e-6)
    return {name: np.array(milliseconds[UNCOUNTED:]) for name, milliseconds in found.items()}


def evaluation_rows(corpus, found):
    """Rows of the table of evaluations; ratios are of those of the same turn."""
    for name, milliseconds in found.items():
        ratios = milliseconds / found[THREADS]
        cells = median_and_range(milliseconds), f"{np.median(ratios):.2f}"
        yield [corpus.title, name, *cells, len(milliseconds)]


def report_seconds(name, partitions, report):
    """Write the time of an evaluation, of all systems in turn."""
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, **WORKERS) as cluster,
        Client(cluster, direct_to_workers=False) as tasks,
        Client(cluster, direct_to_workers=True, set_as_default=False) as straight,
    ):
        clients = {"straight": straight, "through the scheduler": tasks}
        for corpus in corpora(name, partitions):
            rows += evaluation_rows(corpus, compare(corpus, clients, Path(folder)))
    head = ["", "", "an evaluation, ms", "ratio", "turns"]
    note = "Medians (and range), in turn, and of the ratios of each turn."
    report.write("seconds", table(head, rows, left=(0, 1)), f"{note} {machine()}")


# A worker that is new


@contextmanager
def kernels_in(folder):
    """Context in which compiled kernels are cached in a folder; with None, where they were."""
    before = os.environ.get("NUMBA_CACHE_DIR")
    if folder is not None:
        os.environ["NUMBA_CACHE_DIR"] = folder
    try:
        yield
    finally:
        if before is not None:
            os.environ["NUMBA_CACHE_DIR"] = before
        else:
            os.environ.pop("NUMBA_CACHE_DIR", None)


def start_worker(corpus, files):
    """Seconds until a worker is there, has read and counted, has evaluated once, and once more."""
    seconds, start = [], perf_counter()

    def lap():
        nonlocal start
        seconds.append(perf_counter() - start)
        start = perf_counter()

    with Client(n_workers=1, set_as_default=False, **WORKERS) as client:
        client.wait_for_workers(1)
        lap()
        tagger, workers = CRFTagger(**TAGGER), Cluster(client, max_retries=0)
        *shards, _ = read_shards(tagger, workers, delayed_parts(corpus.read, files), None, None)
        objective = make_objective(tagger, workers, *shards, "float64")
        theta, out = np.zeros(objective.size), np.empty(objective.size)
        lap()
        for _ in range(2):
            objective.value_and_gradient(theta, out, None)
            lap()
    return seconds


def report_start(name, report, *, quick):
    """Write the seconds of a worker's start, with a cache of kernels that is full or empty."""
    corpus, rows, caches = next(corpora(name, (1,))), [], {"compiled before": None}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as empty:
        if not quick:
            caches["not compiled"] = empty
        files = write_partitions(*corpus.load(), 1, Path(folder))
        if not quick:
            start_worker(corpus, files)
        for title, cache in caches.items():
            with kernels_in(cache):
                seconds = start_worker(corpus, files)
            rows.append([title, *(f"{value:.2f}" for value in seconds)])
            print(*rows[-1], flush=True)
    head = ["kernels", "process, s", "reading and counting, s", "first evaluation, s", "second, s"]
    report.write("start", table(head, rows), machine())
