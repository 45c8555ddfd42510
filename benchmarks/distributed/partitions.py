"""L-BFGS and online learners on partitions, without a cluster: evaluations, scores and traffic."""

from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from time import perf_counter

import numpy as np
from sklearn.base import clone

from benchmarks.common.chunking import EPOCHS
from benchmarks.common.report import table
from benchmarks.parallel_learning import load
from skstruct import CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger
from skstruct.dask.learning import learn
from skstruct.dask.mixing import learn_alone
from skstruct.learning.monitor import Monitor, Stopping
from skstruct.learning.objective import Objective
from skstruct.learning.solver import settings_of
from skstruct.metrics import chunk_f1_score

THREADS = "two threads"
TAGGER = {"l2": 1.0, "tol": 1e-4}
ONLINE = {
    "Averaged perceptron": PerceptronTagger(),
    "MIRA, averaged": MIRATagger(),
    "SAPO, 5 best": SAPOTagger(n_best=5),
    "CRF, SGD": CRFTagger(solver="sgd"),
}


class OneProcess:
    """Does what a cluster does, and counts the bytes of the weights that would travel."""

    def __init__(self):
        self.sent, self.returned = [], []

    def map(self, function, shards, shared=None, *, keep=False):
        """Call a function for each shard."""
        results = [function(*shard, shared) for shard in shards]
        if function is learn_alone:
            self.sent.append(sum(n_bytes(shard[1]) for shard in shards))
            self.returned.append(
                sum(n_bytes((r.rows, *r.chain, *r.lag)) for r in results),
            )
        return results

    def iterate(self, function, shards, shared=None, *, together=1, direct=False):
        """Call a function for each shard, and yield the results."""
        yield from self.map(function, list(shards), shared)


def n_bytes(arrays):
    """Bytes of several arrays."""
    return sum(array.nbytes for array in arrays)


def cut(y, n):
    """Bounds of parts of consecutive sentences with about equally many tokens."""
    ends = np.cumsum([len(labels) for labels in y])
    cuts = np.searchsorted(ends, np.linspace(0, ends[-1], n + 1)[1:-1])
    return list(pairwise([0, *cuts.tolist(), len(y)]))


def learn_here(tagger, data, n):
    """Tagger that has learnt from partitions, and what they have sent."""
    tagger, workers = clone(tagger), OneProcess()
    X, y = data
    parts = [(X[a:b], y[a:b]) for a, b in cut(y, n)]
    monitor = partial(Monitor, stopping=settings_of(Stopping, tagger))
    tagger._keep(learn(tagger, workers, parts, None, None, monitor, "float64"))
    return tagger, workers


def f1_of(tagger, test):
    """F1 of the test set, in per cent."""
    return 100 * chunk_f1_score(test[1], tagger.predict(test[0]))


@contextmanager
def evaluations():
    """Seconds of each evaluation in this context; positions of the shards, and size, of each."""
    seconds, evaluated, evaluate = [], [], Objective.value_and_gradient

    def timed(objective, *arguments, **options):
        start = perf_counter()
        value = evaluate(objective, *arguments, **options)
        seconds.append(perf_counter() - start)
        # The objective loses its likelihood at the end of a fit.
        evaluated.append((getattr(objective.likelihood, "positions", None), objective.size))
        return value

    Objective.value_and_gradient = timed
    try:
        yield seconds, evaluated
    finally:
        Objective.value_and_gradient = evaluate


def report_evaluations(corpus, partitions, report):
    """Write the evaluations of L-BFGS, and its traffic."""
    train, test = load(corpus)
    rows, traffic = [], []
    for n in (THREADS, *partitions):
        with evaluations() as (seconds, evaluated):
            if n == THREADS:
                tagger = CRFTagger(n_jobs=2, **TAGGER).fit(*train)
            else:
                tagger, _ = learn_here(CRFTagger(**TAGGER), train, n)
        name = n if n == THREADS else f"{n} partitions"
        objective, f1 = tagger.history_["objective"][-1], f1_of(tagger, test)
        rows.append([name, len(seconds), f"{objective:.3f}", f"{f1:.2f}"])
        print(*rows[-1], flush=True)
        if n != THREADS:
            positions, size = evaluated[0]
            sent = sum(map(len, positions))
            share = 100 * sent / (len(positions) * size)
            traffic.append([name, f"{share:.1f}", f"{8e-6 * sent:.1f}"])
    report.write("evaluations", table(["", "evaluations", "objective", "F1 on test, %"], rows))
    head = ["", "weights of a partition, % of all", "MB each way, all partitions"]
    report.write("traffic", table(head, traffic))


def report_mixing(corpus, shards, seeds, report):
    """Write the F1 of the online learners, and their traffic."""
    train, test = load(corpus)
    rows, traffic = [], []
    for name, tagger in ONLINE.items():
        scores, shares = [], []
        tagger.set_params(max_iter=EPOCHS, tol=None)
        for n in (1, *shards):
            f1 = []
            for seed in range(seeds):
                tagger.set_params(random_state=seed)
                if n == 1:
                    found = clone(tagger).fit(*train)
                else:
                    found, workers = learn_here(tagger, train, n)
                f1.append(f1_of(found, test))
            scores.append(f"{np.mean(f1):.2f} ({min(f1):.2f}-{max(f1):.2f})")
            print(name, n, scores[-1], flush=True)
            if n > 1:
                dense = n * n_bytes(found._chain())
                back = dense * (1 + tagger.average)
                sent, returned = np.mean(workers.sent), np.mean(workers.returned)
                shares.append(f"{100 * sent / dense:.1f}, {100 * returned / back:.1f}")
        rows.append([name, *scores])
        traffic.append([name, *shares])
    head = ["", "one process", *(f"{n} partitions" for n in shards)]
    note = f"Means of {seeds} seeds (and range) after {EPOCHS} epochs: F1 on test, %."
    report.write("mixing", table(head, rows), note)
    note = (
        f"Bytes to the shards and back, % of all weights, with averaging also of their sums: mean "
        f"of {EPOCHS} epochs, last seed."
    )
    report.write("mixing_traffic", table(["", *head[2:]], traffic), note)
